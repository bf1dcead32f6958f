/*
 * A CUDAExperiment from its creation to its end: phases, conditions, and what people do to it on the way.
 */
#include "unit/cuda_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, experiment_setup, flow_teardown)
#define PLAIN      "'image': 'i', 'command': ['/a'], 'placement': {'mode': 'none'}"
#define PROFILED   PLAIN ", 'profilingEnabled': true"
#define SUMMARY    "{'boundType': 'memory-bound', 'metrics': {'smThroughput': '12.56'}}"
#define COLLECTING "{'phase': 'Collecting', 'message': 'm'}"

static void assert_message(const struct json *status, const char *type, const char *message)
{
        assert_string_equal(message_of(status, type), message);
}

/* An experiment whose profiling Job is there. */
static void profiling_begins(struct flow *f, const char *spec)
{
        experiment(&f->rig, spec, NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Profiling");
        assert_non_null(there(f, &KUBE_JOB, "r-profiling"));
}

static void profiling_ends(struct flow *f, const char *spec)
{
        profiling_begins(f, spec);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_succeeds(f, "r-profiling", 1, SUMMARY);
        come_to_rest(f);
}

/* An experiment whose execution Job is there. */
static void execution_begins(struct flow *f, const char *spec)
{
        experiment(&f->rig, spec, NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Executing");
        assert_non_null(there(f, &KUBE_JOB, "r-execution"));
}

static void execution_succeeds(struct flow *f)
{
        pod_says(f, "r-execution", CONTAINER_ENDS("execution", "Succeeded", "0"));
        job_says(f, "r-execution", "{'succeeded': 1, " JOB_COMPLETE "}");
}

/* ---- the flow */

static void without_profiling_it_is_executed_at_once(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        execution_begins(f, PLAIN);
        status = status_now(&f->rig);
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_null(there(f, &WORKLOADPROFILE, "r-profile"));
        assert_string_equal(json_str(status, "executionJobName"), "r-execution");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1);
        assert_null(json_at(status, "boundType"));
        execution_succeeds(f);
        come_to_rest(f);
        assert_phase(&f->rig, "Succeeded");
        assert_condition(status_now(&f->rig), "Ready", "True", "Succeeded");
        assert_condition(status_now(&f->rig), "Stalled", "False", "Succeeded");
        assert_int_equal(json_int(json_at(status_now(&f->rig), "execution"), "succeeded", 0), 1);
}

static void the_execution_follows_the_profile_at_once(void **state)
{
        struct flow *f = *state;
        const struct json *status, *profile;

        profiling_ends(f, PROFILED);
        status = status_now(&f->rig);
        assert_phase(&f->rig, "Executing");
        assert_string_equal(json_str(status, "profileName"), "r-profile");
        assert_string_equal(json_str(status, "boundType"), "memory-bound");
        profile = object_json(f, &WORKLOADPROFILE, "r-profile");
        assert_string_equal(json_str(json_at(profile, "status"), "boundType"), "memory-bound");
        assert_string_equal(json_str(json_path(profile, "status.metrics"), "smThroughput"), "12.56");
        assert_non_null(there(f, &KUBE_JOB, "r-execution"));
        assert_non_null(there(f, &KUBE_CONFIGMAP, "r-profile-summary"));
        assert_null(there(f, &KUBE_CONFIGMAP, "r-profile-status")); /* all that it told has been taken over */
        assert_string_equal(json_str(json_at(status, "progress"), "phase"), "Executing");
        execution_succeeds(f);
        come_to_rest(f);
        assert_phase(&f->rig, "Succeeded");
        assert_non_null(there(f, &KUBE_CONFIGMAP, "r-profile-summary"));
}

static void every_phase_is_an_event(void **state)
{
        static const char *const reasons[] = {"Accepted", "Profiling", "Executing", "Succeeded"};
        struct flow *f = *state;

        profiling_ends(f, PROFILED);
        execution_succeeds(f);
        come_to_rest(f);
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                assert_int_equal(count_events(f, reasons[i]), 1);
}

/* The names are written before what they name is made. */
static void nothing_is_made_before_its_name_is_written(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        experiment(r, PLAIN, NULL);
        turn(f);
        assert_string_equal(json_str(status_now(r), "executionJobName"), "r-execution");
        assert_null(there(f, &KUBE_JOB, "r-execution"));
        turn(f);
        assert_non_null(there(f, &KUBE_JOB, "r-execution"));
}

static void the_execution_waits_for_the_profiling_pod_to_end(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_succeeds(f, "r-profiling", 1, SUMMARY);
        /* It has recorded its success, and is not gone yet. */
        job_says(f, "r-profiling", "{'active': 1}");
        pod_says(f, "r-profiling", CONTAINER_RUNS("profiling-runner"));
        come_to_rest(f);
        assert_phase(&f->rig, "Profiling");
        assert_null(there(f, &KUBE_JOB, "r-execution"));
        assert_non_null(there(f, &WORKLOADPROFILE, "r-profile"));
        pod_says(f, "r-profiling", CONTAINER_ENDS("profiling-runner", "Succeeded", "0"));
        job_says(f, "r-profiling", "{" JOB_COMPLETE "}");
        come_to_rest(f);
        assert_non_null(there(f, &KUBE_JOB, "r-execution"));
}

/* ---- upstream's conditions, row by row */

static void row_pending(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        profiling_begins(f, PROFILED);
        status = status_now(&f->rig);
        assert_condition(status, "ProfilingPending", "True", "WaitingForProfile");
        assert_message(
                status, "ProfilingPending",
                "Profiling Job \"r-profiling\" exists and is waiting for WorkloadProfile \"r-profile\"");
        assert_null(condition(status, "ProfilingRunning"));
        assert_null(condition(status, "ProfilingCompleted"));
        assert_null(condition(status, "ExecutionJobCreated"));
        assert_null(condition(status, "Failed"));
}

static void row_running(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        status = status_now(&f->rig);
        assert_condition(status, "ProfilingRunning", "True", "ProfilingJobRunning");
        assert_message(status, "ProfilingRunning", "Profiling Job \"r-profiling\" is still running");
        assert_condition(status, "ProfilingPending", "False", "Profiling");
}

static void row_completed(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        profiling_ends(f, PROFILED);
        status = status_now(&f->rig);
        assert_condition(status, "ProfilingCompleted", "True", "ProfilingJobCompleted");
        assert_message(status, "ProfilingCompleted", "Profiling Job \"r-profiling\" completed");
        assert_string_equal(json_str(condition(status, "ProfilingRunning"), "status"), "False");
        assert_string_equal(json_str(condition(status, "ProfilingPending"), "status"), "False");
}

static void row_execution_job_created(void **state)
{
        struct flow *f = *state;

        execution_begins(f, PLAIN);
        assert_condition(status_now(&f->rig), "ExecutionJobCreated", "True", "JobCreated");
        assert_message(status_now(&f->rig), "ExecutionJobCreated", "Execution Job \"r-execution\" exists");
        execution_succeeds(f);
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "ExecutionJobCreated", "True", "JobCreated");
        remove_object(f, uid_of(f, &KUBE_JOB, "r-execution")); /* somebody tidies up */
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "ExecutionJobCreated", "False", "Succeeded");
        assert_phase(&f->rig, "Succeeded");
}

