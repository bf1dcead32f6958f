/*
 * The layouts of CSV, by the names in their headers.
 *
 *   wide        a record a launch, a column a metric; the first record after the header has the units
 *   long        a record a launch and metric; rules of the report have records too, without a metric
 *   transposed  the window's export: a record a metric, with the unit after its name, a column a launch
 */
#include "probe/ncu/reader_internal.h"

static const struct str column_names[NCU_COLUMN_KINDS] = {
        [NCU_COLUMN_ID] = STR("ID"),
        [NCU_COLUMN_PROCESS] = STR("Process ID"),
        [NCU_COLUMN_SECTION] = STR("Section Name"),
        [NCU_COLUMN_NAME] = STR("Metric Name"),
        [NCU_COLUMN_UNIT] = STR("Metric Unit"),
        [NCU_COLUMN_VALUE] = STR("Metric Value"),
};

/* ---- fields */

/* The end of what begins behind the quote at P[0]: its closing quote, or N. */
static size_t closing_quote(const char *p, size_t n)
{
        size_t i = 1;

        while (i < n && (p[i] != '"' || (i + 1 < n && p[i + 1] == '"')))
                i += p[i] == '"' ? 2 : 1;
        return MIN(i, n);
}

/* The next field of a record; false: there is no more. What is quoted is given as it stands between its quotes. */
static bool next_field(struct str *rest, struct str *ret)
{
        const char *comma;
        size_t from = 0, end;

        if (!rest->p)
                return false;
        if (rest->n && rest->p[0] == '"') {
                from = 1;
                end = closing_quote(rest->p, rest->n);
                comma = memchr(rest->p + end, ',', rest->n - end);
        } else {
                comma = memchr(rest->p, ',', rest->n);
                end = comma ? (size_t)(comma - rest->p) : rest->n;
        }
        *ret = str_n(rest->p + from, end - from);
        *rest = comma ? str_n(comma + 1, (size_t)(rest->p + rest->n - comma) - 1) : STR_NULL;
        return true;
}

/* The field of a record that has been scanned; STR_NULL: it has none. */
static struct str slot(const struct ncu_reader *r, struct str record, unsigned i)
{
        if (i >= r->scan.taken)
                return STR_NULL;
        return str_n(record.p + r->scan.slot[i].from,
                     MIN(r->scan.slot[i].n, record.n - r->scan.slot[i].from));
}

/* The number of a launch; newer tools have separators in large ones. */
static bool is_id(struct str s)
{
        if (s.n == 0 || s.n >= NCU_ID_MAX || s.p[0] < '0' || s.p[0] > '9')
                return false;
        for (size_t i = 1; i < s.n; i++)
                if ((s.p[i] < '0' || s.p[i] > '9') && s.p[i] != ',' && s.p[i] != '.')
                        return false;
        return true;
}

bool ncu_csv_has_id(const struct ncu_reader *r, struct str record)
{
        return r->layout == NCU_LAYOUT_TRANSPOSED || is_id(slot(r, record, r->where[NCU_COLUMN_ID]));
}

/* ---- the header */

struct header {
        bool has[NCU_COLUMN_KINDS];
        bool kernel;
        bool numbers; /* all but the first are numbers of launches */
        uint32_t width;
};

static enum ncu_column_kind column_kind(struct str field)
{
        unsigned i = 0;

        while (i < NCU_COLUMN_KINDS && !str_eq(field, column_names[i]))
                i++;
        return (enum ncu_column_kind)i;
}

static struct header look_at(struct str line)
{
        struct header h = {.numbers = true};
        struct str field, unit;

        while (next_field(&line, &field)) {
                enum ncu_column_kind kind = column_kind(field);
                const struct ncu_name *name = ncu_name_find_with_unit(field, &unit);

                if (kind < NCU_COLUMN_KINDS)
                        h.has[kind] = true;
                h.kernel |= name && name->what == NCU_IS_KERNEL;
                h.numbers &= h.width == 0 ? kind == NCU_COLUMN_ID : is_id(field);
                h.width++;
        }
        return h;
}

static void want(struct ncu_reader *r, uint32_t column, const struct ncu_name *name, struct str unit)
{
        struct ncu_column *c = &r->columns[r->n_columns];

        c->name = name;
        unit.n = MIN(unit.n, sizeof(c->unit) - 1);
        memcpy(c->unit, unit.p ? unit.p : "", unit.n);
        c->unit[unit.n] = '\0';
        r->wanted[r->n_columns++] = column;
        r->wanted[r->n_columns] = UINT32_MAX;
}

