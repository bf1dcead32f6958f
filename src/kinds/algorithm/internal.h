/*
 * internal.h - what the files about AlgorithmProfilings and AlgorithmComparisons share.
 *
 *   spec.c, spec_entry.c,  the spec with its defaults, and all that is wrong with it
 *   spec_pod.c
 *   plan.c, plan_text.c    the Job; the plan for the probe; registration
 *   settle.c               the phase, and what follows from it
 *   results.c              what the probe left, as the status tells it
 *   trend.c                what the history says about it
 *   schedule.c             requests that are made again and again
 */
#pragma once

#include "kinds/algorithm/algorithm.h"
#include "kinds/run_control.h"
#include "kinds/wrongs.h"
#include "probe/session/session.h"

#define ALGORITHM_SAMPLES_KEY "samples.json"

/* ---- spec.c */

/* The kernel takes 128 KiB as one argument, and the plan's `$` may be doubled. */
enum { ALGORITHM_PLAN_MAX = 64 * 1024 };

enum algorithm_type { ALGORITHM_SORTING, ALGORITHM_ML, ALGORITHM_CUSTOM };

/* One that is measured. What may be NULL was not said. */
struct algorithm_entry {
        const struct json *json; /* where it is said: the spec, or an element of spec.algorithms */
        const char *path;        /* of that: "spec", "spec.algorithms[1]" */
        const char *name;        /* "": not said */
        enum algorithm_type type;
        const struct json *parameters, *resources; /* its own, or those of all */
        /* sorting: which one */
        const char *sorting;
        /* ml */
        const char *framework, *task,
                *model; /* task NULL: train and score; model NULL: the parameters say it */
        int64_t dataset_size /* 0: the input's */, n_features, n_select /* 0: the parameters say it */;
        /* custom */
        const char *image;
        const struct json *command, *args, *env, *volumes;
        size_t group; /* see algorithm_groups() */
};

struct algorithm_spec {
        bool comparison;
        struct algorithm_entry *entries;
        size_t n, groups;
        int64_t input_size;
        int64_t *sizes; /* all that are measured, in ascending order; input_size is among them */
        size_t n_sizes;
        int64_t iterations, warmup, pods, seed;
        bool parallel;
        const char *baseline; /* NULL: none */
        double min_effect;
        double accuracy_tolerance; /* below 0: none */
        usec_t run_timeout;        /* of one run; 0: none */
        int64_t ttl_seconds;       /* after the end; below 0: none */
        const char *queue;         /* of Kueue's; NULL: none */
        const struct json *price, *schedule;
};

void algorithm_spec_read(const struct view *v, struct algorithm_spec *ret);
/* All that is wrong with it, in one sentence ("spec.x: …; spec.y: …"); NULL: nothing. */
const char *algorithm_spec_check(const struct view *v, const struct algorithm_spec *spec);
const char *algorithm_type_name(enum algorithm_type type);

/* ---- plan.c */

struct run_kind algorithm_run_kind(const struct view *v);
bool algorithm_plan_run(const struct view *v, struct decision *d, const struct run *run,
                        const struct algorithm_spec *spec, const char **why);
/* Those of the request that are no system's, and upstream's three: of Job and pods. */
struct json *algorithm_labels(const struct view *v, const struct algorithm_spec *spec);
#define ALGORITHM_COORDINATOR "coordinator"
/* Whether a container of that name is one in which algorithms are measured; others may have been added by whoever. */
bool algorithm_measures(const char *container);
/* The image that it runs in. */
const char *algorithm_image(const struct view *v, const struct algorithm_entry *e);

/* ---- plan_text.c */

/*
 * Gives each algorithm its group: those with one image, the same volumes and resources are together. Several groups: 0 is the
 * coordinator's, in which sorting algorithms are that have no resources of their own; it may be empty.
 */
void algorithm_groups(const struct view *v, struct algorithm_spec *spec);
/* What the probe is told, see probe/session/session.h. */
struct json *algorithm_plan_json(const struct view *v, const struct algorithm_spec *spec);

/* ---- settle.c */

/* What a decision is made from, and the status that it makes. */
struct algorithm_turn {
        const struct view *v;
        struct decision *d;
        struct algorithm_spec spec;
        struct run_kind kind;
        struct run run;
        struct json *status;
};

void algorithm_plan(const struct view *v, struct decision *d);
void algorithm_settle(const struct view *v, struct decision *d);

/* ---- results.c */

/* What the probe left. Not trusted: the workload may write to the same directory. */
struct algorithm_result {
        const struct json *json; /* result.json; NULL: WHY */
        const char *why;         /* one sentence */
        struct str samples;      /* samples.json; NULL: it was not kept */
        const char *samples_key; /* of the data ConfigMap; NULL: as above */
};

/* Of the run that t->status.progress tells of. False: look-ups are under way. */
bool algorithm_result_read(struct algorithm_turn *t, struct algorithm_result *ret);
/* status.results, statistics, comparison, scaling, recommendations, samplesRef. */
void algorithm_tell_results(struct algorithm_turn *t, const struct algorithm_result *result);
/* What an earlier attempt, with another spec, left of them. */
void algorithm_forget_results(struct algorithm_turn *t);
/* What came out, in one sentence, from what the status tells of it; NULL: nothing to say. */
const char *algorithm_outcome(const struct algorithm_turn *t);
/* status.progress: completedIterations, totalIterations and usage, from what the probe reports. */
void algorithm_tell_progress(struct algorithm_turn *t, const struct run_seen *seen);

/* ---- trend.c */

/* The row for the history, with what was measured. RESULT->json may be NULL. */
const struct history_row *algorithm_row(struct algorithm_turn *t, const struct run_seen *seen,
                                        const char *shape, const struct algorithm_result *result);
/* status.trend and condition PerformanceDegraded, with an event when it turns. False: look-ups are under way. */
bool algorithm_trend(struct algorithm_turn *t, const struct algorithm_result *result);

/* ---- schedule.c */

/* What is wrong with spec.schedule. */
void algorithm_schedule_check(struct wrongs *w, const struct view *v, const struct json *schedule);
/* For struct child_kind: leaves of a request what is looked at here. */
void algorithm_project(struct json *request, struct arena *a);
/*
 * The request has a schedule, which is right, and nothing of its own has run: makes its children, takes away those above the
 * limit, and fills in t->status whole (phase, conditions, observedGeneration), which the caller gives to the decision.
 */
void algorithm_schedule(struct algorithm_turn *t);
