#include "local/api_internal.h"

#include <openssl/crypto.h>

enum { SEGMENTS_MAX = 8 };

struct path {
        const char *part[SEGMENTS_MAX + 1]; /* decoded */
        size_t n;
};

/* ---- answers */

void request_free(struct request *r)
{
        list_remove(&r->node);
        if (r->c.type)
                crd_unref(r->c.type->crd);
        arena_pool_give(&r->api->arenas, &r->a);
        free(r);
}

void request_reply(struct request *r, const char *type, struct str body)
{
        struct http_header head[] = {
                {STR("Content-Type"), str_of(type)},
                {STR("Cache-Control"), STR("no-cache, private")},
                {STR("Retry-After"), STR("1")},
        };

        if (r->ex)
                http_reply_headers(r->ex, r->c.code,
                                   &(struct http_headers){head, r->c.code == 504 || r->c.code == 429 ? 3 : 2},
                                   body);
        request_free(r);
}

/* People who ask with curl or a browser get it indented. */
static bool wants_pretty(struct request *r)
{
        struct str agent = http_header(http_request_headers(r->ex), "User-Agent");
        const char *asked = request_param(r, "pretty");

        if (asked)
                return !streq(asked, "false") && !streq(asked, "0");
        return str_has_prefix(agent, STR("curl")) || str_has_prefix(agent, STR("Wget")) ||
               str_has_prefix(agent, STR("Mozilla/5.0"));
}

static void reply_json(struct request *r)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT((size_t)1 << 30);

        json_write(r->c.answer, r->view.pretty ? JSON_PRETTY : JSON_COMPACT, &b);
        buf_addc(&b, '\n');
        request_reply(r, "application/json", buf_str(&b));
}

void request_reply_text(struct request *r, struct buf *text)
{
        if (r->view.pretty) {
                r->c.answer = json_parse(&r->a, buf_str(text),
                                         &(struct json_limits){.bytes = (size_t)1 << 30, .nodes = SIZE_MAX},
                                         NULL);
                reply_json(r);
                return;
        }
        buf_addc(text, '\n');
        request_reply(r, "application/json", buf_str(text));
}

static void send_answer(void *arg)
{
        struct request *r = arg;
        struct json *object = r->c.answer;
        bool is_object = r->c.code < 300 && r->c.type && !streq(json_str(object, "kind"), "Status");

        if (is_object && r->c.type->from_stored && !json_at(object, "items"))
                r->c.type->from_stored(r->c.type, object, &r->a);
        if (is_object && !json_at(object, "items"))
                r->c.answer = view_object(&r->c, &r->view, object, true);
        reply_json(r);
}

void request_answer(struct request *r)
{
        if (r->c.verb == DO_GET || r->c.verb == DO_LIST || r->c.verb == DO_WATCH)
                send_answer(r);
        else
                store_after(r->api->store, send_answer, r); /* what it tells must be durable, refusals too */
}

static void answer_json(struct request *r, struct json *body)
{
        r->c.code = 200;
        r->c.answer = body;
        r->c.type = NULL;
        reply_json(r);
}

static void reply_text(struct request *r, int code, const char *text)
{
        r->c.code = code;
        request_reply(r, "text/plain; charset=utf-8", str_of(text));
}

const char *request_param(struct request *r, const char *name)
{
        return http_query_param(r->ex, name, &r->a);
}

/* ---- who asks, and how he wants it */

static bool authorized(struct request *r)
{
        struct str got = http_header(http_request_headers(r->ex), "Authorization");
        size_t n = strlen(r->api->token);

        if (!str_has_prefix(got, STR("Bearer ")) || got.n != n + 7)
                return false;
        return CRYPTO_memcmp(got.p + 7, r->api->token, n) == 0;
}

static struct str media_param(struct str type, const char *name)
{
        size_t n = strlen(name);