static void row_profiling_job_failed(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_fails(f, "r-profiling", 1,
                       "{'phase': 'Failed', 'message': 'm', 'error': 'no permission', 'reason': "
                       "'CounterPermission'}");
        come_to_rest(f);
        status = status_now(&f->rig);
        assert_phase(&f->rig, "Failed");
        assert_condition(status, "Failed", "True", "ProfilingJobFailed");
        assert_message(status, "Failed", "Profiling Job \"r-profiling\" failed: no permission");
        assert_condition(status, "Stalled", "True", "CounterPermission");
        assert_condition(status, "Ready", "False", "CounterPermission");
        assert_string_equal(json_str(condition(status, "ProfilingRunning"), "status"), "False");
        assert_null(there(f, &KUBE_JOB, "r-execution"));
        assert_int_equal(count_events(f, "CounterPermission"), 1);
}

static void a_summary_fails(struct flow *f, const char *summary, const char *reason, const char *message)
{
        const struct json *status;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_succeeds(f, "r-profiling", 1, summary);
        come_to_rest(f);
        status = status_now(&f->rig);
        assert_phase(&f->rig, "Failed");
        assert_condition(status, "Failed", "True", reason);
        assert_condition(status, "Stalled", "True", reason);
        assert_true(str_has_prefix(str_of(message_of(status, "Failed")), str_of(message)));
        assert_null(condition(status, "ProfilingCompleted"));
        assert_null(there(f, &WORKLOADPROFILE, "r-profile"));
        assert_null(there(f, &KUBE_JOB, "r-execution"));
}

