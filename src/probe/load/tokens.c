#include "probe/load/tokens_internal.h"

static const enum tokens_start starts[] = {TOKENS_INSIDE, TOKENS_ANYWHERE};

struct tokens *tokens_new(const char *name)
{
        struct tokens *t = xcalloc(1, sizeof(*t));

        t->name = xstrdup(name);
        return t;
}

void tokens_free(struct tokens *t)
{
        if (!t)
                return;
        map_done(&t->known);
        map_done(&t->pieces);
        vec_done(&t->words);
        vec_done(&t->firsts);
        arena_done(&t->arena);
        free(t->name);
        free(t);
}

const char *tokens_name(const struct tokens *t)
{
        return t->name;
}

bool tokens_add_word(struct tokens *t, struct str word, enum tokens_start start)
{
        struct str own;

        if (map_get(&t->known, word))
                return false;
        own = str_n(arena_strndup(&t->arena, word.p, word.n), word.n);
        map_put(&t->known, own, (void *)&starts[TOKENS_INSIDE]);
        *vec_push(&t->words) = own;
        if (start == TOKENS_ANYWHERE)
                tokens_allow_first(t, own);
        return true;
}

void tokens_allow_first(struct tokens *t, struct str word)
{
        map_put(&t->known, word, (void *)&starts[TOKENS_ANYWHERE]);
        *vec_push(&t->firsts) = word;
}

void tokens_add_piece(struct tokens *t, struct str text)
{
        struct str own;

        if (!text.n || text.n > TOKENS_PIECE_LEN || map_get(&t->pieces, text))
                return;
        own = str_n(arena_strndup(&t->arena, text.p, text.n), text.n);
        map_put(&t->pieces, own, (void *)own.p);
        t->longest = MAX(t->longest, own.n);
}

/* ---- load */

static void read_builtin(struct tokens *t)
{
        struct str rest = str_of(tokens_builtin());

        while (rest.n)
                (void)tokens_add_word(t, str_split(&rest, ' '), TOKENS_ANYWHERE);
}

static bool is_word(struct str word)
{
        if (!word.n || word.n > TOKENS_WORD_LEN || !utf8_valid(word.p, word.n))
                return false;
        for (size_t i = 0; i < word.n; i++)
                if ((unsigned char)word.p[i] <= ' ' || word.p[i] == 0x7f)
                        return false;
        return true;
}

int tokens_read_list(struct tokens *t, struct str text, struct err *err)
{
        for (unsigned line = 1; text.n; line++) {
                struct str word = str_trim(str_split(&text, '\n'));

                if (!word.n)
                        continue;
                if (!is_word(word))
                        return err_set(err, E_INVALID, "line %u is not one word of at most %d bytes", line,
                                       TOKENS_WORD_LEN);
                if (t->words.n == TOKENS_LIST_MAX)
                        return err_set(err, E_TOO_LARGE, "more than %d words", TOKENS_LIST_MAX);
                (void)tokens_add_word(t, word, TOKENS_ANYWHERE);
        }
        if (!t->words.n)
                return err_set(err, E_INVALID, "there is not a word in it");
        return 0;
}

static int read_file_of(struct tokens *t, const char *path, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(TOKENS_FILE_MAX);

        if (file_read(path, &text, err) < 0)
                return -1;
        if (!str_has_suffix(str_of(path), STR(".json")))
                return tokens_read_list(t, buf_str(&text), err);
        text.max++;
        if (!buf_reserve(&text, 1))
                return err_set(err, E_TOO_LARGE, "more than %d bytes", TOKENS_FILE_MAX);
        return tokens_read_tokenizer(t, text.p, text.n, err);
}

struct tokens *tokens_load(const char *path, struct err *err)
{
        _cleanup_(tokens_free) struct tokens *t = NULL;
        const char *slash = path ? strrchr(path, '/') : NULL;

        t = tokens_new(!path ? "builtin" : slash ? slash + 1 : path);
        if (!path)
                read_builtin(t);
        else if (read_file_of(t, path, err) < 0) {
                (void)err_wrap(err, "tokenizer %s", path);
                return NULL;
        }
        return TAKE_PTR(t);
}

/* ---- prompts */

void tokens_prompt(const struct tokens *t, struct rng *rng, uint32_t n, struct buf *out)
{
        for (uint32_t i = 0; i < n; i++) {
                bool first = !i && !t->lead;

                if (!first)
                        buf_addc(out, ' ');
                buf_addstr(out, first ? t->firsts.v[rng_below(rng, t->firsts.n)]
                                      : t->words.v[rng_below(rng, t->words.n)]);
        }
}

/* ---- counts */

/* Words that are known with one blank between any two of them. */
static bool count_words(const struct tokens *t, struct str text, uint64_t *ret)
{
        bool start = true;
        uint64_t n = 0;

        if (text.n && text.p[0] == ' ') {
                if (t->lead_is_token)
                        return false;
                text = str_n(text.p + 1, text.n - 1);
                if (!text.n)
                        return false;
                start = false;
        }
        while (text.p && text.n) {
                const enum tokens_start *where = map_get(&t->known, str_split(&text, ' '));

                if (!where || (start && *where != TOKENS_ANYWHERE))
                        return false;
                if (text.p && !text.n) /* it ended with a blank */
                        return false;
                start = false;
                n++;
        }
        *ret = n;
        return true;
}

/* By the longest pieces that fit; a byte that is in none is a token. */
static uint64_t estimate_by_pieces(const struct tokens *t, struct str text)
{
        uint64_t n = 0;

        for (size_t at = 0; at < text.n; n++) {
                size_t len = MIN(t->longest, text.n - at);

                while (len > 1 && !map_get(&t->pieces, str_n(text.p + at, len)))
                        len--;
                at += MAX(len, (size_t)1);
        }
        return n;
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static size_t run_of(struct str text, size_t at, bool (*is)(char))
{
        size_t end = at;

        while (end < text.n && is(text.p[end]))
                end++;
        return end - at;
}

/* Without a vocabulary: a known word is one token, an unknown one has one for four letters, a number one for three digits,
 * and all else one a character. A blank belongs to the word behind it. */
static uint64_t estimate_by_shape(const struct tokens *t, struct str text)
{
        uint64_t n = 0;

        for (size_t at = 0; at < text.n;) {
                size_t letters = run_of(text, at, is_letter), digits = run_of(text, at, is_digit);
                unsigned char c = (unsigned char)text.p[at];

                if (letters)
                        n += map_get(&t->known, str_n(text.p + at, letters)) ? 1 : (letters + 3) / 4;
                else if (digits)
                        n += (digits + 2) / 3;
                else
                        n += c == ' ' ? at + 1 < text.n && text.p[at + 1] == ' ' : (c & 0xc0) != 0x80;
                at += MAX(letters + digits, (size_t)1);
        }
        return n;
}

uint64_t tokens_count(const struct tokens *t, struct str text, bool *ret_exact)
{
        uint64_t n = 0;
        bool exact = count_words(t, text, &n);

        if (ret_exact)
                *ret_exact = exact;
        if (exact)
                return n;
        return t->pieces.n ? estimate_by_pieces(t, text) : estimate_by_shape(t, text);
}
