/*
 * algorithm.h - the built-in algorithms: sorting, in C, over seeded inputs.
 *
 * `sonde-pod algorithm NAME` makes an input of SONDE_INPUT_SIZE numbers from SONDE_SEED, sorts it, and checks that the result
 * is the input in order. Only the sorting is in the region that it reports in SONDE_METRICS_FILE. Sizes beyond the memory, and
 * names and parameters that are not there, are refused with one sentence.
 *
 *   every algorithm   input: random (what it is without), sorted, reversed, nearly_sorted, few_unique
 *   quick_sort        pivot_strategy: first, last, middle, median (of three; what it is without), random
 *   quick_sort,       parallel: false (what it is without), true (its parts in threads, at most one a processor)
 *   merge_sort
 *
 * Pure but for algorithm_run(): the operator checks a request with algorithm_check() before anything is made.
 */
#pragma once

#include "json/json.h"

enum { ALGORITHM_SIZE_MAX = 1 << 30 }; /* numbers: 4 GiB, and as much again for some */

struct algorithm;

/* NULL: there is none of this name. */
const struct algorithm *algorithm_find(const char *name);
const char *algorithm_name(const struct algorithm *al);
const char *algorithm_about(const struct algorithm *al); /* one line for a list */
/* The I-th of those there are; NULL behind the last. */
const struct algorithm *algorithm_at(size_t i);

/*
 * Whether NAME with PARAMETERS (an object of JSON; NULL: none) can run. Below 0: E_INVALID and one sentence with what there
 * is: "there is no sorting algorithm 'bogo_sort'; there are bubble_sort, ...".
 */
int algorithm_check(const char *name, const struct json *parameters, struct err *err) _must_check_;

enum algorithm_input {
        INPUT_RANDOM,
        INPUT_SORTED,
        INPUT_REVERSED,
        INPUT_NEARLY_SORTED,
        INPUT_FEW_UNIQUE,
        INPUT_MAX_
};
enum algorithm_pivot { PIVOT_FIRST, PIVOT_LAST, PIVOT_MIDDLE, PIVOT_MEDIAN, PIVOT_RANDOM, PIVOT_MAX_ };

struct algorithm_options {
        enum algorithm_input input;
        enum algorithm_pivot pivot;
        bool parallel;
        uint64_t seed;
};

/* As algorithm_check(), and what they say. */
int algorithm_options(const struct algorithm *al, const struct json *parameters,
                      struct algorithm_options *ret, struct err *err) _must_check_;

/* The input of N numbers, the same for the same options. */
void algorithm_input(int32_t *values, size_t n, const struct algorithm_options *o);
/* Sorts. SPARE has room for N more if the algorithm needs it (algorithm_needs_spare()). */
void algorithm_sort(const struct algorithm *al, int32_t *values, int32_t *spare, size_t n,
                    const struct algorithm_options *o);
bool algorithm_needs_spare(const struct algorithm *al);

struct algorithm_times {
        double wall, user, sys; /* seconds, of the sorting alone */
};

/* All of it: makes the input, sorts, checks. */
int algorithm_run(const struct algorithm *al, size_t n, const struct algorithm_options *o,
                  struct algorithm_times *ret, struct err *err) _must_check_;
