/*
 * llm.h - the OpenAI protocol as far as measuring needs it: bodies of requests, and what an answer's events say.
 *
 * Both sides use it: the load generator writes requests and reads events, the simulated engine the other way round.
 */
#pragma once

#include "json/json.h"

enum llm_endpoint { LLM_CHAT, LLM_COMPLETIONS };
extern const char *const llm_paths[];     /* "/v1/chat/completions", "/v1/completions" */
#define LLM_SIMULATED "X-Sonde-Simulated" /* a header of a simulated engine's answers */

/* ---- the request */

struct llm_request {
        const char *model;
        struct str prompt;   /* of chat: the contents of all messages, one after the other */
        uint32_t max_tokens; /* 0: not said; max_completion_tokens counts, too */
        uint32_t min_tokens; /* 0: not said */
        bool stream, ignore_eos, include_usage;
        const struct json *extra; /* an object, merged into the body by llm_request_write(); may be NULL */
};

void llm_request_write(struct arena *a, enum llm_endpoint endpoint, const struct llm_request *r,
                       struct buf *out);
/* The contents of MESSAGES (an array), one after the other. */
int llm_messages_text(const struct json *messages, struct buf *out, struct err *err) _must_check_;
int llm_request_parse(struct arena *a, struct str body, enum llm_endpoint endpoint, struct llm_request *ret,
                      struct err *err) _must_check_;

/* ---- an event of a streamed answer, or a whole answer */

struct llm_event {
        bool done;          /* "[DONE]" */
        struct str content; /* new text, reasoning included; empty: none (a role alone, usage, an end) */
        const char *finish; /* finish_reason; NULL: not yet */
        bool has_usage;
        uint64_t prompt_tokens, completion_tokens;
        const char *error; /* an error object in place of a chunk; NULL: none */
};

/* Any other shape than an event's is an error, as is invalid UTF-8. In a whole answer `content` is all of it. */
int llm_event_parse(struct arena *a, enum llm_endpoint endpoint, struct str data, struct llm_event *ret,
                    struct err *err) _must_check_;
/* The sentence of an error's body ({"error": {"message": ...}}, {"message": ...}, or plain text), cut at 200 bytes. */
const char *llm_error_text(struct arena *a, struct str body);
