/*
 * The phase of a CUDAExperiment, and what follows from it.
 */
#include "kinds/cuda/internal.h"
#include "kinds/run_internal.h"

static void begin_turn(struct cuda_turn *t, const struct view *v, struct decision *d)
{
        const struct json *status = json_at(v->request, "status");

        *t = (struct cuda_turn){.v = v, .d = d, .kind = cuda_run_kind(v)};
        cuda_spec_read(v, &t->spec);
        cuda_run_read(v, &t->spec, &t->kind, &t->run);
        t->status = json_is(status, JSON_OBJECT) ? json_copy(v->arena, status) : json_object(v->arena);
        json_remove(t->status, "queue"); /* where it still waits, that is told anew */
}

static bool is_phase(const struct cuda_turn *t, const char *phase)
{
        return streq(cuda_phase_before(t->v), phase);
}

static const char *execution_job(const struct cuda_turn *t)
{
        return json_str(t->status, "executionJobName");
}

/* It was seen. */
static bool execution_was_made(const struct cuda_turn *t)
{
        return run_condition(t->v->request, "ExecutionJobCreated");
}

static bool is_cancelled(const struct cuda_turn *t)
{
        return is_phase(t, "Failed") &&
               streq(json_str(view_condition(t->v, "Failed"), "reason"), "Cancelled");
}

/* ---- the spec */

static int64_t generation_of(const struct view *v)
{
        return json_int(json_at(v->request, "metadata"), "generation", 0);
}

static bool is_observed(const struct view *v)
{
        return json_int(json_at(v->request, "status"), "observedGeneration", -1) == generation_of(v);
}

/* The spec of this generation was looked at before: accepted, or refused as a change. */
static bool was_checked(const struct view *v)
{
        const struct json *refused = view_condition(v, "SpecAccepted");

        return is_observed(v) || (json_int(refused, "observedGeneration", -1) == generation_of(v) &&
                                  streq(json_str(refused, "reason"), "SpecChangeRejected"));
}

/* True: go on. False: the experiment is refused. */
static bool check_spec(struct cuda_turn *t)
{
        bool begun = t->run.names.job || execution_job(t);
        const char *why = NULL, *reason;

        if (begun && was_checked(t->v))
                return true;
        reason = cuda_spec_check(t->v, &t->spec, &why);
        if (!reason)
                return true;
        if (begun) { /* what runs goes on as it was begun */
                t->run.invalid = why;
                return true;
        }
        cuda_fail(t, reason, why, reason, why);
        json_set(t->v->arena, t->status, "observedGeneration", json_i64(t->v->arena, generation_of(t->v)));
        t->d->status = t->status;
        return false;
}

/* What follows is made from the spec as it is now, whatever profiling was begun with. */
static void accept_spec(struct cuda_turn *t)
{
        struct run now = t->run;

        now.changed = false;
        run_settle_spec(t->v, t->d, &now, t->status);
}

/*
 * The execution Job was made from another spec than is there now. Nobody has edited one whose generation is known already,
 * whatever the hash says: a new default of the server's is no change.
 */
static bool execution_is_changed(const struct cuda_turn *t)
{
        const char *made = json_str(json_at(t->status, "execution"), "specHash");
        bool refused = streq(json_str(view_condition(t->v, "SpecAccepted"), "status"), "False");

        return made && !streq(made, cuda_spec_hash(t->v, &t->spec)) && (!is_observed(t->v) || refused);
}

/* It goes on with what it was made from. */
static void settle_spec_of_execution(struct cuda_turn *t, bool ended)
{
        struct json *execution = json_at(t->status, "execution");
        struct run now = t->run;

        now.over = ended;
        now.changed = execution_is_changed(t);
        run_settle_spec(t->v, t->d, &now, t->status);
        if (json_str(execution, "specHash") && !now.changed && !now.invalid)
                json_set(t->v->arena, execution, "specHash",
                         json_string(t->v->arena, cuda_spec_hash(t->v, &t->spec)));
}

/* ---- suspension, where there is no run to suspend */

static void set_suspended(struct cuda_turn *t, const char *sentence)
{
        cuda_set_phase(t, "Suspended");
        decide_condition(t->v, t->status, "Suspended", "True", "Suspended", sentence);
        cuda_tell_going_on(t, "Suspended", sentence);
}

static void set_resumed(struct cuda_turn *t)
{
        if (!t->run.suspended)
                return;
        decide_condition(t->v, t->status, "Suspended", "False", "Resumed", "the experiment is not suspended");
        decide_event(t->d, t->v, EVENT_NORMAL, "Resumed", "the experiment goes on");
}

