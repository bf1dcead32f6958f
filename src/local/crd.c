#include "local/api_internal.h"

#define CRD_TYPE  "customresourcedefinitions.apiextensions.k8s.io"
#define CRD_CLEAN "customresourcecleanup.apiextensions.k8s.io"

/* One definition as it is served: its types, one a served version. Requests keep it while they use a type of it. */
struct crd {
        unsigned refs;
        struct arena a;
        char *name;
        VEC(struct api_type *) types;
        VEC(struct shapes *) shapes;
};

struct crd *crd_ref(struct crd *crd)
{
        if (crd)
                crd->refs++;
        return crd;
}

void crd_unref(struct crd *crd)
{
        if (!crd || --crd->refs)
                return;
        vec_foreach (t, &crd->types)
                if ((*t)->schema)
                        schema_free((*t)->schema);
        vec_foreach (s, &crd->shapes)
                shapes_free(*s);
        vec_done(&crd->types);
        vec_done(&crd->shapes);
        arena_done(&crd->a);
        free(crd->name);
        free(crd);
}

/* ---- types from a definition */

static const char *const *string_list(struct arena *a, const struct json *array)
{
        const char **list;
        size_t i = 0;

        if (json_len(array) == 0)
                return NULL;
        list = arena_new_array(a, const char *, json_len(array) + 1);
        json_foreach (s, array)
                list[i++] = arena_strdup(a, json_cstr(s) ? json_cstr(s) : "");
        return list;
}

static void add_column(struct crd *crd, struct table_column *col, const struct json *from)
{
        const char *description = json_str(from, "description"), *name = json_str_or(from, "name", "");
        const char *path = json_str_or(from, "jsonPath", "");

        *col = (struct table_column){
                .name = arena_strdup(&crd->a, name),
                .type = arena_strdup(&crd->a, json_str_or(from, "type", "string")),
                .format = arena_strdup(&crd->a, json_str_or(from, "format", "")),
                .description = description
                                       ? arena_strdup(&crd->a, description)
                                       : arena_printf(
                                                 &crd->a,
                                                 "Custom resource definition column (in JSONPath format): %s",
                                                 path),
                .priority = (int)json_int(from, "priority", 0),
                .json_path = arena_strdup(&crd->a, path),
        };
}

static void set_columns(struct crd *crd, struct api_type *t, const struct json *printer,
                        const struct table_column *name)
{
        size_t n = json_len(printer), i = 1;
        struct table_column *cols = arena_new_array(&crd->a, struct table_column, (n ? n : 1) + 1);

        cols[0] = *name;
        if (n == 0) {
                const struct json *age = json_build(&crd->a, "{'name': 'Age', 'type': 'date', 'jsonPath': "
                                                             "'.metadata.creationTimestamp'}");

                add_column(crd, &cols[i++], age);
                cols[1].description = table_age_column()->description;
        }
        json_foreach (p, printer)
                add_column(crd, &cols[i++], p);
        t->columns = cols;
        t->n_columns = i;
}

/* With the None strategy versions differ in nothing but their name. */
static void custom_from_stored(const struct api_type *t, struct json *object, struct arena *a)
{
        json_set(a, object, "apiVersion", json_string(a, kube_api_version(&t->kube, a)));
}

static const char *storage_version(const struct json *spec)
{
        json_foreach (v, json_at(spec, "versions"))
                if (json_bool(v, "storage", false))
                        return json_str(v, "name");
        return NULL;
}

static void set_names(struct crd *crd, struct api_type *t, const struct json *spec, const char *version)
{
        const struct json *names = json_at(spec, "names");
        struct arena *a = &crd->a;
        const char *kind = json_str_or(names, "kind", "");

        t->kube = (struct kube_type){.group = arena_strdup(a, json_str_or(spec, "group", "")),
                                     .version = arena_strdup(a, version),
                                     .plural = arena_strdup(a, json_str_or(names, "plural", "")),
                                     .kind = arena_strdup(a, kind),
                                     .namespaced = streq(json_str(spec, "scope"), "Namespaced")};
        t->singular = arena_strdup(a, json_str_or(names, "singular", ""));
        t->list_kind = arena_strdup(a, json_str_or(names, "listKind", arena_printf(a, "%sList", kind)));
        t->short_names = string_list(a, json_at(names, "shortNames"));
        t->categories = string_list(a, json_at(names, "categories"));
}

