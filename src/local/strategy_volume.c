#include "local/strategy_internal.h"

#define FILE_MODE_RANGE "must be a number between 0 and 0777 (octal), both inclusive"

static bool has_backstep(const char *path)
{
        struct str rest = str_of(path);

        while (rest.p)
                if (str_eq(str_split(&rest, '/'), STR("..")))
                        return true;
        return false;
}

void check_relative_path(struct causes *c, const char *path, const char *value, bool reserved)
{
        if (value[0] == '/')
                bad_str(c, path, value, "must be a relative path");
        if (has_backstep(value))
                bad_str(c, path, value, "must not contain '..'");
        if (reserved && strncmp(value, "..", 2) == 0 && strncmp(value, "../", 3) != 0)
                bad_str(c, path, value, "must not start with '..'");
}

static void check_mode(struct causes *c, const char *path, const struct json *object, const char *key)
{
        int64_t mode = json_int(object, key, 0);

        if (mode < 0 || mode > 0777)
                bad_int(c, path_key(c, path, key), mode, FILE_MODE_RANGE);
}

static void check_key_paths(struct causes *c, const char *path, const struct json *items)
{
        size_t i = 0;

        json_foreach (item, items) {
                const char *here = path_index(c, path_key(c, path, "items"), i++);

                if (!*json_str_or(item, "key", ""))
                        bad_required(c, path_key(c, here, "key"), "");
                if (!*json_str_or(item, "path", ""))
                        bad_required(c, path_key(c, here, "path"), "");
                check_relative_path(c, path_key(c, here, "path"), json_str_or(item, "path", ""), true);
                check_mode(c, here, item, "mode");
        }
}

static void check_named(struct causes *c, const char *path, const struct json *source, const char *key)
{
        if (!*json_str_or(source, key, ""))
                bad_required(c, path_key(c, path, key), "");
        check_mode(c, path, source, "defaultMode");
        check_key_paths(c, path, json_at(source, "items"));
}

static void check_field_files(struct causes *c, const char *path, const struct json *items)
{
        json_foreach (f, items) {
                const struct json *field = json_at(f, "fieldRef"), *resource = json_at(f, "resourceFieldRef");

                if (!*json_str_or(f, "path", ""))
                        bad_required(c, path_key(c, path, "path"), "");
                check_relative_path(c, path_key(c, path, "path"), json_str_or(f, "path", ""), true);
                if (field)
                        field_ref_validate(c, path_key(c, path, "fieldRef"), field, true);
                if (field && resource)
                        bad_str(c, path, "resource",
                                "fieldRef and resourceFieldRef can not be specified simultaneously");
                else if (resource)
                        resource_ref_validate(c, path_key(c, path, "resourceFieldRef"), resource, true);
                else if (!field)
                        bad_required(c, path, "one of fieldRef and resourceFieldRef is required");
                check_mode(c, path, f, "mode");
        }
}

static void check_token(struct causes *c, const char *path, const char *volume, const struct json *token)
{
        int64_t seconds = json_int(token, "expirationSeconds", 0);

        if (seconds < 600)
                bad_int(c, path_key(c, path, "expirationSeconds"), seconds,
                        "may not specify a duration less than 10 minutes");
        if (seconds > (int64_t)1 << 32)
                bad_int(c, path_key(c, path, "expirationSeconds"), seconds,
                        "may not specify a duration larger than 2^32 seconds");
        if (!*json_str_or(token, "path", ""))
                bad_required(c, path_key(c, volume, "path"), "");
}

/* Two files of one volume may not have one path. */
static void check_unique_paths(struct causes *c, const char *volume, struct json *seen,
                               const struct json *source, bool by_path)
{
        json_foreach (item, json_at(source, "items")) {
                const char *path = json_str_or(item, "path", "");

                if (!*path)
                        continue;
                if (json_at(seen, path))
                        bad_str(c, volume, by_path ? path : json_str_or(source, "name", ""),
                                "conflicting duplicate paths");
                json_set(c->a, seen, path, json_truth(c->a, true));
        }
}

static void check_projected(struct causes *c, const char *path, const struct json *projected)
{
        static const char *const named[] = {"secret", "configMap"};
        struct json *seen = json_object(c->a);
        size_t i = 0;

        check_mode(c, path, projected, "defaultMode");
        json_foreach (s, json_at(projected, "sources")) {
                const char *here = path_index(c, path_key(c, path, "sources"), i++);
                const struct json *downward = json_at(s, "downwardAPI"),
                                  *token = json_at(s, "serviceAccountToken");

                for (size_t k = 0; k < ARRAY_LEN(named); k++) {
                        const struct json *source = json_at(s, named[k]);

                        if (!source)
                                continue;
                        check_named(c, path_key(c, here, named[k]), source, "name");
                        check_unique_paths(c, path, seen, source, false);
                }
                if (downward) {
                        check_field_files(c, path_key(c, here, "downwardAPI"), json_at(downward, "items"));
                        check_unique_paths(c, path, seen, downward, true);
                }
                if (token)
                        check_token(c, path_key(c, here, "serviceAccountToken"), path, token);
                if (json_len(s) > 1)
                        bad_forbidden(c, here, "may not specify more than 1 volume type");
        }
}

