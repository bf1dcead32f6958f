/* Prompts of an exact number of tokens, out of the builtin words, lists and tokenizers made here. */
#include "unit/unit.h"

#include "probe/load/tokens_internal.h"
#include "unit/dir.h"

static struct tokens *load_text(const char *name, const char *text, struct err *err)
{
        char dir[UNIT_DIR_LEN];
        _cleanup_(free_ptr) char *path = NULL;

        unit_dir(dir);
        path = xasprintf("%s/%s", dir, name);
        assert_int_equal(file_replace(path, str_of(text), 0600, NULL), 0);
        return tokens_load(path, err);
}

static struct tokens *must_load(const char *name, const char *text)
{
        struct err err = ERR_INIT;
        struct tokens *t = load_text(name, text, &err);

        if (!t)
                fail_msg("%s", err.text);
        return t;
}

static void assert_refused(const char *name, const char *text, const char *why)
{
        struct err err = ERR_INIT;

        assert_null(load_text(name, text, &err));
        if (!strstr(err.text, why) || !strstr(err.text, name))
                fail_msg("\"%s\" says nothing of \"%s\"", err.text, why);
}

static void assert_count(const struct tokens *t, const char *text, uint64_t n, bool exact)
{
        bool is_exact = !exact;
        uint64_t count = tokens_count(t, str_of(text), &is_exact);

        if (count != n || is_exact != exact)
                fail_msg("\"%s\" has %llu tokens%s", text, (unsigned long long)count,
                         is_exact ? "" : ", estimated");
        assert_int_equal(tokens_count(t, str_of(text), NULL), n);
}

/* A prompt of any length counts as what was asked for. */
static void assert_prompts_are_exact(const struct tokens *t)
{
        static const uint32_t lengths[] = {0, 1, 2, 3, 17, 550, 4000};
        struct rng rng;

        rng_seed(&rng, 7);
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
                bool exact;

                tokens_prompt(t, &rng, lengths[i], &out);
                assert_false(out.overflow);
                assert_int_equal(tokens_count(t, buf_str(&out), &exact), lengths[i]);
                assert_true(exact);
        }
}

static void test_builtin_words(void **state)
{
        _cleanup_(tokens_free) struct tokens *t = tokens_load(NULL, NULL);
        struct str rest = str_of(tokens_builtin());
        size_t n = 0;

        assert_string_equal(tokens_name(t), "builtin");
        for (; rest.n; n++) {
                struct str word = str_split(&rest, ' ');

                assert_true(word.n >= 2 && word.n <= 12);
                for (size_t i = 0; i < word.n; i++)
                        assert_true(word.p[i] >= 'a' && word.p[i] <= 'z');
        }
        assert_int_equal(n, t->words.n); /* none is there twice */
        assert_true(n >= 300);
        assert_prompts_are_exact(t);
}

static void test_counts_without_a_vocabulary(void **state)
{
        _cleanup_(tokens_free) struct tokens *t = tokens_load(NULL, NULL);

        assert_count(t, "", 0, true);
        assert_count(t, "the water of life", 4, true);
        assert_count(t, " the water", 2, true);
        assert_count(t, "the  water", 3, false);
        assert_count(t, "the water ", 2, false);
        assert_count(t, " ", 0, false);
        assert_count(t, "the water.", 3, false);
        assert_count(t, "water zygotic", 3, false);
        assert_count(t, "the 1234567", 4, false);
        assert_count(t, "the \xc3\xa9\xc3\xa9", 3, false);
        assert_count(t, "the\nwater", 3, false);
}

static void test_the_same_state_gives_the_same_prompt(void **state)
{
        _cleanup_(tokens_free) struct tokens *t = tokens_load(NULL, NULL);
        _cleanup_(buf_done) struct buf a = BUF_INIT(1 << 16), b = BUF_INIT(1 << 16), c = BUF_INIT(1 << 16);
        struct rng rng;

        rng_seed(&rng, 1);
        tokens_prompt(t, &rng, 100, &a);
        tokens_prompt(t, &rng, 100, &c);
        rng_seed(&rng, 1);
        tokens_prompt(t, &rng, 100, &b);
        assert_true(str_eq(buf_str(&a), buf_str(&b)));
        assert_false(str_eq(buf_str(&a), buf_str(&c)));
}

