#include "proxy.h"

enum {
        RECORDS_MAX = 64,
        RECORD_BYTES_MAX = 4 << 20,
        ALL_BYTES_MAX = 64 << 20,
};

/* A server's cache is not older than that; a watch from there on is still possible. */
static const usec_t AGE_MAX = 60 * USEC_PER_SEC;

struct record {
        struct list node; /* in order of age */
        char *target, *content_type, *body;
        size_t n;
        usec_t at;
};

struct stale {
        struct list records;
        struct map by_target;
        size_t bytes;
};

static void record_free(struct stale *s, struct record *r)
{
        list_remove(&r->node);
        map_remove(&s->by_target, str_of(r->target));
        s->bytes -= r->n;
        free(r->target);
        free(r->content_type);
        free(r->body);
        free(r);
}

static void forget_old(struct stale *s, usec_t now)
{
        list_foreach_safe (node, &s->records) {
                struct record *r = CONTAINER_OF(node, struct record, node);

                if (usec_sub(now, r->at) <= AGE_MAX && s->by_target.n < RECORDS_MAX &&
                    s->bytes < ALL_BYTES_MAX)
                        break;
                record_free(s, r);
        }
}

struct stale *stale_new(void)
{
        struct stale *s = xcalloc(1, sizeof(*s));

        list_init(&s->records);
        return s;
}

void stale_free(struct stale *s)
{
        if (!s)
                return;
        list_foreach_safe (node, &s->records)
                record_free(s, CONTAINER_OF(node, struct record, node));
        map_done(&s->by_target);
        free(s);
}

void stale_keep(struct stale *s, usec_t now, struct str target, struct str content_type, struct str body)
{
        struct record *r;

        forget_old(s, now);
        if (body.n > RECORD_BYTES_MAX || map_get(&s->by_target, target))
                return;
        r = xcalloc(1, sizeof(*r));
        r->target = xstrndup(target.p, target.n);
        r->content_type = xstrndup(content_type.p ? content_type.p : "", content_type.n);
        r->body = xmemdup(body.p, body.n);
        r->n = body.n;
        r->at = now;
        s->bytes += r->n;
        list_append(&s->records, &r->node);
        map_put(&s->by_target, str_of(r->target), r);
}

bool stale_find(struct stale *s, usec_t now, struct str target, struct str *ret_content_type,
                struct str *ret_body)
{
        struct record *r = map_get(&s->by_target, target);

        if (!r || usec_sub(now, r->at) > AGE_MAX)
                return false;
        *ret_content_type = str_of(r->content_type);
        *ret_body = str_n(r->body, r->n);
        return true;
}
