#include "unit/unit.h"

#include <unistd.h>

#include "probe/ncu/ncu.h"

#define SAMPLES "../shared/ncu-samples"

enum { LOG_MAX = 1 << 20 };

/* Feeds TEXT in pieces of N bytes. */
static void feed(struct ncu_console *c, struct str text, size_t n)
{
        ncu_console_init(c);
        while (text.n) {
                size_t piece = MIN(n, text.n);

                (void)ncu_console_feed(c, str_n(text.p, piece));
                text.p += piece;
                text.n -= piece;
        }
}

static bool same(const struct ncu_console *x, const struct ncu_console *y)
{
        return x->connected == y->connected && x->disconnected == y->disconnected &&
               x->launches == y->launches && x->of == y->of && x->percent == y->percent &&
               x->passes == y->passes && streq(x->kernel, y->kernel) && x->failure == y->failure &&
               streq(x->detail, y->detail) && x->program_code == y->program_code && x->replay == y->replay &&
               streq(x->report, y->report) && x->n_warnings == y->n_warnings;
}

/* What a console says, which must not depend on where the pieces end. */
static struct ncu_console said(struct str text)
{
        static const size_t sizes[] = {1, 2, 3, 7, 64, 1000};
        struct ncu_console whole;

        feed(&whole, text, SIZE_MAX);
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
                _cleanup_(ncu_console_done) struct ncu_console c;

                feed(&c, text, sizes[i]);
                assert_true(same(&c, &whole));
        }
        return whole;
}

static struct ncu_console said_in(const char *path)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(LOG_MAX);
        struct err err = ERR_INIT;

        if (file_read(path, &text, &err) < 0)
                fail_msg("%s", err.text);
        return said(buf_str(&text));
}

/* ---- launches */

static void test_a_launch_is_followed_while_its_line_grows(void **state)
{
        _cleanup_(ncu_console_done) struct ncu_console c;

        ncu_console_init(&c);
        assert_true(ncu_console_feed(&c, STR("==PROF== Connected to process 42 (/shared/workload)\n")));
        assert_false(ncu_console_feed(&c, STR("==PROF== Profiling \"vector")));
        assert_true(ncu_console_feed(&c, STR("Add\" - 0: 0%")));
        assert_string_equal(c.kernel, "vectorAdd");
        assert_int_equal(c.percent, 0);
        assert_false(ncu_console_feed(&c, STR("...")));
        assert_true(ncu_console_feed(&c, STR(".50%")));
        assert_int_equal(c.percent, 50);
        assert_int_equal(c.launches, 0);
        assert_true(ncu_console_feed(&c, STR("....100%")));
        assert_int_equal(c.launches, 1);
        assert_true(ncu_console_feed(&c, STR(" - 8 passes\n")));
        assert_int_equal(c.passes, 8);
        assert_int_equal(c.launches, 1);
        assert_true(ncu_console_feed(&c, STR("==PROF== Disconnected from process 42\n")));
        assert_true(c.connected && c.disconnected);
}

static void test_all_spellings_of_a_launch_are_read(void **state)
{
        static const struct {
                const char *text, *kernel;
                uint64_t of;
                unsigned passes;
        } cases[] = {
                {"==PROF== Profiling \"probe\": 0%....50%....100% - 8 passes\n", "probe", 0, 8},
                {"==PROF== Profiling \"probe\" - 0: 0%....50%....100% - 1 pass\n", "probe", 0, 1},
                {"==PROF== Profiling \"probe\" - 3 (4/20): 0%....50%....100% - 38 passes\r\n", "probe", 20,
                 38},
                {"==PROF== Profiling \"distribution_elementwise_grid...\" - 0: 0%....50%....100% - 13 "
                 "passes\n",
                 "distribution_elementwise_grid...", 0, 13},
                {"==PROF== Profiling \"operator\"\" _k: 5%\" - 1: 0%....100% - 2 passes\n",
                 "operator\"\" _k: 5%", 0, 2},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(ncu_console_done) struct ncu_console c = said(str_of(cases[i].text));

                assert_string_equal(c.kernel, cases[i].kernel);
                assert_int_equal(c.launches, 1);
                assert_int_equal(c.of, cases[i].of);
                assert_int_equal(c.passes, cases[i].passes);
                assert_int_equal(c.failure, NCU_FAILURE_NONE);
        }
}

