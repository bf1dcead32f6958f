#include "unit/unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/ncu/elf.h"
#include "probe/ncu/ncu.h"

/* A directory with a program of our own in it, made by the compiler of this machine. */
struct place {
        struct arena a;
        char dir[64];
};

static const char LIBRARY[] = "int answer(void);\nint answer(void) { return 42; }\n";
static const char PROGRAM[] =
        "#include <stdio.h>\n"
        "int answer(void);\n"
        "int main(int c, char **v) { printf(\"%d %s\", answer(), c > 1 ? v[1] : \"-\"); return 7; }\n";

static const char *in(struct place *p, const char *name)
{
        return arena_join(&p->a, p->dir, "/", name);
}

static void put(struct place *p, const char *name, const char *text, unsigned mode)
{
        assert_int_equal(file_replace(in(p, name), str_of(text), mode, NULL), 0);
}

/* Runs ARGV; its output goes to OUT. */
static int run(const char *const *argv, const char *libraries, struct buf *out)
{
        const char *env[] = {libraries, NULL};
        struct spawn s = {.argv = (char *const *)argv, .env = env, .err_fd = 2};
        struct err err = ERR_INIT;
        int fds[2], status;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        s.out_fd = fds[1];
        if (spawn_start(&s, &pid, NULL, &err) < 0)
                fail_msg("%s", err.text);
        close(fds[1]);
        assert_int_equal(fd_read_all(fds[0], "output", out, NULL), 0);
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void compile(struct place *p, const char *const *more)
{
        const char *argv[16] = {"cc", "-o"};
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        size_t n = 2;

        for (; *more; more++)
                argv[n++] = *more;
        assert_int_equal(run(argv, NULL, &out), 0);
}

static int setup(void **state)
{
        struct place *p = xcalloc(1, sizeof(*p));

        snprintf(p->dir, sizeof(p->dir), "/tmp/workload-XXXXXX");
        assert_non_null(mkdtemp(p->dir));
        assert_int_equal(dir_make(in(p, "app/bin"), 0755, NULL), 0);
        assert_int_equal(dir_make(in(p, "app/lib"), 0755, NULL), 0);
        put(p, "library.c", LIBRARY, 0644);
        put(p, "program.c", PROGRAM, 0644);
        compile(p, (const char *[]){in(p, "app/lib/libanswer.so.1"), "-shared", "-fPIC",
                                    "-Wl,-soname,libanswer.so.1", in(p, "library.c"), NULL});
        *state = p;
        return 0;
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_,
                      struct FTW *w _unused_)
{
        return remove(path);
}

static int teardown(void **state)
{
        struct place *p = *state;

        nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        arena_done(&p->a);
        free(p);
        return 0;
}

static const char *build(struct place *p, const char *link)
{
        compile(p, (const char *[]){in(p, "app/bin/prog"), in(p, "program.c"),
                                    in(p, "app/lib/libanswer.so.1"), link, NULL});
        return in(p, "app/bin/prog");
}

static struct json *staged(struct place *p)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct json *j;

        assert_int_equal(file_read(in(p, "shared/workload.json"), &text, NULL), 0);
        j = json_parse(&p->a, buf_str(&text), NULL, NULL);
        assert_non_null(j);
        return j;
}

static void stage(struct place *p, const char *program, const char *const *files)
{
        const struct ncu_workload w = {.program = program, .files = files, .to = in(p, "shared")};
        struct err err = ERR_INIT;
        const char *why;

        if (ncu_stage_workload(&w, &why, &err) < 0)
                fail_msg("%s: %s", why, err.text);
        assert_null(why);
}

/* Starts what was staged as the tool would, and expects the answer. */
static void expect_answer(struct place *p)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        char *args[] = {arena_strdup(&p->a, "x y"), NULL};
        const char *libraries;
        char **argv = ncu_workload_command(&p->a, in(p, "shared"), args, &libraries);

        assert_int_equal(run((const char *const *)argv,
                             libraries ? arena_join(&p->a, "LD_LIBRARY_PATH=", libraries, "") : NULL, &out),
                         7);
        assert_str(buf_str(&out), "42 x y");
}

