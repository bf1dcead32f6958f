#include "local/strategy_internal.h"

static const char *lower(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);

        for (char *p = copy; *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char)(*p - 'A' + 'a');
        return copy;
}

static const char *storage_version(const struct json *crd)
{
        json_foreach (v, json_path(crd, "spec.versions"))
                if (json_bool(v, "storage", false))
                        return json_str(v, "name");
        return NULL;
}

static bool in_array(const struct json *array, const char *word)
{
        json_foreach (w, array)
                if (streq(json_cstr(w), word))
                        return true;
        return false;
}

static void add_stored_version(struct arena *a, struct json *crd)
{
        struct json *status = child_object(a, crd, "status"), *list = json_at(status, "storedVersions");
        const char *version = storage_version(crd);

        if (!version || in_array(list, version))
                return;
        if (!json_is(list, JSON_ARRAY))
                list = json_set(a, status, "storedVersions", json_array(a));
        json_append(list, json_string(a, version));
}

static void defaults(const struct strategy_context *c, struct json *crd)
{
        struct json *spec = child_object(c->a, crd, "spec"), *names = child_object(c->a, spec, "names");
        struct json *service = json_path(spec, "conversion.webhook.clientConfig.service");
        const char *kind = json_str_or(names, "kind", "");

        if (*kind) {
                default_str(c->a, names, "singular", lower(c->a, kind));
                default_str(c->a, names, "listKind", arena_join(c->a, kind, "List", ""));
        }
        if (!json_at(spec, "conversion"))
                json_set(c->a, spec, "conversion", json_build(c->a, "{'strategy': 'None'}"));
        if (service)
                default_int(c->a, service, "port", 443);
        if (json_len(json_path(crd, "status.storedVersions")) == 0)
                add_stored_version(c->a, crd);
}

static void prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                    struct json *crd)
{
        if (*sub)
                return;
        if (!old)
                json_set(c->a, crd, "status",
                         json_build(c->a, "{'acceptedNames': {'plural': '', 'kind': ''}, 'conditions': null, "
                                          "'storedVersions': null}"));
        add_stored_version(c->a, crd);
}

/* ---- validation */

/* All that is wrong with a label of RFC 1035, in one sentence. */
static void check_1035(struct causes *c, const char *path, const char *value, const char *text,
                       const char *before)
{
        const char *wrong, *all = NULL;

        for (size_t nth = 0; (wrong = check_dns1035(str_of(text), nth)); nth++)
                all = all ? arena_join(c->a, all, ",", wrong) : wrong;
        if (all)
                bad_str(c, path, value, arena_join(c->a, before, all, ""));
}

static void check_words(struct causes *c, const char *path, const struct json *names, const char *key)
{
        size_t i = 0;

        json_foreach (w, json_at(names, key)) {
                const char *word = json_cstr(w) ? json_cstr(w) : "";

                check_1035(c, path_index(c, path_key(c, path, key), i++), word, word, "");
        }
}

static void check_names(struct causes *c, const char *path, const struct json *names)
{
        static const char *const plain[] = {"plural", "singular"}, *const mixed[] = {"kind", "listKind"};
        const char *kind = json_str_or(names, "kind", "");

        for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
                const char *word = json_str_or(names, plain[i], "");

                if (*word)
                        check_1035(c, path_key(c, path, plain[i]), word, word, "");
        }
        for (size_t i = 0; i < ARRAY_LEN(mixed); i++) {
                const char *word = json_str_or(names, mixed[i], "");

                if (*word)
                        check_1035(c, path_key(c, path, mixed[i]), word, lower(c->a, word),
                                   "may have mixed case, but should otherwise match: ");
        }
        check_words(c, path, names, "shortNames");
        if (*kind && streq(kind, json_str(names, "listKind")))
                bad_str(c, path_key(c, path, "listKind"), kind, "kind and listKind may not be the same");
        check_words(c, path, names, "categories");
}

static void check_column(struct causes *c, const char *path, const struct json *col)
{
        static const char *const types[] = {"boolean", "date", "integer", "number", "string", NULL};
        static const char *const formats[] = {"byte",  "date",  "date-time", "double", "float",
                                              "int32", "int64", "password",  NULL};
        const char *type = json_str_or(col, "type", ""), *format = json_str_or(col, "format", "");

        if (!*json_str_or(col, "name", ""))
                bad_required(c, path_key(c, path, "name"), "");
        if (!*type)
                bad_required(c, path_key(c, path, "type"),
                             "must be one of boolean,date,integer,number,string");
        else if (!str_in(types, type))
                bad_str(c, path_key(c, path, "type"), type,
                        "must be one of boolean,date,integer,number,string");
        if (*format && !str_in(formats, format))
                bad_str(c, path_key(c, path, "format"), format,
                        "must be one of byte,date,date-time,double,float,int32,int64,password");
        if (!*json_str_or(col, "jsonPath", ""))
                bad_required(c, path_key(c, path, "JSONPath"), "");
}

