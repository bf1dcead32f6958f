#include "local/strategy_internal.h"

enum { DATA_MAX = 1 << 20 };

#define FROZEN "field is immutable when `immutable` is set"

/* ---- ConfigMaps and Secrets */

static size_t data_size(const struct json *data, bool is_base64)
{
        size_t total = 0;

        json_foreach (m, data) {
                struct str s = json_text(m);
                size_t n = s.n;

                if (is_base64) {
                        n = s.n / 4 * 3;
                        for (size_t i = s.n; i > 0 && s.p[i - 1] == '='; i--)
                                n--;
                }
                total += n;
        }
        return total;
}

static void check_data_keys(struct causes *c, const char *path, const struct json *data,
                            const struct json *other)
{
        json_foreach (m, data) {
                check_value(c, path_map(c, path, m->key), m->key, check_config_key);
                if (json_at(other, m->key))
                        bad_str(c, path_map(c, path, m->key), m->key,
                                "duplicate of key present in binaryData");
        }
}

static void check_frozen(struct causes *c, const struct json *old, const struct json *object,
                         bool with_binary)
{
        if (!json_bool(old, "immutable", false))
                return;
        if (!json_bool(object, "immutable", false))
                bad_forbidden(c, "immutable", FROZEN);
        if (!same(json_at(old, "data"), json_at(object, "data")))
                bad_forbidden(c, "data", FROZEN);
        if (with_binary && !same(json_at(old, "binaryData"), json_at(object, "binaryData")))
                bad_forbidden(c, "binaryData", FROZEN);
}

static void too_long(struct causes *c, const char *path)
{
        causes_add(c, "FieldValueTooLong", path, "Too long: must have at most %d bytes", DATA_MAX);
}

static void configmap_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                               const struct json *object, struct causes *c)
{
        const struct json *data = json_at(object, "data"), *binary = json_at(object, "binaryData");

        if (old)
                check_frozen(c, old, object, true);
        check_data_keys(c, "data", data, binary);
        check_data_keys(c, "binaryData", binary, NULL);
        if (data_size(data, false) + data_size(binary, true) > DATA_MAX)
                too_long(c, "[]");
}

const struct strategy STRATEGY_CONFIGMAP = {.validate = configmap_validate, .row = configmap_row};

static void secret_defaults(const struct strategy_context *c, struct json *secret)
{
        default_str(c->a, secret, "type", "Opaque");
}

/* What a type of Secret must hold. */
static const struct {
        const char *type, *key, *path;
} SECRET_KEYS[] = {
        {"kubernetes.io/dockercfg", ".dockercfg", "data[.dockercfg]"},
        {"kubernetes.io/dockerconfigjson", ".dockerconfigjson", "data[.dockerconfigjson]"},
        {"kubernetes.io/ssh-auth", "ssh-privatekey", "data[%s][ssh-privatekey]"},
        {"kubernetes.io/tls", "tls.crt", "data[tls.crt]"},
        {"kubernetes.io/tls", "tls.key", "data[tls.key]"},
};

static void check_docker_config(struct causes *c, const char *path, const struct json *value)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(2 * DATA_MAX);
        struct err err = ERR_INIT;

        if (!buf_add_unbase64(&b, json_text(value)))
                return;
        if (b.n == 0)
                bad_str(c, path, "<secret contents redacted>", "unexpected end of JSON input");
        else if (!json_is(json_parse(c->a, buf_str(&b), NULL, &err), JSON_OBJECT))
                bad_str(c, path, "<secret contents redacted>",
                        arena_printf(c->a, "invalid character '%c' looking for beginning of value", b.p[0]));
}

static void check_secret_type(struct causes *c, const struct json *secret)
{
        static const char account[] = "kubernetes.io/service-account.name";
        const char *type = json_str_or(secret, "type", "");
        const struct json *data = json_at(secret, "data");

        if (streq(type, "kubernetes.io/service-account-token") &&
            !*json_str_or(json_path(secret, "metadata.annotations"), account, ""))
                bad_required(c, path_map(c, "metadata.annotations", account), "");
        if (streq(type, "kubernetes.io/basic-auth") && !json_at(data, "username") &&
            !json_at(data, "password")) {
                bad_required(c, "data[%s][username]", "");
                bad_required(c, "data[%s][password]", "");
        }
        for (size_t i = 0; i < ARRAY_LEN(SECRET_KEYS); i++) {
                const struct json *value = json_at(data, SECRET_KEYS[i].key);

                if (!streq(type, SECRET_KEYS[i].type))
                        continue;
                if (!value)
                        bad_required(c, SECRET_KEYS[i].path, "");
                else if (SECRET_KEYS[i].key[0] == '.')
                        check_docker_config(c, SECRET_KEYS[i].path, value);
        }
}

