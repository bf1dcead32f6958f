/*
 * The report: one page without scripts. The decision comes first, then what it rests on.
 */
#include <math.h>

#include "probe/sla/output_internal.h"
#include "probe/sla/svg.h"

static const char STYLE[] =
        ":root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1c2126;--soft:#59636e;--line:#dfe3e8;"
        "--good:#0a6b4b;--bad:#b3261e;--warn:#9a4b00;--pick:#eaf3fb}"
        "@media(prefers-color-scheme:dark){:root{--bg:#0d1014;--card:#14181d;--ink:#e6e9ec;--soft:#a3adb8;"
        "--line:#2b323a;--good:#4cc89b;--bad:#ff8a80;--warn:#ffb86b;--pick:#17293a}}"
        "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
        "font:15px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
        "main{max-width:1000px;margin:0 auto;padding:28px 20px 60px}"
        "h1{font-size:24px;margin:0 0 2px;overflow-wrap:anywhere}h2{font-size:18px;margin:34px 0 10px}"
        "p{margin:0 0 10px}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}"
        ".tag{display:inline-block;border:1.5px solid var(--warn);color:var(--warn);border-radius:4px;"
        "padding:0 "
        "8px;font-size:13px;font-weight:700;letter-spacing:.04em;vertical-align:4px;margin-left:8px}"
        ".verdict{font-size:17px;font-weight:600;margin:18px 0 12px}"
        ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(270px,1fr));gap:14px}"
        ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 18px}"
        ".card h3{margin:0;font-size:14px;font-weight:600;color:var(--soft)}"
        ".card .big{font-size:26px;font-weight:650;margin:2px 0 6px}.card p{margin:0}"
        "figure{margin:0 0 16px;background:var(--card);border:1px solid var(--line);border-radius:8px;"
        "overflow:hidden}figure svg{display:block;width:100%;height:auto}"
        ".wide{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}"
        "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
        "th,td{padding:6px 14px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
        "tr:last-child td{border-bottom:0}th{font-size:13px;font-weight:600;color:var(--soft)}"
        "th:first-child,td:first-child{text-align:left}tr.pick td{background:var(--pick);font-weight:600}"
        "ul{margin:0;padding-left:20px}details{margin-top:14px}summary{cursor:pointer;font-weight:600;"
        "padding:4px 0 8px}@media print{figure,.card{break-inside:avoid}}";

struct page {
        struct arena *arena;
        const struct sla_results *r;
        struct buf *out;
};

static void add(const struct page *p, const char *markup)
{
        buf_adds(p->out, markup);
}

/* All that is not ours goes through here. */
static void text(const struct page *p, const char *fmt, ...) _printf_(2, 3);
static void text(const struct page *p, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        svg_text(p->out, arena_vprintf(p->arena, fmt, ap));
        va_end(ap);
}

static const char *fig(const struct page *p, double value)
{
        return sla_figure(p->arena, value);
}

/* ---- the decision */

static double target_of(const struct page *p, enum sla_role role)
{
        return role == SLA_PREFILL ? p->r->config->ttft : p->r->config->itl;
}

static bool is_met(const struct page *p, enum sla_role role)
{
        return role == SLA_PREFILL ? p->r->chosen_prefill.feasible : p->r->chosen_decode.feasible;
}

/* One sentence: met or not, and what was taken. */
static void add_verdict(const struct page *p)
{
        bool prefill = is_met(p, SLA_PREFILL), decode = is_met(p, SLA_DECODE);
        const char *what = prefill && decode ? "Both targets are met"
                           : prefill         ? "The target between tokens is missed"
                           : decode          ? "The target for the first token is missed"
                                             : "Both targets are missed";

        if (!sla_chosen_row(p->r, SLA_PREFILL) || !sla_chosen_row(p->r, SLA_DECODE)) {
                add(p, "<p class=\"verdict\">Nothing was measured. The smallest mapping was taken.</p>\n");
                return;
        }
        buf_printf(p->out, "<p class=\"verdict %s\">%s %s.</p>\n", prefill && decode ? "good" : "bad",
                   prefill && decode ? "\xe2\x9c\x93" : "\xe2\x9c\x97", what);
}

/* A faster one was measured: the budget was too small for it. */
static bool is_beaten(const struct page *p, enum sla_role role, const struct sla_row *row)
{
        const struct sla_row *rows = role == SLA_PREFILL ? p->r->prefill : p->r->decode;
        size_t n = role == SLA_PREFILL ? p->r->n_prefill : p->r->n_decode;

        for (size_t i = 0; i < n; i++)
                if (rows[i].latency < row->latency)
                        return true;
        return false;
}

