#include "local/manage_internal.h"

#define ORPHAN     "orphan"
#define FOREGROUND "foregroundDeletion"

static void patch(const struct item *it, struct json *body, struct arena *a)
{
        struct call c = item_call(it, "kube-controller-manager", a);

        if (!c.type)
                return;
        c.verb = DO_PATCH;
        c.patch = PATCH_JSON_MERGE;
        c.body = body;
        api_do(&c);
}

static void remove_finalizer(const struct item *it, const struct json *object, const char *name,
                             struct arena *a)
{
        struct json *rest = json_array(a);

        json_foreach (f, json_at(json_at(object, "metadata"), "finalizers"))
                if (!streq(json_cstr(f), name))
                        json_append(rest, json_copy(a, f));
        patch(it, json_build(a, "{'metadata': {'finalizers': %p}}", rest), a);
}

/* ---- as a dependent */

enum owner_state { OWNER_SOLID, OWNER_GONE, OWNER_WAITS, OWNER_UNKNOWN, OWNER_STATES };

static const usec_t PATIENCE = USEC_PER_SEC; /* with owners that nobody has seen yet */

static enum owner_state owner_state(const struct item *it, const struct json *ref, struct arena *a)
{
        const struct item *owner = map_get(&it->m->items, str_of(json_str_or(ref, "uid", "")));
        const struct json *object = owner ? item_object(owner, a) : NULL;

        if (!object && (!owner || (!owner->version && !item_kin(owner)->was_here)) &&
            loop_now(it->m->loop) < item_kin(it)->owned_since + PATIENCE)
                return OWNER_UNKNOWN;
        if (!object)
                return OWNER_GONE;
        return object_deleting(object) && has_finalizer(object, FOREGROUND) ? OWNER_WAITS : OWNER_SOLID;
}

static void keep_solid_owners(const struct item *it, const struct json *owners, struct arena *a)
{
        struct json *solid = json_array(a);

        json_foreach (ref, owners)
                if (owner_state(it, ref, a) == OWNER_SOLID)
                        json_append(solid, json_copy(a, ref));
        patch(it, json_build(a, "{'metadata': {'ownerReferences': %p}}", solid), a);
}

static void delete_item(const struct item *it, const char *propagation, struct arena *a)
{
        struct call c = item_call(it, "kube-controller-manager", a);

        if (!c.type)
                return;
        c.verb = DO_DELETE;
        c.if_uid = it->uid;
        c.propagation = propagation;
        api_do(&c);
}

/* An object goes when it has owners and none of them stays. */
static void check_owners(struct item *it, const struct json *object, struct arena *a)
{
        const struct json *owners = json_at(json_at(object, "metadata"), "ownerReferences");
        size_t count[OWNER_STATES] = {0};

        json_foreach (ref, owners)
                count[owner_state(it, ref, a)]++;
        if (json_len(owners) == 0 || count[OWNER_SOLID] == json_len(owners))
                return;
        if (count[OWNER_UNKNOWN] > 0) {
                item_wait(it);
                return;
        }
        if (count[OWNER_SOLID] > 0)
                keep_solid_owners(it, owners, a);
        else if (count[OWNER_WAITS] > 0 && item_kin(it)->dependents.n > 0)
                delete_item(it, "Foreground", a);
        else
                delete_item(it, has_finalizer(object, ORPHAN) ? "Orphan" : "Background", a);
}

/* ---- as an owner */

static bool blocks(const struct item *dependent, const char *owner_uid, struct arena *a)
{
        const struct json *object = item_object(dependent, a);

        json_foreach (ref, json_at(json_at(object, "metadata"), "ownerReferences"))
                if (streq(json_str(ref, "uid"), owner_uid) && json_bool(ref, "blockOwnerDeletion", false))
                        return true;
        return false;
}

static void wait_for_dependents(struct item *it, const struct json *object, struct arena *a)
{
        bool blocked = false;

        vec_foreach (d, &item_kin(it)->dependents) {
                blocked |= blocks(*d, it->uid, a);
                item_touch(*d);
        }
        if (!blocked)
                remove_finalizer(it, object, FOREGROUND, a);
}

static void orphan_one(const struct item *dependent, const char *owner_uid, struct arena *a)
{
        const struct json *object = item_object(dependent, a);
        struct json *others = json_array(a);

        json_foreach (ref, json_at(json_at(object, "metadata"), "ownerReferences"))
                if (!streq(json_str(ref, "uid"), owner_uid))
                        json_append(others, json_copy(a, ref));
        if (object)
                patch(dependent, json_build(a, "{'metadata': {'ownerReferences': %p}}", others), a);
}

void collect(struct item *it, const struct json *object, struct arena *a)
{
        if (object_deleting(object)) {
                if (has_finalizer(object, ORPHAN)) {
                        vec_foreach (d, &item_kin(it)->dependents)
                                orphan_one(*d, it->uid, a);
                        remove_finalizer(it, object, ORPHAN, a);
                } else if (has_finalizer(object, FOREGROUND)) {
                        wait_for_dependents(it, object, a);
                }
                return;
        }
        check_owners(it, object, a);
}

void collect_gone(struct item *it)
{
        vec_foreach (d, &item_kin(it)->dependents)
                item_touch(*d);
}
