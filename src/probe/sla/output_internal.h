/*
 * output_internal.h - between the parts that write what came out.
 */
#pragma once

#include "probe/sla/sla.h"

/* ---- deployment.c */

/* The disaggregated deployment with both mappings and, where they were computed, the replicas. */
struct json *sla_chosen_deployment(struct arena *a, const struct sla_results *r, const struct json *base);
/* The same with a Planner; PROFILED: its data is in the ConfigMap, which is mounted. */
struct json *sla_planned_deployment(struct arena *a, const struct sla_results *r, const struct json *base,
                                    bool profiled);
/* The same with simulated workers, so that a planner can be tried without GPUs. */
struct json *sla_mocker_deployment(struct arena *a, const struct sla_results *r, const struct json *base,
                                   bool profiled);

#define SLA_PROFILE_MAP "planner-profile-data"
