/*
 * Discovery: which groups, versions and resources are served, as Kubernetes 1.20 tells it.
 */
#include "local/openapi.h"

/* Built-in groups in the order in which the API server lists them; those of custom resources follow by name. */
static const char *const GROUPS[] = {
        "events.k8s.io",        "authorization.k8s.io", "batch", "rbac.authorization.k8s.io",
        "apiextensions.k8s.io", "coordination.k8s.io",
};

/* ---- versions: v2 before v1, v1 before v1beta2 before v1beta1 before v1alpha1, all else after them by name */

struct rank {
        bool is_kube;
        int stage; /* 2: stable, 1: beta, 0: alpha */
        uint64_t major, minor;
};

static bool take_number(struct str *s, uint64_t *ret)
{
        size_t n = 0;

        while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
                n++;
        if (n == 0 || s->p[0] == '0' || !str_to_u64(str_n(s->p, n), ret))
                return false;
        s->p += n;
        s->n -= n;
        return true;
}

static struct rank rank_of(const char *version)
{
        struct str s = str_n(version + 1, version[0] ? strlen(version) - 1 : 0);
        struct rank r = {.stage = 2};

        if (version[0] != 'v' || !take_number(&s, &r.major))
                return r;
        if (s.n == 0) {
                r.is_kube = true;
                return r;
        }
        r.stage = str_has_prefix(s, STR("beta")) ? 1 : 0;
        if (!r.stage && !str_has_prefix(s, STR("alpha")))
                return r;
        s = str_n(s.p + (r.stage ? 4 : 5), s.n - (r.stage ? 4 : 5));
        r.is_kube = take_number(&s, &r.minor) && s.n == 0;
        return r;
}

/* Below 0: X is to be preferred. */
static int version_cmp(const char *x, const char *y)
{
        struct rank a = rank_of(x), b = rank_of(y);

        if (a.is_kube != b.is_kube)
                return a.is_kube ? -1 : 1;
        if (!a.is_kube)
                return strcmp(x, y);
        if (a.stage != b.stage)
                return b.stage - a.stage;
        if (a.major != b.major)
                return a.major > b.major ? -1 : 1;
        return a.minor == b.minor ? 0 : a.minor > b.minor ? -1 : 1;
}

static int by_version(const void *x, const void *y)
{
        return version_cmp(*(const char *const *)x, *(const char *const *)y);
}

static bool contains(const char *const *list, size_t n, const char *text)
{
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], text))
                        return true;
        return false;
}

/* The versions of a group, the preferred one first. */
static size_t versions_of(const struct served *s, const char *group, struct arena *a, const char ***ret)
{
        const char **list = arena_new_array(a, const char *, s->n);
        size_t n = 0;

        for (size_t i = 0; i < s->n; i++) {
                const struct kube_type *t = &s->types[i]->kube;

                if (streq(t->group, group) && !contains(list, n, t->version))
                        list[n++] = t->version;
        }
        if (n)
                qsort(list, n, sizeof(*list), by_version);
        *ret = list;
        return n;
}

/* ---- groups */

struct json *discovery_api(const struct served *s, struct arena *a)
{
        return json_build(a,
                          "{'kind': 'APIVersions', 'versions': ['v1'], 'serverAddressByClientCIDRs':"
                          " [{'clientCIDR': '0.0.0.0/0', 'serverAddress': %s}]}",
                          s->address);
}

static struct json *group_version(const char *group, const char *version, struct arena *a)
{
        return json_build(a, "{'groupVersion': '%s/%s', 'version': %s}", group, version, version);
}

/* NULL: nothing of GROUP is served. */
static struct json *group_entry(const struct served *s, const char *group, struct arena *a)
{
        struct json *versions = json_array(a);
        const char **list;
        size_t n = versions_of(s, group, a, &list);

        if (n == 0)
                return NULL;
        for (size_t i = 0; i < n; i++)
                json_append(versions, group_version(group, list[i], a));
        return json_build(a, "{'name': %s, 'versions': %p, 'preferredVersion': %p}", group, (void *)versions,
                          (void *)group_version(group, list[0], a));
}

static int by_text(const void *x, const void *y)
{
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

struct json *discovery_groups(const struct served *s, struct arena *a)
{
        const char **custom = arena_new_array(a, const char *, s->n);
        struct json *groups = json_array(a);
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++)
                json_append(groups, group_entry(s, GROUPS[i], a));
        for (size_t i = 0; i < s->n; i++) {
                const char *group = s->types[i]->kube.group;

                if (group[0] && !contains(GROUPS, ARRAY_LEN(GROUPS), group) && !contains(custom, n, group))
                        custom[n++] = group;
        }
        if (n)
                qsort(custom, n, sizeof(*custom), by_text);
        for (size_t i = 0; i < n; i++)
                json_append(groups, group_entry(s, custom[i], a));
        return json_build(a, "{'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': %p}", (void *)groups);
}

struct json *discovery_group(const struct served *s, const char *group, struct arena *a)
{
        struct json *entry = group[0] ? group_entry(s, group, a) : NULL, *out;

