#include "base/base.h"

#include <stdint.h>

int str_cmp(struct str a, struct str b)
{
        size_t n = MIN(a.n, b.n);
        int c = n ? memcmp(a.p, b.p, n) : 0;

        return c ? c : (a.n > b.n) - (a.n < b.n);
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_case_eq(struct str a, struct str b)
{
        if (a.n != b.n)
                return false;
        for (size_t i = 0; i < a.n; i++)
                if (lower(a.p[i]) != lower(b.p[i]))
                        return false;
        return true;
}

bool str_has_prefix(struct str s, struct str prefix)
{
        return s.n >= prefix.n && str_eq(str_n(s.p, prefix.n), prefix);
}

bool str_has_suffix(struct str s, struct str suffix)
{
        return s.n >= suffix.n && str_eq(str_n(s.p + s.n - suffix.n, suffix.n), suffix);
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct str str_trim(struct str s)
{
        while (s.n && is_blank(s.p[0])) {
                s.p++;
                s.n--;
        }
        while (s.n && is_blank(s.p[s.n - 1]))
                s.n--;
        return s;
}

struct str str_split(struct str *s, char sep)
{
        const char *at = s->n ? memchr(s->p, sep, s->n) : NULL;
        struct str head = *s;

        if (!at) {
                *s = STR_NULL;
                return head;
        }
        head.n = (size_t)(at - s->p);
        s->p += head.n + 1;
        s->n -= head.n + 1;
        return head;
}

bool str_to_u64(struct str s, uint64_t *ret)
{
        uint64_t v = 0;

        if (s.n == 0)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                if (__builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
                        return false;
        }
        *ret = v;
        return true;
}

bool str_to_i64(struct str s, int64_t *ret)
{
        bool neg = s.n && s.p[0] == '-';
        uint64_t v;

        if (!str_to_u64(neg ? str_n(s.p + 1, s.n - 1) : s, &v))
                return false;
        if (v > (uint64_t)INT64_MAX + neg)
                return false;
        *ret = neg ? (int64_t)(0 - v) : (int64_t)v;
        return true;
}

static const struct {
        const char *name;
        uint64_t nsec;
} units[] = {
        {"ns", 1},
        {"us", 1000},
        {"\u00b5s", 1000},
        {"\u03bcs", 1000},
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", 60000000000},
        {"h", 3600000000000},
        {"d", 86400000000000},
        {"w", 604800000000000},
};

enum { DURATION_DIGITS_MAX = 18 };

static uint64_t unit_nsec(struct str name)
{
        for (size_t i = 0; i < ARRAY_LEN(units); i++)
                if (str_eq(name, str_of(units[i].name)))
                        return units[i].nsec;
        return 0;
}

static size_t digits_of(struct str s, uint64_t *ret, uint64_t *ret_scale)
{
        size_t n = 0;

        for (*ret = 0, *ret_scale = 1; n < s.n && s.p[n] >= '0' && s.p[n] <= '9'; n++)
                if (n < DURATION_DIGITS_MAX) {
                        *ret = *ret * 10 + (uint64_t)(s.p[n] - '0');
                        *ret_scale *= 10;
                }
        return n;
}

/* One number with its unit, as Go has it: "1.5h". Takes it from S; false: that is none. */
static bool take_part(struct str *s, double *ret_nsec)
{
        uint64_t whole, part = 0, scale, part_scale = 1, unit;
        size_t n = digits_of(*s, &whole, &scale), more = 0, letters;

        if (n < s->n && s->p[n] == '.')
                more = 1 + digits_of(str_n(s->p + n + 1, s->n - n - 1), &part, &part_scale);
        if (n + more == 0 || (n == 0 && more == 1) || n > DURATION_DIGITS_MAX)
                return false;
        *s = str_n(s->p + n + more, s->n - n - more);
        for (letters = 0;
             letters < s->n && s->p[letters] != '.' && (s->p[letters] < '0' || s->p[letters] > '9');)
                letters++;
        unit = unit_nsec(str_n(s->p, letters));
        *s = str_n(s->p + letters, s->n - letters);
        *ret_nsec = ((double)whole + (double)part / (double)part_scale) * (double)unit;
        return unit != 0;
}

bool str_to_duration(struct str s, uint64_t *ret)
{
        double nsec = 0, part;
        uint64_t seconds;

        if (str_to_u64(s, &seconds))
                return !__builtin_mul_overflow(seconds, 1000000, ret);
        if (s.n == 0)
                return false;
        while (s.n) {
                if (!take_part(&s, &part))
                        return false;
                nsec += part;
        }
        if (nsec >= 0x1p63)
                return false;
        *ret = (uint64_t)(nsec / 1000);
        return true;
}

size_t utf8_cut(const char *s, size_t n, size_t max)
{
        if (n <= max)
                return n;
        n = max;
        while (n && ((unsigned char)s[n] & 0xC0) == 0x80)
                n--;
        return n;
}

/* The length of the valid character beyond ASCII at S (0: none), by the table of RFC 3629. */
static size_t utf8_char(const unsigned char *s, size_t n)
{
        unsigned char lo = 0x80, hi = 0xBF;
        size_t len;

        if (s[0] >= 0xC2 && s[0] <= 0xDF)
                len = 2;
        else if ((s[0] & 0xF0) == 0xE0)
                len = 3;
        else if (s[0] >= 0xF0 && s[0] <= 0xF4)
                len = 4;
        else
                return 0;
        if (n < len)
                return 0;
        if (s[0] == 0xE0)
                lo = 0xA0;
        else if (s[0] == 0xED)
                hi = 0x9F;
        else if (s[0] == 0xF0)
                lo = 0x90;
        else if (s[0] == 0xF4)
                hi = 0x8F;
        if (s[1] < lo || s[1] > hi)
                return 0;
        for (size_t i = 2; i < len; i++)
                if ((s[i] & 0xC0) != 0x80)
                        return 0;
        return len;
}

bool utf8_valid(const char *s, size_t n)
{
        const unsigned char *p = (const unsigned char *)s;

        while (n) {
                uint64_t word;
                size_t len;

                if (n >= 8) {
                        memcpy(&word, p, 8);
                        if (!(word & 0x8080808080808080ull)) {
                                p += 8;
                                n -= 8;
                                continue;
                        }
                }
                for (; n && *p < 0x80; n--)
                        p++;
                if (n == 0)
                        break;
                len = utf8_char(p, n);
                if (!len)
                        return false;
                p += len;
                n -= len;
        }
        return true;
}

size_t utf8_encode(uint32_t c, char *out)
{
        if (c < 0x80) {
                out[0] = (char)c;
                return 1;
        }
        if (c < 0x800) {
                out[0] = (char)(0xC0 | (c >> 6));
                out[1] = (char)(0x80 | (c & 0x3F));
                return 2;
        }
        if (c < 0x10000) {
                out[0] = (char)(0xE0 | (c >> 12));
                out[1] = (char)(0x80 | ((c >> 6) & 0x3F));
                out[2] = (char)(0x80 | (c & 0x3F));
                return 3;
        }
        out[0] = (char)(0xF0 | (c >> 18));
        out[1] = (char)(0x80 | ((c >> 12) & 0x3F));
        out[2] = (char)(0x80 | ((c >> 6) & 0x3F));
        out[3] = (char)(0x80 | (c & 0x3F));
        return 4;
}

void buf_done(struct buf *b)
{
        free(b->p);
        *b = (struct buf)BUF_INIT(b->max);
}

void buf_clear(struct buf *b)
{
        b->n = 0;
        b->overflow = false;
}

char *buf_reserve(struct buf *b, size_t more)
{
        size_t need, cap;

        if (b->overflow || __builtin_add_overflow(b->n, more, &need) || need > b->max) {
                b->overflow = true;
                return NULL;
        }
        if (need > b->cap) {
                cap = b->cap ? b->cap : 256;
                while (cap < need)
                        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
                cap = MIN(cap, b->max);
                b->p = xrealloc(b->p, cap);
                b->cap = cap;
        }
        return b->p + b->n;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
        char *to;

        if (n == 0)
                return;
        to = buf_reserve(b, n);
        if (to) {
                memcpy(to, p, n);
                b->n += n;
        }
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
        va_list ap;
        char small[256], *to;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(small, sizeof(small), fmt, ap);
        va_end(ap);
        if (n < 0)
                return;
        if ((size_t)n < sizeof(small)) {
                buf_add(b, small, (size_t)n);
                return;
        }
        to = buf_reserve(b, (size_t)n + 1);
        if (!to)
                return;
        va_start(ap, fmt);
        vsnprintf(to, (size_t)n + 1, fmt, ap);
        va_end(ap);
        b->n += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
        b->n -= n;
        if (b->n)
                memmove(b->p, b->p + n, b->n);
}

const char *buf_cstr(struct buf *b)
{
        if (b->overflow)
                return NULL;
        /* One byte more than cap, which buf_addc() trusts to be within the limit. */
        if (b->n == b->cap)
                b->p = xrealloc(b->p, b->cap + 1);
        b->p[b->n] = '\0';
        return b->p;
}

char *buf_take(struct buf *b)
{
        char *s = buf_cstr(b) ? b->p : NULL;

        if (s)
                *b = (struct buf)BUF_INIT(b->max);
        return s;
}

static const char base64_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void buf_add_base64(struct buf *b, struct str s)
{
        for (size_t i = 0; i < s.n; i += 3) {
                uint32_t v = (uint32_t)(unsigned char)s.p[i] << 16;
                char out[4];

                if (i + 1 < s.n)
                        v |= (uint32_t)(unsigned char)s.p[i + 1] << 8;
                if (i + 2 < s.n)
                        v |= (unsigned char)s.p[i + 2];
                out[0] = base64_chars[v >> 18];
                out[1] = base64_chars[(v >> 12) & 63];
                out[2] = i + 1 < s.n ? base64_chars[(v >> 6) & 63] : '=';
                out[3] = i + 2 < s.n ? base64_chars[v & 63] : '=';
                buf_add(b, out, 4);
        }
}

static int base64_value(char c)
{
        const char *at = c ? strchr(base64_chars, c) : NULL;

        return at ? (int)(at - base64_chars) : -1;
}

bool buf_add_unbase64(struct buf *b, struct str s)
{
        uint32_t v = 0;
        size_t have = 0, pad = 0;

        for (size_t i = 0; i < s.n; i++) {
                int d;

                if (is_blank(s.p[i]))
                        continue;
                d = base64_value(s.p[i]);
                if (s.p[i] == '=' && have >= 2)
                        pad++, d = 0;
                else if (pad || d < 0)
                        return false;
                v = v << 6 | (uint32_t)d;
                if (++have < 4)
                        continue;
                buf_addc(b, (char)(v >> 16));
                if (pad < 2)
                        buf_addc(b, (char)(v >> 8));
                if (pad < 1)
                        buf_addc(b, (char)v);
                have = 0;
                v = 0;
                if (pad && !str_eq(str_trim(str_n(s.p + i + 1, s.n - i - 1)), STR("")))
                        return false;
        }
        return have == 0;
}

void buf_add_csv(struct buf *b, const char *text)
{
        if (!text[strcspn(text, ",\"\r\n")]) {
                buf_adds(b, text);
                return;
        }
        buf_addc(b, '"');
        for (; *text; text++) {
                buf_adds(b, *text == '"' ? "\"" : "");
                buf_addc(b, *text);
        }
        buf_addc(b, '"');
}

void buf_add_urlencoded(struct buf *b, struct str s)
{
        static const char hex[] = "0123456789ABCDEF";

        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char)s.p[i];

                if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                    c == '.' || c == '_' || c == '~') {
                        buf_addc(b, (char)c);
                } else {
                        buf_addc(b, '%');
                        buf_addc(b, hex[c >> 4]);
                        buf_addc(b, hex[c & 15]);
                }
        }
}
