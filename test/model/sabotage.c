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

static bool is_suspended(const struct view *v)
{
        return json_bool(json_at(v->request, "spec"), "suspend", false) &&
               !json_str(json_at(json_at(v->request, "status"), "run"), "outcome");
}

static bool tells_of_success(const struct view *v, const struct object *o)
{
        return is_suspended(v) && o->type != &KUBE_JOB;
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

void sabotage_view(struct model *m, struct view *v)
{
        if (is(m, BUG_IMPATIENT))
                hide_children(v, is_dying_job);
        if (is(m, BUG_SUSPENDED_SUCCESS))
                hide_children(v, tells_of_success);
        if (is(m, BUG_ANY_POD))
                blur_fence(m, v);
        if (is(m, BUG_EAGER))
                hide_children(v, is_left_of_run);
        if (is(m, BUG_FORGETS))
                forget_condition(v, "ExecutionJobCreated");
        if (is(m, BUG_DEAF))
                forget_ends(v);
}

static void set_of_spec(struct view *v, const char *member, int64_t number)
{
        v->request = json_copy(v->arena, v->request);
        json_set(v->arena, json_at(v->request, "spec"), member, json_i64(v->arena, number));
}

void sabotage_settle(struct model *m, struct view *v)
{
        static const struct admission admitted = {.admitted = true, .reason = ""};

        if (is(m, BUG_LATE_WORD))
                forget_end(m, v);
        if (is(m, BUG_JUMPS))
                v->admission = &admitted;
        if (is(m, BUG_ONE_POD))
                set_of_spec(v, "pods", 1);
        if (is(m, BUG_HASTY))
                set_of_spec(v, "ttlSecondsAfterFinished", 0);
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

static void sabotage_status(struct model *m, const struct view *v, struct json *status)
{
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

void sabotage_decision(struct model *m, const struct view *v, struct decision *d)
{
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
        if (is(m, BUG_SUSPENDED_SUCCESS) && is_suspended(v) && streq(want->name, m->subject->status_map))
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
