/*
 * answer.h - what the simulated server writes: chunks whose text is made before the first request, whole answers, errors.
 *
 * A chunk's text is the same for every request but for an id and, if asked for, the time; both have a fixed width and are
 * written into the text right before it is sent. So a token costs two small copies and no JSON is built for it.
 */
#pragma once

#include "probe/load/llm.h"
#include "probe/sim/sim.h"

enum { SIM_ENDPOINTS = 2 };

/* The first, one in the middle, the last; ONLY is first and last. */
enum sim_chunk_kind { SIM_CHUNK_FIRST, SIM_CHUNK_MORE, SIM_CHUNK_LAST, SIM_CHUNK_ONLY, SIM_CHUNK_KINDS_ };

struct sim_chunk {
        struct buf text;
        size_t id_at, stamp_at; /* stamp_at 0: none */
};

struct sim_answers {
        struct arena arena;
        const char *model; /* as a JSON string, with its quotes */
        uint64_t created;
        struct sim_chunk chunks[SIM_ENDPOINTS][SIM_CHUNK_KINDS_];
        struct buf scratch;
};

void sim_answers_init(struct sim_answers *a, const char *model, usec_t wall, bool stamp);
void sim_answers_done(struct sim_answers *a);
/* All valid until the next call. */
struct str sim_chunk_text(struct sim_answers *a, enum llm_endpoint endpoint, enum sim_chunk_kind kind,
                          uint64_t id, uint64_t now_ns);
struct str sim_usage_text(struct sim_answers *a, enum llm_endpoint endpoint, uint64_t id, uint32_t isl,
                          uint32_t osl);
struct str sim_whole_text(struct sim_answers *a, enum llm_endpoint endpoint, uint64_t id, uint32_t isl,
                          uint32_t osl);
struct str sim_error_text(struct sim_answers *a, int status, const char *message);
struct str sim_models_text(struct sim_answers *a, uint64_t max_model_len);
