/* Where a CUDA job fits: what nodes score, what the Job says of it, and what people are told. */
#include "unit/parse.h"

#include <math.h>

#include "kinds/cuda/placement.h"

static const struct place_least ANY = {.gpus = 1};

enum { NODES_MAX = 64 };

struct world {
        struct arena arena;
        struct json *list;
        struct place_node nodes[NODES_MAX];
        size_t n;
};

static int make_world(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        w->list = json_build(&w->arena, "{'items': []}");
        *state = w;
        return 0;
}

static int end_world(void **state)
{
        struct world *w = *state;

        arena_done(&w->arena);
        free(w);
        return 0;
}

/* A node with so many GPUs and these labels, which are JSON. */
static struct json *add_node(struct world *w, const char *name, int gpus, const char *labels)
{
        struct json *node = json_build(&w->arena,
                                       "{'metadata': {'name': %s, 'labels': %p}, 'status': {'allocatable': "
                                       "{'nvidia.com/gpu': '%d'}}}",
                                       name, (void *)parse(&w->arena, labels), gpus);

        json_set(&w->arena, json_at(json_at(node, "metadata"), "labels"), "kubernetes.io/hostname",
                 json_string(&w->arena, arena_printf(&w->arena, "host-%s", name)));
        return json_append(json_at(w->list, "items"), node);
}

/* One as GPU feature discovery labels it. */
static void add_gpu(struct world *w, const char *name, const char *product, int memory, int compute)
{
        add_node(
                w, name, 8,
                arena_printf(
                        &w->arena,
                        "{\"nvidia.com/gpu.product\": \"%s\", \"nvidia.com/gpu.memory\": \"%d\", "
                        "\"nvidia.com/gpu.compute.major\": \"%d\", \"nvidia.com/gpu.compute.minor\": \"%d\"}",
                        product, memory, compute / 10, compute % 10));
}

static void look(struct world *w, const char *bound, const struct place_least *least)
{
        w->n = place_nodes(&w->arena, w->list, bound, least, w->nodes, ARRAY_LEN(w->nodes));
}

static void four_nodes(struct world *w)
{
        add_gpu(w, "t4", "Tesla-T4", 15360, 75);
        add_gpu(w, "rtx", "NVIDIA-GeForce-RTX-3090", 24576, 86);
        add_gpu(w, "h100", "NVIDIA-H100-80GB-HBM3", 81559, 90);
        add_gpu(w, "a100", "NVIDIA-A100-SXM4-40GB", 40960, 80);
}

static const struct place_node *node(const struct world *w, const char *name)
{
        for (size_t i = 0; i < w->n; i++)
                if (streq(w->nodes[i].name, name))
                        return &w->nodes[i];
        return NULL;
}

/* "h100 801, a100 623, …" */
static const char *order(struct world *w)
{
        const char *text = "";

        for (size_t i = 0; i < w->n; i++)
                text = arena_printf(&w->arena, "%s%s%s %d", text, i ? ", " : "", w->nodes[i].name,
                                    w->nodes[i].score);
        return text;
}

/* ---- scores */

static void test_scores_for_each_bound(void **state)
{
        struct world *w = *state;

        four_nodes(w);
        look(w, "compute-bound", &ANY);
        assert_string_equal(order(w), "h100 903, a100 711, rtx 626, t4 433");
        look(w, "memory-bound", &ANY);
        assert_string_equal(order(w), "h100 732, a100 443, rtx 343, t4 214");
        look(w, "mixed", &ANY);
        assert_string_equal(order(w), "h100 815, a100 576, rtx 483, t4 325");
        look(w, "unknown", &ANY);
        assert_string_equal(order(w), "h100 815, a100 576, rtx 483, t4 325");
        look(w, NULL, &ANY);
        assert_string_equal(order(w), "h100 815, a100 576, rtx 483, t4 325");
}

/* Upstream's own numbers: the table alone, each value against 132 SMs, 4800 GB/s, 141 GiB and 9.0, and no more than 1000. */
static void test_scores_from_the_table(void **state)
{
        struct world *w = *state;

        add_node(w, "h200", 1, "{\"nvidia.com/gpu.product\": \"NVIDIA-H200\"}");
        add_node(w, "l40s", 1, "{\"nvidia.com/gpu.product\": \"NVIDIA-L40S\"}");
        add_node(w, "b200", 1, "{\"nvidia.com/gpu.product\": \"NVIDIA-B200\"}");
        look(w, "memory-bound", &ANY);
        assert_string_equal(order(w), "b200 1000, h200 1000, l40s 431");
        assert_int_equal(node(w, "l40s")->parts[0], 100);
        assert_int_equal(node(w, "l40s")->parts[1], 81);
        assert_int_equal(node(w, "l40s")->parts[2], 102);
        assert_int_equal(node(w, "l40s")->parts[3], 148);
}

