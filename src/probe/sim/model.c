#include "probe/sim/sim.h"

#include <math.h>

/*
 * The members of a model file are one table: reading, writing and the complaints about what does not fit go through it.
 * Times have a unit in their names; SCALE makes nanoseconds (or microseconds, of usec_t) of it.
 */

enum member_type {
        M_NUMBER,
        M_COUNT,
        M_COUNT32,
        M_BOOL,
        M_TEXT,
        M_BACKEND,
        M_MAPPING,
        M_STATUS,
        M_USEC,
        M_LABELS
};

enum { GPUS_MAX = 1024, LABELS_MAX = 256 };
#define TIME_MAX  3.6e6 /* in the member's unit: an hour of ms */
#define COUNT_MAX 1e12

struct member {
        const char *path;
        enum member_type type;
        size_t at; /* in struct sim_model */
        double scale, min, max;
};

const char *const sim_mappings[SIM_MAPPINGS_] = {"TP", "TEP", "DEP"};
static const char *const backends[] = {"vllm", "sglang", "trtllm"};

#define AT(field) offsetof(struct sim_model, field)
#define SCALING(name, of, ix)                                                            \
        {                                                                                \
                "scaling." #name "." of, M_NUMBER, AT(scaling[SIM_##name][ix]), 1, -4, 4 \
        }
static const struct member members[] = {
        {"model", M_TEXT, AT(name)},
        {"backend", M_BACKEND, AT(backend)},
        {"gpus", M_COUNT32, AT(gpus), 1, 1, GPUS_MAX},
        {"mapping", M_MAPPING, AT(mapping)},
        {"prefill.baseMs", M_NUMBER, AT(prefill_base), 1e6, 0, TIME_MAX},
        {"prefill.perTokenUs", M_NUMBER, AT(prefill_token), 1e3, 0, TIME_MAX},
        {"prefill.perToken2Ns", M_NUMBER, AT(prefill_token2), 1, 0, TIME_MAX},
        {"decode.baseMs", M_NUMBER, AT(step_base), 1e6, 0, TIME_MAX},
        {"decode.perRequestUs", M_NUMBER, AT(step_request), 1e3, 0, TIME_MAX},
        {"decode.perKvTokenNs", M_NUMBER, AT(step_kv), 1, 0, TIME_MAX},
        SCALING(TP, "prefill", 0),
        SCALING(TP, "decode", 1),
        SCALING(TEP, "prefill", 0),
        SCALING(TEP, "decode", 1),
        SCALING(DEP, "prefill", 0),
        SCALING(DEP, "decode", 1),
        {"kvTokensPerGpu", M_COUNT, AT(kv_per_gpu), 1, 1, COUNT_MAX},
        {"weightsKvTokens", M_COUNT, AT(weights_kv), 1, 0, COUNT_MAX},
        {"maxBatch", M_COUNT32, AT(max_batch), 1, 0, 1e6},
        {"prefixCache", M_BOOL, AT(prefix_cache)},
        {"jitter", M_NUMBER, AT(jitter), 1, 0, 1},
        {"seed", M_COUNT, AT(seed), 1, 0, COUNT_MAX},
        {"faults.startDelayMs", M_USEC, AT(faults.start_delay), 1e3, 0, TIME_MAX},
        {"faults.failStart", M_TEXT, AT(faults.fail_start)},
        {"faults.crashAfterRequests", M_COUNT, AT(faults.crash_after), 1, 0, COUNT_MAX},
        {"faults.hangAfterRequests", M_COUNT, AT(faults.hang_after), 1, 0, COUNT_MAX},
        {"faults.errorRate", M_NUMBER, AT(faults.error_rate), 1, 0, 1},
        {"faults.errorStatus", M_STATUS, AT(faults.error_status), 1, 400, 599},
        {"faults.cutRate", M_NUMBER, AT(faults.cut_rate), 1, 0, 1},
        {"faults.failLabels", M_LABELS, AT(faults.fail_labels)},
};

