/*
 * Documents as YAML in block style, as kubectl writes them.
 *
 * A string stands plain only where every reader of YAML 1.1 and 1.2 takes it for one: it begins with a letter, a slash or
 * an underscore, or is a flag (--model), and is none of the words that mean something else. All others are in quotes.
 */
#include "json/yaml.h"
#include "json/yaml_scalar.h"

enum {
        STEP = 2,       /* blanks a level */
        KEY_MAX = 1000, /* bytes as written; libyaml's limit for a key on one line is 1024 */
};

static bool is_letter(char c)
{
        c |= 0x20;
        return c >= 'a' && c <= 'z';
}

/* Letters, a path, an option of a command. */
static bool begins_plain(struct str s)
{
        size_t i = 0;

        if (s.p[0] == '/' || s.p[0] == '_')
                return true;
        while (i < 2 && i < s.n && s.p[i] == '-')
                i++;
        return i < s.n && is_letter(s.p[i]);
}

static bool is_word_of_yaml(struct str s)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char text[8];

        if (s.n >= sizeof(text)) /* the longest is "false" */
                return false;
        memcpy(text, s.p, s.n);
        text[s.n] = '\0';
        return yaml_resolve(&a, str_n(text, s.n)).kind != YAML_KIND_STR;
}

static bool is_plain(struct str s)
{
        if (s.n == 0 || !begins_plain(s) || s.p[s.n - 1] == ' ' || s.p[s.n - 1] == ':')
                return false;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < 0x20 || s.p[i] > 0x7e)
                        return false;
                if (i > 0 && ((s.p[i] == ' ' && s.p[i - 1] == ':') || (s.p[i] == '#' && s.p[i - 1] == ' ')))
                        return false;
        }
        return !is_word_of_yaml(s);
}

/* ---- characters */

/* The code point at *AT, which moves on. S is UTF-8: documents hold nothing else. */
static uint32_t next_char(struct str s, size_t *at)
{
        unsigned char c = (unsigned char)s.p[(*at)++];
        unsigned more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        uint32_t code = more == 0 ? c : c & (0x3fu >> more);

        for (; more && *at < s.n; more--)
                code = code << 6 | ((unsigned char)s.p[(*at)++] & 0x3fu);
        return code;
}

