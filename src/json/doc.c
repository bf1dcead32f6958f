#include "json/internal.h"

/* ---- read */

struct json *json_get(const struct json *object, struct str key)
{
        if (!json_is(object, JSON_OBJECT))
                return NULL;
        json_foreach (j, object)
                if (json_key_is(j, key))
                        return j;
        return NULL;
}

struct json *json_index(const struct json *array, size_t i)
{
        if (!json_is(array, JSON_ARRAY) || i >= array->len)
                return NULL;
        json_foreach (j, array)
                if (i-- == 0)
                        return j;
        return NULL;
}

size_t json_len(const struct json *container)
{
        return container && container->type >= JSON_ARRAY ? container->len : 0;
}

struct str json_text(const struct json *string)
{
        return json_is(string, JSON_STRING) ? str_n(string->text, string->len) : STR_NULL;
}

const char *json_cstr(const struct json *string)
{
        return json_is(string, JSON_STRING) && !string->has_nul ? string->text : NULL;
}

const char *json_str_or(const struct json *object, const char *key, const char *otherwise)
{
        const char *s = json_str(object, key);

        return s ? s : otherwise;
}

bool json_bool(const struct json *object, const char *key, bool otherwise)
{
        const struct json *j = json_at(object, key);

        return json_is(j, JSON_BOOL) ? j->truth : otherwise;
}

int64_t json_int(const struct json *object, const char *key, int64_t otherwise)
{
        int64_t v;

        return json_to_i64(json_at(object, key), &v) ? v : otherwise;
}

const char *json_type_name(enum json_type type)
{
        static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};

        return (unsigned)type < ARRAY_LEN(names) ? names[type] : "unknown";
}

struct json *json_find_named(const struct json *array, const char *name)
{
        if (json_is(array, JSON_ARRAY) && name)
                json_foreach (j, array)
                        if (streq(json_str(j, "name"), name))
                                return j;
        return NULL;
}

void lookup_init(struct lookup *l, const struct json *object)
{
        *l = (struct lookup){.object = object};
        if (json_len(object) > JSON_SMALL_OBJECT)
                json_foreach (j, object)
                        map_put(&l->map, json_key(j), j);
}

void lookup_done(struct lookup *l)
{
        map_done(&l->map);
}

struct json *lookup_get(const struct lookup *l, struct str key)
{
        return l->map.cap ? map_get(&l->map, key) : json_get(l->object, key);
}

/* ---- change */

struct json *json_node(struct arena *a, enum json_type type)
{
        struct json *j = arena_new(a, struct json);

        j->type = (uint8_t)type;
        return j;
}

struct json *json_null(struct arena *a)
{
        return json_node(a, JSON_NULL);
}

struct json *json_truth(struct arena *a, bool value)
{
        struct json *j = json_node(a, JSON_BOOL);

        j->truth = value;
        return j;
}

struct json *json_array(struct arena *a)
{
        return json_node(a, JSON_ARRAY);
}

struct json *json_object(struct arena *a)
{
        return json_node(a, JSON_OBJECT);
}

/* How many bytes the valid UTF-8 character at S has; 0: there is none. */
static size_t utf8_len(const char *s, size_t n)
{
        for (size_t len = 1; len <= MIN(n, (size_t)4); len++)
                if (utf8_valid(s, len))
                        return len;
        return 0;
}

/* S with every byte that is in no valid character replaced by U+FFFD. */
static struct str mend_utf8(struct arena *a, struct str s)
{
        char *out = arena_alloc(a, s.n * 3 + 1);
        size_t n = 0;

        for (size_t i = 0; i < s.n;) {
                size_t len = utf8_len(s.p + i, s.n - i);

                if (len) {
                        memcpy(out + n, s.p + i, len);
                        n += len;
                        i += len;
                } else {
                        memcpy(out + n, "\xEF\xBF\xBD", 3);
                        n += 3;
                        i++;
                }
        }
        out[n] = '\0';
        return str_n(out, n);
}

/* Without a look whether there is a NUL in it. */
static struct json *string_node(struct arena *a, struct str s)
{
        struct json *j;

        if (!s.p || s.n > INT32_MAX / 3)
                return NULL;
        j = json_node(a, JSON_STRING);
        s = utf8_valid(s.p, s.n) ? str_n(arena_strndup(a, s.p, s.n), s.n) : mend_utf8(a, s);
        j->text = s.p;
        j->len = (uint32_t)s.n;
        return j;
}

struct json *json_stringn(struct arena *a, struct str s)
{
        struct json *j = string_node(a, s);

        if (j)
                j->has_nul = s.n && memchr(s.p, '\0', s.n);
        return j;
}

struct json *json_string(struct arena *a, const char *s)
{
        return string_node(a, str_of(s));
}

/* The child before CHILD in the ring. */
static struct json *before(const struct json *container, const struct json *child)
{
        struct json *prev = container->last;

