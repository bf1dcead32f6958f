#include "cli/phases.h"

#include <math.h>

#include "cli/live.h"
#include "probe/session/session.h"
#include "run/run.h"

enum {
        EVENTS_SHOWN = 4,
        WRAPPED_LINES = 4,
        BAR_LEAST = 8,  /* less shows nothing */
        BAR_MOST = 50,  /* of the whole run */
        PHASE_BAR = 20, /* of a phase */
        WIDE = 64,      /* from here on a phase has a bar */
        LINE_LEAST = 20,
        STEPS_WIDTH = 8,
        LINE_BYTES = 8192,
};

/* One line of the tree. */
enum mark { MARK_DONE, MARK_NOW, MARK_FAILED, MARK_PLANNED };

struct row {
        enum mark mark;
        const char *name;
        uint32_t step, steps; /* 0 of 0: not known */
        bool timed;           /* took is known */
        double took, left;    /* seconds; left NAN: not known */
        double share;         /* 0 ... 1; NAN: not known */
};

/* All that is needed to draw. */
struct drawing {
        const struct phases *t;
        struct arena *a;
        struct buf *out;
        unsigned width;
        struct summary s;
        const struct json *progress; /* the kind's own, or that of all kinds */
        bool has_report;
        struct run_status report;
        struct track track;
        bool has_track;
        VEC(struct row) rows;
};

/* ---- lines */

static const char *tone(const struct drawing *d, enum tone which)
{
        return screen_tone(&d->t->screen, which);
}

static const char *plain(const struct drawing *d)
{
        return screen_plain(&d->t->screen);
}

static void add_line(struct drawing *d, const char *text)
{
        live_text(d->out, str_of(text), d->width);
        buf_addc(d->out, '\n');
}

/* LEFT, and RIGHT at the right edge; below it where both do not fit. */
static void add_line_of_two(struct drawing *d, const char *left, const char *right)
{
        unsigned l = live_width(str_of(left)), r = live_width(str_of(right));

        if (!*right) {
                add_line(d, left);
        } else if (l + r + 2 <= d->width) {
                live_pad(d->out, str_of(left), d->width - r);
                buf_printf(d->out, "%s\n", right);
        } else {
                add_line(d, left);
                add_line(d, arena_printf(d->a, "  %s", right));
        }
}

/* The bytes of TEXT that make a line of at most COLUMNS, cut at a blank where there is one. */
static size_t line_of(const char *text, unsigned columns)
{
        size_t at = 0, blank = 0;

        while (text[at] && text_width(str_n(text, at + 1)) <= columns) {
                if (text[at] == ' ')
                        blank = at;
                at++;
        }
        if (!text[at])
                return at;
        return blank ? blank : utf8_cut(text, strlen(text), at);
}

/* TEXT over several lines, each after INDENT blanks; what is more than a few lines is cut. */
static void add_wrapped(struct drawing *d, unsigned indent, enum tone which, const char *text)
{
        unsigned columns = MAX(d->width, indent + LINE_LEAST) - indent;

        for (int i = 0; *text && i < WRAPPED_LINES; i++) {
                bool last = i + 1 == WRAPPED_LINES;
                size_t n = last ? strlen(text) : line_of(text, columns);

                add_line(d, arena_printf(d->a, "%*s%s%.*s%s", (int)indent, "", tone(d, which),
                                         (int)MIN(n, (size_t)LINE_BYTES), text, plain(d)));
                text += MAX(n, (size_t)1);
                text += strspn(text, " ");
        }
}

static const char *duration(const struct drawing *d, double seconds)
{
        if (seconds < 0.05)
                return "0s";
        return show_duration(d->a, (usec_t)(fmax(seconds, 0) * (double)USEC_PER_SEC));
}

/* What changes all the time, and need not be exact. */
static const char *roughly(const struct drawing *d, double seconds)
{
        return show_age(d->a, (usec_t)(fmax(seconds, 0) * (double)USEC_PER_SEC));
}

/* ---- what is known of the phases */

/* Plans of profilers that declare theirs in their reports, for who has not seen one. */
static const char *const session_phases[] = {SESSION_PREPARING, SESSION_WARMUP, SESSION_MEASURING,
                                             SESSION_ANALYSING};
