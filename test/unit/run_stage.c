/*
 * What the init container does: the binary, the FIFO, a clean directory, the last checkpoint.
 */
#include "unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "run/gzip.h"
#include "run/pod.h"
#include "run/stage_private.h"
#include "unit/dir.h"

/* A pod: its emptyDir, its run directory, and the mounted data ConfigMap. */
struct pod {
        struct arena a;
        char root[UNIT_DIR_LEN];
        const char *dir, *ctl, *target, *data;
        struct err err;
};

static void pod_init(struct pod *p)
{
        *p = (struct pod){.err = ERR_INIT};
        if (geteuid() == 0) /* some tests are another user then, who may not enter a folder of root's own */
                assert_int_equal(setenv("TMPDIR", "/tmp", 1), 0);
        unit_dir(p->root);
        p->dir = arena_printf(&p->a, "%s/run", p->root);
        p->ctl = arena_printf(&p->a, "%s/sonde/ctl", p->root);
        p->target = arena_printf(&p->a, "%s/sonde/sonde-pod", p->root);
        p->data = arena_printf(&p->a, "%s/data", p->root);
        assert_int_equal(mkdir(p->dir, 0755), 0);
        assert_int_equal(mkdir(p->data, 0755), 0);
}

static void pod_done(struct pod *p)
{
        arena_done(&p->a);
}

DEFINE_CLEANUP_STRUCT(struct pod, pod_done)

static int stage_hash(struct pod *p, const char *hash)
{
        struct run_stage s = {.program = "/etc/passwd",
                              .target = p->target,
                              .ctl = p->ctl,
                              .dir = p->dir,
                              .checkpoint_dir = p->data,
                              .spec_hash = hash};

        err_clear(&p->err);
        return run_stage(&s, NULL, &p->err);
}

static void stage(struct pod *p)
{
        if (stage_hash(p, NULL) < 0)
                fail_msg("%s", p->err.text);
}

static char *in(struct pod *p, const char *dir, const char *name)
{
        return arena_printf(&p->a, "%s/%s", dir, name);
}

static void put(struct pod *p, const char *dir, const char *name, struct str text)
{
        assert_int_equal(file_replace(in(p, dir, name), text, 0644, &p->err), 0);
}

/* The content of a file; NULL: it is not there. */
static const char *get(struct pod *p, const char *dir, const char *name)
{
        struct buf text = BUF_INIT(1 << 20);
        char *copy;

        if (file_read(in(p, dir, name), &text, NULL) < 0)
                return NULL;
        copy = arena_strndup(&p->a, text.n ? text.p : "", text.n);
        buf_done(&text);
        return copy;
}

static struct stat look(struct pod *p, const char *dir, const char *name)
{
        struct stat st = {0};

        (void)!lstat(in(p, dir, name), &st);
        return st;
}

