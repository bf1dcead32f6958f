/* The built-in algorithms: each sorts whatever it is given; what is not there is refused by name. */
#include "unit/unit.h"

#include <pthread.h>

#include "probe/probe.h"

enum { FOR_EACH = 1500 };

static struct algorithm_options options_of(const char *name, const char *parameters)
{
        struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        struct algorithm_options o = {.seed = 0};

        assert_int_equal(doc_parse(&doc, str_of(parameters), NULL, &err), 0);
        if (algorithm_options(algorithm_find(name), doc.root, &o, &err) < 0)
                fail_msg("%s", err.text);
        doc_done(&doc);
        return o;
}

static int compare(const void *x, const void *y)
{
        int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;

        return (a > b) - (a < b);
}

static void check_sorts(const struct algorithm *al, const struct algorithm_options *o, size_t n)
{
        int32_t *values = xcalloc(n + 1, sizeof(int32_t)), *spare = xcalloc(n + 1, sizeof(int32_t)),
                *wanted = xcalloc(n + 1, sizeof(int32_t));

        algorithm_input(values, n, o);
        memcpy(wanted, values, n * sizeof(int32_t));
        qsort(wanted, n, sizeof(int32_t), compare);
        algorithm_sort(al, values, algorithm_needs_spare(al) ? spare : NULL, n, o);
        assert_memory_equal(values, wanted, n * sizeof(int32_t));
        free(values);
        free(spare);
        free(wanted);
}

static void test_each_sorts_every_input_of_every_size(void **state)
{
        const struct algorithm *al;

        for (size_t i = 0; (al = algorithm_at(i)); i++)
                for (unsigned input = 0; input < INPUT_MAX_; input++)
                        for (size_t n = 0; n < FOR_EACH; n = n < 40 ? n + 1 : n * 3 + 1) {
                                struct algorithm_options o = {
                                        .input = input, .pivot = PIVOT_MEDIAN, .seed = n};

                                check_sorts(al, &o, n);
                        }
}

static void test_quick_sort_with_every_pivot(void **state)
{
        const struct algorithm *al = algorithm_find("quick_sort");

        for (unsigned pivot = 0; pivot < PIVOT_MAX_; pivot++)
                for (unsigned input = 0; input < INPUT_MAX_; input++)
                        for (size_t n = 0; n < FOR_EACH; n = n < 40 ? n + 1 : n * 3 + 1) {
                                struct algorithm_options o = {.input = input, .pivot = pivot, .seed = n};

                                check_sorts(al, &o, n);
                        }
}

/* The worst pivot divides one off each time: the stack must not grow with that. */
static void *sort_the_worst(void *arg)
{
        struct algorithm_options o = {.input = INPUT_SORTED, .pivot = PIVOT_FIRST};

        check_sorts(algorithm_find("quick_sort"), &o, 6000);
        o = (struct algorithm_options){.input = INPUT_REVERSED, .pivot = PIVOT_LAST};
        check_sorts(algorithm_find("quick_sort"), &o, 6000);
        return NULL;
}

