/* Sets of fields: tries, their algebra, fieldsV1 in and out. */
#include "local/fields_internal.h"

enum { ELEMENT_TEXT_MAX = 1 << 20 };

/* ---- elements */

static int rank(const struct json *value)
{
        static const int RANKS[] = {[JSON_NUMBER] = 0, [JSON_STRING] = 1, [JSON_BOOL] = 2,
                                    [JSON_ARRAY] = 3,  [JSON_OBJECT] = 4, [JSON_NULL] = 5};

        return RANKS[value->type];
}

static int number_cmp(const struct json *x, const struct json *y)
{
        int64_t i, j;
        double f = 0, g = 0;

        if (json_to_i64(x, &i) && json_to_i64(y, &j))
                return i < j ? -1 : i > j;
        if (json_to_double(x, &f) && json_to_double(y, &g) && (f < g || f > g))
                return f < g ? -1 : 1;
        return 0;
}

static int value_cmp(const struct json *x, const struct json *y)
{
        if (x->type != y->type)
                return rank(x) < rank(y) ? -1 : 1;
        if (x->type == JSON_NUMBER)
                return number_cmp(x, y);
        if (x->type == JSON_STRING)
                return str_cmp(json_text(x), json_text(y));
        if (x->type == JSON_BOOL)
                return (int)x->truth - (int)y->truth;
        return 0;
}

static int keys_cmp(const struct json *x, const struct json *y)
{
        const struct json *i = json_first(x), *j = json_first(y);

        for (; i && j; i = json_next(x, i), j = json_next(y, j)) {
                int cmp = str_cmp(str_n(i->key, i->key_len), str_n(j->key, j->key_len));

                cmp = cmp ? cmp : value_cmp(i, j);
                if (cmp)
                        return cmp;
        }
        return i ? 1 : j ? -1 : 0;
}

int element_cmp(const struct element *x, const struct element *y)
{
        int cmp = 0;

        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        if (x->kind == ELEMENT_FIELD)
                return str_cmp(x->text, y->text);
        if (str_eq(x->text, y->text))
                return 0;
        if (x->kind == ELEMENT_KEY)
                cmp = keys_cmp(x->value, y->value);
        else if (x->kind == ELEMENT_VALUE)
                cmp = value_cmp(x->value, y->value);
        else if (x->text.n != y->text.n)
                cmp = x->text.n < y->text.n ? -1 : 1;
        return cmp ? cmp : str_cmp(x->text, y->text);
}

static void write_value(struct buf *out, const struct json *value)
{
        if (value->type == JSON_STRING)
                go_write_string(out, json_text(value));
        else if (value->type == JSON_NUMBER)
                go_print(out, value);
        else
                json_write(value, JSON_COMPACT, out);
}

static struct str kept(struct arena *a, const struct buf *b)
{
        return str_n(arena_strndup(a, b->p, b->n), b->n);
}

/* Whether S is written into JSON as it is. */
static bool is_plain(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char)s.p[i];

                if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&')
                        return false;
        }
        return true;
}

static char *put(char *to, const char *from, size_t n)
{
        memcpy(to, from, n);
        return to + n;
}

/* Nearly all keys are short names; they need no buffer. false: they do. */
static bool write_plain_keys(struct arena *a, const struct json *keys, struct str *ret)
{
        size_t size = 2;
        char *text, *at;

        json_foreach (key, keys) {
                if (key->type != JSON_STRING || !is_plain(json_text(key)) ||
                    !is_plain(str_n(key->key, key->key_len)))
                        return false;
                size += key->len + key->key_len + 6;
        }
        text = at = arena_alloc(a, size);
        json_foreach (key, keys) {
                at = put(at, at == text ? "{\"" : ",\"", 2);
                at = put(at, key->key, key->key_len);
                at = put(at, "\":\"", 3);
                at = put(at, key->text, key->len);
                *at++ = '"';
        }
        *at++ = '}';
        *ret = str_n(text, (size_t)(at - text));
        return true;
}

