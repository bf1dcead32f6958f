/*
 * Target `dgd` against an API server of the test's own: deployments and pods in memory, with watches, and a controller that
 * does with each deployment what the test says.
 */
#include "unit/unit.h"

#include <unistd.h>

#include "kube/kube.h"
#include "probe/sla/sla.h"
#include "unit/dir.h"

#define DGDS  "/apis/nvidia.com/v1alpha1/namespaces/ns/dynamographdeployments"
#define PODS  "/api/v1/namespaces/ns/pods"
#define OWNER "11111111-2222-3333-4444-555555555555"

enum fate {
        FATE_READY,       /* as soon as it is made */
        FATE_READY_LATER, /* when it is watched */
        FATE_CRASH,
        FATE_IMAGE,
        FATE_NEVER,
        FATE_HALF_READY, /* the state alone */
        FATE_VANISHES,   /* when it is watched */
};

enum fault { FAULT_NONE, FAULT_503, FAULT_LOST_BEFORE, FAULT_LOST_AFTER, FAULT_403 };

enum { OBJECTS_MAX = 16, WATCHES_MAX = 16 };

struct object {
        char *text; /* NULL: free */
        char name[64], uid[64];
        bool pod;
};

struct watch {
        struct http_exchange *ex;
        bool pods;
};

struct rig {
        struct clock clock;
        struct loop *loop;
        struct http_server *server;
        struct kube_config config;
        struct kube *kube;
        struct sla_target *target;
        struct sla_config sla;
        char url[64];
        int stop[2];
        enum fate fate;
        enum fault faults[8]; /* of the next writes */
        size_t n_faults, at_fault;
        bool serves, stop_when_watched, finalizer;
        const char *log;
        struct object objects[OBJECTS_MAX];
        struct watch watches[WATCHES_MAX];
        uint64_t version;
        unsigned created, deleted, made_uids;
        struct buf said; /* one line a write */
        char last_body[8192];
        char artifacts[UNIT_DIR_LEN];
};

/* ---- the server's objects */

static struct object *find(struct rig *r, const char *name)
{
        for (size_t i = 0; i < OBJECTS_MAX; i++)
                if (r->objects[i].text && streq(r->objects[i].name, name))
                        return &r->objects[i];
        return NULL;
}

static void tell(struct rig *r, const char *type, bool pod, const char *text)
{
        _cleanup_(free_ptr) char *line = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, text);

        for (size_t i = 0; i < WATCHES_MAX; i++)
                if (r->watches[i].ex && r->watches[i].pods == pod)
                        http_stream_write(r->watches[i].ex, str_of(line));
}

static void put(struct rig *r, struct json *json, struct arena *a, bool pod, bool fresh)
{
        const char *name = meta_str(json, "name");
        struct object *o = find(r, name);
        struct json *meta = json_at(json, "metadata");

        for (size_t i = 0; !o && i < OBJECTS_MAX; i++)
                if (!r->objects[i].text)
                        o = &r->objects[i];
        assert_non_null(o);
        if (fresh)
                snprintf(o->uid, sizeof(o->uid), "uid-%u", ++r->made_uids);
        snprintf(o->name, sizeof(o->name), "%s", name);
        json_set(a, meta, "uid", json_string(a, o->uid));
        json_set(a, meta, "namespace", json_string(a, "ns"));
        json_set(a, meta, "resourceVersion",
                 json_string(a, arena_printf(a, "%llu", (unsigned long long)++r->version)));
        free(o->text);
        o->text = xstrdup(json_print(a, json));
        o->pod = pod;
        tell(r, fresh ? "ADDED" : "MODIFIED", pod, o->text);
}

static void drop(struct rig *r, struct object *o)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *last = json_parse(&a, str_of(o->text), NULL, NULL);

        json_set(&a, json_at(last, "metadata"), "resourceVersion",
                 json_string(&a, arena_printf(&a, "%llu", (unsigned long long)++r->version)));
        tell(r, "DELETED", o->pod, json_print(&a, last));
        free(TAKE_PTR(o->text));
}

