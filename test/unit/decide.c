#include "unit/unit.h"

#include "decide/decide.h"

#define NOON ((usec_t)1794744000 * USEC_PER_SEC) /* 2026-11-15T12:00:00Z */

struct rig {
        struct arena arena;
        struct view view;
        struct decision decision;
};

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->view.arena = &r->arena;
        r->view.now = NOON;
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        decision_done(&r->decision);
        arena_done(&r->arena);
        free(r);
        return 0;
}

static struct json *parse(struct rig *r, const char *text)
{
        char *copy = arena_strdup(&r->arena, text);
        struct json *j;

        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        j = json_parse(&r->arena, str_of(copy), NULL, NULL);
        assert_non_null(j);
        return j;
}

static void assert_json(struct rig *r, const struct json *is, const char *wanted)
{
        if (!json_equal(is, parse(r, wanted)))
                fail_msg("%s is not %s", json_print(&r->arena, is), wanted);
}

/* ---- conditions */

static void condition_of_a_new_request(void **state)
{
        struct rig *r = *state;
        struct json *status = json_object(&r->arena);

        r->view.request = parse(r, "{'metadata': {'generation': 3}}");
        decide_condition(&r->view, status, "Ready", "True", "Done", "all is there");
        assert_json(r, status,
                    "{'conditions': [{'type': 'Ready', 'status': 'True', 'observedGeneration': 3, "
                    "'lastTransitionTime': '2026-11-15T12:00:00Z', 'reason': 'Done', 'message': 'all is "
                    "there'}]}");
}

static void transition_time_moves_with_the_status_alone(void **state)
{
        struct rig *r = *state;
        struct json *status = json_object(&r->arena), *list;

        r->view.request = parse(
                r, "{'metadata': {'generation': 4}, 'status': {'conditions': ["
                   "{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2020-01-01T00:00:00Z'}, "
                   "{'type': 'Stalled', 'status': 'False', 'lastTransitionTime': "
                   "'2020-02-02T00:00:00Z'}, {'type': 'Odd', 'status': 'True'}]}}");
        decide_condition(&r->view, status, "Ready", "True", "Other", "another reason");
        decide_condition(&r->view, status, "Stalled", "True", "Refused", "no");
        decide_condition(&r->view, status, "Odd", "True", "Odd", "had no time");
        list = json_at(status, "conditions");
        assert_string_equal(json_str(json_index(list, 0), "lastTransitionTime"), "2020-01-01T00:00:00Z");
        assert_string_equal(json_str(json_index(list, 0), "reason"), "Other");
        assert_string_equal(json_str(json_index(list, 1), "lastTransitionTime"), "2026-11-15T12:00:00Z");
        assert_string_equal(json_str(json_index(list, 2), "lastTransitionTime"), "2026-11-15T12:00:00Z");
}

/* Two entries of one type would be refused by the server, and by then for good. */
static void condition_set_twice_is_one(void **state)
{
        struct rig *r = *state;
        struct json *status;

        r->view.request = parse(
                r, "{'metadata': {}, 'status': {'x': 1, 'conditions': ["
                   "{'type': 'Ready', 'status': 'False', 'observedGeneration': 0, 'reason': 'A', "
                   "'message': 'a', 'lastTransitionTime': '2020-01-01T00:00:00Z'}, "
                   "{'type': 'Theirs', 'status': 'True'}]}}");
        status = json_copy(&r->arena, json_at(r->view.request, "status")); /* begun from what is there */
        decide_condition(&r->view, status, "Ready", "True", "B", "b");
        decide_condition(&r->view, status, "Ready", "False", "A", "a");
        assert_json(r, status,
                    json_print(&r->arena, json_at(r->view.request, "status"))); /* and its place is kept */
}

static void conditions_that_are_no_list(void **state)
{
        struct rig *r = *state;
        struct json *status;

        r->view.request = parse(r, "{'status': {'conditions': {'type': 'Ready'}}}");
        status = json_copy(&r->arena, json_at(r->view.request, "status"));
        decide_condition(&r->view, status, "Ready", "True", "A", "a");
        assert_int_equal(json_len(json_at(status, "conditions")), 1);
        assert_string_equal(json_str(json_index(json_at(status, "conditions"), 0), "reason"), "A");
}

