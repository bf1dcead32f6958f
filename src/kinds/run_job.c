/*
 * What every kind plan shares: the objects of a run.
 */
#include "kinds/run_job.h"
