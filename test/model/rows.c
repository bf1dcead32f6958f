/*
 * Scenarios, one after the other.
 */
#include "unit/unit.h"

#include "model/rows.h"

enum { STATES_MAX = 60000000 };

/* What can happen to every run. */
static const struct row rows_of_all[] = {
        {QUICK, {"a short run", {1, 0, 0, 1, 0, 0}}},
        {USUAL, {"a run", {3, 0, 0, 2, 0, 0}}},
        {USUAL, {"a run that is deleted", {1, 0, 1, 0, 0, 0}}, .later = 1},
        {QUICK, {"a run that is edited", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_WORKLOAD)}, .later = 2},
        {QUICK, {"a run that is suspended", {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)}, .later = 2},
        {USUAL, {"a run that is cancelled", {1, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_CANCEL)}},
        {USUAL, {"a relay that is killed", {1, 0, 0, 1, 1, 1}, .mishaps = BIT(MISHAP_LOSE_RELAY)}},
        {USUAL, {"a pod that is evicted", {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}, .later = 1},
        {USUAL, {"a Job that is deleted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_JOB)}},
        {USUAL, {"a ConfigMap that is deleted", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_MAP)}},
        {USUAL, {"caches that are far behind", {1, 0, 0, 0, 0, 0}, .lagging = true}},
        {QUICK,
         {"a run that waits for its turn",
          {0, 0, 0, 0, 1, 0},
          .mishaps = BIT(MISHAP_OVERTAKEN),
          .limited = true},
         .later = 1},
        {USUAL, {"a run that waits, and a crash", {0, 0, 0, 1, 0, 0}, .limited = true}, .later = 1},
        {USUAL, {"a run that is deleted, all bounds", {3, 0, 1, 2, 0, 0}}, .later = 1},
        {USUAL, {"a run that is edited, and a crash", {0, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_WORKLOAD)}},
        {USUAL,
         {"a run that is suspended, and a crash", {1, 1, 0, 1, 0, 0}, .edits = BIT(EDIT_SUSPEND)},
         .later = 1},
        {USUAL, {"a pod that is evicted, and a crash", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
        {USUAL,
         {"a pod that is deleted, and a crash", {1, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_DELETE_POD)},
         .later = 1},
        {LONG, {"a request that is made again", {0, 0, 1, 0, 0, 0}, .recreated = true}, .later = 1},
        {LONG,
         {"a run that is cancelled, all bounds", {3, 1, 1, 2, 0, 0}, .edits = BIT(EDIT_CANCEL)},
         .later = 1},
        {LONG,
         {"a run that is suspended, all bounds", {3, 1, 1, 2, 0, 0}, .edits = BIT(EDIT_SUSPEND)},
         .later = 1},
        {LONG,
         {"a run that is edited, with all updates", {3, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_WORKLOAD)},
         .later = 1},
        {LONG,
         {"a run that is edited and deleted, and a crash", {0, 1, 1, 1, 0, 0}, .edits = BIT(EDIT_WORKLOAD)},
         .later = 1},
        {LONG, {"a run that is edited, with all crashes", {0, 1, 0, 2, 0, 0}, .edits = BIT(EDIT_WORKLOAD)}},
        {LONG,
         {"a run that is suspended, and its pod evicted",
          {0, 1, 0, 1, 1, 0},
          .edits = BIT(EDIT_SUSPEND),
          .mishaps = BIT(MISHAP_EVICT)},
         .later = 1},
        {LONG,
         {"a run that is edited, and its pod deleted",
          {0, 1, 0, 1, 1, 0},
          .edits = BIT(EDIT_WORKLOAD),
          .mishaps = BIT(MISHAP_DELETE_POD)},
         .later = 1},
        {LONG,
         {"a Job that is deleted without its pods", {0, 0, 0, 1, 1, 0}, .mishaps = BIT(MISHAP_ORPHAN_PODS)}},
        {LONG,
         {"a server that replaces deleted pods",
          {0, 0, 0, 1, 1, 0},
          .mishaps = BIT(MISHAP_DELETE_POD),
          .old_server = true}},
        {LONG,
         {"caches that are far behind, and an eviction",
          {1, 0, 0, 1, 1, 0},
          .mishaps = BIT(MISHAP_EVICT),
          .lagging = true},
         .later = 1},
};

static const struct mistake mistakes_of_all[] = {
        {{.bug = BUG_NAME_ANEW, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_EVICT)}},
        {{.bug = BUG_CACHE_IS_TRUTH,
          .left = {0, 0, 0, 0, 1, 0},
          .mishaps = BIT(MISHAP_EVICT) | BIT(MISHAP_DELETE_POD) | BIT(MISHAP_DELETE_JOB)}},
        {{.bug = BUG_LATE_WORD, .left = {0, 0, 0, 0, 0, 0}}},
        {{.bug = BUG_IMPATIENT, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)}},
        {{.bug = BUG_SUSPENDED_SUCCESS, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)}},
        {{.bug = BUG_ANY_POD, .left = {0, 0, 0, 0, 1, 0}, .mishaps = BIT(MISHAP_DELETE_POD)}},
        {{.bug = BUG_STATUS_FIRST, .left = {0, 0, 0, 1, 0, 0}}},
        {{.bug = BUG_ADOPTS, .left = {0, 0, 1, 0, 0, 0}, .recreated = true}},
        {{.bug = BUG_FICKLE}, "deciding twice"},
        {{.bug = BUG_ASKS_ON}, "more and more look-ups"},
        {{.bug = BUG_KILLS}, "an attempt under way is deleted"},
        {{.bug = BUG_BACKGROUND, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_SUSPEND)},
         "before its pods, and the run goes on"},
        {{.bug = BUG_SWEEPS}, "deleted before the end"},
        {{.bug = BUG_NO_ROW}, "without a row"},
        {{.bug = BUG_OTHER_ROW}, "has another outcome"},
        {{.bug = BUG_CANCELS}, "nobody has cancelled"},
        {{.bug = BUG_TIMES_OUT, .left = {0, 0, 0, 0, 0, 1}}, "without a timeout"},
        {{.bug = BUG_CANCELLED_SUCCESS, .left = {0, 1, 0, 0, 0, 0}, .edits = BIT(EDIT_CANCEL)},
         "is ended as a failure"},
        {{.bug = BUG_REHASH}, "the spec changes within an attempt"},
        {{.bug = BUG_SKIPS}, "the first attempt is not the first"},
        {{.bug = BUG_UNKNOWN}, "the schema does not know"},
        {{.bug = BUG_QUEUE_STAYS, .limited = true}, "is told its place, and does not wait"},
        {{.bug = BUG_RESTARTS, .left = {2, 0, 0, 0, 0, 0}}, "startedAt changes"},
};

