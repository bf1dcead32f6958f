/*
 * Where a history is kept: files of older versions, URLs, and what is said of either.
 */
#include "unit/history_rig.h"

/* ---- files of older versions */

/* As the first files were made. */
static const char version_1[] =
        "CREATE TABLE run (uid TEXT NOT NULL, attempt INTEGER NOT NULL, kind TEXT NOT NULL, ns TEXT NOT NULL,"
        " name TEXT NOT NULL, shape TEXT NOT NULL, outcome TEXT NOT NULL, started INTEGER NOT NULL,"
        " finished INTEGER NOT NULL, PRIMARY KEY (uid, attempt)) WITHOUT ROWID;"
        "CREATE INDEX run_of_shape ON run (shape, finished) WHERE outcome = 'Succeeded' AND attempt = 1;"
        "CREATE TABLE phase (uid TEXT NOT NULL, attempt INTEGER NOT NULL, place INTEGER NOT NULL, phase TEXT "
        "NOT NULL,"
        " seconds REAL NOT NULL, total INTEGER NOT NULL, steps INTEGER NOT NULL, step_seconds REAL NOT NULL,"
        " durations TEXT NOT NULL, PRIMARY KEY (uid, attempt, place)) WITHOUT ROWID;"
        "PRAGMA user_version = 1;"
        "INSERT INTO run VALUES ('1', 1, 'Test', 'ns', 'old', 'small', 'Succeeded', 10, 20);"
        "INSERT INTO phase VALUES ('1', 1, 0, 'Load', 10.0, 0, 0, 0.0, '[]');"
        "INSERT INTO phase VALUES ('1', 1, 1, 'Measure', 30.0, 15, 15, 30.0, '[[15,30]]');"
        "INSERT INTO phase VALUES ('gone', 1, 0, 'Load', 1.0, 0, 0, 0.0, '[]');";

static void file_of(struct rig *r, const char *sql)
{
        *r = (struct rig){.told = 0};
        r->loop = loop_new(NULL, NULL, NULL);
        assert_non_null(r->loop);
        unit_dir(r->dir);
        snprintf(r->path, sizeof(r->path), "%s/history.db", r->dir);
        rig_sql_at(r->path, sql);
}

static void a_file_of_version_1_is_brought_up_to_date(void **state)
{
        struct track t = make_track(15, 4);
        struct history_row row = make_row("2", &t);
        struct rig r;

        file_of(&r, version_1);
        for (int i = 0; i < 2; i++) {
                reopen(&r);
                assert_int_equal(ask(&r, "small")->n, 2);
                assert_true(ask(&r, "small")->phases[1].mean == 30 &&
                            ask(&r, "small")->phases[1].step_mean == 2);
                assert_int_equal(list_rows(&r, (struct history_filter){.ns = "ns"}), 1);
                assert_string_equal(r.rows[0].name, "old");
                assert_null(r.rows[0].labels);
        }
        row.labels = "{\"a\":\"b\"}";
        record(&r, &row);
        assert_int_equal(ask(&r, "small")->phases[1].runs, 2);
        row = make_row("1", &t); /* the old one, told once more */
        record(&r, &row);
        assert_int_equal(ask(&r, "small")->phases[1].runs, 2);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = NULL}), 2);
        rig_done(&r);
}

static void why_not(struct rig *r, bool reading, const char *why)
{
        struct err err = ERR_INIT;
        const struct history_config config = {.place = r->path, .reading = reading};

        assert_null(history_open(r->loop, &config, NULL, &err));
        if (!strstr(err.text, why) || !strstr(err.text, r->path))
                fail_msg("'%s' does not say '%s' of %s", err.text, why, r->path);
}

static void a_step_that_fails_leaves_the_file_as_it_was(void **state)
{
        struct rig r;

        file_of(&r, version_1);
        rig_sql_at(r.path, "CREATE TABLE label (x)"); /* in the way */
        why_not(&r, false, "from version 1 to 2");
        why_not(&r, false, "already exists");
        rig_sql_at(r.path, "DROP TABLE label");
        reopen(&r);
        assert_int_equal(ask(&r, "small")->n, 2);
        rig_done(&r);
}

static void who_reads_makes_and_changes_nothing(void **state)
{
        struct rig r;
        struct history_row row = make_row("1", NULL);

        file_of(&r, version_1);
        why_not(&r, true, "older sonde");
        snprintf(r.path, sizeof(r.path), "%s/none.db", r.dir);
        why_not(&r, true, "No such file");
        assert_int_equal(access(r.path, F_OK), -1);
        rig_sql_at(r.path, "CREATE TABLE x (y)");
        why_not(&r, true, "holds no history");
        snprintf(r.path, sizeof(r.path), "%s/new.db", r.dir);
        reopen(&r);
        record(&r, &row);
        r.config.reading = true;
        reopen(&r);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = NULL}), 1);
        rig_done(&r);
}