static void test_labels_come_before_the_table(void **state)
{
        struct world *w = *state;

        add_node(w, "a", 1,
                 "{\"nvidia.com/gpu.product\": \"Tesla-T4\", \"nvidia.com/gpu.memory\": \"15360\", "
                 "\"nvidia.com/gpu.compute.major\": \"9\", \"nvidia.com/gpu.compute.minor\": \"1\", "
                 "\"nvidia.com/gpu.multiprocessors\": \"20\"}");
        add_node(w, "b", 1,
                 "{\"nvidia.com/gpu.product\": \"Tesla-T4\", \"nvidia.com/gpu.memory\": \"much\", "
                 "\"nvidia.com/gpu.compute.major\": \"-1\", \"nvidia.com/gpu.compute.minor\": \"\", "
                 "\"nvidia.com/gpu.multiprocessors\": \"99999999999999999999\"}");
        look(w, NULL, &ANY);
        assert_int_equal(node(w, "a")->sms, 20);
        assert_int_equal(node(w, "a")->memory, 15360);
        assert_int_equal(node(w, "a")->compute, 91);
        assert_int_equal(node(w, "b")->sms, 40);
        assert_int_equal(node(w, "b")->memory, 16384);
        assert_int_equal(node(w, "b")->compute, 75);
        assert_int_equal(node(w, "b")->bandwidth, 320);
}

static void test_a_slice_is_not_its_gpu(void **state)
{
        struct world *w = *state;

        add_node(w, "slice", 7,
                 "{\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\", "
                 "\"nvidia.com/gpu.memory\": "
                 "\"4864\", \"nvidia.com/gpu.multiprocessors\": \"14\"}");
        add_node(w, "third", 2,
                 "{\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-3g.20gb\", "
                 "\"nvidia.com/gpu.memory\": "
                 "\"19968\", \"nvidia.com/gpu.multiprocessors\": \"42\"}");
        add_node(w, "mute", 7, "{\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\"}");
        add_node(w, "whole", 1, "{\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\"}");
        look(w, "memory-bound", &ANY);
        assert_int_equal(node(w, "slice")->sms, 14);
        assert_int_equal(node(w, "slice")->bandwidth, 1555 / 8);
        assert_int_equal(node(w, "slice")->memory, 4864);
        assert_int_equal(node(w, "slice")->compute, 80);
        assert_int_equal(node(w, "third")->bandwidth, 1555 / 2);
        assert_int_equal(node(w, "mute")->score, -1);
        assert_null(node(w, "mute")->gpu);
        assert_string_equal(order(w), "whole 443, third 277, slice 170, mute -1");
}

/* ---- which nodes count */

static void test_nodes_that_cannot_take_it_are_left_out(void **state)
{
        struct world *w = *state;
        struct place_least two = {.gpus = 2};
        struct json *cordoned;

        add_node(w, "none", 0, "{\"nvidia.com/gpu.product\": \"Tesla-T4\", \"nvidia.com/gpu.count\": \"4\"}");
        add_node(w, "one", 1, "{\"nvidia.com/gpu.product\": \"Tesla-T4\", \"nvidia.com/gpu.count\": \"4\"}");
        add_node(w, "four", 4, "{\"nvidia.com/gpu.product\": \"Tesla-T4\"}");
        cordoned = add_node(w, "cordoned", 8, "{\"nvidia.com/gpu.product\": \"Tesla-T4\"}");
        json_set(&w->arena, cordoned, "spec", json_build(&w->arena, "{'unschedulable': true}"));
        json_append(json_at(w->list, "items"), parse(&w->arena, "{\"metadata\": {\"name\": \"cpu\"}}"));
        /* It has no device plugin yet, but says what it has. */
        json_append(json_at(w->list, "items"),
                    parse(&w->arena,
                          "{\"metadata\": {\"name\": \"label\", \"labels\": {\"nvidia.com/gpu.product\": "
                          "\"Tesla-T4\", \"nvidia.com/gpu.count\": \"2\"}}}"));
        look(w, NULL, &two);
        assert_string_equal(order(w), "four 327, label 327");
        assert_int_equal(node(w, "label")->count, 2);
        look(w, NULL, &ANY);
        assert_string_equal(order(w), "four 327, label 327, one 327");
}

static void test_what_is_no_list_has_no_nodes(void **state)
{
        static const char *const texts[] = {"{}",
                                            "[]",
                                            "{\"items\": 3}",
                                            "{\"items\": [1, null, \"x\", [], {}]}",
                                            "{\"items\": [{\"metadata\": {\"name\": 3, \"labels\": []}}]}",
                                            ("{\"items\": [{\"metadata\": {\"name\": \"x\"}, \"status\": "
                                             "{\"allocatable\": {\"nvidia.com/gpu\": \"1.5k\"}}}]}")};
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                assert_int_equal(
                        place_nodes(&w->arena, parse(&w->arena, texts[i]), NULL, &ANY, w->nodes, NODES_MAX),
                        0);
        assert_int_equal(place_nodes(&w->arena, NULL, NULL, &ANY, w->nodes, NODES_MAX), 0);
        four_nodes(w);
        assert_int_equal(place_nodes(&w->arena, w->list, NULL, &ANY, w->nodes, 3), 3);
        assert_int_equal(place_nodes(&w->arena, w->list, NULL, &ANY, w->nodes, 0), 0);
}

