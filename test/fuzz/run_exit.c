/*
 * exit.json lies where the workload can write too: whatever the bytes are, the answer is one end of a workload, which comes
 * back as it was written and has a sentence, or an error with a reason.
 */
#include "fuzz/fuzz.h"
#include "run/pod.h"

static void check_same(const struct run_exit *x, const struct run_exit *y)
{
        REQUIRE(x->code == y->code && x->signal == y->signal && x->oom == y->oom && x->lost == y->lost);
        REQUIRE(streq(x->error, y->error) && str_eq(x->tail, y->tail));
        REQUIRE(x->started_at == y->started_at && x->finished_at == y->finished_at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct run_exit e, again;
        struct err err = ERR_INIT;
        const char *sentence;

        if (run_exit_parse(&a, str_n((const char *)data, size), &e, &err) < 0) {
                REQUIRE(err.code != E_OK && err.text[0]);
                return 0;
        }
        REQUIRE((e.code >= 0) + (e.signal > 0) + (e.error != NULL) + e.lost == 1);
        REQUIRE(e.tail.n <= RUN_TAIL_MAX && utf8_valid(e.tail.p, e.tail.n));
        sentence = run_exit_sentence(&a, &e);
        REQUIRE(strlen(sentence) <= 500 && utf8_valid(sentence, strlen(sentence)));
        REQUIRE(run_exit_parse(&a, str_of(json_print(&a, run_exit_json(&a, &e))), &again, NULL) == 0);
        check_same(&e, &again);
        return 0;
}
