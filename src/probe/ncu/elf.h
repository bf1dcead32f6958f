/*
 * elf.h - which libraries a program needs, and where its loader finds them.
 *
 * Everything is read from files that somebody else made: every offset is checked, every list is bounded.
 */
#pragma once

#include "base/base.h"

/* ---- elf.c */

enum {
        ELF_PATH_MAX = 4096, /* of a name or a list of directories */
        ELF_NEEDED_MAX = 1024,
};

struct elf {
        int bits; /* 32, 64 */
        uint16_t machine;
        const char *interpreter;     /* the loader; NULL: none is named */
        const char *rpath, *runpath; /* NULL: none */
        size_t n_needed;
        const char **needed;
};

/* 0: read; strings are in the arena. 1: FD is no ELF file. Below 0: it is one that cannot be used. */
int elf_read(struct arena *a, int fd, struct elf *ret, struct err *err) _must_check_;
/* Whether FD is an ELF file for the same machine. */
bool elf_fits(int fd, const struct elf *as);

/* ---- loader.c */

struct loader {
        struct arena *a;
        const char *root;         /* before all absolute paths ("" outside of tests) */
        const char *library_path; /* LD_LIBRARY_PATH; may be NULL */
        const char *interpreter;  /* of the program; NULL: none */
        struct buf cache;         /* /etc/ld.so.cache */
        const char *extra;        /* directories of musl's path file; may be NULL */
};

/* An object, and the one for which it was loaded. */
struct loaded {
        const char *path;
        struct elf elf;
        const struct loaded *by; /* NULL: the program itself */
};

void loader_init(struct loader *l, struct arena *a, const char *root, const char *library_path,
                 const char *interpreter);
void loader_done(struct loader *l);
/* The path of the library NAME that O needs, found as ld.so or musl's loader do; NULL: nowhere. */
const char *loader_find(struct loader *l, const struct loaded *o, const char *name);

/* The next path that a ld.so.cache has for NAME (NULL: for any); *AT begins with 0. NULL: no more, or it is not one. */
const char *ld_cache_next(struct arena *a, struct str cache, const char *name, size_t *at);

DEFINE_CLEANUP_STRUCT(struct loader, loader_done)
