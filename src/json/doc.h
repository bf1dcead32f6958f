/*
 * doc.h - JSON nodes: parse, read, change, build, compare, write.
 *
 * A node is 40 bytes; children form a ring through `next`, and a container points at its last child, so appending
 * and iterating need no array. Nodes are changed in place and never freed singly: the arena goes as a whole. A node
 * belongs to at most one container; json_copy() makes another, and putting one in two ends the program.
 *
 * Readers take NULL for "not there" and give NULL (or the default) back, so that paths can be chained:
 * json_str(json_at(obj, "metadata"), "name"). A string with a NUL byte inside has no C string: json_str() and
 * json_cstr() say NULL, json_text() gives all of it.
 */
#pragma once

#include "base/base.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
        struct json *next; /* in the ring of siblings; the last one's is the first */
        const char *key;   /* member name, NUL-terminated; NULL outside objects */
        union {
                const char *
                        text; /* strings (decoded, NUL-terminated) and numbers (as written, not terminated) */
                struct json *last; /* arrays and objects; NULL when empty */
                bool truth;
        };
        uint32_t key_len;
        uint32_t len;    /* strings and numbers: bytes; arrays and objects: children */
        uint32_t line;   /* where it began, from 1; 0: unknown. Filled in by YAML only */
        uint16_t column; /* from 1, at most 65535 */
        uint8_t type;
        uint8_t has_nul; /* the string holds a NUL byte */
};

struct json_limits {
        size_t bytes; /* of text */
        unsigned depth;
        size_t nodes;
        /* The names that lead to a member, ended by NULL: it is checked like all others, but not kept. NULL: none. */
        const char *const *leave_out;
        /* The same for a member behind which nothing is read, nor checked: as if the text ended there. NULL: none. */
        const char *const *stop_after;
};

/* 8 MiB, 128 deep, one million nodes: what NULL limits and a limit of 0 mean. No depth goes beyond 1024. */
extern const struct json_limits JSON_LIMITS_DEFAULT;

/* ---- parse: RFC 8259 exactly; valid UTF-8 only; of two members of one name the last wins, in the first's place */

/* Copies TEXT into the arena and parses it; NULL: error, with line and column. LIMITS may be NULL. */
struct json *json_parse(struct arena *a, struct str text, const struct json_limits *limits, struct err *err)
        _must_check_;
/* The same on N bytes that are the caller's to give: text[N] must be writable too. They must live as long as the
 * nodes and are overwritten. */
struct json *json_parse_insitu(struct arena *a, char *text, size_t n, const struct json_limits *limits,
                               struct err *err) _must_check_;

/* A document with an arena of its own, for whoever has none. */
struct doc {
        struct arena arena;
        struct json *root;
};
#define DOC_INIT             \
        {                    \
                .root = NULL \
        }
void doc_done(struct doc *doc);
int doc_parse(struct doc *doc, struct str text, const struct json_limits *limits, struct err *err)
        _must_check_;
DEFINE_CLEANUP_STRUCT(struct doc, doc_done)

/* ---- read */

static inline bool json_is(const struct json *j, enum json_type type)
{
        return j && j->type == type;
}

static inline struct json *json_first(const struct json *container)
{
        return container && container->type >= JSON_ARRAY && container->last ? container->last->next : NULL;
}

static inline struct json *json_next(const struct json *container, const struct json *child)
{
        return child == container->last ? NULL : child->next;
}

/* Children in order. The body may change CHILD but not the ring; use json_next() by hand to remove. */
#define json_foreach(child, container) \
        for (struct json *child = json_first(container); child; child = json_next((container), child))

struct json *json_get(const struct json *object, struct str key);
/* Inline, as are json_str() and json_set(): the length of a name that is written in the program is known there. */
static inline struct json *json_at(const struct json *object, const char *key)
{
        return json_get(object, str_of(key));
}
struct json *json_index(const struct json *array, size_t i);
size_t json_len(const struct json *container); /* children; 0 for anything else */

