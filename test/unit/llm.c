/* The OpenAI protocol: requests there and back, and what events say. */
#include "unit/unit.h"

#include "probe/load/llm_private.h"

/* ---- events */

/* The text has its exact size in memory, so that a sanitizer sees whoever reads beyond. */
static int parse(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *e,
                 struct err *err)
{
        _cleanup_(free_ptr) char *copy = xmemdup(data.p, data.n);

        *err = (struct err)ERR_INIT;
        arena_reset(a, SIZE_MAX);
        return llm_event_parse(a, endpoint, str_n(copy, data.n), e, err);
}

struct event_case {
        enum llm_endpoint endpoint;
        const char *data;
        const char *content, *finish;
        bool done, has_usage;
        uint64_t prompt_tokens, completion_tokens;
        const char *error;
};

static const struct event_case events[] = {
        {.data = "[DONE]", .done = true},
        {.data = "{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","
                 "\"choices\":"
                 "[{\"index\":0,\"delta\":{\"content\":\" "
                 "hello\"},\"logprobs\":null,\"finish_reason\":null}]}",
         .content = " hello"},
        {.data = "{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}"},
        {.data = "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]"
                 "}"},
        {.data = "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]"
                 "}"},
        {.data = "{\"choices\":[{\"delta\":{\"content\":\"a\\nb \\u00fc \xC3\xBC \\ud83d\\ude00 \\\"\"}}]}",
         .content = "a\nb \xC3\xBC \xC3\xBC \xF0\x9F\x98\x80 \""},
        {.data = "{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\",\"content\":null}}]}",
         .content = "hm"},
        {.data = "{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm, \",\"content\":\"yes\"}}]}",
         .content = "hm, yes"},
        {.data = "{\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"content\":\"\"}}]}", .content = "hm"},
        {.data = "{\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}", .finish = "length"},
        {.data = "{\"choices\":[{\"finish_reason\":\"stop\"}]}", .finish = "stop"},
        {.data = "{\"choices\":[{\"delta\":{\"content\":\"a\"}},{\"index\":1,\"delta\":{\"content\":\"b\"}},"
                 "{\"index\":2,\"delta\":{\"content\":\"c\"},\"finish_reason\":\"stop\"}]}",
         .content = "abc",
         .finish = "stop"},
        {.data = "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":12,\"total_tokens\":"
                 "19}}",
         .has_usage = true,
         .prompt_tokens = 7,
         .completion_tokens = 12},
        /* the answer's length is not among it */
        {.data = "{\"choices\":[],\"usage\":{\"prompt_tokens\":7}}", .prompt_tokens = 7},
        {.data = "{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":7,"
                 "\"completion_tokens\":1,\"completion_tokens_details\":{\"reasoning_tokens\":0}}}",
         .content = "x",
         .has_usage = true,
         .prompt_tokens = 7,
         .completion_tokens = 1},
        {.data = "{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null,\"error\":null}",
         .content = "x"},
        {.data = "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"all of it\"},"
                 "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":3}}",
         .content = "all of it",
         .finish = "stop",
         .has_usage = true,
         .prompt_tokens = 1,
         .completion_tokens = 3},
        {.endpoint = LLM_COMPLETIONS,
         .data = "{\"choices\":[{\"index\":0,\"text\":\" text\",\"finish_reason\":null}]}",
         .content = " text"},
        {.endpoint = LLM_COMPLETIONS,
         .data = "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}",
         .finish = "stop"},
        {.data = "{\"error\":{\"message\":\"out of\\nmemory\",\"type\":\"X\",\"code\":500}}",
         .error = "out of memory"},
        {.data = "{\"error\":\"overloaded\"}", .error = "overloaded"},
        {.data = "{\"object\":\"error\",\"message\":\"no such model\",\"code\":404}",
         .error = "no such model"},
        {.data = "{\"error\":{\"code\":1}}", .error = "an error without a message"},
        {.data = "{\"choices\":[],\"error\":{\"message\":\"late\"}}", .error = "late"},
        {.data = " { \"usage\" : { \"completion_tokens\" : 2e0 } , \"choices\" : [ ] } ",
         .has_usage = true,
         .completion_tokens = 2},
};

