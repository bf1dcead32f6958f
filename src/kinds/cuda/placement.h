/*
 * placement.h - where a CUDA job fits: which GPU a label means, what a node scores for what bounds the workload, and how the
 * Job says so. Pure functions.
 *
 * Score of a node, as upstream: the sum of four parts, each floor(min(value * 1000 / reference, 1000) * weight / 100);
 * references 132 SMs, 4800 GB/s, 141 GiB, compute capability 9.0; weights (SMs, bandwidth, memory, compute capability):
 *
 *     compute-bound    40 10 15 35
 *     memory-bound     10 45 30 15
 *     anything else    25 25 25 25
 *
 * What dcgm-exporter tells of a node lowers it: a GPU that is busy all the time counts half. A product that is not in the table
 * has no score: it is said to be unknown, and left to the scheduler.
 *
 * A MIG slice is not the GPU that it is a part of. Its SMs and its memory are those of the node's labels, and its bandwidth is its
 * share of the GPU's, in eighths of the memory, which is how MIG divides it. Without these labels nobody can tell what the
 * slice is: it is unknown like a product that is in no table.
 */
#pragma once

#include "decide/decide.h"

/* ---- gpus.c: what a product is */

struct gpu {
        const char *name; /* "H100 SXM 80GB" */
        int sms;
        int bandwidth; /* GB/s */
        int memory;    /* MiB, nominal */
        int compute;   /* capability, as 90 */
};

/*
 * The GPU of a product label as GPU feature discovery writes it (NVIDIA-H100-80GB-HBM3, Tesla-T4, NVIDIA-A100-SXM4-40GB,
 * NVIDIA-GeForce-RTX-3090, also with -MIG-1g.5gb or -SHARED behind it), as upstream's table spells it (a100-pcie-80gb), or as
 * nvidia-smi prints it, by words: all words of an entry must be there, and every other word must be one that says nothing
 * (NVIDIA, Tesla, GeForce) or the entry's memory (80GB). So a variant that is not in the table (Ti, D, Laptop) is unknown and
 * never taken for another GPU. MEMORY (MiB, 0: not known) decides where the label leaves open which of two it is; without it
 * that is the one that comes first in the table. NULL: unknown.
 */
const struct gpu *gpu_find(struct str product, int64_t memory);
/* The product is a slice of what gpu_find() says. */
bool gpu_is_slice(struct str product);
/* The table, one after the other; NULL: that is all. */
const struct gpu *gpu_at(size_t i);

/* ---- placement.c */

enum { PLACE_NODES_MAX = 5000, PLACE_TERMS_MAX = 32, PLACE_HINTS_MAX = 8, PLACE_SCRAPES_MAX = 8 };

enum place_mode { PLACE_NONE, PLACE_AFFINITY, PLACE_VOLCANO, PLACE_KUEUE };

struct place_node {
        const char *name, *product;              /* product NULL: it does not say */
        const char *host;                        /* its label kubernetes.io/hostname; NULL: none */
        const struct gpu *gpu;                   /* NULL: unknown product */
        int64_t sms, bandwidth, memory, compute; /* labels first, then the table; 0: not known */
        int64_t count;                           /* allocatable, else the label */
        double busy;                             /* 0 … 100; below 0: not known */
        int score, parts[4];                     /* SMs, bandwidth, memory, compute; score below 0: none */
};

/* What the spec demands of a node. */
struct place_least {
        int compute;    /* 80; 0: any */
        int64_t memory; /* MiB; 0: any */
        int64_t gpus;   /* that one pod takes */
};

/* Leaves of a node what is looked at here. */
void place_project_node(struct json *node, struct arena *a);
/*
 * Nodes with a GPU among LIST (a NodeList), scored for BOUND, best first and then by name; how many. RET has room for MAX. Those
 * that are cordoned, have fewer GPUs than a pod takes, or do not say that they have what LEAST demands are left out.
 */
size_t place_nodes(struct arena *a, const struct json *list, const char *bound,
                   const struct place_least *least, struct place_node *ret, size_t max);
/* Takes what a node's exporter says into account; sort again with place_sort(). */
void place_busy(struct place_node *node, double busy);
void place_sort(struct place_node *nodes, size_t n);

/*
 * The affinity of the Job: {nodeAffinity: {preferred…: one term for each product, weights 1 to 100 by score, the best 100;
 * nodes that weigh another than most of their product (busy ones) have a term by kubernetes.io/hostname instead; required…:
 * what LEAST demands}}. NULL: nothing to say.
 */
struct json *place_affinity(struct arena *a, const struct place_node *nodes, size_t n,
                            const struct place_least *least);
/* {boundType, reason, nodes: [{name, product, score, breakdown: {sm, bandwidth, vram, compute}, busy}], unknownProducts: […]} */
struct json *place_hint(struct arena *a, const struct place_node *nodes, size_t n, const char *bound);
/* One sentence of at most 500 bytes: which product is preferred, and why. */
const char *place_reason(struct arena *a, const struct place_node *nodes, size_t n, const char *bound);

/* ---- placement_busy.c */

/* Leaves of an exporter's pod what says where and whether it can be asked. */
void place_project_exporter(struct json *pod, struct arena *a);
/* DCGM_FI_DEV_GPU_UTIL of a text in Prometheus' format, the mean over its GPUs; below 0: it does not say. */
double place_busy_of(struct str metrics);
