#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"

enum { TABLE_MAX = 64 << 10 };

static void offer(const char *typed, const char *word, const char *meaning)
{
        if (str_has_prefix(str_of(word), str_of(typed)))
                printf("%s\t%s\n", word, meaning ? meaning : "");
}

static int offer_commands(const struct program *program, const char *typed)
{
        for (const struct command *c = program->commands; c->name; c++)
                if (c->summary)
                        offer(typed, c->name, c->summary);
        offer(typed, "help", "show the help of a command");
        offer(typed, "version", "print the version");
        return 0;
}

/* ---- the options of a command, as it says itself */

/* What the command prints of them: its table is its own, and it is asked as anybody would. */
static int ask_command(const struct command *c, struct buf *ret)
{
        char *argv[] = {(char *)c->name, (char[]){OPTIONS_LIST}, NULL};
        _cleanup_(fd_close) int memory = memfd_create("options", MFD_CLOEXEC), out = dup(STDOUT_FILENO);
        int r = -1;

        if (memory < 0 || out < 0 || fflush(stdout) != 0 || dup2(memory, STDOUT_FILENO) < 0)
                return -1;
        if (c->run(2, argv) == 0 && fflush(stdout) == 0 && lseek(memory, 0, SEEK_SET) == 0)
                r = fd_read_all(memory, "options", ret, NULL);
        dup2(out, STDOUT_FILENO);
        return r;
}

struct row {
        struct str name, short_name, arg, help;
};

static bool next_row(struct str *table, struct row *ret)
{
        struct str line;

        if (!table->n)
                return false;
        line = str_split(table, '\n');
        ret->name = str_split(&line, '\t');
        ret->short_name = str_split(&line, '\t');
        ret->arg = str_split(&line, '\t');
        ret->help = line;
        return ret->name.n > 0;
}

static bool takes_value(const struct row *row)
{
        return !str_eq(row->arg, STR("-"));
}

/* The words of "table (default), wide, json or name": an option that takes one of some says which in its help. */
static void offer_words(const char *typed, struct str help)
{
        while (help.n) {
                char word[32];
                size_t n = 0;

                while (n < help.n && (help.p[n] == '-' || (help.p[n] >= 'a' && help.p[n] <= 'z')))
                        n++;
                snprintf(word, sizeof(word), "%.*s", (int)n, help.p);
                if (n && n < sizeof(word) && !streq(word, "or") && !streq(word, "default"))
                        offer(typed, word, NULL);
                help = str_n(help.p + MAX(n, (size_t)1), help.n - MAX(n, (size_t)1));
        }
}

/* What the option before the cursor takes; false: it takes nothing. */
static bool offer_value(struct str table, const char *before, const char *typed)
{
        struct row row;

        while (next_row(&table, &row)) {
                if (!str_eq(row.name, str_of(before)) && !str_eq(row.short_name, str_of(before)))
                        continue;
                if (str_eq(row.arg, STR("FORMAT")))
                        offer_words(typed, row.help);
                else if (str_eq(row.arg, STR("FILE")) || str_eq(row.arg, STR("DIR")))
                        puts(":files");
                return takes_value(&row);
        }
        return false;
}

static void offer_options(struct str table, const char *typed)
{
        struct row row;

        while (next_row(&table, &row))
                if (str_has_prefix(row.name, str_of(typed)))
                        printf("%.*s\t%.*s\n", STR_ARG(row.name), STR_ARG(row.help));
}

/* ---- all */

static bool mentions(struct str synopsis, const char *word)
{
        size_t n = strlen(word);

        for (size_t i = 0; i + n <= synopsis.n; i++)
                if (str_eq(str_n(synopsis.p + i, n), str_of(word)))
                        return true;
        return false;
}

static int offer_of(const struct program *program, const struct command *c, int argc, char **argv)
{
        _cleanup_(buf_done) struct buf table = BUF_INIT(TABLE_MAX);
        const char *typed = argv[argc - 1];
        struct str rows, synopsis;

        if (ask_command(c, &table) < 0)
                return 1;
        rows = buf_str(&table);
        synopsis = str_split(&rows, '\n');
        if (argc > 2 && argv[argc - 2][0] == '-' && offer_value(rows, argv[argc - 2], typed))
                return 0;
        if (typed[0] == '-')
                offer_options(rows, typed);
        else if (mentions(synopsis, "KIND/NAME") && program->list_names)
                program->list_names(argc - 1, argv);
        else if (mentions(synopsis, "FILE"))
                puts(":files");
        else if (mentions(synopsis, "|")) /* one of some words */
                offer_words(typed, str_n(synopsis.p + strlen(c->name), synopsis.n - strlen(c->name)));
        return 0;
}

int cli_complete(const struct program *program, int argc, char **argv)
{
        if (argc <= 1)
                return offer_commands(program, argc ? argv[0] : "");
        if (streq(argv[0], "help"))
                return argc == 2 ? offer_commands(program, argv[1]) : 0;
        for (const struct command *c = program->commands; c->name; c++)
                if (c->summary && streq(c->name, argv[0]))
                        return offer_of(program, c, argc, argv);
        return 0;
}
