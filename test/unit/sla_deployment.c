/*
 * Deployments of the SLA profiler: what each backend is told of a mapping, and what of a person's own stays.
 */
#include "unit/parse.h"

#include "probe/sla/args.h"
#include "probe/sla/sla.h"
#include "json/json.h"

static struct sla_candidate candidate(unsigned gpus, enum sim_mapping mapping)
{
        return (struct sla_candidate){
                .gpus = gpus, .attn_dp = mapping == SIM_DEP ? gpus : 1, .mapping = mapping};
}

/* The words of a container, with blanks between them. */
static const char *words(struct arena *a, const struct json *dgd, const char *service)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 16);
        const struct json *s = json_at(json_at(json_at(dgd, "spec"), "services"), service);

        json_foreach (word, json_at(json_at(json_at(s, "extraPodSpec"), "mainContainer"), "args"))
                buf_printf(&out, "%s%s", out.n ? " " : "", json_cstr(word));
        return arena_strdup(a, out.n ? buf_cstr(&out) : "");
}

/* ---- words */

static const char *const MODEL[] = {"--model", NULL};
static const char *const TP[] = {"--tensor-parallel-size", "-tp", NULL};
static const char *const SWITCH[] = {"--switch", NULL};

#define SCRIPT(line) "{\"command\": [\"bash\", \"-lc\"], \"args\": [\"" line "\"]}"

static void test_words_are_changed_in_every_way_of_writing_them(void **state)
{
        static const struct {
                const char *before, *after;
        } cases[] = {
                {"{\"args\": [\"--model\", \"a\"]}",
                 "{\"args\": [\"--model\", \"b\", \"--tensor-parallel-size\", \"4\", \"--switch\"]}"},
                {"{\"args\": [\"--model=a\", \"-tp\", \"1\", \"--x\"]}",
                 "{\"args\": [\"--model\", \"b\", \"--tensor-parallel-size\", \"4\", \"--x\", "
                 "\"--switch\"]}"},
                {"{\"args\": [\"--model a --switch\", \"{\\\"x y\\\": 1}\"]}",
                 "{\"args\": [\"--model\", \"b\", \"--switch\", \"{\\\"x y\\\": 1}\", "
                 "\"--tensor-parallel-size\", \"4\"]}"},
                {"{}", "{\"args\": [\"--model\", \"b\", \"--tensor-parallel-size\", \"4\", \"--switch\"]}"},
                {"{\"command\": [\"sh\", \"-c\"], \"args\": [\"exec run --model a --x '$Y z' 2>&1 | tee "
                 "log\"]}",
                 "{\"command\": [\"sh\", \"-c\"], \"args\": [\"exec run --model b --x '$Y z' "
                 "--tensor-parallel-size 4 --switch 2>&1 | tee log\"]}"},
                /* a document and a name with blanks are one word */
                {"{\"args\": [\"--kv={\\\"a\\\": \\\"b c\\\"}\", \"--served\", \"my model\", \"--kv2 {\\\"a "
                 "b\\\": 1}\"]}",
                 "{\"args\": [\"--kv={\\\"a\\\": \\\"b c\\\"}\", \"--served\", \"my model\", \"--kv2\", "
                 "\"{\\\"a b\\\": 1}\", "
                 "\"--model\", \"b\", \"--tensor-parallel-size\", \"4\", \"--switch\"]}"},
                /* a script keeps its lines and comments, and what runs before and behind */
                {SCRIPT("set -e\\ncd /w && python3 -m dynamo.vllm \\\\\\n  --model a \\\\\\n  -tp 1 # "
                        "one\\necho done\\n"),
                 SCRIPT("set -e\\ncd /w && python3 -m dynamo.vllm \\\\\\n  --model b \\\\\\n  "
                        "--tensor-parallel-size 4 "
                        "--switch # one\\necho done\\n")},
                {SCRIPT("x --model z; python3 -m dynamo.vllm --model=a 2>&1|tee log"),
                 SCRIPT("x --model z; python3 -m dynamo.vllm --model b --tensor-parallel-size 4 --switch "
                        "2>&1|tee log")},
                {SCRIPT("run --model $(cat f | head -1) --x; sleep 1"),
                 SCRIPT("run --model b --x --tensor-parallel-size 4 --switch; sleep 1")},
                {SCRIPT("run --model a # not b \\\\\\nnext"),
                 SCRIPT("run --model b --tensor-parallel-size 4 --switch # not b \\\\\\nnext")},
                {SCRIPT("run --x 1 2>log --y"),
                 SCRIPT("run --x 1 --model b --tensor-parallel-size 4 --switch 2>log --y")},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(sla_args_done) struct sla_args args;
                struct json *container = parse(&a, cases[i].before);

                sla_args_load(&a, container, &args);
                sla_args_set(&args, MODEL, "b");
                sla_args_set(&args, TP, "4");
                sla_args_turn_on(&args, SWITCH);
                sla_args_turn_on(&args, SWITCH);
                assert_string_equal(sla_args_get(&args, TP), "4");
                sla_args_store(&args, container);
                if (!json_equal(container, parse(&a, cases[i].after)))
                        fail_msg("%s", json_print(&a, container));
        }
}

