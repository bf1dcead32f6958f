#include "probe/sla/svg.h"

#include <math.h>

enum {
        LEFT = 92,
        RIGHT = 28,
        TOP = 78,
        BOTTOM = 60,
        LEGEND = 172, /* its width */
        TICKS = 6,
        TONES = 7,
        SHAPES = 6,
        BOXES = 128,
        LINE = 20,
};

/* ---- text */

void svg_text(struct buf *out, const char *text)
{
        static const struct {
                char c;
                const char *entity;
        } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

        for (; text && *text; text++) {
                const char *entity = NULL;

                /* U+FFFE and U+FFFF, which XML has not */
                if (strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0) {
                        buf_addc(out, ' ');
                        text += 2;
                        continue;
                }
                for (size_t i = 0; i < ARRAY_LEN(entities); i++)
                        if (*text == entities[i].c)
                                entity = entities[i].entity;
                if (entity)
                        buf_adds(out, entity);
                else
                        buf_addc(out, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
        }
}

double svg_step(double span, unsigned n)
{
        double raw, power, f;

        if (!isfinite(span) || span <= 0 || n == 0)
                return 1;
        raw = span / n;
        power = pow(10, floor(log10(raw)));
        f = raw / power;
        return power * (f < 1.5 ? 1 : f < 3.2 ? 2 : f < 7.1 ? 5 : 10);
}

void svg_number(struct buf *out, double value, double step)
{
        int decimals = step > 0 && step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
        char text[64];
        int n;
        size_t whole, sign;

        if (!isfinite(value) || fabs(value) >= 1e15) {
                buf_printf(out, "%.3g", value);
                return;
        }
        n = snprintf(text, sizeof(text), "%.*f", MIN(decimals, 9), value);
        if (strspn(text, "-0.") == (size_t)n && text[0] == '-') /* no -0 */
                memmove(text, text + 1, (size_t)n);
        sign = text[0] == '-';
        whole = strcspn(text, ".");
        for (size_t i = 0; text[i]; i++) {
                if (i > sign && i < whole && (whole - i) % 3 == 0)
                        buf_adds(out, "\xc2\xa0"); /* a blank at which no line breaks */
                buf_addc(out, text[i]);
        }
}

/* ---- axes */

struct axis {
        double min, max, step;
        bool log, filled;
        double from, to; /* in the picture */
};

static void cover(struct axis *a, double value)
{
        if (!isfinite(value))
                return;
        a->min = a->filled ? MIN(a->min, value) : value;
        a->max = a->filled ? MAX(a->max, value) : value;
        a->filled = true;
}

/* A target far beyond all that was measured would press the points into a corner: it is told at the edge instead. */
static void cover_target(struct axis *a, const struct svg_target *t)
{
        if (t->side != SVG_NONE && isfinite(t->at) && a->filled && t->at <= 2.5 * a->max &&
            t->at >= a->min / 2.5)
                cover(a, t->at);
}

static void finish(struct axis *a, bool may_be_log)
{
        if (!a->filled)
                a->min = 0, a->max = 1;
        a->log = may_be_log && a->min > 0 && a->max / a->min > SVG_LOG_SPAN;
        if (a->log) {
                a->min = pow(10, floor(log10(a->min) + 1e-9));
                a->max *= 1.15;
                return;
        }
        if (a->min > 0)
                a->min = 0;
        if (a->max <= a->min)
                a->max = a->min + 1;
        a->max += (a->max - a->min) * 0.06;
        a->step = svg_step(a->max - a->min, TICKS);
}

static double place(const struct axis *a, double value)
{
        double share = a->log ? log(MAX(value, a->min / 10) / a->min) / log(a->max / a->min)
                              : (value - a->min) / (a->max - a->min);

        return a->from + share * (a->to - a->from);
}

/* The tick after VALUE; the first is the axis's least. */
static double next_tick(const struct axis *a, double value, unsigned i)
{
        double power;

        if (!a->log)
                return ceil(a->min / a->step - 1e-9) * a->step + (i + 1) * a->step;
        power = pow(10, floor(log10(value) + 1e-9));
        return value < 1.5 * power ? 2 * power : value < 3.5 * power ? 5 * power : 10 * power;
}

static double first_tick(const struct axis *a)
{
        return a->log ? a->min : ceil(a->min / a->step - 1e-9) * a->step;
}

/* ---- the sheet */

struct box {
        double x, y, w, h;
};

struct sheet {
        const struct svg_plot *p;
        struct buf *out;
        struct axis x, y;
        bool legend;
        struct box boxes[BOXES]; /* where there is something that a label must not cover */
        size_t n_boxes;
};

static void find_axes(struct sheet *s)
{
        const struct svg_plot *p = s->p;
        size_t named = 0;

        for (size_t i = 0; i < p->n; i++) {
                named += p->series[i].name != NULL;
                for (size_t k = 0; k < p->series[i].n; k++)
                        if (isfinite(p->series[i].x[k]) && isfinite(p->series[i].y[k])) {
                                cover(&s->x, p->series[i].x[k]);
                                cover(&s->y, p->series[i].y[k]);
                        }
        }
        s->legend = named > 1; /* one needs no telling apart */
        cover_target(&s->x, &p->x_target);
        cover_target(&s->y, &p->y_target);
        finish(&s->x, p->log_x);
        finish(&s->y, p->log_y);
        s->x.from = LEFT;
        s->x.to = SVG_WIDTH - RIGHT - (s->legend ? LEGEND : 0);
        s->y.from = SVG_HEIGHT - BOTTOM;
        s->y.to = TOP;
}

/* Both modes, in the picture itself; inside a page all pictures say the same. No variables: not every viewer has them. */
static const char STYLE[] =
        ".sp{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px}"
        ".sp-bg{fill:#fff}.sp-ink{fill:#1c2126}.sp-soft{fill:#59636e}.sp-title{font-size:17px;font-weight:"
        "600}"
        ".sp-bold{font-weight:600}.sp-small{font-size:12px}"
        ".sp-grid{stroke:#e3e6ea;stroke-width:1}.sp-axis{stroke:#8b949e;stroke-width:1}"
        ".sp-target{stroke:#b3261e;stroke-width:1.5;stroke-dasharray:6 4}.sp-target-ink{fill:#b3261e}"
        ".sp-miss{fill:#b3261e;fill-opacity:.06}.sp-ring{fill:none;stroke:#1c2126;stroke-width:2}"
        ".sp-halo{stroke:#fff;stroke-width:3.5;paint-order:stroke;stroke-linejoin:round}"
        ".sp-sim{fill:none;stroke:#9a4b00;stroke-width:1.5}.sp-sim-ink{fill:#9a4b00;font-weight:700}"
        ".sp-line{fill:none;stroke-width:2;stroke-linejoin:round}.sp-dash{stroke-dasharray:5 4}"
        ".sp-mark{stroke:#fff;stroke-width:1}.sp-hollow{fill:#fff;stroke-width:1.6}"
        ".sp-f0{fill:#0072b2}.sp-s0{stroke:#0072b2}"
        ".sp-f1{fill:#d55e00}.sp-s1{stroke:#d55e00}"
        ".sp-f2{fill:#009e73}.sp-s2{stroke:#009e73}"
        ".sp-f3{fill:#a85b88}.sp-s3{stroke:#a85b88}"
        ".sp-f4{fill:#c58b00}.sp-s4{stroke:#c58b00}"
        ".sp-f5{fill:#2f9fd8}.sp-s5{stroke:#2f9fd8}"
        ".sp-f6{fill:#4d4d4d}.sp-s6{stroke:#4d4d4d}"
        ".sp-fo0{fill:#440154}.sp-so0{stroke:#440154}"
        ".sp-fo1{fill:#46327e}.sp-so1{stroke:#46327e}"
        ".sp-fo2{fill:#365c8d}.sp-so2{stroke:#365c8d}"
        ".sp-fo3{fill:#277f8e}.sp-so3{stroke:#277f8e}"
        ".sp-fo4{fill:#1fa187}.sp-so4{stroke:#1fa187}"
        ".sp-fo5{fill:#4ac16d}.sp-so5{stroke:#4ac16d}"
        ".sp-fo6{fill:#8fc93a}.sp-so6{stroke:#8fc93a}"
        "@media(prefers-color-scheme:dark){"
        ".sp-bg{fill:#14181d}.sp-ink{fill:#e6e9ec}.sp-soft{fill:#a3adb8}.sp-grid{stroke:#2b323a}"
        ".sp-axis{stroke:#6b7580}.sp-target{stroke:#ff8a80}.sp-target-ink{fill:#ff8a80}"
        ".sp-miss{fill:#ff8a80;fill-opacity:.08}.sp-ring{stroke:#e6e9ec}.sp-halo{stroke:#14181d}"
        ".sp-sim{stroke:#ffb86b}.sp-sim-ink{fill:#ffb86b}.sp-mark{stroke:#14181d}.sp-hollow{fill:#14181d}"
        ".sp-f0{fill:#4aa8e8}.sp-s0{stroke:#4aa8e8}"
        ".sp-f1{fill:#f58235}.sp-s1{stroke:#f58235}"
        ".sp-f2{fill:#2fc79b}.sp-s2{stroke:#2fc79b}"
        ".sp-f3{fill:#dd96bd}.sp-s3{stroke:#dd96bd}"
        ".sp-f4{fill:#f0b429}.sp-s4{stroke:#f0b429}"
        ".sp-f5{fill:#8fd3ff}.sp-s5{stroke:#8fd3ff}"
        ".sp-f6{fill:#bdbdbd}.sp-s6{stroke:#bdbdbd}"
        ".sp-fo0{fill:#8f7fe0}.sp-so0{stroke:#8f7fe0}"
        ".sp-fo1{fill:#6f97de}.sp-so1{stroke:#6f97de}"
        ".sp-fo2{fill:#4fb0cf}.sp-so2{stroke:#4fb0cf}"
        ".sp-fo3{fill:#37c5ae}.sp-so3{stroke:#37c5ae}"
        ".sp-fo4{fill:#63d384}.sp-so4{stroke:#63d384}"
        ".sp-fo5{fill:#a8dc45}.sp-so5{stroke:#a8dc45}"
        ".sp-fo6{fill:#f2e34c}.sp-so6{stroke:#f2e34c}"
        "}";

/* What follows a tone in the names of its classes. */
static unsigned tone_of(const struct svg_plot *p, const struct svg_series *s)
{
        if (!p->ordered)
                return s->tone % TONES;
        return p->n_tones > TONES ? s->tone * TONES / p->n_tones : MIN(s->tone, TONES - 1u);
}

static void add_class(struct sheet *s, const struct svg_series *series, char kind)
{
        buf_printf(s->out, "sp-%c%s%u", kind, s->p->ordered ? "o" : "", tone_of(s->p, series));
}

static void text_at(struct sheet *s, double x, double y, const char *anchor, const char *class,
                    const char *text)
{
        buf_printf(s->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
                   class);
        svg_text(s->out, text);
        buf_adds(s->out, "</text>\n");
}

static void line_at(struct sheet *s, const char *class, double x1, double y1, double x2, double y2)
{
        buf_printf(s->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
                   x1, y1, x2, y2);
}

/* ---- what stands around the points */

static void draw_head(struct sheet *s)
{
        const struct svg_plot *p = s->p;

        buf_printf(s->out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                   "height=\"%d\" class=\"sp\" role=\"img\">\n<title>",
                   SVG_WIDTH, SVG_HEIGHT, SVG_WIDTH, SVG_HEIGHT);
        svg_text(s->out, p->title);
        if (p->simulated)
                buf_adds(s->out, " (simulated)");
        buf_printf(s->out, "</title>\n<style>%s</style>\n", STYLE);
        buf_printf(s->out, "<rect class=\"sp-bg\" width=\"%d\" height=\"%d\"/>\n", SVG_WIDTH, SVG_HEIGHT);
        text_at(s, 20, 32, "start", "sp-ink sp-title", p->title);
        if (p->note)
                text_at(s, 20, 53, "start", "sp-soft", p->note);
        if (p->simulated) {
                buf_printf(s->out,
                           "<rect class=\"sp-sim\" x=\"%d\" y=\"14\" width=\"104\" height=\"24\" "
                           "rx=\"4\"/>\n",
                           SVG_WIDTH - RIGHT - 104);
                text_at(s, SVG_WIDTH - RIGHT - 52, 31, "middle", "sp-sim-ink", "SIMULATED");
        }
}

static void draw_tick(struct sheet *s, const struct axis *a, double value)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(64);
        double at = place(a, value);
        bool is_x = a == &s->x;

        svg_number(&text, value, a->log ? value : a->step);
        if (is_x) {
                line_at(s, "sp-grid", at, s->y.from, at, s->y.to);
                text_at(s, at, s->y.from + 19, "middle", "sp-soft sp-small", buf_cstr(&text));
        } else {
                line_at(s, "sp-grid", s->x.from, at, s->x.to, at);
                text_at(s, s->x.from - 8, at + 4, "end", "sp-soft sp-small", buf_cstr(&text));
        }
}

