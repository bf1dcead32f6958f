/*
 * The parts of the world as the API's objects.
 */
#include "model/world.h"

const struct kube_type *const access_types[ACCESS_MAX] = {&KUBE_SERVICEACCOUNT, &KUBE_ROLE,
                                                          &KUBE_ROLEBINDING};

static struct json *yes(struct arena *a)
{
        return json_truth(a, true);
}

static struct json *time_json(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return json_string(a, time_format(when, text));
}

static usec_t at(uint16_t seconds)
{
        return NOON + seconds * USEC_PER_SEC;
}

uint8_t uid_number(const char *uid)
{
        const char *dash = uid ? strrchr(uid, '-') : NULL;
        uint64_t number = 0;

        return dash && str_to_u64(str_of(dash + 1), &number) ? (uint8_t)number : 0;
}

struct json *show_meta(struct model *m, struct arena *a, const char *name, const char *what, uint8_t uid,
                       uint8_t owner)
{
        const struct kube_type *type = m->controller.type;
        struct json *meta = json_build(a, "{'namespace': 'ns', 'name': %s, 'uid': '%s-%d', 'labels': {}}",
                                       name, what, uid);

        if (owner)
                json_set(a, meta, "ownerReferences",
                         json_build(a,
                                    "[{'apiVersion': %s, 'kind': %s, 'name': 'r', 'uid': 'request-%d', "
                                    "'controller': %p}]",
                                    kube_api_version(type, a), type->kind, owner, (void *)yes(a)));
        return meta;
}

/* ---- the request */

static struct json *spec_json(struct model *m, struct arena *a, uint8_t bits)
{
        struct json *spec = m->subject->show_spec(a, bits);

        if (bits & SPEC_SUSPEND)
                json_set(a, spec, "suspend", yes(a));
        if (bits & SPEC_CANCEL)
                json_set(a, spec, "cancel", yes(a));
        return spec;
}

struct json *show_request(struct model *m, struct arena *a, const struct request_part *r)
{
        const struct kube_type *type = m->controller.type;
        const char *status = m->statuses.v[r->status].text;
        struct json *j = json_build(a, "{'apiVersion': %s, 'kind': %s, 'metadata': %p, 'spec': %p}",
                                    kube_api_version(type, a), type->kind,
                                    (void *)show_meta(m, a, "r", "request", r->uid, 0),
                                    (void *)spec_json(m, a, r->spec));

        json_set(a, json_at(j, "metadata"), "generation", json_i64(a, r->generation));
        json_set(a, j, "status", status ? json_parse(a, str_of(status), NULL, NULL) : NULL);
        return j;
}

/* ---- the Job and its pods */

static struct json *job_conditions(struct arena *a, const struct job *j)
{
        if (j->end == JOB_ACTIVE)
                return NULL;
        return json_build(a,
                          "[{'type': %s, 'status': 'True', 'reason': %s, 'message': 'm', "
                          "'lastTransitionTime': '2026-11-15T12:00:00Z'}]",
                          j->end == JOB_COMPLETE ? "Complete" : "Failed",
                          j->end == JOB_COMPLETE ? "CompletionsReached" : "BackoffLimitExceeded");
}

/* What it was made with, and what is counted of its pods. */
static void add_plain(struct model *m, struct arena *a, const struct job *j, struct json *job)
{
        static const char *const counts[] = {
                [JOB_ACTIVE] = "active", [JOB_COMPLETE] = "succeeded", [JOB_FAILED] = "failed"};
        struct json *status = json_at(job, "status");
        const struct json *meta = json_parse(a, str_of(m->statuses.v[j->meta].text), NULL, NULL);

        json_foreach (member, meta)
                json_set(a, json_at(job, "metadata"), member->key, json_copy(a, member));
        json_set(a, json_at(job, "spec"), "completions", json_i64(a, 1));
        json_set(a, status, "startTime", time_json(a, NOON));
        json_set(a, status, counts[j->end], json_i64(a, j->pods != 0));
        if (j->end == JOB_COMPLETE)
                json_set(a, status, "completionTime", time_json(a, NOON));
}

struct json *show_job(struct model *m, struct arena *a, const struct job *j)
{
        struct json *o = json_build(
                a,
                "{'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': %p, 'spec': {'backoffLimit': %d}, "
                "'status': {'conditions': %p}}",
                (void *)show_meta(m, a, m->names[j->name], "job", j->uid, j->owner), j->backoff,
                (void *)job_conditions(a, j));

        json_set(a, json_at(o, "metadata"), "creationTimestamp", time_json(a, NOON));
        if (j->attempt)
                json_set(a, json_at(json_at(o, "metadata"), "labels"), RUN_LABEL_ATTEMPT,
                         json_string(a, arena_printf(a, "%d", j->attempt)));
        else
                add_plain(m, a, j, o);
        if (j->deleting)
                json_set(a, json_at(o, "metadata"), "deletionTimestamp", time_json(a, NOON));
        return o;
}

static struct json *container_json(struct arena *a, const char *name, bool runs, bool ended, int code,
                                   usec_t finished)
{
        struct json *state;

        if (ended)
                state = json_build(a, "{'terminated': {'exitCode': %d, 'startedAt': %p, 'finishedAt': %p}}",
                                   code, (void *)time_json(a, NOON), (void *)time_json(a, finished));
        else if (runs)
                state = json_build(a, "{'running': {'startedAt': %p}}", (void *)time_json(a, NOON));
        else
                state = json_build(a, "{'waiting': {'reason': 'PodInitializing'}}");
        return json_build(a, "{'name': %s, 'state': %p}", name, (void *)state);
}

static const char *container_of(const struct model *m, const struct pod *p)
{
        return p->plain ? m->subject->plain : m->subject->container;
}

