/*
 * What a row of the history holds, and how it is found again: measures and their series, labels, samples; and how old ones go.
 * With $SONDE_TEST_HISTORY, in PostgreSQL.
 */
#include "unit/history_rig.h"

static struct history_measure make_measure(const char *series, double time)
{
        return (struct history_measure){.series = series,
                                        .algorithm = "quick_sort",
                                        .size = 1000,
                                        .n = 20,
                                        .time = time,
                                        .low = time * 0.9,
                                        .high = time * 1.1,
                                        .memory = NAN,
                                        .cpu = 0.5,
                                        .cost = NAN};
}

static const char *number(char out[16], unsigned i)
{
        snprintf(out, 16, "u%03u", i);
        return out;
}

/* Runs u000 ... of one series, one second after the other, the i-th of which took i seconds. */
static void record_series(struct rig *r, const char *series, unsigned from, unsigned to)
{
        unsigned before = r->told;

        for (unsigned i = from; i < to; i++) {
                struct history_measure m = make_measure(series, i);
                struct history_row row = make_row("", NULL);
                char uid[16];

                row.uid = row.name = number(uid, i);
                row.finished = (i + 1) * USEC_PER_SEC;
                row.measures = &m;
                row.n_measures = 1;
                history_record(r->h, &row, on_told, r);
        }
        wait_told(r, before + to - from);
        assert_int_equal(r->failed, 0);
}

/* ---- all of a row */

static void what_a_row_says_is_read_back(void **state)
{
        const struct history_measure measures[] = {make_measure("s/1", 1.5), make_measure("s/2", NAN)};
        struct track t = make_track(3, 2);
        struct history_row row = make_row("1", &t), *got;
        struct rig r;

        rig_init(&r);
        row.labels = "{\"team\":\"a\",\"name\":\"ü\"}";
        row.machine = "{\"cpu\":\"x\"}";
        row.image = "img:1";
        row.spec_hash = "abc";
        row.samples = "{\"rows\":[[1,2]]}";
        row.measures = measures;
        row.n_measures = 2;
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1", .samples = true}), 1);
        got = &r.rows[0];
        assert_string_equal(got->uid, "1");
        assert_int_equal(got->attempt, 1);
        assert_int_equal(got->finished, row.finished);
        assert_string_equal(got->labels, row.labels);
        assert_string_equal(got->machine, row.machine);
        assert_string_equal(got->image, row.image);
        assert_string_equal(got->spec_hash, row.spec_hash);
        assert_string_equal(got->samples, row.samples);
        assert_int_equal(got->n_measures, 2);
        assert_string_equal(got->measures[0].series, "s/1");
        assert_string_equal(got->measures[0].algorithm, "quick_sort");
        assert_int_equal(got->measures[0].size, 1000);
        assert_int_equal(got->measures[0].n, 20);
        assert_true(got->measures[0].time == 1.5 && got->measures[0].low == 1.5 * 0.9);
        assert_true(isnan(got->measures[0].memory) && got->measures[0].cpu == 0.5);
        assert_true(isnan(got->measures[1].time) && isnan(got->measures[1].low));
        rig_done(&r);
}

static void what_is_not_known_stays_so(void **state)
{
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1", .samples = true}), 1);
        assert_null(r.rows[0].labels);
        assert_null(r.rows[0].machine);
        assert_null(r.rows[0].image);
        assert_null(r.rows[0].spec_hash);
        assert_null(r.rows[0].samples);
        assert_int_equal(r.rows[0].n_measures, 0);
        rig_done(&r);
}

static void a_row_told_twice_has_what_was_told_last(void **state)
{
        struct history_measure m[] = {make_measure("s", 1), make_measure("t", 2)};
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        row.labels = "{\"a\":\"1\",\"b\":\"2\"}";
        row.samples = "[1]";
        row.measures = m;
        row.n_measures = 2;
        record(&r, &row);
        row.labels = "{\"a\":\"3\"}";
        row.samples = NULL;
        m[0].time = 5;
        row.n_measures = 1;
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1", .samples = true}), 1);
        assert_string_equal(r.rows[0].labels, "{\"a\":\"3\"}");
        assert_null(r.rows[0].samples);
        assert_int_equal(r.rows[0].n_measures, 1);
        assert_int_equal(ask_series(&r, "t")->n, 0);
        assert_int_equal(ask_series(&r, "s")->n, 1);
        assert_true(ask_series(&r, "s")->points[0].value == 5);
        assert_int_equal(
                list_rows(&r, (struct history_filter){.labels = (const char *[]){"b=2"}, .n_labels = 1}), 0);
        rig_done(&r);
}

