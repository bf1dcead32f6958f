/*
 * operators.h - the controllers of all kinds as one operator, as `sonde operator` and `sonde up` run it.
 */
#pragma once

#include "cli/options.h"
#include "history/history.h"
#include "operator/operator.h"

struct operators;

struct operators_config {
        struct loop *loop;
        struct kube *kube;
        const struct log *log;
        const char *ns;         /* NULL: all namespaces */
        const char *pod_image;  /* holds /sonde-pod */
        const char *ml_image;   /* holds Python and frameworks; NULL: ALGORITHM_ML_IMAGE_DEFAULT */
        const char *const *env; /* NAME=VALUE, for profilers */
        size_t n_env;           /* checked by operators_check_env() */
        unsigned concurrency;   /* 0: the operator's own default */
        bool no_nodes;          /* they may not be listed */
        struct admission_limits limits;
        struct history_config history; /* place NULL: none */
        struct lease *lease;           /* NULL: no election */
        struct metrics *metrics;       /* may be NULL */
};

#define HISTORY_DAY (86400 * USEC_PER_SEC)
/* How long runs are kept where nobody says otherwise; their samples go first, being the most of it. */
#define HISTORY_KEPT .max_age = 365 * HISTORY_DAY, .samples_max_age = 30 * HISTORY_DAY, .max_runs = 100000
/* Of what `h`, a struct history_config, says. */
#define HISTORY_OPTIONS(h, where)                                                                    \
        {"history", 0, "PLACE", where, OPT_STR, &(h)->place},                                        \
                {"history-password-file",                                                            \
                 0,                                                                                  \
                 "FILE",                                                                             \
                 "holds the password for PostgreSQL (default: $PGPASSWORD)",                         \
                 OPT_STR,                                                                            \
                 &(h)->password_file},                                                               \
                {"history-max-age",                                                                  \
                 0,                                                                                  \
                 "TIME",                                                                             \
                 "runs older than this are forgotten (default: 365d; 0: none)",                      \
                 OPT_DURATION,                                                                       \
                 &(h)->max_age},                                                                     \
        {                                                                                            \
                "history-max-runs", 0, "N",                                                          \
                        "more than this are forgotten, the oldest first (default: 100000; 0: none)", \
                        OPT_UINT, &(h)->max_runs                                                     \
        }

/* What is wrong with one NAME=VALUE. */
int operators_check_env(const char *text, struct err *err) _must_check_;
/* Fills caches; decides nothing before operator_lead(). */
struct operators *operators_new(const struct operators_config *config, struct err *err) _must_check_;
void operators_free(struct operators *o);
struct operator* operators_operator(const struct operators *o);
struct history *operators_history(const struct operators *o); /* NULL: none */

DEFINE_CLEANUP_PTR(struct operators *, operators_free)
