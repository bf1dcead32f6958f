/*
 * What a command says of itself: its metrics file, and lines `name=value` of its output.
 */
#include "probe/measure/internal.h"

#include <math.h>

enum { NAME_MAX_BYTES = 128, NUMBER_MAX = 64, DEPTH_MAX = 32, NODES_MAX = 65536 };

static const double MOST = 1e300;

/* ---- the file */

/* Seconds; absent is NAN. Below 0: it is there, but not as it must be. */
static int read_seconds(const struct json *region, const char *name, double *ret, struct err *err)
{
        const struct json *j = json_at(region, name);

        *ret = NAN;
        if (!j)
                return 0;
        if (!json_to_double(j, ret) || !(*ret >= 0 && *ret < MOST)) {
                *ret = NAN;
                return err_set(err, E_INVALID, "region.%s is not a number of seconds", name);
        }
        return 0;
}

static int read_region(const struct json *root, struct measure_region *ret, struct err *err)
{
        const struct json *j = json_at(root, "region");

        *ret = (struct measure_region){.wall = NAN, .user = NAN, .sys = NAN};
        if (!j)
                return 0;
        if (!json_is(j, JSON_OBJECT))
                return err_set(err, E_INVALID, "region is a %s, not an object", json_type_name(j->type));
        if (read_seconds(j, "wall", &ret->wall, err) < 0 || read_seconds(j, "user", &ret->user, err) < 0 ||
            read_seconds(j, "sys", &ret->sys, err) < 0)
                return -1;
        ret->has = !isnan(ret->wall) || !isnan(ret->user) || !isnan(ret->sys);
        return 0;
}

static const char *short_text(struct arena *a, const struct json *j, size_t max)
{
        const char *text = json_cstr(j);

        return text && *text ? arena_strndup(a, text, utf8_cut(text, strlen(text), max)) : NULL;
}

static bool is_reason(const char *s)
{
        if (!s || *s < 'A' || *s > 'Z')
                return false;
        for (; *s; s++)
                if (!((*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9')))
                        return false;
        return true;
}

static void read_error(struct arena *a, const struct json *root, struct measure_sample *s)
{
        const struct json *j = json_at(root, "error");
        const char *reason = short_text(a, json_at(j, "reason"), NAME_MAX_BYTES);

        if (!json_is(j, JSON_OBJECT))
                return;
        s->error_message = short_text(a, json_at(j, "message"), MEASURE_TEXT_MAX);
        s->error_reason = is_reason(reason) ? reason : s->error_message ? "WorkloadError" : NULL;
}

static bool is_known(const struct json *member)
{
        return streq(member->key, "region") || streq(member->key, "error") || streq(member->key, "ml");
}

/* Of one member among the metrics; NULL: it is none. */
static struct json *metric(struct arena *a, const struct json *j)
{
        const char *text;
        double v;

        if (json_is(j, JSON_NUMBER))
                return json_to_double(j, &v) && fabs(v) < MOST ? json_copy(a, j) : NULL;
        text = short_text(a, j, MEASURE_TEXT_MAX);
        return text ? json_string(a, text) : NULL;
}

/* With the first MEASURE_METRICS_MAX. */
static void add_metric(struct arena *a, struct measure_sample *s, struct str name, struct json *value)
{
        if (!value || !name.n || name.n > NAME_MAX_BYTES)
                return;
        if (!s->metrics)
                s->metrics = json_object(a);
        if (json_len(s->metrics) < MEASURE_METRICS_MAX && !json_get(s->metrics, name))
                json_setn(a, s->metrics, name, value);
}

int measure_metrics_parse(struct arena *a, struct str text, struct measure_sample *s, struct err *err)
{
        static const struct json_limits limits = {
                .bytes = MEASURE_METRICS_FILE_MAX, .depth = DEPTH_MAX, .nodes = NODES_MAX};
        struct json *root = json_parse(a, text, &limits, err);
        struct measure_region region;

        if (!root)
                return -1;
        if (!json_is(root, JSON_OBJECT))
                return err_set(err, E_INVALID, "it is a %s, not an object", json_type_name(root->type));
        if (read_region(root, &region, err) < 0)
                return -1;
        if (json_at(root, "ml") && !json_is(json_at(root, "ml"), JSON_OBJECT))
                return err_set(err, E_INVALID, "ml is not an object");
        s->region = region;
        read_error(a, root, s);
        s->ml = json_copy(a, json_at(root, "ml"));
        json_foreach (j, root)
                if (!is_known(j))
                        add_metric(a, s, str_n(j->key, j->key_len), metric(a, j));
        return 0;
}

/* ---- lines of output */

static bool is_name(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

                if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.' || c == '-')))
                        return false;
        }
        return s.n > 0 && s.n <= NAME_MAX_BYTES;
}

/* Decimal alone: no hexadecimal, no infinity. */
static bool to_number(struct str s, double *ret)
{
        char text[NUMBER_MAX], *end;

        if (!s.n || s.n >= sizeof(text))
                return false;
        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        if (strspn(text, "0123456789+-.eE") != s.n)
                return false;
        *ret = strtod(text, &end);
        return !*end && fabs(*ret) < MOST;
}

static void take_line(struct measure_scan *s, struct str line)
{
        struct str name = str_split(&line, '=');
        double value;

        if (!line.p || !is_name(name = str_trim(name)) || !to_number(str_trim(line), &value))
                return;
        vec_foreach (f, &s->found)
                if (str_eq(str_of(f->name), name)) {
                        f->value = value; /* the last one said is the one that counts */
                        return;
                }
        if (s->found.n < MEASURE_METRICS_MAX)
                *vec_push(&s->found) = (struct measure_found){xstrndup(name.p, name.n), value};
}

void measure_scan_feed(struct measure_scan *s, struct str piece)
{
        while (piece.n) {
                const char *newline = memchr(piece.p, '\n', piece.n);
                size_t n = newline ? (size_t)(newline - piece.p) : piece.n;

                if (!s->skip && s->line.n + n <= s->line.max)
                        buf_add(&s->line, piece.p, n);
                else
                        s->skip = true;
                if (newline)
                        measure_scan_end(s);
                piece.p += n + (newline ? 1 : 0);
                piece.n -= n + (newline ? 1 : 0);
        }
}

void measure_scan_end(struct measure_scan *s)
{
        if (!s->skip && s->line.n)
                take_line(s, buf_str(&s->line));
        buf_clear(&s->line);
        s->skip = false;
}

void measure_scan_done(struct measure_scan *s)
{
        vec_foreach (f, &s->found)
                free(f->name);
        vec_done(&s->found);
        buf_done(&s->line);
}

void measure_scan_add(struct arena *a, const struct measure_scan *scan, struct measure_sample *s)
{
        vec_foreach (f, &scan->found)
                add_metric(a, s, str_of(f->name), json_double(a, f->value));
}
