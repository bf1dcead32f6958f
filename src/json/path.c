#include "json/path.h"
#include "json/internal.h"

/* An array index: no sign, no leading zeros. */
static bool to_index(struct str s, size_t *ret)
{
        uint64_t v;

        if (!str_to_u64(s, &v) || (s.n > 1 && s.p[0] == '0') || v > UINT32_MAX)
                return false;
        *ret = (size_t)v;
        return true;
}

/* ---- JSON Pointer */

/* Decodes ~0 and ~1 of TOKEN into OUT; false for any other ~. */
static bool unescape_token(struct str token, struct buf *out)
{
        for (size_t i = 0; i < token.n; i++) {
                if (token.p[i] != '~') {
                        buf_addc(out, token.p[i]);
                        continue;
                }
                i++;
                if (i == token.n || (token.p[i] != '0' && token.p[i] != '1'))
                        return false;
                buf_addc(out, token.p[i] == '0' ? '~' : '/');
        }
        return true;
}

bool pointer_next(struct str *rest, struct str *ret, struct buf *scratch)
{
        struct str token;

        if (rest->n == 0 || rest->p[0] != '/')
                return false;
        *rest = str_n(rest->p + 1, rest->n - 1);
        token = str_n(rest->p, 0);
        while (token.n < rest->n && rest->p[token.n] != '/')
                token.n++;
        *rest = str_n(rest->p + token.n, rest->n - token.n);
        if (token.n && memchr(token.p, '~', token.n)) {
                buf_clear(scratch);
                if (!unescape_token(token, scratch))
                        return false;
                token = buf_str(scratch);
        }
        *ret = token;
        return true;
}

struct json *pointer_step(const struct json *at, struct str token)
{
        size_t i;

        if (json_is(at, JSON_ARRAY))
                return to_index(token, &i) ? json_index(at, i) : NULL;
        return json_get(at, token);
}

struct json *json_pointer(const struct json *root, const char *pointer)
{
        _cleanup_(buf_done) struct buf scratch = BUF_INIT(SIZE_MAX);
        struct str rest = str_of(pointer), token;

        while (root && rest.n) {
                if (!pointer_next(&rest, &token, &scratch))
                        return NULL;
                root = pointer_step(root, token);
        }
        return (struct json *)root;
}

/* ---- dotted paths */

/* One step of a dotted path: a key, or an index when key.p is NULL. */
struct step {
        struct str key;
        size_t index;
};

/* ["key"]: the quoted part is a JSON string. Returns what is behind the closing bracket; NULL: malformed. */
static const char *quoted_step(struct arena *a, const char *at, struct step *ret)
{
        const char *end = at + 1;
        struct json *key;

        while (*end && *end != '"')
                end += *end == '\\' && end[1] ? 2 : 1;
        if (*end != '"' || end[1] != ']')
                return NULL;
        key = json_parse(a, str_n(at, (size_t)(end - at) + 1), NULL, NULL);
        if (!key)
                return NULL;
        *ret = (struct step){.key = json_text(key)};
        return end + 2;
}

static const char *bracket_step(struct arena *a, const char *at, struct step *ret)
{
        size_t n;

        if (*at == '"')
                return quoted_step(a, at, ret);
        n = strcspn(at, "]");
        *ret = (struct step){.key = STR_NULL};
        return at[n] && to_index(str_n(at, n), &ret->index) ? at + n + 1 : NULL;
}

/* The step at AT, which is not the end; FIRST: no dot stands before it. NULL: malformed. */
static const char *next_step(struct arena *a, const char *at, bool first, struct step *ret)
{
        size_t n;

        if (*at == '[')
                return bracket_step(a, at + 1, ret);
        if (!first && *at++ != '.')
                return NULL;
        n = strcspn(at, ".[");
        *ret = (struct step){.key = str_n(at, n)};
        return n ? at + n : NULL;
}

static struct json *follow(const struct json *at, const struct step *step)
{
        return step->key.p ? json_get(at, step->key) : json_index(at, step->index);
}

struct json *json_path(const struct json *root, const char *path)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct step step;

        for (const char *at = path; root && *at; root = follow(root, &step)) {
                at = next_step(&a, at, at == path, &step);
                if (!at)
                        return NULL;
        }
        return (struct json *)root;
}

/* Replaces element I, or appends when I is the length. */
static struct json *set_element(struct json *array, size_t i, struct json *value)
{
        struct json *old = json_index(array, i);

        if (old)
                return json_replace(array, old, value);
        return json_is(array, JSON_ARRAY) && i == array->len ? json_append(array, value) : NULL;
}

static struct json *set_step(struct arena *a, struct json *at, const struct step *step, struct json *value)
{
        if (!step->key.p)
                return set_element(at, step->index, value);
        return json_is(at, JSON_OBJECT) ? json_setn(a, at, step->key, value) : NULL;
}

/* Whether all of PATH is well-formed: a path is not followed halfway only to be found broken. */
static bool path_valid(struct arena *a, const char *path)
{
        struct step step;

        for (const char *at = path; at; at = next_step(a, at, at == path, &step))
                if (*at == '\0')
                        return at != path;
        return false;
}

struct json *json_path_set(struct arena *a, struct json *root, const char *path, struct json *value)
{
        _cleanup_(arena_done) struct arena scratch = ARENA_INIT;
        const char *at = path;
        struct json *next;
        struct step step;

        if (!value || !path_valid(&scratch, path))
                return NULL;
        for (;; root = next) {
                at = next_step(&scratch, at, at == path, &step);
                if (*at == '\0')
                        return set_step(a, root, &step, value);
                next = follow(root, &step);
                /* Only members are made on the way: an index names what is there. */
                if (!next && step.key.p)
                        next = set_step(a, root, &step, json_object(a));
                if (!next)
                        return NULL;
        }
}

static bool is_plain_key(struct str key)
{
        for (size_t i = 0; i < key.n; i++) {
                char c = key.p[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
                    c != '_' && c != '-')
                        return false;
        }
        return key.n > 0;
}

void json_path_add_key(struct buf *path, struct str key)
{
        if (is_plain_key(key)) {
                if (path->n)
                        buf_addc(path, '.');
                buf_addstr(path, key);
                return;
        }
        buf_addc(path, '[');
        json_write_string(key, path);
        buf_addc(path, ']');
}

void json_path_add_index(struct buf *path, size_t index)
{
        buf_printf(path, "[%zu]", index);
}