/* ---- look-ups */

static void wants_are_bounded_and_told_once(void **state)
{
        struct rig *r = *state;
        struct want want = {.kind = WANT_OBJECT, .type = &KUBE_POD, .name = "a"};
        struct answer answer = {.want = want, .error = "no"};

        assert_null(decide_want(&r->decision, &r->view, &want));
        assert_null(
                decide_want(&r->decision, &r->view, &(struct want){WANT_OBJECT, &KUBE_POD, "a", NULL, NULL}));
        assert_int_equal(r->decision.n_wants, 1);
        for (int i = 0; i < 100; i++) {
                want.name = arena_printf(&r->arena, "more-%d", i);
                assert_null(decide_want(&r->decision, &r->view, &want));
        }
        assert_int_equal(r->decision.n_wants, WANTS_MAX);

        decision_done(&r->decision);
        assert_int_equal(r->decision.n_wants, 0);
        r->view.answers = &answer;
        r->view.n_answers = 1;
        want.name = "a";
        assert_ptr_equal(decide_want(&r->decision, &r->view, &want), &answer); /* also one that failed */
        want.kind = WANT_EVENTS;
        assert_null(decide_want(&r->decision, &r->view, &want)); /* another question */
        want = (struct want){.kind = WANT_OBJECT, .type = &KUBE_JOB, .name = "a"};
        assert_null(decide_want(&r->decision, &r->view, &want));
        assert_int_equal(r->decision.n_wants, 2);
}

/* ---- the rest */

static void the_earliest_moment_counts(void **state)
{
        struct rig *r = *state;

        decide_again_at(&r->decision, 300);
        decide_again_at(&r->decision, 100);
        decide_again_at(&r->decision, 200);
        assert_int_equal(r->decision.again_at, 100);
}

static void children_are_found_by_type_and_name(void **state)
{
        struct rig *r = *state;
        struct object children[] = {{.type = &KUBE_JOB, .name = "x"}, {.type = &KUBE_POD, .name = "x"}};

        r->view.children = children;
        r->view.n_children = ARRAY_LEN(children);
        assert_ptr_equal(view_child(&r->view, &KUBE_POD, "x"), &children[1]);
        assert_null(view_child(&r->view, &KUBE_POD, "y"));
        assert_null(view_child(&r->view, &KUBE_CONFIGMAP, "x"));
}

static void a_child_may_have_a_status(void **state)
{
        struct rig *r = *state;
        struct json *object = json_object(&r->arena), *status = json_object(&r->arena);

        decide_exist(&r->decision, &KUBE_CONFIGMAP, object, EXIST_APPLY);
        decide_exist_with_status(&r->decision, &KUBE_JOB, object, EXIST_ONCE, status);
        assert_int_equal(r->decision.exist.n, 2);
        assert_null(r->decision.exist.v[0].status);
        assert_ptr_equal(r->decision.exist.v[1].status, status);
        assert_int_equal(r->decision.exist.v[1].how, EXIST_ONCE);
}

static void events_are_formatted(void **state)
{
        struct rig *r = *state;

        decide_event(&r->decision, &r->view, EVENT_WARNING, "Odd", "%d of %s", 3, "them");
        assert_int_equal(r->decision.events.n, 1);
        assert_string_equal(r->decision.events.v[0].note, "3 of them");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(condition_of_a_new_request),
        TEST(transition_time_moves_with_the_status_alone),
        TEST(condition_set_twice_is_one),
        TEST(conditions_that_are_no_list),
        TEST(wants_are_bounded_and_told_once),
        TEST(the_earliest_moment_counts),
        TEST(children_are_found_by_type_and_name),
        TEST(a_child_may_have_a_status),
        TEST(events_are_formatted),
};
UNIT_MAIN(tests)
