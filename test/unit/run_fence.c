#include "unit/unit.h"

#include "run/fence.h"

static struct run_fence fence(uint64_t attempt, const char *pod, uint64_t sequence, enum run_state state)
{
        struct run_fence f = {.attempt = attempt, .sequence = sequence, .state = state};

        memcpy(f.pod, pod, strlen(pod) + 1);
        return f;
}

static bool follows(struct run_fence old, struct run_fence next)
{
        return run_fence_follows(&old, &next);
}

static struct json *parse(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);
        struct json *j;

        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        j = json_parse(a, str_of(copy), NULL, NULL);
        assert_non_null(j);
        return j;
}

static void test_what_follows(void **state)
{
        struct run_fence fresh = fence(1, "", 0, RUN_PENDING), running = fence(1, "a", 3, RUN_RUNNING),
                         done = fence(1, "a", 4, RUN_SUCCEEDED);

        assert_true(follows(fresh, fence(1, "a", 1, RUN_PENDING)));    /* the first pod */
        assert_true(follows(running, fence(1, "a", 4, RUN_FAILED)));   /* its next state */
        assert_true(follows(running, fence(1, "a", 9, RUN_RUNNING)));  /* not each has to be seen */
        assert_true(follows(running, fence(2, "b", 1, RUN_RUNNING)));  /* a newer attempt */
        assert_true(follows(done, fence(2, "b", 1, RUN_PENDING)));     /* which the end does not shut out */
        assert_true(follows(done, fence(2, "", 0, RUN_PENDING)));      /* the operator's new Job */
        assert_false(follows(running, fence(1, "a", 3, RUN_RUNNING))); /* the same again */
        assert_false(follows(running, fence(1, "a", 2, RUN_RUNNING)));
        assert_false(follows(running, fence(1, "b", 4, RUN_RUNNING))); /* another pod's */
        assert_false(follows(done, fence(1, "a", 5, RUN_RUNNING)));    /* after the end */
        assert_false(follows(fence(2, "b", 1, RUN_PENDING), done));    /* an old attempt */
}

static void test_a_new_map_reads_as_written(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct run_fence f;

        assert_int_equal(run_fence_read(run_fence_data(&a, 3), &f, NULL), 0);
        assert_int_equal(f.attempt, 3);
        assert_string_equal(f.pod, "");
        assert_int_equal(f.sequence, 0);
        assert_int_equal(f.state, RUN_PENDING);
        assert_string_equal(json_print(&a, run_fence_data(&a, 1)),
                            "{\"attempt\":\"1\",\"podUID\":\"\",\"sequence\":\"0\",\"state\":\"Pending\"}");
}

static void test_each_state_has_its_name(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (int s = 0; s < RUN_STATE_MAX_; s++) {
                struct json *data = run_fence_data(&a, 1);
                struct run_fence f;

                json_set(&a, data, "state", json_string(&a, run_state_name((enum run_state)s)));
                assert_int_equal(run_fence_read(data, &f, NULL), 0);
                assert_int_equal(f.state, s);
                assert_int_equal(run_state_terminal(f.state), s == RUN_SUCCEEDED || s == RUN_FAILED);
        }
}

static void test_a_malformed_map_is_refused(void **state)
{
        static const char *const bad[] = {
                "{}",
                "{'podUID': '', 'sequence': '0', 'state': 'Pending'}",
                "{'attempt': '1', 'sequence': '0', 'state': 'Pending'}",
                "{'attempt': '1', 'podUID': '', 'state': 'Pending'}",
                "{'attempt': '1', 'podUID': '', 'sequence': '0'}",
                "{'attempt': '0', 'podUID': '', 'sequence': '0', 'state': 'Pending'}",
                "{'attempt': '-1', 'podUID': '', 'sequence': '0', 'state': 'Pending'}",
                "{'attempt': 1, 'podUID': '', 'sequence': '0', 'state': 'Pending'}",
                "{'attempt': '1', 'podUID': '', 'sequence': 'x', 'state': 'Pending'}",
                "{'attempt': '1', 'podUID': '', 'sequence': '99999999999999999999', 'state': 'Pending'}",
                "{'attempt': '1', 'podUID': '', 'sequence': '9007199254740993', 'state': 'Pending'}",
                "{'attempt': '9007199254740993', 'podUID': '', 'sequence': '0', 'state': 'Pending'}",
                "{'attempt': '1', 'podUID': '', 'sequence': '0', 'state': 'pending'}",
                ("{'attempt': '1', 'sequence': '0', 'state': 'Pending', 'podUID': "
                 "'0123456789012345678901234567890123456789012345678901234567890123'}"),
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct run_fence f = fence(7, "kept", 7, RUN_FAILED);
                struct err err = ERR_INIT;

                assert_int_equal(run_fence_read(parse(&a, bad[i]), &f, &err), -1);
                assert_int_equal(err.code, E_INVALID);
                assert_int_equal(f.attempt, 7); /* not touched */
        }
        assert_int_equal(run_fence_read(NULL, &(struct run_fence){0}, NULL), -1);
}

