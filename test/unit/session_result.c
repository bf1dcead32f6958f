/* What result.json says of samples whose truth is known, and what it leaves out when there is too much. */
#include "unit/session_rig.h"

struct made {
        struct arena arena;
        struct session_plan plan;
        struct session_samples samples;
        struct rng rng;
};

static void made_init(struct made *m, const char *text)
{
        struct err err = ERR_INIT;

        *m = (struct made){0};
        if (session_plan_parse(&m->arena, str_of(text), &m->plan, &err) < 0)
                fail_msg("%s", err.text);
        samples_init(&m->samples, &m->plan);
        rng_seed(&m->rng, 4);
}

static void made_done(struct made *m)
{
        samples_done(&m->samples);
        arena_done(&m->arena);
}

/* A run of SECONDS, give or take NOISE of it. */
static struct measure_sample run_of(struct made *m, double seconds, double noise, int64_t memory)
{
        double wall = seconds * (1 + noise * (stats_uniform(&m->rng) - 0.5));

        return (struct measure_sample){
                .started = USEC_PER_SEC,
                .wall = wall,
                .user = wall * 0.5,
                .sys = 0,
                .peak_rss = memory,
                .processes = 1,
                .cgroup = {.memory_peak = -1, .throttled_periods = -1},
        };
}

static void add_all(struct made *m, size_t entry, double seconds, double noise, int64_t memory)
{
        for (unsigned pod = 0; pod < m->plan.pods; pod++)
                for (unsigned b = 0; b < plan_blocks(&m->plan); b++) {
                        struct measure_sample s = run_of(m, seconds, noise, memory);

                        samples_add(&m->samples, entry, pod, b, &s);
                }
        m->samples.pods_done = m->plan.pods;
}

static struct json *result_of(struct made *m)
{
        struct json *j = session_result(&m->arena, &m->samples);

        assert_in_range(strlen(json_print(&m->arena, j)), 1, SESSION_RESULT_MAX);
        return j;
}

static double number(const struct json *object, const char *path)
{
        double value = NAN;

        assert_true(json_to_double(json_path(object, path), &value));
        return value;
}

static bool near(double a, double b)
{
        return fabs(a - b) <= 1e-6 * fabs(b) + 1e-12;
}

static void test_one_algorithm(void **state)
{
        struct made m;
        struct json *r, *e;

        made_init(&m, "{\"iterations\": 20, \"sizes\": [1000], \"algorithms\": [{\"name\": \"a\", \"type\": "
                      "\"ml\", "
                      "\"framework\": \"dask\", \"command\": [\"x\"]}]}");
        for (unsigned b = 0; b <= 20; b++) {
                struct measure_sample s = run_of(&m, 0.1, 0, 25000000);

                s.wall = s.user = 0.1 + b * 0.001;
                s.metrics = parse(&m.arena, "{\"score\": 3, \"note\": \"text\"}");
                s.ml = parse(&m.arena, "{\"accuracy\": 0.9, \"selectedFeatures\": [\"f1\"]}");
                samples_add(&m.samples, 0, 0, b, &s);
        }
        r = result_of(&m);
        e = json_index(json_at(r, "algorithms"), 0);
        assert_int_equal(json_int(r, "version", 0), 1);
        assert_string_equal(json_str(r, "unit"), "process in one pod");
        assert_null(json_at(r, "comparison"));
        assert_null(json_at(r, "scaling"));
        assert_null(json_at(r, "left"));
        assert_string_equal(json_str(e, "name"), "a");
        assert_string_equal(json_str(e, "framework"), "dask");
        assert_int_equal(json_int(e, "n", 0), 20);
        assert_int_equal(json_int(e, "iterations", 0), 20);
        assert_true(near(number(e, "executionTime"), 0.1105)); /* without the warm-up */
        assert_true(near(number(e, "memoryUsage"), 25));
        assert_true(near(number(e, "cpuUsage"), 100));
        assert_true(near(number(e, "accuracy"), 0.9));
        assert_true(near(number(e, "throughput"), 1000 / 0.1105));
        assert_true(near(number(e, "metrics.score"), 3));
        assert_string_equal(json_str(json_at(e, "metrics"), "note"), "text");
        assert_int_equal(json_len(json_at(json_at(e, "mlResults"), "selectedFeatures")), 1);
        assert_true(near(number(e, "statistics.time.min"), 0.101));
        assert_string_equal(json_str(json_path(e, "statistics.time"), "ciMethod"), "order statistics");
        assert_null(json_at(e, "cost"));
        assert_null(json_at(e, "efficiency"));
        assert_null(json_at(e, "error"));
        made_done(&m);
}

