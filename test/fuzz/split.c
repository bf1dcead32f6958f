/*
 * Watch framing: however a stream is cut into chunks, the same values come out of it, or the same error. What comes out
 * of a valid list is what the list holds when it is parsed whole.
 *
 * The first byte chooses the mode and the cutting, the rest is the stream.
 */
#include "json/split.h"
#include "fuzz/fuzz.h"
#include "json/doc.h"

enum { VALUE_MAX = 4096 };

/* Everything that was seen of a stream. */
struct outcome {
        VEC(struct str) values;
        struct arena arena;
        struct str rest;
        struct err err;
        int result;
};

static int collect(void *arg, struct str value, struct err *err)
{
        struct outcome *o = arg;

        *vec_push(&o->values) = str_n(arena_strndup(&o->arena, value.p, value.n), value.n);
        return 0;
}

/* Cuts STREAM into chunks of 1 to STEP bytes, by a simple generator. STEP 0: one chunk. */
static void run(struct outcome *o, enum json_split_mode mode, struct str stream, uint32_t step)
{
        _cleanup_(json_split_free) struct json_split *s = json_split_new(mode, VALUE_MAX, collect, o);
        uint32_t random = step;
        struct str rest = STR_NULL;

        while (stream.n && o->result == 0) {
                /* Memory of its own, so that a look beyond the chunk is seen. */
                size_t n = step ? MIN(stream.n, (size_t)(1 + (random >> 16) % step)) : stream.n;
                _cleanup_(free_ptr) char *chunk = xmemdup(stream.p, n);

                random = random * 1664525u + 1013904223u;
                o->result = json_split_feed(s, str_n(chunk, n), &o->err);
                stream = str_n(stream.p + n, stream.n - n);
        }
        if (o->result == 0)
                o->result = json_split_end(s, &rest, &o->err);
        o->rest = str_n(arena_strndup(&o->arena, rest.p, rest.n), rest.n);
}

static void outcome_done(struct outcome *o)
{
        vec_done(&o->values);
        arena_done(&o->arena);
}

DEFINE_CLEANUP_STRUCT(struct outcome, outcome_done)

static void require_same(const struct outcome *x, const struct outcome *y)
{
        REQUIRE(x->result == y->result && x->err.code == y->err.code);
        REQUIRE(x->values.n == y->values.n);
        for (size_t i = 0; i < x->values.n; i++)
                REQUIRE(str_eq(x->values.v[i], y->values.v[i]));
        REQUIRE(str_eq(x->rest, y->rest));
}

/* STREAM parsed whole is an object; its "items" are the values, and the rest is the rest. */
static void check_list(const struct outcome *o, struct str stream)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *whole = json_parse(&a, stream, NULL, NULL), *rest, *items, *kept;
        size_t i = 0;

        /* Two lists, or a name in escapes, are one list to the parser only. */
        if (!json_is(whole, JSON_OBJECT) || memmem(stream.p, stream.n, "\\u", 2) || stream.n > VALUE_MAX)
                return;
        REQUIRE(o->result == 0);
        rest = json_parse(&a, o->rest, NULL, NULL);
        REQUIRE(json_is(rest, JSON_OBJECT) && rest->len == whole->len);
        items = json_at(whole, "items");
        kept = json_at(rest, "items");
        if (!json_is(items, JSON_ARRAY)) {
                REQUIRE(json_equal(whole, rest));
                return;
        }
        REQUIRE(json_is(kept, JSON_ARRAY) && kept->len == 0 && o->values.n >= items->len);
        i = o->values.n - items->len; /* an earlier list of that name was handed on too */
        json_foreach (item, items)
                REQUIRE(json_equal(item, json_parse(&a, o->values.v[i++], NULL, NULL)));
        json_remove(whole, "items");
        json_remove(rest, "items");
        REQUIRE(json_equal(whole, rest));
}

/* Put together again with blanks between them, the values are cut the same way. */
static void check_values(const struct outcome *o)
{
        _cleanup_(buf_done) struct buf joined = BUF_INIT(SIZE_MAX);
        struct outcome again = {.result = 0};

        for (size_t i = 0; i < o->values.n; i++) {
                buf_addstr(&joined, o->values.v[i]);
                buf_addc(&joined, '\n');
        }
        run(&again, SPLIT_VALUES, buf_str(&joined), 0);
        REQUIRE(again.result == 0 && again.values.n == o->values.n);
        for (size_t i = 0; i < o->values.n; i++)
                REQUIRE(str_eq(again.values.v[i], o->values.v[i]));
        outcome_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(outcome_done) struct outcome whole = {.result = 0}, cut = {.result = 0},
                                               bytes = {.result = 0};
        enum json_split_mode mode;
        struct str stream;

        if (size == 0)
                return 0;
        mode = data[0] & 1 ? SPLIT_ITEMS : SPLIT_VALUES;
        stream = str_n((const char *)data + 1, size - 1);
        run(&whole, mode, stream, 0);
        run(&cut, mode, stream, 2 + data[0] / 2);
        run(&bytes, mode, stream, 1);
        require_same(&whole, &cut);
        require_same(&whole, &bytes);
        if (mode == SPLIT_ITEMS)
                check_list(&whole, stream);
        else
                check_values(&whole);
        return 0;
}
