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

/* The least SONDE_EXTENT that explores a row. */
enum extent { QUICK, USUAL, LONG };

/* left: progress reports, edits, deletions, crashes, mishaps, calls that come early */
struct row {
        enum extent extent;
        struct scenario scenario;
        unsigned later; /* extents, where runs are longer */
};

/* A planted mistake; every extent explores all of them. */
struct mistake {
        struct scenario scenario;
        const char *found; /* words of what it must be found by; NULL: anything */
};

bool rows_asked_for(enum extent extent, const char *name); /* by SONDE_EXTENT or MODEL_ONLY */
/* Those of the kind alone. */
void rows_of_kind(const struct subject *subject, const struct row *rows, size_t n);
/* Those of every kind first, and then those of the kind. */
void rows_end_well(const struct subject *subject, const struct row *rows, size_t n);
void rows_are_found(const struct subject *subject, const struct mistake *mistakes, size_t n);
