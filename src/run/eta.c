/*
 * Percentage, ETA, and whether a run moves.
 *
 * How the ETA comes about, in seconds from the last event:
 *
 *  1. Every phase of the plan has an expected cost and a spread (the standard deviation of its logarithm): from the history
 *     of the same shape; else from the design's typical durations; else the plan's weights, in an unknown unit.
 *  2. The pace is this run's seconds for one expected second (or unit). Each phase seen so far gives its own; they are
 *     averaged as logarithms, each by the inverse of its variance, together with "as expected" where seconds are expected.
 *     Phases that disagree make all spreads grow, those that agree shrink them. A phase passed fifty times faster than
 *     another was skipped (a checkpoint) and says nothing.
 *  3. The present phase, from its own steps: their mean, and a trend as far as it is clearer than noise, for each step that
 *     is left (fewer than announced, if the phases before ended before all that they announced). Its variance is that of
 *     the steps, of their mean and of the trend. Skipped steps, and a long first one (it loads a model), do not count.
 *  4. The same phase by its expected cost at the pace of the others. Both totals are averaged as in 2; an expectation that
 *     time has overtaken does not count.
 *  5. The phases to come: expected cost times pace.
 *  6. The sum has a mean and a standard deviation (the parts' errors have one cause, the pace, and add up). low and high are
 *     the ends of the 80 % range of a lognormal with that mean and deviation; no range is narrower than 5 % each way. mid is
 *     the mean, or half of the width where that is more: so the range is never wider than twice the remaining time.
 *
 * Nothing measured and no seconds expected: not known. How often the range holds the true end: test/data/runs/generate.py
 * says what it was measured on, `replay --table` measures it.
 */
#include "run/track.h"

#include <math.h>

#define STEP_CV        0.4 /* how much steps vary before three have been seen; it counts as two of them */
#define STEP_CV_COUNTS 2.0
#define TREND_CLEAR    1.5  /* a trend counts where it is so many standard errors */
#define TREND_DOUBT    0.3  /* and may be missed by this part of a step */
#define STEADY_DOUBT   0.1  /* what is left may differ from what was by this part in any case */
#define SPREAD_COUNTS  2.0  /* an expected spread counts as so many phases seen */
#define UNWEIGHTED     0.8  /* spread of phases of which nothing is known */
#define WEIGHTED       0.5  /* of those with weights */
#define TYPICAL_PACE   1.0  /* spread of this run's pace against the design's typical one */
#define TYPICAL_DOUBT  0.5  /* no run keeps the proportions of the design */
#define HISTORY_PACE   0.2  /* against the history's */
#define HISTORY_SPREAD 0.25 /* of a phase in the history, before several runs have told it */
#define SKIPPED        50.0
#define RANGE          1.2816 /* standard deviations that hold 80 % */
#define NARROWEST      0.05
#define CERTAIN        0.01 /* nothing is better known than to this part */
#define LEFT_MAX       3e8  /* seconds, ten years */

enum { FIRST_STEP_IS_LONG = 3 };

enum source { BY_HISTORY, BY_TYPICAL, BY_WEIGHT };

struct expect {
        double cost;   /* seconds, or the plan's unit; 0: it is not expected to come */
        double spread; /* of its logarithm */
};

struct model {
        const struct track *t;
        const struct run_plan *plan;
        usec_t at;
        enum source source;
        struct expect expect[RUN_PHASES_MAX];
};

/* A length of time: mean and standard deviation, seconds. */
struct span {
        double mean, sd;
};

/* The logarithm of the pace: mean, variance, and how much of it is this run's own. */
struct pace {
        bool known;
        double log, var, own;
        double doubt; /* factor on the spreads, by how far phases agree with each other */
};

static double square(double x)
{
        return x * x;
}

/* ---- what is expected */

static const struct prior_phase *find_prior(const struct priors *priors, const char *name)
{
        for (unsigned i = 0; priors && i < priors->n; i++)
                if (streq(priors->phases[i].name, name))
                        return &priors->phases[i];
        return NULL;
}

static struct expect expect_history(const struct prior_phase *p)
{
        double runs = p ? p->runs : 0, var;

        if (!p || !(p->mean > 0) || runs < 1)
                return (struct expect){0, 0};
        var = (SPREAD_COUNTS * square(HISTORY_SPREAD) + (runs - 1) * square(p->sd / p->mean)) /
              (SPREAD_COUNTS + runs - 1);
        return (struct expect){p->mean, sqrt(var * (1 + 1 / runs))};
}

