/*
 * Finished runs, of kinds and namespaces that the caller may list.
 */
#include "web/internal.h"

#include <math.h>

#include "stats/stats.h"

enum { LOOK_FURTHER = 10, ROWS_MAX = 10000 };

struct looked {
        struct ask ask;
        struct call *call;
        struct history_filter filter; /* its limit: how far back it is looked */
        unsigned limit;               /* of what is told */
        size_t n_read;
        struct json *rows; /* newest first */
        void (*next)(struct call *c, struct looked *l);
};

/* ---- who may see which */

static size_t kind_of(const struct json *row)
{
        const char *kind = json_str_or(row, "kind", "");
        const struct kind *k = kinds_named(str_of(kind));

        return k ? feed_index(k) : KINDS_MAX;
}

static void want_rows(struct ask *ask)
{
        const struct looked *l = CONTAINER_OF(ask, struct looked, ask);

        json_foreach (row, l->rows) {
                size_t kind = kind_of(row);

                if (kind < KINDS_MAX)
                        ask_want(ask, kind, json_str_or(row, "namespace", ""));
        }
}

static void on_rows(void *arg, const struct history_row *rows, size_t n, const struct err *err);

/* Who does not see all may have to look further back, where there is more. */
static bool look_further(struct looked *l, size_t n_seen)
{
        if (n_seen >= l->limit || l->n_read < l->filter.limit || l->filter.limit >= ROWS_MAX)
                return false;
        l->filter.limit = MIN(l->filter.limit * LOOK_FURTHER, (unsigned)ROWS_MAX);
        history_list(l->call->web->cfg.history, &l->filter, on_rows, l->call);
        return true;
}

static void on_known(struct ask *ask)
{
        struct looked *l = CONTAINER_OF(ask, struct looked, ask);
        struct call *c = l->call;
        struct json *seen = json_array(&c->arena), *row = json_first(l->rows);

        if (!c->ex) {
                call_free(c);
                return;
        }
        if (ask->status) {
                call_fail(c, ask->status, "%s", ask->detail);
                return;
        }
        while (row && json_len(seen) < l->limit) {
                struct json *next = json_next(l->rows, row);
                size_t kind = kind_of(row);

                if (kind < KINDS_MAX && caller_sees(c->caller, kind, json_str_or(row, "namespace", "")))
                        json_append(seen, json_take(l->rows, row));
                row = next;
        }
        if (look_further(l, json_len(seen)))
                return;
        l->rows = seen;
        l->next(c, l);
}

static void on_rows(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        struct call *c = arg;
        struct looked *l = c->state;

        if (!c->ex) {
                call_free(c);
                return;
        }
        if (err) {
                call_fail(c, 503, "the history cannot be read: %s", err->text);
                return;
        }
        l->n_read = n;
        l->rows = json_array(&c->arena);
        for (size_t i = 0; i < n; i++)
                json_append(l->rows, history_row_json(&rows[i], &c->arena));
        l->ask.each = want_rows;
        l->ask.done = on_known;
        caller_ask(&l->ask);
}

static void want_none(struct ask *ask)
{
}

static void on_asked(struct ask *ask)
{
        struct looked *l = CONTAINER_OF(ask, struct looked, ask);
        struct call *c = l->call;
        bool any = false;

        if (!c->ex) {
                call_free(c);
                return;
        }
        if (ask->status) {
                call_fail(c, ask->status, "%s", ask->detail);
                return;
        }
        for (size_t i = 0; kinds_at(i); i++)
                any = any || caller_sees(c->caller, i, l->filter.ns);
        if (l->filter.ns && !any) {
                call_fail(c, 403, "you may not list runs in namespace '%s'", l->filter.ns);
                return;
        }
        l->filter.limit = l->limit;
        history_list(c->web->cfg.history, &l->filter, on_rows, c);
}

/* Rows that pass FILTER and that the caller may see, at most LIMIT; then NEXT. */
static void look(struct call *c, const struct history_filter *filter, unsigned limit,
                 void (*next)(struct call *c, struct looked *l))
{
        struct looked *l = arena_new(&c->arena, struct looked);

        if (!c->web->cfg.history) {
                call_fail(c, 404, "no history is kept here; see --history");
                return;
        }
        *l = (struct looked){.call = c, .filter = *filter, .limit = limit, .next = next};
        l->ask = (struct ask){.web = c->web,
                              .caller = c->caller,
                              .kinds = (1u << KINDS_MAX) - 1,
                              .ns = filter->ns,
                              .each = want_none,
                              .done = on_asked};
        c->state = l;
        caller_ask(&l->ask);
}

/* ---- the list */

static void tell_rows(struct call *c, struct looked *l)
{
        call_reply(c, 200, json_build(&c->arena, "{'items': %p}", (void *)l->rows));
}

static const char *said(const struct call *c, const char *name)
{
        const char *text = json_str(c->query, name);

        return text && *text ? text : NULL;
}

void serve_history(struct call *c)
{
        const char *kind = said(c, "kind");
        const struct kind *k = kind ? kinds_named(str_of(kind)) : NULL;
        struct history_filter filter = {.uid = said(c, "uid"),
                                        .ns = said(c, "namespace"),
                                        .name = said(c, "name"),
                                        .series = said(c, "series")};

        if (kind && !k) {
                call_fail_field(c, "query", "kind", "Input should be dgdr, cudaexp, ap, ac or wprof");
                return;
        }
        filter.kind = k ? k->type->kind : NULL;
        filter.samples = filter.uid != NULL;
        look(c, &filter, (unsigned)json_int(c->query, "limit", 100), tell_rows);
}

