#include "unit/parse.h"

#include "kube/names.h"

static const char *repeat(struct arena *a, char c, size_t n)
{
        char *s = arena_alloc(a, n + 1);

        memset(s, c, n);
        s[n] = '\0';
        return s;
}

/* ---- resource versions */

static void test_resource_versions_compare_by_length_then_digits(void **state)
{
        assert_true(rv_cmp(STR("9"), STR("10")) < 0);
        assert_true(rv_cmp(STR("100"), STR("99")) > 0);
        assert_true(rv_cmp(STR("123"), STR("124")) < 0);
        assert_int_equal(rv_cmp(STR("123"), STR("123")), 0);
        assert_true(rv_cmp(STR("0"), STR("1")) < 0);
        /* beyond 64 and 128 bits */
        assert_true(rv_cmp(STR("18446744073709551615"), STR("18446744073709551616")) < 0);
        assert_true(rv_cmp(STR("340282366920938463463374607431768211456"), STR("99999999999999999999")) > 0);
}

static void test_resource_version_empty_is_oldest(void **state)
{
        assert_true(rv_cmp(STR(""), STR("0")) < 0);
        assert_true(rv_cmp(STR("5"), STR("")) > 0);
        assert_true(rv_cmp(STR_NULL, STR("opaque")) < 0);
        assert_int_equal(rv_cmp(STR(""), STR_NULL), 0);
}

static void test_resource_versions_that_are_no_numbers_compare_as_text(void **state)
{
        assert_true(rv_cmp(STR("abc"), STR("abd")) < 0);
        assert_true(rv_cmp(STR("b"), STR("aaa")) > 0);
        assert_true(rv_cmp(STR("007"), STR("8")) < 0); /* a leading zero: no decimal of theirs */
        assert_int_equal(rv_cmp(STR("x1"), STR("x1")), 0);
}

/* ---- paths */

static const char *path_of(struct arena *a, const struct kube_type *type, const char *ns, const char *name,
                           const char *sub)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);

        kube_path(&b, type, ns, name, sub);
        return arena_strndup(a, b.p, b.n);
}

static void test_paths(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(path_of(&a, &KUBE_JOB, "ns", "x", "status"),
                            "/apis/batch/v1/namespaces/ns/jobs/x/status");
        assert_string_equal(path_of(&a, &KUBE_JOB, NULL, NULL, NULL), "/apis/batch/v1/jobs");
        assert_string_equal(path_of(&a, &KUBE_CONFIGMAP, "ns", NULL, NULL),
                            "/api/v1/namespaces/ns/configmaps");
        assert_string_equal(path_of(&a, &KUBE_NODE, NULL, "n1", NULL), "/api/v1/nodes/n1");
        assert_string_equal(path_of(&a, &KUBE_NODE, "ignored", "n1", NULL), "/api/v1/nodes/n1");
        assert_string_equal(path_of(&a, &KUBE_POD, "ns", "p", "log"), "/api/v1/namespaces/ns/pods/p/log");
        assert_string_equal(kube_api_version(&KUBE_POD, &a), "v1");
        assert_string_equal(kube_api_version(&KUBE_LEASE, &a), "coordination.k8s.io/v1");
}

static void test_a_name_cannot_change_the_request(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(path_of(&a, &KUBE_POD, "a/b", "x?y=1&z#%", NULL),
                            "/api/v1/namespaces/a%2Fb/pods/x%3Fy%3D1%26z%23%25");
        assert_string_equal(path_of(&a, &KUBE_POD, "..", ".", NULL), "/api/v1/namespaces/%2E%2E/pods/%2E");
        assert_string_equal(path_of(&a, &KUBE_POD, "n s", "\xc3\xa9\r\n", NULL),
                            "/api/v1/namespaces/n%20s/pods/%C3%A9%0D%0A");
}

static void test_a_long_path_is_whole(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *name = repeat(&a, 'n', 253), *ns = repeat(&a, 's', 63);

        assert_string_equal(path_of(&a, &KUBE_JOB, ns, name, "status"),
                            arena_printf(&a, "/apis/batch/v1/namespaces/%s/jobs/%s/status", ns, name));
}

/* ---- metadata */

static void test_metadata(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, "{\"metadata\":{\"name\":\"x\",\"generation\":3,\"ownerReferences\":["
                                   "{\"uid\":\"u1\"},{\"uid\":\"u2\",\"controller\":false},"
                                   "{\"uid\":\"u3\",\"controller\":true}]}}");

        assert_string_equal(meta_str(j, "name"), "x");
        assert_null(meta_str(j, "uid"));
        assert_null(meta_str(j, "generation"));
        assert_null(meta_str(NULL, "name"));
        assert_string_equal(meta_controller_uid(j), "u3");
        assert_null(meta_controller_uid(parse(&a, "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"u\"}]}}")));
        assert_null(meta_controller_uid(parse(&a, "{\"metadata\":{\"ownerReferences\":7}}")));
        assert_null(meta_controller_uid(parse(&a, "[]")));
}

