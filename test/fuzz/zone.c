/*
 * TZif files: whatever is in them, nothing is read outside, and every moment has an offset under 26 hours.
 */
#include "fuzz/fuzz.h"
#include "kinds/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(zone_free) struct zone *z = zone_parse(str_n((const char *)data, size), NULL);
        struct cron c;
        int64_t next;

        if (!z)
                return 0;
        for (int64_t t = -((int64_t)1 << 34); t < (int64_t)1 << 34; t += (int64_t)1 << 29)
                REQUIRE(zone_offset(z, t) < 26 * 3600 && zone_offset(z, t) > -26 * 3600);
        REQUIRE(cron_parse(str_of("30 2 * * *"), &c, NULL) == 0);
        next = cron_next(&c, z, 1790000000);
        REQUIRE(next < 0 || next > 1790000000);
        return 0;
}
