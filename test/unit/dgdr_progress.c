/*
 * How far the profiling is, in the designs' own fields and words.
 */
#include "unit/run_objects.h"

#include "kinds/dgdr/internal.h"

/* The full design's "After", and the short one's example file. */
#define FULL                                                                                           \
        "{'phase': 'DecodeInterpolation', 'phaseNumber': 6, 'totalPhases': 7, 'message': 'Profiling "  \
        "decode with batch size 496', 'timestamp': '2026-01-23T14:14:42Z', 'startedAt': "              \
        "'2026-01-23T13:00:00Z', 'progress': {'currentStep': 4, 'totalSteps': 6, 'percentage': 66.7, " \
        "'subPhase': 'Running AIPerf benchmark'}, 'gpuConfig': {'currentGpus': 2, 'parallelMapping': " \
        "'TP=2/DP=1'}}"
#define SHORT                                                                                        \
        "{'phase': 'DecodeInterpolation', 'message': 'Profiling decode with batch size 496 (4/6)', " \
        "'timestamp': '2026-01-24T02:08:42Z', 'progress': {'currentStep': 4, 'totalSteps': 6, "      \
        "'gpuConfig': '1 GPU, TP=1'}}"
#define SAID "[Phase 6/7: DecodeInterpolation] Profiling decode with batch size 496 (4/6, 66.7%)"

/* What a status told in the middle of a phase. */
#define BEFORE                                                                                            \
        "{'profilingPhase': 'DecodeSweep', 'profilingProgress': {'phase': 'DecodeSweep', 'phaseNumber': " \
        "3, 'totalPhases': 7, 'message': 'Profiling decode', 'currentStep': 5, 'totalSteps': 12, "        \
        "'percentage': 41.7, 'subPhase': 'Benchmarking', 'gpuConfig': {'currentGpus': 4, "                \
        "'parallelMapping': 'TP=2/DP=2'}}}"
#define PLACE                                                                                  \
        "'currentStep': 5, 'totalSteps': 12, 'percentage': 41.7, 'subPhase': 'Benchmarking', " \
        "'gpuConfig': {'currentGpus': 4, 'parallelMapping': 'TP=2/DP=2'}"

/* A pod that runs, and what its relay wrote. */
static void runs(struct rig *r, const char *status)
{
        r->children.n = 0;
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), status, NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
}

/* It ended, and the relay recorded it; the kubelet is slower. */
static void ended(struct rig *r, const char *state, const char *status, const char *exit)
{
        const char *fence = streq(state, "Failed") ? FENCE("1", "uid-p", "9", "Failed")
                                                   : FENCE("1", "uid-p", "9", "Succeeded");

        r->children.n = 0;
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, fence, status, exit);
        see(r, streq(state, "Failed") ? RUN_LIFE_FAILED : RUN_LIFE_SUCCEEDED,
            streq(state, "Failed") ? "WorkloadFailed" : NULL);
}

/* The status that follows; the phase is the same in both of the designs' fields. */
static struct json *told(struct rig *r)
{
        const struct json *before = json_at(r->view.request, "status");
        struct json *status = before ? json_copy(&r->arena, before) : json_object(&r->arena), *p;

        dgdr_take_known_phase(&r->view, &r->seen);
        run_progress(&r->view, &r->d, &r->seen, NULL, status);
        dgdr_tell_progress(&r->view, &r->seen, status);
        p = json_at(status, "profilingProgress");
        assert_true(streq(json_str(status, "profilingPhase"), json_str(p, "phase")));
        return status;
}

/* profilingProgress without what is said of the whole run. */
static struct json *place(const struct json *status)
{
        struct json *p = json_at(status, "profilingProgress");

        json_remove(p, "overallPercentage");
        json_remove(p, "estimatedCompletion");
        return p;
}

static const char *message_of(const struct json *status, const char *type)
{
        return json_str(condition(status, type), "message");
}

static void assert_said(const struct json *status, const char *profiling, const char *phase)
{
        assert_string_equal(message_of(status, "Profiling"), profiling);
        assert_string_equal(message_of(status, "ProfilingPhase"), phase);
}

