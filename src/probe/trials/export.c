/*
 * Trials for programs: JSON and CSV. Names that hyperfine has are used as it does.
 */
#include "probe/trials/internal.h"

#include <math.h>

/* ---- JSON */

static struct json *interval(struct arena *a, const struct stats_interval *i)
{
        if (isnan(i->low))
                return NULL;
        return json_build(a, "{'low': %p, 'high': %p, 'level': %p, 'method': %s}",
                          (void *)json_double(a, i->low), (void *)json_double(a, i->high),
                          (void *)json_double(a, i->level), stats_interval_methods[i->method]);
}

static struct json *side_json(struct arena *a, const struct trials_side *s)
{
        const struct stats_description *d = &s->time;
        struct json *j = json_object(a), *times = json_array(a), *codes = json_array(a),
                    *samples = json_array(a), *memory = json_array(a);

        json_set(a, j, "command", json_string(a, s->name));
        json_set(a, j, "n", json_u64(a, s->valid));
        json_set(a, j, "invalid", json_u64(a, s->runs.n - s->valid));
        if (d->n) {
                json_set(a, j, "mean", json_double(a, d->mean));
                json_set(a, j, "stddev", json_double(a, d->sd));
                json_set(a, j, "median", json_double(a, d->median));
                json_set(a, j, "medianInterval", interval(a, &d->median_ci));
                json_set(a, j, "user", json_double(a, s->user));
                json_set(a, j, "system", json_double(a, s->sys));
                json_set(a, j, "min", json_double(a, d->min));
                json_set(a, j, "max", json_double(a, d->max));
                json_set(a, j, "peakRss", json_double(a, s->memory));
        }
        vec_foreach (run, &s->runs) {
                json_append(samples, measure_sample_json(a, &run->sample));
                json_append(codes,
                            run->sample.exit_code < 0 ? json_null(a) : json_i64(a, run->sample.exit_code));
                if (!measure_sample_ok(&run->sample))
                        continue;
                json_append(times, json_double(a, run->sample.wall));
                if (run->sample.peak_rss >= 0)
                        json_append(memory, json_i64(a, run->sample.peak_rss));
        }
        json_set(a, j, "times", times);
        json_set(a, j, "memory_usage_byte", memory);
        json_set(a, j, "exit_codes", codes);
        json_set(a, j, "samples", samples);
        return j;
}

static struct json *pair_json(struct arena *a, const struct trials *t, const struct stats_pair *p)
{
        struct json *j = json_object(a);

        json_set(a, j, "a", json_string(a, t->sides[p->a].name));
        json_set(a, j, "b", json_string(a, t->sides[p->b].name));
        json_set(a, j, "ratio", json_double(a, p->ratio));
        json_set(a, j, "ciLow", json_double(a, p->low));
        json_set(a, j, "ciHigh", json_double(a, p->high));
        json_set(a, j, "p", json_double(a, p->p));
        json_set(a, j, "pAdjusted", json_double(a, p->p_adjusted));
        json_set(a, j, "effectSize", json_double(a, p->effect));
        json_set(a, j, "shift", json_double(a, p->shift));
        json_set(a, j, "verdict", json_string(a, stats_verdict_word(p->verdict, STATS_TIME)));
        json_set(a, j, "why", json_string(a, p->why));
        if (p->needed)
                json_set(a, j, "needed", json_u64(a, p->needed));
        return j;
}

void trials_json(const struct trials *t, struct buf *out)
{
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        struct arena *a = &arena;
        struct json *results = json_array(a), *pairs = json_array(a), *warnings = json_array(a);
        struct json *root = json_build(
                a, "{'version': 1, 'runs': %u, 'warmup': %u, 'seed': %p, 'machine': %p}", t->config->runs,
                t->config->warmup, (void *)json_u64(a, t->config->seed), (void *)measure_machine(a, NULL));

        if (t->interrupted)
                json_set(a, root, "interrupted", json_truth(a, true));
        for (size_t i = 0; i < t->config->n; i++)
                json_append(results, side_json(a, &t->sides[i]));
        json_set(a, root, "results", results);
        for (size_t i = 0; i < t->comparison.n; i++)
                json_append(pairs, pair_json(a, t, &t->comparison.pairs[i]));
        if (t->comparison.n)
                json_set(a, root, "comparison",
                         json_build(a, "{'noiseFloor': %p, 'pairs': %p, 'summary': %s}",
                                    (void *)json_double(a, t->comparison.noise_floor), (void *)pairs,
                                    t->comparison.summary));
        vec_foreach (w, &t->warnings)
                json_append(warnings, json_string(a, *w));
        json_set(a, root, "warnings", warnings);
        json_write(root, JSON_PRETTY, out);
        buf_addc(out, '\n');
}

/* ---- CSV */

/* What is not known is empty. */
static void add_value(struct buf *out, double v)
{
        buf_addc(out, ',');
        if (isfinite(v))
                buf_printf(out, "%.9g", v);
}

void trials_csv(const struct trials *t, struct buf *out)
{
        buf_adds(out,
                 "command,mean,stddev,median,user,system,min,max,median_low,median_high,peak_rss,n,invalid,"
                 "ratio,ratio_low,ratio_high,p,verdict\n");
        for (size_t i = 0; i < t->config->n; i++) {
                const struct trials_side *s = &t->sides[i];
                const struct stats_description *d = &s->time;
                const struct stats_pair *p = i ? trials_pair(t, i) : NULL;
                const double values[] = {d->mean, d->sd,  d->median,        s->user,           s->sys,
                                         d->min,  d->max, d->median_ci.low, d->median_ci.high, s->memory};

                buf_add_csv(out, s->name);
                for (size_t k = 0; k < ARRAY_LEN(values); k++)
                        add_value(out, d->n ? values[k] : NAN);
                buf_printf(out, ",%zu,%zu", s->valid, s->runs.n - s->valid);
                add_value(out, p ? p->ratio : NAN);
                add_value(out, p ? p->low : NAN);
                add_value(out, p ? p->high : NAN);
                add_value(out, p ? p->p_adjusted : NAN);
                buf_printf(out, ",%s\n", p ? stats_verdict_word(p->verdict, STATS_TIME) : "");
        }
}
