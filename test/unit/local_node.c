#include "unit/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "local/node_pod.h"
#include "unit/dir.h"

static struct json *parse(struct arena *a, const char *yaml)
{
        struct err err = ERR_INIT;
        struct json *j = yaml_parse(a, str_of(yaml), NULL, &err);

        if (!j)
                fail_msg("%s", err.text);
        return j;
}

/* ---- quantities */

static void quantities(void **state)
{
        static const struct {
                const char *text;
                int64_t milli;
        } rows[] = {
                {"1", 1000},
                {"1500m", 1500},
                {"0.1", 100},
                {"1.5", 1500},
                {"2Ki", 2048000},
                {"1Gi", 1073741824000},
                {"1e3", 1000000},
                {"1E3", 1000000},
                {"100M", 100000000000},
                {"1u", 1}, /* rounded up */
                {"12e-2", 120},
                {"-1", -1000},
                {"8Ei", INT64_MAX},
                {"99999999999999999999999999", INT64_MAX},
        };
        static const char *const wrong[] = {"", "x", "1x", "1.2.3", "1 ", "Mi", "1e", "1ee3"};
        int64_t milli;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                assert_true(quantity_milli(str_of(rows[i].text), &milli));
                if (milli != rows[i].milli)
                        fail_msg("%s: %lld", rows[i].text, (long long)milli);
        }
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                if (quantity_milli(str_of(wrong[i]), &milli))
                        fail_msg("'%s' is taken for a quantity", wrong[i]);
}

static void a_pod_asks_for_the_sum_or_its_largest_init_container(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *pod = parse(&a, "spec:\n"
                                     "  initContainers: [{resources: {requests: {cpu: 2}}}]\n"
                                     "  containers:\n"
                                     "  - resources: {requests: {cpu: 500m}, limits: {memory: 1Ki}}\n"
                                     "  - resources: {requests: {cpu: '1'}}\n"
                                     "  overhead: {cpu: 100m}\n");

        assert_int_equal(pod_request_milli(pod, "cpu"), 2100);
        assert_int_equal(pod_request_milli(pod, "memory"), 1024000);
        assert_int_equal(pod_request_milli(pod, "nvidia.com/gpu"), 0);
}

/* ---- environment */

