/*
 * sonde-pod stage-workload: copies a program and what it needs out of its image.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/ncu/ncu.h"

#define TERMINATION_LOG "/dev/termination-log"

/* Told where people look, and where the operator does. */
static int fail(const char *why, const struct err *err, const char *termination_log)
{
        _cleanup_(free_ptr) char *line = xasprintf("%s: %s\n", why, err->text);
        _cleanup_(fd_close) int fd = -1;

        fputs(line, stderr);
        if (termination_log)
                fd = open(termination_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (termination_log && (fd < 0 || fd_write_all(fd, str_of(line), NULL) < 0))
                cli_error("cannot write %s", termination_log);
        return 1;
}

int cmd_stage_workload(int argc, char **argv)
{
        struct ncu_workload w = {.to = "/shared"};
        struct option_list files = {0};
        const char *termination_log = access(TERMINATION_LOG, W_OK) == 0 ? TERMINATION_LOG : NULL,
                   *why = NULL;
        const struct option_def options[] = {
                {"to", 0, "DIR", "where to (/shared)", OPT_STR, &w.to},
                {"file", 0, "PATH", "a file or a directory that the program needs, too; may be given again",
                 OPT_LIST, &files},
                {"termination-log", 0, "FILE", "why it failed goes here too (" TERMINATION_LOG " if there)",
                 OPT_STR, &termination_log},
                {0}};
        static const struct usage usage = {"stage-workload [OPTION]... -- COMMAND",
                                           "Copies the program COMMAND, a path or a name in PATH, with its "
                                           "shared libraries and the files that it\n"
                                           "is told to, from this image to a volume, so that it runs in "
                                           "another image, under its profiler.\n"};
        struct err err = ERR_INIT;
        int code = options_parse(options, &usage, &argc, argv);

        (void)umask(022); /* whoever runs the tool must find its way */

        if (code < 0 && argc > 2) {
                cli_error("stage-workload takes one command, and its arguments later, with ncu");
                code = EXIT_USAGE;
        }
        if (code < 0) {
                *vec_push(&files) = NULL;
                w.files = files.v;
                w.program = argc == 2 ? argv[1] : NULL;
                code = ncu_stage_workload(&w, &why, &err) < 0 ? fail(why, &err, termination_log) : 0;
        }
        vec_done(&files);
        return code;
}
