#include "probe/ncu/sum_internal.h"

static struct ncu_total *total_new(const char *kernel)
{
        struct ncu_total *t = xcalloc(1, sizeof(*t));

        t->kernel = xstrdup(kernel);
        t->longest = -1;
        return t;
}

struct ncu_sum *ncu_sum_new(void)
{
        struct ncu_sum *s = xcalloc(1, sizeof(*s));

        s->all.longest = -1;
        return s;
}

void ncu_sum_free(struct ncu_sum *s)
{
        if (!s)
                return;
        vec_foreach (t, &s->kernels) {
                free((char *)(*t)->kernel);
                free(*t);
        }
        vec_done(&s->kernels);
        map_done(&s->by_name);
        free(s);
}

uint64_t ncu_sum_launches(const struct ncu_sum *s)
{
        return s->all.launches;
}

static struct ncu_total *total_of(struct ncu_sum *s, const char *kernel)
{
        struct ncu_total *t = map_get(&s->by_name, str_of(kernel));

        if (t || s->others)
                return t ? t : s->others;
        if (s->kernels.n == NCU_KERNELS_MAX) {
                s->others = *vec_push(&s->kernels) = total_new("(others)");
                return s->others;
        }
        t = *vec_push(&s->kernels) = total_new(kernel);
        map_put(&s->by_name, str_of(t->kernel), t);
        return t;
}

static void add(struct ncu_total *t, const struct ncu_launch *l)
{
        double duration = l->has & (1u << NCU_DURATION) ? l->value[NCU_DURATION] : 0;

        t->launches++;
        for (unsigned m = 0; m < NCU_METRICS; m++) {
                if (!(l->has & (1u << m)))
                        continue;
                t->min[m] = t->n[m] ? MIN(t->min[m], l->value[m]) : l->value[m];
                t->max[m] = MAX(t->max[m], l->value[m]);
                t->n[m]++;
                t->sum[m] += l->value[m];
                t->weighted[m] += l->value[m] * duration;
                t->weight[m] += duration;
        }
        if ((l->has & (1u << NCU_WAVES)) && duration > t->longest) {
                t->longest = duration;
                t->waves = l->value[NCU_WAVES];
        }
}

/* The first that is said; SEVERAL when another one is. */
static void keep(char *to, size_t size, const char *text, bool *several)
{
        if (!to[0])
                snprintf(to, size, "%s", text);
        else if (text[0] && !streq(to, text))
                *several = true;
}

void ncu_sum_add(struct ncu_sum *s, const struct ncu_launch *launch)
{
        s->unweighted |= !(launch->has & (1u << NCU_DURATION));
        keep(s->device, sizeof(s->device), launch->device, &s->devices);
        keep(s->cc, sizeof(s->cc), launch->cc, &s->ccs);
        add(&s->all, launch);
        add(total_of(s, launch->kernel), launch);
}

static double value_of(const struct ncu_sum *s, const struct ncu_total *t, unsigned m)
{
        switch (m) {
        case NCU_DURATION:
        case NCU_DRAM_READ:
        case NCU_DRAM_WRITE:
        case NCU_PASSES:
                return t->sum[m];
        case NCU_WAVES:
                return t->waves;
        default:
                return s->unweighted || !(t->weight[m] > 0) ? t->sum[m] / (double)t->n[m]
                                                            : t->weighted[m] / t->weight[m];
        }
}

uint32_t ncu_total_values(const struct ncu_sum *s, const struct ncu_total *t, double ret[NCU_METRICS])
{
        uint32_t has = 0;

        for (unsigned m = 0; m < NCU_METRICS; m++) {
                ret[m] = 0;
                if (!t->n[m])
                        continue;
                has |= 1u << m;
                ret[m] = value_of(s, t, m);
        }
        return has;
}

double ncu_total_share(const struct ncu_sum *s, const struct ncu_total *t)
{
        if (!s->unweighted && s->all.sum[NCU_DURATION] > 0)
                return t->sum[NCU_DURATION] / s->all.sum[NCU_DURATION];
        return (double)t->launches / (double)s->all.launches;
}
