/*
 * example-operator - the example controller as a program.
 */
#include "tools/example/example.h"
#include "tools/operator_tool.h"

int main(int argc, char **argv)
{
        static struct operator_tool tool = OPERATOR_TOOL_INIT("example");
        static bool samples;
        static const struct option_def options[] = {
                OPERATOR_TOOL_OPTIONS(&tool),
                {"samples", 0, NULL, "requests are Samples, not ConfigMaps", OPT_FLAG, &samples},
                {0},
        };
        int code = tool_init(&tool.tool, options, argc, argv);

        if (code >= 0)
                return code;
        code = operator_tool_run(&tool, samples ? &EXAMPLE_SAMPLES : &EXAMPLE_CONFIGMAPS);
        tool_done(&tool.tool);
        return code;
}
