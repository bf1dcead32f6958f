/*
 * internal.h - what the files of this layer share and nobody else sees.
 */
#pragma once

#include "json/doc.h"

enum {
        /* Writing, copying and comparing go down with the document on the C stack; no limit may exceed this. */
        JSON_DEPTH_HARD = 1024,
        /* Objects of more members than this are looked up through a hash table. */
        JSON_SMALL_OBJECT = 32,
};

static const uint64_t BYTES_01 = 0x0101010101010101ull;
static const uint64_t BYTES_80 = 0x8080808080808080ull;

static inline uint64_t load8(const char *p)
{
        uint64_t w;

        memcpy(&w, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        w = __builtin_bswap64(w);
#endif
        return w;
}

/*
 * Marks the bytes of W that end a plain run in a string: the quote, the backslash, control characters. Only the lowest
 * mark is sure to be right (subtraction borrows upwards), and only the lowest is looked at.
 */
static inline uint64_t string_stops(uint64_t w)
{
        uint64_t quote = w ^ (BYTES_01 * '"'), slash = w ^ (BYTES_01 * '\\');

        return (((quote - BYTES_01) & ~quote) | ((slash - BYTES_01) & ~slash) |
                ((w - BYTES_01 * 0x20) & ~w)) &
               BYTES_80;
}

static inline struct str json_key(const struct json *member)
{
        return str_n(member->key, member->key_len);
}

static inline bool json_key_is(const struct json *member, struct str key)
{
        uint32_t n = member->key_len;

        /* Names of one length mostly differ in their last byte. */
        return n == key.n &&
               (n == 0 || (member->key[n - 1] == key.p[n - 1] && memcmp(member->key, key.p, n) == 0));
}

/* Puts NODE, which is in no ring, at the end of CONTAINER's. */
static inline void json_attach(struct json *container, struct json *node)
{
        struct json *last = container->last;

        if (last) {
                node->next = last->next;
                last->next = node;
        } else {
                node->next = node;
        }
        container->last = node;
        container->len++;
}

/* Takes CHILD, which comes after PREV in the ring, out of it. */
static inline void json_detach(struct json *container, struct json *prev, struct json *child)
{
        if (child == prev) {
                container->last = NULL;
        } else {
                prev->next = child->next;
                if (container->last == child)
                        container->last = prev;
        }
        container->len--;
        child->next = NULL;
}

/* Look-up of many members of one object: a hash table when it pays, the ring otherwise. */
struct lookup {
        const struct json *object;
        struct map map;
};

void lookup_init(struct lookup *l, const struct json *object);
void lookup_done(struct lookup *l);
struct json *lookup_get(const struct lookup *l, struct str key);
DEFINE_CLEANUP_STRUCT(struct lookup, lookup_done)

struct json *json_node(struct arena *a, enum json_type type);
/* As json_copy(), but the copy borrows its strings: it must not outlive what it was made from. */
struct json *json_copy_nodes(struct arena *a, const struct json *j);
/* Numbers by exact decimal value; both are texts of valid JSON numbers. */
bool json_number_equal(struct str x, struct str y);

/* Puts VALUE, which is in no container, in the place of CHILD and under its name. Returns VALUE. */
struct json *json_replace(struct json *container, struct json *child, struct json *value);

/* Adds a member that is known not to be there yet; VALUE is in no container. Returns VALUE. */
struct json *json_add(struct arena *a, struct json *object, struct str key, struct json *value);

/* The next token of a JSON Pointer, decoded (into SCRATCH when it must be); false: REST is malformed. */
bool pointer_next(struct str *rest, struct str *ret, struct buf *scratch);
/* The member or element that TOKEN names. */
struct json *pointer_step(const struct json *at, struct str token);
