#include "probe/load/export_internal.h"

/* AIPerf's file: a table of statistics, a table of single values, both by tag, lines ended as Python's csv module does. */

#define END "\r\n"

static void add_name(struct buf *out, const char *header, const char *unit)
{
        buf_adds(out, header);
        if (!streq(unit, "requests"))
                buf_printf(out, " (%s)", unit);
}

/* Quoted, with quotes in it doubled. */
static void add_text(struct buf *out, const char *text)
{
        buf_addc(out, '"');
        for (; *text; text++) {
                if (*text == '"')
                        buf_addc(out, '"');
                buf_addc(out, *text == '\n' || *text == '\r' ? ' ' : *text);
        }
        buf_addc(out, '"');
}

static void add_statistics(struct buf *out, enum load_metric metric, const struct stats_summary *s)
{
        add_name(out, load_metrics[metric].header, load_metrics[metric].unit);
        buf_printf(out, ",%.2f,%.2f,%.2f", s->avg, s->min, s->max);
        for (int i = 0; i < STATS_PERCENTS_; i++)
                buf_printf(out, ",%.2f", s->p[i]);
        buf_printf(out, ",%.2f" END, s->std);
}

static int by_tag(const void *a, const void *b)
{
        return strcmp(load_metrics[*(const int *)a].tag, load_metrics[*(const int *)b].tag);
}

static void add_metrics(struct buf *out, const struct load_summary *s)
{
        int order[LOAD_METRICS_];

        for (int i = 0; i < LOAD_METRICS_; i++)
                order[i] = i;
        qsort(order, LOAD_METRICS_, sizeof(order[0]), by_tag);
        buf_adds(out, "Metric,avg,min,max");
        for (int i = 0; i < STATS_PERCENTS_; i++)
                buf_printf(out, ",p%u", stats_percents[i]);
        buf_adds(out, ",std" END);
        for (int i = 0; i < LOAD_METRICS_; i++)
                if (s->metrics[order[i]].n)
                        add_statistics(out, (enum load_metric)order[i], &s->metrics[order[i]]);
        buf_adds(out, END);
}

void load_csv(const struct load_config *c, const struct load_report *r, struct buf *out)
{
        struct load_single singles[LOAD_SINGLES_MAX];
        size_t n = load_singles(c, &r->summary, singles);

        if (r->summary.n_requests)
                add_metrics(out, &r->summary);
        buf_adds(out, "Metric,Value" END);
        for (size_t i = 0; i < n; i++) {
                add_name(out, singles[i].header, singles[i].unit);
                buf_printf(out, ",%.2f" END, singles[i].value);
        }
        if (!r->invalid && !load_simulated(c, r))
                return;
        buf_adds(out, END END "Sonde,Value" END);
        if (load_simulated(c, r))
                buf_adds(out, "Simulated,true" END);
        if (r->invalid) {
                buf_adds(out, "Invalid,");
                add_text(out, r->invalid);
                buf_adds(out, END);
        }
}
