/*
 * What follows after a DynamoGraphDeploymentRequest's run: the generated document, the deployment, later changes.
 */
#include "unit/run_objects.h"

#include "kinds/dgdr/internal.h"

#define SPEC                                                                                            \
        "'model': 'm', 'backend': 'vllm', 'profilingConfig': {'profilerImage': 'i', 'config': {'sla': " \
        "{'ttft': 50}}}"
#define GENERATED                                                                                        \
        "'generatedDeployment': {'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', " \
        "'metadata': {'name': 'r-dgd', 'namespace': 'ns'}, 'spec': {}}"
#define DEPLOYED(state) \
        "'deployment': {'name': 'r-dgd', 'namespace': 'ns', 'state': '" state "', 'created': true}"
#define A_DGD(label, state)                                                              \
        "{'metadata': {'name': 'r-dgd', 'uid': 'uid-dgd', 'namespace': 'ns', 'labels': " \
        "{'sonde.dev/request': '" label "'}}, 'status': {'state': '" state "'}}"

static const struct dgdr_settings settings = {.pod_image = "sonde-pod"};

static const char *hash_of(struct rig *r)
{
        struct run_kind kind = dgdr_run_kind(&r->view);
        struct run run;

        run_read(&r->view, &kind, &run);
        return run.spec_hash;
}

static struct json *request_of(struct rig *r, const char *spec, const char *status, int observed,
                               const char *hash)
{
        return parse(r,
                     arena_printf(&r->arena,
                                  "{'metadata': {'name': 'r', 'namespace': 'ns', 'uid': 'uid-r', "
                                  "'generation': 2}, 'spec': {" SPEC "%s}, 'status': {'observedGeneration': "
                                  "%d, 'run': {'attempt': 1, 'job': 'profile-r', 'specHash': '%s', "
                                  "'outcome': 'Succeeded'}%s}}",
                                  spec, observed, hash, status));
}

/* A request whose run has succeeded; more of its spec, what its status has beside that, and the generation observed. */
static void after(struct rig *r, const char *spec, const char *status, int observed)
{
        r->view.type = &DGDR;
        r->view.settings = &settings;
        r->view.request = request_of(r, spec, status, observed, "");
        r->view.request = request_of(r, spec, status, observed, hash_of(r));
}

static const struct json *settled(struct rig *r)
{
        decision_done(&r->d);
        dgdr_settle(&r->view, &r->d);
        return r->d.status;
}

static const char *reason_of(const struct json *status, const char *type)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return json_str(c, "reason");
        return NULL;
}

static void deployed_when_asked_for_later(void **state)
{
        struct rig *r = *state;
        const struct json *status;

        after(r, ", 'autoApply': true", ", 'state': 'Ready', " GENERATED, 2);
        status = settled(r);
        assert_string_equal(json_str(status, "state"), "Deploying");
        assert_int_equal(r->d.exist.n, 1);
        assert_ptr_equal(r->d.exist.v[0].type, &DGD);
}

static void taken_back_in_time(void **state)
{
        struct rig *r = *state;

        after(r, "", ", 'state': 'Deploying', " GENERATED, 2);
        assert_string_equal(json_str(settled(r), "state"), "Ready");
        assert_int_equal(r->d.exist.n, 0);
}

static void a_deployment_that_gets_worse_stays_so(void **state)
{
        struct rig *r = *state;
        const struct json *status;

        after(r, ", 'autoApply': true", ", 'state': 'Ready', " GENERATED ", " DEPLOYED("successful"), 2);
        child(r, &DGD, A_DGD("uid-r", "failed"));
        status = settled(r);
        assert_string_equal(reason_of(status, "DeploymentReady"), "DeploymentDegraded");
        assert_string_equal(r->d.events.v[0].reason, "DeploymentDegraded");
        json_set(&r->arena, (struct json *)r->view.request, "status", json_copy(&r->arena, status));
        assert_string_equal(reason_of(settled(r), "DeploymentReady"), "DeploymentDegraded");
        assert_int_equal(r->d.events.n, 0);
}

static void a_strangers_deployment_is_not_ours(void **state)
{
        struct rig *r = *state;

        after(r, ", 'autoApply': true", ", 'state': 'Ready', " GENERATED ", " DEPLOYED("successful"), 2);
        assert_null(settled(r));
        assert_true(wanted(r, &DGD, "r-dgd"));
        answer(r, &DGD, "r-dgd", A_DGD("uid-x", "successful"), NULL);
        assert_string_equal(json_str(settled(r), "state"), "DeploymentDeleted");
}

