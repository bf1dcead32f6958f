#include "unit/relay_rig.h"

/* ---- states */

static void test_from_the_claim_to_the_end(void **state)
{
        struct rig *r = *state;

        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "GPgp");
        assert_status(r, RUN_KEY_STATE, "Pending");
        assert_status(r, RUN_KEY_SEQUENCE, "1");
        pod_start(&r->pod);
        soon(r);
        assert_status(r, RUN_KEY_STATE, "Running");
        pod_report(&r->pod, "Warmup");
        soon(r);
        assert_true(status_says(r->kube, "pod-a 1"));
        assert_string_equal(requests(r->kube), "PP"); /* one request a state */
        assert_status(r, RUN_KEY_SEQUENCE, "3");
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_string_equal(requests(r->kube), "P"); /* there is no data to be kept */
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_int_equal(r->pod.exit_status, 0);
}

static void test_a_late_relay_sends_what_is_there_with_its_claim(void **state)
{
        struct rig *r = *state;

        pod_start(&r->pod);
        pod_report(&r->pod, "Warmup");
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "GPgp");
        assert_status(r, RUN_KEY_SEQUENCE, "1");
        assert_true(status_says(r->kube, "pod-a 1"));
}

static void test_a_track_goes_along(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text;

        begin(r);
        pod_report(&r->pod, "Warmup");
        pass(r->loop, USEC_PER_SEC);
        pod_report(&r->pod, "Measure");
        soon(r);
        text = map_value(r->kube, 0, RUN_KEY_TRACK, &a);
        assert_non_null(strstr(text, "Warmup"));
        assert_non_null(strstr(text, "Measure"));
}

static void test_five_a_second_after_a_burst_and_the_last_wins(void **state)
{
        struct rig *r = *state;

        begin(r);
        pass(r->loop, 5 * USEC_PER_SEC);
        for (int i = 0; i < 20; i++) {
                pod_report(&r->pod, "Measure");
                pass(r->loop, 5 * USEC_PER_MS);
        }
        assert_string_equal(requests(r->kube), "PPPPP");
        assert_true(status_says(r->kube, "pod-a 5"));
        pass(r->loop, 150 * USEC_PER_MS);
        assert_string_equal(requests(r->kube), "P");
        assert_true(status_says(r->kube, "pod-a 20"));
        for (int i = 0; i < 200; i++) {
                pod_report(&r->pod, "Measure");
                pass(r->loop, 10 * USEC_PER_MS);
        }
        assert_in_range(strlen(requests(r->kube)), 9, 11); /* in two seconds */
        pass(r->loop, 300 * USEC_PER_MS);
        assert_true(status_says(r->kube, "pod-a 220"));
}

static void test_a_text_that_says_the_same_is_no_state(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_write(&r->pod, RUN_STATUS_FILE, "{\"phase\": \"Measure\", \"message\": \"pod-a\"}");
        soon(r);
        assert_string_equal(requests(r->kube), "P");
        pod_write(&r->pod, RUN_STATUS_FILE, "{\"phase\": \"Measure\", \"message\": \"pod-a\"}");
        pod_write(&r->pod, RUN_STATUS_FILE, "{\"phase\":\"Measure\",\"message\":\"pod-a\"}");
        soon(r);
        assert_string_equal(requests(r->kube), "");
}

static void test_an_older_file_and_what_follows_the_last_phase_are_ignored(void **state)
{
        struct rig *r = *state;

        begin(r);
        r->pod.sequence = 4;
        pod_report(&r->pod, "Measure");
        soon(r);
        r->pod.sequence = 2;
        pod_report(&r->pod, "Measure");
        soon(r);
        assert_true(status_says(r->kube, "pod-a 5"));
        r->pod.sequence = 5;
        pod_report(&r->pod, "Complete");
        soon(r);
        pod_report(&r->pod, "Measure");
        soon(r);
        assert_true(status_says(r->kube, "pod-a 6"));
        assert_status(r, RUN_KEY_STATE, "Running"); /* it has not ended yet */
}

/* ---- files */

