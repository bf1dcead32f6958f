/*
 * What is a TestRun's own: a timeout, a limit on retries, and a Job that retries by itself. The result is the pod that left it.
 */
#include "model/testrun_world.h"
#include "model/verdict.h"

#include "kinds/testrun.h"

enum { NEW, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED };

static const char *const phases[] = {"", "Pending", "Running", "Suspended", "Succeeded", "Failed"};

static const unsigned next[] = {
        [NEW] = 1 << PENDING | 1 << SUSPENDED | 1 << FAILED,
        [PENDING] = 1 << PENDING | 1 << RUNNING | 1 << SUSPENDED | 1 << SUCCEEDED | 1 << FAILED,
        [RUNNING] = 1 << RUNNING | 1 << PENDING | 1 << SUSPENDED | 1 << SUCCEEDED | 1 << FAILED,
        [SUSPENDED] = 1 << SUSPENDED | 1 << PENDING | 1 << SUCCEEDED | 1 << FAILED,
        [SUCCEEDED] = 1 << SUCCEEDED,
        [FAILED] = 1 << FAILED,
};

static struct controller controller(void)
{
        static const struct testrun_settings settings = {.pod_image = "sonde-pod:1"};

        return testrun_controller(&settings);
}

static struct json *show_spec(struct arena *a, uint8_t bits)
{
        struct json *spec = json_build(a, "{'image': %s, 'command': ['x'], 'deleteStatusMap': %p}",
                                       bits & SPEC_EDITED ? "image:2" : "image:1",
                                       (void *)json_truth(a, true));

        if (bits & SPEC_TIMEOUT)
                json_set(a, spec, "timeout", json_string(a, "60s"));
        if (bits & SPEC_NO_RETRIES)
                json_set(a, spec, "retries", json_i64(a, 0));
        if (bits & (SPEC_BACKOFF | SPEC_BACKOFF_2))
                json_set(a, spec, "backoffLimit", json_i64(a, bits & SPEC_BACKOFF ? 1 : 2));
        return spec;
}

static void read_facts(const struct json *status, struct facts *f)
{
}

static void show_output(struct arena *a, struct json *data, const struct data_map *map)
{
        json_set(a, data, RUN_KEY_RESULT,
                 json_string(a, arena_printf(a, "{\"of\": \"pod-%d\"}", map->output)));
}

static void read_job(const struct json *job, struct op *op)
{
        const struct json *pod = json_at(json_at(json_at(job, "spec"), "template"), "spec");
        const struct json *c = json_find_named(json_at(pod, "containers"), "workload");

        op->spec = streq(json_str(c, "image"), "image:2") ? SPEC_EDITED : 0;
}

/* ---- what must be true */

static const char *judge_phase(const struct json *old, const struct json *new)
{
        const char *phase = json_str(new, "phase"), *outcome = json_str(json_at(new, "run"), "outcome");
        bool over = streq(phase, "Succeeded") || streq(phase, "Failed");

        if (outcome ? !streq(phase, outcome) : over)
                return "the phase does not go with the outcome";
        if (streq(phase, "Failed") && !(json_str(new, "reason") && json_str(new, "message")))
                return "a failure has no reason or no message";
        if (json_at(json_at(old, "run"), "outcome") &&
            !json_equal(json_at(old, "progress"), json_at(new, "progress")))
                return "the progress changes after the end";
        if (json_at(new, "queue") && !streq(phase, "Pending"))
                return "a request is told its place, and is not Pending";
        return NULL;
}

/* One of the pods of the attempt's Job has ended well by itself. */
static bool workload_ended_well(const struct model *m, const struct state *s, uint8_t name)
{
        const struct jobs_part *jobs = &PART(m, s, jobs_part, JOBS);
        const struct pods_part *pods = &PART(m, s, pods_part, PODS);

        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++) {
                const struct pod *p = &pods->v[i];
                const struct job *j = job_by_uid(jobs, p->job);

                if (j && j->name == name && p->work == WORK_ENDED && !p->code && !p->asked && !p->evicted)
                        return true;
        }
        return false;
}

static void judge_written(struct model *m, const struct state *s, const struct facts *is)
{
        if (is->outcome && !is->cancelled && !s->excused && !(s->jobs_made & 1U << is->attempt))
                model_wrong(m, "an attempt has ended that never had a Job");
        if (is->outcome == OUTCOME_FAILED && !is->cancelled && !is->timed_out && !s->excused &&
            workload_ended_well(m, s, is->job))
                model_wrong(m, "a run whose workload has ended well is told as a failure");
}

/* The pod that the outcome is of has left a result, and the status does not have it. */
static bool is_result_lost(const struct facts *f, uint8_t output)
{
        struct arena a = ARENA_INIT;
        const struct json *status = json_parse(&a, str_of(f->text), NULL, NULL);
        uint8_t pod = uid_number(json_str(json_at(status, "progress"), "podUID"));
        bool lost = output && pod == output &&
                    uid_number(json_str(json_at(status, "result"), "of")) != output;

        arena_done(&a);
        return lost;
}

static const char *judge_end(const struct model *m, const struct state *s, const struct facts *f)
{
        const struct request_part *r = &PART(m, s, request_part, REQUEST);
        bool lost = f->outcome && (s->excused & EXCUSED_RUN);
        const char *why = lost ? judge_rest(m, s) : judge_run_settled(m, s, f);

        if (why)
                return why;
        if (f->outcome == OUTCOME_SUCCEEDED && !s->excused &&
            is_result_lost(f, PART(m, s, maps_part, MAPS).data.output))
                return "what was measured last is not in the status";
        if ((r->spec & SPEC_CANCEL) && !f->outcome)
                return "the request is not cancelled";
        if (!f->outcome && (r->spec & SPEC_SUSPEND))
                return NULL; /* what is changed while it is suspended is accepted when it goes on */
        if (f->observed != r->generation && !f->refused)
                return "the spec as it is now is neither accepted nor refused";
        if (f->attempt && (f->observed == r->generation) != ((r->spec & SPEC_EDITED) == s->begun))
                return f->observed == r->generation ? "a spec that was not run is accepted"
                                                    : "a spec that was run is refused";
        return NULL;
}

const struct subject testrun_subject = {
        .controller = controller,
        .crd = "test/kinds/crd.yaml",
        .state = "phase",
        .states = phases,
        .n_states = ARRAY_LEN(phases),
        .next = next,
        .job = "r-run",
        .status_map = "r-run-status",
        .data_map = "r-run-results",
        .access = "r-run",
        .container = "workload",
        .edited = "another image",
        .own = "a timeout",
        .story = "the product",
        .read_facts = read_facts,
        .show_spec = show_spec,
        .show_output = show_output,
        .read_job = read_job,
        .judge_status = judge_phase,
        .judge_written = judge_written,
        .judge_settled = judge_end,
};
