#include "cli/cli.h"

void cli_error(const char *fmt, ...)
{
        va_list ap;

        fputs("sonde: ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
}

static int help(FILE *to, const char *program, const struct command *commands, size_t n, int status)
{
        fprintf(to,
                "Usage: %s COMMAND [OPTION]...\n\n"
                "Profiles workloads on Kubernetes and says, while it happens, how far it is.\n\nCommands:\n",
                program);
        for (size_t i = 0; i < n; i++)
                fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].summary);
        fprintf(to, "\n'%s COMMAND --help' tells more about one.\n", program);
        return status;
}

int cli_main(const char *program, const struct command *commands, size_t n, int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : NULL;

        if (!name)
                return help(stderr, program, commands, n, EXIT_USAGE);
        if (streq(name, "help") || streq(name, "--help") || streq(name, "-h"))
                return help(stdout, program, commands, n, 0);
        if (streq(name, "--version"))
                name = "version";
        for (size_t i = 0; i < n; i++)
                if (streq(name, commands[i].name))
                        return commands[i].run(argc - 1, argv + 1);
        cli_error("unknown command '%s'; '%s help' lists them", name, program);
        return EXIT_USAGE;
}
