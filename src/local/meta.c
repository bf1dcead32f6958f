#include "local/api_internal.h"
#include "local/check.h"

#include <sys/random.h>

enum {
        GENERATED_SUFFIX = 5,
        GENERATED_BASE_MAX = 63 - GENERATED_SUFFIX,
        ANNOTATIONS_MAX = 256 << 10,
};

struct json *object_meta(struct arena *a, struct json *object)
{
        struct json *meta = json_at(object, "metadata");

        return json_is(meta, JSON_OBJECT) ? meta : json_set(a, object, "metadata", json_object(a));
}

static void random_bytes(void *p, size_t n)
{
        if (getrandom(p, n, 0) != (ssize_t)n) /* never short for so few bytes */
                abort();
}

static char *uuid_new(struct arena *a)
{
        uint8_t b[16];

        random_bytes(b, sizeof(b));
        b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
        b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
        return arena_printf(a, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                            b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                            b[14], b[15]);
}

struct json *time_now(struct call *c)
{
        char text[TIME_TEXT_MAX];

        return json_string(c->a, time_format(loop_wall(c->api->loop), text));
}

bool object_deleting(const struct json *object)
{
        return meta_str(object, "deletionTimestamp");
}

bool has_finalizer(const struct json *object, const char *name)
{
        json_foreach (f, json_at(json_at(object, "metadata"), "finalizers"))
                if (streq(json_cstr(f), name))
                        return true;
        return false;
}

/* ---- create */

/* No vowels, and no characters that look like others: as Kubernetes does it. */
static const char *generate_name(struct call *c, const char *base)
{
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
        char suffix[GENERATED_SUFFIX + 1] = "";
        uint8_t b[GENERATED_SUFFIX];

        random_bytes(b, sizeof(b));
        for (size_t i = 0; i < GENERATED_SUFFIX; i++)
                suffix[i] = letters[b[i] % (sizeof(letters) - 1)];
        return arena_printf(c->a, "%.*s%s", (int)MIN(strlen(base), (size_t)GENERATED_BASE_MAX), base, suffix);
}

int meta_create(struct call *c, struct json *object)
{
        struct json *meta = object_meta(c->a, object);
        const char *name = json_str_or(meta, "name", ""), *base = json_str_or(meta, "generateName", "");
        const char *rev = json_str_or(meta, "resourceVersion", "");

        if (*rev && !streq(rev, "0"))
                return fail(c, 500, NULL, NULL, "resourceVersion should not be set on objects to be created");
        json_remove(meta, "resourceVersion");
        json_remove(meta, "deletionTimestamp");
        json_remove(meta, "deletionGracePeriodSeconds");
        json_remove(meta, "selfLink");
        if (c->type->has_generation)
                json_remove(meta, "generation");
        if (!*name && *base)
                json_set(c->a, meta, "name", json_string(c->a, generate_name(c, base)));
        if (c->type->kube.namespaced)
                json_set(c->a, meta, "namespace", json_string(c->a, c->ns));
        else
                json_remove(meta, "namespace");
        json_set(c->a, meta, "uid", json_string(c->a, uuid_new(c->a)));
        json_set(c->a, meta, "creationTimestamp", time_now(c));
        if (c->type->has_generation)
                json_set(c->a, meta, "generation", json_i64(c->a, 1));
        return 0;
}

/* ---- update */

/* Takes the member from OLD, or removes it. */
static void keep(struct arena *a, const struct json *old, struct json *meta, const char *key)
{
        const struct json *was = json_at(old, key);

        if (was)
                json_set(a, meta, key, json_copy(a, was));
        else
                json_remove(meta, key);
}

void meta_update(struct call *c, const struct json *old_object, struct json *object)
{
        const struct json *old = json_at(old_object, "metadata");
        struct json *meta = object_meta(c->a, object);

        if (!*json_str_or(meta, "uid", ""))
                keep(c->a, old, meta, "uid");
        keep(c->a, old, meta, "creationTimestamp");
        keep(c->a, old, meta, "generation");
        json_remove(meta, "selfLink");
        if (json_at(old, "deletionTimestamp"))
                keep(c->a, old, meta, "deletionTimestamp");
        if (json_at(old, "deletionGracePeriodSeconds") && !json_at(meta, "deletionGracePeriodSeconds"))
                keep(c->a, old, meta, "deletionGracePeriodSeconds");
        if (c->type->kube.namespaced && !*json_str_or(meta, "namespace", ""))
                keep(c->a, old, meta, "namespace");
}

