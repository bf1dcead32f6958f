#include "base/base.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KEY_MAX = 1024 };
#define OTHER "other"

struct metric {
        const struct metric_family *family;
        struct metric *next;
        char *labels; /* `a="x",b="y"`, escaped, or "" */
        double value; /* histograms: the sum */
        uint64_t count;
        uint64_t buckets[]; /* not cumulative */
};

struct family {
        const struct metric_family *family;
        struct metric *first, **last;
        struct map series; /* by labels */
};

struct metrics {
        VEC(struct family *) families;
        VEC(struct collector {
                void (*fn)(void *arg);
                void *arg;
        })
        collectors;
        VEC(struct writer {
                void (*fn)(void *arg, struct buf *out);
                void *arg;
        })
        writers;
        struct metric *process[6];
};

struct metrics *metrics_new(void)
{
        return xcalloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *m)
{
        if (!m)
                return;
        vec_foreach (f, &m->families) {
                struct metric *next;

                for (struct metric *s = (*f)->first; s; s = next) {
                        next = s->next;
                        free(s->labels);
                        free(s);
                }
                map_done(&(*f)->series);
                free(*f);
        }
        vec_done(&m->families);
        vec_done(&m->collectors);
        vec_done(&m->writers);
        free(m);
}

static void add_label_value(struct buf *b, const char *value)
{
        for (; *value; value++) {
                if (*value == '\n') {
                        buf_adds(b, "\\n");
                        continue;
                }
                if (*value == '"' || *value == '\\')
                        buf_addc(b, '\\');
                buf_addc(b, *value);
        }
}

void metrics_add_label(struct buf *labels, const char *name, const char *value)
{
        buf_printf(labels, "%s%s=\"", labels->n ? "," : "", name);
        add_label_value(labels, value);
        buf_addc(labels, '"');
}

/* VALUES NULL: "other" for each. */
static char *label_text(const struct metric_family *family, const char *const *values)
{
        struct buf b = BUF_INIT(KEY_MAX);

        for (size_t i = 0; family->labels && family->labels[i]; i++)
                metrics_add_label(&b, family->labels[i], !values ? OTHER : values[i] ? values[i] : "");
        if (b.overflow) {
                buf_done(&b);
                return values ? label_text(family, NULL) : xstrdup("");
        }
        return buf_take(&b);
}

static struct family *find_family(struct metrics *m, const struct metric_family *family)
{
        struct family *f;

        vec_foreach (it, &m->families)
                if ((*it)->family == family)
                        return *it;
        f = xcalloc(1, sizeof(*f));
        f->family = family;
        f->last = &f->first;
        *vec_push(&m->families) = f;
        return f;
}

static struct metric *add_series(struct family *f, char *labels)
{
        struct metric *s = xcalloc(1, sizeof(*s) + (f->family->n_buckets + 1) * sizeof(s->buckets[0]));

        s->family = f->family;
        s->labels = labels;
        map_put(&f->series, str_of(labels), s);
        *f->last = s;
        f->last = &s->next;
        return s;
}

struct metric *metrics_get(struct metrics *m, const struct metric_family *family, const char *const *values)
{
        struct family *f = find_family(m, family);
        _cleanup_(free_ptr) char *labels = label_text(family, values);
        struct metric *s = map_get(&f->series, str_of(labels));

        if (!s && f->series.n >= METRICS_SERIES_MAX) {
                free(labels);
                labels = label_text(family, NULL);
                s = map_get(&f->series, str_of(labels));
        }
        return s ? s : add_series(f, TAKE_PTR(labels));
}

void metric_add(struct metric *m, double by)
{
        m->value += by;
}

void metric_set(struct metric *m, double to)
{
        m->value = to;
}

void metric_observe(struct metric *m, double value)
{
        size_t i = 0;

        while (i < m->family->n_buckets && value > m->family->buckets[i])
                i++;
        m->buckets[i]++;
        m->count++;
        m->value += value;
}

void metrics_on_collect(struct metrics *m, void (*fn)(void *arg), void *arg)
{
        *vec_push(&m->collectors) = (struct collector){fn, arg};
}

void metrics_off_collect(struct metrics *m, void (*fn)(void *arg), void *arg)
{
        size_t kept = 0;

        for (size_t i = 0; i < m->collectors.n; i++)
                if (m->collectors.v[i].fn != fn || m->collectors.v[i].arg != arg)
                        m->collectors.v[kept++] = m->collectors.v[i];
        m->collectors.n = kept;
}

void metrics_on_write(struct metrics *m, void (*fn)(void *arg, struct buf *out), void *arg)
{
        *vec_push(&m->writers) = (struct writer){fn, arg};
}

void metrics_off_write(struct metrics *m, void (*fn)(void *arg, struct buf *out), void *arg)
{
        size_t kept = 0;

        for (size_t i = 0; i < m->writers.n; i++)
                if (m->writers.v[i].fn != fn || m->writers.v[i].arg != arg)
                        m->writers.v[kept++] = m->writers.v[i];
        m->writers.n = kept;
}

static void add_number(struct buf *b, double v)
{
        if (isinf(v))
                buf_adds(b, v > 0 ? "+Inf" : "-Inf");
        else if (v > -1e15 && v < 1e15 && v == (double)(int64_t)v)
                buf_printf(b, "%" PRId64, (int64_t)v);
        else
                buf_printf(b, "%.17g", v);
}

