/*
 * sla_rig.h - what the tests of the profiler's arithmetic share.
 */
#pragma once

#include "unit/unit.h"

#include <math.h>

#include "probe/probe.h"
#include "json/json.h"

/* The document TEXT (YAML, so that quotes may be single), which must be good. */
static inline struct json *given(struct arena *a, const char *text)
{
        struct err err = ERR_INIT;
        struct json *j = yaml_parse(a, str_of(text), NULL, &err);

        if (!j)
                fail_msg("%s: %s", text, err.text);
        return j;
}

/* Equal to 12 digits. */
static inline void assert_near(double a, double b)
{
        if (!(fabs(a - b) <= 1e-12 * fmax(1, fmax(fabs(a), fabs(b)))))
                fail_msg("%.17g is not %.17g", a, b);
}

/* From LOW to HIGH, each about as likely on a logarithmic scale. */
static inline double any_between(struct rng *r, double low, double high)
{
        return low * pow(high / low, (double)rng_below(r, 1000001) / 1e6);
}
