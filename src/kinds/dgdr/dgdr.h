/*
 * dgdr - DynamoGraphDeploymentRequest (nvidia.com/v1alpha1): profile a model, then generate a deployment for it.
 *
 *   ""  ──> Pending ──> Profiling ──> Ready                      autoApply false: the document is in status.generatedDeployment
 *             │  ^          │    └──> Deploying <──> Ready       autoApply true, also when it is set later: the DGD is made
 *             │  suspended  │              └───┬───────┘
 *             v             v                  v
 *           Failed        Failed        DeploymentDeleted        somebody deleted the DGD; it is never made again
 *
 * Failed and DeploymentDeleted are final. Names: Job `profile-<n>`, ConfigMaps `dgdr-status-<n>` and `dgdr-output-<n>`,
 * deployment `<n>-dgd`. The profiler is Sonde's own (`sonde-pod sla`), or the user's image, started as upstream's v0.9.0 starts
 * it, under `run`: /data is the run directory, /config the base deployment, and one of config_with_planner.yaml,
 * mocker_config_with_planner.yaml, final_config.yaml there is what it made. Deployments that it makes to measure them have the
 * request as owner and the label sonde.dev/temporary; those that are left while no attempt is under way are taken away.
 *
 * Conditions: the run's (Progressing, Reporting, Suspended, SpecAccepted), Ready and Stalled as kstatus reads them, and the
 * designs': Validation, Profiling (with the phase in its message), ProfilingPhase, SpecGenerated, DeploymentReady.
 */
#pragma once

#include "decide/decide.h"

struct dgdr_settings {
        const char *pod_image;  /* holds /sonde-pod */
        const struct json *env; /* more environment for profilers, as of a container; NULL: none */
};

extern const struct kube_type DGDR, DGD;

struct controller dgdr_controller(const struct dgdr_settings *settings);
