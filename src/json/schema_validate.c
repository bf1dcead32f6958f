/*
 * Validation in the order, and with the words, of the API server (kube-openapi's validators). Where allOf, anyOf or
 * oneOf fail, the server also shows the errors of the branch in which most checks passed; `matches` counts those
 * checks just as it does, so that the same branch is shown.
 *
 * In four places the server is wrong, and we are not: it compares a whole number with the whole part of a bound, or of
 * a value of an enum, only; it takes an array for a string with a format; it takes numbers very close to an integer
 * for one; and paths do not name the index of an element (newer servers do).
 */
#include "json/schema_internal.h"

#include <math.h>

enum { CAUSES_MAX = 64, MESSAGE_MAX = 64 << 10 };

struct result {
        struct schema_cause causes[CAUSES_MAX];
        size_t n;
        unsigned matches;
        bool failed;
};

struct check {
        struct arena *arena;
        bool silent; /* nobody wants to know why */
};

/* One value at one place of a schema. */
struct visit {
        struct check *check;
        const struct schema_node *s;
        const struct json *j;
        const struct spot *at;
        struct result *r;
};

static void visit(struct check *c, const struct schema_node *s, const struct json *j, const struct spot *at,
                  struct result *r);

/* ---- causes */

static bool same_cause(const struct schema_cause *a, const struct schema_cause *b)
{
        return a->type == b->type && streq(a->field, b->field) && streq(a->message, b->message);
}

static void add_cause(struct result *r, const struct schema_cause *cause)
{
        r->failed = true;
        for (size_t i = 0; i < r->n; i++)
                if (same_cause(&r->causes[i], cause))
                        return;
        if (r->n < CAUSES_MAX)
                r->causes[r->n++] = *cause;
}

static void merge(struct result *r, const struct result *other)
{
        for (size_t i = 0; i < other->n; i++)
                add_cause(r, &other->causes[i]);
        r->failed = r->failed || other->failed;
        r->matches += other->matches;
}

static const char *message_of(struct check *c, struct buf *text)
{
        if (text->overflow)
                return "Invalid value: too large to be shown";
        return arena_strndup(c->arena, text->n ? text->p : "", text->n);
}

/* SHOWN is what follows "Invalid value: ", the rest follows the path. */
static void invalid(struct visit *v, const char *shown, const char *fmt, ...) _printf_(3, 4);
static void invalid(struct visit *v, const char *shown, const char *fmt, ...)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX);
        const char *field, *rest;
        va_list ap;

        v->r->failed = true;
        if (v->check->silent)
                return;
        field = spot_print(v->check->arena, v->at, SPOT_BODY);
        va_start(ap, fmt);
        rest = arena_vprintf(v->check->arena, fmt, ap);
        va_end(ap);
        buf_printf(&text, "Invalid value: %s: %s in body %s", shown, field, rest);
        add_cause(v->r, &(struct schema_cause){.type = CAUSE_INVALID,
                                               .field = field,
                                               .message = message_of(v->check, &text),
                                               .at = v->j});
}

/* About the schema as a whole: the server names no field. */
static void invalid_whole(struct visit *v, const char *fmt, ...) _printf_(2, 3);
static void invalid_whole(struct visit *v, const char *fmt, ...)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX);
        va_list ap;

        v->r->failed = true;
        if (v->check->silent)
                return;
        buf_adds(&text, "Invalid value: \"\": ");
        go_quote(str_of(spot_print(v->check->arena, v->at, SPOT_BODY)), &text);
        va_start(ap, fmt);
        buf_adds(&text, arena_vprintf(v->check->arena, fmt, ap));
        va_end(ap);
        add_cause(v->r, &(struct schema_cause){.type = CAUSE_INVALID,
                                               .field = "<nil>",
                                               .message = message_of(v->check, &text),
                                               .at = v->j});
}

/* A cause in the other wording, of checks that come after the schema's. */
static void plain_cause(struct visit *v, const struct spot *at, enum schema_cause_type type, const char *word,
                        const struct json *shown, const char *detail)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX);

        v->r->failed = true;
        if (v->check->silent)
                return;
        buf_adds(&text, word);
        if (shown) {
                buf_adds(&text, ": ");
                go_value(shown, &text);
        }
        if (detail)
                buf_printf(&text, ": %s", detail);
        add_cause(v->r, &(struct schema_cause){.type = type,
                                               .field = spot_print(v->check->arena, at, SPOT_FIELD),
                                               .message = message_of(v->check, &text),
                                               .at = shown ? shown : v->j});
}

