/*
 * loop_private.h - what the files of this layer share behind loop.h.
 */
#pragma once

#include "net/loop.h"

/*
 * One read buffer a loop, for whoever reads right now: bytes are parsed in place and only what must outlive the
 * callback is copied, so that ten thousand idle connections need no buffers at all.
 */
enum { LOOP_SCRATCH_SIZE = 64 * 1024 };
char *loop_scratch(struct loop *loop);

/* For descriptors of the loop itself, which do not count as something to wait for. */
int io_add_internal(struct loop *loop, struct io *io, int fd, uint32_t events,
                    void (*fn)(struct io *io, uint32_t events));

/* ---- worker.c: one thread, started with the first work */
struct worker;
struct worker *worker_new(struct loop *loop);
void worker_free(struct worker *w); /* see loop_free() */
void worker_submit(struct worker *w, struct work *work);
size_t worker_outstanding(const struct worker *w);
