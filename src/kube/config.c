#include "kube/config.h"

#include <stddef.h>
#include <sys/stat.h>

#include "kube/names.h"
#include "net/http.h"

enum { FILE_SIZE_MAX = 4 << 20, FILES_MAX = 256, LIST_MAX = 1024 };

static const char account_dir_default[] = "/var/run/secrets/kubernetes.io/serviceaccount";
static const char exec_extension[] = "client.authentication.k8s.io/exec";

struct file {
        const char *path;  /* NULL: given as text */
        const char *dir;   /* what relative paths are relative to; NULL: the current directory */
        struct json *root; /* NULL: an empty file */
};

/* The files in the order of their precedence. Wiped at the end: all tokens and keys of all users are in it. */
struct reading {
        struct arena arena;
        VEC(struct file) files;
};

static void reading_done(struct reading *r)
{
        arena_wipe(&r->arena);
        vec_done(&r->files);
}
DEFINE_CLEANUP_STRUCT(struct reading, reading_done)

/* ---- messages and typed members */

/* "kubeconfig /x:12:3: ..." as far as each part is known. */
static int fail_at(const struct file *f, const struct json *at, struct err *err, const char *fmt, ...)
        _printf_(4, 5);
static int fail_at(const struct file *f, const struct json *at, struct err *err, const char *fmt, ...)
{
        _cleanup_(arena_done) struct arena scratch = ARENA_INIT;
        va_list ap;
        const char *text, *path = f->path ? f->path : "(text)";

        va_start(ap, fmt);
        text = arena_vprintf(&scratch, fmt, ap);
        va_end(ap);
        if (at && at->line)
                return err_set(err, E_CONFIG, "kubeconfig %s:%u:%u: %s", path, (unsigned)at->line,
                               (unsigned)at->column, text);
        return err_set(err, E_CONFIG, "kubeconfig %s: %s", path, text);
}

/* The member KEY when it is there and not null; RET stays NULL otherwise. */
static int member(const struct file *f, const struct json *object, const char *key, enum json_type type,
                  const struct json **ret, struct err *err)
{
        const struct json *j = json_at(object, key);

        *ret = NULL;
        if (!j || j->type == JSON_NULL)
                return 0;
        if (j->type != type)
                return fail_at(f, j, err, "'%s' is %s %s, but must be %s %s%s", key,
                               j->type == JSON_ARRAY || j->type == JSON_OBJECT ? "an" : "a",
                               json_type_name(j->type),
                               type == JSON_ARRAY || type == JSON_OBJECT ? "an" : "a", json_type_name(type),
                               type == JSON_STRING && j->type < JSON_ARRAY ? ": put it in quotes" : "");
        if (type == JSON_STRING && !json_cstr(j))
                return fail_at(f, j, err, "'%s' holds a NUL byte", key);
        *ret = j;
        return 0;
}

/* An empty string counts as absent, as it does for kubectl. */
static int text_member(const struct file *f, const struct json *object, const char *key, const char **ret,
                       struct err *err)
{
        const struct json *j;

        if (member(f, object, key, JSON_STRING, &j, err) < 0)
                return -1;
        *ret = j && j->len ? json_cstr(j) : NULL;
        return 0;
}

static char *resolve(const struct file *f, const char *path)
{
        if (path[0] == '/' || !f->dir)
                return xstrdup(path);
        return xasprintf("%s/%s", f->dir, path);
}

/* ---- members of clusters and users, by table */

struct field {
        const char *key;
        enum { FIELD_TEXT, FIELD_PATH, FIELD_DATA, FIELD_TRUTH } type;
        size_t offset; /* in struct kube_config */
};

#define AT(member) offsetof(struct kube_config, member)

static const struct field cluster_fields[] = {
        {"server", FIELD_TEXT, AT(server)},
        {"tls-server-name", FIELD_TEXT, AT(tls_server_name)},
        {"proxy-url", FIELD_TEXT, AT(proxy)},
        {"insecure-skip-tls-verify", FIELD_TRUTH, AT(insecure)},
        {"certificate-authority", FIELD_PATH, AT(ca_file)},
        {"certificate-authority-data", FIELD_DATA, AT(ca)},
};

