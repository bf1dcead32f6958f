/*
 * strategy.h - what is particular to each built-in resource.
 */
#pragma once

#include "local/types.h"

/* STORE is the type's name in the store: "pods", "jobs.batch". Never NULL. */
const struct strategy *strategy_of(const char *store);
/* The columns of kubectl's table; N is 0 and COLUMNS NULL when there are none but name and age. */
void strategy_columns(const char *store, const struct table_column **columns, size_t *n);
