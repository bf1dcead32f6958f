#include "unit/relay_rig.h"

#include "run/gzip.h"

static void test_data_goes_at_most_every_30_s(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char text[32];

        begin(r);
        for (int i = 0; i < 60; i++) {
                snprintf(text, sizeof(text), "{\"at\": %d}", i);
                pod_write(&r->pod, RUN_CHECKPOINT_FILE, text);
                pod_report(&r->pod, "Measure");
                pass(r->loop, 2 * USEC_PER_SEC);
        }
        {
                const char *log = requests(r->kube);
                unsigned n = 0;

                for (const char *p = log; *p; p++)
                        n += *p == 'p';
                assert_in_range(n, 3, 4); /* in two minutes */
        }
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "{\"at\": 59}");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_SPEC_HASH, &a), "hash");
        assert_string_equal(requests(r->kube), "pP"); /* data first */
}

static void test_the_same_data_is_not_sent_twice(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        soon(r);
        assert_string_equal(requests(r->kube), "p");
        pass(r->loop, 40 * USEC_PER_SEC);
        requests(r->kube);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        soon(r);
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_string_equal(requests(r->kube), "P");
}

static struct json *large_text(struct arena *a, char c)
{
        char *text = arena_alloc(a, 20001);

        memset(text, c, 20000);
        text[20000] = '\0';
        return json_string(a, text);
}

static void test_large_values_are_gzipped_and_small_ones_are_not(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf gz = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
        const char *result = json_print(&a, large_text(&a, 'x'));
        struct json *object;

        begin(r);
        pod_write(&r->pod, RUN_RESULT_FILE, result);
        soon(r);
        object = map_json(r->kube, 1, &a);
        assert_null(json_at(json_at(object, "data"), RUN_KEY_RESULT));
        assert_true(
                buf_add_unbase64(&gz, json_text(json_at(json_at(object, "binaryData"), "result.json.gz"))));
        assert_int_equal(gunzip_add(&text, buf_str(&gz), NULL), 0);
        assert_str(buf_str(&text), result);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        pass(r->loop, 45 * USEC_PER_SEC);
        object = map_json(r->kube, 1, &a);
        assert_string_equal(json_str(json_at(object, "data"), RUN_KEY_RESULT), "{}");
        assert_null(json_at(object, "binaryData"));
        pod_write(&r->pod, RUN_RESULT_FILE, result);
        pass(r->loop, 45 * USEC_PER_SEC);
        object = map_json(r->kube, 1, &a);
        assert_null(json_at(json_at(object, "data"), RUN_KEY_RESULT));
        assert_non_null(json_path(object, "binaryData[\"result.json.gz\"]"));
}

static void test_a_result_of_an_earlier_attempt_goes_and_its_checkpoint_stays(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        free(r->kube->maps[1].text);
        r->kube->maps[1].text = xstrdup(
                "{\"metadata\": {\"resourceVersion\": \"1\"}, \"data\": {\"attempt\": \"1\", \"podUID\": "
                "\"pod-x\", \"result.json\": \"{}\", \"checkpoint.json\": \"[]\", \"specHash\": \"h\", "
                "\"artifacts.json\": \"[]\"}, \"binaryData\": {\"artifact.x\": \"AA==\"}}");
        other_pod_writes(r->kube, 1, "pod-x", "Failed");
        begin(r);
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_POD, &a), "pod-a");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_ATTEMPT, &a), "2");
        assert_null(map_value(r->kube, 1, RUN_KEY_RESULT, &a));
        assert_null(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a));
        assert_null(json_at(map_json(r->kube, 1, &a), "binaryData"));
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "[]");
}

static void test_a_data_map_without_keys_is_taken_as_it_is(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        free(r->kube->maps[1].text);
        r->kube->maps[1].text = xstrdup("{\"metadata\": {\"resourceVersion\": \"1\"}}");
        begin(r);
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_POD, &a), "pod-a");
}

