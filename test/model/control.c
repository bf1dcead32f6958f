/*
 * The operator: a cache for each part, one decision at a time, its writes one by one (as src/operator/carry.c and child.c
 * have it), and its death.
 */
#include "model/sabotage.h"
#include "model/verdict.h"

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

                x = x && x->forgotten ? NULL : x;
                y = y && y->forgotten ? NULL : y;
                if (!x && !y)
                        continue;
                if (x && y && memcmp(x, y, sizeof(*x)) == 0)
                        continue;
                if (job_is_seen(m, s, x ? x->job : y->job))
                        return true;
        }
        return false;
}

static bool maps_concern(const struct model *m, const struct state *s)
{
        const struct maps_part *was = &SEEN(m, s, maps_part, MAPS), *is = &PART(m, s, maps_part, MAPS);
        bool status = (was->status.uid && !was->forgotten[0]) || (is->status.uid && !is->forgotten[0]);
        bool data = (was->data.uid && !was->forgotten[1]) || (is->data.uid && !is->forgotten[1]);

        return SEEN(m, s, request_part, REQUEST).uid &&
               ((status && memcmp(&was->status, &is->status, sizeof(is->status)) != 0) ||
                (data && memcmp(&was->data, &is->data, sizeof(is->data)) != 0));
}

/* What somebody has made for himself is not watched. */
static bool product_concerns(const struct model *m, const struct state *s)
{
        uint8_t uid = SEEN(m, s, request_part, REQUEST).uid;

        return uid && (SEEN(m, s, product_part, PRODUCT).owner == uid ||
                       PART(m, s, product_part, PRODUCT).owner == uid);
}

static bool concerns(const struct model *m, const struct state *s, enum part which)
{
        if (which == PODS)
                return pods_concern(m, s);
        if (which == MAPS)
                return maps_concern(m, s);
        if (which == PRODUCT)
                return product_concerns(m, s);
        return which == REQUEST || SEEN(m, s, request_part, REQUEST).uid;
}

void control_deliver(struct model *m, struct state *s, enum part which)
{
        if (s->seen[which] == s->part[which])
                return;
        if (concerns(m, s, which))
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

/* ---- what rests is forgotten, until it changes (src/operator/retire.c) */

static bool is_passing(const struct model *m, const struct kube_type *type)
{
        for (size_t i = 0; i < m->controller.n_children; i++)
                if (m->controller.children[i].type == type)
                        return m->controller.children[i].passing;
        return false;
}

static void retire_pods(struct model *m, struct state *s)
{
        struct pods_part was = SEEN(m, s, pods_part, PODS), is = PART(m, s, pods_part, PODS);

        for (size_t i = 0; i < PODS_MAX && was.v[i].uid; i++) {
                struct pod *now = pod_by_uid(&is, was.v[i].uid);

                if (!job_is_seen(m, s, was.v[i].job))
                        continue;
                if (now && memcmp(now, &was.v[i], sizeof(*now)) == 0)
                        now->forgotten = 1;
                was.v[i].forgotten = 1;
        }
        s->seen[PODS] = part_number(m, PODS, &was);
        s->part[PODS] = part_number(m, PODS, &is);
}

static void retire_maps(struct model *m, struct state *s)
{
        struct maps_part was = SEEN(m, s, maps_part, MAPS), is = PART(m, s, maps_part, MAPS);
        uint8_t uid = SEEN(m, s, request_part, REQUEST).uid;

        if (was.status.uid && was.status.owner == uid) {
                if (memcmp(&was.status, &is.status, sizeof(is.status)) == 0)
                        is.forgotten[0] = 1;
                was.forgotten[0] = 1;
        }
        if (was.data.uid && was.data.owner == uid) {
                if (memcmp(&was.data, &is.data, sizeof(is.data)) == 0)
                        is.forgotten[1] = 1;
                was.forgotten[1] = 1;
        }
        s->seen[MAPS] = part_number(m, MAPS, &was);
        s->part[MAPS] = part_number(m, MAPS, &is);
}

static void retire_children(struct model *m, struct state *s, const struct verdict *v)
{
        if (!v->rests || s->awaits)
                return;
        if (is_passing(m, &KUBE_POD))
                retire_pods(m, s);
        if (is_passing(m, &KUBE_CONFIGMAP))
                retire_maps(m, s);
}

/* All is listed anew. */
static void remember_all(struct model *m, struct state *s)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct maps_part maps = PART(m, s, maps_part, MAPS);

        for (size_t i = 0; i < PODS_MAX; i++)
                pods.v[i].forgotten = 0;
        memset(maps.forgotten, 0, sizeof(maps.forgotten));
        s->part[PODS] = part_number(m, PODS, &pods);
        s->part[MAPS] = part_number(m, MAPS, &maps);
}

