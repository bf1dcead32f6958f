/*
 * sonde probe: commands measured side by side, for a person; or what the operator starts in a pod.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "probe/probe.h"

enum { TEXT_MAX = 256 << 20, RUNS = 10, WARMUP = 1, LINE_MAX_ = 80 };

static const usec_t TELL_EVERY = 100 * USEC_PER_MS;

#define SEPARATOR ":::"

static const struct usage usage = {
        "probe [OPTION]... -- COMMAND [ARGUMENT]... [::: COMMAND [ARGUMENT]...]...",
        "Runs commands under measurement, side by side: in blocks that run each of them once, in random "
        "order,\n"
        "and tells time, CPU and memory of their whole process trees with what can be said of the "
        "difference.\n"
        "Commands are started as they are, without a shell.\n"
        "\n"
        "  sonde probe -- ./a\n"
        "  sonde probe -n 20 -- ./a --fast ::: ./b\n"
        "  sonde probe -n 20 --prepare 'sync' -o md -- sort data.txt ::: sort --parallel=1 data.txt\n"
        "  sonde probe -- sh -c 'grep x data.txt | wc -l'\n"
        "  sonde probe --export-json runs.json --timeout 10s -- ./slow\n"
        "\n"
        "Exit status: 0; 1 a command failed, or could not be started; 2 wrong usage; 130 interrupted, after\n"
        "printing what there is.\n",
};

struct request {
        struct trials_config trials;
        const char *prepare, *output, *seed, *export_json, *export_csv, *export_markdown;
        bool quiet;
        usec_t told; /* the last time that progress was; 0: never */
        struct arena arena;
};

/* ---- arguments */

/* Whether a backslash before C, inside of QUOTE (0: none), only says that C is meant. */
static bool escapes(char c, char quote)
{
        return c && quote != '\'' && (!quote || strchr("\"\\$`", c));
}

/* The words of TEXT; quotes and backslashes as a shell has them, and nothing else. NULL: a quote has no end. */
static char **words_of(struct arena *a, const char *text)
{
        char **words = arena_new_array(a, char *, strlen(text) + 2), *to = NULL, quote = 0;
        char *room = arena_alloc(a, 2 * strlen(text) + 2);
        size_t n = 0;

        for (; *text; text++) {
                bool blank = !quote && (*text == ' ' || *text == '\t' || *text == '\n');

                if (blank) {
                        if (to)
                                *to++ = 0;
                        room = to ? to : room;
                        to = NULL;
                        continue;
                }
                if (!to)
                        words[n++] = to = room;
                if (quote ? *text == quote : *text == '\'' || *text == '"')
                        quote = quote ? 0 : *text;
                else
                        *to++ = *text == '\\' && escapes(text[1], quote) ? *++text : *text;
        }
        if (to)
                *to = 0;
        return quote ? NULL : words;
}

/* ARGV up to each ":::" is a command. False: one is empty, or there are too many. */
static bool split_commands(struct request *q, int argc, char **argv)
{
        char *const **commands = arena_new_array(&q->arena, char *const *, TRIALS_COMMANDS_MAX);
        int from = 0;

        q->trials.commands = commands;
        for (int i = 0; i <= argc; i++) {
                if (i < argc && !streq(argv[i], SEPARATOR))
                        continue;
                if (i == from || q->trials.n == TRIALS_COMMANDS_MAX)
                        return false;
                commands[q->trials.n++] = argv + from;
                argv[i] = NULL; /* argv[argc] is ours, too: it was behind the arguments before */
                from = i + 1;
        }
        return true;
}

static bool is_format(const char *s)
{
        return streq(s, "text") || streq(s, "json") || streq(s, "csv") || streq(s, "md");
}

static bool check(struct request *q, int argc, char **argv)
{
        if (argc < 2)
                cli_error("probe needs a command (-- COMMAND...); see '%s help probe'", cli_name());
        else if (!split_commands(q, argc - 1, argv + 1))
                cli_error(
                        "probe: a command is empty, or there are more than %d; they stand between " SEPARATOR,
                        TRIALS_COMMANDS_MAX);
        else if (!is_format(q->output))
                cli_error("probe: -o is json, csv, md or text, not '%s'", q->output);
        else if (q->trials.runs < 1 || q->trials.runs > TRIALS_RUNS_MAX || q->trials.warmup > TRIALS_RUNS_MAX)
                cli_error("probe: -n is a number from 1 to %d, -w one up to that", TRIALS_RUNS_MAX);
        else if (q->seed && !str_to_u64(str_of(q->seed), &q->trials.seed))
                cli_error("probe: --seed is a whole number, not '%s'", q->seed);
        else if (q->prepare &&
                 (!(q->trials.prepare = words_of(&q->arena, q->prepare)) || !q->trials.prepare[0]))
                cli_error("probe: --prepare is no command: %s", q->prepare);
        else
                return true;
        return false;
}

/* ---- telling */

