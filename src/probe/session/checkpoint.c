/*
 * The checkpoint: everything that was measured, so that another pod goes on where this one stood.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "probe/session/internal.h"

/* The relay takes no more than this; a plan has no more runs than fit (SESSION_RUNS_MAX). */
enum { CHECKPOINT_VERSION = 1, CHECKPOINT_MAX = 4 * 1024 * 1024, NODES_MAX = 1000 * 1000 };

static void write_reasons(const struct session_samples *s, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *list = json_array(&a);

        vec_foreach (r, &s->reasons)
                json_append(list,
                            json_build(&a, "[%zu, %s, %s, %s]", r->entry, r->label, r->reason, r->message));
        json_write(list, JSON_COMPACT, out);
}

static void write_metrics(const struct session_samples *s, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *list = json_array(&a);

        vec_foreach (m, &s->metrics)
                json_append(list,
                            json_build(&a, "[%zu, %s, %zu, %p, %p]", m->entry, m->name, m->n,
                                       json_double(&a, m->sum) ? json_double(&a, m->sum) : json_null(&a),
                                       json_string(&a, m->text)));
        json_write(list, JSON_COMPACT, out);
}

static void write_rest(const struct session_samples *s, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *notes = json_array(&a), *machines = json_array(&a), *ml = json_array(&a);

        vec_foreach (note, &s->notes)
                json_append(notes, json_string(&a, *note));
        vec_foreach (machine, &s->machines)
                json_append(machines, json_copy(&a, *machine));
        for (size_t i = 0; i < plan_entries(s->plan); i++)
                json_append(ml, s->ml[i] ? json_copy(&a, s->ml[i]) : json_null(&a));
        json_write(json_build(&a, "{'notes': %p, 'machines': %p, 'ml': %p}", notes, machines, ml),
                   JSON_COMPACT, out);
}

void session_checkpoint_text(const struct session_samples *s, struct buf *out)
{
        buf_printf(out,
                   "{\"version\":%d,\"plan\":\"%016llx\",\"podsDone\":%u,\"continued\":%u,\n\"reasons\":",
                   CHECKPOINT_VERSION, (unsigned long long)s->plan->hash, s->pods_done, s->continued);
        write_reasons(s, out);
        buf_adds(out, ",\n\"metrics\":");
        write_metrics(s, out);
        buf_adds(out, ",\n\"rest\":");
        write_rest(s, out);
        buf_adds(out, ",\n");
        columns_write(s, false, s->rows.n, out);
        buf_adds(out, "}\n");
}

/*
 * At once as file_replace() does it, but without waiting for the disk between two runs: it must outlive us, not the machine,
 * whose volume goes with the pod. The relay has it elsewhere by then.
 */
static int replace(const char *path, struct str text, struct err *err)
{
        _cleanup_(free_ptr) char *temporary = xasprintf("%s.tmp", path);
        _cleanup_(fd_close) int fd = -1;

        (void)unlink(temporary);
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", temporary);
        if (fd_write_all(fd, text, err) < 0) {
                (void)unlink(temporary);
                return err_wrap(err, "%s", temporary);
        }
        return rename(temporary, path) < 0 ? err_errno(err, E_IO, errno, "cannot rename %s", temporary) : 0;
}

int session_checkpoint_write(const struct session_samples *s, const char *dir, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(CHECKPOINT_MAX);
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, RUN_CHECKPOINT_FILE);

        session_checkpoint_text(s, &text);
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "the checkpoint is larger than %d bytes", CHECKPOINT_MAX);
        return replace(path, buf_str(&text), err);
}

/* ---- reading */

static int malformed(struct err *err, const char *what)
{
        return err_set(err, E_INVALID, "its %s are not as they are written", what);
}

