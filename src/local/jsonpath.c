#include "local/api_internal.h"

/*
 * The part of kubectl's JSONPath that printed columns use: .name, ['name'], [0], [*], [?(@.a.b=="text")]. Where several
 * values match, the first one counts.
 */

struct path {
        const char *at;
};

static struct str name_token(struct path *p)
{
        const char *begin = p->at;

        while (*p->at && !strchr(".[", *p->at)) {
                if (*p->at == '\\' && p->at[1])
                        p->at++;
                p->at++;
        }
        return str_n(begin, (size_t)(p->at - begin));
}

/* A member whose name may be written with escaped dots. */
static const struct json *member(const struct json *object, struct str name)
{
        char plain[256];
        size_t n = 0;

        for (size_t i = 0; i < name.n && n < sizeof(plain); i++)
                if (name.p[i] != '\\' || i + 1 == name.n)
                        plain[n++] = name.p[i];
        return json_get(object, str_n(plain, n));
}

static struct str unquoted(struct str s)
{
        s = str_trim(s);
        if (s.n >= 2 && (s.p[0] == '\'' || s.p[0] == '"') && s.p[s.n - 1] == s.p[0])
                return str_n(s.p + 1, s.n - 2);
        return s;
}

static const struct json *walk(const struct json *value, const char *path, size_t n);

static bool filter_matches(const struct json *element, struct str filter)
{
        const char *equals = memmem(filter.p, filter.n, "==", 2);
        struct str left, right;
        const struct json *have;

        left = str_trim(str_n(filter.p, equals ? (size_t)(equals - filter.p) : filter.n));
        if (left.n == 0 || left.p[0] != '@')
                return false;
        have = walk(element, left.p + 1, left.n - 1);
        if (!equals)
                return have;
        right = unquoted(str_n(equals + 2, (size_t)(filter.p + filter.n - equals - 2)));
        if (json_is(have, JSON_NUMBER))
                return str_eq(str_n(have->text, have->len), right);
        if (json_is(have, JSON_BOOL))
                return str_eq(str_of(have->truth ? "true" : "false"), right);
        return json_is(have, JSON_STRING) && str_eq(json_text(have), right);
}

/* What stands between brackets, then the rest of the path. */
static const struct json *bracket(const struct json *value, struct str inside, const char *rest, size_t n)
{
        const struct json *found;
        int64_t index;

        if (inside.n > 3 && inside.p[0] == '?' && inside.p[1] == '(') {
                struct str filter = str_n(inside.p + 2, inside.n - 3);

                json_foreach (e, value)
                        if (filter_matches(e, filter) && (found = walk(e, rest, n)))
                                return found;
                return NULL;
        }
        if (str_eq(inside, STR("*"))) {
                json_foreach (e, value)
                        if ((found = walk(e, rest, n)))
                                return found;
                return NULL;
        }
        if (str_to_i64(inside, &index)) {
                if (index < 0)
                        index += (int64_t)json_len(value);
                return index < 0 ? NULL : walk(json_index(value, (size_t)index), rest, n);
        }
        return walk(json_get(value, unquoted(inside)), rest, n);
}

/* The bracket that closes the one at the beginning, quotes and nested ones left out; NULL: none. */
static const char *closing(const char *p, size_t n)
{
        char quote = 0;
        int depth = 0;

        for (size_t i = 0; i < n; i++) {
                if (quote)
                        quote = p[i] == quote ? 0 : quote;
                else if (p[i] == '\'' || p[i] == '"')
                        quote = p[i];
                else if (p[i] == '[')
                        depth++;
                else if (p[i] == ']' && --depth == 0)
                        return p + i;
        }
        return NULL;
}

static const struct json *walk(const struct json *value, const char *path, size_t n)
{
        while (value && n > 0) {
                const char *end;
                struct str name;

                if (*path == '[') {
                        end = closing(path, n);
                        return end ? bracket(value, str_n(path + 1, (size_t)(end - path - 1)), end + 1,
                                             n - (size_t)(end + 1 - path))
                                   : NULL;
                }
                if (*path == '.') {
                        path++;
                        n--;
                        continue;
                }
                {
                        _cleanup_(free_ptr) char *copy = xstrndup(path, n);
                        struct path p = {copy};

                        name = name_token(&p);
                        value = member(value, name);
                        path += name.n;
                        n -= name.n;
                }
        }
        return value;
}

const struct json *jsonpath_find(const struct json *root, const char *path)
{
        size_t n = strlen(path);

        if (n >= 2 && path[0] == '{' && path[n - 1] == '}')
                return walk(root, path + 1, n - 2);
        return walk(root, path, n);
}
