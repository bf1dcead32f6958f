/*
 * The table of built-in resources, as Kubernetes 1.20 serves them.
 */
#include "local/types.h"

#include <openssl/sha.h>

#include "local/strategy.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

enum {
        NO_COLLECTION = VERB_ALL & ~VERB_DELETECOLLECTION,
        REVIEW = VERB_CREATE,
};

#define CORE  "", "v1"
#define RBAC  "rbac.authorization.k8s.io", "v1"
#define AUTHZ "authorization.k8s.io", "v1"

/* What a row does not say is filled in by types_builtin(): lists, shapes, strategies, has_status. */
static const struct row {
        struct api_type type;
        const char *definition; /* package of the kind's definition */
} ROWS[] = {
        {.type = {.kube = {CORE, "configmaps", "ConfigMap", true},
                  .store = "configmaps",
                  .short_names = LIST("cm"),
                  .storage_hash = "qFsyl6wFWjQ=",
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "events", "Event", true},
                  .store = "events",
                  .short_names = LIST("ev"),
                  .storage_hash = "r2yiGXH7wu8=",
                  .create_on_update = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "namespaces", "Namespace", false},
                  .store = "namespaces",
                  .short_names = LIST("ns"),
                  .subresources = LIST("finalize", "status"),
                  .storage_hash = "Q3oi5N2YM8M=",
                  .name = NAME_LABEL,
                  .verbs = NO_COLLECTION},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "nodes", "Node", false},
                  .store = "nodes",
                  .short_names = LIST("no"),
                  .subresources = LIST("status"),
                  .storage_hash = "XwShjMxG9Fs=",
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "persistentvolumeclaims", "PersistentVolumeClaim", true},
                  .store = "persistentvolumeclaims",
                  .short_names = LIST("pvc"),
                  .subresources = LIST("status"),
                  .storage_hash = "QWTyNDq0dC4=",
                  .returns_deleted = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "pods", "Pod", true},
                  .store = "pods",
                  .short_names = LIST("po"),
                  .categories = LIST("all"),
                  .subresources = LIST("binding", "log", "status"),
                  .storage_hash = "xPOwRZ+Yhw8=",
                  .graceful = true,
                  .returns_deleted = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "resourcequotas", "ResourceQuota", true},
                  .store = "resourcequotas",
                  .short_names = LIST("quota"),
                  .subresources = LIST("status"),
                  .storage_hash = "8uhSgffRX6w=",
                  .returns_deleted = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "secrets", "Secret", true},
                  .store = "secrets",
                  .storage_hash = "S6u1pOWzb84=",
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "serviceaccounts", "ServiceAccount", true},
                  .store = "serviceaccounts",
                  .short_names = LIST("sa"),
                  .subresources = LIST("token"),
                  .storage_hash = "pbx9ZvyFpBE=",
                  .returns_deleted = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {CORE, "services", "Service", true},
                  .store = "services",
                  .short_names = LIST("svc"),
                  .categories = LIST("all"),
                  .subresources = LIST("status"),
                  .storage_hash = "0/CO1lhkEBI=",
                  .update_needs_rev = true,
                  .name = NAME_LABEL,
                  .verbs = NO_COLLECTION},
         .definition = "io.k8s.api.core.v1."},
        {.type = {.kube = {"batch", "v1", "jobs", "Job", true},
                  .store = "jobs.batch",
                  .categories = LIST("all"),
                  .subresources = LIST("status"),
                  .storage_hash = "mudhfqk/qZY=",
                  .orphans = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.batch.v1."},
        {.type = {.kube = {"coordination.k8s.io", "v1", "leases", "Lease", true},
                  .store = "leases.coordination.k8s.io",
                  .storage_hash = "/sY7hl8ol1U=",
                  .create_on_update = true,
                  .update_needs_rev = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.coordination.v1."},
        {.type = {.kube = {"events.k8s.io", "v1", "events", "Event", true},
                  .store = "events",
                  .to_stored = event_to_stored,
                  .from_stored = event_from_stored,
                  .stored_version = "v1",
                  .short_names = LIST("ev"),
                  .storage_hash = "r2yiGXH7wu8=",
                  .create_on_update = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.events.v1."},
        {.type = {.kube = {RBAC, "clusterrolebindings", "ClusterRoleBinding", false},
                  .store = "clusterrolebindings.rbac.authorization.k8s.io",
                  .storage_hash = "48tpQ8gZHFc=",
                  .create_on_update = true,
                  .path_name = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.rbac.v1."},
        {.type = {.kube = {RBAC, "clusterroles", "ClusterRole", false},
                  .store = "clusterroles.rbac.authorization.k8s.io",
                  .storage_hash = "bYE5ZWDrJ44=",
                  .create_on_update = true,
                  .path_name = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.rbac.v1."},
        {.type = {.kube = {RBAC, "rolebindings", "RoleBinding", true},
                  .store = "rolebindings.rbac.authorization.k8s.io",
                  .storage_hash = "eGsCzGH6b1g=",
                  .create_on_update = true,
                  .path_name = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.rbac.v1."},
        {.type = {.kube = {RBAC, "roles", "Role", true},
                  .store = "roles.rbac.authorization.k8s.io",
                  .storage_hash = "7FuwZcIIItM=",
                  .create_on_update = true,
                  .path_name = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.api.rbac.v1."},
        {.type = {.kube = {"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                           "CustomResourceDefinition", false},
                  .store = "customresourcedefinitions.apiextensions.k8s.io",
                  .short_names = LIST("crd", "crds"),
                  .categories = LIST("api-extensions"),
                  .subresources = LIST("status"),
                  .storage_hash = "jfWCUB31mvA=",
                  .has_generation = true,
                  .update_needs_rev = true,
                  .verbs = VERB_ALL},
         .definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."},
        {.type = {.kube = {AUTHZ, "selfsubjectaccessreviews", "SelfSubjectAccessReview", false},
                  .store = "selfsubjectaccessreviews.authorization.k8s.io",
                  .verbs = REVIEW},
         .definition = "io.k8s.api.authorization.v1."},
        {.type = {.kube = {AUTHZ, "selfsubjectrulesreviews", "SelfSubjectRulesReview", false},
                  .store = "selfsubjectrulesreviews.authorization.k8s.io",
                  .verbs = REVIEW},
         .definition = "io.k8s.api.authorization.v1."},
        {.type = {.kube = {AUTHZ, "subjectaccessreviews", "SubjectAccessReview", false},
                  .store = "subjectaccessreviews.authorization.k8s.io",
                  .verbs = REVIEW},
         .definition = "io.k8s.api.authorization.v1."},
};

struct types {
        struct arena arena;
        struct shapes *shapes;
        struct api_type list[ARRAY_LEN(ROWS)];
};

static bool has(const char *const *list, const char *word)
{
        for (; list && *list; list++)
                if (streq(*list, word))
                        return true;
        return false;
}

static void complete(struct types *t, const struct row *row, struct api_type *type)
{
        const char *name = arena_join(&t->arena, row->definition, row->type.kube.kind, "");

        *type = row->type;
        type->kube.has_status = has(type->subresources, "status");
        type->singular = "";
        type->list_kind = arena_join(&t->arena, type->kube.kind, "List", "");
        type->shape = shapes_find(t->shapes, name);
        type->strategy = strategy_of(type->store);
        strategy_columns(type->store, &type->columns, &type->n_columns);
        if (!type->storage_hash)
                type->storage_hash = "";
        if (!type->shape) /* the table of types comes with the program, and a unit test reads all of it */
                abort();
}

struct types *types_builtin(void)
{
        struct types *t = xcalloc(1, sizeof(*t));

        t->shapes = shapes_builtin();
        for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
                complete(t, &ROWS[i], &t->list[i]);
        return t;
}

void types_free(struct types *t)
{
        if (!t)
                return;
        shapes_free(t->shapes);
        arena_done(&t->arena);
        free(t);
}

const struct shapes *types_shapes(const struct types *t)
{
        return t->shapes;
}

size_t types_count(const struct types *t)
{
        return ARRAY_LEN(t->list);
}

struct api_type *types_get(struct types *t, size_t i)
{
        return &t->list[i];
}

const char *types_storage_hash(const char *group, const char *version, const char *kind, struct arena *a)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(64);
        unsigned char digest[SHA256_DIGEST_LENGTH];
        const char *text = arena_printf(a, "%s/%s/%s", group, version, kind);

        SHA256((const unsigned char *)text, strlen(text), digest);
        buf_add_base64(&out, str_n((const char *)digest, 8));
        return arena_strndup(a, out.p, out.n);
}
