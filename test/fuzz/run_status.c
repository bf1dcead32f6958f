/*
 * Any bytes as a status file: what is accepted is within all bounds, fits the ConfigMap, and means the same when the
 * operator reads what the relay wrote of it.
 */
#include "fuzz/fuzz.h"
#include "run/status.h"

static const usec_t now = (usec_t)1769220522 * USEC_PER_SEC;

static void check_text(const char *s, size_t max)
{
        if (!s)
                return;
        REQUIRE(strlen(s) <= max && utf8_valid(s, strlen(s)));
        for (; *s; s++)
                REQUIRE((unsigned char)*s >= 0x20 || *s == '\n' || *s == '\t');
}

static void check_plan(const struct run_plan *plan)
{
        REQUIRE(plan->n >= 1 && plan->n <= RUN_PHASES_MAX);
        for (uint32_t i = 0; i < plan->n; i++) {
                REQUIRE(!run_phase_fault(str_of(plan->phases[i].name)) &&
                        !run_phase_terminal(plan->phases[i].name));
                REQUIRE(plan->phases[i].weight > 0 && plan->phases[i].weight <= RUN_WEIGHT_MAX);
                REQUIRE(run_phase_number(plan, plan->phases[i].name) == (int)i + 1);
        }
}

static void check_status(struct arena *a, const struct run_status *s)
{
        const int64_t max = 1000000000;

        REQUIRE(!run_phase_fault(str_of(s->phase)));
        REQUIRE(s->phase_number >= 0 && s->phase_number <= max && s->total_phases >= 0 &&
                s->total_phases <= max);
        check_text(s->message, RUN_MESSAGE_MAX);
        check_text(s->sub_phase, RUN_SUB_PHASE_MAX);
        check_text(s->parallel_mapping, RUN_MAPPING_MAX);
        check_text(s->error, RUN_ERROR_MAX);
        REQUIRE(s->message && s->parallel_mapping && !s->error == !streq(s->phase, "Failed"));
        REQUIRE(s->has_progress ? s->current_step >= 0 && s->total_steps >= 0 : s->current_step == -1);
        REQUIRE(s->current_step <= max && s->total_steps <= max && s->current_gpus <= max);
        REQUIRE(s->total_steps <= 0 || s->current_step <= s->total_steps);
        REQUIRE(s->timestamp <= now + 300 * USEC_PER_SEC && s->started_at <= now + 300 * USEC_PER_SEC);
        REQUIRE(s->overall <= 100 && s->sequence <= RUN_SEQUENCE_MAX);
        check_plan(run_status_plan(a, s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct run_status s, again;
        const char *text;

        if (run_status_parse(&a, str_n((const char *)data, size), now, &s, &err) < 0) {
                REQUIRE(err.code != E_OK && err.code != E_INTERNAL && err.text[0]);
                return 0;
        }
        check_status(&a, &s);
        text = json_print(&a, run_status_json(&a, &s));
        REQUIRE(strlen(text) <= RUN_STATUS_TEXT_MAX);
        REQUIRE(run_status_parse(&a, str_of(text), now, &again, &err) == 0);
        check_status(&a, &again);
        REQUIRE(streq(text, json_print(&a, run_status_json(&a, &again))));
        return 0;
}
