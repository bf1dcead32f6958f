/*
 * verdict.h - what the controller decides on a view, as the writes that follow from it, in their order.
 */
#pragma once

#include "model/world.h"

enum { OPS_MAX = 16, AGAIN_MAX = 60000 /* seconds since NOON */ };

enum op_kind { OP_DELETE, OP_CREATE, OP_STATUS };
enum op_type { OF_JOB, OF_STATUS_MAP, OF_DATA_MAP, OF_ACCESS, OF_DEPLOYMENT };

struct op {
        uint8_t kind, type, which /* of the access */, name, uid, attempt, pod, foreground;
        uint16_t status;
};

/* What was decided on a view. */
struct verdict {
        unsigned more; /* bits: parts of the server that must be looked at first */
        struct op ops[OPS_MAX];
        size_t n_ops;
        uint16_t again;
        uint16_t request;                 /* number of the part that it is about */
        uint16_t stalled;                 /* the status that tells of a name conflict */
        uint8_t owner;                    /* uid of the request */
        const char *wrong, *wrong_status; /* with the decision itself; with writing its status */
};

/* The number of what is decided in this state, with what the caches have; look-ups find what the server has. */
uint32_t verdict_decide(struct model *m, const struct state *s);