static void variables_are_expanded_as_a_kubelet_does(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *env = parse(&a, "[A=one, B=]");
        static const struct {
                const char *text, *expect;
        } rows[] = {
                {"$(A)", "one"},    {"x$(A)y$(B)z", "xoneyz"},
                {"$(C)", "$(C)"},   {"$$(A)", "$(A)"},
                {"$$$(A)", "$one"}, {"$$$$(A)", "$$(A)"},
                {"$A", "$A"},       {"$(A", "$(A"},
                {"$", "$"},         {"", ""},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                assert_string_equal(pod_expand(rows[i].text, env, &a), rows[i].expect);
}

static const char POD[] =
        "metadata: {name: p, namespace: ns, uid: u, labels: {b: '2', a: x}}\n"
        "spec:\n"
        "  restartPolicy: OnFailure\n"
        "  securityContext: {runAsUser: 1000, fsGroup: 2000}\n"
        "  containers:\n"
        "  - name: main\n"
        "    image: any\n"
        "    command: [run, $(KEY)]\n"
        "    args: ['$(LABEL)']\n"
        "    env:\n"
        "    - {name: KEY, valueFrom: {configMapKeyRef: {name: cm, key: k}}}\n"
        "    - {name: HIDDEN, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
        "    - {name: LABEL, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a']\"}}}\n"
        "    - {name: GONE, valueFrom: {configMapKeyRef: {name: cm, key: nope, optional: true}}}\n"
        "    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}\n"
        "    volumeMounts: [{name: v, mountPath: /data, readOnly: true}]\n"
        "    securityContext: {runAsUser: 7}\n"
        "    resources: {limits: {memory: 1Mi, cpu: 1500m}}\n"
        "  - {name: none, image: any}\n"
        "  - {name: known, image: mine, args: [relay]}\n"
        "  volumes:\n"
        "  - name: v\n"
        "    configMap: {name: cm, items: [{key: k, path: sub/file}], defaultMode: 256}\n"
        "  - {name: e, emptyDir: {}}\n"
        "  - {name: d, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}\n";

static struct pod_context context(struct arena *a, const char *yaml)
{
        struct json *pod = parse(a, yaml);
        size_t n;
        struct pod_source *s = pod_sources(pod, a, &n);

        for (size_t i = 0; i < n; i++)
                if (streq(s[i].name, "cm"))
                        s[i].object = parse(a, "data: {k: value}");
                else if (streq(s[i].name, "s"))
                        s[i].object = parse(a, "data: {k: aGlkZGVu}");
        return (struct pod_context){.pod = pod,
                                    .sources = s,
                                    .n_sources = n,
                                    .dir = "/pods/u",
                                    .node = "node",
                                    .host_ip = "127.0.0.1",
                                    .pod_image = "mine",
                                    .pod_program = "/bin/sonde-pod",
                                    .a = a};
}

static void what_a_pod_refers_to_is_listed_once(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct pod_context c = context(&a, POD);

        assert_int_equal(c.n_sources, 2);
        assert_string_equal(c.sources[0].name, "cm");
        assert_true(c.sources[0].wanted);
        assert_string_equal(c.sources[1].name, "s");
}

static void a_plan_holds_what_a_supervisor_needs(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct pod_context c = context(&a, POD);
        struct err err = ERR_INIT;
        struct json *plan = pod_plan(&c, &err), *main = json_index(json_at(plan, "containers"), 0);

        assert_non_null(plan);
        assert_string_equal(json_print(&a, json_at(main, "argv")), "[\"run\",\"value\",\"x\"]");
        assert_string_equal(json_print(&a, json_at(main, "env")),
                            "[\"PATH=" NODE_PATH
                            "\",\"HOSTNAME=p\",\"KEY=value\",\"HIDDEN=hidden\",\"LABEL=x\",\"CPU=2\"]");
        assert_int_equal(json_int(main, "uid", 0), 7);
        assert_int_equal(json_int(main, "memory", 0), 1 << 20);
        assert_int_equal(json_int(main, "cpu", 0), 1500);
        assert_string_equal(json_print(&a, json_at(main, "groups")), "[2000]");
        assert_string_equal(json_print(&a, json_at(plan, "volumes")),
                            "[{\"name\":\"v\",\"kind\":\"files\",\"files\":[{\"path\":\"sub/"
                            "file\",\"mode\":256,\"data\":\"dmFsdWU=\"}]},"
                            "{\"name\":\"e\",\"kind\":\"empty\"},{\"name\":\"d\",\"kind\":\"files\","
                            "\"files\":[{\"path\":\"l\",\"mode\":420,"
                            "\"data\":\"YT0ieCIKYj0iMiI=\"}]}]");
        assert_true(pod_has_mounts(plan));
}

static void a_container_without_a_command_is_an_error_unless_its_image_is_known(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct pod_context c = context(&a, POD);
        struct err err = ERR_INIT;
        struct json *containers = json_at(pod_plan(&c, &err), "containers");

        assert_string_equal(json_str(json_at(json_index(containers, 1), "error"), "reason"),
                            "CreateContainerError");
        assert_null(json_at(json_index(containers, 2), "error"));
        assert_string_equal(json_print(&a, json_at(json_index(containers, 2), "argv")),
                            "[\"/sonde-pod\",\"relay\"]");
}

static void what_is_missing_has_the_kubelets_words(void **state)
{
        static const struct {
                const char *spec, *plan_error, *container_error;
        } rows[] = {
                {"{containers: [{name: c, command: [x], env: [{name: A, valueFrom: {configMapKeyRef: {name: "
                 "nope, key: k}}}]}]}",
                 NULL, "configmap \"nope\" not found"},
                {"{containers: [{name: c, command: [x], env: [{name: A, valueFrom: {configMapKeyRef: {name: "
                 "cm, key: nope}}}]}]}",
                 NULL, "couldn't find key nope in ConfigMap ns/cm"},
                {"{containers: [{name: c, command: [x], envFrom: [{secretRef: {name: nope}}]}]}", NULL,
                 "secret \"nope\" not found"},
                {"{volumes: [{name: v, configMap: {name: nope}}]}",
                 "MountVolume.SetUp failed for volume \"v\" : configmap \"nope\" not found", NULL},
                {"{volumes: [{name: v, configMap: {name: cm, items: [{key: nope, path: p}]}}]}",
                 "MountVolume.SetUp failed for volume \"v\" : configmap references non-existent config key: "
                 "nope",
                 NULL},
                {"{volumes: [{name: v, configMap: {name: cm, items: [{key: k, path: ../p}]}}]}",
                 "MountVolume.SetUp failed for volume \"v\" : '../p' is no path inside a volume", NULL},
                {"{volumes: [{name: ../v, emptyDir: {}}]}", "'../v' is no name of a volume", NULL},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;
                struct pod_context c = context(
                        &a, arena_printf(&a, "{metadata: {name: p, namespace: ns, uid: u}, spec: %s}",
                                         rows[i].spec));
                struct json *plan = pod_plan(&c, &err);

                if (rows[i].plan_error) {
                        assert_null(plan);
                        assert_string_equal(err.text, rows[i].plan_error);
                } else {
                        assert_string_equal(
                                json_str(json_at(json_index(json_at(plan, "containers"), 0), "error"),
                                         "message"),
                                rows[i].container_error);
                }
        }
}

static void volumes_are_written_with_their_modes(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct pod_context c = context(&a, POD);
        struct err err = ERR_INIT;
        struct json *plan = pod_plan(&c, &err);
        char dir[UNIT_DIR_LEN];
        struct stat st;

        unit_dir(dir);
        assert_int_equal(node_files_prepare(dir, plan, &a, &err), 0);
        assert_int_equal(stat(arena_printf(&a, "%s/volumes/v/sub/file", dir), &st), 0);
        assert_int_equal(st.st_mode & 0777, geteuid() == 0 ? 0440 : 0400);
        assert_int_equal(stat(arena_printf(&a, "%s/volumes/e", dir), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0777);
        assert_non_null(node_files_read(dir, "plan.json", &a, &err));
        node_files_remove(dir);
        assert_int_not_equal(access(dir, F_OK), 0);
}

/* ---- status */

struct status_row {
        const char *name, *spec, *state, *expect; /* expect: "PHASE Initialized Ready container states" */
};

#define TWO       "{initContainers: [{name: i}], containers: [{name: a}, {name: b}]}"
#define ONE       "{containers: [{name: a}]}"
#define DONE(n)   "{name: " n ", id: x, state: {terminated: {exitCode: 0, reason: Completed}}}"
#define FAILED(n) "{name: " n ", id: x, state: {terminated: {exitCode: 1, reason: Error}}}"
#define RUNS(n)   "{name: " n ", id: x, state: {running: {startedAt: t}}}"

static const struct status_row STATUSES[] = {
        {"not started", ONE, NULL, "Pending True False ContainerCreating"},
        {"not started, with init containers", TWO, NULL,
         "Pending False False PodInitializing PodInitializing "
         "PodInitializing"},
        {"an init container runs", TWO, "{containers: [" RUNS("i") "]}",
         "Pending False False running PodInitializing PodInitializing"},
        {"it has ended", TWO, "{containers: [" DONE("i") "]}",
         "Pending True False Completed PodInitializing PodInitializing"},
        {"all run", TWO, "{containers: [" DONE("i") ", " RUNS("a") ", " RUNS("b") "]}",
         "Running True True Completed running running"},
        {"one has failed, the other runs", TWO,
         "{containers: [" DONE("i") ", " FAILED("a") ", " RUNS("b") "]}",
         "Running True False Completed Error running"},
        {"all have ended", TWO, "{final: true, containers: [" DONE("i") ", " DONE("a") ", " DONE("b") "]}",
         "Succeeded True False Completed Completed Completed"},
        {"one has failed", TWO, "{final: true, containers: [" DONE("i") ", " FAILED("a") ", " DONE("b") "]}",
         "Failed True False Completed Error Completed"},
        {"an init container has failed", TWO, "{final: true, containers: [" FAILED("i") "]}",
         "Failed False False Error PodInitializing PodInitializing"},
        {"waits for its next start", ONE,
         "{containers: [{name: a, restarts: 2, state: {waiting: {reason: CrashLoopBackOff}}, last: "
         "{terminated: "
         "{exitCode: 1}}}]}",
         "Running True False CrashLoopBackOff"},
        {"past its deadline", ONE, "{final: true, reason: DeadlineExceeded, containers: [" DONE("a") "]}",
         "Failed True False Completed"},
};

static void add_states(const struct json *list, struct buf *out)
{
        json_foreach (c, list) {
                const struct json *s = json_first(json_at(c, "state"));

                buf_printf(out, " %s", json_str(s, "reason") ? json_str(s, "reason") : s->key);
        }
}

static void statuses(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                _cleanup_(buf_done) struct buf got = BUF_INIT(4096);
                const struct status_row *r = &STATUSES[i];
                struct pod_status_input in = {
                        .pod = parse(&a, arena_printf(&a, "{metadata: {name: p}, spec: %s}", r->spec)),
                        .state = r->state ? parse(&a, r->state) : NULL,
                        .host_ip = "127.0.0.1",
                        .now = 1};
                struct json *status = pod_status(&in, &a), *conditions = json_at(status, "conditions");

                buf_printf(&got, "%s %s %s", json_str(status, "phase"),
                           json_str(json_index(conditions, 0), "status"),
                           json_str(json_index(conditions, 1), "status"));
                add_states(json_at(status, "initContainerStatuses"), &got);
                add_states(json_at(status, "containerStatuses"), &got);
                if (!streq(buf_cstr(&got), r->expect))
                        fail_msg("%s: '%s' instead of '%s'", r->name, buf_cstr(&got), r->expect);
        }
}

static void a_condition_keeps_its_time_until_it_changes(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct pod_status_input in = {.pod = parse(&a, "{metadata: {name: p}, spec: " ONE
                                                       ", status: {conditions: [{type: Initialized, status: "
                                                       "'True', lastTransitionTime: then}, {type: Ready, "
                                                       "status: 'True', lastTransitionTime: "
                                                       "then}]}}"),
                                      .host_ip = "x",
                                      .now = 0};
        struct json *conditions = json_at(pod_status(&in, &a), "conditions");

        assert_string_equal(json_str(json_index(conditions, 0), "lastTransitionTime"), "then");
        assert_string_equal(json_str(json_index(conditions, 1), "lastTransitionTime"),
                            "1970-01-01T00:00:00Z");
}

static void a_lost_supervisor_leaves_a_failed_pod(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *lost = parse(&a, "{containers: [" RUNS("a") ", " DONE("b") "]}");

        state_mark_lost(lost, 0, &a);
        assert_true(state_is_final(lost));
        assert_string_equal(json_str(lost, "reason"), "NodeLost");
        assert_int_equal(json_int(json_pointer(lost, "/containers/0/state/terminated"), "exitCode", 0), 137);
        assert_string_equal(json_str(json_pointer(lost, "/containers/1/state/terminated"), "reason"),
                            "Completed");
}

static void restarts_wait_longer_and_longer(void **state)
{
        static const usec_t seconds[] = {0, 0, 10, 20, 40, 80, 160, 300, 300};

        for (unsigned i = 0; i < ARRAY_LEN(seconds); i++)
                assert_int_equal(restart_delay(i), seconds[i] * USEC_PER_SEC);
        assert_int_equal(restart_delay(1000), 300 * USEC_PER_SEC);
}

/* ---- scheduling */

struct fit {
        const char *node, *pod, *why;
};

static void check_fits(const struct fit *rows, size_t n)
{
        struct node_room room = {2000, 1000LL << 30, 10, 1000};

        for (size_t i = 0; i < n; i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct json *pod = parse(&a, arena_printf(&a, "{spec: %s}", rows[i].pod));
                const char *why = schedule_check(parse(&a, rows[i].node), pod, &room, &a);

                if (!streq(why, rows[i].why))
                        fail_msg("%s: %s", rows[i].pod, why ? why : "fits");
        }
}

static void pods_fit_or_the_scheduler_says_why(void **state)
{
        static const struct fit rows[] = {
                {"{}", "{}", NULL},
                {"{}", "{containers: [{resources: {requests: {cpu: 3}}}]}",
                 "0/1 nodes are available: 1 Insufficient cpu."},
                {"{}",
                 "{containers: [{resources: {requests: {cpu: 3, memory: 1Ti}, limits: {nvidia.com/gpu: "
                 "2}}}]}",
                 "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Insufficient "
                 "nvidia.com/gpu."},
                {"{}", "{containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}", NULL},
                {"{metadata: {labels: {a: b}}}", "{nodeSelector: {a: b}}", NULL},
                {"{metadata: {labels: {a: b}}}", "{nodeSelector: {a: c}}",
                 "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity."},
                {"{spec: {unschedulable: true}}", "{}",
                 "0/1 nodes are available: 1 node(s) were unschedulable."},
                {"{spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}", "{}",
                 "0/1 nodes are available: 1 node(s) had taint {k: v}, that the pod didn't tolerate."},
                {"{spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}",
                 "{tolerations: [{key: k, operator: Exists}]}", NULL},
        };

        check_fits(rows, ARRAY_LEN(rows));
}

#define NO_MATCH "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity."
#define AFFINITY(terms)                                                                                   \
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " \
        "[" terms "]}}}}"