static bool has_warning(struct made *m, const char *part)
{
        const struct json *list = json_at(result_of(m), "warnings");

        json_foreach (w, list)
                if (strstr(json_cstr(w), part))
                        return true;
        return false;
}

/* Of one type, and yet two: by their names. One that is come back to is no third. */
static void test_nodes_of_one_type_are_machines_of_their_own(void **state)
{
        static const char *const machines[] = {"{\"node\": \"x\", \"cpu\": \"c\"}",
                                               "{\"node\": \"y\", \"cpu\": \"c\"}"};
        struct made m;

        made_init(&m, "{\"iterations\": 2, \"pods\": 3, \"algorithms\": [{\"name\": \"a\", \"command\": "
                      "[\"x\"]}]}");
        add_all(&m, 0, 0.1, 0.01, 1000000);
        samples_machine(&m.samples, parse(&m.arena, machines[0]));
        assert_false(has_warning(&m, "measured on"));
        samples_machine(&m.samples, parse(&m.arena, machines[1]));
        samples_machine(&m.samples, parse(&m.arena, machines[0]));
        assert_true(has_warning(&m, "measured on 2 machines"));
        assert_string_equal(json_str(json_at(result_of(&m), "machine"), "node"), "x"); /* the last one */
        made_done(&m);
}

/* A trend as clear as this must be told. */
static void test_a_drift_is_a_warning(void **state)
{
        struct made m;

        made_init(&m, "{\"iterations\": 20, \"algorithms\": [{\"name\": \"a\", \"command\": [\"x\"]}]}");
        for (unsigned b = 0; b <= 20; b++) {
                struct measure_sample s = run_of(&m, 0.1 + b * 0.01, 0, 25000000);

                samples_add(&m.samples, 0, 0, b, &s);
        }
        assert_true(has_warning(&m, "its times rise from run to run"));
        made_done(&m);
}

#define THREE(more)                                                                    \
        "{\"uid\": \"u\", " more                                                       \
        "\"algorithms\": [{\"name\": \"a\", \"command\": [\"x\"]}, {\"name\": \"b\", " \
        "\"command\": [\"x\"]}, {\"name\": \"c\", \"command\": [\"x\"]}]}"

static void test_the_fastest_is_recommended_with_its_evidence(void **state)
{
        struct made m;
        struct json *r, *c;

        made_init(&m, THREE("\"iterations\": 20, \"baseline\": \"b\", "));
        add_all(&m, 0, 0.1, 0.02, 20000000);
        add_all(&m, 1, 0.2, 0.02, 10000000);
        add_all(&m, 2, 0.3, 0.02, 30000000);
        r = result_of(&m);
        c = json_at(r, "comparison");
        assert_string_equal(json_str(c, "baseline"), "b");
        assert_string_equal(json_str(json_at(c, "fastest"), "name"), "a");
        assert_string_equal(json_str(json_index(json_at(c, "pairs"), 0), "a"), "a");
        assert_string_equal(json_str(json_index(json_at(c, "pairs"), 0), "b"), "b");
        assert_string_equal(json_str(json_index(json_at(c, "pairs"), 0), "verdict"), "faster");
        assert_int_equal(json_len(json_path(c, "pareto.memory")), 2);
        assert_null(json_path(c, "pareto.accuracy"));
        assert_string_equal(json_str(json_index(json_at(r, "recommendations"), 0), "kind"), "fastest");
        assert_int_equal(json_len(json_at(r, "recommendations")), 1);
        assert_non_null(strstr(json_str(json_index(json_at(r, "recommendations"), 0), "text"),
                               "a is the fastest: 2 times as fast as b, the next"));
        made_done(&m);
}

static void test_nothing_is_recommended_where_nothing_is_clear(void **state)
{
        struct made m;
        struct json *r;

        made_init(&m, THREE("\"iterations\": 20, \"price\": {\"perCpuHour\": 1}, "));
        for (size_t i = 0; i < 3; i++)
                add_all(&m, i, 0.1, 0.2, 20000000);
        r = result_of(&m);
        assert_int_equal(json_len(json_at(r, "recommendations")), 0);
        assert_null(json_path(r, "comparison.fastest"));
        made_done(&m);
        made_init(&m, THREE("\"iterations\": 1, "));
        add_all(&m, 0, 0.1, 0, 20000000);
        add_all(&m, 1, 0.2, 0, 20000000);
        add_all(&m, 2, 0.3, 0, 20000000);
        r = result_of(&m);
        assert_int_equal(json_len(json_at(r, "recommendations")), 0);
        assert_string_equal(json_str(json_index(json_path(r, "comparison.pairs"), 0), "verdict"),
                            "inconclusive");
        assert_true(json_int(json_index(json_path(r, "comparison.pairs"), 0), "needed", 0) > 1);
        made_done(&m);
}

