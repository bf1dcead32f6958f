#include "replay/replay.h"

#include <math.h>

enum { FILE_MAX = 4 << 20, LINE_MAX_TEXT = 256 };

static const usec_t BEGIN = 1767225600 * USEC_PER_SEC; /* 2026-01-01: any time will do */

/* ---- reading */

static int read_head(struct replay_run *run, const struct json *head, struct err *err)
{
        run->name = json_str(head, "run");
        run->set = json_str(head, "set");
        run->shape = json_str_or(head, "shape", "");
        if (!run->name || !run->set)
                return err_set(err, E_INVALID, "its first line has no 'run' and 'set'");
        return 0;
}

static int read_event(struct replay_run *run, const struct json *line, const struct json *plan,
                      struct err *err)
{
        struct json *status = json_at(line, "status");
        struct replay_event *e;
        double seconds;

        if (!json_is(status, JSON_OBJECT) || !json_to_double(json_at(line, "t"), &seconds))
                return err_set(err, E_INVALID, "no 't' and 'status'");
        if (json_is(plan, JSON_ARRAY))
                json_set(&run->arena, status, "plan", json_copy(&run->arena, plan));
        e = vec_push(&run->events);
        e->at = run->begin + (usec_t)llround(seconds * 1e6);
        if (run_status_parse(&run->arena, str_of(json_print(&run->arena, status)), e->at, &e->status, err) <
            0)
                return -1;
        e->plan = run_status_plan(&run->arena, &e->status);
        run->end = e->at;
        return 0;
}

static int read_lines(struct replay_run *run, struct str text, struct err *err)
{
        const struct json *plan = NULL;
        unsigned number = 0;

        while (text.n) {
                struct str line = str_split(&text, '\n');
                struct json *j;

                if (!line.n)
                        continue;
                j = json_parse(&run->arena, line, NULL, err);
                if (!j || (!number ? read_head(run, j, err) : read_event(run, j, plan, err)) < 0)
                        return err_wrap(err, "line %u", number + 1);
                if (!number)
                        plan = json_at(j, "plan");
                number++;
        }
        if (run->events.n < 2 || !streq(run->events.v[run->events.n - 1].status.phase, "Complete"))
                return err_set(err, E_INVALID, "it does not end with Complete");
        return 0;
}

int replay_load(const char *path, struct replay_run *ret, struct err *err)
{
        _cleanup_(replay_done) struct replay_run run = {.begin = BEGIN};
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);

        if (file_read(path, &text, err) < 0)
                return -1;
        if (read_lines(&run, buf_str(&text), err) < 0)
                return err_wrap(err, "%s", path);
        *ret = run;
        run = (struct replay_run){.begin = 0};
        return 0;
}

void replay_done(struct replay_run *run)
{
        vec_done(&run->events);
        arena_done(&run->arena);
}

/* ---- measuring */

struct moment {
        usec_t at;
        struct progress p;
};

struct points {
        VEC(double) widths;
        unsigned n, known, held;
};

/* At the moment AT the last event had left this. */
static void add_point(struct points *points, const struct replay_run *run, const struct progress *p,
                      usec_t at)
{
        const struct eta *e = &p->eta;

        points->n++;
        if (!e->known)
                return;
        points->known++;
        points->held += e->low <= run->end && run->end <= e->high;
        *vec_push(&points->widths) = (double)(e->high - e->low) / (double)(run->end - at);
}

static int compare(const void *x, const void *y)
{
        double a = *(const double *)x, b = *(const double *)y;

        return a < b ? -1 : a > b;
}

static void sum_up(struct points *points, struct replay_result *ret)
{
        ret->points = points->n;
        ret->known = points->known;
        ret->covered = points->known ? (double)points->held / points->known : 0;
        if (points->n && points->known * 2 < points->n)
                ret->covered = (double)points->held / points->n;
        if (points->widths.n) {
                qsort(points->widths.v, points->widths.n, sizeof(double), compare);
                ret->width = points->widths.v[points->widths.n / 2];
        }
}

static void check_moment(const struct replay_run *run, const struct moment *now, const struct moment *before,
                         struct replay_result *ret)
{
        const struct eta *e = &now->p.eta;
        bool at_end = now->at == run->end;

        if (before && now->p.percent < before->p.percent)
                ret->monotone = false;
        if ((now->p.percent >= 100) != at_end)
                ret->complete = false;
        if (!e->known)
                return;
        if (ret->first_eta < 0)
                ret->first_eta = (double)(now->at - run->begin) / 1e6;
        if (e->low < now->at || e->mid < e->low || e->high < e->mid)
                ret->ordered = false;
        if (e->high - e->low > 2 * (e->mid - now->at))
                ret->narrow = false;
}

/* What holds at grid point I: the last moment that is not after it. */
static const struct moment *moment_at(const struct moment *m, size_t n, usec_t at)
{
        size_t i = 0;

        while (i + 1 < n && m[i + 1].at <= at)
                i++;
        return &m[i];
}

static void measure_grid(const struct replay_run *run, const struct moment *m, size_t n, usec_t from,
                         struct points *points, struct replay_result *ret)
{
        double error = 0;

