/*
 * Percentage, ETA, and whether a run moves.
 */
#include "run/track.h"
