/*
 * The profiler's configuration, in camelCase or snake_case, as upstream's profiler reads it, and ours beside it:
 *
 *   outputDir, useMocker
 *   deployment  namespace, model, deploymentTimeout (seconds), dgdImage (of every service),
 *               modelCache {pvcName, pvcPath, mountPath}: the model in a volume
 *   engine      backend, config (a file), maxContextLength, isMoeModel
 *   hardware    minNumGpusPerEngine, maxNumGpusPerEngine, numGpusPerNode, gpuVramMib (or vramMb), totalGpus
 *   sla         isl, osl, ttft, itl
 *   sweep       prefillInterpolationGranularity, decodeInterpolationGranularity, decodeInterpolationOsl, dryRun,
 *               search: grid or adaptive
 *   planner     maxGpuBudget, adjustmentInterval, minEndpoint, requestRate; all but the last is passed through
 *   modelShape  architecture, numKvHeads, numExperts, intermediateSize, quantBlock, maxContext, weightMib
 *
 * 0 GPUs and a context of 0 mean, as upstream, that the profiler finds them out. What modelShape does not say is read
 * from config.json and the weights when the model is a directory. Unknown members are nobody's mistake: there are profilers
 * with more of them.
 */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/sla/shape.h"

enum {
        WRONG_MAX = 900,
        SHOWN_MAX = 60,
        MODEL_CONFIG_MAX = 1 << 20,
        WEIGHT_FILES_MAX = 100000,
        TOKENS_MAX = 100000000,
        DEFAULT_BUDGET = 8,
        TIMEOUT_MAX = 7 * 24 * 3600,
        GRANULARITY_MAX = SLA_GRID_MAX / 4, /* a grid has at most twice as many points */
};

#define CACHE_MOUNT "/opt/model-cache"

/* ---- both spellings */

const char *sla_snake_case(struct arena *a, const char *camel)
{
        char *out = arena_alloc(a, 2 * strlen(camel) + 1), *p = out;

        for (; *camel; camel++) {
                bool upper = *camel >= 'A' && *camel <= 'Z';

                if (upper)
                        *p++ = '_';
                *p++ = upper ? (char)(*camel - 'A' + 'a') : *camel;
        }
        *p = '\0';
        return out;
}

static const struct json *either(struct arena *a, const struct json *object, const char *key,
                                 const char **spelling)
{
        const char *snake = sla_snake_case(a, key);
        const struct json *value = json_at(object, key), *other = value ? NULL : json_at(object, snake);

        *spelling = other ? snake : key;
        return other ? other : value;
}

const struct json *sla_setting(struct arena *a, const struct json *config, const char *section,
                               const char *key, const char **ret_path)
{
        const char *outer = NULL, *inner;
        const struct json *object = section ? either(a, config, section, &outer) : config,
                          *value = either(a, object, key, &inner);

        if (ret_path)
                *ret_path = outer ? arena_join(a, outer, ".", inner) : inner;
        return json_is(value, JSON_NULL) ? NULL : value;
}

/* ---- what is wrong */

/* All that is being read: the result, and what it is worked out from. */
struct reading {
        struct sla_config c;
        struct arena *arena;
        const struct json *in;
        struct buf wrong; /* sentences, joined by "; " */
        const char *search;
        double timeout, vram;
        unsigned total_gpus;
        bool moe, estimate, lengths_wrong, context_wrong;
};

static void wrong(struct reading *r, const char *path, const char *fmt, ...) _printf_(3, 4);
static void wrong(struct reading *r, const char *path, const char *fmt, ...)
{
        const char *what;
        va_list ap;

        va_start(ap, fmt);
        what = arena_vprintf(r->arena, fmt, ap);
        va_end(ap);
        buf_printf(&r->wrong, "%s%s: %s", r->wrong.n ? "; " : "", path, what);
}

/* A value of somebody's as JSON, which has no control characters, cut. */
static const char *shown(struct arena *a, const struct json *value)
{
        const char *text = json_print(a, value);
        size_t n = strlen(text), cut = utf8_cut(text, n, SHOWN_MAX);

        return cut == n ? text : arena_join(a, arena_strndup(a, text, cut), "...", "");
}

