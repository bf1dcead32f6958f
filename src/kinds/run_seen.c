/*
 * What every kind's settle shares: what the objects of a run say about it.
 */
#include "kinds/run_seen.h"

#include "kinds/run_internal.h"

enum { SENTENCE_MAX = 500, QUOTE_MAX = 240, RESULT_MAX = 64 << 10 };

/* The relay gives up after 10 minutes without the API; whatever holds it after that, nothing more comes. */
#define RELAY_PATIENCE (11 * 60 * USEC_PER_SEC)

/* ---- words */

const char *run_sentence(const struct view *v, const char *fmt, ...)
{
        va_list ap;
        char *text;

        va_start(ap, fmt);
        text = arena_vprintf(v->arena, fmt, ap);
        va_end(ap);
        text[utf8_cut(text, strlen(text), SENTENCE_MAX)] = '\0';
        return text;
}

/* The length of the control character at P: of ASCII, DEL, or one of U+0080 to U+009F; 0: it is none. */
static size_t control_length(const char *p)
{
        const unsigned char first = (unsigned char)p[0], second = first ? (unsigned char)p[1] : 0;

        if (first == 0xc2 && second >= 0x80 && second <= 0x9f)
                return 2;
        return first < ' ' || first == 0x7f;
}

const char *run_quote(const struct view *v, struct str text)
{
        char *out, *end;

        text = str_trim(text);
        out = end = arena_strndup(v->arena, text.p ? text.p : "", utf8_cut(text.p, text.n, QUOTE_MAX));
        for (const char *p = out; *p;) {
                size_t n = control_length(p);

                *end++ = n ? ' ' : *p;
                p += n ? n : 1;
        }
        *end = '\0';
        return out;
}

const struct json *run_condition(const struct json *object, const char *type)
{
        json_foreach (c, json_at(json_at(object, "status"), "conditions"))
                if (streq(json_str(c, "type"), type) && streq(json_str(c, "status"), "True"))
                        return c;
        return NULL;
}

static struct str last_line(struct str text)
{
        const char *newline;

        text = str_trim(text);
        newline = text.n ? memrchr(text.p, '\n', text.n) : NULL;
        return newline ? str_n(newline + 1, text.n - (size_t)(newline + 1 - text.p)) : text;
}

/* ---- the status ConfigMap */

static void problem(struct run_seen *s, const char *reason, const char *sentence)
{
        if (s->problem)
                return;
        s->problem_reason = reason;
        s->problem = sentence;
}

static void read_status(const struct view *v, struct run_seen *s, const struct json *data)
{
        struct str text = json_text(json_at(data, RUN_KEY_STATUS));
        struct err err = ERR_INIT;

        if (!text.n)
                return;
        if (run_status_parse(v->arena, text, v->now, &s->status, &err) < 0) {
                problem(s, "Malformed",
                        run_sentence(v,
                                     "the reported state is malformed and not used: %s; see what writes %s",
                                     run_quote(v, str_of(err.text)), RUN_STATUS_FILE));
                return;
        }
        s->has_status = true;
}

static void read_track(const struct view *v, struct run_seen *s, const struct json *data)
{
        struct str text = json_text(json_at(data, RUN_KEY_TRACK));
        const struct json *j = text.n ? json_parse(v->arena, text, NULL, NULL) : NULL;

        /* Without one there is no ETA, and that is all. */
        s->has_track = j && track_parse(j, &s->track, NULL) == 0;
}

static void read_exit(const struct view *v, struct run_seen *s, struct str text)
{
        struct err err = ERR_INIT;

        if (!s->has_exit && text.n)
                s->has_exit = run_exit_parse(v->arena, text, &s->exit, &err) == 0;
}

/* What the newest pod has recorded, or, while there is none, the last that there was. */
static bool is_current(const struct run_seen *s, const struct run_pod *p)
{
        if (p->object || p->of)
                return streq(s->fence.pod, p->object ? p->object->uid : p->of);
        return s->fence.pod[0] && s->fence.attempt >= s->attempt && !streq(s->fence.pod, p->not_of);
}

static bool is_recorded(const struct run_seen *s, const struct run_pod *p)
{
        return is_current(s, p) && run_state_terminal(s->fence.state);
}

