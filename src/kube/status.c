#include "kube/kube.h"

enum { STATUS_DEPTH = 16, MESSAGE_MAX = 600, RETRY_AFTER_MAX = 3600 };

static const char *const verb_names[] = {
        [KUBE_GET] = "get",
        [KUBE_LIST] = "list",
        [KUBE_WATCH] = "watch",
        [KUBE_CREATE] = "create",
        [KUBE_UPDATE] = "update",
        [KUBE_PATCH_JSON] = "patch",
        [KUBE_PATCH_MERGE] = "patch",
        [KUBE_PATCH_STRATEGIC] = "patch",
        [KUBE_APPLY] = "apply",
        [KUBE_DELETE] = "delete",
        [KUBE_DELETE_COLLECTION] = "deletecollection",
};

const char *kube_verb_name(enum kube_verb verb)
{
        return verb_names[verb];
}

/* Three different meanings share 409; only reason and causes tell them apart. */
static enum err_code conflict_code(const struct kube_status *s)
{
        if (streq(s->reason, "AlreadyExists"))
                return E_EXISTS;
        if (streq(s->cause, "FieldManagerConflict"))
                return E_OWNED;
        return E_CONFLICT;
}

static enum err_code server_error_code(const struct kube_status *s)
{
        /* etcd's refusal comes as a 500 without a reason, and would be refused again for ever. */
        if (strstr(s->message, "request is too large"))
                return E_TOO_LARGE;
        /* So does an apply of what the kind's schema does not have. */
        if (strstr(s->message, "field not declared in schema"))
                return E_REFUSED;
        /* A list at a version the server has not reached: after an etcd restore it may never come. */
        if (streq(s->cause, "ResourceVersionTooLarge") || strstr(s->message, "Too large resource version"))
                return E_EXPIRED;
        return s->code == 503 ? E_BUSY : s->code == 504 ? E_TIMEOUT : E_SERVER;
}

static enum err_code code_of(const struct kube_status *s, enum kube_verb verb)
{
        switch (s->code) {
        case 401:
                return E_AUTH;
        case 403:
                return E_FORBIDDEN;
        case 404:
                return E_NOT_FOUND;
        case 408:
                return E_TIMEOUT;
        case 409:
                return conflict_code(s);
        case 410:
                return E_EXPIRED;
        case 413:
                return E_TOO_LARGE;
        case 422:
                return verb == KUBE_PATCH_JSON && !s->has_causes ? E_FENCED : E_REFUSED;
        case 429:
                return E_BUSY;
        default:
                if (s->code >= 500)
                        return server_error_code(s);
                return s->code >= 400 ? E_REFUSED : E_PROTOCOL;
        }
}

static void read_status(const struct json *body, struct kube_status *ret)
{
        const struct json *details = json_at(body, "details");
        const struct json *cause = json_first(json_at(details, "causes"));
        int64_t code = json_int(body, "code", 0), retry_after;

        if (code >= 100 && code <= 599)
                ret->code = (int)code;
        ret->reason = json_str_or(body, "reason", "");
        ret->message = json_str_or(body, "message", "");
        ret->cause = json_str_or(cause, "reason", "");
        ret->kind = json_str_or(details, "kind", "");
        ret->has_causes = cause != NULL;
        retry_after = json_int(details, "retryAfterSeconds", 0);
        ret->retry_after = (usec_t)MIN(MAX(retry_after, (int64_t)0), (int64_t)RETRY_AFTER_MAX) * USEC_PER_SEC;
}

/* The first line of a body that is no Status (text of an unknown group, a proxy's HTML), if it is fit to print. */
static const char *plain_message(struct arena *a, struct str body)
{
        struct str line = str_split(&body, '\n');

        line = str_trim(line);
        if (line.n == 0 || line.p[0] == '<' || !utf8_valid(line.p, line.n))
                return "";
        return arena_strndup(a, line.p, utf8_cut(line.p, line.n, 200));
}

int kube_status_error(struct arena *a, int http_status, struct str body, enum kube_verb verb,
                      struct kube_status *ret, struct err *err)
{
        static const struct json_limits limits = {.bytes = 256 * 1024, .depth = STATUS_DEPTH, .nodes = 10000};
        const char *message;
        struct kube_status local;
        struct json *j;

        if (!ret)
                ret = &local;
        *ret = (struct kube_status){
                .code = http_status, .reason = "", .message = "", .cause = "", .kind = ""};
        j = json_parse(a, body, &limits, NULL);
        if (json_is(j, JSON_OBJECT))
                read_status(j, ret);
        else
                ret->message = plain_message(a, body);
        /* A Status inside a watch has its own code; outside, the status line is the truth. */
        if (http_status != 200)
                ret->code = http_status;
        message = ret->message[0] ? ret->message : http_status_text(ret->code);
        return err_set(err, code_of(ret, verb), "the server said %d%s%s: %.*s", ret->code,
                       ret->reason[0] ? " " : "", ret->reason,
                       (int)utf8_cut(message, strlen(message), MESSAGE_MAX), message);
}

bool kube_namespace_ends(struct arena *a, const struct kube_answer *answer, const struct err *err)
{
        struct kube_status said;

        if (err->code != E_FORBIDDEN && err->code != E_NOT_FOUND)
                return false;
        kube_status_error(a, answer->status, answer->body, KUBE_CREATE, &said, NULL);
        return err->code == E_FORBIDDEN ? streq(said.cause, "NamespaceTerminating")
                                        : streq(said.kind, "namespaces");
}
