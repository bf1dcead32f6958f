#include "unit/unit.h"

#include "kinds/cron.h"

static int64_t at(const char *text)
{
        usec_t t;

        assert_true(time_parse(str_of(text), &t));
        return (int64_t)(t / USEC_PER_SEC);
}

static struct zone *zone(const char *name)
{
        struct err err = ERR_INIT;
        struct zone *z = zone_load(NULL, name, &err);

        if (!z)
                fail_msg("%s", err.text);
        return z;
}

static struct cron cron(const char *text)
{
        struct err err = ERR_INIT;
        struct cron c;

        if (cron_parse(str_of(text), &c, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return c;
}

static const char *text_of(int64_t t)
{
        static char text[TIME_TEXT_MAX];

        return t < 0 ? "never" : time_format((usec_t)t * USEC_PER_SEC, text);
}

static void assert_next(const char *text, const char *zone_name, const char *after, const char *expected)
{
        _cleanup_(zone_free) struct zone *z = zone(zone_name);
        struct cron c = cron(text);
        const char *found = text_of(cron_next(&c, z, at(after)));

        if (!streq(found, expected))
                fail_msg("'%s' in %s after %s: %s, not %s", text, zone_name, after, found, expected);
}

static void test_zones(void **state)
{
        static const struct {
                const char *zone, *at;
                int hours_x4;
        } cases[] = {
                {"UTC", "2026-07-01T00:00:00Z", 0},
                {"Europe/Berlin", "2026-03-29T00:59:59Z", 4},
                {"Europe/Berlin", "2026-03-29T01:00:00Z", 8},
                {"Europe/Berlin", "2026-10-25T00:59:59Z", 8},
                {"Europe/Berlin", "2026-10-25T01:00:00Z", 4},
                {"Europe/Berlin", "2061-07-01T00:00:00Z", 8}, /* by the rule */
                {"Europe/Berlin", "2061-12-01T00:00:00Z", 4},
                {"America/New_York", "2026-07-01T00:00:00Z", -16},
                {"Asia/Kathmandu", "2026-07-01T00:00:00Z", 23},
                {"Australia/Lord_Howe", "2060-01-01T00:00:00Z",
                 44}, /* half an hour of summer, over the new year */
                {"Australia/Lord_Howe", "2060-07-01T00:00:00Z", 42},
                {"America/Nuuk", "2061-07-01T00:00:00Z", -4},
                {"Africa/Casablanca", "2086-02-01T00:00:00Z", 4},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(zone_free) struct zone *z = zone(cases[i].zone);
                int32_t found = zone_offset(z, at(cases[i].at));

                if (found != cases[i].hours_x4 * 900)
                        fail_msg("%s at %s: %d", cases[i].zone, cases[i].at, found);
        }
}

static void test_zones_that_are_none(void **state)
{
        static const char *const names[] = {"",    "Europe/Atlantis", "../../etc/passwd", "/etc/localtime",
                                            "a b", "Europe"};

        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct err err = ERR_INIT;

                assert_null(zone_load(NULL, names[i], &err));
                assert_true(err.code != E_OK && err.text[0]);
        }
}

static void test_damaged_zones_are_refused(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct err err = ERR_INIT;

        assert_int_equal(file_read("/usr/share/zoneinfo/Europe/Berlin", &text, &err), 0);
        for (size_t n = 0; n < text.n; n++) {
                assert_null(zone_parse(str_n(text.p, n), NULL));
        }
}

static void test_dates(void **state)
{
        _cleanup_(zone_free) struct zone *z = zone("UTC");

        for (int64_t day = -200000; day < 200000; day += 97) {
                struct zone_clock c;

                zone_clock(z, day * 86400 + 3661, &c);
                assert_int_equal(days_of(c.year, c.month, c.day), day);
                assert_true(c.hour == 1 && c.minute == 1 && c.weekday < 7);
        }
}

static void test_next(void **state)
{
        assert_next("* * * * *", "UTC", "2026-11-16T12:00:00Z", "2026-11-16T12:01:00Z");
        assert_next("*/15 * * * *", "UTC", "2026-11-16T12:46:10Z", "2026-11-16T13:00:00Z");
        assert_next("30 2 * * *", "Europe/Berlin", "2026-11-16T12:00:00Z", "2026-11-17T01:30:00Z");
        assert_next("0 9-17/4 * * mon-fri", "UTC", "2026-11-20T17:30:00Z", "2026-11-23T09:00:00Z");
        assert_next("0 0 1 jan,jul *", "UTC", "2026-11-16T12:00:00Z", "2027-01-01T00:00:00Z");
        assert_next("0 0 29 2 *", "UTC", "2026-11-16T12:00:00Z", "2028-02-29T00:00:00Z");
        assert_next("0 0 13 * 5", "UTC", "2026-11-01T12:00:00Z", "2026-11-06T00:00:00Z");  /* either day */
        assert_next("0 0 */2 * 1", "UTC", "2026-11-16T12:00:00Z", "2026-11-23T00:00:00Z"); /* both */
        assert_next("5 4 * * 7", "UTC", "2026-11-16T12:00:00Z", "2026-11-22T04:05:00Z");
        assert_next("@weekly", "UTC", "2026-11-16T12:00:00Z", "2026-11-22T00:00:00Z");
        assert_next("@hourly", "Asia/Kathmandu", "2026-11-16T12:00:00Z", "2026-11-16T12:15:00Z");
        assert_next("0 0 30 2 *", "UTC", "2026-11-16T12:00:00Z", "never");
}

static void test_clocks_that_are_put_forward_and_back(void **state)
{
        /* 2026-03-29 02:00 becomes 03:00 in Berlin. */
        assert_next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z");
        assert_next("30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z");
        /* 2026-10-25 03:00 becomes 02:00. */
        assert_next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z");
        assert_next("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z");
        assert_next("30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z");
        /* Half an hour at Lord Howe: 2026-10-04 02:00 becomes 02:30, 2027-04-04 02:00 becomes 01:30. */
        assert_next("45 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:45:00Z");
        assert_next("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T14:50:00Z", "2027-04-04T15:15:00Z");
}

/* As if every minute were looked at. */
static int64_t slow_next(const struct cron *c, const struct zone *z, int64_t after)
{
        for (int64_t t = after - after % 60 + 60; t < after + 3 * 86400; t += 60)
                if (cron_next(c, z, t - 60) == t)
                        return t;
        return -1;
}

static void test_skipping_leaves_nothing_out(void **state)
{
        static const char *const texts[] = {"0 0 * * *", "59 23 * * *", "30 2 * * *", "*/7 1-3 * * *",
                                            "0 */5 * * *"};
        static const char *const zones[] = {"Europe/Berlin", "Australia/Lord_Howe", "America/Havana",
                                            "Asia/Beirut"};

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                for (size_t k = 0; k < ARRAY_LEN(zones); k++) {
                        _cleanup_(zone_free) struct zone *z = zone(zones[k]);
                        struct cron c = cron(texts[i]);

                        for (int64_t t = at("2026-01-01T00:00:00Z"); t < at("2027-01-01T00:00:00Z");
                             t += 5 * 86400 + 60)
                                assert_int_equal(cron_next(&c, z, t), slow_next(&c, z, t));
                }
        }
}