/* What is left out of a node is nothing that counts. */
static void test_what_is_kept_of_nodes_is_enough(void **state)
{
        static const struct place_least least = {.gpus = 8, .compute = 75, .memory = 15360};
        struct world *w = *state;
        const char *whole;
        struct json *cordoned, *any;

        four_nodes(w);
        add_gpu(w, "small", "Tesla-T4", 15359, 75);
        add_node(w, "slice", 8,
                 "{\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB-MIG-7g.40gb\", "
                 "\"nvidia.com/gpu.memory\": "
                 "\"40192\", \"nvidia.com/gpu.multiprocessors\": \"98\", \"nvidia.com/gpu.compute.major\": "
                 "\"8\", "
                 "\"other\": \"x\"}");
        cordoned = add_node(w, "cordoned", 8, "{\"nvidia.com/gpu.product\": \"Tesla-T4\"}");
        json_set(&w->arena, cordoned, "spec", json_build(&w->arena, "{'unschedulable': true, 'taints': []}"));
        look(w, NULL, &least);
        whole = order(w);
        json_foreach (n, json_at(w->list, "items"))
                place_project_node(n, &w->arena);
        look(w, NULL, &least);
        assert_string_equal(order(w), whole);
        assert_string_equal(node(w, "t4")->host, "host-t4");
        assert_int_equal(w->n, 5);
        assert_string_equal(
                json_print(&w->arena, cordoned),
                "{\"metadata\":{\"name\":\"cordoned\",\"labels\":{\"nvidia.com/gpu.product\":\"Tesla-T4\","
                "\"kubernetes.io/hostname\":\"host-cordoned\"}},\"status\":{\"allocatable\":{\"nvidia.com/"
                "gpu\":\"8\"}},\"spec\":{\"unschedulable\":true}}");
        any = parse(&w->arena, "{\"items\": [1, null, \"x\", [], {}, {\"metadata\": 3, \"status\": []}]}");
        json_foreach (n, json_at(any, "items"))
                place_project_node(n, &w->arena);
        assert_int_equal(place_nodes(&w->arena, any, NULL, &ANY, w->nodes, NODES_MAX), 0);
}

static void test_what_is_kept_of_an_exporter(void **state)
{
        struct world *w = *state;
        struct json *pod = parse(
                &w->arena,
                "{\"metadata\": {\"uid\": \"u\", \"name\": \"n\", \"namespace\": \"gpu-operator\"}, "
                "\"spec\": {\"volumes\": [1], \"nodeName\": \"t4\", \"containers\": [{\"env\": [1], "
                "\"ports\": [{\"name\": \"metrics\", \"containerPort\": 9400}]}, {}]}, \"status\": "
                "{\"phase\": \"Running\", \"podIP\": \"10.0.0.7\", \"hostIP\": \"x\", \"conditions\": "
                "[]}}");
        struct json *odd = parse(&w->arena, "[1, null, [], {\"spec\": 7}]");

        place_project_exporter(pod, &w->arena);
        assert_string_equal(
                json_print(&w->arena, pod),
                "{\"metadata\":{\"namespace\":\"gpu-operator\",\"name\":\"n\"},\"spec\":{\"nodeName\":"
                "\"t4\",\"containers\":[{\"ports\":[{\"name\":\"metrics\",\"containerPort\":9400}]},{}]},"
                "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.7\",\"conditions\":[]}}");
        json_foreach (n, odd)
                place_project_exporter(n, &w->arena);
}

static void test_an_unknown_product_has_no_score(void **state)
{
        struct world *w = *state;

        four_nodes(w);
        add_gpu(w, "foo", "NVIDIA-Foo", 999999, 90);
        add_node(w, "bare", 1, "{}");
        look(w, NULL, &ANY);
        assert_string_equal(order(w), "h100 815, a100 576, rtx 483, t4 325, bare -1, foo -1");
        assert_null(node(w, "bare")->product);
        assert_null(node(w, "foo")->gpu);
}

/* ---- the affinity */

static bool has_value(const struct json *values, const char *value)
{
        json_foreach (v, values)
                if (streq(json_cstr(v), value))
                        return true;
        return false;
}

/* As the scheduler reads it. */
static bool holds(const struct json *expression, const struct json *labels)
{
        const char *op = json_str(expression, "operator");
        const char *value = json_str(labels, json_str(expression, "key"));
        const struct json *values = json_at(expression, "values");
        int64_t has, bar;

        if (streq(op, "In"))
                return value && has_value(values, value);
        if (streq(op, "NotIn"))
                return !value || !has_value(values, value);
        assert_string_equal(op, "Gt");
        assert_int_equal(json_len(values), 1);
        assert_true(str_to_i64(json_text(json_first(values)), &bar) && bar >= 0);
        return value && str_to_i64(str_of(value), &has) && has > bar;
}

