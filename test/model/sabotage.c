/*
 * The mistakes, and how they are made.
 */
#include "model/sabotage.h"

const char *const bug_names[BUG_MAX_] = {
        [BUG_NONE] = "no mistake",
        [BUG_NAME_ANEW] = "the Job's name is derived anew",
        [BUG_CACHE_IS_TRUTH] = "what the cache does not have counts as gone",
        [BUG_LATE_WORD] = "what comes after the end is settled once more",
        [BUG_IMPATIENT] = "a Job that is being deleted counts as gone",
        [BUG_SUSPENDED_SUCCESS] = "a suspended request does not look for its success",
        [BUG_ANY_POD] = "one pod's record is taken for the next one's",
        [BUG_STATUS_FIRST] = "the status is written before what it tells of is done",
        [BUG_BY_NAME] = "writes and deletes go by the name alone",
        [BUG_ADOPTS] = "what exists already is taken for our own",
        [BUG_EAGER] = "what is left of a run with an outcome counts as gone",
        [BUG_FORGETS] = "that the plain Job was made is not remembered",
        [BUG_TELLS_EARLY] = "the plain Job is told of as soon as it has a name",
        [BUG_STAYS_TRUE] = "what was true of the run stays true",
        [BUG_STAYS_FAILED] = "Failed stays True when another run is begun",
        [BUG_FORGETS_SEEN] = "a failure does not say which generation it is of",
        [BUG_RAW_PERCENT] = "the percentage is the last that was reported",
        [BUG_DEAF] = "the end of the plain Job is not noticed",
        [BUG_LEAKS] = "the product has no owner",
        [BUG_NO_MEASURES] = "the product is made, and its status forgotten",
        [BUG_ONE_POD] = "the first pod's success is all",
        [BUG_JUMPS] = "nobody waits for his turn",
        [BUG_HASTY] = "what has ended goes at once",
        [BUG_FORGETFUL] = "a run rests too early",
        [BUG_FICKLE] = "a decision depends on more than its view",
        [BUG_ASKS_ON] = "each answer brings the next look-up",
        [BUG_OTHER_SPEC] = "a Job is made of the spec as it is now",
        [BUG_KILLS] = "the Job of the attempt under way is deleted",
        [BUG_BACKGROUND] = "Jobs are deleted before their pods",
        [BUG_SWEEPS] = "the status ConfigMap is deleted early",
        [BUG_NO_ROW] = "the history gets no row",
        [BUG_OTHER_ROW] = "the history gets another outcome",
        [BUG_CANCELS] = "every request counts as cancelled",
        [BUG_TIMES_OUT] = "every request has a timeout",
        [BUG_RETRIES] = "spec.retries is not read",
        [BUG_REHASH] = "the hash of the spec changes within an attempt",
        [BUG_SKIPS] = "the first attempt is the second",
        [BUG_UNKNOWN] = "the status has a member that the schema does not have",
        [BUG_TOLD] = "a workload that was told to end counts as one that has ended",
        [BUG_RELAY_CODE] = "the relay's exit code is taken for the workload's",
        [BUG_NO_RESULT] = "the result is not in the status",
        [BUG_ACCEPTS_ALL] = "a spec that was refused counts as observed",
        [BUG_QUEUE_STAYS] = "status.queue stays after the admission",
        [BUG_KEEPS_SLOT] = "what has ended keeps its slot",
        [BUG_CANCELLED_SUCCESS] = "a cancelled request does not look for its success",
        [BUG_CLAIMED] = "the next attempt has a number that a pod has claimed",
        [BUG_RESTARTS] = "startedAt is the time of the last report",
};

static bool is(const struct model *m, enum bug bug)
{
        return m->scenario->bug == bug;
}

static void hide_children(struct view *v, bool (*hidden)(const struct view *v, const struct object *o))
{
        struct object *kept = arena_alloc(v->arena, (v->n_children + 1) * sizeof(*kept));
        size_t n = 0;

        for (size_t i = 0; i < v->n_children; i++)
                if (!hidden(v, &v->children[i]))
                        kept[n++] = v->children[i];
        v->children = kept;
        v->n_children = n;
}

static bool is_being_deleted(const struct json *object)
{
        return meta_str(object, "deletionTimestamp");
}

static bool is_dying_job(const struct view *v, const struct object *o)
{
        return o->type == &KUBE_JOB && is_being_deleted(o->json);
}

/* The spec has MEMBER, and the run goes on. */
static bool is_asked_to(const struct view *v, const char *member)
{
        return json_bool(json_at(v->request, "spec"), member, false) &&
               !json_str(json_at(json_at(v->request, "status"), "run"), "outcome");
}

