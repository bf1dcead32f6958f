/*
 * internal.h - what the ways to tell trials share.
 */
#pragma once

#include "probe/trials/trials.h"

/* "412.6 ms"; "-" for NAN. */
void trials_add_time(struct buf *out, double seconds);
/* Side I against the first; NULL: there is none. */
const struct stats_pair *trials_pair(const struct trials *t, size_t i);
