#include "local/api_internal.h"

/* ---- options */

static int param_number(struct request *r, const char *name, uint64_t *ret)
{
        const char *text = request_param(r, name);
        int64_t value = 0;

        if (!text || !*text)
                return 0;
        if (!str_to_i64(str_of(text), &value))
                return fail_bad_request(&r->c, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
        *ret = value > 0 ? (uint64_t)value : 0;
        return 0;
}

static bool param_true(struct request *r, const char *name)
{
        const char *text = request_param(r, name);

        return text && !streq(text, "false") && !streq(text, "0");
}

static bool said(const char *text)
{
        return text && *text;
}

/* A watch that begins with what is there (WatchList), as Kubernetes has it since 1.27; 1.20 does not know it. */
static int check_initial(struct call *c, const struct list_options *o)
{
        struct causes causes = {.a = c->a};

        if (streq(o->match, "NotOlderThan") && !said(o->continue_token))
                return 0;
        if (!streq(o->match, "NotOlderThan"))
                causes_add(
                        &causes, "FieldValueForbidden", "resourceVersionMatch",
                        "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        if (said(o->match) && !streq(o->match, "NotOlderThan"))
                causes_add(&causes, "FieldValueNotSupported", "resourceVersionMatch",
                           "Unsupported value: \"%s\": supported values: \"NotOlderThan\"", o->match);
        if (said(o->match) && said(o->continue_token))
                causes_add(&causes, "FieldValueForbidden", "resourceVersionMatch",
                           "Forbidden: resourceVersionMatch is forbidden when continue is provided");
        return fail_invalid(c, "meta.k8s.io", "ListOptions", "", &causes);
}

static int check_match(struct call *c, const struct list_options *o, bool watch)
{
        if (watch && o->send_initial_events)
                return check_initial(c, o);
        if (o->send_initial_events)
                return fail_option(c, "ListOptions", "FieldValueForbidden", "sendInitialEvents",
                                   "Forbidden: sendInitialEvents is forbidden for list");
        if (!said(o->match))
                return 0;
        if (watch)
                return fail_option(c, "ListOptions", "FieldValueForbidden", "resourceVersionMatch",
                                   "Forbidden: resourceVersionMatch is forbidden for watch");
        if (!said(o->resource_version))
                return fail_option(
                        c, "ListOptions", "FieldValueForbidden", "resourceVersionMatch",
                        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
        if (said(o->continue_token))
                return fail_option(c, "ListOptions", "FieldValueForbidden", "resourceVersionMatch",
                                   "Forbidden: resourceVersionMatch is forbidden when continue is provided");
        if (!streq(o->match, "Exact") && !streq(o->match, "NotOlderThan"))
                return fail_option(c, "ListOptions", "FieldValueNotSupported", "resourceVersionMatch",
                                   arena_printf(c->a,
                                                "Unsupported value: \"%s\": supported values: \"Exact\", "
                                                "\"NotOlderThan\", \"\"",
                                                o->match));
        if (streq(o->match, "Exact") && streq(o->resource_version, "0"))
                return fail_option(
                        c, "ListOptions", "FieldValueForbidden", "resourceVersionMatch",
                        "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        return 0;
}

int list_options_read(struct request *r, struct list_options *o)
{
        *o = (struct list_options){
                .resource_version = request_param(r, "resourceVersion"),
                .match = request_param(r, "resourceVersionMatch"),
                .continue_token = request_param(r, "continue"),
                .bookmarks = param_true(r, "allowWatchBookmarks"),
                .send_initial_events = request_param(r, "sendInitialEvents"),
                .initial_events = param_true(r, "sendInitialEvents"),
        };
        if (param_number(r, "limit", &o->limit) < 0 || param_number(r, "timeoutSeconds", &o->timeout) < 0)
                return -1;
        if (selector_parse(&r->c, request_param(r, "labelSelector"), request_param(r, "fieldSelector"),
                           &o->selector) < 0)
                return -1;
        return check_match(&r->c, o, r->c.verb == DO_WATCH);
}

int parse_rev(struct call *c, const char *text, uint64_t *ret)
{
        *ret = 0;
        if (text && *text && !str_to_u64(str_of(text), ret))
                return fail(c, 500, NULL, NULL,
                            "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": "
                            "invalid syntax",
                            text, text);
        return 0;
}

int fail_too_new(struct call *c, uint64_t rev)
{
        struct json *details = json_build(
                c->a, "{'causes': [{'reason': 'ResourceVersionTooLarge', 'message': 'Too large "
                      "resource version'}], 'retryAfterSeconds': 1}");

        return fail(c, 504, "Timeout", details, "Timeout: Too large resource version: %llu, current: %llu",
                    (unsigned long long)rev, (unsigned long long)store_rev(c->api->store));
}

static int expired(struct call *c, const struct list_options *o)
{
        if (!said(o->continue_token))
                return fail(c, 410, "Expired", NULL, "The resourceVersion for the provided list is too old.");
        return fail(c, 410, "Expired", NULL,
                    "The provided continue parameter is too old to display a consistent list result. You can "
                    "start a new "
                    "list without the continue parameter, or use the continue token in this response to "
                    "retrieve the "
                    "remainder of the results. Continuing with the provided token results in an inconsistent "
                    "list - "
                    "objects that were created, modified, or deleted between the time the first chunk was "
                    "returned and "
                    "now may show up in the list.");
}

/* ---- pages */

static char *make_token(struct call *c, uint64_t rev, const char *last_key)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096), out = BUF_INIT(8192);
        struct json *j = json_build(c->a, "{'v': 'meta.k8s.io/v1', 'rv': %llu, 'start': %s}",
                                    (unsigned long long)rev, last_key);

        json_write(j, JSON_COMPACT, &b);
        buf_add_base64(&out, buf_str(&b));
        while (out.n > 0 && out.p[out.n - 1] == '=') /* raw and URL-safe, as Go writes it */
                out.n--;
        for (size_t i = 0; i < out.n; i++)
                out.p[i] = out.p[i] == '+' ? '-' : (out.p[i] == '/' ? '_' : out.p[i]);
        return arena_strndup(c->a, out.p, out.n);
}

static int read_token(struct call *c, const char *token, struct store_range *range)
{
        _cleanup_(buf_done) struct buf in = BUF_INIT(8192), out = BUF_INIT(8192);
        const struct json *j = NULL;

        for (const char *p = token; *p; p++)
                buf_addc(&in, *p == '-' ? '+' : (*p == '_' ? '/' : *p));
        while (in.n % 4)
                buf_addc(&in, '=');
        if (!buf_add_unbase64(&out, buf_str(&in)))
                return fail_bad_request(
                        c,
                        "invalid continue token: continue key is not valid: illegal base64 data at input "
                        "byte %zu",
                        strlen(token));
        j = json_parse(c->a, buf_str(&out), NULL, NULL);
        if (!j || !streq(json_str(j, "v"), "meta.k8s.io/v1") || !json_str(j, "start") ||
            json_int(j, "rv", -1) <= 0)
                return fail_bad_request(
                        c,
                        "invalid continue token: continue key is not valid: invalid character '%c' "
                        "looking for beginning of value",
                        out.n ? out.p[0] : ' ');
        range->rev = (uint64_t)json_int(j, "rv", 0);
        range->start = json_str(j, "start");
        return 0;
}

struct page {
        struct list_writer w;
        const struct list_options *o;
        uint64_t limit;
        const char *last;
        bool more;
        size_t left; /* beyond the page */
        bool count;  /* goes on behind the page to count */
};

static bool add_item(void *arg, struct object *o)
{
        struct page *p = arg;

        if (p->more) {
                p->left++;
                return p->count;
        }
        if (p->limit && p->w.n == p->limit) { /* there is more, whether it is selected or not */
                p->more = true;
                p->left = 1;
                return p->count;
        }
        if (!selector_matches(p->o->selector, p->w.c->type, o))
                return true;
        list_add(&p->w, o);
        if (p->limit && p->w.n == p->limit)
                p->last = *o->ns ? arena_printf(p->w.c->a, "%s/%s", o->ns, o->name)
                                 : arena_strdup(p->w.c->a, o->name);
        return true;
}

/* Where the list begins, and at which revision. */
static int list_range(struct request *r, const struct list_options *o, struct store_range *range,
                      uint64_t *limit)
{
        struct call *c = &r->c;
        uint64_t rev, now = store_rev(c->api->store);

        *range = (struct store_range){.type = c->type->store,
                                      .ns = c->type->kube.namespaced && *c->ns ? c->ns : NULL};
        *limit = o->limit;
        if (said(o->continue_token)) {
                if (said(o->resource_version) && !streq(o->resource_version, "0"))
                        return fail_bad_request(
                                c, "specifying resource version is not allowed when using continue");
                return read_token(c, o->continue_token, range);
        }
        if (parse_rev(c, o->resource_version, &rev) < 0)
                return -1;
        if (o->resource_version && streq(o->resource_version, "0"))
                *limit = 0; /* served from the watch cache, which knows no pages */
        if (rev > now)
                return fail_too_new(c, rev);
        if (rev && ((o->match && streq(o->match, "Exact")) || (!o->match && o->limit)))
                range->rev = rev;
        return 0;
}

void do_list(struct request *r)
{
        struct buf out = BUF_INIT((size_t)1 << 30);
        struct list_options o;
        struct store_range range;
        struct page page = {.w = {.c = &r->c, .view = &r->view, .out = &out}, .o = &o};
        uint64_t rev;

        if (list_options_read(r, &o) < 0 || list_range(r, &o, &range, &page.limit) < 0) {
                request_answer(r);
                return;
        }
        rev = range.rev ? range.rev : store_rev(r->api->store);
        page.count = selector_empty(o.selector);
        list_begin(&page.w);
        if (store_list(r->api->store, &range, add_item, &page, NULL) < 0) {
                expired(&r->c, &o);
                request_answer(r);
        } else {
                list_end(&page.w, rev, page.more ? make_token(&r->c, rev, page.last) : NULL,
                         page.count ? (int64_t)page.left : -1);
                r->c.code = 200;
                request_reply_text(r, &out);
        }
        buf_done(&out);
}
