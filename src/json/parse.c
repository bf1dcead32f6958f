/*
 * The parser: one pass over the text, which it overwrites. Strings are decoded where they stand and end in a NUL
 * where their closing quote was; numbers stay as they are. An open container keeps the one around it in `next`, which
 * it needs for its siblings only once it is closed; so nesting costs no stack.
 */
#include "json/internal.h"

const struct json_limits JSON_LIMITS_DEFAULT = {.bytes = 8u << 20, .depth = 128, .nodes = 1000000};

struct parser {
        char *at; /* the next byte; *end is a NUL that no rule accepts, so few loops look at `end` */
        char *end;
        struct arena *arena;
        struct json *open; /* the innermost container */
        const char *key;   /* of the value that comes next */
        uint32_t key_len;
        unsigned depth; /* how much deeper it may get */
        size_t nodes;   /* how many more there may be */
        const char *line_start;
        unsigned line;
        struct err *err;
};

/* All failures end here. Columns count bytes. */
static void *fail_at(struct parser *p, const char *at, const char *what)
{
        err_set(p->err, E_INVALID, "invalid JSON at %u:%zu: %s%s", p->line, (size_t)(at - p->line_start) + 1,
                what, at == p->end ? ", found the end" : "");
        return NULL;
}

static void *fail(struct parser *p, const char *what)
{
        return fail_at(p, p->at, what);
}

static void *too_large(struct parser *p, const char *what)
{
        err_set(p->err, E_TOO_LARGE, "JSON at %u:%zu is too large: %s", p->line,
                (size_t)(p->at - p->line_start) + 1, what);
        return NULL;
}

static char skip_blanks_slow(struct parser *p)
{
        for (;; p->at++) {
                char c = *p->at;

                if (c == '\n') {
                        p->line++;
                        p->line_start = p->at + 1;
                } else if (c != ' ' && c != '\t' && c != '\r') {
                        return c;
                }
        }
}

/* The next byte that is no blank. */
static inline char skip_blanks(struct parser *p)
{
        char c = *p->at;

        return __builtin_expect((unsigned char)c > ' ', 1) ? c : skip_blanks_slow(p);
}

static inline struct json *new_node(struct parser *p, enum json_type type)
{
        struct json *j;

        if (__builtin_expect(p->nodes == 0, 0))
                return too_large(p, "too many values");
        p->nodes--;
        j = arena_alloc(p->arena, sizeof(*j));
        j->next = NULL;
        j->key = p->key;
        j->last = NULL;
        j->key_len = p->key_len;
        j->len = 0;
        j->line = 0;
        j->column = 0;
        j->type = (uint8_t)type;
        j->has_nul = 0;
        return j;
}