static bool lists(const struct json *list, const char *name)
{
        json_foreach (j, list)
                if (streq(json_cstr(j), name))
                        return true;
        return false;
}

/* ---- staged and run */

static void test_a_library_by_runpath_goes_along(void **state)
{
        struct place *p = *state;

        stage(p, build(p, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib"), NULL);
        assert_true(lists(json_at(staged(p), "needed"), "libanswer.so.1"));
        assert_int_equal(json_len(json_at(staged(p), "missing")), 0);
        assert_int_equal(access(in(p, "shared/lib/libanswer.so.1"), R_OK), 0);
        assert_int_equal(access(in(p, "shared/libc/libc.so.6"), R_OK), 0);
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        expect_answer(p);
}

static void test_a_library_by_rpath_of_the_program_goes_along(void **state)
{
        struct place *p = *state;

        stage(p, build(p, "-Wl,--disable-new-dtags,-rpath,${ORIGIN}/../lib"), NULL);
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        expect_answer(p);
}

static void test_a_library_by_the_environment_goes_along(void **state)
{
        struct place *p = *state;

        assert_int_equal(setenv("LD_LIBRARY_PATH", arena_join(&p->a, "/nowhere:", in(p, "app/lib"), ""), 1),
                         0);
        stage(p, build(p, "-Wl,--as-needed"), NULL);
        assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        expect_answer(p);
}

static void test_a_library_that_is_nowhere_is_told(void **state)
{
        struct place *p = *state;

        stage(p, build(p, "-Wl,--as-needed"), NULL);
        assert_true(lists(json_at(staged(p), "missing"), "libanswer.so.1"));
}

static void test_the_driver_s_libraries_stay_on_the_node(void **state)
{
        struct place *p = *state;

        compile(p, (const char *[]){in(p, "app/lib/libcuda.so.1"), "-shared", "-fPIC",
                                    "-Wl,-soname,libcuda.so.1", in(p, "library.c"), NULL});
        compile(p, (const char *[]){in(p, "app/bin/prog"), in(p, "program.c"), in(p, "app/lib/libcuda.so.1"),
                                    "-Wl,-rpath,$ORIGIN/../lib", NULL});
        stage(p, in(p, "app/bin/prog"), NULL);
        assert_true(lists(json_at(staged(p), "driver"), "libcuda.so.1"));
        assert_int_equal(access(in(p, "shared/lib/libcuda.so.1"), F_OK), -1);
}

static void test_a_static_program_needs_nothing(void **state)
{
        struct place *p = *state;

        compile(p, (const char *[]){in(p, "app/bin/prog"), "-static", in(p, "program.c"), in(p, "library.c"),
                                    NULL});
        stage(p, in(p, "app/bin/prog"), NULL);
        assert_int_equal(json_len(json_at(staged(p), "needed")), 0);
        assert_null(json_at(staged(p), "interpreter"));
        expect_answer(p);
}

static void test_a_loader_that_this_image_has_not_is_brought_along(void **state)
{
        struct place *p = *state;
        struct json *needed;

        compile(p, (const char *[]){in(p, "app/bin/prog"), in(p, "program.c"),
                                    in(p, "app/lib/libanswer.so.1"), "-Wl,-rpath,$ORIGIN/../lib",
                                    arena_printf(&p->a, "-Wl,--dynamic-linker,%s", in(p, "app/ld-own.so.2")),
                                    NULL});
        {
                _cleanup_(fd_close) int fd = open("/lib64/ld-linux-x86-64.so.2", O_RDONLY | O_CLOEXEC);

                if (fd < 0)
                        skip(); /* another machine: its loader has another name */
                assert_int_equal(file_copy(fd, in(p, "app/ld-own.so.2"), 0755, NULL), 0);
        }
        stage(p, in(p, "app/bin/prog"), NULL);
        needed = json_at(staged(p), "needed");
        assert_true(lists(needed, "ld-own.so.2") && lists(needed, "libc.so.6"));
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        expect_answer(p);
}

static void test_a_name_is_found_in_the_path_and_a_link_is_followed(void **state)
{
        struct place *p = *state;
        const char *before = arena_strdup(&p->a, getenv("PATH"));

        build(p, "-Wl,-rpath,$ORIGIN/../lib");
        assert_int_equal(mkdir(in(p, "bin"), 0755), 0);
        assert_int_equal(symlink("../app/bin/prog", in(p, "bin/answer")), 0);
        assert_int_equal(setenv("PATH", arena_join(&p->a, "/nowhere:", in(p, "bin"), ""), 1), 0);
        stage(p, "answer", NULL);
        assert_int_equal(setenv("PATH", before, 1), 0);
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        expect_answer(p);
}

static void test_a_script_goes_with_its_interpreter(void **state)
{
        struct place *p = *state;
        const char *files[] = {in(p, "app/data"), NULL};
        char script[256];
        const char *interpreter;

        build(p, "-Wl,-rpath,$ORIGIN/../lib");
        assert_int_equal(dir_make(in(p, "app/data/deep"), 0755, NULL), 0);
        put(p, "app/data/deep/file", "text", 0600);
        assert_int_equal(symlink("deep/file", in(p, "app/data/link")), 0);
        assert_int_equal(mkfifo(in(p, "app/data/fifo"), 0600), 0);
        snprintf(script, sizeof(script), "#! %s -option\n", in(p, "app/bin/prog"));
        put(p, "app/script", script, 0755);
        stage(p, in(p, "app/script"), files);
        interpreter = arena_join(&p->a, in(p, "shared"), "/root", in(p, "app/bin/prog"));
        assert_int_equal(access(interpreter, X_OK), 0);
        assert_string_equal(json_str(staged(p), "script"), in(p, "app/bin/prog"));
        assert_int_equal(access(in(p, "shared/lib/libanswer.so.1"), R_OK), 0);
        {
                struct stat st;
                char target[64] = "";
                const char *root = arena_join(&p->a, in(p, "shared"), "/root", in(p, "app/data"));

                assert_int_equal(stat(arena_join(&p->a, root, "/deep/file", ""), &st), 0);
                assert_int_equal(st.st_mode & 0777, 0644); /* whoever runs the tool must read it */
                assert_true(readlink(arena_join(&p->a, root, "/link", ""), target, sizeof(target) - 1) > 0);
                assert_string_equal(target, "deep/file");
                assert_int_equal(lstat(arena_join(&p->a, root, "/fifo", ""), &st), -1);
        }
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        {
                const char *libraries;
                char **argv = ncu_workload_command(&p->a, in(p, "shared"), NULL, &libraries);

                assert_string_equal(argv[0], interpreter);
                assert_string_equal(argv[1], "-option");
                assert_string_equal(argv[2], in(p, "shared/workload"));
                assert_null(argv[3]);
                assert_string_equal(libraries, in(p, "shared/lib"));
        }
}

static void test_what_env_is_to_start_goes_along(void **state)
{
        static const char *const lines[] = {"#!/usr/bin/env sh\n", "#!/usr/bin/env -S sh -u\n"};
        struct place *p = *state;
        char **sh = spawn_places(&p->a, "sh");
        struct stat st;

        while (*sh && access(*sh, X_OK) < 0)
                sh++;
        for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
                put(p, "script", lines[i], 0755);
                stage(p, in(p, "script"), NULL);
                assert_int_equal(lstat(arena_join(&p->a, in(p, "shared"), "/root", *sh), &st), 0);
                assert_int_equal(rename(in(p, "shared"), in(p, i ? "second" : "first")), 0);
                assert_int_equal(mkdir(in(p, "shared"), 0755), 0);
        }
}

static void test_staged_files_are_linked_to_their_own_paths(void **state)
{
        struct place *p = *state;
        const char *files[] = {in(p, "app/data"), in(p, "app/other"), NULL};
        _cleanup_(buf_done) struct buf text = BUF_INIT(100);

        assert_int_equal(dir_make(in(p, "app/data/deep"), 0755, NULL), 0);
        put(p, "app/data/deep/file", "staged", 0644);
        put(p, "app/data/kept", "staged", 0644);
        put(p, "app/other", "staged", 0644);
        stage(p, build(p, "-Wl,-rpath,$ORIGIN/../lib"), files);
        assert_int_equal(rename(in(p, "app"), in(p, "gone")), 0);
        assert_int_equal(dir_make(in(p, "app/data"), 0755, NULL), 0);
        put(p, "app/data/kept", "this image's", 0644);
        assert_int_equal(ncu_workload_link(in(p, "shared"), NULL), 0);
        assert_int_equal(file_read(in(p, "app/data/deep/file"), &text, NULL), 0);
        assert_str(buf_str(&text), "staged");
        assert_int_equal(file_read(in(p, "app/other"), &text, NULL), 0);
        assert_str(buf_str(&text), "staged");
        assert_int_equal(file_read(in(p, "app/data/kept"), &text, NULL), 0);
        assert_str(buf_str(&text), "this image's");
        assert_int_equal(ncu_workload_link(in(p, "shared"), NULL), 0);
}

static void test_it_may_be_done_again_and_never_copies_itself(void **state)
{
        struct place *p = *state;
        const char *files[] = {p->dir, NULL};

        build(p, "-Wl,-rpath,$ORIGIN/../lib");
        stage(p, in(p, "app/bin/prog"), files);
        stage(p, in(p, "app/bin/prog"), files);
        assert_int_equal(access(arena_join(&p->a, in(p, "shared"), "/root", in(p, "app/bin/prog")), X_OK), 0);
        assert_int_equal(access(arena_join(&p->a, in(p, "shared"), "/root", in(p, "shared")), F_OK), -1);
        expect_answer(p);
}

/* What is named is mounted from the volume: a link that leads out of it is refused there. */
static void test_a_named_link_stays_in_the_volume(void **state)
{
        struct place *p = *state;
        const char *files[] = {in(p, "app/first"), in(p, "app/dir"), NULL};
        const char *program = build(p, "-Wl,-rpath,$ORIGIN/../lib"), *root;
        _cleanup_(buf_done) struct buf text = BUF_INIT(100);
        char target[PATH_MAX] = "";

        assert_int_equal(dir_make(in(p, "data/deep"), 0755, NULL), 0);
        assert_int_equal(dir_make(in(p, "app/dir"), 0755, NULL), 0);
        put(p, "data/deep/file", "text", 0644);
        assert_int_equal(symlink(in(p, "data/second"), in(p, "app/first")), 0);
        assert_int_equal(symlink(in(p, "data/deep/file"), in(p, "data/second")), 0);
        assert_int_equal(symlink(in(p, "data/deep/file"), in(p, "app/dir/link")), 0);
        stage(p, program, files);
        assert_int_equal(rename(in(p, "data"), in(p, "gone")), 0);
        root = arena_join(&p->a, in(p, "shared"), "/root", p->dir);
        assert_int_equal(file_read(arena_join(&p->a, root, "/app/first", ""), &text, NULL), 0);
        assert_str(buf_str(&text), "text");
        /* One below what is named is seen under its own path, and is as it was. */
        assert_true(readlink(arena_join(&p->a, root, "/app/dir/link", ""), target, sizeof(target) - 1) > 0);
        assert_string_equal(target, in(p, "data/deep/file"));
}

static void test_nothing_is_written_behind_a_staged_link(void **state)
{
        struct place *p = *state;
        const char *first[] = {in(p, "app/link"), in(p, "app/link/deep/file"), NULL};
        const char *then[] = {in(p, "app/link/deep/file"), in(p, "app/link"), NULL};
        const char *program = build(p, "-Wl,-rpath,$ORIGIN/../lib"), *root;
        struct stat before, after;

        assert_int_equal(dir_make(in(p, "data/deep"), 0755, NULL), 0);
        put(p, "data/deep/file", "text", 0600);
        put(p, "data/other", "text", 0600);
        assert_int_equal(symlink(in(p, "data"), in(p, "app/link")), 0);
        assert_int_equal(stat(in(p, "data/deep/file"), &before), 0);
        stage(p, program, first);
        root = arena_join(&p->a, in(p, "shared"), "/root", p->dir);
        assert_int_equal(access(arena_join(&p->a, root, "/data/deep/file", ""), R_OK), 0);
        assert_int_equal(stat(in(p, "data/deep/file"), &after), 0);
        assert_int_equal(after.st_ino, before.st_ino); /* it was not replaced by its copy */
        assert_int_equal(after.st_mode, before.st_mode);
        assert_int_equal(rename(in(p, "shared"), in(p, "shared-before")), 0);
        assert_int_equal(mkdir(in(p, "shared"), 0755), 0);
        stage(p, program, then);
        assert_int_equal(access(arena_join(&p->a, root, "/app/link/deep/file", ""), R_OK), 0);
        assert_int_equal(access(arena_join(&p->a, root, "/app/link/other", ""), R_OK), 0);
}

static void test_holes_stay_holes_and_no_file_keeps_a_privilege(void **state)
{
        struct place *p = *state;
        const char *files[] = {in(p, "sparse"), NULL}, *copy;
        _cleanup_(fd_close) int fd = -1;
        struct stat st;
        char last[5];

        put(p, "sparse", "first", 0644);
        assert_int_equal(truncate(in(p, "sparse"), (off_t)1 << 32), 0);
        fd = open(in(p, "sparse"), O_RDWR | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "later", 5, (off_t)1 << 31), 5);
        assert_int_equal(fchmod(fd, 06755), 0);
        stage(p, build(p, "-Wl,-rpath,$ORIGIN/../lib"), files);
        copy = arena_join(&p->a, in(p, "shared"), "/root", in(p, "sparse"));
        fd_close(TAKE_FD(fd));
        fd = open(copy, O_RDONLY | O_CLOEXEC);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, (off_t)1 << 32);
        assert_true(st.st_blocks < 1 << 14);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_int_equal(pread(fd, last, 5, 0), 5);
        assert_memory_equal(last, "first", 5);
        assert_int_equal(pread(fd, last, 5, (off_t)1 << 31), 5);
        assert_memory_equal(last, "later", 5);
}

