#include "stats/change.h"

#include <math.h>

#include "stats/describe.h"
#include "stats/internal.h"

enum { REACH = 3 }; /* neighbours on each side */

/*
 * LIMIT: how sure a cut must be, as a normal deviate. One is looked for at every place and again with every run, so
 * that it is far above the 1.6 of a single test; bench-stats tells the false alarms that are left and how soon a change
 * is found. SPIKE: how many deviations from its neighbours make a point say nothing of a level.
 */
static const double MIN_CHANGE = 0.02, MAD_TO_SD = 1.4826, LIMIT = 3.6, SPIKE = 5, INSIDE = 0.9, SAME = 1e-9,
                    DRIFT_MOST = 0.5;

struct series {
        double y[STATS_CHANGE_POINTS];  /* logarithms, of all that are no spikes */
        size_t at[STATS_CHANGE_POINTS]; /* where each is in the values given */
        size_t n;
        double limit; /* of a cut */
        /* Where pieces begin, in order, and at last n. */
        size_t cuts[STATS_CHANGE_POINTS / STATS_CHANGE_LEAST + 2];
        size_t n_cuts;
};

/* Takes what is far off its neighbours out: such a point says nothing of a level, and several of them hide a change. */
static void take(struct series *s, const double *values, size_t n)
{
        double y[STATS_CHANGE_POINTS], off[STATS_CHANGE_POINTS], sizes[STATS_CHANGE_POINTS], scale;

        for (size_t i = 0; i < n; i++)
                y[i] = log(values[i]);
        for (size_t i = 0; i < n; i++) {
                double near[2 * REACH + 1];
                size_t from = i > REACH ? i - REACH : 0, to = MIN(i + REACH + 1, n);

                memcpy(near, y + from, (to - from) * sizeof(*near));
                off[i] = fabs(y[i] - stats_median(near, to - from));
        }
        memcpy(sizes, off, n * sizeof(*off));
        scale = stats_median(sizes, n) * MAD_TO_SD;
        for (size_t i = 0; i < n; i++)
                if (off[i] <= MAX(SPIKE * scale, SAME)) {
                        s->at[s->n] = i;
                        s->y[s->n++] = y[i];
                }
}

/* The deviate of a normal distribution that is as rare as Z of a rank sum over N values; Student's t of ranks is
 * closer to the truth than Z where one side is short. */
static double deviate(double z, double n)
{
        double t2 = z * z * (n - 2) / MAX(n - 1 - z * z, 1e-9), df = n - 2;

        return sqrt(df * log1p(t2 / df)) * (8 * df + 1) / (8 * df + 3);
}

/* A part that lies apart from the rest of its piece, and how sure that is. */
struct part {
        size_t from, to;
        double sure;
};

/*
 * The part of [FROM, TO) that differs most from the rest: one that reaches to its end or, with INSIDE, one that does
 * not. SURE is 0 when there is none.
 */
static struct part odd_part(const struct series *s, size_t from, size_t to, bool inside)
{
        size_t n = to - from, first = from ? STATS_CHANGE_LEAST : STATS_CHANGE_BASELINE;
        double ranks[STATS_CHANGE_POINTS], sums[STATS_CHANGE_POINTS + 1] = {0}, all = (double)n, squares = 0;
        double best = 0;
        struct part ret = {0};

        stats_ranks(s->y + from, n, ranks);
        for (size_t i = 0; i < n; i++) {
                double off = ranks[i] - (all + 1) / 2;

                sums[i + 1] = sums[i] + off;
                squares += off * off;
        }
        for (size_t i = first; i + STATS_CHANGE_LEAST <= n; i++)
                for (size_t k = inside ? i + STATS_CHANGE_LEAST : n;
                     k <= (inside ? n - STATS_CHANGE_LEAST : n); k++) {
                        double off = sums[k] - sums[i], length = (double)(k - i);
                        double score = off * off / (length * (all - length));

                        if (score > best) {
                                best = score;
                                ret.from = from + i;
                                ret.to = from + k;
                        }
                }
        if (best > 0)
                ret.sure = deviate(sqrt(best * all * (all - 1) / squares), all);
        return ret;
}

/* Cuts [FROM, TO) for as long as its parts differ. */
static void cut(struct series *s, size_t from, size_t to)
{
        struct part p;

        if (to - from < 2 * STATS_CHANGE_LEAST)
                return;
        p = odd_part(s, from, to, false);
        if (p.sure < s->limit) {
                p = odd_part(s, from, to, true);
                if (p.sure < s->limit + INSIDE)
                        return;
        }
        cut(s, from, p.from);
        s->cuts[s->n_cuts++] = p.from;
        cut(s, p.from, p.to);
        if (p.to == to)
                return;
        s->cuts[s->n_cuts++] = p.to;
        cut(s, p.to, to);
}

