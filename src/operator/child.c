#include "operator/runtime.h"

/*
 * One object that must exist:
 *
 *   not seen     POST ── created ──────────────────────────────────────────────> next
 *                  └── AlreadyExists ── GET ── not ours: NameConflict ─────────> next
 *                                        ├── ours, out of our watch's sight ──> apply
 *                                        ├── ours, of a kind that is not watched, the plan changed ──> as below
 *                                        └── ours (an answer was lost) ───────> status
 *   seen         as planned, or to be made only once ─────────────────────────> status
 *                somebody changed it ─────────────────────────────────────────> apply
 *                the plan changed ── GET ── (fields to take over) PATCH ──────> apply
 *   apply        PATCH with uid and resourceVersion ──────────────────────────> status
 *   status       none is planned, or it is there ──────────────────────────────> next
 *                otherwise PATCH of /status with uid and resourceVersion ──────> next
 *
 * What was just created gets its status when it is seen. A member of the status that a later plan leaves out stays until
 * something else of it differs: there is no hash of it.
 */

static bool same_name(const struct json *x, const struct json *y)
{
        return str_eq(str_n(x->key, x->key_len), str_n(y->key, y->key_len));
}

/* True when ACTUAL has all that WANTED says. What the server or others added does not count. */
static bool contains(const struct json *actual, const struct json *wanted)
{
        const struct json *x = json_first(actual);

        if (!actual || actual->type != wanted->type)
                return false;
        if (wanted->type == JSON_OBJECT) {
                json_foreach (m, wanted) {
                        if (!x || !same_name(x, m)) /* mostly they come in one order */
                                x = json_get(actual, str_n(m->key, m->key_len));
                        if (!contains(x, m))
                                return false;
                        x = json_next(actual, x);
                }
                return true;
        }
        if (wanted->type == JSON_ARRAY) {
                if (json_len(actual) != json_len(wanted))
                        return false;
                json_foreach (m, wanted) {
                        if (!contains(x, m))
                                return false;
                        x = json_next(actual, x);
                }
                return true;
        }
        return json_equal(actual, wanted);
}

static struct json *member_object(struct arena *a, struct json *o, const char *key)
{
        struct json *m = json_at(o, key);

        return m ? m : json_set(a, o, key, json_object(a));
}

/* What the watches select by, and whose it is unless the plan says that itself. */
static void label(struct task *t, struct json *meta)
{
        struct arena *a = &t->arena;
        struct json *labels = member_object(a, meta, "labels");

        if (!json_at(labels, OPERATOR_LABEL_MANAGED_BY))
                json_set(a, labels, OPERATOR_LABEL_MANAGED_BY, json_string(a, "sonde"));
        json_set(a, labels, OPERATOR_LABEL_CONTROLLER, json_string(a, t->rt->c->name));
}

static bool is_loose(const struct task *t)
{
        return t->target && t->target->kind->loose;
}

/* Whose it is. */
static void own(struct task *t, struct json *meta)
{
        struct arena *a = &t->arena;
        struct json *owners;

        if (is_loose(t)) {
                json_set(a, member_object(a, meta, "labels"), OPERATOR_LABEL_REQUEST,
                         json_string(a, meta_str(t->view.request, "uid")));
                return;
        }
        owners = json_array(a);
        json_append(owners, owner_reference(a, t->rt->c->type, t->view.request));
        json_set(a, meta, "ownerReferences", owners);
}

/*
 * Adds what every child has: type, place, owner, labels, and a hash of the plan itself. A pod template's pods are
 * watched as well: the labels go there, too.
 */
static void dress(struct task *t, struct must_exist *e)
{
        struct arena *a = &t->arena;
        struct json *o = e->json, *meta, *template;

        json_set(a, o, "apiVersion", json_string(a, kube_api_version(e->type, a)));
        json_set(a, o, "kind", json_string(a, e->type->kind));
        meta = member_object(a, o, "metadata");
        json_set(a, meta, "namespace", json_string(a, t->ns));
        own(t, meta);
        label(t, meta);
        template = json_at(json_at(o, "spec"), "template");
        if (template)
                label(t, member_object(a, template, "metadata"));
        json_set(a, member_object(a, meta, "annotations"), OPERATOR_ANNOTATION_PLAN,
                 json_string(a, t->target_hash));
}

