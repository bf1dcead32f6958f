/*
 * sonde-pod stage: prepares a pod for a run.
 */
#include "cli/cli.h"

#include <unistd.h>

#include "run/run.h"

int cmd_stage(int argc, char **argv)
{
        struct run_stage s = {.ctl = RUN_CTL_DIR, .dir = "/sonde/run"};
        const struct option_def options[] = {
                {"dir", 0, "DIR", "the run directory (/sonde/run)", OPT_STR, &s.dir},
                {"ctl", 0, "DIR", "the control directory (" RUN_CTL_DIR ")", OPT_STR, &s.ctl},
                {"target", 0, "FILE", "where this program is copied to (/sonde/sonde-pod)", OPT_STR,
                 &s.target},
                {"checkpoint", 0, "DIR", "the mounted data ConfigMap with the last attempt's checkpoint",
                 OPT_STR, &s.checkpoint_dir},
                {"spec-hash", 0, "HASH", "use the checkpoint only if it is of this spec", OPT_STR,
                 &s.spec_hash},
                {0}};
        static const struct usage usage = {
                "stage [OPTION]...",
                "Prepares a pod for a run, as its init container: copies this program to where the "
                "workload's\n"
                "container finds it, makes the FIFO by which the relay sees that the workload lives, moves "
                "what "
                "an\n"
                "earlier use of the run directory left to .previous/, and lays down the last checkpoint.\n"};
        struct clock clock = CLOCK_REAL;
        struct err err = ERR_INIT;
        struct log log;
        int code = options_parse_only(options, &usage, argc, argv);

        if (code >= 0)
                return code;
        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        if (run_stage(&s, &log, &err) < 0) {
                cli_error("cannot prepare the run: %s", err.text);
                return 1;
        }
        return 0;
}
