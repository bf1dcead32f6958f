/*
 * A session from begin to end: waits for the workers, runs block after block, writes what came out.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "probe/session/internal.h"

enum { EXIT_REFUSED = 2, CHECKPOINT_SHARE = 100 };

static const usec_t wait_default = 10 * 60 * USEC_PER_SEC, checkpoint_after = 5 * USEC_PER_SEC,
                    silence_most = 60 * USEC_PER_SEC;
/* When a pod is ended its containers are told one after the other: a worker may go before we are told. */
static const usec_t told_within = 2 * USEC_PER_SEC;

struct coordinator {
        const struct session_config *config;
        struct session_plan plan;
        struct arena arena;
        struct session_samples samples;
        struct session_reporter reporter;
        struct loop *loop;
        struct crew *crew;
        struct hub *hub;
        struct timer waiting; /* for the workers */
        struct defer advance;
        bool begun;    /* the workers are there, or will not come */
        bool stopping; /* told to end */
        int signo;
        unsigned pod, block;
        size_t order[SESSION_ENTRIES_MAX], at;
        bool runs
                [SESSION_ENTRIES_MAX]; /* entries that are under way; an entry's number is the id of its run */
        enum { THERE, GONE, GONE_WHILE_IT_RAN } lost[SESSION_ENTRIES_MAX]; /* those whose worker is gone */
        usec_t gone[SESSION_GROUPS_MAX];                                   /* since when; 0: it is not */
        struct timer losing;
        size_t under_way;
        size_t fresh; /* runs that are not in the checkpoint */
        usec_t kept;  /* when the checkpoint was written */
        bool complained;
};

static void on_advance(struct defer *d);

/* ---- files */

static void write_checkpoint(struct coordinator *c)
{
        struct err err = ERR_INIT;

        c->kept = loop_now(c->loop);
        c->fresh = 0;
        if (session_checkpoint_write(&c->samples, c->config->dir, &err) == 0)
                return;
        if (!c->complained)
                LOG_WARN(c->config->log, "Cannot write the checkpoint; the run goes on without", F_ERR(&err));
        c->complained = true;
}

/* After every run while that is little; later, so that writing stays a small part of all. */
static void keep(struct coordinator *c)
{
        c->fresh++;
        if (c->fresh * CHECKPOINT_SHARE >= c->samples.rows.n ||
            loop_now(c->loop) >= c->kept + checkpoint_after)
                write_checkpoint(c);
}

static int write_result(struct coordinator *c, const struct json *result, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", c->config->dir, RUN_RESULT_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(2 * SESSION_RESULT_MAX);

        json_write(result, JSON_COMPACT, &text);
        buf_addc(&text, '\n');
        if (text.overflow)
                return err_set(err, E_INTERNAL, "the result is larger than %d bytes", SESSION_RESULT_MAX);
        return file_replace(path, buf_str(&text), 0644, err);
}

static void remove_checkpoint(const struct coordinator *c)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", c->config->dir, RUN_CHECKPOINT_FILE);

        (void)unlink(path);
}

/* ---- the end */

static void finish(struct coordinator *c, int status)
{
        session_reporter_stop(&c->reporter);
        timer_cancel(&c->waiting);
        timer_cancel(&c->losing);
        loop_stop(c->loop, status);
}

static void fail(struct coordinator *c, const char *reason, const char *message)
{
        LOG_ERROR(c->config->log, "The session has failed", F_STR("reason", reason), F_STR("error", message));
        (void)run_report_failed(&c->reporter.reporter, run_reason_valid(str_of(reason)) ? reason : NULL,
                                message);
        finish(c, 1);
}

static void count_valid(const struct session_samples *s, size_t *valid, size_t *failed)
{
        *valid = *failed = 0;
        vec_foreach (row, &s->rows)
                if (row_counts(s->plan, row))
                        (*(row->reason ? failed : valid))++;
}

/* Whose that is which was told first, where there are several. */
static const char *with_name(struct arena *a, const struct session_samples *s, const char *message)
{
        vec_foreach (row, &s->rows)
                if (s->plan->n > 1 && row->reason == 1)
                        return arena_printf(a, "%s: %s", entry_algorithm(s->plan, row->entry)->label,
                                            message);
        return message;
}