/* The value of V as messages show it. */
static const char *shown_value(struct visit *v)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX / 2);

        if (v->check->silent)
                return "";
        go_value(v->j, &text);
        return message_of(v->check, &text);
}

/* ---- types */

static unsigned type_bit(const struct json *j)
{
        static const unsigned bits[] = {
                [JSON_NULL] = 0,
                [JSON_BOOL] = TYPE_BOOLEAN,
                [JSON_NUMBER] = TYPE_NUMBER,
                [JSON_STRING] = TYPE_STRING,
                [JSON_ARRAY] = TYPE_ARRAY,
                [JSON_OBJECT] = TYPE_OBJECT,
        };

        return j->type == JSON_NUMBER && go_number(j).whole ? TYPE_INTEGER : bits[j->type];
}

static bool type_fits(const struct schema_node *s, const struct json *j)
{
        unsigned bit = type_bit(j);
        int64_t i;

        if (s->types & bit)
                return true;
        if (bit == TYPE_INTEGER)
                return s->types & TYPE_NUMBER;
        return bit == TYPE_NUMBER && (s->types & TYPE_INTEGER) && json_to_i64(j, &i);
}

static void check_type(struct visit *v)
{
        const struct schema_node *s = v->s;
        const char *is;

        if (!s->types && !s->format)
                return;
        v->r->matches++;
        if (s->types ? type_fits(s, v->j) : v->j->type == JSON_STRING) {
                v->r->matches++;
                return;
        }
        if (s->format && v->j->type != JSON_STRING && (v->j->type != JSON_ARRAY || !s->types)) {
                /* the server compares the format with that of the value's Go type */
                is = v->j->type != JSON_NUMBER ? "" : go_number(v->j).whole ? "int64" : "float64";
                invalid(v, arena_printf(v->check->arena, "\"%s\"", is), "must be of type %s: \"%s\"",
                        s->format_name, is);
                return;
        }
        is = schema_type_names(type_bit(v->j));
        invalid(v, arena_printf(v->check->arena, "\"%s\"", is), "must be of type %s: \"%s\"",
                schema_type_names(s->types), is);
}

static void check_null(struct visit *v)
{
        if (v->s->types && !v->s->nullable)
                invalid(v, "\"null\"", "must be of type %s: \"null\"", schema_type_names(v->s->types));
        else
                v->r->matches++;
}

/* ---- allOf, anyOf, oneOf, not */

/* Results are large: those of branches live on the heap. */
static struct result *result_new(void)
{
        return xcalloc(1, sizeof(struct result));
}

static void result_free(struct result *r)
{
        free(r);
}
DEFINE_CLEANUP_PTR(struct result *, result_free)

static void keep_better(struct result **best, struct result **r)
{
        if (*best && (*r)->matches <= (*best)->matches)
                return;
        result_free(*best);
        *best = TAKE_PTR(*r);
}

static void check_any_of(struct visit *v)
{
        _cleanup_(result_free) struct result *best = NULL;

        for (size_t i = 0; i < v->s->any_of.n; i++) {
                _cleanup_(result_free) struct result *r = result_new();

                visit(v->check, v->s->any_of.v[i], v->j, v->at, r);
                if (!r->failed) {
                        merge(v->r, r);
                        return;
                }
                keep_better(&best, &r);
        }
        if (best) {
                invalid_whole(v, " must validate at least one schema (anyOf)");
                merge(v->r, best);
        }
}

static void check_one_of(struct visit *v)
{
        _cleanup_(result_free) struct result *best = NULL, *success = NULL;
        unsigned valid = 0;

        for (size_t i = 0; i < v->s->one_of.n; i++) {
                _cleanup_(result_free) struct result *r = result_new();

                visit(v->check, v->s->one_of.v[i], v->j, v->at, r);
                if (r->failed) {
                        if (valid == 0)
                                keep_better(&best, &r);
                        continue;
                }
                if (valid++ == 0)
                        success = TAKE_PTR(r);
        }
        if (v->s->one_of.n == 0)
                return;
        if (valid == 1) {
                merge(v->r, success);
        } else if (valid > 1) {
                invalid_whole(v,
                              " must validate one and only one schema (oneOf). Found %u valid alternatives",
                              valid);
        } else {
                invalid_whole(v, " must validate one and only one schema (oneOf). Found none valid");
                merge(v->r, best);
        }
}

