#include "probe/sla/args.h"

/* ---- words of a shell's line */

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_operator(char c)
{
        return c && strchr(";|&<>", c);
}

/* How long the blanks at TEXT are: comments and ends of lines that go on are such. */
static size_t blanks(const char *text)
{
        size_t i = 0;

        for (;;) {
                if (is_blank(text[i]))
                        i++;
                else if (text[i] == '\\' && text[i + 1] == '\n')
                        i += 2;
                else if (text[i] == '#')
                        i += strcspn(text + i, "\n");
                else
                        return i;
        }
}

/* How long the operator at TEXT is, with the number of a descriptor before it and behind it; 0: there is none. */
static size_t operator_at(const char *text)
{
        size_t digits = strspn(text, "0123456789"), i = digits;

        if (!is_operator(text[i]) || (digits && text[i] != '<' && text[i] != '>'))
                return 0;
        while (is_operator(text[i]))
                i++;
        if (text[i - 1] == '&' && i - digits > 1 && text[i - 2] != '&') /* 2>&1, not a && 1 */
                i += strspn(text + i, "0123456789-");
        return i;
}

static bool ends_in_shell(char c)
{
        return is_blank(c) || is_operator(c);
}

/* Whether a backslash before C is taken off by a shell. */
static bool is_escaped(char quote, char c)
{
        return c && quote != '\'' && (quote != '"' || strchr("$`\"\\\n", c));
}

/* The word at *AT of TEXT as a shell would read it: quotes and backslashes go. Expansions stay as they are. */
static const char *unquote(struct arena *a, const char *text, size_t *at, bool (*ends)(char))
{
        char *out = arena_alloc(a, strlen(text + *at) + 1), *p = out, quote = '\0';
        size_t i = *at,
               opened = 0; /* $( that are not yet closed: blanks and operators in them are the word's */

        for (; text[i] && (quote || opened || !ends(text[i])); i++) {
                char c = text[i];

                if (quote && c == quote) {
                        quote = '\0';
                } else if (!quote && (c == '\'' || c == '"')) {
                        quote = c;
                } else if (c == '\\' && is_escaped(quote, text[i + 1])) {
                        if (text[++i] != '\n')
                                *p++ = text[i];
                } else {
                        if (quote != '\'' && c == '(' && i > *at && text[i - 1] == '$')
                                opened++;
                        else if (!quote && c == ')' && opened)
                                opened--;
                        *p++ = c;
                }
        }
        *p = '\0';
        *at = i;
        return out;
}

static void split_line(struct sla_args *args, const char *text)
{
        size_t at = 0;

        for (;;) {
                size_t before = at, start = at += blanks(text + at), operator;
                struct sla_word word = {.before = arena_strndup(args->arena, text + before, at - before)};

                if (!text[at]) {
                        args->tail = word.before;
                        return;
                }
                operator= operator_at(text + at);
                if (operator)
                        at += operator;
                else
                        word.value = unquote(args->arena, text, &at, ends_in_shell);
                word.raw = arena_strndup(args->arena, text + start, at - start);
                word.ends = operator> 0;
                if (word.ends)
                        word.value = word.raw;
                *vec_push(&args->words) = word;
        }
}

/* ---- pieces of a list */

/* "--flag value --switch" in one piece: it begins with a flag, and a blank ends its name. */
static bool is_several(const char *piece)
{
        return *piece == '-' && is_blank(piece[strcspn(piece, " \t\n\r={[\"'")]);
}

/* A document is one word, whatever is in it. */
static void split_piece(struct sla_args *args, const char *text)
{
        size_t at = 0;

        for (;;) {
                while (is_blank(text[at]))
                        at++;
                if (!text[at])
                        return;
                if (text[at] == '{' || text[at] == '[') {
                        vec_push(&args->words)->value = text + at;
                        return;
                }
                vec_push(&args->words)->value = unquote(args->arena, text, &at, is_blank);
        }
}

/* ---- shells */

static bool is_shell(const char *word)
{
        static const char *const shells[] = {"sh", "bash", "dash", "ash", "zsh", "ksh"};
        const char *slash = word ? strrchr(word, '/') : NULL;

        for (size_t i = 0; word && i < ARRAY_LEN(shells); i++)
                if (streq(slash ? slash + 1 : word, shells[i]))
                        return true;
        return false;
}

