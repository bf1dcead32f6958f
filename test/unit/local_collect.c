/*
 * Owners and those who depend on them, on the API without HTTP. Time stands still: what has to wait never happens.
 */
#include "unit/dir.h"
#include "unit/unit.h"

#include "local/manage_internal.h"
#include "local/store_internal.h"

struct rig {
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 16];
        struct clock clock;
        struct loop *loop;
        struct store *store;
        struct api *api;
        struct manager *manager;
        struct arena arena;
        struct store_listener listener;
};

static struct json *ask(struct rig *r, enum verb verb, const char *plural, const char *name,
                        struct json *body)
{
        struct call c = {.api = r->api,
                         .a = &r->arena,
                         .type = api_find_plural(r->api, "", "v1", plural),
                         .verb = verb,
                         .ns = streq(plural, "namespaces") ? "" : "default",
                         .name = name,
                         .sub = "",
                         .body = body,
                         .manager = "test",
                         .grace = -1};

        api_do(&c);
        assert_in_range(c.code, 200, 201);
        return c.answer;
}

/* Until nothing is under way, and nothing is looked at. */
static void settle(struct rig *r)
{
        const struct store *s = r->store;

        while (s && (store_rev(s) + 1 != store_next_rev(s) || s->committing || s->turn_end.pending ||
                     r->manager->work.pending))
                loop_turn(r->loop, true);
}

/* As soon as the child is heard of its owner is deleted, which nobody hears of before the child is looked at. */
static void delete_owner(struct store_listener *l, const struct change *ch)
{
        struct rig *r = CONTAINER_OF(l, struct rig, listener);

        if (streq(ch->after->name, "child") && !ch->is_delete)
                (void)ask(r, DO_DELETE, "configmaps", "owner", NULL);
}

static void rig_open(struct rig *r)
{
        struct err err = ERR_INIT;

        *r = (struct rig){.clock = {.manual = true, .boot = 1000, .wall = 1000}};
        unit_dir(r->dir);
        snprintf(r->path, sizeof(r->path), "%s/store.db", r->dir);
        r->loop = loop_new(&r->clock, NULL, &err);
        assert_non_null(r->loop);
        r->store = store_open(r->loop, &(struct store_config){.path = r->path}, &err);
        if (!r->store)
                fail_msg("%s", err.text);
        r->api = api_new(
                &(struct api_config){.loop = r->loop, .store = r->store, .token = "t", .address = "a"}, &err);
        if (!r->api)
                fail_msg("%s", err.text);
        r->manager = manager_new(r->loop, r->api, r->store, NULL);
        settle(r);
}

static void rig_done(struct rig *r)
{
        manager_free(r->manager);
        api_free(r->api);
        store_close(r->store);
        loop_free(r->loop);
        arena_done(&r->arena);
}

static void who_depends_on_what_is_just_being_deleted_goes_with_it(void **state)
{
        struct rig r;
        const struct json *owner;

        rig_open(&r);
        owner = ask(&r, DO_CREATE, "configmaps", NULL,
                    json_build(&r.arena, "{'metadata': {'name': 'owner'}}"));
        settle(&r);
        r.listener.fn = delete_owner;
        store_listen(r.store, &r.listener);
        (void)ask(&r, DO_CREATE, "configmaps", NULL,
                  json_build(&r.arena,
                             "{'metadata': {'name': 'child', 'ownerReferences': [{'apiVersion': 'v1', "
                             "'kind': 'ConfigMap', 'name': 'owner', 'uid': %s}]}}",
                             meta_str(owner, "uid")));
        settle(&r);
        assert_null(store_get(r.store, "configmaps", "default", "owner"));
        assert_null(store_get(r.store, "configmaps", "default", "child"));
        rig_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_depends_on_what_is_just_being_deleted_goes_with_it),
};

UNIT_MAIN(tests)
