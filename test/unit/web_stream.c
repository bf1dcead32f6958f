/* The live stream: a change reaches everybody, whoever has looked at the run meanwhile. */
#include "unit/web_rig.h"

/* Somebody else's write, heard of by the cache. */
static void put(struct web_rig *r, const char *version, const char *more)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct kind *kind = kinds_named(STR("ap"));
        char *text = arena_printf(&a,
                                  "{\"metadata\":{\"namespace\":\"default\",\"name\":\"one\",\"uid\":\"u-1\","
                                  "\"resourceVersion\":\"%s\"},\"spec\":{},\"status\":{%s}}",
                                  version, more);

        assert_int_equal(cache_put(feed_cache(r->web->feed, feed_index(kind)),
                                   json_parse(&a, str_of(text), NULL, NULL), &a, false, NULL),
                         0);
}

/* What GET /api/v1/runs, the queue and the begin of another stream do. */
static void look(struct web_rig *r)
{
        size_t kind = feed_index(kinds_named(STR("ap")));

        feed_row(r->web->feed, kind, cache_get(feed_cache(r->web->feed, kind), "default", "one"));
}

static void begin(struct web_rig *r)
{
        put(r, "1", "\"phase\":\"Pending\"");
        web_ask(r, "GET /api/v1/runs/stream?kind=ap");
        web_allow(r, 1);
        web_until(r, "event: sync");
        web_until(r, "\"phase\":\"Pending\"");
        buf_clear(&r->got);
}

static size_t events(const struct web_rig *r)
{
        size_t n = 0;

        for (const char *p = r->got.p, *end = p + r->got.n;
             r->got.n && (p = memmem(p, (size_t)(end - p), "event: ", 7)); p++)
                n++;
        return n;
}

static void a_look_between_the_change_and_its_telling_loses_nothing(void **state)
{
        struct web_rig *r = *state;

        begin(r);
        put(r, "2", "\"phase\":\"Running\"");
        look(r);
        web_until(r, "\"phase\":\"Running\"");
}

static void a_change_back_within_a_turn_is_none(void **state)
{
        struct web_rig *r = *state;

        begin(r);
        put(r, "2", "\"phase\":\"Running\"");
        look(r);
        put(r, "3", "\"phase\":\"Pending\"");
        look(r);
        net_pass(&r->api.net, 0);
        put(r, "4", "\"phase\":\"Failed\"");
        web_until(r, "\"phase\":\"Failed\"");
        assert_int_equal(events(r), 1);
}

static void what_does_not_show_is_not_told(void **state)
{
        struct web_rig *r = *state;

        begin(r);
        put(r, "2", "\"phase\":\"Pending\"");
        net_pass(&r->api.net, 0);
        put(r, "3", "\"phase\":\"Pending\"");
        look(r);
        net_pass(&r->api.net, 0);
        put(r, "4", "\"phase\":\"Running\"");
        web_until(r, "\"phase\":\"Running\"");
        assert_int_equal(events(r), 1);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_look_between_the_change_and_its_telling_loses_nothing,
                                        web_rig_setup, web_rig_teardown),
        cmocka_unit_test_setup_teardown(a_change_back_within_a_turn_is_none, web_rig_setup, web_rig_teardown),
        cmocka_unit_test_setup_teardown(what_does_not_show_is_not_told, web_rig_setup, web_rig_teardown),
};
UNIT_MAIN(tests)