/* ---- members */

enum member_type { TEXT, COUNT /* uint64_t */, SMALL /* unsigned */, NUMBER, FLAG };

struct member {
        const char *section, *key, *alias; /* alias: another name of it */
        enum member_type type;
        size_t at; /* in struct reading */
        bool zero; /* or an empty text is allowed, and means that it was not said */
        double max, min;
};

#define AT(field) offsetof(struct reading, field)
static const struct member MEMBERS[] = {
        {NULL, "outputDir", .type = TEXT, .at = AT(c.output_dir)},
        {NULL, "useMocker", .type = FLAG, .at = AT(c.use_mocker)},
        {"deployment", "namespace", .type = TEXT, .at = AT(c.ns)},
        {"deployment", "model", .type = TEXT, .at = AT(c.model)},
        {"deployment", "dgdImage", .type = TEXT, .at = AT(c.image), .zero = true},
        {"deployment", "deploymentTimeout", .type = NUMBER, .at = AT(timeout), .max = TIMEOUT_MAX},
        {"engine", "backend", .type = TEXT, .at = AT(c.backend)},
        {"engine", "config", .type = TEXT, .at = AT(c.base_config)},
        {"engine", "maxContextLength", .type = COUNT, .at = AT(c.context), .zero = true, .max = TOKENS_MAX},
        {"engine", "isMoeModel", .type = FLAG, .at = AT(moe)},
        {"hardware", "minNumGpusPerEngine", .type = SMALL, .at = AT(c.min_gpus), .zero = true,
         .max = SLA_GPUS_MAX},
        {"hardware", "maxNumGpusPerEngine", .type = SMALL, .at = AT(c.max_gpus), .zero = true,
         .max = SLA_GPUS_MAX},
        {"hardware", "numGpusPerNode", .type = SMALL, .at = AT(c.gpus_per_node), .zero = true,
         .max = SLA_GPUS_MAX},
        {"hardware", "gpuVramMib", "vramMb", .type = NUMBER, .at = AT(vram), .zero = true, .max = 1e9},
        {"hardware", "totalGpus", .type = SMALL, .at = AT(total_gpus), .zero = true, .max = SLA_GPUS_MAX},
        {"sla", "isl", .type = COUNT, .at = AT(c.isl), .max = TOKENS_MAX},
        /* One token has no time between tokens. */
        {"sla", "osl", .type = COUNT, .at = AT(c.osl), .min = 2, .max = TOKENS_MAX},
        {"sla", "ttft", .type = NUMBER, .at = AT(c.ttft), .max = 1e9},
        {"sla", "itl", .type = NUMBER, .at = AT(c.itl), .max = 1e9},
        {"sweep", "prefillInterpolationGranularity", .type = SMALL, .at = AT(c.prefill_granularity),
         .max = GRANULARITY_MAX},
        {"sweep", "decodeInterpolationGranularity", .type = SMALL, .at = AT(c.decode_granularity),
         .max = GRANULARITY_MAX},
        /* The grid of input lengths leaves so much of the context. */
        {"sweep", "decodeInterpolationOsl", .type = COUNT, .at = AT(c.decode_osl), .min = 2,
         .max = SLA_DECODE_OSL},
        {"sweep", "dryRun", .type = FLAG, .at = AT(c.dry_run)},
        {"sweep", "search", .type = TEXT, .at = AT(search)},
        {"sweep", "useAiConfigurator", .type = FLAG, .at = AT(estimate)},
        {"planner", "maxGpuBudget", "plannerMaxGpuBudget", SMALL, AT(c.budget), .max = SLA_GPUS_MAX},
        {"planner", "minEndpoint", "plannerMinEndpoint", SMALL, AT(c.min_endpoint), .max = SLA_GPUS_MAX},
        {"planner", "adjustmentInterval", "plannerAdjustmentInterval", NUMBER, AT(c.interval), .max = 1e6},
        {"planner", "requestRate", .type = NUMBER, .at = AT(c.request_rate), .zero = true, .max = 1e9},
        {"modelShape", "architecture", .type = TEXT, .at = AT(c.shape.architecture)},
        {"modelShape", "numKvHeads", .type = COUNT, .at = AT(c.shape.kv_heads), .zero = true, .max = 1e9},
        {"modelShape", "numExperts", .type = COUNT, .at = AT(c.shape.experts), .zero = true, .max = 1e9},
        {"modelShape", "intermediateSize", .type = COUNT, .at = AT(c.shape.intermediate), .zero = true,
         .max = 1e9},
        {"modelShape", "quantBlock", .type = COUNT, .at = AT(c.shape.quant_block), .zero = true, .max = 1e9},
        {"modelShape", "maxContext", .type = COUNT, .at = AT(c.shape.max_context), .zero = true,
         .max = TOKENS_MAX},
        {"modelShape", "weightMib", .type = NUMBER, .at = AT(c.shape.weight_mib), .zero = true, .max = 1e12},
};
#undef AT