bool rows_asked_for(enum extent extent, const char *name)
{
        const char *only = getenv("MODEL_ONLY");

        return only ? strstr(name, only) != NULL : extent <= unit_extent(QUICK, USUAL, LONG);
}

static void end_well(const struct subject *subject, const struct row *rows, size_t n, struct exploration *sum)
{
        for (size_t i = 0; i < n; i++) {
                const struct scenario *s = &rows[i].scenario;
                struct exploration e;

                if (!rows_asked_for(rows[i].extent + (subject->longer ? rows[i].later : 0), s->name))
                        continue;
                explore(subject, s, STATES_MAX, &e);
                printf("# %s: %zu states, %zu transitions, %zu steps deep, settled in %zu ways\n", s->name,
                       e.states, e.transitions, e.depth, e.settled);
                if (e.wrong) {
                        fputs(e.wrong, stderr); /* print_error() would cut it */
                        exploration_done(&e);
                        fail();
                }
                sum->states += e.states;
                sum->transitions += e.transitions;
        }
}

void rows_of_kind(const struct subject *subject, const struct row *rows, size_t n)
{
        struct exploration sum = {0};

        end_well(subject, rows, n, &sum);
}

void rows_end_well(const struct subject *subject, const struct row *rows, size_t n)
{
        struct exploration sum = {0};

        end_well(subject, rows_of_all, ARRAY_LEN(rows_of_all), &sum);
        end_well(subject, rows, n, &sum);
        printf("# %zu states, %zu transitions\n", sum.states, sum.transitions);
}

/* In the first line; after it comes the way there. */
static bool is_found(const char *wrong, const char *words)
{
        const char *there = strstr(wrong, words ? words : "");

        return there && there < wrong + strcspn(wrong, "\n");
}

static void are_found(const struct subject *subject, const struct mistake *mistakes, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct scenario s = mistakes[i].scenario;
                struct exploration e;

                s.name = bug_names[s.bug];
                if (!rows_asked_for(QUICK, s.name))
                        continue;
                explore(subject, &s, STATES_MAX, &e);
                printf("# found after %zu states: %.*s\n", e.states,
                       e.wrong ? (int)strcspn(e.wrong, "\n") : 0, e.wrong ? e.wrong : "");
                if (e.wrong && getenv("MODEL_WAY"))
                        printf("%s", e.wrong);
                if (!e.wrong || !is_found(e.wrong, mistakes[i].found))
                        fail_msg("%s: not found", s.name);
                exploration_done(&e);
        }
}

void rows_are_found(const struct subject *subject, const struct mistake *mistakes, size_t n)
{
        are_found(subject, mistakes_of_all, ARRAY_LEN(mistakes_of_all));
        are_found(subject, mistakes, n);
}
