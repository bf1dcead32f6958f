#include "cli/check.h"
#include "cli/people.h"
#include "cli/up.h"

static const struct usage usage = {
        "apply -f FILE... [OPTION]...",
        "Creates the resources of files in the cluster, or changes them to what the files say, by "
        "server-side "
        "apply.\n"
        "First all of them are checked as 'sonde validate' does: if anything is wrong, nothing is sent.\n\n"
        "Examples:\n"
        "  sonde apply -f examples/algorithmprofiling.yaml\n"
        "  sonde apply --dry-run -f examples/dgdr.yaml -n team-a\n",
};

static int read_files(struct resources *r, const struct option_list *files, int argc, char **argv)
{
        _cleanup_(check_free) struct check *check = NULL;

        if (!files->n) {
                cli_error("apply needs -f FILE; see '%s help apply'", cli_name());
                return EXIT_USAGE;
        }
        for (size_t i = 0; i < files->n; i++)
                resources_read(r, files->v[i]);
        for (int i = 1; i < argc; i++)
                resources_read(r, argv[i]);
        check = check_new();
        check_all(check, r);
        if (!r->wrong)
                return -1;
        cli_error("apply: %zu problem%s, and nothing was sent", r->wrong, r->wrong == 1 ? "" : "s");
        return 1;
}

/* That there is no cluster is no fault of a file's. */
static bool reach(struct people *p)
{
        struct kube_request r = {.verb = KUBE_GET, .path = "/version", .timeout = p->request_timeout};
        struct err err = ERR_INIT;
        struct asked got;

        if (ask(people_cluster(p)->kube, &r, NULL, &p->arena, &got, &err) == 0 || err.code == E_FORBIDDEN)
                return true;
        people_complain(people_cluster(p), NULL, &err);
        return false;
}

static int run(struct people *p, struct resources *r, bool dry_run)
{
        static const bool never = false;
        struct up_apply apply = {.kube = people_cluster(p)->kube,
                                 .ns = people_cluster(p)->ns,
                                 .stop = &never,
                                 .dry_run = dry_run};

        if (!reach(p))
                return 1;
        up_apply(&apply, r);
        return people_finish(apply.refused ? 1 : 0);
}

int cmd_apply(int argc, char **argv)
{
        _cleanup_(resources_done) struct resources r = RESOURCES_INIT;
        _cleanup_(people_done) struct people p = PEOPLE_INIT;
        struct option_list files = {0};
        bool dry_run = false;
        const struct option_def options[] = {
                {"file", 'f', "FILE", "apply this ('-': standard input); more may follow", OPT_LIST, &files},
                {"dry-run", 0, NULL, "let the cluster check it, and keep nothing", OPT_FLAG, &dry_run},
                PEOPLE_CLUSTER_OPTIONS(&p),
                {0},
        };
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0)
                code = read_files(&r, &files, argc, argv);
        if (code < 0)
                code = people_open(&p, PEOPLE_ONE) < 0 ? 1 : run(&p, &r, dry_run);
        vec_done(&files);
        return code;
}
