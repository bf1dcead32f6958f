/* What goes between the containers of a pod, and comes back from a checkpoint. */
#include "unit/session_rig.h"

#include <sys/socket.h>
#include <sys/un.h>

#define PLAN                                                                                             \
        "{\"iterations\": 3, \"sizes\": [10], \"algorithms\": [{\"name\": \"a\", \"command\": [\"ok\", " \
        "\"5\"]}, "                                                                                      \
        "{\"name\": \"b\", \"command\": [\"ok\", \"9\"]}]}"

static void test_a_run_arrives_as_it_was_sent(void **state)
{
        static const struct session_env env[] = {{"N", "v\n\"x\""}};
        const char *command[] = {"x", "", "y z", NULL};
        const struct session_job job = {.id = 3,
                                        .command = command,
                                        .env = env,
                                        .n_env = 1,
                                        .expand = true,
                                        .size = 1000,
                                        .seed = 2147483647,
                                        .iteration = -2,
                                        .timeout = 5000000};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct wire_message m = {0};
        struct err err = ERR_INIT;

        assert_int_equal(wire_parse(&a, str_of(json_print(&a, wire_run(&a, &job))), &m, &err), 0);
        assert_int_equal(m.kind, WIRE_RUN);
        assert_int_equal(m.job.id, 3);
        assert_string_equal(m.job.command[2], "y z");
        assert_null(m.job.command[3]);
        assert_string_equal(m.job.env[0].value, "v\n\"x\"");
        assert_true(m.job.expand && m.job.size == 1000 && m.job.seed == 2147483647 && m.job.iteration == -2 &&
                    m.job.timeout == 5000000);
}

static void test_a_sample_and_a_usage_arrive(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s = sample_of_failure("FrameworkUnavailable", "there is no pyspark here");
        const struct measure_usage u = {.memory = 123, .cpu_percent = 99.5, .processes = 2};
        struct wire_message m = {0};
        struct err err = ERR_INIT;

        if (wire_parse(&a, str_of(json_print(&a, wire_sample(&a, 7, &s))), &m, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(m.kind, WIRE_SAMPLE);
        assert_int_equal(m.id, 7);
        assert_string_equal(m.sample.error_reason, "FrameworkUnavailable");
        assert_string_equal(m.sample.error_message, "there is no pyspark here");
        assert_int_equal(m.sample.processes, 0);
        assert_int_equal(wire_parse(&a, str_of(json_print(&a, wire_usage(&a, &u))), &m, &err), 0);
        assert_int_equal(m.kind, WIRE_USAGE);
        assert_true(m.usage.memory == 123 && m.usage.cpu_percent == 99.5 && m.usage.processes == 2);
        assert_int_equal(wire_parse(&a, str_of(json_print(&a, wire_hello(&a, 5))), &m, &err), 0);
        assert_int_equal(m.group, 5);
}

static void test_nonsense_is_refused(void **state)
{
        static const char *const lines[] = {
                "",
                "x",
                "[]",
                "{}",
                "{\"hello\": {}}",
                "{\"hello\": {\"group\": 0}}",
                "{\"hello\": {\"group\": 99}}",
                "{\"run\": {}}",
                "{\"run\": {\"id\": 1, \"command\": [], \"seed\": 1, \"timeout\": 0}}",
                "{\"run\": {\"id\": 1, \"command\": [3], \"seed\": 1, \"timeout\": 0}}",
                "{\"run\": {\"id\": 1, \"command\": [\"x\"], \"seed\": 1, \"timeout\": 0, \"env\": [{}]}}",
                "{\"usage\": {\"memory\": -1}}",
                "{\"sample\": {\"id\": 1}}",
                "{\"sample\": {\"sample\": {}}}",
        };

        for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct wire_message m = {0};
                struct err err = ERR_INIT;

                assert_int_equal(wire_parse(&a, str_of(lines[i]), &m, &err), -1);
                assert_true(err.text[0] != 0);
        }
}

struct end {
        struct wire wire;
        unsigned lines, ends;
        char last[64];
};

static void on_line(struct wire *w, struct str line)
{
        struct end *e = CONTAINER_OF(w, struct end, wire);

        e->lines++;
        snprintf(e->last, sizeof(e->last), "%.*s", STR_ARG(line));
}

static void on_end(struct wire *w)
{
        CONTAINER_OF(w, struct end, wire)->ends++;
}

static void test_lines_go_over_a_connection_in_any_pieces(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct loop *loop = loop_new(NULL, NULL, &err);
        struct end e = {.lines = 0};
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        wire_init(&e.wire, loop, on_line, on_end);
        assert_int_equal(wire_attach(&e.wire, pair[0], &err), 0);
        assert_int_equal(write(pair[1], "{\"a\"", 4), 4);
        loop_turn(loop, true);
        assert_int_equal(e.lines, 0);
        assert_int_equal(write(pair[1], ":1}\n{}\nrest", 11), 11);
        loop_turn(loop, true);
        assert_int_equal(e.lines, 2);
        assert_string_equal(e.last, "{}");
        close(pair[1]);
        while (!e.ends)
                loop_turn(loop, true);
        assert_int_equal(e.wire.fd, -1);
        wire_send(&e.wire, json_object(&a)); /* to nobody */
        wire_close(&e.wire);
        loop_free(loop);
}

/* ---- the coordinator's end, on a clock of the test's */

static const usec_t MINUTE = 60 * USEC_PER_SEC;

struct seen {
        unsigned came, gone;
};

static void on_come(void *arg, unsigned group)
{
        ((struct seen *)arg)->came += group;
}

static void on_gone(void *arg, unsigned group)
{
        ((struct seen *)arg)->gone += group;
}

static int connect_to(const char *dir)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path, sizeof(at.sun_path), "%s/probe.sock", dir);
        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        return fd;
}