static double level(const struct series *s, size_t from, size_t to)
{
        double part[STATS_CHANGE_POINTS];

        memcpy(part, s->y + from, (to - from) * sizeof(*part));
        return stats_median(part, to - from);
}

/* The median distance of both parts from their own medians, as a deviation. */
static double scatter(const struct series *s, size_t from, size_t middle, size_t bad, size_t to)
{
        double good_level = level(s, from, middle), bad_level = level(s, bad, to);
        double off[STATS_CHANGE_POINTS];
        size_t n = 0;

        for (size_t i = from; i < middle; i++)
                off[n++] = fabs(s->y[i] - good_level);
        for (size_t i = bad; i < to; i++)
                off[n++] = fabs(s->y[i] - bad_level);
        return stats_median(off, n) * MAD_TO_SD;
}

/* How much surer a cut must be since runs resemble the one before them: a machine that is slow for a while is no
 * change. Only what is more than chance gives is counted. */
static double drift_factor(const struct series *s)
{
        double own = 0, next = 0, before = 0, r;

        for (size_t i = 0; i + 1 < s->n_cuts; i++) {
                double middle = level(s, s->cuts[i], s->cuts[i + 1]);

                for (size_t k = s->cuts[i]; k < s->cuts[i + 1]; k++) {
                        double off = s->y[k] - middle;

                        own += off * off;
                        next += off * before;
                        before = off;
                }
        }
        r = own > 0 ? MIN(next / own - 1 / sqrt((double)s->n), DRIFT_MOST) : 0;
        return r > 0 ? sqrt((1 + r) / (1 - r)) : 1;
}

static void find_cuts(struct series *s, double limit)
{
        s->limit = limit;
        s->n_cuts = 0;
        s->cuts[s->n_cuts++] = 0;
        cut(s, 0, s->n);
        s->cuts[s->n_cuts++] = s->n;
}

struct walk {
        size_t good_from, good_to, bad_from; /* bad_from 0: all is well */
        double good;
};

static void step(struct walk *w, const struct series *s, size_t from, size_t to, double least)
{
        double here = level(s, from, to);

        if (here - w->good >= least) {
                w->bad_from = w->bad_from ? w->bad_from : from;
                return;
        }
        w->bad_from = 0;
        if (w->good - here >= least && to - from >= STATS_CHANGE_BASELINE)
                *w = (struct walk){from, to, 0, here};
}

/* False, and nothing told: the change may be smaller than what counts. */
static bool tell(const struct walk *w, const struct series *s, double least, struct stats_change *ret)
{
        size_t bad = w->bad_from, n_good = w->good_to - w->good_from, n_bad = s->n - bad;
        double off = level(s, bad, s->n) - w->good;
        double error = scatter(s, w->good_from, w->good_to, bad, s->n) *
                       sqrt(M_PI / 2 * (1 / (double)n_good + 1 / (double)n_bad)) *
                       dist_t_limit(0.05, (double)(n_good + n_bad - 2));

        if (off - error < least)
                return false;
        *ret = (struct stats_change){.degraded = true,
                                     .before = exp(w->good),
                                     .after = exp(w->good + off),
                                     .ratio = exp(off),
                                     .low = exp(off - error),
                                     .high = exp(off + error)};
        return true;
}

/* Where the bad level really begins: ranks leave the place of a cut open by a run or two. */
static size_t first_bad(const struct walk *w, const struct series *s)
{
        double middle = (w->good + level(s, w->bad_from, s->n)) / 2;
        size_t i = w->bad_from;

        while (i + 1 < s->n && i < w->bad_from + STATS_CHANGE_LEAST && s->y[i] < middle)
                i++;
        return i;
}

bool stats_change(const double *values, size_t n, double min_change, struct stats_change *ret)
{
        size_t skipped = n > STATS_CHANGE_POINTS ? n - STATS_CHANGE_POINTS : 0;
        double least = log1p(min_change > 0 && min_change < 1e6 ? min_change : MIN_CHANGE);
        struct series s = {.n = 0};
        struct walk w;

        *ret = (struct stats_change){.before = NAN, .after = NAN, .ratio = NAN, .low = NAN, .high = NAN};
        if (skipped)
                values += skipped;
        if (!stats_positive(values, n - skipped))
                return false;
        take(&s, values, n - skipped);
        if (s.n < STATS_CHANGE_BASELINE + STATS_CHANGE_LEAST)
                return true;
        find_cuts(&s, LIMIT);
        find_cuts(&s, LIMIT * drift_factor(&s));
        w = (struct walk){0, s.cuts[1], 0, level(&s, 0, s.cuts[1])};
        for (size_t i = 1; i + 1 < s.n_cuts; i++)
                step(&w, &s, s.cuts[i], s.cuts[i + 1], least);
        if (w.bad_from && tell(&w, &s, least, ret)) {
                ret->first_bad = skipped + s.at[first_bad(&w, &s)];
                ret->good_from = skipped + s.at[w.good_from];
        }
        return true;
}