static void read_map(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        const struct json *data = s->status_map ? json_at(s->status_map->json, "data") : NULL;
        const char *complaint = json_str(data, RUN_KEY_PROBLEM);
        struct err err = ERR_INIT;

        s->fence = (struct run_fence){0};
        s->has_status = s->has_track = s->has_exit = false;
        s->problem = s->problem_reason = NULL;
        if (!s->status_map)
                return;
        if (run_fence_read(data, &s->fence, &err) < 0) {
                s->fence = (struct run_fence){0};
                problem(s, "Malformed",
                        run_sentence(v,
                                     "the ConfigMap %s is malformed and not used: %s; nobody but the run's "
                                     "own pod may change it",
                                     s->status_map->name, run_quote(v, str_of(err.text))));
                return;
        }
        if (!is_current(s, p))
                return; /* an earlier pod's */
        read_status(v, s, data);
        read_track(v, s, data);
        if (run_state_terminal(s->fence.state))
                read_exit(v, s, json_text(json_at(data, RUN_KEY_EXIT)));
        if (complaint && *complaint)
                problem(s, "Refused", run_sentence(v, "%s", run_quote(v, str_of(complaint))));
}

/* The attempt that there is at least: it never goes back. */
static uint64_t attempt_before(const struct view *v, const struct run_names *names)
{
        const struct json *before = json_at(json_at(v->request, "status"), "progress");
        int64_t attempt = streq(json_str(before, "job"), names->job) ? json_int(before, "attempt", 1) : 1;

        return MAX(names->attempt, (uint64_t)MAX(attempt, (int64_t)1));
}

/*
 * A pod that has not claimed the ConfigMap yet will do so as the next attempt. One that is over, or of which the status tells
 * already, may be an earlier one: pods and ConfigMaps come by different watches.
 */
static uint64_t attempt_of(const struct view *v, const struct run_seen *s, const struct run_pod *p)
{
        const struct json *before = json_at(json_at(v->request, "status"), "progress");
        bool told = p->object && streq(json_str(before, "podUID"), p->object->uid);
        bool unclaimed = s->fence.pod[0] && !is_current(s, p) && !p->over && !p->ended && !told;

        return MAX(s->attempt, s->fence.attempt + unclaimed);
}

/* ---- how it ended */

static bool reported(const struct run_seen *s, const char *phase)
{
        return s->has_status && streq(s->status.phase, phase);
}

static bool job_goes_on(const struct run_seen *s)
{
        return s->job && run_job_goes_on(s->job->json);
}

/* Asked to end, and ended then: an exit status of 0 does not say that the work was done. */
static bool was_interrupted(const struct run_seen *s, const struct run_pod *p)
{
        usec_t asked = p->asked_to_end, finished = s->finished / USEC_PER_SEC * USEC_PER_SEC;

        if (reported(s, "Complete"))
                return false;
        if (s->has_exit && !s->exit.lost)
                return s->exit.told;
        if (!p->object && (job_goes_on(s) || s->has_exit))
                return true; /* somebody deleted the pod; `run` was killed when its time was up, or the Job makes another */
        if (!asked || !finished || finished < asked)
                return false;
        return finished > asked || s->has_status;
}

static bool has_ended_well(const struct run_seen *s, const struct run_pod *p)
{
        if (reported(s, "Failed") || was_interrupted(s, p))
                return false;
        if (s->has_exit && !(s->exit.lost && p->ended)) /* the kubelet may have seen what the relay has not */
                return run_exit_success(&s->exit);
        if (p->ended)
                return p->exit_code == 0;
        return is_recorded(s, p) && s->fence.state == RUN_SUCCEEDED;
}

/*
 * The Job ran into its deadline before the workload came to its end. What `run` saw decides, before two machines' clocks
 * do; FailureTarget has the time of the deadline, Failed, where there are both, that of the last pod's end.
 */
static bool deadline_exceeded(const struct run_seen *s)
{
        const struct json *target = s->job ? run_condition(s->job->json, "FailureTarget") : NULL;
        const struct json *failed = target ? target : s->job ? run_condition(s->job->json, "Failed") : NULL;
        struct str text = json_text(json_at(failed, "lastTransitionTime"));
        usec_t when;

        if (!failed || !streq(json_str(failed, "reason"), "DeadlineExceeded"))
                return false;
        if (reported(s, "Complete"))
                return false;
        if (s->has_exit && !s->exit.lost && (s->exit.told || run_exit_success(&s->exit)))
                return s->exit.told;
        return !s->finished || !text.p || !time_parse(text, &when) || s->finished >= when;
}

