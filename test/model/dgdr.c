/*
 * The controller of DynamoGraphDeploymentRequests, explored: every order of what can happen, within bounds; and mistakes
 * that must be found.
 *
 * MODEL_ONLY=WORDS explores only the scenarios whose names have these words in them; MODEL_WAY=1 prints the way to each
 * mistake.
 */
#include "unit/unit.h"

#include "model/explore.h"
#include "model/sabotage.h"

#define BIT(x) (1U << (x))

enum { STATES_MAX = 60000000 };

/* How long it may take: with sanitizers, and in `make test-quick`, the smallest form. */
enum form { QUICK, USUAL, SOAK };

static enum form form_of_today(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
        return QUICK;
#endif
#endif
        return (enum form)unit_extent(QUICK, USUAL, SOAK);
}

/* left: progress reports, edits, deletions, crashes, mishaps, calls that come early */
struct row {
        enum form form;
        struct scenario scenario;
};

static const struct row rows[] = {
        {QUICK, {"a short run", {1, 0, 0, 1, 0, 0}}},
        {USUAL, {"a run", {3, 0, 0, 2, 0, 0}}},
        {USUAL, {"a run that is deleted", {1, 0, 1, 0, 0, 0}}},
        {QUICK, {"a run that is edited", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_MODEL)}},
        {QUICK, {"a run that is suspended", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)}},
        {USUAL, {"a run that is cancelled", {1, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_CANCEL)}},
        {USUAL, {"a relay that is killed", {1, 0, 0, 1, 1, 1}, .mishaps = BIT(MISHAP_LOSE_RELAY)}},
        {USUAL, {"a pod that is evicted", {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
        {USUAL, {"a Job that is deleted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_JOB)}},
        {USUAL, {"a ConfigMap that is deleted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_MAP)}},
        {QUICK,
         {"a deployment that is deleted",
          {1, 0, 0, 2, 1, 0},
          .spec = SPEC_AUTO_APPLY,
          .mishaps = BIT(MISHAP_DELETE_DEPLOYMENT)}},
        {USUAL, {"caches that are far behind", {1, 0, 0, 0, 0, 0}, .lagging = true}},
        {USUAL, {"a run that is deleted, all bounds", {3, 0, 1, 2, 0, 0}}},
        {USUAL, {"a run that is edited, and a crash", {0, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_MODEL)}},
        {USUAL, {"a run that is suspended, and a crash", {1, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_SUSPEND)}},
        {USUAL, {"a pod that is evicted, and a crash", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
        {USUAL,
         {"a pod that is deleted, and a crash", {1, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_POD)}},
        {USUAL,
         {"autoApply that comes late",
          {1, 1, 0, 2, 1, 0},
          .edits = BIT(EDIT_APPLY),
          .mishaps = BIT(MISHAP_DELETE_DEPLOYMENT)}},
        {SOAK, {"a request that is made again", {0, 0, 1, 0, 0, 0}, .recreated = true}},
        {SOAK, {"a run that is cancelled, all bounds", {3, 1, 1, 2, 0, 0}, .edits = BIT(EDIT_CANCEL)}},
        {SOAK, {"a run that is suspended, all bounds", {3, 1, 1, 2, 0, 0}, .edits = BIT(EDIT_SUSPEND)}},
        {SOAK, {"a run that is edited, with all updates", {3, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_MODEL)}},
        {SOAK,
         {"a run that is edited and deleted, and a crash", {0, 1, 1, 1, 0, 0}, .edits = BIT(EDIT_MODEL)}},
        {SOAK, {"a run that is edited, with all crashes", {0, 1, 0, 2, 0, 0}, .edits = BIT(EDIT_MODEL)}},
        {SOAK,
         {"a run that is suspended, and its pod evicted",
          {0, 1, 0, 1, 1, 0},
          .edits = BIT(EDIT_SUSPEND),
          .mishaps = BIT(MISHAP_EVICT)}},
        {SOAK,
         {"a run that is edited, and its pod deleted",
          {0, 1, 0, 1, 1, 0},
          .edits = BIT(EDIT_MODEL),
          .mishaps = BIT(MISHAP_DELETE_POD)}},
        {SOAK,
         {"a Job that is deleted without its pods", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_ORPHAN_PODS)}},
        {SOAK,
         {"a server that replaces deleted pods",
          {0, 0, 0, 1, 1, 0},
          .mishaps = BIT(MISHAP_DELETE_POD),
          .old_server = true}},
        {SOAK,
         {"caches that are far behind, and an eviction",
          {1, 0, 0, 1, 1, 0},
          .mishaps = BIT(MISHAP_EVICT),
          .lagging = true}},
};

static bool is_asked_for(const struct scenario *s)
{
        const char *only = getenv("MODEL_ONLY");

        return !only || strstr(s->name, only);
}

static void every_order_ends_well(void **state)
{
        size_t states = 0, transitions = 0;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct exploration e;

                if (!is_asked_for(&rows[i].scenario) ||
                    (rows[i].form > form_of_today() && !getenv("MODEL_ONLY")))
                        continue;
                explore(&rows[i].scenario, STATES_MAX, &e);
                printf("# %s: %zu states, %zu transitions, %zu steps deep, settled in %zu ways\n",
                       rows[i].scenario.name, e.states, e.transitions, e.depth, e.settled);
                if (e.wrong) {
                        print_error("%s", e.wrong);
                        exploration_done(&e);
                        fail();
                }
                states += e.states;
                transitions += e.transitions;
        }
        printf("# %zu states, %zu transitions\n", states, transitions);
}

/* ---- mistakes */

static const struct scenario mistakes[] = {
        {.bug = BUG_NAME_ANEW, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)},
        {.bug = BUG_CACHE_IS_TRUTH,
         .left = {0, 0, 0, 0, 1, 0},
         .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD) | BIT(MISHAP_DELETE_JOB)},
        {.bug = BUG_LATE_WORD, .left = {0, 0, 0, 0, 0, 0}},
        {.bug = BUG_IMPATIENT, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)},
        {.bug = BUG_SUSPENDED_SUCCESS, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)},
        {.bug = BUG_ANY_POD, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_DELETE_POD)},
        {.bug = BUG_STATUS_FIRST, .left = {0, 0, 0, 1, 0, 0}},
        {.bug = BUG_BY_NAME, .left = {0, 0, 1, 0, 0, 0}, .recreated = true},
        {.bug = BUG_ADOPTS, .left = {0, 0, 1, 0, 0, 0}, .recreated = true},
};

static void every_mistake_is_found(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
                struct scenario s = mistakes[i];
                struct exploration e;

                s.name = bug_names[s.bug];
                if (!is_asked_for(&s) || (s.bug == BUG_BY_NAME && form_of_today() == QUICK))
                        continue;
                explore(&s, STATES_MAX, &e);
                printf("# found after %zu states: %.*s\n", e.states,
                       e.wrong ? (int)strcspn(e.wrong, "\n") : 0, e.wrong ? e.wrong : "");
                if (e.wrong && getenv("MODEL_WAY"))
                        printf("%s", e.wrong);
                if (!e.wrong)
                        fail_msg("%s: nothing was found", s.name);
                exploration_done(&e);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_ends_well),
        cmocka_unit_test(every_mistake_is_found),
};

UNIT_MAIN(tests)
