#include "local/strategy_internal.h"

enum { FILE_MODE = 0644, TOKEN_SECONDS = 3600, GRACE_SECONDS = 30, TOLERATION_SECONDS = 300 };

static void handler_defaults(struct arena *a, struct json *handler)
{
        struct json *get = json_at(handler, "httpGet");

        if (!get)
                return;
        default_str(a, get, "path", "/");
        default_str(a, get, "scheme", "HTTP");
}

static void probe_defaults(struct arena *a, struct json *probe)
{
        if (!probe)
                return;
        handler_defaults(a, probe);
        default_int(a, probe, "timeoutSeconds", 1);
        default_int(a, probe, "periodSeconds", 10);
        default_int(a, probe, "successThreshold", 1);
        default_int(a, probe, "failureThreshold", 3);
}

/* The tag "latest" moves, and no tag means it; a digest does not. */
static bool is_latest(const char *image)
{
        const char *slash = strrchr(image, '/'), *tag = strchr(slash ? slash : image, ':');

        if (strchr(image, '@'))
                return false;
        return !tag || streq(tag, ":latest");
}

/* Amounts are kept down to a thousandth. */
static void round_amounts(struct arena *a, struct json *amounts)
{
        json_foreach (m, amounts) {
                struct quantity q;
                quantity_nano rest;

                if (!quantity_of(m, &q))
                        continue;
                rest = q.nano % 1000000;
                if (rest == 0)
                        continue;
                q.nano += rest > 0 ? 1000000 - rest : -rest;
                m->text = quantity_print(&q, a);
                m->len = (uint32_t)strlen(m->text);
        }
}

static void env_defaults(struct arena *a, struct json *list)
{
        json_foreach (e, list) {
                struct json *ref = json_at(json_at(e, "valueFrom"), "fieldRef");

                if (ref)
                        default_str(a, ref, "apiVersion", "v1");
        }
}

static void container_defaults(struct arena *a, struct json *c, bool host_network)
{
        struct json *resources = json_at(c, "resources"), *lifecycle = json_at(c, "lifecycle");

        json_foreach (p, json_at(c, "ports")) {
                default_str(a, p, "protocol", "TCP");
                if (host_network && json_int(p, "containerPort", 0))
                        default_int(a, p, "hostPort", json_int(p, "containerPort", 0));
        }
        env_defaults(a, json_at(c, "env"));
        round_amounts(a, json_at(resources, "limits"));
        round_amounts(a, json_at(resources, "requests"));
        probe_defaults(a, json_at(c, "livenessProbe"));
        probe_defaults(a, json_at(c, "readinessProbe"));
        probe_defaults(a, json_at(c, "startupProbe"));
        handler_defaults(a, json_at(lifecycle, "postStart"));
        handler_defaults(a, json_at(lifecycle, "preStop"));
        default_str(a, c, "terminationMessagePath", "/dev/termination-log");
        default_str(a, c, "terminationMessagePolicy", "File");
        default_str(a, c, "imagePullPolicy",
                    is_latest(json_str_or(c, "image", "")) ? "Always" : "IfNotPresent");
}

static void field_file_defaults(struct arena *a, struct json *items)
{
        json_foreach (f, items)
                if (json_at(f, "fieldRef"))
                        default_str(a, json_at(f, "fieldRef"), "apiVersion", "v1");
}

static void projected_defaults(struct arena *a, struct json *projected)
{
        default_int(a, projected, "defaultMode", FILE_MODE);
        json_foreach (s, json_at(projected, "sources")) {
                field_file_defaults(a, json_path(s, "downwardAPI.items"));
                if (json_at(s, "serviceAccountToken"))
                        default_int(a, json_at(s, "serviceAccountToken"), "expirationSeconds", TOKEN_SECONDS);
        }
}

/* What some volumes have when nothing is said; those of other machines' disks. */
static const struct {
        const char *source, *key, *value;
} VOLUME_DEFAULTS[] = {
        {"iscsi", "iscsiInterface", "default"},
        {"rbd", "pool", "rbd"},
        {"rbd", "user", "admin"},
        {"rbd", "keyring", "/etc/ceph/keyring"},
        {"azureDisk", "cachingMode", "ReadWrite"},
        {"azureDisk", "fsType", "ext4"},
        {"azureDisk", "kind", "Shared"},
        {"scaleIO", "storageMode", "ThinProvisioned"},
        {"scaleIO", "fsType", "xfs"},
};

