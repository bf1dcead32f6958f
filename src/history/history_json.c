/*
 * A row as JSON: what `sonde history -o json` and the REST API tell of it.
 */
#include <math.h>

#include "history/history.h"

static void set_number(struct arena *a, struct json *of, const char *key, double value)
{
        if (isfinite(value))
                json_set(a, of, key, json_double(a, value));
}

static struct json *measure_json(struct arena *a, const struct history_measure *m)
{
        struct json *one = json_build(a, "{'series': %s, 'algorithm': %s, 'inputSize': %lld, 'n': %zu}",
                                      m->series, m->algorithm, (long long)m->size, m->n);

        set_number(a, one, "seconds", m->time);
        set_number(a, one, "low", m->low);
        set_number(a, one, "high", m->high);
        set_number(a, one, "memoryBytes", m->memory);
        set_number(a, one, "cpuCores", m->cpu);
        set_number(a, one, "cost", m->cost);
        return one;
}

static struct json *when(struct arena *a, usec_t at)
{
        char text[TIME_TEXT_MAX];

        return at ? json_string(a, time_format(at, text)) : NULL;
}

/* What was JSON when it was kept; NULL: it is none. */
static struct json *kept(struct arena *a, const char *text)
{
        return text ? json_parse(a, str_of(text), NULL, NULL) : NULL;
}

static struct json *phase_json(struct arena *a, const struct history_phase *p)
{
        struct json *one = json_build(a, "{'name': %s}", p->name);

        set_number(a, one, "seconds", p->seconds);
        if (p->total) {
                json_set(a, one, "steps", json_u64(a, p->steps));
                json_set(a, one, "totalSteps", json_u64(a, p->total));
        }
        return one;
}

struct json *history_row_json(const struct history_row *row, struct arena *a)
{
        struct json *one = json_build(a,
                                      "{'kind': %s, 'namespace': %s, 'name': %s, 'uid': %s, 'attempt': %llu, "
                                      "'outcome': %s}",
                                      row->kind, row->ns, row->name, row->uid,
                                      (unsigned long long)row->attempt, row->outcome);
        struct json *measures = row->n_measures ? json_array(a) : NULL;
        struct json *phases = row->n_phases ? json_array(a) : NULL;

        json_set(a, one, "startedAt", when(a, row->started));
        json_set(a, one, "finishedAt", when(a, row->finished));
        json_set(a, one, "shape", *row->shape ? json_string(a, row->shape) : NULL);
        json_set(a, one, "labels", kept(a, row->labels));
        json_set(a, one, "machine", kept(a, row->machine));
        json_set(a, one, "image", json_string(a, row->image));
        json_set(a, one, "specHash", json_string(a, row->spec_hash));
        for (size_t i = 0; i < row->n_measures; i++)
                json_append(measures, measure_json(a, &row->measures[i]));
        json_set(a, one, "measures", measures);
        for (size_t i = 0; i < row->n_phases; i++)
                json_append(phases, phase_json(a, &row->phases[i]));
        json_set(a, one, "phases", phases);
        json_set(a, one, "samples", kept(a, row->samples));
        return one;
}
