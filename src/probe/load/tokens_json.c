#include <math.h>

#include "probe/load/tokens_internal.h"

/*
 * A tokenizer.json of Hugging Face. An entry of the vocabulary is not yet a token that comes out: merges may lead elsewhere,
 * and in a Unigram model two pieces may be likelier than one. So each word is put through the model once, and only
 * those that come out as one are used. Lower case alone: some pre-tokenizers cut where the case changes.
 */

static const struct json_limits limits = {.bytes = TOKENS_FILE_MAX, .nodes = 4 << 20};

/* How a vocabulary writes the blank before a word. */
static const struct str BYTES_BLANK = {"\xc4\xa0", 2};    /* U+0120, of byte-level BPE */
static const struct str META_BLANK = {"\xe2\x96\x81", 3}; /* U+2581, of SentencePiece */

enum { WORD_LETTERS = 16, SYMBOLS_MAX = WORD_LETTERS + 1, PIECE_MAX = WORD_LETTERS + 3 };

struct model {
        struct arena arena;
        struct map entries; /* piece -> its score (double), of BPE 0 */
        struct map merges;  /* "left right" -> its rank + 1 */
        bool unigram;
        bool whole; /* an entry is a token whatever merges say */
        bool meta;  /* META_BLANK */
};

static void model_done(struct model *m)
{
        map_done(&m->entries);
        map_done(&m->merges);
        arena_done(&m->arena);
}
DEFINE_CLEANUP_STRUCT(struct model, model_done)

/* ---- read */

static void add_entry(struct model *m, struct str piece, double score)
{
        double *own = arena_alloc(&m->arena, sizeof(*own));

        *own = score;
        if (piece.n)
                map_put(&m->entries, piece, own);
}

static int read_entries(struct model *m, const struct json *vocab, struct err *err)
{
        if (json_is(vocab, JSON_OBJECT)) {
                json_foreach (entry, vocab)
                        add_entry(m, str_n(entry->key, entry->key_len), 0);
                return 0;
        }
        if (!json_is(vocab, JSON_ARRAY))
                return err_set(err, E_INVALID, "it has no model.vocab: not a tokenizer of Hugging Face");
        m->unigram = true;
        json_foreach (entry, vocab) {
                struct str piece = json_text(json_index(entry, 0));
                double score;

                if (!piece.p || !json_to_double(json_index(entry, 1), &score))
                        return err_set(err, E_INVALID,
                                       "an entry of model.vocab is not a piece and its score");
                add_entry(m, piece, score);
        }
        return 0;
}

/* "left right", or in newer files ["left", "right"]. */
static int read_merges(struct model *m, const struct json *merges, struct err *err)
{
        uintptr_t rank = 1;

        json_foreach (merge, merges) {
                struct str pair = json_text(merge);
                struct str left = json_text(json_index(merge, 0)), right = json_text(json_index(merge, 1));

                if (!pair.p && left.p && right.p) {
                        char *both = arena_alloc(&m->arena, left.n + right.n + 2);

                        memcpy(both, left.p, left.n);
                        both[left.n] = ' ';
                        memcpy(both + left.n + 1, right.p, right.n);
                        pair = str_n(both, left.n + 1 + right.n);
                }
                if (!pair.p)
                        return err_set(err, E_INVALID, "an entry of model.merges is not a pair");
                if (!map_get(&m->merges, pair))
                        map_put(&m->merges, pair, (void *)rank);
                rank++;
        }
        return 0;
}

static int read_model(struct model *m, const struct json *root, struct err *err)
{
        const struct json *model = json_at(root, "model"), *merges = json_at(model, "merges");

        if (read_entries(m, json_at(model, "vocab"), err) < 0 || read_merges(m, merges, err) < 0)
                return -1;
        m->whole = json_bool(model, "ignore_merges", false) || !m->merges.n;
        return 0;
}

/* ---- does a word come out as one token */

struct symbols {
        struct str v[SYMBOLS_MAX];
        size_t n;
};

static size_t char_len(char c)
{
        unsigned char u = (unsigned char)c;

        return u < 0x80 ? 1 : u < 0xe0 ? 2 : u < 0xf0 ? 3 : 4;
}

static uintptr_t rank_of(const struct model *m, struct str left, struct str right)
{
        char pair[2 * PIECE_MAX + 1];

        memcpy(pair, left.p, left.n);
        pair[left.n] = ' ';
        memcpy(pair + left.n + 1, right.p, right.n);
        return (uintptr_t)map_get(&m->merges, str_n(pair, left.n + 1 + right.n));
}

/* Neighbours are neighbours in PIECE, too, so a merge only moves a border. */
static bool merges_to_one(const struct model *m, struct str piece)
{
        struct symbols s = {.n = 0};

        for (size_t at = 0; at < piece.n; at += s.v[s.n++].n)
                s.v[s.n] = str_n(piece.p + at, MIN(char_len(piece.p[at]), piece.n - at));
        while (s.n > 1) {
                uintptr_t best = 0;
                size_t where = 0;

                for (size_t i = 0; i + 1 < s.n; i++) {
                        uintptr_t rank = rank_of(m, s.v[i], s.v[i + 1]);

                        if (rank && (!best || rank < best)) {
                                best = rank;
                                where = i;
                        }
                }
                if (!best)
                        return false;
                s.v[where].n += s.v[where + 1].n;
                memmove(&s.v[where + 1], &s.v[where + 2], (s.n - where - 2) * sizeof(s.v[0]));
                s.n--;
        }
        return true;
}

