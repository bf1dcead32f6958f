/*
 * Until a run is admitted: what the request asks for, and what its status tells.
 */
#include "kinds/run_internal.h"

struct admission_wish run_wish(const struct view *v, const struct run *run, enum admission_stand stand)
{
        struct str created = json_text(json_at(json_at(v->request, "metadata"), "creationTimestamp"));
        usec_t since;

        if (!created.p || !time_parse(created, &since))
                since = 0;
        return (struct admission_wish){.stand = stand, .priority = run->controls.priority, .since = since};
}

bool run_admitted(const struct view *v, struct decision *d, const struct run *run)
{
        d->admission = run_wish(v, run, ADMISSION_WAITS);
        return !v->admission || v->admission->admitted;
}

bool run_queued(const struct view *v, const struct run *run, struct run_seen *ret, struct json *status)
{
        const struct admission *is = v->admission;
        char text[TIME_TEXT_MAX];
        struct json *queue;

        if (!is->position)
                return false;
        *ret = (struct run_seen){
                .life = RUN_LIFE_NONE,
                .reason = "Queued",
                .sentence = run_sentence(v, "the run waits for its turn: %s", is->reason),
                .names = &run->names,
                .attempt = run->names.attempt,
        };
        queue = json_build(v->arena, "{'position': %s, 'reason': %s}", admission_position(is->position),
                           run_sentence(v, "%s", is->reason));
        if (is->starts)
                json_set(v->arena, queue, "expectedStart",
                         json_string(v->arena, time_format(is->starts / USEC_PER_SEC * USEC_PER_SEC, text)));
        json_set(v->arena, status, "queue", queue);
        return true;
}

void run_tell_quota(const struct view *v, const struct run_seen *seen, struct json *status)
{
        if (seen->life == RUN_LIFE_WAITING && seen->over_quota)
                json_set(v->arena, status, "queue", json_build(v->arena, "{'reason': %s}", seen->sentence));
}