static void large_samples_come_back_and_too_large_ones_do_not(void **state)
{
        const size_t large = 700 * 1024, too_large = 4 * 1024 * 1024 + 1;
        char *text = xmalloc(too_large + 1);
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        for (size_t i = 0; i < too_large; i++)
                text[i] = "0123456789,"[(i * 7919 + i / 13) % 11];
        text[large] = '\0';
        row.samples = text;
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1", .samples = true}), 1);
        assert_string_equal(r.rows[0].samples, text);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1"}), 1);
        assert_null(r.rows[0].samples);
        text[large] = ',';
        text[too_large] = '\0';
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1", .samples = true}), 1);
        assert_null(r.rows[0].samples);
        rig_done(&r);
        free(text);
}

static void texts_that_are_no_utf8_are_mended(void **state)
{
        struct history_measure m = make_measure("s\xff", 1);
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        row.name = "x\xc3";
        row.labels = "{\"a\":\"\xff\"}";
        row.image = "";
        row.measures = &m;
        row.n_measures = 1;
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1"}), 1);
        assert_string_equal(r.rows[0].name, "x?");
        assert_string_equal(r.rows[0].labels, "{\"a\":\"?\"}");
        assert_string_equal(r.rows[0].image, "");
        row.labels = "no JSON at all";
        record(&r, &row);
        row.labels = "{\"a\\u0000b\":\"c\\u0000d\",\"n\":1,\"o\":{}}";
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1"}), 1);
        rig_done(&r);
}

/* As nothing is in it twice, no database makes it shorter. */
static char *long_text(size_t n)
{
        char *text = xmalloc(n + 1);
        uint64_t x = 1;

        for (size_t i = 0; i < n; i++) {
                x = x * 6364136223846793005ULL + 1442695040888963407ULL;
                text[i] = (char)('a' + (x >> 33) % 26);
        }
        text[n] = '\0';
        return text;
}

/* An index of PostgreSQL's takes 2704 bytes. */
static void what_is_too_long_for_an_index_is_found_all_the_same(void **state)
{
        _cleanup_(free_ptr) char *text = long_text(10240), *other = xstrdup(text);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct history_measure m = make_measure(text, 1.5);
        struct history_row row = make_row("1", NULL);
        struct track t = make_track(2, 1);
        struct rig r;

        rig_init(&r);
        row.shape = text;
        row.track = &t;
        row.labels = arena_printf(&a, "{\"%s\":\"a\",\"b\":\"%s\",\"c\":\"d\"}", text, text);
        row.machine = arena_printf(&a, "{\"cpu\":\"%s\"}", text);
        row.image = text;
        row.measures = &m;
        row.n_measures = 1;
        record(&r, &row);
        other[10239] = '!';
        assert_int_equal(ask_series(&r, text)->n, 1);
        assert_int_equal(ask_series(&r, other)->n, 0);
        assert_int_equal(ask(&r, text)->n, 2);
        assert_int_equal(list_rows(&r, (struct history_filter){.series = text}), 1);
        assert_string_equal(r.rows[0].image, text);
        assert_int_equal(
                list_rows(&r, (struct history_filter){.labels = (const char *[]){"c=d"}, .n_labels = 1}), 1);
        rig_done(&r);
}

/* Rows that come together are written together. */
static void a_row_that_is_refused_harms_no_other(void **state)
{
        static const char *const uids[] = {"1", "2", "3", "4"};
        struct rig r;

        rig_init(&r);
        rig_sql_at(r.path, "CREATE UNIQUE INDEX once ON run (name) WHERE name = 'once'");
        for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
                struct history_row row = make_row(uids[i], NULL);

                row.name = i == 1 || i == 2 ? "once" : "any";
                row.finished = 10 - i;
                history_record(r.h, &row, on_told, &r);
        }
        wait_told(&r, 4);
        assert_int_equal(r.failed, 1);
        assert_int_equal(r.err.code, E_REFUSED); /* it need not be told again */
        assert_non_null(strstr(r.err.text, "cannot write to the history "));
        assert_int_equal(history_works(r.h), 1);
        r.failed = 0;
        assert_int_equal(list_rows(&r, (struct history_filter){.limit = 10}), 3);
        assert_string_equal(r.rows[0].uid, "1");
        assert_string_equal(r.rows[1].uid, "2");
        assert_string_equal(r.rows[2].uid, "4");
        rig_done(&r);
}

