/*
 * One run: its object, its events, what its workload wrote, and what it left.
 */
#include "web/internal.h"

#include "run/run.h"

enum { EVENTS_MAX = 500, FILES_BYTES_MAX = 8 << 20, LOG_BYTES_MAX = 1 << 20 };

static const struct kube_type CORE_EVENT = {"", "v1", "events", "Event", true, false};
static const struct json_limits FILE_LIMITS = {.bytes = 4 << 20, .depth = 64, .nodes = 500000};

/* What a look at one run has found so far. */
struct detail {
        const struct kind *kind;
        struct json *object;
        struct run_kind run;
        struct json *answer;
        const char *container;
        void (*next)(struct call *c, struct detail *d);
};

static void on_object(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct detail *d = c->state;

        if (err) {
                call_fail_kube(c, answer, err);
                return;
        }
        d->object = call_object(c, answer);
        if (d->object)
                d->next(c, d);
}

/* The object of the path, read as the caller; then NEXT. */
static void look_at(struct call *c, void (*next)(struct call *c, struct detail *d))
{
        struct detail *d = arena_new(&c->arena, struct detail);
        struct kube_request r = {.verb = KUBE_GET, .ns = c->params[1], .name = c->params[2]};

        d->kind = call_kind(c);
        if (!d->kind)
                return;
        d->next = next;
        c->state = d;
        r.type = d->kind->type;
        call_kube(c, &r, on_object);
}

/* ---- the object */

static void tell_run(struct call *c, struct detail *d)
{
        struct summary s;

        summarize(d->kind, d->object, &c->arena, &s);
        call_reply(c, 200,
                   json_build(&c->arena, "{'run': %p, 'object': %p}", (void *)summary_json(&s, &c->arena),
                              (void *)d->object));
}

void serve_run(struct call *c)
{
        look_at(c, tell_run);
}

/* ---- events */

static const char *first_of(const struct json *event, const char *const *members, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (json_str(event, members[i]))
                        return json_str(event, members[i]);
        return NULL;
}

static struct json *event_row(const struct json *event, struct arena *a)
{
        static const char *const times[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
        const struct json *series = json_at(event, "series");
        const char *time = json_str(series, "lastObservedTime");
        int64_t count = json_int(series, "count", json_int(event, "count", 1));

        if (!time)
                time = first_of(event, times, ARRAY_LEN(times));
        if (!time)
                time = json_str(json_at(event, "metadata"), "creationTimestamp");
        return json_build(a, "{'time': %s, 'type': %s, 'reason': %s, 'message': %s, 'count': %lld}", time,
                          json_str_or(event, "type", "Normal"), json_str_or(event, "reason", ""),
                          json_str_or(event, "message", ""), (long long)MAX(count, (int64_t)1));
}

static usec_t time_of(const struct json *row)
{
        struct str text = json_text(json_at(row, "time"));
        usec_t when;

        return text.p && time_parse(text, &when) ? when : 0;
}

static int newest_first(const void *x, const void *y)
{
        usec_t a = time_of(*(struct json *const *)x), b = time_of(*(struct json *const *)y);

        return a == b ? 0 : a < b ? 1 : -1;
}

static void on_events(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct json *list, *items = json_array(&c->arena), **rows;
        size_t n = 0;

        if (err) {
                call_fail_kube(c, answer, err);
                return;
        }
        list = call_object(c, answer);
        if (!list)
                return;
        rows = arena_new_array(&c->arena, struct json *, json_len(json_at(list, "items")) + 1);
        json_foreach (event, json_at(list, "items"))
                rows[n++] = event_row(event, &c->arena);
        qsort(rows, n, sizeof(struct json *), newest_first);
        for (size_t i = 0; i < n; i++)
                json_append(items, rows[i]);
        call_reply(c, 200, json_build(&c->arena, "{'items': %p}", (void *)items));
}

static void ask_events(struct call *c, struct detail *d)
{
        struct kube_request r = {.verb = KUBE_LIST,
                                 .type = &CORE_EVENT,
                                 .ns = c->params[1],
                                 .limit = EVENTS_MAX,
                                 .field_selector = arena_printf(&c->arena, "involvedObject.uid=%s",
                                                                meta_str(d->object, "uid"))};

        call_kube(c, &r, on_events);
}

void serve_run_events(struct call *c)
{
        look_at(c, ask_events);
}

/*
 * ---- what the workload wrote: its end. A server that is asked for so many lines and so many bytes of them leaves out the newest,
 * so that what is too much is left out here.
 */

/* One byte more than is told says whether a line begins there. */
enum { LOG_KEPT = LOG_BYTES_MAX + 1 };

static struct str last_bytes(struct str s, size_t n)
{
        return s.n > n ? str_n(s.p + (s.n - n), n) : s;
}

static void on_log_piece(struct call *c, struct str piece)
{
        struct buf *b = &c->text;

        piece = last_bytes(piece, LOG_KEPT);
        if (b->n + piece.n > b->max)
                buf_consume(b, b->n - MIN(b->n, (size_t)LOG_KEPT));
        buf_addstr(b, piece);
}

/* From a line's begin where there is one, else from a character's. */
static struct str log_end(struct str s)
{
        const char *newline;