static struct json *container_statuses(struct model *m, struct arena *a, const struct pod *p)
{
        static const int relay_codes[] = {0, 0, 0, 137};
        usec_t finished = at(p->finished ? (uint16_t)(p->finished - 1) : 0);
        struct json *workload = container_json(a, container_of(m, p), p->work == WORK_RUNNING,
                                               p->work == WORK_ENDED, p->code, finished);
        struct json *list = json_build(a, "[%p]", (void *)workload);

        if (p->oom)
                json_set(a, json_at(json_at(workload, "state"), "terminated"), "reason",
                         json_string(a, "OOMKilled"));
        if (!p->plain)
                json_append(list, container_json(a, "relay", p->relay == RELAY_UP, p->relay > RELAY_UP,
                                                 relay_codes[p->relay], finished));
        return list;
}

static struct json *pod_status(struct model *m, struct arena *a, const struct pod *p)
{
        static const char *const phases[] = {"Running", "Succeeded", "Failed"};
        const char *phase = p->phase == PHASE_GOES_ON && p->work == WORK_PENDING ? "Pending"
                                                                                 : phases[p->phase];
        struct json *status = json_build(a, "{'phase': %s, 'startTime': %p, 'containerStatuses': %p}", phase,
                                         (void *)time_json(a, NOON), (void *)container_statuses(m, a, p));

        if (p->evicted) {
                json_set(a, status, "reason", json_string(a, "Evicted"));
                json_set(a, status, "message", json_string(a, "the node was low on memory"));
        }
        return status;
}

struct json *show_pod(struct model *m, struct arena *a, const struct pod *p)
{
        const char *container = container_of(m, p);
        struct json *o = json_build(
                a,
                "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'namespace': 'ns', 'name': 'pod-%d', "
                "'uid': "
                "'pod-%d', 'annotations': {'kubectl.kubernetes.io/default-container': %s}, "
                "'ownerReferences': [{'kind': 'Job', 'uid': 'job-%d', 'controller': %p}]}, 'spec': "
                "{'nodeName': 'n', 'containers': [{'name': %s}]}, 'status': %p}",
                p->uid, p->uid, container, p->job, (void *)yes(a), container, (void *)pod_status(m, a, p));
        struct json *meta = json_at(o, "metadata");

        if (!p->plain)
                json_append(json_at(json_at(o, "spec"), "containers"), json_build(a, "{'name': 'relay'}"));
        json_set(a, meta, "creationTimestamp",
                 time_json(a, NOON + p->uid * USEC_PER_SEC - 20 * USEC_PER_SEC));
        if (p->asked) {
                json_set(a, meta, "deletionTimestamp", time_json(a, at((uint16_t)(p->asked - 1 + 30))));
                json_set(a, meta, "deletionGracePeriodSeconds", json_i64(a, 30));
        }
        return o;
}

/* ---- ConfigMaps */

static const char *pod_name(struct arena *a, uint8_t uid)
{
        return uid ? arena_printf(a, "pod-%d", uid) : "";
}

/* What the profiler reports: a plan may grow, and then it is less far than it was. */
static const char *report_json(struct arena *a, uint8_t report)
{
        static const struct {
                const char *phase;
                int step, percent;
        } reports[] = {{"Initializing", 1, 10}, {"PrefillSweep", 4, 40}, {"DecodeSweep", 3, 30}};

        if (!report)
                return NULL;
        report = (uint8_t)((report - 1) % ARRAY_LEN(reports));
        return json_print(a,
                          json_build(a,
                                     "{'phase': %s, 'message': 'm', 'overallPercentage': %d, 'progress': "
                                     "{'currentStep': %d, 'totalSteps': 10}}",
                                     reports[report].phase, reports[report].percent, reports[report].step));
}

static const char *exit_json(const struct model *m, struct arena *a, uint8_t exit)
{
        static const char *const texts[] = {NULL, "{\"code\": 0}", "{\"code\": 3}",
                                            "{\"code\": 143, \"told\": true}",
                                            "{\"code\": 0, \"told\": true}"};
        const char *text = texts[exit == EXIT_TOLD && m->scenario->polite ? EXIT_TOLD + 1 : exit];

        return text ? arena_strdup(a, text) : NULL;
}

struct json *show_status_map(struct model *m, struct arena *a, const struct status_map *map)
{
        struct json *o = json_build(
                a,
                "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': %p, 'data': "
                "{'attempt': '%d', 'podUID': %s, 'sequence': '%d', 'state': %s}}",
                (void *)show_meta(m, a, m->subject->status_map, "status-map", map->uid, map->owner),
                map->attempt, pod_name(a, map->pod), map->sequence,
                run_state_name((enum run_state)map->state));
        struct json *data = json_at(o, "data");

        json_set(a, data, RUN_KEY_STATUS, json_string(a, report_json(a, map->report)));
        json_set(a, data, RUN_KEY_EXIT, json_string(a, exit_json(m, a, map->exit)));
        return o;
}

struct json *show_data_map(struct model *m, struct arena *a, const struct data_map *map)
{
        struct json *meta = show_meta(m, a, m->subject->data_map, "data-map", map->uid, map->owner);
        struct json *o = json_build(a,
                                    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': %p, 'data': "
                                    "{'specHash': 'h'}}",
                                    (void *)meta);

        if (map->output)
                m->subject->show_output(a, json_at(o, "data"), map);
        return o;
}

/* ---- the rest */

struct json *show_access(struct model *m, struct arena *a, size_t which, uint8_t owner)
{
        return json_build(a, "{'kind': %s, 'metadata': %p}", access_types[which]->kind,
                          (void *)show_meta(m, a, m->subject->access, "access", owner, owner));
}
