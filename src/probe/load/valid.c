#include "probe/load/load_private.h"

static const double NS_PER_MS = 1e6;

/* First chunks that were read together with later ones came earlier than their stamp says. */
static bool first_reads_are_late(const struct load_summary *s)
{
        const struct stats_summary *first = &s->metrics[LOAD_TTFT];
        double share = load_late_share(s);

        return first->n && share > LOAD_SHARED_SHARE && s->late_first_late * NS_PER_MS > LOAD_LATE_MIN &&
               share * s->late_first_late > LOAD_LATE_SHARE * first->avg;
}

void load_check_client(struct load_report *r, double late_p99)
{
        const struct stats_summary *latency = &r->summary.metrics[LOAD_LATENCY];
        double share = latency->n && latency->avg > 0 ? late_p99 / latency->avg : 0;

        if (r->cpu > LOAD_CPU_SHARE)
                r->invalid = arena_printf(&r->arena,
                                          "the client was the bottleneck: a worker was busy for %.0f %% of "
                                          "the time; use more workers or a machine with more cores",
                                          r->cpu * 100);
        else if (late_p99 * NS_PER_MS > LOAD_LATE_MIN && (share > LOAD_LATE_SHARE || !latency->n))
                r->invalid = arena_printf(
                        &r->arena,
                        "the client was the bottleneck: requests went out up to %.1f ms late (p99), %.0f %% "
                        "of the mean latency; use a lower rate, more workers or a machine with less to do",
                        late_p99, share * 100);
        else if (first_reads_are_late(&r->summary))
                r->invalid = arena_printf(
                        &r->arena,
                        "the client was the bottleneck: it read %.0f %% of the first chunks together with "
                        "later ones, about %.1f ms after they came; use more workers or a machine with less "
                        "to do",
                        load_late_share(&r->summary) * 100, r->summary.late_first_late);
}
