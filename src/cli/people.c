#include "cli/people.h"

#include <ctype.h>
#include <math.h>
#include <unistd.h>

/* ---- clusters */

/* Where `sonde up` has left a kubeconfig; NULL: nowhere. */
static const char *up_kubeconfig(struct arena *a)
{
        _cleanup_(free_ptr) char *home = cli_home();
        const char *file = arena_printf(a, "%s/kubeconfig", home);

        return access(file, R_OK) == 0 ? file : NULL;
}

/* One machine's own engine is for who has no other cluster: then nothing need be said to find it. */
static void look_for_up(struct people *p, struct kube_config_sources *s)
{
        const char *home = arena_printf(&p->arena, "%s/.kube/config", s->home ? s->home : "");
        bool elsewhere = s->kubeconfig || (s->env_kubeconfig && *s->env_kubeconfig) ||
                         (s->service_host && *s->service_host) || access(home, F_OK) == 0;

        if (!elsewhere)
                s->kubeconfig = up_kubeconfig(&p->arena);
}

static int add_cluster(struct people *p, const char *context)
{
        struct kube_config_sources s = {.kubeconfig = p->kubeconfig, .context = context, .ns = p->ns};
        struct people_cluster *c = *vec_push(&p->clusters) = xcalloc(1, sizeof(*c));
        struct err err = ERR_INIT;

        kube_config_from_env(&s);
        look_for_up(p, &s);
        if (kube_config_load(&s, &c->config, &err) < 0) {
                cli_error("%s", err.text);
                return -1;
        }
        c->name = c->config.context ? c->config.context : c->config.source;
        c->ns = p->all_namespaces ? NULL : c->config.ns;
        c->kube = kube_new(p->loop, &c->config, &(struct kube_options){0}, &err);
        if (!c->kube) {
                cli_error("%s: %s", c->config.source, err.text);
                return -1;
        }
        return 0;
}

static bool is_open(const struct people *p, const char *context)
{
        for (size_t i = 0; i < p->clusters.n; i++)
                if (streq(p->clusters.v[i]->name, context))
                        return true;
        return false;
}

/* Each context of "A,B" once. */
static int add_clusters(struct people *p)
{
        struct str rest = str_of(p->contexts);

        while (rest.p) {
                struct str one = str_trim(str_split(&rest, ','));
                const char *context = arena_strndup(&p->arena, one.p, one.n);

                if (!*context) {
                        cli_error("--context: '%s' has an empty name in it", p->contexts);
                        return -1;
                }
                if (!is_open(p, context) && add_cluster(p, context) < 0)
                        return -1;
        }
        return 0;
}

int people_open(struct people *p, enum people_how how)
{
        struct err err = ERR_INIT;

        p->loop = loop_new(NULL, NULL, &err);
        if (!p->loop) {
                cli_error("%s", err.text);
                return -1;
        }
        p->now = loop_wall(p->loop);
        return p->contexts && how == PEOPLE_SEVERAL ? add_clusters(p) : add_cluster(p, p->contexts);
}

void people_done(struct people *p)
{
        for (size_t i = 0; i < p->clusters.n; i++) {
                kube_free(p->clusters.v[i]->kube);
                kube_config_done(&p->clusters.v[i]->config);
                free(p->clusters.v[i]);
        }
        vec_done(&p->clusters);
        loop_free(p->loop);
        p->loop = NULL;
        arena_done(&p->arena);
}

struct people_cluster *people_cluster(struct people *p)
{
        return p->clusters.v[0];
}

/* ---- what went wrong */

const char *people_why(struct arena *a, const struct err *err)
{
        const char *last = err->text;
        char *out;

        for (const char *p = err->text; (p = strstr(p, ": ")); p += 2)
                last = p + 2;
        out = arena_strdup(a, last);
        if (isupper((unsigned char)out[0]) && islower((unsigned char)out[1]))
                out[0] = (char)tolower((unsigned char)out[0]);
        return out;
}

void people_complain(const struct people_cluster *c, const char *what, const struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *lead = what ? what : "", *colon = what ? ": " : "";

        switch (err->code) {
        case E_CONNECT:
        case E_TLS:
        case E_TIMEOUT:
                cli_error(
                        "%s%scannot reach the cluster at %s (%s); is the context right? current: %s (kubectl "
                        "config get-contexts)",
                        lead, colon, c->config.server, people_why(&a, err), c->name);
                return;
        case E_AUTH:
                cli_error("%s%sthe cluster at %s does not take the credentials of %s: %s", lead, colon,
                          c->config.server, c->config.source, err->text);
                return;
        default:
                cli_error("%s%s%s", lead, colon, err->text);
        }
}

void people_refuse_result(const char *verb, const struct people_run *run)
{
        const char *from = json_str(json_at(run->object, "spec"), "sourceCudaExperiment");

        if (from && *from)
                cli_error("%s: %s is a result, and nothing runs for it; it came from cudaexp/%s", verb,
                          run->label, from);
        else
                cli_error("%s: %s is a result, and nothing runs for it", verb, run->label);
}

bool people_check_output(const char *format, const char *const *formats)
{
        _cleanup_(buf_done) struct buf all = BUF_INIT(512);

        for (size_t i = 0; formats[i]; i++) {
                if (streq(format, formats[i]))
                        return true;
                buf_printf(&all, "%s%s", !i ? "" : formats[i + 1] ? ", " : " or ", formats[i]);
        }
        cli_error("-o: '%s' is not a format; %s is wanted", format, buf_cstr(&all));
        return false;
}