/* "28.1 ms of 50 ms: 44 % to spare" */
static void add_margin(const struct page *p, enum sla_role role, const struct sla_row *row)
{
        double target = target_of(p, role), percent = 100 * (row->latency - target) / target;
        const char *name = role == SLA_PREFILL ? "Time to first token" : "Inter-token latency";

        add(p, "<p>");
        text(p, "%s %s ms, target %s ms: ", name, fig(p, row->latency), fig(p, target));
        buf_printf(p->out, "<strong class=\"%s\">", is_met(p, role) ? "good" : "bad");
        if (is_met(p, role))
                text(p, "%s %% to spare", fig(p, floor(MAX(-percent, 0.0))));
        else
                text(p, "missed by %s ms (%s %%), and none %s is faster", fig(p, row->latency - target),
                     fig(p, ceil(MAX(percent, 0.0))),
                     is_beaten(p, role, row) ? "that fits into the budget" : "measured");
        add(p, "</strong></p>\n");
}

static void add_choice(const struct page *p, enum sla_role role)
{
        const struct sla_row *row = sla_chosen_row(p->r, role);
        struct sla_candidate c = sla_chosen_candidate(p->r, role);

        add(p, "<div class=\"card\"><h3>");
        add(p, role == SLA_PREFILL ? "Prefill" : "Decode");
        add(p, "</h3><p class=\"big\">");
        text(p, "%s", c.label);
        add(p, "</p>\n");
        if (!row) {
                add(p, "<p class=\"soft\">not measured</p></div>\n");
                return;
        }
        add_margin(p, role, row);
        add(p, "<p class=\"soft\">");
        text(p, "%u GPU%s an engine, %s tokens/s/GPU", c.gpus, c.gpus == 1 ? "" : "s",
             fig(p, row->throughput));
        if (role == SLA_DECODE)
                text(p, ", %llu requests at once", (unsigned long long)row->concurrency);
        add(p, "</p></div>\n");
}

static void add_replicas(const struct page *p)
{
        const struct sla_replicas *n = &p->r->replicas;
        double cost = sla_chosen_cost(p->r);

        if (!p->r->has_replicas && cost < 0)
                return;
        add(p, "<div class=\"card\"><h3>Deployment</h3>");
        if (p->r->has_replicas) {
                add(p, "<p class=\"big\">");
                text(p, "%u GPU%s", n->gpus, n->gpus == 1 ? "" : "s");
                add(p, "</p><p>");
                text(p, "%u prefill and %u decode engine%s", n->prefill, n->decode,
                     n->decode == 1 ? "" : "s");
                if (p->r->config->request_rate > 0)
                        text(p, " for %s requests/s", fig(p, p->r->config->request_rate));
                add(p, "</p>\n");
                if (n->capped)
                        add(p, "<p class=\"bad\">The budget of GPUs does not carry the demand.</p>\n");
        }
        if (cost >= 0) {
                add(p, "<p class=\"soft\">");
                text(p, "$%s for 1000 requests, at $%.2f for a GPU and hour", fig(p, cost), SLA_GPU_COST);
                add(p, "</p>\n");
        }
        add(p, "</div>\n");
}

static void add_decision(const struct page *p)
{
        add_verdict(p);
        add(p, "<div class=\"cards\">\n");
        add_choice(p, SLA_PREFILL);
        add_choice(p, SLA_DECODE);
        add_replicas(p);
        add(p, "</div>\n");
        if (p->r->n_notes == 0)
                return;
        add(p, "<h2>To be known</h2>\n<ul>\n");
        for (size_t i = 0; i < p->r->n_notes; i++) {
                add(p, "<li>");
                text(p, "%s", p->r->notes[i]);
                add(p, "</li>\n");
        }
        add(p, "</ul>\n");
}

/* ---- tables */

static void add_row(const struct page *p, const struct sla_row *row, enum sla_role role)
{
        bool good = row->latency <= target_of(p, role);

        buf_printf(p->out, "<tr%s><td>", row == sla_chosen_row(p->r, role) ? " class=\"pick\"" : "");
        text(p, "%s", row->candidate.label);
        buf_printf(p->out, "</td><td>%u</td>", row->candidate.gpus);
        if (role == SLA_DECODE)
                buf_printf(p->out, "<td>%llu</td>", (unsigned long long)row->concurrency);
        buf_printf(p->out, "<td>%s</td><td>%s</td><td class=\"%s\">%s</td></tr>\n", fig(p, row->latency),
                   fig(p, row->throughput), good ? "good" : "bad", good ? "met" : "missed");
}

static void add_table(const struct page *p, enum sla_role role)
{
        const struct sla_row *rows = role == SLA_PREFILL ? p->r->prefill : p->r->decode;
        size_t n = role == SLA_PREFILL ? p->r->n_prefill : p->r->n_decode;

        if (n == 0)
                return;
        buf_printf(p->out,
                   "<details%s><summary>%s: %zu point%s</summary>\n<div class=\"wide\"><table><tr>"
                   "<th>Mapping</th><th>GPUs</th>%s<th>%s (ms)</th><th>Throughput (tokens/s/GPU)</th>"
                   "<th>Target</th></tr>\n",
                   n <= 16 ? " open" : "", role == SLA_PREFILL ? "Prefill sweep" : "Decode sweep", n,
                   n == 1 ? "" : "s", role == SLA_DECODE ? "<th>Concurrency</th>" : "",
                   role == SLA_PREFILL ? "TTFT" : "ITL");
        for (size_t i = 0; i < n; i++)
                add_row(p, &rows[i], role);
        add(p, "</table></div></details>\n");
}

