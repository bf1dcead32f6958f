/*
 * What was measured, on disk: checkpoint.json of the run directory.
 *
 *   {"version": 1, "of": HASH, "chosen": {"prefill": "TP=4", "decode": "TP=2"}, "kvTokens": {"TP=1": 100000},
 *    "failed": {"DecodeSweep/TP=4": "why", "DecodeInterpolation/TP=2/600/48": "why"},
 *    "points": {"DecodeSweep/TP=2/3000/24": [ttftAvg, ttftMax, itlAvg, outputThroughput, seconds, requests, errors]}}
 *
 * Each addition rewrites the file atomically. Numbers are written so that they read back exactly: a run that goes on from here
 * computes what the first one would have. A text that is not as we write it is not used at all.
 */
#include "probe/sla/run_internal.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#define CHECKPOINT_VERSION 1
enum { KEY_MAX = 160, POINT_FIELDS = 7 };

struct known {
        char key[KEY_MAX];
        struct sla_point point;
        const char *failure; /* NULL: POINT counts */
};

struct known_kv {
        char label[SLA_LABEL_MAX];
        uint64_t tokens;
};

struct checkpoint {
        char *path, *of;
        struct arena arena; /* of reasons */
        VEC(struct known) known;
        VEC(struct known_kv) kv;
        char prefill[SLA_LABEL_MAX], decode[SLA_LABEL_MAX];
};

static void key_text(const struct checkpoint_key *key, char out[KEY_MAX])
{
        if (key->isl || key->concurrency)
                snprintf(out, KEY_MAX, "%s/%s/%llu/%llu", key->phase, key->label,
                         (unsigned long long)key->isl, (unsigned long long)key->concurrency);
        else
                snprintf(out, KEY_MAX, "%s/%s", key->phase, key->label);
}

static struct known *find(const struct checkpoint *c, const struct checkpoint_key *key)
{
        char text[KEY_MAX];

        key_text(key, text);
        vec_foreach (k, &c->known)
                if (streq(k->key, text))
                        return k;
        return NULL;
}

/* ---- writing */

static struct json *point_json(struct arena *a, const struct sla_point *p)
{
        const double numbers[] = {p->ttft_avg, p->ttft_max, p->itl_avg, p->output_throughput, p->seconds};
        struct json *array = json_array(a);

        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                json_append(array, json_double(a, numbers[i]));
        json_append(array, json_u64(a, p->requests));
        json_append(array, json_u64(a, p->errors));
        return array;
}

static struct json *checkpoint_json(struct arena *a, const struct checkpoint *c)
{
        struct json *root = json_build(a, "{'version': %d, 'of': %s, 'chosen': {}, 'kvTokens': {}}",
                                       CHECKPOINT_VERSION, c->of);
        struct json *chosen = json_at(root, "chosen"), *kv = json_at(root, "kvTokens");
        struct json *failed = json_set(a, root, "failed", json_object(a));
        struct json *points = json_set(a, root, "points", json_object(a));

        if (c->prefill[0])
                json_set(a, chosen, "prefill", json_string(a, c->prefill));
        if (c->decode[0])
                json_set(a, chosen, "decode", json_string(a, c->decode));
        vec_foreach (k, &c->kv)
                json_set(a, kv, k->label, json_u64(a, k->tokens));
        vec_foreach (k, &c->known) {
                if (k->failure)
                        json_set(a, failed, k->key, json_string(a, k->failure));
                else
                        json_set(a, points, k->key, point_json(a, &k->point));
        }
        return root;
}

void checkpoint_write(const struct checkpoint *c, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        json_write(checkpoint_json(&a, c), JSON_COMPACT, out);
        buf_addc(out, '\n');
}

static int save(const struct checkpoint *c, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SLA_CHECKPOINT_MAX);

        if (!c->path)
                return 0;
        checkpoint_write(c, &text);
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "the checkpoint is larger than %d bytes",
                               SLA_CHECKPOINT_MAX);
        return file_replace(c->path, buf_str(&text), 0644, err);
}

