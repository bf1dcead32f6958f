/*
 * explore.h - every state that can be reached, breadth first, so that the way to what is wrong is a shortest one.
 */
#pragma once

#include "model/world.h"

struct exploration {
        size_t states, transitions, settled, evaluations, depth;
        char *wrong; /* what, and the way there, for people; NULL: nothing */
};

void explore(const struct subject *subject, const struct scenario *scenario, size_t max_states,
             struct exploration *ret);
void exploration_done(struct exploration *e);
