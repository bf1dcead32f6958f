/*
 * What is a CUDAExperiment's own: the product is the WorkloadProfile, and the execution Job is a plain one.
 *
 * In the namespace there is the profile of another experiment, of the same workload as this one's before it is edited; and the
 * cluster has two nodes with GPUs.
 */
#include "model/cuda_world.h"
#include "model/verdict.h"

#include "kinds/cuda/internal.h"

enum { NEW, PENDING, PROFILING, EXECUTING, SUCCEEDED, FAILED, SUSPENDED };

static const char *const phases[] = {"",          "Pending", "Profiling", "Executing",
                                     "Succeeded", "Failed",  "Suspended"};

static const unsigned next[] = {
        [NEW] = 1 << PENDING | 1 << PROFILING | 1 << EXECUTING | 1 << FAILED | 1 << SUSPENDED,
        [PENDING] = 1 << PENDING | 1 << PROFILING | 1 << EXECUTING | 1 << FAILED | 1 << SUSPENDED,
        [PROFILING] = 1 << PENDING | 1 << PROFILING | 1 << EXECUTING | 1 << FAILED | 1 << SUSPENDED,
        [EXECUTING] = 1 << EXECUTING | 1 << SUCCEEDED | 1 << FAILED | 1 << SUSPENDED | 1 << PENDING |
                      1 << PROFILING,
        [SUCCEEDED] = 1 << SUCCEEDED,
        [FAILED] = 1 << FAILED | 1 << PENDING | 1 << PROFILING | 1 << EXECUTING | 1 << SUSPENDED,
        [SUSPENDED] = 1 << SUSPENDED | 1 << PENDING | 1 << PROFILING | 1 << EXECUTING | 1 << SUCCEEDED |
                      1 << FAILED,
};

static struct controller controller(void)
{
        static const struct cuda_settings settings = {.pod_image = "sonde-pod:1", .runner_image = "ncu:1"};

        return cuda_controller(&settings);
}

/* ---- the experiment */

static const char *image_of(uint8_t spec)
{
        return spec & SPEC_EDITED ? "app:2" : "app:1";
}

static uint8_t spec_of_image(const char *image)
{
        return streq(image, image_of(SPEC_EDITED)) ? SPEC_EDITED : 0;
}

static struct json *show_spec(struct arena *a, uint8_t bits)
{
        struct json *spec = json_build(a, "{'image': %s, 'command': ['/app/run'], 'profilingEnabled': %p}",
                                       image_of(bits), (void *)json_truth(a, !(bits & SPEC_NO_PROFILING)));

        if (bits & SPEC_DISTRIBUTED) /* which is refused */
                json_set(a, spec, "distributed", json_truth(a, true));
        if (bits & SPEC_REUSE)
                json_set(a, spec, "profiling", json_build(a, "{'reuse': %p}", (void *)json_truth(a, true)));
        return spec;
}

static const char *condition(const struct json *status, const char *type)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return json_str(c, "status");
        return NULL;
}

static bool is_true(const struct json *status, const char *type)
{
        return streq(condition(status, type), "True");
}

static void read_facts(const struct json *status, struct facts *f)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "Failed") && streq(json_str(c, "status"), "True"))
                        f->cancelled = f->cancelled || streq(json_str(c, "reason"), "Cancelled");
        f->plain = is_true(status, "ExecutionJobCreated");
}

/* Which pod measured it is in the metrics. */
static void show_output(struct arena *a, struct json *data, const struct data_map *map)
{
        json_set(a, data, RUN_KEY_POD, json_string(a, arena_printf(a, "pod-%d", map->output)));
        json_set(a, data, CUDA_SUMMARY_KEY,
                 json_string(a, arena_printf(a,
                                             "{\"boundType\": \"memory-bound\", \"metrics\": "
                                             "{\"smThroughput\": \"pod-%d\"}}",
                                             map->output)));
}

/* ---- the Jobs */

