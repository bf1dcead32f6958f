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

/* The columns that a list may have, in their order, and which of them it has. */
enum column {
        CLUSTER,
        NAMESPACE,
        KIND,
        NAME,
        PHASE,
        STEP,
        PERCENT,
        ETA,
        AGE,
        ATTEMPT,
        STARTED,
        ENDED,
        REASON,
        COLUMNS,
};

static const struct table_column titles[COLUMNS] = {
        [CLUSTER] = {"CLUSTER"}, [NAMESPACE] = {"NAMESPACE"},
        [KIND] = {"KIND"},       [NAME] = {"NAME"},
        [PHASE] = {"PHASE"},     [STEP] = {"STEP", .right = true},
        [PERCENT] = {"%", true}, [ETA] = {"ETA"},
        [AGE] = {"AGE", true},   [ATTEMPT] = {"ATTEMPT", true},
        [STARTED] = {"STARTED"}, [ENDED] = {"ENDED"},
        [REASON] = {"REASON"},
};

static const char *moment(struct get *g, usec_t when)
{
        return when ? show_clock(&g->p.arena, g->p.now, when) : "-";
}

static const char *cell(struct get *g, const struct people_run *run, enum column column)
{
        struct arena *a = &g->p.arena;
        const struct summary *s = &run->summary;

        switch (column) {
        case CLUSTER:
                return run->cluster->name;
        case NAMESPACE:
                return s->ns;
        case KIND:
                return run->kind->label;
        case NAME:
                return s->name;
        case PHASE:
                return s->deleting ? "Deleting" : s->phase;
        case STEP:
                return people_step(a, s);
        case PERCENT:
                return people_percent(a, s);
        case ETA:
                return people_eta(&g->p, s);
        case AGE:
                return s->created ? show_age(a, usec_sub(g->p.now, s->created)) : "-";
        case ATTEMPT:
                return s->attempt ? arena_printf(a, "%llu", (unsigned long long)s->attempt) : "-";
        case STARTED:
                return moment(g, s->started);
        case ENDED:
                return moment(g, s->ended);
        default:
                return people_reason(a, s);
        }
}

static void print_table(struct get *g)
{
        bool wide = streq(g->p.output, "wide");
        const bool shown[COLUMNS] = {
                [CLUSTER] = g->p.clusters.n > 1,
                [NAMESPACE] = g->p.all_namespaces,
                [KIND] = true,
                [NAME] = true,
                [PHASE] = true,
                [STEP] = true,
                [PERCENT] = true,
                [ETA] = true,
                [AGE] = true,
                [ATTEMPT] = wide,
                [STARTED] = wide,
                [ENDED] = wide,
                [REASON] = true,
        };
        struct table_column columns[COLUMNS];
        _cleanup_(table_done) struct table t;
        struct screen screen = screen_of(stdout);
        size_t n = 0;

        for (size_t j = 0; j < COLUMNS; j++)
                if (shown[j])
                        columns[n++] = titles[j];
        table_init(&t, &g->p.arena, columns, n);
        for (size_t i = 0; i < g->runs.n; i++)
                for (size_t j = 0; j < COLUMNS; j++)
                        if (shown[j])
                                table_add(&t, j == PHASE ? people_tone(&g->runs.v[i].summary) : TONE_PLAIN,
                                          cell(g, &g->runs.v[i], (enum column)j));
        table_print(&t, &screen, !wide);
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
