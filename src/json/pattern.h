/*
 * pattern.h - regular expressions in RE2 syntax, as `pattern` in a schema has them.
 *
 * Matching takes time in proportion to text times pattern, whatever the two are: the expression becomes a list of
 * instructions, and all its states are followed at once. There are no captures: a pattern only says yes or no.
 * Characters are Unicode code points. Not supported, and refused: \p classes, \Q...\E, \C, octal escapes, and folding
 * the case of letters beyond ASCII. A pattern has at most 4096 bytes, 100 groups one in the other, and repetitions up to
 * 1000, those around them multiplied.
 */
#pragma once

#include "base/base.h"

struct pattern;

/* Compiles TEXT into the arena; NULL: error (E_INVALID, or E_TOO_LARGE for what would need too much memory). */
struct pattern *pattern_new(struct arena *a, struct str text, struct err *err) _must_check_;
/* True when TEXT contains a match. */
bool pattern_match(const struct pattern *p, struct str text);
