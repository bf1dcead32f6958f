#include "local/api_internal.h"

enum { OPENAPI_MAX = 64 << 20, BOOKMARK_EVERY = 60 };

static void on_change(struct store_listener *l, const struct change *ch)
{
        struct api *api = CONTAINER_OF(l, struct api, listener);

        watches_change(api, ch);
        crd_changed(api, ch);
        quota_changed(api, ch);
}

void api_types_changed(struct api *api)
{
        buf_clear(&api->openapi);
        buf_clear(&api->openapi_pb);
}

static void serve_builtin(struct api *api)
{
        for (size_t i = 0; i < types_count(api->builtin); i++) {
                struct api_type *t = types_get(api->builtin, i);

                t->store = store_type(api->store, t->store);
                *vec_push(&api->types) = t;
        }
}

/* Namespaces that every cluster has. */
static int make_namespaces(struct api *api, struct err *err)
{
        static const char *const names[] = {"default", "kube-system", "kube-public", "kube-node-lease"};

        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct call c = {.api = api,
                                 .a = &a,
                                 .type = api_find_plural(api, "", "v1", "namespaces"),
                                 .verb = DO_CREATE,
                                 .ns = "",
                                 .manager = "kube-apiserver",
                                 .grace = -1};

                if (store_newest(api->store, c.type->store, "", names[i]))
                        continue;
                c.body = json_build(&a, "{'metadata': {'name': %s}}", names[i]);
                api_do(&c);
                if (c.code != 201)
                        return err_set(err, E_INTERNAL, "cannot make the namespace %s: %s", names[i],
                                       json_str_or(c.answer, "message", ""));
        }
        return 0;
}

struct api *api_new(const struct api_config *config, struct err *err)
{
        struct api *api = xcalloc(1, sizeof(*api));

        list_init(&api->requests);
        list_init(&api->logs);
        api->loop = config->loop;
        api->store = config->store;
        api->log = config->log;
        api->token = xstrdup(config->token);
        api->pods_dir = xstrdup(config->pods_dir);
        api->address = xstrdup(config->address ? config->address : "");
        api->bookmark_every = config->bookmark_every ? config->bookmark_every : BOOKMARK_EVERY * USEC_PER_SEC;
        api->openapi.max = api->openapi_pb.max = OPENAPI_MAX;
        api->builtin = types_builtin();
        serve_builtin(api);
        crds_load(api);
        api->listener.fn = on_change;
        store_listen(api->store, &api->listener);
        if (make_namespaces(api, err) < 0) {
                api_free(api);
                return NULL;
        }
        crds_resume(api);
        return api;
}

void api_free(struct api *api)
{
        store_unlisten(&api->listener);
        watches_free(api);
        logs_free(api);
        list_foreach_safe (node, &api->requests)
                request_free(CONTAINER_OF(node, struct request, node));
        crds_free(api);
        vec_done(&api->types);
        types_free(api->builtin);
        arena_pool_done(&api->arenas);
        buf_done(&api->openapi);
        buf_done(&api->openapi_pb);
        mem_wipe(api->token, strlen(api->token));
        free(api->token);
        free(api->pods_dir);
        free(api->address);
        free(api);
}

size_t api_type_count(const struct api *api)
{
        return api->types.n;
}

struct api_type *api_type_at(const struct api *api, size_t i)
{
        return api->types.v[i];
}

void api_delete_all(struct call *c)
{
        do_delete_collection(c, NULL);
}

static bool is_version(const struct api_type *t, const char *group, const char *version)
{
        return streq(t->kube.group, group) && (!version || streq(t->kube.version, version));
}

struct api_type *api_find_plural(struct api *api, const char *group, const char *version, const char *plural)
{
        vec_foreach (t, &api->types)
                if (is_version(*t, group, version) && streq((*t)->kube.plural, plural))
                        return *t;
        return NULL;
}

void api_event(struct api *api, const struct json *object, const char *component, bool warning,
               const char *reason, const char *message)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct call c = {.api = api,
                         .a = &a,
                         .type = api_find_plural(api, "", "v1", "events"),
                         .verb = DO_CREATE,
                         .manager = component,
                         .grace = -1};
        const char *ns = meta_str(object, "namespace");
        struct json *now = time_now(&c);
        uint64_t unique = loop_wall(api->loop) * 1000 + rng_below(loop_rng(api->loop), 1000);
        const char *name;

        c.ns = ns && *ns ? arena_strdup(&a, ns) : "default";
        name = arena_printf(&a, "%s.%llx", meta_str(object, "name"), (unsigned long long)unique);
        c.body = json_build(
                &a,
                "{'metadata': {'name': %s, 'namespace': %s}, 'involvedObject': {'kind': %s, "
                "'namespace': "
                "%s, 'name': %s, 'uid': %s, 'apiVersion': %s, 'resourceVersion': %s}, 'reason': %s, "
                "'message': "
                "%s, 'source': {'component': %s}, 'firstTimestamp': %p, 'lastTimestamp': %p, 'count': 1, "
                "'type': %s, 'eventTime': null, 'reportingComponent': '', 'reportingInstance': ''}",
                name, c.ns, json_str(object, "kind"), ns, meta_str(object, "name"), meta_str(object, "uid"),
                json_str(object, "apiVersion"), meta_str(object, "resourceVersion"), reason, message,
                component, now, json_copy(&a, now), warning ? "Warning" : "Normal");
        api_do(&c);
}
