#include "cli/operators.h"

#include "history/history.h"
#include "kinds/kinds.h"

struct operators {
        struct arena arena; /* of the settings */
        struct kinds_settings settings;
        struct controller controllers[KINDS_MAX];
        const struct controller *list[KINDS_MAX];
        struct history *history;
        struct zones *zones;
        struct operator* op;
};

int operators_check_env(const char *text, struct err *err)
{
        struct str value = str_of(text), name = str_split(&value, '=');

        /* What is behind the '=', or would be, may be secret. */
        if (!strchr(text, '='))
                return err_set(err, E_CONFIG, "what is given is not NAME=VALUE: it has no '='");
        if (!name_of_variable(name))
                return err_set(err, E_CONFIG, "'%.*s' is no name; NAME=VALUE is wanted", STR_ARG(name));
        if (!utf8_valid(text, strlen(text)))
                return err_set(err, E_CONFIG, "the value of %.*s is not UTF-8", STR_ARG(name));
        return 0;
}

/* [{name, value}]; NULL: none. */
static struct json *read_env(struct arena *a, const char *const *env, size_t n)
{
        struct json *list = n ? json_array(a) : NULL;

        for (size_t i = 0; i < n; i++) {
                struct str value = str_of(env[i]), name = str_split(&value, '=');
                char *name_text = arena_strndup(a, name.p, name.n);

                json_append(list, json_build(a, "{'name': %s, 'value': %s}", name_text,
                                             arena_strndup(a, value.p, value.n)));
        }
        return list;
}

/* As upstream has it: an environment variable of the operator's names the image that has Nsight Compute. */
static const char *runner_image(void)
{
        const char *image = getenv(CUDA_RUNNER_ENV);

        return image && *image ? image : CUDA_RUNNER_DEFAULT;
}

struct operators *operators_new(const struct operators_config *config, struct err *err)
{
        _cleanup_(operators_free) struct operators *o = xcalloc(1, sizeof(*o));
        struct operator_config oc = {
                .loop = config->loop,
                .kube = config->kube,
                .controllers = o->list,
                .ns = config->ns,
                .concurrency = config->concurrency,
                .limits = config->limits,
                .metrics = config->metrics,
                .lease = config->lease,
        };

        o->settings.dgdr.pod_image = config->pod_image;
        o->settings.dgdr.env = read_env(&o->arena, config->env, config->n_env);
        o->settings.cuda = (struct cuda_settings){.pod_image = config->pod_image,
                                                  .runner_image = arena_strdup(&o->arena, runner_image()),
                                                  .env = o->settings.dgdr.env,
                                                  .no_nodes = config->no_nodes};
        o->settings.algorithm = (struct algorithm_settings){
                .pod_image = config->pod_image,
                .ml_image = config->ml_image ? config->ml_image : ALGORITHM_ML_IMAGE_DEFAULT,
                .env = o->settings.dgdr.env,
                .zones = o->zones = zones_new(NULL)};
        oc.n_controllers = kinds_controllers(&o->settings, o->controllers);
        for (size_t i = 0; i < oc.n_controllers; i++)
                o->list[i] = &o->controllers[i];
        if (config->history.place) {
                o->history = oc.history = history_open(config->loop, &config->history, config->log, err);
                if (!o->history)
                        return NULL;
        }
        o->op = operator_new(&oc);
        return TAKE_PTR(o);
}

void operators_free(struct operators *o)
{
        if (!o)
                return;
        operator_free(o->op);
        history_free(o->history);
        zones_free(o->zones);
        arena_done(&o->arena);
        free(o);
}

struct operator* operators_operator(const struct operators *o)
{
        return o->op;
}

struct history *operators_history(const struct operators *o)
{
        return o->history;
}
