/*
 * Cost, efficiency, and what follows for whoever asked. Nothing is recommended that the samples do not support.
 */
#include "probe/session/internal.h"

enum { RIGHT_SIZE_LEAST = 5 /* runs */, MIB = 1 << 20, MEMORY_STEP = 16 * MIB };

static const double gib = 1 << 30, hour = 3600, margin = 1.2, worth = 0.1;

/* ---- cost and efficiency */

/* What was asked for is held for as long as it runs; what was not is paid by use. */
double run_cost(const struct session_plan *plan, size_t entry, double wall, double cpu, double memory)
{
        const struct session_price *price = &plan->price;
        const struct session_requests *asked = &entry_algorithm(plan, entry)->requests;
        double cores = asked->cpu > 0 ? asked->cpu * wall : cpu,
               bytes = asked->memory > 0 ? asked->memory : memory, cost = 0;

        if (!isnan(price->per_run))
                cost += price->per_run;
        if (!isnan(price->per_cpu_hour))
                cost += price->per_cpu_hour * cores / hour;
        if (!isnan(price->per_gib_hour))
                cost += price->per_gib_hour * bytes / gib * wall / hour;
        return cost;
}

static const char *basis_of(const struct session_plan *plan, size_t entry)
{
        const struct session_requests *asked = &entry_algorithm(plan, entry)->requests;
        bool cpu = asked->cpu > 0, memory = asked->memory > 0;

        if (isnan(plan->price.per_cpu_hour) && isnan(plan->price.per_gib_hour))
                return "run";
        if (isnan(plan->price.per_cpu_hour))
                return memory ? "requested" : "used";
        if (isnan(plan->price.per_gib_hour))
                return cpu ? "requested" : "used";
        return cpu && memory ? "requested"
               : cpu         ? "requested CPU, used memory"
               : memory      ? "used CPU, requested memory"
                             : "used";
}

void advise_entry(const struct session_plan *plan, struct analysis_entry *e)
{
        const struct session_requests *asked = &entry_algorithm(plan, e->entry)->requests;
        double memory = e->memory_d.n ? e->memory_d.median : NAN;

        e->cost = e->efficiency_cpu = e->efficiency_memory = NAN;
        if (!e->n)
                return;
        if (plan->priced) {
                e->cost = run_cost(plan, e->entry, e->wall, e->cpu, memory);
                e->cost_basis = basis_of(plan, e->entry);
        }
        if (asked->cpu > 0 && e->wall > 0)
                e->efficiency_cpu = e->cpu / e->wall / asked->cpu;
        if (asked->memory > 0)
                e->efficiency_memory = memory / asked->memory;
}

/* ---- the fastest, the cheapest */

/* The pair of BEST and OTHER, seen from BEST; false: there is none. */
static bool pair_of(const struct stats_comparison *c, size_t best, size_t other, struct stats_pair *ret)
{
        for (size_t i = 0; i < c->n; i++) {
                *ret = c->pairs[i];
                if (ret->a == best && ret->b == other)
                        return true;
                if (ret->a == other && ret->b == best) {
                        ret->ratio = 1 / c->pairs[i].ratio;
                        ret->low = 1 / c->pairs[i].high;
                        ret->high = 1 / c->pairs[i].low;
                        return true;
                }
        }
        return false;
}

/* The one that comes nearest to the best. */
static bool runner_up(const struct session_plan *plan, const struct stats_comparison *c,
                      struct stats_pair *ret, size_t *ret_other)
{
        bool found = false;

        for (size_t i = 0; i < plan->n; i++) {
                struct stats_pair p;

                if (i == c->best || !pair_of(c, c->best, i, &p) || p.verdict == STATS_NOT_COMPARABLE ||
                    (found && p.ratio <= ret->ratio))
                        continue;
                found = true;
                *ret = p;
                *ret_other = i;
        }
        return found;
}

