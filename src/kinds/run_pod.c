/*
 * What the kubelet says about a pod of a run.
 */
#include "kinds/run_internal.h"

/* A Job has its pod by then; if not, its events are looked at now and then. */
#define POD_PATIENCE   (5 * USEC_PER_SEC)
#define POD_LOOK_AGAIN (30 * USEC_PER_SEC)

enum { GENERATED_MAX = 58 }; /* of a name to which the server adds five characters; it cuts the rest */

static usec_t time_at(const struct json *object, const char *key)
{
        struct str text = json_text(json_at(object, key));
        usec_t t;

        return text.p && time_parse(text, &t) ? t : 0;
}

/* ---- which one */

/* Of two pods made within one second the one that is not going away is the newer one. */
static bool newer(const struct object *a, const struct object *b)
{
        usec_t x = time_at(json_at(a->json, "metadata"), "creationTimestamp");
        usec_t y = time_at(json_at(b->json, "metadata"), "creationTimestamp");
        struct run_pod p, q;

        if (x != y)
                return x > y;
        run_pod_read(a, &p);
        run_pod_read(b, &q);
        if (!p.asked_to_end != !q.asked_to_end)
                return !p.asked_to_end;
        if (p.over != q.over)
                return !p.over;
        return strcmp(a->name, b->name) > 0;
}

static const struct object *better(const struct object *best, const struct object *o,
                                   const struct object *job)
{
        if (o->type != &KUBE_POD || !streq(meta_controller_uid(o->json), job->uid))
                return best;
        return !best || newer(o, best) ? o : best;
}

const struct object *run_newest_pod(const struct view *v, const struct object *job)
{
        const struct object *best = NULL;

        for (size_t i = 0; job && i < v->n_children; i++)
                best = better(best, &v->children[i], job);
        return best;
}

const struct object *run_look_up_pod(const struct view *v, struct decision *d, const struct object *job,
                                     enum run_look *ret_look)
{
        const struct want want = {.kind = WANT_PODS, .uid = job->uid};
        const struct answer *answer = decide_want(d, v, &want);
        const struct object *best = NULL;

        *ret_look = !answer ? LOOK_UNDER_WAY : answer->error ? LOOK_FAILED : LOOK_DONE;
        json_foreach (pod, json_at(answer ? answer->json : NULL, "items")) {
                struct object *o = arena_new(v->arena, struct object);
                const struct json *meta = json_at(pod, "metadata");

                *o = (struct object){&KUBE_POD, pod, json_str_or(meta, "name", ""),
                                     json_str_or(meta, "uid", "")};
                best = better(best, o, job);
        }
        return best;
}

/* ---- reading it */

static const struct json *status_of(const struct json *pod, const char *list, const char *name)
{
        return json_find_named(json_at(json_at(pod, "status"), list), name);
}

static const char *workload_name(const struct json *pod)
{
        const struct json *notes = json_at(json_at(pod, "metadata"), "annotations");
        const char *name = json_str(notes, "kubectl.kubernetes.io/default-container");
        const struct json *first = json_first(json_at(json_at(pod, "spec"), "containers"));

        return name ? name : json_str_or(first, "name", "");
}

const char *run_pod_image(struct arena *a, const struct json *pod, const char *container)
{
        const char *name = container ? container : workload_name(pod);
        const char *image = json_str(json_find_named(json_at(json_at(pod, "spec"), "containers"), name),
                                     "image");
        const char *id = json_str_or(status_of(pod, "containerStatuses", name), "imageID", "");
        const char *digest = strstr(id, "sha256:");

        if (!image || !digest || strstr(image, "@sha256:"))
                return image;
        return digest > id && digest[-1] == '@' ? arena_join(a, image, "@", digest)
                                                : arena_printf(a, "%s (%s)", image, digest);
}

bool run_pod_never_started(const struct run_pod *p)
{
        return streq(p->end_reason, "StartError") || streq(p->end_reason, "ContainerCannotRun");
}

