/*
 * Any document as the input of `sla plan` and `sla pick`: a sentence, or an answer whose numbers keep their bounds.
 */
#include "fuzz/fuzz.h"
#include "probe/probe.h"
#include "json/json.h"

static void check_refusal(const struct err *err)
{
        REQUIRE(err->code != E_OK && err->code != E_INTERNAL && err->text[0]);
        REQUIRE(utf8_valid(err->text, strlen(err->text)) && !strchr(err->text, '\n'));
}

/* Whole numbers that grow; at most MAX of them. */
static void check_grid(const struct json *grid, size_t max)
{
        int64_t before = 0, value;

        REQUIRE(json_is(grid, JSON_ARRAY) && json_len(grid) <= max);
        json_foreach (number, grid) {
                REQUIRE(json_to_i64(number, &value) && value > before);
                before = value;
        }
}

static void check_plan(const struct json *out)
{
        const struct json *candidates = json_at(out, "candidates");
        int64_t steps = 0;

        REQUIRE(json_len(candidates) >= 1 && json_len(candidates) <= SLA_CANDIDATES_MAX);
        check_grid(json_at(out, "prefillIsls"), SLA_GRID_MAX);
        check_grid(json_at(out, "decodeIsls"), SLA_GRID_MAX);
        json_foreach (c, candidates) {
                struct sla_candidate read;

                REQUIRE(sla_candidate_parse(json_text(json_at(c, "label")), &read));
                if (json_at(c, "concurrencies"))
                        check_grid(json_at(c, "concurrencies"), SLA_GRID_MAX);
                json_foreach (row, json_at(c, "interpolation"))
                        check_grid(json_at(row, "concurrencies"), SLA_GRID_MAX);
        }
        json_foreach (phase, json_at(out, "steps")) {
                int64_t n;

                REQUIRE(json_to_i64(phase, &n) && n >= 1);
                steps += n;
        }
        /* What is measured is a step each, beside the three that are not. */
        REQUIRE(json_int(out, "points", -1) >= 0 && json_int(out, "points", -1) <= steps - 3);
}

static void check_choice(const struct json *out, const struct json *in, const char *side)
{
        const struct json *choice = json_at(out, side);

        REQUIRE(!choice == !json_len(json_at(in, side)));
        if (choice)
                REQUIRE((size_t)json_int(choice, "index", -1) < json_len(json_at(in, side)));
}

static void check_pick(const struct json *out, const struct json *in)
{
        const struct json *replicas = json_at(out, "replicas");

        check_choice(out, in, "prefill");
        check_choice(out, in, "decode");
        REQUIRE(json_len(json_at(out, "at")) == json_len(json_at(in, "at")));
        if (replicas) {
                REQUIRE(json_int(replicas, "prefill", 0) >= 1 && json_int(replicas, "decode", 0) >= 1);
                REQUIRE(json_int(replicas, "gpus", INT64_MAX) <=
                        json_int(json_at(in, "demand"), "maxGpuBudget", 8));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct json_limits limits = {.bytes = 1 << 16};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        const struct json *in = yaml_parse(&a, str_n((const char *)data, size), &limits, &err), *out;

        if (!in)
                return 0;
        out = sla_plan_json(&a, in, &err);
        if (out)
                check_plan(out);
        else
                check_refusal(&err);
        err_clear(&err);
        out = sla_pick_json(&a, in, &err);
        if (out)
                check_pick(out, in);
        else
                check_refusal(&err);
        return 0;
}
