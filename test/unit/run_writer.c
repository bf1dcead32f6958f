/*
 * The writer of the status file: what it writes, what it continues, and that nothing stops it: full disks, directories
 * that have gone, other writers, writers killed at any moment, and somebody who tears at the file.
 */
#include "unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/status.h"
#include "unit/dir.h"

enum { ROUNDS_QUICK = 10, ROUNDS = 40, ROUNDS_SOAK = 600, WRITERS = 2, STATES_A_ROUND = 6, FILLER_MAX = 900 };

static struct clock manual = {.manual = true, .wall = (usec_t)1769220522 * USEC_PER_SEC};
static const struct clock real = CLOCK_REAL;

struct dir {
        char path[UNIT_DIR_LEN];
        int fd;
        struct run_reporter reporter;
        struct err why;
        struct arena arena;
        struct buf text;
};

static int dir_setup(void **state)
{
        struct dir *d = xcalloc(1, sizeof(*d));

        unit_dir(d->path);
        d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(d->fd >= 0);
        manual.wall = (usec_t)1769220522 * USEC_PER_SEC; /* 2026-01-24T02:08:42Z */
        d->reporter = (struct run_reporter){.dir = d->path, .clock = &manual, .why = &d->why};
        d->text = (struct buf)BUF_INIT(RUN_STATUS_FILE_MAX);
        *state = d;
        return 0;
}

static int dir_teardown(void **state)
{
        struct dir *d = *state;

        arena_done(&d->arena);
        buf_done(&d->text);
        close(d->fd);
        free(d);
        return 0;
}

static const char *text_of(struct dir *d)
{
        struct err err = ERR_INIT;

        if (run_file_read(d->fd, RUN_STATUS_FILE, RUN_STATUS_FILE_MAX, &d->text, &err) != 0)
                fail_msg("no status: %s", err.text);
        return buf_cstr(&d->text);
}

static struct run_status status_of(struct dir *d)
{
        struct run_status s;
        struct err err = ERR_INIT;

        text_of(d);
        if (run_status_parse(&d->arena, buf_str(&d->text), clock_wall(d->reporter.clock), &s, &err) < 0)
                fail_msg("refused: %s", err.text);
        return s;
}

static void put(struct dir *d, const char *name, const char *text)
{
        int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, str_of(text), NULL), 0);
        close(fd);
}

static size_t entries(const struct dir *d)
{
        DIR *list = opendir(d->path);
        size_t n = 0;

        assert_non_null(list);
        for (const struct dirent *e = readdir(list); e; e = readdir(list))
                n += !streq(e->d_name, ".") && !streq(e->d_name, "..");
        closedir(list);
        return n;
}

/* ---- what is written */

static void what_is_used_goes_along(void **state)
{
        struct dir *d = *state;
        const struct run_report report = {.phase = "Measuring",
                                          .message = "x",
                                          .gpus = -1,
                                          .has_usage = true,
                                          .memory_mb = 12.5,
                                          .cpu_percent = 97};

        assert_true(run_report(&d->reporter, &report));
        assert_non_null(
                strstr(text_of(d), "\"usage\": {\n    \"memoryMb\": 12.5,\n    \"cpuPercent\": 97\n  }"));
}

static void the_file_is_as_the_design_has_it(void **state)
{
        struct dir *d = *state;
        const struct run_report report = {
                .phase = "DecodeSweep",
                .message = "Profiling decode with 4 GPUs, TP=2/DP=2",
                .has_progress = true,
                .current_step = 5,
                .total_steps = 12,
                .sub_phase = "Benchmarking batch size 256",
                .gpus = 4,
                .mapping = "TP=2/DP=2",
                .best = "TP=4  ITL 11.8 ms",
        };

        assert_true(run_report(&d->reporter, &report));
        assert_string_equal(text_of(d), "{\n"
                                        "  \"phase\": \"DecodeSweep\",\n"
                                        "  \"phaseNumber\": 3,\n"
                                        "  \"totalPhases\": 7,\n"
                                        "  \"message\": \"Profiling decode with 4 GPUs, TP=2/DP=2\",\n"
                                        "  \"timestamp\": \"2026-01-24T02:08:42.000000Z\",\n"
                                        "  \"startedAt\": \"2026-01-24T02:08:42.000000Z\",\n"
                                        "  \"progress\": {\n"
                                        "    \"currentStep\": 5,\n"
                                        "    \"totalSteps\": 12,\n"
                                        "    \"percentage\": 41.7,\n"
                                        "    \"subPhase\": \"Benchmarking batch size 256\"\n"
                                        "  },\n"
                                        "  \"gpuConfig\": {\n"
                                        "    \"currentGpus\": 4,\n"
                                        "    \"parallelMapping\": \"TP=2/DP=2\"\n"
                                        "  },\n"
                                        "  \"bestSoFar\": \"TP=4  ITL 11.8 ms\",\n"
                                        "  \"sequence\": 1\n"
                                        "}\n");
        assert_int_equal(entries(d), 1);
}

