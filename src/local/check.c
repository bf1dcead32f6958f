#include "local/check.h"

#include <ctype.h>

#define LABEL_RE "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

static bool lower_alnum(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool alnum(char c)
{
        return lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool label_chars(struct str s)
{
        if (s.n == 0 || !lower_alnum(s.p[0]) || !lower_alnum(s.p[s.n - 1]))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!lower_alnum(s.p[i]) && s.p[i] != '-')
                        return false;
        return true;
}

static bool subdomain_chars(struct str s)
{
        while (s.p) {
                struct str part = str_split(&s, '.');

                if (!label_chars(part))
                        return false;
        }
        return true;
}

/* Letters of both cases, digits, and what OTHERS holds, not at the ends. */
static bool word_chars(struct str s, const char *others)
{
        if (s.n == 0 || !alnum(s.p[0]) || !alnum(s.p[s.n - 1]))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!alnum(s.p[i]) && !strchr(others, s.p[i]))
                        return false;
        return true;
}

/* The NTH of those problems that are there. */
struct problem {
        bool is;
        const char *text;
};

static const char *pick(const struct problem *list, size_t n, size_t nth)
{
        for (size_t i = 0; i < n; i++)
                if (list[i].is && nth-- == 0)
                        return list[i].text;
        return NULL;
}
#define PICK(nth, ...)                                        \
        ({                                                    \
                const struct problem list_[] = {__VA_ARGS__}; \
                pick(list_, ARRAY_LEN(list_), nth);           \
        })

const char *check_subdomain(struct str s, size_t nth)
{
        return PICK(nth, {s.n > 253, "must be no more than 253 characters"},
                    {!subdomain_chars(s), "a lowercase RFC 1123 subdomain must consist of lower case "
                                          "alphanumeric characters, '-' or '.', and "
                                          "must start and end with an alphanumeric character (e.g. "
                                          "'example.com', regex used for validation "
                                          "is '" LABEL_RE "(\\." LABEL_RE ")*')"});
}

const char *check_label(struct str s, size_t nth)
{
        return PICK(nth, {s.n > 63, "must be no more than 63 characters"},
                    {!label_chars(s), "a lowercase RFC 1123 label must consist of lower case alphanumeric "
                                      "characters or '-', and must "
                                      "start and end with an alphanumeric character (e.g. 'my-name',  or "
                                      "'123-abc', regex used for "
                                      "validation is '" LABEL_RE "')"});
}

const char *check_dns1035(struct str s, size_t nth)
{
        return PICK(
                nth, {s.n > 63, "must be no more than 63 characters"},
                {!label_chars(s) || isdigit((unsigned char)s.p[0]),
                 "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                 "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
                 "'abc-123', "
                 "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"});
}

const char *check_path_segment(struct str s, size_t nth)
{
        return PICK(nth, {str_eq(s, STR(".")), "may not be '.'"}, {str_eq(s, STR("..")), "may not be '..'"},
                    {memchr(s.p, '/', s.n), "may not contain '/'"},
                    {memchr(s.p, '%', s.n), "may not contain '%'"});
}

#define NAME_PART_RE "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

const char *check_qualified(struct str s, size_t nth)
{
        struct str name = s, prefix = str_split(&name, '/');
        bool has_prefix = name.p;

        if (!has_prefix)
                name = prefix;
        else if (memchr(name.p, '/', name.n))
                return nth ? NULL
                           : "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and "
                             "must start "
                             "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                             "'123-abc', regex "
                             "used for validation is '" NAME_PART_RE
                             "') with an optional DNS subdomain prefix and '/' "
                             "(e.g. 'example.com/MyName')";
        return PICK(nth, {has_prefix && prefix.n == 0, "prefix part must be non-empty"},
                    {has_prefix && prefix.n > 253, "prefix part must be no more than 253 characters"},
                    {has_prefix && prefix.n > 0 && !subdomain_chars(prefix),
                     "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                     "characters, "
                     "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
                     "regex used "
                     "for validation is '" LABEL_RE "(\\." LABEL_RE ")*')"},
                    {name.n == 0, "name part must be non-empty"},
                    {name.n > 63, "name part must be no more than 63 characters"},
                    {!word_chars(name, "-_."),
                     "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
                     "end with "
                     "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
                     "validation is '" NAME_PART_RE "')"});
}

const char *check_label_value(struct str s, size_t nth)
{
        return PICK(nth, {s.n > 63, "must be no more than 63 characters"},
                    {s.n > 0 && !word_chars(s, "-_."),
                     "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
                     "or '.', and "
                     "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
                     "'12345', "
                     "regex used for validation is '(" NAME_PART_RE ")?')"});
}

static bool only(struct str s, const char *others)
{
        for (size_t i = 0; i < s.n; i++)
                if (!alnum(s.p[i]) && !strchr(others, s.p[i]))
                        return false;
        return s.n > 0;
}

const char *check_config_key(struct str s, size_t nth)
{
        return PICK(nth, {s.n > 253, "must be no more than 253 characters"},
                    {!only(s, "-_."),
                     "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                     "'key.name',  or "
                     "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"},
                    {str_eq(s, STR(".")), "must not be '.'"}, {str_eq(s, STR("..")), "must not be '..'"},
                    {s.n > 2 && str_has_prefix(s, STR("..")), "must not start with '..'"});
}

const char *check_env_name(struct str s, size_t nth)
{
        return PICK(nth,
                    {!only(s, "-_.") || isdigit((unsigned char)s.p[0]),
                     "a valid environment variable name must consist of alphabetic characters, digits, '_', "
                     "'-', or "
                     "'.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or "
                     "'MyEnvName1', "
                     "regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"},
                    {str_eq(s, STR(".")), "must not be '.'"}, {str_eq(s, STR("..")), "must not be '..'"},
                    {s.n > 2 && str_has_prefix(s, STR("..")), "must not start with '..'"});
}

void check_value(struct causes *c, const char *field, const char *value, check_fn check)
{
        const char *wrong;

        for (size_t nth = 0; (wrong = check(str_of(value), nth)); nth++)
                causes_add(c, "FieldValueInvalid", field, "Invalid value: \"%s\": %s", value, wrong);
}

void check_labels(struct causes *c, const char *field, const struct json *labels)
{
        json_foreach (l, labels) {
                check_value(c, field, l->key, check_qualified);
                if (json_cstr(l))
                        check_value(c, field, json_cstr(l), check_label_value);
        }
}
