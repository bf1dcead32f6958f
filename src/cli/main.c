#include "cli/cli.h"

static const struct command commands[] = {
        {"validate", "check resource files before anything is created", cmd_validate},
        {0},
};

int main(int argc, char **argv)
{
        static const struct program sonde = {
                "sonde", "Profiles workloads on Kubernetes and says, while it happens, how far it is.",
                commands};

        return cli_main(&sonde, argc, argv);
}
