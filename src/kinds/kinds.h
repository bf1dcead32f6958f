/*
 * kinds - one folder a kind of request: its spec, its plan, its settle.
 *
 *   dgdr           DynamoGraphDeploymentRequest          nvidia.com/v1alpha1
 *   cuda           CUDAExperiment and WorkloadProfile    gpu.scheduler.io/v1alpha1
 *   algorithm      AlgorithmProfiling, AlgorithmComparison    dprofiler.io/v1alpha1
 *
 * What a kind owns: reading its spec with defaults and all refusals at once; plan, which says what objects must
 * exist for a run; settle, which says what pods, ConfigMaps and Job mean for the request: status, conditions,
 * events, what follows, when to look again. A table registers each kind with the runtime; a sixth kind is one more
 * folder here and one CRD file, or the design has failed.
 *
 *   run_control.h  what every request says about its run, and one attempt after another
 *   run_job.h      what every plan shares: the objects of a run
 *   run_seen.h     what every settle shares: what they say about it
 *   wrongs.h       what is wrong with a spec
 *   summary.h      an object of any kind as a row, for people and other programs
 *   steer.h        what people do with one, and where to find what it leaves
 *   figures.h      what came out of a run, number by number
 *   versus.h       runs that were made by themselves, side by side
 *
 * What it must not do: ask for the clock, randomness or the network (everything a decision may use is passed in, see
 * src/decide/); remember anything between two calls; make up a name that a second call would not make again.
 */
#pragma once

#include "kinds/algorithm/algorithm.h"
#include "kinds/cuda/cuda.h"
#include "kinds/dgdr/dgdr.h"
#include "kinds/figures.h"
#include "kinds/run_control.h"
#include "kinds/versus.h"

/* What every controller is told, kind by kind. */
struct kinds_settings {
        struct dgdr_settings dgdr;
        struct cuda_settings cuda;
        struct algorithm_settings algorithm;
};

struct kind {
        const struct kube_type *type;
        const char *label; /* how it is told in a line: "dgdr" */
        const char *alias; /* another short name of it; NULL: none */
        const char *state; /* the member of status that says where it is: "state" */
        /* Values of that in which it stays whatever its spec says; NULL ends. */
        const char *const *final_states;
        bool result; /* what another kind's run left: nothing is carried out for it */
};

enum { KINDS_MAX = 8 };

/* The controller of every kind, in RET, and how many those are. SETTINGS must outlive them. */
size_t kinds_controllers(const struct kinds_settings *settings, struct controller ret[KINDS_MAX]);
/* For a cache of one of these types (kube/cache.h): whether an object has ended. NULL: it is another type. */
bool (*kinds_ended(const struct kube_type *type))(const struct json *object);
/* All of them, results included: the I-th, NULL behind the last one. */
const struct kind *kinds_at(size_t i);
/* Our kind of an object with these two, or NULL. */
const struct kind *kinds_find(const char *api_version, const char *kind);
/* The kind that a person means by this word: label, kind, singular, plural, short name or plural.group, in any case; or NULL. */
const struct kind *kinds_named(struct str word);
/* What its runs are called, and where they leave what they have; false: it has none, being a result. */
bool kinds_run(const struct kind *kind, const struct json *object, struct arena *a, struct run_kind *ret);

#include "kinds/steer.h"   /* IWYU pragma: export */
#include "kinds/summary.h" /* IWYU pragma: export */
#include "kinds/versus.h"  /* IWYU pragma: export */
