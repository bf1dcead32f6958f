/*
 * The history: what was told to be kept is kept, whatever is killed or freed when; priors come from it and follow it.
 */
#include "unit/history_rig.h"

#include <signal.h>
#include <sys/wait.h>

#include "replay/replay.h"

static void a_shape_that_was_never_seen_has_no_priors(void **state)
{
        const struct priors *p = NULL;
        struct rig r;

        rig_init(&r);
        assert_int_equal(history_works(r.h), -1); /* it was not used yet */
        assert_int_equal(ask(&r, "never")->n, 0);
        assert_int_equal(history_works(r.h), 1);
        assert_true(history_priors(r.h, "", on_called, &r, &p) > 0); /* comparable with nothing: at once */
        assert_int_equal(p->n, 0);
        rig_done(&r);
}

static void priors_are_the_means_of_the_runs_of_a_shape(void **state)
{
        struct track x = make_track(10, 2), y = make_track(20, 4);
        struct history_row row;
        const struct priors *p;
        struct rig r;

        rig_init(&r);
        row = make_row("1", &x);
        record(&r, &row);
        row = make_row("2", &y);
        record(&r, &row);
        p = ask(&r, "small");
        assert_int_equal(p->n, 2);
        assert_string_equal(p->phases[0].name, "Load");
        assert_true(p->phases[0].mean == 10 && p->phases[0].sd == 0 && p->phases[0].step_mean == 0);
        assert_string_equal(p->phases[1].name, "Measure");
        assert_int_equal(p->phases[1].runs, 2);
        assert_true(p->phases[1].mean == 50 && p->phases[1].steps == 15 && p->phases[1].step_mean == 3);
        assert_float_equal(p->phases[1].sd, 42.4264, 1e-4);
        rig_done(&r);
}

static void failed_runs_and_later_attempts_are_kept_but_are_no_priors(void **state)
{
        struct track t = make_track(10, 2);
        struct history_row row = make_row("1", &t);
        struct rig r;

        rig_init(&r);
        row.outcome = "Failed";
        record(&r, &row);
        row.outcome = "Succeeded";
        row.attempt = 2;
        record(&r, &row);
        row = make_row("3", &t);
        row.track = NULL;
        row.shape = "unknown";
        record(&r, &row);
        assert_int_equal(ask(&r, "small")->n, 0);
        assert_int_equal(ask(&r, "unknown")->n, 0);
        rig_done(&r);
}

static void a_row_told_twice_is_one_row(void **state)
{
        struct track x = make_track(10, 2), y = make_track(10, 5);
        struct history_row row = make_row("1", &x);
        const struct priors *p;
        struct rig r;

        rig_init(&r);
        record(&r, &row);
        row = make_row("1", &y);
        record(&r, &row);
        p = ask(&r, "small");
        assert_int_equal(p->phases[1].runs, 1);
        assert_true(p->phases[1].mean == 50);
        rig_done(&r);
}

static void a_new_row_replaces_what_was_remembered(void **state)
{
        struct track x = make_track(10, 2), y = make_track(10, 4);
        struct history_row row = make_row("1", &x);
        const struct priors *p = NULL;
        struct rig r;

        rig_init(&r);
        assert_int_equal(ask(&r, "small")->n, 0);
        record(&r, &row);
        assert_int_equal(ask(&r, "small")->phases[1].runs, 1);
        assert_true(history_priors(r.h, "small", on_called, &r, &p) > 0); /* remembered */
        row = make_row("2", &y);
        record(&r, &row);
        assert_int_equal(history_priors(r.h, "small", on_called, &r, &p), 0); /* forgotten */
        assert_int_equal(ask(&r, "small")->phases[1].runs, 2);
        rig_done(&r);
}

static void the_last_twenty_runs_count(void **state)
{
        struct rig r;

        rig_init(&r);
        for (unsigned i = 0; i < 30; i++) {
                struct track t = make_track(1, i < 10 ? 1000 : 7);
                char uid[16];
                struct history_row row;

                snprintf(uid, sizeof(uid), "%u", i);
                row = make_row(uid, &t);
                row.finished = i;
                history_record(r.h, &row, on_told, &r); /* those that wait go together */
        }
        wait_told(&r, 30);
        assert_int_equal(r.failed, 0);
        assert_int_equal(ask(&r, "small")->phases[1].runs, 20);
        assert_true(ask(&r, "small")->phases[1].mean == 7);
        rig_done(&r);
}

static void more_shapes_than_are_remembered_are_read_again(void **state)
{
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t);
        const struct priors *p = NULL;
        struct rig r;
        char shape[16];

        rig_init(&r);
        row.shape = "0";
        record(&r, &row);
        for (unsigned i = 0; i < 300; i++) {
                snprintf(shape, sizeof(shape), "%u", i);
                assert_int_equal(ask(&r, shape)->n, i == 0 ? 2 : 0);
        }
        assert_true(history_priors(r.h, "299", on_called, &r, &p) > 0);
        assert_int_equal(history_priors(r.h, "0", on_called, &r, &p), 0);
        assert_int_equal(ask(&r, "0")->n, 2);
        rig_done(&r);
}

