/*
 * How far the profiling is, in the designs' own fields and words.
 */
#include "kinds/dgdr/internal.h"
#include "kinds/run_internal.h"

enum { TOTAL_PHASES = 7 };

static const char in_progress[] = "Profiling is in progress";

static int number_of(const char *phase)
{
        return phase ? run_phase_number(&RUN_PLAN_DGDR, phase) : 0;
}

void dgdr_take_known_phase(const struct view *v, struct run_seen *seen)
{
        if (!seen->has_status || number_of(seen->status.phase))
                return;
        seen->has_status = false;
        if (seen->problem)
                return;
        seen->problem_reason = "UnknownPhase";
        seen->problem = run_sentence(
                v, "the reported phase '%s' is not used: it is none of the nine, from Initializing to Failed",
                run_quote(v, str_of(seen->status.phase)));
}

/* ---- profilingProgress */

static void set_phase(struct arena *a, struct json *progress, const char *phase)
{
        json_set(a, progress, "phase", json_string(a, phase));
        json_set(a, progress, "phaseNumber", json_i64(a, number_of(phase)));
}

static void set_steps(struct arena *a, struct json *progress, const struct run_status *st)
{
        json_set(a, progress, "subPhase", json_string(a, st->sub_phase));
        if (!st->has_progress)
                return;
        json_set(a, progress, "currentStep", json_i64(a, st->current_step));
        json_set(a, progress, "totalSteps", json_i64(a, st->total_steps));
        json_set(a, progress, "percentage",
                 json_double(a, run_percentage(st->current_step, st->total_steps)));
}

/* The phase that the relay saw last. */
static const char *tracked_phase(const struct run_seen *seen)
{
        const struct track_phase *last = NULL;

        for (uint32_t i = 0; seen->has_track && i < seen->track.n; i++) {
                const struct track_phase *p = &seen->track.phases[i];

                if (number_of(p->name) && !run_phase_terminal(p->name) && (!last || p->began >= last->began))
                        last = p;
        }
        return last ? last->name : NULL;
}

/* Where it was before it failed: what it says or said to the relay is newer than what the status told. */
static const char *failed_in(const struct run_seen *seen, const struct json *before)
{
        const char *phase = json_str(before, "phase");

        if (seen->has_status && !run_phase_terminal(seen->status.phase))
                return seen->status.phase;
        if (tracked_phase(seen))
                return tracked_phase(seen);
        return phase && !run_phase_terminal(phase) ? phase : json_str(before, "failedPhase");
}

/* The last word of a profiler that gave up says neither step nor GPUs: those where it was stay, if that is where it was. */
static void keep_place(struct arena *a, struct json *progress, const struct run_seen *seen,
                       const struct json *before)
{
        static const char *const members[] = {"currentStep", "totalSteps", "percentage", "subPhase",
                                              "gpuConfig"};
        const char *phase = json_str(before, "phase");

        if (!streq(phase, "Failed") && !streq(phase, failed_in(seen, before)))
                return;
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                const struct json *value = json_at(before, members[i]);

                if (value && !json_at(progress, members[i]))
                        json_set(a, progress, members[i], json_copy(a, value));
        }
}

/* Of an error the first 500 bytes; the log has all of it. */
static const char *message_of(struct arena *a, const struct run_status *st)
{
        static const char before[] = "Profiling failed: ";
        size_t n = strlen(st->message), max = RUN_ERROR_MAX + sizeof(before) - 1;

        if (!streq(st->phase, "Failed") || n <= max)
                return st->message;
        return arena_printf(a, "%.*s", (int)utf8_cut(st->message, n, max), st->message);
}

static struct json *reported(const struct view *v, const struct run_seen *seen, const struct json *before)
{
        struct arena *a = v->arena;
        const struct run_status *st = &seen->status;
        struct json *progress = json_object(a);

        set_phase(a, progress, st->phase);
        json_set(a, progress, "totalPhases", json_i64(a, TOTAL_PHASES));
        json_set(a, progress, "message", json_string(a, message_of(a, st)));
        set_steps(a, progress, st);
        json_set(a, progress, "startedAt", run_time_json(a, st->started_at ? st->started_at : seen->started));
        json_set(a, progress, "lastUpdated", run_time_json(a, st->timestamp));
        json_set(a, progress, "gpuConfig", run_gpu_config(a, st));
        if (streq(st->phase, "Failed")) {
                keep_place(a, progress, seen, before);
                json_set(a, progress, "failedPhase", json_string(a, failed_in(seen, before)));
        }
        return progress;
}

static void tell_end(const struct view *v, const struct run_seen *seen, struct json *progress,
                     const struct json *before)
{
        struct arena *a = v->arena;

        if (seen->life == RUN_LIFE_SUCCEEDED) {
                set_phase(a, progress, "Complete");
                return;
        }
        if (!json_at(progress, "failedPhase"))
                json_set(a, progress, "failedPhase", json_string(a, failed_in(seen, before)));
        if (!streq(json_str(progress, "phase"), "Failed")) {
                json_set(
                        a, progress, "message",
                        json_string(a, run_sentence(v, "Profiling failed: %s",
                                                    seen->sentence ? seen->sentence : "no reason is known")));
        }
        set_phase(a, progress, "Failed");
}

