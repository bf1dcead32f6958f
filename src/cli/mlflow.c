#include "cli/mlflow.h"

#include <ctype.h>
#include <math.h>

#include "json/json.h"

#define API       "/api/2.0/mlflow/"
#define ARTIFACTS "/api/2.0/mlflow-artifacts/artifacts/"
/* For the last word about a run that was given up: whoever has pressed ctrl-C does not wait longer. */
#define END_WITHIN (10 * USEC_PER_SEC)

enum {
        KEY_MAX = 250,
        PARAM_VALUE_MAX = 500,
        TAG_VALUE_MAX = 5000,
        PARAMS_MAX = 100,
        TAGS_MAX = 100,
        METRICS_MAX = 1000,
        TOKEN_BYTES_MAX = 16 << 10,
        ANSWER_BYTES_MAX = 4 << 20,
};

struct session {
        struct loop *loop;
        struct http_client *client;
        const struct mlflow_target *target;
        const bool *stop;
        struct arena *arena;
        struct buf authorization; /* "Bearer ..."; empty: none */
};

void mlflow_run_done(struct mlflow_run *run)
{
        vec_done(&run->params);
        vec_done(&run->tags);
        vec_done(&run->metrics);
        vec_done(&run->artifacts);
}

/* ---- names and values */

/* MLflow keeps names as paths: of those that lead elsewhere no slash is left. */
static bool is_plain_path(const char *key)
{
        struct str rest = str_of(key);

        while (rest.p) {
                struct str part = str_split(&rest, '/');

                if (!part.n || str_eq(part, STR(".")) || str_eq(part, STR("..")))
                        return false;
        }
        return true;
}

const char *mlflow_key(struct arena *a, const char *name)
{
        char *key = arena_strndup(a, name, MIN(strlen(name), (size_t)KEY_MAX));

        for (char *c = key; *c; c++)
                if (!isalnum((unsigned char)*c) && !strchr("_-./ ", *c))
                        *c = '_';
        if (!is_plain_path(key))
                for (char *c = key; *c; c++)
                        if (*c == '/')
                                *c = '_';
        return !*key || streq(key, ".") || streq(key, "..") ? "_" : key;
}

static struct json *pair(struct arena *a, const struct mlflow_pair *p, size_t max)
{
        size_t n = strlen(p->value);

        return json_build(a, "{'key': %s, 'value': %p}", mlflow_key(a, p->key),
                          json_stringn(a, str_n(p->value, utf8_cut(p->value, n, max))));
}

/* ---- one request */

struct answer {
        bool done;
        int status;
        struct arena *arena;
        struct json *doc; /* NULL: none, or no JSON */
        struct err err;
};

static void on_end(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct answer *to = arg;

        to->done = true;
        if (err)
                to->err = *err;
        if (!answer)
                return;
        to->status = answer->status;
        to->doc = json_parse(to->arena, answer->body, NULL, NULL);
}

/* Why the server refused, in its own words where it has any. */
static int refusal(const struct session *s, const char *what, const struct answer *answer, struct err *err)
{
        const char *code = json_str(answer->doc, "error_code"), *message = json_str(answer->doc, "message");
        enum err_code kind = answer->status == 404 ? code ? E_NOT_FOUND : E_PROTOCOL
                             : answer->status == 401 || answer->status == 403 ? E_AUTH
                             : streq(code, "RESOURCE_ALREADY_EXISTS")         ? E_EXISTS
                                                                              : E_REFUSED;

        if (kind == E_AUTH)
                return err_set(err, kind, "MLflow at %s does not let us in (%d to %s); see --token-file",
                               s->target->url, answer->status, what);
        if (kind == E_PROTOCOL)
                return err_set(err, kind, "there is no MLflow at %s: 404 to %s", s->target->url, what);
        return err_set(err, kind, "MLflow at %s refuses %s: %d%s%s%s%s", s->target->url, what, answer->status,
                       code ? " " : "", code ? code : "", message ? ": " : "", message ? message : "");
}

static int send(struct session *s, const char *what, const struct http_request *request, const bool *stop,
                struct json **ret, struct err *err)
{
        const struct http_handlers handlers = {.on_end = on_end};
        struct answer answer = {.arena = s->arena, .err = ERR_INIT};
        struct http_call *call = http_start(s->client, request, &handlers, &answer);

