/*
 * api-verbs - every verb of the client against an API server, and the typed error of every refusal.
 *
 * The first part of the conformance suite: what it says holds for Kubernetes and for whatever else serves this API.
 * Uses KUBECONFIG and makes a namespace of its own; prints TAP.
 */
#include "unit/unit.h"

#include <unistd.h>

#include "kube/kube.h"

struct fixture {
        struct loop *loop;
        struct kube *kube;
        struct kube_config config;
        struct arena arena;
        char ns[64];
};

static struct fixture f;

/* One request; returns its error code and leaves the answer in *BODY. */
static enum err_code ask(struct kube_request r, const char *body, struct json **ret)
{
        struct err err = ERR_INIT;
        struct str text = STR_NULL;

        if (!r.type && !r.path)
                r.type = &KUBE_CONFIGMAP;
        if (!r.ns && r.type && r.type->namespaced)
                r.ns = f.ns;
        if (body)
                r.body = str_of(body);
        if (ret)
                *ret = NULL;
        if (kube_do(f.kube, &r, &f.arena, &text, &err) < 0) {
                if (getenv("VERBOSE"))
                        print_message("%s: %s\n", err_code_name(err.code), err.text);
                return err.code;
        }
        if (ret)
                *ret = json_parse(&f.arena, text, NULL, NULL);
        return E_OK;
}

#define ASK(verb_, body_, ret_, ...) \
        ask((struct kube_request){.verb = (verb_), ##__VA_ARGS__}, (body_), (ret_))

static struct json *make(const char *name, const char *labels)
{
        struct json *made;
        char *body = arena_printf(&f.arena,
                                  "{\"metadata\":{\"name\":\"%s\",\"labels\":%s},\"data\":{\"k\":\"v\"}}",
                                  name, labels ? labels : "{}");

        assert_int_equal(ASK(KUBE_CREATE, body, &made), E_OK);
        return made;
}

static const char *version_of(const struct json *o)
{
        return meta_str(o, "resourceVersion");
}

static void test_create_get_and_already_exists(void **state)
{
        struct json *made = make("a", NULL), *got;

        assert_int_equal(ASK(KUBE_GET, NULL, &got, .name = "a"), E_OK);
        assert_string_equal(meta_str(got, "uid"), meta_str(made, "uid"));
        assert_int_equal(ASK(KUBE_CREATE, "{\"metadata\":{\"name\":\"a\"}}", NULL), E_EXISTS);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = "nobody"), E_NOT_FOUND);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = ""), E_INTERNAL);
        assert_int_equal(ASK(KUBE_DELETE, NULL, NULL, .name = ""), E_INTERNAL);
}

static void test_lists_by_pages_and_selectors(void **state)
{
        struct json *page;
        const char *token;

        for (int i = 0; i < 5; i++)
                make(arena_printf(&f.arena, "page-%d", i),
                     i % 2 ? "{\"color\":\"red\"}" : "{\"color\":\"blue\"}");
        assert_int_equal(ASK(KUBE_LIST, NULL, &page, .limit = 2, .label_selector = "color in (red,blue)"),
                         E_OK);
        assert_int_equal(json_len(json_at(page, "items")), 2);
        token = meta_str(page, "continue");
        assert_non_null(token);
        assert_int_equal(ASK(KUBE_LIST, NULL, &page, .limit = 10, .label_selector = "color in (red,blue)",
                             .continue_token = token),
                         E_OK);
        assert_int_equal(json_len(json_at(page, "items")), 3);
        assert_int_equal(ASK(KUBE_LIST, NULL, &page, .label_selector = "color=red"), E_OK);
        assert_int_equal(json_len(json_at(page, "items")), 2);
        assert_int_equal(ASK(KUBE_LIST, NULL, &page, .field_selector = "metadata.name=page-3"), E_OK);
        assert_int_equal(json_len(json_at(page, "items")), 1);
        assert_int_equal(ASK(KUBE_LIST, NULL, NULL, .label_selector = "not a selector!"), E_REFUSED);
}

static void test_update_is_optimistic(void **state)
{
        struct json *made = make("u", NULL), *changed;
        char *old;

        json_set(&f.arena, json_at(made, "data"), "k", json_string(&f.arena, "2"));
        old = json_print(&f.arena, made);
        assert_int_equal(ASK(KUBE_UPDATE, old, &changed, .name = "u"), E_OK);
        assert_true(rv_cmp(str_of(version_of(changed)), str_of(version_of(made))) > 0);
        assert_int_equal(ASK(KUBE_UPDATE, old, NULL, .name = "u"), E_CONFLICT);
}

