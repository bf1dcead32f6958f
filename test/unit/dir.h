/*
 * dir.h - folders for the files of a test. They lie in one folder below $TMPDIR that goes when the program ends, so a
 * test need not tidy up, and one that fails in the middle leaves nothing behind.
 */
#pragma once

#include "unit/unit.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT_DIR_LEN = 96 }; /* so that the name of a socket in it fits in its address */

static char unit_root[UNIT_DIR_LEN - 8];
static pid_t unit_root_owner; /* not a child that was forked */

static inline int unit_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        return remove(path);
}

static inline void unit_remove_root(void)
{
        if (getpid() == unit_root_owner)
                nftw(unit_root, unit_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes a new folder and writes its path to DIR. */
static inline void unit_dir(char dir[UNIT_DIR_LEN])
{
        const char *tmp = getenv("TMPDIR");

        if (!unit_root_owner) {
                int n = snprintf(unit_root, sizeof(unit_root), "%s/sonde-unit-XXXXXX",
                                 tmp && *tmp ? tmp : "/tmp");

                assert_in_range(n, 1, sizeof(unit_root) - 1);
                assert_non_null(mkdtemp(unit_root));
                unit_root_owner = getpid();
                assert_int_equal(atexit(unit_remove_root), 0);
        }
        snprintf(dir, UNIT_DIR_LEN, "%s/XXXXXX", unit_root);
        assert_non_null(mkdtemp(dir));
}