static void test_events(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(events); i++) {
                const struct event_case *c = &events[i];
                struct llm_event e;
                struct err err;

                if (parse(&a, c->endpoint, str_of(c->data), &e, &err) < 0)
                        fail_msg("%s: %s", c->data, err.text);
                assert_str(e.content, c->content ? c->content : "");
                assert_true(streq(e.finish, c->finish));
                assert_true(streq(e.error, c->error));
                assert_int_equal(e.done, c->done);
                assert_int_equal(e.has_usage, c->has_usage);
                assert_int_equal(e.prompt_tokens, c->prompt_tokens);
                assert_int_equal(e.completion_tokens, c->completion_tokens);
        }
}

static void assert_same(const struct llm_event *x, const struct llm_event *y)
{
        assert_true(str_eq(x->content, y->content) && streq(x->finish, y->finish));
        assert_true(streq(x->error, y->error) && x->has_usage == y->has_usage);
        assert_int_equal(x->prompt_tokens, y->prompt_tokens);
        assert_int_equal(x->completion_tokens, y->completion_tokens);
}

/* The quick way may leave an event to the thorough one, but never sees another in it. */
static void test_both_ways_agree(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_event quick, thorough;
        size_t n_quick = 0;

        for (size_t i = 0; i < ARRAY_LEN(events); i++) {
                const struct event_case *c = &events[i];

                if (c->done || !llm_event_scan(&a, c->endpoint, str_of(c->data), &quick))
                        continue;
                n_quick++;
                assert_int_equal(llm_event_read(&a, c->endpoint, str_of(c->data), &thorough, NULL), 0);
                assert_same(&quick, &thorough);
        }
        assert_true(n_quick >= 10);
}

static void test_the_quick_way_is_for_what_engines_send(void **state)
{
        static const char *const usual[] = {
                /* vLLM, SGLang, TensorRT-LLM, Python's json with its blanks */
                "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1763280000,"
                "\"model\":\"a/b\","
                "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" "
                "w\"},\"logprobs\":null,\"finish_reason\":null,"
                "\"token_ids\":null}],\"prompt_token_ids\":null}",
                "{\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","
                "\"choices\":[{\"index\":0,"
                "\"delta\":{\"role\":null,\"content\":\"gr\xC3\xBC\xC3\x9F\",\"reasoning_content\":null,"
                "\"tool_calls\":null},"
                "\"logprobs\":null,\"finish_reason\":\"stop\",\"matched_stop\":null}],\"usage\":null}",
                "{\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"total_tokens\":9,\"completion_tokens\":4,"
                "\"prompt_tokens_details\":{\"cached_tokens\":0}}}",
                "{\"id\": \"1\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"a\"}, \"stop\": "
                "[1.5, -2]}]}\n",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_event quick, thorough;

        for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
                assert_true(llm_event_scan(&a, LLM_CHAT, str_of(usual[i]), &quick));
                assert_int_equal(llm_event_read(&a, LLM_CHAT, str_of(usual[i]), &thorough, NULL), 0);
                assert_same(&quick, &thorough);
        }
}