/* Everything is measured: what does it say? */
static void conclude(struct coordinator *c)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *reason = NULL, *message = NULL;
        struct err err = ERR_INIT;
        char text[128];
        size_t valid, failed;

        session_report(&c->reporter, SESSION_ANALYSING, 0, 0, "comparing %zu runs", c->samples.rows.n);
        /* What they say is worth more than they are. */
        if (samples_file_write(&c->samples, c->config->dir, &err) < 0) {
                LOG_WARN(c->config->log, "Cannot write the samples", F_ERR(&err));
                samples_note(&c->samples, arena_printf(&a, "the samples are not kept: %s", err.text));
        }
        if (write_result(c, session_result(&a, &c->samples), &err) < 0) {
                fail(c, "ResultNotWritten", err.text);
                return;
        }
        if (!session_succeeded(&c->samples, &reason, &message)) {
                fail(c, reason ? reason : "NoValidRun",
                     message ? with_name(&a, &c->samples, message) : "no run was valid");
                remove_checkpoint(c);
                return;
        }
        count_valid(&c->samples, &valid, &failed);
        snprintf(text, sizeof(text), "%zu valid run%s, %zu failed", valid, valid == 1 ? "" : "s", failed);
        (void)run_report_complete(&c->reporter.reporter, text);
        /* The result is whole, and the samples need the room. */
        remove_checkpoint(c);
        finish(c, 0);
}

/* This pod has measured its blocks. */
static void end_pod(struct coordinator *c)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *reason, *message;
        struct err err = ERR_INIT;
        char text[64];

        c->samples.pods_done = c->pod + 1;
        write_checkpoint(c);
        /* Where nothing works, another pod would not help. */
        if (c->samples.pods_done >= c->plan.pods || !session_succeeded(&c->samples, &reason, &message)) {
                conclude(c);
                return;
        }
        if (write_result(c, json_build(&a, "{'morePods': %u}", c->plan.pods - c->samples.pods_done), &err) <
            0) {
                fail(c, "ResultNotWritten", err.text);
                return;
        }
        snprintf(text, sizeof(text), "pod %u of %u has measured", c->samples.pods_done, c->plan.pods);
        (void)run_report_complete(&c->reporter.reporter, text);
        finish(c, 0);
}

static void end_stopped(struct coordinator *c)
{
        write_checkpoint(c);
        finish(c, 128 + c->signo);
}

/* ---- runs */

static void go_on(struct coordinator *c)
{
        defer_run(c->loop, &c->advance, on_advance);
}

static void end_run(struct coordinator *c, size_t entry, const struct measure_sample *sample)
{
        if (entry >= plan_entries(&c->plan) || !c->runs[entry])
                return;
        c->runs[entry] = false;
        c->lost[entry] = THERE;
        c->under_way--;
        /* What we ended ourselves is no measurement. */
        if (!c->stopping || !sample->error_reason) {
                samples_add(&c->samples, entry, c->pod, c->block, sample);
                session_report_sample(&c->reporter, sample);
                keep(c);
        }
        go_on(c);
}

/* The container in which it should run is not there. */
static void lose_run(struct coordinator *c, size_t entry)
{
        const struct session_algorithm *al = entry_algorithm(&c->plan, entry);
        bool ran = c->lost[entry] == GONE_WHILE_IT_RAN;
        _cleanup_(free_ptr) char *message = xasprintf(
                "its container %s%s%s", ran ? "ended while it ran" : "did not start, or is gone",
                al->image ? ": image " : "", al->image ? al->image : "");
        const struct measure_sample failed = sample_of_failure(ran ? "ContainerGone" : "ContainerNotStarted",
                                                               message);

        end_run(c, entry, &failed);
}

static void on_losing(struct timer *t)
{
        struct coordinator *c = CONTAINER_OF(t, struct coordinator, losing);

        for (size_t i = 0; i < plan_entries(&c->plan); i++)
                if (c->lost[i])
                        lose_run(c, i);
}

/* At once, or when we would have been told to end as well. */
static void lose_soon(struct coordinator *c, size_t entry, bool ran)
{
        usec_t until = usec_add(c->gone[entry_algorithm(&c->plan, entry)->group], told_within);

        c->lost[entry] = ran ? GONE_WHILE_IT_RAN : GONE;
        if (loop_now(c->loop) < until)
                timer_at(&c->losing, until);
        else
                lose_run(c, entry);
}