struct element element_of_value(struct arena *a, const struct json *scalar)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(ELEMENT_TEXT_MAX);

        write_value(&text, scalar);
        return (struct element){ELEMENT_VALUE, kept(a, &text), scalar};
}

struct element element_of_keys(struct arena *a, const struct json *keys)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(ELEMENT_TEXT_MAX);
        const char *between = "{";
        struct str plain;

        if (json_len(keys) && write_plain_keys(a, keys, &plain))
                return (struct element){ELEMENT_KEY, plain, keys};
        json_foreach (key, keys) {
                buf_adds(&text, between);
                between = ",";
                json_write_string(str_n(key->key, key->key_len), &text);
                buf_addc(&text, ':');
                write_value(&text, key);
        }
        buf_adds(&text, json_len(keys) ? "}" : "{}");
        return (struct element){ELEMENT_KEY, kept(a, &text), keys};
}

void element_print(struct buf *out, const struct element *e)
{
        const char *between = "[";

        switch (e->kind) {
        case ELEMENT_FIELD:
                buf_addc(out, '.');
                buf_addstr(out, e->text);
                return;
        case ELEMENT_KEY:
                json_foreach (key, e->value) {
                        buf_printf(out, "%s%.*s=", between, STR_ARG(str_n(key->key, key->key_len)));
                        go_print_scalar(out, key);
                        between = ",";
                }
                buf_adds(out, json_len(e->value) ? "]" : "[]");
                return;
        case ELEMENT_VALUE:
                buf_adds(out, "[=");
                go_print_scalar(out, e->value);
                buf_addc(out, ']');
                return;
        case ELEMENT_INDEX:
                buf_printf(out, "[%.*s]", STR_ARG(e->text));
                return;
        }
}

/* ---- sets */

void fields_append(struct arena *a, struct fields ***tail, const struct element *at, bool member,
                   fields_set children)
{
        struct fields *node;

        if (!member && !children)
                return;
        node = arena_alloc(a, sizeof(*node));
        *node = (struct fields){
                .children = (struct fields *)(uintptr_t)children, .at = *at, .member = member};
        **tail = node;
        *tail = &node->next;
}

static struct fields *merge_lists(struct fields *x, struct fields *y)
{
        struct fields *first = NULL, **tail = &first;

        while (x && y) {
                struct fields **less = element_cmp(&x->at, &y->at) <= 0 ? &x : &y;

                *tail = *less;
                tail = &(*less)->next;
                *less = (*less)->next;
        }
        *tail = x ? x : y;
        return first;
}

static struct fields *sort_list(struct fields *list)
{
        struct fields *slow = list, *half;

        if (!list || !list->next)
                return list;
        for (struct fields *fast = list->next; fast && fast->next; fast = fast->next->next)
                slow = slow->next;
        half = slow->next;
        slow->next = NULL;
        return merge_lists(sort_list(list), sort_list(half));
}

/* Of nodes that nobody else sees yet, in any order, none twice. */
static fields_set fields_sorted(fields_set list)
{
        for (fields_set f = list; f && f->next; f = f->next)
                if (element_cmp(&f->at, &f->next->at) > 0)
                        return sort_list((struct fields *)(uintptr_t)list);
        return list;
}

const struct fields *fields_find(fields_set set, const struct element *at)
{
        for (; set; set = set->next) {
                int cmp = element_cmp(&set->at, at);

                if (cmp >= 0)
                        return cmp ? NULL : set;
        }
        return NULL;
}

fields_set fields_union(struct arena *a, fields_set x, fields_set y)
{
        struct fields *first = NULL, **tail = &first;

        if (!x || !y)
                return x ? x : y;
        while (x || y) {
                int cmp = !x ? 1 : !y ? -1 : element_cmp(&x->at, &y->at);

                if (cmp == 0)
                        fields_append(a, &tail, &x->at, x->member || y->member,
                                      fields_union(a, x->children, y->children));
                else
                        fields_append(a, &tail, cmp < 0 ? &x->at : &y->at, (cmp < 0 ? x : y)->member,
                                      (cmp < 0 ? x : y)->children);
                x = cmp <= 0 ? x->next : x;
                y = cmp >= 0 ? y->next : y;
        }
        return first;
}