        str_split(&type, ';');
        while (type.p) {
                struct str p = str_trim(str_split(&type, ';'));

                if (p.n > n && memcmp(p.p, name, n) == 0 && p.p[n] == '=')
                        return str_n(p.p + n + 1, p.n - n - 1);
        }
        return STR_NULL;
}

static const struct {
        const char *as;
        enum format format;
} formats[] = {{"Table", AS_TABLE},
               {"PartialObjectMetadata", AS_METADATA},
               {"PartialObjectMetadataList", AS_METADATA}};

/* Takes one media type of Accept if it can be served. */
static bool accept_one(struct request *r, struct str media)
{
        struct str type = media, as = media_param(media, "as"), version = media_param(media, "v");

        type = str_trim(str_split(&type, ';'));
        if (!str_eq(type, STR("application/json")) && !str_eq(type, STR("*/*")) &&
            !str_eq(type, STR("application/*")))
                return false;
        if (as.n == 0) {
                r->view.as = AS_OBJECT;
                return true;
        }
        for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
                if (!str_eq(as, str_of(formats[i].as)) ||
                    !(str_eq(version, STR("v1")) || str_eq(version, STR("v1beta1"))))
                        continue;
                r->view.as = formats[i].format;
                r->view.wants_list = streq(formats[i].as, "PartialObjectMetadataList");
                r->view.version = arena_strndup(&r->a, version.p, version.n);
                return true;
        }
        return false;
}

static bool negotiate(struct request *r)
{
        struct str accept = http_header(http_request_headers(r->ex), "Accept");

        r->view = (struct view){.as = AS_OBJECT, .version = "v1", .include_object = "Metadata"};
        r->view.pretty = wants_pretty(r);
        if (accept.n == 0)
                return true;
        while (accept.p)
                if (accept_one(r, str_trim(str_split(&accept, ','))))
                        return true;
        return false;
}

static const char *user_agent_manager(struct request *r)
{
        struct str agent = http_header(http_request_headers(r->ex), "User-Agent");
        struct str first = str_split(&agent, '/');

        return first.n ? arena_strndup(&r->a, first.p, MIN(first.n, (size_t)128)) : "unknown";
}

/* ---- body */

static const struct {
        const char *type;
        enum patch_type patch;
} patch_types[] = {
        {"application/json-patch+json", PATCH_JSON},
        {"application/merge-patch+json", PATCH_JSON_MERGE},
        {"application/strategic-merge-patch+json", PATCH_STRATEGIC},
        {"application/apply-patch+yaml", PATCH_APPLY},
};

static struct str content_type(struct request *r)
{
        struct str type = http_header(http_request_headers(r->ex), "Content-Type");

        return str_trim(str_split(&type, ';'));
}

static int unsupported_patch(struct request *r)
{
        if (r->c.type->crd && str_eq(content_type(r), STR("application/strategic-merge-patch+json")))
                return fail(
                        &r->c, 415, "UnsupportedMediaType", NULL,
                        "the body of the request was in an unknown format - accepted media types include: "
                        "application/json-patch+json, application/merge-patch+json, "
                        "application/apply-patch+yaml");
        return fail(&r->c, 415, "UnsupportedMediaType", json_object(&r->a), "415: Unsupported Media Type");
}

/* Controllers send JSON, which is YAML too: reading it as what it is takes a tenth of the time. */
static struct json *parse_applied(struct request *r, struct err *err)
{
        struct str body = http_body(r->ex);
        struct json *j = body.n && body.p[0] == '{' ? json_parse(&r->a, body, NULL, NULL) : NULL;

        return j ? j : yaml_parse(&r->a, body, NULL, err);
}

