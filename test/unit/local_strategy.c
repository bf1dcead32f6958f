/* First: it has a function fail(), of which cmocka makes a macro. */
#include "kube/quantity.h"
#include "local/api_internal.h"

#include "unit/unit.h"

/* ---- what a real API server made of objects, or said about them: recorded by test/local/strategy-oracle.py */

struct rig {
        struct types *types;
        struct arena a;
};

static struct api_type *find_type(struct rig *r, const char *group, const char *plural)
{
        for (size_t i = 0; i < types_count(r->types); i++) {
                struct api_type *t = types_get(r->types, i);

                if (streq(t->kube.group, group) && streq(t->kube.plural, plural))
                        return t;
        }
        return NULL;
}

/* As a create does it, but for metadata, which is the same for all types. */
static void create(struct rig *r, const struct api_type *t, struct json *object, struct causes *causes)
{
        struct strategy_context ctx = {.type = t, .now = 1800000000 * USEC_PER_SEC, .a = &r->a};
        struct json *meta = object_meta(&r->a, object);

        json_set(&r->a, meta, "uid", json_string(&r->a, "UID"));
        if (t->kube.namespaced)
                json_set(&r->a, meta, "namespace", json_string(&r->a, "NS"));
        if (t->to_stored)
                t->to_stored(t, object, &r->a);
        else
                normalize_builtin(t->shape, object, &r->a);
        if (t->strategy->defaults)
                t->strategy->defaults(&ctx, object);
        if (t->strategy->prepare)
                t->strategy->prepare(&ctx, "", NULL, object);
        if (t->strategy->validate)
                t->strategy->validate(&ctx, "", NULL, object, causes);
}

static bool has_cause(const struct causes *causes, const struct json *want)
{
        for (size_t i = 0; i < causes->n; i++)
                if (streq(causes->list[i].field, json_str(want, "field")) &&
                    streq(causes->list[i].reason, json_str(want, "reason")) &&
                    streq(causes->list[i].message, json_str(want, "message")))
                        return true;
        return false;
}

/* The order is not compared: the server's maps have none. */
static void compare_causes(const char *name, const struct causes *causes, const struct json *want)
{
        json_foreach (w, want)
                if (!has_cause(causes, w))
                        fail_msg("%s: not said: %s: %s", name, json_str(w, "field"), json_str(w, "message"));
        for (size_t i = json_len(want); i < causes->n; i++)
                fail_msg("%s: %zu causes instead of %zu, the last: %s: %s", name, causes->n, json_len(want),
                         causes->list[causes->n - 1].field, causes->list[causes->n - 1].message);
}

static void replay_case(struct rig *r, const struct json *c)
{
        const struct api_type *t = find_type(r, json_str(c, "group"), json_str(c, "plural"));
        struct json *object = json_copy(&r->a, json_at(c, "in")), *meta;
        struct causes causes = {.a = &r->a};
        const char *name = json_str(c, "name");

        assert_non_null(t);
        create(r, t, object, &causes);
        compare_causes(name, &causes, json_at(c, "causes"));
        if (json_at(c, "causes"))
                return;
        if (t->from_stored)
                t->from_stored(t, object, &r->a);
        meta = json_remove(object, "metadata");
        json_remove(object, "kind");
        json_remove(object, "apiVersion");
        if (!json_equal(object, json_at(c, "out")))
                fail_msg("%s:\n is  %s\n not %s", name, json_print(&r->a, object),
                         json_print(&r->a, json_at(c, "out")));
        if (json_at(c, "labels") && !json_equal(json_at(meta, "labels"), json_at(c, "labels")))
                fail_msg("%s: labels are %s", name, json_print(&r->a, json_at(meta, "labels")));
}

static void replay(const char *path, size_t least)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct rig r = {.types = types_builtin()};
        struct err err = ERR_INIT;

        if (file_read(path, &text, &err) < 0 || doc_parse(&doc, buf_str(&text), NULL, &err) < 0)
                fail_msg("%s", err.text);
        assert_true(json_len(doc.root) >= least);
        json_foreach (c, doc.root) {
                replay_case(&r, c);
                arena_reset(&r.a, SIZE_MAX);
        }
        types_free(r.types);
        arena_done(&r.a);
}

static void test_pods_and_jobs(void **state)
{
        replay("test/data/strategy/pods.json", 30);
}

static void test_core_and_rbac(void **state)
{
        replay("test/data/strategy/core.json", 25);
}

static void test_definitions(void **state)
{
        replay("test/data/strategy/definitions.json", 30);
}

/* ---- amounts */