struct str json_text(const struct json *string);  /* p == NULL for anything else */
const char *json_cstr(const struct json *string); /* NULL for anything else */
static inline const char *json_str(const struct json *object, const char *key)
{
        return json_cstr(json_at(object, key));
}
const char *json_str_or(const struct json *object, const char *key, const char *otherwise);
bool json_bool(const struct json *object, const char *key, bool otherwise);
/* The member as an integer; OTHERWISE when it is missing, no number, not whole or out of range. */
int64_t json_int(const struct json *object, const char *key, int64_t otherwise);

/* Exact: 1.0 and 1e2 are integers, 1.5 and 2^63 are not. */
bool json_to_i64(const struct json *number, int64_t *ret);
bool json_to_u64(const struct json *number, uint64_t *ret);
bool json_to_double(const struct json *number, double *ret); /* rounded; false for 1e400 */
const char *json_type_name(enum json_type type);             /* "object" */
/* The element of ARRAY whose member "name" is NAME. */
struct json *json_find_named(const struct json *array, const char *name);

/* ---- change */

struct json *json_null(struct arena *a);
struct json *json_truth(struct arena *a, bool value);
struct json *json_i64(struct arena *a, int64_t value);
struct json *json_u64(struct arena *a, uint64_t value);
/* Shortest text that reads back as VALUE; NULL (left out by json_set) for infinities and NaN. */
struct json *json_double(struct arena *a, double value);
struct json *json_string(struct arena *a, const char *s); /* NULL gives NULL. Invalid UTF-8 becomes U+FFFD */
struct json *json_stringn(struct arena *a, struct str s);
struct json *json_array(struct arena *a);
struct json *json_object(struct arena *a);

/* Sets the member, in place of one of that name or at the end. VALUE NULL: leaves the object as it is. Returns VALUE. */
struct json *json_setn(struct arena *a, struct json *object, struct str key, struct json *value);
static inline struct json *json_set(struct arena *a, struct json *object, const char *key, struct json *value)
{
        return json_setn(a, object, str_of(key), value);
}
struct json *json_append(struct json *array, struct json *value); /* NULL is left out */
/* Takes the member (or the child) out of its container and returns it; NULL when there was none. */
struct json *json_remove(struct json *object, const char *key);
struct json *json_take(struct json *container, struct json *child);
struct json *json_copy(struct arena *a, const struct json *j); /* deep; strings too; NULL of NULL */

/*
 * Builds a document from a template: JSON in which ' may stand for ", and values may be conversions of printf:
 *   %s %.*s       a string (NULL: null)                    %d %ld %lld %u %lu %llu %zu   a number
 *   %p            a struct json *, which becomes part of the document; a NULL leaves out the member or element
 * Conversions also work inside quoted strings ('%s-%d' formats the string) and as member names ('%s': 1).
 * The template is ours: a mistake in it ends the program.
 *
 *     json_build(a, "{'metadata': {'name': '%s-status', 'labels': %p}, 'spec': {'backoffLimit': %d}}", ...)
 */
struct json *json_build(struct arena *a, const char *template, ...) _printf_(2, 3);

/* ---- compare and write */

/* The same value: members in any order, numbers by exact decimal value (1.0 equals 1e0). */
bool json_equal(const struct json *x, const struct json *y);

/* A hash of the value as it stands (the order of members counts), the same in every process. Not against strangers. */
uint64_t json_hash(const struct json *j);

enum json_style { JSON_COMPACT, JSON_PRETTY /* two blanks a level, as kubectl -o json has four */ };
void json_write(const struct json *j, enum json_style style, struct buf *out);
char *json_print(struct arena *a, const struct json *j); /* compact, NUL-terminated, in the arena */
/* S as a JSON string with its quotes. */
void json_write_string(struct str s, struct buf *out);
