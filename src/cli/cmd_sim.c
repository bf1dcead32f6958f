/*
 * sonde-pod sim: the simulated inference engine as a server, or what it must measure.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "probe/probe.h"

enum { MODEL_MAX = 1 << 20, DESCRIPTORS = 20000 + 128, CRASHED = 139, PEM_MAX = 1 << 20 };

static const struct usage usage = {
        "sim [FILE] [OPTION]...",
        "A simulated inference engine: an OpenAI-compatible server (/v1/chat/completions, /v1/completions,\n"
        "/v1/models, /health) whose times follow a model in FILE, YAML or JSON; see docs/sim.md. Without\n"
        "FILE the model is all defaults. Its numbers are simulated: they say nothing about any GPU.\n"
        "\n"
        "With --truth nothing is served: it prints, as JSON in the form of 'load -o json', what a perfect\n"
        "client must measure of the load that the options describe, at once.\n"
        "\n"
        "  sonde-pod sim examples/sim.yaml --listen 127.0.0.1:8000\n"
        "  sonde-pod sim --gpus 4 --mapping DEP --set decode.baseMs=8\n"
        "  sonde-pod sim --truth --concurrency 32 --requests 320 --isl 512 --osl 128\n"
        "\n"
        "Exit status: 0 ended by SIGTERM, or the truth is told; 1 it did not work, or the model does not\n"
        "start; 2 wrong usage; 130 interrupted; 139 the model crashed.\n",
};

struct sim_options {
        const char *listen, *port_file, *gpus, *mapping, *tls_cert, *tls_key;
        struct option_list set;
        bool truth, again, stamp;
        unsigned concurrency, requests, isl, osl, warmup, prompts;
};

struct app {
        struct loop *loop;
        const struct sim_model *model;
        struct timer fail;
};

/* ---- the model */

/* What comes from the command line has no place in the file. */
static void forget_places(struct json *j)
{
        j->line = 0;
        if (j->type < JSON_ARRAY)
                return;
        json_foreach (child, j)
                forget_places(child);
}

static int set_member(struct arena *a, struct json *root, struct str path, const char *text,
                      const char *option, struct err *err)
{
        struct json *value = yaml_parse(a, str_of(text), NULL, err);

        if (!value)
                return err_wrap(err, "%s", option);
        forget_places(value);
        if (!json_path_set(a, root, arena_strndup(a, path.p, path.n), value))
                return err_set(err, E_CONFIG, "%s: there is no place for '%.*s' in a model", option,
                               STR_ARG(path));
        return 0;
}

static int apply_options(struct arena *a, struct json *root, const struct sim_options *o, struct err *err)
{
        if (o->gpus && set_member(a, root, STR("gpus"), o->gpus, "--gpus", err) < 0)
                return -1;
        if (o->mapping && set_member(a, root, STR("mapping"), o->mapping, "--mapping", err) < 0)
                return -1;
        for (size_t i = 0; i < o->set.n; i++) {
                struct str rest = str_of(o->set.v[i]), path = str_split(&rest, '=');

                if (!rest.p || !rest.n || !path.n)
                        return err_set(err, E_CONFIG, "--set: '%s' is not path=value, as in decode.baseMs=8",
                                       o->set.v[i]);
                if (set_member(a, root, path, rest.p, "--set", err) < 0)
                        return -1;
        }
        return 0;
}

/* RET_OPTIONS: what is wrong are the options, as the file by itself is not. */
static int load_model(struct arena *a, const char *file, const struct sim_options *o, struct sim_model *ret,
                      bool *ret_options, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MODEL_MAX);
        const char *source = file ? file : "model";
        struct json *root = NULL;

        if (file) {
                struct sim_model unchanged;

                if (file_read(streq(file, "-") ? "/dev/stdin" : file, &text, err) < 0)
                        return -1;
                /* First as it stands, so that a mistake in it is told with its line. */
                if (sim_model_parse(a, buf_str(&text), source, &unchanged, err) < 0)
                        return -1;
                root = sim_model_json(a, &unchanged);
        }
        if (!root)
                root = json_object(a);
        *ret_options = true;
        if (apply_options(a, root, o, err) < 0)
                return -1;
        return sim_model_read(a, root, source, ret, err);
}