static const struct field user_fields[] = {
        {"client-certificate", FIELD_PATH, AT(cert_file)},
        {"client-certificate-data", FIELD_DATA, AT(cert)},
        {"client-key", FIELD_PATH, AT(key_file)},
        {"client-key-data", FIELD_DATA, AT(key)},
        {"token", FIELD_TEXT, AT(token)},
        {"tokenFile", FIELD_PATH, AT(token_file)},
        {"username", FIELD_TEXT, AT(username)},
        {"password", FIELD_TEXT, AT(password)},
};

/* Going on without these would mean to act as somebody else. */
static const struct {
        const char *key, *why;
} refused_fields[] = {
        {"auth-provider",
         "Kubernetes has removed it: use an exec plugin (kubelogin, gke-gcloud-auth-plugin)"},
        {"as", "impersonation is not supported"},
        {"as-uid", "impersonation is not supported"},
        {"as-groups", "impersonation is not supported"},
        {"as-user-extra", "impersonation is not supported"},
};

static int decode_data(const struct file *f, const struct json *at, const char *key, char **ret,
                       struct err *err)
{
        struct buf out = BUF_INIT(FILE_SIZE_MAX);
        bool good = buf_add_unbase64(&out, json_text(at)) && !out.overflow;

        if (good && !(out.n && memchr(out.p, '\0', out.n))) {
                *ret = buf_take(&out);
                return 0;
        }
        mem_wipe(out.p, out.n);
        buf_done(&out);
        return fail_at(f, at, err, good ? "'%s' is no PEM text" : "'%s' is not valid base64", key);
}

static int read_field(const struct file *f, const struct json *object, const struct field *field,
                      struct kube_config *ret, struct err *err)
{
        enum json_type type = field->type == FIELD_TRUTH ? JSON_BOOL : JSON_STRING;
        const struct json *j;
        char **to;

        if (member(f, object, field->key, type, &j, err) < 0)
                return -1;
        if (!j || (type == JSON_STRING && j->len == 0))
                return 0;
        if (type == JSON_BOOL) {
                *(bool *)(void *)((char *)ret + field->offset) = j->truth;
                return 0;
        }
        to = (char **)(void *)((char *)ret + field->offset);
        if (field->type == FIELD_DATA)
                return decode_data(f, j, field->key, to, err);
        *to = field->type == FIELD_PATH ? resolve(f, json_cstr(j)) : xstrdup(json_cstr(j));
        return 0;
}

static int read_fields(const struct file *f, const struct json *object, const struct field *fields, size_t n,
                       struct kube_config *ret, struct err *err)
{
        for (size_t i = 0; i < n; i++)
                if (read_field(f, object, &fields[i], ret, err) < 0)
                        return -1;
        return 0;
}

/* ---- exec plugins */

static const char *const exec_versions[] = {"client.authentication.k8s.io/v1",
                                            "client.authentication.k8s.io/v1beta1",
                                            "client.authentication.k8s.io/v1alpha1"};

static bool exec_version_known(const char *version)
{
        for (size_t i = 0; i < ARRAY_LEN(exec_versions); i++)
                if (streq(version, exec_versions[i]))
                        return true;
        return false;
}

static int list_member(const struct file *f, const struct json *object, const char *key,
                       const struct json **ret, struct err *err)
{
        if (member(f, object, key, JSON_ARRAY, ret, err) < 0)
                return -1;
        if (json_len(*ret) > LIST_MAX)
                return fail_at(f, *ret, err, "'%s' has more than %d elements", key, LIST_MAX);
        return 0;
}

static int read_args(const struct file *f, const struct json *exec, struct kube_exec *ret, struct err *err)
{
        const struct json *list;
        size_t n = 0;

        if (list_member(f, exec, "args", &list, err) < 0)
                return -1;
        if (!list)
                return 0;
        ret->args = xcalloc(json_len(list) + 1, sizeof(*ret->args));
        json_foreach (arg, list) {
                if (!json_cstr(arg))
                        return fail_at(f, arg, err,
                                       "an element of 'args' must be a string: put it in quotes");
                ret->args[n++] = xstrdup(json_cstr(arg));
        }
        return 0;
}

