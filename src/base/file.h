/*
 * file.h - files: bounded reads, atomic replacement, descriptors that close themselves.
 */
#pragma once

#include "base/str.h"

/* Reads PATH whole into OUT (which is cleared first); more than out->max bytes is E_TOO_LARGE. */
int file_read(const char *path, struct buf *out, struct err *err) _must_check_;
/* Writes a temporary file beside PATH, fsyncs it, renames it over PATH and fsyncs the directory. */
int file_replace(const char *path, struct str data, unsigned mode, struct err *err) _must_check_;
/* Copies all that FROM has left to a temporary file of mode MODE beside PATH and renames it over PATH. */
int file_copy(int from, const char *path, unsigned mode, struct err *err) _must_check_;
/* The number after WORD in a file of lines "word number", as cgroups have them; below 0: it cannot be had. */
int64_t file_counter(const char *path, const char *word);
/* mkdir -p. */
int dir_make(const char *path, unsigned mode, struct err *err) _must_check_;

/* Reads FD to its end as file_read() does; NAME is for messages. */
int fd_read_all(int fd, const char *name, struct buf *out, struct err *err) _must_check_;
/* Writes all of DATA, whatever write() does. */
int fd_write_all(int fd, struct str data, struct err *err) _must_check_;
int fd_set_nonblock(int fd);
void fd_close(int fd); /* -1 is allowed; errno stays */
/* Lets this process have N descriptors open, or as many as it may: what there is must do. */
void fd_allow(unsigned n);

#define TAKE_FD(fd)                \
        ({                         \
                int taken_ = (fd); \
                (fd) = -1;         \
                taken_;            \
        })

static inline void fd_close_p(int *fd)
{
        fd_close(*fd);
}