static void ours_out_of_sight_is_looked_at(void **state)
{
        struct rig *r = *state;
        const struct json *status;

        after(r, ", 'autoApply': true", ", 'state': 'Ready', " GENERATED ", " DEPLOYED("successful"), 2);
        answer(r, &DGD, "r-dgd", A_DGD("uid-r", "pending"), NULL);
        status = settled(r);
        assert_string_equal(json_str(status, "state"), "Deploying");
        assert_true(r->d.again_at > r->view.now);
}

static void not_made_again_on_a_failed_look(void **state)
{
        struct rig *r = *state;

        after(r, ", 'autoApply': true", ", 'state': 'Ready', " GENERATED ", " DEPLOYED("successful"), 2);
        answer(r, &DGD, "r-dgd", NULL, "no route");
        assert_null(settled(r));
        assert_int_equal(r->d.exist.n, 0);
}

static void overrides_count_until_it_is_deployed(void **state)
{
        struct rig *r = *state;

        after(r, ", 'deploymentOverrides': {'labels': {'team': 'a'}}", ", 'state': 'Ready', " GENERATED, 1);
        answer(r, &KUBE_CONFIGMAP, "dgdr-output-r",
               "{'metadata': {'name': 'dgdr-output-r', 'uid': 'uid-o', " OWNED
               "}, 'data': {'config_with_planner.yaml': 'apiVersion: nvidia.com/v1alpha1\\nkind: "
               "DynamoGraphDeployment\\nmetadata: {name: x}\\nspec: {}\\n'}}",
               NULL);
        assert_string_equal(
                json_str(json_at(json_at(json_at(settled(r), "generatedDeployment"), "metadata"), "labels"),
                         "team"),
                "a");
}

static void what_cannot_be_made_is_waited_for(void **state)
{
        struct rig *r = *state;
        const struct json *status;

        after(r, ", 'deploymentOverrides': {'namespace': 'other'}", ", 'state': 'Profiling'", 1);
        status = settled(r);
        assert_string_equal(json_str(status, "state"), "Profiling");
        assert_string_equal(reason_of(status, "SpecGenerated"), "Invalid");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1);
}

/* ---- deployments that a profiler left */

#define A_TEMPORARY                                                     \
        "{'metadata': {'name': 'r-12ab', 'uid': 'uid-temp', 'labels': " \
        "{'sonde.dev/request': 'uid-r', 'sonde.dev/temporary': 'true'}}}"

/* Whether the temporary deployment, and nothing else of its kind, must not exist while the status is STATUS. */
static bool is_removed(struct rig *r, const char *status)
{
        size_t n = 0;

        r->view.type = &DGDR;
        r->view.settings = &settings;
        r->view.request = parse(r,
                                arena_printf(&r->arena,
                                             "{'metadata': {'name': 'r', 'namespace': 'ns', 'uid': 'uid-r', "
                                             "'generation': 1}, 'spec': {" SPEC "}, 'status': {%s}}",
                                             status));
        decision_done(&r->d);
        dgdr_plan(&r->view, &r->d);
        vec_foreach (absent, &r->d.absent) {
                assert_string_not_equal(absent->object->name, "r-dgd");
                n += streq(absent->object->name, "r-12ab");
        }
        return n == 1;
}

#define RUN(more) "'run': {'attempt': 1, 'job': 'profile-r', 'retries': 0" more "}"

static void temporary_deployments_are_the_profilers_while_it_runs(void **state)
{
        struct rig *r = *state;

        child(r, &DGD, A_TEMPORARY);
        child(r, &DGD, A_DGD("uid-r", "successful"));
        assert_false(is_removed(r, "'state': 'Profiling', " RUN("")));
        assert_true(is_removed(r, "'state': 'Profiling', " RUN(", 'reason': 'Retrying'")));
        assert_true(is_removed(r, "'state': 'Profiling', " RUN(", 'reason': 'Cancelled'")));
        assert_true(is_removed(r, "'state': 'Failed', " RUN(", 'outcome': 'Failed'")));
        assert_true(is_removed(r, "'state': 'Ready', " RUN(", 'outcome': 'Succeeded'")));
        assert_true(is_removed(
                r, "'state': 'Pending', 'conditions': [{'type': 'Suspended', 'status': 'True'}], " RUN("")));
}

