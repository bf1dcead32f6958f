/*
 * What may follow what in the status ConfigMap.
 */
#include "run/fence.h"
