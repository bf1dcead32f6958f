#include "kube/kube.h"

enum {
        PAGE_DEFAULT = 500,
        OBJECT_MAX =
                8 << 20, /* one object or event on the wire; etcd stops at 1.5 MiB, JSON may escape a lot */
        KEEP_ARENA = 256 * 1024, /* parsed into, object after object */
        WATCH_MIN_SECONDS = 300,
        LIST_TIMEOUT_SECONDS = 60,
        WATCH_TRIES = 5, /* failures in a row after which a list may get past what a watch cannot */
};
#define BACKOFF_FIRST    (100 * USEC_PER_MS)
#define BACKOFF_MAX      (30 * USEC_PER_SEC)
#define WATCHDOG_DEFAULT (100 * USEC_PER_SEC)
#define INITIAL_SILENCE  (30 * USEC_PER_SEC)  /* a WatchList that stops talking before its end */
#define INITIAL_MAX      (120 * USEC_PER_SEC) /* one that talks, but has no end */
#define SHORT_LIFE       USEC_PER_SEC         /* a watch that ends sooner without an event has failed */
#define GOOD_LIFE        (10 * USEC_PER_SEC) /* one that lived this long ends the series of failures before it */
#define TELL_AGAIN       (60 * USEC_PER_SEC) /* what somebody must mend, while it lasts */

enum phase {
        WAITING,    /* the timer leads on, to `next` */
        WATCH_LIST, /* initial events on a watch */
        LIST,
        WATCH,
};

struct reflector {
        struct kube *kube;
        struct cache *cache;
        struct loop *loop;
        char *ns, *labels, *fields;
        unsigned page;
        usec_t watchdog_after;
        struct metrics *metrics;
        void (*on_synced)(void *arg, bool first);
        void (*on_version)(void *arg);
        void *arg;

        enum phase phase, next;
        struct kube_call *call, *probe;
        struct json_split *split;
        struct arena arena;
        struct timer timer;    /* backoff */
        struct timer watchdog; /* silence */
        char *version, *continue_token;
        char *probed_version; /* ours when the probe was sent */
        bool try_watch_list;
        bool consistent;   /* the next list must not come from a cache, nor be "at least" any version */
        bool expired_once; /* an expired list is repeated at once, but once */
        bool synced, probe_due, got_event;
        bool optional, absent; /* the kind: it may be, it is */
        bool held;
        uint64_t epoch;
        unsigned failures;
        usec_t heard_at, watch_began_at;
        usec_t told_at;   /* that it is forbidden; 0: it was not */
        struct err error; /* code E_OK: up to date */
        struct metric *lists_metric, *watches_metric, *stale_metric, *skipped_metric;
};

static void start(struct reflector *r, enum phase phase);

/* ---- small things */

static const struct log *rlog(const struct reflector *r)
{
        return loop_log(r->loop);
}

static const char *what(const struct reflector *r)
{
        return cache_type(r->cache)->plural;
}

static void expect_words(struct reflector *r)
{
        timer_after(&r->watchdog,
                    r->phase == WATCH_LIST ? MIN(INITIAL_SILENCE, r->watchdog_after) : r->watchdog_after);
}

static void heard(struct reflector *r)
{
        r->heard_at = loop_now(r->loop);
        expect_words(r);
}

static void set_version(struct reflector *r, const char *version)
{
        if (!version || streq(r->version, version))
                return;
        free(r->version);
        r->version = xstrdup(version);
        if (r->on_version)
                r->on_version(r->arg);
}

static void stop_stream(struct reflector *r)
{
        kube_cancel(TAKE_PTR(r->call));
        json_split_free(TAKE_PTR(r->split));
}

static void count(struct metric *m)
{
        if (m)
                metric_add(m, 1);
}

/* The watch works: what failed before does not slow down the next failure. */
static void recovered(struct reflector *r)
{
        r->failures = 0;
        err_clear(&r->error);
}

/* A watch has ended. One that lived well ends a series of failures; a few events before the next one do not. */
static void take_stock(struct reflector *r)
{
        if (r->phase != WATCH || loop_now(r->loop) - r->watch_began_at < GOOD_LIFE)
                return;
        r->failures = 0;
        r->expired_once = false;
}

/* ---- failures: one place decides what comes next and when */

