#include "operator/runtime.h"

/*
 * What carrying out has run into and nobody but a person can change is told on the request. These reasons are the
 * runtime's; a kind's settle uses others.
 */
static const struct {
        const char *reason;
        bool tries_again; /* it may be mended without a change of anything that is watched */
} reasons[] = {
        {"NameConflict", true}, {"KindNotInstalled", true}, {"Forbidden", true},
        {"Refused", false},     {"TooLarge", false},
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

        if (strstr(said->message, "attempting to grant RBAC permissions not currently held"))
                return "; grant the operator's account these permissions as well";
        if (strstr(said->message, " cannot ") && strstr(said->message, " resource "))
                return arena_printf(&t->arena,
                                    "; grant the operator's account the verb '%s' on '%s' of API group '%s'",
                                    apply ? "patch" : kube_verb_name(t->doing), t->doing_type->plural,
                                    t->doing_type->group);
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
        else if (err->code == E_REFUSED || err->code == E_TOO_LARGE)
                stall(t, err->code == E_REFUSED ? "Refused" : "TooLarge", arena_strdup(&t->arena, err->text));
        else
                return false;
        return true;
}

/* ---- on the request */

static struct json *present_status(struct task *t)
{
        const struct json *status = json_at(t->view.request, "status");

        return json_is(status, JSON_OBJECT) ? json_copy(&t->arena, status) : json_object(&t->arena);
}

struct json *stall_tell(struct task *t, struct json *status)
{
        static const char *const values[][2] = {
                {"Ready", "False"}, {"Progressing", "False"}, {"Stalled", "True"}};

        if (!status)
                status = present_status(t);
        for (size_t i = 0; i < ARRAY_LEN(values); i++)
                decide_condition(&t->view, status, values[i][0], values[i][1], t->stalled_reason,
                                 t->stalled_message);
        return status;
}

static bool is_ours(const struct json *condition)
{
        return reason_index(json_str_or(condition, "reason", "")) < ARRAY_LEN(reasons);
}

struct json *stall_clear(struct task *t)
{
        static const struct {
                const char *type, *was, *is;
        } values[] = {{"Stalled", "True", "False"},
                      {"Ready", "False", "Unknown"},
                      {"Progressing", "False", "True"}};
        const struct json *conditions = json_at(json_at(t->view.request, "status"), "conditions");
        struct json *status = NULL;

        for (size_t i = 0; i < ARRAY_LEN(values); i++)
                json_foreach (c, conditions) {
                        if (!streq(json_str(c, "type"), values[i].type) ||
                            !streq(json_str(c, "status"), values[i].was) || !is_ours(c))
                                continue;
                        status = status ? status : present_status(t);
                        decide_condition(&t->view, status, values[i].type, values[i].is, "Resolved",
                                         "what stood in the way is gone");
                }
        return status;
}
