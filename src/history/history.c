/*
 * Finished runs in SQLite, on the loop's worker thread.
 *
 * One job is with the worker at a time: all rows that wait, in one transaction, then all shapes that were asked for. The
 * file belongs to the job while it is under way, so that history_free() need not wait for it: the job then closes the file
 * when it is done. What a job has loaded is as new as its own rows, so an answer in the cache is never older than a row
 * whose commit was told.
 */
#include "history/history.h"

#include "history/history_file.h"

enum { SHAPES_MAX = 256 };

static const usec_t AFTER_FAILURE = 60 *
                                    USEC_PER_SEC; /* before a shape that could not be read is read again */

/* A shape that was asked for. */
struct entry {
        struct list node; /* in `recent`, or in `wanted` or the job while it is loaded */
        char *shape;
        bool loading, failed;
        usec_t loaded; /* on loop_now()'s scale */
        struct err err;
        struct priors priors;
};

struct waiter {
        struct list node;
        const struct entry *entry;
        void (*done)(void *arg);
        void *arg;
};

struct job {
        struct work work;
        struct history *h; /* the loop's; NULL: history_free() was called */
        struct history_file *file;
        struct list rows, entries;
        int result; /* of the rows */
        struct err err;
};

struct history {
        struct loop *loop;
        const struct log *log;
        struct history_file *file;
        struct job *job;     /* under way; NULL: none */
        struct list rows;    /* struct history_pending that wait for the next job */
        struct list told;    /* those whose callbacks are to be called now */
        struct map shapes;   /* shape: struct entry */
        struct list recent;  /* entries that are there, those asked for last at the end */
        struct list wanted;  /* entries that wait for the next job */
        struct list waiters; /* struct waiter, of entries that are loaded */
        struct list called;  /* those whose callbacks are to be called now */
};

static void pending_free(struct history_pending *row)
{
        free(row->uid);
        free(row->kind);
        free(row->ns);
        free(row->name);
        free(row->shape);
        free(row->outcome);
        free(row->track);
        free(row);
}

static void free_rows(struct list *rows)
{
        for (struct list *node; (node = list_pop(rows));)
                pending_free(CONTAINER_OF(node, struct history_pending, node));
}