static int read_reasons(struct session_samples *s, const struct json *list, struct err *err)
{
        json_foreach (r, list) {
                const char *label = json_cstr(json_index(r, 1)), *reason = json_cstr(json_index(r, 2)),
                           *message = json_cstr(json_index(r, 3));
                size_t before = s->reasons.n;
                uint64_t entry;

                if (!json_to_u64(json_index(r, 0), &entry) || entry >= plan_entries(s->plan) || !label ||
                    !reason || !message ||
                    samples_reason(s, (size_t)entry, label, reason, message) != before + 1)
                        return malformed(err, "reasons");
        }
        return 0;
}

static int read_metrics(struct session_samples *s, const struct json *list, struct err *err)
{
        json_foreach (m, list) {
                struct session_metric *metric;
                const char *text = json_cstr(json_index(m, 4));
                uint64_t entry, n;
                double sum = NAN;

                if (!json_to_u64(json_index(m, 0), &entry) || entry >= plan_entries(s->plan) ||
                    !json_to_u64(json_index(m, 2), &n) || n > SESSION_RUNS_MAX ||
                    (json_is(json_index(m, 3), JSON_NUMBER) && !json_to_double(json_index(m, 3), &sum)))
                        return malformed(err, "metrics");
                metric = samples_metric(s, (size_t)entry, json_text(json_index(m, 1)));
                if (!metric)
                        return malformed(err, "metrics");
                metric->n = (size_t)n;
                metric->sum = sum;
                if (text)
                        samples_set_text(s, metric, text);
        }
        return 0;
}

static int read_rest(struct session_samples *s, const struct json *rest, struct err *err)
{
        const struct json *ml = json_at(rest, "ml");
        size_t entry = 0;

        if (json_len(ml) != plan_entries(s->plan))
                return malformed(err, "models");
        json_foreach (note, json_at(rest, "notes"))
                if (json_cstr(note))
                        samples_note(s, json_cstr(note));
        json_foreach (machine, json_at(rest, "machines"))
                samples_machine(s, machine);
        json_foreach (model, ml) {
                if (json_is(model, JSON_OBJECT))
                        samples_set_ml(s, entry, model);
                entry++;
        }
        return 0;
}

static int read_all(struct session_samples *s, const struct json *root, struct err *err)
{
        char hash[20];
        int64_t done = json_int(root, "podsDone", -1), continued = json_int(root, "continued", -1);

        snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)s->plan->hash);
        if (json_int(root, "version", 0) != CHECKPOINT_VERSION)
                return err_set(err, E_INVALID, "it is of another version");
        if (!streq(json_str(root, "plan"), hash))
                return err_set(err, E_INVALID, "it is of another plan");
        if (done < 0 || done > s->plan->pods || continued < 0 || continued > INT32_MAX)
                return malformed(err, "numbers");
        s->pods_done = (unsigned)done;
        s->continued = (unsigned)continued;
        return read_reasons(s, json_at(root, "reasons"), err) < 0 ||
                               read_metrics(s, json_at(root, "metrics"), err) < 0 ||
                               read_rest(s, json_at(root, "rest"), err) < 0
                       ? -1
                       : columns_read(s, json_at(root, "columns"), json_at(root, "rows"), err);
}

int session_checkpoint_parse(struct session_samples *s, struct str text, struct err *err)
{
        const struct json_limits limits = {.bytes = CHECKPOINT_MAX, .depth = 32, .nodes = NODES_MAX};
        const struct session_plan *plan = s->plan;
        _cleanup_(doc_done) struct doc doc = DOC_INIT;

        if (doc_parse(&doc, text, &limits, err) == 0 && read_all(s, doc.root, err) == 0)
                return 0;
        samples_done(s);
        samples_init(s, plan);
        return -1;
}

int session_checkpoint_read(struct session_samples *s, const char *dir, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(CHECKPOINT_MAX);
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, RUN_CHECKPOINT_FILE);

        if (access(path, F_OK) < 0 && errno == ENOENT)
                return 0;
        if (file_read(path, &text, err) < 0)
                return -1;
        return session_checkpoint_parse(s, buf_str(&text), err);
}
