#include "cli/options.h"

#include "cli/cli.h"

enum { GO_ON = -1 };

static void print_help(const struct option_def *table, const struct usage *usage)
{
        printf("Usage: %s %s\n", cli_name(), usage->synopsis);
        if (usage->text)
                printf("\n%s", usage->text);
        printf("\nOptions:\n");
        for (const struct option_def *o = table; o->name; o++) {
                char left[64];

                snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->short_name ? '-' : ' ',
                         o->short_name ? o->short_name : ' ', o->short_name ? ", " : "  ", o->name,
                         o->arg ? " " : "", o->arg ? o->arg : "");
                printf("  %-34s %s\n", left, o->help);
        }
        printf("  %-34s %s\n", "-h, --help", "show this");
}

/* A line each, with tabs between: "--name", "-n" or "-", what its value is called or "-", what it does. */
static void print_list(const struct option_def *table, const struct usage *usage)
{
        printf("%s\n", usage->synopsis);
        for (const struct option_def *o = table; o->name; o++)
                printf("--%s\t%c%c\t%s\t%s\n", o->name, '-', o->short_name ? o->short_name : '-',
                       o->arg ? o->arg : "-", o->help);
        printf("--help\t-h\t-\tshow this\n");
}

static bool set_value(const struct option_def *o, const char *value)
{
        uint64_t u;

        switch (o->type) {
        case OPT_FLAG:
                *(bool *)o->target = true;
                return true;
        case OPT_STR:
                *(const char **)o->target = value;
                return true;
        case OPT_LIST:
        case OPT_GREEDY:
                *vec_push((struct option_list *)o->target) = value;
                return true;
        case OPT_UINT:
                if (!str_to_u64(str_of(value), &u) || u > UINT32_MAX) {
                        cli_error("--%s: '%s' is not a whole number from 0 to %u", o->name, value,
                                  UINT32_MAX);
                        return false;
                }
                *(unsigned *)o->target = (unsigned)u;
                return true;
        case OPT_DURATION:
                if (!str_to_duration(str_of(value), (usec_t *)o->target)) {
                        cli_error("--%s: '%s' is not a duration such as 250ms, 10s or 1h30m", o->name, value);
                        return false;
                }
                return true;
        }
        return false;
}

/* The option of ARG ("--name", "--name=value", "-nvalue"); VALUE is what was attached, or NULL. */
static const struct option_def *find(const struct option_def *table, const char *arg, const char **value)
{
        struct str rest = str_of(arg + 2), name = str_split(&rest, '=');

        *value = NULL;
        for (const struct option_def *o = table; o->name; o++) {
                if (arg[1] == '-' && str_eq(name, str_of(o->name))) {
                        *value = rest.p;
                        return o;
                }
                if (arg[1] != '-' && o->short_name == arg[1]) {
                        *value = arg[2] ? arg + 2 : NULL;
                        return o;
                }
        }
        return NULL;
}

static bool is_word(const char *arg)
{
        return arg[0] != '-' || !arg[1];
}

/* All words from I on that belong to the list of O; I is left at the last of them. */
static void take_words(const struct option_def *table, const struct option_def *o, char **argv, int argc,
                       int *i)
{
        const char *value;
        bool all = false;

        for (; *i + 1 < argc; ++*i) {
                const char *next = argv[*i + 1];

                if (!all && streq(next, "--")) {
                        all = true;
                        continue;
                }
                if (!all && !is_word(next) && find(table, next, &value))
                        return;
                *vec_push((struct option_list *)o->target) = next;
        }
}

static int parse_one(const struct option_def *table, const struct usage *usage, char **argv, int argc, int *i)
{
        const char *value;
        const struct option_def *o = find(table, argv[*i], &value);

        if (!o) {
                cli_error("unknown option %s; see --help", argv[*i]);
                return EXIT_USAGE;
        }
        if (o->type == OPT_FLAG && value) {
                cli_error("--%s takes no value", o->name);
                return EXIT_USAGE;
        }
        if (o->type == OPT_GREEDY && !value) {
                take_words(table, o, argv, argc, i);
                return GO_ON;
        }
        if (o->type != OPT_FLAG && !value) {
                if (*i + 1 >= argc) {
                        cli_error("--%s needs a value: --%s %s", o->name, o->name, o->arg);
                        return EXIT_USAGE;
                }
                value = argv[++*i];
        }
        return set_value(o, value) ? GO_ON : EXIT_USAGE;
}

int options_parse(const struct option_def *table, const struct usage *usage, int *argc, char **argv)
{
        bool only_arguments = false;
        int n = 1;

        if (*argc == 2 && streq(argv[1], OPTIONS_LIST)) {
                print_list(table, usage);
                return 0;
        }

        for (int i = 1; i < *argc; i++) {
                int r;

                if (only_arguments || is_word(argv[i])) {
                        argv[n++] = argv[i];
                } else if (streq(argv[i], "--")) {
                        only_arguments = true;
                } else if (streq(argv[i], "--help") || streq(argv[i], "-h")) {
                        print_help(table, usage);
                        return 0;
                } else {
                        r = parse_one(table, usage, argv, *argc, &i);
                        if (r != GO_ON)
                                return r;
                }
        }
        *argc = n;
        return GO_ON;
}

int options_parse_only(const struct option_def *table, const struct usage *usage, int argc, char **argv)
{
        int r = options_parse(table, usage, &argc, argv);

        if (r != GO_ON || argc == 1)
                return r;
        cli_error("%s takes no arguments, and '%s' is one; see '%s help %s'", argv[0], argv[1], cli_name(),
                  argv[0]);
        return EXIT_USAGE;
}
