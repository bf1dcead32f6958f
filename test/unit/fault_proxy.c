/* What the fault proxy decides and what it does to bodies; test/cluster/fault-proxy.py has the rest. */
#include "tools/fault-proxy/fault.h"
#include "tools/fault-proxy/lines.h"
#include "tools/fault-proxy/proxy.h"
#include "unit/unit.h"

#define MAPS "/api/v1/namespaces/x/configmaps"

static struct request request(const char *method, const char *path, const char *query)
{
        return (struct request){
                .number = 1,
                .method = str_of(method),
                .path = str_of(path),
                .query = str_of(query),
                .class = classify(str_of(method), str_of(path), str_of(query)),
        };
}

static void test_requests_are_told_apart(void **state)
{
        static const struct {
                const char *method, *path, *query;
                enum request_class class;
        } cases[] = {
                {"GET", "/api/v1/namespaces/x/configmaps", "", CLASS_LIST},
                {"GET", "/api/v1/namespaces/x/configmaps", "watch=1&resourceVersion=5", CLASS_WATCH},
                {"GET", "/api/v1/namespaces/x/configmaps", "watch=false", CLASS_LIST},
                {"GET", "/api/v1/namespaces/x/configmaps/a", "", CLASS_GET},
                {"GET", "/api/v1/namespaces/x/pods/a/log", "follow=true", CLASS_GET},
                {"GET", "/api/v1/namespaces", "", CLASS_LIST},
                {"GET", "/api/v1/namespaces/x", "", CLASS_GET},
                {"GET", "/api/v1/nodes", "limit=5", CLASS_LIST},
                {"GET", "/apis/batch/v1/jobs", "watch=true", CLASS_WATCH},
                {"GET", "/apis/batch/v1/namespaces/x/jobs/j", "", CLASS_GET},
                {"GET", "/apis/batch/v1", "", CLASS_OTHER},
                {"GET", "/api", "", CLASS_OTHER},
                {"GET", "/version", "", CLASS_OTHER},
                {"GET", "/", "", CLASS_OTHER},
                {"PATCH", "/api/v1/namespaces/x/configmaps/a", "", CLASS_WRITE},
                {"DELETE", "/api/v1/namespaces/x/configmaps", "", CLASS_WRITE},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_int_equal(
                        classify(str_of(cases[i].method), str_of(cases[i].path), str_of(cases[i].query)),
                        cases[i].class);
}

static void test_a_script_counts_and_decides(void **state)
{
        struct err err = ERR_INIT;
        _cleanup_(script_free) struct script *s = script_parse(
                STR("# a comment\n"
                    "\n"
                    "match LIST " MAPS "*continue=* nth=2 -> answer 410   # the second page\n"
                    "match WATCH * -> cut lines=3 bytes=20\n"
                    "match WRITE */status every=3 -> lose\n"
                    "match POST * always -> answer 429 retry-after=2 body=html\n"
                    "match * /version nth=1 -> stall ms=50\n"
                    "match * /version -> cut ms=70\n"),
                &err);
        struct request page = request("GET", MAPS, "limit=5&continue=abc"),
                       first = request("GET", MAPS, "limit=5");
        struct request watch = request("GET", MAPS, "watch=1"), put = request("PUT", MAPS "/a/status", "");
        struct request post = request("POST", MAPS, ""), version = request("GET", "/version", "");
        struct fault f;

        assert_non_null(s);
        assert_int_equal(script_decide(s, &first).kind, FAULT_NONE);
        assert_int_equal(script_decide(s, &page).kind, FAULT_NONE);
        f = script_decide(s, &page);
        assert_int_equal(f.kind, FAULT_ANSWER);
        assert_int_equal(f.code, 410);
        assert_int_equal(f.retry_after, -1);
        assert_int_equal(script_decide(s, &page).kind, FAULT_NONE);
        f = script_decide(s, &watch);
        assert_int_equal(f.kind, FAULT_CUT);
        assert_int_equal(f.lines, 3);
        assert_int_equal(f.bytes, 20);
        for (int i = 1; i < 10; i++)
                assert_int_equal(script_decide(s, &put).kind, i % 3 ? FAULT_NONE : FAULT_LOSE);
        f = script_decide(s, &post);
        assert_int_equal(f.code, 429);
        assert_int_equal(f.retry_after, 2);
        assert_int_equal(f.body, BODY_HTML);
        assert_int_equal(script_decide(s, &version).wait, 50 * USEC_PER_MS);
        assert_int_equal(script_decide(s, &version).life, 70 * USEC_PER_MS);
}

static void test_a_bad_script_says_where(void **state)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                {"match GET *", "line 1: expected nth=N, every=N, always or ->, not ''"},
                {"\nmatch GET * -> explode", "line 2: there is no fault 'explode'"},
                {"match GET * nth=0 -> drop", "line 1: expected nth=N, every=N, always or ->, not 'nth=0'"},
                {"match GET * -> drop ms=5", "line 1: fault drop cannot have 'ms=5'"},
                {"match GET * -> answer", "line 1: fault answer needs a code"},
                {"match GET * -> answer 99", "line 1: fault answer cannot have '99'"},
                {"match GET * always drop", "line 1: expected -> before the fault"},
                {"hello", "line 1: expected: match METHOD GLOB [nth=N|every=N|always] -> FAULT"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;

                assert_null(script_parse(str_of(cases[i].text), &err));
                assert_string_equal(err.text, cases[i].message);
        }
}