/* ---- the controller */

static void add_pod(struct rig *r, const char *name, const char *status)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *text = arena_strdup(&a, status);
        struct json *s;

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        s = json_parse(&a, str_of(text), NULL, NULL);
        assert_non_null(s);
        put(r,
            json_build(&a,
                       "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s-worker'}, 'spec': "
                       "{'containers': [{'name': 'main', 'image': 'i'}]}, 'status': %p}",
                       name, (void *)s),
            &a, true, true);
}

static void set_status(struct rig *r, const char *name, bool whole)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *dgd = json_parse(&a, str_of(find(r, name)->text), NULL, NULL);
        struct json *meta = json_at(dgd, "metadata");

        json_set(&a, dgd, "status",
                 json_build(&a, "{'state': 'successful', 'conditions': [{'type': 'Ready', 'status': %s}]}",
                            whole ? "True" : "False"));
        if (!json_at(meta, "annotations"))
                json_set(&a, meta, "annotations", json_object(&a));
        json_set(&a, json_at(meta, "annotations"), "sonde.dev/url", json_string(&a, r->url));
        put(r, dgd, &a, false, false);
}

static void control(struct rig *r, const char *name, bool watched)
{
        if (r->fate == FATE_READY || (watched && r->fate == FATE_READY_LATER))
                set_status(r, name, true);
        if (watched && r->fate == FATE_HALF_READY)
                set_status(r, name, false);
        if (watched && r->fate == FATE_VANISHES)
                drop(r, find(r, name));
        if (watched)
                return;
        if (r->fate == FATE_CRASH)
                add_pod(r, name,
                        "{'containerStatuses': [{'name': 'main', 'state': {'waiting': {'reason': "
                        "'CrashLoopBackOff'}}, 'lastState': {'terminated': {'exitCode': 3, 'reason': "
                        "'Error'}}}]}");
        else if (r->fate == FATE_IMAGE)
                add_pod(r, name,
                        "{'containerStatuses': [{'name': 'main', 'state': {'waiting': {'reason': "
                        "'ErrImagePull', 'message': 'no such image'}}}]}");
        else if (r->fate == FATE_NEVER)
                add_pod(r, name,
                        "{'conditions': [{'type': 'PodScheduled', 'status': 'False', 'message': '0/1 nodes "
                        "are available: 1 Insufficient nvidia.com/gpu.'}]}");
        else
                add_pod(r, name, "{'containerStatuses': [{'name': 'main', 'ready': true}]}");
}

/* ---- the server's requests */

static void reply(struct http_exchange *ex, int status, const char *text)
{
        http_reply(ex, status, "application/json", str_of(text));
}

static void refuse(struct http_exchange *ex, int status, const char *reason)
{
        _cleanup_(free_ptr) char *text = xasprintf(
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"told so\","
                "\"reason\":\"%s\",\"code\":%d}",
                reason, status);

        reply(ex, status, text);
}

static enum fault next_fault(struct rig *r)
{
        return r->at_fault < r->n_faults ? r->faults[r->at_fault++] : FAULT_NONE;
}

/* False: the fault has answered. LOST_AFTER: the caller answers by cutting. */
static bool passes(struct http_exchange *ex, enum fault f)
{
        if (f == FAULT_503)
                refuse(ex, 503, "ServiceUnavailable");
        else if (f == FAULT_403)
                refuse(ex, 403, "Forbidden");
        else if (f == FAULT_LOST_BEFORE)
                http_stream_start(ex, 201, NULL, NULL, NULL), http_stream_abort(ex);
        else
                return true;
        return false;
}