static void test_what_is_no_event(void **state)
{
        static const char *const bad[] = {
                "",
                "hello",
                "[]",
                "1",
                "\"[DONE]\"",
                "{}",
                "{\"choices\":null}",
                "{\"choices\":{}}",
                "{\"choices\":[1]}",
                "{\"choices\":[{}]}",
                "{\"choices\":[{\"delta\":1}]}",
                "{\"choices\":[{\"delta\":{\"content\":1}}]}",
                "{\"choices\":[{\"delta\":{\"content\":[\"a\"]}}]}",
                "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]",
                "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}}",
                "{\"choices\":[{\"delta\":{\"content\":\"\xC3\"}}]}",
                "{\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}",
                "{\"choices\":[{\"delta\":{\"content\":\"\xED\xA0\x80\"}}]}",
                "{\"choices\":[{\"delta\":{\"content\":\"\\ud800\"}}]}",
                "{\"id\":\"\xC3\",\"choices\":[]}",
                "{\"choices\":[],\"usage\":1}",
                "{\"choices\":[],\"n\":01}",
                "{\"choices\":[],\"n\":1.}",
                "{\"choices\":[],\"n\":-}",
                "{\"choices\":[],\"n\":nul}",
                "{\"choices\":[],\"n\":nullx}",
                "{\"choices\":[],\"n\":[1,]}",
                "{\"choices\":[],\"n\":{\"a\"}}",
                "{\"choices\":[],}",
                "{\"choices\":[] \"n\":1}",
                "{\"choices\":[],\"n\":\"a\tb\"}",
                "{\"choices\":[],\"usage\":{\"prompt_tokens\":-1}}",
                "{\"choices\":[],\"usage\":{\"completion_tokens\":\"1\"}}",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct llm_event e;
                struct err err;

                if (parse(&a, LLM_CHAT, str_of(bad[i]), &e, &err) == 0)
                        fail_msg("taken: %s", bad[i]);
                assert_true(err.code == E_INVALID || err.code == E_PROTOCOL);
                assert_true(err.text[0]);
        }
}

/* ---- errors */

static void test_error_texts(void **state)
{
        static const char *const cases[][2] = {
                {"{\"error\":{\"message\":\"too many requests\"}}", "too many requests"},
                {"{\"error\":\"bad\"}", "bad"},
                {"{\"message\":\"no model\",\"object\":\"error\"}", "no model"},
                {"{\"detail\":\"Not Found\"}", "Not Found"},
                {"{\"detail\":[{\"msg\":\"x\"}]}", "{\"detail\":[{\"msg\":\"x\"}]}"},
                {"  Internal Server\r\n Error\n", "Internal Server   Error"},
                {"{\"error\"", "{\"error\""},
                {"\x1B[31mred\xFF", " [31mred\xEF\xBF\xBD"},
                {"", ""},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(llm_error_text(&a, str_of(cases[i][0])), cases[i][1]);
        assert_string_equal(llm_error_text(&a, STR_NULL), "");
}

static void test_long_error_texts_are_cut_between_characters(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        const char *cut;

        buf_addc(&text, 'x');
        for (int i = 0; i < 10000; i++)
                buf_adds(&text, "\xC3\xBC");
        cut = llm_error_text(&a, buf_str(&text));
        assert_int_equal(strlen(cut), 199);
        assert_true(utf8_valid(cut, strlen(cut)));
}

/* ---- requests */

static const char *written(struct arena *a, enum llm_endpoint endpoint, const struct llm_request *r)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);

        llm_request_write(a, endpoint, r, &out);
        return arena_strndup(a, out.p, out.n);
}

