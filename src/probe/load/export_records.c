#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "probe/load/export_internal.h"

/* The two files that grow with the run are written piece by piece beside their place, and renamed when they are whole. */

enum { PIECE = 1 << 20, LINE_KEEP = 1 << 20 };

struct sink {
        int fd;
        char *path, *tmp;
        struct buf out;
};

static void sink_done(struct sink *s)
{
        fd_close(s->fd);
        if (s->tmp)
                unlink(s->tmp);
        free(s->tmp);
        free(s->path);
        buf_done(&s->out);
}
DEFINE_CLEANUP_STRUCT(struct sink, sink_done)

#define SINK_INIT                                   \
        {                                           \
                .fd = -1, .out = {.max = SIZE_MAX } \
        }

static int sink_open(struct sink *s, const char *path, struct err *err)
{
        s->path = xstrdup(path);
        s->tmp = xasprintf("%s.%d.tmp", path, (int)getpid());
        s->fd = open(s->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (s->fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", s->tmp);
        return 0;
}

static int sink_flush(struct sink *s, size_t above, struct err *err)
{
        if (s->out.n < above)
                return 0;
        if (fd_write_all(s->fd, buf_str(&s->out), err) < 0)
                return err_wrap(err, "%s", s->tmp);
        buf_clear(&s->out);
        return 0;
}

static int sink_commit(struct sink *s, struct err *err)
{
        if (sink_flush(s, 0, err) < 0)
                return -1;
        if (fsync(s->fd) < 0)
                return err_errno(err, E_IO, errno, "cannot sync %s", s->tmp);
        if (rename(s->tmp, s->path) < 0)
                return err_errno(err, E_IO, errno, "cannot rename %s to %s", s->tmp, s->path);
        free(TAKE_PTR(s->tmp));
        return 0;
}

/* ---- profile_export.jsonl */

static struct json *time_or_null(struct arena *a, const struct load_report *r, uint64_t at)
{
        return at ? json_u64(a, load_wall_ns(r, at)) : json_null(a);
}

/* The two ids are of headers that are not sent. */
static struct json *metadata_json(struct arena *a, const struct load_report *r, const struct load_record *one)
{
        return json_build(a,
                          "{'session_num': %u, 'x_request_id': null, 'x_correlation_id': null,"
                          "'conversation_id': %s, 'turn_index': 0, 'request_start_ns': %p,"
                          "'request_ack_ns': %p, 'request_end_ns': %p, 'worker_id': 'worker_%u',"
                          "'record_processor_id': 'record_processor_0', 'benchmark_phase': 'profiling',"
                          "'was_cancelled': %p, 'cancellation_time_ns': %p}",
                          one->number, arena_printf(a, "session_%06u", one->input),
                          time_or_null(a, r, one->start), time_or_null(a, r, one->ack),
                          time_or_null(a, r, one->end), one->worker, json_truth(a, one->canceled),
                          time_or_null(a, r, one->canceled ? one->end : 0));
}

static struct json *value_json(struct arena *a, struct json *value, const char *unit)
{
        return json_build(a, "{'value': %p, 'unit': %s}", value, unit);
}

/* NS as milliseconds, digit by digit: of these there are as many as chunks, and printf is slow with fractions. */
static struct json *ms_json(struct arena *a, uint64_t ns)
{
        char text[24], *at = text + sizeof(text);
        struct json *j = arena_new(a, struct json);
        bool any = false;

        for (int place = 0; place < 7 || ns; place++, ns /= 10) {
                if (place == 6 && any)
                        *--at = '.';
                any = any || ns % 10;
                if (any || place >= 6)
                        *--at = (char)('0' + ns % 10);
        }
        j->type = JSON_NUMBER;
        j->len = (uint32_t)(text + sizeof(text) - at);
        j->text = arena_memdup(a, at, j->len);
        return j;
}

static struct json *gaps_json(struct arena *a, const struct load_record *one)
{
        double *gaps = one->n_chunks > 1 ? arena_new_array(a, double, one->n_chunks - 1) : NULL;
        struct json *list;

        if (!gaps || !load_gaps(one, gaps))
                return NULL;
        list = json_array(a);
        for (size_t i = 1; i < one->n_chunks; i++)
                json_append(list, ms_json(a, one->chunks[i] - one->chunks[i - 1]));
        return list;
}

static struct json *metrics_json(struct arena *a, const struct load_record *one)
{
        struct json *metrics = json_object(a);

        if (!load_succeeded(one))
                return json_build(a, "{'error_isl': {'value': %u, 'unit': 'tokens'}}", one->isl);
        for (int i = 0; i < LOAD_METRICS_; i++) {
                struct json *value = NULL;
                double number;

                if (i == LOAD_ICL)
                        value = gaps_json(a, one);
                else if (load_value(one, (enum load_metric)i, &number))
                        value = json_double(a, load_in_unit((enum load_metric)i, number));
                if (value)
                        json_set(a, metrics, load_metrics[i].tag, value_json(a, value, load_metrics[i].unit));
        }
        return metrics;
}

static struct json *failure_json(struct arena *a, const struct load_record *one)
{
        struct load_errors e = load_error_of(one);

        if (load_succeeded(one))
                return json_null(a);
        return json_build(a, "{'code': %p, 'type': %s, 'message': %s}",
                          e.code ? json_i64(a, e.code) : json_null(a), e.type, e.message);
}

static struct json *ours_json(struct arena *a, const struct load_report *r, const struct load_record *one)
{
        uint64_t late = one->start > one->due ? one->start - one->due : 0;

        return json_build(a, "{'lateness_us': %p, 'osl_exact': %p, 'invalid': %p}",
                          one->start ? json_double(a, (double)late / 1000) : json_null(a),
                          json_truth(a, one->osl_exact), r->invalid ? json_truth(a, true) : NULL);
}

int load_export_records(const struct load_report *r, const char *path, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(sink_done) struct sink s = SINK_INIT;

        if (sink_open(&s, path, err) < 0)
                return -1;
        for (size_t i = 0; i < r->n; i++) {
                const struct load_record *one = &r->records[i];

                if (one->warmup)
                        continue;
                json_write(json_build(&a, "{'metadata': %p, 'metrics': %p, 'error': %p, 'sonde': %p}",
                                      metadata_json(&a, r, one), metrics_json(&a, one), failure_json(&a, one),
                                      ours_json(&a, r, one)),
                           JSON_COMPACT, &s.out);
                buf_addc(&s.out, '\n');
                arena_reset(&a, LINE_KEEP);
                if (sink_flush(&s, PIECE, err) < 0)
                        return -1;
        }
        return sink_commit(&s, err);
}

/* ---- inputs.json */

int load_export_inputs(const struct load_report *r, const char *path, struct err *err)
{
        _cleanup_(sink_done) struct sink s = SINK_INIT;

        if (sink_open(&s, path, err) < 0)
                return -1;
        buf_adds(&s.out, "{\"data\": [");
        for (size_t i = 0; i < r->n_inputs; i++) {
                buf_printf(&s.out, "%s\n  {\"session_id\": \"session_%06zu\", \"payloads\": [", i ? "," : "",
                           i);
                buf_addstr(&s.out, r->inputs[i]);
                buf_adds(&s.out, "]}");
                if (sink_flush(&s, PIECE, err) < 0)
                        return -1;
        }
        buf_adds(&s.out, "\n]}\n");
        return sink_commit(&s, err);
}
