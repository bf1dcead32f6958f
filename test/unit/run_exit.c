/*
 * How a workload ended: the file, the sentence, the end of its output, and the kernel's counter of what it killed.
 */
#include "unit/unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/pod.h"
#include "run/supervise_private.h"
#include "unit/dir.h"

static struct arena a;

static int teardown(void **state)
{
        arena_done(&a);
        a = (struct arena)ARENA_INIT;
        return 0;
}

static const char *print(const struct run_exit *e)
{
        return json_print(&a, run_exit_json(&a, e));
}

static int parse(const char *text, struct run_exit *ret, struct err *err)
{
        return run_exit_parse(&a, str_of(text), ret, err);
}

/* ---- the file */

static void an_exit_is_written_and_read_back(void **state)
{
        struct run_exit e = {.code = 3,
                             .oom = true,
                             .started_at = 1700000000123456,
                             .finished_at = 1700000001000000,
                             .tail = STR("last \"words\"\n")},
                        r;

        assert_string_equal(print(&e),
                            "{\"code\":3,\"oom\":true,\"startedAt\":\"2023-11-14T22:13:20.123456Z\","
                            "\"finishedAt\":\"2023-11-14T22:13:21.000000Z\","
                            "\"tail\":\"last \\\"words\\\"\\n\"}");
        assert_int_equal(parse(print(&e), &r, NULL), 0);
        assert_int_equal(r.code, 3);
        assert_int_equal(r.signal, 0);
        assert_true(r.oom);
        assert_false(r.lost);
        assert_null(r.error);
        assert_int_equal(r.started_at, e.started_at);
        assert_int_equal(r.finished_at, e.finished_at);
        assert_str(r.tail, "last \"words\"\n");
}

static void each_form_of_an_end_comes_back(void **state)
{
        static const struct run_exit forms[] = {
                {.code = 0},
                {.code = 255},
                {.code = -1, .signal = SIGKILL},
                {.code = -1, .signal = 64},
                {.code = -1, .lost = true},
                {.code = -1, .error = "'x' is not found"},
        };

        for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
                struct run_exit r;

                assert_int_equal(parse(print(&forms[i]), &r, NULL), 0);
                assert_int_equal(r.code, forms[i].code);
                assert_int_equal(r.signal, forms[i].signal);
                assert_int_equal(r.lost, forms[i].lost);
                assert_true(streq(r.error, forms[i].error));
                assert_int_equal(run_exit_success(&r), i == 0);
        }
}

static void what_is_no_exit_is_refused_with_a_reason(void **state)
{
        static const char *const bad[] = {
                "",
                "nonsense",
                "[]",
                "{}",
                "{\"code\":-1}",
                "{\"code\":256}",
                "{\"code\":1.5}",
                "{\"code\":\"0\"}",
                "{\"code\":0,\"signal\":9}",
                "{\"code\":0,\"error\":\"x\"}",
                "{\"signal\":0}",
                "{\"signal\":65}",
                "{\"signal\":1e99}",
                "{\"code\":0,\"oom\":1}",
                "{\"code\":0,\"tail\":[]}",
                "{\"code\":0,\"startedAt\":\"yesterday\"}",
                "{\"code\":0,\"finishedAt\":7}",
                "{\"code\":0,\"x\":[[[[[[[[[[1]]]]]]]]]]}",
        };

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct err err = ERR_INIT;
                struct run_exit r = {.code = 77};

                assert_true(parse(bad[i], &r, &err) < 0);
                assert_true(err.text[0]);
                assert_int_equal(r.code, 77);
        }
}

static void what_is_too_long_is_cut_or_refused(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct run_exit r;

        buf_adds(&text, "{\"error\":\"");
        for (int i = 0; i < 300; i++)
                buf_adds(&text, "ä");
        buf_adds(&text, "\",\"tail\":\"x");
        for (int i = 0; i < 3000; i++)
                buf_adds(&text, "ö");
        buf_adds(&text, "\"}");
        assert_int_equal(run_exit_parse(&a, buf_str(&text), &r, NULL), 0);
        assert_int_equal(strlen(r.error), 500);
        assert_int_equal(r.tail.n, 4096);
        assert_true(utf8_valid(r.tail.p, r.tail.n));
        while (text.n <= RUN_EXIT_FILE_MAX)
                buf_addc(&text, ' ');
        assert_true(run_exit_parse(&a, buf_str(&text), &r, NULL) < 0);
}