static void test_a_torn_text_is_no_problem_until_it_stays(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_report(&r->pod, "Measure");
        soon(r);
        requests(r->kube);
        pod_scribble(&r->pod, "{\"phase\": \"Mea");
        pass(r->loop, 900 * USEC_PER_MS);
        pod_scribble(&r->pod, status_text(&r->pod, "Measure"));
        soon(r);
        assert_string_equal(requests(r->kube), "P");
        assert_true(status_says(r->kube, "pod-a 2"));
        assert_status(r, RUN_KEY_PROBLEM, "");
        pod_scribble(&r->pod, "{\"phase\": \"Mea");
        pass(r->loop, 1100 * USEC_PER_MS);
        assert_string_equal(requests(r->kube), "P"); /* a note */
        assert_problem(r, "JSON");
        assert_true(status_says(r->kube, "pod-a 2"));
        assert_status(r, RUN_KEY_SEQUENCE, "3");
        pass(r->loop, 25 * USEC_PER_SEC);
        assert_string_equal(requests(r->kube), ""); /* the same reason, once */
        pod_report(&r->pod, "Measure");
        soon(r);
        assert_status(r, RUN_KEY_PROBLEM, "");
}

static void test_what_is_no_file_is_a_problem(void **state)
{
        struct rig *r = *state;
        char path[512];

        begin(r);
        snprintf(path, sizeof(path), "%s/%s", r->pod.dir, RUN_STATUS_FILE);
        assert_int_equal(mkdir(path, 0755), 0);
        pass(r->loop, 12 * USEC_PER_SEC); /* the rescan finds it */
        assert_problem(r, "directory");
        assert_int_equal(rmdir(path), 0);
        pass(r->loop, 10 * USEC_PER_SEC);
        assert_status(r, RUN_KEY_PROBLEM, "");
}

static void test_a_directory_that_comes_back_is_watched_again(void **state)
{
        struct rig *r = *state;
        char gone[512];

        begin(r);
        snprintf(gone, sizeof(gone), "%s.gone", r->pod.dir);
        assert_int_equal(rename(r->pod.dir, gone), 0);
        pass(r->loop, 15 * USEC_PER_SEC);
        assert_int_equal(mkdir(r->pod.dir, 0755), 0);
        pod_report(&r->pod, "Measure");
        pass(r->loop, 10 * USEC_PER_SEC);
        assert_true(status_says(r->kube, "pod-a 1"));
        pod_report(&r->pod, "Measure");
        soon(r); /* without a rescan */
        assert_true(status_says(r->kube, "pod-a 2"));
}

/* ---- at rest */

static void test_at_rest_it_wakes_for_the_rescan_and_the_heartbeat_alone(void **state)
{
        struct rig *r = *state;
        usec_t end, last = 0;
        unsigned wakes = 0;

        begin(r);
        pass(r->loop, 100 * USEC_PER_MS);
        end = r->clock.boot + 60 * USEC_PER_SEC;
        while (r->clock.boot < end) {
                assert_true(loop_turn(r->loop, true));
                wakes += r->clock.boot != last;
                last = r->clock.boot;
        }
        assert_string_equal(requests(r->kube), "PP");
        /* A heartbeat wakes it for its answer too; and one rescan is beyond the end. */
        assert_int_equal(wakes, 6 + 2 * 2 + 1);
        assert_status(r, RUN_KEY_SEQUENCE, "1");
}

static void test_no_heartbeat_while_things_change(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *beat;

        begin(r);
        for (int i = 0; i < 10; i++) {
                pod_report(&r->pod, "Measure");
                pass(r->loop, 20 * USEC_PER_SEC);
        }
        assert_string_equal(requests(r->kube), "PPPPPPPPPP");
        beat = map_value(r->kube, 0, RUN_KEY_HEARTBEAT, &a);
        pass(r->loop, 15 * USEC_PER_SEC);
        assert_string_equal(requests(r->kube), "P");
        assert_string_not_equal(map_value(r->kube, 0, RUN_KEY_HEARTBEAT, &a), beat);
        assert_true(status_says(r->kube, "pod-a 10"));
}

/* ---- the API */