static const struct json *recommendation(const struct json *r, const char *begin)
{
        const struct json *list = json_at(r, "recommendations");

        json_foreach (j, list)
                if (strncmp(json_str(j, "text"), begin, strlen(begin)) == 0)
                        return j;
        return NULL;
}

static void test_cost_efficiency_and_requests_that_fit(void **state)
{
        struct made m;
        struct json *r, *e;

        made_init(&m, THREE("\"iterations\": 20, \"price\": {\"perCpuHour\": 3.6, \"perGiBHour\": 7.2, "
                            "\"perRun\": 1, "
                            "\"currency\": \"EUR\"}, \"requests\": {\"cpu\": 2, \"memory\": 1073741824}, "));
        add_all(&m, 0, 10, 0.0001, 107374182);
        add_all(&m, 1, 20, 0.0001, 107374182);
        add_all(&m, 2, 30, 0.0001, 107374182);
        r = result_of(&m);
        e = json_index(json_at(r, "algorithms"), 0);
        /* 1 + 2 CPUs * 10 s * 0.001 + 1 GiB * 10 s * 0.002 */
        assert_true(fabs(number(e, "cost") - 1.04) < 0.001);
        assert_string_equal(json_str(e, "costBasis"), "requested");
        assert_string_equal(json_str(e, "currency"), "EUR");
        assert_true(fabs(number(e, "efficiency.cpu") - 0.25) < 0.001);
        assert_true(fabs(number(e, "efficiency.memory") - 0.1) < 0.001);
        assert_non_null(recommendation(r, "a is the cheapest"));
        assert_non_null(
                recommendation(r, "a memory request of 128Mi fits the algorithms; 1024Mi is asked for"));
        assert_non_null(recommendation(r, "a CPU request of 6"));
        made_done(&m);
}

/* Twenty small ones beside it do not make the large one fit, nor does a run that needed more than all others. */
static void test_requests_fit_the_one_that_needs_most(void **state)
{
        struct made m;
        struct measure_sample s;

        made_init(&m, "{\"iterations\": 10, \"warmup\": 0, \"requests\": {\"memory\": 4294967296}, "
                      "\"sizes\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25], "
                      "\"algorithms\": [{\"name\": \"a\", \"command\": [\"x\"]}]}");
        for (size_t i = 0; i < 25; i++)
                add_all(&m, i, 0.1, 0.01, i == 24 ? 1000000000 : 1000000);
        /* 1.2e9 bytes in steps of 16 MiB */
        assert_non_null(recommendation(result_of(&m), "a memory request of 1152Mi fits a; 4096Mi"));
        made_done(&m);
        made_init(&m, "{\"iterations\": 40, \"warmup\": 0, \"requests\": {\"memory\": 4294967296}, "
                      "\"algorithms\": [{\"name\": \"a\", \"command\": [\"x\"]}]}");
        add_all(&m, 0, 0.1, 0.01, 1000000);
        m.samples.rows.v[7].v[COLUMN_MEMORY] = 2e9;
        assert_non_null(recommendation(result_of(&m), "a memory request of 1920Mi fits a; 4096Mi"));
        /* What failed for want of memory needs more than anybody has seen. */
        s = sample_of_failure("OOMKilled", "killed");
        s.oom = true;
        samples_add(&m.samples, 0, 0, 39, &s);
        assert_null(recommendation(result_of(&m), "a memory request"));
        made_done(&m);
}

/* 15 good runs, and then no more: it is not the fastest, whatever they took. */
static void test_what_was_given_up_is_not_recommended(void **state)
{
        struct measure_sample failed = sample_of_failure("Signal", "it ended by signal 11");
        struct made m;
        struct json *r;

        made_init(&m, THREE("\"iterations\": 20, \"warmup\": 0, \"price\": {\"perCpuHour\": 1}, "));
        for (unsigned b = 0; b < 18; b++) {
                struct measure_sample s = b < 15 ? run_of(&m, 0.01, 0.01, 1000000) : failed;

                samples_add(&m.samples, 0, 0, b, &s);
        }
        add_all(&m, 1, 0.2, 0.01, 1000000);
        add_all(&m, 2, 0.3, 0.01, 1000000);
        r = result_of(&m);
        assert_int_equal(json_int(json_index(json_at(r, "algorithms"), 0), "n", 0), 15);
        assert_string_equal(json_str(json_path(r, "comparison.fastest"), "name"), "b");
        assert_string_equal(json_print(&m.arena, json_path(r, "comparison.pareto.memory")), "[\"b\"]");
        assert_non_null(recommendation(r, "b is the cheapest"));
        assert_string_equal(json_str(json_index(json_path(r, "comparison.pairs"), 0), "verdict"),
                            "not comparable");
        made_done(&m);
}

