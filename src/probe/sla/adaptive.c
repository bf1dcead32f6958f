/*
 * Which points need not be measured. Pure: numbers in, the next index to measure out.
 */
#include "probe/sla/run_internal.h"

#include <math.h>

/* Throughput per GPU that differs by less is the same: what is measured has some noise. */
#define ADAPTIVE_FALL 0.99

/* The best throughput of ROWS within TARGET; below 0: there is none. */
static double best_within(const struct sla_row *rows, size_t n, double target)
{
        double best = -1;

        for (size_t i = 0; i < n; i++)
                if (rows[i].latency <= target)
                        best = MAX(best, rows[i].throughput);
        return best;
}

bool adaptive_hopeless(const struct sla_row *rows, size_t n, const struct sla_row *tops, size_t n_tops,
                       double target, const struct sla_candidate *c)
{
        const struct sla_row *last = NULL, *before = NULL;
        double best = best_within(rows, n, target);

        for (size_t i = 0; i < n_tops; i++)
                if (tops[i].candidate.mapping == c->mapping && tops[i].candidate.gpus < c->gpus) {
                        before = last;
                        last = &tops[i];
                }
        return before && last->throughput < ADAPTIVE_FALL * before->throughput && best >= last->throughput;
}

/* ---- one candidate's grid */

void adaptive_search_init(struct adaptive_search *s, size_t n, double target, double best)
{
        *s = (struct adaptive_search){.n = n, .high = n, .target = target, .best = best, .done = n == 0};
}

bool adaptive_search_next(struct adaptive_search *s, size_t *ret)
{
        if (s->done || s->low >= s->high)
                return false;
        s->at = s->begun ? s->low + (s->high - s->low) / 2 : s->n - 1;
        *ret = s->at;
        return true;
}

void adaptive_search_add(struct adaptive_search *s, double latency, double throughput)
{
        s->begun = true;
        if (latency <= s->target)
                s->low = s->at + 1;
        else
                s->high = s->at;
        /* All that is left has less concurrency than the first that is known not to meet the target, so less throughput. */
        if (latency > s->target && s->best >= 0 && throughput <= s->best)
                s->done = true;
}

/* ---- curves */

void adaptive_curve_init(struct adaptive_curve *c, struct arena *a, const double *x, size_t n, bool whole)
{
        *c = (struct adaptive_curve){
                .n = n,
                .x = arena_memdup(a, x, n * sizeof(*x)),
                .y = arena_zalloc(a, MAX(n, (size_t)1) * sizeof(*c->y)),
                .state = arena_new_array(a, enum adaptive_state, MAX(n, (size_t)1)),
                .spans = arena_new_array(a, struct adaptive_span, n + 1),
                .whole = whole,
        };
        if (n > 0)
                c->spans[c->n_spans++] = (struct adaptive_span){0, n - 1};
}

bool adaptive_close(double predicted, double measured)
{
        return fabs(predicted - measured) <= ADAPTIVE_TOLERANCE * fabs(measured);
}

static double between(const struct adaptive_curve *c, size_t from, size_t to, size_t quantity, double x)
{
        double share = (x - c->x[from]) / (c->x[to] - c->x[from]);

        return c->y[from][quantity] + share * (c->y[to][quantity] - c->y[from][quantity]);
}

bool adaptive_curve_at(const struct adaptive_curve *c, double x, double y[ADAPTIVE_QUANTITIES])
{
        size_t from = SIZE_MAX, to = SIZE_MAX;

        /* The two measured ones around X, or the two next to it on one side. */
        for (size_t i = 0; i < c->n; i++) {
                if (c->state[i] != ADAPTIVE_MEASURED)
                        continue;
                if (to != SIZE_MAX && c->x[to] >= x)
                        break;
                from = to;
                to = i;
        }
        if (from == SIZE_MAX) {
                if (to == SIZE_MAX)
                        return false;
                for (from = to, to++; to < c->n && c->state[to] != ADAPTIVE_MEASURED; to++)
                        ;
                if (to == c->n)
                        return false;
        }
        for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                y[q] = between(c, from, to, q, x);
        return true;
}

static bool next_open(struct adaptive_curve *c, size_t from, size_t to, size_t *ret)
{
        for (size_t i = from; i <= to; i++)
                if (c->state[i] == ADAPTIVE_OPEN) {
                        *ret = c->at = i;
                        return true;
                }
        return false;
}

