#include "cli/people.h"

enum { NUMBERS_MAX = 1000 };

static const struct usage usage = {
        "rerun KIND/NAME [OPTION]...",
        "Creates the same request once more, as NAME-rerun-N or --name: a request that has ended is never "
        "run "
        "again.\n"
        "The spec is the same, without cancel and suspend; of a schedule, one run is made now.\n\n"
        "Examples:\n"
        "  sonde rerun cuda/vectoradd\n"
        "  sonde rerun ap/matmul --name matmul-after-upgrade\n",
};

struct rerun {
        struct people p;
        struct people_name which;
        struct people_run of;
        const char *name; /* --name, or NULL */
};

static int create(struct rerun *r, const char *name, struct err *err)
{
        struct kube_request q = {.verb = KUBE_CREATE,
                                 .type = r->of.kind->type,
                                 .ns = r->of.summary.ns,
                                 .field_manager = "sonde",
                                 .timeout = r->p.request_timeout};
        struct asked made;

        q.body = str_of(json_print(&r->p.arena, steer_again(r->of.kind, r->of.object, name, &r->p.arena)));
        return ask(r->of.cluster->kube, &q, NULL, &r->p.arena, &made, err);
}

/* The first free number. */
static const char *create_numbered(struct rerun *r, struct err *err)
{
        for (unsigned n = 1; n <= NUMBERS_MAX; n++) {
                const char *name = steer_name(r->of.object, n, &r->p.arena);

                err_clear(err);
                if (create(r, name, err) == 0)
                        return name;
                if (err->code != E_EXISTS)
                        return NULL;
        }
        return NULL;
}

static int run(struct rerun *r)
{
        struct err err = ERR_INIT;
        const char *name = r->name;

        if (people_find(&r->p, people_cluster(&r->p), &r->which, &r->of) < 0)
                return 1;
        if (r->of.kind->result) {
                people_refuse_result("rerun", &r->of);
                return 1;
        }
        if (name ? create(r, name, &err) < 0 : !(name = create_numbered(r, &err))) {
                people_complain(r->of.cluster, "rerun", &err);
                return 1;
        }
        printf("%s/%s created from %s%s\n", r->of.kind->label, name, r->of.label,
               r->of.summary.life == SUMMARY_SCHEDULED ? ", to run once now"
               : summary_over(&r->of.summary)          ? ""
                                                       : ", which has not ended yet");
        return people_finish(0);
}

int cmd_rerun(int argc, char **argv)
{
        struct rerun r = {.p = PEOPLE_INIT};
        const struct option_def options[] = {
                {"name", 0, "NAME", "of the new request (default: NAME-rerun-N)", OPT_STR, &r.name},
                PEOPLE_CLUSTER_OPTIONS(&r.p),
                {0},
        };
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0 && people_read_name(argc, argv, &r.which) < 0)
                code = EXIT_USAGE;
        if (code < 0 && r.name && !name_valid(NAME_SUBDOMAIN, str_of(r.name))) {
                cli_error("--name: '%s' must be lower case letters, digits, '-' and '.', at most 253 "
                          "characters",
                          r.name);
                code = EXIT_USAGE;
        }
        if (code < 0)
                code = people_open(&r.p, PEOPLE_ONE) < 0 ? 1 : run(&r);
        people_done(&r.p);
        return code;
}
