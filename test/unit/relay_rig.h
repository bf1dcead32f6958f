/*
 * relay_rig.h - relays on a manual clock, an API of two ConfigMaps in memory, and pods that are played by the test.
 *
 * The API stands in for client.c, as fake_api.h does. It applies JSON Patches, keeps the rules of ConfigMaps, and looks at
 * every change of the status ConfigMap: one that may not follow, or that is not whole, fails the test. Requests travel on
 * the manual clock; what happens to each is a fate, planned by the test or drawn at random.
 */
#pragma once

#include "unit/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include "kube/kube.h"
#include "run/relay.h"
#include "run/run.h"

enum fate {
        FATE_OK,
        FATE_LOST_BEFORE, /* never arrived: E_LOST */
        FATE_LOST_AFTER,  /* carried out, the answer was lost: E_LOST */
        FATE_LATE,        /* E_TIMEOUT, and carried out afterwards */
        FATE_TWICE,       /* carried out, and a second time later */
        FATE_ERROR,       /* refused with `code` */
        FATES,
};

struct step {
        enum fate fate;
        enum err_code code;
};

struct map_object {
        const char *name;
        char *text; /* NULL: deleted */
        uint64_t version;
};

struct kube {
        struct loop *loop;
        struct map_object maps[2];
        struct list calls;
        struct step plan[32]; /* for the next requests, then `otherwise` */
        size_t n_plan, at_plan;
        struct step otherwise;
        struct rng *chaos; /* NULL: as planned */
        bool faults;       /* of chaos */
        struct buf log; /* one letter a request: G and P for the status ConfigMap, g and p for the data's */
        size_t open;
        size_t limit;    /* of the data ConfigMap */
        uint64_t states; /* changes of the fence */
        struct run_fence fence;
        uint64_t of_attempt, sequence; /* the file's, and whether its phase was the last, in that attempt */
        bool phase_over;
        char message[128];
};

struct kube_call {
        struct list node;
        struct kube *kube;
        enum kube_verb verb;
        struct map_object *map;
        char *body;
        struct step step;
        struct timer timer;
        bool canceled, told;
        char *answer;
        struct err err;
        kube_done done;
        void *arg;
};

/* ---- the server */

static inline struct json *map_json(struct kube *k, int which, struct arena *a)
{
        struct json *j = json_parse(a, str_of(k->maps[which].text), NULL, NULL);

        assert_non_null(j);
        return j;
}

/* Borrowed from the arena; NULL: there is none. */
static inline const char *map_value(struct kube *k, int which, const char *key, struct arena *a)
{
        return json_str(json_at(map_json(k, which, a), "data"), key);
}

static inline bool status_is(struct kube *k, const char *key, const char *value)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        return streq(map_value(k, 0, key, &a), value);
}

/* The message of the state that is there now. */
static inline bool status_says(struct kube *k, const char *message)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *text = map_value(k, 0, RUN_KEY_STATUS, &a);

        return text && streq(json_str(json_parse(&a, str_of(text), NULL, NULL), "message"), message);
}

/* Within an attempt the file's sequence never goes back, and nothing follows Complete or Failed. */
static inline void check_status(struct kube *k, const struct run_status *s)
{
        if (k->of_attempt == k->fence.attempt) {
                assert_true(s->sequence >= k->sequence);
                assert_true(!k->phase_over || streq(s->message, k->message));
        }
        k->of_attempt = k->fence.attempt;
        k->sequence = s->sequence;
        k->phase_over = run_phase_terminal(s->phase);
        snprintf(k->message, sizeof(k->message), "%s", s->message);
}

/* Every state is whole, and of the pod whose it says it is: the rig's pods put their uid in front of each message. */
static inline void check_state(struct kube *k, const struct json *data, struct arena *a)
{
        const char *text = json_str(data, RUN_KEY_STATUS), *exit = json_str(data, RUN_KEY_EXIT);
        struct run_status s;
        struct run_exit e;
        size_t n = 0;

        if (text) {
                assert_int_equal(run_status_parse(a, str_of(text), loop_wall(k->loop), &s, NULL), 0);
                assert_true(str_has_prefix(str_of(s.message), str_of(k->fence.pod)));
                check_status(k, &s);
        }
        assert_int_equal(exit != NULL, run_state_terminal(k->fence.state));
        if (exit)
                assert_int_equal(run_exit_parse(a, str_of(exit), &e, NULL), 0);
        json_foreach (m, data)
                n += m->key_len + m->len;
        assert_in_range(n, 1, 16 * 1024);
}

