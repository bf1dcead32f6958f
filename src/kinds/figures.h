/*
 * figures.h - what came out of a run: where it is kept, and its numbers one by one.
 *
 * Most of it is in the object's status; what is too long for that is in the run's data ConfigMap. Both were written by what
 * runs in pods, so nothing in them is believed: a number that is none is left out, as is all that is not known.
 */
#pragma once

#include "json/json.h"

struct kind;

/* All that there is about one run. */
struct run_docs {
        const struct kind *kind;
        const struct json *object;  /* as the server has it */
        const struct json *result;  /* result.json of the data ConfigMap; NULL: not there */
        const struct json *samples; /* samples.json; NULL: not there */
        const struct json *
                profile; /* a WorkloadProfile: the object itself, or the one of a CUDAExperiment; NULL: none */
};

/* Takes result.json and samples.json out of the data ConfigMap. What is not there, or cannot be read, stays NULL. */
void run_docs_take(struct run_docs *d, const struct json *map, struct arena *a);
/* "spec.x", "status.x", "metadata.x" of the object, "result.x", "samples.x", "profile.x"; NULL: it is not there. */
const struct json *run_docs_at(const struct run_docs *d, const char *path);
/* Values that were not measured: "simulated", "replayed"; NULL: they were. */
const char *run_docs_origin(const struct run_docs *d);

struct figure {
        const char *
                of; /* which of several: the name of an algorithm, with "@SIZE" where it has several sizes; NULL: the run */
        const char *key;         /* "executionTime": stays the same */
        const char *title;       /* "time" */
        const char *unit;        /* "s"; "": none */
        double value, low, high; /* low and high: 95 %; NAN: not known */
};

struct figures {
        struct figure *v;
        size_t n;
};

/* All numbers of a run, in the order of what matters; in the arena. At most FIGURES_MAX. */
enum { FIGURES_MAX = 2048 };
void figures_of(const struct run_docs *docs, struct arena *a, struct figures *ret);
/* NULL: there is none. */
const struct figure *figures_find(const struct figures *f, const char *of, const char *key);
