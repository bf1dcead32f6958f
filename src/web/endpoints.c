#include "web/internal.h"

static const char *const lives[] = {"pending",   "running", "suspended", "scheduled",
                                    "succeeded", "failed",  "cancelled", NULL};

static const struct field runs_query[] = {
        {"namespace", FIELD_STRING,
         .help = "runs of this namespace; without it, of all that the caller may see"},
        {"kind", FIELD_STRING, .help = "dgdr, cudaexp, ap, ac, wprof, or a kind's other names"},
        {"labelSelector", FIELD_STRING, .help = "as the Kubernetes API has it: team=a,stage in (dev, test)"},
        {"life", FIELD_STRING, .words = lives, .help = "how they stand"},
        {0},
};

static const struct field session_body[] = {
        {"token", FIELD_STRING, .required = true, .help = "a bearer token of the API server"},
        {0},
};

/* Of two that fit a path the first one counts. */
const struct endpoint ENDPOINTS[] = {
        {"GET", "/health", serve_health, "Whether it works; always 200", "Health", .open = true},
        {"GET", "/ready", serve_ready, "Whether all is known; 503 until then", "Ready", .open = true},
        {"GET", "/metrics", serve_metrics, "Prometheus metrics", "text/plain", .open = true},
        {"GET", "/api/v1/openapi.json", serve_openapi, "This description", "object", .open = true},

        {"GET", "/api/v1/session", serve_session, "Whether the token or the cookie is good", "Session",
         .open = true},
        {"POST", "/api/v1/session", serve_session_begin, "Exchanges a token for a cookie", NULL,
         .body = session_body, .status = 204, .open = true},
        {"DELETE", "/api/v1/session", serve_session_end, "Takes the cookie back", NULL, .status = 204,
         .open = true},

        {"GET", "/api/v1/runs", serve_runs, "Runs of every kind", "RunList", .query = runs_query},
        {"GET", "/api/v1/runs/stream", serve_runs_stream, "Server-sent events: sync, then run and gone",
         "text/event-stream", .query = runs_query},
        {"GET", "/api/v1/runs/{resource}/{namespace}/{name}", serve_run, "One run and its object",
         "RunDetail"},
        {0},
};

/* Whether PATH is as TEMPLATE says, with what stands for {x} in PARAMS. */
static bool fits(const char *template, struct str path, const char *params[PARAMS_MAX], struct arena *a)
{
        struct str want = str_of(template);
        size_t n = 0;

        while (want.p && path.p) {
                struct str w = str_split(&want, '/'), p = str_split(&path, '/');

                if (w.n && w.p[0] == '{') {
                        char *text = p.n && n < PARAMS_MAX ? url_decode(p, a) : NULL;

                        if (!text || !utf8_valid(text, strlen(text)))
                                return false;
                        params[n++] = text;
                } else if (!str_eq(w, p)) {
                        return false;
                }
        }
        return !want.p && !path.p;
}

const struct endpoint *endpoint_find(struct str method, struct str path, const char *params[PARAMS_MAX],
                                     const char **ret_allow, struct arena *a)
{
        bool head = str_eq(method, STR("HEAD"));

        *ret_allow = NULL;
        for (const struct endpoint *e = ENDPOINTS; e->method; e++) {
                if (!fits(e->path, path, params, a))
                        continue;
                if (str_eq(method, str_of(e->method)) || (head && streq(e->method, "GET")))
                        return e;
                *ret_allow = *ret_allow ? arena_printf(a, "%s, %s", *ret_allow, e->method) : e->method;
        }
        return NULL;
}