static void on_post(struct rig *r, struct http_exchange *ex)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *dgd = json_parse(&a, http_body(ex), NULL, NULL);
        enum fault fault = next_fault(r);

        assert_non_null(dgd);
        snprintf(r->last_body, sizeof(r->last_body), "%.*s", STR_ARG(http_body(ex)));
        buf_printf(&r->said, "POST %s\n", meta_str(dgd, "name"));
        if (!passes(ex, fault))
                return;
        if (find(r, meta_str(dgd, "name"))) {
                refuse(ex, 409, "AlreadyExists");
                return;
        }
        r->created++;
        put(r, dgd, &a, false, true);
        if (fault == FAULT_LOST_AFTER)
                http_stream_start(ex, 201, NULL, NULL, NULL), http_stream_abort(ex);
        else
                reply(ex, 201, find(r, meta_str(dgd, "name"))->text);
        control(r, meta_str(dgd, "name"), false);
}

static void on_delete(struct rig *r, struct http_exchange *ex, const char *name)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *options = json_parse(&a, http_body(ex), NULL, NULL);
        struct object *o = find(r, name);
        struct json *dgd;
        enum fault fault = next_fault(r);

        assert_non_null(json_str(json_at(options, "preconditions"), "uid")); /* none is unconditional */
        assert_string_equal(json_str(options, "propagationPolicy"), "Foreground");
        buf_printf(&r->said, "DELETE %s\n", name);
        if (!passes(ex, fault))
                return;
        if (!o) {
                refuse(ex, 404, "NotFound");
        } else if (!streq(json_str(json_at(options, "preconditions"), "uid"), o->uid)) {
                refuse(ex, 409, "Conflict");
        } else if (r->finalizer) { /* it goes when somebody watches */
                dgd = json_parse(&a, str_of(o->text), NULL, NULL);
                json_set(&a, json_at(dgd, "metadata"), "deletionTimestamp",
                         json_string(&a, "2026-11-16T10:00:00Z"));
                put(r, dgd, &a, false, false);
                reply(ex, 200, o->text);
        } else {
                r->deleted++;
                drop(r, o);
                reply(ex, 200, "{\"kind\":\"Status\",\"status\":\"Success\"}");
        }
}

static void list(struct rig *r, struct http_exchange *ex, bool pods)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *fields = http_query_param(ex, "fieldSelector", &a),
                   *labels = http_query_param(ex, "labelSelector", &a);
        const char *comma = "";

        assert_true(fields || labels); /* nothing is asked for as a whole */
        buf_printf(&out,
                   "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%llu\"},"
                   "\"items\":[",
                   (unsigned long long)r->version);
        for (size_t i = 0; i < OBJECTS_MAX; i++) {
                struct object *o = &r->objects[i];

                if (!o->text || o->pod != pods ||
                    (fields && !streq(fields, arena_printf(&a, "metadata.name=%s", o->name))))
                        continue;
                if (labels && !pods && !strstr(o->text, "sonde.dev/temporary"))
                        continue;
                buf_printf(&out, "%s%s", comma, o->text);
                comma = ",";
        }
        buf_adds(&out, "]}");
        reply(ex, 200, buf_cstr(&out));
}

static void unwatch(void *arg)
{
        ((struct watch *)arg)->ex = NULL;
}

static void watch(struct rig *r, struct http_exchange *ex, bool pods)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *fields = http_query_param(ex, "fieldSelector", &a);
        struct watch *w = NULL;
        struct object *o;

        for (size_t i = 0; !w && i < WATCHES_MAX; i++)
                w = r->watches[i].ex ? NULL : &r->watches[i];
        assert_non_null(w);
        w->ex = ex;
        w->pods = pods;
        http_stream_start(ex, 200, NULL, unwatch, w);
        o = fields ? find(r, fields + strlen("metadata.name=")) : NULL;
        if (!o)
                return;
        if (r->finalizer && strstr(o->text, "deletionTimestamp")) {
                r->deleted++;
                drop(r, o);
                return;
        }
        if (r->stop_when_watched)
                assert_int_equal(write(r->stop[1], "x", 1), 1);
        control(r, o->name, true);
}

