/*
 * relay.h - copies what changes in the run directory into the run's two ConfigMaps.
 *
 * Watches DIR (inotify, and a look at everything each 10 s as a safety net, each second where inotify is not to be had)
 * and the FIFO beside it (pod.h). A new state leaves at once: the token bucket lets 5 a second through after a burst of 5,
 * and the last state always wins; one request is under way at a time. Checkpoint and result go to the data ConfigMap at
 * most every 30 s, and at the end before the terminal state, so that a terminal state means that the outcome is kept.
 * Texts over 8 KiB are gzipped. At the end, after the result has arrived and while there is time, the files below
 * artifacts/ go along: regular files, links are not followed, at most 256, at most 4 folders deep, the smallest first; an
 * artifact's key is artifact.NAME, or artifact-HASH where its name is none. Over 900 KiB together, or a result or
 * checkpoint of more than 4 MiB: what does not fit is left out, with a clear sentence in `problem`, and listed by name,
 * size and sha256 in artifacts.json (no sha256 beyond 256 MiB of them). Of what the API server refuses the result goes
 * last. A checkpoint that is left out leaves the last one there; one that is gone when the run has ended goes.
 *
 * A kind may name more files of the run directory (`files`): those that are there when the workload has ended go along
 * with the last result, each under its own name, in the form that a result would have. They come after result and
 * checkpoint and before the artifacts where room is short.
 *
 * When the workload has ended (exit.json, or a hang-up without one: it was killed together with `run`) it sends the last
 * state and ends. One that exits with 0 because it was told to end has failed. SIGTERM: it waits for that four fifths of
 * the grace period, then sends what is there and ends, without a terminal state, because nobody knows how the workload
 * will end.
 *
 * The API: one kept-alive connection; 409 and failed fences are read and decided again; 429, 5xx and lost connections are
 * tried again with backoff, and 10 minutes without a success end it. So are 403 and 404 once it has begun: the operator
 * makes a ConfigMap again that somebody deleted, but not at once when it is itself being replaced. At the start 404 ends
 * it, and 403 does after 10 s (RBAC lags). A run that another pod of the Job has recorded as succeeded is left alone. The
 * data ConfigMap is claimed like the status ConfigMap: its keys attempt and podUID say whose it is. A new attempt takes an
 * older one's result, artifacts and what is under the names of its own `files` away, and leaves its checkpoint until it
 * has its own.
 *
 * At rest it wakes for the heartbeat (30 s) and the look around (10 s), and for nothing else.
 */
#pragma once

#include "kube/kube.h"
#include "run/fence.h"
#include "run/pod.h"

struct relay;

struct relay_config {
        struct loop *loop;
        struct kube *kube;
        const char *ns, *status_map, *data_map; /* data_map NULL: none */
        const char *dir, *ctl;
        uint64_t attempt; /* of the Job: at least this one */
        const char *pod_uid;
        const char *spec_hash; /* goes with the checkpoint; NULL: none */
        const char *files;     /* more of DIR to be kept: "a.yaml,b.yaml"; NULL or "": none */
        usec_t grace;          /* after relay_terminate(); 0: 25 s */
        const struct log *log;
        /* The relay has done what it can: exit status 0 the end is recorded (or a newer attempt has taken over); 1 it is not. */
        void (*on_end)(void *arg, int exit_status);
        void *arg;
};

enum { RELAY_NAMED_MAX = 8 };

/*
 * `files` as it must be: at most 8 names with commas between them, each a ConfigMap's key with room for ".gz", no file and no
 * key of the run's own, none twice.
 */
int relay_check_files(const char *files, struct err *err) _must_check_;

struct relay *relay_new(const struct relay_config *config, struct err *err) _must_check_;
void relay_free(struct relay *r);
/* SIGTERM: flush and end within the grace period. */
void relay_terminate(struct relay *r);

DEFINE_CLEANUP_PTR(struct relay *, relay_free)
