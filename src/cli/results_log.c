/*
 * A run as trackers of experiments take it.
 */
#include "cli/results.h"

#include <math.h>

enum { FILE_MAX = 8 << 20, DEPTH_MAX = 8 };

/* ---- keys */

static const char *key_of(struct arena *a, const char *text)
{
        char *key = arena_strndup(a, text, utf8_cut(text, strlen(text), RESULTS_KEY_MAX));

        for (char *p = key; *p; p++)
                if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                      strchr("_-./ ", *p)))
                        *p = '_';
        return key;
}

static void add_tag(struct results_log *log, const char *key, const char *value)
{
        if (value && *value)
                *vec_push(&log->tags) = (struct results_text){key, value};
}

/* ---- the request */

static const char *value_text(struct arena *a, const struct json *j)
{
        const char *text = json_is(j, JSON_STRING) ? json_cstr(j) : json_print(a, j);

        return text ? text_clean(a, arena_strndup(a, text, utf8_cut(text, strlen(text), RESULTS_VALUE_MAX)))
                    : NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as DEPTH_MAX */
static void add_params(struct results_log *log, struct arena *a, const char *path, const struct json *j,
                       int depth)
{
        size_t i = 0;

        if (!json_is(j, JSON_ARRAY) && !json_is(j, JSON_OBJECT)) {
                const char *value = j && !json_is(j, JSON_NULL) ? value_text(a, j) : NULL;

                if (value && *path && log->params.n < RESULTS_PARAMS_MAX)
                        *vec_push(&log->params) = (struct results_text){key_of(a, path), value};
                return;
        }
        json_foreach (child, depth < DEPTH_MAX ? j : NULL) {
                const char *dot = *path ? "." : "";

                add_params(log, a,
                           json_is(j, JSON_ARRAY) ? arena_printf(a, "%s%s%zu", path, dot, i++)
                                                  : arena_printf(a, "%s%s%.*s", path, dot,
                                                                 (int)MIN(child->key_len, 200U), child->key),
                           child, depth + 1);
        }
}

/* ---- what came out */

static void add_metric(struct results_log *log, struct arena *a, const char *key, const char *suffix,
                       double value)
{
        if (isfinite(value))
                *vec_push(&log->metrics) = (struct results_number){key_of(a, arena_join(a, key, suffix, "")),
                                                                   value};
}

static void add_metrics(struct results_log *log, struct arena *a, const struct run_docs *docs)
{
        struct figures f;

        figures_of(docs, a, &f);
        for (size_t i = 0; i < f.n; i++) {
                const struct figure *one = &f.v[i];
                const char *key = one->of ? arena_printf(a, "%s/%s", one->of, one->key) : one->key;

                add_metric(log, a, key, "", one->value);
                add_metric(log, a, key, "_low", one->low);
                add_metric(log, a, key, "_high", one->high);
        }
}

static void add_file(struct results_log *log, struct arena *a, const char *name, const char *type,
                     struct buf *content)
{
        if (content->overflow || !content->n)
                return;
        *vec_push(&log->artifacts) = (struct results_file){
                name, type, str_n(arena_strndup(a, content->p, content->n), content->n)};
}

static void add_report(struct results_log *log, struct arena *a, const struct run_docs *docs)
{
        static const struct {
                const char *name, *type;
                void (*write)(const struct report *r, struct arena *a, struct buf *out);
                bool samples;
        } files[] = {
                {"results.json", "application/json", report_write_json, false},
                {"results.html", "text/html", report_write_html, false},
                {"samples.csv", "text/csv", report_write_csv, true},
        };

        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(FILE_MAX);
                _cleanup_(report_done) struct report r = {0};

                if (files[i].samples && !docs->samples)
                        continue;
                report_make(docs, report_kind(docs->kind), files[i].samples, a, &r);
                files[i].write(&r, a, &out);
                add_file(log, a, files[i].name, files[i].type, &out);
        }
}

/* As they are. */
static void add_documents(struct results_log *log, struct arena *a, const struct run_docs *docs)
{
        const struct json *deployment = run_docs_at(docs, "status.generatedDeployment");
        _cleanup_(buf_done) struct buf result = BUF_INIT(FILE_MAX), yaml = BUF_INIT(FILE_MAX);

        if (docs->result)
                json_write(docs->result, JSON_PRETTY, &result);
        if (json_is(deployment, JSON_OBJECT))
                yaml_write(deployment, &yaml);
        add_file(log, a, "result.json", "application/json", &result);
        add_file(log, a, "deployment.yaml", "application/yaml", &yaml);
}

void results_log_make(const struct run_docs *docs, struct arena *a, struct results_log *ret)
{
        const struct json *machine = run_docs_at(docs, "status.statistics.machine");
        struct summary s;

        summarize(docs->kind, docs->object, a, &s);
        *ret = (struct results_log){.name = arena_printf(a, "%s/%s", docs->kind->label, s.name),
                                    .started = s.started,
                                    .ended = s.ended,
                                    .failed = s.life == SUMMARY_FAILED || s.life == SUMMARY_CANCELLED};
        add_tag(ret, "kind", docs->kind->type->kind);
        add_tag(ret, "namespace", s.ns);
        add_tag(ret, "uid", s.uid);
        add_tag(ret, "machine", json_str(machine, "cpu"));
        add_tag(ret, "origin", run_docs_origin(docs));
        add_params(ret, a, "", json_at(docs->object, "spec"), 0);
        add_metrics(ret, a, docs);
        add_report(ret, a, docs);
        add_documents(ret, a, docs);
}

void results_log_done(struct results_log *log)
{
        vec_done(&log->params);
        vec_done(&log->tags);
        vec_done(&log->metrics);
        vec_done(&log->artifacts);
}
