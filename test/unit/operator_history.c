#include "unit/operator_rig.h"

#include <sqlite3.h>

static void open_history(struct rig *r, const char *path)
{
        struct err err = ERR_INIT;

        r->history = history_open(r->api.net.loop, &(struct history_config){.place = path}, NULL, &err);
        if (!r->history)
                fail_msg("%s", err.text);
}

static void on_recorded(void *arg, const struct err *err)
{
        assert_null(err);
        *(bool *)arg = true;
}

/* Turns of the loop until *DONE; the worker takes as long as it takes. */
static void until(struct rig *r, const bool *done)
{
        while (!*done)
                net_turn(&r->api.net);
}

/* A run of the shape, with one phase of 20 s. */
static void record(struct rig *r, const char *uid)
{
        struct track t = {.started = SEC, .n = 1};
        struct history_row row = {.uid = uid,
                                  .attempt = 1,
                                  .kind = "Sample",
                                  .ns = "ns",
                                  .name = uid,
                                  .shape = "shape",
                                  .outcome = "Succeeded",
                                  .started = SEC,
                                  .finished = 21 * SEC,
                                  .track = &t};
        bool done = false;

        snprintf(t.phases[0].name, sizeof(t.phases[0].name), "Work");
        t.phases[0].began = SEC;
        t.phases[0].ended = 21 * SEC;
        history_record(r->history, &row, on_recorded, &done);
        until(r, &done);
}

static struct json *said(struct request *q)
{
        struct json *body = json_parse(&q->arena, str_of(q->body), NULL, NULL);

        assert_non_null(body);
        return json_at(body, "status");
}

static struct request *status_write(struct rig *r)
{
        struct request *q = api_waiting(&r->api, "PATCH", IN_NS "/s/status");

        for (; !q; q = api_waiting(&r->api, "PATCH", IN_NS "/s/status"))
                net_turn(&r->api.net);
        return api_find(&r->api, "PATCH", IN_NS "/s/status");
}

/* ---- priors */

static void no_history_is_answered_at_once(void **state)
{
        struct rig *r = *state;

        r->mind.shape = "shape";
        r->mind.status = "{'done': true}";
        begin(r);
        status_write(r);
        assert_int_equal(r->mind.decisions, 1);
        assert_int_equal(r->mind.prior_runs, 0);
}

static void an_empty_history_is_an_ordinary_state(void **state)
{
        struct rig *r = *state;

        open_history(r, ":memory:");
        r->mind.shape = "shape";
        r->mind.status = "{'done': true}";
        begin(r);
        status_write(r);
        assert_int_equal(r->mind.decisions, 2); /* had to be loaded */
        assert_int_equal(r->mind.prior_runs, 0);
}

/* The first decision waits for the worker; from then on it is in memory and costs no second call. */
static void what_is_in_memory_costs_no_second_call(void **state)
{
        struct rig *r = *state;
        struct request *q;
        unsigned before;

        open_history(r, ":memory:");
        record(r, "uid-earlier");
        r->mind.shape = "shape";
        r->mind.status = "{'done': true}";
        begin(r);
        q = status_write(r);
        assert_int_equal(r->mind.prior_runs, 1);
        api_answer(q, 200, sample(&q->arena, "s", 102, "{\"done\":true}"));
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", 102, "{\"done\":true}"));
        before = r->mind.decisions;
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", 103, "{\"done\":true}"));
        assert_int_equal(r->mind.decisions, before + 1);
        assert_int_equal(r->mind.prior_runs, 1);
}

/* Four rounds of look-ups are allowed; priors are none of them. */
static void priors_do_not_count_as_a_round(void **state)
{
        struct rig *r = *state;
        char path[128];

        open_history(r, ":memory:");
        r->mind.shape = "shape";
        r->mind.wants = 5; /* the history's answer counts as one here */
        r->mind.status = "{'done': true}";
        begin(r);
        for (unsigned n = 1; n < 5; n++) {
                snprintf(path, sizeof(path), MAPS_NS "/wanted-%u", n);
                while (!api_waiting(&r->api, "GET", path))
                        net_turn(&r->api.net);
                api_refuse(api_find(&r->api, "GET", path), 404, "NotFound", NULL);
        }
        status_write(r);
}

/* More than a decision may want at once. */
static void many_series_are_answered_in_one_go(void **state)
{
        static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
        struct rig *r = *state;
        bool done = false;

        open_history(r, ":memory:");
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const struct history_measure m[] = {{.series = names[i], .algorithm = "a", .n = 1, .time = 1},
                                                    {.series = "9", .algorithm = "a", .n = 1, .time = 2}};
                const struct history_row row = {
                        .uid = names[i], .attempt = 1, .name = "n", .measures = m, .n_measures = 2};

                r->mind.series[i] = names[i];
                done = false;
                history_record(r->history, &row, on_recorded, &done);
                until(r, &done);
        }
        r->mind.n_series = ARRAY_LEN(names);
        r->mind.shape = "shape";
        r->mind.status = "{'done': true}";
        begin(r);
        status_write(r);
        assert_int_equal(r->mind.points, 20);
        assert_in_range(r->mind.decisions, 2, 4);
}

static void a_series_without_a_history_is_not_known(void **state)
{
        struct rig *r = *state;

        r->mind.series[0] = "s";
        r->mind.n_series = 1;
        r->mind.status = "{'done': true}";
        begin(r);
        status_write(r);
        assert_int_equal(r->mind.decisions, 1);
        assert_int_equal(r->mind.points, 0);
}