/* ---- the sentence */

static void a_sentence_says_how_it_ended(void **state)
{
        static const struct {
                struct run_exit e;
                const char *sentence;
        } cases[] = {
                {{.code = 0}, "exited with status 0"},
                {{.code = 0, .oom = true}, "exited with status 0"},
                {{.code = 3}, "exited with status 3"},
                {{.code = 137, .oom = true},
                 "exited with status 137 after a process of its container was killed: out of memory"},
                {{.code = -1, .signal = SIGKILL}, "killed by SIGKILL"},
                {{.code = -1, .signal = SIGKILL, .oom = true}, "killed by SIGKILL: out of memory"},
                {{.code = -1, .signal = SIGABRT, .oom = true},
                 "killed by SIGABRT after a process of its container was killed: out of memory"},
                {{.code = -1, .signal = SIGSEGV}, "killed by SIGSEGV"},
                {{.code = -1, .signal = 40}, "killed by signal 40"},
                {{.code = -1, .error = "'x' is\nnot found"}, "could not be started: 'x' is not found"},
                {{.code = -1, .lost = true},
                 "was killed together with its supervisor: nobody saw how it ended"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(run_exit_sentence(&a, &cases[i].e), cases[i].sentence);
}

static void a_sentence_has_at_most_500_bytes(void **state)
{
        char error[1200];
        struct run_exit e = {.code = -1, .error = error};
        const char *s;

        for (size_t i = 0; i + 2 < sizeof(error); i += 2) {
                error[i] = '\xc3';
                error[i + 1] = '\xa4';
        }
        error[sizeof(error) - 2] = '\0';
        s = run_exit_sentence(&a, &e);
        assert_in_range(strlen(s), 499, 500);
        assert_true(utf8_valid(s, strlen(s)));
}

/* ---- the tail */

static struct str tail_of(const char *text, size_t n, size_t piece)
{
        struct tail *t = arena_new(&a, struct tail);

        for (size_t i = 0; i < n; i += piece)
                tail_add(t, str_n(text + i, MIN(piece, n - i)));
        return tail_text(&a, t);
}

static void a_short_output_is_kept_whole(void **state)
{
        assert_int_equal(tail_of("", 0, 1).n, 0);
        assert_str(tail_of("no newline", 10, 3), "no newline");
        assert_str(tail_of("\n\nx\n", 4, 1), "\n\nx\n");
}

/* N lines of 10 bytes: "000000042\n". */
static char *lines(size_t n)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(10 << 20);

        for (size_t i = 0; i < n; i++)
                buf_printf(&b, "%09zu\n", i);
        return arena_strndup(&a, b.p, b.n);
}

static void a_long_output_is_cut_at_a_line_however_it_came(void **state)
{
        static const size_t pieces[] = {1, 7, 4095, 4096, 4097, 8192, 12288, 65536, 1 << 20};
        const char *text = lines(20000);

        for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
                struct str tail = tail_of(text, 200000, pieces[i]);

                assert_int_equal(tail.n, 4090);
                assert_memory_equal(tail.p, text + 200000 - 4090, 4090);
        }
}

static void a_cut_that_falls_between_two_lines_loses_none(void **state)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

        buf_adds(&b, "before\n");
        for (int i = 0; i < 4096 / 16; i++)
                buf_adds(&b, "sixteen bytes..\n");
        assert_int_equal(tail_of(b.p, b.n, b.n).n, 4096);
        assert_int_equal(tail_of(b.p, b.n, 100).n, 4096);
}

static void one_long_line_is_cut_between_characters(void **state)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        struct str tail;

        for (int i = 0; i < 4000; i++)
                buf_adds(&b, "\xf0\x9f\x8e\x88"); /* four bytes each */
        buf_adds(&b, "\n");
        tail = tail_of(b.p, b.n, 1000);
        assert_int_equal(tail.n, 4093);
        assert_true(utf8_valid(tail.p, tail.n));
}

