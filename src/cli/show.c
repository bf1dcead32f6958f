#include "cli/show.h"

#include <math.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH_OTHERWISE = 80, WIDTH_MAX = 1000, WORD_MAX = 48 };

/* ---- where it goes */

static unsigned width_of(int fd)
{
        struct winsize size;
        const char *columns = getenv("COLUMNS");
        uint64_t n;

        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
                return size.ws_col;
        if (columns && str_to_u64(str_of(columns), &n) && n > 0 && n <= WIDTH_MAX)
                return (unsigned)n;
        return WIDTH_OTHERWISE;
}

struct screen screen_of(FILE *to)
{
        const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
        struct screen s = {.to = to, .terminal = isatty(fileno(to)) == 1};

        s.colours = s.terminal && !(no_colour && *no_colour) && term && !streq(term, "dumb");
        s.width = s.terminal ? width_of(fileno(to)) : 0;
        return s;
}

const char *screen_tone(const struct screen *s, enum tone tone)
{
        static const char *const codes[] = {
                [TONE_PLAIN] = "",        [TONE_GOOD] = "\033[32m", [TONE_BAD] = "\033[31m",
                [TONE_WARN] = "\033[33m", [TONE_DIM] = "\033[2m",   [TONE_BOLD] = "\033[1m",
        };

        return s->colours ? codes[tone] : "";
}

const char *screen_plain(const struct screen *s)
{
        return s->colours ? "\033[0m" : "";
}

/* ---- words */

struct range {
        uint32_t from, to;
};

static bool is_in(uint32_t c, const struct range *ranges, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (c >= ranges[i].from && c <= ranges[i].to)
                        return true;
        return false;
}