static int read_env(const struct file *f, const struct json *exec, struct kube_exec *ret, struct err *err)
{
        const struct json *list;
        size_t n = 0;

        if (list_member(f, exec, "env", &list, err) < 0)
                return -1;
        if (!list)
                return 0;
        ret->env = xcalloc(json_len(list) + 1, sizeof(*ret->env));
        json_foreach (entry, list) {
                const char *name, *value;

                if (text_member(f, entry, "name", &name, err) < 0 ||
                    text_member(f, entry, "value", &value, err) < 0)
                        return -1;
                if (!name || strchr(name, '='))
                        return fail_at(f, entry, err, "an element of 'env' needs a name without '='");
                ret->env[n++] = xasprintf("%s=%s", name, value ? value : "");
        }
        return 0;
}

static int check_interactive(const struct file *f, const struct json *exec, struct err *err)
{
        const struct json *mode;

        if (member(f, exec, "interactiveMode", JSON_STRING, &mode, err) < 0)
                return -1;
        if (!mode || streq(json_cstr(mode), "") || streq(json_cstr(mode), "Never") ||
            streq(json_cstr(mode), "IfAvailable"))
                return 0;
        if (streq(json_cstr(mode), "Always"))
                return fail_at(f, mode, err,
                               "the exec plugin wants a terminal (interactiveMode Always), "
                               "but plugins run without one");
        return fail_at(f, mode, err, "interactiveMode '%s' must be Never, IfAvailable or Always",
                       json_cstr(mode));
}

static int read_exec(const struct file *f, const struct json *exec, struct kube_exec *ret, struct err *err)
{
        const char *version, *command, *hint;
        const struct json *info;

        if (text_member(f, exec, "apiVersion", &version, err) < 0 ||
            text_member(f, exec, "command", &command, err) < 0 ||
            text_member(f, exec, "installHint", &hint, err) < 0 ||
            member(f, exec, "provideClusterInfo", JSON_BOOL, &info, err) < 0 ||
            check_interactive(f, exec, err) < 0)
                return -1;
        if (!command)
                return fail_at(f, exec, err, "the exec plugin has no 'command'");
        if (!version || !exec_version_known(version))
                return fail_at(f, json_at(exec, "apiVersion") ? json_at(exec, "apiVersion") : exec, err,
                               "apiVersion '%s' of the exec plugin is not known; it may be %s, %s or %s",
                               version ? version : "", exec_versions[0], exec_versions[1], exec_versions[2]);
        ret->api_version = xstrdup(version);
        ret->command = strchr(command, '/') ? resolve(f, command) : xstrdup(command);
        ret->install_hint = xstrdup(hint);
        ret->provide_cluster_info = info && info->truth;
        if (read_args(f, exec, ret, err) < 0)
                return -1;
        return read_env(f, exec, ret, err);
}

/* ---- one context */

/* A thing that some file names: its inner object and, for messages, where that is. */
struct found {
        const struct file *file;
        const struct json *value, *at;
};

static const struct json empty_object = {.type = JSON_OBJECT};

static int find_in_file(const struct file *f, const char *list, const char *inner, const char *name,
                        struct found *ret, struct err *err)
{
        const struct json *all;

        if (member(f, f->root, list, JSON_ARRAY, &all, err) < 0)
                return -1;
        json_foreach (entry, all) {
                const struct json *value;
                const char *its_name;

                if (!json_is(entry, JSON_OBJECT))
                        return fail_at(f, entry, err, "an element of '%s' must be an object", list);
                if (text_member(f, entry, "name", &its_name, err) < 0)
                        return -1;
                if (!streq(its_name ? its_name : "", name))
                        continue;
                if (ret->value)
                        return fail_at(f, entry, err, "%s '%s' is there twice", inner, name);
                if (member(f, entry, inner, JSON_OBJECT, &value, err) < 0)
                        return -1;
                *ret = (struct found){f, value ? value : &empty_object, value ? value : entry};
        }
        return 0;
}

