/*
 * What is asked of results by all that write them.
 */
#include <math.h>

#include "probe/sla/output_internal.h"
#include "probe/sla/svg.h"

const struct sla_row *sla_chosen_row(const struct sla_results *r, enum sla_role role)
{
        const struct sla_row *rows = role == SLA_PREFILL ? r->prefill : r->decode;
        size_t n = role == SLA_PREFILL ? r->n_prefill : r->n_decode;
        size_t i = role == SLA_PREFILL ? r->chosen_prefill.index : r->chosen_decode.index;

        return i < n ? &rows[i] : NULL;
}

struct sla_candidate sla_chosen_candidate(const struct sla_results *r, enum sla_role role)
{
        const struct sla_row *row = sla_chosen_row(r, role);
        const struct sla_config *c = r->config;
        struct sla_candidate all[SLA_CANDIDATES_MAX];

        if (row)
                return row->candidate;
        if (!sla_candidates(&c->shape, c->min_gpus, c->max_gpus, all))
                sla_candidate_init(&all[0], SIM_TP, MAX(c->min_gpus, 1u));
        return all[0];
}

bool sla_is_profiled(const struct sla_results *r)
{
        return r->n_curve >= SLA_CURVE_MIN && r->n_surface >= SLA_CURVE_MIN;
}

double sla_chosen_cost(const struct sla_results *r)
{
        const struct sla_row *prefill = sla_chosen_row(r, SLA_PREFILL),
                             *decode = sla_chosen_row(r, SLA_DECODE);

        if (!prefill || !decode || !(prefill->throughput > 0) || !(decode->throughput > 0))
                return -1;
        return sla_cost((double)r->config->isl, prefill->throughput, (double)r->config->osl,
                        decode->throughput);
}

const char *sla_figure(struct arena *a, double value)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(128);

        if (!isfinite(value) || value < 0)
                return "not measured";
        svg_number(&text, value,
                   value == floor(value) || value >= 100 ? 1
                   : value >= 10                         ? 0.1
                   : value >= 0.1                        ? 0.01
                                                         : 0.0001);
        return arena_strdup(a, buf_cstr(&text));
}
