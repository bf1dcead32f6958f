#include "kinds/testrun.h"

const struct kube_type TESTRUN = {"test.sonde.dev", "v1alpha1", "testruns", "TestRun", true, true};

/* It says what becomes of the ConfigMap, not what is run. */
static const char *const free_members[] = {"deleteStatusMap", NULL};

static const struct json *spec_of(const struct view *v)
{
        return json_at(v->request, "spec");
}

static struct run_kind kind_of(const struct view *v)
{
        const char *name = meta_str(v->request, "name");

        return (struct run_kind){
                .job = arena_printf(v->arena, "%s-run", name),
                .status_map = name_fit(v->arena, NAME_SUBDOMAIN, "", name, "-run-status", NULL),
                .data_map = name_fit(v->arena, NAME_SUBDOMAIN, "", name, "-run-results", NULL),
                .access = name_fit(v->arena, NAME_SUBDOMAIN, "", name, "-run", NULL),
                .free = free_members,
        };
}

static struct json *copy_of(const struct view *v, const char *member)
{
        const struct json *value = json_at(spec_of(v), member);

        return value ? json_copy(v->arena, value) : NULL;
}

static struct json *status_copy(const struct view *v)
{
        const struct json *status = json_at(v->request, "status");

        return json_is(status, JSON_OBJECT) ? json_copy(v->arena, status) : json_object(v->arena);
}

/* ---- plan */

static struct run_job job_of(const struct view *v)
{
        const struct testrun_settings *settings = v->settings;
        const struct json *spec = spec_of(v);

        return (struct run_job){
                .pod_image = settings->pod_image,
                .run_dir = json_str_or(spec, "runDir", "/sonde/run"),
                .container = json_build(v->arena,
                                        "{'name': 'workload', 'image': %s, 'command': %p, 'args': %p, "
                                        "'env': %p, 'resources': %p}",
                                        json_str_or(spec, "image", ""), (void *)copy_of(v, "command"),
                                        (void *)copy_of(v, "args"), (void *)copy_of(v, "env"),
                                        (void *)copy_of(v, "resources")),
                .pod = json_build(v->arena, "{'volumes': %p}", (void *)copy_of(v, "volumes")),
                .backoff_limit = json_int(spec, "backoffLimit", 0),
                .deadline_seconds = json_int(spec, "deadlineSeconds", 0),
                .grace_seconds = json_int(spec, "graceSeconds", 0),
                .ttl_seconds = -1,
        };
}

/* The request cannot be run at all. */
static bool was_refused(const struct view *v)
{
        const struct json *status = json_at(v->request, "status");

        return streq(json_str(status, "phase"), "Failed") && !json_str(json_at(status, "run"), "outcome");
}

static void refuse(const struct view *v, struct decision *d, const char *why)
{
        d->status = status_copy(v);
        json_set(v->arena, d->status, "phase", json_string(v->arena, "Failed"));
        run_refused(v, d, d->status, why);
}

static void plan(const struct view *v, struct decision *d)
{
        struct run_kind kind = kind_of(v);
        struct run_job job = job_of(v);
        const struct object *map = view_child(v, &KUBE_CONFIGMAP, kind.status_map);
        const char *why;
        struct run run;

        if (was_refused(v))
                return;
        run_read(v, &kind, &run);
        if (!run.names.job && run_controls_check(v, &why, 1)) {
                refuse(v, d, why);
                return;
        }
        if (!run_plan(v, d, &run, &job, &why))
                refuse(v, d, why);
        /* After the end: all that was in it has been taken over. */
        else if (run.over && map && json_bool(spec_of(v), "deleteStatusMap", false))
                decide_absent(d, map);
}

/* ---- settle */

static void tell(const struct view *v, struct decision *d, const struct run_seen *seen,
                 const struct priors *priors, struct json *status)
{
        static const char *const phases[] = {"Pending",   "Pending",   "Running",
                                             "Suspended", "Succeeded", "Failed"};
        struct arena *a = v->arena;

        run_progress(v, d, seen, priors, status);
        run_ready(v, d, seen, status);
        json_set(a, status, "phase", json_string(a, phases[seen->life]));
        json_remove(status, "reason");
        json_set(a, status, "reason", json_string(a, seen->reason));
        json_remove(status, "message");
        json_set(a, status, "message", json_string(a, seen->sentence));
        json_set(a, status, "attempt", json_u64(a, seen->attempt));
}

static void settle(const struct view *v, struct decision *d)
{
        const char *shape = json_str(spec_of(v), "shape");
        const struct priors *priors = NULL;
        struct run_kind kind = kind_of(v);
        struct json *status, *result = NULL;
        struct run_seen seen;
        struct run run;

        if (d->status || was_refused(v))
                return;
        run_read(v, &kind, &run);
        status = status_copy(v);
        if (run.over) {
                run_settle_spec(v, d, &run, status);
                d->status = status;
                return;
        }
        if (!run_settle(v, d, &run, &seen, status) ||
            (!run_over(&seen) && !run_priors(v, d, shape, &priors)) ||
            (run_over(&seen) && !run_result(v, d, &seen, &result)))
                return;
        tell(v, d, &seen, priors, status);
        if (run_over(&seen)) {
                json_set(v->arena, status, "result", result);
                d->row = run_row(v, &seen, shape);
        }
        d->status = status;
}

/* ---- registration */

static const struct child_kind children[] = {
        {.type = &KUBE_JOB, .through = -1, .project = run_project_job},
        {.type = &KUBE_POD, .through = 0, .project = run_project_pod},
        {.type = &KUBE_CONFIGMAP, .through = -1, .project = run_project_map},
};

struct controller testrun_controller(const struct testrun_settings *settings)
{
        return (struct controller){
                .name = "testrun",
                .type = &TESTRUN,
                .children = children,
                .n_children = ARRAY_LEN(children),
                .settings = settings,
                .plan = plan,
                .settle = settle,
        };
}
