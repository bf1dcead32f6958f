/*
 * Any bytes as a metrics file, as lines of output and as a sample: a sentence, or figures within their bounds that mean
 * the same when they are written and read again.
 */
#include "fuzz/fuzz.h"
#include "probe/measure/internal.h"
#include "json/json.h"

#include <math.h>

static void check_refusal(const struct err *err)
{
        REQUIRE(err->code != E_OK && err->code != E_INTERNAL && err->text[0]);
}

static void check_sample(struct arena *a, const struct measure_sample *s)
{
        struct err err = ERR_INIT;
        struct measure_sample again;
        struct json *json = measure_sample_json(a, s);

        REQUIRE(json_len(s->metrics) <= MEASURE_METRICS_MAX);
        REQUIRE(measure_sample_parse(a, json, &again, &err) == 0);
        REQUIRE(streq(json_print(a, json), json_print(a, measure_sample_json(a, &again))));
}

/* As a command that ended well and has said this of itself. */
static void check_metrics(struct arena *a, struct str text)
{
        struct measure_scan scan = MEASURE_SCAN_INIT;
        struct err err = ERR_INIT;
        struct measure_sample s;

        measure_sample_init(&s);
        s.wall = s.user = s.sys = s.exit_code = 0;
        if (measure_metrics_parse(a, text, &s, &err) < 0)
                check_refusal(&err);
        REQUIRE(!s.region.has || isnan(s.region.wall) || s.region.wall >= 0);
        measure_scan_feed(&scan, text);
        measure_scan_end(&scan);
        measure_scan_add(a, &scan, &s);
        measure_scan_done(&scan);
        check_sample(a, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct json_limits limits = {.bytes = MEASURE_SAMPLE_MAX, .depth = 32};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str text = str_n((const char *)data, size);
        struct err err = ERR_INIT;
        struct json *json = json_parse(&a, text, &limits, &err);
        struct measure_sample s;

        check_metrics(&a, text);
        if (!json)
                return 0;
        err_clear(&err);
        if (measure_sample_parse(&a, json, &s, &err) < 0)
                check_refusal(&err);
        else
                check_sample(&a, &s);
        return 0;
}
