#include "cli/check.h"
#include "cli/cli.h"

static const char *s_of(size_t n)
{
        return n == 1 ? "" : "s";
}

int cmd_validate(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {
                "validate FILE...",
                "Reads YAML or JSON resources ('-': standard input) as kubectl would, checks those of our "
                "kinds "
                "against\n"
                "their definitions, and reports what is wrong with file, line and column. Nothing is sent "
                "anywhere. Exit\n"
                "status 1 if anything is wrong.\n\n"
                "Example:\n"
                "  sonde validate examples/dgdr.yaml\n",
        };
        _cleanup_(resources_done) struct resources r = RESOURCES_INIT;
        _cleanup_(check_free) struct check *check = NULL;
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
        check = check_new();
        check_all(check, &r);
        printf("%zu resource%s in %zu file%s, %zu problem%s\n", r.list.n, s_of(r.list.n), r.files,
               s_of(r.files), r.wrong, s_of(r.wrong));
        return r.wrong ? 1 : 0;
}
