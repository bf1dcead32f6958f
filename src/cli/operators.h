/*
 * operators.h - the controllers of all kinds as one operator, as `sonde operator` and `sonde up` run it.
 */
#pragma once

#include "cli/options.h"
#include "operator/operator.h"

struct operators;

struct operators_config {
        struct loop *loop;
        struct kube *kube;
        const struct log *log;
        const char *ns;           /* NULL: all namespaces */
        const char *pod_image;    /* holds /sonde-pod */
        const char *const *env;   /* NAME=VALUE, for profilers */
        size_t n_env;             /* checked by operators_check_env() */
        unsigned concurrency;     /* 0: the operator's own default */
        const char *history_file; /* NULL: none */
        struct lease *lease;      /* NULL: no election */
        struct metrics *metrics;  /* may be NULL */
};

/* What is wrong with one NAME=VALUE. */
int operators_check_env(const char *text, struct err *err) _must_check_;
/* Fills caches; decides nothing before operator_lead(). */
struct operators *operators_new(const struct operators_config *config, struct err *err) _must_check_;
void operators_free(struct operators *o);
struct operator* operators_operator(const struct operators *o);

DEFINE_CLEANUP_PTR(struct operators *, operators_free)
