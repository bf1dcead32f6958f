/*
 * sonde-pod run: runs a workload and records how it ended.
 */
#include "cli/cli.h"

#include <unistd.h>

#include "run/run.h"

#define TERMINATION_LOG "/dev/termination-log"

int cmd_run(int argc, char **argv)
{
        struct run_command c = {.ctl = RUN_CTL_DIR, .out_fd = -1, .err_fd = -1};
        const struct option_def options[] = {
                {"ctl", 0, "DIR", "the control directory (" RUN_CTL_DIR ")", OPT_STR, &c.ctl},
                {"termination-log", 0, "FILE", "how it ended goes here too (" TERMINATION_LOG " if there)",
                 OPT_STR, &c.termination_log},
                {0}};
        static const struct usage usage = {"run [OPTION]... -- COMMAND [ARGUMENT]...",
                                           "Runs a workload as its parent: passes its output and signals on, "
                                           "and records in the control\n"
                                           "directory how it ended. Ends with the workload's own status, or "
                                           "128 and the signal's number,\n"
                                           "or 126 or 127 if it could not be started.\n"};
        struct clock clock = CLOCK_REAL;
        struct log log;
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc < 2) {
                cli_error("run needs a command: %s run -- COMMAND...; see '%s help run'", cli_name(),
                          cli_name());
                return EXIT_USAGE;
        }
        argv[argc] = NULL; /* what the options have left behind is not an argument */
        c.argv = argv + 1;
        if (!c.termination_log && access(TERMINATION_LOG, W_OK) == 0)
                c.termination_log = TERMINATION_LOG;
        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        return run_supervise(&c, &log);
}
