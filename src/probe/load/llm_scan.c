/*
 * The quick way to read an event: one pass, member by member, over a text that must be JSON to the letter. Everything
 * unusual ends it with false: an escape, a number with an exponent, a name twice, a second choice, an error.
 */
#include "probe/load/llm_private.h"

enum { DEPTH = 8 };

struct scan {
        const char *at, *end;
        bool ascii;    /* no byte of a string was anything else */
        unsigned seen; /* members of interest: each may come once */
        enum llm_endpoint endpoint;
        struct llm_event event;
        struct str finish;
};

enum {
        SEEN_CHOICES = 1,
        SEEN_USAGE = 2,
        SEEN_FINISH = 4,
        SEEN_MESSAGE = 8,
        SEEN_TEXT = 16,
        SEEN_CONTENT = 32,
        SEEN_REASONING_CONTENT = 64,
        SEEN_REASONING = 128,
        SEEN_PROMPT_TOKENS = 256,
        SEEN_COMPLETION_TOKENS = 512,
};

typedef bool member_fn(struct scan *s, struct str name);

static bool first(struct scan *s, unsigned what)
{
        bool is_first = !(s->seen & what);

        s->seen |= what;
        return is_first;
}

static inline void blanks(struct scan *s)
{
        while (s->at < s->end && (unsigned char)*s->at <= ' ' &&
               (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
                s->at++;
}

/* The next byte that is no blank, which is passed over; NUL, which is nowhere allowed, at the end. */
static inline char next(struct scan *s)
{
        blanks(s);
        return s->at < s->end ? *s->at++ : '\0';
}

static inline bool peek(struct scan *s, char c)
{
        blanks(s);
        return s->at < s->end && *s->at == c;
}

#define ONES 0x0101010101010101ull
#define TOPS 0x8080808080808080ull

/* The first byte from P that ends a plain run of a string: a quote, a backslash, a control character, or END. TOP gets
 * the top bits of what is before it. */
static inline const char *run_end(const char *p, const char *end, uint64_t *top)
{
        for (; end - p >= 8; p += 8) {
                uint64_t w, quote, slash, stops;

                memcpy(&w, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
                w = __builtin_bswap64(w);
#endif
                quote = w ^ (ONES * '"');
                slash = w ^ (ONES * '\\');
                /* Only the lowest mark is sure to be right, and only that is looked at. */
                stops = (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((w - ONES * ' ') & ~w)) &
                        TOPS;
                if (stops) {
                        *top |= w & ((stops & -stops) - 1);
                        return p + __builtin_ctzll(stops) / 8;
                }
                *top |= w;
        }
        for (; p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' '; p++)
                *top |= (unsigned char)*p;
        return p;
}

/* The rest of a string whose quote was passed over. */
static inline bool string_rest(struct scan *s, struct str *ret)
{
        uint64_t top = 0;
        const char *end = run_end(s->at, s->end, &top);

        if (end == s->end || *end != '"')
                return false;
        *ret = str_n(s->at, (size_t)(end - s->at));
        s->ascii = s->ascii && !(top & TOPS);
        s->at = end + 1;
        return true;
}

static bool word(struct scan *s, struct str rest)
{
        if ((size_t)(s->end - s->at) < rest.n || memcmp(s->at, rest.p, rest.n) != 0)
                return false;
        s->at += rest.n;
        return true;
}

static size_t digits(struct scan *s)
{
        const char *from = s->at;

        while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
                s->at++;
        return (size_t)(s->at - from);
}

/* The rest of a number that begins with C. */
static bool skip_number(struct scan *s, char c)
{
        if (c == '-')
                c = s->at < s->end ? *s->at++ : '\0';
        if (c < '0' || c > '9' || (digits(s) && c == '0'))
                return false;
        if (s->at < s->end && *s->at == '.') {
                s->at++;
                if (!digits(s))
                        return false;
        }
        return s->at < s->end && *s->at != 'e' && *s->at != 'E';
}

static bool members(struct scan *s, member_fn *fn, unsigned depth);

static bool skip_value(struct scan *s, unsigned depth)
{
        struct str unused;
        char c = next(s);

        switch (c) {
        case '"':
                return string_rest(s, &unused);
        case 'n':
                return word(s, STR("ull"));
        case 't':
                return word(s, STR("rue"));
        case 'f':
                return word(s, STR("alse"));
        case '{':
                return depth && members(s, NULL, depth - 1);
        case '[':
                if (peek(s, ']'))
                        return next(s);
                do
                        if (!depth || !skip_value(s, depth - 1))
                                return false;
                while ((c = next(s)) == ',');
                return c == ']';
        default:
                return skip_number(s, c);
        }
}

/* The members of an object whose brace was passed over. FN NULL: none is of interest. */
static bool members(struct scan *s, member_fn *fn, unsigned depth)
{
        struct str name;
        char c;

        if (peek(s, '}'))
                return next(s);
        do
                if (next(s) != '"' || !string_rest(s, &name) || next(s) != ':' ||
                    !(fn ? fn(s, name) : skip_value(s, depth)))
                        return false;
        while ((c = next(s)) == ',');
        return c == '}';
}

/* A string; p == NULL for null. */
static bool text_or_null(struct scan *s, struct str *ret)
{
        char c = next(s);

        *ret = STR_NULL;
        return c == '"' ? string_rest(s, ret) : c == 'n' && word(s, STR("ull"));
}

static bool content(struct scan *s, unsigned what)
{
        struct str text;

        if (!first(s, what) || !text_or_null(s, &text))
                return false;
        if (text.n == 0)
                return true;
        if (s->event.content.n)
                return false; /* two texts are to be joined */
        s->event.content = text;
        return true;
}

static bool message_member(struct scan *s, struct str name)
{
        if (str_eq(name, STR("content")))
                return content(s, SEEN_CONTENT);
        if (str_eq(name, STR("reasoning_content")))
                return content(s, SEEN_REASONING_CONTENT);
        if (str_eq(name, STR("reasoning")))
                return content(s, SEEN_REASONING);
        return skip_value(s, DEPTH);
}

static bool choice_member(struct scan *s, struct str name)
{
        bool chat = s->endpoint == LLM_CHAT;

        if (chat && (str_eq(name, STR("delta")) || str_eq(name, STR("message"))))
                return first(s, SEEN_MESSAGE) && next(s) == '{' && members(s, message_member, DEPTH);
        if (!chat && str_eq(name, STR("text")))
                return content(s, SEEN_TEXT);
        if (str_eq(name, STR("finish_reason")))
                return first(s, SEEN_FINISH) && text_or_null(s, &s->finish);
        return skip_value(s, DEPTH);
}

static bool choices(struct scan *s)
{
        if (!first(s, SEEN_CHOICES) || next(s) != '[')
                return false;
        if (peek(s, ']'))
                return next(s);
        return next(s) == '{' && members(s, choice_member, DEPTH) &&
               (s->endpoint != LLM_CHAT || s->seen & SEEN_MESSAGE) && next(s) == ']';
}

static bool count(struct scan *s, unsigned what, uint64_t *ret)
{
        const char *from;
        size_t n;

        blanks(s);
        from = s->at;
        n = digits(s);
        if (!first(s, what) || n == 0 || n > 18 || (n > 1 && *from == '0') || s->at == s->end ||
            *s->at == '.' || *s->at == 'e' || *s->at == 'E')
                return false;
        return str_to_u64(str_n(from, n), ret);
}

static bool usage_member(struct scan *s, struct str name)
{
        if (str_eq(name, STR("prompt_tokens")))
                return count(s, SEEN_PROMPT_TOKENS, &s->event.prompt_tokens);
        if (str_eq(name, STR("completion_tokens")))
                return s->event.has_usage = count(s, SEEN_COMPLETION_TOKENS, &s->event.completion_tokens);
        return skip_value(s, DEPTH);
}

static bool event_member(struct scan *s, struct str name)
{
        char c;

        if (str_eq(name, STR("choices")))
                return choices(s);
        if (str_eq(name, STR("usage"))) {
                c = next(s);
                return first(s, SEEN_USAGE) &&
                       (c == '{' ? members(s, usage_member, DEPTH) : c == 'n' && word(s, STR("ull")));
        }
        if (str_eq(name, STR("error")))
                return false;
        return skip_value(s, DEPTH);
}

bool llm_event_scan(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *ret)
{
        struct scan s = {.at = data.p, .end = data.p + data.n, .ascii = true, .endpoint = endpoint};

        if (next(&s) != '{' || !members(&s, event_member, DEPTH) || !(s.seen & SEEN_CHOICES))
                return false;
        blanks(&s);
        if (s.at != s.end || (!s.ascii && !utf8_valid(data.p, data.n)))
                return false;
        *ret = s.event;
        if (s.event.content.n)
                ret->content.p = arena_strndup(a, s.event.content.p, s.event.content.n);
        if (s.finish.p)
                ret->finish = arena_strndup(a, s.finish.p, s.finish.n);
        return true;
}
