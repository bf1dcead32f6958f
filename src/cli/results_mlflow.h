/*
 * results_mlflow.h - `sonde results --to-mlflow`: a finished run as a run of MLflow.
 *
 * Params are every value of the request's spec, metrics every figure with its interval, tags where it comes from, artifacts the
 * reports and documents. Of each single run that counted there is one more value of "samples/ALGORITHM/executionTime" and the like, with
 * its time and its number as the step.
 */
#pragma once

#include "cli/mlflow.h"
#include "cli/results.h"

struct results_mlflow {
        struct mlflow_target target;
        const char *run_name; /* NULL: "ac/sorts" */
};

/* Rows for a table of options. */
#define RESULTS_MLFLOW_OPTIONS(m)                                                                       \
        {"to-mlflow",     0, "URL", "log it in MLflow, whose tracking server is there", OPT_STR,        \
         &(m)->target.url},                                                                             \
                {"experiment",           0, "NAME", "MLflow: the experiment (default: sonde)", OPT_STR, \
                 &(m)->target.experiment},                                                              \
                {"run-name",    0, "NAME", "MLflow: the run's name (default: KIND/NAME)", OPT_STR,      \
                 &(m)->run_name},                                                                       \
        {                                                                                               \
                "token-file", 0, "FILE", "MLflow: a file with the bearer token", OPT_STR,               \
                        &(m)->target.token_file                                                         \
        }

/* Whether what was given of M makes sense; if not, that was said. */
bool results_mlflow_check(const struct results_mlflow *m);
/* Logs RUN, which must have ended; returns the exit status. */
int results_mlflow_log(struct people *p, const struct people_run *run, const struct run_docs *docs,
                       const struct results_mlflow *m);