/* Beside each other no time can be compared: not by a front either. */
static void test_runs_at_once_have_no_front(void **state)
{
        struct made m;
        struct json *r;

        made_init(&m, THREE("\"iterations\": 20, \"parallel\": true, "));
        for (size_t i = 0; i < 3; i++)
                add_all(&m, i, 0.1 * (double)(i + 1), 0.02, 1000000);
        r = result_of(&m);
        assert_true(json_bool(r, "contended", false));
        assert_null(json_path(r, "comparison.pareto"));
        assert_null(json_path(r, "comparison.fastest"));
        made_done(&m);
}

/* Those of the runs that have them; what no GPU tells is not there. */
static void test_figures_of_gpus(void **state)
{
        struct json *e;
        struct made m;

        made_init(&m, "{\"iterations\": 3, \"warmup\": 0, \"algorithms\": [{\"name\": \"a\", \"command\": "
                      "[\"x\"]}, {\"name\": \"b\", \"command\": [\"x\"]}]}");
        for (unsigned b = 0; b < 3; b++) {
                struct measure_sample s = run_of(&m, 1, 0.01, 1000000);

                s.gpu = (struct measure_gpu){b > 0, 2, 1, 40 + 20 * b, 3000000000 + b, NAN};
                samples_add(&m.samples, 0, 0, b, &s);
        }
        add_all(&m, 1, 1, 0.01, 1000000);
        e = json_at(result_of(&m), "algorithms");
        assert_true(near(number(json_index(e, 0), "gpu.utilizationPercent"), 70));
        assert_true(near(number(json_index(e, 0), "gpu.memoryMb"), 3000));
        assert_null(json_path(json_index(e, 0), "gpu.powerWatts"));
        assert_null(json_at(json_index(e, 1), "gpu"));
        made_done(&m);
}

/* In the first of two pods: what came later does not hide it. */
static void test_what_was_given_up_in_an_earlier_pod_says_why(void **state)
{
        struct measure_sample failed = sample_of_failure("Signal", "it ended by signal 11"), s;
        struct made m;

        made_init(&m, "{\"iterations\": 3, \"warmup\": 0, \"pods\": 2, \"algorithms\": [{\"name\": \"a\", "
                      "\"command\": [\"x\"]}]}");
        for (unsigned i = 0; i < 6; i++) {
                s = i < 3 ? failed : run_of(&m, 0.1, 0.01, 1000000);
                samples_add(&m.samples, 0, i / 3, i % 3, &s);
        }
        assert_string_equal(
                json_str(json_path(json_index(json_at(result_of(&m), "algorithms"), 0), "error"), "reason"),
                "Signal");
        made_done(&m);
}

/* What the request says counts, at its ends too. */
static void test_the_least_effect_and_the_tolerance_at_their_ends(void **state)
{
        struct made m;

        made_init(&m, THREE("\"iterations\": 40, \"minEffect\": 0, "));
        add_all(&m, 0, 0.1, 0.0001, 1000000);
        add_all(&m, 1, 0.101, 0.0001, 1000000);
        add_all(&m, 2, 0.102, 0.0001, 1000000);
        assert_string_equal(json_str(json_path(result_of(&m), "comparison.fastest"), "name"), "a");
        made_done(&m);
        made_init(&m, THREE("\"iterations\": 40, \"minEffect\": 1, "));
        for (size_t i = 0; i < 3; i++)
                add_all(&m, i, 0.1 * (double)(i + 2), 0.0001, 1000000);
        assert_null(json_path(result_of(&m), "comparison.fastest"));
        made_done(&m);
        made_init(&m, THREE("\"iterations\": 20, \"accuracyTolerance\": 0, "));
        for (size_t i = 0; i < 3; i++)
                for (unsigned b = 0; b <= 20; b++) {
                        struct measure_sample s = run_of(&m, (double)(i + 1), 0.01, 1000000);

                        s.ml = parse(&m.arena, i == 1 ? "{\"accuracy\": 0.9}" : "{\"accuracy\": 0.8}");
                        samples_add(&m.samples, i, 0, b, &s);
                }
        assert_string_equal(json_str(json_index(json_path(result_of(&m), "comparison.pairs"), 0), "verdict"),
                            "not comparable");
        made_done(&m);
}