static const char *const ncu_phases[] = {"Collecting", "Importing"};

static void plan_names(struct run_plan *ret, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++)
                snprintf(ret->phases[ret->n++].name, RUN_PHASE_NAME_MAX + 1, "%s", names[i]);
}

static void plan_of_kind(const struct kind *kind, struct run_plan *ret)
{
        *ret = (struct run_plan){0};
        if (kind->result)
                return;
        if (kind->type == &DGDR) {
                *ret = RUN_PLAN_DGDR;
                for (uint32_t i = 0; i < ret->n; i++)
                        ret->phases[i].steps = 0;
                return;
        }
        if (kind->type == &CUDAEXPERIMENT)
                plan_names(ret, ncu_phases, ARRAY_LEN(ncu_phases));
        else
                plan_names(ret, session_phases, ARRAY_LEN(session_phases));
}

/* What the run reports, if it is of the attempt that the object tells of. */
static void read_map(struct drawing *d)
{
        const struct json *data = json_at(d->t->status_map, "data"), *track;
        struct str status = json_text(json_at(data, RUN_KEY_STATUS));
        struct str text = json_text(json_at(data, RUN_KEY_TRACK));
        uint64_t attempt;

        if (!str_to_u64(json_text(json_at(data, RUN_KEY_ATTEMPT)), &attempt) || attempt < d->s.attempt)
                return;
        d->has_report = status.p && run_status_parse(d->a, status, d->t->now, &d->report, NULL) >= 0;
        track = text.p ? json_parse(d->a, text, NULL, NULL) : NULL;
        d->has_track = track && track_parse(track, &d->track, NULL) >= 0;
}

static bool is_terminal(const char *phase)
{
        return !phase || !*phase || run_phase_terminal(phase);
}

/* Steps of the present phase as the object has them; those of a report are the same or newer. */
static void take_steps(const struct drawing *d, struct row *row)
{
        if (d->s.steps > 0) {
                row->step = (uint32_t)MIN(MAX(d->s.step, (int64_t)0), (int64_t)RUN_STEPS_MAX);
                row->steps = (uint32_t)MIN(d->s.steps, (int64_t)RUN_STEPS_MAX);
                row->share = (double)row->step / (double)row->steps;
        }
}

/* How long a phase took, or takes: by what the relay saw. */
static void take_times(const struct drawing *d, const struct track_phase *p, struct row *row)
{
        uint32_t rest = p->total > p->done ? p->total - p->done : 0;

        row->timed = true;
        row->took = track_phase_seconds(p, d->t->now);
        if (row->mark == MARK_DONE && p->total)
                row->step = row->steps = p->total;
        if (row->mark == MARK_NOW && p->done && rest)
                row->left = fmax(
                        p->sum / p->done * rest -
                                (p->step_began ? (double)usec_sub(d->t->now, p->step_began) / 1e6 : 0),
                        0);
}

/* Where the phase of that name and 1-based number stands. */
static enum mark mark_of(const struct drawing *d, const char *name, int number)
{
        const struct track_phase *p = d->has_track ? track_find(&d->track, name) : NULL;
        const char *failed = json_str(d->progress, "failedPhase");
        bool present = streq(d->s.doing, name);

        if (d->s.life == SUMMARY_SUCCEEDED)
                return MARK_DONE;
        if (summary_over(&d->s)) {
                if (streq(failed, name) || (!failed && present) || (!failed && p && !p->ended))
                        return MARK_FAILED;
                return p || (failed && number < run_phase_number(&RUN_PLAN_DGDR, failed)) ? MARK_DONE
                                                                                          : MARK_PLANNED;
        }
        if (present)
                return MARK_NOW;
        if (p && p->ended)
                return MARK_DONE;
        return d->s.phase_number > 0 && number < d->s.phase_number && d->s.life != SUMMARY_PENDING
                       ? MARK_DONE
                       : MARK_PLANNED;
}

