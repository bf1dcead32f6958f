/*
 * Requests that are made again and again.
 *
 * A request with a schedule is a template: it runs nothing, and whenever it is due it makes a request like it, without the
 * schedule, NAME-<minutes since 1970>. Which one was made last is in status.lastScheduleTime. Of those that were missed, while
 * nobody looked or because the clock was put forward, the last one is made, and none of the others; one that was due before
 * this schedule was there, or while it was suspended, is not.
 *
 * The object comes first and lastScheduleTime after it, in one decision: what is interrupted in between finds the object there.
 */
#include "kinds/algorithm/internal.h"
#include "kinds/cron.h"
#include "kinds/run_internal.h"
#include "kinds/wrongs.h"

enum { HISTORY_LIMIT_DEFAULT = 10, CLOCK_WRONG = 3600, ACTIVE_MAX = 1000 /* as the schemas have it */ };

/* As the spec says it. */
struct schedule {
        struct cron cron;
        const struct zone *zone;
        const char *text; /* of both */
        const char *policy;
        int64_t history_limit;
        bool suspended;
};

static const char *cron_of(const struct json *schedule)
{
        return json_str_or(schedule, "cron", "");
}

static const char *zone_of(const struct json *schedule)
{
        return json_str_or(schedule, "timeZone", "UTC");
}

static void read_schedule(const struct view *v, const struct json *schedule, struct schedule *ret)
{
        const struct json *spec = json_at(v->request, "spec");

        *ret = (struct schedule){
                .text = arena_printf(v->arena, "%s %s", cron_of(schedule), zone_of(schedule)),
                .policy = json_str_or(schedule, "concurrencyPolicy", "Forbid"),
                .history_limit = json_int(schedule, "historyLimit", HISTORY_LIMIT_DEFAULT),
                .suspended = json_bool(schedule, "suspend", false) || json_bool(spec, "suspend", false) ||
                             json_bool(spec, "cancel", false),
        };
}

/* False: it is wrong, which was told before. */
static bool read_times(const struct view *v, const struct json *schedule, struct schedule *ret)
{
        const struct algorithm_settings *settings = v->settings;

        ret->zone = zones_get(settings->zones, zone_of(schedule), NULL);
        return ret->zone && cron_parse(str_of(cron_of(schedule)), &ret->cron, NULL) == 0;
}

void algorithm_schedule_check(struct wrongs *w, const struct view *v, const struct json *schedule)
{
        const struct algorithm_settings *settings = v->settings;
        struct err err = ERR_INIT;
        const struct zone *zone;
        struct cron cron;

        zone = zones_get(settings->zones, zone_of(schedule), &err);
        if (!zone)
                wrong(w, "spec.schedule.timeZone", "%s", err.text);
        if (cron_parse(str_of(cron_of(schedule)), &cron, &err) < 0)
                wrong(w, "spec.schedule.cron", "%s", err.text);
        else if (zone && cron_next(&cron, zone, (int64_t)(v->now / USEC_PER_SEC)) < 0)
                wrong(w, "spec.schedule.cron", "%s is never due, say a day that there is",
                      shown(w->arena, cron_of(schedule)));
}

/* ---- the requests that it has made */

void algorithm_project(struct json *request, struct arena *a)
{
        static const char *const kept[] = {"phase", "completionTime", "conditions"};
        struct json *status = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                json_set(a, status, kept[i], json_remove(json_at(request, "status"), kept[i]));
        json_remove(request, "spec");
        json_set(a, request, "status", status);
}

static const char *phase_of(const struct object *request)
{
        return json_str_or(json_at(request->json, "status"), "phase", "Pending");
}

static bool has_ended(const struct object *request)
{
        const char *phase = phase_of(request);

        return streq(phase, "Completed") || streq(phase, "Failed") || streq(phase, "Cancelled");
}

/* One of those, and it is to stay. */
static bool is_made(const struct algorithm_turn *t, const struct object *child)
{
        return child->type == t->v->type && !json_at(json_at(child->json, "metadata"), "deletionTimestamp");
}

