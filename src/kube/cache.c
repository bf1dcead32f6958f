#include "kube/kube.h"
#include "kube/squeeze.h"

enum { INDEXES_MAX = 1 + 4, KEY_MAX = 63 + 1 + 253 };

/* Entries with one value of one index form a ring; the map knows one of them. */
struct link {
        struct list node;
        const char *value; /* "" is not indexed */
};

struct entry {
        struct cache_entry pub; /* first: the public pointer is the private one */
        uint64_t hash;          /* of the object as it was packed */
        uint32_t size;          /* of the block */
        uint32_t packed_at;     /* from there to its end: the object, without what `pub` has */
        uint32_t packed_n;      /* length of that as it was packed */
        uint32_t round;
        uint16_t key_len;
        uint8_t squeezed; /* by this dictionary; 0: it is as it was packed */
        struct link links[];
};

struct cache {
        const struct kube_type *type;
        const struct cache_index *indexes;
        const char *owner_label;
        size_t n_links; /* owner, then the declared ones */
        void (*project)(struct json *object, struct arena *a);
        bool (*ended)(const struct json *object);
        struct squeeze *squeeze; /* NULL: nothing has ended yet */
        struct map by_key, by_uid, by_value[INDEXES_MAX];
        struct json_names *names;
        struct buf packed; /* scratch */
        uint32_t round;
        size_t bytes;
        struct metric *objects_metric, *bytes_metric;
        size_t told_objects,
                told_bytes; /* of what they say, this cache's part: others may have the same type */
        VEC(struct listener {
                cache_listener fn;
                void *arg;
        })
        listeners;
};

/* The key is "ns\0name": both are C strings inside one counted one. */
static struct str make_key(char out[KEY_MAX], const char *ns, const char *name)
{
        size_t a = strlen(ns ? ns : ""), b = strlen(name);

        if (a + 1 + b > KEY_MAX)
                return STR_NULL;
        memcpy(out, ns ? ns : "", a);
        out[a] = '\0';
        memcpy(out + a + 1, name, b);
        return str_n(out, a + 1 + b);
}

static struct str entry_key(const struct entry *e)
{
        return str_n(e->pub.ns, e->key_len);
}

static struct str entry_content(const struct entry *e)
{
        return str_n((const char *)e + e->packed_at, e->size - e->packed_at);
}

/* ---- indexes */

static void link_entry(struct cache *c, struct entry *e)
{
        for (size_t i = 0; i < c->n_links; i++) {
                struct link *l = &e->links[i], *head;

                list_init(&l->node);
                if (!l->value[0])
                        continue;
                head = map_get(&c->by_value[i], str_of(l->value));
                if (head)
                        list_append(&head->node, &l->node);
                else
                        map_put(&c->by_value[i], str_of(l->value), l);
        }
}

static void unlink_entry(struct cache *c, struct entry *e)
{
        for (size_t i = 0; i < c->n_links; i++) {
                struct link *l = &e->links[i], *next = CONTAINER_OF(l->node.next, struct link, node);

                if (!l->value[0])
                        continue;
                if (map_get(&c->by_value[i], str_of(l->value)) == l) {
                        map_remove(&c->by_value[i], str_of(l->value));
                        if (next != l)
                                map_put(&c->by_value[i], str_of(next->value), next);
                }
                list_remove(&l->node);
        }
}

static struct entry *entry_of_link(struct link *l, size_t index)
{
        return CONTAINER_OF(l - index, struct entry, links);
}

static const struct cache_entry *first_linked(const struct cache *c, size_t index, const char *value)
{
        struct link *l = value && value[0] ? map_get(&c->by_value[index], str_of(value)) : NULL;

        return l ? &entry_of_link(l, index)->pub : NULL;
}

static const struct cache_entry *next_linked(const struct cache *c, size_t index,
                                             const struct cache_entry *pub)
{
        struct entry *e = CONTAINER_OF(pub, struct entry, pub);
        struct link *l = CONTAINER_OF(e->links[index].node.next, struct link, node);

        /* The ring ends where the map points. */
        return l == map_get(&c->by_value[index], str_of(l->value)) ? NULL : &entry_of_link(l, index)->pub;
}

/* ---- entries */

static char *place(char **at, const char *s, size_t n)
{
        char *p = *at;

        memcpy(p, s, n);
        p[n] = '\0';
        *at += n + 1;
        return p;
}

struct fields {
        const char *ns, *name, *uid, *rv, *owner;
        const char *values[INDEXES_MAX]; /* [0] is the owner */
        bool deleting;
};

