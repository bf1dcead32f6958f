/*
 * The samples as a table: columns first, one row a run.
 */
#include "probe/session/internal.h"

enum {
        FILE_MAX = 4 * 1024 * 1024, /* what the relay takes */
        PACKED_MAX = 600 * 1024,    /* gzipped: it goes with the result into one ConfigMap */
};

static const struct {
        const char *name;
        double steps; /* to one: what is finer is no measurement, and costs room */
} columns[COLUMN_COUNTERS] = {
        [COLUMN_STARTED] = {"started", 1e3},
        [COLUMN_TIME] = {"time", 1e9},
        [COLUMN_WALL] = {"wall", 1e7},
        [COLUMN_CPU] = {"cpu", 1e6},
        [COLUMN_PERCENT] = {"cpuPercent", 1e2},
        [COLUMN_MEMORY] = {"memory", 1},
        [COLUMN_ACCURACY] = {"accuracy", 1e7},
        [COLUMN_THROTTLED] = {"throttledPeriods", 1},
        [COLUMN_USER] = {"user", 1e6},
        [COLUMN_SYS] = {"sys", 1e6},
        [COLUMN_REGION_USER] = {"regionUser", 1e6},
        [COLUMN_REGION_SYS] = {"regionSys", 1e6},
        [COLUMN_MINOR_FAULTS] = {"minorFaults", 1},
        [COLUMN_MAJOR_FAULTS] = {"majorFaults", 1},
        [COLUMN_VOLUNTARY] = {"voluntarySwitches", 1},
        [COLUMN_INVOLUNTARY] = {"involuntarySwitches", 1},
        [COLUMN_READ] = {"readBytes", 1},
        [COLUMN_WRITTEN] = {"writtenBytes", 1},
        [COLUMN_PROCESSES] = {"processes", 1},
        [COLUMN_CGROUP_MEMORY] = {"cgroupMemory", 1},
        [COLUMN_CGROUP_CPU] = {"cgroupCpu", 1e6},
        [COLUMN_THROTTLED_SECONDS] = {"throttledSeconds", 1e6},
        [COLUMN_GPU_UTILIZATION] = {"gpuUtilization", 1e2},
        [COLUMN_GPU_MEMORY] = {"gpuMemory", 1},
        [COLUMN_GPU_POWER] = {"gpuPower", 1e2},
};

/* What stands before the values: in the checkpoint as numbers, in samples.json as people read them. */
static const char *const number_heads[] = {"entry", "pod", "block", "reason"};
static const char *const name_heads[] = {"algorithm", "size", "pod", "iteration", "failure"};

const char *column_name(enum column c)
{
        return c < COLUMN_COUNTERS ? columns[c].name
                                   : measure_counter_name((enum measure_counter)(c - COLUMN_COUNTERS));
}

double column_round(enum column c, double value)
{
        double steps = c < COLUMN_COUNTERS ? columns[c].steps : 1, whole = round(value * steps);

        /* Beyond 2^53 there is nothing to round. */
        return isfinite(value) ? (fabs(whole) < 0x1p53 ? whole / steps : value) : NAN;
}

static void find_used(const struct session_samples *s, bool used[COLUMN_MAX_])
{
        memset(used, 0, COLUMN_MAX_ * sizeof(*used));
        vec_foreach (row, &s->rows)
                for (size_t i = 0; i < s->columns; i++)
                        used[i] |= !isnan(row->v[i]);
}

static void write_head(const bool used[COLUMN_MAX_], bool names, struct buf *out)
{
        const char *const *heads = names ? name_heads : number_heads;
        size_t n = names ? ARRAY_LEN(name_heads) : ARRAY_LEN(number_heads);

        buf_adds(out, "\"columns\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(out, "%s\"%s\"", i ? "," : "", heads[i]);
        for (size_t i = 0; i < COLUMN_MAX_; i++)
                if (used[i])
                        buf_printf(out, ",\"%s\"", column_name((enum column)i));
        buf_adds(out, "],\n\"rows\":[");
}

static void write_names(const struct session_samples *s, const struct session_row *row, struct buf *out)
{
        const struct session_plan *plan = s->plan;

        json_write_string(str_of(entry_algorithm(plan, row->entry)->label), out);
        buf_printf(out, ",%lld,%u,%d,", (long long)entry_size(plan, row->entry), row->pod,
                   block_iteration(plan, row->block));
        if (row->reason)
                json_write_string(str_of(s->reasons.v[row->reason - 1].label), out);
        else
                buf_adds(out, "null");
}

/* Shortest text that reads back the same. */
static void write_number(double value, struct buf *out)
{
        char text[40];

        if (isnan(value)) {
                buf_adds(out, ",null");
                return;
        }
        for (int digits = 6; digits <= 17; digits++) {
                snprintf(text, sizeof(text), "%.*g", digits, value);
                if (digits == 17 || strtod(text, NULL) == value)
                        break;
        }
        buf_printf(out, ",%s", text);
}

