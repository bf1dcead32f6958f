#include "probe/ncu/reader_internal.h"

enum measured_as { PERCENT, RATIO, TIME, BYTES, PASSES };

static const struct {
        const char *key;
        enum measured_as quantity;
} metrics[NCU_METRICS] = {
        [NCU_SM] = {"smThroughput", PERCENT},
        [NCU_MEM] = {"memThroughput", PERCENT},
        [NCU_DRAM] = {"dramThroughput", PERCENT},
        [NCU_L2] = {"l2Throughput", PERCENT},
        [NCU_L1] = {"l1Throughput", PERCENT},
        [NCU_OCCUPANCY] = {"achievedOccupancy", PERCENT},
        [NCU_OCCUPANCY_MAX] = {"theoreticalOccupancy", PERCENT},
        [NCU_STALL] = {"memoryStallPct", PERCENT},
        [NCU_WAVES] = {"wavesPerSM", RATIO},
        [NCU_DURATION] = {NULL, TIME},
        [NCU_DRAM_READ] = {"dramReadBytes", BYTES},
        [NCU_DRAM_WRITE] = {"dramWriteBytes", BYTES},
        [NCU_PASSES] = {NULL, PASSES},
};

#define ELAPSED ".avg.pct_of_peak_sustained_elapsed"
#define ACTIVE  ".avg.pct_of_peak_sustained_active"

static const struct ncu_name names[] = {
        {STR("sm__throughput" ELAPSED), NCU_SM, 0, NCU_NAME_FULL},
        {STR("Compute (SM) Throughput"), NCU_SM, 1, NCU_NAME_SOL_LABEL},
        {STR("Compute (SM) [%]"), NCU_SM, 2, NCU_NAME_SOL_LABEL},
        {STR("SM [%]"), NCU_SM, 3, NCU_NAME_SOL_LABEL},
        {STR("SM Throughput"), NCU_SM, 4, NCU_NAME_LABEL},
        {STR("gpu__compute_memory_throughput" ELAPSED), NCU_MEM, 0, NCU_NAME_FULL},
        {STR("Memory Throughput"), NCU_MEM, 1, NCU_NAME_SOL_LABEL},
        {STR("Memory [%]"), NCU_MEM, 2, NCU_NAME_SOL_LABEL},
        {STR("gpu__dram_throughput" ELAPSED), NCU_DRAM, 0, NCU_NAME_FULL},
        {STR("dram__throughput" ELAPSED), NCU_DRAM, 1, NCU_NAME_FULL},
        {STR("DRAM Throughput"), NCU_DRAM, 2, NCU_NAME_SOL_LABEL},
        {STR("SOL DRAM"), NCU_DRAM, 3, NCU_NAME_SOL_LABEL},
        {STR("SOL FB"), NCU_DRAM, 4, NCU_NAME_SOL_LABEL},
        {STR("lts__throughput" ELAPSED), NCU_L2, 0, NCU_NAME_FULL},
        {STR("lts__t_sectors" ELAPSED), NCU_L2, 1, NCU_NAME_FULL},
        {STR("L2 Cache Throughput"), NCU_L2, 2, NCU_NAME_SOL_LABEL},
        {STR("SOL L2 Cache"), NCU_L2, 3, NCU_NAME_SOL_LABEL},
        {STR("SOL L2"), NCU_L2, 4, NCU_NAME_SOL_LABEL},
        {STR("L2 Throughput"), NCU_L2, 5, NCU_NAME_LABEL},
        {STR("l1tex__throughput" ACTIVE), NCU_L1, 0, NCU_NAME_FULL},
        {STR("L1/TEX Cache Throughput"), NCU_L1, 1, NCU_NAME_SOL_LABEL},
        {STR("SOL L1/TEX Cache"), NCU_L1, 2, NCU_NAME_SOL_LABEL},
        {STR("SOL TEX"), NCU_L1, 3, NCU_NAME_SOL_LABEL},
        {STR("sm__warps_active" ACTIVE), NCU_OCCUPANCY, 0, NCU_NAME_FULL},
        {STR("Achieved Occupancy"), NCU_OCCUPANCY, 1, NCU_NAME_LABEL},
        {STR("sm__maximum_warps_per_active_cycle_pct"), NCU_OCCUPANCY_MAX, 0, NCU_NAME_FULL},
        {STR("Theoretical Occupancy"), NCU_OCCUPANCY_MAX, 1, NCU_NAME_LABEL},
        {STR("smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct"), NCU_STALL, 0, NCU_NAME_FULL},
        {STR("Memory Stall %"), NCU_STALL, 1, NCU_NAME_LABEL},
        {STR("launch__waves_per_multiprocessor"), NCU_WAVES, 0, NCU_NAME_FULL},
        {STR("Waves Per SM"), NCU_WAVES, 1, NCU_NAME_LABEL},
        {STR("gpu__time_duration.sum"), NCU_DURATION, 0, NCU_NAME_FULL},
        {STR("Duration"), NCU_DURATION, 1, NCU_NAME_SOL_LABEL},
        {STR("dram__bytes_read.sum"), NCU_DRAM_READ, 0, NCU_NAME_FULL},
        {STR("dram__bytes_op_read.sum"), NCU_DRAM_READ, 1, NCU_NAME_FULL},
        {STR("dram__bytes_write.sum"), NCU_DRAM_WRITE, 0, NCU_NAME_FULL},
        {STR("dram__bytes_op_write.sum"), NCU_DRAM_WRITE, 1, NCU_NAME_FULL},
        {STR("profiler__replayer_passes"), NCU_PASSES, 0, NCU_NAME_FULL},
        {STR("Kernel Name"), NCU_IS_KERNEL, 0, NCU_NAME_FULL},
        {STR("Demangled Name"), NCU_IS_KERNEL, 1, NCU_NAME_FULL},
        {STR("Function Name"), NCU_IS_KERNEL, 2, NCU_NAME_FULL},
        {STR("device__attribute_display_name"), NCU_IS_DEVICE, 0, NCU_NAME_FULL},
        {STR("Device Name"), NCU_IS_DEVICE, 1, NCU_NAME_FULL},
        {STR("CC"), NCU_IS_CC, 0, NCU_NAME_FULL},
        {STR("device__attribute_compute_capability_major"), NCU_IS_CC_MAJOR, 0, NCU_NAME_FULL},
        {STR("device__attribute_compute_capability_minor"), NCU_IS_CC_MINOR, 0, NCU_NAME_FULL},
};
_Static_assert(ARRAY_LEN(names) <= NCU_NAMES_MAX, "a slot for each");