/* ---- while it runs */

static void the_full_design_is_told(void **state)
{
        struct rig *r = *state;
        struct json *status;

        runs(r, FULL);
        status = told(r);
        assert_json(r, place(status),
                    "{'phase': 'DecodeInterpolation', 'phaseNumber': 6, 'totalPhases': 7, 'message': "
                    "'Profiling decode with batch size 496', 'currentStep': 4, 'totalSteps': 6, "
                    "'percentage': 66.7, 'subPhase': 'Running AIPerf benchmark', 'startedAt': "
                    "'2026-01-23T13:00:00Z', 'lastUpdated': '2026-01-23T14:14:42Z', 'gpuConfig': "
                    "{'currentGpus': 2, 'parallelMapping': 'TP=2/DP=1'}}");
        assert_condition(status, "Profiling", "False", "ProfilingRunning");
        assert_condition(status, "ProfilingPhase", "True", "DecodeInterpolation");
        assert_said(status, SAID, "Profiling decode with batch size 496 (4/6)");
}

/* Its number comes from the nine phases, its step stands in the message once. */
static void the_short_design_is_told(void **state)
{
        struct rig *r = *state;
        struct json *status;

        runs(r, SHORT);
        status = told(r);
        assert_json(r, place(status),
                    "{'phase': 'DecodeInterpolation', 'phaseNumber': 6, 'totalPhases': 7, 'message': "
                    "'Profiling decode with batch size 496 (4/6)', 'currentStep': 4, 'totalSteps': 6, "
                    "'percentage': 66.7, 'startedAt': '2026-11-15T11:00:05Z', 'lastUpdated': "
                    "'2026-01-24T02:08:42Z', 'gpuConfig': {'currentGpus': 1, 'parallelMapping': 'TP=1'}}");
        assert_said(status, SAID, "Profiling decode with batch size 496 (4/6)");
}

/* Neither steps nor a count of GPUs, which is not -1. */
static void what_is_said_in_part(void **state)
{
        struct rig *r = *state;

        runs(r, "{'phase': 'DecodeInterpolation', 'timestamp': '2026-01-24T02:08:42Z', 'progress': "
                "{'subPhase': 'Deploying'}, 'gpuConfig': {'parallelMapping': 'TP=1'}}");
        assert_json(r, place(told(r)),
                    "{'phase': 'DecodeInterpolation', 'phaseNumber': 6, 'totalPhases': 7, 'message': '', "
                    "'subPhase': 'Deploying', 'startedAt': '2026-11-15T11:00:05Z', 'lastUpdated': "
                    "'2026-01-24T02:08:42Z', 'gpuConfig': {'parallelMapping': 'TP=1'}}");
}

/* Whatever number the file has, the phase's own counts. */
static void every_phase_has_its_number(void **state)
{
        static const char *const phases[] = {"Initializing",
                                             "PrefillSweep",
                                             "DecodeSweep",
                                             "ConfigSelection",
                                             "PrefillInterpolation",
                                             "DecodeInterpolation",
                                             "PlannerGeneration",
                                             "Complete",
                                             "Failed"};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
                struct json *p;

                runs(r, arena_printf(&r->arena,
                                     "{'phase': '%s', 'phaseNumber': 77, 'totalPhases': 99, 'message': 'm'}",
                                     phases[i]));
                p = json_at(told(r), "profilingProgress");
                assert_string_equal(json_str(p, "phase"), phases[i]);
                assert_int_equal(json_int(p, "phaseNumber", 0), i + 1);
                assert_int_equal(json_int(p, "totalPhases", 0), 7);
        }
}

static void what_is_not_known_is_not_there(void **state)
{
        struct rig *r = *state;
        struct json *status;

        runs(r, "{'phase': 'Initializing', 'message': 'm', 'timestamp': 'yesterday', 'startedAt': '13:00'}");
        status = told(r);
        assert_json(r, place(status),
                    "{'phase': 'Initializing', 'phaseNumber': 1, 'totalPhases': 7, 'message': 'm', "
                    "'startedAt': '2026-11-15T11:00:05Z'}");
        assert_said(status, "[Phase 1/7: Initializing] m", "m");
}