static const char *hint_logs(const struct view *v, const struct run_seen *s)
{
        return arena_printf(v->arena, "kubectl logs job/%s", s->names->job);
}

static void fail(struct run_seen *s, const char *reason, const char *sentence)
{
        s->reason = reason;
        s->sentence = sentence;
        s->infrastructure = false;
}

/* Not by the workload's own doing: another attempt may fare better. */
static void fail_from_outside(struct run_seen *s, const char *reason, const char *sentence)
{
        fail(s, reason, sentence);
        s->infrastructure = true;
}

static void fail_workload(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        struct str line = s->has_exit ? last_line(s->exit.tail) : STR_NULL;
        const char *how = s->has_exit ? run_exit_sentence(v->arena, &s->exit)
                                      : arena_printf(v->arena, "exited with status %lld",
                                                     (long long)p->exit_code);

        if (reported(s, "Failed") && s->status.error && s->status.reason) /* it says what to do as well */
                fail(s, s->status.reason, run_sentence(v, "%s", s->status.error));
        else if (reported(s, "Failed") && s->status.error)
                fail(s, "WorkloadFailed",
                     run_sentence(v, "the profiler reports a failure: %s; see %s",
                                  run_quote(v, str_of(s->status.error)), hint_logs(v, s)));
        else if (reported(s, "Failed"))
                fail(s, "WorkloadFailed",
                     run_sentence(v, "the profiler reports a failure without saying why; see %s",
                                  hint_logs(v, s)));
        else if (line.n)
                fail(s, "WorkloadFailed",
                     run_sentence(v, "the workload %s, and its last words were: %s; see %s", how,
                                  run_quote(v, line), hint_logs(v, s)));
        else
                fail(s, "WorkloadFailed", run_sentence(v, "the workload %s; see %s", how, hint_logs(v, s)));
}

static bool out_of_memory(const struct run_seen *s, const struct run_pod *p)
{
        return streq(p->end_reason, "OOMKilled") ||
               (s->has_exit && s->exit.oom && !run_exit_success(&s->exit));
}

static void explain_deleted_job(const struct view *v, struct run_seen *s)
{
        fail(s, "JobDeleted",
             run_sentence(v, "the Job %s was deleted by somebody before it ended; start the run again",
                          s->names->job));
}

/* Recorded, and not because it was told to end: what the node did later does not matter. */
static bool is_own_failure(const struct run_seen *s)
{
        if (s->has_exit && !s->exit.lost)
                return !s->exit.told && (!run_exit_success(&s->exit) || reported(s, "Failed"));
        return false;
}

/* It was ended by a signal, when the pod was told to go: a Job that is deleted may just have made another pod. */
static bool stage_was_told(const struct run_pod *p)
{
        return p->stage_failed && p->asked_to_end && p->stage_code > 128;
}

/* One that prepares a pod may say why it cannot: "REASON: sentence". */
static void explain_stage(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        struct str text = str_of(p->stage_message), word = str_split(&text, ':');
        const char *logs = arena_printf(v->arena, "kubectl logs %s -c %s", p->object->name, p->stage);

        if (text.n && run_reason_valid(word))
                fail(s, arena_strndup(v->arena, word.p, word.n),
                     run_sentence(v, "%s; see %s", run_quote(v, text), logs));
        else
                fail(s, "StageFailed",
                     run_sentence(v, "the pod could not be prepared: %s exited with status %lld: %s; see %s",
                                  p->stage, (long long)p->stage_code, run_quote(v, str_of(p->stage_message)),
                                  logs));
}

