/* Text, frames and the tree of a run's phases as a terminal shows them. */
#include "unit/parse.h"

#include "cli/live.h"
#include "cli/phases.h"

enum { TEXT_MAX = 64 * 1024 };

/* ---- text */

static void test_widths(void **state)
{
        assert_int_equal(live_width(STR("abc")), 3);
        assert_int_equal(live_width(STR("█▌·")), 3);
        assert_int_equal(live_width(STR("日本")), 4);
        assert_int_equal(live_width(STR("e\u0301")), 1);
        assert_int_equal(live_width(STR("\033[32mok\033[0m")), 2);
}

static void assert_cut(const char *text, unsigned columns, const char *expected)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        live_text(&out, str_of(text), columns);
        assert_string_equal(buf_cstr(&out), expected);
        assert_true(live_width(buf_str(&out)) <= columns);
}

static void test_cutting(void **state)
{
        assert_cut("abc", 3, "abc");
        assert_cut("abcd", 3, "ab…");
        assert_cut("日本語", 5, "日本…");
        assert_cut("日本語", 4, "日…");
        assert_cut("\033[31mabcdef\033[0m", 4, "\033[31mabc…\033[0m");
        assert_cut("abc", 0, "");
}

static void test_bars(void **state)
{
        static const struct {
                double share;
                const char *bar;
        } cases[] = {{0, "····"}, {0.125, "▌···"}, {0.5, "██··"}, {0.99, "███▉"},
                     {1, "████"}, {7, "████"},     {-1, "····"},  {0.0 / 0.0, "····"}};

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

                live_bar(&out, cases[i].share, 4);
                assert_string_equal(buf_cstr(&out), cases[i].bar);
        }
}

/* ---- frames, on a terminal of our own: what it understands is what we send */

enum { ROWS = 8, COLUMNS = 20 };

struct terminal {
        char cells[ROWS][COLUMNS + 1];
        int row, column;
};

static void terminal_init(struct terminal *t)
{
        memset(t, 0, sizeof(*t));
        for (int i = 0; i < ROWS; i++)
                memset(t->cells[i], ' ', COLUMNS);
}

static void erase(struct terminal *t, int row)
{
        memset(t->cells[row], ' ', COLUMNS);
}

static void newline(struct terminal *t)
{
        if (++t->row < ROWS)
                return;
        memmove(t->cells[0], t->cells[1], sizeof(t->cells[0]) * (ROWS - 1));
        erase(t, --t->row);
}

/* ESC [ N LETTER, ESC [ ? N LETTER. */
static const char *escape(struct terminal *t, const char *p)
{
        int n = 0;

        p += *p == '[';
        p += *p == '?';
        while (*p >= '0' && *p <= '9')
                n = n * 10 + *p++ - '0';
        if (*p == 'A')
                t->row = MAX(t->row - n, 0);
        else if (*p == 'K')
                erase(t, t->row);
        else if (*p == 'J')
                for (int i = t->row; i < ROWS; i++)
                        erase(t, i);
        else
                assert_true(*p == 'h' || *p == 'l');
        return p + 1;
}

static void feed(struct terminal *t, const char *p)
{
        while (*p)
                if (*p == '\033')
                        p = escape(t, p + 1);
                else if (*p == '\n') {
                        newline(t);
                        p++;
                } else if (*p == '\r') {
                        t->column = 0;
                        p++;
                } else {
                        assert_true(t->column < COLUMNS);
                        t->cells[t->row][t->column++] = *p++;
                }
}

static void assert_row(const struct terminal *t, int row, const char *expected)
{
        struct str shown = str_trim(str_of(t->cells[row]));

        assert_str(shown, expected);
}

static void draw(struct terminal *t, const char *before, const char *after)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        frame_diff(str_of(before), str_of(after), &out);
        feed(t, out.n ? buf_cstr(&out) : "");
}

static void test_frames_follow_each_other(void **state)
{
        struct terminal t;

        terminal_init(&t);
        feed(&t, "$ watch\r\n");
        draw(&t, "", "one\ntwo\nthree\n");
        assert_row(&t, 1, "one");
        assert_row(&t, 3, "three");
        assert_int_equal(t.row, 4);
        draw(&t, "one\ntwo\nthree\n", "one\n2\nthree\nfour\n");
        assert_row(&t, 0, "$ watch");
        assert_row(&t, 1, "one");
        assert_row(&t, 2, "2");
        assert_row(&t, 4, "four");
        draw(&t, "one\n2\nthree\nfour\n", "one\n");
        assert_row(&t, 1, "one");
        assert_row(&t, 2, "");
        assert_row(&t, 4, "");
        assert_int_equal(t.row, 2);
}

static void test_frames_scroll(void **state)
{
        struct terminal t;

        terminal_init(&t);
        feed(&t, "a\r\nb\r\nc\r\nd\r\ne\r\n");
        draw(&t, "", "1\n2\n3\n4\n5\n");
        assert_row(&t, 0, "d");
        assert_row(&t, 6, "5");
        draw(&t, "1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n");
        assert_row(&t, 2, "1");
        assert_row(&t, 6, "five");
}

