#include "kinds/versus.h"

#include <math.h>

#include "kinds/kinds.h"
#include "kinds/summary.h"
#include "probe/session/session.h"

enum { NAMES_SHOWN = 8 };

static const double megabyte = 1e6;

/* What is known of one side. */
struct side {
        const struct versus_side *from;
        const char *algorithm; /* as the samples call it; NULL: there are none */
        int64_t size;
        struct stats_sample *time, *memory;
        size_t n, n_memory, invalid;
        struct stats_description accuracy;
        struct summary summary;
};

struct table {
        struct arena *a;
        struct side *sides;
        size_t n;
        bool interleaved;
        struct json *root, *notes;
};

static void note(struct table *t, const char *text)
{
        json_append(t->notes, json_string(t->a, text));
}

/* ---- names */

int versus_parse(struct arena *a, const char *text, const char **ret_run, const char **ret_algorithm,
                 int64_t *ret_size, struct err *err)
{
        struct str rest = str_of(text), run, size = STR_NULL;

        run = str_split(&rest, '#');
        if (rest.p) {
                struct str algorithm = str_split(&rest, '@');

                *ret_algorithm = arena_strndup(a, algorithm.p, algorithm.n);
                size = rest;
        } else {
                rest = run;
                run = str_split(&rest, '@');
                size = rest;
                *ret_algorithm = NULL;
        }
        *ret_run = arena_strndup(a, run.p, run.n);
        *ret_size = 0;
        if (size.p && (!str_to_i64(size, ret_size) || *ret_size < 1))
                return err_set(err, E_INVALID, "'%s': what follows @ is an input size, such as @100000",
                               text);
        return 0;
}

/* ---- samples */

struct columns {
        size_t algorithm, size, pod, iteration, failure, time, memory, accuracy;
};

static size_t column(const struct json *samples, const char *name)
{
        size_t i = 0;

        json_foreach (c, json_at(samples, "columns")) {
                if (streq(json_cstr(c), name))
                        return i;
                i++;
        }
        return SIZE_MAX;
}

static struct columns columns_of(const struct json *samples)
{
        return (struct columns){
                column(samples, "algorithm"), column(samples, "size"),     column(samples, "pod"),
                column(samples, "iteration"), column(samples, "failure"),  column(samples, "time"),
                column(samples, "memory"),    column(samples, "accuracy"),
        };
}

/* One row as an array of its cells; false: it is not as it is written. */
static bool cells_of(const struct json *row, const struct json **cells, size_t n)
{
        size_t i = 0;

        if (!json_is(row, JSON_ARRAY) || json_len(row) != n)
                return false;
        json_foreach (c, row)
                cells[i++] = c;
        return true;
}

static double number(const struct json **cells, size_t at)
{
        double value;

        return at != SIZE_MAX && json_is(cells[at], JSON_NUMBER) && json_to_double(cells[at], &value) &&
                               isfinite(value)
                       ? value
                       : NAN;
}

static bool is_of_side(const struct side *s, const struct columns *c, const struct json **cells)
{
        return streq(json_cstr(cells[c->algorithm]), s->algorithm) &&
               (s->size == 0 || number(cells, c->size) == (double)s->size);
}

/* What repeats is a run or, where there are several pods, a pod. N 0 in RET: there is nothing to describe. */
static void describe(struct arena *a, const struct stats_sample *samples, size_t n,
                     struct stats_description *ret)
{
        double *values = arena_new_array(a, double, n + 1);
        bool by_pod = false;

        for (size_t i = 1; i < n; i++)
                by_pod = by_pod || samples[i].pod != samples[0].pod;
        if (by_pod)
                samples = stats_pod_medians(a, samples, n, &n);
        for (size_t i = 0; i < n; i++)
                values[i] = samples[i].value;
        if (!stats_describe(values, n, ret))
                *ret = (struct stats_description){.median = NAN};
}

