/*
 * What the cluster does by itself: the Jobs' controller, the kubelet, the relay, garbage collection.
 *
 * Arguments of actions are uids.
 */
#include "model/sabotage.h"

enum { CODE_TOLD = 143, CODE_KILLED = 137, CODE_BAD = 3, RELAY_PATIENCE = 600 };

static bool request_there(const struct model *m, const struct state *s, uint8_t uid)
{
        return PART(m, s, request_part, REQUEST).uid == uid;
}

/* What goes on in a run whose request is gone is of no account: it is only ended. */
static bool is_of_account(const struct model *m, const struct state *s, uint8_t job)
{
        const struct job *j = job_by_uid(&PART(m, s, jobs_part, JOBS), job);

        return j ? request_there(m, s, j->owner) : PART(m, s, request_part, REQUEST).uid != 0;
}

static void hidden_change(struct model *m, struct state *s, const struct hidden_part *h)
{
        s->hidden = part_number(m, HIDDEN, h);
}

/* ---- the Jobs' controller */

static struct job *job_of(struct jobs_part *jobs, unsigned uid)
{
        for (size_t i = 0; i < JOBS_MAX; i++)
                if (jobs->v[i].uid && jobs->v[i].uid == uid)
                        return &jobs->v[i];
        return NULL;
}

/* The pod that counts: none of an active Job's pods but the last one goes on. */
static const struct pod *last_pod(const struct pods_part *pods, uint8_t job)
{
        const struct pod *last = NULL;

        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++)
                if (pods->v[i].job == job)
                        last = &pods->v[i];
        return last;
}

/* Its last pod has failed or is gone, and it makes another. */
static bool job_retries(const struct job *j, const struct pod *last)
{
        return j->pods && j->pods <= j->backoff && (!last || last->phase == PHASE_FAILED);
}

/*
 * The first one; another for one that failed, where the Job retries by itself; and, as servers before 1.26 do, another
 * for one that was deleted before its workload came to an end of its own.
 */
bool act_make_pod(struct model *m, struct state *s, unsigned job)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct job *j = job_of(&jobs, job);
        const struct pod *last = j ? last_pod(&pods, j->uid) : NULL;
        size_t n = 0;

        while (n < PODS_MAX && pods.v[n].uid)
                n++;
        if (!j || j->end || j->deleting || j->pods > 2 || n == PODS_MAX || !is_of_account(m, s, j->uid))
                return false;
        if (j->pods && !job_retries(j, last) &&
            (!m->scenario->old_server || !last || !last->asked ||
             (last->work == WORK_ENDED && last->code != CODE_TOLD)))
                return false;
        pods.v[n] = (struct pod){.uid = ++pods.made, .job = j->uid, .plain = !j->attempt};
        part_change(m, s, PODS, &pods);
        j->pods++;
        part_change(m, s, JOBS, &jobs);
        return true;
}

bool act_end_job(struct model *m, struct state *s, unsigned job)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct job *j = job_of(&jobs, job);
        const struct pod *last = j ? last_pod(&pods, j->uid) : NULL;

        if (!j || j->end || j->deleting || !j->pods || (last && !last->phase) || job_retries(j, last) ||
            !is_of_account(m, s, j->uid))
                return false;
        j->end = last && last->phase == PHASE_SUCCEEDED ? JOB_COMPLETE : JOB_FAILED;
        if (!j->attempt && j->end == JOB_COMPLETE)
                s->plain |= PLAIN_SUCCEEDED | (s->task ? PLAIN_JUST_NOW : 0);
        part_change(m, s, JOBS, &jobs);
        return true;
}

/* ---- the kubelet */

bool act_start_pod(struct model *m, struct state *s, unsigned pod)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = pod_by_uid(&pods, (uint8_t)pod);

        if (!p || p->phase || p->work != WORK_PENDING || p->asked || !is_of_account(m, s, p->job))
                return false;
        p->work = WORK_RUNNING;
        p->relay = p->plain ? RELAY_DONE : RELAY_UP;
        part_change(m, s, PODS, &pods);
        return true;
}