static void an_old_profiler_is_in_progress(void **state)
{
        struct rig *r = *state;
        struct json *status;

        runs(r, NULL);
        status = told(r);
        assert_null(json_at(status, "profilingPhase"));
        assert_null(json_at(status, "profilingProgress"));
        assert_null(condition(status, "ProfilingPhase"));
        assert_condition(status, "Profiling", "False", "ProfilingRunning");
        assert_string_equal(message_of(status, "Profiling"), "Profiling is in progress");
        ended(r, "Succeeded", NULL, "{'code': 0}");
        status = told(r);
        assert_null(json_at(status, "profilingProgress"));
        assert_condition(status, "Profiling", "True", "ProfilingCompleted");
}

/* Computed from the steps, not taken from the file. */
static void a_percentage_has_one_decimal(void **state)
{
        static const struct {
                int step, of;
                const char *percentage, *suffix;
        } cases[] = {
                {1, 3, "33.3", " (1/3, 33.3%)"}, {5, 12, "41.7", " (5/12, 41.7%)"},
                {2, 3, "66.7", " (2/3, 66.7%)"}, {1, 4, "25", " (1/4, 25.0%)"},
                {6, 6, "100", " (6/6, 100.0%)"}, {0, 4, "0", " (0/4, 0.0%)"},
                {7, 6, "100", " (6/6, 100.0%)"}, {3, 0, "0", ""},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *status, *p;

                runs(r, arena_printf(&r->arena,
                                     "{'phase': 'DecodeSweep', 'message': 'm', 'progress': {'currentStep': "
                                     "%d, 'totalSteps': %d, 'percentage': 12.3456}}",
                                     cases[i].step, cases[i].of));
                status = told(r);
                p = json_at(status, "profilingProgress");
                assert_json(r, json_at(p, "percentage"), cases[i].percentage);
                assert_string_equal(message_of(status, "Profiling"),
                                    arena_printf(&r->arena, "[Phase 3/7: DecodeSweep] m%s", cases[i].suffix));
        }
}

/* The file's time, not ours: nothing changes with time alone. */
static void the_same_file_is_the_same_status(void **state)
{
        struct rig *r = *state;
        struct json *status;

        runs(r, FULL);
        status = told(r);
        request(r, json_print(&r->arena, status));
        r->view.now += 60 * USEC_PER_SEC;
        runs(r, FULL);
        assert_true(json_equal(json_at(told(r), "profilingProgress"), json_at(status, "profilingProgress")));
        assert_string_equal(message_of(told(r), "Profiling"), SAID);
}

static void it_waits_or_is_suspended(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, BEFORE);
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Pending'"));
        status_map(r, FENCE("0", "", "0", "Pending"), NULL, NULL);
        see(r, RUN_LIFE_WAITING, NULL);
        status = told(r);
        assert_condition(status, "Profiling", "False", "ProfilingRunning");
        assert_string_equal(json_str(status, "profilingPhase"), "DecodeSweep"); /* as far as it was */
        r->seen.life = RUN_LIFE_SUSPENDED;
        assert_condition(told(r), "Profiling", "False", "Suspended");
        r->seen.life = RUN_LIFE_NONE;
        assert_condition(told(r), "Profiling", "False", "Initializing");
}

/* ---- what cannot be used */

static void a_phase_that_is_none_of_the_nine(void **state)
{
        struct rig *r = *state;
        struct json *status;

        runs(r, "{'phase': 'SweepingPrefill', 'message': 'm'}");
        status = told(r);
        assert_null(json_at(status, "profilingPhase"));
        assert_null(json_at(status, "profilingProgress"));
        assert_condition(status, "Reporting", "False", "UnknownPhase");
        assert_says(message_of(status, "Reporting"), "'SweepingPrefill' is not used");
        assert_string_equal(message_of(status, "Profiling"), "Profiling is in progress");
        request(r, BEFORE); /* what was told stays */
        runs(r, "{'phase': 'SweepingPrefill', 'message': 'm'}");
        status = told(r);
        assert_string_equal(json_str(status, "profilingPhase"), "DecodeSweep");
        assert_said(status, "[Phase 3/7: DecodeSweep] Profiling decode (5/12, 41.7%)",
                    "Profiling decode (5/12)");
}

