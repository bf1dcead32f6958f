#include "cli/results_mlflow.h"

static const struct usage usage = {
        "results KIND/NAME [OPTION]...",
        "Prints what came out of a run of any kind, with units and intervals: medians and verdicts of\n"
        "algorithms, the chosen mapping of an inference engine and its curves, what bounds a CUDA program.\n"
        "Values that were simulated or replayed say so; what is not known is left out.\n\n"
        "  -o table   for people (the default)        -o md     for a page\n"
        "  -o json    facts and tables                -o html   one file that needs nothing else\n"
        "  -o csv     the first table, or the samples -o yaml   the deployment that a dgdr has generated\n\n"
        "Examples:\n"
        "  sonde results ac/sorts\n"
        "  sonde results ap/matmul -o csv --samples --to samples.csv\n"
        "  sonde results dgdr/llama-70b -o html --to llama-70b.html\n"
        "  sonde results dgdr/llama-70b -o yaml | kubectl apply -f -\n"
        "  sonde results ac/sorts --to-mlflow http://127.0.0.1:5000 --experiment sorts\n",
};

enum { TEXT_MAX = 1 << 20 };

struct results {
        struct people p;
        struct people_name name;
        bool samples;
        const char *to; /* NULL: standard output */
        struct results_mlflow mlflow;
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
                PEOPLE_CLUSTER_OPTIONS(&r.p),
                {0},
        };
        int code;

        r.p.output = "table";
        code = options_parse(options, &usage, &argc, argv);
        if (code < 0 && (!people_check_output(r.p.output, formats) || !results_mlflow_check(&r.mlflow) ||
                         people_read_name(argc, argv, &r.name) < 0))
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&r.p, PEOPLE_ONE) < 0 ? 1 : run(&r);
        people_done(&r.p);
        return code;
}
