/*
 * check.h - resource files against the definitions of our kinds, before anything is sent anywhere.
 *
 * What the API server would refuse is found here with its file, line and column; so is what it would drop without a word: a
 * member that the kind does not have, told with the name that was probably meant. Resources of other kinds are left alone.
 */
#pragma once

#include "cli/resources.h"

struct check;

struct check *check_new(void); /* compiles the definitions that are in the program */
void check_free(struct check *c);
/* Tells all that is wrong, see resources_complain(), and how many of the resources are of our kinds. */
size_t check_all(struct check *c, struct resources *r);

DEFINE_CLEANUP_PTR(struct check *, check_free)
