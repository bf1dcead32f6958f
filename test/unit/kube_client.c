#include "unit/api_rig.h"
#include "unit/dir.h"

#define SEC  USEC_PER_SEC
#define MAPS "/api/v1/namespaces/ns/configmaps"
#define MAP  MAPS "/m"

struct result {
        struct api *api;
        unsigned done, asked;
        struct err err;
        int status;
        usec_t retry_after;
        struct buf body, data;
        char tag;    /* for the order */
        bool refuse; /* may_send says no from now on */
        bool free_in_end, free_in_data, cancel_in_data;
        struct kube_call *call;
};

struct rig {
        struct api api;
        struct result r[4];
        char order[8];               /* of their ends, at first */
        char path[UNIT_DIR_LEN + 8]; /* of a token file */
};

static struct rig *current;

static int setup_with(void **state, const struct kube_options *options)
{
        struct rig *rig = xcalloc(1, sizeof(*rig));

        api_init(&rig->api, options);
        for (size_t i = 0; i < ARRAY_LEN(rig->r); i++) {
                rig->r[i].api = &rig->api;
                rig->r[i].tag = (char)('a' + i);
                rig->r[i].body = rig->r[i].data = (struct buf)BUF_INIT(1 << 20);
        }
        *state = current = rig;
        return 0;
}

static int setup(void **state)
{
        return setup_with(state, NULL);
}

static int setup_limited(void **state)
{
        return setup_with(state, &(struct kube_options){.qps = 1, .burst = 1});
}

static int teardown(void **state)
{
        struct rig *rig = *state;

        api_done(&rig->api);
        for (size_t i = 0; i < ARRAY_LEN(rig->r); i++) {
                buf_done(&rig->r[i].body);
                buf_done(&rig->r[i].data);
        }
        free(rig);
        return 0;
}

/* ---- calls */

static void on_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct result *r = arg;

        r->call = NULL;
        r->done++;
        err_clear(&r->err);
        if (err)
                r->err = *err;
        r->status = answer->status;
        r->retry_after = answer->retry_after;
        buf_clear(&r->body);
        buf_addstr(&r->body, answer->body);
        if (strlen(current->order) + 1 < sizeof(current->order))
                current->order[strlen(current->order)] = r->tag;
        if (r->free_in_end)
                kube_free(TAKE_PTR(r->api->kube));
}

static void on_data(void *arg, struct str chunk)
{
        struct result *r = arg;

        buf_addstr(&r->data, chunk);
        if (r->cancel_in_data)
                kube_cancel(TAKE_PTR(r->call));
        if (r->free_in_data)
                kube_free(TAKE_PTR(r->api->kube));
}

static bool may_send(void *arg)
{
        struct result *r = arg;

        r->asked++;
        return !r->refuse;
}

static void begin(struct result *r, struct kube_request q)
{
        if (!q.type && !q.path)
                q.type = &KUBE_CONFIGMAP;
        if (!q.ns)
                q.ns = "ns";
        if (!q.name && q.verb != KUBE_CREATE && q.verb != KUBE_LIST && q.verb != KUBE_WATCH)
                q.name = "m";
        if (!q.body.p && q.verb >= KUBE_CREATE)
                q.body = STR("{}");
        r->done = 0;
        r->call = kube_send(r->api->kube, &q, on_done, r);
}

static void begin_stream(struct result *r)
{
        struct kube_request q = {.verb = KUBE_WATCH, .type = &KUBE_CONFIGMAP, .ns = "ns"};

        r->call = kube_stream(r->api->kube, &q, on_data, on_done, r);
}

static void until_done(struct result *r)
{
        net_until(&r->api->net, r->done);
}

static void settle(struct rig *rig)
{
        for (int i = 0; i < 20; i++)
                net_turn(&rig->api.net);
}

static void pass(struct rig *rig, usec_t time)
{
        settle(rig);
        net_pass(&rig->api.net, time);
}

