/*
 * Commands that are known, run and measured. Nothing here depends on how fast the machine is: only on what must be.
 */
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "probe/measure/measure.h"

/* What must be seen in time is tried again with twice the time, up to this: only in failure. */

struct world {
        struct loop *loop;
        struct measure *m;
        struct arena arena;
        bool done;
        struct measure_sample sample;
        char dir[64];
        char workload[4096];
};

static const char *beside_us(struct world *w)
{
        ssize_t n = readlink("/proc/self/exe", w->workload, sizeof(w->workload) - 16);
        char *slash;

        assert_true(n > 0);
        w->workload[n] = 0;
        slash = strrchr(w->workload, '/');
        assert_non_null(slash);
        memcpy(slash + 1, "workload", 9);
        return w->workload;
}

static int setup(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));
        const struct measure_options options = {.counters = true, .gpu = true};

        snprintf(w->dir, sizeof(w->dir), "/tmp/measure-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        beside_us(w);
        w->loop = loop_new(NULL, NULL, NULL);
        assert_non_null(w->loop);
        w->m = measure_new(w->loop, &options, NULL);
        assert_non_null(w->m);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        measure_free(w->m);
        loop_free(w->loop);
        arena_done(&w->arena);
        rmdir(w->dir);
        free(w);
        return 0;
}

static void on_done(void *arg, const struct measure_sample *sample)
{
        struct world *w = arg;

        w->done = true;
        w->sample = measure_sample_copy(&w->arena, sample);
}

/* WORDS: the arguments, between blanks; "workload" is that program. */
static char **split(struct world *w, const char *words)
{
        char **argv = arena_new_array(&w->arena, char *, 16);
        struct str rest = str_of(words);

        for (int i = 0; rest.p && i < 15; i++) {
                struct str word = str_split(&rest, ' ');

                argv[i] = str_eq(word, STR("workload")) ? w->workload
                                                        : arena_strndup(&w->arena, word.p, word.n);
        }
        return argv;
}

static void run_loop(struct world *w)
{
        while (!w->done && loop_turn(w->loop, true))
                continue;
        assert_true(w->done);
}

static const struct measure_sample *run(struct world *w, struct measure_command c, const char *words)
{
        struct err err = ERR_INIT;

        c.argv = split(w, words);
        w->done = false;
        if (measure_start(w->m, &c, on_done, w, &err) < 0)
                fail_msg("%s", err.text);
        run_loop(w);
        return &w->sample;
}

static const struct measure_sample *quietly(struct world *w, const char *words)
{
        return run(w, (struct measure_command){.output = MEASURE_OUTPUT_NULL}, words);
}

/* ---- commands that run until something of them was seen */

struct watch {
        struct timer timer;
        struct world *w;
        bool (*there)(struct watch *watch);
        int processes;
        int64_t least;
        struct measure_usage seen;
        long looks;   /* of the keeper, when all was there; 0: it was not yet */
        usec_t since; /* then */
};

static pid_t first_child(pid_t pid)
{
        char path[64], text[32] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
        f = fopen(path, "re");
        if (!f)
                return 0;
        (void)!fgets(text, sizeof(text), f);
        fclose(f);
        return (pid_t)strtol(text, NULL, 10);
}

/* The keeper is our child, what it runs is its. */
static pid_t keeper(void)
{
        return first_child(getpid());
}

/* What follows NAME and a colon in the process' status; "": nothing. */
static const char *status_line(pid_t pid, const char *name, char line[256])
{
        char path[64];
        size_t n = strlen(name);
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        f = pid ? fopen(path, "re") : NULL;
        while (f && fgets(line, 256, f))
                if (strncmp(line, name, n) == 0 && line[n] == ':') {
                        fclose(f);
                        return line + n + 1;
                }
        if (f)
                fclose(f);
        return "";
}

static void watch(struct timer *t)
{
        struct watch *watch = CONTAINER_OF(t, struct watch, timer);

        if (watch->there(watch))
                measure_stop(watch->w->m);
        else
                timer_after(t, 5 * USEC_PER_MS);
}

/* Runs C until THERE is true, which is asked every 5 ms, and stops it. */
static const struct measure_sample *until(struct watch *watched, struct measure_command c, const char *words)
{
        const struct measure_sample *s;

        timer_init(&watched->timer, watched->w->loop, watch);
        timer_after(&watched->timer, 5 * USEC_PER_MS);
        s = run(watched->w, c, words);
        timer_cancel(&watched->timer);
        assert_true(s->stopped);
        return s;
}

