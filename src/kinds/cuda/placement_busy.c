/*
 * How busy a node's GPUs are, by what its dcgm-exporter tells: text in Prometheus' format, of which one metric is read. It comes
 * from whatever answers at an address, so lines that are not as they should be are passed over.
 */
#include "kinds/cuda/placement.h"

enum { NUMBER_MAX = 63 };

static void keep_only(struct json *of, struct arena *a, const char *key, const char *const *members)
{
        struct json *kept = json_object(a);

        for (; *members; members++) {
                const struct json *value = json_at(json_at(of, key), *members);

                json_set(a, kept, *members, value ? json_copy(a, value) : NULL);
        }
        json_set(a, of, key, kept);
}

void place_project_exporter(struct json *pod, struct arena *a)
{
        static const char *const meta[] = {"namespace", "name", NULL};
        static const char *const spec[] = {"nodeName", "containers", NULL};
        static const char *const status[] = {"phase", "podIP", "conditions", NULL};
        struct json *containers = json_array(a);

        keep_only(pod, a, "metadata", meta);
        keep_only(pod, a, "spec", spec);
        keep_only(pod, a, "status", status);
        json_foreach (c, json_at(json_at(pod, "spec"), "containers")) {
                const struct json *ports = json_at(c, "ports");

                json_append(containers,
                            json_build(a, "{'ports': %p}", (void *)(ports ? json_copy(a, ports) : NULL)));
        }
        json_set(a, json_at(pod, "spec"), "containers", containers);
}

static struct str skip_blanks(struct str s)
{
        while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
                s = str_n(s.p + 1, s.n - 1);
        return s;
}

/* What is behind the labels, if there are any. A brace may stand in a value. False: they do not end. */
static bool skip_labels(struct str *s)
{
        bool quoted = false;

        if (!s->n || s->p[0] != '{')
                return true;
        for (size_t i = 1; i < s->n; i++) {
                if (quoted && s->p[i] == '\\')
                        i++;
                else if (s->p[i] == '"')
                        quoted = !quoted;
                else if (!quoted && s->p[i] == '}') {
                        *s = str_n(s->p + i + 1, s->n - i - 1);
                        return true;
                }
        }
        return false;
}

/* A per cent; neither NaN, nor infinite, nor what DCGM has for "blank", which is far above 100. */
static bool read_value(struct str s, double *ret)
{
        char text[NUMBER_MAX + 1], *end;
        size_t n = 0;

        /* A time may follow. */
        for (; n < s.n && s.p[n] != ' ' && s.p[n] != '\t'; n++) {
                if (n == NUMBER_MAX || !memchr("0123456789+-.eE", s.p[n], 15))
                        return false;
                text[n] = s.p[n];
        }
        text[n] = '\0';
        *ret = strtod(text, &end);
        return n && !*end && *ret >= 0 && *ret <= 100;
}

static bool read_line(struct str line, double *ret)
{
        static const struct str name = {"DCGM_FI_DEV_GPU_UTIL", sizeof("DCGM_FI_DEV_GPU_UTIL") - 1};
        struct str rest;

        line = str_trim(line);
        if (!str_has_prefix(line, name))
                return false;
        rest = skip_blanks(str_n(line.p + name.n, line.n - name.n));
        /* Of a longer name it is the beginning only. */
        if (!rest.n || (rest.p == line.p + name.n && rest.p[0] != '{') || !skip_labels(&rest))
                return false;
        return read_value(skip_blanks(rest), ret);
}

double place_busy_of(struct str metrics)
{
        double sum = 0, value;
        size_t n = 0;

        while (metrics.p)
                if (read_line(str_split(&metrics, '\n'), &value)) {
                        sum += value;
                        n++;
                }
        return n ? sum / (double)n : -1;
}
