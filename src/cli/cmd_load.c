/*
 * load: requests to an OpenAI-compatible server, timed at the socket. Options are named as AIPerf's.
 */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "probe/probe.h"

enum {
        EXIT_INVALID = 3, /* the client was the bottleneck */
        HEADERS_MAX = 64,
        FILE_MAX = 64 * 1024,
        CA_MAX = 4 * 1024 * 1024,
        REQUESTS_LEAST = 10,
        LINE_EVERY = 5, /* seconds, where there is no terminal */
};
static const double SECONDS_MAX = 365.0 * 24 * 3600;

static const struct usage usage = {
        "load URL --model NAME [OPTION]...",
        "Sends requests to an OpenAI-compatible server and tells what it answered how fast. With\n"
        "--concurrency that many are under way all the time; with --request-rate they go out by the clock,\n"
        "whatever became of those before; with --input-file as a trace says.\n"
        "\n"
        "  sonde-pod load http://localhost:8000 --model llama --concurrency 32 --request-count 1000 \\\n"
        "                 --isl 3000 --osl 150 --extra-inputs ignore_eos:true --warmup-request-count 32\n"
        "  sonde-pod load https://llm.example --model llama --request-rate 20 --benchmark-duration 60 \\\n"
        "                 --api-key-file key --goodput 'time_to_first_token:250 inter_token_latency:20'\n"
        "  sonde-pod load http://localhost:8000 --model llama --input-file trace.jsonl --artifact-dir out\n"
        "\n"
        "Exit status: 0; 1 no request succeeded, or it could not begin; 2 wrong usage; 3 the client was the\n"
        "bottleneck, so that the numbers are not the server's; 130 interrupted, after printing what there "
        "is.\n",
};

struct request {
        struct load_config load;
        struct option_list extra;
        const char *rate, *rate_mode, *arrivals, *smoothness, *requests, *duration, *grace, *timeout, *seed;
        const char *endpoint_type, *artifact_dir, *goodput, *output, *ui, *isl, *concurrency;
        const char *header_file, *api_key_file, *ca_file;
        unsigned warmup, processors;
        bool streaming, no_streaming, insecure, quiet;
        struct arena arena;
        struct http_header headers[HEADERS_MAX];
        struct load_slo slos[LOAD_METRICS_];
};

/* ---- values */

static int parse_number(const char *option, const char *text, double least, double most, double *ret)
{
        char *end;

        if (!text)
                return 0;
        errno = 0;
        *ret = strtod(text, &end);
        if (end == text || *end || errno || !isfinite(*ret) || *ret < least || *ret > most) {
                cli_error("--%s: '%s' is not a number from %.15g to %.15g", option, text, least, most);
                return -1;
        }
        return 0;
}

/* Seconds, as AIPerf has them, or a duration with its unit. */
static int parse_seconds(const char *option, const char *text, usec_t *ret)
{
        double seconds;
        char *end;

        if (!text)
                return 0;
        seconds = strtod(text, &end);
        if (end != text && !*end && seconds >= 0 && seconds <= SECONDS_MAX) {
                *ret = (usec_t)(seconds * (double)USEC_PER_SEC);
                return 0;
        }
        if (str_to_duration(str_of(text), ret) && (double)*ret <= SECONDS_MAX * (double)USEC_PER_SEC)
                return 0;
        cli_error("--%s: '%s' is not a number of seconds, nor a duration such as 500ms or 10m", option, text);
        return -1;
}

static int parse_whole(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
        if (!text)
                return 0;
        if (!str_to_u64(str_of(text), ret) || *ret < least || *ret > most) {
                cli_error("--%s: '%s' is not a whole number from %llu to %llu", option, text,
                          (unsigned long long)least, (unsigned long long)most);
                return -1;
        }
        return 0;
}