static int read_patch(struct request *r)
{
        struct str type = content_type(r);
        struct err err = ERR_INIT;
        bool found = false;

        for (size_t i = 0; i < ARRAY_LEN(patch_types) && !found; i++) {
                found = str_eq(type, str_of(patch_types[i].type));
                r->c.patch = patch_types[i].patch;
        }
        if (!found || (r->c.patch == PATCH_STRATEGIC && r->c.type->crd))
                return unsupported_patch(r);
        if (r->c.patch == PATCH_APPLY)
                r->c.body = parse_applied(r, &err);
        else
                r->c.body = json_parse(&r->a, http_body(r->ex), NULL, &err);
        if (r->c.body)
                return 0;
        if (r->c.patch == PATCH_JSON_MERGE)
                return fail(&r->c, 500, NULL, NULL, "Invalid JSON Patch");
        return fail_bad_request(&r->c, "%s%s", r->c.patch == PATCH_APPLY ? "error decoding YAML: " : "",
                                err.text);
}

static int read_body(struct request *r)
{
        struct str type = content_type(r), body = http_body(r->ex);
        struct err err = ERR_INIT;
        bool yaml = str_eq(type, STR("application/yaml"));

        if (str_eq(type, STR("application/vnd.kubernetes.protobuf")))
                return fail(&r->c, 415, "UnsupportedMediaType", NULL,
                            "the embedded engine reads JSON and YAML, not protobuf: use kubectl apply -f, or "
                            "kubectl create "
                            "... --dry-run=client -o yaml | kubectl apply -f -");
        if (type.n && !yaml && !str_eq(type, STR("application/json")))
                return fail(
                        &r->c, 415, "UnsupportedMediaType", NULL,
                        "the body of the request was in an unknown format - accepted media types include: "
                        "application/json, application/yaml%s",
                        r->c.type->crd ? "" : ", application/vnd.kubernetes.protobuf");
        r->c.body = yaml ? yaml_parse(&r->a, body, NULL, &err) : json_parse(&r->a, body, NULL, &err);
        if (json_is(r->c.body, JSON_NULL))
                r->c.body = json_object(&r->a);
        if (!json_is(r->c.body, JSON_OBJECT))
                return fail_bad_request(
                        &r->c,
                        "the object provided is unrecognized (must be of type %s): couldn't get "
                        "version/kind; json parse error: %s (%s)",
                        r->c.type->kube.kind,
                        body.n ? (err.code ? err.text : "not an object") : "unexpected end of JSON input",
                        body.n ? arena_strndup(&r->a, body.p, MIN(body.n, (size_t)64)) : "<empty>");
        return 0;
}

/* ---- options of writes */

static const char *options_kind(const struct call *c)
{
        switch (c->verb) {
        case DO_CREATE:
                return "CreateOptions";
        case DO_UPDATE:
                return "UpdateOptions";
        case DO_PATCH:
                return "PatchOptions";
        default:
                return "DeleteOptions";
        }
}

static int read_dry_run(struct request *r, const char *value)
{
        if (!value || !*value)
                return 0;
        if (!streq(value, "All"))
                return fail_option(
                        &r->c, options_kind(&r->c), "FieldValueNotSupported", "dryRun",
                        arena_printf(&r->a, "Unsupported value: []string{\"%s\"}: supported values: \"All\"",
                                     value));
        r->c.dry_run = true;
        return 0;
}

static int read_write_options(struct request *r)
{
        const char *manager = request_param(r, "fieldManager"), *force = request_param(r, "force");
        bool apply = r->c.verb == DO_PATCH && r->c.patch == PATCH_APPLY;

        if (read_dry_run(r, request_param(r, "dryRun")) < 0)
                return -1;
        r->c.force = force && streq(force, "true");
        if (r->c.verb == DO_PATCH && !apply && force)
                return fail_option(&r->c, options_kind(&r->c), "FieldValueForbidden", "force",
                                   "Forbidden: may not be specified for non-apply patch");
        if (apply && (!manager || !*manager))
                return fail_option(&r->c, options_kind(&r->c), "FieldValueRequired", "fieldManager",
                                   "Required value: is required for apply patch");
        if (manager && strlen(manager) > 128)
                return fail_option(&r->c, options_kind(&r->c), "FieldValueTooLong", "fieldManager",
                                   "Too long: must have at most 128 bytes");
        r->c.manager = manager && *manager ? manager : user_agent_manager(r);
        for (size_t i = 0; manager && manager[i]; i++)
                if ((unsigned char)manager[i] < 0x20 || manager[i] == 0x7f)
                        return fail_option(
                                &r->c, options_kind(&r->c), "FieldValueInvalid", "fieldManager",
                                arena_printf(&r->a,
                                             "Invalid value: \"\\x%02x\": invalid character U+%04X (at "
                                             "position %zu)",
                                             manager[i], manager[i], i));
        return 0;
}

