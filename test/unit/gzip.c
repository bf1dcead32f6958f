#include "unit/unit.h"

#include "run/gzip.h"

static struct buf packed(struct str text)
{
        struct buf out = BUF_INIT(SIZE_MAX);

        assert_int_equal(gzip_add(&out, text, NULL), 0);
        return out;
}

static void assert_there_and_back(struct str text)
{
        _cleanup_(buf_done) struct buf gz = packed(text), back = BUF_INIT(text.n);

        assert_int_equal(gunzip_add(&back, buf_str(&gz), NULL), 0);
        assert_int_equal(back.n, text.n);
        assert_true(str_eq(buf_str(&back), text));
}

static void test_there_and_back(void **state)
{
        static char large[1 << 20];
        struct rng rng;

        rng_seed(&rng, 7);
        for (size_t i = 0; i < sizeof(large); i++)
                large[i] = (char)rng_below(&rng, i % 2 ? 256 : 4);
        assert_there_and_back(STR(""));
        assert_there_and_back(STR("x"));
        assert_there_and_back(STR("{\"answer\": 42}"));
        for (size_t n = 16380; n < 16390; n++) /* around the piece that is done at a time */
                assert_there_and_back(str_n(large, n));
        assert_there_and_back(str_n(large, sizeof(large)));
}

static void test_it_adds_to_what_is_there(void **state)
{
        _cleanup_(buf_done) struct buf gz = packed(STR("world")), back = BUF_INIT(100);

        buf_adds(&back, "hello ");
        assert_int_equal(gunzip_add(&back, buf_str(&gz), NULL), 0);
        assert_str(buf_str(&back), "hello world");
}

static void test_the_same_text_gives_the_same_bytes(void **state)
{
        _cleanup_(buf_done) struct buf a = packed(STR("again and again")), b = packed(STR("again and again"));

        assert_true(str_eq(buf_str(&a), buf_str(&b)));
        assert_memory_equal(a.p + 4, "\0\0\0\0", 4); /* no time */
}

static void test_a_limit_is_a_limit(void **state)
{
        static const char zeros[100000];
        _cleanup_(buf_done) struct buf gz = packed(str_n(zeros, sizeof(zeros)));
        struct err err = ERR_INIT;

        for (size_t max = sizeof(zeros) - 2; max <= sizeof(zeros) + 1; max++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(max);

                assert_int_equal(gunzip_add(&out, buf_str(&gz), &err), max < sizeof(zeros) ? -1 : 0);
                if (max < sizeof(zeros))
                        assert_int_equal(err.code, E_TOO_LARGE);
        }
        for (size_t max = 0; max <= gz.n; max++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(max);

                assert_int_equal(gzip_add(&out, str_n(zeros, sizeof(zeros)), &err), max < gz.n ? -1 : 0);
                if (max < gz.n)
                        assert_int_equal(err.code, E_TOO_LARGE);
        }
}

static void test_what_is_not_gzip_is_refused(void **state)
{
        _cleanup_(buf_done) struct buf gz = packed(STR("all of it, or nothing of it"));
        struct err err = ERR_INIT;

        for (size_t n = 0; n < gz.n; n++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(100);

                assert_int_equal(gunzip_add(&out, str_n(gz.p, n), &err), -1);
                assert_int_equal(err.code, E_INVALID);
        }
}

/* Not each bit matters (some are padding), but none makes another text. */
static void test_a_bit_that_flipped_never_makes_another_text(void **state)
{
        _cleanup_(buf_done) struct buf gz = packed(STR("all of it, or nothing of it"));

        for (size_t i = 0; i < 8 * gz.n; i++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(100);

                gz.p[i / 8] = (char)(gz.p[i / 8] ^ 1 << i % 8);
                if (gunzip_add(&out, buf_str(&gz), NULL) == 0)
                        assert_str(buf_str(&out), "all of it, or nothing of it");
                gz.p[i / 8] = (char)(gz.p[i / 8] ^ 1 << i % 8);
        }
}

static void test_nothing_may_follow(void **state)
{
        _cleanup_(buf_done) struct buf gz = packed(STR("the end")), out = BUF_INIT(100);

        buf_adds(&gz, "!");
        assert_int_equal(gunzip_add(&out, buf_str(&gz), NULL), -1);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_it_adds_to_what_is_there),
        cmocka_unit_test(test_the_same_text_gives_the_same_bytes),
        cmocka_unit_test(test_a_limit_is_a_limit),
        cmocka_unit_test(test_what_is_not_gzip_is_refused),
        cmocka_unit_test(test_a_bit_that_flipped_never_makes_another_text),
        cmocka_unit_test(test_nothing_may_follow),
};

UNIT_MAIN(tests)
