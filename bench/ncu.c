/*
 * bench-ncu - how fast what Nsight Compute wrote is read, on one core: 20 MB of each layout, made in memory, fed in the
 * pieces that a pipe gives. The best of several turns counts, in time of this thread, so that other load cancels.
 */
#include <malloc.h>
#include <stdio.h>

#include "probe/ncu/ncu.h"

enum { BYTES = 20 << 20, PIECE = 64 << 10, TURNS = 7, FAILED = 1, SLOWER = 3, KERNELS = 40, FILLERS = 500 };

static const double AT_LEAST = 200, MEMORY_MAX = 1 << 20; /* MB a second, bytes */

static const char *const METRICS[][2] = {
        {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%"},
        {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%"},
        {"gpu__time_duration.sum", "ns"},
        {"l1tex__throughput.avg.pct_of_peak_sustained_active", "%"},
        {"launch__waves_per_multiprocessor", ""},
        {"lts__throughput.avg.pct_of_peak_sustained_elapsed", "%"},
        {"profiler__replayer_passes", "pass"},
        {"sm__maximum_warps_per_active_cycle_pct", "%"},
        {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"},
        {"sm__warps_active.avg.pct_of_peak_sustained_active", "%"},
};
static const char *const LABELS[][2] = {
        {"DRAM Frequency", "hz"},         {"SM Frequency", "hz"},       {"Elapsed Cycles", "cycle"},
        {"Memory Throughput", "%"},       {"DRAM Throughput", "%"},     {"Duration", "ns"},
        {"L1/TEX Cache Throughput", "%"}, {"L2 Cache Throughput", "%"}, {"SM Active Cycles", "cycle"},
        {"Compute (SM) Throughput", "%"},
};
static const char *const MORE_LABELS[] = {
        "Executed Ipc Active",
        "Issue Slots Busy",
        "Mem Busy",
        "L1/TEX Hit Rate",
        "No Eligible",
        "Warp Cycles Per Issued Instruction",
        "Issued Instructions",
        "Registers Per Thread",
        "Threads",
        "Block Limit Registers",
        "Theoretical Occupancy",
        "Achieved Occupancy",
        "Average L2 Active Cycles",
        "Total DRAM Elapsed Cycles",
        "Branch Efficiency",
        "Average SMSP Active Cycles",
        "Static Shared Memory Per Block",
        "Waves Per SM",
        "Max Bandwidth",
        "Avg. Executed Instructions Per Scheduler",
};

#define HEAD_OF_HEADER                                                   \
        "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel " \
        "Name\",\"Context\",\"Stream\",\"Block "                         \
        "Size\",\"Grid Size\",\"Device\",\"CC\""

static void add_head(struct buf *out, unsigned launch)
{
        buf_printf(out,
                   "\"%u\",\"6153\",\"python3.11\",\"127.0.0.1\",\"void kernel_%u<float, 128, 64>(Array<long "
                   "long, 1, "
                   "C, mutable, aligned>, const float *, float *, int)\",\"1\",\"7\",\"(256, 1, "
                   "1)\",\"(1024, 1, "
                   "1)\",\"0\",\"8.6\"",
                   launch, launch % KERNELS);
}

static void add_filler(struct buf *out, unsigned launch, unsigned i)
{
        static const char *const values[] = {"0", "0.00",     "14.74", "8,388,956",
                                             "1", "2,574.10", "100",   "33.33"};

        buf_printf(out, ",\"%s\"", values[(launch * 7 + i) % ARRAY_LEN(values)]);
}

static void make_wide(struct buf *out)
{
        buf_adds(out, HEAD_OF_HEADER);
        for (unsigned i = 0; i < FILLERS; i++)
                buf_printf(out, ",\"derived__metric_%u.avg.pct_of_peak_sustained_active\"", i);
        for (size_t i = 0; i < ARRAY_LEN(METRICS); i++)
                buf_printf(out, ",\"%s\"", METRICS[i][0]);
        buf_adds(out, "\n\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"");
        for (unsigned i = 0; i < FILLERS; i++)
                buf_adds(out, ",\"cycle\"");
        for (size_t i = 0; i < ARRAY_LEN(METRICS); i++)
                buf_printf(out, ",\"%s\"", METRICS[i][1]);
        buf_addc(out, '\n');
        for (unsigned launch = 0; out->n < BYTES; launch++) {
                add_head(out, launch);
                for (unsigned i = 0; i < FILLERS; i++)
                        add_filler(out, launch, i);
                for (size_t i = 0; i < ARRAY_LEN(METRICS); i++)
                        buf_printf(out, i == 2 ? ",\"4,8%02u\"" : ",\"%u.25\"",
                                   (launch + (unsigned)i) % 90 + 1);
                buf_addc(out, '\n');
        }
}

static void add_row(struct buf *out, unsigned launch, const char *section, const char *label,
                    const char *unit, const char *value)
{
        add_head(out, launch);
        buf_printf(out, ",\"%s\",\"%s\",\"%s\",\"%s\",\n", section, label, unit, value);
}

static void make_long(struct buf *out)
{
        char value[32];

        buf_adds(out,
                 HEAD_OF_HEADER ",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule "
                                "Name\",\"Rule Type\",\"Rule Description\"\n");
        for (unsigned launch = 0; out->n < BYTES; launch++) {
                for (unsigned i = 0; i < ARRAY_LEN(LABELS); i++) {
                        bool whole = LABELS[i][1][0] != '%';

                        snprintf(value, sizeof(value), whole ? "4,8%02u" : "%u.25", (launch + i) % 90 + 1);
                        add_row(out, launch, "GPU Speed Of Light Throughput", LABELS[i][0], LABELS[i][1],
                                value);
                }
                for (unsigned i = 0; i < ARRAY_LEN(MORE_LABELS); i++)
                        add_row(out, launch, "Launch Statistics", MORE_LABELS[i], "", "12.50");
                add_head(out, launch);
                buf_adds(out,
                         ",\"SpeedOfLight\",\"\",\"\",\"\",\"SOLBottleneck\",\"OPT\",\"This kernel grid is "
                         "too small to fill the resources, \"\"see\"\" the guide\"\n");
        }
}

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_launch(void *arg, const struct ncu_launch *launch)
{
        ncu_sum_add(arg, launch);
}

struct turn {
        double seconds;
        double memory; /* of reader and sum at the end */
        uint64_t launches;
};

static struct turn read_all(struct str text)
{
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        _cleanup_(ncu_sum_free) struct ncu_sum *sum = ncu_sum_new();
        _cleanup_(ncu_reader_free) struct ncu_reader *r = ncu_reader_new(on_launch, sum);
        struct err err = ERR_INIT;
        double start = now();
        int failed = 0;

        for (size_t at = 0; at < text.n && !failed; at += PIECE)
                failed = ncu_reader_feed(r, str_n(text.p + at, MIN(text.n - at, (size_t)PIECE)), &err);
        if (failed || ncu_reader_end(r, &err) < 0) {
                fprintf(stderr, "bench-ncu: %s\n", err.text);
                exit(FAILED);
        }
        return (struct turn){now() - start, (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before),
                             ncu_sum_launches(sum)};
}

static bool measure(const char *name, void (*make)(struct buf *out))
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(BYTES + (1 << 20));
        double best = 1e9, mbps, memory = 0;
        struct turn t = {0};

        make(&text);
        for (int i = 0; i < TURNS; i++) {
                t = read_all(buf_str(&text));
                best = MIN(best, t.seconds);
                memory = MAX(memory, t.memory);
        }
        mbps = (double)text.n / 1e6 / best;
        printf("%-6s %.1f MB, %llu launches: %6.0f MB/s (asked %.0f), %.0f KiB of memory (at most %.0f)\n",
               name, (double)text.n / 1e6, (unsigned long long)t.launches, mbps, AT_LEAST, memory / 1024,
               MEMORY_MAX / 1024);
        return mbps >= AT_LEAST && memory <= MEMORY_MAX;
}

int main(void)
{
        bool wide = measure("wide", make_wide), rows = measure("long", make_long);

        return wide && rows ? 0 : SLOWER;
}
