#include "json/internal.h"

static void write_escape(struct buf *out, unsigned char c)
{
        static const char names[256] = {
                        ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                        ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
        };
        static const char hex[] = "0123456789abcdef";
        char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        if (names[c]) {
                text[1] = names[c];
                buf_add(out, text, 2);
        } else {
                buf_add(out, text, 6);
        }
}

static bool is_plain(char c)
{
        return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

/* Copies plain characters up to the first that must be escaped; returns how many. TO has room for all. */
static inline size_t copy_plain(char *to, const char *from, size_t n)
{
        size_t i = 0;

        for (; n - i >= 8; i += 8) {
                uint64_t w;

                if (string_stops(load8(from + i)))
                        break;
                memcpy(&w, from + i, 8);
                memcpy(to + i, &w, 8);
        }
        for (; i < n && is_plain(from[i]); i++)
                to[i] = from[i];
        return i;
}

static void write_escaped(struct str s, struct buf *out)
{
        size_t from = 0, i = 0;

        for (; i < s.n; i++) {
                if (is_plain(s.p[i]))
                        continue;
                buf_add(out, s.p + from, i - from);
                write_escape(out, (unsigned char)s.p[i]);
                from = i + 1;
        }
        buf_add(out, s.p + from, i - from);
        buf_addc(out, '"');
}

void json_write_string(struct str s, struct buf *out)
{
        char *to = buf_reserve(out, s.n + 2);
        size_t plain;

        if (!to)
                return;
        *to++ = '"';
        plain = copy_plain(to, s.p, s.n);
        if (plain == s.n) {
                to[plain] = '"';
                out->n += s.n + 2;
                return;
        }
        out->n += plain + 1;
        write_escaped(str_n(s.p + plain, s.n - plain), out);
}

static void new_line(struct buf *out, unsigned level)
{
        char *to = buf_reserve(out, 1 + (size_t)level * 2);

        if (!to)
                return;
        *to = '\n';
        memset(to + 1, ' ', (size_t)level * 2);
        out->n += 1 + (size_t)level * 2;
}

static void write_node(const struct json *j, struct buf *out, bool pretty, unsigned level);

static void write_children(const struct json *j, struct buf *out, bool pretty, unsigned level)
{
        bool object = j->type == JSON_OBJECT, first = true;

        buf_addc(out, object ? '{' : '[');
        json_foreach (child, j) {
                if (!first)
                        buf_addc(out, ',');
                first = false;
                if (pretty)
                        new_line(out, level + 1);
                if (object) {
                        json_write_string(json_key(child), out);
                        buf_addc(out, ':');
                        if (pretty)
                                buf_addc(out, ' ');
                }
                write_node(child, out, pretty, level + 1);
        }
        if (pretty && !first)
                new_line(out, level);
        buf_addc(out, object ? '}' : ']');
}

static void write_node(const struct json *j, struct buf *out, bool pretty, unsigned level)
{
        switch ((enum json_type)j->type) {
        case JSON_NULL:
                buf_add(out, "null", 4);
                break;
        case JSON_BOOL:
                buf_addstr(out, j->truth ? STR("true") : STR("false"));
                break;
        case JSON_NUMBER:
                buf_add(out, j->text, j->len);
                break;
        case JSON_STRING:
                json_write_string(str_n(j->text, j->len), out);
                break;
        case JSON_ARRAY:
        case JSON_OBJECT:
                write_children(j, out, pretty, level);
                break;
        }
}

void json_write(const struct json *j, enum json_style style, struct buf *out)
{
        if (j)
                write_node(j, out, style == JSON_PRETTY, 0);
        else
                buf_add(out, "null", 4);
}

char *json_print(struct arena *a, const struct json *j)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);

        json_write(j, JSON_COMPACT, &out);
        return arena_strndup(a, out.p, out.n);
}