static unsigned entries(const char *path)
{
        DIR *dir = opendir(path);
        unsigned n = 0;

        assert_non_null(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n - 2;
}

/* ---- */

static void a_new_pod_gets_all_it_needs(void **state)
{
        _cleanup_(pod_done) struct pod p;
        struct stat st;

        pod_init(&p);
        stage(&p);
        st = look(&p, p.root, "sonde/sonde-pod");
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(st.st_mode & 0777, 0755);
        assert_int_equal(entries(in(&p, p.root, "sonde")), 2);
        st = look(&p, p.ctl, "alive");
        assert_true(S_ISFIFO(st.st_mode));
        assert_int_equal(st.st_mode & 0777, 0660);
        assert_true(S_ISDIR(look(&p, p.dir, "artifacts").st_mode));
        assert_int_equal(entries(p.dir), 1);
        assert_int_equal(entries(p.ctl), 1);
}

static void staging_again_changes_nothing_but_removes_an_old_end(void **state)
{
        _cleanup_(pod_done) struct pod p;
        struct stat fifo;

        pod_init(&p);
        stage(&p);
        fifo = look(&p, p.ctl, "alive");
        put(&p, p.ctl, "exit.json", STR("{\"code\":0}"));
        put(&p, p.ctl, "started", STR("{}"));
        put(&p, p.ctl, "claim", STR("2"));
        stage(&p);
        assert_int_equal(look(&p, p.ctl, "alive").st_ino, fifo.st_ino);
        assert_null(get(&p, p.ctl, "exit.json"));
        assert_null(get(&p, p.ctl, "started"));
        assert_string_equal(get(&p, p.ctl, "claim"), "2");
        assert_int_equal(entries(p.dir), 1);
}

static void what_is_in_the_fifo_s_place_goes(void **state)
{
        _cleanup_(pod_done) struct pod p;

        pod_init(&p);
        assert_int_equal(dir_make(in(&p, p.ctl, "alive/with/something"), 0755, NULL), 0);
        stage(&p);
        assert_true(S_ISFIFO(look(&p, p.ctl, "alive").st_mode));
}

static void an_earlier_use_goes_aside_and_replaces_an_older_one(void **state)
{
        _cleanup_(pod_done) struct pod p;

        pod_init(&p);
        assert_int_equal(dir_make(in(&p, p.dir, "lost+found"), 0700, NULL), 0);
        put(&p, p.dir, "profiling_status.json", STR("{\"phase\":\"Complete\"}"));
        put(&p, p.dir, ".hidden", STR("1"));
        assert_int_equal(dir_make(in(&p, p.dir, "artifacts/deep"), 0755, NULL), 0);
        put(&p, p.dir, "artifacts/deep/trace", STR("first"));
        assert_int_equal(dir_make(in(&p, p.dir, ".previous/older/one"), 0755, NULL), 0);
        stage(&p);
        assert_null(get(&p, p.dir, "profiling_status.json"));
        assert_string_equal(get(&p, p.dir, ".previous/profiling_status.json"), "{\"phase\":\"Complete\"}");
        assert_string_equal(get(&p, p.dir, ".previous/.hidden"), "1");
        assert_string_equal(get(&p, p.dir, ".previous/artifacts/deep/trace"), "first");
        assert_int_equal(entries(in(&p, p.dir, ".previous")), 3);
        assert_int_equal(entries(p.dir), 3); /* lost+found, .previous, artifacts */
        assert_int_equal(entries(in(&p, p.dir, "artifacts")), 0);

        stage(&p); /* nothing was left this time: what is aside stays */
        assert_string_equal(get(&p, p.dir, ".previous/artifacts/deep/trace"), "first");

        put(&p, p.dir, "result.json", STR("{}"));
        stage(&p);
        assert_null(get(&p, p.dir, ".previous/artifacts/deep/trace"));
        assert_string_equal(get(&p, p.dir, ".previous/result.json"), "{}");
}

static void an_interrupted_move_goes_on(void **state)
{
        _cleanup_(pod_done) struct pod p;

        pod_init(&p);
        assert_int_equal(dir_make(in(&p, p.dir, ".previous.new/artifacts/old"), 0755, NULL), 0);
        assert_int_equal(dir_make(in(&p, p.dir, "artifacts/new"), 0755, NULL), 0);
        put(&p, p.dir, ".previous.new/moved", STR("1"));
        put(&p, p.dir, "left", STR("2"));
        stage(&p);
        assert_string_equal(get(&p, p.dir, ".previous/moved"), "1");
        assert_string_equal(get(&p, p.dir, ".previous/left"), "2");
        assert_true(S_ISDIR(look(&p, p.dir, ".previous/artifacts/new").st_mode));
        assert_int_equal(entries(p.dir), 2);
}

/* ---- links: none is ever followed */

static void links_are_moved_or_removed_but_never_followed(void **state)
{
        static const char *const names[] = {"artifacts", "profiling_status.json", "checkpoint.json",
                                            ".previous.new"};
        _cleanup_(pod_done) struct pod p;
        char *victim;

        pod_init(&p);
        victim = in(&p, p.root, "victim");
        assert_int_equal(dir_make(in(&p, victim, "sub"), 0755, NULL), 0);
        put(&p, victim, "file", STR("precious"));
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                assert_int_equal(symlink(victim, in(&p, p.dir, names[i])), 0);
        assert_int_equal(symlink(victim, in(&p, p.dir, ".previous")), 0);
        stage(&p);
        assert_true(S_ISDIR(look(&p, p.dir, "artifacts").st_mode));
        assert_true(S_ISDIR(look(&p, p.dir, ".previous").st_mode));
        assert_true(S_ISLNK(look(&p, p.dir, ".previous/artifacts").st_mode));
        assert_int_equal(entries(in(&p, p.dir, ".previous")), 3);
        assert_int_equal(entries(p.dir), 2);
        put(&p, p.dir, "next", STR(""));
        stage(&p); /* removes the links that were set aside */
        assert_string_equal(get(&p, victim, "file"), "precious");
        assert_int_equal(entries(victim), 2);
}

static void a_link_to_a_directory_deep_in_the_old_tree_is_removed_as_a_link(void **state)
{
        _cleanup_(pod_done) struct pod p;

        pod_init(&p);
        assert_int_equal(dir_make(in(&p, p.dir, ".previous/a/b/c"), 0755, NULL), 0);
        assert_int_equal(dir_make(in(&p, p.root, "victim"), 0755, NULL), 0);
        put(&p, p.root, "victim/file", STR("precious"));
        assert_int_equal(symlink(in(&p, p.root, "victim"), in(&p, p.dir, ".previous/a/b/c/link")), 0);
        put(&p, p.dir, "new", STR(""));
        stage(&p);
        assert_int_equal(entries(in(&p, p.dir, ".previous")), 1);
        assert_string_equal(get(&p, p.root, "victim/file"), "precious");
}

/* ---- trees that nobody would make by hand */

static void a_tree_deeper_than_any_path_is_removed(void **state)
{
        const unsigned depth = unit_extent(1000, 3000, 3000);
        _cleanup_(pod_done) struct pod p;
        _cleanup_(fd_close) int fd = -1;

        pod_init(&p);
        fd = open(p.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (unsigned i = 0; i < depth; i++) {
                int next;

                assert_int_equal(mkdirat(fd, i ? "deep" : ".previous", 0755), 0);
                next = openat(fd, i ? "deep" : ".previous", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                assert_true(next >= 0);
                assert_true(i == 0 || mkdirat(fd, ".3", 0755) == 0); /* a name that the removal may want */
                fd_close(fd);
                fd = next;
        }
        put(&p, p.dir, "new", STR(""));
        stage(&p);
        assert_int_equal(entries(in(&p, p.dir, ".previous")), 1);
}

static void a_directory_without_permissions_is_removed_by_its_owner(void **state)
{
        _cleanup_(pod_done) struct pod p;

        pod_init(&p);
        assert_int_equal(dir_make(in(&p, p.dir, ".previous/a/b/c"), 0755, NULL), 0);
        put(&p, p.dir, ".previous/a/b/file", STR(""));
        assert_int_equal(chmod(in(&p, p.dir, ".previous/a/b"), 0), 0);
        assert_int_equal(chmod(in(&p, p.dir, ".previous/a"), 0555), 0);
        put(&p, p.dir, "new", STR(""));
        stage(&p);
        assert_int_equal(entries(in(&p, p.dir, ".previous")), 1);
}

/* Runs FN as another user; only root can. Returns what it returned. */
static int as_user(uid_t uid, int (*fn)(struct pod *p), struct pod *p)
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                if (setgid(uid) < 0 || setuid(uid) < 0)
                        _exit(99);
                _exit(fn(p));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int stage_works(struct pod *p)
{
        return stage_hash(p, NULL) < 0;
}

static int stage_says_whose_it_is(struct pod *p)
{
        return !(stage_hash(p, NULL) < 0 && strstr(p->err.text, "belongs to user 2000") &&
                 strstr(p->err.text, "this is user 1000") && strstr(p->err.text, "trace"));
}

static void a_volume_of_another_user_is_used_if_its_directory_may_be_written(void **state)
{
        _cleanup_(pod_done) struct pod p;

        if (geteuid() != 0)
                return; /* there is only one user then */
        pod_init(&p);
        assert_int_equal(chmod(unit_root, 0755), 0);
        assert_int_equal(chmod(p.root, 0777), 0);
        put(&p, p.dir, "result.json", STR("{}"));
        assert_int_equal(chown(in(&p, p.dir, "result.json"), 2000, 2000), 0);
        assert_int_equal(chmod(in(&p, p.dir, "result.json"), 0600), 0);
        assert_int_equal(chown(p.dir, 2000, 2000), 0);
        assert_int_equal(chmod(p.dir, 0777), 0);
        assert_int_equal(as_user(1000, stage_works, &p), 0);
        assert_string_equal(get(&p, p.dir, ".previous/result.json"), "{}");
}

static void what_cannot_be_moved_is_an_error_that_says_why(void **state)
{
        _cleanup_(pod_done) struct pod p;

        if (geteuid() != 0)
                return;
        pod_init(&p);
        assert_int_equal(chmod(unit_root, 0755), 0);
        assert_int_equal(chmod(p.root, 0777), 0);
        assert_int_equal(dir_make(in(&p, p.dir, "trace"), 0755, NULL), 0);
        assert_int_equal(chown(in(&p, p.dir, "trace"), 2000, 2000), 0);
        assert_int_equal(chmod(p.dir, 0777), 0);
        assert_int_equal(as_user(1000, stage_says_whose_it_is, &p), 0);
        assert_true(S_ISDIR(look(&p, p.dir, "trace").st_mode));
}

/* ---- the checkpoint */

static void a_checkpoint_of_the_same_spec_is_laid_down(void **state)
{
        _cleanup_(pod_done) struct pod p;

        pod_init(&p);
        put(&p, p.data, "checkpoint.json", STR("{\"done\":[1,2]}"));
        put(&p, p.data, "specHash", STR("abc\n"));
        put(&p, p.dir, "checkpoint.json", STR("of an earlier use"));
        assert_int_equal(stage_hash(&p, "abc"), 0);
        assert_string_equal(get(&p, p.dir, "checkpoint.json"), "{\"done\":[1,2]}");
        assert_string_equal(get(&p, p.dir, ".previous/checkpoint.json"), "of an earlier use");
        assert_int_equal(entries(p.dir), 3);
}

static void a_packed_checkpoint_is_unpacked(void **state)
{
        _cleanup_(pod_done) struct pod p;
        _cleanup_(buf_done) struct buf packed = BUF_INIT(1 << 20);

        pod_init(&p);
        assert_int_equal(gzip_add(&packed, STR("{\"done\":[3]}"), NULL), 0);
        put(&p, p.data, "checkpoint.json.gz", buf_str(&packed));
        put(&p, p.data, "specHash", STR("abc"));
        assert_int_equal(stage_hash(&p, "abc"), 0);
        assert_string_equal(get(&p, p.dir, "checkpoint.json"), "{\"done\":[3]}");
}

static void any_other_checkpoint_is_not(void **state)
{
        static const struct {
                const char *its, *ours, *name, *text;
        } cases[] = {
                {"abc", "abd", "checkpoint.json", "{}"},   {"abc", "ab", "checkpoint.json", "{}"},
                {"", "abc", "checkpoint.json", "{}"},      {NULL, "abc", "checkpoint.json", "{}"},
                {"", "", "checkpoint.json", "{}"},         {"abc", NULL, "checkpoint.json", "{}"},
                {"abc", "abc", "checkpoint.json.gz", "?"}, {"abc", "abc", "other", "{}"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(pod_done) struct pod p;

                pod_init(&p);
                put(&p, p.data, cases[i].name, str_of(cases[i].text));
                if (cases[i].its)
                        put(&p, p.data, "specHash", str_of(cases[i].its));
                assert_int_equal(stage_hash(&p, cases[i].ours), 0);
                assert_null(get(&p, p.dir, "checkpoint.json"));
                assert_int_equal(entries(p.dir), 1);
        }
}

static void a_binary_that_cannot_be_copied_is_an_error_and_leaves_no_traces(void **state)
{
        _cleanup_(pod_done) struct pod p;
        struct run_stage s;

        pod_init(&p);
        s = (struct run_stage){
                .program = "/nowhere/sonde-pod", .target = p.target, .ctl = p.ctl, .dir = p.dir};
        assert_true(run_stage(&s, NULL, &p.err) < 0);
        assert_non_null(strstr(p.err.text, "/nowhere/sonde-pod"));
        s.program = "/etc/passwd";
        s.target = p.dir; /* a directory is in the way */
        assert_true(run_stage(&s, NULL, &p.err) < 0);
        assert_int_equal(entries(p.root), 3);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_pod_gets_all_it_needs),
        cmocka_unit_test(staging_again_changes_nothing_but_removes_an_old_end),
        cmocka_unit_test(what_is_in_the_fifo_s_place_goes),
        cmocka_unit_test(an_earlier_use_goes_aside_and_replaces_an_older_one),
        cmocka_unit_test(an_interrupted_move_goes_on),
        cmocka_unit_test(links_are_moved_or_removed_but_never_followed),
        cmocka_unit_test(a_link_to_a_directory_deep_in_the_old_tree_is_removed_as_a_link),
        cmocka_unit_test(a_tree_deeper_than_any_path_is_removed),
        cmocka_unit_test(a_directory_without_permissions_is_removed_by_its_owner),
        cmocka_unit_test(a_volume_of_another_user_is_used_if_its_directory_may_be_written),
        cmocka_unit_test(what_cannot_be_moved_is_an_error_that_says_why),
        cmocka_unit_test(a_checkpoint_of_the_same_spec_is_laid_down),
        cmocka_unit_test(a_packed_checkpoint_is_unpacked),
        cmocka_unit_test(any_other_checkpoint_is_not),
        cmocka_unit_test(a_binary_that_cannot_be_copied_is_an_error_and_leaves_no_traces),
};

UNIT_MAIN(tests)