fields_set fields_intersection(struct arena *a, fields_set x, fields_set y)
{
        struct fields *first = NULL, **tail = &first;

        while (x && y) {
                int cmp = element_cmp(&x->at, &y->at);

                if (cmp == 0)
                        fields_append(a, &tail, &x->at, x->member && y->member,
                                      fields_intersection(a, x->children, y->children));
                x = cmp <= 0 ? x->next : x;
                y = cmp >= 0 ? y->next : y;
        }
        return first;
}

fields_set fields_difference(struct arena *a, fields_set x, fields_set y, bool deep)
{
        struct fields *first = NULL, **tail = &first;

        if (!x || !y)
                return x;
        for (; x; x = x->next) {
                while (y && element_cmp(&y->at, &x->at) < 0)
                        y = y->next;
                if (!y || element_cmp(&y->at, &x->at) != 0)
                        fields_append(a, &tail, &x->at, x->member, x->children);
                else if (!deep || !y->member)
                        fields_append(a, &tail, &x->at, x->member && !y->member,
                                      fields_difference(a, x->children, y->children, deep));
        }
        return first;
}

bool fields_equal(fields_set x, fields_set y)
{
        for (; x && y; x = x->next, y = y->next)
                if (x != y && (x->member != y->member || element_cmp(&x->at, &y->at) != 0 ||
                               !fields_equal(x->children, y->children)))
                        return false;
        return x == y;
}

/* ---- fieldsV1 */

static int key_by_name(const void *x, const void *y)
{
        const struct json *const *l = x, *const *r = y;

        return str_cmp(str_n((*l)->key, (*l)->key_len), str_n((*r)->key, (*r)->key_len));
}

static struct json *sorted_keys(struct arena *a, const struct json *keys)
{
        size_t n = json_len(keys), i = 0;
        struct json **list = arena_new_array(a, struct json *, n + 1), *sorted = json_object(a);

        json_foreach (key, keys)
                list[i++] = key;
        if (n)
                qsort(list, n, sizeof(struct json *), key_by_name);
        for (i = 0; i < n; i++)
                json_setn(a, sorted, str_n(list[i]->key, list[i]->key_len), json_copy(a, list[i]));
        return sorted;
}

static int read_index(struct str text, struct element *ret, struct err *err)
{
        int64_t index;

        if (!str_to_i64(text, &index))
                return err_set(err, E_INVALID, "an index in fieldsV1 is no number: '%.*s'", STR_ARG(text));
        *ret = (struct element){.kind = ELEMENT_INDEX, .text = text};
        return 0;
}

/* 1: an element of a kind that is not known, to be ignored. */
static int read_element(struct arena *a, struct str key, struct element *ret, struct err *err)
{
        struct str text = str_n(key.p + 2, key.n > 2 ? key.n - 2 : 0);
        struct json *value;

        if (key.n < 2 || key.p[1] != ':')
                return err_set(err, E_INVALID, "missing colon: %.*s", STR_ARG(key));
        if (key.p[0] == 'f') {
                *ret = (struct element){.kind = ELEMENT_FIELD, .text = text};
                return 0;
        }
        if (key.p[0] == 'i')
                return read_index(text, ret, err);
        if (key.p[0] != 'k' && key.p[0] != 'v')
                return 1;
        value = json_parse(a, text, NULL, err);
        if (!value)
                return -1;
        if (key.p[0] == 'v') {
                *ret = element_of_value(a, value);
                return 0;
        }
        if (value->type != JSON_OBJECT)
                return err_set(err, E_INVALID, "keys of a list in fieldsV1 are no object: %.*s",
                               STR_ARG(text));
        *ret = element_of_keys(a, json_len(value) > 1 ? sorted_keys(a, value) : value);
        return 0;
}