static void row_profile_summary_missing(void **state)
{
        a_summary_fails(*state, NULL, "ProfileSummaryMissing",
                        "Profile summary ConfigMap \"r-profile-summary\" or key \"summary.json\" is missing");
}

static void row_invalid_profile_summary(void **state)
{
        a_summary_fails(
                *state, "{'boundType': 'io-bound'}", "InvalidProfileSummary",
                "Profile summary ConfigMap \"r-profile-summary\" contains invalid \"summary.json\": ");
}

/* ---- profiles of others */

static void add_other(struct flow *f, const char *text)
{
        struct json *j = parse(&f->rig, text);

        *vec_push(&f->others) = (struct object){&WORKLOADPROFILE, j, meta_str(j, "name"), meta_str(j, "uid")};
}

static void a_users_profile_is_honoured_and_never_written(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        add_other(f, "{'metadata': {'name': 'r-profile', 'uid': 'uid-u'}, 'status': {'boundType': "
                     "'compute-bound'}}");
        execution_begins(f, PROFILED);
        status = status_now(&f->rig);
        assert_string_equal(json_str(status, "profileName"), "r-profile");
        assert_string_equal(json_str(status, "boundType"), "compute-bound");
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_null(there(f, &WORKLOADPROFILE, "r-profile"));
        assert_null(condition(status, "ProfilingCompleted"));
}

static void a_users_profile_without_a_result_is_unknown(void **state)
{
        struct flow *f = *state;

        add_other(f, "{'metadata': {'name': 'r-profile', 'uid': 'uid-u'}}");
        execution_begins(f, PROFILED);
        assert_string_equal(json_str(status_now(&f->rig), "boundType"), "unknown");
}

static void an_identical_workloads_profile_is_reused(void **state)
{
        struct flow *f = *state;
        struct cuda_spec spec;
        const char *hash;

        experiment(&f->rig, PROFILED ", 'profiling': {'reuse': true}", NULL);
        spec = spec_of(&f->rig);
        hash = cuda_workload_hash(&f->rig.view, &spec);
        add_other(f, arena_printf(&f->rig.arena,
                                  "{'metadata': {'name': 'other-profile', 'uid': 'uid-o'}, 'spec': "
                                  "{'workloadHash': '%s'}, 'status': {'boundType': 'mixed', "
                                  "'workloadHash': '%s'}}",
                                  hash, hash));
        come_to_rest(f);
        assert_phase(&f->rig, "Executing");
        assert_string_equal(json_str(status_now(&f->rig), "profileName"), "other-profile");
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_null(there(f, &WORKLOADPROFILE, "r-profile"));
}

/* For whoever cannot profile: a profile of one's own is found when anybody looks again. */
static void a_users_profile_helps_after_a_failure(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_fails(f, "r-profiling", 1, "{'phase': 'Failed', 'error': 'e', 'reason': 'NoGPU'}");
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        add_other(f, "{'metadata': {'name': 'r-profile', 'uid': 'uid-u'}, 'status': {'boundType': 'mixed'}}");
        come_to_rest(f);
        assert_phase(&f->rig, "Executing");
        assert_condition(status_now(&f->rig), "Failed", "False", "Executing");
        assert_condition(status_now(&f->rig), "Stalled", "False", "InProgress");
}

/* ---- the spec */

static void a_spec_that_is_wrong_is_told_and_mended(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        experiment(r, PROFILED ", 'distributed': true", NULL);
        come_to_rest(f);
        assert_phase(r, "Failed");
        assert_condition(status_now(r), "Stalled", "True", "Invalid");
        assert_condition(status_now(r), "Failed", "True", "Invalid");
        assert_says(message_of(status_now(r), "Stalled"), "spec.distributed");
        assert_int_equal(json_int(status_now(r), "observedGeneration", 0), 1);
        assert_int_equal(count_events(f, "Invalid"), 1);
        assert_int_equal(r->children.n, 0);
        edit(r, "distributed", NULL);
        come_to_rest(f);
        assert_phase(r, "Profiling");
        assert_condition(status_now(r), "Failed", "False", "Pending");
        assert_condition(status_now(r), "Stalled", "False", "InProgress");
}

