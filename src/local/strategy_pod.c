#include "local/strategy_internal.h"

enum { TOLERATION_SECONDS = 300 };

static void defaults(const struct strategy_context *c, struct json *pod)
{
        struct json *spec = child_object(c->a, pod, "spec"), *status = json_at(pod, "status");
        const char *ip = json_str(status, "podIP");

        podspec_defaults(c->a, spec);
        podspec_requests(c->a, spec);
        default_bool(c->a, spec, "enableServiceLinks", true);
        /* The first of the addresses is the address. */
        if (ip && json_len(json_at(status, "podIPs")) == 0)
                json_set(c->a, status, "podIPs", json_build(c->a, "[{'ip': %s}]", ip));
        else if (!ip && json_len(json_at(status, "podIPs")) > 0)
                json_set(c->a, status, "podIP",
                         json_string(c->a, json_str(json_index(json_at(status, "podIPs"), 0), "ip")));
}

/* ---- what admission adds */

static bool tolerates(const struct json *spec, const char *taint)
{
        json_foreach (t, json_at(spec, "tolerations")) {
                const char *key = json_str_or(t, "key", ""), *effect = json_str_or(t, "effect", "");

                if ((!*key || streq(key, taint)) && (!*effect || streq(effect, "NoExecute")))
                        return true;
        }
        return false;
}

/* A node that does not answer keeps its pods for five minutes. */
static void add_tolerations(struct arena *a, struct json *spec)
{
        static const char *const taints[] = {"node.kubernetes.io/not-ready",
                                             "node.kubernetes.io/unreachable"};
        bool missing[ARRAY_LEN(taints)];

        for (size_t i = 0; i < ARRAY_LEN(taints); i++)
                missing[i] = !tolerates(spec, taints[i]);
        for (size_t i = 0; i < ARRAY_LEN(taints); i++) {
                if (!missing[i])
                        continue;
                if (!json_at(spec, "tolerations"))
                        json_set(a, spec, "tolerations", json_array(a));
                json_append(json_at(spec, "tolerations"),
                            json_build(a,
                                       "{'key': %s, 'operator': 'Exists', 'effect': 'NoExecute', "
                                       "'tolerationSeconds': %d}",
                                       taints[i], TOLERATION_SECONDS));
        }
}

static const struct {
        const char *name;
        int64_t value;
} PRIORITIES[] = {{"system-cluster-critical", 2000000000}, {"system-node-critical", 2000001000}};

static void set_priority(struct arena *a, struct json *spec, const struct json *old)
{
        const char *name = json_str_or(spec, "priorityClassName", "");
        int64_t priority = 0;

        if (old && json_at(old, "priority") && !json_at(spec, "priority"))
                json_set(a, spec, "priority", json_copy(a, json_at(old, "priority")));
        if (old && json_at(old, "preemptionPolicy") && !json_at(spec, "preemptionPolicy"))
                json_set(a, spec, "preemptionPolicy", json_copy(a, json_at(old, "preemptionPolicy")));
        if (old)
                return;
        for (size_t i = 0; i < ARRAY_LEN(PRIORITIES); i++)
                if (streq(PRIORITIES[i].name, name))
                        priority = PRIORITIES[i].value;
        default_int(a, spec, "priority", priority);
        default_str(a, spec, "preemptionPolicy", "PreemptLowerPriority");
}

static void prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                    struct json *pod)
{
        struct json *spec = child_object(c->a, pod, "spec");

        if (*sub)
                return;
        if (!old) {
                default_str(c->a, spec, "serviceAccountName", "default");
                json_set(c->a, spec, "serviceAccount",
                         json_string(c->a, json_str(spec, "serviceAccountName")));
                json_set(c->a, pod, "status",
                         json_build(c->a, "{'phase': 'Pending', 'qosClass': %s}", pod_qos(spec)));
        }
        add_tolerations(c->a, spec);
        set_priority(c->a, spec, json_at(old, "spec"));
}

/* ---- validation */

static void validate_images(struct causes *c, const char *path, const struct json *containers)
{
        size_t i = 0;

        json_foreach (ctr, containers) {
                const char *image = json_str_or(ctr, "image", "");
                struct str s = str_of(image);

                if (str_trim(s).n != s.n)
                        bad_str(c, path_key(c, path_index(c, path, i), "image"), image,
                                "must not have leading or trailing whitespace");
                i++;
        }
}

static void validate_spec(struct causes *c, const struct json *spec)
{
        podspec_validate(c, "spec", spec);
        validate_images(c, "spec.containers", json_at(spec, "containers"));
        validate_images(c, "spec.initContainers", json_at(spec, "initContainers"));
}

static void validate_deadline(struct causes *c, const struct json *old, const struct json *spec)
{
        static const char path[] = "spec.activeDeadlineSeconds";
        const struct json *value = json_at(spec, "activeDeadlineSeconds");
        int64_t now = json_int(spec, "activeDeadlineSeconds", 0),
                was = json_int(old, "activeDeadlineSeconds", 0);

        if (value && (now < 0 || now > INT32_MAX))
                bad_int(c, path, now, "must be between 0 and 2147483647, inclusive");
        else if (value && json_at(old, "activeDeadlineSeconds") && was < now)
                bad_int(c, path, now,
                        "must be less than or equal to previous value"); /* it may only be shortened */
        else if (!value && json_at(old, "activeDeadlineSeconds"))
                bad_raw(c, path, "\"null\"", "must not update from a positive integer to nil value");
}

