#include "cli/up.h"

#include <ctype.h>

#include "cli/ask.h"
#include "kinds/kinds.h"

/* How long a definition may take until what it defines is served, and how often that is asked. */
#define SERVED_WITHIN (10 * USEC_PER_SEC)
#define SERVED_ASK    (50 * USEC_PER_MS)

enum { LABEL_MAX = 64 };

const char *up_label(struct arena *a, const char *kind, const char *ns, const char *name)
{
        char *label = arena_printf(a, "%s%s%.*s/%s", ns && !streq(ns, "default") ? ns : "",
                                   ns && !streq(ns, "default") ? "/" : "", LABEL_MAX, kind, name);
        char *end = label + strlen(label) - strlen(name);

        for (char *p = label; p < end; p++)
                *p = (char)tolower((unsigned char)*p);
        return label;
}

/* ---- waiting */

static void on_pause_over(struct timer *t)
{
        timer_cancel(t);
}

static void pause_for(struct up_apply *u, usec_t delay)
{
        struct timer t;

        timer_init(&t, kube_loop(u->kube), on_pause_over);
        timer_after(&t, delay);
        while (timer_pending(&t) && !*u->stop && loop_turn(kube_loop(u->kube), true))
                continue;
        timer_cancel(&t);
}

/* ---- types */

/* True when a definition among the resources serves the kind of OBJECT: then it is worth waiting for. */
static bool defines(const struct resources *r, const struct json *object)
{
        struct str group = str_of(json_str(object, "apiVersion")), version = group;

        group = str_split(&version, '/');
        for (size_t i = 0; i < r->list.n; i++) {
                const struct json *o = r->list.v[i].object, *spec = json_at(o, "spec");

                if (streq(json_str(o, "kind"), "CustomResourceDefinition") &&
                    str_eq(str_of(json_str(spec, "group")), group) &&
                    streq(json_str(json_at(spec, "names"), "kind"), json_str(object, "kind")))
                        return true;
        }
        return false;
}

static bool is_defined(const struct up_apply *u, const struct resources *all, const struct json *object)
{
        return defines(all, object) || (u->crds && defines(u->crds, object));
}

static struct kube_type *type_of(struct arena *a, const char *api_version, const struct json *resource)
{
        struct kube_type *t = arena_new(a, struct kube_type);
        const char *slash = strchr(api_version, '/');

        t->group = slash ? arena_strndup(a, api_version, (size_t)(slash - api_version)) : "";
        t->version = slash ? slash + 1 : api_version;
        t->plural = json_str_or(resource, "name", "");
        t->kind = json_str_or(resource, "kind", "");
        t->namespaced = json_bool(resource, "namespaced", false);
        return t;
}

/* Asks the server for the resources of OBJECT's group and version; NULL: it does not serve the kind. */
static const struct kube_type *discover(struct up_apply *u, const struct json *object, struct arena *a,
                                        struct err *err)
{
        const char *version = json_str(object, "apiVersion"), *kind = json_str(object, "kind");
        struct kube_request r = {.verb = KUBE_GET};
        struct asked list;

        r.path = arena_printf(a, "%s/%s", strchr(version, '/') ? "/apis" : "/api", version);
        if (ask(u->kube, &r, u->stop, a, &list, err) < 0 && err->code != E_NOT_FOUND)
                return NULL;
        if (err->code == E_OK)
                json_foreach (resource, json_at(list.doc, "resources"))
                        if (streq(json_str(resource, "kind"), kind) &&
                            !strchr(json_str_or(resource, "name", "/"), '/'))
                                return type_of(a, version, resource);
        err_set(err, E_NOT_FOUND, "no kind \"%s\" is served in version \"%s\"%s", kind, version,
                kinds_find(version, kind) ? "; next: sonde manifests | kubectl apply -f -" : "");
        return NULL;
}

/* ---- one resource */

/* The node that the server's message is about: "... is invalid: spec.x[0].y: what". The nearest one above when there
 * is none of that name. */
static const struct json *node_of(const struct json *object, const char *message, struct arena *a)
{
        const char *at = strstr(message, " is invalid: ");
        const struct json *node = NULL;
        char *path;

        if (str_has_prefix(str_of(message), STR("no kind ")))
                return json_at(object, "kind");
        if (!at)
                return json_at(json_at(object, "metadata"), "name");
        at += strlen(" is invalid: ");
        at += *at == '[';
        path = arena_strndup(a, at, strcspn(at, ": "));
        while (*path && !(node = json_path(object, path))) {
                char *dot = strrchr(path, '.'), *bracket = strrchr(path, '[');
                char *cut = bracket && (!dot || bracket > dot) ? bracket : dot;

                if (!cut)
                        break;
                *cut = '\0';
        }
        return node ? node : json_at(json_at(object, "metadata"), "name");
}

static int send(struct up_apply *u, const struct json *object, struct arena *a, struct asked *ret,
                struct err *err)
{
        const struct kube_type *type = discover(u, object, a, err);
        const char *ns = meta_str(object, "namespace");
        struct kube_request r = {.verb = KUBE_APPLY, .type = type, .field_manager = "sonde", .force = true};

        if (!type)
                return -1;
        if (type->namespaced)
                r.ns = ns ? ns : u->ns;
        r.name = meta_str(object, "name");
        if (!r.name) { /* generateName: there is nothing to apply to */
                r.verb = KUBE_CREATE;
                r.force = false;
        }
        r.dry_run = u->dry_run;
        r.body = str_of(json_print(a, object));
        return ask(u->kube, &r, u->stop, a, ret, err);
}

/* As send(), again for a while if somebody has just defined the kind. */
static int send_when_served(struct up_apply *u, const struct resources *all, const struct json *object,
                            struct arena *a, struct asked *ret, struct err *err)
{
        struct loop *loop = kube_loop(u->kube);
        usec_t until = usec_add(loop_now(loop), SERVED_WITHIN);
        bool defined = is_defined(u, all, object);

        for (;;) {
                err_clear(err);
                if (send(u, object, a, ret, err) == 0)
                        return 0;
                if (err->code != E_NOT_FOUND || !defined || loop_now(loop) >= until || *u->stop)
                        return -1;
                pause_for(u, SERVED_ASK);
        }
}

static void apply_one(struct up_apply *u, struct resources *all, const struct resource *r)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *kind = json_str(r->object, "kind");
        struct err err = ERR_INIT;
        struct asked made;

        if (send_when_served(u, all, r->object, &a, &made, &err) < 0) {
                if (err.code == E_CANCELED)
                        return;
                resources_complain(all, r->file, node_of(r->object, err.text, &a), "%s", err.text);
                u->refused++;
                return;
        }
        if (u->quiet)
                return;
        printf("%s %s%s\n", up_label(&a, kind, meta_str(made.doc, "namespace"), meta_str(made.doc, "name")),
               made.status == 201 ? "created" : "applied", u->dry_run ? " (dry run)" : "");
        if (u->follow)
                up_follow_add(u->follow, made.doc);
}

void up_apply(struct up_apply *u, struct resources *r)
{
        for (size_t i = 0; i < r->list.n && !*u->stop; i++)
                apply_one(u, r, &r->list.v[i]);
        fflush(stdout);
}
