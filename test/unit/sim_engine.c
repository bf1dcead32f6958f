/*
 * The simulated engine, by cases that can be computed by hand: prefill 10 ms and 1 ms a token, a step 5 ms, 1 ms a request and
 * 0.1 ms a token in the KV cache.
 */
#include "unit/unit.h"

#include "probe/sim/prefix.h"
#include "probe/sim/sim.h"

enum { SEEN_MAX = 20000 };
#define MS 1000000u

struct seen {
        const struct sim_request *request;
        uint32_t token;
        nsec_t at;
};

struct world {
        struct sim_model model;
        struct sim_engine *engine;
        size_t n;
        struct seen seen[SEEN_MAX];
};

static void token_came(void *arg, struct sim_request *r, uint32_t token, nsec_t at)
{
        struct world *w = arg;

        assert_true(w->n < SEEN_MAX);
        w->seen[w->n++] = (struct seen){r, token, at};
}

static int setup(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        w->model = (struct sim_model){
                .name = "m",
                .gpus = 1,
                .prefill_base = 10 * MS,
                .prefill_token = MS,
                .step_base = 5 * MS,
                .step_request = MS,
                .step_kv = 1e5,
                .kv_per_gpu = 100000,
                .seed = 1,
        };
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        sim_engine_free(w->engine);
        free(w);
        return 0;
}

static struct sim_engine *start(struct world *w)
{
        sim_engine_free(w->engine);
        w->n = 0;
        return w->engine = sim_engine_new(&w->model, token_came, w);
}

static void arrive(struct world *w, struct sim_request *r, nsec_t now)
{
        struct err err;

        assert_int_equal(sim_arrive(w->engine, r, now, &err), 0);
}

static void run_to_the_end(struct world *w)
{
        while (sim_next(w->engine) != UINT64_MAX)
                sim_advance(w->engine, sim_next(w->engine));
}

static void saw(const struct world *w, size_t i, const struct sim_request *r, uint32_t token, nsec_t at)
{
        assert_true(i < w->n);
        assert_ptr_equal(w->seen[i].request, r);
        assert_int_equal(w->seen[i].token, token);
        assert_int_equal(w->seen[i].at, at);
}

static void test_one_request(void **state)
{
        struct world *w = *state;
        struct sim_request r = {.prompt = 1, .isl = 20, .osl = 3};

        start(w);
        assert_int_equal(sim_next(w->engine), UINT64_MAX);
        arrive(w, &r, 100 * MS);
        assert_int_equal(sim_next(w->engine), 130 * MS);
        assert_int_equal(sim_waiting(w->engine), 1);
        sim_advance(w->engine, 130 * MS - 1);
        assert_int_equal(w->n, 0);
        sim_advance(w->engine, 130 * MS);
        assert_int_equal(w->n, 1);
        assert_int_equal(sim_running(w->engine), 1);
        assert_int_equal(sim_waiting(w->engine), 0);
        run_to_the_end(w);
        saw(w, 0, &r, 1, 130 * MS);
        /* 5 + 1 + 2.1 for 21 tokens in the cache, then 22 */
        saw(w, 1, &r, 2, 138100000);
        saw(w, 2, &r, 3, 138100000 + 8200000);
        assert_int_equal(w->n, 3);
        assert_int_equal(sim_running(w->engine), 0);
}

static void test_a_single_token_is_the_prefill_alone(void **state)
{
        struct world *w = *state;
        struct sim_request r = {.prompt = 1, .isl = 5, .osl = 1};

        start(w);
        arrive(w, &r, 0);
        run_to_the_end(w);
        assert_int_equal(w->n, 1);
        saw(w, 0, &r, 1, 15 * MS);
}

