/*
 * history_rig.h - a history that is empty at the beginning of each test: a file, or with $SONDE_TEST_HISTORY (the URL of a
 * PostgreSQL database, without options) a schema there.
 */
#pragma once

#include "history/history.h"
#include "history/history_db.h"
#include "unit/dir.h"

#include <fcntl.h>
#include <math.h>

struct rig {
        struct loop *loop;
        struct history *h;
        struct history_config config;
        char dir[UNIT_DIR_LEN], path[512];
        unsigned told, failed, called, listed;
        struct err err;       /* of the last that failed */
        struct arena listing; /* the last list */
        struct history_row *rows;
        size_t n;
};

static inline const char *rig_server(void)
{
        const char *url = getenv("SONDE_TEST_HISTORY");

        return url && *url ? url : NULL;
}

/* SQL behind the history's back. */
static inline void rig_sql_at(const char *place, const char *text)
{
        struct err err = ERR_INIT;
        struct db *db = history_is_url(place) ? history_postgres_open(place, NULL, NULL, &err)
                                              : history_sqlite_open(place, true, &err);

        if (!db || db->ops->script(db, text, &err) < 0)
                fail_msg("%s", err.text);
        if (db)
                db->ops->close(db);
}

static inline void rig_place(struct rig *r)
{
        static unsigned n;
        char sql[128];

        if (!rig_server()) {
                unit_dir(r->dir);
                snprintf(r->path, sizeof(r->path), "%s/history.db", r->dir);
                return;
        }
        snprintf(sql, sizeof(sql), "CREATE SCHEMA t%d_%u", (int)getpid(), ++n);
        rig_sql_at(rig_server(), sql);
        snprintf(r->path, sizeof(r->path), "%s?options=-csearch_path%%3Dt%d_%u", rig_server(), (int)getpid(),
                 n);
}

static inline void reopen(struct rig *r)
{
        struct err err = ERR_INIT;

        history_free(r->h);
        r->config.place = r->path;
        r->h = history_open(r->loop, &r->config, NULL, &err);
        if (!r->h)
                fail_msg("%s", err.text);
}

static inline void rig_init_with(struct rig *r, struct clock *clock, struct history_config config)
{
        *r = (struct rig){.config = config};
        r->loop = loop_new(clock, NULL, NULL);
        assert_non_null(r->loop);
        rig_place(r);
        reopen(r);
}

static inline void rig_init(struct rig *r)
{
        rig_init_with(r, NULL, (struct history_config){.place = NULL});
}

static inline void rig_done(struct rig *r)
{
        history_free(r->h);
        loop_free(r->loop);
        arena_done(&r->listing);
}

static inline void on_told(void *arg, const struct err *err)
{
        struct rig *r = arg;

        r->told++;
        r->failed += err != NULL;
        if (err)
                r->err = *err;
}

static inline void on_called(void *arg)
{
        ((struct rig *)arg)->called++;
}

static inline void wait_told(struct rig *r, unsigned n)
{
        while (r->told < n)
                loop_turn(r->loop, true);
}

/* A run with phases Load and Measure; the latter has STEPS of SECONDS each. */
static inline struct track make_track(unsigned steps, double seconds)
{
        struct track t = {.n = 0};
        usec_t now = 1000 * USEC_PER_SEC;
        struct run_status s = {.phase = "Load", .message = ""};

        track_event(&t, &s, now);
        now += 10 * USEC_PER_SEC;
        s = (struct run_status){
                .phase = "Measure", .message = "", .has_progress = true, .total_steps = steps};
        for (s.current_step = 1; s.current_step <= steps; s.current_step++) {
                track_event(&t, &s, now);
                now += (usec_t)(seconds * 1e6);
        }
        s = (struct run_status){.phase = "Complete", .message = ""};
        track_event(&t, &s, now);
        return t;
}

static inline struct history_row make_row(const char *uid, const struct track *t)
{
        return (struct history_row){.uid = uid,
                                    .attempt = 1,
                                    .kind = "Test",
                                    .ns = "default",
                                    .name = "run",
                                    .shape = "small",
                                    .outcome = "Succeeded",
                                    .started = t ? t->started : 1,
                                    .finished = t ? t->moved : 2,
                                    .track = t};
}

static inline void record(struct rig *r, const struct history_row *row)
{
        unsigned before = r->told;

        history_record(r->h, row, on_told, r);
        wait_told(r, before + 1);
        assert_int_equal(r->failed, 0);
}

static inline const struct priors *ask(struct rig *r, const char *shape)
{
        const struct priors *p = NULL;
        unsigned before = r->called;

        if (history_priors(r->h, shape, on_called, r, &p) > 0)
                return p;
        while (r->called == before)
                loop_turn(r->loop, true);
        assert_true(history_priors(r->h, shape, on_called, r, &p) > 0);
        return p;
}

static inline const struct series *ask_series(struct rig *r, const char *series)
{
        const struct series *s = NULL;
        unsigned before = r->called;

        if (history_series(r->h, series, on_called, r, &s) > 0)
                return s;
        while (r->called == before)
                loop_turn(r->loop, true);
        assert_true(history_series(r->h, series, on_called, r, &s) > 0);
        return s;
}

static inline char *rig_copy(struct rig *r, const char *s)
{
        return arena_strdup(&r->listing, s);
}

static inline void on_listed(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        struct rig *r = arg;

        arena_reset(&r->listing, 0);
        r->listed++;
        r->failed += err != NULL;
        if (err)
                r->err = *err;
        r->n = n;
        r->rows = n ? arena_memdup(&r->listing, rows, n * sizeof(*rows)) : NULL;
        for (size_t i = 0; i < n; i++) {
                struct history_row *row = &r->rows[i];
                struct history_measure *m = arena_memdup(&r->listing, row->measures,
                                                         row->n_measures * sizeof(*m));

                if (row->n_measures)
                        memcpy(m, row->measures, row->n_measures * sizeof(*m));
                row->uid = rig_copy(r, row->uid);
                row->name = rig_copy(r, row->name);
                row->labels = rig_copy(r, row->labels);
                row->machine = rig_copy(r, row->machine);
                row->image = rig_copy(r, row->image);
                row->spec_hash = rig_copy(r, row->spec_hash);
                row->samples = rig_copy(r, row->samples);
                for (size_t j = 0; j < row->n_measures; j++) {
                        m[j].series = rig_copy(r, m[j].series);
                        m[j].algorithm = rig_copy(r, m[j].algorithm);
                }
                row->measures = m;
        }
}

/* r->rows is what it says, until the next list. */
static inline size_t list_rows(struct rig *r, struct history_filter filter)
{
        unsigned before = r->listed;

        history_list(r->h, &filter, on_listed, r);
        while (r->listed == before)
                loop_turn(r->loop, true);
        return r->n;
}
