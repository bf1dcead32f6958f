/*
 * What goes into the data ConfigMap: read, compressed and hashed on the worker's thread, because files may be large and
 * their disk slow.
 *
 * result.json, checkpoint.json and, at the end, the files that the kind names are read up to 4 MiB. Then the files below
 * artifacts/ follow, at most 256, at most 4 folders deep, the smallest first, as far as 900 KiB go. Links are never followed, and only regular files are looked
 * at: they lie where somebody else's program writes. What is not kept is hashed all the same (256 MiB of it), and listed.
 *
 * A checkpoint stays in the ConfigMap until there is a better one; so what stays there counts too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/gzip.h"
#include "run/relay_internal.h"

enum { PROBLEM_MAX = 2 * RELAY_PROBLEM_LEN, ENTRY_ROOM = 256, ROOM_FOR_KEYS = 1024 };

#define ARTIFACT_PREFIX "artifact."

static _printf_(2, 3) void complain(struct relay_gather *g, const char *fmt, ...)
{
        char text[RELAY_PROBLEM_LEN];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (g->problem.n + sizeof(text) > PROBLEM_MAX)
                return; /* the first ones say enough */
        buf_printf(&g->problem, "%s%s", g->problem.n ? "; " : "", text);
}

/* ---- result, checkpoint and named files */

/* Of what is not kept, as far as it does not take too long. */
static int hash_file(struct relay_gather *g, int dir_fd, const char *name, struct relay_value *v)
{
        _cleanup_(fd_close) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -1;
        v->size = (uint64_t)st.st_size;
        if (v->size > g->to_hash)
                return 0;
        g->to_hash -= v->size;
        return sha256_fd_hex(fd, &v->size, v->sha256);
}

/* As text when it is small, else gzipped. */
static int fill(struct relay_gather *g, struct relay_value *v, const char *key, struct str text,
                struct err *err)
{
        bool plain = text.n <= RELAY_PLAIN_MAX && utf8_valid(text.p, text.n);

        v->content = (struct buf)BUF_INIT(g->left);
        if (plain)
                buf_addstr(&v->content, text);
        else if (gzip_add(&v->content, text, err) < 0)
                return -1;
        if (v->content.overflow)
                return err_set(err, E_TOO_LARGE, "more than %zu bytes", g->left);
        v->key = plain ? xstrdup(key) : xasprintf("%s.gz", key);
        v->binary = !plain;
        g->left -= v->content.n;
        return 0;
}

static void leave_out(struct relay_gather *g, struct relay_value *v)
{
        complain(g, "%s (%zu bytes) is not kept: the API server refuses the ConfigMap with it", v->name,
                 v->content.n);
        free(TAKE_PTR(v->key));
        buf_done(&v->content);
}

static void gather_file(struct relay_gather *g, size_t which)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RELAY_FILE_MAX);
        struct relay_value *v = &g->files[which];
        const char *name = g->names.name[which];
        struct err err = ERR_INIT;
        int got = run_file_read(g->dir_fd, name, RELAY_FILE_MAX, &text, &err);

        g->gone[which] = got == 1;
        if (got == 1)
                return;
        if (got < 0 && (err.code != E_TOO_LARGE || hash_file(g, g->dir_fd, name, v) < 0)) {
                complain(g, "%s", err.text);
                return;
        }
        v->name = xstrdup(name);
        if (got == 0) {
                v->size = text.n;
                sha256_hex(buf_str(&text), v->sha256);
                got = fill(g, v, name, buf_str(&text), &err);
        }
        if (got < 0) {
                buf_done(&v->content);
                complain(g, "%s is not kept: it has %llu bytes, and compressed it must fit into %zu", name,
                         (unsigned long long)v->size, g->left);
        } else if (streq(v->sha256, g->refused[which])) {
                g->left += v->content.n;
                leave_out(g, v);
        }
}

/* What is in the ConfigMap and stays there takes its room; an old checkpoint never takes the result's. */
static void count_what_stays(struct relay_gather *g, size_t which)
{
        const struct relay_value *v = &g->files[which];
        size_t there = g->there[which];

        if (v->key || !there || (which != RELAY_CHECKPOINT && v->name))
                return;
        if (which == RELAY_CHECKPOINT && g->gone[which] && g->level >= RELAY_LEVEL_END) {
                g->forget = true;
        } else if (which == RELAY_CHECKPOINT && there > g->left) {
                g->forget = true;
                complain(g, "the last %s (%zu bytes) is not kept: there is no room for it beside the result",
                         g->names.name[which], there);
        } else {
                g->left -= MIN(there, g->left);
        }
}

