/*
 * output_internal.h - between the parts that write what came out.
 */
#pragma once

#include "probe/sla/sla.h"

enum { SLA_CURVE_MIN = 3 /* points; fewer are no curve, as upstream has it */ };

/* The row that was chosen; NULL: there is none (a dry run). */
const struct sla_row *sla_chosen_row(const struct sla_results *r, enum sla_role role);
/* The same as a candidate; without a row the smallest there is. */
struct sla_candidate sla_chosen_candidate(const struct sla_results *r, enum sla_role role);
/* Whether there is enough for a planner. */
bool sla_is_profiled(const struct sla_results *r);
/* $ for 1000 requests with what was chosen; below 0: it cannot be said. */
double sla_chosen_cost(const struct sla_results *r);
/* VALUE with about three digits, thousands apart, in the arena; "not measured" where it is not finite or below 0. */
const char *sla_figure(struct arena *a, double value);

/* ---- deployment.c. BASE has passed sla_base_check(). */

/* The disaggregated deployment with both mappings and, where they were computed, the replicas. */
struct json *sla_chosen_deployment(struct arena *a, const struct sla_results *r, const struct json *base);
/* The same with a Planner; MAP: the ConfigMap with its data, which is mounted. NULL: there is none. */
struct json *sla_planned_deployment(struct arena *a, const struct sla_results *r, const struct json *base,
                                    const char *map);
/* The same with simulated workers, so that a planner can be tried without GPUs. */
struct json *sla_mocker_deployment(struct arena *a, const struct sla_results *r, const struct json *base,
                                   const char *map);
void sla_mark_simulated(struct arena *a, const struct sla_results *r, struct json *object);

/* ---- pictures.c: what upstream's tool plots */

struct sla_picture {
        const char *file;
        /* False: there is nothing to show. */
        bool (*draw)(struct arena *a, const struct sla_results *r, struct buf *out);
};
enum { SLA_PICTURES = 7 };
extern const struct sla_picture sla_pictures[SLA_PICTURES];

/* ---- html.c */

void sla_report(struct arena *a, const struct sla_results *r, struct buf *out);
