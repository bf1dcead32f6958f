/*
 * stats - summaries, intervals, tests and verdicts.
 *
 *   summary.h   mean, spread, order statistics, as AIPerf and numpy say them
 *   random.h    seeds from texts, shuffles, variates
 *   describe.h  the samples of one algorithm: median with its interval, spread, outliers, trend; histograms
 *   tests.h     two samples: Mann-Whitney, Holm, Cliff's delta, Hodges and Lehmann's shift
 *   compare.h   several algorithms: ratios with intervals, noise floor, verdicts, how many more runs would decide
 *   pareto.h    what no other beats in both
 *   scaling.h   the exponent of time over input sizes
 *   change.h    whether a series of runs has become slower
 *
 * Numbers in, numbers and words out: pure functions over arrays of samples, with the seed of every resampling passed in,
 * so that the same samples always give the same text. docs/statistics.md says how each number is computed, and why.
 *
 * What it must not do: measure, read files, draw its own random seed, or give a number without its uncertainty. Too
 * few samples are "inconclusive", never a verdict; no data is no number, never 0. A value that is not finite is
 * refused, never computed with.
 */
#pragma once

#include "stats/change.h"
#include "stats/compare.h"
#include "stats/describe.h"
#include "stats/pareto.h"
#include "stats/random.h"
#include "stats/scaling.h"
#include "stats/summary.h"
#include "stats/tests.h"
