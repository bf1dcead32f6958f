/*
 * list.h - intrusive doubly linked lists.
 *
 * A head and its nodes are the same struct; an initialised node that is on no list points at itself, so
 * list_remove() on it is harmless.
 */
#pragma once

#include "base/mem.h"

struct list {
        struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
        l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
        return l->next == l;
}

static inline void list_remove(struct list *node)
{
        node->prev->next = node->next;
        node->next->prev = node->prev;
        list_init(node);
}

/* Puts NODE, which is on no list, at the end of HEAD (or in front of any other node). */
static inline void list_append(struct list *head, struct list *node)
{
        node->prev = head->prev;
        node->next = head;
        head->prev->next = node;
        head->prev = node;
}

static inline void list_prepend(struct list *head, struct list *node)
{
        list_append(head->next, node);
}

/* The first node, taken off the list; NULL when it is empty. */
static inline struct list *list_pop(struct list *head)
{
        struct list *node = head->next;

        if (node == head)
                return NULL;
        /* The analyzer does not see that HEAD changes with its neighbours. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        list_remove(node);
        return node;
}

#define list_foreach(node, head) for (struct list *node = (head)->next; node != (head); node = node->next)
/* NODE itself may be removed in the body. */
#define list_foreach_safe(node, head)                                                     \
        for (struct list *node = (head)->next, *node##_next = node->next; node != (head); \
             node = node##_next, node##_next = node->next)
