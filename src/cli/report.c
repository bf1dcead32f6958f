/*
 * Reports from descriptions and documents.
 */
#include "cli/report.h"

#include <math.h>

enum { ROWS_MAX = 20000, COLUMNS_MAX = 64, TEXT_MAX = 2048 };

/* ---- values */

/* "a, b"; NULL: it is no list of texts. */
static const char *list_of(struct arena *a, const struct json *j)
{
        const char *text = NULL;

        json_foreach (one, json_is(j, JSON_ARRAY) ? j : NULL) {
                if (!json_cstr(one))
                        return NULL;
                text = text ? arena_join(a, text, ", ", json_cstr(one)) : json_cstr(one);
        }
        return text;
}

/* What stands in a table is one line. */
static const char *text_of(struct arena *a, const struct json *j)
{
        const char *text = json_is(j, JSON_ARRAY) ? list_of(a, j) : json_cstr(j);

        if (!text && j && !json_is(j, JSON_NULL) && (json_len(j) || !json_is(j, JSON_ARRAY)))
                text = json_print(a, j);
        if (!text || !*text)
                return NULL;
        return text_clean(a, arena_strndup(a, text, utf8_cut(text, strlen(text), TEXT_MAX)));
}

static bool number_of(const struct json *j, double *ret)
{
        return json_is(j, JSON_NUMBER) && json_to_double(j, ret) && isfinite(*ret);
}

static double number_or_nan(const struct json *j)
{
        double value;

        return number_of(j, &value) ? value : NAN;
}

static struct report_value value_of(struct arena *a, enum report_format format, const struct json *j,
                                    const struct json *low, const struct json *high)
{
        struct report_value v = {.format = format, .low = number_or_nan(low), .high = number_or_nan(high)};

        if (format == REPORT_TRUTH) {
                v.text = json_is(j, JSON_BOOL) ? (j->truth ? "yes" : "no") : NULL;
                return v;
        }
        v.is_number = format != REPORT_TEXT && number_of(j, &v.number);
        v.text = v.is_number || !j ? NULL : text_of(a, j);
        return v;
}

static bool is_known(const struct report_value *v)
{
        return v->is_number || v->text;
}

static const char *scaled(struct arena *a, double value, double high, const char *const *units,
                          const double *steps, size_t n)
{
        double size = fabs(isnan(high) ? value : high);
        size_t i = 0;

        while (i + 1 < n && size >= steps[i + 1])
                i++;
        value /= steps[i];
        return fabs(value) >= 100 ? arena_printf(a, "%.0f %s", value, units[i])
                                  : arena_printf(a, "%.3g %s", value, units[i]);
}

static const char *seconds(struct arena *a, double value, double like)
{
        static const char *const units[] = {"ns", "us", "ms", "s"};
        static const double steps[] = {1e-9, 1e-6, 1e-3, 1};

        return value != 0 ? scaled(a, value, like, units, steps, ARRAY_LEN(units)) : "0 s";
}

static const char *bytes(struct arena *a, double value, double like)
{
        static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
        static const double steps[] = {1, 1e3, 1e6, 1e9, 1e12};

        return scaled(a, value, like, units, steps, ARRAY_LEN(units));
}

static const char *plain(struct arena *a, double value)
{
        return fabs(value) >= 1000 && fabs(value) < 1e15 ? arena_printf(a, "%.0f", value)
                                                         : arena_printf(a, "%.4g", value);
}

/* In the unit that suits LIKE: both ends of an interval have the same. */
static const char *number_text(struct arena *a, enum report_format format, double value, double like)
{
        switch (format) {
        case REPORT_SECONDS:
                return seconds(a, value, like);
        case REPORT_DURATION:
                return show_duration(a, (usec_t)(fmax(value, 0) * (double)USEC_PER_SEC));
        case REPORT_MS:
                return seconds(a, value / 1e3, like / 1e3);
        case REPORT_NS:
                return seconds(a, value / 1e9, like / 1e9);
        case REPORT_MB:
                return bytes(a, value * 1e6, like * 1e6);
        case REPORT_BYTES:
                return bytes(a, value, like);
        case REPORT_PERCENT:
                return arena_printf(a, "%.3g %%", value);
        case REPORT_SHARE:
                return arena_printf(a, "%.3g %%", value * 100);
        case REPORT_RATIO:
                return arena_printf(a, "%.3gx", value);
        case REPORT_P:
                return value < 0.0001 ? "<0.0001" : arena_printf(a, "%.2g", value);
        case REPORT_COUNT:
                return arena_printf(a, "%.0f", value);
        default:
                return plain(a, value);
        }
}