static void test_nothing_is_sent_for_nothing(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        frame_diff(STR("a\nb\n"), STR("a\nb\n"), &out);
        assert_int_equal(out.n, 0);
        /* And of a line that stays, nothing but the step over it. */
        frame_diff(STR("long line\nb\n"), STR("long line\nc\n"), &out);
        assert_null(strstr(buf_cstr(&out), "long"));
}

/* Lines that were wrapped by a terminal that became narrower are more than they were. */
static void test_frames_after_a_resize(void **state)
{
        struct terminal t;
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        terminal_init(&t);
        feed(&t, "$\r\nxxxxx\r\nxxx\r\nyy\r\n"); /* xxxxxxxx and yy at 5 columns */
        frame_redraw(STR("xxxxxxxx\nyy\n"), STR("x\ny\n"), 5, ROWS, &out);
        feed(&t, buf_cstr(&out));
        assert_row(&t, 0, "$");
        assert_row(&t, 1, "x");
        assert_row(&t, 2, "y");
        assert_row(&t, 3, "");
}

static void test_frames_that_are_too_tall(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        frame_fit(STR("a\nb\nc\nd\n"), 20, 3, &out);
        assert_string_equal(buf_cstr(&out), "a\nb\n… 2 more lines\n");
}

/* ---- the tree */

static const char dgdr[] = "{\"metadata\": {\"name\": \"llama\", \"uid\": \"u\"}, \"spec\": {\"backend\": "
                           "\"vllm\"}, \"status\": {\"state\": "
                           "\"Profiling\", \"run\": {\"attempt\": 2}, \"profilingProgress\": {\"phase\": "
                           "\"DecodeSweep\", \"phaseNumber\": 3, "
                           "\"totalPhases\": 7, \"currentStep\": 5, \"totalSteps\": 12, \"message\": "
                           "\"Benchmarking \\u001b[31mbatch\", "
                           "\"gpuConfig\": {\"currentGpus\": 4, \"parallelMapping\": \"TP=4\"}}, "
                           "\"progress\": {\"percent\": 37, "
                           "\"startedAt\": \"2026-07-01T14:02:00Z\", \"estimatedCompletion\": {\"low\": "
                           "\"2026-07-01T15:08:00Z\", "
                           "\"mid\": \"2026-07-01T15:12:00Z\", \"high\": \"2026-07-01T15:21:00Z\"}}}}";

/* What the relay of that run has sent: Initializing 4 s, PrefillSweep 8 steps, DecodeSweep for 14 minutes. */
static struct json *status_map(struct arena *a, const char *attempt)
{
        usec_t at = 0;
        struct track t = {0};
        static const struct {
                const char *phase;
                int64_t step, steps;
                unsigned seconds;
        } seen[] = {{"Initializing", 0, 0, 0},   {"PrefillSweep", 1, 8, 4},    {"PrefillSweep", 8, 8, 600},
                    {"DecodeSweep", 1, 12, 684}, {"DecodeSweep", 3, 12, 1084}, {"DecodeSweep", 5, 12, 1484}};
        struct run_status s = {.message = "m", .parallel_mapping = "", .overall = -1, .has_progress = true};

        assert_true(time_parse(STR("2026-07-01T14:02:00Z"), &at));
        for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
                s.phase = seen[i].phase;
                s.current_step = seen[i].step;
                s.total_steps = seen[i].steps;
                track_event(&t, &s, at + seen[i].seconds * USEC_PER_SEC);
        }
        return json_build(a, "{'data': {'attempt': %s, 'status.json': %s, 'track.json': %s}}", attempt,
                          json_print(a, run_status_json(a, &s)), json_print(a, track_json(a, &t)));
}

static const char *drawn(struct arena *a, const char *object, const char *kind, const struct json *map,
                         unsigned width)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        struct phases p = {.kind = kinds_named(str_of(kind)),
                           .object = parse(a, object),
                           .label = "dgdr/llama",
                           .status_map = map,
                           .screen = {.width = width}};
        struct str rest;

        assert_true(time_parse(STR("2026-07-01T14:27:24Z"), &p.now));
        phases_draw(&p, a, &out);
        rest = buf_str(&out);
        while (rest.n) {
                struct str line = str_split(&rest, '\n');

                if (live_width(line) > width)
                        fail_msg("%u columns in a width of %u: %.*s", live_width(line), width, STR_ARG(line));
        }
        return arena_strdup(a, buf_cstr(&out));
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("no '%s' in:\n%s", part, text);
}

static void test_tree(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = drawn(&a, dgdr, "dgdr", status_map(&a, "2"), 80);

        assert_has(text, "dgdr/llama · DecodeSweep · vllm · started ");
        assert_has(text, " · attempt 2\n  ETA "); /* both do not fit */
        assert_has(text, ", in 44m (40-53m)");
        assert_has(text, "overall  ██████████████████▌····");
        assert_has(text, "  37 %\n");
        assert_has(text, " ✓ Initializing                  4s\n");
        assert_has(text, " ✓ PrefillSweep             8/8  11m20s\n");
        assert_has(text, " ▸ DecodeSweep             5/12  ████████▎···········  14m so far, ~");
        assert_has(text, "     TP=4 on 4 GPUs · Benchmarking ?[31mbatch\n"); /* it steers no terminal */
        assert_has(text, " · ConfigSelection\n");
        assert_has(text, " · PlannerGeneration\n");
}

