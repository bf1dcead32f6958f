/*
 * libyaml's events become nodes in one pass. Depth is checked at every event, before libyaml can go deeper: its
 * scanner looks at most 1024 characters ahead of the events it has given, so nesting costs it nothing more.
 */
#include "json/yaml.h"

#include <yaml.h>

#include "json/internal.h"
#include "json/yaml_scalar.h"

enum {
        DEPTH_MAX = 100,
        ALIAS_NODES_MAX = 100000, /* made by aliases, over all documents of a text */
        TAG_DIRECTIVES_MAX = 64,  /* libyaml compares each with all before it */
};

#define TAG_PREFIX "tag:yaml.org,2002:"

struct anchor {
        struct json *node;
        bool open; /* its value has not ended yet */
        char name[];
};

struct reader {
        struct arena *arena;
        yaml_parser_t parser;
        yaml_event_t event;
        struct map anchors; /* of the current document, to struct anchor */
        const struct json_limits *limits;
        unsigned depth, depth_max;
        size_t nodes, alias_nodes, alias_bytes;
        bool syntax; /* the failure was libyaml's */
        struct err *err;
};

static int fail_at(struct reader *r, yaml_mark_t at, enum err_code code, const char *fmt, ...) _printf_(4, 5);
static int fail_at(struct reader *r, yaml_mark_t at, enum err_code code, const char *fmt, ...)
{
        _cleanup_(arena_done) struct arena scratch = ARENA_INIT;
        va_list ap;

        va_start(ap, fmt);
        err_set(r->err, code, "%zu:%zu: %s", at.line + 1, at.column + 1, arena_vprintf(&scratch, fmt, ap));
        va_end(ap);
        return -1;
}

#define fail_at(...)      ERR_CALL_(fail_at(__VA_ARGS__))
#define fail_here(r, ...) fail_at((r), (r)->event.start_mark, __VA_ARGS__)

/* ---- events */

/* The reader knows only how many bytes it had seen. */
static yaml_mark_t mark_of_offset(struct str text, size_t offset)
{
        yaml_mark_t mark = {0};

        for (size_t i = 0; i < MIN(offset, text.n); i++)
                if (text.p[i] == '\n') {
                        mark.line++;
                        mark.column = 0;
                } else if ((text.p[i] & 0xC0) != 0x80) {
                        mark.column++;
                }
        return mark;
}

static int fail_parser(struct reader *r)
{
        const yaml_parser_t *p = &r->parser;
        const char *problem = p->problem ? p->problem : "cannot be read";
        yaml_mark_t mark = p->problem_mark;

        if (p->error == YAML_MEMORY_ERROR)
                return err_set(r->err, E_INTERNAL, "out of memory");
        r->syntax = true;
        if (p->error == YAML_READER_ERROR)
                mark = mark_of_offset(str_n((const char *)p->input.string.start,
                                            (size_t)(p->input.string.end - p->input.string.start)),
                                      p->problem_offset);
        return fail_at(r, mark, E_INVALID, "%s", problem);
}

static int next_event(struct reader *r)
{
        yaml_event_delete(&r->event);
        return yaml_parser_parse(&r->parser, &r->event) ? 0 : fail_parser(r);
}

/* ---- nodes */

static struct json *new_node(struct reader *r, enum json_type type)
{
        struct json *j;

        if (++r->nodes > r->limits->nodes) {
                fail_here(r, E_TOO_LARGE, "more than %zu values", r->limits->nodes);
                return NULL;
        }
        j = arena_new(r->arena, struct json);
        j->type = (uint8_t)type;
        j->line = (uint32_t)MIN(r->event.start_mark.line + 1, (size_t)UINT32_MAX);
        j->column = (uint16_t)MIN(r->event.start_mark.column + 1, (size_t)UINT16_MAX);
        return j;
}

/* Gives the member MEMBER the value of FROM; its name and its place stay. */
static void replace_value(struct json *member, const struct json *from)
{
        struct json old = *member;

        *member = *from;
        member->next = old.next;
        member->key = old.key;
        member->key_len = old.key_len;
}

/* ---- anchors and aliases */

static struct anchor *open_anchor(struct reader *r, const yaml_char_t *name)
{
        size_t n;
        struct anchor *anchor;

        if (!name)
                return NULL;
        n = strlen((const char *)name);
        anchor = arena_zalloc(r->arena, sizeof(*anchor) + n + 1);
        anchor->open = true;
        memcpy(anchor->name, name, n);
        map_put(&r->anchors, str_n(anchor->name, n), anchor);
        return anchor;
}

