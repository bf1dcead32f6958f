#include "unit/operator_rig.h"

/* ---- exactly what is needed */

/* The child is created once; nothing is decided before it is seen; the status is written once. */
static void one_create_one_status(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *map;

        r->mind.child = true;
        r->mind.status = "{'done': true}";
        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        map = map_of(&q->arena, q->body, "s", 101);
        assert_non_null(strstr(map, "\"controller\":true"));
        assert_non_null(strstr(map, "\"sonde.dev/controller\":\"test\""));
        api_answer(q, 201, map);
        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        assert_non_null(strstr(q->body, "\"uid\":\"uid-s\""));
        assert_non_null(strstr(q->body, "\"resourceVersion\":\"10\""));
        api_answer(q, 200, sample(&q->arena, "s", 102, "{\"done\":true}"));
        turns(r);
        assert_int_equal(r->mind.decisions, 1);
        assert_false(operator_idle(r->op));
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", 102, "{\"done\":true}"));
        assert_int_equal(r->mind.decisions, 1); /* our ConfigMap has not been seen yet */
        say(r, r->maps_watch, "ADDED", map);
        pass(r, 10 * SEC);
        assert_int_equal(r->mind.decisions, 2);
        assert_true(list_empty(&r->api.waiting));
        assert_true(operator_idle(r->op));
}

/* A field of somebody else in the status, or one that the server leaves out: not to be fought over. */
static void status_that_cannot_be_had(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.status = "{'done': true}";
        r->mind.again = 1; /* looked at again and again */
        begin_with(r, sample(&a, "s", 10, "{\"done\":true,\"theirs\":1}"), "");
        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        api_answer(q, 200, sample(&a, "s", 10, "{\"done\":true,\"theirs\":1}"));
        pass(r, 10 * SEC);
        assert_true(r->mind.decisions > 5);
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
        r->mind.status = "{'done': false}"; /* but another one is written */
        say(r, r->watch, "MODIFIED", sample(&a, "s", 120, "{\"done\":true,\"theirs\":1}"));
        api_find(&r->api, "PATCH", IN_NS "/s/status");
}

/* The server leaves a field out and counts the write as a change all the same, as with a CRD that does not have the field. */
static void status_that_is_pruned(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.status = "{'done': true, 'newer': 1}";
        begin(r);
        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        api_answer(q, 200, sample(&a, "s", 102, "{\"done\":true}"));
        say(r, r->watch, "MODIFIED", sample(&a, "s", 102, "{\"done\":true}"));
        pass(r, 10 * SEC);
        assert_int_equal(r->mind.decisions, 2);
        assert_true(list_empty(&r->api.waiting));
        say(r, r->watch, "MODIFIED",
            sample(&a, "s", 103, "{}")); /* somebody took it away: it is told once more */
        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        api_answer(q, 200, sample(&a, "s", 104, "{\"done\":true,\"newer\":1}"));
        say(r, r->watch, "MODIFIED", sample(&a, "s", 104, "{\"done\":true,\"newer\":1}"));
        assert_true(operator_idle(r->op));
        assert_int_equal(r->op->runtimes[0].items.n, 0); /* and nothing is left to remember */
}

/* ---- the wrong answer */

/* The ConfigMap of an earlier plan; EXTRA: more of its metadata. */
static char *old_map(struct arena *a, const char *extra)
{
        return arena_printf(
                a,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"ns\","
                "\"name\":\"s\",\"uid\":\"uid-map-s\",\"resourceVersion\":\"50\","
                "\"labels\":{\"sonde.dev/controller\":\"test\"},\"annotations\":{\"sonde.dev/plan\":"
                "\"old\"},\"ownerReferences\":[{\"uid\":\"uid-s\",\"controller\":true}]%s},"
                "\"data\":{\"v\":\"old\"}}",
                extra);
}

/* After an answer that makes no sense nothing is applied without its uid and version. */
static void nothing_is_applied_blindly(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.child = true;
        begin_with(r, sample(&a, "s", 10, NULL), old_map(&a, ""));
        api_answer(api_find(&r->api, "GET", MAPS_NS "/s"), 200,
                   old_map(&a, ",\"managedFields\":[{\"manager\":\"sonde-test\",\"operation\":\"Update\"}]"));
        api_answer(api_find(&r->api, "PATCH", MAPS_NS "/s"), 200, "<html>welcome to the proxy</html>");
        pass(r, SEC);
        assert_null(api_waiting(&r->api, "PATCH", MAPS_NS "/s"));
        q = api_find(&r->api, "GET", MAPS_NS "/s"); /* looks again instead */
        api_answer(q, 200, old_map(&a, ""));
        q = api_find(&r->api, "PATCH", MAPS_NS "/s");
        assert_non_null(strstr(q->body, "\"uid\":\"uid-map-s\""));
        assert_non_null(strstr(q->body, "\"resourceVersion\":\"50\""));
}

