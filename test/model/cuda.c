/*
 * The controller of CUDAExperiments, explored.
 */
#include "unit/unit.h"

#include "model/cuda_world.h"
#include "model/rows.h"

static const struct row rows[] = {
        {QUICK, {"an experiment that is not profiled", {0, 0, 0, 2, 0, 0}, .spec = SPEC_NO_PROFILING}},
        {QUICK, {"a profile that somebody has made", {0, 0, 0, 2, 0, 0}, .own_product = true}},
        {QUICK, {"a profile that is used again", {0, 0, 0, 2, 0, 0}, .spec = SPEC_REUSE}},
        {QUICK,
         {"an execution that is edited, suspended or cancelled",
          {0, 2, 0, 0, 0, 0},
          .spec = SPEC_NO_PROFILING,
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL)}},
        {QUICK,
         {"an execution that is disturbed",
          {0, 0, 0, 1, 1, 0},
          .own_product = true,
          .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD) | BIT(MISHAP_DELETE_JOB) |
                     BIT(MISHAP_ORPHAN_PODS) | BIT(MISHAP_DELETE_PRODUCT)}},
        {USUAL,
         {"an execution that is made again",
          {0, 0, 1, 0, 0, 0},
          .spec = SPEC_NO_PROFILING,
          .recreated = true}},
        {USUAL, {"an experiment that is deleted", {0, 0, 1, 0, 0, 0}}},
        {USUAL,
         {"an experiment that is suspended, and a crash", {0, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_SUSPEND)}},
        {USUAL, {"a pod that is deleted, or a crash", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_POD)}},
        {USUAL, {"a summary that is deleted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_DATA)}},
        {USUAL, {"a profile that is deleted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_PRODUCT)}},
        {USUAL,
         {"a profile that somebody makes meanwhile", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_OWN_PRODUCT)}},
        {USUAL,
         {"a profile that somebody takes the place of",
          {0, 0, 0, 0, 2, 0},
          .mishaps = BIT(MISHAP_DELETE_PRODUCT) | BIT(MISHAP_OWN_PRODUCT)}},
        {USUAL,
         {"a profile that is used again, and edited",
          {0, 1, 0, 1, 0, 0},
          .spec = SPEC_REUSE,
          .edits = BIT(EDIT_WORKLOAD)}},
        {USUAL, {"profiling that is not wanted any more", {0, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_OWN)}},
        {QUICK, {"an experiment that becomes invalid", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_INVALID)}},
        {USUAL,
         {"an experiment that becomes invalid, and is fixed",
          {0, 2, 0, 0, 0, 0},
          .edits = BIT(EDIT_INVALID)}},
        {QUICK, {"profiling that is switched off", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_OWN)}},
        {QUICK, {"a profiler that leaves no summary", {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_NO_OUTPUT)}},
        {USUAL,
         {"profiling that is not wanted, and wanted again", {0, 2, 0, 0, 0, 0}, .edits = BIT(EDIT_OWN)}},
        {LONG,
         {"an experiment that is edited in every way",
          {0, 2, 0, 0, 0, 0},
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL) | BIT(EDIT_OWN) |
                   BIT(EDIT_INVALID)}},
        {LONG,
         {"an execution and all that can happen to it",
          {0, 2, 0, 1, 1, 0},
          .spec = SPEC_NO_PROFILING,
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL),
          .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD) | BIT(MISHAP_DELETE_JOB) |
                     BIT(MISHAP_ORPHAN_PODS)}},
        {LONG,
         {"an experiment that is made suspended, and edited",
          {0, 1, 0, 1, 0, 0},
          .spec = SPEC_SUSPEND,
          .edits = BIT(EDIT_WORKLOAD)}},
};

static const struct mistake mistakes[] = {
        {{.bug = BUG_BY_NAME, .left = {0, 0, 1, 0, 0, 0}, .spec = SPEC_NO_PROFILING, .recreated = true}},
        {{.bug = BUG_FORGETFUL, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
        {{.bug = BUG_EAGER, .left = {0, 0, 0, 0, 0, 0}}, .found = "two Jobs of the request are active"},
        {{.bug = BUG_FORGETS, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_DELETE_JOB)},
         .found = "the execution Job is made twice"},
        {{.bug = BUG_ADOPTS, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_OWN_PRODUCT)},
         .found = "somebody made for himself is written"},
        {{.bug = BUG_NO_MEASURES, .left = {0, 0, 0, 0, 0, 0}},
         .found = "what was measured is not in the profile"},
        {{.bug = BUG_STAYS_TRUE, .left = {0, 0, 0, 0, 0, 0}}, .found = "ProfilingCompleted are True"},
        {{.bug = BUG_STAYS_FAILED, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_WORKLOAD)},
         .found = "Failed is True in another phase"},
        {{.bug = BUG_TELLS_EARLY, .left = {0, 0, 0, 0, 0, 0}}, .found = "ExecutionJobCreated is True"},
        {{.bug = BUG_FORGETS_SEEN, .left = {0, 0, 0, 0, 0, 0}}, .found = "observedGeneration goes back"},
        {{.bug = BUG_RAW_PERCENT, .left = {3, 0, 0, 0, 0, 0}}, .found = "the percentage goes back"},
        {{.bug = BUG_DEAF, .left = {0, 0, 0, 0, 0, 0}}, .found = "the phase is not final"},
        {{.bug = BUG_LEAKS, .left = {0, 0, 1, 0, 0, 0}}, .found = "is left after the request was deleted"},
};

static void every_order_ends_well(void **state)
{
        rows_end_well(&cuda_subject, rows, ARRAY_LEN(rows));
}

static void every_mistake_is_found(void **state)
{
        rows_are_found(&cuda_subject, mistakes, ARRAY_LEN(mistakes));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_ends_well),
        cmocka_unit_test(every_mistake_is_found),
};

UNIT_MAIN(tests)
