#include "history/history_db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

enum { BUSY_MS = 10000 };

struct sqlite {
        struct db db;
        sqlite3 *handle;
};

static struct sqlite *of(struct db *db)
{
        return CONTAINER_OF(db, struct sqlite, db);
}

static enum err_code code_of(int result)
{
        switch (result) {
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_TOOBIG:
                return E_REFUSED;
        case SQLITE_BUSY:
        case SQLITE_FULL:
        case SQLITE_LOCKED:
                return E_BUSY;
        default:
                return E_IO;
        }
}

static int fail(struct sqlite *s, struct err *err)
{
        int system = sqlite3_system_errno(s->handle);
        enum err_code code = code_of(sqlite3_errcode(s->handle) & 0xFF);

        if (system)
                return err_set(err, code, "%s (%s)", sqlite3_errmsg(s->handle), strerrordesc_np(system));
        return err_set(err, code, "%s", sqlite3_errmsg(s->handle));
}

/* ---- statements */

/* What cannot be bound is for want of memory, or too large. */
static int bind_value(sqlite3_stmt *st, int i, const struct db_value *v)
{
        switch (v->type) {
        case DB_INT:
                return sqlite3_bind_int64(st, i, v->i);
        case DB_REAL:
                return sqlite3_bind_double(st, i, v->d);
        case DB_TEXT:
                return sqlite3_bind_text64(st, i, v->s.p, v->s.n, SQLITE_STATIC, SQLITE_UTF8);
        case DB_BYTES:
                return sqlite3_bind_blob64(st, i, v->s.p, v->s.n, SQLITE_STATIC);
        case DB_NULL:
                break;
        }
        return sqlite3_bind_null(st, i);
}

/* SQLite takes $1 for a name, and numbers names as they come. */
static int bind_all(sqlite3_stmt *st, const struct db_value *params, size_t n)
{
        int r = SQLITE_OK;

        for (size_t i = 0; i < n && r == SQLITE_OK; i++) {
                char name[24];

                snprintf(name, sizeof(name), "$%zu", i + 1);
                r = bind_value(st, sqlite3_bind_parameter_index(st, name), &params[i]);
        }
        return r;
}

static struct db_value column(sqlite3_stmt *st, int i)
{
        struct db_value v = {.type = DB_NULL};

        switch (sqlite3_column_type(st, i)) {
        case SQLITE_INTEGER:
                v.type = DB_INT;
                v.i = sqlite3_column_int64(st, i);
                break;
        case SQLITE_FLOAT:
                v.type = DB_REAL;
                v.d = sqlite3_column_double(st, i);
                break;
        case SQLITE_TEXT:
                v.type = DB_TEXT;
                v.s.p = (const char *)sqlite3_column_text(st, i);
                v.s.n = (size_t)sqlite3_column_bytes(st, i);
                break;
        case SQLITE_BLOB:
                v.type = DB_BYTES;
                v.s.p = sqlite3_column_blob(st, i);
                v.s.n = (size_t)sqlite3_column_bytes(st, i);
                break;
        default:
                break;
        }
        return v;
}

static int run(struct db *db, const char *sql, const struct db_value *params, size_t n,
               void (*row)(void *arg, const struct db_value *values), void *arg, struct err *err)
{
        struct sqlite *s = of(db);
        sqlite3_stmt *st = NULL;
        int r = sqlite3_prepare_v2(s->handle, sql, -1, &st, NULL);

        if (r == SQLITE_OK)
                r = bind_all(st, params, n);
        if (r == SQLITE_OK)
                while ((r = sqlite3_step(st)) == SQLITE_ROW) {
                        struct db_value values[DB_COLUMNS_MAX] = {0};
                        int columns = MIN(sqlite3_column_count(st), (int)DB_COLUMNS_MAX);

                        for (int i = 0; i < columns; i++)
                                values[i] = column(st, i);
                        if (row)
                                row(arg, values);
                }
        if (r != SQLITE_DONE)
                fail(s, err);
        sqlite3_finalize(st);
        return r == SQLITE_DONE ? 0 : -1;
}

static int script(struct db *db, const char *sql, struct err *err)
{
        struct sqlite *s = of(db);

        return sqlite3_exec(s->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(s, err);
}

static void take_version(void *arg, const struct db_value *values)
{
        *(int *)arg = (int)values[0].i;
}

static int version(struct db *db, int *ret, struct err *err)
{
        *ret = 0;
        return run(db, "PRAGMA user_version", NULL, 0, take_version, ret, err);
}

static int set_version(struct db *db, int number, struct err *err)
{
        char sql[48];

        snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", number);
        return script(db, sql, err);
}

static bool lost(struct db *db)
{
        return false;
}

static void close_db(struct db *db)
{
        sqlite3_close(of(db)->handle);
        free(of(db));
}

static const struct db_ops ops = {.begin = "BEGIN IMMEDIATE",
                                  .begin_alone = "BEGIN IMMEDIATE",
                                  .run = run,
                                  .script = script,
                                  .version = version,
                                  .set_version = set_version,
                                  .lost = lost,
                                  .close = close_db};

/* ---- opening */

static bool in_memory(const char *path)
{
        return streq(path, ":memory:");
}

/* Made here, so that what is wrong with the place is told by its own name, and nobody else reads it. */
static int make_file(const char *path, bool make, struct err *err)
{
        const char *slash = strrchr(path, '/');
        _cleanup_(free_ptr) char *dir = slash ? xstrndup(path, MAX((size_t)(slash - path), (size_t)1))
                                              : xstrdup(".");
        _cleanup_(fd_close) int fd = open(path, O_RDWR | (make ? O_CREAT : 0) | O_CLOEXEC, 0600);
        _cleanup_(fd_close) int dir_fd = -1;

        if (fd < 0)
                return err_set(err, E_IO, "%s", strerrordesc_np(errno));
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0 || (make && fsync(dir_fd) < 0))
                return err_errno(err, E_IO, errno, "cannot sync the directory %s", dir);
        return 0;
}

static int open_handle(struct sqlite *s, const char *path, struct err *err)
{
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

        if (sqlite3_open_v2(path, &s->handle, flags, NULL) != SQLITE_OK)
                return fail(s, err);
        /* Somebody may look inside meanwhile; a commit waits for him rather than to fail. */
        sqlite3_busy_timeout(s->handle, BUSY_MS);
        if (sqlite3_db_readonly(s->handle, "main"))
                return err_set(err, E_IO, "it cannot be written to");
        return script(&s->db,
                      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL;"
                      "PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -256",
                      err);
}

struct db *history_sqlite_open(const char *path, bool make, struct err *err)
{
        struct sqlite *s;

        if (!in_memory(path) && make_file(path, make, err) < 0)
                return NULL;
        s = xcalloc(1, sizeof(*s));
        s->db.ops = &ops;
        if (open_handle(s, path, err) < 0) {
                close_db(&s->db);
                return NULL;
        }
        return &s->db;
}
