#include "cli/results.h"

static const struct usage usage = {
        "compare KIND/NAME[#ALGORITHM][@SIZE]... [OPTION]...",
        "Lays finished runs side by side, the first as what the others are set against. Of algorithms every\n"
        "single run that was kept is used: medians with their intervals, the ratio with its interval, p, "
        "effect\n"
        "and a verdict, as a comparison concludes them. Other kinds are compared by their figures, without a "
        "test.\n\n"
        "Runs that were made by themselves were not interleaved: what differed beside the programs (the "
        "hour, the\n"
        "machine, its neighbours) is in the difference, too. What is known to differ is told.\n\n"
        "  ap/quick-sort            a profiling, at its input size\n"
        "  ap/quick-sort@25000      at another of its sizes\n"
        "  ac/sorting#merge_sort    an algorithm of a comparison\n\n"
        "Examples:\n"
        "  sonde compare ap/before ap/after\n"
        "  sonde compare ac/monday#merge_sort ac/friday#merge_sort -o md\n"
        "  sonde compare dgdr/llama-a dgdr/llama-b\n",
};

enum { TEXT_MAX = 64 << 20 };

struct compare {
        struct people p;
        const char *to;
};

/* One of the arguments: which run, and which part of it. Below 0: it was said, and the exit status is in *CODE. */
static int read_side(struct compare *c, char *command, const char *argument, struct versus_side *ret,
                     struct people_name *name, int *code)
{
        struct err err = ERR_INIT;
        const char *text;
        char *words[2];

        *code = EXIT_USAGE;
        if (versus_parse(&c->p.arena, argument, &text, &ret->algorithm, &ret->size, &err) < 0) {
                cli_error("%s", err.text);
                return -1;
        }
        words[0] = command;
        words[1] = arena_strdup(&c->p.arena, text);
        return people_read_name(2, words, name);
}

static int fetch_side(struct compare *c, const struct people_name *name, struct versus_side *side)
{
        struct people_run run;

        if (people_find(&c->p, people_cluster(&c->p), name, &run) < 0)
                return -1;
        if (!summary_over(&run.summary)) {
                cli_error("%s has not ended; '%s wait %s' waits for it", run.label, cli_name(), run.label);
                return -1;
        }
        if (results_fetch(&c->p, &run, &side->docs) < 0)
                return -1;
        side->name = run.label;
        if (side->algorithm)
                side->name = arena_join(&c->p.arena, side->name, "#", side->algorithm);
        if (side->size)
                side->name = arena_printf(&c->p.arena, "%s@%lld", side->name, (long long)side->size);
        return 0;
}

static int write_out(struct compare *c, const struct json *result)
{
        const struct run_docs docs = {.result = result};
        _cleanup_(report_done) struct report report = {0};
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        if (streq(c->p.output, "json")) { /* as the API has it */
                json_write(result, JSON_PRETTY, &out);
                buf_addc(&out, '\n');
                return results_write_text(&out, c->to);
        }
        report_make(&docs, &REPORT_VERSUS, false, &c->p.arena, &report);
        return results_write(&c->p, &report, c->to);
}

static bool is_twice(const struct versus_side *sides, size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < i; k++)
                        if (streq(sides[i].name, sides[k].name)) {
                                cli_error("%s is named twice", sides[i].name);
                                return true;
                        }
        return false;
}

static int run(struct compare *c, int argc, char **argv)
{
        struct versus_side sides[VERSUS_MAX] = {0};
        struct people_name names[VERSUS_MAX];
        struct err err = ERR_INIT;
        const struct json *result;
        size_t n = (size_t)argc - 1;
        int code;

        for (size_t i = 0; i < n; i++)
                if (read_side(c, argv[0], argv[i + 1], &sides[i], &names[i], &code) < 0)
                        return code;
        if (people_open(&c->p, PEOPLE_ONE) < 0)
                return 1;
        for (size_t i = 0; i < n; i++)
                if (fetch_side(c, &names[i], &sides[i]) < 0)
                        return 1;
        if (is_twice(sides, n))
                return EXIT_USAGE;
        result = versus(&c->p.arena, sides, n, &err);
        if (!result) {
                cli_error("%s", err.text);
                return EXIT_USAGE;
        }
        return write_out(c, result);
}

int cmd_compare(int argc, char **argv)
{
        static const char *const formats[] = {"table", "json", "csv", "md", "html", NULL};
        struct compare c = {.p = PEOPLE_INIT};
        const struct option_def options[] = {
                PEOPLE_OUTPUT_OPTION(&c.p, "table (default), json, csv, md or html"),
                {"to", 0, "FILE", "write it there instead of to standard output", OPT_STR, &c.to},
                PEOPLE_CLUSTER_OPTIONS(&c.p),
                {0},
        };
        int code;

        c.p.output = "table";
        code = options_parse(options, &usage, &argc, argv);
        if (code < 0 && !people_check_output(c.p.output, formats))
                code = EXIT_USAGE;
        if (code < 0 && (argc - 1 < VERSUS_MIN || argc - 1 > VERSUS_MAX)) {
                cli_error("%s takes %d to %d runs; see '%s help %s'", argv[0], VERSUS_MIN, VERSUS_MAX,
                          cli_name(), argv[0]);
                code = EXIT_USAGE;
        }
        if (code < 0)
                code = run(&c, argc, argv);
        people_done(&c.p);
        return code;
}
