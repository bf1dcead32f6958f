#include "fault.h"

#include "json/json.h"

/* ---- the table */

enum args {
        ARG_MS = 1,
        ARG_BYTES = 2,
        ARG_LINES = 4,
        ARG_ANSWER = 8, /* CODE, retry-after, reason, body */
        ARG_SEED = 16,
        ARG_LIFE = 32, /* ms */
};

static const struct kind {
        const char *name;
        unsigned args;
        unsigned ms, lines;       /* defaults */
        unsigned ms_min, ms_max;  /* drawn by a seed */
        uint8_t weight[CLASSES_]; /* watch, list, get, write, other */
} kinds[FAULT_KINDS_] = {
        [FAULT_NONE] = {"none", 0, 0, 0, 0, 0, {0}},
        [FAULT_DELAY] = {"delay", ARG_MS, 100, 0, 1, 300, {5, 10, 10, 15, 10}},
        [FAULT_DELAY_ANSWER] = {"delay-answer", ARG_MS, 100, 0, 1, 300, {5, 10, 10, 15, 10}},
        [FAULT_DROP] = {"drop", 0, 0, 0, 0, 0, {10, 10, 10, 10, 10}},
        [FAULT_LOSE] = {"lose", 0, 0, 0, 0, 0, {5, 5, 5, 20, 5}},
        [FAULT_CUT] = {"cut", ARG_BYTES | ARG_LINES | ARG_LIFE, 0, 0, 0, 0, {30, 15, 10, 10, 5}},
        [FAULT_ANSWER] = {"answer", ARG_ANSWER, 0, 0, 0, 0, {15, 15, 20, 25, 10}},
        [FAULT_EXPIRED] = {"expired", ARG_LINES, 0, 0, 0, 0, {15, 0, 0, 0, 0}},
        [FAULT_STALL] = {"stall", ARG_MS | ARG_LINES, 1000, 0, 100, 1500, {10, 0, 0, 0, 0}},
        [FAULT_SILENT] = {"silent", ARG_MS | ARG_LINES, 0, 0, 500, 2000, {3, 2, 2, 2, 2}},
        [FAULT_DUPLICATE] = {"duplicate", ARG_LINES, 0, 1, 0, 0, {15, 0, 0, 0, 0}},
        [FAULT_REPLAY] = {"replay", ARG_LINES, 0, 2, 0, 0, {15, 0, 0, 0, 0}},
        [FAULT_STALE] = {"stale", 0, 0, 0, 0, 0, {0, 15, 5, 0, 0}},
        [FAULT_BYTES] = {"bytes", 0, 0, 0, 0, 0, {10, 5, 5, 5, 5}},
        [FAULT_MERGE] = {"merge", 0, 0, 0, 0, 0, {10, 0, 0, 0, 0}},
        [FAULT_CRLF] = {"crlf", 0, 0, 0, 0, 0, {10, 0, 0, 0, 0}},
        [FAULT_VARY] = {"vary", ARG_SEED, 0, 0, 0, 0, {5, 5, 5, 5, 5}},
};

/* Codes a seed draws from; a 409 answers a write only, a 410 a read only. */
static const struct code {
        const char *reason;
        int code;
        bool read, write;
} codes[] = {
        {"Unauthorized", 401, true, true},       {"Conflict", 409, false, true},
        {"Expired", 410, true, false},           {"TooManyRequests", 429, true, true},
        {"InternalError", 500, true, true},      {"", 502, true, true},
        {"ServiceUnavailable", 503, true, true}, {"Timeout", 504, true, true},
};

const char *fault_name(enum fault_kind kind)
{
        return kinds[kind].name;
}

static struct fault fault_default(enum fault_kind kind)
{
        return (struct fault){
                .kind = kind,
                .retry_after = -1,
                .wait = kinds[kind].ms * USEC_PER_MS,
                .lines = kinds[kind].lines,
        };
}

