/*
 * run_kind.h - a request of a kind that is nothing but its run.
 */
#pragma once

#include "unit/run_objects.h"

static const char *const free_members[] = {"loose", "part.loose", NULL};
static const struct run_kind KIND = {"r-run", "r-status", "r-data", "r-access", free_members};

static inline void given(struct rig *r, const char *spec, const char *status)
{
        struct json *j = parse(r, REQUEST);

        json_set(&r->arena, j, "spec", parse(r, spec));
        json_set(&r->arena, j, "status", status ? parse(r, status) : NULL);
        r->view.request = j;
}

static inline const char *hash_of(struct rig *r, const char *spec)
{
        struct view v = r->view;
        struct run run;

        v.request = json_build(&r->arena, "{'spec': %p}", (void *)parse(r, spec));
        run_read(&v, &KIND, &run);
        return run.spec_hash;
}

#define ATTEMPT1 "'attempt': 1, 'job': 'r-run', 'retries': 0"

/* A request under way with SPEC, whose status.run has MORE; STATUS is more of the status. */
static inline void under_way(struct rig *r, const char *spec, const char *run, const char *status)
{
        given(r, spec,
              arena_printf(&r->arena, "{'observedGeneration': 1, 'run': {%s, 'specHash': '%s'}%s}", run,
                           hash_of(r, spec), status));
}

static inline void generation(struct rig *r, int64_t number)
{
        json_set(&r->arena, json_at(r->view.request, "metadata"), "generation", json_i64(&r->arena, number));
}

static inline void edit(struct rig *r, const char *spec, int64_t number)
{
        json_set(&r->arena, (struct json *)r->view.request, "spec", parse(r, spec));
        generation(r, number);
}