static void add_phase(struct drawing *d, const struct run_phase *phase, int number)
{
        const struct track_phase *p = d->has_track ? track_find(&d->track, phase->name) : NULL;
        struct row *row = vec_push(&d->rows);

        *row = (struct row){.mark = mark_of(d, phase->name, number),
                            .name = text_clean(d->a, phase->name),
                            .left = NAN,
                            .share = NAN};
        if (row->mark == MARK_NOW || (row->mark == MARK_FAILED && streq(d->s.doing, phase->name)))
                take_steps(d, row);
        else if (row->mark == MARK_PLANNED)
                row->steps = phase->steps;
        if (p && row->mark != MARK_PLANNED)
                take_times(d, p, row);
}

/* What the request goes through beside its profiler's phases: Deploying, Executing. */
static void add_state(struct drawing *d, const struct run_plan *plan)
{
        const char *what = is_terminal(d->s.doing) ? d->s.state : d->s.doing;

        if (d->s.life != SUMMARY_RUNNING || run_phase_number(plan, what) || streq(what, "Pending"))
                return;
        *vec_push(&d->rows) = (struct row){
                .mark = MARK_NOW, .name = text_clean(d->a, what), .left = NAN, .share = NAN};
}

static void find_rows(struct drawing *d)
{
        struct run_plan plan;

        if (d->has_report)
                plan = *run_status_plan(d->a, &d->report);
        else
                plan_of_kind(d->t->kind, &plan);
        /* A request that was never profiled has no phases. */
        if (!d->has_report && !d->s.doing && d->s.life != SUMMARY_PENDING)
                plan.n = 0;
        if (d->s.life == SUMMARY_SCHEDULED)
                plan.n = 0;
        for (uint32_t i = 0; i < plan.n; i++)
                add_phase(d, &plan.phases[i], (int)i + 1);
        add_state(d, &plan);
}

/* ---- the head */

/* What the request is about, in a word or two. */
static const char *subject(const struct drawing *d)
{
        static const struct {
                const struct kube_type *type;
                const char *path;
        } subjects[] = {{&DGDR, "spec.backend"},
                        {&ALGORITHMPROFILING, "spec.algorithmName"},
                        {&CUDAEXPERIMENT, "spec.image"},
                        {&WORKLOADPROFILE, "spec.workloadImage"}};

        for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
                if (subjects[i].type == d->t->kind->type)
                        return json_cstr(json_path(d->t->object, subjects[i].path));
        return NULL;
}

static const char *head(const struct drawing *d)
{
        const struct summary *s = &d->s;
        const char *text = arena_printf(d->a, "%s%s%s", tone(d, TONE_BOLD), text_clean(d->a, d->t->label),
                                        plain(d));
        const char *about = subject(d);

        text = arena_printf(d->a, "%s · %s", text, text_clean(d->a, s->deleting ? "Deleting" : s->phase));
        if (about && *about)
                text = arena_printf(d->a, "%s · %s", text, text_clean(d->a, about));
        if (s->not_measured)
                text = arena_printf(d->a, "%s · simulated", text);
        if (s->started)
                text = arena_printf(d->a, "%s · started %s", text, show_clock(d->a, d->t->now, s->started));
        if (s->attempt > 1)
                text = arena_printf(d->a, "%s · attempt %llu", text, (unsigned long long)s->attempt);
        return text;
}

/* "ETA 15:12 (15:08-15:21)", or how long it took. */
static const char *when(const struct drawing *d)
{
        const struct summary *s = &d->s;
        struct arena *a = d->a;

        if (summary_over(s) && s->ended && s->started)
                return arena_printf(a, "took %s", show_duration(a, usec_sub(s->ended, s->started)));
        if (s->stuck && s->updated)
                return arena_printf(a, "%snot moving for %s%s", tone(d, TONE_WARN),
                                    show_age(a, usec_sub(d->t->now, s->updated)), plain(d));
        if (s->starts)
                return show_start(a, d->t->now, s->starts);
        if (!s->eta_mid)
                return "";
        if (s->eta_mid <= d->t->now)
                return arena_printf(a, "ETA %s", show_eta(a, d->t->now, s->eta_low, s->eta_mid, s->eta_high));
        return arena_printf(a, "ETA %s, in %s", show_clock(a, d->t->now, s->eta_mid),
                            show_eta(a, d->t->now, s->eta_low, s->eta_mid, s->eta_high));
}

