#include "unit/unit.h"

#include "local/manage.h"

/* What the Job controller decides, as a table: a Job's spec and status, its pods in short, and the outcome in short. */

#define NOW "2026-11-15T12:00:00Z"

struct row {
        const char *name;
        const char *spec;   /* members of spec */
        const char *status; /* of the Job */
        const char *
                pods; /* a letter each: P pending, R running, S succeeded, F failed (just now), f failed (1 h ago),
                               T terminating, 2 running with 2 restarts */
        const char *
                expect; /* "create N remove N active N succeeded N failed N CONDITION REASON again SECONDS" */
};

static const struct row ROWS[] = {
        {"a new Job gets its pod", "", "{}", "", "create 1 remove 0 active 1"},
        {"parallelism", "'parallelism': 3, 'completions': 5", "{}", "", "create 3 remove 0 active 3"},
        {"no more pods than completions are left", "'parallelism': 3, 'completions': 3", "{}", "SSR",
         "create 0 remove 0 active 1 succeeded 2"},
        {"what runs is enough", "", "{'active': 1, 'startTime': '" NOW "'}", "R",
         "create 0 remove 0 unchanged"},
        {"a pod that is being deleted is replaced", "", "{'active': 1, 'startTime': '" NOW "'}", "T",
         "create 1 remove 0 unchanged"},
        {"complete", "", "{'active': 1, 'startTime': '" NOW "'}", "S",
         "create 0 remove 0 succeeded 1 Complete event Completed"},
        {"a finished Job is left alone", "", "{'conditions': [{'type': 'Complete', 'status': 'True'}]}", "",
         "create 0 remove 0 unchanged"},
        {"a failed pod is replaced at once", "", "{'active': 1, 'startTime': '" NOW "'}", "F",
         "create 1 remove 0 active 1 failed 1"},
        {"the second one after 10 s", "", "{'active': 1, 'failed': 1, 'startTime': '" NOW "'}", "fF",
         "create 0 remove 0 failed 2 again 10"},
        {"the third one after 20 s", "", "{'active': 1, 'failed': 2, 'startTime': '" NOW "'}", "ffF",
         "create 0 remove 0 failed 3 again 20"},
        {"the delay is over", "", "{'failed': 3, 'startTime': '" NOW "'}", "fff",
         "create 1 remove 0 active 1 failed 3"},
        {"a success forgets failures before it", "'completions': 3", "{'failed': 1, 'startTime': '" NOW "'}",
         "fSF", "create 1 remove 0 active 1 succeeded 1 failed 2"},
        {"backoffLimit 0", "'backoffLimit': 0", "{'active': 1, 'startTime': '" NOW "'}", "F",
         "create 0 remove 0 failed 1 Failed BackoffLimitExceeded event BackoffLimitExceeded"},
        {"backoffLimit 1, one failure", "'backoffLimit': 1", "{'active': 1, 'startTime': '" NOW "'}", "F",
         "create 1 remove 0 active 1 failed 1"},
        {"backoffLimit 1, two failures", "'backoffLimit': 1", "{'failed': 1, 'startTime': '" NOW "'}", "fF",
         "create 0 remove 0 failed 2 Failed BackoffLimitExceeded event BackoffLimitExceeded"},
        {"a Job that has failed gives up what still runs",
         "'parallelism': 2, 'completions': 2, 'backoffLimit': 0", "{'active': 2, 'startTime': '" NOW "'}",
         "FR", "create 0 remove 1 failed 2 Failed BackoffLimitExceeded event BackoffLimitExceeded"},
        {"restarts count with OnFailure",
         "'backoffLimit': 2, 'template': {'spec': {'restartPolicy': 'OnFailure', 'containers': []}}",
         "{'active': 1, 'startTime': '" NOW "'}", "2",
         "create 0 remove 1 failed 1 Failed BackoffLimitExceeded event BackoffLimitExceeded"},
        {"restarts below the limit",
         "'backoffLimit': 3, 'template': {'spec': {'restartPolicy': 'OnFailure'}}",
         "{'active': 1, 'startTime': '" NOW "'}", "2", "create 0 remove 0 unchanged"},
        {"a deadline that comes", "'activeDeadlineSeconds': 60", "{'active': 1, 'startTime': '" NOW "'}", "R",
         "create 0 remove 0 unchanged again 60"},
        {"a deadline that has passed", "'activeDeadlineSeconds': 60",
         "{'active': 1, 'startTime': '2026-11-15T11:59:00Z'}", "R",
         "create 0 remove 1 failed 1 Failed DeadlineExceeded event DeadlineExceeded"},
        {"too many pods", "'parallelism': 1, 'completions': 5", "{'active': 3, 'startTime': '" NOW "'}",
         "RPR", "create 0 remove 2 active 1"},
        {"parallelism 0 holds it", "'parallelism': 0", "{}", "", "create 0 remove 0 unchanged"},
        {"a work queue starts all", "'parallelism': 2, 'completions': null", "{}", "",
         "create 2 remove 0 active 2"},
        {"a work queue that has seen a success starts none", "'parallelism': 2, 'completions': null",
         "{'active': 2, 'startTime': '" NOW "'}", "SR", "create 0 remove 0 active 1 succeeded 1"},
        {"a work queue is complete when all have ended", "'parallelism': 2, 'completions': null",
         "{'active': 1, 'succeeded': 1, 'startTime': '" NOW "'}", "SS",
         "create 0 remove 0 succeeded 2 Complete event Completed"},
};

