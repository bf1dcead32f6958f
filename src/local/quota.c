/*
 * ResourceQuotas: what a namespace may hold. status.used is what is known to be used; it grows when something is admitted
 * and is counted again when something goes, or when the quota changes.
 */
#include "kube/quantity.h"
#include "local/api_internal.h"

#define CONTROLLER "kube-controller-manager"

static const quantity_nano ONE = 1000000000;

/* ---- what one object uses */

static struct quantity sum_of(const struct json *containers, const char *what, const char *name, bool most)
{
        struct quantity sum = {0}, q;

        json_foreach (c, containers) {
                if (!quantity_of(json_at(json_at(json_at(c, "resources"), what), name), &q))
                        continue;
                if (!most)
                        sum = quantity_add(sum, q);
                else if (quantity_cmp(&q, &sum) > 0)
                        sum = q;
        }
        return sum;
}

/* Init containers run one after the other, and before all others. */
static struct quantity pod_amount(const struct json *pod, const char *what, const char *name)
{
        const struct json *spec = json_at(pod, "spec");
        struct quantity all = sum_of(json_at(spec, "containers"), what, name, false);
        struct quantity init = sum_of(json_at(spec, "initContainers"), what, name, true);

        return quantity_cmp(&init, &all) > 0 ? init : all;
}

static bool pod_ended(const struct json *pod)
{
        const char *phase = json_str_or(json_at(pod, "status"), "phase", "");

        return streq(phase, "Succeeded") || streq(phase, "Failed");
}

static struct quantity count(int64_t n)
{
        return (struct quantity){.nano = n * ONE};
}

/* "cpu" and "requests.cpu" are requests, "limits.cpu" is a limit. NULL: no such thing. */
static const char *compute_name(const char *key, const char **what)
{
        static const char *const plain[] = {"cpu", "memory", "ephemeral-storage"};

        *what = "requests";
        for (size_t i = 0; i < ARRAY_LEN(plain); i++)
                if (streq(key, plain[i]))
                        return key;
        if (strncmp(key, "requests.", 9) == 0 && !streq(key, "requests.storage"))
                return key + 9;
        *what = "limits";
        return strncmp(key, "limits.", 7) == 0 ? key + 7 : NULL;
}

static bool service_amount(const char *key, const struct json *service, struct quantity *ret)
{
        const struct json *spec = json_at(service, "spec");
        const char *type = json_str_or(spec, "type", "");
        bool balancer = streq(type, "LoadBalancer");

        if (streq(key, "services.nodeports"))
                *ret = count(balancer || streq(type, "NodePort") ? (int64_t)json_len(json_at(spec, "ports"))
                                                                 : 0);
        else if (streq(key, "services.loadbalancers"))
                *ret = count(balancer);
        else
                return false;
        return true;
}

/* How much of KEY one object of a type uses; false: nothing, such objects are not counted by it. */
static bool usage_of(const char *key, const char *type, const struct json *object, struct quantity *ret)
{
        const char *what, *name;

        if (strncmp(key, "count/", 6) == 0) {
                *ret = count(1);
                return streq(key + 6, type);
        }
        if (streq(type, "services") && service_amount(key, object, ret))
                return true;
        if (streq(type, "persistentvolumeclaims") && streq(key, "requests.storage"))
                return quantity_of(json_path(object, "spec.resources.requests.storage"), ret);
        if (!streq(type, "pods")) {
                *ret = count(1);
                return streq(key, type);
        }
        if (pod_ended(object))
                return false;
        *ret = count(1);
        if (streq(key, "pods"))
                return true;
        name = compute_name(key, &what);
        if (name)
                *ret = pod_amount(object, what, name);
        return name;
}

/* The type whose objects KEY counts. */
static const char *type_of(const char *key)
{
        static const char *const types[] = {
                "pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas"};
        const char *what;

        if (strncmp(key, "count/", 6) == 0)
                return key + 6;
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (streq(key, types[i]))
                        return types[i];
        if (strncmp(key, "services.", 9) == 0)
                return "services";
        if (streq(key, "requests.storage"))
                return "persistentvolumeclaims";
        return compute_name(key, &what) ? "pods" : NULL;
}

/* ---- what all of a namespace use */

struct tally {
        const char *key, *type;
        struct quantity sum;
};

