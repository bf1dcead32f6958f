/*
 * pods/NAME/log: output of a container, from the node's files. Without `follow` it is answered whole; with it, it is sent
 * piece by piece until the container has ended and all of its output is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/api_internal.h"

enum {
        ROTATED_MAX = 4,           /* N.log.4 is the oldest */
        LINE_MAX_BYTES = 64 << 10, /* of one entry of a file; longer ones are cut by the node */
        PIECE = 256 << 10,         /* read at once */
        ANSWER_MAX = 256 << 20,
};
static const usec_t POLL = 100 * USEC_PER_MS, AT_ONCE = 5 * USEC_PER_MS;

struct log_options {
        const char *container;
        bool follow, previous, timestamps;
        int64_t tail;  /* lines; -1: all */
        int64_t limit; /* bytes; -1: none */
        usec_t since;  /* wall */
};

/* ---- one container's output */

struct log_reader {
        struct log_options o;
        char *path;          /* N.log */
        int fd, rotated;     /* which file is being read: N.log.rotated, 0: N.log */
        struct buf raw;      /* read and not looked at */
        uint64_t lines_left; /* to skip before the tail */
        bool inside;         /* of a line whose beginning was sent or skipped */
        bool skipping;       /* the line that it is inside of */
        bool full;           /* the limit is reached */
};

