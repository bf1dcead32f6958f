/*
 * sonde-pod ncu: a CUDA program under Nsight Compute, or what Nsight Compute has written before.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "probe/ncu/ncu.h"

enum { PIECE = 256 << 10, TEXT_MAX = 1 << 20, KERNELS_SHOWN = 8, KERNEL_WIDTH = 40 };

static const struct usage usage = {
        "ncu [OPTION]... -- PROGRAM [ARGUMENT]...\n"
        "   or: ncu --import FILE [--rule RULE] [-o json]",
        "Runs PROGRAM under Nsight Compute (ncu must be installed), tells how far it is, and says what "
        "bounds\n"
        "it: summary.json and result.json in the run directory, the report and its CSV in artifacts/.\n"
        "\n"
        "With --import it needs no GPU and no ncu: FILE (- is standard input) is anything that ncu or its\n"
        "window has written as CSV or text, of any version, with the program's own output around it.\n"
        "\n"
        "  sonde-pod ncu --launch-count 5 -- ./vectorAdd\n"
        "  sonde-pod ncu --import report.csv\n"
        "  ncu --import report.ncu-rep --page raw --csv | sonde-pod ncu --import - -o json\n"
        "\n"
        "Exit status: 0 done; 1 it did not work, or FILE has no launch; 2 wrong usage; 130 interrupted.\n",
};

struct request {
        const char *import, *output, *rule, *shared, *dir;
        unsigned launch_count, launch_skip;
        struct ncu_collect collect;
};

/* ---- reading */

static void on_launch(void *arg, const struct ncu_launch *launch)
{
        ncu_sum_add(arg, launch);
}

static int read_pieces(int fd, const char *name, struct ncu_reader *r, struct err *err)
{
        _cleanup_(free_ptr) char *piece = xmalloc(PIECE);

        for (;;) {
                ssize_t n = read(fd, piece, PIECE);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_errno(err, E_IO, errno, "cannot read %s", name);
                if (n == 0)
                        return ncu_reader_end(r, err) < 0 ? err_wrap(err, "%s", name) : 0;
                if (ncu_reader_feed(r, str_n(piece, (size_t)n), err) < 0)
                        return err_wrap(err, "%s", name);
        }
}

