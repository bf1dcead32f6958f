#include "local/api_internal.h"

#define NAME_HELP                                                                                           \
        "Name must be unique within a namespace. Is required when creating resources, although some "       \
        "resources may "                                                                                    \
        "allow a client to request the generation of an appropriate name automatically. Name is primarily " \
        "intended "                                                                                         \
        "for creation idempotence and configuration definition. Cannot be updated. More info: "             \
        "http://kubernetes.io/docs/user-guide/identifiers#names"
#define AGE_HELP                                                                                             \
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is " \
        "not "                                                                                               \
        "guaranteed to be set in happens-before order across separate operations. Clients may not set this " \
        "value. It "                                                                                         \
        "is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "     \
        "lists. More "                                                                                       \
        "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"

/* What a type without columns of its own shows. */
static const struct table_column plain_columns[] = {
        {"Name", "string", "name", NAME_HELP, 0, NULL},
        {"Created At", "date", "", AGE_HELP, 0, NULL},
};

const struct table_column *table_name_column(void)
{
        return &plain_columns[0];
}

const struct table_column *table_age_column(void)
{
        return &plain_columns[1];
}

static void columns_of(const struct api_type *t, const struct table_column **ret, size_t *n)
{
        *ret = t->n_columns ? t->columns : plain_columns;
        *n = t->n_columns ? t->n_columns : ARRAY_LEN(plain_columns);
}

static struct json *column_definitions(struct call *c)
{
        const struct table_column *col;
        struct json *list = json_array(c->a);
        size_t n;

        columns_of(c->type, &col, &n);
        for (size_t i = 0; i < n; i++)
                json_append(
                        list,
                        json_build(
                                c->a,
                                "{'name': %s, 'type': %s, 'format': %s, 'description': %s, 'priority': %d}",
                                col[i].name, col[i].type, col[i].format ? col[i].format : "",
                                col[i].description ? col[i].description : "", col[i].priority));
        return list;
}

/* ---- cells of custom resources */

static struct json *cell_of_date(struct call *c, const struct json *value)
{
        usec_t at;

        if (!json_is(value, JSON_STRING))
                return NULL;
        if (!time_parse(json_text(value), &at))
                return json_string(c->a, "<invalid>");
        return json_string(c->a, human_duration(usec_sub(loop_wall(c->api->loop), at), c->a));
}

static struct json *custom_cell(struct call *c, const struct table_column *col, const struct json *object)
{
        const struct json *value = jsonpath_find(object, col->json_path);

        if (!value || value->type == JSON_NULL)
                return json_null(c->a);
        if (streq(col->type, "date"))
                return cell_of_date(c, value);
        if (streq(col->type, "integer")) {
                int64_t i;

                return json_to_i64(value, &i) ? json_i64(c->a, i) : json_null(c->a);
        }
        if (streq(col->type, "number"))
                return value->type == JSON_NUMBER ? json_copy(c->a, value) : json_null(c->a);
        if (streq(col->type, "boolean"))
                return value->type == JSON_BOOL ? json_copy(c->a, value) : json_null(c->a);
        return value->type == JSON_STRING ? json_copy(c->a, value)
                                          : json_string(c->a, json_print(c->a, value));
}

static struct json *custom_row(struct call *c, const struct json *object)
{
        struct json *cells = json_array(c->a);

        json_append(cells, json_string(c->a, meta_str(object, "name")));
        for (size_t i = 1; i < c->type->n_columns; i++)
                json_append(cells, custom_cell(c, &c->type->columns[i], object));
        return cells;
}

static struct json *row_cells(struct call *c, const struct json *object)
{
        struct strategy_context *ctx = arena_new(c->a, struct strategy_context);

        *ctx = (struct strategy_context){.type = c->type, .now = loop_wall(c->api->loop), .a = c->a};
        if (c->type->crd && c->type->n_columns)
                return custom_row(c, object);
        if (c->type->n_columns && c->type->strategy && c->type->strategy->row)
                return c->type->strategy->row(ctx, object);
        return json_build(c->a, "[%s, %s]", meta_str(object, "name"), meta_str(object, "creationTimestamp"));
}

/* ---- views */

static struct json *partial(struct call *c, const struct view *v, const struct json *object)
{
        return json_build(c->a,
                          "{'kind': 'PartialObjectMetadata', 'apiVersion': 'meta.k8s.io/%s', 'metadata': %p}",
                          v->version, json_copy(c->a, json_at(object, "metadata")));
}

static struct json *row_of(struct call *c, const struct view *v, struct json *object)
{
        struct json *shown = NULL;

        if (streq(v->include_object, "Object"))
                shown = object;
        else if (!streq(v->include_object, "None"))
                shown = partial(c, v, object);
        return json_build(c->a, "{'cells': %p, 'object': %p}", row_cells(c, object),
                          shown ? shown : json_null(c->a));
}

struct json *view_object(struct call *c, const struct view *v, struct json *object, bool headers)
{
        if (v->as == AS_METADATA)
                return partial(c, v, object);
        if (v->as == AS_OBJECT)
                return object;
        return json_build(
                c->a,
                "{'kind': 'Table', 'apiVersion': 'meta.k8s.io/%s', 'metadata': {'resourceVersion': %s}, "
                "'columnDefinitions': %p, 'rows': [%p]}",
                v->version, meta_str(object, "resourceVersion"),
                headers ? column_definitions(c) : json_null(c->a), row_of(c, v, object));
}