static void test_quantities(void **state)
{
        static const struct {
                const char *in, *out; /* NULL: refused */
        } cases[] = {
                {"1000m", "1"},
                {"0.5", "500m"},
                {"1024Mi", "1Gi"},
                {"1", "1"},
                {"1k", "1k"},
                {"1000", "1k"},
                {"1500m", "1500m"},
                {"1.5Gi", "1536Mi"},
                {"0.5Ki", "512"},
                {"1e3", "1e3"},
                {"1E3", "1e3"},
                {"100e-3", "100e-3"},
                {"0", "0"},
                {"0Ki", "0"},
                {"-1", "-1"},
                {"-1500Mi", "-1500Mi"},
                {"0.0000000001", "1n"},
                {"123456789", "123456789"},
                {"128974848", "128974848"},
                {"12e6", "12e6"},
                {"9223372036854775807", "9223372036854775807"},
                {"99999999999999999999", "9223372036854775807"},
                {"1Ei", "1Ei"},
                {".5", "500m"},
                {"5.", "5"},
                {"", NULL},
                {"a", NULL},
                {"1KI", NULL},
                {"1.2.3", NULL},
                {"1 ", NULL},
                {"+1", "1"},
                {"--1", NULL},
                {"1e", NULL},
                {"e3", NULL},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct quantity q;
                bool ok = quantity_parse(str_of(cases[i].in), &q);

                if (ok != (cases[i].out != NULL))
                        fail_msg("'%s' is %s", cases[i].in, ok ? "taken" : "refused");
                if (ok)
                        assert_string_equal(quantity_print(&q, &a), cases[i].out);
        }
}

/* ---- rows and selectors */

static void expect_row(struct rig *r, const char *plural, const struct json *object, const struct json *cells)
{
        struct api_type *t = find_type(r, "", plural);
        struct strategy_context ctx = {.type = t, .now = 1800000000 * USEC_PER_SEC, .a = &r->a};
        struct json *row = t->strategy->row(&ctx, object);

        assert_int_equal(json_len(row), t->n_columns);
        if (!json_equal(row, cells))
                fail_msg("%s", json_print(&r->a, row));
}

static void test_rows(void **state)
{
        struct rig r = {.types = types_builtin()};

        expect_row(
                &r, "pods",
                json_build(&r.a, "{'metadata': {'name': 'p', 'creationTimestamp': '2027-01-15T07:58:00Z'}, "
                                 "'spec': {'containers': [{}, "
                                 "{}], 'nodeName': 'n'}, 'status': {'phase': 'Running', 'podIPs': [{'ip': "
                                 "'1.2.3.4'}], "
                                 "'containerStatuses': [{'ready': true, 'restartCount': 2, 'state': "
                                 "{'running': {}}}, {'restartCount': 1, "
                                 "'state': {'terminated': {'exitCode': 3}}}]}}"),
                json_build(&r.a, "['p', '1/2', 'ExitCode:3', 3, '2m', '1.2.3.4', 'n', '<none>', '<none>']"));
        expect_row(
                &r, "pods",
                json_build(&r.a, "{'metadata': {'name': 'p'}, 'spec': {'initContainers': [{}, {}], "
                                 "'containers': [{}]}, 'status': {'phase': "
                                 "'Pending', 'initContainerStatuses': [{'state': {'terminated': {'exitCode': "
                                 "0}}}, {'state': {'running': "
                                 "{}}}]}}"),
                json_build(
                        &r.a,
                        "['p', '0/1', 'Init:1/2', 0, '<unknown>', '<none>', '<none>', '<none>', '<none>']"));
        expect_row(
                &r, "services",
                json_build(&r.a, "{'metadata': {'name': 's'}, 'spec': {'type': 'NodePort', 'clusterIPs': "
                                 "['10.0.0.1'], 'ports': [{'port': "
                                 "80, 'nodePort': 30000, 'protocol': 'TCP'}]}}"),
                json_build(&r.a,
                           "['s', 'NodePort', '10.0.0.1', '<none>', '80:30000/TCP', '<unknown>', '<none>']"));
        types_free(r.types);
        arena_done(&r.a);
}

static void test_field_selectors(void **state)
{
        struct rig r = {.types = types_builtin()};
        const struct strategy *pods = find_type(&r, "", "pods")->strategy;
        const struct strategy *events = find_type(&r, "", "events")->strategy;
        struct json *pod = json_build(&r.a, "{'spec': {'nodeName': 'n'}}");
        struct json *event = json_build(&r.a, "{'involvedObject': {'name': 'x'}, 'reportingComponent': 'c'}");

        assert_string_equal(pods->field(pod, "spec.nodeName", &r.a), "n");
        assert_string_equal(pods->field(pod, "status.phase", &r.a), "");
        assert_null(pods->field(NULL, "spec.containers", &r.a));
        assert_string_equal(events->field(event, "regarding.name", &r.a), "x");
        assert_string_equal(events->field(event, "source", &r.a), "c");
        assert_null(events->field(NULL, "message", &r.a));
        types_free(r.types);
        arena_done(&r.a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_and_jobs), cmocka_unit_test(test_core_and_rbac),
        cmocka_unit_test(test_definitions),   cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_field_selectors),
};

UNIT_MAIN(tests)