static void read_workload(struct run_pod *p, const struct json *pod)
{
        const struct json *state = json_at(status_of(pod, "containerStatuses", p->workload), "state");
        const struct json *ended = json_at(state, "terminated"), *running = json_at(state, "running");
        const struct json *spec = json_find_named(json_at(json_at(pod, "spec"), "containers"), p->workload);

        p->started = running || ended;
        p->started_at = time_at(running ? running : ended, "startedAt");
        p->memory = json_str(json_at(json_at(spec, "resources"), "limits"), "memory");
        if (!ended)
                return;
        p->ended = true;
        p->finished_at = time_at(ended, "finishedAt");
        p->exit_code = json_int(ended, "exitCode", -1);
        p->end_reason = json_str_or(ended, "reason", "");
        p->end_message = json_str(ended, "message");
}

static void read_helpers(struct run_pod *p, const struct json *pod)
{
        const struct json *relay = json_at(
                json_at(status_of(pod, "containerStatuses", RUN_RELAY_CONTAINER), "state"), "terminated");

        if (relay) {
                p->relay_ended = true;
                p->relay_code = json_int(relay, "exitCode", -1);
                p->relay_reason = json_str_or(relay, "reason", "");
        }
        json_foreach (c, json_at(json_at(pod, "status"), "initContainerStatuses")) {
                const struct json *ended = json_at(json_at(c, "state"), "terminated");

                if (!ended || json_int(ended, "exitCode", -1) == 0)
                        continue;
                p->stage_failed = true;
                p->stage = json_str_or(c, "name", "");
                p->stage_code = json_int(ended, "exitCode", -1);
                p->stage_message = json_str_or(ended, "message", "");
        }
}

/* "PodInitializing" and "ContainerCreating" say that all is well. */
static void read_waiting(struct run_pod *p, const struct json *pod)
{
        static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (c, json_at(json_at(pod, "status"), lists[i])) {
                        const struct json *waiting = json_at(json_at(c, "state"), "waiting");
                        const char *reason = json_str(waiting, "reason");

                        if (!reason || streq(reason, "PodInitializing") ||
                            streq(reason, "ContainerCreating") || p->wait_reason)
                                continue;
                        p->wait_reason = reason;
                        p->wait_message = json_str_or(waiting, "message", "");
                }
}

/* Preemption, an eviction by the API, a taint, a node that goes: since Kubernetes 1.26. */
static void read_disruption(struct run_pod *p, const struct json *pod)
{
        const struct json *target = run_condition(pod, "DisruptionTarget");

        if (!target)
                return;
        p->disruption = json_str_or(target, "reason", "");
        p->disruption_message = json_str_or(target, "message", p->disruption);
}

void run_pod_read(const struct object *object, struct run_pod *ret)
{
        const struct json *pod = object ? object->json : NULL, *meta = json_at(pod, "metadata");
        const struct json *status = json_at(pod, "status");
        usec_t deletion = time_at(meta, "deletionTimestamp");
        int64_t grace = json_int(meta, "deletionGracePeriodSeconds", 0);

        *ret = (struct run_pod){.object = object};
        ret->node = json_str_or(json_at(pod, "spec"), "nodeName", "");
        ret->created = time_at(meta, "creationTimestamp");
        ret->grace = (usec_t)MIN(MAX(grace, (int64_t)0), (int64_t)1 << 32) * USEC_PER_SEC;
        if (deletion)
                ret->asked_to_end = MAX(usec_sub(deletion, ret->grace), (usec_t)1);
        ret->phase = json_str_or(status, "phase", "");
        ret->over = streq(ret->phase, "Succeeded") || streq(ret->phase, "Failed");
        ret->reason = json_str_or(status, "reason", "");
        ret->message = json_str_or(status, "message", "");
        ret->workload = workload_name(pod);
        read_workload(ret, pod);
        read_helpers(ret, pod);
        read_waiting(ret, pod);
        read_disruption(ret, pod);
}

/* ---- why it waits */

struct wait_cause {
        const char *reason; /* the kubelet's */
        const char *ours;
        const char *next;
};

static const struct wait_cause wait_causes[] = {
        {"ErrImagePull", "ImagePullFailed", "check the image's name and the pull secrets"},
        {"ImagePullBackOff", "ImagePullFailed", "check the image's name and the pull secrets"},
        {"InvalidImageName", "ImagePullFailed", "correct the image's name"},
        {"ErrImageNeverPull", "ImagePullFailed", "load the image on the node, or allow to pull it"},
        {"ImageInspectError", "ImagePullFailed", "check the image"},
        {"RegistryUnavailable", "ImagePullFailed", "check the registry"},
        {"CreateContainerConfigError", "ContainerConfigError",
         "create what the container refers to, or correct the reference"},
        {"CreateContainerError", "ContainerConfigError", "check command, image and mounts"},
        {"RunContainerError", "ContainerConfigError", "check command, image and mounts"},
        {NULL, "ContainerWaiting", "see the pod's events"},
};

