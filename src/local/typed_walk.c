/* What a value is to its type, its members and elements: what all walks over objects have in common. */
#include "local/fields_internal.h"

/* Types that have a name are built in: nothing of a custom resource reaches into them. */
static struct type type_below(const struct shape *shape, bool open)
{
        return (struct type){shape, open && !shape->name};
}

struct type type_of_root(const struct shape *shape)
{
        if (shape->deduced)
                return (struct type){&SHAPE_ANYTHING, true};
        return (struct type){shape, false};
}

/* "type: object" that keeps unknown fields and has no others: a map of anything, not anything. */
static bool is_open_map(const struct shape *s)
{
        return s->kind == SHAPE_ANY && s->schema && streq(json_str(s->schema, "type"), "object");
}

bool type_is_any(struct type t)
{
        return t.shape->kind == SHAPE_ANY && !is_open_map(t.shape);
}

enum typed_kind type_kind(struct type t, const struct json *value)
{
        switch (t.shape->kind) {
        case SHAPE_OBJECT:
        case SHAPE_MAP:
                return TYPED_MAP;
        case SHAPE_LIST:
                return TYPED_LIST;
        case SHAPE_ANY:
                if (is_open_map(t.shape) || !value || value->type == JSON_NULL || value->type == JSON_OBJECT)
                        return TYPED_MAP;
                return value->type == JSON_ARRAY ? TYPED_LIST : TYPED_SCALAR;
        default:
                return TYPED_SCALAR;
        }
}

bool type_is_atomic(struct type t, enum typed_kind kind)
{
        if (kind == TYPED_SCALAR)
                return true;
        if (type_is_any(t))
                return kind == TYPED_LIST || !t.open;
        return kind == TYPED_LIST ? t.shape->list == LIST_ATOMIC : t.shape->atomic;
}

bool type_member(struct type t, struct str name, struct type *ret, bool *ret_known)
{
        const struct shape_field *field = shape_find(t.shape, name);
        bool open = t.open || (t.shape->kind == SHAPE_OBJECT && t.shape->preserve);

        *ret_known = true;
        if (field) {
                *ret = type_below(field->shape, open);
                return true;
        }
        if (t.shape->kind == SHAPE_MAP) {
                *ret = type_below(t.shape->elem, open);
                return false;
        }
        *ret = (struct type){&SHAPE_ANYTHING, open};
        *ret_known = t.shape->kind != SHAPE_OBJECT || open;
        return false;
}

struct type type_elem(struct type t)
{
        if (t.shape->kind == SHAPE_LIST)
                return type_below(t.shape->elem, t.open);
        return (struct type){&SHAPE_ANYTHING, false};
}

bool type_is_keyed(struct type t)
{
        return t.shape->kind == SHAPE_LIST && t.shape->list != LIST_ATOMIC;
}

/* ---- elements of lists */

/* Defaults of keys. Built-in types have them in Go, not in what is published: required keys are "" or 0, and one is TCP
 * (in containers; a port of a Service has none in 1.20). */
static const struct json TCP = {.type = JSON_STRING, .text = "TCP", .len = 3};
static const struct json NO_TEXT = {.type = JSON_STRING, .text = "", .len = 0};
static const struct json ZERO = {.type = JSON_NUMBER, .text = "0", .len = 1};

static const struct json *key_default(const struct shape *elem, const char *key)
{
        const struct shape_field *field = shape_find(elem, str_of(key));
        const struct json *value;

        if (!field)
                return NULL;
        if (elem->name) {
                if (streq(elem->name, "io.k8s.api.core.v1.ContainerPort") && streq(key, "protocol"))
                        return &TCP;
                return !field->required ? NULL : field->shape->kind == SHAPE_STRING ? &NO_TEXT : &ZERO;
        }
        value = field->shape->schema ? json_at(field->shape->schema, "default") : NULL;
        return value && value->type != JSON_NULL ? value : NULL;
}

/* The key that comes after PREVIOUS (NULL: the first) in the order of names. */
static const char *next_key(const struct shape *list, const char *previous)
{
        const char *next = NULL;

        for (const char *const *key = list->keys; *key; key++)
                if ((!previous || strcmp(*key, previous) > 0) && (!next || strcmp(*key, next) < 0))
                        next = *key;
        return next;
}