static void strangers_are_left_alone(void **state)
{
        static const char *const strangers[] = {
                "{\"metadata\":{\"name\":\"s\",\"uid\":\"x\",\"resourceVersion\":\"7\"}}",
                "{\"metadata\":{\"name\":\"s\",\"uid\":\"x\",\"resourceVersion\":\"7\","
                "\"ownerReferences\":[{"
                "\"uid\":\"uid-other\",\"controller\":true}]}}",
                "{\"metadata\":{\"name\":\"s\",\"uid\":\"x\",\"resourceVersion\":\"7\","
                "\"ownerReferences\":[{"
                "\"uid\":\"uid-s\"}]}}",
                "<html></html>",
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
                struct request *q;

                r->mind.child = true;
                begin(r);
                api_refuse(api_find(&r->api, "POST", MAPS_NS), 409, "AlreadyExists", NULL);
                api_answer(api_find(&r->api, "GET", MAPS_NS "/s"), 200, strangers[i]);
                q = api_find(&r->api, "PATCH", IN_NS "/s/status");
                assert_non_null(strstr(q->body, "\"NameConflict\""));
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

static void refusals_are_told_and_not_repeated(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *status;

        r->mind.child = true;
        begin(r);
        api_refuse(api_find(&r->api, "POST", MAPS_NS), 422, "Invalid", NULL);
        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        assert_non_null(strstr(q->body, "\"type\":\"Stalled\",\"status\":\"True\""));
        assert_non_null(strstr(q->body, "422 Invalid: told so"));
        status = json_print(&q->arena, json_at(json_parse(&q->arena, str_of(q->body), NULL, NULL), "status"));
        api_answer(q, 200, sample(&q->arena, "s", 102, status));
        api_answer(api_find(&r->api, "POST", "/apis/events.k8s.io/v1/namespaces/ns/events"), 201, "{}");
        turns(r);
        /* Its own status comes back: the same is decided, refused and not told again. */
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", 102, status));
        api_refuse(api_find(&r->api, "POST", MAPS_NS), 422, "Invalid", NULL);
        pass(r, 100 * SEC);
        list_foreach (node, &r->api.waiting) /* watchdogs, but no writes */
                assert_true(
                        str_has_prefix(str_of(CONTAINER_OF(node, struct request, node)->line), STR("GET ")));
        assert_int_equal(r->mind.decisions, 2);
}

/* ---- pressure */

static void a_refused_status_is_told_on_the_one_that_is_there(void **state)
{
        struct rig *r = *state;
        struct request *q;

        r->mind.status = "{'done': 'no'}";
        begin(r);
        api_refuse(api_find(&r->api, "PATCH", IN_NS "/s/status"), 422, "Invalid", NULL);
        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        assert_non_null(strstr(q->body, "\"type\":\"Stalled\",\"status\":\"True\""));
        assert_non_null(strstr(q->body, "\"type\":\"Progressing\",\"status\":\"False\""));
        assert_non_null(strstr(q->body, "422 Invalid: told so"));
        api_refuse(q, 422, "Invalid", NULL); /* not even that: later */
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
        pass(r, 10 * SEC);
        assert_non_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
}

static void waits_as_the_server_says(void **state)
{
        struct rig *r = *state;

        r->mind.child = true;
        begin(r);
        api_refuse(api_find(&r->api, "POST", MAPS_NS), 429, "TooManyRequests", "90");
        turns(r);
        pass(r, 89 * SEC);
        assert_null(api_waiting(&r->api, "POST", MAPS_NS));
        pass(r, 2 * SEC);
        api_find(&r->api, "POST", MAPS_NS);
}

static void a_past_moment_is_no_busy_loop(void **state)
{
        struct rig *r = *state;

        r->mind.again = 1;
        begin(r);
        turns(r);
        pass(r, 10 * SEC);
        assert_in_range(r->mind.decisions, 2, 110);
}

/* A long backlog with nothing to do must not keep the lease from being renewed. */
static void a_backlog_lets_others_in(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf items = BUF_INIT(8 << 20);
        unsigned most = 0;

        for (unsigned i = 0; i < 2000; i++)
                buf_printf(&items, "%s%s", i ? "," : "", sample(&a, arena_printf(&a, "s%u", i), 10, NULL));
        r->mind.costs = USEC_PER_MS;
        r->wait_to_lead = true;
        begin_with(r, buf_cstr(&items), "");
        operator_lead(r->op);
        while (r->mind.decisions < 2000) {
                unsigned before = r->mind.decisions;

                net_turn(&r->api.net);
                most = MAX(most, r->mind.decisions - before);
        }
        assert_in_range(most, 1, 100);
}

/* Look-ups are bounded; who asks for ever is told so, and tried again, but not at once. */
static void endless_wants(void **state)
{
        struct rig *r = *state;
        char path[128];
        unsigned n;

        r->mind.child = true;
        r->mind.wants = 1000;
        begin(r);
        for (n = 0; n < 8; n++) {
                snprintf(path, sizeof(path), MAPS_NS "/wanted-%u", n);
                api_refuse(api_find(&r->api, "GET", path), 404, "NotFound", NULL);
        }
        turns(r);
        assert_true(list_empty(&r->api.waiting)); /* half a decision is not carried out */
        pass(r, SEC);
        api_find(&r->api, "GET", MAPS_NS "/wanted-0");
}

/* ---- the end, at any moment */

static void freed_while_in_work(void **state)
{
        struct rig *r = *state;
        struct request *q;

        for (int i = 0; i < 5; i++) {
                memset(&r->mind, 0, sizeof(r->mind));
                r->mind.clock = &r->api.net.clock;
                r->mind.child = i != 0;
                r->mind.wants = i == 1;
                r->mind.status = "{'x': 1}";
                begin(r);
                if (i == 1)
                        q = api_find(&r->api, "GET", MAPS_NS "/wanted-0");
                else if (i == 0)
                        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
                else
                        q = api_find(&r->api, "POST", MAPS_NS);
                if (i == 3) {
                        api_refuse(q, 409, "AlreadyExists", NULL);
                        q = api_find(&r->api, "GET", MAPS_NS "/s");
                }
                if (i == 4) { /* waits for its own write and for a retry */
                        api_answer(q, 201, map_of(&q->arena, q->body, "s", 101));
                        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
                        api_refuse(q, 409, "Conflict", NULL);
                        turns(r);
                }
                operator_free(TAKE_PTR(r->op));
                if (q->ex)
                        api_answer(q, 200, "{}");
                pass(r, 10 * SEC);
                api_free_requests(&r->api.waiting);
        }
}

static void drained(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *map;

        r->mind.child = true;
        r->mind.status = "{'x': 1}";
        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        say(r, r->watch, "ADDED", sample(&q->arena, "t", 105, NULL));
        api_find(&r->api, "POST", MAPS_NS); /* never answered in time: canceled by its timeout */
        operator_drain(r->op, on_drained, r);
        say(r, r->watch, "ADDED", sample(&q->arena, "u", 106, NULL));
        map = map_of(&q->arena, q->body, "s", 107);
        api_answer(q, 201, map);
        q = api_find(&r->api, "PATCH", IN_NS "/s/status"); /* what was begun is finished */
        api_answer(q, 200, sample(&q->arena, "s", 108, "{\"x\":1}"));
        turns(r);
        assert_int_equal(r->drained, 0);
        r->free_when_drained = true;
        pass(r, 61 * SEC);
        assert_int_equal(r->drained, 1);
        assert_null(r->op);
        assert_null(api_waiting(&r->api, "POST", MAPS_NS)); /* u was not begun */
        assert_int_equal(r->mind.decisions, 2);
}

static void drained_at_once(void **state)
{
        struct rig *r = *state;

        begin(r);
        turns(r);
        r->free_when_drained = true;
        operator_drain(r->op, on_drained, r);
        assert_int_equal(r->drained, 0); /* from the loop */
        turns(r);
        assert_int_equal(r->drained, 1);
}

/* What the last decision said is not lost, but an API server that does not answer holds up nothing. */
static void drained_with_its_events(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (int answered = 0; answered < 2; answered++) {
                struct request *q;

                r->drained = 0;
                r->mind.gone = true;
                begin_with(r, sample(&a, "s", 10, NULL), old_map(&a, ""));
                api_refuse(api_find(&r->api, "DELETE", MAPS_NS "/s"), 403, "Forbidden", NULL);
                q = api_find(&r->api, "POST", EVENTS);
                operator_drain(r->op, on_drained, r);
                pass(r, SEC);
                assert_int_equal(r->drained, 0);
                if (answered)
                        api_answer(q, 201, "{}");
                turns(r);
                pass(r, answered ? 20 * USEC_PER_MS : SEC);
                assert_int_equal(r->drained, 1);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

static void not_ours_any_more(void **state)
{
        struct rig *r = *state;

        r->mind.child = true;
        r->forbid = true;
        begin(r);
        pass(r, 30 * SEC);
        assert_null(api_waiting(&r->api, "POST", MAPS_NS));
        assert_in_range(r->mind.decisions, 2, 20); /* with backoff */
        r->forbid = false;
        pass(r, 60 * SEC);
        api_find(&r->api, "POST", MAPS_NS);
}

/* Deleted and made again under the same name while in work. */
static void recreated(void **state)
{
        struct rig *r = *state;
        struct request *q;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->mind.child = true;
        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        say(r, r->watch, "DELETED", sample(&a, "s", 103, NULL));
        say(r, r->watch, "ADDED",
            "{\"apiVersion\":\"example.sonde.dev/"
            "v1\",\"kind\":\"Sample\",\"metadata\":{\"namespace\":\"ns\",\"name\":"
            "\"s\",\"uid\":\"uid-new\",\"resourceVersion\":\"104\"}}");
        assert_null(api_waiting(&r->api, "POST", MAPS_NS));
        api_answer(q, 201, map_of(&q->arena, q->body, "s", 102)); /* for the old one, and collected with it */
        turns(r);
        say(r, r->maps_watch, "ADDED", map_of(&q->arena, q->body, "s", 102));
        pass(r, 3 * SEC);
        q = api_find(&r->api, "POST", MAPS_NS);
        assert_non_null(strstr(q->body, "\"uid\":\"uid-new\""));
        api_refuse(q, 409, "AlreadyExists", NULL);
        api_answer(api_find(&r->api, "GET", MAPS_NS "/s"), 404, "");
        pass(r, SEC);
        api_find(&r->api, "POST", MAPS_NS);
}

/* What is not watched is looked at where its name is found taken, and follows the plan all the same. */
static void unwatched_kinds_follow_the_plan(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *account;

        r->mind.account = true;
        begin(r);
        q = api_find(&r->api, "POST", ACCOUNTS);
        account = map_of(&q->arena, q->body, "s", 101);
        api_answer(q, 201, account);
        turns(r);
        assert_true(operator_idle(r->op)); /* nothing to wait for */

        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", 110, NULL)); /* a look for another reason */
        api_refuse(api_find(&r->api, "POST", ACCOUNTS), 409, "AlreadyExists", NULL);
        api_answer(api_find(&r->api, "GET", ACCOUNTS "/s"), 200, account);
        turns(r);
        assert_true(list_empty(&r->api.waiting)); /* as planned */

        r->mind.value = "2";
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", 120, NULL));
        api_refuse(api_find(&r->api, "POST", ACCOUNTS), 409, "AlreadyExists", NULL);
        api_answer(api_find(&r->api, "GET", ACCOUNTS "/s"), 200, account);
        q = api_find(&r->api, "PATCH", ACCOUNTS "/s");
        assert_string_equal(api_param(q, "force"), "true");
        assert_non_null(strstr(q->body, "\"resourceVersion\":\"101\""));
        assert_non_null(strstr(q->body, "\"v\":\"2\""));
}

/* A child that is deleted and made again for ever must not be remembered for ever. */
static void what_is_settled_is_bounded(void **state)
{
        struct item item = {0};
        size_t n = 0;
        char uid[16];

        for (int i = 0; i < 1000; i++) {
                snprintf(uid, sizeof(uid), "u%d", i);
                settled_remember(&item, uid, "1", "h");
        }
        settled_remember(&item, "u999", "2", "h");
        for (const struct settled *s = item.settled; s; s = s->next)
                n++;
        assert_in_range(n, 16, 256);
        assert_true(settled_known(&item, "u999", "2", "h") && settled_known(&item, "u990", "1", "h"));
        assert_false(settled_known(&item, "u999", "1", "h") || settled_known(&item, "u0", "1", "h"));
        settled_clear(&item);
}

static void deletes_carry_the_uid(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.gone = true;
        begin_with(r, sample(&a, "s", 10, NULL), old_map(&a, ""));
        q = api_find(&r->api, "DELETE", MAPS_NS "/s");
        assert_non_null(strstr(q->body, "\"preconditions\":{\"uid\":\"uid-map-s\"}"));
        api_answer(q, 200, "{}");
        pass(r, 10 * SEC);
        assert_int_equal(r->mind.decisions, 1); /* it has not been seen to go */
        say(r, r->maps_watch, "DELETED",
            "{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"s\",\"uid\":\"uid-map-s\","
            "\"resourceVersion\":\"110\"}}");
        pass(r, 3 * SEC);
        assert_int_equal(r->mind.decisions, 2);
        assert_true(list_empty(&r->api.waiting));
}

/* What rests is not remembered, unless something is to be done about it; a change brings it back for one decision. */
static void what_rests_is_forgotten(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct cache *maps;

        r->kinds[0].passing = true;
        begin_with(r, sample(&a, "s", 10, NULL), old_map(&a, ""));
        maps = r->op->runtimes[0].sources[1].cache;
        pass(r, SEC);
        assert_int_equal(cache_count(maps), 1);
        r->mind.rests = true;
        say(r, r->watch, "MODIFIED", sample(&a, "s", 120, NULL));
        pass(r, SEC);
        assert_int_equal(r->mind.decisions, 2);
        assert_int_equal(cache_count(maps), 0);
        r->mind.rests = false;
        say(r, r->maps_watch, "MODIFIED", map_of(&a, old_map(&a, ""), "s", 130));
        pass(r, SEC);
        assert_int_equal(r->mind.decisions, 3);
        assert_int_equal(cache_count(maps), 1);
        assert_true(list_empty(&r->api.waiting));
}

/* What is gone already is no failure; what cannot be deleted now is tried again; what is forbidden is an event as well. */
static void a_delete_that_fails_is_tried_again(void **state)
{
        static const struct {
                int status;
                const char *reason;
                bool again;
                const char *event;
        } cases[] = {{404, "NotFound", false, NULL},
                     {403, "Forbidden", true, "\"CleanupForbidden\""},
                     {422, "Invalid", true, "\"CleanupRefused\""},
                     {500, "InternalError", true, NULL}};
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                r->mind.gone = true;
                begin_with(r, sample(&a, "s", 10, NULL), old_map(&a, ""));
                api_refuse(api_find(&r->api, "DELETE", MAPS_NS "/s"), cases[i].status, cases[i].reason, NULL);
                if (cases[i].event)
                        assert_non_null(strstr(api_find(&r->api, "POST", EVENTS)->body, cases[i].event));
                pass(r, 10 * SEC);
                assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
                assert_int_equal(api_waiting(&r->api, "DELETE", MAPS_NS "/s") != NULL, cases[i].again);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

static void plan_with_labels(const struct view *v, struct decision *d)
{
        decide_exist(d, &KUBE_CONFIGMAP,
                     json_build(v->arena,
                                "{'metadata': {'name': 's', 'labels': {'app.kubernetes.io/managed-by': %s, "
                                "'sonde.dev/controller': 'other'}}, 'spec': {'template': {}}}",
                                ((const struct mind *)v->settings)->value),
                     EXIST_APPLY);
}

/* Who manages it is the plan's to say, where it does; what the watches select by is not. */
static void labels_of_the_plan(void **state)
{
        struct rig *r = *state;
        struct request *q;
        struct json *body, *labels;

        r->mind.value = "upstream";
        r->controller.plan = plan_with_labels;
        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        body = json_parse(&q->arena, str_of(q->body), NULL, NULL);
        labels = json_at(json_at(body, "metadata"), "labels");
        assert_string_equal(json_str(labels, OPERATOR_LABEL_MANAGED_BY), "upstream");
        assert_string_equal(json_str(labels, OPERATOR_LABEL_CONTROLLER), "test");
        labels = json_at(json_path(body, "spec.template.metadata"), "labels");
        assert_string_equal(json_str(labels, OPERATOR_LABEL_MANAGED_BY), "sonde");
        assert_string_equal(json_str(labels, OPERATOR_LABEL_CONTROLLER), "test");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(one_create_one_status),
        TEST(status_that_cannot_be_had),
        TEST(status_that_is_pruned),
        TEST(nothing_is_applied_blindly),
        TEST(strangers_are_left_alone),
        TEST(refusals_are_told_and_not_repeated),
        TEST(a_refused_status_is_told_on_the_one_that_is_there),
        TEST(waits_as_the_server_says),
        TEST(a_past_moment_is_no_busy_loop),
        TEST(a_backlog_lets_others_in),
        TEST(endless_wants),
        TEST(freed_while_in_work),
        TEST(drained),
        TEST(drained_at_once),
        TEST(drained_with_its_events),
        TEST(not_ours_any_more),
        TEST(recreated),
        TEST(unwatched_kinds_follow_the_plan),
        TEST(what_is_settled_is_bounded),
        TEST(deletes_carry_the_uid),
        TEST(what_rests_is_forgotten),
        TEST(a_delete_that_fails_is_tried_again),
        TEST(labels_of_the_plan),
};
UNIT_MAIN(tests)
