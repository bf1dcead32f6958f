/*
 * path.h - JSON Pointer (RFC 6901) and dotted paths.
 *
 * A dotted path is what people write: spec.template.containers[0].name, labels["app.kubernetes.io/name"].
 */
#pragma once

#include "json/doc.h"

/* NULL when nothing is there, or when the pointer is malformed. "" is the root. */
struct json *json_pointer(const struct json *root, const char *pointer);
struct json *json_path(const struct json *root, const char *path);
/* Sets what PATH names, making objects on the way; NULL when an array or a scalar is in the way. */
struct json *json_path_set(struct arena *a, struct json *root, const char *path, struct json *value);
/* Adds ".key", ["k.e.y"] or [i] to a dotted path. */
void json_path_add_key(struct buf *path, struct str key);
void json_path_add_index(struct buf *path, size_t index);
