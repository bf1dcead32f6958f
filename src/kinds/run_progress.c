/*
 * How the request's status tells of a run: status.progress and the conditions.
 */
#include "kinds/run_internal.h"

struct json *run_time_json(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return when ? json_string(a, time_format(when, text)) : NULL;
}

static const struct json *any_before(const struct view *v)
{
        return json_at(json_at(v->request, "status"), "progress");
}

/* What was told of the same attempt; NULL: nothing. */
static const struct json *progress_before(const struct view *v, const struct run_seen *s)
{
        const struct json *before = any_before(v);
        bool same = streq(json_str(before, "job"), s->names->job) &&
                    (uint64_t)json_int(before, "attempt", 0) == s->attempt;

        return same ? before : NULL;
}

/* ---- status.progress */

/* What the last good state of this attempt said. */
static void keep_reported(struct arena *a, struct json *progress, const struct json *before)
{
        static const char *const members[] = {"percent",
                                              "phase",
                                              "phaseNumber",
                                              "totalPhases",
                                              "step",
                                              "currentStep",
                                              "totalSteps",
                                              "subPhase",
                                              "message",
                                              "gpuConfig",
                                              "bestSoFar",
                                              "updatedAt",
                                              "estimatedCompletion",
                                              "eta"};

        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                const struct json *value = json_at(before, members[i]);

                json_set(a, progress, members[i], value ? json_copy(a, value) : NULL);
        }
}

struct json *run_gpu_config(struct arena *a, const struct run_status *st)
{
        struct json *gpus = json_object(a);

        if (st->has_gpu_config && st->current_gpus >= 0)
                json_set(a, gpus, "currentGpus", json_i64(a, st->current_gpus));
        if (st->has_gpu_config && st->parallel_mapping && *st->parallel_mapping)
                json_set(a, gpus, "parallelMapping", json_string(a, st->parallel_mapping));
        return json_first(gpus) ? gpus : NULL;
}

static void set_reported(struct arena *a, struct json *progress, const struct run_status *st)
{
        json_set(a, progress, "phase", json_string(a, st->phase));
        if (st->phase_number > 0) {
                json_set(a, progress, "phaseNumber", json_i64(a, st->phase_number));
                json_set(a, progress, "totalPhases", json_i64(a, st->total_phases));
        }
        if (st->has_progress) {
                json_set(a, progress, "step",
                         json_string(a, arena_printf(a, "%lld/%lld", (long long)st->current_step,
                                                     (long long)st->total_steps)));
                json_set(a, progress, "currentStep", json_i64(a, st->current_step));
                json_set(a, progress, "totalSteps", json_i64(a, st->total_steps));
        }
        json_set(a, progress, "subPhase", json_string(a, st->sub_phase));
        json_set(a, progress, "message", json_string(a, st->message));
        json_set(a, progress, "gpuConfig", run_gpu_config(a, st));
        json_set(a, progress, "bestSoFar", json_string(a, st->best));
}

/* "15:12", with "Nov 17 " in front where that is not the day of NEAR. */
static const char *clock_time(struct arena *a, usec_t when, usec_t near)
{
        static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        const usec_t day = 86400 * USEC_PER_SEC;
        char text[TIME_TEXT_MAX];
        uint64_t month = 1, date = 1;

        time_format(when, text); /* 2026-11-17T15:12:00Z */
        if (when / day == near / day)
                return arena_strndup(a, text + 11, 5);
        (void)(str_to_u64(str_n(text + 5, 2), &month) && str_to_u64(str_n(text + 8, 2), &date));
        return arena_printf(a, "%s %llu %.5s", months[(month - 1) % 12], (unsigned long long)date, text + 11);
}

/* "15:12Z (15:08-15:21)", for a column of kubectl's; without a range that is less than a minute. */
static const char *eta_text(struct arena *a, const struct eta *eta, usec_t updated)
{
        const char *low = clock_time(a, eta->low, eta->mid), *high = clock_time(a, eta->high, eta->mid);
        const char *mid = clock_time(a, eta->mid, updated);

        return streq(low, high) ? arena_printf(a, "%sZ", mid)
                                : arena_printf(a, "%sZ (%s-%s)", mid, low, high);
}

