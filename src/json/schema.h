/*
 * schema.h - structural schemas as CRDs have them: validation, defaulting, pruning.
 *
 * The subset of OpenAPI v3 that apiextensions.k8s.io/v1 allows: type, nullable, format (date, date-time, byte, duration,
 * email, hostname, ipv4, ipv6, cidr, mac, uri, uuid, uuid3 to uuid5, password; int32, int64, float, double and unknown
 * ones mean nothing, as for the API server), enum, pattern (RE2 syntax, see pattern.h), minimum/maximum with exclusive*,
 * multipleOf, min/maxLength (characters), min/maxItems, uniqueItems, min/maxProperties, required, properties,
 * additionalProperties, items, allOf, anyOf, oneOf, not, default, x-kubernetes-preserve-unknown-fields,
 * x-kubernetes-int-or-string, x-kubernetes-embedded-resource, x-kubernetes-list-type set and map with list-map-keys.
 *
 * A schema is compiled once from its document (and keeps what it needs of it); the compiled form is read-only.
 * Messages use the API server's own wording: `spec.replicas: Invalid value: "string": spec.replicas in body must be
 * of type integer: "string"`. They are those of 1.20, but paths name the index of an element, as those of newer
 * servers do; see test/data/schema. As there, a failed anyOf, oneOf, allOf or not has the field "<nil>".
 */
#pragma once

#include "json/doc.h"

struct schema;

/* Compiles SPEC (the value of openAPIV3Schema); E_INVALID names the path of what is not structural. */
struct schema *schema_new(const struct json *spec, struct err *err) _must_check_;
void schema_free(struct schema *s);

enum schema_cause_type {
        CAUSE_INVALID,      /* FieldValueInvalid */
        CAUSE_REQUIRED,     /* FieldValueRequired */
        CAUSE_DUPLICATE,    /* FieldValueDuplicate */
        CAUSE_UNSUPPORTED,  /* FieldValueNotSupported */
        CAUSE_TYPE_INVALID, /* FieldValueTypeInvalid */
        CAUSE_TOO_LONG,     /* FieldValueTooLong */
        CAUSE_TOO_MANY,     /* FieldValueTooMany */
};

struct schema_cause {
        enum schema_cause_type type;
        const char *field;     /* "spec.algorithms[1].framework" */
        const char *message;   /* without the field: `Required value` */
        const struct json *at; /* the offending node (its line and column), or its nearest parent */
};

struct schema_report {
        struct schema_cause *causes; /* in document order, in the arena, at most 64 */
        size_t n;
};

const char *schema_cause_reason(enum schema_cause_type type); /* "FieldValueInvalid" */
/* True when VALUE fits. REPORT may be NULL. */
bool schema_validate(const struct schema *s, const struct json *value, struct arena *a,
                     struct schema_report *report);
/* Fills in defaults where an object is there and the member is not. A null where the schema allows none counts as not
 * there: without a default the member goes. VALUE is changed in place. */
void schema_default(const struct schema *s, struct json *value, struct arena *a);
/* Removes members the schema does not name. At the root and in embedded resources apiVersion, kind and metadata stay.
 * DROPPED, if not NULL, gets the dotted paths that went, one per line. */
void schema_prune(const struct schema *s, struct json *value, struct buf *dropped);

/* S as Go's %q writes it: the API server's messages hold values in that form. */
void go_quote(struct str s, struct buf *out);

DEFINE_CLEANUP_PTR(struct schema *, schema_free)
