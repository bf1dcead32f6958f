/*
 * sonde-pod report: writes the status file, from a script.
 */
#include <sys/stat.h>

#include "cli/cli.h"
#include "run/status.h"

enum { NOT_SAID = UINT32_MAX, NUMBER_MAX = 1000000000 };

struct request {
        const char *dir, *phase, *message, *sub_phase, *mapping, *best, *fail, *reason, *plan;
        unsigned step, of, gpus;
        bool complete;
};

static const struct usage usage = {
        "report [--dir DIR] --phase PHASE --message TEXT [OPTION]...\n"
        "   or: report [--dir DIR] --complete [--message TEXT] | --fail ERROR [--reason WORD]",
        "Writes the status file (profiling_status.json) of a run, from a script: where the run is now.\n"
        "A report replaces the whole one before it at once; startedAt, the plan and the sequence go on.\n"
        "\n"
        "  sonde-pod report --phase Warmup --message 'Loading the model' \\\n"
        "                   --plan '[{\"phase\": \"Warmup\", \"weight\": 60}, {\"phase\": \"Measure\", "
        "\"weight\": "
        "600}]'\n"
        "  sonde-pod report --phase Measure --message 'Batch size 16' --step 3 --of 12\n"
        "  sonde-pod report --phase DecodeSweep --message '4 GPUs' --gpus 4 --mapping TP=2/DP=2 --sub-phase "
        "Cleanup\n"
        "  sonde-pod report --complete\n"
        "  trap 'sonde-pod report --fail \"line $LINENO\"' ERR\n"
        "\n"
        "Exit status: 0; 2 when the options are wrong. Also 0 when the file cannot be written (a full\n"
        "disk, a directory that has gone): that is one line on standard error, because a report must\n"
        "never end a script that runs under 'set -e'.\n",
};

/* The directory of a run: as `run` says, or as the kinds of pods have it. */
static const char *default_dir(void)
{
        const char *dir = getenv("SONDE_RUN_DIR");
        struct stat st;

        if (dir && *dir)
                return dir;
        return stat("/data", &st) == 0 && S_ISDIR(st.st_mode) ? "/data" : "/sonde/run";
}

/* One sentence that says what does not fit together; NULL: nothing. */
static const char *fault_of(const struct request *q)
{
        if ((q->phase != NULL) + q->complete + (q->fail != NULL) != 1)
                return "report needs one of --phase, --complete and --fail; see --help";
        if (q->phase && !q->message)
                return "--phase needs --message: what is being done";
        if (q->fail && q->message)
                return "--fail says the message itself; leave --message out";
        if (!q->phase && (q->step != NOT_SAID || q->of != NOT_SAID || q->gpus != NOT_SAID || q->sub_phase ||
                          q->mapping || q->best))
                return "--step, --of, --sub-phase, --gpus, --mapping and --best go with --phase";
        if (q->reason && (!q->fail || !run_reason_valid(str_of(q->reason))))
                return "--reason goes with --fail, and is one word of letters and digits, such as NoGPU";
        if ((q->step == NOT_SAID) != (q->of == NOT_SAID))
                return "--step and --of go together: --step 3 --of 12";
        if ((q->step != NOT_SAID && (q->step > NUMBER_MAX || q->of > NUMBER_MAX)) ||
            (q->gpus != NOT_SAID && q->gpus > NUMBER_MAX))
                return "--step, --of and --gpus are at most 1000000000";
        return NULL;
}

static int check(const struct request *q)
{
        const char *fault = fault_of(q);

        if (fault) {
                cli_error("%s", fault);
                return -1;
        }
        fault = q->phase ? run_phase_fault(str_of(q->phase)) : NULL;
        if (fault) {
                cli_error("--phase %s", fault);
                return -1;
        }
        return 0;
}

static int parse_plan(const char *text, struct run_plan *ret)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;

        if (doc_parse(&doc, str_of(text), &(struct json_limits){.bytes = RUN_STATUS_FILE_MAX, .depth = 4},
                      &err) < 0 ||
            run_plan_parse(doc.root, ret, &err) < 0) {
                cli_error("--plan: %s", err.text);
                return -1;
        }
        return 0;
}

static bool report(const struct request *q, const struct run_plan *plan, struct err *err)
{
        const struct clock clock = CLOCK_REAL;
        struct run_reporter r = {
                .dir = q->dir ? q->dir : default_dir(),
                .clock = &clock,
                .plan = plan->n ? plan : NULL,
                .why = err,
        };
        const struct run_report report = {
                .phase = q->phase,
                .message = q->message,
                .has_progress = q->step != NOT_SAID,
                .current_step = q->step,
                .total_steps = q->of,
                .sub_phase = q->sub_phase,
                .gpus = q->gpus == NOT_SAID ? -1 : (int64_t)q->gpus,
                .mapping = q->mapping,
                .best = q->best,
        };

        if (q->complete)
                return run_report_complete(&r, q->message);
        if (q->fail)
                return run_report_failed(&r, q->reason, q->fail);
        return run_report(&r, &report);
}

int cmd_report(int argc, char **argv)
{
        struct request q = {.step = NOT_SAID, .of = NOT_SAID, .gpus = NOT_SAID};
        const struct option_def options[] = {
                {"dir", 0, "DIR", "run directory (SONDE_RUN_DIR, else /data, else /sonde/run)", OPT_STR,
                 &q.dir},
                {"phase", 0, "PHASE", "where the run is: a phase of the plan, or any name", OPT_STR,
                 &q.phase},
                {"message", 0, "TEXT", "what is being done, for people", OPT_STR, &q.message},
                {"step", 0, "I", "the step under way, from 1", OPT_UINT, &q.step},
                {"of", 0, "N", "how many steps the phase has (0: not known)", OPT_UINT, &q.of},
                {"sub-phase", 0, "TEXT", "what is being done within the step", OPT_STR, &q.sub_phase},
                {"gpus", 0, "N", "GPUs in use", OPT_UINT, &q.gpus},
                {"mapping", 0, "TEXT", "how the work is spread over them, such as TP=2/DP=2", OPT_STR,
                 &q.mapping},
                {"best", 0, "TEXT", "the best of what was measured so far, such as \"TP=4  ITL 11.8 ms\"",
                 OPT_STR, &q.best},
                {"plan", 0, "JSON", "the phases to come, with steps and weights; once is enough", OPT_STR,
                 &q.plan},
                {"complete", 0, NULL, "the run has succeeded", OPT_FLAG, &q.complete},
                {"fail", 0, "ERROR", "the run has failed (cut at 500 bytes)", OPT_STR, &q.fail},
                {"reason", 0, "WORD",
                 "of a failure, for programs: what the condition on the request has as its reason", OPT_STR,
                 &q.reason},
                {0},
        };
        struct run_plan plan = {.n = 0};
        struct err err = ERR_INIT;
        int code = options_parse_only(options, &usage, argc, argv);

        if (code >= 0)
                return code;
        if (check(&q) < 0 || (q.plan && parse_plan(q.plan, &plan) < 0))
                return EXIT_USAGE;
        if (!report(&q, &plan, &err))
                cli_error("%s", err.text);
        return 0;
}
