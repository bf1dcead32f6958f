#include "local/api_internal.h"

struct json *object_parse(const struct object *o, struct arena *a)
{
        return json_parse(a, o->text, NULL, NULL);
}

struct json *call_newest(struct call *c)
{
        const struct object *o = store_newest(c->api->store, c->type->store, c->ns, c->name);

        return o ? object_parse(o, c->a) : NULL;
}

/* ---- staging */

static int too_large(struct call *c)
{
        return fail(c, 500, NULL, NULL, "etcdserver: request is too large");
}

/* Taking a member takes its name away, too. */
static void move_member(struct arena *a, struct json *from, struct json *member, struct json *to)
{
        struct str key = str_n(member->key, member->key_len);

        json_setn(a, to, key, json_take(from, member));
}

/* kind, apiVersion and metadata come first, so that lists can cut the first two off. */
static void set_type(struct call *c, struct json *object)
{
        struct json *rest = json_object(c->a), *meta = json_remove(object, "metadata"), *first;
        const char *version = c->type->stored_version ? c->type->stored_version
                                                      : kube_api_version(&c->type->kube, c->a);

        json_remove(object, "kind");
        json_remove(object, "apiVersion");
        while ((first = json_first(object)))
                move_member(c->a, object, first, rest);
        json_set(c->a, object, "kind", json_string(c->a, c->type->kube.kind));
        json_set(c->a, object, "apiVersion", json_string(c->a, version));
        json_set(c->a, object, "metadata", meta ? meta : json_object(c->a));
        while ((first = json_first(rest)))
                move_member(c->a, rest, first, object);
}

static int stage_object(struct call *c, struct json *object, bool is_delete)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(API_OBJECT_MAX);
        struct json *meta = json_at(object, "metadata");
        char rev[24];

        snprintf(rev, sizeof(rev), "%llu", (unsigned long long)store_next_rev(c->api->store));
        json_set(c->a, meta, "resourceVersion", json_string(c->a, rev));
        meta_tidy(object, c->a);
        set_type(c, object);
        json_write(object, JSON_COMPACT, &text);
        if (text.overflow)
                return too_large(c);
        store_stage(c->api->store,
                    &(struct store_write){.type = c->type->store,
                                          .ns = c->ns,
                                          .name = meta_str(object, "name"),
                                          .text = buf_str(&text),
                                          .is_delete = is_delete},
                    NULL, NULL);
        return 0;
}

int call_replace(struct call *c, struct json *object)
{
        return stage_object(c, object, false);
}

struct json *call_remove(struct call *c, const struct json *old)
{
        struct json *last = json_copy(c->a, old);

        if (!c->dry_run && stage_object(c, last, true) < 0)
                return NULL;
        return last;
}

/* ---- what every write goes through */

static struct strategy_context context(struct call *c)
{
        return (struct strategy_context){.type = c->type, .now = loop_wall(c->api->loop), .a = c->a};
}

static struct managed managed_of(struct call *c)
{
        return (struct managed){.shape = c->type->shape,
                                .api_version = kube_api_version(&c->type->kube, c->a),
                                .kind = c->type->kube.kind,
                                .manager = c->manager,
                                .now = loop_wall(c->api->loop),
                                .force = c->force,
                                .sub = *c->sub,
                                .versions = c->type->other_versions};
}

/* What is stored as another version: fields are owned by the names that their writer knows. */
static void manage_converted(struct call *c, const struct managed *m, const struct json *old,
                             struct json *object)
{
        struct json *was = old ? json_copy(c->a, old) : NULL, *is = json_copy(c->a, object), *managed;

        if (was)
                c->type->from_stored(c->type, was, c->a);
        c->type->from_stored(c->type, is, c->a);
        managed_update(m, was, is, c->a);
        managed = json_remove(json_at(is, "metadata"), "managedFields");
        if (managed)
                json_set(c->a, object_meta(c->a, object), "managedFields", managed);
}

static void manage_fields(struct call *c, const struct json *old, struct json *object)
{
        struct managed m = managed_of(c);

        if (c->verb == DO_PATCH && c->patch == PATCH_APPLY)
                return;
        if (c->type->to_stored)
                manage_converted(c, &m, old, object);
        else
                managed_update(&m, old, object, c->a);
}

