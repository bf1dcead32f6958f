/*
 * sonde-pod relay: copies what a run reports into its ConfigMaps.
 */
#include "cli/cli.h"

int cmd_relay(int argc, char **argv)
{
        cli_error("relay is not there yet");
        return 1;
}
