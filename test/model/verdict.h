/*
 * verdict.h - what the controller decides on a view, as the writes that follow from it, in their order.
 */
#pragma once

#include "model/world.h"

enum { OPS_MAX = 16, AGAIN_MAX = 60000 /* seconds since NOON */ };

/* The last two are of the product: the object, and its status. */
enum op_kind { OP_DELETE, OP_CREATE, OP_STATUS, OP_APPLY, OP_KEEP };
enum op_type { OF_JOB, OF_STATUS_MAP, OF_DATA_MAP, OF_ACCESS, OF_PRODUCT, OF_REQUEST };

struct op {
        uint8_t kind, type, which /* of the access */, name, uid, attempt, pod, foreground;
        uint16_t status, text; /* of a product; of a plain Job its metadata */
        uint8_t spec, backoff, unused[2];
};

/* What was decided on a view. */
struct verdict {
        unsigned more; /* bits: parts of the server that must be looked at first */
        struct op ops[OPS_MAX];
        size_t n_ops;
        uint16_t again;
        size_t n_events;
        uint8_t stand;                    /* of the admission */
        bool row;                         /* for the history */
        bool rests;                       /* and deletes nothing: what is passing may be forgotten */
        uint16_t request, product;        /* numbers of the parts that it is about */
        uint16_t stalled;                 /* the status that tells of a name conflict */
        uint8_t owner;                    /* uid of the request */
        const char *wrong, *wrong_status; /* with the decision itself; with writing its status */
};

/* The number of what is decided in this state, with what the caches have; look-ups find what the server has. */
uint32_t verdict_decide(struct model *m, const struct state *s);