static void take_row(struct side *s, const struct columns *c, const struct json **cells,
                     struct stats_sample *accuracies, size_t *n_accuracies)
{
        double time = number(cells, c->time), memory = number(cells, c->memory);
        double accuracy = number(cells, c->accuracy), iteration = number(cells, c->iteration);
        uint32_t pod = (uint32_t)fmin(fmax(number(cells, c->pod), 0), 1e6), block;

        if (!(iteration >= 0)) /* warm-up */
                return;
        if (json_is(cells[c->failure], JSON_STRING) || isnan(time)) {
                s->invalid++;
                return;
        }
        block = (uint32_t)fmin(iteration, 1e6);
        s->time[s->n++] = (struct stats_sample){time, pod, block};
        if (!isnan(memory))
                s->memory[s->n_memory++] = (struct stats_sample){memory, pod, block};
        if (!isnan(accuracy))
                accuracies[(*n_accuracies)++] = (struct stats_sample){accuracy, pod, block};
}

static void take_samples(struct table *t, struct side *s)
{
        const struct json *samples = s->from->docs.samples, *rows = json_at(samples, "rows");
        struct columns c = columns_of(samples);
        size_t width = json_len(json_at(samples, "columns")), most = json_len(rows) + 1, n_accuracies = 0;
        const struct json **cells = arena_new_array(t->a, const struct json *, width + 1);
        struct stats_sample *accuracies = arena_new_array(t->a, struct stats_sample, most);

        s->time = arena_new_array(t->a, struct stats_sample, most);
        s->memory = arena_new_array(t->a, struct stats_sample, most);
        if (c.algorithm == SIZE_MAX || c.failure == SIZE_MAX || c.time == SIZE_MAX || c.iteration == SIZE_MAX)
                return;
        json_foreach (row, json_is(rows, JSON_ARRAY) ? rows : NULL)
                if (cells_of(row, cells, width) && is_of_side(s, &c, cells))
                        take_row(s, &c, cells, accuracies, &n_accuracies);
        describe(t->a, accuracies, n_accuracies, &s->accuracy);
        if (json_int(samples, "dropped", 0) > 0)
                note(t, arena_printf(t->a, "of %s %lld runs were too many to be kept and are left out",
                                     s->from->name, (long long)json_int(samples, "dropped", 0)));
}

/* ---- which algorithm, at which size */

/* The different names in the column of algorithms, at most MAX. */
static size_t names_of(const struct json *samples, const char **ret, size_t max)
{
        size_t at = column(samples, "algorithm"), n = 0;

        json_foreach (row, at == SIZE_MAX ? NULL : json_at(samples, "rows")) {
                const char *name = json_cstr(json_index(row, at));
                bool known = !name || n == max;

                for (size_t i = 0; i < n && !known; i++)
                        known = streq(ret[i], name);
                if (!known)
                        ret[n++] = name;
        }
        return n;
}

static const char *join(struct arena *a, const struct side *s, const char **names, size_t n)
{
        const char *text = "";

        for (size_t i = 0; i < n && i < NAMES_SHOWN; i++)
                text = arena_printf(a, "%s%s%s#%s", text, i ? ", " : "", s->from->name, names[i]);
        return n > NAMES_SHOWN ? arena_printf(a, "%s, …", text) : text;
}

static int choose(struct arena *a, struct side *s, struct err *err)
{
        const char *names[SESSION_ALGORITHMS_MAX], *said = s->from->algorithm;
        size_t n = names_of(s->from->docs.samples, names, ARRAY_LEN(names));

        s->size = s->from->size ? s->from->size
                                : json_int(json_at(s->from->docs.object, "spec"), "inputSize", 0);
        for (size_t i = 0; i < n; i++)
                if (said ? streq(names[i], said) : n == 1)
                        s->algorithm = names[i];
        if (s->algorithm || !s->from->docs.samples)
                return 0;
        if (said)
                return err_set(err, E_INVALID, "there is no algorithm '%s' in %s", said, s->from->name);
        if (n > 1)
                return err_set(err, E_INVALID, "%s has %zu algorithms; say which one: %s", s->from->name, n,
                               join(a, s, names, n));
        return 0;
}

/* ---- what is told of each */

