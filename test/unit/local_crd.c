/*
 * Definitions whose engine was killed before it had looked at their names, on the API without HTTP.
 */
#include "unit/dir.h"
#include "unit/unit.h"

#include "local/api.h"
#include "local/store_internal.h"

struct rig {
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 16];
        struct loop *loop;
        struct store *store;
        struct api *api;
        struct arena arena;
};

static void open_api(struct rig *r)
{
        struct api_config config = {.loop = r->loop, .store = r->store, .token = "t", .address = "a"};
        struct err err = ERR_INIT;

        r->api = api_new(&config, &err);
        if (!r->api)
                fail_msg("%s", err.text);
}

static void settle(struct rig *r)
{
        const struct store *s = r->store;

        while (store_rev(s) + 1 != store_next_rev(s) || s->committing || s->turn_end.pending)
                loop_turn(r->loop, true);
}

static void make_definition(struct rig *r)
{
        struct call c = {
                .api = r->api,
                .a = &r->arena,
                .type = api_find_plural(r->api, "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
                .verb = DO_CREATE,
                .ns = "",
                .sub = "",
                .manager = "test",
                .grace = -1};

        c.body = json_build(&r->arena,
                            "{'metadata': {'name': 'things.a.test'}, 'spec': {'group': 'a.test', 'scope': "
                            "'Namespaced', 'names': {'plural': 'things', 'kind': 'Thing'}, 'versions': "
                            "[{'name': 'v1', 'served': true, 'storage': true, 'schema': "
                            "{'openAPIV3Schema': {'type': 'object'}}}]}}");
        api_do(&c);
        assert_int_equal(c.code, 201);
}

static void names_that_nobody_looked_at_are_looked_at_by_the_next_engine(void **state)
{
        struct rig r = {.arena = ARENA_INIT};
        struct err err = ERR_INIT;

        unit_dir(r.dir);
        snprintf(r.path, sizeof(r.path), "%s/store.db", r.dir);
        r.loop = loop_new(NULL, NULL, &err);
        assert_non_null(r.loop);
        r.store = store_open(r.loop, &(struct store_config){.path = r.path}, &err);
        assert_non_null(r.store);
        open_api(&r);
        make_definition(&r);
        api_free(r.api); /* the definition is durable, and nobody hears of it */
        settle(&r);
        open_api(&r);
        assert_null(api_find_plural(r.api, "a.test", "v1", "things"));
        settle(&r);
        assert_non_null(api_find_plural(r.api, "a.test", "v1", "things"));
        api_free(r.api);
        store_close(r.store);
        loop_free(r.loop);
        arena_done(&r.arena);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_nobody_looked_at_are_looked_at_by_the_next_engine),
};

UNIT_MAIN(tests)