static void test_what_is_new_in_a_shell_is_quoted(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(sla_args_done) struct sla_args args;
        struct json *container = parse(&a, "{\"command\": [\"sh\", \"-c\"], \"args\": [\"run\"]}");

        (void)state;
        sla_args_load(&a, container, &args);
        sla_args_set(&args, MODEL, "{\"it's\": $(reboot)}");
        sla_args_store(&args, container);
        assert_string_equal(json_cstr(json_index(json_at(container, "args"), 0)),
                            "run --model '{\"it'\\''s\": $(reboot)}'");
}

static void test_flags_are_dropped_with_their_values(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(sla_args_done) struct sla_args args;
        struct json *container = parse(
                &a, "{\"args\": [\"--switch\", \"--model\", \"a\", \"--x\", \"--model=b\", \"--models\", "
                    "\"--model\"]}");

        (void)state;
        sla_args_load(&a, container, &args);
        sla_args_drop(&args, MODEL, true);
        sla_args_drop(&args, SWITCH, false);
        sla_args_store(&args, container);
        assert_string_equal(json_print(&a, json_at(container, "args")), "[\"--x\",\"--models\"]");
        assert_null(sla_args_get(&args, MODEL));
        assert_false(sla_args_has(&args, SWITCH));
}

/* ---- candidates */

