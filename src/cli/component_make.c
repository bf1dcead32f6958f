#include "cli/component.h"

enum { ALGORITHMS_BYTES_MAX = 1 << 20 };

static bool is_given(const char *text)
{
        return text && *text;
}

static struct json *text_or_null(struct arena *a, const char *text)
{
        return is_given(text) ? json_string(a, text) : NULL;
}

static struct json *number_or_null(struct arena *a, unsigned number)
{
        return number ? json_u64(a, number) : NULL;
}

static int need(const char *option, const char *action, bool given, struct err *err)
{
        return given ? 0 : err_set(err, E_CONFIG, "--action %s needs %s", action, option);
}

/* ---- what an option is for */

const char *component_unused(const struct component_spec *s)
{
        const struct {
                const char *option, *type;
                bool given;
        } options[] = {
                {"--framework", "ml", is_given(s->framework)},
                {"--task", "ml", is_given(s->task)},
                {"--ml-algorithm", "ml", is_given(s->ml_algorithm)},
                {"--dataset-size", "ml", s->dataset_size > 0},
                {"--n-features", "ml", s->n_features > 0},
                {"--n-select", "ml", s->n_select > 0},
                {"--image", "custom", is_given(s->image)},
                {"--command", "custom", s->command.n > 0 || is_given(s->command_json)},
                {"--args", "custom", s->args.n > 0 || is_given(s->args_json)},
        };

        for (size_t i = 0; i < ARRAY_LEN(options); i++)
                if (options[i].given && !streq(options[i].type, s->algorithm_type))
                        return options[i].option;
        return NULL;
}

/* ---- lists */

/* JSON of at most 1 MiB that must be an array; WHERE is for messages. */
static struct json *parse_array(const char *where, struct str text, struct arena *a, struct err *err)
{
        struct json_limits limits = {.bytes = ALGORITHMS_BYTES_MAX};
        struct json *list = json_parse(a, text, &limits, err);

        if (!list) {
                err_wrap(err, "%s", where);
                err->code = E_CONFIG;
                return NULL;
        }
        if (!json_is(list, JSON_ARRAY)) {
                err_set(err, E_CONFIG, "%s: it is %s, and a JSON array is wanted", where,
                        json_type_name(list->type));
                return NULL;
        }
        return list;
}

/* The words of a list, given one by one or as JSON; NULL without an error: none are. */
static struct json *words(const char *option, const struct option_list *given, const char *text,
                          struct arena *a, struct err *err)
{
        struct json *list = json_array(a);

        if (given->n && is_given(text) && !streq(text, "[]")) {
                err_set(err, E_CONFIG, "--%s and --%s-json say the same twice; one of the two is wanted",
                        option, option);
                return NULL;
        }
        if (is_given(text) && !given->n) {
                list = parse_array(arena_printf(a, "--%s-json", option), str_of(text), a, err);
                if (!list)
                        return NULL;
        }
        json_foreach (word, list)
                if (!json_cstr(word)) {
                        err_set(err, E_CONFIG, "--%s-json: all of it must be strings", option);
                        return NULL;
                }
        for (size_t i = 0; i < given->n; i++)
                json_append(list, json_string(a, given->v[i]));
        return json_len(list) ? list : NULL;
}

/* ---- a profiling */

static struct json *ml_config(const struct component_spec *s, struct arena *a)
{
        return json_build(a,
                          "{'framework': %p, 'task': %p, 'algorithm': %p, 'datasetSize': %p, 'nFeatures': "
                          "%p, 'nSelect': %p}",
                          text_or_null(a, s->framework), text_or_null(a, s->task),
                          text_or_null(a, s->ml_algorithm), number_or_null(a, s->dataset_size),
                          number_or_null(a, s->n_features), number_or_null(a, s->n_select));
}

static struct json *custom_config(const struct component_spec *s, struct arena *a, struct err *err)
{
        struct err wrong = ERR_INIT;
        struct json *command = words("command", &s->command, s->command_json, a, &wrong);
        struct json *args = wrong.code ? NULL : words("args", &s->args, s->args_json, a, &wrong);

        if (wrong.code) {
                *err = wrong;
                return NULL;
        }
        if (!is_given(s->image) || !command) {
                err_set(err, E_CONFIG, "--algorithm-type custom needs --image and --command");
                return NULL;
        }
        return json_build(a, "{'image': %s, 'command': %p, 'args': %p}", s->image, command, args);
}

static struct json *metadata(const struct component_spec *s, const char *type, struct arena *a)
{
        return json_build(a,
                          "{'name': %s, 'namespace': %s, 'labels': {'app': 'dprofiler', 'type': %s, "
                          "'kubeflow-component': 'true'}}",
                          s->name, s->ns, type);
}

struct json *component_profiling(const struct component_spec *s, struct arena *a, struct err *err)
{
        struct json *ml = NULL, *custom = NULL;

        if (need("--algorithm-name", "profile", is_given(s->algorithm_name), err) < 0 ||
            need("--input-size", "profile", s->input_size > 0, err) < 0)
                return NULL;
        if (streq(s->algorithm_type, "ml")) {
                ml = ml_config(s, a);
        } else if (streq(s->algorithm_type, "custom")) {
                custom = custom_config(s, a, err);
                if (!custom)
                        return NULL;
        }
        return json_build(
                a,
                "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmProfiling', 'metadata': %p, "
                "'spec': {'algorithmName': %s, 'algorithmType': %s, 'inputSize': %u, 'iterations': %u, "
                "'priority': %u, 'timeout': %p, 'mlConfig': %p, 'customConfig': %p}}",
                metadata(s, s->algorithm_type, a), s->algorithm_name, s->algorithm_type, s->input_size,
                s->iterations, s->priority, text_or_null(a, s->timeout), ml, custom);
}

/* ---- a comparison */

static struct json *algorithms_of(const struct component_spec *s, struct arena *a, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(ALGORITHMS_BYTES_MAX);
        struct json *list;

        if (is_given(s->algorithms_file)) {
                if (file_read(s->algorithms_file, &text, err) < 0)
                        return NULL;
                list = parse_array(s->algorithms_file, buf_str(&text), a, err);
        } else {
                list = parse_array("--algorithms", str_of(s->algorithms), a, err);
        }
        if (list && !json_len(list)) {
                err_set(err, E_CONFIG,
                        "there is no algorithm to compare; give [{\"name\": \"quick_sort\"}, ...]");
                return NULL;
        }
        return list;
}

struct json *component_comparison(const struct component_spec *s, struct arena *a, struct err *err)
{
        struct json *algorithms;

        if (need("--algorithms-file", "compare", is_given(s->algorithms_file) || is_given(s->algorithms),
                 err) < 0 ||
            need("--input-size", "compare", s->input_size > 0, err) < 0)
                return NULL;
        algorithms = algorithms_of(s, a, err);
        if (!algorithms)
                return NULL;
        return json_build(
                a,
                "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmComparison', 'metadata': %p, "
                "'spec': {'algorithms': %p, 'inputSize': %u, 'iterations': %u, 'priority': %u, 'timeout': "
                "%p, 'parallel': true}}",
                metadata(s, "comparison", a), algorithms, s->input_size, s->iterations, s->priority,
                text_or_null(a, s->timeout));
}
