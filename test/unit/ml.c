/*
 * Which frameworks, tasks and algorithms there are, and the archive of their adapters.
 */
#include "unit.h"

#include "probe/ml/ml.h"

static void the_names_of_the_seeds_are_known(void **state)
{
        static const char *const frameworks[] = {"sklearn", "dask", "spark", "ray", "xgboost", "pytorch"},
                                 *const tasks[] = {"train", "feature_selection", "hyperparameter_tuning",
                                                   "distributed_training"},
                                 *const algorithms[] = {"random_forest", "logistic_regression", "svm",
                                                        "neural_network"};

        for (size_t f = 0; f < ARRAY_LEN(frameworks); f++)
                for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
                        assert_int_equal(ml_check(frameworks[f], tasks[i], algorithms[i], NULL), 0);
        assert_int_equal(ml_check(NULL, NULL, NULL, NULL), 0);
}

static void an_unknown_name_is_told_with_those_there_are(void **state)
{
        struct err err = ERR_INIT;

        assert_int_equal(ml_check("keras", NULL, NULL, &err), -1);
        assert_string_equal(
                err.text,
                "there is no framework 'keras'; there are dask, pytorch, ray, sklearn, spark, xgboost");
        assert_int_equal(err.code, E_INVALID);
        err_clear(&err);
        assert_int_equal(ml_check("dask", "sorting", NULL, &err), -1);
        assert_string_equal(err.text, "there is no task 'sorting'; there are train, feature_selection, "
                                      "hyperparameter_tuning, distributed_training");
        err_clear(&err);
        assert_int_equal(ml_check("dask", NULL, "", &err), -1);
        assert_string_equal(err.text,
                            "there is no algorithm ''; there are random_forest, logistic_regression, svm, "
                            "neural_network");
}

static void the_program_is_an_archive(void **state)
{
        assert_true(ML_PROGRAM_LEN > 1000);
        assert_memory_equal(ML_PROGRAM, "PK\3\4", 4);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_of_the_seeds_are_known),
        cmocka_unit_test(an_unknown_name_is_told_with_those_there_are),
        cmocka_unit_test(the_program_is_an_archive),
};

UNIT_MAIN(tests)
