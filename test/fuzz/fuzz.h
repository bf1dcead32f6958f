/*
 * fuzz.h - what the fuzzers share.
 */
#pragma once

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the input; unlike assert() it is always there. */
#define REQUIRE(condition)                                                                        \
        do {                                                                                      \
                if (!(condition)) {                                                               \
                        fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
                        abort();                                                                  \
                }                                                                                 \
        } while (0)
