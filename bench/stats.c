/*
 * bench-stats - how often the verdicts are right, on samples and series of which the truth is known.
 *
 * Every figure comes from a fixed list of seeds. Two processes share the work; what they find is added up.
 */
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/simulate/simulate.h"

enum {
        EQUAL = 10000,  /* A/A comparisons */
        POWER = 200,    /* comparisons for each number of a table */
        SERIES = 10000, /* with a degradation, for each noise; and stable ones of RUNS, independent */
        RUNS = 100,
        LONG_SERIES = 500, /* of LONG_RUNS, beyond what is looked at */
        LONG_RUNS = 300,
        BASELINE = 30,
        WITHIN = 12,
        WORKERS = 2,
        CELLS = 64,
        FAILED = 1,
        MISSED = 3
};

static const double FALSE_MOST = 0.05, COMPARE_MS = 20, FOUND_3 = 0.95, FOUND_5 = 0.85, ALARMS_MOST = 1e-3;

/* What all workers count into, each in its own row. */
struct counts {
        size_t of[WORKERS][CELLS];
};

typedef void (*work_fn)(uint64_t seed, size_t *cells);

/* Does WORK for seeds 0 ... N-1 and puts the sums of all cells into RET. */
static void share(work_fn work, uint64_t n, size_t ret[CELLS])
{
        struct counts *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                                  0);

        if (all == MAP_FAILED)
                exit(FAILED);
        for (size_t i = 0; i < WORKERS; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        exit(FAILED);
                if (pid > 0)
                        continue;
                for (uint64_t seed = i; seed < n; seed += WORKERS)
                        work(seed, all->of[i]);
                _exit(0);
        }
        for (size_t i = 0; i < WORKERS; i++) {
                int status;

                if (wait(&status) < 0 || status != 0)
                        exit(FAILED);
        }
        memset(ret, 0, CELLS * sizeof(*ret));
        for (size_t i = 0; i < WORKERS; i++)
                for (size_t k = 0; k < CELLS; k++)
                        ret[k] += all->of[i][k];
        munmap(all, sizeof(*all));
}

static double share_of(size_t found, size_t n)
{
        return n ? (double)found / (double)n : NAN;
}

static double cpu_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool bench_time(void)
{
        struct simulate_plan plan = {
                .noise = SIMULATE_NORMAL, .sigma = 0.03, .sides = 2, .blocks = 30, .pods = 1, .ratio = 1.1};
        double best = INFINITY;

        for (uint64_t i = 0; i < 10; i++) {
                _cleanup_(arena_done) struct arena arena = ARENA_INIT;
                struct stats_comparison k;
                double start = cpu_ms();

                simulate_compare(&plan, i, &arena, &k);
                best = MIN(best, cpu_ms() - start);
        }
        printf("a comparison of 30 and 30 runs, 10 000 resamples: %.1f ms (at most %.0f)\n\n", best,
               COMPARE_MS);
        return best <= COMPARE_MS;
}

/* Cells: 3 for each noise (comparisons, false ones, pairs that are inconclusive), then 2 for each number of sides. */
static void equal_work(uint64_t seed, size_t *cells)
{
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        struct simulate_plan plan = simulate_equal(seed);
        struct stats_comparison k;
        size_t *of = cells + 3 * plan.noise, *by_sides = cells + 3 * SIMULATE_NOISES_ + 2 * plan.sides;
        bool wrong;

        simulate_compare(&plan, seed, &arena, &k);
        wrong = simulate_is_false(&k);
        of[0]++;
        of[1] += wrong;
        of[2] += k.pairs[0].verdict == STATS_INCONCLUSIVE;
        by_sides[0]++;
        by_sides[1] += wrong;
}

static bool bench_equal(void)
{
        size_t cells[CELLS], wrong = 0;
        double upper;

        share(equal_work, EQUAL, cells);
        printf("equal algorithms, 2 to 5 of them, 4 to 30 runs: how often any pair is called faster or "
               "slower\n"
               "  noise            comparisons  false    rate   99 %% bound  first pair inconclusive\n");
        for (size_t i = 0; i < SIMULATE_NOISES_; i++) {
                const size_t *c = cells + 3 * i;

                wrong += c[1];
                printf("  %-16s %11zu %6zu  %5.2f %%      %5.2f %%  %5.1f %%\n", simulate_noises[i], c[0],
                       c[1], 100 * share_of(c[1], c[0]), 100 * simulate_upper(c[1], c[0], 0.99),
                       100 * share_of(c[2], c[0]));
        }
        for (size_t i = 2; i <= 5; i++) {
                const size_t *c = cells + 3 * SIMULATE_NOISES_ + 2 * i;

                printf("  %zu algorithms     %11zu %6zu  %5.2f %%      %5.2f %%\n", i, c[0], c[1],
                       100 * share_of(c[1], c[0]), 100 * simulate_upper(c[1], c[0], 0.99));
        }
        upper = simulate_upper(wrong, EQUAL, 0.99);
        printf("  all              %11d %6zu  %5.2f %%      %5.2f %% (at most %.0f %%)\n\n", EQUAL, wrong,
               100 * share_of(wrong, EQUAL), 100 * upper, 100 * FALSE_MOST);
        return upper <= FALSE_MOST;
}