/* As a typed object would read: nothing unknown, defaults filled in. */
static void decode(struct call *c, struct json *object)
{
        struct strategy_context ctx = context(c);

        if (c->type->crd) {
                custom_decode(c, object);
                return;
        }
        if (!c->type->to_stored) /* which has done it */
                normalize_builtin(c->type->shape, object, c->a);
        if (c->type->strategy && c->type->strategy->defaults)
                c->type->strategy->defaults(&ctx, object);
}

static void prepare(struct call *c, const struct json *old, struct json *object)
{
        struct strategy_context ctx = context(c);

        if (c->type->crd) {
                if (!old && c->type->kube.has_status)
                        json_remove(object, "status");
        } else if (c->type->strategy && c->type->strategy->prepare) {
                c->type->strategy->prepare(&ctx, c->sub, old, object);
        }
}

static int validate(struct call *c, const struct json *old, const struct json *object)
{
        struct strategy_context ctx = context(c);
        const struct strategy *s = c->type->strategy;
        struct causes causes = {.a = c->a};

        meta_validate(c, old, object, &causes);
        if (c->type->crd)
                custom_validate(c, object, &causes);
        else if (s && s->validate)
                s->validate(&ctx, c->sub, old, object, &causes);
        return causes.n ? fail_invalid_object(c, object, &causes) : 0;
}

/* Everything but metadata and status, which do not count as a new generation. */
static bool spec_changed(const struct json *old, const struct json *object)
{
        json_foreach (m, object)
                if (!streq(m->key, "metadata") && !streq(m->key, "status") &&
                    !json_equal(m, json_at(old, m->key)))
                        return true;
        json_foreach (m, old)
                if (!streq(m->key, "metadata") && !streq(m->key, "status") && !json_at(object, m->key))
                        return true;
        return false;
}

static bool labels_or_annotations_changed(const struct json *old, const struct json *object)
{
        static const char *const keys[] = {"labels", "annotations", "finalizers", "ownerReferences"};

        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                const struct json *x = json_at(json_at(old, "metadata"), keys[i]);
                const struct json *y = json_at(json_at(object, "metadata"), keys[i]);

                if (json_len(x) + json_len(y) > 0 && !json_equal(x, y))
                        return true;
        }
        return false;
}

static bool is_noop(const struct json *old, const struct json *object)
{
        if (labels_or_annotations_changed(old, object) || spec_changed(old, object) ||
            !json_equal(json_at(old, "status"), json_at(object, "status")))
                return false;
        return json_equal(json_at(json_at(old, "metadata"), "managedFields"),
                          json_at(json_at(object, "metadata"), "managedFields"));
}

static void answer_object(struct call *c, int code, struct json *object)
{
        c->code = code;
        c->answer = object;
}

/* Finalizers or the grace period of something that is being deleted have just run out. */
static bool may_go(const struct json *object)
{
        const struct json *meta = json_at(object, "metadata");

        return object_deleting(object) && json_len(json_at(meta, "finalizers")) == 0 &&
               json_int(meta, "deletionGracePeriodSeconds", 0) == 0 &&
               json_len(json_path(object, "spec.finalizers")) == 0;
}

/* Only one half of an object may be written through the object itself or through its status. */
static void keep_other_half(struct call *c, const struct json *old, struct json *object)
{
        struct json *status, *meta = json_at(object, "metadata"), *managed;

        if (!c->type->kube.has_status)
                return;
        if (!streq(c->sub, "status")) {
                json_remove(object, "status");
                if (json_at(old, "status"))
                        json_set(c->a, object, "status", json_copy(c->a, json_at(old, "status")));
                return;
        }
        status = json_remove(object, "status");
        json_remove(object, "metadata");
        while (json_first(object))
                json_take(object, json_first(object));
        json_foreach (m, old)
                if (!streq(m->key, "status") && !streq(m->key, "metadata"))
                        json_set(c->a, object, m->key, json_copy(c->a, m));
        if (c->type->crd) { /* built-in types let labels and the like through */
                managed = json_remove(meta, "managedFields");
                meta = json_copy(c->a, json_at(old, "metadata"));
                json_set(c->a, meta, "managedFields", managed);
        }
        json_set(c->a, object, "metadata", meta);
        json_set(c->a, object, "status", status);
}