static int check_propagation(struct call *c, const struct json *orphan)
{
        static const char *const known[] = {"Foreground", "Background", "Orphan"};

        if (!c->propagation)
                return 0;
        if (orphan)
                return fail_option(
                        c, options_kind(c), "FieldValueInvalid", "propagationPolicy",
                        arena_printf(c->a,
                                     "Invalid value: \"%s\": orphanDependents and deletionPropagation "
                                     "cannot be both set",
                                     c->propagation));
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (streq(c->propagation, known[i]))
                        return 0;
        return fail_option(c, options_kind(c), "FieldValueNotSupported", "propagationPolicy",
                           arena_printf(c->a,
                                        "Unsupported value: \"%s\": supported values: \"Foreground\", "
                                        "\"Background\", \"Orphan\", \"nil\"",
                                        c->propagation));
}

/* From the body, or from the query when there is none. */
static int read_delete_options(struct request *r)
{
        struct call *c = &r->c;
        const struct json *preconditions, *orphan;
        const char *grace = request_param(r, "gracePeriodSeconds");
        struct err err = ERR_INIT;

        c->grace = -1;
        if (http_body(r->ex).n) {
                c->body = json_parse(&r->a, http_body(r->ex), NULL, &err);
                if (!json_is(c->body, JSON_OBJECT))
                        return fail(c, 500, NULL, NULL, "couldn't get version/kind; json parse error: %s",
                                    err.text);
                if (!streq(json_str_or(c->body, "kind", "DeleteOptions"), "DeleteOptions"))
                        return fail(
                                c, 500, NULL, NULL,
                                "no kind \"%s\" is registered for version \"%s\" in scheme "
                                "\"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
                                json_str(c->body, "kind"), json_str_or(c->body, "apiVersion", ""));
        } else {
                c->body = json_build(
                        &r->a, "{'propagationPolicy': %p, 'orphanDependents': %p}",
                        json_string(&r->a, request_param(r, "propagationPolicy")),
                        request_param(r, "orphanDependents")
                                ? json_truth(&r->a, streq(request_param(r, "orphanDependents"), "true"))
                                : NULL);
                if (grace && !str_to_i64(str_of(grace), &c->grace))
                        return fail_bad_request(c, "strconv.ParseInt: parsing \"%s\": invalid syntax", grace);
        }
        c->grace = json_int(c->body, "gracePeriodSeconds", c->grace);
        preconditions = json_at(c->body, "preconditions");
        c->if_uid = json_str(preconditions, "uid");
        c->if_rev = json_str(preconditions, "resourceVersion");
        c->propagation = json_str(c->body, "propagationPolicy");
        orphan = json_at(c->body, "orphanDependents");
        if (check_propagation(c, orphan) < 0)
                return -1;
        if (orphan)
                c->propagation = orphan->truth ? "Orphan" : "Background";
        if (read_dry_run(r, json_cstr(json_index(json_at(c->body, "dryRun"), 0))) < 0)
                return -1;
        return read_dry_run(r, request_param(r, "dryRun"));
}

/* ---- paths */

static int read_path(struct request *r, struct path *p)
{
        struct str rest = http_path(r->ex);

        if (rest.n && rest.p[0] == '/')
                rest = str_n(rest.p + 1, rest.n - 1);
        while (rest.p) {
                struct str part = str_split(&rest, '/');

                if (part.n == 0)
                        continue;
                if (p->n == SEGMENTS_MAX)
                        return -1;
                p->part[p->n] = url_decode(part, &r->a);
                if (!p->part[p->n++])
                        return -1;
        }
        return 0;
}