static void test_two_at_once_are_prefilled_in_turn_before_any_decoding(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 10, .osl = 2}, b = {.prompt = 2, .isl = 30, .osl = 3};

        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        run_to_the_end(w);
        saw(w, 0, &a, 1, 20 * MS);
        saw(w, 1, &b, 1, 60 * MS);
        /* 5 + 2 + 0.1 * (11 + 31) */
        saw(w, 2, &a, 2, 60 * MS + 11200000);
        saw(w, 3, &b, 2, 60 * MS + 11200000);
        /* 5 + 1 + 0.1 * 32 */
        saw(w, 4, &b, 3, 71200000 + 9200000);
        assert_int_equal(w->n, 5);
}

static void test_who_comes_in_a_step_waits_for_its_end(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 10, .osl = 3}, b = {.prompt = 2, .isl = 10, .osl = 1};

        start(w);
        arrive(w, &a, 0);
        sim_advance(w->engine, 20 * MS); /* a step of 7.1 ms has begun */
        arrive(w, &b, 20 * MS);
        run_to_the_end(w);
        saw(w, 0, &a, 1, 20 * MS);
        saw(w, 1, &a, 2, 27100000);
        saw(w, 2, &b, 1, 47100000);
        saw(w, 3, &a, 3, 47100000 + 7200000);
}

static void test_the_queue_waits_for_kv_in_order(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 50, .osl = 2}, b = {.prompt = 2, .isl = 60, .osl = 1},
                           small = {.prompt = 3, .isl = 1, .osl = 1};

        w->model.kv_per_gpu = 100;
        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        arrive(w, &small, 0); /* it would fit, but the head of the queue goes first */
        run_to_the_end(w);
        saw(w, 0, &a, 1, 60 * MS);
        saw(w, 1, &a, 2, 60 * MS + 11100000);
        saw(w, 2, &b, 1, 71100000 + 70 * MS);
        saw(w, 3, &small, 1, 141100000 + 11 * MS);
}

static void test_max_batch_bounds_who_runs(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 10, .osl = 2}, b = {.prompt = 2, .isl = 10, .osl = 2};

        w->model.max_batch = 1;
        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        run_to_the_end(w);
        saw(w, 0, &a, 1, 20 * MS);
        saw(w, 1, &a, 2, 27100000);
        saw(w, 2, &b, 1, 47100000);
        saw(w, 3, &b, 2, 54200000);
}

static void test_what_can_never_fit_is_refused(void **state)
{
        struct world *w = *state;
        struct sim_request r = {.prompt = 1, .isl = 99, .osl = 2}, none = {.prompt = 1, .isl = 1};
        struct err err = ERR_INIT;

        w->model.kv_per_gpu = 100;
        start(w);
        assert_int_equal(sim_arrive(w->engine, &r, 0, &err), -1);
        assert_int_equal(err.code, E_TOO_LARGE);
        assert_string_equal(err.text, "99 tokens of prompt and 2 to make need more than the KV cache's 100");
        assert_int_equal(sim_arrive(w->engine, &none, 0, &err), -1);
        assert_int_equal(err.code, E_INVALID);
        r.osl = 1;
        arrive(w, &r, 0);
        run_to_the_end(w);
        assert_int_equal(w->n, 1);
}

static void test_who_leaves_while_running_frees_its_place_after_the_step(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 10, .osl = 50}, b = {.prompt = 2, .isl = 10, .osl = 2},
                           c = {.prompt = 3, .isl = 30, .osl = 1};

        w->model.kv_per_gpu = 75;
        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        arrive(w, &c, 0); /* waits for a's 60 */
        sim_advance(w->engine, 41 * MS);
        sim_leave(w->engine, &a, 41 * MS);
        assert_int_equal(sim_running(w->engine), 1);
        run_to_the_end(w);
        saw(w, 0, &a, 1, 20 * MS);
        saw(w, 1, &b, 1, 40 * MS);
        /* the step began with both: 5 + 2 + 2.2 */
        saw(w, 2, &b, 2, 49200000);
        saw(w, 3, &c, 1, 89200000);
        assert_int_equal(w->n, 4);
}

