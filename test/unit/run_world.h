/*
 * run_world.h - a request and all that acts on it but the operator: the server and what it says, the Jobs' controller, the
 * kubelet, the relay, people and misfortune. Each acts when it is its turn, by chance.
 */
#pragma once

#include "unit/unit.h"

#include "kinds/testrun.h"

enum { PODS = 16, JOBS_MAX = 24 };
#define SEC  USEC_PER_SEC
#define NOON ((usec_t)1794744000 * SEC)

/* What watches show, each in its own time. */
enum source { REQUESTS, JOBS, PODS_OF_IT, MAPS, SOURCES };

enum stage { WORK_PENDING, WORK_RUNNING, WORK_ENDED };

struct job {
        char name[16], uid[16];
        uint64_t attempt;
        bool there, deleting, complete, failed;
        usec_t ended;
};

struct pod {
        char name[16], uid[16];
        size_t job;
        usec_t created, asked, started, finished;
        bool gone, interrupted, evicted;
        enum stage work;
        int code;
        bool relay_up, relay_ended, over;
        int relay_code;
        uint64_t attempt, sequence; /* that its relay claimed; 0: not yet */
        bool result_sent, recorded;
};

struct world {
        struct rng rng;
        struct arena arena; /* of the server's texts */
        bool loud;
        usec_t now;
        unsigned step;

        /* the server */
        const char *status; /* of the request; NULL: none yet */
        bool map[2];        /* status, data */
        struct run_fence fence;
        const char *state_json, *exit_json, *result;
        uint64_t result_attempt;
        bool access[3];
        struct job jobs[JOBS_MAX]; /* all that were ever made */
        size_t n_jobs;
        unsigned backoff_limit;
        bool counts_deleted; /* since Kubernetes 1.26 a pod that was deleted has failed */
        bool job_deleted_by_somebody;
        struct pod pods[PODS];
        size_t n_pods;

        /* the request, as people wrote it */
        bool suspend, cancel;
        unsigned image, timeout, retries;
        int64_t generation;
        unsigned image_begun; /* that the attempt under way was begun with */

        /* the operator */
        const char *seen[SOURCES]; /* what its caches hold: lists as JSON; NULL: not listed yet */
        bool awaits[SOURCES];      /* has written something that this one must show first */
        usec_t again_at;
        bool limited, holds; /* runs are, and this one has a slot */
        unsigned decisions, rows;
        const char *final; /* the terminal status */
};

static inline void tell(struct world *w, const char *what, const char *more)
{
        if (w->loud)
                printf("# %u: %s %s\n", w->step, what, more);
}

static inline bool chance(struct world *w, unsigned percent)
{
        return rng_below(&w->rng, 100) < percent;
}

static inline const char *text_of(struct world *w, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return arena_strdup(&w->arena, time_format(when, text));
}

/* ---- what the server would say */

#define OWNER(uid) "'ownerReferences': [{'uid': '" uid "', 'controller': %p}]"

static inline struct json *yes(struct arena *a)
{
        return json_truth(a, true);
}

static inline struct json *request_json(struct world *w, struct arena *a)
{
        return json_build(
                a,
                "{'apiVersion': 'test.sonde.dev/v1alpha1', 'kind': 'TestRun', 'metadata': {'namespace': "
                "'ns', 'name': 'r', 'uid': 'uid-r', 'generation': %lld}, 'spec': {'image': 'i%u', 'command': "
                "['x'], 'backoffLimit': %u, 'suspend': %p, 'cancel': %p, 'retries': %u, 'timeout': %p}, "
                "'status': %p}",
                (long long)w->generation, w->image, w->backoff_limit, (void *)json_truth(a, w->suspend),
                (void *)json_truth(a, w->cancel), w->retries,
                (void *)(w->timeout ? json_string(a, arena_printf(a, "%us", w->timeout)) : NULL),
                (void *)(w->status ? json_parse(a, str_of(w->status), NULL, NULL) : NULL));
}

static inline struct json *job_json(struct world *w, struct arena *a, const struct job *job)
{
        const char *type = job->complete ? "Complete" : job->failed ? "Failed" : NULL;
        struct json *end = type ? json_build(a,
                                             "[{'type': %s, 'status': 'True', 'message': 'm', "
                                             "'lastTransitionTime': %s}]",
                                             type, text_of(w, job->ended))
                                : NULL;

        return json_build(a,
                          "{'metadata': {'name': %s, 'uid': %s, 'deletionTimestamp': %p, 'labels': "
                          "{'sonde.dev/attempt': '%llu'}, " OWNER(
                                  "uid-r") "}, 'spec': {'backoffLimit': %u}, 'status': {'conditions': %p}}",
                          job->name, job->uid,
                          (void *)(job->deleting ? json_string(a, text_of(w, w->now)) : NULL),
                          (unsigned long long)job->attempt, (void *)yes(a), w->backoff_limit, (void *)end);
}

