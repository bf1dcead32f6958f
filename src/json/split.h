/*
 * split.h - a stream of bytes cut into the JSON values it holds.
 *
 * A list of 10 000 objects is 20 MB on the wire; nobody needs it in memory at once. The splitter finds the borders
 * of values by scanning for quotes and brackets only, and hands on each as soon as it is complete, without a copy
 * when it came in one piece. The pieces are not validated: whoever gets one parses it.
 *
 *   SPLIT_VALUES  values one after the other, blanks (also CRLF) between them: a watch.
 *   SPLIT_ITEMS   one object; the elements of its member "items" are handed on one by one, and json_split_end()
 *                 gives the object with an empty "items" (kind, apiVersion, metadata), wherever in it they stood. Anything but
 *                 an array (null, as Go writes an empty list) stays as it is.
 */
#pragma once

#include "json/doc.h"

enum json_split_mode { SPLIT_VALUES, SPLIT_ITEMS };

struct json_split;

/* One complete value; borrowed for the call. Below 0 with ERR set stops the splitter. */
typedef int (*json_split_fn)(void *arg, struct str value, struct err *err);

/* MAX bounds one value, and in SPLIT_ITEMS also all that surrounds the items. */
struct json_split *json_split_new(enum json_split_mode mode, size_t max, json_split_fn fn, void *arg);
void json_split_free(struct json_split *s);
int json_split_feed(struct json_split *s, struct str chunk, struct err *err) _must_check_;
/* The stream has ended; E_LOST in the middle of a value. RET (may be NULL) borrows until the next call. */
int json_split_end(struct json_split *s, struct str *ret, struct err *err) _must_check_;

DEFINE_CLEANUP_PTR(struct json_split *, json_split_free)
