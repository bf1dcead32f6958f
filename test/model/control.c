/*
 * The operator: a cache for each part, one decision at a time, its writes one by one (as src/operator/carry.c and child.c
 * have it), and its death.
 */
#include "model/sabotage.h"
#include "model/world.h"

#include "operator/runtime.h"

enum { OPS_MAX = 16, ROUNDS_MAX = 5, CHILDREN_MAX = JOBS_MAX + PODS_MAX + 4, AGAIN_MAX = 60000 };
enum { ACCESS_PART = PARTS }; /* beside the parts that are watched */

enum op_kind { OP_DELETE, OP_CREATE, OP_STATUS };
enum op_type { OF_JOB, OF_STATUS_MAP, OF_DATA_MAP, OF_ACCESS, OF_DEPLOYMENT };

struct op {
        uint8_t kind, type, which /* of the access */, name, uid, attempt, pod, foreground;
        uint16_t status;
};

/* What was decided on a view. */
struct verdict {
        unsigned more; /* bits: parts of the server that must be looked at first */
        struct op ops[OPS_MAX];
        size_t n_ops;
        uint16_t again;
        uint16_t request;                 /* number of the part that it is about */
        uint16_t stalled;                 /* the status that tells of a name conflict */
        uint8_t owner;                    /* uid of the request */
        const char *wrong, *wrong_status; /* with the decision itself; with writing its status */
};

/* What a decision depends on. */
struct view_key {
        uint16_t seen[PARTS], server[PARTS] /* where it was looked at; else 0 */, now;
        uint8_t mask, access[ACCESS_MAX], unused[6];
};

_Static_assert(sizeof(struct view_key) % 8 == 0, "no padding");

/* ---- caches */

static bool job_is_seen(const struct model *m, const struct state *s, uint8_t uid)
{
        const struct jobs_part *jobs = &SEEN(m, s, jobs_part, JOBS);
        const struct request_part *r = &SEEN(m, s, request_part, REQUEST);
        const struct job *j = job_by_uid(jobs, uid);

        return j && j->owner == r->uid;
}

/* A pod's change reaches its request through the Job in the cache, or not at all. */
static bool pods_concern(const struct model *m, const struct state *s)
{
        struct pods_part was = SEEN(m, s, pods_part, PODS), is = PART(m, s, pods_part, PODS);

        for (uint8_t uid = 1; uid <= is.made; uid++) {
                const struct pod *x = pod_by_uid(&was, uid), *y = pod_by_uid(&is, uid);

                if (!x && !y)
                        continue;
                if (x && y && memcmp(x, y, sizeof(*x)) == 0)
                        continue;
                if (job_is_seen(m, s, x ? x->job : y->job))
                        return true;
        }
        return false;
}

void control_deliver(struct model *m, struct state *s, enum part which)
{
        uint8_t uid = SEEN(m, s, request_part, REQUEST).uid;

        if (s->seen[which] == s->part[which])
                return;
        if (which == REQUEST || (which == PODS ? pods_concern(m, s) : uid))
                s->dirty = 1;
        s->seen[which] = s->part[which];
        s->awaits &= (uint8_t) ~(1U << which);
}

/* Where caches are at most one change behind, what they show is chosen when it matters: see act_decide(). */
bool act_deliver(struct model *m, struct state *s, unsigned part)
{
        if (!m->scenario->lagging || s->seen[part] == s->part[part])
                return false;
        control_deliver(m, s, (enum part)part);
        return true;
}

/* ---- a decision */

struct call {
        struct model *m;
        const struct view_key *key;
        struct arena *arena;
        struct view view;
        struct object children[CHILDREN_MAX];
        VEC(struct answer) answers;
        unsigned more;
};

static const void *part_at(const struct call *c, enum part which, uint16_t number)
{
        return pool_at(&c->m->pools[which], number);
}

