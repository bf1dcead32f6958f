/*
 * The phase of an AlgorithmProfiling or AlgorithmComparison, and what follows from it.
 */
#include "kinds/algorithm/internal.h"
#include "kinds/run_internal.h"

static void begin_turn(struct algorithm_turn *t, const struct view *v, struct decision *d)
{
        const struct json *status = json_at(v->request, "status");

        *t = (struct algorithm_turn){.v = v, .d = d, .kind = algorithm_run_kind(v)};
        algorithm_spec_read(v, &t->spec);
        run_read(v, &t->kind, &t->run);
        t->status = json_is(status, JSON_OBJECT) ? json_copy(v->arena, status) : json_object(v->arena);
        json_remove(t->status, "queue"); /* where it still waits, that is told anew */
}

static const char *phase_before(const struct view *v)
{
        return json_str_or(json_at(v->request, "status"), "phase", "");
}

static bool is_phase(const struct algorithm_turn *t, const char *phase)
{
        return streq(phase_before(t->v), phase);
}

/* It runs nothing itself. One that has run already does not become a template by an edit. */
static bool is_template(const struct algorithm_turn *t)
{
        return t->spec.schedule && !t->run.names.job && !t->run.over;
}

/* ---- the spec */

static int64_t generation_of(const struct view *v)
{
        return json_int(json_at(v->request, "metadata"), "generation", 0);
}

/* The spec of this generation was looked at before: accepted, or refused as a change. */
static bool was_checked(const struct view *v)
{
        const struct json *refused = view_condition(v, "SpecAccepted");

        return json_int(json_at(v->request, "status"), "observedGeneration", -1) == generation_of(v) ||
               (json_int(refused, "observedGeneration", -1) == generation_of(v) &&
                streq(json_str(refused, "reason"), "SpecChangeRejected"));
}

static void set_time(struct algorithm_turn *t, const char *key, usec_t when)
{
        json_set(t->v->arena, t->status, key, run_time_json(t->v->arena, when));
}

static void refuse(struct algorithm_turn *t, const char *why)
{
        const struct json *before = view_condition(t->v, "Stalled");
        bool told = is_phase(t, "Failed") && streq(json_str(before, "reason"), "Invalid") &&
                    streq(json_str(before, "message"), why);
        struct arena *a = t->v->arena;

        if (!told) {
                run_refused(t->v, t->d, t->status, why);
                set_time(t, "completionTime", t->v->now);
        }
        json_set(a, t->status, "phase", json_string(a, "Failed"));
        json_set(a, t->status, "observedGeneration", json_i64(a, generation_of(t->v)));
        t->d->status = t->status;
}

/* True: go on. False: the request is refused. */
static bool check_spec(struct algorithm_turn *t)
{
        const char *why;

        if (t->run.names.job && was_checked(t->v))
                return true;
        why = algorithm_spec_check(t->v, &t->spec);
        if (!why)
                return true;
        if (t->run.names.job || t->run.over) { /* what runs goes on as it was begun */
                t->run.invalid = why;
                return true;
        }
        refuse(t, why);
        return false;
}

/* ---- the phase */

static void set_phase(struct algorithm_turn *t, const char *phase)
{
        static const struct {
                const char *phase, *reason, *note;
        } events[] = {
                {"Pending", "Accepted", "the request is accepted"},
                {"Running", "Running", "it is being measured"},
        };

        json_set(t->v->arena, t->status, "phase", json_string(t->v->arena, phase));
        for (size_t i = 0; i < ARRAY_LEN(events); i++)
                if (streq(phase, events[i].phase) && !is_phase(t, phase))
                        decide_event(t->d, t->v, EVENT_NORMAL, events[i].reason, "%s", events[i].note);
}

/* The next pod, or another attempt, is part of a run that goes on. */
static void set_phase_of_run(struct algorithm_turn *t, const struct run_seen *seen)
{
        bool begun = is_phase(t, "Running") && seen->life != RUN_LIFE_SUSPENDED &&
                     !streq(seen->reason, "Edited");

        set_phase(t, begun || seen->life == RUN_LIFE_RUNNING ? "Running" : "Pending");
}

static void tell_names(struct algorithm_turn *t, const struct run_seen *seen)
{
        struct arena *a = t->v->arena;
        const char *began = json_str(json_at(t->status, "progress"), "startedAt");

        json_set(a, t->status, t->spec.comparison ? "comparisonId" : "jobId",
                 json_string(a, seen->names->job));
        json_set(a, t->status, "startTime", json_string(a, began));
}