static const struct sim_model defaults = {
        .name = "sim/llama",
        .backend = "vllm",
        .gpus = 1,
        .mapping = SIM_TP,
        .prefill_base = 2e6,
        .prefill_token = 20e3,
        .step_base = 4e6,
        .step_request = 50e3,
        .step_kv = 10,
        .scaling = {[SIM_TP] = {0.9, 0.8}, [SIM_TEP] = {0.85, 0.75}, [SIM_DEP] = {0, 0}},
        .kv_per_gpu = 100000,
        .prefix_cache = true,
        .seed = 1,
        .faults.error_status = 500,
};

/* ---- reading */

struct reader {
        struct arena *arena;
        const char *source;
        struct sim_model *model;
};

/* "sim.yaml:3:12" */
static const char *place_of(const struct reader *r, const struct json *at)
{
        return at->line ? arena_printf(r->arena, "%s:%u:%u", r->source, at->line, at->column) : r->source;
}

/* "sim.yaml:3:12: prefill.baseMs must be WHAT", and what it is instead. */
static int complain(const struct reader *r, const struct json *at, const char *path, const char *what,
                    struct err *err)
{
        const char *text = at->type == JSON_ARRAY    ? "a list"
                           : at->type == JSON_OBJECT ? "a mapping"
                                                     : json_print(r->arena, at);

        return err_set(err, E_CONFIG, "%s: %s must be %s, not %.*s", place_of(r, at), path, what,
                       (int)utf8_cut(text, strlen(text), 60), text);
}

static int read_number(const struct reader *r, const struct member *m, const struct json *j, double *ret,
                       struct err *err)
{
        const char *kind = m->type == M_NUMBER || m->type == M_USEC ? "a number" : "a whole number";
        int64_t whole;

        if (json_is(j, JSON_NUMBER) && json_to_double(j, ret) && *ret >= m->min && *ret <= m->max &&
            (kind[2] == 'n' || json_to_i64(j, &whole)))
                return 0;
        return complain(r, j, m->path, arena_printf(r->arena, "%s from %.15g to %.15g", kind, m->min, m->max),
                        err);
}

