#include "kinds/kinds.h"

#include <math.h>

#include "probe/session/session.h"
#include "run/fence.h"

enum { DOCUMENT_MAX = 4 << 20 };

static const struct json_limits DOCUMENT_LIMITS = {.bytes = DOCUMENT_MAX, .depth = 32, .nodes = 2000000};

/* ---- documents */

static const struct json *document(const struct json *map, const char *key, struct arena *a)
{
        struct str text = run_map_text(a, map, key, NULL);
        const struct json *doc = text.p ? json_parse(a, text, &DOCUMENT_LIMITS, NULL) : NULL;

        return json_is(doc, JSON_OBJECT) ? doc : NULL;
}

void run_docs_take(struct run_docs *d, const struct json *map, struct arena *a)
{
        d->result = document(map, RUN_KEY_RESULT, a);
        d->samples = document(map, SESSION_SAMPLES_FILE, a);
}

const struct json *run_docs_at(const struct run_docs *d, const char *path)
{
        const struct {
                struct str name;
                const struct json *doc;
        } roots[] = {
                {STR("result."), d->result}, {STR("samples."), d->samples}, {STR("profile."), d->profile}};

        for (size_t i = 0; i < ARRAY_LEN(roots); i++)
                if (str_has_prefix(str_of(path), roots[i].name))
                        return json_path(roots[i].doc, path + roots[i].name.n);
        return json_path(d->object, path);
}

const char *run_docs_origin(const struct run_docs *d)
{
        const struct json *annotations = run_docs_at(d, "status.generatedDeployment.metadata.annotations");

        if (json_bool(json_at(d->profile, "status"), "replay", false))
                return "replayed";
        return json_bool(d->result, "simulated", false) || streq(json_str(annotations, "simulated"), "true")
                       ? "simulated"
                       : NULL;
}

/* ---- numbers */

struct definition {
        const char *key, *title, *unit;
        const char *path; /* of the run, or of one of its parts */
        const char *low, *high;
};

static bool number_of(const struct json *j, double *ret)
{
        if (json_is(j, JSON_NUMBER))
                return json_to_double(j, ret) && isfinite(*ret);
        /* A profile's metrics are texts. */
        if (json_is(j, JSON_STRING) && j->len && j->len < 40) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                const struct json *parsed = json_parse(&a, json_text(j), NULL, NULL);

                return json_is(parsed, JSON_NUMBER) && json_to_double(parsed, ret) && isfinite(*ret);
        }
        return false;
}

static double number_or_nan(const struct json *j)
{
        double value;

        return number_of(j, &value) ? value : NAN;
}

static void add(struct figures *f, const struct figure *one)
{
        if (f->n < FIGURES_MAX && !isnan(one->value))
                f->v[f->n++] = *one;
}

static const struct json *below(const struct json *part, const char *path)
{
        return path ? json_path(part, path) : NULL;
}

static void add_all(struct figures *f, const char *of, const struct json *part,
                    const struct definition *definitions, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct definition *d = &definitions[i];
                struct figure one = {of,
                                     d->key,
                                     d->title,
                                     d->unit,
                                     number_or_nan(below(part, d->path)),
                                     number_or_nan(below(part, d->low)),
                                     number_or_nan(below(part, d->high))};

                add(f, &one);
        }
}

/* What a program calls its own, with no unit that anybody knows. */
static void add_named(struct figures *f, struct arena *a, const char *of, const char *prefix,
                      const struct json *numbers)
{
        json_foreach (m, numbers) {
                const char *key = arena_printf(a, "%s%s", prefix, m->key);
                struct figure one = {of, key, key, "", number_or_nan(m), NAN, NAN};

                if (strlen(m->key) == m->key_len)
                        add(f, &one);
        }
}

/* ---- kinds */

static const struct definition algorithm[] = {
        {"executionTime", "time", "s", "executionTime", "ciLow", "ciHigh"},
        {"memoryUsage", "peak memory", "MB", "memoryUsage", NULL, NULL},
        {"cpuUsage", "CPU", "%", "cpuUsage", NULL, NULL},
        {"throughput", "throughput", "1/s", "throughput", NULL, NULL},
        {"accuracy", "accuracy", "", "accuracy", NULL, NULL},
        {"mlAccuracy", "accuracy of the model", "", "mlResults.accuracy", NULL, NULL},
        {"trainingLoss", "training loss", "", "mlResults.trainingLoss", NULL, NULL},
        {"cost", "cost of a run", "", "cost", NULL, NULL},
        {"cpuEfficiency", "CPU used of that requested", "", "efficiency.cpu", NULL, NULL},
        {"memoryEfficiency", "memory used of that requested", "", "efficiency.memory", NULL, NULL},
        {"runs", "valid runs", "", "n", NULL, NULL},
        {"invalid", "runs that failed", "", "invalid", NULL, NULL},
};

static void add_algorithm(struct figures *f, struct arena *a, const char *of, const struct json *part)
{
        add_all(f, of, part, algorithm, ARRAY_LEN(algorithm));
        add_named(f, a, of, "metrics.", json_at(part, "metrics"));
}

static void of_profiling(const struct run_docs *d, struct arena *a, struct figures *f)
{
        add_algorithm(f, a, NULL, run_docs_at(d, "status.results"));
        json_foreach (part, run_docs_at(d, "status.results.sizes"))
                add_all(f, arena_printf(a, "@%lld", (long long)json_int(part, "inputSize", 0)), part,
                        algorithm, ARRAY_LEN(algorithm));
}

