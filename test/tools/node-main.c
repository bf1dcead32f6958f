/*
 * node-main - a node against any API server: what the embedded engine has inside, for the tests.
 *
 * SIGTERM ends its pods first, SIGINT leaves them running.
 */
#include "local/node.h"
#include "tools/tool.h"

struct node_main {
        struct tool tool;
        const char *name, *dir, *image, *program;
        bool schedule, doctor;
        unsigned gpus;
        struct loop *loop;
        struct node *node;
};

static void on_stopped(void *arg)
{
        loop_stop(((struct node_main *)arg)->loop, 0);
}

static void on_signal(void *arg, int signo)
{
        struct node_main *m = arg;

        if (signo == SIGTERM)
                node_stop(m->node, on_stopped, m);
        else
                loop_stop(m->loop, 0);
}

static int run(struct node_main *m, struct err *err)
{
        _cleanup_(loop_free) struct loop *loop = m->loop = loop_new(NULL, &m->tool.log, err);
        _cleanup_(kube_free) struct kube *kube = loop ? kube_new(loop, &m->tool.config, NULL, err) : NULL;
        struct node_config config = {.name = m->name,
                                     .dir = m->dir,
                                     .pod_image = m->image,
                                     .pod_program = m->program,
                                     .client = kube,
                                     .log = &m->tool.log,
                                     .gpus = m->gpus,
                                     .server = m->tool.config.server,
                                     .ca = m->tool.config.ca,
                                     .no_scheduler = !m->schedule};
        int code;

        if (!kube)
                return -1;
        m->node = node_new(loop, &config, err);
        if (!m->node)
                return -1;
        loop_on_signal(loop, SIGTERM, on_signal, m);
        loop_on_signal(loop, SIGINT, on_signal, m);
        printf("ready\n");
        fflush(stdout);
        code = loop_run(loop);
        node_free(m->node);
        return code;
}

static int doctor(void)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 16);

        node_doctor(&text);
        printf("%.*s", STR_ARG(buf_str(&text)));
        return text.n ? 1 : 0;
}

int main(int argc, char **argv)
{
        static struct node_main m = {.name = "node", .image = "sonde-pod"};
        static const struct option_def options[] = {
                TOOL_OPTIONS(&m.tool),
                {"name", 0, "NAME", "of the Node", OPT_STR, &m.name},
                {"dir", 0, "DIR", "where pods are kept", OPT_STR, &m.dir},
                {"pod-image", 0, "IMAGE", "the image it knows", OPT_STR, &m.image},
                {"pod-program", 0, "FILE", "what that image has as /sonde-pod", OPT_STR, &m.program},
                {"gpus", 0, "N", "GPUs it says it has", OPT_UINT, &m.gpus},
                {"schedule", 0, NULL, "also bind pods", OPT_FLAG, &m.schedule},
                {0},
        };
        struct err err = ERR_INIT;
        int code;

        if (argc == 3 && streq(argv[1], "node-pod"))
                return node_pod_main(argv[2]);
        if (argc == 2 && streq(argv[1], "doctor"))
                return doctor();
        code = tool_init(&m.tool, options, argc, argv);
        if (code >= 0)
                return code;
        code = run(&m, &err);
        if (err.code)
                cli_error("%s", err.text);
        tool_done(&m.tool);
        return code < 0 ? 1 : code;
}
