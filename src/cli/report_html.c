/*
 * Reports as one page: nothing in it asks anybody for anything, and no script is needed to read it.
 */
#include "cli/report.h"

#include <math.h>

enum { PLOT_WIDTH = 160, PLOT_HEIGHT = 14 };

static const char head[] = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                           "style-src 'unsafe-inline'\">\n";

static const char style[] =
        "<style>\n"
        ":root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #57606a; --line: "
        "#d0d7de; --mark: "
        "#0b5cad; --band: #b6d4f0; --note: #7a4b00; }\n"
        "@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9aa4ae; "
        "--line: "
        "#30363d; --mark: #79b8ff; --band: #1f4a73; --note: #e3b341; } }\n"
        "body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); "
        "max-width: 75rem; "
        "margin: 2rem auto; padding: 0 1rem; }\n"
        "h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }\n"
        "dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: "
        "var(--soft); } dd { "
        "margin: 0; }\n"
        ".wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; "
        "}\n"
        "th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; "
        "vertical-align: top; }\n"
        "th { color: var(--soft); font-weight: 600; } .n { text-align: right; white-space: nowrap; }\n"
        ".label { border: 1px solid var(--note); color: var(--note); border-radius: .3rem; padding: 0 .4rem; "
        "font-size: "
        ".8rem; }\n"
        ".note { color: var(--note); } svg { display: block; } .band { fill: var(--band); } .mark { fill: "
        "var(--mark); }\n"
        "</style>\n";

static void add_escaped(struct buf *out, const char *text)
{
        for (; *text; text++)
                switch (*text) {
                case '&':
                        buf_adds(out, "&amp;");
                        break;
                case '<':
                        buf_adds(out, "&lt;");
                        break;
                case '>':
                        buf_adds(out, "&gt;");
                        break;
                case '"':
                        buf_adds(out, "&quot;");
                        break;
                default:
                        buf_addc(out, *text);
                }
}

static void add_element(struct buf *out, const char *begin, const char *text, const char *end)
{
        buf_adds(out, begin);
        add_escaped(out, text);
        buf_adds(out, end);
}

/* The range of a column's intervals; false: it has none to draw. */
static bool range_of(const struct report_table *t, size_t column, double *low, double *high)
{
        *low = INFINITY;
        *high = -INFINITY;
        for (size_t i = 0; i < t->n_rows; i++) {
                const struct report_value *v = report_cell(t, i, column);

                if (!v->is_number || isnan(v->low) || isnan(v->high))
                        continue;
                *low = fmin(*low, v->low);
                *high = fmax(*high, v->high);
        }
        return t->n_rows > 1 && *high > *low;
}

/* Where the value is between its interval's ends, on the scale of its column. */
static void add_plot(struct buf *out, const struct report_value *v, double low, double high)
{
        double scale = PLOT_WIDTH / (high - low), x = (v->low - low) * scale, w = (v->high - v->low) * scale;

        buf_printf(out,
                   "<svg width=\"%d\" height=\"%d\" aria-hidden=\"true\"><rect class=\"band\" x=\"%.1f\" "
                   "y=\"4\" "
                   "width=\"%.1f\" height=\"6\"/><rect class=\"mark\" x=\"%.1f\" y=\"1\" width=\"2\" "
                   "height=\"12\"/></svg>",
                   PLOT_WIDTH, PLOT_HEIGHT, x, fmax(w, 1), fmin((v->number - low) * scale, PLOT_WIDTH - 2));
}

static void add_cell(struct buf *out, struct arena *a, const struct report_table *t, size_t row,
                     size_t column)
{
        const struct report_value *v = report_cell(t, row, column);
        double low, high;

        buf_adds(out, report_is_numeric(t->columns[column]) ? "<td class=\"n\">" : "<td>");
        add_escaped(out, report_text_of(a, v));
        if (v->is_number && !isnan(v->low) && !isnan(v->high) && range_of(t, column, &low, &high))
                add_plot(out, v, low, high);
        buf_adds(out, "</td>");
}

static void add_table(struct buf *out, struct arena *a, const struct report_table *t)
{
        add_element(out, "<section>\n<h2>", t->title, "</h2>\n<div class=\"wide\"><table>\n<thead><tr>");
        for (size_t i = 0; i < t->n_columns; i++)
                add_element(out,
                            report_is_numeric(t->columns[i]) ? "<th scope=\"col\" class=\"n\">"
                                                             : "<th scope=\"col\">",
                            t->columns[i]->title, "</th>");
        buf_adds(out, "</tr></thead>\n<tbody>\n");
        for (size_t row = 0; row < t->n_rows; row++) {
                buf_adds(out, "<tr>");
                for (size_t i = 0; i < t->n_columns; i++)
                        add_cell(out, a, t, row, i);
                buf_adds(out, "</tr>\n");
        }
        buf_adds(out, "</tbody>\n</table></div>\n</section>\n");
}

void report_write_html(const struct report *r, struct arena *a, struct buf *out)
{
        const char *title = *r->title ? r->title : "Comparison";

        buf_adds(out, head);
        add_element(out, "<title>", title, "</title>\n");
        buf_adds(out, style);
        add_element(out, "</head>\n<body>\n<main>\n<h1>", title, "");
        if (r->origin)
                add_element(out, " <span class=\"label\">", r->origin, "</span>");
        buf_adds(out, "</h1>\n<dl>\n");
        vec_foreach (f, &r->facts) {
                add_element(out, "<dt>", f->field->title, "</dt>");
                add_element(out, "<dd>", report_text_of(a, &f->value), "</dd>\n");
        }
        buf_adds(out, "</dl>\n");
        vec_foreach (note, &r->notes)
                add_element(out, "<p class=\"note\">", *note, "</p>\n");
        vec_foreach (t, &r->tables)
                add_table(out, a, t);
        buf_adds(out, "</main>\n</body>\n</html>\n");
}
