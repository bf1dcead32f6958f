/*
 * tool.h - what the programs that talk to an API server start with: their options, the log, the configuration.
 */
#pragma once

#include "cli/cli.h"
#include "kube/kube.h"

struct tool {
        const char *kubeconfig; /* --kubeconfig, or NULL: what the environment says */
        const char *log_level, *log_format;
        struct clock clock;
        struct log log; /* to standard error */
        struct kube_config config;
};

/* Options of every tool, for its table. */
/* clang-format off */
#define TOOL_OPTIONS(tool)                                                                             \
        {"kubeconfig", 0, "FILE", "kubeconfig to use", OPT_STR, &(tool)->kubeconfig},                  \
        {"log-level", 0, "LEVEL", "error, warn, info or debug", OPT_STR, &(tool)->log_level},          \
        {"log-format", 0, "FORMAT", "logfmt or json", OPT_STR, &(tool)->log_format}
/* clang-format on */

/* Reads the options and the configuration. Returns the exit status when there is nothing more to do, and -1 to go on. */
int tool_init(struct tool *t, const struct option_def *options, int argc, char **argv);
void tool_done(struct tool *t);