/* The first file that names it wins, whole. RET->value is NULL when none does. */
static int find(const struct reading *r, const char *list, const char *inner, const char *name,
                struct found *ret, struct err *err)
{
        *ret = (struct found){0};
        vec_foreach (f, &r->files) {
                if (find_in_file(f, list, inner, name, ret, err) < 0)
                        return -1;
                if (ret->value)
                        return 0;
        }
        return 0;
}

static int check_url(const struct file *f, const struct json *object, const char *key, bool proxy,
                     struct err *err)
{
        const struct json *j = json_at(object, key);
        struct url url;
        struct err why = ERR_INIT;

        if (url_parse(json_text(j), &url, &why) < 0)
                return fail_at(f, j, err, "'%s': %s", key, why.text);
        if (proxy && url.tls)
                return fail_at(f, j, err, "'%s': proxies are spoken to by http:// only", key);
        if (!proxy && url.user.n)
                return fail_at(f, j, err, "'%s': a user in the URL is not supported", key);
        return 0;
}

/* What is inline wins over a file. */
static void prefer_inline(char **text, char **file)
{
        if (*text) {
                free(*file);
                *file = NULL;
        }
}

static int read_cluster(const struct found *cluster, bool insecure, struct kube_config *ret, struct err *err)
{
        const struct file *f = cluster->file;

        if (read_fields(f, cluster->value, cluster_fields, ARRAY_LEN(cluster_fields), ret, err) < 0)
                return -1;
        if (!ret->server)
                return fail_at(f, cluster->at, err, "the cluster has no 'server'");
        if (check_url(f, cluster->value, "server", false, err) < 0)
                return -1;
        if (ret->proxy && check_url(f, cluster->value, "proxy-url", true, err) < 0)
                return -1;
        prefer_inline(&ret->ca, &ret->ca_file);
        if (insecure) {
                ret->insecure = true;
                free(ret->ca);
                free(ret->ca_file);
                ret->ca = ret->ca_file = NULL;
        }
        if (ret->insecure && (ret->ca || ret->ca_file))
                return fail_at(f, cluster->at, err,
                               "a certificate authority and insecure-skip-tls-verify exclude each other");
        return 0;
}

static int check_user(const struct found *user, const struct kube_config *c, struct err *err)
{
        const struct file *f = user->file;
        bool cert = c->cert || c->cert_file, key = c->key || c->key_file;

        if (cert != key)
                return fail_at(f, user->at, err,
                               cert ? "the user has a client-certificate but no client-key"
                                    : "the user has a client-key but no client-certificate");
        if ((c->token || c->token_file) && (c->username || c->password))
                return fail_at(f, user->at, err,
                               "the user has both a token and a password: only one is allowed");
        return 0;
}

static int read_user(const struct found *user, struct kube_config *ret, struct err *err)
{
        const struct file *f = user->file;
        const struct json *exec;

        for (size_t i = 0; i < ARRAY_LEN(refused_fields); i++) {
                const struct json *j = json_at(user->value, refused_fields[i].key);

                if (j && j->type != JSON_NULL)
                        return fail_at(f, j, err, "'%s': %s", refused_fields[i].key, refused_fields[i].why);
        }
        if (read_fields(f, user->value, user_fields, ARRAY_LEN(user_fields), ret, err) < 0 ||
            member(f, user->value, "exec", JSON_OBJECT, &exec, err) < 0)
                return -1;
        prefer_inline(&ret->cert, &ret->cert_file);
        prefer_inline(&ret->key, &ret->key_file);
        if (check_user(user, ret, err) < 0)
                return -1;
        if (!exec)
                return 0;
        ret->exec = xcalloc(1, sizeof(*ret->exec));
        return read_exec(f, exec, ret->exec, err);
}

