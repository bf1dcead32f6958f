/*
 * The parts that this machine may not have: cgroups of both versions, counters, GPUs.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/measure/internal.h"

static char root[64]; /* of this test */

static int setup(void **state)
{
        snprintf(root, sizeof(root), "/tmp/measure-parts-XXXXXX");
        return mkdtemp(root) ? 0 : -1;
}

/* The files of a fixture are few, and in known places. */
static int teardown(void **state)
{
        const char *const argv[] = {"rm", "-rf", root, NULL};
        struct spawn s = {.argv = (char *const *)argv, .out_fd = 1, .err_fd = 2};
        pid_t pid;

        return spawn_start(&s, &pid, NULL, NULL) < 0 || waitpid(pid, NULL, 0) < 0;
}

static void put(const char *path, const char *text)
{
        char full[512];
        char *slash;
        int fd;

        snprintf(full, sizeof(full), "%s%s", root, path);
        slash = strrchr(full, '/');
        *slash = 0;
        assert_int_equal(dir_make(full, 0755, NULL), 0);
        *slash = '/';
        fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

static void test_version_2_of_cgroups(void **state)
{
        struct cgroup_reading before, after;
        struct measure_cgroup got;
        struct cgroup c;

        put("/proc/self/cgroup", "0::/pod/main\n");
        put("/sys/fs/cgroup/pod/main/cpu.stat", "usage_usec 1000000\nuser_usec 1\nsystem_usec 1\nnr_periods "
                                                "10\nnr_throttled 1\nthrottled_usec 5000\n");
        put("/sys/fs/cgroup/pod/main/memory.peak", "1000\n");
        put("/sys/fs/cgroup/pod/main/memory.events", "low 0\noom 0\noom_kill 0\n");
        cgroup_open(&c, root);
        assert_int_equal(c.version, 2);
        /* a plain file takes any write: go on as on a kernel that cannot begin a peak anew */
        c.fresh = false;
        put("/sys/fs/cgroup/pod/main/memory.peak", "1000\n");
        cgroup_read(&c, true, &before);
        put("/sys/fs/cgroup/pod/main/cpu.stat",
            "usage_usec 3500000\nnr_periods 25\nnr_throttled 4\nthrottled_usec 25000\n");
        put("/sys/fs/cgroup/pod/main/memory.events", "low 0\noom 1\noom_kill 1\n");
        cgroup_read(&c, false, &after);
        cgroup_between(&c, &before, &after, &got);
        assert_true(got.has && got.version == 2 && got.cpu_seconds == 2.5);
        assert_true(got.periods == 15 && got.throttled_periods == 3 && got.throttled_seconds == 0.02);
        assert_int_equal(got.memory_peak, -1); /* it did not rise: not known */
        assert_int_equal(after.oom - before.oom, 1);
        put("/sys/fs/cgroup/pod/main/memory.peak", "5000\n");
        cgroup_read(&c, false, &after);
        cgroup_between(&c, &before, &after, &got);
        assert_int_equal(got.memory_peak, 5000);
        cgroup_done(&c);
}

static void test_version_1_of_cgroups_as_a_container_sees_it(void **state)
{
        struct cgroup_reading before, after;
        struct measure_cgroup got;
        struct cgroup c;

        /* no namespace: the path is not there, the mount's top is ours */
        put("/proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n");
        put("/sys/fs/cgroup/memory/memory.max_usage_in_bytes", "4096\n");
        put("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        put("/sys/fs/cgroup/cpuacct/cpuacct.usage", "7000000000\n");
        put("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 5\nnr_throttled 0\nthrottled_time 0\n");
        cgroup_open(&c, root);
        assert_int_equal(c.version, 1);
        cgroup_read(&c, true, &before);
        put("/sys/fs/cgroup/cpuacct/cpuacct.usage", "7250000000\n");
        put("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 1500000\n");
        cgroup_read(&c, false, &after);
        cgroup_between(&c, &before, &after, &got);
        assert_true(got.version == 1 && got.cpu_seconds == 0.25 && got.periods == 4);
        assert_true(got.throttled_periods == 2 && got.throttled_seconds == 0.0015 && got.memory_peak == -1);
        assert_int_equal(before.oom, 2);
        cgroup_done(&c);
}

static void on_measured(void *arg, const struct measure_sample *sample)
{
        const char **reason = arg;

        *reason = sample->error_reason ? sample->error_reason : "";
}

/* A shell ends with 137 when what it ran was killed: that is for want of memory when the kernel killed something so. */
static void test_killed_for_want_of_memory_inside_a_shell(void **state)
{
        _cleanup_(loop_free) struct loop *loop = loop_new(NULL, NULL, NULL);
        char script[256];
        const char *const argv[] = {"sh", "-c", script, NULL};
        const struct measure_command command = {.argv = (char *const *)argv, .output = MEASURE_OUTPUT_NULL};
        static const char *const wanted[] = {"OOMKilled", "ExitCode"};

        put("/proc/self/cgroup", "0::/pod/main\n");
        put("/sys/fs/cgroup/pod/main/cpu.stat", "usage_usec 1000000\n");
        put("/sys/fs/cgroup/pod/main/memory.events", "oom_kill 0\n");
        snprintf(script, sizeof(script),
                 "echo oom_kill 1 > %s/sys/fs/cgroup/pod/main/memory.events; exit 137", root);
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++) { /* the second time the count does not rise */
                _cleanup_(measure_free) struct measure *m = measure_new(
                        loop, &(struct measure_options){.root = root}, NULL);
                const char *reason = NULL;

                assert_non_null(m);
                assert_int_equal(measure_start(m, &command, on_measured, &reason, NULL), 0);
                while (!reason && loop_turn(loop, true))
                        continue;
                assert_string_equal(reason, wanted[i]);
        }
}

static void test_without_cgroups_nothing_is_told(void **state)
{
        struct cgroup_reading r;
        struct measure_cgroup got;
        struct cgroup c;

        cgroup_open(&c, root);
        assert_int_equal(c.version, 0);
        cgroup_read(&c, true, &r);
        cgroup_between(&c, &r, &r, &got);
        assert_true(!got.has && isnan(got.cpu_seconds) && got.memory_peak == -1);
        cgroup_done(&c);
        put("/proc/self/cgroup", "0::/../other\n");
        put("/sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
        cgroup_open(&c, root);
        assert_int_equal(c.version, 0); /* it is not ours */
        cgroup_done(&c);
}

static void test_the_machine(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *m;

        put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n\n");
        put("/proc/meminfo", "MemTotal:        1024 kB\nMemFree: 1 kB\n");
        put("/proc/self/cgroup", "0::/\n");
        put("/sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
        put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
        put("/sys/fs/cgroup/memory.max", "max\n");
        put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
        m = measure_machine(&a, root);
        assert_string_equal(json_str(m, "cpu"), "Some CPU @ 2 GHz");
        assert_string_equal(json_str(m, "governor"), "performance");
        assert_int_equal(json_int(m, "memory", 0), 1 << 20);
        assert_int_equal(json_int(m, "cgroup", -1), 2);
        assert_true(json_bool(m, "virtual", false) && json_int(m, "cpus", 0) >= 1);
        assert_string_equal(arena_strndup(&a, json_at(m, "cpuLimit")->text, json_at(m, "cpuLimit")->len),
                            "1.5");
        assert_null(json_at(m, "memoryLimit"));
        assert_non_null(json_str(measure_machine(&a, NULL), "kernel"));
        assert_null(json_at(m, "node"));
        assert_int_equal(setenv("SONDE_NODE_NAME", "node-7", 1), 0);
        assert_string_equal(json_str(measure_machine(&a, root), "node"), "node-7");
        assert_int_equal(setenv("SONDE_NODE_NAME", "", 1), 0);
        assert_true(json_equal(measure_machine(&a, root), m));
        assert_int_equal(unsetenv("SONDE_NODE_NAME"), 0);
}

static void test_counters_that_are_not_there_are_absent(void **state)
{
        struct measure_counters got;
        struct counters c;

        counters_open(&c, false);
        counters_read(&c, &got);
        assert_true(!got.has && got.values[COUNTER_CYCLES] == -1);
        counters_close(&c);
        counters_open(&c, true); /* whatever this machine has */
        counters_read(&c, &got);
        for (int i = 0; i < COUNTER_MAX_; i++)
                assert_true(c.fds[i] < 0 ? got.values[i] == -1 : got.values[i] == 0);
        counters_close(&c);
        assert_string_equal(measure_counter_name(COUNTER_CACHE_MISSES), "cacheMisses");
}

static void test_what_nvidia_smi_says(void **state)
{
        _cleanup_(loop_free) struct loop *loop = loop_new(NULL, NULL, NULL);
        struct measure_gpu got;
        struct gpu g;

        gpu_init(&g, loop, false);
        gpu_begin(&g);
        gpu_add(&g, STR("No devices were found\n"));
        assert_false(g.seen.has);
        gpu_add(&g, STR("40, 1024, 70.50\n60, 2048, [N/A]\n"));
        gpu_add(&g, STR("20, 512, [N/A]\n[N/A], [N/A], 30\n"));
        gpu_end(&g, &got);
        assert_true(got.has && got.gpus == 2 && got.looks == 2 && got.utilization == 40);
        assert_true(got.memory_peak == (int64_t)3072 << 20 && got.power == 50.25);
        gpu_begin(&g);
        gpu_end(&g, &got);
        assert_true(!got.has && isnan(got.utilization) && isnan(got.power));
        gpu_done(&g);
}

static void test_names_with_brackets_do_not_confuse(void **state)
{
        struct family f = {0};
        struct family_usage u;
        char name[16];

        assert_int_equal(prctl(PR_GET_NAME, name), 0);
        assert_int_equal(prctl(PR_SET_NAME, "x) R 1 (\n) 7 9"), 0);
        assert_true(family_cpu(getpid(), &u) && u.rss > 0 && u.cpu_seconds < 60);
        assert_int_equal(prctl(PR_SET_NAME, name), 0);
        assert_true(family_memory(getpid(), &u) && u.rss >= u.shared);
        assert_false(family_memory(0, &u));
        family_list(&f, getpid());
        assert_int_equal(f.pids.n, 0);
        family_done(&f);
        assert_int_equal(proc_number("VmPeak:\t 5 kB\nVmHWM:\t    12 kB\n", "VmHWM"), 12);
        assert_int_equal(proc_number("VmHWMX: 5 kB\n", "VmHWM"), -1);
}

/* The leader of a group of five that share its memory. */
static _noreturn_ void share(size_t size, int ready)
{
        char *p = xmalloc(size), byte = 0;

        memset(p, 1, size);
        setpgid(0, 0);
        for (int i = 0; i < 4; i++)
                if (fork() == 0)
                        for (;;)
                                pause();
        (void)!write(ready, &byte, 1);
        for (;;)
                pause();
}

static int64_t peak_now(struct family *f)
{
        family_forget(f);
        family_list(f, getpid());
        return family_peak(f, 0, 0);
}

/* They end one after the other, and what one shared is more of each other's: in the midst of a look, too. */
static void test_what_is_shared_counts_once_while_they_end(void **state)
{
        enum { SIZE = 32 << 20 };
        const unsigned rounds = unit_extent(5, 20, 200);
        struct family f = {0};
        int ready[2];
        char byte;

        assert_int_equal(pipe(ready), 0);
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        for (unsigned i = 0; i < rounds; i++) {
                pid_t leader = fork();
                int64_t calm;

                if (leader == 0)
                        share(SIZE, ready[1]);
                assert_int_equal(read(ready[0], &byte, 1), 1);
                calm = peak_now(&f);
                assert_true(f.pids.n == 5 && calm >= SIZE);
                assert_int_equal(kill(-leader, SIGKILL), 0);
                for (int look = 0; look < 10; look++)
                        assert_true(peak_now(&f) < calm + calm / 4);
                while (waitpid(-1, NULL, 0) > 0)
                        continue;
        }
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
        family_done(&f);
        close(ready[0]);
        close(ready[1]);
}

/* A file that says what a counter would. */
static int counter_of(uint64_t value, uint64_t enabled, uint64_t running)
{
        uint64_t text[] = {value, enabled, running};
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], text, sizeof(text)), sizeof(text));
        close(ends[1]);
        return ends[0];
}

