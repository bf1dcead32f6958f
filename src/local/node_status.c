/*
 * A kubelet's PodStatus, from what the supervisor says. Pure.
 */
#include "local/node_private.h"

static const usec_t FIRST_DELAY = 10 * USEC_PER_SEC, LONGEST_DELAY = 300 * USEC_PER_SEC;
enum { DELAYS_MAX = 16, KILLED = 137 };

usec_t restart_delay(unsigned n)
{
        if (n < 2)
                return 0;
        return n > DELAYS_MAX ? LONGEST_DELAY : MIN(FIRST_DELAY << (n - 2), LONGEST_DELAY);
}

bool state_is_final(const struct json *state)
{
        return json_bool(state, "final", false);
}

static struct json *time_json(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return json_string(a, time_format(when, text));
}

void state_mark_lost(struct json *state, usec_t now, struct arena *a)
{
        json_foreach (c, json_at(state, "containers")) {
                const struct json *running = json_at(json_at(c, "state"), "running");

                if (!running)
                        continue;
                json_set(a, c, "state",
                         json_build(a,
                                    "{'terminated': {'exitCode': %d, 'reason': 'ContainerStatusUnknown', "
                                    "'message': 'The container could not be located when the pod was "
                                    "terminated', "
                                    "'startedAt': %p, 'finishedAt': %p, 'containerID': %p}}",
                                    KILLED, (void *)json_string(a, json_str(running, "startedAt")),
                                    (void *)time_json(a, now), (void *)json_string(a, json_str(c, "id"))));
        }
        json_set(a, state, "final", json_truth(a, true));
        json_set(a, state, "reason", json_string(a, "NodeLost"));
        json_set(a, state, "message",
                 json_string(
                         a,
                         "The pod's supervisor was killed or the machine restarted; what was left of the pod "
                         "was ended"));
}

/* ---- containers */

static const struct json *state_of(const struct pod_status_input *in, const char *name)
{
        return json_find_named(json_at(in->state, "containers"), name);
}

static struct json *default_waiting(const struct pod_status_input *in, const char *name, struct arena *a)
{
        bool inits = json_len(json_at(json_at(in->pod, "spec"), "initContainers")) > 0;
        const char *usual = inits ? "PodInitializing" : "ContainerCreating";

        if (in->waiting_reason && (!in->waiting_container || streq(in->waiting_container, name)))
                return json_build(a, "{'waiting': {'reason': %s, 'message': %p}}", in->waiting_reason,
                                  (void *)json_string(a, in->waiting_message));
        return json_build(a, "{'waiting': {'reason': %s}}", usual);
}

static bool exited_well(const struct json *state)
{
        return json_int(json_at(state, "terminated"), "exitCode", 1) == 0;
}

static struct json *container_status(const struct pod_status_input *in, const struct json *spec, bool init,
                                     struct arena *a)
{
        const char *name = json_str_or(spec, "name", ""), *image = json_str_or(spec, "image", "");
        const struct json *known = state_of(in, name), *state = json_at(known, "state");
        const struct json *last = json_at(known, "last");
        bool running = json_at(state, "running") != NULL;

        return json_build(
                a,
                "{'name': %s, 'state': %p, 'lastState': %p, 'ready': %p, 'restartCount': %lld, 'image': %s, "
                "'imageID': '', 'containerID': %p, 'started': %p}",
                name, (void *)(state ? json_copy(a, state) : default_waiting(in, name, a)),
                (void *)(last ? json_copy(a, last) : json_object(a)),
                (void *)json_truth(a, init ? exited_well(state) : running),
                (long long)json_int(known, "restarts", 0), image,
                (void *)json_string(a, json_str(known, "id")),
                (void *)(init ? NULL : json_truth(a, running)));
}

static struct json *container_statuses(const struct pod_status_input *in, const char *list, bool init,
                                       struct arena *a)
{
        struct json *statuses = json_array(a);

        json_foreach (c, json_at(json_at(in->pod, "spec"), list))
                json_append(statuses, container_status(in, c, init, a));
        return json_len(statuses) ? statuses : NULL;
}

/* ---- the phase */

static const char *final_phase(const struct pod_status_input *in, const struct json *statuses,
                               const struct json *inits)
{
        if (in->failed_reason || json_str(in->state, "reason"))
                return "Failed";
        json_foreach (c, inits)
                if (!exited_well(json_at(c, "state")))
                        return "Failed";
        json_foreach (c, statuses)
                if (!exited_well(json_at(c, "state")))
                        return "Failed";
        return "Succeeded";
}

