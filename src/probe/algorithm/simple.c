/*
 * Sorting with a loop or two.
 */
#include "probe/algorithm/internal.h"

/*
 * The greater of two goes on, the lesser stays: the same comparisons and places as with swaps, but no jump that depends on the
 * values, so that a step takes the same time for any size.
 */
void sort_bubble(const struct sort *s)
{
        int32_t *v = s->values;

        /* What is behind the last that was out of order is in its place. */
        for (size_t end = s->n, last; end > 1; end = last) {
                int32_t carried = v[0];

                last = 0;
                for (size_t i = 1; i < end; i++) {
                        int32_t next = v[i];

                        last = carried > next ? i : last;
                        v[i - 1] = MIN(carried, next);
                        carried = MAX(carried, next);
                }
                v[end - 1] = carried;
        }
}

void sort_insertion(const struct sort *s)
{
        insert_sorted(s->values, s->n);
}

void sort_selection(const struct sort *s)
{
        for (size_t i = 0; i + 1 < s->n; i++) {
                size_t least = i;

                for (size_t j = i + 1; j < s->n; j++)
                        if (s->values[j] < s->values[least])
                                least = j;
                swap_values(&s->values[i], &s->values[least]);
        }
}

/* Ciura's distances, and beyond them each 2.25 times the one before. */
void sort_shell(const struct sort *s)
{
        size_t gaps[64] = {1, 4, 10, 23, 57, 132, 301, 701}, n = 8;

        while (n < ARRAY_LEN(gaps) && gaps[n - 1] < s->n / 2) {
                gaps[n] = gaps[n - 1] / 4 * 9;
                n++;
        }
        while (n-- > 0)
                for (size_t i = gaps[n]; i < s->n; i++) {
                        int32_t value = s->values[i];
                        size_t at = i;

                        for (; at >= gaps[n] && s->values[at - gaps[n]] > value; at -= gaps[n])
                                s->values[at] = s->values[at - gaps[n]];
                        s->values[at] = value;
                }
}

static void sift_down(int32_t *v, size_t at, size_t n)
{
        int32_t value = v[at];

        for (size_t child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && v[child + 1] > v[child])
                        child++;
                if (v[child] <= value)
                        break;
                v[at] = v[child];
        }
        v[at] = value;
}

void sort_heap(const struct sort *s)
{
        for (size_t i = s->n / 2; i-- > 0;)
                sift_down(s->values, i, s->n);
        for (size_t end = s->n; end > 1; end--) {
                swap_values(&s->values[0], &s->values[end - 1]);
                sift_down(s->values, 0, end - 1);
        }
}

/* Byte by byte from the lowest; the sign turned over, so that below 0 comes first. An even number of passes ends in place. */
void sort_radix(const struct sort *s)
{
        uint32_t *from = (uint32_t *)s->values, *to = (uint32_t *)s->spare;
        const uint32_t sign = UINT32_C(1) << 31;

        for (unsigned shift = 0; shift < 32; shift += 8) {
                size_t starts[257] = {0};
                uint32_t *t = from;

                for (size_t i = 0; i < s->n; i++)
                        starts[(((from[i] ^ sign) >> shift) & 0xFF) + 1]++;
                for (size_t b = 1; b < 257; b++)
                        starts[b] += starts[b - 1];
                for (size_t i = 0; i < s->n; i++)
                        to[starts[((from[i] ^ sign) >> shift) & 0xFF]++] = from[i];
                from = to;
                to = t;
        }
}

static int compare(const void *a, const void *b)
{
        int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return (x > y) - (x < y);
}

void sort_std(const struct sort *s)
{
        if (s->n > 1)
                qsort(s->values, s->n, sizeof(*s->values), compare);
}
