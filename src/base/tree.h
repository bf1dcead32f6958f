/*
 * tree.h - ordered map with strings as keys (a treap).
 *
 * The element embeds a struct tree_node. Keys are borrowed: they must live as long as their element is in the tree.
 * Order is that of bytes. Finding, adding, removing and counting cost O(log n): a node's weight is its key's hash with the
 * process's seed, so no order of keys, chosen by a stranger or not, makes the tree deep. A node that is in the tree stays
 * a valid position for tree_next(), whatever is added or removed around it.
 */
#pragma once

#include "base/str.h"

struct tree_node {
        struct tree_node *left, *right, *parent;
        struct str key;
        uint32_t weight; /* none is above its parent's */
        uint32_t count;  /* of nodes from here on down, with this one */
};

struct tree {
        struct tree_node *root;
        size_t n;
};

#define TREE_INIT \
        {         \
                0 \
        }

/* KEY must not be in the tree. */
void tree_add(struct tree *t, struct tree_node *node, struct str key);
void tree_remove(struct tree *t, struct tree_node *node); /* which is in the tree */
struct tree_node *tree_find(const struct tree *t, struct str key);

struct tree_node *tree_first(const struct tree *t);
struct tree_node *tree_from(const struct tree *t, struct str key);  /* the first at KEY or after it */
struct tree_node *tree_after(const struct tree *t, struct str key); /* the first after KEY */
struct tree_node *tree_next(const struct tree_node *node);          /* NULL: it was the last */

size_t tree_rank(const struct tree_node *node);                /* how many are before it in its tree */
struct tree_node *tree_at(const struct tree *t, size_t index); /* that has so many before it; NULL: none */
