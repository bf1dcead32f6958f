/*
 * One attempt after another: what a run's controls and its failures make of it.
 */
#include "kinds/run_control.h"

#include "kinds/run_internal.h"

static const struct json *spec_of(const struct view *v)
{
        return json_at(v->request, "spec");
}

static const struct json *run_of(const struct view *v)
{
        return json_at(json_at(v->request, "status"), "run");
}

/* The attempt is over, and the next one is begun when nothing of it is left. NULL: it is not. */
static const char *next_for(const struct view *v, const struct run *run)
{
        return run->over ? NULL : json_str(run_of(v), "reason");
}

/* ---- what is left of Jobs */

/* What the run, as its status has it, has to do with limits. */
static enum admission_stand stand_of(const struct view *v, struct decision *d, const struct run *run)
{
        if (run->over || !run->names.job)
                return ADMISSION_NONE;
        if (run->suspended && !(v->admission && run_any_pod_ends(v, d, run)))
                return ADMISSION_NONE;
        return ADMISSION_HOLDS;
}

/* The attempt's Job, if that is not among the children: somebody took the label away by which it is watched. */
static const struct object *unwatched(const struct view *v, const struct run_seen *seen)
{
        return seen->job && !view_child(v, &KUBE_JOB, seen->job->name) ? seen->job : NULL;
}

static void remove_unwatched(const struct view *v, struct decision *d, const struct run_seen *seen)
{
        const struct object *job = unwatched(v, seen);

        if (job && !run_job_finished(job->json))
                decide_absent_foreground(d, job);
}

/* ---- plan */

/*
 * The Job of an attempt that has succeeded: it stays, with its log, as those of other attempts do. But not one whose pod has a
 * container that never ends.
 */
static bool ends_by_itself(const struct view *v, struct decision *d, const struct run *run)
{
        const struct object *job = view_child(v, &KUBE_JOB, run->names.job);
        struct run_pod p;
        usec_t until;

        if (run->suspended || !streq(next_for(v, run), "NextPod") || !job)
                return false;
        run_pod_read(run_newest_pod(v, job), &p);
        if (!p.object || p.asked_to_end)
                return false;
        if (!p.ended)
                return true;
        until = usec_add(p.finished_at, RUN_ENDING_PATIENCE);
        if (v->now < until)
                decide_again_at(d, until);
        return v->now < until && p.finished_at <= usec_add(v->now, RUN_ENDING_PATIENCE);
}

/* A pod may be ending still below a Job that has failed: what begins next must know of it. */
static bool all_finished(const struct view *v)
{
        for (size_t i = 0; i < v->n_children; i++) {
                const struct object *o = &v->children[i];
                struct run_pod p;

                if (o->type == &KUBE_JOB && !run_job_finished(o->json))
                        return false;
                if (o->type != &KUBE_POD)
                        continue;
                run_pod_read(o, &p);
                if (!p.over)
                        return false;
        }
        return true;
}

static void plan_after(const struct view *v, struct decision *d, const struct run *run)
{
        const char *reason = json_str(run_of(v), "reason");

        if (streq(reason, "Cancelled") || streq(reason, "DeadlineExceeded")) {
                run_remove_unfinished(v, d, run, NULL);
                return;
        }
        run_remove_unfinished(v, d, run, run->names.job);
        if (run->names.job)
                run_job_halt(v, d, &run->names);
}

static void fill_in(const struct view *v, const struct run *run, struct run_job *job)
{
        job->names = run->names;
        job->spec_hash = json_str(run_of(v), "specHash");
        job->run_as_user = run->controls.run_as_user;
        if (!run->controls.priority_class)
                return;
        if (!job->pod)
                job->pod = json_object(v->arena);
        json_set(v->arena, job->pod, "priorityClassName",
                 json_string(v->arena, run->controls.priority_class));
}

