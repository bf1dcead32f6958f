/*
 * A tokenizer is a file from outside: whatever the bytes are, they are refused with a reason, or a prompt made of their words has
 * the length that was asked for.
 */
#include "fuzz/fuzz.h"
#include "probe/load/tokens_internal.h"

static void check_prompts(const struct tokens *t, uint64_t seed)
{
        struct rng rng;

        rng_seed(&rng, seed);
        for (uint32_t n = 0; n < 20; n += 1 + n / 2) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 16);
                bool exact = false;

                tokens_prompt(t, &rng, n, &out);
                REQUIRE(!out.overflow);
                REQUIRE(tokens_count(t, buf_str(&out), &exact) == n && exact);
        }
}

/* The first byte says which of the two it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(tokens_free) struct tokens *t = tokens_new("fuzz");
        _cleanup_(free_ptr) char *text = NULL;
        struct err err = ERR_INIT;
        size_t n;
        int r;

        if (!size)
                return 0;
        n = size - 1;
        text = xmalloc(n + 1);
        memcpy(text, data + 1, n);
        r = data[0] == 'w' ? tokens_read_list(t, str_n(text, n), &err)
                           : tokens_read_tokenizer(t, text, n, &err);
        if (r < 0) {
                REQUIRE(err.code != E_OK && err.text[0]);
                return 0;
        }
        REQUIRE(t->words.n > 0);
        check_prompts(t, size);
        REQUIRE(tokens_count(t, str_n((const char *)data, size), NULL) <= size);
        return 0;
}