static int store_new(struct call *c, struct json *object)
{
        const char *name;

        decode(c, object);
        manage_fields(c, NULL, object); /* before the server sets anything: that is nobody's */
        if (meta_create(c, object) < 0)
                return -1;
        prepare(c, NULL, object);
        if (validate(c, NULL, object) < 0)
                return -1;
        name = meta_str(object, "name");
        if (store_newest(c->api->store, c->type->store, c->ns, name))
                return fail_exists(c, name);
        if (quota_admit(c, NULL, object) < 0)
                return -1;
        meta_tidy(object, c->a);
        if (!c->dry_run && stage_object(c, object, false) < 0)
                return -1;
        answer_object(c, 201, object);
        return 0;
}

static int store_changed(struct call *c, const struct json *old, struct json *object)
{
        struct json *meta;

        decode(c, object);
        manage_fields(c, old, object);
        keep_other_half(c, old, object);
        meta_update(c, old, object);
        prepare(c, old, object);
        if (validate(c, old, object) < 0)
                return -1;
        meta = json_at(object, "metadata");
        if (c->type->has_generation && spec_changed(old, object))
                json_set(c->a, meta, "generation",
                         json_i64(c->a, json_int(json_at(old, "metadata"), "generation", 0) + 1));
        if (quota_admit(c, old, object) < 0)
                return -1;
        json_set(c->a, meta, "resourceVersion", json_string(c->a, meta_str(old, "resourceVersion")));
        meta_tidy(object, c->a);
        if (may_go(object)) {
                if (!call_remove(c, old))
                        return -1;
                answer_object(c, 200, object);
                return 0;
        }
        if (!c->dry_run && !is_noop(old, object) && stage_object(c, object, false) < 0)
                return -1;
        answer_object(c, 200, object);
        return 0;
}

/* A namespace must be there, and not be going, to take new content. */
static int check_namespace(struct call *c, const struct json *object)
{
        const struct object *o;
        const struct json *ns;
        struct json *causes;

        if (!c->type->kube.namespaced)
                return 0;
        o = store_newest(c->api->store, store_type(c->api->store, "namespaces"), "", c->ns);
        if (!o)
                return fail(c, 404, "NotFound", json_build(c->a, "{'name': %s, 'kind': 'namespaces'}", c->ns),
                            "namespaces \"%s\" not found", c->ns);
        ns = object_parse(o, c->a);
        if (!object_deleting(ns))
                return 0;
        causes = json_build(
                c->a,
                "[{'reason': 'NamespaceTerminating', 'message': 'namespace %s is being terminated', "
                "'field': 'metadata.namespace'}]",
                c->ns);
        return fail_forbidden(c, meta_str(object, "name") ? meta_str(object, "name") : "", causes,
                              "unable to create new content in namespace %s because it is being terminated",
                              c->ns);
}

/* Checks, prepares and stages OBJECT in place of OLD (NULL: new); sets the answer. */
static int call_store(struct call *c, const struct json *old, struct json *object)
{
        set_type(c, object);
        if (old)
                return store_changed(c, old, object);
        if (check_namespace(c, object) < 0)
                return -1;
        return store_new(c, object);
}

/* ---- checks of what a client sent */

/* Custom resources say what they are. */
static int check_custom_kind(struct call *c, const struct json *object, const char *kind, const char *version)
{
        const struct json *meta = json_at(object, "metadata");
        struct causes causes = {.a = c->a};

        if (!*kind || !*version ||
            (meta && decode_problem(shape_member(c->type->shape, STR("metadata")), meta, c->a)))
                return fail_bad_request(
                        c,
                        "%s in version \"%s\" cannot be handled as a %s: Object 'Kind' is missing or "
                        "its metadata is malformed",
                        c->type->kube.kind, c->type->kube.version, c->type->kube.kind);
        if (streq(kind, c->type->kube.kind))
                return 0;
        causes_add(&causes, "FieldValueInvalid", "kind", "Invalid value: \"%s\": must be %s", kind,
                   c->type->kube.kind);
        return fail_invalid(c, c->type->kube.group, kind,
                            meta_str(object, "name") ? meta_str(object, "name") : "", &causes);
}