static void close_anchor(struct anchor *anchor, struct json *node)
{
        if (anchor) {
                anchor->node = node;
                anchor->open = false;
        }
}

/* A deep copy that shares the text; counts what it makes. */
static struct json *copy_alias(struct reader *r, const struct json *from, unsigned depth)
{
        bool container = from->type >= JSON_ARRAY;
        struct json *j;

        if (container && depth >= r->depth_max) {
                fail_here(r, E_TOO_LARGE, "nested deeper than %u", r->depth_max);
                return NULL;
        }
        r->alias_bytes += from->key_len + (from->type == JSON_STRING ? from->len : 0);
        if (++r->alias_nodes > ALIAS_NODES_MAX || r->alias_bytes > r->limits->bytes) {
                fail_here(r, E_TOO_LARGE, "the aliases expand to too much");
                return NULL;
        }
        j = new_node(r, from->type);
        if (!j)
                return NULL;
        *j = *from;
        j->next = NULL;
        if (!container)
                return j;
        j->last = NULL;
        j->len = 0;
        json_foreach (child, from) {
                struct json *copy = copy_alias(r, child, depth + 1);

                if (!copy)
                        return NULL;
                json_attach(j, copy);
        }
        return j;
}

static struct json *read_alias(struct reader *r)
{
        const char *name = (const char *)r->event.data.alias.anchor;
        struct anchor *anchor = map_get(&r->anchors, str_of(name));
        struct json *j;

        if (!anchor) {
                fail_here(r, E_INVALID, "unknown anchor '%s'", name);
                return NULL;
        }
        if (anchor->open) {
                fail_here(r, E_INVALID, "the value of anchor '%s' contains itself", name);
                return NULL;
        }
        j = copy_alias(r, anchor->node, r->depth);
        if (!j)
                return NULL;
        j->key = NULL;
        j->key_len = 0;
        j->line = (uint32_t)MIN(r->event.start_mark.line + 1, (size_t)UINT32_MAX);
        j->column = (uint16_t)MIN(r->event.start_mark.column + 1, (size_t)UINT16_MAX);
        return j;
}

/* ---- scalars */

static int resolve_binary(struct reader *r, struct str text, struct yaml_value *ret)
{
        _cleanup_(buf_done) struct buf raw = BUF_INIT(text.n + 1);

        if (memchr(text.p, ' ', text.n) || !buf_add_unbase64(&raw, text))
                return fail_here(r, E_INVALID, "!!binary value contains invalid base64 data");
        ret->kind = YAML_KIND_STR;
        ret->text = raw.n ? json_text(json_stringn(r->arena, buf_str(&raw))) : STR("");
        return 0;
}

/* A scalar with a tag is what its text says, and must be what its tag says. */
static int resolve_tagged(struct reader *r, const char *tag, struct str text, struct yaml_value *ret)
{
        static const struct {
                const char *name;
                enum yaml_kind kind;
        } tags[] = {
                {"int", YAML_KIND_INT},
                {"float", YAML_KIND_FLOAT},
                {"bool", YAML_KIND_BOOL},
                {"null", YAML_KIND_NULL},
        };
        struct str name = str_of(tag);

        if (streq(tag, "!")) {
                *ret = (struct yaml_value){.kind = YAML_KIND_STR, .text = text};
                return 0;
        }
        if (!str_has_prefix(name, STR(TAG_PREFIX)))
                return fail_here(r, E_INVALID, "tag %s is not supported", tag);
        tag += strlen(TAG_PREFIX);
        if (streq(tag, "binary"))
                return resolve_binary(r, text, ret);
        if (streq(tag, "str")) {
                *ret = (struct yaml_value){.kind = YAML_KIND_STR, .text = text};
                return 0;
        }
        *ret = yaml_resolve(r->arena, text);
        for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
                if (!streq(tag, tags[i].name))
                        continue;
                if (tags[i].kind == ret->kind ||
                    (tags[i].kind == YAML_KIND_FLOAT &&
                     (ret->kind == YAML_KIND_INT || ret->kind == YAML_KIND_SPECIAL)))
                        return 0;
                return fail_here(r, E_INVALID, "cannot read `%.*s` as a !!%s", STR_ARG(text), tag);
        }
        return fail_here(r, E_INVALID, "tag !!%s is not supported", tag);
}

