#include "operator/runtime.h"

/*
 * The steps of a decision: what must not exist, what must exist, the status, the events. Each step either has nothing
 * to do or sends one request and goes on from its answer.
 */
static void next_step(struct task *t);

static void finish(struct task *t)
{
        for (size_t i = 0; i < t->decision.events.n; i++)
                events_record(t->rt->events, t->view.request, &t->decision.events.v[i]);
        if (t->decision.again_at) {
                usec_t now = loop_wall(t->rt->op->cfg.loop);

                queue_add_after(t->rt->queue, str_of(t->item->key), usec_sub(t->decision.again_at, now));
        }
        if (t->stalled_reason && streq(t->stalled_reason, "NameConflict"))
                runtime_finished(t, QUEUE_RETRY, RESULT_ERROR); /* the stranger may go away */
        else if (t->stalled_reason)
                runtime_finished(t, QUEUE_GIVE_UP, RESULT_ERROR);
        else
                runtime_finished(t, QUEUE_OK, t->decision.again_at ? RESULT_REQUEUE_AFTER : RESULT_SUCCESS);
}

/* ---- failures */

/* A permanent refusal is told on the request; everything else is decided again later. */
static void write_failed(struct task *t, const struct err *err)
{
        const struct log *log = loop_log(t->rt->op->cfg.loop);

        if (err->code == E_REFUSED || err->code == E_TOO_LARGE) {
                LOG_ERROR(log, "The server refused an object for good", F_STR("controller", t->rt->c->name),
                          F_STR("namespace", t->ns), F_STR("name", t->name), F_ERR(err));
                t->stalled_reason = err->code == E_REFUSED ? "Refused" : "TooLarge";
                t->stalled_message = arena_strdup(&t->arena, err->text);
                next_step(t);
                return;
        }
        if (err->code != E_CONFLICT && err->code != E_CANCELED)
                LOG_WARN(log, "A write failed; deciding again later", F_STR("controller", t->rt->c->name),
                         F_STR("namespace", t->ns), F_STR("name", t->name), F_ERR(err));
        runtime_finished(t, QUEUE_RETRY, RESULT_ERROR);
}

static void name_conflict(struct task *t)
{
        t->stalled_reason = "NameConflict";
        t->stalled_message = arena_printf(
                        &t->arena, "%s %s exists and does not belong to this request; rename one of the two",
                        t->target->type->kind, t->target_name);
        next_step(t);
}

/* ---- one request */

static void send(struct task *t, struct kube_request *r, kube_done done)
{
        r->ns = t->ns;
        if (r->verb != KUBE_GET) {
                r->field_manager = arena_printf(&t->arena, "sonde-%s", t->rt->c->name);
                r->may_send = runtime_may_send;
                r->may_send_arg = t->rt;
        }
        if (r->verb == KUBE_DELETE)
                r->field_manager = NULL;
        t->call = kube_send(t->rt->op->cfg.kube, r, done, t);
}

static struct json *parse_answer(struct task *t, const struct kube_answer *answer)
{
        return json_parse(&t->arena, answer->body, NULL, NULL);
}

/* ---- what must not exist */

static void on_deleted(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;

        t->call = NULL;
        if (err && err->code != E_NOT_FOUND) {
                write_failed(t, err);
                return;
        }
        expect_gone(t->item, t->target, t->target_name);
        next_step(t);
}

static bool delete_one(struct task *t, const struct must_not_exist *gone)
{
        const char *propagation = gone->propagation ? gone->propagation : "Background";
        const char *options = kube_delete_options(&t->arena, gone->object->uid, NULL, propagation);
        struct kube_request r = {
                        .verb = KUBE_DELETE,
                        .type = gone->object->type,
                        .name = gone->object->name,
                        .body = str_of(options),
        };

        t->target = runtime_source(t->rt, gone->object->type);
        t->target_name = gone->object->uid;
        if (!t->target || meta_str(gone->object->json, "deletionTimestamp"))
                return false;
        send(t, &r, on_deleted);
        return true;
}

/* ---- what must exist */