static void add_child(struct call *c, size_t kind, struct json *j)
{
        const struct child_kind *k = &c->m->controller.children[kind];

        if (k->project)
                k->project(j, c->arena);
        c->children[c->view.n_children++] = (struct object){k->type, j, meta_str(j, "name"),
                                                            meta_str(j, "uid")};
}

static int by_name(const void *x, const void *y)
{
        return strcmp(((const struct object *)x)->name, ((const struct object *)y)->name);
}

static void add_jobs_and_pods(struct call *c, uint8_t owner)
{
        const struct jobs_part *jobs = part_at(c, JOBS, c->key->seen[JOBS]);
        const struct pods_part *pods = part_at(c, PODS, c->key->seen[PODS]);

        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (jobs->v[i].owner == owner)
                        add_child(c, 0, show_job(c->m, c->arena, &jobs->v[i]));
        qsort(c->children, c->view.n_children, sizeof(*c->children), by_name);
        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++) {
                const struct job *j = job_by_uid(jobs, pods->v[i].job);

                if (j && j->owner == owner)
                        add_child(c, 1, show_pod(c->arena, &pods->v[i]));
        }
}

static void gather(struct call *c)
{
        const struct request_part *r = part_at(c, REQUEST, c->key->seen[REQUEST]);
        const struct maps_part *maps = part_at(c, MAPS, c->key->seen[MAPS]);
        const struct deployments_part *d = part_at(c, DEPLOYMENTS, c->key->seen[DEPLOYMENTS]);
        struct json *request = show_request(c->m, c->arena, r);

        c->view = (struct view){.request = request,
                                .type = c->m->controller.type,
                                .children = c->children,
                                .now = NOON + c->key->now * USEC_PER_SEC,
                                .settings = c->m->controller.settings,
                                .arena = c->arena};
        add_jobs_and_pods(c, r->uid);
        if (maps->data.uid && maps->data.owner == r->uid)
                add_child(c, 2, show_data_map(c->arena, &maps->data));
        if (maps->status.uid && maps->status.owner == r->uid)
                add_child(c, 2, show_status_map(c->arena, &maps->status));
        if (d->uid && d->owner == r->uid)
                add_child(c, 3, show_deployment(c->arena, d));
        sabotage_view(c->m, &c->view);
}

/* ---- look-ups, answered from what the server has now */

static int part_of_want(const struct want *want)
{
        if (want->kind == WANT_PODS)
                return PODS;
        if (want->kind != WANT_OBJECT)
                return -1;
        if (want->type == &KUBE_JOB)
                return JOBS;
        if (want->type == &KUBE_CONFIGMAP)
                return MAPS;
        if (want->type == &DGD)
                return DEPLOYMENTS;
        return ACCESS_PART;
}

static const struct json *find_job(struct call *c, const char *name)
{
        const struct jobs_part *jobs = part_at(c, JOBS, c->key->server[JOBS]);

        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (streq(c->m->names[jobs->v[i].name], name))
                        return show_job(c->m, c->arena, &jobs->v[i]);
        return NULL;
}

static const struct json *find_map(struct call *c, const char *name)
{
        const struct maps_part *maps = part_at(c, MAPS, c->key->server[MAPS]);

        if (streq(name, STATUS_MAP) && maps->status.uid)
                return show_status_map(c->arena, &maps->status);
        if (streq(name, DATA_MAP) && maps->data.uid)
                return show_data_map(c->arena, &maps->data);
        return NULL;
}

static const struct json *find_pods(struct call *c, const char *job)
{
        const struct pods_part *pods = part_at(c, PODS, c->key->server[PODS]);
        struct json *items = json_array(c->arena);

        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++)
                if (pods->v[i].job == uid_number(job))
                        json_append(items, show_pod(c->arena, &pods->v[i]));
        return json_build(c->arena, "{'items': %p}", (void *)items);
}

