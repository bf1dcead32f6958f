#include "unit/run_rig.h"

static struct run_job job_of(struct rig *r, const char *container)
{
        return (struct run_job){
                .names = r->names,
                .spec_hash = "abc",
                .pod_image = "sonde-pod:1",
                .run_dir = "/sonde/run",
                .container = parse(r, container),
                .ttl_seconds = -1,
                .run_as_user = -1,
        };
}

static const char PLAIN[] =
        "{'name': 'main', 'image': 'i', 'command': ['sh', '-c', 'echo $(X)'], 'args': ['$(Y)']}";

static void plan(struct rig *r, const struct run_job *job)
{
        const char *why;

        assert_true(run_job_plan(&r->view, &r->d, job, &why));
        assert_null(why);
}

static const struct json *pod_of(struct rig *r)
{
        const struct json *job = planned(r, &KUBE_JOB, "r-run");

        assert_non_null(job);
        return json_at(json_at(json_at(job, "spec"), "template"), "spec");
}

static const struct json *container_of(struct rig *r, size_t i)
{
        return json_index(json_at(pod_of(r), "containers"), i);
}

/* ---- what is planned, and when */

static void all_in_the_order_of_creation(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);
        static const struct kube_type *const types[] = {&KUBE_CONFIGMAP,      &KUBE_CONFIGMAP,
                                                        &KUBE_SERVICEACCOUNT, &KUBE_ROLE,
                                                        &KUBE_ROLEBINDING,    &KUBE_JOB};

        plan(r, &job);
        assert_int_equal(r->d.exist.n, ARRAY_LEN(types));
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                assert_ptr_equal(r->d.exist.v[i].type, types[i]);
        assert_json(r, json_at(planned(r, &KUBE_CONFIGMAP, "r-status"), "data"),
                    "{'attempt': '1', 'podUID': '', 'sequence': '0', 'state': 'Pending'}");
        assert_json(r, json_at(planned(r, &KUBE_CONFIGMAP, "r-data"), "data"), "{'specHash': 'abc'}");
        assert_int_equal(r->d.exist.v[5].how, EXIST_ONCE);
}

static void access_to_two_maps_by_name(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);

        plan(r, &job);
        assert_json(
                r, json_at(planned(r, &KUBE_ROLE, "r-access"), "rules"),
                "[{'apiGroups': [''], 'resources': ['configmaps'], 'resourceNames': ['r-status', 'r-data'], "
                "'verbs': ['get', 'patch']}]");
        assert_json(r, planned(r, &KUBE_ROLEBINDING, "r-access"),
                    "{'metadata': {'name': 'r-access'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', "
                    "'kind': 'Role', 'name': 'r-access'}, 'subjects': [{'kind': 'ServiceAccount', 'name': "
                    "'r-access', 'namespace': 'ns'}]}");
        assert_json(r, planned(r, &KUBE_SERVICEACCOUNT, "r-access"),
                    "{'metadata': {'name': 'r-access'}, 'automountServiceAccountToken': false}");
}

static void once_the_job_is_there_only_what_was_lost_is_made_again(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);

        request(r, "{'progress': {'job': 'r-run', 'attempt': 2, 'podUID': 'uid-p'}}");
        child(r, &KUBE_JOB, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}}");
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 2); /* the ConfigMaps; those that are there stay as they are */
        assert_json(r, json_at(planned(r, &KUBE_CONFIGMAP, "r-status"), "data"),
                    "{'attempt': '2', 'podUID': 'uid-p', 'sequence': '0', 'state': 'Pending'}");
        assert_int_equal(r->d.exist.v[0].how, EXIST_ONCE);
        assert_int_equal(r->d.exist.v[1].how, EXIST_ONCE);
}