void fault_status_body(const struct fault *f, struct buf *out)
{
        const char *reason = f->reason;

        for (size_t i = 0; i < ARRAY_LEN(codes) && !*reason; i++)
                if (codes[i].code == f->code)
                        reason = codes[i].reason;
        switch (f->body) {
        case BODY_HTML:
                buf_printf(out,
                           "<html>\r\n<head><title>%d</title></head>\r\n<body>{not "
                           "json</body>\r\n</html>\r\n",
                           f->code);
                break;
        case BODY_TOO_LARGE: /* as etcd's refusal comes, with a 500 */
                buf_printf(
                        out,
                        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                        "\"message\":\"etcdserver: request is too large\",\"code\":%d}\n",
                        f->code);
                break;
        case BODY_STATUS:
                buf_adds(out,
                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                         "\"message\":\"answered by the fault proxy\",\"reason\":");
                json_write_string(str_of(reason), out);
                if (f->retry_after >= 0)
                        buf_printf(out, ",\"details\":{\"retryAfterSeconds\":%d}", f->retry_after);
                buf_printf(out, ",\"code\":%d}\n", f->code);
                break;
        default:
                break;
        }
}

/* ---- what a request is */

static const char *const class_names[CLASSES_] = {"watch", "list", "get", "write", "other"};

const char *class_name(enum request_class class)
{
        return class_names[class];
}

struct str query_value(struct str query, const char *name)
{
        while (query.p) {
                struct str pair = str_split(&query, '&');
                struct str key = str_split(&pair, '=');

                if (str_eq(key, str_of(name)))
                        return pair.p ? pair : STR("");
        }
        return STR_NULL;
}

/* Segments after /api/VERSION or /apis/GROUP/VERSION, without a namespaces/NS in front: resource, name, ... */
static size_t resource_depth(struct str path)
{
        struct str segments[8];
        size_t n = 0, skip;

        if (path.n && path.p[0] == '/')
                path = str_n(path.p + 1, path.n - 1);
        while (path.p && n < ARRAY_LEN(segments))
                segments[n++] = str_split(&path, '/');
        while (n && segments[n - 1].n == 0)
                n--;
        if (n && str_eq(segments[0], STR("api")))
                skip = 2;
        else if (n && str_eq(segments[0], STR("apis")))
                skip = 3;
        else
                return 0;
        if (n > skip + 2 && str_eq(segments[skip], STR("namespaces")))
                skip += 2;
        return n > skip ? n - skip : 0;
}

enum request_class classify(struct str method, struct str path, struct str query)
{
        struct str watch = query_value(query, "watch");
        size_t depth = resource_depth(path);

        if (!str_eq(method, STR("GET")))
                return CLASS_WRITE;
        if (depth == 0)
                return CLASS_OTHER;
        if (watch.p && !str_eq(watch, STR("0")) && !str_eq(watch, STR("false")))
                return CLASS_WATCH;
        return depth == 1 ? CLASS_LIST : CLASS_GET;
}

/* ---- by script */

enum when { WHEN_ALWAYS, WHEN_NTH, WHEN_EVERY };

struct rule {
        char *method, *glob;
        enum when when;
        uint64_t n, count;
        struct fault fault;
};

struct script {
        VEC(struct rule) rules;
};

static bool glob_match(const char *glob, struct str s)
{
        const char *star = NULL;
        size_t i = 0, resume = 0;

        while (i < s.n) {
                if (*glob == '*') {
                        star = ++glob;
                        resume = i;
                } else if (*glob == s.p[i]) {
                        glob++;
                        i++;
                } else if (star) {
                        glob = star;
                        i = ++resume;
                } else {
                        return false;
                }
        }
        while (*glob == '*')
                glob++;
        return *glob == 0;
}

static bool method_match(const char *wanted, const struct request *r)
{
        if (streq(wanted, "*") || str_eq(str_of(wanted), r->method))
                return true;
        if (streq(wanted, "WATCH"))
                return r->class == CLASS_WATCH;
        if (streq(wanted, "LIST"))
                return r->class == CLASS_LIST;
        return streq(wanted, "WRITE") && r->class == CLASS_WRITE;
}

struct fault script_decide(struct script *s, const struct request *r)
{
        _cleanup_(buf_done) struct buf target = BUF_INIT(128 * 1024);
        struct fault found = {.kind = FAULT_NONE};