/* Twenty runs of each, and a model in each of them. */
static void add_models(struct made *m, size_t entry, double seconds, double accuracy, double scatter)
{
        for (unsigned b = 0; b < plan_blocks(&m->plan); b++) {
                struct measure_sample s = run_of(m, seconds, 0.01, 1000000);

                s.ml = json_object(&m->arena);
                json_set(&m->arena, s.ml, "accuracy",
                         json_double(&m->arena, accuracy + scatter * (b % 2 ? 0.5 : -0.5)));
                samples_add(&m->samples, entry, 0, b, &s);
        }
}

/* No tolerance is said: a model that is faster and worse wins nothing, whatever it costs. */
static void test_a_faster_model_that_is_worse_is_a_trade_off(void **state)
{
        struct made m;
        struct json *r;

        made_init(&m, THREE("\"iterations\": 20, \"price\": {\"perCpuHour\": 1}, "));
        add_models(&m, 0, 1, 0.80, 0.01);
        add_models(&m, 1, 2, 0.90, 0.01);
        add_models(&m, 2, 3, 0.85, 0.01);
        r = result_of(&m);
        assert_null(json_path(r, "comparison.fastest"));
        assert_int_equal(json_len(json_at(r, "recommendations")), 0);
        assert_string_equal(json_print(&m.arena, json_path(r, "comparison.pareto.accuracy")),
                            "[\"a\",\"b\"]");
        assert_string_equal(
                json_str(json_at(r, "comparison"), "summary"),
                "a is faster, but less accurate than b (0.8 against 0.9): no single winner; best in "
                "time and accuracy: a, b");
        assert_string_equal(json_str(json_index(json_path(r, "comparison.pairs"), 0), "verdict"), "slower");
        made_done(&m);
}

static void test_models_that_are_equally_good_have_a_winner(void **state)
{
        static const double scatters[] = {0, 0.1}; /* without any, and such that 0.01 is nothing */
        struct made m;
        struct json *r;

        for (size_t i = 0; i < ARRAY_LEN(scatters); i++) {
                made_init(&m, THREE("\"iterations\": 20, \"price\": {\"perCpuHour\": 1}, "));
                add_models(&m, 0, 1, 0.90, scatters[i]);
                add_models(&m, 1, 2, scatters[i] > 0 ? 0.91 : 0.90, scatters[i]);
                add_models(&m, 2, 3, 0.90, scatters[i]);
                r = result_of(&m);
                assert_string_equal(json_str(json_path(r, "comparison.fastest"), "name"), "a");
                assert_non_null(recommendation(r, "a is the fastest"));
                assert_non_null(recommendation(r, "a is the cheapest"));
                made_done(&m);
        }
}

/* A time that no clock has told is none, and never 0. */
static void test_a_time_beyond_all_measure_is_not_valid(void **state)
{
        struct made m;
        const struct json *e;

        made_init(&m, "{\"iterations\": 3, \"warmup\": 0, \"algorithms\": [{\"name\": \"a\", \"command\": "
                      "[\"x\"]}]}");
        add_all(&m, 0, 1, 0, 1000000);
        m.samples.rows.n = 2;
        for (int i = 0; i < 2; i++) {
                struct measure_sample s = run_of(&m, 1, 0, 1000000);

                s.region = (struct measure_region){.has = true, .wall = 1e200, .user = 1e299, .sys = 0};
                samples_add(&m.samples, 0, 0, 2, &s);
        }
        e = json_index(json_at(result_of(&m), "algorithms"), 0);
        assert_int_equal(json_int(e, "n", 0), 2);
        assert_true(near(number(e, "executionTime"), 1));
        assert_int_equal(json_int(json_at(e, "invalidReasons"), "not measured", 0), 2);
        made_done(&m);
}

/* Texts that are new with every run, and names that are no text, take no room that grows. */
static void test_metrics_take_no_room_that_grows(void **state)
{
        struct made m;

        made_init(&m, "{\"iterations\": 3000, \"warmup\": 0, \"algorithms\": [{\"name\": \"a\", \"command\": "
                      "[\"x\"]}]}");
        for (unsigned b = 0; b < 3000; b++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct measure_sample s = run_of(&m, 1, 0.01, 1000000);

                s.metrics = parse(&a, "{\"a\\u0000b\": 1}");
                json_set(&a, s.metrics, "when", json_string(&a, arena_printf(&a, "at %u", b)));
                samples_add(&m.samples, 0, 0, b, &s);
        }
        assert_int_equal(m.samples.metrics.n, 1);
        assert_string_equal(m.samples.metrics.v[0].text, "at 2999");
        made_done(&m);
}