static void an_empty_command_is_told_by_its_reason(void **state)
{
        struct flow *f = *state;

        experiment(&f->rig, "'image': 'i', 'command': ['']", NULL);
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "Stalled", "True", "CommandEmpty");
}

static void a_change_before_anything_ran_begins_anew(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        edit(&f->rig, "image", "'j'");
        come_to_rest(f);
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_non_null(there(f, &KUBE_JOB, "r-profiling-2"));
        assert_int_equal(json_int(status_now(&f->rig), "observedGeneration", 0), 2);
}

static void a_change_while_it_is_profiled_is_refused(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        edit(&f->rig, "image", "'j'");
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "SpecAccepted", "False", "SpecChangeRejected");
        assert_int_equal(count_events(f, "SpecChangeRejected"), 1);
        assert_non_null(there(f, &KUBE_JOB, "r-profiling"));
}

/* What was measured is of the old image: the profile is not made, the program is profiled again. */
static void a_change_that_was_refused_counts_after_the_run(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        edit(&f->rig, "image", "'j'");
        come_to_rest(f);
        profiler_succeeds(f, "r-profiling", 1, SUMMARY);
        come_to_rest(f);
        assert_null(there(f, &WORKLOADPROFILE, "r-profile"));
        assert_non_null(there(f, &KUBE_JOB, "r-profiling-2"));
        assert_condition(status_now(&f->rig), "SpecAccepted", "True", "Accepted");
}

static void what_follows_may_be_changed_while_it_is_profiled(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        edit(&f->rig, "replicas", "4");
        edit(&f->rig, "profiling", "{'timeout': '10h', 'set': 'basic', 'launchCount': 20, 'reuse': true}");
        come_to_rest(f);
        assert_null(condition(status_now(&f->rig), "SpecAccepted"));
        profiler_succeeds(f, "r-profiling", 1, SUMMARY);
        come_to_rest(f);
        assert_int_equal(
                json_int(json_at(object_json(f, &KUBE_JOB, "r-execution"), "spec"), "parallelism", 0), 4);
}

static void a_change_after_the_execution_job_was_made_is_refused(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        execution_begins(f, PLAIN);
        edit(r, "replicas", "2");
        come_to_rest(f);
        assert_condition(status_now(r), "SpecAccepted", "False", "SpecChangeRejected");
        assert_int_equal(count_events(f, "SpecChangeRejected"), 1);
        assert_int_equal(json_int(status_now(r), "observedGeneration", 0), 1);
        edit(r, "replicas", "1");
        json_remove(spec_json(r), "replicas");
        come_to_rest(f);
        assert_condition(status_now(r), "SpecAccepted", "True", "Accepted");
        assert_int_equal(json_int(status_now(r), "observedGeneration", 0), 3);
        execution_succeeds(f);
        come_to_rest(f);
        edit(r, "image", "'j'");
        come_to_rest(f);
        assert_phase(r, "Succeeded");
        assert_condition(status_now(r), "SpecAccepted", "False", "SpecChangeRejected");
        assert_int_equal(count_events(f, "SpecChangeRejected"), 2);
}

static void a_change_that_cannot_be_run_is_refused_as_that(void **state)
{
        struct flow *f = *state;

        execution_begins(f, PLAIN);
        edit(&f->rig, "distributed", "true");
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "SpecAccepted", "False", "Invalid");
        assert_phase(&f->rig, "Executing");
}

/* After its name was written and before it is made, a change is none of a Job. */
static void a_change_in_the_last_moment_is_profiled(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_succeeds(f, "r-profiling", 1, SUMMARY);
        while (!json_str(status_now(r), "executionJobName"))
                turn(f);
        edit(r, "arguments", "['x']");
        come_to_rest(f);
        assert_null(there(f, &KUBE_JOB, "r-execution"));
        assert_null(json_at(status_now(r), "executionJobName"));
        assert_non_null(there(f, &KUBE_JOB, "r-profiling-2"));
        assert_condition(status_now(r), "ProfilingCompleted", "False", "Pending");
        profiler_runs(f, "r-profiling-2", 2, COLLECTING);
        come_to_rest(f);
        profiler_succeeds(f, "r-profiling-2", 2, "{'boundType': 'mixed'}");
        come_to_rest(f);
        assert_phase(r, "Executing");
        assert_string_equal(json_str(status_now(r), "boundType"), "mixed");
        assert_message(status_now(r), "ProfilingCompleted", "Profiling Job \"r-profiling-2\" completed");
        assert_string_equal(
                json_str(json_path(object_json(f, &WORKLOADPROFILE, "r-profile"), "status"), "boundType"),
                "mixed");
}

