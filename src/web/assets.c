#include "web/assets.h"

#include "run/run.h"

enum { UNPACKED_MAX = 4 << 20 };

#define POLICY                                                          \
        "default-src 'self'; img-src 'self' data:; object-src 'none'; " \
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

static const struct web_asset *find(struct str path)
{
        for (const struct web_asset *w = WEB_ASSETS; w->path; w++)
                if (str_eq(path, str_of(w->path)))
                        return w;
        return NULL;
}

/* A place inside the page has no file's name. */
static bool is_place(struct str path)
{
        const char *last = memrchr(path.p, '/', path.n);

        return last && !memchr(last, '.', (size_t)(path.p + path.n - last));
}

/* Whether WORD is in a header that lists words: good enough for Accept-Encoding and If-None-Match of browsers. */
static bool lists(const struct http_headers *headers, const char *name, struct str word)
{
        struct str rest = http_header(headers, name);

        while (rest.n) {
                struct str one = str_split(&rest, ',');

                one = str_trim(str_split(&one, ';'));
                if (str_has_prefix(one, STR("W/")))
                        one = str_n(one.p + 2, one.n - 2);
                if (str_eq(one, word))
                        return true;
        }
        return false;
}

static void reply(struct http_exchange *ex, const struct web_asset *w, struct str body, bool packed)
{
        const struct http_header headers[] = {
                {STR("Content-Type"), str_of(w->content_type)},
                {STR("ETag"), str_of(w->etag)},
                {STR("Cache-Control"), STR("no-cache")}, /* kept, and asked for with its ETag */
                {STR("Vary"), STR("Accept-Encoding")},
                {STR("Content-Security-Policy"), STR(POLICY)},
                {STR("X-Content-Type-Options"), STR("nosniff")},
                {STR("Referrer-Policy"), STR("no-referrer")},
                {STR("Cross-Origin-Opener-Policy"), STR("same-origin")},
                {STR("Content-Encoding"), STR("gzip")},
        };
        size_t n = ARRAY_LEN(headers) - !packed;

        if (lists(http_request_headers(ex), "If-None-Match", str_of(w->etag)))
                http_reply_headers(ex, 304, &(struct http_headers){headers, n}, STR(""));
        else
                http_reply_headers(ex, 200, &(struct http_headers){headers, n}, body);
}

void web_asset_serve(struct http_exchange *ex)
{
        _cleanup_(buf_done) struct buf plain = BUF_INIT(UNPACKED_MAX);
        struct str path = http_path(ex), data;
        const struct web_asset *w = find(path);

        if (!w && is_place(path))
                w = find(STR("/"));
        if (!w) {
                http_reply(ex, 404, "application/json", STR("{\"detail\":\"Not Found\"}"));
                return;
        }
        data = str_n(w->data, w->size);
        if (!w->gzipped) {
                reply(ex, w, data, false);
        } else if (lists(http_request_headers(ex), "Accept-Encoding", STR("gzip"))) {
                reply(ex, w, data, true);
        } else if (gunzip_add(&plain, data, NULL) == 0) {
                reply(ex, w, buf_str(&plain), false);
        } else {
                http_reply(ex, 500, "application/json", STR("{\"detail\":\"the page cannot be unpacked\"}"));
        }
}
