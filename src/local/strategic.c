/*
 * Strategic merge patch, as the API server applies it: the same order of steps, the same order of results, the same
 * words. The patch may be changed on the way, so the caller's is copied first.
 */
#include "local/strategic.h"

#include "local/fields_internal.h"

#define MARKER        "$patch"
#define RETAIN_KEYS   "$retainKeys"
#define DELETE_PREFIX "$deleteFromPrimitiveList"
#define ORDER_PREFIX  "$setElementOrder"

enum { TEXT_MAX = 1 << 16 };

struct merge {
        struct arena *a;
        struct err *err;
};

/* What the type says of a field that is merged. */
struct meta {
        const struct shape *shape; /* of the field, or of a list's elements */
        const char *merge_key;     /* "" for scalars */
        bool merge;                /* lists: merged, not replaced */
};

/* ---- wording */

static int fail_no_merge_key(struct merge *m, const struct json *item, const char *key)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

        go_print(&text, item);
        return err_set(m->err, E_INTERNAL, "map: %.*s does not contain declared merge key: %s",
                       STR_ARG(buf_str(&text)), key);
}

static const char *go_type(const struct json *value)
{
        static const char *const NAMES[] = {
                [JSON_NULL] = "%!s(<nil>)",      [JSON_BOOL] = "bool",
                [JSON_NUMBER] = "int64",         [JSON_STRING] = "string",
                [JSON_ARRAY] = "[]interface {}", [JSON_OBJECT] = "map[string]interface {}"};
        int64_t whole;

        if (value->type == JSON_NUMBER && !json_to_i64(value, &whole))
                return "float64";
        return NAMES[value->type];
}

static int fail_type(struct merge *m, const char *expected, const struct json *got)
{
        return err_set(m->err, E_INTERNAL, "expected a %s, but received a %s", expected, go_type(got));
}

static int fail_patch_type(struct merge *m, const struct json *directive, const struct json *patch)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX), what = BUF_INIT(TEXT_MAX);

        go_print(&text, patch);
        /* Go's %s of what is no string. */
        if (directive->type != JSON_STRING && directive->type < JSON_ARRAY)
                buf_printf(&what, "%%!s(%s=", directive->type == JSON_NULL ? "<nil>" : go_type(directive));
        go_print(&what, directive);
        if (directive->type != JSON_STRING && directive->type < JSON_ARRAY)
                buf_addc(&what, ')');
        return err_set(m->err, E_INTERNAL, "unknown patch type: %.*s in map: %.*s", STR_ARG(buf_str(&what)),
                       STR_ARG(buf_str(&text)));
}

/* reflect.Kind of the Go type. */
static const char *kind_name(const struct shape *s)
{
        switch (s->kind) {
        case SHAPE_OBJECT:
                return "struct";
        case SHAPE_MAP:
                return "map";
        case SHAPE_LIST:
                return "slice";
        case SHAPE_STRING:
                return "string";
        case SHAPE_BOOLEAN:
                return "bool";
        case SHAPE_INTEGER:
                return s->format ? s->format : "int64";
        default:
                return "struct";
        }
}

/* ---- what the type says */

static const struct shape_field *find_folded(const struct shape *s, struct str name)
{
        for (size_t i = 0; i < s->n_fields; i++)
                if (str_case_eq(str_of(s->fields[i].name), name))
                        return &s->fields[i];
        return NULL;
}

/* "Container" for io.k8s.api.core.v1.Container, as Go calls the type. */
static const char *type_name(const struct shape *s)
{
        const char *dot = s->name ? strrchr(s->name, '.') : NULL;

        return dot ? dot + 1 : s->name ? s->name : "";
}

static int look_up(struct merge *m, const struct shape *s, struct str name, bool list, struct meta *ret)
{
        const struct shape_field *field;

        if (s->kind != SHAPE_OBJECT)
                return err_set(m->err, E_INTERNAL,
                               "merging an object in json but data type is not struct, instead is: %s",
                               kind_name(s));
        field = shape_find(s, name);
        field = field ? field : find_folded(s, name);
        if (!field)
                return err_set(m->err, E_INTERNAL,
                               "unable to find api field in struct %s for the json field \"%.*s\"",
                               type_name(s), STR_ARG(name));
        *ret = (struct meta){field->shape, field->merge_key ? field->merge_key : "",
                             field->strategy & PATCH_MERGE};
        if (!list)
                return 0;
        if (field->shape->kind != SHAPE_LIST)
                return err_set(m->err, E_INTERNAL, "expected slice or array type, but got: %s", kind_name(s));
        ret->shape = field->shape->elem;
        return 0;
}