static void fail_cancelled(struct cuda_turn *t)
{
        static const char sentence[] = "spec.cancel is true, and that is not taken back; create another "
                                       "experiment to run it again";

        cuda_fail(t, "Cancelled", sentence, "Cancelled", sentence);
}

/* ---- profiling */

/* Runs of one shape take about the same time. "": what runs was begun with another spec than is there now. */
static const char *shape_of(const struct cuda_turn *t)
{
        if (t->run.changed)
                return "";
        return arena_printf(t->v->arena, "cuda/%s", cuda_workload_hash(t->v, &t->spec));
}

/* What only this kind can say of it. */
static void explain(struct cuda_turn *t, struct run_seen *seen)
{
        static const char *const words[] = {"PodSecurity", "capabilities", "SYS_ADMIN"};
        const char *said = seen->sentence ? seen->sentence : "";
        bool forbidden = false;

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                forbidden = forbidden || strstr(said, words[i]);
        if (streq(seen->reason, "PodNotCreated") && t->spec.sys_admin && forbidden) {
                seen->reason = "ProfilingForbidden";
                seen->sentence = run_sentence(
                        t->v,
                        "the namespace forbids the capability SYS_ADMIN, with which profiling reads the "
                        "GPU's counters: set spec.profiling.permission to none where the nodes' driver has "
                        "NVreg_RestrictProfilingToAdminUsers=0, or use a namespace that allows it: %s",
                        run_quote(t->v, str_of(said)));
        } else if (streq(seen->reason, "DeadlineExceeded") && t->spec.timeout) {
                seen->sentence = run_sentence(
                        t->v,
                        "profiling held its node for longer than spec.profiling.timeout allows (%s); allow "
                        "more time or measure fewer launches",
                        run_quote(t->v, json_text(json_path(t->v->request, "spec.profiling.timeout"))));
        }
}

static void fail_run(struct cuda_turn *t, const struct run_seen *seen)
{
        const char *why = seen->sentence ? seen->sentence : "it does not say why";

        if (streq(seen->reason, "Cancelled"))
                cuda_fail(t, "Cancelled", why, "Cancelled", why);
        else
                cuda_fail(
                        t, seen->reason ? seen->reason : "ProfilingJobFailed", why, "ProfilingJobFailed",
                        arena_printf(t->v->arena, "Profiling Job \"%s\" failed: %s", seen->names->job, why));
}

static void set_phase_of_run(struct cuda_turn *t, const struct run_seen *seen)
{
        bool edited = streq(seen->reason, "Edited");

        if (seen->life == RUN_LIFE_SUSPENDED)
                cuda_set_phase(t, "Suspended");
        else if (edited || (!seen->job && !run_over(seen) && !is_phase(t, "Profiling")))
                cuda_set_phase(t, "Pending");
        else
                cuda_set_phase(t, "Profiling");
}

static void settle_run(struct cuda_turn *t)
{
        const struct priors *priors = NULL;
        const char *shape = shape_of(t);
        struct run_seen seen;

        if (!run_settle(t->v, t->d, &t->run, &seen, t->status))
                return;
        if (!run_over(&seen) && !run_priors(t->v, t->d, shape, &priors))
                return;
        explain(t, &seen);
        run_progress(t->v, t->d, &seen, priors, t->status);
        if (seen.life == RUN_LIFE_FAILED) {
                fail_run(t, &seen);
        } else {
                set_phase_of_run(t, &seen);
                cuda_tell_run(t, &seen);
        }
        if (run_over(&seen) && !t->run.over)
                t->d->row = run_row(t->v, &seen, shape);
        t->d->status = t->status;
}

/*
 * Profiling was switched off while an attempt was to be made, and nothing of it is there: nothing comes of it. What runs is not
 * interrupted: then the change is refused.
 */
static bool is_left_out(const struct cuda_turn *t)
{
        const struct run *run = &t->run;

        if (t->spec.profiling || !run->names.job || run->over)
                return false;
        return run_at_rest(t->v, t->d, run) ||
               (!view_child(t->v, &KUBE_JOB, run->names.job) && !run_job_was_there(t->v, &run->names));
}

/* The run has succeeded: its summary becomes the profile. False: look-ups are under way. */
static bool make_profile(struct cuda_turn *t)
{
        const char *reason, *message;
        struct json *status;

        if (!cuda_profile_read(t->v, t->d, &t->kind, &status, &reason, &message))
                return false;
        if (!status) {
                cuda_fail(t, reason, message, reason, message);
                return true;
        }
        cuda_profile_plan(t->v, t->d, &t->spec, status);
        cuda_set_phase(t, "Profiling");
        cuda_tell_going_on(t, NULL, "the program was profiled, and its WorkloadProfile is being made");
        return true;
}

