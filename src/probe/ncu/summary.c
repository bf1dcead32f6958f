#include "probe/ncu/sum_internal.h"

#include <math.h>

enum { KERNELS_TOLD = 16, DECIMALS = 6 };

static const double TINY = 1000; /* ns a launch: below it counters of a few cycles decide */

/* Sums of decimals have a tail of digits that mean nothing. */
static struct json *number(struct arena *a, double value)
{
        double scale = 1e6, rounded = fabs(value) < 1e9 ? nearbyint(value * scale) / scale : nearbyint(value);

        return json_double(a, rounded + 0.0); /* -0 is 0 */
}

static struct json *metrics_json(struct arena *a, uint32_t has, const double value[NCU_METRICS])
{
        struct json *metrics = json_object(a);

        for (unsigned m = 0; m < NCU_METRICS; m++)
                if ((has & (1u << m)) && ncu_metric_key((enum ncu_metric)m))
                        json_set(a, metrics, ncu_metric_key((enum ncu_metric)m), number(a, value[m]));
        return metrics;
}

static struct json *known(struct arena *a, uint32_t has, const double value[NCU_METRICS], enum ncu_metric m)
{
        return has & (1u << m) ? number(a, value[m]) : NULL;
}

static struct json *when_true(struct arena *a, bool truth)
{
        return truth ? json_truth(a, true) : NULL;
}

/* ---- kernels */

struct ranked {
        const struct ncu_total *total;
        double share;
};

static int by_share(const void *x, const void *y)
{
        const struct ranked *a = x, *b = y;

        if (a->share < b->share || a->share > b->share)
                return a->share < b->share ? 1 : -1;
        return strcmp(a->total->kernel, b->total->kernel);
}

static struct ranked *rank_kernels(struct arena *a, const struct ncu_sum *s)
{
        struct ranked *ranked = arena_new_array(a, struct ranked, s->kernels.n + 1);

        for (size_t i = 0; i < s->kernels.n; i++)
                ranked[i] = (struct ranked){s->kernels.v[i], ncu_total_share(s, s->kernels.v[i])};
        qsort(ranked, s->kernels.n, sizeof(*ranked), by_share);
        return ranked;
}

static struct json *kernel_json(struct arena *a, const struct ncu_sum *s, const struct ranked *r,
                                enum ncu_rule rule)
{
        double value[NCU_METRICS];
        uint32_t has = ncu_total_values(s, r->total, value);
        struct ncu_bound bound = ncu_classify(rule, has, value);
        struct json *kernel = json_object(a);

        json_set(a, kernel, "kernel", json_string(a, r->total->kernel));
        json_set(a, kernel, "launches", json_u64(a, r->total->launches));
        json_set(a, kernel, "durationNs", known(a, has, value, NCU_DURATION));
        json_set(a, kernel, "share", number(a, r->share));
        json_set(a, kernel, "boundType", json_string(a, bound.type));
        json_set(a, kernel, "bottleneck", json_string(a, bound.bottleneck));
        json_set(a, kernel, "metrics", metrics_json(a, has, value));
        if (r->total->launches > 1) {
                json_set(a, kernel, "min", metrics_json(a, has, r->total->min));
                json_set(a, kernel, "max", metrics_json(a, has, r->total->max));
        }
        return kernel;
}

/* ---- the whole */

static bool is_tiny(const struct ncu_sum *s)
{
        return s->all.launches && !s->unweighted && s->all.sum[NCU_DURATION] < TINY * (double)s->all.launches;
}

static void tell_context(struct arena *a, struct json *summary, const struct ncu_sum *s,
                         const struct ncu_context *c)
{
        struct json *warnings = json_array(a);

        json_set(a, summary, "device", s->device[0] && !s->devices ? json_string(a, s->device) : NULL);
        json_set(a, summary, "computeCapability", s->cc[0] && !s->ccs ? json_string(a, s->cc) : NULL);
        json_set(a, summary, "rule", json_string(a, c->rule == NCU_RULE_UPSTREAM ? "upstream" : "sol"));
        if (c->layout != NCU_LAYOUT_NONE)
                json_set(a, summary, "layout", json_string(a, ncu_layout_name(c->layout)));
        json_set(a, summary, "partial", when_true(a, c->partial));
        json_set(a, summary, "replay", when_true(a, c->replay));
        json_set(a, summary, "tool", json_string(a, c->tool));
        for (const char *const *w = c->warnings; w && *w; w++)
                json_append(warnings, json_string(a, *w));
        if (is_tiny(s))
                json_append(warnings, json_string(a, "the launches take less than 1 us each: their "
                                                     "percentages change from run to run"));
        if (s->others)
                json_append(warnings,
                            json_string(a, arena_printf(a,
                                                        "there are more than %d kernels: the rest counts as "
                                                        "one of them",
                                                        NCU_KERNELS_MAX)));
        json_set(a, summary, "warnings", json_len(warnings) ? warnings : NULL);
}

