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

/* Whether the middle of a span is where its ends say. */
static bool straight(const struct adaptive_curve *c, const struct adaptive_span *s, size_t middle)
{
        if (c->state[s->from] != ADAPTIVE_MEASURED || c->state[s->to] != ADAPTIVE_MEASURED ||
            c->state[middle] != ADAPTIVE_MEASURED)
                return false;
        for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                if (!adaptive_close(between(c, s->from, s->to, q, c->x[middle]), c->y[middle][q]))
                        return false;
        return true;
}

/* The first of the spans is done: what it leaves is estimated, or looked at in halves. */
static void split(struct adaptive_curve *c)
{
        struct adaptive_span s = c->spans[--c->n_spans];
        size_t middle = s.from + (s.to - s.from) / 2;

        if (s.to - s.from < 2)
                return;
        if (straight(c, &s, middle)) {
                for (size_t i = s.from; i <= s.to; i++)
                        if (c->state[i] == ADAPTIVE_OPEN)
                                c->state[i] = ADAPTIVE_ESTIMATED;
                return;
        }
        c->spans[c->n_spans++] = (struct adaptive_span){middle, s.to};
        c->spans[c->n_spans++] = (struct adaptive_span){s.from, middle};
}

bool adaptive_curve_next(struct adaptive_curve *c, size_t *ret)
{
        if (c->whole)
                return c->n > 0 && next_open(c, 0, c->n - 1, ret);
        while (c->n_spans > 0) {
                struct adaptive_span *s = &c->spans[c->n_spans - 1];
                size_t middle = s->from + (s->to - s->from) / 2;

                if (next_open(c, s->from, s->from, ret) || next_open(c, s->to, s->to, ret) ||
                    next_open(c, middle, middle, ret))
                        return true;
                split(c);
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
