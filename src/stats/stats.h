/*
 * stats - summaries, intervals, tests and verdicts.
 *
 *   summary.h  mean, spread, order statistics
 *
 * Numbers in, numbers and words out: pure functions over arrays of samples, with the seed of every resampling passed in,
 * so that the same samples always give the same text.
 *
 * Planned, and the layer's to own: robust summaries; confidence intervals; pairwise tests with correction for how many
 * there are; effect sizes; the verdict words (faster, slower, no difference, inconclusive, and how many more runs would
 * decide it); Pareto fronts; scaling exponents over input sizes; change points in a series of runs.
 *
 * What it must not do: measure, read files, draw its own random seed, or give a number without its uncertainty. Too
 * few samples are "inconclusive", never a verdict; no data is no number, never 0.
 */
#pragma once

#include "stats/summary.h"
