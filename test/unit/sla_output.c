/*
 * What the SLA profiler writes: every file, read back; and that the operator takes the deployment.
 */
#include "unit/run_rig.h"

#include "kinds/dgdr/internal.h"
#include "unit/dir.h"
#include "unit/markup.h"
#include "unit/sla_results.h"

/* The file, in the example's arena; NULL: there is none. */
static const char *content(struct example *e, const char *dir, const char *name)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(8 << 20);

        if (file_read(arena_printf(&e->arena, "%s/%s", dir, name), &text, NULL) < 0)
                return NULL;
        return arena_strdup(&e->arena, buf_cstr(&text));
}

static void write_to(struct example *e, char dir[UNIT_DIR_LEN])
{
        struct err err = ERR_INIT;
        struct json *base = sla_base_deployment(&e->arena, e->config.backend, e->config.model);

        unit_dir(dir);
        if (sla_write(&e->r, base, dir, &err) < 0)
                fail_msg("%s", err.text);
}

static const struct json *json_of(struct example *e, const char *dir, const char *name)
{
        const char *text = content(e, dir, name);
        struct json *j = text ? json_parse(&e->arena, str_of(text), NULL, NULL) : NULL;

        if (!j)
                fail_msg("%s is not there, or no JSON", name);
        return j;
}

static size_t yaml_of(struct example *e, const char *dir, const char *name, struct json ***ret)
{
        const char *text = content(e, dir, name);
        struct err err = ERR_INIT;
        size_t n = 0;

        assert_non_null(text);
        if (yaml_parse_all(&e->arena, str_of(text), NULL, ret, &n, &err) < 0)
                fail_msg("%s: %s", name, err.text);
        return n;
}

static double real_at(const struct json *list, size_t i)
{
        double value = -1;

        assert_true(json_to_double(json_index(list, i), &value));
        return value;
}

/* ---- the deployment */

static void test_the_planner_gets_its_data_and_both_mappings(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        const struct json *services, *planner, *container, *data;
        struct json **docs;

        (void)state;
        example_init(&e);
        write_to(&e, dir);
        assert_int_equal(yaml_of(&e, dir, "config_with_planner.yaml", &docs), 2);
        assert_string_equal(json_str(docs[0], "kind"), "ConfigMap");
        assert_string_equal(json_str(json_at(docs[0], "metadata"), "name"), "planner-profile-data");
        data = json_parse(&e.arena, json_text(json_at(json_at(docs[0], "data"), "prefill_raw_data.json")),
                          NULL, NULL);
        assert_int_equal(json_len(json_at(data, "prefill_isl")), EXAMPLE_ISLS);
        data = json_parse(&e.arena, json_text(json_at(json_at(docs[0], "data"), "decode_raw_data.json")),
                          NULL, NULL);
        assert_int_equal(json_int(data, "max_kv_tokens", 0), 450000);
        assert_true(real_at(json_at(data, "z_itl"), 7) == e.surface[7].itl);

        services = json_at(json_at(docs[1], "spec"), "services");
        planner = json_at(services, "Planner");
        container = json_at(json_at(planner, "extraPodSpec"), "mainContainer");
        assert_string_equal(json_print(&e.arena, json_at(container, "args")),
                            "[\"--backend=vllm\",\"--itl=10\",\"--ttft=50\",\"--prefill-engine-num-gpu=2\","
                            "\"--decode-engine-num-gpu=1\","
                            "\"--profile-results-dir=/workspace/profiling_results\"]");
        assert_string_equal(
                json_str(container, "image"),
                json_str(json_at(json_at(json_at(services, "Frontend"), "extraPodSpec"), "mainContainer"),
                         "image"));
        assert_string_equal(
                json_str(json_at(json_index(json_at(json_at(planner, "extraPodSpec"), "volumes"), 0),
                                 "configMap"),
                         "name"),
                "planner-profile-data");
        assert_int_equal(json_int(json_at(services, "VllmPrefillWorker"), "replicas", 0), 2);
        assert_int_equal(json_int(json_at(services, "VllmDecodeWorker"), "replicas", 0), 3);
        assert_int_equal(yaml_of(&e, dir, "disagg_config.yaml", &docs), 1);
        assert_null(json_at(json_at(json_at(docs[0], "spec"), "services"), "Planner"));
        assert_null(content(&e, dir, "mocker_config_with_planner.yaml"));
}