        buf_addstr(&target, r->path);
        if (r->query.n) {
                buf_addc(&target, '?');
                buf_addstr(&target, r->query);
        }
        vec_foreach (rule, &s->rules) {
                bool fires;

                if (!method_match(rule->method, r) || !glob_match(rule->glob, buf_str(&target)))
                        continue;
                rule->count++;
                fires = rule->when == WHEN_ALWAYS || (rule->when == WHEN_NTH && rule->count == rule->n) ||
                        (rule->when == WHEN_EVERY && rule->count % rule->n == 0);
                if (fires && found.kind == FAULT_NONE)
                        found = rule->fault;
        }
        return found;
}

/* The next word of LINE; empty at the end. */
static struct str next_word(struct str *line)
{
        struct str word = STR("");

        while (line->p && word.n == 0)
                word = str_split(line, ' ');
        return word;
}

static bool parse_when(struct str word, struct rule *rule)
{
        struct str value = word;
        struct str name = str_split(&value, '=');

        if (str_eq(word, STR("always"))) {
                rule->when = WHEN_ALWAYS;
                return true;
        }
        rule->when = str_eq(name, STR("nth")) ? WHEN_NTH : WHEN_EVERY;
        return (str_eq(name, STR("nth")) || str_eq(name, STR("every"))) && str_to_u64(value, &rule->n) &&
               rule->n;
}

static bool parse_answer_arg(struct str name, struct str value, struct fault *f)
{
        static const char *const bodies[BODY_KINDS_] = {"status", "html", "empty", "too-large"};
        int64_t number;

        if (str_eq(name, STR("retry-after")) && str_to_i64(value, &number) && number >= 0 &&
            number < 100000) {
                f->retry_after = (int)number;
                return true;
        }
        if (str_eq(name, STR("reason")) && value.n && value.n < REASON_MAX) {
                memcpy(f->reason, value.p, value.n);
                f->reason[value.n] = 0;
                return true;
        }
        for (int i = 0; i < BODY_KINDS_; i++)
                if (str_eq(name, STR("body")) && str_eq(value, str_of(bodies[i]))) {
                        f->body = (enum fault_body)i;
                        return true;
                }
        if (!value.p && str_to_i64(name, &number) && number >= 200 && number <= 599) {
                f->code = (int)number;
                return true;
        }
        return false;
}

static bool parse_arg(struct str word, struct fault *f)
{
        struct str value = word;
        struct str name = str_split(&value, '=');
        unsigned args = kinds[f->kind].args;
        uint64_t number = 0;
        bool has_number = value.p && str_to_u64(value, &number);

        if ((args & ARG_MS) && has_number && str_eq(name, STR("ms")) && number < 86400000) {
                f->wait = number * USEC_PER_MS;
                return true;
        }
        if ((args & ARG_LIFE) && has_number && str_eq(name, STR("ms")) && number && number < 86400000) {
                f->life = number * USEC_PER_MS;
                return true;
        }
        if ((args & ARG_BYTES) && has_number && str_eq(name, STR("bytes"))) {
                f->bytes = number;
                return true;
        }
        if ((args & ARG_LINES) && has_number && str_eq(name, STR("lines"))) {
                f->lines = number;
                return true;
        }
        if ((args & ARG_SEED) && has_number && str_eq(name, STR("seed"))) {
                f->seed = number;
                return true;
        }
        return (args & ARG_ANSWER) && parse_answer_arg(name, value, f);
}

static int parse_fault(struct str line, struct fault *ret, struct err *err)
{
        struct str word = next_word(&line);
        enum fault_kind kind = FAULT_NONE;

        for (int i = 0; i < FAULT_KINDS_; i++)
                if (str_eq(word, str_of(kinds[i].name)))
                        kind = (enum fault_kind)i;
        if (kind == FAULT_NONE && !str_eq(word, STR("none")))
                return err_set(err, E_INVALID, "there is no fault '%.*s'", STR_ARG(word));
        *ret = fault_default(kind);
        while ((word = next_word(&line)).n)
                if (!parse_arg(word, ret))
                        return err_set(err, E_INVALID, "fault %s cannot have '%.*s'", kinds[kind].name,
                                       STR_ARG(word));
        if (kind == FAULT_ANSWER && !ret->code)
                return err_set(err, E_INVALID, "fault answer needs a code");
        if (ret->life && !ret->bytes && !ret->lines)
                ret->lines = UINT64_MAX; /* by time alone */
        return 0;
}