/* Its Job was deleted by somebody, or by its own TTL: it is not made again. */
static void nothing_once_the_job_was_there(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);

        request(r, "{'progress': {'job': 'r-run'}}");
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 0);
        request(r, "{'progress': {'job': 'r-earlier'}}");
        child(r, &KUBE_CONFIGMAP,
              "{'metadata': {'name': 'r-status', 'uid': 'u', " OWNED "}, 'data': {'attempt': '1', 'podUID': "
              "'uid-p', 'sequence': '7', 'state': 'Running'}}");
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 0);
        job.names.attempt = 2; /* of a later Job, which there was not yet */
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 0);
        assert_true(wanted(r, &KUBE_CONFIGMAP, "r-status")); /* which only the server knows */
        answer(r, &KUBE_CONFIGMAP, "r-status",
               "{'metadata': {'name': 'r-status', 'uid': 'u', " OWNED "}, 'data': {'attempt': '1', 'podUID': "
               "'uid-p', 'sequence': '7', 'state': 'Running'}}",
               NULL);
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 6);
}

/* The ConfigMaps are there, their Job is not, and the cache has not seen yet that there was one. */
static void the_server_knows_whether_the_job_was_there(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);

        child(r, &KUBE_CONFIGMAP,
              "{'metadata': {'name': 'r-status', 'uid': 'u', " OWNED
              "}, 'data': {'attempt': '1', 'podUID': '', "
              "'sequence': '0', 'state': 'Pending'}}");
        answer(r, &KUBE_CONFIGMAP, "r-status",
               "{'metadata': {'name': 'r-status', 'uid': 'u', " OWNED "}, 'data': {'attempt': '1', 'podUID': "
               "'uid-p', 'sequence': '7', 'state': 'Running'}}",
               NULL);
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 0);
}

static void no_command_no_run(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, "{'name': 'main', 'image': 'i'}");
        const char *why;

        assert_false(run_job_plan(&r->view, &r->d, &job, &why));
        assert_non_null(strstr(why, "no command"));
        assert_int_equal(r->d.exist.n, 0);
}

/* The command was taken out of the spec in mid-run: the Job has its own. */
static void a_run_outlives_its_spec(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, "{'name': 'main', 'image': 'i'}");

        request(r, "{'progress': {'job': 'r-run'}}");
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 0);
        child(r, &KUBE_JOB, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}}");
        plan(r, &job);
        assert_int_equal(r->d.exist.n, 2);
}

static void planned_twice_is_planned_the_same(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN), again = job_of(r, PLAIN);

        plan(r, &job);
        plan(r, &again);
        for (size_t i = 0; i < 6; i++)
                assert_true(json_equal(r->d.exist.v[i].json, r->d.exist.v[i + 6].json));
}

/* ---- the pod */

/* What stage and relay have alike. */
static const char helper[] =
        "'resources': {'requests': {'cpu': '10m', 'memory': '16Mi'}, 'limits': {'cpu': '500m', "
        "'memory': '64Mi'}}, 'securityContext': {'runAsNonRoot': true, 'allowPrivilegeEscalation': "
        "false, 'readOnlyRootFilesystem': true, 'capabilities': {'drop': ['ALL']}, 'seccompProfile': "
        "{'type': 'RuntimeDefault'}}";

