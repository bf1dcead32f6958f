/*
 * Target `dgd`: each candidate is a temporary DynamoGraphDeployment.
 *
 * What is made is found again: names are derived from the request, the role and the mapping, and every deployment has the
 * request's uid and the mark "temporary" in its labels. So a create whose answer was lost finds its own object, and a
 * profiler that was killed and started again (clean()) takes away what its earlier life left. The request owns them all, so
 * they go with it; and what is left by a run that is over, the operator takes away by the same labels.
 *
 * Everything is waited for by watches. A cache may be behind, so that something is gone is believed only when the server
 * says so itself.
 */
#include <fcntl.h>

#include "probe/sla/dgd_internal.h"

#define KV_PAUSE (5 * USEC_PER_SEC)

enum {
        NAMES_TRIED = 8,
        /* Upstream's operator refuses a deployment whose name and longest component have more together. */
        NAMES_MAX = 45,
        HASH_TAIL = 5, /* "-12ab" */
        KV_TRIES = 6,
        BASE_MAX = 1 << 20,
        FRONTEND_PORT = 8000,
};

/* One that is there, or may be: what a server's `data` is. */
struct deployment {
        struct arena arena;
        const char *name, *uid; /* uid NULL: not known */
        const char *url;
};

static struct dgd_target *target_of(struct sla_target *t)
{
        return CONTAINER_OF(t, struct dgd_target, target);
}

/* ---- taking away */

/* One that was begun, and of which nobody knows whether it was made. */
static void remove_half_made(struct dgd_target *t, struct deployment *d)
{
        struct json *found;
        struct err err = ERR_INIT;

        if (!d->uid) {
                if (dgd_ask(t, KUBE_GET, d->name, STR_NULL, &d->arena, &found, &err) < 0 ||
                    !dgd_is_ours(t, found)) {
                        if (err.code && err.code != E_NOT_FOUND)
                                LOG_WARN(t->c.log, "A temporary deployment may be left",
                                         F_STR("name", d->name), F_ERR(&err));
                        return;
                }
                d->uid = meta_str(found, "uid");
        }
        if (dgd_remove(t, d->name, d->uid, &err) < 0)
                LOG_WARN(t->c.log, "A temporary deployment is left", F_STR("name", d->name), F_ERR(&err));
}

static void deployment_free(struct deployment *d)
{
        arena_done(&d->arena);
        free(d);
}

static void dgd_stop(struct sla_target *target, struct sla_server *s)
{
        struct deployment *d = s->data;

        s->data = NULL;
        s->url = NULL;
        if (!d)
                return;
        remove_half_made(target_of(target), d);
        deployment_free(d);
}

static int list_ours(struct dgd_target *t, struct arena *a, struct json **ret, struct err *err)
{
        usec_t started = dgd_now(t), backoff = DGD_BACKOFF;

        for (;;) {
                err_clear(err);
                if (dgd_ask(t, KUBE_LIST, NULL, STR_NULL, a, ret, err) == 0)
                        return 0;
                if (!dgd_may_pass(t, err, dgd_now(t) - started) || dgd_now(t) - started > DGD_REMOVE_TIMEOUT)
                        return err_wrap(err, "looking for deployments of an earlier attempt");
                dgd_rest(t, &backoff, true);
                if (t->stopped)
                        return dgd_say_stopped(err);
        }
}

static int dgd_clean(struct sla_target *target, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct dgd_target *t = target_of(target);
        struct err unheard = ERR_INIT;
        struct json *list;

        err = err ? err : &unheard;
        if (list_ours(t, &a, &list, err) < 0)
                return -1;
        json_foreach (dgd, json_at(list, "items")) {
                if (!dgd_is_ours(t, dgd)) /* whatever a selector means to this server */
                        continue;
                if (dgd_remove(t, meta_str(dgd, "name"), meta_str(dgd, "uid"), err) < 0)
                        return err_wrap(err, "taking away what an earlier attempt left");
        }
        return 0;
}

/* ---- making one */

static const char *role_name(enum sla_role role)
{
        return role == SLA_PREFILL ? "prefill" : "decode";
}

static size_t longest_component(const struct json *dgd)
{
        size_t longest = strlen("Frontend");

        json_foreach (service, json_path(dgd, "spec.services"))
                longest = MAX(longest, (size_t)service->key_len);
        return longest;
}

