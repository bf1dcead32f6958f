#include "stats/compare.h"

#include <math.h>

#include "stats/compare_internal.h"
#include "stats/describe.h"
#include "stats/internal.h"
#include "stats/random.h"
#include "stats/tests.h"

enum { RESAMPLES = 10000, HALVINGS = 500, HALVES_LEAST = 4, LOW_POWER = 80 };
static const double ALPHA = 0.05, MIN_EFFECT = 0.02, MAD_TO_SD = 1.4826;

static bool side_is_fit(const struct stats_side *s)
{
        for (size_t i = 0; i < s->n; i++)
                if (!stats_positive(&s->samples[i].value, 1))
                        return false;
        return s->n > 0;
}

static int by_pod(const void *a, const void *b)
{
        uint32_t x = ((const struct stats_sample *)a)->pod, y = ((const struct stats_sample *)b)->pod;

        return (x > y) - (x < y);
}

static size_t count_pods(const struct stats_compare *c)
{
        VEC(struct stats_sample) all = {0};
        size_t pods = 0;

        for (size_t i = 0; i < c->n_sides; i++)
                for (size_t j = 0; j < c->sides[i].n; j++)
                        *vec_push(&all) = c->sides[i].samples[j];
        if (all.n)
                qsort(all.v, all.n, sizeof(*all.v), by_pod);
        for (size_t i = 0; i < all.n; i++)
                pods += !i || all.v[i].pod != all.v[i - 1].pod;
        vec_done(&all);
        return pods;
}

struct stats_sample *stats_pod_medians(struct arena *arena, const struct stats_sample *samples, size_t n,
                                       size_t *ret_n)
{
        struct stats_sample *sorted = arena_memdup(arena, samples, n * sizeof(*sorted));
        _cleanup_(free_ptr) double *values = xcalloc(MAX(n, (size_t)1), sizeof(*values));
        size_t pods = 0;

        if (n)
                qsort(sorted, n, sizeof(*sorted), by_pod);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i; end < n && sorted[end].pod == sorted[i].pod; end++)
                        values[end - i] = sorted[end].value;
                sorted[pods++] = (struct stats_sample){stats_median(values, end - i), sorted[i].pod, 0};
        }
        *ret_n = pods;
        return sorted;
}

/* With the pods' medians as their values. One that is not fit has no medians, and stays as it is. */
static const struct stats_side *sides_by_pod(struct arena *arena, const struct stats_compare *c)
{
        struct stats_side *sides = arena_memdup(arena, c->sides, c->n_sides * sizeof(*sides));

        for (size_t i = 0; i < c->n_sides; i++)
                if (side_is_fit(&sides[i]))
                        sides[i].samples = stats_pod_medians(arena, sides[i].samples, sides[i].n,
                                                             &sides[i].n);
        return sides;
}

static void take_units(struct arena *arena, const struct stats_side *side, struct one *ret)
{
        _cleanup_(free_ptr) double *values = xcalloc(side->n, sizeof(*values));

        ret->units = arena_new_array(arena, double, side->n);
        ret->n = side->n;
        for (size_t i = 0; i < side->n; i++)
                values[i] = ret->units[i] = side->samples[i].value;
        ret->median = stats_median(values, side->n);
}

/* How far logarithms scatter, whatever a few of them do. */
static double find_sigma(const double *units, size_t n)
{
        _cleanup_(free_ptr) double *logs = xcalloc(MAX(n, (size_t)1), sizeof(*logs));
        struct stats_description d;

        for (size_t i = 0; i < n; i++)
                logs[i] = log(units[i]);
        if (n < 2 || !stats_describe(logs, n, &d))
                return NAN;
        return d.mad > 0 ? d.mad * MAD_TO_SD : d.sd;
}

/* The logarithm of the ratio of the medians of two halves, drawn at random out of SORTED logarithms. */
static double halve(const double *sorted, size_t n, size_t *order, double *halves, struct rng *rng)
{
        size_t half = n / 2, first = 0, second = 0;

        stats_shuffle(rng, order, n);
        for (size_t i = 0; i < n; i++) /* in order, and the last one of an odd number is left out */
                if (order[i] < half)
                        halves[first++] = sorted[i];
                else if (order[i] < 2 * half)
                        halves[half + second++] = sorted[i];
        return (halves[half / 2] + halves[(half - 1) / 2] - halves[half + half / 2] -
                halves[half + (half - 1) / 2]) /
               2;
}

