/*
 * A request with a schedule, its caches, its operator and its clock.
 */
#include "model/schedule.h"

#include "model/pool.h"

#include "kinds/algorithm/internal.h"
#include "json/schema.h"

#define NOON ((usec_t)1794744000 * USEC_PER_SEC) /* 2026-11-15T12:00:00Z, when the request is made */
#define STEP (300 * USEC_PER_SEC)

/* Steps of the clock count from CLOCK, so that none is below 0. */
enum { CLOCK = 64, DUE_EVERY = 2, HOUR = 12, LIMIT = 1, CHILDREN_MAX = 6, OPS_MAX = 8 };
enum { OP_DELETE, OP_CREATE, OP_STATUS };
enum { AWAITS_CHILDREN = 1, AWAITS_REQUEST = 2 };

struct child {
        uint8_t uid /* 0: none */, due, made, ended;
};

/* What the server has, or a cache. */
struct sight {
        struct child children[CHILDREN_MAX];
        uint16_t status; /* number of its text */
        uint8_t suspended, generation;
        uint8_t unused[4];
};

struct state {
        struct sight server, cache;
        uint32_t task; /* number of the decision that is carried out, and 1; 0: none */
        uint8_t step, awaits, dirty;
        uint8_t passed, clock; /* steps of time, and what the clock shows */
        uint8_t wake;          /* when the operator wants to be called, in steps of time; 0: not */
        uint8_t crashes, jumps, edits, made;
        uint8_t last, floor; /* what was made last; nothing is made that was due up to then */
        uint64_t dues;       /* bits: what was made */
};

_Static_assert(sizeof(struct state) % 8 == 0 && sizeof(struct sight) % 8 == 0, "no padding");

struct op {
        uint8_t kind, of /* uid, or when it was due */;
        uint16_t status;
};

struct verdict {
        struct op ops[OPS_MAX];
        size_t n_ops;
        uint8_t wait; /* steps; 0: for ever */
        const char *wrong;
};

struct view_key {
        struct sight seen;
        uint8_t clock, unused[7];
};

struct origin {
        uint32_t from;
        uint8_t action, arg;
};

struct world {
        const struct schedule_scenario *scenario;
        struct algorithm_settings settings;
        struct schema *schema;
        struct pool states, views;
        VEC(struct origin) origins;
        VEC(struct verdict) verdicts;
        VEC(const char *) statuses;
        struct arena texts, scratch;
        const char *wrong;
};

static void is_wrong(struct world *w, const char *what)
{
        if (!w->wrong)
                w->wrong = what;
}

/* ---- what is decided */

static usec_t time_of(uint8_t clock)
{
        return NOON + (usec_t)clock * STEP - CLOCK * STEP;
}

static struct json *time_json(struct arena *a, uint8_t clock)
{
        char text[TIME_TEXT_MAX];

        return json_string(a, time_format(time_of(clock), text));
}

static uint8_t clock_of(const struct json *text)
{
        usec_t t;

        return json_text(text).p && time_parse(json_text(text), &t)
                       ? (uint8_t)((t + CLOCK * STEP - NOON) / STEP)
                       : 0;
}

static const char *name_of(struct arena *a, uint8_t due)
{
        return arena_printf(a, "r-%lld", (long long)(time_of(due) / USEC_PER_SEC / 60));
}

static uint8_t due_of(const char *name)
{
        uint64_t minute = 0;

        if (!name || strncmp(name, "r-", 2) != 0 || !str_to_u64(str_of(name + 2), &minute))
                return 0;
        return (uint8_t)((minute * 60 * USEC_PER_SEC + CLOCK * STEP - NOON) / STEP);
}

static struct json *show_request(struct world *w, const struct sight *s)
{
        struct arena *a = &w->scratch;
        const char *status = w->statuses.v[s->status];
        struct json *request = json_build(
                a,
                "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmProfiling', 'metadata': "
                "{'namespace': 'ns', 'name': 'r', 'uid': 'request-1', 'generation': %d, "
                "'creationTimestamp': %p}, 'spec': {'algorithmName': 'quick_sort', 'inputSize': 10, "
                "'schedule': {'cron': '*/10 * * * *', 'concurrencyPolicy': %s, 'historyLimit': %d, "
                "'suspend': %p}}}",
                s->generation, (void *)time_json(a, CLOCK), w->scenario->policy,
                w->scenario->bug == SCHEDULE_KEEPS_ALL ? 100 : LIMIT, (void *)json_truth(a, s->suspended));