/* TEXT of the result lives in the arena. */
static int resolve_scalar(struct reader *r, struct yaml_value *ret)
{
        const char *tag = (const char *)r->event.data.scalar.tag;
        size_t n = r->event.data.scalar.length;
        struct str text = {arena_strndup(r->arena, (const char *)r->event.data.scalar.value, n), n};

        if (n > UINT32_MAX)
                return fail_here(r, E_TOO_LARGE, "string too long");
        if (tag)
                return resolve_tagged(r, tag, text, ret);
        if (r->event.data.scalar.plain_implicit)
                *ret = yaml_resolve(r->arena, text);
        else
                *ret = (struct yaml_value){.kind = YAML_KIND_STR, .text = text};
        return 0;
}

static struct json *read_scalar(struct reader *r)
{
        static const uint8_t types[] = {
                [YAML_KIND_NULL] = JSON_NULL,    [YAML_KIND_BOOL] = JSON_BOOL,  [YAML_KIND_INT] = JSON_NUMBER,
                [YAML_KIND_FLOAT] = JSON_NUMBER, [YAML_KIND_STR] = JSON_STRING,
        };
        struct anchor *anchor = open_anchor(r, r->event.data.scalar.anchor);
        struct yaml_value value;
        struct json *j;

        if (resolve_scalar(r, &value) < 0)
                return NULL;
        if (value.kind == YAML_KIND_SPECIAL) {
                fail_here(r, E_INVALID, "%.*s cannot be said in JSON", STR_ARG(value.text));
                return NULL;
        }
        j = new_node(r, types[value.kind]);
        if (!j)
                return NULL;
        if (j->type == JSON_BOOL) {
                j->truth = value.truth;
        } else if (j->type != JSON_NULL) {
                j->text = value.text.p;
                j->len = (uint32_t)value.text.n;
                j->has_nul = j->type == JSON_STRING && memchr(value.text.p, '\0', value.text.n);
        }
        close_anchor(anchor, j);
        return j;
}

/* ---- containers */

static struct json *read_node(struct reader *r);

static int enter(struct reader *r, const yaml_char_t *tag, const char *expected)
{
        if (tag && !streq((const char *)tag, "!") && !streq((const char *)tag, expected))
                return fail_here(r, E_INVALID, "tag %s is not supported", (const char *)tag);
        if (r->depth >= r->depth_max)
                return fail_here(r, E_TOO_LARGE, "nested deeper than %u", r->depth_max);
        r->depth++;
        return 0;
}

static struct json *read_sequence(struct reader *r)
{
        struct anchor *anchor = open_anchor(r, r->event.data.sequence_start.anchor);
        struct json *array;

        if (enter(r, r->event.data.sequence_start.tag, TAG_PREFIX "seq") < 0)
                return NULL;
        array = new_node(r, JSON_ARRAY);
        if (!array)
                return NULL;
        for (;;) {
                struct json *child;

                if (next_event(r) < 0)
                        return NULL;
                if (r->event.type == YAML_SEQUENCE_END_EVENT)
                        break;
                child = read_node(r);
                if (!child)
                        return NULL;
                json_attach(array, child);
        }
        r->depth--;
        close_anchor(anchor, array);
        return array;
}

/* Members of one mapping while it is read. */
struct members {
        struct json *object;
        struct map all;    /* name to member */
        struct map merged; /* those that came through << and were not written here */
};

static void members_done(struct members *m)
{
        map_done(&m->all);
        map_done(&m->merged);
}
DEFINE_CLEANUP_STRUCT(struct members, members_done)

static void add_member(struct members *m, struct json *value)
{
        json_attach(m->object, value);
        map_put(&m->all, str_n(value->key, value->key_len), value);
}

/* In go-yaml what stands further down wins, also a << over a member written above it. */
static void merge_object(struct members *m, struct json *source)
{
        struct json *next;

        for (struct json *child = json_first(source); child; child = next) {
                struct str key = str_n(child->key, child->key_len);
                struct json *there = map_get(&m->all, key);

                next = json_next(source, child);
                if (there) {
                        replace_value(there, child);
                        continue;
                }
                add_member(m, child);
                map_put(&m->merged, key, child);
        }
}

/* The elements of SOURCE from the last to the first: earlier ones take precedence. */
static int merge_array(struct reader *r, struct members *m, struct json *source)
{
        VEC(struct json *) maps = {0};
        bool valid = true;

        json_foreach (child, source) {
                valid = valid && child->type == JSON_OBJECT;
                *vec_push(&maps) = child;
        }
        for (size_t i = maps.n; valid && i > 0; i--)
                merge_object(m, maps.v[i - 1]);
        vec_done(&maps);
        return valid ? 0 : -1;
}