        while (!answer.done && !(stop && *stop) && loop_turn(s->loop, true))
                continue;
        if (!answer.done) {
                http_call_cancel(call);
                return err_set(err, E_CANCELED, "interrupted");
        }
        if (answer.err.code) {
                *err = answer.err;
                return err_wrap(err, "%s at MLflow", what);
        }
        if (answer.status / 100 != 2)
                return refusal(s, what, &answer, err);
        if (ret)
                *ret = answer.doc;
        return 0;
}

static struct http_headers headers_of(struct session *s, const char *content_type)
{
        struct http_header *v = arena_new_array(s->arena, struct http_header, 2);
        size_t n = 0;

        v[n++] = (struct http_header){STR("Content-Type"), str_of(content_type)};
        if (s->authorization.n)
                v[n++] = (struct http_header){STR("Authorization"), buf_str(&s->authorization)};
        return (struct http_headers){v, n};
}

static int post(struct session *s, const char *what, const struct json *body, const bool *stop,
                struct json **ret, struct err *err)
{
        const struct http_request request = {.method = "POST",
                                             .target = arena_join(s->arena, API, what, ""),
                                             .headers = headers_of(s, "application/json"),
                                             .body = str_of(json_print(s->arena, body)),
                                             .timeout = stop ? 0 : END_WITHIN};

        return send(s, what, &request, stop, ret, err);
}

/* ---- the experiment */

static int find_experiment(struct session *s, const char **ret_id, struct err *err)
{
        _cleanup_(buf_done) struct buf target = BUF_INIT(8 << 10);
        const char *what = "experiments/get-by-name";
        struct http_request request = {.method = "GET", .headers = headers_of(s, "application/json")};
        const struct json *experiment;
        struct json *doc;

        buf_printf(&target, API "%s?experiment_name=", what);
        buf_add_urlencoded(&target, str_of(s->target->experiment));
        request.target = buf_cstr(&target);
        if (!request.target)
                return err_set(err, E_CONFIG, "the experiment's name is too long");
        if (send(s, what, &request, s->stop, &doc, err) < 0)
                return -1;
        experiment = json_at(doc, "experiment");
        *ret_id = json_str(experiment, "experiment_id");
        if (!*ret_id)
                return err_set(err, E_PROTOCOL,
                               "there is no MLflow at %s: it answers, but not as MLflow does",
                               s->target->url);
        if (streq(json_str(experiment, "lifecycle_stage"), "deleted"))
                return err_set(
                        err, E_REFUSED,
                        "the experiment '%s' of MLflow was deleted; restore it there, or name another by "
                        "--experiment",
                        s->target->experiment);
        return 0;
}

/* Somebody else may make it at the same moment: then it is there. */
static int have_experiment(struct session *s, const char **ret_id, struct err *err)
{
        struct json *doc;

        if (find_experiment(s, ret_id, err) == 0)
                return 0;
        if (err->code != E_NOT_FOUND)
                return -1;
        err_clear(err);
        if (post(s, "experiments/create", json_build(s->arena, "{'name': %s}", s->target->experiment),
                 s->stop, &doc, err) < 0) {
                if (err->code != E_EXISTS)
                        return -1;
                err_clear(err);
                return find_experiment(s, ret_id, err);
        }
        *ret_id = json_str(doc, "experiment_id");
        return *ret_id ? 0 : err_set(err, E_PROTOCOL, "MLflow made an experiment and did not say which");
}

/* ---- the run */

static int64_t millis(const struct session *s, usec_t wall)
{
        return (int64_t)((wall ? wall : loop_wall(s->loop)) / USEC_PER_MS);
}

static int create_run(struct session *s, const struct mlflow_run *run, struct mlflow_logged *logged,
                      struct err *err)
{
        struct json *tags = json_array(s->arena), *doc;
        const struct json *info;

        for (size_t i = 0; i < MIN(run->tags.n, (size_t)TAGS_MAX); i++)
                json_append(tags, pair(s->arena, &run->tags.v[i], TAG_VALUE_MAX));
        if (post(s, "runs/create",
                 json_build(s->arena, "{'experiment_id': %s, 'run_name': %s, 'start_time': %lld, 'tags': %p}",
                            logged->experiment_id, run->name, (long long)millis(s, run->started), tags),
                 s->stop, &doc, err) < 0)
                return -1;
        info = json_at(json_at(doc, "run"), "info");
        logged->run_id = json_str(info, "run_id");
        logged->artifact_uri = json_str_or(info, "artifact_uri", "");
        return logged->run_id ? 0 : err_set(err, E_PROTOCOL, "MLflow made a run and did not say which");
}