static void send_line(int fd, const struct json *line)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = arena_printf(&a, "%s\n", json_print(&a, line));

        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void pass(struct loop *loop, const struct clock *clock, usec_t time)
{
        usec_t until = clock->boot + time;

        while (clock->boot < until)
                loop_turn(loop, true);
}

/* As one does that is frozen: its connection stays open. */
static void test_a_worker_that_runs_something_and_is_silent_is_gone(void **state)
{
        static const struct hub_events events = {.on_come = on_come, .on_gone = on_gone};
        const char *command[] = {"x", NULL};
        const struct measure_usage usage = {.memory = 1, .processes = 1};
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = USEC_PER_SEC * 1700000000};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct loop *loop = loop_new(&clock, NULL, &err);
        char dir[UNIT_DIR_LEN];
        struct seen seen = {0};
        struct hub *h;
        int fd;

        unit_dir(dir);
        h = hub_new(loop, dir, 2, MINUTE, &events, &seen, NULL, &err);
        assert_non_null(h);
        fd = connect_to(dir);
        send_line(fd, wire_hello(&a, 1));
        pass(loop, &clock, MINUTE);
        assert_int_equal(seen.came, 1);
        pass(loop, &clock, 10 * MINUTE); /* it has nothing to say */
        assert_int_equal(seen.gone, 0);
        hub_start(h, 1, &(struct session_job){.command = command});
        for (int i = 0; i < 20; i++) {
                send_line(fd, wire_usage(&a, &usage));
                pass(loop, &clock, MINUTE / 2);
        }
        assert_int_equal(seen.gone, 0);
        pass(loop, &clock, MINUTE / 4);
        assert_int_equal(seen.gone, 0);
        pass(loop, &clock, MINUTE);
        assert_int_equal(seen.gone, 1);
        assert_false(hub_has(h, 1));
        close(fd);
        hub_free(h);
        loop_free(loop);
}

static void fill(struct session_samples *s, unsigned blocks)
{
        struct rig rig = {0};
        char *argv[] = {(char *)"ok", (char *)"500", NULL};

        for (unsigned b = 0; b < blocks; b++)
                for (size_t e = 0; e < plan_entries(s->plan); e++) {
                        struct rig_run run = {.seed = b * 77 + e, .iteration = 0, .size = 10};
                        struct measure_sample sample = rig_sample(&rig, argv, &run);

                        sample.metrics = parse(&rig.arena, "{\"score\": 0.1, \"kind\": \"x\"}");
                        sample.ml = parse(&rig.arena, "{\"accuracy\": 0.9, \"trials\": [1, 2]}");
                        if (b == 2 && e == 1)
                                sample.error_reason = "Odd", sample.error_message = "it was odd";
                        samples_add(s, e, 0, b, &sample);
                }
        samples_note(s, "a note");
        samples_machine(s, parse(&rig.arena, "{\"cpu\": \"x\"}"));
        arena_done(&rig.arena);
}

static void test_a_checkpoint_comes_back_byte_by_byte(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf first = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
        _cleanup_(samples_done) struct session_samples x = {0}, y = {0};
        struct session_plan plan;
        struct err err = ERR_INIT;

        assert_int_equal(session_plan_parse(&a, str_of(PLAN), &plan, &err), 0);
        samples_init(&x, &plan);
        samples_init(&y, &plan);
        fill(&x, 4);
        session_checkpoint_text(&x, &first);
        if (session_checkpoint_parse(&y, buf_str(&first), &err) < 0)
                fail_msg("%s", err.text);
        session_checkpoint_text(&y, &again);
        assert_string_equal(buf_cstr(&again), buf_cstr(&first));
        assert_true(samples_has(&y, 0, 0, 3));
        assert_false(samples_has(&y, 0, 1, 0));
        assert_int_equal(y.rows.v[5].reason, 1);
        assert_string_equal(y.reasons.v[0].message, "it was odd");
}