        json_set(a, request, "status", status ? json_parse(a, str_of(status), NULL, NULL) : NULL);
        if (w->scenario->bug == SCHEDULE_FORGETS && status)
                json_remove(json_at(request, "status"), "lastScheduleTime");
        return request;
}

static size_t show_children(struct world *w, const struct sight *s, struct object *ret)
{
        struct arena *a = &w->scratch;
        size_t n = 0;

        for (; n < CHILDREN_MAX && s->children[n].uid; n++) {
                const struct child *c = &s->children[n];
                struct json *o = json_build(
                        a,
                        "{'metadata': {'namespace': 'ns', 'name': %s, 'uid': 'child-%d', "
                        "'creationTimestamp': %p}, 'status': {'phase': %s, 'completionTime': %p}}",
                        name_of(a, c->due), c->uid, (void *)time_json(a, c->made),
                        c->ended ? "Completed" : "Running",
                        (void *)(c->ended ? time_json(a, c->made) : NULL));

                ret[n] = (struct object){&ALGORITHMPROFILING, o, meta_str(o, "name"), meta_str(o, "uid")};
        }
        return n;
}

static uint16_t status_number(struct world *w, struct json *status)
{
        const char *text;

        json_foreach (c, json_at(status, "conditions"))
                json_set(&w->scratch, c, "lastTransitionTime",
                         json_string(&w->scratch, "2026-11-15T11:00:00Z"));
        text = json_print(&w->scratch, status);
        for (size_t i = 1; i < w->statuses.n; i++)
                if (streq(w->statuses.v[i], text))
                        return (uint16_t)i;
        *vec_push(&w->statuses) = arena_strdup(&w->texts, text);
        return (uint16_t)(w->statuses.n - 1);
}

static const char *judge_form(struct world *w, struct json *request, const struct json *status)
{
        struct schema_report report = {0};

        json_set(&w->scratch, request, "status", json_copy(&w->scratch, status));
        if (!schema_validate(w->schema, request, &w->scratch, &report))
                return arena_printf(&w->texts, "%s: %s", report.causes[0].field, report.causes[0].message);
        return NULL;
}

static void add_op(struct verdict *v, struct op op)
{
        if (v->n_ops == OPS_MAX)
                v->wrong = "more writes than anybody needs";
        else
                v->ops[v->n_ops++] = op;
}

static uint8_t uid_of(const struct object *o)
{
        uint64_t uid = 0;

        (void)str_to_u64(str_of(o->uid + strlen("child-")), &uid);
        return (uint8_t)uid;
}

static void take_down(struct world *w, const struct view_key *key, const struct view *v, struct decision *d,
                      struct verdict *ret)
{
        uint16_t status = status_number(w, d->status);
        bool first = w->scenario->bug == SCHEDULE_STATUS_FIRST;

        if (first && status != key->seen.status)
                add_op(ret, (struct op){.kind = OP_STATUS, .status = status});
        for (size_t i = 0; i < d->absent.n; i++)
                add_op(ret, (struct op){.kind = OP_DELETE, .of = uid_of(d->absent.v[i].object)});
        for (size_t i = 0; i < d->exist.n; i++) {
                const char *name = meta_str(d->exist.v[i].json, "name");

                if (json_at(json_at(d->exist.v[i].json, "spec"), "schedule"))
                        ret->wrong = "a request is made that has a schedule";
                if (!view_child(v, &ALGORITHMPROFILING, name))
                        add_op(ret, (struct op){.kind = OP_CREATE, .of = due_of(name)});
        }
        if (d->exist.n > 1)
                ret->wrong = "two are made at once";
        if (!first && status != key->seen.status)
                add_op(ret, (struct op){.kind = OP_STATUS, .status = status});
        if (d->again_at && d->again_at <= v->now)
                ret->wrong = "it wants to be called in the past";
        else if (d->again_at)
                ret->wait = (uint8_t)MIN((d->again_at - v->now + STEP - 1) / STEP, (usec_t)200);
}

