#include "probe/load/export_internal.h"

uint64_t load_wall_ns(const struct load_report *r, uint64_t at)
{
        return r->wall_began * 1000 + at - r->clock_began;
}

bool load_simulated(const struct load_config *c, const struct load_report *r)
{
        return c->simulated || r->simulated;
}

const char *load_url_shown(struct arena *a, const char *url)
{
        const char *host, *at, *end;

        if (!url)
                return NULL;
        host = strstr(url, "://");
        host = host ? host + 3 : url;
        end = host + strcspn(host, "?#");
        at = memrchr(host, '@', strcspn(host, "/?#"));
        return arena_printf(a, "%.*s%.*s", (int)(host - url), url, (int)(end - (at ? at + 1 : host)),
                            at ? at + 1 : host);
}

/* ---- metrics of the whole run */

size_t load_singles(const struct load_config *c, const struct load_summary *s,
                    struct load_single out[LOAD_SINGLES_MAX])
{
        bool rates = s->has_duration, slos = c->n_slos > 0, any = s->n_requests > 0;
        const struct {
                bool there;
                struct load_single single;
        } all[LOAD_SINGLES_MAX] = {
                {rates, {"benchmark_duration", "Benchmark Duration", "sec", s->duration}},
                {s->n_errors > 0,
                 {"error_request_count", "Error Request Count", "requests", (double)s->n_errors}},
                {slos && any, {"good_request_count", "Good Request Count", "requests", (double)s->n_good}},
                {slos && rates, {"goodput", "Goodput", "requests/sec", s->goodput}},
                {rates,
                 {"output_token_throughput", "Output Token Throughput", "tokens/sec", s->output_throughput}},
                {any, {"request_count", "Request Count", "requests", (double)s->n_requests}},
                {rates, {"request_throughput", "Request Throughput", "requests/sec", s->request_throughput}},
                {any, {"total_isl", "Total Input Sequence Length", "tokens", s->total_isl}},
                {any, {"total_osl", "Total Output Sequence Length", "tokens", s->total_osl}},
        };
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(all); i++)
                if (all[i].there)
                        out[n++] = all[i].single;
        return n;
}

/* ---- failures */

struct load_errors load_error_of(const struct load_record *r)
{
        struct load_errors e = {.count = 1};

        if (r->canceled) {
                e.code = 499; /* as AIPerf says it */
                e.type = "RequestCancellationError";
                e.message = "the run ended before its answer";
                return e;
        }
        e.code = r->status >= 400 ? r->status : 0;
        e.type = r->error_kind ? r->error_kind : "Error";
        e.message = r->error;
        return e;
}

static int by_count(const void *a, const void *b)
{
        const struct load_errors *x = a, *y = b;

        if (x->count != y->count)
                return x->count < y->count ? 1 : -1;
        return strcmp(x->type, y->type);
}

static void count_error(struct arena *a, struct map *index, struct load_errors *groups, size_t *n,
                        struct load_errors e, bool messages)
{
        const char *key = arena_printf(a, "%d\n%s\n%s", e.code, e.type, messages ? e.message : "");
        struct load_errors *group = map_get(index, str_of(key));

        if (!group && *n == LOAD_ERRORS_MAX - 1) {
                groups[*n] = (struct load_errors){.type = "Other", .message = "failures of other kinds"};
                (*n)++;
        }
        if (!group && *n == LOAD_ERRORS_MAX)
                group = &groups[*n - 1];
        if (group) {
                group->count++;
                return;
        }
        groups[*n] = e;
        map_put(index, str_of(key), &groups[(*n)++]);
}

struct load_errors *load_error_groups(struct arena *a, const struct load_report *r, bool messages,
                                      size_t *ret_n)
{
        _cleanup_(arena_done) struct arena keys = ARENA_INIT;
        _cleanup_(map_done) struct map index = MAP_INIT;
        struct load_errors *groups = arena_new_array(a, struct load_errors, LOAD_ERRORS_MAX);

        *ret_n = 0;
        for (size_t i = 0; i < r->n; i++)
                if (!r->records[i].warmup && !load_succeeded(&r->records[i]))
                        count_error(&keys, &index, groups, ret_n, load_error_of(&r->records[i]), messages);
        qsort(groups, *ret_n, sizeof(*groups), by_count);
        return groups;
}