/* "key:value", the value as JSON or, where it is none, as a string; or a JSON object of several. */
static int add_extra(struct request *q, struct json *extra, const char *text)
{
        struct arena *a = &q->arena;
        struct str value = str_of(text), key;
        struct json *j;

        if (text[0] == '{') {
                struct err err = ERR_INIT;

                j = json_parse(a, value, NULL, &err);
                if (!j) {
                        cli_error("--extra-inputs: %s", err.text);
                        return -1;
                }
                while (json_first(j)) {
                        struct json *member = json_take(j, json_first(j));

                        json_setn(a, extra, str_n(member->key, member->key_len), member);
                }
                return 0;
        }
        key = str_split(&value, ':');
        if (!value.p || !key.n) {
                cli_error("--extra-inputs: '%s' is not of the form key:value", text);
                return -1;
        }
        j = json_parse(a, value, NULL, NULL);
        json_setn(a, extra, key, j ? j : json_stringn(a, value));
        return 0;
}

static int set_extra(struct request *q)
{
        struct json *extra = json_object(&q->arena);

        for (size_t i = 0; i < q->extra.n; i++)
                if (add_extra(q, extra, q->extra.v[i]) < 0)
                        return -1;
        q->load.extra = q->extra.n ? extra : NULL;
        return 0;
}

/* "time_to_first_token:250 inter_token_latency:20" */
static int set_goodput(struct request *q)
{
        struct str rest = str_trim(str_of(q->goodput ? q->goodput : ""));

        while (rest.n) {
                struct str limit = str_split(&rest, ' '), tag = str_split(&limit, ':');
                struct load_slo *slo = &q->slos[q->load.n_slos];
                char text[64];

                rest = str_trim(rest);
                if (q->load.n_slos >= ARRAY_LEN(q->slos)) {
                        cli_error("--goodput has more than %zu limits", ARRAY_LEN(q->slos));
                        return -1;
                }
                if (!load_metric_of(tag, &slo->metric) || !limit.n || limit.n >= sizeof(text)) {
                        cli_error("--goodput: '%.*s' is not of the form metric:limit, such as "
                                  "time_to_first_token:250",
                                  STR_ARG(tag));
                        return -1;
                }
                snprintf(text, sizeof(text), "%.*s", STR_ARG(limit));
                if (parse_number("goodput", text, 0, 1e12, &slo->limit) < 0)
                        return -1;
                q->load.n_slos++;
        }
        q->load.slos = q->slos;
        return 0;
}

/* ---- headers, keys, TLS */

static char *read_text(struct request *q, const char *option, const char *path, size_t most)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(most);
        struct err err = ERR_INIT;
        char *kept;

        if (file_read(path, &text, &err) < 0) {
                cli_error("--%s: %s", option, err.text);
                return NULL;
        }
        kept = arena_strndup(&q->arena, text.p, text.n);
        mem_wipe(text.p, text.n);
        return kept;
}

static int add_header(struct request *q, const char *option, struct str name, struct str value)
{
        if (!name.n || !value.p || q->load.n_headers >= HEADERS_MAX) {
                cli_error("--%s: %s", option,
                          name.n && value.p ? "too many headers" : "a line is not of the form Name: value");
                return -1;
        }
        for (size_t i = 0; i < value.n; i++)
                if ((unsigned char)value.p[i] < ' ' || value.p[i] == 0x7F) {
                        cli_error("--%s: a value has control characters", option);
                        return -1;
                }
        q->headers[q->load.n_headers++] = (struct http_header){name, value};
        return 0;
}

