/*
 * cuda - CUDAExperiment and WorkloadProfile (gpu.scheduler.io/v1alpha1): profile a CUDA program, then run it where it fits.
 *
 *   ""  ──> Pending ──> Profiling ──> Executing ──> Succeeded
 *             │  ^          │             │
 *             │  Suspended  │             │          (spec.suspend takes the Job away; resuming makes it again)
 *             v             v             v
 *                         Failed                     (a changed spec begins anew, as long as nothing was executed)
 *
 * Without profilingEnabled, or with a profile that fits, Profiling is left out. A profile fits when it is the user's own (not
 * made by Sonde: it is honoured whatever it says, and never written), or is of the same workload: spec.workloadHash, over
 * image, command, arguments, env and what the profiling settings measure. With profiling.reuse that of another experiment of
 * the namespace fits as well.
 *
 * Names: Jobs `<n>-profiling` (then `-2`, …) and `<n>-execution`, ConfigMaps `<n>-profile-status` and `<n>-profile-summary`
 * (key summary.json; it stays until the experiment goes), WorkloadProfile `<n>-profile`. The two Jobs are never active
 * together: the execution Job is made when nothing of the profiling Job runs any more.
 *
 * The profiling pod: stage | stage-workload (the workload's image) | profiling-runner (`sonde-pod ncu` in the tool's image,
 * under `run`) | relay. The execution pods are the workload as the spec has it, nothing added but where it may run.
 *
 * Conditions: the run's (Progressing, Reporting, Suspended, SpecAccepted), Ready and Stalled as kstatus reads them, and
 * upstream's ProfilingPending, ProfilingRunning, ProfilingCompleted, ExecutionJobCreated, Failed, with upstream's reasons and
 * messages while they are True; each is False as soon as it is not true any more, and there is none of what never was.
 * Stalled has the finer reason of a failure (CounterPermission, CountersInUse, …) and the whole sentence.
 *
 * placement.h says where the execution Job goes. What the spec asks for and nobody can do yet (maxLatency,
 * networkBandwidthRequirement, priority, numberOfNodes above 1, distributed) is refused, not ignored.
 */
#pragma once

#include "decide/decide.h"

#define CUDA_RUNNER_DEFAULT "kratos-nsight-compute-poc:latest"
#define CUDA_RUNNER_ENV     "KRATOS_NSIGHT_COMPUTE_IMAGE" /* of the operator */

struct cuda_settings {
        const char *pod_image;    /* holds /sonde-pod */
        const char *runner_image; /* holds ncu */
        const struct json *env;   /* more environment for the profiler, as of a container; NULL: none */
        bool no_nodes;            /* they may not be listed: none is preferred */
};

extern const struct kube_type CUDAEXPERIMENT, WORKLOADPROFILE;

struct controller cuda_controller(const struct cuda_settings *settings);
