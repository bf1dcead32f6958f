#include "json/internal.h"
#include "json/patch.h"

struct differ {
        struct arena *arena;
        struct json *operations;
        struct buf path; /* JSON Pointer of what is being compared */
};

static void push_key(struct differ *d, struct str key)
{
        buf_addc(&d->path, '/');
        for (size_t i = 0; i < key.n; i++) {
                if (key.p[i] == '~')
                        buf_adds(&d->path, "~0");
                else if (key.p[i] == '/')
                        buf_adds(&d->path, "~1");
                else
                        buf_addc(&d->path, key.p[i]);
        }
}

static void push_index(struct differ *d, size_t i)
{
        buf_printf(&d->path, "/%zu", i);
}

static void pop(struct differ *d, size_t n)
{
        d->path.n = n;
}

/* VALUE NULL: a remove. */
static void emit(struct differ *d, const char *op, const struct json *value)
{
        struct json *o = json_object(d->arena);

        json_add(d->arena, o, STR("op"), json_string(d->arena, op));
        json_add(d->arena, o, STR("path"), json_stringn(d->arena, d->path.p ? buf_str(&d->path) : STR("")));
        if (value)
                json_add(d->arena, o, STR("value"), json_copy(d->arena, value));
        json_append(d->operations, o);
}

static void diff_node(struct differ *d, const struct json *from, const struct json *to);

static void diff_object(struct differ *d, const struct json *from, const struct json *to)
{
        _cleanup_(lookup_done) struct lookup in_from = {0}, in_to = {0};
        size_t here = d->path.n;

        lookup_init(&in_from, from);
        lookup_init(&in_to, to);
        json_foreach (old, from) {
                push_key(d, json_key(old));
                if (!lookup_get(&in_to, json_key(old)))
                        emit(d, "remove", NULL);
                pop(d, here);
        }
        json_foreach (j, to) {
                const struct json *old = lookup_get(&in_from, json_key(j));

                push_key(d, json_key(j));
                if (old)
                        diff_node(d, old, j);
                else
                        emit(d, "add", j);
                pop(d, here);
        }
}

/* The elements of ARRAY side by side. */
static struct json **elements(const struct json *array)
{
        struct json **v = xcalloc(array->len, sizeof(*v)), **at = v;

        json_foreach (j, array)
                *at++ = j;
        return v;
}

/* What is the same at both ends stays; what is between is compared in pairs, and then cut or filled up. */
static void diff_array(struct differ *d, const struct json *from, const struct json *to)
{
        _cleanup_(free_ptr) struct json **x = elements(from), **y = elements(to);
        size_t head = 0, nx = from->len, ny = to->len, here = d->path.n, i;

        while (head < nx && head < ny && json_equal(x[head], y[head]))
                head++;
        while (nx > head && ny > head && json_equal(x[nx - 1], y[ny - 1])) {
                nx--;
                ny--;
        }
        for (i = head; i < nx && i < ny; i++) {
                push_index(d, i);
                diff_node(d, x[i], y[i]);
                pop(d, here);
        }
        for (i = nx; i > ny; i--) {
                push_index(d, i - 1);
                emit(d, "remove", NULL);
                pop(d, here);
        }
        for (i = nx; i < ny; i++) {
                push_index(d, i);
                emit(d, "add", y[i]);
                pop(d, here);
        }
}

static void diff_node(struct differ *d, const struct json *from, const struct json *to)
{
        if (json_is(from, JSON_OBJECT) && json_is(to, JSON_OBJECT))
                diff_object(d, from, to);
        else if (json_is(from, JSON_ARRAY) && json_is(to, JSON_ARRAY))
                diff_array(d, from, to);
        else if (!json_equal(from, to))
                emit(d, "replace", to);
}

struct json *json_diff(struct arena *a, const struct json *from, const struct json *to)
{
        struct differ d = {.arena = a, .operations = json_array(a), .path = BUF_INIT(SIZE_MAX)};

        if (from && to)
                diff_node(&d, from, to);
        else if (to)
                emit(&d, "add", to);
        buf_done(&d.path);
        return d.operations;
}
