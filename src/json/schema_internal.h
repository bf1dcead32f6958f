/*
 * schema_internal.h - between the compiler of schemas and those who use the compiled form.
 */
#pragma once

#include "json/pattern.h"
#include "json/schema.h"

enum schema_type {
        TYPE_STRING = 1,
        TYPE_INTEGER = 2,
        TYPE_NUMBER = 4,
        TYPE_BOOLEAN = 8,
        TYPE_ARRAY = 16,
        TYPE_OBJECT = 32,
};

enum list_type { LIST_ATOMIC, LIST_SET, LIST_MAP };

struct schema_format {
        const char *name; /* without dashes */
        bool (*valid)(struct str s);
};

struct schema_bound {
        bool set, exclusive;
        double value;
};

struct schema_node;

struct schema_property {
        struct str name;
        struct schema_node *node;
};

struct schema_nodes {
        struct schema_node **v;
        size_t n;
};

struct schema_names {
        const char **v;
        size_t n;
};

struct schema_node {
        unsigned types; /* of enum schema_type; 0: any */
        bool nullable, int_or_string, preserve, embedded, unique_items;
        bool additional_any; /* additionalProperties: true */
        enum list_type list_type;
        struct schema_names list_keys, required;
        const struct schema_format *format;
        const char *format_name;     /* as written */
        const struct json *values;   /* enum; NULL: none */
        const struct json *fallback; /* default; NULL: none */
        struct pattern *pattern;
        const char *pattern_text;
        struct schema_bound minimum, maximum, multiple_of;
        int64_t min_length, max_length, min_items, max_items; /* -1: none */
        int64_t min_properties, max_properties;
        struct schema_property *properties; /* sorted by name */
        size_t n_properties;
        struct schema_node *items, *additional, *not ;
        struct schema_nodes all_of, any_of, one_of;
};

struct schema {
        struct arena arena;
        struct schema_node *root;
};

const struct schema_node *schema_property(const struct schema_node *s, struct str name);
/* The schema of a member: its property's, that of additional ones, or NULL. */
const struct schema_node *schema_member(const struct schema_node *s, struct str name);
/* NULL when NAME is unknown (then it means nothing, as for the API server). */
const struct schema_format *schema_format_find(const char *name);
/* One of those that the API server knows and we do not. */
bool schema_format_unsupported(const char *name);
/* "integer,string" */
const char *schema_type_names(unsigned types);
const char *schema_meta_field(struct str name); /* NULL unless apiVersion, kind or metadata */

/* ---- places, in a schema or in a value: a list on the stack */

enum spot_kind {
        SPOT_CHILD, /* .name */
        SPOT_KEY,   /* [name], as the API server has it for maps in some of its paths, or .name in others */
        SPOT_INDEX, /* [i] */
};

struct spot {
        const struct spot *up; /* NULL: the root */
        enum spot_kind kind;
        struct str name;
        size_t index;
};

enum spot_style { SPOT_BODY /* SPOT_KEY as .name */, SPOT_FIELD /* SPOT_KEY as [name] */ };

void spot_write(const struct spot *s, enum spot_style style, struct buf *out);
const char *spot_print(struct arena *a, const struct spot *s, enum spot_style style);

/* ---- values as Go prints them in the API server's messages */

void go_float(double x, struct buf *out);             /* %v */
void go_value(const struct json *j, struct buf *out); /* as field.Error prints a bad value */

/* A number as the API server holds it: int64 when written as an integer that fits, else float64. */
struct go_number {
        bool whole;
        int64_t i;
        double d;
};
struct go_number go_number(const struct json *number);
/* A text that is the same for equal values and differs for others: members sorted, numbers in one form. */
void go_canonical(const struct json *j, struct buf *out);

/* ---- the work of the public functions on any node of a schema, for the compiler's look at defaults */

bool schema_check(const struct schema_node *s, const struct json *value, struct arena *a,
                  struct schema_report *report);
void schema_prune_node(const struct schema_node *s, struct json *value, bool resource, struct buf *dropped);