static void assert_ended(struct result *r, enum err_code code, const char *text)
{
        until_done(r);
        if (text)
                assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, code);
        assert_int_equal(r->done, 1);
}

/* ---- what is repeated */

static void answers(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        begin(r, (struct kube_request){.verb = KUBE_GET});
        api_answer(api_next(&rig->api, "GET", MAP), 200, "{\"a\":1}");
        assert_ended(r, E_OK, "");
        assert_int_equal(r->status, 200);
        assert_str(buf_str(&r->body), "{\"a\":1}");
        begin(r, (struct kube_request){.verb = KUBE_DELETE, .body = STR("{\"x\":2}")});
        api_answer(api_next(&rig->api, "DELETE", MAP), 202, "");
        assert_ended(r, E_OK, "");
}

static void reads_are_repeated(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        struct request *q;

        begin(r, (struct kube_request){.verb = KUBE_GET});
        q = api_next(&rig->api, "GET", MAP);
        http_stream_start(q->ex, 200, NULL, NULL, NULL);
        api_cut(q);
        api_quiet(&rig->api); /* never at once */
        pass(rig, SEC);
        api_refuse(api_next(&rig->api, "GET", MAP), 500, "InternalError", NULL);
        api_quiet(&rig->api);
        pass(rig, SEC);
        api_answer(api_next(&rig->api, "GET", MAP), 502, "<html>bad gateway</html>");
        pass(rig, SEC);
        api_refuse(api_next(&rig->api, "GET", MAP), 429, "TooManyRequests", NULL);
        pass(rig, 2 * SEC);
        api_answer(api_next(&rig->api, "GET", MAP), 200, "{}");
        assert_ended(r, E_OK, "");
}

/* Never longer than the timeout, and at most ten times. */
static void reads_are_given_up(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        unsigned n = 0;

        begin(r, (struct kube_request){.verb = KUBE_GET, .timeout = 1000 * SEC});
        while (!r->done) {
                settle(rig);
                if (!list_empty(&rig->api.waiting)) {
                        api_refuse(api_next(&rig->api, "GET", MAP), 500, "InternalError", NULL);
                        n++;
                }
                pass(rig, SEC);
        }
        assert_int_equal(n, 11);
        assert_ended(r, E_SERVER, "get " MAP ": the server said 500 InternalError: told so");

        begin(r, (struct kube_request){.verb = KUBE_GET, .timeout = 2 * SEC});
        for (n = 0; n < 100 && !r->done; n++) {
                settle(rig);
                if (!list_empty(&rig->api.waiting))
                        api_refuse(api_next(&rig->api, "GET", MAP), 500, "InternalError", NULL);
                pass(rig, 100 * USEC_PER_MS);
        }
        assert_in_range(n, 2, 21);
}

static void writes_with_unknown_outcome_are_not_repeated(void **state)
{
        static const enum kube_verb verbs[] = {KUBE_CREATE,      KUBE_UPDATE,           KUBE_PATCH_JSON,
                                               KUBE_PATCH_MERGE, KUBE_PATCH_STRATEGIC,  KUBE_APPLY,
                                               KUBE_DELETE,      KUBE_DELETE_COLLECTION};
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
                for (int how = 0; how < 5; how++) {
                        struct request *q;

                        begin(r, (struct kube_request){.verb = verbs[i], .timeout = 20 * SEC});
                        net_until(&rig->api.net, !list_empty(&rig->api.waiting));
                        q = CONTAINER_OF(list_pop(&rig->api.waiting), struct request, node);
                        list_append(&rig->api.taken, &q->node);
                        if (how == 0)
                                http_stream_start(q->ex, 200, NULL, NULL, NULL);
                        if (how == 0)
                                api_cut(q);
                        else if (how == 1)
                                api_refuse(q, 500, "InternalError", "1");
                        else if (how == 2)
                                api_refuse(q, 504, "Timeout", "1"); /* it may have been carried out */
                        else if (how == 3)
                                api_answer(q, 502, "");
                        else
                                pass(rig, 20 * SEC);
                        until_done(r);
                        assert_true(r->err.code == E_LOST || r->err.code == E_SERVER ||
                                    r->err.code == E_TIMEOUT);
                        pass(rig, 20 * SEC);
                        api_quiet(&rig->api);
                        assert_int_equal(r->done, 1);
                }
        }
}