static bool matches(const struct json *term, const struct json *labels)
{
        assert_true(json_len(json_at(term, "matchExpressions")) > 0);
        json_foreach (e, json_at(term, "matchExpressions"))
                if (!holds(e, labels))
                        return false;
        return true;
}

static bool is_admitted(const struct json *affinity, const struct json *labels)
{
        const struct json *required = json_at(json_at(affinity, "nodeAffinity"),
                                              "requiredDuringSchedulingIgnoredDuringExecution");

        if (!required)
                return true;
        assert_true(json_len(json_at(required, "nodeSelectorTerms")) > 0);
        json_foreach (term, json_at(required, "nodeSelectorTerms"))
                if (matches(term, labels))
                        return true;
        return false;
}

/* What the node gets of the preferences, all together. */
static int64_t preference(const struct json *affinity, const struct json *labels)
{
        const struct json *terms = json_at(json_at(affinity, "nodeAffinity"),
                                           "preferredDuringSchedulingIgnoredDuringExecution");
        int64_t sum = 0;

        assert_true(json_len(terms) <= PLACE_TERMS_MAX);
        json_foreach (term, terms) {
                int64_t weight = json_int(term, "weight", 0);

                assert_true(weight >= 1 && weight <= 100);
                if (matches(json_at(term, "preference"), labels))
                        sum += weight;
        }
        return sum;
}

static const struct json *labels_of(const struct world *w, const char *name)
{
        json_foreach (n, json_at(w->list, "items"))
                if (streq(json_str(json_at(n, "metadata"), "name"), name))
                        return json_at(json_at(n, "metadata"), "labels");
        fail_msg("there is no node %s", name);
        return NULL;
}

/* EXPECTED NULL: nothing is said. */
static void assert_affinity(struct world *w, const struct place_least *least, const struct json *expected)
{
        const struct json *affinity = place_affinity(&w->arena, w->nodes, w->n, least);

        assert_string_equal(affinity ? json_print(&w->arena, affinity) : "nothing",
                            expected ? json_print(&w->arena, expected) : "nothing");
}

#define PRODUCT(weight, product)                                               \
        "{'weight': " #weight ", 'preference': {'matchExpressions': [{'key': " \
        "'nvidia.com/gpu.product', 'operator': 'In', 'values': ['" product "']}]}}"
#define PREFERRED(terms)      \
        json_build(&w->arena, \
                   "{'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [" terms "]}}")

static void test_the_affinity_for_each_bound(void **state)
{
        struct world *w = *state;

        four_nodes(w);
        look(w, "compute-bound", &ANY);
        assert_affinity(
                w, &ANY,
                PREFERRED(PRODUCT(100, "NVIDIA-H100-80GB-HBM3") "," PRODUCT(
                        79, "NVIDIA-A100-SXM4-"
                            "40GB") "," PRODUCT(69, "NVIDIA-GeForce-RTX-3090") "," PRODUCT(48, "Tesla-T4")));
        look(w, "memory-bound", &ANY);
        assert_affinity(
                w, &ANY,
                PREFERRED(PRODUCT(100, "NVIDIA-H100-80GB-HBM3") "," PRODUCT(
                        61, "NVIDIA-A100-SXM4-"
                            "40GB") "," PRODUCT(47, "NVIDIA-GeForce-RTX-3090") "," PRODUCT(29, "Tesla-T4")));
        look(w, "mixed", &ANY);
        assert_affinity(
                w, &ANY,
                PREFERRED(PRODUCT(100, "NVIDIA-H100-80GB-HBM3") "," PRODUCT(
                        71, "NVIDIA-A100-SXM4-"
                            "40GB") "," PRODUCT(59, "NVIDIA-GeForce-RTX-3090") "," PRODUCT(40, "Tesla-T4")));
}

static void test_nodes_of_one_product_share_a_term(void **state)
{
        struct world *w = *state;

        add_gpu(w, "a", "Tesla-T4", 15360, 75);
        add_gpu(w, "b", "Tesla-T4", 15360, 75);
        add_gpu(w, "foo", "NVIDIA-Foo", 15360, 75);
        look(w, NULL, &ANY);
        assert_affinity(w, &ANY, PREFERRED(PRODUCT(100, "Tesla-T4")));
}

static void test_without_known_products_there_is_nothing_to_say(void **state)
{
        struct world *w = *state;

        assert_affinity(w, &ANY, NULL);
        add_gpu(w, "foo", "NVIDIA-Foo", 15360, 75);
        look(w, NULL, &ANY);
        assert_affinity(w, &ANY, NULL);
}

#define REQUIRED(terms)                                                                              \
        json_build(&w->arena, "{'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': " \
                              "{'nodeSelectorTerms': [" terms "]}}}")
