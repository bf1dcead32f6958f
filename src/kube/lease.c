/*
 * One request is under way at a time, and each answer decides the next:
 *
 *     follower:  GET ──404──> POST ──> leader          leader:  PUT at the version last seen
 *                 │                                               │ failed (slow path)
 *                 └─ nobody's, ours or expired ──> PUT            └──> GET ──> ours: PUT; not ours: lost
 *
 * Every write carries the resourceVersion that was judged (or is a POST), so of two candidates that judge alike one
 * gets a conflict and has lost that round.
 */
#include "kube/lease.h"

enum { LEASE_BYTES_MAX = 1 << 20 };

static const usec_t RELEASE_TIMEOUT = 2 * USEC_PER_SEC;

enum state {
        FOLLOWING,
        LEADING,
        RELEASING,
        OVER, /* lost or given back: nothing is sent any more */
};

struct lease {
        struct lease_config config; /* its strings are ours */
        struct loop *loop;
        enum state state;

        struct doc seen; /* the Lease as last read or written; root NULL: none */
        usec_t seen_at;  /* when its record was last seen to change */
        char *leader;    /* in it; "" if none */
        char *told;      /* what on_new_leader was last called with */

        struct kube_call *call;
        struct buf body;
        bool optimistic;       /* the PUT under way was not preceded by a GET */
        usec_t sent_at;        /* right before the request last left */
        usec_t held_until;     /* while LEADING */
        struct timer next;     /* the next round */
        struct timer deadline; /* LEADING: held_until; RELEASING: the end of patience */

        void (*released)(void *arg);
        void *released_arg;
        unsigned release_tries;

        struct metric *status, *slowpath;

        unsigned busy; /* callbacks on the stack: freeing waits for them */
        bool dead;
};

static void send_get(struct lease *l);

/* ---- the record */

static const struct json *record(const struct lease *l)
{
        return json_at(l->seen.root, "spec");
}

static bool is_ours(const struct lease *l)
{
        return streq(l->leader, l->config.identity);
}

/* How long the holder wants to be believed, as it wrote it. */
static usec_t record_duration(const struct lease *l)
{
        int64_t seconds = json_int(record(l), "leaseDurationSeconds", -1);

        if (seconds < 0 || seconds > INT32_MAX)
                return l->config.duration;
        return (usec_t)seconds * USEC_PER_SEC;
}

static void forget_record(struct lease *l)
{
        doc_done(&l->seen);
        l->seen = (struct doc)DOC_INIT;
        free(l->leader);
        l->leader = xstrdup("");
}

/* Takes in what the server said the Lease is. Without a version no later write could be conditional. */
static int see(struct lease *l, struct str body, struct err *err)
{
        static const struct json_limits limits = {.bytes = LEASE_BYTES_MAX, .depth = 64, .nodes = 20000};
        _cleanup_(doc_done) struct doc doc = DOC_INIT;

        if (doc_parse(&doc, body, &limits, err) < 0)
                return err_wrap(err, "lease %s/%s", l->config.ns, l->config.name);
        if (!meta_str(doc.root, "resourceVersion"))
                return err_set(err, E_PROTOCOL, "lease %s/%s came without a resourceVersion", l->config.ns,
                               l->config.name);
        if (!l->seen.root || !json_equal(json_at(doc.root, "spec"), record(l)))
                l->seen_at = clock_boot(loop_clock(l->loop));

        doc_done(&l->seen);
        l->seen = doc;
        doc = (struct doc)DOC_INIT;
        free(l->leader);
        l->leader = xstrdup(json_str_or(record(l), "holderIdentity", ""));
        return 0;
}

/* The object to send: all of what was seen, so that labels and fields of later versions stay. */
static struct json *next_object(struct lease *l, struct arena *a)
{
        struct json *object;

        if (!l->seen.root)
                return json_build(a,
                                  "{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', "
                                  "'metadata': {'namespace': %s, 'name': %s}, 'spec': {}}",
                                  l->config.ns, l->config.name);
        object = json_copy(a, l->seen.root);
        json_remove(json_at(object, "metadata"), "managedFields");
        if (!json_is(json_at(object, "spec"), JSON_OBJECT))
                json_set(a, object, "spec", json_object(a));
        return object;
}