/* What a plugin is told about the cluster besides its address. */
static int read_exec_extension(const struct found *cluster, struct kube_exec *exec, struct err *err)
{
        const struct json *list, *extension;
        struct buf out = BUF_INIT(FILE_SIZE_MAX);

        if (member(cluster->file, cluster->value, "extensions", JSON_ARRAY, &list, err) < 0)
                return -1;
        extension = json_at(json_find_named(list, exec_extension), "extension");
        if (!extension)
                return 0;
        json_write(extension, JSON_COMPACT, &out);
        exec->cluster_config = buf_take(&out);
        return 0;
}

static int current_context(const struct reading *r, const char **ret, struct err *err)
{
        vec_foreach (f, &r->files) {
                if (text_member(f, f->root, "current-context", ret, err) < 0)
                        return -1;
                if (*ret)
                        return 0;
        }
        return fail_at(&r->files.v[0], NULL, err, "there is no current-context; pass --context");
}

static int find_part(const struct reading *r, const struct found *context, const char *name, const char *key,
                     const char *list, struct found *ret, struct err *err)
{
        const char *wanted;

        if (text_member(context->file, context->value, key, &wanted, err) < 0)
                return -1;
        *ret = (struct found){0};
        if (!wanted)
                return 0;
        if (find(r, list, key, wanted, ret, err) < 0)
                return -1;
        if (!ret->value)
                return fail_at(context->file, json_at(context->value, key), err,
                               "context '%s' names %s '%s', %s is not there", name, key, wanted,
                               streq(key, "user") ? "who" : "which");
        return 0;
}

static int read_context(const struct reading *r, const char *name, bool insecure, struct kube_config *ret,
                        struct err *err)
{
        struct found context, cluster, user;
        const char *ns;

        if (!name && current_context(r, &name, err) < 0)
                return -1;
        if (find(r, "contexts", "context", name, &context, err) < 0)
                return -1;
        if (!context.value)
                return fail_at(&r->files.v[0], json_at(r->files.v[0].root, "contexts"), err,
                               "there is no context '%s'%s", name,
                               r->files.n > 1 ? " in this or the other files" : "");
        ret->context = xstrdup(name);
        ret->source = xasprintf("context %s of %s", name,
                                context.file->path ? context.file->path : "the given text");

        if (find_part(r, &context, name, "cluster", "clusters", &cluster, err) < 0 ||
            find_part(r, &context, name, "user", "users", &user, err) < 0 ||
            text_member(context.file, context.value, "namespace", &ns, err) < 0)
                return -1;
        if (!cluster.value)
                return fail_at(context.file, context.at, err, "context '%s' names no cluster", name);
        ret->ns = xstrdup(ns ? ns : "default");
        if (read_cluster(&cluster, insecure, ret, err) < 0)
                return -1;
        if (user.value && read_user(&user, ret, err) < 0)
                return -1;
        return ret->exec ? read_exec_extension(&cluster, ret->exec, err) : 0;
}

/* ---- files */

static int parse_file(struct reading *r, struct str text, const char *path, const char *dir, struct err *err)
{
        struct json **docs = NULL;
        struct file f = {.path = path, .dir = dir};
        struct err why = ERR_INIT;
        const char *kind;
        size_t n = 0;

        if (yaml_parse_all(&r->arena, text, NULL, &docs, &n, &why) < 0) /* "12:3: what is wrong" */
                return err_set(err, E_CONFIG, "kubeconfig %s:%s", path ? path : "(text)", why.text);
        if (n > 1)
                return fail_at(&f, docs[1], err, "there must be one document, not %zu", n);
        f.root = n ? docs[0] : NULL;
        if (f.root && f.root->type != JSON_OBJECT)
                return fail_at(&f, f.root, err, "this is no kubeconfig, but %s %s",
                               f.root->type == JSON_ARRAY ? "an" : "a", json_type_name(f.root->type));
        if (text_member(&f, f.root, "kind", &kind, err) < 0)
                return -1;
        if (kind && !streq(kind, "Config"))
                return fail_at(&f, json_at(f.root, "kind"), err, "this is no kubeconfig, but a %s", kind);
        *vec_push(&r->files) = f;
        return 0;
}

