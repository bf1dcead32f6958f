/*
 * A sample as JSON, both ways, by one table.
 */
#include "probe/measure/internal.h"

#include <math.h>

enum { REASON_MAX = 128, EXIT_CODE_MAX = 255, SIGNAL_MAX = 64 };

static const double MOST = 1e300;

enum field_type {
        REAL,  /* NAN: absent */
        COUNT, /* int64_t, below 0: absent */
        SMALL, /* int, below 0: absent; 0 too where it says nothing */
        FLAG,  /* bool, false: absent */
};

struct field {
        const char *name;
        enum field_type type;
        size_t at;
};

#define F(name, type, member)                                       \
        {                                                           \
                name, type, offsetof(struct measure_sample, member) \
        }
#define COUNTED(name, group, field) F(name, COUNT, group.field)

static const struct field PLAIN[] = {
        F("wall", REAL, wall),
        F("user", REAL, user),
        F("sys", REAL, sys),
        F("peakRss", COUNT, peak_rss),
        F("minorFaults", COUNT, minor_faults),
        F("majorFaults", COUNT, major_faults),
        F("voluntarySwitches", COUNT, voluntary_switches),
        F("involuntarySwitches", COUNT, involuntary_switches),
        F("processes", SMALL, processes),
        F("orphans", SMALL, orphans),
        F("leftOver", SMALL, left_over),
        F("timedOut", FLAG, timed_out),
        F("stopped", FLAG, stopped),
        F("oom", FLAG, oom),
        {0},
};
static const struct field IO[] = {
        COUNTED("readBytes", io, read_bytes),
        COUNTED("writtenBytes", io, written_bytes),
        COUNTED("readCharacters", io, read_characters),
        COUNTED("writtenCharacters", io, written_characters),
        {0},
};
static const struct field CGROUP[] = {
        F("version", SMALL, cgroup.version),
        COUNTED("memoryPeak", cgroup, memory_peak),
        F("cpuSeconds", REAL, cgroup.cpu_seconds),
        COUNTED("periods", cgroup, periods),
        COUNTED("throttledPeriods", cgroup, throttled_periods),
        F("throttledSeconds", REAL, cgroup.throttled_seconds),
        {0},
};
static const struct field GPU[] = {
        COUNTED("gpus", gpu, gpus),
        COUNTED("looks", gpu, looks),
        F("utilization", REAL, gpu.utilization),
        COUNTED("memoryPeak", gpu, memory_peak),
        F("power", REAL, gpu.power),
        {0},
};
static const struct field REGION[] = {
        F("wall", REAL, region.wall),
        F("user", REAL, region.user),
        F("sys", REAL, region.sys),
        {0},
};

static const struct group {
        const char *name;
        size_t has;
        const struct field *fields;
} GROUPS[] = {
        {"io", offsetof(struct measure_sample, io.has), IO},
        {"cgroup", offsetof(struct measure_sample, cgroup.has), CGROUP},
        {"gpu", offsetof(struct measure_sample, gpu.has), GPU},
        {"region", offsetof(struct measure_sample, region.has), REGION},
};

static void *at(const struct measure_sample *s, size_t offset)
{
        return (char *)(uintptr_t)s + offset;
}

/* ---- values */

static void clear_fields(struct measure_sample *s, const struct field *fields)
{
        for (const struct field *f = fields; f->name; f++)
                switch (f->type) {
                case REAL:
                        *(double *)at(s, f->at) = NAN;
                        break;
                case COUNT:
                        *(int64_t *)at(s, f->at) = -1;
                        break;
                case SMALL:
                        *(int *)at(s, f->at) = 0;
                        break;
                case FLAG:
                        *(bool *)at(s, f->at) = false;
                        break;
                }
}

void measure_sample_init(struct measure_sample *s)
{
        *s = (struct measure_sample){.exit_code = -1};
        clear_fields(s, PLAIN);
        for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++)
                clear_fields(s, GROUPS[i].fields);
        for (int i = 0; i < COUNTER_MAX_; i++)
                s->counters.values[i] = -1;
}

double measure_sample_time(const struct measure_sample *s)
{
        return s->region.has && !isnan(s->region.wall) ? s->region.wall : s->wall;
}

double measure_sample_cpu(const struct measure_sample *s)
{
        if (s->region.has && !isnan(s->region.user))
                return s->region.user + (isnan(s->region.sys) ? 0 : s->region.sys);
        return s->user + s->sys;
}

