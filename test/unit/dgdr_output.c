/*
 * What a profiler made: the key that is chosen, the one deployment among documents, and all that is refused.
 */
#include "unit/run_rig.h"

#include "kinds/dgdr/internal.h"
#include "run/gzip.h"

#define DGD \
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: x}\nspec: {a: 1}\n"
#define MAP(name, more) "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\n" more
#define NEXT            "---\n"

static const struct dgdr_spec PLAIN = {.deployment = "r-dgd"};

/* ---- the key */

static struct str text_of(struct rig *r, bool mocker, const char *map, const char **key, struct err *err)
{
        struct dgdr_spec spec = {.use_mocker = mocker};

        return dgdr_output_text(&r->view, &spec, map ? parse(r, map) : NULL, key, err);
}

static void test_the_first_key_that_is_there_is_taken(void **state)
{
        static const struct {
                bool mocker;
                const char *map, *key, *text;
        } cases[] = {
                {false, "{'data': {'config_with_planner.yaml': 'c', 'final_config.yaml': 'f'}}",
                 "config_with_planner.yaml", "c"},
                {false, "{'data': {'mocker_config_with_planner.yaml': 'm', 'final_config.yaml': 'f'}}",
                 "final_config.yaml", "f"},
                {true,
                 "{'data': {'config_with_planner.yaml': 'c', 'mocker_config_with_planner.yaml': 'm', "
                 "'final_config.yaml': 'f'}}",
                 "mocker_config_with_planner.yaml", "m"},
                {true, "{'data': {'config_with_planner.yaml': 'c', 'final_config.yaml': 'f'}}",
                 "final_config.yaml", "f"},
                {false, "{'data': {'config_with_planner.yaml': ''}}", "config_with_planner.yaml", ""},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *key = NULL;
                struct str text = text_of(r, cases[i].mocker, cases[i].map, &key, NULL);

                assert_string_equal(key, cases[i].key);
                assert_non_null(text.p);
                assert_true(str_eq(text, str_of(cases[i].text)));
        }
}

static const char *packed_map(struct rig *r, struct str text)
{
        _cleanup_(buf_done) struct buf gz = BUF_INIT(1 << 20), b64 = BUF_INIT(1 << 20);

        assert_int_equal(gzip_add(&gz, text, NULL), 0);
        buf_add_base64(&b64, buf_str(&gz));
        return arena_printf(&r->arena, "{'data': {}, 'binaryData': {'config_with_planner.yaml.gz': '%s'}}",
                            buf_cstr(&b64));
}

static void test_a_gzipped_one_is_unpacked(void **state)
{
        struct rig *r = *state;
        const char *key = NULL;
        struct str text = text_of(r, false, packed_map(r, STR("a: 1\n")), &key, NULL);

        assert_string_equal(key, "config_with_planner.yaml");
        assert_true(str_eq(text, STR("a: 1\n")));
        text = text_of(r, false, packed_map(r, STR("")), &key, NULL);
        assert_non_null(text.p);
        assert_int_equal(text.n, 0);
}