static const struct json *find_access(struct call *c, const struct want *want)
{
        for (size_t i = 0; i < ACCESS_MAX; i++)
                if (want->type == access_types[i] && streq(want->name, ACCESS) && c->key->access[i])
                        return show_access(c->arena, i, c->key->access[i]);
        return NULL;
}

static const struct json *look_up(struct call *c, const struct want *want)
{
        const struct deployments_part *d = part_at(c, DEPLOYMENTS, c->key->server[DEPLOYMENTS]);

        switch (part_of_want(want)) {
        case PODS:
                return find_pods(c, want->uid);
        case JOBS:
                return find_job(c, want->name);
        case MAPS:
                return find_map(c, want->name);
        case DEPLOYMENTS:
                return d->uid && streq(want->name, DEPLOYMENT) ? show_deployment(c->arena, d) : NULL;
        case ACCESS_PART:
                return find_access(c, want);
        default:
                return json_build(c->arena, "{'items': []}"); /* events */
        }
}

static void answer(struct call *c, const struct want *want)
{
        int part = part_of_want(want);
        const struct json *found;
        const struct answer *sabotaged;

        if (part >= 0 && !(c->key->mask & 1U << part)) {
                c->more |= 1U << part;
                return;
        }
        found = look_up(c, want);
        sabotaged = sabotage_answer(c->m, &c->view, want, found);
        *vec_push(&c->answers) = sabotaged ? *sabotaged : (struct answer){.want = *want, .json = found};
}

/* The history knows nothing. */
static const struct answer *recall(void *arg, const struct want *want)
{
        struct call *c = arg;
        struct answer *nothing = arena_new(c->arena, struct answer);

        nothing->want = *want;
        return want->kind == WANT_PRIORS ? nothing : NULL;
}

/* False: more must be looked at. */
static bool decide(struct call *c, struct decision *d)
{
        for (unsigned round = 0; round < ROUNDS_MAX; round++) {
                struct view settled_on;

                decision_done(d);
                c->view.answers = c->answers.v;
                c->view.n_answers = c->answers.n;
                c->view.recall = recall;
                c->view.recall_arg = c;
                c->m->controller.plan(&c->view, d);
                settled_on = c->view;
                sabotage_settle(c->m, &settled_on);
                c->m->controller.settle(&settled_on, d);
                c->m->evaluations++;
                if (!d->n_wants)
                        return true;
                for (size_t i = 0; i < d->n_wants; i++)
                        answer(c, &d->wants[i]);
                if (c->more)
                        return false;
        }
        model_wrong(c->m, "the controller wants more and more look-ups");
        return true;
}

/* ---- from a decision to its writes */

static struct op *add_op(struct verdict *v, struct op op)
{
        if (v->n_ops == OPS_MAX) {
                v->wrong = "more writes than anybody needs";
                return &v->ops[0];
        }
        v->ops[v->n_ops] = op;
        return &v->ops[v->n_ops++];
}

static size_t access_index(const struct kube_type *type)
{
        size_t i = 0;

        while (i < ACCESS_MAX && access_types[i] != type)
                i++;
        return i;
}

/* Which object that is; -1: nothing that there is in this world. */
static int type_of(const struct kube_type *type, const char *name)
{
        if (type == &KUBE_JOB)
                return OF_JOB;
        if (type == &KUBE_CONFIGMAP && streq(name, STATUS_MAP))
                return OF_STATUS_MAP;
        if (type == &KUBE_CONFIGMAP && streq(name, DATA_MAP))
                return OF_DATA_MAP;
        if (type == &DGD && streq(name, DEPLOYMENT))
                return OF_DEPLOYMENT;
        if (access_index(type) < ACCESS_MAX && streq(name, ACCESS))
                return OF_ACCESS;
        return -1;
}