#define TERM(expressions) "{'matchExpressions': [" expressions "]}"
#define EXPRESSION(key, op, value) \
        "{'key': 'nvidia.com/gpu." key "', 'operator': '" op "', 'values': ['" value "']}"

static void test_what_is_demanded(void **state)
{
        struct world *w = *state;

        assert_affinity(w, &(struct place_least){.compute = 80},
                        REQUIRED(TERM(EXPRESSION("compute.major", "Gt", "7"))));
        assert_affinity(w, &(struct place_least){.compute = 86},
                        REQUIRED(TERM(EXPRESSION("compute.major", "Gt", "8")) "," TERM(EXPRESSION(
                                "compute.major", "In", "8") "," EXPRESSION("compute.minor", "Gt", "5"))));
        assert_affinity(w, &(struct place_least){.compute = 103},
                        REQUIRED(TERM(EXPRESSION("compute.major", "Gt", "10")) "," TERM(EXPRESSION(
                                "compute.major", "In", "10") "," EXPRESSION("compute.minor", "Gt", "2"))));
        assert_affinity(w, &(struct place_least){.memory = 20480},
                        REQUIRED(TERM(EXPRESSION("memory", "Gt", "20479"))));
        assert_affinity(
                w, &(struct place_least){.compute = 75, .memory = 1},
                REQUIRED(TERM(EXPRESSION("compute.major", "Gt", "7") "," EXPRESSION(
                        "memory", "Gt",
                        "0")) "," TERM(EXPRESSION("compute.major", "In",
                                                  "7") "," EXPRESSION("compute.minor", "Gt",
                                                                      "4") "," EXPRESSION("memory", "Gt",
                                                                                          "0"))));
}

/* Whoever is left out here is refused by the scheduler, and the other way round: whatever labels there are. */
static void test_demands_mean_the_same_here_and_there(void **state)
{
        static const int computes[] = {0, 5, 70, 75, 80, 86, 89, 90, 100, 103, 120};
        static const int memories[] = {0, 1, 15360, 15361, 81920};
        static const char *const nodes[] = {
                "{\"nvidia.com/gpu.product\": \"Tesla-T4\"}",
                "{\"nvidia.com/gpu.compute.major\": \"8\", \"nvidia.com/gpu.memory\": \"15360\"}",
                "{\"nvidia.com/gpu.compute.minor\": \"9\", \"nvidia.com/gpu.memory\": \"81920\"}",
                "{\"nvidia.com/gpu.compute.major\": \"x\", \"nvidia.com/gpu.compute.minor\": \"9\"}",
        };
        struct world *w = *state;
        size_t judged = 0;

        for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
                add_node(w, arena_printf(&w->arena, "odd-%zu", i), 1, nodes[i]);
        for (size_t i = 0; i < ARRAY_LEN(computes); i++)
                for (size_t k = 0; k < ARRAY_LEN(memories); k++)
                        add_gpu(w, arena_printf(&w->arena, "n-%zu-%zu", i, k), "Tesla-T4", memories[k],
                                computes[i]);
        for (size_t i = 0; i < ARRAY_LEN(computes); i++)
                for (size_t k = 0; k < ARRAY_LEN(memories); k++) {
                        struct place_least least = {.compute = computes[i], .memory = memories[k], .gpus = 1};
                        const struct json *affinity = place_affinity(&w->arena, NULL, 0, &least);

                        look(w, NULL, &least);
                        json_foreach (n, json_at(w->list, "items")) {
                                const struct json *meta = json_at(n, "metadata");
                                bool here = node(w, json_str(meta, "name")) != NULL;

                                if (here != is_admitted(affinity, json_at(meta, "labels")))
                                        fail_msg("%s for %d and %d", json_print(&w->arena, n), least.compute,
                                                 memories[k]);
                                judged++;
                        }
                }
        assert_int_equal(judged, 55 * 59);
}

/* ---- telemetry */

static void set_busy(struct world *w, const char *name, double busy)
{
        for (size_t i = 0; i < w->n; i++)
                if (streq(w->nodes[i].name, name))
                        place_busy(&w->nodes[i], busy);
        place_sort(w->nodes, w->n);
}

static void test_a_busy_gpu_counts_less(void **state)
{
        struct world *w = *state;

        four_nodes(w);
        add_gpu(w, "foo", "NVIDIA-Foo", 15360, 75);
        look(w, NULL, &ANY);
        set_busy(w, "h100", 100);
        assert_string_equal(order(w), "a100 576, rtx 483, h100 407, t4 325, foo -1");
        assert_int_equal(node(w, "h100")->parts[0], 250);
        /* What came last counts, and not both. */
        set_busy(w, "h100", 50);
        assert_string_equal(order(w), "h100 611, a100 576, rtx 483, t4 325, foo -1");
        set_busy(w, "h100", 1e300);
        assert_true(node(w, "h100")->busy == 100);
        set_busy(w, "h100", 0);
        set_busy(w, "a100", -1);
        set_busy(w, "rtx", (double)NAN);
        set_busy(w, "foo", 50);
        assert_string_equal(order(w), "h100 815, a100 576, rtx 483, t4 325, foo -1");
        assert_true(node(w, "rtx")->busy < 0 && node(w, "h100")->busy == 0);
}