static void test_the_operator_takes_what_is_written(void **state)
{
        static const struct dgdr_spec spec = {.deployment = "r-dgd"};
        struct rig *r = *state;
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct err err = ERR_INIT;
        struct dgdr_output out;

        example_init(&e);
        e.r.request = "my-request";
        write_to(&e, dir);
        if (dgdr_output_read(&r->view, &spec, str_of(content(&e, dir, "config_with_planner.yaml")), &out,
                             &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(out.n_refused, 0);
        assert_int_equal(out.n_extras, 1);
        assert_string_equal(json_str(json_at(out.extras[0], "metadata"), "name"),
                            "planner-profile-data-my-request");
        assert_string_equal(json_str(json_at(json_at(out.dgd, "metadata"), "annotations"), "simulated"),
                            "true");
        assert_int_equal(json_len(json_at(json_at(out.dgd, "spec"), "services")), 4);
}

static void test_the_planners_settings_become_flags(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct json **docs;
        const struct json *planner;

        (void)state;
        example_init(&e);
        e.config.planner = json_parse(
                &e.arena,
                STR("{\"plannerMinEndpoint\": 2, \"planner_load_predictor\": \"arima\", \"noOperation\": "
                    "true, \"requestRate\": 5, \"plannerNoCorrection\": false, \"plannerTtft\": 1, "
                    "\"namespace\": \"x\", "
                    "\"planner_profile_results_dir\": \"/x\", \"adjustment-interval\": 1.5, \"odd\": [1]}"),
                NULL, NULL);
        write_to(&e, dir);
        assert_int_equal(yaml_of(&e, dir, "config_with_planner.yaml", &docs), 2);
        planner = json_at(json_at(json_at(docs[1], "spec"), "services"), "Planner");
        assert_string_equal(
                json_print(&e.arena,
                           json_at(json_at(json_at(planner, "extraPodSpec"), "mainContainer"), "args")),
                "[\"--backend=vllm\",\"--itl=10\",\"--ttft=50\",\"--min-endpoint=2\","
                "\"--load-predictor=arima\",\"--no-operation\",\"--adjustment-interval=1.5\","
                "\"--prefill-engine-num-gpu=2\",\"--decode-engine-num-gpu=1\","
                "\"--profile-results-dir=/workspace/profiling_results\"]");
}

static void test_there_is_one_planner(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct json *base, *services, **docs;
        struct err err = ERR_INIT;

        (void)state;
        example_init(&e);
        e.r.has_replicas = false;
        base = sla_base_deployment(&e.arena, "vllm", "m");
        services = json_at(json_at(base, "spec"), "services");
        json_set(&e.arena, services, "Mine", json_build(&e.arena, "{'componentType': 'planner'}"));
        json_set(&e.arena, services, "Yours", json_build(&e.arena, "{'componentType': 'planner'}"));
        json_set(&e.arena, json_at(services, "VllmDecodeWorker"), "replicas", json_u64(&e.arena, 9));
        unit_dir(dir);
        assert_int_equal(sla_write(&e.r, base, dir, &err), 0);
        assert_int_equal(yaml_of(&e, dir, "config_with_planner.yaml", &docs), 2);
        services = json_at(json_at(docs[1], "spec"), "services");
        assert_int_equal(json_len(services), 4);
        assert_non_null(json_at(services, "Planner"));
        /* Without a plan there are as few as there may be, whatever the base has. */
        assert_int_equal(json_int(json_at(services, "VllmDecodeWorker"), "replicas", 0), 1);
        assert_int_equal(yaml_of(&e, dir, "disagg_config.yaml", &docs), 1);
        assert_int_equal(json_len(json_at(json_at(docs[0], "spec"), "services")), 3);
}

static void test_without_curves_there_is_no_configmap(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct json **docs;

        (void)state;
        example_init(&e);
        e.r.n_curve = 2;
        write_to(&e, dir);
        assert_int_equal(yaml_of(&e, dir, "config_with_planner.yaml", &docs), 1);
        assert_null(strstr(content(&e, dir, "config_with_planner.yaml"), "planner-profile-data"));
        assert_null(strstr(content(&e, dir, "config_with_planner.yaml"), "profile-results-dir"));
        assert_null(content(&e, dir, "selected_prefill_interpolation/raw_data.npz"));
        assert_non_null(content(&e, dir, "selected_prefill_interpolation/raw_data.json"));
        assert_non_null(content(&e, dir, "selected_decode_interpolation/raw_data.npz"));
}

static void test_a_mocker_has_the_same_data(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct json **docs;
        const struct json *services;

        (void)state;
        example_init(&e);
        e.config.use_mocker = true;
        write_to(&e, dir);
        assert_int_equal(yaml_of(&e, dir, "mocker_config_with_planner.yaml", &docs), 2);
        services = json_at(json_at(docs[1], "spec"), "services");
        assert_int_equal(json_len(services), 4);
        assert_string_equal(
                json_print(&e.arena, json_at(json_at(json_at(json_at(services, "prefill"), "extraPodSpec"),
                                                     "mainContainer"),
                                             "args")),
                "[\"--model-path\",\"Qwen/Qwen3-0.6B\",\"--model-name\",\"Qwen/Qwen3-0.6B\","
                "\"--speedup-ratio\",\"1.0\",\"--planner-profile-data\",\"/workspace/profiling_results\","
                "\"--is-prefill-worker\"]");
        assert_non_null(strstr(content(&e, dir, "mocker_config_with_planner.yaml"), "--backend=mocker"));
}

static void test_a_base_that_does_not_fit_writes_nothing(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct err err = ERR_INIT;

        (void)state;
        example_init(&e);
        unit_dir(dir);
        assert_int_equal(sla_write(&e.r, json_object(&e.arena), dir, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        assert_null(content(&e, dir, "config_with_planner.yaml"));
        assert_null(content(&e, dir, "result.json"));
}

/* ---- data */

static void test_raw_data_have_upstreams_names(void **state)
{
        static const char *const prefill[] = {"prefill_isl", "prefill_ttft", "prefill_thpt_per_gpu"};
        static const char *const decode[] = {"x_kv_usage", "y_context_length", "z_itl", "z_thpt_per_gpu"};
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        const struct json *p, *d;

        (void)state;
        example_init(&e);
        write_to(&e, dir);
        p = json_of(&e, dir, "selected_prefill_interpolation/raw_data.json");
        for (size_t i = 0; i < ARRAY_LEN(prefill); i++)
                assert_int_equal(json_len(json_at(p, prefill[i])), EXAMPLE_ISLS);
        assert_true(real_at(json_at(p, "prefill_ttft"), 3) == e.ttft[3]);
        d = json_of(&e, dir, "selected_decode_interpolation/raw_data.json");
        for (size_t i = 0; i < ARRAY_LEN(decode); i++)
                assert_int_equal(json_len(json_at(d, decode[i])), ARRAY_LEN(e.surface));
        assert_true(real_at(json_at(d, "x_kv_usage"), 9) == e.surface[9].kv_usage);
        assert_true(real_at(json_at(d, "y_context_length"), 9) == e.surface[9].context);
        assert_true(real_at(json_at(d, "z_thpt_per_gpu"), 9) == e.surface[9].throughput);
        assert_int_equal(json_int(d, "max_kv_tokens", 0), 450000);
}

static void test_the_result_says_what_was_chosen(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        const struct json *r, *prefill, *decode;

        (void)state;
        example_init(&e);
        write_to(&e, dir);
        r = json_of(&e, dir, "result.json");
        prefill = json_at(r, "prefill");
        decode = json_at(r, "decode");
        assert_true(json_bool(r, "simulated", false));
        assert_true(json_bool(r, "feasible", false));
        assert_string_equal(json_str(prefill, "label"), "TP=2");
        assert_true(json_bool(prefill, "feasible", false));
        assert_string_equal(json_str(decode, "label"), "TP=1");
        assert_int_equal(json_int(decode, "concurrency", 0), 64);
        assert_int_equal(json_int(json_at(r, "replicas"), "decode", 0), 3);
        assert_false(json_bool(json_at(r, "replicas"), "capped", true));
        assert_int_equal(json_int(json_at(r, "points"), "measured", 0), 68);
        assert_int_equal(json_int(json_at(r, "deployments"), "made", 0), 8);
        assert_string_equal(json_cstr(json_index(json_at(r, "notes"), 0)), e.notes[0]);
        assert_int_equal(json_len(json_at(json_at(r, "sweep"), "decode")), ARRAY_LEN(e.decode));
        assert_non_null(json_at(r, "costPer1000Requests"));
}

static void test_a_target_that_is_missed_is_said(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        const struct json *r;
        const char *html;

        (void)state;
        example_init(&e);
        e.config.itl = 2;
        assert_true(sla_pick(e.decode, e.r.n_decode, 2, &e.r.chosen_decode));
        write_to(&e, dir);
        r = json_of(&e, dir, "result.json");
        assert_false(json_bool(r, "feasible", true));
        assert_false(json_bool(json_at(r, "decode"), "feasible", true));
        assert_non_null(json_at(json_at(r, "decode"), "best"));
        html = content(&e, dir, "report.html");
        assert_non_null(strstr(html, "The target between tokens is missed."));
        assert_non_null(strstr(html, "missed by 1.02 ms"));
}

/* ---- pictures and the report */

static size_t occurrences(const char *text, const char *what)
{
        size_t n = 0;

        for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
                n++;
        return n;
}

/* WHAT in a file that is no text; NULL: it is not there. */
static const void *bytes_of(struct example *e, const char *dir, const char *name, const char *what)
{
        _cleanup_(buf_done) struct buf file = BUF_INIT(1 << 20);

        assert_int_equal(file_read(arena_join(&e->arena, dir, "/", name), &file, NULL), 0);
        return memmem(file.p, file.n, what, strlen(what)) ? e : NULL;
}

static const char *const PICTURES[] = {"prefill_performance.svg",
                                       "decode_performance.svg",
                                       "cost_sla.svg",
                                       "prefill_ttft_interpolation.svg",
                                       "prefill_throughput_interpolation.svg",
                                       "decode_itl_interpolation.svg",
                                       "decode_throughput_interpolation.svg"};

static void test_pictures_are_well_formed_and_say_what_they_are(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];

        (void)state;
        example_init(&e);
        write_to(&e, dir);
        for (size_t i = 0; i < ARRAY_LEN(PICTURES); i++) {
                const char *svg = content(&e, dir, PICTURES[i]);

                assert_non_null(svg);
                assert_true(assert_markup(svg) > 20);
                assert_non_null(strstr(svg, ">SIMULATED<"));
                assert_non_null(strstr(svg, "Qwen/Qwen3-0.6B on vllm"));
        }
        assert_non_null(strstr(content(&e, dir, "prefill_performance.svg"), ">chosen: TP=2<"));
        assert_non_null(strstr(content(&e, dir, "prefill_performance.svg"), ">target 50 ms<"));
}

static void test_what_was_estimated_is_not_called_measured(void **state)
{
        static bool estimated[EXAMPLE_ISLS] = {[3] = true};
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        const char *html;

        (void)state;
        example_init(&e);
        write_to(&e, dir);
        assert_null(strstr(content(&e, dir, "report.html"), "stimated"));
        assert_null(strstr(content(&e, dir, "decode_itl_interpolation.svg"), "class=\"sp-hollow"));
        e.r.prefill_estimated = estimated;
        e.surface[7].estimated = e.surface[8].estimated = true;
        write_to(&e, dir);
        html = content(&e, dir, "report.html");
        assert_true(assert_markup(html) > 100);
        assert_int_equal(occurrences(html, ">estimated<"), 3);
        assert_int_equal(occurrences(html, ">Estimated<"), 4); /* in the legend of each curve */
        /* the points, and the legend's */
        assert_int_equal(occurrences(content(&e, dir, "prefill_ttft_interpolation.svg"), "class=\"sp-hollow"),
                         2);
        assert_int_equal(occurrences(content(&e, dir, "decode_itl_interpolation.svg"), "class=\"sp-hollow"),
                         3);
        assert_non_null(bytes_of(&e, dir, "selected_prefill_interpolation/raw_data.npz", "estimated.npy"));
        assert_non_null(bytes_of(&e, dir, "selected_decode_interpolation/raw_data.npz", "estimated.npy"));
}

static void test_the_report_stands_alone_and_is_escaped(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        const char *html;

        (void)state;
        example_init(&e);
        e.config.model = "<script>alert(1)</script>&\"'";
        write_to(&e, dir);
        html = content(&e, dir, "report.html");
        assert_true(assert_markup(html) > 100);
        assert_null(strstr(html, "<script"));
        assert_null(strstr(html, "src="));
        assert_null(strstr(html, "href="));
        assert_null(strstr(html, "url("));
        assert_non_null(strstr(html, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;"));
        assert_non_null(strstr(html, "&lt;pod&gt; in CrashLoopBackOff &amp; gone"));
        assert_non_null(strstr(html, "Both targets are met."));
        assert_non_null(strstr(html, ">SIMULATED<"));
        assert_true(strstr(html, "Both targets are met.") < strstr(html, "<svg"));
        assert_non_null(strstr(html, "prefers-color-scheme"));
}

/* ---- simulated or not */

static const char *const FILES[] = {"config_with_planner.yaml",
                                    "disagg_config.yaml",
                                    "report.html",
                                    "result.json",
                                    "selected_prefill_interpolation/raw_data.json",
                                    "selected_decode_interpolation/raw_data.json"};

static void test_only_a_simulation_is_called_one(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];

        (void)state;
        example_init(&e);
        write_to(&e, dir);
        for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
                assert_non_null(strstr(content(&e, dir, FILES[i]), "simulated"));
        e.r.simulated = false;
        e.r.target = "dgd";
        write_to(&e, dir);
        for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
                if (!streq(FILES[i], "result.json")) /* which says that it is none */
                        assert_null(strstr(content(&e, dir, FILES[i]), "imulated"));
        for (size_t i = 0; i < ARRAY_LEN(PICTURES); i++)
                assert_null(strstr(content(&e, dir, PICTURES[i]), "SIMULATED"));
        assert_false(json_bool(json_of(&e, dir, "result.json"), "simulated", true));
}

static void test_a_dry_run_has_a_deployment_and_no_numbers(void **state)
{
        _cleanup_(example_done) struct example e;
        char dir[UNIT_DIR_LEN];
        struct json **docs;
        const struct json *r;

        (void)state;
        example_init(&e);
        e.r = (struct sla_results){.config = &e.config, .target = "dgd"};
        e.config.min_gpus = 2;
        write_to(&e, dir);
        assert_int_equal(yaml_of(&e, dir, "config_with_planner.yaml", &docs), 1);
        assert_non_null(strstr(content(&e, dir, "config_with_planner.yaml"), "--decode-engine-num-gpu=2"));
        r = json_of(&e, dir, "result.json");
        assert_null(json_at(r, "feasible"));
        assert_null(json_at(r, "costPer1000Requests"));
        assert_string_equal(json_str(json_at(r, "prefill"), "label"), "TP=2");
        assert_false(json_bool(json_at(r, "prefill"), "measured", true));
        for (size_t i = 0; i < ARRAY_LEN(PICTURES); i++)
                assert_null(content(&e, dir, PICTURES[i]));
        assert_markup(content(&e, dir, "report.html"));
        assert_non_null(strstr(content(&e, dir, "report.html"), "Nothing was measured."));
}

static void test_the_same_results_are_the_same_files(void **state)
{
        _cleanup_(example_done) struct example e;
        char x[UNIT_DIR_LEN], y[UNIT_DIR_LEN];

        (void)state;
        example_init(&e);
        write_to(&e, x);
        write_to(&e, y);
        for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
                assert_string_equal(content(&e, x, FILES[i]), content(&e, y, FILES[i]));
        for (size_t i = 0; i < ARRAY_LEN(PICTURES); i++)
                assert_string_equal(content(&e, x, PICTURES[i]), content(&e, y, PICTURES[i]));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_planner_gets_its_data_and_both_mappings),
        cmocka_unit_test_setup_teardown(test_the_operator_takes_what_is_written, setup, teardown),
        cmocka_unit_test(test_the_planners_settings_become_flags),
        cmocka_unit_test(test_there_is_one_planner),
        cmocka_unit_test(test_without_curves_there_is_no_configmap),
        cmocka_unit_test(test_a_mocker_has_the_same_data),
        cmocka_unit_test(test_a_base_that_does_not_fit_writes_nothing),
        cmocka_unit_test(test_raw_data_have_upstreams_names),
        cmocka_unit_test(test_the_result_says_what_was_chosen),
        cmocka_unit_test(test_a_target_that_is_missed_is_said),
        cmocka_unit_test(test_pictures_are_well_formed_and_say_what_they_are),
        cmocka_unit_test(test_what_was_estimated_is_not_called_measured),
        cmocka_unit_test(test_the_report_stands_alone_and_is_escaped),
        cmocka_unit_test(test_only_a_simulation_is_called_one),
        cmocka_unit_test(test_a_dry_run_has_a_deployment_and_no_numbers),
        cmocka_unit_test(test_the_same_results_are_the_same_files),
};

UNIT_MAIN(tests)