/* The newest pod has ended, and not well. */
static void explain_end(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        if (out_of_memory(s, p))
                fail(s, "OutOfMemory",
                     run_sentence(v,
                                  "the workload was killed for want of memory (limit %s); raise "
                                  "resources.limits.memory or have it use less",
                                  p->memory ? p->memory : "the node's"));
        else if (s->has_exit && s->exit.error)
                fail(s, "WorkloadNotStarted",
                     run_sentence(v, "the workload %s; check the command and that the image holds it",
                                  run_exit_sentence(v->arena, &s->exit)));
        else if (stage_was_told(p) && !s->job)
                explain_deleted_job(v, s);
        else if (stage_was_told(p))
                fail_from_outside(
                        s, "Interrupted",
                        run_sentence(v, "the pod was deleted while it was prepared; start the run again"));
        else if (p->stage_failed)
                explain_stage(v, s, p);
        else if (was_interrupted(s, p) && !s->job)
                explain_deleted_job(v, s); /* its pods go with it, and one may still have said so */
        else if (p->disruption && !is_own_failure(s))
                fail_from_outside(s, run_reason_valid(str_of(p->disruption)) ? p->disruption : "Interrupted",
                                  run_sentence(v, "the pod was taken from node %s: %s; start the run again",
                                               *p->node ? p->node : "(none)",
                                               run_quote(v, str_of(p->disruption_message))));
        else if (was_interrupted(s, p))
                fail_from_outside(
                        s, "Interrupted",
                        run_sentence(v, "the pod was deleted while the workload ran; start the run again"));
        else if (run_pod_never_started(p) && !s->has_exit)
                fail(s, "WorkloadNotStarted",
                     run_sentence(v,
                                  "node %s could not start the workload's container: %s; check its command, "
                                  "image and mounts, and the node's container runtime",
                                  *p->node ? p->node : "(none)", run_quote(v, str_of(p->end_message))));
        else if (p->ended || s->has_exit || reported(s, "Failed"))
                fail_workload(v, s, p);
        else
                fail_from_outside(s, "PodFailed",
                                  run_sentence(v, "the pod failed and does not say why; see its events"));
}

/* Evicted, Preempting, NodeLost, Shutdown, …: the kubelet names them itself. */
static void explain_pod(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        if (!streq(p->phase, "Failed") || !*p->reason || out_of_memory(s, p) || is_own_failure(s)) {
                explain_end(v, s, p);
                return;
        }
        fail_from_outside(
                s, run_reason_valid(str_of(p->reason)) ? p->reason : "PodFailed",
                run_sentence(
                        v,
                        "the pod was ended by node %s: %s: %s; start the run again when the node can bear it",
                        *p->node ? p->node : "(none)", run_quote(v, str_of(p->reason)),
                        run_quote(v, str_of(*p->message ? p->message : "no reason is given"))));
        s->infrastructure = !streq(p->reason, "DeadlineExceeded"); /* of the pod: that was asked for */
}

/* ---- the Job */

static const char *waited_for(const struct view *v)
{
        json_foreach (c, json_at(json_at(v->request, "status"), "conditions"))
                if (streq(json_str(c, "type"), "Progressing") && streq(json_str(c, "status"), "False"))
                        return json_str(c, "message");
        return NULL;
}

static void explain_deadline(const struct view *v, struct run_seen *s)
{
        int64_t seconds = json_int(json_at(s->job->json, "spec"), "activeDeadlineSeconds", 0);
        const char *before = waited_for(v);

        fail(s, "DeadlineExceeded",
             before ? run_sentence(v, "the run did not end within its %lld s; at last %s", (long long)seconds,
                                   run_quote(v, str_of(before)))
                    : run_sentence(v, "the run did not end within its %lld s; allow it more time or do less",
                                   (long long)seconds));
}

static void explain_job(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        const struct json *failed = run_condition(s->job->json, "Failed");

        if (deadline_exceeded(s))
                explain_deadline(v, s);
        else if (p->object || s->has_exit || reported(s, "Failed"))
                explain_pod(v, s, p);
        else
                fail_from_outside(
                        s, "JobFailed",
                        run_sentence(
                                v, "the Job %s failed and its pods are gone: %s; start the run again",
                                s->names->job,
                                run_quote(v, str_of(json_str_or(failed, "message", "no reason is given")))));
}

/* ---- all together */

/* When a pod that was told to end should have; USEC_MAX: it was not told. */
static usec_t ends_by(const struct run_pod *p)
{
        return p->object && p->asked_to_end
                       ? usec_add(usec_add(p->asked_to_end, p->grace), RUN_ENDING_PATIENCE)
                       : USEC_MAX;
}

/* It should have ended long ago, and nobody says that it has: a pod of a dead node stays like that for ever. */
static bool is_overdue(const struct view *v, const struct run_pod *p)
{
        return !p->over && !p->ended && v->now >= ends_by(p);
}

/* The workload's end is known. */
static bool has_ended(const struct run_seen *s, const struct run_pod *p)
{
        return is_recorded(s, p) || p->ended || p->over;
}