static bool end_workload(struct model *m, struct state *s, unsigned pod, uint8_t exit, uint8_t code)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = pod_by_uid(&pods, (uint8_t)pod);
        struct hidden_part h = hidden_of(m, s);

        if (!p || p->phase || p->work != WORK_RUNNING || (exit == EXIT_TOLD) != (p->asked != 0))
                return false;
        if (exit != EXIT_TOLD && !is_of_account(m, s, p->job))
                return false;
        p->work = WORK_ENDED;
        p->code = code;
        p->finished = (uint16_t)(s->now + 1);
        if (!p->plain)
                h.v[p->uid].exit = exit;
        hidden_change(m, s, &h);
        part_change(m, s, PODS, &pods);
        return true;
}

bool act_end_well(struct model *m, struct state *s, unsigned pod)
{
        return end_workload(m, s, pod, EXIT_GOOD, 0);
}

bool act_end_badly(struct model *m, struct state *s, unsigned pod)
{
        return end_workload(m, s, pod, EXIT_BAD, CODE_BAD);
}

/* One that is to go is told so. */
bool act_stop_pod(struct model *m, struct state *s, unsigned pod)
{
        return end_workload(m, s, pod, EXIT_TOLD, m->scenario->polite ? 0 : CODE_TOLD);
}

/* All its containers have ended; or it goes, whatever its relay was at. */
bool act_finish_pod(struct model *m, struct state *s, unsigned pod)
{
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = pod_by_uid(&pods, (uint8_t)pod);
        bool ended;

        if (!p)
                return false;
        ended = p->work == WORK_ENDED && p->relay > RELAY_UP;
        if (p->asked && (p->phase || p->work == WORK_PENDING)) {
                pod_remove(&pods, p->uid);
        } else if (!p->phase && ended) {
                p->phase = p->code == 0 && p->relay == RELAY_DONE ? PHASE_SUCCEEDED : PHASE_FAILED;
        } else {
                return false;
        }
        part_change(m, s, PODS, &pods);
        return true;
}

/* ---- the relay: fence.h and relay.h */

static struct run_fence fence_of(const struct status_map *map)
{
        struct run_fence f = {
                .attempt = map->attempt, .sequence = map->sequence, .state = (enum run_state)map->state};

        if (map->pod)
                snprintf(f.pod, sizeof(f.pod), "pod-%d", map->pod);
        return f;
}

struct relay {
        struct pods_part pods;
        struct maps_part maps;
        struct hidden_part hidden;
        struct pod *pod;
        struct inner *inner;
        uint8_t attempt; /* of its Job */
        bool reaches;    /* the server lets it read and write the status ConfigMap */
};

static bool relay_look(struct model *m, const struct state *s, unsigned pod, struct relay *r)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        const struct job *job;

        r->pods = PART(m, s, pods_part, PODS);
        r->pod = pod_by_uid(&r->pods, (uint8_t)pod);
        if (!r->pod || r->pod->phase || r->pod->relay != RELAY_UP)
                return false;
        r->maps = PART(m, s, maps_part, MAPS);
        r->hidden = hidden_of(m, s);
        r->inner = &r->hidden.v[r->pod->uid];
        job = job_by_uid(&jobs, r->pod->job);
        r->attempt = job ? job->attempt : r->inner->claim;
        r->reaches = r->maps.status.uid && s->access[0] && s->access[1] && s->access[2] &&
                     s->access[1] == r->maps.status.owner;
        return true;
}

/* What it was at is not its own any more. */
static bool overtaken(const struct relay *r)
{
        return r->inner->claim && (r->maps.status.pod != r->pod->uid);
}

bool act_claim(struct model *m, struct state *s, unsigned pod)
{
        struct run_fence old, next = {.sequence = 1, .state = RUN_RUNNING};
        struct relay r;

        if (!relay_look(m, s, pod, &r) || !r.reaches || r.inner->claim || !r.attempt ||
            !is_of_account(m, s, r.pod->job))
                return false;
        old = fence_of(&r.maps.status);
        next.attempt = MAX((uint64_t)r.attempt, old.pod[0] ? old.attempt + 1 : 0);
        snprintf(next.pod, sizeof(next.pod), "pod-%d", r.pod->uid);
        if (next.attempt == old.attempt)
                next.sequence = old.sequence + 1;
        if ((old.state == RUN_SUCCEEDED && r.attempt <= old.attempt) || !run_fence_follows(&old, &next))
                return false; /* act_give_up() */
        r.maps.status.attempt = r.inner->claim = (uint8_t)next.attempt;
        r.maps.status.pod = r.pod->uid;
        r.maps.status.sequence = (uint8_t)next.sequence;
        r.maps.status.state = RUN_RUNNING;
        r.maps.status.report = r.maps.status.exit = 0;
        hidden_change(m, s, &r.hidden);
        part_change(m, s, MAPS, &r.maps);
        return true;
}

