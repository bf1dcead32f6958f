/*
 * The database as it comes and goes: a file is opened once, a server is connected to again when it was lost.
 */
#include "history/history_tables.h"

static const usec_t BACKOFF_MIN = USEC_PER_SEC, BACKOFF_MAX = 60 * USEC_PER_SEC;

struct history_store {
        char *place, *password_file, *name;
        bool server, reading;
        usec_t max_age, samples_max_age;
        uint64_t max_runs;
        struct db *db; /* NULL: no connection */
        usec_t backoff, again_at;
        struct err why; /* there is none */
};

/* ---- connecting */

static int open_db(struct history_store *s, bool *absent, struct err *err)
{
        s->db = s->server ? history_postgres_open(s->place, s->password_file, absent, err)
                          : history_sqlite_open(s->place, !s->reading, err);
        if (s->db && history_schema(s->db, s->reading, err) == 0)
                return 0;
        if (s->db && absent) /* not found: the tables, which whoever reads does not make */
                *absent = s->db->ops->lost(s->db) || err->code == E_NOT_FOUND;
        if (s->db)
                s->db->ops->close(s->db);
        s->db = NULL;
        return err_wrap(err, "cannot open the history %s", s->name);
}

static void wait_longer(struct history_store *s, usec_t now)
{
        s->backoff = MIN(s->backoff ? 2 * s->backoff : BACKOFF_MIN, BACKOFF_MAX);
        s->again_at = usec_add(now, s->backoff);
}

static int connect_again(struct history_store *s, usec_t now, struct err *err)
{
        if (now >= s->again_at) {
                if (open_db(s, NULL, &s->why) == 0) {
                        s->backoff = 0;
                        return 0;
                }
                wait_longer(s, now);
        }
        return err_set(err, s->why.code, "%s", s->why.text);
}

static void disconnect(struct history_store *s)
{
        s->db->ops->close(s->db);
        s->db = NULL;
        s->again_at = 0;
}

/* FN may be called twice: a connection that was lost since the last time is made anew. */
static int with_db(struct history_store *s, usec_t now, const char *what,
                   int (*fn)(struct history_store *s, void *arg, struct err *err), void *arg, struct err *err)
{
        struct err scratch = ERR_INIT;
        int r = -1;

        err = err ? err : &scratch;
        for (int tries = 0; tries < 2; tries++) {
                bool fresh = !s->db;

                if (fresh && connect_again(s, now, err) < 0)
                        return -1;
                r = fn(s, arg, err);
                if (r == 0)
                        return 0;
                if (s->db->ops->lost(s->db)) {
                        disconnect(s);
                        s->why = *err;
                        if (fresh)
                                wait_longer(s, now);
                }
                if (fresh || s->db)
                        break;
        }
        return err_wrap(err, "cannot %s the history %s", what, s->name);
}

struct history_store *history_store_open(const struct history_config *config, usec_t now, struct err *err)
{
        _cleanup_(history_store_close) struct history_store *s = NULL;
        bool absent = false;

        if (history_is_url(config->place) && history_url_check(config->place, err) < 0)
                return NULL;
        s = xcalloc(1, sizeof(*s));
        s->place = xstrdup(config->place);
        s->password_file = xstrdup(config->password_file);
        s->server = history_is_url(config->place);
        s->name = s->server ? history_url_shown(config->place) : xstrdup(config->place);
        s->reading = config->reading;
        s->max_age = config->max_age;
        s->samples_max_age = config->samples_max_age;
        s->max_runs = config->max_runs;
        if (open_db(s, &absent, &s->why) < 0) {
                err_set(err, s->why.code, "%s", s->why.text);
                if (!absent || (s->reading && !config->patient))
                        return NULL;
                err_clear(err);
                wait_longer(s, now);
        }
        return TAKE_PTR(s);
}

void history_store_close(struct history_store *s)
{
        if (!s)
                return;
        if (s->db)
                s->db->ops->close(s->db);
        if (s->place) /* may have a password */
                mem_wipe(s->place, strlen(s->place));
        free(s->place);
        free(s->password_file);
        free(s->name);
        free(s);
}

const char *history_store_name(const struct history_store *s)
{
        return s->name;
}

const char *history_store_absent(const struct history_store *s)
{
        return s->db ? NULL : s->why.text;
}

/* ---- what is done with it */

static int in_transaction(struct history_store *s,
                          int (*fn)(struct history_store *s, void *arg, struct err *err), void *arg,
                          struct err *err)
{
        const struct db_ops *ops = s->db->ops;
        int r = ops->script(s->db, ops->begin, err);

