#include "local/strategy_internal.h"

static void defaults(const struct strategy_context *c, struct json *node)
{
        struct json *status = child_object(c->a, node, "status"), *capacity = json_at(status, "capacity");

        if (json_len(capacity) > 0 && json_len(json_at(status, "allocatable")) == 0)
                json_set(c->a, status, "allocatable", json_copy(c->a, capacity));
}

static void check_taints(struct causes *c, const struct json *taints)
{
        static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
        struct json *seen = json_object(c->a);
        size_t i = 0;

        json_foreach (t, taints) {
                const char *here = path_index(c, "metadata.taints", i++), *key = json_str_or(t, "key", "");
                const char *effect = json_str_or(t, "effect", ""), *value = json_str_or(t, "value", "");
                const char *pair = arena_join(c->a, key, "=", effect);

                check_value(c, path_key(c, here, "key"), key, check_qualified);
                check_value(c, path_key(c, here, "value"), value, check_label_value);
                check_enum(c, path_key(c, here, "effect"), effect, effects);
                if (json_at(seen, pair)) {
                        causes_add(c, "FieldValueDuplicate", here,
                                   "Duplicate value: core.Taint{Key:\"%s\", Value:\"%s\", Effect:\"%s\", "
                                   "TimeAdded:<nil>}: taints must be unique by key and effect pair",
                                   key, value, effect);
                        continue;
                }
                json_set(c->a, seen, pair, json_truth(c->a, true));
        }
}

static void check_addresses(struct causes *c, const struct json *addresses)
{
        struct json *seen = json_object(c->a);
        size_t i = 0;

        json_foreach (address, addresses) {
                const char *here = path_index(c, "status.addresses", i++);
                const char *key = arena_join(c->a, json_str_or(address, "type", ""), "/",
                                             json_str_or(address, "address", ""));

                if (json_at(seen, key))
                        causes_add(c, "FieldValueDuplicate", here,
                                   "Duplicate value: core.NodeAddress{Type:\"%s\", Address:\"%s\"}",
                                   json_str_or(address, "type", ""), json_str_or(address, "address", ""));
                json_set(c->a, seen, key, json_truth(c->a, true));
        }
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *node, struct causes *c)
{
        const struct json *spec = json_at(node, "spec"), *was = json_at(old, "spec");
        const char *before = json_str_or(was, "providerID", "");

        check_taints(c, json_at(spec, "taints"));
        if (old)
                check_addresses(c, json_path(node, "status.addresses"));
        if (old && *before && !streq(before, json_str_or(spec, "providerID", "")))
                bad_forbidden(c, "spec.providerID",
                              "node updates may not change providerID except from \"\" to valid");
}

static const char *field(const struct json *node, const char *path, struct arena *a)
{
        if (!streq(path, "spec.unschedulable"))
                return NULL;
        return json_bool(json_at(node, "spec"), "unschedulable", false) ? "true" : "false";
}

const struct strategy STRATEGY_NODE = {
        .defaults = defaults, .validate = validate, .field = field, .row = node_row};
