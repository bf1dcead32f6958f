/* The entries of metadata.managedFields. */
#include "local/field_managers.h"

enum { UPDATERS_MAX = 10, MANAGER_TEXT_MAX = 4096 };

static const char *make_id(struct arena *a, const char *name, const char *operation, const char *version)
{
        _cleanup_(buf_done) struct buf id = BUF_INIT(MANAGER_TEXT_MAX);
        const char *between = "{";
        const char *const members[][2] = {{"manager", name},
                                          {"operation", operation},
                                          {"apiVersion", streq(operation, "Apply") ? "" : version}};

        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                if (!members[i][1][0])
                        continue;
                buf_printf(&id, "%s\"%s\":", between, members[i][0]);
                json_write_string(str_of(members[i][1]), &id);
                between = ",";
        }
        return arena_strndup(a, id.p, id.n);
}

struct field_manager *managers_find(const struct field_managers *m, const char *id)
{
        for (size_t i = 0; i < m->n; i++)
                if (streq(m->v[i].id, id))
                        return &m->v[i];
        return NULL;
}

static struct field_manager *entry(struct arena *a, struct field_managers *m, const char *name,
                                   const char *operation, const char *version)
{
        const char *id = make_id(a, name, operation, version);
        struct field_manager *found = managers_find(m, id), *grown;

        if (found)
                return found;
        if (m->n == m->cap) {
                grown = arena_alloc(a, (m->cap * 2 + 4) * sizeof(*grown));
                if (m->n)
                        memcpy(grown, m->v, m->n * sizeof(*grown));
                m->v = grown;
                m->cap = m->cap * 2 + 4;
        }
        found = &m->v[m->n++];
        *found = (struct field_manager){.id = id,
                                        .name = arena_strdup(a, name),
                                        .operation = arena_strdup(a, operation),
                                        .api_version = arena_strdup(a, version),
                                        .applied = streq(operation, "Apply")};
        return found;
}

struct field_manager *managers_add(struct arena *a, struct field_managers *m, const char *name, bool applied,
                                   const char *api_version)
{
        return entry(a, m, name, applied ? "Apply" : "Update", api_version);
}

void managers_remove(struct field_managers *m, struct field_manager *which)
{
        size_t i = (size_t)(which - m->v);

        memmove(which, which + 1, (m->n - i - 1) * sizeof(*which));
        m->n--;
}

struct field_managers managers_copy(struct arena *a, const struct field_managers *m)
{
        struct field_managers copy = *m;

        copy.v = m->n ? arena_memdup(a, m->v, m->n * sizeof(*m->v)) : NULL;
        copy.cap = m->n;
        return copy;
}

bool managers_equal(const struct field_managers *x, const struct field_managers *y)
{
        if (x->n != y->n)
                return false;
        for (size_t i = 0; i < x->n; i++) {
                const struct field_manager *l = &x->v[i], *r = managers_find(y, l->id);

                if (!r || l->applied != r->applied || !streq(l->api_version, r->api_version) ||
                    !fields_equal(l->set, r->set))
                        return false;
        }
        return true;
}

/* ---- in */

static int read_one(struct arena *a, const struct json *from, size_t i, struct field_managers *ret,
                    struct err *err)
{
        const char *type = json_str_or(from, "fieldsType", "");
        struct field_manager *m;
        fields_set set;

        if (!type[0])
                return err_set(err, E_INVALID, "missing fieldsType in managed fields entry %zu", i);
        if (!streq(type, "FieldsV1"))
                return err_set(err, E_INVALID, "invalid fieldsType \"%s\" in managed fields entry %zu", type,
                               i);
        if (fields_read(a, json_at(from, "fieldsV1"), &set, err) < 0)
                return -1;
        m = entry(a, ret, json_str_or(from, "manager", ""), json_str_or(from, "operation", ""),
                  json_str_or(from, "apiVersion", ""));
        m->api_version = arena_strdup(a, json_str_or(from, "apiVersion", ""));
        m->has_time = time_parse(json_text(json_at(from, "time")), &m->time);
        m->set = set;
        return 0;
}

int managers_read(struct arena *a, const struct json *list, struct field_managers *ret, struct err *err)
{
        size_t i = 0;

        *ret = (struct field_managers){0};
        json_foreach (from, list)
                if (read_one(a, from, i++, ret, err) < 0) {
                        *ret = (struct field_managers){0};
                        return -1;
                }
        return 0;
}

/* ---- out */

