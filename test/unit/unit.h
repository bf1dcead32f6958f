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

/* How many seeds, rounds or rows, by SONDE_EXTENT: quick, usual (also when it is not set) or long. */
static inline unsigned unit_extent(unsigned quick, unsigned usual, unsigned long_form)
{
        const char *extent = getenv("SONDE_EXTENT");

        if (!extent || !*extent || streq(extent, "usual"))
                return usual;
        if (streq(extent, "quick"))
                return quick;
        if (!streq(extent, "long"))
                fail_msg("SONDE_EXTENT is '%s'; expected quick, usual or long", extent);
        return long_form;
}

/* Prints the rows of test/seeds/rows.md that the N TESTS of FILE prove, a line for each test that rows name. */
static inline void unit_print_proofs(const char *file, const struct CMUnitTest *tests, size_t n)
{
        const char *path = strstr(file, "test/");
        FILE *rows = path ? fopen("test/seeds/rows.md", "re") : NULL;
        char *line = NULL, name[256];
        size_t size = 0;

        for (size_t i = 0; rows && i < n; i++) {
                const char *lead = "# proves";

                rewind(rows);
                snprintf(name, sizeof(name), "`%s::%s`", path, tests[i].name);
                while (getline(&line, &size, rows) > 0)
                        if (strstr(line, name) && !strstr(line, " | open: ")) {
                                printf("%s %.5s", lead, line + strlen("| "));
                                lead = "";
                        }
                printf("%s", *lead ? "" : "\n");
        }
        free(line);
        if (rows)
                fclose(rows);
}

/* Runs TESTS (an array of struct CMUnitTest) as TAP, then TEARDOWN (NULL: nothing). */
#define UNIT_MAIN_TEARDOWN(tests, teardown)                                                 \
        int main(void)                                                                      \
        {                                                                                   \
                int failed;                                                                 \
                                                                                            \
                cmocka_set_message_output(CM_OUTPUT_TAP);                                   \
                failed = cmocka_run_group_tests(tests, NULL, teardown);                     \
                if (!failed)                                                                \
                        unit_print_proofs(__FILE__, tests, sizeof(tests) / sizeof(*tests)); \
                return failed;                                                              \
        }

#define UNIT_MAIN(tests) UNIT_MAIN_TEARDOWN(tests, NULL)