bool run_plan(const struct view *v, struct decision *d, const struct run *run, struct run_job *job,
              const char **why)
{
        bool there = run->names.job && view_child(v, &KUBE_JOB, run->names.job), others;

        *why = NULL;
        d->admission = run_wish(v, run, stand_of(v, d, run));
        if (run->over) {
                plan_after(v, d, run);
                d->rests = all_finished(v);
                return true;
        }
        if (!run->names.job)
                return true; /* settle finds it */
        if (run->suspended || next_for(v, run)) {
                run_remove_unfinished(v, d, run, ends_by_itself(v, d, run) ? run->names.job : NULL);
                return true;
        }
        run_remove_unfinished(v, d, run, run->names.job);
        others = run_any_lingers(v, d, run, run->names.job);
        /* Not before the others are gone; and an attempt that was not made yet is made with what it was begun with, or not. */
        if (!there && (others || run->changed))
                return true;
        fill_in(v, run, job);
        if (run_job_plan(v, d, job, why))
                return true;
        d->admission.stand = ADMISSION_NONE;
        return false;
}

bool run_at_rest(const struct view *v, struct decision *d, const struct run *run)
{
        bool under_way = !run->over && !run->suspended && !next_for(v, run);

        return !under_way && !run_any_lingers(v, d, run, NULL);
}

/* ---- settle: the spec */

static int64_t generation_of(const struct view *v)
{
        return json_int(json_at(v->request, "metadata"), "generation", 0);
}

/* The hash follows: it may be another one for the same spec, where the server has a new default. */
static void accept_spec(const struct view *v, const struct run *run, struct json *status)
{
        struct json *of = json_at(status, "run");

        if (json_at(of, "specHash"))
                json_set(v->arena, of, "specHash", json_string(v->arena, run->spec_hash));
        json_set(v->arena, status, "observedGeneration", json_i64(v->arena, generation_of(v)));
        if (view_condition(v, "SpecAccepted"))
                decide_condition(v, status, "SpecAccepted", "True", "Accepted",
                                 "the run was begun with this spec");
}

static const char *refusal(const struct view *v, const struct run *run)
{
        if (run->invalid)
                return run_sentence(v, "The spec as it is now cannot be run: %s", run->invalid);
        if (run->over)
                return "Cannot modify spec after the run: what it says is for the spec that was run; set it "
                       "back, or create another request";
        return "Cannot modify spec in flight: the run goes on with what it was begun with; set it back, "
               "suspend and resume the request to begin again with the new one, or create another request";
}

static void refuse_spec(const struct view *v, struct decision *d, const struct run *run, struct json *status)
{
        const struct json *before = view_condition(v, "SpecAccepted");
        const char *why = refusal(v, run);

        if (!streq(json_str(before, "status"), "False") ||
            json_int(before, "observedGeneration", -1) != generation_of(v))
                decide_event(d, v, EVENT_WARNING, "SpecChangeRejected", "%s", why);
        decide_condition(v, status, "SpecAccepted", "False", run->invalid ? "Invalid" : "SpecChangeRejected",
                         why);
}

void run_settle_spec(const struct view *v, struct decision *d, const struct run *run, struct json *status)
{
        if (run->changed || run->invalid)
                refuse_spec(v, d, run, status);
        else
                accept_spec(v, run, status);
}

/* While no attempt is under way: what was changed counts for the next one, and is accepted with it. */
static void settle_spec_of_next(const struct view *v, struct decision *d, const struct run *run,
                                struct json *status)
{
        if (run->invalid)
                refuse_spec(v, d, run, status);
        else if (!run->changed)
                accept_spec(v, run, status);
        else if (streq(json_str(view_condition(v, "SpecAccepted"), "reason"), "Invalid"))
                decide_condition(v, status, "SpecAccepted", "True", "Accepted",
                                 "the next attempt is begun with this spec");
}

/* ---- settle: attempts */

static void set_attempt(const struct view *v, struct decision *d, const struct run_names *names,
                        int64_t retries, const char *hash, struct json *status)
{
        json_set(v->arena, status, "run",
                 json_build(v->arena, "{'attempt': %llu, 'job': %s, 'retries': %lld, 'specHash': %s}",
                            (unsigned long long)names->attempt, names->job, (long long)retries, hash));
        d->admission.stand = ADMISSION_HOLDS;
}

/* status.run as it is, to add to. */
static struct json *run_in(const struct view *v, struct json *status)
{
        const struct json *run = run_of(v);

        return json_set(v->arena, status, "run",
                        json_is(run, JSON_OBJECT) ? json_copy(v->arena, run) : json_object(v->arena));
}

