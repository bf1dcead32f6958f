/*
 * Any order of things: what a workload writes, faults of the API, two pods of one Job, relays that are killed. The rig
 * looks at every change of the status ConfigMap; here is what must hold at the end. A seed that fails is printed.
 */
#include "unit/relay_rig.h"

enum { QUICK_SEEDS = 100, SEEDS = 2000, SOAK_SEEDS = 50000, ACTIONS = 24 };

struct world {
        struct clock clock;
        struct loop *loop;
        struct kube *kube;
        struct rng rng;
        struct pod *pods; /* two */
        bool rivals; /* both pods start at once, and either may be the last; else the second comes after the first */
        bool gone; /* the first pod, for good */
};

static bool chance(struct world *w, unsigned percent)
{
        return rng_below(&w->rng, 100) < percent;
}

static struct pod *any_pod(struct world *w)
{
        return &w->pods[rng_below(&w->rng, 2)];
}

static bool lives(const struct pod *p)
{
        return p->alive >= 0;
}

/* ---- what may happen */

static void do_report(struct world *w, struct pod *p)
{
        static const char *const phases[] = {"Warmup", "Measure", "Measure", "Complete", "Failed"};

        if (lives(p))
                pod_report(p, phases[rng_below(&w->rng, chance(w, 10) ? 5 : 3)]);
}

/* In place and in pieces, with time between them for somebody to look. */
static void do_torn(struct world *w, struct pod *p)
{
        const char *text = status_text(p, "Measure");
        char half[256];

        if (!lives(p))
                return;
        snprintf(half, sizeof(half), "%.*s", (int)rng_below(&w->rng, strlen(text)), text);
        pod_scribble(p, half);
        pass(w->loop, rng_below(&w->rng, 3) * 400 * USEC_PER_MS);
        if (chance(w, 70))
                pod_scribble(p, text);
}

static void do_old(struct world *w, struct pod *p)
{
        if (!lives(p) || !p->sequence)
                return;
        p->sequence -= (unsigned)rng_below(&w->rng, p->sequence);
        pod_report(p, "Measure");
}

static void do_vanish(struct world *w, struct pod *p)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", p->dir, RUN_STATUS_FILE);
        unlink(path);
}

static void do_result(struct world *w, struct pod *p)
{
        if (!lives(p))
                return;
        snprintf(p->result, sizeof(p->result), "{\"of\": \"%s %u\"}", p->uid, p->sequence);
        pod_write(p, RUN_RESULT_FILE, p->result);
}

static void do_checkpoint(struct world *w, struct pod *p)
{
        if (lives(p))
                pod_write(p, RUN_CHECKPOINT_FILE, "{}");
}

static void do_kill_relay(struct world *w, struct pod *p)
{
        if (!p->relay || p->exit_status >= 0)
                return;
        pod_relay_kill(p);
        if (chance(w, 50))
                pass(w->loop, rng_below(&w->rng, 3 * USEC_PER_SEC));
        if (!(p == w->pods && w->gone))
                pod_relay(p, w->kube);
}

static void do_second_pod(struct world *w, struct pod *p)
{
        p = &w->pods[1];
        if (p->relay || (!w->rivals && !w->kube->fence.pod[0]))
                return;
        pod_start(p);
        pod_relay(p, w->kube);
}

static void do_first_pod_goes(struct world *w, struct pod *p)
{
        if (w->gone || w->rivals || !w->pods[1].relay || chance(w, 50))
                return;
        w->gone = true;
        pod_relay_kill(&w->pods[0]);
        pod_kill(&w->pods[0]);
}

static void do_end(struct world *w, struct pod *p)
{
        if (!lives(p))
                return;
        if (chance(w, 20))
                pod_kill(p);
        else
                pod_end(p, chance(w, 70) ? "{\"code\": 0}" : "{\"signal\": 9, \"oom\": true}");
}

static void do_long_silence(struct world *w, struct pod *p)
{
        pass(w->loop, rng_below(&w->rng, 70 * USEC_PER_SEC));
}

