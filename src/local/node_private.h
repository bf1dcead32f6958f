/*
 * node_private.h - what the parts of the node share.
 *
 *   node.c             the client of the API: registers, takes pods, fetches what they need, reports
 *   node_schedule.c    which pods fit; node_resources.c: what a pod asks for
 *   node_pod.c         from a pod object to a plan: commands, environment, volumes; pure
 *   node_files.c       a pod's directory: volumes written, state read, everything removed
 *   node_supervisor.c  the supervisor: containers in order, restarts, termination
 *   node_spawn.c       one container's process, from fork to exec; node_root.c: its root of bind mounts
 *   node_log.c         output to files in the CRI's format
 *   node_cgroup.c      limits, and what they did
 *   node_proc.c        processes that belong to a container, found in /proc
 *   node_status.c      PodStatus from the supervisor's state; pure
 *
 * The plan (plan.json) is everything a supervisor must know; it never talks to the API. Its state (state.json) is
 * everything the node must know to report; both are JSON, so that a node of the next version understands them.
 */
#pragma once

#include "kube/quantity.h"
#include "local/node.h"

enum { NODE_TEXT_MAX = 16 << 20 }; /* of plan.json and state.json */

/* ---- node_resources.c */

/* The effective request of a pod for RESOURCE ("cpu", "memory", "nvidia.com/gpu") in thousandths: the sum over its
 * containers or the largest init container, whichever is more, plus the overhead. */
int64_t pod_request_milli(const struct json *pod, const char *resource);

/* ---- node_pod.c: what a pod needs */

enum pod_source_kind { SOURCE_CONFIGMAP, SOURCE_SECRET, SOURCE_TOKEN };

/* An object of the API that a pod refers to. Tokens are asked for by POST, with the name of the volume and the path. */
struct pod_source {
        enum pod_source_kind kind;
        const char *name;     /* of the ConfigMap, the Secret, the ServiceAccount */
        const char *audience; /* tokens: NULL for the server's own */
        int64_t expires;      /* tokens: seconds */
        bool wanted;          /* some use of it is not optional */
        struct json *object;  /* what the server said; NULL: not there */
};

struct pod_context {
        const struct json *pod;
        const struct pod_source *sources;
        size_t n_sources;
        const char *dir; /* DIR/pods/UID */
        const char *node, *host_ip;
        const char *pod_image, *pod_program;
        const char *service_host, *service_port; /* of the API server; NULL: not told */
        int64_t cpu_milli, memory; /* of the node: what a missing limit means to the downward API */
        bool root;                 /* may change users */
        struct arena *a;
};

/* What POD refers to, each once. */
struct pod_source *pod_sources(const struct json *pod, struct arena *a, size_t *ret_n);
/*
 * The plan, with the content of the volumes as `files` of each. NULL: a volume cannot be made (ERR has the kubelet's
 * sentence). What is wrong with one container is in its `error` {reason, message} instead.
 */
struct json *pod_plan(const struct pod_context *c, struct err *err) _must_check_;
/* $(NAME) is replaced where ENV (an array of "NAME=value") has it, $$ is $. */
const char *pod_expand(const char *text, const struct json *env, struct arena *a);
/* A sentence about what POD asks for and this node does not do, to be told; NULL: it asks for no such thing. */
const char *pod_passed_over(const struct json *pod, struct arena *a);
bool pod_has_mounts(const struct json *plan); /* volumes, or the pod's image: needs a mount namespace */

/* ---- node_files.c */

char *node_pod_dir(struct arena *a, const char *dir, const char *uid);
/* Makes the directory and its volumes as PLAN says and writes plan.json; may be repeated. */
int node_files_prepare(const char *pod_dir, struct json *plan, struct arena *a, struct err *err) _must_check_;
/* Writes the files of one volume, each at once in place of what was there; FS_GROUP -1: none. */
int node_files_volume(const char *pod_dir, const struct json *volume, int64_t fs_group, struct err *err)
        _must_check_;
/* The JSON in pod_dir/NAME; NULL with E_NOT_FOUND when there is none. */
struct json *node_files_read(const char *pod_dir, const char *name, struct arena *a, struct err *err)
        _must_check_;
int node_files_save(const char *pod_dir, const char *name, const struct json *j, struct err *err)
        _must_check_;
void node_files_remove(const char *pod_dir); /* all of it; symbolic links are not followed */
/* The volume directory of the plan's volume NAME. */
char *node_volume_dir(struct arena *a, const char *pod_dir, const char *name);

/* ---- node_proc.c */

