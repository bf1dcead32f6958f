/*
 * What has become of the execution Job. Its condition decides: there is no relay, and no record but the Job's own. What the
 * kubelet says of its pods explains it.
 */
#include "kinds/cuda/internal.h"
#include "kinds/run_internal.h"

struct sight {
        const struct view *v;
        struct decision *d;
        const struct object *job;
        struct run_pod *pods;
        size_t n;
};

/* ---- its pods */

static void add_pod(struct sight *s, const struct object *pod)
{
        run_pod_read(pod, &s->pods[s->n++]);
}

static void see_pods(struct sight *s)
{
        const struct view *v = s->v;

        s->n = 0;
        s->pods = arena_alloc(v->arena, (v->n_children + 1) * sizeof(*s->pods));
        for (size_t i = 0; i < v->n_children; i++)
                if (v->children[i].type == &KUBE_POD &&
                    streq(meta_controller_uid(v->children[i].json), s->job->uid))
                        add_pod(s, &v->children[i]);
}

/* As the server has them. False: the look-up is under way; that they cannot be had only means that nothing is known. */
static bool look_up_pods(struct sight *s)
{
        const struct want want = {.kind = WANT_PODS, .uid = s->job->uid};
        const struct answer *answer = decide_want(s->d, s->v, &want);
        const struct json *items = json_at(answer ? answer->json : NULL, "items");

        if (!answer)
                return false;
        s->n = 0;
        s->pods = arena_alloc(s->v->arena, (json_len(items) + 1) * sizeof(*s->pods));
        json_foreach (pod, items) {
                struct object *o = arena_new(s->v->arena, struct object);
                const struct json *meta = json_at(pod, "metadata");

                *o = (struct object){&KUBE_POD, pod, json_str_or(meta, "name", ""),
                                     json_str_or(meta, "uid", "")};
                add_pod(s, o);
        }
        return true;
}

static const struct run_pod *newest(const struct sight *s, bool (*is)(const struct run_pod *p))
{
        const struct run_pod *best = NULL;

        for (size_t i = 0; i < s->n; i++)
                if (is(&s->pods[i]) && (!best || s->pods[i].created > best->created))
                        best = &s->pods[i];
        return best;
}

static bool has_failed(const struct run_pod *p)
{
        return streq(p->phase, "Failed") || (p->ended && p->exit_code != 0);
}

static bool has_started(const struct run_pod *p)
{
        return p->started || p->over;
}

static bool is_waiting(const struct run_pod *p)
{
        return !has_started(p) && !p->asked_to_end;
}

/* ---- why it failed */

static const char *reason_or(const char *text, const char *otherwise)
{
        return run_reason_valid(str_of(text)) ? text : otherwise;
}

static void explain_end(const struct view *v, const struct run_pod *p, struct cuda_execution_seen *ret)
{
        const char *said = run_quote(v, str_of(p->end_message));

        if (run_pod_never_started(p)) {
                ret->reason = "WorkloadNotStarted";
                ret->sentence = run_sentence(v,
                                             "pod %s could not start the program: %s; check spec.command and "
                                             "that the image has it",
                                             p->object->name, said);
        } else {
                ret->reason = "WorkloadFailed";
                ret->sentence = run_sentence(
                        v, "the program exited with status %lld%s%s; see kubectl logs %s",
                        (long long)p->exit_code, *said ? ": " : "", said, p->object->name);
        }
}

static void explain_pod(const struct view *v, const struct run_pod *p, struct cuda_execution_seen *ret)
{
        const char *node = *p->node ? p->node : "(none)";

        if (streq(p->end_reason, "OOMKilled")) {
                ret->reason = "OutOfMemory";
                ret->sentence = run_sentence(v,
                                             "pod %s was killed for want of memory (limit %s); raise "
                                             "spec.resources.limits.memory or "
                                             "have it use less",
                                             p->object->name, p->memory ? p->memory : "the node's");
        } else if (*p->reason) {
                ret->reason = reason_or(p->reason, "PodFailed");
                ret->sentence = run_sentence(v, "node %s ended pod %s: %s: %s; create another experiment",
                                             node, p->object->name, run_quote(v, str_of(p->reason)),
                                             run_quote(v, str_of(p->message)));
        } else if (p->disruption) {
                ret->reason = reason_or(p->disruption, "Interrupted");
                ret->sentence = run_sentence(
                        v, "pod %s was taken from node %s: %s; create another experiment", p->object->name,
                        node, run_quote(v, str_of(p->disruption_message)));
        } else if (p->ended) {
                explain_end(v, p, ret);
        } else {
                ret->reason = "PodFailed";
                ret->sentence = run_sentence(v, "pod %s failed and does not say why; see its events",
                                             p->object->name);
        }
}