static bool is_as_large(struct watch *watch)
{
        watch->seen = measure_usage(watch->w->m);
        return watch->seen.processes == watch->processes && watch->seen.memory >= watch->least;
}

/*
 * As large as it becomes, and the keeper has looked often since: it falls asleep after each look. A close look, at shared pages,
 * comes after 60 times the CPU time of the last one, which is far less than 300 ms.
 */
static bool is_known_to_the_keeper(struct watch *watch)
{
        char line[256];
        long looks = strtol(status_line(keeper(), "voluntary_ctxt_switches", line), NULL, 10);

        if (!watch->looks && is_as_large(watch)) {
                watch->looks = looks;
                watch->since = loop_now(watch->w->loop);
        }
        return watch->looks && looks >= watch->looks + 10 &&
               loop_now(watch->w->loop) >= usec_add(watch->since, 300 * USEC_PER_MS);
}

/* The peak of COMMAND, a workload whose last argument is for how long it holds its memory, of so many PROCESSES. */
static int64_t peak_of(struct world *w, const char *command, int processes, int64_t least)
{
        struct watch watched = {
                .w = w, .there = is_known_to_the_keeper, .processes = processes, .least = least};
        const struct measure_sample *s = until(&watched,
                                               (struct measure_command){.output = MEASURE_OUTPUT_NULL},
                                               arena_printf(&w->arena, "%s 600000", command));

        assert_int_equal(s->processes, processes);
        return s->peak_rss;
}

static bool ignores_sigterm(struct watch *watch)
{
        char line[256];

        return strtoull(status_line(first_child(keeper()), "SigIgn", line), NULL, 16) >> (SIGTERM - 1) & 1;
}

static bool is_stopped(struct watch *watch)
{
        char line[256];

        return strchr(status_line(first_child(keeper()), "State", line), 'T') != NULL;
}

static void test_how_it_ends_is_data(void **state)
{
        struct world *w = *state;
        const struct measure_sample *s = quietly(w, "workload exit 0");

        assert_true(measure_sample_ok(s));
        assert_int_equal(s->exit_code, 0);
        assert_true(s->wall > 0 && s->wall < 60 && s->processes >= 1 && s->left_over == 0);
        assert_true(s->started > 0 && s->minor_faults > 0);
        s = quietly(w, "workload exit 3");
        assert_int_equal(s->exit_code, 3);
        assert_string_equal(s->error_reason, "ExitCode");
        assert_string_equal(s->error_message, "exit status 3");
        s = quietly(w, "workload signal 9");
        assert_int_equal(s->exit_code, -1);
        assert_int_equal(s->signal, SIGKILL);
        assert_string_equal(s->error_reason, "Signal");
        assert_string_equal(s->error_message, "it ended by signal 9 (Killed)");
}

static void test_what_cannot_be_started_is_data(void **state)
{
        struct world *w = *state;
        const struct measure_sample *s = quietly(w, "no-such-program-here");

        assert_string_equal(s->error_reason, "NotStarted");
        assert_non_null(strstr(s->error_message, "is not found in PATH"));
        assert_true(isnan(s->wall) && s->processes == 0 && s->exit_code == -1);
        s = run(w, (struct measure_command){.dir = "/no/such/place", .output = MEASURE_OUTPUT_NULL},
                "workload exit 0");
        assert_string_equal(s->error_reason, "NotStarted");
        assert_non_null(strstr(s->error_message, "cannot prepare"));
        assert_true(measure_sample_ok(quietly(w, "workload exit 0"))); /* and the next one runs */
}

