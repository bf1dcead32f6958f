/*
 * What becomes part of the profiler's pod (resources, tolerations, node selector), and labels and annotations: what the API
 * server would refuse in the Job, where nobody would look for it.
 */
#include "kinds/dgdr/spec_internal.h"

#define POD_PATH "spec.profilingConfig"

enum { ANNOTATIONS_MAX = 256 * 1024 };

/* ---- labels and annotations */

void spec_check_labels(struct wrongs *w, const char *path, const struct json *labels)
{
        json_foreach (label, labels) {
                if (!is_qualified_name(label->key))
                        wrong(w, wrong_entry(w, path, label->key),
                              "is no name of a label: letters, digits, '-', '_' and '.', at most 63, after "
                              "an "
                              "optional domain and '/'");
                if (!json_cstr(label) || !name_valid(NAME_LABEL_VALUE, str_of(json_cstr(label))))
                        wrong(w, wrong_entry(w, path, label->key),
                              "%s is no value of a label: letters, digits, '-', '_' and '.', at most 63",
                              shown_json(w->arena, label));
        }
}

/* The domain of an annotation may be in upper case. */
static const char *lower(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);

        for (char *p = copy; *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char)(*p - 'A' + 'a');
        return copy;
}

void check_annotations(struct wrongs *w, const char *path, const struct json *annotations)
{
        size_t total = 0;

        json_foreach (annotation, annotations) {
                if (!is_qualified_name(lower(w->arena, annotation->key)))
                        wrong(w, wrong_entry(w, path, annotation->key),
                              "is no name of an annotation: letters, digits, '-', '_' and '.', at most 63, "
                              "after "
                              "an optional domain and '/'");
                if (!json_is(annotation, JSON_STRING))
                        wrong(w, wrong_entry(w, path, annotation->key), "must be a text, not %s",
                              shown_json(w->arena, annotation));
                total += annotation->key_len + json_text(annotation).n;
        }
        if (total > ANNOTATIONS_MAX)
                wrong(w, path, "have %zu bytes, an object takes %d", total, (int)ANNOTATIONS_MAX);
}

/* ---- tolerations */

static bool is_one_of(const char *text, const char *const *list)
{
        for (; *list; list++)
                if (streq(text, *list))
                        return true;
        return false;
}

static const char *toleration_fault(struct wrongs *w, const struct json *t)
{
        static const char *const operators[] = {"", "Equal", "Exists", NULL};
        static const char *const effects[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
        const char *op = json_str_or(t, "operator", ""), *key = json_str_or(t, "key", "");
        const char *value = json_str_or(t, "value", ""), *effect = json_str_or(t, "effect", "");

        if (!is_one_of(op, operators))
                return arena_printf(w->arena, "operator must be Exists or Equal, not %s",
                                    shown(w->arena, op));
        if (!is_one_of(effect, effects))
                return arena_printf(w->arena,
                                    "effect must be NoSchedule, PreferNoSchedule or NoExecute, not %s",
                                    shown(w->arena, effect));
        if (*key && !is_qualified_name(key))
                return arena_printf(w->arena, "key %s is no name of a taint", shown(w->arena, key));
        if (!*key && !streq(op, "Exists"))
                return "a toleration without a key needs operator Exists";
        if (*value && streq(op, "Exists"))
                return "operator Exists takes no value, leave it out or use Equal";
        if (!name_valid(NAME_LABEL_VALUE, str_of(value)))
                return arena_printf(w->arena, "value %s is no value of a taint", shown(w->arena, value));
        if (json_at(t, "tolerationSeconds") && !streq(effect, "NoExecute"))
                return "tolerationSeconds goes with effect NoExecute only";
        return NULL;
}

static void check_tolerations(struct wrongs *w, const struct json *tolerations)
{
        size_t i = 0;

        json_foreach (toleration, tolerations) {
                const char *fault = toleration_fault(w, toleration);

                if (fault)
                        wrong(w, arena_printf(w->arena, POD_PATH ".tolerations[%zu]", i), "%s", fault);
                i++;
        }
}

void check_pod(struct wrongs *w, const struct dgdr_spec *spec)
{
        check_resources(w, POD_PATH ".resources", spec->resources);
        check_tolerations(w, spec->tolerations);
        spec_check_labels(w, POD_PATH ".nodeSelector", spec->node_selector);
}