static const char *phase_of(const struct pod_status_input *in, const struct json *statuses,
                            const struct json *inits)
{
        if (in->failed_reason || state_is_final(in->state))
                return final_phase(in, statuses, inits);
        json_foreach (c, inits)
                if (!exited_well(json_at(c, "state")))
                        return "Pending";
        json_foreach (c, statuses)
                if (json_at(json_at(c, "state"), "waiting") &&
                    !json_at(json_at(c, "lastState"), "terminated"))
                        return "Pending";
        return "Running";
}

/* ---- conditions */

struct condition {
        const char *type, *reason, *message;
        bool truth;
};

static struct json *condition_json(const struct pod_status_input *in, const struct condition *c,
                                   struct arena *a)
{
        const char *status = c->truth ? "True" : "False", *since = NULL;

        json_foreach (old, json_at(json_at(in->pod, "status"), "conditions"))
                if (streq(json_str(old, "type"), c->type) && streq(json_str(old, "status"), status))
                        since = json_str(old, "lastTransitionTime");
        return json_build(
                a,
                "{'type': %s, 'status': %s, 'lastProbeTime': null, 'lastTransitionTime': %p, 'reason': "
                "%p, 'message': %p}",
                c->type, status, (void *)(since ? json_string(a, since) : time_json(a, in->now)),
                (void *)json_string(a, c->reason), (void *)json_string(a, c->message));
}

/* "containers with unready status: [a b]"; NULL: there are none. */
static const char *names_not(const struct json *statuses, const char *what, struct arena *a)
{
        const char *names = "";

        json_foreach (c, statuses)
                if (!json_bool(c, "ready", false))
                        names = arena_printf(a, "%s%s%s", names, *names ? " " : "",
                                             json_str_or(c, "name", ""));
        return *names ? arena_printf(a, "containers with %s status: [%s]", what, names) : NULL;
}

static struct json *conditions_of(const struct pod_status_input *in, const char *phase,
                                  const struct json *statuses, const struct json *inits, struct arena *a)
{
        const char *incomplete = names_not(inits, "incomplete", a);
        const char *unready = names_not(statuses, "unready", a);
        bool done = streq(phase, "Succeeded");
        struct json *list = json_array(a);
        struct condition c[] = {
                {"Initialized", NULL, NULL, true},
                {"Ready", NULL, NULL, true},
                {"ContainersReady", NULL, NULL, true},
                {"PodScheduled", NULL, NULL, true},
        };

        if (done)
                c[0].reason = "PodCompleted";
        else if (incomplete)
                c[0] = (struct condition){"Initialized", "ContainersNotInitialized", incomplete, false};
        for (size_t i = 1; i <= 2; i++)
                if (done)
                        c[i] = (struct condition){c[i].type, "PodCompleted", NULL, false};
                else if (unready || in->failed_reason)
                        c[i] = (struct condition){c[i].type, "ContainersNotReady", unready, false};
        for (size_t i = 0; i < ARRAY_LEN(c); i++)
                json_append(list, condition_json(in, &c[i], a));
        return list;
}

/* ---- the whole */

static const char *start_time(const struct pod_status_input *in, struct arena *a)
{
        const char *told = json_str(json_at(in->pod, "status"), "startTime");
        char text[TIME_TEXT_MAX];

        return told ? told : json_str_or(in->state, "startTime", arena_strdup(a, time_format(in->now, text)));
}

struct json *pod_status(const struct pod_status_input *in, struct arena *a)
{
        struct json *inits = container_statuses(in, "initContainers", true, a);
        struct json *statuses = container_statuses(in, "containers", false, a);
        const char *phase = phase_of(in, statuses, inits);
        const char *reason = in->failed_reason ? in->failed_reason : json_str(in->state, "reason");
        const char *message = in->failed_reason ? in->failed_message : json_str(in->state, "message");

        return json_build(
                a,
                "{'phase': %s, 'conditions': %p, 'reason': %p, 'message': %p, 'hostIP': %s, 'podIP': %s, "
                "'podIPs': [{'ip': %s}], 'startTime': %s, 'initContainerStatuses': %p, "
                "'containerStatuses': %p}",
                phase, (void *)conditions_of(in, phase, statuses, inits, a), (void *)json_string(a, reason),
                (void *)json_string(a, message), in->host_ip, in->host_ip, in->host_ip, start_time(in, a),
                (void *)inits, (void *)statuses);
}
