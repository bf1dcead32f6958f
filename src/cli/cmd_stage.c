/*
 * sonde-pod stage: prepares a pod for a run.
 */
#include "cli/cli.h"

int cmd_stage(int argc, char **argv)
{
        cli_error("stage is not there yet");
        return 1;
}