static void test_a_patch_tests_all_and_changes_what_differs(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct run_fence old = fence(1, "a", 3, RUN_RUNNING), next = fence(1, "a", 4, RUN_RUNNING);
        struct json *patch = run_fence_patch(&a, &old, &next, parse(&a, "{'exit.json': 'x'}"),
                                             parse(&a, "{'status.json': '{}', 'exit.json': null, "
                                                       "'problem': null}"));

        assert_string_equal(
                json_print(&a, patch),
                json_print(&a, parse(&a, "[{'op': 'test', 'path': '/data/attempt', 'value': '1'},"
                                         "{'op': 'test', 'path': '/data/podUID', 'value': 'a'},"
                                         "{'op': 'test', 'path': '/data/sequence', 'value': '3'},"
                                         "{'op': 'test', 'path': '/data/state', 'value': 'Running'},"
                                         "{'op': 'replace', 'path': '/data/sequence', 'value': '4'},"
                                         "{'op': 'add', 'path': '/data/status.json', 'value': '{}'},"
                                         "{'op': 'remove', 'path': '/data/exit.json'}]")));
}

static void test_a_patch_applies_once(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *map = json_build(&a, "{'data': %p}", (void *)run_fence_data(&a, 1));
        struct run_fence old = fence(1, "", 0, RUN_PENDING), next = fence(1, "a", 1, RUN_RUNNING), seen;
        struct json *patch = run_fence_patch(&a, &old, &next, NULL, parse(&a, "{'status.json': '{}'}"));
        struct err err = ERR_INIT;

        assert_int_equal(json_patch(&a, &map, patch, &err), 0);
        assert_int_equal(run_fence_read(json_at(map, "data"), &seen, NULL), 0);
        assert_memory_equal(&seen, &next, sizeof(seen));
        assert_int_equal(json_patch(&a, &map, patch, &err), -1);
        assert_int_equal(err.code, E_FENCED);
}

static void test_a_note_leaves_the_state_alone(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct run_fence f = fence(2, "b", 9, RUN_RUNNING);

        assert_string_equal(
                json_print(&a, run_fence_note(&a, &f, parse(&a, "{'heartbeat': 'now'}"))),
                json_print(&a, parse(&a, "[{'op': 'test', 'path': '/data/attempt', 'value': '2'},"
                                         "{'op': 'test', 'path': '/data/podUID', 'value': 'b'},"
                                         "{'op': 'add', 'path': '/data/heartbeat', 'value': 'now'}]")));
}

static void test_keys_are_those_that_a_config_map_takes(void **state)
{
        static const char *const good[] = {"a", "config_with_planner.yaml", ".hidden", "-", "A.9_z"},
                                 *const bad[] = {"", ".", "..", "..a", "a/b", "a b", "\xc3\xa4"};
        char long_one[RUN_KEY_MAX + 1];

        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                assert_true(run_key_valid(str_of(good[i])));
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_false(run_key_valid(str_of(bad[i])));
        assert_false(run_key_valid(str_n("a\0b", 3)));
        memset(long_one, 'x', sizeof(long_one));
        assert_true(run_key_valid(str_n(long_one, RUN_KEY_MAX)));
        assert_false(run_key_valid(str_n(long_one, RUN_KEY_MAX + 1)));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_a_new_map_reads_as_written),
        cmocka_unit_test(test_each_state_has_its_name),
        cmocka_unit_test(test_a_malformed_map_is_refused),
        cmocka_unit_test(test_a_patch_tests_all_and_changes_what_differs),
        cmocka_unit_test(test_a_patch_applies_once),
        cmocka_unit_test(test_a_note_leaves_the_state_alone),
        cmocka_unit_test(test_keys_are_those_that_a_config_map_takes),
};

UNIT_MAIN(tests)