static void test_a_counter_that_never_had_its_turn_is_absent(void **state)
{
        struct measure_counters got;
        struct counters c;

        memset(c.fds, -1, sizeof(c.fds));
        c.fds[0] = counter_of(1000, 10, 10);
        c.fds[1] = counter_of(1000, 20, 10);
        c.fds[2] = counter_of(0, 20, 0);
        counters_read(&c, &got);
        assert_true(got.has && got.values[0] == 1000 && got.values[1] == 2000 && got.values[2] == -1);
        counters_close(&c);
}

/* Reads all of FD, a little later and in small pieces; its exit status says whether that were N bytes. */
static pid_t slow_reader(int fd, int other, size_t n)
{
        pid_t pid = fork();
        char piece[1024];
        ssize_t got;

        if (pid != 0)
                return pid;
        close(other);
        usleep(20000);
        while ((got = read(fd, piece, sizeof(piece))) > 0)
                n -= (size_t)got;
        _exit(n != 0);
}

static void test_output_is_passed_on_whole_when_ours_does_not_block(void **state)
{
        enum { BYTES = 300000, SMALL = 4096 };
        _cleanup_(measure_scan_done) struct measure_scan scan = MEASURE_SCAN_INIT;
        _cleanup_(free_ptr) char *text = xcalloc(1, BYTES);
        struct loop *loop = loop_new(NULL, NULL, NULL);
        int in[2], out[2], size = SMALL, status;
        struct pass p;
        pid_t reader;

        assert_int_equal(pipe(in), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, out), 0);
        assert_int_equal(fcntl(out[1], F_SETFL, 0), 0);
        assert_int_equal(setsockopt(out[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
        reader = slow_reader(out[1], out[0], BYTES);
        assert_int_equal(pass_init(&p, loop, in[0], out[0], &scan, NULL), 0);
        assert_int_equal(write(in[1], text, BYTES), BYTES);
        close(in[1]);
        pass_end(&p);
        close(out[0]);
        close(out[1]);
        assert_int_equal(waitpid(reader, &status, 0), reader);
        assert_int_equal(status, 0);
        loop_free(loop);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_counter_that_never_had_its_turn_is_absent),
        cmocka_unit_test(test_output_is_passed_on_whole_when_ours_does_not_block),
        cmocka_unit_test_setup_teardown(test_version_2_of_cgroups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_version_1_of_cgroups_as_a_container_sees_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed_for_want_of_memory_inside_a_shell, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_cgroups_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_machine, setup, teardown),
        cmocka_unit_test(test_counters_that_are_not_there_are_absent),
        cmocka_unit_test(test_what_nvidia_smi_says),
        cmocka_unit_test(test_names_with_brackets_do_not_confuse),
        cmocka_unit_test(test_what_is_shared_counts_once_while_they_end),
};

UNIT_MAIN(tests)
