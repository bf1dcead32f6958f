/*
 * Reports as text for a terminal, JSON, CSV and Markdown.
 */
#include "cli/report.h"

#include <math.h>

/* Any of the column's values has an interval. */
static bool has_intervals(const struct report_table *t, size_t column)
{
        for (size_t i = 0; i < t->n_rows; i++)
                if (report_cell(t, i, column)->is_number && !isnan(report_cell(t, i, column)->low))
                        return true;
        return false;
}

/* ---- a terminal */

static void print_facts(const struct report *r, struct arena *a, const struct screen *s)
{
        size_t width = 0;

        vec_foreach (f, &r->facts)
                width = MAX(width, text_width(str_of(f->field->title)));
        vec_foreach (f, &r->facts) {
                size_t used = text_width(str_of(f->field->title));
                const char *text = report_text_of(a, &f->value);

                fprintf(s->to, "  %s%s%s%*s  %s\n", screen_tone(s, TONE_DIM), f->field->title,
                        screen_plain(s), (int)(width - used), "", text);
        }
}

static void print_table(const struct report_table *t, struct arena *a, const struct screen *s)
{
        struct table_column *columns = arena_new_array(a, struct table_column, t->n_columns);
        size_t n = MIN(t->n_columns, (size_t)TABLE_COLUMNS_MAX);
        _cleanup_(table_done) struct table out;

        for (size_t i = 0; i < n; i++)
                columns[i] = (struct table_column){t->columns[i]->title, report_is_numeric(t->columns[i])};
        table_init(&out, a, columns, n);
        for (size_t row = 0; row < t->n_rows; row++)
                for (size_t i = 0; i < n; i++)
                        table_add(&out, TONE_PLAIN, report_text_of(a, report_cell(t, row, i)));
        fprintf(s->to, "\n%s%s%s\n", screen_tone(s, TONE_BOLD), t->title, screen_plain(s));
        table_print(&out, s, true);
}

void report_write_table(const struct report *r, struct arena *a, const struct screen *screen)
{
        if (*r->title)
                fprintf(screen->to, "%s%s%s%s%s\n", screen_tone(screen, TONE_BOLD), r->title,
                        screen_plain(screen), r->origin ? " · " : "", r->origin ? r->origin : "");
        print_facts(r, a, screen);
        vec_foreach (t, &r->tables)
                print_table(t, a, screen);
        if (r->notes.n)
                fputc('\n', screen->to);
        vec_foreach (note, &r->notes)
                fprintf(screen->to, "%snote:%s %s\n", screen_tone(screen, TONE_WARN), screen_plain(screen),
                        *note);
}

/* ---- JSON */

static struct json *value_json(struct arena *a, const struct report_value *v)
{
        if (v->is_number)
                return json_double(a, v->number);
        if (v->format == REPORT_TRUTH && v->text)
                return json_truth(a, streq(v->text, "yes"));
        return json_string(a, v->text);
}

static void set_value(struct arena *a, struct json *object, const char *key, const struct report_value *v)
{
        json_set(a, object, key, value_json(a, v));
        if (!v->is_number || isnan(v->low) || isnan(v->high))
                return;
        json_set(a, object, arena_join(a, key, "Low", ""), json_double(a, v->low));
        json_set(a, object, arena_join(a, key, "High", ""), json_double(a, v->high));
}

static struct json *table_json(struct arena *a, const struct report_table *t)
{
        struct json *rows = json_array(a);

        for (size_t row = 0; row < t->n_rows; row++) {
                struct json *one = json_append(rows, json_object(a));

                for (size_t i = 0; i < t->n_columns; i++)
                        set_value(a, one, t->columns[i]->key, report_cell(t, row, i));
        }
        return rows;
}

void report_write_json(const struct report *r, struct arena *a, struct buf *out)
{
        struct json *root = json_object(a), *facts = json_object(a), *notes = json_array(a);

        json_set(a, root, "run", json_copy(a, r->run));
        json_set(a, root, "origin", json_string(a, r->origin));
        vec_foreach (f, &r->facts)
                set_value(a, facts, f->field->key, &f->value);
        json_set(a, root, "facts", facts);
        vec_foreach (t, &r->tables)
                json_set(a, root, t->key, table_json(a, t));
        vec_foreach (note, &r->notes)
                json_append(notes, json_string(a, *note));
        json_set(a, root, "notes", notes);
        json_write(root, JSON_PRETTY, out);
        buf_addc(out, '\n');
}