/* ---- lists */

static const struct json *find_by_key(const struct json *list, const char *key, const struct json *value)
{
        json_foreach (item, list)
                if (json_at(item, key) && json_equal(json_at(item, key), value))
                        return item;
        return NULL;
}

static bool has_value(const struct json *list, const struct json *value)
{
        json_foreach (item, list)
                if (json_equal(item, value))
                        return true;
        return false;
}

/* Where ITEM is in LIST, by its key or its value; -1: nowhere. */
static long index_of(const struct json *list, const struct json *item, const char *key)
{
        const struct json *value = key[0] ? json_at(item, key) : item;
        long i = 0;

        json_foreach (other, list) {
                const struct json *mine = key[0] ? json_at(other, key) : other;

                if (mine && value && json_equal(mine, value))
                        return i;
                i++;
        }
        return -1;
}

/* All elements of both lists must be of one type. *RET: that type; -1 with "no elements" when there is none. */
static int element_type(struct merge *m, const struct json *x, const struct json *y, enum json_type *ret)
{
        const struct json *const lists[] = {x, y};
        const struct json *first = NULL;

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (item, lists[i]) {
                        first = first ? first : item;
                        if (first->type == JSON_ARRAY)
                                return err_set(m->err, E_REFUSED, "lists of lists are not supported");
                        if (streq(go_type(item), go_type(first)))
                                continue;
                        {
                                _cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

                                buf_addc(&text, '[');
                                go_print(&text, x ? x : json_array(m->a));
                                buf_addc(&text, ' ');
                                go_print(&text, y ? y : json_array(m->a));
                                buf_addc(&text, ']');
                                return err_set(m->err, E_INTERNAL,
                                               "list element types are not identical: %.*s",
                                               STR_ARG(buf_str(&text)));
                        }
                }
        if (!first)
                return err_set(m->err, E_INTERNAL, "no elements in any of the given slices");
        *ret = (enum json_type)first->type;
        return 0;
}

struct slice {
        struct json **v;
        size_t n;
};

static struct slice slice_of(struct merge *m, struct json *list)
{
        struct slice s = {arena_new_array(m->a, struct json *, json_len(list) + 1), 0};

        if (!list)
                return s;
        json_foreach (item, list)
                s.v[s.n++] = item;
        return s;
}

/* Go's stable sort with a comparison that is no order ("not found" is less than everything): insertion sort in blocks of
 * 20 is what it does, and for lists of up to 20 that is all it does. */
static bool sorts_before(const struct json *x, const struct json *y, const struct json *order,
                         const char *key)
{
        long i = index_of(order, x, key), j = i >= 0 ? index_of(order, y, key) : -1;

        return i < 0 || j < 0 || i < j;
}

static void sort_by_order(struct slice *s, const struct json *order, const char *key)
{
        for (size_t i = 1; i < s->n; i++)
                for (size_t j = i; j > 0 && sorts_before(s->v[j], s->v[j - 1], order, key); j--) {
                        struct json *swap = s->v[j];

                        s->v[j] = s->v[j - 1];
                        s->v[j - 1] = swap;
                }
}

/* Items that the patch names (in ORDER) and those only the server has, woven into one list by the server's order. */
static struct json *weave(struct merge *m, const struct json *merged, const struct json *named,
                          const struct json *server, const char *key)
{
        struct slice all = slice_of(m, (struct json *)(uintptr_t)merged), patch = slice_of(m, NULL),
                     only = patch;
        struct json *out = json_array(m->a);
        size_t i = 0, j = 0;

        patch.v = arena_new_array(m->a, struct json *, all.n + 1);
        only.v = arena_new_array(m->a, struct json *, all.n + 1);
        for (size_t k = 0; k < all.n; k++) {
                bool is_named = key[0] ? find_by_key(named, key, json_at(all.v[k], key)) != NULL
                                       : has_value(named, all.v[k]);
                struct slice *to = is_named ? &patch : &only;

                to->v[to->n++] = all.v[k];
        }
        sort_by_order(&patch, named, key);
        sort_by_order(&only, server, key);
        while (i < only.n || j < patch.n) {
                long x = i < only.n ? index_of(server, only.v[i], key) : -1,
                     y = j < patch.n ? index_of(server, patch.v[j], key) : -1;
                bool server_first = j >= patch.n || (i < only.n && x >= 0 && y >= 0 && x < y);

                json_append(out, json_copy(m->a, server_first ? only.v[i++] : patch.v[j++]));
        }
        return out;
}

