#include "kube/type.h"

const struct kube_type KUBE_CONFIGMAP = {"", "v1", "configmaps", "ConfigMap", .namespaced = true};
const struct kube_type KUBE_EVENT = {"events.k8s.io", "v1", "events", "Event", .namespaced = true};
const struct kube_type KUBE_JOB = {"batch", "v1", "jobs", "Job", .namespaced = true, .has_status = true};
const struct kube_type KUBE_LEASE = {"coordination.k8s.io", "v1", "leases", "Lease", .namespaced = true};
const struct kube_type KUBE_NAMESPACE = {"", "v1", "namespaces", "Namespace", .has_status = true};
const struct kube_type KUBE_NODE = {"", "v1", "nodes", "Node", .has_status = true};
const struct kube_type KUBE_POD = {"", "v1", "pods", "Pod", .namespaced = true, .has_status = true};
const struct kube_type KUBE_PVC = {
        "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", .namespaced = true, .has_status = true};
const struct kube_type KUBE_ROLE = {"rbac.authorization.k8s.io", "v1", "roles", "Role", .namespaced = true};
const struct kube_type KUBE_ROLEBINDING = {"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding",
                                           .namespaced = true};
const struct kube_type KUBE_SERVICEACCOUNT = {"", "v1", "serviceaccounts", "ServiceAccount",
                                              .namespaced = true};

static const char *const managed_fields[] = {"object", "metadata", "managedFields", NULL};

const struct json_limits KUBE_WATCHED_LIMITS = {.leave_out = managed_fields};
const struct json_limits KUBE_OBJECT_LIMITS = {.leave_out = managed_fields + 1};

static const char *const resource_version[] = {"metadata", "resourceVersion", NULL};

const struct json_limits KUBE_VERSION_LIMITS = {.leave_out = managed_fields + 1,
                                                .stop_after = resource_version};

const char *kube_api_version(const struct kube_type *type, struct arena *a)
{
        if (!type->group[0])
                return type->version;
        return arena_join(a, type->group, "/", type->version);
}

/* A segment that is "." or ".." would climb out of its place, and percent-encoding leaves dots alone. */
static void add_segment(struct buf *out, const char *segment)
{
        buf_addc(out, '/');
        if (streq(segment, "."))
                buf_adds(out, "%2E");
        else if (streq(segment, ".."))
                buf_adds(out, "%2E%2E");
        else
                buf_add_urlencoded(out, str_of(segment));
}

void kube_path(struct buf *out, const struct kube_type *type, const char *ns, const char *name,
               const char *sub)
{
        if (type->group[0]) {
                buf_adds(out, "/apis");
                add_segment(out, type->group);
        } else {
                buf_adds(out, "/api");
        }
        add_segment(out, type->version);
        if (type->namespaced && ns && ns[0]) {
                buf_adds(out, "/namespaces");
                add_segment(out, ns);
        }
        add_segment(out, type->plural);
        if (name)
                add_segment(out, name);
        if (sub)
                add_segment(out, sub);
}

static bool is_decimal(struct str s)
{
        if (s.n == 0 || (s.n > 1 && s.p[0] == '0'))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
        return true;
}

int rv_cmp(struct str a, struct str b)
{
        if (a.n != b.n && is_decimal(a) && is_decimal(b))
                return a.n > b.n ? 1 : -1;
        return str_cmp(a, b);
}

const char *meta_str(const struct json *object, const char *name)
{
        return json_str(json_at(object, "metadata"), name);
}

const char *meta_controller_uid(const struct json *object)
{
        const struct json *owners = json_at(json_at(object, "metadata"), "ownerReferences");

        json_foreach (owner, owners)
                if (json_bool(owner, "controller", false))
                        return json_str(owner, "uid");
        return NULL;
}
