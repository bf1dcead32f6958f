/*
 * sonde-pod - what runs inside other people's pods: the same sources, linked statically, so that it starts in an empty
 * image and can be staged into any other.
 */
#include "cli/cli.h"

static const struct command commands[] = {
        {"relay", "copy what a run reports into its ConfigMaps", cmd_relay},
        {"report", "write the status file, from a script", cmd_report},
        {"run", "run a workload and record how it ended", cmd_run},
        {"stage", "prepare a pod for a run", cmd_stage},
        {0},
};

int main(int argc, char **argv)
{
        static const struct program pod = {"sonde-pod", "Runs inside the pods that Sonde profiles.",
                                           commands};

        return cli_main(&pod, argc, argv);
}
