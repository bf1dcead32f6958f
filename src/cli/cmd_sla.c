/*
 * sonde-pod sla: the SLA profiler. `sla plan` and `sla pick` show its arithmetic.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kube/kube.h"
#include "probe/sla/sla.h"

enum { CONFIG_MAX = 1 << 20, MODEL_MAX = 1 << 20, EXIT_SIGNAL = 128, DEFAULT_CONNECTIONS = 4 };

static const struct usage usage = {
        "sla [OPTION]... [-- COMMAND...]\n"
        "   or: sla plan FILE | sla pick FILE   (see their --help)",
        "Finds the mapping of a model onto GPUs that meets its latency targets at the least cost: deploys\n"
        "each candidate, measures it, chooses, and writes a deployment with a planner. Everything measured\n"
        "is in checkpoint.json of the output directory: started again, it measures nothing twice.\n"
        "\n"
        "  sonde-pod sla --profile-config config.yaml --output-dir out         # DynamoGraphDeployments\n"
        "  sonde-pod sla --profile-config c.yaml --url http://host:8000 --kv-tokens 400000\n"
        "  sonde-pod sla --profile-config c.yaml -- vllm serve {model} --port {port} -tp {tp}\n"
        "  sonde-pod sla --profile-config c.yaml --sim-model sim.yaml --search adaptive\n"
        "\n"
        "A command's words may have {gpus} {mapping} {tp} {dp} {port} {role} {model} in them.\n"
        "\n"
        "Exit status: 0 done, also when the targets cannot be met (the closest is chosen, and that is "
        "said);\n"
        "1 it failed; 2 wrong usage or configuration; 130, 143 interrupted, everything is taken down.\n",
};

struct request {
        const char *config, *target, *url, *kv_tokens, *sim_model, *search, *dir, *log_level;
        const char *kubeconfig;
        bool dry_run, truth, discovery;
        usec_t request_timeout;
        char **command;
};

/* All that lives as long as the run. */
struct session {
        struct request *q;
        struct arena arena;
        struct sla_config config;
        struct clock clock;
        struct log log;
        struct loop *loop;
        struct kube_config kube_config;
        struct kube *kube;
        struct sla_target *target;
        struct buf model;             /* of a simulation, its text */
        const struct json *own_model; /* the same, in the configuration; NULL: none */
        const char *dir;
        int signals; /* a signalfd that is never read before the end: readable means stop */
};

/* ---- configuration */

static int read_config(struct session *s, struct err *err)
{
        const char *text = s->q->config;
        _cleanup_(buf_done) struct buf file = BUF_INIT(CONFIG_MAX);
        struct json *raw;

        if (!text)
                return err_set(err, E_CONFIG,
                               "needs --profile-config, what to profile and for which targets; see "
                               "'sonde-pod help sla'");
        if (text[0] != '{') {
                const char *path = text + (text[0] == '@');

                if (file_read(path, &file, err) < 0)
                        return -1;
                raw = yaml_parse(&s->arena, buf_str(&file), NULL, err);
                if (!raw)
                        return err_wrap(err, "%s", path);
        } else {
                raw = yaml_parse(&s->arena, str_of(text), NULL, err);
                if (!raw)
                        return err_wrap(err, "--profile-config");
        }
        if (sla_config_parse(&s->arena, raw, &s->config, err) < 0 || sla_config_check(&s->config, err) < 0)
                return -1;
        s->config.dry_run |= s->q->dry_run;
        if (s->q->search && !streq(s->q->search, "grid") && !streq(s->q->search, "adaptive"))
                return err_set(err, E_CONFIG, "--search is grid or adaptive, not '%s'", s->q->search);
        if (s->q->search)
                s->config.adaptive = streq(s->q->search, "adaptive");
        return 0;
}

static const char *directory(const struct session *s)
{
        const char *env = getenv("SONDE_RUN_DIR");

        if (s->q->dir)
                return s->q->dir;
        if (env && *env)
                return env;
        return s->config.output_dir ? s->config.output_dir : "profiling_results";
}

/*
 * What the options do not say, the configuration's own section may: sonde {target, url, kvTokens, simModel}. A request that is
 * profiled in a cluster has no options.
 */