static int require_maps(struct merge *m, const struct json *list)
{
        size_t i = 0;

        json_foreach (item, list) {
                if (item->type != JSON_OBJECT)
                        return err_set(m->err, E_INTERNAL, "value for key %zu is not a map", i);
                i++;
        }
        return 0;
}

static int require_keys(struct merge *m, const struct json *list, const char *key)
{
        json_foreach (item, list) {
                if (item->type != JSON_OBJECT)
                        return fail_type(m, "map[string]interface {}", item);
                if (!json_at(item, key))
                        return fail_no_merge_key(m, item, key);
        }
        return 0;
}

static struct json *merge_map(struct merge *m, const struct shape *s, struct json *original,
                              struct json *patch);

/* Elements with $patch: what they delete is deleted; *REPLACE: the list becomes what else the patch has. */
static int handle_special(struct merge *m, struct json *original, struct json *patch, const char *key,
                          bool *ret_replace)
{
        struct json *next;

        *ret_replace = false;
        for (struct json *item = json_first(patch); item; item = next) {
                const struct json *directive = json_at(item, MARKER), *found;
                const char *what = json_cstr(directive);

                next = json_next(patch, item);
                if (!directive)
                        continue;
                if (streq(what, "delete")) {
                        if (!json_at(item, key))
                                return fail_no_merge_key(m, item, key);
                        while ((found = find_by_key(original, key, json_at(item, key))))
                                json_take(original, (struct json *)(uintptr_t)found);
                } else if (streq(what, "replace")) {
                        *ret_replace = true;
                } else if (streq(what, "merge")) {
                        return err_set(m->err, E_INTERNAL,
                                       "merging lists cannot yet be specified in the patch");
                } else {
                        return fail_patch_type(m, directive, item);
                }
                json_take(patch, item);
        }
        return 0;
}

static struct json *merge_object_list(struct merge *m, const struct meta *meta, struct json *original,
                                      struct json *patch)
{
        struct json *server = json_copy(m->a, original), *merged;
        bool replace;

        if (!meta->merge_key[0]) {
                err_set(m->err, E_INTERNAL, "cannot merge lists without merge key for %s",
                        kind_name(meta->shape));
                return NULL;
        }
        if (handle_special(m, original, patch, meta->merge_key, &replace) < 0)
                return NULL;
        if (replace) {
                original = patch;
                patch = json_array(m->a);
        }
        server = json_copy(m->a, original);
        json_foreach (item, patch) {
                const struct json *value = json_at(item, meta->merge_key);
                struct json *found;

                if (!value) {
                        fail_no_merge_key(m, item, meta->merge_key);
                        return NULL;
                }
                found = (struct json *)(uintptr_t)find_by_key(original, meta->merge_key, value);
                if (!found) {
                        json_append(original, json_copy(m->a, item));
                        continue;
                }
                merged = merge_map(m, meta->shape, found, json_copy(m->a, item));
                if (!merged)
                        return NULL;
                if (merged != found) { /* $patch: replace */
                        found->last = merged->last;
                        found->len = merged->len;
                }
        }
        if (require_keys(m, original, meta->merge_key) < 0 || require_keys(m, patch, meta->merge_key) < 0)
                return NULL;
        return weave(m, original, patch, server, meta->merge_key);
}

/* Each value once. What comes twice is overwritten by the last one, which is what changes the order. */
static struct json *without_doubles(struct merge *m, struct json *list)
{
        struct slice s = slice_of(m, list);
        struct json *out = json_array(m->a);

        for (size_t i = 0; i < s.n; i++)
                for (size_t j = i + 1; j < s.n; j++)
                        if (json_equal(s.v[i], s.v[j]))
                                s.v[j--] = s.v[--s.n];
        for (size_t i = 0; i < s.n; i++)
                json_append(out, json_copy(m->a, s.v[i]));
        return out;
}

