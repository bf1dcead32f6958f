/*
 * status-read - reads a status on each line of standard input and writes what Sonde takes from it, or why it takes nothing.
 */
#include <unistd.h>

#include "run/status.h"

static const char usage[] =
        "usage: status-read <STATUSES\n"
        "\n"
        "Each line of standard input is the text of a status file. For each there is one line on\n"
        "standard output: the status as the relay passes it on, or 'refused: ' and the reason.\n";

static int answer(struct str line, struct arena *a)
{
        const struct clock clock = CLOCK_REAL;
        struct run_status s;
        struct err err = ERR_INIT;

        arena_reset(a, SIZE_MAX);
        if (run_status_parse(a, line, clock_wall(&clock), &s, &err) < 0)
                return printf("refused: %s\n", err.text);
        return puts(json_print(a, run_status_json(a, &s)));
}

int main(int argc, char **argv)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf in = BUF_INIT(256 << 20);
        struct err err = ERR_INIT;
        struct str rest;

        if (argc > 1) {
                fputs(usage, streq(argv[1], "--help") ? stdout : stderr);
                return streq(argv[1], "--help") ? 0 : 2;
        }
        if (fd_read_all(STDIN_FILENO, "standard input", &in, &err) < 0) {
                fprintf(stderr, "status-read: %s\n", err.text);
                return 2;
        }
        rest = buf_str(&in);
        while (rest.n)
                if (answer(str_split(&rest, '\n'), &a) < 0)
                        return 2;
        return fflush(stdout) == 0 ? 0 : 2;
}
