#include "history/history_tables.h"

#include "run/gzip.h"

enum {
        FILTER_LABELS_MAX = 16,
        LIST_DEFAULT = 100,
        LIST_MAX = 10000,
        SAMPLES_MAX = 8 * 1024 * 1024,
};

/* ---- priors */

static void add_prior(void *arg, const struct db_value *v)
{
        struct arena a = ARENA_INIT;
        const char *phase = db_copy(&a, &v[0]);

        if (phase && *phase)
                priors_add(arg, phase, db_number(&v[1]), db_number(&v[2]), db_number(&v[3]));
        arena_done(&a);
}

/* They come from first attempts: a later one may have gone on from a checkpoint, and cost less than a whole run. */
int history_read_priors(struct db *db, const char *shape, struct priors *ret, struct err *err)
{
        const struct db_value param = db_text(shape);

        *ret = (struct priors){.n = 0};
        return db->ops->run(
                db,
                "SELECT phase.phase, seconds, steps, step_seconds FROM"
                " (SELECT uid, attempt FROM run WHERE shape = $1 AND outcome = 'Succeeded' AND attempt = 1"
                "  ORDER BY finished DESC LIMIT 20) AS last JOIN phase USING (uid, attempt) ORDER BY place",
                &param, 1, add_prior, ret, err);
}

/* ---- series */

struct points {
        struct arena *a;
        VEC(struct series_point) list;
};

static void add_point(void *arg, const struct db_value *v)
{
        struct points *points = arg;
        struct series_point p = {.uid = db_copy(points->a, &v[0]),
                                 .attempt = db_count(&v[1]),
                                 .name = db_copy(points->a, &v[2]),
                                 .finished = db_count(&v[3]),
                                 .value = db_number(&v[4]),
                                 .low = db_number(&v[5]),
                                 .high = db_number(&v[6])};

        if (p.uid && p.name && isfinite(p.value))
                *vec_push(&points->list) = p;
}

int history_read_series(struct db *db, const char *series, struct arena *a, struct series *ret,
                        struct err *err)
{
        const struct db_value params[] = {db_text(series), db_int(SERIES_MAX)};
        struct points points = {.a = a};
        struct series_point *list;
        int r = db->ops->run(db,
                             "SELECT last.uid, last.attempt, name, last.finished, seconds, low, high FROM"
                             " (SELECT uid, attempt, place, finished, seconds, low, high FROM measure"
                             "  WHERE series = $1 AND seconds IS NOT NULL ORDER BY finished DESC, uid, "
                             "attempt, place LIMIT $2)"
                             " AS last JOIN run ON run.uid = last.uid AND run.attempt = last.attempt"
                             " ORDER BY last.finished DESC, last.uid, last.attempt, place",
                             params, ARRAY_LEN(params), add_point, &points, err);

        list = arena_new_array(a, struct series_point, points.list.n + 1);
        for (size_t i = 0; i < points.list.n; i++)
                list[i] = points.list.v[points.list.n - 1 - i];
        *ret = (struct series){.points = list, .n = r < 0 ? 0 : points.list.n};
        vec_done(&points.list);
        return r;
}

/* ---- lists */

struct query {
        struct buf sql;
        struct db_value params[2 * FILTER_LABELS_MAX + 8];
        size_t n;
};

static void add_param(struct query *q, struct db_value v)
{
        q->params[q->n++] = v;
        buf_printf(&q->sql, "$%zu", q->n);
}

static void add_where(struct query *q, const char *column, const char *value)
{
        if (!value)
                return;
        buf_printf(&q->sql, " AND %s = ", column);
        add_param(q, db_text(value));
}

static int add_label(struct query *q, struct arena *a, const char *label, struct err *err)
{
        struct str value = str_of(label), name = str_split(&value, '=');

        if (!name.n || !value.p)
                return err_set(err, E_CONFIG, "'%s' is no label; KEY=VALUE is wanted", label);
        buf_adds(&q->sql,
                 " AND EXISTS (SELECT 1 FROM label WHERE label.uid = run.uid AND label.attempt = run.attempt"
                 " AND label.name = ");
        add_param(q, db_text(arena_strndup(a, name.p, name.n)));
        buf_adds(&q->sql, " AND label.value = ");
        add_param(q, db_text(arena_strndup(a, value.p, value.n)));
        buf_adds(&q->sql, ")");
        return 0;
}

