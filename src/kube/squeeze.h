/*
 * squeeze.h - many texts that are much alike, in few bytes.
 *
 * A text is deflated with an earlier one as its dictionary, so that what is left is where it differs. The first texts that
 * the dictionaries there are do not make smaller by half become dictionaries themselves, four at most; but not one that is
 * not halved even by its own beginning.
 */
#pragma once

#include "base/base.h"

enum { SQUEEZE_DICTIONARIES = 4 };

/* Zero is an empty one. */
struct squeeze {
        struct str dictionaries[SQUEEZE_DICTIONARIES];
        struct buf out; /* scratch, of both directions */
};

void squeeze_free(struct squeeze *s);
/* TEXT in fewer bytes, until the next call; the number of its dictionary, from 1. 0: it is better as it is. */
unsigned squeeze_text(struct squeeze *s, struct str text, struct str *ret);
/* The text again, of N bytes, until the next call. */
struct str squeeze_expand(struct squeeze *s, struct str squeezed, unsigned dictionary, size_t n);