/* ---- lists */

static void begin_kind(struct list_writer *w, const char *kind, const char *version)
{
        buf_printf(w->out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":", kind, version);
}

void list_begin(struct list_writer *w)
{
        struct call *c = w->c;
        const char *meta_version = arena_printf(c->a, "meta.k8s.io/%s",
                                                w->view->version ? w->view->version : "v1");

        if (w->view->as == AS_TABLE)
                begin_kind(w, "Table", meta_version);
        else if (w->view->as == AS_METADATA)
                begin_kind(w, "PartialObjectMetadataList", meta_version);
        else
                begin_kind(w, c->type->list_kind, kube_api_version(&c->type->kube, c->a));
        /* The metadata comes last in time, but first in the text: items are collected behind it. */
        w->head = w->out->n;
}

/* Items of built-in lists have no kind and apiVersion of their own: they stand first in the stored text. */
static void add_stored(struct list_writer *w, const struct object *o)
{
        const char *metadata = w->c->type->crd ? NULL : memmem(o->text.p, o->text.n, "\"metadata\":", 11);

        if (!metadata) {
                buf_addstr(w->out, o->text);
                return;
        }
        buf_addc(w->out, '{');
        buf_add(w->out, metadata, o->text.n - (size_t)(metadata - o->text.p));
}

void list_add(struct list_writer *w, const struct object *o)
{
        struct arena keep = *w->c->a, scratch = ARENA_INIT;
        struct json *object;

        if (w->n++)
                buf_addc(w->out, ',');
        if (w->view->as == AS_OBJECT && !w->c->type->from_stored) {
                add_stored(w, o);
                return;
        }
        *w->c->a = scratch; /* what one item needs goes with it */
        object = object_parse(o, w->c->a);
        if (w->c->type->from_stored)
                w->c->type->from_stored(w->c->type, object, w->c->a);
        if (w->view->as == AS_TABLE) {
                object = row_of(w->c, w->view, object);
        } else if (w->view->as == AS_METADATA) {
                object = partial(w->c, w->view, object);
        } else if (!w->c->type->crd) {
                json_remove(object, "kind");
                json_remove(object, "apiVersion");
        }
        json_write(object, JSON_COMPACT, w->out);
        arena_done(w->c->a);
        *w->c->a = keep;
}

static void add_list_meta(struct list_writer *w, struct buf *to, uint64_t rev, const char *token,
                          int64_t remaining)
{
        bool custom = w->c->type->crd && w->view->as == AS_OBJECT;

        buf_addc(to, '{');
        if (token || custom)
                buf_printf(to, "\"continue\":\"%s\",", token ? token : "");
        if (remaining >= 0 && token)
                buf_printf(to, "\"remainingItemCount\":%lld,", (long long)remaining);
        buf_printf(to, "\"resourceVersion\":\"%llu\"}", (unsigned long long)rev);
        if (w->view->as == AS_TABLE) {
                buf_adds(to, ",\"columnDefinitions\":");
                json_write(column_definitions(w->c), JSON_COMPACT, to);
                buf_adds(to, ",\"rows\":[");
        } else {
                buf_adds(to, ",\"items\":[");
        }
}

void list_end(struct list_writer *w, uint64_t rev, const char *token, int64_t remaining)
{
        _cleanup_(buf_done) struct buf meta = BUF_INIT(1 << 20);
        size_t items = w->out->n - w->head;
        char *p;

        add_list_meta(w, &meta, rev, token, remaining);
        p = buf_reserve(w->out, meta.n);
        if (!p)
                return;
        memmove(w->out->p + w->head + meta.n, w->out->p + w->head, items);
        memcpy(w->out->p + w->head, meta.p, meta.n);
        w->out->n += meta.n;
        buf_adds(w->out, "]}");
}

/* "5s", "3m20s", "2h", "5d3h": as kubectl prints ages. */
const char *human_duration(usec_t d, struct arena *a)
{
        uint64_t s = d / USEC_PER_SEC, m = s / 60, h = s / 3600, days = h / 24;

        if (s < 120)
                return arena_printf(a, "%llus", (unsigned long long)s);
        if (m < 10)
                return s % 60 ? arena_printf(a, "%llum%llus", (unsigned long long)m,
                                             (unsigned long long)(s % 60))
                              : arena_printf(a, "%llum", (unsigned long long)m);
        if (m < 180)
                return arena_printf(a, "%llum", (unsigned long long)m);
        if (h < 8)
                return m % 60 ? arena_printf(a, "%lluh%llum", (unsigned long long)h,
                                             (unsigned long long)(m % 60))
                              : arena_printf(a, "%lluh", (unsigned long long)h);
        if (h < 48)
                return arena_printf(a, "%lluh", (unsigned long long)h);
        if (h < 24 * 8)
                return h % 24 ? arena_printf(a, "%llud%lluh", (unsigned long long)days,
                                             (unsigned long long)(h % 24))
                              : arena_printf(a, "%llud", (unsigned long long)days);
        if (h < 24 * 365 * 2)
                return arena_printf(a, "%llud", (unsigned long long)days);
        if (h < 24 * 365 * 8)
                return days % 365 ? arena_printf(a, "%lluy%llud", (unsigned long long)(days / 365),
                                                 (unsigned long long)(days % 365))
                                  : arena_printf(a, "%lluy", (unsigned long long)(days / 365));
        return arena_printf(a, "%lluy", (unsigned long long)(days / 365));
}