static int open_log(const struct log_reader *l, int rotated)
{
        _cleanup_(free_ptr) char *path = rotated ? xasprintf("%s.%d", l->path, rotated) : xstrdup(l->path);

        return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* Goes on with the next younger file; false: there is none, the youngest stays open. */
static bool next_file(struct log_reader *l)
{
        int fd = -1;

        while (fd < 0 && l->rotated > 0)
                fd = open_log(l, --l->rotated);
        if (fd < 0)
                return false;
        if (l->fd >= 0)
                close(l->fd);
        l->fd = fd;
        return true;
}

/* Adds what is there to RAW, at most a piece; 0: nothing more in this file. */
static size_t read_piece(struct log_reader *l)
{
        char *p = l->fd < 0 ? NULL : buf_reserve(&l->raw, PIECE);
        ssize_t n = p ? read(l->fd, p, PIECE) : 0;

        if (n <= 0)
                return 0;
        l->raw.n += (size_t)n;
        return (size_t)n;
}

/* "TIME STREAM TAG TEXT" */
struct entry {
        struct str time, text;
        bool partial;
};

static bool parse_entry(struct str line, struct entry *e)
{
        struct str rest = line, tag;

        e->time = str_split(&rest, ' ');
        (void)str_split(&rest, ' ');
        if (!rest.p)
                return false;
        tag = str_split(&rest, ' ');
        e->partial = tag.n && tag.p[0] == 'P';
        e->text = rest.p ? rest : STR("");
        return true;
}

static void emit(struct log_reader *l, struct str text, struct buf *out)
{
        if (l->o.limit >= 0 && (int64_t)text.n > l->o.limit)
                text.n = (size_t)l->o.limit;
        buf_addstr(out, text);
        if (l->o.limit >= 0)
                l->o.limit -= (int64_t)text.n;
        l->full = l->o.limit == 0;
}

/* Times are written with nine digits after the point. */
static void emit_time(struct log_reader *l, struct str time, struct buf *out)
{
        char text[TIME_TEXT_MAX + 8];
        struct str digits = time, whole = str_split(&digits, '.');
        size_t n = digits.n && digits.p[digits.n - 1] == 'Z' ? digits.n - 1 : 0;

        snprintf(text, sizeof(text), "%.*s.%.*s%.*sZ ", STR_ARG(str_n(whole.p, MIN(whole.n, (size_t)19))),
                 (int)MIN(n, (size_t)9), digits.p ? digits.p : "", (int)(9 - MIN(n, (size_t)9)), "000000000");
        emit(l, str_of(text), out);
}

static void one_entry(struct log_reader *l, const struct entry *e, struct buf *out)
{
        usec_t at;

        if (!l->inside) {
                l->skipping = l->o.since && time_parse(e->time, &at) && at < l->o.since;
                if (!l->skipping && l->lines_left > 0) {
                        l->skipping = true;
                        l->lines_left--;
                }
                if (!l->skipping && l->o.timestamps && !l->full)
                        emit_time(l, e->time, out);
        }
        l->inside = e->partial;
        if (l->skipping || l->full)
                return;
        emit(l, e->text, out);
        if (!e->partial && !l->full)
                emit(l, STR("\n"), out);
}

/* Takes the whole lines of RAW. */
static void take_lines(struct log_reader *l, struct buf *out)
{
        size_t used = 0;
        struct entry e;
        char *end;

        while (used < l->raw.n && (end = memchr(l->raw.p + used, '\n', l->raw.n - used))) {
                if (parse_entry(str_n(l->raw.p + used, (size_t)(end - l->raw.p) - used), &e))
                        one_entry(l, &e, out);
                used = (size_t)(end - l->raw.p) + 1;
        }
        buf_consume(&l->raw, used);
        if (l->raw.n > LINE_MAX_BYTES) /* no line of ours is so long: it is not one */
                buf_clear(&l->raw);
}

/* All that is there now. False: more may be there at once. */
static bool read_on(struct log_reader *l, struct buf *out, size_t most)
{
        while (out->n < most && !l->full) {
                if (read_piece(l) > 0)
                        take_lines(l, out);
                else if (!next_file(l))
                        return true;
        }
        return l->full;
}

static void reader_rewind(struct log_reader *l)
{
        if (l->fd >= 0)
                close(l->fd);
        l->fd = -1;
        l->rotated = ROTATED_MAX + 1;
        buf_clear(&l->raw);
        l->inside = l->skipping = false;
        (void)next_file(l);
}

/* How many lines there are; they are read twice to show the last ones. */
static uint64_t count_lines(struct log_reader *l)
{
        uint64_t n = 0;

        reader_rewind(l);
        for (;;) {
                struct str rest;
                size_t used = 0;

                if (read_piece(l) == 0) {
                        if (!next_file(l))
                                return n;
                        continue;
                }
                rest = buf_str(&l->raw);
                for (char *end; (end = memchr(rest.p + used, '\n', rest.n - used));
                     used = (size_t)(end - rest.p) + 1) {
                        struct entry e;
                        usec_t at;

                        if (parse_entry(str_n(rest.p + used, (size_t)(end - rest.p) - used), &e) &&
                            !e.partial)
                                n += !(l->o.since && time_parse(e.time, &at) && at < l->o.since);
                }
                buf_consume(&l->raw, used);
        }
}

static void reader_init(struct log_reader *l, const struct log_options *o, const char *path)
{
        uint64_t n;

        *l = (struct log_reader){.o = *o, .path = xstrdup(path), .fd = -1, .raw = BUF_INIT(4 * PIECE)};
        if (o->tail >= 0) {
                n = count_lines(l);
                l->lines_left = n > (uint64_t)o->tail ? n - (uint64_t)o->tail : 0;
        }
        reader_rewind(l);
}

static void reader_done(struct log_reader *l)
{
        if (l->fd >= 0)
                close(l->fd);
        buf_done(&l->raw);
        free(l->path);
}

static bool is_file(const struct log_reader *l, int rotated, const struct stat *mine)
{
        _cleanup_(free_ptr) char *path = rotated ? xasprintf("%s.%d", l->path, rotated) : xstrdup(l->path);
        struct stat there;

        return stat(path, &there) == 0 && there.st_ino == mine->st_ino && there.st_dev == mine->st_dev;
}

/* Whether the file has been rotated while it was read, or is there only now: then there is more to read. */
static bool was_rotated(struct log_reader *l)
{
        struct stat mine;

        if (l->fd < 0) {
                l->rotated = 1;
                return next_file(l);
        }
        if (fstat(l->fd, &mine) < 0 || is_file(l, 0, &mine))
                return false;
        for (l->rotated = 1; l->rotated < ROTATED_MAX && !is_file(l, l->rotated, &mine); l->rotated++)
                ;
        return true;
}

/* ---- following */

struct follow {
        struct list node; /* of api->logs */
        struct request *r;
        struct log_reader reader;
        struct timer timer;
        char *ns, *pod, *uid, *container;
        int64_t restarts; /* of the container, when its output was asked for */
};

static void follow_free(struct follow *f)
{
        list_remove(&f->node);
        timer_cancel(&f->timer);
        reader_done(&f->reader);
        f->r->ex = NULL;
        request_free(f->r);
        free(f->ns);
        free(f->pod);
        free(f->uid);
        free(f->container);
        free(f);
}

static void follow_closed(void *arg)
{
        follow_free(arg);
}

static const struct json *container_status(const struct json *pod, const char *name)
{
        static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};

        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                const struct json *found = json_find_named(json_at(json_at(pod, "status"), lists[i]), name);

                if (found)
                        return found;
        }
        return NULL;
}

