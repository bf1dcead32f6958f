/*
 * relay_internal.h - the relay's parts, and what they share.
 *
 *   relay.c         its life: what is done next, the end
 *   relay_files.c   the directories: what changed, how the workload ended
 *   relay_send.c    the status ConfigMap: reading, claiming, states and notes; what a failure means
 *   relay_data.c    the data ConfigMap: when it is written, and the patch
 *   relay_gather.c  what goes into it: read, compressed and hashed on the worker's thread
 *   relay_names.c   which files of the run directory that is, and their keys
 *
 * One request is under way at a time. Whatever happens (a file changed, an answer came, a timer went off) sets flags and
 * calls relay_pump(), which begins the most urgent thing that is to be done.
 */
#pragma once

#include "run/relay.h"
#include "run/status.h"
#include "run/track.h"

enum {
        RELAY_STATUS_MAP_MAX = 16 * 1024, /* all values of the status ConfigMap */
        RELAY_EXIT_ROOM = 2 * 1024,       /* of that: for exit.json, without the output's tail */
        RELAY_PLAIN_MAX = 8 * 1024,       /* larger texts are gzipped */
        RELAY_DATA_MAX = 900 * 1024,      /* all values of the data ConfigMap */
        RELAY_FILE_MAX = 4 * 1024 * 1024, /* of result, checkpoint and named files, as they are read */
        RELAY_ARTIFACTS_MAX = 256,        /* files */
        RELAY_ARTIFACT_DEPTH = 4,         /* folders below artifacts/ */
        RELAY_HASH_MAX = 256 << 20,       /* bytes read for the hashes of what is not kept */
        RELAY_PROBLEM_LEN = 500,
};

/* ---- relay_names.c */

enum { RELAY_RESULT, RELAY_CHECKPOINT, RELAY_NAMED, RELAY_FILES_MAX = RELAY_NAMED + RELAY_NAMED_MAX };

/* A file's name is its key too; ".gz" follows when it is gzipped. */
struct relay_names {
        size_t n; /* at least RELAY_NAMED */
        const char *name[RELAY_FILES_MAX];
};

/* FILES is good (relay_check_files()); the names live in the arena. */
void relay_names_read(struct relay_names *names, const char *files, struct arena *a);
bool relay_is_key_of(const char *key, const char *name); /* plain or gzipped */
/* It goes when another attempt takes over. */
bool relay_is_of_one_attempt(const struct relay_names *names, const char *key);

/* ---- relay_gather.c */

/* One file of the run directory and what becomes of it. */
struct relay_value {
        char *name; /* the file's; of artifacts the path below artifacts/ */
        char *key;  /* in the ConfigMap; NULL: it is not kept */
        bool binary;
        struct buf content;          /* as it goes into the ConfigMap */
        uint64_t size;               /* of the file */
        char sha256[SHA256_HEX_MAX]; /* of the file; "": it could not be read, or is too large to be */
};

/*
 * How final what is gathered is. Result and checkpoint never wait for the artifacts, which may take long to read. Named
 * files are looked at from RELAY_LEVEL_END.
 */
enum { RELAY_LEVEL_NONE, RELAY_LEVEL_FLUSH, RELAY_LEVEL_END, RELAY_LEVEL_ARTIFACTS };

struct relay_gather {
        struct work work;
        struct relay *relay; /* NULL: it has gone; only looked at in the loop */
        int dir_fd;          /* its own; -1: the directory is not there */
        int level;           /* how final it is */
        struct arena strings;
        struct relay_names names;                      /* its own */
        size_t there[RELAY_FILES_MAX];                 /* bytes of it that are in the ConfigMap now */
        char refused[RELAY_FILES_MAX][SHA256_HEX_MAX]; /* of a text that the API server does not take */
        struct relay_value files[RELAY_FILES_MAX];     /* name NULL: there is no such file */
        VEC(struct relay_value) list;                  /* artifacts, by name */
        bool gone[RELAY_FILES_MAX];                    /* there certainly is none */
        bool forget; /* the checkpoint in the ConfigMap must go: the run has ended without one, or no room */
        size_t left; /* of RELAY_DATA_MAX */
        uint64_t to_hash;   /* of RELAY_HASH_MAX */
        struct buf problem; /* what is not kept; sentences */
};

/* Begins to read DIR_FD (which is taken); relay_gathered() is called in the loop at the end. */
struct relay_gather *relay_gather_start(struct relay *r, int dir_fd, int level);
void relay_gather_free(struct relay_gather *g); /* one that is not under way */
/*
 * Leaves out one value that is still kept, and says so: the largest artifact, the last named file, then the checkpoint, then
 * the one that is in the ConfigMap, and the result last. False: there is none.
 */
bool relay_gather_drop(struct relay_gather *g);
/* artifacts.json; NULL: there is nothing to list. */
struct json *relay_gather_list(const struct relay_gather *g, struct arena *a);

/* ---- relay_data.c */

/* What tells a changed file from the one that was looked at. */
struct relay_stamp {
        uint64_t device, inode, size, seconds, nanoseconds;
};

/* One key of the data ConfigMap that is to be set or to go. */
struct relay_data_op {
        const char *key;
        bool binary, remove;
        struct str value;
};