static void test_each_backend_is_told_its_mapping(void **state)
{
        static const struct {
                const char *backend, *service;
                unsigned gpus;
                enum sim_mapping mapping;
                enum sla_role role;
                const char *words;
        } cases[] = {
                {"vllm", "VllmDecodeWorker", 2, SIM_TP, SLA_PREFILL,
                 "--model m --tensor-parallel-size 2 --no-enable-prefix-caching --max-num-seqs 1 "
                 "--max-num-batched-tokens 32768"},
                {"vllm", "VllmDecodeWorker", 4, SIM_TP, SLA_DECODE,
                 "--model m --tensor-parallel-size 4 --enable-prefix-caching"},
                {"vllm", "VllmDecodeWorker", 4, SIM_TEP, SLA_DECODE,
                 "--model m --tensor-parallel-size 4 --data-parallel-size 1 --enable-expert-parallel "
                 "--enable-prefix-caching"},
                {"vllm", "VllmDecodeWorker", 4, SIM_DEP, SLA_PREFILL,
                 "--model m --tensor-parallel-size 1 --data-parallel-size 4 --enable-expert-parallel "
                 "--no-enable-prefix-caching --max-num-seqs 4 --max-num-batched-tokens 32768"},
                {"sglang", "decode", 2, SIM_TP, SLA_PREFILL,
                 "--model-path m --served-model-name m --page-size 16 --tp 2 --trust-remote-code "
                 "--skip-tokenizer-init --host 0.0.0.0 --disable-radix-cache --max-running-requests 1 "
                 "--chunked-prefill-size 32768"},
                {"sglang", "decode", 8, SIM_DEP, SLA_PREFILL,
                 "--model-path m --served-model-name m --page-size 16 --tp 8 --trust-remote-code "
                 "--skip-tokenizer-init --host 0.0.0.0 --ep-size 8 --dp 8 --enable-dp-attention "
                 "--disable-radix-cache --max-running-requests 8 --chunked-prefill-size 262144"},
                {"sglang", "decode", 8, SIM_TEP, SLA_DECODE,
                 "--model-path m --served-model-name m --page-size 16 --tp 8 --trust-remote-code "
                 "--skip-tokenizer-init --host 0.0.0.0 --ep-size 8 --load-balance-method round_robin"},
                {"trtllm", "TRTLLMDecodeWorker", 2, SIM_TP, SLA_PREFILL,
                 "--model-path m --served-model-name m --extra-engine-args "
                 "./examples/backends/trtllm/engine_configs/qwen3/prefill.yaml --override-engine-args "
                 "{\"tensor_parallel_size\":2,\"kv_cache_config\":{\"enable_block_reuse\":false},"
                 "\"disable_overlap_scheduler\":false,\"cache_transceiver_config\":null,"
                 "\"max_batch_size\":1,\"max_num_tokens\":32768}"},
                {"trtllm", "TRTLLMDecodeWorker", 4, SIM_DEP, SLA_DECODE,
                 "--model-path m --served-model-name m --extra-engine-args "
                 "./examples/backends/trtllm/engine_configs/qwen3/decode.yaml --override-engine-args "
                 "{\"tensor_parallel_size\":4,\"moe_expert_parallel_size\":4,"
                 "\"moe_tensor_parallel_size\":1,\"enable_attention_dp\":true,"
                 "\"kv_cache_config\":{\"enable_block_reuse\":true},\"cache_transceiver_config\":null}"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *base = sla_base_deployment(&a, cases[i].backend, "m"), *dgd;
                struct sla_candidate c = candidate(cases[i].gpus, cases[i].mapping);

                assert_int_equal(sla_base_check(base, cases[i].backend, NULL), 0);
                dgd = sla_candidate_deployment(&a, base, cases[i].backend, &c, cases[i].role, "x");
                assert_string_equal(words(&a, dgd, cases[i].service), cases[i].words);
        }
}

static void test_a_candidate_is_one_worker_and_the_frontend(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *base = sla_base_deployment(&a, "vllm", "m"), *dgd, *services, *worker;
        struct json *before = json_copy(&a, base);
        struct sla_candidate c = candidate(4, SIM_TP);

        (void)state;
        dgd = sla_candidate_deployment(&a, base, "vllm", &c, SLA_PREFILL, "run-prefill-tp4");
        services = json_at(json_at(dgd, "spec"), "services");
        worker = json_at(services, "VllmDecodeWorker");
        assert_true(json_equal(base, before));
        assert_string_equal(json_str(json_at(dgd, "metadata"), "name"), "run-prefill-tp4");
        assert_int_equal(json_len(services), 2);
        assert_non_null(json_at(services, "Frontend"));
        assert_string_equal(json_str(worker, "subComponentType"), "decode");
        assert_int_equal(json_int(worker, "replicas", 0), 1);
        assert_string_equal(json_str(json_at(json_at(worker, "resources"), "limits"), "gpu"), "4");
        assert_string_equal(json_str(json_at(json_at(worker, "resources"), "requests"), "gpu"), "4");
}

/* A person's own: other names, more services, null where upstream's dumps have it, a label to be kept. */
static const char OWN[] =
        "{\"apiVersion\": \"nvidia.com/v1alpha1\", \"kind\": \"DynamoGraphDeployment\", "
        "\"metadata\": {\"name\": \"own\", \"labels\": {\"team\": \"a\"}}, \"spec\": {\"envs\": [1], "
        "\"services\": {"
        "\"Front\": {\"componentType\": \"frontend\", \"extraPodSpec\": {\"mainContainer\": {\"image\": "
        "\"f\", \"args\": null}}}, "
        "\"P\": {\"subComponentType\": \"prefill\", \"multinode\": {\"nodeCount\": 2}, \"resources\": null, "
        "\"extraPodSpec\": "
        "{\"tolerations\": [1], \"mainContainer\": {\"args\": [\"--model m --is-prefill-worker "
        "--enable-prefix-caching -tp 8\"]}}}, "
        "\"D\": {\"subComponentType\": \"decode\", \"replicas\": 9, \"extraPodSpec\": {\"mainContainer\": "
        "{\"args\": [\"--model\", \"m\", \"--is-decode-worker\"]}}}, "
        "\"Planner\": {\"componentType\": \"planner\"}}}}";

static void test_what_a_person_wrote_stays(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_candidate c = candidate(2, SIM_TP);
        struct json *dgd = sla_candidate_deployment(&a, parse(&a, OWN), "vllm", &c, SLA_PREFILL, "x");
        const struct json *spec = json_at(dgd, "spec"), *d = json_at(json_at(spec, "services"), "D");

        (void)state;
        assert_string_equal(json_str(json_at(json_at(dgd, "metadata"), "labels"), "team"), "a");
        assert_int_equal(json_len(json_at(spec, "envs")), 1);
        assert_int_equal(json_len(json_at(spec, "services")), 2);
        assert_int_equal(json_len(json_at(json_at(d, "extraPodSpec"), "tolerations")), 1);
        assert_null(json_at(d, "multinode")); /* of 8 GPUs; these are 2 */
        assert_string_equal(words(&a, dgd, "D"),
                            "--model m --tensor-parallel-size 2 --no-enable-prefix-caching --max-num-seqs 1 "
                            "--max-num-batched-tokens 32768");
        dgd = sla_candidate_deployment(&a, parse(&a, OWN), "vllm", &c, SLA_DECODE, "x");
        assert_string_equal(words(&a, dgd, "D"),
                            "--model m --tensor-parallel-size 2 --enable-prefix-caching");
}

#define BASE(more, services) \
        "{\"kind\": \"DynamoGraphDeployment\", " more ", \"spec\": {\"services\": {" services "}}}"
#define WORKER(name, container) "\"" name "\": {\"extraPodSpec\": {\"mainContainer\": {" container "}}}"
#define GOOD                    WORKER("prefill", "") ", " WORKER("decode", "") ", " WORKER("Frontend", "\"image\": \"f\"")

static void test_a_base_that_does_not_fit_is_told(void **state)
{
        static const struct {
                const char *backend, *base, *why;
        } cases[] = {
                {"tgi", "{}", "backend 'tgi' is not known"},
                {"vllm", "{\"kind\": \"Pod\"}", "is no DynamoGraphDeployment"},
                {"vllm", "{\"kind\": \"DynamoGraphDeployment\", \"spec\": {\"components\": []}}",
                 "has no spec.services"},
                {"vllm",
                 "{\"kind\": \"DynamoGraphDeployment\", \"spec\": {\"services\": {\"VllmPrefillWorker\": "
                 "{\"extraPodSpec\": {\"mainContainer\": {}}}}}}",
                 "no service with subComponentType decode, nor one named VllmDecodeWorker"},
                {"sglang",
                 "{\"kind\": \"DynamoGraphDeployment\", \"spec\": {\"services\": {\"prefill\": {}}}}",
                 "service prefill of the base deployment has no extraPodSpec.mainContainer"},
                {"sglang", BASE("\"metadata\": []", GOOD),
                 "metadata of the base deployment and its annotations"},
                {"sglang", BASE("\"metadata\": {\"annotations\": \"\"}", GOOD),
                 "metadata of the base deployment and its annotations"},
                {"sglang",
                 BASE("\"metadata\": {}", GOOD ", \"p\": {\"subComponentType\": \"prefill\"}, "
                                               "\"q\": {\"subComponentType\": \"prefill\"}"),
                 "services p and q of the base deployment are both of subComponentType prefill"},
                {"sglang", BASE("\"metadata\": {}", WORKER("prefill", "") ", " WORKER("decode", "")),
                 "has no service with componentType frontend"},
                {"sglang",
                 BASE("\"metadata\": {}", WORKER("prefill", "") ", " WORKER(
                                                  "decode", "") ", \"f\": {\"componentType\": \"frontend\"}"),
                 "service f of the base deployment has no extraPodSpec.mainContainer.image"},
                {"sglang",
                 BASE("\"metadata\": {}", WORKER("prefill", "\"command\": [\"sh\", \"-c\", \"run\"]")),
                 "service prefill of the base deployment: the line of its shell is not alone in args"},
                {"sglang",
                 BASE("\"metadata\": {}", WORKER("prefill", "\"args\": [\"bash\", \"-lc\", \"x\"]")),
                 "service prefill of the base deployment: the line of its shell is not alone in args"},
                {"sglang",
                 BASE("\"metadata\": {}", WORKER("prefill", "\"command\": [\"/bin/bash\", \"-ec\"]")),
                 "service prefill of the base deployment: its shell needs one line in args, and has 0"},
                {"sglang", BASE("\"metadata\": {}", WORKER("prefill", "\"args\": \"--x\"")),
                 "its command and args must be lists"},
                {"sglang",
                 BASE("\"metadata\": {}",
                      "\"prefill\": {\"resources\": {\"limits\": \"\"}, \"extraPodSpec\": "
                      "{\"mainContainer\": {}}}"),
                 "resources and its limits and requests must be objects"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_candidate c = candidate(1, SIM_TP);

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;
                struct json *base = parse(&a, cases[i].base);

                assert_int_equal(sla_base_check(base, cases[i].backend, &err), -1);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("'%s' is not in '%s'", cases[i].why, err.text);
                assert_null(sla_candidate_deployment(&a, base, cases[i].backend, &c, SLA_PREFILL, "x"));
        }
        assert_null(sla_base_deployment(&a, "tgi", "m"));
}

/* ---- what the configuration says */

static void test_the_configuration_reaches_every_deployment(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_config config = {.model = "org/m",
                                    .backend = "vllm",
                                    .gpus_per_node = 8,
                                    .image = "own:1",
                                    .cache_claim = "models",
                                    .cache_path = "m/1",
                                    .cache_mount = "/opt/model-cache"};
        struct sla_candidate c = candidate(16, SIM_DEP);
        struct json *dgd = sla_candidate_deployment(&a, sla_base_deployment(&a, "vllm", "org/m"), "vllm", &c,
                                                    SLA_DECODE, "x");
        const struct json *worker, *again;

        (void)state;
        sla_deployment_prepare(&a, dgd, &config);
        worker = json_at(json_at(json_at(dgd, "spec"), "services"), "VllmDecodeWorker");
        assert_string_equal(json_str(json_at(json_at(worker, "extraPodSpec"), "mainContainer"), "image"),
                            "own:1");
        assert_string_equal(json_print(&a, json_at(json_at(dgd, "spec"), "pvcs")),
                            "[{\"name\":\"models\",\"create\":false}]");
        assert_string_equal(json_print(&a, json_at(worker, "volumeMounts")),
                            "[{\"name\":\"models\",\"mountPoint\":\"/opt/model-cache\"}]");
        assert_string_equal(words(&a, dgd, "VllmDecodeWorker"),
                            "--model /opt/model-cache/m/1 --tensor-parallel-size 1 --data-parallel-size 16 "
                            "--enable-expert-parallel --enable-prefix-caching --served-model-name org/m");
        assert_int_equal(json_int(json_at(worker, "multinode"), "nodeCount", 0), 2);
        assert_string_equal(json_str(json_at(json_at(worker, "resources"), "limits"), "gpu"), "8");
        again = json_copy(&a, dgd);
        sla_deployment_prepare(&a, dgd, &config);
        assert_true(json_equal(dgd, again));
}

static void test_nodes_share_the_gpus_evenly(void **state)
{
        static const struct {
                unsigned gpus, per_node, nodes, each;
        } cases[] = {{8, 6, 2, 4}, {16, 6, 4, 4}, {16, 8, 2, 8}, {4, 3, 2, 2}, {8, 8, 0, 8}, {2, 1, 2, 1}};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct sla_config config = {
                        .model = "m", .backend = "vllm", .gpus_per_node = cases[i].per_node};
                struct sla_candidate c = candidate(cases[i].gpus, SIM_TP);
                struct json *dgd = sla_candidate_deployment(&a, sla_base_deployment(&a, "vllm", "m"), "vllm",
                                                            &c, SLA_DECODE, "x");
                const struct json *worker = json_at(json_at(json_at(dgd, "spec"), "services"),
                                                    "VllmDecodeWorker");

                sla_deployment_prepare(&a, dgd, &config);
                assert_int_equal(json_int(json_at(worker, "multinode"), "nodeCount", 0), cases[i].nodes);
                assert_string_equal(json_str(json_at(json_at(worker, "resources"), "limits"), "gpu"),
                                    arena_printf(&a, "%u", cases[i].each));
        }
}

static void test_tp_takes_another_mapping_s_overrides_away(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *base = parse(
                &a, BASE("\"metadata\": {}",
                         WORKER("TRTLLMPrefillWorker", "") ", " WORKER(
                                 "Frontend",
                                 "\"image\": \"f\"") ", " WORKER("TRTLLMDecodeWorker",
                                                                 "\"args\": [\"--override-engine-args\", "
                                                                 "\"{\\\"enable_attention_dp\\\": true, "
                                                                 "\\\"moe_expert_parallel_size\\\": 8, "
                                                                 "\\\"moe_tensor_parallel_size\\\": 1}\"]")));
        struct sla_candidate c = candidate(2, SIM_TP);
        struct json *dgd = sla_candidate_deployment(&a, base, "trtllm", &c, SLA_DECODE, "x");

        (void)state;
        assert_string_equal(words(&a, dgd, "TRTLLMDecodeWorker"),
                            "--override-engine-args {\"tensor_parallel_size\":2,\"kv_cache_config\":"
                            "{\"enable_block_reuse\":true},\"cache_transceiver_config\":null}");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_changed_in_every_way_of_writing_them),
        cmocka_unit_test(test_what_is_new_in_a_shell_is_quoted),
        cmocka_unit_test(test_flags_are_dropped_with_their_values),
        cmocka_unit_test(test_each_backend_is_told_its_mapping),
        cmocka_unit_test(test_a_candidate_is_one_worker_and_the_frontend),
        cmocka_unit_test(test_what_a_person_wrote_stays),
        cmocka_unit_test(test_a_base_that_does_not_fit_is_told),
        cmocka_unit_test(test_the_configuration_reaches_every_deployment),
        cmocka_unit_test(test_nodes_share_the_gpus_evenly),
        cmocka_unit_test(test_tp_takes_another_mapping_s_overrides_away),
};

UNIT_MAIN(tests)