/* Marks that stand on the character before them, and the characters of East Asia, which take two columns. */
static size_t columns_of(uint32_t c)
{
        static const struct range none[] = {{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
                                            {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
        static const struct range two[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                                           {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                                           {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                                           {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

        if (c < 0x0300)
                return 1;
        if (is_in(c, none, ARRAY_LEN(none)))
                return 0;
        return is_in(c, two, ARRAY_LEN(two)) ? 2 : 1;
}

/* The character at the start of S, and its bytes; a byte that begins none is one character. */
static uint32_t take_character(struct str s, size_t *ret_n)
{
        unsigned char c = (unsigned char)s.p[0];
        size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        uint32_t code = n == 1 ? c : (uint32_t)(c & (0x7f >> n));

        if (n > s.n)
                n = 1;
        for (size_t i = 1; i < n; i++)
                code = code << 6 | ((unsigned char)s.p[i] & 0x3f);
        *ret_n = n;
        return code;
}

/* The bytes at the start of TEXT that take at most COLUMNS. */
static size_t bytes_within(struct str text, size_t columns, size_t *ret_columns)
{
        size_t at = 0, used = 0, n, w;

        while (at < text.n) {
                w = columns_of(take_character(str_n(text.p + at, text.n - at), &n));
                if (used + w > columns)
                        break;
                used += w;
                at += n;
        }
        *ret_columns = used;
        return at;
}

size_t text_width(struct str text)
{
        size_t columns;

        bytes_within(text, SIZE_MAX / 2, &columns);
        return columns;
}

const char *text_fit(struct arena *a, const char *text, size_t columns)
{
        struct str s = str_of(text);
        size_t used;

        if (text_width(s) <= columns)
                return text;
        if (!columns)
                return "";
        return arena_printf(a, "%.*s…", (int)bytes_within(s, columns - 1, &used), text);
}

const char *text_clean(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);

        if (!utf8_valid(copy, strlen(copy)))
                for (char *p = copy; *p; p++)
                        if ((unsigned char)*p >= 0x80)
                                *p = '?';
        for (char *p = copy; *p; p++) {
                /* U+0080 to U+009F are 0xc2 and one of these: terminals take them as commands too. */
                bool c1 = (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0;

                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = *p == '\n' || *p == '\t' ? ' ' : '?';
                else if (c1)
                        p[0] = p[1] = '?';
        }
        return copy;
}

size_t text_typos(const char *a, const char *b)
{
        size_t row[WORD_MAX + 1], n = strlen(b);

        if (strlen(a) > WORD_MAX || n > WORD_MAX)
                return SIZE_MAX;
        for (size_t j = 0; j <= n; j++)
                row[j] = j;
        for (size_t i = 0; a[i]; i++) {
                size_t corner = row[0];

                row[0] = i + 1;
                for (size_t j = 0; j < n; j++) {
                        size_t above = row[j + 1], replaced = corner + (a[i] != b[j]);

                        row[j + 1] = MIN(replaced, MIN(above, row[j]) + 1);
                        corner = above;
                }
        }
        return row[n];
}

const char *show_percent(struct arena *a, double percent)
{
        return isfinite(percent) ? arena_printf(a, "%.0f", floor(percent)) : "-";
}

/* ---- times */

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static const char *two(struct arena *a, uint64_t big, const char *unit, uint64_t small, const char *of_small)
{
        return small ? arena_printf(a, "%llu%s%02llu%s", (unsigned long long)big, unit,
                                    (unsigned long long)small, of_small)
                     : arena_printf(a, "%llu%s", (unsigned long long)big, unit);
}

const char *show_age(struct arena *a, usec_t age)
{
        uint64_t s = age / USEC_PER_SEC;

        if (s < MINUTE)
                return two(a, s, "s", 0, "");
        if (s < HOUR)
                return two(a, s / MINUTE, "m", 0, "");
        if (s < 10 * HOUR)
                return two(a, s / HOUR, "h", s / MINUTE % 60, "m");
        if (s < 2 * DAY)
                return two(a, s / HOUR, "h", 0, "");
        return two(a, s / DAY, "d", 0, "");
}

const char *show_duration(struct arena *a, usec_t took)
{
        uint64_t s = took / USEC_PER_SEC;

        if (took && took < 10 * USEC_PER_SEC && took % USEC_PER_SEC)
                return arena_printf(a, "%.1fs", (double)took / (double)USEC_PER_SEC);
        if (s < MINUTE)
                return two(a, s, "s", 0, "");
        if (s < HOUR)
                return two(a, s / MINUTE, "m", s % 60, "s");
        if (s < 2 * DAY)
                return two(a, s / HOUR, "h", s / MINUTE % 60, "m");
        return two(a, s / DAY, "d", s / HOUR % 24, "h");
}

/* What both of a range say once: "18m" and "31m" are "18-31m". */
static const char *range(struct arena *a, const char *low, const char *high)
{
        size_t n = strlen(low), digits = strspn(low, "0123456789");

        if (streq(low, high))
                return low;
        if (digits + 1 == n && strspn(high, "0123456789") + 1 == strlen(high) &&
            low[n - 1] == high[strlen(high) - 1])
                return arena_printf(a, "%.*s-%s", (int)digits, low, high);
        return arena_printf(a, "%s-%s", low, high);
}

const char *show_eta(struct arena *a, usec_t now, usec_t low, usec_t mid, usec_t high)
{
        const char *left, *between;

        if (!mid)
                return "-";
        if (mid <= now && high >= now + USEC_PER_SEC)
                return arena_printf(a, "soon (<%s)", show_age(a, high - now));
        if (mid <= now)
                return high > now ? "soon" : "overdue";
        left = show_age(a, mid - now);
        if (!low || !high || high < low)
                return left;
        between = range(a, show_age(a, usec_sub(low, now)), show_age(a, usec_sub(high, now)));
        return streq(between, left) ? left : arena_printf(a, "%s (%s)", left, between);
}

const char *show_start(struct arena *a, usec_t now, usec_t starts)
{
        return starts > now ? arena_printf(a, "starts ~%s", show_age(a, starts - now)) : "starts soon";
}

static bool same_day(const struct tm *x, const struct tm *y)
{
        return x->tm_year == y->tm_year && x->tm_yday == y->tm_yday;
}

const char *show_clock(struct arena *a, usec_t now, usec_t wall)
{
        time_t then = (time_t)(wall / USEC_PER_SEC), today = (time_t)(now / USEC_PER_SEC);
        struct tm t, n;
        char text[TIME_TEXT_MAX];

        if (!localtime_r(&then, &t) || !localtime_r(&today, &n))
                return "-";
        strftime(text, sizeof(text), same_day(&t, &n) ? "%H:%M" : "%Y-%m-%d %H:%M", &t);
        return arena_strdup(a, text);
}

/* ---- tables */

void table_init(struct table *t, struct arena *a, const struct table_column *columns, size_t n)
{
        *t = (struct table){.arena = a, .columns = columns, .n_columns = n};
}

void table_done(struct table *t)
{
        vec_done(&t->cells);
}

void table_add(struct table *t, enum tone tone, const char *text)
{
        *vec_push(&t->cells) = (struct table_cell){text && *text ? text_clean(t->arena, text) : "", tone};
}

size_t table_rows(const struct table *t)
{
        return t->cells.n / t->n_columns;
}

static void measure(const struct table *t, size_t widths[TABLE_COLUMNS_MAX])
{
        for (size_t j = 0; j < t->n_columns; j++) {
                widths[j] = strlen(t->columns[j].title);
                for (size_t i = j; i < t->cells.n; i += t->n_columns)
                        widths[j] = MAX(widths[j], text_width(str_of(t->cells.v[i].text)));
        }
}

static void print_cell(const struct screen *s, const struct table_cell *c, size_t width, bool right)
{
        size_t used = text_width(str_of(c->text));
        int pad = (int)(width > used ? width - used : 0);
        const char *off = c->tone == TONE_PLAIN ? "" : screen_plain(s);

        fprintf(s->to, "%*s%s%s%s%*s", right ? pad : 0, "", screen_tone(s, c->tone), c->text, off,
                right ? 0 : pad, "");
}

/* The last cell that holds anything ends the line: no blanks at its end. */
static size_t cells_of(const struct table_cell *row, size_t n)
{
        while (n > 1 && !*row[n - 1].text)
                n--;
        return n;
}

static void print_row(const struct table *t, const struct screen *s, const struct table_cell *row,
                      const size_t *widths, size_t room)
{
        size_t n = cells_of(row, t->n_columns);

        for (size_t j = 0; j < n; j++) {
                bool last = j + 1 == n;
                struct table_cell c = row[j];

                if (j + 1 == t->n_columns && room)
                        c.text = text_fit(t->arena, c.text, room);
                print_cell(s, &c, last && !t->columns[j].right ? 0 : widths[j], t->columns[j].right);
                fputs(last ? "\n" : "  ", s->to);
        }
}

void table_print(const struct table *t, const struct screen *s, bool cut)
{
        struct table_cell head[TABLE_COLUMNS_MAX];
        size_t widths[TABLE_COLUMNS_MAX], before = 0, room = 0;

        measure(t, widths);
        for (size_t j = 0; j < t->n_columns; j++) {
                head[j] = (struct table_cell){t->columns[j].title, TONE_DIM};
                before += j + 1 < t->n_columns ? widths[j] + 2 : 0;
        }
        if (cut &&
            s->width) /* of a window that is too small for the others something is shown all the same */
                room = s->width > before + 8 ? s->width - before : 8;
        print_row(t, s, head, widths, room);
        for (size_t i = 0; i + t->n_columns <= t->cells.n; i += t->n_columns)
                print_row(t, s, &t->cells.v[i], widths, room);
}
