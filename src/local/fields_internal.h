/*
 * fields_internal.h - what fieldset.c, typed.c, managed.c and their tests share.
 *
 * A set is a trie. The children of a node form a list in the order of structured-merge-diff (fields, keys, values,
 * indexes; each by value), so that union, intersection and difference are merges of two sorted lists. Sets are never
 * changed once made, and share what they have in common. They live in an arena.
 */
#pragma once

#include "local/fields.h"

enum element_kind { ELEMENT_FIELD, ELEMENT_KEY, ELEMENT_VALUE, ELEMENT_INDEX };

/* One step of a path. TEXT is what fieldsV1 has after "f:", "k:", "v:" or "i:", in its one canonical form: elements of
 * one kind are equal exactly when their texts are. */
struct element {
        enum element_kind kind;
        struct str text;
        const struct json
                *value; /* ELEMENT_KEY: the keys as an object, sorted by name; ELEMENT_VALUE: the scalar */
};

struct fields {
        struct fields *next;     /* sibling, greater than this one */
        struct fields *children; /* the first one */
        struct element at;
        bool member; /* the element itself is in the set, not only what is below */
};

/* NULL is the empty set. A node that is no member and has no children is never part of one. */
typedef const struct fields *fields_set;

/* Puts NODE, which is in no container, at the end of CONTAINER. json_set() would look for its name among all that are
 * there already, which large objects cannot afford; here it is known to be new. */
static inline void json_ring_add(struct json *container, struct json *node)
{
        node->next = container->last ? container->last->next : node;
        if (container->last)
                container->last->next = node;
        container->last = node;
        container->len++;
}

/* ---- fieldset.c */
int element_cmp(const struct element *x, const struct element *y);
/* An element of a list by its keys: KEYS is an object sorted by name; by its value. */
struct element element_of_keys(struct arena *a, const struct json *keys);
struct element element_of_value(struct arena *a, const struct json *scalar);
/* Adds ".name", `[name="a",port=80]`, `["v"]` as messages have it. */
void element_print(struct buf *out, const struct element *e);

/* Appends to the list that ends at *TAIL; the caller keeps the order. Nothing when the node would be empty. */
void fields_append(struct arena *a, struct fields ***tail, const struct element *at, bool member,
                   fields_set children);
const struct fields *fields_find(fields_set set, const struct element *at);
fields_set fields_union(struct arena *a, fields_set x, fields_set y);
fields_set fields_intersection(struct arena *a, fields_set x, fields_set y);
/* X without what is in Y; DEEP: nor what is below that. */
fields_set fields_difference(struct arena *a, fields_set x, fields_set y, bool deep);
bool fields_equal(fields_set x, fields_set y);

/* fieldsV1 in and out; SORTED: members by their bytes, as custom resources have them. */
int fields_read(struct arena *a, const struct json *v1, fields_set *ret, struct err *err) _must_check_;
struct json *fields_write(struct arena *a, fields_set set, bool sorted);

/* ---- gotext.c: values as Go's fmt package prints them, because the API server's messages do */
void go_print(struct buf *out, const struct json *value);         /* %v */
void go_print_syntax(struct buf *out, const struct json *value);  /* %#v */
void go_print_scalar(struct buf *out, const struct json *scalar); /* as in a path: strings quoted */

/* As json.Marshal writes it into an annotation: members sorted, markup escaped, a newline at the end. */
const char *go_marshal(struct arena *a, const struct json *value);
/* S as a JSON string in which what HTML takes for markup is escaped. */
void go_write_string(struct buf *out, struct str s);

/* ---- typed.c */

/* What the API server knows of a value. OPEN: inside of what keeps unknown fields, where maps without a description are
 * granular; elsewhere they are owned as a whole. */
struct type {
        const struct shape *shape;
        bool open;
};

struct type type_of_root(const struct shape *shape);

/* What a value has that its type does not allow: one sentence, or several lines. NULL: nothing. */
const char *typed_check(struct arena *a, struct type t, const struct json *value);
fields_set typed_fields(struct arena *a, struct type t, const struct json *value);

struct typed_diff {
        fields_set added, modified, removed;
};
void typed_compare(struct arena *a, struct type t, const struct json *from, const struct json *to,
                   struct typed_diff *ret);
/* LIVE with all that CONFIG says; a new document. */
struct json *typed_merge(struct arena *a, struct type t, const struct json *live, const struct json *config);
/* VALUE without the items of SET; a new document, null when nothing is left of it. */
struct json *typed_remove(struct arena *a, struct type t, const struct json *value, fields_set set);
/* SET as it is to be for this type, where lists and maps may have become granular or atomic since it was written. */
fields_set typed_reconcile(struct arena *a, struct type t, const struct json *live, fields_set set);

/* ---- typed_walk.c: what those walk over */
enum typed_kind { TYPED_MAP, TYPED_LIST, TYPED_SCALAR };
enum typed_kind type_kind(struct type t, const struct json *value);
bool type_is_any(struct type t);
bool type_is_atomic(struct type t, enum typed_kind kind);
/* Whether a map declares the field (then its ownership is that of its content), and what the member is. false: not
 * declared. RET is set in any case, *RET_KNOWN false when the type allows no such member. */
bool type_member(struct type t, struct str name, struct type *ret, bool *ret_known);
struct type type_elem(struct type t);
bool type_is_keyed(struct type t);

struct item {
        struct element at;
        const struct json *value;
        size_t index; /* in the list */
};
struct items {
        struct item *v; /* sorted by element */
        size_t n;
};
/* Members of an object or elements of a list; VALUE may be anything else: none. What has no element is left out, and so
 * is what has the same as one before it. */
struct items items_of_map(struct arena *a, const struct json *value);
struct items items_of_list(struct arena *a, struct type t, const struct json *value);
/* The element of a list's item; NULL, or what is wrong with it. */
const char *item_element(struct arena *a, struct type t, const struct json *item, size_t index,
                         struct element *ret);
