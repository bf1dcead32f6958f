/*
 * What is wrong with an algorithm: of its type, its name, its parameters.
 */
#include "kinds/algorithm/spec_internal.h"

#include "probe/algorithm/algorithm.h"
#include "probe/ml/ml.h"

static const char *at(struct wrongs *w, const struct algorithm_entry *e, const char *member)
{
        return arena_join(w->arena, e->path, ".", member);
}

/* A sentence of somebody else's, for a list in which "; " is between two. */
static const char *sentence(struct wrongs *w, const char *text)
{
        char *copy = arena_strdup(w->arena, text);

        for (char *p = copy; *p; p++)
                if (*p == ';')
                        *p = ',';
        return copy;
}

static bool has_control(const char *text)
{
        for (; *text; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7F)
                        return true;
        return false;
}

static void check_name(struct wrongs *w, const struct algorithm_spec *spec, size_t i)
{
        const struct algorithm_entry *e = &spec->entries[i];
        const char *path = at(w, e, spec->comparison ? "name" : "algorithmName");

        if (!*e->name)
                wrong(w, path, "is missing, name the algorithm");
        else if (strlen(e->name) > SESSION_NAME_MAX)
                wrong(w, path, "has more than %d bytes", SESSION_NAME_MAX);
        else if (has_control(e->name))
                wrong(w, path, "%s has a control character in it", shown(w->arena, e->name));
        for (size_t k = 0; k < i; k++)
                if (*e->name && streq(spec->entries[k].name, e->name)) {
                        wrong(w, path,
                              "%s is there twice, take another name (of a sorting algorithm "
                              "parameters.algorithm "
                              "then says which one it is)",
                              shown(w->arena, e->name));
                        return;
                }
}

static void check_type(struct wrongs *w, const struct algorithm_spec *spec, const struct algorithm_entry *e)
{
        static const struct {
                const char *member;
                enum algorithm_type type;
        } parts[] = {
                {"mlConfig", ALGORITHM_ML}, {"framework", ALGORITHM_ML}, {"customConfig", ALGORITHM_CUSTOM}};
        const char *member = spec->comparison ? "type" : "algorithmType", *type = json_str(e->json, member);
        const struct json *parameters = json_at(e->json, "parameters");

        if (type && !streq(type, algorithm_type_name(e->type)))
                wrong(w, at(w, e, member), "must be sorting, ml or custom, not %s", shown(w->arena, type));
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                if (json_at(e->json, parts[i].member) && e->type != parts[i].type)
                        wrong(w, at(w, e, parts[i].member), "has a meaning with %s %s only, leave it out",
                              member, algorithm_type_name(parts[i].type));
        if (parameters && !json_is(parameters, JSON_OBJECT) && !json_is(parameters, JSON_NULL))
                wrong(w, at(w, e, "parameters"), "must be an object, not %s",
                      shown_json(w->arena, parameters));
}

static void check_sorting(struct wrongs *w, const struct algorithm_spec *spec,
                          const struct algorithm_entry *e)
{
        struct json *parameters = json_copy(w->arena, e->parameters);
        bool named = json_at(parameters, "algorithm");
        const char *path = named ? "parameters.algorithm" : spec->comparison ? "name" : "algorithmName";
        struct err err = ERR_INIT;

        if (!*e->sorting)
                return;
        if (named)
                json_remove(parameters, "algorithm");
        if (algorithm_check(e->sorting, NULL, &err) < 0)
                wrong(w, at(w, e, path), "%s", sentence(w, err.text));
        else if (algorithm_check(e->sorting, parameters, &err) < 0)
                wrong(w, at(w, e, "parameters"), "%s", sentence(w, err.text));
}

static void check_ml(struct wrongs *w, const struct algorithm_spec *spec, const struct algorithm_entry *e)
{
        const struct json *ml = json_at(e->json, "mlConfig");
        const char *outer = json_str(e->json, "framework"), *inner = json_str(ml, "framework");
        const char *model = e->model ? e->model : json_str(e->parameters, "algorithm");
        struct err err = ERR_INIT;

        if (outer && inner && !streq(outer, inner))
                wrong(w, at(w, e, "mlConfig.framework"), "is %s and framework %s, leave one of them out",
                      shown(w->arena, inner), shown(w->arena, outer));
        if (ml_check(e->framework, e->task, model, &err) < 0)
                wrong(w, at(w, e, "mlConfig"), "%s", sentence(w, err.text));
        check_whole(w, ml, at(w, e, "mlConfig"), "datasetSize", 1, 1000000000);
        if (spec->n_sizes > 1 && json_int(ml, "datasetSize", 0) > 0)
                wrong(w, at(w, e, "mlConfig.datasetSize"),
                      "makes the data the same at every size, leave it out where there are inputSizes");
        check_whole(w, ml, at(w, e, "mlConfig"), "nFeatures", 1, 1000000);
        check_whole(w, ml, at(w, e, "mlConfig"), "nSelect", 1, 1000000);
}

/* The probe counts with them. */
static void check_counted(struct wrongs *w, const char *path, const struct json *amounts)
{
        static const char *const names[] = {"cpu", "memory"};

        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const struct json *value = json_at(amounts, names[i]);
                double amount;

                if (value && amount_of(value, &amount) && amount > SESSION_NUMBER_MAX)
                        wrong(w, wrong_entry(w, path, names[i]), "%s is more than %g, which no node has",
                              shown_json(w->arena, value), SESSION_NUMBER_MAX);
        }
}

void check_room(struct wrongs *w, const char *path, const struct json *resources)
{
        check_resources(w, path, resources);
        check_counted(w, arena_join(w->arena, path, ".", "requests"), json_at(resources, "requests"));
        check_counted(w, arena_join(w->arena, path, ".", "limits"), json_at(resources, "limits"));
}

void check_entry(struct wrongs *w, const struct algorithm_spec *spec, size_t i)
{
        const struct algorithm_entry *e = &spec->entries[i];

        check_name(w, spec, i);
        check_type(w, spec, e);
        if (e->type == ALGORITHM_SORTING)
                check_sorting(w, spec, e);
        else if (e->type == ALGORITHM_ML)
                check_ml(w, spec, e);
        else
                check_custom(w, e);
        check_room(w, at(w, e, "resources"), json_at(e->json, "resources"));
}
