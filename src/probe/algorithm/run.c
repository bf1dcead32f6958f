/*
 * Inputs, the timed region, and the check of what came out.
 */
#include <sys/resource.h>
#include <time.h>

#include "probe/algorithm/internal.h"

enum { NEARLY = 100 /* one swap for so many */, FEW_VALUES = 16 };

void algorithm_input(int32_t *values, size_t n, const struct algorithm_options *o)
{
        struct rng rng;

        rng_seed(&rng, o->seed);
        for (size_t i = 0; i < n; i++)
                switch (o->input) {
                case INPUT_SORTED:
                case INPUT_NEARLY_SORTED:
                        values[i] = (int32_t)i;
                        break;
                case INPUT_REVERSED:
                        values[i] = (int32_t)(n - i);
                        break;
                case INPUT_FEW_UNIQUE:
                        values[i] = (int32_t)rng_below(&rng, FEW_VALUES);
                        break;
                default:
                        values[i] = (int32_t)(uint32_t)(rng_next(&rng) >> 32);
                }
        if (o->input == INPUT_NEARLY_SORTED && n > 1)
                for (size_t i = 0; i <= n / NEARLY; i++)
                        swap_values(&values[rng_below(&rng, n)], &values[rng_below(&rng, n)]);
}

void algorithm_sort(const struct algorithm *al, int32_t *values, int32_t *spare, size_t n,
                    const struct algorithm_options *o)
{
        al->sort(&(struct sort){.values = values, .spare = spare, .n = n, .o = o});
}

/* The same for the same values in any order. */
static uint64_t values_sum(const int32_t *values, size_t n)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t x = ((uint64_t)(uint32_t)values[i] + 1) * UINT64_C(0x9E3779B97F4A7C15);

                sum += x ^ (x >> 29);
        }
        return sum;
}

static bool in_order(const int32_t *values, size_t n)
{
        for (size_t i = 1; i < n; i++)
                if (values[i - 1] > values[i])
                        return false;
        return true;
}

struct moment {
        struct timespec wall;
        struct rusage used;
};

/* The wall's moment is taken nearest to what is timed. */
static void begin(struct moment *m)
{
        getrusage(RUSAGE_SELF, &m->used);
        clock_gettime(CLOCK_MONOTONIC, &m->wall);
}

static void end(struct moment *m)
{
        clock_gettime(CLOCK_MONOTONIC, &m->wall);
        getrusage(RUSAGE_SELF, &m->used);
}

static double between(struct timeval from, struct timeval to)
{
        return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_usec - from.tv_usec) * 1e-6;
}

static struct algorithm_times times_of(const struct moment *from, const struct moment *to)
{
        return (struct algorithm_times){
                .wall = (double)(to->wall.tv_sec - from->wall.tv_sec) +
                        (double)(to->wall.tv_nsec - from->wall.tv_nsec) * 1e-9,
                .user = between(from->used.ru_utime, to->used.ru_utime),
                .sys = between(from->used.ru_stime, to->used.ru_stime),
        };
}

/* Numbers that are in memory before the time runs. */
static int32_t *room(size_t n)
{
        int32_t *p = malloc(MAX(n, (size_t)1) * sizeof(*p));

        if (p)
                memset(p, 0xA5, n * sizeof(*p));
        return p;
}

int algorithm_run(const struct algorithm *al, size_t n, const struct algorithm_options *o,
                  struct algorithm_times *ret, struct err *err)
{
        _cleanup_(free_ptr) int32_t *values = NULL, *spare = NULL;
        struct moment from, to;
        uint64_t sum;

        if (n > ALGORITHM_SIZE_MAX)
                return err_set(err, E_TOO_LARGE, "the size %zu is larger than %d", n, ALGORITHM_SIZE_MAX);
        values = room(n);
        spare = al->spare ? room(n) : NULL;
        if (!values || (al->spare && !spare))
                return err_set(err, E_TOO_LARGE, "there is no memory for %zu numbers", n);
        algorithm_input(values, n, o);
        sum = values_sum(values, n);

        begin(&from);
        algorithm_sort(al, values, spare, n, o);
        end(&to);

        if (!in_order(values, n) || values_sum(values, n) != sum)
                return err_set(err, E_INTERNAL, "%s gave a wrong result for %zu numbers of seed %llu",
                               al->name, n, (unsigned long long)o->seed);
        *ret = times_of(&from, &to);
        return 0;
}
