/*
 * Volumes of a pod: what is to be in each, from the pod and the objects it refers to.
 */
#include "local/node_pod.h"

enum { MODE_FILES = 0644 };

struct files {
        const struct pod_context *c;
        struct json *list;
};

static bool path_inside(struct str path)
{
        if (!path.n || path.p[0] == '/')
                return false;
        while (path.p) {
                struct str part = str_split(&path, '/');

                if (!part.n || str_eq(part, STR(".")) || str_eq(part, STR("..")))
                        return false;
        }
        return true;
}

static int add_file(struct files *f, const char *path, int64_t mode, struct str data, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(NODE_TEXT_MAX);

        if (!path_inside(str_of(path)))
                return err_set(err, E_INVALID, "'%s' is no path inside a volume", path);
        buf_add_base64(&text, data);
        json_append(f->list, json_build(f->c->a, "{'path': %s, 'mode': %lld, 'data': %s}", path,
                                        (long long)mode, text.n ? buf_cstr(&text) : ""));
        return 0;
}

/* ---- of a ConfigMap or a Secret */

static const char *const WORDS[] = {[SOURCE_CONFIGMAP] = "configmap", [SOURCE_SECRET] = "secret"};

static int add_all(struct files *f, enum pod_source_kind kind, const struct json *object, int64_t mode,
                   struct err *err)
{
        static const char *const maps[] = {"data", "binaryData"};

        for (size_t i = 0; i < (kind == SOURCE_CONFIGMAP ? 2 : 1); i++)
                json_foreach (member, json_at(object, maps[i])) {
                        struct str value;

                        if (!source_value(f->c, kind, object, member->key, &value))
                                return err_set(err, E_INVALID, "%s: key %s cannot be decoded", WORDS[kind],
                                               member->key);
                        if (add_file(f, member->key, mode, value, err) < 0)
                                return -1;
                }
        return 0;
}

static int add_items(struct files *f, enum pod_source_kind kind, const struct json *object,
                     const struct json *ref, int64_t mode, struct err *err)
{
        json_foreach (item, json_at(ref, "items")) {
                const char *key = json_str_or(item, "key", "");
                struct str value;

                if (!source_value(f->c, kind, object, key, &value)) {
                        if (json_bool(ref, "optional", false))
                                continue;
                        return err_set(err, E_NOT_FOUND, "%s references non-existent %s key: %s", WORDS[kind],
                                       kind == SOURCE_SECRET ? "secret" : "config", key);
                }
                if (add_file(f, json_str_or(item, "path", ""), json_int(item, "mode", mode), value, err) < 0)
                        return -1;
        }
        return 0;
}

static int add_object(struct files *f, enum pod_source_kind kind, const char *name, const struct json *ref,
                      int64_t mode, struct err *err)
{
        const struct json *object = source_object(f->c, kind, name);

        if (!object)
                return json_bool(ref, "optional", false)
                               ? 0
                               : err_set(err, E_NOT_FOUND, "%s \"%s\" not found", WORDS[kind], name);
        return json_len(json_at(ref, "items")) ? add_items(f, kind, object, ref, mode, err)
                                               : add_all(f, kind, object, mode, err);
}

/* ---- of the pod itself, and its token */

static int add_downward(struct files *f, const struct json *ref, int64_t mode, struct err *err)
{
        json_foreach (item, json_at(ref, "items")) {
                const struct json *field = json_at(item, "fieldRef");
                const char *text = field ? downward_field(f->c, field)
                                         : downward_resource(f->c, json_at(item, "resourceFieldRef"), "");

                if (!text)
                        return err_set(err, E_INVALID, "unsupported fieldPath: %s",
                                       json_str_or(field, "fieldPath", ""));
                if (add_file(f, json_str_or(item, "path", ""), json_int(item, "mode", mode), str_of(text),
                             err) < 0)
                        return -1;
        }
        return 0;
}

static const char *account_of(const struct json *pod)
{
        const char *name = json_str_or(json_at(pod, "spec"), "serviceAccountName", "");

        return *name ? name : "default";
}

static bool same_token(const struct pod_source *s, const struct json *ref)
{
        const char *audience = json_str(ref, "audience");

        return s->kind == SOURCE_TOKEN && streq(s->audience, audience) &&
               s->expires == json_int(ref, "expirationSeconds", 3600);
}

static int add_token(struct files *f, const struct json *ref, int64_t mode, struct err *err)
{
        for (size_t i = 0; i < f->c->n_sources; i++) {
                const struct pod_source *s = &f->c->sources[i];
                struct str token = json_text(json_at(json_at(s->object, "status"), "token"));

                if (same_token(s, ref) && token.n)
                        return add_file(f, json_str_or(ref, "path", ""), mode, token, err);
        }
        return err_set(err, E_NOT_FOUND, "failed to fetch token: serviceaccounts \"%s\" not found",
                       account_of(f->c->pod));
}