void columns_write(const struct session_samples *s, bool names, size_t rows, struct buf *out)
{
        bool used[COLUMN_MAX_];

        find_used(s, used);
        write_head(used, names, out);
        for (size_t i = 0; i < rows; i++) {
                const struct session_row *row = &s->rows.v[i];

                buf_adds(out, i ? ",\n[" : "\n[");
                if (names)
                        write_names(s, row, out);
                else
                        buf_printf(out, "%u,%u,%u,%u", row->entry, row->pod, row->block, row->reason);
                for (size_t c = 0; c < s->columns; c++)
                        if (used[c])
                                write_number(row->v[c], out);
                buf_addc(out, ']');
        }
        buf_addc(out, ']');
}

/* ---- reading */

static int read_head(const struct session_samples *s, const struct json *list, enum column *ret,
                     size_t *ret_n, struct err *err)
{
        size_t place = 0;

        *ret_n = 0;
        json_foreach (name, list) {
                struct str text = json_text(name);
                size_t c = 0;

                if (place++ < ARRAY_LEN(number_heads)) {
                        if (!str_eq(text, str_of(number_heads[place - 1])))
                                return err_set(err, E_INVALID, "its columns are not as they are written");
                        continue;
                }
                while (c < s->columns && !str_eq(text, str_of(column_name((enum column)c))))
                        c++;
                if (c == s->columns || *ret_n == COLUMN_MAX_)
                        return err_set(err, E_INVALID, "its columns are not as they are written");
                ret[(*ret_n)++] = (enum column)c;
        }
        return place >= ARRAY_LEN(number_heads) ? 0 : err_set(err, E_INVALID, "it has no columns");
}

static int read_row(struct session_samples *s, const struct json *from, const enum column *head, size_t n)
{
        const int64_t limits[] = {(int64_t)plan_entries(s->plan), s->plan->pods, plan_blocks(s->plan),
                                  (int64_t)s->reasons.n + 1};
        struct session_row *row = vec_push(&s->rows);
        int64_t numbers[ARRAY_LEN(limits)];
        size_t place = 0;

        row->v = arena_alloc(&s->arena, s->columns * sizeof(double));
        for (size_t i = 0; i < s->columns; i++)
                row->v[i] = NAN;
        if (!json_is(from, JSON_ARRAY) || json_len(from) != ARRAY_LEN(limits) + n)
                return -1;
        json_foreach (value, from) {
                size_t i = place++;

                if (i < ARRAY_LEN(limits)) {
                        if (!json_to_i64(value, &numbers[i]) || numbers[i] < 0 || numbers[i] >= limits[i])
                                return -1;
                } else if (!json_is(value, JSON_NULL) &&
                           (!json_is(value, JSON_NUMBER) ||
                            !json_to_double(value, &row->v[head[i - ARRAY_LEN(limits)]])))
                        return -1;
        }
        row->entry = (uint16_t)numbers[0];
        row->pod = (uint32_t)numbers[1];
        row->block = (uint32_t)numbers[2];
        row->reason = (uint16_t)numbers[3];
        /* What counts has been timed. */
        return !row->reason && !stats_usable(&row->v[COLUMN_TIME], 1) ? -1 : 0;
}

int columns_read(struct session_samples *s, const struct json *list, const struct json *rows, struct err *err)
{
        enum column head[COLUMN_MAX_];
        size_t n;

        if (read_head(s, list, head, &n, err) < 0)
                return -1;
        if (!json_is(rows, JSON_ARRAY) || json_len(rows) > SESSION_RUNS_MAX)
                return err_set(err, E_INVALID, "its rows are not as they are written");
        json_foreach (row, rows)
                if (read_row(s, row, head, n) < 0)
                        return err_set(err, E_INVALID, "its row %zu is not as it is written", s->rows.n);
        return 0;
}

/* ---- samples.json */

/* How many bytes ROWS of them take, gzipped; SIZE_MAX: they are too large as they are. */
static int packed_size(const struct session_samples *s, size_t rows, struct buf *text, size_t *ret,
                       struct err *err)
{
        _cleanup_(buf_done) struct buf packed = BUF_INIT(FILE_MAX);

        buf_clear(text);
        buf_addc(text, '{');
        columns_write(s, true, rows, text);
        buf_printf(text, ",\n\"dropped\":%zu}\n", s->rows.n - rows);
        *ret = SIZE_MAX;
        if (text->overflow)
                return 0;
        if (gzip_add(&packed, buf_str(text), err) < 0)
                return -1;
        *ret = packed.n;
        return 0;
}

int samples_file_write(const struct session_samples *s, const char *dir, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, SESSION_SAMPLES_FILE);
        size_t rows = s->rows.n, size;

        do {
                if (packed_size(s, rows, &text, &size, err) < 0)
                        return -1;
                if (size > PACKED_MAX)
                        rows = rows / 10 * 9;
        } while (size > PACKED_MAX && rows > 0);
        return file_replace(path, buf_str(&text), 0644, err);
}
