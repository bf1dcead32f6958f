#include "local/store_internal.h"

/*
 * A write goes through three places: the list `staged`, the group that the worker commits, and the history. Revisions are
 * given out in that order, so all three together are without a gap. One commit is under way at a time; what is staged
 * meanwhile is the next group, which is sent off at the end of the turn in which the one before it is done.
 *
 * The state moves one write at a time: when listeners and `done` hear of a revision, store_rev() is that revision and
 * readers see exactly what was written up to it. Whoever begins to listen there and has replayed up to store_rev() hears
 * each later change once.
 */

enum { FIRST_REV = 1 }; /* of an empty store: 0 means "any" to clients */

/* ---- kinds and slots */

struct kind *store_kind(const struct store *s, const char *type)
{
        return map_get(&s->kinds, str_of(type));
}

static struct kind *kind_of(struct store *s, struct str type)
{
        struct kind *k = map_get(&s->kinds, type);

        if (!k) {
                k = xcalloc(1, sizeof(*k) + type.n + 1);
                memcpy(k->name, type.p, type.n);
                map_put(&s->kinds, str_n(k->name, type.n), k);
        }
        return k;
}

const char *store_type(struct store *s, const char *type)
{
        return kind_of(s, str_of(type))->name;
}

static struct slot *slot_of(struct kind *k, struct str key)
{
        struct tree_node *found = tree_find(&k->slots, key);
        struct slot *slot;

        if (found)
                return CONTAINER_OF(found, struct slot, node);
        slot = xcalloc(1, MAX(sizeof(*slot), offsetof(struct slot, key) + key.n));
        memcpy(slot->key, key.p, key.n);
        tree_add(&k->slots, &slot->node, str_n(slot->key, key.n));
        return slot;
}

static void slot_free_if_unused(struct kind *k, struct slot *slot)
{
        if (slot->durable || slot->newest || slot->staged)
                return;
        tree_remove(&k->slots, &slot->node);
        free(slot);
}

static void count_ns(struct kind *k, struct str ns, bool is_more)
{
        struct ns_count *c = map_get(&k->by_ns, ns);

        if (!c) {
                c = xcalloc(1, sizeof(*c) + ns.n + 1);
                memcpy(c->name, ns.p, ns.n);
                map_put(&k->by_ns, str_n(c->name, ns.n), c);
        }
        c->n += is_more ? 1 : (size_t)-1;
        if (c->n == 0) {
                map_remove(&k->by_ns, ns);
                free(c);
        }
}

static void replace(struct object **place, struct object *o)
{
        struct object *old = *place;

        *place = object_ref(o);
        object_unref(old);
}

/* Makes C, the next revision, what readers see. The history takes its references over. */
static void apply(struct store *s, struct kind *k, struct slot *slot, const struct change *c)
{
        bool was = slot->durable, is = !c->is_delete;

        if (was != is) {
                k->count += is ? 1 : (size_t)-1;
                count_ns(k, str_of(c->after->ns), is);
        }
        replace(&slot->durable, is ? c->after : NULL);
        history_push(&s->history, c);
}

/* ---- listeners */

void store_listen(struct store *s, struct store_listener *l)
{
        list_append(&s->listeners, &l->node);
}

void store_unlisten(struct store_listener *l)
{
        list_remove(&l->node);
}

/*
 * The list is turned round once, up to a mark: what is left to call is always in front, so any listener may leave, and who
 * comes meanwhile stands behind the mark and does not hear of this change.
 */
static void tell(struct store *s, const struct change *c)
{
        struct list mark, *node;

        if (list_empty(&s->listeners))
                return;
        list_init(&mark);
        list_append(&s->listeners, &mark);
        while ((node = s->listeners.next) != &mark) {
                struct store_listener *l = CONTAINER_OF(node, struct store_listener, node);

                list_remove(node);
                list_append(&s->listeners, node);
                l->fn(l, c);
        }
        list_remove(&mark);
}

/* ---- the commit, on the worker */