/* Each is cut where it is kept, in the middle of no character, and is found again. */
static void test_long_texts_come_back_from_a_checkpoint(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        _cleanup_(samples_done) struct session_samples x = {0}, y = {0};
        struct session_plan plan;
        struct err err = ERR_INIT;

        assert_int_equal(session_plan_parse(&a, str_of(PLAN), &plan, &err), 0);
        samples_init(&x, &plan);
        samples_init(&y, &plan);
        for (unsigned b = 0; b < 3; b++) {
                static char reason[101], message[1001], note[1001];
                struct measure_sample s = sample_of_failure(reason, message);

                memset(reason, 'R', 100);
                for (size_t i = 0; i < 1000; i += 2) {
                        memcpy(message + i, "\303\274", 2);
                        memcpy(note + i, "\303\274", 2);
                }
                s.note = note;
                samples_add(&x, 0, 0, b, &s);
                reason[0] = 'R';
                reason[1] = '\303'; /* as of a worker that is no friend */
                reason[63] = '\303';
                reason[64] = '\274';
                reason[2] = '\274';
        }
        assert_in_range(x.reasons.n, 1, 2);
        session_checkpoint_text(&x, &text);
        if (session_checkpoint_parse(&y, buf_str(&text), &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(y.rows.n, 3);
        assert_true(samples_gave_up(&y, 0, 0));
}

/* Whatever is done to one byte: it is taken or refused, and nothing else. */
static void test_a_damaged_checkpoint_is_refused_or_harmless(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        _cleanup_(samples_done) struct session_samples x = {0};
        struct session_plan plan;
        struct err err = ERR_INIT;

        assert_int_equal(session_plan_parse(&a, str_of(PLAN), &plan, &err), 0);
        samples_init(&x, &plan);
        fill(&x, 2);
        session_checkpoint_text(&x, &text);
        for (size_t i = 0; i < text.n; i += 7) {
                static const char with[] = "9-[]\"x";
                char was = text.p[i];

                for (size_t k = 0; k < strlen(with); k++) {
                        _cleanup_(samples_done) struct session_samples y = {0};

                        samples_init(&y, &plan);
                        text.p[i] = with[k];
                        if (session_checkpoint_parse(&y, buf_str(&text), &err) < 0)
                                assert_int_equal(y.rows.n, 0);
                        else
                                vec_foreach (row, &y.rows)
                                        assert_true(row->entry < 2 && row->reason <= y.reasons.n);
                }
                text.p[i] = was;
        }
}

/* What the relay takes: 4 MiB as it is, 900 KiB gzipped with all else. */
static void check_fits(struct arena *a, unsigned iterations, size_t columns)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4 << 20), packed = BUF_INIT(4 << 20);
        _cleanup_(samples_done) struct session_samples s = {0};
        struct session_plan plan;
        struct err err = ERR_INIT;
        struct rng rng;

        assert_int_equal(
                session_plan_parse(a,
                                   str_of(arena_printf(a,
                                                       "{\"iterations\": %u, \"warmup\": 0, \"algorithms\": "
                                                       "[{\"name\": \"a\", \"command\": [\"x\"]}, {\"name\": "
                                                       "\"b\", \"command\": [\"x\"]}]}",
                                                       iterations)),
                                   &plan, &err),
                0);
        samples_init(&s, &plan);
        assert_int_equal(s.columns, columns);
        rng_seed(&rng, 1);
        for (unsigned i = 0; i < iterations * 2; i++) {
                struct session_row *row = vec_push(&s.rows);

                *row = (struct session_row){.entry = (uint16_t)(i % 2), .block = i / 2};
                row->v = arena_alloc(&s.arena, s.columns * sizeof(double));
                for (size_t c = 0; c < s.columns; c++)
                        row->v[c] = column_round((enum column)c,
                                                 0.1 + (double)rng_below(&rng, 1000000000) / 1e10);
                row->v[COLUMN_STARTED] = 1700000000 + i;
                row->v[COLUMN_MEMORY] = (double)(1000000 + rng_below(&rng, 1000) * 4096);
        }
        session_checkpoint_text(&s, &text);
        assert_false(text.overflow);
        assert_int_equal(gzip_add(&packed, buf_str(&text), &err), 0);
        assert_in_range(packed.n, 1, 800 * 1024);
}

static void test_the_checkpoint_of_the_largest_plan_fits(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        check_fits(&a, SESSION_DETAILED_MAX / 2, COLUMN_MAX_);
        check_fits(&a, SESSION_RUNS_MAX / 2, COLUMN_CORE_);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_arrives_as_it_was_sent),
        cmocka_unit_test(test_a_sample_and_a_usage_arrive),
        cmocka_unit_test(test_nonsense_is_refused),
        cmocka_unit_test(test_lines_go_over_a_connection_in_any_pieces),
        cmocka_unit_test(test_a_worker_that_runs_something_and_is_silent_is_gone),
        cmocka_unit_test(test_a_checkpoint_comes_back_byte_by_byte),
        cmocka_unit_test(test_long_texts_come_back_from_a_checkpoint),
        cmocka_unit_test(test_a_damaged_checkpoint_is_refused_or_harmless),
        cmocka_unit_test(test_the_checkpoint_of_the_largest_plan_fits),
};
UNIT_MAIN(tests)
