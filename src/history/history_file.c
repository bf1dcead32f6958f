#include "history/history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

enum { FILE_VERSION = 1, BUSY_MS = 10000 };

enum statement { ST_BEGIN, ST_COMMIT, ST_ROLLBACK, ST_RUN, ST_FORGET, ST_PHASE, ST_PRIORS, ST_MAX_ };

/* Priors come from first attempts: a later one may have gone on from a checkpoint, and cost less than a whole run. */
static const char *const statements[ST_MAX_] = {
        [ST_BEGIN] = "BEGIN IMMEDIATE",
        [ST_COMMIT] = "COMMIT",
        [ST_ROLLBACK] = "ROLLBACK",
        [ST_RUN] =
                "INSERT OR REPLACE INTO run (uid, attempt, kind, ns, name, shape, outcome, started, finished)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [ST_FORGET] = "DELETE FROM phase WHERE uid = ? AND attempt = ?",
        [ST_PHASE] = "INSERT INTO phase (uid, attempt, place, phase, seconds, total, steps, step_seconds, "
                     "durations)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [ST_PRIORS] =
                "SELECT phase.phase, seconds, steps, step_seconds FROM"
                " (SELECT uid, attempt FROM run WHERE shape = ? AND outcome = 'Succeeded' AND attempt = 1"
                "  ORDER BY finished DESC LIMIT 20) JOIN phase USING (uid, attempt) ORDER BY place",
};