static bool is_wanted(const struct ncu_reader *r, const struct ncu_name *name)
{
        for (uint32_t i = 0; i < r->n_columns; i++)
                if (r->columns[i].name == name)
                        return true;
        return false;
}

static void begin_layout(struct ncu_reader *r, enum ncu_layout layout, uint32_t width)
{
        ncu_open_flush(r);
        r->layout = layout;
        r->header_line = r->line;
        r->width = width;
        r->n_columns = 0;
        r->wanted[0] = UINT32_MAX;
        r->units_due = layout == NCU_LAYOUT_WIDE;
        for (size_t i = 0; i < ARRAY_LEN(r->where); i++)
                r->where[i] = NCU_SLOTS;
}

/* Of two columns with one name the first counts. */
static void choose_columns(struct ncu_reader *r, struct str line)
{
        struct str field, unit;

        for (uint32_t i = 0; next_field(&line, &field); i++) {
                enum ncu_column_kind kind = column_kind(field);
                const struct ncu_name *name = ncu_name_find_with_unit(field, &unit);

                if (kind < NCU_COLUMN_KINDS && r->where[kind] == NCU_SLOTS) {
                        r->where[kind] = r->n_columns;
                        want(r, i, NULL, STR_NULL);
                } else if (name && !is_wanted(r, name)) {
                        want(r, i, name, unit);
                }
        }
}

static int begin_across(struct ncu_reader *r, uint32_t width, struct err *err)
{
        if (width - 1 > NCU_LAUNCHES_ACROSS_MAX)
                return err_set(err, E_TOO_LARGE,
                               "line %llu: there are %u launches side by side, more than %d",
                               (unsigned long long)r->line, width - 1, NCU_LAUNCHES_ACROSS_MAX);
        begin_layout(r, NCU_LAYOUT_TRANSPOSED, width);
        want(r, 0, NULL, STR_NULL);
        free(r->across);
        r->n_across = width - 1;
        r->across = xcalloc(r->n_across, sizeof(*r->across));
        for (size_t i = 0; i < r->n_across; i++)
                ncu_open_clear(&r->across[i]);
        return 1;
}

int ncu_csv_header(struct ncu_reader *r, struct str line, struct err *err)
{
        bool marked = str_has_prefix(line, STR("\xEF\xBB\xBF"));
        struct header h;

        if (marked)
                line = str_n(line.p + 3, line.n - 3);
        if (!memmem(line.p, line.n, "ID", 2))
                return 0;
        h = look_at(line);
        if (!h.has[NCU_COLUMN_ID])
                return 0;
        /* The window marks its files. Without the mark, and in another layout, "ID,3" is the program's. */
        if (h.numbers && h.width > 1 &&
            (marked || r->layout == NCU_LAYOUT_NONE || r->layout == NCU_LAYOUT_TRANSPOSED))
                return begin_across(r, h.width, err);
        if (!h.kernel)
                return 0;
        if (h.width > NCU_COLUMNS_MAX)
                return err_set(err, E_TOO_LARGE, "line %llu: there are %u columns, more than %d",
                               (unsigned long long)r->line, h.width, NCU_COLUMNS_MAX);
        begin_layout(r, h.has[NCU_COLUMN_NAME] && h.has[NCU_COLUMN_VALUE] ? NCU_LAYOUT_LONG : NCU_LAYOUT_WIDE,
                     h.width);
        choose_columns(r, line);
        return 1;
}

/* ---- wide */

static void take_units(struct ncu_reader *r, struct str record)
{
        for (uint32_t i = 0; i < r->n_columns; i++) {
                struct ncu_column *c = &r->columns[i];
                struct str unit = slot(r, record, i);

                unit.n = MIN(unit.n, sizeof(c->unit) - 1);
                memcpy(c->unit, unit.p ? unit.p : "", unit.n);
                c->unit[unit.n] = '\0';
        }
}