/* ---- refused */

static void test_each_refusal_has_its_own_reason(void **state)
{
        struct place *p = *state;
        const char *missing[] = {"/no/such/file", NULL}, *relative[] = {"etc/passwd", NULL};
        struct {
                const char *program;
                const char *const *files;
                const char *why, *words;
        } cases[] = {
                {NULL, NULL, "CommandEmpty", "spec.command[0]"},
                {"", NULL, "CommandEmpty", "spec.command[0]"},
                {in(p, "missing"), NULL, "CommandNotFound", "not in the image"},
                {"no-such-program-here", NULL, "CommandNotFound", "not found in PATH"},
                {in(p, "program.c/inside"), NULL, "CommandNotFound", "not in the image"},
                {in(p, "app"), NULL, "CommandNotExecutable", "a directory"},
                {in(p, "program.c"), NULL, "CommandNotExecutable", "not executable"},
                {in(p, "text"), NULL, "CommandNotExecutable", "neither an ELF program nor a script"},
                {in(p, "broken"), NULL, "CommandNotExecutable", "cut short"},
                {in(p, "orphan"), NULL, "CommandNotExecutable", "the interpreter of"},
                {in(p, "script"), missing, "FileNotFound", "/no/such/file"},
                {in(p, "script"), relative, "FileNotFound", "not an absolute path"},
        };

        put(p, "text", "hello\n", 0755);
        put(p, "broken", "\177ELF\002\001\001.............", 0755);
        put(p, "orphan", "#!/no/such/interpreter\n", 0755);
        put(p, "script", "#!/bin/sh\n", 0755);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct ncu_workload w = {
                        .program = cases[i].program, .files = cases[i].files, .to = in(p, "shared")};
                struct err err = ERR_INIT;
                const char *why = NULL;

                assert_int_equal(ncu_stage_workload(&w, &why, &err), -1);
                if (!streq(why, cases[i].why) || !strstr(err.text, cases[i].words))
                        fail_msg("%s: %s: %s", cases[i].program, why, err.text);
                assert_true(run_reason_valid(str_of(why)));
        }
}