static void a_file_that_cannot_be_read(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, BEFORE);
        runs(r, "[1");
        status = told(r);
        assert_condition(status, "Reporting", "False", "Malformed");
        assert_json(r, place(status),
                    "{'phase': 'DecodeSweep', 'phaseNumber': 3, 'totalPhases': 7, 'message': 'Profiling "
                    "decode', " PLACE "}");
        assert_condition(status, "Profiling", "False", "ProfilingRunning");
}

/* ---- the end */

/* Neither prefix nor suffix. */
static void complete(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, BEFORE);
        runs(r, "{'phase': 'Complete', 'message': 'Profiling completed successfully', 'progress': "
                "{'currentStep': 6, 'totalSteps': 6}}");
        status = told(r);
        assert_condition(status, "Profiling", "False", "ProfilingRunning");
        assert_condition(status, "ProfilingPhase", "True", "Complete");
        assert_said(status, "Profiling completed successfully", "Profiling completed successfully");
        ended(r, "Succeeded", "{'phase': 'Complete', 'message': 'Profiling completed successfully'}",
              "{'code': 0}");
        status = told(r);
        assert_condition(status, "Profiling", "True", "ProfilingCompleted");
        assert_string_equal(message_of(status, "Profiling"), "Profiling job completed successfully");
        assert_int_equal(json_int(json_at(status, "profilingProgress"), "phaseNumber", 0), 8);
        assert_null(json_at(json_at(status, "profilingProgress"), "currentStep"));
}

/* The design's fail(): where it was stays, with its steps and GPUs, before and after the pod has ended. */
static void a_profiler_that_gives_up(void **state)
{
        static const char failed[] = "{'phase': 'Failed', 'message': 'Profiling failed: no GPU'}";
        struct rig *r = *state;
        struct json *status;

        request(r, BEFORE);
        runs(r, failed);
        status = told(r);
        assert_said(status, "Profiling failed: no GPU", "Profiling failed: no GPU");
        request(r, json_print(&r->arena, status));
        ended(r, "Failed", failed, "{'code': 1}");
        status = told(r);
        assert_json(r, place(status),
                    "{'phase': 'Failed', 'phaseNumber': 9, 'totalPhases': 7, 'message': 'Profiling failed: "
                    "no GPU', " PLACE ", 'startedAt': '2026-11-15T11:00:05Z', 'failedPhase': 'DecodeSweep'}");
        assert_condition(status, "Profiling", "False", "ProfilingFailed");
        assert_says(message_of(status, "Profiling"), "no GPU");
        assert_condition(status, "ProfilingPhase", "False", "Failed");
        assert_string_equal(message_of(status, "ProfilingPhase"), "Profiling failed: no GPU");
}

/* The short design's way: the error is in the details. */
static void an_error_in_the_details(void **state)
{
        struct rig *r = *state;
        struct json *status;

        ended(r, "Failed", "{'phase': 'Failed', 'message': 'it is over', 'details': {'error': 'no GPU'}}",
              "{'code': 1}");
        status = told(r);
        assert_string_equal(json_str(json_at(status, "profilingProgress"), "message"), "it is over");
        assert_says(message_of(status, "Profiling"), "no GPU");
}

