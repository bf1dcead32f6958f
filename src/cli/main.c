#include "cli/cli.h"
#include "cli/people.h"

static const struct command commands[] = {
        {"up", "start the embedded engine: Kubernetes and our operator on this machine", cmd_up},
        {"operator", "carry out requests in a cluster", cmd_operator},
        {"get", "list runs of all kinds: where each is, how far, how much longer", cmd_get},
        {"describe", "tell the whole story of a run", cmd_describe},
        {"explain", "say why a run waits, does not move or has failed, and what to do", cmd_explain},
        {"wait", "wait for the end of runs; the exit status is their outcome", cmd_wait},
        {"watch", "show runs while they go on: phases, bars, when they will end", cmd_watch},
        {"results", "print what came out of a run, in five formats", cmd_results},
        {"compare", "lay finished runs side by side: ratios, intervals, verdicts", cmd_compare},
        {"logs", "print what a run has written", cmd_logs},
        {"cancel", "end runs for good", cmd_cancel},
        {"suspend", "stop runs and keep what was measured", cmd_suspend},
        {"resume", "let suspended runs go on", cmd_resume},
        {"rerun", "make the same request once more", cmd_rerun},
        {"history", "list finished runs and what they measured", cmd_history},
        {"manifests", "print what a cluster needs: kinds, operator, roles", cmd_manifests},
        {"apply", "check resource files, then create or change what they say", cmd_apply},
        {"validate", "check resource files before anything is created", cmd_validate},
        {"completion", "print what a shell needs to complete commands, options and names", cmd_completion},
        {"load", "measure an inference server under load", cmd_load},
        {"ncu", "say what bounds a CUDA program, by Nsight Compute", cmd_ncu},
        {"probe", "measure commands, side by side", cmd_probe},
        {"sim", "serve as a simulated inference engine, or tell what it must measure", cmd_sim},
        {"sla", "find the mapping of a model that meets its latency targets", cmd_sla},
        {"component", "a step of a Kubeflow pipeline: make a request, wait, hand on results", cmd_component},
        {"node-pod", NULL, cmd_node_pod},
        {0},
};

int main(int argc, char **argv)
{
        static const struct program sonde = {
                "sonde", "Profiles workloads on Kubernetes and says, while it happens, how far it is.",
                commands, people_list_names};

        return cli_main(&sonde, argc, argv);
}
