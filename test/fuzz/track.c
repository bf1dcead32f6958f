/*
 * Tracks come back from a ConfigMap that others can write: what is taken is written again the same, goes on with any event,
 * and gives a percentage and a range in order.
 */
#include "run/track.h"
#include "fuzz/fuzz.h"

static void check_progress(const struct track *t, const struct run_plan *plan, const struct priors *priors)
{
        struct progress p;

        track_progress(t, plan, priors, t->moved, &p);
        REQUIRE(p.percent >= 0 && p.percent <= 100 && (p.percent < 100 || t->complete));
        REQUIRE(t->ended || !t->started ? p.moving && !p.not_moving_at : p.not_moving_at > t->moved);
        if (!p.eta.known)
                return;
        REQUIRE(t->moved <= p.eta.low && p.eta.low <= p.eta.mid && p.eta.mid <= p.eta.high);
        REQUIRE(p.eta.high - p.eta.low <= 2 * (p.eta.mid - t->moved));
        REQUIRE(p.eta.basis);
}

/* By the design's plan, by one of its own phases, with itself as its history. */
static void check_all(const struct track *t)
{
        struct run_plan own = {.n = 0};
        struct priors priors = {.n = 0};

        check_progress(t, &RUN_PLAN_DGDR, NULL);
        check_progress(t, &own, NULL);
        for (uint32_t i = 0; i < t->n; i++) {
                struct run_phase *p = &own.phases[own.n++];

                memcpy(p->name, t->phases[i].name, sizeof(p->name));
                p->weight = 1 + i;
        }
        check_progress(t, &own, NULL);
        own.weighted = true;
        check_progress(t, &own, NULL);
        priors_add_track(&priors, t);
        check_progress(t, &own, &priors);
        check_progress(t, &RUN_PLAN_DGDR, &priors);
}

static void go_on(struct track t)
{
        static const struct run_status events[] = {
                {.phase = "DecodeSweep",
                 .message = "",
                 .has_progress = true,
                 .current_step = 3,
                 .total_steps = 9},
                {.phase = "DecodeSweep", .message = "", .has_progress = true, .current_step = 1000000000},
                {.phase = "A", .message = "", .has_progress = true, .current_step = 0, .total_steps = 2},
                {.phase = "A", .message = "x", .has_progress = true, .current_step = 1, .total_steps = 2},
                {.phase = "A", .message = "", .has_progress = true, .current_step = 2, .total_steps = 2},
                {.phase = "B", .message = ""},
                {.phase = "Complete", .message = ""},
        };
        usec_t now = t.moved;

        for (size_t i = 0; i < ARRAY_LEN(events); i++) {
                now = usec_add(now, 500 * USEC_PER_MS << i);
                track_event(&t, &events[i], now);
                REQUIRE(t.moved <= now && t.n <= RUN_PHASES_MAX);
                check_all(&t);
        }
        REQUIRE(t.ended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = json_parse(&a, str_n((const char *)data, size), NULL, NULL), *again;
        struct track t, back;
        const char *text;

        if (!j || track_parse(j, &t, NULL) < 0)
                return 0;
        again = track_json(&a, &t);
        text = json_print(&a, again);
        REQUIRE(strlen(text) <= 16 * 1024);
        REQUIRE(track_parse(again, &back, NULL) == 0);
        REQUIRE(streq(json_print(&a, track_json(&a, &back)), text));
        check_all(&t);
        go_on(t);
        return 0;
}
