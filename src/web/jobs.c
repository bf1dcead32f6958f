/*
 * dProfiler's jobs: AlgorithmProfilings under its names. A job_id is NAMESPACE.NAME (a namespace has no dot), or a name alone in
 * the namespace that counts; `id` is a number made from the uid.
 */
#include "web/internal.h"

#include "probe/probe.h"
#include "web/dprofiler.h"

/* ---- names */

int64_t job_number(const char *uid)
{
        char hex[SHA256_HEX_MAX];
        int64_t number = 0;

        sha256_hex(str_of(uid), hex);
        for (size_t i = 0; i < 13; i++) /* 52 bits: a number in JavaScript too */
                number = number * 16 + (hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
        return number;
}

const char *job_namespace(struct call *c)
{
        const char *ns = json_str(c->query, "namespace");

        if (ns && *ns)
                return ns;
        return c->web->ns ? c->web->ns : c->web->bare.ns;
}

void job_split(struct call *c, const char *id, const char **ret_ns, const char **ret_name)
{
        struct str name = str_of(id), ns = str_split(&name, '.');

        if (name.n) {
                *ret_ns = arena_strndup(&c->arena, ns.p, ns.n);
                *ret_name = arena_strndup(&c->arena, name.p, name.n);
        } else {
                *ret_ns = job_namespace(c);
                *ret_name = id;
        }
}

/* What the server is to make a name from: "quick-sort-". */
const char *job_prefix(struct arena *a, const char *text)
{
        enum { MOST = 40 };
        char *out = arena_alloc(a, MOST + 2);
        size_t n = 0;

        for (const char *p = text; *p && n < MOST; p++) {
                bool plain = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
                char ch = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : plain ? *p : '-');

                if (ch != '-' || (n && out[n - 1] != '-'))
                        out[n++] = ch;
        }
        while (n && out[n - 1] == '-')
                n--;
        if (!n)
                out[n++] = 'x';
        out[n++] = '-';
        out[n] = '\0';
        return out;
}

/* ---- a job as dProfiler tells it */

const char *job_status(const struct summary *s)
{
        static const char *const words[] = {
                [SUMMARY_PENDING] = "pending",     [SUMMARY_RUNNING] = "running",
                [SUMMARY_SUSPENDED] = "pending",   [SUMMARY_SCHEDULED] = "pending",
                [SUMMARY_SUCCEEDED] = "completed", [SUMMARY_FAILED] = "failed",
                [SUMMARY_CANCELLED] = "failed",
        };

        return words[s->life];
}

/* What is not known is null. */
struct json *job_or_null(struct arena *a, const struct json *value)
{
        return value ? json_copy(a, value) : json_null(a);
}

struct json *job_time(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return when ? json_string(a, time_format(when, text)) : json_null(a);
}

static usec_t status_time(const struct json *object, const char *member)
{
        struct str text = json_text(json_at(json_at(object, "status"), member));
        usec_t when;

        return text.p && time_parse(text, &when) ? when : 0;
}

struct json *job_json(const struct kind *kind, const struct json *object, struct arena *a)
{
        const struct json *spec = json_at(object, "spec");
        struct json *job;
        struct summary s;
        bool failed;

        summarize(kind, object, a, &s);
        failed = s.life == SUMMARY_FAILED || s.life == SUMMARY_CANCELLED;
        job = json_build(
                a,
                "{'id': %lld, 'job_id': '%s.%s', 'algorithm_name': %s, 'input_size': %p, 'parameters': %p, "
                "'status': %s, 'priority': %lld, 'created_at': %p, 'updated_at': %p, 'started_at': %p, "
                "'completed_at': %p, 'worker_id': null, 'error_message': %p}",
                (long long)job_number(s.uid), s.ns, s.name, json_str_or(spec, "algorithmName", ""),
                (void *)job_or_null(a, json_at(spec, "inputSize")),
                (void *)job_or_null(a, json_at(spec, "parameters")), job_status(&s),
                (long long)(s.priority >= 0 ? s.priority : ADMISSION_PRIORITY_DEFAULT),
                (void *)job_time(a, s.created), (void *)job_time(a, MAX(s.updated, MAX(s.ended, s.created))),
                (void *)job_time(a, status_time(object, "startTime")),
                (void *)job_time(a, status_time(object, "completionTime")),
                (void *)job_or_null(a, failed ? json_string(a, s.sentence) : NULL));
        json_set(a, job, "namespace", json_string(a, s.ns));
        json_set(a, job, "name", json_string(a, s.name));
        json_set(a, job, "uid", json_string(a, s.uid));
        json_set(a, job, "percent", json_double(a, s.percent));
        return job;
}

