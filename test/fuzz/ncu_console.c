/*
 * What ncu and a program print, in any pieces: the same is understood however it is cut.
 */
#include "fuzz/fuzz.h"
#include "probe/ncu/ncu.h"

static void feed(struct ncu_console *c, struct str text, size_t piece)
{
        ncu_console_init(c);
        while (text.n) {
                size_t n = MIN(piece, text.n);

                (void)ncu_console_feed(c, str_n(text.p, n));
                text.p += n;
                text.n -= n;
        }
}

/* The first byte says how long the pieces are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(ncu_console_done) struct ncu_console whole, cut;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str text = size ? str_n((const char *)data + 1, size - 1) : STR_NULL;

        feed(&whole, text, SIZE_MAX);
        feed(&cut, text, size ? (size_t)data[0] + 1 : 1);
        REQUIRE(whole.launches == cut.launches && whole.failure == cut.failure &&
                whole.passes == cut.passes && whole.n_warnings == cut.n_warnings &&
                whole.replay == cut.replay);
        REQUIRE(streq(whole.kernel, cut.kernel) && streq(whole.detail, cut.detail) &&
                streq(whole.report, cut.report));
        REQUIRE(whole.failure < NCU_FAILURES && whole.percent <= 100 && whole.n_warnings <= NCU_WARNINGS_MAX);
        REQUIRE(utf8_valid(whole.detail, strlen(whole.detail)) &&
                utf8_valid(whole.kernel, strlen(whole.kernel)));
        REQUIRE(strlen(ncu_failure_sentence(&a, whole.failure, whole.detail)) <= 500);
        return 0;
}
