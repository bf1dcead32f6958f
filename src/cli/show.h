/*
 * show.h - text for people: where it goes, its colours, times in words, tables.
 *
 * Colours only say better or worse and never carry a meaning alone: they are there on a terminal, and nowhere else, nor
 * with NO_COLOR. Widths are those of a terminal: a character of several bytes is one column, or two.
 */
#pragma once

#include "base/base.h"

enum tone { TONE_PLAIN, TONE_GOOD, TONE_BAD, TONE_WARN, TONE_DIM, TONE_BOLD };

struct screen {
        FILE *to;
        bool terminal;
        bool colours;
        unsigned width; /* columns; 0: no limit, it is no terminal */
};

/* What TO is: NO_COLOR, TERM and the window's size are asked for. */
struct screen screen_of(FILE *to);
/* Begins and ends a tone; "" where there are no colours. */
const char *screen_tone(const struct screen *s, enum tone tone);
const char *screen_plain(const struct screen *s);

/* ---- words */

/* Columns that TEXT takes. */
size_t text_width(struct str text);
/* As much of TEXT as fits into COLUMNS, the last of which is then an ellipsis; TEXT itself when all of it fits. */
const char *text_fit(struct arena *a, const char *text, size_t columns);
/* TEXT without what would move the cursor or begin a line: all that comes from a cluster is shown so. */
const char *text_clean(struct arena *a, const char *text);
/* How many letters must be added, left out or replaced to make B out of A; SIZE_MAX: of words too long for that. */
size_t text_typos(const char *a, const char *b);

/* "41" of 41.9: whole percents that are behind it, so that 100 is the end and nothing before it; "-": not known. */
const char *show_percent(struct arena *a, double percent);

/* ---- times */

/* "42s", "38m", "3h12m", "31h", "5d": how old something is. */
const char *show_age(struct arena *a, usec_t age);
/* "0.4s", "42s", "11m20s", "1h03m", "2d4h": how long something took. */
const char *show_duration(struct arena *a, usec_t took);
/* "22m (18-31m)": what is left at NOW until MID, between LOW and HIGH (0: not known); "-": not known. */
const char *show_eta(struct arena *a, usec_t now, usec_t low, usec_t mid, usec_t high);
/* "starts ~22m", of what waits in a queue. */
const char *show_start(struct arena *a, usec_t now, usec_t starts);
/* "14:02" or, of another day, "2026-11-15 14:02", in the zone of this machine. */
const char *show_clock(struct arena *a, usec_t now, usec_t wall);

/* ---- tables */

enum { TABLE_COLUMNS_MAX = 16 };

struct table_column {
        const char *title;
        bool right; /* numbers: at the right edge */
};

struct table_cell {
        const char *text; /* NULL or "": nothing */
        enum tone tone;
};

struct table {
        struct arena *arena;
        const struct table_column *columns;
        size_t n_columns;
        VEC(struct table_cell) cells;
};

void table_init(struct table *t, struct arena *a, const struct table_column *columns, size_t n);
void table_done(struct table *t);
/* The next cell, row by row. TEXT is cleaned and copied. */
void table_add(struct table *t, enum tone tone, const char *text);
size_t table_rows(const struct table *t);
/* With a head, two blanks between columns. CUT: the last column ends where the terminal does. */
void table_print(const struct table *t, const struct screen *s, bool cut);

DEFINE_CLEANUP_STRUCT(struct table, table_done)