static const char *const *other_versions(struct crd *crd, const struct json *spec, const char *group,
                                         const char *mine)
{
        const struct json *versions = json_at(spec, "versions");
        const char **list = arena_new_array(&crd->a, const char *, json_len(versions) + 1);
        size_t n = 0;

        json_foreach (v, versions)
                if (!streq(json_str(v, "name"), mine))
                        list[n++] = arena_printf(&crd->a, "%s/%s", group, json_str_or(v, "name", ""));
        return list;
}

static struct api_type *make_type(struct api *api, struct crd *crd, const struct json *spec,
                                  const struct json *version)
{
        static const char *const status_only[] = {"status", NULL};
        struct api_type *t = arena_new(&crd->a, struct api_type);
        const struct json *schema = json_path(version, "schema.openAPIV3Schema");
        const char *name = json_str_or(version, "name", ""), *storage = storage_version(spec);
        struct shapes *shapes = shapes_of_crd(types_shapes(api->builtin), schema);

        set_names(crd, t, spec, name);
        t->kube.has_status = json_path(version, "subresources.status");
        t->subresources = t->kube.has_status ? status_only : NULL;
        t->store = store_type(api->store, crd->name);
        t->storage_hash = types_storage_hash(t->kube.group, storage, t->kube.kind, &crd->a);
        t->verbs = VERB_ALL;
        t->name = NAME_SUBDOMAIN;
        t->has_generation = true;
        t->update_needs_rev = true;
        t->schema = schema ? schema_new(schema, NULL) : NULL;
        t->preserve = !schema || json_bool(schema, "x-kubernetes-preserve-unknown-fields", false);
        t->crd = crd;
        t->shape = shapes_root(shapes);
        *vec_push(&crd->shapes) = shapes;
        set_columns(crd, t, json_at(version, "additionalPrinterColumns"), table_name_column());
        t->other_versions = other_versions(crd, spec, t->kube.group, name);
        if (!streq(name, storage)) {
                t->stored_version = arena_printf(&crd->a, "%s/%s", t->kube.group, storage);
                t->from_stored = custom_from_stored;
        }
        return t;
}

static struct crd *crd_new(struct api *api, const struct json *object)
{
        struct crd *crd = xcalloc(1, sizeof(*crd));
        const struct json *spec = json_at(object, "spec");

        crd->refs = 1;
        crd->name = xstrdup(meta_str(object, "name"));
        json_foreach (v, json_at(spec, "versions"))
                if (json_bool(v, "served", false))
                        *vec_push(&crd->types) = make_type(api, crd, spec, v);
        return crd;
}

/* ---- serving */

static void unserve(struct api *api, const char *name)
{
        size_t kept = 0;

        for (size_t i = 0; i < api->types.n; i++)
                if (!api->types.v[i]->crd || !streq(api->types.v[i]->crd->name, name))
                        api->types.v[kept++] = api->types.v[i];
        api->types.n = kept;
        for (size_t i = 0; i < api->crds.n; i++) {
                struct crd *crd = api->crds.v[i];

                if (!streq(crd->name, name))
                        continue;
                api->crds.v[i] = api->crds.v[--api->crds.n];
                crd_unref(crd);
                break;
        }
}

static void serve(struct api *api, const struct json *object)
{
        struct crd *crd = crd_new(api, object);

        unserve(api, crd->name);
        *vec_push(&api->crds) = crd;
        vec_foreach (t, &crd->types)
                *vec_push(&api->types) = *t;
        api_types_changed(api);
}