        while (prev->next != child)
                prev = prev->next;
        return prev;
}

/* In two rings a node would lead iteration astray without end; a mistake of ours ends here instead. */
static void require_free(const struct json *value)
{
        if (value->next) {
                fprintf(stderr, "sonde: a JSON node may be in one container only; copy it\n");
                abort();
        }
}

struct json *json_replace(struct json *container, struct json *child, struct json *value)
{
        if (child == value)
                return value;
        require_free(value);
        value->key = child->key;
        value->key_len = child->key_len;
        if (child->next == child) {
                value->next = value;
        } else {
                before(container, child)->next = value;
                value->next = child->next;
        }
        if (container->last == child)
                container->last = value;
        child->next = NULL;
        return value;
}

struct json *json_add(struct arena *a, struct json *object, struct str key, struct json *value)
{
        require_free(value);
        value->key = arena_strndup(a, key.p, key.n);
        value->key_len = (uint32_t)key.n;
        json_attach(object, value);
        return value;
}

struct json *json_setn(struct arena *a, struct json *object, struct str key, struct json *value)
{
        struct json *old;

        if (!value || !json_is(object, JSON_OBJECT))
                return value;
        old = json_get(object, key);
        if (old)
                return json_replace(object, old, value);
        if (!utf8_valid(key.p, key.n)) {
                key = mend_utf8(a, key);
                return json_setn(a, object, key, value);
        }
        return json_add(a, object, key, value);
}

struct json *json_append(struct json *array, struct json *value)
{
        if (!value || !json_is(array, JSON_ARRAY))
                return value;
        require_free(value);
        value->key = NULL;
        value->key_len = 0;
        json_attach(array, value);
        return value;
}

struct json *json_take(struct json *container, struct json *child)
{
        if (!child || !container || container->type < JSON_ARRAY || !container->last)
                return NULL;
        json_detach(container, before(container, child), child);
        child->key = NULL;
        child->key_len = 0;
        return child;
}

struct json *json_remove(struct json *object, const char *key)
{
        return json_take(object, json_at(object, key));
}

static const char *copy_text(struct arena *a, const char *p, size_t n, bool deep)
{
        return deep && p ? arena_strndup(a, p, n) : p;
}

static struct json *copy_tree(struct arena *a, const struct json *j, bool deep)
{
        struct json *c = arena_alloc(a, sizeof(*c));

        *c = *j;
        c->next = NULL;
        if (j->type == JSON_STRING || j->type == JSON_NUMBER)
                c->text = copy_text(a, j->text, j->len, deep);
        if (j->type < JSON_ARRAY)
                return c;
        c->last = NULL;
        c->len = 0;
        json_foreach (child, j) {
                struct json *copy = copy_tree(a, child, deep);

                copy->key = copy_text(a, child->key, child->key_len, deep);
                json_attach(c, copy);
        }
        return c;
}

static struct json *copy_root(struct arena *a, const struct json *j, bool deep)
{
        struct json *c = j ? copy_tree(a, j, deep) : NULL;

        if (c) {
                c->key = NULL;
                c->key_len = 0;
        }
        return c;
}

struct json *json_copy(struct arena *a, const struct json *j)
{
        return j ? copy_root(a, j, true) : NULL;
}

struct json *json_copy_nodes(struct arena *a, const struct json *j)
{
        return copy_root(a, j, false);
}

/* ---- compare */

static bool object_equal(const struct json *x, const struct json *y)
{
        _cleanup_(lookup_done) struct lookup l = {0};
        const struct json *guess = json_first(y);
        bool indexed = false;

        if (x->len != y->len)
                return false;
        json_foreach (member, x) {
                const struct json *twin = guess;

                /* Usually the order is the same and the next one is it. */
                if (!json_key_is(twin, json_key(member))) {
                        if (!indexed)
                                lookup_init(&l, y);
                        indexed = true;
                        twin = lookup_get(&l, json_key(member));
                }
                if (!json_equal(member, twin))
                        return false;
                guess = twin->next;
        }
        return true;
}

static bool array_equal(const struct json *x, const struct json *y)
{
        const struct json *other = json_first(y);

        if (x->len != y->len)
                return false;
        json_foreach (element, x) {
                if (!json_equal(element, other))
                        return false;
                other = other->next;
        }
        return true;
}

bool json_equal(const struct json *x, const struct json *y)
{
        if (!x || !y || x->type != y->type)
                return x == y;
        switch ((enum json_type)x->type) {
        case JSON_NULL:
                return true;
        case JSON_BOOL:
                return x->truth == y->truth;
        case JSON_NUMBER:
                return json_number_equal(str_n(x->text, x->len), str_n(y->text, y->len));
        case JSON_STRING:
                return str_eq(json_text(x), json_text(y));
        case JSON_ARRAY:
                return array_equal(x, y);
        case JSON_OBJECT:
                return object_equal(x, y);
        }
        return false;
}
