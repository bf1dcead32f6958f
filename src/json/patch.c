#include "json/patch.h"
#include "json/internal.h"

/* As the API server has it. Every operation walks to its place, so their number is bounded like the document. */
enum { OPERATIONS_MAX = 10000 };

struct patcher {
        struct arena *arena;
        struct json *root;
        size_t nodes; /* that may still be added: `copy` doubles what is there */
};

struct operation {
        struct str path, from;
        const struct json *value;
};

/* Where a pointer leads: a name in a container, which need not be taken. */
struct place {
        struct json *parent; /* NULL: the whole document */
        struct json *target; /* NULL: nothing is there */
        struct str token;
        size_t depth;
        struct buf scratch;
};

#define PLACE_INIT                            \
        {                                     \
                .scratch = BUF_INIT(SIZE_MAX) \
        }

static void place_done(struct place *p)
{
        buf_done(&p->scratch);
}

DEFINE_CLEANUP_STRUCT(struct place, place_done)

static int find_place(const struct patcher *p, struct str pointer, struct place *ret, struct err *err)
{
        struct str rest = pointer;

        ret->parent = NULL;
        ret->target = p->root;
        ret->depth = 0;
        while (rest.n) {
                if (!pointer_next(&rest, &ret->token, &ret->scratch))
                        return err_set(err, E_INVALID, "'%.*s' is not a JSON pointer", STR_ARG(pointer));
                if (!ret->target || ret->target->type < JSON_ARRAY)
                        return err_set(err, E_INVALID, "nothing at '%.*s'", STR_ARG(pointer));
                ret->parent = ret->target;
                ret->target = pointer_step(ret->parent, ret->token);
                ret->depth++;
        }
        return 0;
}

static int find_target(const struct patcher *p, struct str pointer, struct place *ret, struct err *err)
{
        if (find_place(p, pointer, ret, err) < 0)
                return -1;
        return ret->target ? 0 : err_set(err, E_INVALID, "nothing at '%.*s'", STR_ARG(pointer));
}

/* How deep J is, and how many nodes it has. */
static size_t measure(const struct json *j, size_t *nodes)
{
        size_t deepest = 0;

        (*nodes)++;
        json_foreach (child, j)
                deepest = MAX(deepest, measure(child, nodes));
        return deepest + (j->type >= JSON_ARRAY);
}

/* Refuses what would make the document deeper or larger than one that can be read. ADDED: VALUE is new in it. */
static int check_budget(struct patcher *p, const struct place *place, const struct json *value, bool added,
                        struct err *err)
{
        size_t nodes = 0, depth = measure(value, &nodes);

        if (place->depth + depth > JSON_LIMITS_DEFAULT.depth)
                return err_set(err, E_TOO_LARGE, "the document would be nested too deeply");
        if (!added)
                return 0;
        if (nodes > p->nodes)
                return err_set(err, E_TOO_LARGE, "the document would have too many values");
        p->nodes -= nodes;
        return 0;
}

static int insert_element(struct place *place, struct json *value, struct err *err)
{
        struct json *array = place->parent, *prev;
        uint64_t i;

        if (str_eq(place->token, STR("-"))) {
                json_append(array, value);
                return 0;
        }
        if (!str_to_u64(place->token, &i) || (place->token.n > 1 && place->token.p[0] == '0') ||
            i > array->len)
                return err_set(err, E_INVALID, "'%.*s' is no index of an array of %u", STR_ARG(place->token),
                               array->len);
        if (i == array->len) {
                json_append(array, value);
                return 0;
        }
        prev = i ? json_index(array, (size_t)i - 1) : array->last;
        value->key = NULL;
        value->key_len = 0;
        value->next = prev->next;
        prev->next = value;
        array->len++;
        return 0;
}

/* VALUE is the document's own from here on. */
static int put_value(struct patcher *p, struct place *place, struct json *value, struct err *err)
{
        if (!place->parent)
                p->root = value;
        else if (place->parent->type == JSON_OBJECT)
                json_setn(p->arena, place->parent, place->token, value);
        else
                return insert_element(place, value, err);
        return 0;
}

static int op_add(struct patcher *p, const struct operation *op, struct err *err)
{
        _cleanup_(place_done) struct place place = PLACE_INIT;

        if (find_place(p, op->path, &place, err) < 0 || check_budget(p, &place, op->value, true, err) < 0)
                return -1;
        return put_value(p, &place, json_copy(p->arena, op->value), err);
}

