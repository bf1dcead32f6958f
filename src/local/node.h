/*
 * node.h - the node: pods as local processes.
 *
 * A client of the API like any other (reflector, cache, client): it registers itself as one Node, takes pods that are
 * bound to it, runs them and reports their status as a kubelet does. It is also the scheduler: a pod without a node
 * name is bound to it when its requests fit what is left (CPU, memory, GPUs are bookkeeping), otherwise it stays
 * Pending with PodScheduled=False, reason Unschedulable and the scheduler's wording.
 *
 * A pod is a small supervisor process (its own session, in a mount namespace in which the pod's volumes are bound to
 * their mount paths) that survives the node, so that a node that is killed and started again finds its pods running and
 * hears how they ended: each keeps a directory with its state, its exit codes and its logs.
 *
 *   DIR/pods/UID/state.json          what the supervisor is doing; written atomically
 *   DIR/pods/UID/volumes/NAME/       emptyDirs, configMaps, projected volumes
 *   DIR/pods/UID/log/CONTAINER/N.log output, one file a restart, in the CRI's format (time, stream, tag, text); at
 *                                    10 MiB it becomes N.log.1, that N.log.2, and so on up to 4
 *
 * The node knows one image, pod_image: its /sonde-pod is pod_program. Any other container runs its command from this
 * machine's files; one without a command fails with CreateContainerError and says why. Limits become cgroup limits
 * where the node may write cgroups; where it may not, or where mount namespaces are forbidden, node_doctor() says so
 * and how to allow it.
 */
#pragma once

#include "kube/kube.h"

struct node;

struct node_config {
        const char *name; /* of the Node */
        const char *dir;
        const char *pod_image, *pod_program;
        struct kube *client; /* borrowed */
        const struct log *log;
        struct metrics *metrics; /* may be NULL */
        int64_t gpus;            /* nvidia.com/gpu it says it has */
        int64_t cpus;            /* that it says it has; 0: as many as there are */
        usec_t status_every;     /* heartbeat of the Node's lease and status; 0: 10 s, 5 min */
        const char *server;      /* URL of the API server as pods are told it; NULL: they are not */
        /* Its CA, PEM: what a pod finds as ConfigMap kube-root-ca.crt in a namespace that has none. NULL: nothing. */
        const char *ca;
        bool no_scheduler; /* somebody else binds pods: on a cluster that has a scheduler */
};

struct node *node_new(struct loop *loop, const struct node_config *config, struct err *err) _must_check_;
/* Ends all pods within their grace periods; DONE when nothing of them is left. */
void node_stop(struct node *n, void (*done)(void *arg), void *arg);
/* After node_stop(): no grace any more, what still runs is killed; DONE comes as before. */
void node_hurry(struct node *n);
void node_free(struct node *n); /* pods go on running and are found again by the next node */

/* What this machine does not let the node do, one sentence each with the remedy; empty when all is well. */
void node_doctor(struct buf *out);

/* The supervisor: what `sonde node-pod DIR` runs. Returns the exit status. */
int node_pod_main(const char *pod_dir);

DEFINE_CLEANUP_PTR(struct node *, node_free)
