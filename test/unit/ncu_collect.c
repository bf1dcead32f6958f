#include "unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/ncu/collect.h"

#define REPLAY    "test/tools/ncu-replay"
#define RECORDING "test/data/ncu/recordings/two-kernels"

/* A run directory; standard output goes nowhere meanwhile, because it is the test's. */
struct place {
        struct arena a;
        struct clock clock;
        char dir[64];
        int out_fd;
};

static const char *in(struct place *p, const char *name)
{
        return arena_join(&p->a, p->dir, "/", name);
}

static int setup(void **state)
{
        struct place *p = xcalloc(1, sizeof(*p));
        _cleanup_(fd_close) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        snprintf(p->dir, sizeof(p->dir), "/tmp/collect-XXXXXX");
        assert_non_null(mkdtemp(p->dir));
        assert_int_equal(setenv("SONDE_NCU_RECORDING", RECORDING, 1), 0);
        fflush(stdout);
        p->out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        assert_int_equal(dup2(null, STDOUT_FILENO), STDOUT_FILENO);
        *state = p;
        return 0;
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_,
                      struct FTW *w _unused_)
{
        return remove(path);
}

static int teardown(void **state)
{
        struct place *p = *state;

        assert_int_equal(dup2(p->out_fd, STDOUT_FILENO), STDOUT_FILENO);
        fd_close(p->out_fd);
        nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        arena_done(&p->a);
        free(p);
        return 0;
}

static struct json *read_json(struct place *p, const char *name)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4 << 20);

        if (file_read(in(p, name), &text, NULL) < 0)
                return NULL;
        return json_parse(&p->a, buf_str(&text), NULL, NULL);
}

static int collect(struct place *p, const char *ncu, const char *fail)
{
        const char *const program[] = {"/bin/true", NULL};
        const struct ncu_collect c = {
                .ncu = ncu, .program = (char *const *)program, .dir = p->dir, .clock = &p->clock};

        assert_int_equal(fail ? setenv("SONDE_NCU_FAIL", fail, 1) : unsetenv("SONDE_NCU_FAIL"), 0);
        return ncu_collect(&c);
}

/* A tool of our own: what it does for --import, and for a program. */
static const char *make_tool(struct place *p, const char *import, const char *run)
{
        const char *path = in(p, "tool");

        assert_int_equal(file_replace(path,
                                      str_of(arena_printf(
                                              &p->a,
                                              "#!/bin/sh\ncase $1 in\n--version) echo Version 9.9; exit;;\n"
                                              "--import) %s;;\n*) while [ \"$1\" != --export ]; do shift; "
                                              "done; report=$2.ncu-rep; %s;;\nesac\n",
                                              import, run)),
                                      0755, NULL),
                         0);
        return path;
}

static bool warns(const struct json *result, const char *words)
{
        json_foreach (w, json_at(result, "warnings"))
                if (strstr(json_cstr(w), words))
                        return true;
        return false;
}

/* ---- outcomes */

static void test_launches_with_numbers_are_a_success(void **state)
{
        struct place *p = *state;
        struct json *result, *summary, *status;

        assert_int_equal(collect(p, REPLAY, NULL), 0);
        result = read_json(p, "result.json");
        summary = read_json(p, "summary.json");
        status = read_json(p, RUN_STATUS_FILE);
        assert_string_equal(json_str(result, "boundType"), "compute-bound");
        assert_string_equal(json_str(json_at(summary, "metrics"), "replay"), "true");
        assert_int_equal(json_int(result, "launches", 0), 6);
        assert_string_equal(json_str(status, "phase"), "Complete");
        assert_int_equal(access(in(p, "artifacts/report.ncu-rep"), R_OK), 0);
        assert_int_equal(access(in(p, "artifacts/report.csv"), R_OK), 0);
}

static void test_a_failure_has_its_reason_and_takes_old_results_away(void **state)
{
        struct place *p = *state;
        struct json *status;

        assert_int_equal(collect(p, REPLAY, NULL), 0);
        assert_int_equal(collect(p, REPLAY, "in-use"), 1);
        status = read_json(p, RUN_STATUS_FILE);
        assert_string_equal(json_str(status, "phase"), "Failed");
        assert_string_equal(json_str(status, "reason"), "CountersInUse");
        assert_null(read_json(p, "result.json"));
        assert_null(read_json(p, "summary.json"));
        assert_int_equal(access(in(p, "artifacts/report.ncu-rep"), F_OK), -1);
}

