/* Runs that were made by themselves, side by side. */
#include "unit/parse.h"

#include "kinds/kinds.h"

enum { RUNS = 12 };

struct world {
        struct arena a;
        struct versus_side sides[3];
};

static int make_world(void **state)
{
        *state = xcalloc(1, sizeof(struct world));
        return 0;
}

static int free_world(void **state)
{
        arena_done(&((struct world *)*state)->a);
        free(*state);
        return 0;
}

/* samples.json of NAMES, each RUNS times at its LEVEL and once as warm-up, the third run of the first failed. */
static const struct json *samples(struct arena *a, const char *const *names, const double *levels, size_t n)
{
        struct json *rows = json_array(a);

        for (size_t i = 0; i < n; i++)
                for (int run = -1; run < RUNS; run++) {
                        double noise = 1 + 0.002 * ((run * 7 + (int)i * 3) % 11);
                        struct json *row = json_build(a, "[%s, 1000, 0, %d]", names[i], run);

                        json_append(row, i == 0 && run == 2 ? json_string(a, "exit 3") : json_null(a));
                        json_append(row, json_double(a, run < 0 ? 99.0 : levels[i] * noise));
                        json_append(row, json_double(a, 2e6 * noise));
                        json_append(rows, row);
                }
        return json_build(a,
                          "{'columns': ['algorithm', 'size', 'pod', 'iteration', 'failure', 'time', "
                          "'memory'], 'rows': %p}",
                          (void *)rows);
}

static struct versus_side profiling(struct world *w, const char *name, double level, const char *cpu)
{
        static const char *const names[] = {"sort"};

        return (struct versus_side){
                .name = arena_printf(&w->a, "ap/%s", name),
                .docs = {.kind = kinds_named(STR("ap")),
                         .object = json_build(&w->a,
                                              "{'metadata': {'name': %s, 'namespace': 'n', 'uid': 'uid-%s'}, "
                                              "'spec': {'inputSize': 1000}, "
                                              "'status': {'phase': 'Completed', 'results': {'executionTime': "
                                              "0.1, 'cpuUsage': 50, 'n': 11}, "
                                              "'statistics': {'unit': 'process in one pod', 'machine': "
                                              "{'cpu': %s, 'cpus': 2}}}}",
                                              name, name, cpu),
                         .samples = samples(&w->a, names, &level, 1)},
        };
}

static struct versus_side of_comparison(struct world *w, const char *algorithm)
{
        static const char *const names[] = {"quick", "merge"};
        static const double levels[] = {0.1, 0.2};

        return (struct versus_side){
                .name = arena_printf(&w->a, "ac/x%s%s", algorithm ? "#" : "", algorithm ? algorithm : ""),
                .algorithm = algorithm,
                .docs = {.kind = kinds_named(STR("ac")),
                         .object = parse(
                                 &w->a,
                                 "{\"metadata\": {\"name\": \"x\", \"uid\": \"u\"}, \"spec\": {}, "
                                 "\"status\": {\"results\": [{\"algorithmName\": \"quick\", \"n\": 11, "
                                 "\"cpuUsage\": 10}, {\"algorithmName\": \"merge\", \"n\": 12, \"cpuUsage\": "
                                 "20}]}}"),
                         .samples = samples(&w->a, names, levels, 2)},
        };
}

static bool has_note(const struct json *result, const char *part)
{
        json_foreach (n, json_at(result, "notes"))
                if (strstr(json_cstr(n), part))
                        return true;
        return false;
}

/* ---- names */

static void test_names(void **state)
{
        struct world *w = *state;
        static const struct {
                const char *text, *run, *algorithm;
                int64_t size;
        } cases[] = {
                {"ap/x", "ap/x", NULL, 0},
                {"ac/x#quick_sort", "ac/x", "quick_sort", 0},
                {"ac/x#quick_sort@1000", "ac/x", "quick_sort", 1000},
                {"ap/x@50", "ap/x", NULL, 50},
        };
        const char *run, *algorithm;
        struct err err = ERR_INIT;
        int64_t size;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_int_equal(versus_parse(&w->a, cases[i].text, &run, &algorithm, &size, &err), 0);
                assert_string_equal(run, cases[i].run);
                assert_true(streq(algorithm, cases[i].algorithm));
                assert_int_equal(size, cases[i].size);
        }
        assert_int_equal(versus_parse(&w->a, "ap/x@many", &run, &algorithm, &size, &err), -1);
        assert_non_null(strstr(err.text, "@100000"));
}

