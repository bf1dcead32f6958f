/*
 * Which pods fit on the one node; the words are the scheduler's.
 */
#include "local/node_private.h"

static const char *no(struct arena *a, const char *why)
{
        return arena_printf(a, "0/1 nodes are available: 1 %s.", why);
}

static bool labels_match(const struct json *node, const struct json *pod)
{
        const struct json *labels = json_at(json_at(node, "metadata"), "labels");

        json_foreach (want, json_at(json_at(pod, "spec"), "nodeSelector"))
                if (!streq(json_str(labels, want->key), json_cstr(want)))
                        return false;
        return true;
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
