/*
 * What a status says: from JSON and back.
 */
#include "run/status.h"

enum { DEPTH_MAX = 16, OTHERS_MAX = 64 };

static const int64_t number_max = 1000000000;
static const usec_t future_max = 5 * 60 * USEC_PER_SEC;

#define FAILED        "Failed"
#define FAILED_PREFIX "Profiling failed: "

/* Parts of a parse, so that a rule is one small function. */
struct reading {
        struct arena *arena;
        const struct json *root;
        usec_t now;
        struct run_status *s;
        struct err *err;
};

/* NULL also for an explicit null: "not said". */
static const struct json *member(const struct json *object, const char *key)
{
        const struct json *j = json_at(object, key);

        return json_is(j, JSON_NULL) ? NULL : j;
}

/* Characters that move a terminal's cursor or end a text have no place in what people read; lines and tabs may stay. */
static char *clean(struct arena *a, struct str s)
{
        char *out = arena_strndup(a, s.p, s.n);

        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char)out[i];

                if (c == '\n' || c == '\t')
                        continue;
                if (c < 0x20 || c == 0x7F)
                        out[i] = ' ';
                else if (c == 0xC2 && (unsigned char)out[i + 1] < 0xA0)
                        out[i] = out[i + 1] = ' '; /* U+0080 ... U+009F */
        }
        return out;
}

static const char *clean_cut(struct arena *a, struct str s, size_t max)
{
        return clean(a, str_n(s.p, utf8_cut(s.p, s.n, max)));
}

/* A text of at most MAX bytes; OTHERWISE when it is not said. */
static int take_text(const struct reading *r, const struct json *j, const char *where, size_t max,
                     const char *otherwise, const char **ret)
{
        if (j && j->type != JSON_STRING)
                return err_set(r->err, E_INVALID, "%s is not a string but %s", where,
                               json_type_name(j->type));
        *ret = j ? clean_cut(r->arena, json_text(j), max) : otherwise;
        return 0;
}

static int take_number(const struct reading *r, const struct json *j, const char *where, int64_t *ret)
{
        int64_t v;

        if (!j)
                return 0;
        if (!json_to_i64(j, &v) || v < 0 || v > number_max)
                return err_set(r->err, E_INVALID, "%s is not a whole number from 0 to 10^9", where);
        *ret = v;
        return 0;
}

static usec_t take_time(const struct reading *r, const char *key)
{
        struct str text = json_text(json_at(r->root, key));
        usec_t t;

        return text.p && time_parse(text, &t) && t <= usec_add(r->now, future_max) ? t : 0;
}

static int read_phase(const struct reading *r)
{
        const struct json *j = member(r->root, "phase");
        const char *fault;

        if (!j)
                return err_set(r->err, E_INVALID, "there is no phase");
        fault = run_phase_fault(json_text(j));
        if (fault)
                return err_set(r->err, E_INVALID, "phase %s", fault);
        r->s->phase = json_cstr(j);
        return 0;
}

static int read_plan(const struct reading *r)
{
        const struct json *j = member(r->root, "plan");
        struct run_plan *plan;

        if (!j)
                return 0;
        plan = arena_new(r->arena, struct run_plan);
        if (run_plan_parse(j, plan, r->err) < 0)
                return -1;
        r->s->plan = plan->n ? plan : NULL;
        return 0;
}

/* The plan counts; without one what the file says; without that the nine-phase table. */
static int read_place(const struct reading *r)
{
        struct run_status *s = r->s;
        const struct run_plan *plan = s->plan ? s->plan : &RUN_PLAN_DGDR;
        int64_t number = 0, total = 0;
        int known = run_phase_number(plan, s->phase);

        if (take_number(r, member(r->root, "phaseNumber"), "phaseNumber", &number) < 0 ||
            take_number(r, member(r->root, "totalPhases"), "totalPhases", &total) < 0)
                return -1;
        if (!number || (s->plan && known))
                number = known;
        if (s->plan || (!total && known))
                total = plan->n;
        s->phase_number = (int)number;
        s->total_phases = (int)total;
        return 0;
}

