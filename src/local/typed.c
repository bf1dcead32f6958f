/*
 * Walks over objects with their types: the fields of a value, the difference of two, the merge of an applied
 * configuration, the removal of items.
 *
 * A value that its type says nothing about is what it looks like; where two such values look different (a map became a
 * string), both ways of looking at them count. Absent (NULL) and null are different things, and both are empty maps.
 */
#include "local/fields_internal.h"

static bool is_empty(const struct json *value, enum typed_kind kind)
{
        return !value || !json_is(value, kind == TYPED_MAP ? JSON_OBJECT : JSON_ARRAY) || !value->len;
}

static struct items items_of(struct arena *a, struct type t, enum typed_kind kind, const struct json *value)
{
        return kind == TYPED_MAP ? items_of_map(a, value) : items_of_list(a, t, value);
}

static struct type type_of_item(struct type t, enum typed_kind kind, const struct element *at)
{
        struct type ret;
        bool known;

        if (kind == TYPED_LIST || !at)
                return type_elem(t);
        type_member(t, at->text, &ret, &known);
        return ret;
}

/* ---- the fields of a value */

static fields_set fields_of(struct arena *a, struct type t, const struct json *value, bool *ret_self)
{
        enum typed_kind kind = type_kind(t, value);
        struct fields *first = NULL, **tail = &first;
        struct items items;

        *ret_self = type_is_atomic(t, kind);
        if (*ret_self)
                return NULL;
        items = items_of(a, t, kind, value);
        for (size_t i = 0; i < items.n; i++) {
                struct type below = type_elem(t);
                bool self, known, declared = false;
                fields_set children;

                if (kind == TYPED_MAP)
                        declared = type_member(t, items.v[i].at.text, &below, &known);
                children = fields_of(a, below, items.v[i].value, &self);
                fields_append(a, &tail, &items.v[i].at, self || !declared, children);
        }
        return first;
}

fields_set typed_fields(struct arena *a, struct type t, const struct json *value)
{
        bool self;

        return fields_of(a, t, value, &self);
}

/* ---- the difference of two values */

enum { SELF_ADDED = 1, SELF_MODIFIED = 2, SELF_REMOVED = 4 };

struct tails {
        struct fields *first[3], **tail[3];
};

static unsigned leaf_change(const struct json *from, const struct json *to)
{
        if (!from || !to)
                return !from ? SELF_ADDED : SELF_REMOVED;
        return json_equal(from, to) ? 0 : SELF_MODIFIED;
}

static unsigned compare(struct arena *a, struct type t, const struct json *from, const struct json *to,
                        struct typed_diff *ret);

static void compare_item(struct arena *a, struct type t, enum typed_kind kind, const struct item *from,
                         const struct item *to, struct tails *out)
{
        const struct element *at = from ? &from->at : &to->at;
        struct typed_diff below;
        unsigned self = compare(a, type_of_item(t, kind, at), from ? from->value : NULL,
                                to ? to->value : NULL, &below);

        fields_append(a, &out->tail[0], at, self & SELF_ADDED, below.added);
        fields_append(a, &out->tail[1], at, self & SELF_MODIFIED, below.modified);
        fields_append(a, &out->tail[2], at, self & SELF_REMOVED, below.removed);
}

static unsigned compare_as(struct arena *a, struct type t, enum typed_kind kind, const struct json *from,
                           const struct json *to, struct typed_diff *ret)
{
        struct tails out = {.tail = {&out.first[0], &out.first[1], &out.first[2]}};
        struct items x, y;
        size_t i = 0, j = 0;

        if (type_is_atomic(t, kind) || (is_empty(from, kind) && is_empty(to, kind)))
                return leaf_change(from, to);
        x = items_of(a, t, kind, from);
        y = items_of(a, t, kind, to);
        while (i < x.n || j < y.n) {
                int cmp = i >= x.n ? 1 : j >= y.n ? -1 : element_cmp(&x.v[i].at, &y.v[j].at);

                compare_item(a, t, kind, cmp <= 0 ? &x.v[i] : NULL, cmp >= 0 ? &y.v[j] : NULL, &out);
                i += cmp <= 0;
                j += cmp >= 0;
        }
        *ret = (struct typed_diff){out.first[0], out.first[1], out.first[2]};
        return !from ? SELF_ADDED : !to ? SELF_REMOVED : 0;
}

static unsigned compare(struct arena *a, struct type t, const struct json *from, const struct json *to,
                        struct typed_diff *ret)
{
        enum typed_kind before = type_kind(t, from), after = type_kind(t, to);
        unsigned self;

        *ret = (struct typed_diff){0};
        /* Most of an object does not change, and this is the quicker way to see it. */
        if (from && to && json_equal(from, to))
                return 0;
        self = compare_as(a, t, after, from, to, ret);
        /* At most one of two kinds has items. */
        if (before != after)
                self |= compare_as(a, t, before, from, to, ret);
        return self;
}

void typed_compare(struct arena *a, struct type t, const struct json *from, const struct json *to,
                   struct typed_diff *ret)
{
        compare(a, t, from, to, ret);
}

/* ---- new documents */

static void attach(struct arena *a, struct json *container, const struct json *named, struct json *child)
{
        if (container->type == JSON_OBJECT) {
                child->key = arena_strndup(a, named->key, named->key_len);
                child->key_len = named->key_len;
        }
        json_ring_add(container, child);
}