/* As the API's own Deployment does, which may be started before the operator has made anything. */
static void who_reads_patiently_waits_for_an_operator(void **state)
{
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = 1000 * USEC_PER_SEC};
        struct history_config reading = {.reading = true, .patient = true};
        struct rig operator, api = {.config = reading, .loop = loop_new(&clock, NULL, NULL)};

        file_of(&operator, version_1);
        snprintf(api.path, sizeof(api.path), "%s", operator.path);
        reopen(&api);
        assert_int_equal(list_rows(&api, (struct history_filter){.uid = NULL}), 0);
        assert_int_equal(api.failed, 1);
        assert_non_null(strstr(api.err.text, "older sonde"));
        reopen(&operator);
        clock.boot += 60 * USEC_PER_SEC;
        loop_turn(api.loop, false);
        assert_int_equal(list_rows(&api, (struct history_filter){.uid = NULL}), 1);
        assert_int_equal(api.failed, 1);
        rig_done(&api);
        rig_done(&operator);
}

/* Pages in the middle are somebody else's: what needs them fails, and nothing else. */
static void a_damaged_file_is_told(void **state)
{
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t);
        char junk[4096];
        struct rig r;
        int fd;

        rig_init(&r);
        record(&r, &row);
        history_free(r.h);
        r.h = NULL;
        memset(junk, 0x5a, sizeof(junk));
        fd = open(r.path, O_RDWR);
        assert_true(fd >= 0);
        for (off_t at = 4096; at < lseek(fd, 0, SEEK_END); at += 4096)
                assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
        close(fd);
        reopen(&r); /* its first page is well */
        history_record(r.h, &row, on_told, &r);
        wait_told(&r, r.told + 1);
        assert_int_equal(r.failed, 1);
        assert_non_null(strstr(r.err.text, "malformed"));
        assert_int_equal(ask(&r, "small")->n, 0);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = NULL}), 0);
        assert_int_equal(r.failed, 2);
        rig_done(&r);
}

/* ---- URLs */

static void a_url_is_shown_without_its_password(void **state)
{
        static const char *const urls[][2] = {
                {"postgres://u:secret@h:5432/db", "postgres://u@h:5432/db"},
                {"postgresql://u:secret@h/db?sslmode=require&password=secret", "postgres://u@h/db"},
                {"postgres://h/db", "postgres://h/db"},
                {"postgres:///db?host=/run/pg&password=secret", "postgres:///db"},
                {"postgres://u@a:1,b:2/db", "postgres://u@a:1,b:2/db"},
                {"postgres://u:%40%2Fsecret@[::1]:5432/db", "postgres://u@[::1]:5432/db"},
                {"postgres://:secret@h/db", "postgres://@h/db"},
                {"postgres://", "postgres://"},
        };

        for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
                struct err err = ERR_INIT;
                char *shown = history_url_shown(urls[i][0]);

                if (history_url_check(urls[i][0], &err) < 0)
                        fail_msg("%s: %s", urls[i][0], err.text);
                assert_string_equal(shown, urls[i][1]);
                free(shown);
        }
}

/* libpq would cite it. */
static void a_url_that_is_cut_at_the_wrong_place_is_refused_without_citing_it(void **state)
{
        static const char *const urls[] = {
                "postgres://u:sec/ret@h/db",
                "postgres://u:sec@ret@h/db",
                "postgres://u:sec?ret@h/db",
                "postgres://u:sec%ret@h/db",
                "postgres://u:sec%00ret@h/db",
                "postgres://u:secret",
                "postgres://u:secret/db",
                "postgres://u@[::1]:sec/ret",
                "postgres://u@a:1,b:sec/ret",
                "mysql://u:sec@ret/db",
                "http://sec",
                "://sec",
                "postgres://u:sec%",
                "postgres://u:sec%4",
        };
        struct loop *loop = loop_new(NULL, NULL, NULL);

        for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
                struct err err = ERR_INIT;

                assert_int_equal(history_url_check(urls[i], &err), -1);
                assert_null(strstr(err.text, "sec"));
                assert_null(history_open(loop, &(struct history_config){.place = urls[i]}, NULL, &err));
                assert_null(strstr(err.text, "sec"));
                free(history_url_shown(urls[i]));
        }
        loop_free(loop);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_version_1_is_brought_up_to_date),
        cmocka_unit_test(a_step_that_fails_leaves_the_file_as_it_was),
        cmocka_unit_test(who_reads_makes_and_changes_nothing),
        cmocka_unit_test(who_reads_patiently_waits_for_an_operator),
        cmocka_unit_test(a_damaged_file_is_told),
        cmocka_unit_test(a_url_is_shown_without_its_password),
        cmocka_unit_test(a_url_that_is_cut_at_the_wrong_place_is_refused_without_citing_it),
};

UNIT_MAIN(tests)
