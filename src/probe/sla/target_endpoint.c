/*
 * endpoint: one server that is there already. Nothing is started, nothing is taken down.
 */
#include "probe/sla/local.h"

struct endpoint_target {
        struct sla_target base;
        struct sla_target_config c;
        char *url;
        uint64_t kv_tokens;
};

static struct endpoint_target *of(struct sla_target *t)
{
        return CONTAINER_OF(t, struct endpoint_target, base);
}

static int endpoint_start(struct sla_target *t, const struct sla_candidate *c, enum sla_role role,
                          struct sla_server *ret, struct err *err)
{
        struct endpoint_target *e = of(t);

        (void)c;
        (void)role;
        ret->url = e->url;
        ret->kv_tokens = e->kv_tokens;
        return local_wait_url(e->url, NULL, &e->c, err);
}

static void endpoint_stop(struct sla_target *t, struct sla_server *s)
{
        (void)t;
        (void)s;
}

static void endpoint_free(struct sla_target *t)
{
        free(of(t)->url);
        free(of(t));
}

static const struct sla_target_ops endpoint_ops = {
        .name = "endpoint",
        .fixed = true,
        .start = endpoint_start,
        .stop = endpoint_stop,
        .free = endpoint_free,
};

struct sla_target *sla_target_endpoint(const struct sla_target_config *c, const char *url, uint64_t kv_tokens)
{
        struct endpoint_target *e = xcalloc(1, sizeof(*e));

        e->base.ops = &endpoint_ops;
        e->c = *c;
        e->url = xstrdup(url);
        e->kv_tokens = kv_tokens;
        return &e->base;
}
