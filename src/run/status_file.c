/*
 * Reading a file that somebody else's program writes.
 */
#include "run/status.h"
