/*
 * What must be true, whatever happens.
 */
#include "model/world.h"

enum { DEAD_POD = 90 /* seconds after which a pod that should be gone counts as gone */ };

void model_wrong(struct model *m, const char *fmt, ...)
{
        va_list ap;

        if (m->wrong)
                return;
        va_start(ap, fmt);
        m->wrong = arena_vprintf(&m->texts, fmt, ap);
        va_end(ap);
}

/* ---- one status after another */

static const struct json *condition(const struct json *status, const char *type)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

static bool is_true(const struct json *status, const char *type)
{
        return streq(json_str(condition(status, type), "status"), "True");
}

static const char *judge_conditions(const struct json *view, const struct json *new, usec_t now)
{
        const struct json *old = json_at(view, "status");
        int64_t generation = json_int(json_at(view, "metadata"), "generation", 0);
        char text[TIME_TEXT_MAX];

        time_format(now, text);
        json_foreach (c, json_at(new, "conditions")) {
                const struct json *before = condition(old, json_str(c, "type"));
                bool same = before && streq(json_str(before, "status"), json_str(c, "status"));

                if (json_int(c, "observedGeneration", 0) > generation)
                        return "a condition is ahead of the request";
                if (!streq(json_str(c, "lastTransitionTime"),
                           same ? json_str(before, "lastTransitionTime") : text))
                        return "lastTransitionTime does not go with the condition's status";
                if (!json_str(c, "reason") || !*json_str(c, "reason") || !json_str(c, "message"))
                        return "a condition has no reason or no message";
        }
        if (is_true(new, "Ready") && (is_true(new, "Stalled") || is_true(new, "Progressing")))
                return "Ready contradicts Stalled or Progressing";
        if (is_true(new, "Progressing") && is_true(new, "Stalled"))
                return "Progressing contradicts Stalled";
        if (is_true(new, "Suspended") &&
            (is_true(new, "Ready") || (is_true(new, "Progressing") && !json_at(new, "queue"))))
                return "Suspended contradicts Ready or Progressing";
        return NULL;
}

static const char *judge_progress(const struct json *old, const struct json *new)
{
        const struct json *was = json_at(old, "progress"), *is = json_at(new, "progress");
        double before, after;

        if (json_int(was, "attempt", 0) > json_int(is, "attempt", 0))
                return "the attempt of the progress goes back";
        if (json_int(was, "attempt", 0) != json_int(is, "attempt", 0))
                return NULL;
        if (json_at(was, "startedAt") && !streq(json_str(was, "startedAt"), json_str(is, "startedAt")))
                return "startedAt changes within an attempt";
        if (!json_to_double(json_at(was, "percent"), &before))
                return NULL;
        if (!json_to_double(json_at(is, "percent"), &after))
                return "the percentage is lost within an attempt";
        return after < before ? "the percentage goes back within an attempt" : NULL;
}

static bool may_renew(const struct model *m, const struct facts *was)
{
        return m->subject->renews || (m->subject->revives && was->failed);
}

/* What the spec says about the run is what happens. */
static const char *judge_controls(const struct subject *x, const struct json *spec, const struct json *run)
{
        const struct json *timeout = json_at(x->timeout_in ? json_at(spec, x->timeout_in) : spec, "timeout");
        const char *reason = json_str(run, "reason");

        if (streq(reason, "DeadlineExceeded") && !timeout)
                return "a run without a timeout has run out of time";
        if (json_int(run, "retries", 0) > json_int(spec, "retries", RUN_RETRIES_DEFAULT))
                return "there are more retries than the spec allows";
        return NULL;
}

