/*
 * sonde-pod - what runs inside other people's pods: the same sources, linked statically, so that it starts in an empty
 * image and can be staged into any other.
 */
#include "cli/cli.h"

static const struct command commands[] = {{0}};

int main(int argc, char **argv)
{
        static const struct program pod = {"sonde-pod", "Runs inside the pods that Sonde profiles.",
                                           commands};

        return cli_main(&pod, argc, argv);
}
