/*
 * What it costs to tell of each request in the metrics: a change, and a scrape, with as many objects as are told of and with
 * twice as many. The bars: a change costs the same with ten times the objects, and a scrape holds up the loop for no more
 * than 250 ms, the first one for no more than a second.
 */
#include "kinds/kinds.h"
#include "operator/operator.h"

#include <stdlib.h>

enum { ROUNDS = 20000 };

struct world {
        struct arena arena;
        struct metrics *metrics;
        struct cache *cache;
        struct buf text;
        unsigned version;
};

static bool always(void *arg)
{
        return true;
}

static void put(struct world *w, unsigned i, bool initial)
{
        static const char *const text =
                "{'metadata': {'namespace': 'team-%u', 'name': 'nightly-%u', 'uid': 'u-%u', "
                "'resourceVersion': '%u'}, "
                "'spec': {'algorithmName': 'quick_sort', 'inputSize': 100000}, 'status': {'phase': "
                "'Running', "
                "'run': {'attempt': 1}, 'progress': {'percent': 40.5, 'startedAt': '2026-06-30T23:59:00Z', "
                "'usage': {'memoryMb': 812, 'cpuPercent': 97}, 'estimatedCompletion': {'mid': "
                "'2026-07-01T00:01:30Z'}}, 'conditions': [{'type': 'Progressing', 'status': 'True', "
                "'reason': "
                "'Running', 'message': 'it is measured'}]}}";
        char *object = arena_printf(&w->arena, text, i % 100, i, i, ++w->version);
        struct json *json;

        for (char *p = object; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        json = json_parse(&w->arena, str_of(object), NULL, NULL);
        if (!json || cache_put(w->cache, json, &w->arena, initial, NULL) < 0)
                abort();
        arena_reset(&w->arena, 64 << 10);
}

static double scrape(struct world *w)
{
        struct clock clock = CLOCK_REAL;
        uint64_t began = clock_boot_ns(&clock);

        buf_clear(&w->text);
        metrics_write(w->metrics, &w->text);
        return (double)(clock_boot_ns(&clock) - began) / 1e6;
}

/* Microseconds a change, the parsing of its text among them. */
static double change(struct world *w, unsigned n)
{
        struct clock clock = CLOCK_REAL;
        uint64_t began = clock_boot_ns(&clock);

        for (unsigned i = 0; i < ROUNDS; i++)
                put(w, (i * 7919) % n, false);
        return (double)(clock_boot_ns(&clock) - began) / 1e3 / ROUNDS;
}

static bool measure(unsigned n, bool with, double *ret_change)
{
        struct clock clock = CLOCK_REAL;
        struct world w = {.metrics = metrics_new(), .text = BUF_INIT(METRICS_TEXT_MAX)};
        struct object_metrics *o = NULL;
        double first = 0, again = 0;
        bool whole;

        w.cache = cache_new(&(struct cache_config){.type = &ALGORITHMPROFILING});
        if (with) {
                o = object_metrics_new(&(struct object_metrics_config){
                        .clock = &clock, .metrics = w.metrics, .exports = always});
                object_metrics_add(o, w.cache);
        }
        for (unsigned i = 0; i < n; i++)
                put(&w, i, true);
        *ret_change = change(&w, n);
        if (with) {
                first = scrape(&w);
                again = scrape(&w);
                printf("%6u objects: a change %5.2f us, the first scrape %6.1f ms, the next %6.1f ms, %5.1f "
                       "MB\n",
                       n, *ret_change, first, again, (double)w.text.n / 1e6);
        } else {
                printf("%6u objects: a change %5.2f us without\n", n, *ret_change);
        }
        whole = !w.text.overflow;
        cache_free(w.cache);
        object_metrics_free(o);
        metrics_free(w.metrics);
        buf_done(&w.text);
        arena_done(&w.arena);
        return first <= 1000 && again <= 250 && whole;
}

int main(void)
{
        double without, few, many, most;
        bool ok = measure(5000, false, &without);

        ok = measure(500, true, &few) && ok;
        ok = measure(5000, true, &many) && ok;
        ok = measure(10000, true, &most) && ok;
        ok = ok && most < 3 * few;
        printf("%s: a change costs no more with more objects (x%.2f; caches of the processor count), scrapes "
               "in 250 ms\n",
               ok ? "ok" : "missed", most / few);
        return ok ? 0 : 1;
}
