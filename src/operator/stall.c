#include "operator/runtime.h"

/*
 * What carrying out has run into and nobody but a person can change is told on the request. These reasons are the
 * runtime's; a kind's settle uses others.
 */
static const struct {
        const char *reason;
        bool tries_again; /* it may be mended without a change of anything that is watched */
} reasons[] = {
        {"NameConflict", true}, {"KindNotInstalled", true}, {"KindOutdated", true},
        {"Forbidden", true},    {"Refused", false},         {"TooLarge", false},
};

static size_t reason_index(const char *reason)
{
        size_t i = 0;

        while (i < ARRAY_LEN(reasons) && !streq(reason, reasons[i].reason))
                i++;
        return i;
}

bool stall_tries_again(const struct task *t)
{
        size_t i = reason_index(t->stalled_reason);

        return i < ARRAY_LEN(reasons) && reasons[i].tries_again;
}

void stall(struct task *t, const char *reason, const char *message)
{
        t->stalled_reason = reason;
        t->stalled_message = message;
}

/* ---- from an answer to a reason */

/* What to do about a 403, by what the server says. A quota or an admission's own sentence says it all. */
static const char *remedy(struct task *t, const struct kube_status *said)
{
        bool apply = t->doing == KUBE_APPLY || t->doing == KUBE_PATCH_JSON;
        const char *part = t->doing_part;

        if (strstr(said->message, "attempting to grant RBAC permissions not currently held"))
                return "; grant the operator's account these permissions as well";
        if (strstr(said->message, " cannot ") && strstr(said->message, " resource "))
                return arena_printf(
                        &t->arena,
                        "; grant the operator's account the verb '%s' on '%s%s%s' of API group '%s'",
                        apply ? "patch" : kube_verb_name(t->doing), t->doing_type->plural, part ? "/" : "",
                        part ? part : "", t->doing_type->group);
        return "";
}

static void stall_forbidden(struct task *t, const struct kube_status *said, const struct err *err)
{
        stall(t, "Forbidden", arena_printf(&t->arena, "%s%s", err->text, remedy(t, said)));
}

static void stall_not_installed(struct task *t)
{
        stall(t, "KindNotInstalled",
              arena_printf(&t->arena, "the cluster has no %s (%s); install its CRD", t->doing_type->kind,
                           kube_api_version(t->doing_type, &t->arena)));
}

/* Another one than this operator was made with: upstream's, or that of an earlier release. */
static void stall_outdated(struct task *t, const struct err *err)
{
        stall(t, "KindOutdated",
              arena_printf(&t->arena,
                           "the cluster's %s (%s) is not that of this operator; install its CRD: %s",
                           t->doing_type->kind, kube_api_version(t->doing_type, &t->arena), err->text));
}

bool stall_by(struct task *t, const struct kube_answer *answer, const struct err *err)
{
        struct kube_status said = {.reason = "", .message = "", .cause = "", .kind = ""};

        if (answer && answer->status)
                kube_status_error(&t->arena, answer->status, answer->body, t->doing, &said, NULL);
        if (answer && t->doing == KUBE_CREATE && kube_namespace_ends(&t->arena, answer, err))
                item_end(t->item, meta_str(t->view.request, "uid"));
        else if (err->code == E_FORBIDDEN)
                stall_forbidden(t, &said, err);
        else if (err->code == E_NOT_FOUND && t->doing == KUBE_CREATE)
                stall_not_installed(t);
        else if (err->code == E_REFUSED && strstr(said.message, "field not declared in schema"))
                stall_outdated(t, err);
        else if (err->code == E_REFUSED || err->code == E_TOO_LARGE)
                stall(t, err->code == E_REFUSED ? "Refused" : "TooLarge", arena_strdup(&t->arena, err->text));
        else
                return false;
        return true;
}

/* ---- on the request */

static struct json *condition(const struct json *status, const char *type)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

static bool is_ours(const struct json *condition)
{
        return reason_index(json_str_or(condition, "reason", "")) < ARRAY_LEN(reasons);
}

static struct json *present_status(struct task *t)
{
        const struct json *status = json_at(t->view.request, "status");

        return json_is(status, JSON_OBJECT) ? json_copy(&t->arena, status) : json_object(&t->arena);
}

/* A kind may remember by the reason and message of Progressing what it was about: these stay as it said them. */
static void turn_progressing(struct task *t, struct json *status, const char *value, const char *reason,
                             const char *message)
{
        const struct json *is = condition(status, "Progressing");
        bool kind_s = json_str(is, "reason") && !is_ours(is);

        if (kind_s) {
                reason = arena_strdup(&t->arena, json_str(is, "reason"));
                message = arena_strdup(&t->arena, json_str_or(is, "message", ""));
        }
        decide_condition(&t->view, status, "Progressing", value, reason, message);
}

struct json *stall_tell(struct task *t)
{
        struct json *status = present_status(t);

        decide_condition(&t->view, status, "Ready", "False", t->stalled_reason, t->stalled_message);
        turn_progressing(t, status, "False", t->stalled_reason, t->stalled_message);
        decide_condition(&t->view, status, "Stalled", "True", t->stalled_reason, t->stalled_message);
        return status;
}

bool stall_is_told(const struct task *t)
{
        const struct json *is = view_condition(&t->view, "Stalled");

        return streq(json_str(is, "status"), "True") && streq(json_str(is, "reason"), t->stalled_reason) &&
               streq(json_str(is, "message"), t->stalled_message);
}

bool stall_stands(const struct task *t)
{
        const struct json *is = view_condition(&t->view, "Stalled");

        return streq(json_str(is, "status"), "True") && is_ours(is);
}

/* What settle has not said anew. */
static bool is_carried_over(const struct task *t, const struct json *condition)
{
        return json_equal(condition, view_condition(&t->view, json_str(condition, "type")));
}

/* A condition that was told by a stall, and stands in STATUS as it was. */
static bool is_left(const struct task *t, const struct json *status, const char *type, const char *value)
{
        const struct json *c = condition(status, type);

        return c && streq(json_str(c, "status"), value) && is_ours(c) && is_carried_over(t, c);
}

struct json *stall_clear(struct task *t, struct json *status)
{
        static const char resolved[] = "Resolved", sentence[] = "what stood in the way is gone";
        const struct json *of = status ? status : json_at(t->view.request, "status"), *progressing;
        bool stalled = is_left(t, of, "Stalled", "True"), ready = is_left(t, of, "Ready", "False");
        struct json *now;

        if (!stalled && !ready && !is_left(t, of, "Progressing", "False"))
                return status;
        now = status ? status : present_status(t);
        progressing = condition(now, "Progressing");
        if (stalled)
                decide_condition(&t->view, now, "Stalled", "False", resolved, sentence);
        if (ready)
                decide_condition(&t->view, now, "Ready", "Unknown", resolved, sentence);
        if (streq(json_str(progressing, "status"), "False") && is_carried_over(t, progressing))
                turn_progressing(t, now, "True", resolved, sentence);
        return now;
}