/* "1 GPU, TP=1", "4 GPUs", "TP=2": the count is the number in front of the word, the rest is the mapping. */
static int read_gpu_text(const struct reading *r, struct str text, const char *where)
{
        struct str rest = text, first = str_trim(str_split(&rest, ',')), word = first;
        struct str digits = str_split(&word, ' ');
        uint64_t n;

        if (str_to_u64(digits, &n)) {
                word = str_trim(word);
                if (n > (uint64_t)number_max)
                        return err_set(r->err, E_INVALID, "%s has more than 10^9 GPUs", where);
                if (!word.n || str_case_eq(word, STR("GPU")) || str_case_eq(word, STR("GPUs"))) {
                        r->s->current_gpus = (int64_t)n;
                        text = rest.p ? rest : STR("");
                }
        }
        text = str_trim(text);
        r->s->parallel_mapping = clean_cut(r->arena, text, RUN_MAPPING_MAX);
        r->s->has_gpu_config = r->s->current_gpus >= 0 || text.n;
        return 0;
}

/* The full design has an object at the top, the short one a text in `progress`; both are taken in both places. */
static int read_gpus(const struct reading *r, const struct json *j, const char *where)
{
        char gpus[64], mapping[64];

        if (!j)
                return 0;
        if (j->type == JSON_STRING)
                return read_gpu_text(r, json_text(j), where);
        if (j->type != JSON_OBJECT)
                return err_set(r->err, E_INVALID, "%s is not an object but %s", where,
                               json_type_name(j->type));
        snprintf(gpus, sizeof(gpus), "%s.currentGpus", where);
        snprintf(mapping, sizeof(mapping), "%s.parallelMapping", where);
        r->s->has_gpu_config = true;
        if (take_number(r, member(j, "currentGpus"), gpus, &r->s->current_gpus) < 0)
                return -1;
        return take_text(r, member(j, "parallelMapping"), mapping, RUN_MAPPING_MAX, "",
                         &r->s->parallel_mapping);
}

static int read_progress(const struct reading *r)
{
        const struct json *j = member(r->root, "progress"), *gpus = member(r->root, "gpuConfig");
        struct run_status *s = r->s;

        if (j && j->type != JSON_OBJECT)
                return err_set(r->err, E_INVALID, "progress is not an object but %s",
                               json_type_name(j->type));
        if (take_number(r, member(j, "currentStep"), "progress.currentStep", &s->current_step) < 0 ||
            take_number(r, member(j, "totalSteps"), "progress.totalSteps", &s->total_steps) < 0 ||
            take_text(r, member(j, "subPhase"), "progress.subPhase", RUN_SUB_PHASE_MAX, NULL, &s->sub_phase) <
                    0)
                return -1;
        s->has_progress = s->current_step >= 0 || s->total_steps >= 0;
        if (s->has_progress) {
                s->current_step = MAX(s->current_step, (int64_t)0);
                s->total_steps = MAX(s->total_steps, (int64_t)0);
                if (s->total_steps > 0)
                        s->current_step = MIN(s->current_step, s->total_steps);
        }
        if (gpus)
                return read_gpus(r, gpus, "gpuConfig");
        return read_gpus(r, member(j, "gpuConfig"), "progress.gpuConfig");
}

static int read_ours(const struct reading *r)
{
        const struct json *sequence = member(r->root, "sequence"),
                          *overall = member(r->root, "overallPercentage");

        if (sequence && (!json_to_u64(sequence, &r->s->sequence) || r->s->sequence > RUN_SEQUENCE_MAX))
                return err_set(r->err, E_INVALID, "sequence is not a whole number from 0 to 2^53");
        if (overall && (!json_to_double(overall, &r->s->overall) || r->s->overall < 0 || r->s->overall > 100))
                return err_set(r->err, E_INVALID, "overallPercentage is not a number from 0 to 100");
        return take_text(r, member(r->root, "bestSoFar"), "bestSoFar", RUN_BEST_MAX, NULL, &r->s->best);
}

/* A string, or anything else as its text. NULL when it says nothing. */
static const char *error_text(const struct reading *r, const struct json *j)
{
        struct str text = json_text(j);

        if (!j)
                return NULL;
        if (!text.p)
                text = str_of(json_print(r->arena, j));
        return text.n ? clean_cut(r->arena, text, RUN_ERROR_MAX) : NULL;
}

