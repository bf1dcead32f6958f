/*
 * sonde-pod report: writes the status file, from a script.
 */
#include "cli/cli.h"

int cmd_report(int argc, char **argv)
{
        cli_error("report is not there yet");
        return 1;
}
