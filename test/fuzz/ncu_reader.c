/*
 * What Nsight Compute wrote: however a text is cut into pieces, the same launches come out of it and the same end; every
 * value is a number, every name ends; and what is told about them is a document, whatever they were.
 *
 * The first byte chooses the cutting and the rule, the rest is the text.
 */
#include "probe/ncu/ncu.h"

#include <math.h>

#include "fuzz/fuzz.h"

struct outcome {
        struct buf launches; /* as they stand in memory */
        struct ncu_sum *sum;
        struct err err;
        enum ncu_layout layout;
};

static void on_launch(void *arg, const struct ncu_launch *l)
{
        struct outcome *o = arg;

        REQUIRE(strnlen(l->kernel, sizeof(l->kernel)) < sizeof(l->kernel));
        REQUIRE(strnlen(l->device, sizeof(l->device)) < sizeof(l->device));
        REQUIRE(strnlen(l->cc, sizeof(l->cc)) < sizeof(l->cc));
        REQUIRE(l->has >> NCU_METRICS == 0);
        buf_printf(&o->launches, "%s\n%s\n%s\n", l->kernel, l->device, l->cc);
        for (unsigned m = 0; m < NCU_METRICS; m++) {
                if (!(l->has & (1u << m)))
                        continue;
                REQUIRE(isfinite(l->value[m]));
                buf_printf(&o->launches, "%u=%a\n", m, l->value[m]);
        }
        ncu_sum_add(o->sum, l);
}

/* Cuts TEXT into pieces of 1 to STEP bytes, by a simple generator. STEP 0: one piece. */
static void run(struct outcome *o, struct str text, uint32_t step)
{
        _cleanup_(ncu_reader_free) struct ncu_reader *r = ncu_reader_new(on_launch, o);
        uint32_t random = step;
        int result = 0;

        *o = (struct outcome){.launches = BUF_INIT(SIZE_MAX), .sum = ncu_sum_new(), .err = ERR_INIT};
        while (text.n && result == 0) {
                /* Memory of its own, so that a look beyond the piece is seen. */
                size_t n = step ? MIN(text.n, (size_t)(1 + (random >> 16) % step)) : text.n;
                _cleanup_(free_ptr) char *piece = xmemdup(text.p, n);

                random = random * 1664525u + 1013904223u;
                result = ncu_reader_feed(r, str_n(piece, n), &o->err);
                text = str_n(text.p + n, text.n - n);
        }
        if (result == 0)
                result = ncu_reader_end(r, &o->err);
        REQUIRE((result < 0) == (o->err.code != E_OK));
        REQUIRE(result < 0 || ncu_sum_launches(o->sum) > 0);
        o->layout = ncu_reader_layout(r);
}

static void tell(const struct outcome *o, enum ncu_rule rule)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct ncu_context c = {.rule = rule, .layout = o->layout};
        struct json *summary = ncu_summary(&a, o->sum, &c), *kratos = ncu_summary_kratos(&a, summary);

        REQUIRE(json_parse(&a, str_of(json_print(&a, summary)), NULL, NULL));
        REQUIRE(json_parse(&a, str_of(json_print(&a, kratos)), NULL, NULL));
        json_foreach (m, json_at(kratos, "metrics"))
                REQUIRE(json_is(m, JSON_STRING));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct outcome whole, cut;
        struct str text;

        if (size < 1)
                return 0;
        text = str_n((const char *)data + 1, size - 1);
        run(&whole, text, 0);
        run(&cut, text, 1u + (data[0] & 0x7f));
        REQUIRE(whole.layout == cut.layout);
        REQUIRE(str_eq(buf_str(&whole.launches), buf_str(&cut.launches)));
        REQUIRE(streq(whole.err.text, cut.err.text));
        tell(&whole, data[0] & 0x80 ? NCU_RULE_UPSTREAM : NCU_RULE_SOL);
        buf_done(&whole.launches);
        buf_done(&cut.launches);
        ncu_sum_free(whole.sum);
        ncu_sum_free(cut.sum);
        return 0;
}