static usec_t backoff(struct reflector *r)
{
        usec_t wait = MIN(BACKOFF_FIRST << MIN(r->failures, 10u), BACKOFF_MAX);

        r->failures++;
        return rng_jitter(loop_rng(r->loop), wait, 50);
}

static void fall_back(struct reflector *r);

static void on_timer(struct timer *t)
{
        struct reflector *r = CONTAINER_OF(t, struct reflector, timer);

        if (r->phase == WAITING)
                start(r, r->next);
        else if (r->phase == WATCH_LIST)
                fall_back(r);
        else if (!r->probe_due)
                err_clear(&r->error); /* a watch that has not failed by now stands, also without an event */
}

static void wait_then(struct reflector *r, enum phase next, usec_t delay)
{
        stop_stream(r);
        timer_cancel(&r->watchdog);
        timer_cancel(&r->timer);
        r->phase = WAITING;
        r->next = next;
        timer_after(&r->timer, delay);
}

static bool was_broken_off(enum err_code code)
{
        return code == E_CONNECT || code == E_LOST || code == E_TIMEOUT || code == E_PROTOCOL ||
               code == E_SERVER;
}

/* Servers without WatchList say 422 or 400, or never come to the end of it: the plain way always works. */
static void fall_back(struct reflector *r)
{
        r->try_watch_list = false;
        wait_then(r, LIST, 0);
}

/* Whether a watch can be had again where it was. Otherwise a list looks at all of it. */
static bool may_resume(const struct reflector *r, enum err_code code)
{
        switch (code) {
        case E_CONNECT:
        case E_TLS:
        case E_CONFIG:
        case E_AUTH:
        case E_BUSY:
                return true;
        case E_LOST:
        case E_TIMEOUT:
        case E_SERVER:
                return r->failures < WATCH_TRIES;
        default: /* gone, or back as another one; a version that is refused; an event that makes no sense */
                return false;
        }
}

/* The server has no such kind (any more): then there are no objects of it, nor of what was on the pages before. */
static void empty(struct reflector *r)
{
        free(TAKE_PTR(r->continue_token));
        cache_begin_replace(r->cache);
        cache_end_replace(r->cache);
}

static void turn_absent(struct reflector *r)
{
        bool first = !r->synced;

        empty(r);
        r->heard_at = loop_now(r->loop);
        if (r->absent)
                return;
        LOG_INFO(rlog(r), "The server does not have this kind; it is looked for again and again",
                 F_STR("group", cache_type(r->cache)->group), F_STR("resource", what(r)));
        r->absent = r->synced = true;
        r->epoch++; /* what was written is gone with the kind and will not be seen */
        if (r->on_synced)
                r->on_synced(r->arg, first);
}

/* Nothing is done while a kind may not be read, so this is said until it may. */
static void tell_forbidden(struct reflector *r, const struct err *err)
{
        usec_t now = loop_now(r->loop);

        if (r->told_at && now - r->told_at < TELL_AGAIN)
                return;
        r->told_at = now;
        LOG_ERROR(rlog(r), "May not read a kind; grant the account this verb (list and watch are needed)",
                  F_STR("verb", r->phase == LIST ? "list" : "watch"), F_STR("resource", what(r)),
                  F_STR("group", cache_type(r->cache)->group), F_STR("namespace", r->ns ? r->ns : "all"),
                  F_ERR(err));
}

static void tell_failure(struct reflector *r, const struct err *err, usec_t delay)
{
        if (err->code == E_FORBIDDEN)
                tell_forbidden(r, err);
        else if (r->error.code != err->code && !(r->absent && err->code == E_NOT_FOUND))
                LOG_WARN(rlog(r), "Lost touch with the server", F_STR("resource", what(r)), F_ERR(err),
                         F_USEC("again_in", delay));
}

static void fail(struct reflector *r, const struct err *err, usec_t retry_after)
{
        enum phase next;
        usec_t delay;

        if (was_broken_off(err->code))
                r->probe_due = true;
        take_stock(r);
        next = r->phase == WATCH && may_resume(r, err->code) ? WATCH : LIST;
        if (err->code == E_EXPIRED) {
                free(TAKE_PTR(r->continue_token));
                LOG_INFO(rlog(r), "Listing anew because a version expired", F_STR("resource", what(r)),
                         F_STR("version", r->version));
                /* In a watch: the list may not be older than what was seen. In a list: that was too much to ask. */
                r->consistent = r->phase != WATCH;
                if (!r->expired_once) {
                        r->expired_once = true;
                        wait_then(r, LIST, 0);
                        return;
                }
        }
        if (err->code == E_NOT_FOUND && r->phase != WATCH && r->optional)
                turn_absent(r);
        else if (err->code == E_NOT_FOUND && r->phase != WATCH && r->synced)
                empty(r);
        delay = MAX(backoff(r), retry_after);
        tell_failure(r, err, delay);
        r->error = *err;
        wait_then(r, next, delay);
}

