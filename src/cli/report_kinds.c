/*
 * What each kind's report has in it, and where that is. A path of a table is below its rows; see report.h.
 */
#include "cli/report.h"

#define FIELDS(list) list, ARRAY_LEN(list)
#define ONE(path)    \
        {            \
                path \
        }
#define TWO(path, one)    \
        {                 \
                path, one \
        }

/* ---- AlgorithmProfiling, AlgorithmComparison */

#define FIGURES_OF_ALGORITHM                                                                 \
        {"time", "time", REPORT_SECONDS, "executionTime", "ciLow", "ciHigh"},                \
                {"memoryMb", "peak memory", REPORT_MB, "memoryUsage", NULL, NULL},           \
                {"cpuPercent", "CPU", REPORT_PERCENT, "cpuUsage", NULL, NULL},               \
                {"throughput", "throughput (1/s)", REPORT_NUMBER, "throughput", NULL, NULL}, \
                {"accuracy", "accuracy", REPORT_NUMBER, "accuracy", NULL, NULL},             \
                {"cost", "cost", REPORT_NUMBER, "cost", NULL, NULL},                         \
                {"currency", "currency", REPORT_TEXT, "currency", NULL, NULL},               \
                {"runs", "runs", REPORT_COUNT, "n", NULL, NULL},                             \
        {                                                                                    \
                "failed", "failed", REPORT_COUNT, "invalid", NULL, NULL                      \
        }

static const struct report_field profiled[] = {
        FIGURES_OF_ALGORITHM,
        {"error", "error", REPORT_TEXT, "error.message", NULL, NULL},
};

static const struct report_field compared[] = {
        {"algorithm", "algorithm", REPORT_TEXT, "algorithmName", NULL, NULL},
        {"size", "size", REPORT_COUNT, "inputSize", NULL, NULL},
        FIGURES_OF_ALGORITHM,
        {"ratio", "vs baseline", REPORT_RATIO, "ratio", NULL, NULL},
        {"p", "p", REPORT_P, "pValue", NULL, NULL},
        {"verdict", "verdict", REPORT_TEXT, "verdict", NULL, NULL},
        {"error", "error", REPORT_TEXT, "error.message", NULL, NULL},
};

static const struct report_field by_size[] = {
        {"size", "size", REPORT_COUNT, "inputSize", NULL, NULL},
        {"time", "time", REPORT_SECONDS, "executionTime", "ciLow", "ciHigh"},
        {"memoryMb", "peak memory", REPORT_MB, "memoryUsage", NULL, NULL},
        {"cpuPercent", "CPU", REPORT_PERCENT, "cpuUsage", NULL, NULL},
        {"runs", "runs", REPORT_COUNT, "n", NULL, NULL},
        {"error", "error", REPORT_TEXT, "error.message", NULL, NULL},
};

static const struct report_field distribution[] = {
        {"algorithm", "algorithm", REPORT_TEXT, "algorithmName", NULL, NULL},
        {"size", "size", REPORT_COUNT, "inputSize", NULL, NULL},
        {"median", "median", REPORT_SECONDS, "time.median", "time.ciLow", "time.ciHigh"},
        {"mean", "mean", REPORT_SECONDS, "time.mean", NULL, NULL},
        {"sd", "sd", REPORT_SECONDS, "time.sd", NULL, NULL},
        {"min", "min", REPORT_SECONDS, "time.min", NULL, NULL},
        {"p5", "p5", REPORT_SECONDS, "time.p5", NULL, NULL},
        {"p95", "p95", REPORT_SECONDS, "time.p95", NULL, NULL},
        {"max", "max", REPORT_SECONDS, "time.max", NULL, NULL},
        {"memoryMb", "memory", REPORT_MB, "memory.median", "memory.ciLow", "memory.ciHigh"},
        {"cpuPercent", "CPU", REPORT_PERCENT, "cpu.median", "cpu.ciLow", "cpu.ciHigh"},
};

