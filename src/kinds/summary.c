#include "kinds/summary.h"

#include <math.h>

const char *summary_life_name(enum summary_life life)
{
        static const char *const names[] = {
                [SUMMARY_PENDING] = "pending",     [SUMMARY_RUNNING] = "running",
                [SUMMARY_SUSPENDED] = "suspended", [SUMMARY_SCHEDULED] = "scheduled",
                [SUMMARY_SUCCEEDED] = "succeeded", [SUMMARY_FAILED] = "failed",
                [SUMMARY_CANCELLED] = "cancelled",
        };

        return names[life];
}

const struct json *summary_condition(const struct json *object, const char *type, const char *status)
{
        json_foreach (c, json_at(json_at(object, "status"), "conditions"))
                if (streq(json_str(c, "type"), type) && (!status || streq(json_str(c, "status"), status)))
                        return c;
        return NULL;
}

/* Those of operator.h that go when somebody has mended it. */
bool summary_is_retried(const char *reason)
{
        static const char *const reasons[] = {"NameConflict", "KindNotInstalled", "KindOutdated",
                                              "Forbidden"};

        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                if (streq(reason, reasons[i]))
                        return true;
        return false;
}

static usec_t time_at(const struct json *object, const char *member)
{
        struct str text = json_text(json_at(object, member));
        usec_t when;

        return text.p && time_parse(text, &when) ? when : 0;
}

/* ---- how it stands */

static bool is_template(const struct json *object)
{
        return json_is(json_at(json_at(object, "spec"), "schedule"), JSON_OBJECT);
}

static enum summary_life life_of(const struct json *object, const struct summary *s)
{
        const struct json *stalled = summary_condition(object, "Stalled", "True");
        const struct json *progressing = summary_condition(object, "Progressing", "False");
        const struct json *status = json_at(object, "status");

        if (s->kind->result)
                return SUMMARY_SUCCEEDED;
        if (stalled && !s->retried)
                return streq(json_str(stalled, "reason"), "Cancelled") ? SUMMARY_CANCELLED : SUMMARY_FAILED;
        if (is_template(object))
                return SUMMARY_SCHEDULED;
        if (summary_condition(object, "Ready", "True"))
                return SUMMARY_SUCCEEDED;
        if (summary_condition(object, "Suspended", "True"))
                return SUMMARY_SUSPENDED;
        if (s->queue || !json_at(status, "run") || streq(s->state, "Pending") || !*s->state)
                return SUMMARY_PENDING;
        if (!s->started && progressing && !streq(json_str(progressing, "reason"), "NotMoving"))
                return SUMMARY_PENDING; /* its pod waits */
        return SUMMARY_RUNNING;
}

/* A condition's words; "" is nothing. */
static void take_words(struct summary *s, const struct json *from)
{
        const char *reason = json_str_or(from, "reason", ""), *message = json_str_or(from, "message", "");

        s->reason = *reason ? reason : NULL;
        s->sentence = *message ? message : NULL;
}

static void explain(const struct json *object, struct summary *s)
{
        const struct json *progressing = summary_condition(object, "Progressing", "False");
        const struct json *queue = json_at(json_at(object, "status"), "queue");

        if (s->kind->result) {
                s->sentence = json_str(json_at(object, "status"), "boundType");
        } else if (s->life == SUMMARY_FAILED || s->life == SUMMARY_CANCELLED || s->retried) {
                take_words(s, summary_condition(object, "Stalled", "True"));
        } else if (s->life == SUMMARY_SUCCEEDED) {
                take_words(s, summary_condition(object, "Ready", "True"));
                s->reason = NULL;
        } else if (queue) {
                s->reason = "Queued";
                s->sentence = json_str(queue, "reason");
        } else if (s->life == SUMMARY_SUSPENDED) {
                take_words(s, summary_condition(object, "Suspended", "True"));
        } else {
                take_words(s, progressing);
                s->stuck = s->life == SUMMARY_RUNNING && streq(s->reason, "NotMoving");
        }
}

/* ---- how far it is */

/* The kind's own words about its progress first, then those that all kinds have. */
static const struct json *told_by(const struct json *status, const char *member)
{
        const struct json *own = json_at(status, "profilingProgress"), *common = json_at(status, "progress");

        return json_at(own, member) ? own : common;
}

