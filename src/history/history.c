/*
 * Finished runs in a database, on the loop's worker thread.
 *
 * One job is with the worker at a time: all rows that wait, in one transaction, then all that was asked for, then some of
 * what is too old. The store belongs to the job while it is under way, so that history_free() need not wait for it: the job
 * then closes it when it is done. What a job has loaded is as new as its own rows, so an answer in the cache is never older
 * than a row whose commit was told.
 */
#include "history/history.h"

#include "history/history_store.h"
#include "kube/kube.h"

enum { SHAPES_MAX = 256, SERIES_KEPT = 128, SAMPLES_MAX = 4 * 1024 * 1024, PARTS_MAX = 4096 };

static const usec_t FRESH = 600 * USEC_PER_SEC, /* another operator may write to the same database */
        AFTER_FAILURE = 60 * USEC_PER_SEC,      /* before what could not be read is read again */
        PRUNE_FIRST = 60 * USEC_PER_SEC, PRUNE_MORE = USEC_PER_SEC, PRUNE_NEXT = 3600 * USEC_PER_SEC;

/* What was asked for, of one kind. */
struct answers {
        struct map map;     /* name: struct entry */
        struct list recent; /* entries that are there, those asked for last at the end */
        size_t max;
        bool of_series;
};

struct entry {
        struct list node; /* in `recent`, or in `wanted` or the job while it is loaded */
        struct answers *answers;
        char *name;
        bool loading, failed, of_series;
        usec_t loaded; /* on loop_now()'s scale */
        struct err err;
        struct arena arena;
        struct priors priors;
        struct series series;
};

struct waiter {
        struct list node;
        const struct entry *entry;
        void (*done)(void *arg);
        void *arg;
};

/* A list that was asked for, with all that it points to. */
struct listing {
        struct list node;
        struct arena arena;
        struct history_filter filter;
        const struct history_row *rows;
        size_t n;
        bool failed;
        struct err err;
        void (*done)(void *arg, const struct history_row *rows, size_t n, const struct err *err);
        void *arg;
};

struct job {
        struct work work;
        struct history *h; /* the loop's; NULL: history_free() was called */
        struct history_store *store;
        struct list rows, entries, listings;
        usec_t now, wall;
        int result; /* of the rows; each has its own */
        struct err err;
        bool prune, prune_more;
        int prune_result;
        struct err prune_err;
};

struct history {
        struct loop *loop;
        const struct log *log;
        struct history_store *store;
        struct job *job;      /* under way; NULL: none */
        struct list rows;     /* struct history_pending that wait for the next job */
        struct list told;     /* those whose callbacks are to be called now */
        struct list wanted;   /* entries that wait for the next job */
        struct list waiters;  /* struct waiter, of entries that are loaded */
        struct list called;   /* those whose callbacks are to be called now */
        struct list listings; /* struct listing that wait for the next job */
        struct list listed;   /* those whose callbacks are to be called now */
        struct answers shapes, series;
        struct timer pruning;
        bool prune, absent;
        int works; /* see history_works() */
};

static void pending_free(struct history_pending *row)
{
        arena_done(&row->arena);
        free(row);
}

static void free_rows(struct list *rows)
{
        for (struct list *node; (node = list_pop(rows));)
                pending_free(CONTAINER_OF(node, struct history_pending, node));
}

static void entry_free(struct entry *e)
{
        arena_done(&e->arena);
        free(e->name);
        free(e);
}

static void free_entries(struct list *entries)
{
        for (struct list *node; (node = list_pop(entries));)
                entry_free(CONTAINER_OF(node, struct entry, node));
}

static void free_waiters(struct list *waiters)
{
        for (struct list *node; (node = list_pop(waiters));)
                free(CONTAINER_OF(node, struct waiter, node));
}

static void listing_free(struct listing *l)
{
        arena_done(&l->arena);
        free(l);
}

static void free_listings(struct list *listings)
{
        for (struct list *node; (node = list_pop(listings));)
                listing_free(CONTAINER_OF(node, struct listing, node));
}

static void move_all(struct list *to, struct list *from)
{
        for (struct list *node; (node = list_pop(from));)
                list_append(to, node);
}

