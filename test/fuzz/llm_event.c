/*
 * The OpenAI protocol: whatever a server or a client sends is refused or understood. What is understood is text that can
 * be shown, says the same when it is read again in other clothes, and a request survives being written.
 *
 * The first byte chooses what the rest is: an event, a request or the body of an error, of which endpoint.
 */
#include "fuzz/fuzz.h"
#include "probe/load/llm_private.h"

static void require_shown(const char *text)
{
        size_t n = strlen(text);

        REQUIRE(n <= 200 && utf8_valid(text, n));
        for (size_t i = 0; i < n; i++)
                REQUIRE((unsigned char)text[i] >= ' ' && text[i] != 0x7F);
}

static void require_same(const struct llm_event *x, const struct llm_event *y)
{
        REQUIRE(x->done == y->done && str_eq(x->content, y->content) && streq(x->finish, y->finish));
        REQUIRE(x->has_usage == y->has_usage && x->prompt_tokens == y->prompt_tokens);
        REQUIRE(x->completion_tokens == y->completion_tokens && streq(x->error, y->error));
}

static void check_event(enum llm_endpoint endpoint, struct str text)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf pretty = BUF_INIT(SIZE_MAX);
        struct err err = ERR_INIT;
        struct llm_event e, again;
        struct json *whole;

        /* what the quick way takes, the thorough one takes for the same */
        if (llm_event_scan(&a, endpoint, text, &e)) {
                REQUIRE(llm_event_read(&a, endpoint, text, &again, &err) == 0);
                require_same(&e, &again);
        }
        if (llm_event_parse(&a, endpoint, text, &e, &err) < 0) {
                REQUIRE(err.code != E_OK && err.text[0]);
                return;
        }
        REQUIRE(utf8_valid(e.content.p, e.content.n));
        if (e.error)
                require_shown(e.error);
        if (e.done)
                return;
        whole = json_parse(&a, text, NULL, NULL);
        REQUIRE(json_is(whole, JSON_OBJECT));
        json_write(whole, JSON_PRETTY, &pretty);
        REQUIRE(llm_event_parse(&a, endpoint, buf_str(&pretty), &again, &err) == 0);
        require_same(&e, &again);
}

static void check_request(enum llm_endpoint endpoint, struct str text)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);
        struct err err = ERR_INIT;
        struct llm_request r, again;

        if (llm_request_parse(&a, text, endpoint, &r, &err) < 0) {
                REQUIRE(err.code != E_OK && err.text[0]);
                return;
        }
        REQUIRE(r.model && utf8_valid(r.prompt.p, r.prompt.n));
        llm_request_write(&a, endpoint, &r, &out);
        REQUIRE(llm_request_parse(&a, buf_str(&out), endpoint, &again, &err) == 0);
        REQUIRE(streq(r.model, again.model) && str_eq(r.prompt, again.prompt));
        REQUIRE(r.max_tokens == again.max_tokens && r.min_tokens == again.min_tokens);
        REQUIRE(r.stream == again.stream && r.ignore_eos == again.ignore_eos);
        REQUIRE((r.stream && r.include_usage) == again.include_usage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(free_ptr) char *copy = NULL;
        enum llm_endpoint endpoint;
        struct str text;

        if (size == 0)
                return 0;
        copy = xmemdup(data + 1, size - 1);
        text = str_n(copy, size - 1);
        endpoint = data[0] & 1 ? LLM_COMPLETIONS : LLM_CHAT;
        switch (data[0] >> 1 & 3) {
        case 0:
        case 1:
                check_event(endpoint, text);
                break;
        case 2:
                check_request(endpoint, text);
                break;
        default:
                require_shown(llm_error_text(&a, text));
        }
        return 0;
}
