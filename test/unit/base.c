#include "unit/dir.h"

static void test_arena_reset_keeps_the_largest_block(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *first;

        arena_alloc(&a, 100000);
        arena_reset(&a, SIZE_MAX);
        assert_int_equal(a.used, 0);
        first = arena_alloc(&a, 100000);
        arena_reset(&a, SIZE_MAX);
        assert_ptr_equal(first, arena_alloc(&a, 8));
        assert_string_equal(arena_printf(&a, "%s-%d", "x", 7), "x-7");
}

static long resident_pages(void)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(256);
        struct err err = ERR_INIT;
        struct str rest, size;
        uint64_t pages = 0;

        assert_int_equal(file_read("/proc/self/statm", &text, &err), 0);
        rest = buf_str(&text);
        size = str_split(&rest, ' ');
        assert_true(size.n && str_to_u64(str_split(&rest, ' '), &pages));
        return (long)pages;
}

/* What was freed and what only a start needs is not resident any more, and all goes on from the files. */
static void test_what_is_not_in_use_is_given_back(void **state)
{
        enum { PIECES = 256, PIECE = 16 * 1024 };
        char *pieces[PIECES];
        long before, after;

        for (size_t i = 0; i < PIECES; i++)
                pieces[i] = memset(xmalloc(PIECE), 1, PIECE);
        for (size_t i = 0; i < PIECES - 1; i++) /* the last one keeps the heap from shrinking by itself */
                free(pieces[i]);
        before = resident_pages();
        mem_trim();
        after = resident_pages();
        assert_true(after < before);
        free(pieces[PIECES - 1]);
}

static void test_err_wrap_puts_context_in_front(void **state)
{
        struct err e = ERR_INIT;

        assert_int_equal(err_set(&e, E_NOT_FOUND, "no context '%s'", "prod"), -1);
        err_wrap(&e, "kubeconfig %s", "/x");
        assert_string_equal(e.text, "kubeconfig /x: no context 'prod'");
        assert_int_equal(e.code, E_NOT_FOUND);
        for (int i = 0; i < 200; i++)
                err_wrap(&e, "layer %d é", i);
        assert_true(utf8_valid(e.text, strlen(e.text)));
        assert_true(strlen(e.text) < ERR_TEXT_MAX);
        assert_int_equal(err_set(NULL, E_IO, "nobody asks"), -1);
}

static void test_str_numbers(void **state)
{
        int64_t i;
        uint64_t u;

        assert_true(str_to_i64(STR("-9223372036854775808"), &i));
        assert_true(i == INT64_MIN);
        assert_false(str_to_i64(STR("9223372036854775808"), &i));
        assert_false(str_to_i64(STR(""), &i));
        assert_false(str_to_i64(STR("-"), &i));
        assert_false(str_to_i64(STR("+1"), &i));
        assert_true(str_to_u64(STR("18446744073709551615"), &u));
        assert_false(str_to_u64(STR("18446744073709551616"), &u));
        assert_true(str_to_duration(STR("1h30m"), &u));
        assert_int_equal(u, 5400 * USEC_PER_SEC);
        assert_true(str_to_duration(STR("250ms"), &u));
        assert_int_equal(u, 250000);
        assert_true(str_to_duration(STR("1.5h.5s2us"), &u));
        assert_int_equal(u, 5400 * USEC_PER_SEC + 500002);
        assert_true(str_to_duration(STR("2d"), &u));
        assert_int_equal(u, 172800 * USEC_PER_SEC);
        assert_true(str_to_duration(STR("10"), &u));
        assert_int_equal(u, 10 * USEC_PER_SEC);
        assert_false(str_to_duration(STR("3 parsecs"), &u));
        assert_false(str_to_duration(STR("1h30"), &u));
        assert_false(str_to_duration(STR("."), &u));
        assert_false(str_to_duration(STR("99999999999999999w"), &u));
}

static void test_str_split(void **state)
{
        struct str s = STR("a,,b");

        assert_str(str_split(&s, ','), "a");
        assert_str(str_split(&s, ','), "");
        assert_str(str_split(&s, ','), "b");
        assert_null(s.p);
}