static int write_group(struct commit *c, struct err *err)
{
        list_foreach (node, &c->group) {
                const struct staged *w = CONTAINER_OF(node, struct staged, node);
                const struct object *o = w->change.after;

                if (!o)
                        continue;
                if (store_file_put(c->file,
                                   &(struct store_row){.rev = o->rev,
                                                       .type = str_of(o->type),
                                                       .ns = str_of(o->ns),
                                                       .name = str_of(o->name),
                                                       .text = o->text,
                                                       .is_delete = w->change.is_delete},
                                   err) < 0)
                        return -1;
        }
        return 0;
}

static int drop_rows(struct commit *c, struct err *err)
{
        for (size_t i = 0; i < c->n_drop; i++)
                if (store_file_drop(c->file, c->drop[i], err) < 0)
                        return -1;
        return c->oldest ? store_file_set_oldest(c->file, c->oldest, err) : 0;
}

static void execute(struct commit *c)
{
        err_clear(&c->err);
        c->result = store_file_begin(c->file, &c->err);
        if (c->result == 0)
                c->result = write_group(c, &c->err);
        if (c->result == 0)
                c->result = drop_rows(c, &c->err);
        if (c->result == 0)
                c->result = store_file_commit(c->file, &c->err);
}

static void commit_run(struct work *work)
{
        struct commit *c = CONTAINER_OF(work, struct commit, work);

        pthread_mutex_lock(&c->lock);
        if (c->state == COMMIT_TAKEN) {
                pthread_mutex_unlock(&c->lock);
                return;
        }
        c->state = COMMIT_RUNNING;
        pthread_mutex_unlock(&c->lock);
        execute(c);
        pthread_mutex_lock(&c->lock);
        c->state = COMMIT_DONE;
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
}

static void commit_free(struct commit *c)
{
        pthread_cond_destroy(&c->changed);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

static void commit_done(struct work *work);

static struct commit *commit_new(struct store *s)
{
        struct commit *c = xcalloc(1, sizeof(*c));

        c->work.run = commit_run;
        c->work.done = commit_done;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->changed, NULL);
        c->store = s;
        c->file = s->file;
        list_init(&c->group);
        return c;
}

/* ---- the commit, in the loop */

static void failed(struct store *s, const struct err *err)
{
        if (s->failed)
                return;
        s->failed = true;
        if (s->on_failure)
                s->on_failure(s->arg, err);
}

static void on_turn_end(struct defer *d);

static void at_turn_end(struct store *s)
{
        if (!s->turn_end.pending)
                defer_run(s->loop, &s->turn_end, on_turn_end);
}

static void trim_history(struct store *s)
{
        usec_t next;

        history_trim(&s->history, loop_now(s->loop));
        next = history_next(&s->history);
        if (next == USEC_MAX)
                timer_cancel(&s->trim);
        else if (!timer_pending(&s->trim))
                timer_at(&s->trim, next);
        at_turn_end(s);
}

static void on_trim(struct timer *t)
{
        trim_history(CONTAINER_OF(t, struct store, trim));
}

/* W is durable: readers, listeners and its writer learn of it in that order. */
static void settle(struct store *s, struct staged *w)
{
        if (w->change.after) {
                w->change.at = loop_now(s->loop);
                w->slot->staged--;
                apply(s, w->kind, w->slot, &w->change);
                slot_free_if_unused(w->kind, w->slot);
                tell(s, &w->change);
        }
        if (w->done)
                w->done(w->arg);
        free(w);
}

static struct staged *first_staged(struct store *s)
{
        /* The analyzer does not see that the list loses its first node before that is freed. */
        return CONTAINER_OF(s->staged.next, struct staged, node); /* NOLINT(clang-analyzer-unix.Malloc) */
}