/* No success is looked for. */
static bool looks_away(const struct model *m, const struct view *v)
{
        return (is(m, BUG_SUSPENDED_SUCCESS) && is_asked_to(v, "suspend")) ||
               (is(m, BUG_CANCELLED_SUCCESS) && is_asked_to(v, "cancel"));
}

static bool is_no_job(const struct view *v, const struct object *o)
{
        return o->type != &KUBE_JOB;
}

static bool is_of_run(const struct json *job)
{
        return json_at(json_at(json_at(job, "metadata"), "labels"), RUN_LABEL_ATTEMPT);
}

static bool is_left_of_run(const struct view *v, const struct object *o)
{
        return o->type == &KUBE_JOB && is_of_run(o->json) &&
               json_str(json_at(json_at(v->request, "status"), "run"), "outcome");
}

/* The condition of that type is not there. */
static void forget_condition(struct view *v, const char *type)
{
        struct json *request = json_copy(v->arena, v->request), *kept = json_array(v->arena);

        json_foreach (c, json_at(json_at(request, "status"), "conditions"))
                if (!streq(json_str(c, "type"), type))
                        json_append(kept, json_copy(v->arena, c));
        if (json_at(request, "status"))
                json_set(v->arena, json_at(request, "status"), "conditions", kept);
        v->request = request;
}

static void forget_ends(struct view *v)
{
        for (size_t i = 0; i < v->n_children; i++)
                if (v->children[i].type == &KUBE_JOB && !is_of_run(v->children[i].json))
                        json_remove(json_at(v->children[i].json, "status"), "conditions");
}

/* As if it had not ended: its last state stays, and so does what it was called. */
static void forget_end(const struct model *m, struct view *v)
{
        const char *state = m->subject->state;
        struct json *request = json_copy(v->arena, v->request);
        struct json *status = json_at(request, "status"), *run = json_at(status, "run");

        if (!streq(json_str(status, state), "Failed"))
                return;
        json_set(v->arena, status, state, json_string(v->arena, "Profiling"));
        json_remove(run, "outcome");
        json_remove(run, "reason");
        v->request = request;
}

/* The fence's pod is not compared with the pod that there is. */
static void blur_fence(const struct model *m, struct view *v)
{
        const struct object *pod = NULL;

        for (size_t i = 0; i < v->n_children; i++)
                if (v->children[i].type == &KUBE_POD)
                        pod = &v->children[i];
        for (size_t i = 0; pod && i < v->n_children; i++)
                if (v->children[i].type == &KUBE_CONFIGMAP &&
                    streq(v->children[i].name, m->subject->status_map) &&
                    *json_str_or(json_at(v->children[i].json, "data"), RUN_KEY_POD, ""))
                        json_set(v->arena, json_at(v->children[i].json, "data"), RUN_KEY_POD,
                                 json_string(v->arena, pod->uid));
}

/* The exit does not say that it was asked for. */
static void blur_exit(const struct model *m, struct view *v)
{
        for (size_t i = 0; i < v->n_children; i++) {
                struct json *data = json_at(v->children[i].json, "data");

                if (v->children[i].type == &KUBE_CONFIGMAP &&
                    strstr(json_str_or(data, RUN_KEY_EXIT, ""), "told")) {
                        json_set(v->arena, data, RUN_KEY_EXIT, json_string(v->arena, "{\"code\": 0}"));
                        json_set(v->arena, data, RUN_KEY_STATE, json_string(v->arena, "Succeeded"));
                }
                if (v->children[i].type == &KUBE_POD)
                        json_remove(json_at(v->children[i].json, "metadata"), "deletionTimestamp");
        }
}

static struct json *terminated(const struct json *container)
{
        return json_at(json_at(container, "state"), "terminated");
}

static void spread_exit_code(struct view *v)
{
        for (size_t i = 0; i < v->n_children; i++) {
                struct json *list = json_at(json_at(v->children[i].json, "status"), "containerStatuses");
                int64_t code = json_int(terminated(json_find_named(list, "relay")), "exitCode", 0);

                json_foreach (c, list)
                        if (code && terminated(c))
                                json_set(v->arena, terminated(c), "exitCode", json_i64(v->arena, code));
        }
}

/* As if the spec as it is now were the one that the attempt was begun with. */
static void overlook_edit(struct view *v)
{
        struct json *request = json_copy(v->arena, v->request), *status = json_at(request, "status");

        if (status)
                json_set(v->arena, status, "observedGeneration",
                         json_copy(v->arena, json_at(json_at(request, "metadata"), "generation")));
        v->request = request;
}

