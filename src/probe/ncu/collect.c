/*
 * The whole of it: ncu around the program, the report as numbers, what they say.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/ncu/collect.h"

enum { STATUS_STOPPED = 130, VERSION_MAX = 4096, RESULT_MAX = 4 << 20 };

#define REPORT_EVERY  (100 * USEC_PER_MS)
#define VERSION_LIMIT (60 * USEC_PER_SEC)

struct collecting {
        const struct ncu_collect *c;
        struct arena a;
        struct tool_watch watch;
        struct run_reporter reporter;
        struct run_plan plan;
        struct ncu_console console;
        const char *ncu, *tool, *artifacts, *report; /* report: without .ncu-rep */
        uint64_t launch_count;
        bool news; /* that were not told yet */
        usec_t told_at;
        int status; /* of the collecting run */
        struct imported imported;
        enum ncu_failure failure; /* of the run; detail has what it says */
        const char *detail;
        const char *warnings[NCU_WARNINGS_MAX + 4];
        size_t n_warnings;
};

static void warn(struct collecting *w, const char *text)
{
        if (text && w->n_warnings + 1 < ARRAY_LEN(w->warnings))
                w->warnings[w->n_warnings++] = text;
}

/* ---- progress */

/* How many launches there will be at most: as the tool says, else as it was asked. Each process may count for itself. */
static uint64_t expected(const struct collecting *w)
{
        const struct ncu_console *c = &w->console;

        return MAX(c->of ? MIN(c->of, w->launch_count) : w->launch_count, c->launches + c->running);
}

static void tell_what(const struct collecting *w, char *out, size_t size)
{
        const struct ncu_console *c = &w->console;
        unsigned long long done = c->launches, of = expected(w);

        if (!c->kernel[0])
                snprintf(out, size, "%s",
                         c->connected ? "The program runs; no kernel was launched yet"
                                      : "Starting the program under ncu");
        else if (c->running)
                snprintf(out, size, "Profiling %s: launch %llu of at most %llu, %u %%", c->kernel, done + 1,
                         of, c->percent);
        else if (done >= of)
                snprintf(out, size, "Profiled %llu launches; the program runs to its end", done);
        else
                snprintf(out, size, "Profiled %s: launch %llu of at most %llu, %u passes", c->kernel, done,
                         of, c->passes);
}

/* MESSAGE NULL: how far collecting is. */
static void tell(struct collecting *w, const char *message)
{
        char text[256];
        const struct run_report report = {
                .phase = message ? "Importing" : "Collecting",
                .message = message ? message : text,
                .has_progress = !message,
                .current_step = (int64_t)w->console.launches,
                .total_steps = (int64_t)expected(w),
                .sub_phase = w->console.kernel[0] ? w->console.kernel : NULL,
                .gpus = -1,
        };

        tell_what(w, text, sizeof(text));
        (void)run_report(&w->reporter, &report);
        w->news = false;
        w->told_at = clock_boot(w->c->clock);
}

static void on_output(void *arg, struct str piece)
{
        struct collecting *w = arg;

        w->news |= ncu_console_feed(&w->console, piece);
}

static usec_t on_turn(void *arg)
{
        struct collecting *w = arg;
        usec_t due = w->told_at + REPORT_EVERY;

        if (!w->news)
                return 0;
        if (clock_boot(w->c->clock) < due)
                return due;
        tell(w, NULL);
        return 0;
}

/* ---- the tool */

static void on_version(void *arg, struct str piece)
{
        buf_addstr(arg, piece);
}

/* "Version 2025.3.1.0 (build 36398880) (public-release)" */
static const char *version_in(struct arena *a, struct str text)
{
        while (text.p) {
                struct str line = str_trim(str_split(&text, '\n')), number;

                if (!str_has_prefix(line, STR("Version ")))
                        continue;
                number = str_n(line.p + 8, line.n - 8);
                number = str_split(&number, ' ');
                return number.n && number.n < 64 && utf8_valid(number.p, number.n)
                               ? arena_strndup(a, number.p, number.n)
                               : NULL;
        }
        return NULL;
}

