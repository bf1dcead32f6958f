#include "cli/cli.h"
#include "cli/crds.h"

static const struct usage usage = {
        "manifests",
        "Prints what a cluster needs before requests can be made: the CustomResourceDefinitions of all "
        "kinds.\n\n"
        "Example:\n"
        "  sonde manifests | kubectl apply -f -\n",
};

int cmd_manifests(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        int code = options_parse_only(options, &usage, argc, argv);

        if (code >= 0)
                return code;
        if (fputs(CRDS, stdout) < 0 || fflush(stdout) != 0) {
                cli_error("manifests: cannot write to standard output");
                return 1;
        }
        return 0;
}