static int take_value(struct patcher *p, struct str path, struct json **ret, struct err *err)
{
        _cleanup_(place_done) struct place place = PLACE_INIT;

        if (find_target(p, path, &place, err) < 0)
                return -1;
        if (!place.parent)
                return err_set(err, E_INVALID, "the whole document cannot be removed");
        *ret = json_take(place.parent, place.target);
        return 0;
}

static int op_remove(struct patcher *p, const struct operation *op, struct err *err)
{
        struct json *gone;

        return take_value(p, op->path, &gone, err);
}

static int op_replace(struct patcher *p, const struct operation *op, struct err *err)
{
        _cleanup_(place_done) struct place place = PLACE_INIT;
        struct json *value;

        if (find_target(p, op->path, &place, err) < 0 || check_budget(p, &place, op->value, true, err) < 0)
                return -1;
        value = json_copy(p->arena, op->value);
        if (place.parent)
                json_replace(place.parent, place.target, value);
        else
                p->root = value;
        return 0;
}

static int op_move(struct patcher *p, const struct operation *op, struct err *err)
{
        _cleanup_(place_done) struct place place = PLACE_INIT;
        struct json *value;

        if (str_eq(op->from, op->path))
                return find_target(p, op->from, &place, err);
        if (str_has_prefix(op->path, op->from) && (op->from.n == 0 || op->path.p[op->from.n] == '/'))
                return err_set(err, E_INVALID, "'%.*s' cannot be moved into itself", STR_ARG(op->from));
        if (take_value(p, op->from, &value, err) < 0 || find_place(p, op->path, &place, err) < 0 ||
            check_budget(p, &place, value, false, err) < 0)
                return -1;
        return put_value(p, &place, value, err);
}

static int op_copy(struct patcher *p, const struct operation *op, struct err *err)
{
        _cleanup_(place_done) struct place from = PLACE_INIT, to = PLACE_INIT;

        if (find_target(p, op->from, &from, err) < 0 || find_place(p, op->path, &to, err) < 0 ||
            check_budget(p, &to, from.target, true, err) < 0)
                return -1;
        return put_value(p, &to, json_copy_nodes(p->arena, from.target), err);
}

static int op_test(struct patcher *p, const struct operation *op, struct err *err)
{
        _cleanup_(place_done) struct place place = PLACE_INIT;

        if (find_place(p, op->path, &place, NULL) < 0 || !json_equal(place.target, op->value))
                return err_set(err, E_FENCED, "the value is not what it should be");
        return 0;
}

static const struct {
        const char *name;
        bool wants_value, wants_from;
        int (*apply)(struct patcher *p, const struct operation *op, struct err *err);
} operations[] = {
        {"add", true, false, op_add},         {"remove", false, false, op_remove},
        {"replace", true, false, op_replace}, {"move", false, true, op_move},
        {"copy", false, true, op_copy},       {"test", true, false, op_test},
};

static int apply(struct patcher *p, const struct json *spec, struct err *err)
{
        struct str name = json_text(json_at(spec, "op")), path = json_text(json_at(spec, "path"));
        struct operation op = {path, json_text(json_at(spec, "from")), json_at(spec, "value")};

        if (!name.p || !path.p)
                return err_set(err, E_INVALID, "an operation is an object with \"op\" and \"path\"");
        for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
                if (!str_eq(name, str_of(operations[i].name)))
                        continue;
                if (operations[i].wants_value && !op.value)
                        return err_set(err, E_INVALID, "%s has no \"value\"", operations[i].name);
                if (operations[i].wants_from && !op.from.p)
                        return err_set(err, E_INVALID, "%s has no \"from\"", operations[i].name);
                if (operations[i].apply(p, &op, err) < 0)
                        return err_wrap(err, "%s '%.*s'", operations[i].name, STR_ARG(path));
                return 0;
        }
        return err_set(err, E_INVALID, "unknown operation '%.*s'", STR_ARG(name));
}

int json_patch(struct arena *a, struct json **root, const struct json *patch, struct err *err)
{
        struct patcher p = {.arena = a, .nodes = JSON_LIMITS_DEFAULT.nodes};
        size_t i = 0;

        if (!json_is(patch, JSON_ARRAY))
                return err_set(err, E_INVALID, "a JSON patch is an array of operations");
        if (patch->len > OPERATIONS_MAX)
                return err_set(err, E_TOO_LARGE, "a JSON patch has at most %d operations, not %u",
                               OPERATIONS_MAX, patch->len);
        /* All or nothing: the work is done on other nodes, which share the texts. */
        p.root = json_copy_nodes(a, *root);
        json_foreach (spec, patch) {
                if (apply(&p, spec, err) < 0)
                        return err_wrap(err, "JSON patch, operation %zu", i);
                i++;
        }
        *root = p.root;
        return 0;
}