/* ---- the truth */

static int tell_truth(struct arena *a, const struct sim_model *m, const struct sim_options *o,
                      struct err *err)
{
        struct sim_load load = {
                .concurrency = o->concurrency,
                .requests = o->requests,
                .isl = o->isl,
                .osl = o->osl,
                .warmup = o->warmup,
                .prompts = o->prompts,
                .again = o->again,
        };
        struct load_config config = {
                .url = "sim",
                .model = m->name,
                .concurrency = o->concurrency,
                .requests = o->requests,
                .warmup_requests = o->warmup,
                .isl = o->isl,
                .osl = o->osl,
                .prompts = o->prompts,
                .simulated = true,
        };
        struct load_report report = {.has_numbers = true, .tokenizer = "simulated"};
        _cleanup_(buf_done) struct buf text = BUF_INIT(MODEL_MAX);

        if (sim_truth(m, &load, &report.summary, err) < 0)
                return -1;
        json_write(load_summary_json(a, &config, &report), JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        return fd_write_all(STDOUT_FILENO, buf_str(&text), err);
}

/* ---- the server */

/* As a program that ran into a wrong address ends; the first process of a container cannot be ended by its own signal. */
static void crashed(void *arg _unused_)
{
        struct rlimit none = {0};

        (void)setrlimit(RLIMIT_CORE, &none);
        signals_reset();
        (void)raise(SIGSEGV);
        _exit(CRASHED);
}

static void fail_start(struct timer *t)
{
        struct app *app = CONTAINER_OF(t, struct app, fail);

        dprintf(STDERR_FILENO, "%s\n", sim_fail_words(app->model));
        loop_stop(app->loop, 1);
}

static void on_signal(void *arg, int signo)
{
        struct app *app = arg;

        loop_stop(app->loop, signo == SIGINT ? EXIT_INTERRUPTED : 0);
}

static int write_port(const char *path, uint16_t port, struct err *err)
{
        char text[8];
        int n = snprintf(text, sizeof(text), "%u\n", port);

        return file_replace(path, str_n(text, (size_t)n), 0644, err);
}

static struct tls *server_tls(const struct sim_options *o, struct err *err)
{
        _cleanup_(buf_done) struct buf cert = BUF_INIT(PEM_MAX), key = BUF_INIT(PEM_MAX);

        if (file_read(o->tls_cert, &cert, err) < 0 || file_read(o->tls_key, &key, err) < 0)
                return NULL;
        return tls_new(&(struct tls_config){.server = true, .cert = buf_str(&cert), .key = buf_str(&key)},
                       err);
}

static int serve(const struct sim_model *m, const struct sim_options *o, const struct log *log,
                 struct err *err)
{
        _cleanup_(tls_unref) struct tls *tls = o->tls_cert ? server_tls(o, err) : NULL;
        _cleanup_(loop_free) struct loop *loop = loop_new(NULL, log, err);
        _cleanup_(sim_server_free) struct sim_server *server = NULL;
        struct app app = {.loop = loop, .model = m};
        struct sim_server_config config = {
                .loop = loop,
                .model = m,
                .listen = o->listen,
                .tls = tls,
                .log = log,
                .stamp = o->stamp,
                .on_crash = crashed,
        };