/* ---- the test */

static void test_runs_of_their_own(void **state)
{
        struct world *w = *state;
        struct json *result;
        const struct json *pair, *run;

        w->sides[0] = profiling(w, "old", 0.2, "A");
        w->sides[1] = profiling(w, "new", 0.1, "A");
        result = versus(&w->a, w->sides, 2, NULL);
        assert_true(json_bool(result, "tested", false));
        assert_false(json_bool(result, "interleaved", true));
        run = json_first(json_at(result, "runs"));
        assert_int_equal(json_int(run, "n", 0), RUNS - 1); /* without warm-up, and without what failed */
        assert_int_equal(json_int(run, "invalid", 0), 1);
        assert_non_null(json_path(run, "time.ciLow"));
        pair = json_first(json_at(result, "pairs"));
        assert_string_equal(json_str(pair, "a"), "ap/new");
        assert_string_equal(json_str(pair, "verdict"), "faster");
        assert_string_equal(json_str(json_at(result, "fastest"), "name"), "ap/new");
        assert_true(has_note(result, "not interleaved"));
        assert_false(has_note(result, "different machines"));
}

/* RUNS runs, three in a pod, of which each is right about nine times of ten: AWAY is how far from that. */
static const struct json *accurate_samples(struct arena *a, double level, double away)
{
        struct json *rows = json_array(a);

        for (int run = 0; run < RUNS; run++)
                json_append(rows, json_build(a, "['sort', 1000, %d, %d, null, %p, %p]", run / 3, run,
                                             (void *)json_double(a, level * (1 + 0.002 * (run * 7 % 11))),
                                             (void *)json_double(a, 0.9 + away + 0.01 * (run % 4))));
        return json_build(a,
                          "{'columns': ['algorithm', 'size', 'pod', 'iteration', 'failure', 'time', "
                          "'accuracy'], 'rows': %p}",
                          (void *)rows);
}

static void test_pods_are_described_by_their_medians(void **state)
{
        struct world *w = *state;
        const struct json *run;

        w->sides[0] = profiling(w, "old", 0.2, "A");
        w->sides[1] = profiling(w, "new", 0.1, "A");
        w->sides[0].docs.samples = accurate_samples(&w->a, 0.2, 0);
        run = json_first(json_at(versus(&w->a, w->sides, 2, NULL), "runs"));
        assert_int_equal(json_int(run, "n", 0), RUNS);
        assert_int_equal(json_int(json_at(run, "time"), "n", 0), RUNS / 3);
}

static const struct json *fastest_of(struct world *w, double away)
{
        w->sides[0] = profiling(w, "old", 0.2, "A");
        w->sides[1] = profiling(w, "new", 0.1, "A");
        w->sides[0].docs.samples = accurate_samples(&w->a, 0.2, 0);
        w->sides[1].docs.samples = accurate_samples(&w->a, 0.1, away);
        return json_at(versus(&w->a, w->sides, 2, NULL), "summary");
}

static void test_a_difference_in_accuracy_counts_when_it_is_one(void **state)
{
        struct world *w = *state;

        assert_null(strstr(json_cstr(fastest_of(w, -0.001)), "less accurate"));
        assert_non_null(strstr(json_cstr(fastest_of(w, -0.2)), "less accurate"));
}

static void test_machines_that_differ_are_told(void **state)
{
        struct world *w = *state;
        struct json *result;

        w->sides[0] = profiling(w, "old", 0.2, "EPYC");
        w->sides[1] = profiling(w, "new", 0.1, "Xeon");
        result = versus(&w->a, w->sides, 2, NULL);
        assert_true(has_note(result, "different machines: cpu EPYC and Xeon"));
}

static void test_other_sizes_are_not_comparable(void **state)
{
        struct world *w = *state;
        const struct json *result;

        w->sides[0] = profiling(w, "old", 0.2, "A");
        w->sides[1] = profiling(w, "new", 0.1, "A");
        w->sides[1].size = 2000;
        result = versus(&w->a, w->sides, 2, NULL);
        assert_string_equal(json_str(json_first(json_at(result, "pairs")), "verdict"), "not comparable");
}

