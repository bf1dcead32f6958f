/* Server-sent events out of bytes that come as they like. */
#include "unit/unit.h"

#include "probe/load/sse.h"

struct seen {
        struct sse sse;
        struct buf text; /* every event, in brackets */
        unsigned n, fail_at;
        struct err err;
        const char *in, *in_end; /* the bytes that are fed */
        bool in_place;           /* the last event lay in them */
};

static int on_event(void *arg, struct str data, struct err *err)
{
        struct seen *s = arg;

        s->in_place = data.p >= s->in && data.p + data.n <= s->in_end;
        buf_addc(&s->text, '[');
        buf_addstr(&s->text, data);
        buf_addc(&s->text, ']');
        if (++s->n == s->fail_at)
                return err_set(err, E_CANCELED, "enough");
        return 0;
}

static void begin(struct seen *s)
{
        *s = (struct seen){.text = BUF_INIT(SIZE_MAX), .err = ERR_INIT};
        sse_init(&s->sse);
}

static void done(struct seen *s)
{
        sse_done(&s->sse);
        buf_done(&s->text);
}

/* The bytes are copied to a place of their exact size, so that a sanitizer sees whoever reads beyond. */
static int feed(struct seen *s, struct str bytes)
{
        _cleanup_(free_ptr) char *copy = xmemdup(bytes.p, bytes.n);

        s->in = copy;
        s->in_end = copy + bytes.n;
        return sse_feed(&s->sse, str_n(copy, bytes.n), on_event, s, &s->err);
}

static int feed_pieces(struct seen *s, struct str bytes, size_t piece)
{
        for (size_t at = 0; at < bytes.n; at += piece)
                if (feed(s, str_n(bytes.p + at, MIN(piece, bytes.n - at))) < 0)
                        return -1;
        return 0;
}

/* However the stream is cut, it gives the same events and the same end. */
static void check(struct str stream, const char *events, bool ends_well)
{
        for (size_t piece = 1; piece <= stream.n; piece++) {
                struct seen s;

                begin(&s);
                assert_int_equal(feed_pieces(&s, stream, piece), 0);
                assert_str(buf_str(&s.text), events);
                assert_int_equal(sse_end(&s.sse, &s.err) == 0, ends_well);
                if (!ends_well)
                        assert_int_equal(s.err.code, E_PROTOCOL);
                done(&s);
        }
}

static void test_line_ends(void **state)
{
        check(STR("data: a\n\ndata: b\n\n"), "[a][b]", true);
        check(STR("data: a\r\n\r\ndata: b\r\n\r\n"), "[a][b]", true);
        check(STR("data: a\r\rdata: b\r\r"), "[a][b]", true);
        check(STR("data: a\r\n\ndata: b\n\r\ndata: c\r\r\n"), "[a][b][c]", true);
        check(STR("data: a\r\n\n\r\n\n\ndata: b\n\r"), "[a][b]", true);
}

static void test_several_data_lines_are_joined(void **state)
{
        check(STR("data: a\ndata: b\ndata: c\n\ndata: d\n\n"), "[a\nb\nc][d]", true);
        check(STR("data: a\ndata\ndata:\n\n"), "[a\n\n]", true);
        check(STR("data\n\ndata\ndata\n\n"), "[][\n]", true);
}

static void test_one_blank_after_the_colon_is_no_data(void **state)
{
        check(STR("data:a\n\ndata:  b \n\ndata:\tc\n\n"), "[a][ b ][\tc]", true);
}

static void test_other_fields_and_comments_are_passed_over(void **state)
{
        check(STR(": hello\n\nevent: x\nid: 1\nretry: 5\ndata: a\n:\ndatax: b\ndat: c\n data: d\n\n"), "[a]",
              true);
        check(STR("event: x\n\n"), "", true);
        check(STR(":"), "", true);
}

static void test_a_byte_order_mark_only_at_the_start(void **state)
{
        check(STR("\xEF\xBB\xBF"
                  "data: a\n\n\xEF\xBB\xBF"
                  "data: b\n\ndata: c\n\n"),
              "[a][c]", true);
        check(STR("\xEF\xBB\xBF\ndata: a\n\n"), "[a]", true);
}

static void test_half_a_character(void **state)
{
        check(STR("data: gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\n\n"), "[gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80]",
              true);
}

static void test_a_stream_that_ends_in_the_middle(void **state)
{
        check(STR("data: a\n\ndata: b\n"), "[a]", false);
        check(STR("data: a\n\ndata: b"), "[a]", false);
        check(STR("data: a\n\nd"), "[a]", false);
        check(STR("data: a\n\ndata: b\r"), "[a]", false);
        check(STR("data: a\n\n: ping"), "[a]", true);
}

