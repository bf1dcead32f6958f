#include "cli/results.h"

enum { TEXT_MAX = 64 << 20 };

/* ---- what a run left */

/* 1: it is there; 0: it is not, or may not be read; below 0: nobody could be asked. */
static int get(struct people *p, const struct people_run *run, const struct kube_type *type, const char *name,
               struct json **ret)
{
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = type,
                                 .ns = run->summary.ns,
                                 .name = name,
                                 .timeout = p->request_timeout};
        struct err err = ERR_INIT;
        struct asked got;

        *ret = NULL;
        if (ask(run->cluster->kube, &r, NULL, &p->arena, &got, &err) == 0) {
                *ret = got.doc;
                return 1;
        }
        if (err.code == E_NOT_FOUND)
                return 0;
        people_complain(run->cluster, NULL, &err);
        if (err.code != E_FORBIDDEN)
                return -1;
        cli_error("so only what %s itself says of its run is known", run->label);
        return 0;
}

int results_fetch(struct people *p, const struct people_run *run, struct run_docs *ret)
{
        const char *profile = json_cstr(json_path(run->object, "status.profileName"));
        struct run_kind names;
        struct json *doc;

        *ret = (struct run_docs){.kind = run->kind, .object = run->object};
        if (run->kind->result)
                ret->profile = run->object;
        if (kinds_run(run->kind, run->object, &p->arena, &names)) {
                if (get(p, run, &KUBE_CONFIGMAP, names.data_map, &doc) < 0)
                        return -1;
                if (doc)
                        run_docs_take(ret, doc, &p->arena);
        }
        if (profile && *profile) {
                if (get(p, run, &WORKLOADPROFILE, profile, &doc) < 0)
                        return -1;
                ret->profile = doc;
        }
        return 0;
}

/* ---- where it goes */

int results_write_text(const struct buf *text, const char *to)
{
        struct err err = ERR_INIT;

        if (text->overflow) {
                cli_error("what came out is too large to be printed");
                return 1;
        }
        if (!to) {
                fwrite(text->p, 1, text->n, stdout);
                return people_finish(0);
        }
        if (file_replace(to, buf_str(text), 0644, &err) < 0) {
                cli_error("%s", err.text);
                return 1;
        }
        return 0;
}

static int write_table(struct people *p, const struct report *report, const char *to)
{
        struct screen screen = screen_of(stdout);
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        char *text = NULL;
        size_t n = 0;

        if (!to) {
                report_write_table(report, &p->arena, &screen);
                return people_finish(0);
        }
        screen = (struct screen){.to = open_memstream(&text, &n)};
        if (screen.to) {
                report_write_table(report, &p->arena, &screen);
                if (fclose(screen.to) == 0)
                        buf_add(&out, text, n);
        }
        free(text);
        return results_write_text(&out, to);
}

int results_write(struct people *p, const struct report *report, const char *to)
{
        static const struct {
                const char *format;
                void (*write)(const struct report *r, struct arena *a, struct buf *out);
        } writers[] = {
                {"json", report_write_json},
                {"csv", report_write_csv},
                {"md", report_write_markdown},
                {"html", report_write_html},
        };

        for (size_t i = 0; i < ARRAY_LEN(writers); i++)
                if (streq(p->output, writers[i].format)) {
                        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

                        writers[i].write(report, &p->arena, &out);
                        return results_write_text(&out, to);
                }
        return write_table(p, report, to);
}