static void test_a_lost_answer_is_looked_up_and_not_sent_again(void **state)
{
        struct rig *r = *state;

        begin(r);
        plan_next(r->kube, FATE_LOST_AFTER, E_OK);
        pod_report(&r->pod, "Measure");
        pass(r->loop, USEC_PER_SEC);
        assert_string_equal(requests(r->kube), "PG");
        assert_status(r, RUN_KEY_SEQUENCE, "2");
        plan_next(r->kube, FATE_LOST_BEFORE, E_OK);
        pod_report(&r->pod, "Measure");
        pass(r->loop, USEC_PER_SEC);
        assert_string_equal(requests(r->kube), "PGP");
        assert_status(r, RUN_KEY_SEQUENCE, "3");
        assert_true(status_says(r->kube, "pod-a 2"));
}

static void test_what_was_not_carried_out_is_sent_again_without_a_look(void **state)
{
        static const enum err_code codes[] = {E_CONNECT, E_BUSY, E_AUTH, E_TLS};
        struct rig *r = *state;

        begin(r);
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                plan_next(r->kube, FATE_ERROR, codes[i]);
                pod_report(&r->pod, "Measure");
                pass(r->loop, USEC_PER_SEC);
                assert_string_equal(requests(r->kube), "PP");
        }
        assert_true(status_says(r->kube, "pod-a 4"));
}

static void test_a_newer_attempt_ends_it(void **state)
{
        struct rig *r = *state;

        begin(r);
        other_pod_writes(r->kube, 2, "pod-b", "Running");
        pod_report(&r->pod, "Measure");
        soon(r);
        assert_string_equal(requests(r->kube), "PG");
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_POD, "pod-b");
}

static void test_a_newer_attempt_is_noticed_by_the_heartbeat(void **state)
{
        struct rig *r = *state;

        begin(r);
        other_pod_writes(r->kube, 2, "", "Pending"); /* the operator's next Job */
        pass(r->loop, 31 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_ATTEMPT, "2");
}

static void test_another_pods_run_becomes_the_next_attempt(void **state)
{
        struct rig *r = *state;

        other_pod_writes(r->kube, 1, "pod-x", "Failed");
        begin(r);
        assert_status(r, RUN_KEY_ATTEMPT, "2");
        assert_status(r, RUN_KEY_SEQUENCE, "1");
        assert_status(r, RUN_KEY_POD, "pod-a");
}

static void test_but_only_once(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_relay_kill(&r->pod);
        other_pod_writes(r->kube, 2, "pod-b", "Running");
        pod_relay(&r->pod, r->kube); /* again, in the same pod */
        soon(r);
        assert_string_equal(requests(r->kube), "G");
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_POD, "pod-b");
}

static void test_a_relay_that_is_started_again_goes_on(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        pod_report(&r->pod, "Warmup");
        soon(r);
        requests(r->kube);
        pod_relay_kill(&r->pod);
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "Gg"); /* nothing is new */
        pod_report(&r->pod, "Measure");
        soon(r);
        assert_status(r, RUN_KEY_SEQUENCE, "3");
        assert_non_null(strstr(map_value(r->kube, 0, RUN_KEY_TRACK, &a), "Warmup"));
}

static void test_nothing_follows_the_end(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_end(&r->pod, "{\"code\": 1}");
        soon(r);
        assert_int_equal(r->pod.exit_status, 0);
        requests(r->kube);
        pod_relay_kill(&r->pod);
        r->pod.exit_status = -1;
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "G");
        assert_int_equal(r->pod.exit_status, 0);
}

static void test_without_its_map_it_ends_at_once(void **state)
{
        struct rig *r = *state;

        free(TAKE_PTR(r->kube->maps[0].text));
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "G");
        assert_int_equal(r->pod.exit_status, 1);
}

