/*
 * Texts that are much alike in few bytes, and those that are not, or are too short or too long for it.
 */
#include "unit/unit.h"

#include "kube/squeeze.h"

enum { MOST = 80 << 10 };

/* Of 64 letters by chance: a quarter less is all that can be had of it. */
static struct str noise(char *out, size_t n, uint64_t seed)
{
        struct rng rng;

        rng_seed(&rng, seed);
        for (size_t i = 0; i < n; i++)
                out[i] = (char)('0' + rng_below(&rng, 64));
        return str_n(out, n);
}

static unsigned dictionaries(const struct squeeze *s)
{
        unsigned n = 0;

        while (n < SQUEEZE_DICTIONARIES && s->dictionaries[n].p)
                n++;
        return n;
}

static void comes_back(struct squeeze *s, struct str text, unsigned by)
{
        struct str small, copy;

        assert_int_equal(squeeze_text(s, text, &small), by);
        assert_in_range(small.n, 1, text.n / 2);
        copy = str_n(xmemdup(small.p, small.n), small.n);
        assert_true(str_eq(squeeze_expand(s, copy, by, text.n), text));
        free((char *)copy.p);
}

static void is_left(struct squeeze *s, struct str text)
{
        struct str small;

        assert_int_equal(squeeze_text(s, text, &small), 0);
}

static void short_and_long_ones_are_left(void **state)
{
        struct squeeze *s = xcalloc(1, sizeof(*s));
        char *text = xcalloc(1, MOST);

        is_left(s, str_n(text, 255));
        is_left(s, str_n(text, (64 << 10) + 1));
        assert_int_equal(dictionaries(s), 0);
        comes_back(s, str_n(text, 256), 1);
        comes_back(s, str_n(text, 64 << 10), 1);
        free(text);
        squeeze_free(s);
}

/* Longer than a dictionary may be: it is halved if it goes on as it begins, and takes no dictionary's place if not. */
static void what_its_own_beginning_does_not_halve(void **state)
{
        struct squeeze *s = xcalloc(1, sizeof(*s));
        char *text = xcalloc(1, MOST);
        struct str odd = noise(text, 40 << 10, 1);

        is_left(s, odd);
        is_left(s, odd);
        assert_int_equal(dictionaries(s), 0);
        memcpy(text + (12 << 10), text, 12 << 10);
        comes_back(s, str_n(text, 24 << 10), 1);
        is_left(s, noise(text, 40 << 10, 2));
        assert_int_equal(dictionaries(s), 1);
        free(text);
        squeeze_free(s);
}

static void a_fifth_shape_is_left(void **state)
{
        struct squeeze *s = xcalloc(1, sizeof(*s));
        char text[4][1024], other[1024];

        for (unsigned i = 0; i < 4; i++)
                comes_back(s, noise(text[i], sizeof(text[i]), i), i + 1);
        is_left(s, noise(other, sizeof(other), 9));
        for (unsigned i = 0; i < 4; i++) {
                text[i][500] = '!';
                comes_back(s, str_n(text[i], sizeof(text[i])), i + 1);
        }
        squeeze_free(s);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_and_long_ones_are_left),
        cmocka_unit_test(what_its_own_beginning_does_not_halve),
        cmocka_unit_test(a_fifth_shape_is_left),
};

UNIT_MAIN(tests)
