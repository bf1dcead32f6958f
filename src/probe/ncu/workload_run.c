/*
 * Starting what was staged, in an image that is not its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/ncu/elf.h"
#include "probe/ncu/ncu.h"
#include "probe/ncu/workload.h"

enum { SHEBANG_MAX = 4096, DEPTH_MAX = 64 };

bool shebang_read(struct arena *a, int fd, struct shebang *ret)
{
        char line[SHEBANG_MAX];
        ssize_t n = pread(fd, line, sizeof(line), 0);
        struct str rest = str_n(line, n > 0 ? (size_t)n : 0), first;

        if (!str_has_prefix(rest, STR("#!")) || memchr(line, '\0', rest.n))
                return false;
        first = str_trim(str_split(&rest, '\n'));
        first = str_trim(str_n(first.p + 2, first.n - 2));
        if (!first.n)
                return false;
        rest = first;
        for (first.n = 0; first.n < rest.n && first.p[first.n] != ' ' && first.p[first.n] != '\t';)
                first.n++;
        rest = str_trim(str_n(first.p + first.n, rest.n - first.n));
        ret->interpreter = arena_strndup(a, first.p, first.n);
        ret->argument = rest.n ? arena_strndup(a, rest.p, rest.n) : NULL;
        return true;
}

/* ---- the command */

struct command {
        struct arena *a;
        const char *shared;
        VEC(char *) argv;
        bool own_loader; /* its libraries are told to it, not to everybody */
};

static void push(struct command *c, const char *arg)
{
        *vec_push(&c->argv) = arena_strdup(c->a, arg);
}

static void push_script(struct command *c, const char *file, const struct shebang *line);

/* FILE, and before it what this image cannot do by itself. */
static void push_file(struct command *c, const char *file)
{
        _cleanup_(fd_close) int fd = open(file, O_RDONLY | O_CLOEXEC);
        struct elf elf = {0};
        struct shebang line;
        const char *loader;
        int is = fd >= 0 ? elf_read(c->a, fd, &elf, NULL) : -1;

        if (is == 1 && shebang_read(c->a, fd, &line)) {
                push_script(c, file, &line);
                return;
        }
        if (is == 0 && elf.interpreter && access(elf.interpreter, X_OK) < 0) {
                const char *name = strrchr(elf.interpreter, '/');

                loader = arena_join(c->a, c->shared, "/libc/", name ? name + 1 : elf.interpreter);
                if (access(loader, X_OK) == 0) {
                        push(c, loader);
                        push(c, "--library-path");
                        push(c, arena_printf(c->a, "%s/lib:%s/libc", c->shared, c->shared));
                        c->own_loader = true;
                }
        }
        push(c, file);
}

static void push_script(struct command *c, const char *file, const struct shebang *line)
{
        const char *staged = arena_join(c->a, c->shared, "/root", line->interpreter);
        struct stat st;

        /* A staged interpreter is no script itself: that would not end. */
        if (access(line->interpreter, X_OK) < 0 && stat(staged, &st) == 0 && S_ISREG(st.st_mode)) {
                _cleanup_(fd_close) int fd = open(staged, O_RDONLY | O_CLOEXEC);
                struct elf elf;

                if (fd >= 0 && elf_read(c->a, fd, &elf, NULL) == 0) {
                        push_file(c, staged);
                        if (line->argument)
                                push(c, line->argument);
                }
        }
        push(c, file);
}

char **ncu_workload_command(struct arena *a, const char *shared, char *const *args,
                            const char **ret_libraries)
{
        struct command c = {.a = a, .shared = shared};
        char **argv;

        push_file(&c, arena_join(a, shared, "/", "workload"));
        for (; args && *args; args++)
                push(&c, *args);
        *ret_libraries = c.own_loader ? NULL : arena_join(a, shared, "/", "lib");
        argv = arena_new_array(a, char *, c.argv.n + 1);
        memcpy(argv, c.argv.v, c.argv.n * sizeof(*argv));
        vec_done(&c.argv);
        return argv;
}

/* ---- files under their own paths */

struct linking {
        struct arena a;
        const struct log *log;
        size_t failed;
};

static void link_below(struct linking *l, const char *staged, const char *path, int depth);

static void link_one(struct linking *l, const char *staged, const char *path, int depth)
{
        struct stat here, there;

        if (lstat(staged, &there) < 0)
                return;
        if (lstat(path, &here) == 0) {
                /* What this image has itself stays; a directory may lack something. */
                if (S_ISDIR(there.st_mode) && stat(path, &here) == 0 && S_ISDIR(here.st_mode) &&
                    depth < DEPTH_MAX)
                        link_below(l, staged, path, depth + 1);
                return;
        }
        if (symlink(staged, path) == 0)
                return;
        if (!l->failed++)
                LOG_WARN(l->log, "Cannot link a staged file to its own path", F_STR("path", path),
                         F_STR("error", strerror(errno)));
}

static void link_below(struct linking *l, const char *staged, const char *path, int depth)
{
        DIR *dir = opendir(staged);
        struct dirent *e;

        while (dir && (e = readdir(dir)))
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        link_one(l, arena_join(&l->a, staged, "/", e->d_name),
                                 arena_join(&l->a, path, "/", e->d_name), depth);
        if (dir)
                closedir(dir);
}

size_t ncu_workload_link(const char *shared, const struct log *log)
{
        struct linking l = {.log = log};

        link_below(&l, arena_join(&l.a, shared, "/", "root"), "", 0);
        arena_done(&l.a);
        return l.failed;
}