/* -c, -lc, -ec: what follows is a line. */
static bool is_line_flag(const char *word)
{
        size_t n = strlen(word);

        return n > 1 && word[0] == '-' && word[1] != '-' && word[n - 1] == 'c';
}

/* The place of a shell's -c in LIST; json_len(): it has none. *SHELL: the word before the list is a shell or its option. */
static size_t line_flag(const struct json *list, bool *shell)
{
        size_t i = 0;

        json_foreach (word, list) {
                const char *text = json_cstr(word);

                if (*shell && text && is_line_flag(text))
                        return i;
                *shell = is_shell(text) || (*shell && text && text[0] == '-');
                i++;
        }
        return i;
}

int sla_args_check(const struct json *container, struct err *err)
{
        const struct json *command = json_at(container, "command"), *list = json_at(container, "args");
        bool shell = false;
        size_t at = line_flag(command, &shell);

        if ((command && !json_is(command, JSON_ARRAY) && !json_is(command, JSON_NULL)) ||
            (list && !json_is(list, JSON_ARRAY) && !json_is(list, JSON_NULL)))
                return err_set(err, E_CONFIG, "its command and args must be lists");
        if (at + 1 < json_len(command) ||
            (at == json_len(command) && line_flag(list, &shell) < json_len(list)))
                return err_set(
                        err, E_CONFIG,
                        "the line of its shell is not alone in args: write command: [sh, -c] and args: "
                        "[\"the line\"]");
        if (at + 1 == json_len(command) && (json_len(list) != 1 || !json_cstr(json_first(list))))
                return err_set(err, E_CONFIG, "its shell needs one line in args, and has %zu",
                               json_len(list));
        return 0;
}

/* ---- in and out */

void sla_args_load(struct arena *a, const struct json *container, struct sla_args *ret)
{
        const struct json *command = json_at(container, "command"), *list = json_at(container, "args");
        bool shell = false;

        *ret = (struct sla_args){
                .arena = a, .tail = "", .shell = line_flag(command, &shell) + 1 == json_len(command)};
        json_foreach (piece, list) {
                const char *text = json_cstr(piece);

                if (!text)
                        continue;
                if (ret->shell)
                        split_line(ret, text);
                else if (is_several(text))
                        split_piece(ret, text);
                else
                        vec_push(&ret->words)->value = text;
        }
}

void sla_args_done(struct sla_args *args)
{
        vec_done(&args->words);
}

static bool needs_quotes(const char *word)
{
        return !*word || word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                           "-_=+./:,@%^")];
}

static void add_quoted(struct buf *line, const char *word)
{
        if (!needs_quotes(word)) {
                buf_adds(line, word);
                return;
        }
        buf_addc(line, '\'');
        for (; *word; word++)
                if (*word == '\'')
                        buf_adds(line, "'\\''");
                else
                        buf_addc(line, *word);
        buf_addc(line, '\'');
}

static const char *line_of(const struct sla_args *args)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(SIZE_MAX);

        vec_foreach (word, &args->words) {
                buf_adds(&line, word->before ? word->before : line.n ? " " : "");
                if (word->raw)
                        buf_adds(&line, word->raw);
                else
                        add_quoted(&line, word->value);
        }
        buf_adds(&line, args->tail);
        return arena_strndup(args->arena, line.p ? line.p : "", line.n);
}

void sla_args_store(const struct sla_args *args, struct json *container)
{
        struct json *list = json_array(args->arena);

        if (args->shell)
                json_append(list, json_string(args->arena, line_of(args)));
        else
                vec_foreach (word, &args->words)
                        json_append(list, json_string(args->arena, word->value));
        json_set(args->arena, container, "args", list);
}

/* ---- flags */

/* WORD is NAME or NAME=...; RET_VALUE: what stands behind =, or NULL. */
static bool is_named(const char *word, const char *name, const char **ret_value)
{
        size_t n = strlen(name);

        if (strncmp(word, name, n) != 0 || (word[n] && word[n] != '='))
                return false;
        *ret_value = word[n] ? word + n + 1 : NULL;
        return true;
}