struct proc_id {
        pid_t pid;
        uint64_t start; /* clock ticks after boot: with it a pid is never somebody else's */
};
bool proc_identify(pid_t pid, struct proc_id *ret);
/* The same process, not a zombie, in the same boot. */
bool proc_alive(struct proc_id id);
const char *proc_boot_id(struct arena *a);
/* Number of the mount namespace of PID; 0: gone, or not ours to see. */
uint64_t proc_mount_ns(pid_t pid);
/* Sends SIGNO to every process where a file whose name holds MARK is mounted (in another namespace than ours), and to
 * every process of session SID (0: none); how many there were. */
size_t proc_kill_members(const char *mark, pid_t sid, int signo);
/* The mark of a pod, of one of its containers (NULL: all), of one of its starts: the name of its message file. */
char *proc_mark(struct arena *a, const char *uid, const char *container, unsigned restart);

/* ---- node_cgroup.c */

struct cgroup_limits {
        int64_t memory;    /* bytes; 0: none */
        int64_t cpu_milli; /* 0: none */
};
/* Makes a group named NAME for the limits; its directories (one a controller) as an array. NULL: it may not; ERR says
 * what to do about it. ROOT is /sys/fs/cgroup, OWN the text of /proc/self/cgroup (tests have others). */
struct json *cgroup_make(const char *root, struct str own, const char *name, const struct cgroup_limits *l,
                         struct arena *a, struct err *err) _must_check_;
int cgroup_enter(const struct json *dirs); /* the calling process; async-signal-safe is not needed */
bool cgroup_saw_oom(const struct json *dirs);
void cgroup_kill(const struct json *dirs);
void cgroup_remove(const struct json *dirs);
/* Version 2 gives limits only to groups beside which no process is: moves this process, when it is alone in its group,
 * into a group below it, so that containers can have others there. */
void cgroup_prepare(const char *root, struct str own);
#define CGROUP_ROOT "/sys/fs/cgroup"

/* ---- node_log.c: one stream of a container to its file, in the CRI's format */

struct node_log {
        char *path; /* N.log */
        int fd;
        uint64_t size, limit; /* 0: 10 MiB */
        struct buf pending;   /* lines that are not written yet */
        struct buf tail;      /* at least the last 4 KiB of text, for FallbackToLogsOnError */
};
enum { NODE_LOG_KEEP = 4, NODE_LOG_TAIL = 4096, NODE_LOG_LINE = 16384 };
int node_log_open(struct node_log *l, const char *path, uint64_t limit, struct err *err) _must_check_;
void node_log_done(struct node_log *l);
/* LINE without its newline; PARTIAL: more of it follows. Written by the next flush. */
void node_log_line(struct node_log *l, usec_t wall, const char *stream, struct str line, bool partial);
void node_log_flush(struct node_log *l);

/* ---- node_root.c, node_spawn.c: in the container's process */

/* Enters a new mount namespace (and user namespace when not root) with the container's root. */
int root_enter(const char *pod_dir, const struct json *plan, const struct json *container,
               const char *message_file, struct err *err) _must_check_;
/* Whether mount namespaces may be made here, tried in a child. */
int root_try(struct err *err) _must_check_;

struct spawned {
        pid_t pid;
        int out, errs; /* pipes of its output, not blocking */
        int ready;     /* end of file: it runs its program; otherwise one sentence why not */
};
struct spawn_request {
        const char *pod_dir;
        const struct json *plan, *container;
        const char *message_file;
        const struct json *cgroup; /* NULL: none */
};
int spawn_container(const struct spawn_request *r, struct spawned *ret, struct err *err) _must_check_;

/* ---- node_status.c */

struct pod_status_input {
        const struct json *pod;
        const struct json *state; /* state.json; NULL: not started yet */
        const char *host_ip;
        const char *waiting_reason, *waiting_message; /* not started: why; NULL: ContainerCreating */
        const char *waiting_container;                /* the one it is about; NULL: all */
        const char *failed_reason, *failed_message;   /* never started and never will; NULL: it may */
        usec_t now;
};
/* A kubelet's PodStatus. What did not change keeps its times from the pod's own status. */
struct json *pod_status(const struct pod_status_input *in, struct arena *a);
bool state_is_final(const struct json *state);
/* The state of a supervisor that has gone without a word: what ran is terminated (137), the pod is final. */
void state_mark_lost(struct json *state, usec_t now, struct arena *a);
/* How long to wait before restart number N (from 1) of a container: 0, 10 s, 20 s, ... 5 min. */
usec_t restart_delay(unsigned n);

/* ---- node_schedule.c */

struct node_room {
        int64_t cpu, memory, pods, gpus; /* left; all but pods in thousandths */
};
/* NULL: it fits. Otherwise the scheduler's sentence: "0/1 nodes are available: 1 Insufficient cpu." */
const char *schedule_check(const struct json *node, const struct json *pod, const struct node_room *room,
                           struct arena *a);
void room_take(struct node_room *room, const struct json *pod);
