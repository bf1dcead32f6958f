/*
 * admission.h - which requests may begin, where the number of runs under way is limited.
 *
 * One queue for all kinds. Its order never changes by itself: a request's place is by when it was made, less ten minutes for
 * each step of its priority (0 to 10, 5 where nothing is said), then by namespace and name. So one of priority 6 goes before
 * those of priority 5 that are up to ten minutes older, and none waits for ever.
 *
 * The first whose namespace has room begins as soon as there is room in all; while a namespace is full, those of others
 * pass by. A slot is taken at once, in memory, before anything of the run is written, and held until the run is over, suspended
 * or refused, or its request is gone. What is found to be under way holds one whatever the limits say: lower ones end nothing.
 * One that cannot be carried out gives its slot back, and takes its turn again when it is tried again: what stands in the way
 * of many may go for all at once.
 *
 * After the start (and whenever we begin to lead) nothing is admitted before every request that is there has been decided once:
 * until then it is not known who holds a slot. A crash between admission and the first write costs nothing but the slot.
 *
 * A place is told exactly up to 10, then as 10+, 100+ and 1000+, with a reason that is the same for all behind the tenth: the
 * end of one run makes at most a dozen requests be told anew, however many wait. Its place is that in the whole queue, or in
 * its namespace where only namespaces are limited.
 *
 * The first ten are also told when they will probably begin, by when those under way will probably end: the n-th in line gets
 * the n-th slot that is given back, unless one that is more urgent comes. It is not known while one of those has no end that
 * is, behind as many as there are slots, and where both limits count. As estimates waver, it is told anew only when it has moved
 * by more than an eighth of what is left, and by 15 s, or is not known any more.
 *
 * Everything costs O(log n). Not thread-safe: it belongs to one loop.
 */
#pragma once

#include "base/base.h"
#include "decide/decide.h"

struct admission_limits {
        unsigned runs, runs_per_namespace; /* 0: no limit */
};

struct admissions;

struct admissions_config {
        struct admission_limits limits; /* one of them is there */
        /* This request of OF must be decided again: it may begin, or is told another place. */
        void (*again)(void *of, struct str key);
        struct metrics *metrics; /* may be NULL */
};

/* A request: OF is whose (one for each controller), KIND what it is called there, KEY "namespace/name". */
struct admission_id {
        void *of;
        const char *kind;
        struct str key;
        const char *uid; /* one of another uid is another request; NULL: whoever has the name */
};

struct admissions *admissions_new(const struct admissions_config *config);
void admissions_free(struct admissions *s);

/* We begin to lead: forgets everything, and admits nobody before all is known. */
void admissions_reset(struct admissions *s);
/* It was there when we began to lead. Waited for, unless it has said what it wants. */
void admissions_await(struct admissions *s, const struct admission_id *id);
/* There are no others. */
void admissions_all_known(struct admissions *s);
bool admissions_settled(const struct admissions *s); /* and all have said what they want */

/* What a request wants, as it was decided. */
void admissions_tell(struct admissions *s, const struct admission_id *id, const struct admission_wish *wish);
/* It was looked at, and cannot say what it wants yet: it is waited for no longer. */
void admissions_heard(struct admissions *s, const struct admission_id *id);
/* It is gone. */
void admissions_forget(struct admissions *s, const struct admission_id *id);
/* It is being deleted, and something of it still runs: it begins nothing any more, but holds the slot that it has. */
void admissions_withdraw(struct admissions *s, const struct admission_id *id);
/* It cannot be carried out, and nothing of it runs: it gives back its slot until it has waited for another one. */
void admissions_yield(struct admissions *s, const struct admission_id *id);
/* It has, and nothing of it was seen to run since. */
bool admissions_yielded(struct admissions *s, const struct admission_id *id);

/*
 * Where it stands, for a decision, to which it then counts as told; the sentence is in ARENA. One that has not said what it
 * wants has no place, and nobody has before all is known.
 */
struct admission admissions_place(struct admissions *s, const struct admission_id *id, struct arena *a);

/* One that waits. */
struct admission_queued {
        const char *kind, *ns, *name;
        int64_t priority;
        usec_t since, starts; /* starts 0: not known */
        size_t position;      /* exact */
        const char *reason;
};

/* The first MAX of those who wait in NS (NULL: anywhere), in order, in RET, with what they say in ARENA; how many. */
size_t admissions_queue(const struct admissions *s, const char *ns, struct admission_queued *ret, size_t max,
                        struct arena *a);
size_t admissions_waiting(const struct admissions *s);
size_t admissions_held(const struct admissions *s);

DEFINE_CLEANUP_PTR(struct admissions *, admissions_free)