static void test_a_seed_always_says_the_same_and_uses_all_faults(void **state)
{
        static const char *const queries[] = {"watch=1", "", "watch=0"};
        unsigned seen[FAULT_KINDS_] = {0}, faults = 0;

        for (uint64_t n = 0; n < 30000; n++) {
                struct request r = request(n % 3 == 2 ? "PUT" : "GET", MAPS, queries[n % 3]);
                struct fault a, b;

                r.number = n;
                a = seed_decide(42, 20, &r);
                b = seed_decide(42, 20, &r);
                assert_memory_equal(&a, &b, sizeof(a));
                assert_true(r.class == CLASS_WATCH ? a.life >= 200 * USEC_PER_MS : a.life == 0);
                seen[a.kind]++;
                faults += a.kind != FAULT_NONE;
                if (a.kind == FAULT_ANSWER && a.code == 409)
                        assert_int_equal(r.class, CLASS_WRITE);
                if (a.kind == FAULT_EXPIRED || a.kind == FAULT_REPLAY)
                        assert_int_equal(r.class, CLASS_WATCH);
        }
        assert_in_range(faults, 5500, 6500); /* 20 % */
        for (int i = 0; i < FAULT_KINDS_; i++)
                assert_true(seen[i] > 0);
}

/* ---- bodies */

struct rig {
        struct clock clock;
        struct loop *loop;
        struct lines *lines;
        char out[4096]; /* chunks between bars */
        unsigned wakes, effects;
};

static void on_write(void *arg, struct str chunk)
{
        struct rig *r = arg;
        size_t n = strlen(r->out);

        snprintf(r->out + n, sizeof(r->out) - n, "%.*s|", STR_ARG(chunk));
}

static void on_wake(void *arg)
{
        struct rig *r = arg;

        r->wakes++;
}

static void on_effect(void *arg)
{
        struct rig *r = arg;

        r->effects++;
}

static const struct lines_ops ops = {.write = on_write, .on_wake = on_wake, .on_effect = on_effect};

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->clock = (struct clock){.manual = true, .boot = 1000};
        r->loop = loop_new(&r->clock, NULL, NULL);
        assert_non_null(r->loop);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        lines_free(r->lines);
        loop_free(r->loop);
        free(r);
        return 0;
}