static void test_a_price_without_requests_is_paid_by_use(void **state)
{
        struct made m;
        const struct json *e;

        made_init(&m,
                  "{\"iterations\": 6, \"price\": {\"perCpuHour\": 3.6}, \"algorithms\": [{\"name\": \"a\", "
                  "\"command\": [\"x\"]}]}");
        add_all(&m, 0, 10, 0, 1000);
        e = json_index(json_at(result_of(&m), "algorithms"), 0);
        assert_true(fabs(number(e, "cost") - 0.005) < 1e-6);
        assert_string_equal(json_str(e, "costBasis"), "used");
        assert_null(json_at(e, "currency"));
        made_done(&m);
}

static void test_growth_with_size(void **state)
{
        struct made m;
        struct json *r, *s;

        made_init(&m, "{\"uid\": \"u\", \"iterations\": 10, \"sizes\": [100, 200, 400, 800], \"algorithms\": "
                      "[{\"name\": "
                      "\"square\", \"command\": [\"x\"]}, {\"name\": \"line\", \"command\": [\"x\"]}]}");
        for (size_t i = 0; i < 4; i++) {
                double n = (double)m.plan.sizes[i];

                add_all(&m, i, n * n * 1e-6, 0.05, 1000000);
                add_all(&m, 4 + i, n * 1e-3, 0.05, 1000000);
        }
        r = result_of(&m);
        s = json_at(r, "scaling");
        assert_int_equal(json_len(s), 2);
        assert_string_equal(json_str(json_index(s, 0), "algorithm"), "square");
        assert_true(number(json_index(s, 0), "ciLow") <= 2 && number(json_index(s, 0), "ciHigh") >= 2);
        assert_true(number(json_index(s, 1), "ciLow") <= 1 && number(json_index(s, 1), "ciHigh") >= 1);
        assert_non_null(recommendation(r, "square is the fastest at every size, least so at 800"));
        assert_int_equal(json_int(json_path(r, "comparison.pareto"), "size", 0), 800);
        made_done(&m);
}

static void test_a_failed_one_is_not_compared(void **state)
{
        struct made m;
        struct measure_sample failed = sample_of_failure("FrameworkUnavailable",
                                                         "there is no pyspark; install it");
        struct json *r, *e;

        made_init(&m, THREE("\"iterations\": 10, "));
        add_all(&m, 0, 0.1, 0.01, 1000000);
        add_all(&m, 1, 0.2, 0.01, 1000000);
        for (unsigned b = 0; b < 3; b++)
                samples_add(&m.samples, 2, 0, b, &failed);
        r = result_of(&m);
        e = json_index(json_at(r, "algorithms"), 2);
        assert_string_equal(json_str(json_at(e, "error"), "reason"), "FrameworkUnavailable");
        assert_string_equal(json_str(json_at(e, "error"), "message"), "there is no pyspark; install it");
        assert_int_equal(json_int(json_at(e, "invalidReasons"), "FrameworkUnavailable", 0),
                         2); /* one was warm-up */
        assert_null(json_at(e, "statistics"));
        assert_non_null(recommendation(r, "a is the fastest: 2 times as fast as b"));
        made_done(&m);
}

/* Pods that are far apart, each with runs that are close together. The last block of a pod is an outlier. */
static void add_pods(struct made *m, size_t entry, double seconds)
{
        for (unsigned pod = 0; pod < m->plan.pods; pod++)
                for (unsigned b = 0; b < plan_blocks(&m->plan); b++) {
                        double level = seconds * (1 + 0.1 * pod);
                        struct measure_sample s = run_of(m, level * (b + 1 == plan_blocks(&m->plan) ? 9 : 1),
                                                         0, (int64_t)(level * 1e9));

                        samples_add(&m->samples, entry, pod, b, &s);
                }
        m->samples.pods_done = m->plan.pods;
}

