#include "operator/runtime.h"

#include <arpa/inet.h>

/*
 * What somebody in the cluster tells over plain HTTP, as exporters of metrics do. It is a hint and no more: asked once,
 * with nothing of ours in the request, and whatever goes wrong is the answer. All of a decision at the same time, since
 * each may take its whole time.
 */
enum { SCRAPE_BYTES = 1024 * 1024 };
#define SCRAPE_TIME (3 * USEC_PER_SEC)

/* What answers on a link is the machine's own business, a cloud's metadata for one. No pod has such an address. */
static bool is_of_link(const unsigned char *v4)
{
        return (v4[0] == 169 && v4[1] == 254) || v4[0] == 0 || v4[0] >= 224;
}

static bool is_address(struct str host)
{
        char text[INET6_ADDRSTRLEN] = "";
        struct in6_addr a;

        if (host.n >= sizeof(text))
                return false;
        memcpy(text, host.p, host.n);
        if (inet_pton(AF_INET, text, &a) == 1)
                return !is_of_link(a.s6_addr);
        if (inet_pton(AF_INET6, text, &a) != 1)
                return false;
        if (IN6_IS_ADDR_V4MAPPED(&a))
                return !is_of_link(a.s6_addr + 12);
        return !IN6_IS_ADDR_LINKLOCAL(&a) && !IN6_IS_ADDR_MULTICAST(&a) && !IN6_IS_ADDR_UNSPECIFIED(&a);
}

/* "http://10.0.0.7:9400/metrics" and nothing else: no name that is looked up, no user, no query. */
static int parse_address(struct str address, struct url *ret, struct err *err)
{
        if (url_parse(address, ret, err) < 0)
                return -1;
        if (ret->tls || ret->user.p || !is_address(ret->host))
                return err_set(err, E_INVALID, "it is no http:// with the address of a pod");
        if (ret->path.n == 0 || ret->path.p + ret->path.n != address.p + address.n)
                return err_set(err, E_INVALID, "it has no path, or more than a path");
        if (ret->path.p - (ret->host.p + ret->host.n) < 2) /* ":1" is the shortest */
                return err_set(err, E_INVALID, "it has no port");
        return 0;
}

static struct answer *add_answer(struct scrape *s)
{
        struct answer *answer = vec_push(&s->task->answers);

        answer->want = *s->want;
        return answer;
}

static void on_scraped(void *arg, const struct http_answer *got, const struct err *err)
{
        struct scrape *s = arg;
        struct task *t = s->task;
        struct answer *answer = add_answer(s);

        if (err)
                answer->error = arena_printf(&t->arena, "%s: %s", s->want->name, err->text);
        else if (got->status != 200)
                answer->error = arena_printf(&t->arena, "%s: the answer is %d %s", s->want->name, got->status,
                                             http_status_text(got->status));
        else
                answer->text = str_n(arena_strndup(&t->arena, got->body.p, got->body.n), got->body.n);
        http_client_free(TAKE_PTR(s->client));
        lookup_scraped(t);
}

static int start_one(struct scrape *s, struct err *err)
{
        static const struct http_handlers handlers = {.on_end = on_scraped};
        struct task *t = s->task;
        struct str address = str_of(s->want->name);
        struct http_client_config config = {.max_connections = 1, .limits = {.body = SCRAPE_BYTES}};
        struct http_request r = {.method = "GET", .timeout = SCRAPE_TIME};
        struct url url;

        if (parse_address(address, &url, err) < 0)
                return -1;
        config.url = arena_strndup(&t->arena, address.p, (size_t)(url.path.p - address.p));
        r.target = arena_strndup(&t->arena, url.path.p, url.path.n);
        s->client = http_client_new(t->rt->op->cfg.loop, &config, err);
        if (!s->client)
                return -1;
        http_start(s->client, &r, &handlers, s);
        return 0;
}

void scrape_start(struct task *t)
{
        for (size_t i = 0; i < t->decision.n_wants; i++) {
                struct scrape *s = &t->scrapes[i];
                struct err err = ERR_INIT;

                if (t->decision.wants[i].kind != WANT_SCRAPE)
                        continue;
                *s = (struct scrape){.task = t, .want = &t->decision.wants[i]};
                if (start_one(s, &err) < 0)
                        add_answer(s)->error = arena_printf(&t->arena, "%s: %s", s->want->name, err.text);
        }
}

bool scrape_pending(const struct task *t)
{
        for (size_t i = 0; i < WANTS_MAX; i++)
                if (t->scrapes[i].client)
                        return true;
        return false;
}

void scrape_cancel(struct task *t)
{
        for (size_t i = 0; i < WANTS_MAX; i++)
                http_client_free(TAKE_PTR(t->scrapes[i].client));
}