/* The design's range is read as one that holds 80 %. */
static struct expect expect_typical(const struct run_phase *p)
{
        double range = log(p->typical_high / p->typical_low) / (2 * RANGE);

        return (struct expect){sqrt(p->typical_low * p->typical_high) * exp(square(range) / 2),
                               hypot(range, TYPICAL_DOUBT)};
}

static struct expect expect_weight(const struct run_plan *plan, const struct run_phase *p, bool by_steps)
{
        if (plan->weighted)
                return (struct expect){p->weight, WEIGHTED};
        return (struct expect){by_steps ? p->steps : 1, UNWEIGHTED};
}

static enum source source_of(const struct run_plan *plan, const struct priors *priors)
{
        bool typical = plan->n > 0;

        for (uint32_t i = 0; i < plan->n; i++) {
                const struct prior_phase *prior = find_prior(priors, plan->phases[i].name);

                if (prior && prior->mean > 0)
                        return BY_HISTORY;
                typical = typical && plan->phases[i].typical_low > 0 &&
                          plan->phases[i].typical_high >= plan->phases[i].typical_low;
        }
        return typical ? BY_TYPICAL : BY_WEIGHT;
}

static void expect_all(struct model *m, const struct priors *priors)
{
        bool by_steps = true;

        m->source = source_of(m->plan, priors);
        for (uint32_t i = 0; i < m->plan->n; i++)
                by_steps = by_steps && m->plan->phases[i].steps > 0;
        for (uint32_t i = 0; i < m->plan->n; i++) {
                const struct run_phase *p = &m->plan->phases[i];

                m->expect[i] = m->source == BY_HISTORY   ? expect_history(find_prior(priors, p->name))
                               : m->source == BY_TYPICAL ? expect_typical(p)
                                                         : expect_weight(m->plan, p, by_steps);
        }
}

/* How many phases of the plan are behind or under way: one more than the place of the furthest that was seen. */
static uint32_t places_seen(const struct model *m)
{
        uint32_t seen = 0;

        for (uint32_t i = 0; i < m->plan->n; i++)
                if (track_find(m->t, m->plan->phases[i].name))
                        seen = i + 1;
        return seen;
}

/* ---- the present phase, by its own steps */

/* A line through the durations of steps: at MIDDLE (counted in steps from the first) they take MEAN. */
struct line {
        double steps, middle, mean;
        double slope, slope_se; /* a step */
        double var;             /* of one step around the line */
};

static int compare(const void *x, const void *y)
{
        double a = *(const double *)x, b = *(const double *)y;

        return a < b ? -1 : a > b;
}

/* The middle of block I, in steps from the first. */
static double middle_of(const struct track_block *b, uint32_t i)
{
        double at = b[i].steps / 2.0;

        while (i--)
                at += b[i].steps;
        return at;
}

/* The median of the slopes between all pairs (Theil and Sen): one step that stalls, or loads a model, does not turn it. */
static double median_slope(const struct track_block *b, uint32_t n)
{
        double slopes[TRACK_BLOCKS_MAX * (TRACK_BLOCKS_MAX - 1) / 2];
        size_t pairs = 0;

        for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = i + 1; j < n; j++)
                        slopes[pairs++] = ((double)b[j].seconds / b[j].steps -
                                           (double)b[i].seconds / b[i].steps) /
                                          (middle_of(b, j) - middle_of(b, i));
        if (!pairs)
                return 0;
        qsort(slopes, pairs, sizeof(slopes[0]), compare);
        return (slopes[(pairs - 1) / 2] + slopes[pairs / 2]) / 2;
}

static struct line fit(const struct track_block *b, uint32_t n)
{
        struct line r = {.slope = median_slope(b, n), .slope_se = INFINITY};
        double sxx = 0, errors = 0, seconds = 0, clear;

