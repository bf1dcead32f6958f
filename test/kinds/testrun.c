#include "kinds/testrun.h"

const struct kube_type TESTRUN = {"test.sonde.dev", "v1alpha1", "testruns", "TestRun", true, true};

static const struct json *spec_of(const struct view *v)
{
        return json_at(v->request, "spec");
}

static const char *status_str(const struct view *v, const char *member)
{
        return json_str(json_at(v->request, "status"), member);
}

static bool has_ended(const struct view *v)
{
        const char *phase = status_str(v, "phase");

        return streq(phase, "Succeeded") || streq(phase, "Failed");
}

/* The Job's name is known once it is in the status. */
static struct run_names names_of(const struct view *v)
{
        const char *name = meta_str(v->request, "name");

        return (struct run_names){
                .job = status_str(v, "jobName"),
                .status_map = name_fit(v->arena, NAME_SUBDOMAIN, "", name, "-run-status", NULL),
                .data_map = name_fit(v->arena, NAME_SUBDOMAIN, "", name, "-run-results", NULL),
                .access = name_fit(v->arena, NAME_SUBDOMAIN, "", name, "-run", NULL),
                .attempt = 1,
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

static struct run_job job_of(const struct view *v, struct run_names names)
{
        const struct testrun_settings *settings = v->settings;
        const struct json *spec = spec_of(v);

        return (struct run_job){
                .names = names,
                .spec_hash = run_spec_hash(v),
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
                .run_as_user = -1,
        };
}

/* After the end: all that was in the status ConfigMap has been taken over. */
static void plan_after(const struct view *v, struct decision *d, const struct run_names *names)
{
        const struct object *map = view_child(v, &KUBE_CONFIGMAP, names->status_map);

        if (names->job)
                run_job_halt(v, d, names);
        if (map && json_bool(spec_of(v), "deleteStatusMap", false))
                decide_absent(d, map);
}

static void plan(const struct view *v, struct decision *d)
{
        struct run_names names = names_of(v);
        struct run_job job;
        const char *why;

        if (has_ended(v)) {
                plan_after(v, d, &names);
                return;
        }
        if (!names.job)
                return; /* settle finds it */
        job = job_of(v, names);
        if (run_job_plan(v, d, &job, &why))
                return;
        d->status = status_copy(v);
        json_set(v->arena, d->status, "phase", json_string(v->arena, "Failed"));
        run_refused(v, d, d->status, why);
}

/* ---- settle */

static void settle_name(const struct view *v, struct decision *d)
{
        const char *wanted = arena_printf(v->arena, "%s-run", meta_str(v->request, "name"));
        const char *name = run_job_name(v, d, wanted, 1);

        if (!name)
                return;
        d->status = status_copy(v);
        json_set(v->arena, d->status, "jobName", json_string(v->arena, name));
        json_set(v->arena, d->status, "phase", json_string(v->arena, "Pending"));
}

static struct json *status_of(const struct view *v, struct decision *d, const struct run_seen *seen,
                              const struct priors *priors)
{
        static const char *const phases[] = {"Pending", "Pending", "Running", "Suspended", "Succeeded", "Failed"};
        struct arena *a = v->arena;
        struct json *status = status_copy(v);

        run_progress(v, d, seen, priors, status);
        run_ready(v, d, seen, status);
        json_set(a, status, "phase", json_string(a, phases[seen->life]));
        json_remove(status, "reason");
        json_set(a, status, "reason", json_string(a, seen->reason));
        json_remove(status, "message");
        json_set(a, status, "message", json_string(a, seen->sentence));
        json_set(a, status, "attempt", json_u64(a, seen->attempt));
        json_set(a, status, "observedGeneration",
                 json_i64(a, json_int(json_at(v->request, "metadata"), "generation", 0)));
        return status;
}

static void settle(const struct view *v, struct decision *d)
{
        const char *shape = json_str(spec_of(v), "shape");
        const struct priors *priors = NULL;
        struct run_names names = names_of(v);
        struct run_seen seen;
        struct json *status, *result = NULL;

        if (d->status || has_ended(v))
                return;
        if (!names.job) {
                settle_name(v, d);
                return;
        }
        if (!run_see(v, d, &names, &seen) || (!run_over(&seen) && !run_priors(v, d, shape, &priors)) ||
            (run_over(&seen) && (!run_result(v, d, &seen, &result) || !run_job_dismiss(v, d, &names))))
                return;
        status = status_of(v, d, &seen, priors);
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