static void set_time(struct arena *a, struct json *of, const char *key, usec_t when)
{
        char text[TIME_TEXT_MAX];

        if (when)
                json_set(a, of, key, json_string(a, time_format(when, text)));
}

static struct json *description(struct arena *a, const struct stats_sample *samples, size_t n, double unit)
{
        struct stats_description d;

        describe(a, samples, n, &d);
        return d.n ? session_description_json(a, &d, unit) : NULL;
}

static struct json *side_json(struct arena *a, const struct side *s)
{
        const struct summary *u = &s->summary;
        const struct json *statistics = json_path(s->from->docs.object, "status.statistics");
        struct json *j = json_build(a, "{'name': %s, 'kind': %s, 'namespace': %s, 'run': %s}", s->from->name,
                                    u->kind->type->kind, u->ns, u->name);

        if (s->algorithm) {
                json_set(a, j, "algorithm", json_string(a, s->algorithm));
                if (s->size > 0)
                        json_set(a, j, "size", json_i64(a, s->size));
                json_set(a, j, "n", json_u64(a, s->n));
                json_set(a, j, "invalid", json_u64(a, s->invalid));
                json_set(a, j, "time", description(a, s->time, s->n, 1));
                json_set(a, j, "memory", description(a, s->memory, s->n_memory, megabyte));
                json_set(a, j, "accuracy", json_double(a, s->accuracy.median));
        }
        json_set(a, j, "unit", json_string(a, json_str(statistics, "unit")));
        json_set(a, j, "machine", json_copy(a, json_at(statistics, "machine")));
        json_set(a, j, "origin", json_string(a, run_docs_origin(&s->from->docs)));
        set_time(a, j, "endedAt", u->ended);
        return j;
}

/* ---- the test */

static bool is_one_run(const struct table *t)
{
        for (size_t i = 1; i < t->n; i++)
                if (!*t->sides[0].summary.uid || !streq(t->sides[i].summary.uid, t->sides[0].summary.uid))
                        return false;
        return true;
}

static const char *why_unfit(struct table *t, const struct side *s)
{
        const struct side *first = &t->sides[0];

        if (json_bool(json_path(s->from->docs.object, "status.statistics"), "contended", false))
                return "it ran beside others";
        if (s->size != first->size)
                return arena_printf(t->a, "its input has a size of %lld, that of %s %lld", (long long)s->size,
                                    first->from->name, (long long)first->size);
        return NULL;
}

/* To stats 0 is "not said"; to a spec it is "all counts". */
static double share_of(const struct json *spec, const char *member)
{
        double share;

        return json_to_double(json_at(spec, member), &share) && share >= 0 && share < 1 ? MAX(share, 1e-9)
                                                                                        : 0;
}

static void compare(struct table *t, enum stats_measure measure, struct stats_comparison *ret)
{
        const struct json *spec = json_at(t->sides[0].from->docs.object, "spec");
        struct stats_side *sides = arena_new_array(t->a, struct stats_side, t->n);

        for (size_t i = 0; i < t->n; i++) {
                const struct side *s = &t->sides[i];

                sides[i] = (struct stats_side){
                        .name = s->from->name,
                        .samples = measure == STATS_TIME ? s->time : s->memory,
                        .n = measure == STATS_TIME ? s->n : s->n_memory,
                        .unfit = why_unfit(t, s),
                        .accuracy = s->accuracy.median,
                        .accuracy_ci = s->accuracy.median_ci,
                };
        }
        stats_compare(t->a,
                      &(struct stats_compare){
                              .measure = measure,
                              .sides = sides,
                              .n_sides = t->n,
                              .min_effect = share_of(spec, "minEffect"),
                              .accuracy_tolerance = share_of(spec, "accuracyTolerance"),
                              .separate = !t->interleaved,
                              .seed = t->sides[0].summary.uid,
                      },
                      ret);
}

static void add_pairs(struct table *t, const struct stats_comparison *c, enum stats_measure measure,
                      struct json *pairs)
{
        for (size_t i = 0; i < c->n; i++)
                json_append(pairs,
                            session_pair_json(t->a, &c->pairs[i], measure, t->sides[c->pairs[i].a].from->name,
                                              t->sides[c->pairs[i].b].from->name));
}