static void write_artifact(struct rig *r, const char *name, size_t size)
{
        char dir[UNIT_DIR_LEN + 32];
        char *text = xcalloc(1, size + 1);

        snprintf(dir, sizeof(dir), "%s/artifacts", r->pod.dir);
        mkdir(dir, 0755);
        pod_write_at(dir, name, str_n(text, size));
        free(text);
}

static void test_artifacts_are_kept_as_far_as_they_fit(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char path[512];
        struct json *list, *binary;

        begin(r);
        write_artifact(r, "b.bin", 500 << 10);
        write_artifact(r, "a.bin", 600 << 10);
        write_artifact(r, "c d", 3);
        snprintf(path, sizeof(path), "%s/artifacts/link", r->pod.dir);
        assert_int_equal(symlink("/etc/passwd", path), 0);
        snprintf(path, sizeof(path), "%s/artifacts/elsewhere", r->pod.dir);
        assert_int_equal(symlink("/etc", path), 0);
        snprintf(path, sizeof(path), "%s/artifacts/fifo", r->pod.dir);
        assert_int_equal(mkfifo(path, 0644), 0);
        snprintf(path, sizeof(path), "%s/artifacts/sub", r->pod.dir);
        assert_int_equal(mkdir(path, 0755), 0);
        pod_write_at(path, "x", STR("hello"));
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_problem(r, "1 of 4 artifacts are too large");
        list = json_parse(&a, str_of(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a)), NULL, NULL);
        binary = json_at(map_json(r->kube, 1, &a), "binaryData");
        assert_int_equal(json_len(list), 4);
        assert_string_equal(json_str(json_index(list, 0), "name"), "a.bin");
        assert_false(json_bool(json_index(list, 0), "kept", true));
        assert_int_equal(strlen(json_str(json_index(list, 0), "sha256")), 64);
        assert_string_equal(json_str(json_index(list, 1), "key"), "artifact.b.bin");
        assert_true(str_has_prefix(str_of(json_str(json_index(list, 2), "key")), STR("artifact-")));
        assert_string_equal(json_str(json_index(list, 3), "name"), "sub/x");
        assert_string_equal(json_str(json_index(list, 3), "sha256"),
                            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_string_equal(json_str(binary, json_str(json_index(list, 3), "key")), "aGVsbG8=");
        assert_int_equal(json_len(binary), 3);
}

static void test_too_many_artifacts_are_said(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char name[32];

        begin(r);
        for (int i = 0; i < 300; i++) {
                snprintf(name, sizeof(name), "file-%d", i);
                write_artifact(r, name, 1);
        }
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 100 * USEC_PER_MS);
        assert_problem(r, "44 artifacts are neither kept nor listed");
        assert_int_equal(
                json_len(json_parse(&a, str_of(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a)), NULL, NULL)),
                256);
}

static void test_what_the_server_refuses_loses_its_largest(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        r->kube->limit = 100000;
        write_artifact(r, "large", 90000);
        write_artifact(r, "small", 20000);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_problem(r, "large (90000 bytes) is not kept");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_RESULT, &a), "{}");
        assert_int_equal(json_len(json_at(map_json(r->kube, 1, &a), "binaryData")), 1);
}

static void test_a_data_map_that_takes_nothing_does_not_hide_the_end(void **state)
{
        struct rig *r = *state;

        begin(r);
        r->kube->limit = 3;
        write_artifact(r, "one", 10);
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_int_equal(r->pod.exit_status, 0);
}

/* ---- what stays, and what goes first */

static void write_random(struct rig *r, const char *name, size_t size)
{
        char *text = xmalloc(size);
        uint64_t bits = 0;
        struct rng rng;

        rng_seed(&rng, size);
        for (size_t i = 0; i < size; i++, bits >>= 6) {
                if (i % 10 == 0)
                        bits = rng_next(&rng);
                text[i] = (char)('!' + bits % 64); /* three quarters of it when compressed */
        }
        pod_write_at(r->pod.dir, name, str_n(text, size));
        free(text);
}

static struct json *binary_value(struct rig *r, const char *key, struct arena *a)
{
        return json_at(json_at(map_json(r->kube, 1, a), "binaryData"), key);
}

