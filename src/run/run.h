/*
 * run - the run protocol: what a profiler writes, how it reaches the request, how far it is and when it ends.
 *
 * Planned; this header is the design until the code is here. A run is one pod whose containers share a directory:
 *
 *   profiling_status.json  where the profiler is now (phase, step, message, times, GPU configuration)
 *   result.json            the outcome, by kind
 *   checkpoint.json        what need not be measured again
 *   exit.json              how the workload ended: code, signal, out of memory, times
 *   artifacts/             everything else worth keeping
 *
 * What the layer will own:
 *
 *   writer    makes the status file: temporary file, fsync, rename; never an error into the profiler
 *   reader    accepts both status designs, any phase list that `plan` declares, and unknown fields; refuses garbage
 *             with a reason and keeps the last good state, because somebody else's program wrote the file
 *   stage     lays the binary, the FIFO and the last attempt's checkpoint down before the workload starts
 *   run       the workload's parent: holds the FIFO, keeps the last output, forwards signals, writes exit.json
 *   relay     copies what changed into the run's two ConfigMaps, fenced by (attempt, pod UID, sequence, state), and
 *             ends by itself when the workload has ended, however it ended
 *   progress  percentage over the whole run (weighted, monotone) and the ETA as a range: pure functions of events,
 *             so that a recorded run can be replayed through them
 *
 * The table of phases lives here once; CRD, C and Python are fed from it.
 *
 * What it must not do: know a kind (a kind's meaning of phases and results is in src/kinds/); create objects (the
 * operator does, before the pod starts); disturb the measured process; decide an outcome from the Job's condition.
 */
#pragma once

#include "base/base.h"
