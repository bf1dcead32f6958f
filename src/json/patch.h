/*
 * patch.h - merge patch (RFC 7386), JSON Patch (RFC 6902), diff.
 *
 * The document that is patched is changed in place; what the patch brings is copied. A JSON Patch either applies
 * whole or leaves the document as it was.
 */
#pragma once

#include "json/doc.h"

/* Returns the patched document, which is TARGET itself unless the patch replaces it. TARGET may be NULL. */
struct json *json_merge_patch(struct arena *a, struct json *target, const struct json *patch);
/* The smallest merge patch that makes FROM into TO; NULL when they are equal. Nulls in TO cannot be expressed
 * and are left out (RFC 7386). */
struct json *json_merge_diff(struct arena *a, const struct json *from, const struct json *to);

/* E_FENCED: a `test` failed; E_INVALID: the patch is malformed or names what is not there. */
int json_patch(struct arena *a, struct json **root, const struct json *patch, struct err *err) _must_check_;
/* A JSON Patch (array) that makes FROM into TO; empty when they are equal. */
struct json *json_diff(struct arena *a, const struct json *from, const struct json *to);
