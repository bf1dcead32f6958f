#include "unit/run_objects.h"

/* ---- what the status says of it */

static struct json *progress(struct rig *r, const struct priors *priors)
{
        struct json *status = json_at(r->view.request, "status");

        status = status ? json_copy(&r->arena, status) : json_object(&r->arena);
        run_progress(&r->view, &r->d, &r->seen, priors, status);
        run_ready(&r->view, &r->d, &r->seen, status);
        return status;
}

static const char FULL[] =
        "{'phase': 'DecodeSweep', 'phaseNumber': 3, 'totalPhases': 7, 'message': 'Profiling', 'timestamp': "
        "'2026-11-15T11:50:00Z', 'startedAt': '2026-11-15T11:10:00Z', 'progress': {'currentStep': 5, "
        "'totalSteps': 12, 'subPhase': 'Deploying'}, 'gpuConfig': {'currentGpus': 4, 'parallelMapping': "
        "'TP=2'}, 'bestSoFar': 'TP=4'}";

/* Puts the track of a run that has reported FULL at 11:50 into the ConfigMap that was added last. */
static void with_track(struct rig *r, usec_t when)
{
        struct json *data = json_at((struct json *)r->children.v[r->children.n - 1].json, "data");
        struct run_status s;
        struct track *t = arena_new(&r->arena, struct track);
        struct err err = ERR_INIT;

        assert_int_equal(run_status_parse(&r->arena, json_text(json_at(data, "status.json")), NOON, &s, &err),
                         0);
        track_event(t, &s, when);
        json_set(&r->arena, data, "track.json",
                 json_string(&r->arena, json_print(&r->arena, track_json(&r->arena, t))));
}

static void the_shape_of_progress(void **state)
{
        struct rig *r = *state;
        struct json *status, *p;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'startedAt': '2026-11-15T09:00:00Z'}}");
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->seen.has_track);
        status = progress(r, NULL);
        p = json_at(status, "progress");
        assert_true(json_at(p, "percent") && json_at(p, "estimatedCompletion"));
        json_remove(p, "percent");
        json_remove(p, "estimatedCompletion");
        assert_string_equal(json_str(p, "eta"), "12:42Z (12:01-13:40)");
        json_remove(p, "eta");
        assert_json(
                r, p,
                "{'phase': 'DecodeSweep', 'phaseNumber': 3, 'totalPhases': 7, 'step': '5/12', 'currentStep': "
                "5, 'totalSteps': 12, 'subPhase': 'Deploying', 'message': 'Profiling', 'attempt': 1, "
                "'gpuConfig': {'currentGpus': 4, 'parallelMapping': 'TP=2'}, 'bestSoFar': 'TP=4', "
                "'startedAt': "
                "'2026-11-15T09:00:00Z', 'updatedAt': '2026-11-15T11:50:00Z', 'job': 'r-run', 'pod': 'p', "
                "'podUID': 'uid-p'}");
        assert_condition(status, "Progressing", "True", "Running");
        assert_condition(status, "Reporting", "True", "Reported");
        assert_condition(status, "Ready", "False", "InProgress");
        assert_condition(status, "Stalled", "False", "InProgress");
        assert_true(r->d.again_at > NOON); /* when it counts as not moving */
}

/* The day is told where it is another one. */
static void an_end_on_another_day(void **state)
{
        struct rig *r = *state;
        const usec_t late = NOON + (12 * 3600 - 600) * USEC_PER_SEC; /* 23:50 */

        r->view.now = late + 600 * USEC_PER_SEC;
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, late);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_string_equal(json_str(json_at(progress(r, NULL), "progress"), "eta"),
                            "Nov 16 00:42Z (00:01-01:40)");
}

/* The first attempt's start stays; what else was told of it does not. */
static void another_attempt(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'startedAt': '2026-11-15T09:00:00Z', "
                   "'percent': 50, 'phase': 'DecodeSweep', 'eta': '15:12Z (15:08-15:21)', 'podUID': 'x'}, "
                   "'conditions': [{'type': 'Reporting', 'status': 'True'}]}");
        r->names = (struct run_names){"r-run-2", "r-status", "r-data", "r-access", 2};
        r->seen = (struct run_seen){.life = RUN_LIFE_WAITING,
                                    .reason = "Resumed",
                                    .sentence = "s",
                                    .names = &r->names,
                                    .attempt = 2};
        status = progress(r, NULL);
        assert_json(r, json_at(status, "progress"), "{'attempt': 2, 'startedAt': '2026-11-15T09:00:00Z'}");
        assert_condition(status, "Reporting", "Unknown", "NothingYet");
        assert_condition(status, "Progressing", "True", "Resumed");
}

