/*
 * What remains of a run's events.
 */
#include "run/track.h"
