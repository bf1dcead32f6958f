/*
 * run - the run protocol: what a profiler writes, how it reaches the request, how far it is and when it ends.
 *
 *   phase.h    the phases of a run: the nine of the full design, or a declared plan. phases.def is the one table
 *   status.h   the status file: reader and writer
 *   pod.h      inside the pod: the layout, `stage`, `run`, how a workload ended
 *   fence.h    what may follow what in the status ConfigMap
 *   gzip.h     gzip in memory, for large values
 *   relay.h    copies what changed into the run's two ConfigMaps
 *   track.h    how a run came to where it is; percentage, ETA, not moving
 *
 * What it must not do: know a kind (a kind's meaning of phases and results is in src/kinds/); create objects (the
 * operator does, before the pod starts); disturb the measured process; decide an outcome from the Job's condition.
 */
#pragma once

#include "run/fence.h"
#include "run/gzip.h"
#include "run/phase.h"
#include "run/pod.h"
#include "run/relay.h"
#include "run/status.h"
#include "run/track.h"