/* The server's history is another one now: forget the old one's versions. */
static void left_behind(struct reflector *r, const char *server_version)
{
        LOG_WARN(rlog(r), "The server's version went back, as after an etcd restore; listing anew",
                 F_STR("resource", what(r)), F_STR("ours", r->version), F_STR("server", server_version));
        r->epoch++;
        r->consistent = true;
        set_version(r, "");
        wait_then(r, LIST, 0);
}

/*
 * 1: the value is in RET. 0: it is over our limits (nested too deeply, too many values): left out, because whoever may
 * write one such object must not be able to blind us to all others.
 */
static int parse_or_skip(struct reflector *r, struct str text, const struct json_limits *limits,
                         struct json **ret, struct err *err)
{
        struct err why = ERR_INIT;

        arena_reset(&r->arena, KEEP_ARENA);
        *ret = json_parse(&r->arena, text, limits, &why);
        if (*ret)
                return 1;
        if (why.code != E_TOO_LARGE)
                return err_set(err, why.code, "%s of %s: %s", r->phase == LIST ? "list" : "watch", what(r),
                               why.text);
        LOG_ERROR(rlog(r), "An object is beyond what can be read, and is left out",
                  F_STR("resource", what(r)), F_UINT("bytes", text.n), F_ERR(&why));
        count(r->skipped_metric);
        return 0;
}

/* ---- list */

static int on_item(void *arg, struct str text, struct err *err)
{
        struct reflector *r = arg;
        struct json *object;
        int got = parse_or_skip(r, text, &KUBE_OBJECT_LIMITS, &object, err);

        return got > 0 ? cache_put(r->cache, object, &r->arena, true, err) : got;
}

static void on_list_data(void *arg, struct str chunk)
{
        struct reflector *r = arg;
        struct err err = ERR_INIT;

        heard(r);
        if (json_split_feed(r->split, chunk, &err) < 0)
                fail(r, &err, 0);
}

static void list_complete(struct reflector *r, const char *version)
{
        bool first = !r->synced;

        cache_end_replace(r->cache);
        if (rv_cmp(str_of(version), str_of(r->version)) < 0)
                r->epoch++;
        r->synced = true;
        r->absent = false;
        r->consistent = false;
        err_clear(&r->error);
        LOG_DEBUG(rlog(r), "Cache is complete", F_STR("resource", what(r)),
                  F_UINT("objects", cache_count(r->cache)), F_STR("version", version));
        set_version(r, version);
        if (r->on_synced)
                r->on_synced(r->arg, first);
}

/* What surrounds the items: kind, version, and where to go on. */
static int read_list_end(struct reflector *r, const char **ret_version, struct err *err)
{
        struct str rest;
        struct json *list, *items;
        const char *token;

        if (json_split_end(r->split, &rest, err) < 0)
                return -1;
        arena_reset(&r->arena, KEEP_ARENA);
        list = json_parse(&r->arena, rest, NULL, err);
        if (!list)
                return -1;
        *ret_version = meta_str(list, "resourceVersion");
        items = json_at(list, "items");
        /* Go writes an empty list as null. */
        if ((!json_is(items, JSON_ARRAY) && !json_is(items, JSON_NULL)) || !*ret_version)
                return err_set(err, E_PROTOCOL, "the server's answer is no list");
        token = meta_str(list, "continue");
        free(r->continue_token);
        r->continue_token = token && token[0] ? xstrdup(token) : NULL;
        return 0;
}

static void on_list_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct reflector *r = arg;
        struct err e = ERR_INIT;
        const char *version = NULL;

        r->call = NULL;
        if (err) {
                fail(r, err, answer->retry_after);
                return;
        }
        if (read_list_end(r, &version, &e) < 0) {
                fail(r, &e, 0);
                return;
        }
        if (r->continue_token) {
                stop_stream(r);
                start(r, LIST);
                return;
        }
        list_complete(r, version);
        stop_stream(r);
        start(r, WATCH);
}

