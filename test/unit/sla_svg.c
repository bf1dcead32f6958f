/*
 * Pictures: round ticks, texts that cannot break out, points that are left out, targets in and out of sight.
 */
#include "unit/markup.h"

#include <math.h>

#include "probe/sla/svg.h"

/* ---- ticks and numbers */

static void test_steps_are_round(void **state)
{
        static const struct {
                double span;
                unsigned n;
                double step;
        } cases[] = {{10, 5, 2},       {100, 10, 10}, {126, 6, 20},     {7, 6, 1},
                     {0.03, 6, 0.005}, {1e6, 6, 2e5}, {1, 4, 0.2},      {3.9e-5, 6, 5e-6},
                     {0, 6, 1},        {-5, 6, 1},    {INFINITY, 6, 1}, {5, 0, 1}};

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                double step = svg_step(cases[i].span, cases[i].n);

                if (fabs(step - cases[i].step) > 1e-9 * cases[i].step)
                        fail_msg("%g in %u: %g, not %g", cases[i].span, cases[i].n, step, cases[i].step);
        }
}

static void test_numbers_have_the_digits_of_their_step(void **state)
{
        static const struct {
                double value, step;
                const char *text;
        } cases[] = {{12500, 500, "12\u00a0500"},
                     {1234567, 1, "1\u00a0234\u00a0567"},
                     {-1234.5, 0.5, "-1\u00a0234.5"},
                     {123, 1, "123"},
                     {-123, 1, "-123"},
                     {0.05, 0.05, "0.05"},
                     {0.3, 0.1, "0.3"},
                     {2, 0.25, "2.0"},
                     {-0.0, 1, "0"},
                     {-0.001, 0.1, "0.0"},
                     {0, 0.005, "0.000"}};

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(128);

                svg_number(&out, cases[i].value, cases[i].step);
                assert_string_equal(buf_cstr(&out), cases[i].text);
        }
}

static void test_text_is_escaped(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(256);

        (void)state;
        svg_text(&out, "<b>\"Tom\" & 'Jerry'</b>\x01\n\x7f \xc3\xbc");
        assert_string_equal(buf_cstr(&out),
                            "&lt;b&gt;&quot;Tom&quot; &amp; &#39;Jerry&#39;&lt;/b&gt;    \xc3\xbc");
        buf_clear(&out);
        svg_text(&out, "a\xef\xbf\xbe"
                       "b\xef\xbf\xbf\xef\xbf\xbd"); /* the last is U+FFFD, which may stand */
        assert_string_equal(buf_cstr(&out), "a b \xef\xbf\xbd");
        buf_clear(&out);
        svg_text(&out, NULL);
        assert_int_equal(out.n, 0);
}

/* ---- pictures */

static const double X[] = {1, 2, 3}, Y[] = {10, 30, 20};
static const char *const LABELS[] = {"first", "second", "third"};

static struct svg_plot plain_plot(const struct svg_series *series, size_t n)
{
        return (struct svg_plot){.title = "A <title>",
                                 .note = "a & b",
                                 .x_label = "x (ms)",
                                 .y_label = "y",
                                 .series = series,
                                 .n = n};
}

static const char *drawn(const struct svg_plot *p, struct buf *out)
{
        buf_clear(out);
        svg_draw(p, out);
        assert_false(out->overflow);
        assert_true(assert_markup(buf_cstr(out)) > 0);
        assert_null(strstr(buf_cstr(out), "nan"));
        assert_null(strstr(buf_cstr(out), "inf"));
        return buf_cstr(out);
}

static size_t count(const char *text, const char *what)
{
        size_t n = 0;

        for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
                n++;
        return n;
}

static void test_every_point_is_there_with_its_label(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const struct svg_series s = {.x = X, .y = Y, .n = 3, .marks = true, .line = true, .labels = LABELS};
        const struct svg_plot p = plain_plot(&s, 1);
        const char *svg = drawn(&p, &out);

        (void)state;
        assert_int_equal(count(svg, "class=\"sp-mark "), 3);
        assert_int_equal(count(svg, "class=\"sp-line "), 1);
        for (size_t i = 0; i < ARRAY_LEN(LABELS); i++)
                assert_int_equal(count(svg, LABELS[i]), 1);
        assert_non_null(strstr(svg, ">A &lt;title&gt;<"));
        assert_non_null(strstr(svg, ">a &amp; b<"));
        assert_non_null(strstr(svg, ">x (ms)<"));
        assert_null(strstr(svg, "SIMULATED"));
}

static void test_a_simulation_says_so(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const struct svg_series s = {.x = X, .y = Y, .n = 3, .marks = true};
        struct svg_plot p = plain_plot(&s, 1);

        (void)state;
        p.simulated = true;
        assert_non_null(strstr(drawn(&p, &out), ">SIMULATED<"));
        assert_non_null(strstr(drawn(&p, &out), "(simulated)</title>"));
}

static void test_what_is_not_finite_is_left_out(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const double x[] = {1, NAN, 3, INFINITY}, y[] = {1, 2, NAN, 4};
        const struct svg_series s = {.x = x, .y = y, .n = 4, .marks = true, .line = true};
        const struct svg_series none = {.x = x + 1, .y = y + 1, .n = 3, .marks = true, .line = true};
        struct svg_plot p = plain_plot(&s, 1);

        (void)state;
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-mark "), 1);
        p = plain_plot(&none, 1);
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-mark "), 0);
        p = plain_plot(NULL, 0);
        drawn(&p, &out);
}