/* 20 runs in each of 5 pods are 5 values, and their interval is as wide as pods differ. */
static void test_pods_are_the_unit(void **state)
{
        struct made m;
        const struct json *r, *e, *pair;

        made_init(&m, THREE("\"iterations\": 20, \"pods\": 5, "));
        for (size_t i = 0; i < 3; i++)
                add_pods(&m, i, 0.1 * (double)(i + 1));
        r = result_of(&m);
        e = json_index(json_at(r, "algorithms"), 0);
        pair = json_index(json_path(r, "comparison.pairs"), 0);
        assert_string_equal(json_str(r, "unit"), "pod");
        assert_int_equal(json_int(r, "pods", 0), 5);
        assert_int_equal(json_int(e, "n", 0), 100); /* runs */
        assert_int_equal(json_int(json_path(e, "statistics.time"), "n", 0), 5);
        assert_int_equal(json_int(json_path(e, "statistics.memory"), "n", 0), 5);
        assert_int_equal(json_int(json_path(e, "statistics.cpu"), "n", 0), 5);
        assert_true(near(number(e, "executionTime"), 0.12));
        assert_true(near(number(e, "memoryUsage"), 120));
        assert_true(near(number(e, "statistics.time.max"), 0.14)); /* of the pods' medians */
        assert_string_equal(json_str(json_path(e, "statistics.time"), "ciMethod"), "rough");
        assert_true(near(number(e, "statistics.time.ciLow"), 0.10) ||
                    near(number(e, "statistics.time.ciLow"), 0.11));
        assert_int_equal(json_int(pair, "nA", 0), 5);
        assert_int_equal(json_int(pair, "nB", 0), 5);
        assert_true(near(number(pair, "ratio"), 2));
        assert_non_null(recommendation(r, "a is the fastest"));
        assert_non_null(strstr(json_str(recommendation(r, "a is the fastest"), "evidence"), "5 and 5 pods"));
        made_done(&m);
}

/* However many runs they had. */
static void test_too_few_pods_have_no_interval(void **state)
{
        struct made m;
        const struct json *r, *e;

        for (unsigned done = 1; done <= 2; done++) {
                made_init(&m, THREE("\"iterations\": 20, \"pods\": 2, "));
                for (size_t i = 0; i < 3; i++)
                        add_pods(&m, i, 0.1 * (double)(i + 1));
                for (size_t i = m.samples.rows.n;
                     done == 1 && i-- > 0;) /* the second did not come to measure */
                        if (m.samples.rows.v[i].pod == 1)
                                m.samples.rows.v[i] = m.samples.rows.v[--m.samples.rows.n];
                r = result_of(&m);
                e = json_index(json_at(r, "algorithms"), 0);
                assert_int_equal(json_int(e, "n", 0), 20 * done);
                assert_int_equal(json_int(json_path(e, "statistics.time"), "n", 0), done);
                assert_string_equal(json_str(json_path(e, "statistics.time"), "ciMethod"), "n too small");
                assert_null(json_path(e, "statistics.time.ciLow"));
                e = json_index(json_path(r, "comparison.pairs"), 0);
                assert_int_equal(json_int(e, "nA", 0), done);
                assert_string_equal(json_str(e, "verdict"), "inconclusive");
                assert_non_null(strstr(json_str(e, "why"), "pods are too few for any verdict"));
                made_done(&m);
        }
}

/* Growth is told by pods as well: two of them are too few to be sure of it. */
static void test_growth_is_of_pods(void **state)
{
        struct made m;
        const struct json *s;

        made_init(&m, "{\"iterations\": 20, \"pods\": 2, \"sizes\": [100, 200, 400, 800], \"algorithms\": "
                      "[{\"name\": \"a\", \"command\": [\"x\"]}]}");
        for (size_t i = 0; i < 4; i++)
                add_pods(&m, i, (double)m.plan.sizes[i] * 1e-3);
        s = json_index(json_at(result_of(&m), "scaling"), 0);
        assert_true(fabs(number(s, "exponent") - 1) < 1e-6);
        assert_true(json_bool(s, "rough", false));
        made_done(&m);
}

/* 64 algorithms at 2 sizes with names as long as may be, metrics and models. */
static void test_too_much_is_left_out_until_it_fits(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SESSION_PLAN_MAX);
        struct made m;
        struct json *r;

        buf_adds(&text, "{\"iterations\": 2, \"warmup\": 0, \"sizes\": [1, 2], \"algorithms\": [");
        for (int i = 0; i < 64; i++)
                buf_printf(&text, "%s{\"name\": \"%0250d\", \"type\": \"custom\", \"command\": [\"x\"]}",
                           i ? "," : "", i);
        buf_adds(&text, "]}");
        made_init(&m, buf_cstr(&text));
        for (size_t i = 0; i < plan_entries(&m.plan); i++)
                for (unsigned b = 0; b < 2; b++) {
                        struct measure_sample s = run_of(&m, 0.1 * (double)(i + 1), 0.01, 1000000);

                        s.metrics = parse(&m.arena, "{\"one\": 1, \"two\": 2, \"three\": \"three\"}");
                        s.ml = parse(&m.arena,
                                     "{\"trials\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}");
                        samples_add(&m.samples, i, 0, b, &s);
                }
        r = result_of(&m);
        assert_int_equal(json_len(json_at(r, "algorithms")), 128);
        assert_true(json_len(json_at(r, "left")) > 0);
        assert_int_equal(json_int(json_index(json_at(r, "algorithms"), 127), "n", 0), 2);
        assert_non_null(json_at(json_index(json_at(r, "algorithms"), 127), "executionTime"));
        made_done(&m);
}

