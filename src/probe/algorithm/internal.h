/*
 * internal.h - what the files about the built-in algorithms share.
 *
 *   algorithm.c   the table, and what may be said to each
 *   simple.c      those that need a loop or two
 *   divide.c      those that divide: quick_sort, merge_sort
 *   run.c         inputs, the timed region, the check
 */
#pragma once

#include "probe/algorithm/algorithm.h"

struct sort {
        int32_t *values, *spare; /* spare: NULL unless it is needed */
        size_t n;
        const struct algorithm_options *o;
};

struct algorithm {
        const char *name, *about;
        void (*sort)(const struct sort *s);
        bool spare, pivot, parallel; /* what it needs, what may be said to it */
};

void sort_bubble(const struct sort *s);
void sort_heap(const struct sort *s);
void sort_insertion(const struct sort *s);
void sort_merge(const struct sort *s);
void sort_quick(const struct sort *s);
void sort_radix(const struct sort *s);
void sort_selection(const struct sort *s);
void sort_shell(const struct sort *s);
void sort_std(const struct sort *s);

static inline void swap_values(int32_t *x, int32_t *y)
{
        int32_t t = *x;

        *x = *y;
        *y = t;
}

/* Of few values, by those that divide too. */
static inline void insert_sorted(int32_t *v, size_t n)
{
        for (size_t i = 1; i < n; i++) {
                int32_t value = v[i];
                size_t at = i;

                for (; at > 0 && v[at - 1] > value; at--)
                        v[at] = v[at - 1];
                v[at] = value;
        }
}
