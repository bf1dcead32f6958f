/*
 * world.h - a small world in memory, in which a controller is driven through every order of events.
 *
 * The server's objects come in parts, one a watch: the request, Jobs, pods, ConfigMaps, and the product, which is what the
 * kind makes of a finished run. A part is a record without pointers, kept once (pool.h); a state of the world is the numbers
 * of its parts, of the parts as the controller's caches have them, of what the controller is at, and of what may still
 * happen. So a state is 48 bytes, two states are the same when their bytes are, and the same view is decided on once.
 *
 *   show.c      the parts as the API's objects
 *   cluster.c   what the cluster does by itself: Jobs' controller, kubelet, relay, garbage collection
 *   people.c    what people and bad luck do: edits, deletion, eviction
 *   verdict.c   what the controller decides on a view, and what must be written then
 *   control.c   the operator: caches, writes one by one, death
 *   judge.c     what must be true
 *   sabotage.c  mistakes to be found
 *   explore.c   every state, breadth first
 *   rows.c      scenarios, one after the other
 *
 * What is a kind's own is in a struct subject, which the file KIND_world.c has; KIND.c has its scenarios.
 */
#pragma once

#include "model/pool.h"

#include "kinds/run_control.h"
#include "json/schema.h"

#define NOON ((usec_t)1794744000 * USEC_PER_SEC) /* 2026-11-15T12:00:00Z, when the world begins */

enum part { REQUEST, JOBS, PODS, MAPS, PRODUCT, PARTS };
enum { HIDDEN = PARTS, POOLS }; /* what no watch shows */

enum { JOBS_MAX = 4, PODS_MAX = 6, ACCESS_MAX = 3, NAMES_MAX = 16 };

/* Bits of a request's spec; from SPEC_OWN on they mean what the kind says. */
enum { SPEC_EDITED = 1, SPEC_SUSPEND = 2, SPEC_CANCEL = 4, SPEC_OWN = 8 };

struct request_part {
        uint8_t uid; /* 0: there is none */
        uint8_t generation, spec, made;
        uint16_t status; /* number of its text */
        uint8_t unused[2];
};

enum job_end { JOB_ACTIVE, JOB_COMPLETE, JOB_FAILED };

/* Attempt 0: a plain one, beside those of the run; nothing relays what its pods do. */
struct job {
        uint8_t uid; /* 0: none; one more than the last one's */
        uint8_t owner, name /* number */, attempt;
        uint8_t deleting; /* in the foreground: it stays until its pods are gone */
        uint8_t end, pods /* made by it */, spec /* SPEC_EDITED, where the kind reads it */;
        uint16_t meta;   /* number of what a plain one was made with */
        uint8_t backoff; /* how many pods it makes for those that fail */
        uint8_t unused[5];
};

struct jobs_part {
        uint8_t made, unused[7];
        struct job v[JOBS_MAX]; /* by uid, without gaps */
};

enum pod_work { WORK_PENDING, WORK_RUNNING, WORK_ENDED };
enum pod_relay { RELAY_PENDING, RELAY_UP, RELAY_DONE, RELAY_LOST };
enum pod_phase { PHASE_GOES_ON, PHASE_SUCCEEDED, PHASE_FAILED };

struct pod {
        uint8_t uid, job /* uid */, work, code, relay, phase, evicted, plain;
        uint16_t asked, finished; /* seconds since NOON, and 1; 0: not */
        uint8_t oom;              /* the kernel has ended its workload */
        uint8_t forgotten;        /* by the cache, as it is now: see retire_children() */
        uint8_t unused_more[2];
};

struct pods_part {
        uint8_t made, unused[7];
        struct pod v[PODS_MAX]; /* by uid, without gaps */
};

/* How a workload ended, as `run` says it. */
enum pod_exit { EXIT_NONE, EXIT_GOOD, EXIT_BAD, EXIT_TOLD };

struct status_map {
        uint8_t uid, owner, attempt, pod /* uid */, sequence, state, report /* which of the three */, exit;
};

struct data_map {
        uint8_t uid, owner, output /* uid of the pod that made it */;
        uint8_t spec, turns, more; /* what was measured, in how many pods, and how many are left */
        uint8_t unused[2];
};

struct maps_part {
        struct status_map status;
        struct data_map data;
        uint8_t made[2], forgotten[2] /* of status and data, as of a pod */, unused[4];
};

struct product_part {
        uint8_t uid, owner /* 0: somebody made it for himself */, good, made, of /* uid of the pod */;
        uint8_t spec;          /* as of a Job */
        uint16_t text, status; /* numbers, where the kind keeps them */
        uint8_t unused[6];
};

/* What relay and workload know of themselves, by the pods' uids. */
struct inner {
        uint8_t claim, sequence, exit, sent;
};

struct hidden_part {
        struct inner v[8]; /* by uid */
};

