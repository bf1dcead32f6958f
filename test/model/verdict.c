/*
 * A decision: the view, the look-ups, plan and settle, and the writes that follow.
 */
#include "model/verdict.h"

#include "model/sabotage.h"

#include "operator/runtime.h"

enum { ROUNDS_MAX = 8, CHILDREN_MAX = JOBS_MAX + PODS_MAX + 4 };
enum { ACCESS_PART = PARTS }; /* beside the parts that are watched */

/* What a decision depends on. */
struct view_key {
        uint16_t seen[PARTS], server[PARTS] /* where it was looked at; else 0 */, now;
        uint8_t mask, access[ACCESS_MAX], place, unused[5];
};

_Static_assert(sizeof(struct view_key) % 8 == 0, "no padding");

/* ---- the view */

/* What the operator tells of the queue, by place. */
static const struct admission admissions[] = {
        [TURN_UNKNOWN] = {.reason = ""},
        [TURN_SECOND] = {.position = 2, .reason = "1 of 1 runs are under way (2 in other namespaces)"},
        [TURN_FIRST] = {.position = 1, .reason = "1 of 1 runs are under way (1 in other namespaces)"},
        [TURN_ADMITTED] = {.admitted = true, .reason = ""},
};

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

/* Type after type; by name, what is of one. */
static void add_child(struct call *c, const struct kube_type *type, struct json *j)
{
        const struct child_kind *k = c->m->controller.children;
        const char *name = meta_str(j, "name");
        size_t i = c->view.n_children++;

        while (k->type != type)
                k++;
        if (k->project)
                k->project(j, c->arena);
        for (; i && c->children[i - 1].type == type && strcmp(c->children[i - 1].name, name) > 0; i--)
                c->children[i] = c->children[i - 1];
        c->children[i] = (struct object){type, j, meta_str(j, "name"), meta_str(j, "uid")};
}

static void add_jobs_and_pods(struct call *c, uint8_t owner)
{
        const struct jobs_part *jobs = part_at(c, JOBS, c->key->seen[JOBS]);
        const struct pods_part *pods = part_at(c, PODS, c->key->seen[PODS]);

        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (jobs->v[i].owner == owner)
                        add_child(c, &KUBE_JOB, show_job(c->m, c->arena, &jobs->v[i]));
        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++) {
                const struct job *j = job_by_uid(jobs, pods->v[i].job);

                if (j && j->owner == owner && !pods->v[i].forgotten)
                        add_child(c, &KUBE_POD, show_pod(c->m, c->arena, &pods->v[i]));
        }
}

static void gather(struct call *c)
{
        const struct subject *x = c->m->subject;
        const struct request_part *r = part_at(c, REQUEST, c->key->seen[REQUEST]);
        const struct maps_part *maps = part_at(c, MAPS, c->key->seen[MAPS]);
        const struct product_part *product = part_at(c, PRODUCT, c->key->seen[PRODUCT]);
        struct json *request = show_request(c->m, c->arena, r);

        c->view = (struct view){.request = request,
                                .type = c->m->controller.type,
                                .children = c->children,
                                .now = NOON + c->key->now * USEC_PER_SEC,
                                .settings = c->m->controller.settings,
                                .arena = c->arena,
                                .admission = c->key->place ? &admissions[c->key->place] : NULL};
        add_jobs_and_pods(c, r->uid);
        if (maps->data.uid && maps->data.owner == r->uid && !maps->forgotten[1])
                add_child(c, &KUBE_CONFIGMAP, show_data_map(c->m, c->arena, &maps->data));
        if (maps->status.uid && maps->status.owner == r->uid && !maps->forgotten[0])
                add_child(c, &KUBE_CONFIGMAP, show_status_map(c->m, c->arena, &maps->status));
        if (product->uid && product->owner == r->uid)
                add_child(c, x->product_type, x->show_product(c->m, c->arena, product));
        sabotage_view(c->m, &c->view);
}

/* ---- look-ups, answered from what the server has now */

static int part_of_want(const struct model *m, const struct want *want)
{
        if (want->kind == WANT_PODS)
                return PODS;
        if (want->kind != WANT_OBJECT && want->type == m->subject->product_type)
                return PRODUCT;
        if (want->kind != WANT_OBJECT)
                return -1;
        if (want->type == &KUBE_JOB)
                return JOBS;
        if (want->type == &KUBE_CONFIGMAP)
                return MAPS;
        if (want->type == m->subject->product_type)
                return PRODUCT;
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

        if (streq(name, c->m->subject->status_map) && maps->status.uid)
                return show_status_map(c->m, c->arena, &maps->status);
        if (streq(name, c->m->subject->data_map) && maps->data.uid)
                return show_data_map(c->m, c->arena, &maps->data);
        return NULL;
}

