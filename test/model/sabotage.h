/*
 * sabotage.h - mistakes that a controller's author could make, behind a switch: the exploration must find each of them.
 */
#pragma once

#include "model/world.h"

enum bug {
        BUG_NONE,
        BUG_NAME_ANEW,      /* the Job's name is derived anew instead of read from the status */
        BUG_CACHE_IS_TRUTH, /* what the cache does not have is taken for gone, without a look at the server */
        BUG_LATE_WORD,      /* what comes after the end is settled once more */
        BUG_IMPATIENT,      /* a Job that is being deleted counts as gone */
        BUG_SUSPENDED_SUCCESS, /* a success is not looked for when the request is suspended */
        BUG_ANY_POD,           /* what one pod has recorded is taken for what the next one did */
        BUG_STATUS_FIRST,      /* the status is written before what it tells of is done */
        BUG_BY_NAME,           /* writes and deletes go by the name alone, whatever has it now */
        BUG_ADOPTS,            /* what exists already is taken for our own */
        /* Of kinds with a plain Job and a product that is theirs */
        BUG_EAGER,        /* once the run has an outcome, what is left of it counts as gone */
        BUG_FORGETS,      /* that the plain Job was made is not remembered */
        BUG_TELLS_EARLY,  /* the plain Job is told of as soon as it has a name */
        BUG_STAYS_TRUE,   /* what was true of the run stays true */
        BUG_STAYS_FAILED, /* Failed stays True when another run is begun */
        BUG_FORGETS_SEEN, /* a failure does not say which generation it is of */
        BUG_RAW_PERCENT,  /* the percentage is the last that was reported */
        BUG_DEAF,         /* the end of the plain Job is not noticed */
        BUG_LEAKS,        /* the product has no owner */
        BUG_NO_MEASURES,  /* the product is made, and its status forgotten */
        /* Of kinds with several pods, and a time to live */
        BUG_ONE_POD,   /* the first pod's success is all */
        BUG_JUMPS,     /* nobody waits for his turn */
        BUG_HASTY,     /* what has ended goes at once */
        BUG_FORGETFUL, /* a run rests too early: while it goes on */
        /* Of every run */
        BUG_FICKLE,      /* a decision depends on more than its view */
        BUG_ASKS_ON,     /* each answer brings the next look-up */
        BUG_OTHER_SPEC,  /* the Job is made of the spec as it is now, whatever its attempt was begun with */
        BUG_KILLS,       /* the Job of the attempt under way is deleted */
        BUG_BACKGROUND,  /* Jobs are deleted before their pods */
        BUG_SWEEPS,      /* the status ConfigMap is deleted while the run goes on */
        BUG_NO_ROW,      /* the history does not get to know of the end */
        BUG_OTHER_ROW,   /* the history is told another outcome */
        BUG_CANCELS,     /* every request counts as cancelled */
        BUG_TIMES_OUT,   /* every request has a timeout */
        BUG_RETRIES,     /* spec.retries is not read */
        BUG_REHASH,      /* the hash of the spec changes within an attempt */
        BUG_SKIPS,       /* the first attempt is the second */
        BUG_UNKNOWN,     /* a member of the status that the schema does not have */
        BUG_TOLD,        /* a workload that was told to end counts as one that has ended */
        BUG_RELAY_CODE,  /* the relay's exit code is taken for the workload's */
        BUG_NO_RESULT,   /* the result is not in the status */
        BUG_ACCEPTS_ALL, /* a spec that was refused counts as observed */
        BUG_QUEUE_STAYS, /* status.queue stays after the admission */
        BUG_KEEPS_SLOT,  /* what has ended keeps its slot */
        BUG_RESTARTS,    /* progress.startedAt is the time of the last report */
        BUG_CANCELLED_SUCCESS, /* a success is not looked for when the request is cancelled */
        BUG_CLAIMED,           /* the next attempt's number is not above what pods have claimed */
        BUG_MAX_,
};

extern const char *const bug_names[BUG_MAX_];

/* Before plan and settle, before settle alone, and after both. */
void sabotage_view(struct model *m, struct view *v);

void sabotage_settle(struct model *m, struct view *v);
void sabotage_wants(struct model *m, const struct view *v, struct decision *d);
void sabotage_decision(struct model *m, const struct view *v, struct decision *d);
/* What the look-up is answered with; NULL: nothing was sabotaged. */
const struct answer *sabotage_answer(struct model *m, const struct view *v, const struct want *want,
                                     const struct json *found);