/* What may still happen. */
enum left { LEFT_PROGRESS, LEFT_EDIT, LEFT_DELETE, LEFT_CRASH, LEFT_MISHAP, LEFT_TICK, LEFT_MAX_ };

struct state {
        uint16_t part[PARTS], seen[PARTS]; /* on the server, and in the caches */
        uint16_t hidden;
        uint16_t now, again; /* seconds since NOON; again: when the controller asked to be called; 0: not */
        uint8_t access[ACCESS_MAX]; /* ServiceAccount, Role, RoleBinding: their owner's uid; 0: none */
        uint8_t step;               /* of the task */
        uint8_t awaits;             /* bits of enum part: a write of our own that the cache has not shown */
        uint8_t dirty;              /* the key is queued */
        uint32_t task;              /* number of the decision that is carried out, and 1; 0: none */
        uint8_t left[LEFT_MAX_];
        /* What an observer who sees everything remembers of the present request. */
        uint8_t jobs_made; /* bits by attempt; 0: a plain one, since that was last taken away */
        uint8_t success;   /* uid of the pod that recorded it */
        uint8_t excused;   /* bits: somebody took away what could have been known */
        uint8_t late : 4;  /* the request is gone, and a decision was made that did not know it */
        uint8_t begun : 4; /* SPEC_EDITED, as the attempt under way was begun with */
        uint8_t plain;     /* bits: what became of plain Jobs */
        uint8_t place;     /* where it stands in the queue */
};

/* TURN_NONE: runs are not limited. */
enum { TURN_NONE, TURN_UNKNOWN, TURN_SECOND, TURN_FIRST, TURN_ADMITTED };

enum { EXCUSED_RUN = 1, EXCUSED_PRODUCT = 2 };
enum {
        PLAIN_MADE = 1,
        PLAIN_SUCCEEDED = 2,
        PLAIN_JUST_NOW = 4, /* since the operator has decided */
        PLAIN_LOST = 8      /* and then it was taken away: nobody could know */
};

/* What a status says, as far as it matters here. */
struct facts {
        const char *text;
        uint8_t state /* number of the kind's word */, outcome, attempt, job /* number of the name */;
        bool suspended, cancelled;
        bool refused; /* a change of the spec */
        bool failed;  /* the state says so */
        bool final;   /* it is never written again */
        bool made;    /* the product, which is then not made again */
        bool plain;   /* a plain Job */
        bool reason;  /* the attempt is over, or the run is; timed_out: for that reason */
        bool timed_out;
        int64_t observed, retries;
};
enum { OUTCOME_NONE, OUTCOME_SUCCEEDED, OUTCOME_FAILED };

/* Bounds, and what happens at all. */
struct scenario {
        const char *name;
        uint8_t left[LEFT_MAX_];
        uint8_t spec;
        unsigned edits;   /* bits of enum edit: which of them may happen */
        unsigned mishaps; /* bits of enum mishap */
        bool own_product; /* somebody has made the product himself before all begins */
        bool recreated;   /* somebody makes a request of the same name after the deletion */
        bool old_server;  /* the Jobs' controller makes another pod for one that was deleted */
        bool lagging;     /* caches may be behind by any number of changes; otherwise by one */
        bool limited;     /* a run begins when it is admitted */
        bool polite;      /* a workload that is told to end exits with 0 */
        unsigned bug;     /* of sabotage.h; 0: none */
};
/* EDIT_INVALID: to a spec that cannot be run, or back. */
enum edit { EDIT_WORKLOAD, EDIT_SUSPEND, EDIT_CANCEL, EDIT_OWN, EDIT_INVALID, EDITS };
enum mishap {
        MISHAP_EVICT,
        MISHAP_DELETE_POD,
        MISHAP_LOSE_RELAY,
        MISHAP_DELETE_JOB,
        MISHAP_ORPHAN_PODS,
        MISHAP_DELETE_MAP,
        MISHAP_DELETE_PRODUCT,
        MISHAP_DELETE_DATA,
        MISHAP_OWN_PRODUCT, /* somebody makes it himself */
        MISHAP_OOM,
        MISHAP_OVERTAKEN, /* others are admitted before it */
        MISHAP_SWEEP_POD, /* the last pod of a Job that has ended is removed, and one before it stays */
        MISHAP_NO_OUTPUT, /* a workload ends well, and leaves nothing */
        MISHAPS
};

struct verdict; /* verdict.h */
struct op;

struct model {
        const struct subject *subject;
        const struct scenario *scenario;
        struct controller controller;
        struct pool pools[POOLS];
        struct arena texts;
        struct map status_numbers;
        VEC(struct facts) statuses;
        const char *names[NAMES_MAX]; /* of Jobs */
        size_t n_names;
        struct product_part own; /* as somebody makes it for himself */
        struct pool views;       /* that were decided on */
        VEC(struct verdict *) verdicts;
        struct arena scratch;
        struct schema *schema;
        size_t evaluations;
        const char *wrong; /* what is wrong with the last step; NULL: nothing */
};