        for (unsigned i = 0; i < REPLAY_GRID; i++) {
                double share = (i + 0.5) / REPLAY_GRID;
                usec_t at = run->begin + (usec_t)(share * (double)(run->end - run->begin));
                const struct moment *now = moment_at(m, n, at);

                error += fabs(now->p.percent - 100 * share);
                if (at >= from)
                        add_point(points, run, &now->p, at);
        }
        ret->error = error / REPLAY_GRID;
}

void replay_measure(const struct replay_run *run, const struct priors *priors, struct replay_result *ret)
{
        _cleanup_(free_ptr) struct moment *m = xcalloc(run->events.n, sizeof(*m));
        usec_t from = run->begin + (usec_t)(REPLAY_FROM * (double)(run->end - run->begin));
        struct points points = {.n = 0};

        *ret = (struct replay_result){.first_eta = -1,
                                      .monotone = true,
                                      .complete = true,
                                      .narrow = true,
                                      .ordered = true,
                                      .events = (unsigned)run->events.n};
        for (size_t i = 0; i < run->events.n; i++) {
                const struct replay_event *e = &run->events.v[i];

                track_event(&ret->track, &e->status, e->at);
                m[i].at = e->at;
                track_progress(&ret->track, e->plan, priors, e->at, &m[i].p);
                check_moment(run, &m[i], i ? &m[i - 1] : NULL, ret);
                if (e->at >= from && e->at < run->end)
                        add_point(&points, run, &m[i].p, e->at);
        }
        measure_grid(run, m, run->events.n, from, &points, ret);
        sum_up(&points, ret);
        vec_done(&points.widths);
}

/* ---- all runs */

struct shape {
        const char *name;
        unsigned runs;
        struct priors priors;
};

static struct shape *shape_of(struct arena *a, struct map *shapes, const char *name)
{
        struct shape *s = map_get(shapes, str_of(name));

        if (!s) {
                s = arena_new(a, struct shape);
                s->name = arena_strdup(a, name);
                map_put(shapes, str_of(s->name), s);
        }
        return s;
}

static int replay_one(const char *path, struct replay_table *t, struct map *shapes, struct err *err)
{
        _cleanup_(replay_done) struct replay_run run = {.begin = 0};
        struct replay_row *row;
        struct shape *shape;

        if (replay_load(path, &run, err) < 0)
                return -1;
        shape = *run.shape ? shape_of(&t->arena, shapes, run.shape) : NULL;
        row = vec_push(&t->rows);
        row->name = arena_strdup(&t->arena, run.name);
        row->set = arena_strdup(&t->arena, run.set);
        row->history = shape ? shape->runs : 0;
        replay_measure(&run, shape && shape->runs ? &shape->priors : NULL, &row->result);
        if (shape) {
                shape->runs++;
                priors_add_track(&shape->priors, &row->result.track);
        }
        return 0;
}

int replay_all(const char *const *paths, size_t n, struct replay_table *ret, struct err *err)
{
        _cleanup_(map_done) struct map shapes = MAP_INIT;

        for (size_t i = 0; i < n; i++)
                if (str_has_suffix(str_of(paths[i]), STR(".jsonl")) &&
                    replay_one(paths[i], ret, &shapes, err) < 0)
                        return -1;
        return 0;
}

void replay_table_done(struct replay_table *t)
{
        vec_done(&t->rows);
        arena_done(&t->arena);
}

double replay_covered(const struct replay_table *t, const char *set, unsigned *ret_runs)
{
        double sum = 0;

        *ret_runs = 0;
        vec_foreach (row, &t->rows) {
                if (set && !streq(row->set, set))
                        continue;
                sum += row->result.covered;
                ++*ret_runs;
        }
        return *ret_runs ? sum / *ret_runs : 0;
}

static void print_set(const struct replay_table *t, const char *set, void (*line)(void *, const char *),
                      void *arg)
{
        char text[LINE_MAX_TEXT];
        double width = 0, error = 0;
        unsigned n, below = 0;
        double covered = replay_covered(t, set, &n);

        vec_foreach (row, &t->rows)
                if (streq(row->set, set)) {
                        width += row->result.width / n;
                        error += row->result.error / n;
                        below += row->result.covered < 0.8;
                }
        snprintf(text, sizeof(text), "%-42s %3u runs  %5.1f %%  %5.2f  %23s %5.1f   %u runs below 80 %%", set,
                 n, 100 * covered, width, "", error, below);
        line(arg, text);
}

void replay_print(const struct replay_table *t, void (*line)(void *arg, const char *text), void *arg)
{
        const char *set = NULL;
        char text[LINE_MAX_TEXT];

        line(arg, "run (simulated)                             events  held  width/left  with ETA  1st ETA  "
                  "% off");
        vec_foreach (row, &t->rows) {
                const struct replay_result *r = &row->result;

                snprintf(text, sizeof(text), "%-42s %7u  %5.1f %%  %5.2f  %7.1f %%  %8.1f s  %5.1f%s%s%s",
                         row->name, r->events, 100 * r->covered, r->width,
                         r->points ? 100.0 * r->known / r->points : 0, r->first_eta, r->error,
                         row->history ? "  with history" : "",
                         r->monotone && r->complete ? "" : "  NOT MONOTONE",
                         r->narrow && r->ordered ? "" : "  TOO WIDE");
                line(arg, text);
        }
        line(arg, "");
        vec_foreach (row, &t->rows) {
                if (set && streq(set, row->set))
                        continue;
                set = row->set;
                print_set(t, set, line, arg);
        }
}
