/*
 * supervise_private.h - the parts of `run`: output, the end of output, the control directory, out of memory.
 */
#pragma once

#include "run/pod.h"

/* ---- supervise_tail.c: the last bytes of the output */

struct tail {
        size_t n;
        char bytes[3 * RUN_TAIL_MAX];
};

void tail_add(struct tail *t, struct str data);
/* At most RUN_TAIL_MAX bytes of valid UTF-8, from a line's begin where there is one. */
struct str tail_text(struct arena *a, const struct tail *t);
/* E as JSON in at most MAX bytes, with as much of the end of the tail as there is room for. */
struct str exit_short_text(struct arena *a, const struct run_exit *e, size_t max);

/* ---- supervise_output.c: from the workload's pipe to our own output */

enum output_kind {
        OUTPUT_PLAIN,    /* never makes anybody wait: a file, /dev/null */
        OUTPUT_SOCKET,   /* asked not to wait with each send() */
        OUTPUT_NONBLOCK, /* a pipe, opened once more, so that nobody else's descriptor stops blocking */
        OUTPUT_CAREFUL,  /* can do neither: asked first, and given no more than it has room for */
};

/*
 * What is read is written at once; while our own output takes nothing, nothing is read, so the workload waits in its
 * write() as it would without us.
 */
struct stream {
        struct loop *loop;
        struct tail *tail;
        struct io in, out;
        int in_fd, out_fd; /* in_fd -1: at its end */
        bool out_owned;    /* out_fd is ours to close */
        bool broken;       /* nobody reads our output any more */
        enum output_kind kind;
        struct buf pending; /* read, not yet written; */
        size_t written;     /* of it */
        void (*on_flushed)(void *arg);
        void *arg;
};

/* IN_FD becomes the stream's and non-blocking; OUT_FD stays the caller's. */
int stream_init(struct stream *t, struct loop *loop, int in_fd, int out_fd, struct tail *tail,
                struct err *err) _must_check_;
void stream_done(struct stream *t);
/* Reads what is in the pipe now and nothing that comes later; the pipe is closed. The tail has it all afterwards. */
void stream_drain(struct stream *t);
bool stream_flushed(const struct stream *t);
/* Whether both are one file, so that one pipe keeps what goes there in order. */
bool output_same(int out_fd, int err_fd);

/* ---- supervise_ctl.c: what the relay sees */

struct ctl {
        int dir_fd, alive_fd, started_fd; /* -1: not there */
        int exit_fd;                      /* room for exit.json, as exit_tmp; -1: none could be had */
        char *path, *exit_tmp;
};

/* Says once on LOG what is not there; the workload runs all the same. */
void ctl_open(struct ctl *c, const char *path, usec_t now, const struct log *log);
void ctl_write_exit(struct ctl *c, struct str text, const struct log *log);
void ctl_close(struct ctl *c); /* lets go: the relay hears it */

/* The termination message. One that the workload has written itself is kept. */
struct message {
        const char *path; /* NULL: none */
        uint64_t size, changed;
};
void message_open(struct message *m, const char *path);
void message_write(const struct message *m, struct str text, const struct log *log);

/* ---- oom.c */

/* How many processes of this container's cgroup the kernel has killed for want of memory; below 0: not known. ROOT is
 * put before all paths ("" outside of tests). */
int64_t oom_kills(const char *root);
