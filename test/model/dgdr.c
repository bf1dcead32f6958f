/*
 * The controller of DynamoGraphDeploymentRequests, explored.
 */
#include "unit/unit.h"

#include "model/dgdr_world.h"
#include "model/rows.h"

static const struct row rows[] = {
        {QUICK,
         {"a deployment that is deleted",
          {1, 0, 0, 2, 1, 0},
          .spec = SPEC_AUTO_APPLY,
          .mishaps = BIT(MISHAP_DELETE_PRODUCT)}},
        {USUAL,
         {"autoApply that comes late",
          {1, 1, 0, 2, 1, 0},
          .edits = BIT(EDIT_OWN),
          .mishaps = BIT(MISHAP_DELETE_PRODUCT)}},
};

static const struct mistake mistakes[] = {
        {{.bug = BUG_BY_NAME, .left = {0, 0, 1, 0, 0, 0}, .recreated = true}},
        {{.bug = BUG_FORGETFUL, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
};

static void every_order_ends_well(void **state)
{
        rows_end_well(&dgdr_subject, rows, ARRAY_LEN(rows));
}

static void every_mistake_is_found(void **state)
{
        rows_are_found(&dgdr_subject, mistakes, ARRAY_LEN(mistakes));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_ends_well),
        cmocka_unit_test(every_mistake_is_found),
};

UNIT_MAIN(tests)
