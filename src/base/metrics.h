/*
 * metrics.h - counters, gauges, histograms and their text exposition (Prometheus 0.0.4).
 *
 * A family is declared once, with its label names; a series is looked up once with its label values and kept by
 * the caller, so that counting is one addition. Label values never come from object names. Families and series are
 * written in the order in which they were made.
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
};

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
void metrics_write(struct metrics *m, struct buf *out);
/* Registers the process_* set: CPU, memory, descriptors, start time. */
void metrics_add_process(struct metrics *m);

DEFINE_CLEANUP_PTR(struct metrics *, metrics_free)