static void a_run_ends(void **state)
{
        struct dir *d = *state;
        struct run_status s;
        char error[2000];

        assert_true(run_report_complete(&d->reporter, NULL));
        s = status_of(d);
        assert_string_equal(s.phase, "Complete");
        assert_int_equal(s.phase_number, 8);
        assert_string_equal(s.message, "Profiling completed successfully");
        assert_true(run_report_failed(&d->reporter, NULL, "no GPU"));
        s = status_of(d);
        assert_string_equal(s.phase, "Failed");
        assert_string_equal(s.message, "Profiling failed: no GPU");
        assert_string_equal(s.error, "no GPU");
        /* 3 bytes each: 166 fit into 500 */
        for (size_t i = 0; i + 3 < sizeof(error); i += 3)
                memcpy(error + i, "\xE2\x82\xAC", 4);
        assert_true(run_report_failed(&d->reporter, "NoGPU", error));
        s = status_of(d);
        assert_int_equal(strlen(s.error), 498);
        assert_int_equal(strlen(s.message), strlen("Profiling failed: ") + 498);
        assert_memory_equal(s.error, error, 498);
        assert_string_equal(s.reason, "NoGPU");
}

static void what_readers_would_cut_is_cut(void **state)
{
        struct dir *d = *state;
        char text[RUN_STATUS_FILE_MAX];
        const struct run_report report = {
                .phase = "X",
                .message = text,
                .has_progress = true,
                .current_step = 9,
                .total_steps = 3,
                .sub_phase = text,
                .gpus = -1,
                .mapping = text,
        };
        struct run_status s;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        assert_true(run_report(&d->reporter, &report));
        s = status_of(d);
        assert_int_equal(strlen(s.message), RUN_MESSAGE_MAX);
        assert_int_equal(strlen(s.sub_phase), RUN_SUB_PHASE_MAX);
        assert_int_equal(strlen(s.parallel_mapping), RUN_MAPPING_MAX);
        assert_int_equal(s.current_step, 3);
        assert_int_equal(s.current_gpus, -1);
        assert_int_equal(s.phase_number, 0);
        assert_int_equal(s.total_phases, 0);
}

static void what_is_no_utf8_and_no_phase_is_not_written(void **state)
{
        struct dir *d = *state;

        assert_false(run_report(&d->reporter, &(struct run_report){.phase = "", .message = "m", .gpus = -1}));
        assert_non_null(strstr(d->why.text, "the phase is empty"));
        assert_false(run_report(&d->reporter, &(struct run_report){.phase = "a\x1b", .gpus = -1}));
        assert_int_equal(entries(d), 0);
        assert_true(
                run_report(&d->reporter, &(struct run_report){.phase = "X", .message = "a\xFF", .gpus = -1}));
        assert_string_equal(status_of(d).message, "a\xEF\xBF\xBD");
}

/* ---- what is continued */

static bool say(struct dir *d, const char *phase)
{
        return run_report(&d->reporter, &(struct run_report){.phase = phase, .message = "m", .gpus = -1});
}

static void a_second_writer_goes_on(void **state)
{
        struct dir *d = *state;
        const struct run_plan plan = {.n = 2,
                                      .phases = {{.name = "A", .weight = 1}, {.name = "B", .weight = 1}}};
        usec_t began = manual.wall;
        struct run_status s;

        d->reporter.plan = &plan;
        assert_true(say(d, "A"));
        d->reporter = (struct run_reporter){.dir = d->path, .clock = &manual};
        manual.wall += 60 * USEC_PER_SEC;
        assert_true(say(d, "B"));
        s = status_of(d);
        assert_int_equal(s.started_at, began);
        assert_int_equal(s.timestamp, began + 60 * USEC_PER_SEC);
        assert_int_equal(s.sequence, 2);
        assert_int_equal(s.phase_number, 2);
        assert_int_equal(s.total_phases, 2);
        assert_int_equal(s.plan->n, 2);
        assert_true(run_report_complete(&d->reporter, "done"));
        assert_int_equal(status_of(d).phase_number, 3);
        assert_int_equal(status_of(d).started_at, began);
        /* what follows an end is another run, but the sequence goes on */
        assert_true(say(d, "Initializing"));
        s = status_of(d);
        assert_int_equal(s.started_at, manual.wall);
        assert_null(s.plan);
        assert_int_equal(s.sequence, 4);
}