static void what_is_not_utf8_is_replaced_and_still_fits(void **state)
{
        char junk[8192];
        struct str tail;

        memset(junk, 0xff, sizeof(junk));
        tail = tail_of(junk, sizeof(junk), 100);
        assert_in_range(tail.n, 4094, 4096);
        assert_true(utf8_valid(tail.p, tail.n));
        assert_int_equal(tail_of("a\0b", 3, 3).n, 3);
}

static void the_largest_tail_fits_in_the_file(void **state)
{
        char zeros[8192] = {0};
        struct run_exit e = {.code = 0, .tail = tail_of(zeros, sizeof(zeros), 512)}, r;
        const char *text = print(&e);

        assert_int_equal(e.tail.n, 4096);
        assert_int_equal(parse(text, &r, NULL), 0);
        assert_int_equal(r.tail.n, 4096);
}

static void a_termination_message_has_what_fits(void **state)
{
        const char *text = lines(1000);
        struct run_exit e = {.code = 3, .tail = tail_of(text, 10000, 512)}, r;
        struct str s = exit_short_text(&a, &e, 4096);

        assert_in_range(s.n, 4000, 4096);
        assert_int_equal(run_exit_parse(&a, s, &r, NULL), 0);
        assert_int_equal(r.code, 3);
        assert_true(str_has_suffix(r.tail, STR("\n000000999\n")));
        assert_int_equal(r.tail.n % 10, 0);
        s = exit_short_text(&a, &e, 20);
        assert_str(s, "{\"code\":3}");
        memset((char *)e.tail.p, 1, e.tail.n); /* six bytes each */
        assert_in_range(exit_short_text(&a, &e, 4096).n, 4000, 4096);
}

/* ---- the kernel's counter, on a copy of the tree */

static void put(const char *root, const char *file, const char *text)
{
        char *path = arena_printf(&a, "%s/%s", root, file), *slash = strrchr(path, '/');

        *slash = '\0';
        assert_int_equal(dir_make(path, 0755, NULL), 0);
        *slash = '/';
        assert_int_equal(file_replace(path, str_of(text), 0644, NULL), 0);
}

struct oom_case {
        const char *cgroup;            /* /proc/self/cgroup */
        const char *file[3], *text[3]; /* below /sys/fs/cgroup */
        int64_t kills;
};

static const struct oom_case OOM_CASES[] = {
        {"0::/\n",
         {"memory.events"},
         {"low 0\noom 4\noom_kill 3\noom_group_kill 1\n"},
         3}, /* version 2, namespace */
        {"0::/kubepods/pod1/c\n",
         {"kubepods/pod1/c/memory.events", "memory.events"},
         {"oom_kill 5\n", "oom_kill 1\n"},
         5}, /* version 2, the host's tree */
        {"0::/kubepods/pod1/c\n",
         {"memory.events"},
         {"oom_kill 2\n"},
         2}, /* its own group is all that is mounted */
        {"0::/../../other\n", {"memory.events"}, {"oom_kill 2\n"}, -1},
        {"0::/\n", {"memory.current"}, {"1\n"}, -1},
        {"4:memory:/x\n0::/\n",
         {"memory/x/memory.oom_control", "memory/memory.oom_control"},
         {"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill 1\n"},
         7}, /* both trees: memory is in version 1 */
        {"3:cpu,memory:/docker/abc\n",
         {"memory/memory.oom_control"},
         {"oom_kill_disable 0\noom_kill 0\n"},
         0},
        {"4:memory:/x\n",
         {"memory/x/memory.oom_control"},
         {"oom_kill_disable 0\nunder_oom 0\n"},
         -1}, /* Linux 4.12 */
        {"4:memory:/x\n", {"memory/x/memory.oom_control"}, {"oom_kill many\n"}, -1},
        {"4:memory\n:\n\n0:\n", {"memory.events"}, {"oom_kill 1\n"}, -1},
        {"", {"memory.events"}, {"oom_kill 1\n"}, -1},
};

