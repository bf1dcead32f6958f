/*
 * Runs in this container: places, each with one run at a time.
 */
#include <errno.h>
#include <unistd.h>

#include "probe/session/internal.h"

struct place {
        struct crew *crew;
        void *measure;
        unsigned id;
        bool busy;
        bool crowded;                 /* another one runs meanwhile, in the same directory */
        struct defer failing;         /* it could not even be started: said from the loop, as all else */
        struct measure_sample failed; /* with `why` */
        struct err why;
        char *metrics_file;
        unsigned spoilt; /* names that cannot be used any more */
};

struct crew {
        struct loop *loop;
        const struct session_measure *measure;
        crew_done_fn *done;
        void *arg;
        const char *ctl;
        unsigned group;
        VEC(struct place *) places;
};

static void *make_measure(void *ctx _unused_, struct loop *loop, struct err *err)
{
        return measure_new(loop, &(struct measure_options){.counters = true, .gpu = true}, err);
}

static int start_measure(void *place, const struct measure_command *command,
                         void (*done)(void *arg, const struct measure_sample *sample), void *arg,
                         struct err *err)
{
        return measure_start(place, command, done, arg, err);
}

static void stop_measure(void *place)
{
        measure_stop(place);
}

static struct measure_usage usage_measure(void *place)
{
        return measure_usage(place);
}

static void free_measure(void *place)
{
        measure_free(place);
}

const struct session_measure SESSION_MEASURE = {
        .make = make_measure,
        .start = start_measure,
        .stop = stop_measure,
        .usage = usage_measure,
        .free = free_measure,
};

struct measure_sample sample_of_failure(const char *reason, const char *message)
{
        return (struct measure_sample){
                .wall = NAN,
                .user = NAN,
                .sys = NAN,
                .peak_rss = -1,
                .minor_faults = -1,
                .major_faults = -1,
                .voluntary_switches = -1,
                .involuntary_switches = -1,
                .exit_code = -1,
                .error_reason = reason,
                .error_message = message,
        };
}

void crew_free(struct crew *c)
{
        if (!c)
                return;
        vec_foreach (p, &c->places) {
                defer_cancel(&(*p)->failing);
                if ((*p)->measure)
                        c->measure->free((*p)->measure);
                free((*p)->metrics_file);
                free(*p);
        }
        vec_done(&c->places);
        free(c);
}

static void name_metrics_file(struct place *p, size_t number)
{
        free(p->metrics_file);
        p->metrics_file = xasprintf("%s/metrics-%u-%zu-%u.json", p->crew->ctl, p->crew->group, number,
                                    p->spoilt);
}

/* A command that made a directory of its file must not spoil the next one's. */
static void clear_metrics_file(struct place *p)
{
        size_t number = 0;

        if (unlink(p->metrics_file) == 0 || errno == ENOENT)
                return;
        while (p->crew->places.v[number] != p)
                number++;
        p->spoilt++;
        name_metrics_file(p, number);
}

/* Another place, for one more run at the same time; what is wrong with it is told when it is used. */
static struct place *add_place(struct crew *c)
{
        struct place *p = xcalloc(1, sizeof(*p));

        p->crew = c;
        name_metrics_file(p, c->places.n);
        p->measure = c->measure->make(c->measure->ctx, c->loop, &p->why);
        *vec_push(&c->places) = p;
        return p;
}

struct crew *crew_new(struct loop *loop, const struct session_measure *measure, const char *ctl,
                      unsigned group, crew_done_fn *done, void *arg)
{
        struct crew *c = xcalloc(1, sizeof(*c));

        *c = (struct crew){
                .loop = loop, .measure = measure, .done = done, .arg = arg, .ctl = ctl, .group = group};
        /* While we are small: a place is a process that begins as large as we are. */
        (void)add_place(c);
        return c;
}

static struct place *free_place(struct crew *c)
{
        vec_foreach (p, &c->places)
                if (!(*p)->busy)
                        return *p;
        return add_place(c);
}

/* P is about to run. */
static void crowd(struct crew *c, struct place *p)
{
        p->crowded = false;
        vec_foreach (other, &c->places)
                if ((*other)->busy)
                        (*other)->crowded = p->crowded = true;
}

static void on_sample(void *arg, const struct measure_sample *sample)
{
        struct place *p = arg;

        p->busy = false;
        p->crew->done(p->crew->arg, p->id, sample);
}

static void on_failing(struct defer *d)
{
        struct place *p = CONTAINER_OF(d, struct place, failing);

        p->failed = sample_of_failure("NotStarted", p->why.text);
        on_sample(p, &p->failed);
}

void crew_start(struct crew *c, const struct session_job *job)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct place *p = free_place(c);
        struct measure_command command = {
                .argv = job_argv(&a, job),
                .env = job_env(&a, job),
                .output = MEASURE_OUTPUT_SCANNED,
                .timeout = job->timeout,
                .crowded = &p->crowded,
        };

        p->id = job->id;
        crowd(c, p);
        p->busy = true;
        if (!command.argv || !command.env) {
                err_set(&p->why, E_TOO_LARGE,
                        "its command is longer than a program's may be once $(NAME) is put in");
                defer_run(c->loop, &p->failing, on_failing);
                return;
        }
        clear_metrics_file(p);
        command.metrics_file = p->metrics_file;
        if (!p->measure)
                p->measure = c->measure->make(c->measure->ctx, c->loop, &p->why);
        if (!p->measure || c->measure->start(p->measure, &command, on_sample, p, &p->why) < 0)
                defer_run(c->loop, &p->failing, on_failing);
}

void crew_stop(struct crew *c)
{
        vec_foreach (p, &c->places)
                if ((*p)->busy && !(*p)->failing.pending)
                        c->measure->stop((*p)->measure);
}

bool crew_busy(const struct crew *c)
{
        vec_foreach (p, &c->places)
                if ((*p)->busy)
                        return true;
        return false;
}

struct measure_usage crew_usage(struct crew *c)
{
        struct measure_usage sum = {0};

        vec_foreach (p, &c->places)
                if ((*p)->busy && !(*p)->failing.pending) {
                        struct measure_usage u = c->measure->usage((*p)->measure);

                        sum.memory += u.memory;
                        sum.cpu_seconds += u.cpu_seconds;
                        sum.cpu_percent += u.cpu_percent;
                        sum.processes += u.processes;
                }
        return sum;
}
