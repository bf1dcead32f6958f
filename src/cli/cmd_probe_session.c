/*
 * sonde-pod probe --plan, --worker: the probe inside a pod, as the operator starts it.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "probe/probe.h"
#include "run/run.h"

static const struct usage usage = {
        "probe --plan JSON [--dir DIR] [--ctl DIR]\n"
        "   or: probe --worker GROUP [--ctl DIR]",
        "Measures what a plan says, block after block, and writes status, checkpoint, samples and result "
        "into\n"
        "the run directory; what its checkpoint holds is not measured again. With --worker it runs what the\n"
        "probe of another container of the pod sends, until that one ends.\n"
        "\n"
        "Exit status: 0 at least one run was valid; 1 none was; 2 the plan is refused; 130, 143 told to "
        "end.\n",
};

bool probe_is_session(int argc, char **argv)
{
        for (int i = 1; i < argc && !streq(argv[i], "--"); i++) {
                struct str word = str_of(argv[i]);

                if (streq(argv[i], "--plan") || streq(argv[i], "--worker") ||
                    str_has_prefix(word, STR("--plan=")) || str_has_prefix(word, STR("--worker=")))
                        return true;
        }
        return false;
}

/* Whoever reads what the commands say may go, or never have been there: the measuring goes on. */
static void keep_streams(void)
{
        (void)signal(SIGPIPE, SIG_IGN);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void)!open("/dev/null", O_RDWR); /* becomes FD, the lowest that is free */
}

int cmd_probe_session(int argc, char **argv)
{
        struct session_config c = {.dir = "/sonde/run", .ctl = RUN_CTL_DIR};
        unsigned group = 0;
        const struct option_def options[] = {
                {"plan", 0, "JSON", "what is measured", OPT_STR, &c.plan},
                {"worker", 0, "GROUP", "run what the probe of another container sends", OPT_UINT, &group},
                {"dir", 0, "DIR", "the run directory (SONDE_RUN_DIR, else /sonde/run)", OPT_STR, &c.dir},
                {"ctl", 0, "DIR", "the control directory (" RUN_CTL_DIR ")", OPT_STR, &c.ctl},
                {"wait", 0, "TIME", "for a worker to come, or the probe to be there (10m)", OPT_DURATION,
                 &c.worker_wait},
                {0},
        };
        const char *dir = getenv("SONDE_RUN_DIR");
        const struct clock clock = CLOCK_REAL;
        struct log log;
        int code;

        if (dir && *dir)
                c.dir = dir;
        code = options_parse_only(options, &usage, argc, argv);
        if (code >= 0)
                return code;
        if ((c.plan != NULL) == (group != 0)) {
                cli_error("probe needs either --plan or --worker with a group from 1");
                return EXIT_USAGE;
        }
        keep_streams();
        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        c.log = &log;
        return c.plan ? session_run(&c) : session_worker(&c, group);
}