/* 429 and 503 that say when to come again have not been carried out. */
static void writes_wait_as_told(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        begin(r, (struct kube_request){.verb = KUBE_CREATE});
        for (int i = 0; i < 2; i++) {
                api_refuse(api_next(&rig->api, "POST", MAPS), i ? 503 : 429, "TooManyRequests", "7");
                pass(rig, 7 * SEC - 1);
                api_quiet(&rig->api);
                pass(rig, SEC);
        }
        api_answer(api_next(&rig->api, "POST", MAPS), 201, "{}");
        assert_ended(r, E_OK, "");
        assert_int_equal(r->status, 201);

        begin(r, (struct kube_request){.verb = KUBE_CREATE});
        api_refuse(api_next(&rig->api, "POST", MAPS), 429, "TooManyRequests", NULL);
        assert_ended(r, E_BUSY, "create " MAPS ": the server said 429 TooManyRequests: told so");
        api_quiet(&rig->api);
}

static void waits_no_longer_than_allowed(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        begin(r, (struct kube_request){.verb = KUBE_GET});
        api_refuse(api_next(&rig->api, "GET", MAP), 429, "TooManyRequests", "120");
        assert_ended(r, E_BUSY, NULL);
        assert_true(r->retry_after == 120 * SEC);

        begin(r, (struct kube_request){.verb = KUBE_GET});
        api_answer(api_next(&rig->api, "GET", MAP), 429,
                   "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":9000000000000000000}}");
        assert_ended(r, E_BUSY, NULL);
        assert_true(r->retry_after == 3600 * SEC);
}

static void no_connection(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        unsigned n;

        http_server_free(TAKE_PTR(rig->api.server));
        begin(r, (struct kube_request){.verb = KUBE_CREATE});
        for (n = 0; n < 100 && !r->done; n++)
                pass(rig, 100 * USEC_PER_MS);
        assert_int_equal(r->err.code, E_CONNECT);
        assert_in_range(n, 2, 20); /* soon: a person may be waiting */
}

/* A server tells that it is not one of its own failures in the text alone. */
static void undeclared_fields_are_refused(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        begin(r, (struct kube_request){.verb = KUBE_UPDATE});
        api_answer(api_next(&rig->api, "PUT", MAP), 500,
                   "{\"kind\":\"Status\",\"message\":\"failed to create typed patch object: .status.x: field "
                   "not "
                   "declared in schema\",\"code\":500}");
        assert_ended(r, E_REFUSED, NULL);
        api_quiet(&rig->api);
}

static void too_large_for_ever(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        begin(r, (struct kube_request){.verb = KUBE_UPDATE});
        api_answer(api_next(&rig->api, "PUT", MAP), 500,
                   "{\"kind\":\"Status\",\"message\":\"etcdserver: request is too large\",\"code\":500}");
        assert_ended(r, E_TOO_LARGE, NULL);
        begin(r, (struct kube_request){.verb = KUBE_GET});
        api_answer(api_next(&rig->api, "GET", MAP), 500,
                   "{\"kind\":\"Status\",\"message\":\"rpc error: request is too large\",\"code\":500}");
        assert_ended(r, E_TOO_LARGE, NULL);
        api_quiet(&rig->api);
}

/* ---- credentials */

static void write_token(struct rig *rig, const char *token)
{
        char dir[UNIT_DIR_LEN];

        if (!rig->path[0]) {
                unit_dir(dir);
                snprintf(rig->path, sizeof(rig->path), "%s/token", dir);
        }
        assert_int_equal(file_replace(rig->path, str_of(token), 0600, NULL), 0);
}