struct relay_data {
        bool known, claimed;
        bool hopeless;    /* it is refused whatever is in it */
        uint64_t attempt; /* of the ConfigMap as last seen; 0: it does not say */
        char pod[64];
        struct doc keys; /* {key: true when it is in binaryData} of what is there */
        char *version;   /* resourceVersion */
        struct relay_names names;
        struct relay_stamp stamps[RELAY_NAMED];        /* named files are not looked at before the end */
        char sent[RELAY_FILES_MAX][SHA256_HEX_MAX];    /* the same text is not sent twice */
        char refused[RELAY_FILES_MAX][SHA256_HEX_MAX]; /* nor is one that was refused */
        size_t there[RELAY_FILES_MAX];                 /* bytes of it that are in the ConfigMap and stay */
        VEC(struct relay_data_op) ops;                 /* on their way */
        char number[24];                               /* the attempt, in them */
        bool changed;
        int level;                    /* of the last one that was gathered */
        usec_t next;                  /* not written before */
        struct relay_gather *gather;  /* under way */
        struct relay_gather *ready;   /* to be sent */
        struct relay_gather *sending; /* on its way */
};

/* ---- all */

enum relay_op { RELAY_READ, RELAY_STATE, RELAY_NOTE, RELAY_DATA_READ, RELAY_DATA };
enum relay_about { ABOUT_PLACES, ABOUT_STATUS, ABOUT_DATA, ABOUT_MAX_ };

struct relay_place { /* a directory that may vanish and come back */
        const char *path;
        int fd, watch; /* -1: not there */
};
enum { PLACE_DIR, PLACE_CTL, PLACES };

struct relay {
        struct relay_config config;
        struct arena strings; /* of the configuration */
        struct arena scratch; /* of one state on its way; reset each time */

        bool over, terminating;
        bool ended;    /* the workload has; `exit` says how */
        bool flushing; /* the grace period is nearly over: what is there is sent, then the end */
        int exit_status;
        struct defer tell;
        struct timer grace;

        /* the directories */
        struct relay_place places[PLACES];
        int alive_fd;
        bool hung_up, doubted; /* doubted: it hung up and seems to live all the same */
        struct io inotify, alive;
        struct timer rescan, recheck;
        struct buf text;    /* of the status file */
        uint64_t text_hash; /* of the last text that was taken, 0: none */
        usec_t bad_since;   /* the file is refused since; 0: it is not */
        uint64_t file_sequence;
        bool phase_over, phase_failed; /* Complete or Failed was seen; nothing but the end follows */
        struct run_exit exit;
        struct arena exit_arena;

        /* what the status ConfigMap should say */
        enum run_state state; /* Pending or Running */
        char *status;         /* status.json; NULL: none yet */
        struct track track;
        size_t track_size; /* of track.json as it is in the ConfigMap; 0: it has none */
        char *problems[ABOUT_MAX_];
        size_t next_track_size; /* on its way */
        bool dirty, track_changed, note_due;
        bool beat_due; /* also while the artifacts of an ended workload are read */

        /* what it says */
        bool known, claimed, adopted; /* adopted: for the first time */
        struct run_fence fence, next; /* next: on its way */
        uint64_t claim;               /* the attempt that is, or was to be, ours; 0: none yet */
        struct doc present;           /* its data, until it is claimed */

        /* requests */
        struct kube_call *call;
        enum relay_op op;
        unsigned failures;
        usec_t failing_since, barred_since; /* 0: not */
        usec_t bucket_at;
        struct timer backoff, bucket, beat;
        struct relay_data data;
};

#define RELAY_STATE_EVERY  (200 * USEC_PER_MS)
#define RELAY_BEAT         (30 * USEC_PER_SEC)
#define RELAY_RESCAN       (10 * USEC_PER_SEC)
#define RELAY_RESCAN_BLIND (1 * USEC_PER_SEC) /* when a directory cannot be watched */
#define RELAY_DATA_EVERY   (30 * USEC_PER_SEC)

/* relay.c */
void relay_pump(struct relay *r);
void relay_finish(struct relay *r, int exit_status);
/* What is wrong, in one sentence (NULL: nothing); goes out when it is new. */
void relay_problem(struct relay *r, enum relay_about about, const char *text);

/* relay_files.c */
void relay_files_init(struct relay *r);
void relay_files_done(struct relay *r);
void relay_files_begin(struct relay *r);          /* the first look; then every 10 s, or every second */
void relay_files_look(struct relay *r);           /* at everything, now */
uint64_t relay_claim_read(const struct relay *r); /* 0: none */
void relay_claim_write(const struct relay *r, uint64_t attempt);
/* Takes over what an earlier relay of this pod has sent. */
void relay_files_restore(struct relay *r, const struct json *data);

/* relay_send.c */
extern const struct json_limits RELAY_MAP_LIMITS; /* of either ConfigMap as it is read */
void relay_send_read(struct relay *r);
void relay_send_state(struct relay *r, enum run_state state);
void relay_send_note(struct relay *r);
void relay_send(struct relay *r, enum relay_op op, const char *map, enum kube_verb verb, struct str body);

/* relay_data.c */
void relay_data_done(struct relay *r);
void relay_data_look(struct relay *r);          /* did result or checkpoint change? */
bool relay_data_step(struct relay *r);          /* begins what is to be done; true: a request is under way */
bool relay_data_settled(const struct relay *r); /* nothing is left to be done */
void relay_gathered(struct relay *r, struct relay_gather *g);
int relay_data_read_answered(struct relay *r, struct str body, struct err *err) _must_check_;
void relay_data_answered(struct relay *r, struct str body);
void relay_data_unsend(struct relay *r); /* the patch failed */
/* The ConfigMap is refused as it is; true: a smaller one is tried, or none. */
bool relay_data_refused(struct relay *r, const struct err *err);