static const struct item *find_item(const struct items *items, const struct element *at)
{
        size_t low = 0, high = items->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int cmp = element_cmp(at, &items->v[middle].at);

                if (cmp == 0)
                        return &items->v[middle];
                if (cmp < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

/* The same items in the order of the document. */
static struct item **in_order(struct arena *a, const struct items *items, size_t len)
{
        struct item **list = arena_new_array(a, struct item *, len + 1);

        for (size_t i = 0; i < items->n; i++)
                list[items->v[i].index] = &items->v[i];
        return list;
}

static struct json *new_container(struct arena *a, enum typed_kind kind)
{
        return kind == TYPED_MAP ? json_object(a) : json_array(a);
}

struct json *typed_merge(struct arena *a, struct type t, const struct json *live, const struct json *config)
{
        enum typed_kind kind = type_kind(t, config);
        struct items x, y;
        struct item **order;
        struct json *out;

        if (type_is_atomic(t, kind) || (is_empty(live, kind) && is_empty(config, kind)))
                return json_copy(a, config ? config : live);
        x = items_of(a, t, kind, live);
        y = items_of(a, t, kind, config);
        out = new_container(a, kind);
        order = in_order(a, &x, json_len(live));
        for (size_t i = 0; i < json_len(live); i++) {
                const struct item *other = order[i] ? find_item(&y, &order[i]->at) : NULL;

                if (order[i])
                        attach(a, out, order[i]->value,
                               typed_merge(a, type_of_item(t, kind, &order[i]->at), order[i]->value,
                                           other ? other->value : NULL));
        }
        order = in_order(a, &y, json_len(config));
        for (size_t i = 0; i < json_len(config); i++)
                if (order[i] && !find_item(&x, &order[i]->at))
                        attach(a, out, order[i]->value,
                               typed_merge(a, type_of_item(t, kind, &order[i]->at), NULL, order[i]->value));
        return out;
}

struct json *typed_remove(struct arena *a, struct type t, const struct json *value, fields_set set)
{
        enum typed_kind kind = type_kind(t, value);
        struct items items;
        struct item **order;
        struct json *out;

        if (kind == TYPED_SCALAR)
                return json_copy(a, value);
        if (is_empty(value, kind) || type_is_atomic(t, kind))
                return json_null(a);
        items = items_of(a, t, kind, value);
        order = in_order(a, &items, value->len);
        out = new_container(a, kind);
        for (size_t i = 0; i < value->len; i++) {
                const struct fields *at = order[i] ? fields_find(set, &order[i]->at) : NULL;

                if (!order[i] || (at && at->member))
                        continue;
                attach(a, out, order[i]->value,
                       at ? typed_remove(a, type_of_item(t, kind, &order[i]->at), order[i]->value,
                                         at->children)
                          : json_copy(a, order[i]->value));
        }
        return out->len ? out : json_null(a);
}

/* ---- sets that were written when the type was another */

struct path {
        const struct path *up;
        const struct element *at;
};

struct reconcile {
        struct arena *a;
        struct type root;
        const struct json *live;
        bool has_live_fields;
        fields_set live_fields; /* of LIVE, made when first asked for */
};

struct reconciled {
        fields_set add, drop;
        bool add_self, drop_self;
};

static const struct fields *live_at(struct reconcile *r, const struct path *path)
{
        const struct fields *up;

        if (!path->up) {
                if (!r->has_live_fields)
                        r->live_fields = typed_fields(r->a, r->root, r->live);
                r->has_live_fields = true;
                return fields_find(r->live_fields, path->at);
        }
        up = live_at(r, path->up);
        return up ? fields_find(up->children, path->at) : NULL;
}

static void reconcile(struct reconcile *r, struct type t, fields_set set, bool whole, const struct path *path,
                      struct reconciled *ret);

static void reconcile_items(struct reconcile *r, struct type t, enum typed_kind kind, fields_set set,
                            const struct path *path, struct reconciled *ret)
{
        struct fields *add = NULL, *drop = NULL, **add_tail = &add, **drop_tail = &drop;

        for (; set; set = set->next) {
                struct path here = {path, &set->at};
                struct reconciled below = {0};
                struct type type = type_elem(t);
                bool known = true;

                if (kind == TYPED_MAP)
                        type_member(t, set->at.kind == ELEMENT_FIELD ? set->at.text : STR(""), &type, &known);
                if (known)
                        reconcile(r, type, set->children, set->member && !set->children, &here, &below);
                fields_append(r->a, &add_tail, &set->at, below.add_self, below.add);
                fields_append(r->a, &drop_tail, &set->at, below.drop_self, below.drop);
        }
        ret->add = fields_union(r->a, ret->add, add);
        ret->drop = drop;
}

/* WHOLE: the element is owned, and nothing below it. */
static void reconcile(struct reconcile *r, struct type t, fields_set set, bool whole, const struct path *path,
                      struct reconciled *ret)
{
        enum typed_kind kind = type_kind(t, NULL);
        bool atomic = type_is_atomic(t, kind);
        const struct fields *live;

        if (kind == TYPED_SCALAR)
                return;
        if (path && !whole && atomic) {
                ret->add_self = ret->drop_self = kind == TYPED_LIST || set;
                return;
        }
        if (path && whole && !atomic) {
                live = live_at(r, path);
                ret->add_self = live && live->children;
                ret->add = ret->add_self ? live->children : NULL;
        }
        reconcile_items(r, t, kind, set, path, ret);
}

fields_set typed_reconcile(struct arena *a, struct type t, const struct json *live, fields_set set)
{
        struct reconcile r = {.a = a, .root = t, .live = live};
        struct reconciled result = {0};

        if (type_is_any(t))
                return set;
        reconcile(&r, t, set, false, NULL, &result);
        if (result.drop)
                set = fields_difference(a, set, result.drop, true);
        return result.add ? fields_union(a, set, result.add) : set;
}