bool act_report(struct model *m, struct state *s, unsigned pod)
{
        struct relay r;

        if (!s->left[LEFT_PROGRESS] || !relay_look(m, s, pod, &r) || !r.reaches || !r.inner->claim ||
            overtaken(&r) || r.pod->work != WORK_RUNNING || !is_of_account(m, s, r.pod->job))
                return false;
        s->left[LEFT_PROGRESS]--;
        r.maps.status.sequence++;
        r.maps.status.state = RUN_RUNNING; /* also in one that was made again */
        r.maps.status.report++;
        part_change(m, s, MAPS, &r.maps);
        return true;
}

static bool too_late(const struct state *s, const struct pod *p)
{
        return p->finished && s->now >= p->finished - 1 + RELAY_PATIENCE;
}

static void leave_output(struct model *m, struct state *s, struct relay *r)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        const struct job *job = job_by_uid(&jobs, r->pod->job);
        uint8_t spec = job ? job->spec : r->maps.data.spec;
        uint8_t turns = m->subject->turns ? m->subject->turns(PART(m, s, request_part, REQUEST).spec) : 0;

        r->maps.data.output = r->pod->uid;
        if (!turns)
                return;
        if (spec != r->maps.data.spec)
                r->maps.data.turns = 0; /* a checkpoint of another spec is not used */
        if (r->maps.data.turns < turns)
                r->maps.data.turns++;
        r->maps.data.more = (uint8_t)(turns - r->maps.data.turns);
        r->maps.data.spec = spec;
}

bool act_send_output(struct model *m, struct state *s, unsigned pod)
{
        struct relay r;

        if (!s->left[LEFT_MISHAP] || !relay_look(m, s, pod, &r) || !r.reaches || !r.inner->claim ||
            overtaken(&r) || r.inner->sent || r.pod->work != WORK_ENDED || r.inner->exit != EXIT_GOOD ||
            !r.maps.data.uid || r.maps.data.owner != r.maps.status.owner || too_late(s, r.pod) ||
            !is_of_account(m, s, r.pod->job))
                return false;
        leave_output(m, s, &r);
        r.inner->sent = 1;
        hidden_change(m, s, &r.hidden);
        part_change(m, s, MAPS, &r.maps);
        return true;
}

static bool is_last_turn(const struct relay *r)
{
        return !r->maps.data.more || r->maps.data.output != r->pod->uid;
}

/* A success, with its output, of an attempt that is not given up, nor of another spec, and none follows. */
static void remember_success(struct model *m, struct state *s, const struct relay *r)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        const struct job *job = job_by_uid(&jobs, r->pod->job);
        const struct facts *f = facts_of(m, s);
        bool stale = m->subject->renews && job &&
                     job->spec != (PART(m, s, request_part, REQUEST).spec & SPEC_EDITED);

        if (job && !stale && r->maps.data.output == r->pod->uid && is_last_turn(r) &&
            request_there(m, s, job->owner) && f->attempt == job->attempt && !f->outcome)
                s->success = r->pod->uid;
}

bool act_record(struct model *m, struct state *s, unsigned pod)
{
        struct relay r;
        bool good;

        if (!relay_look(m, s, pod, &r) || !r.reaches || !r.inner->claim || overtaken(&r) ||
            r.pod->work != WORK_ENDED || too_late(s, r.pod) || !is_of_account(m, s, r.pod->job))
                return false;
        good = r.inner->exit == EXIT_GOOD;
        if (good && !r.inner->sent && r.maps.data.uid) {
                if (s->left[LEFT_MISHAP])
                        return false;   /* first things first */
                leave_output(m, s, &r); /* nothing can come between the two */
        }
        r.maps.status.sequence++;
        r.maps.status.state = good ? RUN_SUCCEEDED : RUN_FAILED;
        r.maps.status.exit = r.inner->exit;
        r.pod->relay = RELAY_DONE;
        if (good)
                remember_success(m, s, &r);
        part_change(m, s, MAPS, &r.maps);
        part_change(m, s, PODS, &r.pods);
        return true;
}

