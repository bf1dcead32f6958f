#include "probe/load/llm_private.h"

enum { ERROR_TEXT_MAX = 200 };

/* Whoever hands a text over has bounded it. */
static const struct json_limits limits = {.bytes = INT32_MAX};

const char *const llm_paths[] = {
        [LLM_CHAT] = "/v1/chat/completions",
        [LLM_COMPLETIONS] = "/v1/completions",
};

/* ---- writing a request */

static void write_name(struct str name, struct buf *out)
{
        if (out->n && out->p[out->n - 1] != '{')
                buf_addc(out, ',');
        json_write_string(name, out);
        buf_addc(out, ':');
}

/* Begins the member NAME, unless the caller brings one of that name. */
static bool begin_member(const struct llm_request *r, const char *name, struct buf *out)
{
        if (json_at(r->extra, name))
                return false;
        write_name(str_of(name), out);
        return true;
}

static void write_text(struct arena *a, struct str text, struct buf *out)
{
        if (utf8_valid(text.p, text.n))
                json_write_string(text, out);
        else
                json_write(json_stringn(a, text), JSON_COMPACT, out);
}

static void write_prompt(struct arena *a, enum llm_endpoint endpoint, const struct llm_request *r,
                         struct buf *out)
{
        struct str prompt = r->prompt.p ? r->prompt : STR("");

        if (endpoint == LLM_COMPLETIONS) {
                if (begin_member(r, "prompt", out))
                        write_text(a, prompt, out);
        } else if (begin_member(r, "messages", out)) {
                buf_adds(out, "[{\"role\":\"user\",\"content\":");
                write_text(a, prompt, out);
                buf_adds(out, "}]");
        }
}

static void write_count(const struct llm_request *r, const char *name, uint32_t count, struct buf *out)
{
        if (count && begin_member(r, name, out))
                buf_printf(out, "%u", count);
}

static void write_truth(const struct llm_request *r, const char *name, bool truth, const char *text,
                        struct buf *out)
{
        if (truth && begin_member(r, name, out))
                buf_adds(out, text);
}

void llm_request_write(struct arena *a, enum llm_endpoint endpoint, const struct llm_request *r,
                       struct buf *out)
{
        buf_reserve(out, r->prompt.n + r->prompt.n / 8 + 256);
        buf_addc(out, '{');
        if (r->model && begin_member(r, "model", out))
                write_text(a, str_of(r->model), out);
        write_prompt(a, endpoint, r, out);
        /* Servers of engines know this name for both endpoints; not all know max_completion_tokens. */
        write_count(r, "max_tokens", r->max_tokens, out);
        write_count(r, "min_tokens", r->min_tokens, out);
        write_truth(r, "ignore_eos", r->ignore_eos, "true", out);
        write_truth(r, "stream", r->stream, "true", out);
        write_truth(r, "stream_options", r->stream && r->include_usage, "{\"include_usage\":true}", out);
        json_foreach (member, r->extra) {
                write_name(str_n(member->key, member->key_len), out);
                json_write(member, JSON_COMPACT, out);
        }
        buf_addc(out, '}');
}

/* ---- reading a request */

/* The text of a string, or of an array's strings and text parts, one after the other, at the end of OUT. */
static int add_content(const struct json *content, struct buf *out, struct err *err)
{
        if (json_is(content, JSON_STRING)) {
                buf_addstr(out, json_text(content));
                return 0;
        }
        if (!json_is(content, JSON_ARRAY))
                return err_set(err, E_INVALID, "must be a string or an array of texts");
        json_foreach (part, content) {
                const struct json *text = json_is(part, JSON_OBJECT) ? json_at(part, "text") : part;

                if (json_is(text, JSON_STRING))
                        buf_addstr(out, json_text(text));
                else if (!json_is(part, JSON_OBJECT))
                        return err_set(err, E_INVALID, "must be a string or an array of texts");
        }
        return 0;
}

int llm_messages_text(const struct json *messages, struct buf *out, struct err *err)
{
        if (!json_is(messages, JSON_ARRAY) || json_len(messages) == 0)
                return err_set(err, E_INVALID, "'messages' must be an array with at least one message");
        json_foreach (message, messages) {
                const struct json *content = json_at(message, "content");

                if (!json_str(message, "role"))
                        return err_set(err, E_INVALID, "a message must have a 'role'");
                /* without one: a call of a tool */
                if (content && !json_is(content, JSON_NULL) && add_content(content, out, err) < 0)
                        return err_wrap(err, "'content' of a message");
        }
        return 0;
}