/* ---- artifacts */

struct walk {
        struct relay_gather *gather;
        size_t too_many, closed;
};

static void walk_folder(struct walk *w, int fd, const char *prefix, int depth);

static void walk_entry(struct walk *w, int fd, const char *prefix, const char *entry, int depth)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s%s%s", prefix, prefix[0] ? "/" : "", entry);
        struct stat st;

        if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        if (S_ISDIR(st.st_mode) && depth < RELAY_ARTIFACT_DEPTH) {
                int below = openat(fd, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (below >= 0)
                        walk_folder(w, below, path, depth + 1);
                else
                        w->closed++;
        } else if (S_ISREG(st.st_mode) && w->gather->list.n < RELAY_ARTIFACTS_MAX) {
                struct relay_value *v = vec_push(&w->gather->list);

                v->name = TAKE_PTR(path);
                v->size = (uint64_t)st.st_size;
        } else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
                w->too_many++;
        }
}

/* Takes FD. */
static void walk_folder(struct walk *w, int fd, const char *prefix, int depth)
{
        DIR *dir = fdopendir(fd);
        const struct dirent *e;

        if (!dir) {
                fd_close(fd);
                return;
        }
        while ((e = readdir(dir)))
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        walk_entry(w, fd, prefix, e->d_name, depth);
        closedir(dir);
}

static int by_size(const void *x, const void *y)
{
        const struct relay_value *a = x, *b = y;

        if (a->size != b->size)
                return a->size < b->size ? -1 : 1;
        return strcmp(a->name, b->name);
}

static int by_name(const void *x, const void *y)
{
        return strcmp(((const struct relay_value *)x)->name, ((const struct relay_value *)y)->name);
}

static char *artifact_key(const char *name)
{
        _cleanup_(free_ptr) char *key = xasprintf(ARTIFACT_PREFIX "%s", name);
        char hex[SHA256_HEX_MAX];

        if (run_key_valid(str_of(key)))
                return TAKE_PTR(key);
        sha256_hex(str_of(name), hex);
        return xasprintf("artifact-%.32s", hex);
}

/* The folder of PATH below FD, no link on the way; RET_NAME is the rest. */
static int open_folder(int fd, const char *path, const char **ret_name)
{
        int at = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        const char *slash;

        while (at >= 0 && (slash = strchr(path, '/'))) {
                _cleanup_(free_ptr) char *part = xstrndup(path, (size_t)(slash - path));
                int below = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                fd_close(at);
                at = below;
                path = slash + 1;
        }
        *ret_name = path;
        return at;
}

static void gather_artifact(struct relay_gather *g, int fd, struct relay_value *v)
{
        const char *name;
        _cleanup_(fd_close) int folder = open_folder(fd, v->name, &name);

        v->content = (struct buf)BUF_INIT(g->left);
        if (folder < 0)
                return;
        if (v->size <= g->left && run_file_read(folder, name, g->left, &v->content, NULL) == 0) {
                v->size = v->content.n;
                sha256_hex(buf_str(&v->content), v->sha256);
                v->key = artifact_key(v->name);
                v->binary = true;
                g->left -= v->content.n;
                return;
        }
        buf_done(&v->content);
        if (hash_file(g, folder, name, v) < 0)
                v->sha256[0] = '\0';
}

static void say_what_is_missing(struct relay_gather *g, const struct walk *w, size_t kept)
{
        if (kept < g->list.n)
                complain(g, "%zu of %zu artifacts are too large to be kept: put them on a volume",
                         g->list.n - kept, g->list.n);
        if (w->too_many)
                complain(g,
                         "%zu artifacts are neither kept nor listed: there are more than %d, or they lie "
                         "more than %d folders deep",
                         w->too_many, RELAY_ARTIFACTS_MAX, RELAY_ARTIFACT_DEPTH);
        if (w->closed)
                complain(g, "%zu folders below %s cannot be opened", w->closed, RUN_ARTIFACTS_DIR);
}

