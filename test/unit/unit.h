/*
 * unit.h - what every unit test includes first.
 *
 * A test reads like a sentence; its data is in the test or in a named file.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

/* assert_string_equal with a counted string on the left. */
#define assert_str(s, literal)                            \
        do {                                              \
                struct str s_ = (s);                      \
                assert_int_equal(s_.n, strlen(literal));  \
                assert_memory_equal(s_.p, literal, s_.n); \
        } while (0)

/* How many worlds, seeds or rounds: QUICK in `make test-quick`, SOAK in `make soak`, else USUAL. */
static inline unsigned unit_extent(unsigned quick, unsigned usual, unsigned soak)
{
        if (streq(getenv("SONDE_SOAK"), "1"))
                return soak;
        return streq(getenv("SONDE_QUICK"), "1") ? quick : usual;
}

/* Runs TESTS (an array of struct CMUnitTest) as TAP. */
#define UNIT_MAIN(tests)                                          \
        int main(void)                                            \
        {                                                         \
                cmocka_set_message_output(CM_OUTPUT_TAP);         \
                return cmocka_run_group_tests(tests, NULL, NULL); \
        }