static void check_all_of(struct visit *v)
{
        size_t valid = 0;

        for (size_t i = 0; i < v->s->all_of.n; i++) {
                _cleanup_(result_free) struct result *r = result_new();

                visit(v->check, v->s->all_of.v[i], v->j, v->at, r);
                valid += !r->failed;
                merge(v->r, r);
        }
        if (valid != v->s->all_of.n)
                invalid_whole(v, " must validate all the schemas (allOf)%s", valid ? "" : ". None validated");
}

static void check_not(struct visit *v)
{
        _cleanup_(result_free) struct result *r = NULL;

        if (!v->s->not )
                return;
        r = result_new();
        visit(v->check, v->s->not, v->j, v->at, r);
        if (!r->failed)
                invalid_whole(v, " must not validate the schema (not)");
}

static void check_junctors(struct visit *v)
{
        check_any_of(v);
        check_one_of(v);
        check_all_of(v);
        check_not(v);
        v->r->matches += 2;
}

/* ---- strings */

static int64_t count_characters(struct str s)
{
        int64_t n = 0;

        for (size_t i = 0; i < s.n; i++)
                n += (s.p[i] & 0xC0) != 0x80;
        return n;
}

static void check_length_and_pattern(struct visit *v)
{
        const struct schema_node *s = v->s;
        struct str text = json_text(v->j);
        int64_t n = s->max_length >= 0 || s->min_length > 0 ? count_characters(text) : 0;

        if (s->max_length >= 0 && n > s->max_length)
                invalid(v, shown_value(v), "should be at most %lld chars long", (long long)s->max_length);
        else if (s->min_length > 0 && n < s->min_length)
                invalid(v, shown_value(v), "should be at least %lld chars long", (long long)s->min_length);
        else if (s->pattern && !pattern_match(s->pattern, text))
                invalid(v, shown_value(v), "should match '%s'", s->pattern_text);
}

static void check_string(struct visit *v)
{
        check_length_and_pattern(v);
        v->r->matches++;
        if (!v->s->format)
                return;
        v->r->matches++;
        if (!v->s->format->valid(json_text(v->j)))
                invalid(v, shown_value(v), "must be of type %s: %s", v->s->format_name, shown_value(v));
}

/* ---- numbers */

/* Bounds are shown in the type of the value. */
static const char *shown_bound(struct visit *v, double bound)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(64);

        if (go_number(v->j).whole && fabs(bound) < 0x1p63 && bound == trunc(bound))
                buf_printf(&text, "%lld", (long long)bound);
        else
                go_float(bound, &text);
        return message_of(v->check, &text);
}

/* -1, 0, 1: N against BOUND, exactly also where a double could not hold N. */
static int compare_number(struct go_number n, double bound)
{
        if (n.whole && fabs(bound) < 0x1p63) {
                int64_t whole = (int64_t)bound;
                double rest = bound - (double)whole;

                if (n.i != whole)
                        return n.i < whole ? -1 : 1;
                return rest > 0 ? -1 : rest < 0;
        }
        return n.d < bound ? -1 : n.d > bound;
}

/* Within one part in a billion, as the server has it: 0.3 is a multiple of 0.1. */
static bool nearly_whole(double x)
{
        double near = nearbyint(x);

        if (fabs(x) > 0x1p53 - 1)
                return false;
        return x == near || fabs(x - near) / (fabs(x) + fabs(near)) < 1e-9;
}

static bool is_multiple(struct go_number n, double of)
{
        if (n.whole && of == trunc(of) && of < 0x1p63)
                return n.i % (int64_t)of == 0;
        return nearly_whole(of < 1 ? 1 / of * n.d : n.d / of);
}