static inline struct json *state_of(struct world *w, struct arena *a, const char *name, bool running,
                                    bool ended, int code, const struct pod *p)
{
        struct json *state;

        if (ended)
                state = json_build(a, "{'terminated': {'exitCode': %d, 'startedAt': %s, 'finishedAt': %s}}",
                                   code, text_of(w, p->started), text_of(w, p->finished));
        else if (running)
                state = json_build(a, "{'running': {'startedAt': %s}}", text_of(w, p->started));
        else
                state = json_build(a, "{'waiting': {'reason': 'PodInitializing'}}");
        return json_build(a, "{'name': %s, 'state': %p}", name, (void *)state);
}

static inline struct json *pod_json(struct world *w, struct arena *a, const struct pod *p)
{
        bool well = p->code == 0 && p->relay_code == 0 && !p->evicted;
        const char *phase = p->over                   ? (well ? "Succeeded" : "Failed")
                            : p->work == WORK_PENDING ? "Pending"
                                                      : "Running";
        struct json *j = json_build(
                a,
                "{'metadata': {'name': %s, 'uid': %s, 'creationTimestamp': %s, 'ownerReferences': [{'uid': "
                "%s, "
                "'controller': %p}]}, 'spec': {'nodeName': 'n', 'containers': [{'name': 'workload'}, "
                "{'name': "
                "'relay'}]}, 'status': {'phase': %s, 'reason': %p, 'startTime': %p, 'containerStatuses': "
                "[%p, "
                "%p]}}",
                p->name, p->uid, text_of(w, p->created), w->jobs[p->job].uid, (void *)yes(a), phase,
                (void *)(p->evicted ? json_string(a, "Evicted") : NULL),
                (void *)(p->started ? json_string(a, text_of(w, p->started)) : NULL),
                (void *)state_of(w, a, "workload", p->work == WORK_RUNNING, p->work == WORK_ENDED, p->code,
                                 p),
                (void *)state_of(w, a, "relay", p->relay_up, p->relay_ended, p->relay_code, p));

        if (p->asked) {
                json_set(a, json_at(j, "metadata"), "deletionTimestamp",
                         json_string(a, text_of(w, p->asked + 30 * SEC)));
                json_set(a, json_at(j, "metadata"), "deletionGracePeriodSeconds", json_i64(a, 30));
        }
        return j;
}

static inline struct json *status_map_json(struct world *w, struct arena *a)
{
        struct json *j = json_build(
                a,
                "{'metadata': {'name': 'r-run-status', 'uid': 'uid-sm', " OWNER(
                        "uid-r") "}, 'data': {'attempt': "
                                 "'%llu', 'podUID': %s, 'sequence': '%llu', 'state': %s}}",
                (void *)yes(a), (unsigned long long)w->fence.attempt, w->fence.pod,
                (unsigned long long)w->fence.sequence, run_state_name(w->fence.state));

        json_set(a, json_at(j, "data"), "status.json", json_string(a, w->state_json));
        json_set(a, json_at(j, "data"), "exit.json", json_string(a, w->exit_json));
        return j;
}

static inline struct json *data_map_json(struct world *w, struct arena *a)
{
        struct json *j = json_build(a,
                                    "{'metadata': {'name': 'r-run-results', 'uid': 'uid-dm', " OWNER(
                                            "uid-r") "}, 'data': {'specHash': ''}}",
                                    (void *)yes(a));

        json_set(a, json_at(j, "data"), "result.json", json_string(a, w->result));
        return j;
}

static inline const char *list_json(struct world *w, enum source source)
{
        struct arena *a = &w->arena;
        struct json *list = json_array(a);

        if (source == REQUESTS)
                json_append(list, request_json(w, a));
        for (size_t i = 0; source == JOBS && i < w->n_jobs; i++)
                if (w->jobs[i].there)
                        json_append(list, job_json(w, a, &w->jobs[i]));
        for (size_t i = 0; source == PODS_OF_IT && i < w->n_pods; i++)
                if (!w->pods[i].gone)
                        json_append(list, pod_json(w, a, &w->pods[i]));
        if (source == MAPS && w->map[0])
                json_append(list, status_map_json(w, a));
        if (source == MAPS && w->map[1])
                json_append(list, data_map_json(w, a));
        return json_print(a, list);
}

static inline struct job *job_named(struct world *w, const char *name)
{
        for (size_t i = 0; i < w->n_jobs; i++)
                if (streq(w->jobs[i].name, name))
                        return &w->jobs[i];
        return NULL;
}