static void test_points_in_one_place_make_a_picture(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const double zero[] = {0, 0}, same[] = {5, 5}, below[] = {-3, -1};
        const struct svg_series cases[] = {{.x = zero, .y = zero, .n = 2, .marks = true},
                                           {.x = same, .y = zero, .n = 2, .marks = true},
                                           {.x = below, .y = same, .n = 2, .marks = true}};

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct svg_plot p = plain_plot(&cases[i], 1);

                assert_int_equal(count(drawn(&p, &out), "class=\"sp-mark "), 2);
        }
}

static void test_a_target_is_a_line_or_an_arrow_at_the_edge(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const struct svg_series s = {.x = X, .y = Y, .n = 3, .marks = true};
        struct svg_plot p = plain_plot(&s, 1);

        (void)state;
        p.x_target = (struct svg_target){SVG_AT_MOST, 2.5, "target 2.5 ms"};
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-target\""), 1);
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-miss\""), 1);
        p.x_target.at = 1000;
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-target\""), 0);
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-miss\""), 0); /* all of it is good */
        assert_non_null(strstr(drawn(&p, &out), "target 2.5 ms \xe2\x86\x92"));
        p.x_target = (struct svg_target){0};
        p.y_target = (struct svg_target){SVG_AT_MOST, 15, "limit"};
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-target\""), 1);
        assert_int_equal(count(drawn(&p, &out), ">limit<"), 1);
        p.y_target.at = 500;
        assert_non_null(strstr(drawn(&p, &out), ">\xe2\x86\x91 limit<"));
        p.y_target.at = NAN;
        drawn(&p, &out);
}

static void test_the_choice_is_ringed_and_labelled_once(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const struct svg_series s = {.x = X, .y = Y, .n = 3, .marks = true, .labels = LABELS};
        struct svg_plot p = plain_plot(&s, 1);
        const char *svg;

        (void)state;
        p.has_chosen = true;
        p.chosen_x = X[1];
        p.chosen_y = Y[1];
        p.chosen = "chosen: this";
        svg = drawn(&p, &out);
        assert_int_equal(count(svg, "class=\"sp-ring\""), 1);
        assert_int_equal(count(svg, ">chosen: this<"), 1);
        assert_int_equal(count(svg, ">second<"), 0);
        assert_int_equal(count(svg, ">first<"), 1);
}

static void test_a_legend_has_an_end(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        struct svg_series s[SVG_LEGEND_MAX + 5];
        struct svg_plot p = plain_plot(s, ARRAY_LEN(s));

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(s); i++)
                s[i] = (struct svg_series){
                        .name = "entry", .x = X, .y = Y, .n = 3, .line = true, .tone = (unsigned)i};
        assert_int_equal(count(drawn(&p, &out), ">entry<"), SVG_LEGEND_MAX);
        assert_non_null(strstr(drawn(&p, &out), ">and 5 more<"));
        p.ordered = true;
        p.n_tones = ARRAY_LEN(s);
        assert_non_null(strstr(drawn(&p, &out), "sp-so6"));
        assert_null(strstr(drawn(&p, &out), "class=\"sp-line sp-so7"));
        p.n = 1;
        assert_int_equal(count(drawn(&p, &out), ">entry<"), 0); /* one needs none */
}

static void test_an_axis_is_logarithmic_only_where_asked(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        const double x[] = {0.02, 1, 700};
        const struct svg_series s = {.x = x, .y = Y, .n = 3, .marks = true};
        struct svg_plot p = plain_plot(&s, 1);

        (void)state;
        assert_null(strstr(drawn(&p, &out), ">0.05<"));
        p.log_x = true;
        assert_non_null(strstr(drawn(&p, &out), ">0.05<"));
        assert_non_null(strstr(drawn(&p, &out), ">200<"));
}

static void test_many_points_with_labels_are_no_harm(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(8 << 20);
        enum { MANY = 500 };
        double x[MANY];
        const char *labels[MANY];
        const struct svg_series s = {.x = x, .y = x, .n = MANY, .marks = true, .labels = labels};
        const struct svg_plot p = plain_plot(&s, 1);

        (void)state;
        for (size_t i = 0; i < MANY; i++) {
                x[i] = (double)i;
                labels[i] = "label";
        }
        assert_int_equal(count(drawn(&p, &out), "class=\"sp-mark "), MANY);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_round),
        cmocka_unit_test(test_numbers_have_the_digits_of_their_step),
        cmocka_unit_test(test_text_is_escaped),
        cmocka_unit_test(test_every_point_is_there_with_its_label),
        cmocka_unit_test(test_a_simulation_says_so),
        cmocka_unit_test(test_what_is_not_finite_is_left_out),
        cmocka_unit_test(test_points_in_one_place_make_a_picture),
        cmocka_unit_test(test_a_target_is_a_line_or_an_arrow_at_the_edge),
        cmocka_unit_test(test_the_choice_is_ringed_and_labelled_once),
        cmocka_unit_test(test_a_legend_has_an_end),
        cmocka_unit_test(test_an_axis_is_logarithmic_only_where_asked),
        cmocka_unit_test(test_many_points_with_labels_are_no_harm),
};

UNIT_MAIN(tests)