static void check_columns(struct causes *c, const char *path, const struct json *version)
{
        size_t i = 0;

        json_foreach (col, json_at(version, "additionalPrinterColumns"))
                check_column(c, path_index(c, path_key(c, path, "additionalPrinterColumns"), i++), col);
}

static void check_scale(struct causes *c, const char *path, const struct json *version)
{
        static const char *const paths[] = {"specReplicasPath", "statusReplicasPath"};
        const struct json *scale = json_path(version, "subresources.scale");

        for (size_t i = 0; scale && i < ARRAY_LEN(paths); i++)
                if (!*json_str_or(scale, paths[i], ""))
                        bad_required(c, arena_printf(c->a, "%s.subresources.scale.%s", path, paths[i]), "");
}

/* What all versions have in common the server keeps, and complains about, in one place. */
static bool common(const struct json *versions, const char *key)
{
        const struct json *first = json_at(json_first(versions), key);

        json_foreach (v, versions)
                if (!same(json_at(v, key), first))
                        return false;
        return true;
}

static void check_group(struct causes *c, const struct json *spec)
{
        const char *group = json_str_or(spec, "group", ""), *wrong = check_subdomain(str_of(group), 0);

        if (!*group)
                bad_required(c, "spec.group", "");
        else if (wrong)
                bad_str(c, "spec.group", group, wrong);
        else if (!strchr(group, '.'))
                bad_str(c, "spec.group", group, "should be a domain with at least one dot");
}

static void check_required_schemas(struct causes *c, const struct json *versions)
{
        size_t i = 0;

        json_foreach (v, versions) {
                const char *here = path_index(c, "spec.versions", i++);

                if (!json_path(v, "schema.openAPIV3Schema"))
                        bad_required(c, arena_join(c->a, here, ".schema.openAPIV3Schema", ""),
                                     "schemas are required");
        }
}

static void check_version(struct causes *c, const char *path, const struct json *v,
                          const struct json *versions)
{
        const char *name = json_str_or(v, "name", "");

        check_1035(c, path_key(c, path, "name"), name, name, "");
        if (json_at(v, "deprecationWarning") && !json_bool(v, "deprecated", false))
                bad_str(c, path_key(c, path, "deprecationWarning"), json_str_or(v, "deprecationWarning", ""),
                        "can only be set for deprecated versions");
        if (!common(versions, "schema") && json_path(v, "schema.openAPIV3Schema"))
                crd_schema_validate(c, arena_join(c->a, path, ".schema.openAPIV3Schema", ""),
                                    json_path(v, "schema.openAPIV3Schema"));
        if (!common(versions, "subresources"))
                check_scale(c, path, v);
        if (!common(versions, "additionalPrinterColumns"))
                check_columns(c, path, v);
}

/* The server prints the versions in the way of its language, with addresses of memory: nobody can compare those. */
static void check_versions(struct causes *c, const struct json *versions)
{
        struct json *names = json_object(c->a);
        const char *stored = NULL;
        bool unique = true;
        size_t storage = 0, i = 0;

        json_foreach (v, versions) {
                const char *name = json_str_or(v, "name", "");

                storage += json_bool(v, "storage", false);
                if (json_bool(v, "storage", false))
                        stored = name;
                unique &= !json_at(names, name);
                json_set(c->a, names, name, json_truth(c->a, true));
                check_version(c, path_index(c, "spec.versions", i++), v, versions);
        }
        if (!unique)
                bad_raw(c, "spec.versions", "[]apiextensions.CustomResourceDefinitionVersion{}",
                        "must contain unique version names");
        if (storage != 1)
                bad_raw(c, "spec.versions", "[]apiextensions.CustomResourceDefinitionVersion{}",
                        "must have exactly one version marked as storage version");
        if (storage > 1) /* the status names one of them only */
                bad_raw(c, "status.storedVersions", "[]string{}",
                        arena_join(c->a, "must have the storage version ", stored, ""));
}

static void check_common(struct causes *c, const struct json *versions)
{
        const struct json *first = json_first(versions), *schema = json_path(first, "schema.openAPIV3Schema");

        if (common(versions, "schema") && schema)
                crd_schema_validate(c, "spec.validation.openAPIV3Schema", schema);
        if (common(versions, "subresources"))
                check_scale(c, "spec", first);
        if (common(versions, "additionalPrinterColumns"))
                check_columns(c, "spec", first);
}