static const struct {
        const char *text;
        enum measured_as quantity;
        double factor;
} units[] = {
        {"%", PERCENT, 1},      {"ns", TIME, 1},        {"nsecond", TIME, 1},   {"us", TIME, 1e3},
        {"usecond", TIME, 1e3}, {"ms", TIME, 1e6},      {"msecond", TIME, 1e6}, {"s", TIME, 1e9},
        {"second", TIME, 1e9},  {"byte", BYTES, 1},     {"Kbyte", BYTES, 1e3},  {"Mbyte", BYTES, 1e6},
        {"Gbyte", BYTES, 1e9},  {"Tbyte", BYTES, 1e12}, {"pass", PASSES, 1},
};

/* ---- names */

static const struct ncu_name *find(struct str name)
{
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (names[i].text.n == name.n && memcmp(names[i].text.p, name.p, name.n) == 0)
                        return &names[i];
        return NULL;
}

/* --print-metric-name label-name has both: the full name is the last word, with or without brackets around it. */
static struct str last_word(struct str name)
{
        const char *blank = memrchr(name.p, ' ', name.n);
        struct str word;

        if (!blank || !memmem(name.p, name.n, "__", 2))
                return STR_NULL;
        word = str_n(blank + 1, (size_t)(name.p + name.n - blank) - 1);
        if (word.n > 2 && word.p[0] == '(' && word.p[word.n - 1] == ')')
                word = str_n(word.p + 1, word.n - 2);
        return word;
}

const struct ncu_name *ncu_name_find(struct str name)
{
        const struct ncu_name *found = name.n ? find(name) : NULL;
        struct str word;

        if (found || !name.n)
                return found;
        word = last_word(name);
        return word.n ? find(word) : NULL;
}

const struct ncu_name *ncu_name_find_with_unit(struct str name, struct str *ret_unit)
{
        const struct ncu_name *found = ncu_name_find(name);
        const char *open;

        *ret_unit = STR_NULL;
        if (found || name.n < 4 || name.p[name.n - 1] != ']')
                return found;
        open = memrchr(name.p, '[', name.n);
        if (!open || open - name.p < 2 || open[-1] != ' ')
                return NULL;
        *ret_unit = str_n(open + 1, (size_t)(name.p + name.n - open) - 2);
        return ncu_name_find(str_n(name.p, (size_t)(open - name.p) - 1));
}