/* A filter for FAULT, as a script has it. */
static void filter(struct rig *r, const char *fault)
{
        struct str text = str_of(xasprintf("match GET * -> %s", fault));
        _cleanup_(script_free) struct script *s = script_parse(text, NULL);
        struct request any = request("GET", "/", "");
        struct fault f = script_decide(s, &any);

        assert_true(lines_wanted(&f));
        r->lines = lines_new(r->loop, &f, &ops, r);
        free((char *)text.p);
}

static void test_cut_in_the_middle_of_a_line(void **state)
{
        struct rig *r = *state;

        filter(r, "cut lines=1 bytes=2");
        assert_int_equal(lines_run(r->lines), LINES_GO_ON);
        assert_int_equal(lines_feed(r->lines, STR("aaa")), LINES_GO_ON);
        assert_int_equal(lines_feed(r->lines, STR("a\nb")), LINES_GO_ON);
        assert_int_equal(r->effects, 0);
        assert_int_equal(lines_feed(r->lines, STR("bbb\n")), LINES_ABORT);
        assert_string_equal(r->out, "aaaa\n|b|b|");
        assert_int_equal(r->effects, 1);
}

static void test_cut_at_once_and_at_the_end(void **state)
{
        struct rig *r = *state;

        filter(r, "cut");
        assert_int_equal(lines_run(r->lines), LINES_ABORT);
        lines_free(r->lines);
        filter(r, "cut bytes=100");
        assert_int_equal(lines_feed(r->lines, STR("short")), LINES_GO_ON);
        assert_int_equal(lines_finish(r->lines), LINES_ABORT);
        assert_string_equal(r->out, "short|");
}

static void test_duplicate_and_replay(void **state)
{
        struct rig *r = *state;

        filter(r, "duplicate lines=2");
        assert_int_equal(lines_feed(r->lines, STR("a\nb\nc\n")), LINES_GO_ON);
        assert_string_equal(r->out, "a\n|b\n|b\n|c\n|");
        lines_free(r->lines);
        r->out[0] = 0;
        filter(r, "replay lines=3");
        assert_int_equal(lines_feed(r->lines, STR("a\nb\nc\nd\n")), LINES_GO_ON);
        assert_string_equal(r->out, "a\n|b\n|c\n|a\n|d\n|");
        assert_int_equal(r->effects, 2);
}

static void test_expired_after_a_line(void **state)
{
        struct rig *r = *state;

        filter(r, "expired lines=1");
        assert_int_equal(lines_run(r->lines), LINES_GO_ON);
        assert_int_equal(lines_feed(r->lines, STR("a\nb\n")), LINES_END);
        assert_non_null(strstr(r->out, "a\n|{\"type\":\"ERROR\""));
        assert_non_null(strstr(r->out, "\"code\":410}}\n|"));
        assert_null(strstr(r->out, "b\n"));
}

static void test_stall_goes_on_afterwards(void **state)
{
        struct rig *r = *state;

        filter(r, "stall lines=1 ms=500");
        assert_int_equal(lines_feed(r->lines, STR("a\nb\nc")), LINES_WAIT);
        assert_int_equal(lines_feed(r->lines, STR("c\n")), LINES_WAIT);
        assert_string_equal(r->out, "a\n|");
        while (r->wakes == 0)
                loop_turn(r->loop, true);
        assert_int_equal(r->clock.boot, 1000 + 500 * USEC_PER_MS);
        assert_int_equal(lines_run(r->lines), LINES_GO_ON);
        assert_string_equal(r->out, "a\n|b\n|cc\n|");
        assert_int_equal(lines_finish(r->lines), LINES_END);
}

