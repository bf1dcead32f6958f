#include <math.h>
#include <stdio.h>

#include "stats/compare_internal.h"
#include "stats/pareto.h"

enum { NAMED_MAX = 8, NAMES_BYTES_MAX = 4096 };

static const char *const words[STATS_MEASURES_][STATS_VERDICTS_] = {
        [STATS_TIME] = {"faster", "slower", "no detectable difference", "inconclusive", "not comparable"},
        [STATS_MEMORY] = {"smaller", "larger", "no detectable difference", "inconclusive", "not comparable"},
};

const char *stats_verdict_word(enum stats_verdict verdict, enum stats_measure measure)
{
        return words[measure][verdict];
}

static const char *units(const struct judging *j)
{
        return j->result->by_pod ? "pods" : "runs";
}

static const char *more(const struct judging *j, const struct stats_pair *p)
{
        if (p->needed >= STATS_NEEDED_MAX)
                return arena_printf(j->arena, "even %d %s of each might not decide it", STATS_NEEDED_MAX,
                                    units(j));
        /* How far one scatters is not known: this many may decide, fewer cannot. */
        if (isnan(j->ones[p->a].sigma) || isnan(j->ones[p->b].sigma))
                return arena_printf(j->arena, "at least %zu %s of each are needed", p->needed, units(j));
        return arena_printf(j->arena, "about %zu %s of each would decide it", p->needed, units(j));
}

/* "+1.9 %" of 1.019. */
static const char *signed_percent(const struct judging *j, double ratio)
{
        return arena_printf(j->arena, "%+.3g %%", (ratio - 1) * 100);
}

/* In the words of difference(). */
static const char *interval(const struct judging *j, const struct stats_pair *p)
{
        if (p->ratio >= 2)
                return arena_printf(j->arena, "95 %% interval %.3g to %.3g times", p->low, p->high);
        return arena_printf(j->arena, "95 %% interval %s to %s", signed_percent(j, p->low),
                            signed_percent(j, p->high));
}

/* "12 % lower", "3.2 times as high". */
static const char *difference(const struct judging *j, double ratio)
{
        if (ratio >= 2)
                return arena_printf(j->arena, "%.3g times as high", ratio);
        return arena_printf(j->arena, "%.3g %% %s", fabs(ratio - 1) * 100, ratio < 1 ? "lower" : "higher");
}

static const char *p_value(const struct judging *j, const struct stats_pair *p)
{
        if (j->family == 1)
                return arena_printf(j->arena, "p = %.2g", p->p_adjusted);
        return arena_printf(j->arena, "p = %.2g, corrected for %zu pairs", p->p_adjusted, j->family);
}

static const char *why_side_is_not(const struct judging *j, size_t at)
{
        const struct stats_side *s = &j->c.sides[at];

        if (!s->n)
                return arena_printf(j->arena, "%s has no valid runs", s->name);
        if (s->unfit)
                return arena_printf(j->arena, "%s cannot be compared: %s", s->name, s->unfit);
        if (!j->ones[at].fit)
                return arena_printf(j->arena, "%s has values that are not above 0", s->name);
        return NULL;
}

const char *compare_why_not(const struct judging *j, const struct stats_pair *p)
{
        const struct stats_side *a = &j->c.sides[p->a], *b = &j->c.sides[p->b];
        const char *why = why_side_is_not(j, p->a);

        if (!why)
                why = why_side_is_not(j, p->b);
        if (why)
                return why;
        return arena_printf(j->arena, "their accuracies, %.4g and %.4g, differ by more than %.4g",
                            a->accuracy, b->accuracy, j->c.accuracy_tolerance);
}

const char *compare_why_too_few(const struct judging *j, const struct stats_pair *p)
{
        return arena_printf(j->arena, "%zu and %zu %s are too few for any verdict; %s", p->n_a, p->n_b,
                            units(j), more(j, p));
}

const char *compare_why_differs(const struct judging *j, const struct stats_pair *p)
{
        return arena_printf(j->arena, "its median is %s (%s, %s)", difference(j, p->ratio), interval(j, p),
                            p_value(j, p));
}

const char *compare_why_noise(const struct judging *j, const struct stats_pair *p, bool known)
{
        if (fabs(p->ratio - 1) < j->c.min_effect)
                return arena_printf(j->arena,
                                    "the 95 %% interval, %s to %s, is too wide to rule a difference out; %s",
                                    signed_percent(j, p->low), signed_percent(j, p->high), more(j, p));
        if (known)
                return arena_printf(
                        j->arena,
                        "its median is %s, but two halves of the same algorithm's %s differ by up to "
                        "%.3g %%; %s",
                        difference(j, p->ratio), units(j), p->floor * 100, more(j, p));
        return arena_printf(j->arena, "its median is %s, which noise can explain (%s, %s); %s",
                            difference(j, p->ratio), interval(j, p), p_value(j, p), more(j, p));
}

