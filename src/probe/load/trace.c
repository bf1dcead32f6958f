#include <math.h>

#include "probe/load/load_private.h"

enum { LINE_MAX_BYTES = 64 * 1024 * 1024, BLOCK_TOKENS = 512 };
#define TRACE_MAX ((size_t)1 << 30)

struct line {
        struct str text; /* p == NULL: none */
        const struct json *messages, *blocks;
        uint32_t isl, osl;
        bool has_isl, timed;
        double at; /* ms */
};

/* The member NAME as a number of tokens; false: it is not there. */
static int read_tokens(const struct json *root, const char *name, uint32_t *ret, bool *ret_there,
                       struct err *err)
{
        const struct json *j = json_at(root, name);
        uint64_t v;

        *ret_there = j && !json_is(j, JSON_NULL);
        if (!*ret_there)
                return 0;
        if (!json_is(j, JSON_NUMBER) || !json_to_u64(j, &v) || v < 1 || v > LOAD_TOKENS_MAX)
                return err_set(err, E_INVALID, "'%s' must be a whole number from 1 to %d", name,
                               LOAD_TOKENS_MAX);
        *ret = (uint32_t)v;
        return 0;
}

static int read_time(const struct json *root, struct line *l, struct err *err)
{
        const struct json *j = json_at(root, "timestamp");

        l->timed = j && !json_is(j, JSON_NULL);
        if (!l->timed)
                return 0;
        if (!json_is(j, JSON_NUMBER) || !json_to_double(j, &l->at) || !isfinite(l->at) || l->at < 0 ||
            l->at > 1e15)
                return err_set(err, E_INVALID, "'timestamp' must be a number of milliseconds from 0 on");
        return 0;
}

/* What a line may say and this replay would pass over without a word. */
static int refuse_sessions(const struct json *root, struct err *err)
{
        static const char *const names[] = {"turns", "delay"};

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (json_at(root, names[i]))
                        return err_set(err, E_INVALID,
                                       "'%s': conversations of several turns are not replayed", names[i]);
        return 0;
}

static int read_line(const struct json *root, enum llm_endpoint endpoint, struct line *l, struct err *err)
{
        static const char *const texts[] = {"text_input", "prompt", "text"};
        bool there;

        *l = (struct line){.text = STR_NULL};
        if (!json_is(root, JSON_OBJECT))
                return err_set(err, E_INVALID, "must be a JSON object");
        if (refuse_sessions(root, err) < 0 || read_time(root, l, err) < 0 ||
            read_tokens(root, "input_length", &l->isl, &l->has_isl, err) < 0 ||
            read_tokens(root, "output_length", &l->osl, &there, err) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_LEN(texts) && !l->text.p; i++)
                l->text = json_text(json_at(root, texts[i]));
        l->messages = json_at(root, "messages");
        l->blocks = json_at(root, "hash_ids");
        if (l->messages && (!json_is(l->messages, JSON_ARRAY) || endpoint != LLM_CHAT))
                return err_set(err, E_INVALID, "'messages' must be an array, and of the chat endpoint");
        if (!l->text.p && !l->messages && !l->has_isl)
                return err_set(err, E_INVALID,
                               "has none of 'input_length', 'text_input', 'prompt' and 'messages'");
        return 0;
}

/*
 * A prompt of the length that the line says. Its blocks of 512 tokens are named by hash_ids: the same name, the same
 * text, so that what two requests have in common at their beginning is in common here, too.
 */
static void make_prompt(const struct load_plan *p, const struct line *l, struct rng *rng, struct buf *out)
{
        uint32_t left = l->isl;

        json_foreach (block, json_is(l->blocks, JSON_ARRAY) ? l->blocks : NULL) {
                uint32_t n = MIN(left, (uint32_t)BLOCK_TOKENS);
                struct rng own;
                int64_t id;

                if (!n || !json_is(block, JSON_NUMBER) || !json_to_i64(block, &id))
                        break;
                rng_seed(&own, p->c->seed * 0x9E3779B97F4A7C15 + (uint64_t)id);
                if (out->n)
                        buf_addc(out, ' ');
                tokens_prompt(p->tokens, &own, n, out);
                left -= n;
        }
        if (left && out->n)
                buf_addc(out, ' ');
        if (left)
                tokens_prompt(p->tokens, rng, left, out);
}

