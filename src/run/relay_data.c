/*
 * The data ConfigMap: when it is written, and the patch.
 *
 * It is fenced by attempt and pod, so that an old attempt's result never lands on a newer one's, and by its version, so that
 * a patch that was thought to be lost and arrives late does not undo a newer one. The checkpoint of an earlier attempt stays
 * until there is a new one; its result, named files and artifacts go when this attempt takes over.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "run/relay_internal.h"

enum { PATCH_MAX = 4 << 20, NUMBER_MAX = 24 };

#define ENDING_EVERY \
        (1 * USEC_PER_SEC) /* after relay_terminate(): a last checkpoint is about to be written */

/* ---- when */

static int wanted_level(const struct relay *r)
{
        if (r->ended)
                return r->flushing ? RELAY_LEVEL_END : RELAY_LEVEL_ARTIFACTS;
        return r->flushing ? RELAY_LEVEL_FLUSH : RELAY_LEVEL_NONE;
}

bool relay_data_settled(const struct relay *r)
{
        const struct relay_data *d = &r->data;

        if (!r->config.data_map || d->hopeless)
                return true;
        if (d->gather && d->gather->level <= wanted_level(r)) /* no waiting for artifacts when time is up */
                return false;
        return d->claimed && !d->ready && d->level >= wanted_level(r);
}

