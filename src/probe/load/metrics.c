#include "probe/load/metrics.h"

#include <math.h>

static const double NS_PER_MS = 1e6;
static const double NS_PER_SEC = 1e9;
static const double NS_PER_US = 1e3;
/* A first read is the client's fault when it comes later than this after its last segment: of a gap between chunks; ns. */
static const double LAG_SHARE = 0.1, LAG_LEAST = 2e5;

const struct load_metric_name load_metrics[LOAD_METRICS_] = {
        [LOAD_TTFT] = {"time_to_first_token", "Time to First Token", "ms"},
        [LOAD_TTST] = {"time_to_second_token", "Time to Second Token", "ms"},
        [LOAD_LATENCY] = {"request_latency", "Request Latency", "ms"},
        [LOAD_ITL] = {"inter_token_latency", "Inter Token Latency", "ms"},
        [LOAD_ICL] = {"inter_chunk_latency", "Inter Chunk Latency", "ms"},
        [LOAD_PER_USER] = {"output_token_throughput_per_user", "Output Token Throughput Per User",
                           "tokens/sec/user"},
        [LOAD_OSL] = {"output_sequence_length", "Output Sequence Length", "tokens"},
        [LOAD_ISL] = {"input_sequence_length", "Input Sequence Length", "tokens"},
        [LOAD_PREFILL] = {"prefill_throughput", "Prefill Throughput", "tokens/sec"},
};

bool load_metric_of(struct str tag, enum load_metric *ret)
{
        for (int i = 0; i < LOAD_METRICS_; i++)
                if (str_eq(tag, str_of(load_metrics[i].tag))) {
                        *ret = (enum load_metric)i;
                        return true;
                }
        return false;
}

double load_in_unit(enum load_metric metric, double value)
{
        return metric <= LOAD_ICL ? value / NS_PER_MS : value;
}

/* ---- of one record */

/* From A to B; false: B is before A. */
static bool span(uint64_t a, uint64_t b, double *ret)
{
        if (b < a)
                return false;
        *ret = (double)(b - a);
        return true;
}

static bool ttft(const struct load_record *r, double *ret)
{
        return r->n_chunks && !r->whole && span(r->start, r->chunks[0], ret);
}

static bool ttst(const struct load_record *r, double *ret)
{
        return r->n_chunks >= 2 && span(r->chunks[0], r->chunks[1], ret);
}

static bool latency(const struct load_record *r, double *ret)
{
        return r->n_chunks && span(r->start, r->chunks[r->n_chunks - 1], ret);
}

static bool itl(const struct load_record *r, double *ret)
{
        double first, all;

        if (r->osl < 2 || !ttft(r, &first) || !latency(r, &all) || all < first)
                return false;
        *ret = (all - first) / (double)(r->osl - 1);
        return true;
}

static bool per_user(const struct load_record *r, double *ret)
{
        double gap;

        if (!itl(r, &gap) || gap <= 0)
                return false;
        *ret = NS_PER_SEC / gap;
        return true;
}

static bool osl(const struct load_record *r, double *ret)
{
        *ret = r->osl;
        return true;
}

static bool isl(const struct load_record *r, double *ret)
{
        *ret = r->isl;
        return true;
}

static bool prefill(const struct load_record *r, double *ret)
{
        double first;

        if (!ttft(r, &first) || first <= 0)
                return false;
        *ret = (double)r->isl * NS_PER_SEC / first;
        return true;
}

static bool (*const values[LOAD_METRICS_])(const struct load_record *r, double *ret) = {
        [LOAD_TTFT] = ttft,         [LOAD_TTST] = ttst, [LOAD_LATENCY] = latency, [LOAD_ITL] = itl,
        [LOAD_PER_USER] = per_user, [LOAD_OSL] = osl,   [LOAD_ISL] = isl,         [LOAD_PREFILL] = prefill,
};

bool load_succeeded(const struct load_record *r)
{
        return !r->error && !r->canceled;
}

bool load_value(const struct load_record *r, enum load_metric metric, double *ret)
{
        return load_succeeded(r) && values[metric] && values[metric](r, ret);
}

static bool has_gaps(const struct load_record *r)
{
        for (size_t i = 1; i < r->n_chunks; i++)
                if (r->chunks[i] <= r->chunks[i - 1])
                        return false;
        return true;
}

bool load_gaps(const struct load_record *r, double *out)
{
        if (!load_succeeded(r) || r->n_chunks < 2 || !has_gaps(r))
                return false;
        for (size_t i = 1; i < r->n_chunks; i++)
                out[i - 1] = (double)(r->chunks[i] - r->chunks[i - 1]);
        return true;
}

/* ---- service levels */

/* Of a list every element must hold. Chunks of one read have no gap between them, and a limit is kept by none. */
static bool gaps_within(const struct load_record *r, double limit)
{
        if (!load_succeeded(r) || r->n_chunks < 2)
                return false;
        for (size_t i = 1; i < r->n_chunks; i++)
                if (r->chunks[i] < r->chunks[i - 1] ||
                    load_in_unit(LOAD_ICL, (double)(r->chunks[i] - r->chunks[i - 1])) > limit)
                        return false;
        return true;
}

/* Of rates and counts more is better, of times less. */
static bool holds(const struct load_record *r, const struct load_slo *slo)
{
        double value;

        if (slo->metric == LOAD_ICL)
                return gaps_within(r, slo->limit);
        if (!load_value(r, slo->metric, &value))
                return false;
        value = load_in_unit(slo->metric, value);
        return slo->metric < LOAD_ICL ? value <= slo->limit : value >= slo->limit;
}