bool ncu_section_fits(const struct ncu_name *name, struct str section)
{
        return name->kind != NCU_NAME_SOL_LABEL || section.n == 0 ||
               str_eq(section, STR("GPU Speed Of Light Throughput")) ||
               str_eq(section, STR("GPU Speed Of Light"));
}

enum ncu_metric ncu_metric_of(struct str name, unsigned *ret_rank)
{
        const struct ncu_name *found = ncu_name_find(name);

        if (!found || found->what >= NCU_METRICS)
                return NCU_METRICS;
        *ret_rank = found->rank;
        return (enum ncu_metric)found->what;
}

const char *ncu_metric_key(enum ncu_metric m)
{
        return metrics[m].key;
}

/* ---- units */

/* 0: UNIT is not one of QUANTITY's. */
static double factor_of(enum measured_as quantity, struct str unit)
{
        for (size_t i = 0; i < ARRAY_LEN(units); i++)
                if (units[i].quantity == quantity && str_case_eq(unit, str_of(units[i].text)))
                        return units[i].factor;
        return unit.n == 0 ? 1 : 0;
}

bool ncu_unit_fits(enum ncu_metric m, struct str unit)
{
        return factor_of(metrics[m].quantity, unit) > 0;
}

/* ---- numbers */

enum { RUNS_MAX = 12, DIGITS_MAX = 40 };

static const double VALUE_MAX =
        1e18; /* 30 years, an exabyte; and what is weighed and added up stays finite */

/* A number as it is written: runs of digits, the separator before each but the first, and an exponent. */
struct written {
        bool negative;
        size_t n;
        struct str run[RUNS_MAX];
        char sep[RUNS_MAX]; /* '.', ',', or ' ' for any other that can only be between thousands */
        struct str exponent;
};

enum reading { NO_READING, GROUPS, DECIMAL };

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static struct str take_digits(struct str *s)
{
        size_t n = 0;

        while (n < s->n && is_digit(s->p[n]))
                n++;
        *s = str_n(s->p + n, s->n - n);
        return str_n(s->p - n, n);
}

/* The separator at the beginning of S, which is cut off when a digit follows it; 0: none. */
static char take_separator(struct str *s)
{
        static const struct {
                struct str text;
                char as;
        } known[] = {{STR("."), '.'},
                     {STR(","), ','},
                     {STR(" "), ' '},
                     {STR("'"), ' '},
                     {STR("\xC2\xA0"), ' '},      /* no-break space, as French groups */
                     {STR("\xE2\x80\xAF"), ' '},  /* the narrow one */
                     {STR("\xE2\x80\x99"), ' '}}; /* the apostrophe, as Swiss groups */

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                size_t n = known[i].text.n;

                if (str_has_prefix(*s, known[i].text) && s->n > n && is_digit(s->p[n])) {
                        *s = str_n(s->p + n, s->n - n);
                        return known[i].as;
                }
        }
        return 0;
}

static bool take_exponent(struct str *s, struct written *w)
{
        size_t n = 1;

        if (s->n == 0 || (s->p[0] != 'e' && s->p[0] != 'E'))
                return true;
        if (n < s->n && (s->p[n] == '-' || s->p[n] == '+'))
                n++;
        if (n == s->n || !is_digit(s->p[n]))
                return false;
        while (n < s->n && is_digit(s->p[n]))
                n++;
        w->exponent = str_n(s->p, n);
        *s = str_n(s->p + n, s->n - n);
        return n < 8;
}

/* False: TEXT is no number. What a metric has of single instances may follow it: "882 {65}", "12 (3; 4; 5)". */
static bool split_number(struct str text, struct written *ret)
{
        struct written w = {.n = 0};
        size_t digits = 0;
        char sep;

        w.negative = text.n && text.p[0] == '-';
        if (w.negative || (text.n && text.p[0] == '+'))
                text = str_n(text.p + 1, text.n - 1);
        do {
                if (w.n == RUNS_MAX)
                        return false;
                w.run[w.n] = take_digits(&text);
                digits += w.run[w.n].n;
                if (w.run[w.n++].n == 0)
                        return false;
                sep = take_separator(&text);
                if (sep && w.n < RUNS_MAX)
                        w.sep[w.n] = sep;
        } while (sep);
        if (digits > DIGITS_MAX || !take_exponent(&text, &w))
                return false;
        *ret = w;
        return text.n == 0 || str_has_prefix(text, STR(" (")) || str_has_prefix(text, STR(" {"));
}

