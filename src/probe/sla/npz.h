/*
 * npz.h - arrays of numbers in a file that numpy.load() reads: a zip, stored, of one .npy file an array.
 *
 * Little-endian float64 or int64, one dimension. The same arrays give the same bytes: the zip has no time in it.
 */
#pragma once

#include "base/base.h"

struct npz_array {
        const char *name; /* without .npy */
        const double *reals;
        const int64_t *whole; /* in place of REALS */
        size_t n;
};

/* Adds the file to OUT, which is empty. */
void npz_write(const struct npz_array *arrays, size_t n, struct buf *out);
