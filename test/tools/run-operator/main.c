/*
 * run-operator - the controller of TestRuns as a program.
 */
#include "kinds/testrun.h"
#include "tools/operator_tool.h"

int main(int argc, char **argv)
{
        static struct operator_tool tool = OPERATOR_TOOL_INIT("run-operator");
        static struct testrun_settings settings = {.pod_image = "sonde-pod"};
        static const struct option_def options[] = {
                OPERATOR_TOOL_OPTIONS(&tool),
                {"pod-image", 0, "IMAGE", "the image that holds /sonde-pod", OPT_STR, &settings.pod_image},
                {0},
        };
        const struct controller controller = testrun_controller(&settings);
        int code = tool_init(&tool.tool, options, argc, argv);

        if (code >= 0)
                return code;
        code = operator_tool_run(&tool, &controller);
        tool_done(&tool.tool);
        return code;
}