/* What two of the same differ by: 95 % of halvings stay below. NAN: too few to halve. */
static double find_floor(const double *units, size_t n, struct rng *rng)
{
        _cleanup_(free_ptr) double *logs = NULL, *off = NULL;
        _cleanup_(free_ptr) size_t *order = NULL;

        if (n < HALVES_LEAST)
                return NAN;
        logs = xcalloc(2 * n, sizeof(*logs));
        order = xcalloc(n, sizeof(*order));
        off = xcalloc(HALVINGS, sizeof(*off));
        for (size_t i = 0; i < n; i++)
                logs[i] = log(units[i]);
        stats_sort(logs, n);
        for (size_t i = 0; i < HALVINGS; i++)
                off[i] = fabs(halve(logs, n, order, logs + n, rng));
        return stats_nearest_rank(off, HALVINGS, 95) / M_SQRT2;
}

/* Medians of all resamples; sides share the blocks drawn unless they were measured separately. */
static void resample(const struct stats_compare *c, struct one *ones, double *medians)
{
        _cleanup_(free_ptr) const struct stats_side **fit = xcalloc(c->n_sides, sizeof(*fit));
        size_t n = 0;
        struct rng rng;

        for (size_t i = 0; i < c->n_sides; i++)
                if (ones[i].fit) {
                        ones[i].resampled = medians + n * c->resamples;
                        fit[n++] = &c->sides[i];
                }
        if (c->separate) {
                for (size_t i = 0; i < n; i++) {
                        stats_seed(&rng, c->seed, i + 1);
                        bootstrap_medians(&fit[i], 1, &rng, c->resamples, medians + i * c->resamples);
                }
        } else if (n) {
                stats_seed(&rng, c->seed, 0);
                bootstrap_medians(fit, n, &rng, c->resamples, medians);
        }
}

static void find_interval(const struct stats_compare *c, const struct one *a, const struct one *b,
                          struct stats_pair *p)
{
        _cleanup_(free_ptr) double *ratios = xcalloc(c->resamples, sizeof(*ratios));
        size_t n = 0;

        if (MIN(a->n, b->n) < 2) /* drawn from one, all are that one: that is not certainty */
                return;
        for (size_t i = 0; i < c->resamples; i++)
                if (!isnan(a->resampled[i]) && !isnan(b->resampled[i]))
                        ratios[n++] = a->resampled[i] / b->resampled[i];
        p->low = stats_nearest_rank(ratios, n, 2.5);
        p->high = stats_nearest_rank(ratios, n, 97.5);
}

static void measure_pair(const struct stats_compare *c, const struct one *ones, struct stats_pair *p)
{
        const struct one *a = &ones[p->a], *b = &ones[p->b];

        p->ratio = p->low = p->high = p->p = p->p_adjusted = p->effect = p->shift = p->floor = NAN;
        p->n_a = a->n;
        p->n_b = b->n;
        if (!a->fit || !b->fit)
                return;
        p->ratio = a->median / b->median;
        p->p = stats_u_test(a->units, a->n, b->units, b->n).p;
        p->effect = stats_cliff(a->units, a->n, b->units, b->n);
        p->shift = stats_shift(a->units, a->n, b->units, b->n);
        p->floor = expm1(sqrt((a->floor * a->floor + b->floor * b->floor) / 2));
        find_interval(c, a, b, p);
}

static bool accuracies_differ(const struct stats_compare *c, const struct stats_pair *p)
{
        return c->accuracy_tolerance > 0 &&
               fabs(c->sides[p->a].accuracy - c->sides[p->b].accuracy) > c->accuracy_tolerance;
}

/* How far it may be from its value to the END of its interval by chance. */
static double accuracy_reach(const struct stats_side *s, double end)
{
        return s->accuracy_ci.method == STATS_TOO_FEW ? 0 : fabs(s->accuracy - end);
}

static bool is_more_accurate(const struct stats_compare *c, const struct stats_side *s,
                             const struct stats_side *than)
{
        double chance = hypot(accuracy_reach(s, s->accuracy_ci.low),
                              accuracy_reach(than, than->accuracy_ci.high));

        return s->accuracy - than->accuracy > (c->accuracy_tolerance > 0 ? c->accuracy_tolerance : chance);
}