static void refused_credentials_are_renewed_once(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        struct request *q;

        write_token(rig, "first");
        rig->api.config.token_file = xstrdup(rig->path);
        pass(rig, 20 * SEC);
        begin(r, (struct kube_request){.verb = KUBE_CREATE});
        q = api_next(&rig->api, "POST", MAPS);
        assert_string_equal(q->authorization, "Bearer first");
        write_token(rig, "second");
        pass(rig, 20 * SEC);
        api_refuse(q, 401, "Unauthorized", NULL);
        q = api_next(&rig->api, "POST", MAPS); /* 401 means: not carried out, also of a write */
        assert_string_equal(q->authorization, "Bearer second");
        api_refuse(q, 401, "Unauthorized", NULL);
        assert_ended(r, E_AUTH, "create " MAPS ": the server said 401 Unauthorized: told so");
        api_quiet(&rig->api);
        assert_null(strstr(r->err.text, "second"));
}

static void the_same_credentials_are_not_tried_again(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        rig->api.config.token = xstrdup("only");
        begin(r, (struct kube_request){.verb = KUBE_GET});
        api_refuse(api_next(&rig->api, "GET", MAP), 401, "Unauthorized", NULL);
        assert_ended(r, E_AUTH, NULL);
        api_quiet(&rig->api);
}

/* Whoever asks in somebody's name gets that one's answer: our own credentials stay out of it. */
static void a_requests_own_token_takes_the_place_of_ours(void **state)
{
        struct rig *rig = *state;
        struct request *q;

        rig->api.config.token = xstrdup("ours");
        begin(&rig->r[0], (struct kube_request){.verb = KUBE_GET, .token = "theirs"});
        q = api_next(&rig->api, "GET", MAP);
        assert_string_equal(q->authorization, "Bearer theirs");
        api_refuse(q, 401, "Unauthorized", NULL); /* nor is it asked again with ours */
        assert_ended(&rig->r[0], E_AUTH, NULL);
        api_quiet(&rig->api);
        assert_null(strstr(rig->r[0].err.text, "theirs"));
        begin(&rig->r[1], (struct kube_request){.verb = KUBE_GET});
        q = api_next(&rig->api, "GET", MAP);
        assert_string_equal(q->authorization, "Bearer ours");
        api_answer(q, 200, "{}");
        assert_ended(&rig->r[1], E_OK, "");
}

/* A plugin that hangs must not hold a call for longer than its own time. */
static void waiting_for_credentials_has_an_end(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        struct kube_exec *exec = xcalloc(1, sizeof(*exec));

        exec->api_version = xstrdup("client.authentication.k8s.io/v1");
        exec->command = xstrdup("sleep");
        exec->args = xcalloc(2, sizeof(*exec->args));
        exec->args[0] = xstrdup("1000");
        rig->api.config.exec = exec;
        begin(r, (struct kube_request){.verb = KUBE_GET, .timeout = 5 * SEC});
        pass(rig, 4 * SEC);
        assert_int_equal(r->done, 0);
        pass(rig, SEC);
        assert_ended(r, E_TIMEOUT, NULL);
        pass(rig, 60 * SEC);
        assert_int_equal(r->done, 1);

        pass(rig, 10 * SEC); /* another run of it, and the end of all in the middle */
        rig->r[1].free_in_end = true;
        begin(&rig->r[1], (struct kube_request){.verb = KUBE_GET, .timeout = 5 * SEC});
        begin(&rig->r[2], (struct kube_request){.verb = KUBE_GET, .timeout = 50 * SEC});
        pass(rig, 5 * SEC);
        assert_ended(&rig->r[1], E_TIMEOUT, NULL);
        pass(rig, 100 * SEC);
        assert_int_equal(rig->r[2].done, 0);
}

/* ---- what is not sent */