/* What a sample is written as: NAME, SUFFIX and labels. */
struct writing {
        struct buf *out;
        const char *name;
        struct str labels;
};

static void add_sample(const struct writing *w, const char *suffix, const char *le, double value)
{
        buf_adds(w->out, w->name);
        buf_adds(w->out, suffix);
        if (w->labels.n || le) {
                buf_addc(w->out, '{');
                buf_add(w->out, w->labels.p, w->labels.n);
                if (le)
                        buf_printf(w->out, "%sle=\"%s\"", w->labels.n ? "," : "", le);
                buf_addc(w->out, '}');
        }
        buf_addc(w->out, ' ');
        add_number(w->out, value);
        buf_addc(w->out, '\n');
}

static void add_histogram(const struct writing *w, const struct metric *s)
{
        uint64_t total = 0;
        char le[32];

        for (size_t i = 0; i < s->family->n_buckets; i++) {
                total += s->buckets[i];
                snprintf(le, sizeof(le), "%g", s->family->buckets[i]);
                add_sample(w, "_bucket", le, (double)total);
        }
        add_sample(w, "_bucket", "+Inf", (double)s->count);
        add_sample(w, "_sum", NULL, s->value);
        add_sample(w, "_count", NULL, (double)s->count);
}

static void add_head(struct buf *out, const struct metric_family *f, const char *name)
{
        static const char *const types[] = {"counter", "gauge", "histogram"};

        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, f->help, name, types[f->type]);
}

static void add_family(struct buf *out, const struct family *f, const char *name)
{
        add_head(out, f->family, name);
        for (const struct metric *s = f->first; s; s = s->next) {
                const struct writing w = {out, name, str_of(s->labels)};

                if (f->family->type == METRIC_HISTOGRAM)
                        add_histogram(&w, s);
                else
                        add_sample(&w, "", NULL, s->value);
        }
}

void metrics_write_head(struct buf *out, const struct metric_family *family)
{
        add_head(out, family, family->name);
}

void metrics_write_sample(struct buf *out, const struct metric_family *family, struct str labels,
                          double value)
{
        add_sample(&(struct writing){out, family->name, labels}, "", NULL, value);
}

void metrics_write(struct metrics *m, struct buf *out)
{
        vec_foreach (c, &m->collectors)
                c->fn(c->arg);
        vec_foreach (f, &m->families) {
                add_family(out, *f, (*f)->family->name);
                if ((*f)->family->alias)
                        add_family(out, *f, (*f)->family->alias);
        }
        vec_foreach (w, &m->writers)
                w->fn(w->arg, out);
}

enum { PROC_CPU, PROC_RSS, PROC_VIRTUAL, PROC_FDS, PROC_MAX_FDS, PROC_START };

static const struct metric_family process_families[] = {
        [PROC_CPU] = {"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
                      METRIC_COUNTER, NULL, NULL, 0},
        [PROC_RSS] = {"process_resident_memory_bytes", "Resident memory size in bytes.", METRIC_GAUGE, NULL,
                      NULL, 0},
        [PROC_VIRTUAL] = {"process_virtual_memory_bytes", "Virtual memory size in bytes.", METRIC_GAUGE, NULL,
                          NULL, 0},
        [PROC_FDS] = {"process_open_fds", "Number of open file descriptors.", METRIC_GAUGE, NULL, NULL, 0},
        [PROC_MAX_FDS] = {"process_max_fds", "Maximum number of open file descriptors.", METRIC_GAUGE, NULL,
                          NULL, 0},
        [PROC_START] = {"process_start_time_seconds", "Start time of the process since the epoch in seconds.",
                        METRIC_GAUGE, NULL, NULL, 0},
};

static size_t count_fds(void)
{
        DIR *d = opendir("/proc/self/fd");
        size_t n = 0;

        if (!d)
                return 0;
        while (readdir(d))
                n++;
        closedir(d);
        return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

static void collect_process(void *arg)
{
        struct metrics *m = arg;
        struct rusage usage;
        struct rlimit limit;
        unsigned long virt = 0, rss = 0;
        FILE *f = fopen("/proc/self/statm", "re");

        if (f) {
                if (fscanf(f, "%lu %lu", &virt, &rss) != 2)
                        virt = rss = 0;
                fclose(f);
        }
        getrusage(RUSAGE_SELF, &usage);
        getrlimit(RLIMIT_NOFILE, &limit);
        metric_set(m->process[PROC_CPU],
                   (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
        metric_set(m->process[PROC_RSS], (double)rss * (double)sysconf(_SC_PAGESIZE));
        metric_set(m->process[PROC_VIRTUAL], (double)virt * (double)sysconf(_SC_PAGESIZE));
        metric_set(m->process[PROC_FDS], (double)count_fds());
        metric_set(m->process[PROC_MAX_FDS], (double)limit.rlim_cur);
}

void metrics_add_process(struct metrics *m)
{
        struct clock c = CLOCK_REAL;

        for (size_t i = 0; i < ARRAY_LEN(process_families); i++)
                m->process[i] = metrics_get(m, &process_families[i], NULL);
        metric_set(m->process[PROC_START], (double)clock_wall(&c) / 1e6);
        metrics_on_collect(m, collect_process, m);
}
