/*
 * The rules of managedFields: what an ordinary write takes from others, what an applied configuration owns, conflicts.
 *
 * The steps and their order are those of Kubernetes 1.20 (its field managers are wrapped in one another); the comments
 * say which result depends on them.
 */
#include "local/field_managers.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

enum { MESSAGE_MAX = 1 << 20 };

/* What a new object has in Go before anything is set. Fields that are there already are not taken into possession by
 * whoever creates the object; their content is. Custom resources have nothing. */
static const struct {
        const char *gvk, *json;
} EMPTY[] = {
        {"/v1/Pod", "{'spec':{'containers':null},'status':{}}"},
        {"/v1/Service", "{'spec':{},'status':{'loadBalancer':{}}}"},
        {"/v1/Namespace", "{'spec':{},'status':{}}"},
        {"/v1/ResourceQuota", "{'spec':{},'status':{}}"},
        {"/v1/PodTemplate",
         "{'template':{'metadata':{'creationTimestamp':null},'spec':{'containers':null}}}"},
        {"/v1/Node", "{'spec':{},'status':{'daemonEndpoints':{'kubeletEndpoint':{'Port':0}},'nodeInfo':{"
                     "'machineID':'','systemUUID':'','bootID':'','kernelVersion':'','osImage':'',"
                     "'containerRuntimeVersion':'','kubeletVersion':'','kubeProxyVersion':'',"
                     "'operatingSystem':'','architecture':''}}}"},
        {"/v1/Event",
         "{'involvedObject':{},'source':{},'firstTimestamp':null,'lastTimestamp':null,'eventTime':null,"
         "'reportingComponent':'','reportingInstance':''}"},
        {"events.k8s.io/v1/Event", "{'eventTime':null,'regarding':{},'deprecatedSource':{},"
                                   "'deprecatedFirstTimestamp':null,'deprecatedLastTimestamp':null}"},
        {"/v1/PersistentVolumeClaim", "{'spec':{'resources':{}},'status':{}}"},
        {"batch/v1/Job",
         "{'spec':{'template':{'metadata':{'creationTimestamp':null},'spec':{'containers':null}}},"
         "'status':{}}"},
        {"coordination.k8s.io/v1/Lease", "{'spec':{}}"},
        {"authorization.k8s.io/v1/SelfSubjectAccessReview", "{'spec':{},'status':{'allowed':false}}"},
        {"authorization.k8s.io/v1/SelfSubjectRulesReview", "{'spec':{}}"},
        {"authorization.k8s.io/v1/SubjectAccessReview", "{'spec':{},'status':{'allowed':false}}"},
        {"rbac.authorization.k8s.io/v1/Role", "{'rules':null}"},
        {"rbac.authorization.k8s.io/v1/ClusterRole", "{'rules':null}"},
        {"rbac.authorization.k8s.io/v1/RoleBinding", "{'roleRef':{'apiGroup':'','kind':'','name':''}}"},
        {"rbac.authorization.k8s.io/v1/ClusterRoleBinding",
         "{'roleRef':{'apiGroup':'','kind':'','name':''}}"},
        {"apiextensions.k8s.io/v1/CustomResourceDefinition",
         "{'spec':{'group':'','names':{'plural':'','kind':''},'scope':'','versions':null},"
         "'status':{'conditions':null,'acceptedNames':{'plural':'','kind':''},'storedVersions':null}}"},
};

static bool is_custom(const struct managed *m)
{
        return !m->shape->name;
}

/* TEXT is JSON in which ' stands for ". */
static struct json *parse_ours(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);

        for (char *c = copy; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        return json_parse(a, str_of(copy), NULL, NULL);
}

/* OBJECT's version and kind, because a new object has them too. */
static struct json *empty_object(const struct managed *m, const struct json *object, struct arena *a)
{
        const char *text = "{}";
        struct json *empty;

        for (size_t i = 0; i < ARRAY_LEN(EMPTY); i++)
                if (streq(m->shape->gvk, EMPTY[i].gvk))
                        text = EMPTY[i].json;
        empty = parse_ours(a, text);
        json_set(a, empty, "apiVersion", json_string(a, m->api_version));
        if (json_at(object, "kind"))
                json_set(a, empty, "kind", json_copy(a, json_at(object, "kind")));
        if (!is_custom(m))
                json_set(a, empty, "metadata", json_build(a, "{'creationTimestamp':null}"));
        return empty;
}