        if (!loop || (o->tls_cert && !tls))
                return -1;
        if (loop_on_signal(loop, SIGTERM, on_signal, &app) < 0 ||
            loop_on_signal(loop, SIGINT, on_signal, &app) < 0)
                return err_set(err, E_IO, "cannot wait for signals");
        server = sim_server_new(&config, err);
        if (!server || (o->port_file && write_port(o->port_file, sim_server_port(server), err) < 0))
                return -1;
        LOG_INFO(log, "Listening", F_STR("address", o->listen), F_UINT("port", sim_server_port(server)));
        timer_init(&app.fail, loop, fail_start);
        if (sim_fail_words(m))
                timer_after(&app.fail, m->faults.start_delay);
        return loop_run(loop);
}

/* ---- the command */

static int check(const struct sim_options *o, int argc)
{
        if (argc > 2)
                cli_error("sim takes one model file; see '%s help sim'", cli_name());
        else if (o->truth && (!o->requests || !o->osl))
                cli_error("--truth needs --requests and --osl (and --concurrency and --isl)");
        else if (o->truth && MAX(o->requests, o->warmup) > LOAD_REQUESTS_MAX)
                cli_error("--requests and --warmup: at most %d", LOAD_REQUESTS_MAX);
        else if (!o->tls_cert != !o->tls_key)
                cli_error("--tls-cert and --tls-key go together");
        else
                return 0;
        return -1;
}

static int run(const struct sim_options *o, const char *file)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct clock clock = CLOCK_REAL;
        struct err err = ERR_INIT;
        struct sim_model model;
        struct log log;
        bool options = false;
        int code;

        if (load_model(&a, file, o, &model, &options, &err) < 0) {
                cli_error("%s", err.text);
                return options ? EXIT_USAGE : EXIT_FAILURE;
        }
        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        if (o->truth) {
                code = tell_truth(&a, &model, o, &err);
        } else {
                fd_allow(DESCRIPTORS); /* the server asks how many there are */
                code = serve(&model, o, &log, &err);
        }
        if (code < 0)
                cli_error("sim: %s", err.text);
        return code < 0 ? 1 : code;
}

int cmd_sim(int argc, char **argv)
{
        struct sim_options o = {.listen = "127.0.0.1:8000", .concurrency = 1};
        const struct option_def options[] = {
                {"listen", 0, "ADDRESS", "where to serve (127.0.0.1:8000); port 0: any free one", OPT_STR,
                 &o.listen},
                {"port-file", 0, "FILE", "write the port there when it listens", OPT_STR, &o.port_file},
                {"gpus", 0, "N", "in place of the file's", OPT_STR, &o.gpus},
                {"mapping", 0, "NAME", "TP, TEP or DEP, in place of the file's", OPT_STR, &o.mapping},
                {"set", 0, "PATH=VALUE", "any member of the model, in place of the file's", OPT_LIST, &o.set},
                {"stamp", 0, NULL, "each chunk says when it was written (sonde_ns)", OPT_FLAG, &o.stamp},
                {"tls-cert", 0, "FILE", "serve https with this certificate (PEM)", OPT_STR, &o.tls_cert},
                {"tls-key", 0, "FILE", "and its key", OPT_STR, &o.tls_key},
                {"truth", 0, NULL, "print what must be measured, and end", OPT_FLAG, &o.truth},
                {"concurrency", 0, "N", "of the truth: requests under way (1)", OPT_UINT, &o.concurrency},
                {"requests", 0, "N", "of the truth: how many", OPT_UINT, &o.requests},
                {"isl", 0, "N", "of the truth: tokens of each prompt", OPT_UINT, &o.isl},
                {"osl", 0, "N", "of the truth: tokens of each answer", OPT_UINT, &o.osl},
                {"warmup", 0, "N", "of the truth: requests before, not counted", OPT_UINT, &o.warmup},
                {"prompts", 0, "N", "of the truth: distinct ones (100)", OPT_UINT, &o.prompts},
                {"again", 0, NULL, "of the truth: the same load went before", OPT_FLAG, &o.again},
                {0}};
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0)
                code = check(&o, argc) < 0 ? EXIT_USAGE : run(&o, argc > 1 ? argv[1] : NULL);
        vec_done(&o.set);
        return code;
}