static void test_the_program_may_print_in_the_middle_of_it(void **state)
{
        static const char *const cases[] = {
                "==PROF== Profiling \"k\" - 0: 0%hello\n....50%....100% - 8 passes\n",
                "==PROF== Profiling \"k\" - 0: 0%....50%....100%Tensor 805, shape [8]\nmore\n - 8 passes\n",
                "==PROF== Profiling \"k\" - 0: 0%....50%hello....100% - 8 passes\n",
                "==PROF== Profiling \"k\" - 0: 0%....50%hello\nloss 0.5....100% - 8 passes\n",
                "loss 0.5==PROF== Profiling \"k\" - 0: 0%....50%....100% - 8 passes\n",
                "==PROF== Profiling \"k\" - 0: 0%....50%....==WARNING== Found clocks\n....100% - 8 passes\n",
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(ncu_console_done) struct ncu_console c = said(str_of(cases[i]));

                assert_string_equal(c.kernel, "k");
                assert_int_equal(c.launches, 1);
                assert_int_equal(c.passes, 8);
        }
}

static void test_a_launch_that_was_interrupted_does_not_count(void **state)
{
        _cleanup_(ncu_console_done) struct ncu_console c = said(
                STR("==PROF== Profiling \"gemm\" - 17: 0%....50%....100% - 19 passes\n"
                    "==PROF== Profiling \"gemm\" - 18: 0%..==PROF== Received signal\n"
                    "==PROF== Trying to shutdown target application\n"
                    " - 3 passes\n"
                    "==ERROR== Failed to profile \"gemm\" in process 25093\n"
                    "==ERROR== The application returned an error code (15).\n"
                    "==ERROR== An error occurred while trying to profile.\n"
                    "==WARNING== Found outstanding GPU clock reset, trying to revert...Success.\n"
                    "==PROF== Report: /bench/gemm/gemm_prof_16.ncu-rep\n"));

        assert_int_equal(c.launches, 1);
        assert_int_equal(c.failure, NCU_FAILURE_OTHER);
        assert_string_equal(c.detail, "Failed to profile \"gemm\" in process 25093");
        assert_int_equal(c.program_code, 15);
        assert_string_equal(c.report, "/bench/gemm/gemm_prof_16.ncu-rep");
        assert_int_equal(c.n_warnings, 1);
}

static void test_a_program_s_own_percentages_are_its_own(void **state)
{
        _cleanup_(ncu_console_done) struct ncu_console c = said(
                STR("epoch 1: 0%....50%....100%\n....100% - 8 passes\n"
                    "==PROF== Profiling \"k\" - 0: 0%\nepoch 2: 100%\n"));

        assert_int_equal(c.launches, 0);
        assert_int_equal(c.percent, 0);
}

static void test_a_line_without_an_end_takes_no_memory_and_hides_nothing(void **state)
{
        static const char last[] = "==ERROR== Failed to initialize the profiler: LibraryNotLoaded.\n";
        _cleanup_(ncu_console_done) struct ncu_console c;
        char dots[1000];

        memset(dots, '.', sizeof(dots));
        ncu_console_init(&c);
        for (int i = 0; i < 1000; i++)
                (void)ncu_console_feed(&c, str_n(dots, sizeof(dots)));
        assert_true(c.line.cap <= 8192);
        for (size_t i = 0; i < sizeof(last) - 1; i++)
                (void)ncu_console_feed(&c, str_n(last + i, 1));
        assert_int_equal(c.failure, NCU_FAILURE_DRIVER);
}