static void evaluate(struct world *w, const struct view_key *key, struct verdict *ret)
{
        _cleanup_(decision_done) struct decision d = {0};
        struct object children[CHILDREN_MAX];
        struct view v = {.type = &ALGORITHMPROFILING,
                         .children = children,
                         .now = time_of(key->clock),
                         .settings = &w->settings,
                         .arena = &w->scratch};

        arena_reset(&w->scratch, SIZE_MAX);
        v.request = show_request(w, &key->seen);
        v.n_children = show_children(w, &key->seen, children);
        if (w->scenario->bug == SCHEDULE_CATCHES_UP && key->seen.suspended)
                return;
        algorithm_plan(&v, &d);
        algorithm_settle(&v, &d);
        if (!d.status || d.n_wants)
                ret->wrong = "it has nothing to say";
        else
                ret->wrong = judge_form(w, json_copy(&w->scratch, v.request), d.status);
        if (!ret->wrong)
                take_down(w, key, &v, &d, ret);
}

static uint32_t decide(struct world *w, const struct state *s)
{
        const struct view_key key = {.seen = s->cache, .clock = s->clock};
        bool new;
        uint32_t i = pool_intern(&w->views, &key, &new);

        if (new) {
                *vec_push(&w->verdicts) = (struct verdict){0};
                evaluate(w, &key, &w->verdicts.v[i]);
        }
        return i;
}

/* ---- what can happen */

static bool act_decide(struct world *w, struct state *s, unsigned arg)
{
        uint32_t i;

        if (!s->dirty || s->task || s->awaits)
                return false;
        i = decide(w, s);
        if (w->verdicts.v[i].wrong)
                is_wrong(w, w->verdicts.v[i].wrong);
        s->dirty = 0;
        s->wake = w->verdicts.v[i].wait ? (uint8_t)MIN(s->passed + w->verdicts.v[i].wait, 250) : 0;
        s->task = w->verdicts.v[i].n_ops ? i + 1 : 0;
        s->step = 0;
        return true;
}

static size_t n_children(const struct sight *s)
{
        size_t n = 0;

        while (n < CHILDREN_MAX && s->children[n].uid)
                n++;
        return n;
}

static bool any_active(const struct sight *s)
{
        for (size_t i = 0; i < n_children(s); i++)
                if (!s->children[i].ended)
                        return true;
        return false;
}

static uint8_t last_due(uint8_t clock)
{
        return (uint8_t)(clock / DUE_EVERY * DUE_EVERY);
}

/* lastScheduleTime */
static uint8_t told(struct world *w, const struct state *s)
{
        const char *text = w->statuses.v[s->server.status];

        arena_reset(&w->scratch, SIZE_MAX);
        return text ? clock_of(json_at(json_parse(&w->scratch, str_of(text), NULL, NULL), "lastScheduleTime"))
                    : 0;
}

static void judge_made(struct world *w, const struct state *s, uint8_t due)
{
        uint64_t bit = (uint64_t)1 << (due / DUE_EVERY % 64);

        if (s->dues & bit)
                is_wrong(w, "two are made for one moment");
        if (due <= told(w, s))
                is_wrong(w, "one is made that was due before the last");
        if (due <= s->floor)
                is_wrong(w, "one is made that was due before the schedule counted");
        if (!streq(w->scenario->policy, "Allow") && any_active(&s->server))
                is_wrong(w, "one is made beside another");
}

static void create(struct world *w, struct state *s, uint8_t due)
{
        size_t n = n_children(&s->server);

        s->awaits |= AWAITS_CHILDREN;
        for (size_t i = 0; i < n; i++)
                if (s->server.children[i].due == due)
                        return; /* it is there already, and ours */
        judge_made(w, s, due);
        if (n == CHILDREN_MAX) {
                is_wrong(w, "one after another is made");
                return;
        }
        s->server.children[n] = (struct child){.uid = ++s->made, .due = due, .made = s->clock};
        if (due > s->clock + HOUR)
                return; /* decided on before the clock was put right */
        s->last = due;
        s->dues |= (uint64_t)1 << (due / DUE_EVERY % 64);
}

static void remove_child(struct world *w, struct state *s, uint8_t uid)
{
        size_t n = n_children(&s->server), kept = 0, newer = 0, at = n;

        for (size_t i = 0; i < n; i++)
                if (s->server.children[i].uid == uid)
                        at = i;
        s->awaits |= AWAITS_CHILDREN;
        if (at == n)
                return;
        for (size_t i = 0; i < n; i++)
                newer += s->server.children[i].ended && s->server.children[i].uid != uid;
        /* One that is replaced may have ended since that was decided. */
        if (!streq(w->scenario->policy, "Replace") && (!s->server.children[at].ended || newer < LIMIT))
                is_wrong(w, "one is deleted that should stay");
        for (size_t i = 0; i < n; i++)
                if (i != at)
                        s->server.children[kept++] = s->server.children[i];
        s->server.children[kept] = (struct child){0};
}

