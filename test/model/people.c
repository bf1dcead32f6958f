/*
 * What people and bad luck do.
 */
#include "model/world.h"

enum { CODE_KILLED = 137 };

static bool spend(struct state *s, enum left what)
{
        if (!s->left[what])
                return false;
        s->left[what]--;
        return true;
}

static void set_spec(struct model *m, struct state *s, uint8_t spec)
{
        struct request_part r = PART(m, s, request_part, REQUEST);

        r.spec = spec;
        r.generation++;
        part_change(m, s, REQUEST, &r);
}

bool act_edit(struct model *m, struct state *s, unsigned edit)
{
        static const uint8_t bits[] = {[EDIT_WORKLOAD] = SPEC_EDITED,
                                       [EDIT_SUSPEND] = SPEC_SUSPEND,
                                       [EDIT_CANCEL] = SPEC_CANCEL,
                                       [EDIT_OWN] = SPEC_OWN};
        struct request_part r = PART(m, s, request_part, REQUEST);

        uint8_t bit = edit == EDIT_INVALID ? m->subject->invalid : bits[edit];
        bool back = edit == EDIT_INVALID || (edit == EDIT_OWN && m->subject->toggles);

        if (!(m->scenario->edits & 1U << edit) || !r.uid || ((r.spec & bit) && !back))
                return false;
        if (!spend(s, LEFT_EDIT))
                return false;
        /* It is of another workload, or was not wanted any more, and may be dropped. */
        if (m->subject->renews && (edit == EDIT_WORKLOAD || (edit == EDIT_OWN && (r.spec & bit))))
                s->success = 0;
        if (edit == EDIT_OWN && m->subject->renews)
                s->excused |= EXCUSED_PRODUCT;
        set_spec(m, s, r.spec ^ bit);
        return true;
}

/* Who suspends a request resumes it some day; one that stays suspended is fine, too. */
bool act_resume(struct model *m, struct state *s, unsigned arg)
{
        struct request_part r = PART(m, s, request_part, REQUEST);

        if (!r.uid || !(r.spec & SPEC_SUSPEND))
                return false;
        set_spec(m, s, r.spec & (uint8_t)~SPEC_SUSPEND);
        return true;
}

void people_forget(struct model *m, struct state *s)
{
        struct request_part r = PART(m, s, request_part, REQUEST);

        part_change(m, s, REQUEST, &(struct request_part){.made = r.made});
        s->jobs_made = s->success = s->excused = s->plain = 0;
        s->late = s->begun = 0;
        if (s->place)
                s->place = TURN_UNKNOWN;
}

bool act_delete(struct model *m, struct state *s, unsigned arg)
{
        if (!PART(m, s, request_part, REQUEST).uid || !spend(s, LEFT_DELETE))
                return false;
        people_forget(m, s);
        return true;
}

bool act_recreate(struct model *m, struct state *s, unsigned arg)
{
        struct request_part r = PART(m, s, request_part, REQUEST);

        if (!m->scenario->recreated || r.uid || r.made > 1)
                return false;
        r = (struct request_part){
                .uid = (uint8_t)(r.made + 1), .made = (uint8_t)(r.made + 1), .generation = 1};
        r.spec = m->scenario->spec;
        part_change(m, s, REQUEST, &r);
        return true;
}

/* ---- bad luck */

static struct pod *living_pod(struct pods_part *pods)
{
        for (size_t i = PODS_MAX; i--;)
                if (pod_lives(&pods->v[i]))
                        return &pods->v[i];
        return NULL;
}

static bool evict(struct model *m, struct state *s)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = living_pod(&pods);

        if (!p)
                return false;
        if (p->work == WORK_RUNNING) {
                p->work = WORK_ENDED;
                p->code = CODE_KILLED;
                p->finished = (uint16_t)(s->now + 1);
        }
        if (p->relay == RELAY_UP)
                p->relay = RELAY_LOST;
        p->phase = PHASE_FAILED;
        p->evicted = 1;
        part_change(m, s, PODS, &pods);
        return true;
}

static bool delete_pod(struct model *m, struct state *s)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = living_pod(&pods);

        if (!p || p->asked)
                return false;
        p->asked = (uint16_t)(s->now + 1);
        part_change(m, s, PODS, &pods);
        return true;
}

static bool lose_relay(struct model *m, struct state *s)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = living_pod(&pods);

        if (!p || p->relay != RELAY_UP)
                return false;
        p->relay = RELAY_LOST;
        part_change(m, s, PODS, &pods);
        return true;
}

/* The last one; with its pods first, or leaving them to the garbage collection. */
static bool delete_job(struct model *m, struct state *s, bool orphans)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        struct job *last = NULL;

        for (size_t i = 0; i < JOBS_MAX && jobs.v[i].uid; i++)
                last = &jobs.v[i];
        if (!last || last->deleting)
                return false;
        if (orphans)
                job_remove(&jobs, last->uid);
        else
                last->deleting = 1;
        s->excused |= EXCUSED_RUN;
        part_change(m, s, JOBS, &jobs);
        return true;
}

