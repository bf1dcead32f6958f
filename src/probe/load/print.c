#include "probe/load/export_internal.h"

/*
 * A table for people, in 80 columns: what was measured, how fast it went, what failed, and how much of it was the client's
 * own doing. The last line is the one that must not be missed.
 */

enum { NAME_WIDTH = 30, NUMBER_WIDTH = 10, KINDS_SHOWN = 5 };

static const struct {
        enum load_metric metric;
        const char *name;
} rows[] = {
        {LOAD_TTFT, "Time to first token, ms"}, {LOAD_TTST, "Time to second token, ms"},
        {LOAD_LATENCY, "Request latency, ms"},  {LOAD_ITL, "Inter-token latency, ms"},
        {LOAD_ICL, "Inter-chunk latency, ms"},  {LOAD_PER_USER, "Output tokens/s per user"},
        {LOAD_PREFILL, "Prefill tokens/s"},     {LOAD_OSL, "Output length, tokens"},
        {LOAD_ISL, "Input length, tokens"},
};

/* DIGITS with a blank between thousands, to the right of WIDTH columns. */
static void add_grouped(struct buf *out, const char *digits, int width)
{
        size_t n = strcspn(digits, "."), at = 0;
        char text[64];

        for (size_t i = 0; digits[i] && at + 2 < sizeof(text); i++) {
                if (i && i < n && (n - i) % 3 == 0)
                        text[at++] = ' ';
                text[at++] = digits[i];
        }
        text[at] = '\0';
        buf_printf(out, "%*s", width, text);
}

/* About four digits that matter: 0.0123, 1.234, 12.34, 123.4, 1 234. */
static void add_number(struct buf *out, double value, int width)
{
        int decimals = value <= 0     ? 0
                       : value < 1    ? 4
                       : value < 10   ? 3
                       : value < 100  ? 2
                       : value < 1000 ? 1
                                      : 0;
        char digits[48];

        snprintf(digits, sizeof(digits), "%.*f", decimals, value);
        add_grouped(out, digits, width);
}

static void add_count(struct buf *out, uint64_t n, const char *one, const char *many)
{
        char digits[48];

        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
        add_grouped(out, digits, 0);
        buf_printf(out, " %s", n == 1 ? one : many);
}