/* Also tells whether there is such a tool at all. */
static int ask_version(struct collecting *w, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(VERSION_MAX);
        const char *const argv[] = {w->ncu, "--version", NULL};
        const struct tool_job job = {
                .argv = (char *const *)argv, .limit = VERSION_LIMIT, .output = on_version, .arg = &text};
        int status;

        if (tool_run(&w->watch, &job, &status, err) < 0)
                return -1;
        /* As shells and loaders end: it is there, and what it needs is not. */
        if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
                return err_set(err, E_CONFIG, "'%s --version' ended with status %d", w->ncu,
                               WEXITSTATUS(status));
        w->tool = version_in(&w->a, buf_str(&text));
        return 0;
}

static char **command(struct collecting *w)
{
        const struct ncu_collect *c = w->c;
        const char *const fixed[] = {w->ncu,
                                     "--config-file",
                                     "off",
                                     "--target-processes",
                                     "all",
                                     "--set",
                                     c->set ? c->set : "basic",
                                     "--launch-count",
                                     arena_printf(&w->a, "%llu", (unsigned long long)w->launch_count),
                                     "--clock-control",
                                     c->clock_control ? c->clock_control : "none",
                                     "--cache-control",
                                     c->cache_control ? c->cache_control : "all",
                                     "--force-overwrite",
                                     "--export",
                                     w->report};
        size_t n = 0, args = 0;
        const char **argv;

        while (c->program[args])
                args++;
        argv = arena_new_array(&w->a, const char *, ARRAY_LEN(fixed) + args + 5);
        for (; n < ARRAY_LEN(fixed); n++)
                argv[n] = fixed[n];
        if (c->launch_skip) {
                argv[n++] = "--launch-skip";
                argv[n++] = arena_printf(&w->a, "%llu", (unsigned long long)c->launch_skip);
        }
        if (c->kernel) {
                argv[n++] = "--kernel-name";
                argv[n++] = c->kernel;
        }
        for (size_t i = 0; i < args; i++)
                argv[n++] = c->program[i];
        return (char **)argv;
}

static int collect(struct collecting *w, struct err *err)
{
        const char *ours = getenv("LD_LIBRARY_PATH");
        const char *env[] = {NULL, NULL};
        struct tool_job job = {.forward = true, .output = on_output, .wake = on_turn, .arg = w, .env = env};

        if (w->c->libraries)
                env[0] = arena_printf(&w->a, "LD_LIBRARY_PATH=%s%s%s", w->c->libraries,
                                      ours && *ours ? ":" : "", ours ? ours : "");
        job.argv = command(w);
        tell(w, NULL);
        if (tool_run(&w->watch, &job, &w->status, err) < 0)
                return -1;
        (void)ncu_console_feed(&w->console, STR("\n")); /* a last line without its end */
        return 0;
}

/* ---- what came out */

static bool ended_well(const struct collecting *w)
{
        return WIFEXITED(w->status) && WEXITSTATUS(w->status) == 0;
}

/* Where a GPU would be: without one the driver is not loaded, which the tool takes for one that does not fit. */
static bool has_device(void)
{
        static const char *const devices[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-gpu",
                                              "/dev/nvgpu"};

        for (size_t i = 0; i < ARRAY_LEN(devices); i++)
                if (access(devices[i], F_OK) == 0)
                        return true;
        return false;
}

/* What the run itself says of its failure; an end that it does not explain is one too. */
static void find_failure(struct collecting *w)
{
        const struct ncu_console *c = &w->console;

        w->failure = c->failure;
        w->detail = c->detail;
        /* A recording knows nothing of this machine. */
        if (w->failure == NCU_FAILURE_DRIVER && !c->replay && !has_device())
                w->failure = NCU_FAILURE_NO_GPU;
        if (w->failure != NCU_FAILURE_NONE || ended_well(w))
                return;
        w->failure = NCU_FAILURE_OTHER;
        w->detail = WIFEXITED(w->status)
                            ? arena_printf(&w->a, "ncu ended with status %d", WEXITSTATUS(w->status))
                            : arena_printf(&w->a, "ncu was ended by %s", strsignal(WTERMSIG(w->status)));
}