/* The same with names that double when they are written, and errors in all of them. */
static void test_the_longest_result_fits(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SESSION_PLAN_MAX);
        struct measure_sample failed;
        char message[400] = {0};
        struct made m;

        buf_adds(&text, "{\"iterations\": 9, \"warmup\": 0, \"sizes\": [1000000000000, 2000000000000], "
                        "\"algorithms\": [");
        for (int i = 0; i < 64; i++) {
                buf_printf(&text, "%s{\"name\": \"", i ? "," : "");
                for (int k = 0; k < 253; k++)
                        buf_adds(&text, "\\\"");
                buf_adds(&text, "\", \"command\": [\"x\"]}");
        }
        buf_adds(&text, "]}");
        memset(message, '"', sizeof(message) - 1);
        failed = sample_of_failure("AReasonThatIsAsLongAsReasonsMayBeAndThenSomeMoreOfItToBeCutInTheEnd",
                                   message);
        failed.note = message;
        made_init(&m, buf_cstr(&text));
        for (size_t i = 0; i < plan_entries(&m.plan); i++)
                for (unsigned b = 0; b < 9; b++) {
                        struct measure_sample s = run_of(&m, 0.123456789, 0.01, 123456789);

                        s.metrics = parse(&m.arena, "{\"accuracy\": 0.123456789}");
                        samples_add(&m.samples, i, 0, b, b < 6 ? &s : &failed);
                }
        assert_int_equal(json_len(json_at(result_of(&m), "algorithms")), 128);
        made_done(&m);
}

static void test_a_long_model_is_cut_and_says_so(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct made m;
        struct measure_sample s;
        const struct json *ml;

        made_init(&m, "{\"warmup\": 0, \"algorithms\": [{\"name\": \"a\", \"command\": [\"x\"]}]}");
        buf_adds(&text, "{\"accuracy\": 0.5, \"trials\": [");
        for (int i = 0; i < 5000; i++)
                buf_printf(&text, "%s{\"params\": {\"depth\": %d}, \"score\": 0.%d}", i ? "," : "", i, i);
        buf_adds(&text, "]}");
        s = run_of(&m, 1, 0, 1000);
        s.ml = parse(&m.arena, buf_cstr(&text));
        samples_add(&m.samples, 0, 0, 0, &s);
        ml = json_at(json_index(json_at(result_of(&m), "algorithms"), 0), "mlResults");
        assert_true(json_bool(ml, "cut", false));
        assert_in_range(json_len(json_at(ml, "trials")), 100, 1024);
        assert_true(near(number(ml, "accuracy"), 0.5));
        made_done(&m);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_algorithm),
        cmocka_unit_test(test_nodes_of_one_type_are_machines_of_their_own),
        cmocka_unit_test(test_a_drift_is_a_warning),
        cmocka_unit_test(test_the_fastest_is_recommended_with_its_evidence),
        cmocka_unit_test(test_nothing_is_recommended_where_nothing_is_clear),
        cmocka_unit_test(test_cost_efficiency_and_requests_that_fit),
        cmocka_unit_test(test_figures_of_gpus),
        cmocka_unit_test(test_runs_at_once_have_no_front),
        cmocka_unit_test(test_requests_fit_the_one_that_needs_most),
        cmocka_unit_test(test_what_was_given_up_is_not_recommended),
        cmocka_unit_test(test_what_was_given_up_in_an_earlier_pod_says_why),
        cmocka_unit_test(test_the_least_effect_and_the_tolerance_at_their_ends),
        cmocka_unit_test(test_a_faster_model_that_is_worse_is_a_trade_off),
        cmocka_unit_test(test_models_that_are_equally_good_have_a_winner),
        cmocka_unit_test(test_a_time_beyond_all_measure_is_not_valid),
        cmocka_unit_test(test_metrics_take_no_room_that_grows),
        cmocka_unit_test(test_a_price_without_requests_is_paid_by_use),
        cmocka_unit_test(test_growth_with_size),
        cmocka_unit_test(test_a_failed_one_is_not_compared),
        cmocka_unit_test(test_pods_are_the_unit),
        cmocka_unit_test(test_too_few_pods_have_no_interval),
        cmocka_unit_test(test_growth_is_of_pods),
        cmocka_unit_test(test_too_much_is_left_out_until_it_fits),
        cmocka_unit_test(test_the_longest_result_fits),
        cmocka_unit_test(test_a_long_model_is_cut_and_says_so),
};
UNIT_MAIN(tests)