static void test_utf8(void **state)
{
        assert_true(utf8_valid("gr\xc3\xbc\xc3\x9f"
                               "e \xf0\x9f\x98\x80",
                               12));
        assert_false(utf8_valid("\xc0\x80", 2));         /* overlong */
        assert_false(utf8_valid("\xed\xa0\x80", 3));     /* surrogate */
        assert_false(utf8_valid("\xf4\x90\x80\x80", 4)); /* beyond U+10FFFF */
        assert_false(utf8_valid("\xe2\x82", 2));
        assert_int_equal(utf8_cut("a\xc3\xa9", 3, 2), 1);
        assert_int_equal(utf8_cut("a\xc3\xa9", 3, 3), 3);
}

static void test_buf_stops_at_its_limit(void **state)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(10);

        buf_adds(&b, "0123456789");
        assert_false(b.overflow);
        buf_addc(&b, 'x');
        assert_true(b.overflow);
        assert_null(buf_cstr(&b));
        buf_clear(&b);
        buf_printf(&b, "%d", 42);
        assert_string_equal(buf_cstr(&b), "42");
}

static void test_base64(void **state)
{
        static const char *const pairs[][2] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                               {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}};

        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
                _cleanup_(buf_done) struct buf e = BUF_INIT(100), d = BUF_INIT(100);

                buf_add_base64(&e, str_of(pairs[i][0]));
                assert_str(buf_str(&e), pairs[i][1]);
                assert_true(buf_add_unbase64(&d, buf_str(&e)));
                assert_str(buf_str(&d), pairs[i][0]);
        }
        {
                _cleanup_(buf_done) struct buf d = BUF_INIT(100);

                assert_false(buf_add_unbase64(&d, STR("Zg")));
                assert_false(buf_add_unbase64(&d, STR("Zg==Zg==")));
                assert_false(buf_add_unbase64(&d, STR("Z!==")));
        }
}

static void test_map_against_many_keys(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(map_done) struct map m = MAP_INIT;
        enum { N = 5000 };
        char **keys = arena_new_array(&a, char *, N);
        size_t seen = 0;
        char *v;

        for (size_t i = 0; i < N; i++) {
                keys[i] = arena_printf(&a, "key-%zu", i);
                assert_null(map_put(&m, str_of(keys[i]), keys[i]));
        }
        for (size_t i = 0; i < N; i += 2)
                assert_ptr_equal(map_remove(&m, str_of(keys[i])), keys[i]);
        for (size_t i = 0; i < N; i++)
                assert_ptr_equal(map_get(&m, str_of(keys[i])), i % 2 ? keys[i] : NULL);
        map_foreach (i, &m, v)
                seen++;
        assert_int_equal(seen, N / 2);
        assert_int_equal(m.n, N / 2);
}

static void test_heap_is_ordered_and_stable(void **state)
{
        struct heap h = HEAP_INIT;
        struct heap_node nodes[100] = {0};
        struct rng r;
        uint64_t last_order = 0, last_seq = 0;

        rng_seed(&r, 7);
        for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
                heap_put(&h, &nodes[i], rng_below(&r, 10));
        heap_remove(&h, &nodes[50]);
        heap_remove(&h, &nodes[50]);
        heap_put(&h, &nodes[51], 3);
        for (size_t i = 0; i < 99; i++) {
                struct heap_node *n = heap_first(&h);

                assert_true(n->order > last_order ||
                            (n->order == last_order && (i == 0 || n->sequence > last_seq)));
                last_order = n->order;
                last_seq = n->sequence;
                heap_remove(&h, n);
        }
        assert_null(heap_first(&h));
        heap_done(&h);
}

static void test_times(void **state)
{
        char out[TIME_TEXT_MAX];
        usec_t t;

        assert_true(time_parse(STR("2026-11-15T21:43:48Z"), &t));
        assert_string_equal(time_format(t, out), "2026-11-15T21:43:48Z");
        assert_true(time_parse(STR("2026-11-15T23:43:48.1234567+02:00"), &t));
        assert_string_equal(time_format_micro(t, out), "2026-11-15T21:43:48.123456Z");
        assert_true(time_parse(STR("2026-11-15T21:43:48.5"), &t)); /* Python's isoformat(): UTC */
        assert_string_equal(time_format_micro(t, out), "2026-11-15T21:43:48.500000Z");
        assert_false(time_parse(STR("2026-02-29T00:00:00Z"), &t));
        assert_false(time_parse(STR("2026-11-15"), &t));
        assert_false(time_parse(STR("2026-11-15T21:43:48Zx"), &t));
}