/* False: it was wrong, and has been told. */
static bool read_number(struct reading *r, const struct member *m, const char *path, const struct json *value)
{
        void *target = (char *)r + m->at;
        double number;
        int64_t whole = 0;
        bool is_whole = m->type != NUMBER;

        if (!json_is(value, JSON_NUMBER) || !json_to_double(value, &number) ||
            (is_whole && !json_to_i64(value, &whole)) || (m->zero ? number < 0 : number <= 0)) {
                wrong(r, path, "must be a %snumber %s, not %s", is_whole ? "whole " : "",
                      m->zero ? "of 0 or more" : "above 0", shown(r->arena, value));
                return false;
        }
        if (number < m->min) {
                wrong(r, path, "must be at least %.0f, not %s", m->min, shown(r->arena, value));
                return false;
        }
        if (number > m->max) {
                wrong(r, path, "must be at most %.0f, not %s", m->max, shown(r->arena, value));
                return false;
        }
        if (m->type == COUNT)
                *(uint64_t *)target = (uint64_t)whole;
        else if (m->type == SMALL)
                *(unsigned *)target = (unsigned)whole;
        else
                *(double *)target = number;
        return true;
}

static void read_member(struct reading *r, const struct member *m)
{
        const char *path;
        const struct json *value = sla_setting(r->arena, r->in, m->section, m->key, &path);
        void *target = (char *)r + m->at;

        if (!value && m->alias)
                value = sla_setting(r->arena, r->in, m->section, m->alias, &path);
        if (!value)
                return;
        if (m->type == FLAG) {
                if (json_is(value, JSON_BOOL))
                        *(bool *)target = value->truth;
                else
                        wrong(r, path, "must be true or false, not %s", shown(r->arena, value));
        } else if (m->type == TEXT) {
                const char *text = json_cstr(value);

                if (text && *text)
                        *(const char **)target = arena_strdup(r->arena, text);
                else if (!text || !m->zero)
                        wrong(r, path, "must be a text, not %s", shown(r->arena, value));
        } else {
                bool good = read_number(r, m, path, value);

                r->lengths_wrong = r->lengths_wrong || (!good && m->type == COUNT);
                r->context_wrong = r->context_wrong || (!good && target == &r->c.context);
        }
}

/* deployment.modelCache: one level deeper than the others. */
static void read_cache(struct reading *r)
{
        const struct {
                const char *key, **at;
        } members[] = {{"pvcName", &r->c.cache_claim},
                       {"pvcPath", &r->c.cache_path},
                       {"mountPath", &r->c.cache_mount}};
        const char *path, *inner;
        const struct json *cache = sla_setting(r->arena, r->in, "deployment", "modelCache", &path);

        if (cache && !json_is(cache, JSON_OBJECT)) {
                wrong(r, path, "must be an object, not %s", shown(r->arena, cache));
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                const struct json *value = sla_setting(r->arena, cache, NULL, members[i].key, &inner);
                const char *text = json_cstr(value);

                if (value && !text)
                        wrong(r, arena_join(r->arena, path, ".", inner), "must be a text, not %s",
                              shown(r->arena, value));
                else if (text && *text)
                        *members[i].at = arena_strdup(r->arena, text);
        }
        if (!r->c.cache_mount)
                r->c.cache_mount = CACHE_MOUNT;
        else if (r->c.cache_mount[0] != '/')
                wrong(r, arena_join(r->arena, path, ".", "mountPath"), "must begin with /, not %s",
                      shown(r->arena, json_string(r->arena, r->c.cache_mount)));
}