static const size_t power_runs[] = {4, 6, 10, 20, 30};
static const double power_ratios[] = {1, 0.98, 0.95, 0.9, 0.8};

/* Cells: a row for each number of runs, a column for each ratio. */
static void power_work(uint64_t seed, size_t *cells)
{
        size_t column = seed % ARRAY_LEN(power_ratios);
        size_t row = seed / ARRAY_LEN(power_ratios) % ARRAY_LEN(power_runs);
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        struct simulate_plan plan = {.noise = SIMULATE_OUTLIERS,
                                     .sigma = 0.03,
                                     .sides = 2,
                                     .pods = 1,
                                     .blocks = power_runs[row],
                                     .ratio = power_ratios[column]};
        struct stats_comparison k;

        simulate_compare(&plan, seed, &arena, &k);
        cells[row * ARRAY_LEN(power_ratios) + column] += k.pairs[0].verdict == STATS_LESS;
}

static void bench_power(void)
{
        size_t cells[CELLS];

        share(power_work, (uint64_t)POWER * ARRAY_LEN(power_ratios) * ARRAY_LEN(power_runs), cells);
        printf("two algorithms, 3 %% noise and outliers: how often the first is called faster when it "
               "takes\n  runs  ");
        for (size_t i = 0; i < ARRAY_LEN(power_ratios); i++)
                printf("%8.0f %%", 100 * power_ratios[i]);
        for (size_t row = 0; row < ARRAY_LEN(power_runs); row++) {
                printf("\n  %4zu  ", power_runs[row]);
                for (size_t i = 0; i < ARRAY_LEN(power_ratios); i++)
                        printf("%8.1f %%", 100 * share_of(cells[row * ARRAY_LEN(power_ratios) + i], POWER));
        }
        puts("\n");
}

static const struct {
        double ratio, sigma;
} needed[] = {{0.95, 0.03}, {0.95, 0.05}, {0.9, 0.05}, {0.9, 0.1}, {0.8, 0.2}};

static void needed_work(uint64_t seed, size_t *cells)
{
        size_t i = seed % ARRAY_LEN(needed);
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        struct simulate_plan plan = {.noise = SIMULATE_NORMAL,
                                     .sigma = needed[i].sigma,
                                     .sides = 2,
                                     .pods = 1,
                                     .blocks = stats_needed(needed[i].ratio, needed[i].sigma, 0.05, 1),
                                     .ratio = needed[i].ratio};
        struct stats_comparison k;

        simulate_compare(&plan, seed, &arena, &k);
        cells[i] += k.pairs[0].verdict == STATS_LESS;
}

static void bench_needed(void)
{
        size_t cells[CELLS];

        share(needed_work, (uint64_t)POWER * ARRAY_LEN(needed), cells);
        printf("as many runs as are said to be needed: how often they decide (meant: about 80 %%)\n");
        for (size_t i = 0; i < ARRAY_LEN(needed); i++)
                printf("  takes %2.0f %%, noise %2.0f %%: %3zu runs, %5.1f %%\n", 100 * needed[i].ratio,
                       100 * needed[i].sigma, stats_needed(needed[i].ratio, needed[i].sigma, 0.05, 1),
                       100 * share_of(cells[i], POWER));
        puts("");
}

static bool degraded(const double *v, size_t n)
{
        struct stats_change c;

        if (!stats_change(v, n, 0, &c))
                exit(FAILED);
        return c.degraded;
}

static const double found_noises[] = {0.03, 0.05};

/* Cells: for each noise, in which run after the change it was found. */
static void found_work(uint64_t seed, size_t *cells)
{
        size_t which = seed % ARRAY_LEN(found_noises);
        double v[BASELINE + WITHIN];
        struct rng r;

        stats_seed(&r, "degradation", seed);
        for (size_t n = 0; n < BASELINE; n++)
                v[n] = simulate_point(&r, 1, found_noises[which]);
        for (size_t k = 1; k <= WITHIN; k++) {
                v[BASELINE + k - 1] = simulate_point(&r, 1.1, found_noises[which]);
                if (degraded(v, BASELINE + k)) {
                        cells[which * (WITHIN + 1) + k]++;
                        return;
                }
        }
}