static size_t find_more_accurate(const struct stats_compare *c, const struct one *ones, size_t best)
{
        size_t found = SIZE_MAX;

        for (size_t i = 0; i < c->n_sides && best != SIZE_MAX; i++)
                if (ones[i].fit && !c->sides[i].unfit && is_more_accurate(c, &c->sides[i], &c->sides[best]) &&
                    (found == SIZE_MAX || c->sides[i].accuracy > c->sides[found].accuracy))
                        found = i;
        return found;
}

static bool may_compare(const struct stats_compare *c, const struct one *ones, const struct stats_pair *p)
{
        return ones[p->a].fit && ones[p->b].fit && !c->sides[p->a].unfit && !c->sides[p->b].unfit &&
               !accuracies_differ(c, p);
}

static void correct(struct stats_comparison *k, const bool *may, size_t family)
{
        _cleanup_(free_ptr) double *p = xcalloc(k->n, sizeof(*p));
        size_t n = 0;

        for (size_t i = 0; i < k->n; i++)
                if (may[i])
                        p[n++] = k->pairs[i].p;
        stats_holm(p, n, family);
        for (size_t i = k->n; i-- > 0;)
                if (may[i])
                        k->pairs[i].p_adjusted = p[--n];
}

size_t stats_needed(double ratio, double sigma, double alpha, size_t pairs)
{
        double level = alpha / (double)MAX(pairs, (size_t)1), z, n;
        size_t least = 2;

        if (!(level > 0) || !(level < 1))
                return STATS_NEEDED_MAX;
        while (least < STATS_NEEDED_MAX && stats_u_least_p(least, least) >= level)
                least++;
        if (!(sigma > 0) || !(ratio > 0))
                return least;
        z = -dist_normal_quantile(level / 2) + dist_normal_quantile(LOW_POWER / 100.0);
        /* The variance of a median is pi/2 of a mean's. */
        n = ceil(M_PI * sigma * sigma * z * z / (log(ratio) * log(ratio)));
        return n < STATS_NEEDED_MAX ? MAX((size_t)n, least) : STATS_NEEDED_MAX;
}

static size_t needed(const struct judging *j, const struct stats_pair *p)
{
        const struct one *a = &j->ones[p->a], *b = &j->ones[p->b];
        double sigma = sqrt((a->sigma * a->sigma + b->sigma * b->sigma) / 2);
        double ratio = fabs(p->ratio - 1) >= j->c.min_effect ? p->ratio : 1 + j->c.min_effect;

        return MIN(MAX(stats_needed(ratio, sigma, j->c.alpha, j->family), MIN(a->n, b->n) + 1),
                   (size_t)STATS_NEEDED_MAX);
}

static void judge(struct judging *j, struct stats_pair *p)
{
        double off = fabs(p->ratio - 1);
        bool significant, clear;

        if (stats_u_least_p(p->n_a, p->n_b) * (double)j->family >= j->c.alpha) {
                p->verdict = STATS_INCONCLUSIVE;
                p->needed = needed(j, p);
                p->why = compare_why_too_few(j, p);
                return;
        }
        significant = p->p_adjusted < j->c.alpha;
        clear = p->low > 1 || p->high < 1;
        if (significant && clear && off >= j->c.min_effect && !(fabs(log(p->ratio)) < log1p(p->floor))) {
                p->verdict = p->ratio < 1 ? STATS_LESS : STATS_MORE;
                p->why = compare_why_differs(j, p);
        } else if (off >= j->c.min_effect || p->high - 1 > WIDE * j->c.min_effect ||
                   1 - p->low > WIDE * j->c.min_effect) {
                p->verdict = STATS_INCONCLUSIVE;
                p->needed = needed(j, p);
                p->why = compare_why_noise(j, p, significant && clear);
        } else {
                p->verdict = STATS_SAME;
                p->why = compare_why_same(j, p, significant && clear);
        }
}