static void freed_while_priors_are_loaded(void **state)
{
        struct rig *r = *state;

        open_history(r, ":memory:");
        r->mind.shape = "shape";
        begin(r);
        while (!r->mind.decisions)
                net_turn(&r->api.net);
        operator_free(TAKE_PTR(r->op));
        record(r, "uid-later"); /* the worker has been through both */
}

/* ---- rows */

/* How many runs the file has, for somebody else. */
static int rows(const char *path)
{
        sqlite3 *db = NULL;
        sqlite3_stmt *st = NULL;
        int n;

        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        sqlite3_busy_timeout(db, 10000); /* the history's worker may have it */
        assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM run", -1, &st, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        n = sqlite3_column_int(st, 0);
        sqlite3_finalize(st);
        sqlite3_close(db);
        return n;
}

static void sql(const char *path, const char *text)
{
        sqlite3 *db = NULL;

        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        sqlite3_busy_timeout(db, 10000); /* the history's worker may have it */
        assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
}

static int setup_file(void **state)
{
        char dir[UNIT_DIR_LEN];
        struct rig *r;

        setup(state);
        r = *state;
        unit_dir(dir);
        snprintf(r->path, sizeof(r->path), "%s/h.db", dir);
        open_history(r, r->path);
        return 0;
}

static void a_row_is_committed_before_the_status(void **state)
{
        struct rig *r = *state;
        struct request *q;

        r->mind.row = true;
        r->mind.status = "{'done': true}";
        begin(r);
        q = status_write(r);
        assert_int_equal(rows(r->path), 1);
        api_answer(q, 200, sample(&q->arena, "s", 102, "{\"done\":true}"));
        turns(r);
        assert_int_equal(r->mind.decisions, 1);
}

/* The status does not say what the history does not have; it is tried again, with backoff. */
static void no_row_no_status(void **state)
{
        struct rig *r = *state;

        sql(r->path, "ALTER TABLE run RENAME TO lost");
        r->mind.row = true;
        r->mind.status = "{'done': true}";
        begin(r);
        for (unsigned i = 0; i < 3; i++) {
                while (r->mind.decisions <= i) { /* time passes */
                        r->api.net.clock.boot += SEC;
                        r->api.net.clock.wall += SEC;
                        net_turn(&r->api.net);
                }
                assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
        }
        sql(r->path, "ALTER TABLE lost RENAME TO run");
        while (!api_waiting(&r->api, "PATCH", IN_NS "/s/status")) {
                r->api.net.clock.boot += SEC;
                r->api.net.clock.wall += SEC;
                net_turn(&r->api.net);
        }
        assert_int_equal(rows(r->path), 1);
}

/* It would be refused the next time, too: the request does not wait for it. */
static void a_row_that_is_refused_does_not_hold_the_request(void **state)
{
        struct rig *r = *state;
        const struct json *condition;
        struct request *q;

        sql(r->path, "CREATE TRIGGER t BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'not this one'); END");
        r->mind.row = true;
        r->mind.status = "{'done': true}";
        begin(r);
        q = status_write(r);
        assert_int_equal(rows(r->path), 0);
        assert_true(json_bool(said(q), "done", false));
        condition = json_path(said(q), "conditions[0]");
        assert_string_equal(json_str(condition, "type"), "Recorded");
        assert_string_equal(json_str(condition, "status"), "False");
        assert_string_equal(json_str(condition, "reason"), "HistoryRefused");
        assert_non_null(strstr(json_str(condition, "message"), "not this one"));
        assert_non_null(api_waiting(&r->api, "POST", "/apis/events.k8s.io/v1/namespaces/ns/events"));
}

/* A later attempt's row is there. */
static void a_row_that_is_taken_is_told_where_one_was_refused(void **state)
{
        static const char before[] = "{\"conditions\":[{\"type\":\"Recorded\",\"status\":\"False\"}]}";
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.row = true;
        r->mind.status = "{'done': true, 'conditions': [{'type': 'Recorded', 'status': 'False'}]}";
        begin_with(r, sample(&a, "s", 10, before), "");
        q = status_write(r);
        assert_int_equal(rows(r->path), 1);
        assert_string_equal(json_str(json_path(said(q), "conditions[0]"), "status"), "True");
}

static void freed_while_a_row_is_written(void **state)
{
        struct rig *r = *state;

        r->mind.row = true;
        r->mind.status = "{'done': true}";
        begin(r);
        while (!r->mind.decisions)
                net_turn(&r->api.net);
        operator_free(TAKE_PTR(r->op));
        record(r, "uid-later");
        assert_int_equal(rows(r->path), 2);
}

static void a_status_that_is_there_is_not_recorded_again(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->mind.row = true;
        r->mind.status = "{'done': true}";
        begin_with(r, sample(&a, "s", 10, "{\"done\":true}"), "");
        turns(r);
        assert_true(operator_idle(r->op));
        assert_int_equal(rows(r->path), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define F(name) cmocka_unit_test_setup_teardown(name, setup_file, teardown)

static const struct CMUnitTest tests[] = {
        T(no_history_is_answered_at_once),
        T(an_empty_history_is_an_ordinary_state),
        T(what_is_in_memory_costs_no_second_call),
        T(priors_do_not_count_as_a_round),
        T(many_series_are_answered_in_one_go),
        T(a_series_without_a_history_is_not_known),
        T(freed_while_priors_are_loaded),
        F(a_row_is_committed_before_the_status),
        F(no_row_no_status),
        F(a_row_that_is_refused_does_not_hold_the_request),
        F(a_row_that_is_taken_is_told_where_one_was_refused),
        F(freed_while_a_row_is_written),
        F(a_status_that_is_there_is_not_recorded_again),
};

UNIT_MAIN(tests)
