/*
 * Staging: the program and what it needs, out of the image that has it. Runs in any image, as any user, and writes only below
 * the shared volume. All of it may be there already: a pod's init containers run again when its sandbox is made anew.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/ncu/elf.h"
#include "probe/ncu/ncu.h"
#include "probe/ncu/workload.h"

enum {
        DIR_MODE = 0755,
        PROGRAM_MODE = 0755,
        READABLE = 0444, /* for whoever runs the tool */
        OBJECTS_MAX = 4096,
        DEPTH_MAX = 64,
        LINKS_MAX = 16,
};

struct staging {
        const struct ncu_workload *w;
        struct arena *a;
        struct loader loader;
        const char *why;
        struct stat to;               /* which is not copied into itself */
        VEC(struct loaded *) objects; /* whose libraries are to be found */
        const char *interpreter;      /* the first loader that was met; NULL: none */
        struct json *needed, *driver, *missing;
};

/* ---- what belongs to whom */

static bool any_prefix(const char *name, const char *const *prefixes)
{
        while (*prefixes && strncmp(name, *prefixes, strlen(*prefixes)) != 0)
                prefixes++;
        return *prefixes;
}

static bool is_libc(const char *name)
{
        static const char *const parts[] = {
                "ld-linux",      "ld-musl-",    "ld64.so.",  "libc.so.",     "libc.musl-",      "libm.so.",
                "libpthread.so", "libdl.so.",   "librt.so.", "libresolv.so", "libutil.so.",     "libnsl.so.1",
                "libanl.so.",    "libmvec.so.", "libnss_",   "libthread_db", "libBrokenLocale", NULL};

        return any_prefix(name, parts);
}

