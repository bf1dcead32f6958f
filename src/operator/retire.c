/*
 * Requests that have ended stay, by the thousand, with their Jobs, pods and ConfigMaps. What a decision does not look at any
 * more is not kept; what it does is kept in few bytes (see `ended` in kube/cache.h).
 */
#include "operator/runtime.h"

bool retire_job_ended(const struct json *job)
{
        json_foreach (c, json_path(job, "status.conditions")) {
                const char *type = json_str(c, "type");

                if (streq(json_str(c, "status"), "True") &&
                    (streq(type, "Complete") || streq(type, "Failed")))
                        return true;
        }
        return false;
}

void retire(struct task *t)
{
        const struct decision *d = &t->decision;

        if (!d->rests || d->absent.n || t->item->expectations)
                return;
        for (size_t i = 0; i < t->view.n_children; i++) {
                const struct object *child = &t->view.children[i];
                const struct source *s = runtime_source(t->rt, child->type);

                if (s && s->kind->passing) /* one that has changed meanwhile is decided on once more */
                        cache_forget(s->cache, t->ns, child->name, meta_str(child->json, "resourceVersion"));
        }
}