/* Nothing more will be recorded. */
static bool is_quiet(const struct view *v, const struct run_seen *s, const struct run_pod *p)
{
        return is_recorded(s, p) || p->relay_ended || p->over || !p->object || !s->job ||
               run_pod_never_started(p) || (s->finished && usec_add(s->finished, RELAY_PATIENCE) <= v->now);
}

static void say_what_is_missing(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        static const char missing[] = "the last states it reported and result.json may be missing";

        if (is_recorded(s, p))
                return;
        if (p->relay_ended && p->relay_code != 0)
                problem(s, "RelayLost",
                        run_sentence(v, "the relay ended before all was recorded (%s, exit status %lld): %s",
                                     *p->relay_reason ? run_quote(v, str_of(p->relay_reason))
                                                      : "no reason is given",
                                     (long long)p->relay_code, missing));
        else
                problem(s, "RelayLost",
                        run_sentence(v, "the end of the run was not recorded by its relay: %s", missing));
}

/*
 * The Job makes another pod, and may. One that may not fail at all makes another all the same where the pod was deleted (before
 * Kubernetes 1.26): that is no attempt of its own, see run_control.h.
 */
static bool tries_again(const struct run_seen *s)
{
        return job_goes_on(s) && run_job_retries(s->job->json);
}

static void judge_ended(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        bool again = tries_again(s);

        if (has_ended_well(s, p) && !deadline_exceeded(s)) {
                s->life = RUN_LIFE_SUCCEEDED;
                say_what_is_missing(v, s, p);
                return;
        }
        if (s->job && !job_goes_on(s))
                explain_job(v, s, p);
        else
                explain_pod(v, s, p);
        s->life = again ? RUN_LIFE_WAITING : RUN_LIFE_FAILED;
        if (again)
                fail(s, "Retrying",
                     run_sentence(v, "attempt %llu failed: %s", (unsigned long long)s->attempt, s->sentence));
}

/* Its grace period runs, in which its relay may record more. */
static bool is_ending(const struct view *v, struct decision *d, const struct run_pod *p)
{
        usec_t until = ends_by(p);

        if (until == USEC_MAX || v->now >= until)
                return false;
        decide_again_at(d, until);
        return p->started;
}

/*
 * Nothing more comes of it. A Job whose pod hangs on a dead node has, since Kubernetes 1.31, FailureTarget and never Failed;
 * one that has just got it has still to tell its pod to end. Of a node that is lost a Job may also say nothing at all.
 */
static bool is_given_up(const struct view *v, const struct run_seen *s, const struct run_pod *p)
{
        if (run_condition(s->job->json, "Failed"))
                return true;
        if (!job_goes_on(s))
                return !p->started || p->asked_to_end;
        return is_overdue(v, p) && !tries_again(s);
}

static void explain_given_up(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        if (is_overdue(v, p) && !p->disruption && !deadline_exceeded(s))
                fail_from_outside(s, "NodeLost",
                                  run_sentence(v,
                                               "the pod was told to end and has not: node %s does not "
                                               "answer; start the run again on another",
                                               *p->node ? p->node : "(none)"));
        else if (job_goes_on(s))
                explain_pod(v, s, p);
        else
                explain_job(v, s, p);
}

static void judge(const struct view *v, struct decision *d, struct run_seen *s, const struct run_pod *p)
{
        if (has_ended(s, p) && is_quiet(v, s, p)) {
                judge_ended(v, s, p);
        } else if (has_ended(s, p)) {
                s->life = RUN_LIFE_RUNNING; /* its relay has still to record what came out */
                decide_again_at(d, usec_add(s->finished ? s->finished : v->now, RELAY_PATIENCE));
        } else if (!s->job) {
                s->life = RUN_LIFE_FAILED;
                explain_deleted_job(v, s);
        } else if (is_ending(v, d, p)) {
                s->life = RUN_LIFE_RUNNING;
        } else if (run_condition(s->job->json, "Complete")) {
                s->life = RUN_LIFE_SUCCEEDED; /* all containers of a pod that is gone ended with 0 */
                say_what_is_missing(v, s, p);
        } else if (is_given_up(v, s, p)) {
                s->life = RUN_LIFE_FAILED;
                explain_given_up(v, s, p);
        } else if (p->started || (p->object && is_current(s, p) && s->fence.state == RUN_RUNNING)) {
                s->life = RUN_LIFE_RUNNING; /* a relay may be faster than the kubelet */
        } else {
                s->life = RUN_LIFE_WAITING;
                s->reason = run_pod_waits(v, p, &s->sentence);
        }
}