static const struct kind *profilings(void)
{
        return kinds_named(str_of(ALGORITHMPROFILING.plural));
}

/* ---- POST */

/* 422 of the API server in FastAPI's shape, with the names that dProfiler has for fields; all else as it comes. */
void job_fail(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        static const struct {
                const char *ours, *theirs;
        } names[] = {
                {"spec.algorithmName", "algorithm_name"},
                {"spec.inputSize", "input_size"},
                {"spec.priority", "priority"},
                {"spec.parameters", "parameters"},
                {"spec.iterations", "iterations"},
                {"spec.algorithms", "algorithms"},
                {"spec.mlConfig.framework", "framework"},
                {"spec.mlConfig.nFeatures", "n_features"},
                {"spec.mlConfig.datasetSize", "dataset_size"},
                {"spec.mlConfig.nSelect", "n_select"},
                {"spec.mlConfig.algorithm", "algorithm"},
        };
        const struct json *status, *causes;
        struct json *wrong = json_array(&c->arena);

        if (answer->status != 422) {
                call_fail_kube(c, answer, err);
                return;
        }
        status = json_parse(&c->arena, answer->body, NULL, NULL);
        causes = json_at(json_at(status, "details"), "causes");
        json_foreach (cause, causes) {
                const char *field = json_str_or(cause, "field", "");

                for (size_t i = 0; i < ARRAY_LEN(names); i++)
                        if (streq(field, names[i].ours))
                                field = names[i].theirs;
                fields_complain(wrong, &c->arena, "body", field, "value_error",
                                json_str_or(cause, "message", "Input is not valid"));
        }
        if (json_first(wrong))
                call_reply(c, 422, json_build(&c->arena, "{'detail': %p}", (void *)wrong));
        else
                call_fail_kube(c, answer, err);
}

/* ---- created, and waited for */

#define WAIT_STEP (250 * USEC_PER_MS)

struct waited {
        const struct kind *kind;
        const char *ns, *name, *uid;
        bool waits;
        usec_t until;
        void (*tell)(struct call *c, const struct json *object, const struct summary *s);
};

static void look_again(struct call *c, const struct kube_answer *answer, const struct err *err);

/* Whether it is to be waited for longer; what was looked at for that is not kept, as it may be looked at for long. */
static bool goes_on(const struct call *c, struct str text)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct waited *w = c->state;
        const struct json *object;
        struct summary s;

        if (!w->waits || !w->uid || loop_now(c->web->loop) >= w->until)
                return false;
        object = json_parse(&a, text, &KUBE_OBJECT_LIMITS, NULL);
        if (!json_is(object, JSON_OBJECT))
                return false;
        summarize(w->kind, object, &a, &s);
        return !summary_over(&s) && streq(s.uid, w->uid);
}

static void look_later(struct call *c)
{
        c->next = look_again;
        timer_after(&c->timer, WAIT_STEP);
}

static void on_seen(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct waited *w = c->state;
        struct json *object;
        struct summary s;

        if (err) {
                job_fail(c, answer, err);
                return;
        }
        if (goes_on(c, answer->body)) {
                look_later(c);
                return;
        }
        object = call_object(c, answer);
        if (!object)
                return;
        summarize(w->kind, object, &c->arena, &s);
        if (w->waits && !w->uid) { /* it was just made */
                w->ns = s.ns;
                w->name = s.name;
                w->uid = s.uid;
                look_later(c);
                return;
        }
        w->tell(c, object, &s);
}