/* Writes one line through a pipe and returns it. */
static char *logged(enum log_format format, const char *value)
{
        static char line[8192];
        struct clock clock = {.manual = true, .wall = 1000000};
        struct log log;
        int fds[2];
        ssize_t n;

        assert_int_equal(pipe(fds), 0);
        log_init(&log, fds[1], LOG_LEVEL_INFO, format, &clock);
        LOG_INFO(&log, "Said something", F_STR("value", value), F_STR("bearerToken", "hunter2"),
                 F_INT("n", -3));
        LOG_DEBUG(&log, "Not written");
        close(fds[1]);
        n = read(fds[0], line, sizeof(line) - 1);
        close(fds[0]);
        line[n] = '\0';
        return line;
}

static void test_log_escapes_and_hides_secrets(void **state)
{
        assert_string_equal(logged(LOG_FORMAT_LOGFMT, "plain"),
                            "ts=1970-01-01T00:00:01.000000Z level=info msg=\"Said something\" value=plain "
                            "bearerToken=\"[redacted, 7 bytes]\" n=-3\n");
        assert_string_equal(
                logged(LOG_FORMAT_JSON, "a\"\nb\xff"),
                "{\"ts\":\"1970-01-01T00:00:01.000000Z\",\"level\":\"info\",\"msg\":\"Said "
                "something\","
                "\"value\":\"a\\\"\\nb\\ufffd\",\"bearerToken\":\"[redacted, 7 bytes]\",\"n\":-3}\n");
}

static void write_more(void *arg, struct buf *out)
{
        _cleanup_(buf_done) struct buf labels = BUF_INIT(64);

        metrics_add_label(&labels, "a", "x\ny");
        metrics_add_label(&labels, "b", "");
        metrics_write_head(out, arg);
        metrics_write_sample(out, arg, buf_str(&labels), 1.5);
}

static void test_metrics_of_their_own(void **state)
{
        static const struct metric_family more = {"more", "More.", METRIC_GAUGE};
        static const struct metric_family twice = {"one", "Both.", METRIC_COUNTER, .alias = "other"};
        _cleanup_(metrics_free) struct metrics *m = metrics_new();
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);

        metric_add(metrics_get(m, &twice, NULL), 3);
        metrics_on_write(m, write_more, (void *)&more);
        metrics_write(m, &out);
        assert_string_equal(buf_cstr(&out), "# HELP one Both.\n# TYPE one counter\none 3\n"
                                            "# HELP other Both.\n# TYPE other counter\nother 3\n"
                                            "# HELP more More.\n# TYPE more gauge\n"
                                            "more{a=\"x\\ny\",b=\"\"} 1.5\n");
        buf_clear(&out);
        metrics_off_write(m, write_more, (void *)&more);
        metrics_write(m, &out);
        assert_null(strstr(buf_cstr(&out), "more"));
}

static void test_metrics_are_bounded(void **state)
{
        static const char *const labels[] = {"of", "code", NULL};
        static const struct metric_family family = {"requests_total", "Requests.", METRIC_COUNTER, labels};
        _cleanup_(metrics_free) struct metrics *m = metrics_new();
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        struct metric *first = metrics_get(m, &family, (const char *[]){"a", "0"}), *last = NULL;
        char code[16];

        for (int i = 1; i < 3 * METRICS_SERIES_MAX; i++) {
                snprintf(code, sizeof(code), "%d", i);
                last = metrics_get(m, &family, (const char *[]){"a", code});
                metric_add(last, 1);
        }
        assert_ptr_equal(metrics_get(m, &family, (const char *[]){"a", "0"}), first);
        assert_ptr_equal(metrics_get(m, &family, (const char *[]){"a", "more"}), last);
        metrics_write(m, &out);
        assert_non_null(strstr(buf_cstr(&out), "requests_total{of=\"other\",code=\"other\"} 2000\n"));
        assert_null(strstr(buf_cstr(&out), "code=\"1001\""));
}

