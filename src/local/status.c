#include "local/api_internal.h"

static void answer_status(struct call *c, int code, const char *reason, struct json *details,
                          const char *message)
{
        c->code = code;
        c->answer = json_build(c->a,
                               "{'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', "
                               "'message': %s, 'reason': %p, 'details': %p, 'code': %d}",
                               message, json_string(c->a, reason), details, code);
}

int fail(struct call *c, int code, const char *reason, struct json *details, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        answer_status(c, code, reason, details, arena_vprintf(c->a, fmt, ap));
        va_end(ap);
        return -1;
}

int fail_bad_request(struct call *c, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        answer_status(c, 400, "BadRequest", NULL, arena_vprintf(c->a, fmt, ap));
        va_end(ap);
        return -1;
}

/* "configmaps", "jobs.batch" */
static const char *type_resource(const struct api_type *t, struct arena *a)
{
        return *t->kube.group ? arena_printf(a, "%s.%s", t->kube.plural, t->kube.group) : t->kube.plural;
}

/* Empty strings are left out, as Go's omitempty does. */
static struct json *text_or_nothing(struct call *c, const char *s)
{
        return s && *s ? json_string(c->a, s) : NULL;
}

static struct json *details_of(struct call *c, const char *name, const char *group, const char *kind,
                               struct json *causes)
{
        return json_build(c->a, "{'name': %p, 'group': %p, 'kind': %p, 'causes': %p}",
                          text_or_nothing(c, name), text_or_nothing(c, group), text_or_nothing(c, kind),
                          causes);
}

static struct json *status_details(struct call *c, const char *name)
{
        return details_of(c, name, c->type->kube.group, c->type->kube.plural, NULL);
}

int fail_not_found(struct call *c)
{
        return fail(c, 404, "NotFound", status_details(c, c->name), "%s \"%s\" not found",
                    type_resource(c->type, c->a), c->name);
}

int fail_exists(struct call *c, const char *name)
{
        const struct object *o = store_newest(c->api->store, c->type->store, c->ns, name);

        return fail(c, 409, "AlreadyExists", status_details(c, name), "%s%s \"%s\" already exists",
                    o && object_deleting(object_parse(o, c->a)) ? "object is being deleted: " : "",
                    type_resource(c->type, c->a), name);
}

int fail_conflict(struct call *c, const char *fmt, ...)
{
        const char *why;
        va_list ap;

        va_start(ap, fmt);
        why = arena_vprintf(c->a, fmt, ap);
        va_end(ap);
        return fail(c, 409, "Conflict", status_details(c, c->name),
                    "Operation cannot be fulfilled on %s \"%s\": %s", type_resource(c->type, c->a), c->name,
                    why);
}

int fail_modified(struct call *c)
{
        return fail_conflict(
                c, "the object has been modified; please apply your changes to the latest version and "
                   "try again");
}

int fail_forbidden(struct call *c, const char *name, struct json *causes, const char *fmt, ...)
{
        const char *why;
        va_list ap;

        va_start(ap, fmt);
        why = arena_vprintf(c->a, fmt, ap);
        va_end(ap);
        return fail(c, 403, "Forbidden",
                    details_of(c, name, c->type->kube.group, c->type->kube.plural, causes),
                    "%s \"%s\" is forbidden: %s", type_resource(c->type, c->a), name, why);
}

int fail_unknown(struct call *c)
{
        return fail(c, 404, "NotFound", json_object(c->a),
                    "the server could not find the requested resource");
}

int fail_method(struct call *c)
{
        return fail(c, 405, "MethodNotAllowed", json_object(c->a),
                    "the server does not allow this method on the requested resource");
}

/* Several messages read "[a, b]"; one that occurs twice is said once. */
static const char *invalid_message(struct call *c, const struct causes *causes)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
        size_t said = 0;

        for (size_t i = 0; i < causes->n; i++) {
                const char *text = arena_printf(c->a, "%s: %s", causes->list[i].field,
                                                causes->list[i].message);
                bool before = false;

                for (size_t j = 0; j < i && !before; j++)
                        before = streq(causes->list[j].field, causes->list[i].field) &&
                                 streq(causes->list[j].message, causes->list[i].message);
                if (before)
                        continue;
                if (said++)
                        buf_adds(&b, ", ");
                buf_adds(&b, text);
        }
        return arena_printf(c->a, said > 1 ? "[%.*s]" : "%.*s", STR_ARG(buf_str(&b)));
}

int fail_invalid(struct call *c, const char *group, const char *kind, const char *name,
                 const struct causes *causes)
{
        struct json *list = json_array(c->a);

        for (size_t i = 0; i < causes->n; i++)
                json_append(list, json_build(c->a, "{'reason': %s, 'message': %s, 'field': %s}",
                                             causes->list[i].reason, causes->list[i].message,
                                             causes->list[i].field));
        return fail(c, 422, "Invalid", details_of(c, name, group, kind, list), "%s%s%s \"%s\" is invalid: %s",
                    kind, *group ? "." : "", group, name, invalid_message(c, causes));
}

int fail_option(struct call *c, const char *kind, const char *reason, const char *field, const char *message)
{
        struct causes causes = {.a = c->a};

        causes_add(&causes, reason, field, "%s", message);
        return fail_invalid(c, "meta.k8s.io", kind, "", &causes);
}

int fail_invalid_object(struct call *c, const struct json *object, const struct causes *causes)
{
        const char *name = meta_str(object, "name");

        /* What is stored as another group's is invalid as that. */
        return fail_invalid(c, c->type->to_stored ? "" : c->type->kube.group, c->type->kube.kind,
                            name ? name : "", causes);
}

struct json *status_success(struct call *c, const struct json *object)
{
        struct json *details = status_details(c, c->name);

        json_set(c->a, details, "uid", json_string(c->a, meta_str(object, "uid")));
        return json_build(
                c->a,
                "{'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Success', 'details': %p}",
                details);
}

void causes_add(struct causes *c, const char *reason, const char *field, const char *fmt, ...)
{
        struct cause *grown;
        va_list ap;

        if ((c->n & (c->n - 1)) == 0) { /* at every power of two */
                grown = arena_new_array(c->a, struct cause, c->n ? c->n * 2 : 1);
                if (c->n)
                        memcpy(grown, c->list, c->n * sizeof(*grown));
                c->list = grown;
        }
        va_start(ap, fmt);
        c->list[c->n++] = (struct cause){.reason = reason,
                                         .field = arena_strdup(c->a, field),
                                         .message = arena_vprintf(c->a, fmt, ap)};
        va_end(ap);
}