static bool add_object(void *arg, struct object *o)
{
        struct tally *t = arg;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct quantity q;
        bool by_number = strncmp(t->key, "count/", 6) == 0;

        /* What is only counted need not be read. */
        if (by_number || (streq(t->key, t->type) && !streq(t->type, "pods")))
                t->sum = quantity_add(t->sum, count(1));
        else if (usage_of(t->key, t->type, object_parse(o, &a), &q))
                t->sum = quantity_add(t->sum, q);
        return true;
}

static struct json *count_all(struct api *api, const char *ns, const struct json *hard, struct arena *a)
{
        struct json *used = json_object(a);

        json_foreach (h, hard) {
                struct tally t = {.key = h->key, .type = type_of(h->key)};

                if (t.type) {
                        struct store_range range = {
                                .type = store_type(api->store, t.type), .ns = ns, .newest = true};

                        if (store_list(api->store, &range, add_object, &t, NULL) < 0)
                                abort(); /* "now" never expires */
                }
                json_set(a, used, h->key, json_string(a, quantity_print(&t.sum, a)));
        }
        return used;
}

static void write_used(struct api *api, const struct json *quota, struct json *used, const char *manager,
                       struct arena *a)
{
        struct call c = {.api = api,
                         .a = a,
                         .type = api_find_plural(api, "", "v1", "resourcequotas"),
                         .verb = DO_UPDATE,
                         .ns = meta_str(quota, "namespace"),
                         .name = meta_str(quota, "name"),
                         .sub = "status",
                         .manager = manager,
                         .grace = -1,
                         .body = json_copy(a, quota)};
        const struct json *hard = json_path(quota, "spec.hard");
        struct json *status = json_build(a, "{'hard': %p, 'used': %p}", hard ? json_copy(a, hard) : NULL,
                                         used);

        if (!json_equal(json_at(quota, "status"), status)) {
                json_set(a, c.body, "status", status);
                api_do(&c);
        }
}

struct quotas {
        struct arena *a;
        VEC(struct json *) list;
};

static bool add_quota(void *arg, struct object *o)
{
        struct quotas *q = arg;

        *vec_push(&q->list) = object_parse(o, q->a);
        return true;
}

static void find_quotas(struct api *api, const char *ns, struct quotas *q)
{
        struct store_range range = {
                .type = store_type(api->store, "resourcequotas"), .ns = ns, .newest = true};

        if (store_list(api->store, &range, add_quota, q, NULL) < 0)
                abort(); /* "now" never expires */
}

/* ---- admission */

static void add_amount(struct buf *b, const char *key, const struct quantity *q, struct arena *a)
{
        buf_printf(b, "%s%s=%s", b->n ? "," : "", key, quantity_print(q, a));
}

static int by_key(const void *x, const void *y)
{
        return strcmp((*(const struct json *const *)x)->key, (*(const struct json *const *)y)->key);
}

/* The limits of a quota in the order in which they are told. */
static const struct json **sorted(const struct json *hard, struct arena *a)
{
        const struct json **list = arena_new_array(a, const struct json *, json_len(hard) + 1);
        size_t n = 0;

        json_foreach (h, hard)
                list[n++] = h;
        if (n)
                qsort(list, n, sizeof(*list), by_key);
        return list;
}

/* A pod whose CPU or memory counts must say how much that is. */
static int check_said(struct call *c, const struct json *quota, const struct json **hard,
                      const struct json *pod)
{
        static const char *const lists[] = {"containers", "initContainers"};
        _cleanup_(buf_done) struct buf missing = BUF_INIT(4096);
        const char *what, *name;

        for (; *hard; hard++) {
                bool said = true;

                name = compute_name((*hard)->key, &what);
                if (!streq(name, "cpu") && !streq(name, "memory"))
                        continue;
                for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                        json_foreach (ctr, json_at(json_at(pod, "spec"), lists[i]))
                                said &= json_at(json_at(json_at(ctr, "resources"), what), name) != NULL;
                if (!said)
                        buf_printf(&missing, "%s%s", missing.n ? "," : "", (*hard)->key);
        }
        if (missing.n == 0)
                return 0;
        return fail_forbidden(c, meta_str(pod, "name"), NULL, "failed quota: %s: must specify %s",
                              meta_str(quota, "name"), buf_cstr(&missing));
}

/* What OBJECT uses more than OLD. */
static struct quantity more_of(struct call *c, const char *key, const struct json *old,
                               const struct json *object)
{
        struct quantity q = {0}, was = {0};

        if (!usage_of(key, c->type->store, object, &q))
                return (struct quantity){0};
        if (old && usage_of(key, c->type->store, old, &was))
                q = quantity_cmp(&q, &was) > 0 ? quantity_sub(q, was) : (struct quantity){0};
        return q;
}

