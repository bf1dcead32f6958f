/*
 * What the load generator makes before the first request: bodies, schedules, workers; and traces.
 */
#include "unit/unit.h"

#include "probe/load/load_private.h"
#include "unit/dir.h"

static struct load_config usual(void)
{
        return (struct load_config){
                .url = "http://127.0.0.1:1", .model = "m", .requests = 50, .isl = 20, .osl = 7, .seed = 3};
}

static struct json *body(struct load_plan *p, size_t i)
{
        struct err err = ERR_INIT;
        struct json *j = json_parse(&p->arena, p->bodies[i].text, NULL, &err);

        if (!j)
                fail_msg("%s", err.text);
        return j;
}

static struct str prompt_of(struct load_plan *p, size_t i)
{
        return json_text(json_at(json_index(json_at(body(p, i), "messages"), 0), "content"));
}

static size_t words(struct str s)
{
        size_t n = 0;

        while (s.n)
                n += str_split(&s, ' ').n > 0;
        return n;
}

static void make(struct load_plan *p, const struct load_config *c)
{
        struct err err = ERR_INIT;

        if (load_plan_make(p, c, &err) < 0)
                fail_msg("%s", err.text);
}

static void test_bodies_are_made_ahead_and_by_the_seed(void **state)
{
        struct load_config c = usual();
        _cleanup_(load_plan_done) struct load_plan p, again, other;

        make(&p, &c);
        make(&again, &c);
        c.seed = 4;
        make(&other, &c);
        assert_int_equal(p.n_bodies, 50); /* no more than are sent */
        for (size_t i = 0; i < p.n_bodies; i++) {
                assert_true(str_eq(p.bodies[i].text, again.bodies[i].text));
                assert_int_equal(p.bodies[i].isl, 20);
                assert_int_equal(words(prompt_of(&p, i)), 20);
                assert_int_equal(json_int(body(&p, i), "max_tokens", 0), 7);
                assert_true(json_bool(body(&p, i), "stream", false));
        }
        assert_false(str_eq(p.bodies[0].text, other.bodies[0].text));
        assert_false(str_eq(p.bodies[0].text, p.bodies[1].text));
}

static void test_lengths_vary_by_their_deviation(void **state)
{
        struct load_config c = usual();
        _cleanup_(load_plan_done) struct load_plan p;
        double sum = 0, squares = 0;

        c.requests = 1000;
        c.prompts = 1000;
        c.isl = 100;
        c.isl_stddev = 10;
        c.osl_stddev = 100; /* far below 1: cut there */
        make(&p, &c);
        for (size_t i = 0; i < p.n_bodies; i++) {
                sum += p.bodies[i].isl;
                squares += (double)p.bodies[i].isl * p.bodies[i].isl;
                assert_int_equal(words(prompt_of(&p, i)), p.bodies[i].isl);
                assert_in_range(json_int(body(&p, i), "max_tokens", 0), 1, 1000);
        }
        assert_true(sum / 1000 > 98 && sum / 1000 < 102);
        assert_true(squares / 1000 - sum / 1000 * (sum / 1000) > 70);
        assert_true(squares / 1000 - sum / 1000 * (sum / 1000) < 130);
}

static void test_an_open_loop_has_its_schedule(void **state)
{
        struct load_config c = usual();
        _cleanup_(load_plan_done) struct load_plan p, timed;

        c.rate = 100;
        c.pattern = ARRIVE_CONSTANT;
        make(&p, &c);
        assert_int_equal(p.measured.n, 50);
        for (uint64_t i = 0; i < 50; i++)
                assert_int_equal(p.measured.due[i], i * 10000000);
        c.requests = 0;
        c.duration = USEC_PER_SEC;
        make(&timed, &c);
        assert_int_equal(timed.measured.n, 100); /* those due within the time */
        assert_int_equal(timed.concurrency, 0);
}

