/*
 * engine.h - what the truth needs of the engine besides sim.h.
 */
#pragma once

#include "probe/sim/sim.h"

/* As if PROMPT had come and gone before. */
void sim_engine_learn(struct sim_engine *e, uint64_t prompt);