static void test_owner_reference(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *owner = parse(&a, "{\"metadata\":{\"name\":\"x\",\"uid\":\"u\"}}");

        assert_string_equal(json_print(&a, owner_reference(&a, &KUBE_JOB, owner)),
                            "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"x\",\"uid\":\"u\","
                            "\"controller\":true,\"blockOwnerDeletion\":true}");
        assert_string_equal(json_str(owner_reference(&a, &KUBE_POD, owner), "apiVersion"), "v1");
}

/* ---- names */

static void test_valid_names(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        static const struct {
                const char *name;
                bool subdomain, label, job, value;
        } cases[] = {
                {"a", true, true, true, true},       {"a-b", true, true, true, true},
                {"1a", true, true, true, true},      {"a.b", true, false, true, true},
                {"a..b", false, false, false, true}, {"a.-b", false, false, false, true},
                {"a-.b", false, false, false, true}, {"A", false, false, false, true},
                {"a_b", false, false, false, true},  {"-a", false, false, false, false},
                {"a-", false, false, false, false},  {"a.", false, false, false, false},
                {".a", false, false, false, false},  {"", false, false, false, true},
                {"a b", false, false, false, false}, {"\xc3\xa9", false, false, false, false},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_int_equal(name_valid(NAME_SUBDOMAIN, str_of(cases[i].name)), cases[i].subdomain);
                assert_int_equal(name_valid(NAME_LABEL, str_of(cases[i].name)), cases[i].label);
                assert_int_equal(name_valid(NAME_JOB, str_of(cases[i].name)), cases[i].job);
                assert_int_equal(name_valid(NAME_LABEL_VALUE, str_of(cases[i].name)), cases[i].value);
        }
        assert_true(name_valid(NAME_SUBDOMAIN, str_of(repeat(&a, 'a', 253))));
        assert_false(name_valid(NAME_SUBDOMAIN, str_of(repeat(&a, 'a', 254))));
        assert_true(name_valid(NAME_JOB, str_of(repeat(&a, 'a', 63))));
        assert_false(name_valid(NAME_JOB, str_of(repeat(&a, 'a', 64))));
        assert_false(name_valid(NAME_LABEL, STR("a\0b")));
}

static void test_a_name_that_fits_stays_exact(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(name_fit(&a, NAME_SUBDOMAIN, "dgdr-status-", "llama.70b", "", "uid"),
                            "dgdr-status-llama.70b");
        assert_string_equal(name_fit(&a, NAME_JOB, "", "vec.add", "-profile", NULL), "vec.add-profile");
        assert_string_equal(name_fit(&a, NAME_JOB, "", repeat(&a, 'j', 63), NULL, NULL), repeat(&a, 'j', 63));
        assert_string_equal(name_fit(&a, NAME_LABEL_VALUE, "", "Some_Value", "", NULL), "Some_Value");
        assert_string_equal(name_fit(&a, NAME_LABEL_VALUE, "", "", "", NULL), "");
}

static void test_a_name_over_the_limit_is_cut_and_hashed(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *stem = repeat(&a, 'x', 64);
        const char *name = name_fit(&a, NAME_JOB, "", stem, "", "uid");

        assert_int_equal(strlen(name), 63);
        assert_memory_equal(name, stem, 52);
        assert_int_equal(name[52], '-');
        name = name_fit(&a, NAME_JOB, "profile-", repeat(&a, 'x', 253), "-run", "uid");
        assert_int_equal(strlen(name), 63);
        assert_true(str_has_prefix(str_of(name), STR("profile-xxx")));
        assert_true(str_has_suffix(str_of(name), STR("-run")));
        name = name_fit(&a, NAME_SUBDOMAIN, "dgdr-output-", repeat(&a, 'x', 253), "", NULL);
        assert_int_equal(strlen(name), 253);
}

static void test_a_cut_leaves_no_dash_or_dot_at_its_end(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        /* every position of the cut falls on a separator once */
        for (size_t n = 30; n < 80; n++) {
                const char *stem = arena_printf(&a, "%s.-.-%s", repeat(&a, 'a', n), repeat(&a, 'b', 80));
                const char *name = name_fit(&a, NAME_JOB, "", stem, "", NULL);

                assert_true(name_valid(NAME_JOB, str_of(name)));
                assert_int_equal(name[strlen(name) - 11], '-');
                assert_true(name[strlen(name) - 12] == 'a' || name[strlen(name) - 12] == 'b');
        }
}