static void read_own_section(struct session *s)
{
        const struct json *raw = s->config.raw;
        struct request *q = s->q;
        const struct json *target = sla_setting(&s->arena, raw, "sonde", "target", NULL),
                          *url = sla_setting(&s->arena, raw, "sonde", "url", NULL),
                          *kv = sla_setting(&s->arena, raw, "sonde", "kvTokens", NULL);

        if (!q->target && !q->sim_model && !q->url && !q->command[0])
                q->target = json_cstr(target);
        if (!q->url)
                q->url = json_cstr(url);
        if (!q->kv_tokens && kv)
                q->kv_tokens = json_print(&s->arena, kv);
        s->own_model = sla_setting(&s->arena, raw, "sonde", "simModel", NULL);
}

/* ---- targets */

static const char *target_name(const struct request *q)
{
        if (q->target)
                return q->target;
        if (q->sim_model)
                return "sim";
        if (q->url)
                return "endpoint";
        return q->command[0] ? "process" : "dgd";
}

static int make_sim(struct session *s, const struct sla_target_config *c, struct err *err)
{
        const char *source = s->q->sim_model ? s->q->sim_model : "sonde.simModel";

        if (!s->q->sim_model && !s->own_model)
                return err_set(
                        err, E_CONFIG,
                        "the target sim needs --sim-model FILE, or sonde.simModel in the configuration");
        if (!s->q->sim_model)
                json_write(s->own_model, JSON_COMPACT, &s->model); /* JSON is YAML */
        else if (file_read(s->q->sim_model, &s->model, err) < 0)
                return -1;
        s->target = (s->q->truth ? sla_target_truth : sla_target_sim)(c, buf_str(&s->model), err);
        return s->target ? 0 : err_wrap(err, "%s", source);
}

static int make_endpoint(struct session *s, const struct sla_target_config *c, struct err *err)
{
        if (!s->q->url)
                return err_set(err, E_CONFIG, "the target endpoint needs --url");
        if (!c->kv_tokens)
                return err_set(err, E_CONFIG,
                               "the target endpoint needs --kv-tokens: the size of its KV cache, which no "
                               "server tells its clients");
        s->target = sla_target_endpoint(c, s->q->url, c->kv_tokens);
        return 0;
}

static int make_process(struct session *s, const struct sla_target_config *c, struct err *err)
{
        s->target = sla_target_process(c, s->q->command, err);
        return s->target ? 0 : -1;
}

static int make_dgd(struct session *s, const struct sla_target_config *c, struct err *err)
{
        static const struct kube_options options = {.user_agent = "sonde-sla/" SONDE_VERSION,
                                                    .max_connections = DEFAULT_CONNECTIONS};
        struct kube_config_sources sources = {.kubeconfig = s->q->kubeconfig, .ns = s->config.ns};

        kube_config_from_env(&sources);
        if (kube_config_load(&sources, &s->kube_config, err) < 0)
                return -1;
        s->kube = kube_new(s->loop, &s->kube_config, &options, err);
        if (!s->kube)
                return -1;
        s->target = sla_target_dgd(c, s->kube, getenv("DGDR_NAME"), getenv("DGDR_UID"), err);
        return s->target ? 0 : -1;
}

/* A dry run deploys nothing, and needs nothing to deploy with. */
static int never_start(struct sla_target *t _unused_, const struct sla_candidate *c _unused_,
                       enum sla_role role _unused_, struct sla_server *ret _unused_, struct err *err)
{
        return err_set(err, E_INTERNAL, "a dry run deploys nothing");
}

static void never_stop(struct sla_target *t _unused_, struct sla_server *s _unused_)
{
}

static void free_dry(struct sla_target *t)
{
        free(t);
}

static int make_dry(struct session *s, const struct sla_target_config *c _unused_, struct err *err _unused_)
{
        static const struct sla_target_ops ops = {
                .name = "none", .start = never_start, .stop = never_stop, .free = free_dry};

        s->target = xcalloc(1, sizeof(*s->target));
        s->target->ops = &ops;
        return 0;
}