static const char schema[] =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE run (uid TEXT NOT NULL, attempt INTEGER NOT NULL, kind TEXT NOT NULL, ns TEXT NOT NULL,"
        " name TEXT NOT NULL, shape TEXT NOT NULL, outcome TEXT NOT NULL, started INTEGER NOT NULL,"
        " finished INTEGER NOT NULL, PRIMARY KEY (uid, attempt)) WITHOUT ROWID;"
        "CREATE INDEX run_of_shape ON run (shape, finished) WHERE outcome = 'Succeeded' AND attempt = 1;"
        "CREATE TABLE phase (uid TEXT NOT NULL, attempt INTEGER NOT NULL, place INTEGER NOT NULL, phase TEXT "
        "NOT NULL,"
        " seconds REAL NOT NULL, total INTEGER NOT NULL, steps INTEGER NOT NULL, step_seconds REAL NOT NULL,"
        " durations TEXT NOT NULL, PRIMARY KEY (uid, attempt, place)) WITHOUT ROWID;"
        "PRAGMA user_version = 1;"
        "COMMIT;";
_Static_assert(FILE_VERSION == 1, "the schema sets the version");

struct history_file {
        char *path;
        sqlite3 *db;
        sqlite3_stmt *st[ST_MAX_];
};

static int fail(struct history_file *f, const char *what, struct err *err)
{
        int system = sqlite3_system_errno(f->db);

        if (system)
                return err_set(err, E_IO, "cannot %s the history %s: %s (%s)", what, f->path,
                               sqlite3_errmsg(f->db), strerrordesc_np(system));
        return err_set(err, E_IO, "cannot %s the history %s: %s", what, f->path, sqlite3_errmsg(f->db));
}

/* ---- opening */

static bool in_memory(const char *path)
{
        return streq(path, ":memory:");
}

/* Made here, so that what is wrong with the place is told by its own name, and nobody else reads it. */
static int make_file(const char *path, struct err *err)
{
        const char *slash = strrchr(path, '/');
        _cleanup_(free_ptr) char *dir = slash ? xstrndup(path, MAX((size_t)(slash - path), (size_t)1))
                                              : xstrdup(".");
        _cleanup_(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        _cleanup_(fd_close) int dir_fd = -1;

        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot open the history %s", path);
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0 || fsync(dir_fd) < 0)
                return err_errno(err, E_IO, errno, "cannot sync the directory %s", dir);
        return 0;
}

static int run_sql(struct history_file *f, const char *sql, struct err *err)
{
        return sqlite3_exec(f->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(f, "set up", err);
}

static int read_version(struct history_file *f, int *ret, struct err *err)
{
        sqlite3_stmt *st = NULL;
        int r = sqlite3_prepare_v2(f->db, "PRAGMA user_version", -1, &st, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_step(st);
        *ret = r == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
        if (r != SQLITE_ROW)
                fail(f, "read", err);
        sqlite3_finalize(st);
        return r == SQLITE_ROW ? 0 : -1;
}

static int check_version(struct history_file *f, struct err *err)
{
        int version;

        if (read_version(f, &version, err) < 0)
                return -1;
        if (version > FILE_VERSION)
                return err_set(
                        err, E_CONFIG,
                        "the history %s was written by a newer sonde (version %d, this one knows up to %d); "
                        "use that one, or another file",
                        f->path, version, FILE_VERSION);
        return version == 0 ? run_sql(f, schema, err) : 0;
}

static int open_db(struct history_file *f, struct err *err)
{
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

        if (sqlite3_open_v2(f->path, &f->db, flags, NULL) != SQLITE_OK)
                return fail(f, "open", err);
        /* Somebody may look inside meanwhile; a commit waits for him rather than to fail. */
        sqlite3_busy_timeout(f->db, BUSY_MS);
        if (sqlite3_db_readonly(f->db, "main"))
                return err_set(err, E_IO, "the history %s cannot be written to", f->path);
        if (run_sql(f, "PRAGMA synchronous = FULL", err) < 0 || check_version(f, err) < 0 ||
            run_sql(f, "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 16777216", err) < 0 ||
            run_sql(f, "PRAGMA cache_size = -256", err) < 0)
                return -1;
        for (size_t i = 0; i < ST_MAX_; i++)
                if (sqlite3_prepare_v3(f->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &f->st[i],
                                       NULL) != SQLITE_OK)
                        return fail(f, "use", err);
        return 0;
}

struct history_file *history_file_open(const char *path, struct err *err)
{
        _cleanup_(history_file_close) struct history_file *f = NULL;

        if (!in_memory(path) && make_file(path, err) < 0)
                return NULL;
        f = xcalloc(1, sizeof(*f));
        f->path = xstrdup(path);
        return open_db(f, err) < 0 ? NULL : TAKE_PTR(f);
}

void history_file_close(struct history_file *f)
{
        if (!f)
                return;
        for (size_t i = 0; i < ST_MAX_; i++)
                sqlite3_finalize(f->st[i]);
        sqlite3_close(f->db);
        free(f->path);
        free(f);
}

/* ---- writing */

static int step(struct history_file *f, enum statement which, struct err *err)
{
        int r = sqlite3_step(f->st[which]);

        if (r != SQLITE_DONE)
                fail(f, "write to", err);
        sqlite3_reset(f->st[which]);
        sqlite3_clear_bindings(f->st[which]);
        return r == SQLITE_DONE ? 0 : -1;
}

/* A parameter that cannot be bound is for want of memory or too large: the column then says that it must not be NULL. */
static void bind_text(sqlite3_stmt *st, int i, const char *s)
{
        sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
}

static void bind_number(sqlite3_stmt *st, int i, uint64_t v)
{
        sqlite3_bind_int64(st, i, (int64_t)MIN(v, (uint64_t)INT64_MAX));
}

static int write_phase(struct history_file *f, const struct history_pending *row, uint32_t place,
                       const char *durations, struct err *err)
{
        const struct track_phase *p = &row->track->phases[place];
        sqlite3_stmt *st = f->st[ST_PHASE];

        bind_text(st, 1, row->uid);
        bind_number(st, 2, row->attempt);
        bind_number(st, 3, place);
        bind_text(st, 4, p->name);
        sqlite3_bind_double(st, 5, track_phase_seconds(p, row->track->moved));
        bind_number(st, 6, p->total);
        bind_number(st, 7, p->done);
        sqlite3_bind_double(st, 8, p->sum);
        bind_text(st, 9, durations);
        return step(f, ST_PHASE, err);
}

static int write_phases(struct history_file *f, const struct history_pending *row, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *phases = json_at(track_json(&a, row->track), "phases");
        uint32_t place = 0;

        json_foreach (phase, phases) {
                const struct json *blocks = json_at(phase, "blocks");

                if (write_phase(f, row, place++, blocks ? json_print(&a, blocks) : "[]", err) < 0)
                        return -1;
        }
        return 0;
}

static int write_row(struct history_file *f, const struct history_pending *row, struct err *err)
{
        const char *const texts[] = {row->kind, row->ns, row->name, row->shape, row->outcome};
        sqlite3_stmt *st = f->st[ST_RUN];

        bind_text(f->st[ST_FORGET], 1, row->uid);
        bind_number(f->st[ST_FORGET], 2, row->attempt);
        if (step(f, ST_FORGET, err) < 0)
                return -1;
        bind_text(st, 1, row->uid);
        bind_number(st, 2, row->attempt);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                bind_text(st, (int)i + 3, texts[i]);
        bind_number(st, 8, row->started);
        bind_number(st, 9, row->finished);
        if (step(f, ST_RUN, err) < 0)
                return -1;
        return row->track ? write_phases(f, row, err) : 0;
}

int history_file_write(struct history_file *f, const struct list *rows, struct err *err)
{
        int r = step(f, ST_BEGIN, err);

        if (r < 0)
                return -1;
        list_foreach (node, rows) {
                r = write_row(f, CONTAINER_OF(node, struct history_pending, node), err);
                if (r < 0)
                        break;
        }
        if (r == 0)
                r = step(f, ST_COMMIT, err);
        /* SQLite has ended the transaction by itself after some errors. */
        if (r < 0 && !sqlite3_get_autocommit(f->db))
                step(f, ST_ROLLBACK, NULL);
        return r;
}

/* ---- reading */

int history_file_priors(struct history_file *f, const char *shape, struct priors *ret, struct err *err)
{
        sqlite3_stmt *st = f->st[ST_PRIORS];
        int r;

        *ret = (struct priors){.n = 0};
        bind_text(st, 1, shape);
        while ((r = sqlite3_step(st)) == SQLITE_ROW) {
                const char *phase = (const char *)sqlite3_column_text(st, 0);

                if (phase && *phase)
                        priors_add(ret, phase, sqlite3_column_double(st, 1), sqlite3_column_double(st, 2),
                                   sqlite3_column_double(st, 3));
        }
        if (r != SQLITE_DONE)
                fail(f, "read", err);
        sqlite3_reset(st);
        sqlite3_clear_bindings(st);
        return r == SQLITE_DONE ? 0 : -1;
}