static void test_dots_become_dashes_in_labels_and_do_not_collide(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *dot = name_fit(&a, NAME_LABEL, "", "a.b", "", NULL);
        const char *dash = name_fit(&a, NAME_LABEL, "", "a-b", "", NULL);

        assert_string_equal(dash, "a-b");
        assert_true(str_has_prefix(str_of(dot), STR("a-b-")));
        assert_int_equal(strlen(dot), 3 + 1 + 10);
}

static void test_changed_stems_never_meet(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        static const char *const stems[] = {"A.b",  "a.B",  "a_b",      "a b",      "a\nb", "a/b", "-a.b",
                                            "a.b-", "a..b", "\xc3\xa4", "\xc3\xb6", "!",    "!!",  ""};
        struct map seen = MAP_INIT;

        for (size_t i = 0; i < ARRAY_LEN(stems); i++) {
                const char *name = name_fit(&a, NAME_LABEL, "", stems[i], "", NULL);

                assert_true(name_valid(NAME_LABEL, str_of(name)));
                assert_null(map_put(&seen, str_of(name), &seen));
        }
        map_done(&seen);
}

static void test_two_long_stems_with_one_beginning_differ(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *x = arena_printf(&a, "%s1", repeat(&a, 'x', 100));
        const char *y = arena_printf(&a, "%s2", repeat(&a, 'x', 100));

        assert_string_not_equal(name_fit(&a, NAME_JOB, "", x, "", NULL),
                                name_fit(&a, NAME_JOB, "", y, "", NULL));
        assert_string_equal(name_fit(&a, NAME_JOB, "", x, "", NULL), name_fit(&a, NAME_JOB, "", x, "", NULL));
        /* where one part ends and the next begins counts too */
        assert_string_not_equal(name_fit(&a, NAME_LABEL, "a", "B", "", NULL),
                                name_fit(&a, NAME_LABEL, "", "aB", "", NULL));
}

static void test_a_recreated_object_gets_another_name(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *stem = repeat(&a, 'x', 100);

        assert_string_not_equal(name_fit(&a, NAME_JOB, "", stem, "", "uid-1"),
                                name_fit(&a, NAME_JOB, "", stem, "", "uid-2"));
}

static void test_anything_becomes_a_valid_name(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct rng r;

        rng_seed(&r, 7);
        for (int i = 0; i < 20000; i++) {
                static const char pool[] = "ab-._A0\xc3/ \n";
                char stem[300];
                size_t n = rng_below(&r, sizeof(stem));
                enum name_kind kind = (enum name_kind)rng_below(&r, 4);

                for (size_t k = 0; k < n; k++)
                        stem[k] = pool[rng_below(&r, sizeof(pool) - 1)];
                stem[MIN(n, sizeof(stem) - 1)] = '\0';
                assert_true(name_valid(
                        kind, str_of(name_fit(&a, kind, i % 2 ? "p-" : "", stem, i % 3 ? "-s" : "", NULL))));
                arena_reset(&a, SIZE_MAX);
        }
}

static void test_a_prefix_without_room_is_cut_too(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *name = name_fit(&a, NAME_LABEL, repeat(&a, 'p', 60), "stem", "", NULL);

        assert_true(name_valid(NAME_LABEL, str_of(name)));
        name = name_fit(&a, NAME_LABEL, "", "stem", "-not.valid_", NULL);
        assert_true(name_valid(NAME_LABEL, str_of(name)));
}

/* Computed with: printf %s hello | sha256sum | xxd -r -p | base32. */
static void test_hash_is_sha256_in_base32(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(name_hash(&a, STR("hello")), "ftze3os7wc");
        assert_string_equal(name_hash(&a, STR("")), "4oymiquy7q");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_versions_compare_by_length_then_digits),
        cmocka_unit_test(test_resource_version_empty_is_oldest),
        cmocka_unit_test(test_resource_versions_that_are_no_numbers_compare_as_text),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_a_name_cannot_change_the_request),
        cmocka_unit_test(test_a_long_path_is_whole),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_owner_reference),
        cmocka_unit_test(test_valid_names),
        cmocka_unit_test(test_a_name_that_fits_stays_exact),
        cmocka_unit_test(test_a_name_over_the_limit_is_cut_and_hashed),
        cmocka_unit_test(test_a_cut_leaves_no_dash_or_dot_at_its_end),
        cmocka_unit_test(test_dots_become_dashes_in_labels_and_do_not_collide),
        cmocka_unit_test(test_changed_stems_never_meet),
        cmocka_unit_test(test_two_long_stems_with_one_beginning_differ),
        cmocka_unit_test(test_a_recreated_object_gets_another_name),
        cmocka_unit_test(test_anything_becomes_a_valid_name),
        cmocka_unit_test(test_a_prefix_without_room_is_cut_too),
        cmocka_unit_test(test_hash_is_sha256_in_base32),
};

UNIT_MAIN(tests)