static const struct report_field pairs[] = {
        {"of", "of", REPORT_TEXT, "of", NULL, NULL},
        {"a", "this", REPORT_TEXT, "a", NULL, NULL},
        {"b", "against", REPORT_TEXT, "b", NULL, NULL},
        {"size", "size", REPORT_COUNT, "size", NULL, NULL},
        {"ratio", "ratio", REPORT_RATIO, "ratio", "ciLow", "ciHigh"},
        {"p", "p", REPORT_P, "pAdjusted", NULL, NULL},
        {"effect", "effect", REPORT_TEXT, "effect", NULL, NULL},
        {"verdict", "verdict", REPORT_TEXT, "verdict", NULL, NULL},
        {"why", "why", REPORT_TEXT, "why", NULL, NULL},
};

static const struct report_field scaling[] = {
        {"algorithm", "algorithm", REPORT_TEXT, "algorithm", NULL, NULL},
        {"exponent", "exponent", REPORT_NUMBER, "exponent", "ciLow", "ciHigh"},
        {"sizes", "sizes", REPORT_COUNT, "sizes", NULL, NULL},
        {"rough", "rough", REPORT_TRUTH, "rough", NULL, NULL},
        {"verdict", "grows as", REPORT_TEXT, "verdict", NULL, NULL},
};

static const struct report_field recommendations[] = {
        {"kind", "about", REPORT_TEXT, "kind", NULL, NULL},
        {"text", "recommendation", REPORT_TEXT, "text", NULL, NULL},
        {"evidence", "evidence", REPORT_TEXT, "evidence", NULL, NULL},
};

static const struct report_field members[] = {
        {"name", "name", REPORT_TEXT, "$key", NULL, NULL},
        {"value", "value", REPORT_NUMBER, "$value", NULL, NULL},
};

static const struct report_field profiling_facts[] = {
        {"algorithm", "algorithm", REPORT_TEXT, "spec.algorithmName", NULL, NULL},
        {"framework", "framework", REPORT_TEXT, "status.results.mlResults.framework", NULL, NULL},
        {"inputSize", "input size", REPORT_COUNT, "spec.inputSize", NULL, NULL},
        {"unit", "what repeats", REPORT_TEXT, "status.statistics.unit", NULL, NULL},
        {"machine", "machine", REPORT_TEXT, "status.statistics.machine.cpu", NULL, NULL},
        {"cpus", "CPUs", REPORT_COUNT, "status.statistics.machine.cpus", NULL, NULL},
        {"modelAccuracy", "accuracy of the model", REPORT_NUMBER, "status.results.mlResults.accuracy", NULL,
         NULL},
        {"trainingLoss", "training loss", REPORT_NUMBER, "status.results.mlResults.trainingLoss", NULL, NULL},
        {"bestParams", "best parameters", REPORT_TEXT, "status.results.mlResults.bestParams", NULL, NULL},
        {"selectedFeatures", "selected features", REPORT_TEXT, "status.results.mlResults.selectedFeatures",
         NULL, NULL},
};

static const struct report_section profiling_sections[] = {
        {"results", "results", REPORT_ROWS, ONE("status.results"), FIELDS(profiled)},
        {"sizes", "by input size", REPORT_ROWS, ONE("status.results.sizes"), FIELDS(by_size)},
        {"statistics", "distribution", REPORT_ROWS, ONE("status.statistics.algorithms"),
         FIELDS(distribution)},
        {"scaling", "growth with the input", REPORT_ROWS, ONE("status.scaling"), FIELDS(scaling)},
        {"metrics", "metrics", REPORT_MEMBERS, ONE("status.results.metrics"), FIELDS(members)},
        {"featureImportances", "importance of features", REPORT_MEMBERS,
         ONE("status.results.mlResults.featureImportances"), FIELDS(members)},
        {"recommendations", "recommendations", REPORT_ROWS, ONE("status.recommendations"),
         FIELDS(recommendations)},
};

