/*
 * llm_private.h - the two ways to read an event.
 *
 * Most events of a stream are alike: one choice with a short text, as the same few engines write it. llm_event_scan()
 * goes over such a text once and makes no document of it. It never errs: what it is not sure of it leaves to
 * llm_event_read(), which knows all shapes and says what is wrong; where both know an event, they say the same.
 */
#pragma once

#include "probe/load/llm.h"

/* False: another shape, or no event; RET is then worth nothing. DATA is not "[DONE]", for both. */
bool llm_event_scan(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *ret);
int llm_event_read(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *ret,
                   struct err *err) _must_check_;
