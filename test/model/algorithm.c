/*
 * The controllers of AlgorithmProfilings and AlgorithmComparisons, explored.
 */
#include "unit/unit.h"

#include "model/algorithm_world.h"
#include "model/rows.h"
#include "model/schedule.h"

static const struct row rows[] = {
        {QUICK, {"two pods, one after another", {0, 0, 0, 0, 0, 0}, .spec = SPEC_TWO_PODS}},
        {QUICK,
         {"a request that is refused, and mended",
          {0, 2, 0, 1, 0, 0},
          .spec = SPEC_UNKNOWN,
          .edits = BIT(EDIT_OWN)}},
        {QUICK, {"a request that goes some time after its end", {0, 0, 0, 1, 0, 0}, .spec = SPEC_TTL}},
        {QUICK, {"a run that is out of memory", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_OOM)}},
        {USUAL, {"two pods, and a crash", {0, 0, 0, 1, 0, 0}, .spec = SPEC_TWO_PODS}},
        {USUAL, {"a run that becomes invalid", {0, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_OWN)}},
        {USUAL, {"a run that becomes invalid, and is mended", {0, 2, 0, 0, 0, 0}, .edits = BIT(EDIT_OWN)}},
        {USUAL,
         {"two pods that are cancelled",
          {0, 1, 0, 0, 0, 0},
          .spec = SPEC_TWO_PODS,
          .edits = BIT(EDIT_CANCEL)}},
        {USUAL,
         {"two pods, one of them evicted",
          {0, 0, 0, 0, 1, 0},
          .spec = SPEC_TWO_PODS,
          .mishaps = BIT(MISHAP_EVICT)}},
        {USUAL,
         {"two pods, and results that are deleted",
          {0, 0, 0, 0, 1, 0},
          .spec = SPEC_TWO_PODS,
          .mishaps = BIT(MISHAP_DELETE_DATA)}},
        {USUAL,
         {"a failure that is edited as it goes",
          {0, 1, 0, 0, 0, 0},
          .spec = SPEC_TTL,
          .edits = BIT(EDIT_WORKLOAD)}},
        {USUAL,
         {"a run that waits, and is edited, suspended or cancelled",
          {0, 1, 0, 0, 0, 0},
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL) | BIT(EDIT_OWN),
          .limited = true}},
        {USUAL,
         {"two pods that are suspended",
          {0, 1, 0, 0, 0, 0},
          .spec = SPEC_TWO_PODS,
          .edits = BIT(EDIT_SUSPEND)}},
        {USUAL,
         {"two pods that are edited",
          {0, 1, 0, 0, 0, 0},
          .spec = SPEC_TWO_PODS,
          .edits = BIT(EDIT_WORKLOAD)}},
        {LONG,
         {"two pods, one of them deleted",
          {0, 0, 0, 1, 1, 0},
          .spec = SPEC_TWO_PODS,
          .mishaps = BIT(MISHAP_DELETE_POD) | BIT(MISHAP_LOSE_RELAY) | BIT(MISHAP_DELETE_JOB)}},
        {LONG,
         {"a run that waits, and all that can happen to it",
          {0, 1, 0, 1, 1, 0},
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_SUSPEND) | BIT(EDIT_CANCEL),
          .mishaps = BIT(MISHAP_OVERTAKEN) | BIT(MISHAP_EVICT),
          .limited = true}},
        {LONG,
         {"a failure that is edited twice",
          {0, 2, 0, 1, 0, 0},
          .spec = SPEC_TTL,
          .edits = BIT(EDIT_WORKLOAD) | BIT(EDIT_OWN)}},
};