static void test_metrics_exposition(void **state)
{
        static const char *const labels[] = {"code", NULL};
        static const double bounds[] = {0.1, 1};
        static const struct metric_family requests = {"requests_total", "Requests.", METRIC_COUNTER,
                                                      labels,           NULL,        0};
        static const struct metric_family seconds = {"seconds", "Time.", METRIC_HISTOGRAM, NULL, bounds, 2};
        _cleanup_(metrics_free) struct metrics *m = metrics_new();
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        struct metric *ok = metrics_get(m, &requests, (const char *[]){"2\"00"});
        struct metric *t = metrics_get(m, &seconds, NULL);

        metric_add(ok, 2);
        assert_ptr_equal(ok, metrics_get(m, &requests, (const char *[]){"2\"00"}));
        metric_observe(t, 0.1);
        metric_observe(t, 5);
        metrics_write(m, &out);
        assert_string_equal(buf_cstr(&out), "# HELP requests_total Requests.\n# TYPE requests_total counter\n"
                                            "requests_total{code=\"2\\\"00\"} 2\n"
                                            "# HELP seconds Time.\n# TYPE seconds histogram\n"
                                            "seconds_bucket{le=\"0.1\"} 1\nseconds_bucket{le=\"1\"} 1\n"
                                            "seconds_bucket{le=\"+Inf\"} 2\nseconds_sum 5.0999999999999996\n"
                                            "seconds_count 2\n");
}

static void test_files_are_replaced_whole(void **state)
{
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 8];
        _cleanup_(buf_done) struct buf b = BUF_INIT(8);
        struct err e = ERR_INIT;

        unit_dir(dir);
        snprintf(path, sizeof(path), "%s/a/b", dir);
        assert_int_equal(dir_make(path, 0700, &e), 0);
        snprintf(path, sizeof(path), "%s/a/b/f", dir);
        assert_int_equal(file_replace(path, STR("12345678"), 0600, &e), 0);
        assert_int_equal(file_read(path, &b, &e), 0);
        assert_str(buf_str(&b), "12345678");
        assert_int_equal(file_replace(path, STR("123456789"), 0600, &e), 0);
        assert_int_equal(file_read(path, &b, &e), -1);
        assert_int_equal(e.code, E_TOO_LARGE);
        unlink(path);
        assert_int_equal(file_read(path, &b, &e), -1);
        assert_int_equal(e.code, E_NOT_FOUND);
}

static void test_wall_times_as_boot_times(void **state)
{
        struct clock c = {.manual = true, .boot = 5 * USEC_PER_SEC, .wall = 100 * USEC_PER_SEC},
                     real = CLOCK_REAL;
        uint64_t before = clock_boot_ns(&real), at = clock_boot_ns_of(&real, clock_wall(&real) * 1000);

        assert_int_equal(clock_boot_ns_of(&c, 100000000000), 5000000000);
        assert_int_equal(clock_boot_ns_of(&c, 99999999999), 4999999999);
        assert_int_equal(clock_boot_ns_of(&c, 100000000001), 5000000001);
        assert_int_equal(clock_boot_ns_of(&c, 1), 0); /* before the machine was there */
        /* a clock that is not set meanwhile shows what the other does; microseconds are cut */
        assert_true(at + 1000 * 1000 >= before && at <= clock_boot_ns(&real) + 1000 * 1000);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_reset_keeps_the_largest_block),
        cmocka_unit_test(test_what_is_not_in_use_is_given_back),
        cmocka_unit_test(test_err_wrap_puts_context_in_front),
        cmocka_unit_test(test_str_numbers),
        cmocka_unit_test(test_str_split),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_buf_stops_at_its_limit),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_map_against_many_keys),
        cmocka_unit_test(test_heap_is_ordered_and_stable),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_wall_times_as_boot_times),
        cmocka_unit_test(test_log_escapes_and_hides_secrets),
        cmocka_unit_test(test_metrics_exposition),
        cmocka_unit_test(test_metrics_of_their_own),
        cmocka_unit_test(test_metrics_are_bounded),
        cmocka_unit_test(test_files_are_replaced_whole),
};

UNIT_MAIN(tests)