/* Whether this machine lets us count at all: perf_event_paranoid, or a container's seccomp, may not. */
static bool may_count(void)
{
        struct perf_event_attr attr = {.size = sizeof(attr),
                                       .type = PERF_TYPE_SOFTWARE,
                                       .config = PERF_COUNT_SW_TASK_CLOCK,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
        int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        return fd >= 0 && close(fd) == 0;
}

static void test_its_time_is_told(void **state)
{
        struct world *w = *state;
        const struct measure_sample *s = quietly(w, "workload sleep 30");

        assert_true(s->wall >= 0.030 && s->user + s->sys < s->wall);
        s = quietly(w, "workload cpu 40");
        assert_true(s->user + s->sys >= 0.039 && s->wall >= 0.039);
        if (may_count())
                assert_true(s->counters.values[COUNTER_TASK_CLOCK] >= 30000000);
}

/* Beyond what the program has anyway, which is more with a sanitizer in it. */
static void test_memory_is_its_own(void **state)
{
        struct world *w = *state;
        int64_t nothing, some;
        _cleanup_(free_ptr) char *ours = xmalloc(64 << 20);

        memset(ours, 1, 64 << 20);
        nothing = peak_of(w, "workload memory 0", 1, 1);
        some = peak_of(w, "workload memory 20", 1, nothing + (19 << 20));
        assert_true(nothing > 0 && nothing < 60 << 20); /* ours is not told for its own */
        assert_true(some - nothing >= 19 << 20 && some - nothing < 40 << 20);
}

static void test_a_child_of_vfork_has_no_memory_of_its_own(void **state)
{
        struct world *w = *state;
        int64_t peak = peak_of(w, "workload vfork 64", 2, 64 << 20); /* it was seen */

        assert_true(peak >= 64 << 20 && peak < 100 << 20);
}

static void test_a_tree_is_the_sum_of_its_processes(void **state)
{
        struct world *w = *state;
        int64_t nothing = peak_of(w, "workload tree 4 0", 5, 1), some;

        some = peak_of(w, "workload tree 4 16", 5, nothing + (60 << 20));
        assert_true(some - nothing >= 60 << 20 && some - nothing < 80 << 20);
        some = peak_of(w, "workload shared 4 32", 5, nothing + (28 << 20)); /* four readers of one 32 MB */
        assert_true(some - nothing >= 28 << 20 && some - nothing < 44 << 20);
}

static void test_orphans_are_waited_for(void **state)
{
        struct world *w = *state;
        const struct measure_sample *s = quietly(w, "workload orphan 30");

        assert_true(measure_sample_ok(s));
        assert_int_equal(s->orphans, 1);
        assert_int_equal(s->left_over, 0);
        assert_true(s->user + s->sys >= 0.029); /* what the orphan used is its, too */
}

static void test_what_is_left_over_is_ended(void **state)
{
        struct world *w = *state;
        const struct measure_sample *s = run(
                w, (struct measure_command){.output = MEASURE_OUTPUT_NULL, .grace = 10 * USEC_PER_MS},
                "workload left 60000");

        assert_true(measure_sample_ok(s));
        assert_int_equal(s->left_over, 1);
        assert_string_equal(s->note, "1 process left over, and ended");
        assert_true(s->wall < 60);
}

static void test_a_timeout_ends_the_tree(void **state)
{
        struct world *w = *state;
        struct measure_command c = {
                .output = MEASURE_OUTPUT_NULL, .timeout = 20 * USEC_PER_MS, .grace = 60 * USEC_PER_SEC};
        const struct measure_sample *s = run(w, c, "workload tree 3 1 60000");

        assert_true(s->timed_out && !s->stopped);
        assert_string_equal(s->error_reason, "TimedOut");
        assert_string_equal(s->error_message, "it did not end within 0.02 s");
        assert_int_equal(s->signal, SIGTERM);
}

static void test_one_that_ignores_sigterm_is_killed(void **state)
{
        struct watch watched = {.w = *state, .there = ignores_sigterm};
        const struct measure_command c = {.output = MEASURE_OUTPUT_NULL, .grace = 10 * USEC_PER_MS};

        assert_int_equal(until(&watched, c, "workload stubborn 60000")->signal, SIGKILL);
}

/* As soon as it is there. */
static void stop_soon(struct timer *t)
{
        struct world *w = *(struct world **)(t + 1);
        struct measure_usage usage = measure_usage(w->m);

        if (usage.processes < 3 || usage.memory <= 0)
                timer_after(t, 5 * USEC_PER_MS);
        else
                measure_stop(w->m);
}

static void test_it_can_be_stopped_and_looked_at(void **state)
{
        struct world *w = *state;
        struct {
                struct timer timer;
                struct world *w;
        } soon = {.w = w};
        const struct measure_sample *s;

        timer_init(&soon.timer, w->loop, stop_soon);
        timer_after(&soon.timer, 5 * USEC_PER_MS);
        s = quietly(w, "workload tree 2 1 60000");
        assert_true(s->stopped && !s->timed_out);
        assert_string_equal(s->error_reason, "Stopped");
        assert_int_equal(measure_usage(w->m).processes, 0);
        measure_stop(w->m); /* nothing runs */
}

static int64_t live_memory(struct world *w, const char *words, int processes, int64_t least)
{
        struct watch watched = {.w = w, .there = is_as_large, .processes = processes, .least = least};

        (void)until(&watched, (struct measure_command){.output = MEASURE_OUTPUT_NULL}, words);
        return watched.seen.memory;
}

/* As the peak does: five that share 32 MB have them once, four with 16 MB each have 64. */
static void test_what_is_used_now_counts_shared_pages_once(void **state)
{
        struct world *w = *state;
        int64_t nothing = peak_of(w, "workload tree 4 0", 5, 1), some;

        some = live_memory(w, "workload shared 4 32 60000", 5, 1);
        assert_true(some >= 32 << 20 && some < nothing + (64 << 20));
        assert_true(live_memory(w, "workload tree 4 16 60000", 5, 64 << 20) < nothing + (80 << 20));
}

static void test_metrics_come_from_output_and_file(void **state)
{
        struct world *w = *state;
        char file[128];
        struct measure_command c = {.output = MEASURE_OUTPUT_SCANNED_NULL, .metrics_file = file};
        const struct measure_sample *s;
        double v;

        snprintf(file, sizeof(file), "%s/metrics.json", w->dir);
        s = run(w, c, "workload say hello rows=12 x=1.5e3 bad=12x a=b=3");
        assert_int_equal(json_len(s->metrics), 2);
        assert_int_equal(json_int(s->metrics, "rows", -1), 12);
        assert_true(json_to_double(json_at(s->metrics, "x"), &v) && v == 1500);
        s = run(w, c, "workload metrics {\"n\":7,\"region\":{\"wall\":0.25}} 0");
        assert_int_equal(json_int(s->metrics, "n", -1), 7);
        assert_true(s->region.has && measure_sample_time(s) == 0.25);
        s = run(w, c, "workload metrics {\"error\":{\"reason\":\"NoData\",\"message\":\"none\"}} 4");
        assert_string_equal(s->error_reason, "NoData");
        assert_string_equal(s->error_message, "none");
        s = run(w, c, "workload metrics {\"half 0");
        assert_true(measure_sample_ok(s));
        assert_non_null(strstr(s->note, "metrics are left out"));
        assert_int_equal(access(file, F_OK), -1);
}

static void test_two_run_at_once(void **state)
{
        struct world *w = *state, other = {.loop = w->loop};
        struct measure_command c = {.output = MEASURE_OUTPUT_NULL};
        struct err err = ERR_INIT;

        other.m = measure_new(w->loop, NULL, &err);
        assert_non_null(other.m);
        c.argv = split(w, "workload orphan 20");
        w->done = false;
        assert_int_equal(measure_start(w->m, &c, on_done, w, &err), 0);
        c.argv = split(w, "workload exit 5");
        assert_int_equal(measure_start(other.m, &c, on_done, &other, &err), 0);
        assert_int_equal(measure_start(other.m, &c, on_done, &other, &err), -1);
        while ((!w->done || !other.done) && loop_turn(w->loop, true))
                continue;
        assert_int_equal(w->sample.orphans, 1);
        assert_int_equal(other.sample.exit_code, 5);
        assert_int_equal(other.sample.orphans, 0);
        measure_free(other.m);
        arena_done(&other.arena);
}

static void test_freeing_ends_what_runs(void **state)
{
        struct world *w = *state;
        struct measure_command c = {.output = MEASURE_OUTPUT_NULL};
        struct err err = ERR_INIT;
        struct measure *m = measure_new(w->loop, NULL, &err);
        char fifo[128], byte;
        int fd;

        snprintf(fifo, sizeof(fifo), "%s/fifo", w->dir);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        fd = open(fifo, O_RDWR | O_CLOEXEC);
        c.input = fifo;
        c.argv = split(w, "workload tree 2 1 60000");
        assert_int_equal(measure_start(m, &c, on_done, w, &err), 0);
        measure_free(m);
        assert_int_equal(write(fd, "x", 1), 1);
        assert_int_equal(read(fd, &byte, 1), 1);
        close(fd);
        unlink(fifo);
}

/* From here on this process and those it starts have no close_range(), as before Linux 5.9. */
static void lose_close_range(void)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {ARRAY_LEN(code), code};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                _exit(1);
}