static const char *owner_of(const struct cache *c, const struct json *object)
{
        const struct json *labels = json_at(json_at(object, "metadata"), "labels");

        return c->owner_label ? json_str(labels, c->owner_label) : meta_controller_uid(object);
}

static int read_fields(const struct cache *c, const struct json *object, struct fields *f, struct err *err)
{
        f->ns = meta_str(object, "namespace");
        f->name = meta_str(object, "name");
        f->uid = meta_str(object, "uid");
        f->rv = meta_str(object, "resourceVersion");
        f->owner = owner_of(c, object);
        f->deleting = meta_str(object, "deletionTimestamp") != NULL;
        f->ns = f->ns ? f->ns : "";
        f->owner = f->owner ? f->owner : "";
        if (!f->name || !f->uid || !f->rv)
                return err_set(err, E_INVALID, "%s from the server has no %s", c->type->kind,
                               !f->name  ? "name"
                               : !f->uid ? "uid"
                                         : "resourceVersion");
        if (strlen(f->ns) + 1 + strlen(f->name) > KEY_MAX)
                return err_set(err, E_INVALID, "%s from the server has a name that is too long",
                               c->type->kind);
        f->values[0] = f->owner;
        for (size_t i = 1; i < c->n_links; i++) {
                f->values[i] = json_cstr(json_path(object, c->indexes[i - 1].path));
                f->values[i] = f->values[i] ? f->values[i] : "";
        }
        return 0;
}

static struct entry *entry_new(const struct cache *c, const struct fields *f, struct str packed)
{
        size_t ns = strlen(f->ns), name = strlen(f->name), uid = strlen(f->uid), rv = strlen(f->rv);
        size_t head = sizeof(struct entry) + c->n_links * sizeof(struct link);
        size_t size = head + ns + name + uid + rv + 4 + packed.n;
        struct entry *e;
        char *at;

        for (size_t i = 0; i < c->n_links; i++)
                size += strlen(f->values[i]) + 1; /* NOLINT(clang-analyzer-core.*): all are set */
        e = xmalloc(size);
        memset(e, 0, head);
        at = (char *)e + head;
        e->size = (uint32_t)size;
        e->key_len = (uint16_t)(ns + 1 + name);
        e->pub.ns = place(&at, f->ns, ns);
        e->pub.name = place(&at, f->name, name);
        e->pub.uid = place(&at, f->uid, uid);
        e->pub.rv = place(&at, f->rv, rv);
        for (size_t i = 0; i < c->n_links; i++)
                e->links[i].value = place(&at, f->values[i], strlen(f->values[i]));
        e->pub.owner = e->links[0].value;
        e->pub.deleting = f->deleting;
        e->packed_at = (uint32_t)(at - (char *)e);
        memcpy(at, packed.p, packed.n);
        return e;
}

static struct entry *entry_squeezed(struct cache *c, const struct fields *f, struct str packed, bool ended)
{
        struct str content = packed;
        unsigned dictionary = 0;
        struct entry *e;

        if (ended && !c->squeeze)
                c->squeeze = xcalloc(1, sizeof(*c->squeeze));
        if (ended)
                dictionary = squeeze_text(c->squeeze, packed, &content);
        e = entry_new(c, f, dictionary ? content : packed);
        e->packed_n = (uint32_t)packed.n;
        e->squeezed = (uint8_t)dictionary;
        e->round = c->round;
        return e;
}

/* The content is compared too: after an etcd restore the same version may say something else. */
static bool is_same(const struct entry *e, const struct fields *f, struct str packed, uint64_t hash)
{
        return streq(e->pub.uid, f->uid) && streq(e->pub.rv, f->rv) && e->packed_n == packed.n &&
               e->hash == hash;
}

/* What every object carries and nobody decides on. Kind and version are the cache's, and come back in cache_parse(). */
static void strip(struct json *object)
{
        struct json *meta = json_at(object, "metadata"), *notes = json_at(meta, "annotations");

        json_remove(object, "apiVersion");
        json_remove(object, "kind");
        if (meta) {
                json_remove(meta, "managedFields");
                json_remove(meta, "selfLink");
        }
        if (notes)
                json_remove(notes, "kubectl.kubernetes.io/last-applied-configuration");
}

/* What the entry has anyway need not be in the packed object as well: a tenth of a small one. */
static void strip_identity(struct json *object)
{
        struct json *meta = json_at(object, "metadata");

        json_remove(meta, "name");
        json_remove(meta, "namespace");
        json_remove(meta, "uid");
        json_remove(meta, "resourceVersion");
}

