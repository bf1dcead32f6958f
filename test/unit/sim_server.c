/* The simulated engine's server on a test's clock: what goes over the wire, and when. */
#include "unit/net_rig.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "probe/sim/sim.h"

struct world {
        struct net_rig net;
        struct sim_model model;
        struct sim_server *server;
        int fd, crashes;
        struct buf got;
};

/* Prefill 10 ms, a step 5 ms. */
static int setup(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        net_rig_init(&w->net);
        w->got = (struct buf)BUF_INIT(SIZE_MAX);
        w->fd = -1;
        w->model = (struct sim_model){
                .name = "m",
                .backend = "vllm",
                .gpus = 1,
                .prefill_base = 10e6,
                .step_base = 5e6,
                .kv_per_gpu = 1000,
                .faults.error_status = 500,
        };
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        fd_close(w->fd);
        sim_server_free(w->server);
        net_rig_done(&w->net);
        buf_done(&w->got);
        free(w);
        return 0;
}

static void on_crash(void *arg)
{
        ((struct world *)arg)->crashes++;
}

static void start(struct world *w, bool stamp, bool tell_crash)
{
        struct err err = ERR_INIT;
        struct sim_server_config config = {
                .loop = w->net.loop,
                .model = &w->model,
                .listen = "127.0.0.1:0",
                .stamp = stamp,
                .on_crash = tell_crash ? on_crash : NULL,
                .arg = w,
        };

        w->server = sim_server_new(&config, &err);
        if (!w->server)
                fail_msg("%s", err.text);
        w->fd = net_connect(sim_server_port(w->server));
}

static void ask(int fd, const char *body)
{
        _cleanup_(free_ptr) char *text = xasprintf(
                "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
                body);

        net_say(fd, text);
}

/* Until the server has all that was sent on FD. */
static void taken(struct world *w, int fd)
{
        int left = 1;

        net_until(&w->net, ioctl(fd, SIOCOUTQ, &left) == 0 && left == 0);
        for (int i = 0; i < 10; i++)
                net_turn(&w->net);
}

static size_t count(const struct buf *b, const char *word)
{
        size_t n = 0;
        const char *at = b->p;

        while (at && (at = memmem(at, (size_t)(b->p + b->n - at), word, strlen(word)))) {
                at++;
                n++;
        }
        return n;
}

static size_t tokens(struct world *w)
{
        for (int i = 0; i < 5; i++)
                net_turn(&w->net);
        net_hear(w->fd, &w->got);
        return count(&w->got, "\"finish_reason\"");
}

static void begin_stream(struct world *w, const char *body)
{
        ask(w->fd, body);
        net_until(&w->net, net_heard(w->fd, &w->got, "text/event-stream"));
}

#define FIVE "{\"model\":\"m\",\"prompt\":\"a b\",\"max_tokens\":5,\"stream\":true}"

static void test_tokens_come_at_their_times(void **state)
{
        struct world *w = *state;

        start(w, false, false);
        begin_stream(w, FIVE);
        net_pass(&w->net, 9999);
        assert_int_equal(tokens(w), 0);
        net_pass(&w->net, 1);
        net_until(&w->net, tokens(w) == 1);
        net_pass(&w->net, 4999);
        assert_int_equal(tokens(w), 1);
        net_pass(&w->net, 1);
        net_until(&w->net, tokens(w) == 2);
        /* late: all that was due comes at once, and what follows is not moved */
        net_pass(&w->net, 14999);
        net_until(&w->net, tokens(w) == 4);
        assert_int_equal(count(&w->got, "[DONE]"), 0);
        net_pass(&w->net, 1);
        net_until(&w->net, tokens(w) == 5);
        assert_int_equal(count(&w->got, "[DONE]"), 1);
        assert_int_equal(count(&w->got, "\"length\""), 1);
        assert_non_null(strstr(buf_cstr(&w->got), "\r\n0\r\n\r\n"));
}

static void test_stamped_chunks_leave_at_once(void **state)
{
        struct world *w = *state;

        start(w, true, false);
        begin_stream(w, FIVE);
        net_pass(&w->net, 10000);
        net_until(&w->net, tokens(w) == 1);
        /* the clock of the rig began at 1 s */
        assert_int_equal(count(&w->got, "\"sonde_ns\":          1010000000}"), 1);
}

static void test_a_whole_answer_comes_with_its_last_token(void **state)
{
        struct world *w = *state;

        start(w, false, false);
        ask(w->fd, "{\"model\":\"m\",\"prompt\":\"a b\",\"max_tokens\":3}");
        taken(w, w->fd);
        net_pass(&w->net, 19999);
        assert_int_equal(w->got.n, 0);
        net_pass(&w->net, 1);
        net_until(&w->net, tokens(w) == 1);
        assert_int_equal(count(&w->got, "\"text\":\"sim sim sim\""), 1);
        assert_int_equal(count(&w->got, "\"total_tokens\":5"), 1);
        assert_int_equal(count(&w->got, "X-Sonde-Simulated: true\r\n"), 1);
}

static void test_who_hangs_up_leaves_the_engine(void **state)
{
        struct world *w = *state;
        int other;

        start(w, false, false);
        begin_stream(w, "{\"model\":\"m\",\"prompt\":\"a b\",\"max_tokens\":998,\"stream\":true}");
        net_pass(&w->net, 10000);
        other = w->fd;
        w->fd = net_connect(sim_server_port(w->server));
        buf_clear(&w->got);
        begin_stream(w, FIVE); /* there is no room for it */
        net_pass(&w->net, 50000);
        assert_int_equal(tokens(w), 0);
        fd_close(other);
        net_until(&w->net, (net_pass(&w->net, 5000), tokens(w) == 1));
}

