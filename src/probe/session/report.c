/*
 * The status file of a session: where it is, and what it uses.
 */
#include "probe/session/internal.h"

static const usec_t not_before = 250 * USEC_PER_MS, again_after = 10 * USEC_PER_SEC;

static void add_phase(struct run_plan *plan, const char *name, size_t steps, double weight)
{
        struct run_phase *p = &plan->phases[plan->n++];

        snprintf(p->name, sizeof(p->name), "%s", name);
        p->steps = (uint32_t)steps;
        p->weight = weight;
}

/* Phases weigh what they run; the two around them about one run. */
static struct run_plan phases_of(const struct session_plan *plan)
{
        size_t entries = plan_entries(plan);
        struct run_plan p = {.weighted = true};

        add_phase(&p, SESSION_PREPARING, 0, 1);
        if (plan->warmup)
                add_phase(&p, SESSION_WARMUP, entries * plan->warmup, (double)(entries * plan->warmup));
        add_phase(&p, SESSION_MEASURING, entries * plan->iterations, (double)(entries * plan->iterations));
        add_phase(&p, SESSION_ANALYSING, 0, 1);
        return p;
}

static void tell(struct session_reporter *r)
{
        struct measure_usage u = r->usage(r->arg);

        /* Between two short runs there is nothing to see: the last one stands for the next. */
        if (!u.processes)
                u = r->last;
        r->now.has_usage = u.memory > 0;
        r->now.memory_mb = round((double)u.memory / 1e4) / 100;
        r->now.cpu_percent = round(u.cpu_percent * 10) / 10;
        (void)run_report(&r->reporter, &r->now);
        r->told = loop_now(r->loop);
        timer_after(&r->timer, again_after);
}

static void on_timer(struct timer *t)
{
        tell(CONTAINER_OF(t, struct session_reporter, timer));
}

void session_reporter_init(struct session_reporter *r, const struct session_plan *plan, struct loop *loop,
                           const char *dir, const struct log *log, struct measure_usage (*usage)(void *arg),
                           void *arg)
{
        *r = (struct session_reporter){
                .loop = loop,
                .plan = phases_of(plan),
                .now = {.gpus = -1},
                .usage = usage,
                .arg = arg,
        };
        r->reporter = (struct run_reporter){
                .dir = dir, .clock = loop_clock(loop), .log = log, .plan = &r->plan};
        timer_init(&r->timer, loop, on_timer);
}

void session_report(struct session_reporter *r, const char *phase, int64_t step, int64_t of, const char *fmt,
                    ...)
{
        bool first = !streq(r->now.phase, phase);
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(r->message, sizeof(r->message), fmt, ap);
        va_end(ap);
        r->now.phase = phase;
        r->now.message = r->message;
        r->now.has_progress = of > 0;
        r->now.current_step = step;
        r->now.total_steps = of;
        if (first || loop_now(r->loop) >= r->told + not_before)
                tell(r);
        else
                timer_at(&r->timer, r->told + not_before);
}

void session_report_sample(struct session_reporter *r, const struct measure_sample *sample)
{
        if (sample->processes < 1 || sample->peak_rss < 0)
                return;
        r->last = (struct measure_usage){
                .memory = sample->peak_rss,
                .cpu_percent = sample->wall > 0 ? 100 * (sample->user + sample->sys) / sample->wall : 0,
        };
}

void session_reporter_stop(struct session_reporter *r)
{
        timer_cancel(&r->timer);
}