/* ---- failures */

struct text {
        const char *name, *text;
        enum ncu_failure failure;
        const char *detail; /* a part of it */
        int code;
};

/* One for each that real logs have. */
static const struct text TEXTS[] = {
        {"permission",
         "==PROF== Connected to process 87374 (/app/bench)\n"
         "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
         "Counters on "
         "the target device 0. For instructions on enabling permissions and to get more information see "
         "https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
         "Arrays match.\n"
         "==PROF== Disconnected from process 87374\n"
         "==WARNING== No kernels were profiled.\n",
         NCU_FAILURE_PERMISSION, "ERR_NVGPUCTRPERM", -1},
        {"permission, as older tools say it",
         "==ERROR== Error: ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
         "Performance "
         "Counters on the target device 0.\n"
         "==ERROR== An error occurred while trying to profile.\n"
         "==WARNING== No kernels were profiled.\n"
         "==WARNING== Profiling kernels launched by child processes requires the --target-processes all "
         "option.\n",
         NCU_FAILURE_PERMISSION, "ERR_NVGPUCTRPERM", -1},
        {"counters in use",
         "==PROF== Connected to process 7508 (/usr/bin/python3.11)\n\n"
         "==ERROR== An error was reported by the driver\n\n"
         "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool "
         "(like DCGM) is "
         "concurrently collecting profiling data.\n"
         "==ERROR== Failed to profile \"flash_fwd_kernel\" in process 7508\n"
         "==PROF== Trying to shutdown target application\n"
         "==ERROR== The application returned an error code (9).\n"
         "==ERROR== An error occurred while trying to profile.\n"
         "==WARNING== No kernels were profiled.\n",
         NCU_FAILURE_IN_USE, "a driver resource was unavailable", 9},
        {"MIG",
         "==PROF== Profiling \"v1,cw51cXTLSUwv1sCUt9Ww1FEw0N...\" - 0: 0%\n"
         "==ERROR== An error was reported by the driver\n\n"
         "==ERROR== Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally (e.g. using "
         "'nvidia-smi "
         "--lock-gpu-clocks=tdp,tdp') or profile without fixed frequencies (see '--clock-control').\n"
         "==ERROR== The application returned an error code (9).\n",
         NCU_FAILURE_MIG_CLOCKS, "on MIG!", 9},
        {"driver and tool do not fit",
         "==ERROR== An error was reported by the counter measurement library:\n"
         "==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver "
         "library is "
         "loaded.\n"
         "==PROF== Trying to shutdown target application\n"
         "==ERROR== The application returned an error code (9).\n",
         NCU_FAILURE_DRIVER, "LibraryNotLoaded", 9},
        {"a stub of the driver",
         "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).\n"
         "==ERROR== The application returned an error code (1).\n",
         NCU_FAILURE_DRIVER, "failed to connect", 1},
        {"a driver that is too old",
         "==ERROR== An error was reported by the driver:\n"
         "==ERROR== For more information, see /tmp/nsight-compute-a507-931f.log\n"
         "==ERROR== Cuda driver is not compatible with Nsight Compute.\n",
         NCU_FAILURE_DRIVER, "not compatible", -1},
        {"no GPU, as the program tells it",
         "[Vector addition of 50000 elements]\n"
         "Failed to allocate device vector A (error code no CUDA-capable device is detected)!\n"
         "==ERROR== The application returned an error code (1).\n"
         "==WARNING== No kernels were profiled.\n",
         NCU_FAILURE_NO_GPU, "no CUDA-capable device", 1},
        {"no driver in the container",
         "/shared/workload: error while loading shared libraries: libcuda.so.1: cannot open shared object "
         "file: No such "
         "file or directory\n"
         "==ERROR== The application returned an error code (127).\n",
         NCU_FAILURE_NO_GPU, "libcuda.so.1", 127},
        {"a library is missing",
         "/shared/workload: error while loading shared libraries: libcublas.so.12: cannot open shared object "
         "file: No "
         "such file or directory\n"
         "==ERROR== The application returned an error code (127).\n",
         NCU_FAILURE_NOT_LOADED, "libcublas.so.12", 127},
        {"a newer C library is needed",
         "/shared/workload: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by "
         "/shared/workload)\n"
         "==ERROR== The application returned an error code (1).\n",
         NCU_FAILURE_NOT_LOADED, "GLIBC_2.38", 1},
        {"a library is missing, of musl",
         "Error loading shared library libfoo.so: No such file or directory (needed by /shared/workload)\n",
         NCU_FAILURE_NOT_LOADED, "libfoo.so", -1},
        {"the program failed",
         "==PROF== Connected to process 631 (/app/serve)\n"
         "==PROF== Disconnected from process 631\n"
         "==ERROR== The application returned an error code (3).\n"
         "==WARNING== No kernels were profiled.\n",
         NCU_FAILURE_PROGRAM, "error code (3)", 3},
        {"nothing was profiled",
         "==PROF== Disconnected from process 2\n==WARNING== No kernels were profiled.\n", NCU_FAILURE_NOTHING,
         "No kernels were profiled", -1},
        {"nothing was profiled, and what there was",
         "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. wmma_cxx_kernel\n2. "
         "gn_stats(const __half *, float *)\nbye\n3. none\n",
         NCU_FAILURE_NOTHING, "wmma_cxx_kernel, gn_stats(const __half *, float *)", -1},
        {"something else",
         "==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this process "
         "has write "
         "permissions on this file.\n"
         "==ERROR== Failed to profile \"k\" in process 2323392\n"
         "==ERROR== The application returned an error code (9).\n",
         NCU_FAILURE_OTHER, "nsight-compute-lock", 9},
        {"an option it does not know",
         "==ERROR== unrecognised option '--frob'. Use --help for further details.\n", NCU_FAILURE_OTHER,
         "--frob", -1},
};