static struct json *pod_of(char kind, size_t i, struct arena *a)
{
        const char *phase = kind == 'S'                  ? "Succeeded"
                            : kind == 'F' || kind == 'f' ? "Failed"
                            : kind == 'P'                ? "Pending"
                                                         : "Running";
        struct json *pod = json_build(a,
                                      "{'metadata': {'name': 'p%zu', 'creationTimestamp': "
                                      "'2026-11-15T10:00:00Z'}, 'status': {'phase': %s}}",
                                      i, phase);
        struct json *status = json_at(pod, "status");

        if (kind == 'F' || kind == 'f' || kind == 'S')
                json_set(a, status, "containerStatuses",
                         json_build(a, "[{'state': {'terminated': {'finishedAt': %s}}}]",
                                    kind == 'F'   ? NOW
                                    : kind == 'S' ? "2026-11-15T11:30:00Z"
                                                  : "2026-11-15T11:00:00Z"));
        if (kind == '2')
                json_set(a, status, "containerStatuses", json_build(a, "[{'restartCount': 2}]"));
        if (kind == 'T')
                json_set(a, json_at(pod, "metadata"), "deletionTimestamp", json_string(a, NOW));
        return pod;
}

static void add_count(struct buf *out, const struct json *status, const char *name)
{
        if (json_int(status, name, 0))
                buf_printf(out, " %s %lld", name, (long long)json_int(status, name, 0));
}

static void in_short(const struct job_decision *d, usec_t now, struct buf *out)
{
        buf_printf(out, "create %zu remove %zu", d->n_create, d->n_remove);
        if (!d->status)
                buf_adds(out, " unchanged");
        add_count(out, d->status, "active");
        add_count(out, d->status, "succeeded");
        add_count(out, d->status, "failed");
        json_foreach (c, json_at(d->status, "conditions")) {
                buf_printf(out, " %s", json_str(c, "type"));
                if (json_str(c, "reason"))
                        buf_printf(out, " %s", json_str(c, "reason"));
        }
        if (d->event_reason)
                buf_printf(out, " event %s", d->event_reason);
        if (d->again)
                buf_printf(out, " again %llu", (unsigned long long)((d->again - now) / USEC_PER_SEC));
}

static struct json *job_of(const struct row *r, struct arena *a)
{
        struct json *job, *spec, *given;

