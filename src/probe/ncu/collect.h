/*
 * collect.h - what the files about collecting share.
 *
 *   collect_tool.c    runs ncu: its output on the way to ours, signals, and the end of everything that it has started
 *   collect_import.c  from the report to numbers
 *   collect.c         the whole
 */
#pragma once

#include <signal.h>

#include "probe/ncu/ncu.h"

/* ---- collect_tool.c */

/* Signals, and the children that are not ours to end. */
struct tool_watch {
        const struct clock *clock;
        int signal_fd;
        sigset_t mask_before;
        bool subreaper_before;
        struct {
                pid_t *v;
                size_t n, cap;
        } children_before;
        int told; /* the signal that told us to end; 0: none */
};

int tool_watch_init(struct tool_watch *w, const struct clock *clock, struct err *err) _must_check_;
void tool_watch_done(struct tool_watch *w);

struct tool_job {
        char *const *argv;
        const char *const *env; /* beside ours */
        bool forward; /* what it and its children print goes to our standard output, standard error too */
        usec_t limit; /* 0: none */
        void (*output)(void *arg, struct str piece);
        usec_t (*wake)(void *arg); /* called after every turn; when to be called next; may be NULL */
        void *arg;
};

/*
 * Runs it to its end; *RET_STATUS is waitpid()'s. Nothing that it has started is left. When we are told to end, or when its
 * time is up, all of it gets the signal, and after ten seconds SIGKILL. Below 0: it could not be started.
 */
int tool_run(struct tool_watch *w, const struct tool_job *job, int *ret_status, struct err *err) _must_check_;

/* ---- collect_import.c */

struct imported {
        struct ncu_sum *sum;
        enum ncu_layout layout;
        struct err err;      /* why it could not be read to its end; E_OK: it could */
        const char *warning; /* NULL: none */
};

/* REPORT as numbers, and as text in CSV (a path). Below 0: the tool could not be started. */
int import_report(struct tool_watch *w, struct arena *a, const char *ncu, const char *report, const char *csv,
                  struct imported *ret, struct err *err) _must_check_;