/* ---- looking */

static void read_all(const struct view *v, struct run_seen *s, const struct run_pod *p)
{
        s->attempt = attempt_before(v, s->names);
        read_map(v, s, p);
        if (p->ended)
                read_exit(v, s, str_of(p->end_message));
        s->attempt = attempt_of(v, s, p);
        s->started = s->has_exit && s->exit.started_at ? s->exit.started_at : p->started_at;
        s->finished = s->has_exit && s->exit.finished_at ? s->exit.finished_at : p->finished_at;
}

/* The status ConfigMap as the server has it, because the cache may be behind. */
static bool look_at_map(const struct view *v, struct decision *d, struct run_seen *s)
{
        enum run_look look;
        const struct object *found = run_look_up(v, d, &KUBE_CONFIGMAP, s->names->status_map, &look);

        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        if (found && run_is_ours(v, found->json))
                s->status_map = found;
        return look == LOOK_DONE;
}

/*
 * The Job is not among the children: it is gone, or not here yet, or somebody took the label away by which it is watched; then
 * it is polled. False: nothing can be said yet. Without a Job *RET_GONE says whether there was one.
 */
static bool look_for_job(const struct view *v, struct decision *d, struct run_seen *s, struct run_pod *p,
                         bool *ret_gone)
{
        const struct object *found;
        enum run_look look;

        *ret_gone = run_job_was_there(v, s->names);
        if (!*ret_gone)
                return true;
        found = run_look_up(v, d, &KUBE_JOB, s->names->job, &look);
        *ret_gone = !found || !run_is_ours(v, found->json);
        if (!*ret_gone) {
                s->job = found;
                s->pod = run_look_up_pod(v, d, found, &look);
                run_pod_read(s->pod, p);
                read_all(v, s, p);
        }
        if (look == LOOK_FAILED || !*ret_gone)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        return look == LOOK_DONE;
}

/*
 * The Job has ended, or the pod should have, and the pod, as the cache has it, has not: Jobs and pods come by different
 * watches. Or it is complete, and the pod is not the one that ended well.
 */
static bool must_look_at_pod(const struct view *v, const struct run_seen *s, const struct run_pod *p)
{
        if (run_condition(s->job->json, "Complete"))
                return !streq(p->phase, "Succeeded") && !(is_recorded(s, p) && has_ended_well(s, p));
        return (!job_goes_on(s) || is_overdue(v, p)) && !is_recorded(s, p) && !p->ended && !p->over;
}

/* A complete Job had a pod that ended well. One that failed came before it, and so did what says that its own failed. */
static void pass_over_failed(const struct view *v, struct run_seen *s, struct run_pod *p)
{
        const char *failed = p->object && !streq(p->phase, "Succeeded") ? p->object->uid : NULL;

        if (failed) {
                s->pod = NULL;
                run_pod_read(NULL, p);
                p->not_of = failed;
                read_all(v, s, p);
        }
        if (!p->object && s->has_exit && !run_exit_success(&s->exit)) {
                p->not_of = arena_strdup(v->arena, s->fence.pod);
                read_all(v, s, p);
        }
}

static bool look_at_pod(const struct view *v, struct decision *d, struct run_seen *s, struct run_pod *p)
{
        bool complete = run_condition(s->job->json, "Complete"), map;
        const struct object *found;
        enum run_look look;

        if (!must_look_at_pod(v, s, p))
                return true;
        map = !complete || look_at_map(v, d, s);
        found = run_look_up_pod(v, d, s->job, &look);
        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        if (look != LOOK_DONE || !map)
                return false;
        s->pod = found;
        run_pod_read(found, p);
        read_all(v, s, p);
        if (complete)
                pass_over_failed(v, s, p);
        return true;
}

/*
 * A workload that has ended well stays the outcome when its relay was killed: the Job counts that as a failure, and may have
 * made another pod before anybody looked.
 */
static bool is_lost_success(const struct view *v, const struct run_seen *s, const struct object *pod,
                            struct run_pod *p)
{
        struct run_seen with = *s;

        if (pod->type != &KUBE_POD || pod == s->pod || !streq(meta_controller_uid(pod->json), s->job->uid))
                return false;
        with.pod = pod;
        run_pod_read(pod, p);
        read_all(v, &with, p);
        return p->over && p->ended && has_ended_well(&with, p);
}