static usec_t seconds(const struct field_manager *m)
{
        return m->has_time ? m->time / USEC_PER_SEC : 0;
}

static int in_output_order(const void *x, const void *y)
{
        const struct field_manager *l = x, *r = y;
        int cmp = strcmp(l->operation, r->operation);

        if (!cmp && seconds(l) != seconds(r))
                return seconds(l) < seconds(r) ? -1 : 1;
        cmp = cmp ? cmp : strcmp(l->name, r->name);
        return cmp ? cmp : strcmp(l->api_version, r->api_version);
}

static struct json *write_one(struct arena *a, const struct field_manager *m, bool sorted)
{
        char text[TIME_TEXT_MAX];
        const char *const order[2][6] = {
                {"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"},
                {"apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "time"}};
        const struct {
                const char *name, *value;
        } texts[] = {{"manager", m->name},
                     {"operation", m->operation},
                     {"apiVersion", m->api_version},
                     {"time", m->has_time ? time_format(m->time, text) : ""},
                     {"fieldsType", "FieldsV1"}};
        struct json *out = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(order[0]); i++) {
                const char *name = order[sorted][i];

                if (streq(name, "fieldsV1"))
                        json_set(a, out, name, fields_write(a, m->set, sorted));
                for (size_t j = 0; j < ARRAY_LEN(texts); j++)
                        if (streq(name, texts[j].name) && texts[j].value[0])
                                json_set(a, out, name, json_string(a, texts[j].value));
        }
        return out;
}

struct json *managers_write(struct arena *a, const struct field_managers *m, bool sorted)
{
        struct field_managers order = managers_copy(a, m);
        struct json *list;

        if (!m->n)
                return NULL;
        qsort(order.v, order.n, sizeof(*order.v), in_output_order);
        list = json_array(a);
        for (size_t i = 0; i < order.n; i++)
                json_append(list, write_one(a, &order.v[i], sorted));
        return list;
}

const char *manager_print(struct arena *a, const struct field_manager *m)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MANAGER_TEXT_MAX);

        go_quote(str_of(m->name), &text);
        if (streq(m->operation, "Update"))
                buf_printf(&text, " using %s", m->api_version);
        return arena_strndup(a, text.p, text.n);
}

/* ---- ancient changes */

static int by_age(const void *x, const void *y)
{
        const struct field_manager *l = x, *r = y;

        if (seconds(l) != seconds(r))
                return seconds(l) < seconds(r) ? -1 : 1;
        return strcmp(l->id, r->id);
}

/* The first entry of a version waits for a second one: only then there is something to merge. */
struct bucket {
        const char *version, *first;
};

static struct bucket *bucket_of(struct bucket *list, size_t *n, const char *version)
{
        for (size_t i = 0; i < *n; i++)
                if (streq(list[i].version, version))
                        return &list[i];
        list[*n].version = version;
        return &list[(*n)++];
}

static void merge_into_bucket(struct arena *a, struct field_managers *m, const char *first,
                              const struct field_manager *old)
{
        const char *id = make_id(a, "ancient-changes", "Update", old->api_version);
        struct field_manager *bucket = managers_find(m, id), *source;

        if (!bucket) {
                source = managers_find(m, first);
                source->id = id;
                source->name = "ancient-changes";
                source->operation = "Update";
                bucket = source;
        }
        bucket->set = fields_union(a, old->set, bucket->set);
        bucket->has_time = old->has_time;
        bucket->time = old->time;
        /* An old entry of ancient changes that is younger than others goes, too, as it does in Kubernetes. */
        source = managers_find(m, old->id);
        if (source)
                managers_remove(m, source);
}

void managers_cap(struct arena *a, struct field_managers *m)
{
        struct field_manager *old = arena_alloc(a, (m->n + 1) * sizeof(*old));
        struct bucket *buckets = arena_new_array(a, struct bucket, m->n + 1), *bucket;
        size_t n = 0, n_buckets = 0, left;

        for (size_t i = 0; i < m->n; i++)
                if (!m->v[i].applied)
                        old[n++] = m->v[i];
        if (n <= UPDATERS_MAX)
                return;
        qsort(old, n, sizeof(*old), by_age);
        left = n;
        for (size_t i = 0; i < n && left > UPDATERS_MAX; i++) {
                bucket = bucket_of(buckets, &n_buckets, old[i].api_version);
                if (bucket->first) {
                        merge_into_bucket(a, m, bucket->first, &old[i]);
                        left--;
                } else {
                        bucket->first = old[i].id;
                }
        }
}