/* A view of the members of OBJECT but one: their nodes are new, what is below them is borrowed. */
static struct json *view_without(const struct json *object, const char *but, struct arena *a)
{
        struct json *view = json_object(a), *node;

        view->key = object->key;
        view->key_len = object->key_len;
        json_foreach (member, object) {
                if (str_eq(str_n(member->key, member->key_len), str_of(but)))
                        continue;
                node = arena_memdup(a, member, sizeof(*member));
                json_ring_add(view, node);
        }
        return view;
}

static struct json *without_managed(const struct json *object, struct arena *a)
{
        const struct json *meta = json_at(object, "metadata");
        struct json *view;

        if (!json_is(meta, JSON_OBJECT))
                return view_without(object, "", a);
        view = view_without(object, "metadata", a);
        json_ring_add(view, view_without(meta, "managedFields", a));
        return view;
}

static void set_managed(const struct managed *m, struct json *object, const struct field_managers *managers,
                        struct arena *a)
{
        struct json *meta = json_at(object, "metadata");

        json_remove(meta, "managedFields");
        json_set(a, meta, "managedFields", managers_write(a, managers, is_custom(m)));
}

/* What nobody owns because the server decides it. */
static fields_set system_fields(struct arena *a)
{
        static const char *const META[] = {
                "clusterName",     "creationTimestamp", "generation", "managedFields", "name", "namespace",
                "resourceVersion", "selfLink",          "uid"};
        static const char *const TOP[] = {"apiVersion", "kind", "metadata"};
        struct fields *meta = NULL, *top = NULL, **tail = &meta;

        for (size_t i = 0; i < ARRAY_LEN(META); i++)
                fields_append(a, &tail, &(struct element){ELEMENT_FIELD, str_of(META[i]), NULL}, true, NULL);
        tail = &top;
        for (size_t i = 0; i < ARRAY_LEN(TOP); i++)
                fields_append(a, &tail, &(struct element){ELEMENT_FIELD, str_of(TOP[i]), NULL}, true,
                              streq(TOP[i], "metadata") ? meta : NULL);
        return top;
}

static fields_set stripped(struct arena *a, fields_set set)
{
        return fields_difference(a, set, system_fields(a), false);
}

static bool is_served(const struct managed *m, const char *version)
{
        if (streq(version, m->api_version))
                return true;
        for (const char *const *v = m->versions; v && *v; v++)
                if (streq(*v, version))
                        return true;
        return false;
}

/* Drops who wrote a version that is no more, and brings the sets of the others to what the type is today. */
static void reconcile(const struct managed *m, struct type t, const struct json *live,
                      struct field_managers *managers, struct arena *a)
{
        for (size_t i = managers->n; i-- > 0;) {
                struct field_manager *one = &managers->v[i];

                if (!is_served(m, one->api_version))
                        managers_remove(managers, one);
                else
                        one->set = typed_reconcile(a, t, live, one->set);
        }
}

/* ---- ordinary writes */

static void take_from_others(struct field_managers *managers, const char *but, const struct typed_diff *diff,
                             struct arena *a)
{
        fields_set changed = fields_union(a, diff->modified, diff->added);

        for (size_t i = managers->n; i-- > 0;) {
                struct field_manager *one = &managers->v[i];

                if (!but || !streq(one->id, but)) {
                        /* Not one difference of the union: what changed is taken leaf by leaf. */
                        fields_set lost = fields_intersection(a, one->set, changed);

                        one->set = fields_difference(a, one->set, lost, false);
                        one->set = fields_difference(a, one->set, diff->removed, false);
                }
                if (!one->set)
                        managers_remove(managers, one);
        }
}

static void update(const struct managed *m, const struct json *live, const struct json *object,
                   const char *name, struct field_managers *managers, struct arena *a)
{
        struct type t = type_of_root(m->shape);
        struct typed_diff diff;
        struct field_manager *mine, before;
        fields_set set;

        mine = managers_add(a, managers, name, false, m->api_version);
        before = *mine;
        if (!before.set)
                managers_remove(managers, mine);

        reconcile(m, t, live, managers, a);
        typed_compare(a, t, live, object, &diff);
        take_from_others(managers, NULL, &diff, a);
        set = fields_difference(a, fields_union(a, diff.modified, diff.added), diff.removed, false);
        set = stripped(a, set);
        if (set) {
                mine = managers_add(a, managers, name, false, m->api_version);
                mine->set = fields_union(a, set, mine->set);
                /* The time is that of the last change of what is owned, not of the last write. */
                mine->has_time = before.has_time;
                mine->time = before.time;
                if (!before.set || !fields_equal(mine->set, before.set)) {
                        mine->has_time = true;
                        mine->time = m->now;
                }
        }
        managers_cap(a, managers);
}