/* SENTENCE is why; NULL: it is not suspended. */
static void set_suspended(const struct view *v, const char *sentence, struct json *status)
{
        if (sentence)
                decide_condition(v, status, "Suspended", "True", "Suspended", sentence);
        else if (view_condition(v, "Suspended"))
                decide_condition(v, status, "Suspended", "False", "Resumed", "the run is not suspended");
}

static bool same_fence(const struct run_fence *a, const struct run_fence *b)
{
        return a->attempt == b->attempt && streq(a->pod, b->pod) && a->state == b->state;
}

/* What pods have recorded is all known: a success that the cache has not shown yet must not be lost. False: wait. */
static bool record_is_known(const struct view *v, struct decision *d, const struct run *run,
                            const struct run_seen *seen)
{
        enum run_look look;
        const struct object *map = run_look_up(v, d, &KUBE_CONFIGMAP, run->names.status_map, &look);
        struct run_fence fence = {0};
        struct err err = ERR_INIT;
        bool known;

        if (map && run_is_ours(v, map->json) && run_fence_read(json_at(map->json, "data"), &fence, &err) < 0)
                fence = (struct run_fence){0};
        known = look == LOOK_DONE && same_fence(&fence, &seen->fence);
        if (look != LOOK_UNDER_WAY && !known)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        return known;
}

/* The attempt of these names, with the spec as it is now. */
static void begin(const struct view *v, struct decision *d, const struct run *run,
                  const struct run_names *names, const char *reason, const char *sentence, int64_t retries,
                  struct run_seen *ret, struct json *status)
{
        d->exist.n = 0; /* it is for the one before */
        set_attempt(v, d, names, retries, run->spec_hash, status);
        accept_spec(v, run, status);
        set_suspended(v, NULL, status);
        *ret = (struct run_seen){.life = RUN_LIFE_WAITING,
                                 .reason = reason,
                                 .sentence = sentence,
                                 .names = names,
                                 .attempt = names->attempt};
}

/* Those of attempt NUMBER. NULL: a look-up is under way. */
static const struct run_names *names_of(const struct view *v, struct decision *d, const struct run *run,
                                        uint64_t number)
{
        struct run_names *names = arena_new(v->arena, struct run_names);

        *names = run->names;
        names->attempt = number;
        names->job = run_job_name(v, d, run->kind->job, number);
        return names->job ? names : NULL;
}

/* The next attempt, when nothing of the one before it is left. False: look-ups are under way. */
static bool begin_next(const struct view *v, struct decision *d, const struct run *run, const char *reason,
                       const char *sentence, int64_t retries, struct run_seen *ret, struct json *status)
{
        uint64_t number = MAX(MAX(run->names.attempt, ret->attempt), ret->fence.attempt) + 1;
        bool known = record_is_known(v, d, run, ret);
        const struct run_names *names = names_of(v, d, run, number);

        if (!names || !known)
                return false;
        begin(v, d, run, names, reason, sentence, retries, ret, status);
        return true;
}

/* Nothing of the attempt before is left, and there is something to begin with. */
static bool may_begin(const struct view *v, struct decision *d, const struct run *run,
                      const struct run_seen *seen)
{
        const struct object *job = unwatched(v, seen);

        return !run_any_lingers(v, d, run, NULL) && !(job && run_lingers(v, d, job)) && !run->invalid;
}

static void wait_for(struct run_seen *ret, const char *reason, const char *sentence)
{
        ret->life = RUN_LIFE_WAITING;
        ret->reason = reason;
        ret->sentence = sentence;
        ret->infrastructure = ret->over_quota = false;
}

/* The attempt is over; the next one is begun at once, or when nothing of this one is left: then status.run.reason says it. */
static bool go_on(const struct view *v, struct decision *d, const struct run *run, const char *reason,
                  const char *sentence, int64_t retries, struct run_seen *ret, struct json *status)
{
        if (may_begin(v, d, run, ret)) {
                if (!begin_next(v, d, run, reason, sentence, retries, ret, status))
                        return false;
        } else {
                struct json *of = run_in(v, status);

                json_set(v->arena, of, "reason", json_string(v->arena, reason));
                json_set(v->arena, of, "retries", json_i64(v->arena, retries));
                settle_spec_of_next(v, d, run, status);
                d->exist.n = 0;
                wait_for(ret, reason, sentence);
        }
        decide_event(d, v, streq(reason, "Retrying") ? EVENT_WARNING : EVENT_NORMAL, reason, "%s", sentence);
        return true;
}