static void may_send_is_asked_every_time(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        begin(r, (struct kube_request){.verb = KUBE_CREATE, .may_send = may_send, .may_send_arg = r});
        api_refuse(api_next(&rig->api, "POST", MAPS), 429, "TooManyRequests", "1");
        assert_int_equal(r->asked, 1);
        r->refuse = true;
        pass(rig, 2 * SEC);
        assert_ended(r, E_CANCELED, NULL);
        assert_int_equal(r->asked, 2);
        api_quiet(&rig->api);
}

static void names_must_be_there(void **state)
{
        static const struct kube_request bad[] = {
                {.verb = KUBE_GET, .ns = "ns"},
                {.verb = KUBE_GET, .ns = "ns", .name = ""},
                {.verb = KUBE_GET, .name = "m"},
                {.verb = KUBE_GET, .ns = "", .name = "m"},
                {.verb = KUBE_DELETE, .ns = "ns"},
                {.verb = KUBE_DELETE, .ns = "ns", .name = ""},
                {.verb = KUBE_APPLY, .ns = "ns", .name = ""},
                {.verb = KUBE_UPDATE, .ns = "ns"},
                {.verb = KUBE_CREATE},
                {.verb = KUBE_DELETE_COLLECTION},
                {.verb = KUBE_DELETE_COLLECTION, .ns = ""},
        };
        struct rig *rig = *state;
        struct result *r = &rig->r[0];

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct kube_request q = bad[i];

                q.type = &KUBE_CONFIGMAP;
                r->done = 0;
                kube_send(rig->api.kube, &q, on_done, r);
                assert_int_equal(r->done, 0); /* told from the loop, like all else */
                assert_ended(r, E_INTERNAL, NULL);
        }
        api_quiet(&rig->api);
        assert_int_equal(rig->api.heard, 0);
}

static void paths_are_encoded(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        struct request *q;
        char *huge = xcalloc(1, 80 * 1024);

        begin(r, (struct kube_request){.verb = KUBE_GET, .ns = "..", .name = "a/b?c%"});
        api_answer(api_next(&rig->api, "GET", "/api/v1/namespaces/%2E%2E/configmaps/a%2Fb%3Fc%25"), 200,
                   "{}");
        assert_ended(r, E_OK, "");
        begin(r, (struct kube_request){.verb = KUBE_LIST, .label_selector = "a=b&watch=1,c!=d", .limit = 3});
        q = api_next(&rig->api, "GET", MAPS);
        assert_string_equal(api_param(q, "labelSelector"), "a=b&watch=1,c!=d");
        assert_null(api_param(q, "watch"));
        api_answer(q, 200, "{}");
        assert_ended(r, E_OK, "");
        memset(huge, 'x', 80 * 1024 - 1);
        begin(r, (struct kube_request){.verb = KUBE_LIST, .label_selector = huge});
        assert_ended(r, E_TOO_LARGE, NULL);
        free(huge);
}

/* ---- errors */