/* Made later than that other one; of the same second, by name: minutes are in it. */
static bool is_newer(const struct object *one, const struct object *than)
{
        int order = strcmp(json_str_or(json_at(one->json, "metadata"), "creationTimestamp", ""),
                           json_str_or(json_at(than->json, "metadata"), "creationTimestamp", ""));

        return order > 0 || (order == 0 && strcmp(one->name, than->name) > 0);
}

/* How many that have ended are newer than REQUEST. */
static int64_t newer_ended(const struct algorithm_turn *t, const struct object *request)
{
        int64_t n = 0;

        for (size_t i = 0; i < t->v->n_children; i++) {
                const struct object *o = &t->v->children[i];

                n += is_made(t, o) && has_ended(o) && is_newer(o, request);
        }
        return n;
}

static void remove_old(struct algorithm_turn *t, const struct schedule *s)
{
        for (size_t i = 0; i < t->v->n_children; i++) {
                const struct object *o = &t->v->children[i];

                if (is_made(t, o) && has_ended(o) && newer_ended(t, o) >= s->history_limit)
                        decide_absent(t->d, o);
        }
}

/* Those that have not ended, as far as a status takes them; the newest that has, in *RET_LAST (NULL: none). */
static struct json *list_active(const struct algorithm_turn *t, const struct object **ret_last)
{
        struct arena *a = t->v->arena;
        struct json *active = json_array(a);
        size_t n = 0;

        *ret_last = NULL;
        for (size_t i = 0; i < t->v->n_children; i++) {
                const struct object *o = &t->v->children[i];

                if (!is_made(t, o))
                        continue;
                if (!has_ended(o) && n++ < ACTIVE_MAX)
                        json_append(active, json_build(a, "{'name': %s, 'uid': %s}", o->name, o->uid));
                else if (has_ended(o) && (!*ret_last || is_newer(o, *ret_last)))
                        *ret_last = o;
        }
        return active;
}

/* The request as it is made at a minute that it is due. */
static struct json *request_at(const struct algorithm_turn *t, int64_t due)
{
        struct arena *a = t->v->arena;
        const char *name = meta_str(t->v->request, "name");
        struct json *spec = json_copy(a, json_at(t->v->request, "spec"));
        const char *suffix = arena_printf(a, "-%lld", (long long)(due / 60));

        json_remove(spec, "schedule");
        return json_build(
                a, "{'apiVersion': %s, 'kind': %s, 'metadata': {'name': %s, 'labels': %p}, 'spec': %p}",
                kube_api_version(t->v->type, a), t->v->type->kind,
                name_fit(a, NAME_SUBDOMAIN, "", name, suffix, NULL),
                (void *)json_copy(a, json_at(json_at(t->v->request, "metadata"), "labels")), (void *)spec);
}

/* ---- when */

static int64_t seconds_of(const struct json *object, const char *key)
{
        struct str text = json_text(json_at(object, key));
        usec_t t;

        return text.p && time_parse(text, &t) ? (int64_t)(t / USEC_PER_SEC) : 0;
}

static struct json *time_json(struct arena *a, int64_t seconds)
{
        return run_time_json(a, (usec_t)seconds * USEC_PER_SEC);
}

/*
 * Since when this schedule counts, and keeps that in status.schedule: the text says which one it was. A request that nobody
 * has looked at yet counts from its making. Once the clock was far ahead and is right again, it counts from now: nobody is
 * to wait for years.
 */
static int64_t since(struct algorithm_turn *t, const struct schedule *s, int64_t now)
{
        struct arena *a = t->v->arena;
        const struct json *status = json_at(t->v->request, "status"), *before = json_at(status, "schedule");
        int64_t last = seconds_of(status, "lastScheduleTime"), from = now;

        if (streq(json_str_or(before, "of", ""), s->text))
                from = seconds_of(before, "since");
        else if (json_len(status) == 0)
                from = seconds_of(json_at(t->v->request, "metadata"), "creationTimestamp");
        if (MAX(from, last) > now + CLOCK_WRONG) {
                json_remove(t->status, "lastScheduleTime");
                from = now;
                last = 0;
        }
        json_set(a, t->status, "schedule",
                 json_build(a, "{'of': %s, 'since': %p}", s->text, (void *)time_json(a, from)));
        return MAX(from, last);
}

