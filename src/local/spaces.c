#include "local/manage_internal.h"

static void make_account(struct manager *m, const char *ns, struct arena *a)
{
        struct call c = {.api = m->api,
                         .a = a,
                         .type = api_find_plural(m->api, "", "v1", "serviceaccounts"),
                         .verb = DO_CREATE,
                         .ns = ns,
                         .sub = "",
                         .manager = "kube-controller-manager",
                         .grace = -1};

        if (store_newest(m->store, m->accounts, ns, "default"))
                return;
        c.body = json_build(a, "{'metadata': {'name': 'default'}}");
        api_do(&c);
}

static size_t delete_content(struct manager *m, const char *ns, struct arena *a)
{
        size_t left = 0;

        for (size_t i = 0; i < api_type_count(m->api); i++) {
                struct call c = {.api = m->api,
                                 .a = a,
                                 .type = api_type_at(m->api, i),
                                 .verb = DO_DELETE_COLLECTION,
                                 .ns = ns,
                                 .sub = "",
                                 .manager = "kube-controller-manager",
                                 .grace = -1,
                                 .propagation = "Background"};

                if (!c.type->kube.namespaced || !(c.type->verbs & VERB_DELETECOLLECTION))
                        continue;
                left += store_count(m->store, c.type->store, ns);
                if (store_count(m->store, c.type->store, ns) > 0)
                        api_delete_all(&c);
        }
        return left;
}

static void finalize(struct manager *m, const char *ns, struct arena *a)
{
        struct call c = {.api = m->api,
                         .a = a,
                         .type = api_find_plural(m->api, "", "v1", "namespaces"),
                         .verb = DO_PATCH,
                         .patch = PATCH_JSON_MERGE,
                         .ns = "",
                         .name = ns,
                         .sub = "finalize",
                         .manager = "kube-controller-manager",
                         .grace = -1};

        c.body = json_build(a, "{'spec': {'finalizers': []}}");
        api_do(&c);
}

void space_changed(struct manager *m, const struct json *ns, struct arena *a)
{
        const char *name = meta_str(ns, "name");

        if (!meta_str(ns, "deletionTimestamp"))
                make_account(m, name, a);
        else if (delete_content(m, name, a) == 0 && json_len(json_path(ns, "spec.finalizers")) > 0)
                finalize(m, name, a);
}

void space_lost(struct manager *m, const char *ns)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct object *o = *ns ? store_newest(m->store, m->namespaces, "", ns) : NULL;
        const struct json *object = o ? json_parse(&a, o->text, NULL, NULL) : NULL;

        if (object && meta_str(object, "deletionTimestamp"))
                item_touch(item_get(m, meta_str(object, "uid")));
}