static inline const struct pod *pod_of(const struct world *w, const char *uid)
{
        for (size_t i = 0; i < w->n_pods; i++)
                if (streq(w->pods[i].uid, uid))
                        return &w->pods[i];
        return NULL;
}

static inline void kill_pods(struct world *w, const struct job *job)
{
        for (size_t i = 0; i < w->n_pods; i++)
                if (&w->jobs[w->pods[i].job] == job)
                        w->pods[i].gone = true;
}

/* ---- the others */

static inline struct pod *active_pod(struct world *w)
{
        struct pod *active[PODS];
        size_t n = 0;

        for (size_t i = 0; i < w->n_pods; i++)
                if (!w->pods[i].gone && !w->pods[i].over)
                        active[n++] = &w->pods[i];
        return n ? active[rng_below(&w->rng, n)] : NULL;
}

static inline void make_pod(struct world *w, size_t job)
{
        struct pod *p = &w->pods[w->n_pods];

        *p = (struct pod){.created = w->now, .job = job};
        snprintf(p->name, sizeof(p->name), "r-run-%zu", w->n_pods);
        snprintf(p->uid, sizeof(p->uid), "uid-%zu", w->n_pods);
        w->n_pods++;
        tell(w, "pod", p->name);
}

static inline void control_job(struct world *w, size_t at)
{
        struct job *job = &w->jobs[at];
        struct pod *last = NULL;
        unsigned failed = 0, active = 0;

        if (!job->there || job->complete || job->failed || job->deleting)
                return;
        job->ended = w->now; /* unless it goes on */
        for (size_t i = 0; i < w->n_pods; i++) {
                struct pod *p = &w->pods[i];
                bool ended = p->over && (!p->gone || (p->asked && w->counts_deleted));

                if (p->job != at)
                        continue;
                last = p;
                active += !p->gone && !p->over && (w->counts_deleted || !p->asked);
                failed += ended && (p->code || p->relay_code || p->evicted || p->interrupted);
        }
        if (last && !last->gone && last->over && !last->code && !last->relay_code && !last->evicted)
                job->complete = true;
        else if (failed > w->backoff_limit || w->n_pods == PODS)
                job->failed = !active;
        else if (!active)
                make_pod(w, at);
}

/* Foreground: the Job goes when its pods have. */
static inline void collect_garbage(struct world *w)
{
        for (size_t j = 0; j < w->n_jobs; j++) {
                bool any = false;

                if (!w->jobs[j].there || !w->jobs[j].deleting)
                        continue;
                for (size_t i = 0; i < w->n_pods; i++) {
                        struct pod *p = &w->pods[i];

                        if (p->job != j || p->gone)
                                continue;
                        p->asked = p->asked ? p->asked : w->now;
                        p->gone = p->over;
                        any = any || !p->gone;
                }
                w->jobs[j].there = any;
        }
}

static inline void job_controller(struct world *w)
{
        for (size_t i = 0; i < w->n_jobs; i++)
                control_job(w, i);
        collect_garbage(w);
}

static inline void kubelet(struct world *w)
{
        struct pod *p = active_pod(w);

        if (!p)
                return;
        if (p->asked && p->work != WORK_ENDED) {
                p->work = WORK_ENDED;
                p->interrupted = true;
                p->code = chance(w, 50) ? 0 : 143; /* some end politely */
                p->started = p->started ? p->started : w->now;
                p->finished = w->now + SEC;
                if (!p->relay_up)
                        p->over = p->gone = true; /* it never started */
        } else if (p->work == WORK_PENDING) {
                p->work = WORK_RUNNING;
                p->relay_up = true;
                p->started = w->now;
        } else if (p->work == WORK_RUNNING && chance(w, 15)) {
                p->work = WORK_ENDED;
                p->code = chance(w, 60) ? 0 : 3;
                p->finished = w->now;
                tell(w, p->name, p->code ? "fails" : "succeeds");
        } else if (p->work == WORK_ENDED && (p->relay_ended || !p->relay_up)) {
                p->over = true;
                if (p->asked)
                        p->gone = true;
        }
}

