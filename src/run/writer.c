/*
 * Writing the status file: atomically, and never with an error into the profiler.
 */
#include "run/status.h"