static struct known *add(struct checkpoint *c, const struct checkpoint_key *key)
{
        struct known *k = find(c, key);

        if (!k) {
                k = vec_push(&c->known);
                key_text(key, k->key);
        }
        return k;
}

int checkpoint_add_point(struct checkpoint *c, const struct checkpoint_key *key, const struct sla_point *p,
                         struct err *err)
{
        struct known *k = add(c, key);

        k->point = *p;
        k->point.invalid = NULL;
        k->failure = NULL;
        return save(c, err);
}

int checkpoint_add_failure(struct checkpoint *c, const struct checkpoint_key *key, const char *reason,
                           struct err *err)
{
        add(c, key)->failure = arena_strndup(&c->arena, reason,
                                             utf8_cut(reason, strlen(reason), SLA_REASON_MAX));
        return save(c, err);
}

int checkpoint_add_kv(struct checkpoint *c, const char *label, uint64_t tokens, struct err *err)
{
        struct known_kv *k;

        if (checkpoint_kv(c, label))
                return 0;
        k = vec_push(&c->kv);
        snprintf(k->label, sizeof(k->label), "%s", label);
        k->tokens = tokens;
        return save(c, err);
}

int checkpoint_choose(struct checkpoint *c, const char *prefill, const char *decode, struct err *err)
{
        if (streq(c->prefill, prefill) && streq(c->decode, decode))
                return 0;
        snprintf(c->prefill, sizeof(c->prefill), "%s", prefill);
        snprintf(c->decode, sizeof(c->decode), "%s", decode);
        return save(c, err);
}

/* ---- reading */

const struct sla_point *checkpoint_point(const struct checkpoint *c, const struct checkpoint_key *key)
{
        const struct known *k = find(c, key);

        return k && !k->failure ? &k->point : NULL;
}

const char *checkpoint_failure(const struct checkpoint *c, const struct checkpoint_key *key)
{
        const struct known *k = find(c, key);

        return k ? k->failure : NULL;
}

uint64_t checkpoint_kv(const struct checkpoint *c, const char *label)
{
        vec_foreach (k, &c->kv)
                if (streq(k->label, label))
                        return k->tokens;
        return 0;
}

bool checkpoint_tried(const struct checkpoint *c, const char *phase, const char *label)
{
        char prefix[KEY_MAX];
        int n = snprintf(prefix, sizeof(prefix), "%s/%s", phase, label);

        vec_foreach (k, &c->known)
                if (strncmp(k->key, prefix, (size_t)n) == 0 && (!k->key[n] || k->key[n] == '/'))
                        return true;
        return false;
}

size_t checkpoint_points(const struct checkpoint *c)
{
        size_t n = 0;

        vec_foreach (k, &c->known)
                n += !k->failure;
        return n;
}

static int malformed(struct err *err, const char *what)
{
        return err_set(err, E_INVALID, "its %s are not as they are written", what);
}

static int read_point(const struct json *value, struct sla_point *ret)
{
        double numbers[POINT_FIELDS];
        size_t n = 0;

        if (!json_is(value, JSON_ARRAY) || json_len(value) != POINT_FIELDS)
                return -1;
        json_foreach (number, value)
                if (!json_is(number, JSON_NUMBER) || !json_to_double(number, &numbers[n++]))
                        return -1;
        *ret = (struct sla_point){
                .ttft_avg = numbers[0],
                .ttft_max = numbers[1],
                .itl_avg = numbers[2],
                .output_throughput = numbers[3],
                .seconds = numbers[4],
        };
        return json_to_u64(json_index(value, 5), &ret->requests) &&
                               json_to_u64(json_index(value, 6), &ret->errors)
                       ? 0
                       : -1;
}

