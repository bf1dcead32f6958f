/*
 * gzip.h - gzip in memory, bounded, for large values in ConfigMaps.
 */
#pragma once

#include "base/base.h"

/* Adds DATA gzipped to OUT (no name, no time: the same data gives the same bytes). */
int gzip_add(struct buf *out, struct str data, struct err *err) _must_check_;
/* Adds what DATA holds to OUT; more than out->max is E_TOO_LARGE. */
int gunzip_add(struct buf *out, struct str data, struct err *err) _must_check_;