/* The whole of it, as it goes to the server. */
static void the_job(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);

        job.backoff_limit = 3;
        job.deadline_seconds = 600;
        job.ttl_seconds = 60;
        job.grace_seconds = 45;
        job.labels = parse(r, "{'team': 'a'}");
        plan(r, &job);
        assert_json(
                r, planned(r, &KUBE_JOB, "r-run"),
                arena_printf(
                        &r->arena,
                        "{'metadata': {'name': 'r-run', 'labels': {'team': 'a', 'sonde.dev/attempt': '1'}}, "
                        "'spec': {'backoffLimit': "
                        "3, 'activeDeadlineSeconds': 600, "
                        "'ttlSecondsAfterFinished': 60, 'template': {'metadata': {'labels': {'team': 'a'}, "
                        "'annotations': {'kubectl.kubernetes.io/default-container': 'main', "
                        "'kubectl.kubernetes.io/default-logs-container': 'main'}}, 'spec': {"
                        "'restartPolicy': 'Never', 'serviceAccountName': 'r-access', "
                        "'automountServiceAccountToken': false, 'terminationGracePeriodSeconds': 45, "
                        "'securityContext': {'runAsUser': 1000, 'runAsGroup': 1000, 'fsGroup': 1000}, "
                        "'volumes': [{'name': 'run', 'emptyDir': {}}, {'name': 'sonde', 'emptyDir': {}}, "
                        "{'name': 'sonde-token', 'projected': {'sources': [{'serviceAccountToken': {'path': "
                        "'token', 'expirationSeconds': 3600}}, {'configMap': {'name': 'kube-root-ca.crt', "
                        "'items': [{'key': 'ca.crt', 'path': 'ca.crt'}]}}, {'downwardAPI': {'items': "
                        "[{'path': 'namespace', 'fieldRef': {'fieldPath': 'metadata.namespace'}}]}}]}}, "
                        "{'name': 'sonde-data', 'configMap': {'name': 'r-data', 'optional': true, 'items': ["
                        "{'key': 'specHash', 'path': 'specHash'}, {'key': 'checkpoint.json', 'path': "
                        "'checkpoint.json'}, {'key': 'checkpoint.json.gz', 'path': "
                        "'checkpoint.json.gz'}]}}], "
                        "'initContainers': [{'name': 'stage', 'image': 'sonde-pod:1', 'command': ["
                        "'/sonde-pod', 'stage', '--dir', '/sonde/run', '--checkpoint', '/sonde-data', "
                        "'--spec-hash', 'abc'], %s, 'volumeMounts': [{'name': 'sonde', 'mountPath': "
                        "'/sonde'}, "
                        "{'name': 'run', 'mountPath': '/sonde/run'}, {'name': 'sonde-data', 'mountPath': "
                        "'/sonde-data', 'readOnly': true}]}], "
                        "'containers': [{'name': 'main', 'image': 'i', 'command': ['/sonde/sonde-pod', "
                        "'run', "
                        "'--', 'sh', '-c', 'echo $(X)'], 'args': ['$(Y)'], 'env': [{'name': 'SONDE_RUN_DIR', "
                        "'value': '/sonde/run'}], 'volumeMounts': [{'name': 'sonde', 'mountPath': '/sonde'}, "
                        "{'name': 'run', 'mountPath': '/sonde/run'}], 'securityContext': {'runAsNonRoot': "
                        "true, "
                        "'seccompProfile': {'type': 'RuntimeDefault'}, 'allowPrivilegeEscalation': false, "
                        "'capabilities': {'drop': ['ALL']}}}, "
                        "{'name': 'relay', 'image': 'sonde-pod:1', 'command': ['/sonde-pod', 'relay', "
                        "'--grace', '37500ms'], %s, "
                        "'env': [{'name': 'SONDE_RUN_DIR', 'value': '/sonde/run'}, {'name': "
                        "'SONDE_SPEC_HASH', "
                        "'value': 'abc'}, {'name': 'SONDE_STATUS_MAP', 'value': 'r-status'}, {'name': "
                        "'SONDE_DATA_MAP', 'value': 'r-data'}, {'name': 'SONDE_ATTEMPT', 'value': '1'}, "
                        "{'name': 'SONDE_NAMESPACE', 'valueFrom': {'fieldRef': {'fieldPath': "
                        "'metadata.namespace'}}}, {'name': 'SONDE_POD_UID', 'valueFrom': {'fieldRef': "
                        "{'fieldPath': 'metadata.uid'}}}], 'volumeMounts': [{'name': 'sonde', 'mountPath': "
                        "'/sonde'}, {'name': 'run', 'mountPath': '/sonde/run'}, {'name': 'sonde-token', "
                        "'mountPath': '/var/run/secrets/kubernetes.io/serviceaccount', 'readOnly': "
                        "true}]}]}}}}",
                        helper, helper));
}

