/*
 * What is an AlgorithmProfiling's and an AlgorithmComparison's own: no product but the results in the status; several pods, one
 * after another; and a request that goes by itself some time after its end.
 */
#include "model/algorithm_world.h"
#include "model/verdict.h"

#include "kinds/algorithm/internal.h"

enum { TTL = 100 /* seconds */, TWO = 2 };
enum { NEW, PENDING, RUNNING, COMPLETED, FAILED, CANCELLED };

static const char *const phases[] = {"", "Pending", "Running", "Completed", "Failed", "Cancelled"};

/* A refused request that is cancelled has never run; judge_final() has the rest. */
static const unsigned next[] = {
        [NEW] = 1 << PENDING | 1 << FAILED | 1 << CANCELLED,
        [PENDING] = 1 << PENDING | 1 << RUNNING | 1 << COMPLETED | 1 << FAILED | 1 << CANCELLED,
        [RUNNING] = 1 << RUNNING | 1 << PENDING | 1 << COMPLETED | 1 << FAILED | 1 << CANCELLED,
        [COMPLETED] = 1 << COMPLETED,
        [FAILED] = 1 << FAILED | 1 << PENDING | 1 << CANCELLED,
        [CANCELLED] = 1 << CANCELLED,
};

static const struct algorithm_settings settings = {.pod_image = "sonde-pod:1", .ml_image = "sonde-ml:1"};

static struct controller profilings(void)
{
        return algorithm_profiling_controller(&settings);
}

static struct controller comparisons(void)
{
        return algorithm_comparison_controller(&settings);
}

/* ---- the request */

static const char *algorithm_of(uint8_t spec)
{
        return spec & SPEC_UNKNOWN ? "no_such_sort" : spec & SPEC_EDITED ? "merge_sort" : "quick_sort";
}

static void add_common(struct arena *a, struct json *spec, uint8_t bits)
{
        if (bits & SPEC_TWO_PODS)
                json_set(a, spec, "pods", json_i64(a, TWO));
        if (bits & SPEC_TTL)
                json_set(a, spec, "ttlSecondsAfterFinished", json_i64(a, TTL));
}

static struct json *show_profiling(struct arena *a, uint8_t bits)
{
        struct json *spec = json_build(
                a, "{'algorithmName': %s, 'algorithmType': 'sorting', 'inputSize': 10, 'iterations': 3}",
                algorithm_of(bits));

        add_common(a, spec, bits);
        return spec;
}

static struct json *show_comparison(struct arena *a, uint8_t bits)
{
        struct json *spec = json_build(a,
                                       "{'algorithms': [{'name': %s, 'type': 'sorting'}, {'name': "
                                       "'heap_sort', 'type': 'sorting'}], 'inputSize': 10, 'iterations': 3}",
                                       algorithm_of(bits));

        add_common(a, spec, bits);
        return spec;
}

static void read_facts(const struct json *status, struct facts *f)
{
}

static uint8_t turns(uint8_t spec)
{
        return spec & SPEC_TWO_PODS ? TWO : 1;
}

/* ---- what a pod leaves; which one it was is in the count of its iterations */

static struct json *measured(struct arena *a, const struct data_map *map)
{
        return json_build(
                a,
                "{'name': %s, 'type': 'sorting', 'size': 10, 'n': 3, 'invalid': 0, 'iterations': %d, "
                "'executionTime': 0.5, 'memoryUsage': 2, 'cpuUsage': 99, 'statistics': {'time': "
                "{'median': 0.5, 'ciLow': 0.4, 'ciHigh': 0.6}}}",
                algorithm_of(map->spec), map->output);
}

static void show_output(struct arena *a, struct json *data, const struct data_map *map)
{
        struct json *result = json_build(a, "{'morePods': %d}", map->more);

        if (!map->more)
                result = json_build(a,
                                    "{'version': 1, 'unit': 'pod', 'contended': %p, 'pods': %d, 'machine': "
                                    "{'cpu': 'x'}, 'algorithms': [%p]}",
                                    (void *)json_truth(a, false), map->turns, (void *)measured(a, map));
        json_set(a, data, RUN_KEY_POD, json_string(a, arena_printf(a, "pod-%d", map->output)));
        json_set(a, data, RUN_KEY_RESULT, json_string(a, json_print(a, result)));
}