static void on_get(struct rig *r, struct http_exchange *ex, struct str path)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        bool pods = str_has_prefix(path, STR(PODS)), is_watch = http_query_param(ex, "watch", &a);
        const char *text = arena_strndup(&a, path.p, path.n), *name = strrchr(text, '/') + 1;
        struct object *o;

        if (str_has_suffix(path, STR("/log"))) {
                http_reply(ex, 200, "text/plain", str_of(r->log));
        } else if (str_eq(path, STR("/v1/models"))) {
                reply(ex, 200, r->serves ? "{\"data\":[{\"id\":\"m\"}]}" : "{\"data\":[]}");
                r->serves = true; /* the next time */
        } else if (str_eq(path, pods ? STR(PODS) : STR(DGDS))) {
                if (is_watch)
                        watch(r, ex, pods);
                else
                        list(r, ex, pods);
        } else if ((o = find(r, name))) {
                reply(ex, 200, o->text);
        } else {
                refuse(ex, 404, "NotFound");
        }
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct rig *r = arg;
        struct str path = http_path(ex);

        if (str_eq(http_method(ex), STR("POST"))) {
                on_post(r, ex);
        } else if (str_eq(http_method(ex), STR("DELETE"))) {
                _cleanup_(free_ptr) char *text = xstrndup(path.p, path.n);

                on_delete(r, ex, strrchr(text, '/') + 1);
        } else {
                on_get(r, ex, path);
        }
}

/* ---- the rig */

static const struct sla_candidate TP2 = {.gpus = 2, .attn_dp = 1, .mapping = SIM_TP, .label = "TP=2"};
static const struct sla_candidate DEP4 = {.gpus = 4, .attn_dp = 4, .mapping = SIM_DEP, .label = "DEP=4"};

static struct sla_target *new_target(struct rig *r, const char *name)
{
        struct err err = ERR_INIT;
        struct sla_target_config c = {
                .config = &r->sla, .loop = r->loop, .stop_fd = r->stop[0], .artifacts = r->artifacts};
        struct sla_target *t = sla_target_dgd(&c, r->kube, name, OWNER, &err);

        assert_non_null(t);
        return t;
}

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));
        struct err err = ERR_INIT;

        r->loop = loop_new(&r->clock, NULL, &err);
        assert_non_null(r->loop);
        r->server = http_server_new(
                r->loop,
                &(struct http_server_config){.listen = "127.0.0.1:0", .on_request = on_request, .arg = r},
                &err);
        assert_non_null(r->server);
        snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u", http_server_port(r->server));
        r->config.server = xstrdup(r->url);
        r->config.source = xstrdup("the test");
        r->kube = kube_new(r->loop, &r->config, NULL, &err);
        assert_non_null(r->kube);
        assert_int_equal(pipe(r->stop), 0);
        r->said = (struct buf)BUF_INIT(1 << 16);
        r->serves = true;
        r->log = "INFO Maximum concurrency for 4,096 tokens per request: 10.00x\n";
        r->version = 10;
        r->sla = (struct sla_config){
                .model = "m", .backend = "vllm", .ns = "ns", .deploy_timeout = 60 * USEC_PER_SEC};
        unit_dir(r->artifacts);
        r->target = new_target(r, "req");
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        r->target->ops->free(r->target);
        kube_free(r->kube);
        http_server_free(r->server);
        loop_free(r->loop);
        kube_config_done(&r->config);
        for (size_t i = 0; i < OBJECTS_MAX; i++)
                free(r->objects[i].text);
        buf_done(&r->said);
        fd_close(r->stop[0]);
        fd_close(r->stop[1]);
        free(r);
        return 0;
}