        for (uint32_t i = 0; i < n; i++) {
                r.steps += b[i].steps;
                seconds += (double)b[i].seconds;
        }
        r.middle = r.steps / 2;
        r.mean = seconds / r.steps;
        for (uint32_t i = 0; i < n; i++) {
                double x = middle_of(b, i) - r.middle;

                sxx += b[i].steps * square(x);
                errors += b[i].steps * square((double)b[i].seconds / b[i].steps - r.mean - r.slope * x);
        }
        r.var = (STEP_CV_COUNTS * square(STEP_CV * r.mean) + errors) / (STEP_CV_COUNTS + MAX(n, 2u) - 2);
        if (sxx > 0)
                r.slope_se = sqrt(r.var / sxx);
        clear = r.slope != 0 ? 1 - square(TREND_CLEAR * r.slope_se / r.slope) : 0;
        r.slope *= MAX(clear, 0.0);
        return r;
}

/* The first block that counts: those before it were skipped (a checkpoint has them), or were a start. */
static uint32_t first_block(const struct track_phase *p)
{
        double others = 0, steps = 0;
        uint32_t from = 0;

        while (from + 1 < p->n_blocks &&
               SKIPPED * (double)p->blocks[from].seconds < (double)p->longest * p->blocks[from].steps)
                from++;
        for (uint32_t i = from + 1; i < p->n_blocks; i++) {
                others += (double)p->blocks[i].seconds;
                steps += p->blocks[i].steps;
        }
        if (p->n_blocks > from + 3 && p->blocks[from].steps == 1 &&
            (double)p->blocks[from].seconds > FIRST_STEP_IS_LONG * others / steps)
                from++;
        return from;
}

/*
 * The part of the announced steps that phases really went to, by those that have ended; a whole one counts beside them. A
 * sweep that stops at the first configuration that is too slow announces more than it does, and so will the next.
 */
static double part_done(const struct track *t)
{
        double sum = 1, n = 1;

        for (uint32_t i = 0; i < t->n; i++) {
                const struct track_phase *p = &t->phases[i];

                if (p->ended && p->total && p->done) {
                        sum += MIN((double)p->share + (t->says_ends ? 0 : 1.0 / p->total), 1.0);
                        n++;
                }
        }
        return sum / n;
}

/* Steps that have not ended, the one under way among them; and the standard deviation of their number. */
static struct span steps_left(const struct model *m, const struct track_phase *p)
{
        double total = p->total, part = part_done(m->t);
        double ended = p->step && !m->t->says_ends ? p->step - 1 : p->step;
        double all = MAX(total - ended, 0.0), some = MAX(total * part - ended, MIN(all, 1.0));

        return (struct span){some, (all - some) / 2};
}

/* What is left of P by the pace of its own steps. False: no step of it has ended, or nobody said how many there are. */
static bool left_by_steps(const struct model *m, const struct track_phase *p, struct span *ret)
{
        uint32_t from = first_block(p);
        struct span steps = steps_left(m, p);
        double left = steps.mean, ahead, step, trend, in_step = 0, var;
        struct line line;

        if (!p->n_blocks || !p->total || !(p->sum > 0))
                return false;
        line = fit(p->blocks + from, p->n_blocks - from);
        if (!(line.mean > 0))
                return false;
        ahead = line.steps + left / 2 - line.middle;
        step = MIN(MAX(line.mean + line.slope * ahead, line.mean / 4), line.mean * 4);
        if (p->step_began)
                in_step = (double)usec_sub(m->at, p->step_began) / (double)USEC_PER_SEC;
        trend = MAX(MIN(line.slope_se * ahead, TREND_DOUBT * line.mean), fabs(step - line.mean) / 2);
        var = line.var * left + square(left) * (line.var / line.steps + square(trend));
        /* What has passed of the step under way is not left; at least a tenth of it is. */
        ret->mean = MAX(left * step - MIN(in_step, 0.9 * step), 0.0);
        ret->sd = sqrt(var + square(STEADY_DOUBT * ret->mean) + square(steps.sd * step));
        return true;
}

/* ---- the pace */

struct sample {
        double log, var;
};

/* What each phase that is over says, and the present one if OWN (its total by its own steps) is there. */
static unsigned samples(const struct model *m, const struct span *own, struct sample out[RUN_PHASES_MAX])
{
        double fastest = -INFINITY;
        unsigned n = 0, kept = 0;

        for (uint32_t i = 0; i < m->plan->n; i++) {
                const struct track_phase *p = track_find(m->t, m->plan->phases[i].name);
                double seconds, var = square(m->expect[i].spread);

                if (!p || !(m->expect[i].cost > 0) || (!p->ended && !own))
                        continue;
                seconds = p->ended ? track_phase_seconds(p, m->at) : own->mean;
                if (!p->ended)
                        var += square(own->sd / own->mean);
                if (!(seconds > 0))
                        continue;
                out[n] = (struct sample){log(seconds / m->expect[i].cost), var};
                fastest = MAX(fastest, out[n].log);
                n++;
        }
        for (unsigned i = 0; i < n; i++)
                if (out[i].log >= fastest - log(SKIPPED))
                        out[kept++] = out[i];
        return kept;
}