/* In one line, which must not be wider than the terminal; and not for each of a thousand runs a second. */
static void progress(void *arg, unsigned block, unsigned blocks, const char *name)
{
        struct request *q = arg;
        struct clock clock = CLOCK_REAL;
        usec_t now = clock_boot(&clock);
        bool warmup = block <= q->trials.warmup;
        struct winsize size;
        char line[LINE_MAX_];
        size_t width = sizeof(line) - 4; /* never in the midst of a character */

        if (q->told && now < q->told + TELL_EVERY)
                return;
        q->told = now;
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
                width = MIN(width, (size_t)size.ws_col - 1);
        snprintf(line, sizeof(line), "%s %u/%u: %s", warmup ? "warm-up" : "run",
                 warmup ? block : block - q->trials.warmup,
                 warmup ? q->trials.warmup : blocks - q->trials.warmup, name);
        fprintf(stderr, "\r\033[K%.*s", (int)utf8_cut(line, strlen(line), width), line);
}

static bool write_file(const char *path, void (*tell)(const struct trials *t, struct buf *out),
                       const struct trials *t)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        struct err err = ERR_INIT;

        if (!path)
                return true;
        tell(t, &out);
        if (!out.overflow && file_replace(path, buf_str(&out), 0644, &err) == 0)
                return true;
        cli_error("probe: %s", out.overflow ? "there is too much to write" : err.text);
        return false;
}

static bool tell(const struct request *q, const struct trials *t)
{
        static const struct {
                const char *name;
                void (*tell)(const struct trials *t, struct buf *out);
        } formats[] = {
                {"text", trials_text}, {"json", trials_json}, {"csv", trials_csv}, {"md", trials_markdown}};
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        struct err err = ERR_INIT;

        for (size_t i = 0; i < ARRAY_LEN(formats); i++)
                if (streq(formats[i].name, q->output))
                        formats[i].tell(t, &out);
        if (!streq(q->output, "text") && !q->quiet)
                vec_foreach (w, &t->warnings)
                        cli_error("probe: warning: %s", *w);
        if (out.overflow || fd_write_all(STDOUT_FILENO, buf_str(&out), &err) < 0) {
                cli_error("probe: %s", out.overflow ? "there is too much to print" : err.text);
                return false;
        }
        return write_file(q->export_json, trials_json, t) && write_file(q->export_csv, trials_csv, t) &&
               write_file(q->export_markdown, trials_markdown, t);
}

static int measure_all(struct request *q)
{
        _cleanup_(trials_done) struct trials t = {0};
        struct clock clock = CLOCK_REAL;
        struct err err = ERR_INIT;
        int ok;

        if (!q->seed)
                q->trials.seed = clock_wall(&clock) % 1000000000;
        if (!q->quiet && isatty(STDERR_FILENO) && !q->trials.show_output) {
                q->trials.progress = progress;
                q->trials.arg = q;
        }
        ok = trials_run(&t, &q->trials, &err);
        if (q->trials.progress)
                fputs("\r\033[K", stderr);
        if (ok < 0) {
                cli_error("probe: %s", err.text);
                return 1;
        }
        if (!tell(q, &t))
                return 1;
        return t.interrupted ? EXIT_INTERRUPTED : trials_any_failed(&t) ? 1 : 0;
}

static int probe(struct request *q, int argc, char **argv)
{
        struct trials_config *c = &q->trials;
        const struct option_def options[] = {
                {"runs", 'n', "N", "how often each is run (10)", OPT_UINT, &c->runs},
                {"warmup", 'w', "N", "runs of each before, which do not count (1)", OPT_UINT, &c->warmup},
                {"prepare", 'p', "COMMAND", "run before each run, and not measured", OPT_STR, &q->prepare},
                {"timeout", 0, "TIME", "of a run: it is ended then, and has failed (none)", OPT_DURATION,
                 &c->timeout},
                {"ignore-failure", 'i', NULL, "an exit status that is not 0 counts as well", OPT_FLAG,
                 &c->ignore_failure},
                {"input", 0, "FILE", "their standard input (/dev/null)", OPT_STR, &c->input},
                {"show-output", 0, NULL, "do not throw their output away", OPT_FLAG, &c->show_output},
                {"counters", 0, NULL, "count cycles, instructions, cache misses where the kernel allows it",
                 OPT_FLAG, &c->counters},
                {"seed", 0, "N", "of the order of runs (the time)", OPT_STR, &q->seed},
                {"output", 'o', "FORMAT", "json, csv, md, text (text)", OPT_STR, &q->output},
                {"export-json", 0, "FILE", "write that, too", OPT_STR, &q->export_json},
                {"export-csv", 0, "FILE", "write that, too", OPT_STR, &q->export_csv},
                {"export-markdown", 0, "FILE", "write that, too", OPT_STR, &q->export_markdown},
                {"quiet", 'q', NULL, "no progress, no warnings on standard error", OPT_FLAG, &q->quiet},
                {0}};
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        return check(q, argc, argv) ? measure_all(q) : EXIT_USAGE;
}

int cmd_probe(int argc, char **argv)
{
        struct request q = {.output = "text", .trials = {.runs = RUNS, .warmup = WARMUP}};
        int code;

        if (probe_is_session(argc, argv))
                return cmd_probe_session(argc, argv);
        code = probe(&q, argc, argv);
        arena_done(&q.arena);
        return code;
}