static void expect(struct task *t, const char *version)
{
        if (!t->target)
                return;
        expect_version(t->item, t->target, version);
        if (reflector_absent(t->target->reflector)) /* the kind has come meanwhile */
                reflector_hurry(t->target->reflector);
}

/* ---- what is kept: the object, or its status */

static bool is_kept(const struct task *t, const struct json *object)
{
        if (t->of_status)
                return contains(json_at(object, "status"), t->creating->status);
        return contains(object, t->creating->json);
}

/* An object and its status are settled each by itself. */
static const char *settled_name(struct task *t, const struct json *object)
{
        const char *uid = meta_str(object, "uid");

        return uid && t->of_status ? arena_join(&t->arena, uid, "/", "status") : uid;
}

static bool is_settled(struct task *t, const struct json *object)
{
        return settled_known(t->item, settled_name(t, object), meta_str(object, "resourceVersion"),
                             t->target_hash);
}

/* ---- apply */

static bool keep_status(struct task *t, const struct json *found);

static void on_applied(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct json *got;

        t->call = NULL;
        if (err) {
                carry_failed(t, answer, err);
                return;
        }
        got = carry_parse(t, answer);
        expect(t, meta_str(got, "resourceVersion"));
        if (meta_str(got, "uid") && !is_kept(t, got))
                settled_remember(t->item, settled_name(t, got), meta_str(got, "resourceVersion"),
                                 t->target_hash);
        if (t->of_status || !keep_status(t, got))
                carry_next(t);
}

/* With the uid and version of FOUND. */
static const char *object_text(struct task *t, const struct json *found)
{
        struct arena *a = &t->arena;
        struct json *o = t->creating->json, *meta = json_at(o, "metadata");
        const char *text;

        json_set(a, meta, "uid", json_string(a, meta_str(found, "uid")));
        json_set(a, meta, "resourceVersion", json_string(a, meta_str(found, "resourceVersion")));
        text = json_print(a, o);
        json_remove(meta, "uid");
        json_remove(meta, "resourceVersion");
        return text;
}

static const char *status_text(struct task *t, const struct json *found)
{
        struct json *body = carry_body(t, t->creating->type, found);

        json_set(&t->arena, body, "status", json_copy(&t->arena, t->creating->status));
        return json_print(&t->arena, body);
}

/* Only if it is still the object FOUND, at FOUND's version: apply alone would adopt a stranger's. */
static void apply(struct task *t, const struct json *found)
{
        struct kube_request r = {.verb = KUBE_APPLY,
                                 .type = t->creating->type,
                                 .name = t->target_name,
                                 .subresource = t->of_status ? "status" : NULL,
                                 .force = true};
        struct err err = ERR_INIT;

        if (!meta_str(found, "uid") || !meta_str(found, "resourceVersion")) {
                err_set(&err, E_PROTOCOL, "what the server said about %s is no object", t->target_name);
                carry_failed(t, NULL, &err);
                return;
        }
        r.body = str_of(t->of_status ? status_text(t, found) : object_text(t, found));
        carry_send(t, &r, on_applied);
}

/* Last of all that is done about an object that is there. False: nothing, the caller goes on. */
static bool keep_status(struct task *t, const struct json *found)
{
        if (!t->creating->status)
                return false;
        t->of_status = true;
        if (is_kept(t, found))
                return false;
        t->target_hash = carry_hash(t, t->creating->status);
        if (is_settled(t, found))
                return false;
        apply(t, found);
        return true;
}

static void on_taken_over(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;

        t->call = NULL;
        if (err)
                carry_failed(t, answer, err);
        else
                apply(t, carry_parse(t, answer));
}

/* FOUND is whole, with managedFields. */
static void take_over(struct task *t, const struct json *found)
{
        struct kube_request r = {.verb = KUBE_PATCH_JSON, .type = t->creating->type, .name = t->target_name};
        struct json *patch = ownership_patch(&t->arena, found, t->rt->manager);

        if (!patch) {
                apply(t, found);
                return;
        }
        r.body = str_of(json_print(&t->arena, patch));
        carry_send(t, &r, on_taken_over);
}