/* Who runs a command for a minute, and is gone while it runs. */
static _noreturn_ void die_while_it_runs(struct world *w)
{
        struct measure_command c = {.output = MEASURE_OUTPUT_NULL, .argv = split(w, "workload sleep 60000")};
        struct loop *loop = loop_new(NULL, NULL, NULL);
        struct measure *m;

        lose_close_range();
        m = loop ? measure_new(loop, NULL, NULL) : NULL;
        if (!m || measure_start(m, &c, on_done, w, NULL) < 0)
                _exit(1);
        while (measure_usage(m).processes == 0)
                usleep(1000);
        _exit(0);
}

static void test_the_keeper_ends_with_its_owner(void **state)
{
        struct world *w = *state;
        struct pollfd ended = {.events = POLLIN};
        int ends[2], status;
        pid_t pid;

        assert_int_equal(pipe(ends), 0); /* the keeper has an end of it, too, as long as it lives */
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                die_while_it_runs(w);
        close(ends[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        ended.fd = ends[0];
        assert_int_equal(poll(&ended, 1, 120000), 1);
        close(ends[0]);
}

/* SCRIPT, by a shell, with what it prints. */
static const struct measure_sample *run_script(struct world *w, struct measure_command c, const char *script)
{
        const char *argv[] = {"sh", "-c", script, NULL};
        struct err err = ERR_INIT;

        c.argv = (char *const *)argv;
        c.output = MEASURE_OUTPUT_SCANNED_NULL;
        w->done = false;
        if (measure_start(w->m, &c, on_done, w, &err) < 0)
                fail_msg("%s", err.text);
        run_loop(w);
        return &w->sample;
}

/* ---- in a row */

/* How many runs of SCRIPT there were in one row of up to 8; each was told, and none but the last may have failed. */
static size_t row_of(struct world *w, struct measure_command c, const char *script)
{
        const char *argv[] = {"sh", "-c", script, NULL};
        struct err err = ERR_INIT;
        size_t n = 0;

        c.argv = (char *const *)argv;
        c.output = MEASURE_OUTPUT_NULL;
        c.times = 8;
        if (measure_start(w->m, &c, on_done, w, &err) < 0)
                fail_msg("%s", err.text);
        do {
                w->done = false;
                run_loop(w);
                n++;
                assert_true(w->sample.wall > 0 && w->sample.started > 0);
                assert_true(!measure_running(w->m) || measure_sample_ok(&w->sample));
        } while (measure_running(w->m));
        assert_in_range(n, 1, 8);
        return n;
}

static size_t lines_of(const char *file)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
        size_t n = 0;

        assert_int_equal(file_read(file, &text, NULL), 0);
        for (size_t i = 0; i < text.n; i++)
                n += text.p[i] == '\n';
        return n;
}

static void test_a_row_tells_of_each_run(void **state)
{
        struct world *w = *state;
        char file[128], script[256];
        size_t told = 0, longest = 0;

        snprintf(file, sizeof(file), "%s/runs", w->dir);
        snprintf(script, sizeof(script), "echo >> %s", file);
        for (int i = 0; i < 1000 && longest < 2;
             i++) { /* on a busy machine one run takes as long as a row may */
                size_t n = row_of(w, (struct measure_command){0}, script);

                told += n;
                longest = MAX(longest, n);
        }
        assert_true(longest >= 2);
        assert_int_equal(lines_of(file), told);
        unlink(file);
}

static void test_nothing_follows_a_failure(void **state)
{
        struct world *w = *state;
        char file[128], script[256];
        size_t told = 0;

        snprintf(file, sizeof(file), "%s/runs", w->dir);
        snprintf(script, sizeof(script), "echo >> %s; test $(wc -l < %s) -lt 3", file, file);
        do
                told += row_of(w, (struct measure_command){0}, script);
        while (measure_sample_ok(&w->sample));
        assert_int_equal(told, 3);
        assert_int_equal(lines_of(file), 3);
        unlink(file);
}

static void test_there_is_no_row_where_somebody_has_to_see_to_it(void **state)
{
        struct world *w = *state;
        char file[128];

        snprintf(file, sizeof(file), "%s/metrics", w->dir);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(row_of(w, (struct measure_command){.input = "/dev/null"}, "true"), 1);
                assert_int_equal(row_of(w, (struct measure_command){.metrics_file = file}, "true"), 1);
        }
}

