/*
 * yaml_scalar.h - what a YAML scalar stands for, as go-yaml v2 (and so kubectl) decides it.
 *
 * Numbers keep their digits: only what JSON cannot say (0x1F, 1_000, .5, 1., +1) is rewritten, without a detour
 * through a double. Timestamps need no rule of their own: none of them looks like a number, so they stay strings.
 */
#pragma once

#include "json/doc.h"

enum yaml_kind {
        YAML_KIND_NULL,
        YAML_KIND_BOOL,
        YAML_KIND_INT,
        YAML_KIND_FLOAT,
        YAML_KIND_SPECIAL, /* .inf, -.inf, .nan */
        YAML_KIND_STR,
};

struct yaml_value {
        enum yaml_kind kind;
        bool truth;
        struct str text; /* of strings, and of numbers as JSON; borrowed or in the arena, NUL-terminated */
};

/* A plain scalar. TEXT is NUL-terminated and must live as long as the result. */
struct yaml_value yaml_resolve(struct arena *a, struct str text);
/* The member name that VALUE makes; p == NULL for null and for integers over INT64_MAX, which kubectl refuses. */
struct str yaml_key(struct arena *a, const struct yaml_value *value);
