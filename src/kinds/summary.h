/*
 * summary.h - one object of any kind as a row: what `sonde get`, `sonde up`, the REST API and the page show of it.
 *
 * A pure function of the object, so that all of them say the same. What is not known is not there: NULL, 0 or NAN,
 * never a number that was made up.
 */
#pragma once

#include "kinds/kinds.h"

enum summary_life {
        SUMMARY_PENDING, /* nothing of it runs yet, or it waits between two attempts */
        SUMMARY_RUNNING,
        SUMMARY_SUSPENDED,
        SUMMARY_SCHEDULED, /* a template, which makes requests by its schedule */
        SUMMARY_SUCCEEDED,
        SUMMARY_FAILED,
        SUMMARY_CANCELLED,
};

enum summary_trend { SUMMARY_TREND_UNKNOWN, SUMMARY_STEADY, SUMMARY_DEGRADED };

struct summary {
        const struct kind *kind;
        const char *ns, *name, *uid; /* "" if the object does not say */
        int64_t generation;
        bool deleting;

        enum summary_life life;
        const char *state; /* the kind's own word: "Profiling"; "" before there is a status */
        const char *phase; /* what it does: "DecodeSweep" while it runs, else the state, else "Pending" */
        const char *doing; /* the profiler's own word for what it does or did last; NULL: none yet */
        int64_t phase_number, phases; /* of that */
        int64_t step, steps;
        double percent;                    /* NAN: not known */
        const char *message;               /* the profiler's own, about what it does; NULL: none */
        const char *best;                  /* the same of what it has measured: the best so far; NULL: none */
        usec_t created, started, updated;  /* wall time; 0: not known */
        usec_t ended;                      /* of what has ended */
        usec_t eta_low, eta_mid, eta_high; /* wall time, of what runs; 0: not known */
        uint64_t attempt;                  /* 0: none yet */
        const char *queue;                 /* its place in the queue: "2", "10+"; NULL: not in one */
        usec_t starts;                     /* wall time when it probably leaves that; 0: not known */
        bool stuck;                        /* it runs and does not move, see Progressing=False */
        bool retried;                      /* stalled for a reason that the operator tries again by itself */
        bool not_measured;                 /* simulated or replayed values */
        double memory_mb, cpu_percent;     /* while it is measured, then as it was; NAN: not known */
        double seconds;                    /* that one run of what was measured takes; NAN: not known */
        enum summary_trend trend;
        /*
         * Why it waits, does not move or has failed, as a CamelCase reason and a sentence; of what has succeeded the reason is NULL and
         * the sentence what came out. NULL: there is nothing to say.
         */
        const char *reason, *sentence;
        int64_t priority;          /* as said; below 0: it is not */
        const struct json *labels; /* NULL: none */
        const struct json *usage;  /* {memoryMb, cpuPercent} of what runs; NULL: not known */
};

/* Strings are the object's or the arena's. */
void summarize(const struct kind *kind, const struct json *object, struct arena *a, struct summary *ret);
/*
 * The exact place of S, which is told as "10+" or the like, among ALL that are there: by when they were made, less ten minutes a
 * step of priority, then by namespace, name and kind, as operator/admission.h has it; in its namespace alone where S says that
 * only that is limited. 0: S waits at no such place.
 */
size_t summary_place(const struct summary *s, const struct summary *const *all, size_t n);
/* Whether S is told a place that is not exact; *NS is then the namespace in which it waits, NULL for all of them. */
bool summary_place_is_rough(const struct summary *s, const char **ret_ns);
/* As the REST API and `-o json` tell it; see docs/api.md for its members. */
struct json *summary_json(const struct summary *s, struct arena *a);

static inline bool summary_over(const struct summary *s)
{
        return s->life >= SUMMARY_SUCCEEDED;
}

/* "pending", "running", ... */
const char *summary_life_name(enum summary_life life);
/* The condition of that type if it has that status ("True"; NULL: any), or NULL. */
const struct json *summary_condition(const struct json *object, const char *type, const char *status);
/* Whether the operator tries again by itself what it calls Stalled for this reason. */
bool summary_is_retried(const char *reason);
