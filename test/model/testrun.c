/*
 * The controller of TestRuns, explored: what all kinds share.
 */
#include "unit/unit.h"

#include "model/rows.h"
#include "model/testrun_world.h"

static const struct row rows[] = {
        {QUICK, {"a run with a timeout", {0, 0, 0, 1, 0, 1}, .spec = SPEC_TIMEOUT}},
        {QUICK, {"a run that is cancelled, quick", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_CANCEL)}},
        {QUICK, {"a workload that leaves no output", {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_NO_OUTPUT)}},
        {QUICK,
         {"a run without retries",
          {0, 0, 0, 0, 1, 0},
          .spec = SPEC_NO_RETRIES,
          .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD)}},
        {QUICK, {"a Job that retries by itself", {0, 0, 0, 1, 0, 0}, .spec = SPEC_BACKOFF}},
        {QUICK,
         {"a Job that retries, and a pod that is removed",
          {0, 0, 0, 0, 1, 0},
          .spec = SPEC_BACKOFF,
          .mishaps = BIT(MISHAP_SWEEP_POD)}},
        {USUAL,
         {"a Job that retries, and its pods",
          {0, 0, 0, 0, 1, 0},
          .spec = SPEC_BACKOFF,
          .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD) | BIT(MISHAP_LOSE_RELAY) |
                     BIT(MISHAP_SWEEP_POD)}},
        {USUAL,
         {"a Job that retries twice, and an eviction",
          {0, 0, 0, 0, 1, 0},
          .spec = SPEC_BACKOFF_2,
          .mishaps = BIT(MISHAP_EVICT)}},
        {QUICK,
         {"a workload that ends politely",
          {0, 0, 0, 0, 1, 0},
          .mishaps = BIT(MISHAP_DELETE_POD),
          .polite = true}},
        {QUICK,
         {"a workload that ends politely when it is suspended",
          {0, 1, 0, 0, 0, 0},
          .edits = BIT(EDIT_SUSPEND),
          .polite = true}},
        {USUAL,
         {"a timeout, and a relay that is killed",
          {0, 0, 0, 0, 1, 1},
          .spec = SPEC_TIMEOUT,
          .mishaps = BIT(MISHAP_LOSE_RELAY)}},
        {USUAL,
         {"a run that waits, and is edited, suspended or cancelled",
          {0, 1, 0, 0, 0, 0},
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL),
          .limited = true}},
        {LONG,
         {"a Job that retries, on a server that replaces deleted pods",
          {0, 0, 0, 1, 1, 0},
          .spec = SPEC_BACKOFF,
          .mishaps = BIT(MISHAP_DELETE_POD) | BIT(MISHAP_SWEEP_POD),
          .old_server = true}},
        {LONG,
         {"a run with a timeout, and all that can happen to it",
          {0, 1, 0, 1, 1, 1},
          .spec = SPEC_TIMEOUT,
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL),
          .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD) | BIT(MISHAP_LOSE_RELAY)}},
};

static const struct mistake mistakes[] = {
        {{.bug = BUG_BY_NAME, .left = {0, 0, 1, 0, 0, 0}, .recreated = true}},
        {{.bug = BUG_OTHER_SPEC, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_WORKLOAD)}, "of another spec"},
        {{.bug = BUG_RETRIES,
          .left = {0, 0, 0, 0, 1, 0},
          .spec = SPEC_NO_RETRIES,
          .mishaps = BIT(MISHAP_EVICT)},
         "more retries than the spec allows"},
        {{.bug = BUG_TOLD, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_DELETE_POD), .polite = true},
         "and no workload has"},
        {{.bug = BUG_RELAY_CODE, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_LOSE_RELAY)},
         "has ended well is told as a failure"},
        {{.bug = BUG_CLAIMED, .left = {0, 0, 0, 0, 1, 0}, .spec = SPEC_BACKOFF, .mishaps = BIT(MISHAP_EVICT)},
         "the attempt of the progress goes back"},
        {{.bug = BUG_NO_RESULT}, "is not in the status"},
        {{.bug = BUG_ACCEPTS_ALL, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_WORKLOAD)},
         "was not run is accepted"},
        {{.bug = BUG_JUMPS, .limited = true}, "not admitted"},
        {{.bug = BUG_KEEPS_SLOT, .limited = true}, "is over, and holds a slot"},
};

static void every_order_ends_well(void **state)
{
        rows_end_well(&testrun_subject, rows, ARRAY_LEN(rows));
}

static void every_mistake_is_found(void **state)
{
        rows_are_found(&testrun_subject, mistakes, ARRAY_LEN(mistakes));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_ends_well),
        cmocka_unit_test(every_mistake_is_found),
};

UNIT_MAIN(tests)
