/*
 * names.h - names that fit, owner references.
 *
 * A derived name is PREFIX + STEM + SUFFIX when that fits and is valid. Otherwise the stem is made valid (lower case,
 * letters, digits, '-', '.' where allowed), cut, and given '-' and 10 base32 characters of a SHA-256 over the whole
 * original, so that two stems never meet. Nothing is ever random.
 */
#pragma once

#include "kube/type.h"

enum name_kind {
        NAME_SUBDOMAIN,   /* 253: ConfigMaps, custom resources */
        NAME_LABEL,       /* 63, no dots: Jobs that become host names, containers, namespaces */
        NAME_JOB,         /* 63, dots allowed: becomes a label value */
        NAME_LABEL_VALUE, /* 63: letters (both cases), digits, '-', '_', '.' */
};

/* Always valid for KIND (prefix and suffix must be). SALT (may be NULL) goes into the hash too, e.g. a uid. */
const char *name_fit(struct arena *a, enum name_kind kind, const char *prefix, const char *stem,
                     const char *suffix, const char *salt);
bool name_valid(enum name_kind kind, struct str name);
/* Of a variable of the environment: the API server takes any printing ASCII but '=', what a shell can name is what is meant. */
bool name_of_variable(struct str name);
/* 10 base32 characters (a-z, 2-7) of SHA-256 over DATA. */
const char *name_hash(struct arena *a, struct str data);

/* {apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true} of OWNER. */
struct json *owner_reference(struct arena *a, const struct kube_type *type, const struct json *owner);
