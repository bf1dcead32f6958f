#include "unit/unit.h"

#include "kube/kube.h"

struct seen {
        char text[512];
};

static void listen(void *arg, enum cache_change change, const struct cache_entry *before,
                   const struct cache_entry *after, bool initial)
{
        static const char *const names[] = {"added", "updated", "removed"};
        struct seen *s = arg;
        size_t n = strlen(s->text);

        snprintf(s->text + n, sizeof(s->text) - n, "%s %s %s>%s%s; ", names[change],
                 (after ? after : before)->name, before ? before->rv : "", after ? after->rv : "",
                 initial ? " initial" : "");
}

static struct cache *new_cache(struct seen *seen)
{
        static const struct cache_index indexes[] = {{"spec.color"}};
        static const struct cache_config config = {
                .type = &KUBE_CONFIGMAP, .indexes = indexes, .n_indexes = 1};
        struct cache *c = cache_new(&config);

        if (seen)
                cache_listen(c, listen, seen);
        return c;
}

static void put(struct cache *c, const char *name, const char *uid, const char *rv, const char *owner,
                const char *color)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *o = json_build(
                &a,
                "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'namespace': 'ns', "
                "'name': %s, 'uid': %s, 'resourceVersion': %s, 'managedFields': [{'x': 1}], "
                "'ownerReferences': [{'uid': 'other'}, {'uid': %s, 'controller': true}]}, "
                "'spec': {'color': %s}}",
                name, uid, rv, owner, color);

        assert_int_equal(cache_put(c, o, &a, false, NULL), 0);
}

static void test_objects_are_kept_small_and_come_back_whole(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(cache_free) struct cache *c = new_cache(NULL);
        const struct cache_entry *e;

        put(c, "a", "u1", "5", "own", "red");
        e = cache_get(c, "ns", "a");
        assert_non_null(e);
        assert_string_equal(e->uid, "u1");
        assert_string_equal(e->rv, "5");
        assert_string_equal(e->owner, "own");
        assert_false(e->deleting);
        assert_string_equal(json_print(&a, cache_parse(c, e, &a)),
                            "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"other\"},{\"uid\":\"own\","
                            "\"controller\":true}],"
                            "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u1\",\"resourceVersion\":\"5\"},"
                            "\"spec\":{\"color\":\"red\"},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}");
        assert_ptr_equal(cache_get_uid(c, "u1"), e);
        assert_null(cache_get(c, "other", "a"));
        assert_null(cache_get(c, "", "a"));
}

static void test_listeners_hear_of_changes_only(void **state)
{
        struct seen seen = {""};
        _cleanup_(cache_free) struct cache *c = new_cache(&seen);

        put(c, "a", "u1", "5", "own", "red");
        put(c, "a", "u1", "5", "own", "red");
        put(c, "a", "u1", "6", "own", "blue");
        cache_remove(c, "ns", "a");
        cache_remove(c, "ns", "a");
        assert_string_equal(seen.text, "added a >5; updated a 5>6; removed a 6>; ");
        assert_int_equal(cache_count(c), 0);
        assert_int_equal(cache_bytes(c), 0);
}

static size_t count_owned(struct cache *c, const char *owner)
{
        size_t n = 0;

        for (const struct cache_entry *e = cache_first_owned(c, owner); e; e = cache_next_owned(c, e))
                n++;
        return n;
}

static size_t count_colored(struct cache *c, const char *color)
{
        size_t n = 0;

        for (const struct cache_entry *e = cache_first_indexed(c, 0, color); e;
             e = cache_next_indexed(c, 0, e))
                n++;
        return n;
}

static void test_indexes_follow_changes(void **state)
{
        _cleanup_(cache_free) struct cache *c = new_cache(NULL);
        char name[16], uid[16];

        for (int i = 0; i < 50; i++) {
                snprintf(name, sizeof(name), "o%d", i);
                snprintf(uid, sizeof(uid), "u%d", i);
                put(c, name, uid, "1", i % 2 ? "odd" : "even", i % 5 ? "red" : "");
        }
        assert_int_equal(count_owned(c, "odd"), 25);
        assert_int_equal(count_owned(c, "even"), 25);
        assert_int_equal(count_owned(c, "none"), 0);
        assert_int_equal(count_colored(c, "red"), 40);
        assert_int_equal(count_colored(c, ""), 0);
        for (int i = 0; i < 50; i += 2) {
                snprintf(name, sizeof(name), "o%d", i);
                snprintf(uid, sizeof(uid), "u%d", i);
                if (i % 4)
                        cache_remove(c, "ns", name);
                else
                        put(c, name, uid, "2", "odd", "blue");
        }
        assert_int_equal(count_owned(c, "odd"), 38);
        assert_int_equal(count_owned(c, "even"), 0);
        assert_int_equal(count_colored(c, "blue"), 13);
}

static void test_a_new_object_of_the_same_name_is_another(void **state)
{
        struct seen seen = {""};
        _cleanup_(cache_free) struct cache *c = new_cache(&seen);

        put(c, "a", "u1", "5", "own", "red");
        put(c, "a", "u2", "9", "own", "red");
        assert_null(cache_get_uid(c, "u1"));
        assert_string_equal(cache_get_uid(c, "u2")->rv, "9");
        assert_int_equal(count_owned(c, "own"), 1);
}

static void test_a_list_removes_what_it_does_not_name(void **state)
{
        struct seen seen = {""};
        _cleanup_(cache_free) struct cache *c = new_cache(&seen);

        put(c, "a", "u1", "1", "own", "red");
        put(c, "b", "u2", "2", "own", "red");
        put(c, "c", "u3", "3", "own", "red");
        cache_begin_replace(c);
        put(c, "a", "u1", "1", "own", "red");
        cache_begin_replace(c); /* the list was broken off and begun again */
        put(c, "b", "u2", "2", "own", "red");
        seen.text[0] = '\0';
        cache_end_replace(c);
        assert_int_equal(cache_count(c), 1);
        assert_non_null(strstr(seen.text, "removed a 1> initial"));
        assert_non_null(strstr(seen.text, "removed c 3> initial"));
}