/* ---- CSV: RFC 4180, but for the end of a line */

static void add_number(struct buf *out, double value)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *number = json_double(&a, value); /* the shortest that reads back */

        if (number)
                buf_addstr(out, str_n(number->text, number->len));
}

static void add_value(struct buf *out, const struct report_value *v, bool interval)
{
        if (v->is_number)
                add_number(out, v->number);
        else
                buf_add_csv(out, v->text ? v->text : "");
        if (!interval)
                return;
        buf_addc(out, ',');
        add_number(out, v->is_number ? v->low : NAN);
        buf_addc(out, ',');
        add_number(out, v->is_number ? v->high : NAN);
}

static const struct report_table *table_for_csv(const struct report *r)
{
        vec_foreach (t, &r->tables)
                if (streq(t->key, "samples"))
                        return t;
        return r->tables.n ? &r->tables.v[0] : NULL;
}

void report_write_csv(const struct report *r, struct arena *a, struct buf *out)
{
        const struct report_table *t = table_for_csv(r);

        for (size_t i = 0; t && i < t->n_columns; i++) {
                const char *key = t->columns[i]->key;

                buf_adds(out, i ? "," : "");
                buf_add_csv(out, key);
                if (has_intervals(t, i)) {
                        buf_addc(out, ',');
                        buf_add_csv(out, arena_join(a, key, "Low", ""));
                        buf_addc(out, ',');
                        buf_add_csv(out, arena_join(a, key, "High", ""));
                }
        }
        buf_adds(out, t ? "\n" : "");
        for (size_t row = 0; t && row < t->n_rows; row++) {
                for (size_t i = 0; i < t->n_columns; i++) {
                        buf_adds(out, i ? "," : "");
                        add_value(out, report_cell(t, row, i), has_intervals(t, i));
                }
                buf_addc(out, '\n');
        }
}

/* ---- Markdown */

/* What would begin a cell, a tag or an emphasis does not. */
static void add_escaped(struct buf *out, const char *text)
{
        for (; *text; text++) {
                if (strchr("|\\`*_<>[]", *text))
                        buf_addc(out, '\\');
                buf_addc(out, *text);
        }
}

static void add_markdown_row(struct buf *out, struct arena *a, const struct report_table *t, size_t row)
{
        for (size_t i = 0; i < t->n_columns; i++) {
                buf_adds(out, "| ");
                add_escaped(out, report_text_of(a, report_cell(t, row, i)));
                buf_addc(out, ' ');
        }
        buf_adds(out, "|\n");
}

static void add_markdown_table(struct buf *out, struct arena *a, const struct report_table *t)
{
        buf_adds(out, "\n## ");
        add_escaped(out, t->title);
        buf_adds(out, "\n\n");
        for (size_t i = 0; i < t->n_columns; i++) {
                buf_adds(out, "| ");
                add_escaped(out, t->columns[i]->title);
                buf_addc(out, ' ');
        }
        buf_adds(out, "|\n");
        for (size_t i = 0; i < t->n_columns; i++)
                buf_adds(out, report_is_numeric(t->columns[i]) ? "|---:" : "|:---");
        buf_adds(out, "|\n");
        for (size_t row = 0; row < t->n_rows; row++)
                add_markdown_row(out, a, t, row);
}

void report_write_markdown(const struct report *r, struct arena *a, struct buf *out)
{
        buf_adds(out, "# ");
        add_escaped(out, *r->title ? r->title : "Comparison");
        buf_adds(out, "\n\n");
        vec_foreach (f, &r->facts) {
                buf_adds(out, "- ");
                add_escaped(out, f->field->title);
                buf_adds(out, ": ");
                add_escaped(out, report_text_of(a, &f->value));
                buf_addc(out, '\n');
        }
        vec_foreach (t, &r->tables)
                add_markdown_table(out, a, t);
        vec_foreach (note, &r->notes) {
                buf_adds(out, "\n> ");
                add_escaped(out, *note);
                buf_addc(out, '\n');
        }
}