static void test(struct table *t)
{
        struct json *pairs = json_array(t->a);
        struct stats_comparison time, memory;

        compare(t, STATS_TIME, &time);
        compare(t, STATS_MEMORY, &memory);
        add_pairs(t, &time, STATS_TIME, pairs);
        add_pairs(t, &memory, STATS_MEMORY, pairs);
        json_set(t->a, t->root, "pairs", pairs);
        json_set(t->a, t->root, "noiseFloor", json_double(t->a, time.noise_floor));
        if (time.best != SIZE_MAX)
                json_set(t->a, t->root, "fastest",
                         json_build(t->a, "{'name': %s, 'clear': %p}", t->sides[time.best].from->name,
                                    (void *)json_truth(t->a, time.best_is_clear)));
        json_set(t->a, t->root, "summary", json_string(t->a, time.summary));
}

/* ---- figures */

static struct json *value_json(struct arena *a, const struct figure *f)
{
        struct json *j = json_object(a);

        if (!f)
                return json_null(a);
        json_set(a, j, "value", json_double(a, f->value));
        json_set(a, j, "low", json_double(a, f->low));
        json_set(a, j, "high", json_double(a, f->high));
        return j;
}

/* Of a comparison the figures are the algorithm's, of everything else the run's. */
static const char *part_of(struct arena *a, const struct side *s, const struct figures *f)
{
        const char *name = s->from->algorithm ? s->from->algorithm : s->algorithm;
        const char *sized = arena_printf(a, "%s@%lld", name ? name : "", (long long)s->size);

        if (s->summary.kind->type == &ALGORITHMCOMPARISON)
                return figures_find(f, sized, "runs") ? sized : name;
        sized = arena_printf(a, "@%lld", (long long)s->from->size);
        return s->from->size && figures_find(f, sized, "runs") ? sized : NULL;
}

static void add_figure(struct table *t, const struct figure *first, const struct figures *all,
                       const char *const *parts, struct json *list)
{
        struct json *values = json_array(t->a), *ratios = json_array(t->a);
        size_t known = 0;

        for (size_t i = 0; i < t->n; i++) {
                const struct figure *f = figures_find(&all[i], parts[i], first->key);
                bool ratio = f && i && first->value > 0 && f->value > 0;

                known += f != NULL;
                json_append(values, value_json(t->a, f));
                json_append(ratios, ratio ? json_double(t->a, f->value / first->value) : json_null(t->a));
        }
        if (known > 1)
                json_append(
                        list,
                        json_build(t->a, "{'key': %s, 'title': %s, 'unit': %s, 'values': %p, 'ratios': %p}",
                                   first->key, first->title, first->unit, (void *)values, (void *)ratios));
}

static void add_figures(struct table *t)
{
        struct figures *all = arena_new_array(t->a, struct figures, t->n);
        const char **parts = arena_new_array(t->a, const char *, t->n);
        struct json *list = json_array(t->a);

        for (size_t i = 0; i < t->n; i++) {
                figures_of(&t->sides[i].from->docs, t->a, &all[i]);
                parts[i] = part_of(t->a, &t->sides[i], &all[i]);
        }
        for (size_t i = 0; i < all[0].n; i++)
                if (streq(all[0].v[i].of, parts[0]))
                        add_figure(t, &all[0].v[i], all, parts, list);
        json_set(t->a, t->root, "figures", list);
}

/* ---- what must be said with it */

static const char *shown(struct arena *a, const struct json *value)
{
        const char *text = json_cstr(value);

        return text ? text : value ? json_print(a, value) : "not known";
}

/* What two machines differ in, as far as they tell it. */
static const char *difference(struct arena *a, const struct json *x, const struct json *y)
{
        static const char *const members[] = {"cpu", "cpus", "memory", "architecture", "kernel", "virtual"};
        const char *text = NULL;

        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                const struct json *of_x = json_at(x, members[i]), *of_y = json_at(y, members[i]);

                if (of_x && of_y && !json_equal(of_x, of_y))
                        text = arena_printf(a, "%s%s%s %s and %s", text ? text : "", text ? ", " : "",
                                            members[i], shown(a, of_x), shown(a, of_y));
        }
        return text;
}

