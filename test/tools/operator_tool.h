/*
 * operator_tool.h - one controller as a program, with hooks that fail it at chosen points.
 *
 * One line on standard output for each thing a test waits for: "synced", "leading", "idle", "lost", "write N".
 */
#pragma once

#include "operator/operator.h"
#include "tools/tool.h"

struct operator_tool {
        struct tool tool;
        const char *ns, *lease_name, *identity, *health, *history_file;
        unsigned kill_at, stop_at, connections;
        struct admission_limits limits;
        usec_t lease_duration;
        bool exit_when_idle;

        struct loop *loop;
        struct kube *kube, *lease_kube;
        struct lease *lease;
        struct history *history;
        struct operator* op;
        struct timer idle;
        unsigned writes, said_writes;
        usec_t busy_since;
        bool said_synced, said_idle;
};

/* What it begins with; NAME is its identity. */
#define OPERATOR_TOOL_INIT(name)                                                           \
        {                                                                                  \
                .lease_duration = 15 * USEC_PER_SEC, .connections = 16, .identity = (name) \
        }

/* clang-format off */
#define OPERATOR_TOOL_OPTIONS(t)                                                                            \
        TOOL_OPTIONS(&(t)->tool),                                                                           \
        {"namespace", 'n', "NS", "only this namespace", OPT_STR, &(t)->ns},                                 \
        {"connections", 0, "N", "connections and requests in work at once", OPT_UINT, &(t)->connections},   \
        {"max-concurrent-runs", 0, "N", "runs under way at once", OPT_UINT, &(t)->limits.runs},             \
        {"max-concurrent-runs-per-namespace", 0, "N", "of a namespace", OPT_UINT,                           \
         &(t)->limits.runs_per_namespace},                                                                  \
        {"lease", 0, "NAME", "compete for this Lease", OPT_STR, &(t)->lease_name},                          \
        {"identity", 0, "NAME", "our name in the Lease", OPT_STR, &(t)->identity},                          \
        {"lease-duration", 0, "TIME", "how long the Lease lasts", OPT_DURATION, &(t)->lease_duration},      \
        {"health", 0, "ADDRESS", "serve health and metrics there", OPT_STR, &(t)->health},                  \
        {"history", 0, "FILE", "keep finished runs there", OPT_STR, &(t)->history_file},                    \
        {"exit-when-idle", 0, NULL, "end when there is nothing left to do", OPT_FLAG, &(t)->exit_when_idle}, \
        {"kill-at", 0, "N", "SIGKILL ourselves before the Nth write leaves", OPT_UINT, &(t)->kill_at},      \
        {"stop-at", 0, "N", "SIGSTOP ourselves before the Nth write leaves", OPT_UINT, &(t)->stop_at}
/* clang-format on */

/* After tool_init(): runs CONTROLLER until a signal or the end of its work; returns the exit status. */
int operator_tool_run(struct operator_tool *t, const struct controller *controller);
