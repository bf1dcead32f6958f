/*
 * session_rig.h - a session whose commands are not run: what each would have taken is made up from its name, size and seed.
 *
 * The first word of a command says how it behaves: "ok" succeeds, "fails" exits with 3, "missing" is not there, "wobbles" fails
 * every second time. The second word is its time in microseconds.
 */
#pragma once

#include "unit/dir.h"
#include "unit/parse.h"

#include <math.h>
#include <signal.h>

#include "probe/session/internal.h"

struct rig_run {
        char command[64];
        int64_t size;
        uint64_t seed;
        int iteration;
};

struct rig {
        char dir[UNIT_DIR_LEN];
        struct loop *loop;
        VEC(struct rig_run) runs; /* all that were started */
        size_t under_way, most;   /* at once, and the most there were */
        size_t kill_at;           /* the process is gone when this one (from 1) has been started; 0: never */
        size_t signal_at;         /* the same with SIGTERM */
        struct arena arena;
};

struct rig_place {
        struct rig *rig;
        struct defer defer;
        struct measure_sample sample;
        void (*done)(void *arg, const struct measure_sample *sample);
        void *arg;
        bool running;
};

enum { RIG_KILLED = 99 };

static inline void *rig_make(void *ctx, struct loop *loop, struct err *err)
{
        struct rig *rig = ctx;
        struct rig_place *p = xcalloc(1, sizeof(*p));

        p->rig = rig;
        rig->loop = loop;
        return p;
}

static inline void rig_free(void *place)
{
        struct rig_place *p = place;

        defer_cancel(&p->defer);
        free(p);
}

static inline void rig_done(struct defer *d)
{
        struct rig_place *p = CONTAINER_OF(d, struct rig_place, defer);

        p->running = false;
        p->rig->under_way--;
        p->done(p->arg, &p->sample);
}

/* A second turn: with several at once the others have begun before the first ends. */
static inline void rig_soon(struct defer *d)
{
        struct rig_place *p = CONTAINER_OF(d, struct rig_place, defer);

        defer_run(p->rig->loop, &p->defer, rig_done);
}

static inline const char *rig_env(const struct measure_command *c, const char *name)
{
        size_t n = strlen(name);

        for (const char *const *e = c->env; *e; e++)
                if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
                        return *e + n + 1;
        return NULL;
}

static inline struct measure_sample rig_sample(struct rig *rig, char *const *argv, const struct rig_run *run)
{
        double noise = 1 + (double)(run->seed % 1000) / 1e5 + (double)(rig->runs.n % 7) / 1e4;
        double seconds = (double)strtoul(argv[1], NULL, 10) * 1e-6 * noise *
                         (run->size ? (double)run->size : 1);
        bool ok = streq(argv[0], "ok") || (streq(argv[0], "wobbles") && run->iteration % 2 == 0);

        if (streq(argv[0], "missing"))
                return sample_of_failure("NotStarted", "there is no program 'missing'");
        return (struct measure_sample){
                .started = USEC_PER_SEC * 1700000000 + rig->runs.n,
                .wall = seconds,
                .user = seconds * 0.9,
                .sys = seconds * 0.05,
                .peak_rss = 1000000 + (int64_t)run->seed % 5000,
                .processes = 1,
                .exit_code = ok ? 0 : 3,
                .cgroup = {.memory_peak = -1, .throttled_periods = -1},
                .error_reason = ok ? NULL : "ExitCode",
                .error_message = ok ? NULL : "exited with status 3",
        };
}

static inline int rig_start(void *place, const struct measure_command *c,
                            void (*done)(void *arg, const struct measure_sample *sample), void *arg,
                            struct err *err)
{
        struct rig_place *p = place;
        struct rig *rig = p->rig;
        struct rig_run *run = vec_push(&rig->runs);
        const char *size = rig_env(c, "SONDE_INPUT_SIZE");

        assert_false(p->running);
        for (char *const *word = c->argv; *word; word++)
                snprintf(run->command + strlen(run->command), sizeof(run->command) - strlen(run->command),
                         "%s%s", word == c->argv ? "" : " ", *word);
        run->size = size ? strtoll(size, NULL, 10) : 0;
        run->seed = strtoull(rig_env(c, "SONDE_SEED"), NULL, 10);
        run->iteration = (int)strtol(rig_env(c, "SONDE_ITERATION"), NULL, 10);
        p->sample = rig_sample(rig, c->argv, run);
        p->done = done;
        p->arg = arg;
        p->running = true;
        rig->under_way++;
        rig->most = MAX(rig->most, rig->under_way);
        if (rig->runs.n == rig->kill_at)
                loop_stop(rig->loop, RIG_KILLED);
        else if (rig->runs.n == rig->signal_at)
                raise(SIGTERM);
        else
                defer_run(rig->loop, &p->defer, rig_soon);
        return 0;
}

static inline void rig_stop(void *place)
{
        struct rig_place *p = place;

        p->sample.stopped = true;
        p->sample.error_reason = "Stopped";
        defer_run(p->rig->loop, &p->defer, rig_done);
}

static inline struct measure_usage rig_usage(void *place)
{
        return (struct measure_usage){.memory = 5000000, .cpu_percent = 50, .processes = 1};
}

static inline void rig_init(struct rig *rig)
{
        *rig = (struct rig){0};
        /* Every report waits for the disk, where there is one. */
        if (access("/dev/shm", W_OK) == 0)
                setenv("TMPDIR", "/dev/shm", 1);
        unit_dir(rig->dir);
}

static inline void rig_done_all(struct rig *rig)
{
        vec_done(&rig->runs);
        arena_done(&rig->arena);
}

/* Forgets what ran before. */
static inline int rig_run(struct rig *rig, const char *plan)
{
        const struct session_measure measure = {
                .make = rig_make,
                .start = rig_start,
                .stop = rig_stop,
                .usage = rig_usage,
                .free = rig_free,
                .ctx = rig,
        };
        const struct session_config c = {.plan = plan, .dir = rig->dir, .ctl = rig->dir, .measure = &measure};

        rig->runs.n = rig->under_way = rig->most = 0;
        return session_run(&c);
}

/* A file of the run directory as a document; NULL: it is not there. */
static inline struct json *rig_file(struct rig *rig, const char *name)
{
        struct buf text = BUF_INIT(8 << 20);
        char path[UNIT_DIR_LEN + 64];
        struct json *j = NULL;

        snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
        if (file_read(path, &text, NULL) == 0)
                j = parse(&rig->arena, arena_strndup(&rig->arena, text.p, text.n));
        buf_done(&text);
        return j;
}