/* Makes what is due, unless another one is in the way. */
static void make(struct algorithm_turn *t, const struct schedule *s, int64_t due, size_t n_active)
{
        struct json *request = request_at(t, due);
        const char *name = meta_str(request, "name");
        char text[TIME_TEXT_MAX];

        time_format((usec_t)due * USEC_PER_SEC, text);
        json_set(t->v->arena, t->status, "lastScheduleTime", json_string(t->v->arena, text));
        if (n_active > 0 && streq(s->policy, "Forbid") && !view_child(t->v, t->v->type, name)) {
                decide_event(t->d, t->v, EVENT_WARNING, "ScheduleSkipped",
                             "the run of %s is left out: the last one has not ended, and "
                             "spec.schedule.concurrencyPolicy is Forbid",
                             text);
                return;
        }
        for (size_t i = 0; n_active > 0 && streq(s->policy, "Replace") && i < t->v->n_children; i++) {
                const struct object *o = &t->v->children[i];

                if (is_made(t, o) && !has_ended(o) && !streq(o->name, name))
                        decide_absent(t->d, o);
        }
        decide_exist(t->d, t->v->type, request, EXIST_ONCE);
        decide_event(t->d, t->v, EVENT_NORMAL, "Scheduled", "%s is made, due at %s", name, text);
}

/* What is due now is made; when the next one is, in RET (below 0: never). */
static int64_t look(struct algorithm_turn *t, const struct schedule *s, size_t n_active)
{
        int64_t now = (int64_t)(t->v->now / USEC_PER_SEC), from = since(t, s, now), due;

        due = cron_last(&s->cron, s->zone, from, now);
        if (due >= 0)
                make(t, s, due, n_active);
        return cron_next(&s->cron, s->zone, MAX(from, now));
}

/* ---- what the status tells */

static void tell_last(struct algorithm_turn *t, const struct object *last)
{
        const struct json *status = json_at(last->json, "status");
        struct arena *a = t->v->arena;

        json_set(a, t->status, "lastRun",
                 json_build(a, "{'name': %s, 'phase': %s, 'completionTime': %p}", last->name, phase_of(last),
                            (void *)json_copy(a, json_at(status, "completionTime"))));
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str_or(c, "type", ""), "PerformanceDegraded"))
                        decide_condition(t->v, t->status, "PerformanceDegraded",
                                         json_str_or(c, "status", "Unknown"),
                                         json_str_or(c, "reason", "Unknown"), json_str_or(c, "message", ""));
}

static void tell(struct algorithm_turn *t, const struct schedule *s, int64_t next, size_t n_active)
{
        const char *reason = "Scheduled", *message = "this schedule is never due again";
        struct arena *a = t->v->arena;
        char text[TIME_TEXT_MAX];

        json_remove(t->status, "nextScheduleTime");
        if (s->suspended) {
                reason = "Suspended";
                message = "set suspend to false to go on";
        } else if (next >= 0) {
                json_set(a, t->status, "nextScheduleTime", time_json(a, next));
                message = arena_printf(a, "the next run is due at %s",
                                       time_format((usec_t)next * USEC_PER_SEC, text));
        }
        json_set(a, t->status, "phase", json_string(a, n_active > 0 ? "Running" : "Pending"));
        json_set(a, t->status, "observedGeneration",
                 json_i64(a, json_int(json_at(t->v->request, "metadata"), "generation", 0)));
        decide_condition(t->v, t->status, "Ready", "True", reason, message);
        decide_condition(t->v, t->status, "Progressing", "False", reason, message);
        decide_condition(t->v, t->status, "Stalled", "False", reason, message);
}

void algorithm_schedule(struct algorithm_turn *t)
{
        const struct object *last;
        struct json *active = list_active(t, &last);
        struct schedule s;
        int64_t next = -1;

        read_schedule(t->v, t->spec.schedule, &s);
        if (s.suspended || !read_times(t->v, t->spec.schedule, &s))
                json_remove(t->status, "schedule");
        else
                next = look(t, &s, json_len(active));
        remove_old(t, &s);
        tell(t, &s, next, json_len(active));
        if (last)
                tell_last(t, last);
        json_set(t->v->arena, t->status, "active", active);
        if (next >= 0)
                decide_again_at(t->d, (usec_t)next * USEC_PER_SEC);
}
