/*
 * The files of the run directory that a kind names: kept at the end, each under its own name.
 */
#include "unit/relay_rig.h"

#include "run/gzip.h"

static void begin_with(struct rig *r, const char *files)
{
        r->pod.files = files;
        begin(r);
}

static void end(struct rig *r)
{
        pod_end(&r->pod, "{\"code\": 0}");
        pass(r->loop, USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_int_equal(r->pod.exit_status, 0);
}

static struct json *binary_value(struct rig *r, const char *key, struct arena *a)
{
        return json_at(json_at(map_json(r->kube, 1, a), "binaryData"), key);
}

static void write_random(const char *dir, const char *name, size_t size)
{
        char *text = xmalloc(size);
        struct rng rng;

        rng_seed(&rng, size);
        for (size_t i = 0; i < size; i++)
                text[i] = (char)('!' + rng_below(&rng, 64)); /* three quarters of it when compressed */
        pod_write_at(dir, name, str_n(text, size));
        free(text);
}

static void test_named_files_go_at_the_end_under_their_names(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_with(r, "a.yaml,b.yaml,missing.yaml");
        pod_write(&r->pod, "a.yaml", "kind: A\n");
        pod_write(&r->pod, "b.yaml", "kind: B\n");
        pod_write(&r->pod, "other.yaml", "not asked for");
        pass(r->loop, 60 * USEC_PER_SEC);
        assert_null(map_value(r->kube, 1, "a.yaml", &a)); /* it may not be finished */
        requests(r->kube);
        pod_write(&r->pod, RUN_RESULT_FILE, "{}");
        end(r);
        assert_string_equal(requests(r->kube), "pP"); /* with the result, before the terminal state */
        assert_string_equal(map_value(r->kube, 1, "a.yaml", &a), "kind: A\n");
        assert_string_equal(map_value(r->kube, 1, "b.yaml", &a), "kind: B\n");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_RESULT, &a), "{}");
        assert_null(map_value(r->kube, 1, "missing.yaml", &a));
        assert_null(map_value(r->kube, 1, "other.yaml", &a));
        assert_null(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a));
        assert_status(r, RUN_KEY_PROBLEM, "");
}

static void test_a_large_one_is_gzipped_and_so_is_what_is_no_text(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf packed = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
        struct json *large;

        begin_with(r, "large.yaml,odd");
        write_random(r->pod.dir, "large.yaml", 20000);
        pod_write(&r->pod, "odd", "\xff\xfe");
        end(r);
        large = binary_value(r, "large.yaml.gz", &a);
        assert_non_null(large);
        assert_null(map_value(r->kube, 1, "large.yaml", &a));
        assert_true(buf_add_unbase64(&packed, json_text(large)));
        assert_int_equal(gunzip_add(&text, buf_str(&packed), NULL), 0);
        assert_int_equal(text.n, 20000);
        assert_non_null(binary_value(r, "odd.gz", &a));
}

static void test_what_is_no_regular_file_is_said_and_not_followed(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char path[512];

        begin_with(r, "link.yaml,folder.yaml,good.yaml");
        snprintf(path, sizeof(path), "%s/link.yaml", r->pod.dir);
        assert_int_equal(symlink("/etc/passwd", path), 0);
        snprintf(path, sizeof(path), "%s/folder.yaml", r->pod.dir);
        assert_int_equal(mkdir(path, 0755), 0);
        pod_write(&r->pod, "good.yaml", "x");
        end(r);
        assert_problem(r, "link.yaml is a symbolic link");
        assert_problem(r, "folder.yaml is a directory");
        assert_null(map_value(r->kube, 1, "link.yaml", &a));
        assert_null(binary_value(r, "link.yaml.gz", &a));
        assert_string_equal(map_value(r->kube, 1, "good.yaml", &a), "x");
}

