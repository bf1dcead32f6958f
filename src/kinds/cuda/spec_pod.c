/*
 * What becomes part of the pods (environment, volumes, files, resources): what the API server would refuse in a Job, where
 * nobody would look for it, and what would be in the way of Sonde's own.
 */
#include "kinds/cuda/spec_internal.h"

static const char *at(struct wrongs *w, const char *list, size_t i, const char *member)
{
        return arena_printf(w->arena, "spec.%s[%zu]%s%s", list, i, *member ? "." : "", member);
}

/* How many of the members OF has. */
static size_t count_members(const struct json *of, const char *const *members)
{
        size_t n = 0;

        for (; *members; members++)
                n += json_is(json_at(of, *members), JSON_OBJECT);
        return n;
}

/* ---- environment */

static void check_variable(struct wrongs *w, const struct json *variable, size_t i)
{
        static const char *const sources[] = {"configMapKeyRef", "secretKeyRef", "fieldRef",
                                              "resourceFieldRef", NULL};
        const struct json *value = json_at(variable, "value"), *from = json_at(variable, "valueFrom");
        struct str name = json_text(json_at(variable, "name"));

        if (!name_of_variable(name))
                wrong(w, at(w, "env", i, "name"), "%s is no name of a variable",
                      shown_json(w->arena, json_at(variable, "name")));
        else if (str_eq(name, STR("SONDE_RUN_DIR")))
                wrong(w, at(w, "env", i, "name"), "%s is Sonde's own, take another name",
                      shown_json(w->arena, json_at(variable, "name")));
        if (value && !json_cstr(value))
                wrong(w, at(w, "env", i, "value"), "must be a text, not %s", shown_json(w->arena, value));
        if (from && count_members(from, sources) != 1)
                wrong(w, at(w, "env", i, "valueFrom"),
                      "must have exactly one of configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef");
        else if (from && json_text(value).n)
                wrong(w, at(w, "env", i, ""), "has both value and valueFrom, keep one of them");
}

/* ---- paths */

/* Mounted by one of the first N volumes. */
static bool is_mounted(const struct json *volumes, size_t n, const char *path)
{
        json_foreach (volume, volumes) {
                if (!n--)
                        break;
                if (path && streq(json_str(volume, "mountPath"), path))
                        return true;
        }
        return false;
}

/* ---- volumes */

static bool is_taken(const struct json *volumes, size_t n, const char *name)
{
        static const char *const ours[] = {"run", "sonde", "sonde-token", "sonde-data", "workload"};

        for (size_t i = 0; i < ARRAY_LEN(ours); i++)
                if (streq(name, ours[i]))
                        return true;
        json_foreach (volume, volumes) {
                if (!n--)
                        break;
                if (streq(json_str(volume, "name"), name))
                        return true;
        }
        return false;
}

static void check_volume(struct wrongs *w, const struct json *volumes, const struct json *volume, size_t i)
{
        static const char *const sources[] = {"persistentVolumeClaim", "configMap", "emptyDir", NULL};
        const char *name = json_str(volume, "name"), *path = json_str(volume, "mountPath");
        const char *sub = json_str(volume, "subPath"), *fault = mount_path_fault(path, true);

        if (!name || !name_valid(NAME_LABEL, str_of(name)))
                wrong(w, at(w, "volumes", i, "name"), "%s is no name of a volume",
                      shown_json(w->arena, json_at(volume, "name")));
        else if (is_taken(volumes, i, name))
                wrong(w, at(w, "volumes", i, "name"), "%s is taken, take another name",
                      shown(w->arena, name));
        if (fault)
                wrong(w, at(w, "volumes", i, "mountPath"), "%s %s",
                      shown_json(w->arena, json_at(volume, "mountPath")), fault);
        else if (is_mounted(volumes, i, path))
                wrong(w, at(w, "volumes", i, "mountPath"), "%s is there twice", shown(w->arena, path));
        if (sub && (*sub == '/' || path_goes_up(sub)))
                wrong(w, at(w, "volumes", i, "subPath"), "%s must be a path within the volume",
                      shown(w->arena, sub));
        if (count_members(volume, sources) != 1)
                wrong(w, at(w, "volumes", i, ""),
                      "must have exactly one of persistentVolumeClaim, configMap and emptyDir");
}

/* ---- files and resources */

static void check_file(struct wrongs *w, const struct cuda_spec *spec, const struct json *file, size_t i)
{
        const char *path = json_cstr(file), *fault = mount_path_fault(path, true);
        size_t n = i;

        if (!fault && is_mounted(spec->volumes, SIZE_MAX, path))
                fault = "is the mountPath of a volume, which is there anyway";
        json_foreach (before, spec->files) {
                if (!n--)
                        break;
                if (!fault && streq(json_cstr(before), path))
                        fault = "is there twice";
        }
        if (fault)
                wrong(w, at(w, "profiling.files", i, ""), "%s %s", shown_json(w->arena, file), fault);
}

static void check_gpus_once(struct wrongs *w, const struct json *resources, const char *which)
{
        if (json_at(json_at(resources, which), CUDA_GPU_RESOURCE))
                wrong(w, arena_join(w->arena, "spec.resources.", which, ""),
                      CUDA_GPU_RESOURCE " is said by spec.gpuRequired or spec.numberOfGPUs, leave it out");
}

void check_pod_parts(struct wrongs *w, const struct cuda_spec *spec)
{
        size_t i = 0;

        json_foreach (variable, spec->env)
                check_variable(w, variable, i++);
        i = 0;
        json_foreach (volume, spec->volumes)
                check_volume(w, spec->volumes, volume, i++);
        i = 0;
        json_foreach (file, spec->files)
                check_file(w, spec, file, i++);
        check_resources(w, "spec.resources", spec->resources);
        check_gpus_once(w, spec->resources, "requests");
        check_gpus_once(w, spec->resources, "limits");
}