/* The request's name, cut so that all fits, and 4 digits of what tells this one from all others. */
static const char *derive_name(struct dgd_target *t, struct arena *a, const struct sla_candidate *c,
                               enum sla_role role, unsigned tried)
{
        uint64_t h = json_hash(
                json_build(a, "[%s, %s, %s, %u]", t->owner_uid, role_name(role), c->label, tried));
        size_t taken = longest_component(t->base) + HASH_TAIL;
        size_t room = taken < NAMES_MAX ? NAMES_MAX - taken : 1;
        char *stem = arena_strndup(a, t->owner_name, MIN(strlen(t->owner_name), room));

        for (char *p = stem; *p; p++)
                *p = *p == '.' ? '-' : *p; /* it becomes part of a Service's name */
        for (size_t n = strlen(stem); n > 1 && stem[n - 1] == '-'; n--)
                stem[n - 1] = '\0';
        h ^= h >> 32;
        h ^= h >> 16;
        return arena_printf(a, "%s-%04x", stem, (unsigned)(h & 0xffff));
}

static struct json *member(struct arena *a, struct json *object, const char *key)
{
        struct json *m = json_at(object, key);

        return json_is(m, JSON_OBJECT) ? m : json_set(a, object, key, json_object(a));
}

/*
 * Ours by its labels (the operator's watch selects by the first two), and gone with the request. That its deletion waits for us
 * is not asked for: where that is enforced, only those may who can write the request's finalizers.
 */
static void mark(struct dgd_target *t, struct arena *a, struct json *dgd, const struct sla_candidate *c,
                 enum sla_role role, const char *name)
{
        struct json *meta = member(a, dgd, "metadata"), *labels = member(a, meta, "labels");

        json_set(a, dgd, "apiVersion", json_string(a, kube_api_version(&DGD_TYPE, a)));
        json_set(a, dgd, "kind", json_string(a, DGD_TYPE.kind));
        json_set(a, meta, "name", json_string(a, name));
        json_set(a, meta, "namespace", json_string(a, t->ns));
        json_set(a, labels, "app.kubernetes.io/managed-by", json_string(a, "sonde"));
        json_set(a, labels, "sonde.dev/controller", json_string(a, "dgdr"));
        json_set(a, labels, DGD_LABEL_REQUEST, json_string(a, t->owner_uid));
        json_set(a, labels, SLA_LABEL_TEMPORARY, json_string(a, "true"));
        json_set(a, member(a, meta, "annotations"), "sonde.dev/candidate",
                 json_string(a, arena_printf(a, "%s %s", role_name(role), c->label)));
        json_set(a, meta, "ownerReferences",
                 json_build(a,
                            "[{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeploymentRequest', "
                            "'name': %s, 'uid': %s, 'controller': %p}]",
                            t->owner_name, t->owner_uid, (void *)json_truth(a, false)));
}

enum taken { TAKEN_GONE, TAKEN_OURS, TAKEN_LEFT, TAKEN_STRANGER };

/*
 * There is one of that name. After an answer that was lost it is what was just made; else an earlier life's, which is taken
 * away first: nobody knows what state it is in. Below 0: it cannot be looked at.
 */
static int look_at_taken(struct dgd_target *t, struct deployment *d, bool lost, struct err *err)
{
        struct json *found;
        const char *uid;

        if (dgd_ask(t, KUBE_GET, d->name, STR_NULL, &d->arena, &found, err) < 0)
                return err->code == E_NOT_FOUND ? TAKEN_GONE : -1;
        if (!dgd_is_ours(t, found))
                return TAKEN_STRANGER;
        uid = meta_str(found, "uid");
        if (lost && !meta_str(found, "deletionTimestamp")) {
                d->uid = uid;
                return TAKEN_OURS;
        }
        return dgd_remove(t, d->name, uid, err) < 0 ? -1 : TAKEN_LEFT;
}

struct making {
        const struct sla_candidate *candidate;
        enum sla_role role;
        unsigned tried; /* names */
        bool lost;      /* a create may have been carried out under this name */
};

static struct str next_body(struct dgd_target *t, struct deployment *d, const struct making *m)
{
        struct json *dgd;

        d->name = derive_name(t, &d->arena, m->candidate, m->role, m->tried);
        dgd = sla_candidate_deployment(&d->arena, t->base, t->c.config->backend, m->candidate, m->role,
                                       d->name);
        sla_deployment_prepare(&d->arena, dgd, t->c.config);
        mark(t, &d->arena, dgd, m->candidate, m->role, d->name);
        return str_of(json_print(&d->arena, dgd));
}

/* One try. Above 0: it is made. 0: try again. */
static int try_create(struct dgd_target *t, struct deployment *d, struct making *m, struct str *body,
                      struct err *err)
{
        struct json *made;
        int r;

