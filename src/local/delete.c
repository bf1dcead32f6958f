#include "local/api_internal.h"

/*
 * Deletion as Kubernetes has it: an object with finalizers, with dependents to be waited for or orphaned, or with a
 * grace period, first gets a deletionTimestamp; whoever removes the last finalizer or the grace period ends it.
 */

static int check_preconditions(struct call *c, const struct json *old)
{
        const char *uid = meta_str(old, "uid"), *rev = meta_str(old, "resourceVersion");
        struct json *details = json_build(
                c->a, "{'name': %s, 'group': %p, 'kind': %s}", c->name,
                *c->type->kube.group ? json_string(c->a, c->type->kube.group) : NULL, c->type->kube.kind);
        const char *what = *c->type->kube.group
                                   ? arena_printf(c->a, "%s.%s", c->type->kube.kind, c->type->kube.group)
                                   : c->type->kube.kind;

        if (c->if_uid && !streq(c->if_uid, uid))
                return fail(c, 409, "Conflict", details,
                            "Operation cannot be fulfilled on %s \"%s\": the UID in the precondition (%s) "
                            "does not match "
                            "the UID in record (%s). The object might have been deleted and then recreated",
                            what, c->name, c->if_uid, uid);
        if (c->if_rev && !streq(c->if_rev, rev))
                return fail(
                        c, 409, "Conflict", details,
                        "Operation cannot be fulfilled on %s \"%s\": the ResourceVersion in the precondition "
                        "(%s) does "
                        "not match the ResourceVersion in record (%s). The object might have been modified",
                        what, c->name, c->if_rev, rev);
        return 0;
}

static void set_finalizer(struct call *c, struct json *object, const char *name, bool want)
{
        struct json *meta = json_at(object, "metadata"), *list = json_at(meta, "finalizers");

        if (want == has_finalizer(object, name))
                return;
        if (!list)
                list = json_set(c->a, meta, "finalizers", json_array(c->a));
        if (want) {
                json_append(list, json_string(c->a, name));
                return;
        }
        json_foreach (f, list) {
                if (streq(json_cstr(f), name)) {
                        json_take(list, f);
                        break;
                }
        }
        if (json_len(list) == 0)
                json_remove(meta, "finalizers");
}

/* What the policy asks the collector to do first. A policy that says nothing leaves earlier wishes as they are. */
static void set_propagation(struct call *c, struct json *object)
{
        bool orphan = c->propagation && streq(c->propagation, "Orphan");
        bool foreground = c->propagation && streq(c->propagation, "Foreground");

        if (!c->propagation) {
                if (c->type->orphans && !has_finalizer(object, "foregroundDeletion"))
                        set_finalizer(c, object, "orphan", true);
                return;
        }
        set_finalizer(c, object, "orphan", orphan);
        set_finalizer(c, object, "foregroundDeletion", foreground);
}

/* A definition stays until its objects have gone. */
static void set_cleanup(struct call *c, struct json *object)
{
        if (streq(c->type->store, "customresourcedefinitions.apiextensions.k8s.io") &&
            !object_deleting(object))
                set_finalizer(c, object, "customresourcecleanup.apiextensions.k8s.io", true);
}

/* Seconds a pod has to end: none before it runs anywhere or after it ended. */
static int64_t grace_period(struct call *c, const struct json *object)
{
        const struct json *spec = json_at(object, "spec");
        const char *phase = json_str_or(json_at(object, "status"), "phase", "");

        if (!c->type->graceful)
                return 0;
        if (!*json_str_or(spec, "nodeName", "") || streq(phase, "Failed") || streq(phase, "Succeeded"))
                return 0;
        return c->grace >= 0 ? c->grace : json_int(spec, "terminationGracePeriodSeconds", 30);
}

static struct json *time_after(struct call *c, int64_t seconds)
{
        char text[TIME_TEXT_MAX];

        return json_string(c->a, time_format(loop_wall(c->api->loop) + (usec_t)seconds * USEC_PER_SEC, text));
}

/* Marks OBJECT; true when something has changed by that. */
static bool mark_deleted(struct call *c, struct json *object, int64_t grace)
{
        struct json *meta = json_at(object, "metadata");
        bool was = object_deleting(object);
        int64_t before = json_int(meta, "deletionGracePeriodSeconds", 0);

        if (was && grace >= before)
                return false;
        json_set(c->a, meta, "deletionTimestamp", time_after(c, grace));
        json_set(c->a, meta, "deletionGracePeriodSeconds", json_i64(c->a, grace));
        if (!was && c->type->has_generation && json_at(meta, "generation"))
                json_set(c->a, meta, "generation", json_i64(c->a, json_int(meta, "generation", 0) + 1));
        return true;
}