static void test_patches(void **state)
{
        struct json *o;

        make("p", NULL);
        assert_int_equal(ASK(KUBE_PATCH_MERGE, "{\"data\":{\"k\":null,\"m\":\"1\"}}", &o, .name = "p"), E_OK);
        assert_null(json_str(json_at(o, "data"), "k"));
        assert_int_equal(ASK(KUBE_PATCH_JSON,
                             "[{\"op\":\"test\",\"path\":\"/data/m\",\"value\":\"1\"},"
                             "{\"op\":\"replace\",\"path\":\"/data/m\",\"value\":\"2\"}]",
                             &o, .name = "p"),
                         E_OK);
        assert_string_equal(json_str(json_at(o, "data"), "m"), "2");
        assert_int_equal(ASK(KUBE_PATCH_JSON, "[{\"op\":\"test\",\"path\":\"/data/m\",\"value\":\"1\"}]",
                             NULL, .name = "p"),
                         E_FENCED);
        assert_int_equal(ASK(KUBE_PATCH_STRATEGIC, "{\"data\":{\"s\":\"3\"}}", &o, .name = "p"), E_OK);
        assert_string_equal(json_str(json_at(o, "data"), "s"), "3");
}

static char *applied(const char *name, const char *meta, const char *value)
{
        return arena_printf(&f.arena,
                            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"%s},"
                            "\"data\":{\"k\":\"%s\"}}",
                            name, meta, value);
}

static void test_server_side_apply(void **state)
{
        struct json *o;
        const char *pin;

        assert_int_equal(ASK(KUBE_APPLY, applied("s", "", "1"), &o, .name = "s", .field_manager = "one"),
                         E_OK);
        assert_int_equal(ASK(KUBE_APPLY, applied("s", "", "2"), NULL, .name = "s", .field_manager = "two"),
                         E_OWNED);
        assert_int_equal(ASK(KUBE_APPLY, applied("s", "", "2"), &o, .name = "s", .field_manager = "two",
                             .force = true),
                         E_OK);
        assert_string_equal(json_str(json_at(o, "data"), "k"), "2");
        /* With uid and version it neither adopts nor overwrites. */
        pin = arena_printf(&f.arena, ",\"uid\":\"%s\",\"resourceVersion\":\"1\"", meta_str(o, "uid"));
        assert_int_equal(ASK(KUBE_APPLY, applied("s", pin, "3"), NULL, .name = "s", .field_manager = "two"),
                         E_CONFLICT);
        pin = ",\"uid\":\"00000000-0000-0000-0000-000000000000\"";
        assert_int_equal(
                ASK(KUBE_APPLY, applied("nobody", pin, "3"), NULL, .name = "nobody", .field_manager = "two"),
                E_CONFLICT);
}

static void test_dry_run_changes_nothing(void **state)
{
        assert_int_equal(ASK(KUBE_CREATE, "{\"metadata\":{\"name\":\"dry\"}}", NULL, .dry_run = true), E_OK);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = "dry"), E_NOT_FOUND);
}

static void test_status_is_another_door(void **state)
{
        struct json *job;
        const char *spec = "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"template\":{\"spec\":{"
                           "\"restartPolicy\":\"Never\","
                           "\"containers\":[{\"name\":\"c\",\"image\":\"localhost/none:1\"}]}}}}";

        assert_int_equal(ASK(KUBE_CREATE, spec, &job, .type = &KUBE_JOB), E_OK);
        assert_int_equal(
                ASK(KUBE_PATCH_MERGE, "{\"status\":{\"failed\":7}}", &job, .type = &KUBE_JOB, .name = "j"),
                E_OK);
        assert_int_not_equal(json_int(json_at(job, "status"), "failed", 0), 7);
        assert_int_equal(ASK(KUBE_PATCH_MERGE, "{\"status\":{\"failed\":7}}", &job, .type = &KUBE_JOB,
                             .name = "j", .subresource = "status"),
                         E_OK);
        assert_int_equal(json_int(json_at(job, "status"), "failed", 0), 7);
}

static void test_deletes_carry_preconditions(void **state)
{
        struct json *made = make("d", NULL);
        const char *wrong = kube_delete_options(&f.arena, "00000000-0000-0000-0000-000000000000", NULL,
                                                "Background");
        const char *right = kube_delete_options(&f.arena, meta_str(made, "uid"), version_of(made),
                                                "Background");

        assert_int_equal(ASK(KUBE_DELETE, wrong, NULL, .name = "d"), E_CONFLICT);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = "d"), E_OK);
        assert_int_equal(ASK(KUBE_DELETE, right, NULL, .name = "d"), E_OK);
        assert_int_equal(ASK(KUBE_DELETE, right, NULL, .name = "d"), E_NOT_FOUND);
        make("c1", "{\"go\":\"1\"}");
        make("c2", "{\"go\":\"1\"}");
        assert_int_equal(ASK(KUBE_DELETE_COLLECTION, NULL, NULL, .label_selector = "go=1"), E_OK);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = "c1"), E_NOT_FOUND);
}

