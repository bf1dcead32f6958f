/* One run by the API: the end of what its workload wrote, and that only the run that was read is told what to do. */
#include "unit/web_rig.h"

#define RUN      "/api/v1/runs/ap/default/one"
#define POD_PATH "/api/v1/namespaces/default/pods"

enum { LINES = 10000, LINE = 400, LOG_MAX = 1 << 20 };

static void answer_object(struct web_rig *r)
{
        api_answer(api_find(&r->api, "GET", AP_PATH "/one"), 200,
                   "{\"metadata\":{\"namespace\":\"default\",\"name\":\"one\",\"uid\":\"u-1\"},"
                   "\"spec\":{},\"status\":{\"phase\":\"Running\",\"run\":{\"job\":\"j\"}}}");
}

static void answer_pods(struct web_rig *r)
{
        api_answer(
                api_find(&r->api, "GET", POD_PATH), 200,
                "{\"items\":[{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}]}");
}

/* The request for the log of a run that has a pod. */
static struct request *ask_log(struct web_rig *r)
{
        web_ask(r, "GET " RUN "/log?tailLines=10000");
        answer_object(r);
        answer_pods(r);
        return api_find(&r->api, "GET", POD_PATH "/p/log");
}

static struct str body(const struct web_rig *r)
{
        static const char gap[] = "\r\n\r\n";
        const char *at = r->got.n ? memmem(r->got.p, r->got.n, gap, strlen(gap)) : NULL;

        assert_non_null(at);
        at += strlen(gap);
        return str_n(at, r->got.n - (size_t)(at - r->got.p));
}

static void the_end_of_a_long_log_is_told(void **state)
{
        struct web_rig *r = *state;
        _cleanup_(buf_done) struct buf log = BUF_INIT(LINES * (LINE + 1));
        struct request *q = ask_log(r);
        struct str told;

        assert_string_equal(api_param(q, "tailLines"), "10000");
        assert_null(api_param(q, "limitBytes"));
        for (int i = 0; i < LINES; i++)
                buf_printf(&log, "%0*d\n", LINE - 1, i);
        assert_true(log.n > 3 * (size_t)LOG_MAX);
        api_answer(q, 200, buf_cstr(&log));
        web_until(r, "09999\n");
        told = body(r);
        assert_int_equal(told.n, LOG_MAX / LINE * LINE); /* whole lines, as many as there is room for */
        assert_memory_equal(told.p, log.p + (log.n - told.n), told.n);
}

static void what_has_room_is_told_whole(void **state)
{
        struct web_rig *r = *state;

        api_answer(ask_log(r), 200, "one\ntwo\nthree");
        web_until(r, "three");
        assert_str(body(r), "one\ntwo\nthree");
}

static void a_line_that_is_too_long_is_told_by_its_end(void **state)
{
        struct web_rig *r = *state;
        _cleanup_(buf_done) struct buf log = BUF_INIT(4 << 20);

        while (log.n < 2 * (size_t)LOG_MAX) /* characters of two bytes */
                buf_adds(&log, "ä");
        buf_adds(&log, "end");
        api_answer(ask_log(r), 200, buf_cstr(&log));
        web_until(r, "end");
        assert_int_equal(body(r).n, LOG_MAX - 1);
        assert_true(utf8_valid(body(r).p, body(r).n));
}

static void a_refused_log_is_told_in_the_servers_words(void **state)
{
        struct web_rig *r = *state;

        api_refuse(ask_log(r), 400, "BadRequest", NULL);
        web_until(r, "{\"detail\":\"told so\"}");
        assert_non_null(memmem(r->got.p, r->got.n, "HTTP/1.1 400", 12));
}

static void nobody_reads_on_for_one_who_has_gone(void **state)
{
        struct web_rig *r = *state;
        struct request *q = ask_log(r);

        api_stream(&r->api, q);
        api_say(&r->api, q, "one\n");
        fd_close(r->fd);
        r->fd = -1;
        net_until(&r->api.net, q->gone);
        assert_true(list_empty(&r->web->calls));
}

static void only_the_run_that_was_read_is_told(void **state)
{
        static const char *const verbs[] = {"cancel", "suspend"};
        struct web_rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct request *q;
                struct json *patch;

                web_ask(r, arena_printf(&a, "POST " RUN "/%s", verbs[i]));
                answer_object(r);
                q = api_find(&r->api, "PATCH", AP_PATH "/one");
                patch = json_parse(&a, str_of(q->body), NULL, NULL);
                assert_true(json_bool(json_at(patch, "spec"), verbs[i], false));
                assert_string_equal(meta_str(patch, "uid"), "u-1");
                api_refuse(q, 409, "Conflict", NULL);
                web_until(r, "{\"detail\":\"told so\"}");
                assert_non_null(memmem(r->got.p, r->got.n, "HTTP/1.1 409", 12));
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_end_of_a_long_log_is_told, web_rig_setup, web_rig_teardown),
        cmocka_unit_test_setup_teardown(what_has_room_is_told_whole, web_rig_setup, web_rig_teardown),
        cmocka_unit_test_setup_teardown(a_line_that_is_too_long_is_told_by_its_end, web_rig_setup,
                                        web_rig_teardown),
        cmocka_unit_test_setup_teardown(a_refused_log_is_told_in_the_servers_words, web_rig_setup,
                                        web_rig_teardown),
        cmocka_unit_test_setup_teardown(nobody_reads_on_for_one_who_has_gone, web_rig_setup,
                                        web_rig_teardown),
        cmocka_unit_test_setup_teardown(only_the_run_that_was_read_is_told, web_rig_setup, web_rig_teardown),
};
UNIT_MAIN(tests)