static int add_line(struct load_plan *p, const struct line *l, struct rng *rng, struct err *err)
{
        _cleanup_(buf_done) struct buf prompt = BUF_INIT(LINE_MAX_BYTES);
        uint64_t isl = l->isl;

        if (l->messages) {
                if (llm_messages_text(l->messages, &prompt, err) < 0)
                        return -1;
        } else if (l->text.p) {
                buf_addstr(&prompt, l->text);
        } else {
                make_prompt(p, l, rng, &prompt);
        }
        if (prompt.overflow)
                return err_set(err, E_TOO_LARGE, "a prompt of more than %d MiB", LINE_MAX_BYTES >> 20);
        if (l->messages || l->text.p)
                isl = tokens_count(p->tokens, buf_str(&prompt), NULL);
        return load_plan_add(p, buf_str(&prompt), l->messages, (uint32_t)MIN(isl, (uint64_t)UINT32_MAX),
                             l->osl, err);
}

/* All lines have a time or none has; times do not go back. */
static int set_time(struct load_plan *p, const struct line *l, double *first, double *last, struct err *err)
{
        size_t i = p->n_bodies - 1;

        if (i == 0) {
                *first = *last = l->at;
                if (!l->timed)
                        p->trace_due = NULL;
        }
        if (l->timed != (p->trace_due != NULL))
                return err_set(err, E_INVALID, "either all lines have a 'timestamp' or none has");
        if (!l->timed)
                return 0;
        if (l->at < *last)
                return err_set(err, E_INVALID, "'timestamp' is before that of the line before");
        *last = l->at;
        p->trace_due[i] = (uint64_t)((l->at - *first) * 1e6);
        return 0;
}

static size_t count_lines(struct str text)
{
        size_t n = 1;

        for (size_t i = 0; i < text.n; i++)
                n += text.p[i] == '\n';
        return n;
}

static int read_lines(struct load_plan *p, struct str rest, const char *path, struct err *err)
{
        const struct json_limits limits = {.bytes = LINE_MAX_BYTES};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        double first = 0, last = 0;
        struct rng rng;

        rng_seed(&rng, p->c->seed);
        for (size_t number = 1; rest.n; number++) {
                struct str text = str_trim(str_split(&rest, '\n'));
                const struct json *root;
                struct line l;

                if (!text.n)
                        continue;
                if (p->n_bodies >= LOAD_REQUESTS_MAX)
                        return err_set(err, E_TOO_LARGE, "trace %s has more than %d requests", path,
                                       LOAD_REQUESTS_MAX);
                arena_reset(&a, 1 << 20);
                root = json_parse(&a, text, &limits, err);
                if (!root || read_line(root, p->c->endpoint, &l, err) < 0 || add_line(p, &l, &rng, err) < 0 ||
                    set_time(p, &l, &first, &last, err) < 0)
                        return err_wrap(err, "trace %s, line %zu", path, number);
        }
        return 0;
}

int load_trace_read(struct load_plan *p, const char *path, struct err *err)
{
        _cleanup_(buf_done) struct buf file = BUF_INIT(TRACE_MAX);
        size_t most;

        if (file_read(path, &file, err) < 0)
                return err_wrap(err, "trace");
        most = MIN(count_lines(buf_str(&file)), (size_t)LOAD_REQUESTS_MAX);
        p->bodies = arena_new_array(&p->arena, struct load_body, most);
        p->trace_due = arena_new_array(&p->arena, uint64_t, most);
        if (read_lines(p, buf_str(&file), path, err) < 0)
                return -1;
        if (!p->n_bodies)
                return err_set(err, E_INVALID, "trace %s has no requests", path);
        return 0;
}
