#include <math.h>

#include "cli/cli.h"
#include "cli/operators.h"
#include "cli/show.h"
#include "json/json.h"

struct app {
        struct history_config place;
        struct history_filter filter;
        struct option_list labels;
        const char *output;
        struct loop *loop;
        int code;
};

/* ---- JSON */

static void print_json(const struct history_row *rows, size_t n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *list = json_array(&a);

        for (size_t i = 0; i < n; i++)
                json_append(list, history_row_json(&rows[i], &a));
        printf("%s\n", json_print(&a, json_build(&a, "{'runs': %p}", (void *)list)));
}

/* ---- a table */

static const char *duration(struct arena *a, const struct history_row *row)
{
        return row->started ? show_duration(a, usec_sub(row->finished, row->started)) : "-";
}

static const char *measured(struct arena *a, const struct history_row *row)
{
        const struct history_measure *m = row->measures;

        if (!row->n_measures)
                return "-";
        if (row->n_measures > 1)
                return arena_printf(a, "%zu medians", row->n_measures);
        return isfinite(m->time) ? arena_printf(a, "%s: %.4g s", m->algorithm, m->time) : m->algorithm;
}

/* The database may be somebody else's: the table cleans what is in it. */
static void fill(struct table *t, struct arena *a, const struct history_row *row)
{
        char text[TIME_TEXT_MAX];
        const char *cells[] = {
                time_format(row->finished, text),
                row->kind,
                row->ns,
                row->name,
                arena_printf(a, "%llu", (unsigned long long)row->attempt),
                row->outcome,
                duration(a, row),
                measured(a, row),
        };

        for (size_t i = 0; i < ARRAY_LEN(cells); i++)
                table_add(t, TONE_PLAIN, *cells[i] ? cells[i] : "-");
}

static void print_table(const struct history_row *rows, size_t n)
{
        static const struct table_column columns[] = {{"FINISHED"}, {"KIND"},    {"NAMESPACE"}, {"NAME"},
                                                      {"ATTEMPT"},  {"OUTCOME"}, {"DURATION"},  {"MEASURED"}};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(table_done) struct table t;
        struct screen screen = screen_of(stdout);

        table_init(&t, &a, columns, ARRAY_LEN(columns));
        for (size_t i = 0; i < n; i++)
                fill(&t, &a, &rows[i]);
        table_print(&t, &screen, false);
}

/* ---- asking */

static void on_list(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        struct app *app = arg;

        app->code = 1;
        if (err) {
                cli_error("history: %s", err->text);
        } else {
                if (streq(app->output, "json"))
                        print_json(rows, n);
                else
                        print_table(rows, n);
                app->code = fflush(stdout) == 0 ? 0 : 1;
        }
        loop_stop(app->loop, app->code);
}

static int run(struct app *app)
{
        _cleanup_(loop_free) struct loop *loop = NULL;
        struct err err = ERR_INIT;
        struct history *h;

        loop = app->loop = loop_new(NULL, NULL, &err);
        h = loop ? history_open(loop, &app->place, NULL, &err) : NULL;
        if (!h) {
                cli_error("history: %s", err.text);
                return 1;
        }
        history_list(h, &app->filter, on_list, app);
        loop_run(loop);
        history_free(h);
        return app->code;
}

static const struct usage usage = {
        "history [OPTION]...",
        "Lists finished runs, the newest first, from the history that 'sonde up' or 'sonde operator' "
        "keeps.\n\n"
        "Examples:\n"
        "  sonde history -n team-a -l experiment-id=42\n"
        "  sonde history --history postgres://reader@db/sonde -o json --limit 1000\n",
};

int cmd_history(int argc, char **argv)
{
        _cleanup_(free_ptr) char *home = cli_home(), *file = xasprintf("%s/history.db", home);
        struct app app = {.place = {.place = file, .reading = true}, .output = "table"};
        const struct option_def options[] = {
                {"history", 0, "PLACE",
                 "an SQLite file or postgres://USER@HOST/DATABASE (default: ~/.sonde/history.db)", OPT_STR,
                 &app.place.place},
                {"history-password-file", 0, "FILE",
                 "holds the password for PostgreSQL (default: $PGPASSWORD)", OPT_STR,
                 &app.place.password_file},
                {"namespace", 'n', "NS", "runs of this namespace (default: all)", OPT_STR, &app.filter.ns},
                {"kind", 0, "KIND", "runs of this kind: AlgorithmProfiling", OPT_STR, &app.filter.kind},
                {"name", 0, "NAME", "runs of the requests of this name", OPT_STR, &app.filter.name},
                {"selector", 'l', "KEY=VALUE", "runs with this label; may be repeated", OPT_LIST,
                 &app.labels},
                {"series", 0, "SERIES", "runs that measured this series, and that alone of them", OPT_STR,
                 &app.filter.series},
                {"uid", 0, "UID", "the run of the request with this uid; with -o json also its samples",
                 OPT_STR, &app.filter.uid},
                {"limit", 0, "N", "at most so many (default: 100; at most 10000)", OPT_UINT,
                 &app.filter.limit},
                {"output", 'o', "FORMAT", "table (default) or json", OPT_STR, &app.output},
                {0}};
        int code = options_parse_only(options, &usage, argc, argv);

        if (code < 0 && !streq(app.output, "json") && !streq(app.output, "table")) {
                cli_error("-o: '%s' is neither json nor table", app.output);
                code = EXIT_USAGE;
        }
        app.filter.labels = app.labels.v;
        app.filter.n_labels = app.labels.n;
        app.filter.samples = streq(app.output, "json");
        if (code < 0)
                code = run(&app);
        vec_done(&app.labels);
        return code;
}