static void restore_identity(const struct cache_entry *e, struct json *object, struct arena *a)
{
        struct json *meta = json_at(object, "metadata");

        json_set(a, meta, "name", json_string(a, e->name));
        if (e->ns[0])
                json_set(a, meta, "namespace", json_string(a, e->ns));
        json_set(a, meta, "uid", json_string(a, e->uid));
        json_set(a, meta, "resourceVersion", json_string(a, e->rv));
}

static void tell_metrics(struct cache *c, size_t objects, size_t bytes)
{
        if (!c->objects_metric)
                return;
        metric_add(c->objects_metric, (double)objects - (double)c->told_objects);
        metric_add(c->bytes_metric, (double)bytes - (double)c->told_bytes);
        c->told_objects = objects;
        c->told_bytes = bytes;
}

static void notify(struct cache *c, enum cache_change change, const struct entry *before,
                   const struct entry *after, bool initial)
{
        tell_metrics(c, c->by_key.n, c->bytes);
        for (size_t i = 0; i < c->listeners.n; i++)
                c->listeners.v[i].fn(c->listeners.v[i].arg, change, before ? &before->pub : NULL,
                                     after ? &after->pub : NULL, initial);
}

static void insert(struct cache *c, struct entry *e, struct entry *before)
{
        if (before) {
                unlink_entry(c, before);
                if (map_get(&c->by_uid, str_of(before->pub.uid)) == before)
                        map_remove(&c->by_uid, str_of(before->pub.uid));
                c->bytes -= before->size;
        }
        map_put(&c->by_key, entry_key(e), e);
        map_put(&c->by_uid, str_of(e->pub.uid), e);
        link_entry(c, e);
        c->bytes += e->size;
}

int cache_put(struct cache *c, struct json *object, struct arena *a, bool initial, struct err *err)
{
        struct entry *before, *e;
        char key[KEY_MAX];
        struct fields f;
        uint64_t hash;

        if (!json_is(object, JSON_OBJECT))
                return err_set(err, E_INVALID, "%s from the server is not an object", c->type->kind);
        strip(object);
        if (c->project)
                c->project(object, a);
        if (read_fields(c, object, &f, err) < 0)
                return -1;
        strip_identity(object);
        buf_clear(&c->packed);
        json_pack(c->names, object, &c->packed);
        if (c->packed.overflow)
                return err_set(err, E_TOO_LARGE, "%s %s/%s is too large", c->type->kind, f.ns, f.name);
        hash = str_hash(buf_str(&c->packed));
        before = map_get(&c->by_key, make_key(key, f.ns, f.name));
        if (before && is_same(before, &f, buf_str(&c->packed), hash)) {
                before->round = c->round;
                return 0;
        }
        e = entry_squeezed(c, &f, buf_str(&c->packed), c->ended && c->ended(object));
        e->hash = hash;
        insert(c, e, before);
        notify(c, before ? CACHE_UPDATED : CACHE_ADDED, before, e, initial);
        free(before);
        return 0;
}

static void take_out(struct cache *c, struct entry *e)
{
        map_remove(&c->by_key, entry_key(e));
        if (map_get(&c->by_uid, str_of(e->pub.uid)) == e)
                map_remove(&c->by_uid, str_of(e->pub.uid));
        unlink_entry(c, e);
        c->bytes -= e->size;
}

static void remove_entry(struct cache *c, struct entry *e, bool initial)
{
        take_out(c, e);
        notify(c, CACHE_REMOVED, e, NULL, initial);
        free(e);
}

void cache_forget(struct cache *c, const char *ns, const char *name, const char *rv)
{
        char key[KEY_MAX];
        struct entry *e = map_get(&c->by_key, make_key(key, ns, name));

        if (!e || !streq(e->pub.rv, rv))
                return;
        take_out(c, e);
        tell_metrics(c, c->by_key.n, c->bytes);
        free(e);
}

void cache_remove(struct cache *c, const char *ns, const char *name)
{
        char key[KEY_MAX];
        struct entry *e = map_get(&c->by_key, make_key(key, ns, name));

        if (e)
                remove_entry(c, e, false);
}

void cache_begin_replace(struct cache *c)
{
        c->round++;
}

void cache_end_replace(struct cache *c)
{
        VEC(struct entry *) gone = {0};
        struct entry *e;

        map_foreach (i, &c->by_key, e)
                if (e->round != c->round)
                        *vec_push(&gone) = e;
        vec_foreach (it, &gone)
                remove_entry(c, *it, true);
        vec_done(&gone);
}