static void entry_free(struct entry *e)
{
        free(e->shape);
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

static void move_all(struct list *to, struct list *from)
{
        for (struct list *node; (node = list_pop(from));)
                list_append(to, node);
}

/* ---- the job */

static void job_run(struct work *work)
{
        struct job *job = CONTAINER_OF(work, struct job, work);

        if (!list_empty(&job->rows))
                job->result = history_file_write(job->file, &job->rows, &job->err);
        list_foreach (node, &job->entries) {
                struct entry *e = CONTAINER_OF(node, struct entry, node);

                e->failed = history_file_priors(job->file, e->shape, &e->priors, &e->err) < 0;
        }
}

static void job_free(struct job *job)
{
        free_rows(&job->rows);
        free_entries(&job->entries);
        free(job);
}

static void begin_job(struct history *h);

static void forget(struct history *h, const char *shape)
{
        struct entry *e = map_get(&h->shapes, str_of(shape));

        if (!e || e->loading)
                return;
        map_remove(&h->shapes, str_of(e->shape));
        list_remove(&e->node);
        entry_free(e);
}

static void keep_few(struct history *h)
{
        while (h->shapes.n > SHAPES_MAX && !list_empty(&h->recent))
                forget(h, CONTAINER_OF(h->recent.next, struct entry, node)->shape);
}

/* E is there: who waits for it is called. */
static void entry_loaded(struct history *h, struct entry *e)
{
        if (e->failed) {
                LOG_WARN(h->log, "Cannot read the history; going on without it", F_STR("shape", e->shape),
                         F_ERR(&e->err));
                e->priors = (struct priors){.n = 0};
        }
        e->loading = false;
        e->loaded = loop_now(h->loop);
        list_append(&h->recent, &e->node);
        list_foreach_safe (node, &h->waiters) {
                if (CONTAINER_OF(node, struct waiter, node)->entry != e)
                        continue;
                list_remove(node);
                list_append(&h->called, node);
        }
}

/* Calls back; a callback may ask, record, cancel, and free the history (then JOB has none any more). */
static void call_back(struct job *job)
{
        const struct err *err = job->result < 0 ? &job->err : NULL;
        struct list *node;

        while (job->h && (node = list_pop(&job->h->told))) {
                struct history_pending *row = CONTAINER_OF(node, struct history_pending, node);
                void (*done)(void *arg, const struct err *err) = row->done;
                void *arg = row->arg;

                pending_free(row);
                if (done)
                        done(arg, err);
        }
        while (job->h && (node = list_pop(&job->h->called))) {
                struct waiter *w = CONTAINER_OF(node, struct waiter, node);
                void (*done)(void *arg) = w->done;
                void *arg = w->arg;

                free(w);
                done(arg);
        }
}

static void job_done(struct work *work)
{
        struct job *job = CONTAINER_OF(work, struct job, work);
        struct history *h = job->h;
        struct list *node;

        if (!h) { /* perhaps on the worker's thread */
                history_file_close(job->file);
                job_free(job);
                return;
        }
        if (job->result == 0)
                list_foreach (row, &job->rows)
                        forget(h, CONTAINER_OF(row, struct history_pending, node)->shape);
        move_all(&h->told, &job->rows);
        while ((node = list_pop(&job->entries)))
                entry_loaded(h, CONTAINER_OF(node, struct entry, node));
        keep_few(h);
        call_back(job);
        h = job->h;
        if (h) {
                h->job = NULL;
                begin_job(h);
        } else {
                history_file_close(job->file);
        }
        job_free(job);
}

static void begin_job(struct history *h)
{
        struct job *job;

        if (h->job || (list_empty(&h->rows) && list_empty(&h->wanted)))
                return;
        job = xcalloc(1, sizeof(*job));
        job->work.run = job_run;
        job->work.done = job_done;
        job->h = h;
        job->file = h->file;
        list_init(&job->rows);
        list_init(&job->entries);
        move_all(&job->rows, &h->rows);
        move_all(&job->entries, &h->wanted);
        h->job = job;
        loop_offload(h->loop, &job->work);
}

/* ---- life */

struct history *history_open(struct loop *loop, const char *path, const struct log *log, struct err *err)
{
        struct history_file *file = history_file_open(path, err);
        struct history *h;

        if (!file)
                return NULL;
        h = xcalloc(1, sizeof(*h));
        h->loop = loop;
        h->log = log;
        h->file = file;
        list_init(&h->rows);
        list_init(&h->told);
        list_init(&h->recent);
        list_init(&h->wanted);
        list_init(&h->waiters);
        list_init(&h->called);
        return h;
}

void history_free(struct history *h)
{
        if (!h)
                return;
        if (h->job) /* has the file, and the entries that it loads */
                h->job->h = NULL;
        else
                history_file_close(h->file);
        free_rows(&h->rows);
        free_rows(&h->told);
        free_waiters(&h->waiters);
        free_waiters(&h->called);
        free_entries(&h->recent);
        free_entries(&h->wanted);
        map_done(&h->shapes);
        free(h);
}

/* ---- what is asked */

static char *copy(const char *s)
{
        return xstrdup(s ? s : "");
}

void history_record(struct history *h, const struct history_row *row,
                    void (*done)(void *arg, const struct err *err), void *arg)
{
        struct history_pending *p = xcalloc(1, sizeof(*p));

        p->uid = copy(row->uid);
        p->attempt = row->attempt;
        p->kind = copy(row->kind);
        p->ns = copy(row->ns);
        p->name = copy(row->name);
        p->shape = copy(row->shape);
        p->outcome = copy(row->outcome);
        p->started = row->started;
        p->finished = row->finished;
        p->track = row->track ? xmemdup(row->track, sizeof(*row->track)) : NULL;
        p->done = done;
        p->arg = arg;
        list_append(&h->rows, &p->node);
        begin_job(h);
}

static struct entry *want(struct history *h, const char *shape)
{
        struct entry *e = xcalloc(1, sizeof(*e));

        e->shape = xstrdup(shape);
        e->loading = true;
        list_append(&h->wanted, &e->node);
        map_put(&h->shapes, str_of(e->shape), e);
        return e;
}

int history_priors(struct history *h, const char *shape, void (*done)(void *arg), void *arg,
                   const struct priors **ret)
{
        static const struct priors nothing;
        struct entry *e;
        struct waiter *w;

        if (!*shape) {
                *ret = &nothing;
                return 1;
        }
        e = map_get(&h->shapes, str_of(shape));
        if (e && !e->loading && e->failed && loop_now(h->loop) >= e->loaded + AFTER_FAILURE) {
                forget(h, shape);
                e = NULL;
        }
        if (e && !e->loading) {
                list_remove(&e->node);
                list_append(&h->recent, &e->node);
                *ret = &e->priors;
                return 1;
        }
        w = xcalloc(1, sizeof(*w));
        w->entry = e ? e : want(h, shape);
        w->done = done;
        w->arg = arg;
        list_append(&h->waiters, &w->node);
        begin_job(h);
        return 0;
}

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

void history_cancel(struct history *h, void *arg)
{
        cancel_waiters(&h->waiters, arg);
        cancel_waiters(&h->called, arg);
        cancel_rows(&h->rows, arg);
        cancel_rows(&h->told, arg);
        if (h->job)
                cancel_rows(&h->job->rows, arg);
}
