/*
 * What is left of a run's Jobs.
 */
#include "kinds/run_internal.h"

static bool is_of_run(const struct object *o, const struct run *run)
{
        return o->type == &KUBE_JOB &&
               (streq(o->name, run->names.job) ||
                json_at(json_at(json_at(o->json, "metadata"), "labels"), RUN_LABEL_ATTEMPT));
}

/* When a pod that was told to end must be gone; 0: it has ended; USEC_MAX: it was not told. */
static usec_t gone_by(const struct object *pod)
{
        struct run_pod p;

        run_pod_read(pod, &p);
        if (p.over)
                return 0;
        return p.asked_to_end ? usec_add(usec_add(p.asked_to_end, p.grace), RUN_GONE_PATIENCE) : USEC_MAX;
}

static usec_t pods_gone_by(const struct view *v, const struct object *job)
{
        usec_t last = 0;

        for (size_t i = 0; i < v->n_children; i++) {
                const struct object *o = &v->children[i];

                if (o->type == &KUBE_POD && streq(meta_controller_uid(o->json), job->uid))
                        last = MAX(last, gone_by(o));
        }
        return last;
}

/* The same of the pods as the server has them: that nothing runs is not believed to a cache that may be behind. */
static usec_t look_when_pods_are_gone(const struct view *v, struct decision *d, const struct object *job)
{
        const struct want want = {.kind = WANT_PODS, .uid = job->uid};
        const struct answer *answer = decide_want(d, v, &want);
        usec_t last = 0;

        if (answer && answer->error)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        if (!answer || answer->error)
                return USEC_MAX;
        json_foreach (pod, json_at(answer->json, "items")) {
                const struct object o = {&KUBE_POD, pod, "", ""};

                last = MAX(last, gone_by(&o));
        }
        return last;
}

bool run_lingers(const struct view *v, struct decision *d, const struct object *job)
{
        bool watched = view_child(v, &KUBE_JOB, job->name);
        usec_t last = watched ? pods_gone_by(v, job) : look_when_pods_are_gone(v, d, job);
        bool overdue = last && last <= v->now;

        if (watched && overdue)
                last = look_when_pods_are_gone(v, d, job);
        if (last > v->now && last < USEC_MAX)
                decide_again_at(d, last);
        if (last > v->now)
                return true;
        return !run_job_finished(job->json) && !(overdue && meta_str(job->json, "deletionTimestamp"));
}

bool run_any_pod_ends(const struct view *v, struct decision *d, const struct run *run)
{
        usec_t last = 0;

        for (size_t i = 0; i < v->n_children; i++)
                if (is_of_run(&v->children[i], run))
                        last = MAX(last, pods_gone_by(v, &v->children[i]));
        if (last > v->now && last < USEC_MAX)
                decide_again_at(d, last);
        return last > v->now;
}

bool run_any_lingers(const struct view *v, struct decision *d, const struct run *run, const char *keep)
{
        bool any = false;

        for (size_t i = 0; i < v->n_children; i++)
                if (is_of_run(&v->children[i], run) && !streq(v->children[i].name, keep))
                        any = run_lingers(v, d, &v->children[i]) || any;
        return any;
}

void run_remove_unfinished(const struct view *v, struct decision *d, const struct run *run, const char *keep)
{
        for (size_t i = 0; i < v->n_children; i++)
                if (is_of_run(&v->children[i], run) && !streq(v->children[i].name, keep) &&
                    !run_job_finished(v->children[i].json))
                        decide_absent_foreground(d, &v->children[i]);
}
