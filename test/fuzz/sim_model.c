/*
 * The model file of a simulated engine: whatever the bytes are, the answer is a model or an error with a sentence, and a model
 * that is written reads back as the same one and has times and sizes.
 */
#include "probe/sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sim_model model, again;
        struct err err = ERR_INIT;
        struct json *doc;

        if (sim_model_parse(&a, str_n((const char *)data, size), "fuzz", &model, &err) < 0) {
                if (err.code == E_OK || !str_has_prefix(str_of(err.text), STR("fuzz")))
                        abort();
                return 0;
        }
        doc = sim_model_json(&a, &model);
        if (sim_model_read(&a, doc, "again", &again, &err) < 0)
                abort();
        if (sim_rank_kv(&model) != sim_rank_kv(&again) || sim_ranks(&model) != sim_ranks(&again) ||
            !streq(sim_fail_words(&model), sim_fail_words(&again)))
                abort();
        (void)sim_prefill_time(&model, UINT32_MAX, false);
        (void)sim_step_time(&model, UINT32_MAX, UINT32_MAX);
        return 0;
}