/* Without what a person could do about it: that is done. */
static const char *without_advice(const struct view *v, const char *sentence)
{
        const char *advice = strrchr(sentence, ';');

        return advice ? arena_strndup(v->arena, sentence, (size_t)(advice - sentence)) : sentence;
}

static bool retry(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                  struct json *status)
{
        const char *sentence = run_sentence(v, "attempt %llu failed: %s; another one follows",
                                            (unsigned long long)ret->attempt,
                                            without_advice(v, ret->sentence));

        return go_on(v, d, run, "Retrying", sentence, run->retries + 1, ret, status);
}

/* What was said when the next attempt was decided. */
static const char *said_before(const struct view *v, const char *reason)
{
        const struct json *before = view_condition(v, "Progressing");

        return streq(json_str(before, "reason"), reason) ? json_str(before, "message") : NULL;
}

static const char *sentence_of_next(const struct view *v, const char *reason)
{
        const char *before = said_before(v, reason);

        return before && *before ? before : "another attempt is begun";
}

/* Decided, but the Job of the attempt before is still there. */
static bool await_next(const struct view *v, struct decision *d, const struct run *run, const char *reason,
                       struct run_seen *ret, struct json *status)
{
        const char *sentence = sentence_of_next(v, reason);

        reason = arena_strdup(v->arena, reason);
        if (may_begin(v, d, run, ret))
                return begin_next(v, d, run, reason, sentence, run->retries, ret, status);
        settle_spec_of_next(v, d, run, status);
        if (run->invalid)
                wait_for(ret, "Invalid", refusal(v, run));
        else
                wait_for(ret, reason, sentence);
        return true;
}

/* ---- settle: suspension */

static void be_suspended(const struct view *v, const struct run *run, struct run_seen *ret,
                         struct json *status)
{
        ret->life = RUN_LIFE_SUSPENDED;
        ret->reason = "Suspended";
        ret->infrastructure = false;
        if (run->controls.suspend)
                ret->sentence = "spec.suspend is true; set it to false to go on";
        else if (run->invalid)
                ret->sentence = refusal(v, run);
        else
                ret->sentence = "the run goes on as soon as the pod of the last attempt is gone";
        set_suspended(v, ret->sentence, status);
}

static bool suspend(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                    struct json *status)
{
        decide_event(d, v, EVENT_NORMAL, "Suspended",
                     "the Job is deleted; set spec.suspend to false to go on");
        json_remove(run_in(v, status), "reason");
        settle_spec_of_next(v, d, run, status);
        be_suspended(v, run, ret, status);
        d->exist.n = 0;
        return true;
}

/* It stays suspended until it is admitted. */
static bool stay_queued(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                        struct json *status)
{
        if (!run_queued(v, run, ret, status))
                return false;
        settle_spec_of_next(v, d, run, status);
        set_suspended(v, ret->sentence, status);
        return true;
}

static bool stay_suspended(const struct view *v, struct decision *d, const struct run *run,
                           struct run_seen *ret, struct json *status)
{
        if (!run->controls.suspend && may_begin(v, d, run, ret)) {
                if (!run_admitted(v, d, run))
                        return stay_queued(v, d, run, ret, status);
                if (!begin_next(v, d, run, "Resumed", "the run was suspended and goes on", run->retries, ret,
                                status))
                        return false;
                decide_event(d, v, EVENT_NORMAL, "Resumed", "the run goes on with another attempt");
                return true;
        }
        settle_spec_of_next(v, d, run, status);
        be_suspended(v, run, ret, status);
        return true;
}

/* ---- settle: the end */

static void cancelled(struct run_seen *ret)
{
        ret->life = RUN_LIFE_FAILED;
        ret->reason = "Cancelled";
        ret->sentence =
                "spec.cancel is true, and that is not taken back; create another request to run it again";
        ret->infrastructure = false;
}