static void test_the_last_of_one_name_is_its_environment(void **state)
{
        struct world *w = *state;
        const char *const env[] = {"A=1", "SONDE_METRICS_FILE=/nowhere", "AB=3", "A=2", NULL};
        char file[128];
        const struct measure_sample *s;

        snprintf(file, sizeof(file), "%s/metrics.json", w->dir);
        s = run_script(w, (struct measure_command){.env = env, .metrics_file = file},
                       "tr '\\0' '\\n' </proc/$$/environ >\"$SONDE_METRICS_FILE.env\";"
                       "grep ^A= \"$SONDE_METRICS_FILE.env\";"
                       "echo n=$(grep -c -e ^A= -e ^SONDE_METRICS_FILE= \"$SONDE_METRICS_FILE.env\");"
                       "rm \"$SONDE_METRICS_FILE.env\"");
        assert_true(measure_sample_ok(s));
        assert_int_equal(json_int(s->metrics, "n", -1), 2);
        assert_int_equal(json_int(s->metrics, "A", -1), 2);
}

/* Else one that reads the terminal would be stopped, and nobody would see why. */
static void test_it_has_no_terminal_of_ours(void **state)
{
        struct world *w = *state;
        const struct measure_sample *s = run_script(w, (struct measure_command){0},
                                                    "set -- $(cat /proc/$$/stat); echo session=$6");

        assert_true(json_int(s->metrics, "session", -1) > 0);
        assert_int_not_equal(json_int(s->metrics, "session", -1), getsid(0));
}

