/*
 * clock.h - clocks that a test can replace, RFC 3339 times, jitter.
 *
 * usec_t counts microseconds. Intervals are measured with CLOCK_BOOTTIME, which goes on while the machine sleeps
 * or the process is stopped: a lease that ran out meanwhile has run out. Wall time is used only for what people and
 * other programs read. Nobody but a struct clock asks the kernel; a test sets one by hand.
 */
#pragma once

#include "base/str.h"

typedef uint64_t usec_t;

#define USEC_PER_MS  ((usec_t)1000)
#define USEC_PER_SEC ((usec_t)1000000)
#define USEC_MAX     UINT64_MAX

struct clock {
        bool manual; /* a test's clock: the two values are what it says */
        usec_t boot, wall;
};

#define CLOCK_REAL              \
        {                       \
                .manual = false \
        }

usec_t clock_boot(const struct clock *c);      /* since an arbitrary start, never goes back */
usec_t clock_wall(const struct clock *c);      /* since 1970-01-01 UTC */
uint64_t clock_boot_ns(const struct clock *c); /* as clock_boot(), in nanoseconds */
/* The moment of clock_boot_ns() that the wall clock called WALL_NS, by how the two stand now. */
uint64_t clock_boot_ns_of(const struct clock *c, uint64_t wall_ns);

/* Sums that stop at the ends instead of wrapping. */
static inline usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_MAX - b ? USEC_MAX : a + b;
}
static inline usec_t usec_sub(usec_t a, usec_t b)
{
        return a > b ? a - b : 0;
}

enum { TIME_TEXT_MAX = 40 };
/* "2026-11-15T21:43:48Z", as metav1.Time, or with microseconds, as metav1.MicroTime. Both return OUT. */
char *time_format(usec_t wall, char out[TIME_TEXT_MAX]);
char *time_format_micro(usec_t wall, char out[TIME_TEXT_MAX]);
/* RFC 3339 and Python's isoformat(): any fraction (cut to microseconds), 'Z', an offset or no zone (UTC). */
bool time_parse(struct str s, usec_t *ret_wall);

/* A small seeded generator (xoshiro256**): jitter, test schedules. Not for secrets. */
struct rng {
        uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
void rng_seed_random(struct rng *r);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t limit); /* 0 ... limit-1; 0 for limit 0 */
/* BASE plus up to FRACTION_PERCENT of it. */
usec_t rng_jitter(struct rng *r, usec_t base, unsigned fraction_percent);