static void add_deletes(struct call *c, const struct decision *d, struct verdict *v)
{
        for (size_t i = 0; i < d->absent.n; i++) {
                const struct must_not_exist *gone = &d->absent.v[i];
                const struct object *o = gone->object;
                int type = type_of(o->type, o->name);

                if (type < 0)
                        v->wrong = "deletes what it did not make";
                else if (!meta_str(o->json, "deletionTimestamp"))
                        add_op(v, (struct op){.kind = OP_DELETE,
                                              .type = (uint8_t)type,
                                              .which = (uint8_t)access_index(o->type),
                                              .name = type == OF_JOB ? name_number(c->m, o->name) : 0,
                                              .uid = uid_number(o->uid),
                                              .foreground = streq(gone->propagation, "Foreground")});
        }
}

/* SONDE_ATTEMPT of the relay. */
static uint8_t attempt_of(const struct json *job)
{
        const struct json *pod = json_at(json_at(json_at(job, "spec"), "template"), "spec");
        const struct json *relay = json_find_named(json_at(pod, "containers"), "relay");
        const char *value = json_str(json_find_named(json_at(relay, "env"), "SONDE_ATTEMPT"), "value");
        uint64_t number = 0;

        return value && str_to_u64(str_of(value), &number) ? (uint8_t)number : 0;
}

static void describe_child(struct call *c, const struct must_exist *e, struct op *op)
{
        const struct json *data = json_at(e->json, "data");
        const struct json *front = json_at(json_at(json_at(e->json, "spec"), "services"), "Frontend");
        uint64_t number = 0;

        if (op->type == OF_JOB) {
                op->name = name_number(c->m, meta_str(e->json, "name"));
                op->attempt = attempt_of(e->json);
        } else if (op->type == OF_STATUS_MAP) {
                if (str_to_u64(json_text(json_at(data, RUN_KEY_ATTEMPT)), &number))
                        op->attempt = (uint8_t)number;
                op->pod = uid_number(json_str(data, RUN_KEY_POD));
        } else if (op->type == OF_DEPLOYMENT) {
                op->pod = uid_number(json_str(front, "componentType"));
        }
}

static void add_creates(struct call *c, const struct decision *d, struct verdict *v)
{
        for (size_t i = 0; i < d->exist.n; i++) {
                const struct must_exist *e = &d->exist.v[i];
                const char *name = meta_str(e->json, "name");
                int type = type_of(e->type, name);
                struct op op = {
                        .kind = OP_CREATE, .type = (uint8_t)type, .which = (uint8_t)access_index(e->type)};

                if (type < 0) {
                        v->wrong = "creates what nobody asked for";
                        continue;
                }
                if (view_child(&c->view, e->type, name)) {
                        if (e->how != EXIST_ONCE)
                                v->wrong = "changes what it created";
                        continue;
                }
                describe_child(c, e, &op);
                add_op(v, op);
        }
}

/* Times do not matter from here on. */
static void normalise(struct arena *a, struct json *status)
{
        json_foreach (condition, json_at(status, "conditions"))
                json_set(a, condition, "lastTransitionTime", json_string(a, "2026-11-15T11:00:00Z"));
}

/* src/operator's own words for what it runs into. */
static struct json *stalled_status(struct call *c, struct json *status, bool stalled)
{
        struct task t = {.view = c->view,
                         .stalled_reason = stalled ? "NameConflict" : NULL,
                         .stalled_message = "an object exists and does not belong to this request"};
        struct json *told = stalled ? stall_tell(&t, status ? json_copy(c->arena, status) : NULL)
                                    : stall_clear(&t);

        told = told ? json_copy(c->arena, told) : NULL;
        arena_done(&t.arena);
        return told;
}

static void add_status(struct call *c, const struct decision *d, struct verdict *v)
{
        struct json *status = d->status, *told = stalled_status(c, status, true);
        const struct json *before = json_at(c->view.request, "status");
        const char *bad;

        normalise(c->arena, told);
        v->stalled = status_number(c->m, told);
        if (!status)
                status = stalled_status(c, NULL, false);
        if (!status || json_equal(status, before))
                return;
        bad = judge_status(c->m, c->view.request, status, d->row, c->view.now);
        normalise(c->arena, status);
        if (!bad && json_equal(status, before))
                bad = "a status is written without a change";
        v->wrong_status = bad;
        add_op(v, (struct op){.kind = OP_STATUS, .status = status_number(c->m, status)});
}