static bool has_ended(const struct follow *f)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct api *api = f->r->api;
        const struct object *o = store_get(api->store, store_type(api->store, "pods"), f->ns, f->pod);
        const struct json *pod = o ? object_parse(o, &a) : NULL, *status;

        if (!pod || !streq(meta_str(pod, "uid"), f->uid))
                return true;
        status = container_status(pod, f->container);
        return json_int(status, "restartCount", 0) != f->restarts || json_path(status, "state.terminated");
}

static void on_follow(struct timer *t)
{
        struct follow *f = CONTAINER_OF(t, struct follow, timer);
        _cleanup_(buf_done) struct buf out = BUF_INIT(8 * PIECE);
        bool ended = has_ended(f); /* before reading: what it wrote last is then there */
        bool all = read_on(&f->reader, &out, PIECE);

        if (out.n)
                http_stream_write(f->r->ex, buf_str(&out));
        if (all && !f->reader.full)
                all = !was_rotated(&f->reader);
        if (all && (ended || f->reader.full)) {
                http_stream_end(f->r->ex);
                follow_free(f);
                return;
        }
        timer_after(&f->timer, all ? POLL : AT_ONCE);
}

static void follow_start(struct request *r, const struct log_options *o, const char *path,
                         const struct json *pod, int64_t restarts)
{
        struct http_header head[] = {{STR("Content-Type"), STR("text/plain")},
                                     {STR("Cache-Control"), STR("no-cache, private")}};
        struct follow *f = xcalloc(1, sizeof(*f));

        f->r = r;
        f->ns = xstrdup(r->c.ns);
        f->pod = xstrdup(r->c.name);
        f->uid = xstrdup(meta_str(pod, "uid"));
        f->container = xstrdup(o->container);
        f->restarts = restarts;
        reader_init(&f->reader, o, path);
        f->reader.o.container = NULL;
        list_append(&r->api->logs, &f->node);
        timer_init(&f->timer, r->api->loop, on_follow);
        http_stream_start(r->ex, 200, &(struct http_headers){head, ARRAY_LEN(head)}, follow_closed, f);
        timer_after(&f->timer, 0);
}

void logs_free(struct api *api)
{
        list_foreach_safe (node, &api->logs)
                follow_free(CONTAINER_OF(node, struct follow, node));
}

/* ---- options */