/* As the operator makes it again: it is this pod's still. */
static void test_a_map_that_is_made_again_gets_the_last_state(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        pod_report(&r->pod, "Warmup");
        soon(r);
        free(TAKE_PTR(r->kube->maps[0].text));
        pod_report(&r->pod, "Measure");
        pass(r->loop, 300 * USEC_PER_SEC); /* nobody is there to make it at once */
        assert_int_equal(r->pod.exit_status, -1);
        r->kube->maps[0].text = xstrdup(
                "{\"metadata\": {\"resourceVersion\": \"900\"}, \"data\": {\"attempt\": \"1\", \"podUID\": "
                "\"pod-a\", \"sequence\": \"0\", \"state\": \"Pending\"}}");
        r->kube->fence = (struct run_fence){.attempt = 1, .pod = "pod-a"};
        pass(r->loop, 15 * USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Running");
        assert_non_null(strstr(map_value(r->kube, 0, RUN_KEY_STATUS, &a), "Measure"));
        assert_non_null(strstr(map_value(r->kube, 0, RUN_KEY_TRACK, &a), "Warmup"));
        free(TAKE_PTR(r->kube->maps[0].text));
        pod_report(&r->pod, "Report");
        pass(r->loop, 590 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, -1);
        pass(r->loop, 25 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 1);
}

static void test_what_is_forbidden_at_first_is_tried_for_10_s(void **state)
{
        struct rig *r = *state;

        r->kube->otherwise = (struct step){FATE_ERROR, E_FORBIDDEN};
        pod_relay(&r->pod, r->kube);
        pass(r->loop, 9 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, -1);
        r->kube->otherwise = (struct step){0};
        pass(r->loop, 2 * USEC_PER_SEC);
        assert_status(r, RUN_KEY_POD, "pod-a");
        r->kube->otherwise = (struct step){FATE_ERROR, E_FORBIDDEN};
        pod_report(&r->pod, "Measure");
        pass(r->loop, 300 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, -1);
        r->kube->otherwise = (struct step){0};
        pass(r->loop, 15 * USEC_PER_SEC);
        assert_true(status_says(r->kube, "pod-a 1"));
}

static void test_what_stays_forbidden_ends_it(void **state)
{
        struct rig *r = *state;

        r->kube->otherwise = (struct step){FATE_ERROR, E_FORBIDDEN};
        pod_relay(&r->pod, r->kube);
        pass(r->loop, 12 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 1);
}

/* A track that a heartbeat finds lost: nothing else is new. */
static void test_a_map_without_the_track_gets_it(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *object;

        begin(r);
        pod_report(&r->pod, "Warmup");
        soon(r);
        object = map_json(r->kube, 0, &a);
        json_remove(json_at(object, "data"), RUN_KEY_TRACK);
        put_object(r->kube, &r->kube->maps[0], object, &a);
        plan_next(r->kube, FATE_LOST_BEFORE, E_OK);
        pass(r->loop, 32 * USEC_PER_SEC);
        assert_non_null(strstr(map_value(r->kube, 0, RUN_KEY_TRACK, &a), "Warmup"));
}

static void write_large(struct rig *r, size_t size)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 << 10);

        buf_printf(&text, "{\"phase\": \"Measure\", \"message\": \"pod-a %zu\", \"more\": \"", size);
        for (size_t i = 0; i < size; i++)
                buf_addc(&text, 'x');
        buf_adds(&text, "\"}");
        pod_write(&r->pod, RUN_STATUS_FILE, buf_cstr(&text));
        pass(r->loop, USEC_PER_SEC);
}

static void test_a_track_that_has_no_room_goes_and_comes_back(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        for (int i = 0; i < 24; i++) {
                pod_write(&r->pod, RUN_STATUS_FILE,
                          arena_printf(&a,
                                       "{\"phase\": \"Warmup of part %d, with a name of some length\", "
                                       "\"message\": \"pod-a\"}",
                                       i));
                pass(r->loop, USEC_PER_SEC);
        }
        assert_in_range(strlen(map_value(r->kube, 0, RUN_KEY_TRACK, &a)), 1800, 8 << 10);
        write_large(r, 12000);
        assert_true(status_says(r->kube, "pod-a 12000"));
        assert_null(map_value(r->kube, 0, RUN_KEY_TRACK, &a));
        write_large(r, 12001);
        assert_true(status_says(r->kube, "pod-a 12001"));
        write_large(r, 10);
        assert_non_null(strstr(map_value(r->kube, 0, RUN_KEY_TRACK, &a), "Warmup"));
}