static const char *error_from_message(struct arena *a, const char *message)
{
        struct str text = str_of(message);

        if (str_has_prefix(text, STR(FAILED_PREFIX)))
                text = str_of(message + strlen(FAILED_PREFIX));
        return clean_cut(a, text, RUN_ERROR_MAX);
}

static void read_error(const struct reading *r)
{
        static const char *const names[] = {"error", "message", "reason"};
        const struct json *details = member(r->root, "details");
        const char *error = error_text(r, member(r->root, "error"));

        if (!streq(r->s->phase, FAILED))
                return;
        if (!error && details && details->type != JSON_OBJECT)
                error = error_text(r, details);
        for (size_t i = 0; !error && i < ARRAY_LEN(names); i++)
                error = error_text(r, member(details, names[i]));
        r->s->error = error ? error : error_from_message(r->arena, r->s->message);
        if (run_reason_valid(json_text(member(r->root, "reason"))))
                r->s->reason = json_cstr(member(r->root, "reason"));
}

static size_t text_size(const struct json *j)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RUN_STATUS_FILE_MAX * 2);

        json_write(j, JSON_COMPACT, &text);
        return text.overflow ? SIZE_MAX : text.n;
}

static bool is_known(const struct reading *r, const struct json *j)
{
        static const char *const names[] = {
                "phase",     "phaseNumber",       "totalPhases", "message", "timestamp",
                "startedAt", "progress",          "gpuConfig",   "details", "plan",
                "sequence",  "overallPercentage", "bestSoFar",
        };

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (str_eq(str_n(j->key, j->key_len), str_of(names[i])))
                        return true;
        return (r->s->error && str_eq(str_n(j->key, j->key_len), STR("error"))) ||
               (r->s->reason && str_eq(str_n(j->key, j->key_len), STR("reason")));
}

/* What nobody here knows is passed on while the whole is small enough for the ConfigMap. */
static void read_rest(const struct reading *r)
{
        const struct json *details = json_at(r->root, "details");
        struct json *others = json_object(r->arena);

        if (json_is(details, JSON_OBJECT) && text_size(details) <= RUN_DETAILS_MAX)
                r->s->details = details;
        json_foreach (j, r->root)
                if (!is_known(r, j) && json_len(others) <= OTHERS_MAX)
                        json_setn(r->arena, others, str_n(j->key, j->key_len), json_copy(r->arena, j));
        r->s->others = json_len(others) && json_len(others) <= OTHERS_MAX ? others : NULL;
        if (r->s->others && text_size(run_status_json(r->arena, r->s)) > RUN_STATUS_TEXT_MAX)
                r->s->others = NULL;
        if (r->s->details && text_size(run_status_json(r->arena, r->s)) > RUN_STATUS_TEXT_MAX)
                r->s->details = NULL;
}

int run_status_parse(struct arena *a, struct str text, usec_t now, struct run_status *ret, struct err *err)
{
        const struct json_limits limits = {.bytes = RUN_STATUS_FILE_MAX, .depth = DEPTH_MAX};
        struct reading r = {.arena = a, .now = now, .s = ret, .err = err};

        *ret = (struct run_status){.current_step = -1,
                                   .total_steps = -1,
                                   .current_gpus = -1,
                                   .parallel_mapping = "",
                                   .overall = -1};
        if (!text.n)
                return err_set(err, E_INVALID, "it is empty");
        r.root = json_parse(a, text, &limits, err);
        if (!r.root)
                return -1;
        if (!json_is(r.root, JSON_OBJECT))
                return err_set(err, E_INVALID, "it is not an object but %s", json_type_name(r.root->type));
        if (read_phase(&r) < 0 || read_plan(&r) < 0 || read_place(&r) < 0 ||
            take_text(&r, member(r.root, "message"), "message", RUN_MESSAGE_MAX, "", &ret->message) < 0 ||
            read_progress(&r) < 0 || read_ours(&r) < 0)
                return -1;
        ret->timestamp = take_time(&r, "timestamp");
        ret->started_at = take_time(&r, "startedAt");
        read_error(&r);
        read_rest(&r);
        return 0;
}

static struct json *time_json(struct arena *a, usec_t t)
{
        char text[TIME_TEXT_MAX];