static void start_list(struct reflector *r)
{
        bool at_least = !r->consistent && r->version[0];
        struct kube_request req = {
                .verb = KUBE_LIST,
                .type = cache_type(r->cache),
                .ns = r->ns,
                .label_selector = r->labels,
                .field_selector = r->fields,
                .continue_token = r->continue_token,
                /* A limit sends a list of at least some version past the server's cache; leave it out there. */
                .limit = at_least && !r->continue_token ? 0 : r->page,
                .timeout = LIST_TIMEOUT_SECONDS * USEC_PER_SEC,
                .idle_timeout = LIST_TIMEOUT_SECONDS * USEC_PER_SEC,
        };

        if (!r->continue_token) {
                if (!r->consistent)
                        req.resource_version = r->version[0] ? r->version : "0";
                cache_begin_replace(r->cache);
                count(r->lists_metric);
        }
        r->split = json_split_new(SPLIT_ITEMS, OBJECT_MAX, on_item, r);
        r->call = kube_stream(r->kube, &req, on_list_data, on_list_done, r);
}

/* ---- watch */

static int on_error_event(struct reflector *r, const struct json *object, struct err *err)
{
        char *text = json_print(&r->arena, object);

        kube_status_error(&r->arena, 200, str_of(text), KUBE_WATCH, NULL, err);
        return -1;
}

static int on_bookmark(struct reflector *r, const struct json *object, struct err *err)
{
        const char *version = meta_str(object, "resourceVersion");
        const char *end = json_str(json_at(json_at(object, "metadata"), "annotations"),
                                   "k8s.io/initial-events-end");

        if (!version)
                return err_set(err, E_PROTOCOL, "a watch of %s sent a bookmark without a version", what(r));
        if (r->phase == WATCH_LIST && streq(end, "true")) {
                r->phase = WATCH;
                timer_cancel(&r->timer);
                expect_words(r);
                list_complete(r, version);
        } else if (r->phase == WATCH && rv_cmp(str_of(version), str_of(r->version)) > 0) {
                set_version(r, version);
        }
        return 0;
}

static int on_object(struct reflector *r, const char *type, struct json *object, struct err *err)
{
        const char *version = meta_str(object, "resourceVersion"), *kind = json_str(object, "kind");

        if (!version || !meta_str(object, "name"))
                return err_set(err, E_PROTOCOL, "a watch event has no object in it");
        if (!streq(kind, cache_type(r->cache)->kind))
                return err_set(err, E_PROTOCOL, "a watch of %s sent a %s", what(r),
                               kind ? kind : "thing without a kind");
        /* Versions only grow within a watch: what is not newer was said before. */
        if (r->phase == WATCH && rv_cmp(str_of(version), str_of(r->version)) <= 0) {
                count(r->stale_metric);
                return 0;
        }
        version = arena_strdup(&r->arena, version);
        if (streq(type, "DELETED"))
                cache_remove(r->cache, meta_str(object, "namespace"), meta_str(object, "name"));
        else if (cache_put(r->cache, object, &r->arena, r->phase == WATCH_LIST, err) < 0)
                return -1;
        if (r->phase == WATCH)
                set_version(r, version);
        return 0;
}

static int on_event(void *arg, struct str text, struct err *err)
{
        struct reflector *r = arg;
        struct json *event, *object;
        const char *type;
        int got = parse_or_skip(r, text, &KUBE_WATCHED_LIMITS, &event, err);

        if (got <= 0)
                return got;
        type = json_str_or(event, "type", "");
        object = json_at(event, "object");
        if (streq(type, "ERROR"))
                return on_error_event(r, object, err);
        if (r->phase == WATCH && !r->got_event) {
                r->got_event = true;
                recovered(r);
        }
        if (streq(type, "BOOKMARK"))
                return on_bookmark(r, object, err);
        if (streq(type, "ADDED") || streq(type, "MODIFIED") || streq(type, "DELETED"))
                return on_object(r, type, object, err);
        return err_set(err, E_PROTOCOL, "a watch of %s sent an event of type '%s'", what(r), type);
}

static void watch_failed(struct reflector *r, const struct err *err, usec_t retry_after)
{
        if (r->phase == WATCH_LIST && (err->code == E_REFUSED || err->code == E_TIMEOUT))
                fall_back(r);
        else
                fail(r, err, retry_after);
}

