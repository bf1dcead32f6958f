/* What a kubelet and a Prometheus ask the operator. */
#include "unit/operator_rig.h"

struct asked {
        struct health *health;
        struct buf got;
};

/* The whole answer to one request, on a connection of its own. */
static const char *ask(struct rig *r, struct asked *a, const char *method, const char *target)
{
        char text[128];
        int fd = net_connect(health_port(a->health));

        buf_clear(&a->got);
        snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", method,
                 target);
        net_say(fd, text);
        net_until(&r->api.net, !net_hear(fd, &a->got));
        fd_close(fd);
        return buf_cstr(&a->got);
}

static void assert_answer(struct rig *r, struct asked *a, const char *target, unsigned status,
                          const char *body)
{
        const char *text = ask(r, a, "GET", target), *end = strstr(text, "\r\n\r\n");
        char head[32];

        snprintf(head, sizeof(head), "HTTP/1.1 %u ", status);
        assert_non_null(end);
        assert_memory_equal(text, head, strlen(head));
        assert_string_equal(end + 4, body);
}

static struct asked open_health(struct rig *r, struct metrics *metrics)
{
        struct err err = ERR_INIT;
        struct asked a = {.got = BUF_INIT(1 << 20)};

        a.health = health_new(r->api.net.loop, "127.0.0.1:0", r->op, metrics, &err);
        assert_string_equal(err.text, "");
        assert_non_null(a.health);
        return a;
}

static void close_health(struct asked *a)
{
        health_free(a->health);
        buf_done(&a->got);
}

static void it_is_ready_when_the_caches_are_complete(void **state)
{
        struct rig *r = *state;
        struct operator_config config = {.loop = r->api.net.loop,
                                         .kube = r->api.kube,
                                         .controllers = r->controllers,
                                         .n_controllers = 1};
        struct asked a;
        const char *text;

        r->op = operator_new(&config);
        a = open_health(r, NULL);
        assert_answer(r, &a, "/healthz", 200, "ok");
        text = ask(r, &a, "GET", "/readyz");
        assert_memory_equal(text, "HTTP/1.1 503 ", 13);
        assert_non_null(strstr(text, "samples"));
        assert_non_null(strstr(text, "configmaps"));
        close_health(&a);
        operator_free(TAKE_PTR(r->op));
}

static void a_ready_one_says_more_when_asked(void **state)
{
        struct rig *r = *state;
        struct asked a;

        begin(r);
        turns(r);
        a = open_health(r, NULL);
        assert_answer(r, &a, "/readyz", 200, "ok");
        assert_non_null(strstr(ask(r, &a, "GET", "/readyz?verbose"), "HTTP/1.1 200 "));
        close_health(&a);
}

static void metrics_are_there_when_they_are_kept(void **state)
{
        struct rig *r = *state;
        static const struct metric_family family = {"looks_total", "Looks.", METRIC_COUNTER};
        _cleanup_(metrics_free) struct metrics *metrics = metrics_new();
        struct asked a = open_health(r, metrics), none = open_health(r, NULL);

        metric_add(metrics_get(metrics, &family, NULL), 2);
        assert_answer(r, &a, "/metrics", 200,
                      "# HELP looks_total Looks.\n# TYPE looks_total counter\nlooks_total 2\n");
        assert_answer(r, &none, "/metrics", 404, "/healthz, /readyz and /metrics are here\n");
        close_health(&a);
        close_health(&none);
}

static void nothing_else_is_answered(void **state)
{
        struct rig *r = *state;
        struct asked a = open_health(r, NULL);

        assert_answer(r, &a, "/", 404, "/healthz, /readyz and /metrics are here\n");
        assert_non_null(strstr(ask(r, &a, "POST", "/healthz"), "HTTP/1.1 405 "));
        close_health(&a);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(it_is_ready_when_the_caches_are_complete),
        T(a_ready_one_says_more_when_asked),
        T(metrics_are_there_when_they_are_kept),
        T(nothing_else_is_answered),
};

UNIT_MAIN(tests)
