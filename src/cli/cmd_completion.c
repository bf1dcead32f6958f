#include <errno.h>

#include "cli/cli.h"

static const struct usage usage = {
        "completion bash|zsh|fish",
        "Prints what bash, zsh or fish needs to complete commands, options and the names of runs. It asks "
        "the "
        "program\n"
        "itself, so it stays right when that changes.\n\n"
        "Examples:\n"
        "  source <(sonde completion bash)          # in ~/.bashrc\n"
        "  sonde completion zsh > ~/.zfunc/_sonde   # a folder of fpath\n"
        "  sonde completion fish > ~/.config/fish/completions/sonde.fish\n",
};

static const struct shell {
        const char *name, *script;
} shells[] = {
        {"bash",
         "_FUNCTION_complete() {\n"
         "        local line\n"
         "        COMPREPLY=()\n"
         "        while IFS= read -r line; do\n"
         "                if [[ $line == :files ]]; then\n"
         "                        compopt -o default\n"
         "                        return\n"
         "                fi\n"
         "                line=${line%%$'\\t'*}\n"
         "                [[ $line == \"${COMP_WORDS[COMP_CWORD]}\"* ]] && COMPREPLY+=(\"$line\")\n"
         "        done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
         "}\n"
         "complete -F _FUNCTION_complete PROGRAM\n"},
        {"zsh", "#compdef PROGRAM\n"
                "_FUNCTION() {\n"
                "        local line\n"
                "        local -a described\n"
                "        for line in \"${(@f)$(${words[1]} __complete \"${(@)words[2,CURRENT]}\" "
                "2>/dev/null)}\"; do\n"
                "                [[ -z $line ]] && continue\n"
                "                if [[ $line == :files ]]; then\n"
                "                        _files\n"
                "                        return\n"
                "                fi\n"
                "                described+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
                "        done\n"
                "        _describe PROGRAM described\n"
                "}\n"
                "if [[ ${funcstack[1]} == _FUNCTION ]]; then\n"
                "        _FUNCTION \"$@\"\n"
                "else\n"
                "        compdef _FUNCTION PROGRAM\n"
                "fi\n"},
        {"fish", "function __FUNCTION_complete\n"
                 "        set -l words (commandline -opc) (commandline -ct)\n"
                 "        set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)\n"
                 "        if test \"$lines\" = :files\n"
                 "                __fish_complete_path (commandline -ct)\n"
                 "        else if test (count $lines) -gt 0\n"
                 "                printf '%s\\n' $lines\n"
                 "        end\n"
                 "end\n"
                 "complete -c PROGRAM -f -a '(__FUNCTION_complete)'\n"},
};

/* The script with the program's name in it, in those of functions without what they cannot have. */
static void print_script(const char *script, const char *name)
{
        const struct str program = STR("PROGRAM"), function = STR("FUNCTION");

        while (*script) {
                struct str rest = str_of(script);

                if (str_has_prefix(rest, program)) {
                        fputs(name, stdout);
                        script += program.n;
                } else if (str_has_prefix(rest, function)) {
                        for (const char *n = name; *n; n++)
                                putchar(*n == '-' || *n == '.' ? '_' : *n);
                        script += function.n;
                } else {
                        putchar(*script++);
                }
        }
}

int cmd_completion(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        int code = options_parse(options, &usage, &argc, argv);

        if (code >= 0)
                return code;
        for (size_t i = 0; argc == 2 && i < ARRAY_LEN(shells); i++)
                if (streq(argv[1], shells[i].name)) {
                        print_script(shells[i].script, program_invocation_short_name);
                        return fflush(stdout) == 0 ? 0 : 1;
                }
        cli_error("completion needs the name of a shell: bash, zsh or fish");
        return EXIT_USAGE;
}
