#include "base/base.h"

#include <unistd.h>

enum { LINE_MAX_BYTES = 64 * 1024, VALUE_MAX = 4096 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const format_names[] = {"logfmt", "json"};

static bool parse_name(struct str s, const char *const *names, size_t n, int *ret)
{
        for (size_t i = 0; i < n; i++)
                if (str_case_eq(s, str_of(names[i]))) {
                        *ret = (int)i;
                        return true;
                }
        return false;
}

bool log_level_parse(struct str s, enum log_level *ret)
{
        int i;

        if (!parse_name(s, level_names, ARRAY_LEN(level_names), &i))
                return false;
        *ret = (enum log_level)i;
        return true;
}

bool log_format_parse(struct str s, enum log_format *ret)
{
        int i;

        if (!parse_name(s, format_names, ARRAY_LEN(format_names), &i))
                return false;
        *ret = (enum log_format)i;
        return true;
}

void log_init(struct log *log, int fd, enum log_level level, enum log_format format,
              const struct clock *clock)
{
        *log = (struct log){.fd = fd, .level = level, .format = format, .clock = clock};
}

static bool contains_nocase(const char *s, const char *word)
{
        size_t n = strlen(word);

        for (; *s; s++)
                if (strlen(s) >= n && str_case_eq(str_n(s, n), str_n(word, n)))
                        return true;
        return false;
}

static bool names_secret(const char *key)
{
        static const char *const words[] = {"token", "secret", "password", "authorization", "key-data"};

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (contains_nocase(key, words[i]))
                        return true;
        return false;
}

/* Both formats quote with JSON's rules, so one escaper serves. */
static void add_quoted(struct buf *b, struct str s)
{
        size_t n = utf8_cut(s.p, s.n, VALUE_MAX);
        bool valid = utf8_valid(s.p, n);

        buf_addc(b, '"');
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)s.p[i];

                if (c == '"' || c == '\\') {
                        buf_addc(b, '\\');
                        buf_addc(b, (char)c);
                } else if (c == '\n') {
                        buf_adds(b, "\\n");
                } else if (c < 0x20 || c == 0x7f) {
                        buf_printf(b, "\\u%04x", c);
                } else if (c >= 0x80 && !valid) {
                        buf_adds(b, "\\ufffd");
                } else {
                        buf_addc(b, (char)c);
                }
        }
        if (n < s.n)
                buf_adds(b, "...");
        buf_addc(b, '"');
}

static bool is_bare(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f)
                        return false;
        }
        return s.n > 0 && s.n <= VALUE_MAX;
}

static void add_value(struct buf *b, const struct log_field *f, bool json)
{
        switch (f->type) {
        case LOG_FIELD_STR:
                if (f->str.n && names_secret(f->key))
                        buf_printf(b, "\"[redacted, %zu bytes]\"", f->str.n);
                else if (!json && is_bare(f->str))
                        buf_addstr(b, f->str);
                else
                        add_quoted(b, f->str);
                break;
        case LOG_FIELD_SECRET:
                buf_printf(b, "\"[redacted, %zu bytes]\"", f->str.n);
                break;
        case LOG_FIELD_INT:
                buf_printf(b, "%lld", (long long)f->num);
                break;
        case LOG_FIELD_UINT:
                buf_printf(b, "%llu", (unsigned long long)f->num);
                break;
        case LOG_FIELD_USEC:
                buf_printf(b, "%llu.%06llu", (unsigned long long)f->num / 1000000,
                           (unsigned long long)f->num % 1000000);
                break;
        case LOG_FIELD_BOOL:
                buf_adds(b, f->num ? "true" : "false");
                break;
        }
}

static void add_field(struct buf *b, const struct log_field *f, bool json)
{
        if (json)
                buf_printf(b, ",\"%s\":", f->key);
        else
                buf_printf(b, " %s=", f->key);
        add_value(b, f, json);
}

void log_write(const struct log *log, enum log_level level, const char *msg, const struct log_field *fields,
               size_t n)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(LINE_MAX_BYTES);
        bool json = log->format == LOG_FORMAT_JSON;
        struct log_field head[] = {F_STR("msg", msg), F_STR("logger", log->name)};
        char when[TIME_TEXT_MAX];

        time_format_micro(clock_wall(log->clock), when);
        buf_printf(&b, json ? "{\"ts\":\"%s\",\"level\":\"%s\"" : "ts=%s level=%s", when, level_names[level]);
        add_field(&b, &head[0], json);
        if (log->name)
                add_field(&b, &head[1], json);
        for (size_t i = 0; i < n; i++)
                add_field(&b, &fields[i], json);
        buf_adds(&b, json ? "}\n" : "\n");
        if (!b.overflow && write(log->fd, b.p, b.n) < 0)
                return; /* a log that cannot be written must not stop the program */
}