/* Jobs and pods come by different watches. */
static bool explain_failure(struct sight *s, struct cuda_execution_seen *ret)
{
        const struct json *failed = run_condition(s->job->json, "Failed");
        const struct run_pod *p = newest(s, has_failed);

        if (!p && !look_up_pods(s))
                return false;
        p = p ? p : newest(s, has_failed);
        if (p) {
                explain_pod(s->v, p, ret);
        } else {
                ret->reason = "JobFailed";
                ret->sentence = run_sentence(
                        s->v, "the Job failed and its pods are gone: %s; create another experiment",
                        run_quote(s->v, str_of(json_str_or(failed, "message", "no reason is given"))));
        }
        return true;
}

/* ---- why it waits */

static bool explain_wait(struct sight *s, struct cuda_execution_seen *ret)
{
        const struct run_pod *p = newest(s, is_waiting);

        if (run_condition(s->job->json, "Suspended")) { /* by a queue: nobody else suspends it */
                ret->reason = "Queued";
                ret->sentence = "the Job waits in its queue; see its events and the queue's workloads";
        } else if (p) {
                ret->reason = run_pod_waits(s->v, p, &ret->sentence);
        } else if (!s->n) {
                bool over_quota;

                return run_pod_refused(s->v, s->d, s->job, &ret->reason, &ret->sentence, &over_quota);
        }
        return true;
}

/* ---- all together */

static usec_t when(const struct json *of, const char *key)
{
        struct str text = json_text(json_at(of, key));
        usec_t t;

        return text.p && time_parse(text, &t) ? t : 0;
}

static struct json *time_of(const struct view *v, const struct json *of, const char *key)
{
        return when(of, key) ? json_stringn(v->arena, json_text(json_at(of, key))) : NULL;
}

static struct json *status_of(const struct sight *s, const struct cuda_execution_seen *seen)
{
        const struct view *v = s->v;
        const struct json *is = json_at(s->job->json, "status");
        const struct json *before = json_at(json_at(v->request, "status"), "execution");
        const struct json *notes = json_at(json_at(s->job->json, "metadata"), "annotations");
        const char *hash = json_str(before, "specHash");
        struct json *done = time_of(v, is, "completionTime");

        if (!done)
                done = time_of(v, run_condition(s->job->json, "Failed"), "lastTransitionTime");
        return json_build(v->arena,
                          "{'succeeded': %lld, 'failed': %lld, 'startTime': %p, 'completionTime': %p, "
                          "'message': %p, 'specHash': %p}",
                          (long long)MAX(json_int(is, "succeeded", 0), (int64_t)0),
                          (long long)MAX(json_int(is, "failed", 0), (int64_t)0),
                          (void *)time_of(v, is, "startTime"), (void *)done,
                          (void *)json_string(v->arena, seen->sentence),
                          (void *)json_string(v->arena, hash ? hash : json_str(notes, CUDA_ANNOTATION_SPEC)));
}

/* It is not among the children: gone, or somebody took the label away by which it is watched; then it is polled. */
static bool look_for_job(struct sight *s, const char *name)
{
        enum run_look look;
        const struct object *found = run_look_up(s->v, s->d, &KUBE_JOB, name, &look);

        if (found && run_is_ours(s->v, found->json))
                s->job = found;
        if (look == LOOK_FAILED || s->job)
                decide_again_at(s->d, usec_add(s->v->now, RUN_LOOK_AGAIN));
        return look == LOOK_DONE && (!s->job || look_up_pods(s));
}

/* Its pods are told to end when it is deleted: how they do then says nothing of the program. */
static bool has_ended(const struct json *job, const char *type)
{
        const struct json *ended = run_condition(job, type);
        usec_t deleted = when(json_at(job, "metadata"), "deletionTimestamp");

        return ended && (!deleted || when(ended, "lastTransitionTime") < deleted);
}

static bool explain_going_on(struct sight *s, struct cuda_execution_seen *ret)
{
        if (meta_str(s->job->json, "deletionTimestamp")) {
                ret->state = EXECUTION_WAITING;
                ret->reason = "Deleting";
                ret->sentence = "the execution Job is being deleted, and its pods are told to end";
                return true;
        }
        ret->state = newest(s, has_started) ? EXECUTION_RUNNING : EXECUTION_WAITING;
        return explain_wait(s, ret);
}

bool cuda_execution_see(const struct view *v, struct decision *d, const char *name, bool made,
                        struct cuda_execution_seen *ret)
{
        struct sight s = {.v = v, .d = d, .job = view_child(v, &KUBE_JOB, name)};
        bool known = true;

        *ret = (struct cuda_execution_seen){.state = EXECUTION_NONE};
        if (s.job)
                see_pods(&s);
        else if (!made)
                return true;
        else if (!look_for_job(&s, name))
                return false;
        if (!s.job) {
                ret->state = EXECUTION_GONE;
                return true;
        }
        if (has_ended(s.job->json, "Complete")) {
                ret->state = EXECUTION_SUCCEEDED;
        } else if (has_ended(s.job->json, "Failed")) {
                ret->state = EXECUTION_FAILED;
                known = explain_failure(&s, ret);
        } else {
                known = explain_going_on(&s, ret);
        }
        ret->status = status_of(&s, ret);
        return known;
}