/* The report's path; NULL: there is nothing to import. */
static const char *find_report(struct collecting *w)
{
        const char *path = arena_join(&w->a, w->report, ".ncu-rep", "");
        enum ncu_failure f = w->failure;

        if (w->console.launches == 0 &&
            (f == NCU_FAILURE_PERMISSION || f == NCU_FAILURE_IN_USE || f == NCU_FAILURE_NOTHING))
                return NULL;
        if (access(path, R_OK) == 0)
                return path;
        /* Older ones have another ending. */
        return w->console.report[0] && access(w->console.report, R_OK) == 0 ? w->console.report : NULL;
}

static bool has_numbers(const struct json *summary)
{
        static const enum ncu_metric deciding[] = {NCU_SM, NCU_MEM, NCU_DRAM};
        const struct json *metrics = json_at(summary, "metrics");

        for (size_t i = 0; i < ARRAY_LEN(deciding); i++)
                if (json_at(metrics, ncu_metric_key(deciding[i])))
                        return true;
        return false;
}

/* Launches with numbers are a success, whatever became of the run; without them the failure is what was said of it. */
static struct json *judge(struct collecting *w, struct ncu_context *context)
{
        uint64_t launches = ncu_sum_launches(w->imported.sum);
        struct json *summary;

        context->partial = !ended_well(w) || w->imported.err.code != E_OK;
        if (w->failure != NCU_FAILURE_NONE)
                warn(w, ncu_failure_sentence(&w->a, w->failure, w->detail));
        if (w->imported.err.code != E_OK)
                warn(w, arena_strdup(&w->a, w->imported.err.text));
        warn(w, w->imported.warning);
        for (size_t i = 0; i < w->console.n_warnings; i++)
                warn(w, w->console.warnings[i]);
        summary = launches ? ncu_summary(&w->a, w->imported.sum, context) : NULL;
        if (summary && has_numbers(summary))
                return summary;
        if (w->failure != NCU_FAILURE_NONE)
                return NULL;
        w->failure = summary ? NCU_FAILURE_NO_NUMBERS : NCU_FAILURE_OTHER;
        w->detail = w->imported.err.code != E_OK ? w->imported.err.text : NULL;
        if (!summary && !w->console.launches && !w->detail)
                w->failure = NCU_FAILURE_NOTHING;
        return NULL;
}

static int write_json(struct collecting *w, const char *name, const struct json *json, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RESULT_MAX);

        json_write(json, JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "%s is larger than %d bytes", name, RESULT_MAX);
        return file_replace(arena_join(&w->a, w->c->dir, "/", name), buf_str(&text), 0664, err);
}

static const char *counted(struct arena *a, const struct json *summary, const char *key, const char *one,
                           const char *many)
{
        int64_t n = json_int(summary, key, 0);

        return arena_printf(a, "%lld %s", (long long)n, n == 1 ? one : many);
}

static int succeed(struct collecting *w, const struct json *summary)
{
        struct err err = ERR_INIT;
        const char *message;

        if (write_json(w, RUN_RESULT_FILE, summary, &err) < 0 ||
            write_json(w, NCU_SUMMARY_FILE, ncu_summary_kratos(&w->a, summary), &err) < 0) {
                LOG_ERROR(w->c->log, "Cannot write the result", F_ERR(&err));
                (void)run_report_failed(&w->reporter, "ResultNotWritten", err.text);
                return 1;
        }
        message = arena_printf(&w->a, "%s%s: %s of %s%s", json_str_or(summary, "boundType", "unknown"),
                               w->console.replay ? " (a replay: nothing was measured)" : "",
                               counted(&w->a, summary, "launches", "launch", "launches"),
                               counted(&w->a, summary, "kernels", "kernel", "kernels"),
                               json_bool(summary, "partial", false) ? "; the run failed half-way" : "");
        LOG_INFO(w->c->log, "Profiling completed", F_STR("result", message));
        (void)run_report_complete(&w->reporter, message);
        return 0;
}