/* For a profiler that deploys by itself and leaves files of its own. */
static void what_a_kind_adds(void **state)
{
        static const char *const files[] = {"a.yaml", "b.yaml", NULL};
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);
        const struct json *env, *mounts;

        job.files = files;
        job.rules = parse(r, "[{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get']}]");
        job.workload_token = true;
        plan(r, &job);
        env = json_find_named(json_at(container_of(r, 1), "env"), "SONDE_FILES");
        assert_string_equal(json_str(env, "value"), "a.yaml,b.yaml");
        mounts = json_at(container_of(r, 0), "volumeMounts");
        assert_json(r, json_find_named(mounts, "sonde-token"),
                    "{'name': 'sonde-token', 'mountPath': '/var/run/secrets/kubernetes.io/serviceaccount', "
                    "'readOnly': true}");
        assert_json(
                r, json_at(planned(r, &KUBE_ROLE, "r-access"), "rules"),
                "[{'apiGroups': [''], 'resources': ['configmaps'], 'resourceNames': ['r-status', 'r-data'], "
                "'verbs': ['get', 'patch']}, {'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get']}]");
}

/* The kubelet expands $(VAR): what we put in is meant as it is, what the request says is the request's. */
static void more_init_containers(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);
        const struct json *list, *c;

        job.init = parse(r, "[{'name': 'fetch', 'image': 'i', 'command': ['/sonde/sonde-pod', 'x']}]");
        plan(r, &job);
        list = json_at(pod_of(r), "initContainers");
        assert_int_equal(json_len(list), 2);
        assert_string_equal(json_str(json_index(list, 0), "name"), "stage");
        c = json_index(list, 1);
        assert_string_equal(json_str(c, "name"), "fetch");
        assert_json(r, json_at(c, "volumeMounts"),
                    "[{'name': 'sonde', 'mountPath': '/sonde', 'readOnly': true}]");
        assert_true(json_bool(json_at(c, "securityContext"), "runAsNonRoot", false));
}

static void dollars(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);
        const struct json *stage;

        job.run_dir = "/data/$(HOME)$x";
        job.spec_hash = "$$";
        plan(r, &job);
        stage = json_first(json_at(pod_of(r), "initContainers"));
        assert_json(r, json_at(stage, "command"),
                    "['/sonde-pod', 'stage', '--dir', '/data/$$(HOME)$$x', '--checkpoint', '/sonde-data', "
                    "'--spec-hash', '$$$$']");
        assert_json(r, json_at(container_of(r, 0), "env"),
                    "[{'name': 'SONDE_RUN_DIR', 'value': '/data/$$(HOME)$$x'}]");
        assert_string_equal(json_str(json_index(json_at(container_of(r, 0), "volumeMounts"), 1), "mountPath"),
                            "/data/$(HOME)$x"); /* not expanded there */
        assert_json(r, json_at(container_of(r, 0), "args"), "['$(Y)']");
}

/* The request's own volume for the run directory, its mount, its variable and its path of the last words stay. */
static void what_the_request_has_already(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(
                r,
                "{'name': 'main', 'image': 'i', 'command': ['x'], 'terminationMessagePath': '/t/$', 'env': "
                "[{'name': 'SONDE_RUN_DIR', 'value': '/elsewhere'}], 'volumeMounts': [{'name': 'run', "
                "'mountPath': '/data', 'subPath': 'mine'}]}");

        job.run_dir = "/data";
        job.spec_hash = NULL;
        job.pod = parse(r, "{'nodeSelector': {'gpu': 'yes'}, 'volumes': [{'name': 'run', "
                           "'persistentVolumeClaim': {'claimName': 'c'}}]}");
        plan(r, &job);
        assert_json(r, json_at(container_of(r, 0), "command"),
                    "['/sonde/sonde-pod', 'run', '--termination-log', '/t/$$', '--', 'x']");
        assert_json(r, json_at(container_of(r, 0), "env"),
                    "[{'name': 'SONDE_RUN_DIR', 'value': '/elsewhere'}]");
        assert_json(
                r, json_at(container_of(r, 0), "volumeMounts"),
                "[{'name': 'run', 'mountPath': '/data', 'subPath': 'mine'}, {'name': 'sonde', 'mountPath': "
                "'/sonde'}]");
        assert_json(r, json_index(json_at(pod_of(r), "volumes"), 0),
                    "{'name': 'run', 'persistentVolumeClaim': {'claimName': 'c'}}");
        assert_int_equal(json_len(json_at(pod_of(r), "volumes")), 3); /* no checkpoint, no data volume */
        assert_string_equal(json_str(json_at(pod_of(r), "nodeSelector"), "gpu"), "yes");
}

