#include "unit/unit.h"

#include "cli/mlflow.h"

static void test_names_become_what_mlflow_takes(void **state)
{
        static const struct {
                const char *name, *key;
        } names[] = {
                {"executionTime", "executionTime"},
                {"mlResults.accuracy", "mlResults.accuracy"},
                {"a/b c-d_e.f", "a/b c-d_e.f"},
                {"p99 (ms)", "p99 _ms_"},
                {"spec.env[0]:x=1", "spec.env_0__x_1"},
                {"/etc/passwd", "_etc_passwd"},
                {"a//b", "a__b"},
                {"a/../b", "a_.._b"},
                {"a/", "a_"},
                {".", "_"},
                {"..", "_"},
                {"", "_"},
                {"\xc3\xbc", "__"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char longest[400];

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                assert_string_equal(mlflow_key(&a, names[i].name), names[i].key);
        memset(longest, 'x', sizeof(longest));
        longest[sizeof(longest) - 1] = '\0';
        assert_int_equal(strlen(mlflow_key(&a, longest)), 250);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_become_what_mlflow_takes),
};

UNIT_MAIN(tests)