static void add_pairs(struct arena *arena, const struct stats_compare *c, struct stats_comparison *k)
{
        size_t n = c->n_sides;

        k->pairs = arena_new_array(arena, struct stats_pair, 2 * n);
        for (size_t i = 0; i < n; i++)
                if (i != c->baseline)
                        k->pairs[k->n++] = (struct stats_pair){.a = i, .b = c->baseline};
        for (size_t i = 0; i < n && k->best != SIZE_MAX && k->best != c->baseline; i++)
                if (i != c->baseline && i != k->best)
                        k->pairs[k->n++] = (struct stats_pair){.a = k->best, .b = i};
}

/* Of what is known of each side alone. Returns how many may be compared. */
static size_t look_at_sides(struct judging *j, struct stats_comparison *k)
{
        const struct stats_compare *c = &j->c;
        size_t fit = 0;

        k->best = SIZE_MAX;
        for (size_t i = 0; i < c->n_sides; i++) {
                struct one *o = &j->ones[i];
                struct rng rng;

                stats_seed(&rng, c->seed, UINT64_MAX - i);
                o->fit = side_is_fit(&c->sides[i]);
                if (!o->fit)
                        continue;
                take_units(j->arena, &c->sides[i], o);
                o->sigma = find_sigma(o->units, o->n);
                o->floor = find_floor(o->units, o->n, &rng);
                if (c->sides[i].unfit)
                        continue;
                fit++;
                if (k->best == SIZE_MAX || o->median < j->ones[k->best].median)
                        k->best = i;
        }
        return fit;
}

static bool is_clear(const struct stats_compare *c, const struct stats_comparison *k)
{
        bool any = false;

        for (size_t i = 0; i < k->n; i++) {
                const struct stats_pair *p = &k->pairs[i];
                bool fit = c->sides[p->a].unfit == NULL && c->sides[p->b].unfit == NULL && !isnan(p->ratio);

                if (!fit || (p->a != k->best && p->b != k->best))
                        continue;
                if (p->verdict != (p->a == k->best ? STATS_LESS : STATS_MORE))
                        return false;
                any = true;
        }
        return any;
}

void stats_compare(struct arena *arena, const struct stats_compare *c, struct stats_comparison *ret)
{
        struct judging j = {.arena = arena, .c = *c, .result = ret};
        _cleanup_(free_ptr) double *medians = NULL;
        bool *may;
        size_t fit;

        *ret = (struct stats_comparison){.noise_floor = NAN, .best = SIZE_MAX, .more_accurate = SIZE_MAX};
        j.c.alpha = c->alpha > 0 && c->alpha < 1 ? c->alpha : ALPHA;
        j.c.min_effect = c->min_effect > 0 && c->min_effect < 1 ? c->min_effect : MIN_EFFECT;
        j.c.baseline = c->baseline < c->n_sides ? c->baseline : 0;
        j.c.resamples = c->resamples ? c->resamples : RESAMPLES;
        j.ones = arena_new_array(arena, struct one, MAX(c->n_sides, (size_t)1));
        ret->pods = count_pods(c);
        ret->by_pod = c->by_pod || ret->pods > 1;
        if (ret->by_pod)
                j.c.sides = sides_by_pod(arena, c);
        fit = look_at_sides(&j, ret);
        add_pairs(arena, &j.c, ret);
        medians = xcalloc(MAX(c->n_sides * j.c.resamples, (size_t)1), sizeof(*medians));
        resample(&j.c, j.ones, medians);
        may = arena_new_array(arena, bool, MAX(ret->n, (size_t)1));
        for (size_t i = 0; i < ret->n; i++) {
                measure_pair(&j.c, j.ones, &ret->pairs[i]);
                may[i] = may_compare(c, j.ones, &ret->pairs[i]);
        }
        j.family = fit > 1 ? fit * (fit - 1) / 2 : 1;
        correct(ret, may, j.family);
        for (size_t i = 0; i < ret->n; i++) {
                struct stats_pair *p = &ret->pairs[i];

                if (may[i]) {
                        judge(&j, p);
                        ret->noise_floor = fmax(ret->noise_floor, p->floor);
                } else {
                        p->verdict = STATS_NOT_COMPARABLE;
                        p->why = compare_why_not(&j, p);
                }
        }
        j.clear = is_clear(c, ret);
        ret->more_accurate = find_more_accurate(c, j.ones, ret->best);
        ret->best_is_clear = j.clear && ret->more_accurate == SIZE_MAX;
        ret->summary = compare_summary(&j);
}