static const char *folder_of(struct arena *a, const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? arena_strndup(a, path, MAX((size_t)(slash - path), (size_t)1)) : NULL;
}

static int read_file(struct reading *r, const char *path, struct err *err)
{
        struct buf text = BUF_INIT(FILE_SIZE_MAX);
        int result = file_read(path, &text, err);

        if (result >= 0)
                result = parse_file(r, buf_str(&text), path, folder_of(&r->arena, path), err);
        else if (!err || err->code != E_NOT_FOUND)
                err_wrap(err, "kubeconfig");
        mem_wipe(text.p, text.n);
        buf_done(&text);
        return result;
}

static bool already_read(const struct reading *r, const char *path)
{
        vec_foreach (f, &r->files)
                if (streq(f->path, path))
                        return true;
        return false;
}

/* Files that are not there are passed over, as kubectl does; but one must be there. */
static int read_list(struct reading *r, const char *list, struct err *err)
{
        struct str rest = str_of(list);
        struct err why = ERR_INIT;
        unsigned n = 0;

        while (rest.p) {
                struct str item = str_split(&rest, ':');
                const char *path = arena_strndup(&r->arena, item.p, item.n);

                if (!item.n || already_read(r, path))
                        continue;
                if (++n > FILES_MAX)
                        return err_set(err, E_CONFIG, "KUBECONFIG names more than %d files", FILES_MAX);
                if (read_file(r, path, &why) < 0 && why.code != E_NOT_FOUND)
                        return err_set(err, why.code, "%s", why.text);
        }
        if (r->files.n == 0)
                return err_set(err, E_CONFIG, "none of the files that KUBECONFIG names is there: %s", list);
        return 0;
}

static int read_one(struct reading *r, const char *path, const char *otherwise, struct err *err)
{
        struct err why = ERR_INIT;

        if (read_file(r, path, &why) >= 0)
                return 0;
        if (why.code == E_NOT_FOUND)
                return err_set(err, E_CONFIG, "kubeconfig %s is not there%s", path, otherwise);
        return err_set(err, why.code, "%s", why.text);
}

/* ---- inside a pod */

static bool is_set(const char *s)
{
        return s && s[0];
}

static const char *account_dir(const struct kube_config_sources *s)
{
        return s->account_dir ? s->account_dir : account_dir_default;
}

static bool inside_pod(const struct kube_config_sources *s)
{
        _cleanup_(free_ptr) char *token = xasprintf("%s/token", account_dir(s));
        struct stat st;

        return is_set(s->service_host) && is_set(s->service_port) && stat(token, &st) == 0 &&
               !S_ISDIR(st.st_mode);
}

static int read_account_namespace(const char *dir, char **ret, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/namespace", dir);
        _cleanup_(buf_done) struct buf text = BUF_INIT(256);
        struct err why = ERR_INIT;
        struct str ns;

        if (file_read(path, &text, &why) < 0) {
                if (why.code != E_NOT_FOUND)
                        return err_set(err, E_CONFIG, "service account: %s", why.text);
                *ret = xstrdup("default");
                return 0;
        }
        ns = str_trim(buf_str(&text));
        if (!ns.n || !name_valid(NAME_LABEL, ns))
                return err_set(err, E_CONFIG, "service account: %s holds no namespace", path);
        *ret = xstrndup(ns.p, ns.n);
        return 0;
}