/* The module in a shell's line, before which other programs may run; 0: it has none. */
static size_t module_at(const struct sla_args *args)
{
        for (size_t i = 0; args->shell && i < args->words.n; i++)
                if (str_has_prefix(str_of(args->words.v[i].value), STR("dynamo.")))
                        return i;
        return 0;
}

/* The place of the first word that is FLAG; words.n: nowhere. */
static size_t find(const struct sla_args *args, sla_flag flag, const char **ret_value)
{
        for (size_t i = module_at(args); i < args->words.n; i++)
                for (size_t k = 0; flag[k]; k++)
                        if (is_named(args->words.v[i].value, flag[k], ret_value))
                                return i;
        return args->words.n;
}

static void remove_words(struct sla_args *args, size_t at, size_t n)
{
        n = MIN(n, args->words.n - at);
        memmove(args->words.v + at, args->words.v + at + n,
                (args->words.n - at - n) * sizeof(*args->words.v));
        args->words.n -= n;
}

/* BEFORE: blanks; NULL: the usual one. */
static void insert(struct sla_args *args, size_t at, const char *before, const char *word)
{
        vec_push(&args->words);
        memmove(args->words.v + at + 1, args->words.v + at,
                (args->words.n - 1 - at) * sizeof(*args->words.v));
        args->words.v[at] = (struct sla_word){.value = arena_strdup(args->arena, word), .before = before};
}

/* A line ends in front of WORD: a newline in its blanks that is not escaped; in a comment nothing is. */
static bool begins_line(const struct sla_word *word)
{
        bool comment = false;

        for (const char *p = word->before; p && *p; p++) {
                comment = comment || *p == '#';
                if (*p == '\n' && (comment || p == word->before || p[-1] != '\\'))
                        return true;
        }
        return false;
}

/* Behind a word that is surely the program's: its module, or its model. */
static size_t surely_inside(const struct sla_args *args)
{
        static const char *const model[] = {"--model", "--model-path", NULL};
        const char *value;
        size_t module = module_at(args), at = module ? module : find(args, model, &value);

        return at == args->words.n ? 0 : at + 1;
}

/* Before what belongs to a shell and not to the program. */
static size_t end_of_program(const struct sla_args *args)
{
        if (!args->shell)
                return args->words.n;
        for (size_t i = surely_inside(args); i < args->words.n; i++)
                if (args->words.v[i].ends || (i && begins_line(&args->words.v[i])))
                        return i;
        return args->words.n;
}

bool sla_args_has(const struct sla_args *args, sla_flag flag)
{
        const char *value;

        return find(args, flag, &value) < args->words.n;
}

const char *sla_args_get(const struct sla_args *args, sla_flag flag)
{
        const char *value = NULL;
        size_t at = find(args, flag, &value);

        if (value || at + 1 >= args->words.n)
                return value;
        return args->words.v[at + 1].value;
}

/* The words that the flag at AT is: itself, and its value if that is a word of its own. */
static size_t width(const struct sla_args *args, size_t at, const char *value, bool has_value)
{
        return has_value && !value && at + 1 < args->words.n && !args->words.v[at + 1].ends ? 2 : 1;
}

void sla_args_drop(struct sla_args *args, sla_flag flag, bool has_value)
{
        for (;;) {
                const char *value = NULL;
                size_t at = find(args, flag, &value);

                if (at == args->words.n)
                        return;
                remove_words(args, at, width(args, at, value, has_value));
        }
}

void sla_args_set(struct sla_args *args, sla_flag flag, const char *value)
{
        const char *old, *before = NULL;
        size_t at = find(args, flag, &old);

        if (at < args->words.n) {
                before = args->words.v[at].before;
                sla_args_drop(args, flag, true);
        } else {
                at = end_of_program(args);
        }
        insert(args, at, before, flag[0]);
        insert(args, at + 1, NULL, value);
}

void sla_args_turn_on(struct sla_args *args, sla_flag flag)
{
        if (!sla_args_has(args, flag))
                insert(args, end_of_program(args), NULL, flag[0]);
}