void relay_data_look(struct relay *r)
{
        struct stat st;

        for (size_t i = 0; i < RELAY_NAMED; i++) {
                struct relay_stamp is = {0};

                if (fstatat(r->places[PLACE_DIR].fd, r->data.names.name[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
                        is = (struct relay_stamp){(uint64_t)st.st_dev, (uint64_t)st.st_ino,
                                                  (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                                                  (uint64_t)st.st_mtim.tv_nsec};
                if (memcmp(&is, &r->data.stamps[i], sizeof(is)) == 0)
                        continue;
                r->data.stamps[i] = is;
                r->data.changed = true;
        }
}

static void gather_if_due(struct relay *r)
{
        struct relay_data *d = &r->data;
        int level = wanted_level(r), fd = r->places[PLACE_DIR].fd;

        if (d->gather)
                return;
        if (d->level < RELAY_LEVEL_END)
                level = MIN(level, RELAY_LEVEL_END);
        if (level > d->level && level <= RELAY_LEVEL_END)
                relay_gather_free(TAKE_PTR(d->ready)); /* it was read before the end */
        if (d->ready || (level <= d->level && (!d->changed || loop_now(r->config.loop) < d->next)))
                return;
        d->changed = false;
        d->gather = relay_gather_start(r, fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3), level);
}

void relay_gathered(struct relay *r, struct relay_gather *g)
{
        r->data.gather = NULL;
        r->data.ready = g;
        r->data.level = MAX(r->data.level, g->level);
        relay_problem(r, ABOUT_DATA, buf_cstr(&g->problem));
        relay_pump(r);
}

/* ---- what is there */

static void take_keys(struct relay_data *d, const struct json *values, bool binary)
{
        json_foreach (m, values)
                json_setn(&d->keys.arena, d->keys.root, str_n(m->key, m->key_len),
                          json_truth(&d->keys.arena, binary));
}

static void take_sizes(struct relay_data *d, const struct json *data, const struct json *binary)
{
        for (size_t i = 0; i < d->names.n; i++) {
                _cleanup_(free_ptr) char *gz = xasprintf("%s.gz", d->names.name[i]);

                if (!d->claimed && relay_is_of_one_attempt(&d->names, d->names.name[i]))
                        d->there[i] = 0; /* it goes */
                else
                        d->there[i] = json_text(json_at(data, d->names.name[i])).n +
                                      json_text(json_at(binary, gz)).n / 4 * 3;
        }
}

static int take_version(struct relay_data *d, const struct json *object, struct err *err)
{
        const char *version = meta_str(object, "resourceVersion");

        if (!version)
                return err_set(err, E_INVALID, "it has no resourceVersion");
        free(d->version);
        d->version = xstrdup(version);
        return 0;
}

static int read_map(struct relay *r, struct str body, struct err *err)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct relay_data *d = &r->data;
        const struct json *data;
        const char *pod;

        if (doc_parse(&doc, body, &RELAY_MAP_LIMITS, err) < 0)
                return -1;
        data = json_at(doc.root, "data");
        pod = json_str_or(data, RUN_KEY_POD, "");
        if (!str_to_u64(json_text(json_at(data, RUN_KEY_ATTEMPT)), &d->attempt) ||
            !json_at(data, RUN_KEY_POD))
                d->attempt = 0;
        if (strlen(pod) >= sizeof(d->pod))
                return err_set(err, E_INVALID, "its key '%s' is too long", RUN_KEY_POD);
        memcpy(d->pod, pod, strlen(pod) + 1);
        if (take_version(d, doc.root, err) < 0)
                return -1;
        d->claimed = d->attempt == r->claim && streq(d->pod, r->config.pod_uid);
        doc_done(&d->keys);
        d->keys.root = json_object(&d->keys.arena);
        take_keys(d, data, false);
        take_keys(d, json_at(doc.root, "binaryData"), true);
        take_sizes(d, data, json_at(doc.root, "binaryData"));
        return 0;
}

int relay_data_read_answered(struct relay *r, struct str body, struct err *err)
{
        struct relay_data *d = &r->data;

        if (read_map(r, body, err) < 0)
                return err_wrap(err, "ConfigMap %s/%s", r->config.ns, r->config.data_map);
        d->known = true;
        if (d->attempt > r->claim || (d->attempt == r->claim && d->pod[0] && !d->claimed)) {
                LOG_INFO(r->config.log, "A newer attempt has taken over the data",
                         F_UINT("attempt", d->attempt), F_STR("pod", d->pod));
                relay_finish(r, 0);
        }
        return 0;
}

/* ---- what is to be done to it */

static bool has_key(const struct relay_data *d, const char *key)
{
        return json_at(d->keys.root, key) != NULL;
}

static bool has_any(const struct relay_data *d, bool binary)
{
        json_foreach (m, d->keys.root)
                if (m->truth == binary)
                        return true;
        return false;
}

static void op_put(struct relay_data *d, const char *key, bool binary, struct str value)
{
        *vec_push(&d->ops) = (struct relay_data_op){key, binary, false, value};
}

static void op_remove(struct relay_data *d, const char *key)
{
        const struct json *there = json_at(d->keys.root, key);

        if (there)
                *vec_push(&d->ops) = (struct relay_data_op){there->key, there->truth, true, STR_NULL};
}

/* The result, the named files and the artifacts of an earlier attempt go. */
static void plan_claim(struct relay *r)
{
        struct relay_data *d = &r->data;

        snprintf(d->number, sizeof(d->number), "%llu", (unsigned long long)r->claim);
        op_put(d, RUN_KEY_ATTEMPT, false, str_of(d->number));
        op_put(d, RUN_KEY_POD, false, str_of(r->config.pod_uid));
        json_foreach (m, d->keys.root)
                if (relay_is_of_one_attempt(&d->names, m->key))
                        op_remove(d, m->key);
}

static void plan_forget(struct relay_data *d, const char *gz)
{
        op_remove(d, RUN_KEY_CHECKPOINT);
        op_remove(d, gz);
        op_remove(d, RUN_KEY_SPEC_HASH);
}

/* A file that is not kept takes the last one with it, a checkpoint does not: an old one is better than none. */
static void plan_file(struct relay *r, size_t which, struct arena *a)
{
        struct relay_data *d = &r->data;
        const struct relay_value *v = &d->ready->files[which];
        const char *plain = d->names.name[which], *gz = arena_join(a, plain, ".gz", "");
        bool taken_over = !d->claimed && relay_is_of_one_attempt(&d->names, plain); /* removed already */

        if (which == RELAY_CHECKPOINT && d->ready->forget)
                plan_forget(d, gz);
        if (!v->name || (v->sha256[0] && streq(v->sha256, d->sent[which]) && d->claimed))
                return;
        if (which == RELAY_CHECKPOINT && !v->key)
                return;
        if (!taken_over && !streq(v->key, plain))
                op_remove(d, plain);
        if (!taken_over && !streq(v->key, gz))
                op_remove(d, gz);
        if (v->key)
                op_put(d, v->key, v->binary, buf_str(&v->content));
        if (which != RELAY_CHECKPOINT)
                return;
        if (r->config.spec_hash)
                op_put(d, RUN_KEY_SPEC_HASH, false, str_of(r->config.spec_hash));
        else
                op_remove(d, RUN_KEY_SPEC_HASH);
}

static void plan(struct relay *r, struct arena *a)
{
        struct relay_data *d = &r->data;
        const struct json *list;

        d->ops.n = 0;
        if (!d->claimed)
                plan_claim(r);
        if (!d->ready)
                return;
        for (size_t i = 0; i < d->names.n; i++)
                plan_file(r, i, a);
        vec_foreach (v, &d->ready->list)
                if (v->key)
                        op_put(d, v->key, true, buf_str(&v->content));
        list = d->ready->level >= RELAY_LEVEL_END ? relay_gather_list(d->ready, a) : NULL;
        if (list)
                op_put(d, RUN_KEY_ARTIFACTS, false, str_of(json_print(a, list)));
}

/* ---- the patch, written by hand: a tree of it would hold every value twice */

static void write_op(struct buf *b, const char *op, const char *path, const char *key)
{
        buf_printf(b, "%s{\"op\":\"%s\",\"path\":\"%s%s\"", b->n > 1 ? "," : "", op, path, key);
}

static void write_text(struct buf *b, const char *op, const char *path, const char *key, struct str value)
{
        write_op(b, op, path, key);
        buf_adds(b, ",\"value\":");
        json_write_string(value, b);
        buf_addc(b, '}');
}

static void write_value(struct buf *b, const struct relay_data_op *op)
{
        if (!op->binary) {
                write_text(b, "add", "/data/", op->key, op->value);
                return;
        }
        write_op(b, "add", "/binaryData/", op->key);
        buf_adds(b, ",\"value\":\"");
        buf_add_base64(b, op->value);
        buf_adds(b, "\"}");
}

static void write_fence(const struct relay_data *d, struct buf *b)
{
        char number[NUMBER_MAX];

        snprintf(number, sizeof(number), "%llu", (unsigned long long)d->attempt);
        if (d->attempt) {
                write_text(b, "test", "/data/", RUN_KEY_ATTEMPT, str_of(number));
                write_text(b, "test", "/data/", RUN_KEY_POD, str_of(d->pod));
        }
        write_text(b, "test", "/metadata/", "resourceVersion", str_of(d->version));
}

static void write_patch(const struct relay_data *d, struct buf *b)
{
        bool missing[2] = {!has_any(d, false), !has_any(d, true)};

        buf_addc(b, '[');
        write_fence(d, b);
        vec_foreach (op, &d->ops) {
                if (op->remove) {
                        write_op(b, "remove", op->binary ? "/binaryData/" : "/data/", op->key);
                        buf_addc(b, '}');
                        continue;
                }
                if (missing[op->binary]) {
                        write_op(b, "add", op->binary ? "/binaryData" : "/data", "");
                        buf_adds(b, ",\"value\":{}}");
                        missing[op->binary] = false;
                }
                write_value(b, op);
        }
        buf_addc(b, ']');
}

static bool send_patch(struct relay *r)
{
        _cleanup_(buf_done) struct buf body = BUF_INIT(PATCH_MAX);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct relay_data *d = &r->data;

        plan(r, &a);
        if (!d->ops.n) {
                relay_gather_free(TAKE_PTR(d->ready));
                return false;
        }
        write_patch(d, &body);
        d->sending = TAKE_PTR(d->ready);
        relay_send(r, RELAY_DATA, r->config.data_map, KUBE_PATCH_JSON, buf_str(&body));
        return true;
}

bool relay_data_step(struct relay *r)
{
        struct relay_data *d = &r->data;

        if (!r->config.data_map || d->hopeless)
                return false;
        if (!d->known) {
                relay_send(r, RELAY_DATA_READ, r->config.data_map, KUBE_GET, STR_NULL);
                return true;
        }
        gather_if_due(r);
        if (d->claimed && !d->ready)
                return false;
        if (send_patch(r))
                return true;
        gather_if_due(r); /* what comes after that */
        return false;
}

/* ---- answers */

static void remember_size(struct relay_data *d, const struct relay_data_op *op)
{
        for (size_t i = 0; i < d->names.n; i++) {
                if (!relay_is_key_of(op->key, d->names.name[i]))
                        continue;
                d->there[i] = op->remove ? 0 : op->value.n;
                if (op->remove)
                        d->sent[i][0] = '\0';
        }
}

static void remember_keys(struct relay_data *d)
{
        vec_foreach (op, &d->ops) {
                remember_size(d, op);
                if (op->remove)
                        json_remove(d->keys.root, op->key);
                else if (!has_key(d, op->key))
                        json_set(&d->keys.arena, d->keys.root, arena_strdup(&d->keys.arena, op->key),
                                 json_truth(&d->keys.arena, op->binary));
        }
}

void relay_data_answered(struct relay *r, struct str body)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct relay_data *d = &r->data;

        if (doc_parse(&doc, body, &RELAY_MAP_LIMITS, NULL) < 0 || take_version(d, doc.root, NULL) < 0)
                d->known = false;
        remember_keys(d);
        d->claimed = true;
        d->attempt = r->claim;
        memcpy(d->pod, r->config.pod_uid, strlen(r->config.pod_uid) + 1);
        if (!d->sending)
                return;
        for (size_t i = 0; i < d->names.n; i++)
                if (d->sending->files[i].name)
                        memcpy(d->sent[i], d->sending->files[i].sha256, sizeof(d->sent[i]));
        relay_gather_free(TAKE_PTR(d->sending));
        d->next = loop_now(r->config.loop) + (r->terminating ? ENDING_EVERY : RELAY_DATA_EVERY);
}

void relay_data_unsend(struct relay *r)
{
        struct relay_data *d = &r->data;

        if (d->ready) /* newer */
                relay_gather_free(TAKE_PTR(d->sending));
        else
                d->ready = TAKE_PTR(d->sending);
}

bool relay_data_refused(struct relay *r, const struct err *err)
{
        struct relay_data *d = &r->data;

        if (d->ready && relay_gather_drop(d->ready)) {
                memcpy(d->refused, d->ready->refused, sizeof(d->refused));
                relay_problem(r, ABOUT_DATA, buf_cstr(&d->ready->problem));
                return true;
        }
        if (err->code == E_REFUSED && !d->ready)
                return false;
        /* Nothing of ours is left in it. The end is recorded all the same. */
        relay_gather_free(TAKE_PTR(d->ready));
        d->hopeless = true;
        relay_problem(r, ABOUT_DATA, err->text);
        return true;
}

void relay_data_done(struct relay *r)
{
        struct relay_data *d = &r->data;

        if (d->gather)
                d->gather->relay = NULL; /* it frees itself */
        relay_gather_free(d->ready);
        relay_gather_free(d->sending);
        doc_done(&d->keys);
        vec_done(&d->ops);
        free(d->version);
}
