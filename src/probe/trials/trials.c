/*
 * Commands in blocks, one run at a time.
 */
#include "probe/trials/internal.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "net/net.h"

enum { GIVE_UP_AFTER = 3, NAME_MAX_ = 400, EXIT_BY_SIGNAL = 128 };

static const double SHORT = 5e-3; /* seconds: below, the start of a process is much of it */
static const double NOISY = 0.1;  /* deviation over mean */
static const double TREND_P = 0.01;

/* What is under way. */
struct runner {
        struct trials *t;
        const struct trials_config *c;
        struct loop *loop;
        struct measure *measure;
        struct rng rng;
        size_t *order;
        bool over;
        struct measure_sample last;
        struct err *err;
};

/* ---- one run */

static void on_done(void *arg, const struct measure_sample *sample)
{
        struct runner *r = arg;

        r->last = measure_sample_copy(&r->t->arena, sample);
        r->over = true;
}

static void on_signal(void *arg, int signo)
{
        struct runner *r = arg;

        if (r->t->interrupted)
                _exit(EXIT_BY_SIGNAL + signo);
        r->t->interrupted = true;
        measure_stop(r->measure);
}

/* Or takes the next of its row, if there is one. */
static int run_command(struct runner *r, const struct measure_command *command)
{
        r->over = false;
        if (!measure_running(r->measure) && measure_start(r->measure, command, on_done, r, r->err) < 0)
                return -1;
        while (!r->over && loop_turn(r->loop, true))
                continue;
        return 0;
}

static int prepare(struct runner *r)
{
        struct measure_command command = {.argv = r->c->prepare,
                                          .output = r->c->show_output ? MEASURE_OUTPUT_OURS
                                                                      : MEASURE_OUTPUT_NULL};

        if (!r->c->prepare)
                return 0;
        if (run_command(r, &command) < 0)
                return -1;
        if (!measure_sample_ok(&r->last) && !r->t->interrupted)
                return err_set(r->err, E_CONFIG, "--prepare failed: %s", r->last.error_message);
        return 0;
}

/* Its exit status is no failure when that is wanted. */
static void forgive(struct measure_sample *s)
{
        if (streq(s->error_reason, "ExitCode"))
                s->error_reason = s->error_message = NULL;
}

static int measure_one(struct runner *r, size_t i, unsigned block)
{
        struct trials_side *side = &r->t->sides[i];
        struct measure_command command = {
                .argv = r->c->commands[i],
                .input = r->c->input,
                .timeout = r->c->timeout,
                .output = r->c->show_output ? MEASURE_OUTPUT_OURS : MEASURE_OUTPUT_NULL,
                .times = r->c->n == 1 && !r->c->prepare ? r->c->warmup + r->c->runs - block : 1,
        };
        struct trials_run *run;

        if (r->c->progress)
                r->c->progress(r->c->arg, block + 1, r->c->runs + r->c->warmup, side->name);
        if (prepare(r) < 0)
                return -1;
        if (r->t->interrupted)
                return 0;
        if (run_command(r, &command) < 0)
                return -1;
        if (streq(r->last.error_reason, "NotStarted"))
                return err_set(r->err, E_CONFIG, "%s", r->last.error_message);
        if (r->c->ignore_failure)
                forgive(&r->last);
        side->failures_in_a_row = measure_sample_ok(&r->last) ? 0 : side->failures_in_a_row + 1;
        if (block < r->c->warmup || r->last.stopped)
                return 0;
        run = vec_push(&side->runs);
        *run = (struct trials_run){block - r->c->warmup, r->last};
        side->valid += measure_sample_ok(&r->last);
        return 0;
}

static int run_blocks(struct runner *r)
{
        for (unsigned block = 0; block < r->c->runs + r->c->warmup; block++) {
                stats_shuffle(&r->rng, r->order, r->c->n);
                for (size_t i = 0; i < r->c->n && !r->t->interrupted; i++)
                        if (r->t->sides[r->order[i]].failures_in_a_row < GIVE_UP_AFTER &&
                            measure_one(r, r->order[i], block) < 0)
                                return -1;
        }
        return 0;
}