static int start(struct rig *r, struct sla_server *s, struct err *err)
{
        return r->target->ops->start(r->target, &TP2, SLA_DECODE, s, err);
}

static size_t deployments(struct rig *r)
{
        size_t n = 0;

        for (size_t i = 0; i < OBJECTS_MAX; i++)
                n += r->objects[i].text && !r->objects[i].pod;
        return n;
}

static void plan(struct rig *r, enum fault fault)
{
        r->faults[r->n_faults++] = fault;
}

/* ---- one that works */

static void it_is_made_waited_for_and_taken_away(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct rig *r = *state;
        struct sla_server s;
        struct err err = ERR_INIT;
        const struct json *made, *owner;

        r->fate = FATE_READY_LATER;
        assert_int_equal(start(r, &s, &err), 0);
        assert_string_equal(s.url, r->url);
        assert_int_equal(s.kv_tokens, 40960);
        assert_null(s.model);
        made = json_path(json_parse(&a, str_of(r->last_body), NULL, NULL), "metadata");
        assert_non_null(made);
        assert_string_equal(json_str(json_at(made, "labels"), "sonde.dev/request"), OWNER);
        assert_string_equal(json_str(json_at(made, "labels"), "sonde.dev/temporary"), "true");
        assert_string_equal(json_str(json_at(made, "labels"), "sonde.dev/controller"), "dgdr");
        owner = json_first(json_at(made, "ownerReferences"));
        assert_string_equal(json_str(owner, "uid"), OWNER);
        assert_string_equal(json_str(owner, "name"), "req");
        assert_false(json_bool(owner, "controller", true));
        assert_null(
                json_at(owner, "blockOwnerDeletion")); /* the run's account may not ask for that everywhere */
        assert_int_equal(strlen(json_str(made, "name")), strlen("req-0000"));
        assert_int_equal(strncmp(json_str(made, "name"), "req-", 4), 0);
        r->target->ops->stop(r->target, &s);
        assert_int_equal(deployments(r), 0);
        assert_int_equal(r->created, 1);
        assert_int_equal(r->deleted, 1);
        r->target->ops->stop(r->target, &s); /* harmless */
}

static void its_name_is_derived(void **state)
{
        struct rig *r = *state;
        char first[64];
        struct sla_server s;

        assert_int_equal(start(r, &s, NULL), 0);
        snprintf(first, sizeof(first), "%s", r->objects[0].name);
        r->target->ops->stop(r->target, &s);
        r->target->ops->free(r->target);
        r->target = new_target(r, "req");
        assert_int_equal(start(r, &s, NULL), 0);
        assert_non_null(find(r, first)); /* the same in another life */
        r->target->ops->stop(r->target, &s);
        assert_int_equal(r->target->ops->start(r->target, &DEP4, SLA_DECODE, &s, NULL), 0);
        assert_null(find(r, first));
        assert_int_equal(s.kv_tokens, 4 * 40960);
        r->target->ops->stop(r->target, &s);
        assert_int_equal(r->target->ops->start(r->target, &TP2, SLA_PREFILL, &s, NULL), 0);
        assert_null(find(r, first));
        r->target->ops->stop(r->target, &s);
}

static void a_long_name_is_cut_so_that_its_components_fit(void **state)
{
        struct rig *r = *state;
        struct sla_server s;

        r->target->ops->free(r->target);
        r->target = new_target(r, "a-request.with-a-name-that-is-as-long-as-any-can-be-and-more");
        assert_int_equal(start(r, &s, NULL), 0);
        assert_true(strlen(r->objects[0].name) <= 45 - strlen("Frontend"));
        assert_true(name_valid(NAME_LABEL, str_of(r->objects[0].name)));
        r->target->ops->stop(r->target, &s);
}

static void a_finalizer_is_waited_for(void **state)
{
        struct rig *r = *state;
        struct sla_server s;

        r->finalizer = true;
        assert_int_equal(start(r, &s, NULL), 0);
        r->target->ops->stop(r->target, &s);
        assert_int_equal(deployments(r), 0);
}