static void check_number(struct visit *v)
{
        const struct schema_node *s = v->s;
        struct go_number n = go_number(v->j);

        if (s->multiple_of.set && !is_multiple(n, s->multiple_of.value))
                invalid(v, shown_value(v), "should be a multiple of %s",
                        shown_bound(v, s->multiple_of.value));
        if (s->minimum.set && compare_number(n, s->minimum.value) < (s->minimum.exclusive ? 1 : 0))
                invalid(v, shown_value(v), "should be greater than %s%s",
                        s->minimum.exclusive ? "" : "or equal to ", shown_bound(v, s->minimum.value));
        if (s->maximum.set && compare_number(n, s->maximum.value) > (s->maximum.exclusive ? -1 : 0))
                invalid(v, shown_value(v), "should be less than %s%s",
                        s->maximum.exclusive ? "" : "or equal to ", shown_bound(v, s->maximum.value));
        v->r->matches += 2;
}

/* ---- arrays */

/* Calls FN with the index at which one of KEYS is there for the second time. */
static void find_repeated(const char *const *keys, size_t n, void (*fn)(struct visit *v, size_t i),
                          struct visit *v)
{
        static const char marks[2];
        _cleanup_(map_done) struct map seen = MAP_INIT;

        for (size_t i = 0; i < n; i++) {
                struct str key = str_of(keys[i]);
                const char *before = map_get(&seen, key);

                if (before == &marks[0])
                        fn(v, i);
                map_put(&seen, key, (void *)(uintptr_t)&marks[before != NULL]);
        }
}

static const char *canonical(struct arena *a, const struct json *j)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 2);

        go_canonical(j, &text);
        return arena_strndup(a, text.p, text.n);
}

/* The members of ELEMENT that identify it in a list of type map. */
static struct json *map_key_of(struct arena *a, const struct schema_node *s, const struct json *element)
{
        struct json *key = json_object(a);

        for (size_t i = 0; i < s->list_keys.n; i++) {
                const struct json *member = json_at(element, s->list_keys.v[i]);

                if (member)
                        json_set(a, key, s->list_keys.v[i], json_copy(a, member));
        }
        return key;
}

static void repeated_item(struct visit *v, size_t i)
{
        invalid(v, "\"\"", "shouldn't contain duplicates");
}

static void repeated_in_set(struct visit *v, size_t i)
{
        struct spot spot = {.up = v->at, .kind = SPOT_INDEX, .index = i};

        plain_cause(v, &spot, CAUSE_DUPLICATE, "Duplicate value", json_index(v->j, i), NULL);
}

static void repeated_in_map(struct visit *v, size_t i)
{
        struct spot spot = {.up = v->at, .kind = SPOT_INDEX, .index = i};
        struct json *element = json_index(v->j, i), *key = map_key_of(v->check->arena, v->s, element);

        key->line = element->line;
        key->column = element->column;
        plain_cause(v, &spot, CAUSE_DUPLICATE, "Duplicate value", key, NULL);
}

/* Finds elements that are there twice, by their whole value or by their keys. */
static void check_repeated(struct visit *v, bool by_keys, void (*fn)(struct visit *v, size_t i))
{
        _cleanup_(arena_done) struct arena scratch = ARENA_INIT;
        const char **keys = arena_new_array(&scratch, const char *, json_len(v->j));
        size_t n = 0;

        json_foreach (element, v->j)
                keys[n++] = canonical(&scratch, by_keys ? map_key_of(&scratch, v->s, element) : element);
        find_repeated(keys, n, fn, v);
}

static bool all_objects(struct visit *v)
{
        struct spot spot = {.up = v->at, .kind = SPOT_INDEX};

        json_foreach (element, v->j) {
                if (element->type != JSON_OBJECT && element->type != JSON_NULL) {
                        plain_cause(v, &spot, CAUSE_INVALID, "Invalid value", element,
                                    "must be an object for an array of list-type map");
                        return false;
                }
                spot.index++;
        }
        return true;
}

static void check_list_type(struct visit *v)
{
        if (v->s->list_type == LIST_SET && json_len(v->j) > 1)
                check_repeated(v, false, repeated_in_set);
        if (v->s->list_type == LIST_MAP && all_objects(v) && json_len(v->j) > 1)
                check_repeated(v, true, repeated_in_map);
}