static void take_progress(const struct json *status, struct summary *s)
{
        const struct json *progress = json_at(status, "progress");
        const struct json *eta = json_at(progress, "estimatedCompletion");

        if (!json_to_double(json_at(progress, "percent"), &s->percent))
                s->percent = NAN;
        s->doing = json_str(told_by(status, "phase"), "phase");
        s->phase_number = json_int(told_by(status, "totalPhases"), "phaseNumber", 0);
        s->phases = json_int(told_by(status, "totalPhases"), "totalPhases", 0);
        s->step = json_int(told_by(status, "totalSteps"), "currentStep", 0);
        s->steps = json_int(told_by(status, "totalSteps"), "totalSteps", 0);
        s->message = json_str(told_by(status, "message"), "message");
        s->started = time_at(progress, "startedAt");
        s->updated = time_at(progress, "updatedAt");
        s->attempt = (uint64_t)json_int(json_at(status, "run"), "attempt", 0);
        s->eta_low = time_at(eta, "low");
        s->eta_mid = time_at(eta, "mid");
        s->eta_high = time_at(eta, "high");
}

/* What is told of what does not run is not true any more. */
static void settle_progress(const struct json *object, struct summary *s)
{
        const struct json *progress = json_at(json_at(object, "status"), "progress");

        if (s->life != SUMMARY_RUNNING) {
                s->eta_low = s->eta_mid = s->eta_high = 0;
        } else {
                s->usage = json_at(progress, "usage");
                s->best = json_str(progress, "bestSoFar");
        }
        if (s->life == SUMMARY_SUCCEEDED)
                s->percent = 100;
        if (summary_over(s) && !s->kind->result)
                s->ended = time_at(
                        summary_condition(object, s->life == SUMMARY_SUCCEEDED ? "Ready" : "Stalled", "True"),
                        "lastTransitionTime");
}

static void name_phase(struct summary *s)
{
        if (s->life == SUMMARY_RUNNING && s->doing && *s->doing)
                s->phase = s->doing;
        else if (s->life == SUMMARY_SUSPENDED)
                s->phase = "Suspended";
        else if (s->life == SUMMARY_SCHEDULED)
                s->phase = "Scheduled";
        else
                s->phase = *s->state ? s->state : s->kind->result ? "Result" : "Pending";
}

/* ---- what the values are worth */

static bool is_not_measured(const struct json *status)
{
        const struct json *deployment = json_at(status, "generatedDeployment");
        const struct json *annotations = json_at(json_at(deployment, "metadata"), "annotations");

        return streq(json_str(annotations, "simulated"), "true") || json_bool(status, "replay", false);
}

/* ---- what it uses, and what came out */

static double number_at(const struct json *object, const char *member)
{
        double number;

        return json_to_double(json_at(object, member), &number) && isfinite(number) ? number : NAN;
}

/* Of a list of algorithms nobody's time stands for all, but the largest memory is what was needed. */
static void take_results(const struct json *results, struct summary *s)
{
        if (json_is(results, JSON_OBJECT)) {
                s->memory_mb = number_at(results, "memoryUsage");
                s->cpu_percent = number_at(results, "cpuUsage");
                s->seconds = number_at(results, "executionTime");
                return;
        }
        json_foreach (one, results)
                s->memory_mb = fmax(s->memory_mb, number_at(one, "memoryUsage"));
}

/* What a scheduled run found is told of its template: it goes when the next one has not found it. */
static bool is_of_template(const struct json *object, const struct kind *kind)
{
        json_foreach (owner, json_at(json_at(object, "metadata"), "ownerReferences"))
                if (json_bool(owner, "controller", false) && streq(json_str(owner, "kind"), kind->type->kind))
                        return true;
        return false;
}

static void take_figures(const struct json *object, struct summary *s)
{
        const struct json *status = json_at(object, "status");
        const struct json *usage = json_at(json_at(status, "progress"), "usage");
        const struct json *degraded = summary_condition(object, "PerformanceDegraded", NULL);

        s->memory_mb = s->cpu_percent = s->seconds = NAN;
        if (s->life == SUMMARY_RUNNING) {
                s->memory_mb = number_at(usage, "memoryMb");
                s->cpu_percent = number_at(usage, "cpuPercent");
        } else if (summary_over(s) && !s->kind->result) {
                take_results(json_at(status, "results"), s);
        }
        if (degraded && !is_of_template(object, s->kind)) {
                const char *is = json_str(degraded, "status");

                s->trend = streq(is, "True")    ? SUMMARY_DEGRADED
                           : streq(is, "False") ? SUMMARY_STEADY
                                                : SUMMARY_TREND_UNKNOWN;
        }
}