static void test_what_was_met_first_is_told(void **state)
{
        struct place *p = *state;
        const struct ncu_workload w = {.program = "twice", .to = in(p, "shared")};
        const char *path = arena_printf(&p->a, "%s:%s", in(p, "one"), in(p, "two")), *why;
        _cleanup_(free_ptr) char *before = xstrdup(getenv("PATH"));
        struct err err = ERR_INIT;

        assert_int_equal(mkdir(in(p, "one"), 0755), 0);
        assert_int_equal(dir_make(in(p, "two/twice"), 0755, NULL), 0);
        put(p, "one/twice", "text", 0644);
        assert_int_equal(setenv("PATH", path, 1), 0);
        assert_int_equal(ncu_stage_workload(&w, &why, &err), -1);
        assert_int_equal(setenv("PATH", before, 1), 0);
        assert_string_equal(why, "CommandNotExecutable");
        assert_non_null(strstr(err.text, "one/twice is not executable"));
}

static void test_a_volume_that_cannot_be_written_is_said(void **state)
{
        struct place *p = *state;
        const struct ncu_workload w = {.program = "/bin/sh", .to = in(p, "program.c/shared")};
        struct err err = ERR_INIT;
        const char *why;

        assert_int_equal(ncu_stage_workload(&w, &why, &err), -1);
        assert_string_equal(why, "StageFailed");
}