static int read_number(struct request *r, const char *name, int64_t *ret, bool *said)
{
        const char *text = request_param(r, name);

        *said = text && *text;
        if (*said && !str_to_i64(str_of(text), ret))
                return fail_bad_request(&r->c, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
        return 0;
}

static bool read_flag(struct request *r, const char *name)
{
        const char *text = request_param(r, name);

        return text && !streq(text, "false") && !streq(text, "0");
}

static int read_options(struct request *r, struct log_options *o)
{
        struct causes causes = {.a = &r->a};
        const char *time = request_param(r, "sinceTime");
        bool has_tail, has_limit, has_seconds, has_time = time && *time;
        int64_t seconds = 0;

        *o = (struct log_options){.container = request_param(r, "container"), .tail = -1, .limit = -1};
        o->follow = read_flag(r, "follow");
        o->previous = read_flag(r, "previous");
        o->timestamps = read_flag(r, "timestamps");
        if (read_number(r, "tailLines", &o->tail, &has_tail) < 0 ||
            read_number(r, "limitBytes", &o->limit, &has_limit) < 0 ||
            read_number(r, "sinceSeconds", &seconds, &has_seconds) < 0)
                return -1;
        if (has_time && !time_parse(str_of(time), &o->since))
                return fail_bad_request(
                        &r->c,
                        "parsing time \"%s\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"%s\" as "
                        "\"2006\"",
                        time, time);
        if (has_tail && o->tail < 0)
                causes_add(&causes, "FieldValueInvalid", "tailLines",
                           "Invalid value: %lld: must be greater than or equal to 0", (long long)o->tail);
        if (has_limit && o->limit < 1)
                causes_add(&causes, "FieldValueInvalid", "limitBytes",
                           "Invalid value: %lld: must be greater than 0", (long long)o->limit);
        if (has_seconds && has_time)
                causes_add(&causes, "FieldValueForbidden", "[]",
                           "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified");
        else if (has_seconds && seconds < 1)
                causes_add(&causes, "FieldValueInvalid", "sinceSeconds",
                           "Invalid value: %lld: must be greater than 0", (long long)seconds);
        else if (has_seconds)
                o->since = usec_sub(loop_wall(r->api->loop), (usec_t)seconds * USEC_PER_SEC);
        return causes.n ? fail_invalid(&r->c, "", "PodLogOptions", r->c.name, &causes) : 0;
}

/* ---- which container */

static void add_names(struct buf *b, const struct json *containers)
{
        json_foreach (c, containers)
                buf_printf(b, "%s%s", b->n ? " " : "", json_str_or(c, "name", ""));
}

static int find_container(struct call *c, const struct json *pod, struct log_options *o)
{
        const struct json *spec = json_at(pod, "spec"), *list = json_at(spec, "containers");
        _cleanup_(buf_done) struct buf names = BUF_INIT(1 << 16);

        if (o->container && *o->container) {
                if (json_find_named(list, o->container) ||
                    json_find_named(json_at(spec, "initContainers"), o->container))
                        return 0;
                return fail_bad_request(c, "container %s is not valid for pod %s", o->container, c->name);
        }
        if (json_len(list) == 1) {
                o->container = json_str_or(json_first(list), "name", "");
                return 0;
        }
        add_names(&names, json_at(spec, "initContainers"));
        add_names(&names, list);
        return fail_bad_request(c, "a container name must be specified for pod %s, choose one of: [%s]",
                                c->name, buf_cstr(&names));
}

/* Which run of the container; -1 with an answer: there is none yet. */
static int64_t find_run(struct call *c, const struct json *pod, const struct log_options *o)
{
        const struct json *status = container_status(pod, o->container), *state = json_at(status, "state");
        int64_t restarts = json_int(status, "restartCount", 0);
        const char *waiting = json_str_or(json_at(state, "waiting"), "reason", "");

        if (!status)
                return fail_bad_request(c, "container \"%s\" in pod \"%s\" is not available", o->container,
                                        c->name);
        if (o->previous) {
                if (!json_path(status, "lastState.terminated") || restarts == 0)
                        return fail_bad_request(
                                c, "previous terminated container \"%s\" in pod \"%s\" not found",
                                o->container, c->name);
                return restarts - 1;
        }
        if (json_at(state, "running") || json_at(state, "terminated"))
                return restarts;
        if (json_path(status, "lastState.terminated"))
                return MAX(restarts - 1, (int64_t)0);
        if (*waiting)
                return fail_bad_request(c, "container \"%s\" in pod \"%s\" is waiting to start: %s",
                                        o->container, c->name, waiting);
        return fail_bad_request(c, "container \"%s\" in pod \"%s\" is waiting to start - no logs yet",
                                o->container, c->name);
}

static void reply_all(struct request *r, const struct log_options *o, const char *path)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
        struct log_reader l;

        reader_init(&l, o, path);
        (void)read_on(&l, &out, ANSWER_MAX - 4 * PIECE);
        reader_done(&l);
        r->c.code = 200;
        request_reply(r, "text/plain", buf_str(&out));
}

static void reply_nothing(struct request *r)
{
        struct http_header head[] = {{STR("Cache-Control"), STR("no-cache, private")}};

        if (r->ex)
                http_reply_headers(r->ex, 204, &(struct http_headers){head, 1}, STR(""));
        request_free(r);
}

void do_log(struct request *r)
{
        const struct object *o = store_get(r->api->store, r->c.type->store, r->c.ns, r->c.name);
        const struct json *pod;
        struct log_options options = {0};
        const char *path;
        int64_t run;

        if (r->c.verb != DO_GET)
                fail_method(&r->c);
        else if (read_options(r, &options) == 0 && !o)
                fail_not_found(&r->c);
        if (r->c.code) {
                request_answer(r);
                return;
        }
        pod = object_parse(o, &r->a);
        if (find_container(&r->c, pod, &options) < 0) {
                request_answer(r);
                return;
        }
        if (!*json_str_or(json_at(pod, "spec"), "nodeName", "")) {
                reply_nothing(r); /* nobody has begun */
                return;
        }
        run = find_run(&r->c, pod, &options);
        if (run < 0) {
                request_answer(r);
                return;
        }
        path = arena_printf(&r->a, "%s/%s/log/%s/%lld.log",
                            r->api->pods_dir ? r->api->pods_dir : "/nonexistent", meta_str(pod, "uid"),
                            options.container, (long long)run);
        if (options.follow && !options.previous)
                follow_start(r, &options, path, pod, run);
        else
                reply_all(r, &options, path);
}