static void look_again(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        const struct waited *w = c->state;
        struct kube_request r = {.verb = KUBE_GET, .type = w->kind->type, .ns = w->ns, .name = w->name};

        call_kube(c, &r, on_seen);
}

void job_create(struct call *c, const struct kind *kind, struct json *object, bool waits,
                void (*tell)(struct call *c, const struct json *object, const struct summary *s))
{
        struct waited *w = arena_new(&c->arena, struct waited);
        struct kube_request r = {
                .verb = KUBE_CREATE, .type = kind->type, .ns = job_namespace(c), .field_manager = "sonde"};
        int64_t seconds = json_int(c->query, "wait", 0);

        *w = (struct waited){.kind = kind, .waits = waits && seconds > 0, .tell = tell};
        w->until = usec_add(loop_now(c->web->loop), (usec_t)MAX(seconds, (int64_t)0) * USEC_PER_SEC);
        c->state = w;
        r.body = str_of(json_print(&c->arena, object));
        call_kube(c, &r, on_seen);
}

static void tell_created(struct call *c, const struct json *object, const struct summary *s)
{
        call_reply(c, 200, job_json(s->kind, object, &c->arena));
}

void serve_job_create(struct call *c)
{
        struct arena *a = &c->arena;
        const char *name = json_str(c->body, "algorithm_name");
        struct err err = ERR_INIT;

        if (algorithm_check(name, NULL, &err) < 0) {
                call_fail_field(c, "body", "algorithm_name", err.text);
                return;
        }
        if (algorithm_check(name, json_at(c->body, "parameters"), &err) < 0) {
                call_fail_field(c, "body", "parameters", err.text);
                return;
        }
        job_create(c, profilings(),
                   json_build(a,
                              "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmProfiling', "
                              "'metadata': {'generateName': %s, 'labels': {'app': 'dprofiler'}}, 'spec': "
                              "{'algorithmName': %s, 'algorithmType': 'sorting', 'inputSize': %p, "
                              "'parameters': %p, 'priority': %p, 'iterations': %p}}",
                              job_prefix(a, name), name, (void *)json_copy(a, json_at(c->body, "input_size")),
                              (void *)json_copy(a, json_at(c->body, "parameters")),
                              (void *)json_copy(a, json_at(c->body, "priority")),
                              (void *)json_copy(a, json_at(c->body, "iterations"))),
                   false, tell_created);
}

/* ---- lists */

static int newest_first(const void *x, const void *y)
{
        const struct json *a = *(struct json *const *)x, *b = *(struct json *const *)y;
        int order = strcmp(json_str_or(b, "created_at", ""), json_str_or(a, "created_at", ""));

        return order ? order : strcmp(json_str_or(a, "job_id", ""), json_str_or(b, "job_id", ""));
}

static void list_jobs(struct call *c, const struct run_filter *filter)
{
        struct arena *a = &c->arena;
        size_t kind = feed_index(profilings()), at = 0, n = 0;
        struct cache *cache = feed_cache(c->web->feed, kind);
        struct json **all = arena_new_array(a, struct json *, cache_count(cache) + 1);
        const char *status = json_str(c->query, "status"), *algorithm = json_str(c->query, "algorithm_name");
        int64_t page = json_int(c->query, "page", 1), per_page = json_int(c->query, "per_page", 10);
        struct json *jobs = json_array(a);
        const struct cache_entry *e;

        while ((e = cache_next(cache, &at))) {
                struct json *job;

                if (!feed_concerns(filter, kind, e->ns) || !caller_sees(c->caller, kind, e->ns))
                        continue;
                job = job_json(profilings(), cache_parse(cache, e, a), a);
                if ((!status || streq(status, json_str(job, "status"))) &&
                    (!algorithm || streq(algorithm, json_str(job, "algorithm_name"))))
                        all[n++] = job;
        }
        qsort(all, n, sizeof(struct json *), newest_first);
        for (size_t i = (size_t)(page - 1) * (size_t)per_page; i < n && json_len(jobs) < (size_t)per_page;
             i++)
                json_append(jobs, all[i]);
        call_reply(c, 200,
                   json_build(a,
                              "{'jobs': %p, 'total': %zu, 'page': %lld, 'per_page': %lld, 'total_pages': "
                              "%zu}",
                              (void *)jobs, n, (long long)page, (long long)per_page,
                              (n + (size_t)per_page - 1) / (size_t)per_page));
}

