/*
 * Writes the status file.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "run/status.h"

#define TEMPORARY RUN_STATUS_FILE ".tmp"

enum { LOCK_TRIES = 200, LOCK_TRIES_LATER = 5, LOCK_PAUSE_MS = 10 };

/* What is in the directory and goes on. */
struct before {
        uint64_t sequence;
        usec_t started_at;
        const struct run_plan *plan;
};

/*
 * A blocking flock() has no time limit, and a writer that was stopped must not stop the profiler. A file system without
 * locks has one writer at a time, or the last one wins.
 */
static int lock(const struct run_reporter *r, int dir, struct err *err)
{
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
        int tries = r->complained ? LOCK_TRIES_LATER : LOCK_TRIES;

        while (flock(dir, LOCK_EX | LOCK_NB) < 0) {
                if (errno == EINTR)
                        continue;
                if (errno != EWOULDBLOCK)
                        return 0;
                if (--tries == 0)
                        return err_set(err, E_BUSY, "another writer does not let go of the directory");
                nanosleep(&pause, NULL);
        }
        return 0;
}

/* Of a text that is refused for something else. */
static uint64_t sequence_of(struct arena *a, struct str text)
{
        struct err err = ERR_INIT;
        const struct json *root = json_parse(a, text, NULL, &err);
        uint64_t sequence;

        return json_to_u64(json_at(root, "sequence"), &sequence) && sequence <= RUN_SEQUENCE_MAX ? sequence
                                                                                                 : 0;
}

/* Takes from the present file what goes on; one that cannot be read has nothing. */
static struct before look(struct arena *a, int dir, usec_t now)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RUN_STATUS_FILE_MAX);
        struct before b = {0};
        struct run_status s;

        if (run_file_read(dir, RUN_STATUS_FILE, RUN_STATUS_FILE_MAX, &text, NULL) != 0)
                return b;
        if (run_status_parse(a, buf_str(&text), now, &s, NULL) < 0) {
                b.sequence = sequence_of(a, buf_str(&text));
                return b;
        }
        b.sequence = s.sequence;
        if (!run_phase_terminal(s.phase)) {
                b.started_at = s.started_at;
                b.plan = s.plan;
        }
        return b;
}

static const char *cut(struct arena *a, const char *s, size_t max)
{
        return s ? arena_strndup(a, s, utf8_cut(s, strlen(s), max)) : NULL;
}

/* A member that readers keep among the others. */
static const struct json *usage_of(struct arena *a, const struct run_report *report)
{
        if (!report->has_usage)
                return NULL;
        return json_build(a, "{'usage': {'memoryMb': %p, 'cpuPercent': %p}}",
                          json_double(a, report->memory_mb), json_double(a, report->cpu_percent));
}

static struct run_status compose(struct arena *a, const struct run_reporter *r,
                                 const struct run_report *report, const struct before *b, usec_t now)
{
        struct run_status s = {
                .phase = report->phase,
                .message = cut(a, report->message ? report->message : "", RUN_MESSAGE_MAX),
                .timestamp = now,
                .started_at = b->started_at ? b->started_at : now,
                .has_progress = report->has_progress,
                .current_step = MAX(report->current_step, (int64_t)0),
                .total_steps = MAX(report->total_steps, (int64_t)0),
                .sub_phase = cut(a, report->sub_phase, RUN_SUB_PHASE_MAX),
                .has_gpu_config = report->gpus >= 0 || report->mapping,
                .current_gpus = report->gpus,
                .parallel_mapping = cut(a, report->mapping, RUN_MAPPING_MAX),
                .best = cut(a, report->best, RUN_BEST_MAX),
                .sequence = MIN(MAX(b->sequence, r->sequence) + 1, RUN_SEQUENCE_MAX),
                .plan = r->plan ? r->plan : b->plan,
                .overall = -1,
                .error = cut(a, report->error, RUN_ERROR_MAX),
                .reason = report->reason,
                .others = usage_of(a, report),
        };
        const struct run_plan *plan = s.plan ? s.plan : &RUN_PLAN_DGDR;

        s.phase_number = run_phase_number(plan, s.phase);
        /* Without a plan a phase of the profiler's own is one of nobody knows how many. */
        s.total_phases = s.plan || s.phase_number ? (int)plan->n : 0;
        if (s.has_progress && s.total_steps > 0)
                s.current_step = MIN(s.current_step, s.total_steps);
        return s;
}

static int write_file(int dir, struct str text, struct err *err)
{
        _cleanup_(fd_close) int fd = -1;

        /* Whatever is there, a killed writer's or somebody's FIFO, it is not ours. */
        if (unlinkat(dir, TEMPORARY, 0) < 0 && errno != ENOENT)
                return err_errno(err, E_IO, errno, "cannot remove %s", TEMPORARY);
        fd = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", TEMPORARY);
        if (fd_write_all(fd, text, err) < 0)
                return err_wrap(err, "%s", TEMPORARY);
        if (fsync(fd) < 0)
                return err_errno(err, E_IO, errno, "cannot sync %s", TEMPORARY);
        if (renameat(dir, TEMPORARY, dir, RUN_STATUS_FILE) < 0)
                return err_errno(err, E_IO, errno, "cannot rename %s to %s", TEMPORARY, RUN_STATUS_FILE);
        return 0;
}

static int replace(struct run_reporter *r, const struct run_report *report, int dir, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(RUN_STATUS_FILE_MAX);
        usec_t now = clock_wall(r->clock);
        struct before b = look(&a, dir, now);
        struct run_status s = compose(&a, r, report, &b, now);

        json_write(run_status_json(&a, &s), JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "the status is larger than %d bytes", RUN_STATUS_FILE_MAX);
        if (write_file(dir, buf_str(&text), err) < 0) {
                unlinkat(dir, TEMPORARY, 0);
                return -1;
        }
        r->sequence = s.sequence;
        return 0;
}

static int write_report(struct run_reporter *r, const struct run_report *report, struct err *err)
{
        const char *fault = run_phase_fault(str_of(report->phase));
        _cleanup_(fd_close) int dir = -1;
        int ok;

        if (fault)
                return err_set(err, E_INVALID, "the phase %s", fault);
        dir = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return err_errno(err, E_IO, errno, "cannot open it");
        if (lock(r, dir, err) < 0)
                return -1;
        ok = replace(r, report, dir, err);
        /* Closing would not do when somebody forked meanwhile. */
        flock(dir, LOCK_UN);
        return ok;
}

bool run_report(struct run_reporter *r, const struct run_report *report)
{
        struct err err = ERR_INIT;

        if (write_report(r, report, &err) == 0)
                return true;
        err_wrap(&err, "cannot report to %s", r->dir);
        if (!r->complained)
                LOG_WARN(r->log, "Cannot write the status file; the run goes on without", F_ERR(&err));
        r->complained = true;
        if (r->why)
                *r->why = err;
        return false;
}

bool run_report_complete(struct run_reporter *r, const char *message)
{
        const struct run_report report = {
                .phase = "Complete",
                .message = message ? message : "Profiling completed successfully",
                .gpus = -1,
        };

        return run_report(r, &report);
}

bool run_report_failed(struct run_reporter *r, const char *reason, const char *error)
{
        char message[RUN_ERROR_MAX + 32];
        const struct run_report report = {
                .phase = "Failed", .message = message, .gpus = -1, .error = error, .reason = reason};

        snprintf(message, sizeof(message), "Profiling failed: %.*s",
                 (int)utf8_cut(error, strlen(error), RUN_ERROR_MAX), error);
        return run_report(r, &report);
}
