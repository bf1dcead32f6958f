/*
 * The mistakes, and how they are made.
 */
#include "model/sabotage.h"

#include "kinds/run_control.h"

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

/* As if it had not ended: its last state stays, and so does what it was called. */
static void forget_end(struct view *v)
{
        struct json *request = json_copy(v->arena, v->request);
        struct json *status = json_at(request, "status"), *run = json_at(status, "run");

        if (!streq(json_str(status, "state"), "Failed"))
                return;
        json_set(v->arena, status, "state", json_string(v->arena, "Profiling"));
        json_remove(run, "outcome");
        json_remove(run, "reason");
        v->request = request;
}

/* The fence's pod is not compared with the pod that there is. */
static void blur_fence(struct view *v)
{
        const struct object *pod = NULL;

        for (size_t i = 0; i < v->n_children; i++)
                if (v->children[i].type == &KUBE_POD)
                        pod = &v->children[i];
        for (size_t i = 0; pod && i < v->n_children; i++)
                if (v->children[i].type == &KUBE_CONFIGMAP && streq(v->children[i].name, STATUS_MAP) &&
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
                blur_fence(v);
}

void sabotage_settle(struct model *m, struct view *v)
{
        if (is(m, BUG_LATE_WORD))
                forget_end(v);
}

void sabotage_decision(struct model *m, const struct view *v, struct decision *d)
{
        for (size_t i = 0; is(m, BUG_NAME_ANEW) && i < d->exist.n; i++)
                if (d->exist.v[i].type == &KUBE_JOB)
                        json_set(v->arena, json_at(d->exist.v[i].json, "metadata"), "name",
                                 json_string(v->arena, "profile-r"));
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
        if (is(m, BUG_SUSPENDED_SUCCESS) && is_suspended(v) && streq(want->name, STATUS_MAP))
                return answer_with(v, want, NULL);
        if (is(m, BUG_IMPATIENT) && want->type == &KUBE_JOB && is_being_deleted(found))
                return answer_with(v, want, NULL);
        if (is(m, BUG_CACHE_IS_TRUTH) && (want->type == &KUBE_JOB || streq(want->name, STATUS_MAP))) {
                cached = view_child(v, want->type, want->name);
                return answer_with(v, want, cached ? cached->json : NULL);
        }
        return NULL;
}