/* As relay.h and fence.h have it. */
static inline void relay(struct world *w)
{
        struct pod *p = active_pod(w);
        struct run_fence next;

        if (!p || !p->relay_up || p->relay_ended || !w->map[0])
                return;
        if (!w->access[0]) { /* 403 for long enough */
                p->relay_ended = true;
                p->relay_code = 1;
                return;
        }
        if (!streq(w->fence.pod, p->uid) && w->fence.state == RUN_SUCCEEDED &&
            w->jobs[p->job].attempt <= w->fence.attempt) {
                p->relay_ended = true; /* another pod has done the work */
                return;
        }
        if (!p->attempt)
                p->attempt = MAX(w->jobs[p->job].attempt,
                                 w->fence.pod[0] && !streq(w->fence.pod, p->uid) ? w->fence.attempt + 1 : 0);
        next = (struct run_fence){.attempt = p->attempt, .sequence = p->sequence + 1, .state = RUN_RUNNING};
        snprintf(next.pod, sizeof(next.pod), "%s", p->uid);
        if (p->work == WORK_ENDED && !p->result_sent &&
            p->sequence) { /* not before it has claimed its turn */
                p->result_sent = true;
                if (p->attempt >= w->result_attempt) { /* else a newer one has taken over the data */
                        w->result = arena_printf(&w->arena, "{\"of\": \"%s\"}", p->name);
                        w->result_attempt = p->attempt;
                }
                return;
        }
        if (p->work == WORK_ENDED && p->result_sent)
                next.state = p->code || p->interrupted ? RUN_FAILED : RUN_SUCCEEDED;
        if (!run_fence_follows(&w->fence, &next)) {
                p->relay_ended = true;
                return;
        }
        w->fence = next;
        p->sequence++;
        w->state_json = arena_printf(&w->arena, "{\"phase\": \"Work\", \"message\": \"%s %u\"}", p->name,
                                     (unsigned)p->sequence);
        w->exit_json = NULL;
        if (run_state_terminal(next.state)) {
                w->exit_json = arena_printf(&w->arena, "{\"code\": %d, \"finishedAt\": \"%s\", \"told\": %s}",
                                            p->code, text_of(w, p->finished),
                                            p->interrupted ? "true" : "false");
                p->recorded = true;
                p->relay_ended = true;
                tell(w, p->name, "is recorded");
        }
}

/* The last one, which the Job has counted, while one before it stays. */
static inline bool sweep_last_pod(struct world *w)
{
        struct pod *last = w->n_pods ? &w->pods[w->n_pods - 1] : NULL;
        bool older = false;

        for (size_t i = 0; i + 1 < w->n_pods; i++)
                older = older || (!w->pods[i].gone && w->pods[i].job == last->job);
        if (!older || !last->over || last->gone ||
            (!w->jobs[last->job].complete && !w->jobs[last->job].failed))
                return false;
        last->gone = true;
        tell(w, last->name, "is swept away");
        return true;
}

/* Its containers are killed with it: nobody records anything. */
static inline void evict(struct world *w, struct pod *p)
{
        if (p->work != WORK_ENDED) {
                p->interrupted = true;
                p->code = 137;
                p->started = p->started ? p->started : w->now;
                p->finished = w->now;
                p->work = WORK_ENDED;
        }
        if (!p->relay_ended) {
                p->relay_ended = true;
                p->relay_code = 137;
        }
        p->over = p->evicted = true;
        p->gone = p->asked;
        tell(w, p->name, "is evicted");
}

static inline void delete_some_job(struct world *w)
{
        struct job *job = w->n_jobs ? &w->jobs[w->n_jobs - 1] : NULL;

        if (!job || !job->there ||
            !strstr(w->status, arena_printf(&w->arena, "\"job\":\"%s\",\"pod", job->name)))
                return;
        job->there = false;
        w->job_deleted_by_somebody = true;
        kill_pods(w, job);
        tell(w, "the Job is deleted", job->name);
}

static inline void misfortune(struct world *w)
{
        struct pod *p = active_pod(w);

        if (chance(w, 50) && sweep_last_pod(w))
                return;
        if (p && p->relay_up && !p->relay_ended && chance(w, 30)) {
                p->relay_ended = true;
                p->relay_code = 137;
                tell(w, p->name, "loses its relay");
        } else if (p && !p->asked && chance(w, 30)) {
                p->asked = w->now;
                tell(w, p->name, "is deleted");
        } else if (p && chance(w, 30)) {
                evict(w, p);
        } else if (chance(w, 3)) {
                delete_some_job(w);
        }
}

/* What people do to the request while it is under way, and after. */
static inline void people(struct world *w)
{
        switch (rng_below(&w->rng, 10)) {
        case 0:
                w->cancel = w->cancel || chance(w, 4);
                break;
        case 1:
        case 2:
        case 3:
                w->suspend = !w->suspend;
                break;
        case 4:
        case 5:
        case 6:
                w->image = (unsigned)rng_below(&w->rng, 3);
                break;
        default:
                return;
        }
        w->generation++;
        tell(w, "people change", w->suspend ? "it (suspended)" : "it");
}
