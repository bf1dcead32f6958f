/*
 * base - what every other layer stands on.
 *
 *   mem.h      allocation that cannot fail, cleanup attributes, arenas
 *   err.h      one error object, with context added on the way up
 *   str.h      counted strings, bounded buffers, UTF-8, exact number parsing
 *   list.h     intrusive doubly linked lists
 *   map.h      hash table from strings to pointers
 *   heap.h     intrusive binary heap (timers, delayed keys)
 *   tree.h     ordered map with strings as keys
 *   vec.h      growing arrays
 *   clock.h    clocks that a test can replace, RFC 3339 times, jitter
 *   log.h      structured log lines without secrets
 *   metrics.h  counters, gauges, histograms and their text exposition
 *   file.h     files: bounded reads, atomic replacement, descriptors that close themselves
 *   spawn.h    programs as our children
 *   zone.h     time zones
 *
 * Out of memory: decided once, here. x*alloc() and arenas end the process with one line on standard error
 * and exit status 71. Nothing Sonde keeps is lost by that: every write is conditional and every decision is
 * made again from what is there. Data from outside is bounded by budgets (buf, arena and parser limits) long
 * before memory is, and going over a budget is an ordinary error.
 *
 * Nothing in this layer keeps global state, except the hash seed, which is drawn once per process.
 */
#pragma once

#include "base/banned.h" /* IWYU pragma: export */
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/tree.h"
#include "base/vec.h"
#include "base/zone.h"