static struct pace pace_of(const struct model *m, const struct span *own)
{
        struct sample s[RUN_PHASES_MAX];
        unsigned n = samples(m, own, s);
        double usual = m->source == BY_HISTORY ? HISTORY_PACE : TYPICAL_PACE;
        double weights = 0, sum = 0, chi = 0, before = 0;
        struct pace r = {.doubt = 1};

        for (unsigned i = 0; i < n; i++) {
                weights += 1 / s[i].var;
                sum += s[i].log / s[i].var;
        }
        /* "As expected" counts the less the further this run is from it. */
        if (m->source != BY_WEIGHT)
                before = 1 / (square(usual) + (n ? square(sum / weights) : 0));
        weights += before;
        if (!(weights > 0))
                return r;
        r.known = true;
        r.log = sum / weights;
        r.own = 1 - before / weights;
        for (unsigned i = 0; i < n; i++)
                chi += square(s[i].log - r.log) / s[i].var;
        if (n > 1)
                r.doubt = sqrt((SPREAD_COUNTS + chi) / (SPREAD_COUNTS + n - 1));
        r.var = square(r.doubt) / weights;
        return r;
}

/* ---- the parts and their sum */

/* The total of the present phase: by its own steps (OWN; NULL: none), by what is expected, or by both. */
static bool present_total(const struct model *m, const struct track_phase *p, const struct span *own,
                          struct span *ret, double *ret_own)
{
        int number = run_phase_number(m->plan, p->name);
        const struct expect *e = number >= 1 && (uint32_t)number <= m->plan->n ? &m->expect[number - 1]
                                                                               : NULL;
        double spent = track_phase_seconds(p, m->at), total, var, weight, own_weight;
        struct pace pace = pace_of(m, NULL);

        *ret_own = 1;
        if (own)
                *ret = *own;
        if (!e || !(e->cost > 0) || !pace.known)
                return own != NULL;
        total = e->cost * exp(pace.log);
        var = square(e->spread * pace.doubt) + pace.var;
        if (total <= spent) { /* overtaken by time */
                if (!own)
                        *ret = (struct span){spent * (1 + sqrt(var) / 2), spent * sqrt(var) / 2};
                return true;
        }
        if (!own) {
                *ret = (struct span){total, total * sqrt(var)};
                *ret_own = pace.own;
                return true;
        }
        weight = 1 / var;
        own_weight = 1 / square(own->sd / own->mean);
        total = exp((log(total) * weight + log(own->mean) * own_weight) / (weight + own_weight));
        *ret = (struct span){total, total / sqrt(weight + own_weight)};
        *ret_own = (own_weight + weight * pace.own) / (weight + own_weight);
        return true;
}

/* The phases after the furthest that was seen. False: they cannot be told. */
static bool still_to_come(const struct model *m, const struct pace *pace, struct span *ret)
{
        double sum = 0, var = 0, scale = exp(pace->log);

        for (uint32_t i = places_seen(m); i < m->plan->n; i++) {
                double cost = m->expect[i].cost * scale;

                sum += cost;
                var += square(cost * m->expect[i].spread * pace->doubt);
        }
        *ret = (struct span){sum, sqrt(var + square(sum) * pace->var)};
        return sum == 0 || pace->known;
}

/* Seconds after m->at. */
static void set_range(const struct model *m, struct span left, struct eta *ret)
{
        double spread = MAX(sqrt(log1p(square(left.sd / left.mean))), NARROWEST / RANGE);
        double middle = log(left.mean) - square(spread) / 2;
        double low = exp(middle - RANGE * spread), high = exp(middle + RANGE * spread);
        double mid = MIN(MAX(left.mean, (high - low) / 2), high);

        if (!(high < LEFT_MAX))
                return;
        ret->known = true;
        ret->low = m->at + (usec_t)(low * (double)USEC_PER_SEC);
        ret->mid = m->at + (usec_t)(mid * (double)USEC_PER_SEC) + 1; /* rounding never makes it too wide */
        ret->high = MAX(m->at + (usec_t)(high * (double)USEC_PER_SEC), ret->mid);
}

