/*
 * cli - the command line: one file a subcommand, each a thin layer over a library.
 *
 *   options.h   tables of options, their help, and one parser for all
 *   cmd_*.c     the subcommands
 *   main.c      finds the subcommand
 *
 * Exit status: 0 done; 1 it did not work; 2 wrong usage; 130 interrupted. Messages go to standard error as one line
 * "sonde: what, where, what instead"; what was asked for goes to standard output.
 */
#pragma once

#include "base/base.h"
#include "cli/options.h"

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

struct command {
        const char *name;
        const char *summary;               /* one line, for the list of commands */
        int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

int cmd_validate(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Finds the command named by argv[1] and runs it. */
int cli_main(const char *program, const struct command *commands, size_t n, int argc, char **argv);
/* "sonde: ..." on standard error. */
void cli_error(const char *fmt, ...) _printf_(1, 2);