static void test_without_inotify_it_looks_every_second(void **state)
{
        struct rig *r = *state;

        no_inotify = true;
        pod_start(&r->pod);
        pod_relay(&r->pod, r->kube);
        no_inotify = false;
        soon(r);
        assert_status(r, RUN_KEY_STATE, "Running");
        pod_report(&r->pod, "Measure");
        pass(r->loop, 1100 * USEC_PER_MS);
        assert_true(status_says(r->kube, "pod-a 1"));
        pod_report(&r->pod, "Measure");
        pass(r->loop, 1100 * USEC_PER_MS);
        assert_true(status_says(r->kube, "pod-a 2"));
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 1100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
}

static void test_a_directory_that_is_none_is_a_problem(void **state)
{
        struct rig *r = *state;

        assert_int_equal(rmdir(r->pod.dir), 0);
        begin(r); /* not there: it may come yet */
        assert_status(r, RUN_KEY_PROBLEM, "");
        pod_write_at(r->pod.home, "run", STR("x"));
        pass(r->loop, 12 * USEC_PER_SEC);
        assert_problem(r, "cannot open the directory");
        assert_int_equal(unlink(r->pod.dir), 0);
        assert_int_equal(mkdir(r->pod.dir, 0755), 0);
        pass(r->loop, 12 * USEC_PER_SEC);
        assert_status(r, RUN_KEY_PROBLEM, "");
}

static void test_a_success_is_never_wiped_by_another_pod_of_the_job(void **state)
{
        struct rig *r = *state;

        other_pod_writes(r->kube, 1, "pod-x", "Succeeded");
        pod_start(&r->pod);
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "G");
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_POD, "pod-x");
        assert_status(r, RUN_KEY_STATE, "Succeeded");
}

static void test_ten_minutes_without_the_api_end_it(void **state)
{
        struct rig *r = *state;

        begin(r);
        r->kube->otherwise = (struct step){FATE_ERROR, E_CONNECT};
        pod_report(&r->pod, "Measure");
        pass(r->loop, 590 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, -1);
        assert_in_range(strlen(requests(r->kube)), 50, 80); /* with backoff */
        pass(r->loop, 25 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 1);
}

static void test_an_api_that_comes_back_gets_the_last_state(void **state)
{
        struct rig *r = *state;

        begin(r);
        r->kube->otherwise = (struct step){FATE_ERROR, E_SERVER};
        for (int i = 0; i < 50; i++) {
                pod_report(&r->pod, "Measure");
                pass(r->loop, 10 * USEC_PER_SEC);
        }
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 10 * USEC_PER_SEC);
        r->kube->otherwise = (struct step){0};
        pass(r->loop, 15 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_true(status_says(r->kube, "pod-a 50"));
}

/* ---- the end */

static void test_each_end_has_its_state(void **state)
{
        static const struct {
                const char *exit, *phase, *state;
        } ends[] = {
                {"{\"code\": 0}", "Measure", "Succeeded"},
                {"{\"code\": 0}", "Complete", "Succeeded"},
                {"{\"code\": 0}", "Failed", "Failed"},
                {"{\"code\": 0, \"told\": true}", "Measure", "Failed"},
                {"{\"code\": 3}", "Complete", "Failed"},
                {"{\"signal\": 9}", "Measure", "Failed"},
                {"{\"error\": \"no such file\"}", "Measure", "Failed"},
                {NULL, "Complete", "Failed"},
        };

        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                struct rig *r;

                set_up((void **)&r);
                begin(r);
                pod_report(&r->pod, ends[i].phase);
                if (ends[i].exit)
                        pod_end(&r->pod, ends[i].exit);
                else
                        pod_kill(&r->pod);
                pass(r->loop, 100 * USEC_PER_MS);
                assert_status(r, RUN_KEY_STATE, ends[i].state);
                assert_true(status_says(r->kube, "pod-a 1"));
                assert_int_equal(r->pod.exit_status, 0);
                tear_down((void **)&r);
        }
}