static int read_prompt(struct arena *a, const struct json *root, enum llm_endpoint endpoint, struct str *ret,
                       struct err *err)
{
        const struct json *prompt = json_at(root, "prompt");
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);

        if (endpoint == LLM_COMPLETIONS && json_is(prompt, JSON_STRING)) {
                *ret = json_text(prompt);
                return 0;
        }
        if (endpoint == LLM_CHAT) {
                if (llm_messages_text(json_at(root, "messages"), &text, err) < 0)
                        return -1;
        } else if (add_content(prompt, &text, err) < 0) {
                return err_wrap(err, "'prompt'");
        }
        *ret = str_n(arena_strndup(a, text.p, text.n), text.n);
        return 0;
}

static int read_count(const struct json *root, const char *name, uint64_t least, uint32_t *ret,
                      struct err *err)
{
        const struct json *j = json_at(root, name);
        uint64_t v;

        if (!j || json_is(j, JSON_NULL))
                return 0;
        if (!json_is(j, JSON_NUMBER) || !json_to_u64(j, &v) || v < least || v > UINT32_MAX)
                return err_set(err, E_INVALID, "'%s' must be a whole number of at least %u", name,
                               (unsigned)least);
        *ret = (uint32_t)v;
        return 0;
}

static int read_truth(const struct json *root, const char *name, bool *ret, struct err *err)
{
        const struct json *j = json_at(root, name);

        if (!j || json_is(j, JSON_NULL))
                return 0;
        if (!json_is(j, JSON_BOOL))
                return err_set(err, E_INVALID, "'%s' must be true or false", name);
        *ret = j->truth;
        return 0;
}

int llm_request_parse(struct arena *a, struct str body, enum llm_endpoint endpoint, struct llm_request *ret,
                      struct err *err)
{
        struct llm_request r = {.model = NULL};
        const struct json *root = json_parse(a, body, &limits, err);

        if (!root)
                return -1;
        if (!json_is(root, JSON_OBJECT))
                return err_set(err, E_INVALID, "the body must be a JSON object");
        r.model = json_str(root, "model");
        if (!r.model)
                return err_set(err, E_INVALID, "'model' must be a string");
        if (read_prompt(a, root, endpoint, &r.prompt, err) < 0 ||
            read_count(root, "max_tokens", 1, &r.max_tokens, err) < 0 ||
            read_count(root, "max_completion_tokens", 1, &r.max_tokens, err) < 0 ||
            read_count(root, "min_tokens", 0, &r.min_tokens, err) < 0 ||
            read_truth(root, "stream", &r.stream, err) < 0 ||
            read_truth(root, "ignore_eos", &r.ignore_eos, err) < 0 ||
            read_truth(json_at(root, "stream_options"), "include_usage", &r.include_usage, err) < 0)
                return -1;
        *ret = r;
        return 0;
}

/* ---- reading an event */

static int add_text(struct arena *a, const struct json *text, struct str *content, struct err *err)
{
        struct str s = json_text(text);
        char *both;

        if (!text || json_is(text, JSON_NULL) || (s.p && s.n == 0))
                return 0;
        if (!s.p)
                return err_set(err, E_PROTOCOL, "an event's text is no string");
        if (content->n == 0) {
                *content = s;
                return 0;
        }
        both = arena_alloc(a, content->n + s.n + 1);
        memcpy(both, content->p, content->n);
        memcpy(both + content->n, s.p, s.n);
        both[content->n + s.n] = '\0';
        *content = str_n(both, content->n + s.n);
        return 0;
}

/* What a part of the conversation says: reasoning comes first, under one of two names. */
static int read_message(struct arena *a, const struct json *message, struct str *content, struct err *err)
{
        json_foreach (m, message) {
                struct str key = str_n(m->key, m->key_len);

                if ((str_eq(key, STR("content")) || str_eq(key, STR("reasoning_content")) ||
                     str_eq(key, STR("reasoning"))) &&
                    add_text(a, m, content, err) < 0)
                        return -1;
        }
        return 0;
}

