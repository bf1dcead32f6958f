/*
 * run_objects.h - the objects of a run in the forms in which they come, and a look at them.
 */
#pragma once

#include "unit/run_rig.h"

#define JOB(spec, status)                                                                              \
        "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': 0" spec \
        "}, 'status': {" status "}}"
#define JOB_FAILED(reason)                                                       \
        "'conditions': [{'type': 'Failed', 'status': 'True', 'reason': '" reason \
        "', 'message': 'it failed', 'lastTransitionTime': '2026-11-15T11:30:00Z'}]"
#define JOB_COMPLETE "'conditions': [{'type': 'Complete', 'status': 'True'}]"

#define POD_META(name, created)                                                                  \
        "'metadata': {'name': '" name "', 'uid': 'uid-" name "', 'creationTimestamp': '" created \
        "', 'annotations': {'kubectl.kubernetes.io/default-container': 'main'}, " BY_JOB "}"
#define POD_SPEC                                                                                          \
        "'spec': {'nodeName': 'n1', 'containers': [{'name': 'main', 'image': 'workload:1', 'resources': " \
        "{'limits': {'memory': "                                                                          \
        "'64Mi'}}}, {'name': 'relay'}]}"
#define POD(status) "{" POD_META("p", "2026-11-15T11:00:00Z") ", " POD_SPEC ", 'status': {" status "}}"
#define DYING(status)                                                                                        \
        "{'metadata': {'name': 'p', 'uid': 'uid-p', 'creationTimestamp': '2026-11-15T11:00:00Z', "           \
        "'deletionTimestamp': '2026-11-15T12:00:30Z', 'deletionGracePeriodSeconds': 30, 'annotations': "     \
        "{'kubectl.kubernetes.io/default-container': 'main'}, " BY_JOB "}, " POD_SPEC ", 'status': {" status \
        "}}"
#define STATES(main, relay)                                                                               \
        "'containerStatuses': [{'name': 'main', 'state': {" main "}}, {'name': 'relay', 'state': {" relay \
        "}}]"
#define RUNNING "'running': {'startedAt': '2026-11-15T11:00:05Z'}"
#define ENDED(code, more)                                                                          \
        "'terminated': {'exitCode': " code ", 'startedAt': '2026-11-15T11:00:05Z', 'finishedAt': " \
        "'2026-11-15T11:20:00Z'" more "}"

#define FENCE(attempt, pod, seq, state) \
        "'attempt': '" attempt "', 'podUID': '" pod "', 'sequence': '" seq "', 'state': '" state "'"
#define MAP(data) "{'metadata': {'name': 'r-status', 'uid': 'uid-map', " OWNED "}, 'data': {" data "}}"

/* Documents within the ConfigMap are strings. */
static inline void status_map(struct rig *r, const char *fence, const char *status, const char *exit)
{
        struct json *map = parse(r, arena_printf(&r->arena, MAP("%s"), fence)), *data = json_at(map, "data");

        if (status)
                json_set(&r->arena, data, "status.json",
                         json_string(&r->arena,
                                     *status == '{' ? json_print(&r->arena, parse(r, status)) : status));
        if (exit)
                json_set(&r->arena, data, "exit.json",
                         json_string(&r->arena, json_print(&r->arena, parse(r, exit))));
        child_json(r, &KUBE_CONFIGMAP, map);
}

static inline void job(struct rig *r, const char *text)
{
        child(r, &KUBE_JOB, text);
}

static inline void pod(struct rig *r, const char *text)
{
        child(r, &KUBE_POD, text);
}

/* The server has what the cache has. */
static inline void server_agrees(struct rig *r)
{
        const struct object *map = view_child(&r->view, &KUBE_CONFIGMAP, "r-status");

        answer(r, &KUBE_CONFIGMAP, "r-status", map ? json_print(&r->arena, map->json) : NULL, NULL);
        answer(r, &KUBE_CONFIGMAP, "r-data", NULL, NULL);
}

/* The pods of the Job: one, or none. */
static inline void server_has(struct rig *r, const char *text)
{
        struct json *items = json_array(&r->arena);

        json_append(items, text ? parse(r, text) : NULL);
        *vec_push(&r->answers) = (struct answer){
                .want = {.kind = WANT_PODS, .uid = "uid-job"},
                .json = json_build(&r->arena, "{'items': %p}", (void *)items)};
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

static inline void see(struct rig *r, enum run_life life, const char *reason)
{
        assert_true(run_see(&r->view, &r->d, &r->names, &r->seen));
        if (r->seen.life != life || !streq(r->seen.reason, reason))
                fail_msg("life %d, reason %s: %s", r->seen.life, r->seen.reason, r->seen.sentence);
        if (r->seen.sentence) {
                assert_in_range(strlen(r->seen.sentence), 10, 500);
                assert_true(utf8_valid(r->seen.sentence, strlen(r->seen.sentence)));
        }
}

static inline void assert_says(const char *text, const char *words)
{
        if (!text || !strstr(text, words))
                fail_msg("'%s' does not say '%s'", text ? text : "(nothing)", words);
}
