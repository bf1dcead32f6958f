/*
 * check.h - formats of names and labels, with the API server's wording.
 *
 * Each returns what is wrong, to follow `Invalid value: "x": `; NULL when nothing is. Several problems of one value are
 * several causes: ask again with NTH 1, 2, ...
 */
#pragma once

#include "local/types.h"

const char *check_subdomain(struct str s, size_t nth);    /* RFC 1123 subdomain, 253 */
const char *check_label(struct str s, size_t nth);        /* RFC 1123 label, 63 */
const char *check_dns1035(struct str s, size_t nth);      /* names of Services */
const char *check_path_segment(struct str s, size_t nth); /* names of Roles */
const char *check_qualified(struct str s, size_t nth);    /* keys of labels and annotations, finalizers */
const char *check_label_value(struct str s, size_t nth);
const char *check_config_key(struct str s, size_t nth); /* keys of ConfigMaps and Secrets */
const char *check_env_name(struct str s, size_t nth);

typedef const char *(*check_fn)(struct str s, size_t nth);
/* Adds a FieldValueInvalid for every problem of VALUE. */
void check_value(struct causes *c, const char *field, const char *value, check_fn check);
void check_labels(struct causes *c, const char *field, const struct json *labels);
