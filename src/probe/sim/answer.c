#include "probe/sim/answer.h"

#define WORD      "sim"
#define NO_STAMP  "                   0" /* as wide as the largest time */
#define ID_DIGITS 16

struct shape {
        const char *id, *chunk, *whole;    /* prefix of ids, kinds of objects */
        const char *first, *more;          /* the part of a chunk with the text */
        const char *text_begin, *text_end; /* around the text of a whole answer */
};

static const struct shape shapes[SIM_ENDPOINTS] = {
        [LLM_CHAT] =
                {
                        .id = "chatcmpl-",
                        .chunk = "chat.completion.chunk",
                        .whole = "chat.completion",
                        .first = "\"delta\":{\"role\":\"assistant\",\"content\":\"" WORD "\"}",
                        .more = "\"delta\":{\"content\":\" " WORD "\"}",
                        .text_begin = "\"message\":{\"role\":\"assistant\",\"content\":\"",
                        .text_end = "\"}",
                },
        [LLM_COMPLETIONS] =
                {
                        .id = "cmpl-",
                        .chunk = "text_completion",
                        .whole = "text_completion",
                        .first = "\"text\":\"" WORD "\"",
                        .more = "\"text\":\" " WORD "\"",
                        .text_begin = "\"text\":\"",
                        .text_end = "\"",
                },
};

static void put_id(char *at, uint64_t id)
{
        static const char digits[] = "0123456789abcdef";

        for (int i = ID_DIGITS - 1; i >= 0; i--, id >>= 4)
                at[i] = digits[id & 15];
}

/* Right-aligned: blanks before a number are JSON, zeros are not. */
static void put_stamp(char *at, uint64_t value)
{
        size_t i = sizeof(NO_STAMP) - 1;

        do
                at[--i] = (char)('0' + value % 10);
        while ((value /= 10) && i);
        memset(at, ' ', i);
}

/* Begins an object up to its choices; returns where its id is. */
static size_t begin_object(const struct sim_answers *a, struct buf *out, const char *prefix,
                           const char *object)
{
        size_t id_at;

        buf_printf(out, "{\"id\":\"%s", prefix);
        id_at = out->n;
        buf_printf(out, "%016x\",\"object\":\"%s\",\"created\":%llu,\"model\":", 0, object,
                   (unsigned long long)a->created);
        buf_adds(out, a->model);
        return id_at;
}

static void make_chunk(const struct sim_answers *a, const struct shape *s, enum sim_chunk_kind kind,
                       bool stamp, struct sim_chunk *c)
{
        bool first = kind == SIM_CHUNK_FIRST || kind == SIM_CHUNK_ONLY;
        bool last = kind == SIM_CHUNK_LAST || kind == SIM_CHUNK_ONLY;
        struct buf *out = &c->text;

        *out = (struct buf)BUF_INIT(SIZE_MAX);
        buf_adds(out, "data: ");
        c->id_at = begin_object(a, out, s->id, s->chunk);
        buf_printf(out, ",\"choices\":[{\"index\":0,%s,\"finish_reason\":%s}]", first ? s->first : s->more,
                   last ? "\"length\"" : "null");
        if (stamp) {
                buf_adds(out, ",\"sonde_ns\":");
                c->stamp_at = out->n;
                buf_adds(out, NO_STAMP);
        }
        buf_adds(out, "}\n\n");
}

void sim_answers_init(struct sim_answers *a, const char *model, usec_t wall, bool stamp)
{
        *a = (struct sim_answers){.created = wall / USEC_PER_SEC, .scratch = BUF_INIT(SIZE_MAX)};
        a->model = json_print(&a->arena, json_string(&a->arena, model));
        for (int e = 0; e < SIM_ENDPOINTS; e++)
                for (int k = 0; k < SIM_CHUNK_KINDS_; k++)
                        make_chunk(a, &shapes[e], (enum sim_chunk_kind)k, stamp, &a->chunks[e][k]);
}

void sim_answers_done(struct sim_answers *a)
{
        for (int e = 0; e < SIM_ENDPOINTS; e++)
                for (int k = 0; k < SIM_CHUNK_KINDS_; k++)
                        buf_done(&a->chunks[e][k].text);
        buf_done(&a->scratch);
        arena_done(&a->arena);
}

struct str sim_chunk_text(struct sim_answers *a, enum llm_endpoint endpoint, enum sim_chunk_kind kind,
                          uint64_t id, uint64_t now_ns)
{
        struct sim_chunk *c = &a->chunks[endpoint][kind];

        put_id(c->text.p + c->id_at, id);
        if (c->stamp_at)
                put_stamp(c->text.p + c->stamp_at, now_ns);
        return buf_str(&c->text);
}

static void add_usage(struct buf *out, uint32_t isl, uint32_t osl)
{
        buf_printf(out, ",\"usage\":{\"prompt_tokens\":%u,\"completion_tokens\":%u,\"total_tokens\":%llu}}",
                   isl, osl, (unsigned long long)isl + osl);
}

struct str sim_usage_text(struct sim_answers *a, enum llm_endpoint endpoint, uint64_t id, uint32_t isl,
                          uint32_t osl)
{
        const struct shape *s = &shapes[endpoint];
        size_t id_at;

        buf_clear(&a->scratch);
        buf_adds(&a->scratch, "data: ");
        id_at = begin_object(a, &a->scratch, s->id, s->chunk);
        buf_adds(&a->scratch, ",\"choices\":[]");
        add_usage(&a->scratch, isl, osl);
        buf_adds(&a->scratch, "\n\n");
        put_id(a->scratch.p + id_at, id);
        return buf_str(&a->scratch);
}

struct str sim_whole_text(struct sim_answers *a, enum llm_endpoint endpoint, uint64_t id, uint32_t isl,
                          uint32_t osl)
{
        const struct shape *s = &shapes[endpoint];
        size_t id_at;

        buf_clear(&a->scratch);
        id_at = begin_object(a, &a->scratch, s->id, s->whole);
        buf_printf(&a->scratch, ",\"choices\":[{\"index\":0,%s", s->text_begin);
        for (uint32_t i = 0; i < osl; i++)
                buf_adds(&a->scratch, i ? " " WORD : WORD);
        buf_printf(&a->scratch, "%s,\"finish_reason\":\"length\"}]", s->text_end);
        add_usage(&a->scratch, isl, osl);
        put_id(a->scratch.p + id_at, id);
        return buf_str(&a->scratch);
}

struct str sim_error_text(struct sim_answers *a, int status, const char *message)
{
        buf_clear(&a->scratch);
        buf_adds(&a->scratch, "{\"error\":{\"message\":");
        json_write_string(str_of(message), &a->scratch);
        buf_printf(&a->scratch, ",\"type\":\"%s\",\"param\":null,\"code\":%d}}",
                   status < 500 ? "invalid_request_error" : "server_error", status);
        return buf_str(&a->scratch);
}

struct str sim_models_text(struct sim_answers *a, uint64_t max_model_len)
{
        buf_clear(&a->scratch);
        buf_printf(&a->scratch,
                   "{\"object\":\"list\",\"data\":[{\"id\":%s,\"object\":\"model\",\"created\":%llu,",
                   a->model, (unsigned long long)a->created);
        buf_printf(&a->scratch, "\"owned_by\":\"sonde-sim\",\"root\":%s,\"max_model_len\":%llu}]}", a->model,
                   (unsigned long long)max_model_len);
        return buf_str(&a->scratch);
}