static uint16_t seconds_of(usec_t again, uint16_t now)
{
        usec_t seconds = again <= NOON ? 0 : (again - NOON + USEC_PER_SEC - 1) / USEC_PER_SEC;

        return (uint16_t)MIN(MAX(seconds, (usec_t)now + 1), (usec_t)AGAIN_MAX);
}

static void take_down(struct call *c, const struct decision *d, struct verdict *v)
{
        if (c->m->scenario->bug == BUG_STATUS_FIRST)
                add_status(c, d, v);
        add_deletes(c, d, v);
        add_creates(c, d, v);
        if (c->m->scenario->bug != BUG_STATUS_FIRST)
                add_status(c, d, v);
        v->again = d->again_at ? seconds_of(d->again_at, c->key->now) : 0;
}

static void evaluate(struct model *m, const struct view_key *key, struct verdict *v)
{
        _cleanup_(decision_done) struct decision d = {0};
        struct call c = {.m = m, .key = key, .arena = &m->scratch};

        arena_reset(&m->scratch, SIZE_MAX);
        gather(&c);
        if (decide(&c, &d)) {
                sabotage_decision(m, &c.view, &d);
                take_down(&c, &d, v);
        }
        v->more = c.more;
        v->request = key->seen[REQUEST];
        v->owner = uid_number(meta_str(c.view.request, "uid"));
        vec_done(&c.answers);
}

/* The same view gives the same decision; and so it is decided once. */
static struct verdict *verdict_of(struct model *m, const struct view_key *key)
{
        struct verdict again = {0};
        bool new;
        uint32_t i = pool_intern(&m->views, key, &new);

        if (!new)
                return m->verdicts.v[i];
        *vec_push(&m->verdicts) = xcalloc(1, sizeof(struct verdict));
        evaluate(m, key, m->verdicts.v[i]);
        if (i % 16 == 0) {
                evaluate(m, key, &again);
                if (again.n_ops != m->verdicts.v[i]->n_ops || again.again != m->verdicts.v[i]->again ||
                    memcmp(again.ops, m->verdicts.v[i]->ops, sizeof(again.ops)) != 0)
                        model_wrong(m, "deciding twice gives two answers");
        }
        return m->verdicts.v[i];
}

static uint32_t decide_on(struct model *m, const struct state *s)
{
        struct view_key key = {.now = s->now};
        struct verdict *v;

        memcpy(key.seen, s->seen, sizeof(key.seen));
        while ((v = verdict_of(m, &key))->more) {
                key.mask |= (uint8_t)v->more;
                for (size_t i = 0; i < PARTS; i++)
                        if (key.mask & 1U << i)
                                key.server[i] = s->part[i];
                if (key.mask & 1U << ACCESS_PART)
                        memcpy(key.access, s->access, sizeof(key.access));
        }
        return pool_intern(&m->views, &key, NULL);
}

void control_init(struct model *m)
{
        pool_init(&m->views, sizeof(struct view_key));
}

void control_done(struct model *m)
{
        vec_foreach (v, &m->verdicts)
                free(*v);
        vec_done(&m->verdicts);
}

/* ---- carrying it out */

static void finish(struct state *s, const struct verdict *v)
{
        s->task = 0;
        s->step = 0;
        s->again = v->again;
}

static bool is_late(const struct model *m, const struct state *s)
{
        uint8_t uid = SEEN(m, s, request_part, REQUEST).uid;

        return uid && uid != PART(m, s, request_part, REQUEST).uid;
}