static int give_up(struct collecting *w)
{
        const char *sentence = ncu_failure_sentence(&w->a, w->failure, w->detail);

        LOG_ERROR(w->c->log, "Profiling failed", F_STR("reason", ncu_failure_reason(w->failure)),
                  F_STR("error", sentence));
        (void)run_report_failed(&w->reporter, ncu_failure_reason(w->failure), sentence);
        return 1;
}

/* ---- all of it */

static int no_tool(struct collecting *w, const struct err *err)
{
        w->failure = NCU_FAILURE_NO_TOOL;
        w->detail = arena_strdup(&w->a, err->text);
        return give_up(w);
}

static int go(struct collecting *w)
{
        struct ncu_context context = {.rule = w->c->rule, .warnings = w->warnings};
        struct err err = ERR_INIT;
        const char *report;
        struct json *summary;

        if (ask_version(w, &err) < 0 || (!w->watch.told && collect(w, &err) < 0))
                return no_tool(w, &err);
        if (w->watch.told)
                return STATUS_STOPPED;
        find_failure(w);
        report = find_report(w);
        if (report) {
                tell(w, "Importing the report");
                if (import_report(&w->watch, &w->a, w->ncu, report, arena_join(&w->a, w->report, ".csv", ""),
                                  &w->imported, &err) < 0)
                        return no_tool(w, &err);
        }
        if (w->watch.told)
                return STATUS_STOPPED;
        context.layout = w->imported.layout;
        context.replay = w->console.replay;
        context.tool = w->tool;
        summary = judge(w, &context);
        return summary ? succeed(w, summary) : give_up(w);
}

/* What an earlier run has left is not taken for this one's. */
static int prepare(struct collecting *w, struct err *err)
{
        const char *const old[] = {arena_join(&w->a, w->report, ".ncu-rep", ""),
                                   arena_join(&w->a, w->report, ".csv", ""),
                                   arena_join(&w->a, w->c->dir, "/", RUN_RESULT_FILE),
                                   arena_join(&w->a, w->c->dir, "/", NCU_SUMMARY_FILE)};

        if (dir_make(w->artifacts, 0775, err) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_LEN(old); i++)
                if (unlink(old[i]) < 0 && errno != ENOENT)
                        return err_errno(err, E_IO, errno, "cannot remove %s", old[i]);
        return tool_watch_init(&w->watch, w->c->clock, err);
}

static struct run_plan make_plan(uint64_t launches)
{
        return (struct run_plan){
                .n = 2,
                .weighted = true,
                .phases = {{.name = "Collecting",
                            .steps = (uint32_t)MIN(launches, (uint64_t)RUN_STEPS_MAX),
                            .weight = 95},
                           {.name = "Importing", .weight = 5}},
        };
}

int ncu_collect(const struct ncu_collect *c)
{
        _cleanup_(free_ptr) struct collecting *w = xcalloc(1, sizeof(*w));
        const char *name = c->name ? c->name : "report", *slash = strrchr(name, '/'),
                   *env = getenv("SONDE_NCU");
        struct err err = ERR_INIT;
        int code;

        w->c = c;
        w->ncu = c->ncu ? c->ncu : env && *env ? env : "ncu";
        w->launch_count = c->launch_count ? c->launch_count : NCU_LAUNCHES_DEFAULT;
        w->artifacts = arena_join(&w->a, c->dir, "/", RUN_ARTIFACTS_DIR);
        w->report = arena_join(&w->a, w->artifacts, "/", slash ? slash + 1 : name);
        w->plan = make_plan(w->launch_count);
        w->reporter = (struct run_reporter){
                .dir = c->dir, .clock = c->clock, .log = c->log, .plan = &w->plan};
        ncu_console_init(&w->console);
        w->imported.sum = ncu_sum_new();
        if (prepare(w, &err) < 0) {
                LOG_ERROR(c->log, "Cannot prepare the run", F_ERR(&err));
                (void)run_report_failed(&w->reporter, "RunNotPrepared", err.text);
                code = 1;
        } else {
                code = go(w);
                tool_watch_done(&w->watch);
        }
        ncu_sum_free(w->imported.sum);
        ncu_console_done(&w->console);
        arena_done(&w->a);
        return code;
}