/* ---- the job */

static void load_entry(struct job *job, struct entry *e)
{
        int r = e->of_series
                        ? history_store_series(job->store, job->now, e->name, &e->arena, &e->series, &e->err)
                        : history_store_priors(job->store, job->now, e->name, &e->priors, &e->err);

        e->failed = r < 0;
}

static void job_run(struct work *work)
{
        struct job *job = CONTAINER_OF(work, struct job, work);

        if (!list_empty(&job->rows))
                job->result = history_store_write(job->store, job->now, &job->rows, &job->err);
        list_foreach (node, &job->entries)
                load_entry(job, CONTAINER_OF(node, struct entry, node));
        list_foreach (node, &job->listings) {
                struct listing *l = CONTAINER_OF(node, struct listing, node);

                l->failed = history_store_list(job->store, job->now, &l->filter, &l->arena, &l->rows, &l->n,
                                               &l->err) < 0;
        }
        if (job->prune)
                job->prune_result = history_store_prune(job->store, job->now, job->wall, &job->prune_more,
                                                        &job->prune_err);
}

static void job_free(struct job *job)
{
        free_rows(&job->rows);
        free_entries(&job->entries);
        free_listings(&job->listings);
        free(job);
}

static void begin_job(struct history *h);

static void forget_entry(struct entry *e)
{
        map_remove(&e->answers->map, str_of(e->name));
        list_remove(&e->node);
        entry_free(e);
}

static void forget(struct answers *answers, const char *name)
{
        struct entry *e = map_get(&answers->map, str_of(name));

        if (e && !e->loading)
                forget_entry(e);
}

static void forget_row(struct history *h, const struct history_row *row)
{
        forget(&h->shapes, row->shape);
        for (size_t i = 0; i < row->n_measures; i++)
                forget(&h->series, row->measures[i].series);
}

static void keep_few(struct answers *answers)
{
        while (answers->map.n > answers->max && !list_empty(&answers->recent))
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that one that is forgotten leaves the list */
                forget_entry(CONTAINER_OF(answers->recent.next, struct entry, node));
}

/* E is there: who waits for it is called. */
static void entry_loaded(struct history *h, struct entry *e)
{
        if (e->failed) {
                LOG_WARN(h->log, "Cannot read the history; going on without it", F_STR("of", e->name),
                         F_ERR(&e->err));
                e->priors = (struct priors){.n = 0};
                e->series = (struct series){.n = 0};
        }
        e->loading = false;
        e->loaded = loop_now(h->loop);
        list_append(&e->answers->recent, &e->node);
        list_foreach_safe (node, &h->waiters) {
                if (CONTAINER_OF(node, struct waiter, node)->entry != e)
                        continue;
                list_remove(node);
                list_append(&h->called, node);
        }
}

static void call_listed(struct listing *l)
{
        if (l->done)
                l->done(l->arg, l->rows, l->n, l->failed ? &l->err : NULL);
        listing_free(l);
}

/* Calls back; a callback may ask, record, cancel, and free the history (then JOB has none any more). */
static void call_back(struct job *job)
{
        struct list *node;

        while (job->h && (node = list_pop(&job->h->told))) {
                struct history_pending *row = CONTAINER_OF(node, struct history_pending, node);

                if (row->done)
                        row->done(row->arg, row->written ? NULL : &row->err);
                pending_free(row);
        }
        while (job->h && (node = list_pop(&job->h->called))) {
                struct waiter *w = CONTAINER_OF(node, struct waiter, node);
                void (*done)(void *arg) = w->done;
                void *arg = w->arg;

                free(w);
                done(arg);
        }
        while (job->h && (node = list_pop(&job->h->listed)))
                call_listed(CONTAINER_OF(node, struct listing, node));
}

/* A server that comes and goes is told once each time. */
static void tell_absence(struct history *h)
{
        const char *why = history_store_absent(h->store);

        if (why && !h->absent)
                LOG_WARN(h->log, "The history cannot be reached; trying again with pauses",
                         F_STR("history", history_store_name(h->store)), F_STR("error", why));
        else if (!why && h->absent)
                LOG_INFO(h->log, "The history is there again",
                         F_STR("history", history_store_name(h->store)));
        h->absent = why;
        if (why)
                h->works = 0;
}

