/*
 * A packed value is a head, and then its bytes or its children. The head's first byte has the kind in its upper three
 * bits and the length (of texts in bytes, of containers in children) in the lower five, or how many bytes it takes.
 * A member has its name before its value: the number in one byte, or in two, or NAME_WRITTEN and the name as a text.
 */
#include "json/pack.h"
#include "json/internal.h"

enum kind { WORD, NUMBER, STRING, STRING_WITH_NUL, ARRAY, OBJECT };
enum word { WORD_NULL, WORD_FALSE, WORD_TRUE };

enum {
        KIND_SHIFT = 5,
        LENGTH_1 = 29, /* one more byte has the length */
        LENGTH_2,
        LENGTH_4,

        NAME_LONG = 0xF0, /* from here on the number has a second byte */
        NAME_WRITTEN = 0xFF,
        NAMES_MAX = NAME_LONG + (NAME_WRITTEN - NAME_LONG) * 256,
        NAME_LENGTH_MAX = 64,
};

struct name {
        const char *text;
        uint32_t len;
        uint32_t next; /* the number of the name that came after this one last time */
};

struct json_names {
        VEC(struct name) list; /* the first is "" */
        struct map numbers;    /* text -> place in `list`, plus one */
        struct arena texts;
};

static uint32_t add_name(struct json_names *names, struct str text)
{
        struct name *name = vec_push(&names->list);
        uintptr_t number = names->list.n - 1;

        *name = (struct name){arena_strndup(&names->texts, text.p, text.n), (uint32_t)text.n, 0};
        map_put(&names->numbers, str_n(name->text, text.n), (void *)(number + 1));
        return (uint32_t)number;
}

struct json_names *json_names_new(void)
{
        struct json_names *names = xcalloc(1, sizeof(*names));

        add_name(names, STR(""));
        return names;
}

void json_names_free(struct json_names *names)
{
        if (!names)
                return;
        vec_done(&names->list);
        map_done(&names->numbers);
        arena_done(&names->texts);
        free(names);
}

/* ---- pack */

struct packer {
        struct json_names *names;
        struct buf *out;
        uint32_t last; /* number of the name before */
};

static void put_head(struct packer *p, enum kind kind, uint32_t length)
{
        char head[5] = {(char)(kind << KIND_SHIFT)};
        size_t more = length < LENGTH_1 ? 0 : length <= UINT8_MAX ? 1 : length <= UINT16_MAX ? 2 : 4;

        head[0] |= (char)(more == 0 ? length : more == 1 ? LENGTH_1 : more == 2 ? LENGTH_2 : LENGTH_4);
        for (size_t i = 0; i < more; i++)
                head[1 + i] = (char)(length >> (8 * i));
        if (more == 0)
                buf_addc(p->out, head[0]);
        else
                buf_add(p->out, head, 1 + more);
}

static void put_text(struct packer *p, enum kind kind, const char *text, uint32_t n)
{
        put_head(p, kind, n);
        if (n)
                buf_add(p->out, text, n);
}

/* NAMES_MAX: it has no number. Objects of one kind are alike, so the name that followed last time is tried first. */
static uint32_t name_number(struct packer *p, struct str key)
{
        struct json_names *names = p->names;
        uint32_t number = names->list.v[p->last].next;
        const struct name *guess = &names->list.v[number];

        if (!str_eq(key, str_n(guess->text, guess->len))) {
                uintptr_t found = (uintptr_t)map_get(&names->numbers, key);

                if (found)
                        number = (uint32_t)found - 1;
                else if (names->list.n < NAMES_MAX && key.n <= NAME_LENGTH_MAX)
                        number = add_name(names, key);
                else
                        return NAMES_MAX;
                names->list.v[p->last].next = number;
        }
        p->last = number;
        return number;
}

static void put_name(struct packer *p, const struct json *member)
{
        uint32_t number = name_number(p, json_key(member));

        if (number < NAME_LONG) {
                buf_addc(p->out, (char)number);
        } else if (number < NAMES_MAX) {
                buf_addc(p->out, (char)(NAME_LONG + ((number - NAME_LONG) >> 8)));
                buf_addc(p->out, (char)(number - NAME_LONG));
        } else {
                buf_addc(p->out, (char)NAME_WRITTEN);
                put_text(p, STRING, member->key, member->key_len);
        }
}

