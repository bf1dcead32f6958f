/*
 * The Node object and its lease.
 */
#include "local/node_impl.h"

#include <sys/utsname.h>
#include <unistd.h>

static const usec_t LEASE_EVERY = 10 * USEC_PER_SEC, STATUS_EVERY = 300 * USEC_PER_SEC;
static const usec_t TRY_AGAIN = 2 * USEC_PER_SEC;
enum { PODS = 110, LEASE_SECONDS = 40 };
#define LEASE_NS "kube-node-lease"

void node_measure(struct node *n)
{
        long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
             page = sysconf(_SC_PAGESIZE);

        n->cpu_milli = (n->config.cpus > 0 ? n->config.cpus : cpus > 0 ? cpus : 1) * 1000;
        n->memory = pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}

static struct json *resources(const struct node *n, struct arena *a)
{
        struct json *r = json_build(
                a, "{'cpu': '%lld', 'memory': '%lldKi', 'pods': '%d', 'ephemeral-storage': '0'}",
                (long long)n->cpu_milli / 1000, (long long)n->memory / 1024, PODS);

        if (n->config.gpus > 0)
                json_set(a, r, "nvidia.com/gpu",
                         json_string(a, arena_printf(a, "%lld", (long long)n->config.gpus)));
        return r;
}