/* An attempt has one Job and one spec; the next one follows it. */
static const char *judge_attempt(const struct model *m, const struct facts *x, const struct facts *y,
                                 const struct json *was, const struct json *is)
{
        /* A kind that begins again with another spec may take it over with the end. */
        bool renews = m->subject->renews && y->outcome;
        if (x->attempt > y->attempt)
                return "the attempt goes back";
        if (!x->attempt && y->attempt > 1)
                return "the first attempt is not the first";
        if (x->attempt == y->attempt && x->job != UINT8_MAX && x->job != y->job)
                return "the Job's name changes within an attempt";
        if (x->attempt && x->attempt == y->attempt && !renews &&
            !streq(json_str(was, "specHash"), json_str(is, "specHash")))
                return "the spec changes within an attempt";
        if (json_int(was, "retries", 0) > json_int(is, "retries", 0) && !x->outcome)
                return "the count of retries goes back";
        return NULL;
}

static const char *judge_run(struct model *m, const struct json *old, const struct json *new,
                             const struct history_row *row)
{
        const struct json *was = json_at(old, "run"), *is = json_at(new, "run");
        uint16_t before = old ? status_number(m, old) : 0, after = status_number(m, new);
        const struct facts *x = &m->statuses.v[before], *y = &m->statuses.v[after];

        if (!(m->subject->next[x->state] & 1U << y->state))
                return arena_printf(&m->texts, "state %s follows %s", m->subject->states[y->state],
                                    m->subject->states[x->state]);
        if (x->outcome && x->outcome != y->outcome && !(may_renew(m, x) && x->attempt < y->attempt))
                return "an outcome is taken back";
        if (!x->outcome && y->outcome && !row)
                return "a run ends without a row for the history";
        if (!x->outcome && y->outcome && !streq(row->outcome, json_str(is, "outcome")) &&
            !(y->failed && streq(row->outcome, "Failed")))
                return "the row for the history has another outcome";
        if (x->final)
                return "a final status is written again";
        if (x->outcome && x->attempt == y->attempt && !m->subject->renews && !json_equal(was, is))
                return "a run that has ended is written again";
        return judge_attempt(m, x, y, was, is);
}

/* The server takes it, and keeps all of it. */
static const char *judge_form(struct model *m, const struct json *view, const struct json *status)
{
        struct arena *a = &m->scratch;
        struct json *object = json_copy(a, view);
        struct schema_report report = {0};

        json_set(a, object, "status", json_copy(a, status));
        if (!m->schema)
                return "there is no schema";
        if (!schema_validate(m->schema, object, a, &report))
                return arena_printf(&m->texts, "%s: %s", report.causes[0].field, report.causes[0].message);
        schema_prune(m->schema, object, NULL);
        return json_equal(json_at(object, "status"), status) ? NULL
                                                             : "the schema does not know all of a status";
}

const char *judge_status(struct model *m, const struct json *view, const struct json *new,
                         const struct history_row *row, usec_t now)
{
        const struct json *old = json_at(view, "status");
        int64_t observed = json_int(new, "observedGeneration", 0);
        const char *bad = judge_conditions(view, new, now);

        if (observed > json_int(json_at(view, "metadata"), "generation", 0))
                return "observedGeneration is ahead of the request";
        if (observed < json_int(old, "observedGeneration", 0))
                return "observedGeneration goes back";
        if (!bad)
                bad = judge_form(m, view, new);
        if (!bad)
                bad = judge_progress(old, new);
        if (!bad)
                bad = judge_controls(m->subject, json_at(view, "spec"), json_at(new, "run"));
        if (!bad && m->subject->judge_status)
                bad = m->subject->judge_status(old, new);
        return bad ? bad : judge_run(m, old, new, row);
}

static bool any_workload_succeeded(const struct model *m, const struct state *s)
{
        const struct hidden_part h = hidden_of(m, s);

        for (size_t i = 0; i < ARRAY_LEN(h.v); i++)
                if (h.v[i].exit == EXIT_GOOD)
                        return true;
        return false;
}

void judge_decided(struct model *m, const struct state *s, uint16_t after)
{
        const struct facts *was = facts_of(m, s), *is = &m->statuses.v[after];

        if (s->success && !(s->excused & EXCUSED_RUN) && !was->outcome && is->outcome == OUTCOME_FAILED &&
            was->attempt == is->attempt)
                model_wrong(m, "a success that pod-%d had recorded is ended as a failure", s->success);
}

