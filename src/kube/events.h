/*
 * events.h - event recorder (events.k8s.io/v1).
 *
 * An event's name is derived from what it says about which object (uid), so the same event again, also after a restart,
 * finds the one that is there and becomes its series (count and last time). Within 6 minutes a repetition is only
 * counted; a series is written at most every 30 s. Per object 25 events may come at once and then one in 5 minutes; the
 * rest is counted as dropped. At most 1000 wait to be written; nothing waits for them, and a failure to write one is
 * logged and forgotten after 3 tries. An event is in its object's namespace, in kube-system for cluster-scoped ones.
 */
#pragma once

#include "kube/client.h"

struct events;

struct events_config {
        struct kube *kube;
        const char *controller;      /* reportingController: "sonde.dev/dgdr" */
        const char *instance;        /* reportingInstance: at most 128 characters */
        struct metrics *metrics;     /* may be NULL */
        bool (*may_send)(void *arg); /* the lease; may be NULL */
        void *may_send_arg;
};

struct events *events_new(const struct events_config *config);
void events_free(struct events *e);

enum event_type { EVENT_NORMAL, EVENT_WARNING };

struct event {
        enum event_type type;
        const char *reason; /* CamelCase, at most 128 */
        const char *action; /* what was done; NULL: the reason again */
        const char *note;   /* a sentence; cut at 1024 bytes */
};

/* REGARDING: the object (apiVersion, kind, metadata with namespace, name, uid, resourceVersion). All is copied. */
void events_record(struct events *e, const struct json *regarding, const struct event *event);
size_t events_pending(const struct events *e);

DEFINE_CLEANUP_PTR(struct events *, events_free)