/* "43.7" of "43.7 ms", "0.6" of "0.6x": the unit is told once. */
static const char *without_unit(struct arena *a, const char *low, const char *high)
{
        const char *unit = high + strcspn(high, " x"), *own = low + strcspn(low, " x");

        return *unit && streq(unit, own) ? arena_strndup(a, low, (size_t)(own - low)) : low;
}

const char *report_text_of(struct arena *a, const struct report_value *v)
{
        const char *text, *low, *high;

        if (!v->is_number)
                return v->text ? v->text : "";
        text = number_text(a, v->format, v->number, v->number);
        if (isnan(v->low) || isnan(v->high))
                return text;
        low = number_text(a, v->format, v->low, v->number);
        high = number_text(a, v->format, v->high, v->number);
        return arena_printf(a, "%s (%s-%s)", text, without_unit(a, low, high), high);
}

bool report_is_numeric(const struct report_field *f)
{
        return f->format != REPORT_TEXT && f->format != REPORT_TRUTH;
}

/* ---- tables */

/* What a table is made of while its columns are not known yet. */
struct making {
        const struct run_docs *docs;
        struct arena *a;
        const struct report_section *section;
        const struct report_field *fields;
        size_t n;
        VEC(struct report_value) cells;
};

static const struct json *at(const struct json *row, const char *path)
{
        return path ? json_path(row, path) : NULL;
}

static void add_row(struct making *m, const struct json *row, const char *part)
{
        if (m->cells.n >= (size_t)ROWS_MAX * m->n)
                return;
        for (size_t i = 0; i < m->n; i++) {
                const struct report_field *f = &m->fields[i];

                if (streq(f->path, "$part"))
                        *vec_push(&m->cells) = (struct report_value){.text = part, .low = NAN, .high = NAN};
                else
                        *vec_push(&m->cells) = value_of(m->a, f->format, at(row, f->path), at(row, f->low),
                                                        at(row, f->high));
        }
}

static const char *last_word(const char *path)
{
        const char *dot = strrchr(path, '.');

        return dot ? dot + 1 : path;
}

static void add_rows(struct making *m)
{
        for (size_t i = 0; i < ARRAY_LEN(m->section->paths) && m->section->paths[i]; i++) {
                const struct json *j = run_docs_at(m->docs, m->section->paths[i]);

                if (json_is(j, JSON_OBJECT))
                        add_row(m, j, last_word(m->section->paths[i]));
                json_foreach (row, json_is(j, JSON_ARRAY) ? j : NULL)
                        if (json_is(row, JSON_OBJECT))
                                add_row(m, row, last_word(m->section->paths[i]));
        }
}

static void add_members(struct making *m)
{
        const struct json *j = run_docs_at(m->docs, m->section->paths[0]);

        json_foreach (member, json_is(j, JSON_OBJECT) ? j : NULL) {
                const char *key = text_clean(m->a, arena_strndup(m->a, member->key, member->key_len));

                *vec_push(&m->cells) = (struct report_value){.text = key, .low = NAN, .high = NAN};
                *vec_push(&m->cells) = value_of(m->a, m->fields[1].format, member, NULL, NULL);
        }
}

static void add_columns(struct making *m)
{
        const struct json *j = run_docs_at(m->docs, m->section->paths[0]);
        size_t rows = 0;

        for (size_t i = 0; i < m->n; i++)
                rows = MAX(rows, json_len(json_at(j, m->fields[i].path)));
        for (size_t row = 0; row < MIN(rows, (size_t)ROWS_MAX); row++)
                for (size_t i = 0; i < m->n; i++)
                        *vec_push(&m->cells) = value_of(m->a, m->fields[i].format,
                                                        json_index(json_at(j, m->fields[i].path), row), NULL,
                                                        NULL);
}

static enum report_format format_of_unit(const char *unit)
{
        static const struct {
                const char *unit;
                enum report_format format;
        } units[] = {{"s", REPORT_SECONDS}, {"ms", REPORT_MS},   {"ns", REPORT_NS},
                     {"MB", REPORT_MB},     {"B", REPORT_BYTES}, {"%", REPORT_PERCENT}};