#define LABEL(key, operator, values) \
        AFFINITY("{matchExpressions: [{key: " key ", operator: " operator", values: [" values "]}]}")

static void a_required_affinity_must_hold(void **state)
{
        static const struct fit rows[] = {
                {"{metadata: {name: one}}",
                 AFFINITY("{matchFields: [{key: metadata.name, operator: In, values: [one]}]}"), NULL},
                {"{metadata: {name: one}}",
                 AFFINITY("{matchFields: [{key: metadata.name, operator: NotIn, values: [one]}]}"), NO_MATCH},
                {"{metadata: {labels: {a: b}}}", LABEL("a", "In", "c, b"), NULL},
                {"{metadata: {labels: {a: b}}}", LABEL("a", "In", "c"), NO_MATCH},
                {"{metadata: {labels: {a: b}}}", LABEL("x", "In", "b"), NO_MATCH},
                {"{metadata: {labels: {a: b}}}", LABEL("a", "NotIn", "c"), NULL},
                {"{metadata: {labels: {a: b}}}", LABEL("a", "NotIn", "b"), NO_MATCH},
                {"{metadata: {labels: {a: b}}}", LABEL("x", "NotIn", "b"), NULL},
                {"{metadata: {labels: {a: b}}}", LABEL("a", "Exists", ""), NULL},
                {"{metadata: {labels: {a: b}}}", LABEL("x", "Exists", ""), NO_MATCH},
                {"{metadata: {labels: {a: b}}}", LABEL("x", "DoesNotExist", ""), NULL},
                {"{metadata: {labels: {a: b}}}", LABEL("a", "DoesNotExist", ""), NO_MATCH},
                {"{metadata: {labels: {a: '10'}}}", LABEL("a", "Gt", "'9'"), NULL},
                {"{metadata: {labels: {a: '10'}}}", LABEL("a", "Gt", "'10'"), NO_MATCH},
                {"{metadata: {labels: {a: '10'}}}", LABEL("a", "Lt", "'11'"), NULL},
                {"{metadata: {labels: {a: '10'}}}", LABEL("a", "Lt", "'10'"), NO_MATCH},
                {"{metadata: {labels: {a: ten}}}", LABEL("a", "Lt", "'11'"), NO_MATCH},
                {"{}", LABEL("a", "Lt", "'11'"), NO_MATCH},
                {"{metadata: {labels: {a: b}}}", /* one term of several will do, all of a term must hold */
                 AFFINITY("{matchExpressions: [{key: x, operator: Exists}]}, {matchExpressions: [{key: a, "
                          "operator: "
                          "Exists}]}"),
                 NULL},
                {"{metadata: {labels: {a: b}}}",
                 AFFINITY("{matchExpressions: [{key: a, operator: Exists}, {key: x, operator: Exists}]}"),
                 NO_MATCH},
                {"{metadata: {labels: {a: b}}}", AFFINITY("{}"), NO_MATCH},
                {"{metadata: {labels: {a: b}}}",
                 "{nodeSelector: {a: c}, affinity: {nodeAffinity: "
                 "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
                 "[{key: a, "
                 "operator: Exists}]}]}}}}",
                 NO_MATCH},
        };

        check_fits(rows, ARRAY_LEN(rows));
}

