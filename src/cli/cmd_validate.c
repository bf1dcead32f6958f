#include "cli/cli.h"

#include "cli/resources.h"

int cmd_validate(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {
                "validate FILE...",
                "Reads YAML or JSON resources ('-': standard input) as kubectl would and reports "
                "what is wrong\n"
                "with file, line and column. Nothing is sent anywhere. Exit status 1 if anything is "
                "wrong.\n",
        };
        _cleanup_(resources_done) struct resources r = RESOURCES_INIT;
        int code;

        code = options_parse(options, &usage, &argc, argv);
        if (code >= 0)
                return code;
        if (argc < 2) {
                cli_error("validate needs at least one file; see '%s help validate'", cli_name());
                return EXIT_USAGE;
        }
        for (int i = 1; i < argc; i++)
                resources_read(&r, argv[i]);
        printf("%zu resource%s in %zu file%s, %zu problem%s\n", r.list.n, r.list.n == 1 ? "" : "s", r.files,
               r.files == 1 ? "" : "s", r.wrong, r.wrong == 1 ? "" : "s");
        return r.wrong ? 1 : 0;
}
