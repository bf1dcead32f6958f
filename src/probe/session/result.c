/*
 * result.json: the whole, with as much detail as fits.
 */
#include "probe/session/internal.h"

enum { WARNINGS_FEW = 8, WARNINGS_FEWEST = 2 };

static const char *const left_out[RESULT_LEVELS_] = {
        [RESULT_SHORT_MODELS] = "long lists of mlResults",
        [RESULT_NO_MEMORY_PAIRS] = "pairs of memory and statistics.cpu",
        [RESULT_FEW_METRICS] = "all but 8 metrics of each, statistics.memory",
        [RESULT_NO_MODELS] = "mlResults, metrics, pairs without the baseline",
        [RESULT_NO_PAIRS] = "pairs, recommendations, most statistics",
        [RESULT_NAMES] = "everything but the figures; samples.json has the runs",
        [RESULT_SHORT_NAMES] = "what of a name is beyond 64 bytes, messages of errors",
};

static struct json *warnings(struct arena *a, const struct analysis *an, enum result_level level)
{
        struct json *list = json_array(a);
        size_t most = level < RESULT_FEW_METRICS   ? SIZE_MAX
                      : level < RESULT_SHORT_NAMES ? WARNINGS_FEW
                                                   : WARNINGS_FEWEST;

        vec_foreach (w, &an->warnings)
                if (json_len(list) < most)
                        json_append(list, json_string(a, *w));
        return list;
}

static struct json *left(struct arena *a, enum result_level level)
{
        struct json *list = json_array(a);

        for (int i = 1; i <= (int)level; i++)
                json_append(list, json_string(a, left_out[i]));
        return json_len(list) ? list : NULL;
}

static struct json *whole(struct arena *a, const struct analysis *an, enum result_level level)
{
        const struct session_samples *s = an->samples;
        const struct session_plan *p = an->plan;
        struct json *entries = json_array(a);

        for (size_t i = 0; i < plan_entries(p); i++)
                json_append(entries, result_entry(a, an, i, level));
        return json_build(
                a,
                "{'version': 1, 'unit': %s, 'contended': %p, 'pods': %u, 'machine': %p, 'warnings': %p, "
                "'algorithms': %p, 'comparison': %p, 'scaling': %p, 'recommendations': %p, 'left': %p}",
                p->pods > 1 ? "pod" : "process in one pod", json_truth(a, p->parallel && plan_entries(p) > 1),
                s->pods_done, s->machines.n ? json_copy(a, s->machines.v[s->machines.n - 1]) : NULL,
                warnings(a, an, level), entries, result_comparison(a, an, level),
                level < RESULT_NAMES && an->scaling ? json_copy(a, an->scaling) : NULL,
                level < RESULT_NO_PAIRS ? advise(a, an) : NULL, left(a, level));
}

struct json *session_result(struct arena *a, const struct session_samples *s)
{
        _cleanup_(arena_done) struct arena own = ARENA_INIT;
        _cleanup_(analysis_done) struct analysis an = {0};
        struct json *result = NULL;

        analyse(&own, s, &an);
        for (int level = RESULT_ALL; level < RESULT_LEVELS_; level++) {
                _cleanup_(buf_done) struct buf text = BUF_INIT(SESSION_RESULT_MAX);

                result = whole(a, &an, (enum result_level)level);
                json_write(result, JSON_COMPACT, &text);
                if (!text.overflow)
                        break;
        }
        return result;
}

bool session_succeeded(const struct session_samples *s, const char **reason, const char **message)
{
        *reason = *message = NULL;
        vec_foreach (row, &s->rows)
                if (!row->reason && row_counts(s->plan, row))
                        return true;
        if (s->reasons.n) {
                *reason = s->reasons.v[0].reason;
                *message = s->reasons.v[0].message;
        }
        return false;
}