static void tell_step(struct coordinator *c, size_t entry)
{
        const struct session_plan *p = &c->plan;
        bool warm = c->block < p->warmup;
        unsigned block = warm ? c->block : c->block - p->warmup, blocks = warm ? p->warmup : p->iterations;
        size_t entries = plan_entries(p);
        char size[32] = "", pod[48] = "";

        if (entry_size(p, entry) > 0)
                snprintf(size, sizeof(size), ", size %lld", (long long)entry_size(p, entry));
        if (p->pods > 1)
                snprintf(pod, sizeof(pod), "pod %u/%u, ", c->pod + 1, p->pods);
        if (p->parallel) /* what is begun is not done: a block has the pace of its slowest */
                session_report(&c->reporter, warm ? SESSION_WARMUP : SESSION_MEASURING,
                               (int64_t)(block * entries + 1), (int64_t)(blocks * entries),
                               "%s%s %u/%u: %zu at once", pod, warm ? "warm-up block" : "block", block + 1,
                               blocks, entries);
        else
                session_report(&c->reporter, warm ? SESSION_WARMUP : SESSION_MEASURING,
                               (int64_t)(block * entries + c->at), (int64_t)(blocks * entries),
                               "%s%s %u/%u: %s%s", pod, warm ? "warm-up block" : "block", block + 1, blocks,
                               entry_algorithm(p, entry)->label, size);
}

static void start_run(struct coordinator *c, size_t entry)
{
        const struct session_algorithm *al = entry_algorithm(&c->plan, entry);
        const struct session_job job = {
                .id = (unsigned)entry,
                .command = al->command,
                .env = al->env,
                .n_env = al->n_env,
                .expand = streq(al->type, "custom"),
                .size = entry_size(&c->plan, entry),
                .seed = block_seed(&c->plan, c->block),
                .iteration = block_iteration(&c->plan, c->block),
                .timeout = c->plan.run_timeout,
        };

        c->runs[entry] = true;
        c->under_way++;
        tell_step(c, entry);
        if (al->group == 0)
                crew_start(c->crew, &job);
        else if (hub_has(c->hub, al->group))
                hub_start(c->hub, al->group, &job);
        else
                lose_soon(c, entry, false);
}

/* Starts what may run now; at the end of all blocks the pod is done. */
static void advance(struct coordinator *c)
{
        while (c->block < plan_blocks(&c->plan)) {
                size_t entry;

                if (c->at == plan_entries(&c->plan)) {
                        if (c->under_way)
                                return;
                        c->at = 0;
                        c->block++;
                        if (c->block < plan_blocks(&c->plan))
                                block_order(&c->plan, c->pod, c->block, c->order);
                        continue;
                }
                if (c->under_way && !c->plan.parallel)
                        return;
                entry = c->order[c->at++];
                if (!samples_has(&c->samples, entry, c->pod, c->block) &&
                    !samples_gave_up(&c->samples, entry, c->pod))
                        start_run(c, entry);
        }
        end_pod(c);
}

static void on_advance(struct defer *d)
{
        struct coordinator *c = CONTAINER_OF(d, struct coordinator, advance);

        if (c->stopping && !c->under_way)
                end_stopped(c);
        else if (!c->stopping && c->begun)
                advance(c);
}

/* ---- events */

static void on_crew_done(void *arg, unsigned id, const struct measure_sample *sample)
{
        end_run(arg, id, sample);
}

static void begin(struct coordinator *c)
{
        if (c->begun)
                return;
        c->begun = true;
        timer_cancel(&c->waiting);
        block_order(&c->plan, c->pod, c->block, c->order);
        go_on(c);
}

static void on_waited(struct timer *t)
{
        struct coordinator *c = CONTAINER_OF(t, struct coordinator, waiting);

        for (unsigned g = 1; g < c->plan.groups; g++)
                if (!hub_has(c->hub, g))
                        LOG_WARN(c->config->log, "A worker has not come", F_UINT("group", g));
        begin(c);
}

static void on_come(void *arg, unsigned group)
{
        struct coordinator *c = arg;

        c->gone[group] = 0;
        if (hub_complete(c->hub))
                begin(c);
}

static void on_gone(void *arg, unsigned group)
{
        struct coordinator *c = arg;

        c->gone[group] = loop_now(c->loop);
        for (size_t i = 0; i < plan_entries(&c->plan); i++)
                if (c->runs[i] && entry_algorithm(&c->plan, i)->group == group)
                        lose_soon(c, i, true);
}

static void on_worker_sample(void *arg, unsigned group, unsigned id, const struct measure_sample *sample)
{
        struct coordinator *c = arg;

        if (id < plan_entries(&c->plan) && entry_algorithm(&c->plan, id)->group == group)
                end_run(c, id, sample);
}

static void on_signal(void *arg, int signo)
{
        struct coordinator *c = arg;

        if (c->stopping)
                return;
        timer_cancel(&c->losing);
        c->stopping = true;
        c->signo = signo;
        crew_stop(c->crew);
        /* A worker ends with the connection. */
        for (size_t i = 0; i < plan_entries(&c->plan); i++)
                if (c->runs[i] && entry_algorithm(&c->plan, i)->group > 0) {
                        c->runs[i] = false;
                        c->under_way--;
                }
        go_on(c);
}