static void test_a_checkpoint_that_is_too_large_leaves_the_last_one(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        pod_write(&r->pod, RUN_CHECKPOINT_FILE, "{\"at\": 1}");
        soon(r);
        write_random(r, RUN_CHECKPOINT_FILE, 5 << 20);
        pass(r->loop, 40 * USEC_PER_SEC);
        assert_problem(r, "checkpoint.json is not kept");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "{\"at\": 1}");
        write_random(r, RUN_CHECKPOINT_FILE, 3 << 20); /* it can be read, and does not fit */
        pass(r->loop, 40 * USEC_PER_SEC);
        assert_problem(r, "checkpoint.json is not kept");
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "{\"at\": 1}");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_SPEC_HASH, &a), "hash");
        assert_non_null(strstr(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a), "checkpoint.json"));
}

/* The rig refuses more than 1 MiB. */
static void test_a_checkpoint_that_stays_is_counted(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        size_t before;

        begin(r);
        write_random(r, RUN_CHECKPOINT_FILE, 800 << 10);
        pass(r->loop, USEC_PER_SEC);
        before = json_text(binary_value(r, "checkpoint.json.gz", &a)).n;
        assert_in_range(before, 700 << 10, 900 << 10);
        write_random(r, RUN_CHECKPOINT_FILE, 5 << 20);
        write_artifact(r, "large", 500 << 10);
        write_artifact(r, "small", 100 << 10);
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_problem(r, "1 of 2 artifacts");
        assert_int_equal(json_text(binary_value(r, "checkpoint.json.gz", &a)).n, before);
        assert_non_null(binary_value(r, "artifact.small", &a));
}

static void test_an_old_checkpoint_makes_room_for_the_result(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        write_random(r, RUN_CHECKPOINT_FILE, 800 << 10);
        pass(r->loop, USEC_PER_SEC);
        write_random(r, RUN_RESULT_FILE, 900 << 10);
        write_random(r, RUN_CHECKPOINT_FILE, 5 << 20);
        pass(r->loop, 40 * USEC_PER_SEC);
        assert_problem(r, "no room for it beside the result");
        assert_non_null(binary_value(r, "result.json.gz", &a));
        assert_null(binary_value(r, "checkpoint.json.gz", &a));
        assert_null(map_value(r->kube, 1, RUN_KEY_SPEC_HASH, &a));
}

static void test_a_checkpoint_that_is_gone_at_the_end_goes(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char path[512];

        begin(r);
        pod_write(&r->pod, RUN_CHECKPOINT_FILE, "{}");
        soon(r);
        snprintf(path, sizeof(path), "%s/%s", r->pod.dir, RUN_CHECKPOINT_FILE);
        assert_int_equal(unlink(path), 0);
        pass(r->loop, 60 * USEC_PER_SEC);
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "{}"); /* it may write another */
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_null(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a));
        assert_null(map_value(r->kube, 1, RUN_KEY_SPEC_HASH, &a));
}

static void test_the_result_is_the_last_to_be_dropped(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        r->kube->limit = 65000;
        write_random(r, RUN_RESULT_FILE, 80000); /* the largest */
        write_random(r, RUN_CHECKPOINT_FILE, 20000);
        write_artifact(r, "small", 9000);
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, 100 * USEC_PER_MS);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_non_null(binary_value(r, "result.json.gz", &a));
        assert_null(binary_value(r, "checkpoint.json.gz", &a));
        assert_null(binary_value(r, "artifact.small", &a));
        assert_problem(r, "checkpoint.json (");
        assert_problem(r, "small (9000 bytes) is not kept");
        assert_non_null(strstr(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a), "checkpoint.json"));
}