/* ---- carrying it out */

static void finish(struct state *s, const struct verdict *v)
{
        s->task = 0;
        s->step = 0;
        s->again = v->again;
}

static void finish_well(struct model *m, struct state *s, const struct verdict *v)
{
        finish(s, v);
        retire_children(m, s, v);
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
        s->plain &= (uint8_t)~PLAIN_JUST_NOW;
        if (!SEEN(m, s, request_part, REQUEST).uid)
                return true; /* gone */
        number = verdict_decide(m, s);
        if (m->verdicts.v[number]->wrong)
                model_wrong(m, "%s", m->verdicts.v[number]->wrong);
        for (size_t i = 0; i < m->verdicts.v[number]->n_ops; i++)
                if (m->verdicts.v[number]->ops[i].kind == OP_STATUS && !is_late(m, s))
                        judge_decided(m, s, m->verdicts.v[number]->ops[i].status);
        if (m->verdicts.v[number]->n_ops)
                s->task = number + 1;
        else
                finish_well(m, s, m->verdicts.v[number]);
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
                judge_job_deleted(m, s, j, op->foreground);
                if (!j->attempt && PART(m, s, request_part, REQUEST).uid == v->owner) {
                        s->jobs_made &= (uint8_t)~1U;
                        if (s->plain & PLAIN_JUST_NOW)
                                s->plain |= PLAIN_LOST;
                        if (!facts_of(m, s)->suspended && !facts_of(m, s)->failed)
                                model_wrong(m, "Job %s is taken away for no reason", m->names[j->name]);
                }
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
        if (*uid && PART(m, s, request_part, REQUEST).uid == v->owner && !facts_of(m, s)->outcome &&
            !facts_of(m, s)->failed)
                model_wrong(m, "the status ConfigMap is deleted before the end");
        maps.status = (struct status_map){0};
        part_change(m, s, MAPS, &maps);
        await(m, s, MAPS);
        return DONE;
}

static enum done delete_request(struct model *m, struct state *s, const struct verdict *v)
{
        if (PART(m, s, request_part, REQUEST).uid != v->owner)
                return CONFLICT;
        if (!m->subject->judge_deleted)
                model_wrong(m, "the request is deleted");
        else
                m->subject->judge_deleted(m, s, facts_of(m, s));
        people_forget(m, s);
        await(m, s, REQUEST);
        return DONE;
}