static const char *unschedulable(const struct json *pod)
{
        json_foreach (c, json_at(json_at(pod, "status"), "conditions"))
                if (streq(json_str(c, "type"), "PodScheduled") && streq(json_str(c, "status"), "False"))
                        return json_str_or(c, "message", "");
        return NULL;
}

const char *run_pod_waits(const struct view *v, const struct run_pod *p, const char **ret_sentence)
{
        const char *message = p->object ? unschedulable(p->object->json) : NULL;
        const struct wait_cause *cause = wait_causes;

        *ret_sentence = NULL;
        if (message) {
                *ret_sentence = run_sentence(
                        v, "no node takes the pod: %s; free what it asks for, or ask for less",
                        run_quote(v, str_of(message)));
                return "Unschedulable";
        }
        if (!p->wait_reason)
                return NULL;
        while (cause->reason && !streq(cause->reason, p->wait_reason))
                cause++;
        *ret_sentence = run_sentence(v, "the pod cannot start: %s: %s; %s",
                                     run_quote(v, str_of(p->wait_reason)),
                                     run_quote(v, str_of(p->wait_message)), cause->next);
        return cause->ours;
}

/* ---- why there is none */

/* Events of the Job's controller have deprecated*; a series counts from its last. */
static usec_t event_time(const struct json *event)
{
        const struct json *series = json_at(event, "series");
        const struct str texts[] = {json_text(json_at(series, "lastObservedTime")),
                                    json_text(json_at(event, "deprecatedLastTimestamp")),
                                    json_text(json_at(event, "eventTime"))};
        usec_t last = 0, t;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (texts[i].p && time_parse(texts[i], &t))
                        last = MAX(last, t);
        return last;
}

static const char *last_refusal(const struct json *events)
{
        const char *note = NULL;
        usec_t last = 0;

        json_foreach (event, json_at(events, "items")) {
                if (!streq(json_str(event, "reason"), "FailedCreate") || event_time(event) < last)
                        continue;
                note = json_str(event, "note");
                last = event_time(event);
        }
        return note;
}

/* Without the end of the pod's name, which is another one at every try: the status would never come to rest. */
static const char *without_pod_name(const struct view *v, const char *note, const char *job)
{
        const char *begin = arena_printf(v->arena, "%.*s", GENERATED_MAX, arena_join(v->arena, job, "-", ""));
        const char *name = strstr(note, begin), *rest;
        size_t n = MIN(strlen(begin), strlen(job));

        if (!name)
                return note;
        rest = name + strlen(begin);
        rest += strspn(rest, "abcdefghijklmnopqrstuvwxyz0123456789");
        return arena_printf(v->arena, "%.*s%s", (int)(name + n - note), note, rest);
}

/* What is between BEFORE and AFTER in *REST, which then begins behind it; NULL: it is not there. AFTER "": all. */
static const char *cut_out(const struct view *v, const char **rest, const char *before, const char *after)
{
        const char *from = strstr(*rest, before), *to;

        if (!from)
                return NULL;
        from += strlen(before);
        to = *after ? strstr(from, after) : from + strlen(from);
        if (!to)
                return NULL;
        *rest = to;
        return run_quote(v, str_n(from, (size_t)(to - from)));
}

/* "exceeded quota: NAME, requested: cpu=2,pods=1, used: cpu=3,pods=1, limited: cpu=4,pods=1". NULL: it says no such thing. */
static const char *quota_exceeded(const struct view *v, const char *note, const char *job)
{
        const char *rest = note, *name = cut_out(v, &rest, "exceeded quota: ", ", requested: ");
        const char *asked = name ? cut_out(v, &rest, "requested: ", ", used: ") : NULL;
        const char *used = asked ? cut_out(v, &rest, "used: ", ", limited: ") : NULL;
        const char *limit = used ? cut_out(v, &rest, "limited: ", "") : NULL;

        if (!limit)
                return NULL;
        return run_sentence(v,
                            "the Job %s cannot make its pod: it asks for %s, and ResourceQuota %s allows %s, "
                            "of which %s is used; wait until others have ended, ask for less, or raise the "
                            "quota",
                            job, asked, name, limit, used);
}