static void test_a_word_list(void **state)
{
        _cleanup_(tokens_free) struct tokens *t = must_load("words.txt",
                                                            "alpha\r\n\n  beta \nalpha\n\xc3\xa9t\xc3\xa9");

        assert_string_equal(tokens_name(t), "words.txt");
        assert_int_equal(t->words.n, 3);
        assert_count(t, "beta \xc3\xa9t\xc3\xa9 alpha", 3, true);
        assert_prompts_are_exact(t);
        assert_refused("words.txt", "", "not a word");
        assert_refused("words.txt", "\n \n", "not a word");
        assert_refused("words.txt", "one\ntwo three\n", "line 2");
        assert_refused("words.txt", "one\n\xff\xfe\n", "line 2");
        assert_refused("words.txt", "0123456789012345678901234567890123456789012345678901234567890123456789",
                       "line 1");
}

static void test_no_such_file(void **state)
{
        struct err err = ERR_INIT;

        assert_null(tokens_load("/nonexistent/tokenizer.json", &err));
        assert_int_equal(err.code, E_NOT_FOUND);
        assert_null(tokens_load("/nonexistent/tokenizer.json", NULL));
}

/* "Ġ" is U+0120. */
#define G "\xc4\xa0"
#define M "\xe2\x96\x81"

static const char byte_level[] = "{'version': '1.0', 'added_tokens': [{'id': 99, 'content': '" G
                                 "added'}], 'model': {'type': 'BPE', 'vocab': {"
                                 "'a': 0, 'b': 1, 'c': 2, '" G "': 3, 'ab': 4, '" G "a': 5, '" G "ab': 6, '" G
                                 "abc': 7, '" G "ca': 8,"
                                 "'" G "Ab': 9, '" G "a1': 10, 'ca': 11, '" G
                                 "bb': 12, '.': 13, '\xc4\x8a': 14},"
                                 "'merges': ['a b', '" G " ab', '" G " c', '" G "c a', '" G
                                 "ab c', 'c a', '" G " a']}}";

