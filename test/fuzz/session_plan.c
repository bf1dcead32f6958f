/*
 * Plans come as an argument that others may have made, checkpoints from a ConfigMap that others can write: what is taken is
 * bounded, gives an order of runs, and is written again the same.
 */
#include "fuzz/fuzz.h"
#include "probe/session/internal.h"

/* A checkpoint of PLAN: whatever is taken gives a result that fits. */
static void try_checkpoint(struct arena *a, const struct session_plan *plan, struct str text)
{
        _cleanup_(buf_done) struct buf first = BUF_INIT(8 << 20), again = BUF_INIT(8 << 20);
        _cleanup_(samples_done) struct session_samples s = {0}, back = {0};
        struct err err = ERR_INIT;

        samples_init(&s, plan);
        samples_init(&back, plan);
        if (session_checkpoint_parse(&s, text, &err) < 0)
                return;
        session_checkpoint_text(&s, &first);
        REQUIRE(session_checkpoint_parse(&back, buf_str(&first), &err) == 0);
        session_checkpoint_text(&back, &again);
        REQUIRE(str_eq(buf_str(&first), buf_str(&again)));
        REQUIRE(strlen(json_print(a, session_result(a, &s))) <= SESSION_RESULT_MAX);
}

static void check_plan(struct arena *a, const struct session_plan *p)
{
        size_t *order = arena_new_array(a, size_t, plan_entries(p));
        bool *seen = arena_new_array(a, bool, plan_entries(p));

        REQUIRE(plan_entries(p) > 0 && plan_entries(p) <= SESSION_ENTRIES_MAX);
        REQUIRE(plan_entries(p) * plan_blocks(p) * p->pods <= SESSION_RUNS_MAX);
        REQUIRE(p->baseline < p->n && p->groups <= SESSION_GROUPS_MAX);
        block_order(p, 0, plan_blocks(p) - 1, order);
        for (size_t i = 0; i < plan_entries(p); i++) {
                const struct session_algorithm *al = entry_algorithm(p, i);
                const struct session_job job = {
                        .command = al->command, .env = al->env, .n_env = al->n_env, .expand = true};
                char **argv;
                const char **env;

                REQUIRE(order[i] < plan_entries(p) && !seen[order[i]]);
                seen[order[i]] = true;
                argv = job_argv(a, &job);
                env = job_env(a, &job);
                REQUIRE((!argv || argv[0]) && (!env || env[0])); /* NULL: too long */
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char fixed[] =
                "{\"iterations\": 2, \"sizes\": [1, 2], \"price\": {\"perRun\": 1}, \"algorithms\": "
                "[{\"name\": \"a\", \"command\": [\"x\"]}, {\"name\": \"b\", \"command\": [\"y\"]}]}";
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str text = str_n((const char *)data, size);
        struct session_plan plan;
        struct wire_message m = {0};
        struct err err = ERR_INIT;

        (void)!wire_parse(&a, text, &m, &err);
        if (session_plan_parse(&a, text, &plan, &err) == 0)
                check_plan(&a, &plan);
        REQUIRE(session_plan_parse(&a, str_of(fixed), &plan, &err) == 0);
        try_checkpoint(&a, &plan, text);
        return 0;
}
