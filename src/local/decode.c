/*
 * What Kubernetes' decoder says of values that do not fit their types. Where in the text they are is not told: the text
 * is gone when this is asked.
 */
#include "kube/quantity.h"
#include "local/api_internal.h"

/* Names that are not just written with a capital. */
static const char *const GO_NAMES[][2] = {
        {"metadata", "ObjectMeta"},
        {"apiVersion", "APIVersion"},
        {"uid", "UID"},
        {"dnsPolicy", "DNSPolicy"},
        {"tty", "TTY"},
        {"ip", "IP"},
        {"hostPID", "HostPID"},
        {"clusterIP", "ClusterIP"},
};

static const char *go_name(const char *json, struct arena *a)
{
        char *name = arena_strdup(a, json);

        for (size_t i = 0; i < ARRAY_LEN(GO_NAMES); i++)
                if (streq(json, GO_NAMES[i][0]))
                        return GO_NAMES[i][1];
        if (*name >= 'a' && *name <= 'z')
                *name = (char)(*name - 'a' + 'A');
        return name;
}

/* "io.k8s.api.core.v1.PodSpec" -> "v1.PodSpec" */
static const char *go_type(const struct shape *s, struct arena *a)
{
        const char *dot = s->name ? strrchr(s->name, '.') : NULL;

        if (dot) {
                while (dot > s->name && dot[-1] != '.')
                        dot--;
                return dot;
        }
        switch (s->kind) {
        case SHAPE_INTEGER:
                return s->format ? s->format : "int64";
        case SHAPE_BOOLEAN:
                return "bool";
        case SHAPE_NUMBER:
                return "float64";
        case SHAPE_LIST:
                return arena_join(a, "[]", go_type(s->elem, a), "");
        default:
                return "string";
        }
}

/* How the value begins. */
static const char *first_char(const struct json *v, struct arena *a)
{
        switch (v->type) {
        case JSON_STRING:
                return "\"";
        case JSON_NUMBER:
                return arena_strndup(a, v->text, 1);
        case JSON_BOOL:
                return v->truth ? "t" : "f";
        default:
                return v->type == JSON_OBJECT ? "{" : "[";
        }
}

static const char *bad_integer(const struct shape *s, const struct json *v, struct arena *a)
{
        const char *reader = streq(s->format, "int32") ? "readUint32" : "readUint64";
        int64_t i;
        double d;

        if (v->type != JSON_NUMBER)
                return arena_join(a, reader, ": unexpected character: \xef\xbf\xbd", "");
        if (memchr(v->text, '.', v->len) || memchr(v->text, 'e', v->len) || memchr(v->text, 'E', v->len))
                return json_to_double(v, &d) ? "assertInteger: can not decode float as int" : "overflow";
        if (!json_to_i64(v, &i) || (streq(s->format, "int32") && (i > INT32_MAX || i < INT32_MIN)))
                return arena_join(a, reader, ": overflow", "");
        return NULL;
}

static const char *bad_time(const struct shape *s, struct str text, struct arena *a)
{
        bool micro = str_has_suffix(str_of(s->name), STR(".MicroTime"));
        const char *point = memchr(text.p, '.', text.n);
        size_t digits = 0;
        usec_t at;

        if (!time_parse(text, &at))
                return arena_printf(a,
                                    "unmarshalerDecoder: parsing time \"%.*s\" as "
                                    "\"2006-01-02T15:04:05%sZ07:00\": cannot "
                                    "parse \"%.*s\" as \"2006\"",
                                    STR_ARG(text), micro ? ".000000" : "", STR_ARG(text));
        while (point && point + 1 + digits < text.p + text.n && point[1 + digits] >= '0' &&
               point[1 + digits] <= '9')
                digits++;
        if (!micro || digits == 6)
                return NULL;
        return arena_printf(
                a,
                "unmarshalerDecoder: parsing time \"%.*s\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot "
                "parse \"%s\" as \".000000\"",
                STR_ARG(text),
                arena_strndup(a, text.n > 19 ? text.p + 19 : text.p, text.n > 19 ? text.n - 19 : 0));
}

static const char *bad_bytes(struct str text, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(2 * API_BODY_MAX);
        size_t i = 0;

        if (buf_add_unbase64(&b, text))
                return NULL;
        while (i < text.n &&
               (text.p[i] == '+' || text.p[i] == '/' || (text.p[i] >= '0' && text.p[i] <= '9') ||
                (text.p[i] >= 'a' && text.p[i] <= 'z') || (text.p[i] >= 'A' && text.p[i] <= 'Z')))
                i++;
        return arena_printf(a, "decode base64: illegal base64 data at input byte %zu", i);
}

static const char *bad_string(const struct shape *s, const struct json *v, struct arena *a)
{
        struct quantity q;

        if (s->name && str_has_suffix(str_of(s->name), STR(".Quantity")))
                return quantity_of(v, &q)
                               ? NULL
                               : "unmarshalerDecoder: quantities must match the regular expression "
                                 "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        if (v->type != JSON_STRING)
                return arena_join(a, "ReadString: expects \" or n, but found ", first_char(v, a), "");
        if (s->name && streq(s->format, "date-time"))
                return bad_time(s, json_text(v), a);
        return streq(s->format, "byte") ? bad_bytes(json_text(v), a) : NULL;
}

static const char *problem(const struct shape *s, const struct json *v, struct arena *a);

static const char *bad_fields(const struct shape *s, const struct json *v, struct arena *a)
{
        if (v->type != JSON_OBJECT)
                return arena_join(a, "readObjectStart: expect { or n, but found ", first_char(v, a), "");
        json_foreach (m, v) {
                const struct shape_field *f = shape_find(s, str_n(m->key, m->key_len));
                const char *wrong = f ? problem(f->shape, m, a) : NULL;

                if (wrong)
                        return arena_printf(a, "%s.%s: %s", go_type(s, a), go_name(m->key, a), wrong);
        }
        return NULL;
}

static const char *bad_elements(const struct shape *s, const struct json *v, struct arena *a)
{
        bool list = s->kind == SHAPE_LIST;

        if (v->type != (list ? JSON_ARRAY : JSON_OBJECT))
                return list ? arena_printf(a, "%s: decode slice: expect [ or n, but found %s", go_type(s, a),
                                           first_char(v, a))
                            : arena_join(a, "ReadMapCB: expect { or n, but found ", first_char(v, a), "");
        json_foreach (child, v) {
                const char *wrong = problem(s->elem, child, a);

                if (wrong)
                        return list ? arena_join(a, go_type(s, a), ": ", wrong) : wrong;
        }
        return NULL;
}

static const char *problem(const struct shape *s, const struct json *v, struct arena *a)
{
        if (v->type == JSON_NULL)
                return NULL;
        switch (s->kind) {
        case SHAPE_STRING:
                return bad_string(s, v, a);
        case SHAPE_INTEGER:
                return bad_integer(s, v, a);
        case SHAPE_BOOLEAN:
                return v->type == JSON_BOOL
                               ? NULL
                               : arena_join(a, "ReadBool: expect t or f, but found ", first_char(v, a), "");
        case SHAPE_OBJECT:
                return bad_fields(s, v, a);
        case SHAPE_LIST:
        case SHAPE_MAP:
                return bad_elements(s, v, a);
        default:
                return NULL;
        }
}

const char *decode_problem(const struct shape *shape, const struct json *object, struct arena *a)
{
        return problem(shape, object, a);
}