void summarize(const struct kind *kind, const struct json *object, struct arena *a, struct summary *ret)
{
        const struct json *meta = json_at(object, "metadata"), *status = json_at(object, "status");
        const char *stalled = json_str(summary_condition(object, "Stalled", "True"), "reason");
        const struct json *queue = json_at(json_at(status, "queue"), "position");

        *ret = (struct summary){
                .kind = kind,
                .ns = json_str_or(meta, "namespace", ""),
                .name = json_str_or(meta, "name", ""),
                .uid = json_str_or(meta, "uid", ""),
                .generation = json_int(meta, "generation", 0),
                .deleting = json_at(meta, "deletionTimestamp") != NULL,
                .created = time_at(meta, "creationTimestamp"),
                .state = kind->state ? json_str_or(status, kind->state, "") : "",
                .retried = stalled && summary_is_retried(stalled),
                .not_measured = is_not_measured(status),
                .priority = json_int(json_at(object, "spec"), "priority", -1),
                .labels = json_first(json_at(meta, "labels")) ? json_at(meta, "labels") : NULL,
        };
        if (queue)
                ret->queue = json_cstr(queue) ? json_cstr(queue) : json_print(a, queue);
        ret->starts = time_at(json_at(status, "queue"), "expectedStart");
        take_progress(status, ret);
        ret->life = life_of(object, ret);
        explain(object, ret);
        settle_progress(object, ret);
        take_figures(object, ret);
        name_phase(ret);
}

/* ---- as JSON */

static void set_time(struct arena *a, struct json *of, const char *key, usec_t when)
{
        char text[TIME_TEXT_MAX];

        if (when)
                json_set(a, of, key, json_string(a, time_format(when, text)));
}

static void set_count(struct arena *a, struct json *of, const char *key, int64_t n)
{
        if (n > 0)
                json_set(a, of, key, json_i64(a, n));
}

static struct json *eta_json(const struct summary *s, struct arena *a)
{
        struct json *eta = json_object(a);

        set_time(a, eta, "low", s->eta_low);
        set_time(a, eta, "mid", s->eta_mid);
        set_time(a, eta, "high", s->eta_high);
        return json_first(eta) ? eta : NULL;
}

struct json *summary_json(const struct summary *s, struct arena *a)
{
        struct json *one = json_build(a,
                                      "{'kind': %s, 'resource': %s, 'namespace': %s, 'name': %s, 'uid': %s, "
                                      "'life': %s, 'state': %s, 'phase': %s}",
                                      s->kind->type->kind, s->kind->label, s->ns, s->name, s->uid,
                                      summary_life_name(s->life), s->state, s->phase);

        set_count(a, one, "phaseNumber", s->phase_number);
        set_count(a, one, "totalPhases", s->phases);
        if (s->steps > 0) {
                json_set(a, one, "currentStep", json_i64(a, s->step));
                json_set(a, one, "totalSteps", json_i64(a, s->steps));
        }
        json_set(a, one, "percent", json_double(a, s->percent));
        json_set(a, one, "message", json_string(a, s->message));
        json_set(a, one, "bestSoFar", json_string(a, s->best));
        json_set(a, one, "reason", json_string(a, s->reason));
        json_set(a, one, "sentence", json_string(a, s->sentence));
        json_set(a, one, "queuePosition", json_string(a, s->queue));
        set_count(a, one, "attempt", (int64_t)s->attempt);
        set_time(a, one, "createdAt", s->created);
        set_time(a, one, "expectedStart", s->starts);
        set_time(a, one, "startedAt", s->started);
        set_time(a, one, "updatedAt", s->updated);
        set_time(a, one, "endedAt", s->ended);
        json_set(a, one, "eta", eta_json(s, a));
        json_set(a, one, "labels", json_copy(a, s->labels));
        json_set(a, one, "usage", json_copy(a, s->usage));
        if (s->priority >= 0)
                json_set(a, one, "priority", json_i64(a, s->priority));
        if (s->stuck)
                json_set(a, one, "notMoving", json_truth(a, true));
        if (s->not_measured)
                json_set(a, one, "simulated", json_truth(a, true));
        if (s->deleting)
                json_set(a, one, "deleting", json_truth(a, true));
        return one;
}
