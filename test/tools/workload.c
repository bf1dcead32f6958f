/*
 * workload - programs whose time, memory and processes are known, for measuring them: workload WHAT [NUMBER]...
 *
 *   cpu MS            burns so much CPU time           work N       does N rounds of the same work, for comparing
 *   timed N           the same, and prints how many nanoseconds it took by its own clock
 *   sleep MS          sleeps                           memory MB MS touches so much, holds it so long
 *   tree N MB MS      N children, each with MB of its own, which they hold for MS; the parent waits for them
 *   shared N MB MS    MB of the parent's, which N children only read
 *   fork N [M FILE]   N children, one after the other, that end at once; M more before them, and what those took, in seconds
 *                     of wall clock and of CPU, is written to FILE
 *   vfork MB MS       touches so much, and has a child by vfork() for so long
 *   orphan MS         leaves a child of a child behind that burns so much CPU time and ends; ends after it
 *   left MS           the same, but ends at once
 *   stubborn MS       ignores SIGTERM and sleeps       exit N       signal N
 *   switch N          N turns of two processes         say TEXT...  prints its arguments, one a line
 *   metrics TEXT [N]  writes TEXT to $SONDE_METRICS_FILE and exits with N
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sink;

static void work(uint64_t rounds)
{
        uint64_t x = 88172645463325252ULL;

        for (uint64_t i = 0; i < rounds; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
        }
        sink = x;
}

static void timed(uint64_t rounds)
{
        struct timespec from, to;

        clock_gettime(CLOCK_MONOTONIC, &from);
        work(rounds);
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("%lld\n", (long long)(to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec);
}

static double cpu_now(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void burn(double ms)
{
        while (cpu_now() < ms)
                work(2000);
}

static void sleep_ms(uint64_t ms)
{
        struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                continue;
}

static char *touch(uint64_t mb)
{
        size_t size = (size_t)mb << 20;
        char *p = mmap(NULL, MAX(size, (size_t)1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);

        if (p == MAP_FAILED)
                exit(1);
        for (size_t i = 0; i < size; i += 4096)
                p[i] = 1;
        return p;
}

static void wait_all(void)
{
        while (wait(NULL) > 0 || errno == EINTR)
                continue;
}

/* One of the tree: has its memory, says so, and holds it until the parent lets go. */
static _noreturn_ void member(uint64_t mb, const volatile char *parents, const int *ready, const int *hold)
{
        char byte = 0;

        close(hold[1]);
        if (!parents)
                (void)touch(mb);
        for (size_t at = 0; parents && at < (size_t)mb << 20; at += 4096)
                sink += (uint64_t)parents[at];
        (void)!write(ready[1], &byte, 1);
        (void)!read(hold[0], &byte, 1);
        _exit(0);
}

static void tree(uint64_t n, uint64_t mb, uint64_t ms, bool shared)
{
        const volatile char *parents = shared ? touch(mb) : NULL;
        int ready[2], hold[2];
        char byte;

        if (pipe(ready) < 0 || pipe(hold) < 0)
                exit(1);
        for (uint64_t i = 0; i < n; i++)
                if (fork() == 0)
                        member(mb, parents, ready, hold);
        for (uint64_t i = 0; i < n; i++)
                (void)!read(ready[0], &byte, 1);
        sleep_ms(ms);
        close(hold[1]);
        wait_all();
}

/* The child has the parent's memory, and the parent waits until it has not. */
static void spawning(uint64_t mb, uint64_t ms)
{
        (void)touch(mb);
        /* That this is not how vfork() is meant to be used is the point. */
        if (vfork() == 0) {   /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
                sleep_ms(ms); /* NOLINT(clang-analyzer-unix.Vfork) */
                _exit(0);
        }
        wait_all();
}

static double now_seconds(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu_used(int who)
{
        struct rusage u;

        getrusage(who, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void forks(uint64_t n)
{
        for (uint64_t i = 0; i < n; i++) {
                if (fork() == 0)
                        _exit(0);
                wait_all();
        }
}

/* For the first 50 ms or so where the children run depends on what the CPUs did before. */
static int settled_forks(uint64_t n, uint64_t before, const char *file)
{
        double began = now_seconds();
        FILE *out = fopen(file, "we");

        forks(before);
        if (!out ||
            fprintf(out, "%.6f %.6f\n", now_seconds() - began,
                    cpu_used(RUSAGE_SELF) + cpu_used(RUSAGE_CHILDREN)) < 0 ||
            fclose(out) != 0)
                return 3;
        forks(n);
        return 0;
}

/* Whoever is to reap PID may do so from here on: it is gone, or what is left of it. */
static void wait_for_end(pid_t pid)
{
        struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

        while (ended.fd >= 0 && poll(&ended, 1, -1) < 0)
                continue;
}

/* A child of a child: its parent is gone at once. */
static void orphan(uint64_t ms, bool wait_for_it)
{
        int fds[2];
        pid_t pid;

        if (pipe(fds) < 0)
                exit(1);
        if (fork() == 0) {
                pid = fork();
                if (pid == 0)
                        burn((double)ms);
                else
                        (void)!write(fds[1], &pid, sizeof(pid));
                _exit(0);
        }
        wait_all();
        if (wait_for_it && read(fds[0], &pid, sizeof(pid)) == sizeof(pid))
                wait_for_end(pid);
}

static void turns(uint64_t n)
{
        int there[2], back[2];
        char byte = 0;

        if (pipe(there) < 0 || pipe(back) < 0)
                exit(1);
        if (fork() == 0) {
                while (n-- && read(there[0], &byte, 1) == 1)
                        (void)!write(back[1], &byte, 1);
                _exit(0);
        }
        while (n-- && write(there[1], &byte, 1) == 1)
                (void)!read(back[0], &byte, 1);
        wait_all();
}

static void write_metrics(const char *text)
{
        const char *path = getenv("SONDE_METRICS_FILE");
        int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                exit(9);
        close(fd);
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "";
        uint64_t a[3] = {0};

        for (int i = 0; i < 3 && i + 2 < argc; i++)
                a[i] = strtoull(argv[i + 2], NULL, 10);
        if (streq(what, "cpu"))
                burn((double)a[0]);
        else if (streq(what, "work"))
                work(a[0]);
        else if (streq(what, "timed"))
                timed(a[0]);
        else if (streq(what, "sleep"))
                sleep_ms(a[0]);
        else if (streq(what, "memory")) {
                (void)touch(a[0]);
                sleep_ms(a[1]);
        } else if (streq(what, "tree") || streq(what, "shared"))
                tree(a[0], a[1], a[2], streq(what, "shared"));
        else if (streq(what, "fork") && argc > 4)
                return settled_forks(a[0], a[1], argv[4]);
        else if (streq(what, "fork"))
                forks(a[0]);
        else if (streq(what, "vfork"))
                spawning(a[0], a[1]);
        else if (streq(what, "orphan") || streq(what, "left"))
                orphan(a[0], streq(what, "orphan"));
        else if (streq(what, "switch"))
                turns(a[0]);
        else if (streq(what, "stubborn")) {
                (void)signal(SIGTERM, SIG_IGN);
                sleep_ms(a[0]);
        } else if (streq(what, "exit"))
                return (int)a[0];
        else if (streq(what, "signal"))
                (void)raise((int)a[0]);
        else if (streq(what, "metrics")) {
                write_metrics(argc > 2 ? argv[2] : "");
                return (int)a[1];
        } else if (streq(what, "say")) {
                for (int i = 2; i < argc; i++)
                        printf("%s\n", argv[i]);
        } else
                return 2;
        return 0;
}
