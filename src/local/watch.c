#include "local/api_internal.h"

enum { WATCH_DEFAULT_SECONDS = 1800 };

struct topic {
        struct list watches;
};

struct watch {
        struct list node; /* of the topic */
        struct request *r;
        struct selector *selector;
        struct timer end, bookmark;
        uint64_t sent; /* revision up to which the client knows everything */
        bool bookmarks, headers_sent;
};

static struct topic *topic_of(struct api *api, const char *type)
{
        struct topic *t = map_get(&api->topics, str_of(type));

        if (!t) {
                t = xcalloc(1, sizeof(*t));
                list_init(&t->watches);
                map_put(&api->topics, str_of(type), t);
        }
        return t;
}

static void watch_free(struct watch *w)
{
        list_remove(&w->node);
        timer_cancel(&w->end);
        timer_cancel(&w->bookmark);
        w->r->ex = NULL;
        request_free(w->r);
        free(w);
}

static void watch_closed(void *arg)
{
        watch_free(arg);
}

/* ---- events */

static void send_event(struct watch *w, const char *type, struct str object)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(API_OBJECT_MAX * 4);

        buf_printf(&b, "{\"type\":\"%s\",\"object\":", type);
        buf_addstr(&b, object);
        buf_adds(&b, "}\n");
        http_stream_write(w->r->ex, buf_str(&b));
}

static void send_json(struct watch *w, const char *type, const struct json *object)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(API_OBJECT_MAX * 4);

        json_write(object, JSON_COMPACT, &b);
        send_event(w, type, buf_str(&b));
}

/* The event as this client sees it; the stored text itself wherever it can be. */
static void send_object(struct watch *w, const char *type, const struct object *o)
{
        struct call c = w->r->c;
        struct json *object;
        struct arena a;

        if (w->r->view.as == AS_OBJECT && !c.type->from_stored) {
                send_event(w, type, o->text);
                return;
        }
        a = arena_pool_take(&c.api->arenas);
        c.a = &a;
        object = object_parse(o, &a);
        if (c.type->from_stored)
                c.type->from_stored(c.type, object, &a);
        send_json(w, type, view_object(&c, &w->r->view, object, !w->headers_sent));
        w->headers_sent = true;
        arena_pool_give(&c.api->arenas, &a);
}

/* An object that left the selection: its last state in it, with the revision of the change. */
static void send_left(struct watch *w, const struct change *ch)
{
        struct arena a = arena_pool_take(&w->r->api->arenas);
        struct call c = w->r->c;
        struct json *object = object_parse(ch->before, &a);

        c.a = &a;
        if (c.type->from_stored)
                c.type->from_stored(c.type, object, &a);
        json_set(&a, json_at(object, "metadata"), "resourceVersion",
                 json_string(&a, arena_printf(&a, "%llu", (unsigned long long)ch->rev)));
        send_json(w, "DELETED", view_object(&c, &w->r->view, object, !w->headers_sent));
        w->headers_sent = true;
        arena_pool_give(&c.api->arenas, &a);
}

static bool selected(const struct watch *w, const struct object *o)
{
        const struct call *c = &w->r->c;

        if (!o || (*c->ns && !streq(o->ns, c->ns)) || (c->name && !streq(o->name, c->name)))
                return false;
        return selector_matches(w->selector, c->type, o);
}

/* An object that a change brings into the selection was added for this client, one that it takes out deleted: then it
 * is shown as it last was in the selection, at the revision of the change. */
static void send_change(struct watch *w, const struct change *ch)
{
        bool was, is;

        if (ch->rev <= w->sent)
                return; /* it asked for what comes after a revision that is yet to come */
        was = selected(w, ch->before);
        is = !ch->is_delete && selected(w, ch->after);
        if (ch->is_delete && (was || (!ch->before && selected(w, ch->after))))
                send_object(w, "DELETED", ch->after);
        else if (is)
                send_object(w, was ? "MODIFIED" : "ADDED", ch->after);
        else if (was && !ch->is_delete)
                send_left(w, ch);
        w->sent = ch->rev;
}

/* ---- bookmarks and the end */

static void send_bookmark(struct watch *w, bool initial_end)
{
        struct arena a = ARENA_INIT;
        struct call *c = &w->r->c;
        struct json *annotations = initial_end ? json_build(&a, "{'k8s.io/initial-events-end': 'true'}")
                                               : NULL;
        struct json *object = json_build(
                &a,
                "{'kind': %s, 'apiVersion': %s, 'metadata': {'resourceVersion': '%llu', "
                "'creationTimestamp': null, 'annotations': %p}}",
                c->type->kube.kind, kube_api_version(&c->type->kube, &a),
                (unsigned long long)store_rev(c->api->store), annotations);

        if (!c->type->crd)
                normalize_builtin(c->type->shape, object, &a); /* an empty object of its type */
        send_json(w, "BOOKMARK", object);
        arena_done(&a);
}

