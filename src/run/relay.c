/*
 * The relay's life: what is done next, and the end.
 */
#include "run/relay_internal.h"

#define GRACE_DEFAULT (25 * USEC_PER_SEC)

/* ---- the end */

static void tell_end(struct defer *d)
{
        struct relay *r = CONTAINER_OF(d, struct relay, tell);

        r->config.on_end(r->config.arg, r->exit_status); /* may free the relay */
}

static void cancel_all(struct relay *r)
{
        timer_cancel(&r->grace);
        timer_cancel(&r->backoff);
        timer_cancel(&r->bucket);
        timer_cancel(&r->beat);
        if (r->call)
                kube_cancel(TAKE_PTR(r->call));
        relay_files_done(r);
}

void relay_finish(struct relay *r, int exit_status)
{
        if (r->over)
                return;
        r->over = true;
        r->exit_status = exit_status;
        cancel_all(r);
        defer_run(r->config.loop, &r->tell, tell_end);
}

/* ---- what is done next: each begins a request and says true, or has nothing to do */

static bool step_read(struct relay *r)
{
        if (r->known)
                return false;
        relay_send_read(r);
        return true;
}

/* A token bucket, as the time at which it would be full again. */
static bool take_token(struct relay *r)
{
        usec_t now = loop_now(r->config.loop), slack = 4 * RELAY_STATE_EVERY;

        if (r->bucket_at > now + slack) {
                timer_at(&r->bucket, r->bucket_at - slack);
                return false;
        }
        r->bucket_at = MAX(r->bucket_at, now) + RELAY_STATE_EVERY;
        return true;
}

static bool step_state(struct relay *r)
{
        /* What is new at the end goes with the terminal state. */
        if (r->claimed && (!r->dirty || r->ended))
                return false;
        if (r->claimed && !r->flushing && !take_token(r))
                return false;
        relay_send_state(r, r->state);
        return true;
}

/* A workload that ends well because it was told to end has not done its work. */
static enum run_state outcome(const struct relay *r)
{
        return run_exit_success(&r->exit) && !r->exit.told && !r->phase_failed ? RUN_SUCCEEDED : RUN_FAILED;
}

static bool step_end(struct relay *r)
{
        if ((!r->ended && !r->flushing) || !relay_data_settled(r))
                return false;
        if (r->ended) {
                relay_send_state(r, outcome(r));
                return true;
        }
        if (!r->note_due) {
                LOG_WARN(r->config.log, "Ending before the workload: the grace period is over");
                relay_finish(r, 1);
        }
        return r->over;
}

static bool step_note(struct relay *r)
{
        if (!r->note_due || (r->ended && !r->beat_due)) /* the terminal state says it all */
                return false;
        relay_send_note(r);
        return true;
}

void relay_pump(struct relay *r)
{
        static bool (*const steps[])(struct relay *) = {step_read, step_state, relay_data_step, step_end,
                                                        step_note};

        if (r->over || r->call || timer_pending(&r->backoff))
                return;
        for (size_t i = 0; i < ARRAY_LEN(steps); i++)
                if (steps[i](r))
                        return;
        /* At rest: all that was to be sent has arrived. */
        r->failures = 0;
        r->failing_since = r->barred_since = 0;
}

/* ---- what is wrong */

void relay_problem(struct relay *r, enum relay_about about, const char *text)
{
        struct str s = str_of(text && text[0] ? text : NULL);

        s.n = s.p ? utf8_cut(s.p, s.n, RELAY_PROBLEM_LEN) : 0;
        if (str_eq(s, str_of(r->problems[about])))
                return;
        if (s.n)
                LOG_WARN(r->config.log, "Something cannot be sent", F_STRN("problem", s));
        free(r->problems[about]);
        r->problems[about] = s.n ? xstrndup(s.p, s.n) : NULL;
        r->note_due = true;
}

/* ---- the grace period */