        if (dgd_ask(t, KUBE_CREATE, d->name, *body, &d->arena, &made, err) == 0) {
                d->uid = meta_str(made, "uid");
                return d->uid ? 1 : err_set(err, E_PROTOCOL, "the server's answer has no uid");
        }
        if (err->code != E_EXISTS) {
                m->lost = m->lost || (dgd_may_pass(t, err, DGD_RBAC_LAG) && err->code != E_CONNECT);
                return -1;
        }
        r = look_at_taken(t, d, m->lost, err);
        if (r < 0 || r == TAKEN_OURS)
                return r < 0 ? -1 : 1;
        m->lost = false;
        if (r == TAKEN_STRANGER && ++m->tried == NAMES_TRIED)
                return err_set(err, E_EXISTS, "all names for it are taken, the last one is %s", d->name);
        if (r == TAKEN_STRANGER)
                *body = next_body(t, d, m);
        return 0;
}

static int create(struct dgd_target *t, struct deployment *d, struct making *m, usec_t deadline,
                  struct err *err)
{
        usec_t started = dgd_now(t), backoff = DGD_BACKOFF;
        struct str body = next_body(t, d, m);

        for (;;) {
                int r;

                if (t->stopped)
                        return dgd_say_stopped(err);
                err_clear(err);
                r = try_create(t, d, m, &body, err);
                if (r > 0) {
                        LOG_INFO(t->c.log, "Created a temporary deployment", F_STR("name", d->name),
                                 F_STR("candidate", m->candidate->label), F_STR("role", role_name(m->role)));
                        return 0;
                }
                if (r < 0 && (!dgd_may_pass(t, err, dgd_now(t) - started) || dgd_now(t) >= deadline))
                        return err_wrap(err, "creating deployment %s", d->name);
                if (r < 0)
                        dgd_rest(t, &backoff, true);
        }
}

/* ---- until it serves */

struct readiness {
        struct dgd_eye dgd, pods;
        bool changed;
        bool seen; /* the deployment, in the cache */
};

static void readiness_done(struct readiness *r)
{
        dgd_eye_done(&r->dgd);
        dgd_eye_done(&r->pods);
}
DEFINE_CLEANUP_STRUCT(struct readiness, readiness_done)

static bool is_ready(const struct json *dgd)
{
        const struct json *status = json_at(dgd, "status");

        if (!streq(json_str(status, "state"), "successful"))
                return false;
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "Ready"))
                        return streq(json_str(c, "status"), "True");
        return false;
}

static const char *url_of(struct dgd_target *t, struct deployment *d, const struct json *dgd)
{
        const char *url = json_str(json_at(json_at(dgd, "metadata"), "annotations"), DGD_NOTE_URL);

        if (url && *url)
                return arena_strdup(&d->arena, url);
        return arena_printf(&d->arena, "http://%s-frontend.%s.svc.cluster.local:%d", d->name, t->ns,
                            FRONTEND_PORT);
}

/* Above 0: the deployment is ready. 0: not yet. Below 0: it is gone. */
static int look_at_deployment(struct dgd_target *t, struct deployment *d, struct readiness *r,
                              struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct cache_entry *e = cache_get_uid(r->dgd.cache, d->uid);
        struct err unknown = ERR_INIT;
        const struct json *dgd;

        if (e && e->deleting)
                return err_set(err, E_NOT_FOUND, "deployment %s is being deleted by somebody else", d->name);
        if (!e && r->seen && dgd_is_gone(t, d->name, d->uid, &unknown) > 0)
                return err_set(err, E_NOT_FOUND, "deployment %s was deleted by somebody else", d->name);
        if (!e)
                return 0;
        r->seen = true;
        dgd = cache_parse(r->dgd.cache, e, &a);
        if (!is_ready(dgd))
                return 0;
        d->url = url_of(t, d, dgd);
        return 1;
}

/* The first sentence about one of the pods, of FAULTS or of what it waits for; NULL: none. In the arena. */
static const char *look_at_pods(struct dgd_target *t, const struct cache *pods, struct arena *a, bool faults)
{
        struct json *all = json_array(a);
        const struct cache_entry *e;
        size_t i = 0;

        while ((e = cache_next(pods, &i))) /* first all of them: the cache may change while a log is read */
                json_append(all, cache_parse(pods, e, a));
        json_foreach (pod, all) {
                const char *words = faults ? dgd_pod_fault(t, a, pod) : dgd_pod_waits(a, pod);

                if (words)
                        return words;
        }
        return NULL;
}