static int check_kind(struct call *c, const struct json *object)
{
        const char *kind = json_str_or(object, "kind", ""), *version = json_str_or(object, "apiVersion", "");
        const char *want = kube_api_version(&c->type->kube, c->a);

        if (c->type->crd && check_custom_kind(c, object, kind, version) < 0)
                return -1;
        if (*version && !streq(version, want) && c->type->crd)
                return fail_bad_request(
                        c, "the API version in the data (%s) does not match the expected API version (%s)",
                        version, want);
        if (*version && !streq(version, want))
                return fail_bad_request(
                        c,
                        "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is registered "
                        "for version \"%s\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
                        *kind ? kind : c->type->kube.kind,
                        strrchr(version, '/') ? strrchr(version, '/') + 1 : version, c->type->kube.kind,
                        *kind ? kind : c->type->kube.kind, version);
        if (*kind && !streq(kind, c->type->kube.kind))
                return fail_bad_request(
                        c,
                        "%s in version \"%s\" cannot be handled as a %s: converting (%s.%s) to "
                        "(%s.%s): unknown conversion",
                        kind, c->type->kube.version, c->type->kube.kind, c->type->kube.version, kind,
                        *c->type->kube.group ? c->type->kube.group : "core", c->type->kube.kind);
        return 0;
}

static int check_names(struct call *c, const struct json *object)
{
        const char *name = meta_str(object, "name"), *ns = meta_str(object, "namespace");
        bool other_ns = ns && *ns && !streq(ns, c->ns) && c->type->kube.namespaced;

        if (other_ns && c->verb == DO_CREATE)
                return fail_bad_request(
                        c, "the namespace of the provided object does not match the namespace sent "
                           "on the request");
        if (other_ns)
                return fail_bad_request(
                        c,
                        "the namespace of the object (%s) does not match the namespace on the "
                        "request (%s)",
                        ns, c->ns);
        if (c->verb == DO_CREATE)
                return 0;
        if (!name || !*name)
                return fail_bad_request(
                        c,
                        "the name of the object (%s based on URL) was undeterminable: name must be "
                        "provided",
                        c->name);
        if (!streq(name, c->name))
                return fail_bad_request(c,
                                        "the name of the object (%s) does not match the name on the URL (%s)",
                                        name, c->name);
        return 0;
}

/* ---- get, create, update */

static void do_get(struct call *c)
{
        const struct object *o = store_get(c->api->store, c->type->store, c->ns, c->name);

        if (!o)
                fail_not_found(c);
        else
                answer_object(c, 200, object_parse(o, c->a));
}

/* Of built-in types: what does not fit into their fields is no object of theirs. */
static int check_types(struct call *c, const struct json *object)
{
        const char *wrong = c->type->crd ? NULL : decode_problem(c->type->shape, object, c->a);

        return wrong ? fail_bad_request(c, "%s in version \"%s\" cannot be handled as a %s: %s",
                                        c->type->kube.kind, c->type->kube.version, c->type->kube.kind, wrong)
                     : 0;
}

static void do_create(struct call *c)
{
        struct json *object = c->body;

        if (check_kind(c, object) < 0 || check_types(c, object) < 0 || check_names(c, object) < 0)
                return;
        if (c->type->to_stored)
                c->type->to_stored(c->type, object, c->a);
        call_store(c, NULL, object);
}

/* Most types call the resource by its plural here, Services by their kind. */
static int fail_no_version(struct call *c)
{
        bool service = streq(c->type->store, "services");
        struct causes causes = {.a = c->a};

        causes_add(&causes, "FieldValueInvalid", "metadata.resourceVersion",
                   "Invalid value: %s: must be specified for an update", service ? "\"\"" : "0x0");
        return fail_invalid(c, c->type->kube.group, service ? c->type->kube.kind : c->type->kube.plural,
                            c->name, &causes);
}