/* ---- cgroups, on a copy of the tree */

static void put(const char *dir, const char *file, const char *text)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, file);

        assert_int_equal(file_replace(path, str_of(text), 0644, NULL), 0);
}

static void version_2_gets_one_group(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct cgroup_limits limits = {1 << 20, 500};
        struct err err = ERR_INIT;
        char root[UNIT_DIR_LEN], *group;
        struct json *dirs;
        struct buf text = BUF_INIT(4096);

        unit_dir(root);
        group = arena_printf(&a, "%s/user/sonde-x", root);
        assert_int_equal(dir_make(group, 0755, &err), 0);
        put(root, "cgroup.controllers", "memory cpu");
        put(arena_printf(&a, "%s/user", root), "cgroup.subtree_control", "");
        put(group, "memory.max", "");
        put(group, "cpu.max", "");
        put(group, "memory.events", "low 0\noom 1\noom_kill 1\n");
        dirs = cgroup_make(root, STR("0::/user/sonde-node\n"), "x", &limits, &a, &err);
        assert_non_null(dirs);
        assert_string_equal(json_cstr(json_index(dirs, 0)), group);
        assert_int_equal(file_read(arena_printf(&a, "%s/memory.max", group), &text, &err), 0);
        assert_str(buf_str(&text), "1048576");
        assert_int_equal(file_read(arena_printf(&a, "%s/cpu.max", group), &text, &err), 0);
        assert_str(buf_str(&text), "50000 100000");
        assert_true(cgroup_saw_oom(dirs));
        buf_done(&text);
}

