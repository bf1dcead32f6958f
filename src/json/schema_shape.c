/*
 * What the API server does to a resource before it validates it: nulls that may not be are dropped, defaults filled
 * in, unknown members pruned.
 */
#include "json/internal.h"
#include "json/path.h"
#include "json/schema_internal.h"

/* ---- defaults */

static bool is_forbidden_null(const struct json *j, const struct schema_node *s)
{
        return j->type == JSON_NULL && s && !s->nullable;
}

static void drop_nulls(const struct schema_node *s, struct json *value)
{
        struct json *next, *prev = value->type >= JSON_ARRAY ? value->last : NULL;

        for (struct json *child = json_first(value); child; child = next) {
                bool member = value->type == JSON_OBJECT;
                const struct schema_node *of = !s       ? NULL
                                               : member ? schema_member(s, json_key(child))
                                                        : s->items;

                next = json_next(value, child);
                if (member && of && is_forbidden_null(child, of) && !of->fallback) {
                        json_detach(value, prev, child);
                        continue;
                }
                drop_nulls(of, child);
                prev = child;
        }
}

static void add_missing(const struct schema_node *s, struct json *object, struct arena *a)
{
        struct lookup there;

        lookup_init(&there, object);
        for (size_t i = 0; i < s->n_properties; i++) {
                const struct schema_property *p = &s->properties[i];

                if (p->node->fallback && !lookup_get(&there, p->name))
                        json_add(a, object, p->name, json_copy(a, p->node->fallback));
        }
        lookup_done(&there);
}

static void fill_in(const struct schema_node *s, struct json *value, struct arena *a)
{
        struct json *next;

        if (!s || value->type < JSON_ARRAY)
                return;
        if (value->type == JSON_OBJECT)
                add_missing(s, value, a);
        for (struct json *child = json_first(value); child; child = next) {
                const struct schema_node *of = value->type == JSON_OBJECT ? schema_member(s, json_key(child))
                                                                          : s->items;

                next = json_next(value, child);
                if (is_forbidden_null(child, of) && of->fallback)
                        child = json_replace(value, child, json_copy(a, of->fallback));
                fill_in(of, child, a);
        }
}

void schema_default(const struct schema *s, struct json *value, struct arena *a)
{
        drop_nulls(s->root, value);
        fill_in(s->root, value, a);
}

/* ---- pruning */

struct pruner {
        struct buf *path; /* of the value looked at; NULL: nobody wants to know */
        struct buf *dropped;
};

enum {
        PRUNE_RESOURCE = 1, /* apiVersion, kind and metadata stay */
        PRUNE_PRESERVE = 2, /* unknown members stay */
};

static void prune(struct pruner *p, const struct schema_node *s, struct json *value, unsigned flags);

static void note_dropped(struct pruner *p, const struct json *child)
{
        size_t n;

        if (!p->dropped)
                return;
        n = p->path->n;
        json_path_add_key(p->path, json_key(child));
        buf_addstr(p->dropped, buf_str(p->path));
        buf_addc(p->dropped, '\n');
        p->path->n = n;
}

/* Prunes CHILD of a container; INDEX is its place in an array. */
static void prune_child(struct pruner *p, const struct schema_node *s, struct json *child, size_t index,
                        unsigned flags)
{
        size_t n = p->path ? p->path->n : 0;

        if (child->type < JSON_ARRAY)
                return;
        if (p->path && child->key)
                json_path_add_key(p->path, json_key(child));
        else if (p->path)
                json_path_add_index(p->path, index);
        prune(p, s, child, flags | (s && s->embedded ? PRUNE_RESOURCE : 0));
        if (p->path)
                p->path->n = n;
}

static void prune_object(struct pruner *p, const struct schema_node *s, struct json *object, unsigned flags)
{
        struct json *next, *prev = object->last;

        for (struct json *child = json_first(object); child; child = next) {
                const struct schema_node *of = schema_member(s, json_key(child));
                bool any = s && s->additional_any;

                next = json_next(object, child);
                if ((flags & PRUNE_RESOURCE) && schema_meta_field(json_key(child))) {
                        prev = child;
                } else if (of || any) {
                        prune_child(p, of, child, 0, 0);
                        prev = child;
                } else if (flags & PRUNE_PRESERVE) {
                        prev = child;
                } else {
                        note_dropped(p, child);
                        json_detach(object, prev, child);
                }
        }
}

/* A list that preserves unknown members preserves those of its elements too. */
static void prune_array(struct pruner *p, const struct schema_node *s, struct json *array, unsigned flags)
{
        const struct schema_node *items = s ? s->items : NULL;
        size_t i = 0;

        if (!items && (flags & PRUNE_PRESERVE))
                return;
        json_foreach (child, array)
                prune_child(p, items, child, i++, flags & PRUNE_PRESERVE);
}

static void prune(struct pruner *p, const struct schema_node *s, struct json *value, unsigned flags)
{
        if (s && s->preserve)
                flags |= PRUNE_PRESERVE;
        if (value->type == JSON_OBJECT)
                prune_object(p, s, value, flags);
        else if (value->type == JSON_ARRAY)
                prune_array(p, s, value, flags);
}

void schema_prune_node(const struct schema_node *s, struct json *value, bool resource, struct buf *dropped)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(64 << 10);
        struct pruner p = {.path = dropped ? &path : NULL, .dropped = dropped};

        prune(&p, s, value, resource ? PRUNE_RESOURCE : 0);
}

void schema_prune(const struct schema *s, struct json *value, struct buf *dropped)
{
        schema_prune_node(s->root, value, true, dropped);
}