/* PARTS: bits of the caches that have just shown what is new. */
bool act_decide(struct model *m, struct state *s, unsigned parts)
{
        uint32_t number;

        if (s->task || (m->scenario->lagging && parts))
                return false;
        for (unsigned i = 0; i < PARTS; i++) {
                if ((parts & 1U << i) && s->seen[i] == s->part[i])
                        return false;
                if (parts & 1U << i)
                        control_deliver(m, s, (enum part)i);
        }
        if (!s->dirty || s->awaits)
                return false;
        if (is_late(m, s) && s->late++)
                return false; /* whoever does not look for ever would make and lose the same things for ever */
        s->dirty = s->awaits = 0;
        s->again = 0;
        if (!SEEN(m, s, request_part, REQUEST).uid)
                return true; /* gone */
        number = decide_on(m, s);
        if (m->verdicts.v[number]->wrong)
                model_wrong(m, "%s", m->verdicts.v[number]->wrong);
        if (m->verdicts.v[number]->n_ops)
                s->task = number + 1;
        else
                finish(s, m->verdicts.v[number]);
        return true;
}

enum done { DONE, CONFLICT, FOREIGN };

static void await(const struct model *m, struct state *s, enum part which)
{
        if (s->seen[which] != s->part[which])
                s->awaits |= (uint8_t)(1U << which);
}

static enum done delete_job(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);

        for (size_t i = 0; i < JOBS_MAX && jobs.v[i].uid; i++) {
                struct job *j = &jobs.v[i];

                if (j->name != op->name)
                        continue;
                if (j->uid != op->uid && m->scenario->bug != BUG_BY_NAME)
                        return CONFLICT;
                if (j->owner != v->owner)
                        model_wrong(m, "a Job of somebody else is deleted");
                if (op->foreground)
                        j->deleting = 1;
                else
                        job_remove(&jobs, j->uid);
                part_change(m, s, JOBS, &jobs);
                break;
        }
        await(m, s, JOBS);
        return DONE;
}

static enum done delete_map(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        struct maps_part maps = PART(m, s, maps_part, MAPS);
        uint8_t *uid = op->type == OF_STATUS_MAP ? &maps.status.uid : &maps.data.uid;
        uint8_t owner = op->type == OF_STATUS_MAP ? maps.status.owner : maps.data.owner;

        if (*uid && *uid != op->uid && m->scenario->bug != BUG_BY_NAME)
                return CONFLICT;
        if (*uid && owner != v->owner)
                model_wrong(m, "a ConfigMap of somebody else is deleted");
        if (op->type == OF_DATA_MAP)
                model_wrong(m, "the output is deleted");
        maps.status = (struct status_map){0};
        part_change(m, s, MAPS, &maps);
        await(m, s, MAPS);
        return DONE;
}

static enum done delete_one(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        if (op->type == OF_JOB)
                return delete_job(m, s, v, op);
        if (op->type == OF_STATUS_MAP || op->type == OF_DATA_MAP)
                return delete_map(m, s, v, op);
        if (op->type == OF_DEPLOYMENT) {
                model_wrong(m, "a deployment is deleted");
                return DONE;
        }
        if (s->access[op->which] && s->access[op->which] != op->uid)
                return CONFLICT;
        s->access[op->which] = 0;
        return DONE;
}

static enum done create_job(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        size_t n = 0;

        for (; n < JOBS_MAX && jobs.v[n].uid; n++)
                if (jobs.v[n].name == op->name) {
                        await(m, s, JOBS);
                        return jobs.v[n].owner == v->owner ? DONE : FOREIGN;
                }
        if (n == JOBS_MAX) {
                model_wrong(m, "one Job after another is made");
                return DONE;
        }
        jobs.v[n] = (struct job){
                .uid = ++jobs.made, .owner = v->owner, .name = op->name, .attempt = op->attempt};
        judge_job_created(m, s, &jobs.v[n]);
        if (PART(m, s, request_part, REQUEST).uid == v->owner)
                s->jobs_made |= (uint8_t)(1U << op->attempt);
        part_change(m, s, JOBS, &jobs);
        await(m, s, JOBS);
        return DONE;
}

