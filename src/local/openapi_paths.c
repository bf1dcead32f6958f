/*
 * Paths of the OpenAPI document: which methods there are, what they take and give. kubectl looks for the parameter
 * dryRun of a kind's patch.
 */
#include "local/openapi_private.h"

struct parameter {
        const char *name, *type;
};

/* A NULL name ends a list. */
static const struct parameter READ[] = {{"resourceVersion", "string"}, {0}};
static const struct parameter WRITE[] = {{"dryRun", "string"}, {"fieldManager", "string"}, {0}};
static const struct parameter PATCH[] = {
        {"dryRun", "string"}, {"fieldManager", "string"}, {"force", "boolean"}, {0}};
static const struct parameter DELETE[] = {{"dryRun", "string"},
                                          {"gracePeriodSeconds", "integer"},
                                          {"orphanDependents", "boolean"},
                                          {"propagationPolicy", "string"},
                                          {0}};
static const struct parameter DELETE_LIST[] = {
        {"continue", "string"},          {"dryRun", "string"},
        {"fieldSelector", "string"},     {"gracePeriodSeconds", "integer"},
        {"labelSelector", "string"},     {"limit", "integer"},
        {"orphanDependents", "boolean"}, {"propagationPolicy", "string"},
        {"resourceVersion", "string"},   {"resourceVersionMatch", "string"},
        {"timeoutSeconds", "integer"},   {0}};
static const struct parameter LIST[] = {{"allowWatchBookmarks", "boolean"},
                                        {"continue", "string"},
                                        {"fieldSelector", "string"},
                                        {"labelSelector", "string"},
                                        {"limit", "integer"},
                                        {"resourceVersion", "string"},
                                        {"resourceVersionMatch", "string"},
                                        {"timeoutSeconds", "integer"},
                                        {"watch", "boolean"},
                                        {0}};
static const struct parameter LOG[] = {{"container", "string"},     {"follow", "boolean"},
                                       {"limitBytes", "integer"},   {"previous", "boolean"},
                                       {"sinceSeconds", "integer"}, {"tailLines", "integer"},
                                       {"timestamps", "boolean"},   {0}};

enum place { COLLECTION, EVERYWHERE /* over all namespaces */, ITEM, SUBRESOURCE };
enum content { NOTHING, OBJECT, OBJECT_LIST, STATUS, PATCH_BODY, OPTIONS, TEXT };

static const struct operation {
        enum place place;
        const char *sub; /* NULL: every subresource but those that are named here */
        unsigned verb;
        const char *method, *action, *id;
        const struct parameter *query;
        enum content takes, gives;
        bool creates;
} OPERATIONS[] = {
        {COLLECTION, NULL, VERB_LIST, "get", "list", "list", LIST, NOTHING, OBJECT_LIST, false},
        {COLLECTION, NULL, VERB_CREATE, "post", "post", "create", WRITE, OBJECT, OBJECT, true},
        {COLLECTION, NULL, VERB_DELETECOLLECTION, "delete", "deletecollection", "delete", DELETE_LIST,
         OPTIONS, STATUS, false},
        {EVERYWHERE, NULL, VERB_LIST, "get", "list", "list", LIST, NOTHING, OBJECT_LIST, false},
        {ITEM, NULL, VERB_GET, "get", "get", "read", READ, NOTHING, OBJECT, false},
        {ITEM, NULL, VERB_UPDATE, "put", "put", "replace", WRITE, OBJECT, OBJECT, true},
        {ITEM, NULL, VERB_DELETE, "delete", "delete", "delete", DELETE, OPTIONS, STATUS, false},
        {ITEM, NULL, VERB_PATCH, "patch", "patch", "patch", PATCH, PATCH_BODY, OBJECT, false},
        {SUBRESOURCE, "log", VERB_GET, "get", "get", "read", LOG, NOTHING, TEXT, false},
        {SUBRESOURCE, "binding", VERB_CREATE, "post", "post", "create", WRITE, OBJECT, OBJECT, true},
        {SUBRESOURCE, "token", VERB_CREATE, "post", "post", "create", WRITE, OBJECT, OBJECT, true},
        {SUBRESOURCE, "finalize", VERB_UPDATE, "put", "put", "replace", WRITE, OBJECT, OBJECT, true},
        {SUBRESOURCE, NULL, VERB_GET, "get", "get", "read", READ, NOTHING, OBJECT, false},
        {SUBRESOURCE, NULL, VERB_UPDATE, "put", "put", "replace", WRITE, OBJECT, OBJECT, true},
        {SUBRESOURCE, NULL, VERB_PATCH, "patch", "patch", "patch", PATCH, PATCH_BODY, OBJECT, false},
};

