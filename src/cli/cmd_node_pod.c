#include "cli/cli.h"

#include "local/node.h"

/* Started by the node for every pod, not by people: not in the list of commands' help. */
int cmd_node_pod(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {
                "node-pod DIR", "Supervises one pod of the embedded engine; DIR is its directory. The "
                                "node starts it.\n"};
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc != 2) {
                cli_error("node-pod needs the directory of one pod; see '%s help node-pod'", cli_name());
                return EXIT_USAGE;
        }
        return node_pod_main(argv[1]);
}
