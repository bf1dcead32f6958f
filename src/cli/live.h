/*
 * live.h - a terminal in which some lines are drawn over and over, and text as a terminal shows it.
 *
 * A frame is a text of whole lines. The lines of the last one are where the cursor left them, at the end of what was printed
 * before; the next one goes over them, line by line, where they differ, as one synchronized update (terminals that know it
 * show nothing half done). There is no alternate screen: what was above stays, and the last frame stays when we go.
 *
 * Lines may have colours in them (ESC [ ... m) and nothing else that steers a terminal: what comes from outside was made
 * clean by text_clean(). Frames and text are pure functions; struct live alone touches a terminal.
 */
#pragma once

#include "net/loop.h"

/* ---- text */

/* How many columns it takes; colours take none. */
unsigned live_width(struct str s);
/* Adds S, cut to COLUMNS with "…" at the end where it is longer; colours behind the cut stay, so that they end. */
void live_text(struct buf *out, struct str s, unsigned columns);
/* The same, with blanks behind it up to COLUMNS. */
void live_pad(struct buf *out, struct str s, unsigned columns);
/* "████▌·····": SHARE is 0 ... 1. */
void live_bar(struct buf *out, double share, unsigned columns);

/* ---- frames */

/* As many lines of FRAME as ROWS, each of at most COLUMNS; what is too much is told in the last one. */
void frame_fit(struct str frame, unsigned columns, unsigned rows, struct buf *out);
/* What leads from BEFORE (the cursor is below it) to AFTER, and the cursor below that. Nothing where they are equal. */
void frame_diff(struct str before, struct str after, struct buf *out);
/* The same after the terminal has become COLUMNS wide and wrapped the lines of BEFORE: all is drawn anew. */
void frame_redraw(struct str before, struct str after, unsigned columns, unsigned rows, struct buf *out);

/* ---- the terminal */

struct live;

struct live_config {
        struct loop *loop;
        int in, out; /* out is a terminal; keys come if in is one */
        void (*on_key)(void *arg, char key);
        void (*on_resize)(void *arg); /* draw again, please */
        void *arg;
};

/* The cursor is hidden, keys come at once and are not shown; Ctrl-C is still a signal, and Ctrl-Z stops us decently. */
struct live *live_new(const struct live_config *config);
/* The terminal is as it was, the last frame stays. Whoever ends by a signal calls it, too. */
void live_free(struct live *s);
unsigned live_columns(const struct live *s); /* that a line may have */
/* FRAME is made to fit. */
void live_draw(struct live *s, struct str frame);

DEFINE_CLEANUP_PTR(struct live *, live_free)