static inline bool same_fence(const struct run_fence *a, const struct run_fence *b)
{
        return a->attempt == b->attempt && streq(a->pod, b->pod) && a->sequence == b->sequence &&
               a->state == b->state;
}

static inline void check_follows(struct kube *k, const struct json *object, struct arena *a)
{
        const struct json *data = json_at(object, "data");
        struct run_fence next;

        assert_int_equal(run_fence_read(data, &next, NULL), 0);
        if (same_fence(&next, &k->fence))
                return;
        assert_true(run_fence_follows(&k->fence, &next));
        k->fence = next;
        k->states++;
        check_state(k, data, a);
}

static inline void put_object(struct kube *k, struct map_object *m, struct json *object, struct arena *a)
{
        struct json *binary = json_at(object, "binaryData");

        if (binary && !json_len(binary))
                json_remove(object, "binaryData"); /* as it is stored */
        json_set(a, json_at(object, "metadata"), "resourceVersion",
                 json_string(a, arena_printf(a, "%llu", (unsigned long long)++m->version)));
        free(m->text);
        m->text = xstrdup(json_print(a, object));
        if (m == &k->maps[0])
                check_follows(k, object, a);
}

static inline size_t object_size(const struct json *object)
{
        size_t n = 0;

        json_foreach (m, json_at(object, "data"))
                n += m->len;
        json_foreach (m, json_at(object, "binaryData"))
                n += m->len / 4 * 3;
        return n;
}

static inline void check_values(const struct json *object)
{
        json_foreach (m, json_at(object, "data")) {
                assert_int_equal(m->type, JSON_STRING);
                assert_null(json_at(json_at(object, "binaryData"), m->key));
        }
        json_foreach (m, json_at(object, "binaryData")) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(2 << 20);

                assert_true(buf_add_unbase64(&b, json_text(m)));
        }
}

static inline void answer_with(struct kube_call *c, const char *text)
{
        free(c->answer);
        c->answer = xstrdup(text);
}

static inline void carry_out(struct kube_call *c)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct kube *k = c->kube;
        struct json *object, *patch;

        err_clear(&c->err);
        if (!c->map->text) {
                err_set(&c->err, E_NOT_FOUND, "not found");
                return;
        }
        if (c->verb == KUBE_GET) {
                answer_with(c, c->map->text);
                return;
        }
        object = json_parse(&a, str_of(c->map->text), NULL, NULL);
        patch = json_parse(&a, str_of(c->body), NULL, NULL);
        assert_non_null(patch);
        if (json_patch(&a, &object, patch, &c->err) < 0)
                return;
        check_values(object);
        if (c->map == &k->maps[1] && object_size(object) > k->limit) {
                err_set(&c->err, E_REFUSED, "too long");
                return;
        }
        put_object(k, c->map, object, &a);
        answer_with(c, c->map->text);
}

/* ---- what client.h promises */

static inline void call_tell(struct kube_call *c)
{
        struct kube_answer answer = {.status = 200, .body = str_of(c->answer)};

        if (c->canceled || c->told)
                return;
        c->told = true;
        c->kube->open--;
        c->done(c->arg, &answer, c->err.code ? &c->err : NULL);
}

static inline void call_destroy(struct kube_call *c)
{
        timer_cancel(&c->timer);
        list_remove(&c->node);
        free(c->answer);
        free(c->body);
        free(c);
}

static inline usec_t travel(struct kube *k)
{
        return k->chaos ? 100 + rng_below(k->chaos, k->faults ? 20000 : 2000) : USEC_PER_MS;
}

/* The second time: what comes late, or twice. */
static inline void on_call_again(struct timer *t)
{
        struct kube_call *c = CONTAINER_OF(t, struct kube_call, timer);

        carry_out(c);
        call_destroy(c);
}

static inline void on_call_timer(struct timer *t)
{
        struct kube_call *c = CONTAINER_OF(t, struct kube_call, timer);
        enum fate fate = c->step.fate;

        if (fate == FATE_OK || fate == FATE_LOST_AFTER || fate == FATE_TWICE)
                carry_out(c);
        if (fate == FATE_LOST_BEFORE || fate == FATE_LOST_AFTER)
                err_set(&c->err, E_LOST, "connection reset");
        else if (fate == FATE_LATE)
                err_set(&c->err, E_TIMEOUT, "timeout");
        else if (fate == FATE_ERROR)
                err_set(&c->err, c->step.code, "told so");
        call_tell(c);
        if (fate == FATE_LATE || fate == FATE_TWICE) {
                timer_init(t, c->kube->loop, on_call_again);
                timer_after(t, 10 * travel(c->kube));
        } else {
                call_destroy(c);
        }
}