/* ---- one pod after another */

/*
 * The attempt has succeeded: whether the probe has left more to do. That must become less with every pod: the workload can
 * write there, too.
 */
static bool more_pods(const struct view *v, struct decision *d, struct run_seen *seen, bool *ret)
{
        const struct json *before = json_at(json_at(v->request, "status"), "pods");
        int64_t total = json_int(json_at(v->request, "spec"), "pods", 1), left;
        struct json *result;

        *ret = false;
        if (!run_result(v, d, seen, &result))
                return false;
        left = json_int(result, "morePods", 0);
        if (left < 1 || left >= total)
                return true;
        *ret = total - left > json_int(before, "done", 0) ||
               (uint64_t)json_int(before, "attempt", 0) == seen->names->attempt;
        return true;
}

/* Of the first pod that has measured all, where the next ones are wished to; NULL: it is not known. */
static const char *first_node(const struct algorithm_turn *t)
{
        const char *known = json_str(json_at(t->status, "pods"), "node");
        const struct object *job = known ? NULL : view_child(t->v, &KUBE_JOB, t->run.names.job);
        const struct object *pod = job ? run_newest_pod(t->v, job) : NULL;

        return pod ? json_str(json_at(pod->json, "spec"), "nodeName") : known;
}

/* What RESULT of the attempt that was under way says. */
static void tell_pods(struct algorithm_turn *t, const struct json *result)
{
        struct arena *a = t->v->arena;
        int64_t left = json_int(result, "morePods", 0);

        if (t->spec.pods > 1 && left >= 0 && left < t->spec.pods)
                json_set(a, t->status, "pods",
                         json_build(a, "{'done': %lld, 'total': %lld, 'attempt': %llu, 'node': %p}",
                                    (long long)(t->spec.pods - left), (long long)t->spec.pods,
                                    (unsigned long long)t->run.names.attempt,
                                    (void *)json_string(a, first_node(t))));
}

/* It has just been decided, and status.run says so now. */
static bool next_pod_follows(const struct algorithm_turn *t, const struct run_seen *seen)
{
        const struct json *before = json_at(json_at(t->v->request, "status"), "run");

        return streq(seen->reason, "NextPod") && !json_equal(before, json_at(t->status, "run"));
}

/* ---- the end */

static void set_end(struct algorithm_turn *t, const struct run_seen *seen, const char *phase)
{
        set_phase(t, phase);
        set_time(t, "completionTime", seen->finished ? MIN(seen->finished, t->v->now) : t->v->now);
        run_ready(t->v, t->d, seen, t->status);
}

/* Runs of one shape take about the same time. "": what runs was begun with another spec than is there now. */
static const char *shape_of(const struct algorithm_turn *t)
{
        return t->run.changed ? "" : arena_printf(t->v->arena, "algorithm/%s", t->run.spec_hash);
}

/* False: look-ups are under way. */
static bool end_well(struct algorithm_turn *t, struct run_seen *seen, const struct algorithm_result *result)
{
        if (!result->json) {
                seen->life = RUN_LIFE_FAILED;
                seen->reason = "ResultMissing";
                seen->sentence = result->why;
                set_end(t, seen, "Failed");
                return true;
        }
        if (!algorithm_trend(t, result))
                return false;
        seen->sentence = algorithm_outcome(t);
        set_end(t, seen, "Completed");
        return true;
}

/* False: look-ups are under way. */
static bool end_run(struct algorithm_turn *t, struct run_seen *seen)
{
        bool cancelled = streq(seen->reason, "Cancelled");
        struct algorithm_result result = {0};

        if (!cancelled && !algorithm_result_read(t, &result))
                return false;
        if (result.json) {
                tell_pods(t, result.json);
                algorithm_tell_results(t, &result);
        }
        if (seen->life == RUN_LIFE_FAILED)
                set_end(t, seen, cancelled ? "Cancelled" : "Failed");
        else if (!end_well(t, seen, &result))
                return false;
        t->d->row = algorithm_row(t, seen, shape_of(t), &result);
        return true;
}

/* ---- while it runs */

static void begin_anew(struct algorithm_turn *t)
{
        algorithm_forget_results(t);
        json_remove(t->status, "completionTime");
        json_remove(t->status, "pods");
}

