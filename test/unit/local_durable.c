/*
 * What is acknowledged survives a loss of power. SQLite writes through a VFS of ours, which keeps beside every file what of
 * it was synced: all that a disk need have when the power goes. A store on that must have whatever was acknowledged.
 */
#include "unit/dir.h"
#include "unit/unit.h"

#include <sqlite3.h>

#include "base/file.h"
#include "local/store_internal.h"

enum { FILE_BYTES_MAX = 64 << 20, LARGE = 64 << 10 };

/* ---- the disk */

struct disk_file {
        sqlite3_file base;
        const char *path; /* SQLite's; NULL: a file without a name */
        sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;
static char synced_dir[UNIT_DIR_LEN];

static sqlite3_file *real(sqlite3_file *f)
{
        return CONTAINER_OF(f, struct disk_file, base)->real;
}

static void copy_file(const char *from, const char *dir)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
        _cleanup_(free_ptr) char *to = xasprintf("%s%s", dir, strrchr(from, '/'));
        FILE *out;

        if (file_read(from, &text, NULL) < 0)
                return;
        out = fopen(to, "we");
        if (!out || fwrite(text.p, 1, text.n, out) != text.n || fclose(out) != 0)
                abort();
}

static int disk_sync(sqlite3_file *f, int flags)
{
        const struct disk_file *file = CONTAINER_OF(f, struct disk_file, base);
        int result = file->real->pMethods->xSync(file->real, flags);

        if (result == SQLITE_OK && file->path)
                copy_file(file->path, synced_dir);
        return result;
}

static int disk_close(sqlite3_file *f)
{
        return real(f)->pMethods->xClose(real(f));
}

static int disk_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
        return real(f)->pMethods->xRead(real(f), to, n, at);
}

static int disk_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
        return real(f)->pMethods->xWrite(real(f), from, n, at);
}

static int disk_truncate(sqlite3_file *f, sqlite3_int64 size)
{
        return real(f)->pMethods->xTruncate(real(f), size);
}

static int disk_size(sqlite3_file *f, sqlite3_int64 *ret)
{
        return real(f)->pMethods->xFileSize(real(f), ret);
}

static int disk_lock(sqlite3_file *f, int level)
{
        return real(f)->pMethods->xLock(real(f), level);
}

static int disk_unlock(sqlite3_file *f, int level)
{
        return real(f)->pMethods->xUnlock(real(f), level);
}

static int disk_reserved(sqlite3_file *f, int *ret)
{
        return real(f)->pMethods->xCheckReservedLock(real(f), ret);
}

static int disk_control(sqlite3_file *f, int what, void *arg)
{
        return real(f)->pMethods->xFileControl(real(f), what, arg);
}

static int disk_sector(sqlite3_file *f)
{
        return real(f)->pMethods->xSectorSize(real(f));
}

static int disk_traits(sqlite3_file *f)
{
        return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int disk_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
        return real(f)->pMethods->xShmMap(real(f), page, size, extend, ret);
}

static int disk_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
        return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
}

static void disk_shm_barrier(sqlite3_file *f)
{
        real(f)->pMethods->xShmBarrier(real(f));
}

static int disk_shm_unmap(sqlite3_file *f, int remove)
{
        return real(f)->pMethods->xShmUnmap(real(f), remove);
}

static const sqlite3_io_methods disk_methods = {
        .iVersion = 2,
        .xClose = disk_close,
        .xRead = disk_read,
        .xWrite = disk_write,
        .xTruncate = disk_truncate,
        .xSync = disk_sync,
        .xFileSize = disk_size,
        .xLock = disk_lock,
        .xUnlock = disk_unlock,
        .xCheckReservedLock = disk_reserved,
        .xFileControl = disk_control,
        .xSectorSize = disk_sector,
        .xDeviceCharacteristics = disk_traits,
        .xShmMap = disk_shm_map,
        .xShmLock = disk_shm_lock,
        .xShmBarrier = disk_shm_barrier,
        .xShmUnmap = disk_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *ret_flags)
{
        struct disk_file *file = CONTAINER_OF(f, struct disk_file, base);
        int result;

        file->path = path;
        file->real = (sqlite3_file *)(file + 1);
        result = real_vfs->xOpen(real_vfs, path, file->real, flags, ret_flags);
        f->pMethods = file->real->pMethods ? &disk_methods : NULL;
        return result;
}