static void set_outcome(const struct view *v, const struct run_seen *ret, struct json *status)
{
        struct json *of = run_in(v, status);

        json_remove(of, "reason");
        json_set(v->arena, of, "outcome",
                 json_string(v->arena, ret->life == RUN_LIFE_SUCCEEDED ? "Succeeded" : "Failed"));
        json_set(v->arena, of, "reason", json_string(v->arena, ret->reason));
}

static bool end(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                struct json *status)
{
        struct run over = *run;

        if (!run_job_dismiss(v, d, &run->names))
                return false;
        set_outcome(v, ret, status);
        d->admission.stand = ADMISSION_NONE;
        over.over = true;
        run_settle_spec(v, d, &over, status);
        set_suspended(v, NULL, status);
        return true;
}

/* Told once more, to a kind for which more follows than the run. */
static void tell_outcome(const struct view *v, const struct run *run, struct run_seen *ret)
{
        const struct json *of = run_of(v);

        *ret = (struct run_seen){.life = streq(json_str(of, "outcome"), "Succeeded") ? RUN_LIFE_SUCCEEDED
                                                                                     : RUN_LIFE_FAILED,
                                 .reason = json_str(of, "reason"),
                                 .names = &run->names,
                                 .attempt = run->names.attempt};
        ret->sentence = ret->reason ? said_before(v, ret->reason) : NULL;
}

static bool is_own_failure(const struct run_seen *seen)
{
        return seen->life == RUN_LIFE_FAILED && !seen->infrastructure && !streq(seen->reason, "JobDeleted");
}

/* ---- settle: an attempt */

static bool settle_first(const struct view *v, struct decision *d, const struct run *run,
                         struct run_seen *ret, struct json *status)
{
        const struct run_names *names;

        *ret = (struct run_seen){.names = &run->names, .attempt = run->names.attempt};
        if (run->controls.cancel || run->controls.suspend) {
                accept_spec(v, run, status);
                if (run->controls.cancel) {
                        cancelled(ret);
                        set_outcome(v, ret, status);
                        set_suspended(v, NULL, status);
                } else {
                        be_suspended(v, run, ret, status);
                }
                return true;
        }
        if (!run_admitted(v, d, run)) {
                accept_spec(v, run, status);
                set_suspended(v, NULL, status);
                return run_queued(v, run, ret, status);
        }
        names = names_of(v, d, run, run->names.attempt);
        if (!names)
                return false;
        set_attempt(v, d, names, 0, run->spec_hash, status);
        accept_spec(v, run, status);
        set_suspended(v, NULL, status);
        ret->names = names;
        return true;
}

/* The attempt as it was told: of a Job that retries by itself it may be a later one. */
static uint64_t told_attempt(const struct view *v, const struct run *run)
{
        const struct json *before = json_at(json_at(v->request, "status"), "progress");
        int64_t told = streq(json_str(before, "job"), run->names.job) ? json_int(before, "attempt", 1) : 1;

        return MAX(run->names.attempt, (uint64_t)MAX(told, (int64_t)1));
}

/*
 * Before Kubernetes 1.26 a Job makes another pod for one that was deleted, even if it may not fail at all. An attempt is one
 * Job's one pod, on all servers: this one is over, and nothing is told of the other pod.
 */
static void see_second_pod(const struct view *v, const struct run *run, struct run_seen *ret)
{
        bool left = run->suspended || next_for(v, run);

        if (ret->attempt <= told_attempt(v, run) || (ret->job ? run_job_retries(ret->job->json) : !left))
                return;
        if (!run_over(ret)) {
                ret->life = RUN_LIFE_FAILED;
                ret->infrastructure = true;
                ret->reason = "Interrupted";
                ret->sentence = run_sentence(
                        v, "the pod was deleted while the workload ran; start the run again");
        }
        ret->attempt = told_attempt(v, run);
        ret->pod = NULL;
        ret->has_status = ret->has_track = ret->has_exit = false;
        ret->started = ret->finished = 0;
}

/* A pod of the attempt has run. */
static bool has_run(const struct run *run, const struct run_seen *seen)
{
        return seen->life == RUN_LIFE_RUNNING || seen->started ||
               (seen->fence.pod[0] && seen->fence.attempt >= run->names.attempt);
}

