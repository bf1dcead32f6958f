#include "local/manage_internal.h"

enum { BATCH = 256 }; /* items looked at in one turn, so that requests get their turn too */

struct item *item_get(struct manager *m, const char *uid)
{
        struct item *it = map_get(&m->items, str_of(uid));

        if (it)
                return it;
        it = xcalloc(1, sizeof(*it) + strlen(uid) + 1);
        memcpy(it->uid, uid, strlen(uid) + 1);
        it->m = m;
        list_init(&it->node);
        map_put(&m->items, str_of(it->uid), it);
        return it;
}

const struct item_kin *item_kin(const struct item *it)
{
        static const struct item_kin none;

        return it->kin ? it->kin : &none;
}

static struct item_kin *kin_of(struct item *it)
{
        if (!it->kin)
                it->kin = xcalloc(1, sizeof(*it->kin));
        return it->kin;
}

static void kin_drop_if_empty(struct item *it)
{
        if (!it->kin || it->kin->dependents.n > 0 || it->kin->owners.n > 0)
                return;
        vec_done(&it->kin->dependents);
        vec_done(&it->kin->owners);
        free(it->kin);
        it->kin = NULL;
}

/* VERSION NULL: it is not there any more. */
static void set_version(struct item *it, struct object *version)
{
        object_ref(version);
        object_unref(it->version);
        it->version = version;
}

static void forget_job(struct item *it)
{
        if (it->job)
                timer_cancel(&it->job->again);
        free(it->job);
        it->job = NULL;
}

static void item_free(struct item *it)
{
        list_remove(&it->node);
        forget_job(it);
        set_version(it, NULL);
        if (it->kin) {
                it->kin->dependents.n = it->kin->owners.n = 0;
                kin_drop_if_empty(it);
        }
        free(it);
}

static void on_work(struct defer *d);

void item_touch(struct item *it)
{
        if (list_empty(&it->node))
                list_append(&it->m->dirty, &it->node);
        if (!it->m->work.pending)
                defer_run(it->m->loop, &it->m->work, on_work);
}

void item_wait(struct item *it)
{
        list_remove(&it->node);
        list_append(&it->m->later, &it->node);
        if (!timer_pending(&it->m->patience))
                timer_after(&it->m->patience, USEC_PER_SEC);
}

static void on_patience(struct timer *t)
{
        struct manager *m = CONTAINER_OF(t, struct manager, patience);
        struct list *node;

        while ((node = list_pop(&m->later)))
                item_touch(CONTAINER_OF(node, struct item, node));
}

struct json *item_object(const struct item *it, struct arena *a)
{
        const struct object *known = it->version;
        const struct object *o = known ? store_newest(it->m->store, known->type, known->ns, known->name)
                                       : NULL;
        struct json *object = o ? json_parse(a, o->text, NULL, NULL) : NULL;

        return object && streq(meta_str(object, "uid"), it->uid) ? object : NULL;
}

struct call item_call(const struct item *it, const char *manager, struct arena *a)
{
        const char *type = it->version->type, *dot = strchr(type, '.');
        const char *plural = dot ? arena_strndup(a, type, (size_t)(dot - type)) : type;

        return (struct call){.api = it->m->api,
                             .a = a,
                             .type = api_find_plural(it->m->api, dot ? dot + 1 : "", NULL, plural),
                             .ns = it->version->ns,
                             .name = it->version->name,
                             .sub = "",
                             .manager = manager,
                             .grace = -1};
}

/* ---- what there is */

static void unlink_item(struct item *from, struct item *who)
{
        struct item_kin *kin = kin_of(from);

        for (size_t i = 0; i < kin->dependents.n; i++)
                if (kin->dependents.v[i] == who) {
                        kin->dependents.v[i] = kin->dependents.v[--kin->dependents.n];
                        break;
                }
        kin_drop_if_empty(from);
}

/* Nobody names it and it is not there. */
static void drop_if_unused(struct item *it)
{
        if (it->version || item_kin(it)->dependents.n > 0)
                return;
        map_remove(&it->m->items, str_of(it->uid));
        item_free(it);
}

static void forget_owners(struct item *it)
{
        struct item_kin *kin = it->kin;

        if (!kin)
                return;
        vec_foreach (o, &kin->owners) {
                unlink_item(*o, it);
                drop_if_unused(*o);
        }
        kin->owners.n = 0;
}