/* Writes a record for HOLDER ("": nobody) into l->body. */
static void write_record(struct lease *l, const char *holder, usec_t duration)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *object = next_object(l, &a);
        struct json *spec = json_at(object, "spec");
        int64_t transitions = json_int(spec, "leaseTransitions", 0);
        char now[TIME_TEXT_MAX];

        time_format_micro(loop_wall(l->loop), now);
        json_set(&a, spec, "holderIdentity", json_string(&a, holder));
        json_set(&a, spec, "leaseDurationSeconds",
                 json_i64(&a, (int64_t)((duration + USEC_PER_SEC - 1) / USEC_PER_SEC)));
        json_set(&a, spec, "renewTime", json_string(&a, now));
        if (!streq(holder, l->leader) || !json_str(spec, "acquireTime"))
                json_set(&a, spec, "acquireTime", json_string(&a, now));
        /* Giving back is no transition; the next holder's arrival is. */
        if (l->seen.root && *holder && !streq(holder, l->leader))
                transitions = MIN(transitions + 1, (int64_t)INT32_MAX);
        json_set(&a, spec, "leaseTransitions", json_i64(&a, transitions));

        buf_clear(&l->body);
        json_write(object, JSON_COMPACT, &l->body);
}

/* ---- callbacks to the owner, any of which may free the lease */

static void lease_destroy(struct lease *l)
{
        doc_done(&l->seen);
        buf_done(&l->body);
        free(l->leader);
        free(l->told);
        free((char *)l->config.ns);
        free((char *)l->config.name);
        free((char *)l->config.identity);
        free(l);
}

static void enter(struct lease *l)
{
        l->busy++;
}

static void leave(struct lease *l)
{
        if (--l->busy == 0 && l->dead)
                lease_destroy(l);
}

static void stop(struct lease *l)
{
        l->state = OVER;
        timer_cancel(&l->next);
        timer_cancel(&l->deadline);
        if (l->call)
                kube_cancel(TAKE_PTR(l->call));
        if (l->status)
                metric_set(l->status, 0);
}

static void tell_leader(struct lease *l)
{
        if (streq(l->told, l->leader) || l->dead)
                return;
        free(l->told);
        l->told = xstrdup(l->leader);
        if (*l->leader && l->config.on_new_leader)
                l->config.on_new_leader(l->config.arg, l->leader);
}

static void lose(struct lease *l, const char *why)
{
        LOG_WARN(loop_log(l->loop), "Lost the lease", F_STR("namespace", l->config.ns),
                 F_STR("name", l->config.name), F_STR("identity", l->config.identity),
                 F_STR("leader", l->leader), F_STR("reason", why));
        stop(l);
        if (l->config.on_lost)
                l->config.on_lost(l->config.arg);
}

static void finish_release(struct lease *l)
{
        void (*done)(void *) = l->released;

        stop(l);
        l->released = NULL;
        if (done)
                done(l->released_arg);
}

/* ---- requests */

/* The validity of a renewal is counted from here: the server cannot have stored it, nor a follower seen it, earlier. */
static bool on_leaving(void *arg)
{
        struct lease *l = arg;

        l->sent_at = clock_boot(loop_clock(l->loop));
        return l->state != LEADING || l->sent_at < l->held_until;
}

static void send_request(struct lease *l, enum kube_verb verb, kube_done done)
{
        struct kube_request request = {
                .verb = verb,
                .type = &KUBE_LEASE,
                .ns = l->config.ns,
                .name = verb == KUBE_CREATE ? NULL : l->config.name,
                .timeout = l->config.renew_deadline / 2,
                .may_send = on_leaving,
                .may_send_arg = l,
        };

        if (verb != KUBE_GET)
                request.body = buf_str(&l->body);
        l->sent_at = clock_boot(loop_clock(l->loop));
        l->call = kube_send(l->config.kube, &request, done, l);
}

/* How long the record of somebody else is still to be believed; 0: not any more, or there is none. */
static usec_t believed_for(const struct lease *l)
{
        usec_t now = clock_boot(loop_clock(l->loop)), until = usec_add(l->seen_at, record_duration(l));

        return !is_ours(l) && *l->leader && now < until ? until - now : 0;
}