static void test_requests_as_text(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_request r = {.model = "m", .prompt = STR("say \"a\"")};

        assert_string_equal(
                written(&a, LLM_CHAT, &r),
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"say \\\"a\\\"\"}]}");
        assert_string_equal(written(&a, LLM_COMPLETIONS, &r),
                            "{\"model\":\"m\",\"prompt\":\"say \\\"a\\\"\"}");
        r.prompt = STR("\xFF");
        r.max_tokens = 5;
        r.min_tokens = 4;
        r.ignore_eos = r.stream = r.include_usage = true;
        assert_string_equal(
                written(&a, LLM_COMPLETIONS, &r),
                "{\"model\":\"m\",\"prompt\":\"\xEF\xBF\xBD\",\"max_tokens\":5,\"min_tokens\":4,"
                "\"ignore_eos\":true,\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
}

static void test_what_the_caller_adds_wins(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_request r = {.model = "m", .prompt = STR("p"), .max_tokens = 5, .stream = true};

        r.extra = json_build(&a, "{'max_tokens': 9, 'temperature': 0, 'messages': [], 'nvext': {'a': [1]}}");
        assert_string_equal(written(&a, LLM_CHAT, &r),
                            "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9,\"temperature\":0,"
                            "\"messages\":[],\"nvext\":{\"a\":[1]}}");
        r = (struct llm_request){.extra = json_build(&a, "{'prompt': 'q'}")};
        assert_string_equal(written(&a, LLM_COMPLETIONS, &r), "{\"prompt\":\"q\"}");
}

static void test_a_body_over_its_limit_is_no_body(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_request r = {.model = "m", .prompt = STR("a prompt that is longer than that")};

        for (size_t max = 0; max < 40; max++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(max);

                llm_request_write(&a, LLM_CHAT, &r, &out);
                assert_true(out.overflow);
        }
}

static void test_requests_there_and_back(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_request r = {.model = "m/x",
                                .prompt = STR("line\n\xC3\xBC"),
                                .max_tokens = UINT32_MAX,
                                .min_tokens = 1,
                                .stream = true,
                                .ignore_eos = true,
                                .include_usage = true},
                           back;

        for (int endpoint = LLM_CHAT; endpoint <= LLM_COMPLETIONS; endpoint++) {
                assert_int_equal(
                        llm_request_parse(&a, str_of(written(&a, endpoint, &r)), endpoint, &back, NULL), 0);
                assert_string_equal(back.model, r.model);
                assert_str(back.prompt, "line\n\xC3\xBC");
                assert_int_equal(back.max_tokens, r.max_tokens);
                assert_int_equal(back.min_tokens, 1);
                assert_true(back.stream && back.ignore_eos && back.include_usage);
        }
}

static void test_requests_as_others_write_them(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct llm_request r;

        assert_int_equal(
                llm_request_parse(
                        &a,
                        STR("{\"model\":\"m\",\"max_completion_tokens\":7,\"stream\":null,\"max_tokens\":"
                            "null,"
                            "\"messages\":[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"assistant\"},"
                            "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"},"
                            "{\"type\":\"image_url\",\"image_url\":{}},{\"type\":\"text\",\"text\":\"c\"}]}]"
                            "}"),
                        LLM_CHAT, &r, NULL),
                0);
        assert_str(r.prompt, "abc");
        assert_int_equal(r.max_tokens, 7);
        assert_false(r.stream);
        assert_int_equal(llm_request_parse(&a, STR("{\"model\":\"m\",\"prompt\":[\"a\",\"b\"]}"),
                                           LLM_COMPLETIONS, &r, NULL),
                         0);
        assert_str(r.prompt, "ab");
}

static void test_requests_that_are_refused(void **state)
{
        static const char *const bad[] = {
                "",
                "[]",
                "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                "{\"model\":1,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                "{\"model\":\"m\"}",
                "{\"model\":\"m\",\"messages\":[]}",
                "{\"model\":\"m\",\"messages\":\"a\"}",
                "{\"model\":\"m\",\"messages\":[\"a\"]}",
                "{\"model\":\"m\",\"messages\":[{\"content\":\"a\"}]}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":1}]}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[1]}]}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_tokens\":0}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_tokens\":1.5}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}],\"max_tokens\":4294967296}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"min_tokens\":-1}",
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":1}",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct llm_request r;
                struct err err = ERR_INIT;

                if (llm_request_parse(&a, str_of(bad[i]), LLM_CHAT, &r, &err) == 0)
                        fail_msg("taken: %s", bad[i]);
                assert_int_equal(err.code, E_INVALID);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_both_ways_agree),
        cmocka_unit_test(test_the_quick_way_is_for_what_engines_send),
        cmocka_unit_test(test_what_is_no_event),
        cmocka_unit_test(test_error_texts),
        cmocka_unit_test(test_long_error_texts_are_cut_between_characters),
        cmocka_unit_test(test_requests_as_text),
        cmocka_unit_test(test_what_the_caller_adds_wins),
        cmocka_unit_test(test_a_body_over_its_limit_is_no_body),
        cmocka_unit_test(test_requests_there_and_back),
        cmocka_unit_test(test_requests_as_others_write_them),
        cmocka_unit_test(test_requests_that_are_refused),
};

UNIT_MAIN(tests)
