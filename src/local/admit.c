#include "local/api_internal.h"

/* Kubernetes' own classes; there are no others here. */
static bool has_priority_class(const char *name)
{
        return !*name || streq(name, "system-cluster-critical") || streq(name, "system-node-critical");
}

int admit_pod(struct call *c, const struct json *pod)
{
        const struct json *spec = json_at(pod, "spec");
        const char *account = json_str_or(spec, "serviceAccountName", "default");
        const char *class = json_str_or(spec, "priorityClassName", ""), *name = meta_str(pod, "name");

        if (!store_newest(c->api->store, store_type(c->api->store, "serviceaccounts"), c->ns, account))
                return fail_forbidden(
                        c, name ? name : "", NULL,
                        "error looking up service account %s/%s: serviceaccount \"%s\" not found", c->ns,
                        account, account);
        if (!has_priority_class(class))
                return fail_forbidden(c, name ? name : "", NULL, "no PriorityClass with name %s was found",
                                      class);
        return 0;
}