static void set_estimate(struct arena *a, struct json *progress, const struct eta *eta, usec_t updated)
{
        if (!eta->known)
                return;
        json_set(a, progress, "estimatedCompletion",
                 json_build(a, "{'low': %p, 'mid': %p, 'high': %p, 'basis': %s}",
                            (void *)run_time_json(a, eta->low), (void *)run_time_json(a, eta->mid),
                            (void *)run_time_json(a, eta->high), eta->basis));
        json_set(a, progress, "eta", json_string(a, eta_text(a, eta, updated)));
}

/* The first attempt's, whatever came after it. */
static usec_t started_at(const struct view *v, const struct run_seen *s)
{
        struct str text = json_text(json_at(any_before(v), "startedAt"));
        usec_t first;

        if (text.p && time_parse(text, &first))
                return first;
        return s->has_track && s->track.started ? s->track.started : s->started;
}

/* Also of a pod that came and went between two looks. */
static const char *pod_uid(const struct run_seen *s, const struct json *before)
{
        bool recorded = s->life == RUN_LIFE_SUCCEEDED && s->fence.state == RUN_SUCCEEDED;

        if (s->pod)
                return s->pod->uid;
        return s->fence.pod[0] && (s->fence.attempt == s->attempt || recorded) ? s->fence.pod
                                                                               : json_str(before, "podUID");
}

static const char *pod_name(const struct run_seen *s, const struct json *before)
{
        if (s->pod)
                return s->pod->name;
        return streq(pod_uid(s, before), json_str(before, "podUID")) ? json_str(before, "pod") : NULL;
}

/* Never less than was told of the same attempt: a plan that grows, or a history that is new, may say less. NULL: unknown. */
static struct json *percent_of(struct arena *a, const struct progress *now, const struct json *before)
{
        double percent = now->percent, told;

        if (json_to_double(json_at(before, "percent"), &told))
                percent = MAX(told, percent);
        return percent < 0 ? NULL : json_double(a, percent);
}

static struct json *progress_json(const struct view *v, const struct run_seen *s, const struct progress *now)
{
        struct arena *a = v->arena;
        const struct json *before = progress_before(v, s);
        struct json *progress = json_object(a);

        if (s->has_status) {
                usec_t updated = s->has_track ? s->track.moved : s->status.timestamp;

                set_reported(a, progress, &s->status);
                json_set(a, progress, "percent", percent_of(a, now, before));
                json_set(a, progress, "updatedAt", run_time_json(a, updated));
                set_estimate(a, progress, &now->eta, updated);
        } else {
                keep_reported(a, progress, before);
        }
        if (s->life == RUN_LIFE_SUCCEEDED)
                json_set(a, progress, "percent", json_i64(a, 100));
        if (s->life >= RUN_LIFE_SUSPENDED) {
                json_remove(progress, "estimatedCompletion");
                json_remove(progress, "eta");
        }
        json_set(a, progress, "attempt", json_u64(a, s->attempt));
        json_set(a, progress, "startedAt", run_time_json(a, started_at(v, s)));
        if (s->names->job && (s->job || run_job_was_there(v, s->names)))
                json_set(a, progress, "job", json_string(a, s->names->job));
        json_set(a, progress, "pod", json_string(a, pod_name(s, before)));
        json_set(a, progress, "podUID", json_string(a, pod_uid(s, before)));
        return progress;
}

/* ---- conditions */

/* What only somebody else can change does not progress. */
static bool waits_for_us(const char *reason)
{
        static const char *const ours[] = {"Retrying", "Resumed", "Edited", "NextPod"};
        bool any = !reason;

        for (size_t i = 0; i < ARRAY_LEN(ours); i++)
                any = any || streq(reason, ours[i]);
        return any;
}

static void say_progressing(const struct view *v, const struct run_seen *s, const struct progress *now,
                            struct json *status)
{
        const char *sentence = s->sentence ? s->sentence : "";

