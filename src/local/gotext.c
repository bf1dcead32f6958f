/* Values as Go's fmt package prints them: messages of the API server hold them. */
#include "local/fields_internal.h"

enum { GO_TEXT_MAX = 1 << 24 };

static bool is_whole(const struct json *number)
{
        return !memchr(number->text, '.', number->len) && !memchr(number->text, 'e', number->len) &&
               !memchr(number->text, 'E', number->len);
}

static void print_number(struct buf *out, const struct json *number)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *shortest;
        double value;

        if (is_whole(number) || !json_to_double(number, &value)) {
                buf_add(out, number->text, number->len);
                return;
        }
        shortest = json_double(&a, value);
        buf_add(out, shortest->text, shortest->len);
}

static int by_key(const void *x, const void *y)
{
        const struct json *const *l = x, *const *r = y;

        return str_cmp(str_n((*l)->key, (*l)->key_len), str_n((*r)->key, (*r)->key_len));
}

/* Members in the order of their names, as Go prints maps. */
static const struct json **sorted_members(const struct json *object)
{
        const struct json **list = xcalloc(json_len(object) + 1, sizeof(*list));
        size_t n = 0;

        json_foreach (member, object)
                list[n++] = member;
        if (n)
                qsort(list, n, sizeof(*list), by_key);
        return list;
}

static void print(struct buf *out, const struct json *value, bool syntax);

static void print_map(struct buf *out, const struct json *object, bool syntax)
{
        _cleanup_(free_ptr) const struct json **list = sorted_members(object);

        buf_adds(out, syntax ? "map[string]interface {}{" : "map[");
        for (size_t i = 0; list[i]; i++) {
                if (i)
                        buf_adds(out, syntax ? ", " : " ");
                if (syntax)
                        go_quote(str_n(list[i]->key, list[i]->key_len), out);
                else
                        buf_add(out, list[i]->key, list[i]->key_len);
                buf_addc(out, ':');
                print(out, list[i], syntax);
        }
        buf_addc(out, syntax ? '}' : ']');
}

static void print_list(struct buf *out, const struct json *list, bool syntax)
{
        const char *between = "";

        buf_adds(out, syntax ? "[]interface {}{" : "[");
        json_foreach (item, list) {
                buf_adds(out, between);
                between = syntax ? ", " : " ";
                print(out, item, syntax);
        }
        buf_addc(out, syntax ? '}' : ']');
}

static void print(struct buf *out, const struct json *value, bool syntax)
{
        switch ((enum json_type)value->type) {
        case JSON_NULL:
                buf_adds(out, syntax ? "interface {}(nil)" : "<nil>");
                break;
        case JSON_BOOL:
                buf_adds(out, value->truth ? "true" : "false");
                break;
        case JSON_NUMBER:
                print_number(out, value);
                break;
        case JSON_STRING:
                if (syntax)
                        go_quote(json_text(value), out);
                else
                        buf_addstr(out, json_text(value));
                break;
        case JSON_ARRAY:
                print_list(out, value, syntax);
                break;
        case JSON_OBJECT:
                print_map(out, value, syntax);
                break;
        }
}

void go_print(struct buf *out, const struct json *value)
{
        print(out, value, false);
}

void go_print_syntax(struct buf *out, const struct json *value)
{
        print(out, value, true);
}

void go_print_scalar(struct buf *out, const struct json *scalar)
{
        if (scalar->type == JSON_STRING)
                go_quote(json_text(scalar), out);
        else if (scalar->type == JSON_NULL)
                buf_adds(out, "null");
        else
                print(out, scalar, false);
}

void go_write_string(struct buf *out, struct str s)
{
        size_t from = out->n;
        _cleanup_(buf_done) struct buf plain = BUF_INIT(GO_TEXT_MAX);

        json_write_string(s, out);
        if (!s.n || out->overflow)
                return;
        if (!memchr(s.p, '<', s.n) && !memchr(s.p, '>', s.n) && !memchr(s.p, '&', s.n) &&
            !memchr(s.p, 0xe2, s.n))
                return;
        buf_add(&plain, out->p + from, out->n - from);
        out->n = from;
        for (size_t i = 0; i < plain.n; i++) {
                unsigned char c = (unsigned char)plain.p[i];

                if (c == '<' || c == '>' || c == '&') {
                        buf_printf(out, "\\u%04x", c);
                } else if (c == 0xe2 && i + 2 < plain.n && (unsigned char)plain.p[i + 1] == 0x80 &&
                           ((unsigned char)plain.p[i + 2] & 0xfe) == 0xa8) {
                        buf_adds(out, (unsigned char)plain.p[i + 2] == 0xa8 ? "\\u2028" : "\\u2029");
                        i += 2;
                } else {
                        buf_addc(out, (char)c);
                }
        }
}

static void marshal(struct buf *out, const struct json *value)
{
        _cleanup_(free_ptr) const struct json **list = NULL;
        const char *between = "";

        if (value->type == JSON_OBJECT) {
                list = sorted_members(value);
                buf_addc(out, '{');
                for (size_t i = 0; list[i]; i++) {
                        buf_adds(out, i ? "," : "");
                        go_write_string(out, str_n(list[i]->key, list[i]->key_len));
                        buf_addc(out, ':');
                        marshal(out, list[i]);
                }
                buf_addc(out, '}');
        } else if (value->type == JSON_ARRAY) {
                buf_addc(out, '[');
                json_foreach (item, value) {
                        buf_adds(out, between);
                        between = ",";
                        marshal(out, item);
                }
                buf_addc(out, ']');
        } else if (value->type == JSON_STRING) {
                go_write_string(out, json_text(value));
        } else {
                json_write(value, JSON_COMPACT, out);
        }
}

const char *go_marshal(struct arena *a, const struct json *value)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(GO_TEXT_MAX);

        marshal(&out, value);
        buf_addc(&out, '\n');
        return arena_strndup(a, out.p, out.n);
}
