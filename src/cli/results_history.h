/*
 * results_history.h - a run from the history, for `sonde results --history`.
 */
#pragma once

#include "history/history.h"
#include "json/json.h"

/* The newest run that passes FILTER, with its samples and phases: as history_row_json(), with `seconds`; in the arena. */
int results_history(const struct history_config *place, const struct history_filter *filter, struct arena *a,
                    struct json **ret, struct err *err) _must_check_;
