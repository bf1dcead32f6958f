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
        BUG_MAX_,
};

extern const char *const bug_names[BUG_MAX_];

/* Before plan and settle, before settle alone, and after both. */
void sabotage_view(struct model *m, struct view *v);
void sabotage_settle(struct model *m, struct view *v);
void sabotage_decision(struct model *m, const struct view *v, struct decision *d);
/* What the look-up is answered with; NULL: nothing was sabotaged. */
const struct answer *sabotage_answer(struct model *m, const struct view *v, const struct want *want,
                                     const struct json *found);
