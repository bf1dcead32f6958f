/*
 * fake_api.h - the few functions of kube/client.h that lease and events call, over objects in memory.
 *
 * It stands in for client.c (a program that includes this must not pull in anything else of it) and keeps the API's
 * rules: a POST of what exists is refused, a PUT or PATCH needs the current resourceVersion, and one without any fails
 * the test. Requests take the time that the plan says, on the manual clock; a canceled or lost one may still commit.
 */
#pragma once

#include "kube/kube.h"
#include "unit/unit.h"

enum fate {
        FATE_OK,
        FATE_LOST_BEFORE, /* never arrived: E_LOST */
        FATE_LOST_AFTER,  /* carried out, the answer was lost: E_LOST */
        FATE_HANG,        /* E_TIMEOUT after the request's timeout; not carried out */
        FATE_ERROR,       /* refused with `code` */
};

struct step {
        enum fate fate;
        enum err_code code;
        usec_t there, back; /* how long request and answer travel; 0: 1 ms */
};

/* A loop on CLOCK, which stands still at an afternoon in 2026; the same random numbers every time. */
static inline struct loop *fake_loop(struct clock *clock)
{
        struct loop *loop;

        *clock = (struct clock){.manual = true, .boot = 1000 * USEC_PER_SEC, .wall = 1794779028123456};
        loop = loop_new(clock, NULL, NULL);
        assert_non_null(loop);
        rng_seed(loop_rng(loop), 7);
        return loop;
}

struct object {
        char *path, *body;
        uint64_t version;
};

struct kube {
        struct loop *loop;
        struct map objects;
        uint64_t version;
        struct step plan[64]; /* for the next requests, then `otherwise` */
        size_t n_plan, at_plan;
        struct step otherwise;
        struct list calls;
        struct buf log; /* one line a request that left: "PUT /path" */
        size_t requests, open;
};

struct kube_call {
        struct list node;
        struct kube *kube;
        struct kube_request req;
        struct timer timer;
        struct step step;
        struct arena arena;
        struct err err;
        char *answer;
        bool canceled, arrived;
        kube_done done;
        void *arg;
};

/* ---- the server */

static struct object *object_get(struct kube *k, const char *path)
{
        return map_get(&k->objects, str_of(path));
}

static void object_delete(struct kube *k, const char *path)
{
        struct object *o = map_remove(&k->objects, str_of(path));

        if (o) {
                free(o->path);
                free(o->body);
                free(o);
        }
}

static void object_put(struct kube *k, const char *path, struct json *value, struct arena *a)
{
        struct object *o = object_get(k, path);
        struct json *meta = json_at(value, "metadata");

        if (!meta)
                meta = json_set(a, value, "metadata", json_object(a));
        if (!o) {
                o = xcalloc(1, sizeof(*o));
                o->path = xstrdup(path);
                map_put(&k->objects, str_of(o->path), o);
        }
        o->version = ++k->version;
        json_set(a, meta, "resourceVersion",
                 json_string(a, arena_printf(a, "%llu", (unsigned long long)o->version)));
        free(o->body);
        o->body = xstrdup(json_print(a, value));
}

/* The object as JSON in the arena; the test ends when it is not there. */
_unused_ static struct json *object_json(struct kube *k, const char *path, struct arena *a)
{
        struct object *o = object_get(k, path);
        struct json *j;

        assert_non_null(o);
        j = json_parse(a, str_of(o->body), NULL, NULL);
        assert_non_null(j);
        return j;
}

/* Somebody else's write: the members of PATCH (a merge patch, with ' for ") are put over what is there. */
_unused_ static void object_patch(struct kube *k, const char *path, const char *patch)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct object *o = object_get(k, path);
        struct json *value = o ? json_parse(&a, str_of(o->body), NULL, NULL) : json_object(&a);
        char *text = arena_strdup(&a, patch);

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        value = json_merge_patch(&a, value, json_parse(&a, str_of(text), NULL, NULL));
        object_put(k, path, value, &a);
}

static int check_version(struct object *o, const struct json *value, struct err *err)
{
        const char *version = meta_str(value, "resourceVersion");
        uint64_t number;

        assert_non_null(version); /* no write is unconditional */
        assert_true(str_to_u64(str_of(version), &number));
        return number == o->version ? 0 : err_set(err, E_CONFLICT, "the object has been modified");
}

static const char *request_path(struct kube_call *c, bool with_name)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        const char *name = c->req.name;

        if (with_name && !name)
                name = meta_str(json_parse(&c->arena, c->req.body, NULL, NULL), "name");
        kube_path(&b, c->req.type, c->req.ns, name, NULL);
        return arena_strdup(&c->arena, buf_cstr(&b));
}

static void commit(struct kube_call *c)
{
        struct kube *k = c->kube;
        const char *path = request_path(c, true);
        struct object *o = object_get(k, path);
        struct json *value = c->req.body.p ? json_parse(&c->arena, c->req.body, NULL, NULL) : NULL;

        if (c->req.verb == KUBE_CREATE && o) {
                err_set(&c->err, E_EXISTS, "already exists");
                return;
        }
        if (c->req.verb != KUBE_CREATE && !o) {
                err_set(&c->err, E_NOT_FOUND, "not found");
                return;
        }
        if ((c->req.verb == KUBE_UPDATE || c->req.verb == KUBE_PATCH_MERGE) &&
            check_version(o, value, &c->err) < 0)
                return;
        if (c->req.verb == KUBE_PATCH_MERGE)
                value = json_merge_patch(&c->arena, json_parse(&c->arena, str_of(o->body), NULL, NULL),
                                         value);
        if (c->req.verb != KUBE_GET)
                object_put(k, path, value, &c->arena);
        c->answer = xstrdup(object_get(k, path)->body);
}