static const struct stats_comparison *comparison_at(const struct analysis *an, size_t size, bool cheapest)
{
        return cheapest ? &an->sizes[size].cost : &an->sizes[size].time;
}

/* AT: " at size 1000", " at every size" */
static void advise_best(struct arena *a, const struct analysis *an, size_t size, const char *at,
                        bool cheapest, struct json *list)
{
        const struct session_plan *plan = an->plan;
        const struct stats_comparison *c = comparison_at(an, size, cheapest);
        const char *best = plan->algorithms[c->best].label, *next, *text;
        struct stats_pair p;
        size_t other;

        if (!runner_up(plan, c, &p, &other))
                return;
        next = plan->algorithms[other].label;
        text = cheapest ? arena_printf(
                                  a,
                                  "%s is the cheapest%s: a run costs %.3g of what one of %s, the next, costs",
                                  best, at, p.ratio, next)
                        : arena_printf(a, "%s is the fastest%s: %.3g times as fast as %s, the next", best, at,
                                       1 / p.ratio, next);
        json_append(
                list,
                json_build(a, "{'kind': %s, 'text': %s, 'evidence': %s}", cheapest ? "cheapest" : "fastest",
                           text,
                           arena_printf(
                                   a,
                                   "ratio of medians %.3g (95 %% interval %.3g to %.3g), adjusted p %.2g, %s "
                                   "effect, %zu and %zu %s",
                                   p.ratio, p.low, p.high, p.p_adjusted, stats_cliff_word(p.effect), p.n_a,
                                   p.n_b, c->by_pod ? "pods" : "runs")));
}

/* The one that is best beyond doubt: at every size, told where it is least so; else size by size. */
static void advise_sizes(struct arena *a, const struct analysis *an, bool cheapest, struct json *list)
{
        const struct session_plan *plan = an->plan;
        size_t clear = 0, least = 0, first = comparison_at(an, 0, cheapest)->best;
        double nearest = -INFINITY;

        for (size_t i = 0; i < plan->n_sizes; i++) {
                const struct stats_comparison *c = comparison_at(an, i, cheapest);
                struct stats_pair p;
                size_t other;

                if (!c->best_is_clear || c->best != first || !runner_up(plan, c, &p, &other))
                        continue;
                clear++;
                if (p.ratio > nearest) {
                        nearest = p.ratio;
                        least = i;
                }
        }
        if (clear == plan->n_sizes) {
                advise_best(a, an, least,
                            plan->n_sizes > 1 ? arena_printf(a, " at every size, least so at %lld",
                                                             (long long)plan->sizes[least])
                                              : "",
                            cheapest, list);
                return;
        }
        for (size_t i = 0; i < plan->n_sizes; i++)
                if (comparison_at(an, i, cheapest)->best_is_clear)
                        advise_best(a, an, i, arena_printf(a, " at size %lld", (long long)plan->sizes[i]),
                                    cheapest, list);
}

/* ---- requests that fit */

/* All entries that share what was asked for: those of one algorithm that has its own, or of all that have not. */
struct share {
        const char *of; /* "quick_sort", "all algorithms" */
        struct session_requests asked;
        size_t n;     /* runs in all */
        bool unknown; /* one of them has too few, or had too little memory: what it needs is not known */
        double memory, cores; /* what 95 of 100 runs need, of the entry that needs most */
        double most_memory;   /* of any run */
};

static void share_entry(struct arena *a, const struct analysis *an, const struct analysis_entry *e,
                        struct share *s)
{
        double *memory = arena_new_array(a, double, e->n_memory + 1),
               *cores = arena_new_array(a, double, e->n + 1);
        size_t n = 0;