static const struct report_field comparison_facts[] = {
        {"baseline", "baseline", REPORT_TEXT, "status.comparison.baseline", NULL, NULL},
        {"noiseFloor", "noise floor", REPORT_SHARE, "status.comparison.noiseFloor", NULL, NULL},
        {"minEffect", "differences that count", REPORT_SHARE, "status.comparison.minEffect", NULL, NULL},
        {"paretoMemory", "best in time and memory", REPORT_TEXT, "status.comparison.pareto.memory", NULL,
         NULL},
        {"paretoAccuracy", "best in time and accuracy", REPORT_TEXT, "status.comparison.pareto.accuracy",
         NULL, NULL},
        {"paretoCost", "best in time and cost", REPORT_TEXT, "status.comparison.pareto.cost", NULL, NULL},
        {"contended", "ran side by side", REPORT_TRUTH, "status.statistics.contended", NULL, NULL},
        {"unit", "what repeats", REPORT_TEXT, "status.statistics.unit", NULL, NULL},
        {"machine", "machine", REPORT_TEXT, "status.statistics.machine.cpu", NULL, NULL},
        {"cpus", "CPUs", REPORT_COUNT, "status.statistics.machine.cpus", NULL, NULL},
};

static const struct report_section comparison_sections[] = {
        {"results", "results", REPORT_ROWS, ONE("status.results"), FIELDS(compared)},
        {"pairs", "one against the other", REPORT_ROWS, ONE("status.comparison.pairs"), FIELDS(pairs)},
        {"statistics", "distribution", REPORT_ROWS, ONE("status.statistics.algorithms"),
         FIELDS(distribution)},
        {"scaling", "growth with the input", REPORT_ROWS, ONE("status.scaling"), FIELDS(scaling)},
        {"recommendations", "recommendations", REPORT_ROWS, ONE("status.recommendations"),
         FIELDS(recommendations)},
};

/* ---- DynamoGraphDeploymentRequest */

static const struct report_field engine[] = {
        {"part", "part", REPORT_TEXT, "$part", NULL, NULL},
        {"mapping", "mapping", REPORT_TEXT, "label", NULL, NULL},
        {"gpus", "GPUs", REPORT_COUNT, "gpus", NULL, NULL},
        {"ttftMs", "TTFT", REPORT_MS, "ttft", NULL, NULL},
        {"itlMs", "ITL", REPORT_MS, "itl", NULL, NULL},
        {"targetMs", "target", REPORT_MS, "target", NULL, NULL},
        {"feasible", "meets it", REPORT_TRUTH, "feasible", NULL, NULL},
        {"throughputPerGpu", "tok/s/GPU", REPORT_NUMBER, "throughputPerGpu", NULL, NULL},
        {"concurrency", "requests at once", REPORT_COUNT, "concurrency", NULL, NULL},
        {"kvTokens", "KV tokens", REPORT_COUNT, "kvTokens", NULL, NULL},
        {"error", "error", REPORT_TEXT, "error", NULL, NULL},
};

static const struct report_field prefill_curve[] = {
        {"isl", "input length", REPORT_COUNT, "prefill_isl", NULL, NULL},
        {"ttftMs", "TTFT", REPORT_MS, "prefill_ttft", NULL, NULL},
        {"throughputPerGpu", "tok/s/GPU", REPORT_NUMBER, "prefill_thpt_per_gpu", NULL, NULL},
};

static const struct report_field decode_curve[] = {
        {"kvUsage", "KV use", REPORT_SHARE, "x_kv_usage", NULL, NULL},
        {"context", "context", REPORT_COUNT, "y_context_length", NULL, NULL},
        {"itlMs", "ITL", REPORT_MS, "z_itl", NULL, NULL},
        {"throughputPerGpu", "tok/s/GPU", REPORT_NUMBER, "z_thpt_per_gpu", NULL, NULL},
};