/* Nothing in it changes with time alone, and the status is its own fixed point. */
static void the_same_again(void **state)
{
        struct rig *r = *state;
        struct json *first, *second;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_RUNNING, NULL);
        first = progress(r, NULL);
        request(r, json_print(&r->arena, first));
        r->view.now += 7 * USEC_PER_SEC;
        see(r, RUN_LIFE_RUNNING, NULL);
        second = progress(r, NULL);
        assert_true(json_equal(first, second));
        assert_int_equal(r->d.events.n, 0);
}

static void not_moving(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_RUNNING, NULL);
        progress(r, NULL);
        r->view.now = r->d.again_at;
        r->d.again_at = 0;
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL);
        assert_condition(status, "Progressing", "False", "NotMoving");
        assert_condition(status, "Stalled", "False", "InProgress"); /* is for failures */
        assert_int_equal(r->d.again_at, 0);
}

/* One event when it turns; the last good state stays. */
static void told_once(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'phase': 'PrefillSweep', 'percent': 12.5, "
                   "'updatedAt': '2026-11-15T11:40:00Z'}, 'conditions': [{'type': 'Reporting', 'status': "
                   "'True'}]}");
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "[]", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL);
        assert_condition(status, "Reporting", "False", "Malformed");
        assert_int_equal(r->d.events.n, 1);
        assert_int_equal(r->d.events.v[0].type, EVENT_WARNING);
        assert_string_equal(json_str(json_at(status, "progress"), "phase"), "PrefillSweep");
        assert_string_equal(json_print(&r->arena, json_at(json_at(status, "progress"), "percent")), "12.5");
        request(r, json_print(&r->arena, status));
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(json_equal(progress(r, NULL), status));
        assert_int_equal(r->d.events.n, 1);
}

/* The second attempt begins anew, but the run began when it began. */
static void started_at_survives(void **state)
{
        struct rig *r = *state;
        const struct json *status, *p;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'phase': 'DecodeSweep', 'percent': 60, "
                   "'startedAt': '2026-11-15T09:00:00Z', 'pod': 'p'}, 'conditions': [{'type': "
                   "'Reporting', 'status': 'True', 'reason': 'Reported'}]}");
        job(r, JOB("", ""));
        pod(r, "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC
                                                         ", 'status': {'phase': 'Running', " STATES(
                                                                 RUNNING, RUNNING) "}}");
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), "{'phase': 'DecodeSweep'}", "{'signal': 15}");
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL);
        p = json_at(status, "progress");
        assert_condition(status, "Reporting", "Unknown", "NothingYet");
        assert_json(r, p,
                    "{'attempt': 2, 'startedAt': '2026-11-15T09:00:00Z', 'job': 'r-run', 'pod': 'q', "
                    "'podUID': 'uid-q'}");
}

/* No data is not 0: neither track nor percentage. */
static void no_percentage(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL);
        assert_string_equal(json_str(json_at(status, "progress"), "phase"), "DecodeSweep");
        assert_null(json_at(json_at(status, "progress"), "percent"));
        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'percent': 12.5}}");
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL); /* what was told stays */
        assert_string_equal(json_print(&r->arena, json_at(json_at(status, "progress"), "percent")), "12.5");
}