/* What follows the version: [namespaces NS] PLURAL [NAME [SUB]]. -1: no such resource. */
static int find_resource(struct request *r, const char *group, const char *version, const char *const *part,
                         size_t n)
{
        struct call *c = &r->c;

        c->ns = "";
        if (n >= 2 && streq(part[0], "watch")) { /* the old path of watches */
                r->old_watch = true;
                part++;
                n--;
        }
        if (n >= 3 && streq(part[0], "namespaces") &&
            !(streq(group, "") && n == 3 && (streq(part[2], "status") || streq(part[2], "finalize")))) {
                c->ns = part[1];
                part += 2;
                n -= 2;
        }
        if (n > 3)
                return -1;
        c->type = api_find_plural(r->api, group, version, part[0]);
        if (!c->type)
                return -1;
        crd_ref(c->type->crd); /* until the request is gone, whatever becomes of the definition */
        if (*c->ns && !c->type->kube.namespaced)
                return -1;
        c->name = n > 1 ? part[1] : NULL;
        c->sub = n > 2 ? part[2] : "";
        if (c->name && ((c->type->kube.namespaced && !*c->ns) || strchr(c->name, '/')))
                return -1;
        if (!*c->sub)
                return 0;
        for (const char *const *s = c->type->subresources; s && *s; s++)
                if (streq(*s, c->sub))
                        return 0;
        r->no_sub = c->type->crd && streq(c->sub, "status");
        return r->no_sub ? 0 : -1;
}

static bool has_verb(const struct call *c, unsigned verb)
{
        return c->type->verbs & verb;
}

/* The verb that the method means here; false: none. */
static bool find_verb(struct request *r)
{
        struct call *c = &r->c;
        struct str m = http_method(r->ex);
        const char *watch = request_param(r, "watch");
        bool collection_of_all = c->type->kube.namespaced && !*c->ns;

        if (str_eq(m, STR("GET"))) {
                bool wants_watch = r->old_watch ||
                                   (watch && !streq(watch, "false") && !streq(watch, "0") && !c->name);

                c->verb = wants_watch ? DO_WATCH : (c->name ? DO_GET : DO_LIST);
                return has_verb(c, wants_watch ? VERB_WATCH : (c->name ? VERB_GET : VERB_LIST));
        }
        if (collection_of_all && c->type->verbs != VERB_CREATE)
                return false;
        if (str_eq(m, STR("POST"))) {
                c->verb = DO_CREATE;
                return (!c->name || *c->sub) && has_verb(c, VERB_CREATE);
        }
        if (str_eq(m, STR("PUT"))) {
                c->verb = DO_UPDATE;
                return c->name && has_verb(c, VERB_UPDATE);
        }
        if (str_eq(m, STR("PATCH"))) {
                c->verb = DO_PATCH;
                return c->name && has_verb(c, VERB_PATCH);
        }
        c->verb = c->name ? DO_DELETE : DO_DELETE_COLLECTION;
        return str_eq(m, STR("DELETE")) && !*c->sub &&
               has_verb(c, c->name ? VERB_DELETE : VERB_DELETECOLLECTION);
}

static void delete_collection(struct request *r)
{
        struct list_options o;

        if (list_options_read(r, &o) == 0)
                do_delete_collection(&r->c, o.selector);
        request_answer(r);
}