/* What the common progress says of the whole run. */
static void set_overall(struct arena *a, struct json *progress, const struct json *common)
{
        const struct json *percent = json_at(common, "percent");
        const char *mid = json_str(json_at(common, "estimatedCompletion"), "mid");

        json_remove(progress, "overallPercentage");
        json_remove(progress, "estimatedCompletion");
        json_set(a, progress, "overallPercentage", percent ? json_copy(a, percent) : NULL);
        json_set(a, progress, "estimatedCompletion", json_string(a, mid));
}

/* An attempt follows the one that told of its failure: it has not failed any more. */
static void take_back_failure(struct arena *a, struct json *progress)
{
        const char *phase = json_str(progress, "failedPhase");

        if (!streq(json_str(progress, "phase"), "Failed") || !phase)
                return;
        set_phase(a, progress, phase);
        json_remove(progress, "failedPhase");
}

/* NULL: nothing was ever reported (an old profiler), and nothing is made up. */
static struct json *progress_json(const struct view *v, const struct run_seen *seen,
                                  const struct json *status)
{
        const struct json *before = json_at(json_at(v->request, "status"), "profilingProgress");
        struct json *progress;

        if (seen->has_status)
                progress = reported(v, seen, before);
        else if (before)
                progress = json_copy(v->arena, before);
        else
                return NULL;
        if (run_over(seen))
                tell_end(v, seen, progress, before);
        else if (!seen->has_status)
                take_back_failure(v->arena, progress);
        set_overall(v->arena, progress, json_at(status, "progress"));
        return progress;
}

/* ---- conditions */

/* What is done, with the step: "Profiling decode with batch size 496 (4/6, 66.7%)". Some say the step themselves. */
static const char *with_step(struct arena *a, const struct json *progress, bool percent)
{
        const char *message = json_str_or(progress, "message", "");
        int64_t step = json_int(progress, "currentStep", 0), of = json_int(progress, "totalSteps", 0);
        const char *said = arena_printf(a, " (%lld/%lld)", (long long)step, (long long)of);
        struct str text = str_of(message);

        if (of <= 0)
                return message;
        if (str_has_suffix(text, str_of(said)))
                text.n -= strlen(said);
        if (!percent)
                return arena_printf(a, "%.*s%s", STR_ARG(text), said);
        return arena_printf(a, "%.*s (%lld/%lld, %.1f%%)", STR_ARG(text), (long long)step, (long long)of,
                            run_percentage(step, of));
}

static const char *phase_message(struct arena *a, const struct json *progress)
{
        const char *phase = json_str(progress, "phase");

        if (!phase)
                return in_progress;
        if (run_phase_terminal(phase))
                return json_str_or(progress, "message", in_progress);
        return arena_printf(a, "[Phase %d/%d: %s] %s", number_of(phase), TOTAL_PHASES, phase,
                            with_step(a, progress, true));
}

static void tell_profiling(const struct view *v, const struct run_seen *seen, const struct json *progress,
                           struct json *status)
{
        const char *sentence = seen->sentence ? seen->sentence : in_progress;

        switch (seen->life) {
        case RUN_LIFE_NONE:
                decide_condition(v, status, "Profiling", "False", "Initializing",
                                 seen->sentence ? seen->sentence : "The profiling job is being set up");
                break;
        case RUN_LIFE_WAITING:
                decide_condition(v, status, "Profiling", "False", "ProfilingRunning", sentence);
                break;
        case RUN_LIFE_RUNNING:
                decide_condition(v, status, "Profiling", "False", "ProfilingRunning",
                                 phase_message(v->arena, progress));
                break;
        case RUN_LIFE_SUSPENDED:
                decide_condition(v, status, "Profiling", "False", "Suspended", sentence);
                break;
        case RUN_LIFE_SUCCEEDED:
                decide_condition(v, status, "Profiling", "True", "ProfilingCompleted",
                                 "Profiling job completed successfully");
                break;
        case RUN_LIFE_FAILED:
                decide_condition(v, status, "Profiling", "False", "ProfilingFailed", sentence);
                break;
        }
}

void dgdr_tell_progress(const struct view *v, const struct run_seen *seen, struct json *status)
{
        struct arena *a = v->arena;
        struct json *progress = progress_json(v, seen, status);
        const char *phase = json_str(progress, "phase");

        json_remove(status, "profilingProgress");
        json_remove(status, "profilingPhase");
        json_set(a, status, "profilingPhase", json_string(a, phase));
        json_set(a, status, "profilingProgress", progress);
        tell_profiling(v, seen, progress, status);
        if (phase)
                decide_condition(v, status, "ProfilingPhase", streq(phase, "Failed") ? "False" : "True",
                                 phase,
                                 run_phase_terminal(phase) ? json_str_or(progress, "message", "")
                                                           : with_step(a, progress, false));
}