/* Subresources that send and receive another kind. */
static const struct kind {
        const char *sub, *group, *version, *kind, *definition;
} OTHER_KINDS[] = {
        {"binding", "", "v1", "Binding", "io.k8s.api.core.v1.Binding"},
        {"token", "authentication.k8s.io", "v1", "TokenRequest", "io.k8s.api.authentication.v1.TokenRequest"},
};

static const struct kind *other_kind(const char *sub)
{
        for (size_t i = 0; i < ARRAY_LEN(OTHER_KINDS); i++)
                if (streq(OTHER_KINDS[i].sub, sub))
                        return &OTHER_KINDS[i];
        return NULL;
}

/* "RbacAuthorization" for rbac.authorization.k8s.io, "Core" for the core group; the version alike. */
static const char *camel(struct str text, const char *otherwise, struct arena *a)
{
        const char *out = "";

        if (str_has_suffix(text, STR(".k8s.io")))
                text.n -= strlen(".k8s.io");
        if (text.n == 0)
                return otherwise;
        while (text.n) {
                struct str part = str_split(&text, '.');

                if (part.n)
                        out = arena_printf(a, "%s%c%.*s", out,
                                           part.p[0] >= 'a' && part.p[0] <= 'z' ? part.p[0] - 32 : part.p[0],
                                           (int)part.n - 1, part.p + 1);
        }
        return out;
}

static const char *operation_id(const struct api_type *t, const struct operation *op, const char *sub,
                                struct arena *a)
{
        return arena_printf(
                a, "%s%s%s%s%s%s%s%s", op->id, camel(str_of(t->kube.group), "Core", a),
                camel(str_of(t->kube.version), "", a), op->verb == VERB_DELETECOLLECTION ? "Collection" : "",
                t->kube.namespaced && op->place != EVERYWHERE ? "Namespaced" : "", t->kube.kind,
                camel(str_of(sub ? sub : ""), "", a), op->place == EVERYWHERE ? "ForAllNamespaces" : "");
}

static struct json *reference(const char *definition, struct arena *a)
{
        return json_build(a, "{'$ref': '#/definitions/%s'}", definition);
}

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* NULL: nothing. */
static struct json *content_schema(const struct api_type *t, enum content content, const char *sub,
                                   struct arena *a)
{
        const struct kind *other = other_kind(sub);

        switch (content) {
        case OBJECT:
                return reference(other ? other->definition : openapi_name(t, t->kube.kind, a), a);
        case OBJECT_LIST:
                return reference(openapi_name(t, t->list_kind, a), a);
        case STATUS:
                return reference(META "Status", a);
        case PATCH_BODY:
                return reference(META "Patch", a);
        case OPTIONS:
                return reference(META "DeleteOptions", a);
        case TEXT:
                return json_build(a, "{'type': 'string'}");
        default:
                return NULL;
        }
}

/* Some are told of built-in types only, some of custom resources only. */
static bool offers(const struct api_type *t, const struct parameter *p)
{
        if (t->crd)
                return !streq(p->name, "force");
        return !streq(p->name, "resourceVersion") || p != READ;
}

static struct json *parameters(const struct api_type *t, const struct operation *op, const char *sub,
                               struct arena *a)
{
        struct json *schema = content_schema(t, op->takes, sub, a), *list = json_array(a);

        if (schema)
                json_append(list,
                            json_build(a, "{'name': 'body', 'in': 'body', 'required': %p, 'schema': %p}",
                                       (void *)(op->takes == OPTIONS ? NULL : json_truth(a, true)),
                                       (void *)schema));
        for (const struct parameter *p = op->query; p->name; p++)
                if (offers(t, p))
                        json_append(list,
                                    json_build(a,
                                               "{'uniqueItems': %p, 'type': %s, 'name': %s, 'in': 'query'}",
                                               (void *)json_truth(a, true), p->type, p->name));
        return list;
}

static struct json *responses(const struct api_type *t, const struct operation *op, const char *sub,
                              struct arena *a)
{
        struct json *out = json_object(a);

        json_set(a, out, "200",
                 json_build(a, "{'description': 'OK', 'schema': %p}",
                            (void *)content_schema(t, op->gives, sub, a)));
        if (op->creates)
                json_set(a, out, "201",
                         json_build(a, "{'description': 'Created', 'schema': %p}",
                                    (void *)content_schema(t, op->gives, sub, a)));
        json_set(a, out, "401", json_build(a, "{'description': 'Unauthorized'}"));
        return out;
}

