/*
 * jansson_peer.h - another JSON library, to be compared with: speed in bench-json, results in the fuzzer.
 *
 * jansson and src/json share some function names, so they meet only through this header, and its source calls only
 * those of jansson's functions whose names are its own. Tests and benches alone link it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Parses TEXT and writes it again; NULL: it was refused, and WHY says why. The caller frees. */
char *peer_reprint(const char *text, size_t n, size_t *ret_n, char *why, size_t why_size);

/* Parses a watch event, drops managedFields, sets two fields of the status and an annotation, writes it to OUT.
 * Returns the length. */
size_t peer_change_event(const char *text, size_t n, char *out, size_t size);
