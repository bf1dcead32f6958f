#include "history/history_tables.h"

#define KEY    "uid TEXT NOT NULL, attempt BIGINT NOT NULL"
#define OF_RUN "FOREIGN KEY (uid, attempt) REFERENCES run (uid, attempt) ON DELETE CASCADE"
#define PHASE                                                                                    \
        "place BIGINT NOT NULL, phase TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL,"         \
        " total BIGINT NOT NULL, steps BIGINT NOT NULL, step_seconds DOUBLE PRECISION NOT NULL," \
        " durations TEXT NOT NULL, PRIMARY KEY (uid, attempt, place)"

/*
 * From version i to version i + 1. What a version once was stays as it is here: files of it are about.
 *
 * 1: the names of types are others than in the files that were made first, and the same to SQLite.
 * 2: what belongs to a run goes with it; SQLite adds a foreign key to no table that is there.
 */
static const char *const steps[] = {
        "CREATE TABLE run (" KEY ", kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,"
        " shape TEXT NOT NULL, outcome TEXT NOT NULL, started BIGINT NOT NULL, finished BIGINT NOT NULL,"
        " PRIMARY KEY (uid, attempt));"
        "CREATE INDEX run_of_shape ON run (shape, finished) WHERE outcome = 'Succeeded' AND attempt = 1;"
        "CREATE TABLE phase (" KEY ", " PHASE ")",

        "ALTER TABLE run ADD COLUMN labels TEXT;"
        "ALTER TABLE run ADD COLUMN machine TEXT;"
        "ALTER TABLE run ADD COLUMN image TEXT;"
        "ALTER TABLE run ADD COLUMN spec_hash TEXT;"
        "CREATE INDEX run_by_end ON run (finished);"
        "ALTER TABLE phase RENAME TO phase_1;"
        "CREATE TABLE phase (" KEY ", " PHASE ", " OF_RUN ");"
        "INSERT INTO phase (uid, attempt, place, phase, seconds, total, steps, step_seconds, durations)"
        " SELECT uid, attempt, place, phase, seconds, total, steps, step_seconds, durations"
        " FROM phase_1 JOIN run USING (uid, attempt);"
        "DROP TABLE phase_1;"
        "CREATE TABLE measure (" KEY ", place BIGINT NOT NULL, series TEXT NOT NULL, algorithm TEXT NOT NULL,"
        " size BIGINT NOT NULL, n BIGINT NOT NULL, seconds DOUBLE PRECISION, low DOUBLE PRECISION,"
        " high DOUBLE PRECISION, memory DOUBLE PRECISION, cpu DOUBLE PRECISION, cost DOUBLE PRECISION,"
        " finished BIGINT NOT NULL, PRIMARY KEY (uid, attempt, place), " OF_RUN ");"
        "CREATE INDEX measure_of_series ON measure (series, finished);"
        "CREATE TABLE label (" KEY ", name TEXT NOT NULL, value TEXT NOT NULL,"
        " PRIMARY KEY (uid, attempt, name), " OF_RUN ");"
        "CREATE INDEX label_by_value ON label (name, value);"
        "CREATE TABLE samples (" KEY ", finished BIGINT NOT NULL, gzipped BYTEA NOT NULL,"
        " PRIMARY KEY (uid, attempt), " OF_RUN ");"
        "CREATE INDEX samples_by_end ON samples (finished)",
};

enum { VERSION = ARRAY_LEN(steps) };

/* One step, unless somebody else has done it meanwhile. */
static int step_up(struct db *db, struct err *err)
{
        const struct db_ops *ops = db->ops;
        int version = 0, r = ops->script(db, ops->begin_alone, err);

        if (r < 0)
                return -1;
        r = ops->version(db, &version, err);
        if (r == 0 && version < VERSION) {
                r = ops->script(db, steps[MAX(version, 0)], err);
                if (r == 0)
                        r = ops->set_version(db, MAX(version, 0) + 1, err);
        }
        if (r == 0)
                r = ops->script(db, "COMMIT", err);
        if (r < 0)
                ops->script(db, "ROLLBACK", NULL);
        return r;
}

int history_schema(struct db *db, bool reading, struct err *err)
{
        int version = 0;

        for (int tries = 0; tries <= VERSION; tries++) {
                if (db->ops->version(db, &version, err) < 0)
                        return -1;
                if (version > VERSION)
                        return err_set(
                                err, E_CONFIG,
                                "it was written by a newer sonde (version %d, this one knows up to %d); "
                                "use that one, or another place",
                                version, VERSION);
                if (version == VERSION)
                        return 0;
                if (reading)
                        return err_set(
                                err, E_NOT_FOUND,
                                version > 0 ? "it was written by an older sonde (version %d, this one has "
                                              "%d); an operator that is started with it brings it up to date"
                                            : "it holds no history (version %d, this one has %d)",
                                version, VERSION);
                if (step_up(db, err) < 0)
                        return err_wrap(err, "bringing it from version %d to %d", version, version + 1);
        }
        return err_set(err, E_INTERNAL, "its version does not change");
}