/* The first quote, backslash, control character or the end, from AT. HIGH collects the top bits passed over. */
static inline char *scan_run(const struct parser *p, char *at, uint64_t *high)
{
        while (p->end - at >= 8) {
                uint64_t w = load8(at), stop = string_stops(w);

                if (stop) {
                        *high |= w & ((stop & -stop) - 1);
                        return at + (__builtin_ctzll(stop) >> 3);
                }
                *high |= w;
                at += 8;
        }
        for (;; at++) {
                unsigned char c = (unsigned char)*at;

                if (c < 0x20 || c == '"' || c == '\\')
                        return at;
                *high |= c;
        }
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits at AT; -1 when they are not there. Stops at the end by itself. */
static int32_t hex4(const char *at)
{
        int32_t v = 0;

        for (int i = 0; i < 4; i++) {
                int d = hex_digit(at[i]);

                if (d < 0)
                        return -1;
                v = v << 4 | d;
        }
        return v;
}

/* Decodes \uXXXX at p->at, a surrogate pair as one character, to DST; returns where it ended. */
static char *decode_unicode(struct parser *p, char *dst)
{
        int32_t c = hex4(p->at + 2), low;

        if (c < 0)
                return fail(p, "expected four hexadecimal digits after \\u");
        if (c >= 0xDC00 && c <= 0xDFFF)
                return fail(p, "low surrogate without a high one before it");
        p->at += 6;
        if (c >= 0xD800 && c <= 0xDBFF) {
                low = p->at[0] == '\\' && p->at[1] == 'u' ? hex4(p->at + 2) : -1;
                if (low < 0xDC00 || low > 0xDFFF)
                        return fail(p, "expected a low surrogate after a high one");
                p->at += 6;
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
        return dst + utf8_encode((uint32_t)c, dst);
}

static char *decode_escape(struct parser *p, char *dst)
{
        static const char single[256] = {
                        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
        };
        char c = p->at[1];

        if (c == 'u')
                return decode_unicode(p, dst);
        if (!single[(unsigned char)c]) {
                p->at++;
                return fail(p, "expected one of \"\\/bfnrtu after a backslash");
        }
        *dst = single[(unsigned char)c];
        p->at += 2;
        return dst + 1;
}

struct text {
        char *p; /* NULL: failed */
        uint32_t n;
        bool has_nul;
};

/* The string from START on has been read up to AT, its end. */
static struct text end_string(struct parser *p, char *start, char *dst, char *at, uint64_t high)
{
        p->at = at;
        if (*at != '"')
                return (struct text){
                                fail(p, at == p->end ? "expected '\"'" : "control character in a string")};
        if (high & BYTES_80 && !utf8_valid(start, (size_t)(dst - start)))
                return (struct text){fail_at(p, start - 1, "the string is not valid UTF-8")};
        *dst = '\0';
        p->at++;
        return (struct text){start, (uint32_t)(dst - start), false};
}

/* The string at START has its first backslash at AT: from here on it moves as it shrinks. */
static struct text escaped_string(struct parser *p, char *start, char *at, uint64_t high)
{
        char *dst = at;
        bool has_nul = false;
        struct text t;

        while (*at == '\\') {
                char *from, *was = dst;

                p->at = at;
                dst = decode_escape(p, dst);
                if (!dst)
                        return (struct text){NULL};
                has_nul |= *was == '\0';
                from = p->at;
                at = scan_run(p, from, &high);
                memmove(dst, from, (size_t)(at - from));
                dst += at - from;
        }
        t = end_string(p, start, dst, at, high);
        t.has_nul = has_nul;
        return t;
}

/* p->at is the opening quote. */
static inline struct text parse_string(struct parser *p)
{
        char *start = p->at + 1, *at;
        uint64_t high = 0;

        at = scan_run(p, start, &high);
        if (*at == '\\')
                return escaped_string(p, start, at, high);
        return end_string(p, start, at, at, high);
}

static struct json *string_value(struct parser *p)
{
        struct text t = parse_string(p);
        struct json *j = t.p ? new_node(p, JSON_STRING) : NULL;

        if (j) {
                j->text = t.p;
                j->len = t.n;
                j->has_nul = t.has_nul;
        }
        return j;
}

/* A member name, the colon included. */
static bool parse_key(struct parser *p)
{
        struct text t;

        if (skip_blanks(p) != '"')
                return fail(p, "expected a member name");
        t = parse_string(p);
        if (!t.p)
                return false;
        if (skip_blanks(p) != ':')
                return fail(p, "expected ':'");
        p->at++;
        p->key = t.p;
        p->key_len = t.n;
        return true;
}

static inline bool is_digit(char c)
{
        return (unsigned char)(c - '0') < 10;
}

/* One or more digits. */
static inline bool skip_digits(struct parser *p)
{
        if (!is_digit(*p->at))
                return fail(p, "expected a digit");
        while (is_digit(*p->at))
                p->at++;
        return true;
}

static struct json *number_value(struct parser *p)
{
        const char *start = p->at;
        struct json *j;

        p->at += *p->at == '-';
        if (*p->at == '0') {
                p->at++;
                if (is_digit(*p->at))
                        return fail(p, "a number has no leading zeros");
        } else if (!skip_digits(p)) {
                return NULL;
        }
        if (*p->at == '.') {
                p->at++;
                if (!skip_digits(p))
                        return NULL;
        }
        if (*p->at == 'e' || *p->at == 'E') {
                p->at++;
                p->at += *p->at == '+' || *p->at == '-';
                if (!skip_digits(p))
                        return NULL;
        }
        j = new_node(p, JSON_NUMBER);
        if (j) {
                j->text = start;
                j->len = (uint32_t)(p->at - start);
        }
        return j;
}

static struct json *word_value(struct parser *p, struct str word, enum json_type type, bool truth)
{
        struct json *j;

        if ((size_t)(p->end - p->at) < word.n || memcmp(p->at, word.p, word.n) != 0)
                return fail(p, "expected a value");
        p->at += word.n;
        j = new_node(p, type);
        if (j && type == JSON_BOOL)
                j->truth = truth;
        return j;
}

/* Opens a container: the values that follow are its own until close_container(). */
static struct json *open_container(struct parser *p, enum json_type type)
{
        struct json *j = p->depth ? new_node(p, type) : too_large(p, "nested too deeply");

        if (!j)
                return NULL;
        p->depth--;
        p->at++;
        j->next = p->open;
        p->open = j;
        p->key = NULL;
        p->key_len = 0;
        return j;
}

/* The later of two members of one name gives its value to the earlier. */
static void take_over(struct json *first, const struct json *later)
{
        first->last = later->last; /* or whatever else the union holds */
        first->len = later->len;
        first->type = later->type;
        first->has_nul = later->has_nul;
}

static struct json *find_before(const struct json *object, const struct json *member)
{
        for (struct json *j = object->last->next; j != member; j = j->next)
                if (json_key_is(j, json_key(member)))
                        return j;
        return NULL;
}

/* A few bits that tell most names apart, for a set of 64. */
static inline uint64_t key_bit(const struct json *j)
{
        const unsigned char *k = (const unsigned char *)j->key;
        uint32_t n = j->key_len, h;

        h = (((n * 31) + k[0]) * 31 + k[n / 2]) * 31 + k[n - (n != 0)];
        return 1ull << ((h * 0x9E3779B1u) >> 26);
}

static void merge_duplicates(struct json *object)
{
        _cleanup_(map_done) struct map names = MAP_INIT;
        struct json *prev = object->last, *j = prev->next, *next, *twin;
        bool large = object->len > JSON_SMALL_OBJECT;
        uint64_t seen = 0;

        for (uint32_t i = object->len; i; i--, j = next) {
                uint64_t bit = key_bit(j);

                next = j->next;
                if (large)
                        twin = map_get(&names, json_key(j));
                else
                        twin = seen & bit ? find_before(object, j) : NULL;
                if (twin) {
                        take_over(twin, j);
                        json_detach(object, prev, j);
                        continue;
                }
                if (large)
                        map_put(&names, json_key(j), j);
                seen |= bit;
                prev = j;
        }
}

static struct json *close_container(struct parser *p)
{
        struct json *j = p->open;

        p->at++;
        p->depth++;
        p->open = j->next;
        if (j->type == JSON_OBJECT && j->len > 1)
                merge_duplicates(j);
        return j;
}

/* A scalar or an empty container whole; of others the opening only (p->open is then the node). */
static struct json *begin_value(struct parser *p)
{
        struct json *j;

        switch (skip_blanks(p)) {
        case '"':
                return string_value(p);
        case '{':
                j = open_container(p, JSON_OBJECT);
                if (!j || skip_blanks(p) == '}')
                        return j ? close_container(p) : NULL;
                return parse_key(p) ? j : NULL;
        case '[':
                j = open_container(p, JSON_ARRAY);
                return j && skip_blanks(p) == ']' ? close_container(p) : j;
        case '-':
        case '0' ... '9':
                return number_value(p);
        case 't':
                return word_value(p, STR("true"), JSON_BOOL, true);
        case 'f':
                return word_value(p, STR("false"), JSON_BOOL, false);
        case 'n':
                return word_value(p, STR("null"), JSON_NULL, false);
        default:
                return fail(p, "expected a value");
        }
}

/* What may follow a value in the open container. NULL: failed; p->open itself: it goes on; else what was closed. */
static inline struct json *after_value(struct parser *p)
{
        struct json *open = p->open;
        char c = skip_blanks(p);

        if (open->type == JSON_OBJECT) {
                if (c == ',') {
                        p->at++;
                        return parse_key(p) ? open : NULL;
                }
                return c == '}' ? close_container(p) : fail(p, "expected ',' or '}'");
        }
        if (c == ',') {
                p->at++;
                p->key = NULL;
                p->key_len = 0;
                return open;
        }
        return c == ']' ? close_container(p) : fail(p, "expected ',' or ']'");
}

static struct json *parse_text(struct parser *p)
{
        for (;;) {
                struct json *j = begin_value(p);

                if (!j)
                        return NULL;
                /* A value that is complete goes into the container around it, which may complete that one. */
                while (j != p->open) {
                        if (!p->open) {
                                j->next = NULL;
                                return skip_blanks(p) || p->at != p->end ? fail(p, "expected the end") : j;
                        }
                        json_attach(p->open, j);
                        j = after_value(p);
                        if (!j)
                                return NULL;
                }
        }
}

struct json *json_parse_insitu(struct arena *a, char *text, size_t n, const struct json_limits *limits,
                               struct err *err)
{
        const struct json_limits *d = &JSON_LIMITS_DEFAULT;
        size_t max = MIN(limits && limits->bytes ? limits->bytes : d->bytes, (size_t)INT32_MAX);
        struct parser p = {.at = text, .end = text + n, .arena = a, .err = err};

        if (n > max) {
                err_set(err, E_TOO_LARGE, "JSON of %zu bytes is over the limit of %zu", n, max);
                return NULL;
        }
        p.depth = MIN(limits && limits->depth ? limits->depth : d->depth, (unsigned)JSON_DEPTH_HARD);
        p.nodes = limits && limits->nodes ? limits->nodes : d->nodes;
        p.line_start = text;
        p.line = 1;
        text[n] = '\0';
        return parse_text(&p);
}

struct json *json_parse(struct arena *a, struct str text, const struct json_limits *limits, struct err *err)
{
        size_t max = limits && limits->bytes ? limits->bytes : JSON_LIMITS_DEFAULT.bytes;

        /* Too much is refused before it is copied. */
        if (text.n > max) {
                err_set(err, E_TOO_LARGE, "JSON of %zu bytes is over the limit of %zu", text.n, max);
                return NULL;
        }
        return json_parse_insitu(a, arena_strndup(a, text.p, text.n), text.n, limits, err);
}

void doc_done(struct doc *doc)
{
        arena_done(&doc->arena);
        doc->root = NULL;
}

int doc_parse(struct doc *doc, struct str text, const struct json_limits *limits, struct err *err)
{
        arena_reset(&doc->arena, SIZE_MAX);
        doc->root = json_parse(&doc->arena, text, limits, err);
        return doc->root ? 0 : -1;
}