static bool waits_for_finalizers(const struct json *object)
{
        return json_len(json_at(json_at(object, "metadata"), "finalizers")) > 0 ||
               json_len(json_path(object, "spec.finalizers")) > 0;
}

/* A namespace says so when it is going. */
static void mark_namespace(struct call *c, struct json *object)
{
        if (!streq(c->type->store, "namespaces"))
                return;
        json_path_set(c->a, object, "status.phase", json_string(c->a, "Terminating"));
        json_remove(json_at(object, "metadata"), "deletionGracePeriodSeconds");
}

static void answer_deleted(struct call *c, struct json *last)
{
        c->code = 200;
        c->answer = c->type->returns_deleted ? last : status_success(c, last);
}

/* Pods are seen to be deleted before they are gone. */
static void remove_now(struct call *c, struct json *object)
{
        struct json *last;

        if (c->type->graceful) {
                mark_deleted(c, object, 0);
                if (!c->dry_run && call_replace(c, object) < 0)
                        return;
        }
        last = call_remove(c, object);
        if (last)
                answer_deleted(c, c->type->graceful ? object : last);
}

static bool is_protected(const struct call *c)
{
        static const char *const names[] = {"default", "kube-system", "kube-public"};

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (streq(c->type->store, "namespaces") && streq(c->name, names[i]))
                        return true;
        return false;
}

void do_delete(struct call *c)
{
        struct json *old = call_newest(c), *object;
        int64_t grace;
        bool marked;

        if (!old) {
                fail_not_found(c);
                return;
        }
        if (check_preconditions(c, old) < 0)
                return;
        if (is_protected(c)) {
                fail_forbidden(c, c->name, NULL, "this namespace may not be deleted");
                return;
        }
        object = json_copy(c->a, old);
        grace = grace_period(c, object);
        set_propagation(c, object);
        set_cleanup(c, object);
        if (!waits_for_finalizers(object) && (grace == 0 || (object_deleting(object) && c->grace == 0))) {
                remove_now(c, object);
                return;
        }
        marked = mark_deleted(c, object, grace);
        if (marked)
                mark_namespace(c, object);
        if ((marked || !json_equal(old, object)) && !c->dry_run) {
                if (call_replace(c, object) < 0)
                        return;
        }
        c->code = 200;
        c->answer = object;
}

/* ---- collections */

struct victims {
        struct call *c;
        struct selector *selector;
        VEC(struct object *) list;
};

static bool collect(void *arg, struct object *o)
{
        struct victims *v = arg;

        if (selector_matches(v->selector, v->c->type, o))
                *vec_push(&v->list) = object_ref(o);
        return true;
}

/* Items of built-in lists have no type of their own. */
static struct json *list_item(struct call *c, const struct object *o)
{
        struct json *item = object_parse(o, c->a);

        if (!c->type->crd) {
                json_remove(item, "kind");
                json_remove(item, "apiVersion");
        }
        return item;
}

/* The first refusal ends it, as it does there. */
static int delete_one(struct call *c, const struct object *o)
{
        struct call one = *c;

        one.verb = DO_DELETE;
        one.name = arena_strdup(c->a, o->name);
        one.ns = arena_strdup(c->a, o->ns);
        do_delete(&one);
        if (one.code < 300 || one.code == 404)
                return 0;
        c->code = one.code;
        c->answer = one.answer;
        return -1;
}

void do_delete_collection(struct call *c, struct selector *selector)
{
        struct victims v = {.c = c, .selector = selector};
        struct store_range range = {
                .type = c->type->store, .ns = c->type->kube.namespaced ? c->ns : NULL, .newest = true};
        struct json *items = json_array(c->a);
        int r = 0;

        if (store_list(c->api->store, &range, collect, &v, NULL) < 0)
                abort(); /* "now" never expires */
        vec_foreach (o, &v.list) {
                if (r == 0)
                        r = delete_one(c, *o);
                json_append(items, list_item(c, *o));
                object_unref(*o);
        }
        vec_done(&v.list);
        if (r < 0)
                return;
        c->code = 200;
        c->answer = json_build(
                c->a,
                "{'kind': %s, 'apiVersion': %s, 'metadata': {'continue': %p, 'resourceVersion': "
                "'%llu'}, 'items': %p}",
                c->type->list_kind, kube_api_version(&c->type->kube, c->a),
                c->type->crd ? json_string(c->a, "") : NULL, (unsigned long long)store_rev(c->api->store),
                items);
}