static void test_one_that_is_stopped_hears_of_its_end(void **state)
{
        struct world *w = *state;
        struct watch watched = {.w = w, .there = is_stopped};
        FILE *f;
        char script[128];

        snprintf(script, sizeof(script), "%s/stops", w->dir);
        f = fopen(script, "we");
        assert_non_null(f);
        fputs("trap 'exit 7' TERM; while :; do kill -STOP $$; done\n", f);
        fclose(f);
        assert_int_equal(until(&watched, (struct measure_command){.grace = 20 * USEC_PER_SEC},
                               arena_printf(&w->arena, "sh %s", script))
                                 ->exit_code,
                         7);
        unlink(script);
}

static void stop_twice(struct timer *t)
{
        struct world *w = *(struct world **)(t + 1);

        if (measure_usage(w->m).processes > 0)
                measure_stop(w->m);
        timer_after(t, 20 * USEC_PER_MS);
}

static void test_stopped_twice_is_stopped(void **state)
{
        struct world *w = *state;
        struct {
                struct timer timer;
                struct world *w;
        } often = {.w = w};
        const struct measure_sample *s;

        timer_init(&often.timer, w->loop, stop_twice);
        timer_after(&often.timer, 100 * USEC_PER_MS);
        s = run_script(w, (struct measure_command){.grace = 200 * USEC_PER_MS},
                       "(trap '' TERM; sleep 60; sleep 60) & exec sleep 60");
        timer_cancel(&often.timer);
        assert_true(s->stopped);
        assert_string_equal(s->error_reason, "Stopped");
}

static void test_metrics_may_be_left_where_it_works(void **state)
{
        struct world *w = *state;
        char file[128], beside[128];
        struct measure_command c = {.output = MEASURE_OUTPUT_NULL, .metrics_file = file, .dir = w->dir};
        const struct measure_sample *s;

        snprintf(file, sizeof(file), "%s/told.json", w->dir);
        snprintf(beside, sizeof(beside), "%s/metrics.json", w->dir);
        s = run_script(w, c, "echo '{\"n\":7}' >metrics.json");
        assert_int_equal(json_int(s->metrics, "n", -1), 7);
        assert_int_equal(access(beside, F_OK), 0);
        s = run_script(w, c, "echo '{\"n\":8}' >metrics.json; echo '{\"n\":9}' >\"$SONDE_METRICS_FILE\"");
        assert_int_equal(json_int(s->metrics, "n", -1), 9);
        s = run_script(w, c, "rm metrics.json; mkfifo metrics.json");
        assert_non_null(strstr(s->note, "metrics are left out"));
        assert_int_equal(unlink(beside), 0);
}

