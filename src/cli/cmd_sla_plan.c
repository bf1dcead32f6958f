/*
 * sonde-pod sla plan, sla pick: the SLA profiler's arithmetic on given data.
 */
#include <unistd.h>

#include "cli/cli.h"
#include "probe/probe.h"
#include "json/json.h"

enum { INPUT_MAX = 8 << 20, OUTPUT_MAX = 256 << 20 };

static const struct usage plan_usage = {
        "sla plan [FILE]",
        "Says what a run would do: the mappings, the grids, how many deployments and points. Nothing is\n"
        "measured. FILE ('-' or none: standard input) holds, as JSON or YAML, the profiler's configuration,\n"
        "or {config, shape, kvTokens}: with kvTokens, the size of the KV cache, the concurrencies are those\n"
        "of a run, without it their greatest number. The answer is JSON.\n"
        "\n"
        "  echo '{\"engine\": {\"maxContextLength\": 8192}}' | sonde-pod sla plan\n",
};

static const struct usage pick_usage = {
        "sla pick [FILE]",
        "Chooses among rows that were measured, interpolates, and plans replicas. FILE ('-' or none:\n"
        "standard input) holds, as JSON or YAML, {targets, isl, osl, prefill, decode, prefillCurve,\n"
        "decodeSurface, at, demand}, each where it is there; docs/sla.md has their members. The answer is\n"
        "JSON.\n"
        "\n"
        "  echo '{\"targets\": {\"ttft\": 200}, \"isl\": 3000,\n"
        "         \"prefill\": [{\"label\": \"TP=1\", \"ttft\": 310}, {\"label\": \"TP=2\", \"ttft\": "
        "180}]}' |\n"
        "  sonde-pod sla pick\n",
};

typedef struct json *(*answer_fn)(struct arena *a, const struct json *in, struct err *err);

static int answer(answer_fn fn, const char *name, const char *path, struct err *err)
{
        _cleanup_(doc_done) struct doc in = DOC_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(OUTPUT_MAX);
        const struct json *out;

        if (doc_read_yaml(&in, path, INPUT_MAX, err) < 0)
                return -1;
        out = fn(&in.arena, in.root, err);
        if (!out)
                return -1;
        json_write(out, JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "the answer of %s has more than %d MiB", name,
                               OUTPUT_MAX >> 20);
        return fd_write_all(STDOUT_FILENO, buf_str(&text), err);
}

static int run(answer_fn fn, const struct usage *usage, const char *name, int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        struct err err = ERR_INIT;
        int code = options_parse(options, usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc > 2) {
                cli_error("sla %s takes one file; see '%s sla %s --help'", name, cli_name(), name);
                return EXIT_USAGE;
        }
        if (answer(fn, name, argc == 2 ? argv[1] : "-", &err) < 0) {
                cli_error("sla %s: %s", name, err.text);
                return 1;
        }
        return 0;
}

int cmd_sla_plan(int argc, char **argv)
{
        return run(sla_plan_json, &plan_usage, "plan", argc, argv);
}

int cmd_sla_pick(int argc, char **argv)
{
        return run(sla_pick_json, &pick_usage, "pick", argc, argv);
}