static void take_lost_success(const struct view *v, struct run_seen *s, struct run_pod *p)
{
        struct run_pod other;

        for (size_t i = 0; s->job && i < v->n_children; i++)
                if (is_lost_success(v, s, &v->children[i], &other)) {
                        s->pod = &v->children[i];
                        *p = other;
                        read_all(v, s, p);
                        return;
                }
}

static const struct object *pod_with_uid(const struct view *v, const char *uid)
{
        for (size_t i = 0; i < v->n_children; i++)
                if (v->children[i].type == &KUBE_POD && streq(v->children[i].uid, uid))
                        return &v->children[i];
        return NULL;
}

/* A success that is recorded stays the outcome, whatever pod the Job made after it: no relay writes over it. */
static void take_recorded_success(const struct view *v, struct run_seen *s, struct run_pod *p)
{
        struct run_seen with = *s;
        struct run_pod other;

        if (s->fence.state != RUN_SUCCEEDED || s->fence.attempt < s->names->attempt || is_current(s, p))
                return;
        with.pod = pod_with_uid(v, s->fence.pod);
        run_pod_read(with.pod, &other);
        other.of = arena_strdup(v->arena, s->fence.pod);
        read_all(v, &with, &other);
        if (!has_ended_well(&with, &other))
                return;
        *s = with;
        *p = other;
}

bool run_see(const struct view *v, struct decision *d, const struct run_names *names, struct run_seen *ret)
{
        struct run_pod p;
        bool gone = false;

        memset(ret, 0, sizeof(*ret));
        ret->names = names;
        ret->job = view_child(v, &KUBE_JOB, names->job);
        ret->pod = run_newest_pod(v, ret->job);
        ret->status_map = view_child(v, &KUBE_CONFIGMAP, names->status_map);
        run_pod_read(ret->pod, &p);
        read_all(v, ret, &p);
        if (!ret->job && !look_for_job(v, d, ret, &p, &gone))
                return false;
        if (!ret->job && !gone)
                return true;
        take_lost_success(v, ret, &p);
        take_recorded_success(v, ret, &p);
        if (ret->job && !look_at_pod(v, d, ret, &p))
                return false;
        if (!is_recorded(ret, &p) && (gone || !job_goes_on(ret) || is_overdue(v, &p) ||
                                      (has_ended(ret, &p) && is_quiet(v, ret, &p)))) {
                if (!look_at_map(v, d, ret))
                        return false;
                read_all(v, ret, &p);
                take_recorded_success(v, ret, &p);
        }
        judge(v, d, ret, &p);
        return ret->life != RUN_LIFE_WAITING || ret->pod || ret->reason ||
               run_pod_refused(v, d, ret->job, &ret->reason, &ret->sentence, &ret->over_quota);
}

/* ---- what came out */

static void read_result(const struct view *v, struct run_seen *s, const struct json *map, struct json **ret)
{
        struct str text = json_text(json_at(json_at(map, "data"), RUN_KEY_RESULT));
        struct str packed = json_text(json_at(json_at(map, "binaryData"), RUN_KEY_RESULT ".gz"));
        _cleanup_(buf_done) struct buf raw = BUF_INIT(RESULT_MAX), plain = BUF_INIT(RESULT_MAX);
        struct err err = ERR_INIT;
        struct json *result;

        if (!text.n && !packed.n)
                return;
        if (!text.n && buf_add_unbase64(&raw, packed) && gunzip_add(&plain, buf_str(&raw), &err) == 0)
                text = buf_str(&plain);
        result = text.n && text.n < RESULT_MAX ? json_parse(v->arena, text, NULL, &err) : NULL;
        if (json_is(result, JSON_OBJECT))
                *ret = result;
        else
                problem(s, "ResultNotKept",
                        run_sentence(v,
                                     RUN_KEY_RESULT " is not in the status, which takes an object of less "
                                                    "than %d KiB; see the ConfigMap %s",
                                     RESULT_MAX >> 10, s->names->data_map));
}

bool run_result(const struct view *v, struct decision *d, struct run_seen *seen, struct json **ret)
{
        enum run_look look;
        const struct object *map = run_look_up(v, d, &KUBE_CONFIGMAP, seen->names->data_map, &look);

        *ret = NULL;
        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        if (map && run_is_ours(v, map->json))
                read_result(v, seen, map->json, ret);
        return look == LOOK_DONE;
}
