/*
 * tokens_internal.h - the words and pieces that prompts are made of and texts are counted by.
 */
#pragma once

#include "probe/load/tokens.h"

enum {
        TOKENS_FILE_MAX = 64 << 20,
        TOKENS_WORDS_MAX = 4096,   /* of a tokenizer: enough for any prompt, few enough to check each */
        TOKENS_LIST_MAX = 1 << 20, /* of a list */
        TOKENS_WORD_LEN = 64,      /* bytes */
        TOKENS_PIECE_LEN = 32,     /* longer ones do not matter for an estimate */
};

/* Whether a word is one token at the begin of a text, too, where no blank is before it. */
enum tokens_start { TOKENS_INSIDE, TOKENS_ANYWHERE };

struct tokens {
        char *name;
        struct arena arena;     /* of all texts below */
        VEC(struct str) words;  /* each is one token behind a blank */
        VEC(struct str) firsts; /* those that can begin a text; none: `lead` */
        struct map known;       /* word -> where it may stand */
        struct map pieces;  /* a tokenizer's vocabulary, with blanks for their marks; empty: there is none */
        size_t longest;     /* of the pieces */
        bool lead;          /* a text begins with a blank, as no word is one token without */
        bool lead_is_token; /* a blank before the first word is a token of its own */
};

const char *tokens_builtin(void); /* words with blanks between them */
/* False: it is there already. */
bool tokens_add_word(struct tokens *t, struct str word, enum tokens_start start);
/* It is one token at the begin of a text, too. */
void tokens_allow_first(struct tokens *t, struct str word);
void tokens_add_piece(struct tokens *t, struct str text);
/* A tokenizer.json; TEXT is overwritten, and text[n] must be writable. */
int tokens_read_tokenizer(struct tokens *t, char *text, size_t n, struct err *err) _must_check_;
int tokens_read_list(struct tokens *t, struct str text, struct err *err) _must_check_;
struct tokens *tokens_new(const char *name);