static void read_job(const struct json *job, struct op *op)
{
        const struct json *pod = json_at(json_at(json_at(job, "spec"), "template"), "spec");
        const struct json *stage = json_find_named(json_at(pod, "initContainers"), "stage-workload");

        op->spec = spec_of_image(json_str(stage ? stage : json_first(json_at(pod, "containers")), "image"));
}

/* ---- profiles */

/* The text has all but what the server adds. */
static struct json *show_profile(struct model *m, struct arena *a, const struct product_part *p)
{
        struct json *o = json_parse(a, str_of(m->statuses.v[p->text].text), NULL, NULL);
        struct json *meta = show_meta(m, a, m->subject->product, "profile", p->uid, p->owner);
        const struct json *labels = json_at(json_at(o, "metadata"), "labels");

        if (labels)
                json_set(a, meta, "labels", json_copy(a, labels));
        json_set(a, o, "metadata", meta);
        if (p->status)
                json_set(a, o, "status", json_parse(a, str_of(m->statuses.v[p->status].text), NULL, NULL));
        return o;
}

static void read_profile(struct model *m, const struct must_exist *e, struct op *op)
{
        const char *measured = json_str(json_at(e->status, "metrics"), "smThroughput");

        op->text = status_number(m, e->json);
        op->status = e->status ? status_number(m, e->status) : 0;
        op->pod = uid_number(measured);
        op->spec = spec_of_image(json_str(json_at(e->json, "spec"), "workloadImage"));
}

static void make_own(struct model *m, struct product_part *p)
{
        struct json *o = json_build(&m->scratch,
                                    "{'apiVersion': %s, 'kind': %s, 'metadata': {'name': %s}, "
                                    "'spec': {'workloadImage': 'whatever'}}",
                                    kube_api_version(&WORKLOADPROFILE, &m->scratch), WORKLOADPROFILE.kind,
                                    m->subject->product);

        *p = (struct product_part){.uid = 99, .text = status_number(m, o)};
        if (!m->scenario->own_product)
                return; /* a server does not take the status of what is made */
        p->status = status_number(
                m, json_build(&m->scratch, "{'boundType': 'compute-bound', 'metrics': {'mine': '1'}}"));
}

/* Another experiment's, of the workload as it is before it is edited. */
static struct json *show_other(struct model *m, struct arena *a)
{
        struct view v = {.request = json_build(a, "{'spec': %p}", (void *)show_spec(a, 0)), .arena = a};
        struct cuda_spec spec;
        const char *hash;

        cuda_spec_read(&v, &spec);
        hash = cuda_workload_hash(&v, &spec);
        return json_build(
                a,
                "{'apiVersion': %s, 'kind': %s, 'metadata': {'namespace': 'ns', 'name': "
                "'other-profile', 'uid': 'profile-98', 'labels': {'" CUDA_LABEL_WORKLOAD
                "': %s}, 'ownerReferences': "
                "[{'kind': 'CUDAExperiment', 'name': 'other', 'uid': 'request-99', 'controller': "
                "%p}]}, 'spec': {'workloadImage': %s, 'sourceCudaExperiment': 'other', "
                "'workloadHash': %s}, 'status': {'boundType': 'mixed', 'metrics': {}, 'workloadHash': %s}}",
                kube_api_version(&WORKLOADPROFILE, a), WORKLOADPROFILE.kind, hash,
                (void *)json_truth(a, true), spec.image, hash, hash);
}

static struct json *show_node(struct arena *a, const char *name, const char *product)
{
        return json_build(
                a,
                "{'metadata': {'name': %s, 'labels': {'nvidia.com/gpu.present': 'true', "
                "'nvidia.com/gpu.product': %s}}, 'status': {'allocatable': {'nvidia.com/gpu': '1'}}}",
                name, product);
}

/* What tells how busy the node is; it cannot be reached. */
static struct json *show_exporter(struct arena *a)
{
        return json_build(
                a, "{'metadata': {'name': 'exporter', 'labels': {'app': 'nvidia-dcgm-exporter'}}, 'spec': "
                   "{'nodeName': 'n'}, 'status': {'phase': 'Running', 'podIP': '10.0.0.7', "
                   "'conditions': [{'type': 'Ready', 'status': 'True'}]}}");
}