static void test_who_leaves_in_its_prefill_has_used_the_time(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 10, .osl = 5}, b = {.prompt = 2, .isl = 10, .osl = 1},
                           c = {.prompt = 3, .isl = 10, .osl = 1};

        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        arrive(w, &c, 0);
        sim_leave(w->engine, &b, 1 * MS); /* in the queue: as if it had never been there */
        sim_leave(w->engine, &a, 2 * MS);
        sim_leave(w->engine, &a, 2 * MS); /* twice does no harm */
        run_to_the_end(w);
        assert_int_equal(w->n, 1);
        saw(w, 0, &c, 1, 40 * MS);
}

static void test_leaving_late_gives_no_more_tokens_but_moves_time_on(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 1, .isl = 10, .osl = 3}, b = {.prompt = 2, .isl = 10, .osl = 2};

        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        sim_leave(w->engine, &a, 1000 * MS); /* all has happened before, and a has ended by itself */
        assert_int_equal(w->n, 2);
        saw(w, 0, &b, 1, 40 * MS);
        saw(w, 1, &b, 2, 49200000);
        assert_int_equal(sim_next(w->engine), UINT64_MAX);
}

static void test_called_late_the_times_are_the_same(void **state)
{
        struct world *w = *state;
        struct sim_request r[20];
        static struct seen exact[2000];
        size_t n = 0;

        w->model.kv_per_gpu = 400;
        for (int late = 0; late < 2; late++) {
                start(w);
                for (uint32_t i = 0; i < ARRAY_LEN(r); i++) {
                        r[i] = (struct sim_request){.prompt = i, .isl = 10 + i, .osl = 5 + i % 7};
                        if (!late)
                                while (sim_next(w->engine) <= i * 13 * MS)
                                        sim_advance(w->engine, sim_next(w->engine));
                        arrive(w, &r[i], i * 13 * MS);
                }
                if (late)
                        sim_advance(w->engine, 1000000 * (nsec_t)MS);
                else
                        run_to_the_end(w);
                if (!late) {
                        n = w->n;
                        memcpy(exact, w->seen, n * sizeof(exact[0]));
                }
        }
        assert_int_equal(w->n, n);
        for (size_t i = 0; i < n; i++)
                saw(w, i, exact[i].request, exact[i].token, exact[i].at);
        for (size_t i = 1; i < n; i++)
                assert_true(exact[i - 1].at <= exact[i].at);
}

static void test_dep_spreads_requests_over_its_ranks(void **state)
{
        struct world *w = *state;
        struct sim_request r[5];

        w->model.gpus = 4;
        w->model.mapping = SIM_DEP;
        start(w);
        for (uint32_t i = 0; i < 5; i++) {
                r[i] = (struct sim_request){.prompt = i, .isl = 10, .osl = 1};
                arrive(w, &r[i], 0);
        }
        run_to_the_end(w);
        for (uint32_t i = 0; i < 4; i++) {
                assert_int_equal(r[i].rank, i);
                saw(w, i, &r[i], 1, 20 * MS);
        }
        assert_int_equal(r[4].rank, 0);
        saw(w, 4, &r[4], 1, 40 * MS);
}

static void test_a_prompt_that_came_before_costs_the_base_alone(void **state)
{
        struct world *w = *state;
        struct sim_request a = {.prompt = 7, .isl = 30, .osl = 1}, b = a,
                           c = {.prompt = 8, .isl = 30, .osl = 1};

        w->model.prefix_cache = true;
        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0); /* by its turn the first has been there */
        arrive(w, &c, 0);
        run_to_the_end(w);
        saw(w, 0, &a, 1, 40 * MS);
        saw(w, 1, &b, 1, 50 * MS);
        saw(w, 2, &c, 1, 90 * MS);
        w->model.prefix_cache = false;
        start(w);
        arrive(w, &a, 0);
        arrive(w, &b, 0);
        run_to_the_end(w);
        saw(w, 1, &b, 1, 80 * MS);
}

