/*
 * results.h - what a run left: fetched with the person's own rights, and as what trackers of experiments take.
 *
 *     struct run_docs docs;
 *     if (people_find(&p, c, &name, &run) < 0 || results_fetch(&p, &run, &docs) < 0)
 *             return 1;
 *     report_make(&docs, report_kind(run.kind), ...);      the report that `sonde results` writes
 *     results_log_make(&docs, &p.arena, &log);             parameters, metrics, artifacts
 */
#pragma once

#include "cli/people.h"
#include "cli/report.h"

/*
 * RUN's object, what its data ConfigMap holds, and a CUDAExperiment's WorkloadProfile; in the people's arena. What is not there,
 * or may not be read, is not in RET; the latter is said. Below 0: the cluster could not be asked, and that was said.
 */
int results_fetch(struct people *p, const struct people_run *run, struct run_docs *ret) _must_check_;

/* ---- where it goes: to the file TO, or standard output (NULL). Both return an exit status; what went wrong was said */

/* As the people's -o says: json, csv, md, html, else a table. */
int results_write(struct people *p, const struct report *report, const char *to);
int results_write_text(const struct buf *text, const char *to);

/* ---- for trackers (MLflow and others): flat, with keys of letters, digits, "_", "-", ".", "/" and blanks */

struct results_text {
        const char *key, *value;
};

struct results_number {
        const char *key;
        double value; /* finite */
};

struct results_file {
        const char *name; /* "results.html" */
        const char *type; /* its media type */
        struct str content;
};

struct results_log {
        const char *name;      /* "ac/sorting" */
        usec_t started, ended; /* wall time; 0: not known */
        bool failed;
        VEC(struct results_text)
        params; /* the request: every single value of its spec ("algorithms.0.name") */
        VEC(struct results_text)
        tags; /* kind, namespace, uid, machine, and "origin" of what was not measured */
        VEC(struct results_number)
        metrics; /* every figure: "quick_sort/executionTime", and "…_low", "…_high" of its interval */
        VEC(struct results_file)
        artifacts; /* results.json, results.html, samples.csv, result.json, deployment.yaml */
};

enum { RESULTS_KEY_MAX = 250, RESULTS_VALUE_MAX = 500, RESULTS_PARAMS_MAX = 200 };

/* Pure. Everything is the arena's but the lists. */
void results_log_make(const struct run_docs *docs, struct arena *a, struct results_log *ret);
void results_log_done(struct results_log *log);

DEFINE_CLEANUP_STRUCT(struct results_log, results_log_done)