static void secret_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                            const struct json *secret, struct causes *c)
{
        const char *type = json_str_or(secret, "type", "");

        if (old && !streq(type, json_str_or(old, "type", "")))
                bad_str(c, "type", type, IMMUTABLE);
        if (old)
                check_frozen(c, old, secret, false);
        check_data_keys(c, "data", json_at(secret, "data"), NULL);
        if (data_size(json_at(secret, "data"), true) > DATA_MAX)
                too_long(c, "data");
        check_secret_type(c, secret);
}

static const char *secret_field(const struct json *secret, const char *path, struct arena *a)
{
        return streq(path, "type") ? json_str_or(secret, "type", "") : NULL;
}

const struct strategy STRATEGY_SECRET = {
        .defaults = secret_defaults,
        .validate = secret_validate,
        .field = secret_field,
        .row = secret_row,
};

/* ---- Namespaces */

static void namespace_defaults(const struct strategy_context *c, struct json *ns)
{
        default_str(c->a, child_object(c->a, ns, "status"), "phase", "Active");
}

static bool has_word(const struct json *list, const char *word)
{
        json_foreach (w, list)
                if (streq(json_cstr(w), word))
                        return true;
        return false;
}

static void namespace_prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                              struct json *ns)
{
        struct json *spec = child_object(c->a, ns, "spec");

        if (!old) {
                json_set(c->a, ns, "status", json_build(c->a, "{'phase': 'Active'}"));
                if (!json_at(spec, "finalizers"))
                        json_set(c->a, spec, "finalizers", json_array(c->a));
                if (!has_word(json_at(spec, "finalizers"), "kubernetes"))
                        json_append(json_at(spec, "finalizers"), json_string(c->a, "kubernetes"));
        } else if (!streq(sub, "finalize")) {
                /* Only finalize changes these. */
                json_set(c->a, ns, "spec", json_copy(c->a, json_at(old, "spec")));
        }
}

static void check_kube_finalizers(struct causes *c, const struct json *list)
{
        json_foreach (f, list) {
                const char *name = json_cstr(f) ? json_cstr(f) : "";

                check_value(c, "spec.finalizers", name, check_qualified);
                if (!strchr(name, '/') && !streq(name, "kubernetes") && !streq(name, "orphan") &&
                    !streq(name, "foregroundDeletion"))
                        bad_str(c, "spec.finalizers", name,
                                "name is neither a standard finalizer name nor is it fully qualified");
        }
}

static void namespace_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                               const struct json *ns, struct causes *c)
{
        const char *phase = json_str_or(json_at(ns, "status"), "phase", "");
        bool going = meta_str(ns, "deletionTimestamp");

        if (!old)
                check_kube_finalizers(c, json_path(ns, "spec.finalizers"));
        if (!streq(sub, "status"))
                return;
        if (!going && !streq(phase, "Active"))
                bad_str(c, "status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
        if (going && !streq(phase, "Terminating"))
                bad_str(c, "status.Phase", phase,
                        "may only be 'Terminating' if `deletionTimestamp` is not empty");
}

static const char *namespace_field(const struct json *ns, const char *path, struct arena *a)
{
        return streq(path, "status.phase") ? json_str_or(json_at(ns, "status"), "phase", "") : NULL;
}

const struct strategy STRATEGY_NAMESPACE = {
        .defaults = namespace_defaults,
        .prepare = namespace_prepare,
        .validate = namespace_validate,
        .field = namespace_field,
        .row = namespace_row,
};

/* ---- ServiceAccounts: their tokens are asked for, none is kept in a Secret */

const struct strategy STRATEGY_ACCOUNT = {.row = account_row};

/* ---- Leases */

static void lease_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                           const struct json *lease, struct causes *c)
{
        const struct json *spec = json_at(lease, "spec");

        if (json_int(spec, "leaseDurationSeconds", 1) <= 0)
                bad_int(c, "spec.leaseDurationSeconds", json_int(spec, "leaseDurationSeconds", 0),
                        "must be greater than 0");
        if (json_int(spec, "leaseTransitions", 0) < 0)
                bad_int(c, "spec.leaseTransitions", json_int(spec, "leaseTransitions", 0),
                        "must to greater or equal than 0");
}