static inline struct step draw(struct kube *k)
{
        static const enum err_code codes[] = {E_CONFLICT,  E_BUSY, E_SERVER, E_CONNECT,
                                              E_FORBIDDEN, E_AUTH, E_FENCED};
        struct step s = {0};

        if (!k->faults || rng_below(k->chaos, 3))
                return s;
        s.fate = (enum fate)rng_below(k->chaos, FATES);
        s.code = codes[rng_below(k->chaos, ARRAY_LEN(codes))];
        return s;
}

struct kube_call *kube_send(struct kube *k, const struct kube_request *q, kube_done done, void *arg)
{
        struct kube_call *c = xcalloc(1, sizeof(*c));
        int which = streq(q->name, k->maps[1].name);

        assert_string_equal(q->ns, "ns");
        assert_ptr_equal(q->type, &KUBE_CONFIGMAP);
        assert_true(which || streq(q->name, k->maps[0].name));
        assert_true(q->verb == KUBE_GET || q->verb == KUBE_PATCH_JSON);
        c->kube = k;
        c->verb = q->verb;
        c->map = &k->maps[which];
        c->body = q->body.p ? xstrndup(q->body.p, q->body.n) : NULL;
        c->done = done;
        c->arg = arg;
        c->step = k->chaos ? draw(k) : k->at_plan < k->n_plan ? k->plan[k->at_plan++] : k->otherwise;
        list_init(&c->node);
        list_append(&k->calls, &c->node);
        buf_addc(&k->log, which ? q->verb == KUBE_GET ? 'g' : 'p' : q->verb == KUBE_GET ? 'G' : 'P');
        k->open++;
        timer_init(&c->timer, k->loop, on_call_timer);
        timer_after(&c->timer, c->step.fate == FATE_LATE ? q->timeout : travel(k));
        return c;
}

/* What was sent may arrive all the same. */
void kube_cancel(struct kube_call *c)
{
        assert_false(c->canceled || c->told);
        c->canceled = true;
        c->kube->open--;
}

struct loop *kube_loop(struct kube *k)
{
        return k->loop;
}

/* ---- life */

static inline void maps_init(struct kube *k)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        k->maps[0] = (struct map_object){.name = "status", .version = 1};
        k->maps[1] = (struct map_object){.name = "data", .version = 1};
        k->maps[0].text = xstrdup(
                json_print(&a, json_build(&a, "{'metadata': {'resourceVersion': '1'}, 'data': %p}",
                                          (void *)run_fence_data(&a, 1))));
        k->maps[1].text = xstrdup(
                "{\"metadata\": {\"resourceVersion\": \"1\"}, \"data\": {\"attempt\": \"1\", "
                "\"podUID\": \"\"}}");
        k->fence = (struct run_fence){.attempt = 1};
}

static inline struct kube *kube_rig_new(struct loop *loop)
{
        struct kube *k = xcalloc(1, sizeof(*k));

        k->loop = loop;
        k->limit = 1 << 20;
        k->log = (struct buf)BUF_INIT(1 << 20);
        list_init(&k->calls);
        maps_init(k);
        return k;
}

static inline void kube_rig_free(struct kube *k)
{
        assert_int_equal(k->open, 0); /* who is freed has taken back its calls */
        list_foreach_safe (node, &k->calls)
                call_destroy(CONTAINER_OF(node, struct kube_call, node));
        free(k->maps[0].text);
        free(k->maps[1].text);
        buf_done(&k->log);
        free(k);
}

static inline void plan_next(struct kube *k, enum fate fate, enum err_code code)
{
        assert_true(k->n_plan < ARRAY_LEN(k->plan));
        k->plan[k->n_plan++] = (struct step){fate, code};
}

/* The requests since the last time, a letter each; compare at once. */
static inline const char *requests(struct kube *k)
{
        static char text[256];

        snprintf(text, sizeof(text), "%.*s", STR_ARG(buf_str(&k->log)));
        buf_clear(&k->log);
        return text;
}

/* ---- pods */

/*
 * To close an inotify descriptor takes the kernel 16 ms, and there are thousands of relays: each pod keeps one and gives
 * its relays copies.
 */
static int next_inotify = -1;
static bool no_inotify; /* the node's are used up */