/* Without its ConfigMap, or with that of an earlier attempt, there are no durations, and all else. */
static void test_tree_without_durations(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = drawn(&a, dgdr, "dgdr", NULL, 80);

        assert_has(text,
                   " ✓ Initializing\n ✓ PrefillSweep\n ▸ DecodeSweep             5/12  ████████▎···········");
        assert_null(strstr(text, "so far"));
        assert_string_equal(drawn(&a, dgdr, "dgdr", status_map(&a, "1"), 80), text);
        assert_string_equal(drawn(&a, dgdr, "dgdr",
                                  parse(&a, "{\"data\": {\"attempt\": \"2\", \"track.json\": \"{\"}}"), 80),
                            text);
}

static void test_tree_at_any_width(void **state)
{
        for (unsigned width = 20; width <= 220; width += 7) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                const char *text = drawn(&a, dgdr, "dgdr", status_map(&a, "2"), width);

                if (width >= 40)
                        assert_has(text, "PrefillInterpolation");
        }
}

static void test_tree_of_a_failure(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = drawn(&a,
                                 "{\"metadata\": {\"name\": \"x\"}, \"status\": {\"state\": \"Failed\", "
                                 "\"run\": {\"attempt\": 1}, "
                                 "\"profilingProgress\": {\"phase\": \"Failed\", \"phaseNumber\": 9, "
                                 "\"totalPhases\": 7, \"failedPhase\": "
                                 "\"PrefillSweep\"}, \"conditions\": [{\"type\": \"Stalled\", \"status\": "
                                 "\"True\", \"reason\": \"OutOfMemory\", "
                                 "\"message\": \"the profiler was killed, because it needed more memory than "
                                 "its limit of 64Mi; raise it\"}]}}",
                                 "dgdr", NULL, 50);

        assert_has(text, " ✓ Initializing\n ✗ PrefillSweep\n · DecodeSweep\n");
        assert_has(text, " OutOfMemory: the profiler was killed, because it\n needed more memory than its "
                         "limit of 64Mi; raise\n it\n");
}

static void test_tree_of_what_waits(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = drawn(&a,
                                 "{\"metadata\": {\"name\": \"x\"}, \"status\": {\"phase\": \"Pending\", "
                                 "\"queue\": {\"position\": 2, "
                                 "\"expectedStart\": \"2026-07-01T14:49:24Z\", \"reason\": \"ac/y runs\"}}}",
                                 "ac", NULL, 80);

        assert_has(text, " · Measuring\n");
        assert_has(text, " queue position 2: ac/y runs\n");
        assert_has(text, " starts ~22m\n");
        assert_null(strstr(text, "overall"));
}

static const char *drawn_at(struct arena *a, const char *progress)
{
        return drawn(a,
                     arena_printf(a,
                                  "{\"metadata\": {\"name\": \"x\"}, \"status\": {\"phase\": \"Running\", "
                                  "\"run\": {\"attempt\": 1}, "
                                  "\"progress\": {\"phase\": \"Measuring\", %s}}}",
                                  progress),
                     "ap", NULL, 80);
}

/* What is not known is left out; what is not reached is not shown. */
static void test_tree_of_what_is_known(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = drawn_at(&a, "\"percent\": 99.6, \"usage\": {\"memoryMb\": 812}");

        assert_has(text, "  99 %\n");
        assert_has(text, "     812 MB\n");
        assert_null(strstr(text, "CPU"));
        text = drawn_at(&a, "\"message\": \"m\", \"usage\": {\"cpuPercent\": 97}");
        assert_has(text, "     m · CPU 97 %\n");
        assert_null(strstr(text, "MB"));
        assert_has(drawn_at(&a, "\"usage\": {\"memoryMb\": 812, \"cpuPercent\": 97}"),
                   "     812 MB, CPU 97 %\n");
}

static void test_tree_of_an_execution(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = drawn(
                &a,
                "{\"metadata\": {\"name\": \"x\"}, \"spec\": {\"image\": \"i\"}, \"status\": {\"phase\": "
                "\"Executing\", "
                "\"run\": {\"attempt\": 1}, \"progress\": {\"phase\": \"Executing\", \"percent\": 100}}}",
                "cuda", NULL, 80);

        assert_has(text, " ▸ Executing\n");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_frames_follow_each_other),
        cmocka_unit_test(test_frames_scroll),
        cmocka_unit_test(test_nothing_is_sent_for_nothing),
        cmocka_unit_test(test_frames_after_a_resize),
        cmocka_unit_test(test_frames_that_are_too_tall),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_tree_without_durations),
        cmocka_unit_test(test_tree_at_any_width),
        cmocka_unit_test(test_tree_of_a_failure),
        cmocka_unit_test(test_tree_of_what_waits),
        cmocka_unit_test(test_tree_of_what_is_known),
        cmocka_unit_test(test_tree_of_an_execution),
};

UNIT_MAIN(tests)
