#include "operator/runtime.h"

/*
 * An object that we created belongs to our manager by an "Update"; what we apply later belongs to it by an "Apply". To
 * the server these are two owners, so a field that a later plan leaves out would stay: the first one still has it. Before
 * the first changed plan is applied, the Update entry therefore becomes the Apply entry. (client-go's csaupgrade does
 * the same for objects that kubectl made.)
 */
static bool entry_is(const struct json *entry, const char *manager, const char *operation)
{
        return streq(json_str(entry, "manager"), manager) && streq(json_str(entry, "operation"), operation) &&
               !json_str(entry, "subresource");
}

struct json *ownership_patch(struct arena *a, const struct json *object, const char *manager)
{
        const struct json *entries = json_at(json_at(object, "metadata"), "managedFields");
        size_t i = 0, created = SIZE_MAX;
        bool applied = false;
        struct json *patch;
        const char *path;

        json_foreach (entry, entries) {
                if (entry_is(entry, manager, "Update"))
                        created = i;
                applied = applied || entry_is(entry, manager, "Apply");
                i++;
        }
        if (created == SIZE_MAX)
                return NULL;
        path = arena_printf(a, "/metadata/managedFields/%zu%s", created, applied ? "" : "/operation");
        patch = json_build(a,
                           "[{'op': 'test', 'path': '/metadata/uid', 'value': %s},"
                           " {'op': 'test', 'path': '/metadata/resourceVersion', 'value': %s}]",
                           meta_str(object, "uid"), meta_str(object, "resourceVersion"));
        /* With both there, what was applied last is the whole plan of that time: the other entry only goes. */
        if (applied)
                json_append(patch, json_build(a, "{'op': 'remove', 'path': %s}", path));
        else
                json_append(patch, json_build(a, "{'op': 'replace', 'path': %s, 'value': 'Apply'}", path));
        return patch;
}