static void test_a_run_that_died_before_the_relay_came_is_found_dead(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        pod_start(&r->pod);
        pod_kill(&r->pod);
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_status(r, RUN_KEY_STATE, "Failed");
        assert_non_null(strstr(map_value(r->kube, 0, RUN_KEY_EXIT, &a), "\"lost\":true"));
}

static void test_a_hang_up_of_somebody_else_is_no_end(void **state)
{
        struct rig *r = *state;
        char path[512];

        begin(r);
        snprintf(path, sizeof(path), "%s/%s", r->pod.ctl, RUN_ALIVE_FILE);
        fd_close(TAKE_FD(r->pod.alive)); /* the lock is still held */
        pass(r->loop, USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, -1);
        r->pod.alive = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        pass(r->loop, 10 * USEC_PER_SEC);
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
}

static void test_a_malformed_exit_is_an_end_nobody_saw(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_end(&r->pod, "{\"code\": \"many\"}");
        pass(r->loop, 100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Failed");
}

/* The rig checks that the whole stays below 16 KiB. */
static void test_the_tail_is_cut_to_fit(void **state)
{
        struct rig *r = *state;
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 << 10), exit = BUF_INIT(64 << 10);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct run_exit e;

        begin(r);
        buf_adds(&text, "{\"phase\": \"Measure\", \"message\": \"pod-a\", \"more\": \"");
        for (int i = 0; i < 11000; i++)
                buf_addc(&text, 'x');
        buf_adds(&text, "\"}");
        buf_adds(&exit, "{\"code\": 1, \"tail\": \"");
        for (int i = 0; i < 4000; i++)
                buf_adds(&exit, "\\u0001");
        buf_adds(&exit, "the end\"}");
        pod_write(&r->pod, RUN_STATUS_FILE, buf_cstr(&text));
        pod_end(&r->pod, buf_cstr(&exit));
        pass(r->loop, 100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Failed");
        assert_int_equal(run_exit_parse(&a, str_of(map_value(r->kube, 0, RUN_KEY_EXIT, &a)), &e, NULL), 0);
        assert_true(str_has_suffix(e.tail, STR("the end")));
        assert_in_range(e.tail.n, 500, 1000);
}

/* ---- SIGTERM */

static void test_sigterm_waits_for_the_workload(void **state)
{
        struct rig *r = *state;

        begin(r);
        relay_terminate(r->pod.relay);
        relay_terminate(r->pod.relay);
        pass(r->loop, 15 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, -1);
        pod_end(&r->pod, "{\"signal\": 15}");
        soon(r);
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_STATE, "Failed");
}

static void test_sigterm_flushes_before_the_grace_period_is_over(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        pod_write(&r->pod, RUN_CHECKPOINT_FILE, "{\"at\": 1}");
        soon(r);
        relay_terminate(r->pod.relay);
        pass(r->loop, 19 * USEC_PER_SEC);
        pod_report(&r->pod, "Measure");
        pod_write(&r->pod, RUN_CHECKPOINT_FILE, "{\"at\": 2}");
        pass(r->loop, 1100 * USEC_PER_MS);
        assert_int_equal(r->pod.exit_status, 1); /* how it ended is not known */
        assert_true(status_says(r->kube, "pod-a 1"));
        assert_status(r, RUN_KEY_STATE, "Running");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "{\"at\": 2}");
}

static void test_sigterm_without_an_api_ends_with_the_grace_period(void **state)
{
        struct rig *r = *state;

        begin(r);
        r->kube->otherwise = (struct step){FATE_ERROR, E_CONNECT};
        pod_report(&r->pod, "Measure");
        relay_terminate(r->pod.relay);
        pass(r->loop, 26 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 1);
}

static void test_sigterm_before_the_workload_has_nothing_to_wait_for(void **state)
{
        struct rig *r = *state;

        pod_relay(&r->pod, r->kube);
        soon(r);
        relay_terminate(r->pod.relay);
        soon(r);
        assert_int_equal(r->pod.exit_status, 1);
}