static void ours_are_never_root(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);

        job.run_as_user = 0;
        plan(r, &job);
        assert_int_equal(json_int(json_at(pod_of(r), "securityContext"), "runAsUser", -1), 0);
        assert_int_equal(json_int(json_at(container_of(r, 1), "securityContext"), "runAsUser", -1), 1000);
        assert_true(json_bool(json_at(container_of(r, 1), "securityContext"), "runAsNonRoot", false));
        assert_null(json_at(container_of(r, 0), "securityContext"));
}

/* As far as the request does not say otherwise, and as the server takes it. */
static void the_workload_is_restricted(void **state)
{
        static const struct {
                const char *says, *pod, *becomes;
        } cases[] = {
                {"{}", "{}",
                 "{'runAsNonRoot': true, 'seccompProfile': {'type': 'RuntimeDefault'}, "
                 "'allowPrivilegeEscalation': false, 'capabilities': {'drop': ['ALL']}}"},
                {"{'allowPrivilegeEscalation': true, 'capabilities': {'drop': ['KILL']}, 'runAsNonRoot': "
                 "false, 'seccompProfile': {'type': 'Unconfined'}}",
                 "{}",
                 "{'allowPrivilegeEscalation': true, 'capabilities': {'drop': ['KILL']}, 'runAsNonRoot': "
                 "false, 'seccompProfile': {'type': 'Unconfined'}}"},
                {"{'capabilities': {'add': ['SYS_ADMIN']}}",
                 "{'securityContext': {'seccompProfile': {'type': 'Unconfined'}, 'runAsNonRoot': false}}",
                 "{'capabilities': {'add': ['SYS_ADMIN']}}"},
                {"{'privileged': true}", "{}", "{'privileged': true, 'runAsNonRoot': true}"},
                {"{'runAsUser': 0}", "{}", "{'runAsUser': 0}"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct run_job job = job_of(r, PLAIN);

                json_set(&r->arena, job.container, "securityContext", parse(r, cases[i].says));
                job.pod = parse(r, cases[i].pod);
                decision_done(&r->d);
                r->d = (struct decision){0};
                plan(r, &job);
                assert_json(r, json_at(container_of(r, 0), "securityContext"), cases[i].becomes);
        }
}

/* A number that is too large for the server, or for the relay's milliseconds. */
static void grace_is_bounded(void **state)
{
        static const struct {
                int64_t says, becomes;
        } cases[] = {{0, 30}, {-5, 30}, {45, 45}, {604801, 604800}, {INT64_MAX, 604800}};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct run_job job = job_of(r, PLAIN);

                job.grace_seconds = cases[i].says;
                decision_done(&r->d);
                r->d = (struct decision){0};
                plan(r, &job);
                assert_int_equal(json_int(pod_of(r), "terminationGracePeriodSeconds", 0), cases[i].becomes);
        }
}

static void only_the_relay_has_the_token(void **state)
{
        struct rig *r = *state;
        struct run_job job = job_of(r, PLAIN);
        const char *text;

        plan(r, &job);
        text = json_print(&r->arena, container_of(r, 0));
        assert_null(strstr(text, "token"));
        text = json_print(&r->arena, json_at(pod_of(r), "initContainers"));
        assert_null(strstr(text, "token"));
        assert_non_null(strstr(json_print(&r->arena, container_of(r, 1)), "sonde-token"));
}