static void whatever_is_there_a_report_replaces_it(void **state)
{
        static const char *const texts[] = {
                "", "{", "[]", "{\"sequence\":-3}", "{\"sequence\":1e300}", "{\"phase\":3,\"sequence\":0}"};
        struct dir *d = *state;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                put(d, RUN_STATUS_FILE, texts[i]);
                d->reporter.sequence = 0;
                assert_true(say(d, "X"));
                assert_int_equal(status_of(d).sequence, 1);
        }
        put(d, RUN_STATUS_FILE, "{\"phase\":\"\",\"sequence\":41}"); /* refused, but its sequence is one */
        assert_true(say(d, "X"));
        assert_int_equal(status_of(d).sequence, 42);
        put(d, RUN_STATUS_FILE, ""); /* this writer knows better */
        assert_true(say(d, "X"));
        assert_int_equal(status_of(d).sequence, 43);
        put(d, RUN_STATUS_FILE, "{\"phase\":\"X\",\"sequence\":9007199254740992}");
        assert_true(say(d, "X"));
        assert_true(status_of(d).sequence == RUN_SEQUENCE_MAX);
        assert_int_equal(unlinkat(d->fd, RUN_STATUS_FILE, 0), 0);
        assert_int_equal(mkfifoat(d->fd, RUN_STATUS_FILE, 0644), 0);
        assert_true(say(d, "X"));
        assert_string_equal(status_of(d).phase, "X");
        assert_int_equal(entries(d), 1);
}

static void what_a_killed_writer_left_goes(void **state)
{
        struct dir *d = *state;

        put(d, RUN_STATUS_FILE ".tmp", "{\"phase\": \"half");
        assert_true(say(d, "X"));
        assert_int_equal(entries(d), 1);
        assert_int_equal(mkfifoat(d->fd, RUN_STATUS_FILE ".tmp", 0644), 0);
        assert_true(say(d, "X"));
        put(d, "precious", "keep");
        assert_int_equal(symlinkat("precious", d->fd, RUN_STATUS_FILE ".tmp"), 0);
        assert_true(say(d, "X"));
        assert_int_equal(entries(d), 2);
        assert_int_equal(run_file_read(d->fd, "precious", 16, &d->text, NULL), 0);
        assert_str(buf_str(&d->text), "keep");
}

/* ---- what cannot be written */

/* How many lines are in the pipe. */
static size_t lines_in(int fd)
{
        char text[4096];
        ssize_t n;
        size_t lines = 0;

        assert_int_equal(fd_set_nonblock(fd), 0);
        n = read(fd, text, sizeof(text));
        for (ssize_t i = 0; i < n; i++)
                lines += text[i] == '\n';
        return lines;
}

static void a_vanished_directory_is_said_once(void **state)
{
        struct dir *d = *state;
        struct log log;
        int out[2];

        assert_int_equal(pipe(out), 0);
        log_init(&log, out[1], LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &manual);
        d->reporter.log = &log;
        assert_int_equal(rmdir(d->path), 0);
        for (int i = 0; i < 5; i++)
                assert_false(say(d, "X"));
        assert_int_equal(lines_in(out[0]), 1);
        assert_non_null(strstr(d->why.text, "cannot report to"));
        /* and when it is back, all goes on */
        assert_int_equal(mkdir(d->path, 0755), 0);
        close(d->fd);
        d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(say(d, "X"));
        assert_string_equal(status_of(d).phase, "X");
        close(out[0]);
        close(out[1]);
}