static bool delete_map(struct model *m, struct state *s, bool data)
{
        struct maps_part maps = PART(m, s, maps_part, MAPS);

        if (!(data ? maps.data.uid : maps.status.uid))
                return false;
        if (data)
                maps.data = (struct data_map){0};
        else
                maps.status = (struct status_map){0};
        s->excused |= EXCUSED_RUN;
        part_change(m, s, MAPS, &maps);
        return true;
}

static bool delete_product(struct model *m, struct state *s)
{
        struct product_part p = PART(m, s, product_part, PRODUCT);

        if (!p.uid)
                return false;
        if (m->subject->owned)
                s->excused |= EXCUSED_PRODUCT;
        part_change(m, s, PRODUCT, &(struct product_part){.made = p.made});
        return true;
}

static bool make_own_product(struct model *m, struct state *s)
{
        struct product_part p = PART(m, s, product_part, PRODUCT), own = m->own;

        if (p.uid)
                return false;
        own.made = p.made;
        s->excused |= EXCUSED_PRODUCT;
        part_change(m, s, PRODUCT, &own);
        return true;
}

/* `run` goes with its workload, and so nothing is known of how it ended. */
static bool run_out_of_memory(struct model *m, struct state *s)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = living_pod(&pods);

        if (!p || p->work != WORK_RUNNING || p->plain)
                return false;
        p->work = WORK_ENDED;
        p->code = CODE_KILLED;
        p->finished = (uint16_t)(s->now + 1);
        p->oom = 1;
        part_change(m, s, PODS, &pods);
        return true;
}

/* Of a Job with more than one, which has counted it. */
static bool sweep_last_pod(struct model *m, struct state *s)
{
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);
        struct pods_part pods = PART(m, s, pods_part, PODS);
        size_t n = 0;

        while (n < PODS_MAX && pods.v[n].uid)
                n++;
        if (n < 2 || pods.v[n - 1].job != pods.v[n - 2].job || !pods.v[n - 1].phase ||
            !job_by_uid(jobs, pods.v[n - 1].job) || !job_by_uid(jobs, pods.v[n - 1].job)->end)
                return false;
        pod_remove(&pods, pods.v[n - 1].uid);
        part_change(m, s, PODS, &pods);
        return true;
}

static bool lose_output(struct model *m, struct state *s)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct hidden_part h = hidden_of(m, s);
        struct pod *p = living_pod(&pods);

        if (!p || p->relay != RELAY_UP || h.v[p->uid].exit != EXIT_GOOD || h.v[p->uid].sent)
                return false;
        h.v[p->uid].sent = 1;
        s->hidden = part_number(m, HIDDEN, &h);
        return true;
}

/* The operator decides anew whom it tells another place. */
static bool move(struct state *s, uint8_t place)
{
        s->place = place;
        s->dirty = 1;
        return true;
}

bool act_advance(struct model *m, struct state *s, unsigned arg)
{
        if (!s->place || s->place == TURN_ADMITTED || !PART(m, s, request_part, REQUEST).uid)
                return false;
        return move(s, s->place + 1);
}

static bool befall(struct model *m, struct state *s, unsigned mishap)
{
        switch ((enum mishap)mishap) {
        case MISHAP_EVICT:
                return evict(m, s);
        case MISHAP_DELETE_POD:
                return delete_pod(m, s);
        case MISHAP_LOSE_RELAY:
                return lose_relay(m, s);
        case MISHAP_DELETE_JOB:
                return delete_job(m, s, false);
        case MISHAP_ORPHAN_PODS:
                return delete_job(m, s, true);
        case MISHAP_DELETE_MAP:
                return delete_map(m, s, false);
        case MISHAP_DELETE_PRODUCT:
                return delete_product(m, s);
        case MISHAP_DELETE_DATA:
                return delete_map(m, s, true);
        case MISHAP_OWN_PRODUCT:
                return make_own_product(m, s);
        case MISHAP_OOM:
                return run_out_of_memory(m, s);
        case MISHAP_OVERTAKEN:
                return s->place > TURN_SECOND && move(s, TURN_SECOND);
        case MISHAP_SWEEP_POD:
                return sweep_last_pod(m, s);
        case MISHAP_NO_OUTPUT:
                return lose_output(m, s);
        case MISHAPS:
                break;
        }
        return false;
}

bool act_mishap(struct model *m, struct state *s, unsigned mishap)
{
        if (!(m->scenario->mishaps & 1U << mishap) || !s->left[LEFT_MISHAP] || !befall(m, s, mishap))
                return false;
        s->left[LEFT_MISHAP]--;
        return true;
}
