/*
 * The status file's format: reading it with limits, writing it in one form.
 */
#include "run/status.h"
