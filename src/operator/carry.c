#include "operator/runtime.h"

#define STALL_AGAIN_MAX \
        (60 * USEC_PER_SEC)           /* whoever has mended it should not wait for the longest backoff */
#define AGAIN_MIN (100 * USEC_PER_MS) /* a moment that has passed must not become a busy loop */

enum { FAILS_LONG = 12 }; /* times in a row: half a minute */

/* False: nothing of it runs, and nothing will before somebody has mended what stands in the way. */
static bool may_run(const struct task *t)
{
        return (!t->stalled_reason && !item_ends(t->item, meta_str(t->view.request, "uid"))) || task_runs(t);
}

/* A slot that is not needed any more, or not as long as it is stalled. */
static void give_back(const struct task *t)
{
        const struct admission_id id = runtime_id(t);

        if (t->decision.admission.stand == ADMISSION_NONE)
                admissions_tell(t->rt->op->admissions, &id, &t->decision.admission);
        else if (!may_run(t))
                admissions_yield(t->rt->op->admissions, &id);
}

/* From then on it is of use: how long a start takes is seen by this. */
static void tell_first(const struct task *t)
{
        struct operator* o = t->rt->op;

        if (o->decided)
                return;
        o->decided = true;
        LOG_INFO(loop_log(o->cfg.loop), "Carried out the first decision", F_STR("controller", t->rt->c->name),
                 F_STR("namespace", t->ns), F_STR("name", t->name),
                 F_UINT("after_ms", usec_sub(loop_now(o->cfg.loop), o->made_at) / USEC_PER_MS));
}

/*
 * The steps of a decision: what must not exist, what must exist, the status, the events. Each step either has nothing
 * to do or sends one request and goes on from its answer.
 */
static void finish(struct task *t)
{
        tell_first(t);
        if (t->rt->op->admissions)
                give_back(t);
        for (size_t i = 0; i < t->decision.events.n; i++)
                events_record(t->rt->events, t->view.request, &t->decision.events.v[i]);
        if (t->decision.again_at) {
                usec_t now = loop_wall(t->rt->op->cfg.loop);

                queue_add_after(t->rt->queue, str_of(t->item->key),
                                MAX(usec_sub(t->decision.again_at, now), AGAIN_MIN));
        }
        if (t->cleanup_refused || (t->stalled_reason && stall_tries_again(t))) {
                queue_add_after(t->rt->queue, str_of(t->item->key), STALL_AGAIN_MAX);
                runtime_finished(t, QUEUE_RETRY, RESULT_ERROR);
        } else if (t->stalled_reason)
                runtime_finished(t, QUEUE_GIVE_UP, RESULT_ERROR);
        else {
                retire(t);
                runtime_finished(t, QUEUE_OK, t->decision.again_at ? RESULT_REQUEUE_AFTER : RESULT_SUCCESS);
        }
}

/* ---- failures */

/* One that fails again and again does not keep others waiting. */
static void give_way(const struct task *t)
{
        const struct admission_id id = runtime_id(t);

        if (queue_failures(t->rt->queue, str_of(t->item->key)) >= FAILS_LONG && !task_runs(t))
                admissions_yield(t->rt->op->admissions, &id);
}

void carry_later(struct task *t, usec_t retry_after)
{
        if (t->rt->op->admissions)
                give_way(t);
        if (retry_after)
                queue_add_after(t->rt->queue, str_of(t->item->key), retry_after);
        runtime_finished(t, retry_after ? QUEUE_OK : QUEUE_RETRY, RESULT_ERROR);
}

static bool refused_for_good(const struct err *err)
{
        return err->code == E_REFUSED || err->code == E_TOO_LARGE;
}

static void decide_later(struct task *t, const struct kube_answer *answer, const struct err *err)
{
        const struct log *log = loop_log(t->rt->op->cfg.loop);

        if (err->code != E_CONFLICT && err->code != E_FENCED && err->code != E_CANCELED)
                LOG_WARN(log, "A write failed; deciding again later", F_STR("controller", t->rt->c->name),
                         F_STR("namespace", t->ns), F_STR("name", t->name), F_ERR(err));
        carry_later(t, answer ? answer->retry_after : 0);
}

/* What somebody must mend is told on the request; everything else is decided again later. */
void carry_failed(struct task *t, const struct kube_answer *answer, const struct err *err)
{
        if (stall_by(t, answer, err))
                carry_next(t);
        else
                decide_later(t, answer, err);
}

/* ---- one request */