/* ---- one series, run after run */

struct trend {
        const double *values, *inverse; /* the second: one over the first */
        struct stats_change found[SERIES_MAX];
        size_t n_found;
};

/*
 * The detector tells that the last level is slower than one before it; it is faster where the reciprocals are "slower".
 * Indexes count from the first value of all.
 */
static bool last_change(const struct trend *t, size_t from, size_t to, struct stats_change *ret)
{
        struct stats_change slower, faster;
        bool is_slower = stats_change(t->values + from, to - from, 0, &slower) && slower.degraded;
        bool is_faster = stats_change(t->inverse + from, to - from, 0, &faster) && faster.degraded;

        if (is_slower && (!is_faster || slower.first_bad > faster.first_bad))
                *ret = slower;
        else if (is_faster)
                *ret = (struct stats_change){.first_bad = faster.first_bad,
                                             .good_from = faster.good_from,
                                             .before = 1 / faster.before,
                                             .after = 1 / faster.after,
                                             .ratio = 1 / faster.ratio,
                                             .low = 1 / faster.high,
                                             .high = 1 / faster.low};
        else
                return false;
        ret->first_bad += from;
        ret->good_from += from;
        return true;
}

/* All in [FROM, TO), the oldest first: that one, then those before and after it. */
static void find_changes(struct trend *t, size_t from, size_t to)
{
        struct stats_change change;

        if (!last_change(t, from, to, &change))
                return;
        find_changes(t, from, change.first_bad);
        t->found[t->n_found++] = change;
        find_changes(t, change.first_bad, to);
}

/* Each is told by the levels beside it, whatever came before and after those. */
static void settle_changes(struct trend *t, size_t n)
{
        for (size_t i = 0; i < t->n_found; i++) {
                size_t from = i ? t->found[i - 1].first_bad : 0;
                size_t to = i + 1 < t->n_found ? t->found[i + 1].first_bad : n;
                struct stats_change change;

                if (last_change(t, from, to, &change) && change.degraded == t->found[i].degraded)
                        t->found[i] = change;
        }
}

static struct json *change_json(const struct stats_change *ch, struct arena *a)
{
        return json_build(a,
                          "{'degraded': %p, 'index': %zu, 'goodFrom': %zu, 'before': %p, 'after': %p, "
                          "'ratio': %p, 'low': %p, 'high': %p}",
                          (void *)json_truth(a, ch->degraded), ch->first_bad, ch->good_from,
                          (void *)json_double(a, ch->before), (void *)json_double(a, ch->after),
                          (void *)json_double(a, ch->ratio), (void *)json_double(a, ch->low),
                          (void *)json_double(a, ch->high));
}

static struct json *changes_json(const double *values, size_t n, struct arena *a)
{
        struct json *changes = json_array(a);
        double *inverse = arena_new_array(a, double, n + 1);
        struct trend *t = arena_new(a, struct trend);

        for (size_t i = 0; i < n; i++)
                inverse[i] = 1 / values[i];
        *t = (struct trend){.values = values, .inverse = inverse};
        find_changes(t, 0, n);
        settle_changes(t, n);
        for (size_t i = 0; i < t->n_found; i++)
                json_append(changes, change_json(&t->found[i], a));
        return changes;
}

static struct json *point_json(const struct json *row, const struct json *measure, struct arena *a)
{
        struct json *p = json_build(a,
                                    "{'uid': %s, 'namespace': %s, 'name': %s, 'kind': %s, 'finishedAt': %s, "
                                    "'value': %p, 'low': %p, 'high': %p}",
                                    json_str(row, "uid"), json_str(row, "namespace"), json_str(row, "name"),
                                    json_str(row, "kind"), json_str(row, "finishedAt"),
                                    (void *)json_copy(a, json_at(measure, "seconds")),
                                    (void *)json_copy(a, json_at(measure, "low")),
                                    (void *)json_copy(a, json_at(measure, "high")));

        json_set(a, p, "attempt", json_copy(a, json_at(row, "attempt")));
        return p;
}

/* The rows are the newest first; a trend is told from the oldest on. */
static void tell_trend(struct call *c, struct looked *l)
{
        struct arena *a = &c->arena;
        struct json *points = json_array(a);
        size_t n = json_len(l->rows), at = 0;
        struct json **rows = arena_new_array(a, struct json *, n + 1);
        double *values = arena_new_array(a, double, n + 1);

        json_foreach (row, l->rows)
                rows[at++] = row;
        n = 0;
        while (at-- > 0) {
                const struct json *measure = json_first(json_at(rows[at], "measures"));

                if (!json_to_double(json_at(measure, "seconds"), &values[n]))
                        continue;
                json_append(points, point_json(rows[at], measure, a));
                n++;
        }
        call_reply(c, 200,
                   json_build(a, "{'series': %s, 'points': %p, 'changes': %p}", said(c, "series"),
                              (void *)points, (void *)changes_json(values, n, a)));
}

void serve_trend(struct call *c)
{
        struct history_filter filter = {.series = said(c, "series")};

        if (!filter.series)
                call_fail_field(c, "query", "series", "Input should be a series of the history");
        else
                look(c, &filter, SERIES_MAX, tell_trend);
}