void serve_jobs(struct call *c)
{
        json_set(&c->arena, c->query, "kind", json_string(&c->arena, ALGORITHMPROFILING.plural));
        runs_ask(c, list_jobs);
}

/* ---- one */

static void look_at(struct call *c,
                    void (*next)(struct call *c, const struct kube_answer *answer, const struct err *err))
{
        struct kube_request r = {.verb = KUBE_GET, .type = &ALGORITHMPROFILING};

        job_split(c, c->params[0], &r.ns, &r.name);
        call_kube(c, &r, next);
}

/* The object; NULL: it is answered. */
static struct json *found(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        if (err && err->code == E_NOT_FOUND)
                call_fail(c, 404, "Job not found");
        else if (err)
                call_fail_kube(c, answer, err);
        else
                return call_object(c, answer);
        return NULL;
}

static void tell_job(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct json *object = found(c, answer, err);

        if (object)
                call_reply(c, 200, job_json(profilings(), object, &c->arena));
}

void serve_job(struct call *c)
{
        look_at(c, tell_job);
}

static void tell_results(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct arena *a = &c->arena;
        struct json *object = found(c, answer, err), *list;
        const struct json *results, *spec;

        if (!object)
                return;
        results = json_at(json_at(object, "status"), "results");
        spec = json_at(object, "spec");
        list = json_array(a);
        if (results) {
                int64_t number = job_number(meta_str(object, "uid"));

                json_append(list,
                            json_build(a,
                                       "{'id': %lld, 'job_id': %lld, 'algorithm_name': %s, 'input_size': %p, "
                                       "'execution_time': %p, 'memory_usage': %p, 'cpu_usage': %p, "
                                       "'iterations': %p, 'parameters': %p, 'result_metadata': %p, "
                                       "'timestamp': %p}",
                                       (long long)number, (long long)number,
                                       json_str_or(spec, "algorithmName", ""),
                                       (void *)job_or_null(a, json_at(spec, "inputSize")),
                                       (void *)job_or_null(a, json_at(results, "executionTime")),
                                       (void *)job_or_null(a, json_at(results, "memoryUsage")),
                                       (void *)job_or_null(a, json_at(results, "cpuUsage")),
                                       (void *)job_or_null(a, json_at(results, "iterations")),
                                       (void *)job_or_null(a, json_at(spec, "parameters")),
                                       (void *)json_copy(a, results),
                                       (void *)job_time(a, status_time(object, "completionTime"))));
        }
        call_reply(c, 200, list);
}

void serve_job_results(struct call *c)
{
        look_at(c, tell_results);
}

/* ---- DELETE: with the uid that was seen, so that a later one of the same name stays */

static void on_deleted(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        if (err && err->code != E_NOT_FOUND && err->code != E_CONFLICT)
                call_fail_kube(c, answer, err);
        else
                call_reply(c, 200, json_build(&c->arena, "{'message': 'Job deleted successfully'}"));
}

static void delete (struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct json *object = found(c, answer, err);
        struct kube_request r = {.verb = KUBE_DELETE, .type = &ALGORITHMPROFILING};

        if (!object)
                return;
        r.ns = meta_str(object, "namespace");
        r.name = meta_str(object, "name");
        r.body = str_of(kube_delete_options(&c->arena, meta_str(object, "uid"), NULL, "Background"));
        call_kube(c, &r, on_deleted);
}

void serve_job_delete(struct call *c)
{
        look_at(c, delete);
}
