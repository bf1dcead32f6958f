/*
 * strategic.h - strategic merge patch, for built-in types.
 *
 * Lists of objects are merged by their merge key, lists of scalars as sets, where the field says so; all else as a merge
 * patch. Understood: $patch (delete, replace, merge), $deleteFromPrimitiveList/F, $setElementOrder/F, $retainKeys.
 */
#pragma once

#include "local/shape.h"

/* Changes TARGET in place and returns it, before defaults. NULL, with the API server's own wording: E_INVALID (400
 * BadRequest), E_REFUSED (422) or E_INTERNAL (500, without a reason), as Kubernetes answers. */
struct json *strategic_merge(const struct shape *shape, struct json *target, const struct json *patch,
                             struct arena *a, struct err *err) _must_check_;