static int parse_rule(struct script *s, struct str line, struct err *err)
{
        struct rule rule = {.when = WHEN_ALWAYS};
        struct str word = next_word(&line), method = next_word(&line), glob = next_word(&line);

        if (!str_eq(word, STR("match")) || !glob.n)
                return err_set(err, E_INVALID, "expected: match METHOD GLOB [nth=N|every=N|always] -> FAULT");
        word = next_word(&line);
        if (!str_eq(word, STR("->"))) {
                if (!parse_when(word, &rule))
                        return err_set(err, E_INVALID, "expected nth=N, every=N, always or ->, not '%.*s'",
                                       STR_ARG(word));
                word = next_word(&line);
        }
        if (!str_eq(word, STR("->")))
                return err_set(err, E_INVALID, "expected -> before the fault");
        if (parse_fault(line, &rule.fault, err) < 0)
                return -1;
        rule.method = xstrndup(method.p, method.n);
        rule.glob = xstrndup(glob.p, glob.n);
        *vec_push(&s->rules) = rule;
        return 0;
}

struct script *script_parse(struct str text, struct err *err)
{
        _cleanup_(script_free) struct script *s = xcalloc(1, sizeof(*s));

        for (unsigned number = 1; text.p; number++) {
                struct str rest = str_split(&text, '\n');
                struct str line = str_trim(str_split(&rest, '#'));

                if (line.n && parse_rule(s, line, err) < 0) {
                        err_wrap(err, "line %u", number);
                        return NULL;
                }
        }
        return TAKE_PTR(s);
}

void script_free(struct script *s)
{
        if (!s)
                return;
        vec_foreach (rule, &s->rules) {
                free(rule->method);
                free(rule->glob);
        }
        vec_done(&s->rules);
        free(s);
}

/* ---- by seed */

static void draw_answer(struct rng *rng, const struct request *r, struct fault *f)
{
        bool write = r->class == CLASS_WRITE;
        const struct code *c;

        do
                c = &codes[rng_below(rng, ARRAY_LEN(codes))];
        while (!(write ? c->write : c->read));
        f->code = c->code;
        f->body = (enum fault_body)rng_below(rng, BODY_TOO_LARGE);
        if (f->code == 409 || f->code == 410 || f->code == 401)
                f->body = BODY_STATUS; /* only the API server itself says these */
        if ((f->code == 429 || f->code == 503) && rng_below(rng, 2))
                f->retry_after = 1;
}

static enum fault_kind draw_kind(struct rng *rng, enum request_class class)
{
        uint64_t total = 0, at;

        for (int i = 0; i < FAULT_KINDS_; i++)
                total += kinds[i].weight[class];
        at = rng_below(rng, total);
        for (int i = 0; i < FAULT_KINDS_; i++) {
                if (at < kinds[i].weight[class])
                        return (enum fault_kind)i;
                at -= kinds[i].weight[class];
        }
        return FAULT_NONE;
}

struct fault seed_decide(uint64_t seed, unsigned intensity, const struct request *r)
{
        static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
        struct rng rng;
        struct fault f;
        uint64_t method = 0;

        while (method < ARRAY_LEN(methods) && !str_eq(r->method, str_of(methods[method])))
                method++;
        rng_seed(&rng, seed);
        rng_seed(&rng, rng_next(&rng) ^ (r->number * 64 + method * 8 + (uint64_t)r->class));
        f = fault_default(rng_below(&rng, 100) < intensity ? draw_kind(&rng, r->class) : FAULT_NONE);
        if (r->class == CLASS_WATCH)
                f.life = (200 + rng_below(&rng, 2800)) * USEC_PER_MS;
        f.seed = rng_next(&rng);
        if (kinds[f.kind].ms_max)
                f.wait = (kinds[f.kind].ms_min + rng_below(&rng, kinds[f.kind].ms_max)) * USEC_PER_MS;
        if (kinds[f.kind].args & ARG_LINES)
                f.lines = r->class == CLASS_WATCH ? kinds[f.kind].lines + rng_below(&rng, 8) : 0;
        if (kinds[f.kind].args & ARG_BYTES)
                f.bytes = rng_below(&rng, 2500);
        if (f.kind == FAULT_ANSWER)
                draw_answer(&rng, r, &f);
        return f;
}