/* What is the kind's own. */
struct subject {
        struct controller (*controller)(void);
        const char *crd;           /* its file */
        const char *state;         /* the member of the status that has it */
        const char *const *states; /* its words, by number; the first is none */
        size_t n_states;
        const unsigned *next; /* by number: bits of those that may follow */
        /* Names; of the Jobs the first one. The request's name is "r". */
        const char *job, *status_map, *data_map, *access, *product;
        const struct kube_type *product_type;
        bool owned;   /* the product is the request's: kept as planned, with its status, and gone with it */
        bool renews;  /* a changed spec begins anew after an outcome */
        bool revives; /* the same, after a failure alone */
        bool toggles; /* the kind's own edit can be taken back */
        bool longer;  /* more happens, and so there are more states */
        uint8_t invalid;        /* the bit of EDIT_INVALID; 0: it has none */
        const char *timeout_in; /* the member of the spec that has its timeout; NULL: the spec itself */
        const char *container, *plain;    /* the first of a pod of the run, and of a plain Job's */
        const char *edited, *own, *story; /* the edits of the spec, and the product, for the story */

        void (*read_facts)(const struct json *status, struct facts *f);
        struct json *(*show_spec)(struct arena *a, uint8_t bits);
        /* Adds what a pod has left in the data ConfigMap. */
        void (*show_output)(struct arena *a, struct json *data, const struct data_map *map);
        struct json *(*show_product)(struct model *m, struct arena *a, const struct product_part *p);
        /* Lists that are looked up: nodes, products. NULL: there are none. */
        struct json *(*show_list)(struct model *m, struct arena *a, const struct kube_type *type,
                                  const struct product_part *p);
        /* What is in the Job and in the product that are to be made. The first may be NULL. */
        void (*read_job)(const struct json *job, struct op *op);
        void (*read_product)(struct model *m, const struct must_exist *e, struct op *op);
        /* How many pods, one after another, measure what is asked for. NULL: one. */
        uint8_t (*turns)(uint8_t spec);
        /* What happens to the product by itself; what somebody makes for himself. False: nothing. May be NULL. */
        bool (*product_turns)(struct product_part *p);
        void (*make_own)(struct model *m, struct product_part *p);

        /* What must be true of the kind alone, see judge.c; but for the last one they may be NULL. */
        const char *(*judge_status)(const struct json *old, const struct json *new);
        void (*judge_written)(struct model *m, const struct state *s, const struct facts *is);
        void (*judge_created)(struct model *m, const struct state *s, const struct job *job);
        void (*judge_deleted)(struct model *m, const struct state *s, const struct facts *f); /* by itself */
        void (*judge_state)(struct model *m, const struct state *s);
        const char *(*judge_settled)(const struct model *m, const struct state *s, const struct facts *f);
};

void model_init(struct model *m, const struct subject *subject, const struct scenario *scenario);
void model_done(struct model *m);
struct state model_begin(struct model *m);

/* ---- parts */

#define PART(m, s, type, which) (*(const struct type *)pool_at(&(m)->pools[which], (s)->part[which]))
#define SEEN(m, s, type, which) (*(const struct type *)pool_at(&(m)->pools[which], (s)->seen[which]))
uint16_t part_number(struct model *m, unsigned pool, const void *record);
/* The server has this now; a cache that may lag by one change alone then has what the server had. */
void part_change(struct model *m, struct state *s, enum part which, const void *record);
static inline struct hidden_part hidden_of(const struct model *m, const struct state *s)
{
        return *(const struct hidden_part *)pool_at(&m->pools[HIDDEN], s->hidden);
}

/* Of a status, or of what else is kept as a text. NULL: number 0, none. */
uint16_t status_number(struct model *m, const struct json *status);
uint8_t name_number(struct model *m, const char *name);
static inline const struct facts *facts_of(const struct model *m, const struct state *s)
{
        const struct request_part *r = pool_at(&m->pools[REQUEST], s->part[REQUEST]);

        return &m->statuses.v[r->status];
}

const struct job *job_by_uid(const struct jobs_part *jobs, uint8_t uid);
struct pod *pod_by_uid(struct pods_part *pods, uint8_t uid);
void job_remove(struct jobs_part *jobs, uint8_t uid);
void pod_remove(struct pods_part *pods, uint8_t uid);
static inline bool pod_lives(const struct pod *p)
{
        return p->uid && !p->phase;
}

/* ---- show.c */

extern const struct kube_type *const access_types[ACCESS_MAX];

