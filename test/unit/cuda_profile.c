/*
 * WorkloadProfiles: which one fits an experiment, and what the profiler's summary makes of it.
 */
#include "unit/cuda_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define WORKLOAD   "'image': 'i', 'command': ['/a'], 'profilingEnabled': true"

static const char *hash_now(struct rig *r)
{
        struct cuda_spec spec = spec_of(r);

        return cuda_workload_hash(&r->view, &spec);
}

/* A profile of that name and owner, of the workload with that hash. */
static const char *profile(struct rig *r, const char *name, const char *owner, const char *hash,
                           const char *status)
{
        return arena_printf(
                &r->arena,
                "{'metadata': {'name': '%s', 'uid': 'uid-%s'%s%s}, 'spec': {'workloadHash': '%s'}, "
                "'status': {'workloadHash': '%s'%s%s}}",
                name, name, *owner ? ", " : "", owner, hash, hash, *status ? ", " : "", status);
}

#define OF_EXPERIMENT(uid) \
        "'ownerReferences': [{'uid': '" uid "', 'kind': 'CUDAExperiment', 'controller': true}]"

static bool find(struct rig *r, struct cuda_profile *ret)
{
        struct cuda_spec spec = spec_of(r);

        decision_done(&r->d);
        return cuda_profile_find(&r->view, &r->d, &spec, ret);
}

/* ---- which one fits */

static void the_own_one_of_the_same_workload_fits(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        child(r, &WORKLOADPROFILE,
              profile(r, "r-profile", OF_EXPERIMENT("uid-r"), hash_now(r), "'boundType': 'mixed'"));
        assert_true(find(r, &found));
        assert_string_equal(found.name, "r-profile");
        assert_string_equal(found.bound, "mixed");
        assert_false(found.users || found.reused);
        edit(r, "image", "'j'");
        assert_true(find(r, &found));
        assert_null(found.name);
}

static void one_without_a_result_does_not_fit_yet(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        child(r, &WORKLOADPROFILE, profile(r, "r-profile", OF_EXPERIMENT("uid-r"), hash_now(r), ""));
        assert_true(find(r, &found));
        assert_null(found.name);
        assert_int_equal(r->d.n_wants, 0);
}

/* Of a profile that is made anew the spec is written first: what is measured is still of the workload before. */
static void one_with_the_result_of_another_workload_does_not_fit(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        child(r, &WORKLOADPROFILE,
              arena_printf(&r->arena,
                           "{'metadata': {'name': 'r-profile', 'uid': 'uid-r', " OWNED
                           "}, 'spec': {'workloadHash': '%s'}, 'status': {'boundType': 'mixed', "
                           "'workloadHash': 'before'}}",
                           hash_now(r)));
        assert_true(find(r, &found));
        assert_null(found.name);
}

static void a_users_own_is_honoured_whatever_it_says(void **state)
{
        static const struct {
                const char *status, *bound;
        } cases[] = {
                {"'boundType': 'compute-bound'", "compute-bound"}, {"", NULL}, {"'boundType': 'io'", NULL}};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct cuda_profile found;

                experiment(r, WORKLOAD, NULL);
                server_forgets(r);
                assert_false(find(r, &found));
                assert_true(wanted(r, &WORKLOADPROFILE, "r-profile"));
                answer(r, &WORKLOADPROFILE, "r-profile",
                       profile(r, "r-profile", "", "other", cases[i].status), NULL);
                assert_true(find(r, &found));
                assert_string_equal(found.name, "r-profile");
                assert_true(found.users);
                assert_true(streq(found.bound, cases[i].bound));
        }
}

static void what_an_earlier_experiment_left_is_nobodys(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        answer(r, &WORKLOADPROFILE, "r-profile",
               profile(r, "r-profile", OF_EXPERIMENT("uid-before"), hash_now(r), "'boundType': 'mixed'"),
               NULL);
        assert_true(find(r, &found));
        assert_null(found.name);
}

static void one_that_is_being_deleted_is_gone(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        answer(r, &WORKLOADPROFILE, "r-profile",
               profile(r, "r-profile", "'deletionTimestamp': '2026-11-15T12:00:00Z'", hash_now(r),
                       "'boundType': 'mixed'"),
               NULL);
        assert_true(find(r, &found));
        assert_null(found.name);
}

static void what_cannot_be_looked_up_is_waited_for(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        answer(r, &WORKLOADPROFILE, "r-profile", NULL, "forbidden");
        assert_false(find(r, &found));
        assert_true(r->d.again_at > NOON);
}