static int say_late(struct dgd_target *t, struct deployment *d, const struct readiness *r, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct cache_entry *e = cache_get_uid(r->dgd.cache, d->uid);
        const struct json *dgd = e ? cache_parse(r->dgd.cache, e, &a) : NULL;
        const char *waits = look_at_pods(t, r->pods.cache, &a, false);
        const struct err *blind = reflector_error(r->dgd.reflector);

        return err_set(err, E_TIMEOUT, "deployment %s was not ready within %llu s: its state is '%s'%s%s%s%s",
                       d->name, (unsigned long long)(t->c.config->deploy_timeout / USEC_PER_SEC),
                       json_str_or(json_at(dgd, "status"), "state", "unknown"), waits ? ", " : "",
                       waits ? waits : "", blind ? ", " : "", blind ? blind->text : "");
}

static int wait_ready(struct dgd_target *t, struct deployment *d, struct readiness *r, usec_t deadline,
                      struct err *err)
{
        _cleanup_(free_ptr) char *labels = xasprintf(DGD_POD_LABEL "=%s", d->name);

        dgd_eye_open_one(&r->dgd, t, d->name, &r->changed);
        dgd_eye_open(&r->pods, t, &KUBE_POD, labels, NULL, &r->changed);
        for (;;) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                const char *fault;
                int ready;

                r->changed = false;
                ready = look_at_deployment(t, d, r, err);
                if (ready)
                        return ready < 0 ? -1 : 0;
                fault = look_at_pods(t, r->pods.cache, &a, true);
                if (fault)
                        return err_set(err, E_REFUSED, "%s", fault);
                if (t->stopped)
                        return dgd_say_stopped(err);
                if (dgd_now(t) >= deadline)
                        return say_late(t, d, r, err);
                dgd_wait(t, &r->changed, deadline, true);
        }
}

/* ---- the frontend: it is up before the model is known to it */

struct asking {
        bool done, serves;
        struct err err;
};

static void on_models(void *arg, const struct http_answer *answer, const struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct asking *q = arg;
        const struct json *body;

        q->done = true;
        if (err) {
                q->err = *err;
                return;
        }
        body = answer->status == 200 ? json_parse(&a, answer->body, NULL, NULL) : NULL;
        q->serves = json_len(json_at(body, "data")) > 0;
        if (!q->serves)
                err_set(&q->err, E_BUSY, "/v1/models answers %d and names no model", answer->status);
}

/* A pod that dies meanwhile ends the candidate as before. */
static int wait_serving(struct dgd_target *t, struct deployment *d, const struct readiness *r,
                        usec_t deadline, struct err *err)
{
        static const struct http_handlers handlers = {.on_end = on_models};
        _cleanup_(http_client_free) struct http_client *http = NULL;
        usec_t backoff = DGD_BACKOFF;

        http = http_client_new(t->c.loop, &(struct http_client_config){.url = d->url}, err);
        if (!http)
                return err_wrap(err, "deployment %s", d->name);
        for (;;) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct asking q = {.err = ERR_INIT};
                const char *fault;
                struct http_call *call = http_start(http,
                                                    &(struct http_request){.method = "GET",
                                                                           .target = "/v1/models",
                                                                           .timeout = DGD_CALL_TIMEOUT},
                                                    &handlers, &q);

                dgd_wait(t, &q.done, deadline, true);
                if (!q.done)
                        http_call_cancel(call);
                if (q.serves)
                        return 0;
                fault = look_at_pods(t, r->pods.cache, &a, true);
                if (fault)
                        return err_set(err, E_REFUSED, "%s", fault);
                if (t->stopped)
                        return dgd_say_stopped(err);
                if (dgd_now(t) >= deadline) {
                        *err = q.err;
                        err->code = E_TIMEOUT;
                        return err_wrap(err, "deployment %s is ready, but does not serve at %s", d->name,
                                        d->url);
                }
                dgd_rest(t, &backoff, true);
        }
}

/* ---- start */

/* Logs come late: a few tries, for decode, which cannot be measured without it. */
static uint64_t read_kv(struct dgd_target *t, const struct deployment *d, const struct readiness *r,
                        const struct making *m)
{
        _cleanup_(free_ptr) char *dir = t->c.artifacts ? xasprintf("%s/%s-%s", t->c.artifacts, d->name,
                                                                   role_name(m->role))
                                                       : NULL;
        unsigned tries = m->role == SLA_DECODE && !t->c.kv_tokens ? KV_TRIES : 1;
        uint64_t kv = 0;

        for (unsigned i = 0; i < tries && !kv && !t->stopped; i++) {
                if (i)
                        dgd_wait(t, NULL, usec_add(dgd_now(t), KV_PAUSE), true);
                kv = dgd_kv_tokens(t, r->pods.cache, m->candidate, dir);
        }
        return kv;
}

