/*
 * spawn.h - a program as our child: found as execvp() finds it, never by way of a shell, killed when we are.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct spawn {
        char *const *argv;      /* argv[0]: a path, or a name that is looked for in PATH */
        const char *const *env; /* "NAME=value": in the place of ours, or beside it; NULL ends; may be NULL */
        int in_fd, out_fd, err_fd; /* become its 0, 1 and 2: say 0, 1 and 2 for our own */
        bool own_group;            /* a process group of its own, of the number of its process */
};

/*
 * Starts it with all signals as at the start of a program. Below 0: it was not started, and *RET_STATUS (may be NULL) is what
 * a shell would end with (126, 127).
 */
int spawn_start(const struct spawn *s, pid_t *ret_pid, int *ret_status, struct err *err) _must_check_;

/* Where a program NAME may be, best first; NULL ends. One with a slash in it is a path. */
char **spawn_places(struct arena *a, const char *name);
/* Our environment with MORE in its place or beside it; NULL ends. What is not in MORE is borrowed. */
char **spawn_environment(struct arena *a, const char *const *more);
/* Says why NAME was not started: execve() of all PLACES failed with WHY. *RET_STATUS as above. Returns -1. */
int spawn_explain(const char *name, char *const *places, int why, int *ret_status, struct err *err);

/* All signals as at the start of a program, none blocked: for a child between fork() and exec(). */
void signals_reset(void);
