/*
 * The parser: one pass over the text, which it overwrites. Strings are decoded where they stand and end in a NUL
 * where their closing quote was; numbers stay as they are. An open container keeps the one around it in `next`, which
 * it needs for its siblings only once it is closed; so nesting costs no stack. The place in the text, `at`, is handed
 * down and comes back up, so that it stays in a register; NULL means that parsing failed and p->err says why.
 */
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "json/internal.h"

const struct json_limits JSON_LIMITS_DEFAULT = {.bytes = 8u << 20, .depth = 128, .nodes = 1000000};

/* The names that lead to a member of the document. */
struct way {
        const char *const *names; /* ended by NULL; NULL: to nothing */
        size_t n;                 /* how many of them are objects around the member */
        struct str last;          /* its own name */
};

struct parser {
        char *end; /* *end is a NUL that no rule accepts, so few loops look at `end` */
        struct arena *arena;
        struct json *open;  /* the innermost container */
        struct json *value; /* the last one read */
        const char *key;    /* of the value that comes next */
        uint32_t key_len;
        unsigned depth; /* how much deeper it may get */
        size_t nodes;   /* how many more there may be */
        struct way unwanted, wanted;
        const struct json *stop_in; /* the next member of this object is the last; NULL: not known yet */
        const char *line_start;
        unsigned line;
        struct err *err;
};

/* Columns count bytes. */
static __attribute__((cold)) char *fail(struct parser *p, const char *at, const char *what)
{
        err_set(p->err, E_INVALID, "invalid JSON at %u:%zu: %s%s", p->line, (size_t)(at - p->line_start) + 1,
                what, at == p->end ? ", found the end" : "");
        return NULL;
}

static __attribute__((cold)) char *too_large(struct parser *p, const char *at, const char *what)
{
        err_set(p->err, E_TOO_LARGE, "JSON is too large at %u:%zu: %s", p->line,
                (size_t)(at - p->line_start) + 1, what);
        return NULL;
}

static char *skip_blanks_slow(struct parser *p, char *at)
{
        for (;; at++) {
                if (*at == '\n') {
                        p->line++;
                        p->line_start = at + 1;
                } else if (*at != ' ' && *at != '\t' && *at != '\r') {
                        return at;
                }
        }
}

/* The next byte that is no blank. */
static inline char *skip_blanks(struct parser *p, char *at)
{
        return __builtin_expect((unsigned char)*at > ' ', 1) ? at : skip_blanks_slow(p, at);
}

/* A node for the value at AT, which becomes p->value. */
static inline struct json *new_node(struct parser *p, const char *at, enum json_type type)
{
        struct json *j;

        if (__builtin_expect(p->nodes == 0, 0)) {
                too_large(p, at, "too many values");
                return NULL;
        }
        p->nodes--;
        j = arena_alloc(p->arena, sizeof(*j));
        *j = (struct json){.key = p->key, .key_len = p->key_len, .type = (uint8_t)type};
        p->value = j;
        return j;
}

/*
 * Strings are looked through RUN_STEP bytes at a time. run_stops() marks the bytes that end a run (quote, backslash,
 * control characters) and in TOP those that are not ASCII, with one bit for every 2^RUN_SHIFT bits. Only the lowest
 * mark is sure to be right, and only the lowest is looked at.
 */
#ifdef __SSE2__
enum { RUN_STEP = 16, RUN_SHIFT = 0 };

static inline uint64_t run_stops(const char *at, uint64_t *top)
{
        __m128i w = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i quote = _mm_cmpeq_epi8(w, _mm_set1_epi8('"')), slash = _mm_cmpeq_epi8(w, _mm_set1_epi8('\\'));
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(w, _mm_set1_epi8(0x1F)), w);

        *top = (unsigned)_mm_movemask_epi8(w);
        return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
}
#else
enum { RUN_STEP = 8, RUN_SHIFT = 3 };