/* PartialObjectMetadata is for one object, PartialObjectMetadataList for many. */
static int check_view(struct request *r)
{
        bool list = r->c.verb == DO_LIST;
        const char *include = r->view.include_object;

        if (r->view.as == AS_TABLE && *include && !streq(include, "None") && !streq(include, "Metadata") &&
            !streq(include, "Object"))
                return fail_bad_request(
                        &r->c,
                        "Unable to convert to Table as requested: includeObject: Invalid value: \"%s\": "
                        "must be 'Metadata', 'Object', 'None', or empty",
                        include);

        if (r->view.as != AS_METADATA || r->c.verb == DO_WATCH || r->view.wants_list == list)
                return 0;
        return fail(
                &r->c, 406, "NotAcceptable", NULL,
                list ? "you requested PartialObjectMetadata, but the requested object is a list (*%s.%sList)"
                     : "you requested PartialObjectMetadataList, but the requested object is not a list "
                       "(*%s.%s)",
                *r->c.type->kube.group
                        ? arena_strndup(&r->a, r->c.type->kube.group, strcspn(r->c.type->kube.group, "."))
                        : "core",
                r->c.type->kube.kind);
}

static int check_version(struct request *r)
{
        uint64_t rev;

        if (parse_rev(&r->c, request_param(r, "resourceVersion"), &rev) < 0)
                return -1;
        return rev > store_rev(r->api->store) ? fail_too_new(&r->c, rev) : 0;
}

static int read_everything(struct request *r)
{
        switch (r->c.verb) {
        case DO_CREATE:
        case DO_UPDATE:
                return read_body(r) < 0 ? -1 : read_write_options(r);
        case DO_PATCH:
                return read_patch(r) < 0 ? -1 : read_write_options(r);
        case DO_DELETE:
        case DO_DELETE_COLLECTION:
                r->c.manager = user_agent_manager(r);
                return read_delete_options(r);
        case DO_GET:
                return check_view(r) < 0 ? -1 : check_version(r);
        default:
                return check_view(r);
        }
}

static int check_size(struct request *r)
{
        if (http_body(r->ex).n <= API_BODY_MAX)
                return 0;
        return fail(&r->c, 413, "RequestEntityTooLarge", NULL, "Request entity too large: limit is %d",
                    API_BODY_MAX);
}

static void serve_resource(struct request *r)
{
        if (!find_verb(r)) {
                fail_method(&r->c);
                reply_json(r);
                return;
        }
        if (r->no_sub) {
                fail_not_found(&r->c);
                request_answer(r);
        } else if (check_size(r) < 0 || read_everything(r) < 0) {
                request_answer(r);
        } else if (r->c.verb == DO_LIST) {
                do_list(r);
        } else if (r->c.verb == DO_WATCH) {
                do_watch(r);
        } else if (r->c.verb == DO_DELETE_COLLECTION) {
                delete_collection(r);
        } else if (streq(r->c.sub, "log")) {
                do_log(r);
        } else {
                if (r->c.type->verbs == VERB_CREATE)
                        do_review(&r->c);
                else if (r->c.verb == DO_CREATE && *r->c.sub)
                        do_subresource(&r->c);
                else
                        api_do(&r->c);
                request_answer(r);
        }
}

/* ---- what is no resource */

static struct served served(struct api *api)
{
        return (struct served){.types = api->types.v,
                               .n = api->types.n,
                               .builtin = types_shapes(api->builtin),
                               .address = api->address};
}

static void serve_openapi(struct request *r)
{
        struct str accept = http_header(http_request_headers(r->ex), "Accept");
        struct served s = served(r->api);
        bool pb = memmem(accept.p ? accept.p : "", accept.n, "protobuf", 8);
        struct buf *b = pb ? &r->api->openapi_pb : &r->api->openapi;

        if (b->n == 0)
                (pb ? openapi_protobuf : openapi_json)(&s, b);
        r->c.code = 200;
        request_reply(r, pb ? "application/octet-stream" : "text/plain; charset=utf-8", buf_str(b));
}

static void serve_version(struct request *r)
{
        answer_json(
                r,
                json_build(&r->a,
                           "{'major': '1', 'minor': '20', 'gitVersion': 'v1.20.2+sonde', 'gitCommit': '', "
                           "'gitTreeState': 'archive', 'buildDate': '1970-01-01T00:00:00Z', 'goVersion': '', "
                           "'compiler': 'gc', 'platform': 'linux/amd64'}"));
}