static void draw_axes(struct sheet *s)
{
        const struct axis *axes[] = {&s->x, &s->y};
        double middle = (s->y.from + s->y.to) / 2;

        for (size_t i = 0; i < ARRAY_LEN(axes); i++) {
                double tick = first_tick(axes[i]);

                for (unsigned k = 0; tick <= axes[i]->max * (1 + 1e-9) && k < 40; k++) {
                        draw_tick(s, axes[i], tick);
                        tick = next_tick(axes[i], tick, k);
                }
        }
        line_at(s, "sp-axis", s->x.from, s->y.from, s->x.to, s->y.from);
        line_at(s, "sp-axis", s->x.from, s->y.from, s->x.from, s->y.to);
        text_at(s, (s->x.from + s->x.to) / 2, s->y.from + 44, "middle", "sp-ink", s->p->x_label);
        buf_printf(s->out,
                   "<text transform=\"translate(22 %.1f) rotate(-90)\" text-anchor=\"middle\" "
                   "class=\"sp-ink\">",
                   middle);
        svg_text(s->out, s->p->y_label);
        buf_adds(s->out, "</text>\n");
}

/* ---- targets */

static void shade(struct sheet *s, double x1, double y1, double x2, double y2)
{
        if (x2 - x1 > 0.5 && y2 - y1 > 0.5)
                buf_printf(s->out,
                           "<rect class=\"sp-miss\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                           x1, y1, x2 - x1, y2 - y1);
}

/* Beyond the axis: an arrow at its end says where. */
static void draw_x_target(struct sheet *s, const struct svg_target *t)
{
        bool right = t->at > s->x.max, left = t->at < s->x.min;
        double at = right ? s->x.to : left ? s->x.from : place(&s->x, t->at);
        char label[128];

        if (t->side == SVG_NONE || !isfinite(t->at))
                return;
        snprintf(label, sizeof(label), "%s%s%s", left ? "\xe2\x86\x90 " : "", t->label ? t->label : "",
                 right ? " \xe2\x86\x92" : "");
        if (t->side == SVG_AT_MOST)
                shade(s, at, s->y.to, s->x.to, s->y.from);
        else
                shade(s, s->x.from, s->y.to, at, s->y.from);
        if (!right && !left)
                line_at(s, "sp-target", at, s->y.from, at, s->y.to);
        text_at(s, at, s->y.to - 7,
                at > s->x.to - 70     ? "end"
                : at < s->x.from + 70 ? "start"
                                      : "middle",
                "sp-target-ink sp-small", label);
}

/* Where the line of the target is, or the end of the axis that is nearer to it. */
static double y_target_at(const struct sheet *s, const struct svg_target *t)
{
        return t->at > s->y.max ? s->y.to : t->at < s->y.min ? s->y.from : place(&s->y, t->at);
}

static void draw_y_target(struct sheet *s, const struct svg_target *t)
{
        double at = y_target_at(s, t);

        if (t->side == SVG_NONE || !isfinite(t->at))
                return;
        if (t->side == SVG_AT_MOST)
                shade(s, s->x.from, s->y.to, s->x.to, at);
        else
                shade(s, s->x.from, at, s->x.to, s->y.from);
        if (t->at <= s->y.max && t->at >= s->y.min)
                line_at(s, "sp-target", s->x.from, at, s->x.to, at);
}

/* ---- points */

static bool is_point(const struct svg_series *series, size_t i)
{
        return isfinite(series->x[i]) && isfinite(series->y[i]);
}

/* Six shapes of about the same weight. */
static void draw_mark(struct sheet *s, const struct svg_series *series, double x, double y, bool hollow)
{
        static const char *const paths[SHAPES] = {
                "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", /* circle */
                "M-4.5-4.5h9v9h-9z",                    /* square */
                "M0-6L5.5 4H-5.5z",                     /* triangle */
                "M0-6.2L6.2 0L0 6.2L-6.2 0z",           /* diamond */
                "M0 6L5.5-4H-5.5z",                     /* triangle upside down */
                "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",    /* cross */
        };

        buf_printf(s->out, "<path class=\"%s ", hollow ? "sp-hollow" : "sp-mark");
        add_class(s, series, hollow ? 's' : 'f');
        buf_printf(s->out, "\" transform=\"translate(%.1f %.1f)\" d=\"%s\"/>\n", x, y,
                   paths[series->tone % SHAPES]);
}

static void draw_line(struct sheet *s, const struct svg_series *series)
{
        bool down = false;

        buf_printf(s->out, "<path class=\"sp-line%s ", series->dashed ? " sp-dash" : "");
        add_class(s, series, 's');
        buf_adds(s->out, "\" d=\"");
        for (size_t i = 0; i < series->n; i++) {
                if (!is_point(series, i))
                        continue;
                buf_printf(s->out, "%c%.1f %.1f", down ? 'L' : 'M', place(&s->x, series->x[i]),
                           place(&s->y, series->y[i]));
                down = true;
        }
        buf_adds(s->out, "\"/>\n");
}

static void draw_series(struct sheet *s)
{
        for (size_t i = 0; i < s->p->n; i++)
                if (s->p->series[i].line)
                        draw_line(s, &s->p->series[i]);
        for (size_t i = 0; i < s->p->n; i++) {
                const struct svg_series *series = &s->p->series[i];

                for (size_t k = 0; series->marks && k < series->n; k++)
                        if (is_point(series, k))
                                draw_mark(s, series, place(&s->x, series->x[k]), place(&s->y, series->y[k]),
                                          series->hollow && series->hollow[k]);
        }
}

/* ---- labels: where they cover neither each other nor a mark */

static void take(struct sheet *s, struct box b)
{
        if (s->n_boxes < BOXES)
                s->boxes[s->n_boxes++] = b;
}

static bool is_free(const struct sheet *s, struct box b)
{
        if (b.x < s->x.from + 2 || b.x + b.w > s->x.to + (s->legend ? 0 : RIGHT - 4) || b.y < s->y.to + 2 ||
            b.y + b.h > s->y.from - 2)
                return false;
        for (size_t i = 0; i < s->n_boxes; i++) {
                const struct box *o = &s->boxes[i];

                if (b.x < o->x + o->w && o->x < b.x + b.w && b.y < o->y + o->h && o->y < b.y + b.h)
                        return false;
        }
        return true;
}

/* About as wide as it is drawn; bold ones are wider. */
static double width_of(const char *text, const char *class)
{
        size_t chars = 0;

        for (const char *c = text; *c; c++)
                chars += (*c & 0xc0) != 0x80;
        return (double)chars * (strstr(class, "sp-bold") ? 8.4 : 6.9);
}

/* At the first of TRIES that is free; none: left out, for the tables have it, too. */
static void label_in(struct sheet *s, const struct box *tries, size_t n, const char *text, const char *class)
{
        for (size_t i = 0; i < n; i++)
                if (is_free(s, tries[i])) {
                        take(s, tries[i]);
                        text_at(s, tries[i].x + tries[i].w / 2, tries[i].y + 12, "middle", class, text);
                        return;
                }
}

/* Right of the point, left, above, below, and further away. */
static void label_at(struct sheet *s, double x, double y, const char *text, const char *class, double gap)
{
        double w = width_of(text, class);
        const struct box tries[] = {
                {x + gap, y - 8, w, 15},          {x - gap - w, y - 8, w, 15},
                {x - w / 2, y - gap - 15, w, 15}, {x - w / 2, y + gap, w, 15},
                {x + gap, y - gap - 12, w, 15},   {x - gap - w, y - gap - 12, w, 15},
                {x + gap, y + gap - 2, w, 15},    {x - gap - w, y + gap - 2, w, 15},
        };

        label_in(s, tries, ARRAY_LEN(tries), text, class);
}

/* Above or below the line, at its ends or in between. */
static void label_y_target(struct sheet *s, const struct svg_target *t)
{
        static const char class[] = "sp-target-ink sp-small sp-halo";
        const char *arrow = t->at > s->y.max ? "\xe2\x86\x91 " : t->at < s->y.min ? "\xe2\x86\x93 " : "";
        double at = y_target_at(s, t), w, span = s->x.to - s->x.from;
        struct box tries[10];
        char label[128];

        if (t->side == SVG_NONE || !isfinite(t->at))
                return;
        snprintf(label, sizeof(label), "%s%s", arrow, t->label ? t->label : "");
        w = width_of(label, class);
        for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
                size_t pair = i / 2;

                tries[i] = (struct box){s->x.to - 6 - w - span * 0.22 * (double)pair,
                                        i % 2 ? at + 4 : at - 18, w, 15};
        }
        label_in(s, tries, ARRAY_LEN(tries), label, class);
}

