/*
 * pod.h - inside the pod: where things are, `stage`, `run`, and how a workload ended.
 *
 *   CTL is /sonde/ctl, an emptyDir of the pod, shared by all its containers; DIR is the run directory.
 *
 *   CTL/../sonde-pod   the staged binary, 0755
 *   CTL/alive          FIFO. `run` holds it open (O_RDWR, close-on-exec, so that it never blocks) while it lives; the
 *                      relay has the read end: a hang-up means that `run` is gone, however
 *   CTL/started        {"pid": 7, "startedAt": TIME}; `run` holds an flock on it while it lives, so that a relay that
 *                      comes late can tell a dead `run` from a living one without having seen the FIFO held. It appears
 *                      locked, and after the FIFO is held. Ask with LOCK_SH: a second `run` takes a lock for a living one
 *   CTL/exit.json      how the workload ended, written atomically before `run` lets go of the FIFO
 *   CTL/claim          the relay's attempt number, for a relay that is started again in the same pod
 *   DIR/profiling_status.json, result.json, checkpoint.json, artifacts/      the workload's
 *   DIR/.previous/     what an earlier use of the directory left (a reused volume)
 */
#pragma once

#include "net/net.h"
#include "json/json.h"

#define RUN_CTL_DIR         "/sonde/ctl"
#define RUN_ALIVE_FILE      "alive"
#define RUN_STARTED_FILE    "started"
#define RUN_EXIT_FILE       "exit.json"
#define RUN_CLAIM_FILE      "claim"
#define RUN_RESULT_FILE     "result.json"
#define RUN_CHECKPOINT_FILE "checkpoint.json"
#define RUN_ARTIFACTS_DIR   "artifacts"
#define RUN_PREVIOUS_DIR    ".previous"

enum {
        RUN_TAIL_MAX = 4096,
        RUN_EXIT_FILE_MAX = 32 * 1024, /* the tail may be escaped to six times its size */
};

/* ---- exit.c */

struct run_exit {
        int code;   /* exit status; -1: it ended by a signal, or never started */
        int signal; /* 0: none */
        bool oom;   /* the kernel killed something of this container for want of memory while it ran */
        bool told;  /* it was told to end before it did: a status of 0 does not say that its work was done */
        bool lost; /* nobody saw the end: `run` itself was killed (filled in by the relay, never in the file) */
        const char *error;              /* why it could not be started; NULL: it was */
        usec_t started_at, finished_at; /* wall time */
        struct str
                tail; /* the last 4 KiB of its output, from a line's begin where there is one; valid UTF-8 */
};

struct json *run_exit_json(struct arena *a, const struct run_exit *e);
int run_exit_parse(struct arena *a, struct str text, struct run_exit *ret, struct err *err) _must_check_;
bool run_exit_success(const struct run_exit *e);
/* One sentence: "exited with status 3", "killed by SIGKILL: out of memory", "could not be started: …", cut at 500. */
const char *run_exit_sentence(struct arena *a, const struct run_exit *e);

/* ---- stage.c: what the init container does */

struct run_stage {
        const char *program; /* what to copy: NULL: this program's own file (/proc/self/exe) */
        const char *target;  /* NULL: /sonde/sonde-pod */
        const char *ctl, *dir;
        const char *checkpoint_dir; /* the mounted data ConfigMap; NULL: none */
        const char *spec_hash; /* lay the checkpoint down only if its key `specHash` says this; NULL: never */
};

/*
 * Does it all, and again if it is interrupted or repeated: CTL/claim and a FIFO stay, an old exit.json goes. DIR may be a
 * reused volume of another user's: lost+found and mount points in it stay, no link is followed, and what cannot be moved is
 * an error. A checkpoint that cannot be read is said on LOG: the run begins anew.
 */
int run_stage(const struct run_stage *s, const struct log *log, struct err *err) _must_check_;

/* ---- supervise.c: `run`, the workload's parent */

struct run_command {
        char *const *argv;
        const char *ctl;
        /* How it ended goes here too, in at most 4096 bytes, unless the workload has written there; NULL: nowhere. */
        const char *termination_log;
        /* Where its output goes; -1: 1 and 2. If both are one file, one pipe keeps what goes there in order. */
        int out_fd, err_fd;
};

/*
 * Runs the command until it ends; returns the exit status to end with: its own, or 128 + signal, or 127 and 126 as a
 * shell has them when it could not be started. Forwards SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH;
 * reaps what is orphaned into it (it may be process 1). Does not wait for grandchildren that keep the output open. While
 * nobody takes the output the workload waits, as it would without us; once it has ended, SIGTERM ends that wait.
 *
 * The workload is killed when we are. It has a process group of its own, unless we are in the foreground of a terminal.
 * What is missing in CTL is said on LOG, and it runs all the same.
 */
int run_supervise(const struct run_command *c, const struct log *log);
