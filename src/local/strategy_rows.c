#include "local/strategy_internal.h"

struct columns pod_columns(void)
{
        static const struct table_column list[] = {
                {"Name", "string", "name", "The object's name.", 0, NULL},
                {"Ready", "string", "", "Containers that are ready, of all.", 0, NULL},
                {"Status", "string", "", "What the pod does, or what is wrong with it.", 0, NULL},
                {"Restarts", "integer", "", "How often its containers were started again.", 0, NULL},
                {"Age", "string", "", "The time since it was made.", 0, NULL},
                {"IP", "string", "", "Its address.", 1, NULL},
                {"Node", "string", "", "The node that runs it.", 1, NULL},
                {"Nominated Node", "string", "", "The node that makes room for it.", 1, NULL},
                {"Readiness Gates", "string", "", "Conditions that hold, of those that must.", 1, NULL},
        };

        return (struct columns){list, ARRAY_LEN(list)};
}

struct summary {
        const char *reason;
        int64_t restarts;
        int ready;
};

static const char *how_it_ended(const char *prefix, const struct json *ended, struct arena *a)
{
        const char *reason = json_str_or(ended, "reason", "");
        long long sig = json_int(ended, "signal", 0);

        if (*reason)
                return arena_join(a, prefix, reason, "");
        return sig ? arena_printf(a, "%sSignal:%lld", prefix, sig)
                   : arena_printf(a, "%sExitCode:%lld", prefix, (long long)json_int(ended, "exitCode", 0));
}

/* Whether an init container has still to end well; if so that is the status. */
static bool initializing(const struct json *pod, struct summary *s, struct arena *a)
{
        size_t i = 0;

        json_foreach (c, json_path(pod, "status.initContainerStatuses")) {
                const struct json *state = json_at(c, "state"), *ended = json_at(state, "terminated");
                const char *waiting = json_str_or(json_at(state, "waiting"), "reason", "");
                size_t at = i++;

                s->restarts += json_int(c, "restartCount", 0);
                if (ended && json_int(ended, "exitCode", 0) == 0)
                        continue;
                if (ended)
                        s->reason = how_it_ended("Init:", ended, a);
                else if (*waiting && !streq(waiting, "PodInitializing"))
                        s->reason = arena_join(a, "Init:", waiting, "");
                else
                        s->reason = arena_printf(a, "Init:%zu/%zu", at,
                                                 json_len(json_path(pod, "spec.initContainers")));
                return true;
        }
        return false;
}

static bool has_condition(const struct json *pod, const char *type)
{
        json_foreach (c, json_path(pod, "status.conditions"))
                if (streq(json_str(c, "type"), type))
                        return streq(json_str(c, "status"), "True");
        return false;
}

/* From the last container to the first: the first one's reason stays. */
static void look_at_containers(const struct json *pod, struct summary *s, struct arena *a)
{
        const struct json *list = json_path(pod, "status.containerStatuses");
        bool running = false;

        s->restarts = 0;
        for (size_t i = json_len(list); i > 0; i--) {
                const struct json *c = json_index(list, i - 1), *state = json_at(c, "state");
                const struct json *ended = json_at(state, "terminated");
                const char *waiting = json_str_or(json_at(state, "waiting"), "reason", "");

                s->restarts += json_int(c, "restartCount", 0);
                if (*waiting) {
                        s->reason = waiting;
                } else if (ended) {
                        s->reason = how_it_ended("", ended, a);
                } else if (json_bool(c, "ready", false) && json_at(state, "running")) {
                        running = true;
                        s->ready++;
                }
        }
        if (streq(s->reason, "Completed") && running)
                s->reason = has_condition(pod, "Ready") ? "Running" : "NotReady";
}

static const char *gates(const struct json *pod, struct arena *a)
{
        const struct json *list = json_path(pod, "spec.readinessGates");
        size_t n = 0;

        if (json_len(list) == 0)
                return "<none>";
        json_foreach (g, list)
                n += has_condition(pod, json_str_or(g, "conditionType", ""));
        return arena_printf(a, "%zu/%zu", n, json_len(list));
}

static const char *or_none(const struct json *object, const char *key)
{
        const char *text = json_str_or(object, key, "");

        return *text ? text : "<none>";
}

struct json *pod_row(const struct strategy_context *c, const struct json *pod)
{
        const struct json *status = json_at(pod, "status"), *spec = json_at(pod, "spec");
        const char *why = json_str_or(status, "reason", "");
        struct summary s = {.reason = *why ? why : json_str_or(status, "phase", "")};

        if (!initializing(pod, &s, c->a))
                look_at_containers(pod, &s, c->a);
        if (meta_str(pod, "deletionTimestamp"))
                s.reason = streq(why, "NodeLost") ? "Unknown" : "Terminating";
        return json_build(c->a, "[%s, '%d/%zu', %s, %lld, %s, %s, %s, %s, %s]", meta_str(pod, "name"),
                          s.ready, json_len(json_at(spec, "containers")), s.reason, (long long)s.restarts,
                          cell_age(c, pod), or_none(json_index(json_at(status, "podIPs"), 0), "ip"),
                          or_none(spec, "nodeName"), or_none(status, "nominatedNodeName"), gates(pod, c->a));
}