        job = json_build(
                a,
                "{'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'j', 'namespace': 'n', "
                "'uid': "
                "'u'}, 'spec': {'completions': 1, 'parallelism': 1, 'backoffLimit': 6, 'template': {'spec': "
                "{'restartPolicy': 'Never'}}}}");
        spec = json_at(job, "spec");
        given = yaml_parse(a, str_of(arena_printf(a, "{%s}", r->spec)), NULL, NULL);
        json_merge_patch(a, spec, given);
        json_set(a, job, "status", yaml_parse(a, str_of(r->status), NULL, NULL));
        return job;
}

static void decisions(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        usec_t now;

        assert_true(time_parse(STR(NOW), &now));
        for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
                _cleanup_(buf_done) struct buf got = BUF_INIT(4096);
                size_t n = strlen(ROWS[i].pods);
                const struct json **pods = arena_new_array(&a, const struct json *, n + 1);
                struct job_decision d;

                for (size_t k = 0; k < n; k++)
                        pods[k] = pod_of(ROWS[i].pods[k], k, &a);
                d = job_decide(job_of(&ROWS[i], &a), pods, n, now, &a);
                in_short(&d, now, &got);
                if (!streq(buf_cstr(&got), ROWS[i].expect))
                        fail_msg("%s: '%s' instead of '%s'", ROWS[i].name, buf_cstr(&got), ROWS[i].expect);
        }
}

static void a_pod_is_made_from_the_template(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct row r = {.spec = "'template': {'metadata': {'labels': {'a': 'b'}, 'annotations': {'c': 'd'}}}",
                        .status = "{}"};
        struct job_decision d = job_decide(job_of(&r, &a), NULL, 0, 1, &a);

        assert_int_equal(d.n_create, 1);
        assert_string_equal(
                json_print(&a, d.create[0]),
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":\"j-\",\"namespace\":"
                "\"n\","
                "\"labels\":{\"a\":\"b\",\"controller-uid\":\"u\",\"job-name\":\"j\"},\"annotations\":{\"c\":"
                "\"d\"},"
                "\"ownerReferences\":[{\"apiVersion\":\"batch/"
                "v1\",\"kind\":\"Job\",\"name\":\"j\",\"uid\":\"u\","
                "\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{\"restartPolicy\":\"Never\"}}");
}

static void what_is_least_lost_is_given_up_first(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct row r = {.spec = "'completions': 9", .status = "{'active': 3}"};
        const struct json *pods[] = {pod_of('R', 0, &a), pod_of('P', 1, &a), pod_of('R', 2, &a)};
        struct job_decision d = job_decide(job_of(&r, &a), pods, 3, 1, &a);

        assert_int_equal(d.n_remove, 2);
        assert_string_equal(d.remove[0], "p1");
}

static void times_and_words_are_the_controllers(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct row r = {.spec = "'backoffLimit': 0",
                        .status = "{'active': 1, 'startTime': '2026-11-15T11:00:00Z'}"};
        const struct json *pods[] = {pod_of('F', 0, &a)};
        usec_t now;
        struct job_decision d;

        assert_true(time_parse(STR(NOW), &now));
        d = job_decide(job_of(&r, &a), pods, 1, now, &a);
        assert_true(d.warning);
        assert_string_equal(d.event_message, "Job has reached the specified backoff limit");
        assert_string_equal(
                json_print(&a, d.status),
                "{\"startTime\":\"2026-11-15T11:00:00Z\",\"conditions\":[{\"type\":\"Failed\",\"status\":"
                "\"True\",\"lastProbeTime\":\"" NOW "\",\"lastTransitionTime\":\"" NOW
                "\",\"reason\":\"BackoffLimitExceeded\",\"message\":\"Job has reached the specified "
                "backoff limit\"}],\"failed\":1}");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions),
        cmocka_unit_test(a_pod_is_made_from_the_template),
        cmocka_unit_test(what_is_least_lost_is_given_up_first),
        cmocka_unit_test(times_and_words_are_the_controllers),
};

UNIT_MAIN(tests)