/* ---- validation */

static check_fn name_check(const struct api_type *t)
{
        if (t->path_name)
                return check_path_segment;
        if (streq(t->store, "services"))
                return check_dns1035;
        return t->name == NAME_LABEL ? check_label : check_subdomain;
}

/* A prefix may end in '-': what follows it does not. */
static void validate_generate_name(struct call *c, const char *base, struct causes *causes)
{
        char *masked = arena_strdup(c->a, base);
        const char *wrong;
        size_t n = strlen(masked);

        if (n > 0 && masked[n - 1] == '-')
                masked[n - 1] = 'a';
        for (size_t nth = 0; (wrong = name_check(c->type)(str_of(masked), nth)); nth++)
                causes_add(causes, "FieldValueInvalid", "metadata.generateName", "Invalid value: \"%s\": %s",
                           base, wrong);
}

static void validate_name(struct call *c, const struct json *meta, struct causes *causes)
{
        const char *name = json_str_or(meta, "name", ""), *base = json_str_or(meta, "generateName", "");

        if (*base)
                validate_generate_name(c, base, causes);
        if (*name)
                check_value(causes, "metadata.name", name, name_check(c->type));
        else
                causes_add(causes, "FieldValueRequired", "metadata.name",
                           "Required value: name or generateName is required");
}

static void validate_annotations(const struct json *annotations, struct causes *causes)
{
        size_t total = 0;

        json_foreach (m, annotations) {
                char *lower = arena_strdup(causes->a, m->key);
                const char *wrong;

                for (char *p = lower; *p; p++)
                        if (*p >= 'A' && *p <= 'Z')
                                *p = (char)(*p - 'A' + 'a');
                for (size_t nth = 0; (wrong = check_qualified(str_of(lower), nth)); nth++)
                        causes_add(causes, "FieldValueInvalid", "metadata.annotations",
                                   "Invalid value: \"%s\": %s", m->key, wrong);
                total += m->key_len + json_text(m).n;
        }
        if (total > ANNOTATIONS_MAX)
                causes_add(causes, "FieldValueTooLong", "metadata.annotations",
                           "Too long: must have at most %d bytes", ANNOTATIONS_MAX);
}

static void require_owner_field(struct causes *causes, const struct json *owner, const char *key,
                                const char *what)
{
        const char *field = arena_printf(causes->a, "metadata.ownerReferences.%s", key);

        if (!*json_str_or(owner, key, ""))
                causes_add(causes, "FieldValueInvalid", field, "Invalid value: \"\": %s must not be empty",
                           what);
}

/* As Go prints a pointer to a bool. */
static const char *bool_pointer(const struct json *owner, const char *key)
{
        return json_at(owner, key) ? "(*bool)(0xc000000000)" : "(*bool)(nil)";
}

static const char *owner_text(struct arena *a, const struct json *o)
{
        return arena_printf(a,
                            "v1.OwnerReference{APIVersion:\"%s\", Kind:\"%s\", Name:\"%s\", UID:\"%s\", "
                            "Controller:%s, BlockOwnerDeletion:%s}",
                            json_str_or(o, "apiVersion", ""), json_str_or(o, "kind", ""),
                            json_str_or(o, "name", ""), json_str_or(o, "uid", ""),
                            bool_pointer(o, "controller"), bool_pointer(o, "blockOwnerDeletion"));
}

static void two_controllers(const struct json *owners, const char *first, const char *second,
                            struct causes *causes)
{
        const char *all = "";

        json_foreach (o, owners)
                all = arena_printf(causes->a, "%s%s%s", all, *all ? ", " : "", owner_text(causes->a, o));
        causes_add(causes, "FieldValueInvalid", "metadata.ownerReferences",
                   "Invalid value: []v1.OwnerReference{%s}: Only one reference can have Controller set to "
                   "true. Found "
                   "\"true\" in references for %s and %s",
                   all, first, second);
}

static void validate_owners(const struct json *owners, struct causes *causes)
{
        const struct json *controller = NULL;

        json_foreach (o, owners) {
                require_owner_field(causes, o, "apiVersion", "version");
                require_owner_field(causes, o, "kind", "kind");
                require_owner_field(causes, o, "name", "name");
                require_owner_field(causes, o, "uid", "uid");
                if (streq(json_str(o, "kind"), "Event") && streq(json_str(o, "apiVersion"), "v1"))
                        causes_add(causes, "FieldValueInvalid", "metadata.ownerReferences",
                                   "Invalid value: %s: /v1, Kind=Event is disallowed from being an owner",
                                   owner_text(causes->a, o));
                if (!json_bool(o, "controller", false))
                        continue;
                if (controller)
                        two_controllers(owners, json_str_or(controller, "name", ""),
                                        json_str_or(o, "name", ""), causes);
                controller = o;
        }
}