static void take_marks(struct sheet *s)
{
        for (size_t i = 0; i < s->p->n; i++) {
                const struct svg_series *series = &s->p->series[i];

                for (size_t k = 0; series->marks && k < series->n; k++)
                        if (is_point(series, k))
                                take(s, (struct box){place(&s->x, series->x[k]) - 6,
                                                     place(&s->y, series->y[k]) - 6, 12, 12});
        }
}

/* It has a label of its own. */
static bool is_chosen(const struct svg_plot *p, const struct svg_series *series, size_t i)
{
        return p->has_chosen && p->chosen && p->chosen_x == series->x[i] && p->chosen_y == series->y[i];
}

static void draw_labels(struct sheet *s)
{
        const struct svg_plot *p = s->p;

        take_marks(s);
        label_y_target(s, &p->y_target);
        if (p->has_chosen && isfinite(p->chosen_x) && isfinite(p->chosen_y)) {
                double x = place(&s->x, p->chosen_x), y = place(&s->y, p->chosen_y);

                buf_printf(s->out, "<circle class=\"sp-ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"10\"/>\n", x, y);
                if (p->chosen)
                        label_at(s, x, y, p->chosen, "sp-ink sp-bold sp-halo", 14);
        }
        for (size_t i = 0; i < p->n; i++) {
                const struct svg_series *series = &p->series[i];

                for (size_t k = 0; series->labels && k < series->n; k++)
                        if (series->labels[k] && is_point(series, k) && !is_chosen(p, series, k))
                                label_at(s, place(&s->x, series->x[k]), place(&s->y, series->y[k]),
                                         series->labels[k], "sp-soft sp-small sp-halo", 10);
        }
}