/* True when ACTUAL has all that WANTED says; lists of named things may have more of them. */
static bool contains(const struct json *actual, const struct json *wanted)
{
        if (!actual || actual->type != wanted->type)
                return false;
        if (wanted->type == JSON_OBJECT) {
                json_foreach (m, wanted)
                        if (!contains(json_get(actual, str_n(m->key, m->key_len)), m))
                                return false;
                return true;
        }
        if (wanted->type == JSON_ARRAY) {
                const struct json *x = json_first(actual);

                if (json_len(actual) != json_len(wanted))
                        return false;
                json_foreach (m, wanted) {
                        if (!contains(x, m))
                                return false;
                        x = json_next(actual, x);
                }
                return true;
        }
        return json_equal(actual, wanted);
}

/* Adds what every child has: type, place, owner, labels, and a hash of the plan itself. */
static struct json *dress(struct task *t, const struct must_exist *e)
{
        struct arena *a = &t->arena;
        struct json *o = e->json, *meta, *owners = json_array(a);
        const char *hash = name_hash(a, str_of(json_print(a, o)));

        json_set(a, o, "apiVersion", json_string(a, kube_api_version(e->type, a)));
        json_set(a, o, "kind", json_string(a, e->type->kind));
        json_append(owners, owner_reference(a, t->rt->c->type, t->view.request));
        meta = json_at(o, "metadata");
        json_set(a, meta, "namespace", json_string(a, t->ns));
        json_set(a, meta, "ownerReferences", owners);
        if (!json_at(meta, "labels"))
                json_set(a, meta, "labels", json_object(a));
        json_set(a, json_at(meta, "labels"), OPERATOR_LABEL_MANAGED_BY, json_string(a, "sonde"));
        json_set(a, json_at(meta, "labels"), OPERATOR_LABEL_CONTROLLER, json_string(a, t->rt->c->name));
        if (!json_at(meta, "annotations"))
                json_set(a, meta, "annotations", json_object(a));
        json_set(a, json_at(meta, "annotations"), OPERATOR_ANNOTATION_PLAN, json_string(a, hash));
        t->target_hash = hash;
        return o;
}

static void on_looked_at_existing(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct json *found;
        const char *owner;

        t->call = NULL;
        if (err) {
                write_failed(t, err);
                return;
        }
        found = parse_answer(t, answer);
        owner = meta_controller_uid(found);
        if (!owner || !streq(owner, meta_str(t->view.request, "uid"))) {
                name_conflict(t);
                return;
        }
        /* Ours: the answer to an earlier create was lost. */
        expect_version(t->item, t->target, meta_str(found, "resourceVersion"));
        next_step(t);
}

static void on_created(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct kube_request r = {.verb = KUBE_GET, .type = t->target->type, .name = t->target_name};

        t->call = NULL;
        if (err && err->code == E_EXISTS) {
                send(t, &r, on_looked_at_existing);
                return;
        }
        if (err) {
                write_failed(t, err);
                return;
        }
        expect_version(t->item, t->target, meta_str(parse_answer(t, answer), "resourceVersion"));
        next_step(t);
}

static void on_applied(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct json *got;

        t->call = NULL;
        if (err) {
                write_failed(t, err);
                return;
        }
        got = parse_answer(t, answer);
        expect_version(t->item, t->target, meta_str(got, "resourceVersion"));
        if (meta_str(got, "uid") && !contains(got, t->creating->json))
                settled_remember(t->item, meta_str(got, "uid"), meta_str(got, "resourceVersion"),
                                 t->target_hash);
        next_step(t);
}

static bool apply_one(struct task *t, const struct object *seen, struct json *o)
{
        const char *version = meta_str(seen->json, "resourceVersion");
        const char *plan = json_str(json_at(json_at(seen->json, "metadata"), "annotations"),
                                    OPERATOR_ANNOTATION_PLAN);
        struct json *meta = json_at(o, "metadata");
        struct kube_request r = {.verb = KUBE_APPLY, .type = seen->type, .name = seen->name, .force = true};

        if (streq(plan, t->target_hash) && contains(seen->json, o))
                return false;
        if (settled_known(t->item, seen->uid, version, t->target_hash))
                return false;
        json_set(&t->arena, meta, "uid", json_string(&t->arena, seen->uid));
        json_set(&t->arena, meta, "resourceVersion", json_string(&t->arena, version));
        r.body = str_of(json_print(&t->arena, o));
        json_remove(meta, "uid");
        json_remove(meta, "resourceVersion");
        send(t, &r, on_applied);
        return true;
}