static bool act_write(struct world *w, struct state *s, unsigned arg)
{
        const struct verdict *v = s->task ? &w->verdicts.v[s->task - 1] : NULL;
        const struct op *op = v ? &v->ops[s->step] : NULL;
        bool conflict = false;

        if (!op)
                return false;
        if (op->kind == OP_DELETE)
                remove_child(w, s, op->of);
        else if (op->kind == OP_CREATE)
                create(w, s, op->of);
        else
                conflict = s->server.generation != s->cache.generation || s->server.status != s->cache.status;
        if (op->kind == OP_STATUS && !conflict) {
                s->server.status = op->status;
                s->awaits |= AWAITS_REQUEST;
        }
        s->dirty |= conflict;
        if (conflict || ++s->step == v->n_ops)
                s->task = s->step = 0;
        return true;
}

/* The cache has all of it, or of a kind of objects alone. */
static bool act_show(struct world *w, struct state *s, unsigned children)
{
        struct sight before = s->cache;

        if (children) {
                memcpy(s->cache.children, s->server.children, sizeof(s->cache.children));
                s->awaits &= (uint8_t)~AWAITS_CHILDREN;
        } else {
                s->cache.status = s->server.status;
                s->cache.suspended = s->server.suspended;
                s->cache.generation = s->server.generation;
                s->awaits &= (uint8_t)~AWAITS_REQUEST;
        }
        if (memcmp(&before, &s->cache, sizeof(before)) == 0)
                return false;
        s->dirty = 1;
        return true;
}

static bool act_pass(struct world *w, struct state *s, unsigned arg)
{
        if (s->passed == w->scenario->until)
                return false;
        s->passed++;
        s->clock++;
        if (s->wake && s->passed >= s->wake) {
                s->wake = 0;
                s->dirty = 1;
        }
        return true;
}

/* A clock that is put back by more than an hour shows those moments again. */
static bool act_jump(struct world *w, struct state *s, unsigned arg)
{
        static const int8_t by[] = {5, -5, 24, -24};
        int clock = s->clock + by[arg];

        if (!s->jumps || clock < 0 || clock > 120)
                return false;
        s->jumps--;
        s->clock = (uint8_t)clock;
        if (by[arg] > 0 || MAX(s->last, CLOCK) <= clock + HOUR)
                return true;
        s->dues = 0;
        s->last = 0;
        s->floor = (uint8_t)MIN(s->floor, s->clock);
        return true;
}

static bool act_end(struct world *w, struct state *s, unsigned child)
{
        if (!s->server.children[child].uid || s->server.children[child].ended)
                return false;
        s->server.children[child].ended = 1;
        return true;
}

static bool act_crash(struct world *w, struct state *s, unsigned arg)
{
        if (!s->crashes)
                return false;
        s->crashes--;
        s->cache = s->server;
        s->task = s->step = s->awaits = s->wake = 0;
        s->dirty = 1;
        return true;
}

/* What was due before it goes on is left out, where it is known that it was suspended. */
static bool act_suspend(struct world *w, struct state *s, unsigned arg)
{
        const struct json *status;

        if (!s->edits)
                return false;
        s->edits--;
        arena_reset(&w->scratch, SIZE_MAX);
        status = s->server.status
                         ? json_parse(&w->scratch, str_of(w->statuses.v[s->server.status]), NULL, NULL)
                         : NULL;
        if (s->server.suspended && status &&
            (!json_at(status, "schedule") || w->scenario->bug == SCHEDULE_CATCHES_UP))
                s->floor = (uint8_t)MAX(s->floor, s->clock);
        s->server.suspended = !s->server.suspended;
        s->server.generation++;
        return true;
}

static const struct {
        const char *what;
        unsigned n_args;
        bool (*act)(struct world *w, struct state *s, unsigned arg);
} actions[] = {
        {"the operator decides", 1, act_decide},
        {"the operator writes", 1, act_write},
        {"the cache shows (0: the request, 1: what it has made)", 2, act_show},
        {"five minutes pass", 1, act_pass},
        {"one ends", CHILDREN_MAX, act_end},
        {"the operator dies and starts again", 1, act_crash},
        {"the clock is put (0, 2: forward, 1, 3: back)", 4, act_jump},
        {"somebody suspends it, or lets it go on", 1, act_suspend},
};