static void test_a_cut_is_a_reset_and_frees_its_place(void **state)
{
        struct world *w = *state;

        w->model.faults.cut_rate = 1;
        start(w, false, false);
        for (int round = 0; round < 3; round++) {
                buf_clear(&w->got);
                begin_stream(w, "{\"model\":\"m\",\"prompt\":\"a b\",\"max_tokens\":900,\"stream\":true}");
                /* in the second round all of it is due in one call */
                net_pass(&w->net, round == 1 ? 10 * USEC_PER_SEC : 10000);
                net_pass(&w->net, 10 * USEC_PER_SEC);
                net_until(&w->net, !net_hear(w->fd, &w->got));
                assert_int_equal(count(&w->got, "[DONE]"), 0);
                fd_close(w->fd);
                w->fd = net_connect(sim_server_port(w->server));
        }
}

static void test_a_crash_is_told(void **state)
{
        struct world *w = *state;
        int other;

        w->model.faults.crash_after = 1;
        start(w, false, true);
        begin_stream(w, FIVE);
        net_pass(&w->net, 10000);
        net_until(&w->net, tokens(w) == 1);
        other = net_connect(sim_server_port(w->server));
        ask(other, FIVE);
        net_until(&w->net, w->crashes == 1);
        fd_close(other);
        net_until(&w->net, !net_hear(w->fd, &w->got));
        net_pass(&w->net, USEC_PER_SEC);
        assert_int_equal(count(&w->got, "[DONE]"), 0);
        assert_int_equal(sim_server_port(w->server), 0);
}

static void test_a_hang_is_silence(void **state)
{
        struct world *w = *state;
        int other;

        w->model.faults.hang_after = 1;
        start(w, false, false);
        begin_stream(w, FIVE);
        net_pass(&w->net, 10000);
        net_until(&w->net, tokens(w) == 1);
        other = net_connect(sim_server_port(w->server));
        ask(other, FIVE);
        taken(w, other);
        net_pass(&w->net, 100 * USEC_PER_SEC);
        assert_int_equal(tokens(w), 1);
        fd_close(other);
        fd_close(TAKE_FD(w->fd));
        for (int i = 0; i < 10; i++)
                net_turn(&w->net);
        w->fd = net_connect(sim_server_port(w->server));
        net_say(w->fd, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&w->net, net_heard(w->fd, &w->got, "ok\n"));
}

static void test_it_starts_when_the_time_is_over(void **state)
{
        struct world *w = *state;

        w->model.faults.start_delay = USEC_PER_SEC;
        start(w, false, false);
        ask(w->fd, FIVE);
        net_until(&w->net, net_heard(w->fd, &w->got, "503 Service Unavailable"));
        net_pass(&w->net, USEC_PER_SEC);
        begin_stream(w, FIVE);
}

static void test_a_model_without_room_is_no_server(void **state)
{
        struct world *w = *state;
        struct err err = ERR_INIT;

        w->model.weights_kv = 1000;
        assert_null(sim_server_new(
                &(struct sim_server_config){.loop = w->net.loop, .model = &w->model, .listen = "127.0.0.1:0"},
                &err));
        assert_string_equal(err.text, "m does not fit into the memory of 1 GPUs as TP");
}

/* As profilers read it: int(T * C), in doubles. */
static void test_vllms_words_give_the_size_back(void **state)
{
        struct world *w = *state;
        static const char before[] = "Maximum concurrency for ", between[] = " tokens per request: ";
        struct rng rng;

        rng_seed(&rng, 1);
        for (uint64_t i = 1; i < 3000; i++) {
                _cleanup_(buf_done) struct buf line = BUF_INIT(256);
                char *end;
                double tokens_each, times;

                w->model.kv_per_gpu = i < 2000 ? i : rng_below(&rng, 100000000) + 1;
                sim_kv_line(&w->model, &line);
                tokens_each = strtod(buf_cstr(&line) + strlen(before), &end);
                assert_memory_equal(end, between, strlen(between));
                times = strtod(end + strlen(between), &end);
                assert_string_equal(end, "x");
                assert_int_equal((uint64_t)(tokens_each * times), w->model.kv_per_gpu);
        }
}

static void test_the_other_backends_words(void **state)
{
        struct world *w = *state;
        _cleanup_(buf_done) struct buf line = BUF_INIT(256);

        w->model.backend = "sglang";
        sim_kv_line(&w->model, &line);
        assert_string_equal(buf_cstr(&line), "KV Cache is allocated. #tokens: 1000");
        buf_clear(&line);
        w->model.backend = "trtllm";
        sim_kv_line(&w->model, &line);
        assert_non_null(strstr(buf_cstr(&line), "paged KV cache (1000)"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
        TEST(test_tokens_come_at_their_times),
        TEST(test_stamped_chunks_leave_at_once),
        TEST(test_a_whole_answer_comes_with_its_last_token),
        TEST(test_who_hangs_up_leaves_the_engine),
        TEST(test_a_cut_is_a_reset_and_frees_its_place),
        TEST(test_a_crash_is_told),
        TEST(test_a_hang_is_silence),
        TEST(test_it_starts_when_the_time_is_over),
        TEST(test_a_model_without_room_is_no_server),
        TEST(test_vllms_words_give_the_size_back),
        TEST(test_the_other_backends_words),
};

UNIT_MAIN(tests)
