/*
 * pack.h - documents in few bytes, for those that are kept in great number.
 *
 * Objects of one kind have the same member names over and over. A struct json_names keeps each name once, and a packed
 * document has its number there, one or two bytes, in the place of the name; values are as they are, with their length
 * before them. That is about two thirds of compact JSON, and unpacking is faster than parsing: nothing is searched for
 * and nothing can be wrong.
 *
 * Names only ever come in, at most 4080 of at most 64 bytes; whatever is beyond that is written out in each document,
 * so that strangers with ever new names cost what text would have cost. Packing the same value again with the same
 * names gives the same bytes.
 */
#pragma once

#include "json/doc.h"

struct json_names;

struct json_names *json_names_new(void);
void json_names_free(struct json_names *names);

void json_pack(struct json_names *names, const struct json *j, struct buf *out);
/*
 * What json_pack() wrote with NAMES, as a document in the arena. Its member names stay those of NAMES, which must
 * live as long as the document.
 */
struct json *json_unpack(const struct json_names *names, struct str packed, struct arena *a);

DEFINE_CLEANUP_PTR(struct json_names *, json_names_free)
