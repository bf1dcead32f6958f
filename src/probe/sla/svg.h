/*
 * svg.h - small pictures of curves: axes with round ticks, points, lines, targets, labels, a legend.
 *
 * A picture is one SVG file without scripts, fonts or anything from elsewhere; it can also stand inside an HTML page. It is
 * light or dark as its reader's screen is. Colours are those of Okabe and Ito, which colour-blind eyes tell apart, and
 * every series has a mark of its own shape besides; series in order (context lengths) go from dark to light.
 *
 * Points that are not finite are left out. An axis that may be logarithmic is so where its values span more than SVG_LOG_SPAN.
 */
#pragma once

#include "base/base.h"

enum { SVG_WIDTH = 860, SVG_HEIGHT = 480, SVG_LOG_SPAN = 30, SVG_LEGEND_MAX = 16 };

struct svg_series {
        const char *name; /* in the legend; NULL: not in it */
        const double *x, *y;
        size_t n;
        bool line, dashed, marks;
        const bool *
                hollow; /* of each point: its mark is empty; NULL: of none. Without points: the legend's is */
        const char *const *labels; /* beside the marks; NULL: none */
        unsigned tone; /* which colour and shape; for ordered ones: of how many is the plot's n_tones */
};

enum svg_side { SVG_NONE, SVG_AT_MOST, SVG_AT_LEAST };

struct svg_target {
        enum svg_side side; /* of what is good; the other is shaded */
        double at;
        const char *label; /* "target 50 ms" */
};

struct svg_plot {
        const char *title, *note; /* note: a line below it; may be NULL */
        const char *x_label, *y_label;
        bool log_x, log_y; /* may be logarithmic */
        const struct svg_series *series;
        size_t n;
        bool ordered;
        unsigned n_tones;
        const char *legend; /* the legend's head; NULL: none */
        struct svg_target x_target, y_target;
        bool has_chosen;
        double chosen_x, chosen_y;
        const char *chosen; /* its label */
        bool simulated;     /* says so, in the picture */
};

void svg_draw(const struct svg_plot *p, struct buf *out);

/* TEXT for XML and HTML, inside elements and attributes: & < > " ' are escaped, what XML has not becomes a blank. */
void svg_text(struct buf *out, const char *text);
/* VALUE with as many digits as STEP asks for, thousands apart: "12 500", "0.05". */
void svg_number(struct buf *out, double value, double step);
/* A round step of 1, 2 or 5 times a power of ten, so that about N of them make up SPAN. */
double svg_step(double span, unsigned n);