static void test_each_failure_has_its_own_reason(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
                const struct text *t = &TEXTS[i];
                _cleanup_(ncu_console_done) struct ncu_console c = said(str_of(t->text));

                if (c.failure != t->failure || !strstr(c.detail, t->detail) || c.program_code != t->code)
                        fail_msg("%s: %s (%s), code %d", t->name, ncu_failure_reason(c.failure), c.detail,
                                 c.program_code);
                assert_int_equal(c.launches, 0);
        }
}

static void test_the_cause_wins_in_whatever_order_it_is_said(void **state)
{
        _cleanup_(ncu_console_done) struct ncu_console c = said(
                STR("==WARNING== No kernels were profiled.\n"
                    "==ERROR== The application returned an error code (9).\n"
                    "==ERROR== Failed to profile \"k\" in process 1\n"
                    "==ERROR== Profiling failed because a driver resource was unavailable.\n"
                    "==ERROR== ERR_NVGPUCTRPERM\n"));

        assert_int_equal(c.failure, NCU_FAILURE_IN_USE);
}

static void test_warnings_are_kept_once_each(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(LOG_MAX);
        struct ncu_console c;

        for (int i = 0; i < 100; i++)
                buf_printf(&text, "==WARNING== Note: number %d\033[2J\n==WARNING== again\n", i);
        c = said(buf_str(&text));
        assert_int_equal(c.n_warnings, NCU_WARNINGS_MAX);
        assert_string_equal(c.warnings[0], "Note: number 0 [2J");
        assert_string_equal(c.warnings[1], "again");
        assert_string_equal(c.warnings[2], "Note: number 1 [2J");
        assert_int_equal(c.failure, NCU_FAILURE_NONE);
        ncu_console_done(&c);
}