/* This round is over without success. A follower is there when the lease runs out, not up to a pause later. */
static void again(struct lease *l)
{
        usec_t wait = l->config.retry_period, left = believed_for(l);

        if (l->state == FOLLOWING)
                wait = rng_jitter(loop_rng(l->loop), wait, 120);
        timer_after(&l->next, left ? MIN(wait, left) : wait);
}

static void log_failure(struct lease *l, const char *what, const struct err *err)
{
        LOG_WARN(loop_log(l->loop), "Lease request failed", F_STR("request", what),
                 F_STR("namespace", l->config.ns), F_STR("name", l->config.name), F_ERR(err));
}

static void won(struct lease *l)
{
        usec_t until = usec_add(l->sent_at, l->config.renew_deadline);

        if (clock_boot(loop_clock(l->loop)) >= until) { /* the answer took that long, or we were stopped */
                if (l->state == LEADING)
                        lose(l, "the renewal was answered too late");
                else
                        again(l);
                return;
        }
        l->held_until = until;
        timer_at(&l->deadline, until);
        /* Counted from the sending as well: so requests may take up to half the deadline, their own timeout. */
        timer_at(&l->next, usec_add(l->sent_at, l->config.retry_period));
        if (l->state == LEADING)
                return;

        l->state = LEADING;
        if (l->status)
                metric_set(l->status, 1);
        LOG_INFO(loop_log(l->loop), "Acquired the lease", F_STR("namespace", l->config.ns),
                 F_STR("name", l->config.name), F_STR("identity", l->config.identity));
        tell_leader(l);
        if (l->state == LEADING && l->config.on_acquired)
                l->config.on_acquired(l->config.arg);
}

static void on_released(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct lease *l = arg;

        enter(l);
        l->call = NULL;
        if (err && err->code != E_NOT_FOUND && l->release_tries < 2)
                send_get(l);
        else
                finish_release(l);
        leave(l);
}

static void send_release(struct lease *l)
{
        l->release_tries++;
        write_record(l, "", USEC_PER_SEC);
        send_request(l, KUBE_UPDATE, on_released);
}

static void on_written(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct lease *l = arg;
        struct err bad = ERR_INIT;
        bool optimistic = l->optimistic;

        enter(l);
        l->call = NULL;
        l->optimistic = false;
        if (!err && see(l, answer->body, &bad) < 0)
                err = &bad;
        if (err && err->code != E_CONFLICT && err->code != E_EXISTS)
                log_failure(l, "write", err);
        if (err && optimistic && l->slowpath)
                metric_add(l->slowpath, 1);

        if (l->state == RELEASING && !err)
                send_release(l);
        else if (l->state == RELEASING || (err && optimistic))
                send_get(
                        l); /* what is there decides; a write whose outcome is unknown may have taken effect */
        else if (err || !is_ours(l))
                again(l);
        else
                won(l);
        leave(l);
}

static void send_create(struct lease *l)
{
        write_record(l, l->config.identity, l->config.duration);
        send_request(l, KUBE_CREATE, on_written);
}

static void send_update(struct lease *l, bool optimistic)
{
        l->optimistic = optimistic;
        write_record(l, l->config.identity, l->config.duration);
        send_request(l, KUBE_UPDATE, on_written);
}

/* What was just read decides what comes next. */
static void judge(struct lease *l)
{
        tell_leader(l);
        if (l->state == OVER)
                return;
        if (l->state == RELEASING) {
                if (is_ours(l))
                        send_release(l);
                else
                        finish_release(l);
        } else if (l->state == LEADING && !is_ours(l)) {
                lose(l, "the lease has another holder");
        } else if (believed_for(l)) {
                again(l);
        } else {
                send_update(l, false);
        }
}

static void on_got(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct lease *l = arg;
        struct err bad = ERR_INIT;

        enter(l);
        l->call = NULL;
        if (!err && see(l, answer->body, &bad) < 0)
                err = &bad;
        if (!err) {
                judge(l);
        } else if (l->state == RELEASING) {
                finish_release(l);
        } else if (err->code == E_NOT_FOUND) {
                forget_record(l);
                send_create(l);
        } else {
                log_failure(l, "get", err);
                again(l);
        }
        leave(l);
}

static void send_get(struct lease *l)
{
        send_request(l, KUBE_GET, on_got);
}