static void numbers_at_their_ends_are_kept(void **state)
{
        struct history_measure m = make_measure("s", 1e-308);
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        m.size = INT64_MIN;
        m.n = SIZE_MAX;
        m.low = -INFINITY;
        m.high = 1.7976931348623157e308;
        row.attempt = UINT64_MAX;
        row.finished = UINT64_MAX;
        row.measures = &m;
        row.n_measures = 1;
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = "1"}), 1);
        assert_int_equal(r.rows[0].attempt, INT64_MAX);
        assert_int_equal(r.rows[0].finished, INT64_MAX);
        assert_int_equal(r.rows[0].measures[0].size, INT64_MIN);
        assert_true(r.rows[0].measures[0].time == 1e-308 && isnan(r.rows[0].measures[0].low) &&
                    r.rows[0].measures[0].high == 1.7976931348623157e308);
        rig_done(&r);
}

/* ---- series */

static void a_series_is_its_last_200_runs_oldest_first(void **state)
{
        const struct series *s = NULL;
        struct rig r;

        rig_init(&r);
        assert_int_equal(ask_series(&r, "s")->n, 0);
        record_series(&r, "s", 0, 210);
        record_series(&r, "other", 300, 301);
        s = ask_series(&r, "s");
        assert_int_equal(s->n, SERIES_MAX);
        for (size_t i = 0; i < s->n; i++) {
                assert_true(s->points[i].value == (double)i + 10);
                assert_int_equal(s->points[i].finished, (i + 11) * USEC_PER_SEC);
        }
        assert_string_equal(s->points[0].uid, "u010");
        assert_string_equal(s->points[0].name, "u010");
        assert_int_equal(s->points[0].attempt, 1);
        assert_true(s->points[199].low == 209 * 0.9 && s->points[199].high == 209 * 1.1);
        rig_done(&r);
}

static void a_series_is_remembered_until_a_row_of_it_comes(void **state)
{
        const struct series *s = NULL;
        struct rig r;

        rig_init(&r);
        record_series(&r, "s", 1, 3);
        assert_int_equal(ask_series(&r, "s")->n, 2);
        record_series(&r, "other", 3, 4);
        assert_true(history_series(r.h, "s", on_called, &r, &s) > 0);
        record_series(&r, "s", 4, 5);
        assert_int_equal(history_series(r.h, "s", on_called, &r, &s), 0);
        assert_int_equal(ask_series(&r, "s")->n, 3);
        assert_true(history_series(r.h, "", on_called, &r, &s) > 0);
        assert_int_equal(s->n, 0);
        rig_done(&r);
}

static void a_run_without_a_time_is_no_point(void **state)
{
        const struct history_measure m[] = {make_measure("s", NAN), make_measure("s", 3)};
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        row.measures = m;
        row.n_measures = 2;
        record(&r, &row);
        assert_int_equal(ask_series(&r, "s")->n, 1);
        assert_true(ask_series(&r, "s")->points[0].value == 3);
        rig_done(&r);
}

static void more_series_than_are_remembered_are_read_again(void **state)
{
        const struct series *s = NULL;
        char name[16];
        struct rig r;

        rig_init(&r);
        record_series(&r, "u000", 1, 2);
        for (unsigned i = 0; i < 150; i++)
                assert_int_equal(ask_series(&r, number(name, i))->n, i == 0);
        assert_true(history_series(r.h, "u149", on_called, &r, &s) > 0);
        assert_int_equal(history_series(r.h, "u000", on_called, &r, &s), 0);
        assert_int_equal(ask_series(&r, "u000")->n, 1);
        rig_done(&r);
}