        vec_foreach (row, &an->samples->rows)
                if (row->entry == e->entry && !row->reason && row_counts(an->plan, row) &&
                    row->v[COLUMN_WALL] > 0)
                        cores[n++] = row->v[COLUMN_CPU] / row->v[COLUMN_WALL];
        if (MIN(n, e->n_memory) < RIGHT_SIZE_LEAST || e->out_of_memory) {
                s->unknown = true;
                return;
        }
        for (size_t i = 0; i < e->n_memory; i++) /* of every run: a pod must hold each of them */
                memory[i] = e->memory_s[i].value;
        stats_sort(memory, e->n_memory);
        stats_sort(cores, n);
        s->n += n;
        s->memory = MAX(s->memory, stats_percentile(memory, e->n_memory, 95));
        s->most_memory = MAX(s->most_memory, memory[e->n_memory - 1]);
        s->cores = MAX(s->cores, stats_percentile(cores, n, 95));
}

static void advise_memory(struct arena *a, struct share *s, struct json *list)
{
        double wanted, now = s->asked.memory;
        char evidence[256];

        if (!(now > 0))
                return;
        wanted = ceil(MAX(s->memory * margin, s->most_memory) / MEMORY_STEP) * MEMORY_STEP;
        if (fabs(wanted - now) < worth * now)
                return;
        snprintf(evidence, sizeof(evidence),
                 "95 %% of %zu runs had a peak of at most %.1f MB, the largest %.1f MB; with a margin of 20 "
                 "%%",
                 s->n, s->memory / 1e6, s->most_memory / 1e6);
        json_append(list,
                    json_build(a, "{'kind': 'rightSize', 'text': %s, 'evidence': %s}",
                               arena_printf(a, "a memory request of %.0fMi fits %s; %.0fMi is asked for",
                                            wanted / MIB, s->of, ceil(now / MIB)),
                               evidence));
}

static void advise_cpu(struct arena *a, struct share *s, struct json *list)
{
        double wanted, now = s->asked.cpu;
        char evidence[256];

        if (!(now > 0))
                return;
        wanted = MAX(ceil(s->cores * margin * 100) / 100, 0.01);
        /* What it does not use up is enough: the margin alone is no reason for more. */
        if (fabs(wanted - now) < worth * now || (wanted > now && s->cores < now))
                return;
        snprintf(evidence, sizeof(evidence),
                 "95 %% of %zu runs used at most %.2f CPUs; with a margin of 20 %%", s->n, s->cores);
        json_append(list, json_build(a, "{'kind': 'rightSize', 'text': %s, 'evidence': %s}",
                                     arena_printf(a, "a CPU request of %.0fm fits %s; %.0fm is asked for",
                                                  wanted * 1000, s->of, now * 1000),
                                     evidence));
}

/* OWN: an algorithm with its own requests; SIZE_MAX: all that have none. */
static void advise_share(struct arena *a, const struct analysis *an, size_t own, struct json *list)
{
        const struct session_plan *p = an->plan;
        struct share s = {
                .of = own != SIZE_MAX ? p->algorithms[own].label
                      : p->n > 1      ? "the algorithms"
                                      : p->algorithms[0].label,
        };

        for (size_t i = 0; i < plan_entries(p); i++) {
                const struct session_algorithm *al = entry_algorithm(p, i);

                if (own == SIZE_MAX ? al->own_requests : i / p->n_sizes != own)
                        continue;
                s.asked = al->requests;
                share_entry(a, an, &an->entries[i], &s);
        }
        if (s.unknown || !s.n)
                return;
        advise_memory(a, &s, list);
        advise_cpu(a, &s, list);
}

struct json *advise(struct arena *a, const struct analysis *an)
{
        const struct session_plan *p = an->plan;
        struct json *list = json_array(a);

        if (an->sizes)
                advise_sizes(a, an, false, list);
        if (an->sizes && p->priced)
                advise_sizes(a, an, true, list);
        /* What runs at once shares what it has: no run tells what it needs alone. */
        if (p->parallel && plan_entries(p) > 1)
                return list;
        for (size_t i = 0; i < p->n; i++)
                if (p->algorithms[i].own_requests)
                        advise_share(a, an, i, list);
        advise_share(a, an, SIZE_MAX, list);
        return list;
}