/* "failed quota: NAME: must specify limits.cpu for: workload". NULL: it says no such thing. */
static const char *quota_unsaid(const struct view *v, const char *note, const char *job)
{
        const char *rest = note, *name = cut_out(v, &rest, "failed quota: ", ": must specify ");
        const char *what = name ? cut_out(v, &rest, "must specify ", "") : NULL;

        if (!what)
                return NULL;
        return run_sentence(v,
                            "the Job %s cannot make its pod: ResourceQuota %s takes none that does not say "
                            "how much it needs: %s; say it in the request's resources, or have a LimitRange "
                            "say it for all",
                            job, name, what);
}

static const char *explain_refusal(const struct view *v, const char *note, const char *job,
                                   bool *ret_over_quota)
{
        const char *sentence = quota_exceeded(v, note, job);

        if (!sentence)
                sentence = quota_unsaid(v, note, job);
        *ret_over_quota = sentence || strstr(note, "exceeded quota");
        if (sentence)
                return sentence;
        return run_sentence(v,
                            "the Job %s cannot make its pod: %s; raise the quota, or change what refuses it",
                            job, run_quote(v, str_of(without_pod_name(v, note, job))));
}

bool run_pod_refused(const struct view *v, struct decision *d, const struct object *job,
                     const char **ret_reason, const char **ret_sentence, bool *ret_over_quota)
{
        const struct want want = {.kind = WANT_EVENTS, .type = &KUBE_JOB, .name = job->name, .uid = job->uid};
        usec_t created = time_at(json_at(job->json, "metadata"), "creationTimestamp");
        const struct answer *answer;
        const char *note;

        if (!created || json_int(json_at(job->json, "status"), "active", 0) > 0)
                return true; /* the pods' watch is behind */
        if (v->now < usec_add(created, POD_PATIENCE)) {
                decide_again_at(d, usec_add(created, POD_PATIENCE));
                return true;
        }
        answer = decide_want(d, v, &want);
        if (!answer)
                return false;
        decide_again_at(d, usec_add(v->now, POD_LOOK_AGAIN));
        note = last_refusal(answer->json);
        if (note) {
                *ret_reason = "PodNotCreated";
                *ret_sentence = explain_refusal(v, note, job->name, ret_over_quota);
        }
        return true;
}

/* ---- what of it is kept */

/* OBJECT with these members alone, in a new object. */
static struct json *only(struct arena *a, const struct json *object, const char *const *members)
{
        struct json *kept = json_object(a);

        for (; *members; members++) {
                const struct json *value = json_at(object, *members);

                json_set(a, kept, *members, value ? json_copy(a, value) : NULL);
        }
        return kept;
}

void run_project_job(struct json *job, struct arena *a)
{
        static const char *const spec[] = {"backoffLimit", "activeDeadlineSeconds", NULL};

        json_set(a, job, "spec", only(a, json_at(job, "spec"), spec));
}

void run_project_pod(struct json *pod, struct arena *a)
{
        static const char *const container[] = {"name", "image", "resources", NULL};
        struct json *containers = json_array(a), *spec;

        json_foreach (c, json_at(json_at(pod, "spec"), "containers"))
                json_append(containers, only(a, c, container));
        spec = json_build(a, "{'nodeName': %p, 'containers': %p}",
                          (void *)json_string(a, json_str(json_at(pod, "spec"), "nodeName")),
                          (void *)containers);
        json_set(a, pod, "spec", spec);
}

void run_project_map(struct json *map, struct arena *a)
{
        static const char *const data[] = {RUN_KEY_ATTEMPT, RUN_KEY_POD,     RUN_KEY_SEQUENCE,
                                           RUN_KEY_STATE,   RUN_KEY_STATUS,  RUN_KEY_TRACK,
                                           RUN_KEY_EXIT,    RUN_KEY_PROBLEM, NULL};

        json_remove(map, "binaryData");
        json_set(a, map, "data", only(a, json_at(map, "data"), data));
}
