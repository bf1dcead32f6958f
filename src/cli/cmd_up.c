#include "cli/cli.h"

#include "cli/crds.h"
#include "cli/operators.h"
#include "cli/up.h"
#include "kinds/kinds.h"
#include "local/local.h"
#include "local/node.h"
#include "web/web.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_LISTEN "127.0.0.1:7070"
#define TRIM_AFTER  (5 * USEC_PER_SEC)

enum { DOCTOR_MAX = 64 << 10, OTHERS = 077 };

struct up {
        struct loop *loop;
        struct log log;
        struct local *local;
        struct resources resources, crds;
        struct kube_config config;
        struct kube *kube, *operator_kube;
        struct operators *operators;
        struct metrics *metrics;
        struct web *page;
        const char *page_listen; /* NULL: PAGE_LISTEN, or any free port where that is taken */
        struct option_list page_hosts;
        struct up_follow *follow;
        struct admission_limits limits;
        const char *ml_image;
        struct history_config history;
        size_t refused;     /* resources */
        usec_t began, took; /* took: until the engine answered */
        struct timer trim;
        unsigned gpus, cpus, watch_history;
        bool exit_when_done, no_operator, no_fsync, verbose;
        bool stopping, over;
        int signals; /* how often we were told to end */
        int code;
};

/* What only the start needed is given back. */
static void on_trim(struct timer *t)
{
        (void)t;
        mem_trim();
}

/* ---- the end */

static void ended(void *arg)
{
        struct up *up = arg;

        up->over = true;
        loop_stop(up->loop, up->code);
}

static void stopped(void *arg)
{
        struct up *up = arg;

        if (up->follow)
                up_follow_drain(up->follow, ended, up);
        else
                ended(up);
}

static void stop(struct up *up, int code)
{
        up->code = code;
        if (up->stopping)
                return;
        up->stopping = true;
        web_free(TAKE_PTR(up->page));
        operators_free(TAKE_PTR(up->operators)); /* that pods end now says nothing about a run */
        local_stop(up->local, stopped, up);
}

static void say_ending(const struct up *up)
{
        size_t n = up->follow ? up_follow_running(up->follow) : 0;

        fprintf(stderr, "sonde up: ending: running pods are asked to stop");
        if (n)
                fprintf(stderr, ", %zu of the jobs and requests %s not done", n, n == 1 ? "is" : "are");
        fprintf(stderr, " (ctrl-C again ends at once)\n");
}

/* The first one ends running pods within their grace periods, the second one at once. */
static void on_signal(void *arg, int signo)
{
        struct up *up = arg;
        int code = signo == SIGINT ? EXIT_INTERRUPTED : up->exit_when_done;

        switch (up->signals++) {
        case 0:
                if (signo != SIGPIPE)
                        say_ending(up);
                stop(up, code);
                break;
        case 1:
                up->code = code;
                local_hurry(up->local);
                break;
        default: /* it hangs: supervisors end their pods, and the next start finds them */
                loop_stop(up->loop, code);
        }
}

static void on_failure(void *arg, const struct err *err)
{
        struct up *up = arg;

        cli_error("up: %s; nothing that was not acknowledged is kept", err->text);
        up->over = true;
        loop_stop(up->loop, 1);
}

static void on_followed(void *arg, struct up_outcome outcome)
{
        struct up *up = arg;
        double took = (double)usec_sub(loop_now(up->loop), up->began) / (double)USEC_PER_SEC;

        if (up->stopping)
                return;
        printf("done in %.*f s: %zu completed, %zu failed", took < 1, took, outcome.completed,
               outcome.failed);
        if (up->refused)
                printf(", %zu not applied", up->refused);
        printf("%s\n", up->exit_when_done ? "" : "; the engine stays up, ctrl-C ends it");
        fflush(stdout);
        if (up->exit_when_done)
                stop(up, outcome.failed || up->refused ? 1 : 0);
}

/* ---- the start */

/* PATH as a person would type it into a shell. */
static char *typed(const char *path)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%";
        _cleanup_(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
        const char *home = getenv("HOME");
        size_t n = home ? strlen(home) : 0;

        if (path[strspn(path, plain)] == '\0') {
                if (n > 1 && strncmp(path, home, n) == 0 && path[n] == '/')
                        return xasprintf("~%s", path + n);
                return xstrdup(path);
        }
        buf_addc(&b, '\'');
        for (; *path; path++)
                buf_adds(&b, *path == '\'' ? "'\\''" : (char[]){*path, '\0'});
        buf_addc(&b, '\'');
        return buf_take(&b);
}