static struct measure_usage usage_now(void *arg)
{
        struct coordinator *c = arg;
        struct measure_usage u = crew_usage(c->crew), other = hub_usage(c->hub);

        u.memory += other.memory;
        u.cpu_percent += other.cpu_percent;
        u.processes += other.processes;
        return u;
}

/* ---- the begin */

/* Else it is the next one's turn: that each goes on where the one before it has ended is how it is meant. */
static bool pod_had_begun(const struct session_samples *s)
{
        vec_foreach (row, &s->rows)
                if (row->pod >= s->pods_done)
                        return true;
        return false;
}

static void continue_from_checkpoint(struct coordinator *c)
{
        struct err err = ERR_INIT;

        if (session_checkpoint_read(&c->samples, c->config->dir, &err) < 0)
                LOG_WARN(c->config->log, "The checkpoint is not used, the session begins anew", F_ERR(&err));
        else if (c->samples.rows.n) {
                c->samples.continued += pod_had_begun(&c->samples);
                LOG_INFO(c->config->log, "Going on from the checkpoint", F_UINT("runs", c->samples.rows.n),
                         F_UINT("pods", c->samples.pods_done));
        }
        c->pod = c->samples.pods_done;
}

static int prepare(struct coordinator *c, struct err *err)
{
        static const struct hub_events events = {
                .on_come = on_come, .on_gone = on_gone, .on_sample = on_worker_sample};
        const struct session_config *config = c->config;
        const struct session_measure *measure = config->measure ? config->measure : &SESSION_MEASURE;
        usec_t silence = config->worker_wait ? MIN(config->worker_wait, silence_most) : silence_most;

        /* First, while we are small. */
        c->crew = crew_new(c->loop, measure, config->ctl, 0, on_crew_done, c);
        c->hub = hub_new(c->loop, config->ctl, c->plan.groups, silence, &events, c, config->log, err);
        if (!c->hub)
                return -1;
        if (loop_on_signal(c->loop, SIGTERM, on_signal, c) < 0 ||
            loop_on_signal(c->loop, SIGINT, on_signal, c) < 0)
                return err_set(err, E_IO, "cannot wait for signals");
        timer_init(&c->waiting, c->loop, on_waited);
        timer_init(&c->losing, c->loop, on_losing);
        session_reporter_init(&c->reporter, &c->plan, c->loop, config->dir, config->log, usage_now, c);
        return 0;
}

/* Nothing is measured: says why. */
static int refuse(const struct session_config *config, struct clock *clock, const char *reason,
                  const struct err *err)
{
        struct run_reporter r = {.dir = config->dir, .clock = clock, .log = config->log};

        LOG_ERROR(config->log, "The session cannot start", F_STR("reason", reason), F_ERR(err));
        (void)run_report_failed(&r, reason, err->text);
        return streq(reason, "InvalidPlan") ? EXIT_REFUSED : 1;
}

static int run_plan(struct coordinator *c)
{
        struct err err = ERR_INIT;
        usec_t wait = c->config->worker_wait ? c->config->worker_wait : wait_default;

        if (prepare(c, &err) < 0)
                return refuse(c->config, loop_clock(c->loop), "NotStarted", &err);
        samples_init(&c->samples, &c->plan);
        continue_from_checkpoint(c);
        samples_machine(&c->samples, measure_machine(&c->arena, NULL));
        session_report(&c->reporter, SESSION_PREPARING, 0, 0, "%s",
                       c->plan.groups > 1 ? "waiting for the containers of the other images" : "starting");
        if (c->pod >= c->plan.pods)
                conclude(c);
        else if (c->plan.groups > 1)
                timer_after(&c->waiting, wait);
        else
                begin(c);
        return loop_run(c->loop);
}

int session_run(const struct session_config *config)
{
        struct clock real = CLOCK_REAL, *clock = config->clock ? config->clock : &real;
        struct coordinator *c = xcalloc(1, sizeof(*c));
        struct err err = ERR_INIT;
        int status;

        c->config = config;
        if (session_plan_parse(&c->arena, str_of(config->plan), &c->plan, &err) < 0)
                status = refuse(config, clock, "InvalidPlan", &err);
        else if (!(c->loop = loop_new(clock, config->log, &err)))
                status = refuse(config, clock, "NotStarted", &err);
        else {
                status = run_plan(c);
                defer_cancel(&c->advance);
                session_reporter_stop(&c->reporter);
                timer_cancel(&c->waiting);
                timer_cancel(&c->losing);
                crew_free(c->crew);
                hub_free(c->hub);
                samples_done(&c->samples);
                loop_free(c->loop);
        }
        arena_done(&c->arena);
        free(c);
        return status;
}