/* ---- readers */

const struct cache_entry *cache_get(const struct cache *c, const char *ns, const char *name)
{
        char key[KEY_MAX];
        struct entry *e = map_get(&c->by_key, make_key(key, ns, name));

        return e ? &e->pub : NULL;
}

const struct cache_entry *cache_get_uid(const struct cache *c, const char *uid)
{
        struct entry *e = map_get(&c->by_uid, str_of(uid));

        return e ? &e->pub : NULL;
}

size_t cache_count(const struct cache *c)
{
        return c->by_key.n;
}

size_t cache_bytes(const struct cache *c)
{
        return c->bytes;
}

const struct cache_entry *cache_first_owned(const struct cache *c, const char *owner_uid)
{
        return first_linked(c, 0, owner_uid);
}

const struct cache_entry *cache_next_owned(const struct cache *c, const struct cache_entry *e)
{
        return next_linked(c, 0, e);
}

const struct cache_entry *cache_first_indexed(const struct cache *c, size_t index, const char *value)
{
        return first_linked(c, index + 1, value);
}

const struct cache_entry *cache_next_indexed(const struct cache *c, size_t index, const struct cache_entry *e)
{
        return next_linked(c, index + 1, e);
}

const struct cache_entry *cache_next(const struct cache *c, size_t *i)
{
        struct entry *e;

        return map_next(&c->by_key, i, (void **)&e) ? &e->pub : NULL;
}

const struct kube_type *cache_type(const struct cache *c)
{
        return c->type;
}

struct json *cache_parse(const struct cache *c, const struct cache_entry *e, struct arena *a)
{
        const struct entry *entry = CONTAINER_OF(e, struct entry, pub);
        struct str packed = entry_content(entry);
        struct json *j;

        if (entry->squeezed)
                packed = squeeze_expand(c->squeeze, packed, entry->squeezed, entry->packed_n);
        j = json_unpack(c->names, packed, a);
        restore_identity(e, j, a);
        json_set(a, j, "apiVersion", json_string(a, kube_api_version(c->type, a)));
        json_set(a, j, "kind", json_string(a, c->type->kind));
        return j;
}

/* ---- life */

static const char *const metric_labels[] = {"group", "resource", NULL};
static const struct metric_family objects_family = {
        "sonde_cache_objects", "Objects in the cache.", METRIC_GAUGE, metric_labels, NULL, 0};
static const struct metric_family bytes_family = {
        "sonde_cache_bytes", "Memory of the objects in the cache.", METRIC_GAUGE, metric_labels, NULL, 0};

struct cache *cache_new(const struct cache_config *config)
{
        struct cache *c = xcalloc(1, sizeof(*c));

        c->type = config->type;
        c->indexes = config->indexes;
        c->owner_label = config->owner_label;
        c->n_links = 1 + MIN(config->n_indexes, (size_t)INDEXES_MAX - 1);
        c->project = config->project;
        c->ended = config->ended;
        c->packed = (struct buf)BUF_INIT(16 << 20);
        c->names = json_names_new();
        if (config->metrics) {
                const char *labels[] = {c->type->group, c->type->plural};

                c->objects_metric = metrics_get(config->metrics, &objects_family, labels);
                c->bytes_metric = metrics_get(config->metrics, &bytes_family, labels);
        }
        return c;
}

void cache_free(struct cache *c)
{
        struct entry *e;

        if (!c)
                return;
        tell_metrics(c, 0, 0);
        map_foreach (i, &c->by_key, e)
                free(e);
        map_done(&c->by_key);
        map_done(&c->by_uid);
        for (size_t i = 0; i < INDEXES_MAX; i++)
                map_done(&c->by_value[i]);
        buf_done(&c->packed);
        json_names_free(c->names);
        squeeze_free(c->squeeze);
        vec_done(&c->listeners);
        free(c);
}

void cache_listen(struct cache *c, cache_listener fn, void *arg)
{
        *vec_push(&c->listeners) = (struct listener){fn, arg};
}

void cache_unlisten(struct cache *c, cache_listener fn, void *arg)
{
        for (size_t i = 0; i < c->listeners.n; i++)
                if (c->listeners.v[i].fn == fn && c->listeners.v[i].arg == arg) {
                        c->listeners.v[i] = c->listeners.v[--c->listeners.n];
                        return;
                }
}