static void test_result_and_checkpoint_come_first_and_artifacts_last(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 32];

        begin_with(r, "no-room.yaml,fits.yaml");
        write_random(r->pod.dir, RUN_RESULT_FILE, 400 << 10);
        write_random(r->pod.dir, RUN_CHECKPOINT_FILE, 400 << 10);
        write_random(r->pod.dir, "no-room.yaml", 600 << 10);
        write_random(r->pod.dir, "fits.yaml", 200 << 10);
        snprintf(dir, sizeof(dir), "%s/artifacts", r->pod.dir);
        assert_int_equal(mkdir(dir, 0755), 0);
        write_random(dir, "large", 200 << 10);
        write_random(dir, "small", 1 << 10);
        end(r);
        assert_non_null(binary_value(r, "result.json.gz", &a));
        assert_non_null(binary_value(r, "checkpoint.json.gz", &a));
        assert_non_null(binary_value(r, "fits.yaml.gz", &a));
        assert_non_null(binary_value(r, "artifact.small", &a));
        assert_null(binary_value(r, "no-room.yaml.gz", &a));
        assert_null(binary_value(r, "artifact.large", &a));
        assert_problem(r, "no-room.yaml is not kept: it has 614400 bytes");
        assert_problem(r, "1 of 2 artifacts");
        assert_non_null(strstr(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a), "no-room.yaml"));
        assert_null(strstr(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a), "fits.yaml"));
}

static void test_one_that_is_too_large_to_be_read_is_said(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_with(r, "huge.yaml");
        write_random(r->pod.dir, "huge.yaml", 5 << 20);
        end(r);
        assert_problem(r, "huge.yaml is not kept: it has 5242880 bytes");
        assert_null(binary_value(r, "huge.yaml.gz", &a));
        assert_non_null(strstr(map_value(r->kube, 1, RUN_KEY_ARTIFACTS, &a), "huge.yaml"));
}

static void test_what_the_server_refuses_goes_after_artifacts_and_before_the_result(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_with(r, "a.yaml,b.yaml");
        r->kube->limit = 40000;
        write_random(r->pod.dir, RUN_RESULT_FILE, 20000);
        write_random(r->pod.dir, RUN_CHECKPOINT_FILE, 10000);
        write_random(r->pod.dir, "a.yaml", 9000);
        write_random(r->pod.dir, "b.yaml", 30000);
        end(r);
        assert_non_null(binary_value(r, "result.json.gz", &a));
        assert_non_null(binary_value(r, "checkpoint.json.gz", &a));
        assert_non_null(binary_value(r, "a.yaml.gz", &a));
        assert_null(binary_value(r, "b.yaml.gz", &a));
        assert_problem(r, "b.yaml (");
        assert_problem(r, "the API server refuses the ConfigMap with it");
}

static void put_data_of_another(struct rig *r)
{
        free(r->kube->maps[1].text);
        r->kube->maps[1].text = xstrdup(
                "{\"metadata\": {\"resourceVersion\": \"1\"}, \"data\": {\"attempt\": \"1\", \"podUID\": "
                "\"pod-x\", \"a.yaml\": \"old\", \"checkpoint.json\": \"[]\", \"foreign\": \"stays\"}, "
                "\"binaryData\": {\"b.yaml.gz\": \"AA==\", \"c.yaml.gz\": \"AA==\"}}");
        other_pod_writes(r->kube, 1, "pod-x", "Failed");
}

static void test_those_of_an_earlier_attempt_go(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        put_data_of_another(r);
        begin_with(r, "a.yaml,b.yaml");
        assert_null(map_value(r->kube, 1, "a.yaml", &a));
        assert_null(binary_value(r, "b.yaml.gz", &a));
        assert_non_null(binary_value(r, "c.yaml.gz", &a)); /* nobody named it */
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_CHECKPOINT, &a), "[]");
        assert_string_equal(map_value(r->kube, 1, "foreign", &a), "stays");
        pod_write(&r->pod, "b.yaml", "new");
        end(r);
        assert_null(map_value(r->kube, 1, "a.yaml", &a));
        assert_string_equal(map_value(r->kube, 1, "b.yaml", &a), "new");
}