static void set_owners(struct item *it, const struct json *object)
{
        struct item *owner;

        forget_owners(it);
        json_foreach (ref, json_at(json_at(object, "metadata"), "ownerReferences")) {
                if (!json_str(ref, "uid"))
                        continue;
                owner = item_get(it->m, json_str(ref, "uid"));
                *vec_push(&kin_of(owner)->dependents) = it;
                *vec_push(&kin_of(it)->owners) = owner;
                if (!it->kin->owned_since)
                        it->kin->owned_since = loop_now(it->m->loop);
        }
        kin_drop_if_empty(it);
}

static void item_here(struct manager *m, struct object *o, const struct json *object)
{
        struct item *it = item_get(m, meta_str(object, "uid"));

        set_version(it, o);
        set_owners(it, object);
        item_touch(it);
        vec_foreach (owner, &item_kin(it)->owners)
                if ((*owner)->version)
                        item_touch(*owner); /* a Job hears of its pods */
}

static void item_gone(struct manager *m, const struct json *object)
{
        struct item *it = map_get(&m->items, str_of(meta_str(object, "uid")));

        if (!it)
                return;
        vec_foreach (owner, &item_kin(it)->owners)
                if ((*owner)->version)
                        item_touch(*owner);
        forget_owners(it);
        list_remove(&it->node);
        forget_job(it);
        set_version(it, NULL);
        kin_drop_if_empty(it);
        if (it->kin)
                it->kin->was_here = true;
        collect_gone(it);
        drop_if_unused(it);
}

static void on_change(struct store_listener *l, const struct change *ch)
{
        struct manager *m = CONTAINER_OF(l, struct manager, listener);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *object = json_parse(&a, ch->after->text, NULL, NULL);

        if (ch->is_delete) {
                item_gone(m, object);
                space_lost(m, ch->after->ns);
        } else {
                item_here(m, ch->after, object);
        }
}

/* ---- looking */

static void look_at(struct item *it)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *object = item_object(it, &a);

        if (!object)
                return;
        collect(it, object, &a);
        if (it->version->type == it->m->namespaces)
                space_changed(it->m, object, &a);
        else if (it->version->type == it->m->jobs)
                job_changed(it, object, &a);
}

static void on_work(struct defer *d)
{
        struct manager *m = CONTAINER_OF(d, struct manager, work);
        struct list *node;

        for (int i = 0; i < BATCH && (node = list_pop(&m->dirty)); i++)
                look_at(CONTAINER_OF(node, struct item, node));
        if (!list_empty(&m->dirty))
                timer_after(&m->more, 0);
}

static void on_more(struct timer *t)
{
        on_work(&CONTAINER_OF(t, struct manager, more)->work);
}

/* ---- beginning and end */

static bool load_object(void *arg, struct object *o)
{
        struct manager *m = arg;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        item_here(m, o, json_parse(&a, o->text, NULL, NULL));
        return true;
}

struct manager *manager_new(struct loop *loop, struct api *api, struct store *store, const struct log *log)
{
        struct manager *m = xcalloc(1, sizeof(*m));

        m->loop = loop;
        m->api = api;
        m->store = store;
        m->log = log;
        list_init(&m->dirty);
        list_init(&m->later);
        timer_init(&m->more, loop, on_more);
        timer_init(&m->patience, loop, on_patience);
        m->namespaces = store_type(store, "namespaces");
        m->jobs = store_type(store, "jobs.batch");
        m->pods = store_type(store, "pods");
        m->accounts = store_type(store, "serviceaccounts");
        m->listener.fn = on_change;
        for (size_t i = 0; i < api_type_count(api); i++) {
                struct store_range range = {.type = api_type_at(api, i)->store};

                if (api_type_at(api, i)->verbs & VERB_LIST &&
                    store_list(store, &range, load_object, m, NULL) < 0)
                        abort(); /* "now" never expires */
        }
        store_listen(store, &m->listener);
        return m;
}

void manager_free(struct manager *m)
{
        struct item *it;

        store_unlisten(&m->listener);
        defer_cancel(&m->work);
        timer_cancel(&m->more);
        timer_cancel(&m->patience);
        map_foreach (i, &m->items, it)
                item_free(it);
        map_done(&m->items);
        free(m);
}
