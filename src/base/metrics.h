/*
 * metrics.h - counters, gauges, histograms and their text exposition (Prometheus 0.0.4).
 *
 * A family is declared once, with its label names; a series is looked up once with its label values and kept by
 * the caller, so that counting is one addition. Families and series are written in the order in which they were made.
 *
 * A series that was made stays, so label values never come from object names; what has more of them than METRICS_SERIES_MAX
 * counts the rest in one series, whose values are all "other". Series that come and go with objects are not kept here:
 * whoever has the objects writes them when they are asked for (metrics_on_write), and what is gone is not written.
 */
#pragma once

#include "base/str.h"

struct metrics;
struct metric; /* one series */

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
        const char *name, *help;
        enum metric_type type;
        const char *const *labels; /* NULL-terminated, or NULL */
        const double *buckets;     /* histograms: ascending upper bounds */
        size_t n_buckets;
        const char *alias; /* the same series are written under this name as well; NULL: under one only */
};

/* METRICS_TEXT_MAX: what a text of all has to have room for, with as many objects as object series are written of. */
enum { METRICS_SERIES_MAX = 1000, METRICS_TEXT_MAX = 32 << 20 };

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* The series of FAMILY (a static object) with these label VALUES, one for each label, made when it is new. */
struct metric *metrics_get(struct metrics *m, const struct metric_family *family, const char *const *values);

void metric_add(struct metric *m, double by);
void metric_set(struct metric *m, double to);
void metric_observe(struct metric *m, double value);

/* Calls FN(ARG) before every exposition, to fill gauges that are derived. */
void metrics_on_collect(struct metrics *m, void (*fn)(void *arg), void *arg);
void metrics_off_collect(struct metrics *m, void (*fn)(void *arg),
                         void *arg); /* ARG goes before the metrics do */
/* Calls FN(ARG, OUT) at the end of every exposition, to write families of its own. */
void metrics_on_write(struct metrics *m, void (*fn)(void *arg, struct buf *out), void *arg);
void metrics_off_write(struct metrics *m, void (*fn)(void *arg, struct buf *out), void *arg);
void metrics_write(struct metrics *m, struct buf *out);

/* ---- for those who write families of their own */

void metrics_write_head(struct buf *out, const struct metric_family *family);
/* LABELS are as metrics_add_label() makes them, one after the other. */
void metrics_write_sample(struct buf *out, const struct metric_family *family, struct str labels,
                          double value);
/* `name="value"`, escaped, behind what is there. */
void metrics_add_label(struct buf *labels, const char *name, const char *value);

/* Registers the process_* set: CPU, memory, descriptors, start time. */
void metrics_add_process(struct metrics *m);

DEFINE_CLEANUP_PTR(struct metrics *, metrics_free)
