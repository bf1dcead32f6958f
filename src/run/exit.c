/*
 * How a workload ended: exit.json, and one sentence about it.
 */
#include "run/pod.h"

#include <signal.h>

enum { CODE_MAX = 255, SENTENCE_MAX = 500 };

static const struct json_limits LIMITS = {.bytes = RUN_EXIT_FILE_MAX, .depth = 8, .nodes = 256};

static struct json *time_node(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return when ? json_string(a, time_format_micro(when, text)) : NULL;
}

struct json *run_exit_json(struct arena *a, const struct run_exit *e)
{
        return json_build(a,
                          "{'code': %p, 'signal': %p, 'oom': %p, 'told': %p, 'lost': %p, 'error': %p, "
                          "'startedAt': %p, 'finishedAt': %p, 'tail': %p}",
                          (void *)(e->code >= 0 ? json_i64(a, e->code) : NULL),
                          (void *)(e->signal ? json_i64(a, e->signal) : NULL),
                          (void *)(e->oom ? json_truth(a, true) : NULL),
                          (void *)(e->told ? json_truth(a, true) : NULL),
                          (void *)(e->lost ? json_truth(a, true) : NULL), (void *)json_string(a, e->error),
                          (void *)time_node(a, e->started_at), (void *)time_node(a, e->finished_at),
                          (void *)(e->tail.n ? json_stringn(a, e->tail) : NULL));
}

/* ---- reading: the file lies where the workload can write too */

static int take_number(const struct json *object, const char *key, int64_t max, int otherwise, int *ret,
                       struct err *err)
{
        const struct json *member = json_at(object, key);
        int64_t n;

        *ret = otherwise;
        if (!member || json_is(member, JSON_NULL))
                return 0;
        if (!json_to_i64(member, &n) || n < 0 || n > max)
                return err_set(err, E_INVALID, "'%s' is not a whole number from 0 to %lld", key,
                               (long long)max);
        *ret = (int)n;
        return 0;
}

static int take_truth(const struct json *object, const char *key, bool *ret, struct err *err)
{
        const struct json *member = json_at(object, key);

        if (member && !json_is(member, JSON_BOOL) && !json_is(member, JSON_NULL))
                return err_set(err, E_INVALID, "'%s' is neither true nor false", key);
        *ret = json_bool(object, key, false);
        return 0;
}

static int take_time(const struct json *object, const char *key, usec_t *ret, struct err *err)
{
        const struct json *member = json_at(object, key);

        *ret = 0;
        if (!member || json_is(member, JSON_NULL))
                return 0;
        if (!json_is(member, JSON_STRING) || !time_parse(json_text(member), ret))
                return err_set(err, E_INVALID, "'%s' is not a time", key);
        return 0;
}

static int take_text(const struct json *object, const char *key, struct str *ret, struct err *err)
{
        const struct json *member = json_at(object, key);

        *ret = STR_NULL;
        if (!member || json_is(member, JSON_NULL))
                return 0;
        if (!json_is(member, JSON_STRING))
                return err_set(err, E_INVALID, "'%s' is not a string", key);
        *ret = json_text(member);
        return 0;
}

/* The last MAX bytes of S, which has more, or a few less: it begins with a character. */
static struct str last_bytes(struct str s, size_t max)
{
        size_t skip = s.n - max;

        while (skip < s.n && ((unsigned char)s.p[skip] & 0xC0) == 0x80)
                skip++;
        return str_n(s.p + skip, s.n - skip);
}

static int read_members(struct arena *a, const struct json *object, struct run_exit *e, struct err *err)
{
        struct str error;

        if (take_number(object, "code", CODE_MAX, -1, &e->code, err) < 0 ||
            take_number(object, "signal", SIGRTMAX, 0, &e->signal, err) < 0 ||
            take_truth(object, "oom", &e->oom, err) < 0 || take_truth(object, "told", &e->told, err) < 0 ||
            take_truth(object, "lost", &e->lost, err) < 0 || take_text(object, "error", &error, err) < 0 ||
            take_text(object, "tail", &e->tail, err) < 0 ||
            take_time(object, "startedAt", &e->started_at, err) < 0 ||
            take_time(object, "finishedAt", &e->finished_at, err) < 0)
                return -1;
        if (e->tail.n > RUN_TAIL_MAX)
                e->tail = last_bytes(e->tail, RUN_TAIL_MAX);
        if (error.p)
                e->error = arena_strndup(a, error.p, utf8_cut(error.p, error.n, SENTENCE_MAX));
        return 0;
}

int run_exit_parse(struct arena *a, struct str text, struct run_exit *ret, struct err *err)
{
        struct json *object = json_parse(a, text, &LIMITS, err);
        struct run_exit e = {.code = -1};

        if (!object)
                return -1;
        if (!json_is(object, JSON_OBJECT))
                return err_set(err, E_INVALID, "it is not an object");
        if (read_members(a, object, &e, err) < 0)
                return -1;
        if ((e.code >= 0) + (e.signal > 0) + (e.error != NULL) + e.lost != 1)
                return err_set(err, E_INVALID, "it must have one of 'code', 'signal', 'error' and 'lost'");
        *ret = e;
        return 0;
}

/* ---- what it means */

bool run_exit_success(const struct run_exit *e)
{
        return e->code == 0 && !e->signal && !e->error && !e->lost;
}

/* "SIGKILL", or "signal 40" where there is no name. */
static const char *signal_name(struct arena *a, int signo)
{
        const char *abbreviation = sigabbrev_np(signo);

        return abbreviation ? arena_printf(a, "SIG%s", abbreviation) : arena_printf(a, "signal %d", signo);
}

/* TEXT cut at 500 bytes, on one line. */
static const char *one_line(struct arena *a, const char *text)
{
        char *line = arena_strndup(a, text, utf8_cut(text, strlen(text), SENTENCE_MAX));

        for (char *p = line; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        return line;
}

const char *run_exit_sentence(struct arena *a, const struct run_exit *e)
{
        if (e->lost)
                return "was killed together with its supervisor: nobody saw how it ended";
        if (e->error)
                return one_line(a, arena_printf(a, "could not be started: %s", e->error));
        if (e->signal == SIGKILL && e->oom)
                return "killed by SIGKILL: out of memory";
        if (e->oom && !run_exit_success(e))
                return arena_printf(a, "%s %s after a process of its container was killed: out of memory",
                                    e->signal ? "killed by" : "exited with",
                                    e->signal ? signal_name(a, e->signal)
                                              : arena_printf(a, "status %d", e->code));
        if (e->signal)
                return arena_printf(a, "killed by %s", signal_name(a, e->signal));
        return arena_printf(a, "exited with status %d", e->code);
}