static void test_workers_are_not_more_than_there_is_to_do(void **state)
{
        struct load_config c = usual();
        _cleanup_(load_plan_done) struct load_plan one, asked;

        make(&one, &c);
        assert_int_equal(one.concurrency, 1);
        assert_int_equal(one.workers, 1);
        c.concurrency = 3;
        c.workers = 8;
        make(&asked, &c);
        assert_int_equal(asked.workers, 3);
        assert_int_equal(asked.connections, 1);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
        const struct {
                const char *word;
                struct load_config c;
        } cases[] = {
                {"URL", {.url = "nonsense", .model = "m", .requests = 1}},
                {"TLS", {.url = "https://x", .model = "m", .requests = 1}},
                {"model", {.url = "http://x", .requests = 1}},
                {"neither", {.url = "http://x", .model = "m"}},
                {"rate", {.url = "http://x", .model = "m", .requests = 1, .rate = -1}},
                {"concurrency", {.url = "http://x", .model = "m", .requests = 1, .concurrency = 200000}},
                {"mean", {.url = "http://x", .model = "m", .requests = 1, .osl_stddev = 5}},
                {"more than",
                 {.url = "http://x", .model = "m", .rate = 100000, .duration = 101 * USEC_PER_SEC}},
                {"workers", {.url = "http://x", .model = "m", .requests = 1, .workers = 33}},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(load_plan_done) struct load_plan p;
                struct err err = ERR_INIT;

                assert_true(load_plan_make(&p, &cases[i].c, &err) < 0);
                if (!strstr(err.text, cases[i].word))
                        fail_msg("'%s' does not say '%s'", err.text, cases[i].word);
        }
}

static void test_the_target_follows_the_url(void **state)
{
        const struct {
                const char *url, *path, *target;
        } cases[] = {
                {"http://x:1", NULL, "/v1/chat/completions"},
                {"http://x:1/llm", NULL, "/v1/chat/completions"},
                {"http://x:1/v1", NULL, "/chat/completions"},
                {"http://x:1/llm/v1/", NULL, "/chat/completions"},
                {"http://x:1/v1", "/generate", "/generate"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct load_config c = usual();
                _cleanup_(load_plan_done) struct load_plan p;

                c.url = cases[i].url;
                c.path = cases[i].path;
                make(&p, &c);
                assert_string_equal(p.target, cases[i].target);
        }
}

static void test_a_warm_up_ends_with_its_time(void **state)
{
        struct load_config c = usual();
        _cleanup_(load_plan_done) struct load_plan p;

        c.warmup_requests = 5;
        c.duration = 3 * USEC_PER_SEC;
        make(&p, &c);
        assert_int_equal(p.warmup.duration, c.duration);
}

static void test_secrets_are_hidden(void **state)
{
        const struct http_header headers[] = {{STR("Authorization"), STR("Bearer sesame-open")},
                                              {STR("X-Key"), STR("k3y-of-mine")},
                                              {STR("A"), STR("1")}};
        const struct {
                const char *text, *shown;
        } cases[] = {
                {"", ""},
                {"nothing of 1", "nothing of 1"},
                {"bad key 'sesame-open'", "bad key '***'"},
                {"got Bearer sesame-open, k3y-of-mine and sesame-open", "got ***, *** and ***"},
                {"it was cut: sesame-o", "it was cut: ***"},
                {"it was cut: Bearer se", "it was cut: ***"},
                {"sesame is a plant", "sesame is a plant"},
        };
        struct load_config c = usual();
        _cleanup_(load_plan_done) struct load_plan p;

        c.headers = headers;
        c.n_headers = ARRAY_LEN(headers);
        make(&p, &c);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(1000);

                load_hide(p.secrets, p.n_secrets, str_of(cases[i].text), &out);
                buf_addc(&out, '\0');
                assert_string_equal(out.p, cases[i].shown);
        }
}

/* ---- traces */

static int read_trace(const char *text, enum llm_endpoint endpoint, struct load_plan *p, struct err *err)
{
        char dir[UNIT_DIR_LEN];
        _cleanup_(free_ptr) char *path = NULL;
        struct load_config c = usual();

        unit_dir(dir);
        path = xasprintf("%s/trace.jsonl", dir);
        assert_int_equal(file_replace(path, str_of(text), 0600, NULL), 0);
        c.requests = 0;
        c.trace = path;
        c.endpoint = endpoint;
        return load_plan_make(p, &c, err);
}