static void commit_done(struct work *work)
{
        struct commit *c = CONTAINER_OF(work, struct commit, work);
        struct store *s = c->store;
        struct list *node;

        if (!s) {
                commit_free(c);
                return;
        }
        c->state = COMMIT_IDLE;
        s->committing = false;
        if (c->result < 0) {
                failed(s, &c->err);
                return;
        }
        while ((node = list_pop(&c->group)))
                settle(s, CONTAINER_OF(node, struct staged, node));
        /* Who waits for what is durable by now. */
        while (!list_empty(&s->staged) && !first_staged(s)->change.after)
                settle(s, CONTAINER_OF(list_pop(&s->staged), struct staged, node));
        trim_history(s);
}

static void take_group(struct store *s, struct commit *c)
{
        struct list *node;

        c->n_drop = 0;
        c->oldest = 0;
        while ((node = list_pop(&s->staged)))
                list_append(&c->group, node);
}

/* Rows that nobody needs: a batch when it is worth a commit of its own, and never twice in front of writes. */
static bool take_rows(struct store *s, struct commit *c)
{
        bool just_now = c->oldest && !list_empty(&s->staged);

        if (just_now || (!s->compact_now && history_rows(&s->history) < DROP_BATCH))
                return false;
        c->n_drop = history_take_rows(&s->history, c->drop, DROP_BATCH);
        c->oldest = s->history.oldest;
        s->compact_now = s->compact_now && history_rows(&s->history);
        return true;
}

static void on_turn_end(struct defer *d)
{
        struct store *s = CONTAINER_OF(d, struct store, turn_end);

        history_turn(&s->history);
        if (s->committing || s->failed)
                return;
        if (!take_rows(s, s->commit)) {
                if (list_empty(&s->staged))
                        return;
                take_group(s, s->commit);
        }
        s->committing = true;
        s->commit->state = COMMIT_QUEUED;
        loop_offload(s->loop, &s->commit->work);
}

/* ---- staging */

uint64_t store_stage(struct store *s, const struct store_write *w, void (*done)(void *arg), void *arg)
{
        _cleanup_(key_done) struct key key = {.large = NULL};
        struct staged *st;

        s->last++;
        if (s->failed)
                return s->last;
        st = xcalloc(1, sizeof(*st));
        st->kind = kind_of(s, str_of(w->type));
        st->slot = slot_of(st->kind, key_join(&key, str_of(w->ns), str_of(w->name)));
        st->done = done;
        st->arg = arg;
        st->change = (struct change){
                .rev = s->last,
                .before = object_ref(st->slot->newest),
                .after = object_new(s->last, st->kind->name, str_of(w->ns), str_of(w->name), w->text),
                .is_delete = w->is_delete,
        };
        replace(&st->slot->newest, w->is_delete ? NULL : st->change.after);
        st->slot->staged++;
        list_append(&s->staged, &st->node);
        at_turn_end(s);
        return s->last;
}

void store_after(struct store *s, void (*done)(void *arg), void *arg)
{
        struct staged *st;

        if (s->last == s->history.newest) {
                done(arg);
                return;
        }
        if (s->failed)
                return;
        st = xcalloc(1, sizeof(*st));
        st->done = done;
        st->arg = arg;
        /* Behind the last write: also when that is under way already, for its group is not ours to change any more. */
        list_append(&s->staged, &st->node);
        at_turn_end(s);
}

void store_compact(struct store *s, uint64_t rev)
{
        history_drop(&s->history, rev);
        s->compact_now = true;
        at_turn_end(s);
}

/* ---- life */

struct loading {
        struct store *s;
        uint64_t oldest;
};