static bool is_reset(const struct json *list)
{
        const struct json *only = json_first(list);

        return json_is(list, JSON_ARRAY) &&
               (list->len == 0 || (list->len == 1 && json_is(only, JSON_OBJECT) && only->len == 0));
}

/* Who owned what before this write. */
static void read_former(const struct managed *m, const struct json *live, const struct json *object,
                        struct field_managers *ret, struct arena *a)
{
        const struct json *sent = m->sub ? NULL : json_at(json_at(object, "metadata"), "managedFields");
        struct err err = ERR_INIT;

        *ret = (struct field_managers){0};
        if (is_reset(sent))
                return;
        if (managers_read(a, json_is(sent, JSON_ARRAY) ? sent : NULL, ret, &err) == 0 && ret->n)
                return;
        if (managers_read(a, json_at(json_at(live, "metadata"), "managedFields"), ret, &err) < 0)
                ret->n = 0;
}

void managed_update(const struct managed *m, const struct json *live, struct json *object, struct arena *a)
{
        struct type t = type_of_root(m->shape);
        struct field_managers managers;
        struct json *before;

        read_former(m, live, object, &managers, a);
        json_remove(json_at(object, "metadata"), "managedFields");
        if (!managers.n && live)
                return; /* not tracked: only an apply starts it again */
        before = live ? without_managed(live, a) : empty_object(m, object, a);
        if (typed_check(a, t, object) || typed_check(a, t, before))
                return;
        update(m, before, object, m->manager && m->manager[0] ? m->manager : "unknown", &managers, a);
        set_managed(m, object, &managers, a);
}

/* ---- conflicts */

struct conflicting {
        struct field_manager by;
        fields_set fields;
};

static int by_id(const void *x, const void *y)
{
        return strcmp(((const struct conflicting *)x)->by.id, ((const struct conflicting *)y)->by.id);
}

static size_t count_fields(fields_set set)
{
        size_t n = 0;

        for (; set; set = set->next)
                n += set->member + count_fields(set->children);
        return n;
}

/* Members of one level come before what is below any of them. */
static void add_conflicts(struct managed_conflicts *c, const char *manager, fields_set set, struct buf *path,
                          struct arena *a)
{
        size_t before = path->n;

        for (fields_set f = set; f; f = f->next) {
                if (!f->member)
                        continue;
                element_print(path, &f->at);
                c->list[c->n++] = (struct managed_conflict){arena_strndup(a, path->p, path->n), manager};
                path->n = before;
        }
        for (fields_set f = set; f; f = f->next) {
                element_print(path, &f->at);
                add_conflicts(c, manager, f->children, path, a);
                path->n = before;
        }
}

static void list_conflicts(struct conflicting *list, size_t n, struct managed_conflicts *ret, struct arena *a)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(MESSAGE_MAX);
        size_t total = 0;

        for (size_t i = 0; i < n; i++)
                total += count_fields(list[i].fields);
        *ret = (struct managed_conflicts){.list = arena_new_array(a, struct managed_conflict, total + 1)};
        qsort(list, n, sizeof(*list), by_id);
        for (size_t i = 0; i < n; i++)
                add_conflicts(ret, manager_print(a, &list[i].by), list[i].fields, &path, a);
}

const char *managed_message(const struct managed_conflicts *c, struct arena *a)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX);

        if (c->n == 1)
                return arena_printf(a, "Apply failed with 1 conflict: conflict with %s: %s",
                                    c->list[0].manager, c->list[0].field);
        buf_printf(&text, "Apply failed with %zu conflicts: ", c->n);
        for (size_t i = 0; i < c->n; i++) {
                if (i == 0 || !streq(c->list[i].manager, c->list[i - 1].manager))
                        buf_printf(&text, "%sconflicts with %s:", i ? "\n" : "", c->list[i].manager);
                buf_printf(&text, "\n- %s", c->list[i].field);
        }
        return arena_strndup(a, text.p, text.n);
}

/* ---- server-side apply */

struct apply {
        const struct managed *m;
        struct type t;
        const struct json *live; /* without managedFields */
        const struct json *config;
        struct arena *a;
        const char *id;                 /* of the one who applies */
        struct field_managers managers; /* in and out */
};