static struct json *consumes(const struct api_type *t, const struct operation *op, struct arena *a)
{
        if (op->takes != PATCH_BODY)
                return t->crd ? json_build(a, "['application/json', 'application/yaml']")
                              : json_build(a, "['*/*']");
        if (t->crd)
                return json_build(a, "['application/json-patch+json', 'application/merge-patch+json',"
                                     " 'application/apply-patch+yaml']");
        return json_build(a, "['application/json-patch+json', 'application/merge-patch+json',"
                             " 'application/strategic-merge-patch+json', 'application/apply-patch+yaml']");
}

static struct json *operation(const struct api_type *t, const struct operation *op, const char *sub,
                              struct arena *a)
{
        const struct kind *other = other_kind(sub);
        struct json *gvk = other ? openapi_gvk(other->group, other->version, other->kind, a)
                                 : openapi_gvk(t->kube.group, t->kube.version, t->kube.kind, a);

        return json_build(a,
                          "{'consumes': %p, 'produces': [%s], 'schemes': ['https'], 'operationId': %s,"
                          " 'parameters': %p, 'responses': %p, 'x-kubernetes-action': %s,"
                          " 'x-kubernetes-group-version-kind': %p}",
                          (void *)consumes(t, op, a), op->gives == TEXT ? "text/plain" : "application/json",
                          operation_id(t, op, sub, a), (void *)parameters(t, op, sub, a),
                          (void *)responses(t, op, sub, a), op->action, (void *)gvk);
}

static struct json *path_parameter(const char *name, struct arena *a)
{
        return json_build(a,
                          "{'uniqueItems': %p, 'type': 'string', 'name': %s, 'in': 'path', 'required': %p}",
                          (void *)json_truth(a, true), name, (void *)json_truth(a, true));
}

static const char *path_of(const struct api_type *t, enum place place, const char *sub, struct arena *a)
{
        const char *root = t->kube.group[0] ? arena_printf(a, "/apis/%s", t->kube.group) : "/api";
        bool inside = t->kube.namespaced && place != EVERYWHERE;

        return arena_printf(a, "%s/%s%s/%s%s%s%s", root, t->kube.version,
                            inside ? "/namespaces/{namespace}" : "", t->kube.plural,
                            place >= ITEM ? "/{name}" : "", sub ? "/" : "", sub ? sub : "");
}

/* Whether an operation of the table is one of subresource SUB (NULL: of the object itself). */
static bool belongs(const struct operation *op, enum place place, const char *sub)
{
        bool is_named = streq(sub, "log") || streq(sub, "binding") || streq(sub, "token") ||
                        streq(sub, "finalize");

        if (op->place != place)
                return false;
        return place != SUBRESOURCE || (is_named ? streq(op->sub, sub) : !op->sub);
}

static void add_path(const struct api_type *t, enum place place, const char *sub, struct json *paths,
                     struct arena *a)
{
        struct json *item = json_object(a), *list;

        for (size_t i = 0; i < ARRAY_LEN(OPERATIONS); i++) {
                const struct operation *op = &OPERATIONS[i];

                if (belongs(op, place, sub) && (place == SUBRESOURCE || (t->verbs & op->verb)))
                        json_set(a, item, op->method, operation(t, op, sub, a));
        }
        if (!json_len(item))
                return;
        list = json_set(a, item, "parameters", json_array(a));
        if (place >= ITEM)
                json_append(list, path_parameter("name", a));
        if (t->kube.namespaced && place != EVERYWHERE)
                json_append(list, path_parameter("namespace", a));
        json_append(list,
                    json_build(a, "{'uniqueItems': %p, 'type': 'string', 'name': 'pretty', 'in': 'query'}",
                               (void *)json_truth(a, true)));
        json_set(a, paths, path_of(t, place, sub, a), item);
}

struct json *openapi_paths(const struct served *s, struct arena *a)
{
        struct json *paths = json_object(a);

        for (size_t i = 0; i < s->n; i++) {
                const struct api_type *t = s->types[i];

                add_path(t, COLLECTION, NULL, paths, a);
                if (t->kube.namespaced)
                        add_path(t, EVERYWHERE, NULL, paths, a);
                add_path(t, ITEM, NULL, paths, a);
                for (const char *const *sub = t->subresources; sub && *sub; sub++)
                        if (!streq(*sub, "scale"))
                                add_path(t, SUBRESOURCE, *sub, paths, a);
        }
        return paths;
}