struct json *ncu_summary(struct arena *a, const struct ncu_sum *s, const struct ncu_context *c)
{
        double value[NCU_METRICS];
        uint32_t has = ncu_total_values(s, &s->all, value);
        struct ncu_bound bound = ncu_classify(c->rule, has, value);
        struct ranked *ranked = rank_kernels(a, s);
        struct json *summary = json_object(a), *by_kernel = json_array(a);

        for (size_t i = 0; i < MIN(s->kernels.n, (size_t)KERNELS_TOLD); i++)
                json_append(by_kernel, kernel_json(a, s, &ranked[i], c->rule));
        json_set(a, summary, "boundType", json_string(a, bound.type));
        json_set(a, summary, "metrics", metrics_json(a, has, value));
        json_set(a, summary, "launches", json_u64(a, s->all.launches));
        json_set(a, summary, "kernels", json_u64(a, s->kernels.n));
        json_set(a, summary, "durationNs", known(a, has, value, NCU_DURATION));
        json_set(a, summary, "unweighted", when_true(a, s->unweighted));
        json_set(a, summary, "bottleneck", json_string(a, bound.bottleneck));
        if (s->kernels.n) /* the rest together is no kernel, and never alone */
                json_set(a, summary, "dominantKernel",
                         json_string(a, ranked[ranked[0].total == s->others].total->kernel));
        json_set(a, summary, "passes", known(a, has, value, NCU_PASSES));
        json_set(a, summary, "byKernel", by_kernel);
        tell_context(a, summary, s, c);
        return summary;
}

/* ---- as KRATOS has it */

/* At most six decimals, without zeros at the end. */
static const char *decimal_text(struct arena *a, double value)
{
        char *text = arena_printf(a, "%.*f", DECIMALS, value);
        size_t n = strlen(text);

        while (text[n - 1] == '0')
                n--;
        n -= text[n - 1] == '.';
        text[n] = '\0';
        return streq(text, "-0") ? "0" : text;
}

/* J as the text of a metric; NULL: it is nothing that one says in a word. */
static const char *metric_text(struct arena *a, const struct json *j)
{
        double value;

        if (json_is(j, JSON_NUMBER) && json_to_double(j, &value))
                return decimal_text(a, value);
        if (json_is(j, JSON_BOOL))
                return j->truth ? "true" : "false";
        if (json_is(j, JSON_ARRAY))
                return arena_printf(a, "%zu", json_len(j));
        return json_cstr(j);
}

struct entry {
        const char *key, *text;
};

static int by_key(const void *x, const void *y)
{
        return strcmp(((const struct entry *)x)->key, ((const struct entry *)y)->key);
}

static struct json *kratos_metrics(struct arena *a, const struct json *summary)
{
        static const char *const beside[] = {"durationNs", "dominantKernel", "bottleneck",
                                             "launches",   "passes",         "warnings",
                                             "unweighted", "partial",        "replay"};
        const struct json *metrics = json_at(summary, "metrics");
        struct entry *entries = arena_new_array(a, struct entry, json_len(metrics) + ARRAY_LEN(beside));
        struct json *out = json_object(a);
        size_t n = 0;

        json_foreach (m, metrics)
                entries[n++] = (struct entry){m->key, metric_text(a, m)};
        for (size_t i = 0; i < ARRAY_LEN(beside); i++)
                entries[n++] = (struct entry){beside[i], metric_text(a, json_at(summary, beside[i]))};
        qsort(entries, n, sizeof(*entries), by_key);
        for (size_t i = 0; i < n; i++)
                json_set(a, out, entries[i].key, json_string(a, entries[i].text));
        return out;
}

struct json *ncu_summary_kratos(struct arena *a, const struct json *summary)
{
        struct json *out = json_object(a), *details = json_copy(a, summary);

        json_remove(details, "boundType");
        json_remove(details, "metrics");
        json_set(a, out, "boundType", json_string(a, json_str(summary, "boundType")));
        json_set(a, out, "metrics", kratos_metrics(a, summary));
        json_set(a, out, "details", details);
        return out;
}