/* ---- from a profile to the execution */

static void tell_profile(struct cuda_turn *t, const struct cuda_profile *profile)
{
        struct arena *a = t->v->arena;
        bool own = profile->name && !profile->users && !profile->reused;
        bool completed = streq(json_str(json_at(t->status, "run"), "outcome"), "Succeeded");

        json_remove(t->status, "profileName");
        json_remove(t->status, "boundType");
        if (profile->name) {
                json_set(a, t->status, "profileName", json_string(a, profile->name));
                json_set(a, t->status, "boundType",
                         json_string(a, profile->bound ? profile->bound : "unknown"));
        }
        if (own && completed)
                cuda_tell(t, "ProfilingCompleted", "ProfilingJobCompleted",
                          arena_printf(a, "Profiling Job \"%s\" completed", t->run.names.job));
        else
                cuda_take_back(t, "ProfilingCompleted");
}

/* False: look-ups are under way. */
static bool leave_out(struct cuda_turn *t)
{
        struct run_seen seen;

        if (!run_abandon(t->v, t->d, &t->run, "NotWanted", &seen, t->status))
                return false;
        t->d->row = run_row(t->v, &seen, "");
        return true;
}

/* Nothing of the profiling Job runs any more, and none is made: the execution is named, and made when that is written. */
static void begin_execution(struct cuda_turn *t, const struct cuda_profile *profile)
{
        struct arena *a = t->v->arena;
        bool left_out = is_left_out(t);
        const char *name;

        if (t->run.names.job && !left_out && !run_at_rest(t->v, t->d, &t->run)) {
                set_resumed(t);
                cuda_set_phase(t, "Profiling");
                tell_profile(t, profile);
                cuda_tell_going_on(t, NULL, "the execution follows as soon as the profiling pod has ended");
                t->d->status = t->status;
                return;
        }
        name = cuda_execution_name(t->v, t->d);
        if ((left_out && !leave_out(t)) || !name)
                return;
        set_resumed(t);
        json_set(a, t->status, "executionJobName", json_string(a, name));
        cuda_set_phase(t, "Executing");
        tell_profile(t, profile);
        accept_spec(t);
        cuda_tell_progress(t);
        cuda_tell_going_on(t, NULL, "the execution Job is being made");
        t->d->status = t->status;
}

/* A spec that cannot be run is waited for: a profile is not lost to it. */
static void hold(struct cuda_turn *t)
{
        run_settle_spec(t->v, t->d, &t->run, t->status);
        if (!is_phase(t, "Failed") && !is_phase(t, "Suspended"))
                cuda_tell_going_on(t, "Invalid", t->run.invalid);
        t->d->status = t->status;
}

/* It could go on without the run for a while, by a person's profile, which is gone. */
static void fail_once_more(struct cuda_turn *t)
{
        const struct run_seen seen = {
                .life = RUN_LIFE_FAILED,
                .reason = json_str(json_at(t->status, "run"), "reason"),
                .sentence = "profiling had failed before, and no WorkloadProfile is left; change the spec",
                .names = &t->run.names,
        };

        fail_run(t, &seen);
}

/* No attempt is under way, and no profile fits. */
static void settle_without_profile(struct cuda_turn *t)
{
        const char *outcome = json_str(json_at(t->status, "run"), "outcome");

        if (!t->run.over || t->run.changed) { /* a profile of another workload is stale */
                t->run.renew = true;
                settle_run(t);
                if (t->d->status)
                        set_resumed(t);
                return;
        }
        if (!is_phase(t, "Failed") && streq(outcome, "Succeeded") && !make_profile(t))
                return;
        if (!is_phase(t, "Failed") && streq(outcome, "Failed"))
                fail_once_more(t);
        set_resumed(t);
        accept_spec(t);
        t->d->status = t->status;
}

/* By people, while no attempt is under way. What has failed has failed, unless a changed spec is to begin anew. */
static void stop_before(struct cuda_turn *t)
{
        bool anew = !t->run.over || (t->run.changed && !t->run.controls.cancel);
        bool failed = is_phase(t, "Failed") && !anew;

        if (!failed && t->run.controls.cancel)
                fail_cancelled(t);
        else if (!failed)
                set_suspended(t, "spec.suspend is true; set it to false to go on");
        if (!t->run.changed) /* a change counts for what follows, and is accepted with it */
                accept_spec(t);
        t->d->status = t->status;
}

