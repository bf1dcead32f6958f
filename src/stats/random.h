/*
 * random.h - what is drawn from the seeded generator (struct rng, base/clock.h): shuffles, variates.
 *
 * The same seed gives the same sequence on every machine. Shuffles and picks use integers alone; variates go through
 * libm, whose last digit may differ.
 */
#pragma once

#include "base/base.h"

/* From a text, such as a request's UID, and a number that tells uses of one text apart. NULL is as "". */
void stats_seed(struct rng *r, const char *text, uint64_t number);
uint64_t stats_seed_of(const char *text, uint64_t number);
/* An order of 0 ... N-1, each equally likely. */
void stats_shuffle(struct rng *r, size_t *order, size_t n);

/* Above 0 and at most 1: it has a logarithm. */
double stats_uniform(struct rng *r);
/* Of mean 0 and deviation 1. */
double stats_normal(struct rng *r);
