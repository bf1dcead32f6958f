/*
 * vec.h - growing arrays.
 *
 * VEC(T) is a struct with a pointer, a count and a capacity; `struct { T *v; size_t n, cap; }` written once.
 */
#pragma once

#include "base/mem.h"

#define VEC(T)                 \
        struct {               \
                T *v;          \
                size_t n, cap; \
        }

void vec_grow_raw(void **v, size_t n, size_t *cap, size_t size);

/* A pointer to a new, zeroed last element. */
#define vec_push(vec)                                                                               \
        ({                                                                                          \
                if ((vec)->n == (vec)->cap)                                                         \
                        vec_grow_raw((void **)&(vec)->v, (vec)->n, &(vec)->cap, sizeof(*(vec)->v)); \
                memset(&(vec)->v[(vec)->n], 0, sizeof(*(vec)->v));                                  \
                &(vec)->v[(vec)->n++];                                                              \
        })
#define vec_done(vec)                      \
        do {                               \
                free((vec)->v);            \
                (vec)->v = NULL;           \
                (vec)->n = (vec)->cap = 0; \
        } while (0)
#define vec_foreach(it, vec) \
        for (__typeof__((vec)->v + 0) it = (vec)->v; it && it < (vec)->v + (vec)->n; it++)