static struct json *show_list(struct model *m, struct arena *a, const struct kube_type *type,
                              const struct product_part *p)
{
        struct json *list = json_array(a);

        if (type == &KUBE_NODE) {
                json_append(list, show_node(a, "n", "Tesla-T4"));
                json_append(list, show_node(a, "o", "NVIDIA-H100-80GB-HBM3"));
        } else if (type == &KUBE_POD) {
                json_append(list, show_exporter(a));
        } else if (type == &WORKLOADPROFILE) {
                json_append(list, show_other(m, a));
                if (p->uid)
                        json_append(list, show_profile(m, a, p));
        }
        return list;
}

/* ---- what must be true */

static const char *judge_conditions(const struct json *old, const struct json *new)
{
        unsigned n = is_true(new, "ProfilingPending") + is_true(new, "ProfilingRunning") +
                     is_true(new, "ProfilingCompleted");
        bool failed = streq(json_str(new, "phase"), "Failed");

        if (n > 1)
                return "two of ProfilingPending, ProfilingRunning and ProfilingCompleted are True";
        if (is_true(new, "Failed") && !failed)
                return "Failed is True in another phase";
        if (is_true(new, "Ready") != streq(json_str(new, "phase"), "Succeeded"))
                return "Ready does not go with the phase";
        if (failed && !is_true(new, "Stalled"))
                return "the phase is Failed, and Stalled does not say why";
        return NULL;
}

/* As the server has it; NULL: there is none. */
static const struct job *execution_job(const struct model *m, const struct state *s)
{
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);

        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (!jobs->v[i].attempt && jobs->v[i].owner == PART(m, s, request_part, REQUEST).uid)
                        return &jobs->v[i];
        return NULL;
}

static void judge_written(struct model *m, const struct state *s, const struct facts *is)
{
        const struct job *job = execution_job(m, s);
        const struct facts *was = facts_of(m, s);

        if (is->plain && !s->plain)
                model_wrong(m, "ExecutionJobCreated is True, and it never was");
        if (s->excused & EXCUSED_RUN)
                return;
        if (was->state == EXECUTING && (is->state == PENDING || is->state == PROFILING) && job)
                model_wrong(m, "the phase goes back, and the execution Job is there");
        if (is->state == SUCCEEDED && !(s->plain & PLAIN_SUCCEEDED))
                model_wrong(m, "the experiment has succeeded, and the execution Job has not");
}

/* The profile that the execution Job is made for. */
static bool profile_fits(const struct model *m, const struct state *s, const struct job *job)
{
        const struct product_part *p = &PART(m, s, product_part, PRODUCT);
        uint8_t spec = PART(m, s, request_part, REQUEST).spec;

        if ((spec & SPEC_NO_PROFILING) || (p->uid && !p->owner))
                return true;
        if ((spec & SPEC_REUSE) && !job->spec)
                return true;
        return p->uid && p->status && p->spec == job->spec && (!s->success || p->of == s->success);
}

static void judge_execution_created(struct model *m, const struct state *s, const struct job *job)
{
        const struct facts *f = facts_of(m, s);
        bool lost = s->excused & EXCUSED_RUN;

        /* One that somebody deletes before it was seen is made again: that it was made is only known from seeing it. */
        if (f->plain || ((s->jobs_made & 1U) && !lost))
                model_wrong(m, "the execution Job is made twice");
        if ((s->plain & PLAIN_SUCCEEDED) && !(s->plain & PLAIN_LOST) && !lost)
                model_wrong(m, "the execution Job is made again after it has succeeded");
        if (f->suspended || f->cancelled || f->failed)
                model_wrong(m, "the execution Job is made after the end, or a suspension");
        if (!(s->excused & EXCUSED_PRODUCT) && !profile_fits(m, s, job))
                model_wrong(m, "the execution Job is made before its profile");
}