int inotify_init1(int flags)
{
        char events[4096];

        if (no_inotify) {
                errno = EMFILE;
                return -1;
        }
        assert_true(next_inotify >= 0);
        while (read(next_inotify, events, sizeof(events)) > 0)
                continue;
        return fcntl(next_inotify, F_DUPFD_CLOEXEC, 3);
}

struct pod {
        const char *uid;
        const char *files; /* that its relay is told to keep; NULL: none */
        int inotify;
        char home[UNIT_DIR_LEN];
        char dir[UNIT_DIR_LEN + 8], ctl[UNIT_DIR_LEN + 8];
        int alive, started; /* held by `run`; -1: it does not live */
        unsigned sequence;
        char result[64]; /* that the workload wrote last */
        struct relay *relay;
        int exit_status; /* of the relay; -1: it has not ended */
};

static inline void pod_write_at(const char *dir, const char *name, struct str text)
{
        char path[768], tmp[780];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        snprintf(tmp, sizeof(tmp), "%s.tmp", path);
        fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, NULL), 0);
        fd_close(fd);
        assert_int_equal(rename(tmp, path), 0);
}

static inline void pod_write(struct pod *p, const char *name, const char *text)
{
        pod_write_at(p->dir, name, str_of(text));
}

/* In place, as the short design does: a reader may see the half of it. */
static inline void pod_scribble(struct pod *p, const char *text)
{
        char path[512];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", p->dir, RUN_STATUS_FILE);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, str_of(text), NULL), 0);
        fd_close(fd);
}

static inline const char *status_text(struct pod *p, const char *phase)
{
        static char text[256];

        p->sequence++;
        snprintf(text, sizeof(text), "{\"phase\": \"%s\", \"message\": \"%s %u\", \"sequence\": %u}", phase,
                 p->uid, p->sequence, p->sequence);
        return text;
}

/* Reports; the message is "UID N". */
static inline void pod_report(struct pod *p, const char *phase)
{
        pod_write(p, RUN_STATUS_FILE, status_text(p, phase));
}

/* As `run` does. */
static inline void pod_start(struct pod *p)
{
        char path[768], tmp[780];

        snprintf(path, sizeof(path), "%s/%s", p->ctl, RUN_ALIVE_FILE);
        p->alive = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        snprintf(path, sizeof(path), "%s/%s", p->ctl, RUN_STARTED_FILE);
        snprintf(tmp, sizeof(tmp), "%s.tmp", path);
        p->started = open(tmp, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        assert_true(p->alive >= 0 && p->started >= 0);
        assert_int_equal(flock(p->started, LOCK_EX | LOCK_NB), 0);
        assert_int_equal(rename(tmp, path), 0);
}

/* `run` is killed: it lets go of one thing after the other. */
static inline void pod_kill(struct pod *p)
{
        fd_close(TAKE_FD(p->alive));
        fd_close(TAKE_FD(p->started));
}

static inline void pod_end(struct pod *p, const char *exit)
{
        pod_write_at(p->ctl, RUN_EXIT_FILE, str_of(exit));
        pod_kill(p);
}

static inline void pod_clean(struct pod *p)
{
        static const char *const names[] = {RUN_STATUS_FILE,  RUN_RESULT_FILE, RUN_CHECKPOINT_FILE,
                                            RUN_STARTED_FILE, RUN_EXIT_FILE,   RUN_CLAIM_FILE};
        char path[512];

        pod_kill(p);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                snprintf(path, sizeof(path), "%s/%s", i < 3 ? p->dir : p->ctl, names[i]);
                unlink(path);
        }
        p->sequence = 0;
        p->result[0] = '\0';
        p->exit_status = -1;
}

static inline void pod_init(struct pod *p, const char *uid)
{
        char path[512];

        *p = (struct pod){.uid = uid, .alive = -1, .started = -1, .exit_status = -1};
        p->inotify = (int)syscall(SYS_inotify_init1, IN_NONBLOCK | IN_CLOEXEC);
        assert_true(p->inotify >= 0);
        unit_dir(p->home);
        snprintf(p->dir, sizeof(p->dir), "%s/run", p->home);
        snprintf(p->ctl, sizeof(p->ctl), "%s/ctl", p->home);
        assert_int_equal(mkdir(p->dir, 0755), 0);
        assert_int_equal(mkdir(p->ctl, 0755), 0);
        snprintf(path, sizeof(path), "%s/%s", p->ctl, RUN_ALIVE_FILE);
        assert_int_equal(mkfifo(path, 0644), 0);
}

