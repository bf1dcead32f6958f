/*
 * dprofiler.h - what the paths of dProfiler's API share.
 *
 *   jobs.c     jobs and their results: AlgorithmProfilings
 *   ml.c       the same with a model, waited for; what there is of models
 *   compare.c  comparisons: AlgorithmComparisons
 *   workers.c  nodes, and what is known of their use
 */
#pragma once

#include "web/internal.h"

/* A number for an object, from its uid. */
int64_t job_number(const char *uid);
/* The namespace that counts where nothing else says one: ?namespace=, the only one served, that of the configuration. */
const char *job_namespace(struct call *c);
/* Of "NAMESPACE.NAME", or of a name alone. */
void job_split(struct call *c, const char *id, const char **ret_ns, const char **ret_name);
/* What the server is to make a name from, of any text: "quick-sort-". */
const char *job_prefix(struct arena *a, const char *text);
/* "pending", "running", "completed", "failed". */
const char *job_status(const struct summary *s);
struct json *job_time(struct arena *a, usec_t when);                 /* null of 0 */
struct json *job_or_null(struct arena *a, const struct json *value); /* a copy, or null */
/* An AlgorithmProfiling as dProfiler tells it. */
struct json *job_json(const struct kind *kind, const struct json *object, struct arena *a);
/* A create that failed; what the API server has against a field is told under dProfiler's name for it. */
void job_fail(struct call *c, const struct kube_answer *answer, const struct err *err);
/*
 * Creates OBJECT as the caller, waits for as long as the query's `wait` says until it has ended, and tells it then, or as it
 * stands. A call that WAITS for nothing is told at once.
 */
void job_create(struct call *c, const struct kind *kind, struct json *object, bool waits,
                void (*tell)(struct call *c, const struct json *object, const struct summary *s));
