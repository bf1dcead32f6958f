#include "web/internal.h"

static const struct json_limits BODY_LIMITS = {.bytes = BODY_MAX, .depth = 32, .nodes = 100000};

void fields_complain(struct json *wrong, struct arena *a, const char *where, const char *name,
                     const char *type, const char *msg)
{
        json_append(wrong, json_build(a, "{'type': %s, 'loc': [%s, %p], 'msg': %s}", type, where,
                                      (void *)json_string(a, name), msg));
}

/* What of one member is looked at. */
struct checked {
        const struct field *field;
        const char *where;
        struct json *wrong;
        struct arena *a;
};

static bool complain(const struct checked *c, const char *type, const char *msg)
{
        fields_complain(c->wrong, c->a, c->where, c->field->name, type, msg);
        return false;
}

static bool in_words(const struct checked *c, const struct json *value)
{
        const char *text = json_cstr(value);
        _cleanup_(buf_done) struct buf all = BUF_INIT(4096);

        for (size_t i = 0; c->field->words[i]; i++) {
                if (streq(text, c->field->words[i]))
                        return true;
                buf_printf(&all, "%s'%s'", i ? c->field->words[i + 1] ? ", " : " or " : "",
                           c->field->words[i]);
        }
        return complain(c, "literal_error",
                        arena_printf(c->a, "Input should be %s", all.overflow ? "another" : buf_cstr(&all)));
}

static bool in_bounds(const struct checked *c, int64_t value, const char *what)
{
        const struct field *f = c->field;

        if ((f->least || f->most) && value < f->least)
                return complain(c, "greater_than_equal",
                                arena_printf(c->a, "%s should be greater than or equal to %lld", what,
                                             (long long)f->least));
        if (f->most && value > f->most)
                return complain(c, "less_than_equal",
                                arena_printf(c->a, "%s should be less than or equal to %lld", what,
                                             (long long)f->most));
        return true;
}

static bool is_list_of(const struct json *value, enum json_type type)
{
        if (!json_is(value, JSON_ARRAY))
                return false;
        json_foreach (one, value)
                if (!json_is(one, type) || (type == JSON_STRING && !json_cstr(one)))
                        return false;
        return true;
}

static bool fits(const struct checked *c, const struct json *value)
{
        int64_t number;

        switch (c->field->type) {
        case FIELD_STRING:
                if (!json_cstr(value))
                        return complain(c, "string_type", "Input should be a valid string");
                if (c->field->label && *json_cstr(value) && !name_valid(NAME_LABEL, str_of(json_cstr(value))))
                        return complain(c, "value_error",
                                        "Input should be lower case letters, digits and '-', at most 63");
                return !c->field->words || in_words(c, value);
        case FIELD_INTEGER:
                if (!json_to_i64(value, &number))
                        return complain(c, "int_type", "Input should be a valid integer");
                return in_bounds(c, number, "Input");
        case FIELD_BOOLEAN:
                return json_is(value, JSON_BOOL) ||
                       complain(c, "bool_type", "Input should be a valid boolean");
        case FIELD_OBJECT:
                return json_is(value, JSON_OBJECT) ||
                       complain(c, "dict_type", "Input should be a valid dictionary");
        case FIELD_STRINGS:
                if (!is_list_of(value, JSON_STRING))
                        return complain(c, "list_type", "Input should be a valid list of strings");
                return in_bounds(c, (int64_t)json_len(value), "Its length");
        default:
                if (!is_list_of(value, JSON_OBJECT))
                        return complain(c, "list_type", "Input should be a valid list of dictionaries");
                return in_bounds(c, (int64_t)json_len(value), "Its length");
        }
}

/* VALUE NULL: it was not said. */
static void take(const struct checked *c, struct json *value, struct json *ret)
{
        const struct field *f = c->field;

        if (!value && f->required) {
                complain(c, "missing", "Field required");
        } else if (!value) {
                if (f->otherwise)
                        json_set(c->a, ret, f->name, json_parse(c->a, str_of(f->otherwise), NULL, NULL));
        } else if (value->type == JSON_NULL && f->nullable) {
                return;
        } else if (fits(c, value)) {
                json_set(c->a, ret, f->name, json_copy(c->a, value));
        }
}

struct json *fields_of_body(const struct field *table, struct str text, struct json *wrong, struct arena *a)
{
        struct json *ret = json_object(a), *body;
        struct err err = ERR_INIT;

        if (!table)
                return ret;
        body = text.n ? json_parse(a, text, &BODY_LIMITS, &err) : json_object(a);
        if (!json_is(body, JSON_OBJECT)) {
                json_append(wrong,
                            json_build(a, "{'type': %s, 'loc': ['body'], 'msg': '%s%s'}",
                                       body ? "model_type" : "json_invalid",
                                       body ? "Input should be a valid dictionary" : "JSON decode error: ",
                                       body ? "" : err.text));
                return ret;
        }
        for (const struct field *f = table; f->name; f++)
                take(&(struct checked){f, "body", wrong, a}, json_at(body, f->name), ret);
        return ret;
}

/* A parameter's text as what it is meant to be; what it is not stays a string, and is complained of. */
static struct json *typed(const struct field *f, const char *text, struct arena *a)
{
        int64_t number;

        if (f->type == FIELD_INTEGER && str_to_i64(str_of(text), &number))
                return json_i64(a, number);
        if (f->type == FIELD_BOOLEAN && (streq(text, "true") || streq(text, "false")))
                return json_truth(a, streq(text, "true"));
        return json_string(a, text);
}

struct json *fields_of_query(const struct field *table, struct str query, struct json *wrong, struct arena *a)
{
        struct json *ret = json_object(a), *said = json_object(a);
        const char *name, *value;

        if (!table)
                return ret;
        while (http_query_next(&query, a, &name, &value)) {
                const struct field *f = table;

                while (f->name && !streq(f->name, name))
                        f++;
                if (!f->name || !value)
                        continue;
                if (f->type != FIELD_STRINGS) {
                        if (!json_at(said, name))
                                json_set(a, said, name, typed(f, value, a));
                        continue;
                }
                if (!json_at(said, name))
                        json_set(a, said, name, json_array(a));
                json_append(json_at(said, name), json_string(a, value));
        }
        for (const struct field *f = table; f->name; f++)
                take(&(struct checked){f, "query", wrong, a}, json_at(said, f->name), ret);
        return ret;
}