        if (!entry)
                return NULL;
        out = json_build(a, "{'kind': 'APIGroup', 'apiVersion': 'v1'}");
        for (struct json *member; (member = json_first(entry));) {
                const char *key = member->key;

                json_set(a, out, key, json_take(entry, member));
        }
        return out;
}

/* ---- resources */

struct verb_name {
        unsigned verb;
        const char *name;
};

/* The API server lists the verbs of built-in resources by name, and those of custom ones like this. */
static const struct verb_name BUILTIN_VERBS[] = {
        {VERB_CREATE, "create"}, {VERB_DELETE, "delete"}, {VERB_DELETECOLLECTION, "deletecollection"},
        {VERB_GET, "get"},       {VERB_LIST, "list"},     {VERB_PATCH, "patch"},
        {VERB_UPDATE, "update"}, {VERB_WATCH, "watch"},
};
static const struct verb_name CUSTOM_VERBS[] = {
        {VERB_DELETE, "delete"}, {VERB_DELETECOLLECTION, "deletecollection"},
        {VERB_GET, "get"},       {VERB_LIST, "list"},
        {VERB_PATCH, "patch"},   {VERB_CREATE, "create"},
        {VERB_UPDATE, "update"}, {VERB_WATCH, "watch"},
};

static struct json *verbs_json(unsigned verbs, const struct verb_name *names, struct arena *a)
{
        struct json *list = json_array(a);

        for (size_t i = 0; i < ARRAY_LEN(BUILTIN_VERBS); i++)
                if (verbs & names[i].verb)
                        json_append(list, json_string(a, names[i].name));
        return list;
}

static const struct {
        const char *name;
        unsigned verbs;
        const char *group, *version, *kind; /* of what is sent and received; NULL: the resource's own */
} SUBRESOURCES[] = {
        {"binding", VERB_CREATE, NULL, NULL, "Binding"},
        {"finalize", VERB_UPDATE, NULL, NULL, NULL},
        {"log", VERB_GET, NULL, NULL, NULL},
        {"scale", VERB_GET | VERB_PATCH | VERB_UPDATE, "autoscaling", "v1", "Scale"},
        {"status", VERB_GET | VERB_PATCH | VERB_UPDATE, NULL, NULL, NULL},
        {"token", VERB_CREATE, "authentication.k8s.io", "v1", "TokenRequest"},
};

static struct json *subresource_entry(const struct api_type *t, const char *name, struct arena *a)
{
        for (size_t i = 0; i < ARRAY_LEN(SUBRESOURCES); i++)
                if (streq(SUBRESOURCES[i].name, name))
                        return json_build(a,
                                          "{'name': '%s/%s', 'singularName': '', 'namespaced': %p,"
                                          " 'group': %p, 'version': %p, 'kind': %s, 'verbs': %p}",
                                          t->kube.plural, name, (void *)json_truth(a, t->kube.namespaced),
                                          (void *)json_string(a, SUBRESOURCES[i].group),
                                          (void *)json_string(a, SUBRESOURCES[i].version),
                                          SUBRESOURCES[i].kind ? SUBRESOURCES[i].kind : t->kube.kind,
                                          (void *)verbs_json(SUBRESOURCES[i].verbs, BUILTIN_VERBS, a));
        return NULL;
}

/* NULL: none, which leaves the member out. */
static struct json *words(const char *const *list, struct arena *a)
{
        struct json *out;

        if (!list || !*list)
                return NULL;
        out = json_array(a);
        for (; *list; list++)
                json_append(out, json_string(a, *list));
        return out;
}

static struct json *resource_entry(const struct api_type *t, struct arena *a)
{
        const char *hash = t->storage_hash && t->storage_hash[0] ? t->storage_hash : NULL;

        return json_build(a,
                          "{'name': %s, 'singularName': %s, 'namespaced': %p, 'kind': %s, 'verbs': %p,"
                          " 'shortNames': %p, 'categories': %p, 'storageVersionHash': %p}",
                          t->kube.plural, t->singular, (void *)json_truth(a, t->kube.namespaced),
                          t->kube.kind,
                          (void *)verbs_json(t->verbs, t->crd ? CUSTOM_VERBS : BUILTIN_VERBS, a),
                          (void *)words(t->short_names, a), (void *)words(t->categories, a),
                          (void *)json_string(a, hash));
}

struct json *discovery_resources(const struct served *s, const char *group, const char *version,
                                 struct arena *a)
{
        struct json *list = json_array(a);

        for (size_t i = 0; i < s->n; i++) {
                const struct api_type *t = s->types[i];

                if (!streq(t->kube.group, group) || !streq(t->kube.version, version))
                        continue;
                json_append(list, resource_entry(t, a));
                for (const char *const *sub = t->subresources; sub && *sub; sub++)
                        json_append(list, subresource_entry(t, *sub, a));
        }
        if (!json_len(list))
                return NULL;
        /* The core group's list has no apiVersion. */
        return group[0]
                       ? json_build(a,
                                    "{'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': '%s/%s',"
                                    " 'resources': %p}",
                                    group, version, (void *)list)
                       : json_build(a, "{'kind': 'APIResourceList', 'groupVersion': %s, 'resources': %p}",
                                    version, (void *)list);
}