        for (size_t i = 0; i < ARRAY_LEN(units); i++)
                if (streq(units[i].unit, unit))
                        return units[i].format;
        return REPORT_NUMBER;
}

static struct report_value text_value(const char *text)
{
        return (struct report_value){.text = text && *text ? text : NULL, .low = NAN, .high = NAN};
}

/* Its fields are title, value and unit. */
static void add_figures(struct making *m)
{
        struct figures f;

        figures_of(m->docs, m->a, &f);
        for (size_t i = 0; i < f.n; i++) {
                const struct figure *one = &f.v[i];

                *vec_push(&m->cells) = text_value(text_clean(m->a, one->title));
                *vec_push(&m->cells) = (struct report_value){.is_number = true,
                                                             .number = one->value,
                                                             .low = one->low,
                                                             .high = one->high,
                                                             .format = format_of_unit(one->unit)};
                *vec_push(&m->cells) = text_value(one->unit);
        }
}

/* Columns as the file has them. */
static void add_samples(struct making *m)
{
        const struct json *names = json_at(m->docs->samples, "columns");
        struct report_field *fields = arena_new_array(m->a, struct report_field, COLUMNS_MAX);

        json_foreach (name, names)
                if (m->n < COLUMNS_MAX && json_cstr(name)) {
                        const char *key = text_clean(m->a, json_cstr(name));

                        fields[m->n++] = (struct report_field){key, key, REPORT_NUMBER, NULL, NULL, NULL};
                }
        m->fields = fields;
        if (!m->n || m->n != json_len(names))
                return;
        json_foreach (row, json_at(m->docs->samples, "rows")) {
                if (!json_is(row, JSON_ARRAY) || json_len(row) != m->n || m->cells.n >= ROWS_MAX * m->n)
                        continue;
                json_foreach (cell, row)
                        *vec_push(&m->cells) = json_is(cell, JSON_NULL)
                                                       ? text_value(NULL)
                                                       : value_of(m->a, REPORT_NUMBER, cell, NULL, NULL);
        }
}

/* A row a figure, a column a run, and how each compares with the first. */
static void add_values(struct making *m)
{
        const struct json *runs = run_docs_at(m->docs, "result.runs");
        struct report_field *fields = arena_new_array(m->a, struct report_field, COLUMNS_MAX);

        fields[m->n++] = (struct report_field){"figure", "figure", REPORT_TEXT, NULL, NULL, NULL};
        json_foreach (run, runs) {
                const char *name = text_clean(m->a, json_str_or(run, "name", ""));

                if (m->n + 2 > COLUMNS_MAX)
                        break;
                fields[m->n++] = (struct report_field){name, name, REPORT_NUMBER, NULL, NULL, NULL};
        }
        fields[m->n++] = (struct report_field){"ratios", "ratio", REPORT_TEXT, NULL, NULL, NULL};
        m->fields = fields;
        json_foreach (f, run_docs_at(m->docs, m->section->paths[0])) {
                enum report_format format = format_of_unit(json_str_or(f, "unit", ""));
                const char *ratios = NULL;

                *vec_push(&m->cells) = text_value(text_clean(m->a, json_str_or(f, "title", "")));
                for (size_t i = 0; i + 2 < m->n; i++) {
                        const struct json *v = json_index(json_at(f, "values"), i);

                        *vec_push(&m->cells) = value_of(m->a, format, json_at(v, "value"), json_at(v, "low"),
                                                        json_at(v, "high"));
                }
                json_foreach (ratio, json_at(f, "ratios"))
                        if (json_is(ratio, JSON_NUMBER))
                                ratios = arena_printf(m->a, "%s%s%.3gx", ratios ? ratios : "",
                                                      ratios ? ", " : "", number_or_nan(ratio));
                *vec_push(&m->cells) = text_value(ratios);
        }
}

