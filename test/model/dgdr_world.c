/*
 * What is a DynamoGraphDeploymentRequest's own: the product is the deployment.
 */
#include "model/dgdr_world.h"
#include "model/verdict.h"

#include "kinds/dgdr/dgdr.h"

enum { STATE_NEW, STATE_PENDING, STATE_PROFILING, STATE_DEPLOYING, STATE_READY, STATE_FAILED, STATE_DELETED };

static const char *const states[] = {"",      "Pending", "Profiling",        "Deploying",
                                     "Ready", "Failed",  "DeploymentDeleted"};

static const unsigned next[] = {
        [STATE_NEW] = 1 << STATE_PENDING | 1 << STATE_FAILED,
        [STATE_PENDING] = 1 << STATE_PENDING | 1 << STATE_PROFILING | 1 << STATE_READY |
                          1 << STATE_DEPLOYING | 1 << STATE_FAILED,
        [STATE_PROFILING] = 1 << STATE_PROFILING | 1 << STATE_PENDING | 1 << STATE_READY |
                            1 << STATE_DEPLOYING | 1 << STATE_FAILED,
        [STATE_DEPLOYING] = 1 << STATE_DEPLOYING | 1 << STATE_READY | 1 << STATE_FAILED | 1 << STATE_DELETED,
        [STATE_READY] = 1 << STATE_READY | 1 << STATE_DEPLOYING | 1 << STATE_DELETED,
        [STATE_FAILED] = 1 << STATE_FAILED,
        [STATE_DELETED] = 1 << STATE_DELETED,
};

static struct controller controller(void)
{
        static const struct dgdr_settings settings = {.pod_image = "sonde-pod:1"};

        return dgdr_controller(&settings);
}

static void read_facts(const struct json *status, struct facts *f)
{
        f->final = f->state >= STATE_FAILED;
        f->made = json_bool(json_at(status, "deployment"), "created", false);
}

static struct json *show_spec(struct arena *a, uint8_t bits)
{
        struct json *spec = json_build(a,
                                       "{'model': %s, 'backend': 'vllm', 'profilingConfig': "
                                       "{'profilerImage': 'profiler:1', 'config': {'sla': {'ttft': 50}}}}",
                                       bits & SPEC_EDITED ? "another" : "model");

        if (bits & SPEC_AUTO_APPLY)
                json_set(a, spec, "autoApply", json_truth(a, true));
        return spec;
}

static void show_output(struct arena *a, struct json *data, const struct data_map *map)
{
        json_set(a, data, "config_with_planner.yaml",
                 json_string(a, arena_printf(a,
                                             "apiVersion: nvidia.com/v1alpha1\n"
                                             "kind: DynamoGraphDeployment\n"
                                             "metadata:\n  name: whatever\n"
                                             "spec:\n  services:\n    Frontend:\n      replicas: 1\n"
                                             "      componentType: pod-%d\n",
                                             map->output)));
}

/* ---- the deployment */

static struct json *show_deployment(struct model *m, struct arena *a, const struct product_part *p)
{
        struct json *o = json_build(
                a,
                "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', 'metadata': %p, "
                "'status': {'state': %s}}",
                (void *)show_meta(m, a, m->subject->product, "dgd", p->uid, 0),
                p->good ? "successful" : "pending");

        json_set(a, json_at(json_at(o, "metadata"), "labels"), DECIDE_LABEL_REQUEST,
                 json_string(a, arena_printf(a, "request-%d", p->owner)));
        return o;
}

static void read_deployment(struct model *m, const struct must_exist *e, struct op *op)
{
        const struct json *front = json_at(json_at(json_at(e->json, "spec"), "services"), "Frontend");

        op->pod = uid_number(json_str(front, "componentType"));
}

static bool deploy(struct product_part *p)
{
        bool was_good = p->good;

        p->good = 1;
        return !was_good;
}

/* ---- what must be true */

static void judge_deployment(struct model *m, const struct state *s)
{
        const struct product_part *p = &PART(m, s, product_part, PRODUCT);

        if (p->uid && p->owner == PART(m, s, request_part, REQUEST).uid && s->success && !s->excused &&
            p->of != s->success)
                model_wrong(m, "the deployment is of pod-%d, and pod-%d recorded the success", p->of,
                            s->success);
}

static const char *judge_outcome(const struct model *m, const struct state *s, const struct facts *f)
{
        bool applies = PART(m, s, request_part, REQUEST).spec & SPEC_AUTO_APPLY;
        const char *why = judge_run_settled(m, s, f);

        if (why)
                return why;
        if (f->outcome == OUTCOME_SUCCEEDED && !f->final &&
            (f->state != STATE_READY || (applies && !PART(m, s, product_part, PRODUCT).uid)))
                return "the run has succeeded, and the request is not ready";
        if (f->outcome == OUTCOME_FAILED && !f->final)
                return "the run has failed, and the request has not";
        return NULL;
}

const struct subject dgdr_subject = {
        .controller = controller,
        .crd = "deploy/crds/dynamographdeploymentrequests.yaml",
        .state = "state",
        .states = states,
        .n_states = ARRAY_LEN(states),
        .next = next,
        .job = "profile-r",
        .status_map = "dgdr-status-r",
        .data_map = "dgdr-output-r",
        .access = "profile-r",
        .product = "r-dgd",
        .product_type = &DGD,
        .container = "profiler",
        .edited = "another model",
        .own = "autoApply",
        .story = "the deployment",
        .read_facts = read_facts,
        .show_spec = show_spec,
        .show_output = show_output,
        .show_product = show_deployment,
        .read_product = read_deployment,
        .product_turns = deploy,
        .judge_state = judge_deployment,
        .judge_settled = judge_outcome,
};
