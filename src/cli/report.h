/*
 * report.h - what came out of a run, or of several, as facts, tables and notes; and its five ways to be written.
 *
 * A description (report_kinds.c) says for each kind which facts and tables there are and where each value is in the documents of
 * the run; the writers know no kind. What is not known is left out: a fact without a value, a column without any, a table
 * without rows.
 */
#pragma once

#include "cli/show.h"
#include "kinds/kinds.h"

/* How a value is told to people; programs get the number as it is. */
enum report_format {
        REPORT_TEXT,
        REPORT_COUNT,
        REPORT_NUMBER,
        REPORT_SECONDS,  /* "41.2 ms" */
        REPORT_DURATION, /* seconds, of what takes long: "1h03m" */
        REPORT_MS,       /* a number of milliseconds */
        REPORT_NS,
        REPORT_MB,
        REPORT_BYTES,
        REPORT_PERCENT, /* a number of per cent */
        REPORT_SHARE,   /* of one, told as per cent */
        REPORT_RATIO,   /* "0.81x" */
        REPORT_P,
        REPORT_TRUTH, /* "yes", "no" */
};

/* A value of the description: where it is. */
struct report_field {
        const char *key; /* its name for programs */
        const char *title;
        enum report_format format;
        const char *
                path; /* below the row, or of a fact below the run (run_docs_at()); "$part": where the row came from */
        const char *low, *high; /* its interval; NULL: none */
};

enum report_shape {
        REPORT_ROWS,    /* each path is a list of rows, or one row */
        REPORT_MEMBERS, /* an object: a row is a member, "$key" and "$value" */
        REPORT_COLUMNS, /* an object of lists, which are columns */
        REPORT_FIGURES, /* figures_of(): "title", "value", "unit", "of" */
        REPORT_SAMPLES, /* samples.json: its own columns */
        REPORT_VALUES,  /* figures of versus(): a column for each of `result.runs` */
};

struct report_section {
        const char *key, *title;
        enum report_shape shape;
        const char *paths[3];
        const struct report_field *fields;
        size_t n;
};

struct report_kind {
        const struct kube_type *type;
        const struct report_field *facts;
        size_t n_facts;
        const struct report_section *sections;
        size_t n_sections;
        const char *notes[3]; /* paths of lists of sentences */
};

/* ---- what is made of it */

struct report_value {
        const char *text; /* NULL: not known */
        bool is_number;   /* then the next ones count */
        double number, low, high;
        enum report_format format;
};

struct report_fact {
        const struct report_field *field;
        struct report_value value;
};

struct report_table {
        const char *key, *title;
        const struct report_field **columns;
        size_t n_columns, n_rows;
        struct report_value *cells; /* row by row */
};

struct report {
        const char *title;      /* "AlgorithmComparison default/sorting" */
        const char *origin;     /* "simulated"; NULL: measured */
        const struct json *run; /* its summary, for programs; NULL: there is none */
        VEC(struct report_fact) facts;
        VEC(struct report_table) tables;
        VEC(const char *) notes;
};

/* The description of a kind; never NULL. */
const struct report_kind *report_kind(const struct kind *kind);
/* That of what versus() gives, as `result` of the documents. */
extern const struct report_kind REPORT_VERSUS;
/* That of a row of the history, as history_row_json() gives it, as `result` of the documents. */
extern const struct report_kind REPORT_HISTORY;

/* DOCS by KIND's description. SAMPLES: every run of it, too. Everything is the arena's but the lists: report_done() it. */
void report_make(const struct run_docs *docs, const struct report_kind *kind, bool samples, struct arena *a,
                 struct report *ret);
void report_done(struct report *r);
static inline const struct report_value *report_cell(const struct report_table *t, size_t row, size_t column)
{
        return &t->cells[row * t->n_columns + column];
}
bool report_is_numeric(const struct report_field *f); /* its values stand at the right edge */
/* The text of a value: "52 ms (43.7-57.3 ms)"; "" when it is not known. */
const char *report_text_of(struct arena *a, const struct report_value *v);

/* ---- the writers */

void report_write_table(const struct report *r, struct arena *a, const struct screen *screen);
void report_write_json(const struct report *r, struct arena *a, struct buf *out);
/* The first table; with samples, those. */
void report_write_csv(const struct report *r, struct arena *a, struct buf *out);
void report_write_markdown(const struct report *r, struct arena *a, struct buf *out);
/* One file that asks nobody for anything. */
void report_write_html(const struct report *r, struct arena *a, struct buf *out);

DEFINE_CLEANUP_STRUCT(struct report, report_done)