/* A profiler that has not heard of it yet would take it for a candidate's failure. */
static void temporary_deployments_stay_until_the_profiler_has_ended(void **state)
{
        struct rig *r = *state;

        child(r, &DGD, A_TEMPORARY);
        child(r, &KUBE_JOB,
              "{'metadata': {'name': 'profile-r', 'uid': 'uid-job', 'deletionTimestamp': "
              "'2026-11-15T12:00:00Z', 'labels': {'sonde.dev/attempt': '1'}, " OWNED "}, 'status': {}}");
        child(r, &KUBE_POD,
              "{'metadata': {'name': 'p', 'uid': 'uid-p', " BY_JOB "}, 'status': {'phase': 'Running'}}");
        assert_false(is_removed(
                r, "'state': 'Pending', 'conditions': [{'type': 'Suspended', 'status': 'True'}], " RUN("")));
        assert_false(is_removed(r, "'state': 'Profiling', " RUN(", 'reason': 'Retrying'")));
        assert_false(is_removed(r, "'state': 'Failed', " RUN(", 'outcome': 'Failed'")));
}

/* ---- Sonde's own profiler */

static const struct json *job_of(struct rig *r, const char *profiling)
{
        const struct json *job;

        r->view.type = &DGDR;
        r->view.settings = &settings;
        for (int i = 0; i < 2; i++) /* the second time with the spec's hash */
                r->view.request = parse(
                        r, arena_printf(&r->arena,
                                        "{'metadata': {'name': 'r', 'namespace': 'ns', 'uid': 'uid-r', "
                                        "'generation': 1}, 'spec': {'model': 'm', 'backend': 'vllm', "
                                        "'profilingConfig': {%s}}, 'status': {'run': {'attempt': 1, 'job': "
                                        "'profile-r', 'specHash': '%s'}}}",
                                        profiling, i ? hash_of(r) : ""));
        decision_done(&r->d);
        dgdr_plan(&r->view, &r->d);
        job = planned(r, &KUBE_JOB, "profile-r");
        assert_non_null(job);
        return json_path(job, "spec.template.spec");
}

static bool has_token(const struct json *pod)
{
        json_foreach (m, json_at(json_first(json_at(pod, "containers")), "volumeMounts"))
                if (strstr(json_str(m, "mountPath"), "serviceaccount"))
                        return true;
        return false;
}

static void without_an_image_the_profiler_is_sonde_s_own(void **state)
{
        struct rig *r = *state;
        const struct json *pod = job_of(r, "'config': {'sla': {'ttft': 50}}");
        const struct json *profiler = json_first(json_at(pod, "containers"));
        const struct json *words = json_at(profiler, "command");

        assert_string_equal(json_str(profiler, "image"), "sonde-pod");
        assert_non_null(
                strstr(json_print(&r->arena, profiler), "\"/sonde/sonde-pod\",\"sla\",\"--target\",\"dgd\""));
        assert_string_equal(json_cstr(json_first(words)), "/sonde/sonde-pod");
        assert_true(has_token(pod));
        assert_int_equal(json_len(json_at(planned(r, &KUBE_ROLE, "profile-r"), "rules")), 4);
        pod = job_of(r, "'config': {'sonde': {'target': 'sim'}}");
        assert_false(has_token(pod));
        assert_int_equal(json_len(json_at(planned(r, &KUBE_ROLE, "profile-r"), "rules")), 1);
}

/* ---- before the run */

static void one_that_waits_for_its_turn(void **state)
{
        static const struct admission second = {.position = 2,
                                                .reason = "1 of 1 runs are under way (dgdr/a)"};
        struct rig *r = *state;
        const struct json *status;

        r->view.type = &DGDR;
        r->view.settings = &settings;
        r->view.admission = &second;
        r->view.request = parse(r,
                                "{'metadata': {'name': 'r', 'namespace': 'ns', 'uid': 'uid-r', 'generation': "
                                "1}, 'spec': {" SPEC "}}");
        settled(r);
        *vec_push(&r->answers) = (struct answer){.want = r->d.wants[0]}; /* nothing is known of its shape */
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
        status = settled(r);
        assert_string_equal(json_str(status, "state"), "Pending");
        assert_string_equal(json_str(json_at(status, "queue"), "position"), "2");
        assert_string_equal(reason_of(status, "Progressing"), "Queued");
        assert_null(json_at(status, "run"));
        assert_null(json_at(status, "progress"));
        assert_int_equal(r->d.admission.stand, ADMISSION_WAITS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(deployed_when_asked_for_later),
        T(taken_back_in_time),
        T(a_deployment_that_gets_worse_stays_so),
        T(a_strangers_deployment_is_not_ours),
        T(ours_out_of_sight_is_looked_at),
        T(not_made_again_on_a_failed_look),
        T(overrides_count_until_it_is_deployed),
        T(what_cannot_be_made_is_waited_for),
        T(temporary_deployments_are_the_profilers_while_it_runs),
        T(temporary_deployments_stay_until_the_profiler_has_ended),
        T(without_an_image_the_profiler_is_sonde_s_own),
        T(one_that_waits_for_its_turn),
};

UNIT_MAIN(tests)