/* A row that is refused says nothing about the next one. */
static bool is_failure(const struct history_pending *row)
{
        return !row->written && row->err.code != E_REFUSED && row->err.code != E_TOO_LARGE;
}

static void take_outcome(struct history *h, const struct job *job)
{
        bool failed = job->result < 0 || job->prune_result < 0;

        list_foreach (node, &job->rows)
                failed |= is_failure(CONTAINER_OF(node, struct history_pending, node));
        list_foreach (node, &job->entries)
                failed |= CONTAINER_OF(node, struct entry, node)->failed;
        list_foreach (node, &job->listings)
                failed |= CONTAINER_OF(node, struct listing, node)->failed;
        h->works = !failed;
}

int history_works(const struct history *h)
{
        return h->works;
}

static void take_pruned(struct history *h, const struct job *job)
{
        if (!job->prune)
                return;
        if (job->prune_result < 0)
                LOG_WARN(h->log, "Cannot throw old runs away; trying again later", F_ERR(&job->prune_err));
        timer_after(&h->pruning, job->prune_more ? PRUNE_MORE : PRUNE_NEXT);
}

static void job_done(struct work *work)
{
        struct job *job = CONTAINER_OF(work, struct job, work);
        struct history *h = job->h;
        struct list *node;

        if (!h) { /* perhaps on the worker's thread */
                history_store_close(job->store);
                job_free(job);
                return;
        }
        take_outcome(h, job);
        tell_absence(h);
        list_foreach (row, &job->rows)
                if (CONTAINER_OF(row, struct history_pending, node)->written)
                        forget_row(h, &CONTAINER_OF(row, struct history_pending, node)->row);
        move_all(&h->told, &job->rows);
        while ((node = list_pop(&job->entries)))
                entry_loaded(h, CONTAINER_OF(node, struct entry, node));
        keep_few(&h->shapes);
        keep_few(&h->series);
        move_all(&h->listed, &job->listings);
        take_pruned(h, job);
        call_back(job);
        h = job->h;
        if (h) {
                h->job = NULL;
                begin_job(h);
        } else {
                history_store_close(job->store);
        }
        job_free(job);
}

static void begin_job(struct history *h)
{
        struct job *job;

        if (h->job ||
            (list_empty(&h->rows) && list_empty(&h->wanted) && list_empty(&h->listings) && !h->prune))
                return;
        job = xcalloc(1, sizeof(*job));
        job->work.run = job_run;
        job->work.done = job_done;
        job->h = h;
        job->store = h->store;
        job->now = loop_now(h->loop);
        job->wall = loop_wall(h->loop);
        list_init(&job->rows);
        list_init(&job->entries);
        list_init(&job->listings);
        move_all(&job->rows, &h->rows);
        move_all(&job->entries, &h->wanted);
        move_all(&job->listings, &h->listings);
        job->prune = h->prune;
        h->prune = false;
        h->job = job;
        loop_offload(h->loop, &job->work);
}

static void on_pruning(struct timer *timer)
{
        struct history *h = CONTAINER_OF(timer, struct history, pruning);

        h->prune = true;
        begin_job(h);
}

/* ---- life */

static void answers_init(struct answers *answers, size_t max, bool of_series)
{
        list_init(&answers->recent);
        answers->max = max;
        answers->of_series = of_series;
}

struct history *history_open(struct loop *loop, const struct history_config *config, const struct log *log,
                             struct err *err)
{
        struct history_store *store = history_store_open(config, loop_now(loop), err);
        struct history *h;

        if (!store)
                return NULL;
        h = xcalloc(1, sizeof(*h));
        h->loop = loop;
        h->log = log;
        h->store = store;
        h->works = -1;
        list_init(&h->rows);
        list_init(&h->told);
        list_init(&h->wanted);
        list_init(&h->waiters);
        list_init(&h->called);
        list_init(&h->listings);
        list_init(&h->listed);
        answers_init(&h->shapes, SHAPES_MAX, false);
        answers_init(&h->series, SERIES_KEPT, true);
        timer_init(&h->pruning, loop, on_pruning);
        if (!config->reading && (config->max_age || config->samples_max_age || config->max_runs))
                timer_after(&h->pruning, PRUNE_FIRST);
        tell_absence(h);
        return h;
}