/* ---- the legend */

static void draw_entry(struct sheet *s, const struct svg_series *series, double x, double y)
{
        if (series->line) {
                buf_printf(s->out, "<path class=\"sp-line%s ", series->dashed ? " sp-dash" : "");
                add_class(s, series, 's');
                buf_printf(s->out, "\" d=\"M%.1f %.1fh22\"/>\n", x, y - 4);
        }
        if (series->marks)
                draw_mark(s, series, x + 11, y - 4, series->hollow && series->n == 0);
        text_at(s, x + 30, y, "start", "sp-ink sp-small", series->name);
}

static void draw_legend(struct sheet *s)
{
        double x = s->x.to + 18, y = s->y.to + 12;
        size_t shown = 0, more = 0;

        if (!s->legend)
                return;
        if (s->p->legend) {
                text_at(s, x, y, "start", "sp-soft sp-small", s->p->legend);
                y += LINE;
        }
        for (size_t i = 0; i < s->p->n; i++) {
                if (!s->p->series[i].name)
                        continue;
                if (shown == SVG_LEGEND_MAX) {
                        more++;
                        continue;
                }
                shown++;
                draw_entry(s, &s->p->series[i], x, y);
                y += LINE;
        }
        if (more) {
                char text[64];

                snprintf(text, sizeof(text), "and %zu more", more);
                text_at(s, x, y, "start", "sp-soft sp-small", text);
        }
}

void svg_draw(const struct svg_plot *p, struct buf *out)
{
        struct sheet s = {.p = p, .out = out};

        find_axes(&s);
        draw_head(&s);
        draw_axes(&s);
        draw_x_target(&s, &p->x_target);
        draw_y_target(&s, &p->y_target);
        draw_series(&s);
        draw_labels(&s);
        draw_legend(&s);
        buf_adds(out, "</svg>\n");
}