static void warn(const struct up *up, const struct local_config *config)
{
        const char *const addresses[] = {config->listen, up->page_listen};
        struct stat st;

        for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
                if (addresses[i] && !streq(addresses[i], "0") && !web_is_loopback(addresses[i]))
                        cli_error(
                                "warning: %s can be reached from other machines; whoever has the token runs "
                                "commands on this one as you",
                                addresses[i]);
        if (stat(config->dir, &st) == 0 && (st.st_mode & OTHERS))
                cli_error("warning: others may look into %s, where output of pods is kept; chmod 700 it",
                          config->dir);
}

static void say_ready(const struct up *up, const struct local_config *config)
{
        _cleanup_(free_ptr) char *kubeconfig = typed(local_kubeconfig(up->local));
        _cleanup_(buf_done) struct buf doctor = BUF_INIT(DOCTOR_MAX);
        struct str rest, line;

        printf("sonde up: engine ready in %llu ms · kubectl --kubeconfig %s get all\n",
               (unsigned long long)(up->took / USEC_PER_MS), kubeconfig);
        if (config->no_node) {
                printf("  no node and no operator: pods stay Pending\n");
        } else {
                printf("  one machine, one node: containers run their command from this machine's files, "
                       "whatever their image says\n");
                node_doctor(&doctor);
        }
        for (rest = buf_str(&doctor); rest.n;) {
                line = str_split(&rest, '\n');
                printf("  note: %.*s\n", STR_ARG(line));
        }
        fflush(stdout);
}

static int start_engine(struct up *up, struct local_config *config, struct err *err)
{
        struct clock clock = CLOCK_REAL;
        usec_t began = clock_boot(&clock);

        up->loop = loop_new(NULL, config->log, err);
        if (!up->loop)
                return -1;
        timer_init(&up->trim, up->loop, on_trim);
        timer_after(&up->trim, TRIM_AFTER);
        config->on_failure = on_failure;
        config->arg = up;
        up->local = local_new(up->loop, config, err);
        if (!up->local)
                return -1;
        loop_on_signal(up->loop, SIGINT, on_signal, up);
        loop_on_signal(up->loop, SIGTERM, on_signal, up);
        loop_on_signal(up->loop, SIGHUP, on_signal, up);
        loop_on_signal(up->loop, SIGPIPE, on_signal, up); /* whoever read what is told has gone */
        up->took = clock_boot(&clock) - began;
        return 0;
}

/* The way to the API is the one that everybody has: the kubeconfig. */
static int connect_client(struct up *up, struct err *err)
{
        struct kube_config_sources sources = {.kubeconfig = local_kubeconfig(up->local)};

        if (kube_config_load(&sources, &up->config, err) < 0)
                return -1;
        up->kube = kube_new(up->loop, &up->config, NULL, err);
        return up->kube ? 0 : -1;
}

static int apply_crds(struct up *up, struct err *err)
{
        struct up_apply apply = {.kube = up->kube, .ns = up->config.ns, .stop = &up->stopping, .quiet = true};

        resources_read_text(&up->crds, "deploy/crds", str_of(CRDS));
        up_apply(&apply, &up->crds);
        if (!up->stopping && (up->crds.wrong || apply.refused))
                return err_set(err, E_INTERNAL, "the definitions of our kinds could not be applied");
        return 0;
}

/*
 * The operator, on the definitions of its kinds. It has a client of its own, so that neither waits for the other, and no
 * pace: the API server shares the loop.
 */
static int start_operator(struct up *up, const struct local_config *config, struct err *err)
{
        _cleanup_(free_ptr) char *history = xasprintf("%s/history.db", config->dir);
        struct operators_config oc = {.loop = up->loop,
                                      .log = config->log,
                                      .pod_image = config->pod_image,
                                      .ml_image = up->ml_image,
                                      .limits = up->limits,
                                      .metrics = up->metrics,
                                      .history = up->history};

        if (!oc.history.place)
                oc.history.place = history;
        oc.kube = up->operator_kube = kube_new(up->loop, &up->config, NULL, err);
        if (!oc.kube)
                return -1;
        up->operators = operators_new(&oc, err);
        if (!up->operators)
                return -1;
        operator_lead(operators_operator(up->operators));
        return 0;
}

/* Where a browser finds what listens there; on every address is on this machine's too. */
static void say_page(const struct up *up, const char *listen)
{
        static const char *const every[] = {"", "0.0.0.0", "[::]"};
        const char *colon = strrchr(listen, ':');
        struct str host = colon ? str_n(listen, (size_t)(colon - listen)) : STR("");

        for (size_t i = 0; i < ARRAY_LEN(every); i++)
                if (str_eq(host, str_of(every[i])))
                        host = STR("127.0.0.1");
        if (str_has_prefix(str_of(listen), STR("unix:")))
                printf("  page: %s\n", listen);
        else
                printf("  page: %s://%.*s:%u/#t=%s\n", web_has_tls(up->page) ? "https" : "http",
                       STR_ARG(host), web_port(up->page), up->config.token ? up->config.token : "");
        fflush(stdout);
}

