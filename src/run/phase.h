/*
 * phase.h - the phases of a run: the nine of the full design, or the list that a run declares as its plan.
 *
 * A plan is the order in which a run goes through its phases, with what each is expected to cost. It weighs the overall
 * percentage and the ETA. A profiler declares it once in its status file:
 *
 *     "plan": [{"phase": "Warmup", "steps": 3, "weight": 10}, {"phase": "Measure", "steps": 20, "weight": 90}]
 *
 * `steps` (0: not known) and `weight` (any unit, the same for all; seconds if one knows them) may be left out: a phase
 * without a weight gets the mean of the others', and "Warmup" alone may stand for {"phase": "Warmup"}. A run without a plan
 * has the nine-phase table, weighed by the design's typical durations. "Complete" and "Failed" end every run and are never
 * part of a plan: where one names them, they are passed over.
 */
#pragma once

#include "json/json.h"

enum {
        RUN_PHASES_MAX = 32,
        RUN_PHASE_NAME_MAX = 63,
        RUN_STEPS_MAX = 1000000000, /* of one phase */
        RUN_WEIGHT_MAX = 1000000000,
};

struct run_phase {
        char name[RUN_PHASE_NAME_MAX + 1];
        uint32_t steps;                   /* 0: not known */
        double weight;                    /* above 0, at most RUN_WEIGHT_MAX */
        double typical_low, typical_high; /* seconds; 0, 0: nothing is known */
};

struct run_plan {
        uint32_t n;    /* without Complete and Failed; 0: none was declared */
        bool weighted; /* weights were given, they are not all the same by default */
        struct run_phase phases[RUN_PHASES_MAX];
};

/* The full design's seven, with its typical durations. */
extern const struct run_plan RUN_PLAN_DGDR;

/* 1-based place of the phase in PLAN (n + 1 for Complete, n + 2 for Failed); 0: not in it. */
int run_phase_number(const struct run_plan *plan, const char *phase);
bool run_phase_terminal(const char *phase); /* Complete or Failed */
/* Why NAME cannot be a phase's name ("is empty"); NULL: it can. 1 to 63 bytes of UTF-8 without control characters. */
const char *run_phase_fault(struct str name);
/* ARRAY is the value of "plan": at most 32 phases, each once. n == 0: it is empty, so none is declared. */
int run_plan_parse(const struct json *array, struct run_plan *ret, struct err *err) _must_check_;
struct json *run_plan_json(struct arena *a, const struct run_plan *plan);
