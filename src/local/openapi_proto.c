/*
 * An OpenAPI v2 document as protobuf: gnostic's openapi.v2.Document, which kubectl asks for.
 *
 * Messages are tables of fields in the order of their numbers. What is false, 0 or empty is left out, as proto3 has it.
 * Values of any kind (extensions, enums, defaults) are YAML there; JSON is YAML.
 */
#include "local/openapi_private.h"

enum kind {
        STRING,
        STRINGS,
        BOOL,
        INT,
        DOUBLE,
        ANY,
        ANYS,
        MESSAGE,
        MESSAGES,
        SCHEMA_OR_BOOL,
        TYPES,      /* one string or several, in a message of their own */
        PARAMETERS, /* each is one of several messages */
};

struct message;

struct field {
        unsigned number;
        const char *name;
        enum kind kind;
        const struct message *message;
        unsigned wrap; /* number in a message around MESSAGE that has nothing else; 0: none */
};

struct message {
        const struct field *fields; /* a number of 0 ends them */
        unsigned extensions;        /* number of the members that begin with "x-"; 0: none */
        /* Instead of fields: every member is a message {1: name, 2: value} of number NAMED. */
        unsigned named;
        struct field value;
};

#define LIMITS(first)                                                                      \
        {(first), "maximum", DOUBLE}, {(first) + 1, "exclusiveMaximum", BOOL},             \
                {(first) + 2, "minimum", DOUBLE}, {(first) + 3, "exclusiveMinimum", BOOL}, \
                {(first) + 4, "maxLength", INT}, {(first) + 5, "minLength", INT},          \
                {(first) + 6, "pattern", STRING}, {(first) + 7, "maxItems", INT},          \
                {(first) + 8, "minItems", INT},                                            \
        {                                                                                  \
                (first) + 9, "uniqueItems", BOOL                                           \
        }

static const struct message SCHEMA;
static const struct message SCHEMAS = {.named = 1, .value = {2, NULL, MESSAGE, &SCHEMA}};

static const struct message SCHEMA = {
        .fields =
                (const struct field[]){
                        {1, "$ref", STRING},
                        {2, "format", STRING},
                        {3, "title", STRING},
                        {4, "description", STRING},
                        {5, "default", ANY},
                        {6, "multipleOf", DOUBLE},
                        LIMITS(7),
                        {17, "maxProperties", INT},
                        {18, "minProperties", INT},
                        {19, "required", STRINGS},
                        {20, "enum", ANYS},
                        {21, "additionalProperties", SCHEMA_OR_BOOL},
                        {22, "type", TYPES},
                        {23, "items", MESSAGE, &SCHEMA, 1},
                        {25, "properties", MESSAGE, &SCHEMAS},
                        {0},
                },
        .extensions = 31,
};

static const struct message BODY = {
        .fields =
                (const struct field[]){
                        {1, "description", STRING},
                        {2, "name", STRING},
                        {3, "in", STRING},
                        {4, "required", BOOL},
                        {5, "schema", MESSAGE, &SCHEMA},
                        {0},
                },
        .extensions = 6,
};
static const struct message QUERY = {
        .fields =
                (const struct field[]){
                        {1, "required", BOOL},
                        {2, "in", STRING},
                        {3, "description", STRING},
                        {4, "name", STRING},
                        {5, "allowEmptyValue", BOOL},
                        {6, "type", STRING},
                        {7, "format", STRING},
                        {9, "collectionFormat", STRING},
                        {10, "default", ANY},
                        LIMITS(11),
                        {21, "enum", ANYS},
                        {22, "multipleOf", DOUBLE},
                        {0},
                },
        .extensions = 23,
};
static const struct message PATH = {
        .fields =
                (const struct field[]){
                        {1, "required", BOOL},
                        {2, "in", STRING},
                        {3, "description", STRING},
                        {4, "name", STRING},
                        {5, "type", STRING},
                        {6, "format", STRING},
                        {8, "collectionFormat", STRING},
                        {9, "default", ANY},
                        LIMITS(10),
                        {20, "enum", ANYS},
                        {21, "multipleOf", DOUBLE},
                        {0},
                },
        .extensions = 22,
};

static const struct message RESPONSE = {
        .fields =
                (const struct field[]){
                        {1, "description", STRING},
                        {2, "schema", MESSAGE, &SCHEMA, 1},
                        {0},
                },
        .extensions = 5,
};
static const struct message RESPONSES = {.named = 1, .value = {2, NULL, MESSAGE, &RESPONSE, 1}};