/* What may stand in a text as it is: no control character, no other end of a line, no byte order mark. */
static bool is_printable(uint32_t c)
{
        return (c >= 0x20 && c <= 0x7e) || (c > 0xa0 && c < 0xd800 && c != 0x2028 && c != 0x2029) ||
               (c >= 0xe000 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
}

static void add_escape(struct buf *out, uint32_t c)
{
        static const char names[][3] = {['\0'] = "\\0", ['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};

        if (c < ARRAY_LEN(names) && names[c][0])
                buf_adds(out, names[c]);
        else if (c <= 0xff)
                buf_printf(out, "\\x%02X", c);
        else if (c <= 0xffff)
                buf_printf(out, "\\u%04X", c);
        else
                buf_printf(out, "\\U%08X", c);
}

static void add_double_quoted(struct buf *out, struct str s)
{
        buf_addc(out, '"');
        for (size_t at = 0; at < s.n;) {
                size_t start = at;
                uint32_t c = next_char(s, &at);

                if (c == '"' || c == '\\')
                        buf_addc(out, '\\');
                if (is_printable(c))
                        buf_add(out, s.p + start, at - start);
                else
                        add_escape(out, c);
        }
        buf_addc(out, '"');
}

static void add_single_quoted(struct buf *out, struct str s)
{
        buf_addc(out, '\'');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '\'')
                        buf_addc(out, '\'');
                buf_addc(out, s.p[i]);
        }
        buf_addc(out, '\'');
}

/* In single quotes where that saves backslashes: JSON in YAML stays readable. */
static void add_on_one_line(struct buf *out, struct str s)
{
        bool ascii = true, escapes = false;

        if (is_plain(s)) {
                buf_addstr(out, s);
                return;
        }
        for (size_t i = 0; i < s.n; i++) {
                ascii = ascii && s.p[i] >= 0x20 && s.p[i] <= 0x7e;
                escapes = escapes || s.p[i] == '"' || s.p[i] == '\\';
        }
        if (ascii && escapes)
                add_single_quoted(out, s);
        else
                add_double_quoted(out, s);
}

/* ---- literal blocks */

static bool is_block(struct str s)
{
        bool lines = false, text = false;

        for (size_t at = 0; at < s.n;) {
                uint32_t c = next_char(s, &at);

                if (c != '\n' && c != '\t' && !is_printable(c))
                        return false;
                lines = lines || c == '\n';
                text = text || c != '\n';
        }
        return lines && text;
}

static void indent_by(struct buf *out, size_t n)
{
        static const char blanks[] = "                                ";

        for (; n > 0; n -= MIN(n, sizeof(blanks) - 1))
                buf_add(out, blanks, MIN(n, sizeof(blanks) - 1));
}

/* Lines at INDENT, which is STEP more than that of what holds them. */
static void add_block(struct buf *out, struct str s, size_t indent)
{
        bool ends = s.p[s.n - 1] == '\n', more = ends && s.n > 1 && s.p[s.n - 2] == '\n';

        buf_addc(out, '|');
        if (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\n') /* else the first line says it */
                buf_printf(out, "%d", STEP);
        if (!ends || more)
                buf_addc(out, more ? '+' : '-');
        buf_addc(out, '\n');
        if (ends)
                s.n--;
        while (s.p) {
                struct str line = str_split(&s, '\n');

                if (line.n)
                        indent_by(out, indent);
                buf_addstr(out, line);
                buf_addc(out, '\n');
        }
}

/* ---- values */

static void write_members(const struct json *object, size_t indent, bool inline_first, struct buf *out);
static void write_items(const struct json *array, size_t indent, bool inline_first, struct buf *out);

/* With the end of the line. INDENT: of what holds the scalar. */
static void write_scalar(const struct json *j, size_t indent, struct buf *out)
{
        switch (j->type) {
        case JSON_NULL:
                buf_adds(out, "null");
                break;
        case JSON_BOOL:
                buf_adds(out, j->truth ? "true" : "false");
                break;
        case JSON_NUMBER:
                buf_add(out, j->text, j->len);
                break;
        case JSON_STRING:
                if (is_block(json_text(j))) {
                        add_block(out, json_text(j), indent + STEP);
                        return;
                }
                add_on_one_line(out, json_text(j));
                break;
        default:
                buf_adds(out, j->type == JSON_ARRAY ? "[]" : "{}");
                break;
        }
        buf_addc(out, '\n');
}

static bool is_filled(const struct json *j)
{
        return j->type >= JSON_ARRAY && j->last;
}

/* Behind the colon. Lists stand as far left as their key, as kubectl has them. */
static void write_member(const struct json *j, size_t indent, struct buf *out)
{
        buf_addc(out, is_filled(j) ? '\n' : ' ');
        if (!is_filled(j))
                write_scalar(j, indent, out);
        else if (j->type == JSON_OBJECT)
                write_members(j, indent + STEP, false, out);
        else
                write_items(j, indent, false, out);
}

static void write_key(struct str key, size_t indent, struct buf *out)
{
        size_t start = out->n;

        add_on_one_line(out, key);
        if (out->n - start > KEY_MAX &&
            !out->overflow) { /* too long for one line: "? key", and ":" below it */
                out->n = start;
                buf_adds(out, "? ");
                add_on_one_line(out, key);
                buf_addc(out, '\n');
                indent_by(out, indent);
        }
        buf_addc(out, ':');
}

static void write_members(const struct json *object, size_t indent, bool inline_first, struct buf *out)
{
        json_foreach (m, object) {
                if (!inline_first)
                        indent_by(out, indent);
                inline_first = false;
                write_key(str_n(m->key, m->key_len), indent, out);
                write_member(m, indent, out);
        }
}

static void write_items(const struct json *array, size_t indent, bool inline_first, struct buf *out)
{
        json_foreach (item, array) {
                if (!inline_first)
                        indent_by(out, indent);
                inline_first = false;
                buf_adds(out, "- ");
                if (!is_filled(item))
                        write_scalar(item, indent, out);
                else if (item->type == JSON_OBJECT)
                        write_members(item, indent + STEP, true, out);
                else
                        write_items(item, indent + STEP, true, out);
        }
}

void yaml_write(const struct json *j, struct buf *out)
{
        if (!is_filled(j))
                write_scalar(j, 0, out);
        else if (j->type == JSON_OBJECT)
                write_members(j, 0, false, out);
        else
                write_items(j, 0, false, out);
}

void yaml_write_all(const struct json *const *docs, size_t n, struct buf *out)
{
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        buf_adds(out, "---\n");
                yaml_write(docs[i], out);
        }
}