/* Nothing was executed yet. */
static void settle_before(struct cuda_turn *t)
{
        struct cuda_profile profile = {0};

        if (t->run.names.job && !t->run.over && !is_left_out(t)) {
                settle_run(t);
        } else if (t->run.invalid && !t->run.controls.cancel) {
                hold(t);
        } else if (t->run.controls.cancel || t->run.controls.suspend) {
                stop_before(t);
        } else if (t->spec.profiling && !cuda_profile_find(t->v, t->d, &t->spec, &profile)) {
                return;
        } else if (profile.name || !t->spec.profiling) {
                begin_execution(t, &profile);
        } else {
                settle_without_profile(t);
        }
}

/* ---- the execution */

/* What is told of the nodes is another thing at every look: a hint is written once, or it would be written for ever. */
static bool is_hinted(const struct json *status, const struct json *hint)
{
        return streq(json_str(json_at(status, "placement"), "boundType"), json_str(hint, "boundType"));
}

/* The hint is for whoever looks at the profile, which must be ours to write to. */
static void tell_placement(struct cuda_turn *t, const struct cuda_placement *place)
{
        struct arena *a = t->v->arena;
        const char *name = json_str(t->status, "profileName");
        const struct object *profile = name ? view_child(t->v, &WORKLOADPROFILE, name) : NULL;
        const struct json *is = profile ? json_at(profile->json, "status") : NULL;

        if (place->reason)
                decide_event(t->d, t->v, EVENT_NORMAL, "Placement", "%s", place->reason);
        if (place->hint && json_is(is, JSON_OBJECT) && !is_hinted(is, place->hint)) {
                struct json *status = json_copy(a, is);

                json_set(a, status, "placement", json_copy(a, place->hint));
                cuda_profile_plan(t->v, t->d, &t->spec, status);
        }
}

static void make_execution(struct cuda_turn *t)
{
        const char *bound = json_str(t->status, "boundType");
        struct cuda_placement place;

        if (t->run.invalid) {
                hold(t);
                return;
        }
        if (!is_observed(t->v)) { /* edited since it was decided: another profile may fit */
                json_remove(t->status, "executionJobName");
                settle_before(t);
                return;
        }
        if (!cuda_place(t->v, t->d, &t->spec, bound, &place))
                return;
        tell_placement(t, &place);
        cuda_execution_plan(t->v, t->d, &t->spec, &t->run.controls, execution_job(t), &place);
        t->d->status = t->status;
}

static void tell_execution(struct cuda_turn *t, const struct cuda_execution_seen *seen)
{
        bool there = seen->state > EXECUTION_GONE;

        if (seen->status)
                json_set(t->v->arena, t->status, "execution", seen->status);
        if (there)
                cuda_tell(t, "ExecutionJobCreated", "JobCreated",
                          arena_printf(t->v->arena, "Execution Job \"%s\" exists", execution_job(t)));
        else if (seen->state == EXECUTION_GONE && !t->run.suspended)
                decide_condition(t->v, t->status, "ExecutionJobCreated", "False", "JobDeleted",
                                 arena_printf(t->v->arena, "Execution Job \"%s\" is gone", execution_job(t)));
        else
                cuda_take_back(t, "ExecutionJobCreated");
}

static void fail_execution(struct cuda_turn *t, const char *reason, const char *sentence,
                           const char *upstream)
{
        cuda_fail(t, reason, sentence, upstream,
                  arena_printf(t->v->arena, "Execution Job \"%s\" failed: %s", execution_job(t), sentence));
        if (json_is(json_at(t->status, "execution"), JSON_OBJECT))
                json_set(t->v->arena, json_at(t->status, "execution"), "message",
                         json_string(t->v->arena, sentence));
}

static void follow_execution(struct cuda_turn *t, const struct cuda_execution_seen *seen)
{
        cuda_set_phase(t, "Executing");
        settle_spec_of_execution(t, false);
        if (seen->state == EXECUTION_RUNNING)
                cuda_tell_going_on(t, NULL, "the execution Job runs");
        else
                cuda_tell_going_on(t, seen->reason,
                                   seen->sentence ? seen->sentence : "the pods have not started yet");
}

