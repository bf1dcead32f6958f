#include "local/store_internal.h"

uint64_t store_rev(const struct store *s)
{
        return s->history.newest;
}

uint64_t store_oldest(const struct store *s)
{
        return s->history.oldest;
}

uint64_t store_next_rev(const struct store *s)
{
        return s->last + 1;
}

static struct slot *slot_of_node(struct tree_node *node)
{
        return node ? CONTAINER_OF(node, struct slot, node) : NULL;
}

static const struct slot *find(const struct store *s, const char *type, const char *ns, const char *name)
{
        _cleanup_(key_done) struct key key = {.large = NULL};
        struct kind *k = store_kind(s, type);

        return k ? slot_of_node(tree_find(&k->slots, key_join(&key, str_of(ns), str_of(name)))) : NULL;
}

struct object *store_get(const struct store *s, const char *type, const char *ns, const char *name)
{
        const struct slot *slot = find(s, type, ns, name);

        return slot ? slot->durable : NULL;
}

struct object *store_newest(const struct store *s, const char *type, const char *ns, const char *name)
{
        const struct slot *slot = find(s, type, ns, name);

        return slot ? slot->newest : NULL;
}

size_t store_count(const struct store *s, const char *type, const char *ns)
{
        struct kind *k = store_kind(s, type);
        struct ns_count *c;

        if (!k)
                return 0;
        if (!ns || !*ns)
                return k->count;
        c = map_get(&k->by_ns, str_of(ns));
        return c ? c->n : 0;
}

static int expired(const struct store *s, uint64_t rev, struct err *err)
{
        return err_set(err, E_EXPIRED, "revision %llu has left the history, which begins after %llu",
                       (unsigned long long)rev, (unsigned long long)s->history.oldest);
}

int store_replay(struct store *s, uint64_t rev, void (*fn)(void *arg, const struct change *c), void *arg,
                 struct err *err)
{
        if (rev < s->history.oldest)
                return expired(s, rev, err);
        for (uint64_t newest = s->history.newest; rev < newest;) {
                struct change c = history_at(&s->history, ++rev);

                fn(arg, &c);
        }
        return 0;
}

/*
 * ---- lists. As of an older revision: what has changed since then is looked up in the history, and what it was before its
 * first change since then takes the place of what the tree has; both are walked side by side in the order of keys.
 */

struct past {
        struct str key;
        struct object *before; /* its first change after the revision; NULL: that created it */
        uint64_t rev;          /* of that change */
};

typedef VEC(struct past) past_vec;

struct cursor {
        const struct store_range *range;
        struct kind *kind;
        struct str prefix; /* of all keys of the namespace; empty: all */
        struct tree_node *node;
        past_vec past;
        size_t at;
};

static int by_key(const void *a, const void *b)
{
        const struct past *x = a, *y = b;
        int order = str_cmp(x->key, y->key);

        return order ? order : (x->rev > y->rev) - (x->rev < y->rev);
}

static bool in_range(const struct cursor *c, struct str key)
{
        return str_has_prefix(key, c->prefix) &&
               (!c->range->start || str_cmp(key, str_of(c->range->start)) > 0);
}

static void find_past(const struct store *s, struct cursor *c)
{
        past_vec *past = &c->past;
        size_t kept = 0;

        for (uint64_t rev = c->range->rev + 1; rev <= s->history.newest; rev++) {
                struct change change = history_at(&s->history, rev);
                struct str key;

                if (change.after->type != c->kind->name)
                        continue;
                key = object_key(change.after);
                if (in_range(c, key))
                        *vec_push(past) = (struct past){.key = key, .before = change.before, .rev = rev};
        }
        if (past->n == 0)
                return;
        qsort(past->v, past->n, sizeof(*past->v), by_key);
        for (size_t i = 0; i < past->n; i++)
                if (i == 0 || !str_eq(past->v[i].key, past->v[kept - 1].key))
                        past->v[kept++] = past->v[i];
        past->n = kept;
}

/* The next object in the order of keys; NULL: the end. */
static struct object *next(struct cursor *c)
{
        for (;;) {
                struct slot *slot = slot_of_node(c->node);
                const struct past *past = c->at < c->past.n ? &c->past.v[c->at] : NULL;
                int order;
                struct object *o;

                if (slot && !str_has_prefix(slot->node.key, c->prefix))
                        slot = NULL;
                if (!slot && !past)
                        return NULL;
                order = !slot ? 1 : !past ? -1 : str_cmp(slot->node.key, past->key);
                if (order <= 0)
                        c->node = tree_next(c->node);
                if (order >= 0)
                        c->at++;
                o = order >= 0 ? past->before : c->range->newest ? slot->newest : slot->durable;
                if (o)
                        return o;
        }
}

static struct tree_node *first_node(const struct cursor *c)
{
        const char *start = c->range->start;

        if (start && str_cmp(str_of(start), c->prefix) > 0)
                return tree_after(&c->kind->slots, str_of(start));
        return c->prefix.n ? tree_from(&c->kind->slots, c->prefix) : tree_first(&c->kind->slots);
}

int store_list(struct store *s, const struct store_range *range, bool (*fn)(void *arg, struct object *o),
               void *arg, struct err *err)
{
        _cleanup_(key_done) struct key key = {.large = NULL};
        struct cursor c = {.range = range, .kind = store_kind(s, range->type)};
        struct object *o;

        if (range->rev > s->history.newest)
                return err_set(err, E_INVALID, "revision %llu is in the future, the newest is %llu",
                               (unsigned long long)range->rev, (unsigned long long)s->history.newest);
        if (range->rev && range->rev < s->history.oldest)
                return expired(s, range->rev, err);
        if (!c.kind)
                return 0;
        if (range->ns && *range->ns)
                c.prefix = key_join(&key, str_of(range->ns), STR(""));
        if (range->rev)
                find_past(s, &c);
        c.node = first_node(&c);
        while ((o = next(&c)) && fn(arg, o))
                continue;
        vec_done(&c.past);
        return 0;
}