static int set_headers(struct request *q)
{
        if (q->header_file) {
                char *text = read_text(q, "header-file", q->header_file, FILE_MAX);
                struct str rest = str_of(text);

                if (!text)
                        return -1;
                while (rest.n) {
                        struct str value = str_trim(str_split(&rest, '\n')), name;

                        if (!value.n)
                                continue;
                        name = str_split(&value, ':');
                        if (add_header(q, "header-file", str_trim(name),
                                       value.p ? str_trim(value) : STR_NULL) < 0)
                                return -1;
                }
        }
        if (q->api_key_file) {
                char *text = read_text(q, "api-key-file", q->api_key_file, FILE_MAX), *value;
                struct str key = str_trim(str_of(text));

                if (!text)
                        return -1;
                if (!key.n) {
                        cli_error("--api-key-file: %s is empty", q->api_key_file);
                        return -1;
                }
                value = arena_join(&q->arena, "Bearer ", arena_strndup(&q->arena, key.p, key.n), "");
                if (add_header(q, "api-key-file", STR("Authorization"), str_of(value)) < 0)
                        return -1;
        }
        q->load.headers = q->headers;
        return 0;
}

static int set_tls(struct request *q)
{
        struct tls_config config = {.insecure = q->insecure};
        struct err err = ERR_INIT;

        if (q->ca_file) {
                char *ca = read_text(q, "ca-file", q->ca_file, CA_MAX);

                if (!ca)
                        return -1;
                config.ca = str_of(ca);
        }
        if (!str_has_prefix(str_of(q->load.url), STR("https://")))
                return 0;
        if (q->insecure)
                cli_error("warning: the server's certificate is not verified");
        q->load.tls = tls_new(&config, &err);
        if (q->load.tls)
                return 0;
        cli_error("%s", err.text);
        return -1;
}

/* ---- the whole */

static int set_pattern(struct request *q)
{
        const char *name = q->arrivals ? q->arrivals : q->rate_mode;
        struct err err = ERR_INIT;

        q->load.pattern = ARRIVE_POISSON;
        if (name && arrival_pattern_of(name, &q->load.pattern, &err) < 0) {
                cli_error("--%s: %s", q->arrivals ? "arrival-pattern" : "request-rate-mode", err.text);
                return -1;
        }
        if (parse_number("request-rate", q->rate, 1e-6, 1e6, &q->load.rate) < 0 ||
            parse_number("arrival-smoothness", q->smoothness, 1e-3, 1e6, &q->load.smoothness) < 0)
                return -1;
        if (name && !q->rate && q->load.pattern != ARRIVE_BURST) {
                cli_error("--arrival-pattern needs --request-rate");
                return -1;
        }
        if (q->load.pattern == ARRIVE_BURST)
                q->load.rate = 0; /* as many as --concurrency lets, at once */
        return 0;
}

static int set_endpoint(struct request *q)
{
        const char *type = q->endpoint_type ? q->endpoint_type : "chat";

        if (!streq(type, "chat") && !streq(type, "completions")) {
                cli_error("--endpoint-type: '%s' is neither chat nor completions", type);
                return -1;
        }
        if (q->streaming && q->no_streaming) {
                cli_error("--streaming and --no-streaming exclude each other");
                return -1;
        }
        if (q->load.path && (q->load.path[0] != '/' || strpbrk(q->load.path, " \t\r\n"))) {
                cli_error("--endpoint: '%s' is not a path such as /v1/chat/completions", q->load.path);
                return -1;
        }
        if (q->output && !streq(q->output, "json") && !streq(q->output, "table")) {
                cli_error("-o: '%s' is neither json nor table", q->output);
                return -1;
        }
        q->load.endpoint = streq(type, "chat") ? LLM_CHAT : LLM_COMPLETIONS;
        q->load.whole = q->no_streaming;
        return 0;
}

/* Those of which none at all makes no sense. */
static int set_sizes(struct request *q)
{
        uint64_t concurrency = 0, isl = 0;

        if (parse_whole("concurrency", q->concurrency, 1, LOAD_CONCURRENCY_MAX, &concurrency) < 0 ||
            parse_whole("isl", q->isl, 1, UINT32_MAX, &isl) < 0)
                return -1;
        q->load.concurrency = (uint32_t)concurrency;
        q->load.isl = (uint32_t)isl;
        return 0;
}