static void test_a_configuration_that_cannot_work_is_refused(void **state)
{
        struct rig *r = *state;
        struct relay_config c = {.loop = r->loop,
                                 .kube = r->kube,
                                 .ns = "ns",
                                 .status_map = "status",
                                 .dir = r->pod.dir,
                                 .ctl = r->pod.ctl,
                                 .pod_uid = "",
                                 .on_end = relay_ended,
                                 .arg = &r->pod};
        struct err err = ERR_INIT;

        next_inotify = r->pod.inotify;
        assert_null(relay_new(&c, &err));
        assert_int_equal(err.code, E_CONFIG);
        c.pod_uid = "0123456789012345678901234567890123456789012345678901234567890123";
        assert_null(relay_new(&c, &err));
        c.pod_uid = "pod-a";
        c.status_map = NULL;
        assert_null(relay_new(&c, &err));
}

static const struct CMUnitTest tests[] = {
        RELAY_TEST(test_from_the_claim_to_the_end),
        RELAY_TEST(test_a_late_relay_sends_what_is_there_with_its_claim),
        RELAY_TEST(test_a_track_goes_along),
        RELAY_TEST(test_five_a_second_after_a_burst_and_the_last_wins),
        RELAY_TEST(test_a_text_that_says_the_same_is_no_state),
        RELAY_TEST(test_an_older_file_and_what_follows_the_last_phase_are_ignored),
        RELAY_TEST(test_a_torn_text_is_no_problem_until_it_stays),
        RELAY_TEST(test_what_is_no_file_is_a_problem),
        RELAY_TEST(test_a_directory_that_comes_back_is_watched_again),
        RELAY_TEST(test_at_rest_it_wakes_for_the_rescan_and_the_heartbeat_alone),
        RELAY_TEST(test_no_heartbeat_while_things_change),
        RELAY_TEST(test_a_lost_answer_is_looked_up_and_not_sent_again),
        RELAY_TEST(test_what_was_not_carried_out_is_sent_again_without_a_look),
        RELAY_TEST(test_a_newer_attempt_ends_it),
        RELAY_TEST(test_a_newer_attempt_is_noticed_by_the_heartbeat),
        RELAY_TEST(test_another_pods_run_becomes_the_next_attempt),
        RELAY_TEST(test_but_only_once),
        RELAY_TEST(test_a_relay_that_is_started_again_goes_on),
        RELAY_TEST(test_nothing_follows_the_end),
        RELAY_TEST(test_without_its_map_it_ends_at_once),
        RELAY_TEST(test_a_map_that_is_made_again_gets_the_last_state),
        RELAY_TEST(test_what_is_forbidden_at_first_is_tried_for_10_s),
        RELAY_TEST(test_what_stays_forbidden_ends_it),
        RELAY_TEST(test_a_map_without_the_track_gets_it),
        RELAY_TEST(test_a_track_that_has_no_room_goes_and_comes_back),
        RELAY_TEST(test_without_inotify_it_looks_every_second),
        RELAY_TEST(test_a_directory_that_is_none_is_a_problem),
        RELAY_TEST(test_a_success_is_never_wiped_by_another_pod_of_the_job),
        RELAY_TEST(test_ten_minutes_without_the_api_end_it),
        RELAY_TEST(test_an_api_that_comes_back_gets_the_last_state),
        RELAY_TEST(test_each_end_has_its_state),
        RELAY_TEST(test_a_run_that_died_before_the_relay_came_is_found_dead),
        RELAY_TEST(test_a_hang_up_of_somebody_else_is_no_end),
        RELAY_TEST(test_a_malformed_exit_is_an_end_nobody_saw),
        RELAY_TEST(test_the_tail_is_cut_to_fit),
        RELAY_TEST(test_sigterm_waits_for_the_workload),
        RELAY_TEST(test_sigterm_flushes_before_the_grace_period_is_over),
        RELAY_TEST(test_sigterm_without_an_api_ends_with_the_grace_period),
        RELAY_TEST(test_sigterm_before_the_workload_has_nothing_to_wait_for),
        RELAY_TEST(test_a_configuration_that_cannot_work_is_refused),
};

UNIT_MAIN(tests)
