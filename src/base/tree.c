#include "base/tree.h"

#include "base/map.h"

/* Where the pointer at NODE is kept. */
static struct tree_node **place_of(struct tree *t, const struct tree_node *node)
{
        if (!node->parent)
                return &t->root;
        return node->parent->left == node ? &node->parent->left : &node->parent->right;
}

static void attach(struct tree_node **place, struct tree_node *parent, struct tree_node *node)
{
        *place = node;
        if (node)
                node->parent = parent;
}

static uint32_t count_of(const struct tree_node *node)
{
        return node ? node->count : 0;
}

static void count(struct tree_node *node)
{
        node->count = count_of(node->left) + 1 + count_of(node->right);
}

/* NODE and its parent change places; the order of keys stays. */
static void rotate_up(struct tree *t, struct tree_node *node)
{
        struct tree_node *parent = node->parent, *above = parent->parent;
        struct tree_node **place = place_of(t, parent);

        if (parent->left == node) {
                attach(&parent->left, parent, node->right);
                attach(&node->right, node, parent);
        } else {
                attach(&parent->right, parent, node->left);
                attach(&node->left, node, parent);
        }
        attach(place, above, node);
        count(parent);
        count(node);
}

void tree_add(struct tree *t, struct tree_node *node, struct str key)
{
        struct tree_node *parent = NULL, **place = &t->root;

        while (*place) {
                parent = *place;
                parent->count++;
                place = str_cmp(key, parent->key) < 0 ? &parent->left : &parent->right;
        }
        *node = (struct tree_node){
                .parent = parent, .key = key, .weight = (uint32_t)str_hash(key), .count = 1};
        *place = node;
        while (node->parent && node->parent->weight < node->weight)
                rotate_up(t, node);
        t->n++;
}

void tree_remove(struct tree *t, struct tree_node *node)
{
        while (node->left && node->right)
                rotate_up(t, node->left->weight > node->right->weight ? node->left : node->right);
        for (struct tree_node *above = node->parent; above; above = above->parent)
                above->count--;
        attach(place_of(t, node), node->parent, node->left ? node->left : node->right);
        *node = (struct tree_node){0};
        t->n--;
}

struct tree_node *tree_find(const struct tree *t, struct str key)
{
        struct tree_node *node = t->root;

        while (node) {
                int order = str_cmp(key, node->key);

                if (order == 0)
                        return node;
                node = order < 0 ? node->left : node->right;
        }
        return NULL;
}

/* The first node whose key is not before KEY, or with BEYOND, that is after it. */
static struct tree_node *seek(const struct tree *t, struct str key, bool beyond)
{
        struct tree_node *node = t->root, *found = NULL;

        while (node) {
                int order = str_cmp(node->key, key);

                if (order > 0 || (order == 0 && !beyond)) {
                        found = node;
                        node = node->left;
                } else {
                        node = node->right;
                }
        }
        return found;
}

struct tree_node *tree_from(const struct tree *t, struct str key)
{
        return seek(t, key, false);
}

struct tree_node *tree_after(const struct tree *t, struct str key)
{
        return seek(t, key, true);
}

static struct tree_node *leftmost(struct tree_node *node)
{
        while (node && node->left)
                node = node->left;
        return node;
}

struct tree_node *tree_first(const struct tree *t)
{
        return leftmost(t->root);
}

struct tree_node *tree_next(const struct tree_node *node)
{
        if (node->right)
                return leftmost(node->right);
        while (node->parent && node->parent->right == node)
                node = node->parent;
        return node->parent;
}

size_t tree_rank(const struct tree_node *node)
{
        size_t before = count_of(node->left);

        for (; node->parent; node = node->parent)
                if (node->parent->right == node)
                        before += count_of(node->parent->left) + 1;
        return before;
}

struct tree_node *tree_at(const struct tree *t, size_t index)
{
        struct tree_node *node = t->root;

        while (node && index != count_of(node->left)) {
                bool beyond = index > count_of(node->left);

                index -= beyond ? count_of(node->left) + 1 : 0;
                node = beyond ? node->right : node->left;
        }
        return node;
}