static void test_the_prefix_cache_forgets_the_oldest(void **state)
{
        struct prefix_cache c = {0};

        for (uint64_t i = 0; i < PREFIX_MAX; i++)
                prefix_add(&c, i);
        prefix_add(&c, 5);
        assert_true(prefix_has(&c, 0));
        assert_false(prefix_has(&c, PREFIX_MAX));
        for (uint64_t i = 0; i < 3 * PREFIX_MAX / 2; i++)
                prefix_add(&c, PREFIX_MAX + i);
        assert_int_equal(c.n, PREFIX_MAX);
        for (uint64_t i = 0; i < 5 * PREFIX_MAX / 2; i++)
                assert_int_equal(prefix_has(&c, i), i >= 3 * PREFIX_MAX / 2);
        prefix_done(&c);
}

static nsec_t end_with_seed(struct world *w, uint64_t seed)
{
        struct sim_request r = {.prompt = 1, .isl = 10, .osl = 100};

        w->model.seed = seed;
        w->model.jitter = 0.2;
        start(w);
        arrive(w, &r, 0);
        run_to_the_end(w);
        return w->seen[w->n - 1].at;
}

static void test_jitter_is_reproduced_by_its_seed(void **state)
{
        struct world *w = *state;
        nsec_t first = end_with_seed(w, 3);

        assert_int_equal(end_with_seed(w, 3), first);
        assert_int_not_equal(end_with_seed(w, 4), first);
        for (size_t i = 1; i < w->n; i++) {
                double even = 6e6 + 1e5 * (double)(10 + i), gap = (double)(w->seen[i].at - w->seen[i - 1].at);

                assert_true(gap >= 0.8 * even - 1 && gap <= 1.2 * even + 1);
        }
}

static void test_thousands_run_side_by_side(void **state)
{
        enum { MANY = 4000 };
        struct world *w = *state;
        struct sim_request *r = xcalloc(MANY, sizeof(*r));

        start(w);
        for (uint32_t i = 0; i < MANY; i++) {
                r[i] = (struct sim_request){.prompt = i, .isl = 1, .osl = 3};
                arrive(w, &r[i], 0);
        }
        run_to_the_end(w);
        assert_int_equal(w->n, 3 * MANY);
        saw(w, MANY - 1, &r[MANY - 1], 1, (nsec_t)MANY * 11 * MS);
        /* 5 + 4000 + 0.1 * 2 * 4000 */
        saw(w, MANY, &r[0], 2, (nsec_t)MANY * 11 * MS + 4805 * (nsec_t)MS);
        free(r);
}

/* ---- anything goes */

enum { CROWD = 60 };

struct plan {
        struct sim_request r[CROWD];
        nsec_t comes[CROWD], leaves[CROWD]; /* leaves 0: it stays */
        nsec_t times[CROWD][16];
        unsigned n[CROWD];
};

static void note(void *arg, struct sim_request *r, uint32_t token, nsec_t at)
{
        struct plan *p = arg;
        size_t i = (size_t)(r - p->r);

        assert_int_equal(token, ++p->n[i]);
        assert_true(at > p->comes[i]);
        p->times[i][token - 1] = at;
}

static void make_plan(struct plan *p, uint64_t seed)
{
        struct rng rng;
        nsec_t at = 0;

        *p = (struct plan){0};
        rng_seed(&rng, seed);
        for (size_t i = 0; i < CROWD; i++) {
                at += rng_below(&rng, 20 * MS);
                p->comes[i] = at;
                p->leaves[i] = rng_below(&rng, 4) ? 0 : at + rng_below(&rng, 300 * MS);
                p->r[i] = (struct sim_request){.prompt = rng_below(&rng, 20),
                                               .isl = (uint32_t)rng_below(&rng, 30),
                                               .osl = 1 + (uint32_t)rng_below(&rng, 15)};
        }
}