/* One of NAMES, as its index. */
static int read_choice(const struct reader *r, const struct member *m, const struct json *j,
                       const char *const *names, size_t n, size_t *ret, struct err *err)
{
        _cleanup_(buf_done) struct buf list = BUF_INIT(256);

        for (size_t i = 0; i < n; i++) {
                if (streq(json_cstr(j), names[i])) {
                        *ret = i;
                        return 0;
                }
                buf_printf(&list, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
        }
        return complain(r, j, m->path, buf_cstr(&list), err);
}

/* "TP=4" */
static bool is_label(struct str s)
{
        struct str mapping = str_split(&s, '=');
        uint64_t gpus;

        if (!str_to_u64(s, &gpus) || gpus == 0 || gpus > GPUS_MAX)
                return false;
        for (size_t i = 0; i < SIM_MAPPINGS_; i++)
                if (str_eq(mapping, str_of(sim_mappings[i])))
                        return true;
        return false;
}

static int read_labels(const struct reader *r, const struct member *m, const struct json *j, struct err *err)
{
        struct sim_faults *f = &r->model->faults;
        const char **labels;

        if (!json_is(j, JSON_ARRAY) || json_len(j) > LABELS_MAX)
                return complain(r, j, m->path, "a list such as [TP=4, DEP=8]", err);
        labels = arena_new_array(r->arena, const char *, json_len(j) + 1);
        f->n_fail_labels = 0;
        json_foreach (item, j) {
                if (!json_cstr(item) || !is_label(json_text(item)))
                        return complain(r, item, m->path, "labels of a mapping and its GPUs such as TP=4",
                                        err);
                labels[f->n_fail_labels++] = arena_strdup(r->arena, json_cstr(item));
        }
        f->fail_labels = labels;
        return 0;
}

static int read_text(const struct reader *r, const struct member *m, const struct json *j, const char **ret,
                     struct err *err)
{
        bool may_be_empty = ret != &r->model->name;

        if (!json_cstr(j) || (!may_be_empty && !*json_cstr(j)))
                return complain(r, j, m->path, may_be_empty ? "a text" : "a name", err);
        *ret = *json_cstr(j) ? arena_strdup(r->arena, json_cstr(j)) : NULL;
        return 0;
}

static int read_member(const struct reader *r, const struct member *m, const struct json *j, struct err *err)
{
        void *at = (char *)r->model + m->at;
        double number = 0;
        size_t choice = 0;

        switch (m->type) {
        case M_TEXT:
                return read_text(r, m, j, at, err);
        case M_LABELS:
                return read_labels(r, m, j, err);
        case M_BOOL:
                if (!json_is(j, JSON_BOOL))
                        return complain(r, j, m->path, "true or false", err);
                *(bool *)at = j->truth;
                return 0;
        case M_BACKEND:
                if (read_choice(r, m, j, backends, ARRAY_LEN(backends), &choice, err) < 0)
                        return -1;
                *(const char **)at = backends[choice];
                return 0;
        case M_MAPPING:
                if (read_choice(r, m, j, sim_mappings, SIM_MAPPINGS_, &choice, err) < 0)
                        return -1;
                *(enum sim_mapping *)at = (enum sim_mapping)choice;
                return 0;
        default:
                break;
        }
        if (read_number(r, m, j, &number, err) < 0)
                return -1;
        number *= m->scale;
        if (m->type == M_NUMBER)
                *(double *)at = number;
        else if (m->type == M_COUNT32)
                *(uint32_t *)at = (uint32_t)number;
        else if (m->type == M_STATUS)
                *(int *)at = (int)number;
        else
                *(uint64_t *)at = (uint64_t)llround(number);
        return 0;
}

/* What may stand below PREFIX ("scaling."), for a complaint: "TP, TEP, DEP". */
static const char *known_below(const struct reader *r, struct str prefix)
{
        _cleanup_(buf_done) struct buf list = BUF_INIT(1024);
        struct str last = STR_NULL;

        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                struct str rest = str_of(members[i].path), name;

                if (!str_has_prefix(rest, prefix))
                        continue;
                rest = str_n(rest.p + prefix.n, rest.n - prefix.n);
                name = str_split(&rest, '.');
                if (!str_eq(name, last))
                        buf_printf(&list, "%s%.*s", last.p ? ", " : "", STR_ARG(name));
                last = name;
        }
        return arena_strdup(r->arena, buf_cstr(&list));
}

static bool is_group(struct str path)
{
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                if (str_has_prefix(str_of(members[i].path), path) && members[i].path[path.n] == '.')
                        return true;
        return false;
}

static const struct member *find_member(const char *path)
{
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                if (streq(members[i].path, path))
                        return &members[i];
        return NULL;
}

static int unknown_member(const struct reader *r, const struct json *j, const char *prefix, const char *path,
                          struct err *err)
{
        const char *known = known_below(r, str_of(prefix));

        return err_set(err, E_CONFIG, "%s: unknown member %s; known here: %s", place_of(r, j), path, known);
}

/* PREFIX: "" or the names that lead to OBJECT, each with its point. Groups are at most three deep. */
static int read_object(const struct reader *r, const struct json *object, const char *prefix, struct err *err)
{
        json_foreach (j, object) {
                const char *path = arena_printf(r->arena, "%s%.*s", prefix,
                                                (int)utf8_cut(j->key, strlen(j->key), 60), j->key);
                const char *below = arena_join(r->arena, path, ".", "");
                const struct member *m = find_member(path);
                int did;

                if (strchr(j->key, '.') || (!m && !is_group(str_of(path))))
                        did = unknown_member(r, j, prefix, path, err);
                else if (m)
                        did = read_member(r, m, j, err);
                else if (json_is(j, JSON_OBJECT))
                        did = read_object(r, j, below, err);
                else
                        did = complain(
                                r, j, path,
                                arena_join(r->arena, "a mapping of ", known_below(r, str_of(below)), ""),
                                err);
                if (did < 0)
                        return -1;
        }
        return 0;
}

