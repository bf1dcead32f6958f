/*
 * The table of phases, and plans that a run declares.
 */
#include "run/phase.h"