static void on_looked_at_fields(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct json *found;
        struct err stale = ERR_INIT;

        t->call = NULL;
        if (err) {
                carry_failed(t, answer, err);
                return;
        }
        found = carry_parse(t, answer);
        if (!streq(meta_str(found, "uid"), t->target_uid)) {
                err_set(&stale, E_CONFLICT, "%s was replaced meanwhile", t->target_name);
                carry_failed(t, NULL, &stale);
                return;
        }
        take_over(t, found);
}

static bool has_plan(const struct task *t, const struct json *object)
{
        const struct json *notes = json_at(json_at(object, "metadata"), "annotations");

        return streq(json_str(notes, OPERATOR_ANNOTATION_PLAN), t->target_hash);
}

/* Our own labels and the owner need no look: without them it would not be among the children. */
static bool change(struct task *t, const struct object *seen)
{
        struct kube_request look = {.verb = KUBE_GET, .type = seen->type, .name = seen->name};
        bool same_plan = has_plan(t, seen->json);

        if ((same_plan && is_kept(t, seen->json)) || is_settled(t, seen->json))
                return false;
        t->target_uid = seen->uid;
        dress(t, t->creating);
        if (same_plan)
                apply(t, seen->json);
        else
                carry_send(t, &look, on_looked_at_fields);
        return true;
}

/* ---- create */

static void name_conflict(struct task *t)
{
        stall(t, "NameConflict",
              arena_printf(&t->arena,
                           "%s %s exists and does not belong to this request; rename one of the two",
                           t->creating->type->kind, t->target_name));
        carry_next(t);
}

/* By its controlling owner's uid; what is loose, by its label. */
static bool is_ours(const struct task *t, const struct json *found)
{
        const struct json *labels = json_at(json_at(found, "metadata"), "labels");
        const char *owner = is_loose(t) ? json_str(labels, OPERATOR_LABEL_REQUEST)
                                        : meta_controller_uid(found);

        return owner && streq(owner, meta_str(t->view.request, "uid"));
}

static bool in_sight(const struct task *t, const struct json *found)
{
        const char *label = json_str(json_at(json_at(found, "metadata"), "labels"),
                                     OPERATOR_LABEL_CONTROLLER);

        return !t->target || streq(label, t->rt->c->name);
}

/* What is watched is compared when it is seen; the rest only here. */
static bool as_planned(struct task *t, const struct json *found)
{
        if (t->target || t->creating->how == EXIST_ONCE)
                return true;
        return (has_plan(t, found) && is_kept(t, found)) || is_settled(t, found);
}

static void on_looked_at_existing(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct json *found;

        t->call = NULL;
        if (err) {
                carry_failed(t, answer, err);
                return;
        }
        found = carry_parse(t, answer);
        if (!is_ours(t, found)) {
                name_conflict(t);
        } else if (!in_sight(t, found)) {
                apply(t, found);
        } else if (!as_planned(t, found)) {
                take_over(t, found);
        } else {
                expect(t, meta_str(found, "resourceVersion"));
                if (!keep_status(t, found))
                        carry_next(t);
        }
}

static void on_created(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct task *t = arg;
        struct kube_request look = {.verb = KUBE_GET, .type = t->creating->type, .name = t->target_name};

        t->call = NULL;
        if (err && err->code == E_EXISTS) {
                carry_send(t, &look, on_looked_at_existing);
                return;
        }
        if (err) {
                carry_failed(t, answer, err);
                return;
        }
        expect(t, carry_version(t, answer));
        carry_next(t);
}

bool child_ensure(struct task *t, struct must_exist *e)
{
        const char *name = meta_str(e->json, "name");
        const struct object *seen = view_child(&t->view, e->type, name);
        struct kube_request r = {.verb = KUBE_CREATE, .type = e->type, .metadata_only = true};

        if (seen && e->how == EXIST_ONCE && !e->status)
                return false;
        t->target = runtime_source(t->rt, e->type);
        t->target_name = name;
        t->creating = e;
        t->of_status = false;
        t->target_hash = carry_hash(t, e->json);
        if (seen)
                return (e->how != EXIST_ONCE && change(t, seen)) || keep_status(t, seen->json);
        dress(t, e);
        r.body = str_of(json_print(&t->arena, e->json));
        carry_send(t, &r, on_created);
        return true;
}