static int set_amounts(struct request *q)
{
        struct load_config *c = &q->load;

        c->grace = 30 * USEC_PER_SEC;
        if (set_sizes(q) < 0)
                return -1;
        if (parse_whole("request-count", q->requests, 1, LOAD_REQUESTS_MAX, &c->requests) < 0 ||
            parse_whole("random-seed", q->seed, 0, UINT64_MAX, &c->seed) < 0 ||
            parse_seconds("benchmark-duration", q->duration, &c->duration) < 0 ||
            parse_seconds("benchmark-grace-period", q->grace, &c->grace) < 0 ||
            parse_seconds("request-timeout-seconds", q->timeout, &c->request_timeout) < 0)
                return -1;
        if (q->duration && !c->duration) {
                cli_error("--benchmark-duration: '%s' is no time to measure in", q->duration);
                return -1;
        }
        if (!c->requests && !c->duration && !c->trace)
                c->requests = MAX((uint64_t)REQUESTS_LEAST, 2 * (uint64_t)c->concurrency);
        if (!q->seed) {
                struct rng rng;

                rng_seed_random(&rng);
                c->seed = rng_next(&rng) >> 32;
        }
        c->warmup_requests = q->warmup;
        return 0;
}

static int complete(struct request *q, int argc, char **argv)
{
        if (argc + (q->load.url != NULL) != 2) {
                cli_error("load needs one argument (or --url), the server's URL; see '%s help load'",
                          cli_name());
                return -1;
        }
        if (!q->load.url)
                q->load.url = argv[1];
        if (!q->load.model) {
                cli_error("load needs --model, the name by which the server knows its model");
                return -1;
        }
        if (set_endpoint(q) < 0 || set_pattern(q) < 0 || set_amounts(q) < 0 || set_extra(q) < 0 ||
            set_goodput(q) < 0 || set_headers(q) < 0 || set_tls(q) < 0)
                return -1;
        return 0;
}

/* ---- progress */

struct display {
        bool terminal;
        usec_t last; /* of a line, on the clock of the phase */
        bool warmup, any;
};

static void say(const struct display *d, const struct load_progress *p)
{
        double seconds = (double)p->elapsed / (double)USEC_PER_SEC, share;
        char head[64], left[48] = "";

        if (p->total)
                share = (double)p->done / (double)p->total;
        else
                share = p->planned ? (double)p->elapsed / (double)p->planned : 0;
        if (p->total && p->planned)
                share = MAX(share, (double)p->elapsed / (double)p->planned);
        share = MIN(share, 1.0);
        if (p->total)
                snprintf(head, sizeof(head), "%llu/%llu", (unsigned long long)p->done,
                         (unsigned long long)p->total);
        else
                snprintf(head, sizeof(head), "%llu", (unsigned long long)p->done);
        if (share > 0.01 && share < 1)
                snprintf(left, sizeof(left), ", about %.0f s left", seconds / share * (1 - share));
        fprintf(stderr, "%s%s: %s requests, %.0f %%, %.1f/s, %llu under way, %llu failed%s%s",
                d->terminal ? "\r\033[K" : "", p->warmup ? "warm-up" : "load", head, share * 100,
                seconds > 0 ? (double)p->done / seconds : 0, (unsigned long long)p->under_way,
                (unsigned long long)p->failed, left, d->terminal ? "" : "\n");
        fflush(stderr);
}

static void on_progress(void *arg, const struct load_progress *p)
{
        struct display *d = arg;
        usec_t every = d->terminal ? 100 * USEC_PER_MS : LINE_EVERY * USEC_PER_SEC;

        if (p->warmup != d->warmup)
                d->last = 0;
        d->warmup = p->warmup;
        if (p->elapsed < usec_add(d->last, every))
                return;
        d->last = p->elapsed;
        d->any = true;
        say(d, p);
}

/* ---- running */

