#include "cli/cli.h"

#include <errno.h>

#include "cli/show.h"

enum { TYPOS_MAX = 2 };

static const struct command built_in[] = {
        {"help", "show this, or the help of one command", NULL},
        {"version", "print the version", NULL},
        {0},
};

const char *cli_name(void)
{
        const char *file = program_invocation_short_name;

        if (streq(file, "kubectl-sonde"))
                return "kubectl sonde";
        return *file ? file : "sonde";
}

char *cli_home(void)
{
        const char *home = getenv("HOME");

        return xasprintf("%s/.sonde", home && *home ? home : "/tmp");
}

void cli_error(const char *fmt, ...)
{
        va_list ap;

        fprintf(stderr, "%s: ", cli_name());
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
}

static int list(FILE *to, const struct program *program, int status)
{
        const struct command *tables[] = {program->commands, built_in};

        fprintf(to, "Usage: %s COMMAND [OPTION]...\n\n%s\n\nCommands:\n", cli_name(), program->purpose);
        for (size_t i = 0; i < ARRAY_LEN(tables); i++)
                for (const struct command *c = tables[i]; c->name; c++)
                        if (c->summary)
                                fprintf(to, "  %-14s %s\n", c->name, c->summary);
        fprintf(to, "\n'%s help COMMAND' tells more about one.\n", cli_name());
        return status;
}

/* The command that NAME was probably meant to be, or NULL. */
static const char *nearest(const struct program *program, const char *name)
{
        const struct command *tables[] = {program->commands, built_in};
        const char *best = NULL;
        size_t least = TYPOS_MAX + 1;

        for (size_t i = 0; i < ARRAY_LEN(tables); i++)
                for (const struct command *c = tables[i]; c->name; c++) {
                        size_t n = text_typos(name, c->name);

                        /* Half of a short word replaced is another word. */
                        if (n < least && 2 * n < strlen(c->name)) {
                                least = n;
                                best = c->name;
                        }
                }
        return best;
}

static int unknown(const struct program *program, const char *name)
{
        const char *meant = nearest(program, name);

        if (meant)
                cli_error("unknown command '%s'; did you mean '%s'?", name, meant);
        else
                cli_error("unknown command '%s'; '%s help' lists them", name, cli_name());
        return EXIT_USAGE;
}

static int version(const struct program *program, int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {"version", NULL};
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc > 1) {
                cli_error("version takes no arguments");
                return EXIT_USAGE;
        }
        printf("%s %s\n", program->name, SONDE_VERSION);
        return 0;
}

static int run(const struct program *program, int argc, char **argv);

/* help COMMAND is COMMAND --help. */
static int help(const struct program *program, int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {
                "help [COMMAND]",
                "Lists the commands, or tells what one of them does and which options it has.\n"};
        char *of_one[] = {NULL, (char[]){"--help"}, NULL};
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc == 1)
                return list(stdout, program, 0);
        if (argc > 2) {
                cli_error("help takes one command; see '%s help help'", cli_name());
                return EXIT_USAGE;
        }
        of_one[0] = argv[1];
        return run(program, 2, of_one);
}

static int run(const struct program *program, int argc, char **argv)
{
        if (streq(argv[0], "help"))
                return help(program, argc, argv);
        if (streq(argv[0], "version"))
                return version(program, argc, argv);
        if (streq(argv[0], "__complete"))
                return cli_complete(program, argc - 1, argv + 1);
        for (const struct command *c = program->commands; c->name; c++)
                if (streq(argv[0], c->name))
                        return c->run(argc, argv);
        return unknown(program, argv[0]);
}

int cli_main(const struct program *program, int argc, char **argv)
{
        if (argc < 2)
                return list(stderr, program, EXIT_USAGE);
        if (streq(argv[1], "--help") || streq(argv[1], "-h"))
                return list(stdout, program, 0);
        if (streq(argv[1], "--version"))
                argv[1] += strlen("--");
        return run(program, argc - 1, argv + 1);
}
