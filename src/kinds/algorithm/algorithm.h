/*
 * algorithm - AlgorithmProfiling and AlgorithmComparison (dprofiler.io/v1alpha1): measure an algorithm, or several against each
 * other.
 *
 *   ""  ──> Pending ──> Running ──> Completed
 *             │  ^         │
 *             │  suspended │
 *             v            v
 *           Cancelled    Failed | Cancelled          (a changed spec lets a Failed one begin anew; the others are final)
 *
 * Pending is also what waits to be admitted (status.queue), for a node, or is suspended. One failed algorithm does not discard
 * the others: a comparison is Completed when one of them has a valid sample, and the others' entries say why they have none.
 *
 * Names: Job `dprofiler-<n>` (then `-2`, …), ConfigMaps `<n>-run-status` and `<n>-run-results`, which holds samples.json
 * (status.samplesRef) until the request goes.
 *
 * What runs is `sonde-pod probe --plan TEXT`, see probe/session/session.h: everything is a command for it. Algorithms that share
 * image, volumes and resources are a group. One group: the workload is in its image. Several: the workload is a coordinator in
 * the pod image, in which sorting algorithms run, and each other group is one more container of the same pod.
 *
 * `pods: k` is k attempts that succeed one after another, each with one pod; the last one's result counts. With `schedule` the
 * request is a template: it runs nothing itself, and makes requests like it.
 *
 * Conditions: the run's (Progressing, Reporting, Suspended, SpecAccepted), Ready and Stalled as kstatus reads them, and
 * PerformanceDegraded, when the history of an algorithm shows a change for the worse.
 */
#pragma once

#include "decide/decide.h"

#define ALGORITHM_ML_IMAGE_DEFAULT "sonde-ml:latest"

struct algorithm_settings {
        const char *pod_image;  /* holds /sonde-pod */
        const char *ml_image;   /* holds Python and the frameworks */
        const struct json *env; /* more environment for the measured, as of a container; NULL: none */
        struct zones *zones;    /* of schedules */
};

extern const struct kube_type ALGORITHMPROFILING, ALGORITHMCOMPARISON;

struct controller algorithm_profiling_controller(const struct algorithm_settings *settings);
struct controller algorithm_comparison_controller(const struct algorithm_settings *settings);
