/*
 * probe - the profilers: measuring a process, a GPU program, an inference server.
 *
 *   algorithm/algorithm.h  the built-in algorithms: sorting, over seeded inputs
 *   load/load.h  the LLM load generator: OpenAI-compatible streaming, open and closed loop, times taken at the socket
 *   measure/measure.h  one command run once, measured: its whole process tree, at no cost to it
 *   ml/ml.h      machine-learning algorithms: which there are, and the Python program that runs them
 *   ncu/ncu.h    a CUDA program under Nsight Compute: collects, reads every layout there is, says what bounds it
 *   session/session.h  commands in blocks: plan, workers, checkpoint, result
 *   sim/sim.h    the simulated inference engine, with a known performance model and the truth it must measure
 *   sla/sla.h    the SLA profiler: the seven phases over temporary deployments, an endpoint, a process or the simulation
 *   trials/trials.h  commands measured side by side for a person: the table, the verdict
 *
 * Each reports through the run protocol (src/run/), leaves its result and checkpoint in the run directory, and is
 * also a command that a person can use by hand.
 *
 * What it must not do: cost the measured program anything that can be measured; hide its own error (a run in which
 * the client was the bottleneck is invalid and says so); show simulated or replayed values without the label; watch
 * or decide anything (it knows no custom resource, but for the temporary deployments that `sla` makes and removes).
 */
#pragma once

#include "probe/algorithm/algorithm.h"
#include "probe/load/load.h"
#include "probe/measure/measure.h"
#include "probe/ml/ml.h"
#include "probe/ncu/ncu.h"
#include "probe/session/session.h"
#include "probe/sim/sim.h"
#include "probe/sla/sla.h"
#include "probe/trials/trials.h"