static void test_hashing_is_bounded_and_comes_after_the_result(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char path[512];
        struct json *list;

        begin(r);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        write_artifact(r, "huge", 1);
        write_artifact(r, "large", 1 << 20);
        snprintf(path, sizeof(path), "%s/artifacts/huge", r->pod.dir);
        assert_int_equal(truncate(path, (off_t)1 << 40), 0);
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, USEC_PER_SEC);
        assert_string_equal(requests(r->kube), "ppP"); /* the result, the artifacts, the end */
        list = json_parse(&a, str_of(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a)), NULL, NULL);
        assert_string_equal(json_str(json_index(list, 0), "name"), "huge");
        assert_string_equal(json_str(json_index(list, 0), "sha256"), "");
        assert_int_equal(strlen(json_str(json_index(list, 1), "sha256")), 64);
}

static void test_no_artifacts_when_time_is_up(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin(r);
        write_artifact(r, "one", 1);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        relay_terminate(r->pod.relay);
        pass(r->loop, 19500 * USEC_PER_MS);
        r->kube->otherwise = (struct step){FATE_ERROR, E_CONNECT};
        pod_write(&r->pod, RUN_RESULT_FILE, "[]");
        pod_end(&r->pod, "{\"signal\": 15}");
        pass(r->loop, 600 * USEC_PER_MS); /* flushing now */
        r->kube->otherwise = (struct step){0};
        pass(r->loop, 2 * USEC_PER_SEC);
        assert_int_equal(r->pod.exit_status, 0);
        assert_status(r, RUN_KEY_STATE, "Failed");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_RESULT, &a), "[]");
        assert_null(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a));
}

static void test_a_folder_that_cannot_be_opened_is_said(void **state)
{
        struct rig *r = *state;
        char path[512];

        begin(r);
        write_artifact(r, "one", 1);
        snprintf(path, sizeof(path), "%s/artifacts/closed", r->pod.dir);
        assert_int_equal(mkdir(path, 0), 0);
        assert_int_equal(chmod(r->pod.home, 0755), 0);
        pod_end(&r->pod, "{\"code\": 0}");
        if (geteuid() == 0 && seteuid(65534) < 0) /* to root nothing is closed */
                skip();
        pass(r->loop, 100 * USEC_PER_MS);
        if (getuid() == 0)
                assert_int_equal(seteuid(0), 0);
        assert_problem(r, "1 folders below artifacts cannot be opened");
        assert_status(r, RUN_KEY_STATE, "Succeeded");
}

static void test_artifacts_that_are_no_folder_are_said(void **state)
{
        struct rig *r = *state;

        begin(r);
        pod_write(&r->pod, RUN_ARTIFACTS_DIR, "x");
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_problem(r, "cannot open artifacts");
        assert_status(r, RUN_KEY_STATE, "Succeeded");
}

static const struct CMUnitTest tests[] = {
        RELAY_TEST(test_data_goes_at_most_every_30_s),
        RELAY_TEST(test_the_same_data_is_not_sent_twice),
        RELAY_TEST(test_large_values_are_gzipped_and_small_ones_are_not),
        RELAY_TEST(test_a_result_of_an_earlier_attempt_goes_and_its_checkpoint_stays),
        RELAY_TEST(test_a_data_map_without_keys_is_taken_as_it_is),
        RELAY_TEST(test_artifacts_are_kept_as_far_as_they_fit),
        RELAY_TEST(test_too_many_artifacts_are_said),
        RELAY_TEST(test_what_the_server_refuses_loses_its_largest),
        RELAY_TEST(test_a_data_map_that_takes_nothing_does_not_hide_the_end),
        RELAY_TEST(test_a_checkpoint_that_is_too_large_leaves_the_last_one),
        RELAY_TEST(test_a_checkpoint_that_stays_is_counted),
        RELAY_TEST(test_an_old_checkpoint_makes_room_for_the_result),
        RELAY_TEST(test_a_checkpoint_that_is_gone_at_the_end_goes),
        RELAY_TEST(test_the_result_is_the_last_to_be_dropped),
        RELAY_TEST(test_hashing_is_bounded_and_comes_after_the_result),
        RELAY_TEST(test_no_artifacts_when_time_is_up),
        RELAY_TEST(test_a_folder_that_cannot_be_opened_is_said),
        RELAY_TEST(test_artifacts_that_are_no_folder_are_said),
};

UNIT_MAIN(tests)