/* It says nothing any more; progress and end come in one look, and none of it is lost. */
static void a_profiler_that_dies(void **state)
{
        struct rig *r = *state;
        struct json *status, *p;

        request(r, BEFORE);
        ended(r, "Failed", FULL, "{'code': 3, 'tail': 'no GPU answers'}");
        status = told(r);
        p = place(status);
        assert_string_equal(json_str(p, "phase"), "Failed");
        assert_string_equal(json_str(p, "failedPhase"), "DecodeInterpolation");
        assert_int_equal(json_int(p, "currentStep", 0), 4);
        assert_json(r, json_at(p, "gpuConfig"), "{'currentGpus': 2, 'parallelMapping': 'TP=2/DP=1'}");
        assert_says(json_str(p, "message"), "Profiling failed: ");
        assert_says(json_str(p, "message"), "no GPU answers");
        assert_says(message_of(status, "Profiling"), "exited with status 3");
}

/* Steps of an earlier phase are not where it failed: the relay saw more than the status told. */
static void what_the_relay_saw_is_newer(void **state)
{
        struct rig *r = *state;
        struct run_status seen = {.phase = "PrefillInterpolation", .message = "", .overall = -1};
        struct track t = {0};
        struct json *status, *map;

        track_event(&t, &seen, NOON - 600 * USEC_PER_SEC);
        request(r, BEFORE);
        ended(r, "Failed", "{'phase': 'Failed', 'message': 'Profiling failed: e'}", "{'code': 1}");
        map = (struct json *)r->children.v[r->children.n - 1].json;
        json_set(&r->arena, json_at(map, "data"), "track.json",
                 json_string(&r->arena, json_print(&r->arena, track_json(&r->arena, &t))));
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        assert_true(r->seen.has_track);
        status = told(r);
        assert_string_equal(json_str(json_at(status, "profilingProgress"), "failedPhase"),
                            "PrefillInterpolation");
        assert_null(json_at(json_at(status, "profilingProgress"), "currentStep"));
}

/* The first 500 bytes of an error, between two characters. */
static void a_long_error_is_cut(void **state)
{
        struct rig *r = *state;
        struct json *status;
        const char *message;
        char text[1500];

        memset(text, 'x', sizeof(text));
        text[sizeof(text) - 1] = 0;
        memcpy(text + 499, "\xc3\xa4", 2);
        ended(r, "Failed",
              arena_printf(&r->arena, "{'phase': 'Failed', 'message': 'Profiling failed: %s'}", text),
              "{'code': 1}");
        status = told(r);
        message = json_str(json_at(status, "profilingProgress"), "message");
        assert_int_equal(strlen(message), strlen("Profiling failed: ") + 499);
        assert_true(utf8_valid(message, strlen(message)));
        assert_in_range(strlen(message_of(status, "Profiling")), 200, 500);
}

/* Another attempt follows: it is where it was, until it says something itself. */
static void a_failure_is_taken_back(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, "{'profilingPhase': 'Failed', 'profilingProgress': {'phase': 'Failed', 'phaseNumber': 9, "
                   "'totalPhases': 7, 'message': 'Profiling failed: e', 'failedPhase': 'DecodeSweep', " PLACE
                   "}}");
        runs(r, NULL);
        status = told(r);
        assert_string_equal(json_str(status, "profilingPhase"), "DecodeSweep");
        assert_null(json_at(json_at(status, "profilingProgress"), "failedPhase"));
        runs(r, FULL);
        status = told(r);
        assert_string_equal(message_of(status, "Profiling"), SAID);
        assert_null(json_at(json_at(status, "profilingProgress"), "failedPhase"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(the_full_design_is_told),
        T(the_short_design_is_told),
        T(what_is_said_in_part),
        T(every_phase_has_its_number),
        T(what_is_not_known_is_not_there),
        T(an_old_profiler_is_in_progress),
        T(a_percentage_has_one_decimal),
        T(the_same_file_is_the_same_status),
        T(it_waits_or_is_suspended),
        T(a_phase_that_is_none_of_the_nine),
        T(a_file_that_cannot_be_read),
        T(complete),
        T(a_profiler_that_gives_up),
        T(an_error_in_the_details),
        T(a_profiler_that_dies),
        T(what_the_relay_saw_is_newer),
        T(a_long_error_is_cut),
        T(a_failure_is_taken_back),
};

UNIT_MAIN(tests)