/* An attempt that has ended before its relay has claimed the data. */
static void test_those_of_an_earlier_attempt_go_in_the_patch_that_brings_new_ones(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        put_data_of_another(r);
        r->pod.files = "a.yaml,b.yaml";
        pod_start(&r->pod);
        pod_write(&r->pod, "b.yaml", "new");
        pod_end(&r->pod, "{\"code\": 0}");
        pod_relay(&r->pod, r->kube);
        pass(r->loop, USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_null(map_value(r->kube, 1, "a.yaml", &a));
        assert_null(binary_value(r, "b.yaml.gz", &a));
        assert_string_equal(map_value(r->kube, 1, "b.yaml", &a), "new");
        assert_string_equal(map_value(r->kube, 1, RUN_KEY_POD, &a), "pod-a");
}

/* What an earlier attempt left takes no room from this one. */
static void test_what_goes_takes_no_room(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(2 << 20);

        buf_adds(&text,
                 "{\"metadata\": {\"resourceVersion\": \"1\"}, \"data\": {\"attempt\": \"1\", \"podUID\": "
                 "\"pod-x\", \"result.json\": \"");
        for (size_t i = 0; i < 700 << 10; i++)
                buf_addc(&text, 'x');
        buf_adds(&text, "\"}}");
        free(r->kube->maps[1].text);
        r->kube->maps[1].text = buf_take(&text);
        other_pod_writes(r->kube, 1, "pod-x", "Failed");
        r->pod.files = "a.yaml";
        pod_start(&r->pod);
        write_random(r->pod.dir, "a.yaml", 500 << 10);
        pod_end(&r->pod, "{\"code\": 0}");
        pod_relay(&r->pod, r->kube);
        pass(r->loop, USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_status(r, RUN_KEY_PROBLEM, "");
        assert_non_null(binary_value(r, "a.yaml.gz", &a));
        assert_null(map_value(r->kube, 1, RUN_KEY_RESULT, &a));
}

static void test_a_relay_that_comes_again_sends_them_once_more_and_no_other_form(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_with(r, "a.yaml");
        pod_write(&r->pod, "a.yaml", "x");
        plan_next(r->kube, FATE_OK, E_OK);                         /* the data */
        r->kube->otherwise = (struct step){FATE_ERROR, E_CONNECT}; /* the end */
        pod_end(&r->pod, "{\"code\": 0}");
        soon(r);
        assert_string_equal(map_value(r->kube, 1, "a.yaml", &a), "x");
        pod_relay_kill(&r->pod);
        write_random(r->pod.dir, "a.yaml", 20000);
        r->kube->otherwise = (struct step){0};
        pod_relay(&r->pod, r->kube);
        pass(r->loop, USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Succeeded");
        assert_null(map_value(r->kube, 1, "a.yaml", &a));
        assert_non_null(binary_value(r, "a.yaml.gz", &a));
}

static void test_they_are_kept_when_time_is_short(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_with(r, "a.yaml");
        relay_terminate(r->pod.relay);
        pass(r->loop, 20500 * USEC_PER_MS); /* flushing now */
        assert_int_equal(r->pod.exit_status, 1);
        pod_relay_kill(&r->pod);
        r->pod.exit_status = -1;
        pod_write(&r->pod, "a.yaml", "x");
        pod_end(&r->pod, "{\"signal\": 15}");
        pod_relay(&r->pod, r->kube);
        relay_terminate(r->pod.relay);
        pass(r->loop, USEC_PER_SEC);
        assert_status(r, RUN_KEY_STATE, "Failed");
        assert_string_equal(map_value(r->kube, 1, "a.yaml", &a), "x");
}

/* ---- which names are taken */

static void test_names_that_cannot_be_keys_or_are_ours_are_refused(void **state)
{
        static const struct {
                const char *files, *why;
        } cases[] = {
                {"a/b.yaml", "no plain file name"},
                {"../a", "no plain file name"},
                {"..a", "no plain file name"},
                {".", "no plain file name"},
                {"a b", "no plain file name"},
                {"\xc3\xa4", "no plain file name"},
                {"a.yaml,,b.yaml", "no plain file name"},
                {",a.yaml", "no plain file name"},
                {"a.yaml,", "missing after the last comma"},
                {"result.json", "the run's own"},
                {"result.json.gz", "the run's own"},
                {"checkpoint.json.gz", "the run's own"},
                {"attempt", "the run's own"},
                {"podUID", "the run's own"},
                {"specHash", "the run's own"},
                {"artifacts.json", "the run's own"},
                {"artifact.x", "the run's own"},
                {"profiling_status.json", "the run's own"},
                {"a.yaml,a.yaml", "one key"},
                {"a.yaml,a.yaml.gz", "one key"},
                {"a.yaml.gz,a.yaml", "one key"},
                {"1,2,3,4,5,6,7,8,9", "9 files are named, 8 may be"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;

                assert_int_equal(relay_check_files(cases[i].files, &err), -1);
                assert_int_equal(err.code, E_CONFIG);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("'%s': '%s' is not in '%s'", cases[i].files, cases[i].why, err.text);
        }
}

static void test_good_names_are_taken(void **state)
{
        static const char *const good[] = {NULL,       "",
                                           "a",        "config_with_planner.yaml,final_config.yaml",
                                           ".hidden",  "1,2,3,4,5,6,7,8",
                                           "attempts", "a,a.yaml"};
        char name[256];

        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                assert_int_equal(relay_check_files(good[i], NULL), 0);
        memset(name, 'x', 251);
        name[250] = '\0';
        assert_int_equal(relay_check_files(name, NULL), 0);
        name[250] = 'x';
        name[251] = '\0';
        assert_int_equal(relay_check_files(name, NULL), -1);
}

static void test_a_relay_with_bad_names_is_not_made(void **state)
{
        struct rig *r = *state;
        struct relay_config config = {.loop = r->loop,
                                      .kube = r->kube,
                                      .ns = "ns",
                                      .status_map = "status",
                                      .dir = r->pod.dir,
                                      .ctl = r->pod.ctl,
                                      .pod_uid = "pod-a",
                                      .files = "result.json"};
        struct err err = ERR_INIT;

        assert_null(relay_new(&config, &err));
        assert_int_equal(err.code, E_CONFIG);
}

static const struct CMUnitTest tests[] = {
        RELAY_TEST(test_named_files_go_at_the_end_under_their_names),
        RELAY_TEST(test_a_large_one_is_gzipped_and_so_is_what_is_no_text),
        RELAY_TEST(test_what_is_no_regular_file_is_said_and_not_followed),
        RELAY_TEST(test_result_and_checkpoint_come_first_and_artifacts_last),
        RELAY_TEST(test_one_that_is_too_large_to_be_read_is_said),
        RELAY_TEST(test_what_the_server_refuses_goes_after_artifacts_and_before_the_result),
        RELAY_TEST(test_those_of_an_earlier_attempt_go),
        RELAY_TEST(test_those_of_an_earlier_attempt_go_in_the_patch_that_brings_new_ones),
        RELAY_TEST(test_what_goes_takes_no_room),
        RELAY_TEST(test_a_relay_that_comes_again_sends_them_once_more_and_no_other_form),
        RELAY_TEST(test_they_are_kept_when_time_is_short),
        cmocka_unit_test(test_names_that_cannot_be_keys_or_are_ours_are_refused),
        cmocka_unit_test(test_good_names_are_taken),
        RELAY_TEST(test_a_relay_with_bad_names_is_not_made),
};

UNIT_MAIN(tests)
