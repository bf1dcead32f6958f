#include "cli/results_history.h"
#include "cli/results_mlflow.h"

static const struct usage usage = {
        "results [KIND/NAME] [OPTION]...",
        "Prints what came out of a run of any kind, with units and intervals: medians and verdicts of\n"
        "algorithms, the chosen mapping of an inference engine and its curves, what bounds a CUDA program.\n"
        "Values that were simulated or replayed say so; what is not known is left out. Of a run whose "
        "object\n"
        "is gone, --history tells what was kept.\n\n"
        "  -o table   for people (the default)        -o md     for a page\n"
        "  -o json    facts and tables                -o html   one file that needs nothing else\n"
        "  -o csv     the first table, or the samples -o yaml   the deployment that a dgdr has generated\n\n"
        "Examples:\n"
        "  sonde results ac/sorts\n"
        "  sonde results ap/matmul -o csv --samples --to samples.csv\n"
        "  sonde results dgdr/llama-70b -o html --to llama-70b.html\n"
        "  sonde results dgdr/llama-70b -o yaml | kubectl apply -f -\n"
        "  sonde results ac/sorts --to-mlflow http://127.0.0.1:5000 --experiment sorts\n"
        "  sonde results ap/long-gone --history ~/.sonde/history.db -o md\n",
};

enum { TEXT_MAX = 1 << 20 };

struct results {
        struct people p;
        struct people_name name;
        bool samples;
        const char *to; /* NULL: standard output */
        struct results_mlflow mlflow;
        struct history_config history; /* place NULL: the cluster is asked */
        const char *uid;
};

/* ---- formats */

static int write_yaml(struct results *r, const struct people_run *run)
{
        const struct json *deployment = json_path(run->object, "status.generatedDeployment");
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        if (!json_is(deployment, JSON_OBJECT)) {
                cli_error("%s has generated no deployment%s", run->label,
                          summary_over(&run->summary) ? "" : " yet");
                return 1;
        }
        yaml_write(deployment, &out);
        return results_write_text(&out, r->to);
}

static int write_report(struct results *r, const struct run_docs *docs)
{
        _cleanup_(report_done) struct report report = {0};

        report_make(docs, report_kind(docs->kind), r->samples, &r->p.arena, &report);
        return results_write(&r->p, &report, r->to);
}

/* ---- from the history */

static int run_history(struct results *r)
{
        struct history_filter filter = {.uid = r->uid,
                                        .name = r->name.name,
                                        .kind = r->name.kind ? r->name.kind->type->kind : NULL,
                                        .ns = r->p.ns,
                                        .limit = 1};
        _cleanup_(report_done) struct report report = {0};
        struct run_docs docs = {0};
        struct err err = ERR_INIT;
        struct json *row;

        if (results_history(&r->history, &filter, &r->p.arena, &row, &err) < 0) {
                cli_error("results: %s", err.text);
                return 1;
        }
        docs.result = row;
        docs.samples = json_at(row, "samples");
        if (r->samples && !docs.samples) {
                cli_error("the samples of %s are not there: none were kept", json_str(row, "name"));
                return 1;
        }
        report_make(&docs, &REPORT_HISTORY, r->samples, &r->p.arena, &report);
        report.title = arena_printf(&r->p.arena, "%s %s/%s, from the history", json_str_or(row, "kind", ""),
                                    json_str_or(row, "namespace", ""), json_str_or(row, "name", ""));
        return results_write(&r->p, &report, r->to);
}

/* What does not go together. */
static bool check_history(const struct results *r)
{
        if (!r->history.place && (r->uid || r->history.password_file)) {
                cli_error("--uid and --history-password-file need --history: the cluster is asked by "
                          "KIND/NAME");
                return false;
        }
        if (r->history.place && (r->mlflow.target.url || streq(r->p.output, "yaml"))) {
                cli_error("--history goes with -o table, json, csv, md and html: the object itself is not "
                          "kept");
                return false;
        }
        return true;
}

/* ---- all */

static int run(struct results *r)
{
        struct people_run found;
        struct run_docs docs;

        if (people_find(&r->p, people_cluster(&r->p), &r->name, &found) < 0)
                return 1;
        if (streq(r->p.output, "yaml") && !r->mlflow.target.url)
                return write_yaml(r, &found);
        if (results_fetch(&r->p, &found, &docs) < 0)
                return 1;
        if (r->samples && !docs.samples) {
                cli_error("the samples of %s are not there: %s", found.label,
                          summary_over(&found.summary) ? "none were kept" : "it has not ended");
                return 1;
        }
        if (r->mlflow.target.url)
                return results_mlflow_log(&r->p, &found, &docs, &r->mlflow);
        return write_report(r, &docs);
}

int cmd_results(int argc, char **argv)
{
        static const char *const formats[] = {"table", "json", "csv", "md", "html", "yaml", NULL};
        struct results r = {.p = PEOPLE_INIT};
        const struct option_def options[] = {
                PEOPLE_OUTPUT_OPTION(&r.p, "table (default), json, csv, md, html or yaml"),
                {"samples", 0, NULL, "every single run, too", OPT_FLAG, &r.samples},
                {"to", 0, "FILE", "write it there instead of to standard output", OPT_STR, &r.to},
                RESULTS_MLFLOW_OPTIONS(&r.mlflow),
                {"history", 0, "PLACE",
                 "from what is kept in this SQLite file or at postgres://USER@HOST/DATABASE: the object may "
                 "be gone",
                 OPT_STR, &r.history.place},
                {"history-password-file", 0, "FILE",
                 "holds the password for PostgreSQL (default: $PGPASSWORD)", OPT_STR,
                 &r.history.password_file},
                {"uid", 0, "UID", "with --history: the run of the request with this uid", OPT_STR, &r.uid},
                PEOPLE_CLUSTER_OPTIONS(&r.p),
                {0},
        };
        int code;

        r.p.output = "table";
        r.history.reading = true;
        code = options_parse(options, &usage, &argc, argv);
        if (code < 0 &&
            (!people_check_output(r.p.output, formats) || !results_mlflow_check(&r.mlflow) ||
             !check_history(&r) || ((!r.uid || argc > 1) && people_read_name(argc, argv, &r.name) < 0)))
                code = EXIT_USAGE;
        if (code < 0 && r.history.place)
                code = run_history(&r);
        else if (code < 0)
                code = people_open(&r.p, PEOPLE_ONE) < 0 ? 1 : run(&r);
        people_done(&r.p);
        return code;
}
