/*
 * What is known about one event (one derived name) is an entry. It is idle on the list of those that may be forgotten,
 * or waits in the heap for its time, or has a request under way. The request follows from what is known:
 *
 *     not known to exist       POST                AlreadyExists: it exists, its count is not known
 *     exists, count not known  GET                 not found: it has expired, POST
 *     exists                   PATCH of `series`   at the version known; conflict: GET, not found: POST
 *
 * A request whose outcome is unknown is tried again, and the time in it tells whether the first one arrived.
 */
#include "kube/events.h"
#include "kube/names.h"

enum {
        KEYS_MAX = 4096, /* of each map */
        PENDING_MAX = 1000,
        FLYING_MAX = 4,
        TRIES_MAX = 3,
        BURST = 25,
        NOTE_MAX = 1024,
        WORD_MAX = 128,
        SCRATCH_KEEP = 16 * 1024,
};

/* Where events about cluster-scoped objects go: with an eventTime Kubernetes 1.20 takes them nowhere else, later
 * versions also in "default". */
static const char CLUSTER_NS[] = "kube-system";

static const usec_t SAME_SERIES = 360 * USEC_PER_SEC;
static const usec_t SERIES_EVERY = 30 * USEC_PER_SEC;
static const usec_t REFILL = 300 * USEC_PER_SEC;
static const usec_t TRY_AGAIN = 10 * USEC_PER_SEC;
static const usec_t REQUEST_TIMEOUT = 15 * USEC_PER_SEC;

struct entry {
        struct events *events;
        char *key, *ns, *name;
        struct list idle;
        struct heap_node due;
        struct kube_call *call;

        char *body;        /* the event as a POST says it; while something is unsent */
        usec_t event_time; /* in it (wall) */
        uint64_t unsent;   /* occurrences that the server has not been told of */
        usec_t observed;   /* the last one (wall) */
        usec_t seen;       /* the same (boot) */

        bool exists;
        char *version; /* of the one that exists; NULL: not known, and so is count */
        int64_t count;
        uint64_t
                sending; /* occurrences in the write under way, or in the last one if its outcome is unknown */
        usec_t sending_time; /* what tells it from others: eventTime of a POST, lastObservedTime of a PATCH (wall) */
        bool sending_series;
        usec_t written; /* when a write last succeeded (boot); 0: never */
        unsigned tries;
};

/* The token bucket of one object. */
struct source {
        char *key;
        struct list used; /* in order of use */
        double tokens;
        usec_t at;
};

struct events {
        struct events_config config; /* its strings are ours */
        struct loop *loop;
        struct map entries, sources;
        struct list idle, used;
        struct heap waiting;
        struct timer timer;
        size_t flying;
        struct arena scratch;
        struct metric *created, *series, *dropped, *failed;
};

static void pump(struct events *e);
static void fly(struct entry *entry);

static void count(struct metric *m, uint64_t by)
{
        if (m)
                metric_add(m, (double)by);
}

static usec_t now_boot(const struct events *e)
{
        return clock_boot(loop_clock(e->loop));
}

/* ---- entries */

static void entry_free(struct entry *entry)
{
        map_remove(&entry->events->entries, str_of(entry->key));
        list_remove(&entry->idle);
        heap_remove(&entry->events->waiting, &entry->due);
        if (entry->call)
                kube_cancel(entry->call);
        free(entry->key);
        free(entry->ns);
        free(entry->name);
        free(entry->body);
        free(entry->version);
        free(entry);
}

static bool is_idle(const struct entry *entry)
{
        return !entry->call && !entry->due.at;
}

/* At most PENDING_MAX entries are not idle, so there is always one to forget. */
static struct entry *entry_new(struct events *e, const char *key, const char *ns, const char *name)
{
        struct entry *entry;

        if (e->entries.n >= KEYS_MAX)
                entry_free(CONTAINER_OF(e->idle.next, struct entry, idle));
        entry = xcalloc(1, sizeof(*entry));
        entry->events = e;
        entry->key = xstrdup(key);
        entry->ns = xstrdup(ns);
        entry->name = xstrdup(name);
        list_init(&entry->idle);
        map_put(&e->entries, str_of(entry->key), entry);
        return entry;
}

