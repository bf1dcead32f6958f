/*
 * The pages as text: a title a launch, then rows "name  unit  value", where the unit may be blank.
 *
 *     name(args) (grid)x(block), Context 1, Stream 7, Device 0, CC 8.6       since 2021
 *     name(args), 2020-May-29 11:51:18, Context 1, Stream 7                  before
 *
 * Rows are read from their end: a value has no blanks, a unit neither, and what is left must be a name as a whole. So the
 * widths of the columns, which change from version to version, do not matter.
 */
#include "probe/ncu/reader_internal.h"

static const struct str CONTEXT = STR(", Context "), STREAM = STR(", Stream "), CC = STR(", CC ");

/* The last place of WORD in S; NULL: none. */
static const char *find_last(struct str s, struct str word)
{
        const char *found = NULL, *at = s.p;

        while ((at = memmem(at, (size_t)(s.p + s.n - at), word.p, word.n)))
                found = at++;
        return found;
}

static struct str from(struct str s, const char *at)
{
        return str_n(at, (size_t)(s.p + s.n - at));
}

static struct str before(struct str s, const char *at)
{
        return str_n(s.p, (size_t)(at - s.p));
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* "(4, 1, 1)x(256, 1, 1)" at the end. */
static struct str without_shape(struct str name)
{
        const char *cross = find_last(name, STR(")x("));
        const char *open = cross ? memrchr(name.p, '(', (size_t)(cross - name.p)) : NULL;

        if (!open || open == name.p || open[-1] != ' ')
                return name;
        for (const char *at = open; at < name.p + name.n; at++)
                if (!is_digit(*at) && !memchr("(), x", *at, 5))
                        return name;
        return str_trim(before(name, open));
}

/* ", 2020-May-29 11:51:18" at the end. */
static struct str without_time(struct str name)
{
        const char *comma = find_last(name, STR(", "));
        struct str time = comma ? from(name, comma + 2) : STR_NULL;

        if (time.n != strlen("2020-May-29 11:51:18") || !is_digit(time.p[0]) || time.p[4] != '-' ||
            time.p[8] != '-' || time.p[14] != ':')
                return name;
        return str_trim(before(name, comma));
}

static int take_title(struct ncu_reader *r, struct str name, struct str behind, struct err *err)
{
        const char *cc = memmem(behind.p, behind.n, CC.p, CC.n);
        struct ncu_open *o;

        ncu_open_flush(r);
        r->layout = NCU_LAYOUT_TEXT;
        r->section[0] = '\0';
        o = ncu_open_new(r);
        name = without_time(without_shape(str_trim(name)));
        if (ncu_open_take(r, o, ncu_name_find(STR("Kernel Name")), name, STR_NULL, err) < 0)
                return -1;
        if (cc) {
                struct str rest = from(behind, cc + CC.n), version = str_split(&rest, ',');

                return ncu_open_take(r, o, ncu_name_find(STR("CC")), version, STR_NULL, err);
        }
        return 0;
}

/* The last word of S, which loses it and the blanks around. */
static struct str take_last(struct str *s)
{
        const char *blank = memrchr(s->p, ' ', s->n);
        struct str word = blank ? from(*s, blank + 1) : *s;

        *s = blank ? str_trim(before(*s, blank)) : str_n(s->p, 0);
        return word;
}

static int take_row(struct ncu_reader *r, struct str row, struct err *err)
{
        struct ncu_open *o = &r->open[r->first_open];
        struct str value, unit = STR_NULL, rest = row, word = str_split(&rest, ' ');
        const struct ncu_name *name = ncu_name_find(word);

        if (name && name->what >= NCU_METRICS && name->what != NCU_IS_KERNEL && rest.p)
                return ncu_open_take(r, o, name, str_trim(rest), STR_NULL,
                                     err); /* it may have blanks inside */
        value = take_last(&row);
        name = ncu_name_find(row);
        if (!name) {
                unit = take_last(&row);
                name = ncu_name_find(row);
        }
        if (!name || name->what >= NCU_METRICS || !ncu_section_fits(name, str_of(r->section)))
                return 0;
        return ncu_open_take(r, o, name, value, unit, err);
}

int ncu_text_line(struct ncu_reader *r, struct str line, struct err *err)
{
        static const struct str SECTION = STR("Section: ");
        const char *context, *stream;

        if (line.n == 0 || line.p[0] != ' ')
                return 0;
        context = find_last(line, CONTEXT);
        stream = context ? memmem(context, from(line, context).n, STREAM.p, STREAM.n) : NULL;
        if (stream && is_digit(context[CONTEXT.n]))
                return take_title(r, before(line, context), from(line, stream), err);
        if (r->layout != NCU_LAYOUT_TEXT || !r->n_open)
                return 0;
        line = str_trim(line);
        if (!str_has_prefix(line, SECTION))
                return line.n ? take_row(r, line, err) : 0;
        line.n = MIN(line.n, SECTION.n + sizeof(r->section) - 1);
        memcpy(r->section, line.p + SECTION.n, line.n - SECTION.n);
        r->section[line.n - SECTION.n] = '\0';
        return 0;
}
