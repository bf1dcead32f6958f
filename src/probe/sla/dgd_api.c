/*
 * Waiting and asking, for target `dgd`.
 *
 * Calls are repeated as long as another try may help. A cache may be behind, so that something is gone is believed only when
 * the server says so itself.
 */
#include "probe/sla/dgd_internal.h"

const struct kube_type DGD_TYPE = {
        "nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment", true, true};

#define BACKOFF_MAX (2 * USEC_PER_SEC)
#define LOOK_AGAIN  USEC_PER_SEC

/* ---- waiting */

struct waiting {
        struct io stop;
        struct timer timer;
        struct dgd_target *target;
        bool late;
};

static void on_stop(struct io *io, uint32_t events)
{
        (void)events;
        CONTAINER_OF(io, struct waiting, stop)->target->stopped = true;
        io_remove(io);
}

static void on_late(struct timer *timer)
{
        CONTAINER_OF(timer, struct waiting, timer)->late = true;
}

/* Turns the loop until *DONE (may be NULL) or WHEN, or, with MAY_STOP, until the profiler is told to stop. */
void dgd_wait(struct dgd_target *t, const bool *done, usec_t when, bool may_stop)
{
        struct waiting w = {.target = t};

        timer_init(&w.timer, t->c.loop, on_late);
        timer_at(&w.timer, when);
        if (may_stop && !t->stopped && t->c.stop_fd >= 0)
                io_add(t->c.loop, &w.stop, t->c.stop_fd, EPOLLIN, on_stop);
        while (!(done && *done) && !w.late && !(may_stop && t->stopped))
                if (!loop_turn(t->c.loop, true)) {
                        t->stopped = true;
                        break;
                }
        io_remove(&w.stop);
        timer_cancel(&w.timer);
}

usec_t dgd_now(const struct dgd_target *t)
{
        return clock_boot(loop_clock(t->c.loop));
}

void dgd_rest(struct dgd_target *t, usec_t *backoff, bool may_stop)
{
        usec_t pause = rng_jitter(loop_rng(t->c.loop), *backoff, 20);

        *backoff = MIN(*backoff * 2, BACKOFF_MAX);
        dgd_wait(t, NULL, usec_add(dgd_now(t), pause), may_stop);
}

int dgd_say_stopped(struct err *err)
{
        return err_set(err, E_CANCELED, "told to stop");
}

/* ---- watching */

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        (void)change, (void)before, (void)after, (void)initial;
        *((struct dgd_eye *)arg)->changed = true;
}

static void on_synced(void *arg, bool first)
{
        (void)first;
        *((struct dgd_eye *)arg)->changed = true;
}

void dgd_eye_open(struct dgd_eye *e, struct dgd_target *t, const struct kube_type *type, const char *labels,
                  const char *fields, bool *changed)
{
        e->changed = changed;
        e->cache = cache_new(&(struct cache_config){.type = type});
        cache_listen(e->cache, on_change, e);
        e->reflector = reflector_new(&(struct reflector_config){.kube = t->kube,
                                                                .cache = e->cache,
                                                                .ns = t->ns,
                                                                .label_selector = labels,
                                                                .field_selector = fields,
                                                                .no_watch_list = true,
                                                                .on_synced = on_synced,
                                                                .arg = e});
}

void dgd_eye_done(struct dgd_eye *e)
{
        reflector_free(e->reflector);
        cache_free(e->cache);
}

/* Watches one deployment. */
void dgd_eye_open_one(struct dgd_eye *e, struct dgd_target *t, const char *name, bool *changed)
{
        _cleanup_(free_ptr) char *fields = xasprintf("metadata.name=%s", name);

        dgd_eye_open(e, t, &DGD_TYPE, NULL, fields, changed);
}

/* ---- requests */

int dgd_ask(struct dgd_target *t, enum kube_verb verb, const char *name, struct str body, struct arena *a,
            struct json **ret, struct err *err)
{
        struct kube_request q = {.verb = verb,
                                 .type = &DGD_TYPE,
                                 .ns = t->ns,
                                 .name = verb == KUBE_CREATE || verb == KUBE_LIST ? NULL : name,
                                 .body = body,
                                 .field_manager = verb == KUBE_CREATE ? "sonde-sla" : NULL,
                                 .timeout = DGD_CALL_TIMEOUT};
        _cleanup_(free_ptr) char *labels = NULL;
        struct str answer;

