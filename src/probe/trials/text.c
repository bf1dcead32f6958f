/*
 * Trials for a person's eyes: the table, how the times are spread, and what to mind; and the table as Markdown.
 */
#include "probe/trials/internal.h"

#include <math.h>

enum { COLUMNS = 7, NAME_WIDTH = 40, BINS = 40 };

static const char *const TITLES[COLUMNS] = {"command", "median ± 95 %", "min … max", "user",
                                            "sys",     "RSS",           "vs first"};

/* ---- values */

/* Three figures that count, in the unit that suits them. */
static void add_number(struct buf *out, double v)
{
        buf_printf(out, "%.*f", v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static double unit_of(double seconds, const char **ret_name)
{
        static const struct {
                double from;
                double size;
                const char *name;
        } units[] = {{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {0, 1e-6, "µs"}};
        size_t i = 0;

        while (seconds < units[i].from)
                i++;
        *ret_name = units[i].name;
        return units[i].size;
}

void trials_add_time(struct buf *out, double seconds)
{
        const char *name;
        double size;

        if (isnan(seconds)) {
                buf_adds(out, "-");
                return;
        }
        if (seconds <= 0) { /* the kernel has counted nothing */
                buf_adds(out, "0 s");
                return;
        }
        size = unit_of(seconds, &name);
        buf_printf(out, seconds / size < 100 ? "%.3g %s" : "%.1f %s", seconds / size, name);
}

static void add_median(struct buf *out, const struct stats_description *d)
{
        double half = MAX(d->median_ci.high - d->median, d->median - d->median_ci.low);

        trials_add_time(out, d->median);
        if (isnan(half))
                buf_adds(out, " ± ?");
        else
                buf_printf(out, " ± %.1f %%%s", half / d->median * 100,
                           d->median_ci.method == STATS_ROUGH ? " (rough)" : "");
}

static void add_range(struct buf *out, const struct stats_description *d)
{
        const char *name;
        double size = unit_of(d->max, &name);

        add_number(out, d->min / size);
        buf_adds(out, " … ");
        add_number(out, d->max / size);
        buf_printf(out, " %s", name);
}

static void add_memory(struct buf *out, double bytes)
{
        if (isnan(bytes))
                buf_adds(out, "-");
        else {
                add_number(out, bytes / 1048576);
                buf_adds(out, " MiB");
        }
}

const struct stats_pair *trials_pair(const struct trials *t, size_t i)
{
        for (size_t k = 0; k < t->comparison.n; k++)
                if (t->comparison.pairs[k].a == i && t->comparison.pairs[k].b == 0)
                        return &t->comparison.pairs[k];
        return NULL;
}

static void add_p(struct buf *out, double p)
{
        if (p < 0.0001)
                buf_adds(out, ", p<0.0001");
        else
                buf_printf(out, ", p=%.2g", p);
}

static void add_versus(struct buf *out, const struct trials *t, size_t i)
{
        const struct stats_pair *p = i ? trials_pair(t, i) : NULL;

        if (!p) {
                buf_adds(out, i ? "-" : "1");
                return;
        }
        switch (p->verdict) {
        case STATS_LESS:
                buf_printf(out, "%.2fx faster (%.2f-%.2f)", 1 / p->ratio, 1 / p->high, 1 / p->low);
                break;
        case STATS_MORE:
                buf_printf(out, "%.2fx slower (%.2f-%.2f)", p->ratio, p->low, p->high);
                break;
        case STATS_SAME:
                buf_printf(out, "no detectable difference (%.2f-%.2f)", p->low, p->high);
                return;
        case STATS_INCONCLUSIVE:
                buf_adds(out, "inconclusive");
                if (!isnan(p->ratio))
                        buf_printf(out, " (x%.2f)", p->ratio);
                if (p->needed >= STATS_NEEDED_MAX)
                        buf_printf(out, ": %d runs or more would be needed", STATS_NEEDED_MAX);
                else if (p->needed) /* without an interval nothing is known of the scatter */
                        buf_printf(out,
                                   isnan(p->low) ? ": at least %zu runs are needed"
                                                 : ": %zu runs would likely decide",
                                   p->needed);
                return;
        case STATS_NOT_COMPARABLE:
        case STATS_VERDICTS_:
                buf_adds(out, "not comparable");
                return;
        }
        add_p(out, p->p_adjusted);
        buf_printf(out, ", %s effect", stats_cliff_word(p->effect));
}

/* ---- the table */

static void add_name(struct buf *out, const char *name, bool markdown)
{
        size_t n = utf8_cut(name, strlen(name), NAME_WIDTH);

        for (size_t i = 0; i < n; i++) {
                buf_adds(out, markdown && name[i] == '|' ? "\\" : ""); /* no end of a cell */
                buf_addc(out, name[i]);
        }
        if (name[n])
                buf_adds(out, "…");
}

static void cell(const struct trials *t, size_t side, int column, bool markdown, struct buf *out)
{
        const struct trials_side *s = &t->sides[side];

        if (column == 0)
                add_name(out, s->name, markdown);
        else if (!s->time.n)
                buf_adds(out, column > 1 ? "-" : s->failed ? "failed" : "no run");
        else if (column == 1)
                add_median(out, &s->time);
        else if (column == 2)
                add_range(out, &s->time);
        else if (column == 3)
                trials_add_time(out, s->user);
        else if (column == 4)
                trials_add_time(out, s->sys);
        else if (column == 5)
                add_memory(out, s->memory);
        else
                add_versus(out, t, side);
}

/* Columns that a character takes are not bytes. */
static size_t width(struct str s)
{
        size_t n = 0;

        for (size_t i = 0; i < s.n; i++)
                n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
        return n;
}

static void add_padded(struct buf *out, struct str text, size_t to)
{
        buf_addstr(out, text);
        for (size_t n = width(text); n < to; n++)
                buf_addc(out, ' ');
}

static int columns_of(const struct trials *t)
{
        return t->config->n > 1 ? COLUMNS : COLUMNS - 1;
}

/* Row 0 is the titles. */
static void add_row(const struct trials *t, size_t row, const size_t *widths, bool markdown, struct buf *out)
{
        for (int i = 0; i < columns_of(t); i++) {
                _cleanup_(buf_done) struct buf text = BUF_INIT(1024);
                bool last = i + 1 == columns_of(t);

                if (row)
                        cell(t, row - 1, i, markdown, &text);
                else
                        buf_adds(&text, TITLES[i]);
                buf_adds(out, markdown ? "| " : "");
                add_padded(out, buf_str(&text), last && !markdown ? 0 : widths[i]);
                buf_adds(out, markdown ? " " : last ? "" : "   ");
        }
        buf_adds(out, markdown ? "|\n" : "\n");
}

static void add_table(const struct trials *t, bool markdown, struct buf *out)
{
        size_t widths[COLUMNS] = {0};

        for (int i = 0; i < columns_of(t); i++) {
                widths[i] = width(str_of(TITLES[i]));
                for (size_t row = 0; row < t->config->n; row++) {
                        _cleanup_(buf_done) struct buf text = BUF_INIT(1024);

                        cell(t, row, i, markdown, &text);
                        widths[i] = MAX(widths[i], width(buf_str(&text)));
                }
        }
        for (size_t row = 0; row <= t->config->n; row++) {
                add_row(t, row, widths, markdown, out);
                for (int i = 0; row == 0 && markdown && i < columns_of(t); i++)
                        buf_adds(out, i ? "|---:" : "|:---");
                buf_adds(out, row == 0 && markdown ? "|\n" : "");
        }
}

void trials_markdown(const struct trials *t, struct buf *out)
{
        add_table(t, true, out);
}

/* ---- below it */

static void add_histograms(const struct trials *t, struct buf *out)
{
        static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
        double low = INFINITY, high = -INFINITY;
        size_t longest = 0;

        for (size_t i = 0; i < t->config->n; i++) {
                const struct trials_side *s = &t->sides[i];

                longest = MAX(longest, MIN(width(str_of(s->name)), (size_t)NAME_WIDTH + 1));
                low = s->time.n ? MIN(low, s->time.min) : low;
                high = s->time.n ? MAX(high, s->time.max) : high;
        }
        if (!(high > low))
                return;
        buf_addc(out, '\n');
        for (size_t i = 0; i < t->config->n; i++) {
                _cleanup_(buf_done) struct buf name = BUF_INIT(1024);
                size_t counts[BINS], most = 1;

                if (!t->sides[i].time.n)
                        continue;
                stats_histogram(t->sides[i].times, t->sides[i].time.n, low, high, counts, BINS);
                for (int k = 0; k < BINS; k++)
                        most = MAX(most, counts[k]);
                add_name(&name, t->sides[i].name, false);
                add_padded(out, buf_str(&name), longest);
                buf_adds(out, "  ");
                trials_add_time(out, low);
                buf_adds(out, " │");
                for (int k = 0; k < BINS; k++)
                        buf_adds(out, bars[(counts[k] * 8 + most - 1) / most]);
                buf_adds(out, "│ ");
                trials_add_time(out, high);
                buf_addc(out, '\n');
        }
}

static void add_count(struct buf *out, size_t n, const char *one)
{
        buf_printf(out, "%zu %s%s", n, one, n == 1 ? "" : "s");
}

static void add_foot(const struct trials *t, struct buf *out)
{
        const struct trials_config *c = t->config;
        size_t mild = 0;
        unsigned runs = 0;

        for (size_t i = 0; i < c->n; i++) {
                mild += t->sides[i].time.outliers.mild;
                runs = MAX(runs, (unsigned)t->sides[i].runs.n);
        }
        buf_printf(out, "%u%s run%s%s", runs, c->n > 1 ? " interleaved" : "", runs == 1 ? "" : "s",
                   c->n > 1 ? " each" : "");
        if (c->warmup) {
                buf_adds(out, " after ");
                add_count(out, c->warmup, "warm-up");
        }
        if (mild) {
                buf_adds(out, " · ");
                add_count(out, mild, "mild outlier");
                buf_adds(out, " kept");
        }
        if (t->comparison.n && !isnan(t->comparison.noise_floor))
                buf_printf(out, " · noise floor of this machine %.1f %%", t->comparison.noise_floor * 100);
        if (t->interrupted)
                buf_printf(out, " · interrupted, %u were asked for", c->runs);
        buf_addc(out, '\n');
}

void trials_text(const struct trials *t, struct buf *out)
{
        add_table(t, false, out);
        add_foot(t, out);
        add_histograms(t, out);
        if (t->warnings.n)
                buf_addc(out, '\n');
        vec_foreach (w, &t->warnings)
                buf_printf(out, "warning: %s\n", *w);
}