static int read_known(struct checkpoint *c, const struct json *from, bool failed, struct err *err)
{
        const char *what = failed ? "failures" : "points";

        if (!json_is(from, JSON_OBJECT) || json_len(from) + c->known.n > 2 * SLA_POINTS_MAX)
                return malformed(err, what);
        json_foreach (entry, from) {
                struct known *k;

                if (entry->key_len >= KEY_MAX)
                        return malformed(err, what);
                k = vec_push(&c->known);
                memcpy(k->key, entry->key, entry->key_len);
                if (failed && json_cstr(entry))
                        k->failure = arena_strdup(&c->arena, json_cstr(entry));
                else if (failed || read_point(entry, &k->point) < 0)
                        return malformed(err, what);
        }
        return 0;
}

static int read_kv(struct checkpoint *c, const struct json *from, struct err *err)
{
        if (!json_is(from, JSON_OBJECT) || json_len(from) > SLA_CANDIDATES_MAX)
                return malformed(err, "KV sizes");
        json_foreach (entry, from) {
                struct known_kv *k = vec_push(&c->kv);

                if (entry->key_len >= SLA_LABEL_MAX || !json_to_u64(entry, &k->tokens))
                        return malformed(err, "KV sizes");
                memcpy(k->label, entry->key, entry->key_len);
        }
        return 0;
}

static int load(struct checkpoint *c, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SLA_CHECKPOINT_MAX);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;

        if (file_read(c->path, &text, err) < 0 || doc_parse(&doc, buf_str(&text), NULL, err) < 0)
                return -1;
        if (json_int(doc.root, "version", 0) != CHECKPOINT_VERSION)
                return err_set(err, E_INVALID, "it is of another version");
        if (!streq(json_str(doc.root, "of"), c->of))
                return err_set(err, E_INVALID, "it is of another configuration or server");
        return read_kv(c, json_at(doc.root, "kvTokens"), err) < 0 ||
                               read_known(c, json_at(doc.root, "failed"), true, err) < 0 ||
                               read_known(c, json_at(doc.root, "points"), false, err) < 0
                       ? -1
                       : 0;
}

/* "checkpoint.json.1234.tmp", as file_replace() names what it is about to rename. */
static bool is_leftover(const char *name)
{
        struct str s = str_of(name);
        uint64_t pid;

        if (!str_has_suffix(s, STR(".tmp")))
                return false;
        s.n -= strlen(".tmp");
        for (size_t i = s.n; i > 0; i--)
                if (s.p[i - 1] == '.')
                        return str_to_u64(str_n(s.p + i, s.n - i), &pid);
        return false;
}

void checkpoint_tidy(const char *dir, unsigned depth)
{
        DIR *d = opendir(dir);
        const struct dirent *e;

        while (d && (e = readdir(d))) {
                _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, e->d_name);

                if (e->d_name[0] == '.')
                        continue;
                if (e->d_type == DT_DIR && depth > 0)
                        checkpoint_tidy(path, depth - 1);
                else if (e->d_type == DT_REG && is_leftover(e->d_name))
                        (void)unlink(path);
        }
        if (d)
                closedir(d);
}

struct checkpoint *checkpoint_open(const char *dir, const char *what, const struct log *log)
{
        struct checkpoint *c = xcalloc(1, sizeof(*c));
        char of[SHA256_HEX_MAX];
        struct err err = ERR_INIT;

        sha256_hex(str_of(what), of);
        c->of = xstrdup(of);
        if (!dir)
                return c;
        c->path = xasprintf("%s/%s", dir, RUN_CHECKPOINT_FILE);
        if (access(c->path, F_OK) < 0 && errno == ENOENT)
                return c;
        if (load(c, &err) < 0) {
                LOG_WARN(log, "The checkpoint is not used, the run begins anew", F_STR("file", c->path),
                         F_ERR(&err));
                c->known.n = c->kv.n = 0;
        } else
                LOG_INFO(log, "Going on from the checkpoint", F_UINT("points", checkpoint_points(c)),
                         F_UINT("failures", c->known.n - checkpoint_points(c)));
        return c;
}

void checkpoint_free(struct checkpoint *c)
{
        if (!c)
                return;
        vec_done(&c->known);
        vec_done(&c->kv);
        arena_done(&c->arena);
        free(c->path);
        free(c->of);
        free(c);
}