        if (s.n <= LOG_BYTES_MAX)
                return s;
        s = last_bytes(s, LOG_KEPT);
        newline = memchr(s.p, '\n', s.n);
        if (newline && newline + 1 < s.p + s.n)
                return last_bytes(s, s.n - (size_t)(newline + 1 - s.p));
        s = last_bytes(s, LOG_BYTES_MAX);
        for (int i = 0; i < 3 && ((unsigned char)s.p[0] & 0xC0) == 0x80; i++)
                s = last_bytes(s, s.n - 1);
        return s;
}

static void on_log(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        if (err)
                call_fail_kube(c, answer, err);
        else
                call_reply_text(c, 200, "text/plain; charset=utf-8", log_end(buf_str(&c->text)));
}

static void on_pods(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        const char *container = json_str(c->query, "container");
        struct kube_request r = {.verb = KUBE_GET};
        const struct json *list, *pod;
        _cleanup_(buf_done) struct buf path = BUF_INIT(8192);

        if (err) {
                call_fail_kube(c, answer, err);
                return;
        }
        list = call_object(c, answer);
        if (!list)
                return;
        pod = steer_pod(json_at(list, "items"));
        if (!pod) {
                call_fail(c, 404, "the run has no pod now; what it wrote is gone with it");
                return;
        }
        kube_path(&path, &KUBE_POD, c->params[1], meta_str(pod, "name"), "log");
        buf_printf(&path, "?tailLines=%lld&container=", (long long)json_int(c->query, "tailLines", 500));
        buf_add_urlencoded(&path, str_of(container ? container : steer_container(pod)));
        r.path = buf_cstr(&path);
        c->text = (struct buf)BUF_INIT(2 * LOG_KEPT);
        if (r.path)
                call_kube_pieces(c, &r, on_log_piece, on_log);
        else
                call_fail_field(c, "query", "container", "Input should be a container's name");
}

static void ask_pods(struct call *c, struct detail *d)
{
        const char *job = json_str(json_at(json_at(d->object, "status"), "run"), "job");
        struct kube_request r = {.verb = KUBE_LIST, .type = &KUBE_POD, .ns = c->params[1], .limit = 100};

        if (!job) {
                call_fail(c, 404, "the run has not begun");
                return;
        }
        r.label_selector = arena_printf(&c->arena, "job-name=%s", job);
        call_kube(c, &r, on_pods);
}

void serve_run_log(struct call *c)
{
        look_at(c, ask_pods);
}

/* ---- what it left */

/* A file's content: JSON as such, everything else as text. */
static struct json *content(struct arena *a, const char *key, struct str text)
{
        struct json *parsed = NULL;

