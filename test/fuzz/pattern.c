/*
 * A pattern and a text, parted by a newline: whatever the two are, the answer comes, and does not depend on what a
 * group around the pattern would change.
 */
#include "json/pattern.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str text = str_n((const char *)data, size), expression = str_split(&text, '\n');
        struct err err = ERR_INIT;
        struct pattern *p = pattern_new(&a, expression, &err), *grouped;
        bool matches;

        if (!p) {
                REQUIRE(err.code != E_OK && err.text[0]);
                return 0;
        }
        if (!text.p)
                text = STR("");
        matches = pattern_match(p, text);
        grouped = pattern_new(&a, str_of(arena_printf(&a, "(?:%.*s){1}", STR_ARG(expression))), NULL);
        REQUIRE(!grouped || memchr(expression.p, '\0', expression.n) ||
                pattern_match(grouped, text) == matches);
        return 0;
}
