/*
 * quantity.h - amounts of resources as Kubernetes writes them: 500m, 1Gi, 1e3.
 *
 * Kept exactly down to a billionth; what is finer is rounded up, what is beyond 2^63-1 is that. Written again, an amount
 * has the largest suffix of its kind that leaves a whole number: 1000m is 1, 0.5 is 500m, 1024Mi is 1Gi.
 */
#pragma once

#include "json/json.h"

__extension__ typedef __int128 quantity_nano;

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

struct quantity {
        quantity_nano nano;
        enum quantity_format format;
};

bool quantity_parse(struct str s, struct quantity *ret);
/* In thousandths, rounded up and saturated; false: it is none. */
bool quantity_milli(struct str s, int64_t *ret);
/* Of a string or a number; false for anything else. */
bool quantity_of(const struct json *value, struct quantity *ret);
const char *quantity_print(const struct quantity *q, struct arena *a);
/* X plus Y. The sum of nothing and Y is written as Y is. */
struct quantity quantity_add(struct quantity x, struct quantity y);
struct quantity quantity_sub(struct quantity x, struct quantity y);
static inline int quantity_cmp(const struct quantity *x, const struct quantity *y)
{
        return (x->nano > y->nano) - (x->nano < y->nano);
}