const struct strategy STRATEGY_LEASE = {.validate = lease_validate, .row = lease_row};

/* ---- PersistentVolumeClaims */

static void claim_defaults(const struct strategy_context *c, struct json *claim)
{
        default_str(c->a, child_object(c->a, claim, "spec"), "volumeMode", "Filesystem");
        default_str(c->a, child_object(c->a, claim, "status"), "phase", "Pending");
}

static void claim_prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                          struct json *claim)
{
        const struct json *source = json_path(claim, "spec.dataSource");
        const char *kind = json_str_or(source, "kind", ""), *group = json_str_or(source, "apiGroup", "");

        /* From other sources nothing is copied: they are not even kept. */
        if (!(streq(kind, "PersistentVolumeClaim") && !*group) &&
            !(streq(kind, "VolumeSnapshot") && streq(group, "snapshot.storage.k8s.io")))
                json_remove(json_at(claim, "spec"), "dataSource");
        if (old)
                return;
        json_set(c->a, claim, "status", json_build(c->a, "{'phase': 'Pending'}"));
        /* What admission adds: the claim stays while a pod uses it. */
        json_set(c->a, child_object(c->a, claim, "metadata"), "finalizers",
                 json_build(c->a, "['kubernetes.io/pvc-protection']"));
}

static void check_storage(struct causes *c, const struct json *spec)
{
        const struct json *value = json_path(spec, "resources.requests.storage");
        struct quantity q = {0};

        if (!value) {
                bad_required(c, "spec.resources[storage]", "");
                return;
        }
        if (quantity_of(value, &q) && q.nano <= 0)
                bad_str(c, "spec.resources[storage]", quantity_print(&q, c->a), "must be greater than zero");
}

static void claim_spec_validate(struct causes *c, const struct json *spec)
{
        static const char *const modes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", NULL};
        static const char *const volume_modes[] = {"Block", "Filesystem", NULL};
        const char *class = json_str(spec, "storageClassName"), *mode = json_str(spec, "volumeMode");
        const struct json *source = json_at(spec, "dataSource");

        if (json_len(json_at(spec, "accessModes")) == 0)
                bad_required(c, "spec.accessModes", "at least 1 access mode is required");
        if (json_at(spec, "selector"))
                check_label_selector(c, "spec.selector", json_at(spec, "selector"));
        json_foreach (m, json_at(spec, "accessModes"))
                if (!str_in(modes, json_cstr(m)))
                        bad_enum(c, "spec.accessModes", json_cstr(m) ? json_cstr(m) : "", modes);
        check_storage(c, spec);
        if (class && *class)
                check_value(c, "spec.storageClassName", class, check_subdomain);
        if (mode && !str_in(volume_modes, mode))
                bad_enum(c, "spec.volumeMode", mode, volume_modes);
        if (source && !*json_str_or(source, "name", ""))
                bad_required(c, "spec.dataSource.name", "");
        if (source && !*json_str_or(source, "kind", ""))
                bad_required(c, "spec.dataSource.kind", "");
        if (source && !*json_str_or(source, "apiGroup", "") &&
            !streq(json_str(source, "kind"), "PersistentVolumeClaim"))
                bad_str(c, "spec.dataSource", json_str_or(source, "kind", ""), "");
}

static void claim_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                           const struct json *claim, struct causes *c)
{
        struct json *before, *now;

        if (*sub)
                return;
        claim_spec_validate(c, json_at(claim, "spec"));
        if (!old)
                return;
        before = json_copy(c->a, json_at(old, "spec"));
        now = json_copy(c->a, json_at(claim, "spec"));
        if (!*json_str_or(before, "volumeName", ""))
                json_remove(now, "volumeName");
        if (streq(json_str(json_at(claim, "status"), "phase"), "Bound")) {
                json_remove(before, "resources");
                json_remove(now, "resources");
        }
        if (!json_equal(before, now))
                bad_forbidden(c, "spec",
                              "spec is immutable after creation except resources.requests for bound claims");
}

const struct strategy STRATEGY_CLAIM = {
        .defaults = claim_defaults,
        .prepare = claim_prepare,
        .validate = claim_validate,
        .row = claim_row,
};