void carry_send(struct task *t, struct kube_request *r, kube_done done)
{
        r->ns = t->ns;
        t->doing = r->verb;
        t->doing_type = r->type;
        t->doing_part = r->subresource;
        if (r->verb != KUBE_GET) {
                r->field_manager = t->rt->manager;
                r->may_send = runtime_may_send;
                r->may_send_arg = t->rt;
        }
        if (r->verb == KUBE_DELETE)
                r->field_manager = NULL;
        t->call = kube_send(t->rt->op->cfg.kube, r, done, t);
}

struct json *carry_parse(struct task *t, const struct kube_answer *answer)
{
        return json_parse(&t->arena, answer->body, NULL, NULL);
}

const char *carry_version(struct task *t, const struct kube_answer *answer)
{
        return meta_str(json_parse(&t->arena, answer->body, &KUBE_VERSION_LIMITS, NULL), "resourceVersion");
}

struct json *carry_body(struct task *t, const struct kube_type *type, const struct json *of)
{
        return json_build(
                &t->arena,
                "{'apiVersion': %s, 'kind': %s, 'metadata': {'name': %s, 'namespace': %s, 'uid': %s, "
                "'resourceVersion': %s}}",
                kube_api_version(type, &t->arena), type->kind, meta_str(of, "name"), t->ns,
                meta_str(of, "uid"), meta_str(of, "resourceVersion"));
}

const char *carry_hash(struct task *t, const struct json *what)
{
        static const char digits[] = "0123456789abcdef";
        uint64_t hash = json_hash(what);
        char *text = arena_alloc(&t->arena, 17);

        for (size_t i = 16; i--; hash >>= 4)
                text[i] = digits[hash & 15];
        text[16] = '\0';
        return text;
}

/* ---- what must not exist */

/* What is in the way of a delete is no word about the request, whose outcome may be told: an event, and tried again. */
static void cleanup_refused(struct task *t, const struct err *err)
{
        events_record(
                t->rt->events, t->view.request,
                &(struct event){.type = EVENT_WARNING,
                                .reason = err->code == E_FORBIDDEN ? "CleanupForbidden" : "CleanupRefused",
                                .note = err->text});
        t->cleanup_refused = true;
        carry_next(t);
}

static void on_deleted(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;

        t->call = NULL;
        if (err && (err->code == E_FORBIDDEN || refused_for_good(err))) {
                cleanup_refused(t, err);
                return;
        }
        if (err && err->code != E_NOT_FOUND) {
                carry_failed(t, answer, err);
                return;
        }
        if (t->target)
                expect_gone(t->item, t->target, t->target_name);
        carry_next(t);
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
        if (meta_str(gone->object->json, "deletionTimestamp"))
                return false;
        carry_send(t, &r, on_deleted);
        return true;
}

/* ---- status */

/* Once: when it is not what the request's status said before. */
static void announce_stall(struct task *t)
{
        if (stall_is_told(t))
                return;
        LOG_ERROR(loop_log(t->rt->op->cfg.loop), "A request cannot be carried out",
                  F_STR("controller", t->rt->c->name), F_STR("namespace", t->ns), F_STR("name", t->name),
                  F_STR("reason", t->stalled_reason), F_STR("error", t->stalled_message));
        decide_event(&t->decision, &t->view, EVENT_WARNING, t->stalled_reason, "%s", t->stalled_message);
}

/* Not even that could be told. */
static void stall_untold(struct task *t, const struct kube_answer *answer, const struct err *err)
{
        if (err->code != E_CONFLICT && err->code != E_CANCELED)
                LOG_ERROR(loop_log(t->rt->op->cfg.loop),
                          "A request cannot be carried out, and its status cannot say so",
                          F_STR("controller", t->rt->c->name), F_STR("namespace", t->ns),
                          F_STR("name", t->name), F_STR("reason", t->stalled_reason),
                          F_STR("message", t->stalled_message), F_ERR(err));
        queue_add_after(t->rt->queue, str_of(t->item->key), STALL_AGAIN_MAX);
        carry_later(t, answer->retry_after);
}

static void on_status_written(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        const char *uid = meta_str(t->view.request, "uid"), *version;

        t->call = NULL;
        if (err && err->code == E_NOT_FOUND) { /* deleted meanwhile: the cache will say so */
                carry_next(t);
                return;
        }
        if (err && t->stalled_reason) {
                stall_untold(t, answer, err);
                return;
        }
        if (err && refused_for_good(err)) { /* the status that is there says why it is not the new one */
                stall_by(t, answer, err);
                t->step--;
                carry_next(t);
                return;
        }
        if (err) {
                decide_later(t, answer, err);
                return;
        }
        version = carry_version(t, answer);
        expect_version(t->item, &t->rt->sources[0], version);
        if (version) /* whatever is there at this version is what the server has made of ours */
                settled_remember(t->item, uid, version, t->target_hash);
        if (t->stalled_reason)
                announce_stall(t);
        carry_next(t);
}