static void what_is_canceled_is_not_called_and_is_written_all_the_same(void **state)
{
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t);
        const struct priors *p = NULL;
        struct rig r, other = {.told = 0};

        rig_init(&r);
        history_record(r.h, &row, on_told, &other);
        assert_int_equal(history_priors(r.h, "small", on_called, &other, &p), 0);
        history_cancel(r.h, &other);
        assert_int_equal(ask(&r, "small")->phases[1].runs, 1);
        assert_int_equal(other.told + other.called, 0);
        rig_done(&r);
}

static void every_call_that_waits_is_called_once(void **state)
{
        const struct priors *p = NULL;
        struct rig r;

        rig_init(&r);
        for (int i = 0; i < 3; i++)
                assert_int_equal(history_priors(r.h, "small", on_called, &r, &p), 0);
        while (r.called < 3)
                loop_turn(r.loop, true);
        assert_true(history_priors(r.h, "small", on_called, &r, &p) > 0);
        assert_int_equal(r.called, 3);
        rig_done(&r);
}

static void it_is_freed_while_work_is_under_way(void **state)
{
        struct track t = make_track(16, 2);

        for (int i = 0; i < 20; i++) {
                const struct priors *p = NULL;
                struct rig r;

                rig_init(&r);
                for (int j = 0; j < 10; j++) {
                        struct history_row row = make_row("1", &t);

                        row.attempt = (uint64_t)j + 1;
                        history_record(r.h, &row, on_told, &r);
                }
                assert_int_equal(history_priors(r.h, "small", on_called, &r, &p), 0);
                if (i % 2) /* somewhere in the middle */
                        loop_turn(r.loop, i % 4 == 1);
                rig_done(&r);
        }
}

static void on_told_frees(void *arg, const struct err *err)
{
        struct rig *r = arg;

        r->told++;
        history_free(r->h);
        r->h = NULL;
}

static void it_is_freed_in_its_own_callback(void **state)
{
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t);
        const struct priors *p = NULL;
        struct rig r;

        rig_init(&r);
        history_record(r.h, &row, on_told_frees, &r);
        history_record(r.h, &row, on_told, &r);
        assert_int_equal(history_priors(r.h, "small", on_called, &r, &p), 0);
        wait_told(&r, 1);
        while (loop_turn(r.loop, false))
                continue;
        assert_int_equal(r.told, 1);
        assert_int_equal(r.called, 0);
        rig_done(&r);
}

/* ---- files */

static void refused(const char *path, const char *why)
{
        struct loop *loop = loop_new(NULL, NULL, NULL);
        struct err err = ERR_INIT;

        assert_null(history_open(loop, &(struct history_config){.place = path}, NULL, &err));
        if (!rig_server())
                assert_non_null(strstr(err.text, path));
        if (!strstr(err.text, why))
                fail_msg("'%s' does not say '%s'", err.text, why);
        loop_free(loop);
}

static void a_file_that_is_none_is_refused_with_a_reason(void **state)
{
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 32];
        char junk[8192];
        struct rig r;

        if (rig_server())
                skip();
        unit_dir(dir);
        refused(dir, "directory");
        snprintf(path, sizeof(path), "%s/not/there.db", dir);
        refused(path, "No such file");
        memset(junk, 'x', sizeof(junk));
        snprintf(path, sizeof(path), "%s/junk.db", dir);
        assert_int_equal(file_replace(path, str_n(junk, sizeof(junk)), 0600, NULL), 0);
        refused(path, "not a database");

        rig_init(&r); /* a real one, cut */
        rig_done(&r);
        assert_int_equal(truncate(r.path, 4096), 0);
        refused(r.path, "malformed");
}

static void a_file_of_a_newer_version_is_refused(void **state)
{
        struct rig r;

        rig_init(&r);
        rig_done(&r);
        rig_sql_at(r.path,
                   rig_server() ? "UPDATE history_version SET version = 99" : "PRAGMA user_version = 99");
        refused(r.path, "newer sonde");
}

static void what_cannot_be_written_is_told_and_what_cannot_be_read_is_not_known(void **state)
{
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t);
        struct rig r;

        rig_init(&r);
        rig_sql_at(r.path, "DROP TABLE phase");
        history_record(r.h, &row, on_told, &r);
        wait_told(&r, 1);
        assert_int_equal(history_works(r.h), 0);
        assert_int_equal(r.failed, 1);
        assert_int_equal(ask(&r, "small")->n, 0);
        rig_done(&r);
}