/* An attempt begins, and what earlier ones have measured does not count for it: edited, or resumed or followed by another spec. */
static bool is_of_another_spec(const struct algorithm_turn *t)
{
        const struct json *before = json_at(json_at(t->v->request, "status"), "run"),
                          *now = json_at(t->status, "run");

        return json_int(before, "attempt", 0) != json_int(now, "attempt", 0) &&
               !streq(json_str(before, "specHash"), json_str(now, "specHash"));
}

static void settle_run(struct algorithm_turn *t)
{
        const struct priors *priors = NULL;
        struct run_seen seen;
        struct json *result = NULL;

        t->run.again = t->spec.pods > 1 ? more_pods : NULL;
        if (!check_spec(t) || !run_settle(t->v, t->d, &t->run, &seen, t->status))
                return;
        if (!run_over(&seen) && !run_priors(t->v, t->d, shape_of(t), &priors))
                return;
        if (next_pod_follows(t, &seen) && !run_result(t->v, t->d, &seen, &result))
                return;
        if (result)
                tell_pods(t, result);
        if (is_of_another_spec(t) || is_phase(t, "Failed"))
                begin_anew(t);
        run_progress(t->v, t->d, &seen, priors, t->status);
        algorithm_tell_progress(t, &seen);
        tell_names(t, &seen);
        if (!run_over(&seen)) {
                set_phase_of_run(t, &seen);
                run_ready(t->v, t->d, &seen, t->status);
        } else if (!end_run(t, &seen)) {
                return;
        }
        t->d->status = t->status;
}

/* ---- after it */

/* The request goes with all that belongs to it; the history keeps what came out. */
static void settle_ttl(struct algorithm_turn *t)
{
        const struct view *v = t->v;
        struct str text = json_text(json_at(t->status, "completionTime"));
        struct object *self;
        usec_t until;

        if (t->spec.ttl_seconds < 0 || !text.p || !time_parse(text, &until))
                return;
        until = usec_add(until, (usec_t)t->spec.ttl_seconds * USEC_PER_SEC);
        if (v->now < until) {
                decide_again_at(t->d, until);
                return;
        }
        self = arena_new(v->arena, struct object);
        *self = (struct object){.type = v->type,
                                .json = v->request,
                                .name = meta_str(v->request, "name"),
                                .uid = meta_str(v->request, "uid")};
        decide_absent(t->d, self);
}

static void settle_over(struct algorithm_turn *t)
{
        bool failed = is_phase(t, "Failed");
        struct run_seen seen;

        t->run.renew = failed;
        if (!check_spec(t) || !run_settle(t->v, t->d, &t->run, &seen, t->status))
                return;
        if (!run_over(&seen) && !streq(seen.reason, "Queued")) { /* another attempt has begun */
                begin_anew(t);
                run_progress(t->v, t->d, &seen, NULL, t->status);
                tell_names(t, &seen);
                set_phase(t, "Pending");
                run_ready(t->v, t->d, &seen, t->status);
        } else if (run_over(&seen)) {
                if (!failed || t->run.invalid || !t->run.changed)
                        run_settle_spec(t->v, t->d, &t->run, t->status);
                settle_ttl(t);
        }
        t->d->status = t->status;
}

/* ---- both */

void algorithm_plan(const struct view *v, struct decision *d)
{
        struct algorithm_turn t;
        const struct object *map;
        const char *why;

        begin_turn(&t, v, d);
        if (is_template(&t))
                return;
        if (!algorithm_plan_run(v, d, &t.run, &t.spec, &why)) {
                refuse(&t, why);
                return;
        }
        map = t.run.over ? view_child(v, &KUBE_CONFIGMAP, t.kind.status_map) : NULL;
        if (map) /* all that it told has been taken over */
                decide_absent(d, map);
}

/* It has none any more. */
static void forget_schedule(struct algorithm_turn *t)
{
        static const char *const members[] = {"schedule", "nextScheduleTime", "active"};

        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                json_remove(t->status, members[i]);
}

void algorithm_settle(const struct view *v, struct decision *d)
{
        struct algorithm_turn t;

        if (d->status)
                return;
        begin_turn(&t, v, d);
        if (!is_template(&t))
                forget_schedule(&t);
        if (is_template(&t)) {
                if (!check_spec(&t))
                        return;
                algorithm_schedule(&t);
                d->status = t.status;
        } else if (t.run.over) {
                settle_over(&t);
        } else {
                settle_run(&t);
                if (is_phase(&t, "Failed") && streq(json_str(d->status, "phase"), "Failed"))
                        settle_ttl(&t); /* it was refused, and stays so */
        }
}