static void send_status(struct task *t, struct json *status)
{
        struct arena *a = &t->arena;
        struct json *body = carry_body(t, t->rt->c->type, t->view.request);
        struct kube_request r = {.verb = KUBE_APPLY,
                                 .type = t->rt->c->type,
                                 .name = t->name,
                                 .force = true,
                                 .metadata_only = true};

        if (t->rt->c->type->has_status) {
                r.subresource = "status";
                json_set(a, body, "status", status);
        } else {
                json_set(a, json_at(body, "metadata"), "annotations",
                         json_build(a, "{'" OPERATOR_ANNOTATION_STATUS "': %s}", json_print(a, status)));
        }
        r.body = str_of(json_print(a, body));
        carry_send(t, &r, on_status_written);
}

static void not_recorded(struct task *t, const char *reason, const char *note, const struct err *err)
{
        LOG_ERROR(loop_log(t->rt->op->cfg.loop), "The history does not take a run",
                  F_STR("controller", t->rt->c->name), F_STR("namespace", t->ns), F_STR("name", t->name),
                  F_STR("reason", reason), F_ERR(err));
        events_record(t->rt->events, t->view.request,
                      &(struct event){.type = EVENT_WARNING, .reason = reason, .note = note});
}

/* A row that is refused for what is in it is refused the next time, too: the request ends without, and says so for good. */
static void tell_recorded(struct task *t, const struct err *err)
{
        const struct json *before = view_condition(&t->view, "Recorded");
        const char *note;

        if (!err) {
                if (streq(json_str(before, "status"), "False")) /* of an earlier attempt */
                        decide_condition(&t->view, t->decision.status, "Recorded", "True", "Recorded",
                                         "the history has the run");
                return;
        }
        note = arena_printf(&t->arena,
                            "the run has ended, but it is not in the history, which refuses it: %s",
                            err->text);
        not_recorded(t, "HistoryRefused", note, err);
        decide_condition(&t->view, t->decision.status, "Recorded", "False", "HistoryRefused", note);
}

static void on_recorded(void *arg, const struct err *err)
{
        struct task *t = arg;

        if (err && !refused_for_good(err)) {
                not_recorded(t, "HistoryUnavailable",
                             arena_printf(&t->arena,
                                          "the run has ended, but the history does not take it: %s",
                                          err->text),
                             err);
                carry_later(t, 0);
                return;
        }
        tell_recorded(t, err);
        t->recorded = true;
        t->step--;
        carry_next(t);
}

/* A status that says that a run has ended is not written before the run is in the history. */
static bool record_row(struct task *t)
{
        struct history *history = t->rt->op->cfg.history;

        if (!t->decision.row || !history || t->recorded || t->stalled_reason)
                return false;
        history_record(history, t->decision.row, on_recorded, t);
        return true;
}

static bool write_status(struct task *t)
{
        struct json *status = t->decision.status;
        const struct json *req = t->view.request;

        if (t->stalled_reason) {
                status = stall_tell(t);
                t->decision.events.n = 0; /* they tell of what is not so */
        } else if (!item_ends(t->item, meta_str(req, "uid"))) {
                status = stall_clear(t, status);
        }
        if (!status)
                return false;
        if (json_equal(status, json_at(req, "status"))) {
                settled_forget(t->item, meta_str(req, "uid"));
                return false;
        }
        /* It differs by what others wrote, or by what the server made of ours: writing it again would change nothing. */
        t->target_hash = carry_hash(t, status);
        if (settled_known(t->item, meta_str(req, "uid"), meta_str(req, "resourceVersion"), t->target_hash))
                return false;
        if (record_row(t))
                return true;
        send_status(t, status);
        return true;
}

/* ---- the sequence */

void carry_next(struct task *t)
{
        struct decision *d = &t->decision;
        bool ends = item_ends(t->item, meta_str(t->view.request, "uid"));

        for (;;) {
                size_t i = t->step++;

                if (i < d->absent.n) {
                        if (delete_one(t, &d->absent.v[i]))
                                return;
                } else if (i < d->absent.n + d->exist.n) {
                        if (!t->stalled_reason && !ends && child_ensure(t, &d->exist.v[i - d->absent.n]))
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

/* It is decided again when it may go on. */
void carry_nothing(struct task *t)
{
        t->decision.events.n = 0; /* they tell of what is not so */
        finish(t);
}

void carry_out(struct task *t)
{
        t->step = 0;
        carry_next(t);
}