/* What the applier owned and no longer names goes, unless somebody else owns it. */
static struct json *pruned(struct apply *p, struct json *merged, fields_set last)
{
        fields_set owned = NULL, all, left;
        struct json *result;

        if (!last)
                return merged;
        result = typed_remove(p->a, p->t, merged, last);
        for (size_t i = 0; i < p->managers.n; i++)
                owned = fields_union(p->a, owned, p->managers.v[i].set);
        all = typed_fields(p->a, p->t, merged);
        left = typed_fields(p->a, p->t, result);
        result = typed_remove(p->a, p->t, merged,
                              fields_difference(p->a, all, fields_union(p->a, left, owned), false));
        /* What was below a removed item, and not the applier's, comes back. */
        left = typed_fields(p->a, p->t, result);
        return typed_remove(p->a, p->t, merged,
                            fields_intersection(p->a, fields_difference(p->a, all, left, false), last));
}

static size_t find_conflicts(struct apply *p, const struct typed_diff *diff, struct conflicting *list)
{
        fields_set changed = fields_union(p->a, diff->modified, diff->added);
        size_t n = 0;

        for (size_t i = 0; i < p->managers.n; i++) {
                const struct field_manager *one = &p->managers.v[i];
                fields_set both = streq(one->id, p->id) ? NULL : fields_intersection(p->a, one->set, changed);

                if (both)
                        list[n++] = (struct conflicting){*one, both};
        }
        return n;
}

/* The object that results; NULL with *RET_N conflicts in RET_LIST. SAME: nothing changes. */
static struct json *merge_and_own(struct apply *p, bool force, struct conflicting **ret_list, size_t *ret_n,
                                  bool *ret_same)
{
        struct field_manager *mine;
        struct typed_diff diff;
        struct json *object;
        fields_set last;

        *ret_n = 0;
        reconcile(p->m, p->t, p->live, &p->managers, p->a);
        object = typed_merge(p->a, p->t, p->live, p->config);
        mine = managers_add(p->a, &p->managers, p->m->manager, true, p->m->api_version);
        p->id = mine->id;
        last = mine->set;
        mine->set = typed_fields(p->a, p->t, p->config);
        mine->api_version = p->m->api_version;
        object = pruned(p, object, last);
        typed_compare(p->a, p->t, p->live, object, &diff);
        *ret_list = arena_new_array(p->a, struct conflicting, p->managers.n + 1);
        *ret_n = find_conflicts(p, &diff, *ret_list);
        if (*ret_n && !force)
                return NULL;
        take_from_others(&p->managers, p->id, &diff, p->a);
        *ret_same = !diff.added && !diff.modified && !diff.removed;
        return object;
}

/* What kubectl applied before on the client's side is its own: a conflict there is none. */
static fields_set client_side_fields(const struct apply *p)
{
        const char *text = json_str(json_at(json_at(p->live, "metadata"), "annotations"), LAST_APPLIED);
        const struct json *last = text && text[0] ? json_parse(p->a, str_of(text), NULL, NULL) : NULL;
        struct typed_diff diff;
        fields_set set;

        if (!json_is(last, JSON_OBJECT) || !streq(json_str(last, "apiVersion"), p->m->api_version) ||
            typed_check(p->a, p->t, last))
                return NULL;
        typed_compare(p->a, p->t, last, p->live, &diff);
        set = fields_difference(p->a, typed_fields(p->a, p->t, last), diff.modified, false);
        set = fields_difference(p->a, set, diff.added, false);
        return fields_difference(p->a, set, diff.removed, false);
}

/* The conflicts that remain. */
static size_t allow_client_side(const struct apply *p, struct conflicting *list, size_t n)
{
        fields_set allowed = client_side_fields(p);
        size_t kept = 0;

        for (size_t i = 0; i < n; i++) {
                list[i].fields = fields_difference(p->a, list[i].fields, allowed, false);
                if (list[i].fields)
                        list[kept++] = list[i];
        }
        return kept;
}

static struct json *apply_or_conflict(struct apply *p, struct managed_conflicts *conflicts, bool *ret_same,
                                      struct err *err)
{
        struct field_managers before = managers_copy(p->a, &p->managers);
        struct conflicting *list;
        size_t n;
        struct json *object = merge_and_own(p, p->m->force, &list, &n, ret_same);