static void volume_defaults(struct arena *a, struct json *v)
{
        static const char *const with_mode[] = {"secret", "configMap", "downwardAPI"};
        struct json *host = json_at(v, "hostPath"), *disk = json_at(v, "azureDisk");

        if (json_len(v) == (json_at(v, "name") ? 1u : 0u))
                json_set(a, v, "emptyDir", json_object(a));
        for (size_t i = 0; i < ARRAY_LEN(with_mode); i++)
                if (json_at(v, with_mode[i]))
                        default_int(a, json_at(v, with_mode[i]), "defaultMode", FILE_MODE);
        field_file_defaults(a, json_path(v, "downwardAPI.items"));
        if (json_at(v, "projected"))
                projected_defaults(a, json_at(v, "projected"));
        if (host && !json_at(host, "type"))
                json_set(a, host, "type", json_string(a, ""));
        for (size_t i = 0; i < ARRAY_LEN(VOLUME_DEFAULTS); i++)
                if (json_at(v, VOLUME_DEFAULTS[i].source))
                        default_str(a, json_at(v, VOLUME_DEFAULTS[i].source), VOLUME_DEFAULTS[i].key,
                                    VOLUME_DEFAULTS[i].value);
        if (disk)
                default_bool(a, disk, "readOnly", false);
}

/* The old name of the field says the same. */
static void account_defaults(struct arena *a, struct json *spec)
{
        const char *name = json_str(spec, "serviceAccountName"), *old = json_str(spec, "serviceAccount");

        if (name)
                json_set(a, spec, "serviceAccount", json_string(a, name));
        else if (old)
                json_set(a, spec, "serviceAccountName", json_string(a, old));
}

void podspec_defaults(struct arena *a, struct json *spec)
{
        bool host_network = json_bool(spec, "hostNetwork", false);

        json_foreach (v, json_at(spec, "volumes"))
                volume_defaults(a, v);
        json_foreach (c, json_at(spec, "initContainers"))
                container_defaults(a, c, host_network);
        json_foreach (c, json_at(spec, "containers"))
                container_defaults(a, c, host_network);
        account_defaults(a, spec);
        round_amounts(a, json_at(spec, "overhead"));
        default_str(a, spec, "dnsPolicy", "ClusterFirst");
        default_str(a, spec, "restartPolicy", "Always");
        child_object(a, spec, "securityContext");
        default_int(a, spec, "terminationGracePeriodSeconds", GRACE_SECONDS);
        default_str(a, spec, "schedulerName", "default-scheduler");
}

void podspec_requests(struct arena *a, struct json *spec)
{
        static const char *const lists[] = {"containers", "initContainers"};

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (c, json_at(spec, lists[i])) {
                        struct json *resources = json_at(c, "resources"),
                                    *limits = json_at(resources, "limits");

                        if (json_len(limits) == 0)
                                continue;
                        json_foreach (l, limits)
                                if (!json_at(json_at(resources, "requests"), l->key))
                                        json_set(a, child_object(a, resources, "requests"), l->key,
                                                 json_copy(a, l));
                }
}

/* ---- quality of service */

struct amounts {
        struct quantity cpu, memory;
        bool any;
};

/* Sums of what one list of containers asks for; ALL: whether every one says both. */
static void add_amounts(const struct json *containers, const char *what, struct amounts *sum, bool *all)
{
        json_foreach (c, containers) {
                const struct json *list = json_at(json_at(c, "resources"), what);
                struct quantity cpu = {0}, memory = {0};

                if (quantity_of(json_at(list, "cpu"), &cpu) && cpu.nano > 0)
                        sum->any = true;
                if (quantity_of(json_at(list, "memory"), &memory) && memory.nano > 0)
                        sum->any = true;
                *all &= cpu.nano > 0 && memory.nano > 0;
                sum->cpu = quantity_add(sum->cpu, cpu);
                sum->memory = quantity_add(sum->memory, memory);
        }
}

const char *pod_qos(const struct json *spec)
{
        struct amounts requests = {0}, limits = {0};
        bool limited = true, said = true;

        add_amounts(json_at(spec, "containers"), "requests", &requests, &said);
        add_amounts(json_at(spec, "initContainers"), "requests", &requests, &said);
        add_amounts(json_at(spec, "containers"), "limits", &limits, &limited);
        add_amounts(json_at(spec, "initContainers"), "limits", &limits, &limited);
        if (!requests.any && !limits.any)
                return "BestEffort";
        if (limited && requests.any && quantity_cmp(&requests.cpu, &limits.cpu) == 0 &&
            quantity_cmp(&requests.memory, &limits.memory) == 0)
                return "Guaranteed";
        return "Burstable";
}