static void wait_until(struct entry *entry, usec_t when)
{
        list_remove(&entry->idle);
        heap_put(&entry->events->waiting, &entry->due, when);
        pump(entry->events);
}

static void rest(struct entry *entry)
{
        free(TAKE_PTR(entry->body));
        entry->unsent = entry->sending = 0;
        entry->tries = 0;
        list_append(&entry->events->idle, &entry->idle);
        pump(entry->events);
}

/* The request has ended; the entry is between two states until one of the functions above is called. */
static struct events *landed(struct entry *entry)
{
        entry->call = NULL;
        entry->events->flying--;
        return entry->events;
}

static void written(struct entry *entry)
{
        struct events *e = entry->events;

        entry->unsent -= MIN(entry->unsent, entry->sending);
        entry->sending = 0;
        entry->tries = 0;
        entry->written = now_boot(e);
        if (entry->unsent)
                wait_until(entry, usec_add(entry->written, SERIES_EVERY));
        else
                rest(entry);
}

static bool is_permanent(enum err_code code)
{
        switch (code) {
        case E_INVALID:
        case E_TOO_LARGE:
        case E_CONFIG:
        case E_FORBIDDEN:
        case E_NOT_FOUND: /* the namespace has gone */
        case E_REFUSED:
        case E_CANCELED: /* we may not write (any more) */
                return true;
        default:
                return false;
        }
}

/* The namespace goes: what happened there is of no interest any more. */
static bool is_pointless(struct entry *entry, const struct kube_answer *answer, const struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        return !entry->exists && kube_namespace_ends(&a, answer, err);
}

static void failed(struct entry *entry, const struct kube_answer *answer, const struct err *err)
{
        struct events *e = entry->events;

        if (!is_permanent(err->code) && ++entry->tries < TRIES_MAX) {
                wait_until(entry, usec_add(now_boot(e), rng_jitter(loop_rng(e->loop), TRY_AGAIN, 20)));
                return;
        }
        if (!is_pointless(entry, answer, err))
                LOG_WARN(loop_log(e->loop), "Could not write an event", F_STR("namespace", entry->ns),
                         F_STR("name", entry->name), F_UINT("occurrences", entry->unsent), F_ERR(err));
        count(e->failed, entry->unsent);
        entry->exists = false;
        free(TAKE_PTR(entry->version));
        rest(entry);
}

/* ---- requests */

static void send_request(struct entry *entry, enum kube_verb verb, struct str body, kube_done done)
{
        struct events *e = entry->events;
        struct kube_request request = {
                .verb = verb,
                .type = &KUBE_EVENT,
                .ns = entry->ns,
                .name = verb == KUBE_CREATE ? NULL : entry->name,
                .body = body,
                .timeout = REQUEST_TIMEOUT,
                .may_send = verb == KUBE_GET ? NULL : e->config.may_send,
                .may_send_arg = e->config.may_send_arg,
        };

        e->flying++;
        entry->call = kube_send(e->config.kube, &request, done, entry);
}

/* Keeps version and count of the event as the server has it; its times go to the caller. */
static int learn(struct entry *entry, struct str body, usec_t *ret_event_time, usec_t *ret_observed,
                 struct err *err)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        const struct json *series;
        const char *version;

        *ret_event_time = *ret_observed = 0;
        if (doc_parse(&doc, body, NULL, err) < 0)
                return -1;
        version = meta_str(doc.root, "resourceVersion");
        if (!version)
                return err_set(err, E_PROTOCOL, "event %s/%s came without a resourceVersion", entry->ns,
                               entry->name);
        free(entry->version);
        entry->version = xstrdup(version);
        entry->exists = true;
        series = json_at(doc.root, "series");
        entry->count = MAX(json_int(series, "count", 1), (int64_t)1);
        time_parse(json_text(json_at(doc.root, "eventTime")), ret_event_time);
        time_parse(json_text(json_at(series, "lastObservedTime")), ret_observed);
        return 0;
}

