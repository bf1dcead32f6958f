/*
 * lines.h - the body of one answer on its way to the client, with what a fault does to it.
 *
 * Bytes go in, and come out through `write` as chunks; what the caller must do next is the result. Watches are cut
 * into lines for it; without a fault that needs lines, everything passes as it comes. Lines over 4 MiB pass raw.
 */
#pragma once

#include "fault.h"
#include "net/loop.h"

struct lines;

enum lines_state {
        LINES_GO_ON,
        LINES_WAIT,  /* take no more until on_wake, then lines_run() */
        LINES_ABORT, /* close in the middle */
        LINES_END,   /* that was all */
};

struct lines_ops {
        void (*write)(void *arg, struct str chunk);
        void (*on_wake)(void *arg);
        void (*on_effect)(void *arg); /* the fault has taken effect (once) */
};

/* Whether F does something to bodies at all. */
bool lines_wanted(const struct fault *f);

struct lines *lines_new(struct loop *loop, const struct fault *f, const struct lines_ops *ops, void *arg);
void lines_free(struct lines *l);

/* What is to be done before the first byte. */
enum lines_state lines_run(struct lines *l);
enum lines_state lines_feed(struct lines *l, struct str chunk);
/* The server has said all. */
enum lines_state lines_finish(struct lines *l);