static void with_reuse_the_first_of_the_same_workload_fits(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;
        const char *selector;

        experiment(r, WORKLOAD ", 'profiling': {'reuse': true}", NULL);
        selector = arena_printf(&r->arena, "gpu.scheduler.io/workload=%s", hash_now(r));
        answer(r, &WORKLOADPROFILE, "r-profile", NULL, NULL);
        assert_false(find(r, &found));
        assert_true(wants(r, WANT_LIST, selector));
        told(r, WANT_LIST, &WORKLOADPROFILE, selector,
             arena_printf(&r->arena, "{'items': [%s, %s, %s, %s, %s]}",
                          profile(r, "c-profile", "", hash_now(r), "'boundType': 'mixed'"),
                          profile(r, "b-profile", "", hash_now(r), "'boundType': 'memory-bound'"),
                          profile(r, "a-profile", "", "another", "'boundType': 'mixed'"),
                          profile(r, "a0-profile", "", hash_now(r), ""),
                          profile(r, "a1-profile", "'deletionTimestamp': '2026-11-15T12:00:00Z'", hash_now(r),
                                  "'boundType': 'mixed'")));
        assert_true(find(r, &found));
        assert_string_equal(found.name, "b-profile");
        assert_string_equal(found.bound, "memory-bound");
        assert_true(found.reused && !found.users);
}

static void without_reuse_nobody_asks(void **state)
{
        struct rig *r = *state;
        struct cuda_profile found;

        experiment(r, WORKLOAD, NULL);
        answer(r, &WORKLOADPROFILE, "r-profile", NULL, NULL);
        assert_true(find(r, &found));
        assert_null(found.name);
}

/* ---- what the profiler left */

#define PROGRESS "'progress': {'podUID': 'uid-p', 'updatedAt': '2026-11-15T11:59:00Z'}"

/* The data ConfigMap with this in summary.json. */
static void summary(struct rig *r, const char *text, const char *more)
{
        struct json *map = parse(r, arena_printf(&r->arena,
                                                 "{'metadata': {'name': 'r-profile-summary', " OWNED
                                                 "}, 'data': {'podUID': 'uid-p'%s}}",
                                                 more));

        if (text)
                json_set(&r->arena, json_at(map, "data"), "summary.json",
                         json_string(&r->arena, *text == '{' ? json_print(&r->arena, parse(r, text)) : text));
        server_forgets(r);
        experiment(r, WORKLOAD, PROGRESS);
        answer(r, &KUBE_CONFIGMAP, "r-profile-summary", json_print(&r->arena, map), NULL);
}

/* The status that becomes of it; NULL: REASON and MESSAGE. */
static struct json *read_it(struct rig *r, const char **reason, const char **message)
{
        struct run_kind kind = cuda_run_kind(&r->view);
        struct json *status;

        decision_done(&r->d);
        assert_true(cuda_profile_read(&r->view, &r->d, &kind, &status, reason, message));
        return status;
}

static void the_seeds_summary_becomes_the_seeds_status(void **state)
{
        struct rig *r = *state;
        const char *reason, *message;

        summary(r,
                "{'boundType': 'unknown', 'metrics': {'achievedOccupancy': '78.21', 'l2Throughput': '30.22', "
                "'smThroughput': '12.56'}}",
                "");
        assert_json(r, read_it(r, &reason, &message),
                    "{'boundType': 'unknown', 'metrics': {'achievedOccupancy': '78.21', 'l2Throughput': "
                    "'30.22', 'smThroughput': '12.56'}, 'profiledAt': '2026-11-15T11:59:00Z'}");
}

static void numbers_become_texts_and_details_stay(void **state)
{
        struct rig *r = *state;
        const char *reason, *message;
        const struct json *status;

        summary(r,
                "{'boundType': 'memory-bound', 'metrics': {'a': 12.50, 'b': 3, 'replay': 'true'}, 'details': "
                "{'kernels': 2, 'x': null}}",
                "");
        status = read_it(r, &reason, &message);
        assert_json(r, json_at(status, "metrics"), "{'a': '12.5', 'b': '3', 'replay': 'true'}");
        assert_json(r, json_at(status, "details"), "{'kernels': 2}");
        assert_true(json_bool(status, "replay", false));
}

static void without_metrics_there_are_none(void **state)
{
        struct rig *r = *state;
        const char *reason, *message;

        summary(r, "{'boundType': 'mixed'}", "");
        assert_json(r, json_at(read_it(r, &reason, &message), "metrics"), "{}");
}

static void a_summary_that_is_missing_is_told(void **state)
{
        static const char *const texts[] = {NULL, ""};
        struct rig *r = *state;
        const char *reason, *message;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                summary(r, texts[i], "");
                assert_null(read_it(r, &reason, &message));
                assert_string_equal(reason, "ProfileSummaryMissing");
                assert_says(
                        message,
                        "Profile summary ConfigMap \"r-profile-summary\" or key \"summary.json\" is missing");
        }
        server_forgets(r);
        answer(r, &KUBE_CONFIGMAP, "r-profile-summary", NULL, NULL);
        assert_null(read_it(r, &reason, &message));
        assert_string_equal(reason, "ProfileSummaryMissing");
}

