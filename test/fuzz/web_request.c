/*
 * What the web layer reads of a request by itself: Host, the token in its two places, the path, query and body by the table of
 * endpoints, label selectors. Each line of the input is one of those.
 */
#include "fuzz/fuzz.h"
#include "web/internal.h"

static void check_token(struct str host, struct str authorization, struct str cookie)
{
        const struct http_header headers[] = {
                {STR("Host"), host}, {STR("Cookie"), cookie}, {STR("Authorization"), authorization}};
        struct str token = server_token(&(struct http_headers){headers, authorization.n ? 3 : 2});

        if (!token.p)
                return;
        REQUIRE(token.n && token.n <= TOKEN_MAX);
        for (size_t i = 0; i < token.n; i++)
                REQUIRE(token.p[i] > ' ' && token.p[i] < 0x7f && token.p[i] != ';' && token.p[i] != '"');
}

static void check_host(struct str host)
{
        char plain[] = "sonde.example.com", pattern[] = "*.sonde.example.org";
        char *allowed[] = {plain, pattern};
        struct web w = {.loopback = true, .hosts = {.v = allowed, .n = 2, .cap = 2}};
        bool ok = server_host_ok(&w, host);

        w.loopback = false;
        REQUIRE(!ok || server_host_ok(&w, host));
}

static void check_call(struct arena *a, struct str method, struct str path, struct str query, struct str body)
{
        const char *params[PARAMS_MAX] = {0}, *allow;
        const struct endpoint *e = endpoint_find(method, path, params, &allow, a);
        struct json *wrong = json_array(a);

        if (!e)
                return;
        for (size_t i = 0; i < PARAMS_MAX && params[i]; i++)
                REQUIRE(utf8_valid(params[i], strlen(params[i])));
        fields_of_query(e->query, query, wrong, a);
        fields_of_body(e->body, body, wrong, a);
        json_foreach (one, wrong)
                REQUIRE(json_str(one, "msg") && json_first(json_at(one, "loc")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str rest = str_n((const char *)data, size), parts[6] = {{0}};
        struct label_selector selector;

        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
                parts[i] = str_split(&rest, '\n');
                if (!parts[i].p)
                        parts[i] = STR("");
        }
        check_host(parts[0]);
        check_token(parts[0], parts[1], parts[2]);
        check_call(&a, parts[3], parts[4], parts[5], rest);
        if (label_selector_parse(arena_strndup(&a, parts[5].p, parts[5].n), NULL, &selector, &a, NULL) == 0)
                label_selector_matches(&selector, NULL);
        return 0;
}