static bool has_several_sizes(const struct json *list)
{
        const struct json *first = json_first(list);

        json_foreach (one, list)
                if (json_int(one, "inputSize", 0) != json_int(first, "inputSize", 0))
                        return true;
        return false;
}

static void of_comparison(const struct run_docs *d, struct arena *a, struct figures *f)
{
        const struct json *list = run_docs_at(d, "status.results");
        bool sizes = has_several_sizes(list);

        json_foreach (part, list) {
                const char *name = json_str_or(part, "algorithmName", "");

                if (sizes)
                        name = arena_printf(a, "%s@%lld", name, (long long)json_int(part, "inputSize", 0));
                add_algorithm(f, a, name, part);
        }
}

static void of_dgdr(const struct run_docs *d, struct arena *a, struct figures *f)
{
        static const struct definition definitions[] = {
                {"ttft", "time to first token", "ms", "prefill.ttft", NULL, NULL},
                {"prefillThroughput", "prefill throughput", "tok/s/GPU", "prefill.throughputPerGpu", NULL,
                 NULL},
                {"prefillGpus", "GPUs of a prefill engine", "", "prefill.gpus", NULL, NULL},
                {"itl", "inter-token latency", "ms", "decode.itl", NULL, NULL},
                {"decodeThroughput", "decode throughput", "tok/s/GPU", "decode.throughputPerGpu", NULL, NULL},
                {"decodeGpus", "GPUs of a decode engine", "", "decode.gpus", NULL, NULL},
                {"concurrency", "requests at once", "", "decode.concurrency", NULL, NULL},
                {"kvTokens", "KV cache", "tokens", "decode.kvTokens", NULL, NULL},
                {"prefillReplicas", "prefill engines", "", "replicas.prefill", NULL, NULL},
                {"decodeReplicas", "decode engines", "", "replicas.decode", NULL, NULL},
                {"gpus", "GPUs in all", "", "replicas.gpus", NULL, NULL},
                {"costPer1000Requests", "cost of 1000 requests", "$", "costPer1000Requests", NULL, NULL},
                {"pointsMeasured", "points measured", "", "points.measured", NULL, NULL},
        };

        add_all(f, NULL, d->result, definitions, ARRAY_LEN(definitions));
}

static void of_profile(const struct run_docs *d, struct arena *a, struct figures *f)
{
        static const struct definition definitions[] = {
                {"smThroughput", "compute throughput", "%", "smThroughput", NULL, NULL},
                {"memThroughput", "memory throughput", "%", "memThroughput", NULL, NULL},
                {"dramThroughput", "DRAM throughput", "%", "dramThroughput", NULL, NULL},
                {"l2Throughput", "L2 throughput", "%", "l2Throughput", NULL, NULL},
                {"l1Throughput", "L1 throughput", "%", "l1Throughput", NULL, NULL},
                {"achievedOccupancy", "achieved occupancy", "%", "achievedOccupancy", NULL, NULL},
                {"theoreticalOccupancy", "theoretical occupancy", "%", "theoreticalOccupancy", NULL, NULL},
                {"memoryStallPct", "memory stalls", "%", "memoryStallPct", NULL, NULL},
                {"wavesPerSM", "waves an SM", "", "wavesPerSM", NULL, NULL},
                {"dramReadBytes", "DRAM read", "B", "dramReadBytes", NULL, NULL},
                {"dramWriteBytes", "DRAM written", "B", "dramWriteBytes", NULL, NULL},
                {"durationNs", "time on the GPU", "ns", "durationNs", NULL, NULL},
                {"launches", "launches", "", "launches", NULL, NULL},
                {"passes", "passes", "", "passes", NULL, NULL},
        };
        const struct json *metrics = json_path(d->profile, "status.metrics");
        size_t first = f->n;

        add_all(f, NULL, metrics, definitions, ARRAY_LEN(definitions));
        json_foreach (m, metrics) { /* those that only a person's own profile has */
                bool known = strlen(m->key) != m->key_len;

                for (size_t i = first; i < f->n; i++)
                        known = known || streq(f->v[i].key, m->key);
                if (!known && !streq(m->key, "warnings"))
                        add(f, &(struct figure){NULL, m->key, m->key, "", number_or_nan(m), NAN, NAN});
        }
}

void figures_of(const struct run_docs *docs, struct arena *a, struct figures *ret)
{
        static const struct {
                const struct kube_type *type;
                void (*add)(const struct run_docs *d, struct arena *a, struct figures *f);
        } kinds[] = {
                {&ALGORITHMPROFILING, of_profiling}, {&ALGORITHMCOMPARISON, of_comparison}, {&DGDR, of_dgdr},
                {&CUDAEXPERIMENT, of_profile},       {&WORKLOADPROFILE, of_profile},
        };

        *ret = (struct figures){.v = arena_new_array(a, struct figure, FIGURES_MAX)};
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if (kinds[i].type == docs->kind->type)
                        kinds[i].add(docs, a, ret);
}

const struct figure *figures_find(const struct figures *f, const char *of, const char *key)
{
        for (size_t i = 0; i < f->n; i++)
                if (streq(f->v[i].of, of) && streq(f->v[i].key, key))
                        return &f->v[i];
        return NULL;
}
