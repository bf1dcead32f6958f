#include "local/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

/*
 * One table, one row a write. The lock is a file of its own beside the database: SQLite's own locks would allow a second
 * engine to read, and say nothing of who has them. It is never removed, because whoever waits for a file that is removed
 * locks something else than whoever makes it anew.
 */

enum { FILE_VERSION = 1, PID_MAX_TEXT = 32, LOCK_TRIES = 1000, LOCK_EVERY_US = 5000 };

enum statement { ST_BEGIN, ST_COMMIT, ST_ROLLBACK, ST_PUT, ST_DROP, ST_SET_OLDEST, ST_MAX_ };

static const char *const statements[ST_MAX_] = {
        [ST_BEGIN] = "BEGIN IMMEDIATE",
        [ST_COMMIT] = "COMMIT",
        [ST_ROLLBACK] = "ROLLBACK",
        [ST_PUT] = "INSERT INTO log (rev, type, ns, name, deleted, text) VALUES (?, ?, ?, ?, ?, ?)",
        [ST_DROP] = "DELETE FROM log WHERE rev = ?",
        [ST_SET_OLDEST] = "INSERT OR REPLACE INTO meta (name, value) VALUES ('oldest', ?)",
};

static const char schema[] =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE log (rev INTEGER PRIMARY KEY, type TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,"
        " deleted INTEGER NOT NULL, text TEXT NOT NULL);"
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
        "PRAGMA user_version = 1;"
        "COMMIT;";
_Static_assert(FILE_VERSION == 1, "the schema sets the version");

struct store_file {
        char *path, *dir;
        int lock_fd;
        sqlite3 *db;
        sqlite3_stmt *st[ST_MAX_];
};

static int fail(struct store_file *f, const char *what, struct err *err)
{
        int system = sqlite3_system_errno(f->db);

        if (system)
                return err_set(err, E_IO, "cannot %s %s: %s (%s)", what, f->path, sqlite3_errmsg(f->db),
                               strerrordesc_np(system));
        return err_set(err, E_IO, "cannot %s %s: %s", what, f->path, sqlite3_errmsg(f->db));
}

/* ---- the lock */

/* Who has the lock by what is written in it; 0: nothing is. */
static uint64_t holder(const struct store_file *f)
{
        char text[PID_MAX_TEXT];
        ssize_t n = pread(f->lock_fd, text, sizeof(text), 0);
        uint64_t pid;

        return str_to_u64(str_trim(str_n(text, n > 0 ? (size_t)n : 0)), &pid) ? pid : 0;
}

static int refuse(struct store_file *f, struct err *err)
{
        uint64_t pid = holder(f);

        if (!pid)
                return err_set(err, E_CONFIG,
                               "another engine is using the directory %s; stop it, or use another directory",
                               f->dir);
        return err_set(
                err, E_CONFIG,
                "another engine (pid %llu) is using the directory %s; stop it, or use another directory",
                (unsigned long long)pid, f->dir);
}

static bool has_gone(uint64_t pid)
{
        return pid && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* An engine that is killed while it starts a process leaves its lock to that one until it is another program: a moment,
 * which whoever starts the engine again at once must not be refused for. */
static int take_lock(const struct store_file *f)
{
        for (int i = 0; flock(f->lock_fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (errno == EINTR)
                        continue;
                if (errno != EWOULDBLOCK)
                        return -1;
                if (i >= LOCK_TRIES || !has_gone(holder(f))) {
                        errno = EWOULDBLOCK;
                        return -1;
                }
                usleep(LOCK_EVERY_US);
        }
        return 0;
}

static int lock_dir(struct store_file *f, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/lock", f->dir);
        char text[PID_MAX_TEXT];
        int n;

        f->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (f->lock_fd < 0)
                return err_errno(err, E_IO, errno, "cannot open the lock %s", path);
        if (take_lock(f) < 0)
                return errno == EWOULDBLOCK ? refuse(f, err)
                                            : err_errno(err, E_IO, errno, "cannot lock %s", path);
        n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
        if (ftruncate(f->lock_fd, 0) < 0 || pwrite(f->lock_fd, text, (size_t)n, 0) != n)
                return err_errno(err, E_IO, errno, "cannot write %s", path);
        return 0;
}

static int sync_dir(struct store_file *f, struct err *err)
{
        _cleanup_(fd_close) int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) < 0)
                return err_errno(err, E_IO, errno, "cannot sync the directory %s", f->dir);
        return 0;
}

/* ---- opening */

static int run_sql(struct store_file *f, const char *sql, struct err *err)
{
        return sqlite3_exec(f->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(f, "set up", err);
}

/* The first value of the first row; OTHERWISE without a row. */
static int read_number(struct store_file *f, const char *sql, int64_t otherwise, int64_t *ret,
                       struct err *err)
{
        sqlite3_stmt *st = NULL;
        int r = sqlite3_prepare_v2(f->db, sql, -1, &st, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_step(st);
        *ret = r == SQLITE_ROW ? sqlite3_column_int64(st, 0) : otherwise;
        if (r != SQLITE_ROW && r != SQLITE_DONE)
                fail(f, "read", err);
        sqlite3_finalize(st);
        return r == SQLITE_ROW || r == SQLITE_DONE ? 0 : -1;
}

static int check_version(struct store_file *f, struct err *err)
{
        int64_t version;

        if (read_number(f, "PRAGMA user_version", 0, &version, err) < 0)
                return -1;
        if (version > FILE_VERSION)
                return err_set(err, E_CONFIG,
                               "%s was written by a newer sonde (version %lld, this one knows up to %d); use "
                               "that one, or another directory",
                               f->path, (long long)version, FILE_VERSION);
        return version == 0 ? run_sql(f, schema, err) : 0;
}

static int open_db(struct store_file *f, bool durable, struct err *err)
{
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

        if (sqlite3_open_v2(f->path, &f->db, flags, NULL) != SQLITE_OK)
                return fail(f, "open", err);
        /* Somebody may look inside with sqlite3 meanwhile; a commit waits for him rather than to fail. */
        sqlite3_busy_timeout(f->db, 10000);
        if (run_sql(f, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = OFF", err) < 0 ||
            check_version(f, err) < 0 ||
            run_sql(f, "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 16777216", err) < 0 ||
            run_sql(f, "PRAGMA cache_size = -256", err) < 0) /* KiB: rows are appended, and read but once */
                return -1;
        for (size_t i = 0; i < ST_MAX_; i++)
                if (sqlite3_prepare_v3(f->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &f->st[i],
                                       NULL) != SQLITE_OK)
                        return fail(f, "use", err);
        return 0;
}

struct store_file *store_file_open(const char *path, bool durable, struct err *err)
{
        _cleanup_(store_file_close) struct store_file *f = xcalloc(1, sizeof(*f));
        const char *slash = strrchr(path, '/');
        int fd;

        f->path = xstrdup(path);
        f->dir = slash ? xstrndup(path, MAX((size_t)(slash - path), (size_t)1)) : xstrdup(".");
        f->lock_fd = -1;
        if (lock_dir(f, err) < 0)
                return NULL;
        /* Secrets are in it: made before SQLite would make it by the umask; its WAL takes the mode over. */
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
                err_errno(err, E_IO, errno, "cannot open %s", path);
                return NULL;
        }
        fd_close(fd);
        if (open_db(f, durable, err) < 0 || (durable && sync_dir(f, err) < 0))
                return NULL;
        return TAKE_PTR(f);
}

void store_file_close(struct store_file *f)
{
        if (!f)
                return;
        for (size_t i = 0; i < ST_MAX_; i++)
                sqlite3_finalize(f->st[i]);
        sqlite3_close(f->db);
        fd_close(f->lock_fd);
        free(f->path);
        free(f->dir);
        free(f);
}

/* ---- reading */

static struct str column(sqlite3_stmt *st, int i)
{
        const char *p = (const char *)sqlite3_column_text(st, i);

        return str_n(p, p ? (size_t)sqlite3_column_bytes(st, i) : 0);
}

int store_file_load(struct store_file *f, void (*fn)(void *arg, const struct store_row *row), void *arg,
                    uint64_t *ret_oldest, struct err *err)
{
        sqlite3_stmt *st = NULL;
        int64_t oldest;
        int r;

        if (read_number(f, "SELECT value FROM meta WHERE name = 'oldest'", 0, &oldest, err) < 0)
                return -1;
        *ret_oldest = (uint64_t)oldest;
        r = sqlite3_prepare_v2(f->db, "SELECT rev, type, ns, name, deleted, text FROM log ORDER BY rev", -1,
                               &st, NULL);
        while (r == SQLITE_OK || r == SQLITE_ROW) {
                r = sqlite3_step(st);
                if (r != SQLITE_ROW)
                        break;
                fn(arg, &(struct store_row){.rev = (uint64_t)sqlite3_column_int64(st, 0),
                                            .type = column(st, 1),
                                            .ns = column(st, 2),
                                            .name = column(st, 3),
                                            .is_delete = sqlite3_column_int(st, 4) != 0,
                                            .text = column(st, 5)});
        }
        if (r != SQLITE_DONE)
                fail(f, "read", err);
        sqlite3_finalize(st);
        return r == SQLITE_DONE ? 0 : -1;
}

/* ---- writing */

static void roll_back(struct store_file *f)
{
        /* SQLite has ended the transaction by itself after some errors. */
        if (!sqlite3_get_autocommit(f->db)) {
                sqlite3_step(f->st[ST_ROLLBACK]);
                sqlite3_reset(f->st[ST_ROLLBACK]);
        }
}

static int step(struct store_file *f, enum statement which, struct err *err)
{
        int r = sqlite3_step(f->st[which]);

        if (r == SQLITE_DONE) {
                sqlite3_reset(f->st[which]);
                return 0;
        }
        fail(f, "write to", err);
        sqlite3_reset(f->st[which]);
        roll_back(f);
        return -1;
}

int store_file_begin(struct store_file *f, struct err *err)
{
        return step(f, ST_BEGIN, err);
}

int store_file_commit(struct store_file *f, struct err *err)
{
        return step(f, ST_COMMIT, err);
}

static int bind_text(sqlite3_stmt *st, int i, struct str s)
{
        return sqlite3_bind_text64(st, i, s.p ? s.p : "", s.n, SQLITE_STATIC, SQLITE_UTF8);
}

int store_file_put(struct store_file *f, const struct store_row *row, struct err *err)
{
        sqlite3_stmt *st = f->st[ST_PUT];

        if (sqlite3_bind_int64(st, 1, (int64_t)row->rev) != SQLITE_OK ||
            bind_text(st, 2, row->type) != SQLITE_OK || bind_text(st, 3, row->ns) != SQLITE_OK ||
            bind_text(st, 4, row->name) != SQLITE_OK ||
            sqlite3_bind_int(st, 5, row->is_delete) != SQLITE_OK ||
            bind_text(st, 6, row->text) != SQLITE_OK) {
                fail(f, "write to", err);
                roll_back(f);
                return -1;
        }
        return step(f, ST_PUT, err);
}

static int step_number(struct store_file *f, enum statement which, uint64_t number, struct err *err)
{
        if (sqlite3_bind_int64(f->st[which], 1, (int64_t)number) != SQLITE_OK) {
                fail(f, "write to", err);
                roll_back(f);
                return -1;
        }
        return step(f, which, err);
}

int store_file_drop(struct store_file *f, uint64_t rev, struct err *err)
{
        return step_number(f, ST_DROP, rev, err);
}

int store_file_set_oldest(struct store_file *f, uint64_t rev, struct err *err)
{
        return step_number(f, ST_SET_OLDEST, rev, err);
}
