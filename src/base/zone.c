#include "base/zone.h"

#include <string.h>

#include "base/file.h"
#include "base/vec.h"

enum {
        FILE_MAX = 256 << 10,
        HEADER = 44,
        OFFSET_MAX = 26 * 3600, /* RFC 8536: under 26 hours */
        DAY = 86400,
};

/* When the rule changes over: "M3.5.0/2", "J60", "59". */
struct turn {
        enum { TURN_WEEKDAY, TURN_NO_LEAP, TURN_DAY } kind;
        unsigned month, week, day;
        int32_t seconds; /* after midnight, as the clock before it shows */
};

/* The rule for what comes after the last known change. */
struct rule {
        bool there, changes;
        int32_t standard, summer; /* seconds east */
        struct turn begin, end;   /* of the summer */
};

struct change {
        int64_t at;
        int32_t offset; /* from then on */
};

struct zone {
        int32_t first; /* before the first change */
        VEC(struct change) changes;
        struct rule rule;
};

void zone_free(struct zone *z)
{
        if (!z)
                return;
        vec_done(&z->changes);
        free(z);
}

/* ---- the calendar */

int64_t days_of(int64_t year, unsigned month, unsigned day)
{
        /* A year that begins in March has its leap day at the end; 400 of them are 146097 days. */
        int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
        int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t floor_div(int64_t a, int64_t b)
{
        return a / b - (a % b < 0);
}

static void date_of(int64_t days, struct zone_clock *ret)
{
        int64_t z = days + 719468, era = floor_div(z, 146097), of_era = z - era * 146097;
        int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
        int64_t of_year = of_era - (365 * years + years / 4 - years / 100), month = (5 * of_year + 2) / 153;

        ret->day = (unsigned)(of_year - (153 * month + 2) / 5 + 1);
        ret->month = (unsigned)(month < 10 ? month + 3 : month - 9);
        ret->year = years + era * 400 + (ret->month <= 2);
        ret->weekday = (unsigned)(((days + 4) % 7 + 7) % 7);
}

static bool is_leap(int64_t year)
{
        return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* ---- the rule: a POSIX TZ text, "CET-1CEST,M3.5.0,M10.5.0/3" */

static bool take(struct str *s, char c)
{
        if (s->n == 0 || s->p[0] != c)
                return false;
        *s = str_n(s->p + 1, s->n - 1);
        return true;
}

static bool take_number(struct str *s, unsigned max, unsigned *ret)
{
        size_t n = 0;
        unsigned value = 0;

        while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9' && value <= max)
                value = value * 10 + (unsigned)(s->p[n++] - '0');
        *s = str_n(s->p + n, s->n - n);
        *ret = value;
        return n > 0 && value <= max;
}

static bool take_name(struct str *s)
{
        bool quoted = take(s, '<');
        size_t n = 0;

        while (n < s->n && (quoted ? s->p[n] != '>' : (s->p[n] | 32) >= 'a' && (s->p[n] | 32) <= 'z'))
                n++;
        *s = str_n(s->p + n, s->n - n);
        return n > 0 && (!quoted || take(s, '>'));
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct str *s, unsigned hours_max, int32_t *ret)
{
        bool negative = take(s, '-');
        unsigned h, m = 0, sec = 0;

        if (!negative)
                (void)take(s, '+');
        if (!take_number(s, hours_max, &h) || (take(s, ':') && !take_number(s, 59, &m)) ||
            (take(s, ':') && !take_number(s, 59, &sec)))
                return false;
        *ret = (int32_t)(h * 3600 + m * 60 + sec) * (negative ? -1 : 1);
        return true;
}

static bool take_turn(struct str *s, struct turn *ret)
{
        ret->seconds = 2 * 3600;
        if (take(s, 'M')) {
                ret->kind = TURN_WEEKDAY;
                if (!take_number(s, 12, &ret->month) || ret->month < 1 || !take(s, '.') ||
                    !take_number(s, 5, &ret->week) || ret->week < 1 || !take(s, '.') ||
                    !take_number(s, 6, &ret->day))
                        return false;
        } else {
                ret->kind = take(s, 'J') ? TURN_NO_LEAP : TURN_DAY;
                if (!take_number(s, 365, &ret->day) || (ret->kind == TURN_NO_LEAP && ret->day < 1))
                        return false;
        }
        return !take(s, '/') || take_time(s, 167, &ret->seconds);
}

static bool parse_rule(struct str s, struct rule *ret)
{
        int32_t west;

        if (!take_name(&s) || !take_time(&s, 24, &west))
                return false;
        ret->standard = -west;
        ret->there = true;
        if (s.n == 0)
                return true;
        ret->changes = true;
        ret->summer = ret->standard + 3600;
        if (!take_name(&s))
                return false;
        if (s.n > 0 && s.p[0] != ',') {
                if (!take_time(&s, 24, &west))
                        return false;
                ret->summer = -west;
        }
        return take(&s, ',') && take_turn(&s, &ret->begin) && take(&s, ',') && take_turn(&s, &ret->end) &&
               s.n == 0;
}

/* When the clock shows that moment of YEAR, in seconds that know no zone. */
static int64_t turn_at(const struct turn *t, int64_t year)
{
        int64_t day = days_of(year, 1, 1);

        if (t->kind == TURN_DAY) {
                day += t->day;
        } else if (t->kind == TURN_NO_LEAP) {
                day += t->day - 1 + (is_leap(year) && t->day >= 60);
        } else {
                int64_t first = days_of(year, t->month, 1);
                int64_t next = t->month == 12 ? days_of(year + 1, 1, 1) : days_of(year, t->month + 1, 1);

                day = first + ((int64_t)t->day - (first + 4) % 7 + 14) % 7 + 7 * (t->week - 1);
                if (day >= next)
                        day -= 7;
        }
        return day * DAY + t->seconds;
}

static int32_t rule_offset(const struct rule *r, int64_t t)
{
        struct zone_clock c;
        int64_t begin, end;

        if (!r->changes)
                return r->standard;
        date_of(floor_div(t + r->standard, DAY), &c);
        begin = turn_at(&r->begin, c.year) - r->standard;
        end = turn_at(&r->end, c.year) - r->summer;
        if (begin < end)
                return t >= begin && t < end ? r->summer : r->standard;
        return t >= end && t < begin ? r->standard : r->summer; /* the other half of the earth */
}

/* ---- the file */

static uint64_t big_endian(const char *p, unsigned n)
{
        uint64_t v = 0;

        for (unsigned i = 0; i < n; i++)
                v = v << 8 | (unsigned char)p[i];
        return v;
}

struct header {
        char version;
        uint64_t utc_flags, standard_flags, leaps, times, types, characters;
};

/* Of a block whose times have WIDTH bytes. */
static uint64_t block_size(const struct header *h, unsigned width)
{
        return h->times * (width + 1) + h->types * 6 + h->characters + h->leaps * (width + 4) +
               h->standard_flags + h->utc_flags;
}

static bool read_header(struct str s, struct header *ret)
{
        if (s.n < HEADER || memcmp(s.p, "TZif", 4) != 0)
                return false;
        *ret = (struct header){s.p[4],
                               big_endian(s.p + 20, 4),
                               big_endian(s.p + 24, 4),
                               big_endian(s.p + 28, 4),
                               big_endian(s.p + 32, 4),
                               big_endian(s.p + 36, 4),
                               big_endian(s.p + 40, 4)};
        return ret->types > 0 && ret->types <= 256;
}

/* The block after its header, of times with WIDTH bytes. */
static bool read_block(struct zone *z, struct str s, const struct header *h, unsigned width)
{
        const char *times = s.p, *indices = times + h->times * width, *types = indices + h->times;
        int64_t last = INT64_MIN;

        for (uint64_t i = 0; i < h->types; i++) {
                int32_t offset = (int32_t)big_endian(types + i * 6, 4);

                if (offset <= -OFFSET_MAX || offset >= OFFSET_MAX)
                        return false;
        }
        z->first = (int32_t)big_endian(types, 4);
        for (uint64_t i = 0; i < h->times; i++) {
                uint64_t raw = big_endian(times + i * width, width);
                struct change c = {.at = width == 8 ? (int64_t)raw : (int32_t)raw};
                unsigned type = (unsigned char)indices[i];

                if (type >= h->types || c.at < last)
                        return false;
                c.offset = (int32_t)big_endian(types + type * 6, 4);
                last = c.at;
                *vec_push(&z->changes) = c;
        }
        return true;
}

static bool read_footer(struct zone *z, struct str s)
{
        struct str line;

        if (!take(&s, '\n') || s.n == 0 || !memchr(s.p, '\n', s.n))
                return false;
        line = str_split(&s, '\n');
        return line.n == 0 || parse_rule(line, &z->rule);
}

static bool parse(struct zone *z, struct str s)
{
        unsigned width = 4;
        struct header h;

        if (!read_header(s, &h) || block_size(&h, width) > s.n - HEADER)
                return false;
        if (h.version >= '2') { /* the same once more, with times of 64 bits */
                s = str_n(s.p + HEADER + block_size(&h, width), s.n - HEADER - block_size(&h, width));
                width = 8;
                if (!read_header(s, &h) || block_size(&h, width) > s.n - HEADER)
                        return false;
        }
        s = str_n(s.p + HEADER, s.n - HEADER);
        if (!read_block(z, s, &h, width))
                return false;
        return width == 4 || read_footer(z, str_n(s.p + block_size(&h, width), s.n - block_size(&h, width)));
}

struct zone *zone_parse(struct str text, struct err *err)
{
        _cleanup_(zone_free) struct zone *z = xcalloc(1, sizeof(*z));

        if (!parse(z, text)) {
                err_set(err, E_INVALID, "this is no TZif file, or it is damaged");
                return NULL;
        }
        return TAKE_PTR(z);
}

/* A path below the database, and nothing else. */
static bool is_name(const char *name)
{
        if (!*name || *name == '/' || strlen(name) > 128 || strstr(name, ".."))
                return false;
        for (const char *p = name; *p; p++)
                if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-.", *p))
                        return false;
        return true;
}

struct zone *zone_load(const char *dir, const char *name, struct err *err)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(4096), text = BUF_INIT(FILE_MAX);
        struct zone *z;

        if (streq(name, "UTC") || streq(name, "Etc/UTC"))
                return xcalloc(1, sizeof(*z));
        if (!is_name(name)) {
                err_set(err, E_NOT_FOUND,
                        "this is no name of a time zone; one is wanted like Europe/Berlin or UTC");
                return NULL;
        }
        buf_printf(&path, "%s/%s", dir ? dir : "/usr/share/zoneinfo", name);
        if (file_read(buf_cstr(&path), &text, NULL) < 0) {
                err_set(err, E_NOT_FOUND,
                        "there is no time zone %s in %s; is it spelled as IANA spells it, and is tzdata "
                        "installed?",
                        name, dir ? dir : "/usr/share/zoneinfo");
                return NULL;
        }
        z = zone_parse(buf_str(&text), err);
        if (!z)
                err_wrap(err, "%s", buf_cstr(&path));
        return z;
}

/* ---- what it says */

int32_t zone_offset(const struct zone *z, int64_t t)
{
        size_t from = 0, to = z->changes.n; /* the first change after T is in here */

        if (to > 0 && t >= z->changes.v[to - 1].at)
                return z->rule.there ? rule_offset(&z->rule, t) : z->changes.v[to - 1].offset;
        if (to == 0 && z->rule.there)
                return rule_offset(&z->rule, t);
        while (from < to) {
                size_t middle = (from + to) / 2;

                if (z->changes.v[middle].at <= t)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from ? z->changes.v[from - 1].offset : z->first;
}

void zone_clock(const struct zone *z, int64_t t, struct zone_clock *ret)
{
        int64_t shown = t + zone_offset(z, t), of_day;

        date_of(floor_div(shown, DAY), ret);
        of_day = shown - floor_div(shown, DAY) * DAY;
        ret->hour = (unsigned)(of_day / 3600);
        ret->minute = (unsigned)(of_day / 60 % 60);
}

/* ---- those that were asked for */

struct kept {
        char *name;
        struct zone *zone;
};

struct zones {
        const char *dir;
        VEC(struct kept) kept; /* a few: a look from the first to the last is fine */
};

struct zones *zones_new(const char *dir)
{
        struct zones *zones = xcalloc(1, sizeof(*zones));

        zones->dir = dir;
        return zones;
}

void zones_free(struct zones *zones)
{
        if (!zones)
                return;
        vec_foreach (k, &zones->kept) {
                free(k->name);
                zone_free(k->zone);
        }
        vec_done(&zones->kept);
        free(zones);
}

const struct zone *zones_get(struct zones *zones, const char *name, struct err *err)
{
        struct zone *z;

        vec_foreach (k, &zones->kept)
                if (streq(k->name, name))
                        return k->zone;
        z = zone_load(zones->dir, name, err);
        if (z)
                *vec_push(&zones->kept) = (struct kept){xstrdup(name), z};
        return z;
}
