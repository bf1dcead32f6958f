/* What a value has that its type does not allow, in the words of structured-merge-diff. */
#include "local/fields_internal.h"

enum { CHECK_TEXT_MAX = 1 << 16 };

/* Where the walk is, from the innermost element up: printed only when there is something to say of it. */
struct place {
        const struct place *up;
        const struct element *at;
};

struct check {
        struct arena *a;
        const struct place *place;
        struct buf lines;
        size_t n;
};

static void print_place(struct buf *out, const struct place *place)
{
        if (!place)
                return;
        print_place(out, place->up);
        element_print(out, place->at);
}

static void complain(struct check *c, const char *fmt, ...) _printf_(2, 3);
static void complain(struct check *c, const char *fmt, ...)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(CHECK_TEXT_MAX);
        va_list ap;

        print_place(&path, c->place);
        va_start(ap, fmt);
        buf_printf(&c->lines, "%s%.*s%s%s", c->n++ ? "\n  " : "", STR_ARG(buf_str(&path)), path.n ? ": " : "",
                   arena_vprintf(c->a, fmt, ap));
        va_end(ap);
}

/* "expected map, got &{5}": what %v makes of a value inside its wrapper. */
static void complain_of(struct check *c, const char *before, const struct json *value, const char *after,
                        void (*print)(struct buf *, const struct json *))
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(CHECK_TEXT_MAX);

        print(&text, value);
        complain(c, "%s%.*s%s", before, STR_ARG(buf_str(&text)), after);
}

static void check(struct check *c, struct type t, const struct json *value);

static void check_below(struct check *c, struct type t, const struct element *at, const struct json *value)
{
        struct place here = {c->place, at};

        c->place = &here;
        check(c, t, value);
        c->place = here.up;
}

static void check_scalar(struct check *c, const struct shape *s, const struct json *value)
{
        if (value->type == JSON_NULL)
                return;
        if (s->kind == SHAPE_INTEGER || s->kind == SHAPE_NUMBER) {
                if (value->type != JSON_NUMBER)
                        complain(c, "expected numeric (int or float), got *value.valueUnstructured");
        } else if (s->kind == SHAPE_BOOLEAN) {
                if (value->type != JSON_BOOL)
                        complain_of(c, "expected boolean, got &{", value, "}", go_print);
        } else if (s->kind == SHAPE_STRING && (!s->format || !s->format[0] || streq(s->format, "byte"))) {
                if (value->type != JSON_STRING)
                        complain_of(c, "expected string, got &value.valueUnstructured{Value:", value, "}",
                                    go_print_syntax);
        }
}

static void check_map(struct check *c, struct type t, const struct json *value)
{
        json_foreach (member, value) {
                struct element at = {ELEMENT_FIELD, str_n(member->key, member->key_len), NULL};
                struct type below;
                bool known;

                type_member(t, at.text, &below, &known);
                if (!known) {
                        struct place here = {c->place, &at};

                        c->place = &here;
                        complain(c, "field not declared in schema");
                        c->place = here.up;
                        return;
                }
                check_below(c, below, &at, member);
        }
}

static int by_element(const void *x, const void *y)
{
        const struct item *l = x, *r = y;
        int cmp = element_cmp(&l->at, &r->at);

        return cmp ? cmp : l->index < r->index ? -1 : 1;
}

/* Which elements come a second time. */
static bool *find_doubles(struct arena *a, const struct item *items, size_t n)
{
        struct item *sorted = arena_memdup(a, items, n * sizeof(*items));
        bool *doubled = arena_new_array(a, bool, n);

        qsort(sorted, n, sizeof(*sorted), by_element);
        for (size_t i = 1; i < n; i++)
                doubled[sorted[i].index] = element_cmp(&sorted[i - 1].at, &sorted[i].at) == 0;
        return doubled;
}

static void check_list(struct check *c, struct type t, const struct json *value)
{
        struct item *items = arena_alloc(c->a, (value->len + 1) * sizeof(*items));
        const char *wrong = NULL;
        bool *doubled;
        size_t n = 0;

        json_foreach (item, value) {
                items[n] = (struct item){.value = item, .index = n};
                wrong = item_element(c->a, t, item, n, &items[n].at);
                if (wrong)
                        break;
                n++;
        }
        doubled = n > 1 && type_is_keyed(t) ? find_doubles(c->a, items, n) : NULL;
        for (size_t i = 0; i < n; i++) {
                if (doubled && doubled[i]) {
                        _cleanup_(buf_done) struct buf text = BUF_INIT(CHECK_TEXT_MAX);

                        element_print(&text, &items[i].at);
                        complain(c, "duplicate entries for key %.*s", STR_ARG(buf_str(&text)));
                }
                check_below(c, type_elem(t), &items[i].at, items[i].value);
        }
        if (wrong)
                complain(c, "element %zu: %s", n, wrong);
}

static void check(struct check *c, struct type t, const struct json *value)
{
        enum typed_kind kind = type_kind(t, value);

        if (type_is_any(t) || value->type == JSON_NULL)
                return;
        if (kind == TYPED_SCALAR)
                check_scalar(c, t.shape, value);
        else if (kind == TYPED_MAP && value->type != JSON_OBJECT)
                complain_of(c, "expected map, got &{", value, "}", go_print);
        else if (kind == TYPED_LIST && value->type != JSON_ARRAY)
                complain_of(c, "expected list, got &{", value, "}", go_print);
        else if (kind == TYPED_MAP)
                check_map(c, t, value);
        else
                check_list(c, t, value);
}

const char *typed_check(struct arena *a, struct type t, const struct json *value)
{
        struct check c = {.a = a, .lines = BUF_INIT(CHECK_TEXT_MAX)};
        const char *text = NULL;

        check(&c, t, value);
        if (c.n)
                text = arena_printf(a, c.n > 1 ? "errors:\n  %.*s" : "%.*s", STR_ARG(buf_str(&c.lines)));
        buf_done(&c.lines);
        return text;
}