/* Without columns in which nothing is. */
static void keep_table(struct making *m, struct report *r)
{
        struct report_table t = {.key = m->section->key, .title = m->section->title};
        size_t rows = m->n ? m->cells.n / m->n : 0;
        bool used[COLUMNS_MAX] = {false};

        for (size_t i = 0; i < rows * m->n; i++)
                used[i % m->n] |= is_known(&m->cells.v[i]);
        t.columns = arena_new_array(m->a, const struct report_field *, m->n + 1);
        t.cells = arena_new_array(m->a, struct report_value, m->cells.n + 1);
        for (size_t i = 0; i < m->n; i++)
                if (used[i])
                        t.columns[t.n_columns++] = &m->fields[i];
        for (size_t i = 0, n = 0; i < rows * m->n; i++)
                if (used[i % m->n])
                        t.cells[n++] = m->cells.v[i];
        t.n_rows = rows;
        if (t.n_columns && rows)
                *vec_push(&r->tables) = t;
}

static void add_table(const struct run_docs *docs, struct arena *a, const struct report_section *s,
                      struct report *r)
{
        static void (*const makers[])(struct making * m) = {
                [REPORT_ROWS] = add_rows,       [REPORT_MEMBERS] = add_members,
                [REPORT_COLUMNS] = add_columns, [REPORT_FIGURES] = add_figures,
                [REPORT_SAMPLES] = add_samples, [REPORT_VALUES] = add_values,
        };
        struct making m = {.docs = docs, .a = a, .section = s, .fields = s->fields, .n = s->n};

        makers[s->shape](&m);
        keep_table(&m, r);
        vec_done(&m.cells);
}

/* ---- all */

static void add_fact(struct report *r, const struct report_field *field, struct report_value value)
{
        if (is_known(&value))
                *vec_push(&r->facts) = (struct report_fact){field, value};
}

/* What is told of a run of any kind. */
static void add_summary(const struct run_docs *docs, struct arena *a, struct report *r)
{
        static const struct report_field outcome = {"outcome", "outcome", REPORT_TEXT, NULL, NULL, NULL};
        static const struct report_field phase = {"phase", "phase", REPORT_TEXT, NULL, NULL, NULL};
        static const struct report_field took = {"seconds", "took", REPORT_DURATION, NULL, NULL, NULL};
        struct summary s;

        summarize(docs->kind, docs->object, a, &s);
        r->run = summary_json(&s, a);
        r->title = arena_printf(a, "%s %s%s%s", docs->kind->type->kind, s.ns, *s.ns ? "/" : "", s.name);
        add_fact(r, &phase, text_value(text_clean(a, s.phase)));
        if (s.sentence)
                add_fact(r, &outcome, text_value(text_clean(a, s.sentence)));
        if (s.ended > s.started && s.started)
                add_fact(r, &took,
                         (struct report_value){.is_number = true,
                                               .number = (double)(s.ended - s.started) / 1e6,
                                               .low = NAN,
                                               .high = NAN,
                                               .format = REPORT_DURATION});
}

static void add_notes(const struct run_docs *docs, const struct report_kind *kind, struct arena *a,
                      struct report *r)
{
        if (r->origin)
                *vec_push(&r->notes) = arena_printf(a, "these values are %s, not measured", r->origin);
        for (size_t i = 0; i < ARRAY_LEN(kind->notes) && kind->notes[i]; i++) {
                const struct json *list = run_docs_at(docs, kind->notes[i]);

                json_foreach (note, json_is(list, JSON_ARRAY) ? list : NULL)
                        if (json_cstr(note))
                                *vec_push(&r->notes) = text_clean(a, json_cstr(note));
        }
}

void report_make(const struct run_docs *docs, const struct report_kind *kind, bool samples, struct arena *a,
                 struct report *ret)
{
        static const struct report_section all_runs = {"samples", "every run", REPORT_SAMPLES,
                                                       {NULL},    NULL,        0};

        *ret = (struct report){.title = "", .origin = docs->object ? run_docs_origin(docs) : NULL};
        if (docs->object)
                add_summary(docs, a, ret);
        for (size_t i = 0; i < kind->n_facts; i++) {
                const struct report_field *f = &kind->facts[i];

                add_fact(ret, f,
                         value_of(a, f->format, run_docs_at(docs, f->path),
                                  f->low ? run_docs_at(docs, f->low) : NULL,
                                  f->high ? run_docs_at(docs, f->high) : NULL));
        }
        for (size_t i = 0; i < kind->n_sections; i++)
                add_table(docs, a, &kind->sections[i], ret);
        if (samples)
                add_table(docs, a, &all_runs, ret);
        add_notes(docs, kind, a, ret);
}

void report_done(struct report *r)
{
        vec_done(&r->facts);
        vec_done(&r->tables);
        vec_done(&r->notes);
}
