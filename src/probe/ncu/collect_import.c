/*
 * From the report to numbers: ncu prints it as CSV, which is read on the way into its file.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/ncu/collect.h"

enum { CSV_MAX = 64 << 20 }; /* kept of it */

struct importing {
        struct ncu_reader *reader;
        struct ncu_console console; /* of what the tool complains */
        struct imported *to;
        int csv_fd; /* -1: no more of it is kept */
        size_t kept;
};

static void on_launch(void *arg, const struct ncu_launch *launch)
{
        ncu_sum_add(arg, launch);
}

static void keep_csv(struct importing *i, struct str piece)
{
        struct err err = ERR_INIT;
        size_t n = MIN(piece.n, CSV_MAX - i->kept);

        if (i->csv_fd < 0)
                return;
        if (fd_write_all(i->csv_fd, str_n(piece.p, n), &err) < 0)
                i->to->warning = "the report as CSV could not be written to its end";
        else if (n < piece.n)
                i->to->warning = "the report as CSV is larger than 64 MiB: the rest was read and not kept";
        i->kept += n;
        if (i->to->warning)
                fd_close(TAKE_FD(i->csv_fd));
}

static void on_output(void *arg, struct str piece)
{
        struct importing *i = arg;

        keep_csv(i, piece);
        (void)ncu_console_feed(&i->console, piece);
        if (i->to->err.code == E_OK)
                (void)!ncu_reader_feed(i->reader, piece, &i->to->err);
}

/* Why there is nothing, in the tool's own words where it has some. */
static void judge(struct importing *i, int status)
{
        struct err *err = &i->to->err;

        if (err->code == E_OK)
                (void)!ncu_reader_end(i->reader, err);
        i->to->layout = ncu_reader_layout(i->reader);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return;
        if (i->console.failure != NCU_FAILURE_NONE)
                err_set(err, E_IO, "the report cannot be imported: %s", i->console.detail);
        else if (WIFEXITED(status))
                err_set(err, E_IO, "the report cannot be imported: ncu ended with status %d",
                        WEXITSTATUS(status));
        else
                err_set(err, E_IO, "the report cannot be imported: ncu was ended by signal %d",
                        WTERMSIG(status));
}

int import_report(struct tool_watch *w, struct arena *a, const char *ncu, const char *report, const char *csv,
                  struct imported *ret, struct err *err)
{
        const char *const argv[] = {ncu,     "--import",      report, "--page", "raw",
                                    "--csv", "--print-units", "base", NULL};
        const char *const env[] = {"LC_ALL=C", NULL};
        struct importing i = {.to = ret};
        const struct tool_job job = {.argv = (char *const *)argv, .env = env, .output = on_output, .arg = &i};
        int ok, status;

        (void)unlink(csv); /* what the program has put there, a FIFO or a link, is not written to */
        i.csv_fd = open(csv, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0664);
        if (i.csv_fd < 0)
                ret->warning = arena_printf(a, "the report as CSV cannot be kept: %s", strerror(errno));
        ncu_console_init(&i.console);
        i.reader = ncu_reader_new(on_launch, ret->sum);
        ok = tool_run(w, &job, &status, err);
        if (ok == 0)
                judge(&i, status);
        ncu_reader_free(i.reader);
        ncu_console_done(&i.console);
        fd_close(i.csv_fd);
        return ok;
}