static void a_frontend_that_knows_no_model_yet_is_asked_again(void **state)
{
        struct rig *r = *state;
        struct sla_server s;

        r->serves = false;
        assert_int_equal(start(r, &s, NULL), 0);
        assert_true(r->serves);
        r->target->ops->stop(r->target, &s);
}

/* ---- those that do not */

static void assert_fails(struct rig *r, const char *part)
{
        struct sla_server s = {.data = r};
        struct err err = ERR_INIT;

        assert_int_equal(start(r, &s, &err), -1);
        if (!strstr(err.text, part))
                fail_msg("'%s' is not in '%s'", part, err.text);
        assert_null(s.data); /* nothing to stop */
        assert_int_equal(deployments(r), 0);
        assert_int_equal(r->created, r->deleted);
        r->target->ops->stop(r->target, &s);
}

static void a_crash_loop_ends_it_at_once(void **state)
{
        struct rig *r = *state;

        r->fate = FATE_CRASH;
        r->log = "loading weights\nRuntimeError: CUDA out of memory\n\n";
        assert_fails(r, "CrashLoopBackOff (Error, exit code 3: RuntimeError: CUDA out of memory)");
}

static void an_image_that_cannot_be_had_ends_it_at_once(void **state)
{
        struct rig *r = *state;

        r->fate = FATE_IMAGE;
        assert_fails(r, "is in ErrImagePull (no such image); check the image's name");
}

static void time_is_up_and_it_says_what_it_waited_for(void **state)
{
        struct rig *r = *state;

        r->fate = FATE_NEVER;
        r->sla.deploy_timeout = 200 * USEC_PER_MS;
        assert_fails(r, "is not scheduled: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
}

static void the_state_alone_is_not_ready(void **state)
{
        struct rig *r = *state;

        r->fate = FATE_HALF_READY;
        r->sla.deploy_timeout = 200 * USEC_PER_MS;
        assert_fails(r, "was not ready within 0 s: its state is 'successful'");
}

static void one_that_somebody_deletes_is_told(void **state)
{
        struct rig *r = *state;
        struct sla_server s;
        struct err err = ERR_INIT;

        r->fate = FATE_VANISHES;
        assert_int_equal(start(r, &s, &err), -1);
        assert_non_null(strstr(err.text, "was deleted by somebody else"));
        assert_int_equal(deployments(r), 0);
}

static void a_stop_takes_it_away(void **state)
{
        struct rig *r = *state;
        struct sla_server s;
        struct err err = ERR_INIT;

        r->fate = FATE_NEVER;
        r->stop_when_watched = true;
        assert_int_equal(start(r, &s, &err), -1);
        assert_int_equal(err.code, E_CANCELED);
        assert_int_equal(r->created, 1);
        assert_int_equal(deployments(r), 0);
        assert_int_equal(start(r, &s, &err), -1); /* nothing is made any more */
        assert_int_equal(r->created, 1);
}

/* ---- an API that fails */

static void a_lost_answer_finds_what_was_made(void **state)
{
        struct rig *r = *state;
        struct sla_server s;

        plan(r, FAULT_LOST_AFTER);
        assert_int_equal(start(r, &s, NULL), 0);
        assert_int_equal(r->created, 1);
        r->target->ops->stop(r->target, &s);
        assert_int_equal(deployments(r), 0);
}

static void writes_are_tried_again(void **state)
{
        struct rig *r = *state;
        struct sla_server s;

        plan(r, FAULT_503);
        plan(r, FAULT_LOST_BEFORE);
        plan(r, FAULT_403); /* a Role that is not known everywhere yet */
        assert_int_equal(start(r, &s, NULL), 0);
        assert_int_equal(r->created, 1);
        plan(r, FAULT_503);
        plan(r, FAULT_LOST_AFTER);
        r->target->ops->stop(r->target, &s);
        assert_int_equal(deployments(r), 0);
        assert_int_equal(r->deleted, 1);
}

/* ---- names that are taken */

static void put_one(struct rig *r, const char *name, const char *owner, const char *temporary)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        put(r,
            json_build(&a,
                       "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', 'metadata': "
                       "{'name': %s, 'labels': {'sonde.dev/request': %s, 'sonde.dev/temporary': %s}}}",
                       name, owner, temporary),
            &a, false, true);
}

