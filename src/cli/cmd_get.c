#include "cli/people.h"

static const struct usage usage = {
        "get [KIND | KIND/NAME | NAME]... [OPTION]...",
        "Lists runs of all kinds in one table: where each is, how far, how much longer, and why it waits or "
        "has\n"
        "failed. With names, those alone.\n\n"
        "Examples:\n"
        "  sonde get\n"
        "  sonde get dgdr -A\n"
        "  sonde get ac/sorts ap/matmul -o yaml\n"
        "  sonde get -l team=search --context prod,staging\n",
};

struct get {
        struct people p;
        struct people_names names;
        struct people_runs runs;
};

/* ---- a table */

static void print_table(struct get *g)
{
        struct screen screen = screen_of(stdout);

        people_places(&g->p, g->runs.v, g->runs.n);
        people_table(&g->p, &g->runs, streq(g->p.output, "wide"), &screen);
}

/* ---- the objects themselves */

/* What a person asked for by name alone comes without a list around it, as from kubectl. */
static struct json *whole(struct get *g)
{
        struct arena *a = &g->p.arena;
        struct json *items = json_array(a);

        for (size_t i = 0; i < g->runs.n; i++) {
                json_remove(json_at(g->runs.v[i].object, "metadata"), "managedFields");
                json_append(items, json_copy(a, g->runs.v[i].object));
        }
        if (g->names.n == 1 && g->names.v[0].name && g->runs.n == 1)
                return json_first(items);
        return json_build(a, "{'apiVersion': 'v1', 'kind': 'List', 'items': %p, 'metadata': {}}",
                          (void *)items);
}

static void print_objects(struct get *g)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);

        if (streq(g->p.output, "yaml")) {
                yaml_write(whole(g), &out);
        } else {
                json_write(whole(g), JSON_PRETTY, &out);
                buf_addc(&out, '\n');
        }
        fwrite(out.p, 1, out.n, stdout);
}

static void print_names(struct get *g)
{
        for (size_t i = 0; i < g->runs.n; i++)
                printf("%s\n", g->runs.v[i].label);
}

/* ---- all */

static void say_none(struct get *g)
{
        const struct people_cluster *c = people_cluster(&g->p);
        const char *kind = g->names.n == 1 && g->names.v[0].kind ? g->names.v[0].kind->label : "";

        if (c->ns)
                cli_error("there are no%s%s runs in namespace %s; '%s get -A' looks in all", *kind ? " " : "",
                          kind, c->ns, cli_name());
        else
                cli_error("there are no%s%s runs yet", *kind ? " " : "", kind);
}

static int run(struct get *g)
{
        int code = 0;

        for (size_t i = 0; i < g->p.clusters.n; i++)
                if (people_list(&g->p, g->p.clusters.v[i], &g->names, &g->runs) < 0)
                        code = 1;
        if (streq(g->p.output, "json") || streq(g->p.output, "yaml")) {
                if (g->runs.n || !code)
                        print_objects(g);
        } else if (streq(g->p.output, "name")) {
                print_names(g);
        } else if (g->runs.n) {
                print_table(g);
        } else if (!code) {
                say_none(g);
        }
        return people_finish(code);
}

int cmd_get(int argc, char **argv)
{
        static const char *const formats[] = {"table", "wide", "json", "yaml", "name", NULL};
        struct get g = {.p = PEOPLE_INIT};
        const struct option_def options[] = {
                PEOPLE_SELECT_OPTIONS(&g.p),
                PEOPLE_OUTPUT_OPTION(&g.p, "table (default), wide, json, yaml or name"),
                PEOPLE_CLUSTERS_OPTIONS(&g.p),
                {0},
        };
        int code;

        g.p.output = "table";
        code = options_parse(options, &usage, &argc, argv);
        if (code < 0 &&
            (!people_check_output(g.p.output, formats) || people_read_names(argc, argv, false, &g.names) < 0))
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&g.p, PEOPLE_SEVERAL) < 0 ? 1 : run(&g);
        vec_done(&g.names);
        vec_done(&g.runs);
        people_done(&g.p);
        return code;
}