void judge_status_written(struct model *m, const struct state *s, uint16_t after)
{
        const struct facts *was = facts_of(m, s), *is = &m->statuses.v[after];

        if (was->final)
                model_wrong(m, "a final state is overwritten");
        if (is->retries > m->scenario->left[LEFT_MISHAP] - s->left[LEFT_MISHAP])
                model_wrong(m, "an attempt is made that nothing has called for");
        if (m->subject->judge_written)
                m->subject->judge_written(m, s, is);
        if (is->cancelled && !(PART(m, s, request_part, REQUEST).spec & SPEC_CANCEL))
                model_wrong(m, "a request is cancelled that nobody has cancelled");
        if (is->outcome == OUTCOME_SUCCEEDED && !any_workload_succeeded(m, s))
                model_wrong(m, "a run has succeeded, and no workload has");
        if (!s->success || (s->excused & EXCUSED_RUN) || is->cancelled || is->timed_out)
                return; /* judge_decided() */
        if (is->outcome == OUTCOME_FAILED || (is->failed && !s->plain))
                model_wrong(m, "a success that was recorded by pod-%d is told as a failure", s->success);
        if (is->attempt > was->attempt)
                model_wrong(m, "an attempt follows a success that was recorded by pod-%d", s->success);
}

/* ---- the limit on runs */

static bool is_under_way(const struct json *status)
{
        const struct json *run = json_at(status, "run");

        return json_at(run, "job") && !json_at(run, "outcome") && !is_true(status, "Suspended");
}

const char *judge_admission(const struct subject *subject, const struct view *v, const struct decision *d)
{
        const struct json *was = json_at(v->request, "status"), *is = d->status ? d->status : was;
        bool told = json_at(json_at(is, "queue"), "position");

        if (!is_under_way(was) && is_under_way(is) && !v->admission->admitted)
                return "a run is begun that is not admitted";
        if (is_under_way(is) && d->admission.stand != ADMISSION_HOLDS)
                return "a run is under way, and holds no slot";
        if (json_at(json_at(is, "run"), "outcome") && !subject->plain &&
            d->admission.stand == ADMISSION_HOLDS)
                return "a run is over, and holds a slot";
        if (told && d->admission.stand != ADMISSION_WAITS)
                return "a request is told its place, and does not wait";
        if (d->status && !told && d->admission.stand == ADMISSION_WAITS)
                return "a request waits, and is not told its place";
        return NULL;
}

/* ---- Jobs */

/* Something of the Job may still run. */
static bool job_lives(const struct model *m, const struct state *s, const struct job *j)
{
        const struct pods_part *pods = &PART(m, s, pods_part, PODS);

        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++) {
                const struct pod *p = &pods->v[i];

                if (p->job == j->uid && pod_lives(p) && (!p->asked || s->now < p->asked - 1 + DEAD_POD))
                        return true;
        }
        return j->end == JOB_ACTIVE && !j->deleting; /* it may make a pod */
}

void judge_job_created(struct model *m, const struct state *s, const struct job *job)
{
        const struct request_part *r = &PART(m, s, request_part, REQUEST);
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);
        const struct maps_part *maps = &PART(m, s, maps_part, MAPS);
        const struct facts *f = facts_of(m, s);

        if (r->uid != job->owner)
                return; /* it goes with its owner, which is gone */
        if (m->subject->judge_created)
                m->subject->judge_created(m, s, job);
        if (!job->attempt && m->subject->plain)
                return;
        if (!(s->excused & EXCUSED_RUN) && (s->jobs_made & 1U << job->attempt))
                model_wrong(m, "the Job of attempt %d is made twice", job->attempt);
        if (f->job != job->name || f->attempt != job->attempt)
                model_wrong(m, "a Job is made that the status does not name");
        if (f->outcome)
                model_wrong(m, "a Job is made for a run that has ended");
        if (m->subject->read_job && (job->spec & SPEC_EDITED) != s->begun)
                model_wrong(m, "a Job is made of another spec than its attempt was begun with");
        if (s->success && !(s->excused & EXCUSED_RUN))
                model_wrong(m, "a Job is made after pod-%d has recorded its success", s->success);
        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (jobs->v[i].owner == job->owner && job_lives(m, s, &jobs->v[i]))
                        model_wrong(m, "a Job is made beside the one of attempt %d", jobs->v[i].attempt);
        for (size_t i = 0; i < ACCESS_MAX; i++)
                if (s->access[i] != job->owner)
                        model_wrong(m, "a Job is made that may not record anything");
        if (!(s->excused & EXCUSED_RUN) &&
            (maps->status.owner != job->owner || maps->data.owner != job->owner))
                model_wrong(m, "a Job is made without its ConfigMaps");
}

