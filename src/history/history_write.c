#include "history/history_tables.h"

#include "run/gzip.h"
#include "json/json.h"

enum {
        LABELS_MAX = 64, /* of a row, to be found by */
        DELETE_RUNS = 200,
        DELETE_SAMPLES = 100,
};

#define RUN(db, sql, err, ...)                                                                               \
        (db)->ops->run((db), (sql), (const struct db_value[]){__VA_ARGS__},                                  \
                       sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value), NULL, NULL, \
                       (err))

/* ---- a row */

static int write_run(struct db *db, const struct history_row *row, struct err *err)
{
        return RUN(db,
                   "INSERT INTO run (uid, attempt, kind, ns, name, shape, outcome, started, finished, "
                   "labels, machine,"
                   " image, spec_hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
                   " ON CONFLICT (uid, attempt) DO UPDATE SET kind = excluded.kind, ns = excluded.ns,"
                   " name = excluded.name, shape = excluded.shape, outcome = excluded.outcome,"
                   " started = excluded.started, finished = excluded.finished, labels = excluded.labels,"
                   " machine = excluded.machine, image = excluded.image, spec_hash = excluded.spec_hash",
                   err, db_text(row->uid), db_int(row->attempt), db_text(row->kind), db_text(row->ns),
                   db_text(row->name), db_text(row->shape), db_text(row->outcome), db_int(row->started),
                   db_int(row->finished), db_text(row->labels), db_text(row->machine), db_text(row->image),
                   db_text(row->spec_hash));
}

/* What the same row had when it was told before. */
static int forget_parts(struct db *db, const struct history_row *row, struct err *err)
{
        static const char *const statements[] = {
                "DELETE FROM phase WHERE uid = $1 AND attempt = $2",
                "DELETE FROM measure WHERE uid = $1 AND attempt = $2",
                "DELETE FROM label WHERE uid = $1 AND attempt = $2",
                "DELETE FROM samples WHERE uid = $1 AND attempt = $2",
        };

        for (size_t i = 0; i < ARRAY_LEN(statements); i++)
                if (RUN(db, statements[i], err, db_text(row->uid), db_int(row->attempt)) < 0)
                        return -1;
        return 0;
}

static int write_phases(struct db *db, struct arena *a, const struct history_row *row, struct err *err)
{
        const struct track *t = row->track;
        const struct json *phases = json_at(track_json(a, t), "phases");
        uint32_t place = 0;

        json_foreach (phase, phases) {
                const struct track_phase *p = &t->phases[place];
                const struct json *blocks = json_at(phase, "blocks");

                if (RUN(db,
                        "INSERT INTO phase (uid, attempt, place, phase, seconds, total, steps, step_seconds, "
                        "durations)"
                        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                        err, db_text(row->uid), db_int(row->attempt), db_int(place), db_text(p->name),
                        db_real(track_phase_seconds(p, t->moved)), db_int(p->total), db_int(p->done),
                        db_real(p->sum), db_text(blocks ? json_print(a, blocks) : "[]")) < 0)
                        return -1;
                place++;
        }
        return 0;
}

static int write_measures(struct db *db, const struct history_row *row, struct err *err)
{
        for (size_t i = 0; i < row->n_measures; i++) {
                const struct history_measure *m = &row->measures[i];

                if (RUN(db,
                        "INSERT INTO measure (uid, attempt, place, series, algorithm, size, n, seconds, low, "
                        "high,"
                        " memory, cpu, cost, finished)"
                        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                        err, db_text(row->uid), db_int(row->attempt), db_int(i), db_text(m->series),
                        db_text(m->algorithm), {.type = DB_INT, .i = m->size}, db_int(m->n), db_real(m->time),
                        db_real(m->low), db_real(m->high), db_real(m->memory), db_real(m->cpu),
                        db_real(m->cost), db_int(row->finished)) < 0)
                        return -1;
        }
        return 0;
}

