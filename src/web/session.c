#include "web/internal.h"

enum { COOKIE_MAX = 3800 }; /* browsers take 4096 with all that is around it */

#define COOKIE_WORDS "; HttpOnly; SameSite=Strict; Path=/"

static void reply_cookie(struct call *c, const char *token, bool ends)
{
        char name[COOKIE_NAME_MAX];
        const char *cookie = arena_printf(&c->arena, "%s=%s" COOKIE_WORDS "%s%s",
                                          server_cookie_name(http_request_headers(c->ex), name), token,
                                          ends ? "; Max-Age=0" : "", c->web->tls ? "; Secure" : "");
        const struct http_header headers[] = {{STR("Set-Cookie"), str_of(cookie)},
                                              {STR("Cache-Control"), STR("no-store")}};

        http_reply_headers(c->ex, 204, &(struct http_headers){headers, ARRAY_LEN(headers)}, STR(""));
        call_free(c);
}

struct checking {
        struct ask ask;
        struct call *call;
        void (*next)(struct call *c, const struct ask *ask);
};

static void on_checked(struct ask *ask)
{
        struct checking *checking = CONTAINER_OF(ask, struct checking, ask);
        struct call *c = checking->call;

        if (c->ex)
                checking->next(c, ask);
        else
                call_free(c);
}

static void check(struct call *c, void (*next)(struct call *c, const struct ask *ask))
{
        struct checking *checking = arena_new(&c->arena, struct checking);

        checking->call = c;
        checking->next = next;
        checking->ask = (struct ask){.web = c->web, .caller = c->caller, .done = on_checked};
        caller_check(&checking->ask);
}

static void begin(struct call *c, const struct ask *ask)
{
        if (ask->status)
                call_fail(c, ask->status, "%s", ask->detail);
        else
                reply_cookie(c, caller_token(c->caller), false);
}

void serve_session_begin(struct call *c)
{
        struct str token = json_text(json_at(c->body, "token"));

        if (!server_token_valid(token)) {
                call_fail_field(c, "body", "token", "Input should be a bearer token");
                return;
        }
        if (token.n > COOKIE_MAX) {
                call_fail_field(c, "body", "token",
                                "a token of more than 3800 bytes does not fit into a cookie; send it as "
                                "Authorization: Bearer");
                return;
        }
        caller_unref(c->caller);
        c->caller = caller_get(c->web, token);
        check(c, begin);
}

void serve_session_end(struct call *c)
{
        reply_cookie(c, "", true);
}

static void tell(struct call *c, const struct ask *ask)
{
        struct json *truth = json_truth(&c->arena, !ask->status);

        if (ask->status && ask->status != 401)
                call_fail(c, ask->status, "%s", ask->detail);
        else
                call_reply(c, 200, json_build(&c->arena, "{'authenticated': %p}", (void *)truth));
}

void serve_session(struct call *c)
{
        static const struct ask none = {.status = 401};

        if (c->caller)
                check(c, tell);
        else
                tell(c, &none);
}