static int take_wide(struct ncu_reader *r, struct str record, struct err *err)
{
        struct str id = slot(r, record, r->where[NCU_COLUMN_ID]);
        struct ncu_open *o = &r->open[0];

        if (r->scan.column != r->width)
                return 0;
        if (r->units_due && id.n == 0) {
                take_units(r, record);
                r->units_due = false;
                return 1;
        }
        if (!is_id(id))
                return 0;
        r->units_due = false;
        ncu_open_clear(o);
        for (uint32_t i = 0; i < r->n_columns; i++) {
                const struct ncu_column *c = &r->columns[i];

                if (c->name && ncu_open_take(r, o, c->name, slot(r, record, i), str_of(c->unit), err) < 0)
                        return -1;
        }
        ncu_open_give(r, o);
        return 1;
}

/* ---- long */

static size_t keep(char to[NCU_ID_MAX], struct str s)
{
        size_t n = MIN(s.n, (size_t)NCU_ID_MAX);

        memcpy(to, s.p ? s.p : "", n);
        return n;
}

static bool is_of(const struct ncu_open *o, struct str id, struct str process)
{
        return o->id_n == id.n && o->process_n == MIN(process.n, (size_t)NCU_ID_MAX) &&
               memcmp(o->id, id.p, o->id_n) == 0 &&
               (o->process_n == 0 || memcmp(o->process, process.p, o->process_n) == 0);
}

/* The launch of a record; two processes may have one number each and print in turns. NULL: it begins with this record. */
static struct ncu_open *find_open(struct ncu_reader *r, struct str id, struct str process)
{
        for (unsigned i = r->n_open; i-- > 0;) {
                struct ncu_open *o = &r->open[(r->first_open + i) % NCU_OPEN_MAX];

                if (is_of(o, id, process))
                        return o;
        }
        return NULL;
}

static struct ncu_open *begin_launch(struct ncu_reader *r, struct str record, struct str id,
                                     struct str process, struct err *err)
{
        struct ncu_open *o = ncu_open_new(r);

        o->id_n = keep(o->id, id);
        o->process_n = keep(o->process, process);
        for (uint32_t i = 0; i < r->n_columns; i++)
                if (r->columns[i].name && r->columns[i].name->what >= NCU_METRICS &&
                    ncu_open_take(r, o, r->columns[i].name, slot(r, record, i), STR_NULL, err) < 0)
                        return NULL;
        return o;
}

/* A record may end after the value, with or without a comma behind it. */
static int take_long(struct ncu_reader *r, struct str record, struct err *err)
{
        struct str id = slot(r, record, r->where[NCU_COLUMN_ID]),
                   process = slot(r, record, r->where[NCU_COLUMN_PROCESS]);
        const struct ncu_name *name;
        struct ncu_open *o;

        if (!is_id(id) || r->where[NCU_COLUMN_VALUE] >= r->scan.taken || r->scan.column > r->width + 1)
                return 0;
        o = find_open(r, id, process);
        if (!o)
                o = begin_launch(r, record, id, process, err);
        if (!o)
                return -1;
        name = ncu_name_find(slot(r, record, r->where[NCU_COLUMN_NAME]));
        if (!name || !ncu_section_fits(name, slot(r, record, r->where[NCU_COLUMN_SECTION])))
                return 1;
        if (ncu_open_take(r, o, name, slot(r, record, r->where[NCU_COLUMN_VALUE]),
                          slot(r, record, r->where[NCU_COLUMN_UNIT]), err) < 0)
                return -1;
        return 1;
}

/* ---- transposed */

static int take_across(struct ncu_reader *r, struct str record, struct err *err)
{
        const struct ncu_name *name;
        struct str field, unit;

        if (r->scan.column != r->width)
                return 0;
        name = ncu_name_find_with_unit(slot(r, record, 0), &unit);
        if (!name)
                return 0;
        (void)next_field(&record, &field);
        for (size_t i = 0; i < r->n_across && next_field(&record, &field); i++)
                if (ncu_open_take(r, &r->across[i], name, field, unit, err) < 0)
                        return -1;
        return 1;
}

int ncu_csv_record(struct ncu_reader *r, struct str record, struct err *err)
{
        switch (r->layout) {
        case NCU_LAYOUT_WIDE:
                return take_wide(r, record, err);
        case NCU_LAYOUT_LONG:
                return take_long(r, record, err);
        case NCU_LAYOUT_TRANSPOSED:
                return take_across(r, record, err);
        default:
                return 0;
        }
}