int people_finish(int code)
{
        if (fflush(stdout) == 0 && !ferror(stdout))
                return code;
        cli_error("cannot write to standard output");
        return code ? code : 1;
}

/* ---- how a run is shown */

enum tone people_tone(const struct summary *s)
{
        static const enum tone tones[] = {
                [SUMMARY_PENDING] = TONE_WARN,   [SUMMARY_RUNNING] = TONE_PLAIN,
                [SUMMARY_SUSPENDED] = TONE_DIM,  [SUMMARY_SCHEDULED] = TONE_DIM,
                [SUMMARY_SUCCEEDED] = TONE_GOOD, [SUMMARY_FAILED] = TONE_BAD,
                [SUMMARY_CANCELLED] = TONE_DIM,
        };

        return s->stuck ? TONE_WARN : tones[s->life];
}

const char *people_eta(struct people *p, const struct summary *s)
{
        const char *eta = show_eta(&p->arena, p->now, s->eta_low, s->eta_mid, s->eta_high);

        if (s->starts)
                return show_start(&p->arena, p->now, s->starts);
        if (!s->stuck || !s->updated)
                return eta;
        return arena_printf(&p->arena, "%s (not moving for %s)",
                            show_eta(&p->arena, p->now, 0, s->eta_mid, 0),
                            show_age(&p->arena, usec_sub(p->now, s->updated)));
}

const char *people_step(struct arena *a, const struct summary *s)
{
        return s->steps > 0 ? arena_printf(a, "%lld/%lld", (long long)s->step, (long long)s->steps) : "-";
}

const char *people_percent(struct arena *a, const struct summary *s)
{
        return show_percent(a, s->percent);
}

const char *people_reason(struct arena *a, const struct summary *s)
{
        const char *reason = s->reason ? s->reason : "", *sentence = s->sentence ? s->sentence : "";

        if (s->queue)
                return arena_printf(a, "queue position %s: %s", s->queue, sentence);
        if (*reason && *sentence)
                return arena_printf(a, "%s: %s", reason, sentence);
        if (s->life == SUMMARY_RUNNING && !*sentence && s->message)
                return s->message;
        return *sentence ? sentence : reason;
}

/* ---- exact places */

struct waiting {
        const struct people_cluster *cluster; /* NULL: nothing was listed yet */
        const char *ns;                       /* NULL: all of them */
        bool complete;
        VEC(const struct summary *) all;
};

static bool list_waiting(struct people *p, const struct people_cluster *c, const struct kind *kind,
                         const char *ns, struct waiting *w)
{
        struct kube_request r = {
                .verb = KUBE_LIST, .type = kind->type, .ns = ns, .limit = 500, .timeout = p->request_timeout};
        struct err err = ERR_INIT;
        struct asked got;

        do {
                if (ask(c->kube, &r, NULL, &p->arena, &got, &err) < 0)
                        return got.unserved;
                json_foreach (item, json_at(got.doc, "items")) {
                        struct summary *s = arena_new(&p->arena, struct summary);

                        summarize(kind, item, &p->arena, s);
                        if (s->queue)
                                *vec_push(&w->all) = s;
                }
                r.continue_token = json_str(json_at(got.doc, "metadata"), "continue");
        } while (r.continue_token && *r.continue_token);
        return true;
}

void people_places(struct people *p, struct people_run *runs, size_t n)
{
        struct waiting w = {0};
        const char *ns;

        for (size_t i = 0; i < n; i++) {
                struct summary *s = &runs[i].summary;

                if (!summary_place_is_rough(s, &ns))
                        continue;
                ns = p->all_namespaces ? NULL : ns;
                if (w.cluster != runs[i].cluster || (w.ns && !streq(w.ns, ns))) {
                        w.cluster = runs[i].cluster;
                        w.ns = ns;
                        w.complete = true;
                        w.all.n = 0;
                        for (size_t k = 0; kinds_at(k) && w.complete; k++)
                                w.complete = list_waiting(p, w.cluster, kinds_at(k), w.ns, &w);
                }
                if (w.complete)
                        s->queue = arena_printf(&p->arena, "%zu", summary_place(s, w.all.v, w.all.n));
        }
        vec_done(&w.all);
}

/* ---- one line a change */

/* A word of the line, after two spaces. */
static void add_word(struct buf *line, const char *text)
{
        if (text && *text)
                buf_printf(line, "  %s", text);
}

/* A number of some, where both are known. */
static void add_of(struct buf *line, const char *lead, int64_t n, int64_t of)
{
        if (n <= of && of > 0)
                buf_printf(line, "%s%lld/%lld", lead, (long long)n, (long long)of);
}

void people_line(struct buf *line, const char *label, const struct summary *s)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        buf_adds(line, label);
        add_word(line, s->state);
        if (!streq(s->doing, s->state))
                add_word(line, s->doing);
        if (s->doing)
                add_of(line, " ", s->phase_number, s->phases);
        if (isfinite(s->percent))
                buf_printf(line, "  %s %%", show_percent(&a, s->percent));
        add_of(line, "  ", s->step, s->steps);
        if (s->message)
                add_word(line, s->message);
        else if (!summary_over(s) && s->sentence)
                buf_printf(line, "  waits: %s", s->sentence);
}

void people_line_eta(struct buf *line, const struct summary *s)
{
        char text[TIME_TEXT_MAX];

        if (s->eta_mid)
                buf_printf(line, "  ETA %.8sZ", strchr(time_format(s->eta_mid, text), 'T') + 1);
}
