#include "cli/cli.h"

static const struct command commands[] = {
        {"validate", "check resource files before anything is created", cmd_validate},
        {"version", "print the version", cmd_version},
};

int main(int argc, char **argv)
{
        return cli_main("sonde", commands, ARRAY_LEN(commands), argc, argv);
}