static void check_conversion(struct causes *c, const struct json *conversion)
{
        static const char *const known[] = {"None", "Webhook", NULL};
        const char *strategy = json_str_or(conversion, "strategy", "");

        check_enum(c, "spec.conversion.strategy", strategy, known);
        if (streq(strategy, "Webhook"))
                bad_forbidden(c, "spec.conversion.strategy",
                              "webhooks are not supported by the embedded engine");
        else if (json_at(conversion, "webhook"))
                bad_forbidden(c, "spec.conversion.webhookClientConfig",
                              "should not be set when strategy is not set to Webhook");
}

static void check_spec(struct causes *c, const struct json *spec)
{
        static const char *const scopes[] = {"Cluster", "Namespaced", NULL};
        static const char *const required[] = {"plural", "singular", "kind", "listKind"};
        const struct json *names = json_at(spec, "names"), *versions = json_at(spec, "versions");

        check_group(c, spec);
        check_enum(c, "spec.scope", json_str(spec, "scope"), scopes);
        check_required_schemas(c, versions);
        check_versions(c, versions);
        if (json_len(versions) > 0) /* the server keeps the first one's name in another place, too */
                check_1035(c, "spec.version", json_str_or(json_first(versions), "name", ""),
                           json_str_or(json_first(versions), "name", ""), "");
        for (size_t i = 0; i < ARRAY_LEN(required); i++)
                if (!*json_str_or(names, required[i], ""))
                        bad_required(c, path_key(c, "spec.names", required[i]), "");
        check_names(c, "spec.names", names);
        check_common(c, versions);
        check_conversion(c, json_at(spec, "conversion"));
}

static void check_stored(struct causes *c, const struct json *crd)
{
        const struct json *stored = json_path(crd, "status.storedVersions");
        size_t i = 0;

        if (json_len(stored) == 0)
                bad_raw(c, "status.storedVersions", "[]string(nil)", "must have at least one stored version");
        json_foreach (s, stored) {
                const char *here = path_index(c, "status.storedVersions", i++);

                if (!json_find_named(json_path(crd, "spec.versions"), json_cstr(s)))
                        bad_str(c, here, json_cstr(s) ? json_cstr(s) : "", "must appear in spec.versions");
        }
}

static bool is_established(const struct json *crd)
{
        json_foreach (cond, json_path(crd, "status.conditions"))
                if (streq(json_str(cond, "type"), "Established"))
                        return streq(json_str(cond, "status"), "True");
        return false;
}

static void check_fixed(struct causes *c, const struct json *old, const struct json *crd, const char *path)
{
        const struct json *now = json_path(crd, path);

        if (!same(json_path(old, path), now))
                bad_str(c, path, json_cstr(now) ? json_cstr(now) : "", IMMUTABLE);
}

static void check_name(struct causes *c, const struct json *crd)
{
        const char *name = meta_str(crd, "name");
        const char *want = arena_join(c->a, json_str_or(json_path(crd, "spec.names"), "plural", ""), ".",
                                      json_str_or(json_at(crd, "spec"), "group", ""));

        if (name && !streq(name, want))
                bad_str(c, "metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
}

/* Groups that are Kubernetes' own need its approval. */
static void check_approval(struct causes *c, const struct json *crd)
{
        static const char key[] = "api-approved.kubernetes.io";
        struct str group = str_of(json_str_or(json_at(crd, "spec"), "group", ""));
        const char *approval = json_str(json_path(crd, "metadata.annotations"), key);

        if (!str_eq(group, STR("k8s.io")) && !str_has_suffix(group, STR(".k8s.io")) &&
            !str_eq(group, STR("kubernetes.io")) && !str_has_suffix(group, STR(".kubernetes.io")))
                return;
        if (!approval || !*approval)
                bad_required(
                        c, path_map(c, "metadata.annotations", key),
                        "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
                        "https://github.com/kubernetes/enhancements/pull/1111");
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *crd, struct causes *c)
{
        if (*sub) {
                check_names(c, "status.acceptedNames", json_path(crd, "status.acceptedNames"));
                return;
        }
        if (!old)
                check_name(c, crd);
        check_spec(c, json_at(crd, "spec"));
        if (old && is_established(old)) {
                check_fixed(c, old, crd, "spec.scope");
                check_fixed(c, old, crd, "spec.names.kind");
        }
        if (old) {
                check_fixed(c, old, crd, "spec.group");
                check_fixed(c, old, crd, "spec.names.plural");
        }
        check_names(c, "status.acceptedNames", json_path(crd, "status.acceptedNames"));
        check_stored(c, crd);
        if (!old)
                check_approval(c, crd);
        if (json_bool(json_at(crd, "spec"), "preserveUnknownFields", false))
                bad_raw(c, "spec.preserveUnknownFields", "true",
                        "cannot set to true, set x-preserve-unknown-fields to true in "
                        "spec.versions[*].schema instead");
}

const struct strategy STRATEGY_CRD = {.defaults = defaults, .prepare = prepare, .validate = validate};