static bool ensure_one(struct task *t, struct must_exist *e)
{
        const char *name = meta_str(e->json, "name");
        const struct object *seen = view_child(&t->view, e->type, name);
        struct kube_request r = {.verb = KUBE_CREATE, .type = e->type};
        struct json *o;

        t->target = runtime_source(t->rt, e->type);
        t->target_name = name;
        t->creating = e;
        if (!t->target || !name || (seen && e->how == EXIST_ONCE))
                return false;
        o = dress(t, e);
        if (seen)
                return apply_one(t, seen, o);
        r.body = str_of(json_print(&t->arena, o));
        send(t, &r, on_created);
        return true;
}

/* ---- status */

static void on_status_written(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;

        t->call = NULL;
        if (err && err->code == E_NOT_FOUND) { /* deleted meanwhile: the cache will say so */
                next_step(t);
                return;
        }
        if (err && t->stalled_reason) { /* not even that could be told */
                runtime_finished(t, QUEUE_RETRY, RESULT_ERROR);
                return;
        }
        if (err) {
                write_failed(t, err);
                return;
        }
        expect_version(t->item, &t->rt->sources[0], meta_str(parse_answer(t, answer), "resourceVersion"));
        next_step(t);
}

/* What carrying out has run into, on top of what settle said. */
static struct json *stalled_status(struct task *t, struct json *status)
{
        struct arena *a = &t->arena;
        struct json *list;

        if (!status)
                status = json_is(json_at(t->view.request, "status"), JSON_OBJECT)
                                         ? json_copy(a, json_at(t->view.request, "status"))
                                         : json_object(a);
        list = json_at(status, "conditions");
        for (struct json *c = json_first(list), *next; c; c = next) {
                next = json_next(list, c);
                if (streq(json_str(c, "type"), "Ready") || streq(json_str(c, "type"), "Stalled"))
                        json_take(list, c);
        }
        decide_condition(&t->view, status, "Ready", "False", t->stalled_reason, t->stalled_message);
        decide_condition(&t->view, status, "Stalled", "True", t->stalled_reason, t->stalled_message);
        return status;
}

static bool write_status(struct task *t)
{
        struct arena *a = &t->arena;
        struct json *status = t->decision.status, *body;
        const struct json *req = t->view.request;
        struct kube_request r = {.verb = KUBE_APPLY, .type = t->rt->c->type, .name = t->name, .force = true};

        if (t->stalled_reason)
                status = stalled_status(t, status);
        if (!status || json_equal(status, json_at(req, "status")))
                return false;
        if (t->stalled_reason)
                decide_event(&t->decision, &t->view, EVENT_WARNING, t->stalled_reason, "%s",
                             t->stalled_message);
        body = json_build(
                        a,
                        "{'apiVersion': %s, 'kind': %s, 'metadata': {'name': %s, 'namespace': %s, 'uid': %s, "
                        "'resourceVersion': %s}}",
                        kube_api_version(t->rt->c->type, a), t->rt->c->type->kind, t->name, t->ns,
                        meta_str(req, "uid"), meta_str(req, "resourceVersion"));
        if (t->rt->c->type->has_status) {
                r.subresource = "status";
                json_set(a, body, "status", status);
        } else {
                json_set(a, json_at(body, "metadata"), "annotations",
                         json_build(a, "{'" OPERATOR_ANNOTATION_STATUS "': %s}", json_print(a, status)));
        }
        r.body = str_of(json_print(a, body));
        send(t, &r, on_status_written);
        return true;
}

/* ---- the sequence */

static void next_step(struct task *t)
{
        struct decision *d = &t->decision;

        for (;;) {
                size_t i = t->step++;

                if (i < d->absent.n) {
                        if (delete_one(t, &d->absent.v[i]))
                                return;
                } else if (i < d->absent.n + d->exist.n) {
                        if (!t->stalled_reason && ensure_one(t, &d->exist.v[i - d->absent.n]))
                                return;
                } else if (i == d->absent.n + d->exist.n) {
                        if (write_status(t))
                                return;
                } else {
                        finish(t);
                        return;
                }
        }
}

void carry_out(struct task *t)
{
        t->step = 0;
        next_step(t);
}