/* The parabola through three measured points, at X. */
static double parabola(const struct adaptive_curve *c, const size_t through[3], size_t quantity, double x)
{
        double sum = 0;

        for (size_t i = 0; i < 3; i++) {
                double part = c->y[through[i]][quantity];

                for (size_t k = 0; k < 3; k++)
                        if (k != i)
                                part *= (x - c->x[through[k]]) / (c->x[through[i]] - c->x[through[k]]);
                sum += part;
        }
        return sum;
}

/* Points of a span: its ends, its middle, and the middles of both halves. */
struct marks {
        size_t from, first, middle, third, to;
};

static struct marks marks_of(const struct adaptive_span *s)
{
        size_t middle = s->from + (s->to - s->from) / 2;

        return (struct marks){s->from, s->from + (middle - s->from) / 2, middle,
                              middle + (s->to - middle) / 2, s->to};
}

static bool all_measured(const struct adaptive_curve *c, const size_t *points, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (c->state[points[i]] != ADAPTIVE_MEASURED)
                        return false;
        return true;
}

/* Whether the middle of a span is where a straight line through its ends says. */
static bool is_straight(const struct adaptive_curve *c, const struct marks *m)
{
        if (!all_measured(c, (const size_t[]){m->from, m->middle, m->to}, 3))
                return false;
        for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                if (!adaptive_close(between(c, m->from, m->to, q, c->x[m->middle]), c->y[m->middle][q]))
                        return false;
        return true;
}

/* Whether the middles of its halves are where the parabola through ends and middle says. */
static bool is_bent(const struct adaptive_curve *c, const struct marks *m)
{
        const size_t through[] = {m->from, m->middle, m->to};

        if (m->first == m->from || m->third == m->middle || !all_measured(c, through, 3) ||
            !all_measured(c, (const size_t[]){m->first, m->third}, 2))
                return false;
        for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                if (!adaptive_close(parabola(c, through, q, c->x[m->first]), c->y[m->first][q]) ||
                    !adaptive_close(parabola(c, through, q, c->x[m->third]), c->y[m->third][q]))
                        return false;
        return true;
}

static void estimate_line(struct adaptive_curve *c, const struct marks *m)
{
        for (size_t i = m->from; i <= m->to; i++) {
                if (c->state[i] != ADAPTIVE_OPEN)
                        continue;
                for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                        c->y[i][q] = i < m->middle ? between(c, m->from, m->middle, q, c->x[i])
                                                   : between(c, m->middle, m->to, q, c->x[i]);
                c->state[i] = ADAPTIVE_ESTIMATED;
        }
}

static void estimate_parabola(struct adaptive_curve *c, const struct marks *m)
{
        const size_t low[] = {m->from, m->first, m->middle}, high[] = {m->middle, m->third, m->to};

        for (size_t i = m->from; i <= m->to; i++) {
                if (c->state[i] != ADAPTIVE_OPEN)
                        continue;
                for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                        c->y[i][q] = parabola(c, i < m->middle ? low : high, q, c->x[i]);
                c->state[i] = ADAPTIVE_ESTIMATED;
        }
}

bool adaptive_curve_next(struct adaptive_curve *c, size_t *ret)
{
        if (c->whole)
                return c->n > 0 && next_open(c, 0, c->n - 1, ret);
        while (c->n_spans > 0) {
                struct adaptive_span s = c->spans[c->n_spans - 1];
                struct marks m = marks_of(&s);

                if (next_open(c, m.from, m.from, ret) || next_open(c, m.to, m.to, ret) ||
                    next_open(c, m.middle, m.middle, ret))
                        return true;
                if (is_straight(c, &m)) {
                        estimate_line(c, &m);
                        c->n_spans--;
                        continue;
                }
                if (next_open(c, m.first, m.first, ret) || next_open(c, m.third, m.third, ret))
                        return true;
                c->n_spans--;
                if (is_bent(c, &m))
                        estimate_parabola(c, &m);
                else if (s.to - s.from >= 2) {
                        c->spans[c->n_spans++] = (struct adaptive_span){m.middle, s.to};
                        c->spans[c->n_spans++] = (struct adaptive_span){s.from, m.middle};
                }
        }
        return false;
}

void adaptive_curve_add(struct adaptive_curve *c, const double y[ADAPTIVE_QUANTITIES])
{
        c->state[c->at] = ADAPTIVE_MEASURED;
        memcpy(c->y[c->at], y, sizeof(c->y[c->at]));
}

void adaptive_curve_lose(struct adaptive_curve *c)
{
        c->state[c->at] = ADAPTIVE_LOST;
}