static int read_merge(struct reader *r, struct members *m)
{
        yaml_mark_t at;
        bool alias;
        struct json *source;

        if (next_event(r) < 0)
                return -1;
        at = r->event.start_mark;
        alias = r->event.type == YAML_ALIAS_EVENT;
        source = read_node(r);
        if (!source)
                return -1;
        if (source->type == JSON_OBJECT) {
                merge_object(m, source);
                return 0;
        }
        if (source->type == JSON_ARRAY && !alias && merge_array(r, m, source) == 0)
                return 0;
        return fail_at(r, at, E_INVALID, "map merge requires map or sequence of maps as the value");
}

static bool is_merge_key(const yaml_event_t *e)
{
        const char *tag = (const char *)e->data.scalar.tag;

        return e->type == YAML_SCALAR_EVENT && e->data.scalar.length == 2 &&
               memcmp(e->data.scalar.value, "<<", 2) == 0 &&
               (e->data.scalar.plain_implicit || streq(tag, TAG_PREFIX "merge"));
}

/* An alias may stand for a key: it is then what its value would be as a key. */
static int alias_key(struct reader *r, struct str *ret)
{
        struct json *j = read_alias(r);

        if (!j)
                return -1;
        switch (j->type) {
        case JSON_STRING:
                *ret = json_text(j);
                return 0;
        case JSON_BOOL:
                *ret = j->truth ? STR("true") : STR("false");
                return 0;
        case JSON_NUMBER: {
                struct yaml_value value = yaml_resolve(r->arena, str_n(j->text, j->len));

                *ret = yaml_key(r->arena, &value);
                return 0;
        }
        default:
                *ret = STR_NULL;
                return 0;
        }
}

static int read_key(struct reader *r, struct str *ret)
{
        struct yaml_value value;

        if (r->event.type == YAML_ALIAS_EVENT) {
                if (alias_key(r, ret) < 0)
                        return -1;
        } else if (r->event.type == YAML_SCALAR_EVENT) {
                if (r->event.data.scalar.anchor && !read_scalar(r))
                        return -1;
                if (resolve_scalar(r, &value) < 0)
                        return -1;
                *ret = yaml_key(r->arena, &value);
        } else {
                *ret = STR_NULL;
        }
        return ret->p ? 0 : fail_here(r, E_INVALID, "a key must be a string");
}

static int read_member(struct reader *r, struct members *m)
{
        yaml_mark_t at = r->event.start_mark;
        struct str key;
        struct json *value, *there;

        if (is_merge_key(&r->event))
                return read_merge(r, m);
        if (read_key(r, &key) < 0)
                return -1;
        there = map_get(&m->all, key);
        if (there && !map_remove(&m->merged, key))
                return fail_at(r, at, E_INVALID, "key \"%.*s\" is there twice", STR_ARG(key));
        if (next_event(r) < 0)
                return -1;
        value = read_node(r);
        if (!value)
                return -1;
        if (there) {
                replace_value(there, value);
                return 0;
        }
        value->key = key.p;
        value->key_len = (uint32_t)key.n;
        add_member(m, value);
        return 0;
}

static struct json *read_mapping(struct reader *r)
{
        _cleanup_(members_done) struct members m = {0};
        struct anchor *anchor = open_anchor(r, r->event.data.mapping_start.anchor);

        if (enter(r, r->event.data.mapping_start.tag, TAG_PREFIX "map") < 0)
                return NULL;
        m.object = new_node(r, JSON_OBJECT);
        if (!m.object)
                return NULL;
        for (;;) {
                if (next_event(r) < 0)
                        return NULL;
                if (r->event.type == YAML_MAPPING_END_EVENT)
                        break;
                if (read_member(r, &m) < 0)
                        return NULL;
        }
        r->depth--;
        close_anchor(anchor, m.object);
        return m.object;
}

/* The node that the current event begins; NULL: error. */
static struct json *read_node(struct reader *r)
{
        switch (r->event.type) {
        case YAML_SCALAR_EVENT:
                return read_scalar(r);
        case YAML_ALIAS_EVENT:
                return read_alias(r);
        case YAML_SEQUENCE_START_EVENT:
                return read_sequence(r);
        case YAML_MAPPING_START_EVENT:
                return read_mapping(r);
        default:
                fail_here(r, E_INTERNAL, "unexpected event %d", (int)r->event.type);
                return NULL;
        }
}

/* ---- documents */