static const struct message OPERATION = {
        .fields =
                (const struct field[]){
                        {1, "tags", STRINGS},
                        {2, "summary", STRING},
                        {3, "description", STRING},
                        {5, "operationId", STRING},
                        {6, "produces", STRINGS},
                        {7, "consumes", STRINGS},
                        {8, "parameters", PARAMETERS},
                        {9, "responses", MESSAGE, &RESPONSES},
                        {10, "schemes", STRINGS},
                        {11, "deprecated", BOOL},
                        {0},
                },
        .extensions = 13,
};
static const struct message PATH_ITEM = {
        .fields =
                (const struct field[]){
                        {2, "get", MESSAGE, &OPERATION},
                        {3, "put", MESSAGE, &OPERATION},
                        {4, "post", MESSAGE, &OPERATION},
                        {5, "delete", MESSAGE, &OPERATION},
                        {6, "options", MESSAGE, &OPERATION},
                        {7, "head", MESSAGE, &OPERATION},
                        {8, "patch", MESSAGE, &OPERATION},
                        {9, "parameters", PARAMETERS},
                        {0},
                },
        .extensions = 10,
};
static const struct message PATHS = {.named = 2, .value = {2, NULL, MESSAGE, &PATH_ITEM}};

static const struct message API_KEY = {
        .fields =
                (const struct field[]){
                        {1, "type", STRING},
                        {2, "name", STRING},
                        {3, "in", STRING},
                        {4, "description", STRING},
                        {0},
                },
};
static const struct message SECURITY_DEFINITIONS = {.named = 1, .value = {2, NULL, MESSAGE, &API_KEY, 2}};
static const struct message REQUIREMENT = {.named = 1, .value = {2, NULL, TYPES}};
static const struct message INFO = {
        .fields = (const struct field[]){{1, "title", STRING}, {2, "version", STRING}, {0}},
};

static const struct message DOCUMENT = {
        .fields =
                (const struct field[]){
                        {1, "swagger", STRING},
                        {2, "info", MESSAGE, &INFO},
                        {8, "paths", MESSAGE, &PATHS},
                        {9, "definitions", MESSAGE, &SCHEMAS},
                        {12, "security", MESSAGES, &REQUIREMENT},
                        {13, "securityDefinitions", MESSAGE, &SECURITY_DEFINITIONS},
                        {0},
                },
};

/* ---- the wire */

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2 };
enum { VARINT_MAX = 10 };

static size_t varint(uint64_t value, char out[VARINT_MAX])
{
        size_t n = 0;

        for (; value >= 0x80; value >>= 7)
                out[n++] = (char)(value | 0x80);
        out[n++] = (char)value;
        return n;
}

static void add_varint(struct buf *out, uint64_t value)
{
        char bytes[VARINT_MAX];

        buf_add(out, bytes, varint(value, bytes));
}

static void add_tag(struct buf *out, unsigned number, enum wire wire)
{
        add_varint(out, (uint64_t)number << 3 | wire);
}

/* A message's length stands before it: room for it is made when the message is complete. */
static size_t begin(struct buf *out, unsigned number)
{
        add_tag(out, number, BYTES);
        return out->n;
}

static void end(struct buf *out, size_t start)
{
        char bytes[VARINT_MAX];
        size_t len = out->n - start, n = varint(len, bytes);

        buf_add(out, bytes, n);
        if (out->overflow)
                return;
        memmove(out->p + start + n, out->p + start, len);
        memcpy(out->p + start, bytes, n);
}

static void add_bytes(struct buf *out, unsigned number, struct str text)
{
        add_tag(out, number, BYTES);
        add_varint(out, text.n);
        buf_addstr(out, text);
}

static void add_double(struct buf *out, unsigned number, const struct json *value)
{
        double d;
        uint64_t bits;
        char bytes[8];

        if (!json_to_double(value, &d) || d == 0)
                return;
        memcpy(&bits, &d, sizeof(bits));
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char)(bits >> (8 * i));
        add_tag(out, number, FIXED64);
        buf_add(out, bytes, sizeof(bytes));
}

static void add_int(struct buf *out, unsigned number, const struct json *value)
{
        int64_t i;

        if (!json_to_i64(value, &i) || i == 0)
                return;
        add_tag(out, number, VARINT);
        add_varint(out, (uint64_t)i);
}

static void add_bool(struct buf *out, unsigned number, const struct json *value)
{
        if (!json_is(value, JSON_BOOL) || !value->truth)
                return;
        add_tag(out, number, VARINT);
        add_varint(out, 1);
}

/* Any: {2: yaml} */
static void add_any(struct buf *out, unsigned number, const struct json *value)
{
        size_t any = begin(out, number), yaml = begin(out, 2);

        json_write(value, JSON_COMPACT, out);
        buf_addc(out, '\n');
        end(out, yaml);
        end(out, any);
}

