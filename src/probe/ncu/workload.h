/*
 * workload.h - what staging and starting a workload share.
 */
#pragma once

#include "base/base.h"

/* The first line of a script: "#!/usr/bin/env python3". */
struct shebang {
        const char *interpreter, *argument; /* argument: NULL: none */
};

/* False: FD is no script. Strings are in the arena. */
bool shebang_read(struct arena *a, int fd, struct shebang *ret);