static void errors_of_any_body(void **state)
{
        static const struct {
                enum kube_verb verb;
                int status;
                const char *body;
                enum err_code code;
                const char *text;
        } cases[] = {
                {KUBE_CREATE, 404, "404 page not found\n", E_NOT_FOUND, "404: 404 page not found"},
                {KUBE_CREATE, 413, "", E_TOO_LARGE, "413: Content Too Large"},
                {KUBE_CREATE, 403, "<html><body>no</body></html>", E_FORBIDDEN, "403: Forbidden"},
                {KUBE_CREATE, 403, "\xff\xfe", E_FORBIDDEN, "403: Forbidden"},
                {KUBE_CREATE, 403, "{\"kind\":", E_FORBIDDEN, "403: {\"kind\":"},
                {KUBE_CREATE, 403, "[1]", E_FORBIDDEN, "403: [1]"},
                {KUBE_CREATE, 403, "{\"message\":3,\"reason\":[],\"code\":\"x\",\"details\":7}", E_FORBIDDEN,
                 "403: Forbidden"},
                {KUBE_CREATE, 403, "{\"message\":\"no\",\"code\":200}", E_FORBIDDEN, "403: no"},
                {KUBE_CREATE, 409, "{\"reason\":\"AlreadyExists\",\"message\":\"m\"}", E_EXISTS,
                 "409 AlreadyExists: m"},
                {KUBE_UPDATE, 409, "{\"reason\":\"Conflict\",\"message\":\"m\"}", E_CONFLICT,
                 "409 Conflict: m"},
                {KUBE_APPLY, 409,
                 "{\"reason\":\"Conflict\",\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":"
                 "\"FieldManagerConflict\"}]}}",
                 E_OWNED, "409 Conflict: m"},
                {KUBE_PATCH_JSON, 422, "{\"reason\":\"Invalid\",\"message\":\"m\",\"details\":{}}", E_FENCED,
                 "422 Invalid: m"},
                {KUBE_PATCH_JSON, 422,
                 "{\"reason\":\"Invalid\",\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":"
                 "\"x\"}]}}",
                 E_REFUSED, "422 Invalid: m"},
                {KUBE_APPLY, 422, "{\"reason\":\"Invalid\",\"message\":\"m\"}", E_REFUSED, "422 Invalid: m"},
                {KUBE_CREATE, 400, "bad", E_REFUSED, "400: bad"},
                {KUBE_CREATE, 408, "", E_TIMEOUT, "408: Request Timeout"},
                {KUBE_CREATE, 410, "", E_EXPIRED, "410: Gone"},
                {KUBE_CREATE, 503, "", E_BUSY, "503: Service Unavailable"},
                {KUBE_CREATE, 504, "", E_TIMEOUT, "504: Gateway Timeout"},
                {KUBE_CREATE, 302, "", E_PROTOCOL, "302: Found"},
        };
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        static const char *const methods[] = {[KUBE_CREATE] = "POST",
                                              [KUBE_UPDATE] = "PUT",
                                              [KUBE_PATCH_JSON] = "PATCH",
                                              [KUBE_APPLY] = "PATCH"};

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *path = cases[i].verb == KUBE_CREATE ? MAPS : MAP;
                char text[512];

                begin(r, (struct kube_request){.verb = cases[i].verb});
                api_answer(api_next(&rig->api, methods[cases[i].verb], path), cases[i].status, cases[i].body);
                snprintf(text, sizeof(text), "%s %s: the server said %s", kube_verb_name(cases[i].verb), path,
                         cases[i].text);
                assert_ended(r, cases[i].code, text);
                assert_int_equal(r->status, cases[i].status);
        }
}

static void long_messages_are_cut(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        char *body = xcalloc(1, 300 * 1024);

        memset(body, 'x', 300 * 1024 - 1);
        memcpy(body, "{\"message\":\"", 12);
        memcpy(body + 20000, "\"}", 3);
        begin(r, (struct kube_request){.verb = KUBE_CREATE});
        api_answer(api_next(&rig->api, "POST", MAPS), 422, body);
        assert_ended(r, E_REFUSED, NULL);
        assert_in_range(strlen(r->err.text), 600, 700);
        memset(body, 'x', 300 * 1024 - 1);
        begin(r, (struct kube_request){.verb = KUBE_CREATE});
        api_answer(api_next(&rig->api, "POST", MAPS), 422, body);
        assert_ended(r, E_REFUSED, NULL);
        assert_in_range(strlen(r->err.text), 200, 300);
        free(body);
}

/* ---- streams */