static void on_watch_data(void *arg, struct str chunk)
{
        struct reflector *r = arg;
        struct err err = ERR_INIT;

        heard(r);
        if (json_split_feed(r->split, chunk, &err) < 0)
                watch_failed(r, &err, 0);
}

static void on_watch_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct reflector *r = arg;
        struct err e = ERR_INIT;

        r->call = NULL;
        if (err) {
                watch_failed(r, err, answer->retry_after);
                return;
        }
        if (json_split_end(r->split, NULL, &e) < 0 || r->phase == WATCH_LIST ||
            (!r->got_event && loop_now(r->loop) - r->watch_began_at < SHORT_LIFE)) {
                if (e.code == E_OK)
                        err_set(&e, E_LOST, "watch of %s ended at once", what(r));
                watch_failed(r, &e, 0);
                return;
        }
        take_stock(r);
        recovered(r);
        r->heard_at = loop_now(r->loop);
        stop_stream(r);
        start(r, WATCH);
}

static void start_watch(struct reflector *r)
{
        bool initial = r->phase == WATCH_LIST;
        struct kube_request req = {
                .verb = KUBE_WATCH,
                .type = cache_type(r->cache),
                .ns = r->ns,
                .label_selector = r->labels,
                .field_selector = r->fields,
                .resource_version = r->version[0] ? r->version : NULL,
                .resource_version_match = initial ? "NotOlderThan" : NULL,
                .send_initial_events = initial,
                .bookmarks = true,
                .timeout_seconds = WATCH_MIN_SECONDS +
                                   (unsigned)rng_below(loop_rng(r->loop), WATCH_MIN_SECONDS),
                .timeout = LIST_TIMEOUT_SECONDS * USEC_PER_SEC,
        };

        r->got_event = false;
        r->watch_began_at = loop_now(r->loop);
        if (initial)
                cache_begin_replace(r->cache);
        count(initial ? r->lists_metric : r->watches_metric);
        timer_after(&r->timer, initial ? INITIAL_MAX : SHORT_LIFE);
        r->split = json_split_new(SPLIT_VALUES, OBJECT_MAX, on_event, r);
        r->call = kube_stream(r->kube, &req, on_watch_data, on_watch_done, r);
}

/* ---- the watchdog and its probe */

static void on_probe_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct reflector *r = arg;
        struct json *list;
        const char *version;

        r->probe = NULL;
        if (err)
                return; /* the watch will hear of it too, or the watchdog asks again */
        r->heard_at = loop_now(r->loop);
        if (r->phase != WATCH)
                return;
        r->probe_due = false;
        arena_reset(&r->arena, KEEP_ARENA);
        list = json_parse(&r->arena, answer->body, NULL, NULL);
        version = meta_str(list, "resourceVersion");
        /* Events may have come since: only the version we had when we asked must have been reached. */
        if (version && rv_cmp(str_of(version), str_of(r->probed_version)) < 0)
                left_behind(r, version);
        else
                err_clear(&r->error);
}

static void start_probe(struct reflector *r)
{
        struct kube_request req = {
                .verb = KUBE_LIST,
                .type = cache_type(r->cache),
                .ns = r->ns,
                .label_selector = r->labels,
                .field_selector = r->fields,
                .limit = 1,
        };

        if (r->probe)
                return;
        free(r->probed_version);
        r->probed_version = xstrdup(r->version);
        r->probe = kube_send(r->kube, &req, on_probe_done, r);
}

static void on_silence(struct timer *t)
{
        struct reflector *r = CONTAINER_OF(t, struct reflector, watchdog);
        struct err err = ERR_INIT;

        if (r->phase == WATCH) {
                /* A new watch at our version: what was missed comes now, or 410 does; the probe sees a version of ours
                 * that the server has not reached, on which a watch stays silent for ever. */
                LOG_INFO(rlog(r), "A watch has been silent; asking again", F_STR("resource", what(r)),
                         F_USEC("for", loop_now(r->loop) - r->heard_at));
                r->probe_due = true;
                stop_stream(r);
                start(r, WATCH);
                return;
        }
        err_set(&err, E_TIMEOUT, "no answer for %llu s",
                (unsigned long long)((loop_now(r->loop) - r->heard_at) / USEC_PER_SEC));
        watch_failed(r, &err, 0);
}