static void forget_version(struct entry *entry, bool exists)
{
        entry->exists = exists;
        free(TAKE_PTR(entry->version));
}

/* A write was answered. What it answered is good to know, but without it the next one reads first. */
static void succeeded(struct entry *entry, const struct kube_answer *answer)
{
        usec_t ignored;

        if (learn(entry, answer->body, &ignored, &ignored, NULL) < 0)
                forget_version(entry, true);
        written(entry);
}

static void on_created(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct entry *entry = arg;
        struct events *e = landed(entry);

        if (!err) {
                count(e->created, 1);
                succeeded(entry, answer);
        } else if (err->code == E_EXISTS) {
                forget_version(entry, true);
                fly(entry);
        } else {
                failed(entry, answer, err);
        }
}

static void on_got(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct entry *entry = arg;
        struct err bad = ERR_INIT;
        usec_t event_time, observed;

        landed(entry);
        if (!err && learn(entry, answer->body, &event_time, &observed, &bad) < 0)
                err = &bad;
        if (err && err->code == E_NOT_FOUND && ++entry->tries < TRIES_MAX) {
                forget_version(entry, false);
                fly(entry);
        } else if (err) {
                failed(entry, answer, err);
        } else if (entry->sending && entry->sending_time == (entry->sending_series ? observed : event_time)) {
                written(entry); /* an earlier try had arrived after all */
        } else {
                fly(entry);
        }
}

static void on_patched(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct entry *entry = arg;
        struct events *e = landed(entry);

        if (!err) {
                count(e->series, entry->sending);
                succeeded(entry, answer);
                return;
        }
        forget_version(entry, err->code != E_NOT_FOUND);
        if ((err->code == E_CONFLICT || err->code == E_NOT_FOUND) && ++entry->tries < TRIES_MAX)
                fly(entry);
        else
                failed(entry, answer, err);
}

static void send_create(struct entry *entry)
{
        entry->sending = 1;
        entry->sending_time = entry->event_time;
        entry->sending_series = false;
        send_request(entry, KUBE_CREATE, str_of(entry->body), on_created);
}

static void send_series(struct entry *entry)
{
        struct arena *a = &entry->events->scratch;
        char when[TIME_TEXT_MAX];
        int64_t total = (int64_t)MIN((uint64_t)entry->count + entry->unsent, (uint64_t)INT32_MAX);
        const char *body;

        entry->sending = entry->unsent;
        entry->sending_time = entry->observed;
        entry->sending_series = true;
        time_format_micro(entry->observed, when);
        body = json_print(a, json_build(a,
                                        "{'metadata': {'resourceVersion': %s}, "
                                        "'series': {'count': %lld, 'lastObservedTime': %s}}",
                                        entry->version, (long long)total, when));
        send_request(entry, KUBE_PATCH_MERGE, str_of(body), on_patched);
        arena_reset(a, SCRATCH_KEEP);
}

static void fly(struct entry *entry)
{
        if (!entry->exists)
                send_create(entry);
        else if (!entry->version)
                send_request(entry, KUBE_GET, STR_NULL, on_got);
        else
                send_series(entry);
}

static void pump(struct events *e)
{
        struct heap_node *first;

        while (e->flying < FLYING_MAX && (first = heap_first(&e->waiting))) {
                if (first->order > now_boot(e)) {
                        timer_at(&e->timer, first->order);
                        return;
                }
                heap_remove(&e->waiting, first);
                fly(CONTAINER_OF(first, struct entry, due));
        }
        timer_cancel(&e->timer);
}

static void on_timer(struct timer *t)
{
        pump(CONTAINER_OF(t, struct events, timer));
}

/* ---- recording */

static void source_free(struct events *e, struct source *s)
{
        map_remove(&e->sources, str_of(s->key));
        list_remove(&s->used);
        free(s->key);
        free(s);
}

