/*
 * schedule.h - a request with a schedule, in every order of what can happen to it: time that passes, clocks that are put forward
 * and back, operators that die between two writes, requests it has made that end, people who suspend it.
 *
 * Time goes in steps of five minutes, and the schedule is due every ten.
 */
#pragma once

#include "base/base.h"

enum schedule_bug {
        SCHEDULE_RIGHT,
        SCHEDULE_STATUS_FIRST, /* lastScheduleTime is written before the request is made */
        SCHEDULE_FORGETS,      /* what was made last is not remembered */
        SCHEDULE_KEEPS_ALL,    /* the history has no limit */
        SCHEDULE_CATCHES_UP,   /* what was due while it was suspended is made up for */
};

struct schedule_scenario {
        const char *name;
        const char *policy;
        uint8_t until;                 /* steps of time */
        uint8_t crashes, jumps, edits; /* how many there may be */
        enum schedule_bug bug;
};

/* How many states; *RET_WRONG: what is wrong and the way there, for people, to be freed; NULL: nothing. */
size_t schedule_explore(const struct schedule_scenario *scenario, char **ret_wrong);
