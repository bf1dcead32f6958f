/*
 * What the history keeps of a run whose object may be gone.
 */
#include "cli/results_history.h"

struct asking {
        struct loop *loop;
        struct arena *a;
        struct json *row; /* NULL: there is none */
        struct err err;
};

static void on_rows(void *arg, const struct history_row *rows, size_t n, const struct err *err)
{
        struct asking *q = arg;

        if (err)
                q->err = *err;
        q->row = n && !err ? history_row_json(rows, q->a) : NULL;
        if (q->row && rows->started)
                json_set(q->a, q->row, "seconds",
                         json_double(q->a,
                                     (double)usec_sub(rows->finished, rows->started) / (double)USEC_PER_SEC));
        loop_stop(q->loop, 0);
}

/* The newest that passes FILTER. */
static int ask_for(struct asking *q, struct history *h, const struct history_filter *filter, struct err *err)
{
        history_list(h, filter, on_rows, q);
        loop_run(q->loop);
        if (q->err.code)
                return err_set(err, q->err.code, "%s", q->err.text);
        if (!q->row)
                return err_set(err, E_NOT_FOUND, "no such run is kept; 'sonde history' lists those that are");
        return 0;
}

int results_history(const struct history_config *place, const struct history_filter *filter, struct arena *a,
                    struct json **ret, struct err *err)
{
        _cleanup_(loop_free) struct loop *loop = loop_new(NULL, NULL, err);
        struct history *h = loop ? history_open(loop, place, NULL, err) : NULL;
        struct asking q = {.loop = loop, .a = a};
        struct history_filter all = {.samples = true, .limit = 1};
        int r = h ? ask_for(&q, h, filter, err) : -1;

        if (r == 0) { /* samples and phases are told of one that is named by its uid */
                all.uid = json_str(q.row, "uid");
                r = ask_for(&q, h, &all, err);
        }
        history_free(h);
        *ret = r == 0 ? q.row : NULL;
        return r;
}