/* " FROM run WHERE ... ORDER BY ... LIMIT n" */
static int add_filter(struct query *q, const struct history_filter *f, struct arena *a, struct err *err)
{
        if (f->n_labels > FILTER_LABELS_MAX)
                return err_set(err, E_CONFIG, "more than %d labels to look for", FILTER_LABELS_MAX);
        buf_adds(&q->sql, " FROM run WHERE finished >= 0");
        add_where(q, "run.uid", f->uid);
        add_where(q, "kind", f->kind);
        add_where(q, "ns", f->ns);
        add_where(q, "run.name", f->name);
        for (size_t i = 0; i < f->n_labels; i++)
                if (add_label(q, a, f->labels[i], err) < 0)
                        return -1;
        if (f->series) {
                buf_adds(&q->sql, " AND EXISTS (SELECT 1 FROM measure WHERE measure.uid = run.uid"
                                  " AND measure.attempt = run.attempt");
                add_where(q, "series", f->series);
                buf_adds(&q->sql, ")");
        }
        buf_adds(&q->sql, " ORDER BY finished DESC, uid, attempt LIMIT ");
        add_param(q, db_int(f->limit ? MIN(f->limit, (unsigned)LIST_MAX) : LIST_DEFAULT));
        return 0;
}

struct rows {
        struct arena *a;
        VEC(struct history_row) list;
        VEC(struct history_measure) measures; /* of the row at hand */
        size_t at;
};

static const char *text(struct arena *a, const struct db_value *v)
{
        const char *s = db_copy(a, v);

        return s ? s : "";
}

static void add_row(void *arg, const struct db_value *v)
{
        struct rows *rows = arg;
        struct arena *a = rows->a;

        *vec_push(&rows->list) = (struct history_row){.uid = text(a, &v[0]),
                                                      .attempt = db_count(&v[1]),
                                                      .kind = text(a, &v[2]),
                                                      .ns = text(a, &v[3]),
                                                      .name = text(a, &v[4]),
                                                      .shape = text(a, &v[5]),
                                                      .outcome = text(a, &v[6]),
                                                      .started = db_count(&v[7]),
                                                      .finished = db_count(&v[8]),
                                                      .labels = db_copy(a, &v[9]),
                                                      .machine = db_copy(a, &v[10]),
                                                      .image = db_copy(a, &v[11]),
                                                      .spec_hash = db_copy(a, &v[12])};
}

static void end_measures(struct rows *rows)
{
        if (rows->at < rows->list.n && rows->measures.n) {
                struct history_row *row = &rows->list.v[rows->at];

                row->measures = arena_memdup(rows->a, rows->measures.v,
                                             rows->measures.n * sizeof(*rows->measures.v));
                row->n_measures = rows->measures.n;
        }
        rows->measures.n = 0;
}

/* Measures come in the order of the rows; a row that somebody wrote in between is in one list only. */
static void add_measure(void *arg, const struct db_value *v)
{
        struct rows *rows = arg;
        struct db_value uid = v[0];
        uint64_t attempt = db_count(&v[1]);
        size_t i = rows->at;

        while (i < rows->list.n &&
               (rows->list.v[i].attempt != attempt || !str_eq(str_of(rows->list.v[i].uid), uid.s)))
                i++;
        if (i == rows->list.n)
                return;
        if (i != rows->at)
                end_measures(rows);
        rows->at = i;
        *vec_push(&rows->measures) = (struct history_measure){.series = text(rows->a, &v[2]),
                                                              .algorithm = text(rows->a, &v[3]),
                                                              .size = v[4].i,
                                                              .n = db_count(&v[5]),
                                                              .time = db_number(&v[6]),
                                                              .low = db_number(&v[7]),
                                                              .high = db_number(&v[8]),
                                                              .memory = db_number(&v[9]),
                                                              .cpu = db_number(&v[10]),
                                                              .cost = db_number(&v[11])};
}

static int run_query(struct db *db, struct query *q, void (*row)(void *arg, const struct db_value *values),
                     void *arg, struct err *err)
{
        const char *sql = buf_cstr(&q->sql);

        if (!sql)
                return err_set(err, E_TOO_LARGE, "the question is too long");
        return db->ops->run(db, sql, q->params, q->n, row, arg, err);
}

