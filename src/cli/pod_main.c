/*
 * sonde-pod - what runs inside other people's pods: the same sources, linked statically, so that it starts in an empty
 * image and can be staged into any other.
 */
#include "cli/cli.h"

static const struct command commands[] = {
        {"algorithm", "sort seeded numbers with a built-in algorithm", cmd_algorithm},
        {"load", "measure an inference server under load", cmd_load},
        {"ml", "run a machine-learning task with a framework of this image", cmd_ml},
        {"ncu", "say what bounds a CUDA program, by Nsight Compute", cmd_ncu},
        {"probe", "measure commands, side by side", cmd_probe},
        {"relay", "copy what a run reports into its ConfigMaps", cmd_relay},
        {"report", "write the status file, from a script", cmd_report},
        {"run", "run a workload and record how it ended", cmd_run},
        {"sim", "serve as a simulated inference engine, or tell what it must measure", cmd_sim},
        {"sla", "find the mapping of a model that meets its latency targets", cmd_sla},
        {"stage", "prepare a pod for a run", cmd_stage},
        {"stage-workload", "copy a program and its libraries out of its image", cmd_stage_workload},
        {0},
};

int main(int argc, char **argv)
{
        static const struct program pod = {"sonde-pod", "Runs inside the pods that Sonde profiles.",
                                           commands};

        return cli_main(&pod, argc, argv);
}
