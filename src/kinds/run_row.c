/*
 * What the history is told of a run of any kind.
 */
#include "kinds/run_internal.h"

/* Those of Kubernetes' own and of Sonde's are said by whoever they belong to. */
static bool is_systems(const char *key)
{
        static const char *const domains[] = {"kubernetes.io", "k8s.io", "sonde.dev"};
        struct str rest = str_of(key), prefix = str_split(&rest, '/');

        for (size_t i = 0; rest.p && i < ARRAY_LEN(domains); i++) {
                struct str domain = str_of(domains[i]);

                if (str_eq(prefix, domain) ||
                    (str_has_suffix(prefix, domain) && prefix.p[prefix.n - domain.n - 1] == '.'))
                        return true;
        }
        return false;
}

struct json *run_labels(const struct view *v)
{
        struct json *labels = json_object(v->arena);

        json_foreach (label, json_at(json_at(v->request, "metadata"), "labels"))
                if (!is_systems(label->key))
                        json_set(v->arena, labels, label->key, json_copy(v->arena, label));
        return labels;
}

const struct history_row *run_row(const struct view *v, const struct run_seen *seen, const char *shape)
{
        struct history_row *row = arena_new(v->arena, struct history_row);
        const struct json *labels = run_labels(v);
        usec_t began = seen->has_track ? seen->track.started : 0;
        /* The node's clock, or whoever writes the ConfigMap, may say anything. */
        usec_t finished = MIN(seen->finished ? seen->finished : v->now, v->now);

        *row = (struct history_row){
                .uid = meta_str(v->request, "uid"),
                .attempt = seen->attempt,
                .kind = v->type->kind,
                .ns = meta_str(v->request, "namespace"),
                .name = meta_str(v->request, "name"),
                .shape = shape ? shape : "",
                .outcome = seen->life == RUN_LIFE_SUCCEEDED ? "Succeeded" : "Failed",
                .started = MIN(seen->started ? seen->started : began, finished),
                .finished = finished,
                .track = seen->has_track ? arena_memdup(v->arena, &seen->track, sizeof(seen->track)) : NULL,
                .labels = json_len(labels) ? json_print(v->arena, labels) : NULL,
                .image = seen->pod ? run_pod_image(v->arena, seen->pod->json, NULL) : NULL,
                .spec_hash = json_str(json_at(json_at(v->request, "status"), "run"), "specHash"),
        };
        return row;
}
