/*
 * json_build(): a template with holes. The template is part of the program, so it is read leniently in its quotes and
 * not at all in its mistakes.
 */
#include "json/internal.h"

struct builder {
        struct arena *arena;
        const char *template;
        const char *at;
        va_list args;
};

enum conversion {
        CONV_STRING,
        CONV_COUNTED,
        CONV_INT,
        CONV_LONG,
        CONV_LLONG,
        CONV_UINT,
        CONV_ULONG,
        CONV_ULLONG,
        CONV_SIZE,
        CONV_NODE
};

static const struct {
        const char *text;
        enum conversion conversion;
} conversions[] = {
        {"s", CONV_STRING},  {".*s", CONV_COUNTED}, {"d", CONV_INT},    {"ld", CONV_LONG},
        {"lld", CONV_LLONG}, {"u", CONV_UINT},      {"lu", CONV_ULONG}, {"llu", CONV_ULLONG},
        {"zu", CONV_SIZE},   {"p", CONV_NODE},
};

static _noreturn_ void mistake(const struct builder *b, const char *what)
{
        fprintf(stderr, "sonde: json_build: %s at offset %td of template: %s\n", what, b->at - b->template,
                b->template);
        abort();
}

static char peek(struct builder *b)
{
        while (*b->at == ' ' || *b->at == '\n' || *b->at == '\t' || *b->at == '\r')
                b->at++;
        return *b->at;
}

static void expect(struct builder *b, char c)
{
        if (peek(b) != c)
                mistake(b, "unexpected character");
        b->at++;
}

/* b->at is behind the %. */
static enum conversion read_conversion(struct builder *b)
{
        if (b->at[0] == 's') { /* most are */
                b->at++;
                return CONV_STRING;
        }
        for (size_t i = 0; i < ARRAY_LEN(conversions); i++) {
                size_t n = strlen(conversions[i].text);

                if (strncmp(b->at, conversions[i].text, n) == 0) {
                        b->at += n;
                        return conversions[i].conversion;
                }
        }
        mistake(b, "unknown conversion");
}

/* %.*s, as printf has it: at most N bytes, or up to the NUL when N is negative. */
static struct str counted_arg(struct builder *b)
{
        int n = va_arg(b->args, int);
        const char *s = va_arg(b->args, const char *);

        return n < 0 || !s ? str_of(s) : str_n(s, strnlen(s, (size_t)n));
}

/* The argument of CONVERSION as a node; NULL for a %p that is to be left out. */
static struct json *next_arg(struct builder *b, enum conversion conversion)
{
        struct str s;

        switch (conversion) {
        case CONV_STRING:
        case CONV_COUNTED:
                s = conversion == CONV_STRING ? str_of(va_arg(b->args, const char *)) : counted_arg(b);
                return s.p ? json_stringn(b->arena, s) : json_null(b->arena);
        case CONV_INT:
                return json_i64(b->arena, va_arg(b->args, int));
        case CONV_LONG:
                return json_i64(b->arena, va_arg(b->args, long));
        case CONV_LLONG:
                return json_i64(b->arena, va_arg(b->args, long long));
        case CONV_UINT:
                return json_u64(b->arena, va_arg(b->args, unsigned));
        case CONV_ULONG:
                return json_u64(b->arena, va_arg(b->args, unsigned long));
        case CONV_ULLONG:
                return json_u64(b->arena, va_arg(b->args, unsigned long long));
        case CONV_SIZE:
                return json_u64(b->arena, va_arg(b->args, size_t));
        case CONV_NODE:
                return va_arg(b->args, struct json *);
        }
        mistake(b, "unknown conversion");
}

/* A conversion inside quotes; b->at is behind the %. */
static void add_arg(struct builder *b, struct buf *out)
{
        enum conversion conversion;
        const struct json *j;

        if (*b->at == '%') {
                buf_addc(out, '%');
                b->at++;
                return;
        }
        conversion = read_conversion(b);
        if (conversion == CONV_NODE)
                mistake(b, "a %p inside quotes");
        j = next_arg(b, conversion);
        if (j->type != JSON_NULL)
                buf_add(out, j->text, j->len);
}

static char unescape(struct builder *b)
{
        switch (*b->at) {
        case 'n':
                return '\n';
        case 't':
                return '\t';
        case '\\':
        case '\'':
        case '"':
                return *b->at;
        default:
                mistake(b, "unknown escape");
        }
}

/* A quoted text without conversions and escapes, as most are, needs no work: STR_NULL if it is not one. */
static struct str plain_text(struct builder *b)
{
        const char *text = b->at + 1;
        size_t n = strcspn(text, *b->at == '"' ? "\"%\\" : "'%\\");

        if (text[n] != *b->at)
                return STR_NULL;
        b->at = text + n + 1;
        return str_n(text, n);
}

/* A quoted text with its conversions done; b->at is the opening quote. */
static struct json *build_string(struct builder *b)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);
        char quote = *b->at++;

        while (*b->at != quote) {
                char c = *b->at++;

                if (c == '\0')
                        mistake(b, "a string without an end");
                if (c == '%') {
                        add_arg(b, &out);
                } else if (c == '\\') {
                        buf_addc(&out, unescape(b));
                        b->at++;
                } else {
                        buf_addc(&out, c);
                }
        }
        b->at++;
        return json_stringn(b->arena, out.p ? buf_str(&out) : STR(""));
}

/* true, false, null or a number. */
static struct json *build_word(struct builder *b)
{
        size_t n = strcspn(b->at, " \t\r\n,]}");
        struct json *j = json_parse(b->arena, str_n(b->at, n), NULL, NULL);

        if (!j)
                mistake(b, "not a value");
        b->at += n;
        return j;
}

static struct json *build_value(struct builder *b);

static struct json *build_object(struct builder *b)
{
        struct json *object = json_object(b->arena);
        struct str name;

        expect(b, '{');
        for (bool more = false; peek(b) != '}'; more = true) {
                if (more)
                        expect(b, ',');
                if (peek(b) != '\'' && *b->at != '"')
                        mistake(b, "not a member name");
                name = plain_text(b);
                if (!name.p)
                        name = json_text(build_string(b));
                expect(b, ':');
                json_setn(b->arena, object, name, build_value(b));
        }
        b->at++;
        return object;
}

static struct json *build_array(struct builder *b)
{
        struct json *array = json_array(b->arena);

        expect(b, '[');
        for (bool more = false; peek(b) != ']'; more = true) {
                if (more)
                        expect(b, ',');
                json_append(array, build_value(b));
        }
        b->at++;
        return array;
}

static struct json *build_text(struct builder *b)
{
        struct str plain = plain_text(b);

        return plain.p ? json_stringn(b->arena, plain) : build_string(b);
}

static struct json *build_value(struct builder *b)
{
        switch (peek(b)) {
        case '{':
                return build_object(b);
        case '[':
                return build_array(b);
        case '\'':
        case '"':
                return build_text(b);
        case '%':
                b->at++;
                return next_arg(b, read_conversion(b));
        default:
                return build_word(b);
        }
}

struct json *json_build(struct arena *a, const char *template, ...)
{
        struct builder b = {.arena = a, .template = template, .at = template};
        struct json *j;

        va_start(b.args, template);
        j = build_value(&b);
        if (peek(&b))
                mistake(&b, "more than one value");
        va_end(b.args);
        return j;
}