/* The API and the page. The token is the engine's, which is in the kubeconfig alone. */
static int start_page(struct up *up, struct err *err)
{
        struct web_config config = {
                .loop = up->loop,
                .server = &up->config,
                .kube = up->kube,
                .op = up->operators ? operators_operator(up->operators) : NULL,
                .history = up->operators ? operators_history(up->operators) : NULL,
                .metrics = up->metrics,
                .hosts = up->page_hosts.v,
                .n_hosts = up->page_hosts.n,
                .listen = up->page_listen ? up->page_listen : PAGE_LISTEN,
        };

        if (streq(up->page_listen, "0"))
                return 0;
        up->page = web_new(&config, err);
        if (!up->page && !up->page_listen) { /* somebody has the port */
                config.listen = "127.0.0.1:0";
                up->page = web_new(&config, err);
        }
        if (!up->page)
                return err_wrap(err, "--page-listen");
        say_page(up, config.listen);
        return 0;
}

static void run_files(struct up *up)
{
        struct up_apply apply = {
                .kube = up->kube, .ns = up->config.ns, .stop = &up->stopping, .crds = &up->crds};

        apply.follow = up->follow = up_follow_new(up->kube, on_followed, up);
        up->began = loop_now(up->loop);
        up_apply(&apply, &up->resources);
        up->refused = apply.refused;
        if (!up->stopping)
                up_follow_start(up->follow);
}

static int start(struct up *up, struct local_config *config, struct err *err)
{
        if (start_engine(up, config, err) < 0 || connect_client(up, err) < 0)
                return -1;
        if (!config->no_node && apply_crds(up, err) < 0)
                return -1;
        say_ready(up, config); /* whoever reads this may ask for our kinds */
        if (!config->no_node && !up->no_operator && !up->stopping && start_operator(up, config, err) < 0)
                return -1;
        if (!config->no_node && !up->stopping && start_page(up, err) < 0)
                return -1;
        if (up->resources.files && !up->stopping)
                run_files(up);
        return 0;
}

static void done(struct up *up)
{
        up_follow_free(up->follow);
        web_free(up->page);
        operators_free(up->operators);
        kube_free(up->operator_kube);
        kube_free(up->kube);
        kube_config_done(&up->config);
        if (up->local)
                local_free(up->local);
        if (up->loop) {
                timer_cancel(&up->trim);
                loop_free(up->loop);
        }
        metrics_free(up->metrics);
        resources_done(&up->resources);
        resources_done(&up->crds);
}

static int run(struct up *up, struct local_config *config)
{
        const struct clock clock = CLOCK_REAL;
        struct err err = ERR_INIT;
        int code = 1;

        log_init(&up->log, STDERR_FILENO, up->verbose ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT,
                 &clock);
        config->gpus = up->gpus;
        config->cpus = up->cpus;
        config->history = up->watch_history;
        config->durable = !up->no_fsync;
        up->metrics = metrics_new();
        fd_allow(WEB_DESCRIPTORS);
        metrics_add_process(up->metrics);
        warn(up, config);
        if (start(up, config, &err) < 0)
                cli_error("up: %s", err.text);
        else
                code = up->over ? up->code : loop_run(up->loop);
        done(up);
        return code;
}

/* ---- the command line */

static bool has_work(const struct resources *r)
{
        for (size_t i = 0; i < r->list.n; i++) {
                const char *name = json_str(r->list.v[i].object, "kind");
                const struct kind *kind = kinds_find(json_str(r->list.v[i].object, "apiVersion"), name);

                if (streq(name, "Job") || (kind && !kind->result))
                        return true;
        }
        return false;
}

/* -1: go on; otherwise the exit status. */
static int read_files(struct up *up, const struct option_list *files, int argc, char **argv, bool no_node)
{
        if (argc > 1 && !files->n) {
                cli_error("up takes no arguments without -f, but '%s' was given; see '%s up --help'", argv[1],
                          cli_name());
                return EXIT_USAGE;
        }
        if (up->exit_when_done && !files->n) {
                cli_error("--exit-when-done needs -f FILE: what is to be done");
                return EXIT_USAGE;
        }
        for (size_t i = 0; i < files->n; i++)
                resources_read(&up->resources, files->v[i]);
        for (int i = 1; i < argc; i++)
                resources_read(&up->resources, argv[i]);
        if (up->resources.wrong)
                return 1;
        if (no_node && up->exit_when_done && has_work(&up->resources)) {
                cli_error("--no-node: nothing runs what --exit-when-done would wait for");
                return EXIT_USAGE;
        }
        return -1;
}