static enum done create_map(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        struct maps_part maps = PART(m, s, maps_part, MAPS);
        bool data = op->type == OF_DATA_MAP, there = data ? maps.data.uid : maps.status.uid;
        uint8_t owner = data ? maps.data.owner : maps.status.owner, uid;

        if (there) {
                await(m, s, MAPS);
                return owner == v->owner ? DONE : FOREIGN;
        }
        uid = ++maps.made[data];
        if (data)
                maps.data = (struct data_map){.uid = uid, .owner = v->owner};
        else
                maps.status = (struct status_map){
                        .uid = uid, .owner = v->owner, .attempt = op->attempt, .pod = op->pod};
        part_change(m, s, MAPS, &maps);
        await(m, s, MAPS);
        return DONE;
}

static enum done create_deployment(struct model *m, struct state *s, const struct verdict *v,
                                   const struct op *op)
{
        struct deployments_part d = PART(m, s, deployments_part, DEPLOYMENTS);

        if (d.uid) {
                await(m, s, DEPLOYMENTS);
                return d.owner == v->owner ? DONE : FOREIGN;
        }
        if (facts_of(m, s)->deployed && PART(m, s, request_part, REQUEST).uid == v->owner)
                model_wrong(m, "a deployment that was deleted is made again");
        d = (struct deployments_part){.uid = (uint8_t)(d.made + 1), .made = (uint8_t)(d.made + 1)};
        d.owner = v->owner;
        d.of = op->pod;
        part_change(m, s, DEPLOYMENTS, &d);
        await(m, s, DEPLOYMENTS);
        return DONE;
}

static enum done create_one(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        if (op->type == OF_JOB)
                return create_job(m, s, v, op);
        if (op->type == OF_STATUS_MAP || op->type == OF_DATA_MAP)
                return create_map(m, s, v, op);
        if (op->type == OF_DEPLOYMENT)
                return create_deployment(m, s, v, op);
        if (s->access[op->which])
                return s->access[op->which] == v->owner ? DONE : FOREIGN;
        s->access[op->which] = v->owner;
        return DONE;
}

/* Only over what was decided on. */
static enum done write_status(struct model *m, struct state *s, const struct verdict *v, uint16_t status)
{
        struct request_part r = PART(m, s, request_part, REQUEST);

        if (!r.uid)
                return DONE; /* deleted meanwhile: the cache will say so */
        if (s->part[REQUEST] != v->request && m->scenario->bug != BUG_BY_NAME)
                return CONFLICT;
        if (r.status == status)
                return DONE;
        judge_status_written(m, s, status);
        r.status = status;
        part_change(m, s, REQUEST, &r);
        await(m, s, REQUEST);
        return DONE;
}

static void give_up(struct state *s)
{
        s->task = 0;
        s->step = 0;
        s->dirty = 1;
}

/* Of the access nothing can be done with a part: where nobody dies in between, it comes and goes at once. */
static bool is_one_with_next(const struct state *s, const struct verdict *v)
{
        const struct op *last = &v->ops[s->step - 1], *next = &v->ops[s->step];

        return !s->left[LEFT_CRASH] && last->type == OF_ACCESS && next->type == OF_ACCESS &&
               last->kind == next->kind && last->kind != OP_STATUS;
}

