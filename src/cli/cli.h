/*
 * cli - the command line: one file a subcommand, each a thin layer over a library.
 *
 *   options.h   tables of options, their help, and one parser for all
 *   cmd_*.c     the subcommands
 *   main.c      the table of sonde's subcommands, pod_main.c that of sonde-pod's
 *   cli.c       finds the subcommand; help and version, which every program has
 *   complete.c  what may follow on a command line, for shells
 *   people.h    what the commands for people share: clusters, runs, how they are shown
 *
 * Exit status: 0 done; 1 it did not work; 2 wrong usage; 130 interrupted. Messages go to standard error as one line
 * "sonde: what, where, what instead"; what was asked for goes to standard output.
 */
#pragma once

#include "base/base.h"
#include "cli/options.h"

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

struct command {
        const char *name;                  /* NULL ends the table */
        const char *summary;               /* one line, for the list of commands; NULL: not for people */
        int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

struct program {
        const char *name;    /* "sonde": what `version` prints, whatever the file is called */
        const char *purpose; /* one sentence, for the head of the help */
        const struct command *commands;
        /* Prints the names that may stand for KIND/NAME on the line of ARGV, one a line; NULL: there are none. */
        void (*list_names)(int argc, char **argv);
};

int cmd_algorithm(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_describe(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_component(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_load(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_manifests(int argc, char **argv);
int cmd_ml(int argc, char **argv);
int cmd_ncu(int argc, char **argv);
int cmd_node_pod(int argc, char **argv);
int cmd_operator(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_relay(int argc, char **argv);
int cmd_rerun(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_sla(int argc, char **argv);
int cmd_sla_pick(int argc, char **argv);
int cmd_sla_plan(int argc, char **argv);
int cmd_stage(int argc, char **argv);
int cmd_stage_workload(int argc, char **argv);
int cmd_suspend(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_results(int argc, char **argv);
int cmd_watch(int argc, char **argv);

/* Of cmd_probe(): whether it is what the operator starts in a pod, and that. */
bool probe_is_session(int argc, char **argv);
int cmd_probe_session(int argc, char **argv);

/* What may stand in the place of the last of ARGV, the line so far without the program: "WORD\tMEANING" a line, or ":files". */
int cli_complete(const struct program *program, int argc, char **argv);
/* Runs the command named by argv[1]; help and version need not be in the table. */
int cli_main(const struct program *program, int argc, char **argv);
/* What a person types to start this program, for messages: its file's name, or "kubectl sonde" when kubectl found it as
 * kubectl-sonde. */
const char *cli_name(void);
/* Where `sonde up` keeps everything by default: ~/.sonde. To be freed. */
char *cli_home(void);
/* "sonde: ..." on standard error; the name is that of cli_name(). */
void cli_error(const char *fmt, ...) _printf_(1, 2);