/* Whether the first N runs can be thousands. */
static bool are_groups(const struct written *w, size_t n)
{
        if (w->run[0].n > 3 || (n > 1 && w->run[0].p[0] == '0'))
                return false;
        for (size_t i = 1; i < n; i++)
                if (w->run[i].n != 3 || w->sep[i] != w->sep[1])
                        return false;
        return true;
}

static void learn(char *point, char sep)
{
        if (*point == 0)
                *point = sep;
        else if (*point != sep)
                *point = '?';
}

static char other_than(char sep)
{
        return sep == '.' ? ',' : '.';
}

/*
 * One separator and three digits after it: "4,800" is 4800 where a comma is between thousands, and 4.8 where it is the
 * point. What the file has shown decides, and what the unit allows; where they do not agree, or neither knows, nothing does.
 */
static enum reading read_three(const struct written *w, enum reading by_unit, char point)
{
        enum reading by_file = NO_READING;

        if (point == w->sep[1])
                by_file = DECIMAL;
        else if (point == other_than(w->sep[1]))
                by_file = GROUPS;
        if (by_file == NO_READING || by_unit == by_file)
                return by_unit;
        return by_unit == NO_READING ? by_file : NO_READING;
}

/* How the separators of W are meant. RET_BAD: in no way at all. */
static enum reading read_separators(const struct written *w, enum reading by_unit, char *point, bool *ret_bad)
{
        char last = w->sep[w->n - 1];

        *ret_bad = false;
        if (w->n == 1)
                return GROUPS;
        if (w->n == 2 && last != ' ') {
                if (are_groups(w, 2) && w->exponent.n == 0)
                        return read_three(w, by_unit, *point);
                learn(point, last);
                return DECIMAL;
        }
        if (are_groups(w, w->n)) {
                if (last != ' ')
                        learn(point, other_than(last));
                return GROUPS;
        }
        if (are_groups(w, w->n - 1) && last != w->sep[1] && last != ' ') {
                learn(point, last);
                return DECIMAL;
        }
        *ret_bad = true;
        return NO_READING;
}

static double value_of(const struct written *w, enum reading reading)
{
        char text[DIGITS_MAX + 16];
        size_t n = 0;

        if (w->negative)
                text[n++] = '-';
        for (size_t i = 0; i < w->n; i++) {
                if (reading == DECIMAL && i + 1 == w->n && i > 0)
                        text[n++] = '.';
                memcpy(text + n, w->run[i].p, w->run[i].n);
                n += w->run[i].n;
        }
        memcpy(text + n, w->exponent.n ? w->exponent.p : "", w->exponent.n);
        text[n + w->exponent.n] = '\0';
        return strtod(text, NULL);
}

static bool is_absent(struct str text)
{
        static const struct str words[] = {STR(""),     STR("n/a"),      STR("(!) n/a"),  STR("no data"),
                                           STR("nan"),  STR("-nan"),     STR("inf"),      STR("+inf"),
                                           STR("-inf"), STR("nan(ind)"), STR("-nan(ind)")};

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (str_case_eq(text, words[i]))
                        return true;
        return false;
}

enum ncu_value ncu_value_read_after(enum ncu_metric m, struct str text, struct str unit, char *point,
                                    double *ret)
{
        enum measured_as quantity = metrics[m].quantity;
        double factor = factor_of(quantity, unit), value;
        enum reading by_unit = NO_READING, reading;
        struct written w;
        bool bad;

        text = str_trim(text);
        if (!split_number(text, &w))
                return is_absent(text) ? NCU_ABSENT : NCU_BAD;
        if (!(factor > 0))
                return NCU_BAD;
        if (unit.n == 0 && (quantity == TIME || quantity == BYTES))
                return NCU_ABSENT;
        if (quantity == PERCENT)
                by_unit = DECIMAL; /* thousands of percent are none */
        else if (quantity != RATIO && !(factor > 1))
                by_unit = GROUPS; /* ns, bytes and passes are whole */
        reading = read_separators(&w, by_unit, point, &bad);
        if (reading == NO_READING)
                return bad ? NCU_BAD : NCU_AMBIGUOUS;
        value = value_of(&w, reading) * factor;
        if (!(value >= 0 && value <= VALUE_MAX))
                return NCU_BAD;
        *ret = value;
        return NCU_OK;
}

enum ncu_value ncu_value_read(enum ncu_metric m, struct str text, struct str unit, double *ret)
{
        char unknown = 0;

        return ncu_value_read_after(m, text, unit, &unknown, ret);
}
