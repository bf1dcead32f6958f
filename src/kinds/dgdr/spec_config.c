/*
 * The profiler's own configuration (profilingConfig.config). It is free-form and the profiler's matter; here is what
 * upstream's would refuse, or run for an hour with and then fail. Keys are read in camelCase and in snake_case, as there.
 */
#include "kinds/dgdr/spec_internal.h"
#include "probe/probe.h"

#define CONFIG_PATH "spec.profilingConfig.config"

enum { CONFIG_TEXT_MAX = 100 * 1024 /* it is one argument of a command, of which Linux takes 128 KiB */ };

static const char *path_of(struct wrongs *w, const char *section, const char *key)
{
        return arena_printf(w->arena, CONFIG_PATH ".%s%s%s", section, key ? "." : "", key ? key : "");
}

/* SECTION.KEY in the spelling that is there, which is in *PATH; NULL: neither, or null. */
static const struct json *setting(struct wrongs *w, const struct json *config, const char *section,
                                  const char *key, const char **path)
{
        const struct json *value = sla_setting(w->arena, config, section, key, path);

        *path = arena_join(w->arena, CONFIG_PATH, ".", *path);
        return value;
}

/* ---- shape */

static void check_sections(struct wrongs *w, const struct json *config)
{
        static const char *const sections[] = {"sla",        "sweep",   "hardware", "engine",
                                               "deployment", "planner", "sonde"};

        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                const struct json *section = json_at(config, sections[i]);

                if (section && !json_is(section, JSON_OBJECT) && !json_is(section, JSON_NULL))
                        wrong(w, path_of(w, sections[i], NULL), "must be an object, not %s",
                              shown_json(w->arena, section));
        }
}

/* Which of the two a profiler takes is its own matter: nobody should depend on it. */
static void check_spelled_once(struct wrongs *w, const struct json *config)
{
        json_foreach (section, config)
                json_foreach (value, json_is(section, JSON_OBJECT) ? section : NULL) {
                        const char *snake = sla_snake_case(w->arena, value->key);
                        const struct json *other = streq(snake, value->key) ? NULL : json_at(section, snake);

                        if (other && !json_equal(value, other))
                                wrong(w, path_of(w, section->key, value->key),
                                      "differs from %s, which means the same, keep one of them",
                                      path_of(w, section->key, snake));
                }
}

/* ---- numbers */

struct number_rule {
        const char *section, *key, *unit;
        bool whole, may_be_zero;
};

static const struct number_rule NUMBERS[] = {
        {"sla", "isl", " of tokens", .whole = true},
        {"sla", "osl", " of tokens", .whole = true},
        {"sla", "ttft", " of milliseconds", .whole = false},
        {"sla", "itl", " of milliseconds", .whole = false},
        {"sweep", "prefillInterpolationGranularity", "", .whole = true},
        {"sweep", "decodeInterpolationGranularity", "", .whole = true},
        {"hardware", "minNumGpusPerEngine", " of GPUs", .whole = true, .may_be_zero = true},
        {"hardware", "maxNumGpusPerEngine", " of GPUs", .whole = true, .may_be_zero = true},
        {"hardware", "numGpusPerNode", " of GPUs", .whole = true, .may_be_zero = true},
        {"engine", "maxContextLength", " of tokens", .whole = true, .may_be_zero = true},
        {"deployment", "deploymentTimeout", " of seconds", .whole = false},
};

static bool number_fits(const struct number_rule *rule, const struct json *value)
{
        int64_t whole;
        double number;

        if (!json_is(value, JSON_NUMBER) || !json_to_double(value, &number))
                return false;
        if (rule->whole && !json_to_i64(value, &whole))
                return false;
        return rule->may_be_zero ? number >= 0 : number > 0;
}

static void check_numbers(struct wrongs *w, const struct json *config)
{
        for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
                const struct number_rule *rule = &NUMBERS[i];
                const char *path;
                const struct json *value = setting(w, config, rule->section, rule->key, &path);

                if (value && !number_fits(rule, value))
                        wrong(w, path, "must be a %snumber%s %s, not %s", rule->whole ? "whole " : "",
                              rule->unit, rule->may_be_zero ? "of 0 or more" : "above 0",
                              shown_json(w->arena, value));
        }
}

/* 0 means that the profiler finds it out. */
static void check_gpus(struct wrongs *w, const struct json *config)
{
        const char *min_path, *max_path;
        const struct json *min = setting(w, config, "hardware", "minNumGpusPerEngine", &min_path);
        const struct json *max = setting(w, config, "hardware", "maxNumGpusPerEngine", &max_path);
        int64_t least, most;

        if (json_to_i64(min, &least) && json_to_i64(max, &most) && most > 0 && least > most)
                wrong(w, min_path, "is %lld and more than %s, which is %lld", (long long)least, max_path,
                      (long long)most);
}

/* ---- what goes together */

static void check_configurator(struct wrongs *w, const struct json *config)
{
        const char *use_path, *system_path;
        const struct json *use = setting(w, config, "sweep", "useAiConfigurator", &use_path);
        const struct json *system = setting(w, config, "sweep", "aicSystem", &system_path);

        if (use && !json_is(use, JSON_BOOL)) {
                wrong(w, use_path, "must be true or false, not %s", shown_json(w->arena, use));
                return;
        }
        if (use && use->truth && (!json_cstr(system) || !*json_cstr(system)))
                wrong(w, system_path, "is missing, %s needs the system to estimate for, for example h200_sxm",
                      use_path);
}

static void check_agrees(struct wrongs *w, const struct json *config, const char *section, const char *key,
                         const char *said, const char *said_path)
{
        const char *path;
        const struct json *value = setting(w, config, section, key, &path);

        if (value && said && !streq(json_cstr(value), said))
                wrong(w, path, "is %s, but %s is %s, leave it out", shown_json(w->arena, value), said_path,
                      shown(w->arena, said));
}

/* Of Sonde's own profiler; another one may have a member of that name for itself. */
static void check_target(struct wrongs *w, const struct dgdr_spec *spec)
{
        static const char *const targets[] = {DGDR_TARGET_DGD, "sim", "endpoint"};
        const char *path;
        const struct json *target = setting(w, spec->config, "sonde", "target", &path);

        if (spec->image || !target)
                return;
        for (size_t i = 0; i < ARRAY_LEN(targets); i++)
                if (streq(json_cstr(target), targets[i]))
                        return;
        wrong(w, path, "must be dgd, sim or endpoint, not %s", shown_json(w->arena, target));
}

void check_config(struct wrongs *w, const struct dgdr_spec *spec)
{
        const struct json *config = spec->config;

        if (!config || !json_len(config)) {
                wrong(w, CONFIG_PATH,
                      "is missing or empty, say what to reach, for example {sla: {isl: 3000, osl: 500, ttft: "
                      "50, "
                      "itl: 10}}");
                return;
        }
        if (strlen(json_print(w->arena, config)) > CONFIG_TEXT_MAX)
                wrong(w, CONFIG_PATH,
                      "has more than %d KiB, which no command takes, move parts to a ConfigMap",
                      CONFIG_TEXT_MAX / 1024);
        check_sections(w, config);
        check_spelled_once(w, config);
        check_numbers(w, config);
        check_gpus(w, config);
        check_configurator(w, config);
        check_target(w, spec);
        check_agrees(w, config, "engine", "backend", spec->backend, "spec.backend");
        check_agrees(w, config, "deployment", "model", spec->model, "spec.model");
}