static void add_overall(struct drawing *d)
{
        static const char title[] = "overall  ";
        unsigned room = d->width > sizeof(title) + 7 ? d->width - (unsigned)sizeof(title) - 7 : 0;

        if (!isfinite(d->s.percent) || d->s.life == SUMMARY_SCHEDULED)
                return;
        buf_adds(d->out, title);
        if (room >= BAR_LEAST)
                live_bar(d->out, d->s.percent / 100, MIN(room, (unsigned)BAR_MOST));
        buf_printf(d->out, "%s%3s %%\n", room >= BAR_LEAST ? "  " : "", show_percent(d->a, d->s.percent));
}

/* ---- the phases */

static const char *steps_of(const struct drawing *d, const struct row *row)
{
        if (!row->steps)
                return "";
        if (row->mark == MARK_PLANNED)
                return arena_printf(d->a, "%u step%s", row->steps, row->steps == 1 ? "" : "s");
        return arena_printf(d->a, "%u/%u", row->step, row->steps);
}

static const char *times_of(const struct drawing *d, const struct row *row)
{
        if (!row->timed)
                return "";
        if (row->mark != MARK_NOW)
                return duration(d, row->took);
        if (d->width < WIDE)
                return roughly(d, row->took);
        if (isnan(row->left))
                return arena_printf(d->a, "%s so far", roughly(d, row->took));
        return arena_printf(d->a, "%s so far, ~%s left", roughly(d, row->took), roughly(d, ceil(row->left)));
}

static const char *bar_of(const struct drawing *d, const struct row *row)
{
        _cleanup_(buf_done) struct buf bar = BUF_INIT(LINE_BYTES);

        if (row->mark != MARK_NOW || isnan(row->share) || d->width < WIDE)
                return "";
        live_bar(&bar, row->share, PHASE_BAR);
        return arena_printf(d->a, "%s  ", buf_cstr(&bar));
}

static void add_row(struct drawing *d, const struct row *row, unsigned names)
{
        static const struct {
                const char *sign;
                enum tone tone;
        } marks[] = {[MARK_DONE] = {"✓", TONE_GOOD},
                     [MARK_NOW] = {"▸", TONE_BOLD},
                     [MARK_FAILED] = {"✗", TONE_BAD},
                     [MARK_PLANNED] = {"·", TONE_DIM}};
        _cleanup_(buf_done) struct buf line = BUF_INIT(LINE_BYTES);
        const char *on = tone(d, marks[row->mark].tone), *steps = steps_of(d, row), *times = times_of(d, row);

        buf_printf(&line, " %s%s ", on, marks[row->mark].sign);
        if (*steps || *times)
                live_pad(&line, str_of(row->name), names);
        else
                live_text(&line, str_of(row->name), names);
        buf_adds(&line, plain(d));
        if (*steps || *times) {
                unsigned n = live_width(str_of(steps));

                buf_printf(&line, "%*s%s", n < STEPS_WIDTH ? (int)(STEPS_WIDTH - n) : 1, "", steps);
        }
        if (*times || *bar_of(d, row))
                buf_printf(&line, "  %s%s", bar_of(d, row), times);
        add_line(d, buf_cstr(&line));
}

/* "812 MB, CPU 98 %": what is known of it. */
static const char *usage_of(const struct drawing *d)
{
        bool memory = isfinite(d->s.memory_mb), cpu = isfinite(d->s.cpu_percent);
        const char *text = memory ? arena_printf(d->a, "%.0f MB", d->s.memory_mb) : "";

        return cpu ? arena_printf(d->a, "%s%sCPU %.0f %%", text, memory ? ", " : "", d->s.cpu_percent) : text;
}

