/*
 * run-operator - one kind's controller as a program: TestRuns by default, or what --kind says.
 */
#include "base/zone.h"
#include "kinds/algorithm/algorithm.h"
#include "kinds/cuda/cuda.h"
#include "kinds/dgdr/dgdr.h"
#include "kinds/testrun.h"
#include "tools/operator_tool.h"

int main(int argc, char **argv)
{
        static struct operator_tool tool = OPERATOR_TOOL_INIT("run-operator");
        static const char *pod_image = "sonde-pod", *kind = "testrun";
        static const struct option_def options[] = {
                OPERATOR_TOOL_OPTIONS(&tool),
                {"pod-image", 0, "IMAGE", "the image that holds /sonde-pod", OPT_STR, &pod_image},
                {"kind", 0, "KIND", "testrun (the default), dgdr, cuda, ap or ac", OPT_STR, &kind},
                {0},
        };
        struct testrun_settings testrun = {0};
        struct dgdr_settings dgdr = {0};
        struct cuda_settings cuda = {.runner_image = CUDA_RUNNER_DEFAULT};
        struct algorithm_settings algorithm = {.ml_image = ALGORITHM_ML_IMAGE_DEFAULT};
        struct controller controller;
        int code = tool_init(&tool.tool, options, argc, argv);

        if (code >= 0)
                return code;
        testrun.pod_image = dgdr.pod_image = cuda.pod_image = algorithm.pod_image = pod_image;
        algorithm.zones = zones_new(NULL);
        controller = streq(kind, "dgdr")   ? dgdr_controller(&dgdr)
                     : streq(kind, "cuda") ? cuda_controller(&cuda)
                     : streq(kind, "ap")   ? algorithm_profiling_controller(&algorithm)
                     : streq(kind, "ac")   ? algorithm_comparison_controller(&algorithm)
                                           : testrun_controller(&testrun);
        code = operator_tool_run(&tool, &controller);
        zones_free(algorithm.zones);
        tool_done(&tool.tool);
        return code;
}