/* It differs in names and results alone. */
static const struct row rows_of_comparison[] = {
        {QUICK, {"a comparison", {1, 0, 0, 1, 0, 0}}},
        {QUICK, {"a comparison that is edited", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_WORKLOAD)}},
        {USUAL, {"a comparison that is evicted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
};

static const struct mistake mistakes[] = {
        {{.bug = BUG_BY_NAME, .left = {0, 0, 1, 0, 0, 0}, .recreated = true}},
        {{.bug = BUG_FORGETFUL, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
        {{.bug = BUG_ONE_POD, .left = {0, 0, 0, 0, 0, 0}, .spec = SPEC_TWO_PODS},
         .found = "there are pods left"},
        {{.bug = BUG_JUMPS, .left = {0, 0, 0, 0, 0, 0}, .limited = true}, .found = "not admitted"},
        {{.bug = BUG_HASTY, .left = {0, 0, 0, 0, 0, 0}, .spec = SPEC_TTL}, .found = "too early"},
};

static const struct {
        enum extent extent;
        struct schedule_scenario scenario;
} schedules[] = {
        {QUICK, {"a schedule", "Allow", .until = 5, .crashes = 1}},
        {QUICK, {"a schedule that waits for the last run", "Forbid", .until = 5, .crashes = 1}},
        {QUICK, {"a schedule that replaces the last run", "Replace", .until = 5, .crashes = 1}},
        {QUICK, {"a schedule, and a clock that jumps", "Allow", .until = 3, .jumps = 1}},
        {QUICK, {"a schedule that is suspended", "Allow", .until = 4, .edits = 2}},
        {USUAL,
         {"a schedule, a clock that jumps and a crash", "Forbid", .until = 4, .crashes = 1, .jumps = 1}},
        {USUAL,
         {"a schedule that is suspended, and a crash", "Forbid", .until = 4, .crashes = 1, .edits = 2}},
        {LONG, {"a schedule, and a clock that jumps twice", "Allow", .until = 3, .crashes = 1, .jumps = 2}},
        {LONG,
         {"a schedule that replaces, jumps and is suspended", "Replace", .until = 5, .jumps = 1, .edits = 2}},
};

static const struct {
        struct schedule_scenario scenario;
        const char *found;
} schedule_mistakes[] = {
        {{"lastScheduleTime comes first", "Allow", .until = 5, .crashes = 1, .bug = SCHEDULE_STATUS_FIRST},
         "before the last"},
        {{"what was made is not remembered", "Allow", .until = 4, .jumps = 1, .bug = SCHEDULE_FORGETS},
         "for one moment"},
        {{"the history has no limit", "Allow", .until = 5, .bug = SCHEDULE_KEEPS_ALL}, "more are kept"},
        {{"a suspension is made up for", "Allow", .until = 5, .edits = 2, .bug = SCHEDULE_CATCHES_UP},
         "before the schedule counted"},
};

static void every_schedule_keeps_its_times(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(schedules); i++) {
                _cleanup_(free_ptr) char *wrong = NULL;
                size_t n;

                if (!rows_asked_for(schedules[i].extent, schedules[i].scenario.name))
                        continue;
                n = schedule_explore(&schedules[i].scenario, &wrong);
                printf("# %s: %zu states\n", schedules[i].scenario.name, n);
                if (wrong) {
                        fputs(wrong, stderr);
                        fail();
                }
        }
}

static void every_mistake_with_times_is_found(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(schedule_mistakes); i++) {
                _cleanup_(free_ptr) char *wrong = NULL;
                size_t n;

                if (!rows_asked_for(QUICK, schedule_mistakes[i].scenario.name))
                        continue;
                n = schedule_explore(&schedule_mistakes[i].scenario, &wrong);
                printf("# found after %zu states: %.*s\n", n, wrong ? (int)strcspn(wrong, "\n") : 0,
                       wrong ? wrong : "");
                if (!wrong || !strstr(wrong, schedule_mistakes[i].found))
                        fail_msg("%s: not found", schedule_mistakes[i].scenario.name);
        }
}

static void every_order_ends_well(void **state)
{
        rows_end_well(&profiling_subject, rows, ARRAY_LEN(rows));
}

static void so_does_a_comparison(void **state)
{
        rows_of_kind(&comparison_subject, rows_of_comparison, ARRAY_LEN(rows_of_comparison));
}

static void every_mistake_is_found(void **state)
{
        rows_are_found(&profiling_subject, mistakes, ARRAY_LEN(mistakes));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_ends_well),
        cmocka_unit_test(so_does_a_comparison),
        cmocka_unit_test(every_mistake_is_found),
        cmocka_unit_test(every_schedule_keeps_its_times),
        cmocka_unit_test(every_mistake_with_times_is_found),
};

UNIT_MAIN(tests)