/* ---- relays */

static inline void relay_ended(void *arg, int exit_status)
{
        struct pod *p = arg;

        assert_int_equal(p->exit_status, -1); /* once */
        p->exit_status = exit_status;
}

/* RELAY_LOG=1 shows what relays say. */
static inline const struct log *rig_log(struct kube *k)
{
        static struct log log;

        log_init(&log, STDERR_FILENO, LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT, loop_clock(k->loop));
        return getenv("RELAY_LOG") ? &log : NULL;
}

static inline void pod_relay(struct pod *p, struct kube *k)
{
        struct err err = ERR_INIT;

        assert_null(p->relay);
        next_inotify = p->inotify;
        p->relay = relay_new(&(struct relay_config){.loop = k->loop,
                                                    .kube = k,
                                                    .ns = "ns",
                                                    .status_map = "status",
                                                    .data_map = "data",
                                                    .dir = p->dir,
                                                    .ctl = p->ctl,
                                                    .attempt = 1,
                                                    .pod_uid = p->uid,
                                                    .spec_hash = "hash",
                                                    .files = p->files,
                                                    .log = rig_log(k),
                                                    .on_end = relay_ended,
                                                    .arg = p},
                             &err);
        assert_non_null(p->relay);
}

/* SIGKILL. */
static inline void pod_relay_kill(struct pod *p)
{
        relay_free(TAKE_PTR(p->relay));
}

/* ---- time */

static inline void rig_stop(struct timer *t)
{
        loop_stop(t->loop, 0);
}

/* Lets TIME pass on the manual clock. */
static inline void pass(struct loop *loop, usec_t time)
{
        struct timer end;

        timer_init(&end, loop, rig_stop);
        timer_after(&end, time);
        loop_run(loop);
        timer_cancel(&end);
}

static inline struct loop *rig_loop(struct clock *clock)
{
        struct loop *loop;

        *clock = (struct clock){.manual = true, .boot = 1000 * USEC_PER_SEC, .wall = 1794779028123456};
        loop = loop_new(clock, NULL, NULL);
        assert_non_null(loop);
        rng_seed(loop_rng(loop), 7);
        return loop;
}

/* ---- one pod, one relay */

struct rig {
        struct clock clock;
        struct loop *loop;
        struct kube *kube;
        struct pod pod;
};

_unused_ static int set_up(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->loop = rig_loop(&r->clock);
        r->kube = kube_rig_new(r->loop);
        pod_init(&r->pod, "pod-a");
        *state = r;
        return 0;
}

_unused_ static int tear_down(void **state)
{
        struct rig *r = *state;

        pod_relay_kill(&r->pod);
        pod_kill(&r->pod);
        fd_close(r->pod.inotify);
        kube_rig_free(r->kube);
        loop_free(r->loop);
        free(r);
        return 0;
}

_unused_ static void soon(struct rig *r)
{
        pass(r->loop, 20 * USEC_PER_MS);
}

/* A relay that has claimed its run, whose workload runs. */
_unused_ static void begin(struct rig *r)
{
        pod_start(&r->pod);
        pod_relay(&r->pod, r->kube);
        soon(r);
        assert_string_equal(requests(r->kube), "GPgp");
        assert_true(status_is(r->kube, RUN_KEY_STATE, "Running"));
}

/* The status ConfigMap as another pod has left it. */
_unused_ static void other_pod_writes(struct kube *k, uint64_t attempt, const char *pod, const char *state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *object = map_json(k, 0, &a), *data = run_fence_data(&a, attempt);

        json_set(&a, data, RUN_KEY_POD, json_string(&a, pod));
        json_set(&a, data, RUN_KEY_SEQUENCE, json_string(&a, "7"));
        json_set(&a, data, RUN_KEY_STATE, json_string(&a, state));
        if (!streq(state, "Pending") && !streq(state, "Running"))
                json_set(&a, data, RUN_KEY_EXIT, json_string(&a, "{\"code\": 0}"));
        json_set(&a, object, "data", data);
        put_object(k, &k->maps[0], object, &a);
}

_unused_ static void assert_status(struct rig *r, const char *key, const char *value)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(map_value(r->kube, 0, key, &a), value);
}

_unused_ static void assert_problem(struct rig *r, const char *part)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *problem = map_value(r->kube, 0, RUN_KEY_PROBLEM, &a);

        assert_non_null(problem);
        if (!strstr(problem, part))
                fail_msg("'%s' is not in '%s'", part, problem);
}

#define RELAY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
