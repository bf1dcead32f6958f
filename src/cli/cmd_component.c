#include "cli/component.h"

enum action { ACTION_PROFILE, ACTION_COMPARE, ACTION_WAIT, ACTION_GET_RESULTS, ACTION_INVALID };

static const char *const action_names[] = {"profile", "compare", "wait", "get-results", NULL};
static const char *const type_names[] = {"sorting", "ml", "custom", NULL};
static const char *const resource_types[] = {"AlgorithmProfiling", "AlgorithmComparison", NULL};

struct component {
        struct people people;
        struct component_spec spec;
        struct component_outputs outputs;
        const char *action, *resource_type;
        usec_t wait_timeout;
};

static const char help[] =
        "A step of a Kubeflow pipeline: makes requests, waits for them and hands on what came out.\n"
        "\n"
        "  profile      create an AlgorithmProfiling: --algorithm-name, --input-size, and by type\n"
        "               --framework ... (ml) or --image, --command, --args (custom)\n"
        "  compare      create an AlgorithmComparison: --algorithms-file, --input-size\n"
        "  wait         until it has ended: exit 0 completed, 1 failed, cancelled or deleted,\n"
        "               124 not within --wait-timeout\n"
        "  get-results  print what was measured, or write it to --output-file; 1 before it has completed\n"
        "\n"
        "--command and --args take all words up to the next of these options, also such as begin\n"
        "with '--'. A word that is one of these options: --args=--name, or everything behind '--'.\n"
        "\n"
        "Example:\n"
        "  sonde component --action profile --name sort --algorithm-name quick_sort --input-size 50000\n"
        "  sonde component --action wait --name sort --resource-type AlgorithmProfiling\n"
        "  sonde component --action get-results --name sort --resource-type AlgorithmProfiling \\\n"
        "          --output-file /tmp/profiling_results.json\n";

/* ---- options */