        if (str_has_suffix(str_of(key), STR(".json")))
                parsed = json_parse(a, text, &FILE_LIMITS, NULL);
        return parsed ? parsed : json_stringn(a, text);
}

/* Keys without a dot are the relay's own marks. */
static void add_files(struct call *c, const struct json *map, struct json *files, struct json *left)
{
        const struct view v = {.arena = &c->arena};
        const struct json *parts[] = {json_at(map, "data"), json_at(map, "binaryData")};
        size_t bytes = 0;

        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                json_foreach (one, parts[i]) {
                        struct str name = str_n(one->key, one->key_len), text;
                        char *key;

                        if (i == 1 && str_has_suffix(name, STR(".gz")))
                                name.n -= 3;
                        if (!memchr(name.p, '.', name.n))
                                continue;
                        key = arena_strndup(&c->arena, name.p, name.n);
                        text = run_data_text(&v, map, key, NULL);
                        bytes += text.n;
                        if (text.p && bytes <= FILES_BYTES_MAX)
                                json_set(&c->arena, files, key, content(&c->arena, key, text));
                        else
                                json_append(left, json_string(&c->arena, key));
                }
}

static struct json *when(struct arena *a, usec_t at)
{
        char text[TIME_TEXT_MAX];

        return at ? json_string(a, time_format(at, text)) : NULL;
}

static struct json *phase_json(struct arena *a, const struct track_phase *p, usec_t now)
{
        double seconds = p->before + (double)usec_sub(p->ended ? p->ended : now, p->began) / 1e6;
        struct json *one = json_build(a, "{'name': %s, 'beganAt': %p, 'endedAt': %p, 'seconds': %p}", p->name,
                                      (void *)when(a, p->began), (void *)when(a, p->ended),
                                      (void *)json_double(a, seconds));

        if (p->total) {
                json_set(a, one, "steps", json_u64(a, p->done));
                json_set(a, one, "totalSteps", json_u64(a, p->total));
        }
        return one;
}

/* How it came to where it is: its phases and how long each took. NULL: nothing is known. */
static struct json *track_rows(struct call *c, struct str text)
{
        const struct json *parsed = text.p ? json_parse(&c->arena, text, &FILE_LIMITS, NULL) : NULL;
        struct json *phases = json_array(&c->arena);
        struct track *t = arena_new(&c->arena, struct track);
        usec_t now = loop_wall(c->web->loop);

