/*
 * probe - the profilers: measuring a process, a GPU program, an inference server.
 *
 *   load/load.h  the LLM load generator: OpenAI-compatible streaming, open and closed loop, times taken at the socket
 *   ncu/ncu.h    a CUDA program under Nsight Compute: collects, reads every layout there is, says what bounds it
 *   sim/sim.h    the simulated inference engine, with a known performance model and the truth it must measure
 *   sla/sla.h    the SLA profiler: the seven phases over temporary deployments, an endpoint, a process or the simulation
 *
 * Planned; this header is their design until the code is here:
 *
 *   probe  any command, built-in algorithm or framework adapter: wall, user, system, peak memory, faults, switches,
 *          I/O, cgroup and hardware counters where the kernel allows, of the whole process tree, once an iteration
 *
 * Each reports through the run protocol (src/run/), leaves its result and checkpoint in the run directory, and is
 * also a command that a person can use by hand.
 *
 * What it must not do: cost the measured program anything that can be measured; hide its own error (a run in which
 * the client was the bottleneck is invalid and says so); show simulated or replayed values without the label; watch
 * or decide anything (it knows no custom resource, but for the temporary deployments that `sla` makes and removes).
 */
#pragma once

#include "probe/load/load.h"
#include "probe/ncu/ncu.h"
#include "probe/sim/sim.h"
#include "probe/sla/sla.h"