static int bring_up(struct dgd_target *t, struct deployment *d, struct making *m, uint64_t *ret_kv,
                    struct err *err)
{
        usec_t deadline = usec_add(dgd_now(t), t->c.config->deploy_timeout);
        _cleanup_(readiness_done) struct readiness r = {0};

        dgd_wait(t, NULL, dgd_now(t), true); /* told to stop already? */
        if (create(t, d, m, deadline, err) < 0 || wait_ready(t, d, &r, deadline, err) < 0 ||
            wait_serving(t, d, &r, deadline, err) < 0)
                return -1;
        *ret_kv = read_kv(t, d, &r, m);
        return t->stopped ? dgd_say_stopped(err) : 0;
}

static int dgd_start(struct sla_target *target, const struct sla_candidate *c, enum sla_role role,
                     struct sla_server *ret, struct err *err)
{
        struct dgd_target *t = target_of(target);
        struct deployment *d = xcalloc(1, sizeof(*d));
        struct making m = {.candidate = c, .role = role};
        struct err unheard = ERR_INIT;
        uint64_t kv = 0;

        err = err ? err : &unheard;
        *ret = (struct sla_server){0};
        if (bring_up(t, d, &m, &kv, err) < 0) {
                remove_half_made(t, d);
                deployment_free(d);
                return -1;
        }
        *ret = (struct sla_server){.url = d->url, .kv_tokens = kv, .data = d};
        return 0;
}

/* ---- afterwards */

static const char *dgd_why(struct sla_target *target, const struct sla_server *s, struct arena *a)
{
        struct dgd_target *t = target_of(target);
        struct deployment *d = s->data;

        return d ? dgd_pods_why(t, a, d->name) : NULL;
}

/* ---- the target */

static void dgd_free(struct sla_target *target)
{
        struct dgd_target *t = target_of(target);

        fd_close(t->c.stop_fd);
        arena_done(&t->arena);
        free(t);
}

static const struct sla_target_ops dgd_ops = {
        .name = "dgd",
        .clean = dgd_clean,
        .start = dgd_start,
        .stop = dgd_stop,
        .free = dgd_free,
        .why = dgd_why,
};

/* The deployment in the file that the configuration names, or the backend's default. */
static const struct json *read_base(struct dgd_target *t, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(BASE_MAX);
        const struct sla_config *config = t->c.config;
        const struct json *base;
        struct json **docs = NULL;
        size_t n = 0;

        if (!config->base_config) {
                base = sla_base_deployment(&t->arena, config->backend, config->model);
                if (!base)
                        err_set(err, E_CONFIG, "there is no default deployment of backend '%s'",
                                config->backend ? config->backend : "");
                return base;
        }
        if (file_read(config->base_config, &text, err) < 0)
                return NULL;
        if (yaml_parse_all(&t->arena, buf_str(&text), NULL, &docs, &n, err) < 0) {
                err_wrap(err, "%s", config->base_config);
                return NULL;
        }
        for (size_t i = 0; i < n; i++)
                if (streq(json_str(docs[i], "kind"), DGD_TYPE.kind))
                        return docs[i];
        err_set(err, E_CONFIG, "%s has no %s", config->base_config, DGD_TYPE.kind);
        return NULL;
}

struct sla_target *sla_target_dgd(const struct sla_target_config *c, struct kube *kube,
                                  const char *owner_name, const char *owner_uid, struct err *err)
{
        struct dgd_target *t;

        if (!owner_name || !*owner_name || !owner_uid || !*owner_uid) {
                err_set(err, E_CONFIG,
                        "target dgd needs the request that owns what it deploys: DGDR_NAME and DGDR_UID");
                return NULL;
        }
        t = xcalloc(1, sizeof(*t));
        t->target.ops = &dgd_ops;
        t->c = *c;
        t->c.stop_fd = c->stop_fd >= 0 ? fcntl(c->stop_fd, F_DUPFD_CLOEXEC, 3)
                                       : -1; /* others wait for it in the same loop */
        t->kube = kube;
        t->owner_name = arena_strdup(&t->arena, owner_name);
        t->owner_uid = arena_strdup(&t->arena, owner_uid);
        t->ns = arena_strdup(&t->arena, c->config->ns);
        t->base = read_base(t, err);
        if (!t->base || sla_base_check(t->base, c->config->backend, err) < 0) {
                dgd_free(&t->target);
                return NULL;
        }
        return &t->target;
}
