/*
 * What a run left in its data ConfigMap.
 */
#include "kinds/run_internal.h"

enum { TEXT_MAX = 4 << 20 /* as the relay reads it */ };

static const struct json_limits LIST_LIMITS = {.bytes = TEXT_MAX, .depth = 16, .nodes = 100000};

/* Not what an earlier attempt left: its relay may have been the last that could write. */
static bool is_of_run(const struct view *v, const struct json *map, const struct json *status)
{
        const char *wrote = json_str(json_at(map, "data"), RUN_KEY_POD);
        const char *ran = json_str(json_at(status, "progress"), "podUID");

        return run_is_ours(v, map) && (!wrote || !*wrote || streq(wrote, ran));
}

bool run_data(const struct view *v, struct decision *d, const char *name, const struct json *status,
              const struct json **ret)
{
        enum run_look look;
        const struct object *map = run_look_up(v, d, &KUBE_CONFIGMAP, name, &look);

        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        *ret = map && is_of_run(v, map->json, status) ? map->json : NULL;
        return look == LOOK_DONE;
}

/* The relay lists what was too large for the ConfigMap. 0: it does not. */
static int64_t size_of_left_out(struct arena *a, const struct json *data, const char *key)
{
        struct str text = json_text(json_at(data, RUN_KEY_ARTIFACTS));
        const struct json *list = text.p ? json_parse(a, text, &LIST_LIMITS, NULL) : NULL;
        const struct json *entry = json_find_named(list, key);

        return entry && !json_bool(entry, "kept", true) ? json_int(entry, "size", 0) : 0;
}

static struct str unpacked(struct arena *a, struct str packed, const char *key, struct err *err)
{
        _cleanup_(buf_done) struct buf raw = BUF_INIT(TEXT_MAX), plain = BUF_INIT(TEXT_MAX);

        if (!buf_add_unbase64(&raw, packed))
                err_set(err, E_INVALID, "%s.gz is not in base64, or too large", key);
        else if (gunzip_add(&plain, buf_str(&raw), err) < 0)
                err_wrap(err, "%s.gz", key);
        else
                return str_n(arena_strndup(a, plain.n ? plain.p : "", plain.n), plain.n);
        return STR_NULL;
}

struct str run_map_text(struct arena *a, const struct json *map, const char *key, struct err *err)
{
        const struct json *data = json_at(map, "data");
        struct str text = json_text(json_at(data, key));
        struct str packed = json_text(json_at(json_at(map, "binaryData"), arena_join(a, key, ".gz", "")));
        int64_t size = text.p || packed.p ? 0 : size_of_left_out(a, data, key);

        if (text.p)
                return text;
        if (packed.p)
                return unpacked(a, packed, key, err);
        if (size)
                err_set(err, E_TOO_LARGE, "%s has %lld bytes, too many to be kept", key, (long long)size);
        else
                err_set(err, E_NOT_FOUND, "%s is not there", key);
        return STR_NULL;
}

struct str run_data_text(const struct view *v, const struct json *map, const char *key, struct err *err)
{
        return run_map_text(v->arena, map, key, err);
}