static void test_nothing_is_copied_without_need(void **state)
{
        struct seen s;

        begin(&s);
        assert_int_equal(feed(&s, STR("data: a\n\ndata: b\n\n")), 0);
        assert_true(s.in_place);
        assert_int_equal(s.sse.data.cap + s.sse.line.cap, 0);
        assert_int_equal(feed(&s, STR("data: c\nid: 1\n\n")), 0);
        assert_true(s.in_place);
        assert_int_equal(feed(&s, STR("data: d\n")), 0);
        assert_int_equal(feed(&s, STR("\n")), 0);
        assert_false(s.in_place);
        assert_str(buf_str(&s.text), "[a][b][c][d]");
        done(&s);
}

static void test_an_event_that_is_too_large(void **state)
{
        _cleanup_(buf_done) struct buf big = BUF_INIT(SIZE_MAX);

        buf_adds(&big, "data: ");
        memset(buf_reserve(&big, SSE_EVENT_MAX), 'x', SSE_EVENT_MAX);
        big.n += SSE_EVENT_MAX;
        for (int over = 0; over < 2; over++) {
                for (size_t piece = 4099; piece < big.n * 2; piece *= 2) {
                        struct seen s;

                        begin(&s);
                        assert_int_equal(feed_pieces(&s, buf_str(&big), piece), 0);
                        assert_int_equal(feed(&s, over ? STR("y\n\n") : STR("\n\n")), over ? -1 : 0);
                        assert_int_equal(s.err.code, over ? E_TOO_LARGE : E_OK);
                        assert_int_equal(s.n, !over);
                        done(&s);
                }
        }
}

static void test_many_lines_and_an_endless_one_are_bounded(void **state)
{
        struct seen s;
        int r = 0;

        begin(&s);
        for (size_t i = 0; i < SSE_EVENT_MAX && r == 0; i++)
                r = feed(&s, STR("data: 12345678\n"));
        assert_int_equal(r, -1);
        assert_int_equal(s.err.code, E_TOO_LARGE);
        sse_reset(&s.sse);
        assert_int_equal(s.sse.data.cap, 0);
        assert_int_equal(feed(&s, STR("data: a\n\n")), 0);
        for (r = 0; r == 0;)
                r = feed(&s, STR(": a comment without an end, in pieces of some size "));
        assert_int_equal(s.err.code, E_TOO_LARGE);
        assert_str(buf_str(&s.text), "[a]");
        done(&s);
}

static void test_the_caller_ends_it(void **state)
{
        struct seen s;

        begin(&s);
        s.fail_at = 2;
        assert_int_equal(feed(&s, STR("data: a\n\ndata: b\n\ndata: c\n\n")), -1);
        assert_int_equal(s.err.code, E_CANCELED);
        assert_str(buf_str(&s.text), "[a][b]");
        sse_reset(&s.sse);
        assert_int_equal(feed(&s, STR("data: d\n\n")), 0);
        assert_str(buf_str(&s.text), "[a][b][d]");
        done(&s);
}

/* The next stream on the same memory begins with nothing of the last. */
static void test_reset_forgets(void **state)
{
        static const char *const begun[] = {"data: x", "data: x\n", "data: x\r", "\xEF\xBB\xBF"};

        for (size_t i = 0; i < ARRAY_LEN(begun); i++) {
                struct seen s;

                begin(&s);
                assert_int_equal(feed(&s, str_of(begun[i])), 0);
                sse_reset(&s.sse);
                assert_int_equal(feed(&s, STR("\ndata: a\n\n")), 0);
                assert_int_equal(sse_end(&s.sse, NULL), 0);
                assert_str(buf_str(&s.text), "[a]");
                done(&s);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_several_data_lines_are_joined),
        cmocka_unit_test(test_one_blank_after_the_colon_is_no_data),
        cmocka_unit_test(test_other_fields_and_comments_are_passed_over),
        cmocka_unit_test(test_a_byte_order_mark_only_at_the_start),
        cmocka_unit_test(test_half_a_character),
        cmocka_unit_test(test_a_stream_that_ends_in_the_middle),
        cmocka_unit_test(test_nothing_is_copied_without_need),
        cmocka_unit_test(test_an_event_that_is_too_large),
        cmocka_unit_test(test_many_lines_and_an_endless_one_are_bounded),
        cmocka_unit_test(test_the_caller_ends_it),
        cmocka_unit_test(test_reset_forgets),
};

UNIT_MAIN(tests)