static enum done delete_one(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        if (op->type == OF_JOB)
                return delete_job(m, s, v, op);
        if (op->type == OF_STATUS_MAP || op->type == OF_DATA_MAP)
                return delete_map(m, s, v, op);
        if (op->type == OF_REQUEST)
                return delete_request(m, s, v);
        if (op->type == OF_PRODUCT) {
                model_wrong(m, "the product is deleted");
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
        jobs.v[n] = (struct job){.uid = ++jobs.made,
                                 .owner = v->owner,
                                 .name = op->name,
                                 .attempt = op->attempt,
                                 .spec = op->spec,
                                 .backoff = op->backoff,
                                 .meta = op->text};
        judge_job_created(m, s, &jobs.v[n]);
        if (PART(m, s, request_part, REQUEST).uid == v->owner) {
                s->jobs_made |= (uint8_t)(1U << op->attempt);
                s->plain |= op->attempt ? 0 : PLAIN_MADE;
        }
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

/* Its status is kept by whoever sees it, be it that an answer was lost. */
static void keep_product(struct model *m, struct state *s, const struct op *op)
{
        struct product_part p = PART(m, s, product_part, PRODUCT);

        if (!op->status)
                return;
        p.status = op->status;
        p.of = op->pod;
        part_change(m, s, PRODUCT, &p);
}

static enum done create_product(struct model *m, struct state *s, const struct verdict *v,
                                const struct op *op)
{
        struct product_part p = PART(m, s, product_part, PRODUCT);

        if (p.uid) {
                if (p.owner == v->owner || m->scenario->bug == BUG_ADOPTS)
                        keep_product(m, s, op);
                await(m, s, PRODUCT);
                return p.owner == v->owner ? DONE : FOREIGN;
        }
        if (facts_of(m, s)->made && PART(m, s, request_part, REQUEST).uid == v->owner)
                model_wrong(m, "%s that was deleted is made again", m->subject->story);
        p = (struct product_part){.uid = (uint8_t)(p.made + 1), .made = (uint8_t)(p.made + 1)};
        p.owner = v->owner;
        p.of = m->subject->owned ? 0 : op->pod; /* or with its status */
        p.text = op->text;
        p.spec = op->spec;
        part_change(m, s, PRODUCT, &p);
        await(m, s, PRODUCT);
        return DONE;
}

/* Only what was decided on; its status also of what has just been applied. */
static enum done write_product(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        struct product_part p = PART(m, s, product_part, PRODUCT);
        bool same = op->kind == OP_APPLY ? s->part[PRODUCT] == v->product
                                         : p.uid == op->uid && p.text == op->text;

        if (!p.uid || (!same && m->scenario->bug != BUG_BY_NAME))
                return CONFLICT;
        if (op->kind == OP_APPLY) {
                p.text = op->text;
                p.spec = op->spec;
                part_change(m, s, PRODUCT, &p);
        } else {
                keep_product(m, s, op);
        }
        await(m, s, PRODUCT);
        return DONE;
}

static enum done create_one(struct model *m, struct state *s, const struct verdict *v, const struct op *op)
{
        if (op->type == OF_JOB)
                return create_job(m, s, v, op);
        if (op->type == OF_STATUS_MAP || op->type == OF_DATA_MAP)
                return create_map(m, s, v, op);
        if (op->type == OF_PRODUCT)
                return create_product(m, s, v, op);
        if (s->access[op->which])
                return s->access[op->which] == v->owner ? DONE : FOREIGN;
        s->access[op->which] = v->owner;
        return DONE;
}

/* What is suspended or over has no slot any more. */
static void give_back(const struct model *m, struct state *s, const struct facts *f)
{
        if (s->place == TURN_ADMITTED && (f->outcome || f->suspended))
                s->place = TURN_SECOND;
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
        if (m->statuses.v[status].attempt != facts_of(m, s)->attempt)
                s->begun = r.spec & SPEC_EDITED;
        r.status = status;
        part_change(m, s, REQUEST, &r);
        give_back(m, s, facts_of(m, s));
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
               : op->kind == OP_STATUS ? write_status(m, s, v, op->status)
                                       : write_product(m, s, v, op);
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
                finish_well(m, s, v);
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
        return arena_printf(&m->scratch, "%s, run %s, progress %s, %s", json_str(status, m->subject->state),
                            run ? json_print(&m->scratch, run) : "-",
                            progress ? json_print(&m->scratch, progress) : "-",
                            json_print(&m->scratch, brief));
}

const char *control_next_write(struct model *m, const struct state *s)
{
        static const char *const kinds[] = {"deletes", "creates", "writes the status", "applies",
                                            "writes the status of"};
        const struct subject *x = m->subject;
        const char *const types[] = {"Job", x->status_map, x->data_map, "access", x->product, "the request"};
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
        s->plain &= (uint8_t)~PLAIN_JUST_NOW;
        s->place = s->place ? TURN_UNKNOWN : TURN_NONE;
        remember_all(m, s);
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