/* ---- the Job */

static bool holds(const struct json *list, const char *words)
{
        json_foreach (text, list)
                if (json_cstr(text) && strstr(json_cstr(text), words))
                        return true;
        return false;
}

static void read_job(const struct json *job, struct op *op)
{
        const struct json *pod = json_at(json_at(json_at(job, "spec"), "template"), "spec");
        const struct json *c = json_find_named(json_at(pod, "containers"), "algorithm");

        static const uint8_t specs[] = {0, SPEC_EDITED, SPEC_UNKNOWN};

        for (size_t i = 0; i < ARRAY_LEN(specs); i++)
                if (holds(json_at(c, "command"), algorithm_of(specs[i])) ||
                    holds(json_at(c, "args"), algorithm_of(specs[i])))
                        op->spec = specs[i];
}

/* ---- what must be true */

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

static bool has_ended(const struct facts *f)
{
        return f->state == COMPLETED || f->state == FAILED || f->state == CANCELLED;
}

static const char *judge_conditions(const struct json *old, const struct json *new)
{
        const char *was = json_str(old, "phase"), *is = json_str(new, "phase");
        bool completed = streq(is, "Completed"), failed = streq(is, "Failed"),
             cancelled = streq(is, "Cancelled");

        if (streq(was, "Failed") && cancelled && json_at(json_at(old, "run"), "outcome"))
                return "a failure becomes a cancellation";
        if (is_true(new, "Ready") != completed)
                return "Ready does not go with the phase";
        if (is_true(new, "Stalled") != (failed || cancelled))
                return "Stalled does not go with the phase";
        if ((completed || failed || cancelled) != (json_at(new, "completionTime") != NULL))
                return "completionTime does not go with the phase";
        if (streq(was, is) && (completed || cancelled) &&
            !json_equal(json_at(old, "completionTime"), json_at(new, "completionTime")))
                return "completionTime changes after the end";
        if (json_at(new, "results") && !completed && !failed)
                return "there are results before the end";
        if (completed && !json_at(new, "results"))
                return "it is completed, and has no results";
        return NULL;
}

static void judge_written(struct model *m, const struct state *s, const struct facts *is)
{
        const struct data_map *data = &PART(m, s, maps_part, MAPS).data;
        const struct facts *was = facts_of(m, s);

        if (!m->scenario->mishaps && is->outcome == OUTCOME_SUCCEEDED && !was->outcome && data->more)
                model_wrong(m, "the run ends, and there are pods left");
        if (!s->excused && is->state == COMPLETED && !data->output)
                model_wrong(m, "it is completed, and nothing was measured");
        if (is->cancelled != (is->state == CANCELLED) && has_ended(is))
                model_wrong(m, "Cancelled does not go with the phase");
        if (m->scenario->mishaps == 1U << MISHAP_OOM && is->retries)
                model_wrong(m, "what ran out of memory is tried again");
        if (is->state == COMPLETED && was->state != COMPLETED && is->outcome != OUTCOME_SUCCEEDED)
                model_wrong(m, "it is completed, and the run has not succeeded");
}

/* An attempt after a success is the next pod, and there is something left for it. */
static void judge_created(struct model *m, const struct state *s, const struct job *job)
{
        const struct data_map *data = &PART(m, s, maps_part, MAPS).data;

        if (job->spec & SPEC_UNKNOWN)
                model_wrong(m, "a Job is made for an algorithm that there is none of");
        if (data->output && !data->more && data->spec == job->spec && !s->excused && s->success)
                model_wrong(m, "a Job is made when all pods have measured");
}