static void test_silence_ends_by_time_or_never(void **state)
{
        struct rig *r = *state;

        filter(r, "silent ms=500");
        assert_int_equal(lines_run(r->lines), LINES_WAIT);
        while (r->wakes == 0)
                loop_turn(r->loop, true);
        assert_int_equal(lines_run(r->lines), LINES_ABORT);
        assert_string_equal(r->out, "");
        lines_free(r->lines);
        filter(r, "silent");
        assert_int_equal(lines_run(r->lines), LINES_WAIT);
        assert_false(loop_turn(r->loop, true)); /* nothing to wait for */
}

static void test_bytes_merge_and_crlf(void **state)
{
        struct rig *r = *state;

        filter(r, "bytes");
        lines_feed(r->lines, STR("ab\nc"));
        assert_int_equal(lines_finish(r->lines), LINES_END);
        assert_string_equal(r->out, "a|b|\n|c|");
        lines_free(r->lines);
        r->out[0] = 0;
        filter(r, "crlf");
        lines_feed(r->lines, STR("ab\nc\n"));
        assert_string_equal(r->out, "ab\r\n|c\r\n|");
        lines_free(r->lines);
        r->out[0] = 0;
        filter(r, "merge");
        lines_feed(r->lines, STR("a\n"));
        assert_string_equal(r->out, "");
        lines_feed(r->lines, STR("b\nc\n"));
        assert_string_equal(r->out, "a\nb\n|");
        loop_turn(r->loop, true); /* nobody comes: alone after all */
        assert_string_equal(r->out, "a\nb\n|c\n|");
}

static void test_long_lines_pass(void **state)
{
        struct rig *r = *state;
        char *piece = xmalloc(1 << 20);
        size_t total = 0;

        memset(piece, 'x', 1 << 20);
        filter(r, "duplicate");
        for (int i = 0; i < 10; i++, total += 1 << 20)
                assert_int_equal(lines_feed(r->lines, str_n(piece, 1 << 20)), LINES_GO_ON);
        assert_int_equal(lines_finish(r->lines), LINES_END);
        free(piece);
}

static void test_stale_answers_are_the_first_and_not_too_old(void **state)
{
        struct stale *s = stale_new();
        struct str type, body;

        assert_false(stale_find(s, 0, STR("/a"), &type, &body));
        stale_keep(s, 0, STR("/a"), STR("application/json"), STR("one"));
        stale_keep(s, 10, STR("/a"), STR("application/json"), STR("two"));
        assert_true(stale_find(s, 20, STR("/a"), &type, &body));
        assert_str(body, "one");
        assert_str(type, "application/json");
        assert_false(stale_find(s, 61 * USEC_PER_SEC, STR("/a"), &type, &body));
        stale_keep(s, 61 * USEC_PER_SEC, STR("/a"), STR("application/json"), STR("three"));
        assert_true(stale_find(s, 62 * USEC_PER_SEC, STR("/a"), &type, &body));
        assert_str(body, "three");
        for (int i = 0; i < 1000; i++) {
                char target[32];

                snprintf(target, sizeof(target), "/%d", i);
                stale_keep(s, 62 * USEC_PER_SEC, str_of(target), STR(""), STR("x"));
        }
        assert_false(stale_find(s, 62 * USEC_PER_SEC, STR("/1"), &type, &body));
        assert_true(stale_find(s, 62 * USEC_PER_SEC, STR("/999"), &type, &body));
        stale_free(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_told_apart),
        cmocka_unit_test(test_a_script_counts_and_decides),
        cmocka_unit_test(test_a_bad_script_says_where),
        cmocka_unit_test(test_a_seed_always_says_the_same_and_uses_all_faults),
        T(test_cut_in_the_middle_of_a_line),
        T(test_cut_at_once_and_at_the_end),
        T(test_duplicate_and_replay),
        T(test_expired_after_a_line),
        T(test_stall_goes_on_afterwards),
        T(test_silence_ends_by_time_or_never),
        T(test_bytes_merge_and_crlf),
        T(test_long_lines_pass),
        cmocka_unit_test(test_stale_answers_are_the_first_and_not_too_old),
};

UNIT_MAIN(tests)