static int read_file(const char *path, struct ncu_sum *sum, enum ncu_layout *ret_layout, struct err *err)
{
        bool is_stdin = streq(path, "-");
        _cleanup_(fd_close) int opened = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_(ncu_reader_free) struct ncu_reader *r = ncu_reader_new(on_launch, sum);

        if (!is_stdin && opened < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", path);
        if (read_pieces(is_stdin ? STDIN_FILENO : opened, is_stdin ? "standard input" : path, r, err) < 0)
                return -1;
        *ret_layout = ncu_reader_layout(r);
        return 0;
}

/* ---- for people */

static const struct {
        const char *key, *name, *unit;
} rows[] = {
        {"smThroughput", "Compute (SM) throughput", "% of peak"},
        {"memThroughput", "Memory throughput", "% of peak"},
        {"dramThroughput", "DRAM throughput", "% of peak"},
        {"l2Throughput", "L2 throughput", "% of peak"},
        {"l1Throughput", "L1/TEX throughput", "% of peak"},
        {"achievedOccupancy", "Achieved occupancy", "%"},
        {"theoreticalOccupancy", "Theoretical occupancy", "%"},
        {"memoryStallPct", "Stalled on memory", "%"},
        {"wavesPerSM", "Waves per SM", ""},
};

static bool number_at(const struct json *object, const char *key, double *ret)
{
        return json_to_double(json_at(object, key), ret);
}

static void add_time(struct buf *out, double ns)
{
        static const struct {
                double from, unit;
                const char *name;
        } units[] = {{1e9, 1e9, "s"}, {1e6, 1e6, "ms"}, {1e3, 1e3, "us"}, {0, 1, "ns"}};
        size_t i = 0;

        while (ns < units[i].from)
                i++;
        buf_printf(out, "%.4g %s", ns / units[i].unit, units[i].name);
}

/* Of a file, on this one line, as far as it fits. */
static void add_plain(struct buf *out, const char *text, size_t max)
{
        size_t n = utf8_cut(text, strlen(text), max);

        for (size_t i = 0; i < n; i++)
                buf_addc(out, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
        if (text[n])
                buf_adds(out, "…");
}

static void add_head(struct buf *out, const struct json *s)
{
        const char *device = json_str(s, "device"), *cc = json_str(s, "computeCapability");
        int64_t launches = json_int(s, "launches", 0), kernels = json_int(s, "kernels", 0);
        double ns;

        buf_printf(out, "%lld %s of %lld %s", (long long)launches, launches == 1 ? "launch" : "launches",
                   (long long)kernels, kernels == 1 ? "kernel" : "kernels");
        if (number_at(s, "durationNs", &ns)) {
                buf_adds(out, " · ");
                add_time(out, ns);
        }
        if (device) {
                buf_adds(out, " · ");
                add_plain(out, device, KERNEL_WIDTH);
        }
        if (cc) {
                buf_adds(out, " · compute capability ");
                add_plain(out, cc, KERNEL_WIDTH);
        }
        buf_printf(out, " · %s layout\n", json_str_or(s, "layout", "unknown"));
}

/* What of the rule made it so. */
static void add_why(struct buf *out, const struct json *s)
{
        static const struct {
                const char *bottleneck, *why;
        } reasons[] = {
                {"compute", "compute is at least 10 points ahead of memory"},
                {"memory", "memory is at least 10 points ahead of compute"},
                {"balanced", "compute and memory are within 10 points"},
                {"saturated-compute", "compute is at 80 % of its peak or more"},
                {"saturated-memory", "memory is at 80 % of its peak or more"},
                {"latency", "both are below 60 % of their peaks: latency"},
                {"small-grid", "both are below 60 % of their peaks: the grid does not fill the GPU once"},
        };
        const char *bottleneck = json_str(s, "bottleneck");
        const struct json *metrics = json_at(s, "metrics");

        if (streq(json_str(s, "rule"), "upstream")) {
                buf_adds(out, "by upstream's rule: SM 70 %; DRAM or L2 70 %, or memory stalls 30 %");
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                if (streq(bottleneck, reasons[i].bottleneck))
                        buf_adds(out, reasons[i].why);
        if (!bottleneck)
                buf_printf(out, "the rule needs compute and memory throughput, and %s not there",
                           json_at(metrics, "smThroughput")    ? "memory's is"
                           : json_at(metrics, "memThroughput") ? "compute's is"
                                                               : "both are");
}

static void add_bound(struct buf *out, const struct json *s)
{
        const struct json *metrics = json_at(s, "metrics");
        double sm, mem;

        buf_printf(out, "%s: ", json_str_or(s, "boundType", "unknown"));
        add_why(out, s);
        if (number_at(metrics, "smThroughput", &sm) && number_at(metrics, "memThroughput", &mem))
                buf_printf(out, " (compute %.2f %%, memory %.2f %%)", sm, mem);
        buf_adds(out, "\n\n");
}

static void add_metrics(struct buf *out, const struct json *s)
{
        double v;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (number_at(json_at(s, "metrics"), rows[i].key, &v))
                        buf_printf(out, "%-26s%10.2f%s%s\n", rows[i].name, v, rows[i].unit[0] ? " " : "",
                                   rows[i].unit);
        if (json_bool(s, "unweighted", false))
                buf_adds(out, "plain means: not every launch has its duration\n");
}

static void add_kernels(struct buf *out, const struct json *s)
{
        int left = KERNELS_SHOWN;

        if (json_int(s, "kernels", 0) < 2)
                return;
        buf_printf(out, "\n%8s  %-13s %8s  kernel\n", "share", "bound", "launches");
        json_foreach (k, json_at(s, "byKernel")) {
                double share = 0;

                if (left-- == 0)
                        break;
                number_at(k, "share", &share);
                buf_printf(out, "%6.1f %%  %-13s %8lld  ", share * 100,
                           json_str_or(k, "boundType", "unknown"), (long long)json_int(k, "launches", 0));
                add_plain(out, json_str_or(k, "kernel", ""), KERNEL_WIDTH);
                buf_addc(out, '\n');
        }
        if (json_int(s, "kernels", 0) > KERNELS_SHOWN)
                buf_printf(out, "%*s and %lld more\n", 34, "",
                           (long long)json_int(s, "kernels", 0) - KERNELS_SHOWN);
}

static int import(const struct request *q, enum ncu_rule rule)
{
        _cleanup_(ncu_sum_free) struct ncu_sum *sum = ncu_sum_new();
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct ncu_context context = {.rule = rule};
        struct err err = ERR_INIT;
        struct json *summary;

        if (read_file(q->import, sum, &context.layout, &err) < 0) {
                cli_error("ncu: %s", err.text);
                return 1;
        }
        summary = ncu_summary(&a, sum, &context);
        if (q->output) {
                json_write(summary, JSON_PRETTY, &out);
                buf_addc(&out, '\n');
        } else {
                add_head(&out, summary);
                add_bound(&out, summary);
                add_metrics(&out, summary);
                add_kernels(&out, summary);
        }
        if (fd_write_all(STDOUT_FILENO, buf_str(&out), &err) < 0) {
                cli_error("ncu: %s", err.text);
                return 1;
        }
        return 0;
}

/* ---- collecting */

static int collect(const struct request *q, char **program)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *env = getenv("SONDE_RUN_DIR");
        struct clock clock = CLOCK_REAL;
        struct ncu_collect c = q->collect;
        struct log log;

        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        if (q->shared)
                (void)ncu_workload_link(q->shared, &log);
        c.program = q->shared ? ncu_workload_command(&a, q->shared, program, &c.libraries) : program;
        c.dir = q->dir ? q->dir : env && *env ? env : "profiling_results";
        c.launch_count = q->launch_count;
        c.launch_skip = q->launch_skip;
        c.clock = &clock;
        c.log = &log;
        return ncu_collect(&c);
}

static bool rule_parse(const char *text, enum ncu_rule *ret)
{
        if (text && !streq(text, "sol") && !streq(text, "upstream"))
                return false;
        *ret = streq(text, "upstream") ? NCU_RULE_UPSTREAM : NCU_RULE_SOL;
        return true;
}

/* Whether something is said about a run. */
static bool is_run(const struct request *q, char **program)
{
        const struct ncu_collect *c = &q->collect;

        return program[0] || q->shared || q->dir || q->launch_count || q->launch_skip || c->ncu || c->set ||
               c->kernel || c->clock_control || c->cache_control || c->name;
}

static bool check(const struct request *q, char **program)
{
        if (q->import && is_run(q, program))
                cli_error("ncu: --import reads a file, and nothing runs: beside it are --rule and -o; see "
                          "'%s help ncu'",
                          cli_name());
        else if (!q->import && !q->shared && !program[0])
                cli_error("ncu needs a program (-- PROGRAM...) or --import FILE; see '%s help ncu'",
                          cli_name());
        else if (q->output && !streq(q->output, "json"))
                cli_error("ncu: -o is json, not '%s'", q->output);
        else if (q->output && !q->import)
                cli_error("ncu: -o goes with --import; a run writes summary.json");
        else
                return true;
        return false;
}

int cmd_ncu(int argc, char **argv)
{
        const char *rule = getenv("SONDE_NCU_RULE");
        struct request q = {.rule = rule && *rule ? rule : NULL};
        const struct option_def options[] = {
                {"import", 0, "FILE", "read what ncu or its window wrote; - is standard input", OPT_STR,
                 &q.import},
                {"output", 'o', "FORMAT", "json: all that is known (a short table)", OPT_STR, &q.output},
                {"rule", 0, "RULE",
                 "sol: NVIDIA's Speed of Light; upstream: KRATOS' 70/70/30 (SONDE_NCU_RULE, else sol)",
                 OPT_STR, &q.rule},
                {"ncu", 0, "PROGRAM", "the tool (SONDE_NCU, else ncu)", OPT_STR, &q.collect.ncu},
                {"set", 0, "NAME", "of sections, as ncu --list-sets has them (basic)", OPT_STR,
                 &q.collect.set},
                {"launch-count", 0, "N", "how many launches are measured (20)", OPT_UINT, &q.launch_count},
                {"launch-skip", 0, "N", "how many go before (0)", OPT_UINT, &q.launch_skip},
                {"kernel-name", 0, "NAME", "only these kernels, regex:... too", OPT_STR, &q.collect.kernel},
                {"clock-control", 0, "HOW", "none: as in production, base: locked (none)", OPT_STR,
                 &q.collect.clock_control},
                {"cache-control", 0, "HOW", "all: flushed before each pass, none (all)", OPT_STR,
                 &q.collect.cache_control},
                {"shared", 0, "DIR", "the program is the one that stage-workload has put there", OPT_STR,
                 &q.shared},
                {"dir", 0, "DIR", "the run directory (SONDE_RUN_DIR, else profiling_results)", OPT_STR,
                 &q.dir},
                {"name", 0, "NAME", "of the report (report)", OPT_STR, &q.collect.name},
                {0}};
        char **program = argv + 1;
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        argv[argc] = NULL; /* what the options have left behind is not an argument */
        if (!rule_parse(q.rule, &q.collect.rule)) {
                cli_error("ncu: %s is sol or upstream, not '%s'",
                          q.rule == rule ? "SONDE_NCU_RULE" : "--rule", q.rule);
                return EXIT_USAGE;
        }
        if (!check(&q, program))
                return EXIT_USAGE;
        return q.import ? import(&q, q.collect.rule) : collect(&q, program);
}