        if (verb == KUBE_LIST) {
                labels = xasprintf(DGD_LABEL_REQUEST "=%s," SLA_LABEL_TEMPORARY "=true", t->owner_uid);
                q.label_selector = labels;
        }
        if (kube_do(t->kube, &q, a, &answer, err) < 0)
                return -1;
        t->granted = true;
        if (ret && !(*ret = json_parse(a, answer, &KUBE_OBJECT_LIMITS, err)))
                return err_wrap(err, "%s of a deployment", kube_verb_name(verb));
        return 0;
}

/* With the end of its run, a profiler's rights end too: then the operator does what is left to do. */
bool dgd_may_pass(const struct dgd_target *t, const struct err *err, usec_t elapsed)
{
        switch (err->code) {
        case E_CONNECT:
        case E_LOST:
        case E_TIMEOUT:
        case E_BUSY:
        case E_SERVER:
        case E_PROTOCOL:
        case E_INVALID: /* an answer that is no JSON */
                return true;
        case E_AUTH:
        case E_FORBIDDEN:
                return elapsed < DGD_RBAC_LAG && !(t->stopped && t->granted);
        default:
                return false;
        }
}

/* ---- taking away */

/* The server has no deployment NAME with UID any more. Below 0: it cannot be asked. */
int dgd_is_gone(struct dgd_target *t, const char *name, const char *uid, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *found;

        if (dgd_ask(t, KUBE_GET, name, STR_NULL, &a, &found, err) < 0)
                return err->code == E_NOT_FOUND ? 1 : -1;
        return !streq(meta_str(found, "uid"), uid);
}

static int wait_gone(struct dgd_target *t, const char *name, const char *uid, usec_t deadline,
                     struct err *err)
{
        _cleanup_(dgd_eye_done) struct dgd_eye eye = {0};
        usec_t started = dgd_now(t);
        bool changed;

        for (;;) {
                struct err e = ERR_INIT;
                int gone = dgd_is_gone(t, name, uid, &e);

                if (gone > 0)
                        return 0;
                if (gone < 0 && !dgd_may_pass(t, &e, dgd_now(t) - started)) {
                        *err = e;
                        return err_wrap(err, "deployment %s", name);
                }
                if (dgd_now(t) >= deadline)
                        return err_set(err, E_TIMEOUT,
                                       "deployment %s was deleted and is still there after %llu s; see its "
                                       "finalizers",
                                       name, (unsigned long long)((dgd_now(t) - started) / USEC_PER_SEC));
                if (!eye.cache)
                        dgd_eye_open_one(&eye, t, name, &changed);
                changed = false;
                dgd_wait(t, &changed, MIN(deadline, usec_add(dgd_now(t), LOOK_AGAIN)), false);
        }
}

/* Deletes the deployment NAME with UID, and no other, and waits until it is gone. Not cut short by a stop. */
int dgd_remove(struct dgd_target *t, const char *name, const char *uid, struct err *err)
{
        usec_t started = dgd_now(t), deadline = usec_add(started, DGD_REMOVE_TIMEOUT), backoff = DGD_BACKOFF;

        for (;;) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                const char *options = kube_delete_options(&a, uid, NULL, "Foreground");

                err_clear(err);
                if (dgd_ask(t, KUBE_DELETE, name, str_of(options), &a, NULL, err) == 0)
                        break;
                if (err->code == E_NOT_FOUND || err->code == E_CONFLICT) /* another one has its name */
                        return 0;
                if (!dgd_may_pass(t, err, dgd_now(t) - started) || dgd_now(t) >= deadline)
                        return err_wrap(err, "deleting deployment %s", name);
                dgd_rest(t, &backoff, false);
        }
        LOG_INFO(t->c.log, "Deleted a temporary deployment", F_STR("name", name));
        return wait_gone(t, name, uid, deadline, err);
}

bool dgd_is_ours(const struct dgd_target *t, const struct json *dgd)
{
        const struct json *labels = json_at(json_at(dgd, "metadata"), "labels");

        return streq(json_str(labels, DGD_LABEL_REQUEST), t->owner_uid) &&
               streq(json_str(labels, SLA_LABEL_TEMPORARY), "true");
}
