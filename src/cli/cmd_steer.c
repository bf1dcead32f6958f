/*
 * cancel, suspend and resume: one field of the spec each. Whoever carries out the run does what it says.
 */
#include "cli/people.h"

struct verb {
        struct usage usage;
        enum steer what;
        const char *done;    /* what is said when it was set: "dgdr/x is being cancelled" */
        const char *already; /* and when it was so before */
};

/* What is not to be done any more: 0 it is so already, 1 it cannot be; below 0: go on. PATCH: NULL where it is so. */
static int check(const char *name, const struct verb *verb, const struct people_run *run,
                 const struct json *patch)
{
        if (run->kind->result) {
                people_refuse_result(name, run);
                return 1;
        }
        if (summary_over(&run->summary) && (patch || verb->what == STEER_RESUME)) {
                cli_error("%s: %s has ended (%s); '%s rerun %s' makes another one", name, run->label,
                          run->summary.phase, cli_name(), run->label);
                return 1;
        }
        if (patch)
                return -1;
        printf("%s %s\n", run->label, verb->already);
        return 0;
}

static int steer(struct people *p, const char *name, const struct verb *verb, const struct people_name *which)
{
        struct people_run run;
        struct err err = ERR_INIT;
        struct json *patch;
        int code;

        if (people_find(p, people_cluster(p), which, &run) < 0)
                return 1;
        patch = steer_patch(verb->what, run.object, &p->arena);
        code = check(name, verb, &run, patch);
        if (code >= 0)
                return code;
        if (people_patch(p, &run, patch, &err) < 0) {
                people_complain(run.cluster, run.label, &err);
                return 1;
        }
        printf("%s %s\n", run.label, verb->done);
        return 0;
}

static int steer_all(int argc, char **argv, const struct verb *verb)
{
        _cleanup_(people_done) struct people p = PEOPLE_INIT;
        const struct option_def options[] = {PEOPLE_CLUSTER_OPTIONS(&p), {0}};
        struct people_names names = {0};
        int code = options_parse(options, &verb->usage, &argc, argv);

        if (code < 0 && people_read_names(argc, argv, true, &names) < 0)
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&p, PEOPLE_ONE) < 0 ? 1 : 0;
        else
                names.n = 0;
        for (size_t i = 0, n = code ? 0 : names.n; i < n; i++)
                if (steer(&p, argv[0], verb, &names.v[i]) != 0)
                        code = 1;
        vec_done(&names);
        return people_finish(code);
}

int cmd_cancel(int argc, char **argv)
{
        static const struct verb verb = {
                {"cancel KIND/NAME... [OPTION]...", "Ends runs for good, by spec.cancel: what was measured "
                                                    "so far is kept, the outcome is Cancelled, and "
                                                    "that\n"
                                                    "is not taken back.\n\n"
                                                    "Example:\n"
                                                    "  sonde cancel dgdr/llama-70b\n"},
                STEER_CANCEL,
                "is being cancelled",
                "was cancelled before",
        };

        return steer_all(argc, argv, &verb);
}

int cmd_suspend(int argc, char **argv)
{
        static const struct verb verb = {
                {"suspend KIND/NAME... [OPTION]...", "Stops runs and frees what they hold, by spec.suspend; "
                                                     "'sonde resume' goes on from what was measured. "
                                                     "A\n"
                                                     "schedule begins nothing while it is suspended.\n\n"
                                                     "Example:\n"
                                                     "  sonde suspend ap/nightly-train\n"},
                STEER_SUSPEND,
                "is being suspended",
                "was suspended before",
        };

        return steer_all(argc, argv, &verb);
}

int cmd_resume(int argc, char **argv)
{
        static const struct verb verb = {
                {"resume KIND/NAME... [OPTION]...",
                 "Lets suspended runs go on from what was measured, as another attempt.\n\n"
                 "Example:\n"
                 "  sonde resume ap/nightly-train\n"},
                STEER_RESUME,
                "goes on",
                "is not suspended",
        };

        return steer_all(argc, argv, &verb);
}