static bool bench_found(void)
{
        size_t cells[CELLS];
        double within[ARRAY_LEN(found_noises)][WITHIN + 1] = {{0}};

        share(found_work, (uint64_t)SERIES * ARRAY_LEN(found_noises), cells);
        printf("10 %% slower after %d runs, one run in 20 an outlier: found within so many runs, of %d "
               "series\n"
               "  noise ",
               BASELINE, SERIES);
        for (size_t k = STATS_CHANGE_LEAST; k <= WITHIN; k++)
                printf("%8zu", k);
        for (size_t i = 0; i < ARRAY_LEN(found_noises); i++) {
                printf("\n  %.0f %%   ", 100 * found_noises[i]);
                for (size_t k = 1; k <= WITHIN; k++) {
                        within[i][k] = within[i][k - 1] + share_of(cells[i * (WITHIN + 1) + k], SERIES);
                        if (k >= STATS_CHANGE_LEAST)
                                printf("%6.1f %%", 100 * within[i][k]);
                }
        }
        printf("\n  asked: %.0f %% within 8 at 3 %%, %.0f %% within 12 at 5 %%\n\n", 100 * FOUND_3,
               100 * FOUND_5);
        return within[0][8] >= FOUND_3 && within[1][12] >= FOUND_5;
}

enum stable { STABLE_3, STABLE_5, STABLE_LOG, STABLE_TIES, STABLE_LIKE, STABLE_DRIFT, STABLES_ };
static const char *const stables[STABLES_] = {
        [STABLE_3] = "3 % noise",
        [STABLE_5] = "5 % noise",
        [STABLE_LOG] = "log-normal, 5 %",
        [STABLE_TIES] = "ties, 3 %",
        [STABLE_LIKE] = "each like the one before (0.3)",
        [STABLE_DRIFT] = "drift of 2 % in 100 runs",
};

/* One in 20 is an outlier in all of them. */
static double stable_point(enum stable kind, size_t at, double *like, struct rng *r)
{
        double e = stats_normal(r);

        switch (kind) {
        case STABLE_5:
                return simulate_point(r, 1, 0.05);
        case STABLE_LOG:
                return simulate_point(r, 1 + 0.05 * (exp(0.8 * e) - 1), 0);
        case STABLE_TIES:
                return round(simulate_point(r, 1, 0.03) * 50) / 50;
        case STABLE_LIKE:
                *like = 0.3 * *like + sqrt(1 - 0.09) * e;
                return simulate_point(r, exp(0.03 * *like), 0);
        case STABLE_DRIFT:
                return simulate_point(r, 1 + 0.0002 * (double)(at % 100), 0.03);
        default:
                return simulate_point(r, 1, 0.03);
        }
}

/* Cells: for each kind, runs and alarms. */
static void count_alarms(enum stable kind, size_t runs, struct rng *r, size_t *cells)
{
        double v[LONG_RUNS], like = 0;
        bool was = false;

        for (size_t n = 0; n < runs; n++) {
                bool is;

                v[n] = stable_point(kind, n, &like, r);
                is = degraded(v, n + 1);
                cells[2 * kind]++;
                cells[2 * kind + 1] += is && !was;
                was = is;
        }
}

static void stable_work(uint64_t seed, size_t *cells)
{
        struct rng r;

        stats_seed(&r, "stable", seed);
        count_alarms(seed % STABLES_, RUNS, &r, cells);
}

static void long_work(uint64_t seed, size_t *cells)
{
        struct rng r;

        stats_seed(&r, "long", seed);
        count_alarms(seed % 2 ? STABLE_5 : STABLE_3, LONG_RUNS, &r, cells);
}

static void print_alarms(const char *name, const size_t *c)
{
        printf("  %-32s %9zu %7zu  %6.3f   %6.3f\n", name, c[0], c[1], 1000 * share_of(c[1], c[0]),
               1000 * simulate_upper(c[1], c[0], 0.99));
}

static bool bench_stable(void)
{
        size_t cells[CELLS], independent[2] = {0};

        share(stable_work, (uint64_t)SERIES * STABLES_ / STABLE_LIKE,
              cells); /* SERIES with independent runs */
        printf("stable series of %d runs, one run in 20 an outlier: false alarms\n"
               "  series                                runs  alarms  /1 000   99 %% bound\n",
               RUNS);
        for (size_t i = 0; i < STABLES_; i++) {
                print_alarms(stables[i], cells + 2 * i);
                for (size_t k = 0; k < 2 && i < STABLE_LIKE; k++)
                        independent[k] += cells[2 * i + k];
        }
        print_alarms("independent runs, together", independent);
        share(long_work, LONG_SERIES, cells);
        print_alarms("300 runs, 3 % noise", cells + 2 * STABLE_3);
        print_alarms("300 runs, 5 % noise", cells + 2 * STABLE_5);
        printf("  asked: under %.0f of 1 000 independent runs\n\n", 1000 * ALARMS_MOST);
        return simulate_upper(independent[1], independent[0], 0.99) < ALARMS_MOST;
}

int main(void)
{
        bool time, equal, found, stable;

        setvbuf(stdout, NULL, _IOLBF, 0);
        time = bench_time();
        equal = bench_equal();
        bench_power();
        bench_needed();
        found = bench_found();
        stable = bench_stable();
        return time && equal && found && stable ? 0 : MISSED;
}
