/*
 * sonde-pod relay: copies what a run reports into its ConfigMaps.
 */
#include "cli/cli.h"

#include <malloc.h>

#include "run/run.h"

enum { KEEP_FREE = 64 * 1024, MAP_FROM = 64 * 1024, STARTED_USEC = 2 * USEC_PER_SEC };

static const struct usage usage = {
        "relay --status-map NAME [OPTION]...",
        "Copies what changes in a run's directory into its two ConfigMaps: each state at once, checkpoint\n"
        "and result more rarely. Ends when the workload has ended and that is recorded.\n"
        "\n"
        "What is not given is taken from the environment: SONDE_STATUS_MAP, SONDE_DATA_MAP,\n"
        "SONDE_NAMESPACE, SONDE_RUN_DIR, SONDE_ATTEMPT, SONDE_POD_UID, SONDE_SPEC_HASH, SONDE_FILES. In a\n"
        "pod it speaks to the API with the service account's token.\n"
        "\n"
        "Exit status: 0 the end is recorded, or a newer attempt has taken over; 1 it is not; 2 wrong "
        "usage.\n",
};

struct request {
        struct relay_config relay;
        const char *attempt;
        struct kube_config_sources sources;
};

struct run {
        struct loop *loop;
        struct relay *relay;
        struct timer started;
        int signals;
};

static const char *or_env(const char *given, const char *name)
{
        const char *value = given ? given : getenv(name);

        return value && value[0] ? value : NULL;
}

/* What was not said on the command line; false: something is missing or wrong, and that was said. */
static bool complete(struct request *q)
{
        struct relay_config *c = &q->relay;
        const char *dir = or_env(c->dir, "SONDE_RUN_DIR"), *attempt = or_env(q->attempt, "SONDE_ATTEMPT");
        struct err err = ERR_INIT;

        c->dir = dir ? dir : "/sonde/run";
        c->status_map = or_env(c->status_map, "SONDE_STATUS_MAP");
        c->data_map = or_env(c->data_map, "SONDE_DATA_MAP");
        c->pod_uid = or_env(c->pod_uid, "SONDE_POD_UID");
        c->spec_hash = or_env(c->spec_hash, "SONDE_SPEC_HASH");
        c->files = or_env(c->files, "SONDE_FILES");
        q->sources.ns = or_env(q->sources.ns, "SONDE_NAMESPACE");
        if (!c->status_map)
                cli_error("relay needs --status-map, the name of the run's status ConfigMap");
        else if (!c->pod_uid)
                cli_error("relay needs --pod-uid, the uid of the pod it runs in");
        else if (attempt && (!str_to_u64(str_of(attempt), &c->attempt) || !c->attempt))
                cli_error("--attempt: '%s' is not a whole number above 0", attempt);
        else if (relay_check_files(c->files, &err) < 0)
                cli_error("--files: %s", err.text);
        else
                return true;
        return false;
}

static void on_signal(void *arg, int signo)
{
        struct run *run = arg;

        if (run->signals++ && signo == SIGINT)
                loop_stop(run->loop, EXIT_INTERRUPTED); /* a person who does not want to wait */
        else
                relay_terminate(run->relay);
}

static void on_end(void *arg, int exit_status)
{
        struct run *run = arg;

        malloc_trim(0);
        loop_stop(run->loop, exit_status);
}

/* An idle relay should weigh nothing: large values go back to the system as soon as they are freed. */
static void keep_small(void)
{
        mallopt(M_ARENA_MAX, 1);
        mallopt(M_MMAP_THRESHOLD, MAP_FROM);
        mallopt(M_TRIM_THRESHOLD, KEEP_FREE);
        mallopt(M_TOP_PAD, 0);
}

/* Reading the configuration and the first TLS handshake map most of the program, a relay at work needs a tenth of it. */
static void forget_start(struct timer *timer _unused_)
{
        mem_trim();
}

static int run_relay(struct request *q, struct err *err)
{
        static const struct kube_options options = {.user_agent = "sonde-relay/" SONDE_VERSION,
                                                    .max_connections = 1};
        struct run run = {0}; /* outlives the loop, in which its timer may still be */
        _cleanup_(kube_config_done) struct kube_config config = {0};
        _cleanup_(loop_free) struct loop *loop = loop_new(NULL, q->relay.log, err);
        _cleanup_(kube_free) struct kube *kube = NULL;
        _cleanup_(relay_free) struct relay *relay = NULL;

        run.loop = loop;
        kube_config_from_env(&q->sources);
        if (!loop || kube_config_load(&q->sources, &config, err) < 0)
                return -1;
        kube = kube_new(loop, &config, &options, err);
        if (!kube)
                return -1;
        q->relay.loop = loop;
        q->relay.kube = kube;
        q->relay.ns = config.ns;
        q->relay.on_end = on_end;
        q->relay.arg = &run;
        run.relay = relay = relay_new(&q->relay, err);
        if (!relay)
                return -1;
        if (loop_on_signal(loop, SIGTERM, on_signal, &run) < 0 ||
            loop_on_signal(loop, SIGINT, on_signal, &run) < 0)
                return err_set(err, E_IO, "cannot wait for signals");
        timer_init(&run.started, loop, forget_start);
        timer_after(&run.started, STARTED_USEC);
        return loop_run(loop);
}

int cmd_relay(int argc, char **argv)
{
        struct request q = {.relay = {.ctl = RUN_CTL_DIR, .attempt = 1}};
        const struct option_def options[] = {
                {"status-map", 0, "NAME", "the run's status ConfigMap", OPT_STR, &q.relay.status_map},
                {"data-map", 0, "NAME", "the run's data ConfigMap; without it only the status is sent",
                 OPT_STR, &q.relay.data_map},
                {"namespace", 'n', "NAME", "of both", OPT_STR, &q.sources.ns},
                {"dir", 0, "DIR", "the run directory (/sonde/run)", OPT_STR, &q.relay.dir},
                {"ctl", 0, "DIR", "the control directory (" RUN_CTL_DIR ")", OPT_STR, &q.relay.ctl},
                {"attempt", 0, "N", "of the Job; a later pod of it counts on from there (1)", OPT_STR,
                 &q.attempt},
                {"pod-uid", 0, "UID", "of the pod it runs in", OPT_STR, &q.relay.pod_uid},
                {"spec-hash", 0, "HASH", "goes with the checkpoint, so that only its like uses it", OPT_STR,
                 &q.relay.spec_hash},
                {"files", 0, "NAMES", "more of the run directory to be kept at the end: a.yaml,b.yaml",
                 OPT_STR, &q.relay.files},
                {"grace", 0, "TIME", "for the end after SIGTERM (25s)", OPT_DURATION, &q.relay.grace},
                {"kubeconfig", 0, "FILE", "how to reach the API", OPT_STR, &q.sources.kubeconfig},
                {0}};
        struct clock clock = CLOCK_REAL;
        struct err err = ERR_INIT;
        struct log log;
        int code = options_parse_only(options, &usage, argc, argv);

        if (code >= 0)
                return code;
        if (!complete(&q))
                return EXIT_USAGE;
        keep_small();
        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        q.relay.log = &log;
        code = run_relay(&q, &err);
        if (code < 0)
                cli_error("relay: %s", err.text);
        return code < 0 ? 1 : code;
}