        if (object)
                return object;
        if (streq(p->m->manager, "kubectl")) {
                n = allow_client_side(p, list, n);
                if (!n) {
                        p->managers = before;
                        return merge_and_own(p, true, &list, &n, ret_same);
                }
        }
        list_conflicts(list, n, conflicts, p->a);
        err_set(err, E_OWNED, "%s", managed_message(conflicts, p->a));
        return NULL;
}

static int check_config(const struct managed *m, const struct json *config, struct arena *a, struct err *err)
{
        const char *version = json_str_or(config, "apiVersion", ""), *kind = json_str_or(config, "kind", "");
        const char *gvk = m->shape->gvk, *slash = gvk ? strrchr(gvk, '/') : NULL, *wrong;

        if (!streq(version, m->api_version))
                return err_set(err, E_INVALID,
                               "Incorrect version specified in apply patch. Specified patch version: %s, "
                               "expected: %s",
                               version, m->api_version);
        if (json_is(json_at(json_at(config, "metadata"), "managedFields"), JSON_ARRAY))
                return err_set(err, E_INVALID, "metadata.managedFields must be nil");
        if (!m->shape->deduced && (m->kind ? !streq(kind, m->kind) : slash && !streq(kind, slash + 1)))
                return err_set(err, E_INTERNAL,
                               "failed to create typed patch object: no corresponding type for %s%s, Kind=%s",
                               strchr(version, '/') ? "" : "/", version, kind);
        wrong = typed_check(a, type_of_root(m->shape), config);
        if (wrong)
                return err_set(err, E_INTERNAL, "failed to create typed patch object: %s", wrong);
        return 0;
}

/* kubectl's annotation follows what kubectl applies on the server's side. */
static void update_last_applied(const struct managed *m, const struct json *config, struct json *object,
                                struct arena *a)
{
        struct json *notes = json_at(json_at(object, "metadata"), "annotations"), *copy;

        if (!streq(m->manager, "kubectl") || !json_at(notes, LAST_APPLIED))
                return;
        copy = json_copy(a, config);
        json_remove(json_at(json_at(copy, "metadata"), "annotations"), LAST_APPLIED);
        json_set(a, notes, LAST_APPLIED, json_string(a, go_marshal(a, copy)));
}

/* The fields of an object that was never tracked belong to nobody in particular. */
static void own_before_first_apply(struct apply *p)
{
        if (!p->managers.n)
                update(p->m, empty_object(p->m, p->live, p->a), p->live, "before-first-apply", &p->managers,
                       p->a);
}

static struct json *finish_apply(struct apply *p, const struct field_managers *former, struct json *object,
                                 bool same)
{
        struct field_manager *mine = managers_find(&p->managers, p->id);

        if (mine) {
                mine->set = stripped(p->a, mine->set);
                if (!mine->set) {
                        managers_remove(&p->managers, mine);
                        mine = NULL;
                }
        }
        if (mine && (!same || !managers_equal(&p->managers, former))) {
                mine->has_time = true;
                mine->time = p->m->now;
        }
        object = same ? json_copy(p->a, p->live) : object;
        set_managed(p->m, object, &p->managers, p->a);
        update_last_applied(p->m, p->config, object, p->a);
        return object;
}

struct json *managed_apply(const struct managed *m, const struct json *live, const struct json *config,
                           struct arena *a, struct managed_conflicts *conflicts, struct err *err)
{
        struct apply p = {.m = m, .t = type_of_root(m->shape), .config = config, .a = a};
        struct field_managers former;
        const char *wrong;
        struct json *object;
        bool same = false;

        *conflicts = (struct managed_conflicts){0};
        if (managers_read(a, json_at(json_at(live, "metadata"), "managedFields"), &p.managers, err) < 0) {
                if (err)
                        err->code = E_INTERNAL;
                err_wrap(err, "failed to decode managed fields: failed to convert managed fields from API");
                return NULL;
        }
        p.live = live ? without_managed(live, a) : empty_object(m, config, a);
        if (check_config(m, config, a, err) < 0)
                return NULL;
        wrong = typed_check(a, p.t, p.live);
        if (wrong) {
                err_set(err, E_INTERNAL, "failed to create typed live object: %s", wrong);
                return NULL;
        }
        own_before_first_apply(&p);
        former = managers_copy(a, &p.managers);
        object = apply_or_conflict(&p, conflicts, &same, err);
        return object ? finish_apply(&p, &former, object, same) : NULL;
}