static void a_group_that_cannot_be_made_says_what_to_do(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct cgroup_limits limits = {1 << 20, 500};
        struct err err = ERR_INIT;

        assert_null(cgroup_make("/nowhere", STR("4:memory:/x\n"), "x", &limits, &a, &err));
        assert_int_equal(err.code, E_FORBIDDEN);
        assert_non_null(strstr(err.text, "systemd-run --user --scope -p Delegate=yes"));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities),
        cmocka_unit_test(a_pod_asks_for_the_sum_or_its_largest_init_container),
        cmocka_unit_test(variables_are_expanded_as_a_kubelet_does),
        cmocka_unit_test(what_a_pod_refers_to_is_listed_once),
        cmocka_unit_test(a_plan_holds_what_a_supervisor_needs),
        cmocka_unit_test(a_container_without_a_command_is_an_error_unless_its_image_is_known),
        cmocka_unit_test(what_is_missing_has_the_kubelets_words),
        cmocka_unit_test(volumes_are_written_with_their_modes),
        cmocka_unit_test(statuses),
        cmocka_unit_test(a_condition_keeps_its_time_until_it_changes),
        cmocka_unit_test(a_lost_supervisor_leaves_a_failed_pod),
        cmocka_unit_test(restarts_wait_longer_and_longer),
        cmocka_unit_test(pods_fit_or_the_scheduler_says_why),
        cmocka_unit_test(a_required_affinity_must_hold),
        cmocka_unit_test(version_2_gets_one_group),
        cmocka_unit_test(a_group_that_cannot_be_made_says_what_to_do),
};

UNIT_MAIN(tests)