static const struct report_field dgdr_facts[] = {
        {"model", "model", REPORT_TEXT, "spec.model", NULL, NULL},
        {"backend", "backend", REPORT_TEXT, "status.backend", NULL, NULL},
        {"isl", "input length", REPORT_COUNT, "result.sla.isl", NULL, NULL},
        {"osl", "output length", REPORT_COUNT, "result.sla.osl", NULL, NULL},
        {"feasible", "meets the targets", REPORT_TRUTH, "result.feasible", NULL, NULL},
        {"prefillReplicas", "prefill engines", REPORT_COUNT, "result.replicas.prefill", NULL, NULL},
        {"decodeReplicas", "decode engines", REPORT_COUNT, "result.replicas.decode", NULL, NULL},
        {"gpus", "GPUs in all", REPORT_COUNT, "result.replicas.gpus", NULL, NULL},
        {"costPer1000Requests", "cost of 1000 requests ($)", REPORT_NUMBER, "result.costPer1000Requests",
         NULL, NULL},
        {"pointsMeasured", "points measured", REPORT_COUNT, "result.points.measured", NULL, NULL},
        {"pointsSaved", "points saved", REPORT_COUNT, "result.points.saved", NULL, NULL},
        {"deployment", "deployment", REPORT_TEXT, "status.generatedDeployment.metadata.name", NULL, NULL},
        {"deploymentState", "its state", REPORT_TEXT, "status.deployment.state", NULL, NULL},
};

static const struct report_section dgdr_sections[] = {
        {"chosen", "chosen", REPORT_ROWS, TWO("result.prefill", "result.decode"), FIELDS(engine)},
        {"sweep", "measured", REPORT_ROWS, TWO("result.sweep.prefill", "result.sweep.decode"),
         FIELDS(engine)},
        {"prefillCurve", "prefill by input length", REPORT_COLUMNS, ONE("result.prefillCurve"),
         FIELDS(prefill_curve)},
        {"decodeCurve", "decode by KV use and context", REPORT_COLUMNS, ONE("result.decodeCurve"),
         FIELDS(decode_curve)},
};

/* ---- CUDAExperiment, WorkloadProfile */

static const struct report_field figures[] = {
        {"name", "metric", REPORT_TEXT, NULL, NULL, NULL},
        {"value", "value", REPORT_NUMBER, NULL, NULL, NULL},
        {"unit", "unit", REPORT_TEXT, NULL, NULL, NULL},
};

static const struct report_field kernels[] = {
        {"kernel", "kernel", REPORT_TEXT, "kernel", NULL, NULL},
        {"launches", "launches", REPORT_COUNT, "launches", NULL, NULL},
        {"durationNs", "time", REPORT_NS, "durationNs", NULL, NULL},
        {"share", "share", REPORT_SHARE, "share", NULL, NULL},
        {"boundType", "bound", REPORT_TEXT, "boundType", NULL, NULL},
        {"bottleneck", "bottleneck", REPORT_TEXT, "bottleneck", NULL, NULL},
        {"smThroughput", "compute", REPORT_PERCENT, "metrics.smThroughput", NULL, NULL},
        {"memThroughput", "memory", REPORT_PERCENT, "metrics.memThroughput", NULL, NULL},
        {"achievedOccupancy", "occupancy", REPORT_PERCENT, "metrics.achievedOccupancy", NULL, NULL},
};

static const struct report_field nodes[] = {
        {"node", "node", REPORT_TEXT, "name", NULL, NULL},
        {"product", "GPU", REPORT_TEXT, "product", NULL, NULL},
        {"score", "score", REPORT_COUNT, "score", NULL, NULL},
};