static bool is_empty_scalar(const yaml_event_t *e)
{
        return e->type == YAML_SCALAR_EVENT && e->data.scalar.length == 0 && e->data.scalar.plain_implicit;
}

typedef VEC(struct json *) json_vec;

static int read_documents(struct reader *r, json_vec *docs)
{
        while (r->event.type != YAML_STREAM_END_EVENT) {
                struct json *root;
                bool empty;

                if (next_event(r) < 0)
                        return -1;
                if (r->event.type != YAML_DOCUMENT_START_EVENT)
                        continue;
                map_done(&r->anchors);
                if (next_event(r) < 0)
                        return -1;
                empty = is_empty_scalar(&r->event);
                root = read_node(r);
                if (!root || next_event(r) < 0)
                        return -1;
                if (!empty)
                        *vec_push(docs) = root;
        }
        return 0;
}

static int check_text(struct str text, const struct json_limits *limits, struct err *err)
{
        struct str rest = text;
        unsigned directives = 0;

        if (text.n > limits->bytes)
                return err_set(err, E_TOO_LARGE, "text of %zu bytes is larger than %zu", text.n,
                               limits->bytes);
        for (size_t line = 1; rest.p; line++) {
                directives += str_has_prefix(str_split(&rest, '\n'), STR("%TAG"));
                if (directives > TAG_DIRECTIVES_MAX)
                        return err_set(err, E_TOO_LARGE, "%zu:1: more than %d %%TAG directives", line,
                                       TAG_DIRECTIVES_MAX);
        }
        return 0;
}

/* JSON is YAML but for tabs between tokens and surrogate pairs: what kubectl would read as JSON, we do too. */
static struct json *try_json(struct arena *a, struct str text, const struct json_limits *limits,
                             unsigned depth)
{
        struct json_limits bounded = *limits;

        if (!str_has_prefix(str_trim(text), STR("{")))
                return NULL;
        bounded.depth = depth;
        return json_parse(a, text, &bounded, NULL);
}

static int parse_stream(struct arena *a, struct str text, const struct json_limits *limits, json_vec *docs,
                        struct err *err)
{
        struct reader r = {.arena = a,
                           .limits = limits,
                           .depth_max = MIN(limits->depth, (unsigned)DEPTH_MAX),
                           .err = err};
        int rc;

        if (!yaml_parser_initialize(&r.parser))
                return err_set(err, E_INTERNAL, "out of memory");
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.n ? text.p : ""), text.n);
        rc = read_documents(&r, docs);
        yaml_event_delete(&r.event);
        yaml_parser_delete(&r.parser);
        map_done(&r.anchors);
        if (rc < 0 && r.syntax) {
                struct json *j = try_json(a, text, limits, r.depth_max);

                if (!j)
                        return -1;
                err_clear(err);
                docs->n = 0;
                *vec_push(docs) = j;
                return 0;
        }
        return rc;
}

int yaml_parse_all(struct arena *a, struct str text, const struct json_limits *limits, struct json ***ret,
                   size_t *ret_n, struct err *err)
{
        json_vec docs = {0};
        int rc;

        if (!limits)
                limits = &JSON_LIMITS_DEFAULT;
        if (check_text(text, limits, err) < 0)
                return -1;
        rc = parse_stream(a, text, limits, &docs, err);
        if (rc == 0) {
                *ret = docs.n ? arena_memdup(a, docs.v, docs.n * sizeof(*docs.v)) : NULL;
                *ret_n = docs.n;
        }
        vec_done(&docs);
        return rc;
}

struct json *yaml_parse(struct arena *a, struct str text, const struct json_limits *limits, struct err *err)
{
        struct json **docs;
        size_t n = 0;

        if (yaml_parse_all(a, text, limits, &docs, &n, err) < 0)
                return NULL;
        if (n == 1)
                return docs[0];
        if (n == 0)
                err_set(err, E_INVALID, "1:1: there is no document");
        else
                err_set(err, E_INVALID, "%u:%u: one document is expected and this is another", docs[1]->line,
                        docs[1]->column);
        return NULL;
}

int doc_read_yaml(struct doc *doc, const char *path, size_t max, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(max);
        struct json_limits limits = JSON_LIMITS_DEFAULT;
        int rc = streq(path, "-") ? fd_read_all(0, "standard input", &text, err)
                                  : file_read(path, &text, err);

        if (rc < 0)
                return rc;
        limits.bytes = max;
        doc->root = yaml_parse(&doc->arena, buf_str(&text), &limits, err);
        return doc->root ? 0 : err_wrap(err, "%s", path);
}
