#include "local/store_internal.h"

/*
 * A version is one block: the struct, its namespace, its key ("ns/name", of which the name is the end) and its text,
 * each with a NUL after it.
 */
static char *append(char *to, struct str s)
{
        if (s.n)
                memcpy(to, s.p, s.n);
        return to + s.n;
}

static char *append_end(char *to, struct str s)
{
        to = append(to, s);
        *to = '\0';
        return to + 1;
}

struct object *object_new(uint64_t rev, const char *type, struct str ns, struct str name, struct str text)
{
        size_t key = ns.n ? ns.n + 1 + name.n : name.n;
        struct object *o = xmalloc(sizeof(*o) + ns.n + 1 + key + 1 + text.n + 1);
        char *at = (char *)(o + 1);

        *o = (struct object){.refs = 1, .rev = rev, .type = type, .ns = at};
        at = append_end(at, ns);
        if (ns.n)
                at = append(append(at, ns), STR("/"));
        o->name = at;
        at = append_end(at, name);
        o->text = str_n(at, text.n);
        append_end(at, text);
        return o;
}

struct object *object_ref(struct object *o)
{
        if (o)
                o->refs++;
        return o;
}

void object_unref(struct object *o)
{
        if (o && --o->refs == 0)
                free(o);
}

struct str object_key(const struct object *o)
{
        size_t ns = strlen(o->ns);

        return str_of(ns ? o->name - ns - 1 : o->name);
}

struct str key_join(struct key *key, struct str ns, struct str name)
{
        size_t n = ns.n ? ns.n + 1 + name.n : name.n;
        char *p = key->small, *at;

        if (n > sizeof(key->small))
                p = key->large = xmalloc(n);
        at = append(p, ns);
        if (ns.n)
                at = append(at, STR("/"));
        append(at, name);
        return str_n(p, n);
}

/* ---- labels: a scan for quotes and brackets, because the text was written by our own writer */

/* After the string whose opening quote is at P. */
static const char *skip_string(const char *p, const char *end)
{
        for (p++; p < end && *p != '"'; p++)
                if (*p == '\\' && p + 1 < end)
                        p++;
        return p < end ? p + 1 : end;
}

/* After the value at P: at the comma or bracket that follows it, or END. */
static const char *skip_value(const char *p, const char *end)
{
        size_t depth = 0;

        while (p < end) {
                if (*p == '"') {
                        p = skip_string(p, end);
                        continue;
                }
                if (depth == 0 && (*p == ',' || *p == '}' || *p == ']'))
                        break;
                if (*p == '{' || *p == '[')
                        depth++;
                else if (*p == '}' || *p == ']')
                        depth--;
                p++;
        }
        return p;
}

/* The value of a member of the compact object at the beginning of TEXT; empty when it is not there. */
static struct str member(struct str text, struct str name)
{
        const char *p = text.p, *end;

        if (text.n == 0 || *p != '{')
                return STR_NULL;
        end = p + text.n;
        for (p++; p < end && *p == '"';) {
                const char *key = p + 1, *value;
                bool found;

                p = skip_string(p, end);
                found = p - key == (ptrdiff_t)name.n + 1 && memcmp(key, name.p, name.n) == 0;
                if (p == end || *p != ':')
                        break;
                value = p + 1;
                p = skip_value(value, end);
                if (found)
                        return str_n(value, (size_t)(p - value));
                if (p < end && *p == ',')
                        p++;
        }
        return STR_NULL;
}

struct str object_find_labels(struct str text)
{
        struct str labels = member(member(text, STR("metadata")), STR("labels"));

        return labels.n >= 2 && labels.p[0] == '{' && labels.p[labels.n - 1] == '}' ? labels : STR_NULL;
}