static bool said(const struct reading *r, const char *section, const char *key)
{
        return sla_setting(r->arena, r->in, section, key, NULL) != NULL;
}

/* ---- the model's files */

static double weights_in(const char *dir, const char *suffix)
{
        DIR *d = opendir(dir);
        struct dirent *entry;
        double bytes = 0;
        struct stat st;

        for (int i = 0; d && i < WEIGHT_FILES_MAX && (entry = readdir(d)); i++)
                if (str_has_suffix(str_of(entry->d_name), str_of(suffix)) &&
                    fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
                        bytes += (double)st.st_size;
        if (d)
                closedir(d);
        return bytes / (1 << 20);
}

/* What a model in a directory says of itself; a model that is a name on a hub says nothing here. */
static void read_files(struct reading *r, const char *dir)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MODEL_CONFIG_MAX);
        const char *path = arena_join(r->arena, dir, "/config.json", "");
        const struct json *config;
        struct err err = ERR_INIT;
        struct stat st;

        if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || access(path, F_OK) < 0)
                return;
        if (file_read(path, &text, &err) < 0 ||
            !(config = json_parse(r->arena, buf_str(&text), NULL, &err))) {
                wrong(r, "deployment.model", "%s cannot be read, %s", path, err.text);
                return;
        }
        sla_shape_read(config, r->arena, &r->c.shape);
        r->c.shape.weight_mib = weights_in(dir, ".safetensors");
        if (r->c.shape.weight_mib <= 0)
                r->c.shape.weight_mib = weights_in(dir, ".bin");
}

static void read_model(struct reading *r)
{
        const char *model = json_cstr(sla_setting(r->arena, r->in, "deployment", "model", NULL));

        if (model && *model)
                read_files(r, model);
}

/* ---- what goes together */

static void check_sections(struct reading *r)
{
        static const char *const sections[] = {"deployment", "engine",  "hardware",  "sla",
                                               "sweep",      "planner", "modelShape"};

        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                const char *path;
                const struct json *section = sla_setting(r->arena, r->in, NULL, sections[i], &path);

                if (section && !json_is(section, JSON_OBJECT))
                        wrong(r, path, "must be an object, not %s", shown(r->arena, section));
        }
}

static void settle_words(struct reading *r)
{
        static const char *const backends[] = {"vllm", "sglang", "trtllm"};
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(backends); i++)
                known = known || streq(r->c.backend, backends[i]);
        if (!known)
                wrong(r, "engine.backend", "must be vllm, sglang or trtllm, not %s",
                      shown(r->arena, json_string(r->arena, r->c.backend)));
        r->c.adaptive = streq(r->search, "adaptive");
        if (!r->c.adaptive && !streq(r->search, "grid"))
                wrong(r, "sweep.search", "must be grid or adaptive, not %s",
                      shown(r->arena, json_string(r->arena, r->search)));
        if (r->estimate)
                wrong(r, "sweep.useAiConfigurator",
                      "is not for this profiler, which measures and does not estimate, leave it out");
}

/* The shorter of what the user and what the model says. */
static void settle_context(struct reading *r)
{
        struct sla_config *c = &r->c;
        uint64_t grid[SLA_GRID_MAX], tokens = c->isl + c->osl;
        struct err err = ERR_INIT;
        size_t n;

        if (r->context_wrong)
                return;
        if (c->shape.max_context > TOKENS_MAX && !c->context) {
                wrong(r, "engine.maxContextLength",
                      "is missing, and the %llu tokens of the model's config.json are more than %d",
                      (unsigned long long)c->shape.max_context, TOKENS_MAX);
                return;
        }
        if (c->shape.max_context && (!c->context || c->shape.max_context < c->context))
                c->context = c->shape.max_context;
        if (!c->context)
                wrong(r, "engine.maxContextLength",
                      "is missing, and no config.json of the model is here to say it");
        else if (sla_prefill_isls(c->context, c->prefill_granularity, grid, &n, &err) < 0 ||
                 sla_decode_isls(c->context, c->decode_granularity, grid, &n, &err) < 0)
                wrong(r, "engine.maxContextLength", "%s", err.text);
        else if (tokens > c->context && !r->lengths_wrong)
                wrong(r, "sla.isl", "with sla.osl is %llu tokens, and the context has %llu",
                      (unsigned long long)tokens, (unsigned long long)c->context);
}