static void flush(struct relay *r)
{
        r->flushing = true;
        relay_files_look(r);
        relay_pump(r);
}

/* Four fifths of it are for the workload to end, the last one for sending what is there then. */
static void grace_over(struct timer *t)
{
        struct relay *r = CONTAINER_OF(t, struct relay, grace);

        if (r->flushing) {
                LOG_WARN(r->config.log, "Ending without the last state: the grace period is over");
                relay_finish(r, 1);
                return;
        }
        timer_after(&r->grace, r->config.grace / 5);
        flush(r);
}

void relay_terminate(struct relay *r)
{
        if (r->over || r->terminating)
                return;
        r->terminating = true;
        LOG_INFO(r->config.log, "Told to end", F_BOOL("workloadEnded", r->ended));
        timer_after(&r->grace, r->config.grace - r->config.grace / 5);
        r->data.next = 0;
        if (r->state == RUN_PENDING && !r->ended)
                flush(r); /* nothing has started: there is nothing to wait for */
        relay_pump(r);
}

/* ---- making and freeing */

static void on_backoff(struct timer *t)
{
        relay_pump(CONTAINER_OF(t, struct relay, backoff));
}

static void on_bucket(struct timer *t)
{
        relay_pump(CONTAINER_OF(t, struct relay, bucket));
}

static void on_beat(struct timer *t)
{
        struct relay *r = CONTAINER_OF(t, struct relay, beat);

        r->note_due = r->beat_due = true;
        relay_pump(r);
}

static int check_config(const struct relay_config *c, struct err *err)
{
        if (!c->ns || !c->ns[0] || !c->status_map || !c->status_map[0])
                return err_set(err, E_CONFIG, "the relay needs a namespace and the status ConfigMap's name");
        if (!c->pod_uid || !c->pod_uid[0])
                return err_set(err, E_CONFIG, "the relay needs the uid of its pod");
        if (strlen(c->pod_uid) >= sizeof(((struct run_fence *)NULL)->pod))
                return err_set(err, E_CONFIG, "the pod's uid '%s' is too long", c->pod_uid);
        return relay_check_files(c->files, err);
}

static void copy_config(struct relay *r, const struct relay_config *c)
{
        struct arena *a = &r->strings;

        r->config = *c;
        r->config.ns = arena_strdup(a, c->ns);
        r->config.status_map = arena_strdup(a, c->status_map);
        r->config.data_map = arena_strdup(a, c->data_map);
        r->config.dir = arena_strdup(a, c->dir);
        r->config.ctl = arena_strdup(a, c->ctl);
        r->config.pod_uid = arena_strdup(a, c->pod_uid);
        r->config.spec_hash = arena_strdup(a, c->spec_hash);
        if (!c->grace)
                r->config.grace = GRACE_DEFAULT;
}

struct relay *relay_new(const struct relay_config *config, struct err *err)
{
        _cleanup_(relay_free) struct relay *r = NULL;

        if (check_config(config, err) < 0)
                return NULL;
        r = xcalloc(1, sizeof(*r));
        copy_config(r, config);
        relay_names_read(&r->data.names, config->files, &r->strings);
        timer_init(&r->grace, config->loop, grace_over);
        timer_init(&r->backoff, config->loop, on_backoff);
        timer_init(&r->bucket, config->loop, on_bucket);
        timer_init(&r->beat, config->loop, on_beat);
        relay_files_init(r);
        r->claim = relay_claim_read(r);
        relay_pump(r);
        return TAKE_PTR(r);
}

void relay_free(struct relay *r)
{
        if (!r)
                return;
        defer_cancel(&r->tell);
        cancel_all(r);
        relay_data_done(r);
        for (size_t i = 0; i < ABOUT_MAX_; i++)
                free(r->problems[i]);
        free(r->status);
        buf_done(&r->text);
        doc_done(&r->present);
        arena_done(&r->exit_arena);
        arena_done(&r->scratch);
        arena_done(&r->strings);
        free(r);
}
