/*
 * A history, told what to do on standard input: history-exercise PLACE [PASSWORD-FILE]
 *
 * It says "ready", or "refused WHY" and ends. Then a line is
 *
 *     record UID SERIES SECONDS   "recorded UID" or "failed UID WHY"
 *     series SERIES               "series SERIES SECONDS..."
 *     list                        "list UID...", or "failed list WHY"
 *
 * Answers come in their own time; the log goes to standard error. It ends with its input.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "history/history.h"

enum { ARGUMENTS = 4 };

struct exercise {
        struct loop *loop;
        struct history *h;
        struct io input;
        struct buf line;
        uint64_t n; /* runs so far */
};

/* A call that is under way. */
struct call {
        struct exercise *x;
        char *name;
};

static struct call *call_new(struct exercise *x, const char *name)
{
        struct call *c = xcalloc(1, sizeof(*c));

        c->x = x;
        c->name = xstrdup(name);
        return c;
}

static void call_free(struct call *c)
{
        free(c->name);
        free(c);
}

static void on_recorded(void *arg, const struct err *err)
{
        struct call *c = arg;

        if (err)
                printf("failed %s %s\n", c->name, err->text);
        else
                printf("recorded %s\n", c->name);
        call_free(c);
}

static void record(struct exercise *x, const char *uid, const char *series, const char *seconds)
{
        const struct history_measure m = {.series = series,
                                          .algorithm = "a",
                                          .n = 1,
                                          .time = strtod(seconds, NULL),
                                          .low = NAN,
                                          .high = NAN,
                                          .memory = NAN,
                                          .cpu = NAN,
                                          .cost = NAN};
        const struct history_row row = {.uid = uid,
                                        .attempt = 1,
                                        .kind = "Exercise",
                                        .ns = "default",
                                        .name = uid,
                                        .outcome = "Succeeded",
                                        .finished = loop_wall(x->loop) + x->n++,
                                        .labels = "{\"team\":\"a\"}",
                                        .samples = "[1,2]",
                                        .measures = &m,
                                        .n_measures = 1};

        history_record(x->h, &row, on_recorded, call_new(x, uid));
}

static void tell_series(struct exercise *x, const char *name);

static void on_series(void *arg)
{
        struct call *c = arg;

        tell_series(c->x, c->name);
        call_free(c);
}

static void tell_series(struct exercise *x, const char *name)
{
        const struct series *s = NULL;
        struct call *c = call_new(x, name);

        if (history_series(x->h, name, on_series, c, &s) == 0)
                return;
        printf("series %s", name);
        for (size_t i = 0; i < s->n; i++)
                printf(" %g", s->points[i].value);
        printf("\n");
        call_free(c);
}

static void on_list(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        printf(err ? "failed list %s" : "list", err ? err->text : "");
        for (size_t i = 0; i < n; i++)
                printf(" %s", rows[i].uid);
        printf("\n");
}

static void obey(struct exercise *x, char *line)
{
        char *words[ARGUMENTS] = {0}, *rest = line;

        for (size_t i = 0; i < ARGUMENTS; i++)
                words[i] = strsep(&rest, " ");
        if (streq(words[0], "record") && words[3])
                record(x, words[1], words[2], words[3]);
        else if (streq(words[0], "series") && words[1])
                tell_series(x, words[1]);
        else if (streq(words[0], "list"))
                history_list(x->h, &(struct history_filter){.limit = 10000}, on_list, x);
        else
                printf("what is '%s'?\n", words[0]);
}

static void on_input(struct io *io, uint32_t events)
{
        struct exercise *x = CONTAINER_OF(io, struct exercise, input);
        char *at = buf_reserve(&x->line, 4096), *end;
        ssize_t n = at ? read(STDIN_FILENO, at, 4096) : 0;

        if (n <= 0) {
                loop_stop(x->loop, 0);
                return;
        }
        x->line.n += (size_t)n;
        while ((end = memchr(x->line.p, '\n', x->line.n))) {
                *end = '\0';
                obey(x, x->line.p);
                buf_consume(&x->line, (size_t)(end - x->line.p) + 1);
        }
}

int main(int argc, char **argv)
{
        const struct clock clock = CLOCK_REAL;
        struct exercise x = {.line = BUF_INIT(65536)};
        struct history_config config = {
                .place = argv[1], .password_file = argc > 2 ? argv[2] : NULL, .max_runs = 10000};
        struct err err = ERR_INIT;
        struct log log;

        if (argc < 2)
                return 2;
        setvbuf(stdout, NULL, _IOLBF, 0);
        log_init(&log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &clock);
        x.loop = loop_new(NULL, &log, &err);
        x.h = x.loop ? history_open(x.loop, &config, &log, &err) : NULL;
        printf(x.h ? "ready\n" : "refused %s\n", err.text);
        if (x.h && io_add(x.loop, &x.input, STDIN_FILENO, EPOLLIN, on_input) == 0)
                loop_run(x.loop);
        io_remove(&x.input);
        history_free(x.h);
        loop_free(x.loop);
        buf_done(&x.line);
        return 0;
}