#define PROFILE_FACTS                                                                                       \
        {"boundType", "bound", REPORT_TEXT, "profile.status.boundType", NULL, NULL},                        \
                {"bottleneck", "bottleneck", REPORT_TEXT, "profile.status.metrics.bottleneck", NULL, NULL}, \
                {"dominantKernel",                                                                          \
                 "longest kernel",                                                                          \
                 REPORT_TEXT,                                                                               \
                 "profile.status.metrics.dominantKernel",                                                   \
                 NULL,                                                                                      \
                 NULL},                                                                                     \
                {"device", "device", REPORT_TEXT, "profile.status.details.device", NULL, NULL},             \
                {"computeCapability",                                                                       \
                 "compute capability",                                                                      \
                 REPORT_TEXT,                                                                               \
                 "profile.status.details.computeCapability",                                                \
                 NULL,                                                                                      \
                 NULL},                                                                                     \
                {"profiledAt", "profiled at", REPORT_TEXT, "profile.status.profiledAt", NULL, NULL},        \
        {                                                                                                   \
                "placement", "placement", REPORT_TEXT, "profile.status.placement.reason", NULL, NULL        \
        }

static const struct report_field cuda_facts[] = {
        {"image", "image", REPORT_TEXT, "spec.image", NULL, NULL},
        {"profile", "profile", REPORT_TEXT, "status.profileName", NULL, NULL},
        PROFILE_FACTS,
        {"podsSucceeded", "pods that succeeded", REPORT_COUNT, "status.execution.succeeded", NULL, NULL},
        {"podsFailed", "pods that failed", REPORT_COUNT, "status.execution.failed", NULL, NULL},
};

static const struct report_field profile_facts[] = {
        {"image", "image", REPORT_TEXT, "spec.workloadImage", NULL, NULL},
        {"experiment", "experiment", REPORT_TEXT, "spec.sourceCudaExperiment", NULL, NULL},
        PROFILE_FACTS,
};

static const struct report_section profile_sections[] = {
        {"metrics", "metrics", REPORT_FIGURES, ONE(NULL), FIELDS(figures)},
        {"kernels", "kernels", REPORT_ROWS, ONE("profile.status.details.byKernel"), FIELDS(kernels)},
        {"nodes", "nodes that suit it", REPORT_ROWS, ONE("profile.status.placement.nodes"), FIELDS(nodes)},
};

/* ---- versus() */

static const struct report_field versus_facts[] = {
        {"summary", "verdict", REPORT_TEXT, "result.summary", NULL, NULL},
        {"noiseFloor", "noise floor", REPORT_SHARE, "result.noiseFloor", NULL, NULL},
};

static const struct report_field versus_runs[] = {
        {"run", "run", REPORT_TEXT, "name", NULL, NULL},
        {"algorithm", "algorithm", REPORT_TEXT, "algorithm", NULL, NULL},
        {"size", "size", REPORT_COUNT, "size", NULL, NULL},
        {"time", "time", REPORT_SECONDS, "time.median", "time.ciLow", "time.ciHigh"},
        {"memoryMb", "peak memory", REPORT_MB, "memory.median", "memory.ciLow", "memory.ciHigh"},
        {"accuracy", "accuracy", REPORT_NUMBER, "accuracy", NULL, NULL},
        {"runs", "runs", REPORT_COUNT, "n", NULL, NULL},
        {"failed", "failed", REPORT_COUNT, "invalid", NULL, NULL},
        {"machine", "machine", REPORT_TEXT, "machine.cpu", NULL, NULL},
        {"endedAt", "ended", REPORT_TEXT, "endedAt", NULL, NULL},
        {"origin", "values", REPORT_TEXT, "origin", NULL, NULL},
};

static const struct report_section versus_sections[] = {
        {"runs", "runs", REPORT_ROWS, ONE("result.runs"), FIELDS(versus_runs)},
        {"pairs", "one against the other", REPORT_ROWS, ONE("result.pairs"), FIELDS(pairs)},
        {"figures", "figures", REPORT_VALUES, ONE("result.figures"), NULL, 0},
};