/* A phase that nobody announced is a plan by itself, and is none any more once the run has ended (run_status_plan()). */
static bool is_unplanned(const struct model *m)
{
        return m->plan->n == 1 || (m->t->ended && m->source == BY_TYPICAL);
}

static void estimate(const struct model *m, struct eta *ret)
{
        static const char *const names[] = {"history", "typical", "pace"};
        const struct track_phase *p = track_present(m->t);
        struct span own = {0, 0}, total, come;
        double own_share = 1, spent, left;
        struct pace pace;
        bool has_own;

        if (!p || m->t->ended || (is_unplanned(m) && m->t->n > 1))
                return;
        spent = track_phase_seconds(p, m->at);
        has_own = left_by_steps(m, p, &own);
        own.mean += spent;
        own.sd = MAX(own.sd, CERTAIN * own.mean);
        if (has_own && !(own.mean > 0))
                return;
        if (!present_total(m, p, has_own ? &own : NULL, &total, &own_share))
                return;
        pace = pace_of(m, has_own ? &own : NULL);
        if (!still_to_come(m, &pace, &come))
                return;
        left = MAX(total.mean - spent, 0.0);
        if (!(left + come.mean > 0))
                return;
        own_share = (own_share * left + pace.own * come.mean) / (left + come.mean);
        ret->basis = own_share > 0.5 ? "pace" : names[m->source];
        set_range(m, (struct span){left + come.mean, total.sd + come.sd}, ret);
}

/* ---- percentage */

/* The furthest of the phases that the plan does not have: all there is to say of a run without a plan. */
static double share_outside(const struct model *m)
{
        double share = 0;

        for (uint32_t i = 0; i < m->t->n; i++)
                if (!run_phase_number(m->plan, m->t->phases[i].name))
                        share = MAX(share, (double)m->t->phases[i].share);
        return share;
}

static double percent_of(const struct model *m)
{
        const struct track *t = m->t;
        uint32_t seen = places_seen(m);
        double sum = 0, done = 0, percent;

        if (t->complete)
                return 100;
        /* All before the furthest are done, it is as far as it was: neither takes anything back when a run goes back. */
        for (uint32_t i = 0; i < m->plan->n; i++) {
                const struct track_phase *p = track_find(t, m->plan->phases[i].name);

                sum += m->expect[i].cost;
                if (i < seen)
                        done += m->expect[i].cost * (i + 1 < seen || !p ? 1 : (double)p->share);
        }
        percent = sum > 0 ? 100 * done / sum : 0;
        if (is_unplanned(m))
                percent = MAX(percent, 100 * share_outside(m));
        /* A thousandth of a percent makes up for shares that are not exact in binary. */
        return MIN(floor(MAX(percent, t->percent) * 10 + 0.01) / 10, 99.9);
}

/* ---- moving */

static double patience(const struct model *m, const struct priors *priors)
{
        const struct track_phase *p = track_present(m->t);
        const struct prior_phase *prior = p ? find_prior(priors, p->name) : NULL;
        int number = p ? run_phase_number(m->plan, p->name) : 0;

        if (p && p->done)
                return MAX(5 * (double)p->longest, prior ? 3 * prior->step_mean : 0.0);
        if (prior)
                return 3 * prior->mean;
        if (number >= 1 && (uint32_t)number <= m->plan->n && m->plan->phases[number - 1].typical_high > 0)
                return 2 * m->plan->phases[number - 1].typical_high;
        return 30 * 60;
}

void track_progress(const struct track *t, const struct run_plan *plan, const struct priors *priors,
                    usec_t now, struct progress *ret)
{
        struct model m = {.t = t, .plan = plan, .at = t->moved};
        double seconds;

        *ret = (struct progress){.moving = true};
        expect_all(&m, priors);
        ret->percent = percent_of(&m);
        if (t->ended || !t->started)
                return;
        estimate(&m, &ret->eta);
        seconds = MIN(MAX(patience(&m, priors), 5.0 * 60), LEFT_MAX);
        ret->not_moving_at = usec_add(t->moved, (usec_t)(seconds * (double)USEC_PER_SEC));
        ret->moving = now < ret->not_moving_at;
}