/* The node brings the driver's own, and only they fit its kernel. */
static bool is_driver(const char *name)
{
        static const char *const parts[] = {
                "libcuda.so",    "libcudadebugger.so", "libnvidia-",    "libnvcuvid.so",
                "libnvoptix.so", "libGLX_nvidia",      "libEGL_nvidia", NULL};

        return any_prefix(name, parts);
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Remembers that FD, which is PATH, needs libraries, if it is an ELF file. 1: it is none. */
static int take_object(struct staging *s, int fd, const char *path, const struct loaded *by, struct err *err)
{
        struct loaded *o = arena_new(s->a, struct loaded);
        int is = elf_read(s->a, fd, &o->elf, err);

        if (is != 0)
                return is;
        o->path = path;
        o->by = by;
        if (s->objects.n >= OBJECTS_MAX)
                return err_set(err, E_TOO_LARGE, "there are more than %d programs and libraries",
                               OBJECTS_MAX);
        *vec_push(&s->objects) = o;
        if (!s->interpreter && o->elf.interpreter) {
                s->interpreter = o->elf.interpreter;
                loader_done(&s->loader);
                loader_init(&s->loader, s->a, "", getenv("LD_LIBRARY_PATH"), s->interpreter);
        }
        return 0;
}

/* ---- libraries */

static bool is_told(const struct json *list, const char *name)
{
        json_foreach (j, list)
                if (streq(json_cstr(j), name))
                        return true;
        return false;
}

static void tell(struct staging *s, struct json *list, const char *name)
{
        if (!is_told(list, name))
                json_append(list, json_string(s->a, name));
}

static int stage_library(struct staging *s, const char *path, const char *name, bool libc,
                         const struct loaded *by, struct err *err)
{
        const char *to = arena_printf(s->a, "%s/%s/%s", s->w->to, libc ? "libc" : "lib", name);
        _cleanup_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct err why = ERR_INIT;

        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", path);
        if (file_copy(fd, to, PROGRAM_MODE, err) < 0)
                return -1;
        tell(s, s->needed, name);
        /* One that is broken is the loader's to complain of. */
        if (take_object(s, fd, path, by, &why) < 0 && why.code == E_TOO_LARGE)
                return err_set(err, why.code, "%s: %s", path, why.text);
        return 0;
}

static int stage_needed(struct staging *s, const struct loaded *o, struct err *err)
{
        for (size_t i = 0; i < o->elf.n_needed; i++) {
                const char *needed = o->elf.needed[i], *name = base_name(needed), *path;

                if (!name[0] || streq(name, ".") || streq(name, "..") || is_told(s->needed, name))
                        continue;
                if (is_driver(name)) {
                        tell(s, s->driver, name);
                        continue;
                }
                path = loader_find(&s->loader, o, needed);
                if (!path)
                        tell(s, s->missing, name);
                else if (stage_library(s, path, name, is_libc(name), o, err) < 0)
                        return -1;
        }
        return 0;
}

static int stage_libraries(struct staging *s, struct err *err)
{
        /* The list grows while it is gone through. */
        for (size_t i = 0; i < s->objects.n; i++) {
                const struct loaded *o = s->objects.v[i];
                const char *loader = o->elf.interpreter;

                if (loader && !is_told(s->needed, base_name(loader)) && access(loader, R_OK) == 0 &&
                    stage_library(s, loader, base_name(loader), true, o, err) < 0)
                        return -1;
                if (stage_needed(s, o, err) < 0)
                        return -1;
        }
        return 0;
}

/* ---- files, under their own paths */

static int stage_path(struct staging *s, const char *path, dev_t device, int depth, struct err *err);

/* PATH without links and dots on the way to its last part; in the arena. NULL: there is no such way. */
static const char *straight(struct staging *s, const char *path)
{
        const char *last = strrchr(path, '/');
        char real[PATH_MAX];

        if (!realpath(last == path ? "/" : arena_strndup(s->a, path, (size_t)(last - path)), real))
                return NULL;
        return arena_printf(s->a, "%s%s", streq(real, "/") ? "" : real, last);
}

/* The directories on the way to TO. 1: one of them is a link, by which we would write somewhere else. */
static int make_parents(struct staging *s, const char *to, struct err *err)
{
        _cleanup_(free_ptr) char *way = xstrdup(to);
        struct stat st;

        for (char *p = way + strlen(s->w->to) + 1; (p = strchr(p, '/')); *p++ = '/') {
                *p = '\0';
                if (mkdir(way, DIR_MODE) < 0 && errno != EEXIST)
                        return err_errno(err, E_IO, errno, "cannot make directory %s", way);
                if (lstat(way, &st) == 0 && S_ISLNK(st.st_mode))
                        return 1;
        }
        return 0;
}

/* Where PATH goes. Behind a link that was staged before it goes where that leads to, in the volume. */
static const char *make_way(struct staging *s, const char *path, struct err *err)
{
        const char *to = arena_join(s->a, s->w->to, "/root", path);
        int link = make_parents(s, to, err);

        if (link > 0 && (path = straight(s, path))) {
                to = arena_join(s->a, s->w->to, "/root", path);
                link = make_parents(s, to, err);
        }
        if (link > 0)
                err_set(err, E_IO, "a link is in the way of %s", to);
        return link ? NULL : to;
}

static int stage_directory(struct staging *s, const char *path, const char *to, dev_t device, int depth,
                           struct err *err)
{
        DIR *dir = opendir(path);
        struct dirent *e;
        int ok = 0;

        if (!dir)
                return err_errno(err, E_IO, errno, "cannot read %s", path);
        if (depth > DEPTH_MAX)
                ok = err_set(err, E_TOO_LARGE, "%s is more than %d directories deep", path, DEPTH_MAX);
        else if (dir_make(to, DIR_MODE, err) < 0)
                ok = -1;
        while (ok == 0 && (e = readdir(dir)))
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        ok = stage_path(s,
                                        arena_printf(s->a, "%s/%s", streq(path, "/") ? "" : path, e->d_name),
                                        device, depth + 1, err);
        closedir(dir);
        return ok;
}

static bool is_volume(const struct staging *s, const struct stat *st)
{
        return st->st_dev == s->to.st_dev && st->st_ino == s->to.st_ino;
}

/* TARGET, an absolute path, as one that leads from TO to what is staged of it. */
static const char *within_root(struct staging *s, const char *to, const char *target)
{
        const char *ups = "";

        for (const char *p = to + strlen(s->w->to) + sizeof("/root"); (p = strchr(p, '/')); p++)
                ups = arena_join(s->a, "../", ups, "");
        return arena_join(s->a, ups, target + strspn(target, "/"), "");
}

/*
 * One that was named itself is mounted by its place in the volume, and a kubelet takes no link that leads out of that, as an
 * absolute one does.
 */
static int stage_link(struct staging *s, const char *path, const char *to, int depth, struct err *err)
{
        struct stat there, st;
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof(target));
        bool inside = n > 0 && target[0] == '/' && depth == 0;

        if (n < 0 || (size_t)n >= sizeof(target))
                return err_errno(err, E_IO, n < 0 ? errno : ENAMETOOLONG, "cannot read the link %s", path);
        target[n] = '\0';
        /* Something behind the link was staged before: the rest joins it. */
        if (lstat(to, &there) == 0 && S_ISDIR(there.st_mode) && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                return is_volume(s, &st) ? 0 : stage_directory(s, path, to, st.st_dev, depth, err);
        (void)unlink(to);
        if (symlink(inside ? within_root(s, to, target) : target, to) < 0)
                return err_errno(err, E_IO, errno, "cannot make the link %s", to);
        return 0;
}

static int stage_file(struct staging *s, const char *path, const char *to, unsigned mode, struct err *err)
{
        _cleanup_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct err why = ERR_INIT;

        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", path);
        if (file_copy(fd, to, (mode & 0777) | READABLE, err) < 0)
                return -1;
        (void)take_object(s, fd, path, NULL, &why); /* one that is broken is not ours to complain of */
        return 0;
}

/* Devices, FIFOs and sockets are passed over, and so is what is mounted somewhere below. */
static int stage_path(struct staging *s, const char *path, dev_t device, int depth, struct err *err)
{
        const char *to;
        struct stat st;

        s->why = "StageFailed";
        if (lstat(path, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot look at %s", path);
        /* Files of an overlay may be of other devices than its directories are. */
        if (S_ISDIR(st.st_mode) && (st.st_dev != device || is_volume(s, &st)))
                return 0;
        to = make_way(s, path, err);
        if (!to)
                return -1;
        if (S_ISDIR(st.st_mode))
                return stage_directory(s, path, to, device, depth, err);
        if (S_ISLNK(st.st_mode))
                return stage_link(s, path, to, depth, err);
        return S_ISREG(st.st_mode) ? stage_file(s, path, to, st.st_mode, err) : 0;
}

/* What the link PATH leads to; NULL: it is none. */
static const char *link_target(struct staging *s, const char *path)
{
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof(target) - 1);

        if (n <= 0)
                return NULL;
        target[n] = '\0';
        return target[0] == '/'
                       ? arena_strdup(s->a, target)
                       : arena_printf(s->a, "%.*s/%s", (int)(strrchr(path, '/') - path), path, target);
}

static bool has_dots(const char *path)
{
        struct str rest = str_of(path);

        while (rest.p) {
                struct str part = str_split(&rest, '/');

                if (str_eq(part, STR("..")) || str_eq(part, STR(".")))
                        return true;
        }
        return false;
}

/* PATH, and when it is a link what it leads to. */
static int stage_named(struct staging *s, const char *path, struct err *err)
{
        struct stat st;

        s->why = "FileNotFound";
        if (path[0] != '/')
                return err_set(err, E_CONFIG, "the file '%s' is not an absolute path", path);
        for (int i = 0; path && i < LINKS_MAX; i++, path = link_target(s, path)) {
                if (has_dots(path))
                        path = straight(s, path);
                s->why = "FileNotFound";
                if (!path || has_dots(path) || lstat(path, &st) < 0)
                        return err_set(err, E_CONFIG, "the file %s is not in the image",
                                       path ? path : "of a link");
                if (stage_path(s, path, st.st_dev, 0, err) < 0)
                        return -1;
        }
        return 0;
}

/* ---- the program */

/* CommandNotExecutable says more than CommandNotFound: it goes on in PATH, and what was met is told in the end. */
static const char *find_program(struct staging *s, const char *name, struct err *err)
{
        char **places = spawn_places(s->a, name);
        const char *met = NULL;
        bool directory = false;
        struct stat st;

        for (; *places; places++) {
                if (stat(*places, &st) < 0)
                        continue;
                if (S_ISREG(st.st_mode) && access(*places, X_OK) == 0)
                        return *places;
                directory = met ? directory : S_ISDIR(st.st_mode);
                met = met ? met : *places;
        }
        s->why = met ? "CommandNotExecutable" : "CommandNotFound";
        if (met)
                err_set(err, E_CONFIG,
                        "the command %s is %s; spec.command[0] must be an executable of the image", met,
                        directory ? "a directory" : "not executable");
        else
                err_set(err, E_CONFIG,
                        "the command %s is not in the image%s; check spec.image and spec.command[0]", name,
                        strchr(name, '/') ? "" : " (not found in PATH)");
        return NULL;
}

/* The NAME of "env NAME" and "env -S NAME ARGUMENT..."; NULL: there is none. */
static const char *named_for_env(struct staging *s, const struct shebang *line)
{
        struct str name = str_of(line->argument);

        if (!streq(base_name(line->interpreter), "env"))
                return NULL;
        if (str_has_prefix(name, STR("-S"))) {
                name = str_trim(str_n(name.p + 2, name.n - 2));
                name = str_split(&name, ' ');
        }
        return name.n && name.p[0] != '-' ? arena_strndup(s->a, name.p, name.n) : NULL;
}

/* Whoever interprets the script, and what env is to start. */
static int stage_script(struct staging *s, const char *path, const struct shebang *line, struct err *err)
{
        const char *name = named_for_env(s, line), *second;

        if (stage_named(s, line->interpreter, err) < 0) {
                if (streq(s->why, "FileNotFound"))
                        s->why = "CommandNotExecutable";
                return err_wrap(err, "the interpreter of %s", path);
        }
        if (!name)
                return 0;
        second = find_program(s, name, err);
        return second ? stage_named(s, second, err) : -1;
}

static int stage_program(struct staging *s, struct json *json, struct err *err)
{
        const char *to = arena_join(s->a, s->w->to, "/", "workload"),
                   *path = find_program(s, s->w->program, err);
        _cleanup_(fd_close) int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        struct shebang line;
        char real[PATH_MAX];
        int is;

        if (!path)
                return -1;
        if (fd < 0) {
                s->why = "CommandNotExecutable";
                return err_errno(err, E_CONFIG, errno, "the command %s cannot be read", path);
        }
        /* As $ORIGIN has it. */
        is = take_object(s, fd, realpath(path, real) ? arena_strdup(s->a, real) : path, NULL, err);
        if (is < 0 || (is > 0 && !shebang_read(s->a, fd, &line))) {
                s->why = "CommandNotExecutable";
                return is < 0 ? err_wrap(err, "the command %s cannot be used", path)
                              : err_set(err, E_CONFIG,
                                        "the command %s is neither an ELF program nor a script", path);
        }
        json_set(s->a, json, "program", json_string(s->a, path));
        s->why = "StageFailed";
        if (file_copy(fd, to, PROGRAM_MODE, err) < 0)
                return -1;
        if (is == 0)
                return 0;
        json_set(s->a, json, "script", json_string(s->a, line.interpreter));
        return stage_script(s, path, &line, err);
}

/* ---- all of it */

static int prepare(struct staging *s, struct err *err)
{
        s->why = "StageFailed";
        for (size_t i = 0; i < 2; i++)
                if (dir_make(arena_join(s->a, s->w->to, "/", i ? "libc" : "lib"), DIR_MODE, err) < 0)
                        return -1;
        if (stat(s->w->to, &s->to) < 0)
                return err_errno(err, E_IO, errno, "cannot look at %s", s->w->to);
        loader_init(&s->loader, s->a, "", getenv("LD_LIBRARY_PATH"), NULL);
        s->needed = json_array(s->a);
        s->driver = json_array(s->a);
        s->missing = json_array(s->a);
        return 0;
}

static int stage_all(struct staging *s, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4 << 20);
        struct json *json = json_object(s->a);

        if (prepare(s, err) < 0 || stage_program(s, json, err) < 0)
                return -1;
        for (const char *const *f = s->w->files; f && *f; f++)
                if (stage_named(s, *f, err) < 0)
                        return -1;
        s->why = "StageFailed";
        if (stage_libraries(s, err) < 0)
                return -1;
        json_set(s->a, json, "interpreter", json_string(s->a, s->interpreter));
        json_set(s->a, json, "needed", s->needed);
        json_set(s->a, json, "driver", s->driver);
        json_set(s->a, json, "missing", s->missing);
        json_write(json, JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        return file_replace(arena_join(s->a, s->w->to, "/", "workload.json"), buf_str(&text), 0644, err);
}

int ncu_stage_workload(const struct ncu_workload *w, const char **ret_why, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct staging s = {.w = w, .a = &a};
        struct err own = ERR_INIT;
        int ok;

        if (!err)
                err = &own;
        if (!w->program || !w->program[0]) {
                *ret_why = "CommandEmpty";
                return err_set(
                        err, E_CONFIG,
                        "there is no command to profile; set spec.command[0] to the program in the image");
        }
        ok = stage_all(&s, err);
        loader_done(&s.loader);
        vec_done(&s.objects);
        *ret_why = ok < 0 ? s.why : NULL;
        return ok;
}