static const struct usage usage = {
        "up [OPTION]... [-f FILE...]",
        "Starts the embedded engine: the Kubernetes API on this machine, with a node that runs pods as\n"
        "processes, and the operator that carries out requests (AlgorithmProfilings and others). Containers\n"
        "run their command from this machine's files, whatever their image says. Objects, and the history "
        "of\n"
        "runs, are kept in the directory for the next start. Ends on ctrl-C.\n\n"
        "With -f the resources in the files are applied in order, and the requests and Jobs among them are\n"
        "followed: what becomes of them, and what the pods of Jobs write. With --exit-when-done it ends "
        "with\n"
        "them, with exit status 0 if all completed and 1 otherwise.\n\n"
        "Examples:\n"
        "  sonde up\n"
        "  kubectl --kubeconfig ~/.sonde/kubeconfig create job hello --image=any -- echo hello\n\n"
        "  sonde up --dir /tmp/s -f examples/dgdr.yaml --exit-when-done\n",
};

int cmd_up(int argc, char **argv)
{
        _cleanup_(free_ptr) char *dir = cli_home();
        struct up up = {.resources = RESOURCES_INIT, .crds = RESOURCES_INIT, .history = {HISTORY_KEPT}};
        struct local_config config = {.dir = dir, .pod_image = "sonde-pod", .log = &up.log};
        struct option_list files = {0};
        const struct option_def options[] = {
                {"file", 'f', "FILE", "apply this ('-': standard input) and follow it; more may follow",
                 OPT_LIST, &files},
                {"exit-when-done", 0, NULL, "end when all of it has ended, with exit status 0 or 1", OPT_FLAG,
                 &up.exit_when_done},
                {"dir", 0, "DIR", "where everything is kept (default: ~/.sonde)", OPT_STR, &config.dir},
                {"listen", 0, "ADDR", "host:port to serve on (default: 127.0.0.1, a free port that is kept)",
                 OPT_STR, &config.listen},
                {"page-listen", 0, "ADDR",
                 "host:port of the page and the REST API (default: " PAGE_LISTEN
                 ", or any free port; 0: none)",
                 OPT_STR, &up.page_listen},
                {"allowed-host", 0, "NAME", "another name that the page may be called by; may be repeated",
                 OPT_LIST, &up.page_hosts},
                {"gpus", 0, "N", "how many GPUs the node says it has (bookkeeping)", OPT_UINT, &up.gpus},
                {"cpus", 0, "N", "how many CPUs it says it has (bookkeeping; default: as many as there are)",
                 OPT_UINT, &up.cpus},
                {"max-concurrent-runs", 0, "N", "runs under way at once; the others wait (default: no limit)",
                 OPT_UINT, &up.limits.runs},
                {"max-concurrent-runs-per-namespace", 0, "N", "the same, of each namespace", OPT_UINT,
                 &up.limits.runs_per_namespace},
                {"pod-image", 0, "IMAGE", "the image that holds /sonde-pod (default: sonde-pod)", OPT_STR,
                 &config.pod_image},
                {"ml-image", 0, "IMAGE",
                 "the image that holds Python and the frameworks of ml algorithms (default: sonde-ml:latest)",
                 OPT_STR, &up.ml_image},
                {"no-operator", 0, NULL,
                 "only the definitions of requests: an operator that is started elsewhere does the rest",
                 OPT_FLAG, &up.no_operator},
                {"no-node", 0, NULL, "the API alone: no node, no operator, no definitions of requests",
                 OPT_FLAG, &config.no_node},
                HISTORY_OPTIONS(&up.history,
                                "finished runs: an SQLite file or postgres://USER@HOST/DATABASE (default: "
                                "history.db in the directory)"),
                {"watch-history", 0, "N", "writes kept for watches to resume from (default: 10000)", OPT_UINT,
                 &up.watch_history},
                {"no-fsync", 0, NULL, "do not wait for the disk: faster, and a power cut loses writes",
                 OPT_FLAG, &up.no_fsync},
                {"verbose", 'v', NULL, "log what the engine does, not only what goes wrong", OPT_FLAG,
                 &up.verbose},
                {0}};
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0)
                code = read_files(&up, &files, argc, argv, config.no_node);
        vec_done(&files);
        if (code >= 0) {
                resources_done(&up.resources);
                return code;
        }
        code = run(&up, &config);
        vec_done(&up.page_hosts);
        return code;
}