static int read_account(const struct kube_config_sources *s, struct kube_config *ret, struct err *err)
{
        const char *dir = account_dir(s);
        bool bare_ipv6 = strchr(s->service_host, ':') && s->service_host[0] != '[';
        struct url url;

        if (s->insecure)
                return err_set(err, E_CONFIG,
                               "inside a cluster the API server is always verified; "
                               "leave out --insecure-skip-tls-verify");
        ret->server = xasprintf(bare_ipv6 ? "https://[%s]:%s" : "https://%s:%s", s->service_host,
                                s->service_port);
        if (url_parse(str_of(ret->server), &url, err) < 0)
                return err_wrap(err, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT");
        ret->source = xstrdup("service account");
        ret->token_file = xasprintf("%s/token", dir);
        ret->ca_file = xasprintf("%s/ca.crt", dir);
        return read_account_namespace(dir, &ret->ns, err);
}

/* ---- the doors */

void kube_config_from_env(struct kube_config_sources *sources)
{
        sources->env_kubeconfig = getenv("KUBECONFIG");
        sources->home = getenv("HOME");
        sources->service_host = getenv("KUBERNETES_SERVICE_HOST");
        sources->service_port = getenv("KUBERNETES_SERVICE_PORT");
}

static int load(const struct kube_config_sources *s, struct kube_config *ret, struct err *err)
{
        _cleanup_(reading_done) struct reading r = {.arena = ARENA_INIT};
        int result;

        if (is_set(s->kubeconfig)) {
                result = read_one(&r, s->kubeconfig, "", err);
        } else if (is_set(s->env_kubeconfig)) {
                result = read_list(&r, s->env_kubeconfig, err);
        } else if (!is_set(s->context) && inside_pod(s)) {
                return read_account(s, ret, err);
        } else {
                const char *home = arena_printf(&r.arena, "%s/.kube/config", s->home ? s->home : "");

                result = read_one(&r, home, ", KUBECONFIG is not set, and this is no pod; pass --kubeconfig",
                                  err);
        }
        if (result < 0)
                return -1;
        return read_context(&r, is_set(s->context) ? s->context : NULL, s->insecure, ret, err);
}

int kube_config_load(const struct kube_config_sources *sources, struct kube_config *ret, struct err *err)
{
        _cleanup_(kube_config_done) struct kube_config c = {0};

        if (load(sources, &c, err) < 0)
                return -1;
        if (is_set(sources->ns)) {
                free(c.ns);
                c.ns = xstrdup(sources->ns);
        }
        *ret = c;
        c = (struct kube_config){0};
        return 0;
}

int kube_config_parse(struct str text, const char *dir, const char *context, struct kube_config *ret,
                      struct err *err)
{
        _cleanup_(reading_done) struct reading r = {.arena = ARENA_INIT};
        _cleanup_(kube_config_done) struct kube_config c = {0};

        if (parse_file(&r, text, NULL, dir, err) < 0 || read_context(&r, context, false, &c, err) < 0)
                return -1;
        *ret = c;
        c = (struct kube_config){0};
        return 0;
}

/* ---- the end */

static void wipe_free(char *s)
{
        if (s)
                mem_wipe(s, strlen(s));
        free(s);
}

static void free_list(char **list)
{
        for (size_t i = 0; list && list[i]; i++)
                wipe_free(list[i]); /* people do put secrets into a plugin's environment */
        free(list);
}

static void exec_free(struct kube_exec *exec)
{
        if (!exec)
                return;
        free(exec->api_version);
        free(exec->command);
        free_list(exec->args);
        free_list(exec->env);
        free(exec->install_hint);
        free(exec->cluster_config);
        free(exec);
}

void kube_config_bare(const struct kube_config *config, struct kube_config *ret)
{
        *ret = (struct kube_config){
                .source = xstrdup(config->source),
                .context = xstrdup(config->context),
                .server = xstrdup(config->server),
                .ns = xstrdup(config->ns),
                .proxy = xstrdup(config->proxy),
                .tls_server_name = xstrdup(config->tls_server_name),
                .insecure = config->insecure,
                .ca = xstrdup(config->ca),
                .ca_file = xstrdup(config->ca_file),
        };
}

void kube_config_done(struct kube_config *c)
{
        char *plain[] = {c->source, c->context, c->server,    c->ns,       c->tls_server_name, c->ca,
                         c->cert,   c->ca_file, c->cert_file, c->key_file, c->token_file};
        char *secret[] = {c->key, c->token, c->username, c->password, c->proxy};

        for (size_t i = 0; i < ARRAY_LEN(plain); i++)
                free(plain[i]);
        for (size_t i = 0; i < ARRAY_LEN(secret); i++)
                wipe_free(secret[i]);
        exec_free(c->exec);
        *c = (struct kube_config){0};
}
