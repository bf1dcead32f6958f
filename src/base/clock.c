#include "base/base.h"

#include <sys/random.h>

static uint64_t read_clock_ns(clockid_t id)
{
        struct timespec ts;

        clock_gettime(id, &ts);
        return (uint64_t)ts.tv_sec * 1000 * USEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static usec_t read_clock(clockid_t id)
{
        return read_clock_ns(id) / 1000;
}

usec_t clock_boot(const struct clock *c)
{
        return c->manual ? c->boot : read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_boot_ns(const struct clock *c)
{
        return c->manual ? c->boot * 1000 : read_clock_ns(CLOCK_BOOTTIME);
}

uint64_t clock_boot_ns_of(const struct clock *c, uint64_t wall_ns)
{
        uint64_t best = UINT64_MAX, boot = c->boot * 1000, wall = c->wall * 1000;

        /* Between two looks the thread may have lost its CPU: then once more, and the closest pair counts. */
        for (int i = 0; !c->manual && i < 3 && best > 1000; i++) {
                uint64_t before = read_clock_ns(CLOCK_BOOTTIME), at = read_clock_ns(CLOCK_REALTIME);
                uint64_t after = read_clock_ns(CLOCK_BOOTTIME);

                if (after - before < best) {
                        best = after - before;
                        boot = before + best / 2;
                        wall = at;
                }
        }
        return wall_ns > wall ? boot + (wall_ns - wall) : boot - MIN(wall - wall_ns, boot);
}

usec_t clock_wall(const struct clock *c)
{
        return c->manual ? c->wall : read_clock(CLOCK_REALTIME);
}

/* The last N digits of VALUE, and what follows them. */
static char *put_digits(char *at, size_t n, uint64_t value, char behind)
{
        at[n] = behind;
        for (size_t i = n; i--; value /= 10)
                at[i] = (char)('0' + value % 10);
        return at + n + 1;
}

/* By hand: every condition of every status has a time, and snprintf() takes ten times as long. */
static char *format_time(usec_t wall, char out[TIME_TEXT_MAX], bool micro)
{
        time_t sec = (time_t)(wall / USEC_PER_SEC);
        char *at = out;
        struct tm tm;

        gmtime_r(&sec, &tm);
        at = put_digits(at, 4, (unsigned)tm.tm_year + 1900, '-');
        at = put_digits(at, 2, (unsigned)tm.tm_mon + 1, '-');
        at = put_digits(at, 2, (unsigned)tm.tm_mday, 'T');
        at = put_digits(at, 2, (unsigned)tm.tm_hour, ':');
        at = put_digits(at, 2, (unsigned)tm.tm_min, ':');
        at = put_digits(at, 2, (unsigned)tm.tm_sec, micro ? '.' : 'Z');
        if (micro)
                at = put_digits(at, 6, wall % USEC_PER_SEC, 'Z');
        *at = '\0';
        return out;
}

char *time_format(usec_t wall, char out[TIME_TEXT_MAX])
{
        return format_time(wall, out, false);
}

char *time_format_micro(usec_t wall, char out[TIME_TEXT_MAX])
{
        return format_time(wall, out, true);
}

/* Takes DIGITS digits off the front of S. */
static bool take_digits(struct str *s, size_t digits, unsigned *ret)
{
        uint64_t v;

        if (s->n < digits || !str_to_u64(str_n(s->p, digits), &v))
                return false;
        *ret = (unsigned)v;
        s->p += digits;
        s->n -= digits;
        return true;
}

static bool take_char(struct str *s, const char *any_of)
{
        if (!s->n || !s->p[0] || !strchr(any_of, s->p[0]))
                return false;
        s->p++;
        s->n--;
        return true;
}

static bool take_fraction(struct str *s, unsigned *ret_usec)
{
        unsigned usec = 0, digits = 0;

        while (s->n && s->p[0] >= '0' && s->p[0] <= '9') {
                if (digits++ < 6)
                        usec = usec * 10 + (unsigned)(s->p[0] - '0');
                s->p++;
                s->n--;
        }
        for (unsigned i = digits; i < 6; i++)
                usec *= 10;
        *ret_usec = usec;
        return digits > 0;
}

static bool take_zone(struct str *s, int64_t *ret_offset_sec)
{
        bool negative;
        unsigned h, m;

        *ret_offset_sec = 0;
        if (s->n == 0 || take_char(s, "Zz"))
                return true;
        negative = s->p[0] == '-';
        if (!take_char(s, "+-") || !take_digits(s, 2, &h))
                return false;
        take_char(s, ":");
        if (!take_digits(s, 2, &m) || h > 23 || m > 59)
                return false;
        *ret_offset_sec = (int64_t)(h * 3600 + m * 60) * (negative ? -1 : 1);
        return true;
}

static unsigned days_in_month(unsigned year, unsigned month)
{
        static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap);
}

bool time_parse(struct str s, usec_t *ret_wall)
{
        unsigned y, mo, d, h, mi, sec, usec = 0;
        struct tm tm = {0};
        int64_t offset, t;

        if (!take_digits(&s, 4, &y) || !take_char(&s, "-") || !take_digits(&s, 2, &mo) ||
            !take_char(&s, "-") || !take_digits(&s, 2, &d) || !take_char(&s, "Tt ") ||
            !take_digits(&s, 2, &h) || !take_char(&s, ":") || !take_digits(&s, 2, &mi) ||
            !take_char(&s, ":") || !take_digits(&s, 2, &sec))
                return false;
        if (take_char(&s, ".,") && !take_fraction(&s, &usec))
                return false;
        if (!take_zone(&s, &offset) || s.n)
                return false;
        if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > days_in_month(y, mo) || h > 23 || mi > 59 ||
            sec > 60)
                return false;
        tm.tm_year = (int)y - 1900;
        tm.tm_mon = (int)mo - 1;
        tm.tm_mday = (int)d;
        tm.tm_hour = (int)h;
        tm.tm_min = (int)mi;
        tm.tm_sec = (int)sec;
        t = (int64_t)timegm(&tm) - offset;
        if (t < 0)
                return false;
        *ret_wall = (usec_t)t * USEC_PER_SEC + usec;
        return true;
}

static uint64_t splitmix(uint64_t *x)
{
        uint64_t z = (*x += 0x9e3779b97f4a7c15ull);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed)
{
        for (size_t i = 0; i < ARRAY_LEN(r->s); i++)
                r->s[i] = splitmix(&seed);
}

void rng_seed_random(struct rng *r)
{
        uint64_t seed;

        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                seed = read_clock(CLOCK_BOOTTIME);
        rng_seed(r, seed);
}

uint64_t rng_next(struct rng *r)
{
        uint64_t *s = r->s, result = s[1] * 5, t = s[1] << 17;

        result = (result << 7 | result >> 57) * 9;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3] << 45 | s[3] >> 19;
        return result;
}

uint64_t rng_below(struct rng *r, uint64_t limit)
{
        return limit ? rng_next(r) % limit : 0;
}

usec_t rng_jitter(struct rng *r, usec_t base, unsigned fraction_percent)
{
        return usec_add(base, rng_below(r, base / 100 * fraction_percent + 1));
}