static int add_projected(struct files *f, const struct json *ref, int64_t mode, struct err *err)
{
        json_foreach (s, json_at(ref, "sources")) {
                const struct json *from;
                int r = 0;

                if ((from = json_at(s, "configMap")))
                        r = add_object(f, SOURCE_CONFIGMAP, json_str_or(from, "name", ""), from, mode, err);
                else if ((from = json_at(s, "secret")))
                        r = add_object(f, SOURCE_SECRET, json_str_or(from, "name", ""), from, mode, err);
                else if ((from = json_at(s, "downwardAPI")))
                        r = add_downward(f, from, mode, err);
                else if ((from = json_at(s, "serviceAccountToken")))
                        r = add_token(f, from, mode, err);
                if (r < 0)
                        return -1;
        }
        return 0;
}

/* ---- one volume */

static int fill(struct files *f, const struct json *volume, struct err *err)
{
        const struct json *v;

        if ((v = json_at(volume, "configMap")))
                return add_object(f, SOURCE_CONFIGMAP, json_str_or(v, "name", ""), v,
                                  json_int(v, "defaultMode", MODE_FILES), err);
        if ((v = json_at(volume, "secret")))
                return add_object(f, SOURCE_SECRET, json_str_or(v, "secretName", ""), v,
                                  json_int(v, "defaultMode", MODE_FILES), err);
        if ((v = json_at(volume, "projected")))
                return add_projected(f, v, json_int(v, "defaultMode", MODE_FILES), err);
        if ((v = json_at(volume, "downwardAPI")))
                return add_downward(f, v, json_int(v, "defaultMode", MODE_FILES), err);
        return err_set(err, E_REFUSED,
                       "this node has no such volumes; it has emptyDir, configMap, secret, projected, "
                       "downwardAPI and hostPath");
}

struct json *volume_plan(const struct pod_context *c, const struct json *volume, struct err *err)
{
        const char *name = json_str_or(volume, "name", "");
        const struct json *host = json_at(volume, "hostPath");
        struct files f = {c, json_array(c->a)};

        if (!path_inside(str_of(name)) || strchr(name, '/')) {
                err_set(err, E_INVALID, "'%s' is no name of a volume", name);
                return NULL;
        }
        if (json_at(volume, "emptyDir"))
                return json_build(c->a, "{'name': %s, 'kind': 'empty'}", name);
        if (host)
                return json_build(c->a, "{'name': %s, 'kind': 'host', 'source': %s, 'type': %s}", name,
                                  json_str_or(host, "path", "/"), json_str_or(host, "type", ""));
        if (fill(&f, volume, err) < 0) {
                err_wrap(err, "MountVolume.SetUp failed for volume \"%s\" ", name);
                return NULL;
        }
        return json_build(c->a, "{'name': %s, 'kind': 'files', 'files': %p}", name, (void *)f.list);
}

/* ---- what they refer to */

typedef void (*source_fn)(void *arg, const struct pod_source *s);

static void told(enum pod_source_kind kind, const char *name, const struct json *ref, source_fn fn, void *arg)
{
        fn(arg,
           &(struct pod_source){.kind = kind, .name = name, .wanted = !json_bool(ref, "optional", false)});
}

static void projected_sources(const struct json *pod, const struct json *v, source_fn fn, void *arg)
{
        json_foreach (s, json_at(v, "sources")) {
                const struct json *from;

                if ((from = json_at(s, "configMap")))
                        told(SOURCE_CONFIGMAP, json_str_or(from, "name", ""), from, fn, arg);
                else if ((from = json_at(s, "secret")))
                        told(SOURCE_SECRET, json_str_or(from, "name", ""), from, fn, arg);
                else if ((from = json_at(s, "serviceAccountToken")))
                        fn(arg, &(struct pod_source){.kind = SOURCE_TOKEN,
                                                     .name = account_of(pod),
                                                     .audience = json_str(from, "audience"),
                                                     .expires = json_int(from, "expirationSeconds", 3600),
                                                     .wanted = true});
        }
}

void volume_sources(const struct json *pod, const struct json *volume, source_fn fn, void *arg)
{
        const struct json *v;

        if ((v = json_at(volume, "configMap")))
                told(SOURCE_CONFIGMAP, json_str_or(v, "name", ""), v, fn, arg);
        else if ((v = json_at(volume, "secret")))
                told(SOURCE_SECRET, json_str_or(v, "secretName", ""), v, fn, arg);
        else if ((v = json_at(volume, "projected")))
                projected_sources(pod, v, fn, arg);
}