static int log_batch(struct session *s, const char *run_id, const char *member, struct json *list,
                     struct err *err)
{
        return post(s, "runs/log-batch",
                    json_build(s->arena, "{'run_id': %s, '%s': %p}", run_id, member, list), s->stop, NULL,
                    err);
}

/* Two names that MLflow cannot tell apart are one, and of one only the first value is taken. */
static bool is_repeated(const struct json *keys, const char *key)
{
        json_foreach (k, keys)
                if (streq(json_cstr(k), key))
                        return true;
        return false;
}

static int log_params(struct session *s, const struct mlflow_run *run, struct mlflow_logged *logged,
                      struct err *err)
{
        struct json *batch = json_array(s->arena), *keys = json_array(s->arena);

        for (size_t i = 0; i < run->params.n; i++) {
                const char *key = mlflow_key(s->arena, run->params.v[i].key);

                if (*run->params.v[i].value && !is_repeated(keys, key)) {
                        json_append(keys, json_string(s->arena, key));
                        json_append(batch, pair(s->arena, &run->params.v[i], PARAM_VALUE_MAX));
                }
                if (json_len(batch) < PARAMS_MAX && i + 1 < run->params.n)
                        continue;
                if (json_len(batch) && log_batch(s, logged->run_id, "params", batch, err) < 0)
                        return -1;
                logged->params += json_len(batch);
                batch = json_array(s->arena);
        }
        return 0;
}

static int log_metrics(struct session *s, const struct mlflow_run *run, struct mlflow_logged *logged,
                       struct err *err)
{
        struct json *batch = json_array(s->arena);

        for (size_t i = 0; i < run->metrics.n; i++) {
                const struct mlflow_metric *m = &run->metrics.v[i];

                if (isfinite(m->value))
                        json_append(batch,
                                    json_build(s->arena,
                                               "{'key': %s, 'value': %p, 'timestamp': %lld, 'step': %lld}",
                                               mlflow_key(s->arena, m->key), json_double(s->arena, m->value),
                                               (long long)millis(s, m->at), (long long)m->step));
                if (json_len(batch) < METRICS_MAX && i + 1 < run->metrics.n)
                        continue;
                if (json_len(batch) && log_batch(s, logged->run_id, "metrics", batch, err) < 0)
                        return -1;
                logged->metrics += json_len(batch);
                batch = json_array(s->arena);
        }
        return 0;
}

/* ---- artifacts */

/* The path below the server's own artifacts that URI means; NULL: it is not the server's to write to. */
static const char *served_path(const struct session *s, const char *uri)
{
        struct str rest = str_of(uri), scheme = STR("mlflow-artifacts:");
        struct str authority;
        struct url url;

        if (!str_has_prefix(rest, scheme))
                return NULL;
        rest = str_n(rest.p + scheme.n, rest.n - scheme.n);
        if (str_has_prefix(rest, STR("//"))) { /* another server gets neither files nor token */
                rest = str_n(rest.p + 2, rest.n - 2);
                authority = str_split(&rest, '/');
                if (url_parse(str_of(s->target->url), &url, NULL) < 0)
                        return NULL;
                if (authority.n && !str_eq(authority, url.host) &&
                    !str_eq(authority,
                            str_of(arena_printf(s->arena, "%.*s:%u", STR_ARG(url.host), url.port))))
                        return NULL;
        }
        while (rest.n && rest.p[0] == '/')
                rest = str_n(rest.p + 1, rest.n - 1);
        return arena_strndup(s->arena, rest.n ? rest.p : "", rest.n);
}

/* PATH with every segment encoded. */
static void add_path(struct buf *out, const char *path)
{
        struct str rest = str_of(path);

        while (rest.p) {
                buf_add_urlencoded(out, str_split(&rest, '/'));
                if (rest.p)
                        buf_addc(out, '/');
        }
}

static int put(struct session *s, const char *folder, const struct mlflow_artifact *artifact, struct err *err)
{
        _cleanup_(buf_done) struct buf target = BUF_INIT(8 << 10);
        struct http_request request = {.method = "PUT",
                                       .headers = headers_of(s, "application/octet-stream"),
                                       .body = artifact->content};

        buf_adds(&target, ARTIFACTS);
        add_path(&target, folder);
        buf_addc(&target, '/');
        add_path(&target, artifact->path);
        request.target = buf_cstr(&target);
        if (!request.target)
                return err_set(err, E_INVALID, "the name of the artifact %s is too long", artifact->path);
        if (!request.body.p)
                request.body = STR("");
        return send(s, arena_printf(s->arena, "the artifact %s", artifact->path), &request, s->stop, NULL,
                    err);
}

