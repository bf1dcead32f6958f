#include "local/shape_private.h"

const struct shape SHAPE_ANYTHING = {.kind = SHAPE_ANY};

/* str_cmp(NAME, str_of(FIELD)), without looking for FIELD's end first. */
static int cmp_name(struct str name, const char *field)
{
        for (size_t i = 0; i < name.n; i++) {
                unsigned char x = (unsigned char)name.p[i], y = (unsigned char)field[i];

                if (!y)
                        return 1; /* also for a name with a NUL byte inside */
                if (x != y)
                        return x < y ? -1 : 1;
        }
        return field[name.n] ? -1 : 0;
}

const struct shape_field *shape_find(const struct shape *object, struct str name)
{
        size_t low = 0, high = object->kind == SHAPE_OBJECT ? object->n_fields : 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int cmp = cmp_name(name, object->fields[middle].name);

                if (cmp == 0)
                        return &object->fields[middle];
                if (cmp < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

const struct shape *shape_member(const struct shape *s, struct str name)
{
        const struct shape_field *field;

        if (s->kind == SHAPE_MAP)
                return s->elem;
        field = shape_find(s, name);
        return field ? field->shape : &SHAPE_ANYTHING;
}

static int by_field_name(const void *x, const void *y)
{
        return strcmp(((const struct shape_field *)x)->name, ((const struct shape_field *)y)->name);
}

void shape_sort_fields(struct shape_field *fields, size_t n)
{
        if (n)
                qsort(fields, n, sizeof(*fields), by_field_name);
}

struct shapes *shapes_builtin(void)
{
        struct shapes *s = xcalloc(1, sizeof(*s));
        struct err err = ERR_INIT;

        /* The table comes with the program, and a unit test reads all of it. */
        if (shapes_read_table(s, str_of(SHAPE_TABLE), &err) < 0)
                abort();
        return s;
}

void shapes_free(struct shapes *s)
{
        if (!s)
                return;
        vec_done(&s->sorted);
        arena_done(&s->arena);
        free(s);
}

const struct shape *shapes_root(const struct shapes *s)
{
        return s->root;
}

const struct shape *shapes_find(const struct shapes *s, const char *name)
{
        size_t low = 0, high = s->sorted.n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int cmp = strcmp(name, s->sorted.v[middle]->name);

                if (cmp == 0)
                        return s->sorted.v[middle];
                if (cmp < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

size_t shapes_count(const struct shapes *s)
{
        return s->sorted.n;
}

const struct shape *shapes_get(const struct shapes *s, size_t i)
{
        return s->sorted.v[i];
}