static void put_value(struct packer *p, const struct json *j)
{
        switch ((enum json_type)j->type) {
        case JSON_NULL:
                put_head(p, WORD, WORD_NULL);
                return;
        case JSON_BOOL:
                put_head(p, WORD, j->truth ? WORD_TRUE : WORD_FALSE);
                return;
        case JSON_NUMBER:
                put_text(p, NUMBER, j->text, j->len);
                return;
        case JSON_STRING:
                put_text(p, j->has_nul ? STRING_WITH_NUL : STRING, j->text, j->len);
                return;
        case JSON_ARRAY:
                put_head(p, ARRAY, j->len);
                json_foreach (child, j)
                        put_value(p, child);
                return;
        case JSON_OBJECT:
                put_head(p, OBJECT, j->len);
                json_foreach (child, j) {
                        put_name(p, child);
                        put_value(p, child);
                }
                return;
        }
}

void json_pack(struct json_names *names, const struct json *j, struct buf *out)
{
        put_value(&(struct packer){names, out, 0}, j);
}

/* ---- unpack */

struct unpacker {
        const struct json_names *names;
        const unsigned char *at;
        char *text; /* where the next one goes, with a NUL behind it */
        struct arena *arena;
};

static enum kind take_head(struct unpacker *u, uint32_t *ret_length)
{
        static const uint8_t lengths[] = {1, 2, 4};
        unsigned char first = *u->at++;
        uint32_t length = first & 0x1F;

        if (length >= LENGTH_1) {
                size_t n = lengths[length - LENGTH_1];

                length = 0;
                for (size_t i = 0; i < n; i++)
                        length |= (uint32_t)*u->at++ << (8 * i);
        }
        *ret_length = length;
        return first >> KIND_SHIFT;
}

static const char *take_text(struct unpacker *u, uint32_t n)
{
        char *text = u->text;

        memcpy(text, u->at, n);
        text[n] = '\0';
        u->at += n;
        u->text += n + 1;
        return text;
}

static struct str take_name(struct unpacker *u)
{
        uint32_t number = *u->at++, n;

        if (number == NAME_WRITTEN) {
                take_head(u, &n);
                return str_n(take_text(u, n), n);
        }
        if (number >= NAME_LONG)
                number = NAME_LONG + (((number - NAME_LONG) << 8) | *u->at++);
        return str_n(u->names->list.v[number].text, u->names->list.v[number].len);
}

static struct json *take_value(struct unpacker *u, struct str name);

static void take_children(struct unpacker *u, struct json *container, uint32_t n)
{
        for (; n; n--)
                json_attach(container,
                            take_value(u, container->type == JSON_OBJECT ? take_name(u) : STR_NULL));
}

static struct json *take_value(struct unpacker *u, struct str name)
{
        static const uint8_t types[] = {
                [WORD] = JSON_NULL,     [NUMBER] = JSON_NUMBER,
                [STRING] = JSON_STRING, [STRING_WITH_NUL] = JSON_STRING,
                [ARRAY] = JSON_ARRAY,   [OBJECT] = JSON_OBJECT,
        };
        struct json *j = arena_alloc(u->arena, sizeof(*j));
        uint32_t n;
        enum kind kind = take_head(u, &n);

        *j = (struct json){.key = name.p, .key_len = (uint32_t)name.n, .type = types[kind]};
        if (kind >= ARRAY) {
                take_children(u, j, n);
        } else if (kind != WORD) {
                j->text = take_text(u, n);
                j->len = n;
                j->has_nul = kind == STRING_WITH_NUL;
        } else if (n != WORD_NULL) {
                j->type = JSON_BOOL;
                j->truth = n == WORD_TRUE;
        }
        return j;
}

struct json *json_unpack(const struct json_names *names, struct str packed, struct arena *a)
{
        /* A text has a head of at least one byte, which makes room for its NUL. */
        struct unpacker u = {names, (const unsigned char *)packed.p, arena_alloc(a, packed.n), a};

        return take_value(&u, STR_NULL);
}