static struct source *source_get(struct events *e, const char *key)
{
        struct source *s = map_get(&e->sources, str_of(key));

        if (!s) {
                if (e->sources.n >= KEYS_MAX)
                        source_free(e, CONTAINER_OF(e->used.next, struct source, used));
                s = xcalloc(1, sizeof(*s));
                s->key = xstrdup(key);
                s->tokens = BURST;
                s->at = now_boot(e);
                list_init(&s->used);
                map_put(&e->sources, str_of(s->key), s);
        }
        list_remove(&s->used);
        list_append(&e->used, &s->used);
        return s;
}

static bool take_token(struct events *e, const char *source)
{
        struct source *s = source_get(e, source);
        usec_t now = now_boot(e);

        s->tokens = MIN((double)BURST, s->tokens + (double)usec_sub(now, s->at) / (double)REFILL);
        s->at = now;
        if (s->tokens < 1)
                return false;
        s->tokens -= 1;
        return true;
}

/* S as the API takes it: valid UTF-8 of at most MAX bytes. */
static const char *fit(struct arena *a, const char *s, size_t max)
{
        struct str text = json_text(json_stringn(a, str_n(s, strnlen(s, max + 4))));

        return arena_strndup(a, text.p, utf8_cut(text.p, text.n, max));
}

/* All of an occurrence in the scratch arena. */
struct occurrence {
        const char *ns, *object, *uid; /* of the object; ns is NULL for cluster-scoped ones */
        const char *source;            /* names the object */
        const char *type, *reason, *action, *note;
};

static void describe(struct events *e, const struct json *regarding, const struct event *event,
                     struct occurrence *o)
{
        struct arena *a = &e->scratch;

        *o = (struct occurrence){
                .ns = meta_str(regarding, "namespace"),
                .object = meta_str(regarding, "name"),
                .uid = meta_str(regarding, "uid"),
                .type = event->type == EVENT_WARNING ? "Warning" : "Normal",
                .reason = fit(a, event->reason, WORD_MAX),
                .action = fit(a, event->action ? event->action : event->reason, WORD_MAX),
                .note = fit(a, event->note ? event->note : "", NOTE_MAX),
        };
        if (!o->object)
                o->object = "unknown";
        o->source = o->uid ? o->uid
                           : arena_printf(a, "%s %s/%s", json_str_or(regarding, "kind", ""),
                                          o->ns ? o->ns : "", o->object);
}

/* Equal for the same event about the same object, now and after a restart. */
static const char *occurrence_key(struct events *e, const struct occurrence *o)
{
        const char *parts[] = {o->source, o->type, o->reason, o->action, o->note, e->config.controller};
        _cleanup_(buf_done) struct buf all = BUF_INIT(64 * 1024);

        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                buf_printf(&all, "%zu:%s,", strlen(parts[i]), parts[i]);
        return name_hash(&e->scratch, buf_str(&all));
}

static char *occurrence_body(struct events *e, const struct occurrence *o, const struct json *regarding,
                             const struct entry *entry)
{
        struct arena *a = &e->scratch;
        char when[TIME_TEXT_MAX];
        struct json *ref;
        _cleanup_(buf_done) struct buf body = BUF_INIT(64 * 1024);

        time_format_micro(entry->event_time, when);
        ref = json_build(a,
                         "{'apiVersion': %p, 'kind': %p, 'namespace': %p, 'name': %p, 'uid': %p, "
                         "'resourceVersion': %p}",
                         (void *)json_string(a, json_str(regarding, "apiVersion")),
                         (void *)json_string(a, json_str(regarding, "kind")), (void *)json_string(a, o->ns),
                         (void *)json_string(a, o->object), (void *)json_string(a, o->uid),
                         (void *)json_string(a, meta_str(regarding, "resourceVersion")));
        json_write(json_build(a,
                              "{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event', "
                              "'metadata': {'namespace': %s, 'name': %s}, 'eventTime': %s, "
                              "'reportingController': %s, 'reportingInstance': %s, "
                              "'action': %s, 'reason': %s, 'regarding': %p, 'note': %s, 'type': %s}",
                              entry->ns, entry->name, when, e->config.controller, e->config.instance,
                              o->action, o->reason, (void *)ref, o->note, o->type),
                   JSON_COMPACT, &body);
        return buf_take(&body);
}

