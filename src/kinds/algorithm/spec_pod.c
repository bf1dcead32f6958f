/*
 * What is wrong with what a custom algorithm's container is made of: what the API server would refuse in a Job, where nobody
 * would look for it, and what would be in the way of Sonde's own.
 */
#include "kinds/algorithm/spec_internal.h"

static const char *at(struct wrongs *w, const struct algorithm_entry *e, const char *member)
{
        return arena_printf(w->arena, "%s.customConfig.%s", e->path, member);
}

static const char *at_element(struct wrongs *w, const struct algorithm_entry *e, const char *list, size_t i,
                              const char *member)
{
        return arena_printf(w->arena, "%s.customConfig.%s[%zu]%s%s", e->path, list, i, *member ? "." : "",
                            member);
}

/* ---- the program */

static void check_texts(struct wrongs *w, const struct algorithm_entry *e, const char *member)
{
        const struct json *list = json_at(json_at(e->json, "customConfig"), member);

        if (list && !json_is(list, JSON_ARRAY) && !json_is(list, JSON_NULL)) {
                wrong(w, at(w, e, member), "must be a list of texts, not %s", shown_json(w->arena, list));
                return;
        }
        json_foreach (word, list)
                if (!json_cstr(word)) {
                        wrong(w, at(w, e, member), "must be a list of texts, not %s",
                              shown_json(w->arena, word));
                        return;
                }
}

static void check_program(struct wrongs *w, const struct algorithm_entry *e)
{
        if (!e->image)
                wrong(w, at(w, e, "image"), "is missing, name the image that has the program");
        else if (strpbrk(e->image, " \t\r\n"))
                wrong(w, at(w, e, "image"), "%s has a blank in it, an image's name has none",
                      shown(w->arena, e->image));
        check_texts(w, e, "command");
        check_texts(w, e, "args");
        if (!e->command)
                wrong(w, at(w, e, "command"),
                      "is missing: the image's entrypoint cannot be seen; set customConfig.command");
        else if (streq(json_cstr(json_first(e->command)), ""))
                wrong(w, at(w, e, "command"), "begins with an empty text, name a program there");
}

static void check_variable(struct wrongs *w, const struct algorithm_entry *e, const struct json *variable,
                           size_t i)
{
        const struct json *name = json_at(variable, "name"), *value = json_at(variable, "value");

        if (!name_of_variable(json_text(name)))
                wrong(w, at_element(w, e, "env", i, "name"), "%s is no name of a variable",
                      shown_json(w->arena, name));
        else if (str_has_prefix(json_text(name), STR("SONDE_")))
                wrong(w, at_element(w, e, "env", i, "name"), "%s is Sonde's own, take another name",
                      shown_json(w->arena, name));
        if (value && !json_cstr(value))
                wrong(w, at_element(w, e, "env", i, "value"), "must be a text, not %s",
                      shown_json(w->arena, value));
        if (json_at(variable, "valueFrom")) /* without it the program would see an empty text */
                wrong(w, at_element(w, e, "env", i, "valueFrom"), "is not allowed, say its value");
}

/* ---- volumes */

static bool is_taken(const struct json *volumes, size_t n, const char *member, const char *value)
{
        static const char *const ours[] = {"run", "sonde", "sonde-token", "sonde-data"};

        for (size_t i = 0; streq(member, "name") && i < ARRAY_LEN(ours); i++)
                if (streq(value, ours[i]))
                        return true;
        json_foreach (volume, volumes) {
                if (!n--)
                        break;
                if (streq(json_str(volume, member), value))
                        return true;
        }
        return false;
}

/* Exactly one of three; any other kind of volume is told by its name. */
static void check_source(struct wrongs *w, const struct algorithm_entry *e, const struct json *volume,
                         size_t i)
{
        static const char *const sources[] = {"persistentVolumeClaim", "configMap", "emptyDir"};
        static const char *const others[] = {"name", "mountPath", "subPath", "readOnly"};
        size_t n = 0, told = 0;

        json_foreach (member, volume) {
                bool source = false, known = false;

                for (size_t k = 0; k < ARRAY_LEN(sources); k++)
                        source = source || streq(member->key, sources[k]);
                for (size_t k = 0; k < ARRAY_LEN(others); k++)
                        known = known || streq(member->key, others[k]);
                n += source && json_is(member, JSON_OBJECT);
                if (source || known)
                        continue;
                told++;
                wrong(w, wrong_entry(w, at_element(w, e, "volumes", i, ""), member->key),
                      "is not allowed, use persistentVolumeClaim, configMap or emptyDir");
        }
        if (n > 1 || (n == 0 && told == 0))
                wrong(w, at_element(w, e, "volumes", i, ""),
                      "must have exactly one of persistentVolumeClaim, configMap and emptyDir");
}

static void check_volume(struct wrongs *w, const struct algorithm_entry *e, const struct json *volume,
                         size_t i)
{
        const char *name = json_str(volume, "name"), *path = json_str(volume, "mountPath");
        const char *sub = json_str(volume, "subPath"), *fault = mount_path_fault(path, false);

        if (!json_at(volume, "name"))
                wrong(w, at_element(w, e, "volumes", i, "name"), "is missing, name the volume");
        else if (!name || !name_valid(NAME_LABEL, str_of(name)))
                wrong(w, at_element(w, e, "volumes", i, "name"), "%s is no name of a volume",
                      shown_json(w->arena, json_at(volume, "name")));
        else if (is_taken(e->volumes, i, "name", name))
                wrong(w, at_element(w, e, "volumes", i, "name"), "%s is taken, take another name",
                      shown(w->arena, name));
        if (!json_at(volume, "mountPath"))
                wrong(w, at_element(w, e, "volumes", i, "mountPath"),
                      "is missing, say where the program sees the volume");
        else if (fault)
                wrong(w, at_element(w, e, "volumes", i, "mountPath"), "%s %s",
                      shown_json(w->arena, json_at(volume, "mountPath")), fault);
        else if (is_taken(e->volumes, i, "mountPath", path))
                wrong(w, at_element(w, e, "volumes", i, "mountPath"), "%s is there twice",
                      shown(w->arena, path));
        if (sub && (*sub == '/' || path_goes_up(sub)))
                wrong(w, at_element(w, e, "volumes", i, "subPath"), "%s must be a path within the volume",
                      shown(w->arena, sub));
        check_source(w, e, volume, i);
}

void check_custom(struct wrongs *w, const struct algorithm_entry *e)
{
        size_t i = 0;

        check_program(w, e);
        json_foreach (variable, e->env)
                check_variable(w, e, variable, i++);
        i = 0;
        json_foreach (volume, e->volumes)
                check_volume(w, e, volume, i++);
}