/* ---- the loader */

static void test_the_cache_of_this_machine_is_read(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf cache = BUF_INIT(16 << 20);
        size_t at = 0, n = 0;
        const char *path;
        bool libc = false;

        if (file_read("/etc/ld.so.cache", &cache, NULL) < 0)
                skip();
        while ((path = ld_cache_next(&a, buf_str(&cache), NULL, &at))) {
                libc |= strstr(path, "/libc.so.6") != NULL;
                n++;
        }
        assert_true(n > 10 && libc);
        at = 0;
        path = ld_cache_next(&a, buf_str(&cache), "libc.so.6", &at);
        assert_int_equal(access(path, R_OK), 0);
        for (size_t cut = 0; cut < cache.n; cut += 97) {
                at = 0;
                while (ld_cache_next(&a, str_n(cache.p, cut), NULL, &at))
                        arena_reset(&a, SIZE_MAX);
        }
}

static void test_a_cache_with_the_old_format_before_it_is_read(void **state)
{
        /* One old entry of 12 bytes; the new part begins at a multiple of 8. */
        static const char text[] = "ld.so-1.7.0\0"
                                   "\1\0\0\0"
                                   "123456789012"
                                   "\0\0\0\0"
                                   "glibc-ld.so.cache1.1"
                                   "\1\0\0\0"
                                   "\30\0\0\0"
                                   "\2\0\0\0"
                                   "\0\0\0\0"
                                   "\0\0\0\0\0\0\0\0\0\0\0\0"
                                   "\3\3\0\0"
                                   "\110\0\0\0"
                                   "\123\0\0\0"
                                   "\0\0\0\0\0\0\0\0\0\0\0\0"
                                   "libx.so.1\0\0"
                                   "/a/libx.so.1";
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        size_t at = 0;

        assert_string_equal(ld_cache_next(&a, str_n(text, sizeof(text)), "libx.so.1", &at), "/a/libx.so.1");
        assert_null(ld_cache_next(&a, str_n(text, sizeof(text)), "libx.so.1", &at));
        at = 0;
        assert_null(ld_cache_next(&a, str_n(text, sizeof(text)), "liby.so.1", &at));
}