static void test_refusals_have_types(void **state)
{
        static const struct kube_type unknown = {"nobody.example", "v1", "things", "Thing", true, false};
        char *huge = arena_alloc(&f.arena, 1500000);

        memset(huge, 'x', 1499999);
        huge[1499999] = '\0';
        assert_int_equal(ASK(KUBE_CREATE, "{\"metadata\":{\"name\":\"Not Valid\"}}", NULL), E_REFUSED);
        assert_int_equal(ASK(KUBE_CREATE, "{not json", NULL), E_REFUSED);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .type = &unknown, .name = "x"), E_NOT_FOUND);
        assert_int_equal(
                ASK(KUBE_CREATE,
                    arena_printf(&f.arena, "{\"metadata\":{\"name\":\"big\"},\"data\":{\"k\":\"%s\"}}", huge),
                    NULL),
                E_REFUSED);
        assert_int_equal(
                ASK(KUBE_LIST, NULL, NULL, .resource_version = "999999999", .timeout = 120 * USEC_PER_SEC),
                E_EXPIRED);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .path = "/apis/nobody.example/v1"), E_NOT_FOUND);
}

static void test_names_cannot_change_the_request(void **state)
{
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = "a?watch=1"), E_NOT_FOUND);
        assert_int_equal(ASK(KUBE_GET, NULL, NULL, .name = "../../secrets"), E_NOT_FOUND);
        assert_int_equal(ASK(KUBE_LIST, NULL, NULL, .field_selector = "metadata.name=a&limit=1"), E_REFUSED);
}

struct watched {
        struct json_split *split;
        struct kube_call *call;
        unsigned added, deleted;
        bool done;
};

static int on_event(void *arg, struct str value, struct err *err)
{
        struct watched *w = arg;
        struct json *event = json_parse(&f.arena, value, NULL, err);

        w->added += streq(json_str(event, "type"), "ADDED");
        w->deleted += streq(json_str(event, "type"), "DELETED");
        return event ? 0 : -1;
}

static void on_data(void *arg, struct str chunk)
{
        assert_int_equal(json_split_feed(((struct watched *)arg)->split, chunk, NULL), 0);
}

static void on_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        ((struct watched *)arg)->done = true;
}

static void test_watch_streams_events(void **state)
{
        struct watched w = {.split = json_split_new(SPLIT_VALUES, 1 << 20, on_event, &w)};
        struct kube_request r = {.verb = KUBE_WATCH,
                                 .type = &KUBE_CONFIGMAP,
                                 .ns = f.ns,
                                 .bookmarks = true,
                                 .label_selector = "watched=yes",
                                 .timeout_seconds = 300};
        struct json *list;

        assert_int_equal(ASK(KUBE_LIST, NULL, &list), E_OK);
        r.resource_version = version_of(list);
        w.call = kube_stream(f.kube, &r, on_data, on_done, &w);
        make("w", "{\"watched\":\"yes\"}");
        assert_int_equal(ASK(KUBE_DELETE, NULL, NULL, .name = "w"), E_OK);
        while ((w.added < 1 || w.deleted < 1) && !w.done)
                loop_turn(f.loop, true);
        assert_int_equal(w.added, 1);
        assert_int_equal(w.deleted, 1);
        if (!w.done)
                kube_cancel(w.call);
        json_split_free(w.split);
}

static int set_up(void **state)
{
        struct kube_config_sources sources = {0};
        struct err err = ERR_INIT;
        char body[128];

        kube_config_from_env(&sources);
        f.loop = loop_new(NULL, NULL, &err);
        if (!f.loop || kube_config_load(&sources, &f.config, &err) < 0 ||
            !(f.kube = kube_new(f.loop, &f.config, NULL, &err))) {
                print_error("%s\n", err.text);
                return -1;
        }
        snprintf(f.ns, sizeof(f.ns), "verbs-%d-%llu", (int)getpid(),
                 (unsigned long long)(loop_wall(f.loop) % 1000000));
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", f.ns);
        return ASK(KUBE_CREATE, body, NULL, .type = &KUBE_NAMESPACE) == E_OK ? 0 : -1;
}

static int tear_down(void **state)
{
        ASK(KUBE_DELETE, NULL, NULL, .type = &KUBE_NAMESPACE, .name = f.ns);
        kube_free(f.kube);
        loop_free(f.loop);
        kube_config_done(&f.config);
        arena_done(&f.arena);
        return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_get_and_already_exists),
        cmocka_unit_test(test_lists_by_pages_and_selectors),
        cmocka_unit_test(test_update_is_optimistic),
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_server_side_apply),
        cmocka_unit_test(test_dry_run_changes_nothing),
        cmocka_unit_test(test_status_is_another_door),
        cmocka_unit_test(test_deletes_carry_preconditions),
        cmocka_unit_test(test_refusals_have_types),
        cmocka_unit_test(test_names_cannot_change_the_request),
        cmocka_unit_test(test_watch_streams_events),
};

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