/* Nothing is there to write to, it may not, somebody else has the turn, or it was too long. */
bool act_give_up(struct model *m, struct state *s, unsigned pod)
{
        struct state copy = *s;
        struct relay r;
        bool done;

        if (!relay_look(m, s, pod, &r) || act_claim(m, &copy, pod))
                return false;
        done = r.reaches && (overtaken(&r) || !r.inner->claim);
        if (r.reaches && !done && !too_late(s, r.pod) && is_of_account(m, s, r.pod->job))
                return false;
        r.pod->relay = done ? RELAY_DONE : RELAY_LOST;
        part_change(m, s, PODS, &r.pods);
        return true;
}

/* ---- garbage collection */

bool act_collect_job(struct model *m, struct state *s, unsigned job)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct job *j = job_of(&jobs, job);

        if (!j || !(j->deleting ? !last_pod(&pods, j->uid) : !request_there(m, s, j->owner)))
                return false;
        job_remove(&jobs, j->uid);
        part_change(m, s, JOBS, &jobs);
        return true;
}

bool act_collect_pod(struct model *m, struct state *s, unsigned pod)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct pod *p = pod_by_uid(&pods, (uint8_t)pod);
        struct job *j = p ? job_of(&jobs, p->job) : NULL;

        if (!p || p->asked || (j && !j->deleting))
                return false;
        p->asked = (uint16_t)(s->now + 1);
        part_change(m, s, PODS, &pods);
        return true;
}

static bool collect_product(struct model *m, struct state *s)
{
        struct product_part p = PART(m, s, product_part, PRODUCT);

        if (!m->subject->owned || !p.owner || request_there(m, s, p.owner) || m->scenario->bug == BUG_LEAKS)
                return false;
        part_change(m, s, PRODUCT, &(struct product_part){.made = p.made});
        return true;
}

/* ConfigMaps, access and product, at once: it makes no difference to anybody in which order. */
bool act_collect_others(struct model *m, struct state *s, unsigned arg)
{
        struct maps_part maps = PART(m, s, maps_part, MAPS);
        bool any = collect_product(m, s);

        if (maps.status.owner && !request_there(m, s, maps.status.owner)) {
                maps.status = (struct status_map){0};
                any = true;
        }
        if (maps.data.owner && !request_there(m, s, maps.data.owner)) {
                maps.data = (struct data_map){0};
                any = true;
        }
        for (size_t i = 0; i < ACCESS_MAX; i++)
                if (s->access[i] && !request_there(m, s, s->access[i])) {
                        s->access[i] = 0;
                        any = true;
                }
        part_change(m, s, MAPS, &maps);
        return any;
}

/* Nobody is left who could look: what belongs to nobody goes at once. */
bool act_collect_rest(struct model *m, struct state *s, unsigned arg)
{
        struct jobs_part jobs = PART(m, s, jobs_part, JOBS);
        struct pods_part pods = PART(m, s, pods_part, PODS);
        struct maps_part maps = PART(m, s, maps_part, MAPS);

        if (!cluster_is_forgotten(m, s))
                return false;
        if (!(collect_product(m, s) || jobs.v[0].uid || pods.v[0].uid || maps.status.uid || maps.data.uid ||
              s->access[0] || s->access[1] || s->access[2]))
                return false;
        part_change(m, s, JOBS, &(struct jobs_part){.made = jobs.made});
        part_change(m, s, PODS, &(struct pods_part){.made = pods.made});
        part_change(m, s, MAPS, &(struct maps_part){0});
        hidden_change(m, s, &(struct hidden_part){0});
        memset(s->access, 0, sizeof(s->access));
        memcpy(s->seen, s->part, sizeof(s->seen));
        return true;
}

bool cluster_is_forgotten(const struct model *m, const struct state *s)
{
        return !m->scenario->recreated && !s->task && !PART(m, s, request_part, REQUEST).uid &&
               !SEEN(m, s, request_part, REQUEST).uid;
}

/* ---- the product */

bool act_turn(struct model *m, struct state *s, unsigned arg)
{
        struct product_part p = PART(m, s, product_part, PRODUCT);

        if (!p.uid || !m->subject->product_turns || !m->subject->product_turns(&p))
                return false;
        part_change(m, s, PRODUCT, &p);
        return true;
}
