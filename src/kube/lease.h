/*
 * lease.h - leader election by a coordination.k8s.io/v1 Lease, compatible with client-go's.
 *
 * Defaults as in client-go: the lease lasts 15 s, is renewed every 2 s, and given up after 10 s without success.
 * A follower judges expiry by the time since it last saw the record change, never by the times in it. The lease has a
 * client (connection, budget) of its own, which its user gives it.
 *
 * It is no fence: whoever writes asks lease_held() right before sending (CLOCK_BOOTTIME, so that a process that was
 * stopped finds out), and makes the write conditional, so that one that slips through is refused.
 */
#pragma once

#include "kube/client.h"

struct lease;

struct lease_config {
        struct kube *kube; /* not shared with anything that could delay it */
        const char *ns, *name;
        const char *identity;                          /* unique: host name and something random */
        usec_t duration, renew_deadline, retry_period; /* 0: 15 s, 10 s, 2 s */
        struct metrics *metrics;                       /* leader_election_*; may be NULL */
        void (*on_acquired)(void *arg);
        /* Not ours any more (given up, stolen, or not renewed in time): stop at once, nothing may be written. */
        void (*on_lost)(void *arg);
        void (*on_new_leader)(void *arg, const char *identity); /* may be NULL */
        void *arg;
};

/*
 * Starts to compete at once. After on_lost it is over: it sends nothing more and is only good for lease_free(), which
 * may be called from any of its callbacks.
 */
struct lease *lease_new(const struct lease_config *config, struct err *err) _must_check_;
void lease_free(struct lease *l); /* without giving it back */
/*
 * True while the lease is ours by our own clock, read now: until renew_deadline after the moment BEFORE the last
 * successful renewal was sent. A follower counts the longer duration from when it saw that renewal, which is later, so
 * whoever trusts this stops (duration - renew_deadline) before anybody else may begin, whatever the network does.
 */
bool lease_held(const struct lease *l);
const char *lease_leader(const struct lease *l); /* identity last seen, "" if none; until the next callback */
/* Gives it back (holder empty, duration 1 s); DONE when that is known or 2 s have passed. No callback after. */
void lease_release(struct lease *l, void (*done)(void *arg), void *arg);

DEFINE_CLEANUP_PTR(struct lease *, lease_free)