void sabotage_view(struct model *m, struct view *v)
{
        if (is(m, BUG_OTHER_SPEC))
                overlook_edit(v);
        if (is(m, BUG_TOLD))
                blur_exit(m, v);
        if (is(m, BUG_RELAY_CODE))
                spread_exit_code(v);
        if (is(m, BUG_IMPATIENT))
                hide_children(v, is_dying_job);
        if (looks_away(m, v))
                hide_children(v, is_no_job);
        if (is(m, BUG_ANY_POD))
                blur_fence(m, v);
        if (is(m, BUG_EAGER))
                hide_children(v, is_left_of_run);
        if (is(m, BUG_FORGETS))
                forget_condition(v, "ExecutionJobCreated");
        if (is(m, BUG_DEAF))
                forget_ends(v);
}

static void set_of_spec(struct view *v, const char *member, struct json *value)
{
        v->request = json_copy(v->arena, v->request);
        json_set(v->arena, json_at(v->request, "spec"), member, value);
}

void sabotage_settle(struct model *m, struct view *v)
{
        static const struct admission admitted = {.admitted = true, .reason = ""};

        if (is(m, BUG_LATE_WORD))
                forget_end(m, v);
        if (is(m, BUG_JUMPS))
                v->admission = &admitted;
        if (is(m, BUG_ONE_POD))
                set_of_spec(v, "pods", json_i64(v->arena, 1));
        if (is(m, BUG_HASTY))
                set_of_spec(v, "ttlSecondsAfterFinished", json_i64(v->arena, 0));
        if (is(m, BUG_CANCELS))
                set_of_spec(v, "cancel", json_truth(v->arena, true));
        if (is(m, BUG_TIMES_OUT))
                set_of_spec(v, m->subject->timeout_in ? m->subject->timeout_in : "timeout",
                            m->subject->timeout_in ? json_build(v->arena, "{'timeout': '1s'}")
                                                   : json_string(v->arena, "1s"));
        if (is(m, BUG_RETRIES))
                set_of_spec(v, "retries", json_i64(v->arena, RUN_RETRIES_MAX));
}

/* What was True stays so. */
static void keep_true(const struct view *v, struct json *status, const char *type)
{
        const struct json *before = view_condition(v, type);

        if (streq(json_str(before, "status"), "True"))
                decide_condition(v, status, type, "True", json_str(before, "reason"),
                                 json_str(before, "message"));
}

static void tell_raw_percent(struct model *m, const struct view *v, struct json *status)
{
        const struct object *map = view_child(v, &KUBE_CONFIGMAP, m->subject->status_map);
        struct str text = json_text(json_at(json_at(map ? map->json : NULL, "data"), RUN_KEY_STATUS));
        const struct json *report = text.p ? json_parse(v->arena, text, NULL, NULL) : NULL;

        if (json_at(report, "overallPercentage") && json_at(status, "progress"))
                json_set(v->arena, json_at(status, "progress"), "percent",
                         json_copy(v->arena, json_at(report, "overallPercentage")));
}

static void sabotage_run(struct model *m, const struct view *v, struct json *status)
{
        const struct json *before = json_at(v->request, "status");
        struct json *run = json_at(status, "run"), *progress = json_at(status, "progress");
        int64_t attempt = json_int(json_at(before, "run"), "attempt", 0);
        char text[TIME_TEXT_MAX];

        if (is(m, BUG_REHASH) && run)
                json_set(v->arena, run, "specHash",
                         json_string(v->arena, json_str_or(status, m->subject->state, "")));
        if (is(m, BUG_SKIPS) && run && !json_at(before, "run"))
                json_set(v->arena, run, "attempt", json_i64(v->arena, 2));
        if (is(m, BUG_CLAIMED) && json_int(run, "attempt", 0) > attempt && attempt)
                json_set(v->arena, run, "attempt", json_i64(v->arena, attempt + 1));
        if (is(m, BUG_RESTARTS) && json_at(progress, "startedAt"))
                json_set(v->arena, progress, "startedAt",
                         json_string(v->arena, time_format(v->now + (usec_t)json_int(progress, "percent", 0) *
                                                                            USEC_PER_SEC,
                                                           text)));
}

static bool is_refused(const struct json *status)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "SpecAccepted"))
                        return streq(json_str(c, "status"), "False");
        return false;
}