const char *compare_why_same(const struct judging *j, const struct stats_pair *p, bool known)
{
        if (known)
                return arena_printf(j->arena,
                                    "its median is %s (%s), which is less than the %.3g %% that count",
                                    difference(j, p->ratio), interval(j, p), j->c.min_effect * 100);
        if (p->ratio == 1)
                return arena_printf(j->arena, "their medians are equal (%s)", interval(j, p));
        return arena_printf(j->arena, "its median is %s, which noise explains (%s, %s)",
                            difference(j, p->ratio), interval(j, p), p_value(j, p));
}

/* The pair of the best and the one that comes next, by medians. */
static const struct stats_pair *closest(const struct judging *j)
{
        const struct stats_comparison *k = j->result;
        const struct stats_pair *found = NULL;
        double least = INFINITY;

        for (size_t i = 0; i < k->n; i++) {
                const struct stats_pair *p = &k->pairs[i];
                size_t other = p->a == k->best ? p->b : p->a;

                if ((p->a != k->best && p->b != k->best) || !j->ones[other].fit || j->c.sides[other].unfit ||
                    j->ones[other].median >= least)
                        continue;
                least = j->ones[other].median;
                found = p;
        }
        return found;
}

/* Those that no other beats in both, the median and the accuracy. */
static const char *names_on_front(const struct judging *j)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(NAMES_BYTES_MAX);
        struct stats_point *points = arena_new_array(j->arena, struct stats_point, j->c.n_sides);
        bool *on = arena_new_array(j->arena, bool, j->c.n_sides);
        size_t all, named = 0;

        for (size_t i = 0; i < j->c.n_sides; i++) {
                bool counts = j->ones[i].fit && !j->c.sides[i].unfit;

                points[i] = (struct stats_point){counts ? j->ones[i].median : NAN, j->c.sides[i].accuracy};
        }
        all = stats_pareto(points, j->c.n_sides, true, on);
        for (size_t i = 0; i < j->c.n_sides; i++)
                if (on[i] && named++ < NAMED_MAX)
                        buf_printf(&text, "%s%s", named > 1 ? ", " : "", j->c.sides[i].name);
        if (all > NAMED_MAX)
                buf_printf(&text, " and %zu more", all - NAMED_MAX);
        return arena_strndup(j->arena, text.p, text.n);
}

static const char *summary_of_trade_off(const struct judging *j)
{
        const struct stats_comparison *k = j->result;
        const struct stats_side *best = &j->c.sides[k->best], *other = &j->c.sides[k->more_accurate];
        bool time = j->c.measure == STATS_TIME;

        return arena_printf(j->arena,
                            "%s %s less accurate than %s (%.4g against %.4g): no single winner; best in %s "
                            "and accuracy: %s",
                            best->name,
                            !j->clear ? "has the lowest median, but is"
                            : time    ? "is faster, but"
                                      : "is smaller, but",
                            other->name, best->accuracy, other->accuracy, time ? "time" : "memory",
                            names_on_front(j));
}

const char *compare_summary(const struct judging *j)
{
        const struct stats_comparison *k = j->result;
        const struct stats_pair *p = k->best == SIZE_MAX ? NULL : closest(j);
        const char *best, *next;
        bool first;

        if (!p)
                return "there is nothing to compare: fewer than two have valid runs that may be compared";
        first = p->a == k->best;
        best = j->c.sides[k->best].name;
        next = j->c.sides[first ? p->b : p->a].name;
        if (k->more_accurate != SIZE_MAX && (j->clear || p->verdict == STATS_NOT_COMPARABLE))
                return summary_of_trade_off(j);
        if (k->best_is_clear)
                return arena_printf(j->arena, "%s is the %s: the median of %s, the next, is %s", best,
                                    j->c.measure == STATS_TIME ? "fastest" : "smallest", next,
                                    difference(j, first ? 1 / p->ratio : p->ratio));
        return arena_printf(j->arena, "%s has the lowest median, but is not clearly the %s; against %s: %s",
                            best, j->c.measure == STATS_TIME ? "fastest" : "smallest", next,
                            stats_verdict_word(p->verdict, j->c.measure));
}