static const char ESTIMATED[] = "estimated"; /* between measured points, by --search adaptive */

static void add_curve_table(const struct page *p)
{
        if (p->r->n_curve == 0)
                return;
        buf_printf(
                p->out,
                "<details><summary>Prefill curve: %zu points</summary>\n<div class=\"wide\"><table><tr>"
                "<th>Input (tokens)</th><th>TTFT (ms)</th><th>Throughput (tokens/s/GPU)</th><th></th></tr>\n",
                p->r->n_curve);
        for (size_t i = 0; i < p->r->n_curve; i++)
                buf_printf(p->out, "<tr><td>%s</td><td>%s</td><td>%s</td><td class=\"soft\">%s</td></tr>\n",
                           fig(p, p->r->prefill_isl[i]), fig(p, p->r->prefill_ttft[i]),
                           fig(p, p->r->prefill_throughput[i]),
                           p->r->prefill_estimated && p->r->prefill_estimated[i] ? ESTIMATED : "");
        add(p, "</table></div></details>\n");
}

static void add_surface_table(const struct page *p)
{
        if (p->r->n_surface == 0)
                return;
        buf_printf(p->out,
                   "<details><summary>Decode curve: %zu points</summary>\n<div class=\"wide\"><table><tr>"
                   "<th>Context (tokens)</th><th>KV cache in use (%%)</th><th>ITL (ms)</th>"
                   "<th>Throughput (tokens/s/GPU)</th><th></th></tr>\n",
                   p->r->n_surface);
        for (size_t i = 0; i < p->r->n_surface; i++) {
                const struct sla_sample *s = &p->r->surface[i];

                buf_printf(
                        p->out,
                        "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td class=\"soft\">%s</td></tr>\n",
                        fig(p, s->context), fig(p, 100 * s->kv_usage), fig(p, s->itl), fig(p, s->throughput),
                        s->estimated ? ESTIMATED : "");
        }
        add(p, "</table></div></details>\n");
}

/* ---- pictures and the rest */

static void add_pictures(const struct page *p)
{
        bool any = false;

        for (size_t i = 0; i < SLA_PICTURES; i++) {
                _cleanup_(buf_done) struct buf svg = BUF_INIT(p->out->max);

                if (!sla_pictures[i].draw(p->arena, p->r, &svg))
                        continue;
                if (!any)
                        add(p, "<h2>Pictures</h2>\n");
                any = true;
                add(p, "<figure>\n");
                buf_addstr(p->out, buf_str(&svg));
                add(p, "</figure>\n");
        }
}

static void add_effort(const struct page *p)
{
        const struct sla_results *r = p->r;

        add(p, "<h2>How it was measured</h2>\n<p>");
        text(p, "%llu points on %llu deployments (target: %s).", (unsigned long long)r->points_measured,
             (unsigned long long)r->deployments, r->target ? r->target : "not said");
        if (r->points_saved || r->deployments_saved)
                text(p, " The adaptive search saved %llu points and %llu deployments.",
                     (unsigned long long)r->points_saved, (unsigned long long)r->deployments_saved);
        if (r->max_kv_tokens)
                text(p, " The chosen decode engine's KV cache holds %s tokens.",
                     fig(p, (double)r->max_kv_tokens));
        add(p, "</p>\n");
}

static void add_head(const struct page *p)
{
        const struct sla_config *c = p->r->config;

        add(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
        text(p, "SLA profile of %s%s", c->model, p->r->simulated ? " (simulated)" : "");
        buf_printf(p->out, "</title>\n<style>%s</style></head>\n<body><main>\n<h1>", STYLE);
        text(p, "SLA profile of %s", c->model);
        if (p->r->simulated)
                add(p, " <span class=\"tag\">SIMULATED</span>");
        add(p, "</h1>\n<p class=\"soft\">");
        text(p, "%s, %s tokens in, %s out, targets: first token %s ms, between tokens %s ms", c->backend,
             fig(p, (double)c->isl), fig(p, (double)c->osl), fig(p, c->ttft), fig(p, c->itl));
        add(p, "</p>\n");
        if (p->r->simulated)
                add(p, "<p><strong>Simulated:</strong> these numbers come from a performance model, not from "
                       "a GPU. Do not deploy by them.</p>\n");
}

void sla_report(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct page p = {.arena = a, .r = r, .out = out};

        add_head(&p);
        add_decision(&p);
        add_pictures(&p);
        if (r->n_prefill + r->n_decode + r->n_curve + r->n_surface > 0)
                add(&p, "<h2>Tables</h2>\n");
        add_table(&p, SLA_PREFILL);
        add_table(&p, SLA_DECODE);
        add_curve_table(&p);
        add_surface_table(&p);
        add_effort(&p);
        add(&p, "</main></body></html>\n");
}