static void on_next(struct timer *t)
{
        struct lease *l = CONTAINER_OF(t, struct lease, next);

        if (l->state == LEADING && l->seen.root)
                send_update(l, true);
        else
                send_get(l);
}

static void on_deadline(struct timer *t)
{
        struct lease *l = CONTAINER_OF(t, struct lease, deadline);

        enter(l);
        if (l->state == LEADING)
                lose(l, "it could not be renewed in time");
        else if (l->state == RELEASING)
                finish_release(l);
        leave(l);
}

/* ---- the interface */

static int check_config(struct lease_config *c, struct err *err)
{
        c->duration = c->duration ? c->duration : 15 * USEC_PER_SEC;
        c->renew_deadline = c->renew_deadline ? c->renew_deadline : 10 * USEC_PER_SEC;
        c->retry_period = c->retry_period ? c->retry_period : 2 * USEC_PER_SEC;

        if (!c->ns || !*c->ns || !c->name || !*c->name || !c->identity || !*c->identity)
                return err_set(err, E_CONFIG, "a lease needs a namespace, a name and an identity");
        if (c->duration > (usec_t)INT32_MAX * USEC_PER_SEC)
                return err_set(err, E_CONFIG, "lease %s: the duration is longer than a lease can say",
                               c->name);
        if (c->duration <= c->renew_deadline)
                return err_set(err, E_CONFIG, "lease %s: the duration must be longer than the renew deadline",
                               c->name);
        if (c->renew_deadline <= c->retry_period + c->retry_period / 5)
                return err_set(err, E_CONFIG,
                               "lease %s: the renew deadline must be longer than 1.2 times the retry period",
                               c->name);
        return 0;
}

static const char *const name_label[] = {"name", NULL};

static const struct metric_family family_status = {
        .name = "leader_election_master_status",
        .help = "1: this process holds the lease.",
        .type = METRIC_GAUGE,
        .labels = name_label,
};
static const struct metric_family family_slowpath = {
        .name = "leader_election_slowpath_total",
        .help = "Renewals that failed at the version last seen, so that the lease had to be read "
                "first.",
        .type = METRIC_COUNTER,
        .labels = name_label,
};

struct lease *lease_new(const struct lease_config *config, struct err *err)
{
        struct lease_config c = *config;
        struct lease *l;

        if (check_config(&c, err) < 0)
                return NULL;
        l = xcalloc(1, sizeof(*l));
        l->config = c;
        l->config.ns = xstrdup(c.ns);
        l->config.name = xstrdup(c.name);
        l->config.identity = xstrdup(c.identity);
        l->loop = kube_loop(c.kube);
        l->seen = (struct doc)DOC_INIT;
        l->leader = xstrdup("");
        l->told = xstrdup("");
        l->body = (struct buf)BUF_INIT(2 * LEASE_BYTES_MAX);
        if (c.metrics) {
                l->status = metrics_get(c.metrics, &family_status, (const char *const[]){c.name});
                l->slowpath = metrics_get(c.metrics, &family_slowpath, (const char *const[]){c.name});
                metric_set(l->status, 0);
        }
        timer_init(&l->next, l->loop, on_next);
        timer_init(&l->deadline, l->loop, on_deadline);
        timer_after(&l->next, 0);
        return l;
}

void lease_free(struct lease *l)
{
        if (!l || l->dead)
                return;
        stop(l);
        l->dead = true;
        if (l->busy == 0)
                lease_destroy(l);
}

bool lease_held(const struct lease *l)
{
        return l->state == LEADING && clock_boot(loop_clock(l->loop)) < l->held_until;
}

const char *lease_leader(const struct lease *l)
{
        return l->leader;
}

void lease_release(struct lease *l, void (*done)(void *arg), void *arg)
{
        bool leading = l->state == LEADING;

        l->released = done;
        l->released_arg = arg;
        if (l->state == RELEASING)
                return;
        timer_cancel(&l->next);
        if (l->status)
                metric_set(l->status, 0);
        l->state = RELEASING;
        timer_after(&l->deadline, leading || l->call ? RELEASE_TIMEOUT : 0);
        /* A request under way may still make it ours, or move its version: its answer goes on from there. */
        if (!l->call && leading)
                send_release(l);
}