static bool group_builtin(struct api *api, const char *group)
{
        vec_foreach (t, &api->types)
                if (!(*t)->crd && streq((*t)->kube.group, group))
                        return true;
        return false;
}

static void serve_discovery(struct request *r, const struct path *p)
{
        struct served s = served(r->api);
        bool core = streq(p->part[0], "api");
        struct json *found = NULL;

        if (core && p->n == 1)
                found = discovery_api(&s, &r->a);
        else if (core)
                found = discovery_resources(&s, "", p->part[1], &r->a);
        else if (p->n == 1)
                found = discovery_groups(&s, &r->a);
        else if (p->n == 2)
                found = discovery_group(&s, p->part[1], &r->a);
        else
                found = discovery_resources(&s, p->part[1], p->part[2], &r->a);
        if (found) {
                answer_json(r, found);
        } else if (p->n == 3 && group_builtin(r->api, p->part[1])) {
                fail_unknown(&r->c);
                reply_json(r);
        } else {
                reply_text(r, 404, "404 page not found\n");
        }
}

static bool is_health(const char *part)
{
        return streq(part, "healthz") || streq(part, "readyz") || streq(part, "livez");
}

static void serve_path(struct request *r, const struct path *p)
{
        bool core = p->n && streq(p->part[0], "api"), named = p->n && streq(p->part[0], "apis");
        size_t prefix = core ? 2 : 3;

        if (p->n == 2 && streq(p->part[0], "openapi") && streq(p->part[1], "v2")) {
                serve_openapi(r);
        } else if (p->n == 1 && streq(p->part[0], "version")) {
                serve_version(r);
        } else if (!core && !named) {
                reply_text(r, 404, "404 page not found\n");
        } else if (p->n <= prefix) {
                serve_discovery(r, p);
        } else if (find_resource(r, core ? "" : p->part[1], p->part[prefix - 1], p->part + prefix,
                                 p->n - prefix) == 0) {
                serve_resource(r);
        } else if (!core && !group_builtin(r->api, p->part[1])) {
                reply_text(r, 404, "404 page not found\n");
        } else {
                fail_unknown(&r->c);
                reply_json(r);
        }
}

/* The peer has gone: the work is done all the same, nobody hears of it. */
static void abandoned(void *arg)
{
        struct request *r = arg;

        r->ex = NULL;
}

static bool may_pass(struct request *r)
{
        if (!authorized(r)) {
                fail(&r->c, 401, "Unauthorized", NULL, "Unauthorized");
                reply_json(r);
                return false;
        }
        return true;
}

void api_request(void *arg, struct http_exchange *ex)
{
        struct api *api = arg;
        struct request *r = xcalloc(1, sizeof(*r));
        struct str accept = http_header(http_request_headers(ex), "Accept");
        struct path p = {0};

        list_append(&api->requests, &r->node);
        r->api = api;
        r->ex = ex;
        r->a = arena_pool_take(&api->arenas);
        r->c = (struct call){.api = api, .a = &r->a, .sub = "", .ns = "", .grace = -1};
        http_on_abandon(ex, abandoned, r);
        if (read_path(r, &p) < 0) {
                reply_text(r, 404, "404 page not found\n");
                return;
        }
        if (p.n >= 1 && is_health(p.part[0])) {
                reply_text(r, 200, "ok");
                return;
        }
        if (!may_pass(r))
                return;
        if (!negotiate(r) && !(p.n == 2 && streq(p.part[0], "openapi"))) {
                bool known = memmem(accept.p, accept.n, "application/json", 16);

                fail(&r->c, 406, "NotAcceptable", known ? NULL : json_object(&r->a),
                     known ? "only the following media types are accepted: application/json, "
                             "application/yaml, "
                             "application/vnd.kubernetes.protobuf"
                           : "406: Not Acceptable");
                reply_json(r);
                return;
        }
        if (request_param(r, "includeObject"))
                r->view.include_object = request_param(r, "includeObject");
        serve_path(r, &p);
}
