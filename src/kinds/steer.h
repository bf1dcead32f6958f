/*
 * steer.h - what a person does with a run of any kind, and where what it leaves is: pure functions of its object.
 *
 * Cancel, suspend and resume are one member of the spec each; whoever carries out the run does what it says. A rerun is another
 * request with the same spec: one that has ended is never run again.
 */
#pragma once

#include "kinds/kinds.h"

enum steer { STEER_CANCEL, STEER_SUSPEND, STEER_RESUME };

/* The word of the command line and of the API: "cancel"; below 0: it is none. */
int steer_named(const char *word);
/* What the object is told, as a merge patch. NULL: it is so already. */
struct json *steer_patch(enum steer what, const struct json *object, struct arena *a);

/* The same request once more, under NAME: without cancel, suspend and schedule, and without what is of the object that it was. */
struct json *steer_again(const struct kind *kind, const struct json *object, const char *name,
                         struct arena *a);
/* The N-th name (from 1) for that: NAME-rerun-N; a rerun of a rerun is one of the first. */
const char *steer_name(const struct json *object, unsigned n, struct arena *a);

/* The newest pod of a list, or NULL. */
const struct json *steer_pod(const struct json *pods);
/* The container whose output is meant, as kubectl has it: what the pod names, else its first one. */
const char *steer_container(const struct json *pod);
