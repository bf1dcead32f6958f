/*
 * The built-in algorithms, and what may be said to each.
 */
#include "probe/algorithm/internal.h"

static const struct algorithm algorithms[] = {
        {"bubble_sort", "neighbours are swapped until none is out of order; n^2", sort_bubble},
        {"quick_sort", "divides by a pivot; n log n, n^2 where the pivots are bad", sort_quick, .pivot = true,
         .parallel = true},
        {"merge_sort", "merges sorted halves; n log n", sort_merge, .spare = true, .parallel = true},
        {"heap_sort", "takes the greatest from a heap; n log n", sort_heap},
        {"insertion_sort", "puts each in its place among those before it; n^2, n if sorted", sort_insertion},
        {"selection_sort", "looks for the least of the rest; n^2", sort_selection},
        {"shell_sort", "insertion over shrinking distances (Ciura's)", sort_shell},
        {"radix_sort", "by bytes, without comparing; n", sort_radix, .spare = true},
        {"std", "the C library's qsort", sort_std},
};

static const char *const inputs[INPUT_MAX_] = {
        [INPUT_RANDOM] = "random",         [INPUT_SORTED] = "sorted",
        [INPUT_REVERSED] = "reversed",     [INPUT_NEARLY_SORTED] = "nearly_sorted",
        [INPUT_FEW_UNIQUE] = "few_unique",
};
static const char *const pivots[PIVOT_MAX_] = {
        [PIVOT_FIRST] = "first",   [PIVOT_LAST] = "last",     [PIVOT_MIDDLE] = "middle",
        [PIVOT_MEDIAN] = "median", [PIVOT_RANDOM] = "random",
};

enum { SENTENCE_MAX = 512, VALUE_SHOWN_MAX = 60 };

const struct algorithm *algorithm_at(size_t i)
{
        return i < ARRAY_LEN(algorithms) ? &algorithms[i] : NULL;
}

const struct algorithm *algorithm_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
                if (streq(name, algorithms[i].name))
                        return &algorithms[i];
        return NULL;
}

const char *algorithm_name(const struct algorithm *al)
{
        return al->name;
}

const char *algorithm_about(const struct algorithm *al)
{
        return al->about;
}

bool algorithm_needs_spare(const struct algorithm *al)
{
        return al->spare;
}

/* "x, y, z" */
static const char *list_words(const char *const *words, size_t n, struct buf *out)
{
        for (size_t i = 0; i < n; i++)
                buf_printf(out, "%s%s", i ? ", " : "", words[i]);
        return buf_cstr(out);
}

static int refuse_name(const char *name, struct err *err)
{
        _cleanup_(buf_done) struct buf names = BUF_INIT(SENTENCE_MAX);
        const char *words[ARRAY_LEN(algorithms)];

        for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
                words[i] = algorithms[i].name;
        return err_set(err, E_INVALID, "there is no sorting algorithm '%.*s'; there are %s",
                       (int)utf8_cut(name, strlen(name), VALUE_SHOWN_MAX), name,
                       list_words(words, ARRAY_LEN(words), &names));
}

/* The place of VALUE among WORDS. */
static int read_word(const struct json *value, const char *const *words, size_t n, unsigned *ret,
                     struct err *err)
{
        _cleanup_(buf_done) struct buf list = BUF_INIT(SENTENCE_MAX);
        struct str text = json_text(value);

        for (unsigned i = 0; i < n; i++)
                if (text.p && str_eq(text, str_of(words[i]))) {
                        *ret = i;
                        return 0;
                }
        if (!text.p)
                return err_set(err, E_INVALID, "parameter %s is not a string but %s; it is one of %s",
                               value->key, json_type_name(value->type), list_words(words, n, &list));
        return err_set(err, E_INVALID, "parameter %s is '%.*s'; it is one of %s", value->key,
                       (int)utf8_cut(text.p, text.n, VALUE_SHOWN_MAX), text.p, list_words(words, n, &list));
}

static int read_parallel(const struct algorithm *al, const struct json *value, bool *ret, struct err *err)
{
        if (!json_is(value, JSON_BOOL))
                return err_set(err, E_INVALID, "parameter parallel is not a boolean but %s",
                               json_type_name(value->type));
        if (value->truth && !al->parallel)
                return err_set(err, E_INVALID, "%s has no parallel form; quick_sort and merge_sort have one",
                               al->name);
        *ret = value->truth;
        return 0;
}

static int refuse_parameter(const struct algorithm *al, const struct json *value, struct err *err)
{
        return err_set(err, E_INVALID, "%s has no parameter '%.*s'; it has input, parallel%s", al->name,
                       (int)utf8_cut(value->key, value->key_len, VALUE_SHOWN_MAX), value->key,
                       al->pivot ? ", pivot_strategy" : "");
}

static int read_parameter(const struct algorithm *al, const struct json *value, struct algorithm_options *o,
                          struct err *err)
{
        struct str key = str_n(value->key, value->key_len);
        unsigned word;

        if (str_eq(key, STR("input"))) {
                if (read_word(value, inputs, INPUT_MAX_, &word, err) < 0)
                        return -1;
                o->input = (enum algorithm_input)word;
                return 0;
        }
        if (str_eq(key, STR("parallel")))
                return read_parallel(al, value, &o->parallel, err);
        if (!al->pivot || !str_eq(key, STR("pivot_strategy")))
                return refuse_parameter(al, value, err);
        if (read_word(value, pivots, PIVOT_MAX_, &word, err) < 0)
                return -1;
        o->pivot = (enum algorithm_pivot)word;
        return 0;
}

int algorithm_options(const struct algorithm *al, const struct json *parameters,
                      struct algorithm_options *ret, struct err *err)
{
        struct algorithm_options o = {.input = INPUT_RANDOM, .pivot = PIVOT_MEDIAN};

        if (parameters && !json_is(parameters, JSON_OBJECT) && !json_is(parameters, JSON_NULL))
                return err_set(err, E_INVALID, "the parameters are not an object but %s",
                               json_type_name(parameters->type));
        json_foreach (value, parameters)
                if (read_parameter(al, value, &o, err) < 0)
                        return -1;
        *ret = o;
        return 0;
}

int algorithm_check(const char *name, const struct json *parameters, struct err *err)
{
        const struct algorithm *al = algorithm_find(name);
        struct algorithm_options ignored;

        return al ? algorithm_options(al, parameters, &ignored, err) : refuse_name(name ? name : "", err);
}