static void test_what_cannot_be_had_is_said(void **state)
{
        struct rig *r = *state;
        size_t n = 5 << 20;
        char *large = arena_alloc(&r->arena, n);
        const struct {
                const char *map, *why;
        } cases[] = {
                {NULL, "the ConfigMap with the profiler's output is gone"},
                {"{}", "the profiler ended without writing config_with_planner.yaml or final_config.yaml"},
                {"{'data': {'config_with_planner.yaml': 7}}", "ended without writing"},
                {"{'binaryData': {'config_with_planner.yaml.gz': '!'}}",
                 "config_with_planner.yaml.gz is not in base64"},
                {"{'binaryData': {'config_with_planner.yaml.gz': 'AAAA'}}",
                 "config_with_planner.yaml.gz: not gzip"},
                {packed_map(r, str_n(memset(large, 'x', n), n)),
                 "config_with_planner.yaml.gz: more than 4194304 bytes"},
                {"{'data': {'artifacts.json': '[{\\'name\\': \\'final_config.yaml\\', \\'size\\': 1500000, "
                 "\\'kept\\': false}]'}}",
                 "final_config.yaml has 1500000 bytes, too many to be kept"},
                {"{'data': {'artifacts.json': 'nonsense'}}", "ended without writing"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;
                const char *key = NULL;

                assert_null(text_of(r, false, cases[i].map, &key, &err).p);
                assert_non_null(key);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("'%s' is not in '%s'", cases[i].why, err.text);
        }
}

/* ---- the deployment */

static void read_with(struct rig *r, const struct dgdr_spec *spec, const char *text, struct dgdr_output *ret)
{
        struct err err = ERR_INIT;

        if (dgdr_output_read(&r->view, spec, str_of(text), ret, &err) < 0)
                fail_msg("%s", err.text);
}

static void read_good(struct rig *r, const char *text, struct dgdr_output *ret)
{
        read_with(r, &PLAIN, text, ret);
}

static void test_the_deployment_is_found_and_named(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(r,
                  MAP("planner-profile-data", "data: {prefill_raw_data.json: '{}'}\n") NEXT
                  "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\n"
                  "metadata: {name: base, namespace: elsewhere, uid: u, ownerReferences: [{uid: x}],\n"
                  "  finalizers: [f], labels: {team: a}, annotations: {note: b}}\n"
                  "spec: {services: {Frontend: {replicas: 1}}, gone: null}\nstatus: {state: successful}\n"
                  "other: 1\n",
                  &out);
        assert_json(
                r, out.dgd,
                "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', 'metadata': {'name': "
                "'r-dgd', 'namespace': 'ns', 'labels': {'team': 'a', 'dgdr.nvidia.com/name': 'r', "
                "'dgdr.nvidia.com/namespace': 'ns', 'nvidia.com/managed-by': 'dynamo-operator'}, "
                "'annotations': {'note': 'b'}}, 'spec': {'services': {'Frontend': {'replicas': 1}}}}");
        assert_int_equal(out.n_refused, 0);
        assert_int_equal(out.n_extras, 1);
        assert_json(r, out.extras[0],
                    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'planner-profile-data', "
                    "'namespace': 'ns', 'labels': {'dgdr.nvidia.com/name': 'r', 'dgdr.nvidia.com/namespace': "
                    "'ns'}}, "
                    "'data': {'prefill_raw_data.json': '{}'}}");
}

static void test_the_version_that_was_written_stays(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(r, "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec: {components: []}\n",
                  &out);
        assert_string_equal(json_str(out.dgd, "apiVersion"), "nvidia.com/v1beta1");
        assert_string_equal(meta_str(out.dgd, "name"), "r-dgd");
}

static void test_overrides_win_over_the_document_and_identity_over_both(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;
        struct dgdr_spec spec = {.deployment = "mine",
                                 .labels = parse(r, "{'team': 'b', 'dgdr.nvidia.com/name': 'forged'}"),
                                 .annotations = parse(r, "{'example.com/x': 'y'}")};

        read_with(r, &spec,
                  "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec: {}\n"
                  "metadata: {labels: {team: a, keep: k}}\n",
                  &out);
        assert_json(
                r, json_at(out.dgd, "metadata"),
                "{'name': 'mine', 'namespace': 'ns', 'labels': {'team': 'b', 'keep': 'k', "
                "'dgdr.nvidia.com/name': 'r', 'dgdr.nvidia.com/namespace': 'ns', 'nvidia.com/managed-by': "
                "'dynamo-operator'}, 'annotations': {'example.com/x': 'y'}}");
}

static void test_reserved_and_bad_labels_are_left_out(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(
                r,
                "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec: {}\n"
                "metadata:\n  labels: {app.kubernetes.io/managed-by: x, kubernetes.io/x: y, node.k8s.io/x: "
                "y,\n"
                "    sonde.dev/request: other, dgdr.nvidia.com/other: z, nvidia.com/keep: k, "
                "mykubernetes.io/x: k,\n"
                "    'bad key': x, long: " /* 64 */
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, number: 1, a/b/c: x, /x: "
                "y}\n"
                "  annotations: {kubectl.kubernetes.io/last-applied-configuration: x, note: any text, m: "
                "[1]}\n",
                &out);
        assert_json(r, json_at(out.dgd, "metadata"),
                    "{'name': 'r-dgd', 'namespace': 'ns', 'labels': {'nvidia.com/keep': 'k', "
                    "'mykubernetes.io/x': "
                    "'k', 'dgdr.nvidia.com/name': 'r', 'dgdr.nvidia.com/namespace': 'ns', "
                    "'nvidia.com/managed-by': "
                    "'dynamo-operator'}, 'annotations': {'note': 'any text'}}");
}

static void test_a_long_name_fits_into_its_label(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;
        const char *value;

        r->view.request = parse(r,
                                "{'metadata': {'namespace': 'ns', 'name': 'a-name-of-more-than-sixty-three-"
                                "characters-that-a-request-may-have-all-the-same', 'uid': 'u'}, 'spec': {}}");
        read_good(r, DGD, &out);
        value = json_str(json_at(json_at(out.dgd, "metadata"), "labels"), "dgdr.nvidia.com/name");
        assert_in_range(strlen(value), 1, 63);
        assert_true(name_valid(NAME_LABEL_VALUE, str_of(value)));
}

static void test_the_workers_get_their_image(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;
        struct dgdr_spec spec = {.deployment = "d", .workers_image = "new"};

        read_with(r, &spec,
                  "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec:\n  services:\n"
                  "    Frontend: {extraPodSpec: {mainContainer: {image: old}}}\n"
                  "    Planner: {componentType: planner, extraPodSpec: {mainContainer: {image: old}}}\n"
                  "    Prefill: {componentType: worker, extraPodSpec: {mainContainer: {image: old, args: "
                  "[x]}}}\n"
                  "    Decode: {replicas: 1}\n"
                  "    Odd: {extraPodSpec: text}\n"
                  "    Entry: {componentType: Frontend}\n"
                  "    Nothing: text\n",
                  &out);
        assert_json(
                r, json_at(json_at(out.dgd, "spec"), "services"),
                "{'Frontend': {'extraPodSpec': {'mainContainer': {'image': 'old'}}}, 'Planner': "
                "{'componentType': 'planner', 'extraPodSpec': {'mainContainer': {'image': 'old'}}}, "
                "'Prefill': "
                "{'componentType': 'worker', 'extraPodSpec': {'mainContainer': {'image': 'new', 'args': "
                "['x']}}}, 'Decode': {'replicas': 1, 'extraPodSpec': {'mainContainer': {'image': 'new'}}}, "
                "'Odd': {'extraPodSpec': 'text'}, 'Entry': {'componentType': 'Frontend'}, 'Nothing': "
                "'text'}");
        read_with(r, &spec,
                  "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec:\n  components:\n"
                  "    - {name: Frontend, type: frontend}\n"
                  "    - {name: a, type: worker, podTemplate: {spec: {containers: [{name: side}, {name: "
                  "main, image: "
                  "old}]}}}\n"
                  "    - {name: b}\n    - text\n",
                  &out);
        assert_json(
                r, json_at(json_at(out.dgd, "spec"), "components"),
                "[{'name': 'Frontend', 'type': 'frontend'}, {'name': 'a', 'type': 'worker', 'podTemplate': "
                "{'spec': {'containers': [{'name': 'side'}, {'name': 'main', 'image': 'new'}]}}}, {'name': "
                "'b', "
                "'podTemplate': {'spec': {'containers': [{'name': 'main', 'image': 'new'}]}}}, 'text']");
}

static void test_what_gives_no_deployment_is_an_error(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                {"", "no DynamoGraphDeployment found in YAML content (0 documents)"},
                {MAP("x", "") NEXT "- 1\n", "no DynamoGraphDeployment found in YAML content (2 documents)"},
                {DGD NEXT MAP("x", "") NEXT DGD,
                 "more than one DynamoGraphDeployment found in YAML content: documents 1 and 3"},
                {"apiVersion: nvidia.com/v2\nkind: DynamoGraphDeployment\nspec: {}\n",
                 "document 1: a DynamoGraphDeployment of apiVersion 'nvidia.com/v2' is not known"},
                {"apiVersion: example.com/v1\nkind: DynamoGraphDeployment\nspec: {}\n",
                 "'example.com/v1' is not"},
                {"kind: DynamoGraphDeployment\nspec: {}\n", "apiVersion '' is not known"},
                {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\n", "document 1: the Dyn"},
                {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec: [1]\n", "has no spec"},
                {"a: 1\nb: [\n", "3:1: "},
                {DGD NEXT "a: {b: }}\n", "6:9: "},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct dgdr_output out;
                struct err err = ERR_INIT;

                assert_int_equal(dgdr_output_read(&r->view, &PLAIN, str_of(cases[i].text), &out, &err), -1);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("'%s' is not in '%s'", cases[i].why, err.text);
        }
}

static const char *repeat(struct rig *r, const char *before, const char *what, size_t n, const char *after)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(8 << 20);

        buf_adds(&b, before);
        for (size_t i = 0; i < n; i++)
                buf_adds(&b, what);
        buf_adds(&b, after);
        return arena_strdup(&r->arena, buf_cstr(&b));
}

static void test_size_and_depth_are_bounded(void **state)
{
        struct rig *r = *state;
        const char *head = "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec: {a: ";
        const struct {
                const char *text, *why;
        } cases[] = {
                {repeat(r, head, "x", 300 << 10, "}\n"), "more than 256 KiB"},
                {repeat(r, head, "[", 100, ""), "nested deeper than 64"},
                {repeat(r, DGD, "---\n- [1, 1, 1, 1, 1, 1, 1, 1]\n", 20000, ""), "more than 100000 values"},
                {repeat(r, DGD, "# a comment that goes on and on\n", 140000, ""), "larger than 4194304"},
                {repeat(r,
                        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\n"
                        "metadata: {annotations: {a: ",
                        "x", 60 << 10, repeat(r, "}}\nspec: {b: ", "y", 220 << 10, "}\n")),
                 "more than 256 KiB with its labels"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct dgdr_output out;
                struct err err = ERR_INIT;

                assert_int_equal(dgdr_output_read(&r->view, &PLAIN, str_of(cases[i].text), &out, &err), -1);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("%zu: '%s' is not in '%s'", i, cases[i].why, err.text);
        }
}

/* ---- other documents */

static void test_what_is_no_config_map_of_the_request_is_refused(void **state)
{
        static const struct {
                const char *doc, *why;
        } cases[] = {
                {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n",
                 "document 2: Secret 'x' is not created: only ConfigMaps are"},
                {"apiVersion: v1\nkind: List\nitems: []\n",
                 "document 2: List is not created: only ConfigMaps are"},
                {"a: 1\n", "document 2: what has no kind is not created: only ConfigMaps are"},
                {"- 1\n", "document 2: what is no object (array) is not created: only ConfigMaps are"},
                {"apiVersion: nvidia.com/v9\nkind: DynamoGraphDeployment\nmetadata: {name: x}\n",
                 "document 2: DynamoGraphDeployment 'x' is not created: only ConfigMaps are"},
                {"apiVersion: v2\nkind: ConfigMap\nmetadata: {name: x}\n",
                 "document 2: ConfigMap 'x' is not created: its apiVersion is not v1"},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: kube-system}\n",
                 "document 2: ConfigMap 'x' is not created: it is for another namespace than the request's"},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: [ns]}\n",
                 "document 2: ConfigMap 'x' is not created: it is for another namespace than the request's"},
                {"apiVersion: v1\nkind: ConfigMap\n", "document 2: ConfigMap is not created: it has no name"},
                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n",
                 "document 2: ConfigMap is not created: it has no name"},
                {MAP("'../x'", ""), "document 2: ConfigMap '../x' is not created: that is no name for it"},
                {MAP("dgdr-output-other", ""), "document 2: ConfigMap 'dgdr-output-other' is not created: "
                                               "the name is one of the run's own"},
                {MAP("dgdr-status-r", ""),
                 "document 2: ConfigMap 'dgdr-status-r' is not created: the name is one of the run's own"},
                {MAP("x", "data: [1]\n"), "document 2: ConfigMap 'x' is not created: its data is no object"},
                {MAP("x", "data: {a: 1}\n"), "document 2: ConfigMap 'x' is not created: a value of its data "
                                             "is none that a ConfigMap takes"},
                {MAP("x", "data: {a/b: c}\n"), "document 2: ConfigMap 'x' is not created: a key of its data "
                                               "is none that a ConfigMap takes"},
                {MAP("x", "binaryData: {a: '!'}\n"), "document 2: ConfigMap 'x' is not created: a value of "
                                                     "its data is none that a ConfigMap takes"},
                {MAP("x", "data: {a: x}\nbinaryData: {a: AA==}\n"),
                 "document 2: ConfigMap 'x' is not created: a key of its data is none that a ConfigMap "
                 "takes"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct dgdr_output out;

                read_good(r, arena_join(&r->arena, DGD NEXT, cases[i].doc, ""), &out);
                assert_non_null(out.dgd);
                assert_int_equal(out.n_extras, 0);
                assert_int_equal(out.n_refused, 1);
                assert_string_equal(out.refused[0], cases[i].why);
        }
}