/* No way to cut it is as likely as the whole. */
static bool likeliest_as_one(const struct model *m, struct str piece, double score)
{
        double best[PIECE_MAX + 1];

        best[0] = 0;
        for (size_t end = 1; end <= piece.n; end++) {
                best[end] = -INFINITY;
                for (size_t begin = 0; begin < end; begin++) {
                        const double *part = map_get(&m->entries, str_n(piece.p + begin, end - begin));

                        if (part && (begin || end < piece.n) && best[begin] + *part > best[end])
                                best[end] = best[begin] + *part;
                }
        }
        return score > best[piece.n];
}

static bool is_one_token(const struct model *m, struct str piece)
{
        const double *score = map_get(&m->entries, piece);

        if (!score)
                return false;
        if (m->unigram)
                return likeliest_as_one(m, piece, *score);
        return m->whole || merges_to_one(m, piece);
}

/* ---- words */

/* The letters behind the blank's mark; n 0: it is no such entry. */
static struct str letters_of(struct str piece, struct str blank)
{
        struct str word = STR_NULL;

        if (!str_has_prefix(piece, blank) || piece.n > blank.n + WORD_LETTERS)
                return word;
        word = str_n(piece.p + blank.n, piece.n - blank.n);
        for (size_t i = 0; i < word.n; i++)
                if (word.p[i] < 'a' || word.p[i] > 'z')
                        return STR_NULL;
        return word;
}

/* Of an object's member or an array's pair. Vocabularies are in order: the common ones come first. */
static struct str piece_of(const struct json *entry)
{
        return entry->key ? str_n(entry->key, entry->key_len) : json_text(json_index(entry, 0));
}

static bool uses_meta(const struct json *vocab)
{
        size_t bytes = 0, meta = 0;

        json_foreach (entry, vocab) {
                bytes += letters_of(piece_of(entry), BYTES_BLANK).n > 0;
                meta += letters_of(piece_of(entry), META_BLANK).n > 0;
        }
        return meta > bytes;
}

static void add_words(struct tokens *t, const struct model *m, const struct json *vocab)
{
        struct str blank = m->meta ? META_BLANK : BYTES_BLANK;

        json_foreach (entry, vocab) {
                struct str piece = piece_of(entry), word = letters_of(piece, blank);

                if (t->words.n == TOKENS_WORDS_MAX)
                        break;
                if (word.n && is_one_token(m, piece))
                        (void)tokens_add_word(t, word,
                                              is_one_token(m, word) ? TOKENS_ANYWHERE : TOKENS_INSIDE);
        }
}

/* ---- pieces, for estimates */

/* The byte that CODEPOINT stands for in byte-level BPE: printable ones for themselves, the others from U+0100 on, in order.
 * Below 0: none. */
static int byte_of(uint32_t codepoint)
{
        unsigned next = 0x100;

        if ((codepoint > 0x20 && codepoint < 0x7f) ||
            (codepoint > 0xa0 && codepoint < 0x100 && codepoint != 0xad))
                return (int)codepoint;
        for (unsigned byte = 0; byte < 0x100; byte++) {
                bool printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);

                if (!printable && next++ == codepoint)
                        return (int)byte;
        }
        return -1;
}

static void add_byte_piece(struct tokens *t, struct str piece)
{
        char text[TOKENS_PIECE_LEN];
        size_t n = 0;

        for (size_t at = 0; at < piece.n && n < sizeof(text);) {
                unsigned char c = (unsigned char)piece.p[at];
                size_t len = char_len(piece.p[at]);
                int byte;

                if (len > 2 || len > piece.n - at)
                        return;
                byte = byte_of(
                        len == 1 ? c : (uint32_t)(c & 0x1f) << 6 | ((unsigned char)piece.p[at + 1] & 0x3f));
                if (byte < 0)
                        return;
                text[n++] = (char)byte;
                at += len;
                if (n == sizeof(text) && at < piece.n)
                        return;
        }
        tokens_add_piece(t, str_n(text, n));
}

static void add_meta_piece(struct tokens *t, struct str piece)
{
        char text[TOKENS_PIECE_LEN];
        size_t n = 0;

        for (size_t at = 0; at < piece.n;) {
                struct str rest = str_n(piece.p + at, piece.n - at);
                bool blank = str_has_prefix(rest, META_BLANK);

                if (n == sizeof(text))
                        return;
                text[n++] = blank ? ' ' : *rest.p;
                at += blank ? META_BLANK.n : 1;
        }
        tokens_add_piece(t, str_n(text, n));
}

int tokens_read_tokenizer(struct tokens *t, char *text, size_t n, struct err *err)
{
        _cleanup_(model_done) struct model m = {.unigram = false};
        struct json *root = json_parse_insitu(&m.arena, text, n, &limits, err);
        const struct json *vocab = json_at(json_at(root, "model"), "vocab");

        if (!root || read_model(&m, root, err) < 0)
                return -1;
        m.meta = uses_meta(vocab);
        add_words(t, &m, vocab);
        if (!t->words.n)
                return err_set(
                        err, E_INVALID,
                        "its vocabulary has no words: no entries of a blank and lower-case letters alone");
        json_foreach (entry, vocab) {
                if (m.meta)
                        add_meta_piece(t, piece_of(entry));
                else
                        add_byte_piece(t, piece_of(entry));
        }
        /* SentencePiece puts a blank before the text by itself. */
        if (m.meta && !t->firsts.n)
                for (size_t i = 0; i < t->words.n; i++)
                        tokens_allow_first(t, t->words.v[i]);
        t->lead = !t->firsts.n;
        t->lead_is_token = m.meta;
        return 0;
}
