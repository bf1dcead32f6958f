#include "probe/sla/args.h"

/* ---- words */

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The word at *AT of TEXT as a shell would read it: quotes and backslashes go. Expansions stay as they are. */
static const char *unquote(struct arena *a, const char *text, size_t *at)
{
        char *out = arena_alloc(a, strlen(text + *at) + 1), *p = out, quote = '\0';
        size_t i = *at;

        for (; text[i] && (quote || !is_blank(text[i])); i++) {
                if (quote && text[i] == quote)
                        quote = '\0';
                else if (!quote && (text[i] == '\'' || text[i] == '"'))
                        quote = text[i];
                else if (text[i] == '\\' && quote != '\'' && text[i + 1])
                        *p++ = text[++i];
                else
                        *p++ = text[i];
        }
        *p = '\0';
        *at = i;
        return out;
}

static void split(struct sla_args *args, const char *text)
{
        size_t at = 0;

        for (;;) {
                size_t start;
                const char *value;

                while (is_blank(text[at]))
                        at++;
                if (!text[at])
                        return;
                start = at;
                value = unquote(args->arena, text, &at);
                *vec_push(&args->words) = (struct sla_word){
                        value, arena_strndup(args->arena, text + start, at - start)};
        }
}

/* A piece with blanks in it is several words, unless it is a document. */
static bool is_several(const char *piece)
{
        while (is_blank(*piece))
                piece++;
        return *piece != '{' && *piece != '[' && strpbrk(piece, " \t\n\r");
}

void sla_args_load(struct arena *a, const struct json *container, struct sla_args *ret)
{
        const struct json *command = json_at(container, "command"), *list = json_at(container, "args");
        const char *last = json_is(command, JSON_ARRAY) && command->last ? json_cstr(command->last) : NULL;

        *ret = (struct sla_args){.arena = a, .shell = last && streq(last, "-c") && json_len(list) == 1};
        json_foreach (piece, list) {
                const char *text = json_cstr(piece);

                if (text && (ret->shell || is_several(text)))
                        split(ret, text);
                else if (text)
                        vec_push(&ret->words)->value = text;
        }
}

void sla_args_done(struct sla_args *args)
{
        vec_done(&args->words);
}

/* ---- back into the container */

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

void sla_args_store(const struct sla_args *args, struct json *container)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(1 << 20);
        struct json *list = json_array(args->arena);

        vec_foreach (word, &args->words) {
                if (!args->shell) {
                        json_append(list, json_string(args->arena, word->value));
                        continue;
                }
                if (line.n)
                        buf_addc(&line, ' ');
                if (word->raw)
                        buf_adds(&line, word->raw);
                else
                        add_quoted(&line, word->value);
        }
        if (args->shell)
                json_append(list, json_stringn(args->arena, buf_str(&line)));
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

/* The place of the first word that is FLAG; words.n: nowhere. */
static size_t find(const struct sla_args *args, sla_flag flag, const char **ret_value)
{
        for (size_t i = 0; i < args->words.n; i++)
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

static void insert(struct sla_args *args, size_t at, const char *word)
{
        vec_push(&args->words);
        memmove(args->words.v + at + 1, args->words.v + at,
                (args->words.n - 1 - at) * sizeof(*args->words.v));
        args->words.v[at] = (struct sla_word){.value = arena_strdup(args->arena, word)};
}

/* Before what belongs to a shell and not to the program. */
static size_t end_of_program(const struct sla_args *args)
{
        static const char *const ends[] = {"|", "2>&1", "&", "&&", "||", ";", ">", ">>"};

        for (size_t i = 0; i < args->words.n; i++)
                for (size_t k = 0; k < ARRAY_LEN(ends); k++)
                        if (streq(args->words.v[i].value, ends[k]))
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

void sla_args_drop(struct sla_args *args, sla_flag flag, bool has_value)
{
        for (;;) {
                const char *value = NULL;
                size_t at = find(args, flag, &value);

                if (at == args->words.n)
                        return;
                remove_words(args, at, has_value && !value ? 2 : 1);
        }
}

void sla_args_set(struct sla_args *args, sla_flag flag, const char *value)
{
        const char *old;
        size_t at = find(args, flag, &old);

        if (at < args->words.n)
                sla_args_drop(args, flag, true);
        at = MIN(at, end_of_program(args));
        insert(args, at, flag[0]);
        insert(args, at + 1, value);
}

void sla_args_turn_on(struct sla_args *args, sla_flag flag)
{
        if (!sla_args_has(args, flag))
                insert(args, end_of_program(args), flag[0]);
}
