/*
 * Arrays for numpy: the zip and the .npy files in it, read back byte by byte.
 */
#include "unit/unit.h"

#include <zlib.h>

#include "probe/sla/npz.h"

static uint64_t le(const char *p, size_t bytes)
{
        uint64_t n = 0;

        for (size_t i = bytes; i > 0; i--)
                n = n << 8 | (unsigned char)p[i - 1];
        return n;
}

struct found {
        char name[64];
        const char *data;
        size_t size;
};

/* The INDEX-th file, by way of the directory at the end, as every reader of zips goes. */
static struct found file_at(const struct buf *zip, size_t index)
{
        const char *end = zip->p + zip->n - 22, *line, *local;
        struct found f = {0};
        size_t name;

        assert_int_equal(le(end, 4), 0x06054b50);
        assert_true(index < le(end + 10, 2));
        assert_int_equal(le(end + 12, 4) + le(end + 16, 4), zip->n - 22);
        line = zip->p + le(end + 16, 4);
        for (; index > 0; index--)
                line += 46 + le(line + 28, 2);
        assert_int_equal(le(line, 4), 0x02014b50);
        name = le(line + 28, 2);
        memcpy(f.name, line + 46, name);
        local = zip->p + le(line + 42, 4);
        assert_int_equal(le(local, 4), 0x04034b50);
        assert_memory_equal(local + 4, line + 6, 24); /* the head before the file says the same */
        assert_int_equal(le(local + 8, 2), 0);        /* stored */
        assert_memory_equal(local + 30, f.name, name);
        f.data = local + 30 + name;
        f.size = le(local + 18, 4);
        assert_int_equal(le(local + 22, 4), f.size);
        assert_int_equal(le(local + 14, 4), crc32(0, (const unsigned char *)f.data, (uInt)f.size));
        return f;
}

/* Behind the head, which must say DESCR and N. */
static const char *numbers(const struct found *f, const char *descr, size_t n)
{
        char head[128];
        size_t length = le(f->data + 8, 2);

        snprintf(head, sizeof(head), "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }", descr, n);
        assert_memory_equal(f->data, "\x93NUMPY\x01\x00", 8);
        assert_int_equal((10 + length) % 64, 0);
        assert_memory_equal(f->data + 10, head, strlen(head));
        assert_int_equal(f->data[10 + length - 1], '\n');
        assert_int_equal(f->size, 10 + length + 8 * n);
        return f->data + 10 + length;
}

static void test_arrays_are_read_back(void **state)
{
        _cleanup_(buf_done) struct buf zip = BUF_INIT(1 << 20);
        static const double reals[] = {1.5, -0.0, 1e300, 3.25};
        static const int64_t whole[] = {100, -1, INT64_MAX};
        const struct npz_array arrays[] = {{.name = "prefill_ttft", .reals = reals, .n = 4},
                                           {.name = "prefill_isl", .whole = whole, .n = 3},
                                           {.name = "none", .n = 0}};
        struct found f;

        (void)state;
        npz_write(arrays, ARRAY_LEN(arrays), &zip);
        assert_false(zip.overflow);
        f = file_at(&zip, 0);
        assert_string_equal(f.name, "prefill_ttft.npy");
        assert_memory_equal(numbers(&f, "<f8", 4), reals, sizeof(reals));
        f = file_at(&zip, 1);
        assert_string_equal(f.name, "prefill_isl.npy");
        assert_memory_equal(numbers(&f, "<i8", 3), whole, sizeof(whole));
        f = file_at(&zip, 2);
        numbers(&f, "<f8", 0);
}

static void test_the_same_arrays_are_the_same_bytes(void **state)
{
        _cleanup_(buf_done) struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
        static const double reals[] = {1, 2, 3};
        const struct npz_array array = {.name = "a", .reals = reals, .n = 3};

        (void)state;
        npz_write(&array, 1, &x);
        npz_write(&array, 1, &y);
        assert_true(str_eq(buf_str(&x), buf_str(&y)));
}

static void test_no_arrays_are_an_empty_archive(void **state)
{
        _cleanup_(buf_done) struct buf zip = BUF_INIT(1 << 20);

        (void)state;
        npz_write(NULL, 0, &zip);
        assert_int_equal(zip.n, 22);
        assert_int_equal(le(zip.p, 4), 0x06054b50);
}

static void test_more_than_the_buffer_takes_is_an_overflow(void **state)
{
        _cleanup_(buf_done) struct buf zip = BUF_INIT(100);
        static const double reals[64] = {0};
        const struct npz_array array = {.name = "a", .reals = reals, .n = 64};

        (void)state;
        npz_write(&array, 1, &zip);
        assert_true(zip.overflow);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_are_read_back),
        cmocka_unit_test(test_the_same_arrays_are_the_same_bytes),
        cmocka_unit_test(test_no_arrays_are_an_empty_archive),
        cmocka_unit_test(test_more_than_the_buffer_takes_is_an_overflow),
};

UNIT_MAIN(tests)
