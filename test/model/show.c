/*
 * The parts of the world as the API's objects.
 */
#include "model/world.h"

#include "operator/operator.h"

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

/* What every object has. OWNER: 0 for none. */
static struct json *meta(struct arena *a, const char *name, const char *what, uint8_t uid, uint8_t owner)
{
        struct json *m = json_build(a, "{'namespace': 'ns', 'name': %s, 'uid': '%s-%d', 'labels': {}}", name,
                                    what, uid);

        if (owner)
                json_set(a, m, "ownerReferences",
                         json_build(a,
                                    "[{'apiVersion': 'nvidia.com/v1alpha1', 'kind': "
                                    "'DynamoGraphDeploymentRequest', 'name': 'r', 'uid': 'request-%d', "
                                    "'controller': %p}]",
                                    owner, (void *)yes(a)));
        return m;
}

/* ---- the request */

static struct json *spec_json(struct arena *a, uint8_t bits)
{
        struct json *spec = json_build(a,
                                       "{'model': %s, 'backend': 'vllm', 'profilingConfig': "
                                       "{'profilerImage': 'profiler:1', 'config': {'sla': {'ttft': 50}}}}",
                                       bits & SPEC_EDITED ? "another" : "model");

        if (bits & SPEC_SUSPEND)
                json_set(a, spec, "suspend", yes(a));
        if (bits & SPEC_CANCEL)
                json_set(a, spec, "cancel", yes(a));
        if (bits & SPEC_AUTO_APPLY)
                json_set(a, spec, "autoApply", yes(a));
        return spec;
}

struct json *show_request(struct model *m, struct arena *a, const struct request_part *r)
{
        const char *status = m->statuses.v[r->status].text;
        struct json *j = json_build(a,
                                    "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': "
                                    "'DynamoGraphDeploymentRequest', 'metadata': %p, 'spec': %p}",
                                    (void *)meta(a, "r", "request", r->uid, 0),
                                    (void *)spec_json(a, r->spec));

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

struct json *show_job(struct model *m, struct arena *a, const struct job *j)
{
        struct json *o = json_build(
                a,
                "{'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': %p, 'spec': {'backoffLimit': 0}, "
                "'status': {'conditions': %p}}",
                (void *)meta(a, m->names[j->name], "job", j->uid, j->owner), (void *)job_conditions(a, j));

        json_set(a, json_at(o, "metadata"), "creationTimestamp", time_json(a, NOON));
        json_set(a, json_at(json_at(o, "metadata"), "labels"), RUN_LABEL_ATTEMPT,
                 json_string(a, arena_printf(a, "%d", j->attempt)));
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

static struct json *pod_status(struct arena *a, const struct pod *p)
{
        static const char *const phases[] = {"Running", "Succeeded", "Failed"};
        static const int relay_codes[] = {0, 0, 0, 137};
        const char *phase = p->phase == PHASE_GOES_ON && p->work == WORK_PENDING ? "Pending"
                                                                                 : phases[p->phase];
        usec_t finished = at(p->finished ? (uint16_t)(p->finished - 1) : 0);
        struct json *status = json_build(a, "{'phase': %s, 'startTime': %p}", phase,
                                         (void *)time_json(a, NOON));

        json_set(a, status, "containerStatuses",
                 json_build(a, "[%p, %p]",
                            (void *)container_json(a, "profiler", p->work == WORK_RUNNING,
                                                   p->work == WORK_ENDED, p->code, finished),
                            (void *)container_json(a, "relay", p->relay == RELAY_UP, p->relay > RELAY_UP,
                                                   relay_codes[p->relay], finished)));
        if (p->evicted) {
                json_set(a, status, "reason", json_string(a, "Evicted"));
                json_set(a, status, "message", json_string(a, "the node was low on memory"));
        }
        return status;
}

struct json *show_pod(struct arena *a, const struct pod *p)
{
        struct json *o = json_build(
                a,
                "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'namespace': 'ns', 'name': 'pod-%d', "
                "'uid': "
                "'pod-%d', 'annotations': {'kubectl.kubernetes.io/default-container': 'profiler'}, "
                "'ownerReferences': [{'kind': 'Job', 'uid': 'job-%d', 'controller': %p}]}, 'spec': "
                "{'nodeName': 'n', 'containers': [{'name': 'profiler'}, {'name': 'relay'}]}, 'status': %p}",
                p->uid, p->uid, p->job, (void *)yes(a), (void *)pod_status(a, p));
        struct json *m = json_at(o, "metadata");

        json_set(a, m, "creationTimestamp", time_json(a, NOON + p->uid * USEC_PER_SEC - 20 * USEC_PER_SEC));
        if (p->asked) {
                json_set(a, m, "deletionTimestamp", time_json(a, at((uint16_t)(p->asked - 1 + 30))));
                json_set(a, m, "deletionGracePeriodSeconds", json_i64(a, 30));
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

static const char *exit_json(struct arena *a, uint8_t exit)
{
        static const char *const texts[] = {NULL, "{\"code\": 0}", "{\"code\": 3}",
                                            "{\"code\": 143, \"told\": true}"};

        return texts[exit] ? arena_strdup(a, texts[exit]) : NULL;
}

struct json *show_status_map(struct arena *a, const struct status_map *map)
{
        struct json *o = json_build(a,
                                    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': %p, 'data': "
                                    "{'attempt': '%d', 'podUID': %s, 'sequence': '%d', 'state': %s}}",
                                    (void *)meta(a, STATUS_MAP, "status-map", map->uid, map->owner),
                                    map->attempt, pod_name(a, map->pod), map->sequence,
                                    run_state_name((enum run_state)map->state));
        struct json *data = json_at(o, "data");

        json_set(a, data, RUN_KEY_STATUS, json_string(a, report_json(a, map->report)));
        json_set(a, data, RUN_KEY_EXIT, json_string(a, exit_json(a, map->exit)));
        return o;
}

struct json *show_data_map(struct arena *a, const struct data_map *map)
{
        struct json *o = json_build(a,
                                    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': %p, 'data': "
                                    "{'specHash': 'h'}}",
                                    (void *)meta(a, DATA_MAP, "data-map", map->uid, map->owner));

        if (map->output)
                json_set(a, json_at(o, "data"), "config_with_planner.yaml",
                         json_string(a, arena_printf(a,
                                                     "apiVersion: nvidia.com/v1alpha1\n"
                                                     "kind: DynamoGraphDeployment\n"
                                                     "metadata:\n  name: whatever\n"
                                                     "spec:\n  services:\n    Frontend:\n      replicas: 1\n"
                                                     "      componentType: pod-%d\n",
                                                     map->output)));
        return o;
}

/* ---- the rest */

struct json *show_deployment(struct arena *a, const struct deployments_part *d)
{
        struct json *o = json_build(
                a,
                "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', 'metadata': %p, "
                "'status': {'state': %s}}",
                (void *)meta(a, DEPLOYMENT, "dgd", d->uid, 0), d->good ? "successful" : "pending");

        json_set(a, json_at(json_at(o, "metadata"), "labels"), OPERATOR_LABEL_REQUEST,
                 json_string(a, arena_printf(a, "request-%d", d->owner)));
        return o;
}

struct json *show_access(struct arena *a, size_t which, uint8_t owner)
{
        return json_build(a, "{'kind': %s, 'metadata': %p}", access_types[which]->kind,
                          (void *)meta(a, ACCESS, "access", owner, owner));
}