static void a_failed_experiment_begins_anew_when_it_is_changed(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        profiler_fails(f, "r-profiling", 1, "{'phase': 'Failed', 'error': 'e', 'reason': 'NoGPU'}");
        come_to_rest(f);
        edit(&f->rig, "image", "'j'");
        come_to_rest(f);
        assert_phase(&f->rig, "Profiling");
        assert_non_null(there(f, &KUBE_JOB, "r-profiling-2"));
        assert_condition(status_now(&f->rig), "Failed", "False", "Pending");
}

static void profiling_may_be_switched_off_until_it_runs(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        edit(&f->rig, "profilingEnabled", "false");
        come_to_rest(f);
        assert_phase(&f->rig, "Executing");
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_null(there(f, &KUBE_JOB, "r-profiling-2"));
        assert_non_null(there(f, &KUBE_JOB, "r-execution"));
        assert_null(json_at(status_now(&f->rig), "profileName"));
}

/* ---- what cannot be profiled */

static void a_namespace_that_forbids_it_is_waited_for(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;
        struct answer *a;

        profiling_begins(f, PROFILED);
        r->view.now += 60 * USEC_PER_SEC;
        server_forgets(r);
        a = told(r, WANT_EVENTS, &KUBE_JOB, "r-profiling",
                 "{'items': [{'reason': 'FailedCreate', 'note': 'pods is forbidden: violates PodSecurity: "
                 "must not include SYS_ADMIN in capabilities.add'}]}");
        a->want.uid = uid_of(f, &KUBE_JOB, "r-profiling");
        told(r, WANT_PRIORS, NULL, NULL, NULL);
        decision_done(&r->d);
        cuda_plan(&r->view, &r->d);
        cuda_settle(&r->view, &r->d);
        answer_all(f);
        assert_non_null(decided(r));
        assert_phase(r, "Profiling");
        assert_condition(status_now(r), "Progressing", "False", "ProfilingForbidden");
        assert_says(message_of(status_now(r), "Progressing"), "NVreg_RestrictProfilingToAdminUsers=0");
        assert_says(message_of(status_now(r), "Progressing"), "spec.profiling.permission");
        assert_condition(status_now(r), "Stalled", "False", "InProgress");
}

static void what_cannot_be_staged_has_its_own_reason(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        pod_says(f, "r-profiling",
                 "{'phase': 'Failed', 'initContainerStatuses': [{'name': 'stage-workload', 'state': "
                 "{'terminated': "
                 "{'exitCode': 1, 'message': 'CommandNotExecutable: /a is not executable'}}}]}");
        job_says(f, "r-profiling", "{" JOB_FAILED("BackoffLimitExceeded") "}");
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "Stalled", "True", "CommandNotExecutable");
        assert_condition(status_now(&f->rig), "Failed", "True", "ProfilingJobFailed");
        assert_says(message_of(status_now(&f->rig), "Failed"), "/a is not executable");
}

static void profiling_has_a_time_limit_of_its_own(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED ", 'profiling': {'timeout': '1m'}");
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        json_set(&f->rig.arena, json_at(object_json(f, &KUBE_POD, "r-profiling-p"), "status"), "startTime",
                 json_string(&f->rig.arena, "2026-11-15T12:00:00Z"));
        come_to_rest(f);
        assert_phase(&f->rig, "Profiling");
        f->rig.view.now += 61 * USEC_PER_SEC;
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "Stalled", "True", "DeadlineExceeded");
        assert_says(message_of(status_now(&f->rig), "Stalled"), "spec.profiling.timeout allows (1m)");
}

/* ---- the execution */

