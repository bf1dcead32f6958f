/*
 * options.h - tables of options, their help, and one parser for all.
 *
 *     static const struct option_def options[] = {
 *             {"kubeconfig", 0, "FILE", "kubeconfig to use", OPT_STR, &o.kubeconfig},
 *             {"quiet", 'q', NULL, "say nothing", OPT_FLAG, &o.quiet},
 *             {0}};
 *
 * Understood: --name value, --name=value, -n value, -nvalue, --flag, -- (the rest are arguments). --help and -h print
 * USAGE and the table. What does not fit is one sentence on standard error.
 *
 * A greedy option takes every word up to the next option of the table, whatever it looks like, or none: in
 * `--args --depth 3 --name x` the list is "--depth", "3" when --name is an option and --depth is not. A word that is an
 * option itself is given as --args=--name, which adds that one alone, or behind a `--`: all that follows one inside a greedy
 * list belongs to the list.
 */
#pragma once

#include "base/base.h"

enum option_type {
        OPT_FLAG,     /* bool */
        OPT_STR,      /* const char *, borrowed from argv */
        OPT_LIST,     /* struct option_list: each use adds one */
        OPT_GREEDY,   /* struct option_list: each use adds all words up to the next option */
        OPT_UINT,     /* unsigned */
        OPT_DURATION, /* usec_t: 250ms, 10s, 1h30m */
};

/* vec_done() it. */
struct option_list {
        const char **v;
        size_t n, cap;
};

struct option_def {
        const char *name; /* NULL ends the table */
        char short_name;  /* 0: none */
        const char *arg;  /* name of the value in the help; NULL for flags */
        const char *help;
        enum option_type type;
        void *target;
};

struct usage {
        const char *synopsis; /* what follows the program's name: "validate [OPTION]... FILE..." */
        const char *text;     /* what it does, and examples; ends with a newline. May be NULL */
};

/* Given alone: the synopsis and the table are printed for a program to read, see cli_complete(). */
#define OPTIONS_LIST "--list-options"

/* Moves the arguments to the front of argv[1..]; *ARGC counts argv[0] and them. Returns the exit status when there is
 * nothing more to do (help was printed, or what was wrong was said), and -1 to go on. */
int options_parse(const struct option_def *table, const struct usage *usage, int *argc, char **argv);
/* The same for a subcommand (argv[0]) that takes options alone. */
int options_parse_only(const struct option_def *table, const struct usage *usage, int argc, char **argv);
