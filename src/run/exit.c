/*
 * How a workload ended: exit.json, and one sentence about it.
 */
#include "run/pod.h"