static void a_failed_execution_says_why(void **state)
{
        struct flow *f = *state;
        const struct json *status;

        execution_begins(f, PLAIN);
        pod_says(f, "r-execution", CONTAINER_ENDS("execution", "Failed", "3"));
        job_says(f, "r-execution", "{'failed': 1, " JOB_FAILED("BackoffLimitExceeded") "}");
        come_to_rest(f);
        status = status_now(&f->rig);
        assert_phase(&f->rig, "Failed");
        assert_condition(status, "Failed", "True", "ExecutionJobFailed");
        assert_says(message_of(status, "Failed"), "Execution Job \"r-execution\" failed: the program exited");
        assert_condition(status, "Stalled", "True", "WorkloadFailed");
        assert_says(json_str(json_at(status, "execution"), "message"), "status 3");
        assert_non_null(there(f, &KUBE_JOB, "r-execution")); /* its log is of use */
        edit(&f->rig, "image", "'j'");
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "SpecAccepted", "False", "SpecChangeRejected");
}

static void a_deleted_execution_is_never_made_twice(void **state)
{
        struct flow *f = *state;

        execution_begins(f, PLAIN);
        remove_object(f, uid_of(f, &KUBE_JOB, "r-execution"));
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "Failed", "True", "JobDeleted");
        assert_condition(status_now(&f->rig), "Stalled", "True", "JobDeleted");
        assert_condition(status_now(&f->rig), "ExecutionJobCreated", "False", "JobDeleted");
        assert_null(there(f, &KUBE_JOB, "r-execution"));
}

static void a_wait_is_told(void **state)
{
        struct flow *f = *state;

        execution_begins(f, PLAIN);
        pod_says(f, "r-execution",
                 "{'phase': 'Pending', 'conditions': [{'type': 'PodScheduled', 'status': 'False', 'message': "
                 "'no GPU is free'}]}");
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "Progressing", "False", "Unschedulable");
        assert_says(json_str(json_at(status_now(&f->rig), "execution"), "message"), "no GPU is free");
        pod_says(f, "r-execution", CONTAINER_RUNS("execution"));
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "Progressing", "True", "Executing");
        assert_null(json_at(json_at(status_now(&f->rig), "execution"), "message"));
}

static void the_hint_is_on_the_profile(void **state)
{
        struct flow *f = *state;
        struct json *node = parse(&f->rig, "{'metadata': {'name': 'n1', 'labels': {'nvidia.com/gpu.product': "
                                           "'NVIDIA-H100-80GB-HBM3'}}, 'status': {'allocatable': "
                                           "{'nvidia.com/gpu': '8'}}}");

        *vec_push(&f->others) = (struct object){&KUBE_NODE, node, "n1", "uid-n"};
        profiling_ends(f, "'image': 'i', 'profilingEnabled': true");
        assert_int_equal(count_events(f, "Placement"), 1);
        assert_string_equal(
                json_str(json_path(object_json(f, &WORKLOADPROFILE, "r-profile"), "status.placement"),
                         "boundType"),
                "memory-bound");
        assert_string_equal(
                json_str(json_at(object_json(f, &WORKLOADPROFILE, "r-profile"), "status"), "boundType"),
                "memory-bound");
        assert_non_null(json_path(object_json(f, &KUBE_JOB, "r-execution"), "spec.template.spec.affinity"));
}

/* A Job that cannot be made is planned again and again, and what the nodes say differs every time: nobody writes that down. */
static void the_hint_is_written_once(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;
        struct json *node = parse(r, "{'metadata': {'name': 'n1', 'labels': {'nvidia.com/gpu.product': "
                                     "'NVIDIA-H100-80GB-HBM3'}}, 'status': {'allocatable': "
                                     "{'nvidia.com/gpu': '8'}}}");
        struct json *hint;

        *vec_push(&f->others) = (struct object){&KUBE_NODE, node, "n1", "uid-n"};
        profiling_ends(f, "'image': 'i', 'profilingEnabled': true");
        hint = json_copy(&r->arena,
                         json_path(object_json(f, &WORKLOADPROFILE, "r-profile"), "status.placement"));
        json_set(&r->arena, json_path(node, "metadata.labels"), "nvidia.com/gpu.product",
                 json_string(&r->arena, "Tesla-T4"));
        edit(r, "suspend", "true");
        come_to_rest(f);
        edit(r, "suspend", "false");
        come_to_rest(f);
        assert_phase(r, "Executing");
        assert_true(json_equal(hint,
                               json_path(object_json(f, &WORKLOADPROFILE, "r-profile"), "status.placement")));
}

/* ---- suspending */

