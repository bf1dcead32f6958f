#include "kube/names.h"

#include "net/tls.h"

enum { HASH_LEN = 10 };

struct charset {
        size_t max;
        bool dots, upper, underscore;
        bool labels; /* every part between dots begins and ends with a letter or digit */
        bool may_be_empty;
};

static const struct charset charsets[] = {
        [NAME_SUBDOMAIN] = {253, .dots = true, .labels = true},
        [NAME_LABEL] = {63},
        [NAME_JOB] = {63, .dots = true, .labels = true},
        [NAME_LABEL_VALUE] = {63, .dots = true, .upper = true, .underscore = true, .may_be_empty = true},
};

static bool is_alnum(const struct charset *set, char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (set->upper && c >= 'A' && c <= 'Z');
}

static bool is_allowed(const struct charset *set, char c)
{
        return is_alnum(set, c) || c == '-' || (c == '.' && set->dots) || (c == '_' && set->underscore);
}

bool name_valid(enum name_kind kind, struct str name)
{
        const struct charset *set = &charsets[kind];

        if (name.n == 0)
                return set->may_be_empty;
        if (name.n > set->max || !is_alnum(set, name.p[0]) || !is_alnum(set, name.p[name.n - 1]))
                return false;
        for (size_t i = 0; i < name.n; i++) {
                if (!is_allowed(set, name.p[i]))
                        return false;
                if (name.p[i] == '.' && set->labels &&
                    (!is_alnum(set, name.p[i - 1]) || !is_alnum(set, name.p[i + 1])))
                        return false;
        }
        return true;
}

bool name_of_variable(struct str name)
{
        if (!name.n || (name.p[0] >= '0' && name.p[0] <= '9'))
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
                    c != '_' && c != '-' && c != '.')
                        return false;
        }
        return true;
}

static unsigned hex_value(char c)
{
        return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

const char *name_hash(struct arena *a, struct str data)
{
        static const char base32[] = "abcdefghijklmnopqrstuvwxyz234567";
        char hex[SHA256_HEX_MAX], *out = arena_alloc(a, HASH_LEN + 1);
        uint64_t bits = 0;

        sha256_hex(data, hex);
        for (size_t i = 0; i < 16; i++)
                bits = bits << 4 | hex_value(hex[i]);
        for (size_t i = 0; i < HASH_LEN; i++, bits <<= 5)
                out[i] = base32[bits >> 59];
        out[HASH_LEN] = '\0';
        return out;
}

/* The parts are told apart by a NUL, which none of them can hold. */
static const char *hash_of_parts(struct arena *a, const char *const *parts, size_t n)
{
        _cleanup_(buf_done) struct buf all = BUF_INIT(SIZE_MAX);

        for (size_t i = 0; i < n; i++) {
                buf_adds(&all, parts[i] ? parts[i] : "");
                buf_addc(&all, '\0');
        }
        return name_hash(a, buf_str(&all));
}

static char fold(const struct charset *set, char c)
{
        if (c >= 'A' && c <= 'Z' && !set->upper)
                c = (char)(c + 32);
        return is_allowed(set, c) ? c : '-';
}

/* At most MAX characters of STEM that can stand between any valid neighbours; may come out empty. */
static const char *fold_stem(struct arena *a, const struct charset *set, const char *stem, size_t max)
{
        char *out = arena_strdup(a, stem);
        size_t n = 0;

        for (const char *p = stem; *p && n < max; p++) {
                char c = fold(set, *p);

                if (c == '.' && set->labels &&
                    (!n || !is_alnum(set, out[n - 1]) || !is_alnum(set, fold(set, p[1]))))
                        c = '-';
                if (n || is_alnum(set, c))
                        out[n++] = c;
        }
        while (n && !is_alnum(set, out[n - 1]))
                n--;
        out[n] = '\0';
        return out;
}

static const char *with_hash(struct arena *a, const struct charset *set, const char *prefix, const char *stem,
                             const char *suffix, const char *hash)
{
        size_t taken = strlen(prefix) + strlen(suffix) + HASH_LEN;
        const char *cut = set->max > taken + 1 ? fold_stem(a, set, stem, set->max - taken - 1) : "";

        return arena_printf(a, "%s%s%s%s%s", prefix, cut, cut[0] ? "-" : "", hash, suffix);
}

const char *name_fit(struct arena *a, enum name_kind kind, const char *prefix, const char *stem,
                     const char *suffix, const char *salt)
{
        const struct charset *set = &charsets[kind];
        const char *whole, *hash, *name;

        prefix = prefix ? prefix : "";
        stem = stem ? stem : "";
        suffix = suffix ? suffix : "";
        whole = arena_join(a, prefix, stem, suffix);
        if (name_valid(kind, str_of(whole)))
                return whole;

        hash = hash_of_parts(a, (const char *const[]){prefix, stem, suffix, salt}, 4);
        name = with_hash(a, set, prefix, stem, suffix, hash);
        if (name_valid(kind, str_of(name)))
                return name;
        /* A prefix or suffix that leaves no room, or is not valid itself: it is cut like the rest. */
        return with_hash(a, set, "", whole, "", hash);
}

struct json *owner_reference(struct arena *a, const struct kube_type *type, const struct json *owner)
{
        return json_build(a,
                          "{'apiVersion': %s, 'kind': %s, 'name': %s, 'uid': %s, 'controller': true, "
                          "'blockOwnerDeletion': true}",
                          kube_api_version(type, a), type->kind, meta_str(owner, "name"),
                          meta_str(owner, "uid"));
}
