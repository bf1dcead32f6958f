/*
 * internal.h - what running trials and printing them share.
 */
#pragma once

#include "probe/trials/trials.h"

/* "412.6 ms"; "-" for NAN. */
void trials_add_time(struct buf *out, double seconds);
/* Side I against the first; NULL: there is none. */
const struct stats_pair *trials_pair(const struct trials *t, size_t i);
/* Describes and compares the runs of each side, and warns of what makes them doubtful. */
void trials_conclude(struct trials *t);