static const struct {
        const char *name;
        int (*make)(struct session *s, const struct sla_target_config *c, struct err *err);
} targets[] = {
        {"dgd", make_dgd},
        {"endpoint", make_endpoint},
        {"process", make_process},
        {"sim", make_sim},
};

static int make_target(struct session *s, const struct sla_target_config *c, struct err *err)
{
        const char *name = target_name(s->q);

        for (size_t i = 0; i < ARRAY_LEN(targets); i++)
                if (streq(name, targets[i].name))
                        return (s->config.dry_run ? make_dry : targets[i].make)(s, c, err);
        return err_set(err, E_CONFIG, "--target is dgd, endpoint, process or sim, not '%s'", name);
}

/* What is measured: a checkpoint of something else is of no use. */
static const char *what_is_measured(struct session *s)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(MODEL_MAX + CONFIG_MAX);

        buf_addstr(&out, buf_str(&s->model));
        if (s->q->url)
                buf_adds(&out, s->q->url);
        for (char **word = s->q->command; *word; word++)
                buf_printf(&out, "%s ", *word);
        return arena_strndup(&s->arena, out.p ? out.p : "", out.n);
}

/* ---- the run */

static int check(const struct request *q, uint64_t *ret_kv, struct err *err)
{
        if (q->truth && !streq(target_name(q), "sim"))
                return err_set(err, E_CONFIG, "--truth goes with --target sim");
        if (q->command[0] && !streq(target_name(q), "process"))
                return err_set(err, E_CONFIG, "a command goes with --target process");
        if (q->kv_tokens && (!str_to_u64(str_of(q->kv_tokens), ret_kv) || *ret_kv == 0))
                return err_set(err, E_CONFIG, "--kv-tokens is a number above 0, not '%s'", q->kv_tokens);
        return 0;
}

/* 0; below 0: ERR, of E_CONFIG when it is the person's to mend. */
static int prepare(struct session *s, struct sla_target_config *c, struct err *err)
{
        *c = (struct sla_target_config){
                .config = &s->config,
                .loop = s->loop,
                .stop_fd = s->signals,
                .log = &s->log,
                .request_timeout = s->q->request_timeout,
        };
        if (read_config(s, err) < 0)
                return -1;
        read_own_section(s);
        if (check(s->q, &c->kv_tokens, err) < 0)
                return -1;
        s->dir = directory(s);
        c->artifacts = s->q->truth ? NULL : s->dir;
        return make_target(s, c, err) < 0 || dir_make(s->dir, 0755, err) < 0 ? -1 : 0;
}

/* Told on standard error, and where whoever watches the run looks. */
static int fail(struct session *s, struct run_reporter *reporter, const struct err *err)
{
        cli_error("sla: %s", err->text);
        reporter->dir = s->dir ? s->dir : getenv("SONDE_RUN_DIR");
        if (reporter->dir && access(reporter->dir, F_OK) == 0)
                (void)run_report_failed(reporter, NULL, err->text);
        return err->code == E_CONFIG || err->code == E_INVALID ? EXIT_USAGE : 1;
}

static int stopped_by(const struct session *s)
{
        struct signalfd_siginfo info;

        if (read(s->signals, &info, sizeof(info)) != sizeof(info))
                return EXIT_INTERRUPTED;
        return EXIT_SIGNAL + (int)info.ssi_signo;
}

static int profile(struct session *s)
{
        struct run_reporter reporter = {.clock = &s->clock, .log = &s->log};
        struct sla_target_config services;
        struct err err = ERR_INIT;
        struct sla_run run = {.config = &s->config, .truth = s->q->truth, .reporter = &reporter};

        if (prepare(s, &services, &err) < 0)
                return fail(s, &reporter, &err);
        reporter.dir = s->dir;
        run.target = s->target;
        run.services = services;
        run.dir = s->dir;
        run.request = getenv("DGDR_NAME");
        run.what = what_is_measured(s);
        if (sla_run(&run, &err) == 0)
                return 0;
        if (err.code == E_CANCELED)
                return stopped_by(s);
        cli_error("sla: %s", err.text);
        return err.code == E_CONFIG || err.code == E_INVALID ? EXIT_USAGE : 1;
}