/* Back to back, which takes less than a tick of the clock that stamps files. */
static void test_metrics_are_of_the_run_that_wrote_them(void **state)
{
        struct world *w = *state;
        char file[128], beside[128];
        struct measure_command c = {.metrics_file = file, .dir = w->dir};
        const struct measure_sample *s;

        snprintf(file, sizeof(file), "%s/told.json", w->dir);
        snprintf(beside, sizeof(beside), "%s/metrics.json", w->dir);
        for (int i = 0; i < 5; i++) {
                s = run_script(w, c, "echo '{\"n\":7,\"region\":{\"wall\":99}}' >metrics.json");
                assert_int_equal(json_int(s->metrics, "n", -1), 7);
                assert_true(measure_sample_time(s) == 99);
                s = run_script(w, c, "exit 0");
                assert_true(measure_sample_ok(s) && !s->region.has && json_len(s->metrics) == 0);
                s = run_script(w, c, "kill -9 $$; echo '{}' >metrics.json");
                assert_true(!s->region.has && json_len(s->metrics) == 0);
        }
        for (int i = 0; i < 20; i++) { /* in place, and just as long */
                s = run_script(w, c,
                               i % 2 ? "echo '{\"n\":1}' >metrics.json" : "echo '{\"n\":2}' >metrics.json");
                assert_int_equal(json_int(s->metrics, "n", -1), i % 2 ? 1 : 2);
                s = run_script(w, c,
                               i % 2 ? "echo '{\"n\":1}' >metrics.json" : "echo '{\"n\":2}' >metrics.json");
                assert_int_equal(json_int(s->metrics, "n", -1), i % 2 ? 1 : 2);
        }
        assert_int_equal(unlink(beside), 0);
}

static void test_metrics_that_another_may_have_written_are_nobodys(void **state)
{
        struct world *w = *state;
        bool crowded = false;
        char file[128], beside[128];
        struct measure_command c = {.metrics_file = file, .dir = w->dir, .crowded = &crowded};
        const struct measure_sample *s;

        snprintf(file, sizeof(file), "%s/told.json", w->dir);
        snprintf(beside, sizeof(beside), "%s/metrics.json", w->dir);
        s = run_script(w, c, "echo '{\"n\":7}' >metrics.json");
        assert_int_equal(json_int(s->metrics, "n", -1), 7);
        crowded = true;
        s = run_script(w, c, "echo '{\"n\":8}' >metrics.json");
        assert_int_equal(json_len(s->metrics), 0);
        assert_non_null(strstr(s->note, "metrics.json is left out"));
        s = run_script(w, c, "echo '{\"n\":9}' >\"$SONDE_METRICS_FILE\"");
        assert_int_equal(json_int(s->metrics, "n", -1), 9);
        assert_int_equal(unlink(beside), 0);
}

static void test_a_pipe_without_a_writer_is_an_empty_input(void **state)
{
        struct world *w = *state;
        char fifo[128];

        snprintf(fifo, sizeof(fifo), "%s/fifo", w->dir);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        assert_true(measure_sample_ok(
                run(w, (struct measure_command){.input = fifo, .output = MEASURE_OUTPUT_NULL}, "cat")));
        unlink(fifo);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_last_of_one_name_is_its_environment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_has_no_terminal_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_stopped_hears_of_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped_twice_is_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pipe_without_a_writer_is_an_empty_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_how_it_ends_is_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_started_is_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_its_time_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_child_of_vfork_has_no_memory_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_tree_is_the_sum_of_its_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_orphans_are_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_left_over_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_timeout_ends_the_tree, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_ignores_sigterm_is_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_can_be_stopped_and_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_used_now_counts_shared_pages_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_come_from_output_and_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_may_be_left_where_it_works, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_are_of_the_run_that_wrote_them, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_that_another_may_have_written_are_nobodys, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_two_run_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_freeing_ends_what_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_keeper_ends_with_its_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_row_tells_of_each_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_follows_a_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_there_is_no_row_where_somebody_has_to_see_to_it, setup,
                                        teardown),
};

UNIT_MAIN(tests)