/* Begins to tell the server of an occurrence of an idle entry. */
static void start(struct events *e, struct entry *entry, const struct occurrence *o,
                  const struct json *regarding, usec_t when)
{
        entry->event_time = loop_wall(e->loop);
        entry->unsent = 1;
        entry->body = occurrence_body(e, o, regarding, entry);
        wait_until(entry, when);
}

static void record(struct events *e, const struct json *regarding, const struct occurrence *o)
{
        const char *key = occurrence_key(e, o);
        struct entry *entry = map_get(&e->entries, str_of(key));
        usec_t now = now_boot(e), when = now;
        bool again = entry && (!is_idle(entry) || now < usec_add(entry->seen, SAME_SERIES));

        if ((!entry || is_idle(entry)) && events_pending(e) >= PENDING_MAX) {
                count(e->dropped, 1);
                return;
        }
        if (!again && !take_token(e, o->source)) {
                count(e->dropped, 1);
                return;
        }
        if (!entry)
                entry = entry_new(e, key, o->ns ? o->ns : CLUSTER_NS,
                                  name_fit(&e->scratch, NAME_SUBDOMAIN, "", o->object,
                                           arena_printf(&e->scratch, ".%s", key), NULL));
        if (again && entry->written)
                when = MAX(now, usec_add(entry->written, SERIES_EVERY));
        entry->seen = now;
        entry->observed = loop_wall(e->loop);
        if (is_idle(entry))
                start(e, entry, o, regarding, when);
        else
                entry->unsent++;
}

void events_record(struct events *e, const struct json *regarding, const struct event *event)
{
        struct occurrence o;

        if (!event->reason || !*event->reason) {
                LOG_ERROR(loop_log(e->loop), "An event without a reason was not recorded",
                          F_STR("note", event->note));
                return;
        }
        describe(e, regarding, event, &o);
        record(e, regarding, &o);
        arena_reset(&e->scratch, SCRATCH_KEEP);
}

size_t events_pending(const struct events *e)
{
        return e->waiting.n + e->flying;
}

/* ---- life */

static struct metric *counter(struct metrics *m, const char *result)
{
        static const char *const labels[] = {"result", NULL};
        static const struct metric_family family = {
                .name = "sonde_events_total",
                .help = "Occurrences of events: created, added to a series, dropped, failed to "
                        "write.",
                .type = METRIC_COUNTER,
                .labels = labels,
        };

        return m ? metrics_get(m, &family, (const char *const[]){result}) : NULL;
}

struct events *events_new(const struct events_config *config)
{
        struct events *e = xcalloc(1, sizeof(*e));

        e->config = *config;
        e->config.controller = xstrdup(config->controller);
        e->config.instance = xstrndup(config->instance,
                                      utf8_cut(config->instance, strlen(config->instance), WORD_MAX));
        e->loop = kube_loop(config->kube);
        e->created = counter(config->metrics, "created");
        e->series = counter(config->metrics, "series");
        e->dropped = counter(config->metrics, "dropped");
        e->failed = counter(config->metrics, "failed");
        list_init(&e->idle);
        list_init(&e->used);
        timer_init(&e->timer, e->loop, on_timer);
        return e;
}

void events_free(struct events *e)
{
        struct entry *entry;
        struct source *source;
        size_t i;

        if (!e)
                return;
        while (i = 0, map_next(&e->entries, &i, (void **)&entry))
                entry_free(entry);
        while (i = 0, map_next(&e->sources, &i, (void **)&source))
                source_free(e, source);
        map_done(&e->entries);
        map_done(&e->sources);
        heap_done(&e->waiting);
        timer_cancel(&e->timer);
        arena_done(&e->scratch);
        free((char *)e->config.controller);
        free((char *)e->config.instance);
        free(e);
}