/* Rows come in the order of revisions; those up to `oldest` are what was left of a history that has gone. */
static void load_row(void *arg, const struct store_row *row)
{
        struct loading *l = arg;
        struct store *s = l->s;
        _cleanup_(key_done) struct key key = {.large = NULL};
        struct kind *k = kind_of(s, row->type);
        struct slot *slot = slot_of(k, key_join(&key, row->ns, row->name));
        struct change c = {
                .rev = row->rev,
                .before = object_ref(slot->durable),
                .after = object_new(row->rev, k->name, row->ns, row->name, row->text),
                .is_delete = row->is_delete,
                .at = loop_now(s->loop),
        };

        /* A gap is not to be: what is before it cannot be told any more. */
        if (row->rev != s->history.newest + 1) {
                history_drop(&s->history, s->history.newest);
                s->history.oldest = s->history.newest = row->rev - 1;
        }
        apply(s, k, slot, &c);
        replace(&slot->newest, slot->durable);
        if (row->rev <= l->oldest)
                history_drop(&s->history, row->rev);
        else
                history_trim(&s->history, loop_now(s->loop));
        history_turn(&s->history);
        slot_free_if_unused(k, slot);
}

static int load(struct store *s, struct err *err)
{
        struct loading l = {.s = s};

        if (store_file_load(s->file, load_row, &l, &l.oldest, err) < 0)
                return -1;
        if (s->history.newest < l.oldest) /* even the newest rows were deleted */
                s->history.oldest = s->history.newest = l.oldest;
        s->last = s->history.newest;
        trim_history(s);
        return 0;
}

struct store *store_open(struct loop *loop, const struct store_config *config, struct err *err)
{
        _cleanup_(store_close) struct store *s = xcalloc(1, sizeof(*s));

        s->loop = loop;
        s->on_failure = config->on_failure;
        s->arg = config->arg;
        list_init(&s->staged);
        list_init(&s->listeners);
        list_init(&s->turn_end.node);
        timer_init(&s->trim, loop, on_trim);
        history_init(&s->history, config, FIRST_REV);
        s->last = FIRST_REV;
        s->file = store_file_open(config->path, config->durable, err);
        if (!s->file || load(s, err) < 0)
                return NULL;
        s->commit = commit_new(s);
        return TAKE_PTR(s);
}

/* What the worker has is finished by it or, when it has not begun (something else holds it up), here. */
static void finish_commit(struct commit *c)
{
        pthread_mutex_lock(&c->lock);
        if (c->state == COMMIT_QUEUED) {
                c->state = COMMIT_TAKEN;
                pthread_mutex_unlock(&c->lock);
                execute(c);
                return;
        }
        while (c->state == COMMIT_RUNNING)
                pthread_cond_wait(&c->changed, &c->lock);
        pthread_mutex_unlock(&c->lock);
}

static void forget_group(struct list *group)
{
        struct list *node;

        while ((node = list_pop(group))) {
                struct staged *w = CONTAINER_OF(node, struct staged, node);

                object_unref(w->change.before);
                object_unref(w->change.after);
                free(w);
        }
}

static void commit_rest(struct store *s)
{
        struct commit *c = s->commit;

        if (!c)
                return;
        c->store = NULL;
        if (s->committing) {
                finish_commit(c);
                if (c->result < 0)
                        failed(s, &c->err);
        }
        forget_group(&c->group);
        if (!s->failed && !list_empty(&s->staged)) {
                take_group(s, c);
                execute(c);
                if (c->result < 0)
                        failed(s, &c->err);
                forget_group(&c->group);
        }
        forget_group(&s->staged);
        if (!s->committing) /* else the loop still has it, and commit_done() frees it */
                commit_free(c);
}

static void kind_free(struct kind *k)
{
        struct ns_count *c;

        for (struct tree_node *node; (node = k->slots.root);) {
                struct slot *slot = CONTAINER_OF(node, struct slot, node);

                tree_remove(&k->slots, node);
                object_unref(slot->durable);
                object_unref(slot->newest);
                free(slot);
        }
        map_foreach (i, &k->by_ns, c)
                free(c);
        map_done(&k->by_ns);
        free(k);
}

void store_close(struct store *s)
{
        struct kind *k;

        if (!s)
                return;
        if (s->turn_end.pending)
                defer_cancel(&s->turn_end);
        timer_cancel(&s->trim);
        commit_rest(s);
        store_file_close(s->file);
        history_done(&s->history);
        map_foreach (i, &s->kinds, k)
                kind_free(k);
        map_done(&s->kinds);
        free(s);
}