/* A limit on the size of files stops a write in the middle as a full disk does. */
static void a_full_disk_leaves_the_last_state(void **state)
{
        struct dir *d = *state;
        pid_t child;
        int status;

        assert_true(say(d, "PrefillSweep"));
        child = fork();
        if (child == 0) {
                const struct rlimit small = {.rlim_cur = 20, .rlim_max = 20};

                signal(SIGXFSZ, SIG_IGN);
                _exit(setrlimit(RLIMIT_FSIZE, &small) == 0 && !say(d, "DecodeSweep") &&
                                      !say(d, "DecodeSweep") && d->why.code == E_IO
                              ? 0
                              : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_string_equal(status_of(d).phase, "PrefillSweep");
        assert_int_equal(entries(d), 1);
}

static void a_writer_that_stands_still_stops_nobody(void **state)
{
        struct dir *d = *state;
        _cleanup_(fd_close) int other = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(flock(other, LOCK_EX), 0);
        d->reporter.complained = true; /* so that it waits for 50 ms and not for 2 s */
        assert_false(say(d, "X"));
        assert_int_equal(d->why.code, E_BUSY);
        assert_int_equal(flock(other, LOCK_UN), 0);
        assert_true(say(d, "X"));
}

/* ---- any interleaving */

/* What writers and the reader share. */
struct shared {
        uint64_t written[WRITERS];
};

/* Every state says the same thing in three ways, so that a mixture of two shows. False: it was not written. */
static bool say_whole(struct run_reporter *r, int writer, int64_t n)
{
        char message[FILLER_MAX + 64], phase[32];
        int at = snprintf(message, sizeof(message), "writer %d state %d ", writer, (int)n);
        size_t filler = (size_t)(n * 37 % FILLER_MAX);
        struct run_report report = {.phase = phase,
                                    .message = message,
                                    .has_progress = true,
                                    .current_step = n,
                                    .total_steps = 1000000,
                                    .gpus = writer};

        memset(message + at, 'a' + (int)(n % 26), filler);
        message[(size_t)at + filler] = '\0';
        snprintf(phase, sizeof(phase), "Phase%d", (int)n);
        return run_report(r, &report);
}

static void require_whole(const struct run_status *s)
{
        char expected[FILLER_MAX + 64];
        int at = snprintf(expected, sizeof(expected), "writer %d state %d ", (int)s->current_gpus,
                          (int)s->current_step);
        size_t filler = (size_t)(s->current_step * 37 % FILLER_MAX);

        memset(expected + at, 'a' + (int)(s->current_step % 26), filler);
        expected[(size_t)at + filler] = '\0';
        assert_string_equal(s->message, expected);
        snprintf(expected, sizeof(expected), "Phase%d", (int)s->current_step);
        assert_string_equal(s->phase, expected);
        assert_int_equal(s->total_steps, 1000000);
        assert_true(s->sequence > 0);
}

_noreturn_ static void write_forever(const struct dir *d, struct shared *shared, int writer, int64_t from)
{
        struct run_reporter r = {.dir = d->path, .clock = &real};

        for (int64_t n = from;; n++) {
                if (!say_whole(&r, writer, n % 1000000))
                        continue; /* the other one has stood still for too long while it was its turn */
                __atomic_add_fetch(&shared->written[writer], 1, __ATOMIC_SEQ_CST);
        }
}

static pid_t start_writer(const struct dir *d, struct shared *shared, int writer, int64_t from)
{
        pid_t parent = getpid(), pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                /* not even when the test is killed does it write on */
                alarm(600);
                if (getppid() != parent)
                        _exit(1);
                write_forever(d, shared, writer, from);
        }
        return pid;
}

static void kill_writer(pid_t pid)
{
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Reads once: 0 whole, 1 nothing there, -1 refused. */
static int look(struct dir *d, struct run_status *ret)
{
        int r = run_file_read(d->fd, RUN_STATUS_FILE, RUN_STATUS_FILE_MAX, &d->text, NULL);

        arena_reset(&d->arena, SIZE_MAX);
        if (r != 0)
                return r;
        if (run_status_parse(&d->arena, buf_str(&d->text), clock_wall(&real), ret, NULL) < 0)
                return -1;
        require_whole(ret);
        return 0;
}

static struct shared *shared_new(void)
{
        void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                       0);

        assert_ptr_not_equal(p, MAP_FAILED);
        return p;
}

static uint64_t total(const struct shared *shared)
{
        uint64_t n = 0;

        for (int i = 0; i < WRITERS; i++)
                n += __atomic_load_n(&shared->written[i], __ATOMIC_SEQ_CST);
        return n;
}

static void writers_killed_at_any_moment_leave_whole_states(void **state)
{
        struct dir *d = *state;
        struct shared *shared = shared_new();
        struct run_status s = {0};
        struct rng rng;
        pid_t pids[WRITERS];
        const int rounds = (int)unit_extent(ROUNDS_QUICK, ROUNDS, ROUNDS_SOAK);
        uint64_t highest = 0;

        rng_seed(&rng, 20260124);
        for (int i = 0; i < WRITERS; i++)
                pids[i] = start_writer(d, shared, i, 1);
        for (int round = 0; round < rounds; round++) {
                uint64_t enough = total(shared) + 1 + rng_below(&rng, STATES_A_ROUND);
                int victim = (int)rng_below(&rng, WRITERS);

                for (uint64_t more = rng_below(&rng, 40); total(shared) < enough || more > 0;) {
                        int seen = look(d, &s);

                        if (total(shared) >= enough)
                                more--;
                        if (seen == 1 && !highest)
                                continue; /* not yet */
                        assert_int_equal(seen, 0);
                        assert_true(s.sequence >= highest);
                        highest = s.sequence;
                        assert_in_range(entries(d), 1, 2);
                        if (more > 0 && total(shared) >= enough && rng_below(&rng, 4) == 0)
                                break;
                }
                kill_writer(pids[victim]);
                pids[victim] = start_writer(d, shared, victim, (int64_t)rng_below(&rng, 100000));
        }
        for (int i = 0; i < WRITERS; i++)
                kill_writer(pids[i]);
        assert_true(highest >= (uint64_t)rounds);
        assert_int_equal(look(d, &s), 0);
        assert_true(s.sequence >= total(shared)); /* no state has been lost or counted twice */
        assert_true(s.sequence <= total(shared) + (uint64_t)rounds + WRITERS);
        assert_true(say_whole(&(struct run_reporter){.dir = d->path, .clock = &real}, 0, 1));
        assert_int_equal(entries(d), 1);
        munmap(shared, sizeof(*shared));
}

/* Somebody who knows nothing of turns: cuts the file, moves it, writes into it, puts other things in its place. */
static void tear(struct dir *d, struct rng *rng)
{
        int fd;

        switch (rng_below(rng, 6)) {
        case 0:
                fd = openat(d->fd, RUN_STATUS_FILE, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (fd >= 0 && ftruncate(fd, (off_t)rng_below(rng, 400)) < 0)
                        fail_msg("ftruncate");
                fd_close(fd);
                return;
        case 1:
                renameat(d->fd, RUN_STATUS_FILE, d->fd, "moved");
                return;
        case 2:
                unlinkat(d->fd, RUN_STATUS_FILE, 0);
                return;
        case 3:
                unlinkat(d->fd, RUN_STATUS_FILE, 0);
                mkfifoat(d->fd, RUN_STATUS_FILE, 0644);
                return;
        case 4:
                if (symlinkat("moved", d->fd, RUN_STATUS_FILE) < 0)
                        return; /* the writer was faster */
                return;
        default:
                fd = openat(d->fd, RUN_STATUS_FILE, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (fd >= 0 && fd_write_all(fd, STR("{\"phase\": \"Phase1\", \"sequence\": "), NULL) < 0)
                        fail_msg("write");
                fd_close(fd);
                return;
        }
}

static void a_torn_file_is_refused_and_never_half_believed(void **state)
{
        struct dir *d = *state;
        struct shared *shared = shared_new();
        struct run_status s = {0};
        struct rng rng;
        uint64_t highest = 0;
        size_t whole = 0;
        pid_t pid = start_writer(d, shared, 0, 1);

        rng_seed(&rng, 42);
        for (size_t i = 0; i < 400 || whole < 50; i++) {
                if (rng_below(&rng, 3) == 0)
                        tear(d, &rng);
                if (look(d, &s) != 0)
                        continue;
                whole++;
                /* one writer that lives on goes on counting, whatever became of the file */
                assert_true(s.sequence >= highest);
                highest = s.sequence;
                assert_in_range(entries(d), 1, 3);
        }
        kill_writer(pid);
        munmap(shared, sizeof(*shared));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, dir_setup, dir_teardown)
static const struct CMUnitTest tests[] = {
        TEST(the_file_is_as_the_design_has_it),
        TEST(what_is_used_goes_along),
        TEST(a_run_ends),
        TEST(what_readers_would_cut_is_cut),
        TEST(what_is_no_utf8_and_no_phase_is_not_written),
        TEST(a_second_writer_goes_on),
        TEST(whatever_is_there_a_report_replaces_it),
        TEST(what_a_killed_writer_left_goes),
        TEST(a_vanished_directory_is_said_once),
        TEST(a_full_disk_leaves_the_last_state),
        TEST(a_writer_that_stands_still_stops_nobody),
        TEST(writers_killed_at_any_moment_leave_whole_states),
        TEST(a_torn_file_is_refused_and_never_half_believed),
};
UNIT_MAIN(tests)