        if (!parsed || track_parse(parsed, t, NULL) < 0)
                return NULL;
        for (uint32_t i = 0; i < t->n; i++)
                json_append(phases, phase_json(&c->arena, &t->phases[i], t->ended ? t->ended : now));
        return json_build(&c->arena, "{'startedAt': %p, 'endedAt': %p, 'phases': %p}",
                          (void *)when(&c->arena, t->started), (void *)when(&c->arena, t->ended),
                          (void *)phases);
}

/* One that is of another object of the same name is not the run's. */
static const struct json *own_map(struct call *c, const struct detail *d, const struct kube_answer *answer,
                                  const struct err *err)
{
        const struct json *map = err ? NULL : json_parse(&c->arena, answer->body, NULL, NULL);

        return streq(meta_controller_uid(map), meta_str(d->object, "uid")) ? map : NULL;
}

/* After its end a run has no status ConfigMap any more; how it came there is in the history, if that is kept. */
static void on_kept_track(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        struct call *c = arg;
        struct detail *d = c->state;
        struct json *row = n && !err ? history_row_json(rows, &c->arena) : NULL;
        struct json *phases = json_remove(row, "phases");

        if (phases)
                json_set(&c->arena, d->answer, "track",
                         json_build(&c->arena, "{'startedAt': %p, 'endedAt': %p, 'phases': %p}",
                                    (void *)json_remove(row, "startedAt"),
                                    (void *)json_remove(row, "finishedAt"), (void *)phases));
        call_reply(c, 200, d->answer);
}

static void on_status_map(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct detail *d = c->state;
        const struct json *data = json_at(own_map(c, d, answer, err), "data");
        struct str status = json_text(json_at(data, RUN_KEY_STATUS));

        if (status.p)
                json_set(&c->arena, d->answer, "status", json_parse(&c->arena, status, &FILE_LIMITS, NULL));
        json_set(&c->arena, d->answer, "track", track_rows(c, json_text(json_at(data, RUN_KEY_TRACK))));
        if (json_at(d->answer, "track") || !c->web->cfg.history)
                call_reply(c, 200, d->answer);
        else
                history_list(c->web->cfg.history,
                             &(struct history_filter){.uid = meta_str(d->object, "uid"), .limit = 1},
                             on_kept_track, c);
}

static void on_data_map(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct detail *d = c->state;
        struct json *files = json_object(&c->arena), *left = json_array(&c->arena);
        struct kube_request r = {
                .verb = KUBE_GET, .type = &KUBE_CONFIGMAP, .ns = c->params[1], .name = d->run.status_map};

        if (err && err->code != E_NOT_FOUND) {
                call_fail_kube(c, answer, err);
                return;
        }
        add_files(c, own_map(c, d, answer, err), files, left);
        d->answer = json_build(&c->arena, "{'files': %p, 'leftOut': %p}", (void *)files,
                               (void *)(json_first(left) ? left : NULL));
        call_kube(c, &r, on_status_map);
}

static void ask_data(struct call *c, struct detail *d)
{
        struct kube_request r = {.verb = KUBE_GET, .type = &KUBE_CONFIGMAP, .ns = c->params[1]};

        if (!kinds_run(d->kind, d->object, &c->arena, &d->run)) {
                call_reply(c, 200, json_build(&c->arena, "{'files': {}}"));
                return;
        }
        r.name = d->run.data_map;
        call_kube(c, &r, on_data_map);
}

void serve_run_data(struct call *c)
{
        look_at(c, ask_data);
}

/* ---- what a person does with it */

static void tell_object(struct call *c, const struct kube_answer *answer, int status)
{
        struct detail *d = c->state;
        struct json *object = call_object(c, answer);
        struct summary s;

        if (!object)
                return;
        summarize(d->kind, object, &c->arena, &s);
        call_reply(c, status, summary_json(&s, &c->arena));
}

static void on_steered(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        if (err)
                call_fail_kube(c, answer, err);
        else
                tell_object(c, answer, 200);
}

/* The last part of the path is what is to be done. */
static const char *action_of(const struct call *c)
{
        return strrchr(c->endpoint->path, '/') + 1;
}

static void steer(struct call *c, struct detail *d)
{
        struct json *patch = steer_patch((enum steer)steer_named(action_of(c)), d->object, &c->arena);
        struct kube_request r = {.verb = KUBE_PATCH_MERGE,
                                 .type = d->kind->type,
                                 .ns = c->params[1],
                                 .name = c->params[2],
                                 .field_manager = "sonde"};
        struct summary s;

        summarize(d->kind, d->object, &c->arena, &s);
        if (d->kind->result) {
                call_fail(c, 409, "a %s is a result: there is nothing to %s", d->kind->type->kind,
                          action_of(c));
        } else if (!patch) {
                call_reply(c, 200, summary_json(&s, &c->arena));
        } else if (summary_over(&s)) {
                call_fail(c, 409, "the run has ended (%s); rerun makes another one", s.phase);
        } else {
                json_path_set(&c->arena, patch, "metadata.uid", json_string(&c->arena, s.uid));
                r.body = str_of(json_print(&c->arena, patch));
                call_kube(c, &r, on_steered);
        }
}

void serve_run_steer(struct call *c)
{
        look_at(c, steer);
}

/* ---- once more */

enum { RERUNS_MAX = 1000 };

struct again {
        struct detail d; /* first: it is the call's state */
        unsigned n;
};

static void create_again(struct call *c);

static void on_created(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct again *again = c->state;

        if (!err)
                tell_object(c, answer, 201);
        else if (err->code == E_EXISTS && again->n < RERUNS_MAX)
                create_again(c);
        else
                call_fail_kube(c, answer, err);
}

static void create_again(struct call *c)
{
        struct again *again = c->state;
        const char *name = steer_name(again->d.object, ++again->n, &c->arena);
        struct kube_request r = {.verb = KUBE_CREATE,
                                 .type = again->d.kind->type,
                                 .ns = c->params[1],
                                 .field_manager = "sonde"};

        r.body = str_of(json_print(&c->arena, steer_again(again->d.kind, again->d.object, name, &c->arena)));
        call_kube(c, &r, on_created);
}

static void rerun(struct call *c, struct detail *d)
{
        struct again *again = arena_new(&c->arena, struct again);

        again->d = *d;
        c->state = again;
        if (d->kind->result)
                call_fail(c, 409, "a %s is a result: there is nothing to rerun", d->kind->type->kind);
        else
                create_again(c);
}

void serve_run_again(struct call *c)
{
        look_at(c, rerun);
}