static inline uint64_t run_stops(const char *at, uint64_t *top)
{
        uint64_t w = load8(at);

        *top = w & BYTES_80;
        return string_stops(w);
}
#endif

/* The first quote, backslash, control character or the end, from AT. HIGH collects the top bits passed over. */
static inline char *scan_run(const struct parser *p, char *at, uint64_t *high)
{
        while (p->end - at >= RUN_STEP) {
                uint64_t top, stop = run_stops(at, &top);

                if (stop) {
                        *high |= top & ((stop & -stop) - 1);
                        return at + (__builtin_ctzll(stop) >> RUN_SHIFT);
                }
                *high |= top;
                at += RUN_STEP;
        }
        for (;; at++) {
                unsigned char c = (unsigned char)*at;

                if (c < 0x20 || c == '"' || c == '\\')
                        return at;
                *high |= c & 0x80;
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

/* Decodes \uXXXX at AT, a surrogate pair as one character, to *DST. */
static char *decode_unicode(struct parser *p, char *at, char **dst)
{
        int32_t c = hex4(at + 2), low;

        if (c < 0)
                return fail(p, at, "expected four hexadecimal digits after \\u");
        if (c >= 0xDC00 && c <= 0xDFFF)
                return fail(p, at, "low surrogate without a high one before it");
        at += 6;
        if (c >= 0xD800 && c <= 0xDBFF) {
                low = at[0] == '\\' && at[1] == 'u' ? hex4(at + 2) : -1;
                if (low < 0xDC00 || low > 0xDFFF)
                        return fail(p, at, "expected a low surrogate after a high one");
                at += 6;
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
        *dst += utf8_encode((uint32_t)c, *dst);
        return at;
}

/* Decodes the escape at AT to *DST, which is never ahead of it. */
static char *decode_escape(struct parser *p, char *at, char **dst)
{
        static const char single[256] = {
                ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
        };
        char c = single[(unsigned char)at[1]];

        if (at[1] == 'u')
                return decode_unicode(p, at, dst);
        if (!c)
                return fail(p, at + 1, "expected one of \"\\/bfnrtu after a backslash");
        *(*dst)++ = c;
        return at + 2;
}

struct text {
        char *p;
        uint32_t n;
        bool has_nul;
};

/* The string has been read up to AT, and its decoded form ends at DST. */
static char *end_string(struct parser *p, char *at, char *dst, uint64_t high, struct text *ret)
{
        if (*at != '"')
                return fail(p, at, at == p->end ? "expected '\"'" : "control character in a string");
        if (high && !utf8_valid(ret->p, (size_t)(dst - ret->p)))
                return fail(p, ret->p - 1, "the string is not valid UTF-8");
        *dst = '\0';
        ret->n = (uint32_t)(dst - ret->p);
        return at + 1;
}

/* The string at ret->p has its first backslash at AT: from here on it moves as it shrinks. */
static char *escaped_string(struct parser *p, char *at, uint64_t high, struct text *ret)
{
        char *dst = at;

        while (*at == '\\') {
                char *from, *was = dst;

                from = decode_escape(p, at, &dst);
                if (!from)
                        return NULL;
                ret->has_nul |= *was == '\0';
                at = scan_run(p, from, &high);
                memmove(dst, from, (size_t)(at - from));
                dst += at - from;
        }
        return end_string(p, at, dst, high, ret);
}

/* AT is the opening quote. */
static inline char *parse_string(struct parser *p, char *at, struct text *ret)
{
        uint64_t high = 0;

        *ret = (struct text){.p = at + 1};
        at = scan_run(p, at + 1, &high);
        if (__builtin_expect(*at == '"' && !high, 1)) {
                *at = '\0';
                ret->n = (uint32_t)(at - ret->p);
                return at + 1;
        }
        return *at == '\\' ? escaped_string(p, at, high, ret) : end_string(p, at, at, high, ret);
}

static char *string_value(struct parser *p, char *at)
{
        struct text t;
        struct json *j;

        at = parse_string(p, at, &t);
        j = at ? new_node(p, at, JSON_STRING) : NULL;
        if (!j)
                return NULL;
        j->text = t.p;
        j->len = t.n;
        j->has_nul = t.has_nul;
        return at;
}

static inline bool is_digit(char c)
{
        return (unsigned char)(c - '0') < 10;
}

/* One or more digits. */
static inline char *skip_digits(struct parser *p, char *at)
{
        if (!is_digit(*at))
                return fail(p, at, "expected a digit");
        while (is_digit(*at))
                at++;
        return at;
}

/* The fraction and the exponent of a number, if it has them. */
static inline char *skip_fraction(struct parser *p, char *at)
{
        if (*at == '.')
                at = skip_digits(p, at + 1);
        if (at && (*at == 'e' || *at == 'E')) {
                at++;
                at = skip_digits(p, at + (*at == '+' || *at == '-'));
        }
        return at;
}

static inline char *skip_number(struct parser *p, char *at)
{
        at += *at == '-';
        if (*at == '0') {
                at++;
                if (is_digit(*at))
                        return fail(p, at, "a number has no leading zeros");
        } else {
                at = skip_digits(p, at);
        }
        return at ? skip_fraction(p, at) : NULL;
}

static char *number_value(struct parser *p, char *at)
{
        const char *start = at;
        struct json *j;

        at = skip_number(p, at);
        j = at ? new_node(p, start, JSON_NUMBER) : NULL;
        if (!j)
                return NULL;
        j->text = start;
        j->len = (uint32_t)(at - start);
        return at;
}

static char *skip_word(struct parser *p, char *at, struct str word)
{
        if ((size_t)(p->end - at) < word.n || memcmp(at, word.p, word.n) != 0)
                return fail(p, at, "expected a value");
        return at + word.n;
}

static char *word_value(struct parser *p, char *at, struct str word, enum json_type type, bool truth)
{
        char *end = skip_word(p, at, word);
        struct json *j = end ? new_node(p, at, type) : NULL;

        if (!j)
                return NULL;
        if (type == JSON_BOOL)
                j->truth = truth;
        return end;
}

/* Opens a container: the values that follow are its own until close_container(). */
static char *open_container(struct parser *p, char *at, enum json_type type)
{
        struct json *j;

        if (p->depth == 0)
                return too_large(p, at, "nested too deeply");
        j = new_node(p, at, type);
        if (!j)
                return NULL;
        p->depth--;
        j->next = p->open;
        p->open = j;
        p->key = NULL;
        p->key_len = 0;
        return at + 1;
}

/* The later of two members of one name gives its value to the earlier. */
static void take_over(struct json *first, const struct json *later)
{
        first->last = later->last; /* or whatever else the union holds */
        first->len = later->len;
        first->type = later->type;
        first->has_nul = later->has_nul;
}

/* Takes the member after PREV, which is another one, out of the ring. */
static void drop_after(struct json *object, struct json *prev)
{
        struct json *gone = prev->next;

        prev->next = gone->next;
        if (object->last == gone)
                object->last = prev;
        object->len--;
}

/* The member of MEMBER's name among those from FIRST up to it. */
static struct json *find_before(struct json *first, const struct json *member)
{
        for (struct json *j = first; j != member; j = j->next)
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
        struct json *prev = object->last, *first = prev->next, *j = first, *next, *twin;
        uint64_t seen = 0;

        for (uint32_t i = object->len; i; i--, j = next) {
                uint64_t bit = key_bit(j);

                next = j->next;
                twin = seen & bit ? find_before(first, j) : NULL;
                if (twin) {
                        take_over(twin, j);
                        drop_after(object, prev);
                        continue;
                }
                seen |= bit;
                prev = j;
        }
}

/* The same for many members, of which a stranger may have chosen the names. */
static void merge_duplicates_large(struct json *object)
{
        _cleanup_(map_done) struct map names = MAP_INIT;
        struct json *prev = object->last, *j = prev->next, *next, *twin;

        for (uint32_t i = object->len; i; i--, j = next) {
                next = j->next;
                twin = map_get(&names, json_key(j));
                if (twin) {
                        take_over(twin, j);
                        drop_after(object, prev);
                } else {
                        map_put(&names, json_key(j), j);
                        prev = j;
                }
        }
}

static char *close_container(struct parser *p, char *at)
{
        struct json *j = p->open;

        p->depth++;
        p->open = j->next;
        p->value = j;
        if (j->type == JSON_OBJECT && j->len > JSON_SMALL_OBJECT)
                merge_duplicates_large(j);
        else if (j->type == JSON_OBJECT && j->len > 1)
                merge_duplicates(j);
        return at + 1;
}

/* ---- what is left out: the same rules, without nodes */

/* A member name, the colon included. */
static inline char *skip_name(struct parser *p, char *at, struct text *ret)
{
        at = skip_blanks(p, at);
        if (*at != '"')
                return fail(p, at, "expected a member name");
        at = parse_string(p, at, ret);
        if (!at)
                return NULL;
        at = skip_blanks(p, at);
        return *at == ':' ? at + 1 : fail(p, at, "expected ':'");
}

static char *skip_value(struct parser *p, char *at);

/* AT is the opening bracket. */
static char *skip_members(struct parser *p, char *at)
{
        bool object = *at == '{';
        char end = object ? '}' : ']';
        struct text name;

        at = skip_blanks(p, at + 1);
        if (*at == end)
                return at + 1;
        for (;; at++) {
                at = object ? skip_name(p, at, &name) : at;
                at = at ? skip_value(p, at) : NULL;
                at = at ? skip_blanks(p, at) : NULL;
                if (!at || *at == end)
                        return at ? at + 1 : NULL;
                if (*at != ',')
                        return fail(p, at, object ? "expected ',' or '}'" : "expected ',' or ']'");
        }
}

/* Calls itself no deeper than a document may be. */
static char *skip_value(struct parser *p, char *at)
{
        struct text t;

        at = skip_blanks(p, at);
        switch (*at) {
        case '"':
                return parse_string(p, at, &t);
        case '{':
        case '[':
                if (p->depth == 0)
                        return too_large(p, at, "nested too deeply");
                if (at[0] == '{' && at[1] == '}') /* most of what managedFields has */
                        return at + 2;
                p->depth--;
                at = skip_members(p, at);
                p->depth++;
                return at;
        case '-':
        case '0' ... '9':
                return skip_number(p, at);
        case 't':
                return skip_word(p, at, STR("true"));
        case 'f':
                return skip_word(p, at, STR("false"));
        case 'n':
                return skip_word(p, at, STR("null"));
        default:
                return fail(p, at, "expected a value");
        }
}

/* Whether the member NAME of the open object is where WAY leads: the objects around it must be those of the way. */
static bool leads_to(const struct parser *p, const struct way *way, struct str name)
{
        const struct json *j = p->open;

        if (!way->names || !str_eq(name, way->last))
                return false;
        for (size_t i = way->n; i; i--, j = j->next)
                if (!json_key_is(j, str_of(way->names[i - 1])))
                        return false; /* the outermost has no name */
        return !j->next;
}

/* The name of the next member that is kept, or the end of the object. */
static char *parse_key(struct parser *p, char *at)
{
        struct text t;

        for (;; at++) {
                at = skip_name(p, at, &t);
                if (!at)
                        return NULL;
                if (__builtin_expect(t.n != p->unwanted.last.n, 1) ||
                    !leads_to(p, &p->unwanted, str_n(t.p, t.n)))
                        break;
                at = skip_value(p, at);
                at = at ? skip_blanks(p, at) : NULL;
                if (!at || *at == '}')
                        return at ? close_container(p, at) : NULL;
                if (*at != ',')
                        return fail(p, at, "expected ',' or '}'");
        }
        if (t.n == p->wanted.last.n && leads_to(p, &p->wanted, str_n(t.p, t.n)))
                p->stop_in = p->open;
        p->key = t.p;
        p->key_len = t.n;
        return at;
}

static char *begin_object(struct parser *p, char *at)
{
        at = open_container(p, at, JSON_OBJECT);
        if (!at)
                return NULL;
        at = skip_blanks(p, at);
        return *at == '}' ? close_container(p, at) : parse_key(p, at);
}

static char *begin_array(struct parser *p, char *at)
{
        at = open_container(p, at, JSON_ARRAY);
        if (!at)
                return NULL;
        at = skip_blanks(p, at);
        return *at == ']' ? close_container(p, at) : at;
}

/* A scalar or an empty container whole; of others the opening only, and then p->value is p->open. */
static inline char *begin_value(struct parser *p, char *at)
{
        at = skip_blanks(p, at);
        switch (*at) {
        case '"':
                return string_value(p, at);
        case '{':
                return begin_object(p, at);
        case '[':
                return begin_array(p, at);
        case '-':
        case '0' ... '9':
                return number_value(p, at);
        case 't':
                return word_value(p, at, STR("true"), JSON_BOOL, true);
        case 'f':
                return word_value(p, at, STR("false"), JSON_BOOL, false);
        case 'n':
                return word_value(p, at, STR("null"), JSON_NULL, false);
        default:
                return fail(p, at, "expected a value");
        }
}

/* What may follow a value in the open container: another one, and then p->value is p->open, or its end. */
static inline char *after_value(struct parser *p, char *at)
{
        bool object = p->open->type == JSON_OBJECT;

        at = skip_blanks(p, at);
        if (*at == (object ? '}' : ']'))
                return close_container(p, at);
        if (*at != ',')
                return fail(p, at, object ? "expected ',' or '}'" : "expected ',' or ']'");
        p->value = p->open;
        if (object)
                return parse_key(p, at + 1);
        p->key = NULL;
        p->key_len = 0;
        return at + 1;
}

/* Ends all that is open as if it ended here. */
static struct json *close_all(struct parser *p, char *at)
{
        for (;;) {
                close_container(p, at);
                if (!p->open)
                        return p->value;
                json_attach(p->open, p->value);
        }
}

static struct json *parse_text(struct parser *p, char *at)
{
        for (;;) {
                at = begin_value(p, at);
                /* A value that is complete goes into the container around it, which may complete that one. */
                while (at && p->value != p->open) {
                        if (!p->open) {
                                at = skip_blanks(p, at);
                                if (at != p->end)
                                        fail(p, at, "expected the end");
                                return at == p->end ? p->value : NULL;
                        }
                        json_attach(p->open, p->value);
                        if (p->open == p->stop_in)
                                return close_all(p, at);
                        at = after_value(p, at);
                }
                if (!at)
                        return NULL;
        }
}

static struct way way_to(const char *const *names)
{
        struct way way = {.names = names};

        if (names) {
                while (names[way.n + 1])
                        way.n++;
                way.last = str_of(names[way.n]);
        }
        return way;
}

struct json *json_parse_insitu(struct arena *a, char *text, size_t n, const struct json_limits *limits,
                               struct err *err)
{
        const struct json_limits *d = &JSON_LIMITS_DEFAULT;
        size_t max = MIN(limits && limits->bytes ? limits->bytes : d->bytes, (size_t)INT32_MAX);
        struct parser p = {.end = text + n, .arena = a, .err = err};

        if (n > max) {
                err_set(err, E_TOO_LARGE, "JSON of %zu bytes is over the limit of %zu", n, max);
                return NULL;
        }
        p.depth = MIN(limits && limits->depth ? limits->depth : d->depth, (unsigned)JSON_DEPTH_HARD);
        p.nodes = limits && limits->nodes ? limits->nodes : d->nodes;
        if (limits) {
                p.unwanted = way_to(limits->leave_out);
                p.wanted = way_to(limits->stop_after);
        }
        p.line_start = text;
        p.line = 1;
        text[n] = '\0';
        return parse_text(&p, text);
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