/* ---- life */

static void start(struct reflector *r, enum phase phase)
{
        /* After a failure the plain way, whatever it was that failed. */
        bool watch_list = r->try_watch_list && !r->continue_token && !r->consistent && !r->failures;

        r->phase = phase == LIST && watch_list ? WATCH_LIST : phase;
        if (r->phase == LIST)
                start_list(r);
        else
                start_watch(r);
        expect_words(r);
        if (r->phase == WATCH && r->probe_due)
                start_probe(r);
}

static const char *const metric_labels[] = {"group", "resource", NULL};
static const struct metric_family lists_family = {
        "sonde_reflector_lists_total", "Lists begun.", METRIC_COUNTER, metric_labels, NULL, 0};
static const struct metric_family watches_family = {
        "sonde_reflector_watches_total", "Watches begun.", METRIC_COUNTER, metric_labels, NULL, 0};
static const struct metric_family stale_family = {
        "sonde_reflector_stale_events_total",
        "Watch events dropped because they were not newer than the last.",
        METRIC_COUNTER,
        metric_labels,
        NULL,
        0};

static const struct metric_family skipped_family = {
        "sonde_reflector_skipped_objects_total",
        "Objects left out because they are beyond what can be read.",
        METRIC_COUNTER,
        metric_labels,
        NULL,
        0};

static void init_metrics(struct reflector *r)
{
        const char *labels[] = {cache_type(r->cache)->group, cache_type(r->cache)->plural};

        if (!r->metrics)
                return;
        r->lists_metric = metrics_get(r->metrics, &lists_family, labels);
        r->watches_metric = metrics_get(r->metrics, &watches_family, labels);
        r->stale_metric = metrics_get(r->metrics, &stale_family, labels);
        r->skipped_metric = metrics_get(r->metrics, &skipped_family, labels);
}

struct reflector *reflector_new(const struct reflector_config *config)
{
        struct reflector *r = xcalloc(1, sizeof(*r));

        r->kube = config->kube;
        r->cache = config->cache;
        r->loop = kube_loop(config->kube);
        r->ns = xstrdup(config->ns);
        r->labels = xstrdup(config->label_selector);
        r->fields = xstrdup(config->field_selector);
        r->page = config->page ? config->page : PAGE_DEFAULT;
        r->watchdog_after = config->watchdog ? config->watchdog : WATCHDOG_DEFAULT;
        r->metrics = config->metrics;
        r->on_synced = config->on_synced;
        r->on_version = config->on_version;
        r->arg = config->arg;
        r->version = xstrdup("");
        r->heard_at = loop_now(r->loop);
        r->try_watch_list = !config->no_watch_list;
        r->optional = config->optional;
        err_set(&r->error, E_BUSY, "%s are not listed yet", cache_type(config->cache)->plural);
        init_metrics(r);
        timer_init(&r->timer, r->loop, on_timer);
        timer_init(&r->watchdog, r->loop, on_silence);
        r->held = config->held;
        if (!r->held)
                start(r, LIST);
        return r;
}

void reflector_begin(struct reflector *r)
{
        if (!r->held)
                return;
        r->held = false;
        start(r, LIST);
}

void reflector_free(struct reflector *r)
{
        if (!r)
                return;
        stop_stream(r);
        kube_cancel(r->probe);
        timer_cancel(&r->timer);
        timer_cancel(&r->watchdog);
        arena_done(&r->arena);
        free(r->ns);
        free(r->labels);
        free(r->fields);
        free(r->version);
        free(r->continue_token);
        free(r->probed_version);
        free(r);
}

bool reflector_synced(const struct reflector *r)
{
        return r->synced;
}

const char *reflector_version(const struct reflector *r)
{
        return r->version;
}

uint64_t reflector_epoch(const struct reflector *r)
{
        return r->epoch;
}

bool reflector_absent(const struct reflector *r)
{
        return r->absent;
}

void reflector_hurry(struct reflector *r)
{
        if (r->phase == WAITING && !r->held)
                timer_after(&r->timer, 0);
}

usec_t reflector_age(const struct reflector *r)
{
        return usec_sub(loop_now(r->loop), r->heard_at);
}

const struct err *reflector_error(const struct reflector *r)
{
        return r->error.code == E_OK ? NULL : &r->error;
}