static struct json *merge_scalar_list(struct merge *m, struct json *original, struct json *patch,
                                      bool is_delete)
{
        struct json *server = json_copy(m->a, original), *next;

        for (struct json *item = is_delete ? json_first(original) : NULL; item; item = next) {
                next = json_next(original, item);
                if (has_value(patch, item))
                        json_take(original, item);
        }
        if (is_delete)
                return original;
        json_foreach (item, patch)
                json_append(original, json_copy(m->a, item));
        return weave(m, without_doubles(m, original), patch, server, "");
}

/* Both may be changed. */
static struct json *merge_list(struct merge *m, const struct meta *meta, struct json *original,
                               struct json *patch, bool is_delete)
{
        enum json_type type;

        if (!meta->merge)
                return patch;
        if (!json_len(original) && !json_len(patch))
                return original;
        if (element_type(m, original, patch, &type) < 0)
                return NULL;
        if (type == JSON_OBJECT)
                return merge_object_list(m, meta, original, patch);
        return merge_scalar_list(m, original, patch, is_delete);
}

/* ---- directives of maps */

/* The name after "$prefix/"; p NULL: there is none. */
static struct str after_prefix(struct str key, struct str prefix)
{
        if (key.n <= prefix.n || key.p[prefix.n] != '/')
                return STR_NULL;
        return str_n(key.p + prefix.n + 1, key.n - prefix.n - 1);
}

static struct str key_of(const struct json *member)
{
        return str_n(member->key, member->key_len);
}

static bool has_name(const struct json *list, struct str name)
{
        json_foreach (item, list)
                if (item->type == JSON_STRING && str_eq(json_text(item), name))
                        return true;
        return false;
}

static int retain_keys(struct merge *m, struct json *original, struct json *patch)
{
        const struct json *keys = json_remove(patch, RETAIN_KEYS);
        struct json *next;

        if (!keys)
                return 0;
        if (keys->type != JSON_ARRAY)
                return err_set(m->err, E_INVALID, "invalid patch format of retainKeys");
        json_foreach (member, patch) {
                struct str key = key_of(member);

                if (member->type != JSON_NULL && !str_has_prefix(key, STR(DELETE_PREFIX)) &&
                    !str_has_prefix(key, STR(ORDER_PREFIX)) && !has_name(keys, key))
                        return err_set(m->err, E_INVALID, "invalid patch format of retainKeys");
        }
        for (struct json *member = json_first(original); member; member = next) {
                next = json_next(original, member);
                if (!has_name(keys, key_of(member)))
                        json_take(original, member);
        }
        return 0;
}

/* The patch's items must come in the order that $setElementOrder has; what it deletes does not count. */
static int check_order(struct merge *m, const struct json *patch, const struct json *order, const char *key)
{
        const struct json *at = json_first(order);
        _cleanup_(buf_done) struct buf x = BUF_INIT(TEXT_MAX), y = BUF_INIT(TEXT_MAX);

        if (!json_len(patch) || !json_len(order))
                return 0;
        if (key[0] && (require_keys(m, patch, key) < 0 || require_keys(m, order, key) < 0))
                return -1;
        json_foreach (item, patch) {
                const struct json *value = key[0] ? json_at(item, key) : item;

                if (json_at(item, MARKER))
                        continue;
                while (at && !json_equal(value, key[0] ? json_at(at, key) : at))
                        at = json_next(order, at);
                if (at) {
                        at = json_next(order, at);
                        continue;
                }
                go_print(&x, patch);
                go_print(&y, order);
                return err_set(
                        m->err, E_INTERNAL,
                        "The order in patch list:\n%.*s\n doesn't match $setElementOrder list:\n%.*s\n",
                        STR_ARG(buf_str(&x)), STR_ARG(buf_str(&y)));
        }
        return 0;
}

static int order_list(struct merge *m, const struct meta *meta, struct json *original, struct json *patch,
                      struct str name, const struct json *order)
{
        struct json *mine = json_get(original, name), *theirs = json_get(patch, name), *merged, *server;
        enum json_type type;