/* Built-in types of the core group know a few names without a domain. */
static void check_standard_finalizer(const char *name, size_t i, struct causes *causes)
{
        static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion"};

        for (size_t s = 0; s < ARRAY_LEN(standard); s++)
                if (streq(name, standard[s]))
                        return;
        if (!strchr(name, '/'))
                causes_add(causes, "FieldValueInvalid",
                           arena_printf(causes->a, "metadata.finalizers[%zu]", i),
                           "Invalid value: \"%s\": name is neither a standard finalizer name nor is it fully "
                           "qualified",
                           name);
}

static void validate_finalizers(struct call *c, const struct json *meta, struct causes *causes)
{
        size_t i = 0;

        json_foreach (f, json_at(meta, "finalizers"))
                if (json_cstr(f))
                        check_value(causes, "metadata.finalizers", json_cstr(f), check_qualified);
        json_foreach (f, json_at(meta, "finalizers"))
                if (json_cstr(f) && !*c->type->kube.group)
                        check_standard_finalizer(json_cstr(f), i++, causes);
}

static void no_new_finalizers(const struct json *old, const struct json *meta, struct causes *causes)
{
        if (!object_deleting(old))
                return;
        json_foreach (f, json_at(meta, "finalizers"))
                if (!has_finalizer(old, json_cstr(f)))
                        causes_add(causes, "FieldValueForbidden", "metadata.finalizers",
                                   "Forbidden: no new finalizers can be added if the object is being "
                                   "deleted, found new "
                                   "finalizers []string{\"%s\"}",
                                   json_cstr(f));
}

static void immutable(const struct json *old, const struct json *meta, const char *key, struct causes *causes)
{
        const char *now = json_str_or(meta, key, "");

        if (!streq(json_str_or(json_at(old, "metadata"), key, ""), now))
                causes_add(causes, "FieldValueInvalid", arena_printf(causes->a, "metadata.%s", key),
                           "Invalid value: \"%s\": field is immutable", now);
}

static void validate_rest(struct call *c, const struct json *meta, struct causes *causes)
{
        check_labels(causes, "metadata.labels", json_at(meta, "labels"));
        validate_annotations(json_at(meta, "annotations"), causes);
        validate_owners(json_at(meta, "ownerReferences"), causes);
        validate_finalizers(c, meta, causes);
}

/* Kubernetes checks an update several times, in the registry and in the type's own validation, and says so each time. */
static unsigned times_checked(const struct api_type *t)
{
        if (t->crd)
                return 2;
        return *t->kube.group ? 3 : 4;
}

void meta_validate(struct call *c, const struct json *old, const struct json *object, struct causes *causes)
{
        const struct json *meta = json_at(object, "metadata");

        if (!old) {
                validate_name(c, meta, causes);
                validate_rest(c, meta, causes);
                return;
        }
        for (int i = 0; i < 2; i++) {
                immutable(old, meta, "name", causes);
                immutable(old, meta, "namespace", causes);
                immutable(old, meta, "uid", causes);
                no_new_finalizers(old, meta, causes);
        }
        for (unsigned i = 0; i < times_checked(c->type); i++)
                validate_rest(c, meta, causes);
}

/* ---- order */

static bool left_out(const struct json *value)
{
        return !value || value->type == JSON_NULL || (value->type >= JSON_STRING && value->len == 0) ||
               (value->type == JSON_NUMBER && value->len == 1 && value->text[0] == '0');
}

void meta_tidy(struct json *object, struct arena *a)
{
        static const char *const order[] = {
                "name",
                "generateName",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "labels",
                "annotations",
                "ownerReferences",
                "finalizers",
                "clusterName",
                "managedFields",
        };
        struct json *meta = object_meta(a, object), *tidy = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(order); i++) {
                struct json *value = json_remove(meta, order[i]);
                bool pointer = streq(order[i], "deletionGracePeriodSeconds");

                if (!left_out(value) || (pointer && json_is(value, JSON_NUMBER)))
                        json_set(a, tidy, order[i], value);
        }
        json_set(a, object, "metadata", tidy);
}