        if (r < 0)
                return -1;
        r = fn(s, arg, err);
        if (r == 0)
                r = ops->script(s->db, "COMMIT", err);
        /* The database has ended the transaction by itself after some errors. */
        if (r < 0 && !ops->lost(s->db))
                ops->script(s->db, "ROLLBACK", NULL);
        return r;
}

static int write_rows(struct history_store *s, void *arg, struct err *err)
{
        const struct list *rows = arg;

        list_foreach (node, rows)
                if (history_write(s->db, &CONTAINER_OF(node, struct history_pending, node)->row, err) < 0)
                        return -1;
        return 0;
}

static int write_row(struct history_store *s, void *arg, struct err *err)
{
        struct history_pending *p = arg;

        return history_write(s->db, &p->row, err);
}

/* The next row would run into the same. */
static bool is_general(struct history_store *s, const struct err *err)
{
        return err->code == E_BUSY || s->db->ops->lost(s->db);
}

static int write_each(struct history_store *s, const struct list *rows, struct err *err)
{
        list_foreach (node, rows) {
                struct history_pending *p = CONTAINER_OF(node, struct history_pending, node);

                p->written = in_transaction(s, write_row, p, &p->err) == 0;
                if (!p->written && is_general(s, &p->err))
                        return err_set(err, p->err.code, "%s", p->err.text);
                if (!p->written)
                        err_wrap(&p->err, "cannot write to the history %s", s->name);
        }
        return 0;
}

static int write_all(struct history_store *s, void *arg, struct err *err)
{
        const struct list *rows = arg;

        if (in_transaction(s, write_rows, arg, err) < 0)
                return is_general(s, err) ? -1 : write_each(s, rows, err);
        list_foreach (node, rows)
                CONTAINER_OF(node, struct history_pending, node)->written = true;
        return 0;
}

int history_store_write(struct history_store *s, usec_t now, const struct list *rows, struct err *err)
{
        int r = with_db(s, now, "write to", write_all, (void *)rows, err);

        list_foreach (node, rows) {
                struct history_pending *p = CONTAINER_OF(node, struct history_pending, node);

                if (r < 0 && !p->written)
                        p->err = *err;
        }
        return r;
}

struct question {
        const char *text;
        const struct history_filter *filter;
        struct arena *a;
        struct priors *priors;
        struct series *series;
        const struct history_row **rows;
        size_t *n;
};

static int ask_priors(struct history_store *s, void *arg, struct err *err)
{
        const struct question *q = arg;

        return history_read_priors(s->db, q->text, q->priors, err);
}

int history_store_priors(struct history_store *s, usec_t now, const char *shape, struct priors *ret,
                         struct err *err)
{
        struct question q = {.text = shape, .priors = ret};

        return with_db(s, now, "read", ask_priors, &q, err);
}

static int ask_series(struct history_store *s, void *arg, struct err *err)
{
        const struct question *q = arg;

        return history_read_series(s->db, q->text, q->a, q->series, err);
}

int history_store_series(struct history_store *s, usec_t now, const char *series, struct arena *a,
                         struct series *ret, struct err *err)
{
        struct question q = {.text = series, .a = a, .series = ret};

        return with_db(s, now, "read", ask_series, &q, err);
}

static int ask_list(struct history_store *s, void *arg, struct err *err)
{
        const struct question *q = arg;

        return history_read_list(s->db, q->filter, q->a, q->rows, q->n, err);
}

int history_store_list(struct history_store *s, usec_t now, const struct history_filter *filter,
                       struct arena *a, const struct history_row **ret, size_t *ret_n, struct err *err)
{
        struct question q = {.filter = filter, .a = a, .rows = ret, .n = ret_n};

        return with_db(s, now, "read", ask_list, &q, err);
}

struct pruning {
        usec_t wall;
        bool more;
};

static usec_t older(usec_t wall, usec_t age)
{
        return age ? usec_sub(wall, age) : 0;
}

static int prune_some(struct history_store *s, void *arg, struct err *err)
{
        struct pruning *p = arg;

        return history_delete(s->db, older(p->wall, s->max_age), older(p->wall, s->samples_max_age),
                              s->max_runs, &p->more, err);
}

static int prune(struct history_store *s, void *arg, struct err *err)
{
        return in_transaction(s, prune_some, arg, err);
}

int history_store_prune(struct history_store *s, usec_t now, usec_t wall, bool *ret_more, struct err *err)
{
        struct pruning p = {.wall = wall};
        int r = with_db(s, now, "tidy up", prune, &p, err);

        *ret_more = r == 0 && p.more;
        return r;
}