static void test_a_config_map_keeps_what_it_may(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(r,
                  "apiVersion: v1\nkind: ConfigMap\nimmutable: true\nmetadata: {name: x.y, namespace: ns, "
                  "uid: u,\n"
                  "  ownerReferences: [{uid: o}], labels: {a: b, sonde.dev/controller: c, "
                  "app.kubernetes.io/name: d},\n"
                  "  annotations: {e: f, sonde.dev/plan: g}}\n"
                  "data: {k: v, empty: ''}\nbinaryData: {b: \"AAEC\\n  Aw==\"}\n" NEXT DGD NEXT MAP(
                          "none", "data: null\n"),
                  &out);
        assert_int_equal(out.n_refused, 0);
        assert_int_equal(out.n_extras, 2);
        assert_json(
                r, out.extras[0],
                "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'x.y', 'namespace': 'ns', "
                "'labels': {'a': 'b', 'dgdr.nvidia.com/name': 'r', 'dgdr.nvidia.com/namespace': 'ns'}, "
                "'annotations': {'e': 'f'}}, 'data': {'k': 'v', 'empty': ''}, 'binaryData': {'b': "
                "'AAECAw=='}}");
        assert_null(json_at(out.extras[1], "data"));
}

static void test_the_first_eight_are_taken_and_doubles_are_not(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);

        buf_adds(&text, DGD);
        for (int i = 0; i < 10; i++)
                buf_printf(&text, NEXT MAP("m%d", ""), i == 3 ? 2 : i);
        read_good(r, buf_cstr(&text), &out);
        assert_int_equal(out.n_extras, 8);
        assert_string_equal(meta_str(out.extras[0], "name"), "m0");
        assert_string_equal(meta_str(out.extras[7], "name"), "m8");
        assert_int_equal(out.n_refused, 2);
        assert_string_equal(out.refused[0],
                            "document 5: ConfigMap 'm2' is not created: there is one of that name before it");
        assert_string_equal(out.refused[1],
                            "document 11: ConfigMap 'm9' is not created: there are too many of them");
}