static void what_an_earlier_attempt_left_is_none(void **state)
{
        struct rig *r = *state;
        const char *reason, *message;

        summary(r, "{'boundType': 'mixed'}", "");
        json_set(&r->arena, json_path(r->view.request, "status.progress"), "podUID",
                 json_string(&r->arena, "uid-later"));
        assert_null(read_it(r, &reason, &message));
        assert_string_equal(reason, "ProfileSummaryMissing");
}

static void a_summary_that_is_no_summary_is_told(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {{"boundType: x", "contains invalid \"summary.json\""},
                     {"[]", "it is no object"},
                     {"{'metrics': {}}", "its boundType '' is none of"},
                     {"{'boundType': 'io-bound'}", "its boundType 'io-bound' is none of"},
                     {"{'boundType': 'mixed', 'metrics': [1]}", "its metrics are no object"},
                     {"{'boundType': 'mixed', 'metrics': {'a': true}}", "its metric 'a' is neither"},
                     {"{'boundType': 'mixed', 'metrics': {'': '1'}}", "its metric '' is neither"}};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *reason, *message;

                summary(r, cases[i].text, "");
                assert_null(read_it(r, &reason, &message));
                assert_string_equal(reason, "InvalidProfileSummary");
                assert_says(message, "Profile summary ConfigMap \"r-profile-summary\" contains invalid "
                                     "\"summary.json\": ");
                assert_says(message, cases[i].words);
        }
}

static void a_summary_that_was_too_large_is_told(void **state)
{
        struct rig *r = *state;
        const char *reason, *message;

        summary(r, NULL,
                ", 'artifacts.json': '[{\\\"name\\\": \\\"summary.json\\\", \\\"kept\\\": false, "
                "\\\"size\\\": "
                "5000000}]'");
        assert_null(read_it(r, &reason, &message));
        assert_string_equal(reason, "InvalidProfileSummary");
        assert_says(message, "5000000 bytes");
}

static void a_gzipped_one_is_unpacked(void **state)
{
        _cleanup_(buf_done) struct buf packed = BUF_INIT(4096), text = BUF_INIT(8192);
        struct rig *r = *state;
        struct err err = ERR_INIT;
        const char *reason, *message;

        assert_int_equal(gzip_add(&packed, STR("{\"boundType\": \"mixed\"}"), &err), 0);
        buf_add_base64(&text, buf_str(&packed));
        experiment(r, WORKLOAD, PROGRESS);
        answer(r, &KUBE_CONFIGMAP, "r-profile-summary",
               arena_printf(&r->arena,
                            "{'metadata': {'name': 'r-profile-summary', " OWNED
                            "}, 'binaryData': {'summary.json.gz': '%s'}}",
                            buf_cstr(&text)),
               NULL);
        assert_string_equal(json_str(read_it(r, &reason, &message), "boundType"), "mixed");
}

static void the_profile_says_of_what_it_is(void **state)
{
        struct rig *r = *state;
        struct cuda_spec spec;
        const struct json *made;

        experiment(r, WORKLOAD ", 'arguments': ['x']", NULL);
        spec = spec_of(r);
        cuda_profile_plan(&r->view, &r->d, &spec, parse(r, "{'boundType': 'mixed'}"));
        made = planned(r, &WORKLOADPROFILE, "r-profile");
        assert_json(r, json_at(made, "spec"),
                    arena_printf(&r->arena,
                                 "{'workloadImage': 'i', 'command': ['/a'], 'arguments': ['x'], "
                                 "'sourceCudaExperiment': 'r', 'workloadHash': '%s'}",
                                 hash_now(r)));
        assert_string_equal(json_str(json_path(made, "metadata.labels"), "gpu.scheduler.io/workload"),
                            hash_now(r));
        assert_json(r, r->d.exist.v[0].status,
                    arena_printf(&r->arena, "{'boundType': 'mixed', 'workloadHash': '%s'}", hash_now(r)));
        assert_int_equal(r->d.exist.v[0].how, EXIST_APPLY);
}

static const struct CMUnitTest tests[] = {
        TEST(the_own_one_of_the_same_workload_fits),
        TEST(one_without_a_result_does_not_fit_yet),
        TEST(one_with_the_result_of_another_workload_does_not_fit),
        TEST(a_users_own_is_honoured_whatever_it_says),
        TEST(what_an_earlier_experiment_left_is_nobodys),
        TEST(one_that_is_being_deleted_is_gone),
        TEST(what_cannot_be_looked_up_is_waited_for),
        TEST(with_reuse_the_first_of_the_same_workload_fits),
        TEST(without_reuse_nobody_asks),
        TEST(the_seeds_summary_becomes_the_seeds_status),
        TEST(numbers_become_texts_and_details_stay),
        TEST(without_metrics_there_are_none),
        TEST(a_summary_that_is_missing_is_told),
        TEST(what_an_earlier_attempt_left_is_none),
        TEST(a_summary_that_is_no_summary_is_told),
        TEST(a_summary_that_was_too_large_is_told),
        TEST(a_gzipped_one_is_unpacked),
        TEST(the_profile_says_of_what_it_is),
};

UNIT_MAIN(tests)