static const char *shown_size(struct visit *v)
{
        return arena_printf(v->check->arena, "%zu", json_len(v->j));
}

static void check_array(struct visit *v)
{
        const struct schema_node *s = v->s;
        struct spot spot = {.up = v->at, .kind = SPOT_INDEX};
        int64_t n = (int64_t)json_len(v->j);

        if (s->items)
                json_foreach (element, v->j) {
                        visit(v->check, s->items, element, &spot, v->r);
                        spot.index++;
                }
        if (n < s->min_items)
                invalid(v, shown_size(v), "should have at least %lld items", (long long)s->min_items);
        if (s->max_items >= 0 && n > s->max_items)
                invalid(v, shown_size(v), "should have at most %lld items", (long long)s->max_items);
        if (s->unique_items && n > 1)
                check_repeated(v, false, repeated_item);
        v->r->matches += 2;
        check_list_type(v);
}

/* ---- enum */

static void check_enum(struct visit *v)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX);
        const char *separator = "";

        json_foreach (value, v->s->values)
                if (json_equal(value, v->j))
                        return;
        v->r->failed = true;
        if (v->check->silent)
                return;
        buf_adds(&text, "Unsupported value: ");
        go_value(v->j, &text);
        buf_adds(&text, ": supported values: ");
        json_foreach (value, v->s->values) {
                bool string = value->type == JSON_STRING;

                buf_adds(&text, separator);
                go_quote(string ? json_text(value) : str_of(json_print(v->check->arena, value)), &text);
                separator = ", ";
        }
        add_cause(v->r, &(struct schema_cause){.type = CAUSE_UNSUPPORTED,
                                               .field = spot_print(v->check->arena, v->at, SPOT_BODY),
                                               .message = message_of(v->check, &text),
                                               .at = v->j});
}

/* ---- objects */

static void check_required(struct visit *v)
{
        for (size_t i = 0; i < v->s->required.n; i++) {
                struct spot spot = {.up = v->at, .kind = SPOT_CHILD, .name = str_of(v->s->required.v[i])};

                if (json_at(v->j, v->s->required.v[i]))
                        continue;
                v->r->failed = true;
                if (!v->check->silent)
                        add_cause(v->r, &(struct schema_cause){
                                                .type = CAUSE_REQUIRED,
                                                .field = spot_print(v->check->arena, &spot, SPOT_BODY),
                                                .message = "Required value",
                                                .at = v->j});
        }
}

static void check_members(struct visit *v)
{
        json_foreach (member, v->j) {
                struct str name = str_n(member->key, member->key_len);
                const struct schema_node *property = schema_property(v->s, name);
                struct spot spot = {.up = v->at, .kind = property ? SPOT_CHILD : SPOT_KEY, .name = name};

                if (!property)
                        property = v->s->additional;
                if (property)
                        visit(v->check, property, member, &spot, v->r);
        }
}

/* ---- embedded resources */

static void check_api_version(struct visit *v, const struct spot *at, const struct json *value)
{
        struct str text = json_text(value);
        size_t slashes = 0;

        for (size_t i = 0; i < text.n; i++)
                slashes += text.p[i] == '/';
        if (!text.p)
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value, "must be a string");
        else if (text.n == 0)
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value, "must not be empty");
        else if (slashes > 1)
                plain_cause(
                        v, at, CAUSE_INVALID, "Invalid value", value,
                        arena_printf(v->check->arena, "unexpected GroupVersion string: %.*s", STR_ARG(text)));
}

/* [a-z]([-a-z0-9]*[a-z0-9])? in either case. */
static bool is_label(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                bool letter = (s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z';
                bool digit = s.p[i] >= '0' && s.p[i] <= '9';

                if (!(letter || (i > 0 && digit) || (i > 0 && i + 1 < s.n && s.p[i] == '-')))
                        return false;
        }
        return s.n > 0;
}

static void check_kind(struct visit *v, const struct spot *at, const struct json *value)
{
        struct str text = json_text(value);

        if (!text.p)
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value, "must be a string");
        else if (text.n == 0)
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value, "must not be empty");
        else if (text.n > 63)
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value,
                            "may have mixed case, but should otherwise match: must be no more than 63 "
                            "characters");
        else if (!is_label(text))
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value,
                            "may have mixed case, but should otherwise match: a DNS-1035 label must consist "
                            "of lower "
                            "case alphanumeric characters or '-', start with an alphabetic character, and "
                            "end with "
                            "an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
                            "validation is "
                            "'[a-z]([-a-z0-9]*[a-z0-9])?')");
}

