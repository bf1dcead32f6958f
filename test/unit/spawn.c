#include "unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What ARGV prints to its standard output, and how it ends. */
static int output(const char *const *argv, const char *const *env, struct buf *out)
{
        struct err err = ERR_INIT;
        struct spawn s = {.argv = (char *const *)argv, .env = env, .err_fd = 2, .own_group = true};
        int fds[2], status;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        s.out_fd = fds[1];
        if (spawn_start(&s, &pid, NULL, &err) < 0)
                fail_msg("%s", err.text);
        close(fds[1]);
        assert_int_equal(fd_read_all(fds[0], "output", out, &err), 0);
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WEXITSTATUS(status);
}

static void test_a_program_runs_with_its_arguments_and_environment(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        const char *const argv[] = {"sh", "-c",    "echo \"$1 $SONDE_A $SONDE_B $SONDE_AB\"; exit 3",
                                    "sh", "a b;c", NULL};
        const char *const env[] = {"SONDE_A=new", "SONDE_B=", NULL};

        assert_int_equal(setenv("SONDE_A", "old", 1), 0);
        assert_int_equal(setenv("SONDE_AB", "kept", 1), 0);
        assert_int_equal(output(argv, env, &out), 3);
        assert_str(buf_str(&out), "a b;c new  kept\n");
        assert_string_equal(getenv("SONDE_A"), "old");
}

static void test_it_has_a_group_and_the_signals_of_a_new_program(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        const char *const argv[] = {
                "sh", "-c",
                "grep -E 'Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$",
                NULL};
        sigset_t set, before;

        sigfillset(&set);
        sigprocmask(SIG_SETMASK, &set, &before);
        assert_int_equal(output(argv, NULL, &out), 0);
        sigprocmask(SIG_SETMASK, &before, NULL);
        assert_str(buf_str(&out), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void test_descriptors_may_be_crossed(void **state)
{
        struct err err = ERR_INIT;
        const char *const argv[] = {"sh", "-c", "echo to-error >&2", NULL};
        struct spawn s = {.argv = (char *const *)argv, .out_fd = 2}; /* 1 is our 2, and 2 something else */
        char text[32] = "";
        int fds[2], status;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        s.err_fd = fds[1];
        assert_int_equal(spawn_start(&s, &pid, NULL, &err), 0);
        close(fds[1]);
        assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
        assert_string_equal(text, "to-error\n");
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_what_cannot_be_started_says_why(void **state)
{
        char dir[] = "/tmp/spawn-XXXXXX", text[64], orphan[64], missing[64], inside[128];
        struct {
                const char *name;
                int status;
                const char *words;
        } cases[] = {
                {"no-such-program-here", 127, "is not found in PATH ("},
                {missing, 127, "is not found"},
                {inside, 127, "is not found"},
                {orphan, 127, "interpreter or loader"},
                {text, 126, "is not executable for user"},
                {"", 127, "not found"},
        };

        assert_non_null(mkdtemp(dir));
        snprintf(text, sizeof(text), "%s/text", dir);
        snprintf(orphan, sizeof(orphan), "%s/orphan", dir);
        snprintf(missing, sizeof(missing), "%s/missing", dir);
        snprintf(inside, sizeof(inside), "%s/text/inside", dir);
        assert_int_equal(file_replace(text, STR("text"), 0644, NULL), 0);
        assert_int_equal(file_replace(orphan, STR("#!/no/such/interpreter\n"), 0755, NULL), 0);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *const argv[] = {cases[i].name, NULL};
                struct spawn s = {.argv = (char *const *)argv, .out_fd = 1, .err_fd = 2};
                struct err err = ERR_INIT;
                int status = 0;
                pid_t pid;

                assert_int_equal(spawn_start(&s, &pid, &status, &err), -1);
                assert_int_equal(status, cases[i].status);
                if (!strstr(err.text, cases[i].words))
                        fail_msg("%s: %s", cases[i].name, err.text);
        }
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        unlink(text);
        unlink(orphan);
        rmdir(dir);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_runs_with_its_arguments_and_environment),
        cmocka_unit_test(test_it_has_a_group_and_the_signals_of_a_new_program),
        cmocka_unit_test(test_descriptors_may_be_crossed),
        cmocka_unit_test(test_what_cannot_be_started_says_why),
};

UNIT_MAIN(tests)