/* ---- the end */

/* Nothing is under way, and time is over. */
static const char *judge_end(struct world *w, const struct state *s)
{
        size_t ended = 0;

        for (size_t i = 0; i < n_children(&s->server); i++)
                ended += s->server.children[i].ended;
        if (ended > LIMIT)
                return "more are kept than there should be";
        if (s->server.suspended || s->jumps != w->scenario->jumps || s->edits != w->scenario->edits)
                return NULL;
        if (last_due(s->clock) > CLOCK && told(w, s) != last_due(s->clock))
                return "what was due last is not told";
        if (last_due(s->clock) > CLOCK && streq(w->scenario->policy, "Allow") &&
            s->last != last_due(s->clock))
                return "what was due last was not made";
        return NULL;
}

static bool is_quiet(const struct world *w, const struct state *s)
{
        return !s->task && !s->dirty && !s->awaits && s->passed == w->scenario->until &&
               memcmp(&s->cache, &s->server, sizeof(s->cache)) == 0;
}

static void expand(struct world *w, uint32_t number)
{
        const struct state s = *(const struct state *)pool_at(&w->states, number);
        bool new;

        for (size_t i = 0; i < ARRAY_LEN(actions) && !w->wrong; i++)
                for (unsigned arg = 0; arg < actions[i].n_args && !w->wrong; arg++) {
                        struct state next = s;

                        if (!actions[i].act(w, &next, arg))
                                continue;
                        pool_intern(&w->states, &next, &new);
                        if (new || w->wrong)
                                *vec_push(&w->origins) = (struct origin){number, (uint8_t)i, (uint8_t)arg};
                }
        if (!w->wrong && is_quiet(w, &s)) {
                w->wrong = judge_end(w, &s);
                if (w->wrong)
                        *vec_push(&w->origins) = (struct origin){number, UINT8_MAX, 0};
        }
}

static char *story(const struct world *w)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);
        struct origin way[512], step = w->origins.v[w->origins.n - 1];
        size_t n = 0;

        for (;; step = w->origins.v[step.from]) {
                way[n++] = step;
                if (!step.from || n == ARRAY_LEN(way))
                        break;
        }
        buf_printf(&out, "%s: %s\n", w->scenario->name, w->wrong);
        while (n--) {
                const struct state *s = pool_at(&w->states, way[n].from);

                if (way[n].action < ARRAY_LEN(actions))
                        buf_printf(&out, "  clock %+d: %s %u\n", 5 * (s->clock - CLOCK),
                                   actions[way[n].action].what, way[n].arg);
        }
        return xstrdup(buf_cstr(&out));
}

static struct schema *schema_of_request(struct err *err)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;

        if (doc_read_yaml(&doc, "deploy/crds/algorithmprofilings.yaml", 1 << 20, err) < 0)
                return NULL;
        return schema_new(
                json_path(json_first(json_path(doc.root, "spec.versions")), "schema.openAPIV3Schema"), err);
}

size_t schedule_explore(const struct schedule_scenario *scenario, char **ret_wrong)
{
        struct world w = {.scenario = scenario,
                          .settings = {.pod_image = "sonde-pod:1", .ml_image = "sonde-ml:1"}};
        struct state first = {.dirty = 1,
                              .clock = CLOCK,
                              .floor = CLOCK,
                              .crashes = scenario->crashes,
                              .jumps = scenario->jumps,
                              .edits = scenario->edits};
        struct err err = ERR_INIT;
        size_t n;

        w.settings.zones = zones_new(NULL);
        w.schema = schema_of_request(&err);
        if (!w.schema)
                w.wrong = err.text;
        pool_init(&w.states, sizeof(struct state));
        pool_init(&w.views, sizeof(struct view_key));
        *vec_push(&w.statuses) = NULL;
        *vec_push(&w.origins) = (struct origin){0};
        first.server.generation = first.cache.generation = 1;
        pool_intern(&w.states, &first, NULL);
        for (uint32_t i = 0; i < w.states.n && !w.wrong; i++)
                expand(&w, i);
        n = w.states.n;
        *ret_wrong = w.wrong ? story(&w) : NULL;
        pool_done(&w.states);
        pool_done(&w.views);
        vec_done(&w.origins);
        vec_done(&w.verdicts);
        vec_done(&w.statuses);
        schema_free(w.schema);
        zones_free(w.settings.zones);
        arena_done(&w.texts);
        arena_done(&w.scratch);
        return n;
}