/* A library that is nothing but a head, at PATH below the root. */
static void put_head(struct place *p, const char *path, unsigned char class, uint16_t machine)
{
        Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', class, ELFDATA2LSB, EV_CURRENT},
                           .e_machine = machine};
        const char *at = in(p, path);

        assert_int_equal(dir_make(arena_strndup(&p->a, at, (size_t)(strrchr(at, '/') - at)), 0755, NULL), 0);
        assert_int_equal(file_replace(at, str_n((const char *)&head, sizeof(head)), 0755, NULL), 0);
}

static const char *found(struct place *p, const struct loaded *o, const char *interpreter, const char *env,
                         const char *name)
{
        _cleanup_(loader_done) struct loader l;

        loader_init(&l, &p->a, in(p, "root"), env, interpreter);
        return loader_find(&l, o, name);
}

static void test_directories_are_searched_in_the_loader_s_order(void **state)
{
        struct place *p = *state;
        struct loaded program = {.path = "/app/bin/prog",
                                 .elf = {.bits = 64, .machine = EM_X86_64, .rpath = "/rp"}};
        struct loaded library = {
                .path = "/app/lib/liba.so", .elf = {.bits = 64, .machine = EM_X86_64}, .by = &program};
        const char *glibc = "/lib64/ld-linux-x86-64.so.2";
        char real[PATH_MAX];

        assert_int_equal(dir_make(in(p, "root"), 0755, NULL), 0);
        assert_non_null(realpath(in(p, "root"), real));
        put_head(p, "root/rp/libx.so", ELFCLASS64, EM_X86_64);
        put_head(p, "root/env/libx.so", ELFCLASS64, EM_X86_64);
        put_head(p, "root/run/libx.so", ELFCLASS64, EM_X86_64);
        put_head(p, "root/usr/lib/libx.so", ELFCLASS64, EM_X86_64);
        put_head(p, "root/app/lib/sub/libo.so", ELFCLASS64, EM_X86_64);
        /* RPATH of those it was loaded for, then the environment. */
        assert_string_equal(found(p, &library, glibc, "/env", "libx.so"), "/rp/libx.so");
        /* A RUNPATH takes RPATH away, and comes after the environment. */
        library.elf.runpath = "/run:$ORIGIN/sub";
        assert_string_equal(found(p, &library, glibc, "/env", "libx.so"), "/env/libx.so");
        assert_string_equal(found(p, &library, glibc, NULL, "libx.so"), "/run/libx.so");
        assert_string_equal(found(p, &library, glibc, NULL, "libo.so"), "/app/lib/sub/libo.so");
        library.elf.runpath = NULL;
        program.elf.rpath = NULL;
        assert_string_equal(found(p, &library, glibc, "", "libx.so"), "/usr/lib/libx.so");
        /* musl has it the same for both, and inherits both. */
        program.elf.runpath = "/run";
        assert_string_equal(found(p, &library, "/lib/ld-musl-x86_64.so.1", NULL, "libx.so"), "/run/libx.so");
        assert_string_equal(found(p, &library, glibc, NULL, "libx.so"), "/usr/lib/libx.so");
}