/* A descriptor that becomes readable with SIGINT or SIGTERM. */
static int stop_signals(sigset_t *set)
{
        sigemptyset(set);
        sigaddset(set, SIGINT);
        sigaddset(set, SIGTERM);
        sigprocmask(SIG_BLOCK, set, NULL);
        return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The one that ended the run is done with; whoever does not want to wait for the files either sends another. */
static void end_signals(int fd, const sigset_t *set)
{
        struct signalfd_siginfo info;

        while (fd >= 0 && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
                ;
        sigprocmask(SIG_UNBLOCK, set, NULL);
}

/* Before the run: what cannot be written must not be noticed after it. */
static int make_place(const char *dir, struct err *err)
{
        if (!dir)
                return 0;
        if (dir_make(dir, 0755, err) < 0)
                return -1;
        if (access(dir, W_OK | X_OK) < 0)
                return err_errno(err, E_IO, errno, "cannot write into %s", dir);
        return 0;
}

static int put_out(const struct request *q, const struct load_report *r, struct err *err)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        if (streq(q->output, "json")) {
                json_write(load_summary_json(&a, &q->load, r), JSON_PRETTY, &out);
                buf_addc(&out, '\n');
        } else {
                load_print(&q->load, r, &out);
        }
        if (fd_write_all(STDOUT_FILENO, buf_str(&out), err) < 0)
                return -1;
        return q->artifact_dir ? load_export(&q->load, r, q->artifact_dir, err) : 0;
}

static int run_load(struct request *q)
{
        struct display display = {.terminal = isatty(STDERR_FILENO) == 1};
        _cleanup_(load_report_done) struct load_report report = {.records = NULL};
        struct err err = ERR_INIT;
        sigset_t set;
        _cleanup_(fd_close) int stop_fd = stop_signals(&set);
        int r;

        q->load.stop_fd = stop_fd;
        q->load.on_progress = q->quiet ? NULL : on_progress;
        q->load.arg = &display;
        r = make_place(q->artifact_dir, &err);
        if (r == 0)
                r = load_run(&q->load, &report, &err);
        end_signals(stop_fd, &set);
        if (display.terminal && display.any)
                fprintf(stderr, "\r\033[K");
        if (r < 0 || put_out(q, &report, &err) < 0) {
                cli_error("%s", err.text);
                return EXIT_FAILURE;
        }
        if (report.ended_early)
                cli_error("ended early: %s", report.ended_early);
        if (report.invalid)
                cli_error("invalid: %s", report.invalid);
        if (report.stopped)
                return EXIT_INTERRUPTED;
        if (!report.has_numbers) {
                cli_error("no request succeeded");
                return EXIT_FAILURE;
        }
        return report.invalid ? EXIT_INVALID : 0;
}

static void request_done(struct request *q)
{
        tls_unref(q->load.tls);
        arena_wipe(&q->arena);
        vec_done(&q->extra);
}
DEFINE_CLEANUP_STRUCT(struct request, request_done)

static int parse(struct request *q, int *argc, char **argv)
{
        struct load_config *c = &q->load;
        const struct option_def options[] = {
                {"url", 0, "URL", "the server, in place of the argument", OPT_STR, &c->url},
                {"model", 'm', "NAME", "the model to ask for", OPT_STR, &c->model},
                {"concurrency", 0, "N", "requests under way all the time (1); with a rate: at most", OPT_STR,
                 &q->concurrency},
                {"request-rate", 0, "R", "requests a second, by the clock", OPT_STR, &q->rate},
                {"arrival-pattern", 0, "NAME", "poisson (default), constant, gamma, concurrency_burst",
                 OPT_STR, &q->arrivals},
                {"request-rate-mode", 0, "NAME", "the same", OPT_STR, &q->rate_mode},
                {"arrival-smoothness", 0, "X", "of gamma: above 1 smoother than poisson, below burstier",
                 OPT_STR, &q->smoothness},
                {"request-count", 0, "N", "requests in all (twice the concurrency, at least 10)", OPT_STR,
                 &q->requests},
                {"benchmark-duration", 0, "SECONDS", "time in which requests are sent", OPT_STR,
                 &q->duration},
                {"benchmark-grace-period", 0, "SECONDS", "what is under way then may take (30)", OPT_STR,
                 &q->grace},
                {"warmup-request-count", 0, "N", "requests before, which do not count (0)", OPT_UINT,
                 &q->warmup},
                {"isl", 0, "N", "tokens of a prompt (550)", OPT_STR, &q->isl},
                {"synthetic-input-tokens-mean", 0, "N", "the same", OPT_STR, &q->isl},
                {"synthetic-input-tokens-stddev", 0, "N", "their deviation (0)", OPT_UINT, &c->isl_stddev},
                {"isl-stddev", 0, "N", "the same", OPT_UINT, &c->isl_stddev},
                {"osl", 0, "N", "tokens of an answer at most (not said to the server)", OPT_UINT, &c->osl},
                {"output-tokens-mean", 0, "N", "the same", OPT_UINT, &c->osl},
                {"output-tokens-stddev", 0, "N", "their deviation (0)", OPT_UINT, &c->osl_stddev},
                {"osl-stddev", 0, "N", "the same", OPT_UINT, &c->osl_stddev},
                {"num-dataset-entries", 0, "N", "distinct prompts (100)", OPT_UINT, &c->prompts},
                {"random-seed", 0, "N", "the same prompts and times again", OPT_STR, &q->seed},
                {"input-file", 0, "FILE", "replay a trace of JSON lines", OPT_STR, &c->trace},
                {"tokenizer", 0, "FILE", "tokenizer.json or a word list (short English words)", OPT_STR,
                 &c->tokenizer},
                {"endpoint-type", 0, "TYPE", "chat (default) or completions", OPT_STR, &q->endpoint_type},
                {"endpoint", 0, "PATH", "in place of the type's path", OPT_STR, &c->path},
                {"streaming", 0, NULL, "answers come token by token (default)", OPT_FLAG, &q->streaming},
                {"no-streaming", 0, NULL, "answers come whole", OPT_FLAG, &q->no_streaming},
                {"extra-inputs", 0, "KEY:VALUE", "put into every request, such as ignore_eos:true", OPT_LIST,
                 &q->extra},
                {"goodput", 0, "LIMITS", "what a good request keeps: 'time_to_first_token:250 ...' (ms)",
                 OPT_STR, &q->goodput},
                {"request-timeout-seconds", 0, "SECONDS", "longest wait for an answer (21600)", OPT_STR,
                 &q->timeout},
                {"workers-max", 0, "N", "threads (one a core, and one for 64 under way)", OPT_UINT,
                 &c->workers},
                {"header-file", 0, "FILE", "headers of every request, one a line", OPT_STR, &q->header_file},
                {"api-key-file", 0, "FILE", "key for 'Authorization: Bearer'", OPT_STR, &q->api_key_file},
                {"ca-file", 0, "FILE", "certificates to trust, in place of the system's", OPT_STR,
                 &q->ca_file},
                {"insecure-skip-tls-verify", 0, NULL, "trust any certificate", OPT_FLAG, &q->insecure},
                {"artifact-dir", 0, "DIR", "write AIPerf's files there", OPT_STR, &q->artifact_dir},
                {"output", 'o', "FORMAT", "table (default) or json", OPT_STR, &q->output},
                {"quiet", 'q', NULL, "no progress", OPT_FLAG, &q->quiet},
                {"ui", 0, "NAME", "without effect: AIPerf's", OPT_STR, &q->ui},
                {"record-processors", 0, "N", "without effect: AIPerf's", OPT_UINT, &q->processors},
                {0},
        };

        return options_parse(options, &usage, argc, argv);
}

int cmd_load(int argc, char **argv)
{
        _cleanup_(request_done) struct request q = {.load = {.stop_fd = -1}};
        int code = parse(&q, &argc, argv);

        if (code >= 0)
                return code;
        if (complete(&q, argc, argv) < 0)
                return EXIT_USAGE;
        return run_load(&q);
}