static void note_machine(struct table *t, const struct side *first, const struct side *s)
{
        const struct json *x = json_path(first->from->docs.object, "status.statistics.machine");
        const struct json *y = json_path(s->from->docs.object, "status.statistics.machine");
        const char *differs = difference(t->a, x, y);

        if (differs)
                note(t, arena_printf(t->a, "%s and %s ran on different machines: %s", first->from->name,
                                     s->from->name, differs));
        else if (!x || !y)
                note(t, arena_printf(t->a, "whether %s and %s ran on the same machine is not known",
                                     first->from->name, s->from->name));
}

static void note_unit(struct table *t, const struct side *first, const struct side *s)
{
        const char *x = json_str(json_path(first->from->docs.object, "status.statistics"), "unit");
        const char *y = json_str(json_path(s->from->docs.object, "status.statistics"), "unit");

        if (x && y && !streq(x, y))
                note(t, arena_printf(t->a, "what repeats differs: in %s a %s, in %s a %s", first->from->name,
                                     x, s->from->name, y));
}

static void add_notes(struct table *t, bool tested)
{
        for (size_t i = 0; i < t->n; i++) {
                const char *origin = run_docs_origin(&t->sides[i].from->docs);

                if (origin)
                        note(t, arena_printf(t->a, "the values of %s are %s, not measured",
                                             t->sides[i].from->name, origin));
        }
        if (tested && !t->interleaved)
                note(t, "these runs were not interleaved: each was made at its own time, so that a machine "
                        "that was busier "
                        "then looks like a slower program; to decide between them, run both in one "
                        "AlgorithmComparison");
        if (!tested)
                note(t, "there are no samples of both to test: these figures say nothing of what is noise");
        for (size_t i = 1; i < t->n && !t->interleaved && tested; i++) {
                note_machine(t, &t->sides[0], &t->sides[i]);
                note_unit(t, &t->sides[0], &t->sides[i]);
        }
}

/* ---- all */

static bool can_test(const struct table *t)
{
        for (size_t i = 0; i < t->n; i++)
                if (!t->sides[i].algorithm)
                        return false;
        return true;
}

static int look_at(struct table *t, const struct versus_side *from, struct side *s, struct err *err)
{
        *s = (struct side){.from = from, .accuracy.median = NAN};
        summarize(from->docs.kind, from->docs.object, t->a, &s->summary);
        if (choose(t->a, s, err) < 0)
                return -1;
        if (s->algorithm)
                take_samples(t, s);
        return 0;
}

struct json *versus(struct arena *a, const struct versus_side *sides, size_t n, struct err *err)
{
        struct table t = {.a = a,
                          .sides = arena_new_array(a, struct side, n),
                          .n = n,
                          .root = json_object(a),
                          .notes = json_array(a)};
        struct json *runs = json_array(a);
        bool tested;

        if (n < VERSUS_MIN || n > VERSUS_MAX) {
                err_set(err, E_INVALID, "%d to %d runs can be compared, not %zu", VERSUS_MIN, VERSUS_MAX, n);
                return NULL;
        }
        for (size_t i = 0; i < n; i++)
                if (look_at(&t, &sides[i], &t.sides[i], err) < 0)
                        return NULL;
        tested = can_test(&t);
        t.interleaved = tested && is_one_run(&t);
        json_set(a, t.root, "tested", json_truth(a, tested));
        json_set(a, t.root, "interleaved", json_truth(a, t.interleaved));
        json_set(a, t.root, "baseline", json_string(a, sides[0].name));
        for (size_t i = 0; i < n; i++)
                json_append(runs, side_json(a, &t.sides[i]));
        json_set(a, t.root, "runs", runs);
        if (tested)
                test(&t);
        add_figures(&t);
        add_notes(&t, tested);
        json_set(a, t.root, "notes", t.notes);
        return t.root;
}
