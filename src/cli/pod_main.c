/*
 * sonde-pod - what runs inside other people's pods: the same sources, linked statically, so that it starts in an empty
 * image and can be staged into any other.
 */
#include "cli/cli.h"

static const struct command commands[] = {
        {"version", "print the version", cmd_version},
};

int main(int argc, char **argv)
{
        return cli_main("sonde-pod", commands, ARRAY_LEN(commands), argc, argv);
}
