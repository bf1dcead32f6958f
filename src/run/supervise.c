/*
 * run: the workload's parent.
 */
#include "run/pod.h"
