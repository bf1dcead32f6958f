/*
 * Which row wins: selection under a target, the rows worth a picture, what they cost.
 */
#include <limits.h>
#include <math.h>

#include "probe/sla/sla.h"

double sla_burst_ttft(double ttft_max, double itl_avg)
{
        return (ttft_max - itl_avg * (SLA_PREFILL_OSL - 1) * (SLA_BURST - 1)) / SLA_BURST;
}

double sla_prefill_throughput(double isl, double ttft_ms, const struct sla_candidate *c)
{
        return ttft_ms > 0 && c->gpus ? isl / ttft_ms / c->gpus * 1000 * c->attn_dp : 0;
}

/* Of the rows with at most GPUS. */
static bool pick_up_to(const struct sla_row *rows, size_t n, double target_ms, unsigned gpus,
                       struct sla_choice *ret)
{
        size_t least = SIZE_MAX, most = SIZE_MAX;

        *ret = (struct sla_choice){0};
        for (size_t i = 0; i < n; i++) {
                if (isnan(rows[i].latency) || isnan(rows[i].throughput) || rows[i].candidate.gpus > gpus)
                        continue;
                if (least == SIZE_MAX || rows[i].latency < rows[least].latency)
                        least = i;
                if (rows[i].latency <= target_ms &&
                    (most == SIZE_MAX || rows[i].throughput > rows[most].throughput))
                        most = i;
        }
        if (least == SIZE_MAX)
                return false;
        *ret = (struct sla_choice){
                .feasible = most != SIZE_MAX,
                .index = most != SIZE_MAX ? most : least,
                .best = rows[least].latency,
        };
        return true;
}

bool sla_pick(const struct sla_row *rows, size_t n, double target_ms, struct sla_choice *ret)
{
        return pick_up_to(rows, n, target_ms, UINT_MAX, ret);
}

/* How bad a pair is, less is better: targets that are missed, then by how much, or what a request costs. */
static double badness(const struct sla_pick_in *in, const struct sla_choice *p, const struct sla_choice *d)
{
        const struct sla_row *prefill = &in->prefill[p->index], *decode = &in->decode[d->index];
        double missed = !p->feasible + !d->feasible, detail;

        detail = missed > 0 ? fmax(prefill->latency / in->ttft, 1) + fmax(decode->latency / in->itl, 1)
                            : sla_cost(in->isl, prefill->throughput, in->osl, decode->throughput);
        return missed + (detail >= 0 ? detail / (1 + detail) : 1); /* in 0 ... 1; NaN, too */
}

bool sla_pick_within(const struct sla_pick_in *in, struct sla_choice *ret_prefill,
                     struct sla_choice *ret_decode)
{
        double least = INFINITY;

        for (size_t i = 0; i < in->n_prefill; i++) {
                unsigned gpus = in->prefill[i].candidate.gpus;
                struct sla_choice prefill, decode;

                if (gpus >= in->gpus || !pick_up_to(in->prefill, in->n_prefill, in->ttft, gpus, &prefill) ||
                    !pick_up_to(in->decode, in->n_decode, in->itl, in->gpus - gpus, &decode) ||
                    badness(in, &prefill, &decode) >= least)
                        continue;
                least = badness(in, &prefill, &decode);
                *ret_prefill = prefill;
                *ret_decode = decode;
        }
        return least < INFINITY;
}

struct xy {
        double x, y;
        size_t index;
};

/* By x, of equal ones the highest first, of equal points the first. */
static int xy_cmp(const void *a, const void *b)
{
        const struct xy *p = a, *q = b;

        if (p->x != q->x)
                return p->x < q->x ? -1 : 1;
        if (p->y != q->y)
                return p->y > q->y ? -1 : 1;
        return p->index < q->index ? -1 : p->index > q->index;
}

size_t sla_pareto(const double *x, const double *y, size_t n, size_t *out)
{
        _cleanup_(free_ptr) struct xy *points = xcalloc(MAX(n, (size_t)1), sizeof(*points));
        size_t valid = 0, kept = 0;
        double highest = -INFINITY;

        for (size_t i = 0; i < n; i++)
                if (!isnan(x[i]) && !isnan(y[i]))
                        points[valid++] = (struct xy){x[i], y[i], i};
        qsort(points, valid, sizeof(*points), xy_cmp);
        for (size_t i = 0; i < valid; i++)
                if (points[i].y > highest) {
                        highest = points[i].y;
                        out[kept++] = points[i].index;
                }
        return kept;
}

double sla_cost(double isl, double prefill_throughput, double osl, double decode_throughput)
{
        return isl * 1000 / prefill_throughput * SLA_GPU_COST / 3600 +
               osl * 1000 / decode_throughput * SLA_GPU_COST / 3600;
}