/* Another operator may write to the same place. */
static void what_is_remembered_is_read_again_after_a_while(void **state)
{
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = 1000 * USEC_PER_SEC};
        const struct series *s = NULL;
        struct rig r, other = {.told = 0};

        rig_init_with(&r, &clock, (struct history_config){.place = NULL});
        assert_int_equal(ask_series(&r, "s")->n, 0);
        other.loop = loop_new(NULL, NULL, NULL);
        memcpy(other.path, r.path, sizeof(r.path));
        reopen(&other);
        record_series(&other, "s", 1, 2);
        assert_true(history_series(r.h, "s", on_called, &r, &s) > 0);
        assert_int_equal(s->n, 0);
        clock.boot += 601 * USEC_PER_SEC;
        loop_turn(r.loop, false);
        assert_int_equal(ask_series(&r, "s")->n, 1);
        rig_done(&other);
        rig_done(&r);
}

/* ---- lists */

static void record_labelled(struct rig *r, const char *uid, const char *kind, const char *ns,
                            const char *labels)
{
        struct history_row row = make_row(uid, NULL);

        row.kind = kind;
        row.ns = ns;
        row.labels = labels;
        row.finished = (usec_t)uid[0];
        record(r, &row);
}

/* "ba": the uids, in their order. */
static void listed(struct rig *r, struct history_filter filter, const char *want)
{
        char got[16] = "";

        list_rows(r, filter);
        assert_int_equal(r->failed, 0);
        for (size_t i = 0; i < r->n && i < 15; i++)
                got[i] = r->rows[i].uid[0];
        assert_string_equal(got, want);
}

static void rows_are_listed_by_what_they_are(void **state)
{
        const char *const both[] = {"team=a", "env=x"}, *const one[] = {"team=a"}, *const empty[] = {"env="};
        struct rig r;

        rig_init(&r);
        record_labelled(&r, "a", "K", "n1", "{\"team\":\"a\",\"env\":\"x\"}");
        record_labelled(&r, "b", "K", "n2", "{\"team\":\"a\",\"env\":\"\"}");
        record_labelled(&r, "c", "L", "n1", "{\"team\":\"b\",\"env\":\"x\"}");
        record_labelled(&r, "d", "L", "n1", NULL);
        listed(&r, (struct history_filter){.uid = NULL}, "dcba");
        listed(&r, (struct history_filter){.limit = 2}, "dc");
        listed(&r, (struct history_filter){.kind = "K"}, "ba");
        listed(&r, (struct history_filter){.ns = "n1"}, "dca");
        listed(&r, (struct history_filter){.ns = "n1", .kind = "L"}, "dc");
        listed(&r, (struct history_filter){.name = "run", .limit = 1000000}, "dcba");
        listed(&r, (struct history_filter){.name = "x' OR 'x' = 'x"}, "");
        listed(&r, (struct history_filter){.labels = one, .n_labels = 1}, "ba");
        listed(&r, (struct history_filter){.labels = both, .n_labels = 2}, "a");
        listed(&r, (struct history_filter){.labels = empty, .n_labels = 1}, "b");
        listed(&r, (struct history_filter){.uid = "c"}, "c");
        listed(&r, (struct history_filter){.uid = "z"}, "");
        rig_done(&r);
}

static void with_a_series_only_its_measures_are_listed(void **state)
{
        const struct history_measure m[] = {make_measure("s", 1), make_measure("t", 2), make_measure("s", 3)};
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        row.measures = m;
        row.n_measures = 3;
        record(&r, &row);
        row = make_row("2", NULL);
        record(&r, &row);
        row = make_row("3", NULL);
        row.measures = &m[1];
        row.n_measures = 1;
        record(&r, &row);
        assert_int_equal(list_rows(&r, (struct history_filter){.uid = NULL}), 3);
        assert_int_equal(r.rows[0].n_measures + r.rows[1].n_measures + r.rows[2].n_measures, 4);
        assert_int_equal(list_rows(&r, (struct history_filter){.series = "s"}), 1);
        assert_int_equal(r.rows[0].n_measures, 2);
        assert_true(r.rows[0].measures[1].time == 3);
        rig_done(&r);
}