bool load_good(const struct load_record *r, const struct load_slo *slos, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!holds(r, &slos[i]))
                        return false;
        return n > 0;
}

/* ---- all of them */

static void summarize_metric(const struct load_record *records, size_t n, enum load_metric metric,
                             double *room, struct stats_summary *ret)
{
        size_t have = 0;

        for (size_t i = 0; i < n; i++)
                if (load_value(&records[i], metric, &room[have])) {
                        room[have] = load_in_unit(metric, room[have]);
                        have++;
                }
        (void)!stats_summarize(room, have, ret);
}

/* All gaps of all requests in one heap, as AIPerf does it. */
static void summarize_gaps(const struct load_record *records, size_t n, struct stats_summary *ret)
{
        _cleanup_(free_ptr) double *room = NULL;
        size_t most = 0, have = 0;

        for (size_t i = 0; i < n; i++)
                if (load_succeeded(&records[i]) && records[i].n_chunks > 1)
                        most += records[i].n_chunks - 1;
        room = xcalloc(most + 1, sizeof(*room));
        for (size_t i = 0; i < n; i++)
                if (load_gaps(&records[i], room + have))
                        have += records[i].n_chunks - 1;
        for (size_t i = 0; i < have; i++)
                room[i] = load_in_unit(LOAD_ICL, room[i]);
        (void)!stats_summarize(room, have, ret);
}

/* Also of those that failed: how late a request went out is the client's part, not the server's. In a closed loop
 * nothing has a time in a schedule, and there is no summary. */
static void summarize_lateness(const struct load_record *records, size_t n, double *room,
                               struct stats_summary *ret)
{
        size_t have = 0;
        bool scheduled = false;

        for (size_t i = 0; i < n; i++) {
                const struct load_record *r = &records[i];

                if (!r->start)
                        continue;
                scheduled = scheduled || r->due != r->start;
                room[have++] = r->start > r->due ? (double)(r->start - r->due) / NS_PER_US : 0;
        }
        (void)!stats_summarize(room, scheduled ? have : 0, ret);
}

/*
 * Chunks of one read have the time of the last of them. Where a server sends them at once that is the time of the first,
 * too, and they are read right then. Where the client was late the last came at any time before the read, and the first
 * about as many gaps earlier as there are others with it; of an answer in one read all of its time may be the client's.
 */
static void count_shared(const struct load_record *r, struct load_summary *s)
{
        double gap = 0, late = 0, rest;
        size_t others = 0;

        if (r->whole || r->n_chunks <= LOAD_FEW_CHUNKS)
                return;
        s->n_streams++;
        while (others + 1 < r->n_chunks && r->chunks[others + 1] == r->chunks[0])
                others++;
        if (!others)
                return;
        s->n_shared_first++;
        if (others + 1 == r->n_chunks)
                (void)ttft(r, &late);
        else if (span(r->chunks[0], r->chunks[r->n_chunks - 1], &rest))
                gap = rest / (double)(r->n_chunks - 1 - others);
        if ((double)r->read_lag <= fmax(LAG_SHARE * gap, LAG_LEAST))
                return;
        s->n_late_first++;
        s->late_first_late += fmax(late, gap * (double)others) / NS_PER_MS;
}

static double share_of_streams(const struct load_summary *s, size_t n)
{
        return s->n_streams ? (double)n / (double)s->n_streams : 0;
}

double load_shared_share(const struct load_summary *s)
{
        return share_of_streams(s, s->n_shared_first);
}

double load_late_share(const struct load_summary *s)
{
        return share_of_streams(s, s->n_late_first);
}

static void count(const struct load_record *records, size_t n, const struct load_slo *slos, size_t n_slos,
                  struct load_summary *s)
{
        uint64_t first = UINT64_MAX, last = 0;

        s->osl_exact = true;
        for (size_t i = 0; i < n; i++) {
                const struct load_record *r = &records[i];

                if (r->canceled || r->error) {
                        s->n_canceled += r->canceled;
                        s->n_errors += !r->canceled;
                        continue;
                }
                s->n_requests++;
                s->n_good += load_good(r, slos, n_slos);
                s->n_without_gaps += r->n_chunks > 1 && !has_gaps(r);
                count_shared(r, s);
                s->total_isl += r->isl;
                s->total_osl += r->osl;
                s->osl_exact = s->osl_exact && r->osl_exact;
                first = MIN(first, r->start);
                last = MAX(last, r->end);
        }
        if (s->n_late_first)
                s->late_first_late /= (double)s->n_late_first;
        s->osl_exact = s->osl_exact && s->n_requests;
        s->has_duration = s->n_requests && last > first;
        s->duration = s->has_duration ? (double)(last - first) / NS_PER_SEC : 0;
}

bool load_summarize(const struct load_record *records, size_t n, const struct load_slo *slos, size_t n_slos,
                    struct load_summary *ret)
{
        _cleanup_(free_ptr) double *room = xcalloc(n + 1, sizeof(*room));

        *ret = (struct load_summary){0};
        count(records, n, slos, n_slos, ret);
        for (int i = 0; i < LOAD_METRICS_; i++)
                if (i == LOAD_ICL)
                        summarize_gaps(records, n, &ret->metrics[i]);
                else
                        summarize_metric(records, n, (enum load_metric)i, room, &ret->metrics[i]);
        summarize_lateness(records, n, room, &ret->lateness);
        if (ret->has_duration) {
                ret->request_throughput = (double)ret->n_requests / ret->duration;
                ret->output_throughput = ret->total_osl / ret->duration;
                ret->goodput = (double)ret->n_good / ret->duration;
        }
        return ret->n_requests > 0;
}
