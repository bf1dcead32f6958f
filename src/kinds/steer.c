#include "kinds/steer.h"

static const struct {
        const char *word, *member;
        bool value;
} actions[] = {
        [STEER_CANCEL] = {"cancel", "cancel", true},
        [STEER_SUSPEND] = {"suspend", "suspend", true},
        [STEER_RESUME] = {"resume", "suspend", false},
};

int steer_named(const char *word)
{
        for (size_t i = 0; i < ARRAY_LEN(actions); i++)
                if (streq(word, actions[i].word))
                        return (int)i;
        return -1;
}

struct json *steer_patch(enum steer what, const struct json *object, struct arena *a)
{
        const struct json *spec = json_at(object, "spec"), *schedule = json_at(spec, "schedule");
        const char *member = actions[what].member;
        bool value = actions[what].value, in_schedule = json_bool(schedule, member, false);
        struct json *patch;

        if (json_bool(spec, member, false) == value && (value || !in_schedule))
                return NULL;
        patch = json_build(a, "{'spec': {'%s': %p}}", member, (void *)json_truth(a, value));
        /* A template can be suspended in two places, and goes on when neither says so. */
        if (!value && in_schedule)
                json_set(a, json_at(patch, "spec"), "schedule", json_build(a, "{'%s': false}", member));
        return patch;
}

/* Without what is about the object that it was, or belongs to others. */
static struct json *kept_of(const struct json *map, struct arena *a)
{
        static const char *const dropped[] = {"kubectl.kubernetes.io/", "sonde.dev/"};
        struct json *kept = json_object(a);

        json_foreach (one, map) {
                bool drop = false;

                for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
                        drop = drop || str_has_prefix(str_n(one->key, one->key_len), str_of(dropped[i]));
                if (!drop)
                        json_setn(a, kept, str_n(one->key, one->key_len), json_copy(a, one));
        }
        return kept;
}

struct json *steer_again(const struct kind *kind, const struct json *object, const char *name,
                         struct arena *a)
{
        static const char *const members[] = {"cancel", "suspend", "schedule"};
        const struct json *meta = json_at(object, "metadata");
        struct json *spec = json_copy(a, json_at(object, "spec"));
        struct json *labels = kept_of(json_at(meta, "labels"), a);
        struct json *annotations = kept_of(json_at(meta, "annotations"), a);

        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                json_remove(spec, members[i]);
        json_set(a, annotations, "sonde.dev/rerun-of", json_string(a, json_str(meta, "name")));
        return json_build(a,
                          "{'apiVersion': %s, 'kind': %s, 'metadata': {'name': %s, 'labels': %p, "
                          "'annotations': %p}, 'spec': %p}",
                          kube_api_version(kind->type, a), kind->type->kind, name,
                          (void *)(json_first(labels) ? labels : NULL), (void *)annotations, (void *)spec);
}

const char *steer_name(const struct json *object, unsigned n, struct arena *a)
{
        static const char word[] = "-rerun-";
        const char *name = json_str_or(json_at(object, "metadata"), "name", ""), *at = NULL;
        uint64_t number;

        for (const char *p = name; (p = strstr(p, word)); p++)
                at = p;
        if (at && at > name && str_to_u64(str_of(at + strlen(word)), &number))
                name = arena_strndup(a, name, (size_t)(at - name));
        return name_fit(a, NAME_SUBDOMAIN, "", name, arena_printf(a, "-rerun-%u", n), NULL);
}

const struct json *steer_pod(const struct json *pods)
{
        const struct json *newest = NULL;

        json_foreach (pod, pods)
                if (!newest || strcmp(json_str_or(json_at(pod, "metadata"), "creationTimestamp", ""),
                                      json_str_or(json_at(newest, "metadata"), "creationTimestamp", "")) >= 0)
                        newest = pod;
        return newest;
}

const char *steer_container(const struct json *pod)
{
        const char *named = json_str(json_at(json_at(pod, "metadata"), "annotations"),
                                     "kubectl.kubernetes.io/default-container");

        return named ? named
                     : json_str_or(json_first(json_at(json_at(pod, "spec"), "containers")), "name", "");
}