static void streams_give_only_what_is_good(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        struct request *q;

        begin_stream(r);
        q = api_next(&rig->api, "GET", MAPS);
        api_stream(&rig->api, q);
        api_say(&rig->api, q, "one");
        api_say(&rig->api, q, "two");
        assert_str(buf_str(&r->data), "onetwo");
        pass(rig, 3600 * SEC); /* the timeout was until the headers */
        assert_int_equal(r->done, 0);
        api_end(q);
        assert_ended(r, E_OK, "");
        assert_int_equal(r->body.n, 0);

        r->done = 0;
        begin_stream(r);
        api_refuse(api_next(&rig->api, "GET", MAPS), 429, "TooManyRequests", "3");
        assert_ended(r, E_BUSY, "watch " MAPS ": the server said 429 TooManyRequests: told so");
        assert_true(r->retry_after == 3 * SEC);
        assert_str(buf_str(&r->data), "onetwo");
        pass(rig, 60 * SEC);
        api_quiet(&rig->api); /* whoever streams decides himself where to go on */
}

static void stream_refused_at_length(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[0];
        char *body = xcalloc(1, 300 * 1024);

        memset(body, 'y', 300 * 1024 - 1);
        begin_stream(r);
        api_answer(api_next(&rig->api, "GET", MAPS), 403, body);
        assert_ended(r, E_FORBIDDEN, NULL);
        assert_int_equal(r->data.n, 0);
        free(body);
}

/* ---- the limit */

static void limited_first_come_first_served(void **state)
{
        struct rig *rig = *state;
        static const char *const names[] = {"0", "1", "2", "3"};

        for (size_t i = 0; i < 4; i++)
                begin(&rig->r[i], (struct kube_request){.verb = KUBE_GET, .name = names[i]});
        api_answer(api_next(&rig->api, "GET", MAPS "/0"), 200, "{}");
        api_quiet(&rig->api);
        kube_cancel(TAKE_PTR(rig->r[1].call)); /* leaves the line */
        pass(rig, SEC + 10);
        api_answer(api_next(&rig->api, "GET", MAPS "/2"), 200, "{}");
        api_quiet(&rig->api);
        begin(&rig->r[1], (struct kube_request){.verb = KUBE_GET, .name = "late"});
        api_quiet(&rig->api);
        pass(rig, SEC + 10);
        api_answer(api_next(&rig->api, "GET", MAPS "/3"), 200, "{}");
        pass(rig, SEC + 10);
        api_answer(api_next(&rig->api, "GET", MAPS "/late"), 200, "{}");
        settle(rig);
        assert_string_equal(rig->order, "acdb");
}

/* Time in the line counts: nothing is sent for somebody who has been told that it is too late. */
static void limited_past_its_time(void **state)
{
        struct rig *rig = *state;
        struct result *r = &rig->r[1];

        begin(&rig->r[0], (struct kube_request){.verb = KUBE_GET});
        api_answer(api_next(&rig->api, "GET", MAP), 200, "{}");
        until_done(&rig->r[0]);
        begin(r, (struct kube_request){.verb = KUBE_CREATE, .timeout = 500 * USEC_PER_MS});
        pass(rig, 600 * USEC_PER_MS);
        assert_ended(r, E_TIMEOUT, NULL);
        pass(rig, 2 * SEC);
        api_quiet(&rig->api);
}

/* ---- the end, at any moment */

static void freed_in_callbacks(void **state)
{
        struct rig *rig = *state;
        struct request *q;

        rig->r[0].free_in_end = true;
        begin(&rig->r[1], (struct kube_request){.verb = KUBE_GET, .name = "other"});
        api_next(&rig->api, "GET", MAPS "/other");
        begin(&rig->r[0], (struct kube_request){.verb = KUBE_GET});
        api_answer(api_next(&rig->api, "GET", MAP), 200, "{}");
        assert_ended(&rig->r[0], E_OK, "");
        pass(rig, 100 * SEC);
        assert_int_equal(rig->r[1].done, 0);

        rig->api.kube = kube_new(rig->api.net.loop, &rig->api.config, NULL, NULL);
        rig->r[2].free_in_data = true;
        begin_stream(&rig->r[2]);
        q = api_next(&rig->api, "GET", MAPS);
        api_stream(&rig->api, q);
        api_say(&rig->api, q, "x");
        assert_str(buf_str(&rig->r[2].data), "x");

        rig->api.kube = kube_new(rig->api.net.loop, &rig->api.config, NULL, NULL);
        rig->r[3].cancel_in_data = true;
        begin_stream(&rig->r[3]);
        q = api_next(&rig->api, "GET", MAPS);
        api_stream(&rig->api, q);
        api_say(&rig->api, q, "x");
        net_until(&rig->api.net, q->gone);
        assert_int_equal(rig->r[2].done + rig->r[3].done, 0);
}