/* All that is planned, in the order of time. OFTEN: the engine is brought up to date in between, too. */
static void follow_plan(const struct sim_model *m, struct plan *p, bool often)
{
        struct sim_engine *e = sim_engine_new(m, note, p);
        struct err err;
        size_t come = 0;

        for (;;) {
                nsec_t next = come < CROWD ? p->comes[come] : UINT64_MAX;
                size_t who = CROWD;

                for (size_t i = 0; i < come; i++)
                        if (p->leaves[i] && p->leaves[i] < next) {
                                next = p->leaves[i];
                                who = i;
                        }
                while (often && sim_next(e) < next)
                        sim_advance(e, sim_next(e));
                if (who < CROWD) {
                        sim_leave(e, &p->r[who], next);
                        p->leaves[who] = 0;
                } else if (come < CROWD) {
                        assert_int_equal(sim_arrive(e, &p->r[come++], next, &err), 0);
                } else {
                        break;
                }
        }
        sim_advance(e, UINT64_MAX / 2);
        assert_int_equal(sim_running(e) + sim_waiting(e), 0);
        assert_int_equal(sim_next(e), UINT64_MAX);
        sim_engine_free(e);
}

static void test_whatever_comes_and_goes_being_late_changes_nothing(void **state)
{
        struct world *w = *state;
        static struct plan exact, late;
        bool stays[CROWD];

        w->model.jitter = 0.3;
        for (uint64_t seed = 1; seed <= unit_extent(50, 500, 20000); seed++) {
                w->model.seed = seed;
                w->model.gpus = 1 + (unsigned)seed % 3;
                w->model.mapping = seed % 2 ? SIM_DEP : SIM_TP;
                w->model.max_batch = seed % 5 == 0 ? 3 : 0;
                w->model.kv_per_gpu = 60 + seed % 40;
                w->model.prefix_cache = seed % 4 == 0;
                make_plan(&exact, seed);
                late = exact;
                for (size_t i = 0; i < CROWD; i++)
                        stays[i] = !exact.leaves[i];
                follow_plan(&w->model, &exact, true);
                follow_plan(&w->model, &late, false);
                for (size_t i = 0; i < CROWD; i++) {
                        /* who left late may have missed tokens; those it got are the same */
                        assert_true(late.n[i] <= exact.n[i]);
                        assert_memory_equal(late.times[i], exact.times[i], late.n[i] * sizeof(nsec_t));
                        assert_true(exact.n[i] <= exact.r[i].osl);
                        if (!stays[i])
                                continue;
                        assert_int_equal(late.n[i], exact.r[i].osl);
                        assert_int_equal(exact.n[i], exact.r[i].osl);
                }
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
        TEST(test_one_request),
        TEST(test_a_single_token_is_the_prefill_alone),
        TEST(test_two_at_once_are_prefilled_in_turn_before_any_decoding),
        TEST(test_who_comes_in_a_step_waits_for_its_end),
        TEST(test_the_queue_waits_for_kv_in_order),
        TEST(test_max_batch_bounds_who_runs),
        TEST(test_what_can_never_fit_is_refused),
        TEST(test_who_leaves_while_running_frees_its_place_after_the_step),
        TEST(test_who_leaves_in_its_prefill_has_used_the_time),
        TEST(test_leaving_late_gives_no_more_tokens_but_moves_time_on),
        TEST(test_called_late_the_times_are_the_same),
        TEST(test_dep_spreads_requests_over_its_ranks),
        TEST(test_a_prompt_that_came_before_costs_the_base_alone),
        TEST(test_the_prefix_cache_forgets_the_oldest),
        TEST(test_jitter_is_reproduced_by_its_seed),
        TEST(test_thousands_run_side_by_side),
        TEST(test_whatever_comes_and_goes_being_late_changes_nothing),
};

UNIT_MAIN(tests)