/* Of a plain one control.c knows more. */
void judge_job_deleted(struct model *m, const struct state *s, const struct job *job, bool foreground)
{
        const struct facts *f = facts_of(m, s);
        bool over = f->outcome || f->final || f->failed || f->suspended || f->reason || f->job != job->name;

        if (!job->attempt || PART(m, s, request_part, REQUEST).uid != job->owner)
                return;
        if (!over)
                model_wrong(m, "the Job of an attempt under way is deleted");
        if (!foreground && !f->outcome)
                model_wrong(m, "a Job is deleted before its pods, and the run goes on");
}

void judge_state(struct model *m, const struct state *s)
{
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);
        const struct request_part *r = &PART(m, s, request_part, REQUEST);
        unsigned active = 0;

        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                active += r->uid && jobs->v[i].owner == r->uid && job_lives(m, s, &jobs->v[i]);
        if (active > 1)
                model_wrong(m, "two Jobs of the request are active");
        if (m->subject->judge_state)
                m->subject->judge_state(m, s);
}

/* ---- the end */

static const char *left_behind(const struct model *m, const struct state *s)
{
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);
        const struct pods_part *pods = &PART(m, s, pods_part, PODS);
        const struct maps_part *maps = &PART(m, s, maps_part, MAPS);

        if (jobs->v[0].uid || pods->v[0].uid)
                return "a Job or a pod is left after the request was deleted";
        if (maps->status.uid || maps->data.uid)
                return "a ConfigMap is left after the request was deleted";
        if (s->access[0] || s->access[1] || s->access[2])
                return "access is left after the request was deleted";
        if (m->subject->owned && PART(m, s, product_part, PRODUCT).owner)
                return "the product is left after the request was deleted";
        return NULL;
}

bool anything_runs(const struct model *m, const struct state *s)
{
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);
        const struct pods_part *pods = &PART(m, s, pods_part, PODS);

        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (jobs->v[i].end == JOB_ACTIVE)
                        return true;
        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++)
                if (pod_lives(&pods->v[i]))
                        return true;
        return false;
}

const char *judge_rest(const struct model *m, const struct state *s)
{
        if (anything_runs(m, s))
                return "something runs after the end";
        if (s->access[0] || s->access[1] || s->access[2])
                return "access is left after the end";
        if (PART(m, s, maps_part, MAPS).status.uid)
                return "the status ConfigMap is left after the end";
        return NULL;
}

const char *judge_run_settled(const struct model *m, const struct state *s, const struct facts *f)
{
        const char *why = f->outcome || f->final ? judge_rest(m, s) : NULL;

        if (why)
                return why;
        if (f->outcome == OUTCOME_SUCCEEDED && !f->failed && !PART(m, s, maps_part, MAPS).data.uid)
                return "the output is gone";
        if (f->outcome || f->final)
                return NULL;
        if (s->success && !(s->excused & EXCUSED_RUN))
                return "a success that was recorded is not told";
        if (!f->suspended || !(PART(m, s, request_part, REQUEST).spec & SPEC_SUSPEND))
                return "the run has no outcome, and nothing is left to happen";
        return anything_runs(m, s) ? "something runs while the request is suspended" : NULL;
}

bool judge_settled(struct model *m, const struct state *s, const char **why)
{
        if (PART(m, s, request_part, REQUEST).uid)
                *why = m->subject->judge_settled(m, s, facts_of(m, s));
        else
                *why = left_behind(m, s);
        return !*why;
}