/* Not once the workload has ended: what its relay has to record yet is the run's own. */
static bool timed_out(const struct view *v, struct decision *d, const struct run *run,
                      const struct run_seen *seen)
{
        struct str text = json_text(
                json_at(json_at(seen->pod ? seen->pod->json : NULL, "status"), "startTime"));
        usec_t since, until;

        if (!run->controls.timeout || seen->finished || !text.p || !time_parse(text, &since))
                return false;
        until = usec_add(since, run->controls.timeout);
        if (v->now < until)
                decide_again_at(d, until);
        return v->now >= until;
}

static void exceed(const struct view *v, struct run_seen *ret)
{
        ret->life = RUN_LIFE_FAILED;
        ret->reason = "DeadlineExceeded";
        ret->infrastructure = false;
        ret->sentence = said_before(v, ret->reason);
        if (!ret->sentence)
                ret->sentence = run_sentence(
                        v,
                        "attempt %llu held its node for longer than spec.timeout allows (%s); allow "
                        "more time or have it do less",
                        (unsigned long long)ret->attempt,
                        run_quote(v, json_text(json_at(spec_of(v), "timeout"))));
}

/*
 * People or the clock end it. While its Job goes on that is only written down: what the run needs is taken away when nothing
 * can bring it back to life any more. False: look-ups are under way; a success that the cache has not shown yet must
 * not be dropped.
 */
static bool stop(const struct view *v, struct decision *d, const struct run *run, const char *reason,
                 struct run_seen *ret, struct json *status)
{
        if (!record_is_known(v, d, run, ret))
                return false;
        if (streq(reason, "Cancelled"))
                cancelled(ret);
        else
                exceed(v, ret);
        if (!ret->job || run_job_finished(ret->job->json) || run->suspended || next_for(v, run))
                return end(v, d, run, ret, status);
        json_set(v->arena, run_in(v, status), "reason", json_string(v->arena, reason));
        settle_spec_of_next(v, d, run, status);
        d->exist.n = 0;
        wait_for(ret, ret->reason, ret->sentence);
        return true;
}

/* What ends it for good, as it was written down or as the request says. NULL: nothing. */
static const char *stopped_by(const struct view *v, const struct run *run, const struct run_seen *seen)
{
        const char *next = next_for(v, run);

        if (streq(next, "Cancelled") || streq(next, "DeadlineExceeded"))
                return arena_strdup(v->arena, next);
        /* What the relay of a workload that has ended has to record yet is the run's own. */
        return run->controls.cancel && !(seen->life == RUN_LIFE_RUNNING && seen->finished) ? "Cancelled"
                                                                                           : NULL;
}

static bool settle_failed(const struct view *v, struct decision *d, const struct run *run,
                          struct run_seen *ret, struct json *status)
{
        if (!ret->infrastructure || run->retries >= run->controls.retries) {
                if (!record_is_known(v, d, run, ret))
                        return false;
                if (ret->infrastructure && run->retries)
                        ret->sentence = run_sentence(
                                v, "attempt %llu failed, and spec.retries allows no other: %s",
                                (unsigned long long)ret->attempt, ret->sentence);
                return end(v, d, run, ret, status);
        }
        return run->controls.suspend ? suspend(v, d, run, ret, status) : retry(v, d, run, ret, status);
}

/* The attempt's Job is not there yet. */
static void tell_begun(const struct view *v, const struct run *run, struct run_seen *ret)
{
        static const char *const reasons[] = {"Resumed", "Edited", "NextPod", "Retrying"};
        size_t i = 0;

        if (ret->life != RUN_LIFE_NONE || run->names.attempt == 1)
                return;
        while (i + 1 < ARRAY_LEN(reasons) && !said_before(v, reasons[i]))
                i++;
        ret->life = RUN_LIFE_WAITING;
        ret->reason = reasons[i];
        ret->sentence = sentence_of_next(v, reasons[i]);
}

static bool settle_attempt(const struct view *v, struct decision *d, const struct run *run,
                           struct run_seen *ret, struct json *status)
{
        if (ret->life == RUN_LIFE_FAILED)
                return settle_failed(v, d, run, ret, status);
        if (timed_out(v, d, run, ret))
                return stop(v, d, run, "DeadlineExceeded", ret, status);
        if (run->controls.suspend)
                return suspend(v, d, run, ret, status);
        if (run->changed && !run->invalid && !has_run(run, ret))
                return go_on(v, d, run, "Edited", "the spec was changed before anything ran", run->retries,
                             ret, status);
        run_settle_spec(v, d, run, status);
        tell_begun(v, run, ret);
        return true;
}

