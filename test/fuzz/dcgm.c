/*
 * What answers as a node's dcgm-exporter: whatever the bytes are, the GPUs are between 0 and 100 per cent busy, or nothing is said
 * of them. Lines stand for themselves: what comes after a good one does not take it away.
 */
#include "fuzz/fuzz.h"
#include "kinds/cuda/placement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char more[] = "\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 100\n";
        double busy = place_busy_of(str_n((const char *)data, size)), again;
        char *text;

        REQUIRE(busy == -1 || (busy >= 0 && busy <= 100));
        text = xmalloc(size + sizeof(more));
        if (size)
                memcpy(text, data, size);
        memcpy(text + size, more, sizeof(more));
        again = place_busy_of(str_n(text, size + sizeof(more) - 1));
        REQUIRE(busy == -1 ? again == 100 : again >= busy && again <= 100);
        free(text);
        return 0;
}