/* ---- names */

static void the_wanted_name_if_nobody_has_it(void **state)
{
        struct rig *r = *state;

        assert_null(run_job_name(&r->view, &r->d, "r-run", 1));
        assert_true(wanted(r, &KUBE_JOB, "r-run"));
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        assert_string_equal(run_job_name(&r->view, &r->d, "r-run", 1), "r-run");
}

static void a_strangers_name_is_left_to_him(void **state)
{
        struct rig *r = *state;
        const char *name;

        answer(r, &KUBE_JOB, "r-run", "{'metadata': {'name': 'r-run', 'uid': 'x', " OTHERS "}}", NULL);
        name = run_job_name(&r->view, &r->d, "r-run", 1);
        assert_int_equal(strlen(name), strlen("r-run-12345678"));
        assert_true(str_has_prefix(str_of(name), STR("r-run-")));
        assert_string_equal(run_job_name(&r->view, &r->d, "r-run", 1), name);
}

static void our_own_job_is_found_again(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_JOB, "r-run",
               "{'metadata': {'name': 'r-run', 'uid': 'x', 'labels': {'sonde.dev/attempt': '1'}, " OWNED "}}",
               NULL);
        assert_string_equal(run_job_name(&r->view, &r->d, "r-run", 1), "r-run");
}

/* The request's own, and yet no attempt of its run. */
static void a_job_that_is_no_attempt_keeps_its_name(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_JOB, "r-run", "{'metadata': {'name': 'r-run', 'uid': 'x', " OWNED "}}", NULL);
        assert_int_equal(strlen(run_job_name(&r->view, &r->d, "r-run", 1)), strlen("r-run-12345678"));
}

static void later_attempts_and_long_names(void **state)
{
        struct rig *r = *state;
        char stem[80];
        const char *name;

        answer(r, &KUBE_JOB, "r-run-2", NULL, NULL);
        assert_string_equal(run_job_name(&r->view, &r->d, "r-run", 2), "r-run-2");
        memset(stem, 'a', sizeof(stem) - 1);
        stem[sizeof(stem) - 1] = '\0';
        assert_null(run_job_name(&r->view, &r->d, stem, 1));
        name = r->d.wants[0].name;
        assert_int_equal(strlen(name), 63);
        answer(r, &KUBE_JOB, name, NULL, NULL);
        assert_string_equal(run_job_name(&r->view, &r->d, stem, 1), name);
}

/* Nothing is named on a guess; it is looked at again. */
static void a_name_that_could_not_be_looked_up(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_JOB, "r-run", NULL, "the server does not answer");
        assert_null(run_job_name(&r->view, &r->d, "r-run", 1));
        assert_int_equal(r->d.n_wants, 0);
        assert_true(r->d.again_at > NOON);
}

/* ---- the end */

static void access_goes_with_its_uid(void **state)
{
        struct rig *r = *state;

        assert_false(run_job_dismiss(&r->view, &r->d, &r->names));
        assert_int_equal(r->d.n_wants, 3);
        answer(r, &KUBE_ROLEBINDING, "r-access", "{'metadata': {'name': 'r-access', 'uid': 'b', " OWNED "}}",
               NULL);
        answer(r, &KUBE_ROLE, "r-access", "{'metadata': {'name': 'r-access', 'uid': 's', " OTHERS "}}", NULL);
        answer(r, &KUBE_SERVICEACCOUNT, "r-access", NULL, NULL);
        assert_true(run_job_dismiss(&r->view, &r->d, &r->names));
        assert_int_equal(r->d.absent.n, 1); /* a stranger's stays, what is gone is gone */
        assert_string_equal(r->d.absent.v[0].object->uid, "b");
}