int sim_model_read(struct arena *a, const struct json *doc, const char *source, struct sim_model *ret,
                   struct err *err)
{
        struct reader r = {.arena = a, .source = source, .model = ret};

        *ret = defaults;
        if (!doc || json_is(doc, JSON_NULL))
                return 0;
        if (!json_is(doc, JSON_OBJECT))
                return err_set(err, E_CONFIG, "%s: a model must be a mapping with members such as gpus: 2",
                               source);
        return read_object(&r, doc, "", err);
}

int sim_model_parse(struct arena *a, struct str text, const char *source, struct sim_model *ret,
                    struct err *err)
{
        static const struct json_limits limits = {.bytes = 1 << 20, .depth = 16, .nodes = 10000};
        struct json **docs;
        size_t n;

        if (yaml_parse_all(a, text, &limits, &docs, &n, err) < 0)
                return err_wrap(err, "%s", source);
        if (n > 1)
                return err_set(err, E_CONFIG, "%s: holds %zu documents, a model is one", source, n);
        return sim_model_read(a, n ? docs[0] : NULL, source, ret, err);
}

/* ---- writing */

static struct json *member_json(struct arena *a, const struct sim_model *model, const struct member *m)
{
        const void *at = (const char *)model + m->at;
        const char *text;
        struct json *list;

        switch (m->type) {
        case M_NUMBER:
                return json_double(a, *(const double *)at / m->scale);
        case M_USEC:
                return json_double(a, (double)*(const usec_t *)at / m->scale);
        case M_COUNT:
                return json_u64(a, *(const uint64_t *)at);
        case M_COUNT32:
                return json_u64(a, *(const uint32_t *)at);
        case M_STATUS:
                return json_i64(a, *(const int *)at);
        case M_BOOL:
                return json_truth(a, *(const bool *)at);
        case M_MAPPING:
                return json_string(a, sim_mappings[*(const enum sim_mapping *)at]);
        case M_LABELS:
                list = json_array(a);
                for (size_t i = 0; i < model->faults.n_fail_labels; i++)
                        json_append(list, json_string(a, model->faults.fail_labels[i]));
                return list;
        default:
                text = *(const char *const *)at;
                return json_string(a, text ? text : "");
        }
}

struct json *sim_model_json(struct arena *a, const struct sim_model *m)
{
        struct json *root = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                json_path_set(a, root, members[i].path, member_json(a, m, &members[i]));
        return root;
}

/* ---- what it means */

unsigned sim_ranks(const struct sim_model *m)
{
        return m->mapping == SIM_DEP ? m->gpus : 1;
}

uint64_t sim_rank_kv(const struct sim_model *m)
{
        uint64_t room = m->kv_per_gpu * (m->gpus / sim_ranks(m));

        return room > m->weights_kv ? room - m->weights_kv : 0;
}

const char *sim_fail_words(const struct sim_model *m)
{
        const struct sim_faults *f = &m->faults;
        const char *words = f->fail_start ? f->fail_start : "CUDA out of memory";
        char label[32];

        if (!f->n_fail_labels)
                return f->fail_start;
        snprintf(label, sizeof(label), "%s=%u", sim_mappings[m->mapping], m->gpus);
        for (size_t i = 0; i < f->n_fail_labels; i++)
                if (streq(f->fail_labels[i], label))
                        return words;
        return NULL;
}

/* At most some thirty years, so that sums of times stay times. */
static nsec_t duration(const struct sim_model *m, double base, double work, unsigned role)
{
        return (nsec_t)llround(fmin(base + work / pow(m->gpus, m->scaling[m->mapping][role]), 1e18));
}

nsec_t sim_prefill_time(const struct sim_model *m, uint64_t tokens, bool cached)
{
        double n = cached ? 0 : (double)tokens;

        return duration(m, m->prefill_base, n * m->prefill_token + n * n * m->prefill_token2, 0);
}

nsec_t sim_step_time(const struct sim_model *m, uint64_t requests, uint64_t kv_tokens)
{
        return duration(m, m->step_base, (double)requests * m->step_request + (double)kv_tokens * m->step_kv,
                        1);
}
