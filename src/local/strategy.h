/*
 * strategy.h - what is particular to each built-in resource.
 */
#pragma once

#include "local/types.h"

/* STORE is the type's name in the store: "pods", "jobs.batch". Never NULL. */
const struct strategy *strategy_of(const char *store);
/* The columns of kubectl's table; N is 0 and COLUMNS NULL when there are none but name and age. */
void strategy_columns(const char *store, const struct table_column **columns, size_t *n);
/* Between events.k8s.io and core events, as which they are stored. The first also does what normalize_builtin() does. */
void event_to_stored(const struct api_type *t, struct json *object, struct arena *a);
void event_from_stored(const struct api_type *t, struct json *object, struct arena *a);