static void judge_deleted(struct model *m, const struct state *s, const struct facts *f)
{
        const struct json *status = json_parse(&m->scratch, str_of(f->text), NULL, NULL);
        struct str text = json_text(json_at(status, "completionTime"));
        usec_t ended;

        if (!(PART(m, s, request_part, REQUEST).spec & SPEC_TTL))
                model_wrong(m, "a request is deleted that has no time to live");
        else if (!has_ended(f) || !text.p || !time_parse(text, &ended))
                model_wrong(m, "a request is deleted that has not ended");
        else if (NOON + s->now * USEC_PER_SEC < ended + TTL * USEC_PER_SEC)
                model_wrong(m, "a request is deleted too early");
}

/* The pod that the results are of. */
static int64_t measured_in(const struct model *m, const struct facts *f)
{
        struct arena a = ARENA_INIT;
        const struct json *results = json_at(json_parse(&a, str_of(f->text), NULL, NULL), "results");
        int64_t pod = json_int(json_is(results, JSON_ARRAY) ? json_first(results) : results, "iterations", 0);

        arena_done(&a);
        return pod;
}

static const char *judge_spec(const struct request_part *r, const struct facts *f)
{
        /* What is changed while it is suspended is accepted when it goes on. */
        if (f->observed == r->generation || f->refused || ((r->spec & SPEC_SUSPEND) && !has_ended(f)))
                return NULL;
        return "the spec as it is now is neither accepted nor refused";
}

static const char *judge_end(const struct model *m, const struct state *s, const struct facts *f)
{
        const struct request_part *r = &PART(m, s, request_part, REQUEST);
        bool refused = f->state == FAILED && !f->outcome && (r->spec & SPEC_UNKNOWN);
        bool lost = f->outcome && (s->excused & EXCUSED_RUN);
        const char *why = refused || lost ? judge_rest(m, s) : judge_run_settled(m, s, f);

        /* What was begun with another spec and has no Job yet cannot be made of this one: somebody must mend it. */
        if ((r->spec & SPEC_UNKNOWN) && f->refused && !has_ended(f) && !anything_runs(m, s))
                return NULL;
        if (why)
                return why;
        if (f->outcome && !has_ended(f))
                return "the run has ended, and the request has not";
        if (f->state == COMPLETED && !s->excused &&
            measured_in(m, f) != PART(m, s, maps_part, MAPS).data.output)
                return "what was measured last is not in the results";
        if (s->success && f->outcome == OUTCOME_SUCCEEDED && f->state != COMPLETED && !s->excused)
                return "the run has succeeded, and the request is not completed";
        if ((r->spec & SPEC_CANCEL) && !has_ended(f))
                return "the request is not cancelled";
        if (has_ended(f) && (r->spec & SPEC_TTL))
                return "a request has ended, and stays";
        return judge_spec(r, f);
}

#define COMMON                                                                                              \
        .state = "phase", .states = phases, .n_states = ARRAY_LEN(phases), .next = next,                    \
        .job = "dprofiler-r", .revives = true, .toggles = true, .container = "algorithm",                   \
        .edited = "another algorithm", .own = "an algorithm that there is none of, or back",                \
        .story = "the product", .read_facts = read_facts, .show_output = show_output, .read_job = read_job, \
        .turns = turns, .judge_status = judge_conditions, .judge_written = judge_written,                   \
        .judge_created = judge_created, .judge_deleted = judge_deleted, .judge_settled = judge_end

const struct subject profiling_subject = {
        COMMON,
        .controller = profilings,
        .crd = "deploy/crds/algorithmprofilings.yaml",
        .status_map = "r-run-status",
        .data_map = "r-run-results",
        .access = "dprofiler-r",
        .show_spec = show_profiling,
};

const struct subject comparison_subject = {
        COMMON,
        .controller = comparisons,
        .crd = "deploy/crds/algorithmcomparisons.yaml",
        .status_map = "r-comparison-run-status",
        .data_map = "r-comparison-run-results",
        .access = "dprofiler-r-comparison",
        .show_spec = show_comparison,
};