static void suspended_before_anything_it_waits(void **state)
{
        static const char *const specs[] = {PLAIN ", 'suspend': true", PROFILED ", 'suspend': true"};
        struct flow *f = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                children_go(&f->rig);
                experiment(&f->rig, specs[i], NULL);
                come_to_rest(f);
                assert_phase(&f->rig, "Suspended");
                assert_condition(status_now(&f->rig), "Suspended", "True", "Suspended");
                assert_int_equal(json_int(status_now(&f->rig), "observedGeneration", 0), 1);
                assert_int_equal(f->rig.children.n, 0);
                edit(&f->rig, "suspend", "false");
                come_to_rest(f);
                assert_phase(&f->rig, i ? "Profiling" : "Executing");
                assert_condition(status_now(&f->rig), "Suspended", "False", "Resumed");
        }
}

static void suspended_while_it_is_profiled(void **state)
{
        struct flow *f = *state;

        profiling_begins(f, PROFILED);
        profiler_runs(f, "r-profiling", 1, COLLECTING);
        come_to_rest(f);
        edit(&f->rig, "suspend", "true");
        come_to_rest(f);
        assert_phase(&f->rig, "Suspended");
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_int_equal(count_events(f, "Suspended"), 1);
        edit(&f->rig, "suspend", "false");
        come_to_rest(f);
        assert_phase(&f->rig, "Profiling");
        assert_non_null(there(f, &KUBE_JOB, "r-profiling-2"));
}

static void suspended_while_it_is_executed(void **state)
{
        struct flow *f = *state;
        const char *first;

        execution_begins(f, PLAIN);
        pod_says(f, "r-execution", CONTAINER_RUNS("execution"));
        come_to_rest(f);
        first = uid_of(f, &KUBE_JOB, "r-execution");
        edit(&f->rig, "suspend", "true");
        turn(f);
        assert_phase(&f->rig, "Suspended");
        assert_non_null(there(f, &KUBE_JOB, "r-execution")); /* first it is written */
        come_to_rest(f);
        assert_null(there(f, &KUBE_JOB, "r-execution"));
        assert_phase(&f->rig, "Suspended");
        assert_condition(status_now(&f->rig), "ExecutionJobCreated", "False", "Suspended");
        assert_int_equal(count_events(f, "Suspended"), 1);
        edit(&f->rig, "suspend", "false");
        come_to_rest(f);
        assert_phase(&f->rig, "Executing");
        assert_condition(status_now(&f->rig), "Suspended", "False", "Resumed");
        assert_condition(status_now(&f->rig), "ExecutionJobCreated", "True", "JobCreated");
        assert_string_not_equal(uid_of(f, &KUBE_JOB, "r-execution"), first);
        assert_int_equal(count_events(f, "Resumed"), 1);
}

static void resumed_too_early_it_waits_for_the_old_job(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        execution_begins(f, PLAIN);
        edit(r, "suspend", "true");
        turn(f);
        edit(r, "suspend", "false");
        turn(f);
        assert_true(is_removed(r, "r-execution"));
        assert_int_equal(r->d.exist.n, 0);
        assert_phase(r, "Suspended");
        come_to_rest(f);
        assert_phase(r, "Executing");
}

/* What was changed meanwhile counts, and another workload is profiled first. */
static void changed_while_suspended_it_is_profiled_again(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        profiling_ends(f, PROFILED);
        edit(r, "suspend", "true");
        come_to_rest(f);
        edit(r, "image", "'j'");
        come_to_rest(f);
        assert_phase(r, "Suspended");
        assert_int_equal(count_events(f, "SpecChangeRejected"), 0);
        edit(r, "suspend", "false");
        come_to_rest(f);
        assert_phase(r, "Profiling");
        assert_null(there(f, &KUBE_JOB, "r-execution"));
        assert_non_null(there(f, &KUBE_JOB, "r-profiling-2"));
        assert_condition(status_now(r), "ProfilingCompleted", "False", "Pending");
}

static void a_success_while_it_is_suspended_stays_one(void **state)
{
        struct flow *f = *state;

        execution_begins(f, PLAIN);
        edit(&f->rig, "suspend", "true");
        turn(f);
        execution_succeeds(f);
        come_to_rest(f);
        assert_phase(&f->rig, "Succeeded");
        assert_condition(status_now(&f->rig), "Suspended", "False", "Ended");
        assert_non_null(there(f, &KUBE_JOB, "r-execution"));
}