static void on_bookmark(struct timer *t)
{
        struct watch *w = CONTAINER_OF(t, struct watch, bookmark);

        send_bookmark(w, false);
        timer_after(&w->bookmark, w->r->api->bookmark_every);
}

static void on_end(struct timer *t)
{
        struct watch *w = CONTAINER_OF(t, struct watch, end);

        if (w->bookmarks)
                send_bookmark(w, false);
        http_stream_end(w->r->ex);
        watch_free(w);
}

static void send_expired(struct watch *w, uint64_t rev)
{
        struct call *c = &w->r->c;

        fail(c, 410, "Expired", NULL, "too old resource version: %llu (%llu)", (unsigned long long)rev,
             (unsigned long long)store_oldest(c->api->store));
        send_json(w, "ERROR", c->answer);
        http_stream_end(w->r->ex);
        watch_free(w);
}

/* ---- beginning */

static bool send_existing(void *arg, struct object *o)
{
        struct watch *w = arg;

        if (selected(w, o))
                send_object(w, "ADDED", o);
        return true;
}

static void replay_change(void *arg, const struct change *ch)
{
        struct watch *w = arg;

        if (ch->after->type == w->r->c.type->store)
                send_change(w, ch);
}

static void send_all(struct watch *w)
{
        struct call *c = &w->r->c;
        struct store_range range = {.type = c->type->store, .ns = *c->ns ? c->ns : NULL};

        if (store_list(c->api->store, &range, send_existing, w, NULL) < 0)
                abort(); /* "now" never expires */
}

static struct watch *watch_start(struct request *r, const struct list_options *o)
{
        static const struct http_header head[] = {{STR("Content-Type"), STR("application/json")},
                                                  {STR("Cache-Control"), STR("no-cache, private")}};
        struct watch *w = xcalloc(1, sizeof(*w));
        usec_t seconds = o->timeout ? o->timeout
                                    : WATCH_DEFAULT_SECONDS +
                                              rng_below(loop_rng(r->api->loop), WATCH_DEFAULT_SECONDS);

        w->r = r;
        w->selector = o->selector;
        w->bookmarks = o->bookmarks;
        timer_init(&w->end, r->api->loop, on_end);
        timer_init(&w->bookmark, r->api->loop, on_bookmark);
        list_append(&topic_of(r->api, r->c.type->store)->watches, &w->node);
        http_stream_start(r->ex, 200, &(struct http_headers){head, ARRAY_LEN(head)}, watch_closed, w);
        timer_after(&w->end, seconds * USEC_PER_SEC);
        if (w->bookmarks)
                timer_after(&w->bookmark, r->api->bookmark_every);
        return w;
}

void do_watch(struct request *r)
{
        struct list_options o;
        struct watch *w;
        uint64_t rev;

        if (list_options_read(r, &o) < 0 || parse_rev(&r->c, o.resource_version, &rev) < 0) {
                request_answer(r);
                return;
        }
        if (o.initial_events && rev > store_rev(r->api->store)) {
                fail_too_new(&r->c, rev);
                request_answer(r);
                return;
        }
        if (!*r->c.ns && selector_namespace(o.selector) && r->c.type->kube.namespaced)
                r->c.ns = selector_namespace(o.selector);
        w = watch_start(r, &o);
        if (o.initial_events || (rev == 0 && !o.send_initial_events)) {
                send_all(w);
                if (o.initial_events && o.bookmarks)
                        send_bookmark(w, true);
        } else if (rev && (rev == 1 || store_replay(r->api->store, rev, replay_change, w, NULL) < 0)) {
                send_expired(w, rev);
                return;
        }
        w->sent = MAX(rev, store_rev(r->api->store));
}

void watches_change(struct api *api, const struct change *ch)
{
        struct topic *t = map_get(&api->topics, str_of(ch->after->type));

        if (!t)
                return;
        list_foreach_safe (node, &t->watches)
                send_change(CONTAINER_OF(node, struct watch, node), ch);
}

void watches_free(struct api *api)
{
        struct topic *t;

        map_foreach (i, &api->topics, t) {
                list_foreach_safe (node, &t->watches)
                        watch_free(CONTAINER_OF(node, struct watch, node));
                free(t);
        }
        map_done(&api->topics);
}