static void test_another_machine_s_libraries_do_not_fit(void **state)
{
        struct place *p = *state;
        struct loaded program = {.path = "/prog",
                                 .elf = {.bits = 64, .machine = EM_X86_64, .runpath = "/a:/b:/c"}};
        const char *musl = "/lib/ld-musl-x86_64.so.1";

        put_head(p, "root/a/libx.so", ELFCLASS32, EM_386);
        put_head(p, "root/b/libx.so", ELFCLASS64, EM_AARCH64);
        put_head(p, "root/opt/musl/libx.so", ELFCLASS64, EM_X86_64);
        assert_null(found(p, &program, musl, NULL, "libx.so"));
        assert_int_equal(dir_make(in(p, "root/etc"), 0755, NULL), 0);
        put(p, "root/etc/ld-musl-x86_64.path", "/lib\n/opt/musl\n", 0644);
        assert_string_equal(found(p, &program, musl, NULL, "libx.so"), "/opt/musl/libx.so");
        assert_int_equal(mkdir(in(p, "root/c"), 0755), 0);
        assert_int_equal(mkfifo(in(p, "root/c/libx.so"), 0644), 0); /* would block */
        assert_string_equal(found(p, &program, musl, NULL, "libx.so"), "/opt/musl/libx.so");
}

