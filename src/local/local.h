/*
 * local - the embedded engine: the Kubernetes API on one machine.
 *
 * `sonde up` starts it so that one command shows the whole system, a laptop can profile, and tests take milliseconds.
 *
 *   store.h    objects and their revisions: one SQLite file, group commit, history for watches
 *   shape.h    what fields a type has, and how its lists and maps are merged; for built-in types and CRDs alike
 *   types.h    the resources that are served: names, verbs, defaults, validation, printed columns
 *   strategy.h what is particular to each built-in resource
 *   check.h    formats of names and labels
 *   fields.h   sets of fields, managedFields, server-side apply
 *   strategic.h  strategic merge patch
 *   openapi.h  discovery and OpenAPI v2, as JSON and as the protobuf that kubectl asks for
 *   api.h      the API server: requests, verbs, lists, watches, tables, deletion
 *   manage.h   what a controller manager does: owners, namespaces, Jobs, their time to live
 *   node.h     the node: pods as local processes
 *
 * The API server and what manages it share memory and a thread. The node knows the API over HTTP only, as every other
 * client does.
 *
 * What it must keep: a write that was acknowledged survives kill -9 and power loss; a second engine on the same
 * directory is refused; loopback, TLS and a token by default.
 *
 * What it must not do: offer a way of working that a cluster does not have (one conformance suite runs against both,
 * and where they differ, this one is wrong); be used by a controller in any way but through the API; pretend to be a
 * cluster (one machine, one node; GPU counts are bookkeeping).
 */
#pragma once

#include "local/node.h" /* IWYU pragma: export */
#include "net/net.h"

struct local;

struct local_config {
        const char
                *dir; /* holds the store, the certificate, the kubeconfig, pods' files and logs; made 0700 */
        const char *listen;      /* NULL: 127.0.0.1, any free port (kept for the next start) */
        const char *pod_image;   /* the one image the node knows */
        const char *pod_program; /* what that image has as /sonde-pod; NULL: beside the running program */
        int64_t gpus;            /* that the node says it has */
        int64_t cpus;            /* the same; 0: as many as there are */
        bool no_node;            /* the API alone */
        bool durable;            /* false: no fsync (tests of anything but the store) */
        size_t history;          /* writes kept for watches; 0: the store's default */
        const struct log *log;   /* borrowed; may be NULL */
        /* A write could not be made durable: the engine must end. */
        void (*on_failure)(void *arg, const struct err *err);
        void *arg;
};

/* Starts the engine in LOOP: ready when it returns. */
struct local *local_new(struct loop *loop, const struct local_config *config, struct err *err) _must_check_;
/* Ends running pods within their grace period and calls DONE; local_free() may follow. */
void local_stop(struct local *l, void (*done)(void *arg), void *arg);
/* After local_stop(): no grace any more; DONE comes as before. */
void local_hurry(struct local *l);
void local_free(struct local *l);
const char *local_kubeconfig(const struct local *l); /* path of the file */

DEFINE_CLEANUP_PTR(struct local *, local_free)
