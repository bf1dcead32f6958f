/*
 * sonde-pod algorithm: one of the built-in algorithms, once.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "probe/probe.h"

enum { PARAMETERS_MAX = 64 * 1024, DEFAULT_SIZE = 1000, LITTLE = 64 << 20 };

struct request {
        const char *parameters, *size, *seed;
        bool list;
};

static const struct usage usage = {
        "algorithm NAME [--parameters JSON] [--size N] [--seed N]\n"
        "   or: algorithm --list",
        "Sorts N seeded numbers and checks that they are sorted. Only the sorting is timed: what it took is\n"
        "\"region\" in the file that SONDE_METRICS_FILE names, or on standard output without one.\n"
        "\n"
        "  sonde-pod algorithm quick_sort --parameters '{\"pivot_strategy\": \"first\", \"input\": "
        "\"sorted\"}'\n"
        "\n"
        "Parameters: input (random, sorted, reversed, nearly_sorted, few_unique); of quick_sort\n"
        "pivot_strategy (first, last, middle, median, random); of quick_sort and merge_sort parallel "
        "(true).\n"
        "\n"
        "Exit status: 0; 1 it did not work; 2 the name, a parameter or an option is wrong.\n",
};

static int list(void)
{
        const struct algorithm *al;

        for (size_t i = 0; (al = algorithm_at(i)); i++)
                printf("%-15s %s\n", algorithm_name(al), algorithm_about(al));
        return fflush(stdout) == 0 ? 0 : 1;
}

/* TEXT, else what the environment has under NAME, else OTHERWISE. */
static int read_number(const char *text, const char *option, const char *name, uint64_t otherwise,
                       uint64_t *ret, struct err *err)
{
        const char *from = text ? option : name;

        if (!text)
                text = getenv(name);
        *ret = otherwise;
        if (text && *text && !str_to_u64(str_of(text), ret))
                return err_set(err, E_CONFIG, "%s is a whole number, not '%.60s'", from, text);
        return 0;
}

static int read_request(const struct request *q, const char *name, struct algorithm_options *o, size_t *ret_n,
                        struct err *err)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        uint64_t n;

        if (q->parameters && doc_parse(&doc, str_of(q->parameters),
                                       &(struct json_limits){.bytes = PARAMETERS_MAX, .depth = 8}, err) < 0)
                return err_wrap(err, "--parameters");
        if (algorithm_check(name, doc.root, err) < 0 ||
            algorithm_options(algorithm_find(name), doc.root, o, err) < 0 ||
            read_number(q->size, "--size", "SONDE_INPUT_SIZE", DEFAULT_SIZE, &n, err) < 0 ||
            read_number(q->seed, "--seed", "SONDE_SEED", 0, &o->seed, err) < 0)
                return -1;
        if (n > ALGORITHM_SIZE_MAX)
                return err_set(err, E_CONFIG, "the size is at most %d, not %llu", ALGORITHM_SIZE_MAX,
                               (unsigned long long)n);
        *ret_n = (size_t)n;
        return 0;
}

/* A container that is short of memory may end whole, with all that runs in it: better not to begin. */
static int check_memory(const struct algorithm *al, size_t n, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        int64_t needed = (int64_t)(n * sizeof(int32_t)) * (algorithm_needs_spare(al) ? 2 : 1), there;
        const struct json *machine;

        if (needed < LITTLE)
                return 0;
        machine = measure_machine(&a, NULL);
        there = MIN(json_int(machine, "memory", INT64_MAX), json_int(machine, "memoryLimit", INT64_MAX));
        return needed < there
                       ? 0
                       : err_set(err, E_TOO_LARGE, "%s needs %lld MB for %zu numbers, and there are %lld MB",
                                 algorithm_name(al), (long long)(needed / 1000000), n,
                                 (long long)(there / 1000000));
}

static int tell(struct json *metrics, struct arena *a, struct err *err)
{
        const char *path = getenv("SONDE_METRICS_FILE");
        const char *text = json_print(a, metrics);
        _cleanup_(fd_close) int fd = -1;

        if (!path || !*path)
                return printf("%s\n", text) < 0 || fflush(stdout) != 0
                               ? err_set(err, E_IO, "cannot write to standard output")
                               : 0;
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot write %s", path);
        return fd_write_all(fd, str_of(text), err) < 0 ? err_wrap(err, "%s", path) : 0;
}

/* Why it failed, for whoever measures it; nobody else reads it. */
static void tell_error(const struct err *failure, const char *reason)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        if (getenv("SONDE_METRICS_FILE"))
                (void)tell(json_build(&a, "{'error': {'reason': %s, 'message': %s}}", reason, failure->text),
                           &a, NULL);
        cli_error("algorithm: %s", failure->text);
}

int cmd_algorithm(int argc, char **argv)
{
        struct request q = {0};
        const struct option_def options[] = {
                {"parameters", 0, "JSON", "what is said to the algorithm", OPT_STR, &q.parameters},
                {"size", 0, "N", "how many numbers (SONDE_INPUT_SIZE, else 1000)", OPT_STR, &q.size},
                {"seed", 0, "N", "of the input (SONDE_SEED, else 0)", OPT_STR, &q.seed},
                {"list", 0, NULL, "say which algorithms there are", OPT_FLAG, &q.list},
                {0},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct algorithm_options o;
        struct algorithm_times t;
        struct err err = ERR_INIT;
        size_t n;
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (q.list && argc == 1)
                return list();
        if (argc != 2) {
                cli_error("algorithm needs the name of one algorithm; see --list");
                return EXIT_USAGE;
        }
        if (read_request(&q, argv[1], &o, &n, &err) < 0) {
                tell_error(&err, "InvalidAlgorithm");
                return EXIT_USAGE;
        }
        if (check_memory(algorithm_find(argv[1]), n, &err) < 0 ||
            algorithm_run(algorithm_find(argv[1]), n, &o, &t, &err) < 0 ||
            tell(json_build(&a, "{'region': {'wall': %p, 'user': %p, 'sys': %p}}", json_double(&a, t.wall),
                            json_double(&a, t.user), json_double(&a, t.sys)),
                 &a, &err) < 0) {
                tell_error(&err, "AlgorithmFailed");
                return 1;
        }
        return 0;
}