static int log_artifacts(struct session *s, const struct mlflow_run *run, struct mlflow_logged *logged,
                         struct err *err)
{
        const char *folder = served_path(s, logged->artifact_uri);

        if (!folder)
                return 0;
        logged->artifact_uri = NULL;
        for (size_t i = 0; i < run->artifacts.n; i++) {
                if (put(s, folder, &run->artifacts.v[i], err) < 0)
                        return -1;
                logged->artifacts++;
        }
        return 0;
}

/* ---- all of it */

static int end_run(struct session *s, const char *run_id, enum mlflow_status status, usec_t ended,
                   const bool *stop, struct err *err)
{
        static const char *const names[] = {"FINISHED", "FAILED", "KILLED"};

        return post(s, "runs/update",
                    json_build(s->arena, "{'run_id': %s, 'status': %s, 'end_time': %lld}", run_id,
                               names[status], (long long)millis(s, ended)),
                    stop, NULL, err);
}

/* WHY comes first; that the run was left as it is, too, where it was. */
static int give_up(struct session *s, const char *run_id, const struct err *why, struct err *err)
{
        struct err also = ERR_INIT;

        if (end_run(s, run_id, why->code == E_CANCELED ? MLFLOW_KILLED : MLFLOW_FAILED, 0, NULL, &also) == 0)
                return err_set(err, why->code, "%s; the run %s of MLflow was ended as %s", why->text, run_id,
                               why->code == E_CANCELED ? "KILLED" : "FAILED");
        return err_set(err, why->code, "%s; the run %s of MLflow is left as RUNNING, because %s", why->text,
                       run_id, also.text);
}

static int log_all(struct session *s, const struct mlflow_run *run, struct mlflow_logged *logged,
                   struct err *err)
{
        struct err why = ERR_INIT;

        if (have_experiment(s, &logged->experiment_id, err) < 0 || create_run(s, run, logged, err) < 0)
                return -1;
        if (log_params(s, run, logged, &why) < 0 || log_metrics(s, run, logged, &why) < 0 ||
            log_artifacts(s, run, logged, &why) < 0 ||
            end_run(s, logged->run_id, run->status, run->ended, s->stop, &why) < 0)
                return give_up(s, logged->run_id, &why, err);
        return 0;
}

static int read_token(struct session *s, struct err *err)
{
        _cleanup_(buf_done) struct buf token = BUF_INIT(TOKEN_BYTES_MAX);
        struct str word;

        if (!s->target->token_file)
                return 0;
        if (file_read(s->target->token_file, &token, err) < 0)
                return -1;
        word = str_trim(buf_str(&token));
        buf_printf(&s->authorization, "Bearer %.*s", STR_ARG(word));
        if (token.p)
                mem_wipe(token.p, token.cap);
        return 0;
}

static int connect_to(struct session *s, struct err *err)
{
        _cleanup_(tls_unref) struct tls *tls = NULL;
        struct http_client_config config = {.url = s->target->url, .limits = {.body = ANSWER_BYTES_MAX}};
        struct url url;

        if (url_parse(str_of(s->target->url), &url, err) < 0)
                return err_wrap(err, "--to-mlflow");
        if (url.tls) {
                config.tls = tls = tls_new(&(struct tls_config){0}, err);
                if (!tls)
                        return -1;
        }
        s->client = http_client_new(s->loop, &config, err);
        return s->client ? 0 : -1;
}

int mlflow_log(struct loop *loop, const struct mlflow_target *target, const struct mlflow_run *run,
               const bool *stop, struct arena *a, struct mlflow_logged *ret, struct err *err)
{
        static const bool never = false;
        struct session s = {.loop = loop,
                            .target = target,
                            .stop = stop ? stop : &never,
                            .arena = a,
                            .authorization = BUF_INIT(TOKEN_BYTES_MAX)};
        int r = -1;

        *ret = (struct mlflow_logged){0};
        if (read_token(&s, err) == 0 && connect_to(&s, err) == 0)
                r = log_all(&s, run, ret, err);
        http_client_free(s.client);
        if (s.authorization.p)
                mem_wipe(s.authorization.p, s.authorization.cap);
        buf_done(&s.authorization);
        return r;
}