static void test_a_replay_says_so(void **state)
{
        _cleanup_(ncu_console_done) struct ncu_console c = said(
                STR("==REPLAY== recording vectoradd; nothing was measured\n"));

        assert_true(c.replay);
}

static void test_every_sentence_has_a_cause_the_evidence_and_a_next_step(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char detail[256];

        memset(detail, 'x', sizeof(detail) - 1);
        detail[sizeof(detail) - 1] = '\0';
        memcpy(detail, "evidence", 8);
        for (enum ncu_failure f = NCU_FAILURE_NONE + 1; f < NCU_FAILURES; f++) {
                const char *with = ncu_failure_sentence(&a, f, detail),
                           *without = ncu_failure_sentence(&a, f, NULL);

                assert_true(run_reason_valid(str_of(ncu_failure_reason(f))));
                assert_true(strlen(with) <= 500 && strlen(without) < strlen(with));
                assert_non_null(strstr(with, ": evidence"));
                assert_non_null(strchr(without, ';'));
                for (enum ncu_failure g = 0; g < f; g++)
                        assert_string_not_equal(ncu_failure_reason(g), ncu_failure_reason(f));
        }
        assert_non_null(strstr(ncu_failure_sentence(&a, NCU_FAILURE_PERMISSION, NULL), "sysAdmin"));
        assert_non_null(strstr(ncu_failure_sentence(&a, NCU_FAILURE_IN_USE, NULL), "dcgmi profile --pause"));
}

/* ---- logs of real runs */

static void test_the_samples_of_real_runs(void **state)
{
        struct ncu_console c;

        if (access(SAMPLES, F_OK) < 0) {
                print_message("# %s is not there\n", SAMPLES);
                return;
        }
        c = said_in(SAMPLES "/sassscope-basic-console-2025.3.txt");
        assert_int_equal(c.launches, 1);
        assert_int_equal(c.passes, 8);
        assert_string_equal(c.kernel, "probe_timer_only");
        assert_true(c.connected && c.disconnected);
        assert_int_equal(c.failure, NCU_FAILURE_NONE);
        assert_non_null(strstr(c.report, "profile.ncu-rep"));
        ncu_console_done(&c);
        c = said_in(SAMPLES "/jakeflasher-a30-warnings-progress.log");
        assert_int_equal(c.launches, 39);
        assert_int_equal(c.passes, 13);
        assert_int_equal(c.n_warnings, 2);
        assert_int_equal(c.failure, NCU_FAILURE_NONE);
        ncu_console_done(&c);
}

static void test_our_own_recordings(void **state)
{
        struct ncu_console c = said_in("test/data/ncu/recordings/two-kernels/console.txt");

        assert_int_equal(c.launches, 6);
        assert_int_equal(c.n_warnings, 1);
        assert_string_equal(c.kernel, "gemm_tiled");
        ncu_console_done(&c);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_launch_is_followed_while_its_line_grows),
        cmocka_unit_test(test_all_spellings_of_a_launch_are_read),
        cmocka_unit_test(test_the_program_may_print_in_the_middle_of_it),
        cmocka_unit_test(test_a_launch_that_was_interrupted_does_not_count),
        cmocka_unit_test(test_a_program_s_own_percentages_are_its_own),
        cmocka_unit_test(test_a_line_without_an_end_takes_no_memory_and_hides_nothing),
        cmocka_unit_test(test_each_failure_has_its_own_reason),
        cmocka_unit_test(test_the_cause_wins_in_whatever_order_it_is_said),
        cmocka_unit_test(test_warnings_are_kept_once_each),
        cmocka_unit_test(test_a_replay_says_so),
        cmocka_unit_test(test_every_sentence_has_a_cause_the_evidence_and_a_next_step),
        cmocka_unit_test(test_the_samples_of_real_runs),
        cmocka_unit_test(test_our_own_recordings),
};

UNIT_MAIN(tests)