static int read_choice(struct arena *a, enum llm_endpoint endpoint, const struct json *choice,
                       struct llm_event *ret, struct err *err)
{
        const struct json *finish = json_at(choice, "finish_reason"), *part;

        if (!json_is(choice, JSON_OBJECT))
                return err_set(err, E_PROTOCOL, "an event's choice is no object");
        if (json_is(finish, JSON_STRING))
                ret->finish = json_cstr(finish);
        if (endpoint == LLM_COMPLETIONS)
                return add_text(a, json_at(choice, "text"), &ret->content, err);
        part = json_at(choice, "delta");
        if (!part)
                part = json_at(choice, "message");
        if (json_is(part, JSON_OBJECT))
                return read_message(a, part, &ret->content, err);
        if (ret->finish && (!part || json_is(part, JSON_NULL)))
                return 0;
        return err_set(err, E_PROTOCOL, "an event's choice has neither a delta nor a message");
}

static int read_usage(const struct json *usage, struct llm_event *ret, struct err *err)
{
        const struct json *prompt = json_at(usage, "prompt_tokens"),
                          *completion = json_at(usage, "completion_tokens");

        if (!usage || json_is(usage, JSON_NULL))
                return 0;
        if (!json_is(usage, JSON_OBJECT) || (prompt && !json_to_u64(prompt, &ret->prompt_tokens)) ||
            (completion && !json_to_u64(completion, &ret->completion_tokens)))
                return err_set(err, E_PROTOCOL, "an event's usage is malformed");
        ret->has_usage = completion != NULL; /* a prompt's count alone says nothing of the answer */
        return 0;
}

/* One line of at most ERROR_TEXT_MAX bytes that any terminal and log can show. */
static const char *one_line(struct arena *a, struct str text)
{
        struct str s;
        char *line;

        s = json_text(json_stringn(a, str_trim(str_n(text.p, MIN(text.n, (size_t)4 * ERROR_TEXT_MAX)))));
        line = arena_strndup(a, s.p, utf8_cut(s.p, s.n, ERROR_TEXT_MAX));
        for (char *c = line; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7F)
                        *c = ' ';
        return line;
}

/* The sentence in ROOT, as the kinds of servers put it; p == NULL: there is none. */
static struct str error_sentence(const struct json *root)
{
        const struct json *error = json_at(root, "error"), *message;

        message = json_at(json_is(error, JSON_OBJECT) ? error : root, "message");
        if (json_is(message, JSON_STRING))
                return json_text(message);
        if (json_is(error, JSON_STRING))
                return json_text(error);
        return json_text(json_at(root, "detail"));
}

/* An error object in place of a chunk, as the kinds of servers send it. */
static bool is_error(const struct json *root)
{
        const struct json *error = json_at(root, "error");

        return (error && !json_is(error, JSON_NULL)) ||
               (!json_at(root, "choices") && streq(json_str(root, "object"), "error"));
}

int llm_event_read(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *ret,
                   struct err *err)
{
        const struct json *root = json_parse(a, data, &limits, err), *choices;
        struct str sentence;

        *ret = (struct llm_event){.done = false};
        if (!root)
                return err_wrap(err, "an event");
        if (is_error(root)) {
                sentence = error_sentence(root);
                ret->error = sentence.n ? one_line(a, sentence) : "an error without a message";
                return 0;
        }
        choices = json_at(root, "choices");
        if (!json_is(choices, JSON_ARRAY))
                return err_set(err, E_PROTOCOL, "an event has no choices");
        json_foreach (choice, choices)
                if (read_choice(a, endpoint, choice, ret, err) < 0)
                        return -1;
        return read_usage(json_at(root, "usage"), ret, err);
}

int llm_event_parse(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *ret,
                    struct err *err)
{
        if (str_eq(data, STR("[DONE]"))) {
                *ret = (struct llm_event){.done = true};
                return 0;
        }
        return llm_event_scan(a, endpoint, data, ret) ? 0 : llm_event_read(a, endpoint, data, ret, err);
}

const char *llm_error_text(struct arena *a, struct str body)
{
        struct str sentence = STR_NULL;
        struct json *root;

        body = str_trim(body);
        if (body.n && body.p[0] == '{' && (root = json_parse(a, body, &limits, NULL)))
                sentence = error_sentence(root);
        return one_line(a, sentence.n ? sentence : body.p ? body : STR(""));
}
