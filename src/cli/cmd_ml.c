/*
 * sonde-pod ml: runs a machine-learning task with a framework of the image it is in.
 */
#include "cli/cli.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/ml/ml.h"

static const struct usage usage = {
        "ml REQUEST | --list",
        "Trains a model on made data with a framework of this image (sklearn, dask, spark, ray, ...) and "
        "says what came\n"
        "of it. REQUEST is JSON; every member may be left out:\n"
        "\n"
        "  sonde-pod ml '{\"framework\": \"dask\", \"task\": \"feature_selection\", \"algorithm\": "
        "\"random_forest\",\n"
        "                 \"datasetSize\": 10000, \"nFeatures\": 100, \"nSelect\": 20,\n"
        "                 \"parameters\": {\"method\": \"wrapper\", \"n_estimators\": 50}}'\n"
        "\n"
        "The result goes to SONDE_METRICS_FILE, else to standard output. SONDE_SEED decides the data, "
        "SONDE_INPUT_SIZE\n"
        "its rows where there is no datasetSize; SONDE_PYTHON is the interpreter (python3).\n"
        "\n"
        "Exit status: 0; 1 when it failed; 2 when the request is wrong; 69 when the framework is not "
        "there.\n",
};

static void print_parameters(const char *indent, const struct json *parameters)
{
        json_foreach (p, parameters)
                printf("%s%-24s %s\n", indent, p->key, json_cstr(p));
}

static int list(void)
{
        _cleanup_(doc_done) struct doc table = DOC_INIT;
        struct err err = ERR_INIT;

        if (doc_parse(&table, str_of(ML_TABLE), NULL, &err) < 0) {
                cli_error("%s", err.text);
                return 1;
        }
        puts("Tasks:");
        json_foreach (task, json_at(table.root, "tasks")) {
                printf("  %s\n", task->key);
                print_parameters("    ", json_at(task, "parameters"));
        }
        json_foreach (framework, json_at(table.root, "frameworks")) {
                printf("\n%s needs %s\n  tasks:", framework->key, json_str(framework, "needs"));
                json_foreach (task, json_at(framework, "tasks"))
                        printf(" %s", json_cstr(task));
                puts("");
                print_parameters("  ", json_at(framework, "parameters"));
                json_foreach (algorithm, json_at(framework, "algorithms")) {
                        printf("  %s\n", algorithm->key);
                        print_parameters("    ", algorithm);
                }
        }
        return fflush(stdout) == 0 ? 0 : 1;
}

/* The adapters as a file that lives as long as the process: nothing is written anywhere. Its path goes to PATH. */
static int open_program(char *path, size_t size, struct err *err)
{
        int fd = memfd_create("sonde-ml", 0);

        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot make a file in memory");
        if (fd_write_all(fd, str_n((const char *)ML_PROGRAM, ML_PROGRAM_LEN), err) < 0) {
                fd_close(fd);
                return -1;
        }
        (void)snprintf(path, size, "/proc/self/fd/%d", fd);
        return fd;
}

static int unavailable(const char *python, int errnum)
{
        const char *file = getenv("SONDE_METRICS_FILE");
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        const char
                *message = arena_printf(
                        &doc.arena,
                        "there is no Python in this image (%s: %s), which machine-learning algorithms need; "
                        "name an image that has it with the operator's --ml-image, or the interpreter by "
                        "SONDE_PYTHON",
                        python, strerror(errnum)),
                *text = json_print(&doc.arena,
                                   json_build(&doc.arena,
                                              "{'error': {'reason': 'FrameworkUnavailable', 'message': %s}}",
                                              message));

        cli_error("ml: %s", message);
        if (file && *file && file_replace(file, str_of(text), 0644, &err) < 0)
                cli_error("ml: %s", err.text);
        return ML_UNAVAILABLE;
}

int cmd_ml(int argc, char **argv)
{
        bool wants_list = false;
        const struct option_def options[] = {{"list", 0, NULL,
                                              "print frameworks, tasks, algorithms and their parameters",
                                              OPT_FLAG, &wants_list},
                                             {0}};
        const char *python = getenv("SONDE_PYTHON");
        struct err err = ERR_INIT;
        char path[64];
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc != (wants_list ? 1 : 2)) {
                cli_error("ml takes one request, as JSON, or --list; see '%s help ml'", cli_name());
                return EXIT_USAGE;
        }
        if (wants_list)
                return list();
        if (open_program(path, sizeof(path), &err) < 0) {
                cli_error("ml: %s", err.text);
                return 1;
        }
        python = python && *python ? python : "python3";
        execvp(python, (char *[]){(char *)python, path, argv[1], NULL});
        return unavailable(python, errno);
}