        if (mine && mine->type != JSON_ARRAY)
                return fail_type(m, "[]interface {}", mine);
        if (theirs && theirs->type != JSON_ARRAY)
                return fail_type(m, "[]interface {}", theirs);
        if (check_order(m, theirs, order, meta->merge_key) < 0)
                return -1;
        if (!mine && !theirs)
                return 0;
        server = mine ? json_copy(m->a, mine) : json_array(m->a);
        merged = !theirs ? mine : !mine ? theirs : merge_list(m, meta, mine, json_copy(m->a, theirs), false);
        if (!merged || element_type(m, server, theirs, &type) < 0)
                return -1;
        if (meta->merge_key[0] && (require_keys(m, merged, meta->merge_key) < 0 ||
                                   require_maps(m, order) < 0 || require_keys(m, order, meta->merge_key) < 0))
                return -1;
        json_setn(m->a, original, name, weave(m, merged, order, server, meta->merge_key));
        if (theirs)
                json_take(patch, theirs);
        return 0;
}

/* $setElementOrder/F, together with F itself. */
static int order_lists(struct merge *m, const struct shape *s, struct json *original, struct json *patch)
{
        struct json *member = json_first(patch);

        while (member) {
                struct str name = after_prefix(key_of(member), STR(ORDER_PREFIX));
                struct meta meta;

                if (!str_has_prefix(key_of(member), STR(ORDER_PREFIX))) {
                        member = json_next(patch, member);
                        continue;
                }
                if (member->type != JSON_ARRAY)
                        return fail_type(m, "[]interface {}", member);
                if (!name.p)
                        return err_set(m->err, E_INVALID, "invalid patch format of setElementOrder list");
                json_take(patch, member);
                if (look_up(m, s, name, true, &meta) < 0 ||
                    order_list(m, &meta, original, patch, name, member) < 0)
                        return -1;
                member = json_first(patch); /* the ring has changed */
        }
        return 0;
}

static struct json *handle_directive(struct merge *m, const struct json *directive, struct json *patch)
{
        if (streq(json_cstr(directive), "replace")) {
                json_remove(patch, MARKER);
                return patch;
        }
        if (streq(json_cstr(directive), "delete"))
                return json_object(m->a);
        fail_patch_type(m, directive, patch);
        return NULL;
}

/* ---- maps */

static bool same_type(const struct json *x, const struct json *y)
{
        return x->type == y->type;
}

static int merge_member(struct merge *m, const struct shape *s, struct json *original, struct json *member)
{
        struct str key = key_of(member);
        bool is_delete = str_has_prefix(key, STR(DELETE_PREFIX));
        struct json *mine, *result;
        struct meta meta;

        if (is_delete) {
                key = after_prefix(key, STR(DELETE_PREFIX));
                if (!key.p)
                        return err_set(m->err, E_INVALID, "invalid patch format of primitive list");
        }
        mine = json_get(original, key);
        if (member->type == JSON_NULL) {
                json_take(original, mine);
                return 0;
        }
        result = json_copy(m->a, member);
        if (mine && same_type(mine, member) && member->type >= JSON_ARRAY) {
                if (look_up(m, s, key, member->type == JSON_ARRAY, &meta) < 0)
                        return -1;
                if (member->type == JSON_OBJECT)
                        result = merge_map(m, meta.shape, mine, result);
                else
                        result = merge_list(m, &meta, mine, result, is_delete);
        }
        if (!result)
                return -1;
        if (result != mine)
                json_setn(m->a, original, key, result);
        return 0;
}

/* PATCH is the caller's to give. The result is ORIGINAL, unless the patch replaces it. */
static struct json *merge_map(struct merge *m, const struct shape *s, struct json *original,
                              struct json *patch)
{
        const struct json *directive = json_at(patch, MARKER);

        if (directive)
                return handle_directive(m, directive, patch);
        if (retain_keys(m, original, patch) < 0 || order_lists(m, s, original, patch) < 0)
                return NULL;
        json_foreach (member, patch)
                if (merge_member(m, s, original, member) < 0)
                        return NULL;
        return original;
}

struct json *strategic_merge(const struct shape *shape, struct json *target, const struct json *patch,
                             struct arena *a, struct err *err)
{
        struct merge m = {a, err};
        struct json *result;

        if (!shape->name) {
                err_set(err, E_INVALID, "strategic merge patch format is not supported");
                return NULL;
        }
        if (patch->type != JSON_OBJECT) {
                err_set(err, E_INVALID,
                        "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                        json_type_name((enum json_type)patch->type));
                return NULL;
        }
        result = merge_map(&m, shape, target, json_copy(a, patch));
        if (result && result != target) {
                target->last = result->last;
                target->len = result->len;
        }
        return result ? target : NULL;
}