struct measure_sample measure_sample_copy(struct arena *a, const struct measure_sample *s)
{
        struct measure_sample copy = *s;

        copy.metrics = json_copy(a, s->metrics);
        copy.ml = json_copy(a, s->ml);
        copy.error_reason = arena_strdup(a, s->error_reason);
        copy.error_message = arena_strdup(a, s->error_message);
        copy.note = arena_strdup(a, s->note);
        return copy;
}

/* ---- out */

static struct json *field_json(struct arena *a, const struct measure_sample *s, const struct field *f)
{
        switch (f->type) {
        case REAL:
                return json_double(a, *(double *)at(s, f->at));
        case COUNT:
                return *(int64_t *)at(s, f->at) < 0 ? NULL : json_i64(a, *(int64_t *)at(s, f->at));
        case SMALL:
                return *(int *)at(s, f->at) <= 0 ? NULL : json_i64(a, *(int *)at(s, f->at));
        case FLAG:
                return *(bool *)at(s, f->at) ? json_truth(a, true) : NULL;
        }
        return NULL;
}

static struct json *fields_json(struct arena *a, const struct measure_sample *s, const struct field *fields,
                                struct json *to)
{
        for (const struct field *f = fields; f->name; f++)
                json_set(a, to, f->name, field_json(a, s, f));
        return to;
}

static struct json *counters_json(struct arena *a, const struct measure_counters *c)
{
        struct json *j = json_object(a);

        for (int i = 0; i < COUNTER_MAX_; i++)
                if (c->values[i] >= 0)
                        json_set(a, j, measure_counter_name((enum measure_counter)i),
                                 json_i64(a, c->values[i]));
        return j;
}

struct json *measure_sample_json(struct arena *a, const struct measure_sample *s)
{
        struct json *j = json_object(a);
        char time[TIME_TEXT_MAX];

        if (s->started)
                json_set(a, j, "startedAt", json_string(a, time_format_micro(s->started, time)));
        fields_json(a, s, PLAIN, j);
        if (s->exit_code >= 0)
                json_set(a, j, "exitCode", json_i64(a, s->exit_code));
        if (s->signal > 0)
                json_set(a, j, "signal", json_i64(a, s->signal));
        for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++)
                if (*(bool *)at(s, GROUPS[i].has))
                        json_set(a, j, GROUPS[i].name, fields_json(a, s, GROUPS[i].fields, json_object(a)));
        if (s->counters.has)
                json_set(a, j, "counters", counters_json(a, &s->counters));
        json_set(a, j, "metrics", json_copy(a, s->metrics));
        json_set(a, j, "ml", json_copy(a, s->ml));
        if (s->error_reason) {
                struct json *e = json_set(a, j, "error", json_object(a));

                json_set(a, e, "reason", json_string(a, s->error_reason));
                json_set(a, e, "message", json_string(a, s->error_message));
        }
        json_set(a, j, "note", json_string(a, s->note));
        return j;
}

/* ---- in */

static int wrong(struct err *err, const char *group, const char *name, const char *what)
{
        return err_set(err, E_INVALID, "%s%s%s of a sample is not %s", group, *group ? "." : "", name, what);
}

static int read_field(const struct json *j, struct measure_sample *s, const char *group,
                      const struct field *f, struct err *err)
{
        int64_t n;
        double v;

        switch (f->type) {
        case REAL:
                if (!json_to_double(j, &v) || !(v >= 0 && v < MOST))
                        return wrong(err, group, f->name, "a number of at least 0");
                *(double *)at(s, f->at) = v;
                return 0;
        case COUNT:
                if (!json_to_i64(j, &n) || n < 0)
                        return wrong(err, group, f->name, "a whole number of at least 0");
                *(int64_t *)at(s, f->at) = n;
                return 0;
        case SMALL:
                if (!json_to_i64(j, &n) || n < 0 || n > INT32_MAX)
                        return wrong(err, group, f->name, "a whole number of at least 0");
                *(int *)at(s, f->at) = (int)n;
                return 0;
        case FLAG:
                if (!json_is(j, JSON_BOOL))
                        return wrong(err, group, f->name, "true or false");
                *(bool *)at(s, f->at) = j->truth;
                return 0;
        }
        return 0;
}

static int read_fields(const struct json *from, struct measure_sample *s, const char *group,
                       const struct field *fields, struct err *err)
{
        for (const struct field *f = fields; f->name; f++) {
                const struct json *j = json_at(from, f->name);

                if (j && read_field(j, s, group, f, err) < 0)
                        return -1;
        }
        return 0;
}

