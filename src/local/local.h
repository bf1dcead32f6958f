/*
 * local - the embedded engine: the Kubernetes API on one machine.
 *
 * Planned; this header is the design until the code is here. `sonde up` starts it so that one command shows the whole
 * system, a laptop can profile, and tests take milliseconds. Two parts that talk to one another over HTTP only:
 *
 *   API server  objects in one SQLite file, reads and watches from memory, structural schemas for custom resources,
 *               the verbs, patches and Table output that kubectl and other clients expect
 *   node        runs Jobs as local processes: init containers, volumes, limits where allowed, logs, exit states
 *
 * What it must keep: a write that was acknowledged survives kill -9 and power loss; a second engine on the same
 * directory is refused; loopback, TLS and a token by default.
 *
 * What it must not do: offer a way of working that a cluster does not have (one conformance suite runs against both,
 * and where they differ, this one is wrong); be used by a controller in any way but through the API; pretend to be a
 * cluster (one machine, one node; GPU counts are bookkeeping).
 */
#pragma once

#include "base/base.h"
