#include "unit/run_kind.h"

static struct run_controls controls_of(struct rig *r, const char *spec)
{
        struct run run;

        given(r, spec, NULL);
        run_read(&r->view, &KIND, &run);
        return run.controls;
}

static void what_is_not_said(void **state)
{
        struct rig *r = *state;
        struct run_controls c = controls_of(r, "{}");

        assert_false(c.suspend || c.cancel || c.timeout || c.priority_class);
        assert_int_equal(c.retries, 3);
        assert_true(c.run_as_user < 0);
}

static void what_is_said(void **state)
{
        struct rig *r = *state;
        struct run_controls c = controls_of(
                r, "{'suspend': true, 'cancel': true, 'timeout': '1h30m', 'retries': 0, 'priorityClassName': "
                   "'high', 'runAsUser': 0}");

        assert_true(c.suspend && c.cancel);
        assert_int_equal(c.timeout, 5400 * USEC_PER_SEC);
        assert_int_equal(c.retries, 0);
        assert_string_equal(c.priority_class, "high");
        assert_int_equal(c.run_as_user, 0);
}

static void times(void **state)
{
        static const struct {
                const char *text;
                usec_t usec; /* 0: that is none */
        } cases[] = {
                {"90s", 90000000},
                {"30m", 1800000000},
                {"1h30m", 5400000000},
                {"1.5h", 5400000000},
                {".5s", 500000},
                {"1.s", 1000000},
                {"250ms", 250000},
                {"7us", 7},
                {"7\u00b5s", 7},
                {"8760h", 31536000000000},
                {"8760h1s", 0},
                {"0s", 0},
                {"", 0},
                {"5", 0},
                {"7d", 604800000000}, /* which the schema does not let through */
                {"h", 0},
                {".s", 0},
                {"-5m", 0},
                {"5 m", 0},
                {"1h x", 0},
                {"99999999999999999999h", 0},
                {"999999999999999999h", 0},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *spec = arena_printf(&r->arena, "{'timeout': '%s'}", cases[i].text), *wrong;

                if (controls_of(r, spec).timeout != cases[i].usec)
                        fail_msg("%s", cases[i].text);
                assert_int_equal(run_controls_check(&r->view, &wrong, 1), cases[i].usec == 0);
        }
}

static void all_that_is_wrong_at_once(void **state)
{
        static const char *const words[] = {
                "spec.suspend: ",           "spec.cancel: ",   "spec.timeout: 'soon'", "spec.retries: ",
                "spec.priorityClassName: ", "spec.runAsUser: "};
        struct rig *r = *state;
        const char *wrong[8];

        given(r,
              "{'suspend': 1, 'cancel': 'yes', 'timeout': 'soon', 'retries': 11, 'priorityClassName': 'A b', "
              "'runAsUser': 2147483648}",
              NULL);
        assert_int_equal(run_controls_check(&r->view, wrong, ARRAY_LEN(wrong)), ARRAY_LEN(words));
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                assert_says(wrong[i], words[i]);
        assert_int_equal(run_controls_check(&r->view, wrong, 2), 2);
        given(r,
              "{'suspend': false, 'timeout': '30m', 'retries': 10, 'priorityClassName': 'a.b', 'runAsUser': "
              "2147483647}",
              NULL);
        assert_int_equal(run_controls_check(&r->view, wrong, ARRAY_LEN(wrong)), 0);
}

/* What was measured for another spec is not taken up again; what may be changed at any time is no other spec. */
static void the_hash_is_of_what_is_run(void **state)
{
        struct rig *r = *state;
        const char *plain = hash_of(r, "{'image': 'a'}");

        assert_string_equal(plain, hash_of(r, "{'suspend': true, 'image': 'a', 'cancel': true, 'timeout': "
                                              "'5m', 'retries': 1, 'priorityClassName': 'x', 'runAsUser': 5, "
                                              "'loose': {'a': 1}}"));
        assert_false(streq(plain, hash_of(r, "{'image': 'b'}")));
        assert_string_equal(hash_of(r, "{'part': {'loose': 1, 'a': 2}}"), hash_of(r, "{'part': {'a': 2}}"));
        assert_false(streq(hash_of(r, "{'part': {'a': 2}}"), hash_of(r, "{'part': {'a': 3}}")));
        assert_false(streq(hash_of(r, "{'part': 1}"), hash_of(r, "{'part': 2}")));
        assert_string_equal(hash_of(r, "{'a': {'x': 1, 'y': [{'p': 1, 'q': 2}]}, 'b': 2}"),
                            hash_of(r, "{'b': 2, 'a': {'y': [{'q': 2, 'p': 1}], 'x': 1}}"));
        assert_false(streq(hash_of(r, "{'a': [1, 2]}"), hash_of(r, "{'a': [2, 1]}")));
}

/* A default that the server has since then is no edit: the generation is the same. One that was refused stays refused. */
static void a_new_default_is_no_change(void **state)
{
        static const char with_default[] = "{'image': 'a', 'new': true}";
        struct rig *r = *state;
        struct json *status = parse(r, "{'run': {'specHash': 'old'}}");
        struct run run;

        under_way(r, "{'image': 'a'}", ATTEMPT1, "");
        edit(r, with_default, 1);
        run_read(&r->view, &KIND, &run);
        assert_false(run.changed);
        run_settle_spec(&r->view, &r->d, &run, status);
        assert_string_equal(json_str(json_at(status, "run"), "specHash"), hash_of(r, with_default));
        edit(r, with_default, 2);
        run_read(&r->view, &KIND, &run);
        assert_true(run.changed);
        under_way(r, "{'image': 'a'}", ATTEMPT1,
                  ", 'conditions': [{'type': 'SpecAccepted', 'status': 'False', 'observedGeneration': 1}]");
        edit(r, with_default, 1);
        run_read(&r->view, &KIND, &run);
        assert_true(run.changed);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(what_is_not_said),
        T(what_is_said),
        T(times),
        T(all_that_is_wrong_at_once),
        T(the_hash_is_of_what_is_run),
        T(a_new_default_is_no_change),
};

UNIT_MAIN(tests)
