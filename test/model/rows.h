/*
 * rows.h - scenarios, one after the other: every order of what can happen, within bounds; and mistakes that must be found.
 *
 * MODEL_ONLY=WORDS explores only the scenarios whose names have these words in them; MODEL_WAY=1 prints the way to each
 * mistake.
 */
#pragma once

#include "model/explore.h"
#include "model/sabotage.h"

#define BIT(x) (1U << (x))

/* How long it may take: with sanitizers, and in `make test-quick`, the smallest form. */
enum form { QUICK, USUAL, SOAK };

/* left: progress reports, edits, deletions, crashes, mishaps, calls that come early */
struct row {
        enum form form;
        struct scenario scenario;
        unsigned later;    /* forms, where runs are longer */
        const char *found; /* words of what a mistake must be found by; NULL: anything */
};

bool rows_asked_for(enum form form, const char *name); /* today, or by MODEL_ONLY */
/* Those of the kind alone. */
void rows_of_kind(const struct subject *subject, const struct row *rows, size_t n);
/* Those of every kind first, and then those of the kind. */
void rows_end_well(const struct subject *subject, const struct row *rows, size_t n);
void rows_are_found(const struct subject *subject, const struct row *mistakes, size_t n);