/* Text from a server, on this one line. */
static void add_plain(struct buf *out, const char *text)
{
        for (; *text; text++)
                buf_addc(out, (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
}

static void add_head(const struct load_config *c, const struct load_report *r, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *url = load_url_shown(&a, c->url);

        add_plain(out, c->model ? c->model : "(no model)");
        buf_adds(out, " at ");
        add_plain(out, url ? url : "?");
        if (c->trace)
                buf_adds(out, " · replay");
        else if (c->rate > 0)
                buf_printf(out, " · %s, %g requests/s", arrival_patterns[c->pattern], c->rate);
        if (c->concurrency)
                buf_printf(out, " · concurrency %u", c->concurrency);
        if (c->whole)
                buf_adds(out, " · not streamed");
        if (load_simulated(c, r))
                buf_adds(out, " · SIMULATED");
        buf_adds(out, "\n\n");
}

static void add_row(struct buf *out, const char *name, const struct stats_summary *s)
{
        buf_printf(out, "%-*s", NAME_WIDTH, name);
        add_number(out, s->avg, NUMBER_WIDTH);
        add_number(out, s->p[STATS_P50], NUMBER_WIDTH);
        add_number(out, s->p[STATS_P90], NUMBER_WIDTH);
        add_number(out, s->p[STATS_P99], NUMBER_WIDTH);
        add_number(out, s->std, NUMBER_WIDTH);
        buf_addc(out, '\n');
}

static void add_table(struct buf *out, const struct load_summary *s)
{
        static const char *const heads[] = {"avg", "p50", "p90", "p99", "std"};

        buf_printf(out, "%-*s", NAME_WIDTH, "");
        for (size_t i = 0; i < ARRAY_LEN(heads); i++)
                buf_printf(out, "%*s", NUMBER_WIDTH, heads[i]);
        buf_addc(out, '\n');
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (s->metrics[rows[i].metric].n)
                        add_row(out, rows[i].name, &s->metrics[rows[i].metric]);
        buf_addc(out, '\n');
}

static void add_rate(struct buf *out, double value, const char *unit)
{
        buf_adds(out, " · ");
        add_number(out, value, 0);
        buf_printf(out, " %s", unit);
}

static void add_throughput(struct buf *out, const struct load_config *c, const struct load_summary *s)
{
        add_count(out, s->n_requests, "request", "requests");
        if (s->has_duration) {
                buf_adds(out, " in ");
                add_number(out, s->duration, 0);
                buf_adds(out, " s");
                add_rate(out, s->request_throughput, "requests/s");
                add_rate(out, s->output_throughput,
                         s->osl_exact ? "tokens/s" : "tokens/s (lengths estimated)");
        }
        buf_addc(out, '\n');
        if (!c->n_slos)
                return;
        buf_adds(out, "goodput: ");
        add_count(out, s->n_good, "request", "requests");
        buf_adds(out, " within the service levels");
        if (s->has_duration)
                add_rate(out, s->goodput, "requests/s");
        buf_addc(out, '\n');
}

static void add_errors(struct buf *out, const struct load_report *r)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct load_errors *kinds;
        size_t n, rest = 0;

        kinds = load_error_groups(&a, r, false, &n);
        for (size_t i = 0; i < n; i++) {
                if (i >= KINDS_SHOWN) {
                        rest += kinds[i].count;
                        continue;
                }
                buf_adds(out, i ? "        " : "failed: ");
                add_count(out, kinds[i].count, "", "");
                add_plain(out, kinds[i].type);
                if (kinds[i].message && !streq(kinds[i].message, kinds[i].type)) {
                        buf_adds(out, ": ");
                        add_plain(out, kinds[i].message);
                }
                buf_addc(out, '\n');
        }
        if (rest) {
                buf_adds(out, "        ");
                add_count(out, rest, "of another kind\n", "of other kinds\n");
        }
}

/* What the table above does not tell of. */
static void add_missing(struct buf *out, const struct load_report *r)
{
        const struct load_summary *s = &r->summary;

        if (r->unsent) {
                buf_adds(out, "unsent: ");
                add_count(out, r->unsent, "request was", "requests were");
                buf_adds(out, " due, with no place under the concurrency\n");
        }
        if (s->n_without_gaps) {
                add_count(out, s->n_without_gaps, "request has", "requests have");
                buf_adds(out, " no inter-chunk latency: chunks came in one read\n");
        }
}

static void add_client(struct buf *out, const struct load_report *r)
{
        const struct stats_summary *late = &r->summary.lateness, *stamp = &r->stamp_error;

        buf_printf(out, "client: CPU %.0f %% of its busiest worker · times of the %s", r->cpu * 100,
                   r->kernel_stamps ? "kernel" : "read");
        if (stamp->n) {
                buf_adds(out, ", read ");
                add_number(out, stamp->p[STATS_P50], 0);
                buf_adds(out, " us later");
        }
        buf_addc(out, '\n');
        if (!late->n)
                return;
        buf_adds(out, "        sent ");
        add_number(out, late->p[STATS_P50], 0);
        buf_adds(out, " us after the schedule, p99 ");
        add_number(out, late->p[STATS_P99], 0);
        buf_adds(out, " us\n");
}

void load_print(const struct load_config *c, const struct load_report *r, struct buf *out)
{
        const struct load_summary *s = &r->summary;

        add_head(c, r, out);
        if (s->n_requests)
                add_table(out, s);
        if (s->n_requests)
                add_throughput(out, c, s);
        else
                buf_adds(out, "no request succeeded\n");
        add_errors(out, r);
        add_missing(out, r);
        add_client(out, r);
        if (r->stopped)
                buf_adds(out, "stopped before the end: the numbers are of what was done until then\n");
        if (r->ended_early)
                buf_printf(out, "ended early: %s\n", r->ended_early);
        if (r->invalid) {
                buf_adds(out, "INVALID: ");
                add_plain(out, r->invalid);
                buf_addc(out, '\n');
        }
}
