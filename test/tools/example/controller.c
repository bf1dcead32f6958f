/*
 * The smallest whole controller: copies the data of each request into a ConfigMap of its own and says so in its status.
 *
 * A request is a ConfigMap with the label example.sonde.dev/request, or a Sample, a custom resource with spec.data. The
 * settings, if there are any, ask for events.
 */
#include "tools/example/example.h"

static const struct kube_type SAMPLE = {"example.sonde.dev", "v1", "samples", "Sample", true, true};

static const char *copy_name(const struct view *v)
{
        return name_fit(v->arena, NAME_SUBDOMAIN, "", meta_str(v->request, "name"), "-copy", NULL);
}

static const struct json *request_data(const struct view *v)
{
        return json_at(v->type == &SAMPLE ? json_at(v->request, "spec") : v->request, "data");
}

static void plan(const struct view *v, struct decision *d)
{
        const struct json *data = request_data(v);

        decide_exist(d, &KUBE_CONFIGMAP,
                     json_build(v->arena, "{'metadata': {'name': %s}, 'data': %p}", copy_name(v),
                                (void *)(data ? json_copy(v->arena, data) : NULL)),
                     EXIST_APPLY);
}

static void settle(const struct view *v, struct decision *d)
{
        const struct object *copy = view_child(v, &KUBE_CONFIGMAP, copy_name(v));
        bool done = copy && json_equal(json_at(copy->json, "data"), request_data(v));

        if (!done)
                return; /* the plan is being carried out; there is nothing to say yet */
        d->status = json_build(v->arena, "{'copy': %s, 'keys': %zu}", copy->name, json_len(request_data(v)));
        decide_condition(v, d->status, "Ready", "True", "Copied", "the copy is up to date");
        if (v->settings && !json_at(v->request, "status"))
                decide_event(d, v, EVENT_NORMAL, "Copied", "copied to %s", copy->name);
}

static const struct child_kind children[] = {{.type = &KUBE_CONFIGMAP, .through = -1}};

const struct controller EXAMPLE_CONFIGMAPS = {
        .name = "example",
        .type = &KUBE_CONFIGMAP,
        .selector = "example.sonde.dev/request",
        .children = children,
        .n_children = ARRAY_LEN(children),
        .settings = "events",
        .plan = plan,
        .settle = settle,
};

const struct controller EXAMPLE_SAMPLES = {
        .name = "example",
        .type = &SAMPLE,
        .children = children,
        .n_children = ARRAY_LEN(children),
        .plan = plan,
        .settle = settle,
};
