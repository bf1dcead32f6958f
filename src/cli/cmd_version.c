#include "cli/cli.h"

int cmd_version(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {"sonde version", NULL};

        switch (options_parse(options, &usage, &argc, argv)) {
        case OPTIONS_HELP:
                return 0;
        case OPTIONS_WRONG:
                return EXIT_USAGE;
        case OPTIONS_OK:
                break;
        }
        printf("sonde %s\n", SONDE_VERSION);
        return 0;
}