/* What it does at this moment. */
static void add_now(struct drawing *d)
{
        const struct json *gpus = json_at(d->progress, "gpuConfig");
        const char *mapping = json_str(gpus, "parallelMapping"), *sub = json_str(d->progress, "subPhase");
        long long n = json_int(gpus, "currentGpus", 0);
        const char *text = "";

        if (mapping && *mapping)
                text = arena_printf(d->a, "%s%s", mapping, n > 0 ? " on " : "");
        if (n > 0)
                text = arena_printf(d->a, "%s%lld GPU%s", text, n, n == 1 ? "" : "s");
        if (sub && *sub)
                text = arena_printf(d->a, "%s%s%s", text, *text ? " · " : "", sub);
        if (d->s.message && *d->s.message)
                text = arena_printf(d->a, "%s%s%s", text, *text ? " · " : "", d->s.message);
        if (*usage_of(d))
                text = arena_printf(d->a, "%s%s%s", text, *text ? " · " : "", usage_of(d));
        if (*text)
                add_wrapped(d, 5, TONE_PLAIN, text_clean(d->a, text));
        if (d->s.best && *d->s.best)
                add_wrapped(d, 5, TONE_PLAIN,
                            arena_printf(d->a, "best so far: %s", text_clean(d->a, d->s.best)));
}

static void add_rows(struct drawing *d)
{
        unsigned names = 0, most = MAX(d->width, 2U * LINE_LEAST) - LINE_LEAST;
        bool told = d->s.life != SUMMARY_RUNNING;

        vec_foreach (row, &d->rows)
                names = MAX(names, live_width(str_of(row->name)));
        vec_foreach (row, &d->rows) {
                add_row(d, row, MIN(names, most));
                if (row->mark == MARK_NOW && !told) {
                        add_now(d);
                        told = true;
                }
        }
        if (!told)
                add_now(d);
}

/* ---- below them */

static void add_outcome(struct drawing *d)
{
        static const enum tone tones[] = {[SUMMARY_SUCCEEDED] = TONE_GOOD,
                                          [SUMMARY_FAILED] = TONE_BAD,
                                          [SUMMARY_CANCELLED] = TONE_WARN};
        const struct summary *s = &d->s;
        const char *text = s->sentence ? s->sentence : "", *colon = s->reason && *text ? ": " : "";
        const char *reason = s->reason ? s->reason : "";

        if (s->queue)
                text = arena_printf(d->a, "queue position %s: %s", s->queue, text);
        else
                text = arena_printf(d->a, "%s%s%s", reason, colon, text);
        if (*text)
                add_wrapped(d, 1, summary_over(s) ? tones[s->life] : TONE_WARN, text_clean(d->a, text));
}

static void add_events(struct drawing *d)
{
        const struct phases *t = d->t;

        for (size_t i = t->n_events > EVENTS_SHOWN ? t->n_events - EVENTS_SHOWN : 0; i < t->n_events; i++) {
                const struct phases_event *e = &t->events[i];

                add_line(d, arena_printf(d->a, "%s%s  %s%s%s%s", tone(d, e->warning ? TONE_WARN : TONE_DIM),
                                         show_clock(d->a, t->now, e->when), text_clean(d->a, e->reason),
                                         *e->message ? ": " : "", text_clean(d->a, e->message), plain(d)));
        }
}

static struct drawing begin(const struct phases *t, struct arena *a, struct buf *out)
{
        struct drawing d = {.t = t, .a = a, .out = out, .width = MAX(t->screen.width, (unsigned)LINE_LEAST)};
        const struct json *status = json_at(t->object, "status");
        const struct json *own = json_at(status, "profilingProgress");

        summarize(t->kind, t->object, a, &d.s);
        d.progress = own ? own : json_at(status, "progress");
        read_map(&d);
        find_rows(&d);
        return d;
}

void phases_draw(const struct phases *t, struct arena *a, struct buf *out)
{
        struct drawing d = begin(t, a, out);

        add_line_of_two(&d, head(&d), when(&d));
        add_overall(&d);
        if (d.rows.n)
                buf_addc(d.out, '\n');
        add_rows(&d);
        if (d.rows.n && (t->n_events || d.s.sentence))
                buf_addc(out, '\n');
        add_outcome(&d);
        add_events(&d);
        vec_done(&d.rows);
}

void phases_draw_tree(const struct phases *t, struct arena *a, struct buf *out)
{
        struct drawing d = begin(t, a, out);

        if (d.rows.n)
                add_rows(&d);
        vec_done(&d.rows);
}