bool run_abandon(const struct view *v, struct decision *d, const struct run *run, const char *reason,
                 struct run_seen *ret, struct json *status)
{
        struct run now = *run;

        if (!run_see(v, d, &run->names, ret))
                return false;
        if (ret->life != RUN_LIFE_SUCCEEDED) {
                if (!record_is_known(v, d, run, ret))
                        return false;
                *ret = (struct run_seen){.life = RUN_LIFE_FAILED,
                                         .reason = reason,
                                         .names = &run->names,
                                         .attempt = told_attempt(v, run)};
        }
        now.changed = false; /* what it was begun with does not matter any more */
        return end(v, d, &now, ret, status);
}

/* Also an attempt that was cancelled before it had a Job. */
static bool may_renew(const struct view *v, struct decision *d, const struct run *run)
{
        return run->renew && run->changed && !run->invalid && run->names.job && !run->controls.cancel &&
               !run->controls.suspend && !run_any_lingers(v, d, run, NULL);
}

static bool settle_over(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                        struct json *status)
{
        static const char sentence[] =
                "the spec was changed after the last attempt, and nothing came of that";

        const struct run_names *names;

        tell_outcome(v, run, ret);
        if (!may_renew(v, d, run))
                return true;
        if (!run_admitted(v, d, run))
                return run_queued(v, run, ret, status);
        names = names_of(v, d, run, told_attempt(v, run) + 1);
        if (!names)
                return false;
        begin(v, d, run, names, "Edited", sentence, 0, ret, status);
        decide_event(d, v, EVENT_NORMAL, "Edited", "%s", sentence);
        return true;
}

/* People may still stop or change what follows: of an attempt that has succeeded that alone is left. */
static bool follow(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                   struct json *status)
{
        static const char sentence[] = "this pod has measured all; the next one follows";
        const char *stopped = stopped_by(v, run, ret);

        if (stopped)
                return stop(v, d, run, stopped, ret, status);
        if (run->suspended)
                return stay_suspended(v, d, run, ret, status);
        if (run->controls.suspend)
                return suspend(v, d, run, ret, status);
        if (next_for(v, run))
                return await_next(v, d, run, next_for(v, run), ret, status);
        return go_on(v, d, run, "NextPod", sentence, run->retries, ret, status);
}

static bool settle_succeeded(const struct view *v, struct decision *d, const struct run *run,
                             struct run_seen *ret, struct json *status)
{
        bool again = false;

        if (run->again && !run->again(v, d, ret, &again))
                return false;
        return again ? follow(v, d, run, ret, status) : end(v, d, run, ret, status);
}

static bool settle_run(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                       struct json *status)
{
        const char *next = next_for(v, run);

        if (run->over)
                return settle_over(v, d, run, ret, status);
        if (!run->names.job)
                return settle_first(v, d, run, ret, status);
        if (!run_see(v, d, &run->names, ret))
                return false;
        if (ret->life == RUN_LIFE_SUCCEEDED)
                return settle_succeeded(v, d, run, ret, status);
        /* What was decided on an edit in time is not undone by how the old one fails. */
        if (is_own_failure(ret) && !streq(next, "Edited"))
                return end(v, d, run, ret, status);
        see_second_pod(v, run, ret);
        if (run->suspended || next)
                remove_unwatched(v, d, ret);
        if (stopped_by(v, run, ret))
                return stop(v, d, run, stopped_by(v, run, ret), ret, status);
        if (run->suspended)
                return stay_suspended(v, d, run, ret, status);
        if (next && run->controls.suspend)
                return suspend(v, d, run, ret, status);
        if (next)
                return await_next(v, d, run, next, ret, status);
        return settle_attempt(v, d, run, ret, status);
}

bool run_settle(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                struct json *status)
{
        json_remove(status, "queue"); /* where it still waits, that is told anew */
        if (!settle_run(v, d, run, ret, status))
                return false;
        run_tell_quota(v, ret, status);
        return true;
}