static void gather_artifacts(struct relay_gather *g)
{
        int fd = openat(g->dir_fd, RUN_ARTIFACTS_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int walked = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        struct walk w = {.gather = g};
        size_t n = 0, entries = 0;

        if (fd < 0 && errno != ENOENT)
                complain(g, "no artifact is kept: cannot open %s: %s", RUN_ARTIFACTS_DIR, strerror(errno));
        if (walked >= 0)
                walk_folder(&w, walked, "", 1);
        for (size_t i = 0; i < g->names.n; i++)
                entries += ENTRY_ROOM + strlen(g->names.name[i]);
        vec_foreach (v, &g->list)
                entries += ENTRY_ROOM + 3 * strlen(v->name);
        g->left = g->left > entries ? g->left - entries : 0;
        if (g->list.n)
                qsort(g->list.v, g->list.n, sizeof(*g->list.v), by_size);
        vec_foreach (v, &g->list) {
                gather_artifact(g, fd, v);
                n += v->key != NULL;
        }
        if (g->list.n)
                qsort(g->list.v, g->list.n, sizeof(*g->list.v), by_name);
        fd_close(fd);
        say_what_is_missing(g, &w, n);
}

/* ---- on the worker's thread, and back */

static void gather_run(struct work *w)
{
        struct relay_gather *g = CONTAINER_OF(w, struct relay_gather, work);

        if (g->dir_fd < 0)
                return;
        for (size_t i = 0; i < g->names.n; i++) {
                if (i < RELAY_NAMED || g->level >= RELAY_LEVEL_END)
                        gather_file(g, i);
                count_what_stays(g, i);
        }
        if (g->level >= RELAY_LEVEL_ARTIFACTS)
                gather_artifacts(g);
}

static void gather_done(struct work *w)
{
        struct relay_gather *g = CONTAINER_OF(w, struct relay_gather, work);

        if (w->canceled || !g->relay)
                relay_gather_free(g);
        else
                relay_gathered(g->relay, g);
}

struct relay_gather *relay_gather_start(struct relay *r, int dir_fd, int level)
{
        struct relay_gather *g = xcalloc(1, sizeof(*g));

        g->work.run = gather_run;
        g->work.done = gather_done;
        g->relay = r;
        g->dir_fd = dir_fd;
        g->level = level;
        g->names.n = r->data.names.n;
        for (size_t i = 0; i < g->names.n; i++)
                g->names.name[i] = arena_strdup(&g->strings, r->data.names.name[i]);
        memcpy(g->there, r->data.there, sizeof(g->there));
        memcpy(g->refused, r->data.refused, sizeof(g->refused));
        g->to_hash = RELAY_HASH_MAX;
        g->left = RELAY_DATA_MAX - ROOM_FOR_KEYS;
        g->problem = (struct buf)BUF_INIT(PROBLEM_MAX);
        loop_offload(r->config.loop, &g->work);
        return g;
}

static void value_done(struct relay_value *v)
{
        free(v->name);
        free(v->key);
        buf_done(&v->content);
}

void relay_gather_free(struct relay_gather *g)
{
        if (!g)
                return;
        for (size_t i = 0; i < g->names.n; i++)
                value_done(&g->files[i]);
        vec_foreach (v, &g->list)
                value_done(v);
        vec_done(&g->list);
        buf_done(&g->problem);
        fd_close(g->dir_fd);
        arena_done(&g->strings);
        free(g);
}

/* ---- what was refused, what is listed */

bool relay_gather_drop(struct relay_gather *g)
{
        struct relay_value *one = NULL;

        vec_foreach (v, &g->list)
                if (v->key && (!one || v->content.n > one->content.n))
                        one = v;
        for (size_t i = g->names.n; i-- > 0 && !one;) { /* the result last */
                if (g->files[i].key) {
                        one = &g->files[i];
                        memcpy(g->refused[i], one->sha256, sizeof(one->sha256));
                } else if (i == RELAY_CHECKPOINT && g->there[i] && !g->forget) {
                        g->forget = true;
                        complain(g, "the last %s is not kept: the API server refuses the ConfigMap with it",
                                 g->names.name[i]);
                        return true;
                }
        }
        if (one)
                leave_out(g, one);
        return one != NULL;
}

static void list_value(struct arena *a, struct json *list, const struct relay_value *v)
{
        json_append(list, json_build(a, "{'name': %s, 'size': %llu, 'sha256': %s, 'kept': %p, 'key': %p}",
                                     v->name, (unsigned long long)v->size, v->sha256,
                                     (void *)json_truth(a, v->key != NULL), (void *)json_string(a, v->key)));
}

struct json *relay_gather_list(const struct relay_gather *g, struct arena *a)
{
        struct json *list = json_array(a);

        for (size_t i = 0; i < g->names.n; i++)
                if (g->files[i].name && !g->files[i].key)
                        list_value(a, list, &g->files[i]);
        vec_foreach (v, &g->list)
                list_value(a, list, v);
        return json_len(list) ? list : NULL;
}
