/*
 * crds.h - the definitions of our kinds, as in deploy/crds, inside the program.
 */
#pragma once

extern const char CRDS[]; /* YAML documents */
