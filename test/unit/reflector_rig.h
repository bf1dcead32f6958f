/*
 * reflector_rig.h - a reflector of ConfigMaps, and what a server says to one.
 */
#pragma once

#include "unit/api_rig.h"

#define PATH  "/api/v1/configmaps"
#define SEC   USEC_PER_SEC
#define EVENT "{\"type\":\"%s\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":"

struct rig {
        struct api api;
        struct cache *cache;
        struct reflector *reflector;
        struct metrics *metrics;
        unsigned synced, versions;
        bool first;
};

static inline int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        api_init(&r->api, NULL);
        r->cache = cache_new(&(struct cache_config){.type = &KUBE_CONFIGMAP});
        r->metrics = metrics_new();
        *state = r;
        return 0;
}

static inline int teardown(void **state)
{
        struct rig *r = *state;

        reflector_free(r->reflector);
        api_done(&r->api);
        cache_free(r->cache);
        metrics_free(r->metrics);
        free(r);
        return 0;
}

static inline void on_synced(void *arg, bool first)
{
        struct rig *r = arg;

        r->synced++;
        r->first = first;
}

static inline void on_version(void *arg)
{
        ((struct rig *)arg)->versions++;
}

static inline void begin(struct rig *r, bool watch_list)
{
        r->reflector = reflector_new(&(struct reflector_config){.kube = r->api.kube,
                                                                .cache = r->cache,
                                                                .metrics = r->metrics,
                                                                .no_watch_list = !watch_list,
                                                                .on_synced = on_synced,
                                                                .on_version = on_version,
                                                                .arg = r});
}

/* ---- what the server says */

static inline struct request *hear(struct rig *r, bool watch)
{
        struct request *q = api_next(&r->api, "GET", PATH);

        assert_int_equal(watch, api_param(q, "watch") != NULL);
        return q;
}

static inline void assert_param(struct request *q, const char *name, const char *value)
{
        const char *is = api_param(q, name);

        if (value)
                assert_string_equal(is ? is : "(none)", value);
        else
                assert_null(is);
}

/* A list of the objects NAMES ("a,b"), each of VERSION; TOKEN for more, or NULL. */
static inline void answer_list(struct request *q, const char *version, const char *names, const char *token)
{
        struct arena *a = &q->arena;
        struct json *items = json_array(a);
        struct str rest = str_of(names), name;

        while (rest.n) {
                name = str_split(&rest, ',');
                json_append(items, json_build(a,
                                              "{'metadata': {'namespace': 'ns', 'name': '%.*s', 'uid': "
                                              "'uid-%.*s', 'resourceVersion': %s}}",
                                              STR_ARG(name), STR_ARG(name), version));
        }
        api_answer(q, 200,
                   json_print(a, json_build(a,
                                            "{'kind': 'ConfigMapList', 'apiVersion': 'v1', 'metadata': "
                                            "{'resourceVersion': %s, 'continue': %p}, 'items': %p}",
                                            version, (void *)json_string(a, token), (void *)items)));
}

static inline void say_object(struct rig *r, struct request *q, const char *type, const char *name,
                              const char *version)
{
        api_say(&r->api, q,
                arena_printf(&q->arena,
                             EVENT "{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                                   "\"resourceVersion\":\"%s\"}}}\n",
                             type, name, name, version));
}

static inline void say_bookmark(struct rig *r, struct request *q, const char *version, bool end)
{
        api_say(&r->api, q,
                arena_printf(&q->arena, EVENT "{\"resourceVersion\":\"%s\"%s}}}\n", "BOOKMARK", version,
                             end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : ""));
}

static const char *const EXPIRED =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\","
        "\"message\":\"too old resource version: 1 (2)\",\"reason\":\"Expired\","
        "\"code\":410}}\n";

/* Names in the cache, sorted: "a,b". */
static inline const char *cached(struct rig *r)
{
        static char text[256];
        size_t n = 0;

        for (const char *c = "abcdefghijklmnopqrstuvwxyz"; *c; c++)
                if (cache_get(r->cache, "ns", (char[]){*c, '\0'}))
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c", n ? "," : "", *c);
        text[n] = '\0';
        return text;
}

/* From the beginning to a watch at version 10 with a and b in the cache. */
static inline struct request *watching(struct rig *r)
{
        struct request *q;

        begin(r, false);
        answer_list(hear(r, false), "10", "a,b", NULL);
        q = hear(r, true);
        assert_param(q, "resourceVersion", "10");
        api_stream(&r->api, q);
        return q;
}

/* A new watch and the probe beside it, in whatever order they come. */
static inline struct request *hear_probed(struct rig *r, struct request **ret_probe)
{
        struct request *first = api_next(&r->api, "GET", PATH), *second = api_next(&r->api, "GET", PATH);
        struct request *watch = api_param(first, "watch") ? first : second;

        *ret_probe = watch == first ? second : first;
        assert_non_null(api_param(watch, "watch"));
        assert_param(*ret_probe, "watch", NULL);
        assert_param(*ret_probe, "limit", "1");
        assert_param(*ret_probe, "resourceVersion", NULL);
        return watch;
}

static inline void pass(struct rig *r, usec_t time)
{
        for (int i = 0; i < 10; i++)
                net_turn(&r->api.net); /* what was said before arrives before */
        net_pass(&r->api.net, time);
}

static inline const char *version(struct rig *r)
{
        return reflector_version(r->reflector);
}
