/*
 * sonde-pod run: runs a workload and records how it ended.
 */
#include "cli/cli.h"

int cmd_run(int argc, char **argv)
{
        cli_error("run is not there yet");
        return 1;
}