static void test_half_of_it_is_a_success_that_says_so(void **state)
{
        struct place *p = *state;
        struct json *result;

        assert_int_equal(collect(p, REPLAY, "half"), 0);
        result = read_json(p, "result.json");
        assert_true(json_bool(result, "partial", false));
        assert_true(warns(result, "Failed to profile"));
}

static void test_an_end_that_nobody_explains_is_told_as_it_was(void **state)
{
        struct place *p = *state;
        struct json *status;

        assert_int_equal(collect(p, make_tool(p, "exit 1", "exit 17"), NULL), 1);
        status = read_json(p, RUN_STATUS_FILE);
        assert_string_equal(json_str(status, "reason"), "ToolFailed");
        assert_non_null(strstr(json_str(status, "error"), "status 17"));
        assert_int_equal(collect(p, make_tool(p, "exit 1", "kill -KILL $$"), NULL), 1);
        assert_non_null(strstr(json_str(read_json(p, RUN_STATUS_FILE), "error"), "Killed"));
        /* It says nothing at all, and leaves nothing. */
        assert_int_equal(collect(p, make_tool(p, "exit 1", "exit 0"), NULL), 1);
        assert_string_equal(json_str(read_json(p, RUN_STATUS_FILE), "reason"), "NothingProfiled");
}

static void test_a_tool_that_does_not_load_is_not_the_program_s_fault(void **state)
{
        struct place *p = *state;
        const char *tool = in(p, "tool");
        struct json *status;

        assert_int_equal(
                file_replace(tool,
                             STR("#!/bin/sh\necho 'ncu: error while loading shared libraries: libfoo.so.1: "
                                 "no' >&2\nexit 127\n"),
                             0755, NULL),
                0);
        assert_int_equal(collect(p, tool, NULL), 1);
        status = read_json(p, RUN_STATUS_FILE);
        assert_string_equal(json_str(status, "reason"), "ToolNotFound");
        assert_non_null(strstr(json_str(status, "error"), "--version' ended with status 127"));
}

static void test_what_the_program_puts_in_the_way_is_not_written_to(void **state)
{
        struct place *p = *state;

        assert_int_equal(collect(p,
                                 make_tool(p, "echo '\"ID\",\"Kernel Name\"'",
                                           "echo x >$report; mkfifo ${report%.ncu-rep}.csv; exit 0"),
                                 NULL),
                         1); /* and it does not wait for one who reads the FIFO */
        assert_string_equal(json_str(read_json(p, RUN_STATUS_FILE), "phase"), "Failed");
}

static void test_without_a_device_a_driver_that_does_not_fit_is_no_gpu(void **state)
{
        struct place *p = *state;
        bool gpu = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 ||
                   access("/dev/dxg", F_OK) == 0 || access("/dev/nvgpu", F_OK) == 0 ||
                   access("/dev/nvhost-gpu", F_OK) == 0;

        assert_int_equal(
                collect(p, make_tool(p, "exit 1", "echo '==ERROR== LibraryNotLoaded'; exit 9"), NULL), 1);
        assert_string_equal(json_str(read_json(p, RUN_STATUS_FILE), "reason"),
                            gpu ? "DriverMismatch" : "NoGPU");
}

static void test_a_large_report_is_read_and_not_kept_whole(void **state)
{
        struct place *p = *state;
        const char *csv = in(p, "some.csv");
        struct json *result;
        struct stat st;

        if (unit_extent(0, 1, 1) == 0)
                return;
        assert_int_equal(
                file_replace(
                        csv,
                        STR("\"ID\",\"Kernel Name\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\"\n"
                            "\"\",\"\",\"%\"\n\"0\",\"k\",\"50\"\n"),
                        0644, NULL),
                0);
        assert_int_equal(
                collect(p,
                        make_tool(p,
                                  arena_printf(&p->a,
                                               "cat %s; yes \"$(printf %%0200d 0)\" | head -c 70000000", csv),
                                  "echo '==PROF== Profiling \"k\" - 0: 0%....100% - 1 pass'; >$report"),
                        NULL),
                0);
        result = read_json(p, "result.json");
        assert_int_equal(json_int(result, "launches", 0), 1);
        assert_string_equal(json_str(result, "tool"), "9.9");
        assert_true(warns(result, "larger than 64 MiB"));
        assert_int_equal(stat(in(p, "artifacts/report.csv"), &st), 0);
        assert_int_equal(st.st_size, 64 << 20);
}

static void test_a_directory_that_cannot_be_is_told(void **state)
{
        struct place *p = *state;
        const char *const program[] = {"/bin/true", NULL};
        struct ncu_collect c = {.program = (char *const *)program, .clock = &p->clock};

        c.dir = in(p, "file/run");
        assert_int_equal(file_replace(in(p, "file"), STR(""), 0644, NULL), 0);
        assert_int_equal(ncu_collect(&c), 1);
}