/* JSON with " for '. */
static char *quoted(const char *text)
{
        char *s = xstrdup(text);

        for (char *c = s; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        return s;
}

static bool has_word(const struct tokens *t, const char *word)
{
        return map_get(&t->known, str_of(word));
}

static void test_words_of_a_byte_level_tokenizer(void **state)
{
        _cleanup_(free_ptr) char *text = quoted(byte_level);
        _cleanup_(tokens_free) struct tokens *t = must_load("tokenizer.json", text);

        assert_string_equal(tokens_name(t), "tokenizer.json");
        assert_true(has_word(t, "ab") && has_word(t, "abc") && has_word(t, "a") && has_word(t, "ca"));
        /* No letters alone, no lower case, an added token. */
        assert_false(has_word(t, "a1") || has_word(t, "Ab") || has_word(t, "added"));
        /* No merge makes it, though it is in the vocabulary. */
        assert_false(has_word(t, "bb"));
        assert_int_equal(t->words.n, 4);
        assert_int_equal(t->firsts.n, 3); /* without a blank, "abc" is two */
        assert_count(t, "ab abc ca", 3, true);
        assert_count(t, " abc abc", 2, true);
        assert_prompts_are_exact(t);
}

static void test_estimates_by_the_longest_pieces(void **state)
{
        _cleanup_(free_ptr) char *text = quoted(byte_level);
        _cleanup_(tokens_free) struct tokens *t = must_load("tokenizer.json", text);

        assert_count(t, "abc", 2, false);           /* ab c */
        assert_count(t, "ab abc.", 3, false);       /* ab, blank abc, stop */
        assert_count(t, "ab\nab", 3, false);        /* U+010A is the newline */
        assert_count(t, "zz", 2, false);            /* in no piece */
        assert_count(t, " abca\xc3\xa9", 4, false); /* two bytes in no piece */
}

static void test_merges_as_pairs_and_merges_that_do_not_count(void **state)
{
        _cleanup_(free_ptr) char *pairs = quoted("{'model': {'vocab': {'" G "ab': 1, '" G "ba': 2, 'b': 3},"
                                                 "'merges': [['a', 'b'], ['" G "', 'ab']]}}");
        _cleanup_(free_ptr) char *whole = quoted("{'model': {'ignore_merges': true, 'vocab': {'" G
                                                 "ab': 1, '" G "ba': 2}, 'merges': [['a', 'b']]}}");
        _cleanup_(free_ptr) char *none = quoted("{'model': {'vocab': {'" G "ab': 1, '" G "ba': 2}}}");
        _cleanup_(tokens_free) struct tokens *p = must_load("a.json", pairs), *w = must_load("a.json", whole),
                                             *n = must_load("a.json", none);

        assert_int_equal(p->words.n, 1);
        assert_true(has_word(p, "ab"));
        assert_int_equal(w->words.n, 2);
        assert_int_equal(n->words.n, 2);
        /* No word can begin a text without its blank, so the text begins with one. */
        assert_true(p->lead);
        assert_count(p, "ab ab", 3, false);
        assert_prompts_are_exact(p);
        assert_prompts_are_exact(w);
}

static void test_a_merge_that_leads_elsewhere(void **state)
{
        /* "Ġabc" is there, but "b c" is merged first, and "Ġa bc" is no pair. */
        _cleanup_(free_ptr) char *text = quoted("{'model': {'vocab': {'" G "abc': 1, '" G "ab': 2},"
                                                "'merges': ['b c', '" G " a', '" G "a b', '" G "ab c']}}");
        _cleanup_(tokens_free) struct tokens *t = must_load("a.json", text);

        assert_false(has_word(t, "abc"));
        assert_true(has_word(t, "ab"));
}

static void test_words_of_a_unigram_tokenizer(void **state)
{
        /* "▁unlikely" costs more than its two parts together; "▁house" less. */
        _cleanup_(free_ptr) char *text = quoted(
                "{'model': {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0.0], ['" M "', -2.5],"
                "['" M "the', -3.1], ['" M "house', -8], ['" M "un', -5], ['likely', -6], ['" M "ho', -7],"
                "['use', -6], ['" M "unlikely', -12], ['s', -3]]}}");
        _cleanup_(tokens_free) struct tokens *t = must_load("tokenizer.json", text);

        assert_true(has_word(t, "the") && has_word(t, "house") && has_word(t, "un") && has_word(t, "ho"));
        assert_false(has_word(t, "unlikely"));
        assert_int_equal(t->words.n, 4);
        assert_false(t->lead);
        assert_count(t, "the house", 2, true);
        assert_count(t, "the houses", 5,
                     false); /* t h e, house, s: the blank before the text is not seen here */
        assert_count(t, " the", 1, false);
        assert_prompts_are_exact(t);
}

static void test_what_is_no_tokenizer(void **state)
{
        _cleanup_(free_ptr) char *no_words = quoted("{'model': {'vocab': {'hello': 1, '##ing': 2}}}");
        _cleanup_(free_ptr) char *no_score = quoted("{'model': {'vocab': [['" M "a']]}}");
        _cleanup_(free_ptr) char *no_pair = quoted("{'model': {'vocab': {'" G "a': 1}, 'merges': [1]}}");

        assert_refused("t.json", "", "JSON");
        assert_refused("t.json", "{", "JSON");
        assert_refused("t.json", "{}", "model.vocab");
        assert_refused("t.json", "[]", "model.vocab");
        assert_refused("t.json", no_words, "no words");
        assert_refused("t.json", no_score, "score");
        assert_refused("t.json", no_pair, "merges");
}

static void test_a_file_that_is_too_large(void **state)
{
        char dir[UNIT_DIR_LEN];
        _cleanup_(free_ptr) char *path = NULL;
        struct err err = ERR_INIT;

        unit_dir(dir);
        path = xasprintf("%s/t.json", dir);
        assert_int_equal(file_replace(path, STR("{}"), 0600, NULL), 0);
        assert_int_equal(truncate(path, TOKENS_FILE_MAX + 1), 0);
        assert_null(tokens_load(path, &err));
        assert_int_equal(err.code, E_TOO_LARGE);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_words),
        cmocka_unit_test(test_counts_without_a_vocabulary),
        cmocka_unit_test(test_the_same_state_gives_the_same_prompt),
        cmocka_unit_test(test_a_word_list),
        cmocka_unit_test(test_no_such_file),
        cmocka_unit_test(test_words_of_a_byte_level_tokenizer),
        cmocka_unit_test(test_estimates_by_the_longest_pieces),
        cmocka_unit_test(test_merges_as_pairs_and_merges_that_do_not_count),
        cmocka_unit_test(test_a_merge_that_leads_elsewhere),
        cmocka_unit_test(test_words_of_a_unigram_tokenizer),
        cmocka_unit_test(test_what_is_no_tokenizer),
        cmocka_unit_test(test_a_file_that_is_too_large),
};
UNIT_MAIN(tests)
