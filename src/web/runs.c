#include "web/internal.h"

enum { LIST_MAX = 256 << 20 };

/* ---- which runs */

struct asked {
        struct ask ask;
        struct call *call;
        struct run_filter filter;
        void (*next)(struct call *c, const struct run_filter *filter);
};

static bool read_filter(struct call *c, struct run_filter *ret)
{
        const char *kind = json_str(c->query, "kind"), *life = json_str(c->query, "life");
        const char *labels = json_str(c->query, "labelSelector");
        struct err err = ERR_INIT;

        *ret = (struct run_filter){.ns = json_str(c->query, "namespace"), .life = -1};
        if (ret->ns && !*ret->ns)
                ret->ns = NULL;
        if (kind && *kind) {
                ret->kind = kinds_named(str_of(kind));
                if (!ret->kind) {
                        call_fail_field(c, "query", "kind", "Input should be dgdr, cudaexp, ap, ac or wprof");
                        return false;
                }
        }
        for (int i = 0; life && *life && i <= SUMMARY_CANCELLED; i++)
                if (streq(life, summary_life_name((enum summary_life)i)))
                        ret->life = i;
        if (labels && label_selector_parse(labels, NULL, &ret->labels, &c->arena, &err) < 0) {
                call_fail_field(c, "query", "labelSelector", err.text);
                return false;
        }
        return true;
}

static bool sees_any(const struct ask *ask)
{
        for (size_t i = 0; kinds_at(i); i++)
                if ((ask->kinds & 1u << i) && caller_sees(ask->caller, i, ask->ns))
                        return true;
        return false;
}

static void on_asked(struct ask *ask)
{
        struct asked *asked = CONTAINER_OF(ask, struct asked, ask);
        struct call *c = asked->call;

        if (!c->ex)
                call_free(c);
        else if (ask->status)
                call_fail(c, ask->status, "%s", ask->detail);
        else if (asked->filter.ns && !sees_any(ask))
                call_fail(c, 403, "you may not list %s in namespace '%s'",
                          asked->filter.kind ? asked->filter.kind->type->plural : "runs", asked->filter.ns);
        else
                asked->next(c, &asked->filter);
}

void runs_ask(struct call *c, void (*next)(struct call *c, const struct run_filter *filter))
{
        struct asked *asked = arena_new(&c->arena, struct asked);

        asked->call = c;
        asked->next = next;
        if (!read_filter(c, &asked->filter))
                return;
        asked->ask = (struct ask){
                .web = c->web, .caller = c->caller, .ns = asked->filter.ns, .done = on_asked};
        for (size_t i = 0; kinds_at(i); i++)
                if (!asked->filter.kind || asked->filter.kind == kinds_at(i))
                        asked->ask.kinds |= 1u << i;
        caller_ask(&asked->ask);
}

/* ---- the list */

static void list(struct call *c, const struct run_filter *filter)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(LIST_MAX);

        buf_adds(&text, "{\"items\":");
        feed_list(c->web->feed, filter, c->caller, &text);
        buf_addc(&text, '}');
        if (text.overflow)
                call_fail(c, 413, "there are too many runs for one answer; say a namespace or a kind");
        else
                call_reply_text(c, 200, "application/json", buf_str(&text));
}

void serve_runs(struct call *c)
{
        runs_ask(c, list);
}
