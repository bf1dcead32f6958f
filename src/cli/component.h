/*
 * component.h - the Kubeflow component: dProfiler's command line for a step of a pipeline.
 *
 *   cmd_component.c        the options, and the four actions
 *   component_make.c       the request that profile and compare create
 *   component_wait.c       wait: follows a request to its end
 *   component_outputs.c    what get-results leaves: results, metrics, what the launcher of Kubeflow Pipelines reads
 *
 * A pipeline passes every input of a component, also one that nobody has set: a text that is empty and a number that is 0 are
 * not given, and left out of the request, so that the CRD's own default counts. See docs/kubeflow.md.
 */
#pragma once

#include "cli/people.h"

/* What a request is made from, as it was typed. */
struct component_spec {
        const char *name, *ns;
        const char *algorithm_name, *algorithm_type, *timeout;
        unsigned input_size, iterations, priority;
        const char *framework, *task, *ml_algorithm; /* of type ml */
        unsigned dataset_size, n_features, n_select;
        const char *image; /* of type custom */
        struct option_list command, args;
        const char *command_json, *args_json;     /* the same as JSON, as pipelines pass lists */
        const char *algorithms_file, *algorithms; /* of a comparison: one of the two */
};

/* The object to create, in the arena. NULL: E_CONFIG, something is missing or does not fit; anything else: a file cannot be read. */
struct json *component_profiling(const struct component_spec *s, struct arena *a, struct err *err);
struct json *component_comparison(const struct component_spec *s, struct arena *a, struct err *err);
/* An option that was given and means nothing for this type of algorithm; NULL: none. */
const char *component_unused(const struct component_spec *s);

/* Where results go; each may be NULL. */
struct component_outputs {
        const char *output_file;
        const char *results_path, *metrics_path; /* of the step's output artifacts */
        const char *executor_input;              /* what the launcher says about this step, as JSON */
};

/* Every number among RESULTS (status.results) by name: "executionTime", "mlResults.accuracy"; of a comparison with the algorithm's
 * name in front, "quick_sort.executionTime", and the size where there are several. */
struct json *component_metrics(const struct json *results, struct arena *a);
/*
 * Writes RESULTS to wherever OUT says, each file whole or not at all, with its directory; without --output-file they go to standard
 * output.
 */
int component_write(const struct component_outputs *out, const struct json *results, struct arena *a,
                    struct err *err) _must_check_;
/* What the launcher is to read at its outputFile, or NULL when it names no artifact for metrics; RET_PATH is that file. */
struct json *component_executor_output(const struct json *executor_input, const struct json *metrics,
                                       struct arena *a, const char **ret_path);

/* Time over: as timeout(1) has it. */
enum { COMPONENT_TIMED_OUT = 124 };

/* Follows the request until it has ended; what happens is told line by line on standard error. Returns the exit status: 0 when it
 * has succeeded, 1 when not, COMPONENT_TIMED_OUT when it still runs after TIMEOUT. */
int component_wait(struct people *p, const struct kind *kind, const char *name, usec_t timeout);
/* The request as it is now; below 0: it was said why not. */
int component_get(struct people *p, const struct kind *kind, const char *name, struct people_run *ret);