struct json *show_request(struct model *m, struct arena *a, const struct request_part *r);
struct json *show_job(struct model *m, struct arena *a, const struct job *j);
struct json *show_pod(struct model *m, struct arena *a, const struct pod *p);
struct json *show_status_map(struct model *m, struct arena *a, const struct status_map *map);
struct json *show_data_map(struct model *m, struct arena *a, const struct data_map *map);
struct json *show_access(struct model *m, struct arena *a, size_t which, uint8_t owner);
/* What every object has. OWNER: 0 for none. */
struct json *show_meta(struct model *m, struct arena *a, const char *name, const char *what, uint8_t uid,
                       uint8_t owner);
/* From "uid-3" to 3; 0: none. */
uint8_t uid_number(const char *uid);

/* ---- actions: what can happen next. False: that cannot happen now. */

struct action {
        const char *what;
        uint8_t n_args;
        bool fair; /* if it stays possible it happens: nobody's whim */
        bool (*act)(struct model *m, struct state *s, unsigned arg);
};

extern const struct action actions[];
extern const size_t n_actions;

/* cluster.c */
bool act_make_pod(struct model *m, struct state *s, unsigned job);
bool act_end_job(struct model *m, struct state *s, unsigned job);
bool act_start_pod(struct model *m, struct state *s, unsigned pod);
bool act_end_well(struct model *m, struct state *s, unsigned pod);
bool act_end_badly(struct model *m, struct state *s, unsigned pod);
bool act_stop_pod(struct model *m, struct state *s, unsigned pod);
bool act_finish_pod(struct model *m, struct state *s, unsigned pod);
bool act_claim(struct model *m, struct state *s, unsigned pod);
bool act_report(struct model *m, struct state *s, unsigned pod);
bool act_send_output(struct model *m, struct state *s, unsigned pod);
bool act_record(struct model *m, struct state *s, unsigned pod);
bool act_give_up(struct model *m, struct state *s, unsigned pod);
bool act_collect_job(struct model *m, struct state *s, unsigned job);
bool act_collect_pod(struct model *m, struct state *s, unsigned pod);
bool act_collect_others(struct model *m, struct state *s, unsigned arg);
bool act_collect_rest(struct model *m, struct state *s, unsigned arg);
/* The request is gone, and the operator knows it. */
bool cluster_is_forgotten(const struct model *m, const struct state *s);
bool act_turn(struct model *m, struct state *s, unsigned arg);
/* people.c */
bool act_edit(struct model *m, struct state *s, unsigned edit);
bool act_resume(struct model *m, struct state *s, unsigned arg);
bool act_delete(struct model *m, struct state *s, unsigned arg);
bool act_recreate(struct model *m, struct state *s, unsigned arg);
bool act_mishap(struct model *m, struct state *s, unsigned mishap);
bool act_advance(struct model *m, struct state *s, unsigned arg);
void people_forget(struct model *m, struct state *s); /* the request is gone */
/* control.c */
bool act_deliver(struct model *m, struct state *s, unsigned part);
bool act_decide(struct model *m, struct state *s, unsigned arg);
bool act_write(struct model *m, struct state *s, unsigned arg);
bool act_crash(struct model *m, struct state *s, unsigned arg);
bool act_tick(struct model *m, struct state *s, unsigned arg);
void control_init(struct model *m);
void control_done(struct model *m);
void control_deliver(struct model *m, struct state *s, enum part which);
const char *control_next_write(struct model *m, const struct state *s); /* for the story; NULL: none */

/* ---- judge.c: the first thing that is wrong goes to m->wrong */

void model_wrong(struct model *m, const char *fmt, ...) _printf_(2, 3);
/* The text of what is wrong with writing NEW over OLD (with VIEW's generation), or NULL. */
const char *judge_status(struct model *m, const struct json *view, const struct json *new,
                         const struct history_row *row, usec_t now);
/* The same of what a decision has to do with the limit on runs. */
const char *judge_admission(const struct subject *subject, const struct view *v, const struct decision *d);
/* A decision is made whose status is AFTER: what was recorded before it, it must know. */
void judge_decided(struct model *m, const struct state *s, uint16_t after);
void judge_status_written(struct model *m, const struct state *s, uint16_t after);
void judge_job_created(struct model *m, const struct state *s, const struct job *job);
void judge_job_deleted(struct model *m, const struct state *s, const struct job *job, bool foreground);
void judge_state(struct model *m, const struct state *s);
/* Nothing that goes by itself is left to happen. */
bool judge_settled(struct model *m, const struct state *s, const char **why);
/* What is wrong with a world in which nothing is to run any more; with one of a kind for which the run is all. NULL: nothing. */
const char *judge_rest(const struct model *m, const struct state *s);
const char *judge_run_settled(const struct model *m, const struct state *s, const struct facts *f);
bool anything_runs(const struct model *m, const struct state *s);
