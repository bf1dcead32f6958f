#include "kinds/cron.h"

#include <strings.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400, FAR = 8 * 366 * DAY };

/* ---- reading */

struct field {
        const char *name;
        unsigned low, high;
        const char *const *names; /* of its values from LOW on; NULL: none */
        size_t n_names;
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct field fields[] = {
        {"minute", 0, 59, NULL, 0},
        {"hour", 0, 23, NULL, 0},
        {"day of the month", 1, 31, NULL, 0},
        {"month", 1, 12, months, ARRAY_LEN(months)},
        {"day of the week", 0, 7, weekdays, ARRAY_LEN(weekdays)},
};

static const struct {
        const char *name, *text;
} words[] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
};

static bool read_value(const struct field *f, struct str s, unsigned *ret)
{
        unsigned value = 0;

        for (size_t i = 0; i < f->n_names; i++) {
                if (s.n == 3 && strncasecmp(s.p, f->names[i], 3) == 0) {
                        *ret = f->low + (unsigned)i;
                        return true;
                }
        }
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '9' || i > 3)
                        return false;
                value = value * 10 + (unsigned)(s.p[i] - '0');
        }
        *ret = value;
        return s.n > 0;
}

/* "5", "1-5", "*", each with "/2" or without. */
static int read_part(const struct field *f, struct str part, uint64_t *ret, struct err *err)
{
        struct str all = part, range = str_split(&part, '/'), step_text = part;
        bool stepped = range.n < all.n, any = str_eq(range, str_of("*")) || str_eq(range, str_of("?"));
        unsigned low = f->low, high = f->high == 7 ? 6 : f->high, step = 1;

        if (stepped && (!read_value(&fields[0], step_text, &step) || step == 0))
                return err_set(err, E_INVALID, "%s: '%.*s' is no step; a whole number above 0 is", f->name,
                               STR_ARG(step_text));
        if (!any) {
                struct str to = range, from = str_split(&to, '-');
                bool ranged = from.n < range.n;

                if (!read_value(f, from, &low) || (ranged && !read_value(f, to, &high)))
                        return err_set(err, E_INVALID, "%s: '%.*s' is none; %u to %u are", f->name,
                                       STR_ARG(range), f->low, f->high);
                if (!ranged && !stepped)
                        high = low;
                if (low < f->low || high > f->high || low > high)
                        return err_set(err, E_INVALID, "%s: '%.*s' is out of its range, %u to %u", f->name,
                                       STR_ARG(range), f->low, f->high);
        }
        for (unsigned i = low; i <= high; i += step)
                *ret |= (uint64_t)1 << i;
        return 0;
}

static int read_field(const struct field *f, struct str text, uint64_t *ret, struct err *err)
{
        *ret = 0;
        do {
                struct str part = str_split(&text, ',');

                if (read_part(f, part, ret, err) < 0)
                        return -1;
        } while (text.n > 0);
        return 0;
}

static struct str next_word(struct str *s)
{
        size_t n = 0, begin = 0;

        while (begin < s->n && (s->p[begin] == ' ' || s->p[begin] == '\t'))
                begin++;
        while (begin + n < s->n && s->p[begin + n] != ' ' && s->p[begin + n] != '\t')
                n++;
        struct str word = str_n(s->p + begin, n);
        *s = str_n(s->p + begin + n, s->n - begin - n);
        return word;
}

static bool is_any(struct str s)
{
        return s.n > 0 && (s.p[0] == '*' || s.p[0] == '?');
}

int cron_parse(struct str text, struct cron *ret, struct err *err)
{
        struct str parts[ARRAY_LEN(fields)];
        uint64_t bits[ARRAY_LEN(fields)];

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (str_eq(text, str_of(words[i].name)))
                        text = str_of(words[i].text);
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
                parts[i] = next_word(&text);
        if (parts[ARRAY_LEN(fields) - 1].n == 0 || next_word(&text).n > 0)
                return err_set(
                        err, E_INVALID,
                        "five fields are wanted (minute hour day month weekday), as in '30 2 * * *', or one "
                        "of @hourly, @daily, @weekly, @monthly, @yearly");
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
                if (read_field(&fields[i], parts[i], &bits[i], err) < 0)
                        return -1;
        if (bits[4] & 1 << 7) /* Sunday has two numbers */
                bits[4] |= 1;
        *ret = (struct cron){.minutes = bits[0],
                             .hours = (uint32_t)bits[1],
                             .days = (uint32_t)bits[2],
                             .months = (uint32_t)bits[3],
                             .weekdays = (uint32_t)bits[4],
                             .any_hour = is_any(parts[1]),
                             .any_day = is_any(parts[2]),
                             .any_weekday = is_any(parts[4])};
        return 0;
}

/* ---- when */

static bool day_matches(const struct cron *c, const struct zone_clock *shown)
{
        bool day = c->days >> shown->day & 1, weekday = c->weekdays >> shown->weekday & 1;

        if (!(c->months >> shown->month & 1))
                return false;
        return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

/* The clock has shown this before: it was put back less than a few hours ago. */
static bool is_second_time(const struct zone *z, int64_t t)
{
        int32_t now = zone_offset(z, t), before = zone_offset(z, t - 3 * HOUR);

        /* What it shows now, it showed at that moment, if the change was not there yet. */
        return before > now && zone_offset(z, t - (before - now)) == before;
}

static bool is_due(const struct cron *c, const struct zone *z, int64_t t, const struct zone_clock *shown)
{
        return c->minutes >> shown->minute & 1 && c->hours >> shown->hour & 1 && day_matches(c, shown) &&
               (c->any_hour || !is_second_time(z, t));
}

/* The begin of the minute in which T is. */
static int64_t minute_of(int64_t t)
{
        return t - (t % MINUTE + MINUTE) % MINUTE;
}

/* How far one may go from what is not due: not past a change of the zone's, which may come at a half hour and never at night. */
static int64_t to_skip(const struct cron *c, const struct zone_clock *shown)
{
        int64_t minute = shown->minute, hour = shown->hour;

        if (!day_matches(c, shown))
                return hour < 20 ? (20 - hour) * HOUR - minute * MINUTE : HOUR - minute * MINUTE;
        if (!(c->hours >> shown->hour & 1))
                return (minute < 30 ? 30 - minute : 60 - minute) * MINUTE;
        return MINUTE;
}

int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after)
{
        for (int64_t t = minute_of(after) + MINUTE; t <= after + FAR;) {
                struct zone_clock shown;

                zone_clock(z, t, &shown);
                if (is_due(c, z, t, &shown))
                        return t;
                t += to_skip(c, &shown);
        }
        return -1;
}

int64_t cron_last(const struct cron *c, const struct zone *z, int64_t after, int64_t until)
{
        int64_t from = MAX(after, until - FAR), step = HOUR;

        /* Looking back from UNTIL in steps that grow, so that a long time of rest costs little. */
        for (int64_t begin = MAX(until - step, from);; step *= 4, begin = MAX(until - step, from)) {
                int64_t last = -1;

                for (int64_t t = cron_next(c, z, begin); t >= 0 && t <= until; t = cron_next(c, z, t))
                        last = t;
                if (last >= 0 || begin == from)
                        return last;
        }
}