/* ---- what comes of them */

static double median_of(struct arena *a, const struct trials_side *side,
                        double (*of)(const struct measure_sample *))
{
        double *values = arena_new_array(a, double, side->valid + 1);
        size_t n = 0;

        vec_foreach (run, &side->runs)
                if (measure_sample_ok(&run->sample) && !isnan(of(&run->sample)))
                        values[n++] = of(&run->sample);
        return stats_median(values, n);
}

static double mean_of(const struct trials_side *side, double (*of)(const struct measure_sample *))
{
        double sum = 0;

        vec_foreach (run, &side->runs)
                sum += measure_sample_ok(&run->sample) ? of(&run->sample) : 0;
        return side->valid ? sum / (double)side->valid : NAN;
}

static double user_of(const struct measure_sample *s)
{
        return s->user;
}

static double sys_of(const struct measure_sample *s)
{
        return s->sys;
}

static double memory_of(const struct measure_sample *s)
{
        return s->peak_rss < 0 ? NAN : (double)s->peak_rss;
}

static void describe(struct trials *t, struct trials_side *side)
{
        size_t n = 0;

        side->times = arena_new_array(&t->arena, double, side->valid + 1);
        vec_foreach (run, &side->runs)
                if (measure_sample_ok(&run->sample))
                        side->times[n++] = run->sample.wall;
                else if (!side->failed)
                        side->failed = &run->sample;
        if (!stats_describe(side->times, n, &side->time))
                side->time = (struct stats_description){0};
        side->user = mean_of(side, user_of);
        side->sys = mean_of(side, sys_of);
        side->memory = median_of(&t->arena, side, memory_of);
}

static void compare(struct trials *t)
{
        struct stats_side *sides = arena_new_array(&t->arena, struct stats_side, t->config->n);
        struct stats_compare c = {
                .measure = STATS_TIME, .sides = sides, .n_sides = t->config->n, .seed = "sonde probe"};

        for (size_t i = 0; i < t->config->n; i++) {
                struct stats_sample *samples = arena_new_array(&t->arena, struct stats_sample,
                                                               t->sides[i].valid + 1);
                size_t n = 0;

                vec_foreach (run, &t->sides[i].runs)
                        if (measure_sample_ok(&run->sample))
                                samples[n++] = (struct stats_sample){run->sample.wall, 0, run->block};
                sides[i] = (struct stats_side){
                        .name = t->sides[i].name, .samples = samples, .n = n, .accuracy = NAN};
        }
        if (t->config->n > 1)
                stats_compare(&t->arena, &c, &t->comparison);
}

/* ---- what a person should know */

static void warn(struct trials *t, const struct trials_side *side, const char *fmt, ...) _printf_(3, 4);
static void warn(struct trials *t, const struct trials_side *side, const char *fmt, ...)
{
        va_list ap;
        char *text;

        va_start(ap, fmt);
        text = arena_vprintf(&t->arena, fmt, ap);
        va_end(ap);
        *vec_push(&t->warnings) = t->config->n > 1 ? arena_printf(&t->arena, "%s: %s", side->name, text)
                                                   : text;
}

static void warn_of_ends(struct trials *t, const struct trials_side *side)
{
        size_t left = 0, throttled = 0;
        const char *note = NULL;

        vec_foreach (run, &side->runs) {
                left += run->sample.left_over > 0;
                throttled += run->sample.cgroup.has && run->sample.cgroup.throttled_periods > 0;
                note = note ? note : run->sample.left_over ? NULL : run->sample.note;
        }
        if (side->failed)
                warn(t, side, "%zu of %zu runs failed (%s) and are not counted%s", side->runs.n - side->valid,
                     side->runs.n, side->failed->error_message,
                     side->failures_in_a_row >= GIVE_UP_AFTER ? "; it was not run again" : "");
        if (left)
                warn(t, side, "processes were left over after %zu runs, and ended", left);
        if (throttled)
                warn(t, side, "the CPU limit of this container held back %zu of %zu runs", throttled,
                     side->runs.n);
        if (note)
                warn(t, side, "%s", note);
}

