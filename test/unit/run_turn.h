/*
 * run_turn.h - one decision about a run after the other.
 */
#pragma once

#include "unit/run_kind.h"

/* The parts of a status of which the others are made. */
#define SUSPENDED "{'type': 'Suspended', 'status': 'True', 'lastTransitionTime': '2026-11-15T11:00:00Z'}"
#define EVICTED                                                                                          \
        POD("'phase': 'Failed', 'reason': 'Evicted', 'message': 'The node was low on resource: memory.'" \
            ", 'startTime': '2026-11-15T11:00:01Z'")
#define RUNS POD("'phase': 'Running', 'startTime': '2026-11-15T11:00:01Z', " STATES(RUNNING, RUNNING))

/* What nobody has made. */
static inline void server_has_no(struct rig *r, const struct kube_type *type, const char *name)
{
        answer(r, type, name, NULL, NULL);
}

static inline void nothing_in_the_way(struct rig *r)
{
        server_has_no(r, &KUBE_JOB, "r-run-2");
        server_has_no(r, &KUBE_JOB, "r-run-3");
        server_has_no(r, &KUBE_SERVICEACCOUNT, "r-access");
        server_has_no(r, &KUBE_ROLE, "r-access");
        server_has_no(r, &KUBE_ROLEBINDING, "r-access");
        server_agrees(r);
}

/* INVALID: what the kind says against the spec. */
static inline struct json *settle_as(struct rig *r, const char *invalid, bool renew, enum run_life life,
                                     const char *reason)
{
        struct run_job job = {.pod_image = "p",
                              .run_dir = "/sonde/run",
                              .container = parse(r, "{'name': 'main', 'image': 'i', 'command': ['x']}"),
                              .ttl_seconds = -1};
        const struct json *before = json_at(r->view.request, "status");
        struct json *status = before ? json_copy(&r->arena, before) : json_object(&r->arena);
        struct run *run = arena_new(&r->arena, struct run);
        const char *why;

        decision_done(&r->d);
        run_read(&r->view, &KIND, run);
        run->invalid = invalid;
        run->renew = renew;
        assert_true(run_plan(&r->view, &r->d, run, &job, &why));
        assert_null(why);
        if (!run_settle(&r->view, &r->d, run, &r->seen, status))
                fail_msg("wants %zu look-ups: %d %s", r->d.n_wants, r->d.wants[0].kind, r->d.wants[0].name);
        if (r->seen.life != life || !streq(r->seen.reason, reason))
                fail_msg("life %d, reason %s: %s", r->seen.life, r->seen.reason, r->seen.sentence);
        if (r->seen.sentence)
                assert_in_range(strlen(r->seen.sentence), 10, 500);
        return status;
}

static inline struct json *settle_with(struct rig *r, const char *invalid, enum run_life life,
                                       const char *reason)
{
        return settle_as(r, invalid, false, life, reason);
}

static inline struct json *plan_and_settle(struct rig *r, enum run_life life, const char *reason)
{
        return settle_with(r, NULL, life, reason);
}

/* The status stays as it is until more is known, and nobody is told anything. */
static inline void assert_waits(struct rig *r)
{
        struct run run;

        decision_done(&r->d);
        run_read(&r->view, &KIND, &run);
        assert_false(run_settle(&r->view, &r->d, &run, &r->seen, json_object(&r->arena)));
        assert_int_equal(r->d.n_wants + r->d.events.n, 0);
        assert_int_equal(r->d.again_at, r->view.now + 5 * USEC_PER_SEC);
}

/* The server has a success that the cache does not show. */
static inline void recorded_meanwhile(struct rig *r)
{
        answer(r, &KUBE_CONFIGMAP, "r-status", MAP(FENCE("1", "uid-p", "9", "Succeeded")), NULL);
}

/* The status is written, and the kind has told of it. */
static inline void is_written(struct rig *r, struct json *status)
{
        run_progress(&r->view, &r->d, &r->seen, NULL, status);
        json_set(&r->arena, (struct json *)r->view.request, "status", status);
}

static inline void no_children(struct rig *r)
{
        r->children.n = 0;
        r->view.n_children = 0;
}

static inline bool removes(const struct rig *r, const char *name)
{
        vec_foreach (gone, &r->d.absent)
                if (streq(gone->object->name, name))
                        return streq(gone->propagation, "Foreground");
        return false;
}

static inline bool told(const struct rig *r, const char *reason)
{
        vec_foreach (e, &r->d.events)
                if (streq(e->reason, reason))
                        return true;
        return false;
}

static inline void assert_run(struct rig *r, const struct json *status, int64_t attempt, const char *job,
                              int64_t retries)
{
        const struct json *run = json_at(status, "run");

        if (json_int(run, "attempt", 0) != attempt || !streq(json_str(run, "job"), job) ||
            json_int(run, "retries", -1) != retries)
                fail_msg("%s", json_print(&r->arena, run));
        assert_null(json_at(run, "outcome"));
}

static inline void assert_outcome(const struct json *status, const char *outcome, const char *reason)
{
        assert_string_equal(json_str(json_at(status, "run"), "outcome"), outcome);
        assert_true(streq(json_str(json_at(status, "run"), "reason"), reason));
}
