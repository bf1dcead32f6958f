#include "cli/people.h"

static const struct usage usage = {
        "logs KIND/NAME [OPTION]...",
        "Prints what a run has written: the workload's output, of the newest pod. Of a CUDAExperiment that "
        "is "
        "profiling;\n"
        "--job prints that of another Job.\n\n"
        "Examples:\n"
        "  sonde logs ap/matmul\n"
        "  sonde logs -f --tail 20 dgdr/llama-70b\n"
        "  sonde logs cuda/vectoradd -c stage\n",
};

struct logs {
        struct people p;
        struct people_name which;
        struct people_run run;
        const char *container, *job;
        unsigned tail;
        bool follow, previous, has_tail;
        bool done;
        struct err err;
};

/* ---- which pod */

/* The newest pod of the Job; NULL: none, which was said. */
static const struct json *pod_of(struct logs *l, const char *job)
{
        struct arena *a = &l->p.arena;
        const struct json *newest;
        struct err err = ERR_INIT;
        struct json *pods;

        if (people_list_of(&l->p, l->run.cluster, &KUBE_POD, l->run.summary.ns,
                           arena_printf(a, "job-name=%s", job), NULL, &pods, &err) < 0) {
                people_complain(l->run.cluster, "logs", &err);
                return NULL;
        }
        newest = steer_pod(pods);
        if (newest)
                return newest;
        if (summary_over(&l->run.summary))
                cli_error("logs: %s has ended, and its pods are gone with what they wrote; '%s describe %s' "
                          "tells "
                          "what is left",
                          l->run.label, cli_name(), l->run.label);
        else
                cli_error("logs: %s has no pod now; '%s explain %s' tells why", l->run.label, cli_name(),
                          l->run.label);
        return NULL;
}

static const char *job_of(struct logs *l)
{
        const char *job = json_str(json_at(json_at(l->run.object, "status"), "run"), "job");

        if (l->job || job)
                return l->job ? l->job : job;
        cli_error("logs: %s has not begun; '%s explain %s' tells why", l->run.label, cli_name(),
                  l->run.label);
        return NULL;
}

/* ---- what it wrote */

static void on_data(void *arg, struct str chunk)
{
        fwrite(chunk.p, 1, chunk.n, stdout);
        fflush(stdout);
}

static void on_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct logs *l = arg;

        l->done = true;
        if (err)
                l->err = *err;
}

static const char *path_of(struct logs *l, const struct json *pod)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(4096);

        kube_path(&path, &KUBE_POD, l->run.summary.ns, meta_str(pod, "name"), "log");
        buf_adds(&path, "?container=");
        buf_add_urlencoded(&path, str_of(l->container ? l->container : steer_container(pod)));
        if (l->follow)
                buf_adds(&path, "&follow=true");
        if (l->previous)
                buf_adds(&path, "&previous=true");
        if (l->has_tail)
                buf_printf(&path, "&tailLines=%u", l->tail);
        return arena_strdup(&l->p.arena, buf_cstr(&path));
}

static int run(struct logs *l)
{
        struct kube_request r = {.verb = KUBE_GET, .timeout = l->p.request_timeout};
        const struct json *pod;
        const char *job;

        if (people_find(&l->p, people_cluster(&l->p), &l->which, &l->run) < 0)
                return 1;
        if (l->run.kind->result) {
                people_refuse_result("logs", &l->run);
                return 1;
        }
        job = job_of(l);
        pod = job ? pod_of(l, job) : NULL;
        if (!pod)
                return 1;
        r.path = path_of(l, pod);
        kube_stream(l->run.cluster->kube, &r, on_data, on_done, l);
        while (!l->done && loop_turn(l->p.loop, true))
                continue;
        if (l->err.code != E_OK) {
                people_complain(l->run.cluster, "logs", &l->err);
                return 1;
        }
        return people_finish(0);
}

int cmd_logs(int argc, char **argv)
{
        struct logs l = {.p = PEOPLE_INIT, .err = ERR_INIT, .tail = UINT32_MAX};
        const struct option_def options[] = {
                {"follow", 'f', NULL, "go on until the container ends", OPT_FLAG, &l.follow},
                {"tail", 0, "N", "the last lines alone (default: all)", OPT_UINT, &l.tail},
                {"container", 'c', "NAME", "of this container (default: the workload's): stage, relay",
                 OPT_STR, &l.container},
                {"previous", 0, NULL, "of the container before its last restart", OPT_FLAG, &l.previous},
                {"job", 0, "NAME", "of this Job's newest pod (default: the run's)", OPT_STR, &l.job},
                PEOPLE_CLUSTER_OPTIONS(&l.p),
                {0},
        };
        int code = options_parse(options, &usage, &argc, argv);

        l.has_tail = l.tail != UINT32_MAX;
        if (code < 0 && people_read_name(argc, argv, &l.which) < 0)
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&l.p, PEOPLE_ONE) < 0 ? 1 : run(&l);
        people_done(&l.p);
        return code;
}