        return t ? json_string(a, time_format_micro(t, text)) : NULL;
}

/* One decimal always, as Python prints a float: 50.0 is not 50. */
static struct json *percentage_json(struct arena *a, double value)
{
        struct json *j = json_double(a, value);
        char text[32];

        snprintf(text, sizeof(text), "%.1f", value);
        j->text = arena_strdup(a, text);
        j->len = (uint32_t)strlen(text);
        return j;
}

static struct json *progress_json(struct arena *a, const struct run_status *s)
{
        struct json *j = json_object(a);

        if (!s->has_progress && !s->sub_phase)
                return NULL;
        if (s->has_progress) {
                json_set(a, j, "currentStep", json_i64(a, s->current_step));
                json_set(a, j, "totalSteps", json_i64(a, s->total_steps));
                json_set(a, j, "percentage",
                         percentage_json(a, run_percentage(s->current_step, s->total_steps)));
        }
        json_set(a, j, "subPhase", json_string(a, s->sub_phase));
        return j;
}

static struct json *gpu_json(struct arena *a, const struct run_status *s)
{
        struct json *j = json_object(a);

        if (!s->has_gpu_config)
                return NULL;
        if (s->current_gpus >= 0)
                json_set(a, j, "currentGpus", json_i64(a, s->current_gpus));
        if (s->parallel_mapping && *s->parallel_mapping)
                json_set(a, j, "parallelMapping", json_string(a, s->parallel_mapping));
        return j;
}

struct json *run_status_json(struct arena *a, const struct run_status *s)
{
        struct json *j = json_object(a);

        json_set(a, j, "phase", json_string(a, s->phase));
        if (s->phase_number > 0)
                json_set(a, j, "phaseNumber", json_i64(a, s->phase_number));
        if (s->total_phases > 0)
                json_set(a, j, "totalPhases", json_i64(a, s->total_phases));
        json_set(a, j, "message", json_string(a, s->message ? s->message : ""));
        json_set(a, j, "timestamp", time_json(a, s->timestamp));
        json_set(a, j, "startedAt", time_json(a, s->started_at));
        json_set(a, j, "progress", progress_json(a, s));
        json_set(a, j, "gpuConfig", gpu_json(a, s));
        json_set(a, j, "bestSoFar", json_string(a, s->best));
        if (s->details)
                json_set(a, j, "details", json_copy(a, s->details));
        if (s->sequence)
                json_set(a, j, "sequence", json_u64(a, s->sequence));
        if (s->plan)
                json_set(a, j, "plan", run_plan_json(a, s->plan));
        if (s->overall >= 0)
                json_set(a, j, "overallPercentage", json_double(a, s->overall));
        json_set(a, j, "error", json_string(a, s->error));
        json_set(a, j, "reason", json_string(a, s->reason));
        json_foreach (other, s->others)
                json_setn(a, j, str_n(other->key, other->key_len), json_copy(a, other));
        return j;
}

const struct run_plan *run_status_plan(struct arena *a, const struct run_status *s)
{
        struct run_plan *alone;

        if (s->plan)
                return s->plan;
        if (run_phase_number(&RUN_PLAN_DGDR, s->phase))
                return &RUN_PLAN_DGDR;
        alone = arena_new(a, struct run_plan);
        alone->n = 1;
        alone->phases[0].weight = 1;
        snprintf(alone->phases[0].name, sizeof(alone->phases[0].name), "%s", s->phase);
        return alone;
}

bool run_reason_valid(struct str text)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        enum { LETTERS = 52, REASON_MAX = 64 };

        if (!text.n || text.n > REASON_MAX || !memchr(letters, text.p[0], LETTERS))
                return false;
        for (size_t i = 1; i < text.n; i++)
                if (!memchr(letters, text.p[i], sizeof(letters) - 1))
                        return false;
        return true;
}

double run_percentage(int64_t current_step, int64_t total_steps)
{
        char text[32];

        if (total_steps <= 0 || current_step <= 0)
                return 0;
        if (current_step >= total_steps)
                return 100;
        /* Python rounds the exact value of the double, half to even, and so does printf(); scaling by ten would not. */
        snprintf(text, sizeof(text), "%.1f", (double)current_step / (double)total_steps * 100);
        return strtod(text, NULL);
}
