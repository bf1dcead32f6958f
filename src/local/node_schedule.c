/*
 * Which pods fit on the one node; the words are the scheduler's.
 */
#include "local/node_private.h"

static const char *no(struct arena *a, const char *why)
{
        return arena_printf(a, "0/1 nodes are available: 1 %s.", why);
}

/* VALUE (NULL: there is none) beside the one number of the requirement. */
static int64_t beyond(const struct json *requirement, const char *value)
{
        int64_t is, limit;

        json_foreach (v, json_at(requirement, "values"))
                if (value && json_cstr(v) && str_to_i64(str_of(value), &is) &&
                    str_to_i64(str_of(json_cstr(v)), &limit))
                        return is > limit ? 1 : is < limit ? -1 : 0;
        return 0;
}

static bool requirement_met(const struct json *requirement, const char *value)
{
        const char *op = json_str_or(requirement, "operator", "");
        bool listed = false;

        json_foreach (v, json_at(requirement, "values"))
                listed |= value && streq(json_cstr(v), value);
        return streq(op, "In")             ? listed
               : streq(op, "NotIn")        ? !listed
               : streq(op, "Exists")       ? value != NULL
               : streq(op, "DoesNotExist") ? !value
               : streq(op, "Gt")           ? beyond(requirement, value) > 0
               : streq(op, "Lt")           ? beyond(requirement, value) < 0
                                           : false;
}

/* All of a term must hold; one without requirements is nobody's. */
static bool term_holds(const struct json *node, const struct json *term)
{
        const struct json *labels = json_at(json_at(node, "metadata"), "labels");
        const struct json *expressions = json_at(term, "matchExpressions"),
                          *fields = json_at(term, "matchFields");

        json_foreach (r, expressions)
                if (!requirement_met(r, json_str(labels, json_str_or(r, "key", ""))))
                        return false;
        json_foreach (r, fields)
                if (!streq(json_str(r, "key"), "metadata.name") ||
                    !requirement_met(r, meta_str(node, "name")))
                        return false;
        return json_len(expressions) + json_len(fields) > 0;
}

static bool labels_match(const struct json *node, const struct json *pod)
{
        const struct json *labels = json_at(json_at(node, "metadata"), "labels"),
                          *spec = json_at(pod, "spec");
        const struct json *required = json_at(json_at(json_at(spec, "affinity"), "nodeAffinity"),
                                              "requiredDuringSchedulingIgnoredDuringExecution");

        json_foreach (want, json_at(spec, "nodeSelector"))
                if (!streq(json_str(labels, want->key), json_cstr(want)))
                        return false;
        json_foreach (term, json_at(required, "nodeSelectorTerms"))
                if (term_holds(node, term))
                        return true;
        return !required;
}

static bool tolerates(const struct json *toleration, const struct json *taint)
{
        const char *op = json_str_or(toleration, "operator", "Equal"), *key = json_str(toleration, "key");
        const char *effect = json_str_or(toleration, "effect", "");

        if (*effect && !streq(effect, json_str(taint, "effect")))
                return false;
        if (key && *key && !streq(key, json_str(taint, "key")))
                return false;
        return streq(op, "Exists") ||
               streq(json_str_or(toleration, "value", ""), json_str_or(taint, "value", ""));
}

static const struct json *untolerated(const struct json *node, const struct json *pod)
{
        json_foreach (taint, json_at(json_at(node, "spec"), "taints")) {
                bool fine = streq(json_str(taint, "effect"), "PreferNoSchedule");

                json_foreach (t, json_at(json_at(pod, "spec"), "tolerations"))
                        fine |= tolerates(t, taint);
                if (!fine)
                        return taint;
        }
        return NULL;
}

static const char *resources_short(const struct json *pod, const struct node_room *room, struct arena *a)
{
        const struct {
                const char *name;
                int64_t left;
        } table[] = {{"cpu", room->cpu}, {"memory", room->memory}, {"nvidia.com/gpu", room->gpus}};
        const char *list = "";

        if (room->pods <= 0)
                list = "1 Too many pods";
        for (size_t i = 0; i < ARRAY_LEN(table); i++) {
                int64_t want = pod_request_milli(pod, table[i].name);

                if (want > 0 && want > table[i].left)
                        list = arena_printf(a, "%s%s1 Insufficient %s", list, *list ? ", " : "",
                                            table[i].name);
        }
        return *list ? arena_printf(a, "0/1 nodes are available: %s.", list) : NULL;
}

const char *schedule_check(const struct json *node, const struct json *pod, const struct node_room *room,
                           struct arena *a)
{
        const struct json *taint;

        if (json_bool(json_at(node, "spec"), "unschedulable", false))
                return no(a, "node(s) were unschedulable");
        taint = untolerated(node, pod);
        if (taint)
                return no(a, arena_printf(a, "node(s) had taint {%s: %s}, that the pod didn't tolerate",
                                          json_str_or(taint, "key", ""), json_str_or(taint, "value", "")));
        if (!labels_match(node, pod))
                return no(a, "node(s) didn't match Pod's node affinity");
        return resources_short(pod, room, a);
}

void room_take(struct node_room *room, const struct json *pod)
{
        room->cpu -= pod_request_milli(pod, "cpu");
        room->memory -= pod_request_milli(pod, "memory");
        room->gpus -= pod_request_milli(pod, "nvidia.com/gpu");
        room->pods--;
}
