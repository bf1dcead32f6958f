#include "cli/component.h"

enum { RESULTS_BYTES_MAX = 16 << 20, FILE_MODE = 0644, DIR_MODE = 0755 };

/* ---- metrics */

/* The numbers that OBJECT has itself, each as "LEAD.NAME"; those of the objects in it too, DEPTH levels down. */
static void add_numbers(struct json *metrics, const char *lead, const struct json *object, unsigned depth,
                        struct arena *a)
{
        json_foreach (member, object) {
                const char *name = *lead ? arena_join(a, lead, ".", member->key) : member->key;

                if (json_is(member, JSON_NUMBER))
                        json_set(a, metrics, name, json_copy(a, member));
                else if (json_is(member, JSON_OBJECT) && depth)
                        add_numbers(metrics, name, member, depth - 1, a);
        }
}

static bool has_several_sizes(const struct json *results, const char *algorithm)
{
        size_t n = 0;

        json_foreach (entry, results)
                n += streq(json_str(entry, "algorithmName"), algorithm);
        return n > 1;
}

struct json *component_metrics(const struct json *results, struct arena *a)
{
        struct json *metrics = json_object(a);

        if (json_is(results, JSON_OBJECT))
                add_numbers(metrics, "", results, 1, a);
        if (!json_is(results, JSON_ARRAY))
                return metrics;
        json_foreach (entry, results) {
                const char *lead = json_str_or(entry, "algorithmName", "unnamed");

                if (has_several_sizes(results, lead))
                        lead = arena_printf(a, "%s.%lld", lead, (long long)json_int(entry, "inputSize", 0));
                add_numbers(metrics, lead, entry, 1, a);
        }
        return metrics;
}

/* ---- files */

static int write_file(const char *path, const struct json *value, struct arena *a, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RESULTS_BYTES_MAX);
        const char *slash = strrchr(path, '/');

        json_write(value, JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "%s: over %d MiB are not written", path,
                               RESULTS_BYTES_MAX >> 20);
        if (slash && slash > path &&
            dir_make(arena_strndup(a, path, (size_t)(slash - path)), DIR_MODE, err) < 0)
                return -1;
        return file_replace(path, buf_str(&text), FILE_MODE, err);
}

static void print_json(const struct json *value)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RESULTS_BYTES_MAX);

        json_write(value, JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        fwrite(text.p, 1, text.n, stdout);
}

/* ---- the launcher */

struct json *component_executor_output(const struct json *executor_input, const struct json *metrics,
                                       struct arena *a, const char **ret_path)
{
        const struct json *outputs = json_at(executor_input, "outputs");

        *ret_path = json_str(outputs, "outputFile");
        if (!*ret_path)
                return NULL;
        json_foreach (output, json_at(outputs, "artifacts")) {
                const struct json *artifact = json_index(json_at(output, "artifacts"), 0);

                if (!streq(json_str(json_at(artifact, "type"), "schemaTitle"), "system.Metrics"))
                        continue;
                return json_build(
                        a, "{'artifacts': {'%s': {'artifacts': [{'name': %p, 'uri': %p, 'metadata': %p}]}}}",
                        output->key, json_copy(a, json_at(artifact, "name")),
                        json_copy(a, json_at(artifact, "uri")), json_copy(a, metrics));
        }
        return NULL;
}

/* Metrics are shown by Kubeflow's page when they are an artifact's metadata, and those the launcher takes from here. */
static int tell_launcher(const char *text, const struct json *metrics, struct arena *a, struct err *err)
{
        const struct json *input = json_parse(a, str_of(text), NULL, err);
        const struct json *output;
        const char *path;

        if (!input) {
                err_wrap(err, "--executor-input");
                err->code = E_CONFIG;
                return -1;
        }
        output = component_executor_output(input, metrics, a, &path);
        return output ? write_file(path, output, a, err) : 0;
}

int component_write(const struct component_outputs *out, const struct json *results, struct arena *a,
                    struct err *err)
{
        const struct json *metrics = component_metrics(results, a);

        if (out->results_path && *out->results_path && write_file(out->results_path, results, a, err) < 0)
                return -1;
        if (out->metrics_path && *out->metrics_path && write_file(out->metrics_path, metrics, a, err) < 0)
                return -1;
        if (out->executor_input && *out->executor_input &&
            tell_launcher(out->executor_input, metrics, a, err) < 0)
                return -1;
        if (!out->output_file || !*out->output_file) {
                print_json(results);
                return 0;
        }
        if (write_file(out->output_file, results, a, err) < 0)
                return -1;
        printf("Results saved to %s\n", out->output_file);
        return 0;
}
