#include "tools/tool.h"

#include <unistd.h>

int tool_init(struct tool *t, const struct option_def *options, int argc, char **argv)
{
        static const struct usage usage = {"[OPTION]...", NULL};
        struct kube_config_sources sources = {0};
        enum log_level level = LOG_LEVEL_WARN;
        enum log_format format = LOG_FORMAT_LOGFMT;
        struct err err = ERR_INIT;
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        if (argc > 1) {
                cli_error("takes no arguments, but there is '%s'; see --help", argv[1]);
                return EXIT_USAGE;
        }
        if (t->log_level && !log_level_parse(str_of(t->log_level), &level)) {
                cli_error("--log-level: '%s' is not error, warn, info or debug", t->log_level);
                return EXIT_USAGE;
        }
        if (t->log_format && !log_format_parse(str_of(t->log_format), &format)) {
                cli_error("--log-format: '%s' is not logfmt or json", t->log_format);
                return EXIT_USAGE;
        }
        t->clock = (struct clock)CLOCK_REAL;
        log_init(&t->log, STDERR_FILENO, level, format, &t->clock);
        sources.kubeconfig = t->kubeconfig;
        kube_config_from_env(&sources);
        if (kube_config_load(&sources, &t->config, &err) < 0) {
                cli_error("%s", err.text);
                return 1;
        }
        return -1;
}

void tool_done(struct tool *t)
{
        kube_config_done(&t->config);
}