/* The tool waits until its line is in the status file: then it is told to end. */
static void test_how_many_launches_there_are_is_as_the_tool_says(void **state)
{
        struct place *p = *state;
        const char *run = arena_printf(
                &p->a,
                "echo '==PROF== Profiling \"k\" - 0 (1/2): 0%%....50%%....100%% - 8 passes'\n"
                "until grep -q 'k: launch 1 of at most 2, 8 passes' %s; do sleep 0.02; done\n"
                "kill -TERM $PPID; sleep 100",
                in(p, RUN_STATUS_FILE));
        const struct json *progress;

        assert_int_equal(collect(p, make_tool(p, "exit 1", run), NULL), 130);
        progress = json_at(read_json(p, RUN_STATUS_FILE), "progress");
        assert_int_equal(json_int(progress, "currentStep", 0), 1);
        assert_int_equal(json_int(progress, "totalSteps", 0), 2);
}

/* Whether PID, a child of ours, or all (-1) have ended: what was killed may take a while on a busy machine. */
static bool has_ended(pid_t pid)
{
        for (int i = 0; i < 6000 && waitpid(pid, NULL, WNOHANG) >= 0; i++)
                usleep(10000);
        return waitpid(pid, NULL, WNOHANG) < 0;
}

static void test_told_to_end_it_ends_with_130(void **state)
{
        struct place *p = *state;

        assert_int_equal(collect(p, make_tool(p, "exit 1", "kill -TERM $PPID; sleep 1000"), NULL), 130);
        assert_string_equal(json_str(read_json(p, RUN_STATUS_FILE), "phase"), "Collecting");
        assert_true(has_ended(-1));
}

/* ---- the tool's process */

static void add(void *arg, struct str piece)
{
        buf_addstr(arg, piece);
}

static int run_tool(struct place *p, const char *script, usec_t limit, struct buf *out)
{
        const char *const argv[] = {"sh", "-c", script, NULL};
        const struct tool_job job = {.argv = (char *const *)argv, .limit = limit, .output = add, .arg = out};
        struct err err = ERR_INIT;
        struct tool_watch w;
        int status = -1;

        assert_int_equal(tool_watch_init(&w, &p->clock, &err), 0);
        assert_int_equal(tool_run(&w, &job, &status, &err), 0);
        tool_watch_done(&w);
        return status;
}

static void test_its_time_is_limited(void **state)
{
        struct place *p = *state;
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        int status = run_tool(p, "echo begun; sleep 1000", 50 * USEC_PER_MS, &out);

        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_what_it_leaves_is_ended_and_other_children_are_not(void **state)
{
        struct place *p = *state;
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        uint64_t stray;
        pid_t other = fork();

        if (other == 0) {
                pause();
                _exit(0);
        }
        assert_int_equal(run_tool(p,
                                  arena_printf(&p->a,
                                               "setsid sh -c 'echo $$; >%s; exec sleep 1000' &\n"
                                               "until test -e %s; do sleep 0.01; done",
                                               in(p, "said"), in(p, "said")),
                                  0, &out),
                         0);
        assert_true(str_to_u64(str_trim(buf_str(&out)), &stray));
        assert_true(has_ended((pid_t)stray));
        assert_int_equal(kill((pid_t)stray, 0), -1);
        assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
        kill(other, SIGKILL);
        assert_int_equal(waitpid(other, NULL, 0), other);
}

#define with_place(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
        with_place(test_launches_with_numbers_are_a_success),
        with_place(test_a_failure_has_its_reason_and_takes_old_results_away),
        with_place(test_half_of_it_is_a_success_that_says_so),
        with_place(test_an_end_that_nobody_explains_is_told_as_it_was),
        with_place(test_what_the_program_puts_in_the_way_is_not_written_to),
        with_place(test_a_tool_that_does_not_load_is_not_the_program_s_fault),
        with_place(test_without_a_device_a_driver_that_does_not_fit_is_no_gpu),
        with_place(test_a_large_report_is_read_and_not_kept_whole),
        with_place(test_a_directory_that_cannot_be_is_told),
        with_place(test_how_many_launches_there_are_is_as_the_tool_says),
        with_place(test_told_to_end_it_ends_with_130),
        with_place(test_its_time_is_limited),
        with_place(test_what_it_leaves_is_ended_and_other_children_are_not),
};

UNIT_MAIN(tests)
