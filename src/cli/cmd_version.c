#include "cli/cli.h"

int cmd_version(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {"sonde version", NULL};
        int code;

        code = options_parse(options, &usage, &argc, argv);
        if (code >= 0)
                return code;
        printf("sonde %s\n", SONDE_VERSION);
        return 0;
}