static void test_algorithms_of_one_comparison_were_interleaved(void **state)
{
        struct world *w = *state;
        const struct json *result, *figure;
        struct err err = ERR_INIT;

        w->sides[0] = of_comparison(w, "merge");
        w->sides[1] = of_comparison(w, "quick");
        result = versus(&w->a, w->sides, 2, &err);
        assert_true(json_bool(result, "interleaved", false));
        assert_false(has_note(result, "not interleaved"));
        figure = json_first(json_at(result, "figures"));
        assert_string_equal(json_str(figure, "key"), "cpuUsage");
        assert_string_equal(json_print(&w->a, json_at(figure, "ratios")), "[null,0.5]");
        w->sides[1] = of_comparison(w, NULL);
        assert_null(versus(&w->a, w->sides, 2, &err));
        assert_non_null(strstr(err.text, "ac/x has 2 algorithms; say which one: ac/x#quick, ac/x#merge"));
        w->sides[1] = of_comparison(w, "bubble");
        assert_null(versus(&w->a, w->sides, 2, &err));
        assert_non_null(strstr(err.text, "no algorithm 'bubble'"));
        assert_null(versus(&w->a, w->sides, 1, &err));
}

/* ---- without samples */

static struct versus_side profile(struct world *w, const char *name, const char *sm, bool replay)
{
        const struct json *object = json_build(
                &w->a,
                "{'metadata': {'name': %s}, 'status': {'boundType': 'mixed', 'replay': %p, 'metrics': "
                "{'smThroughput': %s, 'bottleneck': 'balanced'}}}",
                name, (void *)json_truth(&w->a, replay), sm);

        return (struct versus_side){
                .name = name,
                .docs = {.kind = kinds_named(STR("wprof")), .object = object, .profile = object}};
}

static void test_figures_alone(void **state)
{
        struct world *w = *state;
        const struct json *result, *figure;

        w->sides[0] = profile(w, "a", "40", false);
        w->sides[1] = profile(w, "b", "60.5", true);
        result = versus(&w->a, w->sides, 2, NULL);
        assert_false(json_bool(result, "tested", true));
        assert_null(json_at(result, "pairs"));
        figure = json_first(json_at(result, "figures"));
        assert_string_equal(json_print(&w->a, figure),
                            "{\"key\":\"smThroughput\",\"title\":\"compute "
                            "throughput\",\"unit\":\"%\",\"values\":[{\"value\":40},"
                            "{\"value\":60.5}],\"ratios\":[null,1.5125]}");
        assert_int_equal(json_len(json_at(result, "figures")), 1);
        assert_true(has_note(result, "b are replayed"));
        assert_true(has_note(result, "no samples of both"));
}

/* Whatever a pod wrote into its ConfigMap. */
static void test_odd_samples(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{\"columns\": 1, \"rows\": 2}",
                "{\"columns\": [\"algorithm\", \"time\"], \"rows\": [[\"sort\", 1]]}",
                "{\"columns\": [\"algorithm\", \"iteration\", \"failure\", \"time\"], \"rows\": [1, [], "
                "[\"sort\"], "
                "[\"sort\", 1e300, null, -1], [\"sort\", 0, null, 1e999], [2, \"x\", [], {}]]}",
        };
        struct world *w = *state;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                w->sides[0] = profiling(w, "a", 0.1, "A");
                w->sides[1] = profiling(w, "b", 0.1, "A");
                w->sides[1].docs.samples = parse(&w->a, texts[i]);
                assert_non_null(versus(&w->a, w->sides, 2, NULL));
        }
}

#define in_world(f) cmocka_unit_test_setup_teardown(f, make_world, free_world)

static const struct CMUnitTest tests[] = {
        in_world(test_names),
        in_world(test_runs_of_their_own),
        in_world(test_pods_are_described_by_their_medians),
        in_world(test_a_difference_in_accuracy_counts_when_it_is_one),
        in_world(test_machines_that_differ_are_told),
        in_world(test_other_sizes_are_not_comparable),
        in_world(test_algorithms_of_one_comparison_were_interleaved),
        in_world(test_figures_alone),
        in_world(test_odd_samples),
};

UNIT_MAIN(tests)