static void session_done(struct session *s)
{
        if (s->target)
                s->target->ops->free(s->target);
        if (s->kube)
                kube_free(s->kube);
        kube_config_done(&s->kube_config);
        if (s->loop)
                loop_free(s->loop);
        buf_done(&s->model);
        arena_done(&s->arena);
        fd_close(s->signals);
}

static int run_session(struct request *q, enum log_level level)
{
        struct session s = {.q = q, .clock = CLOCK_REAL, .model = BUF_INIT(MODEL_MAX), .signals = -1};
        struct err err = ERR_INIT;
        sigset_t stop;
        int code;

        sigemptyset(&stop);
        sigaddset(&stop, SIGTERM);
        sigaddset(&stop, SIGINT);
        log_init(&s.log, STDERR_FILENO, level, LOG_FORMAT_LOGFMT, &s.clock);
        if (sigprocmask(SIG_BLOCK, &stop, NULL) == 0)
                s.signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
        s.loop = loop_new(NULL, &s.log, &err);
        if (s.signals < 0 || !s.loop) {
                cli_error("sla: %s", s.loop ? "cannot wait for signals" : err.text);
                code = 1;
        } else
                code = profile(&s);
        session_done(&s);
        return code;
}

/* What stands behind "--" is a command and its own options. */
static char **cut_command(int *argc, char **argv)
{
        for (int i = 1; i < *argc; i++)
                if (streq(argv[i], "--")) {
                        *argc = i;
                        argv[i] = NULL;
                        return argv + i + 1;
                }
        return argv + *argc;
}

int cmd_sla(int argc, char **argv)
{
        struct request q = {0};
        const struct option_def options[] = {
                {"profile-config", 0, "JSON|FILE",
                 "what to profile and for which targets; @FILE is FILE, too", OPT_STR, &q.config},
                {"target", 0, "NAME", "dgd, endpoint, process or sim (by what else is given, else dgd)",
                 OPT_STR, &q.target},
                {"url", 0, "URL", "endpoint: the server that is there", OPT_STR, &q.url},
                {"kv-tokens", 0, "N", "its KV cache, where the server's log does not say", OPT_STR,
                 &q.kv_tokens},
                {"sim-model", 0, "FILE", "sim: the model of the simulated engine", OPT_STR, &q.sim_model},
                {"search", 0, "HOW", "grid: every point (upstream's way); adaptive: only those that matter",
                 OPT_STR, &q.search},
                {"dry-run", 0, NULL, "write all configurations, deploy nothing", OPT_FLAG, &q.dry_run},
                {"enable-gpu-discovery", 0, NULL,
                 "taken because upstream's profiler takes it: GPUs are as the configuration says", OPT_FLAG,
                 &q.discovery},
                {"truth", 0, NULL, "sim: what its model says, in no time", OPT_FLAG, &q.truth},
                {"output-dir", 0, "DIR",
                 "where everything goes (SONDE_RUN_DIR, else as the configuration says)", OPT_STR, &q.dir},
                {"request-timeout", 0, "TIME", "of one request (30m)", OPT_DURATION, &q.request_timeout},
                {"kubeconfig", 0, "FILE", "dgd: how to reach the API", OPT_STR, &q.kubeconfig},
                {"log-level", 0, "LEVEL", "error, warn, info or debug (info)", OPT_STR, &q.log_level},
                {0}};
        enum log_level level = LOG_LEVEL_INFO;
        int code;

        if (argc > 1 && streq(argv[1], "plan"))
                return cmd_sla_plan(argc - 1, argv + 1);
        if (argc > 1 && streq(argv[1], "pick"))
                return cmd_sla_pick(argc - 1, argv + 1);
        q.command = cut_command(&argc, argv);
        code = options_parse_only(options, &usage, argc, argv);
        if (code >= 0)
                return code;
        if (q.log_level && !log_level_parse(str_of(q.log_level), &level)) {
                cli_error("--log-level is error, warn, info or debug, not '%s'", q.log_level);
                return EXIT_USAGE;
        }
        return run_session(&q, level);
}