        switch (s->life) {
        case RUN_LIFE_NONE:
                decide_condition(v, status, "Progressing", "True", s->reason ? s->reason : "Creating",
                                 s->reason ? sentence : "the run is being set up");
                break;
        case RUN_LIFE_WAITING:
                decide_condition(v, status, "Progressing", waits_for_us(s->reason) ? "True" : "False",
                                 s->reason ? s->reason : "Waiting",
                                 s->reason ? sentence : "the pod has not started yet");
                break;
        case RUN_LIFE_RUNNING:
                if (now->moving)
                        decide_condition(v, status, "Progressing", "True", "Running", "the workload runs");
                else
                        decide_condition(v, status, "Progressing", "False", "NotMoving",
                                         "the workload runs, but has reported nothing for far longer than "
                                         "its steps take; see its log");
                break;
        case RUN_LIFE_SUSPENDED:
                decide_condition(v, status, "Progressing", "False", "Suspended", sentence);
                break;
        case RUN_LIFE_SUCCEEDED:
                decide_condition(v, status, "Progressing", "False", "Succeeded", "the run has succeeded");
                break;
        case RUN_LIFE_FAILED:
                decide_condition(v, status, "Progressing", "False", s->reason, sentence);
                break;
        }
}

/* One event when it turns: a profiler that writes nonsense every second is told once. */
static void say_reporting(const struct view *v, struct decision *d, const struct run_seen *s,
                          struct json *status)
{
        const struct json *before = view_condition(v, "Reporting");
        bool another = json_str(any_before(v), "job") && !progress_before(v, s);

        if (s->problem) {
                if (!streq(json_str(before, "status"), "False"))
                        decide_event(d, v, EVENT_WARNING, s->problem_reason, "%s", s->problem);
                decide_condition(v, status, "Reporting", "False", s->problem_reason, s->problem);
        } else if (s->has_status) {
                decide_condition(v, status, "Reporting", "True", "Reported", "the run reports its progress");
        } else if (!before || another) {
                decide_condition(v, status, "Reporting", "Unknown", "NothingYet",
                                 "the run has not reported anything yet");
        }
}

void run_progress(const struct view *v, struct decision *d, const struct run_seen *seen,
                  const struct priors *priors, struct json *status)
{
        struct progress now = {.percent = -1 /* no data is not 0 */, .moving = true};

        if (seen->has_status && seen->has_track) {
                track_progress(&seen->track, run_status_plan(v->arena, &seen->status), priors, v->now, &now);
                if (seen->life == RUN_LIFE_RUNNING && now.moving && now.not_moving_at)
                        decide_again_at(d, now.not_moving_at);
        } else if (seen->has_status && seen->status.overall >= 0) {
                now.percent = seen->status.overall;
        }
        if (seen->life != RUN_LIFE_NONE)
                json_set(v->arena, status, "progress", progress_json(v, seen, &now));
        say_progressing(v, seen, &now, status);
        say_reporting(v, d, seen, status);
}

void run_ready(const struct view *v, struct decision *d, const struct run_seen *seen, struct json *status)
{
        const char *sentence = seen->sentence ? seen->sentence : "";

        if (seen->life == RUN_LIFE_SUCCEEDED) {
                sentence = seen->sentence ? seen->sentence : "the run has succeeded";
                decide_condition(v, status, "Ready", "True", "Succeeded", sentence);
                decide_condition(v, status, "Stalled", "False", "Succeeded", "the run has succeeded");
                decide_event(d, v, EVENT_NORMAL, "Succeeded", "%s", sentence);
        } else if (seen->life == RUN_LIFE_FAILED) {
                decide_condition(v, status, "Ready", "False", seen->reason, sentence);
                decide_condition(v, status, "Stalled", "True", seen->reason, sentence);
                decide_event(d, v, EVENT_WARNING, seen->reason, "%s", sentence);
        } else {
                decide_condition(v, status, "Ready", "False", "InProgress", "the run has not ended yet");
                decide_condition(v, status, "Stalled", "False", "InProgress", "the run has not ended yet");
        }
}

void run_refused(const struct view *v, struct decision *d, struct json *status, const char *why)
{
        decide_condition(v, status, "Ready", "False", "Invalid", why);
        decide_condition(v, status, "Progressing", "False", "Invalid", why);
        decide_condition(v, status, "Stalled", "True", "Invalid", why);
        decide_event(d, v, EVENT_WARNING, "Invalid", "%s", why);
}

bool run_priors(const struct view *v, struct decision *d, const char *shape, const struct priors **ret)
{
        const struct want want = {.kind = WANT_PRIORS, .name = shape};
        const struct answer *answer = shape && *shape ? decide_want(d, v, &want) : NULL;

        *ret = answer ? answer->priors : NULL;
        return answer || !shape || !*shape;
}