static void warn_of_times(struct trials *t, const struct trials_side *side)
{
        const struct stats_description *d = &side->time;

        if (!d->n)
                return;
        if (d->median < SHORT)
                warn(t, side, "shorter than 5 ms: much of it is the start of a process");
        if (d->slow_first)
                warn(t, side,
                     "the first run took %.2f times as long as the others: caches? more warm-up (-w)",
                     d->first_ratio);
        if (d->outliers.severe)
                warn(t, side, "%zu severe outlier%s: was something else running?", d->outliers.severe,
                     d->outliers.severe == 1 ? "" : "s");
        if (d->cv > NOISY)
                warn(t, side, "noisy: the times scatter by %.0f %%", d->cv * 100);
        if (d->trend_p < TREND_P)
                warn(t, side, "it became %s while it was measured (p=%.2g)",
                     d->trend > 0 ? "slower" : "faster", d->trend_p);
}

void trials_conclude(struct trials *t)
{
        for (size_t i = 0; i < t->config->n; i++)
                describe(t, &t->sides[i]);
        compare(t);
        for (size_t i = 0; i < t->config->n; i++) {
                warn_of_ends(t, &t->sides[i]);
                warn_of_times(t, &t->sides[i]);
        }
}

/* ---- all of it */

static const char *command_line(struct arena *a, char *const *argv)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(NAME_MAX_);

        for (; *argv && !line.overflow; argv++)
                buf_printf(&line, "%s%s", line.n ? " " : "", *argv);
        for (size_t i = 0; i < line.n; i++)
                if ((unsigned char)line.p[i] < ' ' || line.p[i] == 0x7f)
                        line.p[i] = ' ';
        return arena_printf(a, "%.*s%s", (int)utf8_cut(line.p, line.n, NAME_MAX_), line.n ? line.p : "",
                            line.overflow ? "…" : "");
}

/* Two of one name are told apart by their number. */
static void name_sides(struct trials *t)
{
        for (size_t i = 0; i < t->config->n; i++) {
                const char *line = command_line(&t->arena, t->config->commands[i]), *name = line;

                for (size_t k = 0, n = 1; k < i; k++)
                        if (streq(t->sides[k].name, name)) {
                                name = arena_printf(&t->arena, "%s (%zu)", line, ++n);
                                k = SIZE_MAX; /* from the first again */
                        }
                t->sides[i].name = name;
        }
}

static int run_all(struct runner *r)
{
        const struct measure_options options = {.counters = r->c->counters, .gpu = true};
        _cleanup_(measure_free) struct measure *m = measure_new(r->loop, &options, r->err);

        r->measure = m;
        if (!m)
                return -1;
        if (loop_on_signal(r->loop, SIGINT, on_signal, r) < 0 ||
            loop_on_signal(r->loop, SIGTERM, on_signal, r) < 0)
                return err_set(r->err, E_IO, "cannot take signals");
        return run_blocks(r);
}

int trials_run(struct trials *t, const struct trials_config *config, struct err *err)
{
        struct runner r = {.t = t, .c = config, .err = err};
        int ok;

        *t = (struct trials){.config = config};
        t->sides = arena_new_array(&t->arena, struct trials_side, config->n);
        r.order = arena_new_array(&t->arena, size_t, config->n);
        name_sides(t);
        for (size_t i = 0; i < config->n; i++)
                r.order[i] = i;
        stats_seed(&r.rng, "sonde probe", config->seed);
        r.loop = loop_new(NULL, NULL, err);
        if (!r.loop)
                return -1;
        ok = run_all(&r);
        loop_free(r.loop);
        if (ok < 0)
                return -1;
        trials_conclude(t);
        return 0;
}

void trials_done(struct trials *t)
{
        for (size_t i = 0; t->sides && i < t->config->n; i++)
                vec_done(&t->sides[i].runs);
        vec_done(&t->warnings);
        arena_done(&t->arena);
}

bool trials_any_failed(const struct trials *t)
{
        for (size_t i = 0; i < t->config->n; i++)
                if (t->sides[i].failed)
                        return true;
        return false;
}