static void test_many_refusals_end_in_a_number(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(r, repeat(r, DGD, NEXT "kind: Secret\n", 16, ""), &out);
        assert_int_equal(out.n_refused, 16);
        assert_string_equal(out.refused[15], "document 17: Secret is not created: only ConfigMaps are");
        read_good(r, repeat(r, DGD, NEXT "kind: Secret\n", 20, ""), &out);
        assert_int_equal(out.n_refused, 16);
        assert_string_equal(out.refused[14], "document 16: Secret is not created: only ConfigMaps are");
        assert_string_equal(out.refused[15], "5 more documents are not created");
}

static void test_a_config_map_that_is_too_large_is_refused(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(r, repeat(r, DGD NEXT MAP("x", "data: {a: "), "x", 1100000, "}\n"), &out);
        assert_int_equal(out.n_extras, 0);
        assert_string_equal(out.refused[0], "document 2: ConfigMap 'x' is not created: it is too large");
}

/* Refusals quote what a stranger wrote. */
static void test_what_is_quoted_is_short_and_on_one_line(void **state)
{
        struct rig *r = *state;
        struct dgdr_output out;

        read_good(r, repeat(r, DGD NEXT "kind: \"a\\nb", "k", 1000, "\"\nmetadata: {name: \"c\\td\"}\n"),
                  &out);
        assert_int_equal(out.n_refused, 1);
        assert_null(strpbrk(out.refused[0], "\n\t"));
        assert_in_range(strlen(out.refused[0]), 20, 200);
}