/* A count that is not said would be -1, and the server would refuse the whole status. */
static void what_is_said_in_part(void **state)
{
        static const struct {
                const char *said, *gpus; /* NULL: nothing */
        } cases[] = {{"{'parallelMapping': 'TP=2'}", "{'parallelMapping': 'TP=2'}"},
                     {"'TP=2'", "{'parallelMapping': 'TP=2'}"},
                     {"{'currentGpus': 0}", "{'currentGpus': 0}"},
                     {"'4 GPUs'", "{'currentGpus': 4}"},
                     {"{}", NULL}};
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct json *p;

                r->children.n = 2;
                status_map(r, FENCE("1", "uid-p", "4", "Running"),
                           arena_printf(&r->arena,
                                        "{'phase': 'DecodeSweep', 'progress': {'subPhase': 'Deploying'}, "
                                        "'gpuConfig': %s}",
                                        cases[i].said),
                           NULL);
                see(r, RUN_LIFE_RUNNING, NULL);
                p = json_at(progress(r, NULL), "progress");
                assert_string_equal(json_str(p, "subPhase"), "Deploying"); /* also without steps */
                assert_null(json_at(p, "step"));
                if (cases[i].gpus)
                        assert_json(r, json_at(p, "gpuConfig"), cases[i].gpus);
                else
                        assert_null(json_at(p, "gpuConfig"));
        }
}

static void the_end_of_progress(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), FULL, "{'code': 0}"); /* never said Complete */
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        status = progress(r, NULL);
        assert_int_equal(json_int(json_at(status, "progress"), "percent", 0), 100);
        assert_null(json_at(json_at(status, "progress"), "estimatedCompletion"));
        assert_condition(status, "Ready", "True", "Succeeded");
        assert_condition(status, "Progressing", "False", "Succeeded");
        assert_int_equal(r->d.again_at, 0);
        assert_int_equal(r->d.events.n, 1);
}

static void a_failure_in_all_conditions(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'code': 3}");
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        status = progress(r, NULL);
        assert_condition(status, "Ready", "False", "WorkloadFailed");
        assert_condition(status, "Stalled", "True", "WorkloadFailed");
        assert_condition(status, "Progressing", "False", "WorkloadFailed");
        assert_int_equal(r->d.events.n, 1);
}

/* ---- what came out */

/* The data ConfigMap as the server has it. */
static const struct json *result_of(struct rig *r, const char *map)
{
        struct json *result;

        r->answers.n = 0;
        r->seen = (struct run_seen){.names = &r->names};
        answer(r, &KUBE_CONFIGMAP, "r-data", map, NULL);
        assert_true(run_result(&r->view, &r->d, &r->seen, &result));
        return result;
}

#define DATA_MAP(more) "{'metadata': {'name': 'r-data', 'uid': 'd', " OWNED "}, " more "}"

static const char *packed_map(struct rig *r, struct str result)
{
        _cleanup_(buf_done) struct buf packed = BUF_INIT(1000), text = BUF_INIT(1000);
        struct err err = ERR_INIT;

        assert_int_equal(gzip_add(&packed, result, &err), 0);
        buf_add_base64(&text, buf_str(&packed));
        return arena_printf(&r->arena, DATA_MAP("'binaryData': {'result.json.gz': '%s'}"), buf_cstr(&text));
}

static void results(void **state)
{
        struct rig *r = *state;
        struct json *result;

        r->seen.names = &r->names;
        assert_false(run_result(&r->view, &r->d, &r->seen, &result));
        assert_true(wanted(r, &KUBE_CONFIGMAP, "r-data"));
        assert_null(result_of(r, NULL));
        assert_json(r, result_of(r, DATA_MAP("'data': {'result.json': '{\\u0022a\\u0022: 1}'}")), "{'a': 1}");
        assert_json(r, result_of(r, packed_map(r, STR("{\"b\": 2}"))), "{'b': 2}");
        assert_null(r->seen.problem);
        assert_null(
                result_of(r, "{'metadata': {'name': 'r-data', " OTHERS "}, 'data': {'result.json': '{}'}}"));
        assert_null(r->seen.problem); /* a stranger's */
}

/* What the server would refuse is not put into the status, and that is said. */
static void results_that_are_not_kept(void **state)
{
        struct rig *r = *state;
        char *large = arena_alloc(&r->arena, 70000);
        static const char *const bad[] = {"{", "[1]", "7", "null"};

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_null(result_of(
                        r, arena_printf(&r->arena, DATA_MAP("'data': {'result.json': '%s'}"), bad[i])));
                assert_string_equal(r->seen.problem_reason, "ResultNotKept");
                assert_says(r->seen.problem, "r-data");
        }
        assert_null(result_of(r, DATA_MAP("'binaryData': {'result.json.gz': 'AAAA'}")));
        assert_string_equal(r->seen.problem_reason, "ResultNotKept");
        memset(large, ' ', 69999);
        large[69999] = '\0';
        large[0] = '{';
        large[69998] = '}';
        assert_null(result_of(r, arena_printf(&r->arena, DATA_MAP("'data': {'result.json': '%s'}"), large)));
        assert_string_equal(r->seen.problem_reason, "ResultNotKept");
        assert_null(result_of(r, packed_map(r, str_of(large))));
        assert_string_equal(r->seen.problem_reason, "ResultNotKept");
        large[60000] = '}';
        assert_json(r, result_of(r, packed_map(r, str_n(large, 60001))), "{}");
}