/* There was never anything to be profiled. */
static bool needs_no_profiling(const struct model *m, const struct state *s, const struct job *job)
{
        const struct scenario *x = m->scenario;

        return (x->spec & SPEC_NO_PROFILING) || ((x->spec & SPEC_REUSE) && !job->spec) ||
               (x->own_product && PART(m, s, product_part, PRODUCT).uid == m->own.uid);
}

static void judge_created(struct model *m, const struct state *s, const struct job *job)
{
        if (!job->attempt)
                judge_execution_created(m, s, job);
        else if (needs_no_profiling(m, s, job))
                model_wrong(m, "what needs no profile is profiled");
}

/* What somebody has made for himself stays as it is; what a pod has measured is not mixed with another's. */
static void judge_profile(struct model *m, const struct state *s)
{
        const struct product_part *p = &PART(m, s, product_part, PRODUCT);

        if (p->uid && !p->owner && (p->text != m->own.text || p->status != m->own.status))
                model_wrong(m, "a profile that somebody made for himself is written");
}

static const char *judge_measured(const struct model *m, const struct state *s, const struct facts *f)
{
        const struct product_part *p = &PART(m, s, product_part, PRODUCT);
        bool invalid = f->refused && (PART(m, s, request_part, REQUEST).spec & SPEC_DISTRIBUTED);

        if (!s->success || s->excused || f->cancelled)
                return NULL;
        if ((f->suspended || invalid) && PART(m, s, maps_part, MAPS).data.output == s->success)
                return NULL; /* it is made when it goes on */
        if (!p->uid || !p->status || p->of != s->success)
                return "what was measured is not in the profile";
        return NULL;
}

static const char *judge_phase(const struct model *m, const struct state *s, const struct facts *f)
{
        const struct request_part *r = &PART(m, s, request_part, REQUEST);
        const struct job *job = execution_job(m, s);
        const char *why = judge_measured(m, s, f);

        if (why)
                return why;
        /* What is changed while it is suspended is accepted when it goes on. */
        if (f->observed != r->generation && !f->refused && !f->cancelled &&
            !((r->spec & SPEC_SUSPEND) && (r->spec & SPEC_EDITED)))
                return "the spec as it is now is neither accepted nor refused";
        if (job && job->spec != (r->spec & SPEC_EDITED) && !f->refused && !f->cancelled)
                return "another workload than the one that is executed is not refused";
        /* What was begun with another spec and has no Job yet cannot be made of this one: it must be fixed. */
        if ((r->spec & SPEC_DISTRIBUTED) && f->refused && !anything_runs(m, s))
                return NULL;
        if (f->state == SUCCEEDED || f->state == FAILED)
                return judge_rest(m, s);
        if (f->state == SUSPENDED && f->suspended && (r->spec & SPEC_SUSPEND))
                return anything_runs(m, s) ? "something runs while the request is suspended" : NULL;
        return "the phase is not final, and nothing is left to happen";
}

const struct subject cuda_subject = {
        .controller = controller,
        .crd = "deploy/crds/cudaexperiments.yaml",
        .state = "phase",
        .states = phases,
        .n_states = ARRAY_LEN(phases),
        .next = next,
        .job = "r-profiling",
        .status_map = "r-profile-status",
        .data_map = "r-profile-summary",
        .access = "r-profiling",
        .product = "r-profile",
        .product_type = &WORKLOADPROFILE,
        .owned = true,
        .renews = true,
        .longer = true,
        .toggles = true,
        .invalid = SPEC_DISTRIBUTED,
        .timeout_in = "profiling",
        .container = "profiling-runner",
        .plain = "execution",
        .edited = "another image",
        .own = "profilingEnabled",
        .story = "the profile",
        .read_facts = read_facts,
        .show_spec = show_spec,
        .show_output = show_output,
        .show_product = show_profile,
        .show_list = show_list,
        .read_job = read_job,
        .read_product = read_profile,
        .make_own = make_own,
        .judge_status = judge_conditions,
        .judge_written = judge_written,
        .judge_created = judge_created,
        .judge_state = judge_profile,
        .judge_settled = judge_phase,
};
