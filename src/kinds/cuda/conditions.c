/*
 * How an experiment's status tells where it is: the phase, upstream's conditions and those that tools read.
 *
 * A condition of upstream's is True with upstream's reason and message, and False as soon as it is not true any more; there is
 * none of what never was.
 */
#include "kinds/cuda/internal.h"
#include "kinds/run_internal.h"

static void condition(struct cuda_turn *t, const char *type, const char *value, const char *reason,
                      const char *message)
{
        decide_condition(t->v, t->status, type, value, reason, message);
}

/* As the new status has it. */
static const struct json *condition_now(const struct cuda_turn *t, const char *type)
{
        json_foreach (c, json_at(t->status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

/* ---- the phase */

const char *cuda_phase_before(const struct view *v)
{
        return json_str_or(json_at(v->request, "status"), "phase", "");
}

static bool is_recorded(const struct cuda_turn *t, const char *reason)
{
        vec_foreach (event, &t->d->events)
                if (streq(event->reason, reason))
                        return true;
        return false;
}

/* That of Failed says why, see cuda_fail(). */
void cuda_set_phase(struct cuda_turn *t, const char *phase)
{
        static const struct {
                const char *phase, *reason, *note;
        } events[] = {
                {"Pending", "Accepted", "the experiment is accepted"},
                {"Suspended", "Suspended", "set spec.suspend to false to go on"},
                {"Profiling", "Profiling", "the program is profiled first"},
                {"Executing", "Executing", "the program is executed"},
                {"Succeeded", "Succeeded", "the execution Job has succeeded"},
        };

        json_set(t->v->arena, t->status, "phase", json_string(t->v->arena, phase));
        if (!streq(phase, "Failed"))
                cuda_take_back(t, "Failed");
        for (size_t i = 0; i < ARRAY_LEN(events); i++)
                if (streq(phase, events[i].phase) && !streq(phase, cuda_phase_before(t->v)) &&
                    !is_recorded(t, events[i].reason))
                        decide_event(t->d, t->v, EVENT_NORMAL, events[i].reason, "%s", events[i].note);
}

/* ---- upstream's */

void cuda_tell(struct cuda_turn *t, const char *type, const char *reason, const char *message)
{
        condition(t, type, "True", reason, message);
}

void cuda_take_back(struct cuda_turn *t, const char *type)
{
        const char *phase = json_str_or(t->status, "phase", "Pending");

        if (streq(json_str(condition_now(t, type), "status"), "True"))
                condition(t, type, "False", phase,
                          arena_printf(t->v->arena, "not any more: the experiment is %s", phase));
}

void cuda_fail(struct cuda_turn *t, const char *reason, const char *sentence, const char *upstream_reason,
               const char *upstream_message)
{
        const struct json *before = view_condition(t->v, "Stalled");
        bool told = streq(cuda_phase_before(t->v), "Failed") && streq(json_str(before, "reason"), reason) &&
                    streq(json_str(before, "message"), sentence);

        cuda_set_phase(t, "Failed");
        cuda_take_back(t, "ProfilingPending");
        cuda_take_back(t, "ProfilingRunning");
        cuda_tell(t, "Failed", upstream_reason, upstream_message);
        condition(t, "Ready", "False", reason, sentence);
        condition(t, "Progressing", "False", reason, sentence);
        condition(t, "Stalled", "True", reason, sentence);
        if (!told)
                decide_event(t->d, t->v, EVENT_WARNING, reason, "%s", sentence);
}

/* ---- a run */

static void tell_profiling(struct cuda_turn *t, const struct run_seen *seen)
{
        struct arena *a = t->v->arena;
        const char *job = seen->names->job;

        if (seen->life == RUN_LIFE_WAITING && seen->job)
                cuda_tell(t, "ProfilingPending", "WaitingForProfile",
                          arena_printf(
                                  a, "Profiling Job \"%s\" exists and is waiting for WorkloadProfile \"%s\"",
                                  job, cuda_profile_name(t->v)));
        else
                cuda_take_back(t, "ProfilingPending");
        if (seen->life == RUN_LIFE_RUNNING)
                cuda_tell(t, "ProfilingRunning", "ProfilingJobRunning",
                          arena_printf(a, "Profiling Job \"%s\" is still running", job));
        else
                cuda_take_back(t, "ProfilingRunning");
}

void cuda_tell_run(struct cuda_turn *t, const struct run_seen *seen)
{
        tell_profiling(t, seen);
        cuda_take_back(t, "ProfilingCompleted"); /* by an attempt before this one */
        condition(t, "Ready", "False", "InProgress", "the experiment has not ended yet");
        condition(t, "Stalled", "False", "InProgress", "the experiment has not ended yet");
}

/* ---- after it */

void cuda_tell_going_on(struct cuda_turn *t, const char *reason, const char *sentence)
{
        cuda_take_back(t, "ProfilingPending");
        cuda_take_back(t, "ProfilingRunning");
        condition(t, "Progressing", reason ? "False" : "True",
                  reason ? reason : json_str_or(t->status, "phase", ""), sentence);
        condition(t, "Ready", "False", "InProgress", "the experiment has not ended yet");
        condition(t, "Stalled", "False", "InProgress", "the experiment has not ended yet");
}

void cuda_tell_succeeded(struct cuda_turn *t)
{
        static const char message[] = "the execution Job has succeeded";

        cuda_set_phase(t, "Succeeded");
        condition(t, "Ready", "True", "Succeeded", message);
        condition(t, "Progressing", "False", "Succeeded", message);
        condition(t, "Stalled", "False", "Succeeded", message);
}

void cuda_tell_progress(struct cuda_turn *t)
{
        static const char *const moved[] = {"phaseNumber", "totalPhases",         "step",
                                            "currentStep", "totalSteps",          "subPhase",
                                            "message",     "estimatedCompletion", "eta"};
        struct arena *a = t->v->arena;
        struct json *progress = json_at(t->status, "progress");

        if (!json_is(progress, JSON_OBJECT))
                progress = json_set(a, t->status, "progress", json_object(a));
        for (size_t i = 0; i < ARRAY_LEN(moved); i++)
                json_remove(progress, moved[i]);
        json_set(a, progress, "phase", json_string(a, json_str_or(t->status, "phase", "")));
}
