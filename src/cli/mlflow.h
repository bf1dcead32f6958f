/*
 * mlflow.h - a finished run logged in MLflow, through the REST API of its tracking server.
 *
 *     experiments/get-by-name -> (create) -> runs/create -> runs/log-batch ... -> artifacts -> runs/update
 *
 * Whatever happens after runs/create, the run is ended: FINISHED, or FAILED or KILLED as the run itself was; FAILED when something
 * could not be logged, KILLED when it was interrupted. Nothing is sent twice: a metric would then be there twice.
 *
 * What MLflow takes: names of at most 250 letters, digits and _ - . / and blanks (others become _), values of params up to 500
 * characters (what is longer is cut: the artifacts have all of it), tags up to 5000, 100 params and 1000 metrics a request.
 * Artifacts go through the server where it stores them itself (mlflow-artifacts:); in an object store they cannot be put from here,
 * which is said and is no failure.
 */
#pragma once

#include "net/net.h"

enum mlflow_status { MLFLOW_FINISHED, MLFLOW_FAILED, MLFLOW_KILLED };

struct mlflow_pair {
        const char *key, *value;
};

struct mlflow_metric {
        const char *key;
        double value; /* not a number: left out */
        usec_t at;    /* wall time */
        int64_t step;
};

struct mlflow_artifact {
        const char *path; /* below the run's artifacts: "results.json", "samples/times.csv" */
        struct str content;
};

struct mlflow_run {
        const char *name;
        enum mlflow_status status;
        usec_t started, ended; /* wall time; 0: now */
        VEC(struct mlflow_pair) params;
        VEC(struct mlflow_pair) tags; /* at most 100 */
        VEC(struct mlflow_metric) metrics;
        VEC(struct mlflow_artifact) artifacts;
};

void mlflow_run_done(struct mlflow_run *run); /* of the lists; what they point to is somebody else's */

struct mlflow_target {
        const char *url;        /* of the tracking server; a path is kept: https://host/mlflow */
        const char *experiment; /* made when it is not there */
        const char *token_file; /* bearer token; NULL: none */
};

struct mlflow_logged {
        const char *run_id, *experiment_id;
        size_t params, metrics, artifacts; /* how many there are now */
        const char *artifact_uri;          /* where artifacts would have had to go; NULL: they are there */
};

/* Runs LOOP meanwhile. STOP becomes true from the loop: give up (E_CANCELED). RET is in the arena. */
int mlflow_log(struct loop *loop, const struct mlflow_target *target, const struct mlflow_run *run,
               const bool *stop, struct arena *a, struct mlflow_logged *ret, struct err *err) _must_check_;

/* NAME as MLflow takes it. */
const char *mlflow_key(struct arena *a, const char *name);

DEFINE_CLEANUP_STRUCT(struct mlflow_run, mlflow_run_done)