static int write_labels(struct db *db, struct arena *a, const struct history_row *row, struct err *err)
{
        const struct json *labels = json_parse(a, str_of(row->labels), NULL, NULL);
        unsigned n = 0;

        json_foreach (label, labels) {
                const char *value = json_cstr(label);

                if (!value || !label->key || strlen(value) > HISTORY_INDEXED_MAX ||
                    strlen(label->key) > HISTORY_INDEXED_MAX || n++ >= LABELS_MAX)
                        continue;
                if (RUN(db, "INSERT INTO label (uid, attempt, name, value) VALUES ($1, $2, $3, $4)", err,
                        db_text(row->uid), db_int(row->attempt), db_text(label->key), db_text(value)) < 0)
                        return -1;
        }
        return 0;
}

static int write_samples(struct db *db, const struct history_row *row, struct err *err)
{
        struct str text = str_of(row->samples);
        _cleanup_(buf_done) struct buf gz = BUF_INIT(text.n + 65536);

        if (gzip_add(&gz, text, err) < 0)
                return -1;
        return RUN(db, "INSERT INTO samples (uid, attempt, finished, gzipped) VALUES ($1, $2, $3, $4)", err,
                   db_text(row->uid), db_int(row->attempt), db_int(row->finished),
                   {.type = DB_BYTES, .s = buf_str(&gz)});
}

int history_write(struct db *db, const struct history_row *row, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        if (write_run(db, row, err) < 0 || forget_parts(db, row, err) < 0)
                return -1;
        if (row->track && write_phases(db, &a, row, err) < 0)
                return -1;
        if (write_measures(db, row, err) < 0)
                return -1;
        if (row->labels && write_labels(db, &a, row, err) < 0)
                return -1;
        return row->samples ? write_samples(db, row, err) : 0;
}

/* ---- what is too old, or too much */

static void take_count(void *arg, const struct db_value *values)
{
        *(uint64_t *)arg = db_count(&values[0]);
}

/* SQL counts at most LIMIT + 1, and deletes LIMIT of the oldest; both up to $1. */
static int delete_some(struct db *db, const char *counts, const char *deletes, usec_t upto, unsigned limit,
                       bool *more, struct err *err)
{
        const struct db_value params[] = {db_int(upto), db_int(limit), db_int(limit + 1)};
        const struct db_value count[] = {params[0], params[2]};
        uint64_t n = 0;

        if (!upto)
                return 0;
        if (db->ops->run(db, counts, count, ARRAY_LEN(count), take_count, &n, err) < 0)
                return -1;
        *more = *more || n > limit;
        return n ? db->ops->run(db, deletes, params, 2, NULL, NULL, err) : 0;
}

/* The end of the newest run that is one too many; 0: none is. */
static int too_many(struct db *db, uint64_t keep, uint64_t *ret, struct err *err)
{
        const struct db_value param = db_int(keep);

        *ret = 0;
        if (!keep)
                return 0;
        return db->ops->run(db, "SELECT finished FROM run ORDER BY finished DESC LIMIT 1 OFFSET $1", &param,
                            1, take_count, ret, err);
}

int history_delete(struct db *db, usec_t before, usec_t samples_before, uint64_t keep, bool *ret_more,
                   struct err *err)
{
        uint64_t beyond;

        *ret_more = false;
        if (delete_some(db, "SELECT count(*) FROM (SELECT 1 FROM samples WHERE finished <= $1 LIMIT $2) AS x",
                        "DELETE FROM samples WHERE (uid, attempt) IN"
                        " (SELECT uid, attempt FROM samples WHERE finished <= $1 ORDER BY finished LIMIT $2)",
                        samples_before, DELETE_SAMPLES, ret_more, err) < 0 ||
            too_many(db, keep, &beyond, err) < 0)
                return -1;
        return delete_some(db, "SELECT count(*) FROM (SELECT 1 FROM run WHERE finished <= $1 LIMIT $2) AS x",
                           "DELETE FROM run WHERE (uid, attempt) IN"
                           " (SELECT uid, attempt FROM run WHERE finished <= $1 ORDER BY finished LIMIT $2)",
                           MAX(before, beyond), DELETE_RUNS, ret_more, err);
}