static void test_objects_without_identity_are_refused(void **state)
{
        static const char *const texts[] = {
                "{}", "[]", "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}",
                "{\"metadata\":{\"name\":7,\"uid\":\"u\",\"resourceVersion\":\"1\"}}"};
        _cleanup_(cache_free) struct cache *c = new_cache(NULL);

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;

                assert_int_equal(cache_put(c, json_parse(&a, str_of(texts[i]), NULL, NULL), &a, false, &err),
                                 -1);
                assert_int_equal(err.code, E_INVALID);
        }
        assert_int_equal(cache_count(c), 0);
}

/* ---- what has ended */

static bool is_done(const struct json *object)
{
        return json_bool(object, "done", false);
}

/* An object of about 4 kB, like its neighbours but for its numbers. */
static struct json *result(struct arena *a, unsigned i, unsigned rv, bool done)
{
        struct json *samples = json_array(a);

        for (unsigned k = 0; k < 100; k++)
                json_append(samples, json_build(a, "{'duration': %lld, 'state': 'measured'}",
                                                (long long)(1000 + (i * 7919 + k * 104729) % 1000)));
        return json_build(a,
                          "{'metadata': {'namespace': 'ns', 'name': %s, 'uid': %s, 'resourceVersion': %s}, "
                          "'done': %p, 'samples': %p}",
                          arena_printf(a, "r%u", i), arena_printf(a, "u%u", i), arena_printf(a, "%u", rv),
                          (void *)json_truth(a, done), (void *)samples);
}

static void put_result(struct cache *c, unsigned i, unsigned rv, bool done)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_int_equal(cache_put(c, result(&a, i, rv, done), &a, false, NULL), 0);
}

static bool is_result(struct cache *c, unsigned i, unsigned rv, bool done)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char name[16];

        snprintf(name, sizeof(name), "r%u", i);
        return json_equal(json_at(cache_parse(c, cache_get(c, "ns", name), &a), "samples"),
                          json_at(result(&a, i, rv, done), "samples"));
}

static void test_what_has_ended_is_kept_in_fewer_bytes(void **state)
{
        static const struct cache_config config = {.type = &KUBE_CONFIGMAP, .ended = is_done};
        _cleanup_(cache_free) struct cache *c = cache_new(&config);
        struct seen seen = {""};
        size_t whole;

        for (unsigned i = 0; i < 100; i++)
                put_result(c, i, 1, false);
        whole = cache_bytes(c);
        for (unsigned i = 0; i < 100; i++)
                put_result(c, i, 2, true);
        assert_true(cache_bytes(c) < whole / 3);
        for (unsigned i = 0; i < 100; i++)
                assert_true(is_result(c, i, 2, true));
        cache_listen(c, listen, &seen);
        for (unsigned i = 0; i < 100; i++)
                put_result(c, i, 2, true);
        assert_string_equal(seen.text, ""); /* it is known as the same */
        put_result(c, 7, 3, false);
        assert_string_equal(seen.text, "updated r7 2>3; ");
        assert_true(is_result(c, 7, 3, false));
}

/* As after a restore of etcd. */
static void test_the_same_version_may_say_something_else(void **state)
{
        static const struct cache_config config = {.type = &KUBE_CONFIGMAP, .ended = is_done};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(cache_free) struct cache *c = cache_new(&config);
        struct json *other = result(&a, 8, 2, true), *meta = json_at(other, "metadata");
        struct seen seen = {""};

        put_result(c, 7, 2, true);
        cache_listen(c, listen, &seen);
        json_set(&a, meta, "name", json_string(&a, "r7"));
        json_set(&a, meta, "uid", json_string(&a, "u7"));
        assert_int_equal(cache_put(c, other, &a, false, NULL), 0);
        assert_string_equal(seen.text, "updated r7 2>2; ");
        put_result(c, 7, 2, true);
        assert_true(is_result(c, 7, 2, true));
}

static void test_what_is_forgotten_comes_back_with_its_next_change(void **state)
{
        struct seen seen = {""};
        _cleanup_(cache_free) struct cache *c = new_cache(&seen);

        put(c, "a", "u1", "5", "own", "red");
        cache_forget(c, "ns", "a", "4"); /* another version than that */
        cache_forget(c, "ns", "b", "5");
        assert_int_equal(cache_count(c), 1);
        cache_forget(c, "ns", "a", "5");
        assert_int_equal(cache_count(c), 0);
        assert_int_equal(cache_bytes(c), 0);
        assert_null(cache_first_owned(c, "own"));
        cache_remove(c, "ns", "a");
        put(c, "a", "u1", "6", "own", "red");
        assert_string_equal(seen.text, "added a >5; added a >6; ");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_kept_small_and_come_back_whole),
        cmocka_unit_test(test_listeners_hear_of_changes_only),
        cmocka_unit_test(test_indexes_follow_changes),
        cmocka_unit_test(test_a_new_object_of_the_same_name_is_another),
        cmocka_unit_test(test_a_list_removes_what_it_does_not_name),
        cmocka_unit_test(test_objects_without_identity_are_refused),
        cmocka_unit_test(test_what_has_ended_is_kept_in_fewer_bytes),
        cmocka_unit_test(test_the_same_version_may_say_something_else),
        cmocka_unit_test(test_what_is_forgotten_comes_back_with_its_next_change),
};

UNIT_MAIN(tests)