static int read_groups(const struct json *json, struct measure_sample *s, struct err *err)
{
        for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
                const struct json *g = json_at(json, GROUPS[i].name);

                if (!g)
                        continue;
                if (!json_is(g, JSON_OBJECT))
                        return wrong(err, "", GROUPS[i].name, "an object");
                if (read_fields(g, s, GROUPS[i].name, GROUPS[i].fields, err) < 0)
                        return -1;
                *(bool *)at(s, GROUPS[i].has) = true;
        }
        return 0;
}

static int read_counters(const struct json *json, struct measure_counters *c, struct err *err)
{
        const struct json *g = json_at(json, "counters");

        if (g && !json_is(g, JSON_OBJECT))
                return wrong(err, "", "counters", "an object");
        for (int i = 0; i < COUNTER_MAX_; i++) {
                const char *name = measure_counter_name((enum measure_counter)i);
                const struct json *j = json_at(g, name);

                if (j && (!json_to_i64(j, &c->values[i]) || c->values[i] < 0))
                        return wrong(err, "counters", name, "a whole number of at least 0");
                c->has |= j != NULL;
        }
        return 0;
}

static int read_end(const struct json *json, struct measure_sample *s, struct err *err)
{
        int64_t code = json_int(json, "exitCode", -1), signo = json_int(json, "signal", 0);
        const char *started = json_str(json, "startedAt");

        if ((json_at(json, "exitCode") && code < 0) || code > EXIT_CODE_MAX)
                return wrong(err, "", "exitCode", "an exit status");
        if (signo < 0 || signo > SIGNAL_MAX)
                return wrong(err, "", "signal", "a signal");
        if (started && !time_parse(str_of(started), &s->started))
                return wrong(err, "", "startedAt", "a time");
        s->exit_code = (int)code;
        s->signal = (int)signo;
        return 0;
}

/* An object, and only numbers and short texts in it when it must be FLAT. */
static int read_object(struct arena *a, const struct json *json, const char *name, bool flat,
                       struct json **ret, struct err *err)
{
        const struct json *j = json_at(json, name);

        if (!j)
                return 0;
        if (!json_is(j, JSON_OBJECT))
                return wrong(err, "", name, "an object");
        if (flat && json_len(j) > MEASURE_METRICS_MAX)
                return err_set(err, E_TOO_LARGE, "a sample has more than %d %s", MEASURE_METRICS_MAX, name);
        if (flat)
                json_foreach (m, j)
                        if (!json_is(m, JSON_NUMBER) &&
                            !(json_is(m, JSON_STRING) && m->len <= MEASURE_TEXT_MAX))
                                return wrong(err, name, m->key, "a number or a short text");
        *ret = json_copy(a, j);
        return 0;
}

/* A text of at most MAX bytes; more of it is left out. */
static const char *text_of(struct arena *a, const struct json *object, const char *name, size_t max)
{
        const char *text = json_str(object, name);

        return text ? arena_strndup(a, text, utf8_cut(text, strlen(text), max)) : NULL;
}

int measure_sample_parse(struct arena *a, const struct json *json, struct measure_sample *ret,
                         struct err *err)
{
        struct measure_sample s;

        measure_sample_init(&s);
        if (!json_is(json, JSON_OBJECT))
                return err_set(err, E_INVALID, "a sample is not an object");
        if (read_fields(json, &s, "", PLAIN, err) < 0 || read_groups(json, &s, err) < 0 ||
            read_counters(json, &s.counters, err) < 0 || read_end(json, &s, err) < 0 ||
            read_object(a, json, "metrics", true, &s.metrics, err) < 0 ||
            read_object(a, json, "ml", false, &s.ml, err) < 0)
                return -1;
        s.error_reason = text_of(a, json_at(json, "error"), "reason", REASON_MAX);
        s.error_message = text_of(a, json_at(json, "error"), "message", MEASURE_TEXT_MAX);
        s.note = text_of(a, json, "note", MEASURE_TEXT_MAX);
        if (!s.error_reason && (isnan(s.wall) || isnan(s.user) || isnan(s.sys)))
                return err_set(err, E_INVALID, "a sample has no wall, user and sys");
        if (!s.error_reason && s.exit_code != 0)
                return err_set(err, E_INVALID, "a sample without an error has no exit status 0");
        *ret = s;
        return 0;
}
