/*
 * Where to measure: concurrencies, input lengths, and the KV size that bounds them.
 *
 * The arithmetic is upstream's to the bit (doubles, truncated), because a run is compared with another point by point.
 */
#include "probe/sla/sla.h"

enum {
        ISL_FIRST = 100,
        DECODE_MARGIN = 500, /* what decode leaves for the answers, whatever their length */
        KV_MAX = 1000000000, /* of a rank: more than any engine has */
};

size_t sla_request_grid(unsigned attn_dp, uint64_t max_concurrency, unsigned granularity,
                        uint64_t out[SLA_GRID_MAX])
{
        uint64_t ranks = MAX(attn_dp, 1U);
        uint64_t each = MIN(max_concurrency, (uint64_t)SLA_CONCURRENCY_MAX) / ranks;
        unsigned points = MIN(granularity, (unsigned)SLA_GRID_MAX);
        double step;

        if (each < points) {
                for (uint64_t i = 0; i < each; i++)
                        out[i] = ranks * (i + 1);
                return (size_t)each;
        }
        step = points > 1 ? (double)(each - 1) / (double)(points - 1) : 0;
        for (unsigned i = 0; i < points; i++)
                out[i] = ranks + (uint64_t)(i * step) * ranks;
        return points;
}

/* As Python's range(100, STOP, ROOM // GRANULARITY). STOP is near ROOM, so there are at most about twice GRANULARITY. */
static size_t isls(uint64_t stop, uint64_t room, unsigned granularity, uint64_t *out)
{
        uint64_t step = MAX(room / MAX(granularity, 1U), (uint64_t)1);
        size_t n = 0;

        for (uint64_t isl = ISL_FIRST; isl < stop && n < SLA_GRID_MAX; isl += step)
                out[n++] = isl;
        return n;
}

static int too_small(int64_t length, const char *phase, struct err *err)
{
        return err_set(err, E_INVALID, "max_context_length %lld is too small to profile %s",
                       (long long)length, phase);
}

/* What is left of CONTEXT; below 0 when it is shorter than that. */
static int64_t less(uint64_t context, int64_t margin)
{
        return (int64_t)MIN(context, (uint64_t)INT64_MAX) - margin;
}

int sla_prefill_isls(uint64_t context, unsigned granularity, uint64_t out[SLA_GRID_MAX], size_t *n,
                     struct err *err)
{
        int64_t longest = less(context, SLA_CONTEXT_MARGIN);

        *n = 0;
        if (longest <= ISL_FIRST)
                return too_small(longest, "prefill", err);
        *n = isls((uint64_t)longest, (uint64_t)longest - ISL_FIRST, granularity, out);
        return 0;
}

int sla_decode_isls(uint64_t context, unsigned granularity, uint64_t out[SLA_GRID_MAX], size_t *n,
                    struct err *err)
{
        int64_t longest = less(context, DECODE_MARGIN);

        *n = 0;
        if (longest <= ISL_FIRST)
                return too_small(longest, "decode", err);
        *n = isls((uint64_t)longest, (uint64_t)longest, granularity, out);
        return 0;
}

/* ---- what logs say */

/* Cuts S behind the first WORD; false: it is not there. */
static bool skip_past(struct str *s, struct str word)
{
        const char *at = s->n ? memmem(s->p, s->n, word.p, word.n) : NULL;

        if (!at)
                return false;
        *s = str_n(at + word.n, s->n - (size_t)(at + word.n - s->p));
        return true;
}

/* Digits, with commas between thousands; cuts them off. */
static bool take_whole(struct str *s, double *ret)
{
        size_t digits = 0;

        for (*ret = 0; s->n && ((*s->p >= '0' && *s->p <= '9') || (*s->p == ',' && digits)); s->p++, s->n--)
                if (*s->p != ',') {
                        *ret = *ret * 10 + (*s->p - '0');
                        digits++;
                }
        return digits && digits <= 15;
}

/* 24.41, with all digits in one division, as a correct reader has it (up to 2^53). */
static bool take_decimal(struct str *s, double *ret)
{
        double digits = 0, divisor = 1;
        size_t n = 0;
        bool dot = false;

        for (; s->n && ((*s->p >= '0' && *s->p <= '9') || (*s->p == '.' && !dot)); s->p++, s->n--) {
                if (*s->p == '.') {
                        dot = true;
                        continue;
                }
                digits = digits * 10 + (*s->p - '0');
                divisor *= dot ? 10 : 1;
                n++;
        }
        *ret = digits / divisor;
        return n && n <= 15;
}

/* "Maximum concurrency for 4,096 tokens per request: 24.41x" */
static bool vllm_line(struct str line, double *ret)
{
        double tokens, times;

        if (!skip_past(&line, STR("Maximum concurrency for ")) || !take_whole(&line, &tokens) ||
            !skip_past(&line, STR(" tokens per request: ")) || !take_decimal(&line, &times))
                return false;
        *ret = tokens * times;
        return true;
}

/* "KV Cache is allocated. #tokens: 123456, K size: ..." */
static bool sglang_line(struct str line, double *ret)
{
        if (!skip_past(&line, STR("#tokens:")))
                return false;
        line = str_trim(line);
        return take_whole(&line, ret);
}

/* "[MemUsageChange] Allocated 68.69 GiB for max tokens in paged KV cache (643136)." */
static bool trtllm_line(struct str line, double *ret)
{
        return skip_past(&line, STR("paged KV cache (")) && take_whole(&line, ret) && line.n &&
               line.p[0] == ')';
}

uint64_t sla_kv_from_log(const char *backend, struct str log, unsigned attn_dp)
{
        static const struct {
                const char *backend;
                bool (*line)(struct str line, double *ret);
                bool last; /* TRT-LLM tries a small cache first */
        } readers[] = {
                {"vllm", vllm_line, false}, {"sglang", sglang_line, false}, {"trtllm", trtllm_line, true}};
        double tokens = 0, found;

        for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
                if (!streq(backend, readers[i].backend))
                        continue;
                while (log.n) {
                        if (!readers[i].line(str_split(&log, '\n'), &found))
                                continue;
                        tokens = found;
                        if (!readers[i].last)
                                break;
                }
        }
        return (uint64_t)MIN(tokens, (double)KV_MAX) * MAX(attn_dp, 1U);
}