static bool same_images(struct causes *c, const char *key, const struct json *old, const struct json *spec)
{
        const struct json *before = json_at(old, key), *now = json_at(spec, key);
        const char *path = path_key(c, "spec", key);
        size_t i = 0;

        if (json_len(before) != json_len(now)) {
                bad_forbidden(c, path, "pod updates may not add or remove containers");
                return false;
        }
        json_foreach (ctr, now) {
                if (!*json_str_or(ctr, "image", ""))
                        bad_required(c, path_key(c, path_index(c, path, i), "image"), "");
                i++;
        }
        validate_images(c, path, now);
        return true;
}

static void validate_tolerations(struct causes *c, const struct json *old, const struct json *spec)
{
        json_foreach (was, json_at(old, "tolerations")) {
                struct json *x = json_copy(c->a, was);
                bool found = false;

                json_remove(x, "tolerationSeconds");
                json_foreach (now, json_at(spec, "tolerations")) {
                        struct json *y = json_copy(c->a, now);

                        json_remove(y, "tolerationSeconds");
                        found |= json_equal(x, y);
                }
                if (!found) {
                        bad_forbidden(c, "spec.tolerations",
                                      "existing toleration can not be modified except its tolerationSeconds");
                        return;
                }
        }
        tolerations_validate(c, "spec.tolerations", json_at(spec, "tolerations"));
}

/* The specs without what may be changed. */
static struct json *fixed_part(struct arena *a, const struct json *spec)
{
        static const char *const lists[] = {"containers", "initContainers"};
        struct json *copy = json_copy(a, spec);

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (ctr, json_at(copy, lists[i]))
                        json_remove(ctr, "image");
        json_remove(copy, "activeDeadlineSeconds");
        json_remove(copy, "tolerations");
        return copy;
}

static void validate_update(struct causes *c, const struct json *old_pod, const struct json *pod)
{
        const struct json *old = json_at(old_pod, "spec"), *spec = json_at(pod, "spec");

        validate_spec(c, spec);
        if (!same_images(c, "containers", old, spec) || !same_images(c, "initContainers", old, spec))
                return;
        validate_deadline(c, old, spec);
        validate_tolerations(c, old, spec);
        if (!json_equal(fixed_part(c->a, old), fixed_part(c->a, spec)))
                bad_forbidden(c, "spec",
                              "pod updates may not change fields other than `spec.containers[*].image`, "
                              "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or "
                              "`spec.tolerations` (only "
                              "additions to existing tolerations)");
}

static const struct json *status_named(const struct json *list, const char *name)
{
        json_foreach (s, list)
                if (streq(json_str(s, "name"), name))
                        return s;
        return NULL;
}

/* A container that has ended and is not started again stays ended. */
static void validate_transitions(struct causes *c, const char *key, const struct json *old,
                                 const struct json *pod)
{
        const char *policy = json_str_or(json_at(pod, "spec"), "restartPolicy", "");
        const char *path = path_key(c, "status", key);
        size_t i = 0;

        if (streq(policy, "Always"))
                return;
        json_foreach (was, json_at(json_at(old, "status"), key)) {
                const struct json *ended = json_path(was, "state.terminated");
                const struct json *now = status_named(json_at(json_at(pod, "status"), key),
                                                      json_str(was, "name"));
                size_t at = i++;

                if (!ended || (json_int(ended, "exitCode", 0) != 0 && streq(policy, "OnFailure")))
                        continue;
                if (now && !json_path(now, "state.terminated"))
                        bad_forbidden(c, path_key(c, path_index(c, path, at), "state"),
                                      "may not be transitioned to non-terminated state");
        }
}

static void validate_status(struct causes *c, const struct json *old, const struct json *pod)
{
        const struct json *status = json_at(pod, "status");
        const char *name = json_str(status, "nominatedNodeName");
        size_t i = 0;

        if (name)
                check_value(c, "status.nominatedNodeName", name, check_subdomain);
        validate_transitions(c, "containerStatuses", old, pod);
        validate_transitions(c, "initContainerStatuses", old, pod);
        json_foreach (ip, json_at(status, "podIPs")) {
                if (!is_ip(json_str_or(ip, "ip", "")))
                        bad_str(c, path_index(c, "status.podIPs", i), json_str_or(ip, "ip", ""),
                                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
                i++;
        }
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *pod, struct causes *c)
{
        if (streq(sub, "status"))
                validate_status(c, old, pod);
        else if (old)
                validate_update(c, old, pod);
        else
                validate_spec(c, json_at(pod, "spec"));
}

static const char *field(const struct json *pod, const char *path, struct arena *a)
{
        static const char *const known[] = {
                "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",       "spec.serviceAccountName",
                "status.phase",  "status.podIP",       "status.nominatedNodeName", NULL};
        const char *value;

        if (!str_in(known, path))
                return NULL;
        value = json_cstr(json_path(pod, path));
        return value ? value : "";
}

const struct strategy STRATEGY_POD = {
        .defaults = defaults,
        .prepare = prepare,
        .validate = validate,
        .field = field,
        .row = pod_row,
};