static void test_the_worst_input_does_not_overflow_the_stack(void **state)
{
        pthread_attr_t attr;
        pthread_t thread;

        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
        assert_int_equal(pthread_create(&thread, &attr, sort_the_worst, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attr);
}

static void test_parallel_forms_sort_too(void **state)
{
        for (unsigned input = 0; input < INPUT_MAX_; input++) {
                struct algorithm_options o = {
                        .input = input, .pivot = PIVOT_MEDIAN, .parallel = true, .seed = 7};

                check_sorts(algorithm_find("quick_sort"), &o, 20000);
                check_sorts(algorithm_find("merge_sort"), &o, 20001);
        }
}

static void test_the_same_seed_gives_the_same_input(void **state)
{
        struct algorithm_options o = {.input = INPUT_RANDOM, .seed = 5};
        int32_t x[100], y[100];

        algorithm_input(x, 100, &o);
        algorithm_input(y, 100, &o);
        assert_memory_equal(x, y, sizeof(x));
        o.seed = 6;
        algorithm_input(y, 100, &o);
        assert_memory_not_equal(x, y, sizeof(x));
}

static void test_a_run_tells_its_times(void **state)
{
        struct algorithm_options o = {.input = INPUT_RANDOM, .pivot = PIVOT_MEDIAN};
        struct err err = ERR_INIT;
        const struct algorithm *al;
        struct algorithm_times t;

        for (size_t i = 0; (al = algorithm_at(i)); i++) {
                assert_int_equal(algorithm_run(al, 500, &o, &t, &err), 0);
                assert_true(t.wall >= 0 && t.user >= 0 && t.sys >= 0);
        }
        assert_int_equal(algorithm_run(algorithm_at(0), (size_t)ALGORITHM_SIZE_MAX + 1, &o, &t, &err), -1);
        assert_string_equal(err.text, "the size 1073741825 is larger than 1073741824");
}

static void test_parameters_are_read(void **state)
{
        struct algorithm_options o = options_of("quick_sort", "{}");

        assert_int_equal(o.pivot, PIVOT_MEDIAN);
        assert_int_equal(o.input, INPUT_RANDOM);
        o = options_of("quick_sort",
                       "{\"pivot_strategy\": \"first\", \"input\": \"few_unique\", \"parallel\": true}");
        assert_int_equal(o.pivot, PIVOT_FIRST);
        assert_int_equal(o.input, INPUT_FEW_UNIQUE);
        assert_true(o.parallel);
        assert_false(options_of("bubble_sort", "{\"parallel\": false}").parallel);
}

static void check_refused(const char *name, const char *parameters, const char *why)
{
        struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;

        assert_int_equal(doc_parse(&doc, str_of(parameters), NULL, &err), 0);
        assert_int_equal(algorithm_check(name, doc.root, &err), -1);
        assert_int_equal(err.code, E_INVALID);
        assert_string_equal(err.text, why);
        doc_done(&doc);
}

static void test_what_is_not_there_is_refused_by_name(void **state)
{
        check_refused(
                "bogo_sort", "{}",
                "there is no sorting algorithm 'bogo_sort'; there are bubble_sort, quick_sort, merge_sort, "
                "heap_sort, insertion_sort, selection_sort, shell_sort, radix_sort, std");
        check_refused("quick_sort", "{\"pivot\": \"first\"}",
                      "quick_sort has no parameter 'pivot'; it has input, parallel, pivot_strategy");
        check_refused("heap_sort", "{\"pivot_strategy\": \"first\"}",
                      "heap_sort has no parameter 'pivot_strategy'; it has input, parallel");
        check_refused("quick_sort", "{\"pivot_strategy\": \"best\"}",
                      "parameter pivot_strategy is 'best'; it is one of first, last, middle, median, random");
        check_refused(
                "quick_sort", "{\"pivot_strategy\": 3}",
                "parameter pivot_strategy is not a string but number; it is one of first, last, middle, "
                "median, random");
        check_refused("heap_sort", "{\"parallel\": true}",
                      "heap_sort has no parallel form; quick_sort and merge_sort have one");
        check_refused("heap_sort", "{\"parallel\": 1}", "parameter parallel is not a boolean but number");
        check_refused("heap_sort", "[]", "the parameters are not an object but array");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_sorts_every_input_of_every_size),
        cmocka_unit_test(test_quick_sort_with_every_pivot),
        cmocka_unit_test(test_the_worst_input_does_not_overflow_the_stack),
        cmocka_unit_test(test_parallel_forms_sort_too),
        cmocka_unit_test(test_the_same_seed_gives_the_same_input),
        cmocka_unit_test(test_a_run_tells_its_times),
        cmocka_unit_test(test_parameters_are_read),
        cmocka_unit_test(test_what_is_not_there_is_refused_by_name),
};
UNIT_MAIN(tests)
