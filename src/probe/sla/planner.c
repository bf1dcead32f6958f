/*
 * How many engines of each kind carry a demand, within a budget of GPUs.
 */
#include <math.h>

#include "probe/sla/sla.h"

#define ENGINES_MAX 1e9

/* Engines of GPUS each for TOKENS a second; at least LEAST. */
static double engines(double tokens, double throughput, unsigned gpus, double least)
{
        double n = ceil(tokens / throughput / gpus);

        /* No traffic is NaN upstream. */
        return isnan(n) ? least : fmin(fmax(n, least), ENGINES_MAX);
}

static int check(const struct sla_demand *d, double prefill_throughput, double decode_throughput,
                 double least, struct err *err)
{
        double needed = least * ((double)d->prefill_gpus + d->decode_gpus);

        if (!d->prefill_gpus || !d->decode_gpus)
                return err_set(err, E_INVALID, "an engine needs at least one GPU");
        if (!(prefill_throughput > 0) || !(decode_throughput > 0))
                return err_set(err, E_INVALID,
                               "the throughput of %s is not above 0: nothing carries a demand",
                               prefill_throughput > 0 ? "decode" : "prefill");
        if (!(d->interval > 0) || d->requests < 0 || d->isl < 0 || d->osl < 0)
                return err_set(err, E_INVALID,
                               "a demand needs an interval above 0, and no requests or lengths below 0");
        if (needed > d->budget)
                return err_set(
                        err, E_CONFIG,
                        "%.0f engine%s of %u GPUs for prefill and %.0f of %u for decode need %.0f GPUs, "
                        "and the budget has %u",
                        least, least > 1 ? "s" : "", d->prefill_gpus, least, d->decode_gpus, needed,
                        d->budget);
        return 0;
}

/*
 * Upstream: both shrink in proportion, prefill rounded (half to even), decode with what is left. Its rounding and its minimum may
 * go over the budget, and its rest may give decode more than was asked for; here neither happens. What decode leaves is prefill's
 * again, as far as it was asked for.
 */
static void shrink(const struct sla_demand *d, double least, double *prefill, double *decode)
{
        double budget = d->budget, pg = d->prefill_gpus, dg = d->decode_gpus;
        double wanted = *prefill, scaled = nearbyint(wanted * (budget / (wanted * pg + *decode * dg)));

        *prefill = fmin(fmax(scaled, least), floor((budget - least * dg) / pg));
        *decode = fmin(*decode, floor((budget - *prefill * pg) / dg));
        *prefill = fmin(wanted, floor((budget - *decode * dg) / pg));
}

double sla_demand_throughput(const struct sla_demand *d, const struct sla_surface *surface)
{
        return sla_surface_best(surface, d->decode_corr > 0 ? d->itl / d->decode_corr : d->itl,
                                d->isl + d->osl / 2, NULL);
}

int sla_replicas(const struct sla_demand *d, double prefill_throughput, double decode_throughput,
                 struct sla_replicas *ret, struct err *err)
{
        double least = d->min_endpoint ? d->min_endpoint : 1, correction, prefill, decode;
        bool capped;

        if (check(d, prefill_throughput, decode_throughput, least, err) < 0)
                return -1;
        correction = d->prefill_corr > 0 ? fmin(1, d->prefill_corr) : 1;
        prefill = engines(d->requests * d->isl / d->interval * correction, prefill_throughput,
                          d->prefill_gpus, least);
        decode = engines(d->requests * d->osl / d->interval, decode_throughput, d->decode_gpus, least);
        capped = prefill * d->prefill_gpus + decode * d->decode_gpus > d->budget;
        if (capped)
                shrink(d, least, &prefill, &decode);
        *ret = (struct sla_replicas){
                .prefill = (unsigned)prefill,
                .decode = (unsigned)decode,
                .gpus = (unsigned)prefill * d->prefill_gpus + (unsigned)decode * d->decode_gpus,
                .capped = capped,
        };
        return 0;
}
