/*
 * tokens.h - prompts of an exact number of tokens, and how many tokens a text has.
 *
 * A prompt is words, each of which is one token wherever it stands behind a blank. Where the words come from:
 *
 *   builtin        short common English words that the tokenizers in use have as one token each; counted as one a word
 *   a word list    one word a line; counted as one a word
 *   tokenizer.json of Hugging Face (BPE or Unigram, with "Ġ" or "▁" for the blank): its entries of a blank and lower-case
 *                  ASCII letters alone, which every pre-tokenizer leaves whole. Each was put through the merges, or the
 *                  scores, and came out as one. So prompts are exact; the tokens that a chat template adds are the
 *                  server's and are not counted
 *
 * Counting is exact for texts of such words. Any other text is counted by the longest entries that fit (an estimate, and
 * told as one): what a server says of its own usage is better, and used when it is there.
 */
#pragma once

#include "json/json.h"

struct tokens;

/* PATH NULL: builtin. A name that ends with ".json" is a tokenizer, all else a word list. */
struct tokens *tokens_load(const char *path, struct err *err) _must_check_;
void tokens_free(struct tokens *t);
const char *tokens_name(const struct tokens *t); /* "builtin", or the file's name */
/* N tokens of text, the same for the same state of RNG. */
void tokens_prompt(const struct tokens *t, struct rng *rng, uint32_t n, struct buf *out);
/* RET_EXACT (may be NULL): false when it is an estimate. */
uint64_t tokens_count(const struct tokens *t, struct str text, bool *ret_exact);

DEFINE_CLEANUP_PTR(struct tokens *, tokens_free)