static void numbers_that_somebody_else_wrote_do_no_harm(void **state)
{
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t);
        struct rig r;

        rig_init(&r);
        record(&r, &row);
        if (rig_server()) /* a column there holds what its type says */
                rig_sql_at(r.path,
                           "UPDATE phase SET seconds = 'infinity', phase = repeat('x', 200) WHERE place = 0;"
                           "UPDATE phase SET seconds = 'NaN', steps = -5 WHERE place = 1");
        else
                rig_sql_at(
                        r.path,
                        "UPDATE phase SET seconds = 9e999, phase = printf('%.*c', 200, 'x') WHERE place = 0;"
                        "UPDATE phase SET seconds = 'abc', steps = -5 WHERE place = 1");
        assert_int_equal(ask(&r, "small")->n, 0);
        rig_done(&r);
}

static void a_row_that_was_told_survives_kill_9(void **state)
{
        struct track t = make_track(16, 2);
        struct rig r;

        rig_init(&r);
        history_free(r.h);
        r.h = NULL;
        for (unsigned i = 1; i <= 10; i++) {
                int pipes[2], status;
                char byte;
                pid_t pid;

                assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        struct history_row row = make_row("x", &t);
                        struct loop *loop = loop_new(NULL, NULL, NULL);

                        row.uid = (char[]){(char)('a' + i), 0};
                        r.h = history_open(loop, &(struct history_config){.place = r.path}, NULL, NULL);
                        history_record(r.h, &row, on_told, &r);
                        while (!r.told)
                                loop_turn(loop, true);
                        if (write(pipes[1], r.failed ? "f" : "k", 1) == 1)
                                for (;;)
                                        pause();
                        _exit(1);
                }
                close(pipes[1]);
                assert_int_equal(read(pipes[0], &byte, 1), 1);
                assert_int_equal(byte, 'k');
                kill(pid, SIGKILL);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                close(pipes[0]);
                reopen(&r);
                assert_int_equal(ask(&r, "small")->phases[1].runs, i);
                history_free(r.h);
                r.h = NULL;
        }
        rig_done(&r);
}

/* ---- what it is for */

static void a_second_run_of_a_shape_has_an_eta_from_its_first_minute(void **state)
{
        const char *const pairs[][2] = {
                {"test/data/runs/second-c-no-steps-1st.jsonl", "test/data/runs/second-c-no-steps-2nd.jsonl"},
                {"test/data/runs/second-d-unweighted-plan-1st.jsonl",
                 "test/data/runs/second-d-unweighted-plan-2nd.jsonl"},
        };

        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
                _cleanup_(replay_done) struct replay_run first = {.begin = 0}, second = {.begin = 0};
                struct replay_result without, with;
                struct history_row row;
                struct err err = ERR_INIT;
                struct rig r;

                if (replay_load(pairs[i][0], &first, &err) < 0 || replay_load(pairs[i][1], &second, &err) < 0)
                        fail_msg("%s", err.text);
                rig_init(&r);
                replay_measure(&first, NULL, &without);
                row = make_row("1", &without.track);
                row.shape = first.shape;
                record(&r, &row);
                replay_measure(&second, NULL, &without);
                replay_measure(&second, ask(&r, second.shape), &with);
                assert_true(with.first_eta >= 0 && with.first_eta <= 60);
                assert_true(with.covered >= without.covered || with.covered >= 0.8);
                assert_true(with.narrow && with.ordered && with.monotone && with.complete);
                rig_done(&r);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
                a_row_that_was_told_survives_kill_9), /* first: no thread of another test is there to be forked */
        cmocka_unit_test(a_shape_that_was_never_seen_has_no_priors),
        cmocka_unit_test(priors_are_the_means_of_the_runs_of_a_shape),
        cmocka_unit_test(failed_runs_and_later_attempts_are_kept_but_are_no_priors),
        cmocka_unit_test(a_row_told_twice_is_one_row),
        cmocka_unit_test(a_new_row_replaces_what_was_remembered),
        cmocka_unit_test(the_last_twenty_runs_count),
        cmocka_unit_test(more_shapes_than_are_remembered_are_read_again),
        cmocka_unit_test(what_is_canceled_is_not_called_and_is_written_all_the_same),
        cmocka_unit_test(every_call_that_waits_is_called_once),
        cmocka_unit_test(it_is_freed_while_work_is_under_way),
        cmocka_unit_test(it_is_freed_in_its_own_callback),
        cmocka_unit_test(a_file_that_is_none_is_refused_with_a_reason),
        cmocka_unit_test(a_file_of_a_newer_version_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_told_and_what_cannot_be_read_is_not_known),
        cmocka_unit_test(numbers_that_somebody_else_wrote_do_no_harm),
        cmocka_unit_test(a_second_run_of_a_shape_has_an_eta_from_its_first_minute),
};

UNIT_MAIN(tests)
