/*
 * Where a library is, in the order of ld.so(8): RPATH of the object and of those that it was loaded for (unless it has a
 * RUNPATH), LD_LIBRARY_PATH, RUNPATH, the cache, the default directories. musl knows neither cache nor the difference
 * between RPATH and RUNPATH, and has a file with its default directories.
 */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "probe/ncu/elf.h"

enum { CACHE_MAX = 16 << 20, PATH_FILE_MAX = 64 << 10 };

#define CACHE_OLD  "ld.so-1.7.0"
#define CACHE_NEW  "glibc-ld.so.cache1.1"
#define CACHE_PATH "/etc/ld.so.cache"

/* ---- the cache */

enum {
        OLD_HEAD = 16, /* magic, number of entries */
        OLD_ENTRY = 12,
        NEW_HEAD = 48,
        NEW_ENTRY = 24, /* flags, name, path, version of the system, capabilities of the machine */
};

static uint32_t le32(const char *p)
{
        const unsigned char *u = (const unsigned char *)p;

        return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

/* Some systems still have the old format before the new one. */
static struct str new_part(struct str cache)
{
        size_t skip = 0;

        if (str_has_prefix(cache, STR(CACHE_OLD)) && cache.n >= OLD_HEAD)
                skip = (OLD_HEAD + (size_t)le32(cache.p + 12) * OLD_ENTRY + 7) & ~(size_t)7;
        if (!cache.n || skip > cache.n)
                return STR_NULL;
        cache = str_n(cache.p + skip, cache.n - skip);
        return cache.n >= NEW_HEAD && str_has_prefix(cache, STR(CACHE_NEW)) ? cache : STR_NULL;
}

static struct str cache_string(struct str cache, uint32_t offset)
{
        const char *end = offset < cache.n ? memchr(cache.p + offset, '\0', cache.n - offset) : NULL;

        return end ? str_n(cache.p + offset, (size_t)(end - cache.p) - offset) : STR_NULL;
}

const char *ld_cache_next(struct arena *a, struct str cache, const char *name, size_t *at)
{
        size_t n;

        cache = new_part(cache);
        n = cache.p ? MIN((size_t)le32(cache.p + 20), (cache.n - NEW_HEAD) / NEW_ENTRY) : 0;
        while (*at < n) {
                const char *entry = cache.p + NEW_HEAD + NEW_ENTRY * (*at)++;
                struct str key = cache_string(cache, le32(entry + 4)),
                           path = cache_string(cache, le32(entry + 8));

                if (key.p && path.n && path.n < ELF_PATH_MAX && (!name || str_eq(key, str_of(name))))
                        return arena_strndup(a, path.p, path.n);
        }
        return NULL;
}

/* ---- looking */

/* PATH if there is a library for this machine. */
static const char *try_path(const struct loader *l, const struct loaded *o, const char *path)
{
        const char *real = path[0] == '/' ? arena_join(l->a, l->root, path, "") : path;
        _cleanup_(fd_close) int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        return fd >= 0 && elf_fits(fd, &o->elf) ? path : NULL;
}

static const char *origin_of(const struct loader *l, const struct loaded *o)
{
        const char *slash = strrchr(o->path, '/');

        return slash ? arena_strndup(l->a, o->path, MAX((size_t)(slash - o->path), (size_t)1)) : ".";
}

/* DIR with $ORIGIN, $LIB and $PLATFORM replaced; NULL: it is too long. */
static const char *expand(const struct loader *l, const struct loaded *o, struct str dir, const char *lib)
{
        const struct {
                struct str name;
                const char *value;
        } words[] = {{STR("$ORIGIN"), origin_of(l, o)},
                     {STR("${ORIGIN}"), origin_of(l, o)},
                     {STR("$LIB"), lib},
                     {STR("${LIB}"), lib},
                     {STR("$PLATFORM"), o->elf.machine == 183 ? "aarch64" : "x86_64"},
                     {STR("${PLATFORM}"), o->elf.machine == 183 ? "aarch64" : "x86_64"}};
        _cleanup_(buf_done) struct buf out = BUF_INIT(ELF_PATH_MAX);

        while (dir.n) {
                size_t i = 0, n = 1;

                while (i < ARRAY_LEN(words) && !str_has_prefix(dir, words[i].name))
                        i++;
                if (i < ARRAY_LEN(words)) {
                        buf_adds(&out, words[i].value);
                        n = words[i].name.n;
                } else
                        buf_addc(&out, dir.p[0]);
                dir.p += n;
                dir.n -= n;
        }
        return out.overflow ? NULL : arena_strndup(l->a, out.p ? out.p : "", out.n);
}

static const char *try_dir(const struct loader *l, const struct loaded *o, struct str dir, const char *name)
{
        /* What $LIB is depends on how the loader was built. */
        static const char *const libs[] = {"lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib"};
        bool many = dir.n && memmem(dir.p, dir.n, "LIB", 3);

        for (size_t i = 0; i < (many ? ARRAY_LEN(libs) : 1); i++) {
                const char *at = expand(l, o, dir, libs[i]), *found;

                if (at && strlen(at) + strlen(name) + 2 < ELF_PATH_MAX) {
                        found = try_path(l, o, arena_printf(l->a, "%s%s%s", at, at[0] ? "/" : "", name));
                        if (found)
                                return found;
                }
        }
        return NULL;
}

/* DIRS are separated by ':' (or ';', or newlines); $ORIGIN is that of OF. */
static const char *try_dirs(const struct loader *l, const struct loaded *of, const char *dirs,
                            const char *name)
{
        const char *found = NULL;

        while (!found && dirs && *dirs) {
                size_t n = strcspn(dirs, ":;\n");

                if (n)
                        found = try_dir(l, of, str_n(dirs, n), name);
                dirs += n + (dirs[n] != '\0');
        }
        return found;
}

static bool is_musl(const struct loader *l)
{
        return l->interpreter && strstr(l->interpreter, "/ld-musl-");
}

/* RPATH of the object and of those that it was loaded for; of musl's, RUNPATH too. */
static const char *try_rpaths(const struct loader *l, const struct loaded *o, const char *name)
{
        const char *found = NULL;

        for (; o && !found; o = o->by)
                if (is_musl(l))
                        found = try_dirs(l, o, o->elf.runpath ? o->elf.runpath : o->elf.rpath, name);
                else if (!o->elf.runpath)
                        found = try_dirs(l, o, o->elf.rpath, name);
        return found;
}

static const char *try_cache(struct loader *l, const struct loaded *o, const char *name)
{
        const char *path, *found = NULL, *special = NULL;
        size_t at = 0;

        /* What is for some processors only has a twin for all of them. */
        while (!found && (path = ld_cache_next(l->a, buf_str(&l->cache), name, &at)))
                if (strstr(path, "/glibc-hwcaps/"))
                        special = special ? special : try_path(l, o, path);
                else
                        found = try_path(l, o, path);
        return found ? found : special;
}

/* The directory in which the loader really is has the rest of its C library. */
static const char *home_of(const struct loader *l)
{
        char real[PATH_MAX], *slash;
        const char *path = l->interpreter ? arena_join(l->a, l->root, l->interpreter, "") : NULL;
        size_t n = strlen(l->root);

        if (!path || !realpath(path, real) || strncmp(real, l->root, n) != 0)
                return NULL;
        slash = strrchr(real + n, '/');
        return slash && slash > real + n ? arena_strndup(l->a, real + n, (size_t)(slash - real) - n) : NULL;
}

static const char *try_defaults(const struct loader *l, const struct loaded *o, const char *name)
{
        const char *found = try_dirs(l, o, l->extra, name);

        if (!found)
                found = try_dirs(l, o, home_of(l), name);
        if (!found)
                found = try_dirs(l, o,
                                 o->elf.bits == 64 ? "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib"
                                                   : "/lib:/usr/lib:/lib32:/usr/lib32:/usr/local/lib",
                                 name);
        return found;
}

const char *loader_find(struct loader *l, const struct loaded *o, const char *name)
{
        bool first = !is_musl(l) && !o->elf.runpath;
        const char *found = NULL;

        if (strchr(name, '/'))
                return try_path(l, o, name);
        if (first)
                found = try_rpaths(l, o, name);
        if (!found)
                found = try_dirs(l, o, l->library_path, name);
        if (!found)
                found = is_musl(l) ? try_rpaths(l, o, name) : try_dirs(l, o, o->elf.runpath, name);
        if (!found)
                found = try_cache(l, o, name);
        return found ? found : try_defaults(l, o, name);
}

/* "/etc/ld-musl-x86_64.path", for the loader "/lib/ld-musl-x86_64.so.1" */
static const char *musl_dirs(const struct loader *l)
{
        const char *name = strstr(l->interpreter, "/ld-musl-") + 1;
        _cleanup_(buf_done) struct buf text = BUF_INIT(PATH_FILE_MAX);
        const char *path = arena_printf(l->a, "%s/etc/%.*s.path", l->root,
                                        (int)MIN(strcspn(name, "."), (size_t)255), name);

        return file_read(path, &text, NULL) == 0 && text.n ? arena_strndup(l->a, text.p, text.n) : NULL;
}

void loader_init(struct loader *l, struct arena *a, const char *root, const char *library_path,
                 const char *interpreter)
{
        *l = (struct loader){.a = a,
                             .root = root,
                             .library_path = library_path,
                             .interpreter = interpreter,
                             .cache = BUF_INIT(CACHE_MAX)};
        if (is_musl(l))
                l->extra = musl_dirs(l);
        else if (file_read(arena_join(a, root, CACHE_PATH, ""), &l->cache, NULL) < 0)
                buf_clear(&l->cache);
}

void loader_done(struct loader *l)
{
        buf_done(&l->cache);
}