static void test_a_trace_says_what_and_when(void **state)
{
        _cleanup_(load_plan_done) struct load_plan p;
        struct err err = ERR_INIT;
        const char *text =
                "{\"timestamp\": 100, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
                "\n"
                "{\"timestamp\": 100.5, \"prompt\": \"who are you\"}\r\n"
                "{\"timestamp\": 300, \"input_length\": 520, \"hash_ids\": [1, 3]}";

        if (read_trace(text, LLM_CHAT, &p, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(p.measured.n, 3);
        assert_int_equal(p.measured.due[0], 0);
        assert_int_equal(p.measured.due[1], 500000);
        assert_int_equal(p.measured.due[2], 200000000);
        assert_int_equal(words(prompt_of(&p, 0)), 600);
        assert_str(prompt_of(&p, 1), "who are you");
        assert_int_equal(p.bodies[1].isl, 3);
        assert_int_equal(words(prompt_of(&p, 2)), 520);
        assert_null(json_at(body(&p, 2), "max_tokens"));
        /* the first block of 512 in common, and no more */
        assert_memory_equal(prompt_of(&p, 0).p, prompt_of(&p, 2).p, 1024);
        assert_false(str_has_prefix(prompt_of(&p, 0), prompt_of(&p, 2)));
}

static void test_contents_in_parts_are_counted(void **state)
{
        _cleanup_(load_plan_done) struct load_plan p;
        struct err err = ERR_INIT;

        if (read_trace("{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
                       "\"the time of day\"}]}]}\n",
                       LLM_CHAT, &p, &err) < 0)
                fail_msg("%s", err.text);
        assert_true(p.bodies[0].isl >= 4);
}

static void test_a_wrong_trace_names_its_line(void **state)
{
        static const struct {
                const char *word, *text;
                enum llm_endpoint endpoint;
        } cases[] = {
                {"no requests", "\n\n", LLM_CHAT},
                {"line 1", "{", LLM_CHAT},
                {"line 2: must be a JSON object", "{\"input_length\": 1}\n7\n", LLM_CHAT},
                {"line 1: 'input_length'", "{\"input_length\": 1.5}", LLM_CHAT},
                {"line 1: 'input_length'", "{\"input_length\": 99999999}", LLM_CHAT},
                {"line 1: 'timestamp'", "{\"timestamp\": \"now\", \"input_length\": 1}", LLM_CHAT},
                {"line 2: 'timestamp' is before",
                 "{\"timestamp\": 2, \"input_length\": 1}\n{\"timestamp\": 1, \"input_length\": 1}",
                 LLM_CHAT},
                {"line 2: either all", "{\"timestamp\": 2, \"input_length\": 1}\n{\"input_length\": 1}",
                 LLM_CHAT},
                {"line 1: 'messages'", "{\"messages\": []}", LLM_COMPLETIONS},
                {"line 1: 'turns'", "{\"turns\": []}", LLM_CHAT},
                {"line 1: has none of", "{}", LLM_CHAT},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(load_plan_done) struct load_plan p;
                struct err err = ERR_INIT;

                assert_true(read_trace(cases[i].text, cases[i].endpoint, &p, &err) < 0);
                if (!strstr(err.text, cases[i].word))
                        fail_msg("'%s' does not say '%s'", err.text, cases[i].word);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies_are_made_ahead_and_by_the_seed),
        cmocka_unit_test(test_lengths_vary_by_their_deviation),
        cmocka_unit_test(test_an_open_loop_has_its_schedule),
        cmocka_unit_test(test_workers_are_not_more_than_there_is_to_do),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_the_target_follows_the_url),
        cmocka_unit_test(test_a_warm_up_ends_with_its_time),
        cmocka_unit_test(test_secrets_are_hidden),
        cmocka_unit_test(test_a_trace_says_what_and_when),
        cmocka_unit_test(test_contents_in_parts_are_counted),
        cmocka_unit_test(test_a_wrong_trace_names_its_line),
};

UNIT_MAIN(tests)
