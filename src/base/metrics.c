#include "base/base.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KEY_MAX = 1024 };

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
};

struct metrics {
        VEC(struct family *) families;
        VEC(struct collector {
                void (*fn)(void *arg);
                void *arg;
        })
        collectors;
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
                free(*f);
        }
        vec_done(&m->families);
        vec_done(&m->collectors);
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

static char *label_text(const struct metric_family *family, const char *const *values)
{
        struct buf b = BUF_INIT(KEY_MAX);

        for (size_t i = 0; values && family->labels && family->labels[i]; i++) {
                buf_printf(&b, "%s%s=\"", i ? "," : "", family->labels[i]);
                add_label_value(&b, values[i] ? values[i] : "");
                buf_addc(&b, '"');
        }
        if (b.overflow)
                buf_clear(&b);
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

struct metric *metrics_get(struct metrics *m, const struct metric_family *family, const char *const *values)
{
        struct family *f = find_family(m, family);
        _cleanup_(free_ptr) char *labels = label_text(family, values);
        struct metric *s;

        for (s = f->first; s; s = s->next)
                if (streq(s->labels, labels))
                        return s;
        s = xcalloc(1, sizeof(*s) + (family->n_buckets + 1) * sizeof(s->buckets[0]));
        s->family = family;
        s->labels = TAKE_PTR(labels);
        *f->last = s;
        f->last = &s->next;
        return s;
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

static void add_number(struct buf *b, double v)
{
        if (isinf(v))
                buf_adds(b, v > 0 ? "+Inf" : "-Inf");
        else if (v == (double)(int64_t)v && v > -1e15 && v < 1e15)
                buf_printf(b, "%" PRId64, (int64_t)v);
        else
                buf_printf(b, "%.17g", v);
}

static void add_sample(struct buf *b, const struct metric *s, const char *suffix, const char *le,
                       double value)
{
        buf_printf(b, "%s%s", s->family->name, suffix);
        if (s->labels[0] || le)
                buf_printf(b, "{%s%s%s%s%s}", s->labels, s->labels[0] && le ? "," : "", le ? "le=\"" : "",
                           le ? le : "", le ? "\"" : "");
        buf_addc(b, ' ');
        add_number(b, value);
        buf_addc(b, '\n');
}

static void add_histogram(struct buf *b, const struct metric *s)
{
        uint64_t total = 0;
        char le[32];

        for (size_t i = 0; i < s->family->n_buckets; i++) {
                total += s->buckets[i];
                snprintf(le, sizeof(le), "%g", s->family->buckets[i]);
                add_sample(b, s, "_bucket", le, (double)total);
        }
        add_sample(b, s, "_bucket", "+Inf", (double)s->count);
        add_sample(b, s, "_sum", NULL, s->value);
        add_sample(b, s, "_count", NULL, (double)s->count);
}

void metrics_write(struct metrics *m, struct buf *out)
{
        static const char *const types[] = {"counter", "gauge", "histogram"};

        vec_foreach (c, &m->collectors)
                c->fn(c->arg);
        vec_foreach (it, &m->families) {
                const struct metric_family *f = (*it)->family;

                buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, types[f->type]);
                for (struct metric *s = (*it)->first; s; s = s->next) {
                        if (f->type == METRIC_HISTOGRAM)
                                add_histogram(out, s);
                        else
                                add_sample(out, s, "", NULL, s->value);
                }
        }
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
