/*
 * Finished runs side by side, each read as the caller: its object, and what it left.
 */
#include "web/internal.h"

struct beside {
        struct versus_side sides[VERSUS_MAX];
        const char *ns[VERSUS_MAX], *name[VERSUS_MAX];
        size_t n, at;
};

static void read_object(struct call *c);

static void tell(struct call *c)
{
        const struct beside *b = c->state;
        struct err err = ERR_INIT;
        struct json *answer = versus(&c->arena, b->sides, b->n, &err);

        if (answer)
                call_reply(c, 200, answer);
        else
                call_fail_field(c, "query", "run", err.text);
}

static void next_side(struct call *c)
{
        struct beside *b = c->state;

        if (++b->at < b->n)
                read_object(c);
        else
                tell(c);
}

/* What a run has left may be gone; then its figures are told alone. */
static void on_map(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct beside *b = c->state;
        struct versus_side *side = &b->sides[b->at];
        const struct json *map = err ? NULL : json_parse(&c->arena, answer->body, NULL, NULL);

        if (streq(meta_controller_uid(map), meta_str(side->docs.object, "uid")))
                run_docs_take(&side->docs, map, &c->arena);
        next_side(c);
}

static void on_object(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct beside *b = c->state;
        struct versus_side *side = &b->sides[b->at];
        struct kube_request r = {.verb = KUBE_GET, .type = &KUBE_CONFIGMAP, .ns = b->ns[b->at]};
        struct run_kind run;

        if (err) {
                call_fail_kube(c, answer, err);
                return;
        }
        side->docs.object = call_object(c, answer);
        if (!side->docs.object)
                return;
        if (side->docs.kind->result)
                side->docs.profile = side->docs.object;
        if (!kinds_run(side->docs.kind, side->docs.object, &c->arena, &run)) {
                next_side(c);
                return;
        }
        r.name = run.data_map;
        call_kube(c, &r, on_map);
}

static void read_object(struct call *c)
{
        const struct beside *b = c->state;
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = b->sides[b->at].docs.kind->type,
                                 .ns = b->ns[b->at],
                                 .name = b->name[b->at]};

        call_kube(c, &r, on_object);
}

/* "ap/NAMESPACE/NAME", with "#ALGORITHM" and "@SIZE". */
static int read_side(struct call *c, struct beside *b, const char *text, struct err *err)
{
        struct versus_side *side = &b->sides[b->n];
        const char *run;
        struct str rest, kind, ns;

        if (versus_parse(&c->arena, text, &run, &side->algorithm, &side->size, err) < 0)
                return -1;
        rest = str_of(run);
        kind = str_split(&rest, '/');
        ns = str_split(&rest, '/');
        side->docs.kind = kinds_named(kind);
        if (!side->docs.kind || !ns.n || !rest.n || memchr(rest.p, '/', rest.n))
                return err_set(err, E_INVALID, "'%s' is not KIND/NAMESPACE/NAME", text);
        side->name = text;
        b->ns[b->n] = arena_strndup(&c->arena, ns.p, ns.n);
        b->name[b->n] = arena_strndup(&c->arena, rest.p, rest.n);
        b->n++;
        return 0;
}

static int read_sides(struct call *c, struct beside *b, struct err *err)
{
        json_foreach (run, json_at(c->query, "run")) {
                for (size_t i = 0; i < b->n; i++)
                        if (streq(b->sides[i].name, json_cstr(run)))
                                return err_set(err, E_INVALID, "'%s' is there twice", json_cstr(run));
                if (read_side(c, b, json_cstr(run), err) < 0)
                        return -1;
        }
        return 0;
}

void serve_compare(struct call *c)
{
        struct beside *b = arena_new(&c->arena, struct beside);
        struct err err = ERR_INIT;

        c->state = b;
        if (read_sides(c, b, &err) < 0)
                call_fail_field(c, "query", "run", err.text);
        else
                read_object(c);
}
