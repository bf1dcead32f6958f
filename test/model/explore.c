/*
 * Every state, breadth first.
 */
#include "model/explore.h"

enum { FAIR = 1U << 31 };

/* How a state was first reached. */
struct origin {
        uint32_t from;
        uint8_t action, arg;
        uint16_t depth;
};

struct explorer {
        struct model m;
        struct pool states;
        VEC(struct origin) origins;
        VEC(uint32_t) edges;   /* targets; with FAIR */
        VEC(uint32_t) edge_at; /* by state: its first edge */
        VEC(bool) settled;
        const char *wrong;
        uint32_t wrong_from;
        struct origin
                wrong_step; /* .from is the state before it; depth 0: there is no step, the state itself is wrong */
};

/* ---- the story */

static void describe(struct explorer *x, const struct state *s, struct origin step, struct buf *out)
{
        const struct subject *of = x->m.subject;
        const char *const parts[] = {"the request", "the Jobs", "the pods", "the ConfigMaps", of->story};
        const char *const edits[] = {of->edited, "suspend", "cancel", of->own,
                                     "a spec that cannot be run, or back"};
        static const char *const mishaps[] = {"the pod is evicted",
                                              "somebody deletes the pod",
                                              "the relay is killed",
                                              "somebody deletes the Job",
                                              "somebody deletes the Job and leaves its pods",
                                              "somebody deletes the status ConfigMap",
                                              "somebody deletes the product",
                                              "somebody deletes the data ConfigMap",
                                              "somebody makes the product himself",
                                              "the workload runs out of memory",
                                              "others are admitted before it",
                                              "the last pod is removed, and one before it stays",
                                              "the workload leaves no output"};
        const struct action *a = &actions[step.action];
        const char *write = control_next_write(&x->m, s);

        if (a->act == act_write)
                buf_printf(out, "the operator %s", write ? write : "writes");
        else
                buf_printf(out, "%s", a->what);
        for (unsigned i = 0; a->act == act_decide && i < PARTS; i++)
                if (step.arg & 1U << i)
                        buf_printf(out, ", seeing now %s", parts[i]);
        if (a->act == act_deliver)
                buf_printf(out, " %s", parts[step.arg]);
        else if (a->act == act_edit)
                buf_printf(out, " %s", edits[step.arg]);
        else if (a->act == act_mishap)
                buf_printf(out, " %s", mishaps[step.arg]);
        else if (a->n_args > 1 && a->act != act_decide)
                buf_printf(out, " %d", step.arg);
}

static void tell_way(struct explorer *x, struct buf *out)
{
        struct origin way[1024];
        size_t n = 0;

        if (x->wrong_step.depth)
                way[n++] = x->wrong_step;
        for (uint32_t i = x->wrong_from; i && n < ARRAY_LEN(way); i = x->origins.v[i].from)
                way[n++] = x->origins.v[i];
        buf_printf(out, "%s: %s\n", x->m.scenario->name, x->wrong);
        for (size_t i = n; i--;) {
                const struct state *s = pool_at(&x->states, way[i].from);

                buf_printf(out, "%4zu  ", n - i);
                describe(x, s, way[i], out);
                buf_addc(out, '\n');
        }
}

/* ---- every state */

static void found(struct explorer *x, const char *what, uint32_t from, struct origin step)
{
        if (x->wrong)
                return;
        x->wrong = what;
        x->wrong_from = from;
        x->wrong_step = step;
}

static void add_state(struct explorer *x, const struct state *s, struct origin origin, bool fair)
{
        bool new;
        uint32_t number = pool_intern(&x->states, s, &new);

        *vec_push(&x->edges) = number | (fair ? FAIR : 0);
        if (!new)
                return;
        *vec_push(&x->origins) = origin;
        judge_state(&x->m, s);
        if (x->m.wrong)
                found(x, x->m.wrong, number, (struct origin){0});
}

/* All that can happen in one state. */
static void expand(struct explorer *x, uint32_t number)
{
        const struct state s = *(const struct state *)pool_at(&x->states, number);
        bool settled = true, forgotten = cluster_is_forgotten(&x->m, &s);
        const char *why = NULL;

        *vec_push(&x->edge_at) = (uint32_t)x->edges.n;
        for (size_t i = 0; i < n_actions && !x->wrong; i++)
                for (unsigned arg = 0; arg < actions[i].n_args && !x->wrong; arg++) {
                        struct state next = s;
                        struct origin origin = {number, (uint8_t)i, (uint8_t)arg,
                                                (uint16_t)(x->origins.v[number].depth + 1)};

                        if (forgotten && actions[i].act != act_collect_rest)
                                continue;
                        if (!actions[i].act(&x->m, &next, arg))
                                continue;
                        settled = settled && !actions[i].fair;
                        if (x->m.wrong)
                                found(x, x->m.wrong, number, origin);
                        else
                                add_state(x, &next, origin, actions[i].fair);
                }
        *vec_push(&x->settled) = settled;
        if (settled && !x->wrong && !judge_settled(&x->m, &s, &why))
                found(x, why, number, (struct origin){0});
}

/* ---- nothing goes round and round: from every state the world settles by itself */

static bool reaches(const struct explorer *x, uint32_t i, const bool *ends)
{
        for (uint32_t k = x->edge_at.v[i]; k < x->edge_at.v[i + 1]; k++)
                if ((x->edges.v[k] & FAIR) && ends[x->edges.v[k] & ~FAIR])
                        return true;
        return false;
}

static void find_rounds(struct explorer *x)
{
        size_t n = x->states.n;
        _cleanup_(free_ptr) bool *ends = xcalloc(n + 1, sizeof(*ends));
        bool more = true;

        *vec_push(&x->edge_at) = (uint32_t)x->edges.n;
        memcpy(ends, x->settled.v, n * sizeof(*ends));
        while (more) {
                more = false;
                for (uint32_t i = (uint32_t)n; i--;)
                        if (!ends[i] && reaches(x, i, ends))
                                ends[i] = more = true;
        }
        for (uint32_t i = 0; i < n; i++)
                if (!ends[i]) {
                        found(x, "the world never settles from here", i, (struct origin){0});
                        return;
                }
}

void explore(const struct subject *subject, const struct scenario *scenario, size_t max_states,
             struct exploration *ret)
{
        struct explorer *x = xcalloc(1, sizeof(*x));
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);
        struct state first;

        model_init(&x->m, subject, scenario);
        pool_init(&x->states, sizeof(struct state));
        first = model_begin(&x->m);
        pool_intern(&x->states, &first, NULL);
        *vec_push(&x->origins) = (struct origin){0};
        for (uint32_t i = 0; i < x->states.n && !x->wrong; i++) {
                if (x->states.n > max_states)
                        found(x, "there are more states than were allowed for", i, (struct origin){0});
                else
                        expand(x, i);
        }
        if (!x->wrong)
                find_rounds(x);
        *ret = (struct exploration){.states = x->states.n,
                                    .transitions = x->edges.n,
                                    .evaluations = x->m.evaluations,
                                    .depth = x->origins.v[x->origins.n - 1].depth};
        vec_foreach (settled, &x->settled)
                ret->settled += *settled;
        if (x->wrong) {
                tell_way(x, &out);
                ret->wrong = xstrdup(buf_cstr(&out));
        }
        vec_done(&x->origins);
        vec_done(&x->edges);
        vec_done(&x->edge_at);
        vec_done(&x->settled);
        pool_done(&x->states);
        model_done(&x->m);
        free(x);
}

void exploration_done(struct exploration *e)
{
        free(TAKE_PTR(e->wrong));
}
