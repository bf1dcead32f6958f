/*
 * fence.h - what may follow what in a run's status ConfigMap.
 *
 * The operator creates the ConfigMap with the four fence keys; the relay changes it with a JSON Patch that tests all four
 * as it last knew them, so that of two writers one loses and reads again:
 *
 *     data:
 *       attempt: "1"          of the pod that writes; the operator begins with that of the Job; at most 2^53
 *       podUID: ""            of the pod that writes; "" before the first
 *       sequence: "0"         one more with every state, from 1 in every attempt; at most 2^53
 *       state: Pending        Pending, Running, Succeeded, Failed; the last two are terminal
 *       status.json: ...      the state itself (the seeds' contract): run_status_json()
 *       track.json: ...       how it came there (track.h)
 *       exit.json: ...        how the workload ended, with a terminal state
 *       heartbeat: TIME       when the relay last wrote; every 30 s while nothing changes
 *       problem: ...          why the status file is refused at present, what of the data was left out; "" or missing:
 *                             nothing is wrong
 *
 * A state follows another only if its attempt is newer; or attempt and pod are the same (or the other has no pod yet), the
 * sequence is higher and the other was not terminal. A pod that finds another pod's uid becomes the next attempt, once: it
 * keeps its number beside the FIFO (pod.h), so that two pods never take turns in overtaking each other.
 */
#pragma once

#include "json/json.h"

enum run_state { RUN_PENDING, RUN_RUNNING, RUN_SUCCEEDED, RUN_FAILED, RUN_STATE_MAX_ };

#define RUN_KEY_ATTEMPT   "attempt"
#define RUN_KEY_POD       "podUID"
#define RUN_KEY_SEQUENCE  "sequence"
#define RUN_KEY_STATE     "state"
#define RUN_KEY_STATUS    "status.json"
#define RUN_KEY_TRACK     "track.json"
#define RUN_KEY_EXIT      "exit.json"
#define RUN_KEY_HEARTBEAT "heartbeat"
#define RUN_KEY_PROBLEM   "problem"
/* in the data ConfigMap, in `data`, or gzipped in `binaryData` with ".gz" */
#define RUN_KEY_RESULT     "result.json"
#define RUN_KEY_CHECKPOINT "checkpoint.json"
#define RUN_KEY_SPEC_HASH  "specHash"
#define RUN_KEY_ARTIFACTS  "artifacts.json" /* [{"name", "size", "sha256", "kept": true, "key": …}] */

enum { RUN_KEY_MAX = 253 };

/* Whether a ConfigMap takes it for a key: letters, digits, '-', '_', '.', at most 253; no ".", and nothing that begins with "..". */
bool run_key_valid(struct str key);

struct run_fence {
        uint64_t attempt; /* from 1 */
        char pod[64];     /* uid; "" before the first */
        uint64_t sequence;
        enum run_state state;
};

const char *run_state_name(enum run_state state); /* "Running" */
static inline bool run_state_terminal(enum run_state state)
{
        return state >= RUN_SUCCEEDED;
}

/* The `data` of a new status ConfigMap for a Job of this attempt. */
struct json *run_fence_data(struct arena *a, uint64_t attempt);
/* From the `data` of a ConfigMap; E_INVALID when a key is missing or malformed. */
int run_fence_read(const struct json *data, struct run_fence *ret, struct err *err) _must_check_;
bool run_fence_follows(const struct run_fence *old, const struct run_fence *next);
/*
 * A JSON Patch that leads from OLD to NEXT: tests of the four keys, then the keys that differ, then every member of SET
 * (an object of strings; NULL values remove where PRESENT has the key). PRESENT is `data` as last known.
 */
struct json *run_fence_patch(struct arena *a, const struct run_fence *old, const struct run_fence *next,
                             const struct json *present, const struct json *set);
/* A JSON Patch for what is no state (heartbeat, problem): tests attempt and pod, then sets the members of SET. */
struct json *run_fence_note(struct arena *a, const struct run_fence *fence, const struct json *set);
