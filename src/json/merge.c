#include "json/internal.h"
#include "json/patch.h"

static bool is_null(const struct json *j)
{
        return j->type == JSON_NULL;
}

/* Goes through TARGET's members once: each stays, goes, or becomes what PATCH makes of it. */
static void merge_present(struct arena *a, struct json *target, const struct json *patch)
{
        _cleanup_(lookup_done) struct lookup in_patch = {0};
        struct json *j = json_first(target), *next;
        uint32_t n = target->len;

        lookup_init(&in_patch, patch);
        target->last = NULL;
        target->len = 0;
        for (; n; n--, j = next) {
                const struct json *change = lookup_get(&in_patch, json_key(j));
                struct json *merged;

                next = j->next;
                if (change && is_null(change))
                        continue;
                merged = change ? json_merge_patch(a, j, change) : j;
                merged->key = j->key;
                merged->key_len = j->key_len;
                json_attach(target, merged);
        }
}

/* The members that only PATCH has. */
static void merge_new(struct arena *a, struct json *target, const struct json *patch,
                      const struct lookup *before)
{
        json_foreach (change, patch)
                if (!is_null(change) && !lookup_get(before, json_key(change)))
                        json_add(a, target, json_key(change), json_merge_patch(a, NULL, change));
}

struct json *json_merge_patch(struct arena *a, struct json *target, const struct json *patch)
{
        _cleanup_(lookup_done) struct lookup before = {0};

        if (!json_is(patch, JSON_OBJECT))
                return json_copy(a, patch);
        if (!json_is(target, JSON_OBJECT))
                target = json_object(a);
        lookup_init(&before, target);
        merge_present(a, target, patch);
        merge_new(a, target, patch, &before);
        return target;
}

/* TO as a patch that brings all of it: merging it into nothing leaves out the nulls. */
static struct json *whole(struct arena *a, const struct json *to)
{
        return json_merge_patch(a, NULL, to);
}

static struct json *diff_objects(struct arena *a, const struct json *from, const struct json *to);

/* What the patch says of a member that both sides have; NULL: nothing. */
static struct json *diff_member(struct arena *a, const struct json *from, const struct json *to)
{
        if (from->type == JSON_OBJECT && to->type == JSON_OBJECT)
                return diff_objects(a, from, to);
        return json_equal(from, to) ? NULL : whole(a, to);
}

static struct json *diff_objects(struct arena *a, const struct json *from, const struct json *to)
{
        _cleanup_(lookup_done) struct lookup in_from = {0}, in_to = {0};
        struct json *patch = json_object(a), *change;

        lookup_init(&in_from, from);
        lookup_init(&in_to, to);
        json_foreach (old, from)
                if (!lookup_get(&in_to, json_key(old)))
                        json_add(a, patch, json_key(old), json_null(a));
        json_foreach (j, to) {
                const struct json *old = lookup_get(&in_from, json_key(j));

                if (old)
                        change = diff_member(a, old, j);
                else
                        change = is_null(j) ? NULL : whole(a, j);
                if (change)
                        json_add(a, patch, json_key(j), change);
        }
        return patch->len ? patch : NULL;
}

struct json *json_merge_diff(struct arena *a, const struct json *from, const struct json *to)
{
        if (!from || !to)
                return to ? whole(a, to) : NULL;
        return diff_member(a, from, to);
}