const struct report_kind REPORT_VERSUS = {.facts = versus_facts,
                                          .n_facts = ARRAY_LEN(versus_facts),
                                          .sections = versus_sections,
                                          .n_sections = ARRAY_LEN(versus_sections),
                                          .notes = ONE("result.notes")};

/* ---- what the history keeps of any kind, when the object is gone */

static const struct report_field history_facts[] = {
        {"outcome", "outcome", REPORT_TEXT, "result.outcome", NULL, NULL},
        {"seconds", "took", REPORT_DURATION, "result.seconds", NULL, NULL},
        {"startedAt", "started", REPORT_TEXT, "result.startedAt", NULL, NULL},
        {"finishedAt", "ended", REPORT_TEXT, "result.finishedAt", NULL, NULL},
        {"attempt", "attempt", REPORT_COUNT, "result.attempt", NULL, NULL},
        {"uid", "uid", REPORT_TEXT, "result.uid", NULL, NULL},
        {"image", "image", REPORT_TEXT, "result.image", NULL, NULL},
        {"machine", "machine", REPORT_TEXT, "result.machine.cpu", NULL, NULL},
        {"labels", "labels", REPORT_TEXT, "result.labels", NULL, NULL},
};

static const struct report_field history_measures[] = {
        {"algorithm", "algorithm", REPORT_TEXT, "algorithm", NULL, NULL},
        {"size", "size", REPORT_COUNT, "inputSize", NULL, NULL},
        {"time", "time", REPORT_SECONDS, "seconds", "low", "high"},
        {"memoryBytes", "peak memory", REPORT_BYTES, "memoryBytes", NULL, NULL},
        {"cpuCores", "CPU cores", REPORT_NUMBER, "cpuCores", NULL, NULL},
        {"cost", "cost", REPORT_NUMBER, "cost", NULL, NULL},
        {"runs", "runs", REPORT_COUNT, "n", NULL, NULL},
};

static const struct report_field history_phases[] = {
        {"phase", "phase", REPORT_TEXT, "name", NULL, NULL},
        {"seconds", "took", REPORT_DURATION, "seconds", NULL, NULL},
        {"steps", "steps", REPORT_COUNT, "steps", NULL, NULL},
        {"totalSteps", "of", REPORT_COUNT, "totalSteps", NULL, NULL},
};

static const struct report_section history_sections[] = {
        {"results", "results", REPORT_ROWS, ONE("result.measures"), FIELDS(history_measures)},
        {"phases", "phases", REPORT_ROWS, ONE("result.phases"), FIELDS(history_phases)},
};

const struct report_kind REPORT_HISTORY = {.facts = history_facts,
                                           .n_facts = ARRAY_LEN(history_facts),
                                           .sections = history_sections,
                                           .n_sections = ARRAY_LEN(history_sections),
                                           .notes = ONE("result.notes")};

/* ---- all */

static const struct report_kind kinds[] = {
        {&ALGORITHMPROFILING, FIELDS(profiling_facts), FIELDS(profiling_sections),
         ONE("status.statistics.warnings")},
        {&ALGORITHMCOMPARISON, FIELDS(comparison_facts), FIELDS(comparison_sections),
         ONE("status.statistics.warnings")},
        {&DGDR, FIELDS(dgdr_facts), FIELDS(dgdr_sections), ONE("result.notes")},
        {&CUDAEXPERIMENT, FIELDS(cuda_facts), FIELDS(profile_sections),
         ONE("profile.status.details.warnings")},
        {&WORKLOADPROFILE, FIELDS(profile_facts), FIELDS(profile_sections),
         ONE("profile.status.details.warnings")},
};

const struct report_kind *report_kind(const struct kind *kind)
{
        static const struct report_kind none = {.type = NULL};

        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if (kinds[i].type == kind->type)
                        return &kinds[i];
        return &none;
}