static struct json *conditions(const struct node *n, struct arena *a)
{
        static const struct {
                const char *type, *status, *reason, *message;
        } table[] = {
                {"MemoryPressure", "False", "KubeletHasSufficientMemory",
                 "kubelet has sufficient memory available"},
                {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
                {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
                {"Ready", "True", "KubeletReady", "kubelet is posting ready status"},
        };
        struct json *list = json_array(a);
        const struct json *old = json_at(json_at(n->node.root, "status"), "conditions");
        char now[TIME_TEXT_MAX];

        time_format(loop_wall(n->loop), now);
        for (size_t i = 0; i < ARRAY_LEN(table); i++) {
                const char *since = now;

                json_foreach (c, old)
                        if (streq(json_str(c, "type"), table[i].type) &&
                            streq(json_str(c, "status"), table[i].status))
                                since = json_str_or(c, "lastTransitionTime", now);
                json_append(list, json_build(a,
                                             "{'type': %s, 'status': %s, 'lastHeartbeatTime': %s, "
                                             "'lastTransitionTime': %s, 'reason': %s, 'message': %s}",
                                             table[i].type, table[i].status, now, since, table[i].reason,
                                             table[i].message));
        }
        return list;
}

static const char *architecture(const char *machine)
{
        return streq(machine, "x86_64") ? "amd64" : streq(machine, "aarch64") ? "arm64" : machine;
}

static struct json *node_status(const struct node *n, struct arena *a)
{
        struct utsname u;
        const char *boot = proc_boot_id(a);

        (void)uname(&u);
        return json_build(
                a,
                "{'capacity': %p, 'allocatable': %p, 'conditions': %p, 'addresses': [{'type': 'InternalIP', "
                "'address': %s}, {'type': 'Hostname', 'address': %s}], 'nodeInfo': {'machineID': '', "
                "'systemUUID': '', 'bootID': %s, 'kernelVersion': %s, 'osImage': %s, "
                "'containerRuntimeVersion': 'sonde://%s', 'kubeletVersion': 'v1.20.2-sonde', "
                "'kubeProxyVersion': '', 'operatingSystem': 'linux', 'architecture': %s}}",
                (void *)resources(n, a), (void *)resources(n, a), (void *)conditions(n, a), HOST_IP,
                n->config.name, boot, u.release, u.sysname, SONDE_VERSION, architecture(u.machine));
}

static struct json *node_labels(const struct node *n, struct arena *a)
{
        struct utsname u;

        (void)uname(&u);
        return json_build(
                a,
                "{'kubernetes.io/hostname': %s, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': %s, "
                "'sonde.dev/local': 'true'}",
                n->config.name, architecture(u.machine));
}

/* ---- the Node */

static void send_status(struct node *n);
static void create(struct node *n);

static void on_status(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct node *n = arg;

        n->node_call = NULL;
        if (err && err->code == E_NOT_FOUND) {
                create(n);
                return;
        }
        if (err) {
                LOG_WARN(n->config.log, "Cannot write the Node's status", F_ERR(err));
                timer_after(&n->node_timer, TRY_AGAIN);
                return;
        }
        timer_after(&n->node_timer, n->config.status_every ? n->config.status_every : STATUS_EVERY);
}

static void send_status(struct node *n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *patch = json_build(&a, "{'status': %p}", (void *)node_status(n, &a));
        struct kube_request r = {.verb = KUBE_PATCH_MERGE,
                                 .type = &KUBE_NODE,
                                 .name = n->config.name,
                                 .subresource = "status",
                                 .body = str_of(json_print(&a, patch)),
                                 .field_manager = "sonde-node"};

        n->node_call = kube_send(n->config.client, &r, on_status, n);
}

static void on_created(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct node *n = arg;

        n->node_call = NULL;
        if (err && err->code != E_EXISTS) {
                LOG_WARN(n->config.log, "Cannot register the Node", F_ERR(err));
                timer_after(&n->node_timer, TRY_AGAIN);
                return;
        }
        send_status(n);
}

static void create(struct node *n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *node = json_build(
                &a,
                "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': %s, 'labels': %p}, "
                "'spec': {}}",
                n->config.name, (void *)node_labels(n, &a));
        struct kube_request r = {.verb = KUBE_CREATE,
                                 .type = &KUBE_NODE,
                                 .body = str_of(json_print(&a, node)),
                                 .field_manager = "sonde-node"};

        n->node_call = kube_send(n->config.client, &r, on_created, n);
}

static void on_node_timer(struct timer *t)
{
        struct node *n = CONTAINER_OF(t, struct node, node_timer);

        if (n->node_call || n->stopping)
                return;
        if (n->node.root)
                send_status(n);
        else
                create(n);
}

/* ---- the lease */

static void on_lease(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct node *n = arg;

        n->lease_call = NULL;
        n->lease_made = !err || (n->lease_made && err->code != E_NOT_FOUND) || err->code == E_EXISTS;
        if (err && err->code != E_NOT_FOUND && err->code != E_EXISTS)
                LOG_WARN(n->config.log, "Cannot renew the Node's lease", F_ERR(err));
        timer_after(&n->lease_timer, err && err->code == E_EXISTS ? 0
                                     : n->config.status_every && n->config.status_every < LEASE_EVERY
                                             ? n->config.status_every
                                             : LEASE_EVERY);
}

static void on_lease_timer(struct timer *t)
{
        struct node *n = CONTAINER_OF(t, struct node, lease_timer);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char now[TIME_TEXT_MAX];
        struct json *lease;
        struct kube_request r = {.verb = n->lease_made ? KUBE_PATCH_MERGE : KUBE_CREATE,
                                 .type = &KUBE_LEASE,
                                 .ns = LEASE_NS,
                                 .name = n->lease_made ? n->config.name : NULL,
                                 .field_manager = "sonde-node"};

        lease = json_build(
                &a,
                "{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', 'metadata': {'name': %s, "
                "'namespace': '" LEASE_NS "'}, 'spec': {'holderIdentity': %s, 'leaseDurationSeconds': %d, "
                "'renewTime': %s}}",
                n->config.name, n->config.name, LEASE_SECONDS, time_format_micro(loop_wall(n->loop), now));
        r.body = str_of(json_print(&a, lease));
        n->lease_call = kube_send(n->config.client, &r, on_lease, n);
}

void node_register(struct node *n)
{
        timer_init(&n->node_timer, n->loop, on_node_timer);
        timer_init(&n->lease_timer, n->loop, on_lease_timer);
        timer_after(&n->node_timer, 0);
        timer_after(&n->lease_timer, 0);
}

void node_register_done(struct node *n)
{
        timer_cancel(&n->node_timer);
        timer_cancel(&n->lease_timer);
        if (n->node_call)
                kube_cancel(n->node_call);
        if (n->lease_call)
                kube_cancel(n->lease_call);
        doc_done(&n->node);
}