static void the_counter_of_our_own_cgroup_is_found(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(OOM_CASES); i++) {
                const struct oom_case *c = &OOM_CASES[i];
                char root[UNIT_DIR_LEN];

                unit_dir(root);
                put(root, "proc/self/cgroup", c->cgroup);
                for (size_t j = 0; j < 3 && c->file[j]; j++)
                        put(root, arena_printf(&a, "sys/fs/cgroup/%s", c->file[j]), c->text[j]);
                assert_int_equal(oom_kills(root), c->kills);
        }
        assert_int_equal(oom_kills("/nowhere"), -1);
}

/* ---- the control directory */

/* The room is there in blocks, and the end needs nothing else: it can open no file. */
static void an_exit_goes_where_room_was_taken_for_it(void **state)
{
        struct rlimit was, full = {.rlim_cur = 0};
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 32];
        struct stat st;
        struct ctl c;

        unit_dir(dir);
        ctl_open(&c, dir, 0, NULL);
        assert_true(c.exit_fd >= 0);
        assert_int_equal(fstat(c.exit_fd, &st), 0);
        assert_true((uint64_t)st.st_blocks * 512 >= RUN_EXIT_FILE_MAX);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
        full.rlim_max = was.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0); /* no other file can be opened */
        ctl_write_exit(&c, STR("{\"code\":1}"), NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        snprintf(path, sizeof(path), "%s/%s", dir, RUN_EXIT_FILE);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 10);
        ctl_close(&c);
        assert_int_equal(stat(path, &st), 0);
}

static void room_that_is_not_used_goes(void **state)
{
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 64];
        struct stat st;
        struct ctl c;

        unit_dir(dir);
        ctl_open(&c, dir, 0, NULL);
        snprintf(path, sizeof(path), "%s/%s", dir, c.exit_tmp);
        assert_int_equal(stat(path, &st), 0);
        ctl_close(&c);
        assert_int_equal(stat(path, &st), -1);
}

static void without_room_the_end_is_written_all_the_same(void **state)
{
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 64];
        struct stat st;
        struct ctl c;

        unit_dir(dir);
        ctl_open(&c, dir, 0, NULL);
        snprintf(path, sizeof(path), "%s/%s", dir, c.exit_tmp);
        assert_int_equal(unlink(path), 0); /* somebody tidied up */
        ctl_write_exit(&c, STR("{\"code\":1}"), NULL);
        snprintf(path, sizeof(path), "%s/%s", dir, RUN_EXIT_FILE);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 10);
        ctl_close(&c);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_exit_is_written_and_read_back, teardown),
        cmocka_unit_test_teardown(each_form_of_an_end_comes_back, teardown),
        cmocka_unit_test_teardown(what_is_no_exit_is_refused_with_a_reason, teardown),
        cmocka_unit_test_teardown(what_is_too_long_is_cut_or_refused, teardown),
        cmocka_unit_test_teardown(a_sentence_says_how_it_ended, teardown),
        cmocka_unit_test_teardown(a_sentence_has_at_most_500_bytes, teardown),
        cmocka_unit_test_teardown(a_short_output_is_kept_whole, teardown),
        cmocka_unit_test_teardown(a_long_output_is_cut_at_a_line_however_it_came, teardown),
        cmocka_unit_test_teardown(a_cut_that_falls_between_two_lines_loses_none, teardown),
        cmocka_unit_test_teardown(one_long_line_is_cut_between_characters, teardown),
        cmocka_unit_test_teardown(what_is_not_utf8_is_replaced_and_still_fits, teardown),
        cmocka_unit_test_teardown(the_largest_tail_fits_in_the_file, teardown),
        cmocka_unit_test_teardown(a_termination_message_has_what_fits, teardown),
        cmocka_unit_test_teardown(the_counter_of_our_own_cgroup_is_found, teardown),
        cmocka_unit_test_teardown(an_exit_goes_where_room_was_taken_for_it, teardown),
        cmocka_unit_test_teardown(room_that_is_not_used_goes, teardown),
        cmocka_unit_test_teardown(without_room_the_end_is_written_all_the_same, teardown),
};

UNIT_MAIN(tests)