static int read_rows(struct db *db, const struct history_filter *f, struct rows *rows, struct err *err)
{
        struct query q = {.sql = BUF_INIT(16384)};
        int r;

        buf_adds(&q.sql,
                 "SELECT uid, attempt, kind, ns, name, shape, outcome, started, finished, labels, machine,"
                 " image, spec_hash");
        r = add_filter(&q, f, rows->a, err);
        if (r == 0)
                r = run_query(db, &q, add_row, rows, err);
        buf_done(&q.sql);
        return r;
}

static int read_measures(struct db *db, const struct history_filter *f, struct rows *rows, struct err *err)
{
        struct query q = {.sql = BUF_INIT(16384)};
        int r;

        buf_adds(&q.sql,
                 "SELECT m.uid, m.attempt, series, algorithm, size, n, seconds, low, high, memory, cpu, cost"
                 " FROM (SELECT uid, attempt, finished");
        r = add_filter(&q, f, rows->a, err);
        buf_adds(&q.sql,
                 ") AS r JOIN measure AS m ON m.uid = r.uid AND m.attempt = r.attempt WHERE place >= 0");
        add_where(&q, "series", f->series);
        buf_adds(&q.sql, " ORDER BY r.finished DESC, r.uid, r.attempt, place");
        if (r == 0)
                r = run_query(db, &q, add_measure, rows, err);
        end_measures(rows);
        buf_done(&q.sql);
        return r;
}

struct phases {
        struct arena *a;
        VEC(struct history_phase) list;
};

static void add_phase(void *arg, const struct db_value *v)
{
        struct phases *p = arg;

        *vec_push(&p->list) = (struct history_phase){.name = text(p->a, &v[0]),
                                                     .seconds = db_number(&v[1]),
                                                     .total = db_count(&v[2]),
                                                     .steps = db_count(&v[3])};
}

static int read_phases(struct db *db, struct arena *a, struct history_row *row, struct err *err)
{
        const struct db_value params[] = {db_text(row->uid), db_int(row->attempt)};
        struct phases p = {.a = a};
        int r = db->ops->run(db,
                             "SELECT phase, seconds, total, steps FROM phase WHERE uid = $1 AND attempt = $2"
                             " AND place >= 0 ORDER BY place",
                             params, ARRAY_LEN(params), add_phase, &p, err);

        row->n_phases = r < 0 ? 0 : p.list.n;
        if (row->n_phases)
                row->phases = arena_memdup(a, p.list.v, p.list.n * sizeof(*p.list.v));
        vec_done(&p.list);
        return r;
}

struct gunzip {
        struct arena *a;
        const char *text;
        struct err *err;
        int r;
};

static void unpack(void *arg, const struct db_value *v)
{
        struct gunzip *g = arg;
        _cleanup_(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);

        g->r = gunzip_add(&out, v[0].s, g->err);
        if (g->r == 0)
                g->text = arena_strndup(g->a, out.p ? out.p : "", out.n);
}

static int read_samples(struct db *db, struct arena *a, struct history_row *row, struct err *err)
{
        const struct db_value params[] = {db_text(row->uid), db_int(row->attempt)};
        struct gunzip g = {.a = a, .err = err};

        if (db->ops->run(db, "SELECT gzipped FROM samples WHERE uid = $1 AND attempt = $2", params,
                         ARRAY_LEN(params), unpack, &g, err) < 0 ||
            g.r < 0)
                return -1;
        row->samples = g.text;
        return 0;
}

int history_read_list(struct db *db, const struct history_filter *filter, struct arena *a,
                      const struct history_row **ret, size_t *ret_n, struct err *err)
{
        struct rows rows = {.a = a};
        int r = read_rows(db, filter, &rows, err);

        if (r == 0)
                r = read_measures(db, filter, &rows, err);
        for (size_t i = 0; i < rows.list.n && r == 0 && filter->samples && filter->uid; i++)
                r = read_samples(db, a, &rows.list.v[i], err);
        for (size_t i = 0; i < rows.list.n && r == 0 && filter->uid; i++)
                r = read_phases(db, a, &rows.list.v[i], err);
        *ret_n = r < 0 ? 0 : rows.list.n;
        *ret = *ret_n ? arena_memdup(a, rows.list.v, rows.list.n * sizeof(*rows.list.v)) : NULL;
        vec_done(&rows.list);
        vec_done(&rows.measures);
        return r;
}