static void test_busy_nodes_have_terms_of_their_own(void **state)
{
        struct world *w = *state;

        add_gpu(w, "a", "Tesla-T4", 15360, 75);
        add_gpu(w, "b", "Tesla-T4", 15360, 75);
        add_gpu(w, "c", "Tesla-T4", 15360, 75);
        add_gpu(w, "d", "Tesla-T4", 15360, 75);
        look(w, NULL, &ANY);
        set_busy(w, "b", 100);
        set_busy(w, "c", 99.9);
        set_busy(w, "d", 0.1); /* too little for a weight of its own */
        assert_affinity(
                w, &ANY,
                PREFERRED(
                        "{'weight': 100, 'preference': {'matchExpressions': [{'key': "
                        "'nvidia.com/gpu.product', "
                        "'operator': 'In', 'values': ['Tesla-T4']}, {'key': 'kubernetes.io/hostname', "
                        "'operator': "
                        "'NotIn', 'values': ['host-b', 'host-c']}]}}, {'weight': 50, 'preference': "
                        "{'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': "
                        "['host-b', 'host-c']}]}}"));
        /* One that cannot be named goes with the others. */
        json_remove(json_at(json_at(json_index(json_at(w->list, "items"), 1), "metadata"), "labels"),
                    "kubernetes.io/hostname");
        look(w, NULL, &ANY);
        set_busy(w, "b", 100);
        assert_affinity(w, &ANY, PREFERRED(PRODUCT(100, "Tesla-T4")));
}

static uint64_t draw(uint64_t *seed)
{
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        return *seed >> 33;
}

/* Whatever is busy, each node gets the share of the best that its score is. */
static void test_a_node_gets_what_it_scores(void **state)
{
        static const char *const products[] = {"Tesla-T4", "NVIDIA-L4", "NVIDIA-H200", "NVIDIA-A10G",
                                               "NVIDIA-Foo"};
        struct world *w = *state;
        uint64_t seed = 7;

        for (unsigned round = 0; round < unit_extent(100, 500, 5000); round++) {
                const struct json *affinity;
                size_t n = 1 + draw(&seed) % 20;

                w->list = json_build(&w->arena, "{'items': []}");
                for (size_t i = 0; i < n; i++)
                        add_gpu(w, arena_printf(&w->arena, "n%zu", i),
                                products[draw(&seed) % ARRAY_LEN(products)], draw(&seed) % 8 ? 16384 : 8192,
                                75);
                look(w, "memory-bound", &ANY);
                for (size_t i = 0; i < w->n; i++)
                        if (draw(&seed) % 3 == 0)
                                place_busy(&w->nodes[i], (double)(draw(&seed) % 101));
                place_sort(w->nodes, w->n);
                affinity = place_affinity(&w->arena, w->nodes, w->n, &ANY);
                for (size_t i = 0; i < w->n; i++) {
                        int best = w->nodes[0].score, score = w->nodes[i].score;
                        int expected = score < 0 ? 0 : (score * 200 + best) / (2 * best);

                        assert_int_equal(preference(affinity, labels_of(w, w->nodes[i].name)), expected);
                }
                arena_reset(&w->arena, SIZE_MAX);
        }
        w->list = NULL;
}

static void test_there_are_not_more_terms_than_allowed(void **state)
{
        struct world *w = *state;

        for (int i = 0; i < NODES_MAX; i++)
                add_gpu(w, arena_printf(&w->arena, "n%02d", i),
                        i < 40 ? "Tesla-T4" : arena_printf(&w->arena, "NVIDIA-L4%*s", i, ""), 1024 * (1 + i),
                        75);
        look(w, NULL, &ANY);
        assert_int_equal(w->n, NODES_MAX);
        (void)preference(place_affinity(&w->arena, w->nodes, w->n, &ANY), labels_of(w, "n00"));
        assert_true(strlen(place_reason(&w->arena, w->nodes, w->n, NULL)) <= 500);
}