/* Sets live no longer than the objects they are about, so what is below the node is borrowed. */
static void add_key(struct arena *a, struct json *keys, const char *name, const struct json *value)
{
        struct json *node = arena_memdup(a, value, sizeof(*value));

        node->key = name;
        node->key_len = (uint32_t)strlen(name);
        json_ring_add(keys, node);
}

static const char *keyed_element(struct arena *a, const struct shape *list, const struct json *item,
                                 struct element *ret)
{
        struct json *keys;

        if (item->type == JSON_NULL)
                return "associative list with keys may not have a null element";
        if (item->type != JSON_OBJECT)
                return "associative list with keys may not have non-map elements";
        keys = json_object(a);
        for (const char *key = next_key(list, NULL); key; key = next_key(list, key)) {
                const struct json *value = json_at(item, key);

                value = value ? value : key_default(list->elem, key);
                if (!value)
                        return arena_printf(a,
                                            "associative list with keys has an element that omits key field "
                                            "\"%s\" (and doesn't have default value)",
                                            key);
                add_key(a, keys, key, value);
        }
        *ret = element_of_keys(a, keys);
        return NULL;
}

static const char *set_element(struct arena *a, const struct json *item, struct element *ret)
{
        switch ((enum json_type)item->type) {
        case JSON_OBJECT:
                return "associative list without keys has an element that's a map type";
        case JSON_ARRAY:
                return "not supported: associative list with lists as elements";
        case JSON_NULL:
                return "associative list without keys has an element that's an explicit null";
        default:
                *ret = element_of_value(a, item);
                return NULL;
        }
}

const char *item_element(struct arena *a, struct type t, const struct json *item, size_t index,
                         struct element *ret)
{
        if (!type_is_keyed(t)) {
                ret->kind = ELEMENT_INDEX;
                ret->text = str_of(arena_printf(a, "%zu", index));
                ret->value = NULL;
                return NULL;
        }
        if (t.shape->list == LIST_MAP)
                return keyed_element(a, t.shape, item, ret);
        return set_element(a, item, ret);
}

static int by_element(const void *x, const void *y)
{
        const struct item *l = x, *r = y;
        int cmp = element_cmp(&l->at, &r->at);

        return cmp ? cmp : l->index < r->index ? -1 : l->index > r->index;
}

/* Most objects are small, or sorted already. */
static void sort_items(struct item *v, size_t n)
{
        bool sorted = true;

        for (size_t i = 1; i < n && sorted; i++)
                sorted = by_element(&v[i - 1], &v[i]) <= 0;
        if (!sorted)
                qsort(v, n, sizeof(*v), by_element);
}

struct items items_of_map(struct arena *a, const struct json *value)
{
        struct items items = {0};

        if (!json_is(value, JSON_OBJECT) || !value->len)
                return items;
        items.v = arena_alloc(a, value->len * sizeof(*items.v));
        json_foreach (member, value) {
                items.v[items.n] = (struct item){
                        .at = {ELEMENT_FIELD, str_n(member->key, member->key_len), NULL},
                        .value = member,
                        .index = items.n,
                };
                items.n++;
        }
        sort_items(items.v, items.n);
        return items;
}

struct items items_of_list(struct arena *a, struct type t, const struct json *value)
{
        struct items items = {0};
        size_t index = 0, kept = 0;

        if (!json_is(value, JSON_ARRAY) || !value->len)
                return items;
        items.v = arena_alloc(a, value->len * sizeof(*items.v));
        json_foreach (item, value) {
                struct item *to = &items.v[items.n];

                *to = (struct item){.value = item, .index = index};
                items.n += !item_element(a, t, item, index++, &to->at);
        }
        sort_items(items.v, items.n);
        for (size_t i = 0; i < items.n; i++)
                if (!kept || element_cmp(&items.v[kept - 1].at, &items.v[i].at) != 0)
                        items.v[kept++] = items.v[i];
        items.n = kept;
        return items;
}