/* The Job is deleted when this is written, and made again from the spec as it is then. */
static void suspend_execution(struct cuda_turn *t, const struct cuda_execution_seen *seen)
{
        bool there = seen->state > EXECUTION_GONE;

        if (!t->run.controls.suspend && !there) {
                json_remove(t->status, "executionJobName");
                json_remove(t->status, "execution");
                settle_before(t);
                return;
        }
        if (!t->run.suspended)
                decide_event(t->d, t->v, EVENT_NORMAL, "Suspended",
                             "the execution Job is deleted; set spec.suspend to false to make it again");
        set_suspended(t, t->run.controls.suspend
                                 ? "spec.suspend is true; set it to false to make the execution Job again"
                                 : "the execution Job is made again as soon as the old one is gone");
        if (t->run.invalid || !execution_is_changed(t)) /* a change counts for what follows */
                settle_spec_of_execution(t, false);
        t->d->status = t->status;
}

static void end_execution(struct cuda_turn *t, const struct cuda_execution_seen *seen)
{
        if (t->run.suspended)
                decide_condition(t->v, t->status, "Suspended", "False", "Ended", "the experiment has ended");
        if (seen->state == EXECUTION_SUCCEEDED)
                cuda_tell_succeeded(t);
        else if (seen->state == EXECUTION_FAILED)
                fail_execution(t, seen->reason, seen->sentence, "ExecutionJobFailed");
        else if (t->run.controls.cancel)
                fail_cancelled(t);
        else
                fail_execution(t, "JobDeleted",
                               "it was deleted by somebody before it ended, and is not made again; create "
                               "another experiment",
                               "JobDeleted");
        settle_spec_of_execution(t, true);
        cuda_tell_progress(t);
        t->d->status = t->status;
}

/* A success that the cache has not shown yet must not be lost to a cancellation. */
static bool has_finished_meanwhile(struct cuda_turn *t)
{
        enum run_look look;
        const struct object *job = run_look_up(t->v, t->d, &KUBE_JOB, execution_job(t), &look);
        bool finished = job && run_is_ours(t->v, job->json) && run_job_finished(job->json);

        if (look == LOOK_FAILED || finished)
                decide_again_at(t->d, usec_add(t->v->now, RUN_LOOK_AGAIN));
        return look != LOOK_DONE || finished;
}

static void settle_execution(struct cuda_turn *t)
{
        struct cuda_execution_seen seen;
        bool suspended = t->run.suspended || t->run.controls.suspend, there;

        if (!cuda_execution_see(t->v, t->d, execution_job(t), execution_was_made(t), &seen))
                return;
        there = seen.state > EXECUTION_GONE;
        tell_execution(t, &seen);
        if (seen.state >= EXECUTION_SUCCEEDED) {
                end_execution(t, &seen);
        } else if (t->run.controls.cancel) {
                if (!there || !has_finished_meanwhile(t))
                        end_execution(t, &seen);
        } else if (suspended) {
                suspend_execution(t, &seen);
        } else if (seen.state == EXECUTION_NONE) {
                make_execution(t);
        } else if (seen.state == EXECUTION_GONE) {
                end_execution(t, &seen);
        } else {
                follow_execution(t, &seen);
                t->d->status = t->status;
        }
}

/* Nothing follows any more; what is told stays true. */
static void settle_ended(struct cuda_turn *t)
{
        if (!view_child(t->v, &KUBE_JOB, execution_job(t)))
                cuda_take_back(t, "ExecutionJobCreated");
        settle_spec_of_execution(t, true);
        t->d->status = t->status;
}

/* ---- both */

void cuda_plan(const struct view *v, struct decision *d)
{
        struct cuda_turn t;
        const struct object *map;
        const char *name, *why;

        begin_turn(&t, v, d);
        name = execution_job(&t);
        if (name && (t.run.suspended || is_phase(&t, "Failed")))
                cuda_execution_remove(v, d, name);
        if ((name || is_phase(&t, "Failed") || is_left_out(&t)) && !t.run.over)
                t.run.suspended = true; /* it is not to go on */
        if (!cuda_plan_run(v, d, &t.run, &t.spec, &why)) {
                cuda_fail(&t, "Invalid", why, "Invalid", why);
                d->status = t.status;
                return;
        }
        map = t.run.over ? view_child(v, &KUBE_CONFIGMAP, t.kind.status_map) : NULL;
        if (map) /* all that it told has been taken over */
                decide_absent(d, map);
}

void cuda_settle(const struct view *v, struct decision *d)
{
        struct cuda_turn t;

        if (d->status)
                return;
        begin_turn(&t, v, d);
        if (is_cancelled(&t) || !check_spec(&t))
                return;
        if (!execution_job(&t))
                settle_before(&t);
        else if (is_phase(&t, "Succeeded") || is_phase(&t, "Failed"))
                settle_ended(&t);
        else
                settle_execution(&t);
}