static void test_what_the_exporter_says(void **state)
{
        static const struct {
                const char *text;
                double busy;
        } cases[] = {
                {"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
                 "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
                 "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",modelName=\"NVIDIA A10G\",Hostname=\"h\"} "
                 "75\n"
                 "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-2\",modelName=\"NVIDIA A10G\",Hostname=\"h\"} "
                 "82\n"
                 "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 65\n",
                 78.5},
                {"DCGM_FI_DEV_GPU_UTIL 12.5", 12.5},
                {"  DCGM_FI_DEV_GPU_UTIL\t{a=\"b\"}\t3e1 1700000000000\r\n", 30},
                {"DCGM_FI_DEV_GPU_UTIL{pod=\"a}b\\\"c\\\\\"} 100\n", 100},
                {"DCGM_FI_DEV_GPU_UTIL{} 0\n", 0},
                {"DCGM_FI_DEV_GPU_UTIL{} NaN\nDCGM_FI_DEV_GPU_UTIL{} +Inf\nDCGM_FI_DEV_GPU_UTIL{} 10\n", 10},
                {"DCGM_FI_DEV_GPU_UTIL{} 2147483632\nDCGM_FI_DEV_GPU_UTIL{} -1\nDCGM_FI_DEV_GPU_UTIL{} 20",
                 20},
                {"", -1},
                {"\n\n# nothing\n", -1},
                {"DCGM_FI_DEV_GPU_UTIL", -1},
                {"DCGM_FI_DEV_GPU_UTIL{", -1},
                {"DCGM_FI_DEV_GPU_UTIL{a=\"}\n} 5", -1},
                {"DCGM_FI_DEV_GPU_UTIL{a=\"b\\", -1},
                {"DCGM_FI_DEV_GPU_UTIL{} ", -1},
                {"DCGM_FI_DEV_GPU_UTIL{} 0x10", -1},
                {"DCGM_FI_DEV_GPU_UTIL{} 1e", -1},
                {"DCGM_FI_DEV_GPU_UTIL{} 1,5", -1},
                {"DCGM_FI_DEV_GPU_UTIL_MAX{} 5", -1},
                {"DCGM_FI_DEV_GPU_UTIL5", -1},
                {"xDCGM_FI_DEV_GPU_UTIL{} 5", -1},
                {"DCGM_FI_DEV_GPU_UTIL 0000000000000000000000000000000000000000000000000000000000000000001",
                 -1},
                {"<html>DCGM_FI_DEV_GPU_UTIL</html>", -1},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                if (place_busy_of(str_of(cases[i].text)) != cases[i].busy)
                        fail_msg("%s: %g", cases[i].text, place_busy_of(str_of(cases[i].text)));
        assert_true(place_busy_of(STR_NULL) == -1);
        assert_true(place_busy_of(STR("DCGM_FI_DEV_GPU_UTIL{} 1\0002")) == -1);
}

/* ---- words */

static void assert_reason(struct world *w, const char *bound, const char *expected)
{
        look(w, bound, &ANY);
        assert_string_equal(place_reason(&w->arena, w->nodes, w->n, bound), expected);
}

static void test_the_reason(void **state)
{
        struct world *w = *state;

        assert_reason(w, NULL, "no node with enough GPUs has what is asked for; none is preferred");
        add_node(w, "bare", 1, "{}");
        assert_reason(
                w, NULL,
                "not profiled: no node says what GPU it has (label nvidia.com/gpu.product), left to the "
                "scheduler");
        add_gpu(w, "foo", "NVIDIA-Foo", 15360, 75);
        assert_reason(
                w, "unknown",
                "bound unknown: product NVIDIA-Foo is unknown and left to the scheduler; 1 of 2 nodes do "
                "not say what GPU they have");
        json_take(json_at(w->list, "items"), json_first(json_at(w->list, "items")));
        add_gpu(w, "h200", "NVIDIA-H200", 143771, 90);
        assert_reason(w, "memory-bound",
                      "memory-bound: NVIDIA-H200 preferred (score 998: bandwidth 450, memory 298, compute "
                      "capability 150, SMs 100); product NVIDIA-Foo is unknown and left to the scheduler");
        json_take(json_at(w->list, "items"), json_first(json_at(w->list, "items")));
        add_gpu(w, "l40s", "NVIDIA-L40S", 46068, 89);
        assert_reason(w, "memory-bound",
                      "memory-bound: NVIDIA-H200 preferred (score 998: bandwidth 450, memory 298, compute "
                      "capability 150, SMs 100) over NVIDIA-L40S (424)");
        four_nodes(w);
        add_gpu(w, "bar", "NVIDIA-Bar", 1, 75);
        add_gpu(w, "baz", "NVIDIA-Baz", 1, 75);
        add_gpu(w, "foo", "NVIDIA-Foo", 1, 75);
        assert_reason(
                w, "compute-bound",
                "compute-bound: NVIDIA-H200 preferred (score 999: SMs 400, compute capability 350, memory "
                "149, bandwidth 100) over NVIDIA-H100-80GB-HBM3 (903), NVIDIA-L40S (810) and 3 more; "
                "products NVIDIA-Bar, NVIDIA-Baz and 1 more are unknown and left to the scheduler");
}

static void test_the_reason_names_busy_nodes(void **state)
{
        struct world *w = *state;

        add_gpu(w, "a", "Tesla-T4", 15360, 75);
        add_gpu(w, "b", "Tesla-T4", 15360, 75);
        look(w, NULL, &ANY);
        set_busy(w, "a", 87.4);
        set_busy(w, "b", 0.4);
        assert_string_equal(
                place_reason(&w->arena, w->nodes, w->n, "mixed"),
                "mixed: Tesla-T4 preferred (score 324: compute capability 208, SMs 75, memory 26, "
                "bandwidth 16); busy: a (87 %)");
}

static void test_the_reason_is_short(void **state)
{
        struct world *w = *state;
        char name[300];

        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        for (int i = 0; i < 30; i++) {
                name[0] = (char)('a' + i % 26);
                name[1] = (char)('a' + i / 26);
                add_gpu(w, name, name, 1, 75);
        }
        four_nodes(w);
        add_node(w, "bare", 1, "{}");
        look(w, "memory-bound", &ANY);
        assert_true(strlen(place_reason(&w->arena, w->nodes, w->n, "memory-bound")) <= 500);
}

static void test_the_hint(void **state)
{
        struct world *w = *state;
        const struct json *hint, *first;

        look(w, NULL, &ANY);
        assert_string_equal(
                json_print(&w->arena, place_hint(&w->arena, w->nodes, w->n, NULL)),
                "{\"boundType\":\"unknown\",\"reason\":\"no node with enough GPUs has what is asked "
                "for; none is preferred\",\"nodes\":[]}");
        add_gpu(w, "h200", "NVIDIA-H200", 143771, 90);
        add_gpu(w, "foo", "NVIDIA-Foo", 1, 90);
        look(w, "memory-bound", &ANY);
        set_busy(w, "h200", 10.4);
        assert_string_equal(json_print(&w->arena, place_hint(&w->arena, w->nodes, w->n, "memory-bound")),
                            "{\"boundType\":\"memory-bound\",\"reason\":\"memory-bound: NVIDIA-H200 "
                            "preferred (score 946: "
                            "bandwidth 450, memory 298, compute capability 150, SMs 100); busy: h200 (10 %); "
                            "product NVIDIA-Foo "
                            "is unknown and left to the "
                            "scheduler\",\"nodes\":[{\"name\":\"h200\",\"product\":\"NVIDIA-H200\","
                            "\"score\":946,\"breakdown\":{\"sm\":100,\"bandwidth\":450,\"vram\":298,"
                            "\"compute\":150},\"busy\":10}],"
                            "\"unknownProducts\":[\"NVIDIA-Foo\"]}");
        for (int i = 0; i < 20; i++) {
                add_gpu(w, arena_printf(&w->arena, "t%02d", i), "Tesla-T4", 15360, 75);
                add_gpu(w, arena_printf(&w->arena, "u%02d", i), arena_printf(&w->arena, "U%d", i), 15360, 75);
        }
        look(w, NULL, &ANY);
        hint = place_hint(&w->arena, w->nodes, w->n, "mixed");
        first = json_first(json_at(hint, "nodes"));
        assert_int_equal(json_len(json_at(hint, "nodes")), PLACE_HINTS_MAX);
        assert_int_equal(json_len(json_at(hint, "unknownProducts")), PLACE_HINTS_MAX);
        assert_string_equal(json_str(first, "name"), "h200");
        assert_null(json_at(first, "busy"));
}

#define IN_A_WORLD(f) cmocka_unit_test_setup_teardown(f, make_world, end_world)

static const struct CMUnitTest tests[] = {
        IN_A_WORLD(test_scores_for_each_bound),
        IN_A_WORLD(test_scores_from_the_table),
        IN_A_WORLD(test_labels_come_before_the_table),
        IN_A_WORLD(test_a_slice_is_not_its_gpu),
        IN_A_WORLD(test_nodes_that_cannot_take_it_are_left_out),
        IN_A_WORLD(test_what_is_no_list_has_no_nodes),
        IN_A_WORLD(test_what_is_kept_of_nodes_is_enough),
        IN_A_WORLD(test_what_is_kept_of_an_exporter),
        IN_A_WORLD(test_an_unknown_product_has_no_score),
        IN_A_WORLD(test_the_affinity_for_each_bound),
        IN_A_WORLD(test_nodes_of_one_product_share_a_term),
        IN_A_WORLD(test_without_known_products_there_is_nothing_to_say),
        IN_A_WORLD(test_what_is_demanded),
        IN_A_WORLD(test_demands_mean_the_same_here_and_there),
        IN_A_WORLD(test_a_busy_gpu_counts_less),
        IN_A_WORLD(test_busy_nodes_have_terms_of_their_own),
        IN_A_WORLD(test_a_node_gets_what_it_scores),
        IN_A_WORLD(test_there_are_not_more_terms_than_allowed),
        IN_A_WORLD(test_what_the_exporter_says),
        IN_A_WORLD(test_the_reason),
        IN_A_WORLD(test_the_reason_names_busy_nodes),
        IN_A_WORLD(test_the_reason_is_short),
        IN_A_WORLD(test_the_hint),
};

UNIT_MAIN(tests)
