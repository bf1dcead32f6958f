/*
 * deployment.h - what is different from one backend to the next: names, flags, how a mapping is said.
 */
#pragma once

#include "probe/sla/args.h"
#include "probe/sla/sla.h"

struct sla_backend {
        const char *name, *image, *module, *directory;
        const char *workers[2];    /* names of the services, where nothing says what they are; by role */
        const char *const *model;  /* flag of the model, or where it lies */
        const char *const *served; /* flag of the name it is served under */
        const char *base_args[2];  /* of the disaggregated deployment, by role, beside the model */
        /* C's GPUs and mapping. */
        void (*map)(struct sla_args *args, const struct sla_candidate *c);
        /* A worker of a disaggregated deployment becomes one that does all; the prefix cache is off for SLA_PREFILL. */
        void (*aggregate)(struct sla_args *args, const struct sla_candidate *c, enum sla_role role);
        /* What a prefill measures: BATCH prompts at once, TOKENS of them together, without cutting one in pieces. */
        void (*limit)(struct sla_args *args, unsigned ranks, unsigned batch, uint64_t tokens);
};

/* NULL: not known. */
const struct sla_backend *sla_backend_find(const char *name);