static void settle_gpus(struct reading *r)
{
        struct sla_config *c = &r->c;
        struct sla_candidate candidates[SLA_CANDIDATES_MAX];
        unsigned min, max;

        sla_gpu_range(&c->shape, r->vram, c->gpus_per_node, &min, &max);
        if (!c->gpus_per_node)
                c->gpus_per_node = 8;
        if (!c->max_gpus)
                c->max_gpus = MAX(max, c->min_gpus);
        if (!c->min_gpus)
                c->min_gpus = min;
        if (r->total_gpus && r->total_gpus < c->max_gpus)
                c->max_gpus = r->total_gpus;
        if (c->min_gpus > c->max_gpus)
                wrong(r, "hardware", "an engine needs %u GPUs and may have %u", c->min_gpus, c->max_gpus);
        else if (!sla_candidates(&c->shape, c->min_gpus, c->max_gpus, candidates))
                wrong(r, "hardware", "no power of two from %u to %u GPUs fits the model's shape", c->min_gpus,
                      c->max_gpus);
        else if (c->budget_said && 2ULL * c->min_endpoint * candidates[0].gpus > c->budget)
                wrong(r, "planner.maxGpuBudget",
                      "is %u, and the smallest engines for prefill and decode, %u of each, need %llu GPUs",
                      c->budget, c->min_endpoint, 2ULL * c->min_endpoint * candidates[0].gpus);
}

static void settle(struct reading *r)
{
        struct sla_config *c = &r->c;

        c->shape.moe = said(r, "engine", "isMoeModel") ? r->moe : shape_is_moe(c->shape.architecture);
        c->deploy_timeout = (usec_t)(r->timeout * (double)USEC_PER_SEC);
        if (!c->budget)
                c->budget = r->total_gpus;
        c->budget_said = c->budget > 0;
        if (!c->budget_said)
                c->budget = DEFAULT_BUDGET;
        settle_words(r);
        settle_context(r);
        settle_gpus(r);
}

int sla_config_parse(struct arena *a, const struct json *config, struct sla_config *ret, struct err *err)
{
        const struct json *planner = sla_setting(a, config, NULL, "planner", NULL);
        struct reading r = {
                .arena = a,
                .in = config,
                .wrong = BUF_INIT(WRONG_MAX),
                .search = "grid",
                .timeout = 1800,
                .c = {.raw = config,
                      .backend = "vllm",
                      .ns = "dynamo-sla-profiler",
                      .isl = 3000,
                      .osl = 500,
                      .ttft = 50,
                      .itl = 10,
                      .prefill_granularity = SLA_PREFILL_GRANULARITY,
                      .decode_granularity = SLA_DECODE_GRANULARITY,
                      .decode_osl = SLA_DECODE_OSL,
                      .min_endpoint = 1,
                      .interval = 180,
                      .planner = json_is(planner, JSON_OBJECT) ? planner : NULL},
        };
        int code = 0;

        if (!json_is(config, JSON_OBJECT))
                return err_set(err, E_CONFIG, "the configuration must be an object, not %s",
                               config ? shown(a, config) : "missing");
        read_model(&r);
        check_sections(&r);
        for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
                read_member(&r, &MEMBERS[i]);
        read_cache(&r);
        settle(&r);
        if (r.wrong.n || r.wrong.overflow)
                code = err_set(err, E_CONFIG, "%.*s%s", STR_ARG(buf_str(&r.wrong)),
                               r.wrong.overflow ? "; and more" : "");
        else
                *ret = r.c;
        buf_done(&r.wrong);
        return code;
}

int sla_config_check(const struct sla_config *c, struct err *err)
{
        return c->model
                       ? 0
                       : err_set(err, E_CONFIG,
                                 "deployment.model: is missing, say which model is served, or its directory");
}