static void test_last(void **state)
{
        _cleanup_(zone_free) struct zone *z = zone("UTC");
        struct cron nightly = cron("30 2 * * *"), minute = cron("* * * * *"), leap = cron("0 0 29 2 *");

        assert_string_equal(
                text_of(cron_last(&nightly, z, at("2026-11-01T00:00:00Z"), at("2026-11-16T02:30:00Z"))),
                "2026-11-16T02:30:00Z");
        assert_string_equal(
                text_of(cron_last(&nightly, z, at("2026-11-01T00:00:00Z"), at("2026-11-16T02:29:59Z"))),
                "2026-11-15T02:30:00Z");
        assert_string_equal(
                text_of(cron_last(&nightly, z, at("2026-11-16T02:30:00Z"), at("2026-11-17T02:29:00Z"))),
                "never");
        assert_string_equal(text_of(cron_last(&minute, z, 0, at("2026-11-17T02:29:30Z"))),
                            "2026-11-17T02:29:00Z");
        assert_string_equal(text_of(cron_last(&leap, z, 0, at("2026-11-17T02:29:30Z"))),
                            "2024-02-29T00:00:00Z");
        assert_string_equal(
                text_of(cron_last(&leap, z, at("2026-11-18T00:00:00Z"), at("2026-11-17T00:00:00Z"))),
                "never");
}

static void test_texts_that_are_none(void **state)
{
        static const struct {
                const char *text, *says;
        } cases[] = {
                {"", "five fields are wanted"},
                {"* * * *", "five fields are wanted"},
                {"* * * * * *", "five fields are wanted"},
                {"@every 5m", "five fields are wanted"},
                {"CRON_TZ=UTC * * * * *", "five fields are wanted"},
                {"60 * * * *", "minute: '60' is out of its range, 0 to 59"},
                {"* 24 * * *", "hour: '24' is out of its range"},
                {"* * 0 * *", "day of the month: '0' is out of its range, 1 to 31"},
                {"* * * foo *", "month: 'foo' is none; 1 to 12 are"},
                {"* * * * 8", "day of the week: '8' is out of its range"},
                {"*/0 * * * *", "minute: '0' is no step"},
                {"5-1 * * * *", "minute: '5-1' is out of its range"},
                {"1,,2 * * * *", "minute: '' is none"},
                {"99999999999 * * * *", "minute: '99999999999' is none"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;
                struct cron c;

                assert_true(cron_parse(str_of(cases[i].text), &c, &err) < 0);
                if (!strstr(err.text, cases[i].says))
                        fail_msg("'%s': %s", cases[i].text, err.text);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zones),
        cmocka_unit_test(test_zones_that_are_none),
        cmocka_unit_test(test_damaged_zones_are_refused),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_clocks_that_are_put_forward_and_back),
        cmocka_unit_test(test_skipping_leaves_nothing_out),
        cmocka_unit_test(test_last),
        cmocka_unit_test(test_texts_that_are_none),
};

UNIT_MAIN(tests)
