/*
 * wrongs.h - collecting all that is wrong with a spec, to tell it at once; and what many kinds' specs have.
 */
#pragma once

#include "kinds/run_control.h"

enum { WRONGS_MAX = 16, WRONGS_TEXT_MAX = 1000 };

/* Sentences "path: what is wrong, what instead", without "; " in them. The first ones that fit are kept, the rest counted. */
struct wrongs {
        struct arena *arena;
        struct buf text; /* of at most WRONGS_TEXT_MAX bytes */
        size_t n, left_out;
};

#define WRONGS_INIT(a)                                          \
        {                                                       \
                .arena = (a), .text = BUF_INIT(WRONGS_TEXT_MAX) \
        }

void wrong(struct wrongs *w, const char *path, const char *fmt, ...) _printf_(3, 4);
/* All of them in one sentence, in the arena; NULL: nothing is wrong. W is done with. */
const char *wrongs_told(struct wrongs *w);
/* A value of somebody's, in quotes: cut, and without control characters. */
const char *shown(struct arena *a, const char *text);
const char *shown_json(struct arena *a, const struct json *value);
/* PATH.KEY, or PATH["K.E.Y"] */
const char *wrong_entry(struct wrongs *w, const char *path, const char *key);

void check_controls(struct wrongs *w, const struct view *v);
/* RESOURCES as of a container: requests and limits. */
void check_resources(struct wrongs *w, const char *path, const struct json *resources);
bool is_qualified_name(const char *key); /* of a label */
/* What is wrong with it as a place in a program's container; NULL: nothing. SHARED: Sonde's own is /shared as well. */
const char *mount_path_fault(const char *path, bool shared);
bool path_goes_up(const char *path); /* has ".." in it */
/*
 * An amount as Kubernetes writes it: 500m, 1Gi, 1e3. Rounded: good enough to compare two of them when they are not almost
 * the same. False: it is none.
 */
bool amount_of(const struct json *value, double *ret);