static int check_preconditions(struct call *c, const struct json *old, const struct json *object)
{
        const char *rev = meta_str(object, "resourceVersion"), *uid = meta_str(object, "uid");
        uint64_t number = 0;

        if (uid && *uid && !streq(uid, meta_str(old, "uid")) && c->verb == DO_UPDATE)
                return fail_conflict(c,
                                     "StorageError: invalid object, Code: 4, Key: /registry/%s%s%s%s/%s, "
                                     "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                                     "precondition: %s, UID in object meta: %s",
                                     c->type->crd ? c->type->kube.group : c->type->kube.plural,
                                     c->type->crd ? "/" : "", c->type->crd ? c->type->kube.plural : "",
                                     *c->ns ? arena_printf(c->a, "/%s", c->ns) : "", c->name, uid,
                                     meta_str(old, "uid"));
        if (rev && *rev && !str_to_u64(str_of(rev), &number))
                return fail(c, 500, NULL, NULL, "strconv.ParseUint: parsing \"%s\": invalid syntax", rev);
        if ((!rev || !*rev || number == 0) && c->type->update_needs_rev && c->verb == DO_UPDATE)
                return fail_no_version(c);
        if (rev && *rev && !streq(rev, "0") && !streq(rev, meta_str(old, "resourceVersion")))
                return fail_modified(c);
        return 0;
}

static void do_update(struct call *c)
{
        struct json *object = c->body, *old;

        if (check_kind(c, object) < 0 || check_types(c, object) < 0 || check_names(c, object) < 0)
                return;
        if (c->type->to_stored)
                c->type->to_stored(c->type, object, c->a);
        old = call_newest(c);
        if (!old && c->type->create_on_update && !*c->sub) {
                call_store(c, NULL, object);
                return;
        }
        if (!old) {
                fail_not_found(c);
                return;
        }
        if (check_preconditions(c, old, object) < 0)
                return;
        call_store(c, old, object);
}

/* ---- patch */

static struct json *rejected(struct call *c)
{
        fail(c, 422, "Invalid", json_object(c->a),
             "the server rejected our request due to an error in our request");
        return NULL;
}

/* An error of a patch, with the status that Kubernetes gives it. */
static void fail_patch(struct call *c, const struct err *err)
{
        if (err->code == E_INVALID)
                fail_bad_request(c, "%s", err->text);
        else if (err->code == E_REFUSED)
                fail(c, 422, "Invalid", json_object(c->a), "%s", err->text);
        else
                fail(c, 500, NULL, NULL, "%s", err->text);
}

static struct json *apply_config(struct call *c, const struct json *old)
{
        struct managed m = managed_of(c);
        struct managed_conflicts conflicts = {0};
        struct err err = ERR_INIT;
        struct json *causes, *object = managed_apply(&m, old, c->body, c->a, &conflicts, &err);

        if (object)
                return object;
        if (err.code != E_OWNED) {
                fail_patch(c, &err);
                return NULL;
        }
        causes = json_array(c->a);
        for (size_t i = 0; i < conflicts.n; i++)
                json_append(causes,
                            json_build(c->a,
                                       "{'reason': 'FieldManagerConflict', 'message': 'conflict with %s', "
                                       "'field': %s}",
                                       conflicts.list[i].manager, conflicts.list[i].field));
        fail(c, 409, "Conflict", json_build(c->a, "{'causes': %p}", causes), "%s",
             managed_message(&conflicts, c->a));
        return NULL;
}

/* The parent of what a JSON Pointer names, if it is an object. */
static const struct json *parent_object(struct call *c, const struct json *root, const char *pointer)
{
        const char *slash = pointer ? strrchr(pointer, '/') : NULL;
        const struct json *parent = slash ? json_pointer(root, arena_strndup(c->a, pointer,
                                                                             (size_t)(slash - pointer)))
                                          : NULL;

        return json_is(parent, JSON_OBJECT) ? parent : NULL;
}

/* Kubernetes 1.20 lets `replace` add a member that is not there. */
static struct json *json_patched(struct call *c, struct json *object)
{
        struct err err = ERR_INIT;

        if (!json_is(c->body, JSON_ARRAY)) {
                fail_bad_request(c, "json: cannot unmarshal %s into Go value of type jsonpatch.Patch",
                                 json_type_name(c->body->type));
                return NULL;
        }
        json_foreach (op, c->body) {
                struct json *one = json_array(c->a), *copy = json_append(one, json_copy(c->a, op));
                const char *path = json_str(op, "path");

                if (streq(json_str(op, "op"), "replace") && path && !json_pointer(object, path) &&
                    parent_object(c, object, path))
                        json_set(c->a, copy, "op", json_string(c->a, "add"));
                if (json_patch(c->a, &object, one, &err) < 0)
                        return rejected(c);
        }
        return object;
}