static const struct json *find_pods(struct call *c, const char *job)
{
        const struct pods_part *pods = part_at(c, PODS, c->key->server[PODS]);
        struct json *items = json_array(c->arena);

        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++)
                if (pods->v[i].job == uid_number(job))
                        json_append(items, show_pod(c->m, c->arena, &pods->v[i]));
        return json_build(c->arena, "{'items': %p}", (void *)items);
}

static const struct json *find_access(struct call *c, const struct want *want)
{
        for (size_t i = 0; i < ACCESS_MAX; i++)
                if (want->type == access_types[i] && streq(want->name, c->m->subject->access) &&
                    c->key->access[i])
                        return show_access(c->m, c->arena, i, c->key->access[i]);
        return NULL;
}

static const struct json *find_product(struct call *c, const char *name)
{
        const struct product_part *p = part_at(c, PRODUCT, c->key->server[PRODUCT]);

        return p->uid && streq(name, c->m->subject->product) ? c->m->subject->show_product(c->m, c->arena, p)
                                                             : NULL;
}

/* SELECTOR: a label's name, or name=value; "" for all. */
static bool is_selected(const struct json *object, const char *selector)
{
        struct str value = str_of(selector ? selector : ""), name = str_split(&value, '=');
        const struct json *label = json_get(json_at(json_at(object, "metadata"), "labels"), name);

        return !name.n || (label && (!value.p || str_eq(json_text(label), value)));
}

/* Of events there are none. */
static const struct json *find_list(struct call *c, const struct want *want)
{
        const struct product_part *p = part_at(c, PRODUCT, c->key->server[PRODUCT]);
        struct json *all = NULL, *items = json_array(c->arena);

        if (want->kind != WANT_EVENTS && c->m->subject->show_list)
                all = c->m->subject->show_list(c->m, c->arena, want->type, p);
        json_foreach (item, all)
                if (is_selected(item, want->name)) {
                        struct json *kept = json_append(items, json_copy(c->arena, item));

                        if (want->project)
                                want->project(kept, c->arena);
                }
        return json_build(c->arena, "{'items': %p}", (void *)items);
}

static const struct json *look_up(struct call *c, const struct want *want)
{
        switch (part_of_want(c->m, want)) {
        case PODS:
                return find_pods(c, want->uid);
        case JOBS:
                return find_job(c, want->name);
        case MAPS:
                return find_map(c, want->name);
        case PRODUCT:
                return want->kind == WANT_OBJECT ? find_product(c, want->name) : find_list(c, want);
        case ACCESS_PART:
                return find_access(c, want);
        default:
                return find_list(c, want);
        }
}

static void answer(struct call *c, const struct want *want)
{
        int part = part_of_want(c->m, want);
        const struct json *found;
        const struct answer *sabotaged;

        if (part >= 0 && !(c->key->mask & 1U << part)) {
                c->more |= 1U << part;
                return;
        }
        found = look_up(c, want);
        sabotaged = sabotage_answer(c->m, &c->view, want, found);
        *vec_push(&c->answers) = sabotaged ? *sabotaged
                                 : want->kind == WANT_SCRAPE
                                         ? (struct answer){.want = *want, .error = "connection refused"}
                                         : (struct answer){.want = *want, .json = found};
}