static const struct json *condition(const struct json *object, const char *type)
{
        json_foreach (c, json_path(object, "status.conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

static bool is_true(const struct json *object, const char *type)
{
        return streq(json_str(condition(object, type), "status"), "True");
}

/* ---- what the controllers of definitions do */

/* A name that another definition of the group has taken; NULL. */
static const char *taken_name(struct api *api, const struct json *object, const char *key, struct arena *a)
{
        const struct json *spec = json_at(object, "spec"), *names = json_at(spec, "names");
        const char *mine = json_str_or(names, key, "");

        vec_foreach (t, &api->types) {
                const struct api_type *other = *t;
                const char *theirs = streq(key, "plural")     ? other->kube.plural
                                     : streq(key, "kind")     ? other->kube.kind
                                     : streq(key, "listKind") ? other->list_kind
                                                              : other->singular;

                if (!other->crd || streq(other->crd->name, meta_str(object, "name")) ||
                    !streq(other->kube.group, json_str(spec, "group")))
                        continue;
                if (*mine && streq(mine, theirs))
                        return arena_printf(a, "\"%s\" is already in use", mine);
        }
        return NULL;
}

static struct json *new_condition(struct call *c, const char *type, const char *status, const char *reason,
                                  const char *message)
{
        return json_build(c->a,
                          "{'type': %s, 'status': %s, 'lastTransitionTime': %p, 'reason': %s, 'message': %s}",
                          type, status, time_now(c), reason, message);
}

/* Stages a new status of a definition, written by the server itself. */
static void write_status(struct api *api, const struct json *object, struct json *status, struct arena *a)
{
        struct call c = {
                .api = api,
                .a = a,
                .type = api_find_plural(api, "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
                .verb = DO_PATCH,
                .patch = PATCH_JSON_MERGE,
                .ns = "",
                .name = meta_str(object, "name"),
                .sub = "status",
                .manager = "kube-apiserver",
                .grace = -1};

        c.body = json_build(a, "{'status': %p}", status);
        api_do(&c);
}

/* Short names that nobody in the group has. */
static struct json *free_short_names(struct api *api, const struct json *object, const char **taken,
                                     struct arena *a)
{
        const struct json *spec = json_at(object, "spec");
        struct json *list = json_array(a);

        json_foreach (name, json_path(spec, "names.shortNames")) {
                bool used = false;

                vec_foreach (t, &api->types)
                        for (const char *const *s = (*t)->short_names; s && *s && !used; s++)
                                used = (*t)->crd && !streq((*t)->crd->name, meta_str(object, "name")) &&
                                       streq((*t)->kube.group, json_str(spec, "group")) &&
                                       streq(*s, json_cstr(name));
                if (used)
                        *taken = arena_printf(a, "\"%s\" is already in use", json_cstr(name));
                else
                        json_append(list, json_copy(a, name));
        }
        return list;
}

/* Each name is accepted by itself; of several conflicts the last one is told. */
static struct json *accepted_names(struct api *api, const struct json *object, const char **reason,
                                   const char **conflict, struct arena *a)
{
        static const struct {
                const char *key, *reason;
        } checks[] = {{"plural", "PluralConflict"},
                      {"singular", "SingularConflict"},
                      {"kind", "KindConflict"},
                      {"listKind", "ListKindConflict"}};
        struct json *accepted = json_copy(a, json_path(object, "spec.names"));
        struct json *short_names = free_short_names(api, object, conflict, a);

        if (*conflict)
                *reason = "ShortNamesConflict";
        json_remove(accepted, "shortNames");
        if (json_len(short_names) > 0)
                json_set(a, accepted, "shortNames", short_names);
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
                const char *taken = taken_name(api, object, checks[i].key, a);

                if (!taken)
                        continue;
                *conflict = taken;
                *reason = checks[i].reason;
                if (streq(checks[i].key, "plural") || streq(checks[i].key, "kind"))
                        json_set(a, accepted, checks[i].key, json_string(a, ""));
                else
                        json_remove(accepted, checks[i].key);
        }
        return accepted;
}

static void accept_names(struct api *api, const struct json *object, struct arena *a)
{
        struct call c = {.api = api, .a = a};
        struct json *conditions = json_array(a), *accepted;
        const char *conflict = NULL, *reason = NULL;

        accepted = accepted_names(api, object, &reason, &conflict, a);
        json_append(conditions, new_condition(&c, "NamesAccepted", conflict ? "False" : "True",
                                              conflict ? reason : "NoConflicts",
                                              conflict ? conflict : "no conflicts found"));
        json_append(conditions, new_condition(&c, "Established", conflict ? "False" : "True",
                                              conflict ? "NotAccepted" : "InitialNamesAccepted",
                                              conflict ? "not all names are accepted"
                                                       : "the initial names have been accepted"));
        write_status(api, object,
                     json_build(a, "{'conditions': %p, 'acceptedNames': %p}", conditions, accepted), a);
}

/* Objects of a definition that goes go first; then its finalizer does. */
static void clean_up(struct api *api, const struct json *object, struct arena *a)
{
        const char *name = meta_str(object, "name");
        struct call c = {.api = api,
                         .a = a,
                         .verb = DO_DELETE_COLLECTION,
                         .ns = NULL,
                         .grace = -1,
                         .sub = "",
                         .manager = "kube-apiserver",
                         .propagation = "Background"};
        struct json *finalizers;

        vec_foreach (t, &api->types)
                if ((*t)->crd && streq((*t)->crd->name, name))
                        c.type = *t;
        if (c.type) {
                c.ns = NULL;
                do_delete_collection(&c, NULL);
        }
        if (store_count(api->store, store_type(api->store, name), NULL) > 0)
                return; /* the end of the last one comes here again */
        finalizers = json_array(a);
        json_foreach (f, json_path(object, "metadata.finalizers"))
                if (!streq(json_cstr(f), CRD_CLEAN))
                        json_append(finalizers, json_copy(a, f));
        c = (struct call){
                .api = api,
                .a = a,
                .type = api_find_plural(api, "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
                .verb = DO_PATCH,
                .patch = PATCH_JSON_MERGE,
                .ns = "",
                .name = name,
                .sub = "",
                .manager = "kube-apiserver",
                .grace = -1};
        c.body = json_build(a, "{'metadata': {'finalizers': %p}}", finalizers);
        api_do(&c);
}

static void definition_changed(struct api *api, const struct change *ch, struct arena *a)
{
        const struct json *object = object_parse(ch->after, a);

        if (ch->is_delete) {
                unserve(api, ch->after->name);
                api_types_changed(api);
                return;
        }
        if (!condition(object, "NamesAccepted")) {
                accept_names(api, object, a);
                return;
        }
        if (is_true(object, "Established"))
                serve(api, object);
        if (object_deleting(object) && has_finalizer(object, CRD_CLEAN))
                clean_up(api, object, a);
}

/* The last object of a definition that is going has gone. */
static void instance_gone(struct api *api, const struct change *ch, struct arena *a)
{
        const struct object *o = store_newest(api->store, store_type(api->store, CRD_TYPE), "",
                                              ch->after->type);
        const struct json *object = o ? object_parse(o, a) : NULL;

        if (object && object_deleting(object) && has_finalizer(object, CRD_CLEAN))
                clean_up(api, object, a);
}

void crd_changed(struct api *api, const struct change *ch)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        if (ch->after->type == store_type(api->store, CRD_TYPE))
                definition_changed(api, ch, &a);
        else if (ch->is_delete && strchr(ch->after->type, '.'))
                instance_gone(api, ch, &a);
}

static bool load_one(void *arg, struct object *o)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct api *api = arg;
        const struct json *object = object_parse(o, &a);

        if (is_true(object, "Established"))
                serve(api, object);
        return true;
}

void crds_load(struct api *api)
{
        struct store_range range = {.type = store_type(api->store, CRD_TYPE)};

        if (store_list(api->store, &range, load_one, api, NULL) < 0)
                abort(); /* "now" never expires */
}

void crds_free(struct api *api)
{
        vec_foreach (crd, &api->crds)
                crd_unref(*crd);
        vec_done(&api->crds);
}

/* ---- custom resources */

/* Numbers as Go would write them again: 2.0 and 1e3 are the integers 2 and 1000. */
static void plain_numbers(struct json *value, struct arena *a)
{
        int64_t i;

        json_foreach (child, value)
                plain_numbers(child, a);
        if (value->type != JSON_NUMBER || !json_to_i64(value, &i))
                return;
        value->text = arena_printf(a, "%lld", (long long)i);
        value->len = (uint32_t)strlen(value->text);
}

void custom_decode(struct call *c, struct json *object)
{
        const struct api_type *t = c->type;

        meta_tidy(object, c->a);
        plain_numbers(object, c->a);
        if (!t->schema)
                return;
        if (!t->preserve)
                schema_prune(t->schema, object, NULL);
        schema_default(t->schema, object, c->a);
}

void custom_validate(struct call *c, const struct json *object, struct causes *causes)
{
        struct schema_report report = {0};

        if (!c->type->schema || schema_validate(c->type->schema, object, c->a, &report))
                return;
        for (size_t i = 0; i < report.n; i++)
                causes_add(causes, schema_cause_reason(report.causes[i].type), report.causes[i].field, "%s",
                           report.causes[i].message);
}