bool act_write(struct model *m, struct state *s, unsigned arg)
{
        const struct verdict *v = s->task ? m->verdicts.v[s->task - 1] : NULL;
        const struct op *op = v ? &v->ops[s->step] : NULL;
        enum done done;

        if (!v)
                return false;
        if (op->kind == OP_STATUS && v->wrong_status && s->part[REQUEST] == v->request)
                model_wrong(m, "%s", v->wrong_status);
        done = op->kind == OP_DELETE   ? delete_one(m, s, v, op)
               : op->kind == OP_CREATE ? create_one(m, s, v, op)
                                       : write_status(m, s, v, op->status);
        if (done == CONFLICT) {
                give_up(s);
                return true;
        }
        if (done == FOREIGN &&
            m->scenario->bug != BUG_ADOPTS) { /* told on the request, and tried again in a minute */
                write_status(m, s, v, v->stalled);
                finish(s, v);
                s->again = (uint16_t)(s->now + 60);
                return true;
        }
        if (++s->step == v->n_ops)
                finish(s, v);
        else if (is_one_with_next(s, v))
                return act_write(m, s, arg);
        return true;
}

/* What matters of a status. */
static const char *summary(struct model *m, const char *text)
{
        const struct json *status = json_parse(&m->scratch, str_of(text), NULL, NULL);
        const struct json *progress = json_at(status, "progress"), *run = json_at(status, "run");
        struct json *brief = json_object(&m->scratch);

        json_foreach (c, json_at(status, "conditions"))
                json_set(&m->scratch, brief, json_str(c, "type"),
                         json_string(&m->scratch, arena_printf(&m->scratch, "%s/%s", json_str(c, "status"),
                                                               json_str(c, "reason"))));
        return arena_printf(&m->scratch, "%s, run %s, progress %s, %s", json_str(status, "state"),
                            run ? json_print(&m->scratch, run) : "-",
                            progress ? json_print(&m->scratch, progress) : "-",
                            json_print(&m->scratch, brief));
}

const char *control_next_write(struct model *m, const struct state *s)
{
        static const char *const kinds[] = {"deletes", "creates", "writes the status"};
        static const char *const types[] = {"Job", STATUS_MAP, DATA_MAP, "access", "the deployment"};
        const struct op *op = s->task ? &m->verdicts.v[s->task - 1]->ops[s->step] : NULL;

        if (!op)
                return NULL;
        if (op->kind == OP_STATUS)
                return arena_printf(&m->scratch, "writes the status %s",
                                    summary(m, m->statuses.v[op->status].text));
        if (op->type == OF_JOB)
                return arena_printf(&m->scratch, "%s Job %s%s", kinds[op->kind], m->names[op->name],
                                    op->foreground ? " in the foreground" : "");
        if (op->type == OF_ACCESS)
                return arena_printf(&m->scratch, "%s %s", kinds[op->kind], access_types[op->which]->kind);
        return arena_printf(&m->scratch, "%s %s", kinds[op->kind], types[op->type]);
}

/* ---- death and time */

bool act_crash(struct model *m, struct state *s, unsigned arg)
{
        struct state before = *s;

        if (!s->left[LEFT_CRASH])
                return false;
        s->task = 0;
        s->step = s->awaits = 0;
        s->again = 0;
        memcpy(s->seen, s->part, sizeof(s->seen));
        s->dirty = PART(m, s, request_part, REQUEST).uid != 0;
        if (memcmp(&before, s, sizeof(before)) == 0)
                return false;
        s->left[LEFT_CRASH]--;
        return true;
}

/* Nothing else goes by itself. */
static bool is_quiet(struct model *m, const struct state *s)
{
        for (size_t i = 0; i < n_actions; i++)
                for (unsigned arg = 0; actions[i].fair && arg < actions[i].n_args; arg++) {
                        struct state next = *s;

                        if (actions[i].act != act_tick && actions[i].act(m, &next, arg))
                                return false;
                }
        return true;
}

bool act_tick(struct model *m, struct state *s, unsigned arg)
{
        if (!s->again || s->task || s->dirty)
                return false;
        if (!is_quiet(m, s)) {
                if (!s->left[LEFT_TICK])
                        return false;
                s->left[LEFT_TICK]--;
        }
        if (s->again == AGAIN_MAX)
                model_wrong(m, "the controller asks to be called again and again");
        s->now = s->again;
        s->again = 0;
        s->dirty = 1;
        return true;
}