/* From here on SQLite uses this disk. */
static void use_disk(void)
{
        static sqlite3_vfs vfs;

        real_vfs = sqlite3_vfs_find("unix"); /* not ours, which a test that failed has left */
        assert_non_null(real_vfs);
        vfs = *real_vfs;
        vfs.zName = "disk";
        vfs.szOsFile = (int)sizeof(struct disk_file) + real_vfs->szOsFile;
        vfs.xOpen = disk_open;
        assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

static void unuse_disk(void)
{
        assert_int_equal(sqlite3_vfs_unregister(sqlite3_vfs_find("disk")), SQLITE_OK);
        assert_int_equal(sqlite3_vfs_register(real_vfs, 1), SQLITE_OK);
}

/* ---- the store on it */

struct rig {
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 16];
        struct clock clock;
        struct loop *loop;
        struct store *s;
        char cut_dir[UNIT_DIR_LEN]; /* what is left when the power goes at the acknowledgement */
        bool done;
};

static void rig_open(struct rig *r, bool durable)
{
        struct err err = ERR_INIT;

        *r = (struct rig){.clock = {.manual = true, .boot = 1000, .wall = 1000}};
        unit_dir(r->dir);
        unit_dir(synced_dir);
        snprintf(r->path, sizeof(r->path), "%s/store.db", r->dir);
        use_disk();
        r->loop = loop_new(&r->clock, NULL, &err);
        r->s = store_open(r->loop, &(struct store_config){.path = r->path, .durable = durable}, &err);
        if (!r->s)
                fail_msg("%s", err.text);
}

static void rig_done(struct rig *r)
{
        store_close(r->s);
        loop_free(r->loop);
        unuse_disk();
}

/* The power goes in this moment. */
static void acknowledged(void *arg)
{
        struct rig *r = arg;
        static const char *const names[] = {"store.db", "store.db-wal"};

        unit_dir(r->cut_dir);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                _cleanup_(free_ptr) char *path = xasprintf("%s/%s", synced_dir, names[i]);

                copy_file(path, r->cut_dir);
        }
        r->done = true;
}

static void write_one(struct rig *r, const struct store_write *w)
{
        r->done = false;
        (void)store_stage(r->s, w, acknowledged, r);
        while (!r->done && loop_turn(r->loop, true))
                continue;
        assert_true(r->done);
}

/* Whether NAME is there in a store on what was left. */
static bool survived(const struct rig *r, const char *name)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/store.db", r->cut_dir);
        struct err err = ERR_INIT;
        struct store *s = store_open(r->loop, &(struct store_config){.path = path}, &err);
        bool there;

        if (!s)
                fail_msg("%s", err.text);
        there = store_get(s, "pods", "default", name);
        store_close(s);
        return there;
}

static void what_is_acknowledged_survives_a_loss_of_power(void **state)
{
        char *text = xmalloc(LARGE), name[16];
        struct rig r;

        memset(text, 'x', LARGE);
        rig_open(&r, true);
        for (int i = 0; i < 80; i++) { /* the file is brought up to date from the WAL on the way */
                snprintf(name, sizeof(name), "p%d", i);
                write_one(&r,
                          &(struct store_write){
                                  .type = "pods", .ns = "default", .name = name, .text = str_n(text, LARGE)});
                if (i % 8 == 0) {
                        assert_true(survived(&r, name));
                        assert_true(survived(&r, "p0"));
                }
        }
        write_one(
                &r,
                &(struct store_write){
                        .type = "pods", .ns = "default", .name = "p0", .text = STR("x"), .is_delete = true});
        assert_false(survived(&r, "p0"));
        assert_true(survived(&r, "p79"));
        rig_done(&r);
        free(text);
}

/* That the disk above loses what is not synced: a store that does not sync has nothing then. */
static void what_is_not_synced_is_lost_there(void **state)
{
        struct rig r;

        rig_open(&r, false);
        write_one(&r, &(struct store_write){.type = "pods", .ns = "default", .name = "a", .text = STR("1")});
        assert_false(survived(&r, "a"));
        rig_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_acknowledged_survives_a_loss_of_power),
        cmocka_unit_test(what_is_not_synced_is_lost_there),
};

UNIT_MAIN(tests)