static void a_wrong_filter_is_an_error(void **state)
{
        const char *many[17];
        struct rig r;

        rig_init(&r);
        for (size_t i = 0; i < ARRAY_LEN(many); i++)
                many[i] = "a=b";
        list_rows(&r, (struct history_filter){.labels = many, .n_labels = 17});
        assert_int_equal(r.failed, 1);
        many[0] = "team";
        list_rows(&r, (struct history_filter){.labels = many, .n_labels = 1});
        assert_int_equal(r.failed, 2);
        assert_non_null(strstr(r.err.text, "KEY=VALUE"));
        list_rows(&r, (struct history_filter){.labels = many + 1, .n_labels = 16});
        assert_int_equal(r.failed, 2);
        rig_done(&r);
}

static void a_list_that_is_canceled_or_freed_does_not_come(void **state)
{
        const struct history_filter all = {.uid = NULL};
        struct rig r, other = {.told = 0};

        rig_init(&r);
        history_list(r.h, &all, on_listed, &other); /* with the worker */
        history_list(r.h, &all, on_listed, &other); /* waits */
        history_cancel(r.h, &other);
        list_rows(&r, all);
        assert_int_equal(other.listed, 0);
        history_list(r.h, &all, on_listed, &other);
        history_list(r.h, &all, on_listed, &other);
        rig_done(&r);
        assert_int_equal(other.listed, 0);
}

static void on_listed_frees(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        struct rig *r = arg;

        r->listed++;
        history_free(r->h);
        r->h = NULL;
        assert_int_equal(n, 1);
        assert_string_equal(rows[0].uid, "1"); /* is there for the call */
}

static void it_is_freed_in_a_list_s_callback(void **state)
{
        const struct history_filter all = {.uid = NULL};
        struct history_row row = make_row("1", NULL);
        struct rig r;

        rig_init(&r);
        record(&r, &row);
        history_list(r.h, &all, on_listed_frees, &r);
        history_list(r.h, &all, on_listed_frees, &r);
        while (!r.listed)
                loop_turn(r.loop, true);
        while (loop_turn(r.loop, false))
                continue;
        assert_int_equal(r.listed, 1);
        rig_done(&r);
}

/* All that is told comes, in its order, whatever is under way at the same time. */
static void many_at_once_are_all_answered(void **state)
{
        const struct priors *p = NULL;
        const struct series *s = NULL;
        unsigned called = 0, listings = 0;
        struct rig r;

        rig_init(&r);
        for (unsigned i = 0; i < 100; i++) {
                struct history_measure m = make_measure("s", i + 1);
                struct history_row row = make_row("", NULL);
                char uid[16];

                row.uid = number(uid, i % 10); /* the last of each stays */
                row.finished = i + 1;
                row.measures = &m;
                row.n_measures = 1;
                history_record(r.h, &row, on_told, &r);
                called += history_series(r.h, "s", on_called, &r, &s) == 0;
                called += history_priors(r.h, "small", on_called, &r, &p) == 0;
                if (i % 10 == 0) {
                        history_list(r.h, &(struct history_filter){.limit = 1}, on_listed, &r);
                        listings++;
                }
                if (i % 7 == 0)
                        loop_turn(r.loop, false);
        }
        while (r.told < 100 || r.called < called || r.listed < listings)
                loop_turn(r.loop, true);
        assert_int_equal(r.failed, 0);
        assert_int_equal(ask_series(&r, "s")->n, 10);
        assert_true(ask_series(&r, "s")->points[9].value == 100);
        rig_done(&r);
}

/* ---- what is too old or too much */

static size_t count_rows(struct rig *r, bool with_samples)
{
        size_t n = list_rows(r, (struct history_filter){.limit = 10000}), samples = 0;

        assert_int_equal(r->failed, 0);
        for (unsigned i = 0; with_samples && i < 500; i++) {
                char uid[16];

                if (list_rows(r, (struct history_filter){.uid = number(uid, i), .samples = true}))
                        samples += r->rows[0].samples != NULL;
        }
        return with_samples ? samples : n;
}

/* Runs u000 ... with samples, i days old. */
static void record_days(struct rig *r, unsigned n, usec_t now, usec_t day)
{
        struct track t = make_track(2, 1);

        for (unsigned i = 0; i < n; i++) {
                struct history_measure m = make_measure("s", i + 1);
                struct history_row row = make_row("", &t);
                char uid[16];

                row.uid = number(uid, i);
                row.finished = now - i * day;
                row.labels = "{\"a\":\"b\"}";
                row.samples = "[1]";
                row.measures = &m;
                row.n_measures = 1;
                history_record(r->h, &row, on_told, r);
        }
        wait_told(r, n);
        assert_int_equal(r->failed, 0);
}

