/*
 * What every kind settle shares: what the objects of a run say about it.
 */
#include "kinds/run_seen.h"