static void act(struct world *w)
{
        static const struct {
                unsigned weight;
                void (*fn)(struct world *w, struct pod *p);
        } actions[] = {{40, do_report}, {8, do_torn},         {4, do_old},           {3, do_vanish},
                       {5, do_result},  {3, do_checkpoint},   {8, do_kill_relay},    {6, do_second_pod},
                       {1, do_end},     {4, do_long_silence}, {3, do_first_pod_goes}};
        unsigned n = 0, at;

        for (size_t i = 0; i < ARRAY_LEN(actions); i++)
                n += actions[i].weight;
        at = (unsigned)rng_below(&w->rng, n);
        for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
                if (at < actions[i].weight) {
                        actions[i].fn(w, any_pod(w));
                        return;
                }
                at -= actions[i].weight;
        }
}

/* ---- how it must end */

static void let_end(struct world *w)
{
        w->kube->faults = false;
        for (int i = 0; i < 2; i++)
                if (lives(&w->pods[i]))
                        pod_end(&w->pods[i], "{\"code\": 0}");
        pass(w->loop, 60 * USEC_PER_SEC);
}

static void check_end(struct world *w)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct run_fence *f = &w->kube->fence;
        const struct pod *last = streq(f->pod, w->pods[1].uid) ? &w->pods[1] : &w->pods[0];

        assert_true(run_state_terminal(f->state));
        assert_string_equal(f->pod, last->uid);
        assert_string_equal(map_value(w->kube, 1, RUN_KEY_POD, &a), f->pod);
        if (last->result[0])
                assert_string_equal(map_value(w->kube, 1, RUN_KEY_RESULT, &a), last->result);
        else
                assert_null(map_value(w->kube, 1, RUN_KEY_RESULT, &a));
        for (int i = 0; i < 2; i++)
                if (w->pods[i].relay)
                        assert_int_equal(w->pods[i].exit_status, 0);
        assert_false(w->gone && last == &w->pods[0] && f->state != RUN_SUCCEEDED); /* else it was done */
}

static void run_seed(struct pod pods[2], uint64_t seed)
{
        struct world w = {.pods = pods};

        rng_seed(&w.rng, seed);
        w.loop = rig_loop(&w.clock);
        rng_seed(loop_rng(w.loop), seed);
        w.kube = kube_rig_new(w.loop);
        w.kube->chaos = &w.rng;
        w.kube->faults = true;
        pod_start(&pods[0]);
        pod_relay(&pods[0], w.kube);
        w.rivals = chance(&w, 20);
        if (w.rivals)
                do_second_pod(&w, NULL);
        for (int i = 0; i < ACTIONS; i++) {
                act(&w);
                pass(w.loop, rng_below(&w.rng, chance(&w, 70) ? 50 * USEC_PER_MS : 2 * USEC_PER_SEC));
        }
        let_end(&w);
        check_end(&w);
        if (getenv("RELAY_COUNT"))
                printf("# seed %llu: %llu states, attempt %llu, %zu requests\n", (unsigned long long)seed,
                       (unsigned long long)w.kube->states, (unsigned long long)w.kube->fence.attempt,
                       w.kube->log.n);
        for (int i = 0; i < 2; i++) {
                pod_relay_kill(&pods[i]);
                pod_clean(&pods[i]);
        }
        kube_rig_free(w.kube);
        loop_free(w.loop);
}

static uint64_t current; /* seed; UINT64_MAX: all are done */

static void test_any_order_of_things(void **state)
{
        const char *only = getenv("SEED");
        uint64_t seeds = unit_extent(QUICK_SEEDS, SEEDS, SOAK_SEEDS);
        struct pod pods[2];

        if (access("/dev/shm", W_OK) == 0)
                setenv("TMPDIR", "/dev/shm", 1); /* a hundred thousand renames: no disk needs to see them */
        pod_init(&pods[0], "pod-a");
        pod_init(&pods[1], "pod-b");
        if (only && str_to_u64(str_of(only), &current))
                seeds = current + 1;
        for (; current < seeds; current++)
                run_seed(pods, current);
        current = UINT64_MAX;
        fd_close(pods[0].inotify);
        fd_close(pods[1].inotify);
}

static int say_seed(void **state)
{
        if (current != UINT64_MAX)
                printf("# it was SEED=%llu\n", (unsigned long long)current);
        return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_any_order_of_things, say_seed),
};

UNIT_MAIN(tests)