static int check_quota(struct call *c, const struct json *quota, const struct json *old,
                       const struct json *object)
{
        _cleanup_(buf_done) struct buf asked = BUF_INIT(4096), have = BUF_INIT(4096), may = BUF_INIT(4096);
        const struct json **hard = sorted(json_path(quota, "spec.hard"), c->a),
                          *used = json_path(quota, "status.used");
        struct json *new_used = json_object(c->a);
        bool grows = false;

        if (streq(c->type->store, "pods") && check_said(c, quota, hard, object) < 0)
                return -1;
        if (!used || json_len(used) != json_len(json_path(quota, "spec.hard")))
                used = count_all(c->api, c->ns, json_path(quota, "spec.hard"), c->a);
        for (; *hard; hard++) {
                struct quantity more = more_of(c, (*hard)->key, old, object), now = {0}, limit = {0}, sum;

                (void)quantity_of(json_at(used, (*hard)->key), &now);
                (void)quantity_of(*hard, &limit);
                sum = quantity_add(now, more);
                if (more.nano > 0 && quantity_cmp(&sum, &limit) > 0) {
                        add_amount(&asked, (*hard)->key, &more, c->a);
                        add_amount(&have, (*hard)->key, &now, c->a);
                        add_amount(&may, (*hard)->key, &limit, c->a);
                }
                grows |= more.nano > 0;
                json_set(c->a, new_used, (*hard)->key, json_string(c->a, quantity_print(&sum, c->a)));
        }
        if (asked.n)
                return fail_forbidden(c, meta_str(object, "name"), NULL,
                                      "exceeded quota: %s, requested: %s, used: %s, limited: %s",
                                      meta_str(quota, "name"), buf_cstr(&asked), buf_cstr(&have),
                                      buf_cstr(&may));
        if (grows && !c->dry_run)
                write_used(c->api, quota, new_used, "kube-apiserver", c->a);
        return 0;
}

/* Updates count only where an object can grow. */
static bool counts(const struct call *c, const struct json *old)
{
        if (*c->sub || !c->type->kube.namespaced)
                return false;
        return !old || streq(c->type->store, "services") || streq(c->type->store, "persistentvolumeclaims");
}

int quota_admit(struct call *c, const struct json *old, const struct json *object)
{
        struct quotas q = {.a = c->a};
        int rc = 0;

        if (!old && streq(c->type->store, "pods") && admit_pod(c, object) < 0)
                return -1;
        if (!counts(c, old))
                return 0;
        find_quotas(c->api, c->ns, &q);
        vec_foreach (quota, &q.list)
                if (rc == 0)
                        rc = check_quota(c, *quota, old, object);
        vec_done(&q.list);
        return rc;
}

/* ---- changes */

/* Whether something may use less than before. */
static bool may_free(const struct change *ch, struct arena *a)
{
        if (ch->is_delete)
                return true;
        if (!ch->before)
                return false;
        if (streq(ch->after->type, "services") || streq(ch->after->type, "persistentvolumeclaims"))
                return true;
        return streq(ch->after->type, "pods") && pod_ended(object_parse(ch->after, a)) &&
               !pod_ended(object_parse(ch->before, a));
}

static void count_again(struct api *api, const struct json *quota, struct arena *a)
{
        write_used(api, quota, count_all(api, meta_str(quota, "namespace"), json_path(quota, "spec.hard"), a),
                   CONTROLLER, a);
}

void quota_changed(struct api *api, const struct change *ch)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct quotas q = {.a = &a};
        bool is_quota = streq(ch->after->type, "resourcequotas");

        if (!*ch->after->ns || (!is_quota && store_count(api->store, store_type(api->store, "resourcequotas"),
                                                         ch->after->ns) == 0))
                return;
        if (is_quota && !ch->is_delete) {
                struct json *quota = object_parse(ch->after, &a);

                if (!json_equal(json_path(quota, "spec.hard"), json_path(quota, "status.hard")))
                        count_again(api, quota, &a);
                return;
        }
        if (!may_free(ch, &a))
                return;
        find_quotas(api, ch->after->ns, &q);
        vec_foreach (quota, &q.list)
                count_again(api, *quota, &a);
        vec_done(&q.list);
}