/* ---- what client.h promises */

static void call_destroy(struct kube_call *c)
{
        timer_cancel(&c->timer);
        list_remove(&c->node);
        arena_done(&c->arena);
        free(c->answer);
        free(c);
}

static void call_end(struct kube_call *c)
{
        struct kube_answer answer = {.status = 200, .body = str_of(c->answer)};

        if (!c->canceled) {
                c->kube->open--;
                c->done(c->arg, &answer, c->err.code ? &c->err : NULL);
        }
        call_destroy(c);
}

static void call_arrive(struct kube_call *c)
{
        c->arrived = true;
        switch (c->step.fate) {
        case FATE_OK:
                commit(c);
                break;
        case FATE_LOST_AFTER:
                commit(c);
                err_clear(&c->err);
                err_set(&c->err, E_LOST, "connection reset");
                break;
        case FATE_LOST_BEFORE:
                err_set(&c->err, E_LOST, "connection reset");
                break;
        case FATE_HANG:
                err_set(&c->err, E_TIMEOUT, "timeout");
                break;
        case FATE_ERROR:
                err_set(&c->err, c->step.code, "refused");
                break;
        }
        timer_after(&c->timer, c->step.back);
}

static void on_call_timer(struct timer *t)
{
        struct kube_call *c = CONTAINER_OF(t, struct kube_call, timer);

        if (c->arrived || c->err.code)
                call_end(c);
        else
                call_arrive(c);
}

struct kube_call *kube_send(struct kube *k, const struct kube_request *request, kube_done done, void *arg)
{
        static const char *const methods[] = {[KUBE_GET] = "GET",
                                              [KUBE_CREATE] = "POST",
                                              [KUBE_UPDATE] = "PUT",
                                              [KUBE_PATCH_MERGE] = "PATCH"};
        struct kube_call *c = xcalloc(1, sizeof(*c));

        c->kube = k;
        c->req = *request;
        if (request->body.p)
                c->req.body.p = arena_strndup(&c->arena, request->body.p, request->body.n);
        c->req.ns = arena_strdup(&c->arena, request->ns);
        c->req.name = arena_strdup(&c->arena, request->name);
        c->done = done;
        c->arg = arg;
        c->step = k->at_plan < k->n_plan ? k->plan[k->at_plan++] : k->otherwise;
        c->step.there = c->step.there ? c->step.there : USEC_PER_MS;
        c->step.back = c->step.back ? c->step.back : USEC_PER_MS;
        if (c->step.fate == FATE_HANG)
                c->step.there = request->timeout;
        list_init(&c->node);
        list_append(&k->calls, &c->node);
        timer_init(&c->timer, k->loop, on_call_timer);
        k->open++;
        if (request->may_send && !request->may_send(request->may_send_arg)) {
                err_set(&c->err, E_CANCELED, "may not be sent");
                timer_after(&c->timer, 0);
                return c;
        }
        k->requests++;
        buf_printf(&k->log, "%s %s\n", methods[request->verb], request_path(c, false));
        timer_after(&c->timer, c->step.there);
        return c;
}

void kube_cancel(struct kube_call *call)
{
        assert_false(call->canceled);
        call->canceled = true;
        call->kube->open--;
}

struct loop *kube_loop(struct kube *k)
{
        return k->loop;
}

/* ---- the rig */

static struct kube *fake_new(struct loop *loop)
{
        struct kube *k = xcalloc(1, sizeof(*k));

        k->loop = loop;
        k->version = 100;
        k->log = (struct buf)BUF_INIT(4 << 20);
        list_init(&k->calls);
        return k;
}

static void fake_free(struct kube *k)
{
        struct object *o;
        size_t i;

        assert_int_equal(k->open, 0); /* who is freed has taken back its calls */
        list_foreach_safe (node, &k->calls)
                call_destroy(CONTAINER_OF(node, struct kube_call, node));
        while (i = 0, map_next(&k->objects, &i, (void **)&o))
                object_delete(k, o->path);
        map_done(&k->objects);
        buf_done(&k->log);
        free(k);
}

_unused_ static void fake_plan(struct kube *k, struct step step)
{
        assert_true(k->n_plan < ARRAY_LEN(k->plan));
        k->plan[k->n_plan++] = step;
}

/* The requests since the last time, one a line. Borrowed until the next one. */
_unused_ static const char *fake_log(struct kube *k, struct buf *keep)
{
        buf_clear(keep);
        buf_addstr(keep, buf_str(&k->log));
        buf_clear(&k->log);
        return buf_cstr(keep);
}

static void stop_loop(struct timer *t)
{
        loop_stop(t->loop, 0);
}

/* Lets TIME pass on the manual clock. */
static void pass(struct loop *loop, usec_t time)
{
        struct timer end;

        timer_init(&end, loop, stop_loop);
        timer_after(&end, time);
        loop_run(loop);
}
