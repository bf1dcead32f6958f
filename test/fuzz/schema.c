/*
 * A schema and a value, parted by a NUL byte: defaulting and pruning come to rest after one pass, and validation says
 * the same whether or not it is asked why.
 */
#include "json/schema.h"
#include "fuzz/fuzz.h"
#include "json/doc.h"

static void check_report(const struct schema_report *report, bool valid)
{
        REQUIRE(valid == (report->n == 0) && report->n <= 64);
        for (size_t i = 0; i < report->n; i++) {
                const struct schema_cause *cause = &report->causes[i];

                REQUIRE(cause->field && cause->message && cause->at && schema_cause_reason(cause->type));
                REQUIRE(utf8_valid(cause->message, strlen(cause->message)));
        }
}

static void check_validation(const struct schema *s, const struct json *value, struct arena *a)
{
        struct schema_report report = {0};
        bool valid = schema_validate(s, value, a, &report);

        check_report(&report, valid);
        REQUIRE(schema_validate(s, value, NULL, NULL) == valid);
}

static void check_shape(const struct schema *s, struct json *value, struct arena *a)
{
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(1 << 20);
        struct json *again;

        schema_default(s, value, a);
        again = json_copy(a, value);
        schema_default(s, again, a);
        REQUIRE(json_equal(value, again));

        schema_prune(s, value, &dropped);
        REQUIRE((dropped.n == 0) == json_equal(value, again));
        again = json_copy(a, value);
        schema_prune(s, again, NULL);
        REQUIRE(json_equal(value, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(schema_free) struct schema *s = NULL;
        struct str value_text = str_n((const char *)data, size), spec_text = str_split(&value_text, '\0');
        struct json *spec = json_parse(&a, spec_text, NULL, NULL), *value;
        struct err err = ERR_INIT;

        if (!spec)
                return 0;
        s = schema_new(spec, &err);
        REQUIRE(s || (err.code != E_OK && err.text[0]));
        value = s && value_text.p ? json_parse(&a, value_text, NULL, NULL) : NULL;
        if (!value)
                return 0;
        check_validation(s, value, &a);
        check_shape(s, value, &a);
        check_validation(s, value, &a);
        return 0;
}