static void freed_in_every_state(void **state)
{
        struct rig *rig = *state;

        begin(&rig->r[0], (struct kube_request){.verb = KUBE_GET}); /* waits to be repeated */
        api_refuse(api_next(&rig->api, "GET", MAP), 503, "ServiceUnavailable", "30");
        settle(rig);
        begin(&rig->r[1], (struct kube_request){.verb = KUBE_GET}); /* in line, past the one token */
        begin(&rig->r[2], (struct kube_request){.verb = KUBE_GET});
        begin(&rig->r[3], (struct kube_request){.verb = KUBE_GET, .ns = ""}); /* about to be refused */
        begin_stream(&rig->r[3]);
        kube_free(TAKE_PTR(rig->api.kube));
        pass(rig, 100 * SEC);
        assert_int_equal(rig->r[0].done + rig->r[1].done + rig->r[2].done + rig->r[3].done, 0);
}

static void on_stop(struct timer *t)
{
        loop_stop(t->loop, 0);
}

/* Whoever was interrupted has gone: nothing may be told to him later. */
static void interrupted(void **state)
{
        struct rig *rig = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct str body;
        struct timer stop;
        struct request *q;

        timer_init(&stop, rig->api.net.loop, on_stop);
        timer_after(&stop, 10 * SEC);
        assert_int_equal(kube_do(rig->api.kube,
                                 &(struct kube_request){
                                         .verb = KUBE_GET, .type = &KUBE_CONFIGMAP, .ns = "ns", .name = "m"},
                                 &a, &body, &err),
                         -1);
        assert_int_equal(err.code, E_CANCELED);
        assert_int_equal(loop_run(rig->api.net.loop), 0); /* takes the stop back */
        q = api_next(&rig->api, "GET", MAP);
        net_until(&rig->api.net, q->gone);
}

#define TEST(name, before) cmocka_unit_test_setup_teardown(name, before, teardown)

static const struct CMUnitTest tests[] = {
        TEST(answers, setup),
        TEST(reads_are_repeated, setup),
        TEST(reads_are_given_up, setup),
        TEST(writes_with_unknown_outcome_are_not_repeated, setup),
        TEST(writes_wait_as_told, setup),
        TEST(waits_no_longer_than_allowed, setup),
        TEST(no_connection, setup),
        TEST(too_large_for_ever, setup),
        TEST(undeclared_fields_are_refused, setup),
        TEST(refused_credentials_are_renewed_once, setup),
        TEST(the_same_credentials_are_not_tried_again, setup),
        TEST(a_requests_own_token_takes_the_place_of_ours, setup),
        TEST(waiting_for_credentials_has_an_end, setup),
        TEST(may_send_is_asked_every_time, setup),
        TEST(names_must_be_there, setup),
        TEST(paths_are_encoded, setup),
        TEST(errors_of_any_body, setup),
        TEST(long_messages_are_cut, setup),
        TEST(streams_give_only_what_is_good, setup),
        TEST(stream_refused_at_length, setup),
        TEST(limited_first_come_first_served, setup_limited),
        TEST(limited_past_its_time, setup_limited),
        TEST(freed_in_callbacks, setup),
        TEST(freed_in_every_state, setup_limited),
        TEST(interrupted, setup),
};
UNIT_MAIN(tests)
