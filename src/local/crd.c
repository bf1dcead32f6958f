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

static void set_names(struct crd *crd, struct api_type *t, const struct json *spec, const struct json *names,
                      const char *version)
{
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

static struct api_type *make_type(struct api *api, struct crd *crd, const struct json *object,
                                  const struct json *version)
{
        static const char *const status_only[] = {"status", NULL};
        struct api_type *t = arena_new(&crd->a, struct api_type);
        const struct json *spec = json_at(object, "spec"),
                          *schema = json_path(version, "schema.openAPIV3Schema");
        const char *name = json_str_or(version, "name", ""), *storage = storage_version(spec);
        struct shapes *shapes = shapes_of_crd(types_shapes(api->builtin), schema);

        set_names(crd, t, spec, json_path(object, "status.acceptedNames"), name);
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

        crd->refs = 1;
        crd->name = xstrdup(meta_str(object, "name"));
        json_foreach (v, json_path(object, "spec.versions"))
                if (json_bool(v, "served", false))
                        *vec_push(&crd->types) = make_type(api, crd, object, v);
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

/* What the definitions of a group have been given: plurals, singulars and short names are one set, kinds another. */
struct claimed {
        struct arena *a;
        const char *group;
        struct json *resources, *kinds;
};

static const char *group_of(const char *definition)
{
        const char *dot = strchr(definition, '.');

        return dot ? dot + 1 : "";
}

static bool claim(void *arg, struct object *o)
{
        struct claimed *c = arg;
        const struct json *names;

        if (!streq(group_of(o->name), c->group))
                return true;
        names = json_path(object_parse(o, c->a), "status.acceptedNames");
        json_append(c->resources, json_copy(c->a, json_at(names, "plural")));
        json_append(c->resources, json_copy(c->a, json_at(names, "singular")));
        json_foreach (s, json_at(names, "shortNames"))
                json_append(c->resources, json_copy(c->a, s));
        json_append(c->kinds, json_copy(c->a, json_at(names, "kind")));
        json_append(c->kinds, json_copy(c->a, json_at(names, "listKind")));
        return true;
}

/* NAMES is NAME, or a list that has it. */
static bool named(const struct json *names, const char *name)
{
        json_foreach (n, names)
                if (streq(json_cstr(n), name))
                        return true;
        return streq(json_cstr(names), name);
}

static const char *taken(const char *name, const struct json *given, const struct json *used, struct arena *a)
{
        return !named(given, name) && named(used, name) ? arena_printf(a, "\"%s\" is already in use", name)
                                                        : NULL;
}

/* What is wrong with WANTED, a name or a list of them, where GIVEN is the definition's already; NULL: nothing. */
static const char *conflict_of(const struct json *wanted, const struct json *given, const struct json *used,
                               struct arena *a)
{
        const char *all = NULL;
        size_t n = 0;

        if (json_cstr(wanted))
                return taken(json_cstr(wanted), given, used, a);
        json_foreach (name, wanted) {
                const char *one = taken(json_cstr(name), given, used, a);

                if (one && n++)
                        all = arena_printf(a, "%s, %s", all, one);
                else if (one)
                        all = one;
        }
        return n > 1 ? arena_printf(a, "[%s]", all) : all;
}

/* Each name is accepted by itself, short names all or none; of several conflicts the last one is told. */
static struct json *accepted_names(const struct claimed *c, const struct json *object, const char **reason,
                                   const char **conflict)
{
        static const struct {
                const char *key, *reason;
                bool of_kinds;
        } checks[] = {{"plural", "PluralConflict", false},
                      {"singular", "SingularConflict", false},
                      {"shortNames", "ShortNamesConflict", false},
                      {"kind", "KindConflict", true},
                      {"listKind", "ListKindConflict", true}};
        const struct json *names = json_path(object, "spec.names"),
                          *given = json_path(object, "status.acceptedNames");
        struct json *accepted = json_object(c->a);

        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
                const struct json *want = json_at(names, checks[i].key), *has = json_at(given, checks[i].key);
                const char *wrong = conflict_of(want, has, checks[i].of_kinds ? c->kinds : c->resources,
                                                c->a);

                json_set(c->a, accepted, checks[i].key, json_copy(c->a, wrong ? has : want));
                if (!wrong)
                        continue;
                *conflict = wrong;
                *reason = checks[i].reason;
        }
        json_set(c->a, accepted, "categories", json_copy(c->a, json_at(names, "categories")));
        return accepted;
}

/* In the place of the one of its type; its time is that of its status. */
static void set_condition(struct call *c, struct json *conditions, const char *type, const char *status,
                          const char *reason, const char *message)
{
        json_foreach (old, conditions) {
                if (!streq(json_str(old, "type"), type))
                        continue;
                if (!streq(json_str(old, "status"), status))
                        json_set(c->a, old, "lastTransitionTime", time_now(c));
                json_set(c->a, old, "status", json_string(c->a, status));
                json_set(c->a, old, "reason", json_string(c->a, reason));
                json_set(c->a, old, "message", json_string(c->a, message));
                return;
        }
        json_append(conditions, new_condition(c, type, status, reason, message));
}

/* What is established stays so, under the names that it has. */
static struct json *judged_conditions(struct call *c, const struct json *object, const char *reason,
                                      const char *conflict)
{
        const struct json *old = json_path(object, "status.conditions");
        struct json *list = json_len(old) ? json_copy(c->a, old) : json_array(c->a);

        set_condition(c, list, "NamesAccepted", conflict ? "False" : "True",
                      conflict ? reason : "NoConflicts", conflict ? conflict : "no conflicts found");
        if (!is_true(object, "Established"))
                set_condition(c, list, "Established", conflict ? "False" : "True",
                              conflict ? "NotAccepted" : "InitialNamesAccepted",
                              conflict ? "not all names are accepted"
                                       : "the initial names have been accepted");
        return list;
}

/* Gives the definition the names that it wants and nobody has, where it has not got them all. */
static void judge(struct api *api, const char *name, struct arena *a)
{
        struct store_range all = {.type = store_type(api->store, CRD_TYPE), .newest = true};
        const struct object *o = store_newest(api->store, all.type, "", name);
        const struct json *object = o ? object_parse(o, a) : NULL, *given;
        struct claimed claimed = {a, group_of(name), json_array(a), json_array(a)};
        struct call c = {.api = api, .a = a};
        const char *conflict = NULL, *reason = NULL;
        struct json *accepted, *conditions;

        given = json_path(object, "status.acceptedNames");
        if (!object || json_equal(json_path(object, "spec.names"), given))
                return;
        if (store_list(api->store, &all, claim, &claimed, NULL) < 0)
                abort(); /* "now" never expires */
        accepted = accepted_names(&claimed, object, &reason, &conflict);
        conditions = judged_conditions(&c, object, reason, conflict);
        if (json_equal(accepted, given) && json_equal(conditions, json_path(object, "status.conditions")))
                return;
        json_foreach (had, given) /* what is given back; a merge would keep it */
                if (!json_at(accepted, had->key))
                        json_set(a, accepted, had->key, json_null(a));
        write_status(api, object,
                     json_build(a, "{'conditions': %p, 'acceptedNames': %p}", conditions, accepted), a);
}

struct judging {
        struct api *api;
        const char *group; /* NULL: all */
        struct arena *a;
};

static bool judge_one(void *arg, struct object *o)
{
        struct judging *j = arg;

        if (!j->group || streq(group_of(o->name), j->group))
                judge(j->api, o->name, j->a);
        return true;
}

/* A definition that came, changed or went may have left names to others, so all of its group (NULL: of every one) are
 * looked at. */
static void judge_group(struct api *api, const char *group, struct arena *a)
{
        struct store_range all = {.type = store_type(api->store, CRD_TYPE), .newest = true};
        struct judging j = {api, group, a};

        if (store_list(api->store, &all, judge_one, &j, NULL) < 0)
                abort(); /* "now" never expires */
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

        judge_group(api, group_of(ch->after->name), a);
        if (ch->is_delete) {
                unserve(api, ch->after->name);
                api_types_changed(api);
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

void crds_resume(struct api *api)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        judge_group(api, NULL, &a);
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