/* The place of WORD among WORDS, or below 0, and it was said. */
static int pick(const char *option, const char *word, const char *const *words)
{
        _cleanup_(buf_done) struct buf all = BUF_INIT(256);

        for (int i = 0; words[i]; i++) {
                if (streq(word, words[i]))
                        return i;
                buf_printf(&all, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
        }
        if (word && *word)
                cli_error("%s: '%s' is not one of %s", option, word, buf_cstr(&all));
        else
                cli_error("%s is needed: %s", option, buf_cstr(&all));
        return -1;
}

static int parse(struct component *c, int argc, char **argv)
{
        static const struct usage usage = {"component --action ACTION --name NAME [OPTION]...", help};
        struct component_spec *s = &c->spec;
        struct component_outputs *o = &c->outputs;
        const struct option_def options[] = {
                {"action", 0, "ACTION", "profile, compare, wait or get-results", OPT_STR, &c->action},
                {"name", 0, "NAME", "name of the request", OPT_STR, &s->name},
                {"namespace", 0, "NS", "its namespace (default: default)", OPT_STR, &s->ns},
                {"resource-type", 0, "KIND", "of wait, get-results: AlgorithmProfiling, AlgorithmComparison",
                 OPT_STR, &c->resource_type},
                {"algorithm-name", 0, "NAME", "what is measured", OPT_STR, &s->algorithm_name},
                {"algorithm-type", 0, "TYPE", "sorting (default), ml or custom", OPT_STR, &s->algorithm_type},
                {"input-size", 0, "N", "size of the input", OPT_UINT, &s->input_size},
                {"iterations", 0, "N", "how often it is run (default: 1)", OPT_UINT, &s->iterations},
                {"priority", 0, "N", "0 to 10 (default: 5)", OPT_UINT, &s->priority},
                {"timeout", 0, "TIME", "longest time of one attempt (default: 1h)", OPT_STR, &s->timeout},
                {"framework", 0, "NAME", "ml: sklearn, dask, spark, ray, ...", OPT_STR, &s->framework},
                {"task", 0, "TASK", "ml: feature_selection, hyperparameter_tuning, distributed_training",
                 OPT_STR, &s->task},
                {"dataset-size", 0, "N", "ml: rows of the data", OPT_UINT, &s->dataset_size},
                {"n-features", 0, "N", "ml: columns of the data", OPT_UINT, &s->n_features},
                {"n-select", 0, "N", "ml: features to keep", OPT_UINT, &s->n_select},
                {"ml-algorithm", 0, "NAME", "ml: random_forest, ...", OPT_STR, &s->ml_algorithm},
                {"image", 0, "IMAGE", "custom: the image", OPT_STR, &s->image},
                {"command", 0, "WORD...", "custom: the program", OPT_GREEDY, &s->command},
                {"args", 0, "WORD...", "custom: its arguments", OPT_GREEDY, &s->args},
                {"command-json", 0, "JSON", "the same as a JSON array", OPT_STR, &s->command_json},
                {"args-json", 0, "JSON", "the same as a JSON array", OPT_STR, &s->args_json},
                {"algorithms-file", 0, "FILE", "compare: a JSON array of algorithms", OPT_STR,
                 &s->algorithms_file},
                {"algorithms", 0, "JSON", "the same, not in a file", OPT_STR, &s->algorithms},
                {"output-file", 0, "FILE", "write the results there", OPT_STR, &o->output_file},
                {"wait-timeout", 0, "SECONDS", "longest wait (default: 3600)", OPT_DURATION,
                 &c->wait_timeout},
                {"results-path", 0, "FILE", "pipeline's artifact: the results, as JSON", OPT_STR,
                 &o->results_path},
                {"metrics-path", 0, "FILE", "pipeline's artifact: every figure by name, as JSON", OPT_STR,
                 &o->metrics_path},
                {"executor-input", 0, "JSON", "what the pipeline's launcher says about this step", OPT_STR,
                 &o->executor_input},
                {"kubeconfig", 0, "FILE", "kubeconfig to use (default: as kubectl, or the pod's account)",
                 OPT_STR, &c->people.kubeconfig},
                {"context", 0, "NAME", "context of the kubeconfig", OPT_STR, &c->people.contexts},
                {0}};

        return options_parse_only(options, &usage, argc, argv);
}

static int check_name(const struct component_spec *s)
{
        if (!s->name || !*s->name) {
                cli_error("--name is needed");
                return -1;
        }
        if (name_valid(NAME_SUBDOMAIN, str_of(s->name)))
                return 0;
        cli_error("--name: '%s' is not a name in Kubernetes: lower-case letters, digits, '-' and '.'",
                  s->name);
        return -1;
}

/* ---- actions */

static int create(struct component *c, const struct kind *kind, const struct json *object)
{
        struct people *p = &c->people;
        struct people_cluster *cluster = people_cluster(p);
        struct kube_request r = {.verb = KUBE_CREATE,
                                 .type = kind->type,
                                 .ns = c->spec.ns,
                                 .field_manager = "sonde-component",
                                 .timeout = p->request_timeout,
                                 .body = str_of(json_print(&p->arena, object))};
        struct err err = ERR_INIT;
        struct asked answer;

        if (ask(cluster->kube, &r, NULL, &p->arena, &answer, &err) == 0) {
                printf("Created %s: %s\n", kind->type->kind, c->spec.name);
                return 0;
        }
        if (err.code == E_EXISTS)
                cli_error("%s %s is already there in namespace %s; give this one another --name, or delete "
                          "that",
                          kind->type->kind, c->spec.name, c->spec.ns);
        else if (answer.unserved)
                cli_error("the cluster does not have the kind %s; '%s manifests' prints what it needs",
                          kind->type->kind, cli_name());
        else
                people_complain(cluster, NULL, &err);
        return 1;
}

static int make(struct component *c, const struct kind *kind, enum action action)
{
        struct err err = ERR_INIT;
        const char *unused = component_unused(&c->spec);
        struct json *object;

        object = action == ACTION_PROFILE ? component_profiling(&c->spec, &c->people.arena, &err)
                                          : component_comparison(&c->spec, &c->people.arena, &err);
        if (!object) {
                cli_error("%s", err.text);
                return err.code == E_CONFIG ? EXIT_USAGE : 1;
        }
        if (unused && action == ACTION_PROFILE)
                cli_error("%s is not used with --algorithm-type %s", unused, c->spec.algorithm_type);
        return people_open(&c->people, PEOPLE_ONE) < 0 ? 1 : create(c, kind, object);
}

static int get_results(struct component *c, const struct kind *kind)
{
        struct people *p = &c->people;
        struct err err = ERR_INIT;
        const struct json *results;
        struct people_run run;

        if (component_get(p, kind, c->spec.name, &run) < 0)
                return 1;
        results = json_at(json_at(run.object, "status"), "results");
        if (run.summary.life != SUMMARY_SUCCEEDED || !results) {
                cli_error("%s %s has no results: it is %s%s%s", kind->type->kind, c->spec.name,
                          run.summary.phase, summary_over(&run.summary) && run.summary.sentence ? ": " : "",
                          !summary_over(&run.summary) ? "; wait for it with --action wait"
                          : run.summary.sentence      ? text_clean(&p->arena, run.summary.sentence)
                                                      : "");
                return 1;
        }
        if (component_write(&c->outputs, results, &p->arena, &err) == 0)
                return 0;
        cli_error("%s", err.text);
        return err.code == E_CONFIG ? EXIT_USAGE : 1;
}

static int act(struct component *c, enum action action)
{
        int resource_type;
        const struct kind *kind;

        if (action == ACTION_PROFILE || action == ACTION_COMPARE)
                return make(c, kinds_named(str_of(resource_types[action == ACTION_PROFILE ? 0 : 1])), action);
        resource_type = pick("--resource-type", c->resource_type, resource_types);
        if (resource_type < 0)
                return EXIT_USAGE;
        kind = kinds_named(str_of(resource_types[resource_type]));
        if (people_open(&c->people, PEOPLE_ONE) < 0)
                return 1;
        return action == ACTION_WAIT ? component_wait(&c->people, kind, c->spec.name, c->wait_timeout)
                                     : get_results(c, kind);
}

int cmd_component(int argc, char **argv)
{
        struct component c = {
                .people = PEOPLE_INIT,
                .spec = {.ns = "default", .iterations = 1, .priority = 5, .timeout = "1h"},
                .wait_timeout = 3600 * USEC_PER_SEC,
        };
        int code = parse(&c, argc, argv), action = ACTION_INVALID;

        if (code < 0) {
                action = pick("--action", c.action, action_names);
                if (!c.spec.algorithm_type || !*c.spec.algorithm_type)
                        c.spec.algorithm_type = type_names[0];
                c.people.ns = c.spec.ns;
                if (action < 0 || check_name(&c.spec) < 0 ||
                    pick("--algorithm-type", c.spec.algorithm_type, type_names) < 0)
                        code = EXIT_USAGE;
        }
        if (code < 0)
                code = people_finish(act(&c, (enum action)action));
        vec_done(&c.spec.command);
        vec_done(&c.spec.args);
        people_done(&c.people);
        return code;
}