static void check_empty_dir(struct causes *c, const char *path, const struct json *source)
{
        struct quantity q;

        if (quantity_of(json_at(source, "sizeLimit"), &q) && q.nano < 0)
                bad_forbidden(c, path_key(c, path, "sizeLimit"),
                              "SizeLimit field must be a valid resource quantity");
}

static void check_host_path(struct causes *c, const char *path, const struct json *source)
{
        static const char *const types[] = {
                "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
                "File", "FileOrCreate", "Socket",     NULL};
        const char *where = json_str_or(source, "path", ""), *type = json_str_or(source, "type", "");

        if (!*where) {
                bad_required(c, path_key(c, path, "path"), "");
                return;
        }
        if (has_backstep(where))
                bad_str(c, path_key(c, path, "path"), where, "must not contain '..'");
        if (!str_in(types, type))
                bad_enum(c, path_key(c, path, "type"), type, types);
}

static void check_secret(struct causes *c, const char *path, const struct json *source)
{
        check_named(c, path, source, "secretName");
}

static void check_config_map(struct causes *c, const char *path, const struct json *source)
{
        check_named(c, path, source, "name");
}

static void check_downward(struct causes *c, const char *path, const struct json *source)
{
        check_mode(c, path, source, "defaultMode");
        check_field_files(c, path, json_at(source, "items"));
}

static void check_claim(struct causes *c, const char *path, const struct json *source)
{
        if (!*json_str_or(source, "claimName", ""))
                bad_required(c, path_key(c, path, "claimName"), "");
}

static void check_nfs(struct causes *c, const char *path, const struct json *source)
{
        const char *where = json_str_or(source, "path", "");

        if (!*json_str_or(source, "server", ""))
                bad_required(c, path_key(c, path, "server"), "");
        if (!*where)
                bad_required(c, path_key(c, path, "path"), "");
        if (where[0] != '/')
                bad_str(c, path_key(c, path, "path"), where, "must be an absolute path");
}

/* In the order in which the server looks. Those without a function are other machines' disks: the node has none. */
static const struct {
        const char *name;
        void (*check)(struct causes *c, const char *path, const struct json *source);
} SOURCES[] = {
        {"emptyDir", check_empty_dir},
        {"hostPath", check_host_path},
        {"gitRepo", NULL},
        {"gcePersistentDisk", NULL},
        {"awsElasticBlockStore", NULL},
        {"secret", check_secret},
        {"nfs", check_nfs},
        {"iscsi", NULL},
        {"glusterfs", NULL},
        {"flocker", NULL},
        {"persistentVolumeClaim", check_claim},
        {"rbd", NULL},
        {"cinder", NULL},
        {"cephfs", NULL},
        {"quobyte", NULL},
        {"downwardAPI", check_downward},
        {"fc", NULL},
        {"flexVolume", NULL},
        {"configMap", check_config_map},
        {"azureFile", NULL},
        {"vsphereVolume", NULL},
        {"photonPersistentDisk", NULL},
        {"portworxVolume", NULL},
        {"azureDisk", NULL},
        {"storageos", NULL},
        {"projected", check_projected},
        {"scaleIO", NULL},
        {"csi", NULL},
        {"ephemeral", NULL},
};

static void check_source(struct causes *c, const char *path, const struct json *volume)
{
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(SOURCES); i++) {
                const struct json *source = json_at(volume, SOURCES[i].name);

                if (!source)
                        continue;
                if (n++ > 0)
                        bad_forbidden(c, path_key(c, path, SOURCES[i].name),
                                      "may not specify more than 1 volume type");
                else if (SOURCES[i].check)
                        SOURCES[i].check(c, path_key(c, path, SOURCES[i].name), source);
        }
        if (n == 0)
                bad_required(c, path, "must specify a volume type");
}

struct json *volumes_validate(struct causes *c, const char *path, const struct json *volumes)
{
        struct json *good = json_object(c->a);
        size_t i = 0;

        json_foreach (v, volumes) {
                const char *here = path_index(c, path, i++), *name = json_str_or(v, "name", "");
                size_t before = c->n;

                check_source(c, here, v);
                if (!*name)
                        bad_required(c, path_key(c, here, "name"), "");
                else
                        check_value(c, path_key(c, here, "name"), name, check_label);
                if (json_at(good, name))
                        bad_duplicate(c, path_key(c, here, "name"), name);
                if (c->n == before)
                        json_set(c->a, good, name, json_copy(c->a, v));
        }
        return good;
}