static void pass(struct rig *r, struct clock *clock, usec_t time)
{
        clock->boot += time;
        loop_turn(r->loop, false);
}

static void old_runs_and_older_samples_go(void **state)
{
        const usec_t day = 86400 * USEC_PER_SEC;
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = 20000 * day};
        struct rig r;

        rig_init_with(&r, &clock,
                      (struct history_config){.max_age = 60 * day + 1, .samples_max_age = 30 * day + 1});
        record_days(&r, 80, clock.wall, day);
        assert_int_equal(count_rows(&r, false), 80);
        pass(&r, &clock, 61 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 61);
        assert_int_equal(count_rows(&r, true), 31);
        assert_int_equal(ask_series(&r, "s")->n, 61);
        rig_sql_at(r.path, "CREATE TABLE left_over AS SELECT uid FROM phase UNION ALL SELECT uid FROM label;"
                           "DELETE FROM left_over WHERE uid IN (SELECT uid FROM run);"
                           "CREATE TABLE none_left (n BIGINT NOT NULL CHECK (n = 0));"
                           "INSERT INTO none_left SELECT count(*) FROM left_over");
        rig_done(&r);
}

static void more_runs_than_are_kept_go_a_few_at_a_time(void **state)
{
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = 1000000 * USEC_PER_SEC};
        struct rig r;

        rig_init_with(&r, &clock, (struct history_config){.max_runs = 20});
        record_days(&r, 450, clock.wall, USEC_PER_SEC);
        pass(&r, &clock, 61 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 250);
        pass(&r, &clock, 2 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 50);
        pass(&r, &clock, 2 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 20);
        assert_string_equal(r.rows[0].uid, "u000");
        assert_string_equal(r.rows[19].uid, "u019");
        record_series(&r, "t", 400, 402); /* ended long ago */
        pass(&r, &clock, 2 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 22); /* an hour passes first */
        pass(&r, &clock, 3600 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 20);
        rig_done(&r);
}

static void without_limits_all_is_kept(void **state)
{
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = 1000000 * USEC_PER_SEC};
        struct rig r;

        rig_init_with(&r, &clock, (struct history_config){.place = NULL});
        record_days(&r, 10, clock.wall, USEC_PER_SEC);
        pass(&r, &clock, 7200 * USEC_PER_SEC);
        assert_int_equal(count_rows(&r, false), 10);
        rig_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_row_says_is_read_back),
        cmocka_unit_test(what_is_not_known_stays_so),
        cmocka_unit_test(a_row_told_twice_has_what_was_told_last),
        cmocka_unit_test(large_samples_come_back_and_too_large_ones_do_not),
        cmocka_unit_test(texts_that_are_no_utf8_are_mended),
        cmocka_unit_test(what_is_too_long_for_an_index_is_found_all_the_same),
        cmocka_unit_test(a_row_that_is_refused_harms_no_other),
        cmocka_unit_test(numbers_at_their_ends_are_kept),
        cmocka_unit_test(a_series_is_its_last_200_runs_oldest_first),
        cmocka_unit_test(a_series_is_remembered_until_a_row_of_it_comes),
        cmocka_unit_test(a_run_without_a_time_is_no_point),
        cmocka_unit_test(more_series_than_are_remembered_are_read_again),
        cmocka_unit_test(what_is_remembered_is_read_again_after_a_while),
        cmocka_unit_test(rows_are_listed_by_what_they_are),
        cmocka_unit_test(with_a_series_only_its_measures_are_listed),
        cmocka_unit_test(a_wrong_filter_is_an_error),
        cmocka_unit_test(a_list_that_is_canceled_or_freed_does_not_come),
        cmocka_unit_test(it_is_freed_in_a_list_s_callback),
        cmocka_unit_test(many_at_once_are_all_answered),
        cmocka_unit_test(old_runs_and_older_samples_go),
        cmocka_unit_test(more_runs_than_are_kept_go_a_few_at_a_time),
        cmocka_unit_test(without_limits_all_is_kept),
};

UNIT_MAIN(tests)
