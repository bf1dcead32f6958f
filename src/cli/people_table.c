/*
 * Runs of all kinds as one table.
 */
#include "cli/people.h"

/* The columns that a list may have, in their order. */
enum column {
        CLUSTER,
        NAMESPACE,
        KIND,
        NAME,
        PHASE,
        STEP,
        PERCENT,
        ETA,
        AGE,
        ATTEMPT,
        STARTED,
        ENDED,
        REASON,
        COLUMNS,
};

static const struct table_column titles[COLUMNS] = {
        [CLUSTER] = {"CLUSTER"}, [NAMESPACE] = {"NAMESPACE"},
        [KIND] = {"KIND"},       [NAME] = {"NAME"},
        [PHASE] = {"PHASE"},     [STEP] = {"STEP", .right = true},
        [PERCENT] = {"%", true}, [ETA] = {"ETA"},
        [AGE] = {"AGE", true},   [ATTEMPT] = {"ATTEMPT", true},
        [STARTED] = {"STARTED"}, [ENDED] = {"ENDED"},
        [REASON] = {"REASON"},
};

static const char *moment(struct people *p, usec_t when)
{
        return when ? show_clock(&p->arena, p->now, when) : "-";
}

static const char *cell(struct people *p, const struct people_run *run, enum column column)
{
        struct arena *a = &p->arena;
        const struct summary *s = &run->summary;

        switch (column) {
        case CLUSTER:
                return run->cluster->name;
        case NAMESPACE:
                return s->ns;
        case KIND:
                return run->kind->label;
        case NAME:
                return s->name;
        case PHASE:
                return s->deleting ? "Deleting" : s->phase;
        case STEP:
                return people_step(a, s);
        case PERCENT:
                return people_percent(a, s);
        case ETA:
                return people_eta(p, s);
        case AGE:
                return s->created ? show_age(a, usec_sub(p->now, s->created)) : "-";
        case ATTEMPT:
                return s->attempt ? arena_printf(a, "%llu", (unsigned long long)s->attempt) : "-";
        case STARTED:
                return moment(p, s->started);
        case ENDED:
                return moment(p, s->ended);
        default:
                return people_reason(a, s);
        }
}

void people_table(struct people *p, const struct people_runs *runs, bool wide, const struct screen *screen)
{
        const bool shown[COLUMNS] = {
                [CLUSTER] = p->clusters.n > 1,
                [NAMESPACE] = p->all_namespaces,
                [KIND] = true,
                [NAME] = true,
                [PHASE] = true,
                [STEP] = true,
                [PERCENT] = true,
                [ETA] = true,
                [AGE] = true,
                [ATTEMPT] = wide,
                [STARTED] = wide,
                [ENDED] = wide,
                [REASON] = true,
        };
        struct table_column columns[COLUMNS];
        _cleanup_(table_done) struct table t;
        size_t n = 0;

        for (size_t j = 0; j < COLUMNS; j++)
                if (shown[j])
                        columns[n++] = titles[j];
        table_init(&t, &p->arena, columns, n);
        for (size_t i = 0; i < runs->n; i++)
                for (size_t j = 0; j < COLUMNS; j++)
                        if (shown[j])
                                table_add(&t, j == PHASE ? people_tone(&runs->v[i].summary) : TONE_PLAIN,
                                          cell(p, &runs->v[i], (enum column)j));
        table_print(&t, screen, !wide);
}