/* ---- ELF files */

static void test_every_prefix_of_a_program_is_refused_or_read(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf whole = BUF_INIT(16 << 20);
        _cleanup_(fd_close) int fd = memfd_create("elf", MFD_CLOEXEC);
        struct err err = ERR_INIT;
        struct elf elf;

        assert_int_equal(file_read("/bin/sh", &whole, NULL), 0);
        assert_int_equal(fd_write_all(fd, buf_str(&whole), NULL), 0);
        assert_int_equal(elf_read(&a, fd, &elf, &err), 0);
        assert_true(elf.n_needed >= 1 && elf.interpreter);
        for (off_t n = 4000; n >= 0; n -= n > 200 ? 13 : 1) {
                assert_int_equal(ftruncate(fd, n), 0);
                (void)!elf_read(&a, fd, &elf, &err);
                arena_reset(&a, SIZE_MAX);
        }
        assert_int_equal(elf_read(&a, fd, &elf, &err), 1);
}

#define with_place(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
        with_place(test_a_library_by_runpath_goes_along),
        with_place(test_a_library_by_rpath_of_the_program_goes_along),
        with_place(test_a_library_by_the_environment_goes_along),
        with_place(test_a_library_that_is_nowhere_is_told),
        with_place(test_the_driver_s_libraries_stay_on_the_node),
        with_place(test_a_static_program_needs_nothing),
        with_place(test_a_loader_that_this_image_has_not_is_brought_along),
        with_place(test_a_name_is_found_in_the_path_and_a_link_is_followed),
        with_place(test_a_script_goes_with_its_interpreter),
        with_place(test_what_env_is_to_start_goes_along),
        with_place(test_staged_files_are_linked_to_their_own_paths),
        with_place(test_it_may_be_done_again_and_never_copies_itself),
        with_place(test_a_named_link_stays_in_the_volume),
        with_place(test_nothing_is_written_behind_a_staged_link),
        with_place(test_holes_stay_holes_and_no_file_keeps_a_privilege),
        with_place(test_each_refusal_has_its_own_reason),
        with_place(test_what_was_met_first_is_told),
        with_place(test_a_volume_that_cannot_be_written_is_said),
        cmocka_unit_test(test_the_cache_of_this_machine_is_read),
        cmocka_unit_test(test_a_cache_with_the_old_format_before_it_is_read),
        with_place(test_directories_are_searched_in_the_loader_s_order),
        with_place(test_another_machine_s_libraries_do_not_fit),
        cmocka_unit_test(test_every_prefix_of_a_program_is_refused_or_read),
};

UNIT_MAIN(tests)