/* ---- values of fields */

static void add_fields(struct buf *out, const struct message *m, const struct json *object);

static void add_message(struct buf *out, const struct field *f, const struct json *value)
{
        size_t start = begin(out, f->number), inner = f->wrap ? begin(out, f->wrap) : 0;

        add_fields(out, f->message, value);
        if (f->wrap)
                end(out, inner);
        end(out, start);
}

static void add_schema_or_bool(struct buf *out, unsigned number, const struct json *value)
{
        static const struct field schema = {1, NULL, MESSAGE, &SCHEMA};
        size_t start = begin(out, number);

        if (json_is(value, JSON_OBJECT)) {
                add_message(out, &schema, value);
        } else {
                add_tag(out, 2, VARINT); /* one of two: false is written too */
                add_varint(out, json_is(value, JSON_BOOL) && value->truth);
        }
        end(out, start);
}

static void add_strings(struct buf *out, unsigned number, const struct json *value)
{
        if (json_is(value, JSON_STRING))
                add_bytes(out, number, json_text(value));
        json_foreach (item, value)
                if (json_is(item, JSON_STRING))
                        add_bytes(out, number, json_text(item));
}

/* ParametersItem{1: Parameter{1: body} or Parameter{2: NonBodyParameter{3: query, or 4: path}}} */
static void add_parameter(struct buf *out, unsigned number, const struct json *value)
{
        static const struct {
                const char *in;
                struct field field;
        } places[] = {
                {"body", {1, NULL, MESSAGE, &BODY}},
                {"query", {3, NULL, MESSAGE, &QUERY}},
                {"path", {4, NULL, MESSAGE, &PATH}},
        };

        for (size_t i = 0; i < ARRAY_LEN(places); i++)
                if (streq(json_str(value, "in"), places[i].in)) {
                        bool is_body = places[i].field.message == &BODY;
                        size_t item = begin(out, number), parameter = begin(out, 1);
                        size_t other = is_body ? 0 : begin(out, 2);

                        add_message(out, &places[i].field, value);
                        if (!is_body)
                                end(out, other);
                        end(out, parameter);
                        end(out, item);
                }
}

static void add_repeated(struct buf *out, const struct field *f, const struct json *value)
{
        json_foreach (item, value) {
                if (f->kind == ANYS)
                        add_any(out, f->number, item);
                else if (f->kind == MESSAGES)
                        add_message(out, f, item);
                else
                        add_parameter(out, f->number, item);
        }
}

static void add_value(struct buf *out, const struct field *f, const struct json *value)
{
        size_t start;

        switch (f->kind) {
        case STRING:
                if (json_text(value).n)
                        add_bytes(out, f->number, json_text(value));
                break;
        case STRINGS:
                add_strings(out, f->number, value);
                break;
        case BOOL:
                add_bool(out, f->number, value);
                break;
        case INT:
                add_int(out, f->number, value);
                break;
        case DOUBLE:
                add_double(out, f->number, value);
                break;
        case ANY:
                add_any(out, f->number, value);
                break;
        case MESSAGE:
                add_message(out, f, value);
                break;
        case SCHEMA_OR_BOOL:
                add_schema_or_bool(out, f->number, value);
                break;
        case TYPES:
                start = begin(out, f->number);
                add_strings(out, 1, value);
                end(out, start);
                break;
        case ANYS:
        case MESSAGES:
        case PARAMETERS:
                add_repeated(out, f, value);
                break;
        }
}

static void add_named(struct buf *out, const struct message *m, const struct json *object)
{
        json_foreach (member, object) {
                size_t start = begin(out, m->named);

                add_bytes(out, 1, str_n(member->key, member->key_len));
                add_value(out, &m->value, member);
                end(out, start);
        }
}

static void add_extensions(struct buf *out, unsigned number, const struct json *object)
{
        json_foreach (member, object) {
                size_t start;

                if (!str_has_prefix(str_n(member->key, member->key_len), STR("x-")))
                        continue;
                start = begin(out, number);
                add_bytes(out, 1, str_n(member->key, member->key_len));
                add_any(out, 2, member);
                end(out, start);
        }
}

static void add_fields(struct buf *out, const struct message *m, const struct json *object)
{
        if (m->named) {
                add_named(out, m, object);
                return;
        }
        for (const struct field *f = m->fields; f->number; f++) {
                const struct json *value = json_at(object, f->name);

                if (value)
                        add_value(out, f, value);
        }
        if (m->extensions)
                add_extensions(out, m->extensions, object);
}

void openapi_encode(const struct json *document, struct buf *out)
{
        add_fields(out, &DOCUMENT, document);
}