static void check_metadata(struct visit *v, const struct spot *at, const struct json *value)
{
        if (value->type != JSON_OBJECT)
                plain_cause(v, at, CAUSE_INVALID, "Invalid value", value, "must be an object");
}

static void check_embedded(struct visit *v)
{
        static const struct {
                const char *name;
                bool required;
                void (*fn)(struct visit *v, const struct spot *at, const struct json *value);
        } fields[] = {
                {"apiVersion", true, check_api_version},
                {"kind", true, check_kind},
                {"metadata", false, check_metadata},
        };

        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                const struct json *value = json_at(v->j, fields[i].name);
                struct spot spot = {.up = v->at, .kind = SPOT_CHILD, .name = str_of(fields[i].name)};

                if (value)
                        fields[i].fn(v, &spot, value);
                else if (fields[i].required)
                        plain_cause(v, &spot, CAUSE_REQUIRED, "Required value", NULL, "must not be empty");
        }
}

static void check_object(struct visit *v)
{
        const struct schema_node *s = v->s;
        int64_t n = (int64_t)json_len(v->j);

        v->r->matches++;
        if (s->embedded)
                check_embedded(v);
        /* these two show the bound, not the value, and end the matter */
        if (n < s->min_properties) {
                invalid(v, arena_printf(v->check->arena, "%lld", (long long)s->min_properties),
                        "should have at least %lld properties", (long long)s->min_properties);
                return;
        }
        if (s->max_properties >= 0 && n > s->max_properties) {
                invalid(v, arena_printf(v->check->arena, "%lld", (long long)s->max_properties),
                        "should have at most %lld properties", (long long)s->max_properties);
                return;
        }
        check_members(v);
        check_required(v);
}

/* ---- all of it */

static void visit(struct check *c, const struct schema_node *s, const struct json *j, const struct spot *at,
                  struct result *r)
{
        struct visit v = {.check = c, .s = s, .j = j, .at = at, .r = r};

        if (j->type == JSON_NULL) {
                check_null(&v);
        } else {
                check_type(&v);
                check_junctors(&v);
        }
        if (j->type == JSON_STRING)
                check_string(&v);
        if (j->type == JSON_NUMBER)
                check_number(&v);
        if (j->type == JSON_ARRAY)
                check_array(&v);
        if (s->values)
                check_enum(&v);
        if (j->type == JSON_OBJECT)
                check_object(&v);
        if (j->type != JSON_NULL)
                r->matches += 2;
}

bool schema_check(const struct schema_node *s, const struct json *value, struct arena *a,
                  struct schema_report *report)
{
        _cleanup_(arena_done) struct arena scratch = ARENA_INIT;
        _cleanup_(result_free) struct result *r = result_new();
        struct check c = {.arena = report ? a : &scratch, .silent = !report};
        struct spot root = {0};

        visit(&c, s, value, &root, r);
        if (report) {
                report->n = r->n;
                report->causes = r->n ? arena_memdup(a, r->causes, r->n * sizeof(*r->causes)) : NULL;
        }
        return !r->failed;
}

bool schema_validate(const struct schema *s, const struct json *value, struct arena *a,
                     struct schema_report *report)
{
        return schema_check(s->root, value, a, report);
}

const char *schema_cause_reason(enum schema_cause_type type)
{
        static const char *const reasons[] = {
                [CAUSE_INVALID] = "FieldValueInvalid",
                [CAUSE_REQUIRED] = "FieldValueRequired",
                [CAUSE_DUPLICATE] = "FieldValueDuplicate",
                [CAUSE_UNSUPPORTED] = "FieldValueNotSupported",
                [CAUSE_TYPE_INVALID] = "FieldValueTypeInvalid",
                [CAUSE_TOO_LONG] = "FieldValueTooLong",
                [CAUSE_TOO_MANY] = "FieldValueTooMany",
        };

        return reasons[type];
}