static void what_an_earlier_life_left_goes_first(void **state)
{
        _cleanup_(free_ptr) char *wanted = NULL;
        struct rig *r = *state;
        char name[64];
        struct sla_server s;

        assert_int_equal(start(r, &s, NULL), 0);
        snprintf(name, sizeof(name), "%s", r->objects[0].name);
        r->target->ops->stop(r->target, &s);
        put_one(r, name, OWNER, "true");
        buf_clear(&r->said);
        assert_int_equal(start(r, &s, NULL), 0);
        wanted = xasprintf("POST %s\nDELETE %s\nPOST %s\n", name, name, name);
        assert_string_equal(buf_cstr(&r->said), wanted);
        r->target->ops->stop(r->target, &s);
}

static void a_strangers_is_left_alone(void **state)
{
        struct rig *r = *state;
        char name[64];
        struct sla_server s;

        assert_int_equal(start(r, &s, NULL), 0);
        snprintf(name, sizeof(name), "%s", r->objects[0].name);
        r->target->ops->stop(r->target, &s);
        put_one(r, name, OWNER, "false"); /* the request's own, that is to stay */
        assert_int_equal(start(r, &s, NULL), 0);
        assert_int_equal(deployments(r), 2);
        r->target->ops->stop(r->target, &s);
        assert_non_null(find(r, name));
}

static void clean_takes_away_this_requests_temporary_ones_only(void **state)
{
        struct rig *r = *state;
        struct err err = ERR_INIT;

        put_one(r, "left-1", OWNER, "true");
        put_one(r, "left-2", OWNER, "true");
        put_one(r, "final", OWNER, "false");
        put_one(r, "other", "uid-of-another", "true");
        plan(r, FAULT_503);
        assert_int_equal(r->target->ops->clean(r->target, &err), 0);
        assert_null(find(r, "left-1"));
        assert_null(find(r, "left-2"));
        assert_non_null(find(r, "final"));
        assert_non_null(find(r, "other"));
}

static void it_needs_an_owner(void **state)
{
        struct rig *r = *state;
        struct sla_target_config c = {.config = &r->sla, .loop = r->loop, .stop_fd = -1};
        struct err err = ERR_INIT;

        assert_null(sla_target_dgd(&c, r->kube, "req", NULL, &err));
        assert_non_null(strstr(err.text, "DGDR_UID"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(it_is_made_waited_for_and_taken_away),
        TEST(its_name_is_derived),
        TEST(a_long_name_is_cut_so_that_its_components_fit),
        TEST(a_finalizer_is_waited_for),
        TEST(a_frontend_that_knows_no_model_yet_is_asked_again),
        TEST(a_crash_loop_ends_it_at_once),
        TEST(an_image_that_cannot_be_had_ends_it_at_once),
        TEST(time_is_up_and_it_says_what_it_waited_for),
        TEST(the_state_alone_is_not_ready),
        TEST(one_that_somebody_deletes_is_told),
        TEST(a_stop_takes_it_away),
        TEST(a_lost_answer_finds_what_was_made),
        TEST(writes_are_tried_again),
        TEST(what_an_earlier_life_left_goes_first),
        TEST(a_strangers_is_left_alone),
        TEST(clean_takes_away_this_requests_temporary_ones_only),
        TEST(it_needs_an_owner),
};
UNIT_MAIN(tests)
