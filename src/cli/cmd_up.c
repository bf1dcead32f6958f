#include "cli/cli.h"

#include "local/local.h"

#include <signal.h>
#include <stdlib.h>

enum { LATENCY_MS = 1000 };

struct up {
        struct loop *loop;
        struct local *local;
        int signals; /* how often we were told to end */
        int code;
};

static void stopped(void *arg)
{
        struct up *up = arg;

        loop_stop(up->loop, up->code);
}

/* The first one ends running pods within their grace periods, the second one at once. */
static void on_signal(void *arg, int signo)
{
        struct up *up = arg;

        up->code = signo == SIGINT ? EXIT_INTERRUPTED : 0;
        if (up->signals++ == 0) {
                fprintf(stderr, "sonde up: ending; running jobs are told (again to end at once)\n");
                local_stop(up->local, stopped, up);
        } else {
                loop_stop(up->loop, up->code);
        }
}

static void on_failure(void *arg, const struct err *err)
{
        struct up *up = arg;

        cli_error("up: %s; nothing that was not acknowledged is kept", err->text);
        loop_stop(up->loop, 1);
}

static char *default_dir(void)
{
        const char *home = getenv("HOME");

        return xasprintf("%s/.sonde", home && *home ? home : "/tmp");
}

static void say_ready(const struct up *up, usec_t took)
{
        printf("sonde up: engine ready in %llu ms at %s\n"
               "  kubectl --kubeconfig %s get all\n"
               "  one machine, one node: containers run their command from this machine's files, whatever "
               "their image\n",
               (unsigned long long)(took / LATENCY_MS), local_server(up->local), local_kubeconfig(up->local));
        fflush(stdout);
}

static int run(struct up *up, struct local_config *config)
{
        struct clock clock = CLOCK_REAL;
        struct err err = ERR_INIT;
        usec_t began = clock_boot(&clock);
        int code;

        up->loop = loop_new(NULL, config->log, &err);
        if (!up->loop) {
                cli_error("up: %s", err.text);
                return 1;
        }
        config->on_failure = on_failure;
        config->arg = up;
        up->local = local_new(up->loop, config, &err);
        if (!up->local) {
                cli_error("up: %s", err.text);
                loop_free(up->loop);
                return 1;
        }
        loop_on_signal(up->loop, SIGINT, on_signal, up);
        loop_on_signal(up->loop, SIGTERM, on_signal, up);
        say_ready(up, clock_boot(&clock) - began);
        code = loop_run(up->loop);
        local_free(up->local);
        loop_free(up->loop);
        return code;
}

int cmd_up(int argc, char **argv)
{
        _cleanup_(free_ptr) char *dir = default_dir();
        struct local_config config = {.dir = dir, .pod_image = "sonde-pod", .durable = true};
        unsigned gpus = 0, history = 0;
        bool no_fsync = false;
        const struct option_def options[] = {
                {"dir", 0, "DIR", "where everything is kept (default: ~/.sonde)", OPT_STR, &config.dir},
                {"listen", 0, "ADDR", "host:port to serve on (default: 127.0.0.1, a free port that is kept)",
                 OPT_STR, &config.listen},
                {"gpus", 0, "N", "how many GPUs the node says it has (bookkeeping)", OPT_UINT, &gpus},
                {"pod-image", 0, "IMAGE", "the image that holds /sonde-pod (default: sonde-pod)", OPT_STR,
                 &config.pod_image},
                {"no-node", 0, NULL, "the API alone: pods stay Pending", OPT_FLAG, &config.no_node},
                {"history", 0, "N", "writes kept for watches to resume from (default: 10000)", OPT_UINT,
                 &history},
                {"no-fsync", 0, NULL, "do not wait for the disk: faster, and a power cut loses writes",
                 OPT_FLAG, &no_fsync},
                {0}};
        static const struct usage usage = {
                "sonde up [OPTION]...",
                "Starts the embedded engine: the Kubernetes API on this machine, with a node that runs pods "
                "as\n"
                "processes. Ends on ctrl-C.\n\n"
                "Example:\n"
                "  sonde up --dir /tmp/s &\n"
                "  kubectl --kubeconfig /tmp/s/kubeconfig create job hello --image=any -- echo hello\n",
        };
        struct up up = {0};
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc > 1) {
                cli_error("up takes no arguments, but '%s' was given; see 'sonde up --help'", argv[1]);
                return EXIT_USAGE;
        }
        config.gpus = gpus;
        config.history = history;
        config.durable = !no_fsync;
        return run(&up, &config);
}