static void the_row(void **state)
{
        struct rig *r = *state;
        const struct history_row *row;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("2", "uid-p", "9", "Succeeded"), FULL,
                   "{'code': 0, 'startedAt': '2026-11-15T11:01:00Z', 'finishedAt': '2026-11-15T11:55:00Z'}");
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        row = run_row(&r->view, &r->seen, "shape");
        assert_string_equal(row->uid, "uid-r");
        assert_string_equal(row->kind, "TestRun");
        assert_string_equal(row->ns, "ns");
        assert_string_equal(row->name, "r");
        assert_string_equal(row->shape, "shape");
        assert_string_equal(row->outcome, "Succeeded");
        assert_int_equal(row->attempt, 2);
        assert_int_equal(row->started, NOON - 59 * 60 * USEC_PER_SEC);
        assert_int_equal(row->finished, NOON - 5 * 60 * USEC_PER_SEC);
        assert_non_null(row->track);
        assert_null(row->labels);
        assert_null(row->spec_hash);
}

static void the_row_has_labels_image_and_spec_hash(void **state)
{
        struct rig *r = *state;
        const struct history_row *row;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("2", "uid-p", "9", "Succeeded"), FULL, "{'code': 0}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        r->view.request = json_build(
                &r->arena,
                "{'metadata': {'name': 'r', 'namespace': 'ns', 'uid': 'uid-r', 'labels': {'team': 'a', "
                "'app.kubernetes.io/name': 'x', 'k8s.io/y': 'z', 'sonde.dev/request': 'u', 'notk8s.io/a': "
                "'b'}}, "
                "'status': {'run': {'specHash': 'abc'}}}");
        row = run_row(&r->view, &r->seen, "shape");
        assert_string_equal(row->labels, "{\"team\":\"a\",\"notk8s.io/a\":\"b\"}");
        assert_string_equal(row->spec_hash, "abc");
        assert_string_equal(row->image, "workload:1");
}

static void a_row_of_a_wrong_clock(void **state)
{
        struct rig *r = *state;
        const struct history_row *row;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("2", "uid-p", "9", "Succeeded"), NULL,
                   "{'code': 0, 'startedAt': '2027-11-15T11:01:00Z', 'finishedAt': '2027-11-15T11:55:00Z'}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        row = run_row(&r->view, &r->seen, "shape");
        assert_int_equal(row->finished, NOON);
        assert_int_equal(row->started, NOON);
}

static void priors(void **state)
{
        struct rig *r = *state;
        const struct priors known = {.n = 1}, *p = &known;

        assert_true(run_priors(&r->view, &r->d, NULL, &p));
        assert_null(p);
        assert_false(run_priors(&r->view, &r->d, "s", &p));
        assert_int_equal(r->d.wants[0].kind, WANT_PRIORS);
        *vec_push(&r->answers) = (struct answer){.want = r->d.wants[0], .priors = &known};
        r->view.answers = r->answers.v;
        r->view.n_answers = 1;
        assert_true(run_priors(&r->view, &r->d, "s", &p));
        assert_ptr_equal(p, &known);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(the_shape_of_progress),
        T(an_end_on_another_day),
        T(another_attempt),
        T(the_same_again),
        T(not_moving),
        T(told_once),
        T(started_at_survives),
        T(no_percentage),
        T(what_is_said_in_part),
        T(the_end_of_progress),
        T(a_failure_in_all_conditions),
        T(results),
        T(results_that_are_not_kept),
        T(a_row_of_a_wrong_clock),
        T(the_row),
        T(the_row_has_labels_image_and_spec_hash),
        T(priors),
};

UNIT_MAIN(tests)
