#include "operator/runtime.h"

/*
 * One object that must exist:
 *
 *   not seen     POST ── created ──────────────────────────────────────────────> next
 *                  └── AlreadyExists ── GET ── not ours: NameConflict ─────────> next
 *                                        ├── ours, out of our watch's sight ──> apply
 *                                        ├── ours, of a kind that is not watched, the plan changed ──> as below
 *                                        └── ours (an answer was lost) ───────> next
 *   seen         as planned ───────────────────────────────────────────────────> next
 *                somebody changed it ─────────────────────────────────────────> apply
 *                the plan changed ── GET ── (fields to take over) PATCH ──────> apply
 *   apply        PATCH with uid and resourceVersion ───────────────────────────> next
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

/* What the watches select by. */
static void label(struct task *t, struct json *meta)
{
        struct arena *a = &t->arena;
        struct json *labels = member_object(a, meta, "labels");

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

/* ---- apply */

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
        if (meta_str(got, "uid") && !contains(got, t->creating->json))
                settled_remember(t->item, meta_str(got, "uid"), meta_str(got, "resourceVersion"),
                                 t->target_hash);
        carry_next(t);
}

/* Only if it is still the object FOUND, at FOUND's version: apply alone would adopt a stranger's. */
static void apply(struct task *t, const struct json *found)
{
        struct arena *a = &t->arena;
        struct json *o = t->creating->json, *meta = json_at(o, "metadata");
        const char *uid = meta_str(found, "uid"), *version = meta_str(found, "resourceVersion");
        struct kube_request r = {
                .verb = KUBE_APPLY, .type = t->creating->type, .name = t->target_name, .force = true};
        struct err err = ERR_INIT;

        if (!uid || !version) {
                err_set(&err, E_PROTOCOL, "what the server said about %s is no object", t->target_name);
                carry_failed(t, NULL, &err);
                return;
        }
        json_set(a, meta, "uid", json_string(a, uid));
        json_set(a, meta, "resourceVersion", json_string(a, version));
        r.body = str_of(json_print(a, o));
        json_remove(meta, "uid");
        json_remove(meta, "resourceVersion");
        carry_send(t, &r, on_applied);
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

static bool is_settled(const struct task *t, const struct json *object)
{
        return settled_known(t->item, meta_str(object, "uid"), meta_str(object, "resourceVersion"),
                             t->target_hash);
}

/* Our own labels and the owner need no look: without them it would not be among the children. */
static bool change(struct task *t, const struct object *seen)
{
        struct kube_request look = {.verb = KUBE_GET, .type = seen->type, .name = seen->name};
        bool same_plan = has_plan(t, seen->json);

        if ((same_plan && contains(seen->json, t->creating->json)) || is_settled(t, seen->json))
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
static bool as_planned(const struct task *t, const struct json *found)
{
        if (t->target || t->creating->how == EXIST_ONCE)
                return true;
        return (has_plan(t, found) && contains(found, t->creating->json)) || is_settled(t, found);
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

        if (seen && e->how == EXIST_ONCE)
                return false;
        t->target = runtime_source(t->rt, e->type);
        t->target_name = name;
        t->creating = e;
        t->target_hash = carry_hash(t, e->json);
        if (seen)
                return change(t, seen);
        dress(t, e);
        r.body = str_of(json_print(&t->arena, e->json));
        carry_send(t, &r, on_created);
        return true;
}