static struct json *patched(struct call *c, const struct json *old)
{
        struct json *object = old ? json_copy(c->a, old) : NULL;
        struct err err = ERR_INIT;

        switch (c->patch) {
        case PATCH_JSON:
                return json_patched(c, object);
        case PATCH_JSON_MERGE:
                return json_merge_patch(c->a, object, c->body);
        case PATCH_STRATEGIC:
                object = strategic_merge(c->type->shape, object, c->body, c->a, &err);
                if (!object)
                        fail_patch(c, &err);
                return object;
        case PATCH_APPLY:
                return apply_config(c, old);
        }
        return NULL;
}

static int check_apply(struct call *c)
{
        const char *kind = json_str_or(c->body, "kind", ""),
                   *version = json_str_or(c->body, "apiVersion", "");

        if (!streq(kind, c->type->kube.kind) || !streq(version, kube_api_version(&c->type->kube, c->a)))
                return fail(c, 500, NULL, NULL,
                            "failed to create typed patch object: no corresponding type for %s%s, "
                            "Kind=%s",
                            strchr(version, '/') ? "" : "/", version, kind);
        return check_names(c, c->body);
}

/* Apply may create; its object then gets the name of the URL. */
static void apply_new(struct call *c, struct json *object)
{
        struct json *meta = object_meta(c->a, object);
        const char *uid = json_str(meta, "uid");

        if (uid && *uid) {
                fail_conflict(c,
                              "uid mismatch: the provided object specified uid %s, and no existing object "
                              "was found",
                              uid);
                return;
        }
        json_set(c->a, meta, "name", json_string(c->a, c->name));
        call_store(c, NULL, object);
}

static int fail_patch_value(struct call *c, const char *why)
{
        struct causes causes = {.a = c->a};

        causes_add(&causes, "FieldValueInvalid", "patch", "Invalid value: \"%s\": %s",
                   json_print(c->a, c->body), why);
        return fail_invalid(c, "", "", "", &causes);
}

/* What a patch made must still be an object of the type. */
static int check_patched(struct call *c, const struct json *object)
{
        const char *wrong;

        if (c->patch == PATCH_JSON_MERGE && json_is(c->body, JSON_NULL))
                return fail(c, 500, NULL, NULL, "Invalid JSON Patch");
        if (!json_is(object, JSON_OBJECT))
                return fail_patch_value(c, "couldn't get version/kind; json parse error");
        if (c->type->crd || c->patch == PATCH_APPLY)
                return 0;
        if (!streq(json_str(object, "kind"), c->type->kube.kind))
                return fail_patch_value(c, "the kind must not change");
        wrong = decode_problem(c->type->shape, object, c->a);
        return wrong ? fail_patch_value(c, wrong) : 0;
}

static void do_patch(struct call *c)
{
        struct json *old = call_newest(c), *view, *object;

        if (c->patch == PATCH_APPLY && check_apply(c) < 0)
                return;
        if (!old && (c->patch != PATCH_APPLY || *c->sub)) {
                fail_not_found(c);
                return;
        }
        view = old;
        if (old && c->type->from_stored) {
                view = json_copy(c->a, old);
                c->type->from_stored(c->type, view, c->a);
        }
        object = patched(c, view);
        if (!object)
                return;
        if (check_patched(c, object) < 0)
                return;
        if (c->type->to_stored)
                c->type->to_stored(c->type, object, c->a);
        if (!old) {
                apply_new(c, object);
                return;
        }
        if (check_names(c, object) < 0 || check_preconditions(c, old, object) < 0)
                return;
        call_store(c, old, object);
}

void api_do(struct call *c)
{
        if (!c->sub)
                c->sub = "";
        if (!c->manager)
                c->manager = "unknown";
        switch (c->verb) {
        case DO_GET:
                do_get(c);
                break;
        case DO_CREATE:
                do_create(c);
                break;
        case DO_UPDATE:
                do_update(c);
                break;
        case DO_PATCH:
                do_patch(c);
                break;
        case DO_DELETE:
                do_delete(c);
                break;
        case DO_LIST:
        case DO_WATCH:
        case DO_DELETE_COLLECTION:
                fail_method(c); /* these need a selector: see request.c */
                break;
        }
}