/* The history knows nothing. */
static const struct answer *recall(void *arg, const struct want *want)
{
        struct call *c = arg;
        struct answer *nothing = arena_new(c->arena, struct answer);

        nothing->want = *want;
        return want->kind == WANT_PRIORS || want->kind == WANT_SERIES ? nothing : NULL;
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
                sabotage_wants(c->m, &c->view, d);
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
static int type_of(const struct model *m, const struct kube_type *type, const char *name)
{
        const struct subject *x = m->subject;

        if (type == &KUBE_JOB)
                return OF_JOB;
        if (type == &KUBE_CONFIGMAP && streq(name, x->status_map))
                return OF_STATUS_MAP;
        if (type == &KUBE_CONFIGMAP && streq(name, x->data_map))
                return OF_DATA_MAP;
        if (type == x->product_type && streq(name, x->product))
                return OF_PRODUCT;
        if (type == m->controller.type && streq(name, "r"))
                return OF_REQUEST;
        if (access_index(type) < ACCESS_MAX && streq(name, x->access))
                return OF_ACCESS;
        return -1;
}

static void add_deletes(struct call *c, const struct decision *d, struct verdict *v)
{
        for (size_t i = 0; i < d->absent.n; i++) {
                const struct must_not_exist *gone = &d->absent.v[i];
                const struct object *o = gone->object;
                int type = type_of(c->m, o->type, o->name);

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
        uint64_t number = 0;

        if (op->type == OF_JOB) {
                op->name = name_number(c->m, meta_str(e->json, "name"));
                op->attempt = attempt_of(e->json);
                if (op->attempt)
                        op->backoff = (uint8_t)json_int(json_at(e->json, "spec"), "backoffLimit", 0);
                else
                        op->text = status_number(c->m, json_at(e->json, "metadata"));
                if (c->m->subject->read_job)
                        c->m->subject->read_job(e->json, op);
        } else if (op->type == OF_STATUS_MAP) {
                if (str_to_u64(json_text(json_at(data, RUN_KEY_ATTEMPT)), &number))
                        op->attempt = (uint8_t)number;
                op->pod = uid_number(json_str(data, RUN_KEY_POD));
        } else if (op->type == OF_PRODUCT) {
                c->m->subject->read_product(c->m, e, op);
        }
}

/* What is there and was made by us; only of the product anything is kept. */
static void add_changes(struct call *c, const struct must_exist *e, struct op op, const struct object *there,
                        struct verdict *v)
{
        const struct product_part *p = part_at(c, PRODUCT, c->key->seen[PRODUCT]);

        if (op.type != OF_PRODUCT || !c->m->subject->owned) {
                if (e->how != EXIST_ONCE)
                        v->wrong = "changes what it created";
                return;
        }
        c->m->subject->read_product(c->m, e, &op);
        op.uid = uid_number(there->uid);
        op.kind = OP_APPLY;
        if (e->how != EXIST_ONCE && op.text != p->text)
                add_op(v, op);
        else
                op.text = p->text;
        op.kind = OP_KEEP;
        if (e->status && !json_equal(json_at(there->json, "status"), e->status))
                add_op(v, op);
}

static void add_creates(struct call *c, const struct decision *d, struct verdict *v)
{
        for (size_t i = 0; i < d->exist.n; i++) {
                const struct must_exist *e = &d->exist.v[i];
                const char *name = meta_str(e->json, "name");
                int type = type_of(c->m, e->type, name);
                struct op op = {
                        .kind = OP_CREATE, .type = (uint8_t)type, .which = (uint8_t)access_index(e->type)};

                if (type < 0) {
                        v->wrong = "creates what nobody asked for";
                        continue;
                }
                if (view_child(&c->view, e->type, name)) {
                        add_changes(c, e, op, view_child(&c->view, e->type, name), v);
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
        struct json *told = stalled ? stall_tell(&t)
                                    : stall_clear(&t, status ? json_copy(c->arena, status) : NULL);

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
        status = stalled_status(c, status, false);
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
        v->n_events = d->events.n;
        v->stand = (uint8_t)d->admission.stand;
        v->row = d->row;
        v->rests = d->rests && !d->absent.n;
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
                if (!v->wrong && key->place)
                        v->wrong = judge_admission(m->subject, &c.view, &d);
        }
        v->more = c.more;
        v->request = key->seen[REQUEST];
        v->product = key->seen[PRODUCT];
        v->owner = uid_number(meta_str(c.view.request, "uid"));
        vec_done(&c.answers);
}

static bool is_same(const struct verdict *x, const struct verdict *y)
{
        return x->n_ops == y->n_ops && x->again == y->again && x->n_events == y->n_events &&
               x->stand == y->stand && x->row == y->row && x->rests == y->rests &&
               memcmp(x->ops, y->ops, sizeof(x->ops)) == 0;
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
                if (!is_same(&again, m->verdicts.v[i]))
                        model_wrong(m, "deciding twice gives two answers");
        }
        return m->verdicts.v[i];
}

uint32_t verdict_decide(struct model *m, const struct state *s)
{
        struct view_key key = {.now = s->now, .place = s->place};
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