static void the_end_does_not_wait_for_access(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_ROLEBINDING, "r-access", NULL, "forbidden");
        answer(r, &KUBE_ROLE, "r-access", NULL, NULL);
        answer(r, &KUBE_SERVICEACCOUNT, "r-access", NULL, NULL);
        assert_true(run_job_dismiss(&r->view, &r->d, &r->names));
        assert_int_equal(r->d.events.n, 1);
        assert_string_equal(r->d.events.v[0].reason, "AccessNotRemoved");
}

#define JOB_OF(limit, status)                                                                          \
        "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': " limit \
        "}, 'status': " status "}"
#define POD_OF(name, phase)                                                              \
        "{'metadata': {'name': '" name "', 'uid': 'uid-" name "', 'creationTimestamp': " \
        "'2026-11-15T11:00:00Z', " BY_JOB "}, 'status': {'phase': '" phase "'}}"

#define NEVER_STARTED                                                                              \
        "{'metadata': {'name': 'p', 'uid': 'uid-p', 'creationTimestamp': '2026-11-15T11:00:00Z', " \
        "'annotations': {'kubectl.kubernetes.io/default-container': 'main'}, " BY_JOB              \
        "}, 'status': {'phase': 'Running', 'containerStatuses': [{'name': 'main', 'state': "       \
        "{'terminated': {'exitCode': 128, 'reason': 'StartError'}}}, {'name': 'relay', 'state': "  \
        "{'running': {}}}]}}"

static void a_job_that_would_run_again_goes(void **state)
{
        static const struct {
                const char *job, *pod;
                bool goes, unknown; /* which pod was the last one */
        } cases[] = {
                {JOB_OF("2", "{}"), POD_OF("p", "Failed"), true},
                {JOB_OF("0", "{}"), POD_OF("p", "Failed"), false},  /* fails by itself */
                {JOB_OF("2", "{}"), POD_OF("p", "Running"), false}, /* is about to end */
                {JOB_OF("0", "{}"), POD_OF("p2", "Pending"), true}, /* a pod after the last one */
                {JOB_OF("0", "{}"), NEVER_STARTED, true},           /* its relay waits for ever */
                {JOB_OF("2", "{'conditions': [{'type': 'Complete', 'status': 'True'}]}"),
                 POD_OF("p", "Succeeded"), false},
                {JOB_OF("2", "{'conditions': [{'type': 'Failed', 'status': 'True'}]}"), POD_OF("p", "Failed"),
                 false},
                {JOB_OF("0", "{}"), POD_OF("p", "Running"), true, true},
                {JOB_OF("0", "{}"), POD_OF("p", "Succeeded"), false, true}, /* is about to end */
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                request(r, cases[i].unknown ? "{}" : "{'progress': {'job': 'r-run', 'podUID': 'uid-p'}}");
                child(r, &KUBE_JOB, cases[i].job);
                child(r, &KUBE_POD, cases[i].pod);
                run_job_halt(&r->view, &r->d, &r->names);
                assert_int_equal(r->d.absent.n, cases[i].goes);
                teardown(&s);
        }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(all_in_the_order_of_creation),
        T(access_to_two_maps_by_name),
        T(once_the_job_is_there_only_what_was_lost_is_made_again),
        T(nothing_once_the_job_was_there),
        T(the_server_knows_whether_the_job_was_there),
        T(no_command_no_run),
        T(a_run_outlives_its_spec),
        T(planned_twice_is_planned_the_same),
        T(the_job),
        T(what_a_kind_adds),
        T(more_init_containers),
        T(dollars),
        T(what_the_request_has_already),
        T(ours_are_never_root),
        T(the_workload_is_restricted),
        T(grace_is_bounded),
        T(only_the_relay_has_the_token),
        T(the_wanted_name_if_nobody_has_it),
        T(a_strangers_name_is_left_to_him),
        T(our_own_job_is_found_again),
        T(a_job_that_is_no_attempt_keeps_its_name),
        T(later_attempts_and_long_names),
        T(a_name_that_could_not_be_looked_up),
        T(access_goes_with_its_uid),
        T(the_end_does_not_wait_for_access),
        T(a_job_that_would_run_again_goes),
};

UNIT_MAIN(tests)
