/* One worker of the load generator, in its thread, against a simulated engine in this one: what it keeps of a phase. */
#include "unit/unit.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "probe/load/load_private.h"
#include "probe/sim/sim.h"

struct world {
        struct clock clock;
        struct loop *loop;
        struct sim_model model;
        struct sim_server *server;
        char *url;
        struct load_config config;
        struct load_plan plan;
        struct load_worker *worker;
        struct io told;
};

static int setup(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));
        struct err err = ERR_INIT;

        w->clock = (struct clock)CLOCK_REAL;
        w->model = (struct sim_model){.name = "m",
                                      .backend = "vllm",
                                      .gpus = 1,
                                      .prefill_base = 1e6,
                                      .step_base = 1e6,
                                      .kv_per_gpu = 100000,
                                      .faults.error_status = 500};
        w->loop = loop_new(&w->clock, NULL, &err);
        assert_non_null(w->loop);
        w->server = sim_server_new(
                &(struct sim_server_config){.loop = w->loop, .model = &w->model, .listen = "127.0.0.1:0"},
                &err);
        if (!w->server)
                fail_msg("%s", err.text);
        w->url = xasprintf("http://127.0.0.1:%u", sim_server_port(w->server));
        w->config = (struct load_config){
                .url = w->url, .model = "m", .isl = 5, .osl = 10, .workers = 1, .stop_fd = -1};
        w->plan.told = -1;
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        if (w->worker) {
                load_worker_tell(w->worker, LOAD_QUIT);
                load_worker_join(w->worker);
        }
        load_worker_free(w->worker);
        io_remove(&w->told);
        load_plan_done(&w->plan);
        sim_server_free(w->server);
        loop_free(w->loop);
        free(w->url);
        free(w);
        return 0;
}

static void finished(struct io *io, uint32_t events)
{
        struct world *w = CONTAINER_OF(io, struct world, told);
        uint64_t n;

        assert_int_equal(read(io->fd, &n, sizeof(n)), sizeof(n));
        loop_stop(w->loop, 0);
}

static void carry_out(struct world *w, enum load_order order, struct load_phase *p)
{
        if (p)
                p->began = clock_boot_ns(&w->clock) + 1000000;
        load_worker_tell(w->worker, order);
        loop_run(w->loop);
        assert_int_equal(atomic_load(&w->worker->finished), order);
}

static void hire(struct world *w)
{
        struct err err = ERR_INIT;

        if (load_plan_make(&w->plan, &w->config, &err) < 0)
                fail_msg("%s", err.text);
        w->plan.told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_int_equal(io_add(w->loop, &w->told, w->plan.told, EPOLLIN, finished), 0);
        w->worker = load_worker_new(&w->plan, 0, &err);
        if (!w->worker)
                fail_msg("%s", err.text);
}

static void begin(struct world *w)
{
        struct err err = ERR_INIT;

        if (load_worker_start(w->worker, &err) < 0)
                fail_msg("%s", err.text);
        carry_out(w, LOAD_CONNECT, NULL);
}

static void test_chunks_under_way_are_in_the_bound(void **state)
{
        struct world *w = *state;
        uint64_t chunks = 0, refused = 0;

        w->config.concurrency = 8;
        w->config.requests = 100;
        hire(w);
        w->worker->chunks_max = 25;
        begin(w);
        carry_out(w, LOAD_MEASURE, &w->plan.measured);
        assert_true(w->worker->full);
        assert_in_range(w->worker->records.n, 8, 20); /* those under way, and no others */
        vec_foreach (r, &w->worker->records) {
                chunks += r->n_chunks;
                refused += streq(r->error_kind, "TooLarge");
        }
        assert_true(chunks <= 25);
        assert_true(refused >= 5);
        assert_int_equal(w->worker->chunks_under_way, 0);
        assert_int_equal(w->worker->text_under_way, 0);
        assert_true(w->worker->simulated);
}

static void test_lateness_in_the_warm_up_does_not_count(void **state)
{
        struct world *w = *state;

        w->config.rate = 1000;
        w->config.requests = 4;
        w->config.warmup_requests = 5;
        hire(w);
        begin(w);
        carry_out(w, LOAD_WARM_UP, &w->plan.warmup);
        assert_int_equal(w->worker->records.n, 5);
        assert_int_equal(w->worker->waits.n, 0);
        carry_out(w, LOAD_MEASURE, &w->plan.measured);
        assert_int_equal(w->worker->records.n, 9);
        assert_int_equal(w->worker->waits.n, 4);
        assert_int_equal(w->worker->unsent, 0);
}

static void test_what_was_due_and_not_sent_is_counted(void **state)
{
        struct world *w = *state;

        w->config.rate = 1000;
        w->config.pattern = ARRIVE_CONSTANT;
        w->config.concurrency = 1;
        w->config.duration = 50 * USEC_PER_MS;
        w->config.grace = 60 * USEC_PER_SEC;
        hire(w);
        begin(w);
        carry_out(w, LOAD_MEASURE, &w->plan.measured);
        assert_true(w->worker->unsent > 0);
        assert_int_equal(w->worker->records.n + w->worker->unsent, 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
        TEST(test_chunks_under_way_are_in_the_bound),
        TEST(test_lateness_in_the_warm_up_does_not_count),
        TEST(test_what_was_due_and_not_sent_is_counted),
};

UNIT_MAIN(tests)