static void sabotage_status(struct model *m, const struct view *v, struct json *status)
{
        const struct json *queue = json_at(json_at(v->request, "status"), "queue");

        sabotage_run(m, v, status);
        if (is(m, BUG_UNKNOWN))
                json_set(v->arena, status, "unknown", json_string(v->arena, "x"));
        if (is(m, BUG_NO_RESULT))
                json_remove(status, "result");
        if (is(m, BUG_ACCEPTS_ALL) && is_refused(status))
                json_set(v->arena, status, "observedGeneration",
                         json_copy(v->arena, json_at(json_at(v->request, "metadata"), "generation")));
        if (is(m, BUG_QUEUE_STAYS) && queue && !json_at(status, "queue"))
                json_set(v->arena, status, "queue", json_copy(v->arena, queue));
        if (is(m, BUG_STAYS_TRUE)) {
                keep_true(v, status, "ProfilingPending");
                keep_true(v, status, "ProfilingRunning");
        }
        if (is(m, BUG_STAYS_FAILED))
                keep_true(v, status, "Failed");
        if (is(m, BUG_TELLS_EARLY) && json_at(status, "executionJobName"))
                decide_condition(v, status, "ExecutionJobCreated", "True", "JobCreated", "m");
        if (is(m, BUG_FORGETS_SEEN) && streq(json_str(status, m->subject->state), "Failed"))
                json_remove(status, "observedGeneration");
        if (is(m, BUG_RAW_PERCENT))
                tell_raw_percent(m, v, status);
}

void sabotage_wants(struct model *m, const struct view *v, struct decision *d)
{
        const struct want more = {.kind = WANT_OBJECT,
                                  .type = &KUBE_JOB,
                                  .name = arena_printf(v->arena, "more-%zu", v->n_answers)};

        if (is(m, BUG_ASKS_ON))
                decide_want(d, v, &more);
}

/* The history's row, and what it says. */
static void sabotage_row(struct model *m, const struct view *v, struct decision *d)
{
        struct history_row *row = d->row ? arena_memdup(v->arena, d->row, sizeof(*row)) : NULL;

        if (row && is(m, BUG_OTHER_ROW))
                row->outcome = streq(row->outcome, "Failed") ? "Succeeded" : "Failed";
        d->row = is(m, BUG_NO_ROW) ? NULL : row;
}

static void sabotage_deletes(struct model *m, const struct view *v, struct decision *d)
{
        const struct object *map = view_child(v, &KUBE_CONFIGMAP, m->subject->status_map);

        if (is(m, BUG_SWEEPS) && map)
                decide_absent(d, map);
        for (size_t i = 0; is(m, BUG_KILLS) && i < v->n_children; i++)
                if (v->children[i].type == &KUBE_JOB)
                        decide_absent_foreground(d, &v->children[i]);
        for (size_t i = 0; is(m, BUG_BACKGROUND) && i < d->absent.n; i++)
                d->absent.v[i].propagation = "Background";
}

void sabotage_decision(struct model *m, const struct view *v, struct decision *d)
{
        sabotage_row(m, v, d);
        sabotage_deletes(m, v, d);
        if (is(m, BUG_FICKLE))
                d->again_at = v->now + m->evaluations * USEC_PER_SEC;
        if (is(m, BUG_KEEPS_SLOT) && json_at(json_at(d->status, "run"), "outcome"))
                d->admission.stand = ADMISSION_HOLDS;
        if (d->status)
                sabotage_status(m, v, d->status);
        if (is(m, BUG_FORGETFUL))
                d->rests = true;
        for (size_t i = 0; is(m, BUG_NO_MEASURES) && i < d->exist.n; i++)
                d->exist.v[i].status = NULL;
        for (size_t i = 0; is(m, BUG_NAME_ANEW) && i < d->exist.n; i++)
                if (d->exist.v[i].type == &KUBE_JOB)
                        json_set(v->arena, json_at(d->exist.v[i].json, "metadata"), "name",
                                 json_string(v->arena, m->subject->job));
}

static const struct answer *answer_with(const struct view *v, const struct want *want,
                                        const struct json *object)
{
        struct answer *answer = arena_zalloc(v->arena, sizeof(*answer));

        answer->want = *want;
        answer->json = object;
        return answer;
}

const struct answer *sabotage_answer(struct model *m, const struct view *v, const struct want *want,
                                     const struct json *found)
{
        const struct object *cached;

        if (want->kind != WANT_OBJECT)
                return NULL;
        if (looks_away(m, v) && streq(want->name, m->subject->status_map))
                return answer_with(v, want, NULL);
        if (is(m, BUG_IMPATIENT) && want->type == &KUBE_JOB && is_being_deleted(found))
                return answer_with(v, want, NULL);
        if (is(m, BUG_CACHE_IS_TRUTH) &&
            (want->type == &KUBE_JOB || streq(want->name, m->subject->status_map))) {
                cached = view_child(v, want->type, want->name);
                return answer_with(v, want, cached ? cached->json : NULL);
        }
        return NULL;
}