/* ---- cancelling */

static void cancelled_it_has_failed_for_good(void **state)
{
        static const char *const specs[] = {PLAIN, PROFILED};
        struct flow *f = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                children_go(&f->rig);
                experiment(&f->rig, specs[i], NULL);
                come_to_rest(f);
                edit(&f->rig, "cancel", "true");
                come_to_rest(f);
                assert_phase(&f->rig, "Failed");
                assert_condition(status_now(&f->rig), "Failed", "True", "Cancelled");
                assert_condition(status_now(&f->rig), "Stalled", "True", "Cancelled");
                assert_null(there(f, &KUBE_JOB, "r-execution"));
                assert_null(there(f, &KUBE_JOB, "r-profiling"));
                edit(&f->rig, "cancel", "false");
                edit(&f->rig, "image", "'j'");
                come_to_rest(f);
                assert_phase(&f->rig, "Failed");
        }
}

static void cancelled_before_anything_it_makes_nothing(void **state)
{
        struct flow *f = *state;

        experiment(&f->rig, PLAIN ", 'cancel': true", NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "Stalled", "True", "Cancelled");
        assert_int_equal(f->rig.children.n, 0);
}

static void a_success_is_not_lost_to_a_cancellation(void **state)
{
        struct flow *f = *state;
        struct rig *r = &f->rig;

        execution_begins(f, PLAIN);
        edit(r, "cancel", "true");
        server_forgets(r);
        answer(r, &KUBE_JOB, "r-execution",
               "{'metadata': {'name': 'r-execution', " OWNED "}, 'status': {" JOB_COMPLETE "}}", NULL);
        assert_null(decided(r)); /* the cache will show it */
        assert_true(r->d.again_at > NOON);
}

static const struct CMUnitTest tests[] = {
        TEST(without_profiling_it_is_executed_at_once),
        TEST(the_execution_follows_the_profile_at_once),
        TEST(every_phase_is_an_event),
        TEST(nothing_is_made_before_its_name_is_written),
        TEST(the_execution_waits_for_the_profiling_pod_to_end),
        TEST(row_pending),
        TEST(row_running),
        TEST(row_completed),
        TEST(row_execution_job_created),
        TEST(row_profiling_job_failed),
        TEST(row_profile_summary_missing),
        TEST(row_invalid_profile_summary),
        TEST(a_users_profile_is_honoured_and_never_written),
        TEST(a_users_profile_without_a_result_is_unknown),
        TEST(an_identical_workloads_profile_is_reused),
        TEST(a_users_profile_helps_after_a_failure),
        TEST(a_spec_that_is_wrong_is_told_and_mended),
        TEST(an_empty_command_is_told_by_its_reason),
        TEST(a_change_before_anything_ran_begins_anew),
        TEST(a_change_while_it_is_profiled_is_refused),
        TEST(a_change_that_was_refused_counts_after_the_run),
        TEST(what_follows_may_be_changed_while_it_is_profiled),
        TEST(a_change_after_the_execution_job_was_made_is_refused),
        TEST(a_change_that_cannot_be_run_is_refused_as_that),
        TEST(a_change_in_the_last_moment_is_profiled),
        TEST(a_failed_experiment_begins_anew_when_it_is_changed),
        TEST(profiling_may_be_switched_off_until_it_runs),
        TEST(a_namespace_that_forbids_it_is_waited_for),
        TEST(what_cannot_be_staged_has_its_own_reason),
        TEST(profiling_has_a_time_limit_of_its_own),
        TEST(a_failed_execution_says_why),
        TEST(a_deleted_execution_is_never_made_twice),
        TEST(a_wait_is_told),
        TEST(the_hint_is_on_the_profile),
        TEST(the_hint_is_written_once),
        TEST(suspended_before_anything_it_waits),
        TEST(suspended_while_it_is_profiled),
        TEST(suspended_while_it_is_executed),
        TEST(resumed_too_early_it_waits_for_the_old_job),
        TEST(changed_while_suspended_it_is_profiled_again),
        TEST(a_success_while_it_is_suspended_stays_one),
        TEST(cancelled_it_has_failed_for_good),
        TEST(cancelled_before_anything_it_makes_nothing),
        TEST(a_success_is_not_lost_to_a_cancellation),
};

UNIT_MAIN(tests)