#define OUTPUT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        OUTPUT_TEST(test_the_first_key_that_is_there_is_taken),
        OUTPUT_TEST(test_a_gzipped_one_is_unpacked),
        OUTPUT_TEST(test_what_cannot_be_had_is_said),
        OUTPUT_TEST(test_the_deployment_is_found_and_named),
        OUTPUT_TEST(test_the_version_that_was_written_stays),
        OUTPUT_TEST(test_overrides_win_over_the_document_and_identity_over_both),
        OUTPUT_TEST(test_reserved_and_bad_labels_are_left_out),
        OUTPUT_TEST(test_a_long_name_fits_into_its_label),
        OUTPUT_TEST(test_the_workers_get_their_image),
        OUTPUT_TEST(test_what_gives_no_deployment_is_an_error),
        OUTPUT_TEST(test_size_and_depth_are_bounded),
        OUTPUT_TEST(test_what_is_no_config_map_of_the_request_is_refused),
        OUTPUT_TEST(test_a_config_map_keeps_what_it_may),
        OUTPUT_TEST(test_the_first_eight_are_taken_and_doubles_are_not),
        OUTPUT_TEST(test_many_refusals_end_in_a_number),
        OUTPUT_TEST(test_a_config_map_that_is_too_large_is_refused),
        OUTPUT_TEST(test_what_is_quoted_is_short_and_on_one_line),
};

UNIT_MAIN(tests)