void history_free(struct history *h)
{
        if (!h)
                return;
        if (h->job) /* has the store, and the entries that it loads */
                h->job->h = NULL;
        else
                history_store_close(h->store);
        timer_cancel(&h->pruning);
        free_rows(&h->rows);
        free_rows(&h->told);
        free_waiters(&h->waiters);
        free_waiters(&h->called);
        free_listings(&h->listings);
        free_listings(&h->listed);
        free_entries(&h->shapes.recent);
        free_entries(&h->series.recent);
        free_entries(&h->wanted);
        map_done(&h->shapes.map);
        map_done(&h->series.map);
        free(h);
}

/* ---- rows */

/* A database takes UTF-8 alone; who else writes is not for us to mend. */
static const char *maybe(struct arena *a, const char *s)
{
        char *copy = arena_strdup(a, s);

        if (copy && !utf8_valid(copy, strlen(copy)))
                for (char *p = copy; *p; p++)
                        *p = (unsigned char)*p < 0x80 ? *p : '?';
        return copy;
}

static const char *always(struct arena *a, const char *s)
{
        return maybe(a, s ? s : "");
}

/*
 * What is looked for by an index: PostgreSQL takes 2704 bytes for all columns of a row in one. What is longer is told apart by
 * its hash.
 */
static const char *indexed(struct arena *a, const char *s)
{
        const char *text = always(a, s);
        size_t n = strlen(text);

        if (n <= HISTORY_INDEXED_MAX)
                return text;
        return arena_printf(a, "%.*s~%s", (int)utf8_cut(text, n, HISTORY_INDEXED_MAX), text,
                            name_hash(a, str_of(text)));
}

static void copy_measures(struct arena *a, struct history_row *row)
{
        size_t n = MIN(row->n_measures, (size_t)PARTS_MAX);
        struct history_measure *copy = n ? arena_memdup(a, row->measures, n * sizeof(*copy)) : NULL;

        for (size_t i = 0; i < n; i++) {
                copy[i].series = indexed(a, copy[i].series);
                copy[i].algorithm = always(a, copy[i].algorithm);
        }
        row->measures = copy;
        row->n_measures = n;
}

static void copy_row(struct history_pending *p, const struct history_row *row)
{
        struct arena *a = &p->arena;

        p->row = *row;
        p->row.uid = indexed(a, row->uid);
        p->row.kind = always(a, row->kind);
        p->row.ns = always(a, row->ns);
        p->row.name = always(a, row->name);
        p->row.shape = indexed(a, row->shape);
        p->row.outcome = always(a, row->outcome);
        p->row.labels = maybe(a, row->labels);
        p->row.machine = maybe(a, row->machine);
        p->row.image = maybe(a, row->image);
        p->row.spec_hash = maybe(a, row->spec_hash);
        p->row.samples = maybe(a, row->samples);
        p->row.track = row->track ? arena_memdup(a, row->track, sizeof(*row->track)) : NULL;
        copy_measures(a, &p->row);
}

void history_record(struct history *h, const struct history_row *row,
                    void (*done)(void *arg, const struct err *err), void *arg)
{
        struct history_pending *p = xcalloc(1, sizeof(*p));
        struct history_row kept = *row;

        if (row->samples && strlen(row->samples) > SAMPLES_MAX) {
                LOG_WARN(h->log, "The samples of a run are too large to be kept", F_STR("namespace", row->ns),
                         F_STR("name", row->name), F_UINT("bytes", strlen(row->samples)));
                kept.samples = NULL;
        }
        copy_row(p, &kept);
        p->done = done;
        p->arg = arg;
        list_append(&h->rows, &p->node);
        begin_job(h);
}

/* ---- what is asked */

static struct entry *want(struct history *h, struct answers *answers, const char *name)
{
        struct entry *e = xcalloc(1, sizeof(*e));