/* RET_MEMBER: the element that V1 is about is in the set itself. */
static int read_set(struct arena *a, const struct json *v1, fields_set *ret, bool *ret_member,
                    struct err *err)
{
        struct fields *first = NULL, **tail = &first;

        *ret_member = false;
        if (v1->type != JSON_OBJECT && v1->type != JSON_NULL)
                return err_set(err, E_INVALID, "fieldsV1 holds a %s where an object must be",
                               json_type_name((enum json_type)v1->type));
        json_foreach (member, v1) {
                struct str key = str_n(member->key, member->key_len);
                struct element at = {0};
                fields_set children = NULL;
                bool is_member;
                int known;

                if (str_eq(key, STR("."))) {
                        *ret_member = true;
                        continue;
                }
                known = read_element(a, key, &at, err);
                if (known < 0 || (known == 0 && read_set(a, member, &children, &is_member, err) < 0))
                        return -1;
                if (known == 0)
                        fields_append(a, &tail, &at, is_member, children);
        }
        *ret = fields_sorted(first);
        *ret_member = *ret_member || !*ret;
        return 0;
}

/* Two spellings of one element (`k:{"a":1}`, `k:{"a": 1}`) become one. */
static fields_set without_doubles(struct arena *a, fields_set set)
{
        struct fields *first = NULL, **tail = &first;
        bool doubled = false;

        for (fields_set f = set; f && f->next && !doubled; f = f->next)
                doubled = element_cmp(&f->at, &f->next->at) == 0;
        for (; doubled && set; set = set->next)
                if (!set->next || element_cmp(&set->at, &set->next->at) != 0)
                        fields_append(a, &tail, &set->at, set->member, set->children);
        return doubled ? first : set;
}

static void drop_doubles(struct arena *a, struct fields **set)
{
        *set = (struct fields *)(uintptr_t)without_doubles(a, *set);
        for (struct fields *f = *set; f; f = f->next)
                drop_doubles(a, &f->children);
}

int fields_read(struct arena *a, const struct json *v1, fields_set *ret, struct err *err)
{
        fields_set set = NULL;
        struct fields *own;
        bool member;

        *ret = NULL;
        if (!v1)
                return 0;
        if (read_set(a, v1, &set, &member, err) < 0)
                return -1;
        own = (struct fields *)(uintptr_t)set;
        drop_doubles(a, &own);
        *ret = own;
        return 0;
}

static struct json *node_of(struct arena *a, const struct element *at)
{
        struct json *node = json_object(a);
        char *key = arena_alloc(a, at->text.n + 3);

        key[0] = "fkvi"[at->kind];
        key[1] = ':';
        if (at->text.n)
                memcpy(key + 2, at->text.p, at->text.n);
        key[at->text.n + 2] = '\0';
        node->key = key;
        node->key_len = (uint32_t)(at->text.n + 2);
        return node;
}

static void sort_members(struct arena *a, struct json *object)
{
        size_t n = object->len, i = 0;
        struct json **list = arena_alloc(a, (n + 1) * sizeof(*list));

        json_foreach (member, object)
                list[i++] = member;
        qsort(list, n, sizeof(struct json *), key_by_name);
        object->last = NULL;
        object->len = 0;
        for (i = 0; i < n; i++)
                json_ring_add(object, list[i]);
}

static void write_set(struct arena *a, fields_set set, bool self, bool sorted, struct json *out)
{
        bool other_than_fields = false;

        if (self && set) {
                struct json *dot = json_object(a);

                dot->key = ".";
                dot->key_len = 1;
                json_ring_add(out, dot);
        }
        for (; set; set = set->next) {
                struct json *node = node_of(a, &set->at);

                other_than_fields |= set->at.kind != ELEMENT_FIELD;
                write_set(a, set->children, set->member, sorted, node);
                json_ring_add(out, node);
        }
        if (sorted && other_than_fields)
                sort_members(a, out);
}

struct json *fields_write(struct arena *a, fields_set set, bool sorted)
{
        struct json *out = json_object(a);

        write_set(a, set, false, sorted, out);
        return out;
}