        e->answers = answers;
        e->of_series = answers->of_series;
        e->name = xstrdup(name);
        e->loading = true;
        list_append(&h->wanted, &e->node);
        map_put(&answers->map, str_of(e->name), e);
        return e;
}

/* NULL: DONE will be called. */
static const struct entry *ask(struct history *h, struct answers *answers, const char *of,
                               void (*done)(void *arg), void *arg)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *name = indexed(&a, of);
        struct entry *e = map_get(&answers->map, str_of(name));
        struct waiter *w;

        if (e && !e->loading && loop_now(h->loop) >= usec_add(e->loaded, e->failed ? AFTER_FAILURE : FRESH)) {
                forget_entry(e);
                e = NULL;
        }
        if (e && !e->loading) {
                list_remove(&e->node);
                list_append(&answers->recent, &e->node);
                return e;
        }
        w = xcalloc(1, sizeof(*w));
        w->entry = e ? e : want(h, answers, name);
        w->done = done;
        w->arg = arg;
        list_append(&h->waiters, &w->node);
        begin_job(h);
        return NULL;
}

int history_priors(struct history *h, const char *shape, void (*done)(void *arg), void *arg,
                   const struct priors **ret)
{
        static const struct priors nothing;
        const struct entry *e = *shape ? ask(h, &h->shapes, shape, done, arg) : NULL;

        if (*shape && !e)
                return 0;
        *ret = e ? &e->priors : &nothing;
        return 1;
}

int history_series(struct history *h, const char *series, void (*done)(void *arg), void *arg,
                   const struct series **ret)
{
        static const struct series nothing;
        const struct entry *e = *series ? ask(h, &h->series, series, done, arg) : NULL;

        if (*series && !e)
                return 0;
        *ret = e ? &e->series : &nothing;
        return 1;
}

void history_list(struct history *h, const struct history_filter *filter,
                  void (*done)(void *arg, const struct history_row *rows, size_t n, const struct err *err),
                  void *arg)
{
        struct listing *l = xcalloc(1, sizeof(*l));
        struct arena *a = &l->arena;
        const char **labels = arena_new_array(a, const char *, filter->n_labels + 1);

        for (size_t i = 0; i < filter->n_labels; i++)
                labels[i] = maybe(a, filter->labels[i]);
        l->filter = (struct history_filter){.uid = filter->uid ? indexed(a, filter->uid) : NULL,
                                            .kind = maybe(a, filter->kind),
                                            .ns = maybe(a, filter->ns),
                                            .name = maybe(a, filter->name),
                                            .series = filter->series ? indexed(a, filter->series) : NULL,
                                            .labels = labels,
                                            .n_labels = filter->n_labels,
                                            .limit = filter->limit,
                                            .samples = filter->samples};
        l->done = done;
        l->arg = arg;
        list_append(&h->listings, &l->node);
        begin_job(h);
}

/* ---- taking back */

static void cancel_waiters(struct list *waiters, const void *arg)
{
        list_foreach_safe (node, waiters) {
                struct waiter *w = CONTAINER_OF(node, struct waiter, node);

                if (w->arg != arg)
                        continue;
                list_remove(node);
                free(w);
        }
}

/* The row itself is still written: what was recorded is recorded. */
static void cancel_rows(struct list *rows, const void *arg)
{
        list_foreach (node, rows) {
                struct history_pending *row = CONTAINER_OF(node, struct history_pending, node);

                if (row->arg == arg)
                        row->done = NULL;
        }
}

static void cancel_listings(struct list *listings, const void *arg)
{
        list_foreach (node, listings) {
                struct listing *l = CONTAINER_OF(node, struct listing, node);

                if (l->arg == arg)
                        l->done = NULL;
        }
}

void history_cancel(struct history *h, void *arg)
{
        cancel_waiters(&h->waiters, arg);
        cancel_waiters(&h->called, arg);
        cancel_rows(&h->rows, arg);
        cancel_rows(&h->told, arg);
        cancel_listings(&h->listings, arg);
        cancel_listings(&h->listed, arg);
        if (h->job) {
                cancel_rows(&h->job->rows, arg);
                cancel_listings(&h->job->listings, arg);
        }
}
